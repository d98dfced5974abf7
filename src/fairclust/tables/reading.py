"""Reading of tables in several file formats as data frames."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import sys
from pathlib import Path
from typing import IO, Any

import pandas as pd

from fairclust.tables.errors import TableError

_OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_READERS = {
    ".parquet": pd.read_parquet,
    ".feather": pd.read_feather,
    ".arrow": pd.read_feather,
    ".xlsx": pd.read_excel,
    ".xls": pd.read_excel,
}
# The first bytes of compressed data, for standard input, which has no name.
_PACKED = {b"\x1f\x8b": gzip.decompress, b"BZh": bz2.decompress, b"\xfd7zXZ\x00": lzma.decompress}
_DELIMITERS = {"\\t": "\t", "tab": "\t"}


def read_table(
    path: str | Path, *, delimiter: str | None = None, decimal: str = ".", encoding: str = "utf-8"
) -> pd.DataFrame:
    """Read Parquet, Feather, Excel or delimited text, which may be compressed.

    Parameters
    ----------
    path : str or Path
        "-" is delimited text from standard input. The ending of a file decides its format, and files with unknown
        endings are delimited text. Text that is compressed by gzip, bzip2 or xz is decompressed.
    delimiter : str, optional
        Separator of cells in text. Default: the one of ``, ; tab |`` that occurs most often in the first line.
    decimal : str, default="."
    encoding : str, default="utf-8"

    Returns
    -------
    DataFrame
        Column names are strings. An empty cell is missing, and so is "?".

    Raises
    ------
    TableError
        There is no such file, it cannot be read, or it has no row.
    """
    path = Path(path)
    if str(path) != "-" and not path.is_file():
        raise TableError(f"there is no file {path}")
    try:
        if path.suffix.lower() in _READERS:
            frame = _READERS[path.suffix.lower()](path)
        else:
            frame = _read_text(path, delimiter, decimal, encoding)
    except ImportError as error:
        package = str(error).partition("'")[2].partition("'")[0] or error.name
        raise TableError(
            f"{path} needs the package {package or 'pyarrow'}: pip install 'fairclust[files]'"
        ) from None
    except pd.errors.EmptyDataError:
        raise TableError(f"{path} is empty") from None
    except UnicodeError:
        other = "utf-16" if _begins_as_utf16(path) else "latin-1"
        raise TableError(f"{path} is no {encoding} text; try --encoding {other}") from None
    except (ValueError, LookupError, OSError) as error:
        if isinstance(error, TableError):
            raise
        what = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise TableError(f"{path} cannot be read as a table: {what}") from None
    frame.columns = frame.columns.map(str).str.strip()
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise TableError(f"{path} has the column {twice[0]!r} twice")
    if frame.empty:
        raise TableError(f"{path} has a header and no rows")
    return frame


def _read_text(path: Path, delimiter: str | None, decimal: str, encoding: str) -> pd.DataFrame:
    if delimiter is not None:
        delimiter = _DELIMITERS.get(delimiter, delimiter)
        if len(delimiter) != 1:
            raise TableError(f"--delimiter: {delimiter!r} is not one character")
    with _open(path) as file:
        first = codecs.decode(_first_line(file), encoding)
        delimiter = delimiter or _likely_delimiter(first)
        if _is_data(first, delimiter):
            raise TableError(
                f"the first line of {path} looks like data: {first.strip()[:60]!r}. Write the names of the "
                "columns above it"
            )
        frame = pd.read_csv(
            file,
            sep=delimiter,
            decimal=decimal,
            encoding=encoding,
            skipinitialspace=True,
            index_col=False,
            na_values=["?"],
            low_memory=False,
        )
    frame.attrs["delimiter"] = delimiter
    return frame


def _open(path: Path) -> IO[Any]:
    if str(path) == "-":
        data = sys.stdin.buffer.read()
        return io.BytesIO(next((of(data) for begin, of in _PACKED.items() if data.startswith(begin)), data))
    return _OPENERS.get(path.suffix.lower(), open)(path, "rb")  # type: ignore[operator]


def _first_line(file: IO[Any]) -> bytes:
    start = file.read(1 << 16)
    file.seek(0)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        # UTF-16 characters have an even number of bytes, so an odd last byte is cut off.
        return start[: len(start) & ~1]
    return start.partition(b"\n")[0]


def _begins_as_utf16(path: Path) -> bool:
    if str(path) == "-":
        return False
    with _open(path) as file:
        return file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def _likely_delimiter(first: str) -> str:
    unquoted = re.sub('"[^"]*"', "", first.partition("\n")[0])
    return max(",;\t|", key=unquoted.count)


def _is_data(first: str, delimiter: str) -> bool:
    """Whether the first line holds data: only numbers, one of them with a point or a minus, unlike years or codes."""
    cells = [cell.strip().strip('"') for cell in first.partition("\n")[0].split(delimiter)]
    numbers = [re.fullmatch(r"[+-]?\d+(\.\d+)?", cell) is not None for cell in cells]
    return all(numbers) and any("." in cell or cell.startswith("-") for cell in cells)
