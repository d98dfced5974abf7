"""The rows of a fit. Those in chunks are fitted on a random sample that grows, and from its result on all rows."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from fairclust.chunks.checkpoint import Checkpoint
from fairclust.chunks.labels import check_space, computed
from fairclust.chunks.points import ChunkedPoints
from fairclust.chunks.survey import Survey, survey
from fairclust.chunks.table import ChunkTable
from fairclust.solvers.alternation import Alternation, Prototypes, Run, alternate

# All starts run on the first _FIRST_ROWS rows of the sample. The best one continues on _MORE_ROWS times as many rows,
# and so on up to the whole sample. Steps on few rows are cheap, and after them few steps on many rows are needed.
_FIRST_ROWS, _MORE_ROWS = 1 << 18, 4
_LOG = logging.getLogger("fairclust.chunks")


@dataclass
class Rows:
    """The points of a fit."""

    points: Any
    begun: Run | None = None  # a run that was stopped, which the fit continues

    def alternate(
        self, kind: Alternation[Any], prototypes: Prototypes, *, max_iter: int, verbose: int
    ) -> Run:
        """See `fairclust.solvers.alternation.alternate`."""
        return alternate(
            kind,
            self.points,
            prototypes,
            max_iter=max_iter,
            verbose=verbose,
            begun=self.begun,
            keep=self.keep,
        )

    def keep(self, run: Run) -> None:
        """Store the run after each of its steps; rows in memory do not."""


class ChunkedRows(Rows):
    """Rows in chunks, after the survey. A fit starts on `samples` of them, given by their numbers of rows.

    `dtype` is that of the distances, unless the rows need double precision (`is_far`). `fit` holds the parameters of
    the fit. If it was stopped and has a checkpoint, `begun` is the run read from this.
    """

    points: ChunkedPoints

    def __init__(
        self,
        table: ChunkTable,
        n_clusters: int,
        seed: int,
        *,
        dtype: DTypeLike,
        takes_lists: bool,
        fit: Mapping[str, Any],
    ) -> None:
        check_space(table, n_clusters)
        known = survey(table.chunks, table.engine, sample_rows=table.sample_rows, seed=seed)
        n_sampled = len(known.X)
        _LOG.info(
            "%s rows, %d groups, %s rows sampled", f"{known.n_rows:,}", len(known.names), f"{n_sampled:,}"
        )
        self.is_far = known.needs_double(n_clusters)
        if self.is_far:
            dtype = np.float64
            known = known._replace(X=known.X.astype(dtype))
        rows = [known.sizes.tolist(), known.low.tolist(), known.high.tolist(), known.total]
        self.has_groups = table.has_groups
        self._table, self._checkpoint = table, Checkpoint(table.checkpoint, {**fit, "rows": rows})
        self.known, self.samples = known, stages(known)
        self._dtype = np.dtype(dtype)
        self.points = ChunkedPoints(
            table.chunks, table.engine, known, n_clusters, dtype=dtype, takes_lists=takes_lists
        )
        self.begun = self._checkpoint.load(self.points)

    def keep(self, run: Run) -> None:
        """Write the checkpoint, and log the step."""
        self._checkpoint.save(run)
        step, objective, seconds = (run.history[-1][name] for name in ("step", "objective", "seconds"))
        _LOG.info("step %d: objective %.9g, %.0f s", step, objective, seconds)

    def sample(self, n_rows: int) -> Any:
        """The first rows of the sample, packed."""
        known, whole = self.known, self.points.sample
        if n_rows == len(known.codes):
            return whole
        X, codes = known.X[:n_rows], known.codes[:n_rows]
        shape = whole.n_groups, whole.n_clusters
        return type(whole).pack(X, codes, *shape, shift=whole.shift, dtype=self._dtype)

    def labels(self, found: Any) -> Any:
        """The labels of all rows in the form that `open_chunks` was asked for. The fit ends with them."""
        labels = computed(found, self.points, self._table)
        self._checkpoint.remove()
        return labels


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
