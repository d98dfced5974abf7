"""The first pass over the rows. It checks them, finds the groups, and draws the sample on which a fit starts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np

from fairclust.chunks.passes import Engine
from fairclust.chunks.sources import Chunk, ChunkError
from fairclust.frame import needs_double
from fairclust.group_encoding import encode_groups

# The sample has at most so many rows, and at most so many numbers, which take 256 MB in single precision.
_SAMPLE_ROWS, _SAMPLE_NUMBERS = 1 << 22, 1 << 26
# The square of a larger number, or the sum of many such squares, is not finite even in double precision.
_LARGEST = 1e140
# Squares of numbers between these are within the range of single precision.
_SMALL_NUMBER, _LARGE_NUMBER = 1e-15, 1e15
# The rows of the sample that decide whether single precision is enough.
_JUDGED_ROWS = 1 << 14
# Columns of so many rows at a time are compared, which is much faster than one row at a time.
_ROWS_AT_ONCE = 64
# From every chunk, the sample has at least _LEAST_ROWS rows of each group, or all rows of the group in this chunk. If
# _LEAST_SHARE times the size of the sample, divided by the number of chunks, is larger, it has at least that many.
_LEAST_SHARE, _LEAST_ROWS = 1 / 2000, 8


class Survey(NamedTuple):
    """Groups, their sizes and a sample of the rows, of one chunk or of all chunks."""

    names: np.ndarray  # sorted
    sizes: np.ndarray
    # (n_sampled, n_features). The sample of all chunks is in random order. Small groups can have a larger share of the
    # sample than of the rows.
    X: np.ndarray
    codes: np.ndarray  # (n_sampled,), int32
    low: np.ndarray  # (n_features,), the smallest number of every feature
    high: np.ndarray

    @property
    def n_rows(self) -> int:
        return int(self.sizes.sum())

    @property
    def center(self) -> np.ndarray:
        """The median of the sample, shape (n_features,). A few numbers far from all others do not change it."""
        # One column at a time, because `quantile` makes a copy.
        return np.array([np.quantile(column, 0.5, method="lower") for column in self.X.T], np.float64)

    @property
    def needs_double(self) -> bool:
        """Whether squared distances need double precision. Rows in chunks are not scaled."""
        in_range = _SMALL_NUMBER < (self.high - self.low).max() < _LARGE_NUMBER
        return not in_range or needs_double(self.X[:_JUDGED_ROWS], self.low, self.high)


def survey(chunks: Sequence[Chunk], engine: Engine, *, sample_rows: int | None, seed: int) -> Survey:
    """Check every row and draw a sample of about `sample_rows` rows, in one pass.

    ChunkError if a number is not finite or too large, a group is missing, or there are no rows.
    """
    n_rows = sum(chunk.n_rows for chunk in chunks)
    if not n_rows:
        raise ChunkError("there are no rows: pass at least one row for each cluster")
    seeds = ([seed, number] for number in range(len(chunks)))
    surveys = engine.run(_survey_of, chunks, seeds, *map(repeat, (sample_rows, n_rows, len(chunks))))
    parts = [part for part in surveys if part is not None]
    if len({part.names.dtype.kind == "U" for part in parts}) > 1:
        raise ChunkError("the groups are text in some chunks and numbers in others: use one type in all")
    names = np.unique(np.concatenate([part.names for part in parts]))
    sizes = np.zeros(len(names), np.int64)
    codes = []
    for part in parts:
        positions = np.searchsorted(names, part.names)
        sizes[positions] += part.sizes
        codes.append(positions[part.codes].astype(np.int32))
    X, group = np.concatenate([part.X for part in parts]), np.concatenate(codes)
    order = np.random.default_rng(seed).permutation(len(X))
    low = np.min([part.low for part in parts], axis=0)
    high = np.max([part.high for part in parts], axis=0)
    # `take` is ten times as fast as X[order].
    return Survey(names, sizes, X.take(order, axis=0), group[order], low, high)


def _survey_of(
    chunk: Chunk, seed: list[int], sample_rows: int | None, n_rows: int, n_chunks: int
) -> Survey | None:
    """Groups, their sizes and a sample of one chunk; None if the chunk is empty."""
    X, values = chunk.read()
    if not len(X):
        return None
    low, high = ends_of(X, chunk)
    try:
        codes, names = encode_groups(values)
    except ValueError as error:
        raise ChunkError(f"{chunk.place(0)} and after: {error}") from None
    sizes = np.bincount(codes, minlength=len(names))
    sample_rows = sample_rows or max(1, min(_SAMPLE_ROWS, _SAMPLE_NUMBERS // X.shape[1]))
    share = min(1.0, sample_rows / n_rows)
    least = max(_LEAST_ROWS, int(_LEAST_SHARE * sample_rows / n_chunks))
    rows = _drawn(codes, sizes, share, least, np.random.default_rng(seed))
    return Survey(names, sizes, X[rows], codes[rows], low, high)


def ends_of(X: np.ndarray, chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest number of each feature of a chunk with rows X, as float64.

    ChunkError if a number is not finite, or too large.
    """
    n_features = X.shape[1]
    whole = len(X) // _ROWS_AT_ONCE * _ROWS_AT_ONCE
    parts = [X[whole:]]
    if whole:
        many = X[:whole].reshape(-1, _ROWS_AT_ONCE * n_features)
        parts += [most.reshape(-1, n_features) for most in (many.min(axis=0), many.max(axis=0))]
    ends = np.concatenate(parts).astype(np.float64)
    low, high = ends.min(axis=0), ends.max(axis=0)
    if not (max(high.max(), -low.min()) <= _LARGEST):
        row, column = np.argwhere(~(np.abs(X.astype(np.float64)) <= _LARGEST))[0].tolist()
        number = X[row, column]
        what = "too large to be squared" if np.isfinite(number) else "not a finite number"
        raise ChunkError(
            f"{chunk.place(row)}: {chunk.feature(column)} is {number}, which is {what}: leave out or fill in such rows"
        )
    return low, high


def _drawn(
    codes: np.ndarray, sizes: np.ndarray, share: float, least: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw rows at random, then draw more from groups of which fewer than `least` were drawn."""
    rows = rng.choice(len(codes), int(np.ceil(share * len(codes))), replace=False, shuffle=False)
    drawn = np.bincount(codes[rows], minlength=len(sizes))
    parts = [rows]
    for j in np.flatnonzero(drawn < np.minimum(least, sizes)):
        left = np.setdiff1d(np.flatnonzero(codes == j), rows)
        parts.append(rng.choice(left, min(least, int(sizes[j])) - int(drawn[j]), replace=False))
    return np.sort(np.concatenate(parts))
