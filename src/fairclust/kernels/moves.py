"""Sweeps that move one point at a time and update the counts of the clusters after every move.

The penalty is ``rho * sum_jk (n_jk / N_j - n_k / N)^2 + lam * sum_k 1 / n_k``, where j runs over all values of all
sensitive columns. Ones and zeros, `members` of shape (n_values, n_groups), say which groups have each value. As the
penalty depends only on the counts, the part of it that a point pays to enter a cluster or to stay there depends only on
the point's group and on the cluster. Two tables of shape (n_groups, n_clusters) hold these numbers, and a move changes
two columns of each. A point that is alone in its cluster stays.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _reprice(k, counts, sizes, members, value_sizes, rho, lam, own_group, enter, stay):  # type: ignore[no-untyped-def]
    """Compute column k of both tables, the penalty with a point minus the penalty without it."""
    n_values, n_groups = members.shape
    total = sizes.sum()
    size = sizes[k]
    size_enter = lam * (1 / (size + 1) - 1 / size)
    # A point that is alone in its cluster never leaves it (see `_sweep`), so this number is not used then.
    size_stay = lam * (1 / size - 1 / (size - 1)) if size > 1 else 0.0
    gaps = np.empty(n_values)
    for i in range(n_values):
        count = 0
        for j in range(n_groups):
            if members[i, j]:
                count += counts[j, k]
        gaps[i] = count / value_sizes[i] - size / total
    for j in range(n_groups):
        to_enter, to_stay = 0.0, 0.0
        for i in range(n_values):
            if own_group and not members[i, j]:
                continue
            gap = gaps[i]
            step = (1 / value_sizes[i] if members[i, j] else 0.0) - 1 / total
            to_enter += step * (2 * gap + step)
            to_stay += step * (2 * gap - step)
        enter[j, k] = rho * to_enter + size_enter
        stay[j, k] = rho * to_stay + size_stay


@njit(cache=True, nogil=True)
def sweep(X, codes, centers, labels, counts, members, rho, lam, own_group):  # type: ignore[no-untyped-def]
    """Visit the points in order and move each to the cluster with the least squared distance plus penalty.

    `labels` and `counts`, shape (n_groups, n_clusters), change in place; no group or cluster may be empty. The columns
    of `centers` are the fixed centres. With `own_group` only the terms of a point's own group count, and the objective
    may rise. Returns the number of moves and the sum of squared distances.
    """
    n_features, n_clusters = centers.shape
    sizes, value_sizes = counts.sum(axis=0), np.zeros(len(members))
    for i in range(len(members)):
        for j in range(len(counts)):
            value_sizes[i] += members[i, j] * counts[j].sum()
    enter = np.empty(counts.shape)
    stay = np.empty(counts.shape)
    for k in range(n_clusters):
        _reprice(k, counts, sizes, members, value_sizes, rho, lam, own_group, enter, stay)
    distance = np.empty(n_clusters)
    n_moved, summed = 0, 0.0
    for p in range(len(X)):
        # The inner loop runs over clusters, so that the compiler can work on several at once.
        distance[:] = 0.0
        for f in range(n_features):
            x = X[p, f]
            for k in range(n_clusters):
                difference = x - centers[f, k]
                distance[k] += difference * difference
        j, old = codes[p], labels[p]
        new, least = old, distance[old] + stay[j, old]
        if sizes[old] > 1:
            for k in range(n_clusters):
                cost = distance[k] + enter[j, k]
                if cost < least and k != old:
                    new, least = k, cost
        summed += distance[new]
        if new != old:
            n_moved += 1
            labels[p] = new
            counts[j, old] -= 1
            sizes[old] -= 1
            counts[j, new] += 1
            sizes[new] += 1
            _reprice(old, counts, sizes, members, value_sizes, rho, lam, own_group, enter, stay)
            _reprice(new, counts, sizes, members, value_sizes, rho, lam, own_group, enter, stay)
    return n_moved, summed
