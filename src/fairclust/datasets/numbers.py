"""Recognition of numbers in the cells of a table, and of cells that only look like numbers."""

from __future__ import annotations

import itertools
import math
import re

from fairclust.datasets.spec import ReaderSpec

# Cells that look like numbers to a person but not to this program: pattern, description, and what to do. {0} stands
# for the separator that was found.
LOOKALIKES = (
    (r"[+-]?[0-9.,]+ ?%", "a percentage", "delete the '%' from the file"),
    (
        r"[+-]?0[xX][0-9a-fA-F]+",
        "a hexadecimal number",
        "list the column under 'categorical' if it holds codes",
    ),
    (
        r"[+-]?[0-9]{1,3}([^0-9a-zA-Z+-])[0-9]{3}(?:\1[0-9]{3})*",
        "a number with '{0}' between thousands",
        "set 'reader.thousands' to '{0}' (or 'reader.decimal', if that is the decimal point)",
    ),
    (
        r"[+-]?[0-9]{1,3}(?:([^0-9a-zA-Z+-])[0-9]{3})+[,.][0-9]+",
        "a number with '{0}' between thousands",
        "set 'reader.thousands' to '{0}' and 'reader.decimal' to the decimal point",
    ),
    (
        r"[+-]?[0-9]+([,.])[0-9]+",
        "a number with '{0}' as decimal point",
        "set 'reader.decimal' to '{0}'",
    ),
    (r"[$€£¥] ?[0-9.,]+|[0-9.,]+ ?[$€£¥]", "an amount of money", "delete the currency sign from the file"),
    (r"(?i:true|false|yes|no)", "a truth value", "list the column under 'categorical'"),
)


def grouped(reader: ReaderSpec) -> str:
    """Return the pattern of a number with `reader.thousands`, which separates exactly three digits each."""
    thousands, decimal = re.escape(reader.thousands or ""), re.escape(reader.decimal)
    return f"^[+-]?[0-9]{{1,3}}({thousands}[0-9]{{3}})+({decimal}[0-9]*)?$"


def is_number(cell: str, reader: ReaderSpec) -> bool:
    """Tell whether a cell is a finite number to :class:`fairclust.datasets.table.TableFile`."""
    cell = cell.strip()
    if reader.thousands is not None and re.match(grouped(reader), cell):
        cell = cell.replace(reader.thousands, "")
    # float() reads 1_000 as a number, but pyarrow does not.
    if "_" in cell or (reader.decimal != "." and "." in cell):
        return False
    try:
        return math.isfinite(float(cell.replace(reader.decimal, ".")))
    except ValueError:
        return False


def is_data(row: list[str], reader: ReaderSpec) -> bool:
    """Tell whether a row cannot be a header, although some columns have numbers as names.

    Years, identifiers and wavelengths occur as names of columns. Negative numbers, repeated numbers, and fractions that
    do not increase are taken as data.
    """
    plain = reader.model_copy(update={"thousands": None})
    numbers = [float(cell.replace(reader.decimal, ".")) for cell in row if is_number(cell, plain)]
    increasing = len(numbers) > 2 and all(a < b for a, b in itertools.pairwise(numbers))
    fractions = any(number != int(number) for number in numbers)
    return min(numbers, default=0) < 0 or len(set(numbers)) < len(numbers) or (fractions and not increasing)


def lookalike(cell: str) -> tuple[str, str]:
    """Describe a cell that is not a number, and say what to do; both are empty if it looks like nothing known."""
    for pattern, look, fix in LOOKALIKES:
        if found := re.fullmatch(pattern, cell.strip()):
            return look.format(*found.groups()), fix.format(*found.groups())
    return "", ""
