"""Variational fair clustering of rows that do not fit in memory."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from fairclust.base import resolve_target
from fairclust.chunks.checkpoint import Checkpoint
from fairclust.chunks.points import ChunkedPoints
from fairclust.chunks.survey import Survey
from fairclust.methods._in_chunks import InChunks, stages
from fairclust.methods._variational import VariationalClusterer
from fairclust.solvers.alternation import Prototypes


class VariationalInChunks(InChunks, VariationalClusterer):
    """`VariationalClusterer` for k-means."""

    def _fit_chunks(self, points: ChunkedPoints, known: Survey, checkpoint: Checkpoint) -> None:
        self.target_ = known.sizes / known.n_rows
        if self.target is not None:
            self.target_ = resolve_target(self.target, self.groups_, known.codes)
        begun = checkpoint.load(points)
        if begun is None:
            prototypes, prices = self._start_on_sample(known)
        else:
            prototypes, prices = begun.prototypes, None
        # An empty cluster of all rows stays: the sample has had its restarts.
        self.n_restarts_ = self.max_restarts
        run = self._alternate(self._alternation(prices), points, prototypes, checkpoint, begun)
        self.n_restarts_ = 0
        self.history_, self.n_iter_, self.n_energy_rises_ = run.history, run.n_steps, run.n_rises
        self.n_inner_iter_ = sum(int(record["inner_iter"]) for record in run.history)
        self._finish(points, run)

    def _start_on_sample(self, known: Survey) -> tuple[Prototypes, np.ndarray]:
        model = clone(self).set_params(target=self.target_)
        for n_rows in stages(known):
            # The penalty is absolute: a sample has its share of it.
            model.set_params(lam=self.lam * n_rows / known.n_rows)
            model.fit(known.X[:n_rows], sensitive_features=known.codes[:n_rows])
            model.set_params(init=model.cluster_centers_)
        return Prototypes(model.cluster_centers_), model.offset_
