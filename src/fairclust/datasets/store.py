"""A prepared data set, or a graph, in memory and on disk: a folder with a card and the arrays.

The arrays are in one file, a zip archive with a checksum of each array. It is compared on reading, because a byte that
changed on the disk would otherwise change results unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairclust.datasets.errors import DatasetError, DatasetSkipped
from fairclust.metrics.table import Scored
from fairclust.outputs import replace_folder

CARD, ARRAYS = "card.json", "arrays.npz"


@dataclass(frozen=True)
class PreparedDataset:
    """Features and groups, ready to be clustered."""

    X: np.ndarray  # (N, d), scaled, float64, C-contiguous; a graph has d = 0
    groups: np.ndarray  # (N,), int32, the group of each row from 0 to J - 1
    feature_names: tuple[str, ...]
    group_names: tuple[str, ...]
    card: dict[str, Any] = field(repr=False)  # what the data are and how they were prepared, as JSON
    W: sp.csr_array | None = None  # (N, N), the affinity of a graph
    truth: np.ndarray | None = None  # (N,), int32, the true clusters if they are known
    # If there are several sensitive columns: the code of each row's value, (N,), int32, by column. `groups` are then
    # the combinations of values that occur.
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    # The sensitive columns of numbers, (N,), float64, by name. Their codes are those of ranges.
    numbers: Mapping[str, np.ndarray] = field(default_factory=dict)

    def content_hash(self) -> str:
        """The SHA-256 of all arrays and names, which identifies these data. It is also on their card."""
        names = {"features": self.feature_names, "groups": self.group_names, "shape": self.X.shape}
        # The group names contain the values of all columns, but do not show that there are several columns.
        names |= {"columns": tuple(self.columns)} if self.columns else {}
        names |= {"numbers": tuple(self.numbers)} if self.numbers else {}
        digest = hashlib.sha256(json.dumps(names).encode())
        parts = [(self.X, "<f8"), (self.groups, "<i4")]
        if self.W is not None:
            parts += [(self.W.indptr, "<i8"), (self.W.indices, "<i4"), (self.W.data, "<f8")]
        if self.truth is not None:
            parts.append((self.truth, "<i4"))
        for part, kind in (*parts, *((column, "<f8") for column in self.numbers.values())):
            digest.update(np.ascontiguousarray(part, dtype=kind).data)
        return digest.hexdigest()

    def scored(self, labels: np.ndarray, n_clusters: int, W: sp.csr_array | None = None) -> Scored:
        """A clustering of these rows for `score_labels`; `W` is the affinity for the Ncut."""
        X = self.X if self.X.shape[1] else None
        codes = labels.astype(np.int64)
        return Scored(codes, self.groups, X, n_clusters, W, self.truth, self.columns, self.numbers)


def save_prepared(data: PreparedDataset, folder: str | Path) -> None:
    """Write the arrays, the graph and the card into a folder, as `replace_folder` does."""
    arrays = {"X": data.X, "groups": data.groups}
    if data.truth is not None:
        arrays["truth"] = data.truth
    for name, columns in (("columns", data.columns), ("numbers", data.numbers)):
        if columns:
            arrays[name] = np.column_stack(list(columns.values()))
    _write(folder, data.card, arrays | ({} if data.W is None else _parts(data.W)))


def save_graph(folder: str | Path, W: sp.csr_array) -> None:
    """Write the graph of a data set into a folder of its own, as `save_prepared`."""
    _write(folder, {"status": "ok"}, _parts(W))


def write_skipped(folder: str | Path, reason: str) -> None:
    """Write a folder whose card says, in one sentence, why there is no data set."""
    _write(folder, {"status": "skipped", "reason": reason}, {})


def _write(folder: str | Path, card: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    def write(temp: Path) -> None:
        if arrays:
            np.savez(temp / ARRAYS, allow_pickle=False, **arrays)
        text = json.dumps(card, indent=2, ensure_ascii=False, allow_nan=False)
        (temp / CARD).write_text(text + "\n", encoding="utf-8", newline="")

    replace_folder(Path(folder), write)


def _parts(W: sp.csr_array) -> dict[str, np.ndarray]:
    return {"weights": W.data, "indices": W.indices, "indptr": W.indptr}


def _graph(arrays: Mapping[str, np.ndarray]) -> sp.csr_array:
    n_nodes = len(arrays["indptr"]) - 1
    return sp.csr_array((arrays["weights"], arrays["indices"], arrays["indptr"]), shape=(n_nodes, n_nodes))


def read_card(folder: str | Path) -> dict[str, Any]:
    """Read only the card. Its ``status`` is 'ok', or 'skipped' with a ``reason``; no card is a DatasetError."""
    try:
        card = json.loads(Path(folder, CARD).read_bytes())
        if "status" not in card:
            raise ValueError("it has no status")
        return card
    except (OSError, ValueError, TypeError) as error:
        raise _damaged(folder, "data card", error) from error


def load_prepared(folder: str | Path) -> PreparedDataset:
    """Read what `save_prepared` wrote. A DatasetSkipped has the reason if the data set was skipped.

    No data set, or a damaged file, is a DatasetError.
    """
    with _opened(folder) as (card, found):
        names = tuple(card["columns"]), tuple(group["name"] for group in card["groups"])
        columns, numbers = (
            dict(zip(card.get(key, ()), found[own].T if own in found else (), strict=True))
            for key, own in (("sensitive", "columns"), ("numbers", "numbers"))
        )
        W, truth = _graph(found) if "weights" in found else None, found.get("truth")
        return PreparedDataset(found["X"], found["groups"], *names, card, W, truth, columns, numbers)


def load_graph(folder: str | Path) -> sp.csr_array:
    """Read the graph that `save_graph` wrote. The errors are those of `load_prepared`."""
    with _opened(folder) as (_, found):
        return _graph(found)


@contextmanager
def _opened(folder: str | Path) -> Iterator[tuple[dict[str, Any], dict[str, np.ndarray]]]:
    """The card of a folder and its arrays by name. If they cannot be used, they are damaged."""
    card = read_card(folder)
    if card["status"] == "skipped":
        raise DatasetSkipped(card["reason"])
    try:
        with np.load(Path(folder, ARRAYS), allow_pickle=False) as file:
            yield card, dict(file)
    except Exception as error:
        # NumPy parses an array before its checksum is compared, so damage raises errors of many kinds.
        raise _damaged(folder, ARRAYS, error) from error


def _damaged(folder: str | Path, what: str, error: Exception) -> DatasetError:
    return DatasetError(
        f"'{folder}' holds no {what}, or a damaged one ({type(error).__name__}: {error}). "
        f"Fix: delete the folder '{folder}' and run again"
    )
