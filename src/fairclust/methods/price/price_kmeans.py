"""Fair k-means by group prices: exact bounds on shares and sizes, with a certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from fairclust.base import NON_NEGATIVE, NotSupported, initial_centers, scaled_weights
from fairclust.chunks.rows import ChunkedRows
from fairclust.group_encoding import Sensitive, SensitiveColumn, is_measured, read_sensitive
from fairclust.kernels.points import TiledPoints
from fairclust.kernels.tiles import pairwise_blocks
from fairclust.messages import count, percent
from fairclust.methods._prototypes import PrototypeClusterer
from fairclust.methods.price.budget import check_budget, fairest_clustering
from fairclust.methods.price.rounding import cheapest, round_prices
from fairclust.solvers.alternation import Alternation, Prototypes, Run, alternate, judge_fall
from fairclust.solvers.criteria import Bounds, Criterion, bounds_criterion, exact_shares
from fairclust.solvers.prices import (
    Prices,
    approach,
    certificate_text,
    certified_gap,
    lower_bound,
    paid_limits,
    price_step,
    solve,
)
from fairclust.solvers.search import KEPT, different, plain_run, plain_search, rank, searched

# Factor for `tol` on the sample of rows in chunks. More steps there are cheap, and save steps on all rows.
_MORE_EXACT = 0.1
# Steps with prices take long if there are at least `_LONG_FROM` clusters with at least `_ROWS_PER_CLUSTER` rows on
# average. The search then has only `_BEST_STARTS` starts. With fewer rows, other starts are often better by per cents.
_LONG_FROM, _ROWS_PER_CLUSTER, _BEST_STARTS = 128, 50, 2
# `fit` warns if the gap is larger than this fraction and there are at least this many points for each cell of the
# group-by-cluster table. With fewer points, a single point can cause such a gap.
_LARGE_GAP, _PER_CELL = 0.05, 50
# With at least this many points for each cell it also warns if the gap is more than 1.
_FEW_PER_CELL = 10
_SIZES = [None, *NON_NEGATIVE, "array-like"]


@dataclass(eq=False, repr=False, kw_only=True)
class PriceFairKMeans(PrototypeClusterer):
    """K-means in which every cluster keeps bounds on its group shares, its balance or its gap, and on its size.

    Alternates between new centres and the cheapest assignment within the bounds. The dual problem gives this
    assignment as ``argmin_k ||x_p - c_k||^2 + W[g(p), k]`` with a price for each group and cluster. One of three
    criteria is used for each sensitive column: the shares (the default), `min_balance` or `max_gap`.

    Parameters
    ----------
    tolerance : float or mapping of column to float, default=0.0
        t in [0, 1): the share of group j in every cluster lies in ``[(1 - t) mu_j, mu_j / (1 - t)]``. Columns that a
        mapping does not name are not bounded.
    min_balance : float or mapping of column to float, optional
        Instead of shares, bound the balance of every cluster from below by this number r: ``n_ik >= r n_jk`` for the
        counts of all groups i, j in every cluster k.
    max_gap : float or mapping of column to float, optional
        A bound on Delta, `fairclust.metrics.delta`, instead of shares.
    target : None, mapping or array-like of shape (n_groups,), default=None
        Shares mu for `tolerance`, also as a mapping of group to share. None takes the shares of the data. For several
        columns, a mapping of column to shares.
    size_min, size_max : int, float, or sequence with one for each cluster, optional
        Smallest and largest size of every cluster. An int is a number of rows, or a sum of their weights. A float is a
        multiple of the mean size, which is ``n_samples / n_clusters`` or the total weight divided by ``n_clusters``. If
        a size is bounded, `sensitive_features` may be left out.
    crossed : bool, default=False
        Whether to bound the combinations of several sensitive columns instead of each column.
    mean_tolerance : mapping of column to float, optional
        Instead of shares, bound the mean of a sensitive column of numbers: in every cluster it differs from the mean
        of all rows by at most this many standard deviations. A column with more than 128 different numbers is rounded
        to 128 numbers.
    max_cost, max_cost_increase : float, optional
        A budget instead of a tolerance: the largest cost, or its largest increase over the cost without any bounds,
        where 0.05 is 5 %. The smallest tolerance within the budget is found by bisection, in about 16 steps.
    init : {"k-means", "k-means++"} or array-like of shape (n_clusters, n_features), default="k-means"
        "k-means" starts from the result of plain clustering from k-means++ centres. This is fast, and fewer steps with
        prices are needed after it.
    n_init : int, default=10
        Number of starts, of which the cheapest is kept, or the first one whose cost is within `tol` of it. If `init` is
        an array there is one start. The costs of starts differ by a few per cent. For millions of rows, use
        `n_init=1`.
    search : bool, default=True
        Whether to search on from the best of several starts, see docs/group_prices.md. Without it, the cheapest start
        is on some data half a per cent costlier. There is no search from one start or given centres, or with sizes of
        single clusters. With a budget, only plain clustering is searched.
    max_iter : int, default=100
        Largest number of outer steps of each start.
    tol : float, default=1e-5
        A start ends when a step lowers the cost by no more than this fraction.
    verbose : int, default=0
        1 prints the objective and the fairness term of every outer step, apart from those with rough prices.

    Attributes
    ----------
    groups_ : ndarray of shape (n_groups,)
        The values of a single sensitive column, or the combinations of several that occur.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres of the last assignment, which `predict` uses too.
    cost_ : float
        Sum of the squared distances of the rows to the centres of their labels, each times the weight of the row.
    lower_bound_ : float
        No assignment to these centres within the bounds costs less. A bound of `mean_tolerance` is here one on the mean
        of the rounded numbers.
    gap_ : float
        ``cost_ / best - 1`` is at most this, where best is the least cost of all assignments to these centres that are
        within the bounds or violate them by no more than the labels do, see `fairclust.fair_assignment`.
    violation_ : float
        The largest violation of the bounds by a cell of the group-by-cluster table, in points, or in weight if there
        are weights.
    tolerance_, tolerance_bound_ : float
        Only with a budget. `tolerance_` is the smallest tolerance found whose assignment is within the budget. At
        `tolerance_bound_` and below, every assignment to these centres costs more than the budget. It is 0 if this was
        shown for no tolerance.
    n_iter_ : int
        Number of outer steps of the start that was kept, without the steps that chose among the starts.
    history_ : list of dict
        One entry for each of these steps. The objective is the lower bound on the cost of each assignment. It never
        rises, because a start ends before a step that would raise it. The fairness term is the violation of the argmin
        at the prices, in points, before rounding. `gap` and `violation` are those of the fractional assignment.
    converged_ : bool
    n_rounded_ : int
        Number of points that rounding moved away from the argmin at the prices. Among many points, they cost about
        the same in two clusters.
    scale_, offset_ : float, ndarray of shape (n_groups, n_clusters)
        The assignment map: 1, and the prices. `predict` does not round, so on the training rows it differs from
        `labels_` in `n_rounded_` points.

    Raises
    ------
    ValueError
        In `fit`, if the data cannot meet the bounds. The message names bounds that they can meet.

    Notes
    -----
    Rows may be in files, see `fairclust.open_chunks`. Otherwise a fit takes about ``4 N (d + 2.5 K)`` bytes,
    more with up to ten clusters and less with at least 200, see docs/prices.md. With about a hundred groups,
    it can take up to 300 MB more while it rounds the prices to labels.

    If whole points cannot meet the bounds, as with ``tolerance=0``, the labels violate them by about a point. This
    matters most in clusters of a few points. Rows with weights cannot be split, so the labels violate the bounds by up
    to the weight of a row at a boundary.

    A few points far from all others can make it expensive to meet the bounds to the last point. Labels are then off the
    bounds by about a point, with a warning, if that is much cheaper. `cost_` may then be below `lower_bound_`, which
    holds for labels within the bounds.

    Examples
    --------
    >>> from fairclust import PriceFairKMeans
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = PriceFairKMeans(2, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [0, 0, 1, 0, 1, 1, 1, 0]
    >>> model.gap_ < 0.01
    True
    """

    __metadata_request__fit: ClassVar[dict[str, bool | None]] = {"sample_weight": None}
    takes_columns = takes_weights = takes_chunks = True
    _takes_lists = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "tolerance": [Interval(Real, 0, 1, closed="left"), dict],
        "min_balance": [None, Interval(Real, 0, 1, closed="both"), dict],
        "max_gap": [None, *NON_NEGATIVE, dict],
        "size_min": _SIZES,
        "size_max": _SIZES,
        "crossed": ["boolean"],
        "mean_tolerance": [None, dict],
        "max_cost": [None, *NON_NEGATIVE],
        "max_cost_increase": [None, *NON_NEGATIVE],
        "init": [StrOptions({"k-means", "k-means++"}), "array-like"],
        "search": ["boolean"],
    }

    tolerance: Any = 0.0
    min_balance: Any = None
    max_gap: Any = None
    target: Any = None
    size_min: Any = None
    size_max: Any = None
    crossed: bool = False
    mean_tolerance: Any = None
    max_cost: float | None = None
    max_cost_increase: float | None = None
    init: Any = "k-means"
    n_init: int = 10
    search: bool = True
    max_iter: int = 100
    tol: float = 1e-5
    precision: str = "single"
    verbose: int = 0

    def _group_codes(self, sensitive_features: Any, n_samples: int) -> np.ndarray:
        self._sensitive = read_sensitive(sensitive_features, n_samples, means=self.mean_tolerance or ())
        self.groups_ = self._sensitive.names
        return self._sensitive.codes

    def _check_chunks(self, sample_weight: Any) -> None:
        if sample_weight is not None:
            raise NotSupported(
                "sample_weight is for rows in memory, rows in chunks count one each: leave it out"
            )
        if self._has_budget:
            raise NotSupported(
                "max_cost and max_cost_increase are for rows in memory: give a tolerance instead"
            )
        if self.mean_tolerance is not None:
            raise NotSupported(
                "mean_tolerance is for rows in memory: cut the column into ranges first, and name the column of ranges"
            )

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The parameters and, after a fit, how much cheaper other labels and centres may be."""
        text = super().__repr__(N_CHAR_MAX)
        if not hasattr(self, "gap_"):
            return text
        names = ("cost", "lower_bound", "gap", "violation")
        return f"{text}\n# {certificate_text({name: getattr(self, f'{name}_', None) for name in names})}"

    @property
    def _needs_groups(self) -> bool:
        return self.size_min is None and self.size_max is None

    @property
    def _has_budget(self) -> bool:
        return self.max_cost is not None or self.max_cost_increase is not None

    def _fit(self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None = None) -> None:
        weights, self._unit = scaled_weights(weights)  # `_unit` is the mean that they are divided by
        self._fit_points(self._points(X, codes, weights=weights), codes)

    def _fit_chunks(self, rows: ChunkedRows) -> None:
        known = rows.known
        if known.names.dtype.kind in "iuf" and is_measured(known.names, known.n_rows):
            raise ValueError(
                f"sensitive_features holds {len(known.names)} different numbers, and each would be a group. Cut the "
                "column into a few ranges first. If the numbers are names, convert them to text"
            )
        columns = (SensitiveColumn("", known.names),) if rows.has_groups else ()
        cells = np.arange(len(known.names))[:, None][:, : len(columns)]
        self._sensitive = Sensitive(columns, known.codes, cells)
        self.groups_ = self._sensitive.names
        self._unit = 1.0
        self._fit_points(rows.points, rows=rows)

    def _fit_points(
        self,
        points: Any,
        codes: np.ndarray | None = None,
        rows: ChunkedRows | None = None,
    ) -> None:
        """Fit points in memory with the groups `codes`, or in chunks."""
        rng = check_random_state(self.random_state)
        unit = None if points.weights is None else self._unit
        criterion_of = partial(self._criterion, unit=unit)
        if self._has_budget:
            run, criterion, prices = self._within_budget(points, criterion_of, rng)
        else:
            criterion = criterion_of(points.group_sizes)
            if rows is not None:
                start, multipliers = self._start_on_samples(rows, rng)
                run = self._run(points, criterion, start, multipliers)
                points.measure(run.prototypes.centers)
                prices = solve(points, criterion, run.last.state)
            else:
                starts = self._starts(points, rng)
                (run, *_), prices = self._best(points, criterion, criterion_of, starts, rng)
        self._finish(points, criterion, run, prices, codes)

    def _run(
        self,
        points: Any,
        criterion: Criterion,
        start: Prototypes,
        multipliers: np.ndarray | None,
        n_steps: int | None = None,
        *,
        rough: float = 0.0,
        of_tol: float = 1.0,
        target: float = np.inf,
    ) -> Run:
        """Assignments by prices and new centres in turn, until the cost falls by less than `of_tol` times `tol`.

        The first prices are searched for from `multipliers`. With a number of steps, nothing is printed.
        """
        most, verbose = (self.max_iter, self.verbose) if n_steps is None else (min(n_steps, self.max_iter), 0)
        if multipliers is not None and len(multipliers) != len(criterion.rows):
            # Groups have other shares in a sample, so that it may have bounds that all rows have not.
            multipliers = None
        step = partial(price_step, criterion=criterion, multipliers=multipliers, rough=rough)
        judge = partial(judge_fall, tol=of_tol * self.tol, target=target)
        alternation = Alternation(step, self._update, judge)
        unit = self._unit * self._cost_unit
        return alternate(alternation, points, start, max_iter=most, verbose=verbose, unit=unit)

    def _start_on_samples(
        self, rows: ChunkedRows, rng: np.random.RandomState
    ) -> tuple[Prototypes, np.ndarray | None]:
        """Centres and multipliers from fits on samples, with bounds for their group sizes.

        If rows of a sample cannot keep the bounds, the multipliers are None.
        """
        n_rows, *more = rows.samples
        sample, criterion_of = rows.sample(n_rows), partial(self._criterion, n_rows=rows.points.n_samples)
        try:
            criterion = criterion_of(sample.group_sizes)
            (run, *_), prices = self._best(sample, criterion, criterion_of, self._starts(sample, rng), rng)
        except NotSupported:
            # A sample may be unable to keep bounds that all rows can keep. It can have its own shares in every cluster.
            sizes = sample.group_sizes
            criterion = exact_shares(sizes / sizes.sum())
            starts = self._starts(sample, rng)
            (run, *_), _ = self._best(sample, criterion, lambda *_, **__: criterion, starts, rng)
            return run.prototypes, None
        prototypes, multipliers = run.prototypes, prices.multipliers
        for n_rows in more:
            sample = rows.sample(n_rows)
            try:
                criterion = criterion_of(sample.group_sizes)
            except NotSupported:
                return prototypes, None
            of_tol = 1.0 if n_rows == rows.points.n_samples else _MORE_EXACT
            run = self._run(sample, criterion, prototypes, multipliers, of_tol=of_tol)
            prototypes, multipliers = run.prototypes, run.last.state
        return prototypes, multipliers

    def _bounds(self) -> Bounds:
        return Bounds(**{name: getattr(self, name) for name in Bounds._fields})

    def _criterion(
        self,
        sizes: np.ndarray,
        *,
        n_clusters: int | None = None,
        n_rows: int | None = None,
        unit: float | None = None,
        **instead: Any,
    ) -> Criterion:
        """The bounds that the user asked for, for groups of these sizes; `instead` replaces some of the bounds.

        For another number of clusters than the user's, or groups of a sample out of `n_rows` rows, bounds on sizes
        become multiples of the mean size. Sizes that are sums of weights are in this `unit`.
        """
        bounds = self._bounds()._replace(**instead)
        if n_clusters is not None or n_rows is not None:
            share = self.n_clusters / (n_rows or float(sizes.sum()) * (unit or 1.0))
            least, most = (_multiples(size, share) for size in (bounds.size_min, bounds.size_max))
            bounds = bounds._replace(size_min=least, size_max=most)
        return bounds_criterion(bounds, self._sensitive, sizes, n_clusters or self.n_clusters, unit=unit)

    def _starts(self, points: TiledPoints, rng: np.random.RandomState) -> list[Prototypes]:
        """Centres to start from. If plain clustering from several starts ends at nearly the same ones, one is kept.

        With `search`, half of the starts are k-means++ centres, and the others end with plain steps. On some data the
        best clusterings follow from the former only, on others from the latter. With many large clusters, only the
        cheapest of the latter are kept.
        """
        if not isinstance(self.init, str):
            return [Prototypes(initial_centers(points.X, self.n_clusters, self._framed_init(), rng))]
        joined, _ = self._joined(points) or (points, None)

        def drawn() -> Prototypes:
            return Prototypes(initial_centers(joined.X, self.n_clusters, "k-means++", rng, joined.weights))

        n_plain = 0 if self.init == "k-means++" else self.n_init - self._searches * (self.n_init // 2)
        # Plain steps are cheap, and after them fewer steps with prices are needed.
        ended = [plain_run(joined, drawn(), self._update, self.tol) for _ in range(n_plain)]
        runs = different(joined, ended)
        if self._searches and runs:
            runs.append(plain_search(joined, runs, self._update, self.tol, rng))
            if self.n_clusters >= _LONG_FROM and points.n_samples >= _ROWS_PER_CLUSTER * self.n_clusters:
                return [run.prototypes for run in sorted(runs, key=rank)[:_BEST_STARTS]]
        return [run.prototypes for run in runs] + [drawn() for _ in range(self.n_init - n_plain)]

    def _joined(self, points: TiledPoints) -> tuple[TiledPoints, float] | None:
        """The different rows with weights, which make several starts faster, see `TiledPoints.of_distinct_rows`."""
        several = self.takes_weights and self.n_init > 1
        return points.of_distinct_rows if several and points.lists is None else None

    @property
    def _searches(self) -> bool:
        """As in the base, but not if clusters have bounds of their own."""
        return super()._searches and not (np.ndim(self.size_min) or np.ndim(self.size_max))

    def _best(
        self,
        points: TiledPoints,
        criterion: Criterion,
        criterion_of: Callable[..., Criterion],
        starts: Sequence[Prototypes],
        rng: np.random.RandomState | None = None,
    ) -> tuple[list[Run], Prices]:
        """The runs from the best starts, the cheapest first, and its prices; with `rng` from those that a search finds.

        `criterion_of` is called as `_criterion`, for other sizes of groups and numbers of clusters.
        """
        priced: list[tuple[Prototypes, Any]] = [(start, None) for start in starts]
        if points.lists is not None:
            priced = [approach(points, criterion, self._update, start) for start in starts]
        rng = rng if self._searches else None
        if rng is not None or len(priced) > KEPT:
            few, unit = self._joined(points) or (points, None)
            rough_of = criterion_of if unit is None else partial(criterion_of, unit=unit)
            rough = searched(few, rough_of, priced, self._run, rng, unit or 1.0)
            priced = [(run.prototypes, run.last.state) for run in rough]
        runs: list[Run] = []
        for start, multipliers in priced:
            # The cheapest rough run comes first, and most others need a few steps only to show that they are costlier.
            target = min((run.last.objective for run in runs), default=np.inf)
            runs.append(self._run(points, criterion, start, multipliers, target=target))
        best, prices = cheapest(points, criterion, sorted(runs, key=rank), self.tol)
        return [best, *(run for run in runs if run is not best)], prices

    def _within_budget(
        self, points: TiledPoints, criterion_of: Callable[..., Criterion], rng: np.random.RandomState
    ) -> tuple[Run, Criterion, Prices]:
        """The fairest clustering within the budget, with the fairest assignment to its centres within the budget."""
        plain = [plain_run(points, start, self._update, self.tol) for start in self._starts(points, rng)]
        plain.sort(key=rank)
        starts = [run.prototypes for run in plain]
        # Costs are compared in the unit of the user's data and weights.
        unit = self._unit * self._cost_unit
        cost = plain[0].last.clustering * unit
        budget = check_budget(self._bounds(), self.max_cost, self.max_cost_increase, cost, points.rounding)
        run, fairest = fairest_clustering(points, criterion_of, self._best, starts, budget, unit)
        self.tolerance_, self.tolerance_bound_, (criterion, prices) = fairest
        return run, criterion, prices

    def _finish(
        self,
        points: Any,
        criterion: Criterion,
        run: Run,
        solved: Prices,
        codes: np.ndarray | None,
    ) -> None:
        """Round the prices of the best run to labels, and set the attributes of the fit.

        `codes`, the groups of the rows, are None for rows in chunks.
        """
        unit, prices = self._unit, solved.prices
        points.measure(run.prototypes.centers)
        labels, cost, counts = round_prices(points, criterion, solved)
        gap = certified_gap(criterion, solved, cost, lower_bound(points, criterion, solved), counts)
        # Rows in chunks are so many that a few do not matter.
        if codes is not None and _is_expensive(gap, counts):
            # If a cluster lies far from all others, the unit of the temperatures is large, and the mean cost is not.
            loose = round_prices(points, criterion, solved, points.priced(prices)[2] / points.n_samples)
            labels, cost, counts = loose if loose[1] < (1 - _LARGE_GAP) * cost else (labels, cost, counts)
        self._keep(points, run.prototypes, prices)
        # The tiles may be in single precision, so the cost of rows in memory is summed again from the rows.
        if codes is not None:
            cost = self._paid(points.X, labels, run.prototypes.centers, points.weights)
        bound = self._least(points, prices, codes) - paid_limits(criterion, solved.multipliers)
        gap = certified_gap(criterion, solved, cost, bound, counts)
        if gap > _LARGE_GAP:
            # No labels cost less than those of the nearest centres.
            nearest = self._least(points, np.zeros_like(prices), codes)
            gap = min(gap, max(0.0, cost / nearest - 1)) if nearest > 0 else gap
        self.labels_ = labels
        self.cost_, self.lower_bound_, self.gap_ = cost * unit, bound * unit, gap
        self.violation_ = float(criterion.excess(counts).max()) * unit
        self.n_iter_, self.converged_ = len(run.history), run.verdict == "at rest"
        self.history_ = [
            {**record, **{name: record[name] * unit for name in _IN_UNITS}} for record in run.history
        ]
        if codes is None:
            self.n_rounded_ = len(labels.moved)
        else:
            self.n_rounded_ = int((points.hard(1.0, prices)[0] != labels).sum())
        self._column_prices = []
        if criterion.combined and self._sensitive.columns and not self.crossed:
            # Every row has one value of the first column, so the price of the cluster itself is added there.
            first, *others, cluster = (rows.T @ solved.multipliers for rows in criterion.parts)
            self._column_prices = [first + cluster, *others]
        for complaint in self._complaints(criterion, counts):
            self._complain(complaint)

    def _complaints(self, criterion: Criterion, counts: np.ndarray) -> Iterator[str]:
        """What the user should know about a fit that may disappoint."""
        n_empty = int((counts.sum(axis=0) == 0).sum())
        if n_empty > 0 or (not self.converged_ and self.n_iter_ >= self.max_iter):
            state = (
                "at rest: set size_min=1, raise n_init, or take fewer clusters"
                if self.converged_
                else "still moving: raise max_iter or tol"
            )
            yield (
                f"stopped after {count(self.n_iter_, 'outer step')} with {self.n_clusters - n_empty} of "
                f"{self.n_clusters} clusters non-empty and the cost {state}"
            )
        if criterion.work.is_cut:
            yield criterion.work.advice
        saved = self.lower_bound_ / self.cost_ - 1 if self.cost_ > 0 else 0.0
        # In clusters of a few points, parts of a point save as much without any far points.
        if self.violation_ > 0 and (saved > 1 or _is_expensive(saved, counts)):
            more = f"{percent(saved, 0)} more" if saved < 10 else f"{1 + saved:.2g} times as much"
            yield (
                f"the labels are off the bounds by up to {self.violation_:.2g} points (or weight) in a cluster, "
                f"because labels within them cost at least {more}: a few points lie far from all others. {_LONG_TAIL}"
            )
        elif _is_expensive(self.gap_, counts):
            yield (
                f"the labels may cost up to {percent(self.gap_, 0)} more than the cheapest labels within the bounds, "
                f"because a few points far from all others move whole clusters. {_LONG_TAIL}; precision='double' may "
                "help"
            )

    def _least(self, points: Any, prices: np.ndarray, codes: np.ndarray | None) -> float:
        """The sum over points of the least distance plus price, in double precision for rows in memory."""
        if codes is None:
            return points.priced(prices)[3]
        X, weights, labels = points.X, points.weights, np.empty(len(points.X), dtype=np.int32)
        for block in pairwise_blocks(len(X), len(self._centers)):
            # Squares of rows far from the origin would lose the digits of the distances.
            rows, centers = (part.astype(float) - self._shift for part in (X[block], self._centers))
            costs = euclidean_distances(rows, centers, squared=self._power == 2)
            labels[block] = (costs + prices[codes[block]]).argmin(axis=1)
        counts = np.zeros_like(prices)
        np.add.at(counts, (codes, labels), 1.0 if weights is None else weights)
        return self._paid(X, labels, self._centers, weights) + float((prices * counts).sum())


def _multiples(sizes: Any, share: float) -> Any:
    """Bounds on sizes, with numbers of rows as multiples of the mean size; a row is this share of it."""
    if np.ndim(sizes):
        return [_multiples(size, share) for size in sizes]
    return int(sizes) * share if isinstance(sizes, Integral) else sizes


def _is_expensive(gap: float, counts: np.ndarray) -> bool:
    """Whether the bounds cost so much that a few points far from all others may be the reason."""
    per_cell = counts.sum() / counts.size
    return gap > _LARGE_GAP and bool(per_cell >= (_FEW_PER_CELL if gap > 1 else _PER_CELL))


# What is reported in the unit of the user's weights.
_IN_UNITS = ("objective", "clustering", "fairness", "violation")
_LONG_TAIL = (
    "Look at these points, take the logarithm of columns with a long tail, or allow a larger tolerance"
)
