"""What clusters are like: the columns that set each apart, and the shares of groups that chance would give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import hypergeom

from fairclust.group_encoding import as_array, check_same_order
from fairclust.messages import count, percent, shortened
from fairclust.tables import decide
from fairclust.tables.columns import Column, as_text, numbers, without_log
from fairclust.tables.preparation import read

__all__ = ["chance_ranges", "profile_lines", "profiles"]

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
        The cluster of every row. Rows whose label is negative or missing have none, and count among all rows.
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
    check_same_order(X, labels, "labels")
    X = X.to_pandas() if hasattr(X, "to_pandas") else X
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X if np.ma.isMaskedArray(X) else np.asarray(X))
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"X has the column {twice!r} twice: rename one of them")
    labels = pd.to_numeric(pd.Series(as_array(labels)))
    if len(labels) != len(frame):
        raise ValueError(f"labels has {len(labels)} rows, X has {len(frame)}")
    if (labels.dropna() % 1 != 0).any() or not (labels >= 0).any():
        raise ValueError("labels must be whole numbers, the clusters from 0, and not negative for all rows")
    clusters = labels.where(labels >= 0, -1).to_numpy(dtype=int)
    places = frame.reset_index(drop=True)
    decided = decide(places, [])
    rows = decided.preparation.transform(places)
    found = profiles_of(frame, clusters, decided.columns, rows, n_columns=n_columns)
    return found[found["cluster"] >= 0].reset_index(drop=True)


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
    apart: list[list[dict[str, Any]]] = [[] for _ in clusters]
    for column in columns:
        if column.is_feature:
            for place, difference in _differences(frame[column.name], column, codes, len(clusters)):
                apart[place].append(difference)
    nothing = {"column": "", "value": "", "in_cluster": np.nan, "in_all": np.nan, "difference": 0.0}
    told = []
    for place, cluster in enumerate(clusters):
        listed = sorted(apart[place], key=lambda row: abs(row["difference"]))[::-1][:n_columns]
        members = np.flatnonzero(codes == place)
        distances = ((rows[members] - rows[members].mean(axis=0)) ** 2).sum(axis=1)
        known = {"cluster": int(cluster), "size": len(members)}
        medoid = {"example": frame.index[members[distances.argmin()]]}
        told += [{**known, **row, **medoid} for row in listed or [nothing]]
    return pd.DataFrame(told)


def _differences(
    cells: pd.Series, column: Column, codes: np.ndarray, n_clusters: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The clusters that a column sets apart, each with its mean, or the share of the category that differs most."""
    if column.role == "number":
        # Of a column that is measured by its logarithm, the mean is that of its numbers.
        amounts = without_log(numbers(cells, column.reading), column.reading).to_numpy()
        places, names = np.where(np.isfinite(amounts), 0, -1), [""]
    else:
        text = read(cells, column)
        text = as_text(cells).where(text.notna()) if column.is_number else text
        places, names = pd.factorize(text)
        amounts = np.ones(len(places))
    there = places >= 0
    codes, places, amounts = codes[there], places[there], amounts[there]
    filled = np.bincount(codes, minlength=n_clusters)
    sums = np.zeros((n_clusters, len(names)))
    np.add.at(sums, (codes, places), amounts)
    means = sums / np.maximum(filled, 1)[:, None]
    if column.role == "number":
        overall, spread = np.mean(amounts, keepdims=True), np.std(amounts, keepdims=True)
    else:
        overall = sums.sum(axis=0) / max(1, len(places))
        spread = np.sqrt(overall * (1 - overall))
    apart = (means - overall) / np.maximum(spread, 1e-150)
    for place, most in enumerate(np.abs(apart).argmax(axis=1)):
        if filled[place] and spread[most] > 0 and abs(apart[place, most]) >= _APART:
            own, whole = float(means[place, most]), float(overall[most])
            shares = {"column": column.name, "value": str(names[most]), "in_cluster": own, "in_all": whole}
            yield place, {**shares, "difference": float(apart[place, most])}


def profile_lines(profiles: pd.DataFrame) -> list[str]:
    """A sentence for each cluster."""
    lines = []
    for cluster, rows in profiles.groupby("cluster", sort=False):
        told = [described(row) for row in rows.to_dict("records") if row["column"]]
        size = count(int(rows["size"].iloc[0]), "row")
        lines.append(f"cluster {cluster}, {size}: {', '.join(told) or 'like all rows'}")
    return lines


def described(row: Mapping[str, Any]) -> str:
    """A difference in words, such as 'age 61 against 47' or 'education low 55 % against 30 %'."""
    name = shortened(str(row["column"]), 40)
    if row["value"]:
        own, overall = percent(row["in_cluster"], 0), percent(row["in_all"], 0)
        return f"{name} {shortened(str(row['value']), 40)} {own} against {overall}"
    mean, overall = _rounded(row["in_cluster"], row["in_all"])
    return f"{name} {mean} against {overall}"


def _rounded(mean: float, overall: float) -> tuple[str, str]:
    """Two numbers with as many decimals as tell them apart in two digits."""
    apart = abs(mean - overall)
    decimals = 0 if not apart else max(0, int(np.ceil(-np.log10(apart))) + 1)
    decimals = 0 if min(abs(mean), abs(overall)) >= 100 and apart >= 1 else decimals
    # Years have no separator, and so neither have other numbers of four digits.
    form = f"{',' if max(abs(mean), abs(overall)) >= 1e4 else ''}.{decimals}f"
    return format(mean, form), format(overall, form)


def chance_ranges(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The shares of each group in each cluster between which 95 % of random labels of the same sizes lie.

    `table` has the counts of the groups in the clusters. In an empty cluster the shares are 0 and 1.
    """
    of_groups, sizes = table.sum(axis=1)[:, None], table.sum(axis=0)
    low, high = (hypergeom.ppf(part, table.sum(), of_groups, sizes) for part in (0.025, 0.975))
    return np.where(sizes, low, 0) / np.maximum(sizes, 1), np.where(sizes, high, 1) / np.maximum(sizes, 1)
