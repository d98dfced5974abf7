"""Weights of rows: checks, and the rows of weight 0, which do not count and get a label after the fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples


def positive_weights(sample_weight: Any, n_samples: int) -> np.ndarray:
    """Weights of rows as floats, shape (n_samples,).

    ValueError unless there is one weight for each row, and all are positive and finite. Rows of weight 0 are set aside
    before this, see `rows_without_weight`.
    """
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_samples,):
        raise ValueError(f"sample_weight has shape {weights.shape}, expected ({n_samples},)")
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError(
            "sample_weight must be finite and not negative, and not 0 for all rows; rows of weight 0 do not count"
        )
    return weights


def rows_without_weight(sample_weight: Any, n_samples: int) -> np.ndarray:
    """The rows of weight 0, which do not count and get a label; none if `positive_weights` would refuse the others."""
    weights = np.asarray(sample_weight)
    usable = weights.shape == (n_samples,) and weights.any()
    return np.flatnonzero(weights == 0) if usable else np.zeros(0, np.intp)


def groups_of_rows(sensitive_features: Any, rows: np.ndarray, n_samples: int) -> Any:
    """Sensitive features of some of `n_samples` rows, in the form in which they are given."""
    if sensitive_features is None:
        return None
    if isinstance(sensitive_features, Mapping):
        return {name: groups_of_rows(column, rows, n_samples) for name, column in sensitive_features.items()}
    if _num_samples(sensitive_features) != n_samples:
        raise ValueError(
            f"sensitive_features has {_num_samples(sensitive_features)} rows, expected {n_samples}"
        )
    return _safe_indexing(sensitive_features, rows)


def check_weights(sample_weight: Any, n_samples: int) -> tuple[np.ndarray | None, float]:
    """Divide weights by their mean; returns them and the mean, or None and 1 if all are 1."""
    weights = positive_weights(sample_weight, n_samples)
    if (weights == 1).all():
        return None, 1.0
    mean = float(weights.mean())
    return weights / mean, mean
