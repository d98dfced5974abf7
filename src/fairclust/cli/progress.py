"""Progress of a fit on standard error, if it takes more than two seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np

_FIRST, _EVERY = 2.0, 10.0
# If rows times clusters reach this number, a first fit to a `_SHARE`-th of the rows estimates how long the whole fit
# will take.
_LARGE = 4_000_000
_SHARE = 20
# With fewer rows in a cluster of the sample, the time of a fit depends on the number of clusters more than on the rows,
# so the sample would take long and say little.
_ROWS_PER_CLUSTER = 30


@contextmanager
def progress(
    what: str, *, expected: float | None = None, total: int | None = None, notes: Sequence[str] = ()
) -> Iterator[Callable[[], None]]:
    """Print the progress of a task after two seconds, and every ten seconds from then on.

    `expected` is the time in seconds that the task will take, and `total` the number of its parts. `notes` are printed
    before the first line. Yields a function to be called after each part.
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
    if isinstance(groups, dict):
        of_sample: Any = {name: column[sample] for name, column in groups.items()}
    else:
        of_sample = groups[sample]
    begin = perf_counter()
    try:
        cls(**params).fit(X[sample], sensitive_features=of_sample)
    except (ValueError, ArithmeticError):
        # The sample can have too few rows of a group.
        return None
    return (perf_counter() - begin) * _SHARE
