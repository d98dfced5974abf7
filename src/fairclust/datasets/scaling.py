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
    """Centre the columns in place and divide them by their population standard deviations; returns means, deviations (0
    if constant) and which columns are constant, by comparing values, because rounding would give them tiny deviations.

    Plain sums along the rows, block after block, give the same bits on every machine, unlike einsum and BLAS.
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
    """Scale each column in place to reach from 0 to 1 (0 if constant); returns minima and widths."""
    low = X.min(axis=0)
    width = X.max(axis=0) - low
    for block in _blocks(X):
        block -= low
        block /= np.where(width > 0, width, 1.0)
    return low, width


def unit_rows(X: np.ndarray) -> int:
    """Divide each row by its Euclidean norm, in place; returns the number of rows of zeros, which stay as they are."""
    zero_rows = 0
    for block in _blocks(X):
        norm = np.sqrt(np.square(block).sum(axis=1, keepdims=True))
        zero = norm == 0.0
        zero_rows += int(zero.sum())
        norm[zero] = 1.0
        block /= norm
    return zero_rows
