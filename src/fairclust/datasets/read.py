"""Tables of data sets: their features and groups before scaling.

Features are listed, or they are found as by `fairclust fit`; the rest is the same for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairclust.datasets.errors import DatasetError
from fairclust.datasets.generate import Generated
from fairclust.datasets.scaling import MEANING
from fairclust.datasets.spec import ColumnRef, DatasetSpec, SensitiveSpec
from fairclust.datasets.table import ADVICE, TableFile, dropped_rows, position
from fairclust.group_encoding import Values, combination_names, cross_codes, cut_column, natural_codes
from fairclust.messages import shortened
from fairclust.tables.preparation import decide
from fairclust.tables.reading import read_table
from fairclust.tables.text import TableError
from fairclust.tables.values import factor, to_numbers

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
    reader, given = spec.reader, spec.reader.model_fields_set
    inside = [column.column for column in spec.sensitive_columns if column.source is None]
    frame = read_table(
        file,
        delimiter=reader.sep if "sep" in given else None,
        decimal=reader.decimal if "decimal" in given else None,
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
            categories=sensitive,
            scale=scale,
            missing="impute" if spec.missing == "impute" else "drop",
            thousands=reader.thousands,
            decimal=frame.attrs["decimal"],
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
                f"table; expected {len(table.kept):,} rows; found {len(groups.entries):,}. Fix: use the file that "
                "belongs to the table; check 'header' of both"
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
                f"file '{path.name}', column '{sensitive.key}': {what}; found {len(keys):,} values: {shown}. Fix: "
                "correct the two files, or name the column that both share as 'key'"
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
            f"{unknown[0]!r} in {len(rows):,} rows, first in data row {rows[0] + 1}{more}. Fix: add the value to "
            "'sensitive.groups', or list it under 'drop_rows'"
        )
    return group_of[codes], tuple(listed)
