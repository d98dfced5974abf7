"""The origin and the unit of data: methods work on centred and scaled rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.preprocessing import normalize

from fairclust.stored import Stored

# The most rows and the most numbers of a block, and the most rows of a block in which lengths are compared.
_BLOCK_ROWS, _BLOCK_ENTRIES = 1 << 17, 1 << 23
_LENGTH_ROWS = 1 << 12
# All rows have one length if their lengths differ by at most this fraction of the length, and of the root mean squared
# distance of a row to the mean.
_ONE_LENGTH = 1e-5
# Numbers more than _FAR typical distances from the median are far: single precision would lose the other rows beside
# them. At more than _LARGEST typical distances, not even double precision holds their squares.
_FAR, _LARGEST, _FEW_ROWS = 1e3, 1e140, 1 << 10
# A unit this close to 1 is set to 1. If the origin is also this close to 0, the data are not changed.
_STANDARD = 1e-7


class Frame(NamedTuple):
    """The origin and the unit of the data. Methods work on ``(X - origin) / unit``, numbers of order one.

    Labels then do not depend on the unit or the origin of the data, and squares neither overflow nor vanish.
    """

    origin: np.ndarray  # `mean`; zeros if all rows have one length, or for a sparse matrix
    # `spread`. If all rows have one length, as after scikit-learn's `normalize`, it is that length. Rows of length one
    # and standardised columns are therefore not changed.
    unit: float
    mean: np.ndarray  # of each column
    spread: float  # root of the mean variance of the columns that are not constant; 1 if all are constant
    length: float  # root of the mean squared distance of a row to the mean
    # Whether some numbers are so far from the others that distances must be computed in double precision.
    is_far: bool = False

    @classmethod
    def plain(cls, n_features: int) -> Frame:
        """The frame that leaves data with `n_features` columns unchanged."""
        return cls(np.zeros(n_features), 1.0, np.zeros(n_features), 1.0, 0.0)

    @classmethod
    def of(cls, X: np.ndarray, columns: Any = slice(None)) -> Frame:
        """The frame of the chosen columns of `X`, shape (n_samples, n_features), which is read in blocks of rows."""

        most = max(1, min(_BLOCK_ROWS, _BLOCK_ENTRIES // max(1, X.shape[1])))

        def blocks(n_rows: int = most) -> Iterator[np.ndarray]:
            # NumPy's reductions over many short rows take ten times as long as over a transposed copy.
            for begin in range(0, len(X), n_rows):
                yield np.ascontiguousarray(X[begin : begin + n_rows][:, columns].T)

        low = np.min([block.min(axis=1) for block in blocks()], axis=0).astype(float)
        high = np.max([block.max(axis=1) for block in blocks()], axis=0).astype(float)
        # Halves are subtracted, because the difference of two finite numbers may overflow.
        reach = float((high / 2 - low / 2).max(initial=0.0))
        if reach == 0:
            return cls(low, 1.0, low, 1.0, 0.0)

        def scaled() -> Iterator[np.ndarray]:
            return ((block / 2.0 - low[:, None] / 2) / reach for block in blocks())

        mean = np.sum([block.sum(axis=1) for block in scaled()], axis=0) / len(X)
        squares = [((block - mean[:, None]) ** 2).sum(axis=1) for block in scaled()]
        variance = np.sum(squares, axis=0) / len(X)
        mean = low + 2 * reach * mean
        spread = 2 * reach * float(np.sqrt(variance[high > low].mean()))
        length = 2 * reach * float(np.sqrt(variance.sum()))
        largest = float(np.maximum(np.abs(low), np.abs(high)).max())
        # If the lengths differ, the first block shows it in most cases, and the rows after it are not read.
        radius = largest * _one_length(
            (block / largest for block in blocks(min(most, _LENGTH_ROWS))), length / largest
        )
        unit = radius or spread
        unit = 1.0 if abs(unit - 1) <= _STANDARD else unit
        return cls(np.zeros_like(mean) if radius else mean, unit, mean, spread, length)

    @classmethod
    def of_sparse(cls, X: Any) -> Frame:
        """The frame of a sparse matrix. Its origin is zero, because centred rows would not be sparse."""
        n = X.shape[0]
        largest = float(abs(X).max()) or 1.0
        scaled = X / largest
        squares = np.asarray(scaled.multiply(scaled).sum(axis=0)).ravel() / n
        mean = np.asarray(scaled.sum(axis=0)).ravel() / n
        # A variance within rounding error counts as zero.
        variance = np.where(squares - mean**2 > 1e-12 * squares, squares - mean**2, 0.0)
        if not (variance > 0).any():
            return cls(np.zeros(X.shape[1]), largest, mean * largest, 1.0, 0.0)
        spread = largest * float(np.sqrt(variance[variance > 0].mean()))
        norms = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
        length = largest * float(np.sqrt(variance.sum()))
        unit = largest * _one_length([norms[None]], length / largest) or spread
        unit = 1.0 if abs(unit - 1) <= _STANDARD else unit
        return cls(np.zeros(X.shape[1]), unit, mean * largest, spread, length)

    def stored(self) -> dict[str, Any]:
        """What `into` needs, for a saved model."""
        return {"origin": self.origin.tolist(), "unit": float(self.unit), "far": self.is_far}

    @classmethod
    def from_stored(cls, stored: Stored, n_features: int) -> Frame:
        """The frame of a saved model."""
        origin, unit = stored.array("origin", n_features), stored.number("unit")
        return cls.plain(n_features)._replace(origin=origin, unit=unit, is_far=stored.flag("far"))

    @property
    def is_standard(self) -> bool:
        """Whether `into` leaves the data unchanged."""
        return self.unit == 1 and bool((np.abs(self.origin) <= _STANDARD).all())

    def around_most_rows(self, X: np.ndarray, n_clusters: int) -> Frame:
        """This frame or, if some numbers are far from the others, one whose origin and unit are those of most rows.

        ValueError, with the row and column, if a number is so far from the others that its square is not finite.
        """
        if not X.size:
            return self
        rows = np.array(X[:: max(1, len(X) // _FEW_ROWS)], dtype=np.float64)
        center = np.median(rows, axis=0)
        reach = np.maximum(X.max(axis=0) - center, center - X.min(axis=0))
        rows -= center
        # Squares of the far numbers may overflow, and relative to these the squares of the others may be zero.
        scale = float(np.median(np.abs(rows).max(axis=1))) or float(reach.max()) or 1.0
        typical = scale * typical_distance(np.clip(rows / scale, -_LARGEST, _LARGEST), n_clusters)
        if not typical or reach.max() <= _FAR * typical:
            return self
        if reach.max() / _LARGEST > typical:
            column = int(reach.argmax())
            row = int(np.abs(X[:, column] - center[column]).argmax())
            raise ValueError(
                f"X holds {X[row, column]:g} in row {row}, column {column}, which is too far from the other rows for "
                "a sum of squares: correct or leave out such rows"
            )
        return self._replace(origin=center, unit=typical, is_far=True)

    def left_alone(self) -> Frame:
        """A copy of this frame that leaves the data unchanged, with the same `mean`, `spread` and `length`."""
        return self._replace(origin=np.zeros_like(self.origin), unit=1.0)

    def into(self, X: np.ndarray) -> np.ndarray:
        """Convert rows, shape (n_rows, n_features), into this frame; in double precision if `is_far`.

        Returns a copy with the type of `X`, or `X` itself if the frame leaves it unchanged. ValueError if `X` is
        sparse and the origin of the frame is not zero.
        """
        dtype = np.float64 if self.is_far else X.dtype
        if self.is_standard:
            return X.astype(dtype, copy=False)
        if sp.issparse(X):
            if self.origin.any():
                raise ValueError("X is sparse and the rows of fit were not: pass X.toarray()")
            return X / self.unit
        out = np.empty(X.shape, dtype)
        for begin in range(0, len(X), _BLOCK_ROWS):
            block = slice(begin, begin + _BLOCK_ROWS)
            out[block] = (X[block] - self.origin) / self.unit
        return out

    def out_of(self, points: np.ndarray) -> np.ndarray:
        """Convert points of this frame, shape (n_points, n_features), into the unit of the data."""
        return points if self.is_standard else points * self.unit + self.origin

    def cost_unit(self, power: int) -> float:
        """The unit of distances (`power` 1) or squared distances (2); 0 or infinite if it under- or overflows."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.float64(self.unit) ** power)

    def whole_cost(self, n_samples: int, power: int) -> float:
        """Approximate cost of all points in one cluster, in this frame; `n_samples` if all points are equal."""
        with np.errstate(over="ignore"):
            return float(n_samples * np.float64(self.length / self.unit or 1.0) ** power)

    def weight_into(self, weight: float, power: int) -> float:
        """Convert a weight with the unit of costs, that is of distances to the given power, into this frame."""
        if weight == 0:
            return 0.0
        with np.errstate(over="ignore", divide="ignore"):
            return float(np.float64(weight) / self.cost_unit(power))


def as_directions(X: Any, name: str = "X") -> Any:
    """The rows of `X`, an array or a CSR matrix of shape (n_rows, n_features), divided by their lengths.

    ValueError, with `name` and the row, if all numbers of a row are zero.
    """
    largest = abs(X).max(axis=1)
    largest = largest.toarray().ravel() if sp.issparse(X) else largest
    zero = largest == 0
    if zero.any():
        raise ValueError(
            f"{name} has only zeros in row {int(zero.argmax())}, which has no direction, and metric='cosine' compares "
            f"directions; rows of zeros: {zero.sum()}. Leave them out"
        )
    # Divided by their largest number first, because squares may over- or underflow.
    if sp.issparse(X):
        found = X.copy()
        found.data /= np.repeat(largest, np.diff(X.indptr))
    else:
        found = X / largest[:, None]
    return normalize(found, copy=False)


def typical_distance(rows: np.ndarray, n_clusters: int) -> float:
    """The median distance of a row to the nearest of `n_clusters` rows drawn by k-means++; 0 for as many rows."""
    if n_clusters >= len(rows):
        return 0.0
    seeds = kmeans_plusplus(rows, n_clusters, random_state=0)[0]
    return float(np.median(pairwise_distances_argmin_min(rows, seeds)[1]))


def _one_length(blocks: Iterable[np.ndarray], reach: float) -> float:
    """The length that all rows, in blocks of shape (n_features, n_rows), have; 0 if they differ.

    The lengths are compared with `reach` as well, the root of the mean squared distance of a row to the mean, because
    all rows have about the same length if the data are far from the origin.
    """
    radius = 0.0
    for block in blocks:
        norms = np.sqrt((block**2).sum(axis=0, dtype=float))
        radius = radius or float(norms.max())
        # Rows of zeros do not count: scikit-learn's `normalize` leaves them as zeros.
        if not (np.abs(norms[norms > 0] - radius) <= _ONE_LENGTH * min(radius, reach)).all():
            return 0.0
    return radius
