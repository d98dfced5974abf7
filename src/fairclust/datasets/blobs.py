"""Toy blobs in the plane, the data set of the quickstart."""

from __future__ import annotations

import numpy as np

from fairclust.datasets.generate import Generated


def make_group_blobs(n_rows: int = 600, seed: int = 0) -> Generated:
    """Draw three round blobs of one size on a circle of radius 3, in random order.

    A row of a blob belongs to the blob's own group of three with probability 0.7, and to the others with 0.15 each. A
    clustering that finds the blobs is therefore unfair.
    """
    if n_rows < 1:
        raise ValueError("n_rows must be positive")
    rng = np.random.default_rng(seed)
    blob = rng.permutation(np.arange(n_rows) % 3)
    angle = 2.0 * np.pi * blob / 3
    centre = 3.0 * np.column_stack([np.cos(angle), np.sin(angle)])
    X = centre + rng.normal(scale=0.6, size=(n_rows, 2))
    other = rng.integers(1, 3, size=n_rows)
    shift = np.where(rng.random(n_rows) < 0.7, 0, other)
    return Generated(X, ((blob + shift) % 3).astype(np.int32), ("x", "y"), ("A", "B", "C"))
