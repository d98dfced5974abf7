"""The file of labels that `fit` and `predict` write: a line for every row of the table."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairclust.outputs import atomic_write


def labels_table(
    frame: pd.DataFrame, reasons: pd.Series, labels: np.ndarray, ids: list[str], *, spreadsheet_safe: bool
) -> pd.DataFrame:
    """Make a table with the number of each row, counted from 1, its identifiers (columns `ids`) and its cluster.

    `labels` are those of the rows without a reason. The other rows get no cluster, and their `reasons` as text. If
    `spreadsheet_safe`, text that a spreadsheet would take as a formula gets an apostrophe before it. Columns of
    numbers stay as they are.
    """
    table = pd.DataFrame({"row": frame.index + 1}, index=frame.index).join(frame[ids])
    if spreadsheet_safe:
        text = [name for name in ids if pd.to_numeric(table[name], errors="coerce").isna().any()]
        table[text] = table[text].map(_quoted)
        table = table.rename(columns=_quoted)
    clusters = pd.Series(pd.NA, index=frame.index, dtype="Int64")
    clusters[reasons == ""] = np.asarray(labels, dtype=np.int64)
    # Names of identifiers may repeat those of the other columns.
    table.insert(len(table.columns), "cluster", clusters, allow_duplicates=True)
    table.insert(len(table.columns), "reason", reasons, allow_duplicates=True)
    return table


def _quoted(value: Any) -> Any:
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if is_formula else value


def write_labels(path: Path, parts: Iterable[pd.DataFrame], *, reasons: bool) -> None:
    """Write tables of `labels_table` below each other, completely or not at all, without the reasons unless asked.

    A name that ends in .npy gets an array of the clusters alone, with -1 for the rows that have none.
    """
    with atomic_write(path) as file:
        if path.suffix == ".npy":
            found = [part.iloc[:, -2].fillna(-1).to_numpy(np.int32) for part in parts]
            np.save(file, np.concatenate(found))
            return
        for number, part in enumerate(parts):
            (part if reasons else part.iloc[:, :-1]).to_csv(file, index=False, header=number == 0)
