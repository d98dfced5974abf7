"""Fits on rows that do not fit in memory: first on a random sample, then from its result on all rows in chunks."""

from __future__ import annotations

import logging
from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fairclust.base import FairClusterer
from fairclust.chunks.checkpoint import Checkpoint
from fairclust.chunks.labels import check_space, computed
from fairclust.chunks.points import ChunkedPoints
from fairclust.chunks.survey import Survey, survey
from fairclust.chunks.table import ChunkTable, comes_in_chunks, open_chunks
from fairclust.frame import Frame
from fairclust.kernels.points import DTYPES, TiledPoints
from fairclust.solvers.alternation import Alternation, Prototypes, Run, alternate

# All starts run on the first _FIRST_ROWS rows of the sample. The best one continues on _MORE_ROWS times as many rows,
# and so on up to the whole sample. Steps on few rows are cheap, and after them few steps on many rows are needed.
_FIRST_ROWS, _MORE_ROWS = 1 << 18, 4
_LOG = logging.getLogger("fairclust.chunks")


class InChunks(FairClusterer):
    """Base of the methods whose `fit` also takes rows in chunks.

    After a fit on rows in chunks, `n_passes_` says how many times all rows were read.
    """

    max_iter: int
    random_state: Any
    labels_: Any
    verbose: int

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> InChunks:
        """Cluster the rows of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path, Dask collection or ChunkTable
            Finite numbers. Files, Dask collections, and arrays mapped from a file whose rows and distances take more
            than 2 GiB are read in chunks, see `fairclust.open_chunks`.
        y : ignored
        sensitive_features : array-like of shape (n_samples,), or str
            The group of every row. For Parquet files and Dask data frames it is the name of the column with the
            groups. It is not used with a ChunkTable, which has the groups.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A parameter, `X` or the groups are malformed, or there are more clusters than rows.
        """
        if comes_in_chunks(X, self.n_clusters):
            self._fit_rows(X, sensitive_features)
        else:
            super().fit(X, sensitive_features=sensitive_features)
        return self

    def _fit_rows(self, X: Any, sensitive_features: Any) -> None:
        self._validate_params()
        if isinstance(X, ChunkTable):
            self._fit_table(X)
        else:
            with open_chunks(X, sensitive_features) as table:
                self._fit_table(table)

    def _fit_table(self, table: ChunkTable) -> None:
        check_space(table, self.n_clusters)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        known = survey(table.chunks, table.engine, sample_rows=table.sample_rows, seed=seed)
        _LOG.info(
            "%s rows, %d groups, %s rows sampled", f"{known.n_rows:,}", len(known.names), f"{len(known.X):,}"
        )
        self.groups_, self.n_features_in_ = known.names, known.X.shape[1]
        self._check_sizes(known.n_rows)
        # Chunks are not centred and scaled, because every pass would have to do it again.
        self._frame = Frame.plain(known.X.shape[1])._replace(is_far=known.needs_double(self.n_clusters))
        dtype = DTYPES[self._precision]
        if self._frame.is_far:
            known = known._replace(X=known.X.astype(dtype))
        if table.features:
            self.feature_names_in_ = np.array(table.features, dtype=object)
        points = ChunkedPoints(table.chunks, table.engine, known, self.n_clusters, dtype=dtype)
        rows = [known.sizes.tolist(), known.low.tolist(), known.high.tolist(), known.total]
        about = {"method": type(self).__name__, **self.get_params(), "rows": rows}
        checkpoint = Checkpoint(table.checkpoint, about)
        self._fit_chunks(points, known, checkpoint)
        self._restore(known.X)
        self.labels_ = computed(self.labels_, points, table)
        self.n_passes_ = points.n_passes
        checkpoint.remove()

    @abstractmethod
    def _fit_chunks(self, points: ChunkedPoints, known: Survey, checkpoint: Checkpoint) -> None:
        """Set the attributes of the fit as `_fit` does, but `labels_` as `LazyLabels`, which are computed later."""

    def _alternate(
        self,
        kind: Alternation[Any],
        points: ChunkedPoints,
        prototypes: Prototypes,
        checkpoint: Checkpoint,
        begun: Run | None,
    ) -> Run:
        """`alternate` on all rows, with a checkpoint after every step; it continues `begun`, an interrupted run."""

        def keep(run: Run) -> None:
            checkpoint.save(run)
            record = run.history[-1]
            _LOG.info(
                "step %d: objective %.9g, %.0f s", record["step"], record["objective"], record["seconds"]
            )

        steps, verbose = self.max_iter, self.verbose
        return alternate(kind, points, prototypes, max_iter=steps, verbose=verbose, begun=begun, keep=keep)


def stages(known: Survey) -> list[int]:
    """The numbers of rows of the sample to fit on, one after the other. The last one is all of them."""
    n_rows, whole = _FIRST_ROWS, len(known.codes)
    if len(np.unique(known.codes[:n_rows])) < len(known.names):
        return [whole]
    found = []
    while 2 * n_rows <= whole:
        found.append(n_rows)
        n_rows *= _MORE_ROWS
    return [*found, whole]


def first_rows(points: ChunkedPoints, known: Survey, n_rows: int) -> TiledPoints:
    """The first rows of the sample, packed."""
    if n_rows == len(known.codes):
        return points.sample
    X, codes, sample = known.X[:n_rows], known.codes[:n_rows], points.sample
    shape = points.n_groups, points.n_clusters
    return TiledPoints.pack(X, codes, *shape, shift=sample.shift, dtype=sample.a.dtype)
