"""`fairclust methods`: lists the methods. Other commands find a method here, set its parameters, and fit it."""

from __future__ import annotations

import ast
import inspect
import warnings
from contextlib import suppress
from time import perf_counter
from typing import Any

import numpy as np
from rich.table import Table

from fairclust import methods
from fairclust.base import Diverged
from fairclust.cli.options import Methods
from fairclust.cli.screen import in_columns
from fairclust.messages import UserError, nearest

# Names of methods that differ from that of their module. The pipeline's entries, in config/methods/, have longer names.
_SHORT = {
    "PriceFairKMeans": "price",
    "VariationalFairKMeans": "vfc",
    "VariationalFairKMedians": "vfc_kmedians",
    "VariationalFairNCut": "vfc_ncut",
    "BalancedFairKMeans": "bfkm",
    "FairMixture": "fmc",
    "FairAlignmentKMeans": "fca",
    "FairletTreeClustering": "backurs",
    "FairletClustering": "fairlets",
    "FairSpectralClustering": "sfairsc",
}
_CLASSES = {
    _SHORT.get(name, home.rpartition(".")[2]): name for name, (home, *_) in methods._MODULE_OF.items()
}
# k-means, with which fits are compared. With fewer starts or without the search, fairness would look too cheap.
PLAIN = {"n_init": 10, "search": True}
# Truth values and None in the notation of YAML.
_WORDS = {"true": "True", "false": "False", "none": "None", "null": "None"}


def run(args: Methods) -> list[str | Table]:
    """The methods, by the names that options take."""
    rows = [
        [short, name, (getattr(methods, name).__doc__ or "").partition("\n")[0]]
        for short, name in sorted(_CLASSES.items())
    ]
    return [in_columns([["method", "class", "what it does"], *rows], left=(0, 1, 2))]


def find_method(name: str) -> type:
    """The class of a method by its short name or its own; UserError, with a similar name, if there is none."""
    known = _CLASSES.get(name) or (name if name in methods.__all__ else None)
    if known is None:
        hint = nearest(name, [*_CLASSES, *methods.__all__])
        raise UserError(f"--method: there is no method {name!r}; {hint} (`fairclust methods` lists them)")
    return getattr(methods, known)


def parameters(cls: type, n_clusters: int, seed: int, assignments: list[str]) -> dict[str, Any]:
    """Parameters of a method from the ``NAME=VALUE`` of ``--set``, checked against its signature.

    UserError if a text is not of the form ``NAME=VALUE``, or names a parameter that cannot be set here.
    """
    known = set(inspect.signature(cls).parameters)
    params: dict[str, Any] = {"n_clusters": n_clusters, "random_state": seed}
    chosen = {"n_clusters", *(["random_state"] if seed else [])}
    for given in assignments:
        name, sign, value = given.partition("=")
        if not sign:
            raise UserError(f"--set {given}: expected NAME=VALUE, such as --set lam=100")
        if name not in known:
            of_price = name in inspect.signature(methods.PriceFairKMeans).parameters
            hint = f"; {nearest(name, sorted(known))}"
            hint = ". Fix: leave it out, or fit by --method price, which has it" if of_price else hint
            raise UserError(f"{given}: {cls.__name__} has no parameter {name!r}{hint}")
        if name in chosen:
            raise UserError(f"{given}: {name} is set twice. Fix: leave out one of the two")
        chosen.add(name)
        # What is no number, list, mapping or truth value in the notation of Python or YAML is text.
        params[name] = value
        with suppress(ValueError, SyntaxError):
            params[name] = ast.literal_eval(_WORDS.get(value.lower(), value))
    return params


def fit(
    cls: type, params: dict[str, Any], X: np.ndarray, groups: Any, weights: np.ndarray | None = None
) -> tuple[Any, float, list[str]]:
    """Fit a method to rows and their groups, which may be a mapping of columns.

    Returns the model, the seconds that the fit took, and the first line of each warning. UserError if the method
    refuses the data or a parameter, takes no weights although they are given, or diverges.
    """
    begin = perf_counter()
    counted = {} if weights is None else {"sample_weight": weights}
    if counted and not getattr(cls, "takes_weights", False):
        raise UserError(
            f"--weight: {cls.__name__} takes no weights. Fix: leave it out, or fit by --method price"
        )
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            model = cls(**params).fit(X, sensitive_features=groups, **counted)
        except (ValueError, TypeError, Diverged) as error:
            raise UserError(f"{cls.__name__} cannot fit the table: {error}") from None
    return model, perf_counter() - begin, [str(item.message).splitlines()[0] for item in caught]


def fit_starts(
    cls: type, params: dict[str, Any], X: np.ndarray, groups: Any, starts: int
) -> tuple[Any, float, list[str]]:
    """Fit a method from several starts, and keep the fit with the lowest objective. Returns what `fit` returns.

    A method without the parameter `n_init` is fitted once for each start, with another seed each time, so all methods
    are compared with the same number of starts. The seconds are those of all starts together.
    """
    if "n_init" in inspect.signature(cls).parameters:
        return fit(cls, {"n_init": starts} | params, X, groups)
    seeds = range(params["random_state"], params["random_state"] + starts)
    fits = [fit(cls, params | {"random_state": seed}, X, groups) for seed in seeds]
    model, _, warned = min(fits, key=lambda fitted: fitted[0].history_[-1]["objective"])
    return model, sum(seconds for _, seconds, _ in fits), warned
