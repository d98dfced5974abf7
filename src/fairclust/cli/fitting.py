"""What the commands that fit methods share: parameters of `--set`, fits from several starts, errors and notes."""

from __future__ import annotations

import ast
import inspect
import warnings
from time import perf_counter
from typing import Any

import numpy as np

from fairclust.base import Diverged
from fairclust.cli import CommandError
from fairclust.messages import nearest


def parameters(cls: type, n_clusters: int, seed: int, assignments: list[str]) -> dict[str, Any]:
    """Parameters of a method from the ``NAME=VALUE`` of ``--set``, checked against its signature.

    `seed` becomes ``random_state`` if the method has this parameter. CommandError if a text is not of the form
    ``NAME=VALUE``, or names a parameter that cannot be set here.
    """
    known = set(inspect.signature(cls).parameters)
    params: dict[str, Any] = {"n_clusters": n_clusters}
    if "random_state" in known:
        params["random_state"] = seed
    for given in assignments:
        name, sign, value = given.partition("=")
        if not sign:
            raise CommandError(f"--set {given}: expected NAME=VALUE, such as --set lam=100")
        if name == "n_clusters":
            raise CommandError(f"--set {given}: give it as --n-clusters {value}")
        if name not in known:
            hint = nearest(name, sorted(known))
            raise CommandError(f"--set {given}: {cls.__name__} has no parameter {name!r}; {hint}")
        params[name] = _value(value)
    return params


def _value(text: str) -> Any:
    """A number, list, mapping or truth value in the notation of Python or YAML; everything else is text."""
    plain = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in plain:
        return plain[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def fit(cls: type, params: dict[str, Any], X: np.ndarray, groups: Any) -> tuple[Any, float, list[str]]:
    """Fit a method to rows and their groups, which may be a mapping of columns.

    Returns the model, the seconds that the fit took, and the first line of each warning. CommandError if the method
    refuses the data or a parameter, or diverges.
    """
    begin = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = cls(**params).fit(X, sensitive_features=groups)
        except (ValueError, TypeError, Diverged) as error:
            raise CommandError(f"{cls.__name__} cannot fit the table: {error}") from None
    return model, perf_counter() - begin, [str(item.message).splitlines()[0] for item in caught]


def fit_starts(
    cls: type, params: dict[str, Any], X: np.ndarray, groups: Any, starts: int
) -> tuple[Any, float, list[str]]:
    """Fit a method from several starts, and keep the fit with the lowest objective. Returns what `fit` returns.

    A method without the parameter `n_init` is fitted once for each start, with another seed each time, so all methods
    that have random starts are compared with the same number of them. The seconds are those of all starts together.
    """
    takes = inspect.signature(cls).parameters
    if "n_init" in takes:
        return fit(cls, params | {"n_init": starts}, X, groups)
    if "random_state" not in takes:
        return fit(cls, params, X, groups)
    seeds = range(params["random_state"], params["random_state"] + starts)
    fits = [fit(cls, params | {"random_state": seed}, X, groups) for seed in seeds]
    model, _, warned = min(fits, key=lambda found: found[0].history_[-1]["objective"])
    return model, sum(seconds for _, seconds, _ in fits), warned
