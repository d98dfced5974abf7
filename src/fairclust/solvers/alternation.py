"""The outer loop that all methods share: an assignment at fixed centres, then the best centres for its labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from fairclust.base import record
from fairclust.kernels.medoid import medoids
from fairclust.kernels.points import MeasuredPoints, Points

# By how much of its step from the old centre a centre moves beyond the mean. Less than one, so that the cost falls.
_OVERSHOOT = 0.5
# A run stops if it would be above its target even after another fall so many times as large as the last one.
_FURTHER_FALLS = 3.0
# The exact search for a medoid may take quadratic time, so it is only made in clusters of at most _EXACT_SIZE points.
# In larger ones at most _MAX_EVALUATIONS points are tried, those near the geometric median first.
_EXACT_SIZE, _MAX_EVALUATIONS = 20_000, 100


class Prototypes(NamedTuple):
    """Centres."""

    centers: np.ndarray  # (n_clusters, n_features)
    rows: np.ndarray | None = None  # (n_clusters,); for k-medians: the rows of the centres in X
    means: np.ndarray | None = (
        None  # (n_clusters, n_features); the means beyond which `overshot` moved the centres
    )


class Step(NamedTuple):
    """An assignment at some centres: the labels are ``argmin_k (scale * a[p, k] + offset[group of p, k])``."""

    labels: Any  # (n_samples,)
    counts: np.ndarray  # (n_groups, n_clusters)
    scale: float
    offset: np.ndarray  # (n_groups, n_clusters)
    objective: float
    clustering: float
    fairness: float
    n_passes: int  # Passes over the points
    state: Any = None  # What the solver needs, besides `offset`, to start the next assignment from here
    more: Mapping[str, float] = {}  # Further columns for the history
    converged: bool = True  # Whether the solver converged

    @property
    def n_empty(self) -> int:
        """Number of clusters without points."""
        return int((self.counts.sum(axis=0) == 0).sum())


def plain_step(points: Points, last: Step | None) -> Step:
    """Assign every point to its nearest cluster."""
    offset = np.zeros((points.n_groups, points.n_clusters))
    labels, counts, cost = points.hard(1.0, offset)
    return Step(labels, counts, 1.0, offset, cost, cost, 0.0, 0)


class Run(NamedTuple):
    """The result of an alternation."""

    prototypes: Prototypes  # The centres of the last assignment
    last: Step
    history: list[dict[str, float]]
    # Number of steps. If the last one found no assignment as good as the one before, it has no record in `history`.
    n_steps: int
    # "at rest" if the objective has stopped changing, "emptied" if a cluster is empty, "above target" if it would not
    # become cheap enough, or "cut short" if the number of steps has reached its limit.
    verdict: str


class Alternation(NamedTuple):
    """The three functions that define an alternation."""

    # Takes the points and the step before (None at first). Returns a step, or None if it finds none as good.
    assign: Callable[[Any, Step | None], Step | None]
    # Takes points, labels and prototypes. Returns the best prototypes for the labels.
    update: Callable[[Any, Any, Prototypes], Prototypes]
    # Takes the number of a step, the step before and the step. Returns the verdict, or "" to continue.
    judge: Callable[[int, Step | None, Step], str]


def alternate(
    alternation: Alternation,
    points: MeasuredPoints,
    prototypes: Prototypes,
    *,
    max_iter: int,
    verbose: int = 0,
    unit: float = 1.0,
) -> Run:
    """Compute assignments and centres in turn, from the given centres. Objectives are printed in this unit."""
    history: list[dict[str, float]] = []
    last: Step | None = None
    verdict = "cut short"
    for step in range(1, max_iter + 1):
        begin = perf_counter()
        new = prototypes if last is None else alternation.update(points, last.labels, prototypes)
        points.measure(new.centers)
        now = alternation.assign(points, last)
        if now is None:
            verdict = "at rest"
            break
        before, last, prototypes = last, now, new
        more = {"inner_iter": now.n_passes, **now.more}
        history.append(record(step, begin, now.objective, now.clustering, now.fairness, **more))
        if verbose:
            objective = f"{now.objective * unit:.6g}"
            print(f"step {step}: objective {objective}, fairness {now.fairness:.4g}", flush=True)
        if judged := alternation.judge(step, before, now):
            verdict = judged
            break
    assert last is not None
    return Run(prototypes, last, history, step, verdict)


def judge_fall(step: int, before: Step | None, now: Step, *, tol: float, target: float = np.inf) -> str:
    """The verdict "at rest" if the objective falls by at most `tol` times its absolute value, else "".

    It is "above target" if the objective would be so even if it fell `_FURTHER_FALLS` times as far again.
    """
    fall = np.inf if before is None else before.objective - now.objective
    if fall <= tol * abs(now.objective):
        return "at rest"
    return "above target" if now.objective - _FURTHER_FALLS * fall > target else ""


def mean_centers(points: MeasuredPoints, labels: Any, old: Prototypes) -> Prototypes:
    """Means of the clusters. An empty cluster keeps its old centre."""
    sizes, sums = points.sums(labels)
    means = sums / np.where(sizes > 0, sizes, 1)[:, None]
    return Prototypes(np.where(sizes[:, None] > 0, means, old.centers))


def overshot(new: Prototypes, old: Prototypes) -> Prototypes:
    """Centres moved beyond the means by half of their step, except those of clusters whose mean has not changed.

    This takes fewer steps. No step raises the cost: at the same labels, the cost of a cluster is quadratic in its
    centre, so three quarters of its fall remain.
    """
    means = new.centers
    if old.means is None:
        return new._replace(means=means)
    changed = (means != old.means).any(axis=1, keepdims=True)
    return new._replace(centers=means + _OVERSHOOT * changed * (means - old.centers), means=means)


def medoid_centers(X: np.ndarray, labels: np.ndarray, old: Prototypes) -> Prototypes:
    """Medoids of the clusters. An empty cluster keeps its old centre.

    In clusters of at most `_EXACT_SIZE` points the medoid is exact. In larger ones it is the best of at most
    `_MAX_EVALUATIONS` points.
    """
    found, *_ = medoids(X, labels, len(old.centers), exact_size=_EXACT_SIZE, max_evaluations=_MAX_EVALUATIONS)
    centers = old.centers.copy()
    rows = np.full(len(centers), -1) if old.rows is None else old.rows.copy()
    full = found >= 0
    rows[full], centers[full] = found[full], X[found[full]]
    return Prototypes(centers, rows)
