"""Temporary files and folders. Their names contain the process that writes them, so leftovers can be recognised."""

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
# Whether a process on another machine is alive cannot be checked. Its files are leftovers after this many seconds,
# because no file takes that long to write.
_DAY = 86_400


def temporary_beside(path: Path, ending: str = "tmp") -> Path:
    """A name beside `path`, with one of the endings tmp, new, old, npz and part, that no other process uses."""
    return path.with_name(f".{path.name}.{os.getpid()}@{platform.node()}.{uuid.uuid4().hex}.{ending}")


def remove_leftovers(folder: Path) -> list[Path]:
    """Remove the temporary files and folders below `folder` that belong to processes that have ended, and list them."""
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
    """Whether a process is running. On Linux, a zombie, whose parent has not yet noticed its end, does not count."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return True
