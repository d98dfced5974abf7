"""The contract that every method keeps, and what they share to keep it."""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data


class NotSupported(ValueError):
    """The method is not made for this input (for instance more than two groups): a skip, not a failure."""


class Diverged(ArithmeticError):
    """The iteration left the finite numbers; the message says at which step."""


_BLOCK_ROWS = 1 << 17
# Beyond so many, groups that outnumber the rows of a cluster are worth a word.
_MANY_GROUPS = 20
# Rows whose lengths differ by no more than this part of their distance to the mean have one length.
_ONE_LENGTH = 1e-5
# Data this close to mean zero and mean variance one are taken as they are.
_STANDARD = 1e-7


def _is_mapped(X: Any) -> bool:
    """Whether the rows lie in a file."""
    while X is not None and not isinstance(X, np.memmap):
        X = getattr(X, "base", None)
    return X is not None


class Frame(NamedTuple):
    """Where the data lie and how large they are.

    Methods work on ``(X - origin) / unit``, numbers of order one. Labels then do not depend on the unit or the
    origin of the data, and squares neither overflow nor vanish.

    Attributes
    ----------
    origin : ndarray of shape (n_features,)
        `mean`; zeros if all rows have one length.
    unit : float
        `spread`. Where all rows have one length, as after scikit-learn's `normalize`, it is that length. Rows of
        length one, and standardised columns, thus stay as they are.
    mean : ndarray of shape (n_features,)
    spread : float
        Root of the mean variance of the columns that are not constant.
    length : float
        Root of the mean squared distance of a row to the mean.
    """

    origin: np.ndarray
    unit: float
    mean: np.ndarray
    spread: float
    length: float

    @classmethod
    def plain(cls, n_features: int) -> Frame:
        """The frame of data that stay as they are."""
        return cls(np.zeros(n_features), 1.0, np.zeros(n_features), 1.0, 0.0)

    @classmethod
    def of(cls, X: np.ndarray, columns: Any = slice(None)) -> Frame:
        """The frame of some columns of rows, shape (n_samples, n_features), which are read in blocks."""

        def blocks() -> Iterator[np.ndarray]:
            for begin in range(0, len(X), _BLOCK_ROWS):
                yield X[begin : begin + _BLOCK_ROWS][:, columns]

        low = np.min([block.min(axis=0) for block in blocks()], axis=0).astype(float)
        high = np.max([block.max(axis=0) for block in blocks()], axis=0).astype(float)
        # Halves, because the difference of two finite numbers may overflow.
        reach = float((high / 2 - low / 2).max(initial=0.0))
        if reach == 0:
            return cls(low, 1.0, low, 1.0, 0.0)

        def scaled() -> Iterator[np.ndarray]:
            return ((block / 2.0 - low / 2) / reach for block in blocks())

        mean = np.sum([block.sum(axis=0) for block in scaled()], axis=0) / len(X)
        variance = np.sum([((block - mean) ** 2).sum(axis=0) for block in scaled()], axis=0) / len(X)
        mean = low + 2 * reach * mean
        spread = 2 * reach * float(np.sqrt(variance[high > low].mean()))
        length = 2 * reach * float(np.sqrt(variance.sum()))
        largest = float(np.maximum(np.abs(low), np.abs(high)).max())
        radius = largest * _one_length((block / largest for block in blocks()), length / largest)
        unit = radius or spread
        unit = 1.0 if abs(unit - 1) <= _STANDARD else unit
        return cls(np.zeros_like(mean) if radius else mean, unit, mean, spread, length)

    @classmethod
    def of_sparse(cls, X: Any) -> Frame:
        """The frame of a sparse matrix, whose origin stays where it is: a shift would fill the matrix."""
        n = X.shape[0]
        largest = float(abs(X).max()) or 1.0
        scaled = X / largest
        squares = np.asarray(scaled.multiply(scaled).sum(axis=0)).ravel() / n
        mean = np.asarray(scaled.sum(axis=0)).ravel() / n
        # A column whose variance is rounding is constant.
        variance = np.where(squares - mean**2 > 1e-12 * squares, squares - mean**2, 0.0)
        if not (variance > 0).any():
            return cls(np.zeros(X.shape[1]), largest, mean * largest, 1.0, 0.0)
        spread = largest * float(np.sqrt(variance[variance > 0].mean()))
        norms = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
        length = largest * float(np.sqrt(variance.sum()))
        unit = largest * _one_length([norms[:, None]], length / largest) or spread
        unit = 1.0 if abs(unit - 1) <= _STANDARD else unit
        return cls(np.zeros(X.shape[1]), unit, mean * largest, spread, length)

    @property
    def is_standard(self) -> bool:
        """Whether `into` leaves the data as they are."""
        return self.unit == 1 and bool((np.abs(self.origin) <= _STANDARD).all())

    def left_alone(self) -> Frame:
        """The frame in which the data are as they came."""
        return self._replace(origin=np.zeros_like(self.origin), unit=1.0)

    def into(self, X: np.ndarray) -> np.ndarray:
        """Rows in this frame, of the type that they have: a copy, or `X` itself if nothing is to be done."""
        if self.is_standard:
            return X
        if sp.issparse(X):
            if self.origin.any():
                raise ValueError("X is sparse and the rows of fit were not: pass X.toarray()")
            return X / self.unit
        out = np.empty(X.shape, X.dtype)
        for begin in range(0, len(X), _BLOCK_ROWS):
            block = slice(begin, begin + _BLOCK_ROWS)
            out[block] = (X[block] - self.origin) / self.unit
        return out

    def out_of(self, points: np.ndarray) -> np.ndarray:
        """Points of this frame, shape (n_points, n_features), in the unit of the data."""
        return points if self.is_standard else points * self.unit + self.origin

    def cost_unit(self, power: int) -> float:
        """The unit of distances (1) or of squared distances (2); 0 or infinite where the data's is extreme."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.float64(self.unit) ** power)

    def whole_cost(self, n_samples: int, power: int) -> float:
        """What all points in one cluster cost, about, in this frame; 1 where all points are equal."""
        with np.errstate(over="ignore"):
            return float(n_samples * np.float64(self.length / self.unit or 1.0) ** power)

    def weight_into(self, weight: float, power: int) -> float:
        """A weight that has the unit of such costs, in this frame."""
        if weight == 0:
            return 0.0
        with np.errstate(over="ignore", divide="ignore"):
            return float(np.float64(weight) / self.cost_unit(power))


def _one_length(blocks: Iterable[np.ndarray], reach: float) -> float:
    """The length that all rows have; 0 if they differ.

    Parameters
    ----------
    blocks : iterable of ndarray of shape (n_rows, n_features)
    reach : float
        Root of the mean squared distance of a row to the mean. Far from the origin all rows are about as long.
    """
    radius = 0.0
    for block in blocks:
        norms = np.sqrt((block**2).sum(axis=1, dtype=float))
        radius = radius or float(norms.max())
        # Rows of zeros have no direction, and stay zeros when rows are scaled to unit length.
        if not (np.abs(norms[norms > 0] - radius) <= _ONE_LENGTH * min(radius, reach)).all():
            return 0.0
    return radius


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


def _plain_values(sensitive_features: Any) -> tuple[np.ndarray, np.ndarray]:
    """Values as numbers or as strings, and which of them are missing.

    Lists go through objects: NumPy would turn the NaN of a list of strings into the string 'nan'.
    """
    masked = np.ma.getmaskarray(sensitive_features) if np.ma.isMaskedArray(sensitive_features) else None
    if isinstance(sensitive_features, (list, tuple)):
        try:
            values = np.array(sensitive_features, dtype=object)
        except ValueError:
            raise ValueError("sensitive_features must be one column, found rows of several lengths") from None
    else:
        values = np.asarray(sensitive_features)
    if values.ndim == 2 and values.shape[1] == 1:
        values, masked = values[:, 0], None if masked is None else masked[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"sensitive_features must be one column, found shape {values.shape}; join several columns "
            "into one first, for instance data['sex'] + '-' + data['race']"
        )
    if values.dtype == object:
        missing = np.fromiter(map(_is_missing, values), bool, len(values))
        missing = missing if masked is None else missing | masked
        values = _of_one_type(values, missing)
    else:
        missing = values != values if masked is None else (values != values) | masked
    return values, missing


def _of_one_type(values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Objects as numbers if all are numbers, else as strings, which must tell them apart."""
    kept = values[~missing]
    if all(isinstance(value, (bool, np.bool_, Integral, Real)) for value in kept):
        numbers = np.zeros(len(values), dtype=np.array(kept.tolist() or [0]).dtype)
        numbers[~missing] = kept
        return numbers
    types: dict[str, type] = {}
    for value in kept:
        if isinstance(value, (list, tuple, np.ndarray)):
            raise ValueError(f"sensitive_features must be one column, found {value!r} in a row")
        text = str(value)
        if text.endswith("\0"):
            raise ValueError(
                f"sensitive_features has {text!r}, whose last character NumPy drops: strip it from the values"
            )
        if types.setdefault(text, type(value)) is not type(value):
            raise ValueError(
                f"sensitive_features has {text!r} as {types[text].__name__} and as {type(value).__name__}: "
                "give all values one type, for instance by .astype(str)"
            )
    return np.where(missing, "", values).astype(str)


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
        Missing column, wrong length, more than one column, missing values, values that differ by their type
        alone, or values not in `known`.
    """
    if sensitive_features is None:
        raise ValueError(
            "sensitive_features is missing: pass the group of every row, as in "
            "fit(X, sensitive_features=data['sex'])"
        )
    values, missing = _plain_values(sensitive_features)
    if len(values) != n_samples:
        raise ValueError(f"sensitive_features has {len(values)} rows, X has {n_samples}")
    if missing.any():
        raise ValueError(
            f"sensitive_features has {int(missing.sum())} missing values (first in row "
            f"{int(missing.argmax())}): drop those rows or give them a group of their own"
        )
    if known is None:
        names, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.int32), names
    listed = ", ".join(map(repr, known.tolist()))
    if (values.dtype.kind == "U") != (known.dtype.kind == "U"):
        found, seen = ("strings", "numbers") if values.dtype.kind == "U" else ("numbers", "strings")
        raise ValueError(
            f"sensitive_features has {found}, such as {values[:1].tolist()[0]!r}, and the groups of fit are "
            f"{seen}: {listed}; convert them to the type that they had in fit"
        )
    codes = np.minimum(np.searchsorted(known, values), len(known) - 1)
    strange = known[codes] != values
    if strange.any():
        unknown = ", ".join(map(repr, np.unique(values[strange])[:5].tolist()))
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
        Centres in the frame of `X`.
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
    `cluster_centers_`; `X` is a finite float matrix and `codes` are group codes. The matrix is centred and
    scaled here, see `Frame`, and costs and centres are put back into the unit of the data after the fit.

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
    labels_: np.ndarray
    takes_columns: ClassVar[bool] = False
    """Whether `fit` takes several sensitive columns, and not their combinations alone."""
    # Costs grow with this power of the unit of the data; 0 for methods whose objective has no unit.
    _power = 0
    # "csr" where rows of a sparse matrix need not be made dense.
    _accept_sparse: bool | str = False
    # Whether the fit from given centres takes the rows in an order of its own.
    _sorts_rows = False
    _COSTS = ("cost_", "lower_bound_", "inertia_", "objective_", "lp_cost_", "fairlet_cost_", "group_costs_")
    _LENGTHS = ("radius_", "plain_radius_", "radii_")
    _frame: Frame

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self._accept_sparse)
        return tags

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
        self._fit_in_frame(*self._check_input(X, sensitive_features))
        return self

    def _fit_in_frame(self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None = None) -> None:
        """`_fit` on the rows in their frame, and in the order of the method; weights too, if there are any."""
        self._frame = self._framing(X)
        framed = self._frame.into(X)
        order = self._row_order(X, framed, codes)
        if order is not None:
            # The frame is a sum over rows, too.
            self._frame = self._framing(X[order])
            framed, codes = self._frame.into(X[order]), codes[order]
            weights = None if weights is None else weights[order]
        self._fit(framed, codes, *(() if weights is None else (weights,)))
        if order is not None:
            self._put_back(order)
        self._restore(X)

    def _row_order(self, X: np.ndarray, framed: np.ndarray, codes: np.ndarray) -> np.ndarray | None:
        """The order in which rows are taken from given centres, whatever order they come in; None: as they come.

        Sums in single precision depend on the order in their last digits, and where the fit ends with them. Nothing
        is drawn after given centres, so that an order of the fit's own makes it the same.
        """
        given = getattr(self, "init", "") is not None and not isinstance(getattr(self, "init", ""), str)
        if not (self._sorts_rows and given) or sp.issparse(X) or _is_mapped(X):
            return None
        # The numbers of a row in ascending order: the order of the columns is not to matter either.
        return np.lexsort((codes, *np.sort(framed, axis=1).T[::-1]))

    def _put_back(self, order: np.ndarray) -> None:
        """Labels, and what else has a number for each row, in the order of the data."""
        labels = np.empty_like(self.labels_)
        labels[order] = self.labels_
        self.labels_ = labels

    def _check_input(self, X: Any, sensitive_features: Any) -> tuple[np.ndarray, np.ndarray]:
        """Validated parameters, features and group codes of a fit."""
        self._validate_params()
        X = self._valid_rows(X)
        codes, self.groups_ = encode_groups(self._one_column(sensitive_features), X.shape[0])
        self._check_sizes(X.shape[0])
        return X, codes

    def _valid_rows(self, X: Any) -> np.ndarray:
        return validate_data(
            self, X, dtype=[np.float64, np.float32], order="C", accept_sparse=self._accept_sparse
        )

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

    def _validate_params(self) -> None:
        for name, value in self.get_params(deep=False).items():
            # Booleans are integers to Python: n_clusters=True would be one cluster.
            allowed = self._parameter_constraints.get(name, ["boolean"])
            if isinstance(value, bool) and not any(word in allowed for word in ("boolean", "verbose")):
                raise ValueError(f"{name}={value}: {type(self).__name__} takes no boolean there")
        super()._validate_params()

    def _check_sizes(self, n_samples: int) -> None:
        """As many rows as clusters, and enough of them for the groups."""
        if self.n_clusters > n_samples:
            raise ValueError(f"n_clusters={self.n_clusters} is more than n_samples={n_samples}")
        n_groups = len(self.groups_)
        if n_groups > _MANY_GROUPS and n_groups * self.n_clusters > n_samples:
            warnings.warn(
                f"{n_groups} groups in {n_samples} rows are too many for {self.n_clusters} clusters: no "
                "clustering has a row of every group in every cluster, and the fit may take long. Join rare "
                "groups, or cut a sensitive column of numbers into ranges.",
                UserWarning,
                stacklevel=4,
            )

    def _framing(self, X: np.ndarray) -> Frame:
        """The frame in which the method works; rows in a file stay as they are, because a copy may not fit."""
        if sp.issparse(X):
            return Frame.of_sparse(X)
        frame = Frame.of(X)
        return frame.left_alone() if _is_mapped(X) else frame

    def _framed_init(self) -> Any:
        """`init`, and centres that it gives in the frame of the fit."""
        init = getattr(self, "init", None)
        if isinstance(init, str):
            return init
        centers = np.array(init, dtype=float)
        # Other shapes are refused, with their message, where the centres are used.
        fits = centers.ndim == 2 and centers.shape[1] == len(self._frame.origin)
        return self._frame.into(centers) if fits else centers

    def _new_rows(self, X: Any) -> np.ndarray:
        """Validated rows of `predict`, in the frame of the fit."""
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            dtype=[np.float64, np.float32],
            order="C",
            accept_sparse=self._accept_sparse,
            reset=False,
        )
        return self._frame.into(X)

    def _restore(self, X: np.ndarray) -> None:
        """Attributes in the unit of the data, shape (n_samples, n_features)."""
        frame = self._frame
        if frame.is_standard:
            return
        centers = getattr(self, "cluster_centers_", None)
        if centers is not None:
            self.cluster_centers_: Any = frame.out_of(centers)
        for name in self._LENGTHS:
            if hasattr(self, name):
                setattr(self, name, getattr(self, name) * frame.cost_unit(1))
        if not self._power:
            return
        scale = frame.cost_unit(self._power)
        for name in self._COSTS:
            if hasattr(self, name):
                setattr(self, name, getattr(self, name) * scale)
        for record in (*self.history_, *getattr(self, "certificate_", ())):
            for name in ("objective", "clustering", "cost", "lower_bound"):
                if name in record:
                    record[name] *= scale

    def _complain(self, what: str) -> None:
        """Warn, at the user's line, that the fit has not come to rest, or not where it should."""
        level, frame = 1, inspect.currentframe()
        while frame is not None and frame.f_globals["__name__"].partition(".")[0] == "fairclust":
            level, frame = level + 1, frame.f_back
        warnings.warn(f"{type(self).__name__}: {what}", ConvergenceWarning, stacklevel=level)

    def fit_predict(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> np.ndarray:
        """`fit`, then `labels_`."""
        return self.fit(X, sensitive_features=sensitive_features).labels_

    @abstractmethod
    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None: ...
