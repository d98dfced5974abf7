"""Toy blobs in the plane, the data set of the quickstart."""

from __future__ import annotations

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
    """Draw round blobs on a circle; one group dominates each blob.

    A clustering that finds the blobs is unfair. The larger `majority` is, the less fair it is.

    Parameters
    ----------
    n_rows, n_blobs, n_groups : int
        Sizes; the blobs get equally many rows, give or take one.
    majority : float
        Probability that a row of blob b belongs to group ``b % n_groups``; the other groups share the rest.
    std : float
        Standard deviation of a blob; the circle has radius 3.
    seed : int
        Seed of points and groups.

    Returns
    -------
    Generated
        ``X`` (n_rows, 2) in random order, groups 'A', 'B', ... or 'group 1', ... if there are more than 26.

    Raises
    ------
    ValueError
        A size is too small, or `majority` is not a probability.
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
    if n_groups <= 26:
        names = tuple(chr(ord("A") + j) for j in range(n_groups))
    else:
        names = tuple(f"group {j + 1}" for j in range(n_groups))
    return Generated(X, groups, ("x", "y"), names)
