"""The rows that a mixture learns from: numeric and categorical columns, samples and batches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from fairclust.kernels.mixture import Components, MixtureTiles, PackedRows
from fairclust.kernels.tiles import blocks, distinct_rows, make_layout, pack_points
from fairclust.stored import storable

_BLOCK_ROWS, _SMALL_BLOCK_ROWS = 1 << 17, 1 << 14
# Points and responsibilities are in single precision, parameters and sums are double.
DTYPE: DTypeLike = np.float32
# There must be this many times more points than joint categories, because every pass computes the table of the joint
# categories again.
_ROWS_PER_JOINT = 8
_LEAST_PER_GROUP = 50
_MOST_CATEGORIES = 65_536


@storable
class Columns(NamedTuple):
    """Columns of X by kind, the categories of the categorical ones, and the frame of the numeric ones."""

    numeric: np.ndarray
    categorical: np.ndarray
    sizes: tuple[int, ...]
    shift: np.ndarray = np.zeros(0)
    unit: float = 1.0

    def points(self, X: np.ndarray) -> np.ndarray:
        """Numeric columns of some rows, minus `shift` and divided by `unit`, in the dtype of `X`."""
        numbers = np.empty((len(X), len(self.numeric)), X.dtype)
        for block in blocks(len(X), _SMALL_BLOCK_ROWS):
            numbers[block] = (X[block][:, self.numeric] - self.shift) / self.unit
        return numbers

    def levels(self, X: np.ndarray) -> np.ndarray:
        """Codes as columns of the table of all categories. A code not seen in fit becomes the column past its end."""
        sizes = np.array(self.sizes, int)
        codes = X[:, self.categorical]
        known = (codes >= 0) & (codes < sizes) & (codes == np.floor(codes))
        starts = np.cumsum(sizes) - sizes
        return np.where(known, np.where(known, codes, 0) + starts, sizes.sum()).astype(np.int32)


class Rows(NamedTuple):
    """Rows, which may be mapped from a file, and their groups."""

    columns: Columns
    X: np.ndarray
    codes: np.ndarray
    n_groups: int

    def part(self, rows: np.ndarray | slice) -> Rows:
        return self._replace(X=self.X[rows], codes=self.codes[rows])

    def tiles(self, *, merge: bool = False) -> MixtureTiles:
        """The rows in tiles.

        With `merge`, columns of categories are joined, and without numeric columns rows with the same categories and
        group become one point. This takes as long as about ten passes.
        """
        columns, X, codes, n_groups = self
        numeric = np.ascontiguousarray(X[:, columns.numeric]) if columns.sizes else X
        levels, n_levels = columns.levels(X), sum(columns.sizes)
        members, counts = np.arange(n_levels + 1, dtype=np.int32)[:, None], np.ones(len(codes))
        if merge and columns.sizes:
            if not len(columns.numeric):
                kept, _, counts = distinct_rows(levels, codes)
                numeric, levels, codes = numeric[kept], levels[kept], codes[kept]
            levels, members = _joint_categories(levels, n_levels)
        layout = make_layout(codes, n_groups)
        packed = PackedRows(
            pack_points(numeric, layout, columns.shift, DTYPE, columns.unit),
            pack_points(levels, layout, np.zeros(levels.shape[1], np.int32), np.int32),
            np.ascontiguousarray(pack_points(counts[:, None], layout, np.zeros(1), DTYPE)[:, 0]),
        )
        return MixtureTiles(layout, n_groups, packed, members)

    def in_blocks(self) -> Iterator[MixtureTiles]:
        """The tiles of all rows, block by block."""
        return (self.part(block).tiles() for block in blocks(len(self.X), _BLOCK_ROWS))

    def log_joint(self, components: Components) -> Iterator[np.ndarray]:
        """Logarithms of the joint densities, shape (n_rows, n_clusters), block by block."""
        return (tiles.log_joint(components).astype(float) for tiles in self.in_blocks())

    def labels(self, components: Components) -> np.ndarray:
        """The most probable component of every row."""
        return np.concatenate([z.argmax(axis=1).astype(np.int32) for z in self.log_joint(components)])


def _joint_categories(levels: np.ndarray, n_levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Replace many columns of categories by few columns of joint categories, whose numbers run over all columns.

    The two columns with the fewest categories are joined repeatedly, as long as there are far fewer joint categories
    than rows. The second array, shape (n_joint_categories + 1, width), lists the categories of each joint category,
    filled up with `n_levels`. The last joint category has none.
    """
    limit = len(levels) // _ROWS_PER_JOINT
    parts = []
    for column in levels.T:
        values, codes = np.unique(column, return_inverse=True)
        parts.append((values[:, None], codes))
    while len(parts) > 1:
        parts.sort(key=lambda part: len(part[0]))
        (one, first), (two, second) = parts[:2]
        pairs, codes = np.unique(first.astype(np.int64) * len(two) + second, return_inverse=True)
        if len(pairs) > limit:
            break
        parts[:2] = [(np.hstack([one[pairs // len(two)], two[pairs % len(two)]]), codes)]
    sizes = [len(members) for members, _ in parts]
    starts = np.cumsum(sizes) - sizes
    width = max(members.shape[1] for members, _ in parts)
    table = np.full((sum(sizes) + 1, width), n_levels, np.int32)
    for (members, _), start in zip(parts, starts, strict=True):
        table[start : start + len(members), : members.shape[1]] = members
    joint = np.stack([codes + start for (_, codes), start in zip(parts, starts, strict=True)], axis=1)
    return joint.astype(np.int32), table


def find_columns(
    X: np.ndarray, chosen: Iterable[Any] | None, names: Sequence[str], known: Mapping[int, Collection[Any]]
) -> Columns:
    """Which columns are categorical, and how many categories they have.

    They are `chosen` by index or name. The columns in `known` are categorical in any case, with these values.
    """
    named = set(known)
    for column in [] if chosen is None else chosen:
        place = names.index(column) if column in names else column
        whole = isinstance(place, Integral) and not isinstance(place, bool)
        if not (whole and 0 <= place < X.shape[1]):
            raise ValueError(
                f"categorical_features takes names of columns and indices from 0 to {X.shape[1] - 1}, found {column!r}"
            )
        named.add(int(place))
    categorical = np.array(sorted(named), int)
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
    drawn = []
    for group in range(codes.max() + 1):
        members = np.flatnonzero(codes == group)
        wanted = min(len(members), max(_LEAST_PER_GROUP, round(share * len(members))))
        drawn.append(rng.choice(members, wanted, replace=False))
    return np.sort(np.concatenate(drawn))


def divided(n: int, amount: float, rng: np.random.RandomState | None) -> list[np.ndarray | slice]:
    """Batches of about equal size, at random or, without `rng`, contiguous, as is right for a file."""
    edges = np.linspace(0, n, -(-n // _count(amount, n)) + 1).astype(int)
    if rng is None:
        return [slice(*ends) for ends in pairwise(edges)]
    return [np.sort(rows) for rows in np.split(rng.permutation(n), edges[1:-1])]
