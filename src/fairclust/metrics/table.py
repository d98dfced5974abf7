"""All metrics by name, and the scorer that computes them from labels."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from fairclust.metrics.counts import contingency
from fairclust.metrics.registry import DECLARED, Metric

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import ArrayLike, NDArray

_DUNN_MAX_ROWS = 33_000
# The modules are imported by their names, because a change of one of them is no change of the scores by another one.
for _home in ("fairness", "quality"):
    importlib.import_module(f"fairclust.metrics.{_home}")

METRICS: Mapping[str, Metric] = MappingProxyType(
    {metric.name: metric for metric in sorted(DECLARED, key=lambda metric: metric.needs == "numbers")}
)
"""Every metric by name, in the order in which tables print them. Read-only."""


@dataclass(frozen=True, eq=False)
class Scored:
    """A clustering, and what its labels are scored against.

    Attributes
    ----------
    labels : array-like of int, shape (n_samples,)
        Cluster of each point, in 0 .. n_clusters - 1.
    groups : array-like of int, shape (n_samples,)
        Group of each point, from 0.
    X : array-like of shape (n_samples, n_features), optional
        Points; None for a graph without features.
    n_clusters : int, optional
        Number of requested clusters; those without points count as empty. Default: the largest label plus one.
    W : sparse array of shape (n_samples, n_samples), optional
        Affinities for the Ncut.
    truth : array-like of int, shape (n_samples,), optional
        True clusters for the clustering error.
    columns : mapping of str to array-like of int, shape (n_samples,)
        Codes of several sensitive columns; `groups` are the combinations of their values. A metric of groups is then
        the value of the least fair column.
    numbers : mapping of str to array-like of float, shape (n_samples,)
        Sensitive columns of numbers, for the deviation of means: the value of the least fair column.

    Examples
    --------
    >>> from fairclust.metrics import Scored, score_labels
    >>> scored = Scored(labels=[0, 0, 1, 1], groups=[0, 1, 0, 1], X=[[0], [1], [8], [9]])
    >>> scored.table.tolist()
    [[1, 1], [1, 1]]
    >>> score_labels(scored, ["sse", "balance"])
    {'sse': 1.0, 'balance': 1.0}
    """

    labels: ArrayLike
    groups: ArrayLike
    X: ArrayLike | None = None
    n_clusters: int | None = None
    W: sp.sparray | sp.spmatrix | None = None
    truth: ArrayLike | None = None
    columns: Mapping[str, ArrayLike] = field(default_factory=dict)
    numbers: Mapping[str, ArrayLike] = field(default_factory=dict)

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """Counts of the groups in the clusters, shape (n_groups, n_clusters)."""
        return contingency(self.labels, self.groups, self.n_clusters)

    @cached_property
    def tables(self) -> dict[str, NDArray[np.int64]]:
        """The counts for each sensitive column; those of `groups`, without a name, if there are not several."""
        return {
            name: contingency(self.labels, codes, self.n_clusters) for name, codes in self.columns.items()
        } or {"": self.table}


def score_labels(scored: Scored, metrics: Iterable[str] | None = None) -> dict[str, float]:
    """Compute metrics of a clustering from its labels.

    Parameters
    ----------
    scored : Scored
        The labels, and the points, groups and graph.
    metrics : iterable of str, or str, optional
        Names in `METRICS`, or one of them. Default: all.

    Returns
    -------
    dict of str to float
        In the order of ``metrics``. ``nan`` if a metric does not apply: its input was not given, the definition gives
        0/0 (such as the Dunn index of one cluster), or it is the Dunn index of more than 33,000 rows, whose time grows
        with their square.

    Raises
    ------
    ValueError
        If a metric's name is unknown or an input that a metric uses is malformed (shapes, codes out of range,
        values that are not finite).
    """
    names = list(METRICS) if metrics is None else [metrics] if isinstance(metrics, str) else list(metrics)
    unknown = sorted(set(names) - METRICS.keys())
    if unknown:
        raise ValueError(f"unknown metrics {unknown}; known are {list(METRICS)}")
    n_samples = int(scored.table.sum())
    if n_samples == 0:
        raise ValueError("there is no point to score")
    too_large = {"dunn_index"} if n_samples > _DUNN_MAX_ROWS else set()
    return {
        name: math.nan
        if name in too_large
        else METRICS[name].worst(map(float, _values(METRICS[name], scored)))
        for name in names
    }


def _values(metric: Metric, scored: Scored) -> Iterator[float]:
    """The value for each sensitive column, or a single one if it is the same for all."""
    call, labels = metric.function, scored.labels
    if metric.needs == "table":
        yield from map(call, scored.tables.values())
    elif metric.needs == "numbers":
        for numbers in scored.numbers.values():
            yield call(labels, sensitive_features=numbers)
    elif metric.needs == "truth":
        if scored.truth is not None:
            yield call(labels, scored.truth)
    elif (given := getattr(scored, metric.needs)) is not None:
        yield call(given, labels)
