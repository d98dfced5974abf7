"""Delimited text: its lines, the names of its columns, and its rows, which pandas cuts into cells and converts."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import sys
import warnings
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import pandas as pd

from fairclust.group_encoding import one_spelling
from fairclust.messages import UserError, shortened
from fairclust.tables.cells import as_number, number_pattern

OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# The first bytes of compressed data, for standard input, which has no name.
_PACKED = {b"\x1f\x8b": gzip.decompress, b"BZh": bz2.decompress, b"\xfd7zXZ\x00": lzma.decompress}
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)
# The row with the names of the columns is looked for among so many rows at the top.
HEAD_ROWS = 30
_COMMENT_SIGNS, _MOST_COMMENTS = ("#", "%", "//"), 1000
# Older pandas rounds the last digit of some numbers unless it is told otherwise.
_IS_EXACT = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
_EXACT: dict[str, Any] = {} if _IS_EXACT else {"float_precision": "round_trip"}
# The decimal point and the columns of codes of a file are found in so many rows.
_ROWS_AHEAD = 2000
_NEARLY_ALL = 0.95
LEADING_ZERO = re.compile(r"0\d+")


class TableError(UserError):
    """A table cannot be used; the message names the file, column or cell and says what to do."""


class Format(NamedTuple):
    """What is known of a file before it is read. The rest is found."""

    delimiter: str | None = None  # by default, the one of `signs` that occurs most often in the first line
    # By default, what the first cells with a comma or a point show. Commas are never decimal points between commas.
    decimal: str | None = None
    usual_decimal: str = ""  # what the cells are taken for if they show neither; by default, that is an error
    encoding: str = "utf-8"
    sheet: str | None = None  # of a workbook
    header_row: int | None = None  # the row or line of the names, from 1
    header: bool = True  # whether a row has the names of the columns
    labels: Sequence[str] = ()  # the names of the columns of a table without a header
    names: Collection[str] = ()  # columns that are expected: the row with one of these names is the header
    all_names: Collection[str] = ()  # a row with all of these names is a header, even if they are numbers
    signs: str = ",;\t| "
    quote: str = '"'


Line = tuple[int, str]  # with its number


class Text:
    """The rows of delimited text, which `pandas.read_csv` reads like a file.

    pandas fills rows that are too short and cuts cells at a NUL character, both without a word. Here they are errors.
    """

    def __init__(self, lines: Iterator[Line], shown: str, form: Format) -> None:
        self._lines, self._shown, self._form = lines, shown, form
        self.notes: list[str] = []  # on how the text is read
        self.delimiter = form.delimiter or ""
        number, line = self._below_comments() if form.header else next(self._filled(), (0, ""))
        if not line:
            raise TableError(f"{shown} is empty")
        self.delimiter, self._top = self.delimiter or _likely_delimiter(line, form.signs), line.strip()
        self.header: list[str] = []
        if form.header:
            self.header = self._cells(line, number)
            self._check_header()
        else:
            self._lines = chain([(number, line)], self._lines)
        self.first: list[str] = []
        rows = self._checked()
        ahead = list(islice(rows, _ROWS_AHEAD))
        if not ahead:
            raise TableError(f"{shown} has a header and no rows")
        self._rows = chain(ahead, rows)
        lines_of = (io.StringIO(row, newline="") for row in ahead)
        cut = csv.reader(chain.from_iterable(lines_of), **self._dialect)
        self._ahead = [[cell.strip() for cell in cells] for cells in zip(*cut, strict=True)]
        self.decimal = form.decimal or "."
        if form.decimal is None and self.delimiter != ",":
            self._find_decimal()

    def _filled(self) -> Iterator[Line]:
        return (numbered for numbered in self._lines if numbered[1].strip())

    def _below_comments(self) -> Line:
        """The line with the names of the columns: below comments, titles and Excel's 'sep=;'."""
        if (row := self._form.header_row) is not None:
            return next((numbered for numbered in self._lines if numbered[0] == row), (0, ""))
        skipped: list[Line] = []
        number, line = next(self._filled(), (0, ""))
        if line.lower().startswith("sep=") and len(line.strip()) == 5:
            self.delimiter = self.delimiter or line.strip()[4]
            number, line = next(self._filled(), (0, ""))
        while line.startswith(_COMMENT_SIGNS) and len(skipped) < _MOST_COMMENTS:
            skipped.append((number, line))
            number, line = next(self._filled(), (0, ""))
        ahead = [(number, line), *islice(self._lines, HEAD_ROWS)]
        signs = self.delimiter or self._form.signs.strip(" ")
        widest = max((text for _, text in ahead), key=lambda text: max(map(text.count, signs)))
        sign = max(signs, key=widest.count)
        rows = [
            next(csv.reader([text], delimiter=sign), []) if '"' in text else text.split(sign)
            for _, text in ahead
        ]
        last = skipped[-1][1].lstrip("#%/ ") if skipped else ""
        # NumPy writes the names into the last comment. A line of data has numbers, and names have none.
        if (
            last
            and any(as_number(cell) is not None for cell in rows[0])
            and last.count(sign) == line.count(sign)
        ):
            self._lines = chain(ahead, self._lines)
            number, line = skipped.pop()[0], last
        else:
            place = header_place(rows, self._form.names, least=3)[0]
            self._lines = chain(ahead[place + 1 :], self._lines)
            skipped += [(at, text) for at, text in ahead[:place] if text.strip()]
            number, line = ahead[place]
        if skipped and line:
            self.notes.append(header_note(number, len(skipped), skipped[0][1].strip()))
        return number, line

    def _check_header(self) -> None:
        names, form = {one_spelling(cell) for cell in self.header}, self._form
        # A single name that is a number does not tell a header from data.
        expected = any(as_number(name) is None for name in names.intersection(form.names))
        expected |= bool(form.all_names) and names.issuperset(form.all_names)
        numbers = [as_number(cell, form.decimal or ".") for cell in self.header]
        nameless = bool(self.notes) and None not in numbers
        if (nameless or _are_data([of for of in numbers if of is not None])) and not expected:
            raise TableError(
                f"the first line of {self._shown} looks like data: {shortened(repr(self._top))}. Fix: write the names "
                "of the columns above it"
            )

    def read(self, size: int) -> str:
        """The next rows, which have at least this number of characters unless the file ends."""
        found, length = [], 0
        for row in self._rows:
            found.append(row)
            length += len(row)
            if length >= size:
                break
        return "".join(found)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def frame(
        self, texts: Collection[int], missing: Mapping[int, Sequence[str]], columns: Collection[int] | None
    ) -> pd.DataFrame:
        """The rows as a data frame with the positions of the columns as names.

        Columns other than `texts` get a type from their cells. If only some `columns` are read, which saves memory, a
        column that does not hold numbers alone may have cells of several types.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)
            return pd.read_csv(
                self,
                sep=self.delimiter,
                header=None,
                names=range(len(self.first)),
                usecols=None if columns is None else sorted(columns),
                dtype=dict.fromkeys(texts, str),
                decimal=self.decimal,
                quotechar=self._form.quote,
                skipinitialspace=self.delimiter != " ",
                na_values=dict(missing),
                keep_default_na=False,
                low_memory=columns is not None,
                **_EXACT,
            )

    def differ(self) -> TableError:
        """The error for rows that have not as many cells as the header."""
        return TableError(
            f"{self._shown}: the header has {len(self.header):,} names, but the first row has {len(self.first):,} "
            f"cells: {self.begin()}. Fix: give every column a name{self._doubt()}"
        )

    def begin(self) -> str:
        """The header and the first row, for messages."""
        header, first = (shortened(repr(self.delimiter.join(cells))) for cells in (self.header, self.first))
        return f"the header is {header}, the first row is {first}"

    def _find_decimal(self) -> None:
        """Set the decimal point to what the first rows show, with a note if it is a comma.

        '12,5' and '1.234,5' show a comma, and '12.5' and '1,234.5' a point. '1,234' and '1.234' show neither.
        """
        shown: dict[str, str] = {}
        for i, cells in enumerate(self._ahead):
            name = self.header[i] if i < len(self.header) else f"column {i}"
            for sign, cell in _decimal_signs(cells).items():
                shown.setdefault(sign, f"{shortened(repr(cell))} in column {shortened(repr(name))}")
        comma, point, either = (shown.get(sign) for sign in (",", ".", ""))
        unclear = f"{comma} and {point}, so its decimal point is unclear" if comma and point else ""
        if not comma and not point and either and self.delimiter == ";" and not self._form.usual_decimal:
            unclear = f"{either}, which can be a whole number or a fraction"
        if unclear:
            raise TableError(f"{self._shown} has {unclear}. Fix: say which one by --decimal , or --decimal .")
        if comma:
            self.decimal = ","
            self.notes.append(f"the comma is the decimal point, because the file has {comma}")
        elif either and not point and self.delimiter == ";":
            self.decimal = self._form.usual_decimal

    def codes(self) -> set[int]:
        """The columns that have numbers with leading zeros, such as 007, which would become other texts as numbers."""
        return {i for i, cells in enumerate(self._ahead) if any(map(LEADING_ZERO.fullmatch, cells))}

    def _checked(self) -> Iterator[str]:
        """The rows. Those with quotes may have several lines, and are written anew for pandas."""
        blank, quote = " \t\r\n".replace(self.delimiter, ""), self._form.quote
        for number, line in self._lines:
            if not line.strip(blank):
                continue
            row, n_cells = line, line.count(self.delimiter) + 1
            if quote in line or not self.first:
                cells = self._cells(line, number)
                n_cells = len(cells)
                if quote in line:
                    quoted = (quote + cell.replace(quote, 2 * quote) + quote for cell in cells)
                    row = self.delimiter.join(quoted) + "\n"
                if not self.first:
                    self.first = cells
                    if self.header and n_cells - len(self.header) not in (0, 1):
                        raise self.differ()
            if n_cells != len(self.first):
                raise TableError(
                    f"{self._shown}, line {number:,} has {n_cells:,} cells, but the first row has {len(self.first):,}. "
                    f"Fix: correct the line{self._doubt()}"
                )
            yield row

    def _doubt(self) -> str:
        """The question whether the delimiter is right, if the first line has another sign that can be one."""
        others = {*",;\t|"} - {self.delimiter}
        return f"; is {self.delimiter!r} the right --delimiter?" if others & {*self._top} else ""

    @cached_property
    def _dialect(self) -> dict[str, Any]:
        skip = self.delimiter != " "
        return {
            "delimiter": self.delimiter,
            "quotechar": self._form.quote,
            "skipinitialspace": skip,
            "strict": True,
        }

    def _cells(self, line: str, number: int) -> list[str]:
        """The cells of the row that begins with this line. If a quote is open at its end, the next lines are read."""
        if self._form.quote not in line:
            cells = line.rstrip("\r\n").split(self.delimiter)
            return [cell.lstrip(" ") for cell in cells] if self.delimiter != " " else cells
        try:
            return next(csv.reader(chain([line], (text for _, text in self._lines)), **self._dialect))
        except csv.Error as error:
            raise TableError(
                f"{self._shown}, line {number:,} cannot be cut into cells: {error}. Fix: close every quote, and write "
                "a quote inside a quoted cell as two"
            ) from None


@contextmanager
def open_lines(path: Path, encoding: str) -> Iterator[Iterator[Line]]:
    """The lines of a file, or of standard input ("-"). If it is damaged or of another encoding, it is a TableError."""
    try:
        with open_file(path) as file:
            # With this value of `newline`, line breaks in quotes stay as they are.
            yield _numbered(io.TextIOWrapper(file, encoding, newline=""), path)
    except TableError:
        raise
    except UnicodeError:
        raise TableError(f"{path} is no {encoding} text; {_other_encoding(path)}") from None
    except (ValueError, LookupError, csv.Error, *_DAMAGED) as error:
        raise unreadable(path, error) from None


def _numbered(text: Iterable[str], path: Path) -> Iterator[Line]:
    for number, line in enumerate(text, start=1):
        if "\0" in line:
            raise TableError(
                f"{path}, line {number:,} has a NUL character. Fix: remove it; or if the file is text of another "
                "encoding, try --encoding utf-16, for example"
            )
        yield number, line.removeprefix("\ufeff") if number == 1 else line


def unreadable(path: Path, error: Exception) -> TableError:
    """The error for a file that a package cannot read."""
    what = " ".join(str(error).split()) or type(error).__name__
    return TableError(f"{path} cannot be read as a table: {shortened(what, 300)}")


def open_file(path: Path) -> IO[Any]:
    """A file, or standard input, as bytes, decompressed."""
    if str(path) == "-":
        data = sys.stdin.buffer.read()
        return io.BytesIO(next((of(data) for begin, of in _PACKED.items() if data.startswith(begin)), data))
    return OPENERS.get(path.suffix.lower(), open)(path, "rb")  # type: ignore[operator]


def header_place(rows: Sequence[Sequence[str]], names: Collection[str], least: int = 1) -> tuple[int, bool]:
    """The place of the row with the names, and whether it has one that is expected.

    Without one, it is the first row that is nearly as full as the fullest ones, if these have at least `least` cells,
    and all rows above it have one cell, or the others empty.
    """
    for place, row in enumerate(rows):
        if not {one_spelling(cell) for cell in row}.isdisjoint(names):
            return place, True
    filled = [sum(bool(cell.strip()) for cell in row) for row in rows]
    full = sorted(filled)[-2:][:1]  # a single row may have cells too many
    if not full or full[0] < least:
        return 0, False
    place = next(place for place, n in enumerate(filled) if n >= 0.6 * full[0])
    are_titles = all(
        n < 2 or len(row) == len(rows[place]) for n, row in zip(filled[:place], rows, strict=False)
    )
    return (place if are_titles else 0), False


def header_note(row: int, n_above: int, first: str) -> str:
    """A note on rows above the names of the columns."""
    above = f"{n_above:,} other row{'s' if n_above > 1 else ''}"
    return (
        f"the names of the columns are in row {row:,}, below {above}, the first with {shortened(repr(first))}; "
        "--header-row states it"
    )


def _are_data(numbers: Sequence[float]) -> bool:
    """Tell whether a row with these numbers cannot be a header, although some columns have numbers as names.

    Years, identifiers and wavelengths occur as names of columns. Negative numbers, repeated numbers, and fractions that
    do not increase are taken as data.
    """
    increasing = len(numbers) > 2 and all(a < b for a, b in pairwise(numbers))
    fractions = any(number != int(number) for number in numbers)
    return min(numbers, default=0) < 0 or len({*numbers}) < len(numbers) or (fractions and not increasing)


def _decimal_signs(cells: Sequence[str]) -> dict[str, str]:
    """The decimal points that a column shows, each with a cell that shows it; the empty sign if it can be either."""
    filled = [cell for cell in cells if any(sign.isdigit() for sign in cell)]
    signed = [cell for cell in filled if "," in cell or "." in cell]
    found, patterns = {}, {",": number_pattern(".", ","), ".": number_pattern(",", ".")}
    for sign, other in ((",", "."), (".", ",")):
        numbers = [cell for cell in filled if patterns[sign].fullmatch(cell)]
        if 2 * len(filled) >= sum(map(bool, cells)) and len(numbers) > _NEARLY_ALL * len(filled):
            showing = (cell for cell in numbers if sign in cell and not patterns[other].fullmatch(cell))
            found[sign] = next(showing, "")
    shows = {sign: cell for sign, cell in found.items() if cell}
    return shows or ({"": signed[0]} if signed and len(found) == 2 else {})


def _other_encoding(path: Path) -> str:
    """What to do about bytes that are no text of the encoding."""
    start = b""
    if str(path) != "-":
        with suppress(*_DAMAGED), open_file(path) as file:
            start = file.read(1 << 16)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "try --encoding utf-16"
    return "it seems to be a binary file" if b"\0" in start else "try --encoding latin-1"


def _likely_delimiter(line: str, signs: str) -> str:
    unquoted = re.sub('"[^"]*"', "", line).strip("\r\n")
    likely = max(signs.strip(" "), key=unquoted.count)
    return " " if likely not in unquoted and " " in unquoted and " " in signs else likely
