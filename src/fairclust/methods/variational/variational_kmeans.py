"""Variational fair clustering (Ziko et al., AAAI 2021) for k-means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import entr
from sklearn.base import clone
from sklearn.utils import check_random_state

from fairclust.base import NON_NEGATIVE, NotSupported, initial_centers
from fairclust.chunks.rows import ChunkedRows
from fairclust.frame import Frame
from fairclust.group_encoding import resolve_target
from fairclust.kernels.points import MeasuredPoints
from fairclust.messages import count
from fairclust.methods._prototypes import PrototypeClusterer
from fairclust.methods.variational.penalty import bound_step, newton_step, penalty_slope
from fairclust.metrics.counts import contingency
from fairclust.solvers.alternation import Alternation, Prototypes, Step, alternate, mean_centers, overshot

# Default `tol` of the published program, and ours. Ours is tighter, which is cheap because the energy never rises.
_REFERENCE_TOL, _TOL = 1e-4, 1e-5
# L of the paper's bound. As in the published program, and unlike equations 9 and 13, both the clustering and the
# fairness potentials are divided by it.
_LIPSCHITZ = 2.0
_RESTARTS = 3


@dataclass(eq=False, repr=False, kw_only=True)
class VariationalFairKMeans(PrototypeClusterer):
    """K-means with the Kullback-Leibler fairness penalty.

    Minimises ``sum_pk s_pk ||x_p - c_k||^2 + lam * sum_k KL(U || P_k)`` (equation 2), where P_k are the group
    shares of cluster k and U the target shares. With several sensitive columns their penalties are added.

    Parameters
    ----------
    lam : float, optional
        Weight of fairness. A number is absolute, as in the paper: a suitable one grows with the number of rows and the
        square of the unit of the data. 0 is plain Lloyd. The default is the cost of all points in one cluster.
        Multiples of it, see `lam_`, from 0.01 to 10 span the trade-off.
    match_reference : bool, default=False
        Whether to compute each assignment by the paper's bound optimisation, step by step as in the authors' program.
        That needs ``precision="double"``: in single precision, rounding errors end its inner steps too early. All
        points end in one cluster if all (squared) distances of a row are above 745. The default uses Newton's method
        to compute the group prices to which that iteration converges.
    target : None, mapping or array-like of shape (n_groups,), default=None
        Target shares U. None takes the shares of the data. For several columns, a mapping of column to shares.
    max_iter : int, default=100
        Largest number of outer steps.
    tol : float, optional
        From the second step on, the fit stops when the energy changes by at most the fraction `tol` of the energy
        minus its least possible fairness term ``lam * K * H(U)``; 1e-5 by default. With `match_reference` it is a
        fraction of the whole energy, from the third step on; 1e-4 by default, as in the published program.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres of the last assignment, which `predict` uses too. They are near the means of the clusters, and
        equal to them if the last steps changed no label.
    history_ : list of dict
        The energies are those of the labels, or with `match_reference` those of the soft
        assignments. Their fairness term is ``-sum_jk U_j log P_jk``, which is the penalty plus the constant
        ``K * H(U)``. `inner_iter` counts passes over the points. A restart begins a new history.
    scale_, offset_ : float, ndarray of shape (n_groups, n_clusters)
        A row x goes to the cluster ``argmin_k (scale_ * dist(x, c_k) + offset_[group, k])``. Without
        `match_reference`, `scale_` is 1 and `offset_` holds the prices.
    target_ : ndarray of shape (n_groups,), or dict of column to ndarray of shape (n_values,)
    n_inner_iter_ : int
    n_restarts_ : int
        Number of restarts from new k-means++ centres, at most three. There is a restart if the first step (with
        `match_reference`: any step) empties a cluster. After the last restart, the fit continues with fewer clusters
        (with `match_reference`: it stops).
    converged_ : bool
    lam_ : float
        The weight that was used, absolute.

    References
    ----------
    Ziko, Yuan, Granger, Ben Ayed: Variational Fair Clustering, AAAI 2021, Algorithm 1.

    Examples
    --------
    >>> from fairclust import VariationalFairKMeans
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = VariationalFairKMeans(2, lam=10.0, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """

    takes_columns = takes_chunks = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "lam": [None, *NON_NEGATIVE],
        "tol": [None, *NON_NEGATIVE],
    }

    lam: float | None = None
    match_reference: bool = False
    target: Any = None
    init: Any = "k-means++"
    max_iter: int = 100
    tol: float | None = None
    precision: str = "single"
    verbose: int = 0

    def _framing(self, X: np.ndarray) -> Frame:
        frame = super()._framing(X)
        # The inner loop of the published program starts from a softmax of the distances at temperature 1. This depends
        # on the unit of the data, so they are not scaled.
        return frame._replace(unit=1.0) if self.match_reference else frame

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        self._set_target(codes)
        frame, power, rng = self._frame, self._power, check_random_state(self.random_state)
        lam = frame.whole_cost(len(X), power) if self.lam is None else self.lam / frame.unit**power
        start = Prototypes(initial_centers(X, self.n_clusters, self._framed_init(), rng))
        self._fit_from(self._points(X, codes), start, codes, lam, rng=rng)

    def _fit_from(
        self,
        points: Any,
        prototypes: Prototypes,
        codes: np.ndarray,
        lam: float,
        *,
        rng: np.random.RandomState | None = None,
        prices: np.ndarray | None = None,
    ) -> None:
        """Alternate assignments and centres, with new seeds if a cluster is empty. `lam` is that of the frame.

        A fit that starts from the result of a fit on a sample has prices, and no `rng`, because that fit has had its
        restarts.
        """
        self.lam_ = lam
        shares = [self.target_] if self._sensitive is None else self.target_.values()
        self._targets = list(zip(self._members(), shares, strict=True))
        self._restarts_left = _RESTARTS if rng is not None else 0
        self.history_: list[dict[str, float]] = []
        self.n_restarts_ = self.n_inner_iter_ = self.n_iter_ = 0
        while True:
            steps = self.max_iter - self.n_iter_
            # From k-means++ picks, the centres will move far.
            hurried = rng is not None and steps > 1 and isinstance(self.init, str)
            step = partial(newton_step, lam=lam, targets=self._targets, prices=prices, hurried=hurried)
            alternation = Alternation(step, self._update, self._judge)
            if self.match_reference:
                of_paper = partial(bound_step, lam=lam, target=self.target_, lipschitz=_LIPSCHITZ)
                alternation = Alternation(of_paper, self._update, self._judge_as_reference)
            run = alternate(
                alternation, points, prototypes, max_iter=steps, verbose=self.verbose, unit=self._cost_unit
            )
            self.history_ = [{**h, "step": h["step"] + self.n_iter_} for h in run.history]
            self.n_inner_iter_ += sum(int(record["inner_iter"]) for record in run.history)
            self.n_iter_ += run.n_steps
            if run.verdict != "emptied" or not self._restarts_left or rng is None:
                break
            self.n_restarts_ += 1
            self._restarts_left -= 1
            if self.n_iter_ == self.max_iter:
                break
            prototypes = Prototypes(initial_centers(points.X, self.n_clusters, "k-means++", rng))
            prices = None
        self.converged_ = run.verdict == "at rest"
        self.labels_ = run.last.labels
        self._keep(points, run.prototypes, run.last.offset, run.last.scale)
        if self._sensitive is not None:
            counts = contingency(self.labels_, codes, self.n_clusters, len(self.groups_))
            self._column_prices = [
                lam * penalty_slope(members @ counts, shares) for members, shares in self._targets
            ]
        if run.last.n_empty or not self.converged_:
            self._complain_of_moving(run.last.n_empty)

    def _set_target(self, codes: np.ndarray) -> None:
        """Set the target shares of the groups, or for several columns those of the values of each column."""
        if self._sensitive is None:
            self.target_: Any = resolve_target(self.target, self.groups_, codes)
            return
        if self.match_reference:
            raise NotSupported(
                f"{type(self).__name__} with match_reference takes one sensitive column: pass one, or "
                "leave match_reference out"
            )
        sensitive, targets = self._sensitive, {} if self.target is None else self.target
        names = [column.name for column in sensitive.columns]
        if not isinstance(targets, Mapping) or set(map(str, targets)) - set(names):
            raise ValueError(
                f"target must be a mapping of sensitive column to shares, with columns out of {names}"
            )
        by_name = {str(name): shares for name, shares in targets.items()}
        self.target_ = {
            column.name: resolve_target(by_name.get(column.name), column.values, sensitive.cells[codes, i])
            for i, column in enumerate(sensitive.columns)
        }

    def _fit_chunks(self, rows: ChunkedRows) -> None:
        known = rows.known
        self._set_target(known.codes)
        if self.target is None:
            self.target_ = known.sizes / known.n_rows
        prototypes, prices, lam = self._start_on_samples(rows)
        self._fit_from(rows.points, prototypes, known.codes, lam, prices=prices)

    def _start_on_samples(self, rows: ChunkedRows) -> tuple[Prototypes, np.ndarray, float]:
        """Centres and prices from fits on samples, and the weight for all rows; the samples decide the default one."""
        known = rows.known
        model = clone(self).set_params(target=self.target_, precision=self._precision)
        lam = None if self.lam is None else self.lam / known.n_rows
        for n_rows in rows.samples:
            if lam is not None:
                # A weight is absolute and grows with the number of rows, so the sample gets its share of the weight.
                model.set_params(lam=lam * n_rows)
            model.fit(known.X[:n_rows], sensitive_features=known.codes[:n_rows])
            model.set_params(init=model.cluster_centers_)
            lam = model.lam_ / n_rows
        return Prototypes(model.cluster_centers_), model.offset_, model.lam_ * known.n_rows / n_rows

    def _update(self, points: MeasuredPoints, labels: Any, old: Prototypes) -> Prototypes:
        """The means of the clusters, or centres beyond them if the solver is not the paper's or Lloyd's."""
        means = mean_centers(points, labels, old)
        return means if self.match_reference or self.lam_ == 0 else overshot(means, old)

    def _complain_of_moving(self, n_empty: int) -> None:
        state = "at rest" if self.converged_ else "still moving"
        advice = "raise max_iter or tol" if not self.converged_ else "take fewer clusters or a smaller lam"
        if n_vanished := self.history_[-1].get("n_vanished"):
            state = f"undefined, because exp(-distance) is zero for {n_vanished} rows at all centres"
            advice = "scale the rows to unit length, or leave match_reference out"
        self._complain(
            f"stopped after {count(self.n_iter_, 'outer step')} with {self.n_clusters - n_empty} of "
            f"{self.n_clusters} clusters non-empty and the energy {state} ({count(self.n_restarts_, 'restart')}): "
            f"{advice}"
        )

    def _judge_as_reference(self, step: int, before: Step | None, now: Step) -> str:
        tol = _REFERENCE_TOL if self.tol is None else self.tol
        if now.n_empty:
            return "emptied"
        change = np.inf if before is None else abs(now.objective - before.objective)
        return "at rest" if step > 2 and before and change <= tol * abs(before.objective) else ""

    def _judge(self, step: int, before: Step | None, now: Step) -> str:
        if before is None:
            return "emptied" if now.n_empty and self._restarts_left else ""
        # This constant is a part of the energy that grows with lam. Relative to it every change would be small.
        least = float(sum(entr(shares).sum() for _, shares in self._targets))
        least_penalty = self.lam_ * self.n_clusters * least
        tol = _TOL if self.tol is None else self.tol
        change = abs(now.objective - before.objective)
        return "at rest" if change <= tol * abs(now.objective - least_penalty) else ""
