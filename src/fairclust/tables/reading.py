"""Reading of tables in several file formats as data frames."""

from __future__ import annotations

import glob
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

import pandas as pd

from fairclust.group_encoding import one_spelling
from fairclust.messages import shortened
from fairclust.tables.text import OPTIONS, Format, TableError, open_rows, unreadable
from fairclust.tables.values import MISSING_TEXTS, is_nested, read_values

_DELIMITERS = {"\\t": "\t", "tab": "\t"}
_LONGEST_NAME = 1000
# Each column takes time, even in a table of few rows.
_MAX_COLUMNS = 20_000


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
    advice: Mapping[str, str] = OPTIONS,
) -> pd.DataFrame:
    """Read the rows of `table_files`: Parquet, Feather, Excel or text, for whose options see `Format` and `clean`.

    The attributes "delimiter", "decimal", "notes" (on how the file was read) and "spellings" (on its cells) are set.
    """
    if decimal is not None and len(decimal) != 1:
        raise TableError(f"--decimal: {shortened(repr(decimal))} is not one character")
    sign = None if delimiter is None else _DELIMITERS.get(delimiter, delimiter)
    if sign is not None and (len(sign) != 1 or sign in '"\r\n' or not sign.isascii()):
        raise TableError(f"--delimiter: {shortened(repr(sign))} is not one ASCII character between cells")
    form = Format(
        sign, decimal, usual_decimal, encoding, names={*values, *ids}, all_names=header, advice=advice
    )
    files = table_files(path)
    notes: list[str] = []
    frames: list[pd.DataFrame] = []
    for file in files:
        frame, form, more = _read_file(file, form)
        if frame.empty:
            raise TableError(f"{file} has a header and no rows")
        frames.append(frame)
        check_same_columns(frame.columns, file, frames[0].columns, files[0])
        notes += more
    frame = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]
    decimal, typed = form.decimal or ".", files[0].suffix.lower() in _READERS
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


def _read_file(path: Path, form: Format) -> tuple[pd.DataFrame, Format, list[str]]:
    """The cells of a file, its format with what was found, and notes on how it was read."""
    reader = _READERS.get(path.suffix.lower())
    try:
        if reader is None:
            return _read_text(path, form)
        # An index with a name becomes a column. Rows are counted from 0 afterwards.
        frame = reader(path)
        frame = frame.reset_index(drop=frame.index.names == [None])
        frame.columns = column_names(map(str, frame.columns), path)
        return frame, form, []
    except TableError:
        raise
    except ImportError as error:
        package = str(error).partition("'")[2].partition("'")[0] or error.name
        raise TableError(
            f"{path} needs the package {package or 'pyarrow'}: pip install 'fairclust[files]'"
        ) from None
    except Exception as error:
        # The packages that read Parquet and Excel raise errors of many types for damaged files.
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


def _read_parquet(path: Path) -> pd.DataFrame:
    """Unlike `pandas.read_parquet`, this also reads a file with two columns of one name, which is reported then."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        return file.read().to_pandas()


def _read_excel(path: Path) -> pd.DataFrame:
    """Read the first sheet. The header is read as a row, because pandas would rename columns of one name."""
    cells = pd.read_excel(path, header=None, dtype=object, keep_default_na=False, na_values=[""])
    filled = cells.notna().any(axis=1)
    if not filled.any():
        raise TableError(f"{path} is empty")
    first = int(filled.argmax())
    frame = cells.iloc[first + 1 :].reset_index(drop=True).infer_objects()
    frame.columns = cells.iloc[first].fillna("").tolist()
    return frame


_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".parquet": _read_parquet,
    ".feather": pd.read_feather,
    ".arrow": pd.read_feather,
    ".xlsx": _read_excel,
    ".xls": _read_excel,
}


def _read_text(path: Path, form: Format) -> tuple[pd.DataFrame, Format, list[str]]:
    """As `_read_file`, for delimited text. Columns of `form.names` are not converted."""
    with open_rows(path, form) as rows:
        names = column_names(rows.header, path)
        row_names = len(rows.first) > len(names) and bool(rows.first[-1].strip())
        kept = {i + row_names for i, name in enumerate(names) if name in form.names} | rows.codes()
        missing = {i: list(MISSING_TEXTS) for i in range(len(rows.first)) if i not in kept}
        frame = rows.frame(dict.fromkeys(kept, str), missing)
    if len(rows.first) > len(names):
        extra = frame.pop(0 if row_names else len(names))
        # R numbers its rows or gives them names. Other numbers may be a column whose name lacks in the header.
        numbered = extra.tolist() == list(range(1, len(extra) + 1))
        named = not pd.api.types.is_numeric_dtype(extra) and extra.is_unique and extra.notna().all()
        if not (numbered or named) if row_names else extra.notna().any():
            raise rows.differ()
        rows.notes.append(
            "the header has one name fewer than the rows have cells, so the first cells are read as names of the rows, "
            f"as R writes them, and left out: {rows.shown()}. If a name lacks in the header instead, add it"
            if row_names
            else "the empty cell at the end of every row, which has no name, is left out"
        )
    frame.columns = names
    return frame, form._replace(delimiter=rows.delimiter, decimal=rows.decimal), rows.notes
