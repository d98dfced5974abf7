"""Newton steps for rows that have many helpers, such as the bound on the mean gap of many groups.

The linear system of `row_system.py` has an unknown for each row and helper. Here both are eliminated in every cluster
by itself, so that a system for the groups remains. The rank of the curvature limits its size, and at low temperatures
few points are near a boundary.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array

# Directions whose curvature is less than this fraction of the largest count as flat.
_FLAT = 1e-13


def row_products(rows: np.ndarray, helpers: np.ndarray) -> tuple[csr_array, csr_array]:
    """Products of the coefficients of each row with each other and with its helpers: sparse, one column for each row.

    Their products with the diagonal of a matrix D are ``G'DG`` and ``G'DB``.
    """
    row, group = np.nonzero(rows)

    def products(other: np.ndarray) -> csr_array:
        # Most coefficients are zero, and a dense array of the products of many groups would not fit in memory.
        of_row, column = np.nonzero(other)
        n_partners = np.bincount(of_row, minlength=len(rows))[row]
        one = np.repeat(np.arange(len(row)), n_partners)
        rank = np.arange(len(one)) - np.repeat(np.cumsum(n_partners) - n_partners, n_partners)
        partner = np.searchsorted(of_row, row)[one] + rank
        found = rows[row[one], group[one]] * other[of_row[partner], column[partner]]
        place = group[one] * other.shape[1] + column[partner], row[one]
        return csr_array((found, place), shape=(rows.shape[1] * other.shape[1], len(rows)))

    return products(rows), products(helpers)


class GroupSystem:
    """As `RowSystem` in `row_system.py`, for rows of shape (n_rows, n_groups) and their `row_products`."""

    def __init__(
        self,
        rows: np.ndarray,
        helpers: np.ndarray,
        blocks: np.ndarray,
        products: tuple[csr_array, csr_array],
    ) -> None:
        self.rows, self.helpers, self.blocks = rows, helpers, blocks
        # Most rows have one helper or none. They contribute to the diagonal of a helper's matrix, the others to all.
        wide = (helpers != 0).sum(axis=1) > 1
        self._narrow, self._wide = np.where(wide[:, None], 0.0, helpers), np.flatnonzero(wide)
        self._outer, self._crossed = products
        values, vectors = np.linalg.eigh(blocks)
        values = np.where(values > _FLAT * values.max(initial=0.0), values, 0.0)
        # H_j = R_j R_j', without the directions that are flat for all groups.
        width = int((values > 0).sum(axis=1).max(initial=0))
        first = blocks.shape[1] - width
        self._roots = vectors[:, :, first:] * np.sqrt(values[:, None, first:])
        self._live = (values[:, first:] > 0).ravel()
        self.n_solved = 0
        self._factors: tuple[np.ndarray, tuple] | None = None

    def apply(self, y: np.ndarray) -> np.ndarray:
        """G H G'y, shape (n_rows, n_clusters)."""
        return self.rows @ self._curved(self.rows.T @ y)

    def _curved(self, prices: np.ndarray) -> np.ndarray:
        return np.matmul(self.blocks, prices[:, :, None])[:, :, 0]

    def solve(
        self, inverse: np.ndarray, right: np.ndarray, below: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `RowSystem.solve`. Several calls with the same `inverse` factorise once."""
        self.n_solved += 1
        if self._factors is None or self._factors[0] is not inverse:
            self._factors = inverse, self._factorise(inverse)
        of_helpers, solve_helpers, cholesky = self._factors[1]
        known = inverse * right
        wanted = self.helpers.T @ known - below
        # The prices that result if the curvature is zero.
        flat = self.rows.T @ known - _by_cluster(of_helpers, _in_clusters(solve_helpers, wanted))
        in_roots = np.matmul(self._roots.transpose(0, 2, 1), flat[:, :, None])[:, :, 0].ravel()
        found = np.zeros(in_roots.shape)
        found[self._live] = cho_solve(cholesky, in_roots[self._live], check_finite=False)
        # The change of the table at the prices.
        curved = np.matmul(self._roots, found.reshape(len(flat), self._roots.shape[2], 1))[:, :, 0]
        v = _in_clusters(solve_helpers, wanted - _by_cluster(of_helpers.transpose(0, 2, 1), curved))
        return known - inverse * (self.rows @ curved + self.helpers @ v), v

    def _factorise(self, inverse: np.ndarray) -> tuple:
        n_clusters, n_groups = inverse.shape[1], self.rows.shape[1]
        pulled = (self._outer @ inverse).T.reshape(n_clusters, n_groups, n_groups)
        of_helpers = (self._crossed @ inverse).T.reshape(n_clusters, n_groups, -1)
        solve_helpers = self._helper_solver(inverse)
        if self.helpers.size:
            pulled = pulled - np.matmul(of_helpers, solve_helpers(of_helpers.transpose(0, 2, 1)))
        # I + R' L R, where L has one matrix of J x J numbers for each cluster.
        roots = self._roots
        width = roots.shape[2]
        system = np.empty((n_groups, width, n_groups, width))
        for j in range(n_groups):
            lowered = pulled[:, j, :, None] * roots.transpose(1, 0, 2)
            system[j] = (roots[j].T @ lowered.reshape(n_clusters, n_groups * width)).reshape(
                width, n_groups, width
            )
        matrix = system.reshape(n_groups * width, n_groups * width)[np.ix_(self._live, self._live)]
        matrix[np.diag_indices(len(matrix))] += 1.0
        return of_helpers, solve_helpers, cho_factor(matrix, check_finite=False)

    def _helper_solver(self, inverse: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """A function that solves ``B' D^-1 B v = right`` in every cluster, by the Sherman-Morrison-Woodbury formula.

        It takes and returns arrays of shape (n_clusters, n_helpers, n_columns).
        """
        diagonal = ((self._narrow**2).T @ inverse).T[:, :, None]
        # Helpers that occur only in rows that cannot change are set to zero.
        one_over = np.where(diagonal > 0, 1.0 / np.where(diagonal > 0, diagonal, 1.0), 0.0)
        wide, weight = self.helpers[self._wide], inverse[self._wide].T
        # A wide row that cannot change has the weight 0 and drops out.
        inner = np.matmul(wide * one_over.transpose(0, 2, 1), wide.T) * weight[:, None, :]
        at = np.arange(len(wide))
        inner[:, at, at] += 1.0

        def solve(right: np.ndarray) -> np.ndarray:
            found = one_over * right
            if not len(wide):
                return found
            low = np.linalg.solve(inner, np.matmul(wide, found)) * weight[:, :, None]
            return found - one_over * np.matmul(wide.T, low)

        return solve


def _by_cluster(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Multiply column k of `vectors` by the k-th matrix."""
    return _in_clusters(partial(np.matmul, matrices), vectors)


def _in_clusters(call: Callable[[np.ndarray], np.ndarray], vectors: np.ndarray) -> np.ndarray:
    """Call a function of arrays of shape (n_clusters, n, 1) with the columns of `vectors`, shape (n, n_clusters)."""
    return call(vectors.T[:, :, None])[:, :, 0].T
