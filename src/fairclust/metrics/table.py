"""The table of metrics, and the scorer that computes them from labels."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import ArrayLike

__all__ = ["METRICS", "Metric", "score_labels"]

Needs = Literal["table", "X", "W", "truth", "numbers"]
Direction = Literal["lower", "higher", "none"]


@dataclass(frozen=True)
class Metric:
    """The properties of a metric.

    Attributes
    ----------
    name : str
        Key in `METRICS` and column in result files.
    label : str
        Heading for tables and axes.
    home : str
        ``module.function`` in this package.
    needs : {'table', 'X', 'W', 'truth', 'numbers'}
        The input from which it is computed. 'numbers' are sensitive columns of numbers.
    range : tuple of float
        Smallest and largest possible value, both included. ``nan`` means that the metric is not applicable.
    direction : {'lower', 'higher', 'none'}
        Which values are better.
    source : str
        Paper (and equation) that defines it, or 'ours'.
    decimals : int
        Digits to print after the point.
    takes : tuple of str
        Names of the keyword arguments that `score_labels` passes to ``function``.
    audit : bool
        Whether `audit` reports it. A run computes it only if a configuration, table or figure names it.
    """

    name: str
    label: str
    home: str
    needs: Needs
    range: tuple[float, float]
    direction: Direction
    source: str
    decimals: int
    takes: tuple[str, ...] = ()
    audit: bool = False

    @property
    def module(self) -> str:
        """The module in which the function is defined."""
        return f"fairclust.metrics.{self.home.partition('.')[0]}"

    @property
    def function(self) -> Callable[..., float]:
        """The function, called with the table, (X, labels), (W, labels), (labels, truth) or labels, by ``needs``.

        The module is imported here, so that code that only needs names and directions does not wait for numba.
        """
        return getattr(importlib.import_module(self.module), self.home.partition(".")[2])


_VFC = "Ziko et al. 2021 (VFC)"
_FMC = "Park et al. (FMC)"
_BFKM = "Pan et al. 2023 (BFKM)"
_GROUPS = ("sensitive_features",)

_DECLARED = (
    Metric(
        "balance",
        "Balance",
        "fairness.balance",
        "table",
        (0.0, 1.0),
        "higher",
        f"Chierichetti et al. 2017; {_VFC}, eq. (1)",
        4,
    ),
    Metric(
        "average_balance",
        "Average balance",
        "fairness.average_balance",
        "table",
        (0.0, 1.0),
        "higher",
        "Wang et al. 2023 (s-FairSC)",
        4,
    ),
    Metric(
        "fairness_error",
        "Fairness error",
        "fairness.fairness_error",
        "table",
        (0.0, math.inf),
        "lower",
        f"{_VFC}, eq. (2), (3)",
        4,
        takes=("target",),
    ),
    Metric(
        "delta",
        "Delta",
        "fairness.delta",
        "table",
        (0.0, 1.0),
        "lower",
        f"{_FMC}, eq. (4), (14), each pair of groups counted once",
        4,
    ),
    Metric(
        "delta_max_pair",
        "Delta (largest pair)",
        "fairness.delta_max_pair",
        "table",
        (0.0, 1.0),
        "lower",
        f"{_FMC}, published program",
        4,
    ),
    Metric(
        "delta_mean",
        "Delta (mean)",
        "fairness.delta_mean",
        "table",
        (0.0, 1.0),
        "lower",
        f"{_FMC}, values of Tables 5 to 7",
        4,
    ),
    Metric(
        "additive_gap",
        "Additive Gap",
        "fairness.additive_gap",
        "table",
        (0.0, 2.0),
        "lower",
        f"Kim et al. 2025 (FCA); {_FMC}, eq. (5); more than two groups: ours",
        4,
    ),
    Metric(
        "share_deviation",
        "Largest share deviation",
        "fairness.share_deviation",
        "table",
        (0.0, 1.0),
        "lower",
        "ours",
        4,
    ),
    Metric(
        "fairness_ratio",
        "FR",
        "fairness.fairness_ratio",
        "table",
        (0.0, 1.0),
        "higher",
        f"Bera et al. 2019; {_BFKM}, Table III",
        4,
    ),
    Metric("awd", "AWD", "fairness.awd", "table", (0.0, 0.5), "lower", f"{_BFKM}, Table III", 4),
    Metric(
        "sse", "SSE", "quality.sse", "X", (0.0, math.inf), "lower", f"{_VFC}, Table 1; {_BFKM}, Table IV", 1
    ),
    Metric(
        "kmedians_cost",
        "K-medians cost",
        "quality.kmedians_cost",
        "X",
        (0.0, math.inf),
        "lower",
        f"{_VFC}, Table 1",
        1,
        takes=("max_evaluations", "exact_max_rows"),
    ),
    Metric(
        "dunn_index",
        "DI",
        "quality.dunn_index",
        "X",
        (0.0, math.inf),
        "higher",
        f"Dunn 1974; {_BFKM}, Table IV",
        4,
    ),
    Metric(
        "ncut",
        "Ncut",
        "quality.ncut",
        "W",
        (0.0, math.inf),
        "lower",
        f"Shi and Malik 2000; {_VFC}, Table 1",
        4,
    ),
    Metric(
        "clustering_error",
        "Error",
        "quality.clustering_error",
        "truth",
        (0.0, 1.0),
        "lower",
        "Kleindessner et al. 2019; Wang et al. 2023 (s-FairSC)",
        4,
    ),
    Metric(
        "n_nonempty",
        "Non-empty clusters",
        "quality.n_nonempty",
        "table",
        (0.0, math.inf),
        "none",
        "count",
        0,
    ),
    Metric(
        "smallest_cluster",
        "Smallest cluster",
        "quality.smallest_cluster",
        "table",
        (0.0, math.inf),
        "none",
        "count",
        0,
    ),
    Metric(
        "largest_cluster",
        "Largest cluster",
        "quality.largest_cluster",
        "table",
        (0.0, math.inf),
        "none",
        "count",
        0,
    ),
    Metric(
        "mean_deviation",
        "Deviation of means",
        "fairness.mean_deviation",
        "numbers",
        (0.0, math.inf),
        "lower",
        "ours",
        4,
        takes=_GROUPS,
    ),
    Metric(
        "absent_groups",
        "Absent groups",
        "fairness.absent_groups",
        "table",
        (0.0, math.inf),
        "lower",
        "count",
        0,
        audit=True,
    ),
    Metric(
        "worst_group_cost",
        "Worst group's cost",
        "social.worst_group_cost",
        "X",
        (0.0, math.inf),
        "lower",
        "Ghadiri et al. 2021; Abbasi et al. 2021",
        4,
        takes=_GROUPS,
        audit=True,
    ),
    Metric(
        "group_cost_ratio",
        "Worst to best group's cost",
        "social.group_cost_ratio",
        "X",
        (1.0, math.inf),
        "lower",
        "Ghadiri et al. 2021; Abbasi et al. 2021",
        4,
        takes=_GROUPS,
        audit=True,
    ),
    Metric(
        "individual_fairness",
        "Individual fairness",
        "individual.individual_fairness",
        "X",
        (0.0, math.inf),
        "lower",
        "Jung et al. 2020; Mahabadi and Vakilian 2020",
        4,
        takes=("n_clusters",),
        audit=True,
    ),
    Metric(
        "individual_fairness_95",
        "Individual fairness (95 %)",
        "individual.individual_fairness_95",
        "X",
        (0.0, math.inf),
        "lower",
        "ours, after Mahabadi and Vakilian 2020",
        4,
        takes=("n_clusters",),
        audit=True,
    ),
    Metric(
        "proportionality",
        "Proportionality (rho)",
        "proportional.proportionality",
        "X",
        (0.0, math.inf),
        "lower",
        "Chen et al. 2019; Micha and Shah 2020",
        4,
        takes=("n_clusters",),
        audit=True,
    ),
    Metric(
        "silhouette_gap",
        "Silhouette difference",
        "silhouette.silhouette_gap",
        "X",
        (0.0, 2.0),
        "lower",
        "Rousseeuw 1987; ours",
        4,
        takes=_GROUPS,
        audit=True,
    ),
)

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _DECLARED})
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
    import numpy as np

    from fairclust.metrics.counts import contingency

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
        if metric.needs != "table" and _GROUPS[0] not in metric.takes:
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
