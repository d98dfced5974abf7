"""Fits of rows that do not fit in memory: first on a sample, then, from there, on all rows in chunks."""

from __future__ import annotations

import logging
from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fairclust.base import FairClusterer
from fairclust.chunks.checkpoint import Checkpoint
from fairclust.chunks.labels import check_outputs, computed
from fairclust.chunks.points import ChunkedPoints
from fairclust.chunks.survey import Survey, survey
from fairclust.chunks.table import ChunkTable, comes_in_chunks, open_chunks
from fairclust.frame import Frame
from fairclust.kernels.points import DTYPES
from fairclust.solvers.alternation import Alternation, Prototypes, Run, alternate

# All starts run on so many rows of the sample; the best goes on to the whole of it.
_FIRST_ROWS = 1 << 18
_LOG = logging.getLogger("fairclust.chunks")


class InChunks(FairClusterer):
    """Base of the methods whose `fit` takes rows in chunks as well.

    Attributes
    ----------
    n_passes_ : int
        After a fit of rows in chunks: how often all of them were read.
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
            Finite numbers. Files, Dask collections, and mapped arrays that are too large for the memory are read in
            chunks, see `fairclust.open_chunks`.
        y : ignored
        sensitive_features : array-like of shape (n_samples,), or str
            The group of every row; for Parquet files and Dask data frames the name of its column. Not used with a
            ChunkTable, which knows it.

        Returns
        -------
        self
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
        check_outputs(table, self.n_clusters)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        known = survey(table.chunks, table.engine, sample_rows=table.sample_rows, seed=seed)
        if self.n_clusters > known.n_rows:
            raise ValueError(f"n_clusters={self.n_clusters} is more than n_samples={known.n_rows}")
        _LOG.info(
            "%s rows, %d groups, %s rows sampled", f"{known.n_rows:,}", len(known.names), f"{len(known.X):,}"
        )
        self.groups_, self.n_features_in_ = known.names, known.X.shape[1]
        if table.features:
            self.feature_names_in_ = np.array(table.features, dtype=object)
        dtype = DTYPES[getattr(self, "precision", "single")]
        points = ChunkedPoints(table.chunks, table.engine, known, self.n_clusters, dtype=dtype)
        about = {"method": type(self).__name__, **self.get_params(), "groups": known.sizes.tolist()}
        checkpoint = Checkpoint(table.checkpoint, about)
        # Chunks stay in their unit: every pass would have to change it again.
        self._frame = Frame.plain(known.X.shape[1])
        self._fit_chunks(points, known, checkpoint)
        self._restore(known.X)
        self.labels_ = computed(self.labels_, points, table)
        self.n_passes_ = points.n_passes
        checkpoint.remove()

    @abstractmethod
    def _fit_chunks(self, points: ChunkedPoints, known: Survey, checkpoint: Checkpoint) -> None:
        """As `_fit`, but that the `labels_` are still to be computed."""

    def _alternate(
        self,
        kind: Alternation[Any],
        points: ChunkedPoints,
        prototypes: Prototypes,
        checkpoint: Checkpoint,
        begun: Run | None,
    ) -> Run:
        """`alternate` on all rows, from where a stopped fit was."""

        def keep(run: Run) -> None:
            checkpoint.save(run)
            record = run.history[-1]
            _LOG.info(
                "step %d: objective %.9g, %.0f s", record["step"], record["objective"], record["seconds"]
            )

        steps, verbose = self.max_iter, self.verbose
        return alternate(kind, points, prototypes, max_iter=steps, verbose=verbose, begun=begun, keep=keep)


def stages(known: Survey) -> list[int]:
    """Of how many rows of the sample the starts are: a part of it, and the whole."""
    part, whole = _FIRST_ROWS, len(known.codes)
    enough = 2 * part <= whole and len(np.unique(known.codes[:part])) == len(known.names)
    return [part, whole] if enough else [whole]
