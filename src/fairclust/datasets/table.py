"""Files of data sets: delimited text whose columns are known by name and number."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fairclust.datasets.errors import DatasetError
from fairclust.datasets.spec import ReaderSpec
from fairclust.group_encoding import Values
from fairclust.messages import nearest
from fairclust.tables.text import Format, TableError, as_number, number_pattern, open_rows
from fairclust.tables.values import factor, to_numbers

ADVICE = {
    "delimiter": "is {!r} the right 'sep' in 'reader'?",
    "encoding": "set 'encoding' in 'reader' to {}",
    "decimal": "set 'decimal' in 'reader' to one of them",
    "header": "Fix: set 'header: false' in 'reader', and name the columns by 'names' or by numbers from 0",
}

_ATTRIBUTE = re.compile(
    r"""\s*@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s'"]+))\s""", re.IGNORECASE
)
_DATA = re.compile(r"\s*@data\b", re.IGNORECASE)


class Table(NamedTuple):
    """The columns that were read."""

    numbers: np.ndarray  # (n_kept, n_numbers), in the order in which they were asked for
    texts: dict[int, Values]  # the other columns by number, with all rows and without blanks around the cells
    kept: np.ndarray  # (n_read,)
    dropped: list[dict[str, object]]  # column, value, number of rows


class TableFile:
    """A delimited text file. What is wrong with it is a TableError or a DatasetError."""

    def __init__(self, path: Path, reader: ReaderSpec):
        self.path, self.reader = path, reader
        head, self.names = _arff_head(path, reader.encoding) if reader.format == "arff" else (0, [])
        named = reader.header and reader.format == "csv"
        self._format = Format(
            delimiter=reader.sep,
            decimal=reader.decimal,
            encoding=reader.encoding,
            quote=reader.quotechar,
            header=named,
            skip_blanks=reader.skipinitialspace,
            skip_lines=head,
            advice=ADVICE,
        )
        with open_rows(path, self._format, path.name) as rows:
            width = len(rows.first)
            if named and width > len(rows.header):
                raise rows.differ()
        if named:
            self.names = [cell.strip() for cell in rows.header]
        elif not self.names:
            self.names = list(reader.names) or [f"column {i}" for i in range(width)]
            if len(self.names) != width:
                raise DatasetError(
                    f"file '{path.name}': 'reader.names' does not fit the file; expected {width} names; found "
                    f"{len(self.names)}. Fix: name every column, or none and use numbers"
                )

    def position(self, column: str | int) -> int:
        """The number of a column given by name or number."""
        return position(column, self.names, self.path.name)

    def read(
        self,
        numbers: Sequence[int],
        texts: Sequence[int] = (),
        drop_rows: Mapping[int, Sequence[str]] | None = None,
        *,
        as_text: bool = False,
    ) -> Table:
        """Read columns of numbers, and other columns as text.

        Rows whose cell in a column of `drop_rows` has one of its values are left out. A DatasetError names the first
        cell that is not a finite number. With `as_text`, numbers are read as text first, as all but plain ones are.
        """
        drops, zeros = dict(drop_rows or {}), list(self.reader.as_zero)
        plain = self.reader.thousands is None and self.reader.decimal == "." and not as_text
        with open_rows(self.path, self._format, self.path.name) as rows:
            # pandas reads plain numbers, which takes little time and memory. Columns that do not begin with a number
            # are read as text, because pandas takes truth values for zeros and ones.
            fast = [
                i
                for i in numbers
                if plain and i not in {*drops, *texts} and as_number(rows.first[i]) is not None
            ]
            types = dict.fromkeys([*numbers, *texts, *drops], str) | dict.fromkeys(fast, float)
            try:
                frame = rows.frame(types, dict.fromkeys(fast, zeros), all_columns=False)
            except (TableError, UnicodeError):
                raise
            except ValueError:  # a cell is no number
                frame = None
        if frame is None:
            return self.read(numbers, texts, drop_rows, as_text=True)
        found = {i: factor(frame[i]) for i in types if i not in fast}
        kept, dropped = dropped_rows({self.names[i]: (found[i], of) for i, of in drops.items()}, len(frame))
        X = np.empty((int(kept.sum()), len(numbers)))
        for j, i in enumerate(numbers):
            if i in fast:
                # Only the cells listed in `as_zero` are missing.
                X[:, j] = frame[i].fillna(0.0).to_numpy()[kept]
            else:
                words = [("0" if word in zeros else word) for word in found[i].words]
                values = Values(found[i].entries, np.array(words, dtype=object))
                X[:, j] = to_numbers(values, self.reader.decimal, self.reader.thousands)[kept]
        wrong = ~np.isfinite(X)
        if wrong.any() and fast:
            return self.read(numbers, texts, drop_rows, as_text=True)
        if wrong.any():
            row, j = np.argwhere(wrong)[0]
            row = int(np.flatnonzero(kept)[row])
            cell = str(found[numbers[j]].at(row))
            raise DatasetError(
                f"file '{self.path.name}', column '{self.names[numbers[j]]}': a feature has cells that are not finite "
                f"numbers; found {cell!r} in data row {row + 1}, {wrong[:, j].sum():,} such cells in all"
                f"{self._other_signs(cell)}. Fix: leave the column out of 'features', or list the value under "
                "'drop_rows'"
            )
        return Table(X, found, kept, dropped)

    def _other_signs(self, cell: str) -> str:
        """The signs in `reader` with which a cell would be a number, if there are any."""
        own, other = (",", ".") if self.reader.decimal == "," else (".", ",")
        for thousands, decimal in ((other, own), ("'", own), (" ", own), (own, other)):
            if number_pattern(thousands, decimal).fullmatch(cell):
                return f", which decimal {decimal!r} and thousands {thousands!r} in 'reader' would read"
        return ""


def position(column: str | int, names: Sequence[str], file: str) -> int:
    """The number of a column given by name or number. None, or two of that name, is a DatasetError."""
    found = [i for i, name in enumerate(names) if column in (i, name)]
    if len(found) == 1:
        return found[0]
    raise DatasetError(
        f"file '{file}', column '{column}': the header has this name twice. Fix: use a number: {found}"
        if found
        else f"file '{file}', column '{column}': no such column; expected a name, or a number from 0 to "
        f"{len(names) - 1}. Fix: correct the name ({nearest(str(column), names)}), or check 'sep' and 'header' in "
        "'reader'"
    )


def dropped_rows(
    drops: Mapping[str, tuple[Values, Sequence[str]]], n_rows: int
) -> tuple[np.ndarray, list[dict[str, object]]]:
    """Which rows are kept, because no column has one of the values listed for it, and how many others each value has.

    A row counts under the first of its values. A missing cell is an empty text.
    """
    kept, dropped = np.ones(n_rows, dtype=bool), []
    for column, (cells, listed) in drops.items():
        for value in listed:
            hit = np.array([text == value for text in cells.words])[cells.entries] & kept
            dropped.append({"column": column, "value": value, "rows": int(hit.sum())})
            kept &= ~hit
    return kept, dropped


def _arff_head(path: Path, encoding: str) -> tuple[int, list[str]]:
    """The number of lines of an ARFF file up to and including ``@data``, and the names of its columns."""
    names: list[str] = []
    with path.open(encoding=encoding, errors="replace", newline="") as lines:
        for count, line in enumerate(lines, 1):
            if found := _ATTRIBUTE.match(line):
                names.append(next(name for name in found.groups() if name is not None))
            elif names and _DATA.match(line):
                return count, names
    raise DatasetError(
        f"file '{path.name}': the file is no ARFF; found no line with @attribute before one with @data. Fix: check "
        "'format' in 'reader'"
    )
