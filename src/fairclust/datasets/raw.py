"""Tables whose features are not listed. They are read and prepared as by `fairclust fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairclust.datasets.errors import DatasetError, problem
from fairclust.datasets.groups import code_groups, read_numbers
from fairclust.datasets.spec import ColumnRef, DatasetSpec, SensitiveSpec
from fairclust.datasets.table import Factor, TableFile
from fairclust.group_encoding import natural, value_text
from fairclust.messages import shortened
from fairclust.tables.columns import understand
from fairclust.tables.errors import TableError
from fairclust.tables.preparation import make_preparation
from fairclust.tables.reading import read_table

# Keys of `reader` that tables of this kind may have; with others, every column must be a number.
_READER = {"sep", "decimal", "thousands", "encoding", "header"}
# What each `scale` of a data set is called there. Other scales come after the preparation.
_SCALES = {("standardize",): "standardize", ("standardize", "l2"): "l2"}


def is_raw(spec: DatasetSpec) -> bool:
    """Whether the role of each column is found, because the table has a header and its features are not listed."""
    listed = {"features", "categorical", "ordered", "edges"} & spec.model_fields_set
    plain = spec.reader.header and spec.reader.format == "csv" and spec.reader.model_fields_set <= _READER
    return spec.source is not None and not listed and plain


def read_raw(name: str, spec: DatasetSpec, files: list[Path]) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """The parts of a `Generated`, entries for the card, and whether the features are scaled already.

    DatasetError if a column is missing, cells are missing without a rule for them, or no feature is left.
    """
    reader = spec.reader
    inside = [column for column in spec.sensitive_columns if column.source is None]
    try:
        frame = read_table(
            files[0],
            delimiter=reader.sep if "sep" in reader.model_fields_set else None,
            decimal=reader.decimal,
            encoding=reader.encoding,
            values=[column.column for column in inside if isinstance(column.column, str)],
        )
    except TableError as error:
        raise problem(str(error), dataset=name, file=files[0].name) from None
    notes = list(frame.attrs["notes"])
    rows_read = len(frame)
    keep, dropped = np.ones(rows_read, dtype=bool), []
    for column, values in spec.drop_rows.items():
        cells = (
            frame[_column(name, frame, column, files[0])]
            .map(value_text)
            .where(lambda text: text != "nan", "")
        )
        for value in values:
            hit = (cells == value).to_numpy() & keep
            dropped.append({"column": str(column), "value": value, "rows": int(hit.sum())})
            keep &= ~hit
    names = [_column(name, frame, column.column, files[0]) for column in inside]
    keys = [
        _column(name, frame, column.key, files[0])
        for column in spec.sensitive_columns
        if column.key is not None
    ]
    truth = [] if spec.truth is None else [_column(name, frame, spec.truth, files[0])]
    others = frame.drop(columns=list(dict.fromkeys([*names, *keys, *truth])))
    try:
        columns = understand(others[keep], thousands=reader.thousands, decimal=reader.decimal)
    except TableError as error:
        raise problem(str(error), dataset=name, file=files[0].name, fix="list 'features'") from None
    used = [column.name for column in columns if column.role != "left out"]
    left_out = {column.name: column.note for column in columns if column.role == "left out"}
    left_out |= dict.fromkeys(keys, "the key by which the groups are joined")
    notes += [f"{column}: left out: {why}" for column, why in left_out.items()]
    lacking = {column: int(frame.loc[keep, column].isna().sum()) for column in [*used, *names]}
    lacking = {column: count for column, count in lacking.items() if count}
    if lacking and spec.missing == "error":
        found = ", ".join(f"{column} ({count:,})" for column, count in lacking.items())
        raise problem(
            "cells are missing",
            dataset=name,
            file=files[0].name,
            expected="a value in every cell",
            found=f"missing cells in {shortened(found, 1000)}",
            fix="set 'missing: drop' to leave out their rows, or 'missing: impute' to fill features with the median or "
            "the most frequent category, or list 'features' without these columns",
        )
    # Groups are never imputed.
    complete = [*used, *names] if spec.missing == "drop" else names
    keep &= frame[complete].notna().all(axis=1).to_numpy()
    if lacking:
        notes.append(
            f"missing cells ({spec.missing}): " + ", ".join(f"{c} {n:,}" for c, n in lacking.items())
        )
    groups, numbers = {}, {}
    read = [(sensitive, _factor(frame[own]), own) for sensitive, own in zip(inside, names, strict=True)]
    if not inside:
        (sensitive,) = spec.sensitive_columns
        key = [] if sensitive.key is None else frame[keys[0]].map(value_text).tolist()
        read = [
            (sensitive, *groups_of_file(name, spec, sensitive, files, list(frame.columns), key, rows_read))
        ]
    file = files[0 if inside else 1].name
    for sensitive, factor, own in read:
        groups[own] = code_groups(name, sensitive, factor, keep, file, own)
        if sensitive.bins is not None:
            numbers[own] = read_numbers(name, factor, keep, file, own)
    scale = _SCALES.get(spec.scale, "none")
    missing = "impute" if spec.missing == "impute" else "drop"
    preparation = make_preparation(
        columns, scale=scale, missing=missing, thousands=reader.thousands, decimal=reader.decimal
    )
    try:
        X = np.ascontiguousarray(preparation.fit_transform(frame[keep]), dtype=np.float64)
    except (TableError, ValueError) as error:
        raise problem(str(error), dataset=name, file=files[0].name) from None
    made: dict[str, Any] = {
        "X": X,
        "feature_names": tuple(map(str, preparation.get_feature_names_out())),
        "groups": groups,
        "numbers": numbers,
    }
    if truth:
        cells = frame.loc[keep, truth[0]].map(value_text)
        order = {value: code for code, value in enumerate(sorted(set(cells), key=natural))}
        made["truth"] = cells.map(order).to_numpy(np.int32)
    card = {"left_out": left_out, "missing": spec.missing, "notes": notes}
    return {**made, "rows_read": rows_read, "dropped": dropped}, card, scale != "none" or not spec.scale


def _column(name: str, frame: pd.DataFrame, column: ColumnRef, file: Path) -> str:
    """The name of a column that is given by name or number."""
    if isinstance(column, int):
        if column < len(frame.columns):
            return str(frame.columns[column])
    elif column in frame.columns:
        return column
    shown = shortened(", ".join(map(str, frame.columns)), 300)
    raise problem(
        "no such column", dataset=name, file=file.name, column=str(column), expected=f"one of {shown}",
        fix="correct the name, or check 'sep' in 'reader'",
    )  # fmt: skip


def _texts(cells: pd.Series) -> pd.Series:
    """A column as text; a missing cell is an empty text."""
    return cells.map(value_text).where(cells.notna(), "")


def _factor(cells: pd.Series) -> Factor:
    codes, values = pd.factorize(_texts(cells))
    return Factor(codes.astype(np.int32), tuple(map(str, values)))


def groups_of_file(
    name: str,
    spec: DatasetSpec,
    sensitive: SensitiveSpec,
    files: list[Path],
    columns: list[str],
    key: list[str],
    n_rows: int,
) -> tuple[Factor, str]:
    """The groups of the table's rows out of a file of their own, and the name of their column.

    With a key, whose values in the table are given, rows are joined by it; otherwise they are in the table's order.
    """
    reader = sensitive.reader or spec.reader.model_copy(update={"names": ()})
    file = TableFile(files[1], reader, name)
    place = file.position(sensitive.column)
    factor = file.read([], place).factor or Factor(np.empty(0, np.int32), ())
    words: dict[str, Any] = {"dataset": name, "file": files[1].name}
    if sensitive.key is None:
        shared = sorted(set(columns) & set(file.names)) if spec.reader.header and reader.header else []
        if shared:
            raise problem(
                "the file of the groups has a column of the table, so its rows may be in another order",
                **words,
                column=shared[0],
                fix=f"join the two by 'key: {shared[0]}' in 'sensitive', or remove the column from the file",
            )
        if len(factor.codes) != n_rows:
            raise problem(
                "the file of the groups has another number of rows than the table",
                **words,
                column=file.names[place],
                expected=f"{n_rows:,} rows",
                found=f"{len(factor.codes):,}",
                fix="use the file that belongs to the table; check 'header' of both",
            )
        return factor, file.names[place]
    theirs = file.read([], file.position(sensitive.key)).factor or Factor(np.empty(0, np.int32), ())
    texts = [value_text(theirs.values[code]) for code in theirs.codes]
    for whose, values in (("the table", key), ("the file of the groups", texts)):
        series = pd.Series(values, dtype=object)
        if series.duplicated().any():
            raise _of_key(
                f"{whose} has values of the key more than once", sensitive, series[series.duplicated()], words
            )
    at = {text: row for row, text in enumerate(texts)}
    unmatched = [value for value in key if value not in at]
    if unmatched:
        raise _of_key("rows of the table have no group", sensitive, unmatched, words)
    return Factor(factor.codes[[at[value] for value in key]], factor.values), file.names[place]


def _of_key(what: str, sensitive: SensitiveSpec, values: Any, words: dict[str, Any]) -> DatasetError:
    values = list(values)
    shown = ", ".join(map(repr, values[:5]))
    return problem(
        what,
        **words,
        column=str(sensitive.key),
        found=f"{len(values):,} values: {shortened(shown, 300)}{' and more' if len(values) > 5 else ''}",
        fix="correct the two files, or name the column that both share as 'key'",
    )
