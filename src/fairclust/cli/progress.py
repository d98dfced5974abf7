"""Progress of a fit on standard error, if it takes more than two seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fairclust.chunks.engines import Engine
    from fairclust.chunks.sources import Chunk

_FIRST, _EVERY = 2.0, 10.0
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
    notes: Sequence[str] = (),
    passes: Passes | None = None,
) -> Iterator[Callable[[], None]]:
    """Print the progress of a task after two seconds, and every ten seconds from then on.

    `expected` is the time in seconds that the task will take, and `total` the number of its parts. `notes` are printed
    before the first line. `passes` are those of a fit in chunks. Yields a function to be called after each part.
    """
    begin, stopped = perf_counter(), threading.Event()
    parts: list[None] = []

    def watch() -> None:
        wait, lines = _FIRST, [f"note: {note}" for note in notes]
        while not stopped.wait(wait):
            seconds = perf_counter() - begin
            text = f"{what}: {seconds:,.0f} s"
            if total:
                text += f", {len(parts)} of {total} done"
            whole = seconds * total / len(parts) if total and parts else expected
            text += f", about {whole:,.0f} s in all" if whole else ""
            text += passes.describe() if passes else ""
            print(*lines, text, sep="\n", file=sys.stderr, flush=True)
            lines = []
            wait = _EVERY

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield lambda: parts.append(None)
    finally:
        stopped.set()
        thread.join()


class Passes:
    """An engine of chunks that counts what the passes of another engine have read. `usual` passes make a fit."""

    def __init__(self, engine: Engine, usual: int) -> None:
        self._engine, self._usual = engine, usual
        self._passes, self._share, self._rows, self._seconds = 0, 1.0, 0, 0.0

    def run(self, function: Any, chunks: Sequence[Chunk], *args: Any, each: Any = None) -> Iterator[Any]:
        total, read, begin = sum(chunk.n_rows for chunk in chunks), 0, perf_counter()
        self._passes, self._share = self._passes + 1, 0.0
        for chunk, result in zip(chunks, self._engine.run(function, chunks, *args, each=each), strict=True):
            read, self._rows = read + chunk.n_rows, self._rows + chunk.n_rows
            self._seconds, begin = self._seconds + perf_counter() - begin, perf_counter()
            self._share = read / total
            yield result

    def close(self) -> None:
        self._engine.close()

    def describe(self) -> str:
        """How many passes there were, how fast they are, and how long the usual number of them would still take."""
        if not self._rows:
            return ", in the first pass"
        done = self._passes - 1 + self._share
        text = f", pass {self._passes} of usually {self._usual} ({self._share:.0%} of its rows)"
        if self._share == 1:
            text = f", {self._passes} of usually {self._usual} passes over all rows, now on a sample of them"
        text += f", {self._rows / self._seconds:,.0f} rows/s"
        left = self._seconds * (self._usual / done - 1)
        return text + (f", about {left:,.0f} s of passes left" if left > 0 else "")


def expected_seconds(cls: type, params: dict[str, Any], X: Any, groups: Any) -> float | None:
    """Estimate how long a fit takes from a fit to a twentieth of the rows.

    None if the data are too small for an estimate, the sample has too few rows for the clusters, it cannot be fitted,
    or the rows are read in chunks, so that the steps of the fit are printed.
    """
    if not isinstance(X, np.ndarray):
        return None
    n_clusters = params["n_clusters"]
    rows = len(X) // _SHARE
    if len(X) * n_clusters < _LARGE or rows < _ROWS_PER_CLUSTER * n_clusters:
        return None
    sample = np.random.default_rng(0).choice(len(X), rows, replace=False)
    several = isinstance(groups, dict)
    of_sample = {name: of[sample] for name, of in groups.items()} if several else groups[sample]
    begin = perf_counter()
    try:
        cls(**params).fit(X[sample], sensitive_features=of_sample)
    except (ValueError, ArithmeticError):
        # The sample can have too few rows of a group.
        return None
    return (perf_counter() - begin) * _SHARE
