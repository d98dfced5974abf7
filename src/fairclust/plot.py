"""A display in the style of scikit-learn: the cost of fairness.

It keeps its data, and its method `plot` draws them. This needs matplotlib, which is imported when something is
drawn: ``pip install 'fairclust[plot]'``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from fairclust.group_encoding import read_sensitive
from fairclust.looks import in_matplotlib, look
from fairclust.metrics import Scored, score_labels
from fairclust.metrics.table import METRICS

__all__ = ["FrontDisplay"]

MEASURED = ("sse", "balance", "fairness_error", "delta", "share_deviation")
"""Metrics that `FrontDisplay` computes for every clustering."""
# Control characters except the line feed: an SVG file cannot hold them.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


class FrontDisplay:
    """Cost against fairness of several clusterings of the same rows.

    Parameters
    ----------
    points : DataFrame
        A row for each clustering, with the columns `method`, `setting` and metrics.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> import numpy as np
    >>> from fairclust import FrontDisplay, KMeans, PriceFairKMeans
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> sex = np.where(X[:, 0] > 0, "m", "f")
    >>> models = [KMeans(2, random_state=0), PriceFairKMeans(2, random_state=0)]
    >>> display = FrontDisplay.from_estimators(models, X, sensitive_features=sex)
    >>> display.points.method.tolist()
    ['KMeans', 'PriceFairKMeans']
    """

    def __init__(self, points: pd.DataFrame) -> None:
        self.points = points

    @classmethod
    def from_estimators(cls, estimators: Iterable[Any], X: Any, *, sensitive_features: Any) -> FrontDisplay:
        """Fit a copy of every estimator and measure its labels.

        The methods are the names of the classes, and the settings the parameters that are not defaults. The errors are
        those of `fit`.

        Parameters
        ----------
        estimators : iterable of FairClusterer
        X : array-like of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), data frame, or mapping
            The group of every row.
        """
        from sklearn.base import clone  # imported here, because figures of the workflow do not need it

        fitted = [clone(estimator).fit(X, sensitive_features=sensitive_features) for estimator in estimators]
        clusterings = [(type(model).__name__, _setting(model), model.labels_) for model in fitted]
        numbers = [model.n_clusters for model in fitted]
        return cls.from_predictions(X, clusterings, sensitive_features=sensitive_features, n_clusters=numbers)

    @classmethod
    def from_predictions(
        cls, X: Any, clusterings: Iterable[Any], *, sensitive_features: Any, n_clusters: Any = None
    ) -> FrontDisplay:
        """Measure given labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        clusterings : iterable of (method, setting, labels)
            Two names, and an array of int of shape (n_samples,). Clusterings of one method get one line.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), data frame, or mapping
            The group of every row. With several columns, each metric of groups has the value of the least fair column.
        n_clusters : int, or one for each clustering, optional
            Clusters without rows count as empty. Default: the largest label plus one.

        Raises
        ------
        ValueError
            The shapes disagree, the labels are not non-negative integers, or a group is missing.
        """
        if sensitive_features is None:
            raise ValueError("sensitive_features is missing: pass the group of every row")
        groups = read_sensitive(sensitive_features, len(X))
        columns = {column.name: groups.cells[groups.codes, i] for i, column in enumerate(groups.columns)}
        clusterings, rows = list(clusterings), list[dict[str, Any]]()
        numbers = np.broadcast_to(np.array(n_clusters, dtype=object), len(clusterings))
        for (method, setting, labels), number in zip(clusterings, numbers, strict=True):
            scored = Scored(labels, groups.codes, X, number, columns=columns)
            found = {"n_clusters": scored.table.shape[1], **score_labels(scored, MEASURED)}
            rows.append({"method": method, "setting": setting, **found})
        return cls(pd.DataFrame(rows))

    def plot(self, x: str = "sse", y: str = "balance", *, ax: Any = None) -> FrontDisplay:
        """Draw one metric against another.

        Parameters
        ----------
        x, y : str
            Columns of `points`: names of metrics, or 'n_clusters'.
        ax : matplotlib Axes, optional
            Default: a new figure.
        """
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots()[1]
        self.ax_, self.figure_ = ax, ax.figure
        for method, points in self.points.groupby("method", sort=False):
            points = points.sort_values(x)
            colour, mark = in_matplotlib(look(str(method)))
            name = in_figure(str(method))
            ax.plot(points[x], points[y], color=colour, marker=mark, linewidth=0.8, label=name)
        ax.set(xlabel=axis_label(x), ylabel=axis_label(y))
        ax.legend()
        return self


def in_figure(text: str) -> str:
    """Escape a text, so that matplotlib draws it literally and lists it in a legend.

    Between two dollar signs matplotlib would expect a formula, and it leaves out labels that begin with an underscore.
    """
    plain = _CONTROL.sub(" ", text).replace("$", r"\$")
    return f" {plain}" if plain[:1] in ("", "_") else plain


def axis_label(name: str) -> str:
    """Axis label for a column of `FrontDisplay.points`: its name, and whether higher or lower is better."""
    if name in METRICS:
        direction = METRICS[name].direction
        return METRICS[name].label + (f" ({direction} is better)" if direction != "none" else "")
    return "Number of clusters" if name == "n_clusters" else in_figure(name)


def _setting(model: Any) -> str:
    """The parameters that differ from their defaults, without `n_clusters` and `random_state`, as text."""
    defaults = type(model)().get_params()
    return ", ".join(
        f"{name}={value}"
        for name, value in model.get_params().items()
        if name not in ("n_clusters", "random_state") and not np.array_equal(value, defaults[name])
    )
