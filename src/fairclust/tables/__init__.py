"""Users' raw tables: reading them, finding the role of each column, and preparing the rows for the methods."""

from fairclust.tables.columns import Column, numbers, understand
from fairclust.tables.model import TableModel, load_model
from fairclust.tables.notes import left_out_rows
from fairclust.tables.preparation import (
    Decision,
    Preparation,
    cross,
    decide,
    find_ranges,
    group_columns,
    make_preparation,
)
from fairclust.tables.reading import read_table, table_files
from fairclust.tables.text import TableError

__all__ = [
    "Column",
    "Decision",
    "Preparation",
    "TableError",
    "TableModel",
    "cross",
    "decide",
    "find_ranges",
    "group_columns",
    "left_out_rows",
    "load_model",
    "make_preparation",
    "numbers",
    "read_table",
    "table_files",
    "understand",
]
