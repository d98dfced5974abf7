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
# clusters if that is more.
_ADDED = 5, 5
_CHEAPER = 1e-4
# With at most so many clusters, a run is then also split into one more. With more clusters, that gains little for its
# time.
_ONE_BY_ONE = 10
# No further run is split once so many of them cost the same but for this fraction.
_SAME = 5e-4
# There are no more crossed runs once so many for each cluster, one after the other, have been in vain: they replaced no
# run that was dearer by `_CHEAPER`.
_MOST_VAIN = 3
# Steps with more clusters, and after the clusters are merged again.
_STEPS_SPLIT, _STEPS_MERGED = 6, 20
# Rounds of splitting and merging of each run, at most.
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
    # stay different, which takes longer.
    keeps_apart: bool = False
    # The part of the crossed runs in which a centre is moved before the first step, as in HG-means.
    moved: float = 0.0
    # Rough prices have a lower bound that is too low by at most this part of it, at the centres of a start.
    rough_gap: float = 2e-3


# With few clusters all runs end at one or two optima, so the search ends after a few runs in vain.
USUAL = Effort()
# For rows that are few, or of which many are equal, so that steps are cheap.
PATIENT = Effort(enough=6, children=60, vain=16)
# For data in which most rows occur many times and which have many optima. The usual rough prices are too low there.
THOROUGH = Effort(parents=11, enough=12, children=600, vain=60, keeps_apart=True, moved=0.5, rough_gap=5e-4)
# For plain k-means, of which the best run is a start of the others.
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
