"""The base class of all methods: the interface that they follow, and the code that they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from numbers import Integral, Real
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, estimator_html_repr
from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from fairclust.frame import Frame
from fairclust.group_encoding import as_array, check_same_order, encode_groups, read_sensitive, split_columns
from fairclust.messages import count, percent, warn
from fairclust.metrics import contingency


class NotSupported(ValueError):
    """The method cannot treat this input, for instance more than two groups. The cell counts as skipped, not failed."""


class Diverged(ArithmeticError):
    """The iteration produced numbers that are not finite; the message says at which step."""


# With more groups than this, `fit` warns if there are fewer rows than cells of the group-by-cluster table.
_MANY_GROUPS = 20


def is_mapped(X: Any) -> bool:
    """Whether the array, or an array of which it is a view, is mapped from a file."""
    while X is not None and not isinstance(X, np.memmap):
        X = getattr(X, "base", None)
    return X is not None


def is_collection(X: Any) -> bool:
    """Whether X is a Dask array or data frame. This does not import Dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def at_least(low: int, numbers: type = Integral) -> list[Interval]:
    """Parameter constraint: `numbers` that are at least `low`."""
    return [Interval(numbers, low, None, closed="left")]


COUNT = at_least(1)
NON_NEGATIVE = at_least(0, Real)
POSITIVE = [Interval(Real, 0, None, closed="neither")]
# The constraints of parameters that several methods have. A method states those of its other parameters, and of
# parameters for which it allows something else.
SHARED: dict[str, list[Any]] = {
    "n_clusters": COUNT,
    "init": [StrOptions({"k-means++"}), "array-like"],
    "n_init": COUNT,
    "max_iter": COUNT,
    "tol": NON_NEGATIVE,
    "tolerance": [Interval(Real, 0, 1, closed="left")],
    "target": [None, dict, "array-like"],
    "match_reference": ["boolean"],
    "precision": [StrOptions({"single", "double"})],
    "max_memory_mb": POSITIVE,
    "verbose": ["verbose"],
    "random_state": ["random_state"],
}


# What is added to the message about a value that is not allowed.
_MEANINGS = {
    "tolerance": " It is how far a share may be off, as a part of itself: 0 is the strictest, and 0.1 allows a tenth.",
    "min_balance": " It is the smallest ratio of two groups in a cluster: 1 asks for groups of equal size.",
}


def record(
    step: int, begin: float, objective: float, clustering: float, fairness: float, **more: Any
) -> dict[str, Any]:
    """A record for `history_`. `begin` is the time, of `perf_counter`, at which the step began."""
    return {
        "step": step,
        "objective": objective,
        "clustering": clustering,
        "fairness": fairness,
        **more,
        "seconds": perf_counter() - begin,
    }


def initial_centers(
    X: np.ndarray,
    n_clusters: int,
    init: Any,
    rng: np.random.RandomState,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Starting centres in the frame of `X`: k-means++ picks (no Lloyd steps), or the given array."""
    if isinstance(init, str):
        seed = int(rng.randint(np.iinfo(np.int32).max))
        return np.asarray(
            kmeans_plusplus(X, n_clusters, sample_weight=weights, random_state=seed)[0], dtype=float
        )
    centers = np.array(init, dtype=float)
    if centers.shape != (n_clusters, X.shape[1]):
        raise ValueError(
            f"init has shape {centers.shape}, expected (n_clusters, n_features) = {(n_clusters, X.shape[1])}"
        )
    if not np.isfinite(centers).all():
        raise ValueError("init has entries that are not finite")
    return centers


def without_empty(labels: np.ndarray, codes: np.ndarray, n_clusters: int) -> np.ndarray:
    """Labels without empty clusters: each empty cluster gets half of every group of the cluster that is then largest.

    Returns a copy, as int32. There must be at least `n_clusters` points.
    """
    labels = labels.astype(np.int32)
    sizes = np.bincount(labels, minlength=n_clusters)
    for k in np.flatnonzero(sizes == 0):
        members = np.flatnonzero(labels == sizes.argmax())
        moved = members[np.argsort(codes[members], kind="stable")][1::2]
        labels[moved] = k
        sizes = np.bincount(labels, minlength=n_clusters)
    return labels


def checked_weights(sample_weight: Any, X: Any) -> np.ndarray | None:
    """Weights of the rows of `X` as floats, shape (n_samples,); None if there are none.

    ValueError unless there is one weight for each row, all are finite and none is negative or masked. Rows of weight 0
    do not count.
    """
    if sample_weight is None:
        return None
    try:
        weights = as_array(sample_weight).astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must hold one number for each row") from None
    if weights.shape != np.shape(X)[:1]:
        raise ValueError(f"sample_weight has shape {weights.shape}, expected {np.shape(X)[:1]}")
    # The limit keeps the sum finite. Masked weights are NaN here, for which both comparisons are false.
    most = np.finfo(np.float64).max / max(len(weights), 1)
    if len(weights) and not ((weights >= 0).all() and 0 < weights.max() < most):
        raise ValueError(
            "sample_weight must be finite and not negative, and not 0 for all rows; rows of weight 0 do not count"
        )
    return weights


def groups_of_rows(sensitive_features: Any, rows: np.ndarray, n_samples: int) -> dict[str, Any] | None:
    """The columns of sensitive features, for some of `n_samples` rows; None if there are none."""
    columns = split_columns(sensitive_features)
    for column in columns.values():
        if _num_samples(column) != n_samples:
            raise ValueError(f"sensitive_features has {_num_samples(column)} rows, expected {n_samples}")
    return {name: _safe_indexing(column, rows) for name, column in columns.items()} or None


def scaled_weights(weights: np.ndarray | None) -> tuple[np.ndarray | None, float]:
    """Divide weights by their mean; returns them and the mean, or None and 1 if there are none or all are 1."""
    if weights is None or (weights == 1).all():
        return None, 1.0
    mean = float(weights.mean())
    return weights / mean, mean


def with_nan(X: Any) -> Any:
    """Rows whose masked cells and pandas' NA are NaN. ValueError, with the name of the column, for dates and texts."""
    if np.ma.is_masked(X):
        return np.ma.filled(np.ma.asarray(X).astype(np.float64), np.nan)
    if hasattr(X, "to_pandas"):  # tables of polars and pyarrow
        X = X.to_pandas()
    if not hasattr(X, "iloc"):
        if getattr(getattr(X, "dtype", None), "kind", "O") in "mM":
            raise ValueError("X holds dates or durations: pass numbers, such as the days since some date")
        return X
    X = X.copy(deep=False)
    for place in range(X.shape[1] if X.ndim == 2 else 0):
        column = X.iloc[:, place]
        if getattr(column.dtype, "kind", "O") in "mM":
            raise ValueError(
                f"X holds dates or durations in column {X.columns[place]!r}: leave it out, or pass numbers, such as "
                "the days since some date"
            )
        if isinstance(column.dtype, np.dtype) and column.dtype != object:
            continue
        try:
            X.isetitem(place, column.to_numpy(dtype=np.float64, na_value=np.nan))
        except (ValueError, TypeError):
            first = next(cell for cell in column.dropna() if not isinstance(cell, Real))
            raise ValueError(
                f"X holds {first!r} in column {X.columns[place]!r}, which is no number: leave the column out, or "
                "encode it, for example by scikit-learn's OneHotEncoder"
            ) from None
    return X


@dataclass(init=False, eq=False, repr=False)
class _Clusters:
    """The parameters that all methods have; the others of a method are its own fields, by keyword only."""

    n_clusters: int = 8
    random_state: Any = field(default=None, kw_only=True)


class FairClusterer(_Clusters, ClusterMixin, BaseEstimator, ABC):
    """Base of all methods: validation, groups, `fit`, `fit_predict`.

    A method implements ``_fit(X, codes)``, which sets `labels_`, `n_iter_`, `history_` and, if it has centres,
    `cluster_centers_`. `X` is a finite float matrix and `codes` are group codes. This class centres and scales the
    matrix, see `Frame`, and converts costs and centres back into the unit of the data after the fit.

    The parameters below are those that several methods share. The docstring of a method has its other ones, and those
    that mean something else there.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    target : None, mapping or array-like of shape (n_groups,), default=None
        Target shares U. None takes the shares of the data.
    init : "k-means++" or array-like of shape (n_clusters, n_features), default="k-means++"
    precision : "single" or "double", default="single"
        Arithmetic of the distances or potentials and of softmax rows. Sums are always double.
    verbose : int, default=0
        1 prints the objective and the fairness term of every outer step.
    random_state : int, RandomState or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    groups_ : ndarray of shape (n_groups,)
        The distinct values of the sensitive column, sorted.
    n_iter_ : int
    history_ : list of dict
        One record per outer step: objective, clustering term, fairness term, seconds.

    Examples
    --------
    >>> import numpy as np
    >>> from fairclust import FairClusterer
    >>> class Halves(FairClusterer):
    ...     n_clusters = 2
    ...     def _fit(self, X, codes):
    ...         self.labels_ = (X[:, 0] > 0).astype(np.int32)
    ...         self.n_iter_, self.history_ = 1, []
    ...
    >>> Halves().fit([[1.0], [2.0], [8.0], [9.0]], sensitive_features=["a", "b", "a", "b"]).labels_.tolist()
    [0, 0, 1, 1]
    """

    # With this, scikit-learn's metadata routing passes the groups on without a call of `set_fit_request`.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    labels_: np.ndarray
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}
    takes_columns: ClassVar[bool] = False
    """Whether `fit` takes several sensitive columns, and not only one column with their combinations."""
    takes_weights: ClassVar[bool] = False
    """Whether `fit` takes weights of the rows."""
    takes_chunks: ClassVar[bool] = False
    """Whether `fit` takes rows in chunks."""
    # The power of the data's unit with which costs grow; 0 for methods whose objective has no unit.
    _power = 0
    # Whether `fit` needs groups. Without them, all rows are one group.
    _needs_groups: Any = True
    # Weights of penalties, too, have the unit of the costs.
    _COSTS = (
        *("cost_", "lower_bound_", "inertia_", "objective_", "lp_cost_", "fairlet_cost_", "group_costs_"),
        *("lam_", "rho_", "offset_"),
    )
    _LENGTHS = ("radius_", "plain_radius_")
    # The terms of a record of `history_` that are costs.
    _COST_TERMS: ClassVar[tuple[str, ...]] = ("objective", "clustering")
    _frame: Frame
    # Several sensitive columns, or None for one column.
    _sensitive: Any = None
    # For methods whose centres are rows of X: the row of every centre, or -1 for a centre that is none.
    _center_rows: np.ndarray | None = None

    def __dask_tokenize__(self) -> Any:
        # Dask takes the fields of a dataclass for all of its state. They are the parameters, without what a fit found.
        from dask.base import normalize_token

        return normalize_token((type(self), vars(self)))

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None, **given: Any) -> Self:
        """Cluster the rows of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers. Methods with `takes_chunks` also take a path, a Dask collection or a ChunkTable, whose rows
            they read in chunks, see `fairclust.open_chunks`.
        y : ignored
        sensitive_features : array-like of shape (n_samples,)
            The group of every row. Methods with `takes_columns` also take several columns: an array of shape
            (n_samples, n_columns), a data frame, or a mapping. For Parquet files and Dask data frames it is the name
            of the column with the groups. It is not used with a ChunkTable, which has the groups. It may be None if a
            method bounds only sizes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of dense rows in memory, for methods with `takes_weights`: the number of rows for which each row
            stands. Rows of weight 0 do not count, and get the label that `predict` gives them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A parameter, `X`, the groups or the weights are malformed, or there are more clusters than rows.
        NotSupported
            A ValueError: the method cannot treat this input, such as several sensitive columns, or no assignment is
            within its bounds.
        """
        weights = given.pop("sample_weight", None) if self.takes_weights else None
        self._refuse(given)
        check_same_order(X, weights, "sample_weight")
        check_same_order(X, sensitive_features)
        check_same_order(sensitive_features, weights, "sample_weight", "sensitive_features")
        with self._whole_or_not():
            self._fit_weighted(X, sensitive_features, weights)
        return self

    def _refuse(self, given: dict[str, Any]) -> None:
        """Raise an error for arguments that `fit` does not take."""
        if given.pop("sample_weight", None) is not None:
            raise NotSupported(
                f"{type(self).__name__} takes no sample_weight: leave it out, or use PriceFairKMeans or "
                "SociallyFairKMeans"
            )
        if given:
            raise TypeError(f"{type(self).__name__}.fit takes no argument {min(given)!r}")

    @contextmanager
    def _whole_or_not(self) -> Iterator[None]:
        """The context of a fit. If the fit fails, what an earlier one has found stays together."""
        before = self.__dict__.copy()
        try:
            for name in before.keys() - {*self._get_param_names()}:
                if name.endswith("_"):
                    # An earlier fit may have found what this one does not look for.
                    del self.__dict__[name]
            self._counts: Any = None
            yield
        except BaseException as error:
            self.__dict__.clear()
            self.__dict__.update(before)
            if isinstance(error.__cause__, KeyboardInterrupt):
                # In compiled code, Python makes a SystemError of an interrupt, which searches take for a failed fit.
                raise error.__cause__ from None
            raise

    def _fit_weighted(self, X: Any, sensitive_features: Any, weights: Any) -> None:
        """Fit the rows that have a weight, and predict the labels of the others."""
        weights = checked_weights(weights, X)
        if weights is None or weights.all():
            self._fit_rows(X, sensitive_features, weights)
            return
        counted, rest = np.flatnonzero(weights), np.flatnonzero(weights == 0)
        groups = groups_of_rows(sensitive_features, counted, len(weights))
        # An error names a row of all the data, not one of those that count.
        self._validate_params()
        rows = self._valid_rows(X)
        # The numbers of rows without a weight may be too large.
        self._framing(np.where(weights[:, None] != 0, rows, rows[counted[0]]))
        self._group_codes(sensitive_features, len(weights))
        self._fit_rows(_safe_indexing(X, counted), groups, weights[counted])
        labels = np.empty(len(weights), self.labels_.dtype)
        labels[counted] = self.labels_
        others = groups_of_rows(sensitive_features, rest, len(weights))
        labels[rest] = self.predict(_safe_indexing(X, rest), sensitive_features=others)
        self.labels_, self._counts = labels, None

    def _fit_rows(self, X: Any, sensitive_features: Any, weights: np.ndarray | None) -> None:
        self._validate_params()
        X = self._valid_rows(X)
        codes = self._group_codes(sensitive_features, X.shape[0])
        self._check_sizes(X.shape[0])
        self._warn_of_equal_rows(X)
        self._frame = self._framing(X)
        self._fit(self._frame.into(X), codes, *(() if weights is None else (weights,)))
        self._restore(X)
        self._count(codes)

    def _warn_of_equal_rows(self, X: np.ndarray) -> None:
        """Warn if there are fewer different rows than clusters. The count ends as soon as there are enough."""
        different: set[bytes] = set()
        for row in X:
            different.add((row + 0).tobytes())  # 0 and -0 are one number
            if len(different) >= self.n_clusters:
                return
        warn(
            f"X has {count(len(different), 'different row')}, fewer than the {self.n_clusters} clusters, so "
            "clusters are empty or share equal rows. Ask for fewer clusters."
        )

    def _group_codes(self, sensitive_features: Any, n_samples: int) -> np.ndarray:
        """The group of every row. The groups of several columns are the combinations that occur."""
        self._sensitive = None
        if sensitive_features is None and not self._needs_groups:
            self.groups_ = np.array(["all rows"])
            return np.zeros(n_samples, np.int32)
        n_columns = len(split_columns(sensitive_features))
        if n_columns > 1 and not self.takes_columns:
            raise NotSupported(
                f"sensitive_features must be one column: {type(self).__name__} takes one sensitive column, found "
                f"{n_columns}; join several columns into one first, for instance data['sex'] + '-' + data['race'], or "
                "use a method that takes several, such as PriceFairKMeans"
            )
        if n_columns > 1:
            self._sensitive = read_sensitive(sensitive_features, n_samples)
            self.groups_ = self._sensitive.names
            return self._sensitive.codes
        codes, self.groups_ = encode_groups(sensitive_features, n_samples)
        return codes

    def _members(self) -> list[np.ndarray]:
        """For each sensitive column, which groups have which value, shape (n_values, n_groups), as ones and zeros."""
        sensitive = self._sensitive
        if sensitive is None:
            return [np.eye(len(self.groups_))]
        return [sensitive.members(i) for i in range(len(sensitive.columns))]

    def _valid_rows(self, X: Any, *, reset: bool = True) -> np.ndarray:
        """Rows as scikit-learn validates them; the error about a cell that cannot be used names its row and column."""
        X, types = with_nan(X), [np.float64, np.float32]
        try:
            return validate_data(self, X, dtype=types, order="C", reset=reset)
        except ValueError as error:
            if not str(error).startswith("Input X contains"):
                raise
            cells = np.asarray(X, dtype=np.float64)
            bad = ~np.isfinite(cells)
            row, column = np.argwhere(bad)[0]
            names = getattr(X, "columns", None)
            where = f"row {row}, column {column if names is None else repr(names[column])}"
            value = "NaN" if np.isnan(cells[row, column]) else "infinity"
            raise ValueError(
                f"X contains {value} in {where}; cells that are not finite: {bad.sum()}. Fill them in, for example by "
                "scikit-learn's SimpleImputer as the first step of a pipeline, or leave out their rows"
            ) from None

    def _validate_params(self) -> None:
        params, constraints = self.get_params(deep=False), SHARED | self._parameter_constraints
        for name, value in params.items():
            # Booleans are integers in Python, so n_clusters=True would mean one cluster.
            allowed = constraints.get(name, ["boolean"])
            if isinstance(value, bool) and not any(word in allowed for word in ("boolean", "verbose")):
                raise ValueError(f"{name}={value}: {type(self).__name__} takes no boolean there")
        try:
            validate_parameter_constraints(constraints, params, caller_name=type(self).__name__)
        except InvalidParameterError as error:
            meaning = next(
                (text for name, text in _MEANINGS.items() if f"'{name}' parameter" in str(error)), ""
            )
            raise InvalidParameterError(f"{error}{meaning}") from None

    def _check_sizes(self, n_samples: int) -> None:
        """Refuse fewer rows than clusters, and warn if many groups cannot all be in every cluster."""
        if self.n_clusters == 1:
            warn(
                "n_clusters=1 puts all rows in one cluster, so there is nothing to choose. Ask for 2 or more."
            )
        if self.n_clusters > n_samples:
            raise ValueError(f"n_clusters={self.n_clusters} is more than n_samples={n_samples}")
        n_groups = len(self.groups_)
        if n_groups > _MANY_GROUPS and n_groups * self.n_clusters > n_samples:
            warn(
                f"{n_groups} groups in {n_samples} rows are too many for {self.n_clusters} clusters: no "
                "clustering has a row of every group in every cluster, and the fit may take long. Join rare "
                "groups, or cut a sensitive column of numbers into ranges."
            )

    def _framing(self, X: np.ndarray) -> Frame:
        """The frame in which the method works. Rows in a file are not changed, because a copy may not fit in memory."""
        frame = Frame.of(X)
        return frame._replace(origin=np.zeros_like(frame.origin), unit=1.0) if is_mapped(X) else frame

    @property
    def _cost_unit(self) -> float:
        """The unit of costs in the frame of the fit, in that of the data."""
        return self._frame.unit**self._power

    @property
    def _precision(self) -> str:
        """The precision of the fit, which is double if some numbers are far from the others."""
        return "double" if self._frame.is_far else getattr(self, "precision", "single")

    def _framed_init(self) -> Any:
        """`init`, with given centres converted into the frame of the fit."""
        init = getattr(self, "init", None)
        if isinstance(init, str):
            return init
        centers = np.array(init, dtype=float)
        # Centres of a wrong shape are passed on unchanged, because `initial_centers` raises the error.
        fits = centers.ndim == 2 and centers.shape[1] == len(self._frame.origin)
        return self._frame.into(centers) if fits else centers

    def _new_rows(self, X: Any) -> np.ndarray:
        """Validated rows for a fitted model."""
        check_is_fitted(self)
        return self._valid_rows(X, reset=False)

    def _restore(self, X: np.ndarray) -> None:
        """Convert the attributes of the fit from the frame into the unit of the data, that of the rows `X`."""
        frame, rows = self._frame, self._center_rows
        if frame.is_standard:
            return
        centers = getattr(self, "cluster_centers_", None)
        if centers is not None:
            self.cluster_centers_: Any = frame.out_of(centers)
        if rows is not None:
            # The conversion has rounding errors, so centres that are rows are copied.
            self.cluster_centers_[rows >= 0] = X[rows[rows >= 0]]
        for name in self._LENGTHS:
            if hasattr(self, name):
                setattr(self, name, getattr(self, name) * frame.unit)
        if not self._power:
            return
        for name in self._COSTS:
            if hasattr(self, name):
                setattr(self, name, getattr(self, name) * self._cost_unit)
        for record in self.history_:
            for name in self._COST_TERMS:
                if name in record:
                    record[name] *= self._cost_unit

    def _count(self, codes: np.ndarray) -> None:
        """Keep the group-by-cluster table for notebooks, if the labels, perhaps of a user's class, have their form."""
        labels, K = np.asarray(self.labels_), self.n_clusters
        are_usual = labels.shape == codes.shape and labels.dtype.kind in "iu"
        if are_usual and 0 <= labels.min() <= labels.max() < K:
            cells = np.bincount(codes.astype(np.int64) * K + labels, minlength=len(self.groups_) * K)
            self._counts = cells.reshape(-1, K)

    def _html_repr(self) -> str:
        """scikit-learn's diagram and, after a fit, what was asked, the certificate, sizes and shares, for notebooks."""
        diagram = estimator_html_repr(self)
        if getattr(self, "_counts", None) is None:
            return diagram
        counts = pd.DataFrame(self._counts.T, columns=self.groups_)
        counts.loc["all"] = counts.sum()
        sizes = counts.sum(axis=1)
        shares = counts.div(sizes.clip(1), axis=0).map(percent)
        shares.insert(0, "rows", sizes, allow_duplicates=True)
        return f"{diagram}<pre>{escape(repr(self))}</pre>{shares.to_html()}"

    def _complain(self, what: str) -> None:
        """Issue a ConvergenceWarning."""
        warn(f"{type(self).__name__}: {what}", ConvergenceWarning)

    def _complain_of_absent_groups(self, codes: np.ndarray, advice: str) -> None:
        """Warn if a cluster has no row of a group, although it would have at least five by the group's share."""
        table = contingency(self.labels_, codes, self.n_clusters, len(self.groups_))
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / len(codes)
        absent = (table == 0) & (expected >= 5)
        if absent.any():
            group, cluster = np.unravel_index(int(np.where(absent, expected, 0).argmax()), table.shape)
            size = count(int(table[:, cluster].sum()), "row")
            self._complain(
                f"cluster {cluster}, of {size}, has no row of group {self.groups_[group]}; "
                f"the share of this group in the data would give it {expected[group, cluster]:.0f}. {advice}"
            )

    @abstractmethod
    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None: ...
