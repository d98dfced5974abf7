"""Clustering by group prices, whatever the distance and the centres."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from fairclust.base import COUNT, NON_NEGATIVE, PRECISION, initial_centers, resolve_target
from fairclust.kernels.points import TiledPoints
from fairclust.methods._prototypes import PrototypeClusterer
from fairclust.solvers.alternation import Alternation, Prototypes, Run, Step, alternate
from fairclust.solvers.criteria import Criterion, make_criterion
from fairclust.solvers.fair_assignment import (
    certified_gap,
    lower_bound,
    paid_limits,
    round_loosely,
    round_prices,
    solve,
)
from fairclust.solvers.prices import Prices
from fairclust.solvers.steps import plain_step, price_step

_PLAIN_STEPS = 300
# Two starts count as alike if `_apart` of their centres is at most this times the mean squared distance of a point to
# its centre.
_ALIKE = 1e-4
# Number of best runs whose prices are solved to the lowest temperature, before one of them is chosen.
_FINALISTS = 3
# Prices are far off if the bounds are violated by more than this share of the points.
_FAR = 1e-4
# A cost so far above its bound is worth a warning; with fewer points for each cell, one point may be as dear.
_LARGE_GAP, _PER_CELL = 0.05, 50


class PriceClusterer(PrototypeClusterer):
    """Alternates assignments by group prices with new centres. `PriceFairKMeans` documents the parameters."""

    _sorts_rows = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": COUNT,
        "tolerance": [Interval(Real, 0, 1, closed="left")],
        "min_balance": [None, Interval(Real, 0, 1, closed="both")],
        "max_gap": [None, *NON_NEGATIVE],
        "target": [None, dict, "array-like"],
        "init": [StrOptions({"k-means", "k-means++"}), "array-like"],
        "n_init": COUNT,
        "max_iter": COUNT,
        "tol": NON_NEGATIVE,
        "precision": PRECISION,
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        tolerance: float = 0.0,
        min_balance: float | None = None,
        max_gap: float | None = None,
        target: Any = None,
        init: Any = "k-means",
        n_init: int = 10,
        max_iter: int = 100,
        tol: float = 1e-5,
        precision: str = "single",
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.tolerance = tolerance
        self.min_balance = min_balance
        self.max_gap = max_gap
        self.target = target
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.precision = precision
        self.verbose = verbose
        self.random_state = random_state

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        rng = check_random_state(self.random_state)
        points = self._points(X, codes)
        criterion = make_criterion(
            self.groups_,
            np.bincount(codes),
            target=None if self.target is None else resolve_target(self.target, self.groups_, codes),
            tolerance=self.tolerance,
            min_balance=self.min_balance,
            max_gap=self.max_gap,
        )
        best: tuple[float, Run, Prices] | None = None
        for run in sorted(self._runs(points, criterion, rng), key=_rank)[:_FINALISTS]:
            points.measure(run.prototypes.centers)
            found = solve(points, criterion, run.last.state)
            # The lower bound alone would not do: for prices that are far off it is too low, and looks cheap.
            value = max(found.cost, lower_bound(points, criterion, found))
            # Starts with the same result differ by rounding errors, which must not choose between them.
            if best is None or value < best[0] - self.tol * abs(best[0]):
                best = value, run, found
        assert best is not None
        self._finish(points, criterion, *best[1:])

    def _runs(self, points: TiledPoints, criterion: Criterion, rng: np.random.RandomState) -> list[Run]:
        """A run from every start. Of starts from which plain clustering ends alike, only the first is used."""
        step = partial(price_step, criterion=criterion)
        priced = Alternation(step, self._update, partial(_judge, tol=self.tol))
        if not isinstance(self.init, str):
            start = Prototypes(initial_centers(points.X, self.n_clusters, self._framed_init(), rng))
            return [alternate(priced, points, start, max_iter=self.max_iter, verbose=self.verbose)]
        plain = Alternation(plain_step, self._update, partial(_judge, tol=self.tol / 10))
        starts: list[Prototypes] = []
        for _ in range(self.n_init):
            start = Prototypes(initial_centers(points.X, self.n_clusters, "k-means++", rng))
            if self.init == "k-means":
                # Plain steps are cheap, and after them fewer steps with prices are needed.
                run = alternate(plain, points, start, max_iter=_PLAIN_STEPS)
                start, near = run.prototypes, _ALIKE * run.last.objective / points.n_samples
                if not points.squared:
                    near = near**2 / _ALIKE
                if any(_apart(start.centers, other.centers) <= near for other in starts):
                    continue
            starts.append(start)
        steps, verbose = self.max_iter, self.verbose
        return [alternate(priced, points, start, max_iter=steps, verbose=verbose) for start in starts]

    def _finish(self, points: TiledPoints, criterion: Criterion, run: Run, found: Prices) -> None:
        """Round the prices of the best run to labels, and set the attributes of the fit."""
        points.measure(run.prototypes.centers)
        self.labels_, self.cost_, counts, least = round_prices(points, criterion, found)
        self.lower_bound_ = least - paid_limits(criterion, found)
        self.gap_ = certified_gap(criterion, found, self.cost_, self.lower_bound_, counts)
        dear = self.gap_ > _LARGE_GAP and points.n_samples >= _PER_CELL * counts.size
        saved = 0.0
        if dear:
            loose = round_loosely(points, criterion, found)
            if loose is not None and loose[1] < (1 - _LARGE_GAP) * self.cost_:
                saved = self.cost_ / loose[1] - 1 if loose[1] > 0 else np.inf
                self.labels_, self.cost_, counts = loose
                self.gap_ = certified_gap(criterion, found, self.cost_, self.lower_bound_, counts)
            # No labels at all are cheaper than those of the nearest centres.
            nearest = points.priced(np.zeros_like(found.prices))[3]
            if nearest > 0:
                self.gap_ = min(self.gap_, max(0.0, self.cost_ / nearest - 1))
        self.violation_ = float(criterion.excess(counts).max())
        self.n_iter_, self.history_, self.converged_ = len(run.history), run.history, run.verdict == "at rest"
        self.certificate_ = [
            {
                "step": record["step"],
                "cost": record["clustering"],
                "lower_bound": record["objective"],
                "gap": record["gap"],
                "violation": record["violation"],
            }
            for record in run.history
        ]
        self.certificate_.append(
            {
                "step": self.n_iter_ + 1,
                "cost": self.cost_,
                "lower_bound": self.lower_bound_,
                "gap": self.gap_,
                "violation": self.violation_,
            }
        )
        self.scale_, self.offset_ = 1.0, found.prices
        self.n_rounded_ = int((points.hard(1.0, found.prices)[0] != self.labels_).sum())
        self._keep(points, run.prototypes)
        n_empty = int((counts.sum(axis=0) == 0).sum())
        if n_empty or not self.converged_:
            state = "at rest" if self.converged_ else "still moving"
            advice = "take fewer clusters" if self.converged_ else "raise max_iter or tol"
            self._complain(
                f"stopped after {self.n_iter_} outer steps with {self.n_clusters - n_empty} of "
                f"{self.n_clusters} clusters non-empty and the cost {state}: {advice}"
            )
        if saved:
            self._complain(
                f"the labels are off the bounds by up to {self.violation_:.2g} points in a cluster, because labels "
                f"within them would cost {saved:.0%} more: a few points lie far from all others. Look at them, take "
                "the logarithm of columns with a long tail, or allow a larger tolerance"
            )
        elif dear and self.gap_ > _LARGE_GAP:
            self._complain(
                f"the labels cost up to {self.gap_:.0%} more than the bounds on the groups ask for: a few points "
                "far from all others move whole clusters. Look at these points, take the logarithm of columns with "
                "a long tail, or allow a larger tolerance; precision='double' may help"
            )


def _judge(step: int, before: Step | None, now: Step, *, tol: float) -> str:
    fall = np.inf if before is None else before.objective - now.objective
    return "at rest" if fall <= tol * abs(now.objective) else ""


def _rank(run: Run) -> tuple[bool, float]:
    """Sort key of a run. Runs whose prices are far off come last: their lower bound is too low and looks cheap."""
    far = run.last.more["violation"] > max(1.0, _FAR * len(run.last.labels))
    return far, max(run.last.objective, run.last.clustering)


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    """The largest squared distance between a centre and the nearest one of the other set."""
    squares = cdist(one, other, "sqeuclidean")
    return float(max(squares.min(axis=0).max(), squares.min(axis=1).max()))
