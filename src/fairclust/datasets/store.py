"""A prepared data set, or a graph, in memory and on disk.

The card holds the SHA-256 of each other file of the folder. They are checked on reading, because a byte that changed on
the disk would otherwise change results unnoticed.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairclust.datasets.errors import DatasetError, DatasetSkipped
from fairclust.metrics.table import Scored
from fairclust.outputs import content_digest, replace_folder

CARD, GRAPH = "card.json", "graph.npz"
ARRAYS = frozenset({"X.npy", "groups.npy", "truth.npy", "columns.npy", "numbers.npy"})
# Snakemake writes a time stamp file into a folder that is an output.
KNOWN_FILES = ARRAYS | {GRAPH, CARD, ".snakemake_timestamp"}


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

    @property
    def sensitive_features(self) -> np.ndarray | Mapping[str, np.ndarray]:
        """The groups, or the columns by name if there are several; the methods that take several columns get this."""
        return self.columns or self.groups

    def with_numbers(self, means: Collection[str]) -> np.ndarray | Mapping[str, np.ndarray]:
        """As `sensitive_features`, but with the numbers of the columns in `means` instead of the codes of ranges."""
        found = {name: self.numbers[name] for name in means if name in self.numbers}
        return {**self.columns, **found} if found else self.sensitive_features

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
    """Write the arrays, the graph and the card into a folder, which appears only when it is complete.

    An older data set in the folder is replaced then. A folder with other files is a DatasetError.
    """
    arrays = {"X": data.X, "groups": data.groups}
    if data.truth is not None:
        arrays["truth"] = data.truth
    for name, columns in (("columns", data.columns), ("numbers", data.numbers)):
        if columns:
            arrays[name] = np.column_stack(list(columns.values()))
    _write(folder, data.card, arrays, data.W)


def save_graph(folder: str | Path, W: sp.csr_array, info: dict[str, Any]) -> None:
    """Write the graph of a data set, and a card with its description, into a folder of its own, as `save_prepared`."""
    _write(folder, {"status": "ok", "graph": info}, W=W)


def write_skipped(folder: str | Path, name: str, reason: str) -> None:
    """Write a folder whose card says, in one sentence, why there is no data set."""
    _write(folder, {"status": "skipped", "name": name, "reason": reason})


def _write(
    folder: str | Path,
    card: dict[str, Any],
    arrays: Mapping[str, np.ndarray] = MappingProxyType({}),
    W: sp.csr_array | None = None,
) -> None:
    folder = Path(folder).absolute()
    foreign = {p.name for p in folder.iterdir()} - KNOWN_FILES if folder.exists() else set()
    if foreign:
        raise DatasetError(
            f"'{folder}' is not replaced: it holds other files ({', '.join(sorted(foreign)[:5])}). "
            "Fix: give each data set a folder of its own"
        )

    def write(temp: Path) -> None:
        for name, array in arrays.items():
            np.save(temp / f"{name}.npy", array, allow_pickle=False)
        if W is not None:
            parts = {"indptr": W.indptr, "indices": W.indices, "data": W.data, "n_nodes": W.shape[0]}
            np.savez(temp / GRAPH, allow_pickle=False, **parts)
        write_card(temp, card)

    replace_folder(folder, write)


def write_card(folder: Path, card: dict[str, Any]) -> None:
    """Write the card with a digest of each array in the folder."""
    digests = {path.name: content_digest(path) for path in sorted(folder.glob("*.np[yz]"))}
    text = json.dumps({**card, "digests": digests}, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / CARD).write_text(text + "\n", encoding="utf-8", newline="")


def read_card(folder: str | Path) -> dict[str, Any]:
    """Read only the card. Its ``status`` is 'ok', or 'skipped' with a ``reason``; no card is a DatasetError."""
    return _card_and_digests(Path(folder))[0]


def _card_and_digests(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    try:
        card = json.loads((folder / CARD).read_bytes())
        return card, card.pop("digests")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise DatasetError(
            f"'{folder}' holds no data card, or a damaged one ({type(error).__name__}: {error}). "
            f"Fix: delete the folder '{folder}' and run again"
        ) from error


def load_prepared(folder: str | Path) -> PreparedDataset:
    """Read what `save_prepared` wrote. A DatasetSkipped has the reason if the data set was skipped.

    No data set, or a damaged file, is a DatasetError. The digest of a file is computed once per process, at about 1 GB
    per second.
    """
    with _opened(Path(folder)) as (card, found):
        names = tuple(card["columns"]), tuple(group["name"] for group in card["groups"])
        columns, numbers = (
            dict(zip(card.get(key, ()), found[own].T if own in found else (), strict=True))
            for key, own in (("sensitive", "columns"), ("numbers", "numbers"))
        )
        graph, truth = found.get("graph"), found.get("truth")
        return PreparedDataset(found["X"], found["groups"], *names, card, graph, truth, columns, numbers)


def load_graph(folder: str | Path) -> tuple[sp.csr_array, dict[str, Any]]:
    """Read the graph and the description that `save_graph` wrote. The errors are those of `load_prepared`."""
    with _opened(Path(folder)) as (card, found):
        return found["graph"], card["graph"]


@contextmanager
def _opened(folder: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The card of a folder, and the arrays and the graph by name. What cannot be read is an error."""
    card, digests = _card_and_digests(folder)
    if card.get("status") == "skipped":
        raise DatasetSkipped(card["reason"])
    found = {}
    try:
        # Only known names are used, because a card from elsewhere could list any path.
        for file in sorted((ARRAYS | {GRAPH}) & digests.keys()):
            path = folder / file
            if content_digest(path) != digests[file]:
                raise DatasetError(
                    f"'{path}' is damaged: its content is not what was written. "
                    f"Fix: delete the folder '{folder}' and run again"
                )
            found[path.stem] = np.load(path, allow_pickle=False)
        if "graph" in found:
            with found["graph"] as file:
                parts, n_nodes = (file["data"], file["indices"], file["indptr"]), int(file["n_nodes"])
            found["graph"] = sp.csr_array(parts, shape=(n_nodes, n_nodes))
            found["graph"].check_format()
        yield card, found
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DatasetError(
            f"'{folder}' holds no prepared data set or graph ({type(error).__name__}: {error}). "
            f"Fix: delete the folder '{folder}' and run again"
        ) from error
