"""Reading of chosen columns of a delimited text file, in bounded memory and with line numbers in error messages.

pyarrow reads the file, because it streams, converts only the chosen columns and refuses rows with too many or too few
cells. After such an error, the file is read again with the csv module, which knows the line numbers.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from fairclust.datasets.arff import arff_head
from fairclust.datasets.errors import DatasetError, problem
from fairclust.datasets.numbers import grouped, is_data, is_number, lookalike
from fairclust.datasets.spec import ReaderSpec
from fairclust.group_encoding import natural
from fairclust.messages import nearest

BLOCK_BYTES = 8 << 20
COMMENT_SIGNS = ("#", "%", "//")


@dataclass(frozen=True)
class Factor:
    """A text column: ``values[codes[i]]`` is the cell of row i, without blanks around it."""

    codes: np.ndarray
    values: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """The columns that were read."""

    X: np.ndarray  # (n_kept, n_features); features of the rows that were kept
    feature_names: tuple[str, ...]  # One name for each column of `X`
    factor: Factor | None  # The text column with all rows of the file, also the dropped ones
    kept: np.ndarray  # (n_read,); which rows of the file are in `X`
    dropped: list[dict[str, object]]  # Column, value and number of rows for each reason to drop a row
    # Values behind the codes of each categorical column, in order. These columns are the last of `X`.
    categories: tuple[tuple[str, ...], ...] = ()


class TableFile:
    """A delimited text file whose columns are known by name and number.

    It is a DatasetError if the file is empty, if ``reader.names`` does not fit it, or if its first line is a comment or
    data instead of the names of the columns.
    """

    def __init__(self, path: Path, reader: ReaderSpec, dataset: str):
        self.path, self.reader, self.dataset = path, reader, dataset
        # `_head` is the number of lines before the CSV part of the file, which is the head of an ARFF file. `_named`
        # says whether the first CSV row holds the names of the columns.
        self._head, self._named = 0, reader.header and reader.format == "csv"
        if reader.format == "arff":
            try:
                with self._open() as lines:
                    self._head, self.names = arff_head(lines)
            except (ValueError, UnicodeError) as error:
                raise self._problem("the file is no ARFF", found=error, fix="check 'format'") from None
            return
        rows = self._csv_rows()
        first = next(rows, None)
        if first is None:
            raise self._problem("the file is empty", expected="a table")
        width = len(first[1])
        if _is_comment(first[1]):
            # A header can also start with '#', but then it has as many cells as the table.
            after = next((row for _, row in itertools.islice(rows, 1000) if not _is_comment(row)), first[1])
            if len(after) != width:
                raise self._problem(
                    "the first line looks like a comment",
                    found=repr(reader.sep.join(first[1])[:80]),
                    expected="the names of the columns" if reader.header else "data",
                    fix="delete the lines before the table from the file",
                )
        if reader.header and is_data(first[1], reader):
            raise self._problem(
                "the first line looks like data",
                found=repr(reader.sep.join(first[1])[:80]),
                expected="the names of the columns",
                fix="set 'header: false' in 'reader', and name the columns by 'names' or by numbers from 0",
            )
        if reader.header:
            self.names = [cell.strip() for cell in first[1]]
        elif not reader.names:
            self.names = [f"column {i}" for i in range(width)]
        elif len(reader.names) == width:
            self.names = list(reader.names)
        else:
            raise self._problem(
                "'reader.names' does not fit the file",
                expected=f"{width} names",
                found=len(reader.names),
                fix="name every column, or none and use numbers",
            )

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
        raise self._problem(
            "no such column",
            column=column,
            expected="a column of the header" if self.reader.header else "a number, the file has no header",
            fix=f"correct the name ({nearest(column, self.names)}), or check 'sep' and 'header'"
            + (
                "; the first line holds numbers, so perhaps the file has no header: set 'header: false'"
                if self.reader.header and any(is_number(name, self.reader) for name in self.names)
                else ""
            ),
        )

    def read(
        self,
        features: Sequence[int],
        text: int | None = None,
        drop_rows: Mapping[int, Sequence[str]] | None = None,
        categorical: Sequence[int] = (),
    ) -> Table:
        """Read features as numbers, categorical ones (the last) as codes of sorted values, and one column as text.

        Rows whose cell in a column of `drop_rows` has one of its values are left out. A DatasetError names the first
        cell that is not a finite number, or a row of another length. Peak memory is that of the result plus a few
        blocks of the file.
        """
        drops = dict(drop_rows or {})
        X = np.empty((self._max_rows(), len(features) + len(categorical)))
        levels: list[dict[str, int]] = [{} for _ in categorical]
        kept: list[np.ndarray] = []
        codes: list[np.ndarray] = []
        values: dict[str, int] = {}
        dropped = {(column, value): 0 for column, listed in drops.items() for value in listed}
        row = 0
        try:
            for batch in self._batches(features, {*categorical, *(() if text is None else (text,))}, drops):
                keep = np.ones(batch.num_rows, dtype=bool)
                for column, value in dropped:
                    hit = pc.equal(_trimmed(batch, column), value).to_numpy(zero_copy_only=False) & keep
                    dropped[column, value] += int(hit.sum())
                    keep &= ~hit
                end = row + int(keep.sum())
                for j, column in enumerate(features):
                    X[row:end, j] = self._numbers(batch, column, keep)
                for j, (column, seen) in enumerate(zip(categorical, levels, strict=True), len(features)):
                    X[row:end, j] = _encoded(batch, column, seen)[keep]
                if not np.isfinite(X[row:end]).all():
                    raise self._diagnose(features, drops, "NaN or infinity")
                row = end
                kept.append(keep)
                if text is not None:
                    codes.append(_encoded(batch, text, values))
        except (pa.ArrowInvalid, UnicodeError) as error:
            raise self._diagnose(features, drops, error) from error
        X = X[:row]
        categories = [
            _sorted_codes(X[:, j], tuple(seen)) for j, seen in enumerate(levels, len(features)) if row
        ]
        return Table(
            X=X,
            feature_names=tuple(self.names[i] for i in (*features, *categorical)),
            factor=None if text is None else Factor(_joined(codes, np.int32), tuple(values)),
            kept=_joined(kept, np.bool_),
            dropped=[
                {"column": self.names[column], "value": value, "rows": rows}
                for (column, value), rows in dropped.items()
            ],
            categories=tuple(categories),
        )

    def _batches(
        self, features: Sequence[int], texts: set[int], drops: Mapping[int, Sequence[str]]
    ) -> Iterator[pa.RecordBatch]:
        reader = self.reader
        as_text = set(drops) | texts
        # pyarrow cannot read separators of thousands, so these numbers are read as text first.
        number = pa.float64() if reader.thousands is None else pa.string()
        types = {str(i): number for i in features} | {str(i): pa.string() for i in as_text}
        source: object = self.path
        if reader.skipinitialspace:
            # pyarrow has no option for this. The files with blanks after the separator are small.
            source = self._without_initial_space()
        yield from pa_csv.open_csv(
            source,
            read_options=pa_csv.ReadOptions(
                block_size=BLOCK_BYTES,
                column_names=[str(i) for i in range(len(self.names))],
                skip_rows=0 if reader.skipinitialspace else self._head,
                skip_rows_after_names=int(self._named),
                encoding="utf-8" if reader.skipinitialspace else reader.encoding,
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=reader.sep, quote_char=reader.quotechar, newlines_in_values=True
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=list(reader.as_zero),
                decimal_point=reader.decimal,
            ),
        )

    def _numbers(self, batch: pa.RecordBatch, column: int, keep: np.ndarray) -> np.ndarray:
        cells = batch.column(str(column))
        if pa.types.is_floating(cells.type):
            # Only the cells listed in `as_zero` are null.
            return cells.fill_null(0.0).to_numpy()[keep]
        # A feature by which rows are dropped is read as text, and converted after the rows are dropped.
        cells = _trimmed(batch, column).filter(pa.array(keep))
        if self.reader.as_zero:
            cells = pc.if_else(pc.is_in(cells, pa.array(self.reader.as_zero)), "0", cells)
        if self.reader.thousands is not None:
            separated = pc.match_substring_regex(cells, grouped(self.reader))
            cells = pc.if_else(separated, pc.replace_substring(cells, self.reader.thousands, ""), cells)
        if self.reader.decimal != ".":
            # A point is not the decimal point of this file. It is replaced, so that the conversion fails.
            cells = pc.replace_substring(cells, ".", "?")
            cells = pc.replace_substring(cells, self.reader.decimal, ".")
        return pc.cast(cells, pa.float64()).to_numpy()

    def _max_rows(self) -> int:
        """Number of line ends, an upper bound on the number of rows, so that `X` is allocated only once."""
        with self.path.open("rb") as file:
            return 1 + sum(
                block.count(b"\n") + block.count(b"\r") for block in iter(lambda: file.read(BLOCK_BYTES), b"")
            )

    def _csv_rows(self, errors: str = "replace") -> Iterator[tuple[int, list[str]]]:
        """Yield line number and cells of every row, the header included."""
        reader = self.reader
        with self._open(errors) as file:
            for _ in range(self._head):
                next(file)
            rows = csv.reader(
                file,
                delimiter=reader.sep,
                quotechar=reader.quotechar,
                skipinitialspace=reader.skipinitialspace,
            )
            try:
                for row in rows:
                    if row:
                        yield self._head + rows.line_num, row
            except csv.Error as error:
                raise self._problem(
                    "the table cannot be cut into cells",
                    found=f"{error}, in line {rows.line_num}",
                    fix="look for a quote that is not closed, or check 'quotechar' and 'sep'",
                ) from None
            except UnicodeError as error:
                raise self._problem(
                    f"the file is no {reader.encoding} text", found=error, fix="check 'encoding'"
                ) from None

    def _open(self, errors: str = "replace") -> TextIO:
        encoding = "utf-8-sig" if self.reader.encoding == "utf-8" else self.reader.encoding
        return self.path.open(encoding=encoding, errors=errors, newline="")

    def _without_initial_space(self) -> io.BytesIO:
        text = io.StringIO(newline="")
        writer = csv.writer(
            text, delimiter=self.reader.sep, quotechar=self.reader.quotechar, lineterminator="\n"
        )
        writer.writerows(row for _, row in self._csv_rows("strict"))
        return io.BytesIO(text.getvalue().encode())

    def _diagnose(
        self, features: Sequence[int], drops: Mapping[int, Sequence[str]], cause: object
    ) -> DatasetError:
        """Find the line of the file that led to the error `cause`."""
        rows = self._csv_rows()
        if self._named:
            next(rows)
        bad: dict[int, tuple[int, str, int]] = {}
        for line, row in rows:
            if len(row) != len(self.names):
                return self._problem(
                    "a row has the wrong number of cells",
                    expected=len(self.names),
                    found=f"{len(row)} in line {line}",
                    fix="repair the line, or check 'sep' and 'quotechar'",
                )
            if any(row[column].strip() in listed for column, listed in drops.items()):
                continue
            for column in features:
                if row[column] not in self.reader.as_zero and not is_number(row[column], self.reader):
                    first_line, cell, count = bad.get(column, (line, row[column], 0))
                    bad[column] = (first_line, cell, count + 1)
        if not bad:
            return self._problem(
                "the table cannot be read", found=cause, fix="check 'sep', 'quotechar' and 'encoding'"
            )
        column, (line, cell, count) = min(bad.items(), key=lambda item: item[1][0])
        look, fix = lookalike(cell)
        return self._problem(
            "a feature has cells that are not finite numbers",
            column=self.names[column],
            expected="a number in every row",
            found=f"{cell!r} in line {line}, {count:,} such cells in all"
            + (f"; it looks like {look}" if look else ""),
            fix=(f"{fix}, or " if fix else "")
            + "leave the column out of 'features', or list the value under 'drop_rows'",
        )


def _trimmed(batch: pa.RecordBatch, column: int) -> pa.Array:
    return pc.utf8_trim_whitespace(batch.column(str(column)))


def _encoded(batch: pa.RecordBatch, column: int, values: dict[str, int]) -> np.ndarray:
    """Codes of a text column. New values are added to `values`."""
    encoded = pc.dictionary_encode(_trimmed(batch, column))
    lookup = [values.setdefault(v, len(values)) for v in encoded.dictionary.to_pylist()]
    return np.array(lookup, dtype=np.int32)[encoded.indices.to_numpy()]


def _sorted_codes(codes: np.ndarray, values: tuple[str, ...]) -> tuple[str, ...]:
    """Change codes in place to those of the sorted values that occur; return these."""
    used = sorted({values[int(code)] for code in np.unique(codes)}, key=natural)
    place = {value: code for code, value in enumerate(used)}
    codes[:] = np.array([place.get(value, -1) for value in values], float)[codes.astype(int)]
    return tuple(used)


def _is_comment(row: list[str]) -> bool:
    return row[0].lstrip().startswith(COMMENT_SIGNS)


def _joined(parts: list[np.ndarray], dtype: type[np.generic]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty(0, dtype=dtype)
