"""The errors of data sets, with messages that say how to fix the problem."""

from __future__ import annotations

from pathlib import PurePath


class DatasetError(Exception):
    """A data set cannot be prepared; the message says where, what was found and how to fix it."""


class SourceUnavailable(DatasetError):
    """No place could deliver a source file."""


class SourceCorrupt(DatasetError):
    """A source file was found, but it is not the file that the catalogue describes."""


class DatasetSkipped(Exception):
    """A data set was left out on purpose, or because its source is missing; the message is the reason.

    This is not a :class:`DatasetError`, so that code that handles errors does not catch skipped data sets as well.
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
    """Build a `DatasetError` whose message has its parts in the same order as all others.

    `what` is a clause that names the problem, and `fix` says what the user can do.
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
