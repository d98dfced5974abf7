"""The outer loop of clustering by group prices, whatever the distance and the centres."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from numbers import Real
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from fairclust.base import (
    COUNT,
    NON_NEGATIVE,
    PRECISION,
    Diverged,
    FairClusterer,
    OffsetPredictMixin,
    initial_centers,
    resolve_target,
)
from fairclust.kernels.assignment import Potentials
from fairclust.solvers.centers import Prototypes
from fairclust.solvers.criteria import Criterion, make_criterion
from fairclust.solvers.fair_assignment import certified_gap, lower_bound, paid_limits, round_prices, solve
from fairclust.solvers.prices import Prices, dual_prices

# Temperatures of the assignments on the way; the last one is solved to the end.
_FIRST = (0.2, 0.04, 0.008, 0.0016)
_NEXT = (0.0016,)
_STEPS, _TOL, _FAR = 15, 3e-5, 1e-4
_PLAIN_STEPS = 300


class _Run(NamedTuple):
    """The last step of an alternation that the bound did not rise in."""

    prototypes: Prototypes
    multipliers: np.ndarray
    bound: float
    history: list[dict[str, float]]
    certificate: list[dict[str, float]]
    converged: bool


class PricePrototypes(OffsetPredictMixin, FairClusterer):
    """Alternation of assignments by group prices and centres; `PriceFairKMeans` documents the parameters.

    A method supplies `_squared_distances` and `_update`.
    """

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
        self.random_state = random_state

    @abstractmethod
    def _update(self, X: np.ndarray, labels: np.ndarray, old: Prototypes) -> Prototypes:
        """Best centres for hard labels; an empty cluster keeps its old one."""

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        rng = check_random_state(self.random_state)
        criterion = make_criterion(
            self.groups_,
            np.bincount(codes),
            target=None if self.target is None else resolve_target(self.target, self.groups_, codes),
            tolerance=self.tolerance,
            min_balance=self.min_balance,
            max_gap=self.max_gap,
        )
        self._shift = X.mean(axis=0, dtype=np.float64)
        points, potentials = self._open_tiles(X, codes, self.n_clusters)
        best: tuple[float, _Run, Prices] | None = None
        drawn = isinstance(self.init, str)
        for _ in range(self.n_init if drawn else 1):
            init = "k-means++" if drawn else self.init
            start = Prototypes(initial_centers(X, self.n_clusters, init, rng))
            if drawn and self.init == "k-means":
                start = self._plain(X, points, potentials, start)
            run = self._alternate(X, points, potentials, criterion, start)
            self._measure(points, potentials, run.prototypes.centers)
            found = solve(potentials, criterion, run.multipliers)
            # Not by a bound of the alternation: of prices that are far off it is low, and looks cheap.
            value = max(found.cost, lower_bound(potentials, criterion, found))
            # Starts that end alike differ by rounding, which must not choose between them.
            if best is None or value < best[0] - self.tol * abs(best[0]):
                best = value, run, found
        assert best is not None
        self._finish(points, potentials, criterion, *best[1:])

    def _measure(self, points: np.ndarray, potentials: Potentials, centers: np.ndarray) -> None:
        potentials.set_distances(points, centers - self._shift, squared=self._squared_distances)
        if not np.isfinite(potentials.row_min_sum):
            raise Diverged(f"the distances sum to {potentials.row_min_sum}")

    def _plain(
        self, X: np.ndarray, points: np.ndarray, potentials: Potentials, prototypes: Prototypes
    ) -> Prototypes:
        """Where plain clustering ends: its steps are cheap, and fewer of the others are left."""
        cost = np.inf
        for _ in range(_PLAIN_STEPS):
            self._measure(points, potentials, prototypes.centers)
            if cost - potentials.row_min_sum <= self.tol / 10 * potentials.row_min_sum:
                break
            cost = potentials.row_min_sum
            labels, *_ = potentials.hard(1.0, np.zeros((potentials.n_groups, self.n_clusters)))
            prototypes = self._update(X, labels, prototypes)
        return prototypes

    def _alternate(
        self,
        X: np.ndarray,
        points: np.ndarray,
        potentials: Potentials,
        criterion: Criterion,
        prototypes: Prototypes,
    ) -> _Run:
        last: _Run | None = None
        history: list[dict[str, float]] = []
        certificate: list[dict[str, float]] = []
        for step in range(1, self.max_iter + 1):
            begin = perf_counter()
            self._measure(points, potentials, prototypes.centers)
            start = None if last is None else last.multipliers
            levels = _FIRST if last is None else _NEXT
            found = dual_prices(potentials, criterion, start=start, levels=levels, max_steps=_STEPS, tol=_TOL)
            n_passes = found.n_passes + 1
            if last is not None and found.error > max(1.0, _FAR * len(X)):
                # The centres moved too far for a start at the lowest temperature.
                cold = solve(potentials, criterion)
                n_passes += cold.n_passes
                found = min(found, cold, key=lambda prices: prices.error)
            labels, counts, _, least = potentials.priced(found.prices)
            bound = least - paid_limits(criterion, found)
            if last is not None and bound > last.bound:
                return last._replace(converged=True)
            certificate.append(self._certify(criterion, found, step, found.cost, bound, found.mass))
            history.append(
                {
                    "step": step,
                    "objective": bound,
                    "clustering": found.cost,
                    "fairness": float(criterion.excess(counts).max()),
                    "inner_iter": n_passes,
                    "seconds": perf_counter() - begin,
                }
            )
            falls = np.inf if last is None else last.bound - bound
            last = _Run(
                prototypes, found.multipliers, bound, history, certificate, falls <= self.tol * abs(bound)
            )
            if last.converged:
                break
            prototypes = self._update(X, labels, prototypes)
        assert last is not None
        return last

    def _certify(
        self,
        criterion: Criterion,
        found: Prices,
        step: int,
        cost: float,
        bound: float,
        table: np.ndarray,
    ) -> dict[str, float]:
        return {
            "step": step,
            "cost": cost,
            "lower_bound": bound,
            "gap": certified_gap(criterion, found, cost, bound, table),
            "violation": float(criterion.excess(table).max()),
        }

    def _finish(
        self, points: np.ndarray, potentials: Potentials, criterion: Criterion, run: _Run, found: Prices
    ) -> None:
        """Round the best run's prices."""
        self._measure(points, potentials, run.prototypes.centers)
        self.labels_, self.cost_, counts, least = round_prices(potentials, criterion, found)
        self.lower_bound_ = least - paid_limits(criterion, found)
        self.n_iter_, self.history_, self.converged_ = len(run.history), run.history, run.converged
        last = self._certify(criterion, found, self.n_iter_ + 1, self.cost_, self.lower_bound_, counts)
        self.certificate_ = [*run.certificate, last]
        self.gap_, self.violation_ = last["gap"], last["violation"]
        self.scale_, self.offset_ = 1.0, found.prices
        self.n_rounded_ = int((potentials.hard(1.0, found.prices)[0] != self.labels_).sum())
        self._keep(run.prototypes)
        n_empty = int((counts.sum(axis=0) == 0).sum())
        if n_empty or not run.converged:
            state = "at rest" if run.converged else "still moving"
            warnings.warn(
                f"stopped after {self.n_iter_} outer steps with {self.n_clusters - n_empty} of "
                f"{self.n_clusters} clusters non-empty and the cost {state}",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _keep(self, prototypes: Prototypes) -> None:
        self.cluster_centers_ = prototypes.centers
