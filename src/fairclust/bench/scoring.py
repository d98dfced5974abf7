"""One scorer for all methods: every metric from labels, never from what a method says of itself."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fairclust.bench.config import canonical_json
from fairclust.bench.store import CellStore
from fairclust.datasets.store import PreparedDataset
from fairclust.metrics.contingency import contingency
from fairclust.metrics.table import score_labels


class Scorer:
    """Scores of one data set's cells, each computed once for given metrics.

    `names` are the keys in the store of all scores asked for.

    Parameters
    ----------
    data : PreparedDataset
    W : sparse array or None
        The graph of the Ncut.
    store : CellStore
        Scores computed before, by cell.
    settings : mapping
        Keyword arguments of `score_labels`.
    fingerprint : str
        Of the metrics' source: with other source, cells are scored again (and not fitted again).
    """

    def __init__(
        self,
        data: PreparedDataset,
        W: Any,
        store: CellStore,
        settings: Mapping[str, Any],
        fingerprint: str,
    ) -> None:
        self._data = data
        self._W = W
        self._store = store
        self._settings = dict(settings)
        how = f"{fingerprint}|{canonical_json(self._settings)}"
        self.names: list[str] = []
        self._suffix = hashlib.sha256(how.encode()).hexdigest()[:8]

    def counts(self, labels: np.ndarray, n_clusters: int) -> dict[str, list[int]]:
        """Rows of each group in each cluster: group name to one number for each cluster."""
        names = self._data.group_names
        table = contingency(labels, self._data.groups, n_clusters, len(names))
        return dict(zip(names, table.tolist(), strict=True))

    def score(self, key: str, labels: np.ndarray, n_clusters: int) -> dict[str, float | None]:
        """Metrics of a cell by name; None where a metric does not apply.

        Parameters
        ----------
        key : str
            The cell's.
        labels : ndarray of shape (n_samples,)
        n_clusters : int
        """
        labels = labels.astype(np.int64)
        # The labels' own hash: a method that is not repeatable may have left others under the same key.
        name = f"{key}-{self._suffix}-{hashlib.sha256(labels.tobytes()).hexdigest()[:8]}"
        self.names.append(name)
        known = self._store.get(name)
        if known is not None:
            return known[0]
        found = score_labels(
            self._data.X if self._data.X.shape[1] else None,
            labels,
            self._data.groups,
            n_clusters=n_clusters,
            n_groups=len(self._data.group_names),
            W=self._W,
            truth=self._data.truth,
            **self._settings,
        )
        metrics = {metric: None if math.isnan(value) else value for metric, value in found.items()}
        self._store.put(name, metrics)
        return metrics
