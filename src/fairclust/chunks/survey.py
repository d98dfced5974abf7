"""The first pass over the rows. It checks them, finds the groups, and draws the sample on which a fit starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fairclust.chunks.engines import Engine
from fairclust.chunks.passes import MOST_GROUPS
from fairclust.chunks.sources import Chunk, ChunkError, Values
from fairclust.group_encoding import encode_groups
from fairclust.metrics.counts import join_spellings

SAMPLE_ROWS = 1 << 22
# From every chunk, the sample has at least _LEAST_ROWS rows of each group, or all rows of the group in this chunk. If
# _LEAST_SHARE times the size of the sample, divided by the number of chunks, is larger, it has at least that many.
_LEAST_SHARE, _LEAST_ROWS = 1 / 2000, 8


class Survey(NamedTuple):
    """Groups, their sizes and a sample of the rows, of one chunk or of all chunks.

    Attributes
    ----------
    names : ndarray of shape (n_groups,)
        The groups, sorted.
    sizes : ndarray of shape (n_groups,)
    X : ndarray of shape (n_sampled, n_features)
        A sample of the rows. The sample of all chunks is in random order. Small groups can have a larger share of the
        sample than of the rows.
    codes : ndarray of shape (n_sampled,), int32
    """

    names: np.ndarray
    sizes: np.ndarray
    X: np.ndarray
    codes: np.ndarray

    @property
    def n_rows(self) -> int:
        return int(self.sizes.sum())


def survey(chunks: Sequence[Chunk], engine: Engine, *, sample_rows: int, seed: int) -> Survey:
    """Check every row and draw a sample, in one pass.

    Parameters
    ----------
    chunks : sequence of Chunk
    engine : Engine
    sample_rows : int
        Approximate size of the sample.
    seed : int

    Raises
    ------
    ChunkError
        A number is not finite, a group is missing, chunks have different numbers of features, or there are no rows.
    """
    n_rows = sum(chunk.n_rows for chunk in chunks)
    if not n_rows:
        raise ChunkError("there are no rows: pass at least one row for each cluster")
    share = min(1.0, sample_rows / n_rows)
    least = max(_LEAST_ROWS, int(_LEAST_SHARE * sample_rows / len(chunks)))
    seeds = (([seed, number],) for number in range(len(chunks)))
    parts = [part for part in engine.run(_look, chunks, share, least, each=seeds) if part is not None]
    widths = sorted({part.X.shape[1] for part in parts})
    if len(widths) > 1:
        raise ChunkError(
            f"some chunks have {widths[0]} features and others {widths[-1]}: all must have the same"
        )
    if len({part.names.dtype.kind == "U" for part in parts}) > 1:
        raise ChunkError("the groups are text in some chunks and numbers in others: use one type in all")
    names = np.unique(np.concatenate([part.names for part in parts]))
    if len(names) > MOST_GROUPS:
        raise ChunkError(
            f"there are {len(names):,} groups, at most {MOST_GROUPS:,} are supported: merge some"
        )
    sizes = np.zeros(len(names), np.int64)
    codes = []
    for part in parts:
        at = np.searchsorted(names, part.names)
        sizes[at] += part.sizes
        codes.append(at[part.codes].astype(np.int32))
    X, group = np.concatenate([part.X for part in parts]), np.concatenate(codes)
    order = np.random.default_rng(seed).permutation(len(X))
    # This is ten times as fast as X[order].
    return Survey(names, sizes, X.take(order, axis=0), group[order])


def _look(chunk: Chunk, seed: list[int], share: float, least: int) -> Survey | None:
    """Groups, their sizes and a sample of one chunk; None if the chunk is empty."""
    X, values = chunk.read()
    if not len(X):
        return None
    # If the sum is finite, all numbers are finite. If it is not, each number is checked, because a sum of finite
    # numbers may overflow.
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(X.sum())
    if suspicious and not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0].tolist()
        number = X[row, column]
        raise ChunkError(
            f"{chunk.place(row)}: {chunk.feature(column)} is {number}, which is not a finite number: "
            "leave out or fill in such rows"
        )
    names, codes = _groups(values, chunk)
    sizes = np.bincount(codes, minlength=len(names))
    rows = _drawn(codes, sizes, share, least, np.random.default_rng(seed))
    return Survey(names, sizes, X[rows], codes[rows])


def _groups(values: Values, chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
    """The groups that occur in a chunk, sorted, and for each row the position of its group."""
    entries, own = values
    if own is None and entries.dtype.kind in "ub" and entries.itemsize == 1:
        # Take all 256 values of a byte as possible names, which is faster than sorting the rows.
        own, entries = np.arange(256).astype(np.uint8).view(entries.dtype), entries.view(np.uint8)
    if own is not None:
        used = np.flatnonzero(np.bincount(entries, minlength=len(own)))
        used = used[np.argsort(own[used], kind="stable")]
        position = np.zeros(len(own), np.int64)
        position[used] = np.arange(len(used))
        codes, names = join_spellings(position[entries], own[used])
        return names, codes
    try:
        codes, names = encode_groups(entries, len(entries))
    except ValueError as error:
        raise ChunkError(f"{chunk.place(0)} and after: {error}") from None
    return names, codes


def _drawn(
    codes: np.ndarray, sizes: np.ndarray, share: float, least: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw rows at random, then draw more from groups of which fewer than `least` were drawn."""
    if share == 1:
        return np.arange(len(codes))
    rows = rng.choice(len(codes), int(np.ceil(share * len(codes))), replace=False, shuffle=False)
    drawn = np.bincount(codes[rows], minlength=len(sizes))
    found = [rows]
    for j in np.flatnonzero(drawn < np.minimum(least, sizes)):
        left = np.setdiff1d(np.flatnonzero(codes == j), rows)
        found.append(rng.choice(left, min(least, int(sizes[j])) - int(drawn[j]), replace=False))
    return np.sort(np.concatenate(found))
