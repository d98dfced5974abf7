"""Delimited text, the format of users' tables and of the files of data sets: names, rows, and the lines of errors."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import itertools
import lzma
import math
import re
import sys
import warnings
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

import pandas as pd

from fairclust.group_encoding import one_spelling
from fairclust.messages import UserError, shortened

_OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# The first bytes of compressed data, for standard input, which has no name.
_PACKED = {b"\x1f\x8b": gzip.decompress, b"BZh": bz2.decompress, b"\xfd7zXZ\x00": lzma.decompress}
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)
_DELIMITERS = ",;\t|"
# The header is looked for in so many lines.
_LINES_AHEAD = 30
_COMMENT_SIGNS, _MOST_COMMENTS = ("#", "%", "//"), 1000
# Older pandas rounds the last digit of some numbers unless it is told otherwise.
_IS_EXACT = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
_EXACT: dict[str, Any] = {} if _IS_EXACT else {"float_precision": "round_trip"}
# What messages say about the options of the command.
OPTIONS = {
    "delimiter": "is {!r} the right --delimiter?",
    "encoding": "try --encoding {}",
    "header": "Write the names of the columns above it",
    "decimal": "say which one by --decimal , or --decimal .",
}
# The decimal point and the columns of codes of a file are found in so many rows.
_ROWS_AHEAD = 2000
_NEARLY_ALL = 0.95
_LEADING_ZERO = re.compile(r"0\d+")


class TableError(UserError):
    """A table cannot be used; the message names the file, column or cell and says what to do."""


class Format(NamedTuple):
    """How text is cut into rows and cells, and what messages say about these options."""

    # By default, the one of `, ; tab |` that occurs most often in the first line.
    delimiter: str | None = None
    # By default, what the first cells with a comma or a point show. Commas are never decimal points between commas.
    decimal: str | None = None
    usual_decimal: str = ""  # what the cells are taken for if they show neither; by default, that is an error
    encoding: str = "utf-8"
    quote: str = '"'
    header: bool = True  # whether the first row names the columns
    skip_blanks: bool = True  # whether blanks after a delimiter are dropped before quotes are read
    skip_lines: int = 0  # lines before the rows, in a text without a header
    header_row: int | None = None  # the line of the header, from 1; by default it is found
    sheet: str | None = None  # of a workbook
    names: Collection[str] = ()  # columns that the caller expects: a line with one of their names is a header
    all_names: Collection[str] = ()  # a line with all of these names is a header, even if they are numbers
    advice: Mapping[str, str] = OPTIONS


class Rows:
    """The rows of delimited text, which `pandas.read_csv` reads like a file.

    pandas fills rows that are too short and cuts cells at a NUL character, both without a word. Here they are errors.
    """

    def __init__(self, text: Iterable[str], shown: str, form: Format) -> None:
        self._shown, self._form, self._number, self._stated = shown, form, 0, ""
        self._lines = self._numbered(text)
        self.notes: list[str] = []  # on how the text is read
        lines = itertools.islice(self._lines, form.skip_lines, None)
        line = next(filter(str.strip, lines), None)
        if line is not None and form.header:
            line = self._header_line(line)
        if line is None:
            raise TableError(f"{shown} is empty")
        self._top = line.strip()
        self.delimiter = form.delimiter or self._stated or _likely_delimiter(line)
        self.header: list[str] = []
        if form.header:
            self.header = self._cells(line)
            decimal = form.decimal or "."
            nameless = self.notes and all(as_number(cell, decimal) is not None for cell in self.header)
            if (nameless or _is_data(self.header, decimal)) and not self._is_expected():
                raise TableError(
                    f"the first line of {shown} looks like data: {shortened(repr(self._top))}. {form.advice['header']}"
                )
        else:
            self._lines = chain([line], self._lines)
        self.first: list[str] = []
        self._rows = self._checked()
        ahead = list(itertools.islice(self._rows, 2))
        if not ahead:
            raise TableError(f"{shown} has a header and no rows")
        self._rows = chain(ahead, self._rows)
        self.decimal = form.decimal or "."
        if form.decimal is None and self.delimiter != ",":
            self._find_decimal()

    def _header_line(self, line: str) -> str | None:
        """The line with the names of the columns: below comments, titles and Excel's 'sep=;'."""
        if (row := self._form.header_row) is not None:
            while line is not None and self._number < row:
                line = next(self._lines, None)  # type: ignore[assignment]
            return line
        skipped: list[str] = []
        if line.lower().startswith("sep=") and len(line.strip()) == 5:
            self._stated, line = line.strip()[4], next(filter(str.strip, self._lines), "")
        while line.startswith(_COMMENT_SIGNS) and len(skipped) < _MOST_COMMENTS:
            skipped.append(line)
            line = next(filter(str.strip, self._lines), "")
        if skipped and line:
            sign = self._form.delimiter or _likely_delimiter(line)
            own = [cell for cell in line.split(sign) if cell.strip()]
            last = skipped[-1].lstrip("#%/ ")
            # NumPy writes the names into the last comment. A line of data has numbers, and names have none.
            if any(as_number(cell) is not None for cell in own) and last.count(sign) == line.count(sign):
                self._lines = chain([line], self._lines)
                line = last
                skipped.pop()
        if not skipped and line and not self._stated:
            line, skipped = self._below_title(line)
        if skipped:
            shown = shortened(repr(skipped[0].strip()))
            lines = "line is" if len(skipped) == 1 else "lines are"
            self.notes.append(
                f"{len(skipped):,} {lines} skipped before the names of the columns, the first is {shown}"
            )
        return line or None

    def _below_title(self, line: str) -> tuple[str, list[str]]:
        """The header, and the lines of a title before it: they have one filled cell, and later ones at least three."""
        ahead = [line, *itertools.islice(self._lines, _LINES_AHEAD)]
        signs = self._form.delimiter or _DELIMITERS
        widest = max(ahead, key=lambda text: max(text.count(sign) for sign in signs))
        sign = max(signs, key=widest.count)
        filled = [sum(bool(cell.strip(' "\r\n')) for cell in text.split(sign)) for text in ahead]
        first = next((i for i, n in enumerate(filled) if n > 1), 0)
        usual = sorted(n for n in filled if n)[len([n for n in filled if n]) // 2]
        is_title = first and usual > 2 and filled[first] >= 0.6 * usual and '"' not in "".join(ahead[:first])
        if not is_title:
            first = 0
        self._lines, self._number = (
            self._again(ahead[first + 1 :], self._lines),
            self._number - len(ahead) + first + 1,
        )
        return ahead[first], [text for text in ahead[:first] if text.strip()]

    def _again(self, ahead: list[str], rest: Iterator[str]) -> Iterator[str]:
        """Lines that were read ahead, counted again, and those after them."""
        for line in ahead:
            self._number += 1
            yield line
        yield from rest

    def read(self, size: int) -> str:
        """The next rows, which have at least this number of characters unless the file ends."""
        found, length = [], 0
        for _, row in self._rows:
            found.append(row)
            length += len(row)
            if length >= size:
                break
        return "".join(found)

    def __iter__(self) -> Iterator[str]:
        return (row for _, row in self._rows)

    def frame(
        self,
        dtypes: Mapping[int, type],
        missing: Mapping[int, list[str]],
        columns: Collection[int] | None = None,
    ) -> Any:
        """The rows as a data frame with the positions of the columns as names.

        Columns without a type get one from their cells. If only some `columns` are read, which saves memory, a column
        that does not hold numbers alone may have cells of several types.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)
            return pd.read_csv(
                self,
                sep=self.delimiter,
                header=None,
                names=range(len(self.first)),
                usecols=None if columns is None else sorted(columns),
                dtype=dict(dtypes),
                decimal=self.decimal,
                quotechar=self._form.quote,
                skipinitialspace=self._form.skip_blanks and self.delimiter != " ",
                na_values=dict(missing),
                keep_default_na=False,
                low_memory=columns is not None,
                **_EXACT,
            )

    def shown(self) -> str:
        """The header and the first row, for messages."""
        header, first = (shortened(repr(self.delimiter.join(cells))) for cells in (self.header, self.first))
        return f"the header is {header}, the first row is {first}"

    def differ(self) -> TableError:
        """The error for rows that have not as many cells as the header."""
        return TableError(
            f"{self._shown}: the header has {len(self.header):,} names, but the first row has {len(self.first):,} "
            f"cells: {self.shown()}. Fix: give every column a name{self._doubt()}"
        )

    def _is_expected(self) -> bool:
        """Whether the first line has the names that the caller expects."""
        names, form = {one_spelling(cell) for cell in self.header}, self._form
        # A single name that is a number does not tell a header from data.
        has_one = any(as_number(name) is None for name in names.intersection(form.names))
        return has_one or (bool(form.all_names) and names.issuperset(form.all_names))

    def _find_decimal(self) -> None:
        """Set the decimal point to what the first rows show, with a note if it is a comma.

        '12,5' and '1.234,5' show a comma, and '12.5' and '1,234.5' a point. '1,234' and '1.234' show neither.
        """
        shown: dict[str, str] = {}
        for i, cells in enumerate(self._ahead()):
            name = self.header[i] if i < len(self.header) else f"column {i}"
            for sign, cell in _decimal_signs(cells).items():
                shown.setdefault(sign, f"{shortened(repr(cell))} in column {shortened(repr(name))}")
        comma, point, either = (shown.get(sign) for sign in (",", ".", ""))
        if comma and point:
            raise TableError(
                f"{self._shown} has {comma} and {point}, so its decimal point is unclear. Fix: "
                f"{self._form.advice['decimal']}"
            )
        if comma or point:
            self.decimal = "," if comma else "."
        elif either and self.delimiter == ";":
            self.decimal = self._form.usual_decimal
            if not self.decimal:
                raise TableError(
                    f"{self._shown} has {either}, which can be a whole number or a fraction. Fix: "
                    f"{self._form.advice['decimal']}"
                )
        if comma:
            self.notes.append(f"the comma is the decimal point, because the file has {comma}")

    def codes(self) -> set[int]:
        """The columns that have numbers with leading zeros, such as 007, which would become other texts as numbers."""
        return {i for i, cells in enumerate(self._ahead()) if any(map(_LEADING_ZERO.fullmatch, cells))}

    def _ahead(self) -> Iterator[list[str]]:
        """The cells of the first rows, without blanks around them, column by column."""
        ahead = list(itertools.islice(self._rows, _ROWS_AHEAD))
        self._rows = chain(ahead, self._rows)
        for cells in zip(*(self._cells(row) for _, row in ahead), strict=True):
            yield [cell.strip() for cell in cells]

    def _numbered(self, text: Iterable[str]) -> Iterator[str]:
        for self._number, line in enumerate(text, start=1):
            if "\0" in line:
                raise TableError(
                    f"{self._shown}, line {self._number:,} has a NUL character. Fix: remove it; or if the file is text "
                    f"of another encoding, {self._form.advice['encoding'].format('utf-16')}, for example"
                )
            yield line.removeprefix("\ufeff") if self._number == 1 else line

    def _checked(self) -> Iterator[tuple[int, str]]:
        """Line and text of every row. Rows with quotes may have several lines, and are written anew for pandas."""
        blank, quote = " \t\r\n".replace(self.delimiter, ""), self._form.quote
        for line in self._lines:
            if not line.strip(blank):
                continue
            number, row, n_cells = self._number, line, line.count(self.delimiter) + 1
            if quote in line or not self.first:
                cells = self._cells(line)
                self.first, n_cells = self.first or cells, len(cells)
                if quote in line:
                    quoted = (quote + cell.replace(quote, 2 * quote) + quote for cell in cells)
                    row = self.delimiter.join(quoted) + "\n"
                if cells is self.first and self.header and n_cells - len(self.header) not in (0, 1):
                    raise self.differ()
            if n_cells != len(self.first):
                raise TableError(
                    f"{self._shown}, line {number:,} has {n_cells:,} cells, but the first row has {len(self.first):,}. "
                    f"Fix: correct the line{self._doubt()}"
                )
            yield number, row

    def _doubt(self) -> str:
        """The question whether the delimiter is right, if the first line has another sign that can be one."""
        others = set(_DELIMITERS) - {self.delimiter}
        return f"; {self._form.advice['delimiter'].format(self.delimiter)}" if others & set(self._top) else ""

    def _cells(self, line: str) -> list[str]:
        """The cells of the row that begins with this line. If a quote is open at its end, the next lines are read."""
        skip_blanks = self._form.skip_blanks and self.delimiter != " "
        if self._form.quote not in line:
            cells = line.rstrip("\r\n").split(self.delimiter)
            return [cell.lstrip(" ") for cell in cells] if skip_blanks else cells
        number = self._number
        reader = csv.reader(
            chain([line], self._lines),
            delimiter=self.delimiter,
            quotechar=self._form.quote,
            skipinitialspace=skip_blanks,
            strict=True,
        )
        try:
            return next(reader)
        except csv.Error as error:
            raise TableError(
                f"{self._shown}, line {number:,} cannot be cut into cells: {error}. Fix: close every quote, and write "
                "a quote inside a quoted cell as two"
            ) from None


@contextmanager
def open_rows(path: Path, form: Format, shown: str = "") -> Iterator[Rows]:
    """The rows of a file, or of standard input ("-"). If it is damaged or of another encoding, it is a TableError."""
    shown = shown or str(path)
    try:
        with open_file(path) as file:
            # With this value of `newline`, line breaks in quotes stay as they are.
            yield Rows(io.TextIOWrapper(file, form.encoding, newline=""), shown, form)
    except TableError:
        raise
    except UnicodeError:
        advice = _other_encoding(path, form.advice["encoding"])
        raise TableError(f"{shown} is no {form.encoding} text; {advice}") from None
    except (ValueError, LookupError, *_DAMAGED) as error:
        raise unreadable(shown, error) from None


def unreadable(shown: str | Path, error: Exception) -> TableError:
    """The error for a file that a package cannot read."""
    what = " ".join(str(error).split()) or type(error).__name__
    return TableError(f"{shown} cannot be read as a table: {shortened(what, 300)}")


def open_file(path: Path) -> IO[Any]:
    """A file, or standard input, as bytes, decompressed."""
    if str(path) == "-":
        data = sys.stdin.buffer.read()
        return io.BytesIO(next((of(data) for begin, of in _PACKED.items() if data.startswith(begin)), data))
    return _OPENERS.get(path.suffix.lower(), open)(path, "rb")  # type: ignore[operator]


@cache
def number_pattern(thousands: str | None, decimal: str) -> re.Pattern[str]:
    """The pattern of a number, also of one with `thousands` between groups of three digits if that is given."""
    point = re.escape(decimal)
    plain = rf"[+-]?([0-9]+({point}[0-9]*)?|{point}[0-9]+)([eE][+-]?[0-9]+)?"
    if thousands is not None:
        groups = rf"[+-]?[0-9]{{1,3}}({re.escape(thousands)}[0-9]{{3}})+({point}[0-9]*)?"
        plain = f"(?:{groups})|(?:{plain})"
    return re.compile(plain)


def as_number(cell: str, decimal: str = ".", thousands: str | None = None) -> float | None:
    """The finite number that a cell is; None if it is none."""
    cell = cell.strip()
    if not number_pattern(thousands, decimal).fullmatch(cell):
        return None
    number = float(cell.replace(thousands or "", "").replace(decimal, "."))
    return number if math.isfinite(number) else None


def _is_data(row: list[str], decimal: str) -> bool:
    """Tell whether a row cannot be a header, although some columns have numbers as names.

    Years, identifiers and wavelengths occur as names of columns. Negative numbers, repeated numbers, and fractions that
    do not increase are taken as data.
    """
    numbers = [number for cell in row if (number := as_number(cell, decimal)) is not None]
    increasing = len(numbers) > 2 and all(a < b for a, b in itertools.pairwise(numbers))
    fractions = any(number != int(number) for number in numbers)
    return min(numbers, default=0) < 0 or len(set(numbers)) < len(numbers) or (fractions and not increasing)


def _decimal_signs(cells: list[str]) -> dict[str, str]:
    """The decimal points that a column shows, each with a cell that shows it; the empty sign if it can be either."""
    filled = [cell for cell in cells if any(sign.isdigit() for sign in cell)]
    if 2 * len(filled) < sum(map(bool, cells)):
        return {}
    signed = [cell for cell in filled if "," in cell or "." in cell]
    found = {}
    for sign, other in ((",", "."), (".", ",")):
        numbers = [cell for cell in filled if number_pattern(other, sign).fullmatch(cell)]
        if len(numbers) > _NEARLY_ALL * len(filled):
            # No number begins with a zero before the thousands.
            is_other = number_pattern(sign, other).fullmatch
            showing = (cell for cell in numbers if cell.lstrip("+-").startswith("0") or not is_other(cell))
            found[sign] = next((cell for cell in showing if sign in cell), "")
    shows = {sign: cell for sign, cell in found.items() if cell}
    return shows or ({"": signed[0]} if signed and len(found) == 2 else {})


def _other_encoding(path: Path, advice: str) -> str:
    """What to do about bytes that are no text of the encoding."""
    start = b""
    if str(path) != "-":
        with suppress(*_DAMAGED), open_file(path) as file:
            start = file.read(1 << 16)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return advice.format("utf-16")
    return "it seems to be a binary file" if b"\0" in start else advice.format("latin-1")


def _likely_delimiter(first: str) -> str:
    unquoted = re.sub('"[^"]*"', "", first.partition("\n")[0]).strip("\r")
    likely = max(_DELIMITERS, key=unquoted.count)
    return " " if likely not in unquoted and " " in unquoted else likely
