"""Files as data frames: delimited text, JSON, workbooks, Parquet, and files of statistics programs.

Libraries read the files that state the types of their cells. Files of texts (delimited text, ARFF, and the sheets of
workbooks, which are turned into CSV) go one way: every row is checked, and pandas reads the columns.
"""

from __future__ import annotations

import bz2
import codecs
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
from itertools import chain, compress, islice, product
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd

from fairclust.group_encoding import describe_merged, one_spelling, value_text
from fairclust.messages import UserError, count, nearest, shortened
from fairclust.tables.cells import WORDS, by_any_sign, is_step, is_unknown, measured, pattern

_OPENERS: dict[str, Callable[..., IO[Any]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
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
_TRUTHS = {"true": "True", "TRUE": "True", "false": "False", "FALSE": "False"}  # as pandas reads them
# Older pandas rounds the last digit of some numbers unless it is told otherwise.
_IS_EXACT = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
_EXACT: dict[str, Any] = {} if _IS_EXACT else {"float_precision": "round_trip"}


class TableError(UserError):
    """A table cannot be used; the message names the file, column or cell and says what to do."""


class Format(NamedTuple):
    """What is known of a file before it is read. The rest is found."""

    delimiter: str | None = None  # by default, the sign that cuts most lines at the top into as many cells
    decimal: str | None = None  # by default, the one that more cells show; never a comma between commas
    encoding: str = "utf-8"
    sheet: str | None = None  # of a workbook
    header_row: int | None = None  # the row or line of the names, from 1
    header: bool = True  # whether a row has the names of the columns
    labels: Sequence[str] = ()  # the names of the columns of a table without a header
    names: Collection[str] = ()  # columns that are expected in the sheet of a workbook
    quote: str = '"'
    usual: str = "."  # the decimal point if as many cells show either
    voters: Collection[str] | None = None  # the columns whose cells show the decimal point, by default all


class Opened(NamedTuple):
    """A file whose columns are known."""

    names: list[str]  # of all columns, as they are written
    # The cells, with the positions of columns as names. Arguments: some columns, or by default all; those that are
    # text, in which no text stands for a missing cell; and the decimal point, if the file does not show its own.
    read: Callable[..., pd.DataFrame]
    notes: list[str]  # on how the file is read
    options: Collection[str] = ()  # of `Format`, those that mean something for files of this kind only
    commas: int = 0  # how many more cells show a decimal comma than a point


def read_table(
    path: str | Path,
    *,
    values: Collection[str] = (),
    texts: Collection[str] = (),
    ids: Collection[str] = (),
    **options: Any,
) -> pd.DataFrame:
    """Read the rows of `table_files`. TableError if they cannot be read, or are no table.

    Columns of `texts` are text even if they look like numbers, and `ids` stay as they are written. A sheet with one of
    these names, or one of `values`, is preferred. The other options, such as `sheet`, are those of `Format`. The
    attributes "decimal", "notes" (on how the files were read) and "spellings" (on their cells) are set.
    """
    form = Format(**options, names={*values, *texts, *ids})
    form = form._replace(delimiter=_DELIMITERS.get(form.delimiter or "", form.delimiter))
    for option, given in (("--decimal", form.decimal), ("--delimiter", form.delimiter)):
        if given is not None and (len(given) != 1 or given in '"\r\n' or not given.isascii()):
            raise TableError(f"{option}: {shortened(repr(given))} is not one ASCII character")
    # A sensitive column may also name the rows.
    files, ids = table_files(path), {*ids} - {*values}
    opened = [open_table(file, form) for file in files]
    for option in sorted({"sheet", "delimiter", "header_row"}.difference(*(of.options for of in opened))):
        if getattr(form, option) is not None:
            raise TableError(
                f"--{option.replace('_', '-')}: means nothing for {files[0]}. Fix: leave the option out"
            )
    # The cells of all files show the decimal point together.
    commas = sum(of.commas for of in opened)
    decimal = form.decimal or ("," if commas > 0 else "." if commas else form.usual)

    def parts(of_text: Collection[str]) -> list[pd.DataFrame]:
        frames: list[pd.DataFrame] = []
        for file, of in zip(files, opened, strict=True):
            names = column_names(of.names, file)
            frame = of.read(texts=[i for i, name in enumerate(names) if name in of_text], decimal=decimal)
            frames.append(frame.set_axis(names, axis=1))
            check_same_columns(names, file, frames[0].columns, files[0])
        return [frame for frame in frames if not frame.empty]

    if not (frames := parts({*texts, *ids})):
        raise TableError(f"{files[0]} has a header and no rows")
    # As in a single file, text in one file, or truth values in one and numbers in another, make a column text in all.
    infer = pd.api.types.infer_dtype
    kinds = [{(name, is_text(of), infer(of) == "boolean") for name, of in part.items()} for part in frames]
    if mixed := {name for name, *_ in kinds[0].union(*kinds) - kinds[0].intersection(*kinds)}:
        frames = parts({*texts, *ids, *mixed})
        for part, name in product(frames, mixed):
            if not is_text(part[name]):
                part[name] = part[name].map(partial(_cell_text, decimal=decimal), na_action="ignore")
    cuts = [part.iloc[:-1] for part in frames]
    totals = [_total(part, cuts) for part in frames]
    whole = [cut.infer_objects() if of else part for cut, part, of in zip(cuts, frames, totals, strict=True)]
    frame = pd.concat(whole, ignore_index=True) if len(whole) > 1 else whole[0]
    notes = [*chain(*(of.notes for of in opened)), *filter(None, totals)]
    if decimal not in (form.decimal, form.usual):
        point = "comma" if decimal == "," else "point"
        notes.append(f"the {point} is the decimal point, because more cells show one; --decimal states it")
    spellings = clean(frame, ids=ids)
    frame.attrs.update(decimal=decimal, notes=[*dict.fromkeys(notes)], spellings=spellings)
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
        of_folder = f"{error}. For other files, name a pattern such as '{path}/*.csv'"
        raise TableError(of_folder if path.is_dir() else f"there is no file that matches {path}") from None


def _total(frame: pd.DataFrame, others: Sequence[pd.DataFrame]) -> str:
    """A note if a word says that the last row has totals. No row of `others` may have it. Otherwise empty."""
    for name, cell in frame.iloc[-1].items() if len(frame) > 1 else ():
        # The word of 'Total (n = 60)' is 'total'.
        word = re.sub(r"[ :]*(\(.*\))?$", "", cell.strip().lower()) if isinstance(cell, str) else ""
        if word in WORDS["totals"] and not any((rows[name] == cell).any() for rows in others):
            where = f"{cell!r} in {shortened(str(name))}"
            return f"the last row is left out, because {where} says that it has totals"
    return ""


def clean(frame: pd.DataFrame, *, ids: Collection[str] = ()) -> list[str]:
    """Give the values of all columns of text but `ids` one spelling, in place; returns notes on merged ones."""
    notes: list[str] = []
    for name in frame.columns:
        cells = frame[name]
        if name in ids or cells.dtype.kind != "O" or is_nested(cells):
            continue
        codes, found = pd.factorize(cells)
        found = np.asarray(found, dtype=object)
        plain: Iterable[Any] = found
        if any(isinstance(value, str) for value in found):
            try:
                plain = [_TRUTHS.get(word, word) for word in map(one_spelling, map(value_text, found))]
            except ValueError as error:
                raise TableError(f"column {name!r} has {error}. Fix: correct it") from None
        # A label of a code, or another category that a file states, is a value even if it is 'None'.
        missing = () if isinstance(cells.dtype, pd.CategoricalDtype) else WORDS["missing"]
        words = np.array([*(np.nan if value in missing else value for value in plain), np.nan], object)
        there = pd.notna(words[:-1])
        notes += [f"{name}: {text}" for text in describe_merged(found[there], words[:-1][there])]
        column = pd.Series(words[codes], frame.index).infer_objects()
        if getattr(cells.dtype, "ordered", False) and all(isinstance(of, str) for of in cells.cat.categories):
            steps = dict.fromkeys(map(one_spelling, cells.cat.categories))
            column = column.astype(pd.CategoricalDtype([*steps], ordered=True))
        frame[name] = column
    return notes


def is_text(cells: pd.Series) -> bool:
    """Whether the cells of a column that are not missing are neither numbers nor truth values."""
    return not pd.api.types.is_numeric_dtype(cells.dropna().infer_objects())


def is_nested(cells: pd.Series) -> bool:
    """Whether a cell holds a list or a record."""
    return cells.dtype == object and any(isinstance(cell, (list, tuple, dict, np.ndarray)) for cell in cells)


def column_names(header: Iterable[str], path: Path) -> list[str]:
    """Names of the columns in one spelling. Two columns of one name are an error."""
    places: dict[str, int] = {}
    for place, text in enumerate(header, start=1):
        name = one_spelling(" ".join(text.splitlines())) or f"Unnamed: {place - 1}"
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


def open_table(path: Path, form: Format) -> Opened:
    """Open a file of any format, which the end of its name tells."""
    end = _suffix(path)
    with _plain_errors(path, form):
        if end in _WORKBOOKS and _is_workbook(path):
            sheet, notes, has_decimals = _sheet_as_csv(path, form)
            # In a sheet without decimals, '1.050' beside '950' is text, as in a CSV.
            decimal = form.decimal or (form.usual if has_decimals else None)
            form = form._replace(delimiter="\t", decimal=decimal, encoding="utf-8")
            opened = _open_text(path, form, partial(io.BytesIO, sheet))
            return opened._replace(notes=[*opened.notes, *notes], options=("sheet", "header_row"))
        if end not in _READERS:
            return _open_text(path, form, _opener(path))
        frame, notes = _READERS[end](path, form)
    from fairclust.chunks.sources import is_index

    # An index with a name becomes a column, and one without a name, which counts the rows, is dropped.
    named = [level for level, name in enumerate(frame.index.names) if name not in (None, *frame)]
    frame = frame.reset_index(named).reset_index(drop=True)
    frame = frame.drop(columns=[name for name in frame.columns if is_index(name)])
    names = [str(name) for name in frame.columns]
    frame.columns = pd.RangeIndex(len(names))
    return Opened(
        names, lambda columns=None, *_, **__: frame if columns is None else frame[sorted(columns)], notes
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
            f"{path} is no {form.encoding} text. Fix: try --encoding cp1252, or that of its language or program, such "
            "as cp1250 or utf-16; unpack an archive, or give another kind of file the end of its format"
        ) from None
    except ImportError as error:
        package = str(error).partition("'")[2].partition("'")[0] or error.name or "pyarrow"
        raise TableError(f"{path} needs the package {package}: pip install 'fairclust[files]'") from None
    except Exception as error:
        what = " ".join(str(error).split()) or type(error).__name__
        raise TableError(f"{path} cannot be read as a table: {shortened(what, 300)}") from None


def _suffix(path: Path) -> str:
    """The end of a name that tells the format, without that of a compression."""
    is_compressed = path.suffix.lower() in _OPENERS
    return (Path(path.stem) if is_compressed else path).suffix.lower()


def _opener(path: Path) -> Callable[[], IO[Any]]:
    """A function that opens a file, or standard input, as bytes, decompressed, as often as it is called."""
    if str(path) == "-":
        return partial(io.BytesIO, sys.stdin.buffer.read())
    return partial(_OPENERS.get(path.suffix.lower(), open), path, "rb")


def _is_workbook(path: Path) -> bool:
    """Whether a file has the first bytes of a workbook. Many programs write text under the name of one."""
    with _opener(path)() as file:
        return file.read(4) in (b"PK\3\4", b"\xd0\xcf\x11\xe0", b"")


def _text(file: IO[Any], form: Format) -> io.TextIOWrapper:
    is_usual = codecs.lookup(form.encoding).name == "utf-8"
    buffered: Any = file if hasattr(file, "peek") else io.BufferedReader(file)
    usual = "utf-16" if buffered.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    return io.TextIOWrapper(buffered, usual if is_usual else form.encoding, newline="")


def _open_text(path: Path, form: Format, opener: Callable[[], IO[Any]]) -> Opened:
    """Check all rows of a delimited text, which pandas reads later.

    pandas fills rows that are too short and cuts cells at a NUL character, both without a word. Here they are errors.
    """
    with opener() as file:
        if _suffix(path) == ".arff":
            head = list[str]()
            above, labels = _arff_head(_text(file, form), path)
            form = form._replace(delimiter=",", quote="'", header=False, labels=labels)
        else:
            head = [*islice(_text(file, form), _MOST_COMMENTS + _HEAD_ROWS)]
            above = _comments_above(head, form)
    if pattern("markup").match("".join(head[above:])):
        raise TableError(
            f"{path} is HTML or XML. Fix: open it in a spreadsheet, and save it as .xlsx or .csv"
        )
    sign = form.delimiter or _likely_delimiter(head[above : above + _HEAD_ROWS])
    dialect: dict[str, Any] = {"quotechar": form.quote, "skipinitialspace": sign != " "}
    ahead, footers, repeats = list[list[str]](), list[str](), list[range]()
    width = n_rows = last = 0
    with opener() as file:
        rows = _rows(path, islice(_text(file, form), above, None), above, delimiter=sign, **dialect)
        if form.header and form.header_row is None:
            top = [*islice(rows, _HEAD_ROWS)]
            place = _header_place([row for _, row in top]) if top else 0
            above = top[place][0] - 1 if place else above
            rows = chain(top[place:], rows)
        for line, row in _above_footers(rows, footers):
            lines, last = range(last + 1, line + 1), line
            if ahead and form.header and _repeats(row, ahead[0]):
                repeats.append(lines)
                continue
            width, n_rows = width or len(row), n_rows + 1
            if len(row) != width:
                raise TableError(
                    f"{path}, line {line:,} has {len(row):,} cells, but the first row has {width:,}. Fix: correct the "
                    f"line, or give every column a name; is {sign!r} the right --delimiter?"
                )
            if len(ahead) <= _ROWS_AHEAD:
                ahead.append([cell.strip() for cell in row])
    if not ahead:
        raise TableError(f"{path} is empty" + (f" from row {above + 1:,} on" if above else ""))
    names, n_below, notes = _heading(ahead, form, path, head[:above])
    n_rows -= form.header + n_below
    if words := [*filter(None, footers)]:
        notes.append(
            f"{count(len(words), 'row')} at the end left out, because only the first cell has words, as "
            f"{shortened(repr(words[0]))}"
        )
    if repeats:
        rows_of = count(len(repeats), "row")
        notes.append(f"{rows_of} left out, with the names of the columns again, or of dashes")
    may_vote = [form.decimal is None and (form.voters is None or name in form.voters) for name in names]
    commas = more_commas(cell for row in ahead[:_ROWS_OF_DECIMALS] for cell in compress(row, may_vote))
    own = form.decimal
    # Between commas, a comma is no decimal point.
    if sign == ",":
        own, commas = own or ".", min(commas, -1)
    ahead_in = dict(enumerate(zip(*ahead, strict=True)))
    codes = {i for i, cells in ahead_in.items() if any(map(pattern("code").fullmatch, cells))}
    points = {*".,", form.usual}
    thousands = {of: {i for i, cells in ahead_in.items() if _have_thousands(cells, of)} for of in points}

    def read(columns: Any = None, texts: Collection[int] = (), decimal: str = ".") -> pd.DataFrame:
        decimal = own or decimal
        as_texts = codes if form.decimal else codes | thousands[decimal]
        with _plain_errors(path, form), opener() as file:
            text: Any = _text(file, form)
            for _ in islice(text, above):
                pass
            if repeats:
                skipped = {*chain(*repeats)}
                kept = (line for number, line in enumerate(text, above + 1) if number not in skipped)
                text = io.StringIO("".join(kept))
            return pd.read_csv(
                text,
                sep=sign,
                header=n_below if form.header else None,
                names=range(width),
                nrows=n_rows if footers else None,
                usecols=None if columns is None else sorted(columns),
                dtype=dict.fromkeys({*texts, *(as_texts if columns is None else ())}, str),
                decimal=decimal,
                na_values={i: WORDS["missing"] for i in range(width) if i not in texts},
                keep_default_na=False,
                low_memory=columns is not None,  # only some columns, which saves memory
                **_EXACT,
                **dialect,
            )  # fmt: skip

    return Opened(names, read, notes, ("delimiter", "header_row"), commas)


def _rows(path: Path, lines: Iterator[str], above: int, **dialect: Any) -> Iterator[tuple[int, list[str]]]:
    """The rows of a text that are not empty, each with the number of its last line; `above` lines are before them."""
    cut = csv.reader(lines, strict=True, **dialect)
    line = above
    try:
        for row in cut:
            line = above + cut.line_num
            text = "".join(row)
            if "\0" in text:
                raise TableError(
                    f"{path}, line {line:,} has a NUL character. Fix: remove it; or if the file is text of another "
                    "encoding, try --encoding utf-16"
                )
            if len(row) > 1 or text.strip():
                yield line, row
    except csv.Error as error:
        raise TableError(
            f"{path}, line {line + 1:,} cannot be cut into cells: {error}. Fix: close every quote, and write a quote "
            "inside a quoted cell as two"
        ) from None


def _above_footers(
    rows: Iterator[tuple[int, list[str]]], footers: list[str]
) -> Iterator[tuple[int, list[str]]]:
    """The rows without those at the end that are empty or have words in the first cell only; `footers` gets these."""
    held: list[tuple[int, list[str]]] = []
    width = 0
    for line, row in rows:
        width = width or len(row)
        is_alone = len(row) == 1 < width or (width > 2 and not any(map(str.strip, row[1:])))
        if (is_alone and " " in row[0].strip()) or not any(map(str.strip, row)):
            held.append((line, row))
            continue
        yield from held
        held.clear()
        yield line, row
    footers += [row[0].strip() for _, row in held]


def _repeats(row: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a row below the header is the header again, or has nothing but dashes."""
    # If files with byte order marks are joined, a mark stands before each header.
    cells = [cell.lstrip("\ufeff").strip() for cell in row]
    is_header = cells == [*names] and any(name[:1].isalpha() for name in names)
    filled = [*filter(None, cells)]
    return len(filled) > 1 and (is_header or all(re.fullmatch("[-=:]{3,}", cell) for cell in filled))


def _comments_above(head: list[str], form: Format) -> int:
    """The number of comments, empty lines and Excel's 'sep=;' at the top, or of the lines above a stated header."""
    if form.header_row is not None or not form.header:
        return (form.header_row or 1) - 1
    comments = (not line.strip() or line.lower().startswith(_COMMENT_SIGNS) for line in head)
    return next((i for i, is_comment in enumerate(comments) if not is_comment), len(head))


def _likely_delimiter(lines: Sequence[str]) -> str:
    """The sign that cuts most lines into as many cells; of several, the one that leaves most cells numbers."""
    plain = [re.sub('"[^"]*"', "", line).strip("\r\n") for line in lines]

    def fits(sign: str) -> tuple[float, ...]:
        times = Counter(line.count(sign) for line in plain if sign in line)
        cells = [cell for line in plain for cell in line.split(sign)] if times else []
        n_numbers = sum(by_any_sign(cell) is not None for cell in cells)
        # In sentences, a blank stands behind a sign.
        n_tight = sum(line.count(sign) - line.count(f"{sign} ") for line in plain)
        return max(times.values(), default=0), n_numbers / max(len(cells), 1), n_tight

    return max(_SIGNS, key=fits)


def _have_thousands(cells: Sequence[str], decimal: str) -> bool:
    """Whether whole numbers stand beside numbers with the decimal point, which has always three digits behind it.

    Then it separates thousands, as in 950 and 1.050, and pandas would read 1.05.
    """
    signed = [cell for cell in cells if decimal in cell]
    thousands = re.compile(rf"-?[1-9]\d{{0,2}}{re.escape(decimal)}\d{{3}}")
    return bool(signed) and any(map(str.isdecimal, cells)) and all(map(thousands.fullmatch, signed))


def more_commas(cells: Iterable[str]) -> int:
    """How many more cells are numbers with a decimal comma than with a decimal point."""
    is_date = pattern("date").fullmatch
    signed = [cell for cell in cells if re.search("[,.]", cell) and not is_date(cell)]
    by_comma, by_point = (sum(measured(cell, of) is not None for cell in signed) for of in ",.")
    return by_comma - by_point


def _header_place(rows: Sequence[Sequence[str]]) -> int:
    """The place of the row with the names of the columns: the first that is nearly as full as the fullest ones.

    The rows above it must be titles: as wide as it, or of a single cell above at least three. If a name occurs twice,
    the names of groups of columns stand above it.
    """
    filled = [sum(bool(cell.strip()) for cell in row) for row in rows]
    most = sorted(filled)[-2:][0]  # a single row may have cells too many
    place = next(place for place, n in enumerate(filled) if n >= 0.6 * most)
    are_titles = (
        len(row) == len(rows[place]) or n < 2 < most for row, n in zip(rows[:place], filled, strict=False)
    )
    names = [*filter(None, rows[place])]
    has_groups = place and len({*names}) < len(names) and not rows[place - 1][0] and filled[place - 1] > 1
    if has_groups and _describing([row for row in rows[place:] if len(row) == len(rows[place])]):
        place -= 1
    return place if all(are_titles) else 0


def _heading(
    rows: list[list[str]], form: Format, path: Path, above: Sequence[str]
) -> tuple[list[str], int, list[str]]:
    """The names of the columns, the number of rows below them that describe them, and notes on these and rows above.

    The names and what describes them are removed from `rows`; `above` has the lines before them.
    """
    width = len(rows[0])
    if not form.header:
        if len(form.labels or rows[0]) != width:
            raise TableError(
                f"{path}: the names do not fit the rows; expected {count(width, 'name')}; found {len(form.labels)}. "
                "Fix: name every column, or none and use numbers"
            )
        return [*form.labels] or [f"column {i}" for i in range(width)], 0, []
    names = rows.pop(0)
    if form.header_row is not None:
        return names, 0, []
    notes = []
    skipped = [line.strip(" ,;\t\r\n") for line in above if not line.startswith("sep=")]
    if skipped := [*filter(None, skipped)]:
        notes.append(
            f"the names of the columns are in row {len(above) + 1:,}, below {count(len(skipped), 'other row')}, the "
            f"first with {shortened(repr(skipped[0]))}; --header-row states it"
        )
    n_below = 0
    while describes := _describing(rows):
        below = rows.pop(0)
        if any(word and not name for name, word in zip(names, below, strict=True)):
            # A merged cell spans several columns, which have their own names below it.
            span, groups = "", [*names]
            for i, word in enumerate(below):
                span = names[i] or span
                is_spanned = groups.count(names[i]) > 1 or not (names[i] and "".join(names[i + 1 : i + 2]))
                names[i] = f"{span} {word}".strip() if word and is_spanned else names[i]
            joined = max((name for name, word in zip(names, below, strict=True) if word), key=len)
            notes.append(f"the names of the columns are in two rows, as in {shortened(repr(joined))}")
        else:
            notes.append(
                f"a row below the names of the columns is left out, because it describes them, as {describes} does"
            )
        n_below += 1
    return names, n_below, notes


def _describing(rows: Sequence[Sequence[str]]) -> str:
    """A cell of the first row if it has questions, units, or names of an import instead of data; else empty.

    None of its cells is a number or occurs again in its column, and one stands above a column of numbers.
    """
    if len(rows) <= _FEW_ROWS:
        return ""
    columns = [(word, below) for word, *below in zip(*rows, strict=True) if not is_unknown(word)]
    if any(by_any_sign(word) or word in below for word, below in columns):
        return ""
    # Another row of words may follow.
    numbers = ([cell for cell in below[1:] if not is_unknown(cell)] for _, below in columns)
    is_above_numbers = any(cells and all(map(by_any_sign, cells)) for cells in numbers)
    return shortened(repr(columns[0][0])) if is_above_numbers else ""


def _arff_head(lines: Iterable[str], path: Path) -> tuple[int, list[str]]:
    """The number of lines above the rows of an ARFF file, which are text between commas, and the names in them."""
    names: list[str] = []
    for number, line in enumerate(lines, start=1):
        if found := pattern("attribute").match(line):
            names.append(found[1].strip("'\""))
        elif names and line.strip().lower().startswith("@data"):
            return number, names
    raise TableError(
        f"{path} is no ARFF; found no line with @attribute before one with @data. Fix: check the file"
    )


def _sheet_as_csv(path: Path, form: Format) -> tuple[bytes, list[str], bool]:
    """The sheet that is asked for, has an expected name, or is the largest; and a note on others.

    Lines count the rows of the sheet, also those that are empty. The last result is whether a number has decimals.
    """
    from python_calamine import CalamineWorkbook, SheetVisibleEnum

    book = CalamineWorkbook.from_path(str(path))
    hidden = {of.name for of in book.sheets_metadata if of.visible != SheetVisibleEnum.Visible}
    cells, sheets = dict[str, list[list[Any]]](), dict[str, list[list[str]]]()
    for name in sorted(book.sheet_names, key=hidden.__contains__):
        cells[name] = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
        rows = [[_cell_text(cell, form.decimal or form.usual) for cell in row] for row in cells[name]]
        if any(map(any, rows)):
            sheets[name] = rows
    if not sheets:
        raise TableError(f"{path} is empty")
    if form.sheet is not None and form.sheet not in sheets:
        raise TableError(
            f"--sheet: {path} has no sheet {form.sheet!r}; {nearest(form.sheet, book.sheet_names)}"
        )
    places = {name: _header_place(rows[:_HEAD_ROWS]) for name, rows in sheets.items()}
    # Of every column of a sheet, whether a cell is filled.
    columns = {name: [*map(any, zip(*rows, strict=True))] for name, rows in sheets.items()}
    heads = {name: {*chain(*sheets[name][place : place + 2])} for name, place in places.items()}
    expected = (name for name, words in heads.items() if not words.isdisjoint(form.names))
    largest = max(sheets, key=lambda name: (name not in hidden, len(sheets[name]) * sum(columns[name])))
    name = form.sheet if form.sheet is not None else next(expected, largest)
    notes, rows = [], sheets[name]
    if len(sheets) > 1 and form.sheet is None:
        others = shortened(", ".join(repr(of) for of in sheets if of != name), 200)
        notes.append(f"the sheet {name!r} is read, and not {others}; --sheet names another")
    is_filled = False
    for (top, left), (bottom, right) in book.get_sheet_by_name(name).merged_cell_ranges or ():
        # A cell that spans rows of data states the value of all of them.
        if left == right < len(rows[0]) and places[name] < top < bottom < len(rows):
            is_filled = True
            for row in rows[top : bottom + 1]:
                row[left] = rows[top][left]
    if is_filled:
        notes.append(f"cells of the sheet {name!r} that span several rows count for each of these rows")
    has_decimals = False
    for i, column in enumerate(zip(*cells[name], strict=True)):
        has_typed = any(isinstance(cell, float) and cell % 1 for cell in column)
        has_decimals |= has_typed
        # A sheet stores numbers without a decimal sign, so the texts beside them may have a comma.
        if has_typed and form.decimal is None and more_commas(of for of in column if isinstance(of, str)) > 0:
            for row, cell in zip(rows[places[name] + 1 :], column[places[name] + 1 :], strict=True):
                if isinstance(cell, str) and measured(cell, ",") is not None:
                    row[i] = row[i].replace(".", "").replace(",", form.usual)
    text = io.StringIO()
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows(
        [*compress(row, columns[name])] if any(row) else [] for row in rows
    )
    return text.getvalue().encode(), notes, has_decimals


def _cell_text(cell: Any, decimal: str) -> str:
    """A cell of a sheet in one line, whose number has the decimal point of the texts beside it."""
    text = " ".join(value_text(cell).splitlines())
    return text.replace(".", decimal) if isinstance(cell, float) else text


_Read = tuple[pd.DataFrame, list[str]]


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
        steps = pd.Series([*of.values()], pd.to_numeric(pd.Index([*of]), errors="coerce")).sort_index()
        is_scale = about.variable_measure.get(name) == "ordinal" and steps.is_unique and len(steps) > 2
        # Letters have no order, and a code far from all others, such as 99, or a 9 for 'none' behind 4, is no step.
        codes = steps.index[steps.map(is_step)]
        gaps, unknown = np.diff(codes), steps[codes[1:]].map(is_unknown).to_numpy(bool)
        is_scale &= (
            3 * gaps.max(initial=0) <= 2 * (codes.max() - codes.min()) and not (gaps[unknown] > 1).any()
        )
        frame[name] = frame[name].map(of).astype(pd.CategoricalDtype(steps, True) if is_scale else "category")
    names = shortened(", ".join(labels), 200)
    return frame, [f"the labels of the codes are the values of {names}"] if names else []


def _read_json(path: Path, form: Format) -> _Read:
    """Records (a list, one in each line, or under a key), or columns."""
    with _opener(path)() as file:
        text = _text(file, form).read()
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise
        # As one list, so that an error names the line of the file.
        content = json.loads("[" + re.sub(r"\n(?=[^\S\n]*\S)", ",\n", text.strip()) + "]")
    kinds = {*map(type, content.values())} if isinstance(content, dict) else set()
    # JSON Lines with a single line are one record.
    if not isinstance(content, dict) or (list not in kinds and kinds - {dict}):
        return pd.json_normalize(content), []
    lists = [key for key, of in content.items() if isinstance(of, list) and of and isinstance(of[0], dict)]
    if len(lists) == 1:
        return pd.json_normalize(content[lists[0]]), [f"the rows are those of the key {lists[0]!r}"]
    return pd.DataFrame(content).reset_index(drop=True), []


_READERS: dict[str, Callable[[Path, Format], _Read]] = {
    ".parquet": lambda path, form: (pd.read_parquet(path), []),
    **dict.fromkeys((".feather", ".arrow"), lambda path, form: (pd.read_feather(path), [])),
    **dict.fromkeys((".dta", ".sav", ".zsav", ".por", ".sas7bdat", ".xpt"), _read_statistics),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), _read_json),
}
