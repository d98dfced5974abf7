"""The two synthetic data sets of Ziko et al. (2021), four Gaussian blobs in the plane.

The defaults are *Synthetic*; ``n_per_corner=(150, 150, 50, 50), height=2.5, std=0.13`` is *Synthetic-unequal*. Corners,
deviations and seed are those with which the authors' program calls scikit-learn's `make_blobs`, so the points are
theirs: standardised and scaled to unit rows, the fair cut costs 207.80 and 159.75 in k-means, as the paper's table 3
says. Both halvings of *Synthetic* cost nearly the same (the unfair one 195.86), while the fair cut of
*Synthetic-unequal* is also the cheapest one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.datasets import make_blobs

from fairclust.datasets.generate import Generated


def make_synthetic(
    n_per_corner: Sequence[int] = (100, 100, 100, 100),
    height: float = 4.0,
    std: float = 0.1,
    seed: int = 1,
) -> Generated:
    """Draw four blobs at the corners of a rectangle; the lower two are one group, the upper two the other.

    The fair clusters are the left and the right half, 1.1 apart. `n_per_corner` counts the points at lower left, lower
    right, upper left and upper right, and `height` is the distance of the upper from the lower blobs.
    """
    corners = [(1.0, 1.0), (2.1, 1.0), (1.0, 1.0 + height), (2.1, 1.0 + height)]
    X, corner = make_blobs(
        n_samples=list(n_per_corner), centers=corners, cluster_std=std, shuffle=False, random_state=seed
    )
    return Generated(X, (corner // 2).astype(np.int32), ("x", "y"), ("lower", "upper"))
