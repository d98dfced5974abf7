"""The base of k-means and k-medians by group prices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from fairclust.base import (
    NON_NEGATIVE,
    NotSupported,
    initial_centers,
)
from fairclust.group_encoding import neutral_order
from fairclust.kernels.points import DTYPES, NearestPoints, TiledPoints
from fairclust.kernels.weighted import WeightedPoints
from fairclust.methods._prototypes import PrototypeClusterer
from fairclust.methods.price.bounds import Asked, bounds_criterion
from fairclust.methods.price.budget import Attempt, check_budget, fairest_within
from fairclust.methods.price.criteria import Criterion, Work
from fairclust.methods.price.fair_assignment import (
    certified_gap,
    check_weights,
    lower_bound,
    paid_limits,
    solve,
)
from fairclust.methods.price.loose_labels import Labels, loose_labels
from fairclust.methods.price.prices import Prices
from fairclust.methods.price.rounding import round_prices
from fairclust.methods.price.steps import ROUGH, price_step
from fairclust.metrics.centers import pairwise_blocks
from fairclust.solvers.alternation import Alternation, Prototypes, Run, alternate, judge_fall, plain_step
from fairclust.solvers.points import MeasuredPoints
from fairclust.solvers.sensitive import read_sensitive

_PLAIN_STEPS = 300
# Two starts count as the same if `_apart` of their centres is at most this times the mean squared distance of a point
# to its centre.
_ALIKE = 1e-4
# Rounds of the selection among the starts: the number of outer steps, and the number of runs that continue after them.
# On all data tried, the best run in the end was among the best five after one step and the best three after six.
_ROUNDS = (1, 5), (6, 3)
# Prices are far off if the bounds are violated by more than this share of the points.
_FAR = 1e-4
# `fit` warns if the gap is larger than this fraction and there are at least this many points for each cell of the
# group-by-cluster table. With fewer points, a single point can cause such a gap.
_LARGE_GAP, _PER_CELL = 0.05, 50
# With at least this many points for each cell it also warns if the gap is more than 1.
_FEW_PER_CELL = 10
_SIZES = [None, *NON_NEGATIVE, "array-like"]


@dataclass(eq=False, repr=False)
class PriceClusterer(PrototypeClusterer):
    """Alternates between assignments by group prices and new centres. `PriceFairKMeans` documents the parameters."""

    takes_columns = True
    _sorts_rows = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "tolerance": [Interval(Real, 0, 1, closed="left"), dict],
        "min_balance": [None, Interval(Real, 0, 1, closed="both"), dict],
        "max_gap": [None, *NON_NEGATIVE, dict],
        "size_min": _SIZES,
        "size_max": _SIZES,
        "crossed": ["boolean"],
        "bins": [None, Interval(Integral, 2, None, closed="left"), dict],
        "mean_tolerance": [None, dict],
        "max_cost": [None, *NON_NEGATIVE],
        "max_cost_increase": [None, *NON_NEGATIVE],
        "init": [StrOptions({"k-means", "k-means++"}), "array-like"],
    }

    n_clusters: int = 8
    _: KW_ONLY
    tolerance: Any = 0.0
    min_balance: Any = None
    max_gap: Any = None
    target: Any = None
    size_min: Any = None
    size_max: Any = None
    crossed: bool = False
    bins: Any = None
    mean_tolerance: Any = None
    max_cost: float | None = None
    max_cost_increase: float | None = None
    init: Any = "k-means"
    n_init: int = 10
    max_iter: int = 100
    tol: float = 1e-5
    precision: str = "single"
    verbose: int = 0
    random_state: Any = None

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
            Positive weights of the rows, as in `fairclust.fair_assignment`. Not for k-medians or sparse rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A parameter, `X`, the groups or the weights are malformed, or there are more clusters than rows.
        NotSupported
            A ValueError: no assignment is within the bounds or the budget, or weights are not supported here.
        """
        X, codes = self._check_input(X, sensitive_features)
        weights, self._unit = check_weights(sample_weight, X.shape[0])
        self._fit_in_frame(X, codes, weights)
        return self

    def _check_input(self, X: Any, sensitive_features: Any) -> tuple[np.ndarray, np.ndarray]:
        """Validated features and group codes; the groups of several columns are the combinations that occur."""
        self._validate_params()
        X = self._valid_rows(X)
        means = self.mean_tolerance or ()
        sensitive = read_sensitive(sensitive_features, X.shape[0], bins=self.bins, means=means)
        self.groups_, self._sensitive = sensitive.names, sensitive
        self._check_sizes(X.shape[0])
        return X, sensitive.codes

    def _fit(self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Fit rows in the frame. `weights`, if given, have mean 1; `_unit` is the mean that they were divided by."""
        rng = check_random_state(self.random_state)
        order = None
        if len(self._sensitive.columns) == 1 and self._sensitive.columns[0].edges is None:
            # Newton's method and the search for whole numbers of points must not depend on the names of the groups.
            order = neutral_order(X, codes)
            codes = np.argsort(order).astype(np.int32)[codes]
        points = self._weighed_points(X, codes, weights)
        criterion_of = partial(self._criterion, points.group_sizes, order=order, weighted=weights is not None)
        # A fit without a budget has no tolerance to report, so the attributes of an earlier fit are removed.
        for stated in ("tolerance_", "tolerance_bound_"):
            self.__dict__.pop(stated, None)
        if self.max_cost is None and self.max_cost_increase is None:
            criterion = criterion_of()
            starts = self._starts(points, rng)
            run, found = self._best(points, criterion, starts)
        else:
            starts = []
            run, criterion, found = self._within_budget(points, criterion_of, rng)
        self._finish(points, criterion, run, found, starts, codes, order)

    def _asked(self) -> Asked:
        return Asked(**{name: getattr(self, name) for name in Asked._fields})

    def _criterion(
        self,
        sizes: np.ndarray,
        *,
        order: np.ndarray | None = None,
        weighted: bool = False,
        **instead: Any,
    ) -> Criterion:
        """The bounds that the user asked for, for groups of these sizes; `instead` replaces some of the bounds.

        `order`, if given, has the positions in `groups_` of the groups that the sizes belong to.
        """
        asked, unit = self._asked()._replace(**instead), self._unit if weighted else None
        sensitive = self._sensitive
        if order is not None:
            sensitive = sensitive.reordered(order)
            if np.shape(asked.target) == order.shape:
                asked = asked._replace(target=np.asarray(asked.target)[order])
        return bounds_criterion(asked, sensitive, sizes, self.n_clusters, unit=unit)

    def _weighed_points(self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None) -> TiledPoints:
        if weights is None:
            return self._points(X, codes)
        if self._power == 1:
            raise NotSupported(
                "sample_weight is not for k-medians, where a medoid counts every row once: use PriceFairKMeans"
            )
        if sp.issparse(X):
            raise NotSupported("sample_weight is for dense rows: pass X.toarray()")
        n_groups, dtype = len(self.groups_), DTYPES[self._precision]
        points = WeightedPoints.pack(X, codes, n_groups, self.n_clusters, dtype=dtype)
        points.weigh(weights)
        return points

    def _starts(self, points: TiledPoints, rng: np.random.RandomState) -> list[Prototypes]:
        """Starting centres. If plain clustering from several starts ends at nearly the same centres, one is kept."""
        if not isinstance(self.init, str):
            return [Prototypes(initial_centers(points.X, self.n_clusters, self._framed_init(), rng))]
        starts: list[Prototypes] = []
        for _ in range(self.n_init):
            start = Prototypes(initial_centers(points.X, self.n_clusters, "k-means++", rng))
            if self.init == "k-means":
                # Plain steps are cheap, and after them fewer steps with prices are needed.
                run = self._plain(points, start)
                start, near = run.prototypes, _ALIKE * run.last.objective / points.n_samples
                if not points.squared:
                    near = near**2 / _ALIKE
                if any(_apart(start.centers, other.centers) <= near for other in starts):
                    continue
            starts.append(start)
        return starts

    def _plain(self, points: TiledPoints, start: Prototypes) -> Run:
        judge = partial(judge_fall, tol=self.tol)
        kind: Alternation[Any] = Alternation(plain_step, self._update, judge)
        # Dense rows without weights, whose centres are means, need one pass over the points for each step.
        one_pass = type(points) is TiledPoints and points.squared
        measured: Any = NearestPoints(points) if one_pass else points
        return alternate(kind, measured, start, max_iter=_PLAIN_STEPS)

    def _runs(self, points: TiledPoints, criterion: Criterion, starts: Sequence[Prototypes]) -> list[Run]:
        """Run the alternation from all starts. Returns at most the three cheapest runs, the cheapest first.

        A few steps with rough prices tell good starts from bad ones. Only the cheapest runs continue after them.
        """
        begun: list[tuple[Prototypes, np.ndarray | None]] = [(start, None) for start in starts]
        for n_steps, n_runs in _ROUNDS:
            if len(begun) > n_runs:
                steps = min(n_steps, self.max_iter)
                runs = [self._run(points, criterion, *start, steps, rough=True) for start in begun]
                cheapest = sorted(runs, key=partial(_rank, far=ROUGH * _FAR))[:n_runs]
                begun = [(run.prototypes, run.last.state) for run in cheapest]
        return sorted([self._run(points, criterion, *start, self.max_iter) for start in begun], key=_rank)

    def _run(
        self,
        points: TiledPoints,
        criterion: Criterion,
        start: Prototypes,
        multipliers: np.ndarray | None,
        n_steps: int,
        *,
        rough: bool = False,
    ) -> Run:
        step = partial(price_step, criterion=criterion, multipliers=multipliers, rough=rough)
        priced = Alternation(step, self._update, partial(judge_fall, tol=self.tol))
        return alternate(priced, points, start, max_iter=n_steps, verbose=self.verbose)

    def _best(
        self, points: TiledPoints, criterion: Criterion, starts: Sequence[Prototypes]
    ) -> tuple[Run, Prices]:
        """The cheapest run, and the prices at its centres, solved to the lowest temperature."""
        return self._cheapest(points, criterion, self._runs(points, criterion, starts))

    def _cheapest(self, points: TiledPoints, criterion: Criterion, runs: Sequence[Run]) -> tuple[Run, Prices]:
        best: tuple[float, Run, Prices] | None = None
        for run in runs:
            if best is not None and run.last.objective >= best[0]:
                # The objective is a lower bound on the cost of this run, so it cannot be cheaper.
                continue
            points.measure(run.prototypes.centers)
            found = solve(points, criterion, run.last.state)
            # The lower bound alone is not enough, because it is too low for prices that are far from optimal.
            value = max(found.cost, lower_bound(points, criterion, found))
            # Starts with the same result differ by rounding errors, which must not choose between them.
            if best is None or value < best[0] - self.tol * abs(best[0]):
                best = value, run, found
        assert best is not None
        return best[1:]

    def _within_budget(
        self, points: TiledPoints, criterion_of: Callable[..., Criterion], rng: np.random.RandomState
    ) -> tuple[Run, Criterion, Prices]:
        """The fairest clustering within the budget, then the fairest assignment to its centres within the budget."""
        plain = [self._plain(points, start) for start in self._starts(points, rng)]
        cost = min(run.last.clustering for run in plain)
        asked, unit = self._asked(), self._unit
        budget = check_budget(asked, self.max_cost, self.max_cost_increase, cost * unit) / unit
        starts = [run.prototypes for run in sorted(plain, key=_rank)]

        def attempt(criterion: Criterion, found: Prices, kept: Any) -> Attempt:
            least = lower_bound(points, criterion, found)
            # If the lower bound is above the budget, the labels need not be computed.
            paid = np.inf if least > budget else round_prices(points, criterion, found)[1]
            return Attempt(paid, least, kept)

        def clustering(tolerance: float | None, work: Work) -> Attempt:
            nonlocal starts
            criterion = replace(criterion_of(tolerance=tolerance), work=work)
            runs = self._runs(points, criterion, starts)
            # The final centres for one tolerance are good starts for the next.
            starts = [run.prototypes for run in runs]
            run, found = self._cheapest(points, criterion, runs)
            points.measure(run.prototypes.centers)
            return attempt(criterion, found, run)

        def assignment(tolerance: float | None, work: Work) -> Attempt:
            criterion = replace(criterion_of(tolerance=tolerance), work=work)
            found = solve(points, criterion)
            return attempt(criterion, found, (criterion, found))

        run = fairest_within(clustering, budget).found
        points.measure(run.prototypes.centers)
        fairest = fairest_within(assignment, budget)
        self.tolerance_, self.tolerance_bound_ = fairest.tolerance, fairest.tolerance_bound
        return run, *fairest.found

    def _finish(
        self,
        points: MeasuredPoints,
        criterion: Criterion,
        run: Run,
        found: Prices,
        starts: Sequence[Prototypes] = (),
        codes: np.ndarray | None = None,
        order: np.ndarray | None = None,
    ) -> None:
        """Round the prices of the best run to labels, and set the attributes of the fit.

        `starts` are tried in addition to the run if a few points lie far from all others. `codes`, the groups of the
        rows, are None for rows in chunks. `order` is that of `_criterion`.
        """
        unit = self._unit
        points.measure(run.prototypes.centers)
        labels, cost, counts, least = round_prices(points, criterion, found)
        made = strict = Labels(labels, cost, counts, run.prototypes, found)
        dear = self._is_dear(points, criterion, made, least - paid_limits(criterion, found))
        # Rows with weights cannot be split, and rows in chunks are so many that a few do not matter.
        if dear and codes is not None and type(points) is TiledPoints:
            made = loose_labels(
                points,
                criterion,
                strict,
                starts,
                codes,
                update=self._update,
                max_iter=self.max_iter,
                tol=self.tol,
            )
        saved = strict.cost / made.cost - 1 if made.cost > 0 else np.inf if strict.cost > 0 else 0.0
        self._keep(points, made.prototypes)
        prices, counts = made.found.prices, made.counts
        cost = self._cost(points, made, codes)
        bound = self._least(points, prices, codes) - paid_limits(criterion, made.found)
        gap = certified_gap(criterion, made.found, cost, bound, counts)
        # No labels cost less than those of the nearest centres.
        nearest = self._least(points, np.zeros_like(prices), codes) if dear else 0.0
        if nearest > 0:
            gap = min(gap, max(0.0, cost / nearest - 1))
        self.labels_ = made.labels
        self.cost_, self.lower_bound_, self.gap_ = cost * unit, bound * unit, gap
        self.violation_ = float(criterion.excess(counts).max()) * unit
        self.n_iter_, self.converged_ = len(run.history), run.verdict == "at rest"
        self.history_ = [
            {**record, **{name: record[name] * unit for name in _IN_UNITS}} for record in run.history
        ]
        self.certificate_ = [
            *({name: record[of] for name, of in _CERTIFICATE.items()} for record in self.history_),
            {
                "step": self.n_iter_ + 1,
                "cost": self.cost_,
                "lower_bound": self.lower_bound_,
                "gap": self.gap_,
                "violation": self.violation_,
            },
        ]
        if codes is None:
            self.n_rounded_ = len(made.labels.moved)
        else:
            self.n_rounded_ = int((points.hard(1.0, prices)[0] != made.labels).sum())
        back = slice(None) if order is None else np.argsort(order)
        self.scale_, self.offset_ = 1.0, prices[back]
        self._column_prices = []
        if criterion.combined and self._sensitive.columns and not self.crossed:
            # Every row has one value of the first column, so the price of the cluster itself is added there.
            first, *others, cluster = criterion.column_prices(made.found.multipliers)
            self._column_prices = [(first + cluster)[back], *others]
        for holds, complaint in self._complaints(criterion, counts, saved, dear):
            if holds:
                self._complain(complaint)

    def _complaints(
        self, criterion: Criterion, counts: np.ndarray, saved: float, dear: bool
    ) -> list[tuple[bool, str]]:
        """What a fit may complain about, and whether it does."""
        n_empty = int((counts.sum(axis=0) == 0).sum())
        state, advice = "still moving", "raise max_iter or tol"
        if self.converged_:
            state, advice = "at rest", "take fewer clusters"
        return [
            (
                n_empty > 0 or not self.converged_,
                f"stopped after {self.n_iter_} outer steps with {self.n_clusters - n_empty} of "
                f"{self.n_clusters} clusters non-empty and the cost {state}: {advice}",
            ),
            (criterion.work.is_cut, criterion.work.advice),
            (
                saved > 0,
                f"the labels are off the bounds by up to {self.violation_:.2g} points in a cluster, because the "
                f"labels found within them cost {_more(saved)}: a few points lie far from all others. {_LONG_TAIL}",
            ),
            (
                dear and saved <= 0 and self.gap_ > _LARGE_GAP,
                f"the labels may cost up to {self.gap_:.0%} more than the cheapest labels within the bounds, because a "
                f"few points far from all others move whole clusters. {_LONG_TAIL}; precision='double' may help",
            ),
        ]

    def _is_dear(self, points: MeasuredPoints, criterion: Criterion, made: Labels, bound: float) -> bool:
        """Whether the bounds cost so much that a few points far from all others may be the reason."""
        gap = certified_gap(criterion, made.found, made.cost, bound, made.counts)
        per_cell = points.n_samples / made.counts.size
        # The bounds also cost too much where they have emptied a cluster, which the gap at these centres does not show.
        emptied = not made.counts.sum(axis=0).all()
        return ((gap > _LARGE_GAP or emptied) and per_cell >= _PER_CELL) or (
            gap > 1 and per_cell >= _FEW_PER_CELL
        )

    def _cost(self, points: MeasuredPoints, made: Labels, codes: np.ndarray | None) -> float:
        """The cost of labels. The tiles may be in single precision, so it is summed again from rows in memory."""
        if codes is None or not isinstance(points, TiledPoints):
            return made.cost
        return self._paid(points.X, made.labels, made.prototypes.centers, _weights(points))

    def _least(self, points: MeasuredPoints, prices: np.ndarray, codes: np.ndarray | None) -> float:
        """The sum over points of the least distance plus price, in double precision for rows in memory."""
        if codes is None or not isinstance(points, TiledPoints):
            return points.priced(prices)[3]
        weights = _weights(points)
        labels = _cheapest_clusters(points.X, self._centers, prices, codes, self._power)
        counts = np.zeros_like(prices)
        np.add.at(counts, (codes, labels), 1.0 if weights is None else weights)
        return self._paid(points.X, labels, self._centers, weights) + float((prices * counts).sum())


# What is reported in the unit of the user's weights, and what a step's certificate takes from its record.
_IN_UNITS = ("objective", "clustering", "fairness", "violation")
_CERTIFICATE = {
    "step": "step",
    "cost": "clustering",
    "lower_bound": "objective",
    "gap": "gap",
    "violation": "violation",
}
_LONG_TAIL = (
    "Look at these points, take the logarithm of columns with a long tail, or allow a larger tolerance"
)


def _weights(points: TiledPoints) -> np.ndarray | None:
    return points.weights if isinstance(points, WeightedPoints) else None


def _cheapest_clusters(
    X: np.ndarray, centers: np.ndarray, prices: np.ndarray, codes: np.ndarray, power: int
) -> np.ndarray:
    """The cheapest cluster of every row at the prices, from distances in double precision."""
    found = np.empty(len(X), dtype=np.int32)
    centers = centers.astype(float)
    for block in pairwise_blocks(len(X), len(centers)):
        costs = euclidean_distances(X[block].astype(float), centers, squared=power == 2)
        costs += prices[codes[block]]
        found[block] = costs.argmin(axis=1)
    return found


def _more(increase: float) -> str:
    return f"{increase:.0%} more" if increase < 10 else f"{1 + increase:.2g} times as much"


def _rank(run: Run, far: float = _FAR) -> tuple[bool, float]:
    """Sort key of a run. Runs whose prices are far off come last: their lower bound is too low and looks cheap."""
    is_far = run.last.more.get("violation", 0.0) > max(1.0, far * len(run.last.labels))
    return is_far, max(run.last.objective, run.last.clustering)


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    """The largest squared distance between a centre and the nearest one of the other set."""
    squares = cdist(one, other, "sqeuclidean")
    return float(max(squares.min(axis=0).max(), squares.min(axis=1).max()))
