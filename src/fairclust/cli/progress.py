"""Progress of a fit on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import Progress, TimeElapsedColumn

from fairclust.sample_weight import groups_of_rows

if TYPE_CHECKING:
    from fairclust.chunks.engines import Engine
    from fairclust.chunks.sources import Chunk

# The passes over all rows that fits in chunks usually make, by method. docs/scale.md has those of large tables; on five
# generated tables of 1.5 million rows they were 4, 9 to 13, and 4 to 9.
USUAL_PASSES = {"KMeans": 5, "PriceFairKMeans": 12, "VariationalFairKMeans": 6}
# If rows times clusters reach this number, a first fit to a `_SHARE`-th of the rows estimates how long the whole fit
# will take.
_LARGE = 4_000_000
_SHARE = 20
# With fewer rows in a cluster of the sample, the time of a fit depends on the number of clusters more than on the rows,
# so the sample would take long and say little.
_ROWS_PER_CLUSTER = 30


@contextmanager
def progress(
    what: str,
    *,
    expected: float | None = None,
    total: int | None = None,
    passes: Passes | None = None,
) -> Iterator[Callable[[], None]]:
    """Show the progress of a task on standard error, if that is a terminal: a bar with the time that is left.

    `expected` is the time in seconds that the task will take, and `total` the number of its parts. `passes` are those
    of a fit in chunks. Yields a function to be called after each part.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    with _Bar(
        *_Bar.get_default_columns(), TimeElapsedColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        # Without an estimate the bar only moves.
        task = bar.add_task(
            escape(what), total=passes.expected_rows if passes else total or expected, timed=expected
        )
        if passes:
            passes.read = partial(bar.advance, task)
        yield partial(bar.advance, task)


class _Bar(Progress):
    def get_renderables(self) -> Iterable[RenderableType]:
        """The bars; those of tasks whose time was estimated say how much of it has passed."""
        for task in self.tasks:
            if task.fields["timed"]:
                task.completed = min(task.elapsed or 0.0, task.fields["timed"])
        return super().get_renderables()


class Passes:
    """An engine of chunks that reports the rows which another engine has read. Usually it reads `expected_rows`."""

    def __init__(self, engine: Engine, expected_rows: int) -> None:
        self._engine, self.expected_rows = engine, expected_rows
        self.read: Callable[[int], None] = lambda n_rows: None

    def run(self, function: Any, chunks: Sequence[Chunk], *args: Any, each: Any = None) -> Iterator[Any]:
        for chunk, result in zip(chunks, self._engine.run(function, chunks, *args, each=each), strict=True):
            self.read(chunk.n_rows)
            yield result

    def close(self) -> None:
        self._engine.close()


def expected_seconds(cls: type, params: dict[str, Any], X: Any, groups: Any) -> float | None:
    """Estimate how long a fit takes from a fit to a twentieth of the rows.

    None if the data are too small for an estimate, the sample has too few rows for the clusters, it cannot be fitted,
    or the rows are read in chunks, so that the passes of the fit are printed.
    """
    if not isinstance(X, np.ndarray):
        return None
    n_clusters = params["n_clusters"]
    rows = len(X) // _SHARE
    if len(X) * n_clusters < _LARGE or rows < _ROWS_PER_CLUSTER * n_clusters:
        return None
    sample = np.random.default_rng(0).choice(len(X), rows, replace=False)
    of_sample = groups_of_rows(groups, sample, len(X))
    begin = perf_counter()
    try:
        cls(**params).fit(X[sample], sensitive_features=of_sample)
    except (ValueError, ArithmeticError):
        # The sample can have too few rows of a group.
        return None
    return (perf_counter() - begin) * _SHARE
