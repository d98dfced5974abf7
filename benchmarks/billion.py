"""Fair k-means of a billion rows on one machine, with labels and a certificate, beside plain k-means.

    python benchmarks/billion.py --rows 1e9 --folder DIR [--threads 2 | --workers 2] [--csv FILE]
    python benchmarks/billion.py --rows 1e7

The data have four features and four groups. The fits have ten clusters and the tolerance 0.1. The rows are drawn at
random, chunk by chunk with fixed seeds, and take 18 bytes each in DIR, labels included. With `--stream` nothing is
stored, and every pass draws the rows again. This script scores the labels itself, from the files or the drawn rows.
Each fit runs in its own process. The memory reported is Linux's RssAnon of that process, which leaves out the page
cache.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numba
import numpy as np
from numba import njit

from fairclust import KMeans, PriceFairKMeans, open_chunks
from fairclust.chunks import ChunkTable
from fairclust.chunks.passes import Engine
from fairclust.chunks.sources import CHUNK_ROWS, Chunk
from fairclust.metrics import contingency
from measuring import SEED, apart, tell, write_csv

FEATURES, GROUPS, CLUSTERS, TOLERANCE = 4, 4, 10, 0.1
BYTES_PER_ROW = 4 * FEATURES + 2
SPREAD = 0.6


def recipe(number: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw features and groups of a chunk. The rows form blobs, and the shares of the groups differ between blobs."""
    world = np.random.default_rng(SEED)
    centers = world.normal(size=(CLUSTERS, FEATURES)).astype(np.float32)
    shares = world.dirichlet(np.full(GROUPS, 2.0), size=CLUSTERS)
    rng = np.random.default_rng([SEED, number])
    blob = rng.integers(CLUSTERS, size=rows, dtype=np.uint8)
    X = rng.standard_normal((rows, FEATURES), dtype=np.float32)
    drawn = rng.random(rows, dtype=np.float32)
    groups = np.empty(rows, np.uint8)
    place_rows(blob, X, drawn, centers, np.cumsum(shares, axis=1).astype(np.float32), groups)
    return X, groups


@njit(cache=True, nogil=True)
def place_rows(blob, X, drawn, centers, ends, groups):  # type: ignore[no-untyped-def]
    """Move normal rows to their blobs in place, and find the group of a number drawn from the unit interval."""
    for p in range(len(X)):
        for i in range(X.shape[1]):
            X[p, i] = X[p, i] * np.float32(SPREAD) + centers[blob[p], i]
        groups[p] = 0
        for j in range(ends.shape[1] - 1):
            groups[p] += drawn[p] > ends[blob[p], j]


@dataclass(frozen=True)
class DrawnChunk(Chunk):
    """A chunk that is drawn when it is read."""

    number: int
    n_rows: int

    def read(self) -> tuple[np.ndarray, np.ndarray]:
        return recipe(self.number, self.n_rows)

    def place(self, row: int) -> str:
        return f"chunk {self.number}, row {row}"


def chunks_of(rows: int) -> Iterator[tuple[int, int]]:
    """Return number and size of every chunk."""
    for number, first in enumerate(range(0, rows, CHUNK_ROWS)):
        yield number, min(CHUNK_ROWS, rows - first)


def generate(folder: Path, rows: int, threads: int) -> None:
    """Write X.npy and groups.npy."""
    needed, free = rows * BYTES_PER_ROW, shutil.disk_usage(folder).free
    if free < 1.05 * needed:
        raise SystemExit(
            f"{folder} has {free / 1e9:.1f} GB free, {rows:,} rows take {needed / 1e9:.1f} GB. "
            "Fix: pass another --folder, fewer --rows or --stream"
        )
    with (folder / "X.npy").open("wb") as X, (folder / "groups.npy").open("wb") as groups:
        for file, kind, shape in ((X, "<f4", (rows, FEATURES)), (groups, "|u1", (rows,))):
            header = {"descr": kind, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
        with ThreadPoolExecutor(threads) as pool:
            numbers = list(chunks_of(rows))
            # Draw only a few chunks at a time, because drawn chunks wait in memory until they are written.
            for first in range(0, len(numbers), 4 * threads):
                for part in pool.map(lambda chunk: recipe(*chunk), numbers[first : first + 4 * threads]):
                    part[0].tofile(X)
                    part[1].tofile(groups)


@contextmanager
def peak_of_own_memory() -> Iterator[dict[str, float]]:
    """Measure the peak of this process' memory that maps no file, in MB, sampled five times a second."""
    found = {"own_peak_mb": 0.0}
    stopped = threading.Event()

    def watch() -> None:
        while not stopped.wait(0.2):
            status = Path("/proc/self/status").read_text()
            anonymous = next(line for line in status.splitlines() if line.startswith("RssAnon"))
            found["own_peak_mb"] = max(found["own_peak_mb"], int(anonymous.split()[1]) / 1024)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        stopped.set()
        thread.join()


def table_of(folder: Path | None, rows: int, labels: str, workers: int | None) -> ChunkTable:
    """Open a table of the first rows of the files or, without a folder, of rows that are drawn in every pass.

    The threads of this process read the files or, if `workers` is given, so many Dask workers.
    """
    if folder is None:
        chunks = [DrawnChunk(*chunk) for chunk in chunks_of(rows)]
        return ChunkTable(chunks, Engine())
    files = folder / "X.npy", folder / "groups.npy"
    arrays = [np.load(file, mmap_mode="r") for file in files]
    # Workers open the files themselves, but are sent the rows of a part of them.
    X, groups = files if len(arrays[0]) == rows else [array[:rows] for array in arrays]
    return open_chunks(X, groups, labels=folder / labels, client=workers)


def fit(method: str, folder: Path | None, rows: int, workers: int | None = None) -> dict[str, float]:
    """Fit the first rows, and return times, memory and the scores of the labels."""
    logging.basicConfig(level=logging.INFO, format="  %(asctime)s %(message)s", datefmt="%H:%M:%S")
    model: Any = {
        # The search takes longer on the sample, and plain k-means is not searched either.
        "fair": PriceFairKMeans(CLUSTERS, tolerance=TOLERANCE, search=False, random_state=SEED),
        "plain": KMeans(CLUSTERS, n_init=10, tol=1e-5, random_state=SEED),
    }[method]
    with peak_of_own_memory() as memory:
        begin, cpu = perf_counter(), process_time()
        with table_of(folder, rows, f"{method}.npy", workers) as table:
            model.fit(table)
        seconds, cpu = perf_counter() - begin, process_time() - cpu
    counts = count(folder, rows, model.labels_)
    cost = model.cost_ if method == "fair" else model.inertia_
    found = {
        "rows": rows,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "passes": model.n_passes_,
        "cost_per_row": cost / rows,
        "gap": getattr(model, "gap_", np.nan),
        "rows_off": rows_off(counts),
        **memory,
    }
    if folder is not None:
        (folder / f"{method}.npy").unlink()
    return found


def count(folder: Path | None, rows: int, labels: np.ndarray) -> np.ndarray:
    """Return the group-by-cluster table of the labels, with the groups from the file or drawn again."""
    groups = None if folder is None else np.load(folder / "groups.npy", mmap_mode="r")

    def part(chunk: tuple[int, int]) -> np.ndarray:
        number, size = chunk
        rows_of_chunk = slice(number * CHUNK_ROWS, number * CHUNK_ROWS + size)
        own = recipe(number, size)[1] if groups is None else groups[rows_of_chunk]
        given = np.asarray(labels[rows_of_chunk]).astype(np.int64)
        return contingency(given, own.astype(np.int64), CLUSTERS, GROUPS).astype(np.int64)

    with ThreadPoolExecutor(numba.get_num_threads()) as pool:
        return sum(pool.map(part, chunks_of(rows)), np.zeros((GROUPS, CLUSTERS), np.int64))


def rows_off(table: np.ndarray) -> float:
    """Sum the rows by which entries of the table are outside the bounds. Less than one row in an entry is ignored."""
    share, sizes = table.sum(axis=1, keepdims=True) / table.sum(), table.sum(axis=0)
    over = table - share / (1 - TOLERANCE) * sizes
    under = (1 - TOLERANCE) * share * sizes - table
    off = np.maximum(0.0, np.maximum(over, under))
    return float(np.where(off < 1, 0.0, off).sum())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--folder", type=Path, help="where the rows are kept (default: a temporary folder)")
    parser.add_argument("--stream", action="store_true", help="store nothing, draw the rows in every pass")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", type=int, help="Dask workers of one thread that read the files")
    parser.add_argument("--curve", action="store_true", help="also the first 1e5, 1e6, ... of the rows")
    parser.add_argument("--no-plain", action="store_true", help="leave plain k-means out")
    parser.add_argument("--csv")
    args = parser.parse_args()
    if args.stream and args.workers:
        parser.error("--workers reads files: leave out --stream")
    most = int(args.rows)
    sizes = [10**e for e in range(5, 12) if args.curve and 10**e < most] + [most]
    given = nullcontext(args.folder) if args.stream or args.folder else tempfile.TemporaryDirectory()
    rows = []
    with given as place:
        folder = None if args.stream else Path(place)
        if folder is not None:
            begin = perf_counter()
            generate(folder, most, args.threads)
            print(f"{most:,} rows drawn and written in {perf_counter() - begin:,.0f} s", flush=True)
        # Compile before timing. Later processes read the compiled kernels from the cache.
        apart(fit, args.threads, "fair", None, 100_000)
        for size in sizes:
            for method in ("fair",) if args.no_plain else ("fair", "plain"):
                found = apart(fit, args.threads, method, folder, size, args.workers)
                tell(f"{method} k-means", args.threads, found)
                rows.append({"method": method, "threads": args.threads, **found})
    write_csv(args.csv, rows)


if __name__ == "__main__":
    main()
