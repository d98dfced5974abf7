"""Group fairness of a clustering, computed from the group-by-cluster table.

With labels, the clusters are 0 to the largest label; a number in between that no point has is an empty cluster.
Notation: n_k is the size of cluster k, N_j that of group j, N the number of points, P_kj = n_jk / n_k the share of
group j in cluster k, and mu_j = N_j / N its share in the data.

All functions follow these conventions:

* A group without points is left out.
* If one group is left, every clustering is fair: ratios are 1 if no cluster is empty, gaps and divergences 0.
* An empty cluster (a column of zeros) has no shares. The metrics where 1 is fair count it as 0, so that a method does
  not gain by losing one of its K clusters. Sums of divergences and gaps leave it out.
* Counts are multiplied before they are divided wherever possible, so that an exactly proportional clustering
  scores exactly 0 or 1 (up to counts whose products stay below 2^53).

All functions have these parameters, which are added to their docstrings:

Parameters
----------
labels : array-like of shape (n_samples,), or of shape (n_groups, n_clusters)
    The cluster of each point, of which there is at least one, or the table of counts n_jk if `sensitive_features` is
    not given. Metrics of the Delta family also take a table of sums of responsibilities. No count may be negative or
    infinite.
sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
    The group of each point, without missing ones. If there are several columns, each combination of values is a group.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairclust.group_encoding import group_codes, read_numbers, split_columns
from fairclust.metrics.counts import checked_codes, contingency, finite_numbers
from fairclust.metrics.registry import documented, metric


@metric("Balance", (0.0, 1.0), "higher", "Chierichetti et al. 2017; Ziko et al. 2021 (VFC), eq. (1)")
def balance(labels: ArrayLike, *, sensitive_features: ArrayLike | None = None) -> float:
    """Least ratio of two groups' counts in any cluster: min_k min_{j != j'} n_jk / n_j'k.

    It is 0 if a cluster lacks a group or is empty, and never above `data_balance`.
    """
    return float(_cluster_balances(_table(labels, sensitive_features)).min())


@metric("Average balance", (0.0, 1.0), "higher", "Wang et al. 2023 (s-FairSC)")
def average_balance(labels: ArrayLike, *, sensitive_features: ArrayLike | None = None) -> float:
    """Mean over the clusters of the least ratio of two groups' counts: mean_k min_j n_jk / max_j n_jk.

    An empty cluster counts as 0.
    """
    return float(_cluster_balances(_table(labels, sensitive_features)).mean())


@documented
def data_balance(labels: ArrayLike, *, sensitive_features: ArrayLike | None = None) -> float:
    """Balance of the data themselves, min_j N_j / max_j N_j: the largest balance that a clustering can have.

    Returns
    -------
    float
        In (0, 1].
    """
    group_sizes = _table(labels, sensitive_features).sum(axis=1)
    return float(group_sizes.min() / group_sizes.max())


@metric("Fairness error", (0.0, inf), "lower", "Ziko et al. 2021 (VFC), eq. (2), (3)")
def fairness_error(labels: ArrayLike, *, sensitive_features: ArrayLike | None = None) -> float:
    """Summed Kullback-Leibler divergence of the shares from those in the data: sum_k KL(mu || P_k), natural log.

    As in the paper, this is the sum over the clusters and not their mean, so it grows with K. It is ``inf`` if a
    cluster that has points lacks a group. Empty clusters add nothing.
    """
    counts = _table(labels, sensitive_features)
    group_sizes = counts.sum(axis=1)
    total = group_sizes.sum()
    wanted = group_sizes / total
    counts = counts[:, counts.sum(axis=0) > 0]
    if (counts == 0).any():
        return inf
    sizes = counts.sum(axis=0)
    error = 0.0
    for share, size, of_group in zip(wanted, group_sizes, counts, strict=True):
        error += share * np.log(size * sizes / (of_group * total)).sum()
    # The terms have both signs, so rounding can make the sum slightly negative.
    return max(0.0, float(error))


@metric("Delta", (0.0, 1.0), "lower", "Park et al. (FMC), eq. (4), (14), each pair of groups counted once")
def delta(labels: ArrayLike, *, sensitive_features: ArrayLike | None = None) -> float:
    """How differently the groups spread over clusters: max_k mean_{j < j'} abs(n_jk / N_j - n_j'k / N_j').

    For two groups, this is max_k abs(n_1k / N_1 - n_2k / N_2), eq. (4) (and eq. (6), for a table of summed
    responsibilities). For more groups, it is the mean of this difference over the pairs of groups, and then the
    maximum over the clusters. A cluster without points adds nothing.

    Eq. (14) prints a sum over ordered pairs (s1, s2 in [M], s1 != s2) under the factor 2 / (M (M - 1)), which
    is the reciprocal of the number of unordered pairs. Here each unordered pair counts once, because otherwise M = 2
    would not give eq. (6), and the value could exceed 1.
    """
    return float(_pair_means(_table(labels, sensitive_features)).max())


@metric("Delta (mean)", (0.0, 1.0), "lower", "Park et al. (FMC), values of Tables 5 to 7")
def delta_mean(labels: ArrayLike, *, sensitive_features: ArrayLike | None = None) -> float:
    """How differently the groups spread over clusters, on average: mean_k mean_{j < j'} abs(n_jk / N_j - n_j'k / N_j').

    The text of the paper defines `delta`, the maximum over the clusters, which is at least as large. Empty clusters
    count with 0.
    """
    return float(_pair_means(_table(labels, sensitive_features)).mean())


@metric("Largest share deviation", (0.0, 1.0), "lower", "ours")
def share_deviation(labels: ArrayLike, *, sensitive_features: ArrayLike | None = None) -> float:
    """Largest deviation of a group's share in a cluster from its share in the data: max_kj abs(P_kj - mu_j).

    It is an absolute counterpart of `fairness_ratio`, in percentage points. Empty clusters are left out.
    """
    counts = _table(labels, sensitive_features)
    counts = counts[:, counts.sum(axis=0) > 0]
    sizes = counts.sum(axis=0)
    group_sizes = counts.sum(axis=1, keepdims=True)
    total = sizes.sum()
    return float(np.abs((counts * total - group_sizes * sizes) / (total * sizes)).max())


@metric("FR", (0.0, 1.0), "higher", "Bera et al. 2019; Pan et al. 2023 (BFKM), Table III")
def fairness_ratio(labels: ArrayLike, *, sensitive_features: ArrayLike | None = None) -> float:
    """Fairness ratio FR: min_k min_j min(P_kj / mu_j, mu_j / P_kj).

    It is 0 if a cluster lacks a group or is empty.
    """
    counts = _table(labels, sensitive_features)
    sizes = counts.sum(axis=0)
    if (counts == 0).any():
        return 0.0
    observed = counts * sizes.sum()
    expected = counts.sum(axis=1, keepdims=True) * sizes
    return float((np.minimum(observed, expected) / np.maximum(observed, expected)).min())


@metric("AWD", (0.0, 0.5), "lower", "Pan et al. 2023 (BFKM), Table III")
def awd(labels: ArrayLike, *, sensitive_features: ArrayLike | None = None) -> float:
    """Average Wasserstein distance: (1/N) sum_k n_k W1(P_k, mu).

    W1 is the distance between the two sets of share values {P_kj}_j and {mu_j}_j, in which each share has the mass 1/J.
    This is the mean absolute difference of the sorted shares. Empty clusters have no weight.

    After sorting, it no longer matters which group a share belongs to. A cluster with the shares of two groups swapped
    scores 0, so 0 does not imply proportionality. The metric is kept because the published tables use it.
    """
    counts = _table(labels, sensitive_features)
    counts = counts[:, counts.sum(axis=0) > 0]
    sizes = counts.sum(axis=0)
    group_sizes = counts.sum(axis=1)
    shares = np.sort(counts / sizes, axis=0)
    overall = np.sort(group_sizes / sizes.sum())
    distances = np.abs(shares - overall[:, None]).mean(axis=0)
    return min(0.5, float(sizes @ distances / sizes.sum()))


@metric("Deviation of means", (0.0, inf), "lower", "ours", needs="numbers")
def mean_deviation(labels: ArrayLike, *, sensitive_features: ArrayLike) -> float:
    """Largest difference between the mean of a column of numbers in a cluster and in all rows, in standard deviations.

    It is 0 if all numbers are equal. `PriceFairKMeans(mean_tolerance=...)` bounds it.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        The cluster of each point.
    sensitive_features : array-like of shape (n_samples,)
        A finite number for each point, such as an age.
    """
    codes = np.unique(checked_codes(labels, "labels")[0], return_inverse=True)[1]
    columns = split_columns(sensitive_features)
    if len(columns) != 1 or not codes.size:
        raise ValueError(
            f"sensitive_features must be one column for at least one label, found {len(columns)} for {codes.size}"
        )
    ((name, cells),) = columns.items()
    numbers = read_numbers(cells, codes.size, name)
    if (numbers == numbers[0]).all():
        # The computed standard deviation of equal numbers can be a rounding error above 0.
        return 0.0
    far = np.bincount(codes, numbers - numbers.mean()) / np.bincount(codes)
    return float(np.abs(far).max() / numbers.std())


def _table(labels: ArrayLike, sensitive_features: ArrayLike | None) -> NDArray[np.float64]:
    """The counts of the groups that have points in the clusters, from a table or from labels and groups."""
    if sensitive_features is None:
        counts = finite_numbers(labels, "the table").astype(np.float64)
        if counts.ndim != 2:
            raise ValueError(
                f"the table must have two dimensions (groups, clusters), not {counts.ndim}; with labels, pass "
                "sensitive_features"
            )
    else:
        counts = contingency(labels, group_codes(sensitive_features)).astype(np.float64)
    if (counts < 0).any() or not counts.any():
        raise ValueError("the table must hold counts that are not negative, of at least one point")
    return counts[counts.sum(axis=1) > 0]


def _cluster_balances(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """min_j n_jk / max_j n_jk of every cluster, 0 for an empty one."""
    largest = counts.max(axis=0)
    return counts.min(axis=0) / np.where(largest > 0, largest, 1.0)


def _pair_means(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the unordered pairs of groups of abs(n_jk / N_j - n_j'k / N_j'), for every cluster."""
    spread = counts / counts.sum(axis=1, keepdims=True)
    J = spread.shape[0]
    if J < 2:
        return np.zeros(spread.shape[1])
    first, second = np.triu_indices(J, k=1)
    return np.abs(spread[first] - spread[second]).mean(axis=0)
