"""The outer loop of variational fair clustering for prototypes, whatever their distance and their centres."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from copy import deepcopy
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import entr
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from fairclust.base import (
    COUNT,
    INIT,
    NON_NEGATIVE,
    POSITIVE,
    PRECISION,
    FairClusterer,
    OffsetPredictMixin,
    at_least,
    initial_centers,
    resolve_target,
)
from fairclust.kernels.assignment import Potentials
from fairclust.solvers.bound import bound_iteration, fairness_term
from fairclust.solvers.centers import Prototypes
from fairclust.solvers.penalty import PenaltySolution, minimize_penalty

# Stopping rules: the published program's; where steps never rise, a tighter one costs little.
_TOL = {"mm": 1e-4, "accelerated": 1e-5}


@dataclass
class Start:
    """What fits of the same data from the same centres have in common.

    Attributes
    ----------
    shift : ndarray of shape (n_features,)
    points : ndarray of shape (n_tiles, n_features, TILE)
    potentials : Potentials
        Distances to the starting centres.
    prototypes : Prototypes
    rng : RandomState
        For fresh seeds.
    prices : ndarray of shape (n_groups, n_clusters), optional
        Prices to start the accelerated solver from.
    """

    shift: np.ndarray
    points: np.ndarray
    potentials: Potentials
    prototypes: Prototypes
    rng: np.random.RandomState
    prices: np.ndarray | None = None


class _Step(NamedTuple):
    prototypes: Prototypes
    scale: float
    offset: np.ndarray
    labels: np.ndarray
    counts: np.ndarray
    clustering: float
    fairness: float
    energy: float

    @property
    def n_empty(self) -> int:
        return int((self.counts.sum(axis=0) == 0).sum())


class VariationalPrototypes(OffsetPredictMixin, FairClusterer):
    """Alternation of fair assignments and centres; `VariationalFairKMeans` documents the parameters.

    A method supplies `_squared_distances` and `_update`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": COUNT,
        "lam": NON_NEGATIVE,
        "solver": [StrOptions(set(_TOL))],
        "warm_start": ["boolean"],
        "lipschitz": POSITIVE,
        "target": [None, dict, "array-like"],
        "init": INIT,
        "max_iter": COUNT,
        "tol": [None, *NON_NEGATIVE],
        "bound_max_iter": COUNT,
        "bound_tol": NON_NEGATIVE,
        "max_restarts": at_least(0),
        "precision": PRECISION,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        lam: float = 10.0,
        solver: str = "accelerated",
        warm_start: bool = True,
        lipschitz: float = 2.0,
        target: Any = None,
        init: Any = "k-means++",
        max_iter: int = 100,
        tol: float | None = None,
        bound_max_iter: int = 10_000,
        bound_tol: float = 1e-5,
        max_restarts: int = 3,
        precision: str = "single",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.lam = lam
        self.solver = solver
        self.warm_start = warm_start
        self.lipschitz = lipschitz
        self.target = target
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.bound_max_iter = bound_max_iter
        self.bound_tol = bound_tol
        self.max_restarts = max_restarts
        self.precision = precision
        self.random_state = random_state

    @abstractmethod
    def _update(self, X: np.ndarray, labels: np.ndarray, old: Prototypes) -> Prototypes:
        """Best centres for hard labels; an empty cluster keeps its old one."""

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        start = self._open(X, codes)
        self._iterate(X, start, start.potentials)

    def _open(self, X: np.ndarray, codes: np.ndarray) -> Start:
        rng = check_random_state(self.random_state)
        self._shift = X.mean(axis=0, dtype=np.float64)
        points, potentials = self._open_tiles(X, codes, self.n_clusters)
        centers = initial_centers(X, self.n_clusters, self.init, rng)
        start = Start(self._shift, points, potentials, Prototypes(centers), rng)
        self._measure(start, centers, potentials)
        return start

    def _measure(self, start: Start, centers: np.ndarray, potentials: Potentials) -> None:
        potentials.set_distances(start.points, centers - start.shift, squared=self._squared_distances)

    def _iterate(self, X: np.ndarray, start: Start, work: Potentials) -> None:
        """Alternate from `start`; `work` may be its own potentials, which are then overwritten."""
        accelerated = self.solver == "accelerated"
        tol = _TOL[self.solver] if self.tol is None else self.tol
        rng = deepcopy(start.rng)
        self._shift = start.shift
        layout = start.potentials.layout
        sizes = np.bincount(layout.group, layout.count, len(self.groups_)).astype(int)
        self.target_ = resolve_target(self.target, self.groups_, np.repeat(np.arange(len(sizes)), sizes))
        # The energy holds this constant, which grows with lam and would end the iteration early.
        least_penalty = self.lam * self.n_clusters * float(entr(self.target_).sum()) if accelerated else 0.0

        self.history_: list[dict[str, float]] = []
        self.n_inner_iter_ = self.n_restarts_ = self.n_energy_rises_ = 0
        self.converged_ = False
        potentials, prototypes, prices = start.potentials, start.prototypes, start.prices
        last: _Step | None = None
        since_restart = 0
        for step in range(1, self.max_iter + 1):
            begin, passes = perf_counter(), self.n_inner_iter_
            if step > 1:
                potentials = work
                self._measure(start, prototypes.centers, potentials)
            since_restart += 1
            now = (self._accelerated_step if accelerated else self._bound_step)(
                potentials, prototypes, None if since_restart == 1 else last, prices
            )
            if now is None:
                self.converged_ = True
                break
            before, last = None if since_restart == 1 else last, now
            self.n_energy_rises_ += int(before is not None and now.energy > before.energy)
            prototypes = self._update(X, now.labels, now.prototypes)
            self.history_.append(
                {
                    "step": step,
                    "objective": now.energy,
                    "clustering": now.clustering,
                    "fairness": now.fairness,
                    "inner_iter": self.n_inner_iter_ - passes,
                    "n_nonempty": self.n_clusters - now.n_empty,
                    "seconds": perf_counter() - begin,
                }
            )
            if now.n_empty and (before is None or not accelerated):
                if self.n_restarts_ < self.max_restarts:
                    self.n_restarts_ += 1
                    prototypes = Prototypes(initial_centers(X, self.n_clusters, "k-means++", rng))
                    prices, since_restart = None, 0
                    if accelerated:
                        self.history_.clear()
                    continue
                if not accelerated:
                    break
            if self.warm_start:
                prices = now.offset
            if before is not None and since_restart > (1 if accelerated else 2):
                reference = abs(now.energy - least_penalty) if accelerated else abs(before.energy)
                if abs(now.energy - before.energy) <= tol * reference:
                    self.converged_ = True
                    break
        assert last is not None
        self.n_iter_ = step
        self.labels_, self.scale_, self.offset_ = last.labels, last.scale, last.offset
        self._keep(last.prototypes)
        if last.n_empty or not self.converged_:
            state = "at rest" if self.converged_ else "still moving"
            warnings.warn(
                f"stopped after {step} outer steps with {self.n_clusters - last.n_empty} of "
                f"{self.n_clusters} clusters non-empty and the energy {state} (lam={self.lam:g}, "
                f"{self.n_restarts_} restarts)",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _keep(self, prototypes: Prototypes) -> None:
        self._prototypes = prototypes
        self.cluster_centers_ = prototypes.centers

    def _bound_step(
        self, potentials: Potentials, prototypes: Prototypes, last: _Step | None, prices: np.ndarray | None
    ) -> _Step:
        """The paper's step: cold start, soft energy, accepted as it is."""
        if self.lam == 0:
            scale, offset = 1.0, np.zeros((len(self.groups_), self.n_clusters))
            clustering, fairness = potentials.row_min_sum, 0.0
        else:
            scale, offset, mass, clustering, inner = bound_iteration(
                potentials,
                lam=self.lam,
                lipschitz=self.lipschitz,
                target=self.target_,
                max_iter=self.bound_max_iter,
                tol=self.bound_tol,
            )
            fairness = fairness_term(mass, self.target_)
            self.n_inner_iter_ += inner
        labels, counts, _ = potentials.hard(scale, offset)
        energy = clustering + self.lam * fairness
        return _Step(prototypes, scale, offset, labels, counts, clustering, fairness, energy)

    def _accelerated_step(
        self, potentials: Potentials, prototypes: Prototypes, last: _Step | None, prices: np.ndarray | None
    ) -> _Step | None:
        """Assignment from the last prices, or else cold; None if nothing is as good as the last step's."""
        most_empty, most = (self.n_clusters, np.inf) if last is None else (last.n_empty, last.energy)
        empty_cells = 0 if last is None else (last.counts == 0).sum()
        starts: list[tuple[np.ndarray | None, bool]] = [(None, False)]
        if prices is not None:
            starts.insert(0, (prices, False))
        if last is not None:
            # Centres that moved far may leave the cold start in a worse place than the labels came from.
            starts.append((last.offset, True))
        tried: list[PenaltySolution] = []
        for start, heat in starts:
            found = minimize_penalty(potentials, lam=self.lam, target=self.target_, start=start, heat=heat)
            self.n_inner_iter_ += found.n_passes
            tried.append(found)
            # A warm start may stick to where it is, or run into a corner where cells are empty.
            sound = start is None or (found.converged and (found.counts == 0).sum() <= empty_cells)
            # An empty cluster costs nothing in this energy: hence two conditions.
            if sound and found.n_empty <= most_empty and found.energy <= most:
                break
        found = min(tried, key=PenaltySolution.rank)
        if found.n_empty > most_empty or found.energy > most:
            return None
        return _Step(
            prototypes,
            1.0,
            found.prices,
            found.labels,
            found.counts,
            found.clustering,
            found.fairness,
            found.energy,
        )
