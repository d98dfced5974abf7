"""Variational fair clustering (Ziko et al., AAAI 2021) for k-means."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from fairclust.chunks.checkpoint import Checkpoint
from fairclust.chunks.points import ChunkedPoints
from fairclust.chunks.survey import Survey
from fairclust.group_encoding import resolve_target
from fairclust.methods._in_chunks import InChunks, stages
from fairclust.methods._levels import LEVELS
from fairclust.methods.variational.estimator import VariationalClusterer
from fairclust.solvers.alternation import Prototypes, mean_centers, overshot
from fairclust.solvers.points import MeasuredPoints


class VariationalFairKMeans(InChunks, VariationalClusterer):
    """K-means with the Kullback-Leibler fairness penalty.

    Minimises ``sum_pk s_pk ||x_p - c_k||^2 + lam * sum_k KL(U || P_k)`` (equation 2), where P_k are the group
    shares of cluster k and U the target shares. With several sensitive columns their penalties are added.

    Parameters
    ----------
    n_clusters : int, default=8
    lam : float or "auto", default="auto"
        Weight of fairness. "auto" searches for the smallest weight that reaches a level of fairness. One of the next
        three parameters sets the level. Without them, the share of every group in every cluster must be at least 0.8
        and at most 1 / 0.8 times its target share. A number is absolute, as in the paper: a suitable one grows with
        the number of rows and the square of the unit of the data. 0 is plain Lloyd.
    max_fairness_error : float, optional
        Level for ``lam="auto"``: ``sum_k KL(U || P_k)`` is at most this.
    min_balance : float, optional
        Level for ``lam="auto"``: for the counts of all groups i, j in every cluster k, ``n_ik >= min_balance * n_jk``.
    max_gap : float, optional
        Level for ``lam="auto"``: `fairclust.metrics.delta` is at most this.
    relative_weights : bool, default=False
        Whether a number for `lam` is a multiple of the cost of all points in one cluster, and so has no unit. Values
        from 0.01 to 10 then span the trade-off.
    match_reference : bool, default=False
        Whether to compute each assignment by the paper's bound optimisation, step by step as in the authors' program.
        The default uses Newton's method to compute the group prices to which that iteration converges, in a tenth of
        the passes over the points. It measures the energy of the hard labels, which never rises. Between two
        assignments, the centres of clusters that still change move half a step beyond their means, which on most data
        takes fewer steps.
    lipschitz : float, default=2.0
        L of the bound, used with `match_reference`. As in the published program, and unlike equations 9 and 13,
        both the clustering and the fairness potentials are divided by it.
    target : None, mapping or array-like of shape (n_groups,), default=None
        Target shares U. None takes the shares of the data. For several columns, a mapping of column to shares.
    init : "k-means++" or array-like of shape (n_clusters, n_features)
    max_iter : int, default=100
        Largest number of outer steps.
    tol : float, optional
        From the second step on, the fit stops when the energy changes by at most the fraction `tol` of the energy
        minus its least possible fairness term ``lam * K * H(U)``; 1e-5 by default. With `match_reference` it is a
        fraction of the whole energy, from the third step on; 1e-4 by default, as in the published program.
    bound_max_iter : int, default=10000
        Largest number of steps of the inner loop of `match_reference`.
    max_restarts : int, default=3
        Largest number of restarts from new k-means++ centres. There is a restart if the first step (with
        `match_reference`: any step) empties a cluster. After the last restart, the fit continues with fewer clusters
        (with `match_reference`: it stops).
    precision : "single" or "double", default="single"
        Arithmetic of the distances and softmax rows. Sums are always double. Single is three times as fast, and the
        inner loop may stop a step earlier or later.
    verbose : int, default=0
        1 prints the objective and the fairness term of every outer step.
    random_state : int, RandomState or None

    Attributes
    ----------
    labels_, cluster_centers_, n_iter_, history_, groups_
        `cluster_centers_` are the centres of the last assignment, which `predict` uses too. They are near the means
        of the clusters, and equal to them if the last steps changed no label.
        The energies in `history_` are those of the labels, or with `match_reference` those of the soft
        assignments. `inner_iter` counts passes over the points. A restart begins a new history; with
        `match_reference` it continues the old one.
    scale_, offset_ : float, ndarray of shape (n_groups, n_clusters)
        A row x goes to the cluster ``argmin_k (scale_ * dist(x, c_k) + offset_[group, k])``. Without
        `match_reference`, `scale_` is 1 and `offset_` holds the prices.
    target_ : ndarray of shape (n_groups,), or dict of column to ndarray of shape (n_values,)
    n_inner_iter_, n_restarts_ : int
    n_energy_rises_ : int
        Number of outer steps after which the energy was higher. This can happen with `match_reference` only, whose
        inner loop starts cold in every outer step and whose centres come from hard labels.
    converged_ : bool
    lam_ : float
        The weight that was used, absolute.
    path_ : WeightPath
        Only with ``lam="auto"``: the weights, fairness measures and costs of all fits of the search, see
        `fairclust.WeightPath`. Each fit started from the result of the last fit that did not reach the level.

    References
    ----------
    Ziko, Yuan, Granger, Ben Ayed: Variational Fair Clustering, AAAI 2021, Algorithm 1.
    """

    def _update(self, points: MeasuredPoints, labels: np.ndarray, old: Prototypes) -> Prototypes:
        """The means of the clusters, or centres beyond them if the solver is not the paper's or Lloyd's."""
        means = mean_centers(points, labels, old)
        return means if self.match_reference or self.lam_ == 0 else overshot(means, old)

    def _fit_chunks(self, points: ChunkedPoints, known: Survey, checkpoint: Checkpoint) -> None:
        self.target_ = self._target = known.sizes / known.n_rows
        if self.target is not None:
            self.target_ = self._target = resolve_target(self.target, self.groups_, known.codes)
        begun = checkpoint.load(points)
        prices: np.ndarray | None = None
        if begun is None or isinstance(self.lam, str) or self.relative_weights:
            prototypes, prices, self.lam_ = self._start_on_sample(known)
        else:
            self.lam_ = float(self.lam)
        if begun is not None:
            prototypes, prices = begun.prototypes, None
        # No restarts if a cluster is empty on all rows: the fit on the sample has had its restarts.
        self.n_restarts_ = self.max_restarts
        run = self._alternate(self._alternation(prices), points, prototypes, checkpoint, begun)
        self.n_restarts_ = 0
        self.history_, self.n_iter_, self.n_energy_rises_ = run.history, run.n_steps, run.n_rises
        self.n_inner_iter_ = sum(int(record["inner_iter"]) for record in run.history)
        self._finish(points, run)
        self._complain_of_moving()

    def _start_on_sample(self, known: Survey) -> tuple[Prototypes, np.ndarray, float]:
        """Centres and prices from a fit on the sample, and the weight for all rows.

        If the weight must be searched for, or is relative, the sample decides it.
        """
        model = clone(self).set_params(target=self.target_, precision=self._precision)
        given = not (isinstance(self.lam, str) or self.relative_weights)
        lam: float | None = float(self.lam) / known.n_rows if given else None
        for n_rows in stages(known):
            if lam is not None:
                # A weight is absolute and grows with the number of rows, so the sample gets its share of the weight.
                model.set_params(lam=lam * n_rows, relative_weights=False, **dict.fromkeys(LEVELS))
            model.fit(known.X[:n_rows], sensitive_features=known.codes[:n_rows])
            model.set_params(init=model.cluster_centers_)
            lam = model.lam_ / n_rows
        if hasattr(model, "path_"):
            self.path_ = model.path_
        return Prototypes(model.cluster_centers_), model.offset_, model.lam_ * known.n_rows / n_rows
