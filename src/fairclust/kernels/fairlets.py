"""Fairlets: small sets of points of two groups, each balanced, that partition the data.

A set of r and b points of the two groups is (p, q)-balanced if ``min(r, b) / max(r, b) >= p / q``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Number of times that the box around the data is halved. The cells are numbered with as many bits, which are 16.
# From the highest bit on, each bit says in which half a point lies at one level.
DEPTH = 16
# A swap must lower the cost by this fraction, so that rounding errors cannot make the search go round in a circle.
_LEAST_GAIN = 1e-9


@njit(cache=True, nogil=True)
def _split(reds, blues, p, q, fairlet, number):  # type: ignore[no-untyped-def]
    """Cut a balanced set into fairlets of at most p + q points, in the order of the lists.

    Returns the next free number of a fairlet. See Chierichetti et al. 2017, Lemma 3.
    """
    if len(reds) < len(blues):
        reds, blues = blues, reds
    i, j = 0, 0
    while len(reds) - i >= q and len(blues) - j >= p and (len(reds) - i) - (len(blues) - j) >= q - p:
        fairlet[reds[i : i + q]] = number
        fairlet[blues[j : j + p]] = number
        i, j, number = i + q, j + p, number + 1
    # Either fewer than p blues are left, or the reds are less than q - p more than the blues, or fewer than q reds are
    # left. One fairlet takes the difference.
    excess = (len(reds) - i) - (len(blues) - j)
    if excess > 0:
        few = min(p, len(blues) - j)
        fairlet[reds[i : i + excess + few]] = number
        fairlet[blues[j : j + few]] = number
        i, j, number = i + excess + few, j + few, number + 1
    while i < len(reds):
        fairlet[reds[i]] = fairlet[blues[j]] = number
        i, j, number = i + 1, j + 1, number + 1
    return number


@njit(cache=True, nogil=True)
def _complete(many, few, x_many, x_few, p, q):  # type: ignore[no-untyped-def]
    """Take more points from the children until the points taken are balanced. They have too few of the colour `few`."""
    n_many, n_few = x_many.sum(), x_few.sum()
    for c in range(len(many)):
        if p * n_many <= q * n_few:
            return
        # Take the points of this colour that the child does not need to be balanced, but no more than are needed.
        spare = (few[c] - x_few[c]) + (-p * (many[c] - x_many[c]) // q)
        more = min(spare, -(-p * n_many // q) - n_few)
        if more > 0:
            x_few[c] += more
            n_few += more
    for c in range(len(many)):
        if p * n_many <= q * n_few:
            return
        # The child cannot spare points of this colour alone. Take all but those of whole fairlets of q and p.
        saturated = (many[c] - x_many[c]) // q
        more = (few[c] - x_few[c]) - p * saturated
        if more > 0:
            n_many += (many[c] - x_many[c]) - q * saturated
            n_few += more
            x_many[c] = many[c] - q * saturated
            x_few[c] = few[c] - p * saturated


@njit(cache=True, nogil=True)
def heavy_points(reds, blues, p, q):  # type: ignore[no-untyped-def]
    """Number of points of each colour to take from each child of a node whose points are (p, q)-balanced in total.

    These are few points. The points left in every child are balanced, and so are all points taken together.
    """
    x_reds, x_blues = np.zeros_like(reds), np.zeros_like(blues)
    for c in range(len(reds)):
        x_reds[c] = max(0, reds[c] - q * blues[c] // p)
        x_blues[c] = max(0, blues[c] - q * reds[c] // p)
    if x_reds.sum() > x_blues.sum():
        _complete(reds, blues, x_reds, x_blues, p, q)
    else:
        _complete(blues, reds, x_blues, x_reds, p, q)
    return x_reds, x_blues


@njit(cache=True, nogil=True)
def _sort_by_cell(points, cells, is_blue, level, keys):  # type: ignore[no-untyped-def]
    """Sort points by their child cell at a level, then by colour. The sort is stable, and `keys` is sorted as well."""
    n_features = cells.shape[1]
    # With more than 62 features the codes overflow. Cells with the same code then count as one, which is allowed.
    base = np.uint64(2) if n_features < 63 else np.uint64(0x9E3779B97F4A7C15)
    bit = np.uint16(DEPTH - 1 - level)
    for i in range(len(points)):
        code = np.uint64(0)
        for f in range(n_features):
            code = code * base + np.uint64((cells[points[i], f] >> bit) & np.uint16(1))
        keys[i] = code * np.uint64(2) + np.uint64(is_blue[points[i]])
    order = np.argsort(keys, kind="mergesort")
    keys[:] = keys[order]
    points[:] = points[order]


@njit(cache=True, nogil=True)
def tree_fairlets(cells, is_blue, p, q):  # type: ignore[no-untyped-def]
    """The number of every point's fairlet on a quadtree (Backurs et al. 2019, Algorithms 1 and 2), for coprime p <= q.

    Every node, from the root down, takes the heavy points out of its children, which are then balanced, and cuts them
    into fairlets. The tree is not stored: it is traversed depth first with a stack, and a node is a slice of one array
    of points. `cells` are the points' places in the finest grid, uint16, and the two groups are (p, q)-balanced.
    """
    n = len(is_blue)
    fairlet = np.empty(n, np.int64)
    points = np.argsort(is_blue, kind="mergesort")
    keys = np.empty(n, np.uint64)
    # A node on the stack has points of both colours, so there are at most n / 2 nodes at any time. Each has its first
    # position, its numbers of reds and blues, and its level.
    stack = np.empty((n // 2 + 1, 4), np.int64)
    stack[0] = 0, n - is_blue.sum(), is_blue.sum(), 0
    top, number = 1, 0
    while top > 0:
        top -= 1
        start, r, b, level = stack[top]
        node = points[start : start + r + b]
        if min(r, b) == 1 or level == DEPTH:
            number = _split(node[:r], node[r:], p, q, fairlet, number)
            continue
        key = keys[start : start + r + b]
        _sort_by_cell(node, cells, is_blue, level, key)
        if key[0] >> np.uint64(1) == key[-1] >> np.uint64(1):
            stack[top] = start, r, b, level + 1
            top += 1
            continue

        n_children = 1
        for i in range(1, r + b):
            n_children += key[i] >> np.uint64(1) != key[i - 1] >> np.uint64(1)
        reds, blues = np.zeros(n_children, np.int64), np.zeros(n_children, np.int64)
        c = 0
        for i in range(r + b):
            c += i > 0 and key[i] >> np.uint64(1) != key[i - 1] >> np.uint64(1)
            if key[i] & np.uint64(1):
                blues[c] += 1
            else:
                reds[c] += 1
        x_reds, x_blues = heavy_points(reds, blues, p, q)

        taken_reds, taken_blues = np.empty(x_reds.sum(), np.int64), np.empty(x_blues.sum(), np.int64)
        read, write, i, j = 0, 0, 0, 0
        for c in range(n_children):
            begin = write
            for colour, x, taken, first in (
                (reds[c], x_reds[c], taken_reds, i),
                (blues[c], x_blues[c], taken_blues, j),
            ):
                keep = colour - x
                for m in range(x):
                    taken[first + m] = node[read + keep + m]
                for m in range(keep):
                    node[write + m] = node[read + m]
                read, write = read + colour, write + keep
            i, j = i + x_reds[c], j + x_blues[c]
            if write > begin:
                stack[top] = start + begin, reds[c] - x_reds[c], blues[c] - x_blues[c], level + 1
                top += 1
        number = _split(taken_reds, taken_blues, p, q, fairlet, number)
    return fairlet


@njit(cache=True, nogil=True)
def fairlet_medoids(X: NDArray[Any], members: NDArray[Any], ends: NDArray[Any]) -> NDArray[Any]:
    """The point of every fairlet with the least sum of distances to the fairlet's other points; ties go to the first.

    `members` are the rows of X sorted by fairlet, and `ends` says where each fairlet ends in it. Returns rows of X.
    """
    medoids = np.empty(len(ends), np.int64)
    begin = 0
    for m in range(len(ends)):
        least, medoids[m] = np.inf, members[begin]
        for i in members[begin : ends[m]]:
            total = 0.0
            for j in members[begin : ends[m]]:
                square = 0.0
                for f in range(X.shape[1]):
                    square += (X[i, f] - X[j, f]) ** 2
                total += np.sqrt(square)
            if total < least:
                least, medoids[m] = total, i
        begin = ends[m]
    return medoids


@njit(cache=True, nogil=True)
def swap_medoids(distances, medoids):  # type: ignore[no-untyped-def]
    """Improve at least two medoids, in place, until no swap with another point lowers the sum of distances.

    This is FasterPAM (Schubert and Rousseeuw, Information Systems 101, 2021): each point in turn replaces the medoid
    for which the cost falls most, if it falls. `distances` is the symmetric table of all points.
    """
    n, n_medoids = len(distances), len(medoids)
    # The nearest medoid of each point, as a position in `medoids`, and the distances to the nearest two.
    first, to_first, to_second = np.empty(n, np.int64), np.empty(n), np.empty(n)
    stale = np.arange(n)
    candidate = since_swap = 0
    while since_swap < n:
        if len(stale):
            for q in stale:
                to_first[q] = to_second[q] = np.inf
                for m in range(n_medoids):
                    d = distances[medoids[m], q]
                    if d < to_first[q]:
                        first[q], to_first[q], to_second[q] = m, d, to_first[q]
                    elif d < to_second[q]:
                        to_second[q] = d
            removed = np.bincount(first, to_second - to_first, n_medoids)
            enough = -_LEAST_GAIN * to_first.sum()
            stale = stale[:0]
        # The change of the cost if the candidate becomes a medoid, and if it replaces each of the medoids.
        row, added, changes = distances[candidate], 0.0, removed.copy()
        for p in range(n):
            if row[p] < to_second[p]:
                closer = min(row[p] - to_first[p], 0.0)
                added += closer
                changes[first[p]] += row[p] - to_second[p] - closer
        k = np.argmin(changes)
        if added + changes[k] < enough:
            stale = np.flatnonzero((distances[medoids[k]] <= to_second) | (row < to_second))
            medoids[k] = candidate
            since_swap = 0
        since_swap += 1
        candidate = (candidate + 1) % n
    return medoids
