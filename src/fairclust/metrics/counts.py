"""The group-by-cluster table from which all group fairness metrics are computed.

Row j, column k of the table is n_jk, the number of points of group j in cluster k.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairclust.messages import shortened

__all__ = [
    "cluster_sizes",
    "contingency",
    "describe_merged",
    "group_codes",
    "join_spellings",
    "one_spelling",
]

# At most so many values are described in a message.
_SHOWN = 3


def contingency(
    labels: ArrayLike, groups: ArrayLike, n_clusters: int | None = None, n_groups: int | None = None
) -> NDArray[np.int64]:
    """Count the points of every group in every cluster.

    Parameters
    ----------
    labels : array-like of int, shape (n_samples,)
        Cluster of each point, in 0 .. n_clusters - 1.
    groups : array-like of int, shape (n_samples,)
        Group of each point, in 0 .. n_groups - 1.
    n_clusters : int, optional
        Number of clusters K. Default: the largest label plus one. Clusters without points are columns of
        zeros.
    n_groups : int, optional
        Number of groups J. Default: the largest group code plus one.

    Returns
    -------
    ndarray of int64, shape (n_groups, n_clusters)
        n_jk; it sums to n_samples.

    Raises
    ------
    ValueError
        If the shapes disagree, the codes are no integers, or a code is out of range.
    """
    cluster = _codes(labels, "labels")
    group = _codes(groups, "groups")
    if cluster.shape != group.shape:
        raise ValueError(f"labels {cluster.shape} and groups {group.shape} must have the same shape")
    K = _number(cluster, n_clusters, "labels")
    J = _number(group, n_groups, "groups")
    # The type of the codes may be too narrow for the numbers of the table's entries, so it is widened.
    cell = group.astype(np.int64) * K + cluster
    return np.bincount(cell, minlength=J * K).astype(np.int64).reshape(J, K)


def group_codes(sensitive_features: ArrayLike) -> NDArray[np.int64]:
    """Number the groups of the points. If there are several columns, each combination of values is a group.

    Parameters
    ----------
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), data frame, or mapping of columns
        Strings, numbers or categories.

    Returns
    -------
    ndarray of int64, shape (n_samples,)
        Codes 0 .. n_groups - 1 in the order of the sorted values. Every code occurs.

    Raises
    ------
    ValueError
        There are missing values, or texts with a NUL character.

    Warns
    -----
    UserWarning
        Texts that differ only in their spelling are one value, see `one_spelling`.
    """
    # Imported here, so that callers who already have codes do not wait for pandas.
    import pandas as pd

    if isinstance(sensitive_features, Mapping):
        sensitive_features = np.column_stack([group_codes(column) for column in sensitive_features.values()])
    # `np.asarray` would turn the NaN in a list of strings into the string 'nan', and drop the mask of a masked array.
    # Both are missing values.
    is_list = isinstance(sensitive_features, (list, tuple))
    columns = np.array(sensitive_features, dtype=object) if is_list else np.asarray(sensitive_features)
    if isinstance(sensitive_features, np.ma.MaskedArray) and np.ma.is_masked(sensitive_features):
        masked = int(np.ma.getmaskarray(sensitive_features).sum())
        raise ValueError(f"sensitive_features has {masked} missing values")
    columns = columns[:, None] if columns.ndim == 1 else columns
    crossed = np.zeros(len(columns), dtype=np.int64)
    for column in columns.T:
        codes, values = pd.factorize(column, sort=True)
        if (codes < 0).any():
            raise ValueError(f"sensitive_features has {(codes < 0).sum()} missing values")
        codes, values = join_spellings(codes, values)
        crossed = np.unique(crossed * len(values) + codes, return_inverse=True)[1]
    return crossed


def one_spelling(text: str) -> str:
    """A text as a value: in the composed form of Unicode (NFC), without blanks and byte order marks around it.

    ValueError if it has a NUL character, where other programs, and NumPy at the end of a text, would cut it off.
    """
    if "\0" in text:
        raise ValueError(f"a NUL character in {shortened(ascii(text))}")
    return unicodedata.normalize("NFC", text.strip().strip("\ufeff").strip())


def describe_merged(spellings: Iterable[Any], values: Iterable[Any], counts: Iterable[int]) -> list[str]:
    """A sentence for each of the first values that are written in several ways, with the numbers of rows."""
    ways: dict[Any, list[str]] = {}
    for spelling, value, count in zip(spellings, values, counts, strict=True):
        ways.setdefault(value, []).append(f"{shortened(ascii(spelling))} ({count:,} rows)")
    merged = [of for of in ways.values() if len(of) > 1]
    told = [f"{shortened(' and '.join(of), 300)} are one value" for of in merged[:_SHOWN]]
    return told + (
        [f"{len(merged) - _SHOWN:,} more values are written in several ways"] * (len(merged) > _SHOWN)
    )


def join_spellings(codes: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give texts that differ only in their spelling one code, and warn about it.

    `codes` are positions in `values`, which are different. The new values are sorted, with texts as `one_spelling`
    writes them, and values that are no text unchanged. ValueError if a text has a NUL character or is damaged.
    """
    if values.dtype.kind not in "OU":
        return codes, values
    try:
        spelled = values.tolist()
    except SystemError:  # NumPy lets Python make text of numbers that are no characters.
        raise ValueError(
            "sensitive_features has text that is damaged, because it holds numbers that are no characters: write it "
            "again"
        ) from None
    try:
        joined = [one_spelling(value) if isinstance(value, str) else value for value in spelled]
    except ValueError as error:
        raise ValueError(f"sensitive_features has {error}: correct it") from None
    if joined == spelled:
        return codes, values
    if told := describe_merged(spelled, joined, np.bincount(codes, minlength=len(values)).tolist()):
        warnings.warn(f"sensitive_features: {'; '.join(told)}", UserWarning, stacklevel=3)
    found = sorted(set(joined), key=str)
    place = {value: code for code, value in enumerate(found)}
    dtype = object if values.dtype.kind == "O" else None
    return np.array([place[value] for value in joined])[codes], np.array(found, dtype=dtype)


def cluster_sizes(labels: ArrayLike, n_clusters: int | None = None) -> NDArray[np.int64]:
    """Number of points of every cluster.

    Parameters
    ----------
    labels : array-like of int, shape (n_samples,)
        Cluster of each point, in 0 .. n_clusters - 1.
    n_clusters : int, optional
        Number of clusters K. Default: the largest label plus one.

    Returns
    -------
    ndarray of int64, shape (n_clusters,)

    Raises
    ------
    ValueError
        If the labels have not one dimension, are no integers, or are out of range.
    """
    cluster = _codes(labels, "labels")
    return np.bincount(cluster, minlength=_number(cluster, n_clusters, "labels")).astype(np.int64)


def _codes(codes: ArrayLike, name: str) -> NDArray[np.integer]:
    array = np.asarray(codes)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not {array.ndim}")
    if array.size == 0:
        return array.astype(np.int64)
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be integers, not {array.dtype}")
    return array


def _number(codes: NDArray[np.integer], given: int | None, name: str) -> int:
    """Number of classes; raises if a code lies outside of 0 .. number - 1."""
    largest = int(codes.max()) if codes.size else -1
    number = largest + 1 if given is None else given
    if largest >= number or (codes.size and codes.min() < 0):
        raise ValueError(f"{name} must lie in 0 .. {number - 1}, found {codes.min()} .. {largest}")
    return number
