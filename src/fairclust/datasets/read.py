"""Tables of data sets: their features and groups before scaling.

Features are listed, or they are found as by `fairclust fit`; the rest is the same for both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairclust.datasets.errors import DatasetError, problem
from fairclust.datasets.generate import Generated
from fairclust.datasets.spec import ColumnRef, DatasetSpec, SensitiveSpec
from fairclust.datasets.table import ADVICE, TableFile, dropped_rows
from fairclust.group_encoding import Values, combination_names, cross_codes, cut_column, natural_codes
from fairclust.messages import shortened
from fairclust.tables.preparation import decide
from fairclust.tables.reading import read_table
from fairclust.tables.text import TableError, as_number
from fairclust.tables.values import factor

# Keys of `reader` that a table may have whose features are found; with others, every column must be a number.
_READER = {"sep", "decimal", "thousands", "encoding", "header"}
# What each `scale` of a data set is called by `make_preparation`. Other scales come after the preparation.
_SCALES = {("standardize",): "standardize", ("standardize", "l2"): "l2"}


@dataclass
class _Columns:
    """The columns of a table by their role."""

    names: list[str]  # of all columns of the file
    kept: np.ndarray  # (n_read,), which rows of the file are used
    dropped: list[dict[str, object]]  # column, value and number of rows for each reason to drop a row
    X: np.ndarray  # (n_kept, n_features)
    features: tuple[str, ...]
    texts: dict[str | int, Values]  # the sensitive columns, the key and the truth, as the data set names them
    categories: tuple[
        tuple[str, ...], ...
    ] = ()  # for the last columns of X, which hold codes and are not scaled
    card: dict[str, Any] = field(default_factory=dict)
    is_scaled: bool = False


def read_rows(
    name: str, spec: DatasetSpec, files: list[Path]
) -> tuple[Generated, int, list[dict[str, object]], dict[str, Any], bool]:
    """The data, the number of rows read, what was dropped, entries for the card, and whether features are scaled.

    DatasetError if a column is missing, a cell of a listed feature is no number, cells are missing without a rule for
    them, no feature is left, or a group is unknown.
    """
    found = (_found if _finds_roles(spec) else _listed)(name, spec, files[0])
    sensitive = spec.sensitive_columns
    if sensitive[0].source is not None:
        read = [_groups_of_file(name, spec, sensitive[0], files[1], found)]
    else:
        names = [_shown(column.column, found.names) for column in sensitive]
        read = [(found.texts[column.column], own) for column, own in zip(sensitive, names, strict=True)]
    columns, numbers = {}, {}
    for column, (values, own) in zip(sensitive, read, strict=True):
        where = {"dataset": name, "file": files[-1].name, "column": own}
        if column.bins is None:
            columns[own] = _code_groups(column, values, found.kept, where)
            continue
        numbers[own] = _read_numbers(values, found.kept, where)
        ranges = cut_column(own, numbers[own], column.bins)
        columns[own] = ranges.encode(numbers[own], len(numbers[own])), tuple(map(str, ranges.values))
    codes, values_of = zip(*columns.values(), strict=True)
    groups, group_names = codes[0], values_of[0]
    if len(columns) > 1:
        groups, cells = cross_codes(codes, [len(of) for of in values_of])
        try:
            group_names = tuple(combination_names(cells, values_of))
        except ValueError as error:
            raise problem(str(error), dataset=name, file=files[0].name) from None
    made = Generated(
        found.X,
        groups,
        found.features,
        group_names,
        truth=None if spec.truth is None else natural_codes(found.texts[spec.truth], found.kept)[0],
        categories=found.categories,
        columns=columns if len(columns) > 1 else {},
        numbers=numbers,
    )
    return made, len(found.kept), found.dropped, found.card, found.is_scaled


def _finds_roles(spec: DatasetSpec) -> bool:
    """Whether the role of each column is found, because the table has a header and its features are not listed."""
    listed = {"features", "categorical", "ordered", "edges"} & spec.model_fields_set
    plain = spec.reader.header and spec.reader.format == "csv" and spec.reader.model_fields_set <= _READER
    return not listed and plain


def _asked(spec: DatasetSpec) -> list[ColumnRef]:
    """The columns of the table that are needed as text: sensitive columns, the key, and the truth."""
    columns = [column.column if column.source is None else column.key for column in spec.sensitive_columns]
    return [column for column in (*columns, spec.truth) if column is not None]


def _shown(column: ColumnRef, names: list[str]) -> str:
    return names[column] if isinstance(column, int) else column


def _listed(name: str, spec: DatasetSpec, file: Path) -> _Columns:
    """The columns of a table whose features are listed, or are all columns that no other key names."""
    table = TableFile(file, spec.reader, name)
    inside, ordered, categorical, truth = (
        [table.position(column) for column in columns]
        for columns in (
            [column.column for column in spec.sensitive_columns if column.source is None],
            spec.ordered,
            spec.categorical,
            [] if spec.truth is None else [spec.truth],
        )
    )
    if spec.features == "all":
        others = {*inside, *ordered, *categorical, *truth}
        features = [i for i in range(len(table.names)) if i not in others]
    else:
        features = [table.position(column) for column in spec.features]
    listed = [*features, *ordered, *categorical, *truth]
    if {*inside} & {*features, *ordered} or len({*listed}) < len(listed):
        raise problem(
            "'features' lists a column twice, or the sensitive column, or the truth",
            dataset=name,
            file=file.name,
            found=[table.names[i] for i in listed],
            fix="list each feature once, as numeric or categorical; the groups must not be a feature",
        )
    asked = {column: table.position(column) for column in _asked(spec)}
    drops = {table.position(column): values for column, values in spec.drop_rows.items()}
    read = table.read(features, [*ordered, *categorical, *asked.values()], drops)
    coded = [natural_codes(read.texts[i], read.kept) for i in (*ordered, *categorical)]
    words = [values for _, values in coded]
    levels = {table.names[i]: list(values) for i, values in zip(ordered, words, strict=False)}
    return _Columns(
        table.names,
        read.kept,
        read.dropped,
        np.column_stack([read.numbers, *(codes for codes, _ in coded)]) if coded else read.numbers,
        tuple(table.names[i] for i in (*features, *ordered, *categorical)),
        {column: read.texts[i] for column, i in asked.items()},
        tuple(words[len(ordered) :]),
        {"ordered": levels} if levels else {},
    )


def _found(name: str, spec: DatasetSpec, file: Path) -> _Columns:
    """The columns of a table whose features are not listed. They are found and prepared as by `fairclust fit`."""
    reader, where = spec.reader, {"dataset": name, "file": file.name}
    given = reader.model_fields_set
    inside = [column.column for column in spec.sensitive_columns if column.source is None]
    try:
        frame = read_table(
            file,
            delimiter=reader.sep if "sep" in given else None,
            decimal=reader.decimal if "decimal" in given else None,
            encoding=reader.encoding,
            values=[column for column in inside if isinstance(column, str)],
            advice=ADVICE,
        )
    except TableError as error:
        raise problem(str(error), **where) from None
    asked = {column: _column(frame, column, where) for column in [*_asked(spec), *spec.drop_rows]}
    texts = {column: _texts(frame[own]) for column, own in asked.items()}
    drops = {str(column): (texts[column], values) for column, values in spec.drop_rows.items()}
    keep, dropped = dropped_rows(drops, len(frame))
    scale = _SCALES.get(spec.scale, "none")
    names = [asked[column] for column in inside]
    try:
        found = decide(
            frame[keep],
            names,
            exclude=[asked[column] for column in _asked(spec)],
            # Groups that are listed are values, and ranges are cut after this.
            categories=names,
            scale=scale,
            missing="impute" if spec.missing == "impute" else "drop",
            thousands=reader.thousands,
            decimal=frame.attrs["decimal"],
        )
    except TableError as error:
        raise problem(str(error), **where, fix="correct the file, or list 'features'") from None
    preparation, lacking = found.preparation, found.lacking
    if lacking and spec.missing == "error":
        cells = ", ".join(f"{column} ({count:,})" for column, count in lacking.items())
        raise problem(
            "cells are missing",
            **where,
            expected="a value in every cell",
            found=f"missing cells in {shortened(cells, 1000)}",
            fix="set 'missing: drop' to leave out their rows, or 'missing: impute' to fill features with the median or "
            "the most frequent category, or list 'features' without these columns",
        )
    keep &= (preparation.reasons(frame, preparation.groups(frame)) == "").to_numpy()
    left_out = {column.name: column.note for column in found.columns if not column.is_feature}
    keys = [asked[column.key] for column in spec.sensitive_columns if column.key is not None]
    left_out |= dict.fromkeys(keys, "the key by which the groups are joined")
    notes = [*frame.attrs["notes"], *(f"{column}: left out: {why}" for column, why in left_out.items())]
    if lacking:
        cells = ", ".join(f"{column} {count:,}" for column, count in lacking.items())
        notes.append(f"missing cells ({spec.missing}): {cells}")
    return _Columns(
        list(frame.columns),
        keep,
        dropped,
        preparation.transform(frame[keep]),
        tuple(map(str, preparation.pipeline.get_feature_names_out())),
        texts,
        card={"left_out": left_out, "missing": spec.missing, "notes": [*notes, *frame.attrs["spellings"]]},
        is_scaled=scale != "none" or not spec.scale,
    )


def _column(frame: pd.DataFrame, column: ColumnRef, where: dict[str, Any]) -> str:
    """The name of a column that is given by name or number."""
    if column in (range(len(frame.columns)) if isinstance(column, int) else frame.columns):
        return str(_shown(column, list(frame.columns)))
    raise problem(
        "no such column",
        **where,
        column=str(column),
        expected=f"one of {shortened(', '.join(map(str, frame.columns)), 300)}",
        fix="correct the name, or check 'sep' in 'reader'",
    )


def _texts(cells: pd.Series) -> Values:
    """A column as text; a missing cell is an empty text."""
    return factor(cells.astype(object).where(cells.notna(), ""))


def _groups_of_file(
    name: str, spec: DatasetSpec, sensitive: SensitiveSpec, path: Path, table: _Columns
) -> tuple[Values, str]:
    """The groups of the table's rows out of a file of their own, and the name of their column.

    Rows are joined by the key, or else they are in the table's order.
    """
    reader = sensitive.reader or spec.reader.model_copy(update={"names": ()})
    file = TableFile(path, reader, name)
    place = file.position(sensitive.column)
    places = [place, *([] if sensitive.key is None else [file.position(sensitive.key)])]
    texts = file.read([], places).texts
    groups, own = texts[place], file.names[place]
    where: dict[str, Any] = {"dataset": name, "file": path.name}
    if sensitive.key is None:
        shared = sorted(set(table.names) & set(file.names)) if spec.reader.header and reader.header else []
        if shared:
            raise problem(
                "the file of the groups has a column of the table, so its rows may be in another order",
                **where,
                column=shared[0],
                fix=f"join the two by 'key: {shared[0]}' in 'sensitive', or remove the column from the file",
            )
        if len(groups.entries) != len(table.kept):
            raise problem(
                "the file of the groups has another number of rows than the table",
                **where,
                column=own,
                expected=f"{len(table.kept):,} rows",
                found=f"{len(groups.entries):,}",
                fix="use the file that belongs to the table; check 'header' of both",
            )
        return groups, own
    ours, theirs = (pd.Series(of.at(slice(None))) for of in (table.texts[sensitive.key], texts[places[1]]))
    for whose, keys in (("the table", ours), ("the file of the groups", theirs)):
        if keys.duplicated().any():
            raise _of_key(
                f"{whose} has values of the key more than once", sensitive, keys[keys.duplicated()], where
            )
    at = pd.Index(theirs).get_indexer(ours)
    if (at < 0).any():
        raise _of_key("rows of the table have no group", sensitive, ours[at < 0], where)
    return Values(groups.entries[at], groups.names), own


def _of_key(what: str, sensitive: SensitiveSpec, keys: pd.Series, where: dict[str, Any]) -> DatasetError:
    shown = ", ".join(map(repr, keys[:5]))
    return problem(
        what,
        **where,
        column=str(sensitive.key),
        found=f"{len(keys):,} values: {shortened(shown, 300)}{' and more' if len(keys) > 5 else ''}",
        fix="correct the two files, or name the column that both share as 'key'",
    )


def _code_groups(
    sensitive: SensitiveSpec, values: Values, kept: np.ndarray, where: dict[str, Any]
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Group codes (int32) of the kept rows, and names of the groups. A value of no group is a DatasetError."""
    codes, used = natural_codes(values, kept)
    listed = sensitive.groups or {value: (value,) for value in used if value}
    owner = {value: code for code, of in enumerate(listed.values()) if of != "*" for value in of}
    # '*' means every other value, but not an empty cell.
    rest = next((code for code, of in enumerate(listed.values()) if of == "*"), -1)
    group_of = np.array([owner.get(value, rest if value else -1) for value in used] or [-1], np.int32)
    unknown = [value for value in values.words if value in used and group_of[used.index(value)] < 0]
    if unknown:
        rows = np.flatnonzero(kept)[codes == used.index(unknown[0])]
        raise problem(
            f"unknown group value {unknown[0]!r}",
            **where,
            expected=", ".join(repr(known) for known in owner) or "a value",
            found=f"{unknown[0]!r} in {len(rows):,} rows, first in data row {rows[0] + 1}"
            + (f", and also {', '.join(map(repr, unknown[1:6]))}" if unknown[1:] else ""),
            fix="add the value to 'sensitive.groups', or list it under 'drop_rows'",
        )
    return group_of[codes], tuple(listed)


def code_nodes(
    sensitive: SensitiveSpec, values: Values, where: dict[str, Any]
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Group codes of all nodes of a graph, and names of the groups."""
    return _code_groups(sensitive, values, np.ones(len(values.entries), dtype=bool), where)


def _read_numbers(values: Values, kept: np.ndarray, where: dict[str, Any]) -> np.ndarray:
    """The kept rows of a sensitive column of numbers. A value that is not a finite number is a DatasetError."""
    found = [as_number(text) for text in values.words]
    numbers = np.array([np.nan if number is None else number for number in found])[values.entries]
    wrong = np.flatnonzero(kept & ~np.isfinite(numbers))
    if len(wrong):
        raise problem(
            "a sensitive column with 'bins' holds a value that is no number",
            **where,
            found=f"{values.at(wrong[0])!r} in data row {wrong[0] + 1}",
            fix="list the value under 'drop_rows', or use 'groups' instead of 'bins'",
        )
    return numbers[kept]
