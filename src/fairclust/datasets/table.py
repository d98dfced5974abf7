"""Files of data sets: delimited text whose columns are known by name and number, with errors that name the line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fairclust.datasets.errors import DatasetError, problem
from fairclust.datasets.spec import ReaderSpec
from fairclust.group_encoding import Values
from fairclust.messages import nearest
from fairclust.tables.text import Format, Rows, TableError, as_number, open_rows
from fairclust.tables.values import factor

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
# Cells that look like numbers to a person but not to this program: pattern, description, and what to do. {0} stands
# for the separator that was found.
_LOOKALIKES = (
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


@dataclass(frozen=True)
class Table:
    """The columns that were read."""

    numbers: (
        np.ndarray
    )  # (n_kept, n_numbers), the columns of numbers in the order in which they were asked for
    # The other columns by number, with all rows of the file. Cells have no blanks around them.
    texts: dict[int, Values] = field(default_factory=dict)
    kept: np.ndarray = field(default_factory=lambda: np.empty(0, bool))  # (n_read,)
    dropped: list[dict[str, object]] = field(default_factory=list)  # column, value, number of rows


class TableFile:
    """A delimited text file whose columns are known by name and number.

    It is a DatasetError if the file is empty, if ``reader.names`` does not fit it, or if its first line is a comment or
    data instead of the names of the columns.
    """

    def __init__(self, path: Path, reader: ReaderSpec, dataset: str):
        self.path, self.reader, self.dataset = path, reader, dataset
        head: int = 0
        if reader.format == "arff":
            try:
                with path.open(encoding=reader.encoding, errors="replace", newline="") as lines:
                    head, self.names = _arff_head(lines)
            except ValueError as error:
                raise self._problem("the file is no ARFF", found=error, fix="check 'format'") from None
        self._named = reader.header and reader.format == "csv"
        self._format = Format(
            delimiter=reader.sep,
            decimal=reader.decimal,
            encoding=reader.encoding,
            quote=reader.quotechar,
            header=self._named,
            skip_blanks=reader.skipinitialspace,
            skip_lines=head,
            advice=ADVICE,
        )
        with self._rows() as rows:
            width = len(rows.first)
            if self._named:
                self.names = [cell.strip() for cell in rows.header]
                if width > len(self.names):
                    raise rows.differ()
        if reader.format == "arff" or self._named:
            return
        self.names = list(reader.names) or [f"column {i}" for i in range(width)]
        if len(self.names) != width:
            raise self._problem(
                "'reader.names' does not fit the file",
                expected=f"{width} names",
                found=len(reader.names),
                fix="name every column, or none and use numbers",
            )

    @contextmanager
    def _rows(self) -> Iterator[Rows]:
        """The rows of the file; what is wrong with them is a DatasetError."""
        try:
            with open_rows(self.path, self._format, self.path.name) as rows:
                yield rows
        except TableError as error:
            raise problem(str(error), dataset=self.dataset) from None

    def _problem(self, what: str, **details: object) -> DatasetError:
        return problem(what, dataset=self.dataset, file=self.path.name, **details)  # type: ignore[arg-type]

    def position(self, column: str | int) -> int:
        """The number of a column given by name or number. None, or two of that name, is a DatasetError."""
        if isinstance(column, int):
            if column < len(self.names):
                return column
            raise self._problem(
                "no such column",
                column=str(column),
                expected=f"a number from 0 to {len(self.names) - 1}",
                fix="columns are counted from 0; check 'sep' if the file has more",
            )
        found = [i for i, name in enumerate(self.names) if name == column]
        if len(found) == 1:
            return found[0]
        if found:
            raise self._problem("the header has this name twice", column=column, fix=f"use a number: {found}")
        numbered = self.reader.header and any(self._number(name) is not None for name in self.names)
        raise self._problem(
            "no such column",
            column=column,
            expected="a column of the header" if self.reader.header else "a number, the file has no header",
            fix=f"correct the name ({nearest(column, self.names)}), or check 'sep' and 'header'"
            + (
                "; the first line holds numbers, so perhaps the file has no header: set 'header: false'"
                if numbered
                else ""
            ),
        )

    def read(
        self,
        numbers: Sequence[int],
        texts: Sequence[int] = (),
        drop_rows: Mapping[int, Sequence[str]] | None = None,
    ) -> Table:
        """Read columns of numbers, and other columns as text.

        Rows whose cell in a column of `drop_rows` has one of its values are left out. A DatasetError names the first
        cell that is not a finite number, or a row of another length.
        """
        drops = dict(drop_rows or {})
        plain = self.reader.thousands is None and self.reader.decimal == "."
        with self._rows() as rows:
            # pandas reads plain numbers, which takes little time and memory. Others are read as text first, and so are
            # columns that do not begin with a number, because pandas takes truth values for zeros and ones.
            begin = [i for i in numbers if plain and self._number(rows.first[i]) is not None]
            fast = [i for i in begin if i not in drops and i not in texts]
            types = dict.fromkeys([*numbers, *texts, *drops], str) | dict.fromkeys(fast, float)
            try:
                frame = rows.frame(types, {i: list(self.reader.as_zero) for i in fast}, all_columns=False)
            except UnicodeError:
                raise
            except ValueError as error:  # a cell is no number
                raise self._diagnose(numbers, drops, error) from None
        found = {i: factor(frame[i]) for i in types if i not in fast}
        kept, dropped = dropped_rows(
            {self.names[i]: (found[i], listed) for i, listed in drops.items()}, len(frame)
        )
        X = np.empty((int(kept.sum()), len(numbers)))
        for j, i in enumerate(numbers):
            # Only the cells listed in `as_zero` are missing.
            X[:, j] = frame[i].fillna(0.0).to_numpy()[kept] if i in fast else self._converted(found[i])[kept]
        if not np.isfinite(X).all():
            raise self._diagnose(numbers, drops, "NaN or infinity")
        return Table(X, found, kept, dropped)

    def _number(self, cell: str) -> float | None:
        return as_number(cell, self.reader.decimal, self.reader.thousands)

    def _converted(self, values: Values) -> np.ndarray:
        """A column of texts as numbers; NaN where a text is none."""
        found = [0.0 if text in self.reader.as_zero else self._number(text) for text in values.words]
        return np.array(found, float)[values.entries]

    def _diagnose(
        self, numbers: Sequence[int], drops: Mapping[int, Sequence[str]], cause: object
    ) -> DatasetError:
        """Find the line of the file that led to the error `cause`."""
        bad: dict[int, tuple[int, str, int]] = {}
        with self._rows() as rows:
            for line, row in rows.cells():
                if any(row[column].strip() in listed for column, listed in drops.items()):
                    continue
                for column in numbers:
                    if row[column] not in self.reader.as_zero and self._number(row[column]) is None:
                        first_line, cell, count = bad.get(column, (line, row[column], 0))
                        bad[column] = (first_line, cell, count + 1)
        if not bad:
            return self._problem(
                "the table cannot be read", found=cause, fix="check 'sep', 'quotechar' and 'encoding'"
            )
        column, (line, cell, count) = min(bad.items(), key=lambda item: item[1][0])
        look, fix = _lookalike(cell)
        return self._problem(
            "a feature has cells that are not finite numbers",
            column=self.names[column],
            expected="a number in every row",
            found=f"{cell!r} in line {line}, {count:,} such cells in all"
            + (f"; it looks like {look}" if look else ""),
            fix=(f"{fix}, or " if fix else "")
            + "leave the column out of 'features', or list the value under 'drop_rows'",
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


def _arff_head(lines: Iterable[str]) -> tuple[int, list[str]]:
    """Lines of an ARFF file up to and including ``@data``, and the names of its columns; a ValueError without them."""
    names: list[str] = []
    for count, line in enumerate(lines, 1):
        if found := _ATTRIBUTE.match(line):
            names.append(next(name for name in found.groups() if name is not None))
        elif _DATA.match(line):
            if not names:
                raise ValueError("no line with @attribute before @data")
            return count, names
    raise ValueError("no line with @data")


def _lookalike(cell: str) -> tuple[str, str]:
    """Describe a cell that is not a number, and say what to do; both are empty if it looks like nothing known."""
    for pattern, look, fix in _LOOKALIKES:
        if found := re.fullmatch(pattern, cell.strip()):
            return look.format(*found.groups()), fix.format(*found.groups())
    return "", ""
