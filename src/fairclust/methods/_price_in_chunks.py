"""Group prices for rows that do not fit in memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fairclust.base import NotSupported
from fairclust.chunks.checkpoint import Checkpoint
from fairclust.chunks.points import ChunkedPoints
from fairclust.chunks.survey import Survey
from fairclust.kernels.points import TiledPoints
from fairclust.methods._in_chunks import InChunks, stages
from fairclust.methods._price import PriceClusterer
from fairclust.solvers.alternation import Alternation, Prototypes, alternate, judge_fall, mean_centers
from fairclust.solvers.criteria import exact_shares
from fairclust.solvers.fair_assignment import solve
from fairclust.solvers.steps import price_step

# Steps on the sample are cheap, and spare steps on all rows.
_MORE_EXACT = 0.1


class PricesInChunks(InChunks, PriceClusterer):
    """`PriceClusterer` for k-means."""

    def _fit_chunks(self, points: ChunkedPoints, known: Survey, checkpoint: Checkpoint) -> None:
        criterion = self._criterion(known.sizes)
        begun = checkpoint.load(points)
        if begun is None:
            prototypes, multipliers = self._start_on_sample(points.sample, known)
        else:
            prototypes, multipliers = begun.prototypes, None
        step = partial(price_step, criterion=criterion, multipliers=multipliers)
        kind = Alternation(step, mean_centers, partial(judge_fall, tol=self.tol))
        run = self._alternate(kind, points, prototypes, checkpoint, begun)
        points.measure(run.prototypes.centers)
        found = solve(points, criterion, run.last.state)
        self._finish(points, criterion, run, found)
        self.n_rounded_ = len(self.labels_.moved)

    def _start_on_sample(self, sample: TiledPoints, known: Survey) -> tuple[Prototypes, np.ndarray | None]:
        """Centres and multipliers that suit a sample, within the bounds of its own shares."""
        rng = check_random_state(self.random_state)
        n_rows, *more = stages(known)
        first = self._points(known.X[:n_rows], known.codes[:n_rows]) if more else sample
        try:
            criterion = self._criterion(sample.group_sizes)
            run, found = self._best(first, self._criterion(first.group_sizes), rng)
        except NotSupported:
            # Not every sample can keep the bounds that all rows can. Its own shares everywhere, it can.
            sizes = first.group_sizes
            run, _ = self._best(first, exact_shares(sizes / sizes.sum()), rng)
            return run.prototypes, None
        if not more:
            return run.prototypes, found.multipliers
        step = partial(price_step, criterion=criterion, multipliers=found.multipliers)
        judge = partial(judge_fall, tol=_MORE_EXACT * self.tol)
        kind: Alternation[Any] = Alternation(step, mean_centers, judge)
        run = alternate(kind, sample, run.prototypes, max_iter=self.max_iter)
        return run.prototypes, run.last.state
