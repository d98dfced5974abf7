"""A search that leaves local optima: clusters of good runs are split and merged, and the centres of two runs crossed.

Splitting and merging are those of breathing k-means (Fritzke 2020), crossing that of HG-means (Gribel, Vidal 2019),
here for every alternation, so that prices and bounds take part in it. A run goes through few steps after each move.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import euclidean_distances

from fairclust.kernels.points import TiledPoints
from fairclust.solvers.alternation import Alternation, Prototypes, Run, alternate, judge_fall, plain_step

# Steps of plain k-means, at most.
_PLAIN_STEPS = 300
# A run is split into so many more clusters as long as that makes it cheaper, by `_CHEAPER`: five, or a fifth of the
# clusters if that is more. On 18 settings, splitting into two more after that took an eighth more time, and the mean
# excess over the best cost known was .069 instead of .067 %. With three more or two more it was no smaller.
_ADDED = 5, 5
_CHEAPER = 1e-4
# With at most so many clusters, a run is then also split into one more. Without it, 3 of 48 fits with K = 6 and 10 were
# 1.6 to 2.3 % dearer than the best ones, and with it none by more than .8 %. It takes a fifth more time. With K = 20 it
# takes a sixth more, for a mean excess of .11 instead of .13 % in 52 fits of nine data sets.
_ONE_BY_ONE = 10
# No further run is split once so many of them cost the same but for this fraction. On 19 settings of nine data sets,
# this and a single `_ADDED` made fits take 2.0 instead of 2.5 times as long as ten starts without the search (3.5
# instead of 4.4 times with 1,000 rows). The mean excess rose from .055 to .071 %. Without the search it is .323 %.
_SAME = 5e-4
# There are no more crossed runs once so many for each cluster, one after the other, have been in vain: they replaced no
# run that was dearer by `_CHEAPER`.
_MOST_VAIN = 3
# Steps with more clusters, and after the clusters are merged again. With 4 and 12 the excess was a third larger.
_STEPS_SPLIT, _STEPS_MERGED = 6, 20
# Rounds of splitting and merging of each run, at most. With K = 20, no run took so many.
_MOST_ROUNDS = 20
# A split moves the halves apart by this part of the root mean cost of a point, and two clusters are neighbours if they
# are closer than so many times the mean distance of a centre to the nearest one; both as in breathing k-means.
_APART, _NEAR = 0.01, 1.1
# Rows from which the new place of a centre is drawn.
_SAMPLE = 512
# Two runs count as the same if no centre of one is farther from the nearest one of the other than this: as a squared
# distance, a part of the mean squared distance of a point to its centre.
_ALIKE = 1e-4


class Effort(NamedTuple):
    """How many runs a search makes."""

    # How many of the best runs take part.
    parents: int = 5
    # Runs that cost the same, after which no further run is split.
    enough: int = 3
    # Crossed runs, at most, and those in vain after which there are no more.
    children: int = 30
    vain: int = 8
    # Whether a crossed run replaces the run that is most similar, instead of the dearer of its parents. Then the runs
    # stay different. Fits of most data took an eighth longer with it and were no cheaper.
    keeps_apart: bool = False
    # The part of the crossed runs in which a centre is moved before the first step, as in HG-means.
    moved: float = 0.0
    # Rough prices have a lower bound that is too low by at most this part of it, at the centres of a start.
    rough_gap: float = 2e-3


# Eight parents took 1.4 times as long, and were as good; without crossed runs the excess was twice as large. With K = 5
# and 10 all runs end at one or two optima, and ending after eight runs in vain halves the time.
USUAL = Effort()
# For rows that are few, or of which many are equal, so that steps are cheap. With K = 20, fits of ten seeds on 649 rows
# were at most .8 % above the best cost known instead of 1.1 %, and took 1.3 times as long. On Dutch, where 9,549 of
# 60,420 rows differ, they were at most .8 % above it instead of 1.0 %, in 1.1 times the time of `USUAL`.
PATIENT = Effort(enough=6, children=60, vain=16)
# For data in which most rows occur many times and which have many optima. On OULAD, where 1,102 of 21,562 rows differ,
# fits of ten seeds with K = 20 were at most .8 % above the best cost known. With half as many crossed runs it was 1.3,
# without moved centres 1.3 and with the usual rough prices, which on these rows are up to .6 % too low, 1.1 %. A fit
# takes 2 to 13 times as long as without the search.
THOROUGH = Effort(parents=11, enough=12, children=600, vain=60, keeps_apart=True, moved=0.5, rough_gap=5e-4)
# For plain k-means, of which the best run is a start of the others. With it, no fit of ten seeds on OULAD with K = 20
# was more than .9 % above the best cost known, instead of 1.1 %; a search for k-means takes 4 % longer.
_PLAIN = Effort(keeps_apart=True)


class Moves(NamedTuple):
    """What the search needs to know of an alternation."""

    # Takes points for any number of clusters, prototypes, the state of a step, and a number of steps.
    run: Callable[[TiledPoints, Prototypes, Any, int], Run]
    # Sort key of runs. The second entry is the cost.
    rank: Callable[[Run], tuple[bool, float]]
    effort: Effort
    # Whether no further run may begin.
    is_done: Callable[[], bool] = lambda: False


def plain_run(
    points: TiledPoints,
    start: Prototypes,
    update: Any,
    tol: float,
    n_steps: int = _PLAIN_STEPS,
    verbose: int = 0,
) -> Run:
    """Plain k-means from some centres."""
    kind = Alternation(plain_step, update, partial(judge_fall, tol=tol))
    return alternate(kind, points.for_plain_steps(), start, max_iter=n_steps, verbose=verbose)


def plain_search(
    points: TiledPoints, runs: Sequence[Run], update: Any, tol: float, rng: np.random.RandomState
) -> Run:
    """The best run of plain k-means that the search finds from the best of these."""
    moves = Moves(
        lambda points, start, _, n_steps: plain_run(points, start, update, tol, n_steps),
        lambda run: (False, run.last.objective),
        _PLAIN,
    )
    parents = sorted(runs, key=moves.rank)[: moves.effort.parents]
    best = cross(points, breathe(points, parents, moves, rng), moves, rng)[0]
    return plain_run(points, best.prototypes, update, tol)


def n_split(points: TiledPoints) -> list[int]:
    """The numbers of clusters into which `breathe` splits runs, one after the other."""
    n_clusters = points.n_clusters
    most = min(n_clusters - 1, points.n_samples - n_clusters)
    widths = (max(_ADDED[0], n_clusters // _ADDED[1]), *((1,) if n_clusters <= _ONE_BY_ONE else ()))
    return sorted({n_clusters + min(width, most) for width in widths}, reverse=True)


def breathe(points: TiledPoints, runs: Sequence[Run], moves: Moves, rng: np.random.RandomState) -> list[Run]:
    """The best of the runs that follow when the dearest clusters are split and the least useful ones merged.

    It is one for each of `runs`, the best first, and none for the last of them if enough cost about the same before.
    """
    wider: TiledPoints | None = None
    ends: list[Run] = []
    for run in runs:
        best, left = run, n_split(points)
        for _ in range(_MOST_ROUNDS):
            if moves.is_done() or not left:
                break
            if wider is None or wider.n_clusters != left[0]:
                # The last table of distances is given up before there is another.
                wider = None
                wider = points.with_clusters(left[0])
            run = _split_and_merge(points, wider, best, moves, rng)
            if any(alike(points, run, other) for other in ends):
                # What follows from here has been found, but the best run so far may be cheaper.
                best = min(run, best, key=moves.rank)
                break
            if moves.rank(run) < _changed(moves.rank(best), -_CHEAPER):
                best = run
            else:
                left.pop(0)
        ends.append(best)
        ends.sort(key=moves.rank)
        if (
            sum(moves.rank(end) <= _changed(moves.rank(ends[0]), _SAME) for end in ends)
            >= moves.effort.enough
        ):
            break
    return ends


def cross(points: TiledPoints, runs: Sequence[Run], moves: Moves, rng: np.random.RandomState) -> list[Run]:
    """Runs from the centres of two of these and of those found so far, which replace dearer ones; the best first."""
    found: list[Run] = []
    for run in runs:
        if not any(alike(points, run, other) for other in found):
            found.append(run)
    n_vain, most_vain = 0, min(moves.effort.vain, _MOST_VAIN * points.n_clusters)
    for _ in range(moves.effort.children if len(found) > 1 else 0):
        if moves.is_done() or n_vain == most_vain:
            break
        n_vain += 1
        pair = rng.choice(len(found), 2, replace=False)
        child = _crossed(points, found[pair[0]], found[pair[1]], moves, rng)
        worse = int(pair.max())
        if moves.effort.keeps_apart:
            # The sum of the squared distances between the centres of two runs, matched so that it is the smallest.
            squares = [
                cdist(run.prototypes.centers, child.prototypes.centers, "sqeuclidean") for run in found
            ]
            worse = int(np.argmin([float(of[linear_sum_assignment(of)].sum()) for of in squares]))
        elif any(alike(points, child, run) for run in found):
            continue
        dear = moves.rank(found[worse])
        if moves.rank(child) < dear:
            if moves.rank(child) < _changed(dear, -_CHEAPER):
                n_vain = 0
            found[worse] = child
            found.sort(key=moves.rank)
    return found


def _changed(rank: tuple[bool, float], part: float) -> tuple[bool, float]:
    """The rank with a cost that is larger by this part of it."""
    is_far, cost = rank
    return is_far, cost + part * abs(cost)


def alike(points: TiledPoints, one: Run, other: Run) -> bool:
    """Whether two runs have ended at nearly the same centres."""
    squares = cdist(one.prototypes.centers, other.prototypes.centers, "sqeuclidean")
    apart = max(squares.min(axis=0).max(), squares.min(axis=1).max())
    near = _ALIKE * other.last.objective / points.n_samples
    return bool(apart <= (near if points.squared else near**2 / _ALIKE))


def _split_and_merge(
    points: TiledPoints, wider: TiledPoints, run: Run, moves: Moves, rng: np.random.RandomState
) -> Run:
    n_more, centers = wider.n_clusters - points.n_clusters, run.prototypes.centers
    points.measure(centers)
    paid, _ = points.losses(run.last.offset)
    dearest = np.argsort(-paid, kind="stable")[:n_more]
    size = _APART * (paid.sum() / points.n_samples) ** (0.5 if points.squared else 1.0)
    halves = centers[dearest] + size * (rng.random_sample((n_more, centers.shape[1])) - 0.5)
    # Multipliers have one column for each cluster. Other alternations keep no state.
    state = run.last.state
    if state is not None:
        state = np.hstack([state, state[:, dearest]])
    split = moves.run(wider, Prototypes(np.vstack([centers, halves])), state, _STEPS_SPLIT)
    wider.measure(split.prototypes.centers)
    kept = _without_least(split.prototypes.centers, wider.losses(split.last.offset)[1], n_more)
    start = Prototypes(split.prototypes.centers[kept])
    state = None if state is None else split.last.state[:, kept]
    return moves.run(points, start, state, _STEPS_MERGED)


def _without_least(centers: np.ndarray, losses: np.ndarray, n_fewer: int) -> np.ndarray:
    """All clusters but those whose points lose least without them, of which no two are neighbours if possible."""
    gaps = cdist(centers, centers)
    np.fill_diagonal(gaps, np.inf)
    near = gaps < _NEAR * gaps.min(axis=1).mean()
    leaves, spared = np.zeros(len(centers), bool), np.zeros(len(centers), bool)
    order = np.argsort(losses, kind="stable")
    for k in order:
        if leaves.sum() == n_fewer:
            break
        if not spared[k]:
            leaves[k] = True
            spared |= near[k] & ~leaves
    for k in order[~leaves[order]][: n_fewer - int(leaves.sum())]:
        leaves[k] = True
    return np.flatnonzero(~leaves)


def _crossed(points: TiledPoints, one: Run, other: Run, moves: Moves, rng: np.random.RandomState) -> Run:
    """A run from centres of two runs: they are matched, and one of each pair is drawn. Then one of them may move."""
    ours, theirs = one.prototypes.centers, other.prototypes.centers
    _, match = linear_sum_assignment(cdist(ours, theirs, "sqeuclidean"))
    drawn = rng.random_sample(len(ours)) < 0.5
    centers = np.where(drawn[:, None], ours, theirs[match])
    state = None
    if one.last.state is not None:
        state = np.where(drawn, one.last.state, other.last.state[:, match])
    if moves.effort.moved and rng.random_sample() < moves.effort.moved:
        leaving = rng.randint(len(centers))
        centers[leaving] = _far_row(points, np.delete(centers, leaving, axis=0), rng)
        if state is not None:
            state[:, leaving] = 0.0
    return moves.run(points, Prototypes(centers), state, _STEPS_MERGED)


def _far_row(points: TiledPoints, centers: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """A row drawn in proportion to its squared distance to the nearest of some centres, from a sample of the rows."""
    share = None if points.weights is None else points.weights / points.weights.sum()
    rows = points.X[rng.choice(points.n_samples, _SAMPLE, p=share)]
    sums = np.cumsum(euclidean_distances(rows, centers, squared=True).min(axis=1))
    row = rows[np.searchsorted(sums, rng.random_sample() * sums[-1])]
    return row.toarray()[0] if points.is_sparse else row
