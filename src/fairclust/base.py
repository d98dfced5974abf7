"""The contract that every method keeps, and what they share to keep it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import kmeans_plusplus
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data


class NotSupported(ValueError):
    """The method is not made for this input (for instance more than two groups): a skip, not a failure."""


class Diverged(ArithmeticError):
    """The iteration left the finite numbers; the message says at which step."""


def at_least(low: int, kind: type = Integral) -> list[Interval]:
    """Parameter constraint: numbers of `kind` from `low` on."""
    return [Interval(kind, low, None, closed="left")]


INIT = [StrOptions({"k-means++"}), "array-like"]
COUNT = at_least(1)
NON_NEGATIVE = at_least(0, Real)
PRECISION = [StrOptions({"single", "double"})]
POSITIVE = [Interval(Real, 0, None, closed="neither")]


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA refuses to be compared
        return True


def encode_groups(
    sensitive_features: Any, n_samples: int, *, known: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Group codes from one sensitive column.

    Parameters
    ----------
    sensitive_features : array-like of shape (n_samples,) or (n_samples, 1)
        Strings, integers, booleans or categories; no missing values.
    n_samples : int
    known : ndarray of shape (n_groups,), optional
        The groups seen in `fit`; others are an error.

    Returns
    -------
    codes : ndarray of shape (n_samples,), int32
    names : ndarray of shape (n_groups,)
        Sorted distinct values; `known` if given.

    Raises
    ------
    ValueError
        Missing column, wrong length, more than one column, missing values, or values not in `known`.
    """
    if sensitive_features is None:
        raise ValueError(
            "sensitive_features is missing: pass the group of every row, as in "
            "fit(X, sensitive_features=data['sex'])"
        )
    values = np.asarray(sensitive_features)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"sensitive_features must be one column, found shape {values.shape}; join several columns "
            "into one first, for instance data['sex'] + '-' + data['race']"
        )
    if len(values) != n_samples:
        raise ValueError(f"sensitive_features has {len(values)} rows, X has {n_samples}")
    if values.dtype == object:
        missing = np.array([_is_missing(v) for v in values])
        values = np.where(missing, "", values).astype(str)
    else:
        missing = values != values
    if missing.any():
        raise ValueError(
            f"sensitive_features has {int(missing.sum())} missing values (first in row "
            f"{int(missing.argmax())}): drop those rows or give them a group of their own"
        )
    if known is not None and known.dtype.kind == "U":
        values = values.astype(str)
    if known is None:
        names, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.int32), names
    codes = np.minimum(np.searchsorted(known, values), len(known) - 1)
    strange = known[codes] != values
    if strange.any():
        unknown = ", ".join(map(str, np.unique(values[strange])[:5]))
        listed = ", ".join(map(str, known))
        raise ValueError(f"sensitive_features has groups not seen in fit: {unknown}; known: {listed}")
    return codes.astype(np.int32), known


def resolve_target(target: Any, names: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Target shares U of the groups, in the order of `names`.

    Parameters
    ----------
    target : None, mapping of group to share, or array-like of shape (n_groups,)
        None takes the data's own shares.
    names, codes : ndarray
        From `encode_groups`.

    Returns
    -------
    ndarray of shape (n_groups,), float64
        Positive, summing to one.
    """
    if target is None:
        return np.bincount(codes, minlength=len(names)) / len(codes)
    if isinstance(target, Mapping):
        if {str(key) for key in target} != {str(name) for name in names}:
            raise ValueError(
                f"target names {sorted(map(str, target))}, the groups are {[str(n) for n in names]}"
            )
        by_name = {str(key): share for key, share in target.items()}
        target = [by_name[str(name)] for name in names]
    shares = np.asarray(target, dtype=float)
    if shares.shape != (len(names),):
        raise ValueError(
            f"target has shape {shares.shape}, expected one share for each of {len(names)} groups"
        )
    if not (shares > 0).all() or abs(shares.sum() - 1) > 1e-6:
        raise ValueError(f"target must be positive shares that sum to 1, found {shares.tolist()}")
    return shares / shares.sum()


def initial_centers(X: np.ndarray, n_clusters: int, init: Any, rng: np.random.RandomState) -> np.ndarray:
    """Starting centres: k-means++ picks (no Lloyd steps), or the given array.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    n_clusters : int
    init : "k-means++" or array-like of shape (n_clusters, n_features)
    rng : RandomState

    Returns
    -------
    ndarray of shape (n_clusters, n_features), float64
    """
    if isinstance(init, str):
        if init != "k-means++":
            raise ValueError(f"init must be 'k-means++' or an array of centres, found {init!r}")
        seed = int(rng.randint(np.iinfo(np.int32).max))
        return np.asarray(kmeans_plusplus(X, n_clusters, random_state=seed)[0], dtype=float)
    centers = np.array(init, dtype=float)
    if centers.shape != (n_clusters, X.shape[1]):
        raise ValueError(
            f"init has shape {centers.shape}, expected (n_clusters, n_features) = {(n_clusters, X.shape[1])}"
        )
    if not np.isfinite(centers).all():
        raise ValueError("init has entries that are not finite")
    return centers


def without_empty(labels: np.ndarray, codes: np.ndarray, n_clusters: int) -> np.ndarray:
    """Labels as int32 in which each empty cluster has got half of the then largest, half of every group.

    Parameters
    ----------
    labels, codes : ndarray of int, shape (n_samples,)
        Clusters and groups; at least `n_clusters` points.
    n_clusters : int

    Returns
    -------
    ndarray of shape (n_samples,), int32
        A copy.
    """
    labels = labels.astype(np.int32)
    sizes = np.bincount(labels, minlength=n_clusters)
    for k in np.flatnonzero(sizes == 0):
        members = np.flatnonzero(labels == sizes.argmax())
        moved = members[np.argsort(codes[members], kind="stable")][1::2]
        labels[moved] = k
        sizes = np.bincount(labels, minlength=n_clusters)
    return labels


class FairClusterer(ClusterMixin, BaseEstimator, ABC):
    """Base of all methods: validation, groups, `fit`, `fit_predict`.

    A method implements ``_fit(X, codes)``, which sets `labels_`, `n_iter_`, `history_` and, where they exist,
    `cluster_centers_`; `X` is a finite float matrix and `codes` are group codes.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    groups_ : ndarray of shape (n_groups,)
        The distinct values of the sensitive column, sorted.
    n_iter_ : int
    history_ : list of dict
        One record per outer step: objective, clustering term, fairness term, seconds.
    """

    # scikit-learn's metadata routing then passes the groups on without a call of `set_fit_request`.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    n_clusters: int

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> FairClusterer:
        """Cluster the rows of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
        y : ignored
        sensitive_features : array-like of shape (n_samples,)
            The group of every row.

        Returns
        -------
        self
        """
        self._fit(*self._check_input(X, sensitive_features))
        return self

    def _check_input(self, X: Any, sensitive_features: Any) -> tuple[np.ndarray, np.ndarray]:
        """Validated parameters, features and group codes of a fit."""
        self._validate_params()
        X = validate_data(self, X, dtype=[np.float64, np.float32], order="C")
        codes, self.groups_ = encode_groups(self._one_column(sensitive_features), len(X))
        if self.n_clusters > len(X):
            raise ValueError(f"n_clusters={self.n_clusters} is more than n_samples={len(X)}")
        return X, codes

    def _one_column(self, sensitive_features: Any) -> Any:
        """The only sensitive column, of a mapping as well; a method that takes several never asks."""
        if isinstance(sensitive_features, Mapping) and len(sensitive_features) == 1:
            return next(iter(sensitive_features.values()))
        several = isinstance(sensitive_features, Mapping) or np.ndim(sensitive_features) == 2
        if several and (n_columns := len(getattr(sensitive_features, "T", sensitive_features))) > 1:
            raise NotSupported(
                f"sensitive_features must be one column: {type(self).__name__} takes one sensitive column, found "
                f"{n_columns}; join several columns into one first, for instance data['sex'] + '-' + data['race'], or "
                "take a method that knows several, such as PriceFairKMeans"
            )
        return sensitive_features

    def fit_predict(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> np.ndarray:
        """`fit`, then `labels_`."""
        return self.fit(X, sensitive_features=sensitive_features).labels_

    @abstractmethod
    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None: ...
