"""Users' raw tables: reading them, finding the role of each column, and preparing the rows for the methods."""

from fairclust.tables.columns import Asked, numbers
from fairclust.tables.model import TableModel, load_model
from fairclust.tables.notes import left_out_rows
from fairclust.tables.preparation import Decision, Preparation, cross, decide
from fairclust.tables.reading import TableError, read_table, table_files

__all__ = [
    "Asked",
    "Decision",
    "Preparation",
    "TableError",
    "TableModel",
    "cross",
    "decide",
    "left_out_rows",
    "load_model",
    "numbers",
    "read_table",
    "table_files",
]
