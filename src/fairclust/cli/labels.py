"""Reading labels that any program made."""

from __future__ import annotations

import io
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from fairclust.cli import CommandError

_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")


def read_labels(path: Path, rows: np.ndarray, n_clusters: int | None) -> np.ndarray:
    """The clusters of the rows with these numbers, which are sorted and count from 1: integers, shape (n_rows,).

    The file is a CSV with the column ``cluster``, and perhaps ``row``, as `fairclust fit --out` writes; or it has a
    number in each line and no header. Without `n_clusters`, the largest label states the number of clusters.
    """
    frame = _read_cells(path)
    labels = _whole_numbers(path, frame["cluster"])
    if "row" in frame:
        labels = labels[np.argsort(_row_numbers(path, frame["row"], rows))]
    elif len(labels) != len(rows):
        raise CommandError(
            f"{path} has {len(labels):,} labels; the data have {len(rows):,} rows that count. Fix: write one label "
            "for each of them, or add the column 'row', counted from 1"
        )
    n_clusters = int(labels.max()) + 1 if n_clusters is None else n_clusters
    if not 2 <= n_clusters <= len(labels):
        raise CommandError(
            f"{path}: K must be from 2 to the number of rows, {len(labels):,}; found {n_clusters}. Fix: state another "
            "K with --n-clusters"
        )
    bad = np.flatnonzero((labels < 0) | (labels >= n_clusters))
    if len(bad):
        raise CommandError(
            f"{path}: with K = {n_clusters}, clusters are 0 to {n_clusters - 1}, but {len(bad):,} labels are not: the "
            f"first is {labels[bad[0]]} in row {bad[0] + 1}. Fix: number the clusters from 0, or state another K with "
            "--n-clusters"
        )
    if labels.min() == labels.max():
        raise CommandError(f"{path}: all rows are in one cluster. Fix: write labels of at least two clusters")
    return labels


def _read_cells(path: Path) -> pd.DataFrame:
    """The column ``cluster`` and perhaps ``row`` as text, without the rows that have a reason instead of a cluster."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        headless = _INTEGER.fullmatch(text.partition("\n")[0]) is not None
        with warnings.catch_warnings():
            # pandas would only warn about lines with more values than the header, and drop the rest of the line.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                io.StringIO(text),
                header=None if headless else 0,
                names=["cluster"] if headless else None,
                index_col=False,
                dtype=str,
                keep_default_na=False,
            )
    except (OSError, ValueError, pd.errors.ParserWarning) as error:
        raise CommandError(
            f"{path} cannot be read: {error}. Fix: write a CSV in UTF-8 with the column 'cluster'"
        ) from None
    if "cluster" not in frame:
        raise CommandError(
            f"{path} has no column 'cluster', only {', '.join(map(repr, frame.columns[:5]))}. Fix: write a CSV with "
            "the column 'cluster', and with 'row', counted from 1, where the rows are in another order"
        )
    if "row" in frame and "reason" in frame:
        # `fairclust fit` gives a row that it leaves out no cluster, but a reason.
        frame = frame[(frame["cluster"] != "") | (frame["reason"] == "")].reset_index(drop=True)
    return frame


def _row_numbers(path: Path, cells: pd.Series, rows: np.ndarray) -> np.ndarray:
    """The numbers in the column ``row``, each of which is there once."""
    numbers = _whole_numbers(path, cells)
    listed, counts = np.unique(numbers, return_counts=True)
    for wrong, words in (
        (np.setdiff1d(listed, rows), f"are not among the rows of the data, {rows[0]} to {rows[-1]:,}"),
        (listed[counts > 1], "are there more than once"),
        (np.setdiff1d(rows, listed), "are missing"),
    ):
        if len(wrong):
            raise CommandError(
                f"{path}: {len(wrong):,} of {len(rows):,} rows {words}, the first is row {wrong[0]}. Fix: count "
                "rows from 1, and write each once"
            )
    return numbers


def _whole_numbers(path: Path, cells: pd.Series) -> np.ndarray:
    values = pd.to_numeric(cells.str.strip(), errors="coerce")
    bad = cells[~(values.abs() < 2**53) | (values % 1 != 0)]
    if len(bad):
        raise CommandError(
            f"{path}: {len(bad):,} cells of the column '{cells.name}' are no whole numbers, the first is "
            f"{bad.iloc[0]!r} in data row {bad.index[0] + 1}. Fix: write whole numbers"
        )
    return values.to_numpy(np.int64)
