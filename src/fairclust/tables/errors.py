"""The error that this package raises."""


class TableError(ValueError):
    """A table cannot be used; the message names the file, column or cell and says what to do."""
