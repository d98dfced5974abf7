"""The one error of this package."""


class TableError(ValueError):
    """A table cannot be used as it is; the message names the file, column or cell and what to do."""
