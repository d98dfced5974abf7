"""The lowest cost of any two medoids with balance 1 on the 400 rows of VFC's synthetic data, over all pairs of rows.

    python benchmarks/medoid_bound.py

For each pair of rows as medoids and each size, the cheapest assignment gives every cluster equally many rows of both
groups: of each group, those that gain most. K-medians with balance 1 cannot cost less than the smallest of these.
"""

from __future__ import annotations

import numpy as np

from fairclust.datasets.prepare import standardize, unit_rows
from fairclust.datasets.synthetic import make_synthetic


def main() -> None:
    data = make_synthetic()
    X, groups = data.X, np.unique(np.asarray(data.groups), return_inverse=True)[1]
    standardize(X)
    unit_rows(X)
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    best = np.inf
    for i in range(len(X)):
        # Of each row, how much it costs more at medoid i than at medoid j.
        more = distances[i][:, None] - distances
        first, second = (np.cumsum(np.sort(more[groups == of], axis=0), axis=0) for of in (0, 1))
        costs = distances.sum(axis=0) + (first + second)[:-1].min(axis=0)
        best = min(best, np.delete(costs, i).min())
    print(f"the cheapest two medoids with balance 1 cost {best:.2f}")


if __name__ == "__main__":
    main()
