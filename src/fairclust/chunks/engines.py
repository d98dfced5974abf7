"""The engine that runs a pass over all chunks, in threads of this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any

import numba

from fairclust.chunks.sources import Chunk

# Number of chunks that wait for each thread, so that no thread is idle while results are added up.
_AHEAD = 3


def in_order(jobs: Iterable[Any], ahead: int) -> Iterator[Any]:
    """Yield the results of jobs in the order of the jobs. At most `ahead` started jobs await their turn.

    A job starts when it is taken from the iterable. If a job fails, or if the caller stops early, the jobs whose
    results have not been yielded are cancelled.
    """
    waiting: deque[Any] = deque()
    try:
        for job in jobs:
            waiting.append(job)
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for job in waiting:
            job.cancel()


class Engine:
    """Calls a function for every chunk in threads of this process, as many as `numba.get_num_threads` returns."""

    def run(
        self, function: Callable[..., Any], chunks: Sequence[Chunk], *more: Iterable[Any]
    ) -> Iterator[Any]:
        """As ``map(function, chunks, *more)``, whichever call ends first."""
        n_threads = min(numba.get_num_threads(), len(chunks))
        if n_threads <= 1:
            yield from map(function, chunks, *more)
            return
        # Each chunk is computed by one thread, so its kernels must not start more threads.
        with ThreadPoolExecutor(n_threads, "fairclust-chunks", numba.set_num_threads, (1,)) as pool:
            yield from in_order(map(pool.submit, repeat(function), chunks, *more), _AHEAD * n_threads)

    def close(self) -> None:
        """End workers that were started for this engine. Threads end with every pass."""
