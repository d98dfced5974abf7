"""Scaling of features. It works in place and in blocks, so that a large matrix is not copied."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

BLOCK_ROWS = 1 << 16

MEANING = {
    "standardize": "each feature has mean 0 and population standard deviation 1 (divided by N, not N - 1)",
    "minmax": "each feature reaches from 0 to 1",
    "l2": "each row is divided by its Euclidean norm; a row of zeros stays as it is",
}


def _blocks(X: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(X), BLOCK_ROWS):
        yield X[start : start + BLOCK_ROWS]


def standardize(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centre each column and divide it by its population standard deviation.

    Parameters
    ----------
    X : ndarray of float64, shape (N, d)
        Changed in place. A constant column becomes exactly zero.

    Returns
    -------
    mean, std : ndarray of float64, shape (d,)
        The numbers that were subtracted, and by which was divided; the std of a constant column is 0.
    constant : ndarray of bool, shape (d,)
        Columns with a single value. They are found by comparing values, because rounding in the mean gives such a
        column a tiny nonzero deviation, and a division by it would turn rounding errors into noise.

    Notes
    -----
    Plain sums along the rows, one block after the other, give the same bits on every machine, unlike einsum and BLAS.
    """
    constant = X.min(axis=0) == X.max(axis=0)
    mean = sum(block.sum(axis=0) for block in _blocks(X)) / len(X)
    mean[constant] = X[0, constant]
    for block in _blocks(X):
        block -= mean
    std = np.sqrt(sum(np.square(block).sum(axis=0) for block in _blocks(X)) / len(X))
    # A spread so small that its square underflows counts as zero.
    constant |= std == 0.0
    divisor = np.where(constant, 1.0, std)
    for block in _blocks(X):
        block /= divisor
    return mean, std, constant


def minmax(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shift and divide each column such that it reaches from 0 to 1.

    Parameters
    ----------
    X : ndarray of float64, shape (N, d)
        Changed in place. A constant column becomes exactly zero.

    Returns
    -------
    low, width : ndarray of float64, shape (d,)
        The numbers that were subtracted, and by which was divided; the width of a constant column is 0.
    """
    low = X.min(axis=0)
    width = X.max(axis=0) - low
    for block in _blocks(X):
        block -= low
        block /= np.where(width > 0, width, 1.0)
    return low, width


def unit_rows(X: np.ndarray) -> int:
    """Divide each row by its Euclidean norm.

    Parameters
    ----------
    X : ndarray of float64, shape (N, d)
        Changed in place.

    Returns
    -------
    int
        Number of rows of zeros, which are left as they are.
    """
    zero_rows = 0
    for block in _blocks(X):
        norm = np.sqrt(np.square(block).sum(axis=1, keepdims=True))
        zero = norm == 0.0
        zero_rows += int(zero.sum())
        norm[zero] = 1.0
        block /= norm
    return zero_rows
