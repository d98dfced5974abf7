"""Variational fair clustering (Ziko et al., AAAI 2021) for the normalised cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import pairwise_distances_argmin
from sklearn.preprocessing import normalize
from sklearn.utils._param_validation import StrOptions

from fairclust.base import NON_NEGATIVE, at_least, initial_centers, record, without_empty
from fairclust.group_encoding import resolve_target
from fairclust.kernels.assignment import Potentials
from fairclust.kernels.graph import AffinityGraph
from fairclust.kernels.points import DTYPES, TiledPoints
from fairclust.kernels.tiles import make_layout
from fairclust.messages import NOT_UNIQUE, count
from fairclust.methods.spectral.embedding import spectral_embedding
from fairclust.methods.spectral.graph import GraphClusterer
from fairclust.methods.variational.penalty import bound_step, minimize_penalty, padded_fairness
from fairclust.metrics import contingency
from fairclust.solvers.criteria import exact_shares
from fairclust.solvers.lloyd import Lloyd
from fairclust.solvers.prices import dual_prices

# L of the bound, as in the published program.
_LIPSCHITZ = 1.0
_KMEANS_STARTS = 5
# These multiples of D are added to W, one after the other, until a step lowers the energy. With 1, the linearised cut
# is always an upper bound.
_SHIFTS = (0.0, 0.25, 0.5, 1.0)


@dataclass
class _Run:
    """A descent from one start."""

    start: str
    labels: np.ndarray
    objective: float
    cut: float
    fairness: float
    converged: bool = False
    prices: np.ndarray | None = None
    history: list[dict[str, float]] = field(default_factory=list)


@dataclass(eq=False, repr=False, kw_only=True)
class VariationalFairNCut(GraphClusterer):
    """Normalised cut of a graph with the Kullback-Leibler fairness penalty.

    Minimises ``K - sum_k S_k'W S_k / (d'S_k) + lam * sum_k KL(U || P_k)`` (equation 2 with the Ncut row of
    Table 1), where W is the affinity, d its degrees, P_k the group shares of cluster k and U the target shares. The
    memory is that of the edges and of N x K single-precision numbers, not of N x N numbers.

    Parameters
    ----------
    lam : float, default=10.0
        Weight of fairness. The cut lies between 0 and K for all data, so weights from 1 to 100 span the trade-off.
    init : {"best", "k-means++"} or array-like of shape (n_samples,), default="best"
        The first labels. "k-means++" is the nearest k-means++ centre, as in the paper, among the points. For a
        precomputed affinity these are the `points` that `fit` gets beside it, or else rows of the spectral embedding.
        "best" keeps the result of lowest energy from three starts: "fair_spectral" (k-means on the embedding with equal
        group means), "prices" (exactly proportional clusters around the centres of "fair_spectral") and "spectral"
        (k-means on the plain embedding). An array holds labels.
    match_reference : bool, default=False
        Whether to use the paper's iteration, as in the authors' program, which needs ``precision="double"``. The
        default computes prices by Newton's method and takes a step only if it lowers the energy and empties no cluster.
    max_iter, tol : int, float, default=100, 1e-4
        Largest number of outer steps, and tolerance. The fit stops once the energy, without its constant
        ``lam * K * H(U)``, falls by less than the fraction `tol`; with `match_reference` once it changes by less,
        from the third step on.

    Attributes
    ----------
    history_ : list of dict
        One record for each outer step of the start that was kept: `clustering` is the Ncut of the hard labels, and
        `fairness` the cross-entropy of equation 4 for them, with a pseudo-count.
    start_ : str
        The start that was kept; "labels" for an array.
    target_ : ndarray of shape (n_groups,)
    converged_ : bool

    References
    ----------
    Ziko, Yuan, Granger, Ben Ayed: Variational Fair Clustering, AAAI 2021, Table 1 and Algorithm 1.

    Examples
    --------
    >>> from fairclust import VariationalFairNCut
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = VariationalFairNCut(2, lam=10.0, n_neighbors=5, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [1, 0, 0, 0, 1, 1, 1, 0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "lam": NON_NEGATIVE,
        "affinity": [StrOptions({"nearest_neighbors", "precomputed"})],
        "n_neighbors": at_least(2),
        "init": [StrOptions({"best", "k-means++"}), "array-like"],
    }

    lam: float = 10.0
    target: Any = None
    init: Any = "best"
    match_reference: bool = False
    max_iter: int = 100
    tol: float = 1e-4
    precision: str = "single"

    def _fit_graph(
        self, graph: AffinityGraph, points: np.ndarray | None, codes: np.ndarray, rng: np.random.RandomState
    ) -> None:
        self.target_ = resolve_target(self.target, self.groups_, codes)
        self._targets = list(zip(self._members(), [self.target_], strict=True))
        n_groups = len(self.groups_)
        layout = make_layout(codes, n_groups)
        potentials = Potentials.empty(layout, n_groups, self.n_clusters, DTYPES[self.precision])
        descend = self._iterate if self.match_reference else self._descend
        runs = []
        for name, labels in list(self._starts(graph, points, codes, rng)):
            labels = without_empty(labels, codes, self.n_clusters)
            counts = contingency(labels, codes, self.n_clusters, n_groups).astype(float)
            runs.append(_Run(name, labels, *self._terms(graph, potentials, labels, counts)))
            descend(graph, potentials, runs[-1])
        runs.sort(key=lambda run: run.objective)
        best = runs[0]
        self.labels_, self.history_, self.start_ = best.labels, best.history, best.start
        self.n_iter_ = len(best.history)
        self.converged_ = best.converged
        if not self.converged_:
            self._complain(
                f"stopped after {count(self.n_iter_, 'outer step')}, with the energy still moving or a cluster about "
                f"to empty (lam={self.lam:g}): raise max_iter or tol, or take fewer clusters"
            )

    def _iterate(self, graph: AffinityGraph, potentials: Potentials, run: _Run) -> None:
        """The paper's Algorithm 1 from the run's labels."""
        for step in range(1, self.max_iter + 1):
            begin = perf_counter()
            graph.set_potentials(potentials, run.labels)
            solution = bound_step(potentials, None, lam=self.lam, lipschitz=_LIPSCHITZ, target=self.target_)
            old, terms = run.objective, self._terms(graph, potentials, solution.labels, solution.counts)
            run.history.append(record(step, begin, *terms, inner_iter=solution.n_passes))
            if solution.n_empty:
                break
            run.labels, run.objective = solution.labels, terms[0]
            # The published program counts steps from 0 and requires a number above 1.
            if step > 2 and abs(run.objective - old) <= self.tol * abs(old):
                run.converged = True
                break

    def _descend(self, graph: AffinityGraph, potentials: Potentials, run: _Run) -> None:
        """Price steps from the run's labels, of which only those that lower the energy are taken."""
        constant = -self.lam * self.n_clusters * float(self.target_ @ np.log(self.target_))
        for step in range(1, self.max_iter + 1):
            begin = perf_counter()
            old = run.objective
            n_passes = self._lower(graph, potentials, run)
            terms = run.objective, run.cut, run.fairness
            run.history.append(record(step, begin, *terms, inner_iter=n_passes))
            fall = old - run.objective
            if fall == 0 or fall <= self.tol * (run.objective - constant):
                run.converged = True
                break

    def _lower(self, graph: AffinityGraph, potentials: Potentials, run: _Run) -> int:
        """Move the run to labels of lower energy if a price step finds any. Returns the number of passes."""
        n_passes = 0
        for shift in _SHIFTS:
            graph.set_potentials(potentials, run.labels, shift=shift)
            # The prices of the step before save three of four passes. If they find nothing better, the start is cold.
            for start in (None,) if run.prices is None else (run.prices, None):
                solution = minimize_penalty(potentials, lam=self.lam, targets=self._targets, start=start)
                n_passes += solution.n_passes
                if solution.n_empty:
                    continue
                terms = self._terms(graph, potentials, solution.labels, solution.counts)
                if terms[0] < run.objective:
                    run.labels, run.prices = solution.labels, solution.offset
                    run.objective, run.cut, run.fairness = terms
                    return n_passes
        return n_passes

    def _terms(
        self, graph: AffinityGraph, potentials: Potentials, labels: np.ndarray, counts: np.ndarray
    ) -> tuple[float, float, float]:
        """Energy, Ncut and fairness term of hard labels with these counts. Empty clusters have no cut."""
        within, crossing = graph.associations(labels, self.n_clusters, potentials.layout)
        used = counts.sum(axis=0) > 0
        cut = float((crossing[used] / (within + crossing)[used]).sum())
        fairness = padded_fairness(counts, self._targets)
        return cut + self.lam * fairness, cut, fairness

    def _starts(
        self,
        graph: AffinityGraph,
        points: np.ndarray | None,
        codes: np.ndarray,
        rng: np.random.RandomState,
    ) -> Iterator[tuple[str, np.ndarray]]:
        """Names and labels of the wanted starts, in the order in which "best" tries them."""
        if not isinstance(self.init, str):
            labels = np.asarray(self.init)
            if labels.shape != codes.shape:
                raise ValueError(
                    f"init has shape {labels.shape}, expected one label for each of {len(codes)} rows"
                )
            if (
                not np.issubdtype(labels.dtype, np.integer)
                or labels.min() < 0
                or labels.max() >= self.n_clusters
            ):
                raise ValueError(
                    f"init must be integer labels from 0 to n_clusters - 1 = {self.n_clusters - 1}"
                )
            yield "labels", labels
            return
        seed = int(rng.randint(np.iinfo(np.int32).max))

        def embedding(fair: bool) -> np.ndarray:
            # A rough embedding is enough for a start.
            solution = spectral_embedding(graph, self.n_clusters, groups=codes if fair else None, tol=1e-3)
            if not solution.unique:
                self._complain(NOT_UNIQUE)
            return normalize(solution.coordinates)

        if self.init == "k-means++":
            points = embedding(False) if points is None else points
            picks = initial_centers(points, self.n_clusters, "k-means++", np.random.RandomState(seed))
            yield "k-means++", pairwise_distances_argmin(points, picks.astype(points.dtype))
            return
        kmeans = Lloyd(self.n_clusters, n_init=_KMEANS_STARTS, random_state=seed)
        rows = embedding(True)
        yield "fair_spectral", kmeans.fit(rows).labels_
        # The cheapest labels at these centres with the data's group shares in every cluster, up to rounding.
        sizes, shift = np.bincount(codes), np.zeros(rows.shape[1])
        packed = TiledPoints.pack(rows, codes, len(sizes), self.n_clusters, shift=shift)
        packed.measure(kmeans.cluster_centers_)
        yield "prices", packed.hard(1.0, dual_prices(packed, exact_shares(sizes / len(codes))).prices)[0]
        yield "spectral", kmeans.fit(embedding(False)).labels_
