"""Variational fair clustering of rows that do not fit in memory."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from fairclust.chunks.checkpoint import Checkpoint
from fairclust.chunks.points import ChunkedPoints
from fairclust.chunks.survey import Survey
from fairclust.group_encoding import resolve_target
from fairclust.methods._in_chunks import InChunks, stages
from fairclust.methods._levels import LEVELS
from fairclust.methods._variational import VariationalClusterer
from fairclust.solvers.alternation import Prototypes, mean_centers, overshot
from fairclust.solvers.points import MeasuredPoints


class VariationalInChunks(InChunks, VariationalClusterer):
    """`VariationalClusterer` for k-means, also for rows in chunks."""

    def _update(self, points: MeasuredPoints, labels: np.ndarray, old: Prototypes) -> Prototypes:
        """The means of the clusters, or centres beyond them if the solver is not the paper's or Lloyd's."""
        means = mean_centers(points, labels, old)
        return means if self.match_reference or self._lam == 0 else overshot(means, old)

    def _fit_chunks(self, points: ChunkedPoints, known: Survey, checkpoint: Checkpoint) -> None:
        self.target_ = self._target = known.sizes / known.n_rows
        if self.target is not None:
            self.target_ = self._target = resolve_target(self.target, self.groups_, known.codes)
        begun = checkpoint.load(points)
        prices: np.ndarray | None = None
        if begun is None or isinstance(self.lam, str) or self.relative_weights:
            prototypes, prices, self._lam = self._start_on_sample(known)
        else:
            self._lam = float(self.lam)
        if begun is not None:
            prototypes, prices = begun.prototypes, None
        # No restarts if a cluster is empty on all rows: the fit on the sample has had its restarts.
        self.n_restarts_ = self.max_restarts
        run = self._alternate(self._alternation(prices), points, prototypes, checkpoint, begun)
        self.n_restarts_ = 0
        self.history_, self.n_iter_, self.n_energy_rises_ = run.history, run.n_steps, run.n_rises
        self.n_inner_iter_ = sum(int(record["inner_iter"]) for record in run.history)
        self._finish(points, run)

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
