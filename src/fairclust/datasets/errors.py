"""The errors of data sets, with messages that say how to fix the problem."""

from __future__ import annotations


class DatasetError(Exception):
    """A data set cannot be prepared; the message says where, what was found and how to fix it."""


class SourceUnavailable(DatasetError):
    """No place could deliver a source file, or only another one than the catalogue describes."""


# This is no DatasetError, so that code that handles errors does not catch skipped data sets as well.
class DatasetSkipped(Exception):
    """A data set was left out on purpose, or because its source is missing; the message is the reason."""
