"""Spectral embeddings of a graph, plain and with the same mean in every group (fair spectral clustering)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh, null_space, qr
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from threadpoolctl import threadpool_limits

from fairclust.base import Diverged, NotSupported
from fairclust.kernels.graph import AffinityGraph

# Below this many nodes all eigenvectors by LAPACK are as fast as a few by Lanczos, and never fail.
_DENSE_MAX_NODES = 500
# With groups, pieces told apart for each component wanted.
_PIECES = 10
# Matrices of n x n numbers that `nullspace_embedding` holds at its peak, LAPACK's copies included.
_DENSE_MATRICES = 4


class NotConverged(Diverged):
    """The eigen-solver used up its iterations; `found` is the embedding by the vectors that did converge."""

    def __init__(self, message: str, found: Embedding) -> None:
        super().__init__(message)
        self.found = found


@dataclass(frozen=True)
class Embedding:
    """Coordinates of the nodes and how well they solve their eigenvalue problem.

    With L the Laplacian and C the constraints (``D^-1/2 L D^-1/2`` and ``D^-1/2 F`` if normalised), P the
    projector onto the null space of C': U holds eigenvectors of ``P L P``.

    Attributes
    ----------
    coordinates : ndarray of shape (n_nodes, n_components)
        ``D^-1/2 U`` if normalised, else U.
    eigenvalues : ndarray of shape (n_components,)
        Of the Laplacian, smallest first.
    n_products : int
        Products with the affinity; 0 for a dense solver.
    residual : float
        Largest ``||P L P u - eigenvalue u||``.
    orthogonality : float
        Largest entry of ``|U'U - I|``.
    constraint : float
        Largest entry of ``|C'U|``, the columns of C orthonormal; 0 without groups.
    """

    coordinates: np.ndarray
    eigenvalues: np.ndarray
    n_products: int
    residual: float
    orthogonality: float
    constraint: float


class _Problem:
    """The symmetric operator whose *largest* eigenvalues are wanted, and its constraints.

    Normalised: ``A = D^-1/2 W D^-1/2``, Laplacian eigenvalue ``1 - theta``. Unnormalised: ``A = W - D``,
    Laplacian eigenvalue ``-theta``. `weight` is the square root of the degrees, or ones.
    """

    def __init__(self, graph: AffinityGraph, laplacian: str, groups: np.ndarray | None) -> None:
        self.graph = graph
        self.normalized = laplacian == "normalized"
        n_nodes = len(graph.degrees)
        self.weight = np.sqrt(graph.degrees) if self.normalized else np.ones(n_nodes)
        # No eigenvalue of A is below; it is negative.
        self.lowest = -1.0 if self.normalized else -2.0 * float(graph.degrees.max())
        self.basis = np.empty((n_nodes, 0))
        if groups is not None:
            self.basis = np.linalg.qr(_balance(groups) / self.weight[:, None])[0]
        self.n_products = 0
        W = graph.W
        if not sp.issparse(W):
            self._W = W.astype(np.float64, copy=False)
            return
        # The columns of the entries take most of the memory of a large graph, so they are not copied.
        entries = W.data.astype(np.float64)
        if self.normalized:
            scale = 1.0 / self.weight
            entries *= np.repeat(scale, np.diff(W.indptr))
            entries *= scale[W.indices]
        self._W = sp.csr_array((entries, W.indices, W.indptr), shape=W.shape)

    def apply(self, x: np.ndarray) -> np.ndarray:
        """``A x`` for a vector or for columns."""
        self.n_products += 1 if x.ndim == 1 else x.shape[1]
        column = (slice(None),) + (None,) * (x.ndim - 1)
        if not self.normalized:
            return self._W @ x - self.graph.degrees[column] * x
        if sp.issparse(self._W):
            return self._W @ x
        return (self._W @ (x / self.weight[column])) / self.weight[column]

    def pieces(self) -> tuple[int, np.ndarray]:
        """Number of connected components, and that of every node, numbered in the order of their first nodes."""
        # In a symmetric graph these are the strongly connected components. SciPy finds those without copies of a
        # matrix of doubles, which it makes for undirected graphs.
        n_pieces, piece = sp.csgraph.connected_components(self._W, connection="strong")
        first = np.full(n_pieces, len(piece))
        np.minimum.at(first, piece, np.arange(len(piece)))
        return n_pieces, np.argsort(np.argsort(first))[piece]

    def project(self, x: np.ndarray) -> np.ndarray:
        """``P x``: what violates the constraints taken out."""
        return x - self.basis @ (self.basis.T @ x) if self.basis.shape[1] else x

    def embedding(self, U: np.ndarray) -> Embedding:
        """Embedding by the span of the columns of U, which nearly are eigenvectors."""
        # Once more: rounding leaves constraints and orthogonality at the level of the solver's tolerance.
        U = self.project(np.linalg.qr(self.project(U))[0])
        image = self.project(self.apply(U))
        theta, rotation = np.linalg.eigh((U.T @ image + image.T @ U) / 2)
        theta, rotation = theta[::-1], rotation[:, ::-1]
        U, image = U @ rotation, image @ rotation
        # Signs are arbitrary: the largest entry is positive, so that all platforms agree.
        signs = np.sign(U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])])
        U, image = U * signs, image * signs
        return Embedding(
            coordinates=U / self.weight[:, None],
            eigenvalues=(1.0 if self.normalized else 0.0) - theta,
            n_products=self.n_products,
            residual=float(np.linalg.norm(image - U * theta, axis=0).max()),
            orthogonality=float(np.abs(U.T @ U - np.eye(U.shape[1])).max()),
            constraint=float(np.abs(self.basis.T @ U).max(initial=0.0)),
        )


def _balance(groups: np.ndarray) -> np.ndarray:
    """F: indicators of all groups but the last, minus their shares; shape (n_nodes, n_groups - 1)."""
    onehot = np.eye(groups.max() + 1)[groups]
    return (onehot - onehot.mean(axis=0))[:, :-1]


def _of_pieces(problem: _Problem, n_components: int) -> np.ndarray:
    """Orthonormal eigenvectors of eigenvalue 0 that are known without computation, as columns.

    Without groups one for each of the largest connected components, largest first, as many as wanted; with
    groups all fair combinations of these, of `_PIECES` times as many components.
    """
    n_constraints = problem.basis.shape[1]
    n_largest = _PIECES * n_components + n_constraints if n_constraints else n_components
    n_pieces, piece = problem.pieces()
    order = np.argsort(-np.bincount(piece, minlength=n_pieces), kind="stable")[:n_largest]
    vectors = np.zeros((len(piece), len(order)))
    for column, number in enumerate(order):
        inside = piece == number
        vectors[inside, column] = problem.weight[inside]
    vectors /= np.linalg.norm(vectors, axis=0)
    return vectors @ null_space(problem.basis.T @ vectors) if n_constraints else vectors


def spectral_embedding(
    graph: AffinityGraph,
    n_components: int,
    *,
    laplacian: str = "normalized",
    groups: np.ndarray | None = None,
    tol: float = 1e-9,
    max_iter: int = 1000,
) -> Embedding:
    """Eigenvectors of the smallest eigenvalues of a Laplacian, optionally among the fair ones alone.

    Matrix-free: a step costs one product with the affinity and, with groups, one with n x (J - 1) numbers.
    The constraint directions are projected out and moved to the far end of the spectrum (Hotelling's
    deflation), so that Lanczos' method never meets them.

    Parameters
    ----------
    graph : AffinityGraph
    n_components : int
        Cut to the number of nodes, and to that of independent fair directions.
    laplacian : "normalized" or "unnormalized"
        ``I - D^-1/2 W D^-1/2`` or ``D - W``.
    groups : ndarray of shape (n_nodes,), optional
        Codes from 0. With them, only coordinates with the same mean in every group are allowed.
    tol : float
        Of the residual, relative to the largest eigenvalue.
    max_iter : int
        Restarts of the implicitly restarted Lanczos method.

    Returns
    -------
    Embedding
        A graph in c pieces has c eigenvalues 0, and any basis of their eigenvectors would do. Without groups
        the `n_components` largest pieces are told apart. With groups all fair combinations of the pieces are
        kept, of ten times as many pieces at most: so there may be more columns than asked for.

    Raises
    ------
    NotConverged

    References
    ----------
    Wang, Lu, Davidson, Bai, Scalable spectral clustering with group fairness constraints, AISTATS 2023,
    Algorithm 3. There the constraint directions get the eigenvalue ``||L_n||_1``; here 3, the normalised
    Laplacian having none above 2 (or four times the largest degree, the other having none above twice that).
    """
    problem = _Problem(graph, laplacian, groups)
    n_nodes, n_constraints = problem.basis.shape
    n_components = min(n_components, n_nodes - n_constraints)

    # A graph in c pieces has c leading eigenvectors of the same eigenvalue, which Lanczos with its one
    # start vector may miss: they are written down, and the others looked for beside them.
    known = _of_pieces(problem, n_components)
    n_left = n_components - known.shape[1]
    if n_left <= 0:
        return problem.embedding(known)

    # One basis for all that Lanczos must not find: the constraints, and what is known already.
    taken = np.hstack([problem.basis, known])

    def deflated(x: np.ndarray) -> np.ndarray:
        inside = taken.T @ x
        y = problem.apply(x - taken @ inside)
        return y - taken @ (taken.T @ y - 2.0 * problem.lowest * inside)

    if n_nodes <= max(_DENSE_MAX_NODES, 4 * n_components):
        U = eigh(deflated(np.eye(n_nodes)), subset_by_index=[n_nodes - n_left, n_nodes - 1])[1]
        problem.n_products = 0
        return problem.embedding(np.hstack([known, U]))

    operator = LinearOperator((n_nodes, n_nodes), matvec=deflated, dtype=float)
    # A fixed start, in the allowed space from the first step on.
    start = np.random.default_rng(0).uniform(-1.0, 1.0, n_nodes)
    start -= taken @ (taken.T @ start)
    options: dict[str, Any] = {"v0": start, "ncv": min(n_nodes, max(4 * n_components, 20)), "rng": 0}
    # Products with a sparse matrix are so short that several threads mostly wait for each other.
    with threadpool_limits(1 if sp.issparse(graph.W) else None, user_api="blas"):
        try:
            U = eigsh(operator, n_left, which="LA", tol=tol, maxiter=max_iter, **options)[1]
        except ArpackNoConvergence as error:
            n_found = error.eigenvectors.shape[1]
            partial = np.hstack([known, error.eigenvectors, start[:, None]])
            raise NotConverged(
                f"the eigen-solver found {known.shape[1] + n_found} of {n_components} eigenvectors in "
                f"{max_iter} restarts (tol={tol:g}); allow more, or a larger tolerance",
                problem.embedding(partial[:, : max(1, partial.shape[1] - 1)]),
            ) from None
    return problem.embedding(np.hstack([known, U]))


def nullspace_embedding(
    graph: AffinityGraph,
    n_components: int,
    *,
    groups: np.ndarray,
    laplacian: str = "normalized",
    max_memory_mb: float = 8000.0,
) -> Embedding:
    """The same fair embedding by a dense basis Z of the null space of F': the first published algorithm.

    ``H = Z Y``, Y the eigenvectors of ``Z'LZ y = eigenvalue Z'DZ y`` (of ``Z'LZ`` if unnormalised). Time
    grows with the cube of the nodes, memory with their square.

    Parameters
    ----------
    graph, n_components, laplacian
        As for `spectral_embedding`.
    groups : ndarray of shape (n_nodes,)
    max_memory_mb : float
        Larger problems are refused.

    Returns
    -------
    Embedding

    Raises
    ------
    NotSupported
        The dense matrices would need more memory.

    References
    ----------
    Kleindessner, Samadi, Awasthi, Morgenstern, Guarantees for spectral clustering with fairness constraints,
    ICML 2019, Algorithms 2 and 3. They take the square root of ``Z'DZ``; the generalised eigenvalue problem
    has the same solutions and saves that.
    """
    n_nodes = len(graph.degrees)
    check_memory(n_nodes, _DENSE_MATRICES, max_memory_mb, "solver='nullspace'", "use solver='projected'")
    problem = _Problem(graph, laplacian, groups)
    balance = _balance(groups)
    n_constraints = balance.shape[1]
    # Householder's reflectors give all of Q; its last columns are Z.
    Z = qr(balance, mode="full")[0][:, n_constraints:] if n_constraints else np.eye(n_nodes)
    LZ = graph.degrees[:, None] * Z - graph.W.astype(np.float64, copy=False) @ Z
    # Transposed, which symmetry allows, so that LAPACK works in place.
    A = (Z.T @ LZ).T
    del LZ
    B = (Z.T @ (graph.degrees[:, None] * Z)).T if problem.normalized else None
    # No fewer than belong to eigenvalue 0: a part of them would be an arbitrary one.
    wanted = max(min(n_components, n_nodes - n_constraints), _of_pieces(problem, n_components).shape[1])
    Y = eigh(A, B, subset_by_index=[0, wanted - 1], overwrite_a=True, overwrite_b=True, check_finite=False)[1]
    found = problem.embedding(problem.weight[:, None] * (Z @ Y))
    return Embedding(**{**vars(found), "n_products": 0})


def check_memory(n_nodes: int, n_matrices: int, max_memory_mb: float, what: str, fix: str) -> None:
    """Refuse dense matrices of n x n doubles beyond a limit, before they are made.

    Raises
    ------
    NotSupported
    """
    needed = n_matrices * 8.0 * n_nodes**2 / 2**20
    if needed > max_memory_mb:
        raise NotSupported(
            f"{what} needs about {needed:,.0f} MB for {n_nodes:,} rows and max_memory_mb is "
            f"{max_memory_mb:,.0f}: {fix}, or raise the limit"
        )
