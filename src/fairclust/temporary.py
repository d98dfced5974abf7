"""Temporary files and folders, named after the process that writes them, so that those of dead processes can go."""

from __future__ import annotations

import os
import platform
import re
import shutil
import time
import uuid
from contextlib import suppress
from pathlib import Path

_NAME = re.compile(r"\..+\.(?P<pid>\d+)@(?P<machine>.*)\.[0-9a-f]{32}\.(tmp|new|old|npz|part)")
# A process on another machine cannot be looked up; no file is written for so long.
_DAY = 86_400


def temporary_beside(path: Path, ending: str = "tmp") -> Path:
    """A name beside `path` that no other process uses.

    Parameters
    ----------
    path : Path
    ending : "tmp", "new", "old", "npz" or "part"
    """
    return path.with_name(f".{path.name}.{os.getpid()}@{platform.node()}.{uuid.uuid4().hex}.{ending}")


def remove_leftovers(folder: Path) -> list[Path]:
    """Remove temporary files and folders below a folder whose process has ended.

    Returns
    -------
    list of Path
        What is gone.
    """
    gone = []
    for path in folder.rglob(".*"):
        found = _NAME.fullmatch(path.name)
        if found is None:
            continue
        with suppress(OSError):
            here = found["machine"] == platform.node()
            if is_alive(int(found["pid"])) if here else time.time() - path.stat().st_mtime < _DAY:
                continue
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            gone.append(path)
    return gone


def is_alive(pid: int) -> bool:
    """Whether a process is there; one that has ended and whose parent does not know yet (Linux) is not."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return True
