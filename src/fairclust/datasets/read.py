"""Tables of data sets: their features and groups before scaling.

A table is a file whose columns are known by name and number.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairclust.datasets.errors import DatasetError
from fairclust.datasets.spec import ColumnRef, DatasetSpec, ReaderSpec, SensitiveSpec
from fairclust.datasets.store import PreparedDataset
from fairclust.group_encoding import combination_names, cross_codes, cut_column, natural
from fairclust.messages import count, nearest
from fairclust.tables.cells import steps
from fairclust.tables.columns import as_text, find_reading
from fairclust.tables.reading import Format, TableError, open_table

log = logging.getLogger(__name__)


def read_rows(spec: DatasetSpec, files: list[Path]) -> PreparedDataset:
    """The rows of a table, which are not scaled yet.

    DatasetError or TableError if a column is missing, a cell of a feature is no number, or a group is unknown.
    """
    table = Table(files[0], spec.reader)
    features, coded, asked = _chosen(spec, table)
    frame, card = table.read(features, [*coded, *asked.values()], spec.drop_rows)
    columns, measured = {}, {}
    for column in spec.sensitive_columns:
        if column.source is None:
            file, at, cells = table, asked[column.column], frame
        else:
            file, at, cells = _groups_of_file(spec, column, files[-1], table.names, card["rows_read"])
        own = file.names[at]
        if column.bins is None:
            place = f"file '{file.path.name}', column '{own}'"
            columns[own] = code_groups(column, cells.loc[frame.index, at], place)
            continue
        numbers, _ = file.read([at], [], spec.drop_rows if file is table else {})
        measured[own] = numbers.loc[frame.index, at].to_numpy()
        ranges = cut_column(own, measured[own], column.bins)
        columns[own] = ranges.encode(measured[own], len(measured[own])), tuple(map(str, ranges.values))
    codes, values_of = zip(*columns.values(), strict=True)
    groups, group_names = codes[0], values_of[0]
    if len(columns) > 1:
        groups, combinations = cross_codes(codes)
        group_names = tuple(combination_names(combinations, values_of))
    n_ordered = len(spec.ordered)
    for i in coded[:n_ordered]:
        frame[i] = _in_steps(frame[i], f"file '{table.path.name}', column '{table.names[i]}'")
    X = np.column_stack([frame[features].to_numpy(float), *(frame[i].cat.codes for i in coded)])
    words = {table.names[i]: [*frame[i].cat.categories] for i in coded}
    values = {
        "ordered": dict(islice(words.items(), n_ordered)),
        "categories": dict(islice(words.items(), n_ordered, None)),
        "sensitive": dict(zip(columns, map(list, values_of), strict=True)) if len(columns) > 1 else {},
        "numbers": list(measured),
    }
    return PreparedDataset(
        np.ascontiguousarray(X),
        groups,
        tuple(table.names[i] for i in (*features, *coded)),
        group_names,
        card | {key: of for key, of in values.items() if of},
        truth=None if spec.truth is None else frame[asked[spec.truth]].cat.codes.to_numpy(np.int32),
        columns=dict(zip(columns, codes, strict=True)) if len(columns) > 1 else {},
        numbers=measured,
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


def _texts(cells: pd.Series) -> pd.Series:
    """A column of texts as categories, sorted by `natural`; a missing cell is an empty text."""
    texts = as_text(cells).fillna("")
    return texts.astype(pd.CategoricalDtype(sorted(texts.unique(), key=natural)))


def _in_steps(cells: pd.Series, place: str) -> pd.Series:
    """A column of categories in the order of a known scale or of ranges, or else sorted by `natural`."""
    words = [*cells.cat.categories]
    if "" in words:
        row = cells.index[cells == ""][0] + 1
        raise DatasetError(
            f"{place}: an ordered column has empty cells; the first is in data row {row}. Fix: list the value '' under "
            "'drop_rows', or the column under 'categorical'"
        )
    scale = steps(words)
    return cells.cat.reorder_categories(scale if len(scale) == len(words) else words)


def groups_table(spec: DatasetSpec, path: Path) -> Table:
    """The file of the groups, which is read like the table."""
    return Table(path, spec.reader.model_copy(update={"names": ()}))


def _groups_of_file(
    spec: DatasetSpec, sensitive: SensitiveSpec, path: Path, names: list[str], n_rows: int
) -> tuple[Table, int, pd.DataFrame]:
    """The file of the groups, whose rows are in the table's order, the place of its column, and its cells."""
    file = groups_table(spec, path)
    at = file.place(sensitive.column)
    cells, _ = file.read([], [at])
    shared = sorted({*names} & {*file.names}) if spec.reader.header else []
    if shared:
        raise DatasetError(
            f"file '{path.name}', column '{shared[0]}': the file of the groups has a column of the table, so its rows "
            "may be in another order. Fix: write the groups into the table, or remove the column from the file"
        )
    if len(cells) != n_rows:
        raise DatasetError(
            f"file '{path.name}', column '{file.names[at]}': the file of the groups has another number of rows than "
            f"the table; expected {count(n_rows, 'row')}; found {len(cells):,}. Fix: use the file that belongs to the "
            "table; check 'header' in 'reader'"
        )
    return file, at, cells


def code_groups(
    sensitive: SensitiveSpec, values: pd.Series, place: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Group codes (int32) of rows by their texts, and names of the groups. A text of no group is a DatasetError."""
    values = values.cat.remove_unused_categories()
    used = [*values.cat.categories]
    listed: Mapping[str, Any] = sensitive.groups or {value: (value,) for value in used if value}
    owner = {value: code for code, of in enumerate(listed.values()) if of != "*" for value in of}
    # '*' means every other value, but not an empty cell.
    rest = next((code for code, of in enumerate(listed.values()) if of == "*"), -1)
    group_of = np.array([owner.get(value, rest if value else -1) for value in used] or [-1], np.int32)
    codes = group_of[values.cat.codes]
    unknown = values[codes < 0]
    if len(unknown):
        first, *others = unknown.unique()
        more = f", and also {', '.join(map(repr, others[:5]))}" if others else ""
        raise DatasetError(
            f"{place}: unknown group value {first!r}; expected {', '.join(map(repr, owner)) or 'a value'}; found "
            f"{first!r} in {count(int((unknown == first).sum()), 'row')}, first in data row {unknown.index[0] + 1}"
            f"{more}. Fix: add the value to 'sensitive.groups', or list it under 'drop_rows'"
        )
    return codes, tuple(listed)


class Table:
    """A file of a data set."""

    def __init__(self, path: Path, reader: ReaderSpec) -> None:
        self.path, self.reader = path, reader
        form = Format(reader.sep, reader.decimal, reader.encoding, header=reader.header, labels=reader.names)
        self.opened = open_table(path, form)
        self.names = [name.strip() for name in self.opened.names]  # of all columns
        for note in self.opened.notes:
            log.warning("%s: %s", path.name, note)

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
        numbers: Sequence[int],
        texts: Sequence[int],
        drop_rows: Mapping[ColumnRef, Sequence[str]] | None = None,
    ) -> tuple[pd.DataFrame, dict[str, Any]]:
        """Columns of numbers and of text without the rows to leave out, and what the card says of these.

        A DatasetError names the first cell that is not a finite number.
        """
        drops = {self.place(column): listed for column, listed in (drop_rows or {}).items()}
        zeros = self.reader.as_zero
        # A long file is read in parts, and a column can be numbers in one part and text in another, such as 1.5 and
        # '1,5', unless all of it is read as text.
        as_texts = {*texts, *drops, *(numbers if zeros or self.reader.decimal != "." else ())}
        frame = self.opened.read({*numbers, *as_texts}, as_texts)
        if frame.empty:
            raise TableError(f"{self.path} has a header and no rows")
        words = {i: _texts(frame[i]) for i in as_texts}
        # A row is dropped under the first of its values that is listed.
        kept, dropped = np.ones(len(frame), dtype=bool), list[dict[str, object]]()
        for i, value in ((i, value) for i, listed in drops.items() for value in listed):
            hit = (words[i] == value).to_numpy() & kept
            dropped.append({"column": self.names[i], "value": value, "rows": int(hit.sum())})
            kept &= ~hit
        columns = {i: words[i][kept].cat.remove_unused_categories() for i in texts}
        for i in numbers:
            cells = frame[i]
            if cells.dtype.kind in "iuf":
                values = (cells.fillna(0.0) if "" in zeros else cells).astype(float)[kept]
            else:
                of = (words[i] if i in words else _texts(cells)).cat
                names = [*of.categories]
                _, of_names = find_reading(names, np.bincount(of.codes), self.reader.decimal, self.names[i])
                of_names[[name in zeros for name in names]] = 0.0
                values = pd.Series(of_names[of.codes[kept]], frame.index[kept])
            wrong = values[~np.isfinite(values)]
            if len(wrong):
                row = wrong.index[0]
                cell = self.read([], [i])[0].loc[row, i]
                raise DatasetError(
                    f"file '{self.path.name}', column '{self.names[i]}': a column of numbers has cells that are not "
                    f"finite numbers; found {cell!r} in data row {row + 1}, {count(len(wrong), 'such cell')} in all. "
                    "Fix: list the column under 'categorical', or the values of a sensitive one under 'groups', leave "
                    "it out of 'features', or list the value under 'drop_rows'"
                )
            columns[i] = values
        card = {"rows_read": len(frame), "dropped": dropped}
        return pd.DataFrame(columns, index=frame.index[kept], copy=False), card
