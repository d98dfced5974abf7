"""The base of k-means and k-medians with variational fair clustering."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy, deepcopy
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import entr
from sklearn.utils import check_random_state

from fairclust.base import (
    COUNT,
    NON_NEGATIVE,
    POSITIVE,
    NotSupported,
    at_least,
    initial_centers,
)
from fairclust.frame import Frame
from fairclust.group_encoding import resolve_target
from fairclust.kernels.points import TiledPoints
from fairclust.methods._columns import ColumnsClusterer
from fairclust.methods._levels import LEVELS, WEIGHT, fit_to_level
from fairclust.methods._prototypes import PrototypeClusterer
from fairclust.methods.variational.bound import BOUND_TOL
from fairclust.methods.variational.penalty import penalty_slope
from fairclust.methods.variational.steps import bound_step, newton_step
from fairclust.metrics.counts import contingency
from fairclust.solvers.alternation import Alternation, Prototypes, Run, Step, alternate
from fairclust.solvers.points import MeasuredPoints

# Default `tol` of the published program, and ours. Ours is tighter, which is cheap because the energy never rises.
_REFERENCE_TOL, _TOL = 1e-4, 1e-5
# The first weight of a search, in multiples of the cost of all points in one cluster.
_FIRST = 1e-3


class Start(NamedTuple):
    """The start of a fit: packed points, centres, prices if there are any, and the random state for restarts."""

    points: TiledPoints
    prototypes: Prototypes
    rng: np.random.RandomState
    prices: np.ndarray | None = None


@dataclass(eq=False, repr=False)
class VariationalClusterer(ColumnsClusterer, PrototypeClusterer):
    """Alternates between fair assignments and new centres. `VariationalFairKMeans` documents the parameters."""

    _sorts_rows = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "lam": WEIGHT,
        **LEVELS,
        "lipschitz": POSITIVE,
        "tol": [None, *NON_NEGATIVE],
        "bound_max_iter": COUNT,
        "max_restarts": at_least(0),
    }

    n_clusters: int = 8
    _: KW_ONLY
    lam: float | str = "auto"
    max_fairness_error: float | None = None
    min_balance: float | None = None
    max_gap: float | None = None
    relative_weights: bool = False
    match_reference: bool = False
    lipschitz: float = 2.0
    target: Any = None
    init: Any = "k-means++"
    max_iter: int = 100
    tol: float | None = None
    bound_max_iter: int = 10_000
    max_restarts: int = 3
    precision: str = "single"
    verbose: int = 0
    random_state: Any = None

    def _framing(self, X: np.ndarray) -> Frame:
        frame = super()._framing(X)
        # The inner loop of the published program starts from a softmax of the distances at temperature 1. This depends
        # on the unit of the data, so they are not scaled.
        return frame._replace(unit=1.0) if self.match_reference else frame

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        start = self._start(X, codes)
        self._set_target(codes)

        def fit(
            weight: float, before: VariationalClusterer | None
        ) -> tuple[VariationalClusterer, list[np.ndarray], float]:
            model = copy(self)
            model._fit_from(start if before is None else before._warmed(start), codes, weight)
            counts = contingency(model.labels_, codes, self.n_clusters, len(self.groups_))
            return model, self._tables(counts), model.history_[-1]["clustering"]

        best, _ = fit_to_level(
            self,
            "lam",
            fit,
            sizes=self._tables(np.bincount(codes)),
            targets=self._target_shares(),
            first=_FIRST * self._weight_unit(X.shape[0]),
            into=lambda weight: self._framed_weight(weight, X.shape[0]),
            unit=self._frame.cost_unit(self._power),
        )
        self.__dict__.update(vars(best))
        self._complain_of_moving()

    def _weight_unit(self, n_samples: int) -> float:
        """The unit of relative weights, which is the approximate cost of all points in one cluster, in the frame."""
        return self._frame.whole_cost(n_samples, self._power)

    def _framed_weight(self, weight: float, n_samples: int) -> float:
        if self.relative_weights:
            return weight * self._weight_unit(n_samples)
        return self._frame.weight_into(weight, self._power)

    def _start(self, X: np.ndarray, codes: np.ndarray) -> Start:
        rng = check_random_state(self.random_state)
        points = self._points(X, codes)
        return Start(points, Prototypes(initial_centers(X, self.n_clusters, self._framed_init(), rng)), rng)

    def _warmed(self, start: Start) -> Start:
        """The start with the final centres and prices of this fit."""
        # A cluster that becomes empty keeps its medoid, so the rows of the medoids are needed as well.
        prototypes = Prototypes(self._centers, getattr(self, "medoid_indices_", None))
        return start._replace(prototypes=prototypes, prices=None if self.match_reference else self.offset_)

    def _fit_from(self, start: Start, codes: np.ndarray, lam: float) -> None:
        """Alternate assignments and centres, with new seeds if a cluster is empty. `lam` is that of the frame."""
        self.lam_ = lam
        points, prototypes, _, prices = start
        rng = deepcopy(start.rng)
        self.history_: list[dict[str, float]] = []
        self.n_restarts_ = self.n_inner_iter_ = self.n_energy_rises_ = self.n_iter_ = 0
        while True:
            steps = self.max_iter - self.n_iter_
            # From k-means++ picks, the centres will move far.
            kind = self._alternation(prices, hurried=steps > 1 and isinstance(self.init, str))
            run = alternate(kind, points, prototypes, max_iter=steps, verbose=self.verbose)
            begun = self.history_ if self.match_reference else []
            self.history_ = begun + [{**h, "step": h["step"] + self.n_iter_} for h in run.history]
            self.n_inner_iter_ += sum(int(record["inner_iter"]) for record in run.history)
            self.n_energy_rises_ += run.n_rises
            self.n_iter_ += run.n_steps
            if run.verdict != "emptied" or self.n_restarts_ == self.max_restarts:
                break
            self.n_restarts_ += 1
            if self.n_iter_ == self.max_iter:
                break
            prototypes = Prototypes(initial_centers(points.X, self.n_clusters, "k-means++", rng))
            prices = None
        self._finish(points, run)
        if self._sensitive is not None:
            counts = contingency(self.labels_, codes, self.n_clusters, len(self.groups_))
            self._column_prices = [
                lam * penalty_slope(members @ counts, shares) for members, shares in self._target
            ]

    def _finish(self, points: MeasuredPoints, run: Run) -> None:
        """Set the attributes of the fit from its last assignment."""
        self.converged_ = run.verdict == "at rest"
        self.labels_, self.scale_, self.offset_ = run.last.labels, run.last.scale, run.last.offset
        self._keep(points, run.prototypes)
        self._n_empty = run.last.n_empty

    def _complain_of_moving(self) -> None:
        if not (self._n_empty or not self.converged_):
            return
        state = "at rest" if self.converged_ else "still moving"
        advice = "raise max_iter or tol" if not self.converged_ else "take fewer clusters or a smaller lam"
        self._complain(
            f"stopped after {self.n_iter_} outer steps with {self.n_clusters - self._n_empty} of "
            f"{self.n_clusters} clusters non-empty and the energy {state} ({self.n_restarts_} restarts): {advice}"
        )

    def _set_target(self, codes: np.ndarray) -> None:
        """Set the target shares of the groups, or for several columns those of the values of each column."""
        if self._sensitive is None:
            self._target: Any = resolve_target(self.target, self.groups_, codes)
            self.target_: Any = self._target
            return
        if self.match_reference:
            raise NotSupported(
                f"{type(self).__name__} with match_reference takes one sensitive column: pass one, or "
                "leave match_reference out"
            )
        sensitive, asked = self._sensitive, self.target or {}
        names = [column.name for column in sensitive.columns]
        if not isinstance(asked, Mapping) or set(map(str, asked)) - set(names):
            raise ValueError(
                f"target must be a mapping of sensitive column to shares, with columns out of {names}"
            )
        by_name = {str(name): shares for name, shares in asked.items()}
        shares = {
            column.name: resolve_target(by_name.get(column.name), column.values, sensitive.cells[codes, i])
            for i, column in enumerate(sensitive.columns)
        }
        self.target_, self._target = shares, list(zip(self._members(), shares.values(), strict=True))

    def _target_shares(self) -> list[np.ndarray]:
        """The target shares of each sensitive column."""
        return [self._target] if self._sensitive is None else [shares for _, shares in self._target]

    def _alternation(self, prices: np.ndarray | None, *, hurried: bool = False) -> Alternation[Any]:
        if self.match_reference:
            assign = partial(
                bound_step,
                lam=self.lam_,
                lipschitz=self.lipschitz,
                target=self._target,
                max_iter=self.bound_max_iter,
                tol=BOUND_TOL,
            )
            return Alternation(assign, self._update, self._judge_as_reference)
        step = partial(
            newton_step,
            lam=self.lam_,
            target=self._target,
            prices=prices,
            hurried=hurried,
        )
        return Alternation(step, self._update, self._judge)

    def _judge_as_reference(self, step: int, before: Step | None, now: Step) -> str:
        tol = _REFERENCE_TOL if self.tol is None else self.tol
        if now.n_empty:
            return "emptied"
        change = np.inf if before is None else abs(now.objective - before.objective)
        return "at rest" if step > 2 and before and change <= tol * abs(before.objective) else ""

    def _judge(self, step: int, before: Step | None, now: Step) -> str:
        if before is None:
            return "emptied" if now.n_empty and self.n_restarts_ < self.max_restarts else ""
        # This constant is a part of the energy that grows with lam. Relative to it every change would be small.
        least = float(sum(entr(of).sum() for of in self._target_shares()))
        least_penalty = self.lam_ * self.n_clusters * least
        tol = _TOL if self.tol is None else self.tol
        change = abs(now.objective - before.objective)
        return "at rest" if change <= tol * abs(now.objective - least_penalty) else ""
