"""Users' raw tables: reading them, finding the role of each column, and preparing the rows for the methods."""

from fairclust.tables.columns import Column, understand
from fairclust.tables.errors import TableError
from fairclust.tables.groups import cross, find_ranges, group_columns, text_or_numbers
from fairclust.tables.model import TableModel, load_model
from fairclust.tables.preparation import make_preparation
from fairclust.tables.reading import read_table

__all__ = [
    "Column",
    "TableError",
    "TableModel",
    "cross",
    "find_ranges",
    "group_columns",
    "load_model",
    "make_preparation",
    "read_table",
    "text_or_numbers",
    "understand",
]
