"""Toy blobs in the plane, the data set of the quickstart."""

from __future__ import annotations

from string import ascii_uppercase

import numpy as np

from fairclust.datasets.generate import Generated


def make_group_blobs(
    n_rows: int = 600,
    n_blobs: int = 3,
    n_groups: int = 3,
    majority: float = 0.7,
    std: float = 0.6,
    seed: int = 0,
) -> Generated:
    """Draw round blobs of one size on a circle of radius 3, in random order; one group dominates each blob.

    A row of blob b belongs to group ``b % n_groups`` with probability `majority`, and the other groups share the rest.
    A clustering that finds the blobs is therefore unfair, the more so the larger `majority` is.
    """
    if min(n_rows, n_blobs) < 1 or n_groups < 2 or not 0.0 <= majority <= 1.0:
        raise ValueError("n_rows and n_blobs must be positive, n_groups at least 2, majority in [0, 1]")
    rng = np.random.default_rng(seed)
    blob = rng.permutation(np.arange(n_rows) % n_blobs)
    angle = 2.0 * np.pi * blob / n_blobs
    centre = 3.0 * np.column_stack([np.cos(angle), np.sin(angle)])
    X = centre + rng.normal(scale=std, size=(n_rows, 2))
    other = rng.integers(1, n_groups, size=n_rows)
    shift = np.where(rng.random(n_rows) < majority, 0, other)
    groups = ((blob + shift) % n_groups).astype(np.int32)
    names = ascii_uppercase[:n_groups] if n_groups <= 26 else [f"group {j + 1}" for j in range(n_groups)]
    return Generated(X, groups, ("x", "y"), tuple(names))
