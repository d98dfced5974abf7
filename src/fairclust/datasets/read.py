"""Tables of data sets: their features and groups before scaling.

A table is a file whose columns are known by name and number.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairclust.datasets.errors import DatasetError
from fairclust.datasets.generate import Generated
from fairclust.datasets.spec import ColumnRef, DatasetSpec, ReaderSpec, SensitiveSpec
from fairclust.group_encoding import Values, combination_names, cross_codes, cut_column, natural_codes
from fairclust.messages import count, nearest
from fairclust.tables.columns import factor, find_reading, numbers
from fairclust.tables.reading import Format, Opened, TableError, open_table

log = logging.getLogger(__name__)


def read_rows(spec: DatasetSpec, files: list[Path]) -> Generated:
    """The rows of a table.

    DatasetError or TableError if a column is missing, a cell of a feature is no number, or a group is unknown.
    """
    table = Table.open(files[0], spec.reader)
    features, coded, asked = _chosen(spec, table)
    read = table.read(features, [*coded, *asked.values()], spec.drop_rows)
    columns, measured = {}, {}
    for column in spec.sensitive_columns:
        if column.source is None:
            own, values = table.names[asked[column.column]], read.texts[asked[column.column]]
        else:
            own, values = _groups_of_file(spec, column, files[1], table.names, len(read.kept))
        place = f"file '{files[-1].name}', column '{own}'"
        if column.bins is None:
            columns[own] = code_groups(column, values, read.kept, place)
            continue
        cells = numbers(pd.Series(values.at(slice(None)), dtype=object), {}).to_numpy()
        wrong = np.flatnonzero(read.kept & ~np.isfinite(cells))
        if len(wrong):
            raise DatasetError(
                f"{place}: a sensitive column with 'bins' holds a value that is no number; found "
                f"{values.at(wrong[0])!r} in data row {wrong[0] + 1}. Fix: list it under 'drop_rows', or use 'groups'"
            )
        measured[own] = cells[read.kept]
        ranges = cut_column(own, measured[own], column.bins)
        columns[own] = ranges.encode(measured[own], len(measured[own])), tuple(map(str, ranges.values))
    codes, values_of = zip(*columns.values(), strict=True)
    groups, group_names = codes[0], values_of[0]
    if len(columns) > 1:
        groups, cells = cross_codes(codes, [len(of) for of in values_of])
        group_names = tuple(combination_names(cells, values_of))
    of_codes = [natural_codes(read.texts[i], read.kept) for i in coded]
    words, n_ordered = [words for _, words in of_codes], len(spec.ordered)
    levels = {table.names[i]: list(of) for i, of in zip(coded[:n_ordered], words, strict=False)}
    return Generated(
        np.column_stack([read.numbers, *(of for of, _ in of_codes)]) if coded else read.numbers,
        groups,
        tuple(table.names[i] for i in (*features, *coded)),
        group_names,
        truth=None if spec.truth is None else natural_codes(read.texts[asked[spec.truth]], read.kept)[0],
        categories=tuple(words[n_ordered:]),
        columns=columns if len(columns) > 1 else {},
        numbers=measured,
        card={
            "rows_read": len(read.kept),
            "dropped": read.dropped,
            **({"ordered": levels} if levels else {}),
        },
    )


def _chosen(spec: DatasetSpec, table: Table) -> tuple[list[int], list[int], dict[ColumnRef, int]]:
    """The columns of numbers, those of categories (ordered ones first), and the sensitive ones with the truth."""
    names = [column.column for column in spec.sensitive_columns if column.source is None]
    asked = {column: table.place(column) for column in names + ([] if spec.truth is None else [spec.truth])}
    coded, others = [*map(table.place, (*spec.ordered, *spec.categorical))], {*asked.values()}
    if spec.features == "all":
        features = [i for i in range(len(table.names)) if i not in {*others, *coded}]
    else:
        features = [*map(table.place, spec.features)]
    listed = [*features, *coded, *([] if spec.truth is None else [asked[spec.truth]])]
    if others & {*features, *coded[: len(spec.ordered)]} or len({*listed}) < len(listed):
        raise TableError(
            f"file '{table.path.name}': 'features' lists a column twice, or the sensitive column, or the truth; found "
            f"{[table.names[i] for i in listed]}. Fix: list each feature once, as numeric or categorical; the groups "
            "must not be a feature"
        )
    return features, coded, asked


def _texts(cells: pd.Series) -> Values:
    """A column as text; a missing cell is an empty text."""
    return factor(cells.astype(object).where(cells.notna(), ""))


def groups_table(spec: DatasetSpec, path: Path) -> Table:
    """The file of the groups, which is read like the table."""
    return Table.open(path, spec.reader.model_copy(update={"names": ()}))


def _groups_of_file(
    spec: DatasetSpec, sensitive: SensitiveSpec, path: Path, names: list[str], n_rows: int
) -> tuple[str, Values]:
    """The column of the groups in a file of their own, whose rows are in the table's order: its name and values."""
    file = groups_table(spec, path)
    place = file.place(sensitive.column)
    groups, own = file.read([], [place]).texts[place], file.names[place]
    shared = sorted({*names} & {*file.names}) if spec.reader.header else []
    if shared:
        raise DatasetError(
            f"file '{path.name}', column '{shared[0]}': the file of the groups has a column of the table, so its rows "
            "may be in another order. Fix: write the groups into the table, or remove the column from the file"
        )
    if len(groups.entries) != n_rows:
        raise DatasetError(
            f"file '{path.name}', column '{own}': the file of the groups has another number of rows than the table; "
            f"expected {count(n_rows, 'row')}; found {len(groups.entries):,}. Fix: use the file that belongs "
            "to the table; check 'header' in 'reader'"
        )
    return own, groups


def code_groups(
    sensitive: SensitiveSpec, values: Values, kept: np.ndarray, place: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Group codes (int32) of the kept rows, and names of the groups. A value of no group is a DatasetError."""
    codes, used = natural_codes(values, kept)
    listed: Mapping[str, Any] = sensitive.groups or {value: (value,) for value in used if value}
    owner = {value: code for code, of in enumerate(listed.values()) if of != "*" for value in of}
    # '*' means every other value, but not an empty cell.
    rest = next((code for code, of in enumerate(listed.values()) if of == "*"), -1)
    group_of = np.array([owner.get(value, rest if value else -1) for value in used] or [-1], np.int32)
    unknown = [value for value in values.words if value in used and group_of[used.index(value)] < 0]
    if unknown:
        rows = np.flatnonzero(kept)[codes == used.index(unknown[0])]
        more = f", and also {', '.join(map(repr, unknown[1:6]))}" if unknown[1:] else ""
        raise DatasetError(
            f"{place}: unknown group value {unknown[0]!r}; expected {', '.join(map(repr, owner)) or 'a value'}; found "
            f"{unknown[0]!r} in {count(len(rows), 'row')}, first in data row {rows[0] + 1}{more}. Fix: add the value "
            "to 'sensitive.groups', or list it under 'drop_rows'"
        )
    return group_of[codes], tuple(listed)


class Columns(NamedTuple):
    """Columns of a file."""

    numbers: np.ndarray  # (n_kept, n_numbers), in the order in which they were asked for
    texts: dict[int, Values]  # of all rows, by the number of the column
    kept: np.ndarray  # (n_read,)
    dropped: list[dict[str, object]]  # column, value, number of rows


@dataclass(frozen=True)
class Table:
    """A file of a data set."""

    path: Path
    reader: ReaderSpec
    names: list[str]  # of all columns
    opened: Opened

    @classmethod
    def open(cls, path: Path, reader: ReaderSpec) -> Table:
        form = Format(
            reader.delimiter, reader.decimal, reader.encoding, header=reader.header, labels=reader.names
        )
        opened = open_table(path, form)
        for note in opened.notes:
            log.warning("%s: %s", path.name, note)
        return cls(path, reader, [name.strip() for name in opened.names], opened)

    def place(self, column: ColumnRef) -> int:
        """The number of a column given by name or number. None, or two of that name, is a TableError."""
        found = [i for i, name in enumerate(self.names) if column in (i, name)]
        if len(found) == 1:
            return found[0]
        place, hint = f"file '{self.path.name}', column '{column}'", nearest(str(column), self.names)
        if found:
            raise TableError(f"{place}: the header has this name twice. Fix: use a number: {found}")
        raise TableError(
            f"{place}: no such column; expected a name, or a number from 0 to {len(self.names) - 1}. Fix: correct the "
            f"name ({hint}), or check 'sep' and 'header' in 'reader'"
        )

    def read(
        self,
        features: Sequence[int],
        texts: Sequence[int],
        drop_rows: Mapping[ColumnRef, Sequence[str]] | None = None,
    ) -> Columns:
        """Columns of numbers and of text. A DatasetError names the first cell that is not a finite number."""
        drops = {self.place(column): listed for column, listed in (drop_rows or {}).items()}
        zeros = self.reader.as_zero
        # A long file is read in parts, and a column can be numbers in one part and text in another, such as 1.5 and
        # '1,5', unless all of it is read as text.
        as_text = {*texts, *drops, *(features if self.reader.decimal != "." else ())}
        frame = self.opened.read({*features, *as_text}, as_text, zeros)
        # In a text, only the cells of `as_zero` are missing.
        of_missing = 0.0 if self.opened.delimiter or "" in zeros else np.nan
        words = {i: _texts(frame[i]) for i in (*texts, *drops)}
        # A row is dropped under the first of its values that is listed.
        kept, dropped = np.ones(len(frame), dtype=bool), list[dict[str, object]]()
        for i, value in ((i, value) for i, listed in drops.items() for value in listed):
            hit = np.array([text == value for text in words[i].words])[words[i].entries] & kept
            dropped.append({"column": self.names[i], "value": value, "rows": int(hit.sum())})
            kept &= ~hit
        X = np.empty((int(kept.sum()), len(features)))
        for j, i in enumerate(features):
            cells = frame[i]
            if cells.dtype.kind in "iuf":
                X[:, j] = cells.fillna(of_missing).to_numpy()[kept]
                continue
            values = words.get(i) or _texts(cells)
            _, found = find_reading(values.words, np.bincount(values.entries), self.reader.decimal)
            found[[word in zeros for word in values.words]] = 0.0
            X[:, j] = np.where(cells.isna(), of_missing, found[values.entries])[kept]
        wrong = ~np.isfinite(X)
        if wrong.any():
            row, j = np.argwhere(wrong)[0]
            row, i = int(np.flatnonzero(kept)[row]), features[j]
            cell = str(self.read([], [i]).texts[i].at(row))
            raise DatasetError(
                f"file '{self.path.name}', column '{self.names[i]}': a feature has cells that are not finite numbers; "
                f"found {cell!r} in data row {row + 1}, {count(int(wrong[:, j].sum()), 'such cell')} in all. Fix: "
                "list the column under 'categorical', leave it out of 'features', or list the value under 'drop_rows'"
            )
        return Columns(X, {i: words[i] for i in texts}, kept, dropped)
