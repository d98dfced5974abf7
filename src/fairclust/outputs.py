"""Files that are written completely or not at all, and never over a file that the same command reads; their digests."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import stat
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from fairclust.messages import UserError


def check_outputs(outputs: Mapping[str, str | Path | None], inputs: Iterable[str | Path]) -> None:
    """Check, before any work starts, that every output can be written and is neither an input nor another output.

    `outputs` maps options to files (None is no output), and the input "-" is standard input. Files are the same if
    they are one file on the disk, through whatever links, and two new files also if their names differ only in case,
    because some file systems take these as one.
    """
    read = {_identity(path): path for path in inputs}
    written: dict[object, str] = {_identity(2): "standard error"}
    written[_identity(_meant("/dev/stdout"))] = "standard output"
    for option, name in outputs.items():
        if name is None:
            continue
        path = _meant(name)
        identity = _identity(path)
        if identity is not None and identity in read:
            same = "standard input" if str(read[identity]) == "-" else read[identity]
            raise UserError(
                f"{option}: {name} is the same file as {same}, which is read and would be overwritten. Fix: name "
                "another file"
            )
        for key in {identity, os.path.realpath(path).casefold()} - {None}:
            other = written.setdefault(key, option)
            if other != option:
                raise UserError(
                    f"{option}: {name} is also the file of {other}. Fix: name two different files"
                )
        _check_place(option, path)


def _meant(path: str | Path) -> Path:
    """A path, where the names of standard output lead to what Python prints to: 1 is standard error in the command."""
    if str(path) in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        with suppress(AttributeError, OSError, ValueError):  # it is closed, or has no descriptor
            return Path(f"/dev/fd/{sys.stdout.fileno()}")
    return Path(path)


def _identity(file: str | Path | int) -> tuple[int, int] | None:
    """Device and inode of a regular file, which all its names share; None for everything else."""
    with suppress(OSError, ValueError):
        status = os.stat(0 if str(file) == "-" else file)  # noqa: PTH116 - a Path is no file descriptor
        if stat.S_ISREG(status.st_mode):
            return status.st_dev, status.st_ino
    return None


def _check_place(option: str, path: Path) -> None:
    """Check that a file can be written, by writing an empty one beside it."""
    if path.is_dir():
        raise UserError(f"{option}: {path} is a folder. Fix: name a file in it, such as {path / 'name'}")
    real = Path(os.path.realpath(path))
    if not real.parent.is_dir():
        folder = real.parent if path.is_symlink() else path.parent
        raise UserError(f"{option}: there is no folder {folder}. Fix: create it, or name another file")
    if path.exists() and not os.access(path, os.W_OK):
        raise UserError(f"{option}: {path} is write-protected. Fix: name another file")
    if _is_device(path):
        return
    temporary = temporary_beside(real)
    try:
        temporary.touch(exist_ok=False)
        temporary.unlink()
    except OSError as error:
        raise UserError(
            f"{option}: {path} cannot be written: {error.strerror}. Fix: name another file"
        ) from None


def _is_device(path: Path) -> bool:
    """Whether this is a pipe or a device such as /dev/null. These are written to and must not be replaced."""
    return path.exists() and not path.is_file()


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a file, whose folder is created, for writing; it gets its name only when it is complete.

    If the name is a symbolic link, the file that it leads to is replaced, and the link stays. After an error, an
    OSError that names `path`, an earlier file of this name is unchanged, and no temporary file is left.
    """
    path = _meant(path)
    device = _is_device(path)
    real = path if device else Path(os.path.realpath(path))
    temporary = real if device else temporary_beside(real)
    real.parent.mkdir(parents=True, exist_ok=True)
    try:
        with temporary.open("wb" if device else "xb") as file:
            yield file
            file.flush()
            if not device:
                os.fsync(file.fileno())
        if not device:
            temporary.replace(real)
    except BaseException as error:
        if not device:
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            error.filename = str(path)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a file of text as `atomic_write` does."""
    with atomic_write(path) as file:
        file.write(text.encode())


def replace_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Replace a folder when `write` has filled the new one. On an error the old one stays."""
    folder = folder.absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    temp, old = temporary_beside(folder), temporary_beside(folder)
    temp.mkdir()
    try:
        write(temp)
        if folder.exists():
            folder.rename(old)
        try:
            temp.rename(folder)
        except OSError:
            if old.exists():
                old.rename(folder)
            raise
    finally:
        shutil.rmtree(temp, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


def temporary_beside(path: Path) -> Path:
    """A name beside `path` that no other process uses."""
    return path.with_name(f".{path.name}.{os.getpid()}@{platform.node()}.{uuid.uuid4().hex}.tmp")


def content_digest(path: str | Path) -> str:
    """The SHA-256 of a file, as 64 hex digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
