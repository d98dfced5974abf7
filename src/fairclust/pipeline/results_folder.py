"""What happens to the folder of results when a run begins: it is locked and tidied, and damaged files are copied.

If Snakemake shares a cache between workflows, failures are taken out of it when a run begins and ends.

Beside its log, every job writes the SHA-256 of the files that it has made, in the format of `sha256sum`. Files of
cells, prepared data and graphs hold digests of their own, which are checked when they are read.
"""

from __future__ import annotations

import fcntl
import filecmp
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import IO

from fairclust.outputs import content_digest, is_damaged, remove_leftovers, temporary_beside, write_text

_DIGESTS = ".sha256"
_REMADE = "# made again: "
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


def lock(results: Path, cores: int | None = None) -> IO[bytes] | None:
    """Lock the folder of results until the file is closed or this process ends; None if another run has it.

    The file says how many cores the run has, for `fairclust status`.

    Snakemake locks the working folder, but two working folders may share their results.
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
    file.truncate(0)
    file.write(str(cores or "").encode())
    file.flush()
    return file


def cores_of_run(results: Path) -> int | None:
    """The cores of the run that uses the folder of results, or was the last to use it; None if that is not known."""
    try:
        return int((results / _LOCK).read_text())
    except (OSError, ValueError):
        return None


def tidy(results: Path) -> list[str]:
    """Remove what killed runs have left, and copy damaged or changed outputs, which are then made again.

    Returns a line for each output that is made again.
    """
    remove_leftovers(results)
    lines = []
    for path in (path for _, damaged in damaged_jobs(results).values() for path in damaged):
        if not path.is_file():
            lines.append(f"{path} is missing; it is made again.")
            continue
        names = (f"{path.name}.damaged" + (f"-{number}" if number > 1 else "") for number in count(1))
        # Under a name that no copy of other content has.
        copy = next(
            copy
            for copy in map(path.with_name, names)
            if not copy.exists() or filecmp.cmp(path, copy, shallow=False)
        )
        shutil.copy2(path, copy)
        lines.append(f"{path} is damaged or was changed; a copy lies in {copy}, and it is made again.")
    return lines


def remove_damaged_metadata(folder: Path) -> list[str]:
    """Remove damaged records of Snakemake, because Snakemake would stop at them; returns a line for each.

    Snakemake takes an output without a record to be up to date.
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


def mend_time_stamps(results: Path) -> Iterator[str]:
    """Set time stamps in the future to now. Otherwise everything made from these files would count as outdated.

    Yields a line for the user if they were far ahead.
    """
    now, ahead = time.time(), 0.0
    for path in results.rglob("*"):
        with suppress(OSError):
            seconds = path.stat().st_mtime - now
            if seconds > 0:
                os.utime(path, (now, now))
                ahead = max(ahead, seconds)
    if ahead > 60:
        yield f"Files in {results} were up to {ahead:.0f} s ahead of this machine's clock; they count as made now."


def write_digests(outputs: Iterable[str], log: Path, remade: int = 0) -> None:
    """Write the digests of a job's outputs beside its log, and how often they were made again."""
    files = [path for path in map(Path, outputs) if path.is_file()]
    if files:
        lines = [f"{content_digest(path)}  {os.path.relpath(path, log.parent)}\n" for path in files]
        write_text(digest_file(log), "".join([f"{_REMADE}{remade}\n", *lines]))


def digest_file(log: Path) -> Path:
    """The file with the digests of a job, beside its log."""
    return log.with_suffix(_DIGESTS)


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


def damaged_jobs(results: Path) -> dict[str, tuple[int, list[Path]]]:
    """For jobs, named by their logs, that have ever been damaged: how often, and the outputs that are damaged now.

    The number is a parameter of the job, which writes it beside its digests, so that it stays the same afterwards.
    """
    found = {}
    for file, stated in stated_digests(results):
        first = file.read_text(errors="replace").partition("\n")[0].removeprefix(_REMADE)
        # If all outputs are gone, they were deleted on purpose, for example with `--delete-all-output`.
        there = any(path.exists() for path in stated)
        damaged = [path for path, digest in stated.items() if there and is_damaged(path, digest)]
        number = (int(first) if first.isdecimal() else 0) + bool(damaged)
        if number:
            found[file.relative_to(results / "logs").with_suffix("").as_posix()] = number, damaged
    return found


def forget_failures(results: str | Path) -> None:
    """Remove failed downloads and skipped data sets from the cache, and keep a copy of each in the results.

    Snakemake caches every output, also one that only states why a data set was skipped. Outputs in the cache are
    symbolic links in the results.
    """
    place = os.environ.get("SNAKEMAKE_OUTPUT_CACHE")
    if place is None:
        return
    cache = Path(place).resolve()
    for folder in Path(results).glob("data/*/*"):
        card = folder / ("source.json" if folder.parent.name == "raw" else "card.json")
        entry = Path(os.path.realpath(card)).parent
        if cache not in entry.parents:
            continue
        if not entry.exists():
            _remove(folder)  # Another workflow has removed it from the cache already, so the job runs again.
        elif _is_failure(card):
            copy = temporary_beside(folder, "new")
            shutil.copytree(folder, copy)
            _remove(folder)
            copy.rename(folder)
            shutil.rmtree(entry, ignore_errors=True)


def _is_failure(card: Path) -> bool:
    with suppress(OSError, ValueError, KeyError, TypeError):
        return json.loads(card.read_text())["status"] != "ok"
    return False  # the job that reads a damaged card reports it


def _remove(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder)
