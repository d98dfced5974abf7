"""Files as data frames: delimited text, JSON, workbooks, Parquet, and files of statistics programs."""

from __future__ import annotations

import bz2
import csv
import glob
import gzip
import io
import json
import lzma
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd

from fairclust.group_encoding import describe_merged, one_spelling, value_text
from fairclust.messages import UserError, count, nearest, shortened
from fairclust.tables.cells import WORDS, as_number, by_any_sign, is_unknown, measured

MISSING_TEXTS = ("", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None")
"""Cells of a table that hold one of these texts are missing."""

CODE = re.compile(r"0\d+|\d{16,}")
"""Digits that are codes. As numbers, '007' would become '7', and long ones would be rounded."""

_OPENERS: dict[str, Callable[..., IO[Any]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_DELIMITERS = {"\\t": "\t", "tab": "\t"}
_SIGNS = ",;\t|"
# Lines above the header that begin with one of these are skipped. Excel writes the last one.
_COMMENT_SIGNS, _MOST_COMMENTS = ("#", "%", "//", "sep="), 1000
# The row with the names of the columns is looked for among so many rows at the top.
_HEAD_ROWS = 30
# In fewer rows than this, a row of words is a row of data.
_FEW_ROWS = 5
# The columns of codes of a file are found in so many rows, and its decimal point in so many.
_ROWS_AHEAD, _ROWS_OF_DECIMALS = 2000, 500
# Older pandas rounds the last digit of some numbers unless it is told otherwise.
_IS_EXACT = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
_EXACT: dict[str, Any] = {} if _IS_EXACT else {"float_precision": "round_trip"}
_ATTRIBUTE = re.compile(r"""\s*@attribute\s+('[^']*'|"[^"]*"|\S+)\s""", re.IGNORECASE)


class TableError(UserError):
    """A table cannot be used; the message names the file, column or cell and says what to do."""


class Format(NamedTuple):
    """What is known of a file before it is read. The rest is found."""

    delimiter: str | None = None  # by default, the sign that occurs most often in the line of the names
    decimal: str | None = None  # by default, the one that more cells show; never a comma between commas
    encoding: str = "utf-8"
    sheet: str | None = None  # of a workbook
    header_row: int | None = None  # the row or line of the names, from 1
    header: bool = True  # whether a row has the names of the columns
    labels: Sequence[str] = ()  # the names of the columns of a table without a header
    names: Collection[str] = ()  # columns that are expected: the row with one of these names is the header
    quote: str = '"'


class Opened(NamedTuple):
    """A file whose columns are known."""

    names: list[str]  # of all columns, as they are written
    # The cells, with the positions of columns as names. Arguments: some columns, in which no text stands for a missing
    # cell, or by default all; and those that are not converted.
    read: Callable[..., pd.DataFrame]
    notes: list[str]  # on how the file is read
    delimiter: str | None = None  # of a text
    decimal: str = "."


def read_table(
    path: str | Path,
    *,
    values: Collection[str] = (),
    texts: Collection[str] = (),
    ids: Collection[str] = (),
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str = "utf-8",
    sheet: str | None = None,
    header_row: int | None = None,
) -> pd.DataFrame:
    """Read the rows of `table_files`. TableError if they cannot be read, or are no table.

    Columns of `texts` are text even if they look like numbers, and `ids` stay as they are written. The row with one of
    these names, or one of `values`, is the header. For the other options, see `Format`. The attributes "delimiter",
    "decimal", "notes" (on how the file was read) and "spellings" (on its cells) are set.
    """
    sign = None if delimiter is None else _DELIMITERS.get(delimiter, delimiter)
    for option, given in (("--decimal", decimal), ("--delimiter", sign)):
        if given is not None and (len(given) != 1 or given in '"\r\n' or not given.isascii()):
            raise TableError(f"{option}: {shortened(repr(given))} is not one ASCII character")
    form = Format(sign, decimal, encoding, sheet, header_row, names={*values, *texts, *ids})
    files = table_files(path)
    notes: list[str] = []
    frames: list[pd.DataFrame] = []
    for file in files:
        opened = open_table(file, form)
        names = column_names(opened.names, file)
        frame = opened.read(texts=[i for i, name in enumerate(names) if name in texts or name in ids])
        if frame.empty:
            raise TableError(f"{file} has a header and no rows")
        frames.append(frame.set_axis(names, axis=1))
        check_same_columns(names, file, frames[0].columns, files[0])
        notes += opened.notes
        form = form._replace(delimiter=opened.delimiter, decimal=opened.decimal)
    frame = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]
    if total := _total(frame):
        frame = frame.iloc[:-1].infer_objects()
        notes.append(total)
    spellings = clean(frame, ids=ids)
    frame.attrs.update(
        delimiter=form.delimiter, decimal=form.decimal, notes=[*dict.fromkeys(notes)], spellings=spellings
    )
    return frame


def table_files(path: str | Path) -> list[Path]:
    """The files of a table, sorted: one, or those in a folder, or those that match a pattern."""
    path = Path(path)
    if str(path) == "-" or path.is_file():
        return [path]
    if not (path.is_dir() or glob.has_magic(str(path))):
        raise TableError(f"there is no file {path}")
    from fairclust.chunks.sources import ChunkError, parquet_files

    try:
        return parquet_files(path)
    except ChunkError as error:
        hint = f". For other files, name a pattern such as '{path}/*.csv'" if path.is_dir() else ""
        raise TableError(f"{error}{hint}") from None


def _total(frame: pd.DataFrame) -> str:
    """A note if the last row has sums of the others, which a word says that occurs nowhere else in its column."""
    for name, cell in frame.iloc[-1].items():
        is_word = isinstance(cell, str) and cell.strip(" :").lower() in WORDS["totals"]
        if is_word and len(frame) > 1 and not (frame[name].iloc[:-1] == cell).any():
            return f"the last row is left out, because {cell!r} in {shortened(str(name))} says that it has totals"
    return ""


def clean(frame: pd.DataFrame, *, ids: Collection[str] = ()) -> list[str]:
    """Give the values of all columns of text but `ids` one spelling, in place; returns notes on merged ones."""
    notes: list[str] = []
    for i, name in enumerate(frame.columns):
        cells = frame.iloc[:, i]
        if name in ids or cells.dtype.kind != "O" or is_nested(cells):
            continue
        codes, found = pd.factorize(cells)
        found = np.asarray(found, dtype=object)
        try:
            plain = [one_spelling(value) if isinstance(value, str) else value for value in found]
        except ValueError as error:
            raise TableError(f"column {name!r} has {error}. Fix: correct it") from None
        if any(isinstance(value, str) for value in plain):
            plain = [value_text(value) for value in plain]
        # A label of a code, or another category that a file states, is a value even if it is 'None'.
        missing = () if isinstance(cells.dtype, pd.CategoricalDtype) else MISSING_TEXTS
        words = np.array([*(np.nan if value in missing else value for value in plain), np.nan], object)
        there = pd.notna(words[:-1])
        notes += [f"{name}: {text}" for text in describe_merged(found[there], words[:-1][there])]
        frame.isetitem(i, pd.Series(words[codes], frame.index).infer_objects())
    return notes


def is_nested(cells: pd.Series) -> bool:
    """Whether a cell holds a list or a record."""
    return cells.dtype == object and any(isinstance(cell, (list, tuple, dict, np.ndarray)) for cell in cells)


def open_table(path: Path, form: Format) -> Opened:
    """Open a file of any format, which the end of its name tells."""
    reader = _READERS.get(_suffix(path))
    if form.sheet is not None and reader is not _read_workbook:
        raise TableError(f"--sheet: {path} is no workbook, so it has no sheets. Fix: leave the option out")
    if reader is None:
        return _open_text(path, form)
    with _plain_errors(path, form):
        frame, notes = reader(path, form)
    # An index with a name becomes a column, and one without a name, which counts the rows, is dropped.
    frame = frame.reset_index(drop=frame.index.names == [None])
    names = [str(name) for name in frame.columns]
    frame.columns = pd.RangeIndex(len(names))
    return Opened(
        names, lambda columns=None, texts=(): frame if columns is None else frame[sorted(columns)], notes
    )


@contextmanager
def _plain_errors(path: Path, form: Format) -> Iterator[None]:
    """Errors of packages as TableError. For damaged files they raise errors of many types."""
    try:
        yield
    except TableError:
        raise
    except UnicodeError:
        raise TableError(
            f"{path} is no {form.encoding} text; try --encoding cp1252, or that of its language or program, such as "
            "cp1250 or utf-16"
        ) from None
    except ImportError as error:
        package = str(error).partition("'")[2].partition("'")[0] or error.name or "pyarrow"
        raise TableError(f"{path} needs the package {package}: pip install 'fairclust[files]'") from None
    except Exception as error:
        what = " ".join(str(error).split()) or type(error).__name__
        raise TableError(f"{path} cannot be read as a table: {shortened(what, 300)}") from None


def column_names(header: Iterable[str], path: Path) -> list[str]:
    """Names of the columns in one spelling. Two columns of one name are an error."""
    places: dict[str, int] = {}
    for place, text in enumerate(header, start=1):
        name = one_spelling(text) or f"Unnamed: {place - 1}"
        if name in places:
            raise TableError(
                f"{path} has the column {shortened(repr(name))} twice, as columns {places[name]:,} and {place:,}. Fix: "
                "rename one of them"
            )
        places[name] = place
    return list(places)


def check_same_columns(names: Collection[str], file: Path, of_first: Collection[str], first: Path) -> None:
    """TableError if two files of a table have different columns."""
    for odd in sorted({*names} ^ {*of_first}):
        owner, other = (file, first) if odd in names else (first, file)
        raise TableError(f"{owner} has the column {shortened(repr(odd))}, but {other} does not have it")


def _suffix(path: Path) -> str:
    """The end of a name that tells the format, without that of a compression."""
    ends = [end.lower() for end in path.suffixes]
    return "".join(ends[-2:-1] if ends and ends[-1] in _OPENERS else ends[-1:])


def _opener(path: Path) -> Callable[[], IO[Any]]:
    """A function that opens a file, or standard input, as bytes, decompressed, as often as it is called."""
    if str(path) == "-":
        content = sys.stdin.buffer.read()
        return lambda: io.BytesIO(content)
    opener = _OPENERS.get(path.suffix.lower(), open)
    return partial(opener, path, "rb")


def _lines(path: Path, file: IO[Any], form: Format) -> Iterator[str]:
    """The lines of a text, without a byte order mark. Line breaks in quotes stay as they are."""
    for number, line in enumerate(_text(file, form), start=1):
        if "\0" in line:
            raise TableError(
                f"{path}, line {number:,} has a NUL character. Fix: remove it; or if the file is text of another "
                "encoding, try --encoding utf-16"
            )
        yield line


def _text(file: IO[Any], form: Format) -> io.TextIOWrapper:
    is_usual = form.encoding.lower().replace("_", "-") in ("utf-8", "utf8")
    return io.TextIOWrapper(file, "utf-8-sig" if is_usual else form.encoding, newline="")


def _open_text(path: Path, form: Format) -> Opened:
    """Check all rows of a delimited text, which pandas reads later.

    pandas fills rows that are too short and cuts cells at a NUL character, both without a word. Here they are errors.
    """
    opener, head, above = _opener(path), list[str](), 0
    with _plain_errors(path, form), opener() as file:
        if _suffix(path) == ".arff":
            above, labels = _arff_head(_lines(path, file, form), path)
            form = form._replace(delimiter=",", quote="'", header=False, labels=labels)
        else:
            head = [*islice(_lines(path, file, form), _MOST_COMMENTS + _HEAD_ROWS)]
            above = _comments_above(head, form)
    sign = form.delimiter or _likely_delimiter(head[above : above + _HEAD_ROWS])
    form = form._replace(delimiter=sign)
    dialect: dict[str, Any] = {"quotechar": form.quote, "skipinitialspace": sign != " "}
    width, ahead = 0, list[list[str]]()
    with _plain_errors(path, form), opener() as file:
        cut = csv.reader(
            islice(_lines(path, file, form), above, None), delimiter=sign, strict=True, **dialect
        )
        rows = _rows(path, cut, above)
        if form.header and form.header_row is None:
            top = [*islice(rows, _HEAD_ROWS)]
            place, _ = _header_place([row for _, row in top], form.names, least=3)
            above = top[place][0] - 1 if place else above
            rows = chain(top[place:], rows)
        for line, row in rows:
            width = width or len(row)
            if len(row) != width:
                raise TableError(
                    f"{path}, line {line:,} has {len(row):,} cells, but the first row has {width:,}. Fix: correct the "
                    f"line, or give every column a name; is {sign!r} the right --delimiter?"
                )
            if len(ahead) <= _ROWS_AHEAD:
                ahead.append([cell.strip() for cell in row])
    if not ahead:
        raise TableError(f"{path} is empty")
    skipped = [line.strip() for line in head[:above] if line.strip() and not line.startswith("sep=")]
    names, n_below, notes = _heading(ahead, form, path, above, skipped)
    del ahead[: form.header + n_below]
    if not ahead:
        raise TableError(f"{path} has a header and no rows")
    decimal = form.decimal or "."
    if form.decimal is None and sign != ",":
        cells = [cell for row in ahead[:_ROWS_OF_DECIMALS] for cell in row if "," in cell or "." in cell]
        by_comma, by_point = (sum(measured(cell, of) is not None for cell in cells) for of in ",.")
        if by_comma > by_point:
            decimal = ","
            notes.append(
                "the comma is the decimal point, because more cells show one than a point; --decimal states it"
            )

    def read(columns: Collection[int] | None = None, texts: Collection[int] = ()) -> pd.DataFrame:
        as_text = {*texts}
        if columns is None:
            as_text |= {
                i
                for i, cells in enumerate(zip(*ahead, strict=True))
                if any(map(CODE.fullmatch, cells))
                or (form.decimal is None and _have_thousands(cells, decimal))
            }
        with _plain_errors(path, form), opener() as file:
            text = _text(file, form)
            for _ in islice(text, above):
                pass
            return pd.read_csv(
                text,
                sep=sign,
                header=n_below if form.header else None,
                names=range(width),
                usecols=None if columns is None else sorted(columns),
                dtype=dict.fromkeys(as_text, str),
                decimal=decimal,
                na_values={i: MISSING_TEXTS for i in range(width) if columns is None and i not in texts},
                keep_default_na=False,
                low_memory=columns is not None,  # only some columns, which saves memory
                **_EXACT,
                **dialect,
            )  # fmt: skip

    return Opened(names, read, notes, sign, decimal)


def _have_thousands(cells: Sequence[str], decimal: str) -> bool:
    """Whether whole numbers stand beside numbers with the decimal point, which has always three digits behind it.

    Then it separates thousands, as in 950 and 1.050, and pandas would read 1.05.
    """
    signed = [cell for cell in cells if decimal in cell]
    if not signed or not any(cell.isdecimal() for cell in cells):
        return False
    return all(re.fullmatch(rf"-?[1-9]\d{{0,2}}{re.escape(decimal)}\d{{3}}", cell) for cell in signed)


def _rows(path: Path, rows: Any, above: int) -> Iterator[tuple[int, list[str]]]:
    """The rows of a text that are not empty, each with the number of its last line."""
    line = above
    try:
        for row in rows:
            line = above + rows.line_num
            if len(row) > 1 or "".join(row).strip():
                yield line, row
    except csv.Error as error:
        raise TableError(
            f"{path}, line {line + 1:,} cannot be cut into cells: {error}. Fix: close every quote, and write a quote "
            "inside a quoted cell as two"
        ) from None


def _comments_above(head: list[str], form: Format) -> int:
    """The number of comments, empty lines and Excel's 'sep=;' at the top, or of the lines above a stated header."""
    if form.header_row is not None or not form.header:
        return (form.header_row or 1) - 1
    comments = (not line.strip() or line.lower().startswith(_COMMENT_SIGNS) for line in head)
    return next((i for i, is_comment in enumerate(comments) if not is_comment), len(head))


def _likely_delimiter(lines: Sequence[str]) -> str:
    """The sign that is as often in most lines as in others; and if several are, the most frequent one."""
    plain = [re.sub('"[^"]*"', "", line).strip("\r\n") for line in lines]

    def fits(sign: str) -> tuple[int, int]:
        times = Counter(line.count(sign) for line in plain if sign in line)
        return max(((n_lines, n_signs) for n_signs, n_lines in times.items()), default=(0, 0))

    return max(_SIGNS, key=fits)


def _header_place(rows: Sequence[Sequence[str]], names: Collection[str], least: int = 1) -> tuple[int, bool]:
    """The place of the row with the names of the columns, and whether it has a name that is expected.

    If no row above the data has one, the names are in the first row that is nearly as full as the fullest rows. Rows
    above it must be titles, with one cell or only one that is not empty. If the fullest rows have less than `least`
    cells, it is the first row of all.
    """
    filled, n_full = [sum(bool(cell.strip()) for cell in row) for row in rows], 0
    for place, row in enumerate(rows):
        if not {one_spelling(cell) for cell in row}.isdisjoint(names):
            return place, True
        # Below rows of data, a cell with an expected name is a value.
        is_full = filled[place] >= 0.6 * max(filled) > 1
        n_full += is_full
        if n_full > 2 or (is_full and any(as_number(cell.replace(",", ".")) is not None for cell in row)):
            break
    full = sorted(filled)[-2:][:1]  # a single row may have cells too many
    if not full or full[0] < least:
        return 0, False
    place = next(place for place, n in enumerate(filled) if n >= 0.6 * full[0])
    are_titles = all(
        n < 2 or len(row) == len(rows[place]) for n, row in zip(filled[:place], rows, strict=False)
    )
    return (place if are_titles else 0), False


def _rows_of_words(rows: Sequence[Sequence[str]]) -> list[str]:
    """A note for each row below the names of the columns that describes them: questions, units, or names of imports.

    None of its cells is a number or occurs again in its column, and one stands above a column of numbers.
    """
    notes: list[str] = []
    columns = [*zip(*rows, strict=True)]
    while len(notes) < len(rows) - _FEW_ROWS:
        at = len(notes)
        words = {i: column[at] for i, column in enumerate(columns) if column[at].strip()}
        if not words or any(
            is_unknown(word) or by_any_sign(word) or columns[i].count(word) > 1 for i, word in words.items()
        ):
            break
        below = ([cell for cell in columns[i][at + 2 :] if not is_unknown(cell)] for i in words)
        if not any(cells and all(map(by_any_sign, cells)) for cells in below):
            break
        shown = shortened(repr(next(iter(words.values()))))
        notes.append(
            f"a row below the names of the columns is left out, because it describes them, as {shown} does"
        )
    return notes


def _heading(
    rows: list[list[str]], form: Format, path: Path, n_above: int, above: Sequence[str]
) -> tuple[list[str], int, list[str]]:
    """The names of the columns, the number of rows below them that are no data, and notes on rows above and below.

    `rows` begin with that of the names, if there is one; `above` has those of the `n_above` that are not empty.
    """
    if not form.header:
        if len(form.labels or rows[0]) != len(rows[0]):
            raise TableError(
                f"{path}: the names do not fit the rows; expected {count(len(rows[0]), 'name')}; found "
                f"{len(form.labels)}. Fix: name every column, or none and use numbers"
            )
        return [*form.labels] or [f"column {i}" for i in range(len(rows[0]))], 0, []
    if form.header_row is not None:
        return rows[0], 0, []
    _check_header(rows[0], rows[1:], path, form)
    below = _rows_of_words(rows[1:])
    if not above:
        return rows[0], len(below), below
    note = (
        f"the names of the columns are in row {n_above + 1:,}, below {count(len(above), 'other row')}, the first with "
        f"{shortened(repr(above[0]))}; --header-row states it"
    )
    return rows[0], len(below), [note, *below]


def _check_header(names: list[str], ahead: list[list[str]], path: Path, form: Format) -> None:
    """TableError if a row is no header: an expected name and another cell occur again below it, or this is a number."""

    def is_value(i: int) -> bool:
        return any(row[i] == names[i] and row != names for row in ahead)

    expected = {i for i, name in enumerate(names) if one_spelling(name) in form.names}
    others = {*range(len(names))} - expected
    if any(map(is_value, expected)) and any(as_number(names[i]) is not None or is_value(i) for i in others):
        shown = shortened(repr((form.delimiter or ",").join(names)))
        raise TableError(
            f"the first line of {path} looks like data: {shown}. Fix: write the names of the columns above it, or "
            "state their row by --header-row"
        )


def _arff_head(lines: Iterable[str], path: Path) -> tuple[int, list[str]]:
    """The number of lines above the rows of an ARFF file, which are text between commas, and the names in them."""
    names: list[str] = []
    for number, line in enumerate(lines, start=1):
        if found := _ATTRIBUTE.match(line):
            names.append(found[1].strip("'\""))
        elif names and line.strip().lower().startswith("@data"):
            return number, names
    raise TableError(
        f"{path} is no ARFF; found no line with @attribute before one with @data. Fix: check the file"
    )


_Read = tuple[pd.DataFrame, list[str]]


def _read_parquet(path: Path, form: Format) -> _Read:
    """Unlike `pandas.read_parquet`, this also reads a file with two columns of one name, which is reported then."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        return file.read().to_pandas(), []


def _read_statistics(path: Path, form: Format) -> _Read:
    """A file of Stata, SPSS or SAS, with the labels of the values instead of their codes.

    A column keeps its codes if some of its values have no label, as answers from 1 to 10 of which the ends have one.
    """
    import pyreadstat

    end = path.suffix.lower()[1:]
    end = {"zsav": "sav", "xpt": "xport"}.get(end, end)
    frame, about = getattr(pyreadstat, f"read_{end}")(str(path))
    labels = about.variable_value_labels if end in ("sav", "por", "dta") else {}
    labels = {name: of for name, of in labels.items() if frame[name].dropna().isin([*of]).all()}
    for name, of in labels.items():
        frame[name] = frame[name].map(of).astype("category")
    names = shortened(", ".join(labels), 200)
    return frame, [f"the labels of the codes are the values of {names}"] if names else []


def _read_json(path: Path, form: Format) -> _Read:
    """Records (a list, one in each line, or under a key), or columns."""
    with _opener(path)() as file:
        text = _text(file, form).read()
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        if "Extra data" not in str(error):
            raise
        content = [json.loads(line) for line in text.splitlines() if line.strip()]
    notes: list[str] = []
    if isinstance(content, dict):
        lists = [
            key for key, of in content.items() if isinstance(of, list) and of and isinstance(of[0], dict)
        ]
        if len(lists) != 1:
            return pd.DataFrame(content).reset_index(drop=True), notes
        content, notes = content[lists[0]], [f"the rows are those of the key {lists[0]!r}"]
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise TableError(
            f"{path} holds no table. Fix: write a list of records, as pandas' to_json(orient='records')"
        )
    return pd.json_normalize(content), notes


def _read_workbook(path: Path, form: Format) -> _Read:
    """Read the sheet that is asked for, has an expected name, or is the first that is not empty.

    The header is read as a row, because pandas would rename columns of one name.
    """
    as_written = {"header": None, "dtype": object, "keep_default_na": False, "na_values": [""]}
    sheets = pd.read_excel(path, sheet_name=None, engine="calamine", **as_written)
    filled = {name: cells.dropna(axis=1, how="all") for name, cells in sheets.items()}
    texts = {
        name: cells.fillna("").astype(str).to_numpy().tolist() for name, cells in filled.items() if cells.size
    }
    places = {name: _header_place(rows[:_HEAD_ROWS], form.names) for name, rows in texts.items()}
    if not places:
        raise TableError(f"{path} is empty")
    if form.sheet is not None and form.sheet not in places:
        raise TableError(
            f"--sheet: {path} has no sheet {form.sheet!r}; {nearest(form.sheet, map(str, sheets))}"
        )
    expected = [name for name, (_, is_expected) in places.items() if is_expected]
    name = form.sheet if form.sheet is not None else (expected or [*places])[0]
    first = 0 if not form.header else places[name][0] if form.header_row is None else form.header_row - 1
    rows = filled[name].iloc[first:].dropna(how="all")
    if rows.empty:
        raise TableError(
            f"--header-row: {path} has {len(texts[name]):,} rows, and no cell from row {first + 1:,} on. Fix: name "
            "another row, or another sheet"
        )
    above = [next(filter(None, row)) for row in texts[name][:first] if any(row)]
    top = [row for row in texts[name][first : first + _ROWS_AHEAD] if any(row)]
    names, n_below, notes = _heading(top, form, path, first, above)
    frame = rows.iloc[form.header + n_below :].reset_index(drop=True).infer_objects().set_axis(names, axis=1)
    if len(places) > 1 and form.sheet is None:
        others = shortened(", ".join(repr(of) for of in places if of != name), 200)
        notes.append(f"the sheet {name!r} is read, and not {others}; --sheet names another")
    return frame, notes


_READERS: dict[str, Callable[[Path, Format], _Read]] = {
    ".parquet": _read_parquet,
    **dict.fromkeys((".feather", ".arrow"), lambda path, form: (pd.read_feather(path), [])),
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), _read_workbook),
    **dict.fromkeys((".dta", ".sav", ".zsav", ".por", ".sas7bdat", ".xpt"), _read_statistics),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), _read_json),
}
