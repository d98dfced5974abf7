"""Fair k-medians by group prices: exact bounds on shares and sizes, with a certificate."""

from __future__ import annotations

from dataclasses import dataclass

from fairclust.methods._prototypes import MedoidClusterer
from fairclust.methods.price.price_kmeans import PriceFairKMeans


@dataclass(eq=False, repr=False, kw_only=True)
class PriceFairKMedians(MedoidClusterer, PriceFairKMeans):
    """K-medians in which every cluster keeps a bound on its group shares, its balance or its gap.

    `PriceFairKMeans` with Euclidean distances, and with rows of X, the medoids of the clusters, as centres.

    Read 'sum of distances' for 'sum of squared distances' below.

    Parameters
    ----------
    n_init, search : int, default=3, bool, default=False
        As in `PriceFairKMeans`, with other defaults, because medoids take longer than means.

    Examples
    --------
    >>> from fairclust import PriceFairKMedians
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = PriceFairKMedians(2, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [0, 0, 1, 0, 1, 1, 1, 0]
    """

    n_init: int = 3
    search: bool = False
