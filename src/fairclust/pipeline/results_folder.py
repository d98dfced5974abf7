"""What happens to the folder of results when a run begins: it is locked and tidied, and damaged files are renamed.

Beside its log, every job writes the SHA-256 of the files that it has made, in the format of `sha256sum`. Files of
cells, prepared data and graphs hold digests of their own, which are checked when they are read.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from fairclust.datasets.digest import content_digest
from fairclust.outputs import atomic_write
from fairclust.pipeline.cell_store import set_aside
from fairclust.temporary import remove_leftovers

_DIGESTS = ".sha256"
# Every run leaves this file in its results.
_LOCK = Path("logs/.lock")


def foreign_folder(results: Path) -> str:
    """Why a folder cannot be the folder of results, with the fix; empty if it can.

    A run changes time stamps in its results and removes files from them, so they must not lie among other files.
    """
    if results.is_dir():
        if (results / _LOCK).exists():
            return ""
        # Git keeps a README in the folder `results`, and the results of `make reproduce` lie in a folder inside.
        foreign = [
            path.name
            for path in results.iterdir()
            if path.name != "README.md" and not path.name.startswith(".") and not (path / _LOCK).exists()
        ]
        if not foreign:
            return ""
        found = f"this folder holds {min(foreign)!r}, which no run has made"
    elif any(os.path.lexists(place) and not place.is_dir() for place in (results, *results.parents)):
        found = "a file has its name or that of a folder above it"
    else:
        return ""
    return (
        f"results: {str(results)!r} cannot be the folder of results, because {found}. Fix: set `results` to a folder "
        f"that does not exist yet, or, if results of a run lie there, run `mkdir -p {results}/logs && touch "
        f"{results / _LOCK}`"
    )


def lock(results: Path) -> IO[bytes] | None:
    """Lock the folder of results for this process. The lock ends with the process, also when it is killed.

    Snakemake locks the working folder, but two working folders may share their results.

    Returns
    -------
    file or None
        Holds the lock until it is closed. None if another run has it.
    """
    path = results / _LOCK
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    except OSError:  # a file system without locks
        pass
    return file


def tidy(results: Path) -> list[str]:
    """Make the folder ready for a run.

    Returns
    -------
    list of str
        A line for everything that a user should know.
    """
    remove_leftovers(results)
    return [*_mend_time_stamps(results), *_set_damaged_aside(results)]


def remove_damaged_metadata(folder: Path) -> list[str]:
    """Remove damaged records of Snakemake, because Snakemake would stop at them.

    Snakemake takes an output without a record to be up to date.

    Parameters
    ----------
    folder : Path
        Where Snakemake keeps a record of each output.

    Returns
    -------
    list of str
        A line for each record that was removed.
    """
    lines = []
    for path in folder.rglob("*"):
        if path.is_file():
            try:
                json.loads(path.read_bytes())
            except ValueError:
                path.unlink()
                lines.append(f"{path}, a record of Snakemake, was damaged and has been removed.")
    return lines


def _mend_time_stamps(results: Path) -> Iterator[str]:
    """Set time stamps in the future to now. Otherwise everything made from these files would count as outdated."""
    now, ahead = time.time(), 0.0
    for path in results.rglob("*"):
        with suppress(OSError):
            seconds = path.stat().st_mtime - now
            if seconds > 0:
                os.utime(path, (now, now))
                ahead = max(ahead, seconds)
    if ahead > 60:
        yield f"Files in {results} were up to {ahead:.0f} s ahead of this machine's clock; they count as made now."


def write_digests(outputs: Iterable[str], log: Path) -> None:
    """Write the digests of a job's outputs beside its log."""
    files = [path for path in map(Path, outputs) if path.is_file() and path.suffix != ".cells"]
    if files:
        lines = [f"{content_digest(path)}  {os.path.relpath(path, log.parent)}\n" for path in files]
        with atomic_write(log.with_suffix(_DIGESTS)) as file:
            file.write("".join(lines).encode())


def forget_digests(log: Path) -> None:
    """Remove the digests of a job that runs again."""
    log.with_suffix(_DIGESTS).unlink(missing_ok=True)


def stated_digests(results: Path) -> Iterator[tuple[Path, dict[Path, str]]]:
    """Every file of digests, with the digest that it states for each output of its job."""
    inside = results.resolve()
    for file in sorted((results / "logs").rglob(f"*{_DIGESTS}")):
        pairs = [line.split("  ", 1) for line in file.read_text(errors="replace").splitlines()]
        stated = {
            Path(os.path.normpath(file.parent / pair[1])): pair[0]
            for pair in pairs
            if len(pair) == 2 and "\0" not in pair[1]
        }
        # The file may be damaged or come from others, so its names must not lead outside the results.
        yield file, {path: digest for path, digest in stated.items() if path.resolve().is_relative_to(inside)}


def is_damaged(path: Path, digest: str) -> bool:
    """Whether a file is missing or its content does not match the digest."""
    return not path.is_file() or content_digest(path) != digest


def _set_damaged_aside(results: Path) -> Iterator[str]:
    """Rename damaged outputs and remove the other outputs of their jobs, so that Snakemake runs these jobs again."""
    for file, stated in stated_digests(results):
        damaged = [path for path, digest in stated.items() if is_damaged(path, digest)]
        if stated and not damaged:
            continue
        # If all outputs are gone, they were deleted on purpose, for example with `--delete-all-output`.
        if any(path.exists() for path in stated):
            for path in stated:
                if path not in damaged:
                    path.unlink()
                elif path.is_file():
                    yield f"{path} is damaged and now lies in {set_aside(path)}; it is made again."
                else:
                    yield f"{path} is missing; it is made again."
        file.unlink()
