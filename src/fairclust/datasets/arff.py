"""The head of an ARFF file, the format of OpenML. The head names the columns; lines of cells follow as in a CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ATTRIBUTE = re.compile(
    r"""\s*@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s'"]+))\s""", re.IGNORECASE
)
_DATA = re.compile(r"\s*@data\b", re.IGNORECASE)


def arff_head(lines: Iterable[str]) -> tuple[int, list[str]]:
    """Number of lines up to and including ``@data``, and the names of the columns; a ValueError without them."""
    names: list[str] = []
    for count, line in enumerate(lines, 1):
        if found := _ATTRIBUTE.match(line):
            names.append(next(name for name in found.groups() if name is not None))
        elif _DATA.match(line):
            if not names:
                raise ValueError("no line with @attribute before @data")
            return count, names
    raise ValueError("no line with @data")
