"""A search for better centres, which goes on from some runs of an alternation that have ended in local optima.

1. The costliest clusters of a run are split, and after a few steps as many clusters are merged again (breathing
   k-means, Fritzke 2020). This is repeated as long as the run becomes cheaper.
2. The centres of two of these runs are matched, one of each pair is drawn, and a few steps follow (HG-means, Gribel and
   Vidal 2019). The new run replaces the costlier one of the two if it is cheaper.

Prices and bounds take part in both, because the search makes all steps with the alternation that it is given. Steps
with rough prices, at a higher temperature, take less time and tell good centres from bad ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from fairclust.kernels.points import TiledPoints
from fairclust.solvers.alternation import Alternation, Prototypes, Run, alternate, judge_fall, plain_step
from fairclust.solvers.criteria import Criterion, Work
from fairclust.solvers.prices import FAR, ROUGH, ROUGH_LEVEL

# So many of the cheapest runs take part in the search.
PARENTS = 5
# Steps of plain k-means, at most.
_PLAIN_STEPS = 300
# A run is split into so many more clusters: five, or a fifth of the clusters if that is more. With at most
# `_ONE_BY_ONE` clusters it is then also split into one more, which gains little for its time with more clusters.
_ADDED, _ONE_BY_ONE = (5, 5), 10
# A change of the cost by less than this fraction is no progress.
_CHEAPER = 1e-4
# No further run is split once so many of them cost the same but for this fraction.
_ENOUGH, _SAME = 3, 5e-4
# The most crossed runs, and after how many in a row without progress the crossing ends.
_CROSSED, _VAIN = 30, 8
# The steps with more clusters, those after clusters are merged, and the most rounds of both for each run.
_STEPS_SPLIT, _STEPS_MERGED, _MOST_ROUNDS = 6, 20, 20
# A split moves the halves apart by this part of the root mean cost of a point, and two clusters are neighbours if they
# are closer than so many times the mean distance of a centre to the nearest one; both as in breathing k-means.
_APART, _NEAR = 0.01, 1.1
# Two runs count as the same if no centre of one is farther from the nearest one of the other than this: as a squared
# distance, a part of the mean squared distance of a point to its centre.
_ALIKE = 1e-4
# Starts take so many steps with rough prices, and without a search so many of them continue.
_ROUGH_STEPS, KEPT = 4, 3
# Factor for `tol` of runs with rough prices, which are many and continue if they are good.
_ROUGH_TOL = 30
# The seconds of `Work` that the search may take in addition to the passes over the points.
_SEARCH_WORK = 1.0
# After the search, only runs continue whose costs are within this fraction of the cheapest. The rough prices of few
# rows are far off, so that a smaller fraction loses the best run.
_CLOSE = 1e-2

# Centres and multipliers, which may be None.
Starts = Sequence[tuple[Prototypes, Any]]


def rank(run: Run) -> tuple[bool, float]:
    """Sort key of a run. Runs whose prices are far off come last: their lower bound is too low and looks cheap."""
    is_far = run.last.more.get("violation", 0.0) > max(1.0, ROUGH * FAR * len(run.last.labels))
    return is_far, max(run.last.objective, run.last.clustering)


def is_cheaper(run: Run, other: Run, fraction: float = 0.0) -> bool:
    """Whether a run is cheaper than another one by more than this fraction of the cost."""
    is_far, cost = rank(other)
    return rank(run) < (is_far, cost - fraction * abs(cost))


def alike(points: TiledPoints, run: Run, other: Run) -> bool:
    """Whether two runs have ended at nearly the same centres."""
    squares = cdist(run.prototypes.centers, other.prototypes.centers, "sqeuclidean")
    apart = max(squares.min(axis=0).max(), squares.min(axis=1).max())
    near = _ALIKE * other.last.objective / points.n_samples
    return bool(apart <= (near if points.squared else near**2 / _ALIKE))


def different(points: TiledPoints, runs: Sequence[Run]) -> list[Run]:
    """Runs without those that are alike an earlier one."""
    kept: list[Run] = []
    for run in runs:
        if not any(alike(points, run, other) for other in kept):
            kept.append(run)
    return kept


def n_split(points: TiledPoints) -> list[int]:
    """The numbers of clusters into which runs are split, one after the other."""
    n_clusters = points.n_clusters
    most = min(n_clusters - 1, points.n_samples - n_clusters)
    widths = (max(_ADDED[0], n_clusters // _ADDED[1]), *((1,) if n_clusters <= _ONE_BY_ONE else ()))
    return sorted({n_clusters + min(width, most) for width in widths}, reverse=True)


class Search(NamedTuple):
    """The alternation that is searched with."""

    points: TiledPoints
    # Takes points for any number of clusters, prototypes, the multipliers of a step or None, and a number of steps.
    run: Callable[[TiledPoints, Prototypes, Any, int], Run]
    rng: np.random.RandomState
    # Whether no further run may begin.
    is_done: Callable[[], bool] = lambda: False
    # Factor for the number of crossed runs.
    patience: float = 1.0

    def breathe(self, runs: Sequence[Run]) -> list[Run]:
        """For each run the best one that splitting and merging its clusters leads to, the cheapest first.

        The last of `runs` are left out if enough cost about the same before.
        """
        wider: TiledPoints | None = None
        ends: list[Run] = []
        for best in runs:
            left = n_split(self.points)
            for _ in range(_MOST_ROUNDS):
                if self.is_done() or not left:
                    break
                if wider is None or wider.n_clusters != left[0]:
                    # The last table of distances is given up before there is another.
                    wider = None
                    wider = self.points.with_clusters(left[0])
                run = self._split_and_merge(wider, best)
                if any(alike(self.points, run, end) for end in ends):
                    # Nothing new follows from where another run has ended. The best run so far may still be cheaper.
                    best = min(run, best, key=rank)
                    break
                if is_cheaper(run, best, _CHEAPER):
                    best = run
                else:
                    left.pop(0)
            ends.append(best)
            ends.sort(key=rank)
            if sum(not is_cheaper(ends[0], end, _SAME) for end in ends) >= _ENOUGH:
                break
        return ends

    def cross(self, runs: Sequence[Run]) -> list[Run]:
        """The runs after crossing, the cheapest first: a new run from two of them replaces the costlier one."""
        kept, n_vain = different(self.points, runs), 0
        for _ in range(int(self.patience * _CROSSED) if len(kept) > 1 else 0):
            if self.is_done() or n_vain >= self.patience * _VAIN:
                break
            n_vain += 1
            cheaper, costlier = sorted(self.rng.choice(len(kept), 2, replace=False))
            child = self._crossed(kept[cheaper], kept[costlier])
            if is_cheaper(child, kept[costlier]) and not any(alike(self.points, child, run) for run in kept):
                if is_cheaper(child, kept[costlier], _CHEAPER):
                    n_vain = 0
                kept[costlier] = child
                kept.sort(key=rank)
        return kept

    def _split_and_merge(self, wider: TiledPoints, run: Run) -> Run:
        points, centers = self.points, run.prototypes.centers
        n_more = wider.n_clusters - points.n_clusters
        points.measure(centers)
        paid, _ = points.losses(run.last.offset)
        costliest = np.argsort(-paid, kind="stable")[:n_more]
        size = _APART * (paid.sum() / points.n_samples) ** (0.5 if points.squared else 1.0)
        halves = centers[costliest] + size * (self.rng.random_sample((n_more, centers.shape[1])) - 0.5)
        # Multipliers have one column for each cluster. Plain k-means has none.
        state = run.last.state
        if state is not None:
            state = np.hstack([state, state[:, costliest]])
        split = self.run(wider, Prototypes(np.vstack([centers, halves])), state, _STEPS_SPLIT)
        wider.measure(split.prototypes.centers)
        kept = _without_least(split.prototypes.centers, wider.losses(split.last.offset)[1], n_more)
        state = None if state is None else split.last.state[:, kept]
        return self.run(points, Prototypes(split.prototypes.centers[kept]), state, _STEPS_MERGED)

    def _crossed(self, run: Run, other: Run) -> Run:
        """A run from centres of two runs: they are matched, and one of each pair is drawn."""
        ours, theirs = run.prototypes.centers, other.prototypes.centers
        _, match = linear_sum_assignment(cdist(ours, theirs, "sqeuclidean"))
        drawn = self.rng.random_sample(len(ours)) < 0.5
        centers = np.where(drawn[:, None], ours, theirs[match])
        state = None
        if run.last.state is not None:
            state = np.where(drawn, run.last.state, other.last.state[:, match])
        return self.run(self.points, Prototypes(centers), state, _STEPS_MERGED)


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


def plain_run(
    points: TiledPoints, start: Prototypes, update: Any, tol: float, n_steps: int = _PLAIN_STEPS
) -> Run:
    """Plain k-means from some centres."""
    alternation = Alternation(plain_step, update, partial(judge_fall, tol=tol))
    return alternate(alternation, points.for_plain_steps(), start, max_iter=n_steps)


def plain_search(
    points: TiledPoints, runs: Sequence[Run], update: Any, tol: float, rng: np.random.RandomState
) -> Run:
    """The best run of plain k-means that the search finds from the best of these."""

    def run(points: TiledPoints, start: Prototypes, _: Any, n_steps: int) -> Run:
        return plain_run(points, start, update, tol, n_steps)

    search = Search(points, run, rng)
    best = search.cross(search.breathe(sorted(runs, key=rank)[:PARENTS]))[0]
    return plain_run(points, best.prototypes, update, tol)


def searched(
    points: TiledPoints,
    criterion_of: Callable[..., Criterion],
    starts: Starts,
    run_of: Callable[..., Run],
    rng: np.random.RandomState | None,
    n_joined: float,
) -> list[Run]:
    """The runs that continue, the cheapest first; without `rng` there is no search.

    ``criterion_of(sizes, n_clusters=K)`` is the criterion for groups of these sizes, and ``run_of(points, criterion,
    start, multipliers, n_steps, **options)`` makes a run.
    """
    # Only the search tries other numbers of clusters, for which bounds on single clusters say nothing.
    numbers = (points.n_clusters, *(() if rng is None else n_split(points)))
    work = Work(extra=_SEARCH_WORK)
    criteria = {n: replace(criterion_of(points.group_sizes, n_clusters=n), work=work) for n in numbers}
    # The more rows are joined in a point, the less time a step takes. The search then goes on for longer, and its
    # prices are less rough.
    patience = n_joined**0.5
    options = {"rough": ROUGH_LEVEL / patience, "of_tol": _ROUGH_TOL}

    def run(points: TiledPoints, start: Prototypes, multipliers: Any, n_steps: int) -> Run:
        return run_of(points, criteria[points.n_clusters], start, multipliers, n_steps, **options)

    runs = sorted((run(points, *start, _ROUGH_STEPS) for start in starts), key=rank)
    if rng is None:
        return runs[:KEPT]
    search = Search(points, run, rng, work.is_done, patience)
    crossed = search.cross(search.breathe(runs[:PARENTS]))
    # With far points, the objective, a lower bound, can be negative.
    best = crossed[0].last.objective
    return [run for run in crossed if run.last.objective <= best + _CLOSE * abs(best)]
