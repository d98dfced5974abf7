"""Lloyd's algorithm for rows that do not fit in memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fairclust.chunks.checkpoint import Checkpoint
from fairclust.chunks.points import ChunkedPoints
from fairclust.chunks.survey import Survey
from fairclust.methods._centers import CenterClusterer
from fairclust.methods._in_chunks import InChunks, first_rows, stages
from fairclust.solvers.alternation import (
    Alternation,
    Prototypes,
    alternate,
    judge_fall,
    mean_centers,
    plain_step,
)


class PlainInChunks(InChunks, CenterClusterer):
    """Lloyd's algorithm, also for rows in chunks."""

    tol: float
    inertia_: float
    _model: Any

    def _fit_chunks(self, points: ChunkedPoints, known: Survey, checkpoint: Checkpoint) -> None:
        begun = checkpoint.load(points)
        kind: Alternation[Any] = Alternation(plain_step, mean_centers, partial(judge_fall, tol=self.tol))
        n_rows, *more = stages(known)
        self._frame = self._frame._replace(origin=points.shift)
        # This computes the first centres, and `_model`, which `predict` uses. In the end the model gets the centres
        # of all rows.
        self._fit(self._frame.into(known.X[:n_rows]), known.codes[:n_rows])
        prototypes = Prototypes(self._frame.out_of(self.cluster_centers_.astype(np.float64)))
        for n_rows in more if begun is None else ():
            sample = first_rows(points, known, n_rows)
            prototypes = alternate(kind, sample, prototypes, max_iter=self.max_iter).prototypes
        run = self._alternate(kind, points, prototypes, checkpoint, begun)
        self.labels_, self.inertia_ = run.last.labels, run.last.clustering
        self.cluster_centers_ = self._frame.into(run.prototypes.centers)
        self._model.cluster_centers_ = self.cluster_centers_.astype(known.X.dtype)
        self.n_iter_, self.history_ = run.n_steps, run.history
