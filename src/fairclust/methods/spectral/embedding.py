"""Spectral embeddings of a graph, plain and with the same mean in every group (fair spectral clustering).

`spectral_embedding` is Algorithm 3 of Wang et al. (AISTATS 2023), and `nullspace_embedding` is Algorithms 2 and 3 of
Kleindessner et al. (ICML 2019). docs/spectral.md says where they differ from the papers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh, eigvalsh, null_space, qr
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from threadpoolctl import threadpool_limits

from fairclust.base import Diverged, NotSupported
from fairclust.kernels.graph import AffinityGraph

# Up to this many nodes, computing all eigenvectors with LAPACK is as fast as computing a few with Lanczos' method, and
# it never fails.
_DENSE_MAX_NODES = 500
# With groups, the number of connected components that are distinguished for each embedding component.
_PIECES = 10
# Two eigenvalues coincide if they differ by less than this share of the spectrum's width. The last digits then decide
# which of their eigenvectors a solver finds.
_COINCIDE = 1e-6
# Tolerance and restarts of the solver for the next eigenvalue. If it does not converge, the two are taken as different.
_NEXT_TOL, _NEXT_RESTARTS = 1e-4, 5
# Size of the basis of Davidson's method, in blocks, and the least size of its divisors, relative to the eigenvalue.
_DAVIDSON_BLOCKS, _LEAST_DIVISOR = 8, 1e-4
# Rounding errors of a product, relative to the spectrum's width. No residual is asked to be smaller.
_ROUNDING = 1e-14
# Number of n x n matrices in memory at the peak of `nullspace_embedding`, including LAPACK's copies.
_DENSE_MATRICES = 4


@dataclass(frozen=True)
class Embedding:
    """Coordinates of the nodes and how well they solve their eigenvalue problem.

    With L the Laplacian and C the constraints (``D^-1/2 L D^-1/2`` and ``D^-1/2 F`` if normalised), P the projector
    onto the null space of C': U holds eigenvectors of ``P L P``.
    """

    coordinates: np.ndarray  # (n_nodes, n_components); ``D^-1/2 U`` if normalised, else U
    eigenvalues: np.ndarray  # (n_components,); eigenvalues of the Laplacian, smallest first
    residual: float  # Largest ``||P L P u - eigenvalue u||``
    constraint: float  # Largest entry of ``|C'U|``, where the columns of C are orthonormal; 0 without groups
    unique: bool  # Whether the eigenvalue after those that were wanted differs from the last of them


class _Problem:
    """The symmetric operator A whose *largest* eigenvalues theta are computed, and its constraints.

    Normalised: ``A = D^-1/2 W D^-1/2``, Laplacian eigenvalue ``1 - theta``. Unnormalised: ``A = W - D``,
    Laplacian eigenvalue ``-theta``. `weight` is the square root of the degrees, or ones.
    """

    def __init__(self, graph: AffinityGraph, laplacian: str, groups: np.ndarray | None) -> None:
        self.graph = graph
        self.normalized = laplacian == "normalized"
        n_nodes = len(graph.degrees)
        self.weight = np.sqrt(graph.degrees) if self.normalized else np.ones(n_nodes)
        # A negative lower bound on the eigenvalues of A.
        self.lowest = -1.0 if self.normalized else -2.0 * float(graph.degrees.max())
        self.basis = np.empty((n_nodes, 0))
        if groups is not None:
            self.basis = np.linalg.qr(_balance(groups) / self.weight[:, None])[0]
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
        column = (slice(None),) + (None,) * (x.ndim - 1)
        if not self.normalized:
            return self._W @ x - self.graph.degrees[column] * x
        if sp.issparse(self._W):
            return self._W @ x
        return (self._W @ (x / self.weight[column])) / self.weight[column]

    def pieces(self) -> tuple[int, np.ndarray]:
        """Number of connected components, and the component of every node. They are numbered by their first nodes."""
        W = self._W
        if not sp.issparse(W):
            # A dense graph is mostly complete. For any other one, SciPy needs a sparse copy.
            if W[0, 1:].all():
                return 1, np.zeros(len(W), int)
            W = sp.csr_array(W)
        # In a symmetric graph these are the strongly connected components. SciPy finds those without copies of a
        # matrix of doubles, which it makes for undirected graphs.
        n_pieces, piece = sp.csgraph.connected_components(W, connection="strong")
        first = np.full(n_pieces, len(piece))
        np.minimum.at(first, piece, np.arange(len(piece)))
        return n_pieces, np.argsort(np.argsort(first))[piece]

    def project(self, x: np.ndarray) -> np.ndarray:
        """``P x``, the part of x that satisfies the constraints."""
        return x - self.basis @ (self.basis.T @ x) if self.basis.shape[1] else x

    def without(self, known: np.ndarray) -> tuple[LinearOperator, dict[str, Any]]:
        """The operator whose largest eigenvalues are those that remain, and options with which ARPACK finds them.

        The constraints and the columns of `known` get an eigenvalue below all others.
        """
        n_nodes = len(self.weight)
        taken = np.hstack([self.basis, known])

        def deflated(x: np.ndarray) -> np.ndarray:
            inside = taken.T @ x
            y = self.apply(x - taken @ inside)
            return y - taken @ (taken.T @ y - 2.0 * self.lowest * inside)

        # The start vector is always the same, and orthogonal to these directions.
        start = np.random.default_rng(0).uniform(-1.0, 1.0, n_nodes)
        start -= taken @ (taken.T @ start)
        operator = LinearOperator((n_nodes, n_nodes), matvec=deflated, matmat=deflated, dtype=float)
        return operator, {"which": "LA", "v0": start, "rng": 0}

    def lanczos(
        self, known: np.ndarray, n_wanted: int, tol: float, max_restarts: int
    ) -> tuple[np.ndarray, float, int]:
        """Vectors of the largest eigenvalues of A, shape (n_nodes, n_wanted), orthogonal to the columns of `known`.

        The second value is the next eigenvalue, which is not known here (nan); the third is the number of vectors that
        have converged.
        """
        operator, options = self.without(known)
        n_vectors = min(len(self.weight), max(4 * (known.shape[1] + n_wanted), 20))
        try:
            U = eigsh(operator, n_wanted, tol=tol, maxiter=max_restarts, ncv=n_vectors, **options)[1]
        except ArpackNoConvergence as error:
            return error.eigenvectors, np.nan, error.eigenvectors.shape[1]
        return U, np.nan, n_wanted

    def davidson(
        self, known: np.ndarray, n_wanted: int, tol: float, max_steps: int
    ) -> tuple[np.ndarray, float, int]:
        """As `lanczos`, with the next eigenvalue, for complete graphs that are not normalised.

        Each step of the block Davidson method (Davidson, J. Comput. Phys. 17, 1975) adds to a basis the residuals of
        the approximate eigenvectors, with each row divided by ``degree - eigenvalue of the Laplacian``.
        """
        degrees, taken = self.graph.degrees, np.hstack([self.basis, known])
        n_nodes, size = len(degrees), n_wanted + 1
        basis, image = np.empty((2, n_nodes, 0))
        # Where W is smooth, the eigenvectors are large at the nodes of the smallest degrees.
        new = np.random.default_rng(0).uniform(-1.0, 1.0, (n_nodes, 2 * size))
        new[:, size:] = np.arange(n_nodes)[:, None] == np.argsort(degrees, kind="stable")[:size]
        for _ in range(max_steps):
            for _ in range(2):  # The second pass removes the rounding errors of the first.
                new -= taken @ (taken.T @ new)
                new = np.linalg.qr(new - basis @ (basis.T @ new))[0]
            basis, image = np.hstack([basis, new]), np.hstack([image, self.apply(new)])
            theta, rotation = np.linalg.eigh(basis.T @ image)
            theta, rotation = theta[::-1], rotation[:, ::-1]
            U, theta = basis @ rotation[:, :size], theta[:size]
            residual = image @ rotation[:, :size] - U * theta
            residual -= taken @ (taken.T @ residual)
            allowed = np.append(np.full(n_wanted, tol), _NEXT_TOL) * np.abs(theta)
            is_open = np.linalg.norm(residual, axis=0) > np.maximum(allowed, -_ROUNDING * self.lowest)
            if not is_open.any():
                break
            if basis.shape[1] + size > _DAVIDSON_BLOCKS * size:
                basis, image = basis @ rotation[:, : 2 * size], image @ rotation[:, : 2 * size]
            divisor = degrees[:, None] + theta[is_open]
            least = _LEAST_DIVISOR * np.abs(theta[is_open])
            new = residual[:, is_open] / np.where(np.abs(divisor) < least, least, divisor)
        return U[:, :-1], float(theta[-1]), n_wanted - int(is_open[:-1].sum())

    def next_after(self, U: np.ndarray) -> float:
        """A lower bound on the largest eigenvalue without the columns of U, which is nearly always the eigenvalue."""
        operator, options = self.without(U)
        if operator.shape[0] <= _DENSE_MAX_NODES:
            return float(eigvalsh(operator.matmat(np.eye(operator.shape[0])))[-1])
        try:
            return float(
                eigsh(
                    operator, 1, tol=_NEXT_TOL, maxiter=_NEXT_RESTARTS, return_eigenvectors=False, **options
                )[0]
            )
        except ArpackNoConvergence:
            return -np.inf

    def embedding(self, U: np.ndarray, wanted: int, following: float = np.nan) -> Embedding:
        """Embedding by the span of the columns of U, which are at least as many eigenvectors as `wanted`.

        It says whether the `following` eigenvalue, which is computed if it is not known, coincides with the last.
        """
        # The solver meets constraints and orthogonality only up to its tolerance, so both are enforced again.
        U = self.project(np.linalg.qr(self.project(U))[0])
        image = self.project(self.apply(U))
        theta, rotation = np.linalg.eigh((U.T @ image + image.T @ U) / 2)
        theta, rotation = theta[::-1], rotation[:, ::-1]
        U, image = U @ rotation, image @ rotation
        # The signs of eigenvectors are arbitrary. The largest entry is made positive, so that all platforms agree.
        signs = np.sign(U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])])
        U, image = U * signs, image * signs
        wanted = min(wanted, len(theta))
        if len(theta) > wanted:
            following = theta[wanted]
        elif np.isnan(following):
            following = self.next_after(U)
        return Embedding(
            coordinates=U / self.weight[:, None],
            eigenvalues=(1.0 if self.normalized else 0.0) - theta,
            residual=float(np.linalg.norm(image - U * theta, axis=0).max()),
            constraint=float(np.abs(self.basis.T @ U).max(initial=0.0)),
            unique=bool(following < theta[wanted - 1] + _COINCIDE * self.lowest),
        )


def _balance(groups: np.ndarray) -> np.ndarray:
    """F: indicators of all groups but the last, minus their shares; shape (n_nodes, n_groups - 1)."""
    onehot = np.eye(groups.max() + 1)[groups]
    return (onehot - onehot.mean(axis=0))[:, :-1]


def _of_pieces(problem: _Problem, n_components: int) -> np.ndarray:
    """Orthonormal eigenvectors of eigenvalue 0, which follow from the connected components, as columns.

    Without groups, there is one for each of the `n_components` largest components, largest first. With groups, they are
    all fair combinations of about `_PIECES` times as many components.
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
    """Eigenvectors of the smallest eigenvalues of a Laplacian, optionally with the same mean in every group.

    No dense matrix is made: the constraint directions are projected out and moved to the far end of the spectrum, so
    that Lanczos' method does not find them. Of a graph in pieces, there may be more columns than `n_components`.
    """
    problem = _Problem(graph, laplacian, groups)
    n_nodes, n_constraints = problem.basis.shape
    n_components = min(n_components, n_nodes - n_constraints)

    # A graph with c components has c leading eigenvectors of the same eigenvalue. Lanczos' method has one start vector
    # and may miss some of them. They are known, so only the others are computed.
    known = _of_pieces(problem, n_components)
    n_left = n_components - known.shape[1]
    if n_left <= 0:
        return problem.embedding(known, n_components)

    if n_nodes <= max(_DENSE_MAX_NODES, 4 * n_components):
        operator = problem.without(known)[0]
        U = eigh(operator.matmat(np.eye(n_nodes)), subset_by_index=[n_nodes - n_left, n_nodes - 1])[1]
        return problem.embedding(np.hstack([known, U]), n_components)

    # Without the degrees' scale, Lanczos' method is slow on a complete graph, and Davidson's method on a sparse one.
    is_sparse = sp.issparse(graph.W)
    solve = problem.lanczos if is_sparse or problem.normalized else problem.davidson
    # Products with a sparse matrix are so short that several threads mostly wait for each other.
    with threadpool_limits(1 if is_sparse else None, user_api="blas"):
        U, following, n_converged = solve(known, n_left, tol, max_iter)
        if n_converged < n_left:
            raise Diverged(
                f"the eigen-solver found {n_components - n_left + n_converged} of {n_components} eigenvectors in "
                f"{max_iter} restarts (tol={tol:g}); allow more, or a larger tolerance"
            )
        return problem.embedding(np.hstack([known, U]), n_components, following)


def nullspace_embedding(
    graph: AffinityGraph,
    n_components: int,
    *,
    groups: np.ndarray,
    laplacian: str = "normalized",
    max_memory_mb: float = 8000.0,
) -> Embedding:
    """The embedding of `spectral_embedding`, by a dense basis Z of the null space of F' (Kleindessner et al. 2019).

    The coordinates are ``H = Z Y``, Y the eigenvectors of ``Z'LZ y = eigenvalue Z'DZ y`` (of ``Z'LZ`` if unnormalised).
    Time grows with the cube of the nodes, memory with the square; above `max_memory_mb` it is `NotSupported`.
    """
    n_nodes = len(graph.degrees)
    check_memory(n_nodes, _DENSE_MATRICES, max_memory_mb, "solver='nullspace'", "use solver='projected'")
    problem = _Problem(graph, laplacian, groups)
    balance = _balance(groups)
    n_constraints = balance.shape[1]
    # The full QR decomposition gives all columns of Q. The last ones are Z.
    Z = qr(balance, mode="full")[0][:, n_constraints:] if n_constraints else np.eye(n_nodes)
    LZ = graph.degrees[:, None] * Z - graph.W.astype(np.float64, copy=False) @ Z
    # The matrices are symmetric. Transposed, they have the memory order that lets LAPACK work in place.
    A = (Z.T @ LZ).T
    del LZ
    B = (Z.T @ (graph.degrees[:, None] * Z)).T if problem.normalized else None
    # All eigenvectors of eigenvalue 0 are kept, because a selection of them would be arbitrary.
    wanted = max(min(n_components, n_nodes - n_constraints), _of_pieces(problem, n_components).shape[1])
    Y = eigh(A, B, subset_by_index=[0, wanted - 1], overwrite_a=True, overwrite_b=True, check_finite=False)[1]
    return problem.embedding(problem.weight[:, None] * (Z @ Y), n_components)


def check_memory(n_nodes: int, n_matrices: int, max_memory_mb: float, what: str, fix: str) -> None:
    """Raise `NotSupported` for dense matrices of n x n doubles beyond a limit, before they are made."""
    needed = n_matrices * 8.0 * n_nodes**2 / 2**20
    if needed > max_memory_mb:
        raise NotSupported(
            f"{what} needs about {needed:,.0f} MB for {n_nodes:,} rows and max_memory_mb is "
            f"{max_memory_mb:,.0f}: {fix}, or raise the limit"
        )
