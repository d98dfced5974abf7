"""Reading of tables in several file formats as data frames."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from fairclust.group_encoding import one_spelling
from fairclust.messages import count, nearest, shortened
from fairclust.tables.text import (
    HEAD_ROWS,
    OPENERS,
    Format,
    Line,
    TableError,
    Text,
    header_note,
    header_place,
    open_lines,
    unreadable,
)
from fairclust.tables.values import MISSING_TEXTS, is_nested, read_values

_DELIMITERS = {"\\t": "\t", "tab": "\t"}
_LONGEST_NAME = 1000
# Each column takes time, even in a table of few rows.
_MAX_COLUMNS = 20_000


class Choice(NamedTuple):
    """Which columns of a file are read, by their positions, and how."""

    texts: Collection[int]  # columns of text, whose cells are not converted
    columns: Collection[int] | None = None  # all by default; then columns with leading zeros are text, too
    missing: Sequence[str] = MISSING_TEXTS  # the cells of other columns that are missing


class Cells(NamedTuple):
    """The cells of a file."""

    names: list[str]  # of all columns of the file, as they are written
    frame: pd.DataFrame  # has the positions of the columns as names
    form: Format  # with what was found
    notes: list[str]  # on how the file was read


def read_table(
    path: str | Path,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    usual_decimal: str = "",
    encoding: str = "utf-8",
    values: Collection[str] = (),
    texts: Collection[str] = (),
    ids: Collection[str] = (),
    header: Collection[str] = (),
    sheet: str | None = None,
    header_row: int | None = None,
) -> pd.DataFrame:
    """Read the rows of `table_files`, see `_READERS`, or text, for whose options see `Format` and `clean`.

    `sheet` is the name of a sheet of a workbook, and `header_row` the number of the row or line with the names, from 1.
    The attributes "delimiter", "decimal", "notes" (on how the file was read) and "spellings" (on its cells) are set.
    """
    if decimal is not None and len(decimal) != 1:
        raise TableError(f"--decimal: {shortened(repr(decimal))} is not one character")
    sign = None if delimiter is None else _DELIMITERS.get(delimiter, delimiter)
    if sign is not None and (len(sign) != 1 or sign in '"\r\n' or not sign.isascii()):
        raise TableError(f"--delimiter: {shortened(repr(sign))} is not one ASCII character between cells")
    if header_row is not None and header_row < 1:
        raise TableError("--header-row: rows are counted from 1")
    expected = {*values, *ids}
    form = Format(sign, decimal, usual_decimal, encoding, sheet, header_row, names=expected, all_names=header)
    files = table_files(path)
    notes: list[str] = []
    frames: list[pd.DataFrame] = []
    for file in files:
        names, frame, form, more = read_file(
            file,
            form,
            lambda names: Choice({i for i, name in enumerate(names) if one_spelling(name) in expected}),
        )
        frame.columns = column_names(names, file)
        if frame.empty:
            raise TableError(f"{file} has a header and no rows")
        frames.append(frame)
        check_same_columns(frame.columns, file, frames[0].columns, files[0])
        notes += more
    frame = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]
    decimal, typed = form.decimal or ".", _suffix(files[0]) in _READERS
    try:
        spellings = clean(frame, values=values, texts=texts, ids=ids, typed=typed, decimal=decimal)
    except TableError as error:
        raise TableError(f"{path}: {error}") from None
    notes = list(dict.fromkeys(notes))
    frame.attrs.update(delimiter=form.delimiter, decimal=decimal, notes=notes, spellings=spellings)
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


def clean(
    frame: pd.DataFrame,
    *,
    values: Collection[str] = (),
    texts: Collection[str] = (),
    ids: Collection[str] = (),
    typed: bool = True,
    decimal: str = ".",
) -> list[str]:
    """Give the values of all columns of text one spelling, in place; returns notes on them.

    Cells of columns in `values` are names of groups or categories, see `read_values`; those also in `texts` are text
    even if they look like numbers, and `ids` stay as they are written. In a `typed` file, all texts are.
    """
    notes: list[str] = []
    for i, name in enumerate(frame.columns):
        cells = frame.iloc[:, i]
        kept, nested = name in values, is_nested(cells)
        if kept and nested:
            raise TableError(f"the cells of column {name!r} are lists, not single values")
        if pd.api.types.is_numeric_dtype(cells) or name in ids or nested:
            continue
        untyped = kept and not typed and name not in texts
        read, more = read_values(cells, untyped=untyped, named=kept, decimal=decimal)
        frame.isetitem(i, read)
        notes += more
    return notes


def read_file(path: Path, form: Format, choose: Callable[[list[str]], Choice]) -> Cells:
    """The cells of a file. `choose` gets the names of its columns, and says which are read."""
    reader = _READERS.get(_suffix(path))
    if form.sheet is not None and reader is not _read_workbook:
        raise TableError(f"--sheet: {path} is no workbook, so it has no sheets. Fix: leave the option out")
    try:
        if reader is None:
            return _read_text(path, form, choose)
        # An index with a name becomes a column. Rows are counted from 0 afterwards.
        frame, notes = reader(path, form)
        frame = frame.reset_index(drop=frame.index.names == [None])
        names = [str(name) for name in frame.columns]
        columns = choose(names).columns
        frame.columns = pd.RangeIndex(len(names))
        return Cells(names, frame if columns is None else frame[sorted(columns)], form, notes)
    except TableError:
        raise
    except ImportError as error:
        package = str(error).partition("'")[2].partition("'")[0] or error.name
        raise TableError(
            f"{path} needs the package {package or 'pyarrow'}: pip install 'fairclust[files]'"
        ) from None
    except Exception as error:
        # The packages that read these files raise errors of many types for damaged ones.
        raise unreadable(path, error) from None


def column_names(header: Iterable[str], path: Path) -> list[str]:
    """Names of the columns. Two columns of one name, very long names, and too many columns are errors."""
    places: dict[str, int] = {}
    header = list(header)
    if len(header) > _MAX_COLUMNS:
        raise TableError(
            f"{path} has {len(header):,} columns, more than {_MAX_COLUMNS:,}. Fix: leave out those that are not needed"
        )
    for place, text in enumerate(header, start=1):
        name = one_spelling(text) or f"Unnamed: {place - 1}"
        if len(name) > _LONGEST_NAME:
            raise TableError(
                f"{path}: the name of column {place:,} has {len(name):,} characters, which is too long: "
                f"{shortened(repr(name))}"
            )
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
    return "".join(ends[-2:-1] if ends and ends[-1] in OPENERS else ends[-1:])


_Read = tuple[pd.DataFrame, list[str]]


def _read_parquet(path: Path, form: Format) -> _Read:
    """Unlike `pandas.read_parquet`, this also reads a file with two columns of one name, which is reported then."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        return file.read().to_pandas(), []


def _read_statistics(path: Path, form: Format) -> _Read:
    """A file of Stata, SPSS or SAS, with the labels of the values instead of their codes."""
    import pyreadstat

    end = path.suffix.lower()[1:]
    end = {"zsav": "sav", "xpt": "xport"}.get(end, end)
    options: dict[str, Any] = {}
    # Files state their encoding, except those of these two kinds, which have no such option.
    if form.encoding != "utf-8" and end not in ("xport", "por"):
        options["encoding"] = form.encoding
    if end in ("sav", "por", "dta"):
        options |= {"apply_value_formats": True, "formats_as_category": False}
    frame, about = getattr(pyreadstat, f"read_{end}")(str(path), **options)
    labelled = list(getattr(about, "variable_value_labels", None) or {})
    told = f"the labels of the codes are the values of {shortened(', '.join(labelled), 200)}"
    return frame, [told] if labelled else []


def _read_json(path: Path, form: Format) -> _Read:
    """Records (a list, or one in each line), columns, or a mapping that has one of these."""
    with open_lines(path, form.encoding) as lines:
        text = [line for _, line in lines]
    try:
        content = json.loads("".join(text))
    except json.JSONDecodeError as error:
        if "Extra data" not in str(error):
            raise
        content = [json.loads(line) for line in text if line.strip()]
    notes: list[str] = []
    if isinstance(content, dict):
        records = [
            key for key, of in content.items() if isinstance(of, list) and of and isinstance(of[0], dict)
        ]
        if len(records) == 1:
            content, notes = content[records[0]], [f"the rows are those of the key {records[0]!r}"]
        elif isinstance(content.get("data"), list) and isinstance(content.get("columns"), list):
            content = [content["columns"], *content["data"]]
        else:
            frame = pd.DataFrame(content)
            # `orient="index"` of pandas writes rows by name, and `orient="columns"` columns of rows by number.
            if len(frame) < len(frame.columns) and all(isinstance(of, dict) for of in content.values()):
                frame = frame.T.infer_objects()
            return frame.reset_index(drop=True), []
    if isinstance(content, list) and content and all(isinstance(row, list) for row in content):
        return _below_header(pd.DataFrame(content, dtype=object), path, form)
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
    names = [name for name, cells in sheets.items() if cells.notna().any(axis=None)]
    if not names:
        raise TableError(f"{path} is empty")
    if form.sheet is not None and form.sheet not in sheets:
        raise TableError(
            f"--sheet: {path} has no sheet {form.sheet!r}; {nearest(form.sheet, map(str, sheets))}"
        )
    expected = [name for name in names if header_place(_top(sheets[name]), form.names)[1]]
    name = form.sheet if form.sheet is not None else (expected or names)[0]
    frame, notes = _below_header(sheets[name], path, form)
    if len(names) > 1 and form.sheet is None:
        others = shortened(", ".join(repr(of) for of in names if of != name), 200)
        notes.append(f"the sheet {name!r} is read, and not {others}; --sheet names another")
    return frame, notes


def _top(cells: pd.DataFrame) -> list[list[str]]:
    rows = cells.head(HEAD_ROWS).itertuples(index=False)
    return [["" if pd.isna(cell) else str(cell) for cell in row] for row in rows]


def _below_header(cells: pd.DataFrame, path: Path, form: Format) -> _Read:
    """The rows below the header, which is the row that is asked for or found."""
    cells = cells.dropna(axis=1, how="all")
    if not form.header:
        return cells.infer_objects().set_axis(_labels(form, len(cells.columns), path), axis=1), []
    found = header_place(_top(cells), form.names)[0]
    first = found if form.header_row is None else form.header_row - 1
    if first >= len(cells):
        raise TableError(f"--header-row: {path} has {len(cells):,} rows. Fix: name one of them")
    filled = cells.notna().any(axis=1)
    rows = cells.iloc[first + 1 :][filled.iloc[first + 1 :]]
    frame = rows.reset_index(drop=True).infer_objects()
    frame.columns = cells.iloc[first].fillna("").tolist()
    above = cells.iloc[:first][filled.iloc[:first]]
    if above.empty or form.header_row is not None:
        return frame, []
    return frame, [header_note(first + 1, len(above), str(above.iloc[0].dropna().iloc[0]))]


_READERS: dict[str, Callable[[Path, Format], _Read]] = {
    ".parquet": _read_parquet,
    **dict.fromkeys((".feather", ".arrow"), lambda path, form: (pd.read_feather(path), [])),
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), _read_workbook),
    **dict.fromkeys((".dta", ".sav", ".zsav", ".por", ".sas7bdat", ".xpt"), _read_statistics),
    **dict.fromkeys((".json", ".jsonl", ".ndjson", ".geojson"), _read_json),
}
_ATTRIBUTE = re.compile(
    r"""\s*@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s'"]+))\s""", re.IGNORECASE
)
_DATA = re.compile(r"\s*@data\b", re.IGNORECASE)


def _arff_names(lines: Iterator[Line], path: Path) -> list[str]:
    """The names in the head of an ARFF file, whose rows are text between commas."""
    names: list[str] = []
    for _, line in lines:
        if found := _ATTRIBUTE.match(line):
            names.append(next(name for name in found.groups() if name is not None))
        elif names and _DATA.match(line):
            return names
    raise TableError(
        f"{path} is no ARFF; found no line with @attribute before one with @data. Fix: check the file"
    )


def _labels(form: Format, width: int, path: Path) -> list[str]:
    """The names of the columns of a table without a header."""
    if len(form.labels or range(width)) != width:
        raise TableError(
            f"{path}: the names do not fit the rows; expected {count(width, 'name')}; found {len(form.labels)}. Fix: "
            "name every column, or none and use numbers"
        )
    return [*form.labels] or [f"column {i}" for i in range(width)]


def _read_text(path: Path, form: Format, choose: Callable[[list[str]], Choice]) -> Cells:
    """As `read_file`, for delimited text."""
    with open_lines(path, form.encoding) as lines:
        if _suffix(path) == ".arff":
            labels = _arff_names(lines, path)
            form = form._replace(delimiter=",", quote="'", header=False, labels=labels)
        text = Text(lines, str(path), form)
        width = len(text.first)
        names = text.header or _labels(form, width, path)
        # The rows may have a cell without a name, before the others or at the end.
        extra = {0 if text.first[-1].strip() else len(names)} if width > len(names) else set()
        before = int(0 in extra)
        choice = choose(names)
        texts, columns = {i + before for i in choice.texts}, None
        if choice.columns is None:
            texts |= text.codes()
        else:
            columns = extra | {i + before for i in choice.columns}
        missing = {i: choice.missing for i in range(width) if i not in texts}
        frame = text.frame(texts, missing, columns)
    for place in extra:
        cells = frame.pop(place)
        # R numbers its rows or gives them names. Other numbers may be a column whose name lacks in the header.
        numbered = cells.tolist() == list(range(1, len(cells) + 1))
        named = not pd.api.types.is_numeric_dtype(cells) and cells.is_unique and cells.notna().all()
        if not (numbered or named) if before else cells.notna().any():
            raise text.differ()
        text.notes.append(
            "the header has one name fewer than the rows have cells, so the first cells are read as names of the rows, "
            f"as R writes them, and left out: {text.begin()}. If a name lacks in the header instead, add it"
            if before
            else "the empty cell at the end of every row, which has no name, is left out"
        )
    frame.columns = pd.Index([place - before for place in frame.columns])
    return Cells(names, frame, form._replace(delimiter=text.delimiter, decimal=text.decimal), text.notes)
