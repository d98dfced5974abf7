"""Call the generator that a data set names, and check what it returns."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fairclust.datasets.errors import problem


class Generated(NamedTuple):
    """What a generator returns.

    Attributes
    ----------
    X : ndarray of float64, shape (N, d)
        Features before scaling. The array is handed over: preparation scales it in place.
    groups : ndarray of int, shape (N,)
        Group codes from 0.
    feature_names : sequence of str, length d
    group_names : sequence of str, length J
    """

    X: np.ndarray
    groups: np.ndarray
    feature_names: tuple[str, ...]
    group_names: tuple[str, ...]


def run_generator(dataset: str, dotted: str, params: Mapping[str, Any]) -> Generated:
    """Import and call a generator.

    Parameters
    ----------
    dataset : str
        Name of the data set, for messages.
    dotted : str
        ``package.module:function`` or ``package.module.function``.
    params : mapping
        Keyword arguments.

    Returns
    -------
    Generated

    Raises
    ------
    DatasetError
        There is no such function, it does not take these parameters, or what it returns is not
        a finite matrix with a valid group code for each row.
    """
    module, _, function = dotted.replace(":", ".").rpartition(".")
    try:
        generator = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise problem(
            f"the generator '{dotted}' cannot be imported",
            dataset=dataset,
            found=error,
            fix="check the dotted path, and that its folder is on PYTHONPATH",
        ) from error
    try:
        X, groups, feature_names, group_names = generator(**params)
    except (TypeError, ValueError) as error:
        raise problem(
            f"the generator '{dotted}' failed with params {dict(params)}",
            dataset=dataset,
            expected="(X, groups, feature_names, group_names)",
            found=f"{type(error).__name__}: {error}",
            fix="correct 'params'",
        ) from error
    X = np.ascontiguousarray(X, dtype=np.float64)
    groups = np.asarray(groups)
    complaint = None
    if X.ndim != 2 or X.shape[1] != len(feature_names):
        complaint = f"X of shape {X.shape} with {len(feature_names)} feature names"
    elif groups.shape != (len(X),) or groups.dtype.kind not in "iu":
        complaint = f"groups of shape {groups.shape} and type {groups.dtype} for {len(X)} rows"
    elif len(X) and not 0 <= groups.min() <= groups.max() < len(group_names):
        complaint = f"group codes {groups.min()} to {groups.max()} for {len(group_names)} group names"
    elif not np.isfinite(X).all():
        complaint = "NaN or infinity in X"
    if complaint:
        raise problem(
            f"the generator '{dotted}' returned something unusable",
            dataset=dataset,
            expected="finite X (N, d), integer groups (N,) from 0, d feature names, J group names",
            found=complaint,
            fix="correct the generator",
        )
    return Generated(X, groups.astype(np.int32), tuple(feature_names), tuple(group_names))
