"""Choosing a setting with scikit-learn's searches: scorers of fairness and cost, and the cheapest fair setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRequest

from fairclust.metrics.table import METRICS, Scored, score_labels
from fairclust.sensitive import read_groups

__all__ = ["FairnessScorer", "RoutingIsOff", "cheapest_fair"]


class RoutingIsOff(BaseException):
    """A search called a scorer without the groups, because scikit-learn's metadata routing is off.

    It is no `Exception`, because scikit-learn's searches turn each `Exception` of a scorer into a score of NaN.
    """


class FairnessScorer:
    """A scorer for scikit-learn's searches: a metric of the predicted labels, signed so that larger is better.

    Parameters
    ----------
    metric : str, default='balance'
        A key of `fairclust.metrics.METRICS` that is computed from labels, groups and features, such as 'balance',
        'fairness_error', 'delta' or 'sse'.

    Raises
    ------
    ValueError
        There is no metric of this name, or it needs a graph or true classes, or it has no better direction.

    Notes
    -----
    scikit-learn's searches pass the groups to `fit` and to scorers only with metadata routing, so call
    ``sklearn.set_config(enable_metadata_routing=True)`` first.

    Examples
    --------
    >>> import numpy as np
    >>> from fairclust import FairnessScorer, KMeans
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> sex = np.where(X[:, 0] > 0, "m", "f")
    >>> model = KMeans(2, random_state=0).fit(X, sensitive_features=sex)
    >>> 0 <= FairnessScorer("balance")(model, X, sensitive_features=sex) <= 1
    True
    >>> FairnessScorer("sse")(model, X, sensitive_features=sex) < 0
    True
    """

    def __init__(self, metric: str = "balance") -> None:
        usable = [name for name, m in METRICS.items() if m.needs in ("table", "X") and m.direction != "none"]
        if metric not in usable:
            raise ValueError(f"metric must be one of {', '.join(usable)}; found {metric!r}")
        self.metric = metric

    def __repr__(self) -> str:
        return f"FairnessScorer({self.metric!r})"

    def __call__(self, estimator: Any, X: Any, y: Any = None, *, sensitive_features: Any = None) -> float:
        """Score a fitted estimator on the rows of `X`.

        Parameters
        ----------
        estimator : FairClusterer or Pipeline
            Fitted, with `predict`.
        X : array-like of shape (n_samples, n_features)
            The input of `estimator`. For a pipeline, metrics of the features, such as 'sse', are computed from the
            input of its last step.
        y : ignored
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), data frame, or mapping
            The group of every row. With several columns, a metric of groups has the value of the least fair column.

        Returns
        -------
        float
            The metric, or minus the metric if lower values are better.

        Raises
        ------
        ValueError
            The input does not fit the estimator, or the groups are missing or not one for each row.
        RoutingIsOff
            The groups are missing, and scikit-learn's metadata routing is off.
        """
        if sensitive_features is None and not get_config()["enable_metadata_routing"]:
            raise RoutingIsOff(
                f"{self!r} got no groups, because scikit-learn's searches do not pass them on. Call "
                "sklearn.set_config(enable_metadata_routing=True) before the search, and pass sensitive_features to "
                "its fit; outside a search, pass them to the scorer"
            )
        labels = estimator.predict(X, sensitive_features=sensitive_features)
        # A pipeline clusters the output of the steps before its last one, so distances are measured there.
        has_steps = len(getattr(estimator, "steps", ())) > 1
        features = estimator[:-1].transform(X) if has_steps else X
        groups = read_groups(sensitive_features, len(labels))
        scored = Scored(labels, groups.codes, np.asarray(features, dtype=float), columns=groups.by_column)
        value = score_labels(scored, [self.metric])[self.metric]
        return float(value if METRICS[self.metric].direction == "higher" else -value)

    def get_metadata_routing(self) -> MetadataRequest:
        """Tell scikit-learn's metadata routing that this scorer needs the groups."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sensitive_features", alias=True)
        return request


def cheapest_fair(cost: str = "cost", **at_least: float) -> Callable[[Mapping[str, Any]], int]:
    """Rule for `GridSearchCV(refit=...)`: the best mean score of `cost` among the settings that are fair enough.

    Parameters
    ----------
    cost : str, default='cost'
        Name of a scorer in the search's `scoring`.
    **at_least : float
        The smallest mean score that a setting may have, by the name of a scorer, as in ``balance=0.4``. Metrics for
        which lower is better have negative scores, as in ``delta=-0.05``.

    Returns
    -------
    callable
        It takes `cv_results_` and returns the index of the chosen setting. If no setting is fair enough, it raises
        ValueError. If no setting reaches one of the bounds, the message has the largest score.

    Examples
    --------
    >>> import numpy as np
    >>> rule = cheapest_fair(balance=0.4)
    >>> results = {"mean_test_cost": np.array([-1, -2, -3]), "mean_test_balance": np.array([0.1, 0.5, 0.6])}
    >>> rule(results)
    1
    """

    def choose(results: Mapping[str, Any]) -> int:
        costs = np.asarray(results[f"mean_test_{cost}"], dtype=float)
        fair = np.isfinite(costs)
        for name, least in at_least.items():
            scores = np.asarray(results[f"mean_test_{name}"], dtype=float)
            if not (scores >= least).any():
                raise ValueError(
                    f"no setting has a mean {name} of {least:g} or more; the largest is {np.nanmax(scores):.4g}: "
                    "widen the grid, or ask for less"
                )
            fair &= scores >= least
        if not fair.any():
            raise ValueError(
                f"no setting meets {', '.join(at_least)} at once: widen the grid, or ask for less"
            )
        return int(np.argmax(np.where(fair, costs, -np.inf)))

    return choose
