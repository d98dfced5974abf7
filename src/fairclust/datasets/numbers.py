"""Cells of data sets that look like numbers to a person, and what to do about them."""

from __future__ import annotations

import re

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


def lookalike(cell: str) -> tuple[str, str]:
    """Describe a cell that is not a number, and say what to do; both are empty if it looks like nothing known."""
    for pattern, look, fix in LOOKALIKES:
        if found := re.fullmatch(pattern, cell.strip()):
            return look.format(*found.groups()), fix.format(*found.groups())
    return "", ""
