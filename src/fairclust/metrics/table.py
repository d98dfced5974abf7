"""All metrics by name, and the scorer that computes them from labels."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from fairclust.metrics.counts import contingency
from fairclust.metrics.registry import DECLARED, Metric, Needs

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import ArrayLike

__all__ = ["METRICS", "score_labels"]

# The modules are imported by their names, because a change of one of them is no change of the scores by another one.
for _home in ("fairness", "quality", "social", "individual", "proportional", "silhouette"):
    importlib.import_module(f"fairclust.metrics.{_home}")

METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in sorted(DECLARED, key=lambda metric: (metric.audit, metric.needs == "numbers"))
    }
)
"""Every metric by name, in the order in which tables print them. Read-only."""


def score_labels(
    X: ArrayLike | None,
    labels: ArrayLike,
    groups: ArrayLike,
    *,
    n_clusters: int,
    n_groups: int,
    target: ArrayLike | None = None,
    metrics: Iterable[str] | None = None,
    dunn_max_rows: int | None = 50_000,
    kmedians_max_evaluations: int | None = 10_000,
    kmedians_exact_max_rows: int | None = 200_000,
    W: sp.sparray | sp.spmatrix | None = None,
    truth: ArrayLike | None = None,
    columns: Mapping[str, ArrayLike] | None = None,
    numbers: Mapping[str, ArrayLike] | None = None,
) -> dict[str, float]:
    """Compute metrics of a clustering from its labels.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features) or None
        Points; None for a graph without features.
    labels : array-like of int, shape (n_samples,)
        Cluster of each point, in 0 .. n_clusters - 1.
    groups : array-like of int, shape (n_samples,)
        Group of each point, in 0 .. n_groups - 1.
    n_clusters : int
        Number of requested clusters; those without points count as empty.
    n_groups : int
        Number of groups.
    target : array-like of shape (n_groups,), optional
        Proportions for the fairness error. Default: the data's own.
    metrics : iterable of str, optional
        Names in `METRICS`. Default: all.
    dunn_max_rows : int or None, default 50,000
        With more rows, the Dunn index is not computed. None for no limit.
    kmedians_max_evaluations : int or None, default 10,000
        Number of points that are tried in a cluster before the search for its exact medoid is given up. Smaller
        clusters are always exact. None for no limit.
    kmedians_exact_max_rows : int or None, default 200,000
        With more rows the k-medians cost is an upper bound, see `quality.kmedians_cost`. None for no limit.
    W : sparse array of shape (n_samples, n_samples), optional
        Affinities for the Ncut.
    truth : array-like of int, shape (n_samples,), optional
        True clusters for the clustering error.
    columns : mapping of str to array-like of int, shape (n_samples,), optional
        Codes of several sensitive columns; `groups` are the combinations of their values. A metric of groups is then
        the value of the least fair column.
    numbers : mapping of str to array-like of float, shape (n_samples,), optional
        Sensitive columns of numbers, for the deviation of means: the value of the least fair column.

    Returns
    -------
    dict of str to float
        In the order of ``metrics``. ``nan`` if a metric does not apply: its input was not given, the size is beyond a
        limit, or the definition gives 0/0 (such as the Dunn index of one cluster).

    Raises
    ------
    ValueError
        If a metric's name is unknown or an input that a metric uses is malformed (shapes, codes out of range,
        values that are not finite).
    """
    names = list(METRICS) if metrics is None else list(metrics)
    unknown = sorted(set(names) - METRICS.keys())
    if unknown:
        raise ValueError(f"unknown metrics {unknown}; known are {list(METRICS)}")
    table = contingency(labels, groups, n_clusters, n_groups)
    n_samples = int(table.sum())
    if n_samples == 0:
        raise ValueError("there is no point to score")

    # The points are converted once for all metrics that read them.
    given: dict[Needs, Any] = {
        "table": table,
        "X": None if X is None else np.asarray(X),
        "W": W,
        "truth": truth,
    }
    offered = {
        "target": target,
        "n_clusters": n_clusters,
        "max_evaluations": kmedians_max_evaluations,
        "exact_max_rows": kmedians_exact_max_rows,
    }
    by_column = [np.asarray(codes) for codes in (columns or {"": groups}).values()]
    tables = [contingency(labels, codes, n_clusters, int(codes.max()) + 1) for codes in by_column]
    tables = tables if columns else [table]

    def value(metric: Metric) -> float:
        if metric.needs == "numbers":
            of_numbers = (
                float(metric.function(labels, sensitive_features=z)) for z in (numbers or {}).values()
            )
            return max(of_numbers, default=math.nan)
        first = given[metric.needs]
        if first is None:
            return math.nan
        if metric.name == "dunn_index" and dunn_max_rows is not None and n_samples > dunn_max_rows:
            return math.nan
        if metric.needs != "table" and "sensitive_features" not in metric.takes:
            return of_column(metric, first, groups)
        found = [
            of_column(metric, counts if metric.needs == "table" else first, codes)
            for counts, codes in zip(tables, by_column, strict=True)
        ]
        defined = [one for one in found if not math.isnan(one)]
        worst = max if metric.direction == "lower" else min
        return worst(defined, default=math.nan)

    def of_column(metric: Metric, first: Any, codes: ArrayLike) -> float:
        main = {"table": (first,), "truth": (labels, truth)}.get(metric.needs, (first, labels))
        taken = {**offered, "sensitive_features": codes}
        return float(metric.function(*main, **{name: taken[name] for name in metric.takes}))

    return {name: value(METRICS[name]) for name in names}
