"""Files of labels: reading those that any program made, and writing ours."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from fairclust.messages import UserError, shortened
from fairclust.outputs import atomic_write
from fairclust.tables import TableError, read_table
from fairclust.tables.cells import as_number
from fairclust.tables.columns import as_text
from fairclust.tables.reading import is_nested


def read_labels(
    path: Path,
    rows: np.ndarray,
    n_clusters: int | None = None,
    table: pd.DataFrame | None = None,
    n_all: int = 0,
) -> np.ndarray:
    """The clusters of the rows with these numbers, which are sorted and count from 1: integers, shape (n_rows,).

    The file is a table with the column ``cluster``, and perhaps ``row``, or has a number in each line and no header. It
    may have labels of all `n_all` rows. Another order of the `table`'s rows is undone if a column identifies them.
    Without `n_clusters`, the largest label states the number of clusters.
    """
    frame = _read_cells(path)
    if table is not None and "row" not in frame:
        frame = _in_order(path, frame, table)
    if "row" in frame:
        numbers = _whole_numbers(path, frame["row"])
        listed, counts = np.unique(numbers, return_counts=True)
        is_wrong = (counts > 1) | (listed < 1) | (listed > max(n_all, rows[-1]))
        if wrong := [*listed[is_wrong], *np.setdiff1d(rows, listed)]:
            raise UserError(
                f"{path}: the column 'row' must have the number of each row that is not left out once, counted from 1. "
                f"Fix: see row {wrong[0]}"
            )
        frame = frame.iloc[np.argsort(numbers)][np.isin(listed, rows)]
    elif len(frame) == n_all:
        frame = frame.iloc[rows - 1]
    elif len(frame) != len(rows):
        raise UserError(
            f"{path} has {len(frame):,} labels, but the table has {len(rows):,} rows without those that are left out. "
            "Fix: add the column 'row' with the number of the labelled row in the table, counted from 1"
        )
    labels = _whole_numbers(path, frame["cluster"])
    if n_clusters is None and labels.min() == 1:
        raise UserError(
            f"{path}: no row is in cluster 0, so the clusters seem to be numbered from 1. Fix: subtract 1 from every "
            "label, or state K by --n-clusters if cluster 0 is empty"
        )
    n_clusters = int(labels.max()) + 1 if n_clusters is None else n_clusters
    if not 2 <= n_clusters <= len(labels):
        raise UserError(
            f"{path}: K must be from 2 to the number of rows, {len(labels):,}; found {n_clusters}. Fix: state another "
            "K by --n-clusters"
        )
    bad = np.flatnonzero((labels < 0) | (labels >= n_clusters))
    if len(bad):
        raise UserError(
            f"{path}: with K = {n_clusters}, clusters are 0 to {n_clusters - 1}, but {len(bad):,} labels are not: the "
            f"first is {labels[bad[0]]} in row {rows[bad[0]]}. Fix: number the clusters from 0, or state another K by "
            "--n-clusters"
        )
    if labels.min() == labels.max():
        raise UserError(f"{path}: all rows are in one cluster. Fix: write labels of at least two clusters")
    return labels


def _in_order(path: Path, frame: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a file of labels in the order of a table, by a column of both in which all rows differ.

    UserError if there is none, and another column of both has the same values in another order, or names some of the
    table's rows and not others.
    """
    other = []
    for name in frame.columns.intersection(table.columns).drop("cluster", errors="ignore"):
        # A column without a name counts the rows of its own file.
        if name.startswith("Unnamed: ") or is_nested(table[name]):
            continue
        given, ours = as_text(frame[name]), as_text(table[name])
        if given.is_unique and ours.is_unique and {*ours} <= {*given}:
            return frame.set_index(given).loc[ours].reset_index(drop=True)
        given, ours = given.fillna(""), ours.fillna("").reset_index(drop=True)
        # The same cells may be written in another way, as numbers with fewer digits are.
        are_names = given.is_unique and ours.is_unique and not any("." in cell for cell in (*given, *ours))
        is_other = bool({*given} & {*ours}) if are_names else sorted(given) == sorted(ours)
        other += [name] if is_other and not given.equals(ours) else []
    if other and len(frame) == len(table):
        raise UserError(
            f"{path}: the rows differ from those of the table in the column {shortened(repr(other[0]))}. Fix: add the "
            "column 'row' with the number of the labelled row in the table, counted from 1, or leave out all columns "
            "but 'cluster' if the rows are the same"
        )
    return frame


def _read_cells(path: Path) -> pd.DataFrame:
    """The columns of a file of labels: ``cluster``, perhaps ``row``, and perhaps others."""
    try:
        frame = read_table(path, values=["cluster"])
    except TableError as error:
        raise UserError(f"{error}. Labels are a table with the column 'cluster'") from None
    if len(frame.columns) == 1 and as_number(frame.columns[0]) is not None:
        # A file of numbers alone has no header, so that its first number was read as one.
        frame = pd.DataFrame({"cluster": [frame.columns[0], *frame.iloc[:, 0]]})
    if "cluster" not in frame:
        raise UserError(
            f"{path} has no column 'cluster', only {', '.join(map(repr, frame.columns[:5]))}. Fix: write a table with "
            "the column 'cluster', and with 'row', counted from 1, if the rows are in another order"
        )
    return frame


def _whole_numbers(path: Path, cells: pd.Series) -> np.ndarray:
    values = pd.to_numeric(cells, errors="coerce")
    bad = cells[~(values.abs() < 2**53) | (values % 1 != 0)]
    if len(bad):
        raise UserError(
            f"{path}: {len(bad):,} cells of the column '{cells.name}' are not whole numbers; the first is "
            f"{'empty' if pd.isna(bad.iloc[0]) else repr(str(bad.iloc[0]))} in data row {bad.index[0] + 1}. Fix: write "
            "whole numbers"
        )
    return values.to_numpy(np.int64)


def labels_table(frame: pd.DataFrame, reasons: pd.Series, labels: np.ndarray, ids: list[str]) -> pd.DataFrame:
    """Make a table with the number of each row, counted from 1, its identifiers (columns `ids`) and its cluster.

    An identifier with the name of one of our columns gets another name. `labels` are those of the rows without a
    reason. The other rows get no cluster, and their `reasons` as text.
    """
    own = ("row", "cluster", "reason")
    # Files of statistics programs have whole numbers as floats.
    others = (
        frame[ids].convert_dtypes().rename(columns=lambda name: f"{name} (table)" if name in own else name)
    )
    table = pd.DataFrame({"row": frame.index + 1}, index=frame.index).join(others)
    clusters = pd.Series(pd.NA, index=frame.index, dtype="Int64")
    clusters[reasons == ""] = np.asarray(labels, dtype=np.int64)
    return table.assign(cluster=clusters, reason=reasons)


def write_labels(path: Path, parts: Iterable[pd.DataFrame], *, reasons: bool) -> None:
    """Write tables of `labels_table` below each other, completely or not at all, without the reasons unless asked.

    A name that ends in .npy gets an array of the clusters alone, with -1 for the rows that have none.
    """
    with atomic_write(path) as file:
        if path.suffix == ".npy":
            clusters = [part.iloc[:, -2].fillna(-1).to_numpy(np.int32) for part in parts]
            np.save(file, np.concatenate(clusters))
            return
        for number, part in enumerate(parts):
            (part if reasons else part.iloc[:, :-1]).to_csv(file, index=False, header=number == 0)
