"""Tables of data sets: their features and groups before scaling.

A table is delimited text whose columns are known by name and number. Features are listed, or they are found as by
`fairclust fit`; the rest is the same for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairclust.datasets.errors import DatasetError
from fairclust.datasets.generate import Generated
from fairclust.datasets.spec import MEANING, ColumnRef, DatasetSpec, ReaderSpec, SensitiveSpec
from fairclust.group_encoding import Values, combination_names, cross_codes, cut_column, natural_codes
from fairclust.messages import count, nearest, shortened
from fairclust.tables.columns import Asked
from fairclust.tables.preparation import decide
from fairclust.tables.reading import arff_head, read_table
from fairclust.tables.text import Format, TableError, number_pattern, open_rows
from fairclust.tables.values import factor, to_numbers

ADVICE = {
    "delimiter": "is {!r} the right 'sep' in 'reader'?",
    "encoding": "set 'encoding' in 'reader' to {}",
    "decimal": "set 'decimal' in 'reader' to one of them",
    "header": "Fix: set 'header: false' in 'reader', and name the columns by 'names' or by numbers from 0",
}

# Keys of `reader` that a table may have whose features are found; with others, every column must be a number.
_READER = {"sep", "decimal", "thousands", "encoding", "header"}
# What each `scale` of a data set is called by `make_preparation`. Other scales come after the preparation.
_SCALES = {("standardize",): "standardize", ("standardize", "l2"): "l2"}


class _Columns(NamedTuple):
    """The columns of a table by their role."""

    names: list[str]  # of all columns of the file
    kept: np.ndarray  # (n_read,), which rows of the file are used
    X: np.ndarray  # (n_kept, n_features)
    features: tuple[str, ...]
    texts: dict[str | int, Values]  # the sensitive columns, the key and the truth, as the data set names them
    card: dict[str, Any]
    categories: tuple[tuple[str, ...], ...] = ()  # for the last columns of X, which hold codes


def read_rows(spec: DatasetSpec, files: list[Path]) -> Generated:
    """The rows of a table.

    DatasetError or TableError if a column is missing, a cell of a listed feature is no number, cells are missing
    without a rule for them, no feature is left, or a group is unknown.
    """
    listed = {"features", "categorical", "ordered", "edges"} & spec.model_fields_set
    plain = spec.reader.header and spec.reader.format == "csv" and spec.reader.model_fields_set <= _READER
    found = (_found if plain and not listed else _listed)(spec, files[0])
    columns, numbers = {}, {}
    for column in spec.sensitive_columns:
        if column.source is None:
            own, values = found.names[position(column.column, found.names, "")], found.texts[column.column]
        else:
            own, values = _groups_of_file(spec, column, files[1], found)
        place = f"file '{files[-1].name}', column '{own}'"
        if column.bins is None:
            columns[own] = code_groups(column, values, found.kept, place)
            continue
        cells = to_numbers(values)
        wrong = np.flatnonzero(found.kept & ~np.isfinite(cells))
        if len(wrong):
            raise DatasetError(
                f"{place}: a sensitive column with 'bins' holds a value that is no number; found "
                f"{values.at(wrong[0])!r} in data row {wrong[0] + 1}. Fix: list the value under 'drop_rows', or use "
                "'groups' instead of 'bins'"
            )
        numbers[own] = cells[found.kept]
        ranges = cut_column(own, numbers[own], column.bins)
        columns[own] = ranges.encode(numbers[own], len(numbers[own])), tuple(map(str, ranges.values))
    codes, values_of = zip(*columns.values(), strict=True)
    groups, group_names = codes[0], values_of[0]
    if len(columns) > 1:
        groups, cells = cross_codes(codes, [len(of) for of in values_of])
        group_names = tuple(combination_names(cells, values_of))
    return Generated(
        found.X,
        groups,
        found.features,
        group_names,
        truth=None if spec.truth is None else natural_codes(found.texts[spec.truth], found.kept)[0],
        categories=found.categories,
        columns=columns if len(columns) > 1 else {},
        numbers=numbers,
        card={"rows_read": len(found.kept), **found.card},
    )


def _asked(spec: DatasetSpec) -> list[ColumnRef]:
    """The columns of the table that are needed as text: sensitive columns, the key, and the truth."""
    columns = [column.column if column.source is None else column.key for column in spec.sensitive_columns]
    return [column for column in (*columns, spec.truth) if column is not None]


def _listed(spec: DatasetSpec, file: Path) -> _Columns:
    """The columns of a table whose features are listed, or are all columns that no other key names."""
    table = TableFile(file, spec.reader)
    asked = {column: table.position(column) for column in _asked(spec)}
    keys = [column.key for column in spec.sensitive_columns]
    others = [i for column, i in asked.items() if column not in keys]
    truth = [] if spec.truth is None else [asked[spec.truth]]
    ordered, categorical = (list(map(table.position, of)) for of in (spec.ordered, spec.categorical))
    if spec.features == "all":
        features = [i for i in range(len(table.names)) if i not in (*others, *ordered, *categorical)]
    else:
        features = list(map(table.position, spec.features))
    listed = [*features, *ordered, *categorical, *truth]
    if {*others} & {*features, *ordered} or len({*listed}) < len(listed):
        raise DatasetError(
            f"file '{file.name}': 'features' lists a column twice, or the sensitive column, or the truth; found "
            f"{[table.names[i] for i in listed]}. Fix: list each feature once, as numeric or categorical; the groups "
            "must not be a feature"
        )
    drops = {table.position(column): values for column, values in spec.drop_rows.items()}
    read = table.read(features, [*ordered, *categorical, *asked.values()], drops)
    coded = [natural_codes(read.texts[i], read.kept) for i in (*ordered, *categorical)]
    words = [values for _, values in coded]
    levels = {table.names[i]: list(values) for i, values in zip(ordered, words, strict=False)}
    return _Columns(
        table.names,
        read.kept,
        np.column_stack([read.numbers, *(codes for codes, _ in coded)]) if coded else read.numbers,
        tuple(table.names[i] for i in (*features, *ordered, *categorical)),
        {column: read.texts[i] for column, i in asked.items()},
        {"dropped": read.dropped, **({"ordered": levels} if levels else {})},
        tuple(words[len(ordered) :]),
    )


def _found(spec: DatasetSpec, file: Path) -> _Columns:
    """The columns of a table whose features are not listed. They are found and prepared as by `fairclust fit`."""
    reader = spec.reader
    inside = [column.column for column in spec.sensitive_columns if column.source is None]
    frame = read_table(
        file,
        delimiter=reader.delimiter,
        decimal=reader.decimal if "decimal" in reader.model_fields_set else None,
        encoding=reader.encoding,
        values=[column for column in inside if isinstance(column, str)],
        advice=ADVICE,
    )
    names = list(frame.columns)
    asked = {column: names[position(column, names, file.name)] for column in [*_asked(spec), *spec.drop_rows]}
    texts = {column: _texts(frame[own]) for column, own in asked.items()}
    drops = {str(column): (texts[column], values) for column, values in spec.drop_rows.items()}
    keep, dropped = dropped_rows(drops, len(frame))
    scale = _SCALES.get(spec.scale, "none")
    sensitive = [asked[column] for column in inside]
    try:
        found = decide(
            frame[keep],
            sensitive,
            exclude=[asked[column] for column in _asked(spec)],
            # Groups that are listed are values, and ranges are cut after this.
            asked=Asked(categories=sensitive, thousands=reader.thousands, decimal=frame.attrs["decimal"]),
            scale=scale,
            missing="impute" if spec.missing == "impute" else "drop",
        )
    except TableError as error:
        raise DatasetError(
            f"file '{file.name}': {error}. Fix: correct the file, or list 'features'"
        ) from None
    preparation = found.preparation
    lacking = ", ".join(f"{column} ({count:,})" for column, count in found.lacking.items())
    if lacking and spec.missing == "error":
        raise DatasetError(
            f"file '{file.name}': cells are missing; expected a value in every cell; found missing cells in "
            f"{shortened(lacking, 1000)}. Fix: set 'missing: drop' to leave out their rows, or 'missing: impute' to "
            "fill features with the median or the most frequent category, or list 'features' without these columns"
        )
    keep &= (preparation.reasons(frame, preparation.groups(frame)) == "").to_numpy()
    left_out = {column.name: column.note for column in found.columns if not column.is_feature}
    keys = [asked[column.key] for column in spec.sensitive_columns if column.key is not None]
    left_out |= dict.fromkeys(keys, "the key by which the groups are joined")
    notes = [*frame.attrs["notes"], *(f"{column}: left out: {why}" for column, why in left_out.items())]
    if lacking:
        notes.append(f"missing cells ({spec.missing}): {lacking}")
    notes += frame.attrs["spellings"]
    card = {"dropped": dropped, "left_out": left_out, "missing": spec.missing, "notes": notes}
    if scale != "none" or not spec.scale:
        card["scaling"] = [{"step": step, "meaning": MEANING[step]} for step in spec.scale]
    return _Columns(
        names,
        keep,
        preparation.transform(frame[keep]),
        tuple(map(str, preparation.pipeline.get_feature_names_out())),
        texts,
        card,
    )


def _texts(cells: pd.Series) -> Values:
    """A column as text; a missing cell is an empty text."""
    return factor(cells.astype(object).where(cells.notna(), ""))


def groups_reader(spec: DatasetSpec, sensitive: SensitiveSpec, path: Path) -> TableFile:
    """The file of the groups."""
    return TableFile(path, sensitive.reader or spec.reader.model_copy(update={"names": ()}))


def _groups_of_file(
    spec: DatasetSpec, sensitive: SensitiveSpec, path: Path, table: _Columns
) -> tuple[str, Values]:
    """The column of the groups of the table's rows in a file of their own: its name and its values.

    Rows are joined by the key, or else they are in the table's order.
    """
    file = groups_reader(spec, sensitive, path)
    place = file.position(sensitive.column)
    places = [place, *([] if sensitive.key is None else [file.position(sensitive.key)])]
    texts = file.read([], places).texts
    groups, own = texts[place], file.names[place]
    if sensitive.key is None:
        shared = sorted({*table.names} & {*file.names}) if spec.reader.header and file.reader.header else []
        if shared:
            raise DatasetError(
                f"file '{path.name}', column '{shared[0]}': the file of the groups has a column of the table, so its "
                f"rows may be in another order. Fix: join the two by 'key: {shared[0]}' in 'sensitive', or remove the "
                "column from the file"
            )
        if len(groups.entries) != len(table.kept):
            raise DatasetError(
                f"file '{path.name}', column '{own}': the file of the groups has another number of rows than the "
                f"table; expected {count(len(table.kept), 'row')}; found {len(groups.entries):,}. Fix: use the file "
                "that belongs to the table; check 'header' of both"
            )
        return own, groups
    ours, theirs = (pd.Series(of.at(slice(None))) for of in (table.texts[sensitive.key], texts[places[1]]))
    at = pd.Index(theirs.drop_duplicates()).get_indexer(ours)
    for what, keys in (
        ("the table has values of the key more than once", ours[ours.duplicated()]),
        ("the file of the groups has values of the key more than once", theirs[theirs.duplicated()]),
        ("rows of the table have no group", ours[at < 0]),
    ):
        if len(keys):
            shown = shortened(", ".join(map(repr, keys[:5])), 300) + (" and more" if len(keys) > 5 else "")
            raise DatasetError(
                f"file '{path.name}', column '{sensitive.key}': {what}; found {count(len(keys), 'value')}: {shown}. "
                "Fix: correct the two files, or name the column that both share as 'key'"
            )
    return own, Values(groups.entries[at], groups.names)


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


class Table(NamedTuple):
    """The columns that were read."""

    numbers: np.ndarray  # (n_kept, n_numbers), in the order in which they were asked for
    # The columns that are not plain numbers, by number, with all rows and without blanks around the cells.
    texts: dict[int, Values]
    kept: np.ndarray  # (n_read,)
    dropped: list[dict[str, object]]  # column, value, number of rows


class TableFile:
    """A delimited text file. What is wrong with it is a TableError or a DatasetError."""

    def __init__(self, path: Path, reader: ReaderSpec):
        self.path, self.reader = path, reader
        head, self.names = arff_head(path, reader.encoding) if reader.format == "arff" else (0, [])
        named = reader.header and reader.format == "csv"
        self._format = Format(
            delimiter=reader.delimiter,
            decimal=reader.decimal,
            encoding=reader.encoding,
            quote=reader.quotechar,
            header=named,
            skip_blanks=reader.skipinitialspace,
            skip_lines=head,
            advice=ADVICE,
        )
        if reader.delimiter is None:
            delimiter = ","
            # What is wrong with the file is said below.
            with suppress(TableError), open_rows(path, self._format, path.name) as rows:
                # A blank must be stated, because a file of groups can be one column with names of several words.
                delimiter = rows.delimiter.replace(" ", ",")
            self._format = self._format._replace(delimiter=delimiter)
        with open_rows(path, self._format, path.name) as rows:
            width = len(rows.first)
            if named and width > len(rows.header):
                raise rows.differ()
        if named:
            self.names = [cell.strip() for cell in rows.header]
        elif not self.names:
            self.names = list(reader.names) or [f"column {i}" for i in range(width)]
            if len(self.names) != width:
                raise DatasetError(
                    f"file '{path.name}': 'reader.names' does not fit the file; expected {count(width, 'name')}; found "
                    f"{len(self.names)}. Fix: name every column, or none and use numbers"
                )

    def position(self, column: str | int) -> int:
        """The number of a column given by name or number."""
        return position(column, self.names, self.path.name)

    def read(
        self,
        numbers: Sequence[int],
        texts: Sequence[int] = (),
        drop_rows: Mapping[int, Sequence[str]] | None = None,
    ) -> Table:
        """Read columns of numbers, and other columns as text.

        Rows whose cell in a column of `drop_rows` has one of its values are left out. A DatasetError names the first
        cell that is not a finite number.
        """
        drops, zeros = dict(drop_rows or {}), list(self.reader.as_zero)
        # pandas reads plain numbers, which takes little time and memory. It reads a long file in parts, so a column can
        # be numbers in one part and text in another. With a decimal comma, such a column would mix 1.5 and 1,5, so all
        # of it is read as text.
        plain = {*numbers} - {*texts, *drops} if self.reader.decimal == "." else set()
        types = dict.fromkeys({*numbers, *texts, *drops} - plain, str)
        with open_rows(self.path, self._format, self.path.name) as rows:
            frame = rows.frame(types, dict.fromkeys(plain, zeros), columns={*plain, *types})
        found = {i: factor(frame[i]) for i in frame if frame[i].dtype.kind not in "iuf"}
        kept, dropped = dropped_rows({self.names[i]: (found[i], of) for i, of in drops.items()}, len(frame))
        X = np.empty((int(kept.sum()), len(numbers)))
        for j, i in enumerate(numbers):
            cells = frame[i]
            if i in found:
                words = np.array([("0" if word in zeros else word) for word in found[i].words], dtype=object)
                values = Values(found[i].entries, words)
                cells = pd.Series(to_numbers(values, self.reader.decimal, self.reader.thousands))
            # Only the cells listed in `as_zero` are missing.
            X[:, j] = cells.mask(frame[i].isna(), 0.0).to_numpy()[kept]
        wrong = ~np.isfinite(X)
        if wrong.any():
            row, j = np.argwhere(wrong)[0]
            row, i = int(np.flatnonzero(kept)[row]), numbers[j]
            cell = str(self.read([], [i]).texts[i].at(row))
            raise DatasetError(
                f"file '{self.path.name}', column '{self.names[i]}': a feature has cells that are not finite "
                f"numbers; found {cell!r} in data row {row + 1}, {count(int(wrong[:, j].sum()), 'such cell')} in all"
                f"{self._other_signs(cell)}. Fix: leave the column out of 'features', or list the value under "
                "'drop_rows'"
            )
        return Table(X, found, kept, dropped)

    def _other_signs(self, cell: str) -> str:
        """The signs in `reader` with which a cell would be a number, if there are any."""
        own, other = (",", ".") if self.reader.decimal == "," else (".", ",")
        for thousands, decimal in ((other, own), ("'", own), (" ", own), (own, other)):
            if number_pattern(thousands, decimal).fullmatch(cell):
                return f", which decimal {decimal!r} and thousands {thousands!r} in 'reader' would read"
        return ""


def position(column: str | int, names: Sequence[str], file: str) -> int:
    """The number of a column given by name or number. None, or two of that name, is a DatasetError."""
    found = [i for i, name in enumerate(names) if column in (i, name)]
    if len(found) == 1:
        return found[0]
    raise DatasetError(
        f"file '{file}', column '{column}': the header has this name twice. Fix: use a number: {found}"
        if found
        else f"file '{file}', column '{column}': no such column; expected a name, or a number from 0 to "
        f"{len(names) - 1}. Fix: correct the name ({nearest(str(column), names)}), or check 'sep' and 'header' in "
        "'reader'"
    )


def dropped_rows(
    drops: Mapping[str, tuple[Values, Sequence[str]]], n_rows: int
) -> tuple[np.ndarray, list[dict[str, object]]]:
    """Which rows are kept, because no column has one of the values listed for it, and how many others each value has.

    A row counts under the first of its values. A missing cell is an empty text.
    """
    kept, dropped = np.ones(n_rows, dtype=bool), []
    for column, (cells, listed) in drops.items():
        for value in listed:
            hit = np.array([text == value for text in cells.words])[cells.entries] & kept
            dropped.append({"column": column, "value": value, "rows": int(hit.sum())})
            kept &= ~hit
    return kept, dropped
