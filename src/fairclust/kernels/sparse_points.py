"""Points of a sparse matrix. The rows stay sparse, while their distances to the centres are dense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike
from sklearn.utils.extmath import row_norms

from fairclust.kernels.assignment import Potentials
from fairclust.kernels.tiles import TILE, make_layout


@dataclass(kw_only=True)
class SparsePoints(Potentials):
    """CSR points whose potentials are their squared distances to the centres of the last `measure`.

    The distances are computed as ``||x||^2 - 2 x'c + ||c||^2`` in double precision. `shift` is zero, because a shift
    would make the matrix dense.
    """

    X: Any
    shift: np.ndarray
    squares: np.ndarray
    squared: bool = True

    @classmethod
    def pack(
        cls,
        X: Any,
        codes: np.ndarray,
        n_groups: int,
        n_clusters: int,
        *,
        dtype: DTypeLike = np.float32,
    ) -> SparsePoints:
        """Sort rows by group into tiles. The matrix keeps its order."""
        layout = make_layout(codes, n_groups)
        X = X.astype(np.float64, copy=False)
        return cls(
            layout,
            n_groups,
            np.zeros((layout.n_tiles, n_clusters, TILE), dtype),
            np.zeros((layout.n_tiles, TILE), dtype),
            X=X,
            shift=np.zeros(X.shape[1]),
            squares=row_norms(X, squared=True),
        )

    def measure(self, centers: np.ndarray) -> None:
        """Compute the distances to these centres, shape (n_clusters, n_features)."""
        costs = np.asarray(self.X @ centers.T)
        costs *= -2
        costs += self.squares[:, None]
        costs += (centers**2).sum(axis=1)
        np.maximum(costs, 0, out=costs)
        self.set_costs(costs)

    def sums(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cluster sizes, shape (n_clusters,), and sums of the points, shape (n_clusters, n_features)."""
        n = self.X.shape[0]
        indicator = sp.csr_array((np.ones(n), (labels, np.arange(n))), shape=(self.n_clusters, n))
        return np.bincount(labels, minlength=self.n_clusters), (indicator @ self.X).toarray()
