"""The rows that a mixture learns from: numeric and categorical columns, samples and batches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from fairclust.kernels.mixture import MixtureTiles
from fairclust.kernels.tiles import blocks

_BLOCK_ROWS, _SMALL_BLOCK_ROWS = 1 << 17, 1 << 14
# Points and responsibilities are in single precision, parameters and sums are double.
DTYPE: DTypeLike = np.float32
_LEAST_PER_GROUP = 50
_MOST_CATEGORIES = 65_536


class Columns(NamedTuple):
    """Columns of X by kind, the categories of the categorical ones, and the frame of the numeric ones."""

    numeric: np.ndarray
    categorical: np.ndarray
    sizes: tuple[int, ...]
    shift: np.ndarray = np.zeros(0)
    unit: float = 1.0

    def points(self, X: np.ndarray) -> np.ndarray:
        """Numeric columns of some rows, minus `shift` and divided by `unit`, in the dtype of `X`."""
        found = np.empty((len(X), len(self.numeric)), X.dtype)
        for block in blocks(len(X), _SMALL_BLOCK_ROWS):
            found[block] = (X[block][:, self.numeric] - self.shift) / self.unit
        return found

    def levels(self, X: np.ndarray) -> np.ndarray:
        """Codes as columns of the table of all categories. A code not seen in fit becomes the column past its end."""
        sizes = np.array(self.sizes, int)
        codes = X[:, self.categorical]
        known = (codes >= 0) & (codes < sizes) & (codes == np.floor(codes))
        starts = np.cumsum(sizes) - sizes
        return np.where(known, np.where(known, codes, 0) + starts, sizes.sum()).astype(np.int32)

    def tiles(self, X: np.ndarray, codes: np.ndarray, n_groups: int, *, merge: bool = False) -> MixtureTiles:
        """Tiles of some rows, which may be mapped from a file, and their groups."""
        numeric = np.ascontiguousarray(X[:, self.numeric]) if len(self.categorical) else X
        levels, n_levels, unit = self.levels(X), sum(self.sizes), self.unit
        return MixtureTiles.pack(
            numeric, levels, n_levels, codes, n_groups, self.shift, DTYPE, unit=unit, merge=merge
        )

    def in_blocks(self, X: np.ndarray, codes: np.ndarray, n_groups: int) -> Iterator[MixtureTiles]:
        """Tiles of all rows, block by block."""
        return (self.tiles(X[part], codes[part], n_groups) for part in blocks(len(X), _BLOCK_ROWS))


def find_columns(
    X: np.ndarray, chosen: Iterable[Any] | None, names: Sequence[str], known: Mapping[int, Collection[Any]]
) -> Columns:
    """Which columns are categorical, and how many categories they have.

    They are `chosen` by index or name. The columns in `known` are categorical in any case, with these values.
    """
    found = set(known)
    for column in [] if chosen is None else chosen:
        place = names.index(column) if column in names else column
        if (
            isinstance(place, (bool, np.bool_))
            or not isinstance(place, (int, np.integer))
            or not 0 <= place < X.shape[1]
        ):
            raise ValueError(
                f"categorical_features takes names of columns and indices from 0 to {X.shape[1] - 1}, found {column!r}"
            )
        found.add(int(place))
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


def divided(n: int, amount: float, rng: np.random.RandomState | None) -> list[np.ndarray | slice]:
    """Batches of about equal size, at random or, without `rng`, contiguous, as is right for a file."""
    edges = np.linspace(0, n, -(-n // _count(amount, n)) + 1).astype(int)
    if rng is None:
        return [slice(*ends) for ends in pairwise(edges)]
    return [np.sort(rows) for rows in np.split(rng.permutation(n), edges[1:-1])]
