"""A prepared data set, or a graph, in memory and on disk.

The card holds the SHA-256 of each other file of the folder and of itself. They are checked on reading, because a byte
that changed on the disk would otherwise change results unnoticed.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairclust.datasets.digest import content_digest
from fairclust.datasets.errors import DatasetError, DatasetSkipped
from fairclust.metrics.table import Scored
from fairclust.outputs import replace_folder

FEATURES, GROUPS, TRUTH, CARD = "X.npy", "groups.npy", "truth.npy", "card.json"
COLUMNS, NUMBERS, GRAPH = "columns.npy", "numbers.npy", "graph.npz"
# Snakemake writes a time stamp file into a folder that is an output.
KNOWN_FILES = frozenset({FEATURES, GROUPS, COLUMNS, NUMBERS, TRUTH, GRAPH, CARD, ".snakemake_timestamp"})


@dataclass(frozen=True)
class PreparedDataset:
    """Features and groups, ready to be clustered.

    Attributes
    ----------
    X : ndarray of float64, shape (N, d), C-contiguous
        Scaled features; a graph has d = 0.
    groups : ndarray of int32, shape (N,)
        Group code of each row, from 0 to J - 1.
    feature_names : tuple of str, length d
    group_names : tuple of str, length J
    card : dict
        Description of the data set and its preparation; serialisable as JSON.
    W : csr_array of shape (N, N) or None
        Affinity, if the data set is a graph.
    truth : ndarray of int32, shape (N,), or None
        True clusters, if they are known.
    columns : mapping of str to ndarray of int32, shape (N,)
        If there are several sensitive columns: the code of each row's value, by column. `groups` are then the
        combinations of values that occur. Empty if there is one column.
    numbers : mapping of str to ndarray of float64, shape (N,)
        The sensitive columns of numbers, by name. Their codes are those of ranges.
    """

    X: np.ndarray
    groups: np.ndarray
    feature_names: tuple[str, ...]
    group_names: tuple[str, ...]
    card: dict[str, Any] = field(repr=False)
    W: sp.csr_array | None = None
    truth: np.ndarray | None = None
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
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
        """The hash of these data, which is also on their card."""
        names = self.feature_names, self.group_names
        return data_hash(self.X, self.groups, *names, self.W, self.truth, tuple(self.columns), self.numbers)

    def scored(self, labels: np.ndarray, n_clusters: int, W: sp.csr_array | None = None) -> Scored:
        """A clustering of these rows for `score_labels`; `W` is the affinity for the Ncut."""
        X = self.X if self.X.shape[1] else None
        codes = labels.astype(np.int64)
        return Scored(codes, self.groups, X, n_clusters, W, self.truth, self.columns, self.numbers)


def data_hash(
    X: np.ndarray,
    groups: np.ndarray,
    feature_names: tuple[str, ...],
    group_names: tuple[str, ...],
    W: sp.csr_array | None = None,
    truth: np.ndarray | None = None,
    columns: tuple[str, ...] = (),
    numbers: Mapping[str, np.ndarray] = MappingProxyType({}),
) -> str:
    """Return the SHA-256 of all arrays and names of a prepared data set, which identifies it."""
    digest = hashlib.sha256()
    names = {"features": feature_names, "groups": group_names, "shape": X.shape}
    # The group names contain the values of all columns, but do not show that there are several columns.
    names |= {"columns": columns} if columns else {}
    names |= {"numbers": tuple(numbers)} if numbers else {}
    digest.update(json.dumps(names).encode())
    digest.update(np.ascontiguousarray(X, dtype="<f8").data)
    digest.update(np.ascontiguousarray(groups, dtype="<i4").data)
    if W is not None:
        for part, kind in ((W.indptr, "<i8"), (W.indices, "<i4"), (W.data, "<f8")):
            digest.update(np.ascontiguousarray(part, dtype=kind).data)
    if truth is not None:
        digest.update(np.ascontiguousarray(truth, dtype="<i4").data)
    for column in numbers.values():
        digest.update(np.ascontiguousarray(column, dtype="<f8").data)
    return digest.hexdigest()


def save_prepared(ds: PreparedDataset, folder: str | Path) -> None:
    """Write X.npy, groups.npy, card.json, and the other arrays and the graph if there are any.

    The folder appears only when it is complete.

    Parameters
    ----------
    ds : PreparedDataset
    folder : path
        Created if it does not exist. An older data set in it is replaced when the new one is complete.

    Raises
    ------
    DatasetError
        The folder holds files that are not part of a data set.
    """

    def write(temp: Path) -> None:
        np.save(temp / FEATURES, ds.X, allow_pickle=False)
        np.save(temp / GROUPS, ds.groups, allow_pickle=False)
        if ds.truth is not None:
            np.save(temp / TRUTH, ds.truth, allow_pickle=False)
        if ds.W is not None:
            _write_graph(temp, ds.W)
        if ds.columns:
            np.save(temp / COLUMNS, np.column_stack(list(ds.columns.values())), allow_pickle=False)
        if ds.numbers:
            np.save(temp / NUMBERS, np.column_stack(list(ds.numbers.values())), allow_pickle=False)
        write_card(temp, ds.card)

    _replace_folder(Path(folder), write)


def save_graph(folder: str | Path, W: sp.csr_array, info: dict[str, Any]) -> None:
    """Write the graph of a data set, and a card with its description, into a folder of its own, as `save_prepared`."""

    def write(temp: Path) -> None:
        _write_graph(temp, W)
        write_card(temp, {"status": "ok", "graph": info})

    _replace_folder(Path(folder), write)


def _write_graph(folder: Path, W: sp.csr_array) -> None:
    parts = {"indptr": W.indptr, "indices": W.indices, "data": W.data, "n_nodes": W.shape[0]}
    np.savez(folder / GRAPH, allow_pickle=False, **parts)


def _read_graph(folder: Path) -> sp.csr_array:
    with np.load(folder / GRAPH, allow_pickle=False) as file:
        n_nodes = int(file["n_nodes"])
        W = sp.csr_array((file["data"], file["indices"], file["indptr"]), shape=(n_nodes, n_nodes))
    W.check_format()
    return W


def write_skipped(folder: str | Path, name: str, reason: str) -> None:
    """Write a folder that says why there is no data set; see :func:`load_prepared`.

    Parameters
    ----------
    folder : path
        As for :func:`save_prepared`.
    name : str
        Name of the data set.
    reason : str
        One sentence for the reader of the tables.
    """
    card = {"status": "skipped", "name": name, "reason": reason}
    _replace_folder(Path(folder), lambda temp: write_card(temp, card))


def read_card(folder: str | Path) -> dict[str, Any]:
    """Read only the card. Its ``status`` is 'ok', or 'skipped' with a ``reason``; no card is a DatasetError."""
    return _checked_card(Path(folder))[0]


def _checked_card(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the card and the digests of the other files."""
    try:
        text = (folder / CARD).read_bytes().decode()
        whole = json.loads(text)
        card = {key: value for key, value in whole.items() if key not in ("digests", "digest")}
        # Comparing the text as well finds damage that JSON does not see, such as other blanks.
        if text != _card_text(card, whole["digests"]):
            raise ValueError("it does not match the digest that it holds")
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise DatasetError(
            f"'{folder}' holds no data card, or a damaged one ({type(error).__name__}: {error}). "
            f"Fix: delete the folder '{folder}' and run again"
        ) from error
    return card, whole["digests"]


def load_prepared(folder: str | Path) -> PreparedDataset:
    """Read what :func:`save_prepared` wrote.

    Parameters
    ----------
    folder : path
        The folder.

    Returns
    -------
    PreparedDataset

    Raises
    ------
    DatasetSkipped
        The data set was skipped; the message is the reason.
    DatasetError
        The folder holds no data set, or a file of it is damaged.

    Notes
    -----
    The digest of a file is computed once per process, at about 1 GB per second.
    """
    folder = Path(folder)
    with _opened(folder, (FEATURES, GROUPS)) as (card, there):
        X = np.load(folder / FEATURES, allow_pickle=False)
        groups = np.load(folder / GROUPS, allow_pickle=False)
        truth = np.load(folder / TRUTH, allow_pickle=False) if TRUTH in there else None
        W = _read_graph(folder) if GRAPH in there else None
        names = tuple(card["columns"]), tuple(group["name"] for group in card["groups"])
        codes = np.load(folder / COLUMNS, allow_pickle=False).T if COLUMNS in there else []
        columns = dict(zip(card.get("sensitive", ()), codes, strict=True))
        values = np.load(folder / NUMBERS, allow_pickle=False).T if NUMBERS in there else []
        numbers = dict(zip(card.get("numbers", ()), values, strict=True))
    return PreparedDataset(X, groups, *names, card, W, truth, columns, numbers)


def load_graph(folder: str | Path) -> tuple[sp.csr_array, dict[str, Any]]:
    """Read the graph and the description that `save_graph` wrote. The errors are those of `load_prepared`."""
    with _opened(Path(folder), (GRAPH,)) as (card, _):
        return _read_graph(Path(folder)), card["graph"]


@contextmanager
def _opened(folder: Path, needed: Collection[str]) -> Iterator[tuple[dict[str, Any], Collection[str]]]:
    """The card of a folder and the names of the files beside it, which are checked. What cannot be read is an error."""
    card, digests = _checked_card(folder)
    try:
        if card["status"] == "skipped":
            raise DatasetSkipped(card["reason"])
        # Only known names are used, because a card from elsewhere could list any path.
        for file in sorted({*needed, *(KNOWN_FILES & digests.keys())}):
            if content_digest(folder / file) != digests[file]:
                raise DatasetError(
                    f"'{folder / file}' is damaged: its content is not what was written. "
                    f"Fix: delete the folder '{folder}' and run again"
                )
        yield card, digests.keys()
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DatasetError(
            f"'{folder}' holds no prepared data set or graph ({type(error).__name__}: {error}). "
            f"Fix: delete the folder '{folder}' and run again"
        ) from error


def write_card(folder: Path, card: dict[str, Any]) -> None:
    """Write the card with a digest of each array in the folder and one of itself."""
    digests = {path.name: content_digest(path) for path in sorted(folder.glob("*.np[yz]"))}
    (folder / CARD).write_text(_card_text(card, digests), encoding="utf-8", newline="")


def _card_text(card: dict[str, Any], digests: dict[str, str]) -> str:
    def text(content: dict[str, Any]) -> str:
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    content = {**card, "digests": digests}
    return text({**content, "digest": hashlib.sha256(text(content).encode()).hexdigest()})


def _replace_folder(folder: Path, write: Callable[[Path], None]) -> None:
    folder = folder.absolute()
    foreign = {p.name for p in folder.iterdir()} - KNOWN_FILES if folder.exists() else set()
    if foreign:
        raise DatasetError(
            f"'{folder}' is not replaced: it holds other files ({', '.join(sorted(foreign)[:5])}). "
            "Fix: give each data set a folder of its own"
        )
    replace_folder(folder, write)
