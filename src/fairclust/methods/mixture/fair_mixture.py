"""Fair model-based clustering (Park et al.): mixtures whose mean responsibilities are similar in all groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.spatial.distance import pdist
from scipy.special import logsumexp, softmax
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_feature_names

from fairclust.base import COUNT, NON_NEGATIVE, FairClusterer, checked_weights, is_mapped
from fairclust.frame import Frame
from fairclust.group_encoding import check_same_order
from fairclust.messages import count
from fairclust.methods.mixture.fit import (
    Batches,
    Data,
    Objective,
    Trace,
    calibrated,
    fair_penalty,
    learn,
    start_mixture,
)
from fairclust.methods.mixture.parameters import Family, Mixture
from fairclust.methods.mixture.rows import Rows, divided, draw, find_columns
from fairclust.metrics import balance, contingency, delta, sse

# The share of the rows in a mini-batch.
_BATCH = 0.1
# The least variance, in units of the mean variance of the numeric features. Without it, a component with a diagonal
# covariance shrinks to a single point.
_MIN_VARIANCE = 1e-3
# The authors' program adds this to the variances of plain EM.
_PROGRAM_RIDGE = 1e-6


@dataclass(eq=False, repr=False, kw_only=True)
class FairMixture(FairClusterer):
    """Mixture of Gaussian, categorical or mixed components with a penalty on the gap between groups.

    Maximises ``mean log-likelihood - lam * Delta``, where Delta is the largest difference over components between the
    groups' mean responsibilities. With several sensitive columns it is the sum of the columns' values. Every point is
    assigned to its most probable component. This does not depend on its group, so new points need no groups.

    Parameters
    ----------
    lam : float, default=10.0
        Weight of Delta. It does not depend on the number of rows or on the unit of the data. 0 is a mixture without
        fairness.
    solver : {"em", "mini-batch", "gd"}, default="em"
        Generalised EM on all rows or on mini-batches (Algorithm 3), or gradient ascent (all with Adam). With ``lam=0``,
        EM takes closed-form steps. With mini-batches, `X` may be a memory map, of which one batch at a time is read.
        Its batches are contiguous blocks, so sorted files must be shuffled first.
    covariance : {"isotropic", "diag"}, default="isotropic"
        One variance for all features of all components, or one for every feature of every component.
    categorical_features : array-like of int or str, optional
        Categorical columns, by index, or by name for data frames. Their values are integer codes from 0 on. Columns of
        a data frame that are categories, strings or objects are always categorical, and `fit` encodes their values.
        Dates, times and durations are an error.
    match_reference : bool or "best_balance", default=False
        Whether the objective and its optimisation are those of the authors' program, which does not scale the data. For
        two groups, `lam` then has the effect of ``n_clusters * P(0) * P(1) * lam``. The result is the last iterate or,
        with "best_balance", the first iterate with the largest balance of hard labels. By default the absolute value
        and the maximum of Delta are smoothed, and a barrier keeps every component from losing all its points.
    sample_size : int or float, optional
        Number of rows, or share of the rows, to learn from, drawn within groups. All rows are assigned to clusters.
        By default all rows are learned from. With ``solver="mini-batch"`` it is the size of a batch, by default a tenth
        of the rows.
    max_iter : int, optional
        Largest number of rounds of EM (default 200) or of gradient steps (default 10,000).
    init : {"k-means", "em"} or array-like of shape (n_clusters, n_numeric), default="k-means"
        The first means: those of k-means (for a memory map, of 200,000 random rows, which have to fit in memory), or
        the given ones. Components start with equal weights. Their variance is the mean variance of the columns, or the
        squared length of the rows if all have one length. "em" then runs plain EM. The probabilities of categories
        start equal or, if there are no numeric features, at random. With `match_reference`, "k-means" is the start of
        the paper's text, and "em" that of the program.
    calibrate : bool, default=False
        Whether to shift the components' log weights after learning, so that hard labels are as fair as possible. The
        shifts are used in the assignment only.
    record_labels : bool, default=False
        Whether to record `nll`, and `sse`, `delta` and `balance` of the hard labels, at every step, which costs a pass
        over all rows.

    Attributes
    ----------
    history_ : list of dict
        `objective` is the negative log-likelihood plus the penalty, `clustering` is the negative
        log-likelihood, and `fairness` is Delta of the responsibilities. With several sensitive columns, `fairness` is
        Delta of the combinations of their values, while the penalty in `objective`, `soft_delta_` and `hard_delta_`
        are sums over the columns.
    weights_ : ndarray of shape (n_clusters,)
    means_ : ndarray of shape (n_clusters, n_numeric)
    variances_ : ndarray of shape (n_clusters, n_numeric)
    probabilities_ : list of ndarray of shape (n_clusters, n_categories)
        For each categorical column.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The means and, in categorical columns, the most probable codes.
    categories_ : dict of column index to ndarray
        Values of the columns that `fit` has encoded.
    nll_ : float
        Mean negative log-likelihood of the rows that were learned from.
    soft_delta_, hard_delta_ : float
        Delta of the responsibilities of these rows, and Delta of the labels of all rows. If components coincide,
        `soft_delta_` can be small although the labels are unfair.
    n_nonempty_ : int
        Number of clusters with points.
    min_distance_ : float
        Least distance between two means. It is zero if components coincide, and NaN if there are no two means.
    converged_ : bool
        Whether the objective stopped changing before `max_iter`.

    References
    ----------
    Park, Kim, Lee, Kim, "Fair model-based clustering".

    Examples
    --------
    >>> from fairclust import FairMixture
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = FairMixture(2, lam=10.0, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """

    __metadata_request__predict: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    takes_columns = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "lam": NON_NEGATIVE,
        "solver": [StrOptions({"em", "mini-batch", "gd"})],
        "covariance": [StrOptions({"isotropic", "diag"})],
        "categorical_features": [None, "array-like"],
        "match_reference": ["boolean", StrOptions({"best_balance"})],
        "sample_size": [None, *COUNT, Interval(Real, 0, 1, closed="neither")],
        "max_iter": [None, *COUNT],
        "init": [StrOptions({"k-means", "em"}), "array-like"],
        "calibrate": ["boolean"],
        "record_labels": ["boolean"],
    }

    lam: float = 10.0
    solver: str = "em"
    covariance: str = "isotropic"
    categorical_features: Any = None
    match_reference: bool | str = False
    sample_size: float | None = None
    max_iter: int | None = None
    init: Any = "k-means"
    calibrate: bool = False
    record_labels: bool = False

    def _valid_rows(self, X: Any, *, reset: bool = True) -> np.ndarray:
        """Validated rows, with codes instead of the categories of a data frame; -1 for those not seen in fit."""
        X = X.to_pandas() if hasattr(X, "to_pandas") else X  # tables of polars and pyarrow
        if reset:
            self.categories_: dict[int, np.ndarray] = {}
            for i, (name, column) in enumerate(X.items() if isinstance(X, pd.DataFrame) else ()):
                # The base class refuses dates and times, of which nearly each would be a category of its own.
                is_dated = pd.api.types.infer_dtype(column).startswith(("date", "time", "period"))
                if not is_dated and not pd.api.types.is_numeric_dtype(column):
                    values = column.astype("category")
                    if values.isna().any():
                        raise ValueError(f"column {name!r} has missing values")
                    self.categories_[i] = values.cat.categories.to_numpy()
        if isinstance(X, pd.DataFrame) and self.categories_:
            if not reset:
                _check_feature_names(self, X, reset=False)
            X = X.copy(deep=False)
            for i, values in self.categories_.items():
                if i < X.shape[1]:
                    X.isetitem(i, pd.Index(values).get_indexer(pd.Index(X.iloc[:, i])).astype(float))
        return super()._valid_rows(X, reset=reset)

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        rng = check_random_state(self.random_state)
        names = list(getattr(self, "feature_names_in_", []))
        self._columns = find_columns(X, self.categorical_features, names, self.categories_)
        in_batches = self.solver == "mini-batch"
        sample = draw(codes, self.sample_size or (_BATCH if in_batches else None), rng)
        learned = slice(None) if in_batches else sample
        family = self._set_frame(X[learned])
        rows = Rows(self._columns, X, codes, len(self.groups_))
        data = Data(rows, rows.part(learned), rows.part(sample).tiles(merge=True), family)
        self._learn(data, rng)
        self._expose(data)
        if not self.converged_:
            self._complain(
                f"stopped after {count(self.n_iter_, 'step')} with the objective still moving: raise max_iter"
            )
        if self.n_nonempty_ < self.n_clusters:
            self._complain(
                f"{self.n_nonempty_} of {self.n_clusters} components have points (lam={self.lam:g}, "
                f"match_reference={self.match_reference}): the others are empty or coincide with one of them. "
                "Take fewer clusters or a smaller lam"
            )

    def _learn(self, data: Data, rng: np.random.RandomState) -> None:
        rows, tiles, reference = data.rows, data.tiles, bool(self.match_reference)
        start = start_mixture(data, self.n_clusters, self.init, rng, reference=reference)
        objective = Objective(tiles, reference=reference)
        if self.lam != 0:
            objective.penalty = fair_penalty(
                self.lam, self._members(), tiles.group_sizes, reference=reference
            )
        if self.solver == "mini-batch":
            parts = divided(len(rows.X), self.sample_size or _BATCH, None if is_mapped(rows.X) else rng)
            objective.batches = Batches(rows, parts, rng)
        watch = partial(self._watched, rows) if self.record_labels else None
        trace = Trace(watch, balance if self.match_reference == "best_balance" else None)
        self._mixture = learn(objective, start, trace, solver=self.solver, max_iter=self.max_iter)
        self._offset = np.zeros(self.n_clusters)
        if self.calibrate and rows.n_groups > 1 and self.n_clusters > 1:
            self._offset = calibrated(tiles, self._mixture, self._delta)
        self.history_, self.converged_ = trace.history, trace.converged

    def _watched(self, rows: Rows, mixture: Mixture) -> dict[str, float]:
        """The numbers that `record_labels` adds to a record."""
        labels, numeric = rows.labels(mixture.components), self._columns.numeric
        table = contingency(labels, rows.codes, self.n_clusters, rows.n_groups)
        cost = sse(rows.X[:, numeric], labels) if len(numeric) else np.nan
        return {"sse": cost, "delta": self._delta(table), "balance": float(balance(table))}

    @property
    def _log_volume(self) -> float:
        """What a log density loses if the numeric columns are put back into the unit of the data."""
        return float(len(self._columns.numeric) * np.log(self._columns.unit))

    def _framing(self, X: np.ndarray) -> Frame:
        # `X` is not scaled: categorical columns hold codes, and rows may be read from a file batch by batch. `Columns`
        # scales the numeric columns of each batch.
        return Frame.plain(X.shape[1])

    def _set_frame(self, X: np.ndarray) -> Family:
        """Set the origin and unit of the numeric columns; returns the kind of mixture, with bounds in this unit."""
        if len(X) < self.n_clusters:
            raise ValueError(f"sample_size leaves {len(X)} rows for n_clusters={self.n_clusters}")
        numeric = self._columns.numeric
        frame = Frame.of(X, numeric) if len(numeric) else Frame.plain(0)
        # The published program takes steps of fixed length in the unit of the data.
        unit = 1.0 if self.match_reference else frame.unit
        self._columns = self._columns._replace(shift=frame.mean, unit=unit)
        return Family(
            self.covariance == "isotropic",
            self._columns.sizes,
            min_log_sd=float(0.5 * np.log(_MIN_VARIANCE) + np.log(frame.spread / unit)),
            by_precision=bool(self.match_reference) and self.lam != 0,
            ridge=_PROGRAM_RIDGE if self.match_reference else 0.0,
        )

    def _delta(self, table: np.ndarray) -> float:
        """Delta of a group-by-cluster table, or the sum of Delta over several columns."""
        return float(sum(delta(members @ table) for members in self._members()))

    def _expose(self, data: Data) -> None:
        """Set the attributes of the fit, with one more pass over the rows that were learned from."""
        mixture, columns = self._mixture, self._columns
        self.labels_ = data.rows.labels(mixture.shifted(self._offset))
        self.n_iter_ = max(1, int(self.history_[-1]["step"]))
        self.weights_ = np.exp(mixture.log_weights)
        self.means_ = mixture.means * columns.unit + columns.shift
        self.variances_ = np.exp(2 * np.broadcast_to(mixture.log_sd, mixture.means.shape)) * columns.unit**2
        shares = np.exp(mixture.log_probabilities)
        self.probabilities_ = np.split(shares, mixture.family.edges[1:-1], axis=1) if columns.sizes else []
        self.cluster_centers_ = np.empty((self.n_clusters, self.n_features_in_))
        self.cluster_centers_[:, columns.numeric] = self.means_
        for i, table in zip(columns.categorical, self.probabilities_, strict=True):
            self.cluster_centers_[:, i] = table.argmax(axis=1)
        loglik, sums = 0.0, np.zeros((len(self.groups_), self.n_clusters))
        for tiles in data.learned.in_blocks():
            by_group, logsum, _ = tiles.table(mixture.components)
            sums, loglik = sums + by_group, loglik + logsum
        self.nll_ = -loglik / len(data.learned.X) + self._log_volume
        for record in self.history_:
            for name in record.keys() & {"objective", "clustering", "nll"}:
                record[name] += self._log_volume
        counts = contingency(self.labels_, data.rows.codes, self.n_clusters, data.rows.n_groups)
        self.soft_delta_, self.hard_delta_ = self._delta(sums), self._delta(counts)
        self.n_nonempty_ = int((counts.sum(axis=0) > 0).sum())
        two_means = self.n_clusters > 1 and len(columns.numeric)
        self.min_distance_ = float(pdist(self.means_).min()) if two_means else np.nan

    def _new(self, X: Any) -> Rows:
        """Rows for a fitted model, without groups."""
        rows = self._new_rows(X)
        return Rows(self._columns, rows, np.zeros(len(rows), np.int32), 1)

    def predict(self, X: Any, sensitive_features: Any = None) -> np.ndarray:
        """Most probable component of each row. The groups are not needed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        sensitive_features : ignored

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._new(X).labels(self._mixture.shifted(self._offset))

    def _saved(self) -> dict[str, Any]:
        """The attributes that `predict` needs, for a file."""
        names = ("n_clusters", "n_features_in_", "categories_", "_columns", "_mixture", "_offset")
        return {name: getattr(self, name) for name in names}

    def predict_proba(self, X: Any, sensitive_features: Any = None) -> np.ndarray:
        """Responsibilities psi_k(x) of each row. `calibrate` does not change them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        sensitive_features : ignored

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        joint = self._new(X).log_joint(self._mixture.components)
        return np.concatenate([softmax(z, axis=1) for z in joint])

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> float:
        """Mean log density of the rows. The groups are not needed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y, sensitive_features : ignored
        sample_weight : array-like of shape (n_samples,), optional
            The weight of each row in the mean; 1 by default.

        Returns
        -------
        float
        """
        check_same_order(X, sample_weight, "sample_weight")
        densities = self.score_samples(X)
        return float(np.average(densities, weights=checked_weights(sample_weight, densities)))

    def score_samples(self, X: Any) -> np.ndarray:
        """Log density of each row, without features whose category was not seen in `fit`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        joint = self._new(X).log_joint(self._mixture.components)
        return np.concatenate([logsumexp(z, axis=1) for z in joint]) - self._log_volume
