"""The audit card of a clustering: its fairness metrics and the cost of each group, compared with a plain clustering."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairclust.group_encoding import group_codes
from fairclust.metrics.registry import documented
from fairclust.metrics.social import group_cost_changes, group_costs
from fairclust.metrics.table import METRICS, Scored, score_labels

# Metrics of the group shares. The card lists them before the metrics that have `audit` set.
_SHARES = ("balance", "fairness_error", "delta", "fairness_ratio", "awd", "smallest_cluster")


@dataclass(frozen=True)
class Audit:
    """The result of `audit`. ``str`` of it is a card with a line for each metric and each group.

    Attributes
    ----------
    scores, plain : dict of str to float
        The value of each metric, by name, for the clustering and for the plain one. `plain` is empty without plain
        labels.
    groups : list of str
        The names of the groups, in the order of `costs`.
    costs : ndarray of shape (n_groups,)
        Mean squared distance of each group to the cluster means.
    changes : ndarray of shape (n_groups,)
        Relative change of each cost against the plain clustering, such as 0.1 for ten per cent more; ``nan`` without
        plain labels.

    Examples
    --------
    >>> from fairclust.metrics import audit
    >>> card = audit([[0], [1], [8], [9]], [0, 0, 1, 1], sensitive_features=["a", "b", "a", "b"])
    >>> card.scores["balance"], card.costs.tolist()
    (1.0, [0.25, 0.25])
    """

    scores: dict[str, float]
    plain: dict[str, float]
    groups: list[str]
    costs: NDArray[np.float64]
    changes: NDArray[np.float64]

    def verdict(self, name: str) -> str:
        """'fairer', 'less fair' or 'the same' as the plain clustering; '' if the two cannot be compared."""
        metric = METRICS[name]
        if name not in self.plain or metric.direction == "none":
            return ""
        gain = self.scores[name] - self.plain[name]
        if np.isnan(gain):
            return "the same" if self.scores[name] == self.plain[name] else ""
        gain = gain if metric.direction == "higher" else -gain
        return "fairer" if gain > 0 else "less fair" if gain < 0 else "the same"

    def __str__(self) -> str:
        width = max(len(METRICS[name].label) for name in self.scores)
        lines = []
        for name, value in self.scores.items():
            metric = METRICS[name]
            line = f"{metric.label:{width}}  {value:12,.{metric.decimals}f}"
            if self.plain:
                line += f"  plain {self.plain[name]:12,.{metric.decimals}f}  {self.verdict(name)}"
            lines.append(line.rstrip())
        for group, cost, change in zip(self.groups, self.costs, self.changes, strict=True):
            more = "" if np.isnan(change) else f"  {100 * change:+.1f} % against plain"
            lines.append(f"{group} pays {cost:,.4f}{more}")
        return "\n".join(lines)


@documented
def audit(
    X: ArrayLike,
    labels: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    plain_labels: ArrayLike | None = None,
    n_clusters: int | None = None,
) -> Audit:
    """Measure a clustering by several notions of fairness, and compare it with a plain clustering.

    Parameters
    ----------
    plain_labels : array-like of int, shape (n_samples,), optional
        A clustering that ignores the groups, such as that of `KMeans`.
    n_clusters : int, optional
        Default: one more than the largest label of both clusterings.

    Returns
    -------
    Audit
    """
    codes = group_codes(sensitive_features)
    clusterings = [np.asarray(given) for given in (labels, plain_labels) if given is not None]
    k = n_clusters or max(int(clusters.max(initial=0)) for clusters in clusterings) + 1
    names = [*_SHARES, *(name for name, metric in METRICS.items() if metric.audit)]
    n_groups = int(codes.max(initial=-1)) + 1
    scores = [score_labels(Scored(clusters, codes, X, k), names) for clusters in clusterings]
    columns = np.asarray(sensitive_features)
    columns = columns.reshape(len(codes), -1)
    first = pd.Series(codes).drop_duplicates().sort_values().index
    changes = np.full(n_groups, np.nan)
    if plain_labels is not None:
        changes = group_cost_changes(X, labels, plain_labels, sensitive_features=codes)
    return Audit(
        scores[0],
        scores[1] if plain_labels is not None else {},
        [" / ".join(map(str, columns[row])) for row in first],
        group_costs(X, labels, sensitive_features=codes),
        changes,
    )
