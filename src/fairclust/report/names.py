"""The headings of metrics and tables."""

from __future__ import annotations

from fairclust.pipeline.columns import COLUMNS


def metric_label(name: str) -> str:
    """The heading of a metric, or of a count of a data set."""
    return COLUMNS[name].label if name in COLUMNS else name.replace("_", " ")


def metric_in_text(name: str) -> str:
    """The name of a metric within a sentence: without a capital, unless it is an abbreviation."""
    label = metric_label(name)
    return label if label.isupper() else label[0].lower() + label[1:]


def table_name(number: str) -> str:
    """'Table 3', or 'Tables III and IV' for a table that joins two of the paper."""
    return f"Tables {number}" if " and " in number else f"Table {number}"
