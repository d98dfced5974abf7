"""Group codes from a sensitive column, and the target shares of the groups."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from fairclust.messages import shortened
from fairclust.metrics.counts import join_spellings, one_spelling


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA refuses to be compared
        return True


def _plain_values(sensitive_features: Any) -> tuple[np.ndarray, np.ndarray]:
    """Values as numbers or as strings, and which of them are missing.

    Lists first become arrays of objects, because NumPy would turn the NaN in a list of strings into the string 'nan'.
    """
    masked = np.ma.getmaskarray(sensitive_features) if np.ma.isMaskedArray(sensitive_features) else None
    if isinstance(sensitive_features, (list, tuple)):
        try:
            values = np.array(sensitive_features, dtype=object)
        except ValueError:
            raise ValueError(
                "sensitive_features must be one column, found rows of several lengths: pass one value for each row"
            ) from None
    else:
        values = np.asarray(sensitive_features)
    if values.ndim == 2 and values.shape[1] == 1:
        values, masked = values[:, 0], None if masked is None else masked[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"sensitive_features must be one column, found shape {values.shape}; join several columns "
            "into one first, for instance data['sex'] + '-' + data['race']"
        )
    if values.dtype == object:
        missing = np.fromiter(map(_is_missing, values), bool, len(values))
        missing = missing if masked is None else missing | masked
        values = _of_one_type(values, missing)
    else:
        missing = values != values if masked is None else (values != values) | masked
    return values, missing


def _of_one_type(values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Objects as numbers if all are numbers, else as strings; values of two types with one string are an error."""
    kept = values[~missing]
    if all(isinstance(value, (bool, np.bool_, Integral, Real)) for value in kept):
        numbers = np.zeros(len(values), dtype=np.array(kept.tolist() or [0]).dtype)
        numbers[~missing] = kept
        return numbers
    types: dict[str, type] = {}
    for value in kept:
        if isinstance(value, (list, tuple, np.ndarray)):
            raise ValueError(
                f"sensitive_features must be one column, found {shortened(repr(value))} in a row: "
                "pass one value for each row"
            )
        text = str(value)
        if text.endswith("\0"):
            raise ValueError(
                f"sensitive_features has {shortened(repr(text))}, whose last character NumPy drops: "
                "strip it from the values"
            )
        if types.setdefault(text, type(value)) is not type(value):
            raise ValueError(
                f"sensitive_features has {shortened(repr(text))} as {types[text].__name__} and as "
                f"{type(value).__name__}: give all values one type, for instance by .astype(str)"
            )
    return np.where(missing, "", values).astype(str)


def encode_groups(
    sensitive_features: Any, n_samples: int, *, known: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Group codes, int32, from one sensitive column, and the names of the groups: sorted distinct values, or `known`.

    ValueError if the column is missing, has the wrong length, several columns, missing values, texts with a NUL
    character, values of different types with the same string, or values not in `known`. Texts that differ only in
    spelling (`fairclust.metrics.counts.one_spelling`) are one group, with a warning.
    """
    if sensitive_features is None:
        raise ValueError(
            "sensitive_features is missing: pass the group of every row, as in "
            "fit(X, sensitive_features=data['sex'])"
        )
    values, missing = _plain_values(sensitive_features)
    if len(values) != n_samples:
        raise ValueError(
            f"sensitive_features has {len(values)} rows, X has {n_samples}: pass the group of every row"
        )
    if missing.any():
        raise ValueError(
            f"sensitive_features has {int(missing.sum())} missing values (first in row "
            f"{int(missing.argmax())}): drop those rows or give them a group of their own"
        )
    if known is None:
        names, codes = np.unique(values, return_inverse=True)
        codes, names = join_spellings(codes, names)
        return codes.astype(np.int32), names
    listed = shortened(", ".join(map(repr, known.tolist())), 300)
    if (values.dtype.kind == "U") != (known.dtype.kind == "U"):
        found, seen = ("strings", "numbers") if values.dtype.kind == "U" else ("numbers", "strings")
        raise ValueError(
            f"sensitive_features has {found}, such as {shortened(repr(values[:1].tolist()[0]))}, and the groups of "
            f"fit are {seen}: {listed}; convert them to the type that they had in fit"
        )
    codes, strange = positions(values, known)
    if strange.any():
        unknown = ", ".join(shortened(repr(value)) for value in np.unique(values[strange])[:5].tolist())
        raise ValueError(
            f"sensitive_features has groups not seen in fit: {unknown}; known: {listed}. Leave out their rows, or "
            "fit on data that have these groups"
        )
    return codes.astype(np.int32), known


def positions(values: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of values in sorted `known`, where texts have one spelling, and which values are not in it."""
    codes = np.minimum(np.searchsorted(known, values), len(known) - 1)
    strange = known[codes] != values
    if strange.any() and values.dtype.kind == "U":
        spelled, which = np.unique(values[strange], return_inverse=True)
        again = np.array([one_spelling(text) for text in spelled.tolist()])[which]
        codes[strange] = np.minimum(np.searchsorted(known, again), len(known) - 1)
        strange[strange] = known[codes[strange]] != again
    return codes, strange


def neutral_order(X: Any, codes: np.ndarray) -> np.ndarray:
    """The groups, smallest first: an order by size, then by the sum of their squared rows, that ignores their names."""
    sizes = np.bincount(codes)
    squares: np.ndarray = np.zeros(len(sizes))
    # Squares are needed only for groups of one size.
    if len(np.unique(sizes)) < len(sizes):
        rows = np.asarray((X.multiply(X) if hasattr(X, "multiply") else X**2).sum(axis=1)).ravel()
        squares = np.bincount(codes, weights=rows)
    return np.lexsort((squares, sizes))


def resolve_target(target: Any, names: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Target shares of the groups in the order of `names`, positive and summing to one; None takes the data's own.

    ValueError if there is not one positive share for each group, or the shares do not sum to one.
    """
    if target is None:
        return np.bincount(codes, minlength=len(names)) / len(codes)
    if isinstance(target, Mapping):
        by_name = {one_spelling(str(key)): share for key, share in target.items()}
        if set(by_name) != {str(name) for name in names}:
            raise ValueError(
                f"target names {shortened(str(sorted(map(str, target))), 300)}, the groups are "
                f"{shortened(str([str(n) for n in names]), 300)}: give one share for each group"
            )
        target = [by_name[str(name)] for name in names]
    shares = np.asarray(target, dtype=float)
    if shares.shape != (len(names),):
        raise ValueError(
            f"target has shape {shares.shape}, expected one share for each of {len(names)} groups"
        )
    if not (shares > 0).all() or abs(shares.sum() - 1) > 1e-6:
        raise ValueError(f"target must be positive shares that sum to 1, found {shares.tolist()}")
    return shares / shares.sum()
