"""Clustering by group prices, whatever the distance and the centres."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from fairclust.base import (
    COUNT,
    NON_NEGATIVE,
    PRECISION,
    NotSupported,
    initial_centers,
)
from fairclust.kernels.points import DTYPES, TiledPoints
from fairclust.kernels.weighted import WeightedPoints
from fairclust.methods._columns import new_groups
from fairclust.methods._prototypes import PrototypeClusterer
from fairclust.solvers.alternation import Alternation, Prototypes, Run, Step, alternate
from fairclust.solvers.bounds import Asked, bounds_criterion
from fairclust.solvers.budget import Attempt, check_budget, fairest_within
from fairclust.solvers.criteria import Criterion
from fairclust.solvers.fair_assignment import (
    certified_gap,
    check_weights,
    lower_bound,
    paid_limits,
    round_prices,
    solve,
)
from fairclust.solvers.prices import Prices
from fairclust.solvers.sensitive import Sensitive, read_sensitive
from fairclust.solvers.steps import plain_step, price_step

_PLAIN_STEPS = 300
# Two starts count as alike if `_apart` of their centres is at most this times the mean squared distance of a point to
# its centre.
_ALIKE = 1e-4
# Number of best runs whose prices are solved to the lowest temperature, before one of them is chosen.
_FINALISTS = 3
# Prices are far off if the bounds are violated by more than this share of the points.
_FAR = 1e-4
_SIZES = [None, *NON_NEGATIVE, "array-like"]


class PriceClusterer(PrototypeClusterer):
    """Alternates assignments by group prices with new centres. `PriceFairKMeans` documents the parameters."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": COUNT,
        "tolerance": [Interval(Real, 0, 1, closed="left"), dict],
        "min_balance": [None, Interval(Real, 0, 1, closed="both"), dict],
        "max_gap": [None, *NON_NEGATIVE, dict],
        "target": [None, dict, "array-like"],
        "size_min": _SIZES,
        "size_max": _SIZES,
        "crossed": ["boolean"],
        "bins": [None, Interval(Integral, 2, None, closed="left"), dict],
        "mean_tolerance": [None, dict],
        "max_cost": [None, *NON_NEGATIVE],
        "max_cost_increase": [None, *NON_NEGATIVE],
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
        tolerance: Any = 0.0,
        min_balance: Any = None,
        max_gap: Any = None,
        target: Any = None,
        size_min: Any = None,
        size_max: Any = None,
        crossed: bool = False,
        bins: Any = None,
        mean_tolerance: Any = None,
        max_cost: float | None = None,
        max_cost_increase: float | None = None,
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
        self.size_min = size_min
        self.size_max = size_max
        self.crossed = crossed
        self.bins = bins
        self.mean_tolerance = mean_tolerance
        self.max_cost = max_cost
        self.max_cost_increase = max_cost_increase
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.precision = precision
        self.verbose = verbose
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> PriceClusterer:
        """Cluster the rows of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
        y : ignored
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), data frame, or mapping
            As in `fairclust.fair_assignment`; None if only sizes are bounded.
        sample_weight : array-like of shape (n_samples,), optional
            Positive; as there.

        Returns
        -------
        self
        """
        self._validate_params()
        X = validate_data(self, X, dtype=[np.float64, np.float32], order="C")
        means = self.mean_tolerance or ()
        sensitive = read_sensitive(sensitive_features, len(X), bins=self.bins, means=means)
        if self.n_clusters > len(X):
            raise ValueError(f"n_clusters={self.n_clusters} is more than n_samples={len(X)}")
        self.groups_ = sensitive.names
        self._columns, self._cells = sensitive.columns, sensitive.cells
        self._fit(X, sensitive.codes, sensitive, *check_weights(sample_weight, len(X)))
        return self

    def fit_predict(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> np.ndarray:
        """`fit`, then `labels_`."""
        return self.fit(X, sensitive_features=sensitive_features, sample_weight=sample_weight).labels_

    def _fit(
        self,
        X: np.ndarray,
        codes: np.ndarray,
        sensitive: Sensitive | None = None,
        weights: np.ndarray | None = None,
        unit: float = 1.0,
    ) -> None:
        """Weights of mean 1, if any, and the mean weight `unit`."""
        assert sensitive is not None
        rng = check_random_state(self.random_state)
        points = self._weighed_points(X, codes, weights)
        asked = Asked(
            self.tolerance,
            self.min_balance,
            self.max_gap,
            self.target,
            self.size_min,
            self.size_max,
            self.crossed,
            self.mean_tolerance,
        )

        def criterion_of(asked: Asked) -> Criterion:
            mean = None if weights is None else unit
            return bounds_criterion(asked, sensitive, points.group_sizes, self.n_clusters, unit=mean)

        if self.max_cost is None and self.max_cost_increase is None:
            criterion = criterion_of(asked)
            run, found = self._best(points, criterion, self._starts(points, rng))
        else:
            run, criterion, found = self._within_budget(points, asked, criterion_of, rng, unit)
        self._finish(points, criterion, run, found, unit)

    def _weighed_points(self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None) -> TiledPoints:
        if weights is None:
            return self._points(X, codes)
        if not self._squared_distances:
            raise NotSupported("sample_weight is for means: a medoid counts every row once")
        n_groups, dtype = len(self.groups_), DTYPES[self.precision]
        points = WeightedPoints.pack(X, codes, n_groups, self.n_clusters, dtype=dtype)
        points.weigh(weights)
        return points

    def _starts(self, points: TiledPoints, rng: np.random.RandomState) -> list[Prototypes]:
        """Where the alternation starts; only one of those where plain clustering ends alike."""
        if not isinstance(self.init, str):
            return [Prototypes(initial_centers(points.X, self.n_clusters, self.init, rng))]
        starts: list[Prototypes] = []
        for _ in range(self.n_init):
            start = Prototypes(initial_centers(points.X, self.n_clusters, "k-means++", rng))
            if self.init == "k-means":
                # Plain steps are cheap, and fewer of the others are left.
                run = self._plain(points, start)
                start, near = run.prototypes, _ALIKE * run.last.objective / points.n_samples
                if not points.squared:
                    near = near**2 / _ALIKE
                if any(_apart(start.centers, other.centers) <= near for other in starts):
                    continue
            starts.append(start)
        return starts

    def _plain(self, points: TiledPoints, start: Prototypes) -> Run:
        judge = partial(_judge, tol=self.tol / 10)
        return alternate(Alternation(plain_step, self._update, judge), points, start, max_iter=_PLAIN_STEPS)

    def _runs(self, points: TiledPoints, criterion: Criterion, starts: Sequence[Prototypes]) -> list[Run]:
        """The runs from all starts that are worth going on with, the cheapest first."""
        step = partial(price_step, criterion=criterion)
        priced = Alternation(step, self._update, partial(_judge, tol=self.tol))
        runs = [
            alternate(priced, points, start, max_iter=self.max_iter, verbose=self.verbose) for start in starts
        ]
        return sorted(runs, key=_rank)[:_FINALISTS]

    def _best(
        self, points: TiledPoints, criterion: Criterion, starts: Sequence[Prototypes]
    ) -> tuple[Run, Prices]:
        """The cheapest run, and the prices at its centres to the last digit."""
        return self._cheapest(points, criterion, self._runs(points, criterion, starts))

    def _cheapest(self, points: TiledPoints, criterion: Criterion, runs: Sequence[Run]) -> tuple[Run, Prices]:
        best: tuple[float, Run, Prices] | None = None
        for run in runs:
            points.measure(run.prototypes.centers)
            found = solve(points, criterion, run.last.state)
            # The lower bound alone would not do: for prices that are far off it is too low, and looks cheap.
            value = max(found.cost, lower_bound(points, criterion, found))
            # Starts with the same result differ by rounding errors, which must not choose between them.
            if best is None or value < best[0] - self.tol * abs(best[0]):
                best = value, run, found
        assert best is not None
        return best[1:]

    def _within_budget(
        self, points: TiledPoints, asked: Asked, criterion_of: Any, rng: np.random.RandomState, unit: float
    ) -> tuple[Run, Criterion, Prices]:
        """The fairest clustering that costs no more, then the fairest assignment to its centres."""
        plain = [self._plain(points, start) for start in self._starts(points, rng)]
        cost = min(run.last.clustering for run in plain)
        increase = self.max_cost_increase
        budget = check_budget(asked, self.max_cost, increase, cost * unit) / unit
        starts = [run.prototypes for run in sorted(plain, key=_rank)]

        def clustering(tolerance: float | None) -> Attempt:
            nonlocal starts
            criterion = criterion_of(asked._replace(tolerance=tolerance))
            runs = self._runs(points, criterion, starts)
            # From the ends of the last tolerance it is not far to those of the next.
            starts = [run.prototypes for run in runs]
            run, found = self._cheapest(points, criterion, runs)
            points.measure(run.prototypes.centers)
            _, paid, _, least = round_prices(points, criterion, found)
            return Attempt(paid, least - paid_limits(criterion, found), run)

        def assignment(tolerance: float | None) -> Attempt:
            criterion = criterion_of(asked._replace(tolerance=tolerance))
            found = solve(points, criterion)
            _, paid, _, least = round_prices(points, criterion, found)
            return Attempt(paid, least - paid_limits(criterion, found), (criterion, found))

        run = fairest_within(clustering, budget).found
        points.measure(run.prototypes.centers)
        fairest = fairest_within(assignment, budget)
        self.tolerance_, self.tolerance_bound_ = fairest.tolerance, fairest.tolerance_bound
        return run, *fairest.found

    def _finish(
        self, points: TiledPoints, criterion: Criterion, run: Run, found: Prices, unit: float
    ) -> None:
        """Round the prices of the best run to labels, and set the attributes of the fit."""
        points.measure(run.prototypes.centers)
        self.labels_, cost, counts, least = round_prices(points, criterion, found)
        bound = least - paid_limits(criterion, found)
        self.gap_ = certified_gap(criterion, found, cost, bound, counts)
        self.cost_, self.lower_bound_ = cost * unit, bound * unit
        self.violation_ = float(criterion.excess(counts).max()) * unit
        history = [{**record, **{name: record[name] * unit for name in _IN_UNITS}} for record in run.history]
        self.n_iter_, self.history_, self.converged_ = len(history), history, run.verdict == "at rest"
        self.certificate_ = [
            {
                "step": record["step"],
                "cost": record["clustering"],
                "lower_bound": record["objective"],
                "gap": record["gap"],
                "violation": record["violation"],
            }
            for record in history
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
        self._column_prices = criterion.column_prices(found.multipliers) if criterion.combined else []
        self.n_rounded_ = int((points.hard(1.0, found.prices)[0] != self.labels_).sum())
        self._keep(points, run.prototypes)
        n_empty = int((counts.sum(axis=0) == 0).sum())
        if n_empty or not self.converged_:
            state = "at rest" if self.converged_ else "still moving"
            warnings.warn(
                f"stopped after {self.n_iter_} outer steps with {self.n_clusters - n_empty} of "
                f"{self.n_clusters} clusters non-empty and the cost {state}",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _codes(self, sensitive_features: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
        if not self._columns:
            return np.zeros(n_samples, np.int32), self.offset_
        by_column: list[np.ndarray] = []
        if not self.crossed and self._column_prices:
            # The price of the cluster goes with the first column, of which every row has one value.
            first, *others, cluster = self._column_prices
            by_column = [first + cluster, *others]
        return new_groups(self._columns, self._cells, self.offset_, by_column, sensitive_features, n_samples)


_IN_UNITS = ("objective", "clustering", "fairness", "violation")


def _judge(step: int, before: Step | None, now: Step, *, tol: float) -> str:
    fall = np.inf if before is None else before.objective - now.objective
    return "at rest" if fall <= tol * abs(now.objective) else ""


def _rank(run: Run) -> tuple[bool, float]:
    """Sort key of a run. Runs whose prices are far off come last: their lower bound is too low and looks cheap."""
    far = run.last.more.get("violation", 0.0) > max(1.0, _FAR * len(run.last.labels))
    return far, max(run.last.objective, run.last.clustering)


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    """The largest squared distance between a centre and the nearest one of the other set."""
    squares = cdist(one, other, "sqeuclidean")
    return float(max(squares.min(axis=0).max(), squares.min(axis=1).max()))
