"""Fits of rows that do not fit in memory: first on a sample, then, from there, on all rows in chunks."""

from __future__ import annotations

import logging
from abc import abstractmethod
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from fairclust.base import FairClusterer, NotSupported, resolve_target
from fairclust.chunks.checkpoint import Checkpoint
from fairclust.chunks.labels import check_outputs, computed
from fairclust.chunks.points import ChunkedPoints
from fairclust.chunks.survey import Survey, survey
from fairclust.chunks.table import ChunkTable, comes_in_chunks, open_chunks
from fairclust.kernels.points import DTYPES, TiledPoints
from fairclust.methods._price import PriceClusterer
from fairclust.methods._variational import VariationalClusterer
from fairclust.solvers.alternation import Alternation, Prototypes, Run, alternate, judge_fall, mean_centers
from fairclust.solvers.criteria import exact_shares
from fairclust.solvers.fair_assignment import solve
from fairclust.solvers.steps import plain_step, price_step

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
        if not comes_in_chunks(X, self.n_clusters):
            self._fit(*self._check_input(X, sensitive_features))
            return self
        self._validate_params()
        if isinstance(X, ChunkTable):
            self._fit_table(X)
        else:
            with open_chunks(X, sensitive_features) as table:
                self._fit_table(table)
        return self

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
        self._fit_chunks(points, known, checkpoint)
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

        return alternate(kind, points, prototypes, max_iter=self.max_iter, begun=begun, keep=keep)


def stages(known: Survey) -> list[int]:
    """Of how many rows of the sample the starts are: a part of it, and the whole."""
    part, whole = _FIRST_ROWS, len(known.codes)
    enough = 2 * part <= whole and len(np.unique(known.codes[:part])) == len(known.names)
    return [part, whole] if enough else [whole]


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
        kind = Alternation(step, mean_centers, partial(judge_fall, tol=self.tol))
        run = alternate(kind, sample, run.prototypes, max_iter=self.max_iter)
        return run.prototypes, run.last.state


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


class PlainInChunks(InChunks):
    """Lloyd's algorithm."""

    tol: float
    cluster_centers_: np.ndarray
    inertia_: float
    _model: Any

    def _fit_chunks(self, points: ChunkedPoints, known: Survey, checkpoint: Checkpoint) -> None:
        begun = checkpoint.load(points)
        kind = Alternation(plain_step, mean_centers, partial(judge_fall, tol=self.tol))
        n_rows, *more = stages(known)
        # Beside a start, this leaves what `predict` asks. It gets the centres of all rows in the end.
        self._fit(known.X[:n_rows], known.codes[:n_rows])
        prototypes = Prototypes(self.cluster_centers_.astype(np.float64))
        if more and begun is None:
            prototypes = alternate(kind, points.sample, prototypes, max_iter=self.max_iter).prototypes
        run = self._alternate(kind, points, prototypes, checkpoint, begun)
        self.labels_, self.inertia_ = run.last.labels, run.last.clustering
        self.cluster_centers_ = run.prototypes.centers.astype(known.X.dtype)
        self._model.cluster_centers_ = self.cluster_centers_
        self.n_iter_, self.history_ = run.n_steps, run.history
