"""What clusters are like: the columns that set each apart, and the shares of groups that chance would give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import hypergeom

from fairclust.messages import count, shortened
from fairclust.tables import Asked
from fairclust.tables.cells import truth
from fairclust.tables.columns import Column, numbers, understand
from fairclust.tables.preparation import encode, learn
from fairclust.tables.values import as_text

__all__ = ["chance_range", "profile_lines", "profiles"]

# A column sets a cluster apart if it differs by at least so many standard deviations.
_APART = 0.2


def profiles(X: Any, labels: Any, *, n_columns: int = 5) -> pd.DataFrame:
    """The columns that set each cluster apart from all rows.

    Columns are read as `fairclust fit` reads them: '€ 1,200' is a number, and identifiers, dates and free text are left
    out. A column of numbers is compared by its mean; a category, or a step of a scale, by its share of the rows.

    Parameters
    ----------
    X : data frame or array-like of shape (n_samples, n_columns)
    labels : array-like of shape (n_samples,)
        The cluster of every row. Rows whose label is negative or missing have none.
    n_columns : int, default=5
        At most so many columns for each cluster.

    Returns
    -------
    DataFrame
        A row for each column that sets a cluster apart, the largest difference first, with the columns

        - cluster and size: the label, and the number of rows,
        - column and value: the name, and the category, which is empty for numbers,
        - in_cluster and in_all: the mean, or the share, of the cluster and of all rows,
        - difference: in_cluster less in_all in standard deviations of the column over all rows,
        - example: the index of the medoid, which is the row nearest to the mean of the cluster.

        A cluster that is like all rows has one row, whose column is empty.

    Raises
    ------
    ValueError
        There is not one label for each row, or no column can be compared.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairclust import profiles
    >>> table = pd.DataFrame({"age": [20, 22, 60, 66], "town": ["a", "b", "a", "b"]})
    >>> found = profiles(table, [0, 0, 1, 1])
    >>> found[["cluster", "column", "in_cluster", "in_all"]].values.tolist()
    [[0, 'age', 21.0, 42.0], [1, 'age', 63.0, 42.0]]
    """
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(_matrix(X))
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    labels = pd.Series(np.asarray(labels), dtype=float)
    if len(labels) != len(frame):
        raise ValueError(f"labels has {len(labels)} rows, X has {len(frame)}")
    there = (labels >= 0).to_numpy()
    frame, clusters = frame[there], labels[there].to_numpy(dtype=int)
    columns = understand(frame, Asked())
    places = frame.reset_index(drop=True)
    rows = encode(learn(columns, places), places)
    return profiles_of(frame, clusters, columns, rows, n_columns=n_columns)


def _matrix(X: Any) -> np.ndarray:
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"X has shape {X.shape}, expected one row for each sample and one column for each feature"
        )
    return X


def profiles_of(
    frame: pd.DataFrame,
    labels: np.ndarray,
    columns: Sequence[Column],
    rows: np.ndarray,
    *,
    n_columns: int = 5,
) -> pd.DataFrame:
    """As `profiles`, for columns that are understood, and the prepared rows, of which the medoids are taken."""
    clusters, codes = np.unique(labels, return_inverse=True)
    sizes = np.bincount(codes)
    found: list[dict[str, Any]] = []
    for column in columns:
        if column.is_feature:
            found += _differences(frame[column.name], column, codes, sizes)
    table = pd.DataFrame(found, columns=["place", "column", "value", "in_cluster", "in_all", "difference"])
    told = []
    for place, (cluster, size) in enumerate(zip(clusters, sizes, strict=True)):
        own = table[(table["place"] == place) & (table["difference"].abs() >= _APART)]
        own = own.iloc[own["difference"].abs().argsort(kind="stable")[::-1]].head(n_columns)
        members = np.flatnonzero(codes == place)
        distances = ((rows[members] - rows[members].mean(axis=0)) ** 2).sum(axis=1)
        known = {"cluster": int(cluster), "size": int(size)}
        medoid = {"example": frame.index[members[distances.argmin()]]}
        listed = own.drop(columns="place").to_dict("records") or [
            {"column": "", "value": "", "in_cluster": np.nan, "in_all": np.nan, "difference": 0.0}
        ]
        told += [{**known, **row, **medoid} for row in listed]
    return pd.DataFrame(told)


def _differences(
    cells: pd.Series, column: Column, codes: np.ndarray, sizes: np.ndarray
) -> list[dict[str, Any]]:
    """For every cluster, the mean of a column, or the share of the category that differs most."""
    if column.role == "number":
        # Of a column that is measured by its logarithm, the mean is that of its numbers.
        values = numbers(cells, {**column.reading, "log": False}).to_numpy()[:, None]
        names = [""]
    else:
        text = as_text(cells)
        if column.reading.get("truth"):
            text = text.map(truth, na_action="ignore")
        places, names = pd.factorize(text)
        counts = np.zeros((len(sizes), len(names)))
        np.add.at(counts, (codes[places >= 0], places[places >= 0]), 1)
        filled = counts.sum(axis=1, keepdims=True)
        shares, overall = counts / np.maximum(filled, 1), counts.sum(axis=0) / max(1, filled.sum())
        apart = (shares - overall) / np.sqrt(np.maximum(overall * (1 - overall), 1e-300))
        best = np.abs(apart).argmax(axis=1)
        return [
            _row(place, column, str(names[at]), shares[place, at], overall[at], apart[place, at])
            for place, at in enumerate(best)
            if filled[place]
        ]
    there = np.isfinite(values[:, 0])
    spread = values[there].std()
    filled = np.bincount(codes[there], minlength=len(sizes))
    if not spread > 0:
        return []
    sums = np.bincount(codes[there], values[there, 0], len(sizes))
    overall = values[there].mean()
    return [
        _row(
            place,
            column,
            "",
            sums[place] / filled[place],
            overall,
            (sums[place] / filled[place] - overall) / spread,
        )
        for place in range(len(sizes))
        if filled[place]
    ]


def _row(
    place: int, column: Column, value: str, own: float, overall: float, difference: float
) -> dict[str, Any]:
    found = {"place": place, "column": column.name, "value": value}
    return found | {"in_cluster": float(own), "in_all": float(overall), "difference": float(difference)}


def profile_lines(found: pd.DataFrame) -> list[str]:
    """A sentence for each cluster."""
    lines = []
    for cluster, rows in found.groupby("cluster", sort=False):
        told = [described(row) for row in rows.to_dict("records") if row["column"]]
        size = count(int(rows["size"].iloc[0]), "row")
        lines.append(f"cluster {cluster}, {size}: {', '.join(told) or 'like all rows'}")
    return lines


def described(row: Mapping[str, Any]) -> str:
    """A difference in words, such as 'age 61 against 47' or 'education low 55% against 30%'."""
    name = shortened(str(row["column"]), 40)
    if row["value"]:
        return (
            f"{name} {shortened(str(row['value']), 40)} {row['in_cluster']:.0%} against {row['in_all']:.0%}"
        )
    own, overall = rounded(row["in_cluster"], row["in_all"])
    return f"{name} {own} against {overall}"


def rounded(own: float, overall: float) -> tuple[str, str]:
    """Two numbers with as many decimals as tell them apart in two digits."""
    apart = abs(own - overall)
    decimals = 0 if not apart else max(0, int(np.ceil(-np.log10(apart))) + 1)
    decimals = 0 if min(abs(own), abs(overall)) >= 100 and apart >= 1 else decimals
    return f"{own:,.{decimals}f}", f"{overall:,.{decimals}f}"


def chance_range(n_rows: int, of_group: int, size: int) -> tuple[float, float]:
    """The shares of a group in a cluster of `size` rows between which 95 % of random labels of these sizes lie."""
    if not size:
        return 0.0, 1.0
    low, high = hypergeom.ppf([0.025, 0.975], n_rows, of_group, size)
    return float(low) / size, float(high) / size
