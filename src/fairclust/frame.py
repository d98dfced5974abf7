"""The origin and the unit of data: methods work on centred and scaled rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fairclust.stored import storable

# The most rows and the most numbers of a block.
_BLOCK_ROWS, _BLOCK_ENTRIES = 1 << 17, 1 << 23
# All rows have one length if their lengths differ by at most this fraction of the length, and of the root mean squared
# distance of a row to the mean.
_ONE_LENGTH = 1e-5
# But not if that distance is at most this fraction of the length, as with a large constant column.
_CLOSE = 1e-3
# Beside numbers more than _FAR times as far from the median as most rows, single precision would lose the other rows.
# The median is taken over _SAMPLE_ROWS rows.
_FAR, _SAMPLE_ROWS = 1e3, 1 << 10
# A unit this close to 1 is set to 1. If the origin is also this close to 0, the data are not changed.
_STANDARD = 1e-7


@storable
class Frame(NamedTuple):
    """The origin and the unit of the data. Methods work on ``(X - origin) / unit``, numbers of order one.

    Labels then do not depend on the unit or the origin of the data.
    """

    origin: np.ndarray  # `mean`; zeros if all rows have one length
    # `spread`. If all rows have one length, as after scikit-learn's `normalize`, it is that length. Rows of length one
    # and standardised columns are therefore not changed.
    unit: float
    mean: np.ndarray  # of each column
    spread: float  # root of the mean variance of the columns that are not constant; 1 if all are constant
    length: float  # root of the mean squared distance of a row to the mean
    is_far: bool = False  # whether distances must be computed in double precision, see `needs_double`

    @classmethod
    def plain(cls, n_features: int) -> Frame:
        """The frame that leaves data with `n_features` columns unchanged."""
        return cls(np.zeros(n_features), 1.0, np.zeros(n_features), 1.0, 0.0)

    @classmethod
    def of(cls, X: np.ndarray, columns: Any = slice(None)) -> Frame:
        """The frame of the chosen columns of `X`, shape (n_samples, n_features), which is read in blocks of rows.

        ValueError, with the row and column, if a square is not finite.
        """
        n_rows = max(1, min(_BLOCK_ROWS, _BLOCK_ENTRIES // max(1, X.shape[1])))

        def blocks() -> Iterator[np.ndarray]:
            # NumPy's reductions over many short rows take ten times as long as over a transposed copy.
            for begin in range(0, len(X), n_rows):
                yield np.ascontiguousarray(X[begin : begin + n_rows][:, columns].T)

        low = np.min([block.min(axis=1) for block in blocks()], axis=0).astype(float)
        high = np.max([block.max(axis=1) for block in blocks()], axis=0).astype(float)
        _check_squares(X, low, high)
        span = float((high - low).max(initial=0.0))
        if span == 0:
            return cls(low, 1.0, low, 1.0, 0.0)

        def scaled() -> Iterator[np.ndarray]:
            return ((block - low[:, None]) / span for block in blocks())

        mean = np.sum([block.sum(axis=1) for block in scaled()], axis=0) / len(X)
        squares = [((block - mean[:, None]) ** 2).sum(axis=1) for block in scaled()]
        variance = np.sum(squares, axis=0) / len(X)
        mean = low + span * mean
        spread = span * float(np.sqrt(variance[high > low].mean()))
        length = span * float(np.sqrt(variance.sum()))
        radius = _one_length((np.einsum("fp,fp->p", block, block, dtype=float) for block in blocks()), length)
        sample = X[:: max(1, len(X) // _SAMPLE_ROWS)][:, columns]
        origin = np.zeros_like(mean) if radius else mean
        unit = radius or spread
        unit = 1.0 if abs(unit - 1) <= _STANDARD else unit
        return cls(origin, unit, mean, spread, length, needs_double(sample, low, high))

    @property
    def is_standard(self) -> bool:
        """Whether `into` leaves the data unchanged."""
        return self.unit == 1 and bool((np.abs(self.origin) <= _STANDARD).all())

    def into(self, X: np.ndarray) -> np.ndarray:
        """Convert rows, shape (n_rows, n_features), into this frame; in double precision if `is_far`.

        Returns a copy with the type of `X`, or `X` itself if the frame leaves it unchanged.
        """
        dtype = np.float64 if self.is_far else X.dtype
        if self.is_standard:
            return X.astype(dtype, copy=False)
        out = np.empty(X.shape, dtype)
        for begin in range(0, len(X), _BLOCK_ROWS):
            block = slice(begin, begin + _BLOCK_ROWS)
            out[block] = (X[block] - self.origin) / self.unit
        return out

    def out_of(self, points: np.ndarray) -> np.ndarray:
        """Convert points of this frame, shape (n_points, n_features), into the unit of the data."""
        return points if self.is_standard else points * self.unit + self.origin

    def whole_cost(self, n_samples: int, power: int) -> float:
        """Approximate cost of all points in one cluster, in this frame; `n_samples` if all points are equal."""
        return n_samples * (self.length / self.unit or 1.0) ** power


def needs_double(rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> bool:
    """Whether a number is so far from the others that single precision would lose them.

    `rows` are some of the rows, and `low` and `high`, shape (n_features,), the ends of the columns of all.
    """
    center = np.median(rows, axis=0)
    away = np.abs(rows - center).max(axis=1)
    if np.median(away) == 0:
        # Most rows are equal, and the others must not be lost.
        away = away[away > 0]
    typical = float(np.median(away)) if len(away) else 0.0
    return 0 < _FAR * typical < float(np.maximum(high - center, center - low).max())


def _check_squares(X: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """Raise a ValueError, with the row and column, if squares of numbers between these ends over- or underflow."""
    with np.errstate(over="ignore", under="ignore"):
        summed, square = (
            X.size * np.maximum(-low, high).max(initial=0.0) ** 2,
            (high - low).max(initial=0.0) ** 2,
        )
    if np.isfinite(summed) and (square or (low == high).all()):
        return
    row, column = divmod(int(np.abs(X).argmax()), X.shape[1])
    raise ValueError(
        f"X holds {X[row, column]:g} in row {row}, column {column}, and squares of such numbers are too "
        f"{'small: multiply' if np.isfinite(summed) else 'large: correct or leave out such rows, or divide'} X by a "
        "power of ten"
    )


def _one_length(squares: Iterable[np.ndarray], reach: float) -> float:
    """The length that all rows have, whose squared lengths are given in blocks; 0 if the lengths differ.

    The lengths are compared with `reach` as well, the root of the mean squared distance of a row to the mean, because
    all rows have about the same length if the data are far from the origin. They have none if `reach` is small.
    """
    radius = 0.0
    for block in squares:
        norms = np.sqrt(block)
        radius = radius or float(norms.max())
        # Rows of zeros do not count: scikit-learn's `normalize` leaves them as zeros.
        if not (np.abs(norms[norms > 0] - radius) <= _ONE_LENGTH * min(radius, reach)).all():
            return 0.0
    return radius if reach > _CLOSE * radius else 0.0
