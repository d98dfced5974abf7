"""Call the generator that a data set names, and check what it returns."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fairclust.datasets.errors import DatasetError
from fairclust.datasets.store import PreparedDataset


class Generated(NamedTuple):
    """The data that a generator returns.

    Attributes
    ----------
    X : ndarray of float64, shape (N, d)
        Features before scaling; a graph has no columns. Preparation scales the array in place, so the generator must
        not use it again.
    groups : ndarray of int, shape (N,)
        Group codes from 0.
    feature_names : sequence of str, length d
    group_names : sequence of str, length J
    W : csr_array of shape (N, N), optional
        For a graph: symmetric affinity of its nodes.
    truth : ndarray of int, shape (N,), optional
        True clusters, codes from 0.

    Examples
    --------
    >>> from fairclust.datasets.blobs import make_group_blobs
    >>> data = make_group_blobs()
    >>> data.X.shape, data.group_names
    ((600, 2), ('A', 'B', 'C'))
    """

    X: np.ndarray
    groups: np.ndarray
    feature_names: tuple[str, ...]
    group_names: tuple[str, ...]
    W: sp.csr_array | None = None
    truth: np.ndarray | None = None


def run_generator(dotted: str, params: Mapping[str, Any]) -> PreparedDataset:
    """Import ``package.module.function`` and call it with the parameters; the data that it returns are not scaled yet.

    It is a DatasetError if there is none, if it does not take these parameters, or if it returns something else than a
    finite matrix with a valid group code for each row.
    """
    module, _, function = dotted.rpartition(".")
    try:
        generator = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise DatasetError(
            f"the generator '{dotted}' cannot be imported; found {error}. Fix: check the dotted path, and that its "
            "folder is on PYTHONPATH"
        ) from error
    try:
        X, groups, feature_names, group_names, W, truth = Generated(*generator(**params))
        X = np.ascontiguousarray(X, dtype=np.float64)
        W, truth = None if W is None else sp.csr_array(W), None if truth is None else np.asarray(truth)
    except (TypeError, ValueError) as error:
        raise DatasetError(
            f"the generator '{dotted}' failed with params {dict(params)}; expected (X, groups, feature_names, "
            f"group_names); found {type(error).__name__}: {error}. Fix: correct 'params'"
        ) from error
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
    elif W is not None and (W.shape != (len(X), len(X)) or len(feature_names)):
        complaint = f"a graph of shape {W.shape} with {len(feature_names)} features for {len(X)} rows"
    elif truth is not None and truth.shape != (len(X),):
        complaint = f"true clusters of shape {truth.shape} for {len(X)} rows"
    if complaint:
        raise DatasetError(
            f"the generator '{dotted}' returned something unusable; expected finite X (N, d), integer groups (N,) from "
            "0, d feature names, J group names; a graph has W (N, N) and d = 0; found "
            f"{complaint}. Fix: correct the generator"
        )
    card = {"generator": dotted, "params": dict(params), "rows_read": len(X), "dropped": []}
    names = tuple(feature_names), tuple(group_names)
    return PreparedDataset(X, groups.astype(np.int32), *names, card, W, truth)
