"""The rows that a mixture learns from: numeric and categorical columns, samples, blocks and batches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from fairclust.base import is_mapped
from fairclust.kernels.mixture import MixtureTiles
from fairclust.kernels.tiles import blocks

BLOCK_ROWS, _SMALL_BLOCK_ROWS = 1 << 17, 1 << 14
# Points and responsibilities are in single precision, parameters and sums are double.
DTYPE: DTypeLike = np.float32
_LEAST_PER_GROUP = 50
_MOST_CATEGORIES = 65_536


class Columns(NamedTuple):
    """Columns of X by kind, and the categories of the categorical ones."""

    numeric: np.ndarray
    categorical: np.ndarray
    sizes: tuple[int, ...]

    def levels(self, X: np.ndarray) -> np.ndarray:
        """Codes as columns of the table of all categories. A code not seen in fit becomes the column past its end."""
        sizes = np.array(self.sizes, int)
        codes = X[:, self.categorical]
        known = (codes >= 0) & (codes < sizes) & (codes == np.floor(codes))
        starts = np.cumsum(sizes) - sizes
        return np.where(known, np.where(known, codes, 0) + starts, sizes.sum()).astype(np.int32)


class Rows(NamedTuple):
    """The rows that a mixture learns from, which may be mapped from a file, with their groups.

    Tiles hold the numeric columns minus `shift`, divided by `unit`.
    """

    X: np.ndarray
    codes: np.ndarray
    n_groups: int
    columns: Columns
    shift: np.ndarray
    unit: float = 1.0

    def numeric(self, X: np.ndarray) -> np.ndarray:
        """Numeric columns of some rows, minus `shift` and divided by `unit`, in the dtype of `X`."""
        found = np.empty((len(X), len(self.columns.numeric)), X.dtype)
        for block in blocks(len(X), _SMALL_BLOCK_ROWS):
            found[block] = (X[block][:, self.columns.numeric] - self.shift) / self.unit
        return found

    def tiles(self, rows: np.ndarray | slice = slice(None), *, merge: bool = False) -> MixtureTiles:
        X, columns = self.X[rows], self.columns
        numeric = np.ascontiguousarray(X[:, columns.numeric]) if len(columns.categorical) else X
        levels, codes = columns.levels(X), self.codes[rows]
        place = codes, self.n_groups, self.shift, DTYPE
        return MixtureTiles.pack(numeric, levels, sum(columns.sizes), *place, unit=self.unit, merge=merge)


def find_columns(
    X: np.ndarray, chosen: Iterable[Any] | None, names: Sequence[str], known: Mapping[int, Collection[Any]]
) -> Columns:
    """Which columns are categorical, and how many categories they have.

    They are `chosen` by index or name. The columns in `known` are categorical in any case, with these values.
    """
    found = set(known)
    for column in [] if chosen is None else chosen:
        if isinstance(column, str):
            if column not in names:
                raise ValueError(f"categorical_features names {column!r}, which is no column of X")
            found.add(names.index(column))
        elif isinstance(column, (bool, np.bool_)) or not isinstance(column, Integral):
            raise ValueError(f"categorical_features takes indices or names of columns, found {column!r}")
        elif not 0 <= int(column) < X.shape[1]:
            raise ValueError(f"categorical_features has {column}, X has {X.shape[1]} columns")
        else:
            found.add(int(column))
    categorical = np.array(sorted(found), int)
    sizes = []
    for i in categorical:
        if i in known:
            sizes.append(len(known[i]))
            continue
        low, high = X[:, i].min(), X[:, i].max()
        if low < 0 or high >= _MOST_CATEGORIES or (X[:, i] != np.floor(X[:, i])).any():
            raise ValueError(
                f"column {i} is in categorical_features and must hold integer codes from 0 on, below "
                f"{_MOST_CATEGORIES}; found values from {low:g} to {high:g}"
            )
        sizes.append(int(high) + 1)
    numeric = np.setdiff1d(np.arange(X.shape[1]), categorical)
    return Columns(numeric, categorical, tuple(sizes))


def _count(amount: float, n: int) -> int:
    return min(n, max(1, int(amount) if isinstance(amount, Integral) else round(amount * n)))


def draw(codes: np.ndarray, amount: float | None, rng: np.random.RandomState) -> np.ndarray | slice:
    """Rows of a sample with the data's group shares, but with at least 50 rows of each group that has so many."""
    n = len(codes)
    if amount is None or _count(amount, n) == n:
        return slice(None)
    share = _count(amount, n) / n
    found = []
    for group in range(codes.max() + 1):
        members = np.flatnonzero(codes == group)
        wanted = min(len(members), max(_LEAST_PER_GROUP, round(share * len(members))))
        found.append(rng.choice(members, wanted, replace=False))
    return np.sort(np.concatenate(found))


def divided(
    rows: Rows, amount: float, rng: np.random.RandomState
) -> tuple[Callable[[int], MixtureTiles], int]:
    """Divide the rows into batches of about equal size, at random or, for a mapped file, into contiguous blocks.

    Returns a function that loads a batch by its number, and the number of batches.
    """
    n = len(rows.X)
    n_batches = -(-n // _count(amount, n))
    edges = np.linspace(0, n, n_batches + 1).astype(int)
    if is_mapped(rows.X):
        return (lambda b: rows.tiles(slice(edges[b], edges[b + 1]))), n_batches
    order = rng.permutation(n)
    return (lambda b: rows.tiles(np.sort(order[edges[b] : edges[b + 1]]))), n_batches
