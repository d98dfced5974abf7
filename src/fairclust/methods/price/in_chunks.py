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
from fairclust.chunks.table import comes_in_chunks
from fairclust.group_encoding import SensitiveColumn, is_measured
from fairclust.methods._in_chunks import InChunks, first_rows, stages
from fairclust.methods.price.criteria import exact_shares
from fairclust.methods.price.estimator import PriceClusterer
from fairclust.methods.price.fair_assignment import solve
from fairclust.methods.price.steps import price_step
from fairclust.solvers.alternation import Alternation, Prototypes, alternate, judge_fall, mean_centers
from fairclust.solvers.sensitive import Sensitive

# Factor for `tol` on the sample. More steps there are cheap, and save steps on all rows.
_MORE_EXACT = 0.1


class PricesInChunks(InChunks, PriceClusterer):
    """`PriceClusterer` for k-means, also for rows in chunks."""

    def fit(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> PricesInChunks:
        """Cluster the rows of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path, Dask collection or ChunkTable
            Finite numbers. Files, Dask collections, and arrays mapped from a file whose rows and distances take more
            than 2 GiB are read in chunks, see `fairclust.open_chunks`.
        y : ignored
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), data frame, mapping, or str
            As in `fairclust.fair_assignment`; None if only sizes are bounded. For Parquet files and Dask data frames
            it is the name of the column with the groups. It is not used with a ChunkTable, which has the groups.
        sample_weight : array-like of shape (n_samples,), optional
            Positive weights of dense rows in memory, as in `fairclust.fair_assignment`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A parameter, `X`, the groups or the weights are malformed, or there are more clusters than rows.
        NotSupported
            A ValueError: no assignment is within the bounds or the budget, or weights or a budget are given for rows
            that they are not supported for.
        """
        if not comes_in_chunks(X, self.n_clusters):
            PriceClusterer.fit(self, X, sensitive_features=sensitive_features, sample_weight=sample_weight)
            return self
        if sample_weight is not None:
            raise NotSupported(
                "sample_weight is for rows in memory, rows in chunks count one each: leave it out"
            )
        if self.max_cost is not None or self.max_cost_increase is not None:
            raise NotSupported(
                "max_cost and max_cost_increase are for rows in memory: give a tolerance instead"
            )
        if self.bins is not None or self.mean_tolerance is not None:
            raise NotSupported(
                "bins and mean_tolerance are for rows in memory: cut the column into ranges first, and name the column "
                "of ranges"
            )
        self._fit_rows(X, sensitive_features)
        return self

    def _fit_chunks(self, points: ChunkedPoints, known: Survey, checkpoint: Checkpoint) -> None:
        if known.names.dtype.kind in "iuf" and is_measured(_as_rows(known)):
            raise ValueError(
                f"sensitive_features holds {len(known.names)} different numbers, and each would be a group. Cut the "
                "column into a few ranges first. If the numbers are names, convert them to text"
            )
        names = SensitiveColumn("", known.names)
        self._unit, self._sensitive = (
            1.0,
            Sensitive((names,), known.codes, np.arange(len(known.names))[:, None]),
        )
        criterion = self._criterion(known.sizes)
        begun = checkpoint.load(points)
        if begun is None:
            prototypes, multipliers = self._start_on_sample(points, known)
        else:
            prototypes, multipliers = begun.prototypes, None
        step = partial(price_step, criterion=criterion, multipliers=multipliers)
        kind = Alternation(step, mean_centers, partial(judge_fall, tol=self.tol))
        run = self._alternate(kind, points, prototypes, checkpoint, begun)
        points.measure(run.prototypes.centers)
        found = solve(points, criterion, run.last.state)
        self._finish(points, criterion, run, found)

    def _start_on_sample(self, points: ChunkedPoints, known: Survey) -> tuple[Prototypes, np.ndarray | None]:
        """Centres and multipliers from a fit on the sample, with bounds for its group sizes.

        If rows of the sample cannot keep the bounds, the multipliers are None.
        """
        rng = check_random_state(self.random_state)
        n_rows, *more = stages(known)
        sample = first_rows(points, known, n_rows)
        try:
            run, found = self._best(sample, self._criterion(sample.group_sizes), self._starts(sample, rng))
        except NotSupported:
            # A sample may be unable to keep bounds that all rows can keep. It can have its own shares in every cluster.
            sizes = sample.group_sizes
            run, _ = self._best(sample, exact_shares(sizes / sizes.sum()), self._starts(sample, rng))
            return run.prototypes, None
        prototypes, multipliers = run.prototypes, found.multipliers
        judge = partial(judge_fall, tol=_MORE_EXACT * self.tol)
        for n_rows in more:
            sample = first_rows(points, known, n_rows)
            try:
                criterion = self._criterion(sample.group_sizes)
            except NotSupported:
                return prototypes, None
            step = partial(price_step, criterion=criterion, multipliers=multipliers)
            kind: Alternation[Any] = Alternation(step, mean_centers, judge)
            run = alternate(kind, sample, prototypes, max_iter=self.max_iter)
            prototypes, multipliers = run.prototypes, run.last.state
        return prototypes, multipliers


def _as_rows(known: Survey) -> np.ndarray:
    """Values on which `is_measured` decides as on those of all rows, of which it needs the number up to a limit."""
    more = min(known.n_rows, 3 * len(known.names)) - len(known.names)
    return np.append(known.names, np.repeat(known.names[:1], more))
