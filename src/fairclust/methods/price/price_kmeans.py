"""Fair k-means by group prices: exact bounds on shares and sizes, with a certificate."""

from __future__ import annotations

from fairclust.methods.price.in_chunks import PricesInChunks


class PriceFairKMeans(PricesInChunks):
    """K-means in which every cluster keeps bounds on its group shares, its balance or its gap, and on its size.

    Alternates between new centres and the cheapest assignment within the bounds. The dual problem gives this
    assignment as ``argmin_k ||x_p - c_k||^2 + W[g(p), k]`` with a price for each group and cluster. One of three
    criteria is used for each sensitive column: the shares (the default), `min_balance` or `max_gap`.

    Parameters
    ----------
    n_clusters : int, default=8
    tolerance : float or mapping of column to float, default=0.0
        t in [0, 1): the share of group j in every cluster lies in ``[(1 - t) mu_j, mu_j / (1 - t)]``. Columns that a
        mapping does not name are not bounded.
    min_balance : float or mapping of column to float, optional
        Instead of shares, bound the balance of every cluster from below by this number r: ``n_ik >= r n_jk`` for the
        counts of all groups i, j in every cluster k.
    max_gap : float or mapping of column to float, optional
        A bound on Delta, `fairclust.metrics.delta`, instead of shares.
    target : None, mapping or array-like of shape (n_groups,), default=None
        Shares mu for `tolerance`. None takes the shares of the data. For several columns, a mapping of column to
        shares.
    size_min, size_max : int, float, or sequence with one for each cluster, optional
        Smallest and largest size of every cluster. An int is a number of rows, a float is a multiple of
        ``n_samples / n_clusters``. If a size is bounded, `sensitive_features` may be left out of `fit`.
    crossed : bool, default=False
        Whether to bound the combinations of several sensitive columns instead of each column.
    bins : int or mapping of column to int, optional
        The number of ranges, each with about the same number of rows, into which a sensitive column of numbers is cut.
        An int cuts every column with more than 20 different numbers, a mapping the columns that it names.
    mean_tolerance : mapping of column to float, optional
        Instead of shares, bound the mean of a sensitive column of numbers: in every cluster it differs from the mean
        of all rows by at most this many standard deviations. A column with more than 128 different numbers is rounded
        to 128 numbers.
    max_cost, max_cost_increase : float, optional
        A budget instead of a tolerance: the largest cost of the clustering, or its largest increase over plain
        clustering, where 0.05 is 5 %. The smallest tolerance within the budget is found by bisection, in about 16 fits.
    init : {"k-means", "k-means++"} or array-like of shape (n_clusters, n_features), default="k-means"
        "k-means" starts from the result of plain clustering from k-means++ centres. This is fast, and fewer steps with
        prices are needed after it.
    n_init : int, default=10
        Number of starts, of which the cheapest is kept, or the first one whose cost is within `tol` of it. If `init` is
        an array there is one start. The costs of starts differ by a few per cent. For millions of rows, one start may
        have to be enough.
    max_iter : int, default=100
        Largest number of outer steps of each start.
    tol : float, default=1e-5
        A start ends when a step lowers the cost by no more than this fraction.
    precision : "single" or "double", default="single"
        Arithmetic of the distances and softmax rows. Sums are always double.
    verbose : int, default=0
        1 prints the objective and the fairness term of every outer step.
    random_state : int, RandomState or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    groups_ : ndarray of shape (n_groups,)
        The values of a single sensitive column, or the combinations of several that occur.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres of the last assignment, which `predict` uses too.
    cost_ : float
        Sum of the squared distances of the rows to the centres of their labels, each times the weight of the row.
    lower_bound_ : float
        No assignment to these centres within the bounds costs less. A bound of `mean_tolerance` is here one on the mean
        of the rounded numbers.
    gap_ : float
        ``cost_ / best - 1`` is at most this, where best is the least cost of all assignments to these centres that are
        within the bounds or violate them by no more than the labels do, see `fairclust.fair_assignment`.
    violation_ : float
        The largest violation of the bounds by a cell of the group-by-cluster table, in points, or in weight if there
        are weights.
    certificate_ : list of dict
        Cost, lower bound, gap and violation of the fractional assignment of every outer step, and of the labels.
    spread_ : float
        How much dearer than the cheapest of them the dearest of the starts was that ran to its end, as a fraction. The
        certificate is about the centres that the cheapest ended with, and not about other centres.
    tolerance_, tolerance_bound_ : float
        Only with a budget. `tolerance_` is the smallest tolerance found whose assignment is within the budget. At
        `tolerance_bound_` and below, every assignment to these centres costs more than the budget. It is 0 if this was
        shown for no tolerance.
    n_iter_ : int
        Number of outer steps of the start that was kept, without the steps that chose among the starts.
    history_ : list of dict
        One entry for each of these steps. The objective is the lower bound on the cost of each assignment. It never
        rises, because a start ends before a step that would raise it. The fairness term is the violation of the argmin
        at the prices, in points, before rounding.
    converged_ : bool
    n_rounded_ : int
        Number of points that rounding moved away from the argmin at the prices. They cost about the same in two
        clusters.
    scale_, offset_ : float, ndarray of shape (n_groups, n_clusters)
        The assignment map: 1, and the prices. `predict` does not round, so on the training rows it differs from
        `labels_` in `n_rounded_` points.

    Raises
    ------
    ValueError
        In `fit`, if the data cannot meet the bounds. The message names bounds that they can meet.

    Notes
    -----
    Rows may be in files, see `fairclust.open_chunks`. Otherwise the points and their distances to the centres are in
    memory, in single precision: ``4 N (d + K)`` bytes.

    If whole points cannot meet the bounds, as with ``tolerance=0``, the labels violate them by about a point. This
    matters most in clusters of a few points. Rows with weights cannot be split, so the labels violate the bounds by up
    to the weight of a row at a boundary.

    A few points far from all others can make it expensive to meet the bounds to the last point. If `gap_` is more than
    5 % with at least 50 points for each cell of the group-by-cluster table, or more than 100 % with at least 10, `fit`
    therefore also tries labels that violate the bounds by at most a point in every cell, except for rows in chunks or
    with weights. They are kept, with a warning, if they are more than 5 % cheaper. If moving single points and then
    the centres makes them cheaper by more than a third, or by more than 5 % at the same violation, from any start, that
    result is kept. `cost_` may then be below `lower_bound_`, which holds for labels within the bounds.
    """
