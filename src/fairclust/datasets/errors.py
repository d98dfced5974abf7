"""What can go wrong with a data set, in words a reader can act on."""

from __future__ import annotations

from pathlib import PurePath


class DatasetError(Exception):
    """A data set cannot be prepared; the message says where, what was found and how to fix it."""


class SourceUnavailable(DatasetError):
    """A source file could not be had from any of its places."""


class SourceCorrupt(DatasetError):
    """A source file was found, but it is not the file that the catalogue describes."""


class DatasetSkipped(Exception):
    """A data set was left out on purpose or for want of its source; the message is the reason.

    Not a :class:`DatasetError`: code that reports errors must not swallow skips along with them.
    """


def problem(
    what: str,
    *,
    dataset: str,
    file: PurePath | str | None = None,
    column: str | None = None,
    expected: object = None,
    found: object = None,
    fix: str | None = None,
) -> DatasetError:
    """Build a `DatasetError` whose message always has the same order of parts.

    Parameters
    ----------
    what : str
        One clause that names the problem.
    dataset : str
        Name of the data set.
    file, column : optional
        Where it was seen.
    expected, found : optional
        What should have been there and what was.
    fix : str, optional
        What the user can do.

    Returns
    -------
    DatasetError
        To be raised by the caller.
    """
    place = [f"data set '{dataset}'"]
    if file is not None:
        place.append(f"file '{file}'")
    if column is not None:
        place.append(f"column '{column}'")
    text = f"{', '.join(place)}: {what}"
    if expected is not None:
        text += f"; expected {expected}"
    if found is not None:
        text += f"; found {found}"
    if fix is not None:
        text += f". Fix: {fix}"
    return DatasetError(text)
