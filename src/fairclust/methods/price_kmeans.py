"""Fair k-means by group prices: exact bounds on shares and sizes, with a certificate."""

from __future__ import annotations

from fairclust.methods._price_in_chunks import PricesInChunks


class PriceFairKMeans(PricesInChunks):
    """K-means in which every cluster keeps bounds on its group shares, its balance or its gap, and on its size.

    Alternates centres with the cheapest assignment within the bounds, which is found through its dual:
    ``argmin_k ||x_p - c_k||^2 + W[g(p), k]`` with a price for each group and cluster. One of three criteria
    counts for each sensitive column: the shares (the default), `min_balance` or `max_gap`.

    Parameters
    ----------
    n_clusters : int, default=8
    tolerance : float or mapping of column to float, default=0.0
        t in [0, 1): the share of group j in every cluster lies in ``[(1 - t) mu_j, mu_j / (1 - t)]``. Columns that a
        mapping does not name are not bounded.
    min_balance : float or mapping of column to float, optional
        r: instead, ``n_ik >= r n_jk`` for the counts of all groups i, j in every cluster k.
    max_gap : float or mapping of column to float, optional
        Instead, a bound on Delta, `fairclust.metrics.delta`.
    target : None, mapping or array-like of shape (n_groups,), default=None
        Shares mu for `tolerance`; None takes the data's own. For several columns, a mapping of column to shares.
    size_min, size_max : int, float, or sequence with one for each cluster, optional
        Smallest and largest size of every cluster. An int is a number of rows, a float is a multiple of
        ``n_samples / n_clusters``. If a size is bounded, `sensitive_features` may be left out of `fit`.
    crossed : bool, default=False
        Bound the combinations of several sensitive columns instead of each column.
    bins : int or mapping of column to int, optional
        The number of ranges, with about as many rows each, into which a sensitive column of numbers is cut. An int is
        for every column with more than 20 different numbers, a mapping for the columns that it names.
    mean_tolerance : mapping of column to float, optional
        Instead of shares, bound the mean of a sensitive column of numbers: in every cluster it differs from the mean
        of all rows by at most this many standard deviations. A column with more than 128 different numbers is rounded
        to 128 numbers.
    max_cost, max_cost_increase : float, optional
        A budget instead of a tolerance: the largest cost of the clustering, or its largest increase over plain
        clustering, where 0.05 is 5 %. The smallest tolerance within the budget is found by bisection, in about 16 fits.
    init : {"k-means", "k-means++"} or array-like of shape (n_clusters, n_features), default="k-means"
        "k-means": where plain clustering from k-means++ picks ends, which takes little and leaves few steps.
    n_init : int, default=10
        Starts, of which the cheapest is kept, or the first of those within `tol` of it; one where `init` is
        an array. Starts differ by a few per cent in cost: on millions of rows one may have to do.
    max_iter : int, default=100
        Outer steps of each start.
    tol : float, default=1e-5
        A start ends once the cost falls by no more than this, relatively.
    precision : "single" or "double", default="single"
        Arithmetic of the distances and softmax rows; sums are double always.
    verbose : int, default=0
        1 prints the objective and the fairness term of every outer step.
    random_state : int, RandomState or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    groups_ : ndarray of shape (n_groups,)
        The values of a single sensitive column, or the combinations of several that occur.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres of the last assignment, those that `predict` measures from.
    cost_ : float
        Sum of the squared distances of the rows to the centres of their labels, each times the weight of the row.
    lower_bound_ : float
        What every assignment to these centres within the bounds costs at least.
    gap_ : float
        No assignment to these centres within the bounds, or breaking none of their rows by more than the
        labels do, is cheaper by more than this fraction, see `fairclust.fair_assignment`.
    violation_ : float
        The largest violation of the bounds by a cell of the group-by-cluster table, in points, or in weight if there
        are weights.
    certificate_ : list of dict
        Cost, lower bound, gap and violation of every outer step's fractional assignment, and of the labels.
    tolerance_, tolerance_bound_ : float
        Only with a budget. `tolerance_` is the smallest tolerance that was found to be within the budget. At
        `tolerance_bound_` and below, every assignment to these centres costs more; it is 0 if that was shown for no
        tolerance.
    n_iter_ : int
        Outer steps of the start that was kept, without those that chose among the starts.
    history_ : list of dict
        One entry for each of these steps. The objective is the lower bound on the cost of each assignment, at prices
        that are good enough to go on from: it never rises. The fairness term is the violation of the prices' argmin,
        in points, before rounding.
    converged_ : bool
    n_rounded_ : int
        Points, level between two clusters or nearly so, that were put elsewhere than the prices' argmin.
    scale_, offset_ : float, ndarray of shape (n_groups, n_clusters)
        The assignment map: 1, and the prices. `predict` knows nothing of the rounding: on the training rows
        it differs from `labels_` in `n_rounded_` points.

    Raises
    ------
    ValueError
        In `fit`: bounds that the data cannot meet; the message names those that they can.

    Notes
    -----
    Rows may lie in files, see `fairclust.open_chunks`. Otherwise the points and their distances to the centres are held
    in memory, in single precision: ``4 N (d + K)`` bytes.

    If whole points cannot meet the bounds, as with ``tolerance=0``, the labels violate them by a point or so. This
    matters most in clusters of a few points. Rows with weights cannot be split, so the labels violate the bounds by up
    to the weight of a row at a boundary.

    A few points far from all others can make it expensive to meet the bounds to the last point. If `gap_` is more than
    5 % with at least 50 points for each cell of the group-by-cluster table, or more than 100 % with at least 10, `fit`
    therefore also tries labels that violate the bounds by at most a point in every cell, except for rows in chunks or
    with weights. They are kept, with a warning, if they are more than 5 % cheaper. If moving single points and then
    the centres makes them cheaper by more than a third, or by more than 5 % at the same violation, from any start, that
    result is kept. `cost_` may then be below `lower_bound_`, which holds for labels within the bounds.
    """
