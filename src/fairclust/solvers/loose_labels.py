"""Cheaper labels for data in which a few points lie far from all others.

If bounds may be exceeded by a point in every cell, then the few points that cost most can go to better clusters. The
prices do not show this, because they are the same for near and far points.
"""

from __future__ import annotations

import numpy as np

from fairclust.solvers.criteria import Criterion

_MOST_MOVES = 2000
# Numbers of the cheapest moves that are tried in pairs with moves of other groups.
_PAIRED = 50
_MET = 1e-9


def move_dearest(
    costs: np.ndarray, codes: np.ndarray, labels: np.ndarray, counts: np.ndarray, criterion: Criterion
) -> tuple[np.ndarray, float, np.ndarray]:
    """Move one point after the other to a cheaper cluster, as long as every cell is off its bounds by at most a point.

    A move of another group between the same two clusters may be made with it, which keeps their shares. If a cell is
    off by more at the start, all cells may be off by that much. Returns labels, cost and table.
    """
    labels, counts = labels.astype(np.int32), counts.astype(float)
    n_groups, n_clusters = counts.shape
    members = [np.flatnonzero(codes == j) for j in range(n_groups)]
    allowed = max(1.0, float(criterion.excess(counts).max())) + _MET
    # saved[j, k, l] is the most negative change of the cost if a point of group j moves from cluster k to l.
    saved = np.zeros((n_groups, n_clusters, n_clusters))
    point = np.full(saved.shape, -1)

    def look(j: int) -> None:
        change = costs[members[j]] - costs[members[j], labels[members[j]]][:, None]
        for k in range(n_clusters):
            inside = np.flatnonzero(labels[members[j]] == k)
            if len(inside):
                best = inside[change[inside].argmin(axis=0)]
                saved[j, k], point[j, k] = change[best, np.arange(n_clusters)], members[j][best]
            else:
                saved[j, k], point[j, k] = np.inf, -1
            saved[j, k, k] = np.inf

    for j in range(n_groups):
        look(j)
    for _ in range(_MOST_MOVES):
        cheapest = np.argsort(saved, axis=None, kind="stable")
        single: list[tuple[int, ...]] = [
            tuple(map(int, np.unravel_index(i, saved.shape))) for i in cheapest[: int((saved < 0).sum())]
        ]
        tried: list[tuple[float, tuple[tuple[int, ...], ...]]] = [(saved[move], (move,)) for move in single]
        for j, k, m in single[:_PAIRED]:
            others = [(i, *ends) for i in range(n_groups) if i != j for ends in ((k, m), (m, k))]
            tried += [(saved[j, k, m] + saved[other], ((j, k, m), other)) for other in others]
        for change, moves in sorted(tried, key=lambda found: found[0]):
            table = counts.copy()
            for j, k, m in moves:
                table[j, k] -= 1
                table[j, m] += 1
            if change < 0 and criterion.excess(table).max() <= allowed:
                break
        else:
            break
        counts = table
        for move in moves:
            labels[point[move]] = move[2]
        for j in {move[0] for move in moves}:
            look(j)
    return labels, float(costs[np.arange(len(costs)), labels].sum()), counts
