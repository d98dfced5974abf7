"""What the commands that fit methods share: parameters of `--set`, fits from several starts, errors and notes."""

from __future__ import annotations

import argparse
import ast
import inspect
import warnings
from collections.abc import Iterator
from contextlib import suppress
from time import perf_counter
from typing import Any

import numpy as np

from fairclust import methods
from fairclust.base import Diverged
from fairclust.cli import CommandError, raw_table
from fairclust.cli.methods import find_method
from fairclust.messages import nearest
from fairclust.metrics import Scored

# Weights to try for methods that have no bound, as multiples of the sum of the squared lengths of all rows.
_WEIGHTS = {"lam": (0.02, 0.1, 0.2, 0.5, 2.0), "rho": (1, 5, 20, 100)}
_TOLERANCES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8)


def parameters(cls: type, n_clusters: int, seed: int, assignments: list[str]) -> dict[str, Any]:
    """Parameters of a method from the ``NAME=VALUE`` of ``--set``, checked against its signature.

    `seed` becomes ``random_state`` if the method has this parameter. CommandError if a text is not of the form
    ``NAME=VALUE``, or names a parameter that cannot be set here.
    """
    known = set(inspect.signature(cls).parameters)
    params: dict[str, Any] = {"n_clusters": n_clusters}
    if "random_state" in known:
        params["random_state"] = seed
    chosen: set[str] = set()
    for given in assignments:
        name, sign, value = given.partition("=")
        if not sign:
            raise CommandError(f"--set {given}: expected NAME=VALUE, such as --set lam=100")
        if name == "n_clusters":
            raise CommandError(f"--set {given}: give it as --n-clusters {value}")
        if name not in known:
            of_price = name in inspect.signature(methods.PriceFairKMeans).parameters
            hint = nearest(name, sorted(known))
            hint = "Fix: leave it out, or fit by --method price, which has it" if of_price else hint
            raise CommandError(f"{given}: {cls.__name__} has no parameter {name!r}; {hint}")
        if name in chosen:
            raise CommandError(f"{given}: {name} is set twice. Fix: leave out one of the two")
        chosen.add(name)
        params[name] = _value(value)
    return params


def _value(text: str) -> Any:
    """A number, list, mapping or truth value in the notation of Python or YAML; everything else is text."""
    words = {"true": "True", "false": "False", "none": "None", "null": "None"}
    with suppress(ValueError, SyntaxError):
        return ast.literal_eval(words.get(text.lower(), text))
    return text


def fit(
    cls: type, params: dict[str, Any], X: np.ndarray, groups: Any, weights: np.ndarray | None = None
) -> tuple[Any, float, list[str]]:
    """Fit a method to rows and their groups, which may be a mapping of columns.

    Returns the model, the seconds that the fit took, and the first line of each warning. CommandError if the method
    refuses the data or a parameter, takes no weights although they are given, or diverges.
    """
    begin = perf_counter()
    counted = {} if weights is None else {"sample_weight": weights}
    if counted and not getattr(cls, "takes_weights", False):
        raise CommandError(
            f"--weight: {cls.__name__} takes no weights. Fix: leave it out, or fit by --method price"
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = cls(**params).fit(X, sensitive_features=groups, **counted)
        except (ValueError, TypeError, Diverged) as error:
            raise CommandError(f"{cls.__name__} cannot fit the table: {error}") from None
    return model, perf_counter() - begin, [str(item.message).splitlines()[0] for item in caught]


def is_cosine(model: Any) -> bool:
    """Whether a model compares rows by their angles."""
    return getattr(model, "metric", None) == "cosine"


def plain_kmeans(model: Any, params: dict[str, Any]) -> Any:
    """k-means with as many starts as a fair fit with these parameters. With fewer, fairness would look too cheap."""
    found = {"n_init": getattr(model, "n_init", 1), "search": getattr(model, "search", False)}
    found |= {"metric": "cosine"} if is_cosine(model) else {}
    return methods.KMeans(model.n_clusters, random_state=params.get("random_state"), **found)


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


class Grid:
    """What `front` and `report` fit to a table: the options name the numbers of clusters and the methods."""

    def __init__(self, args: argparse.Namespace) -> None:
        if args.starts < 1:
            raise CommandError(
                f"--starts: {args.starts} is no number of starts. Fix: write a whole number of 1 or more"
            )
        first, colon, last = args.n_clusters.partition(":")
        try:
            self.numbers = list(range(int(first), int(last) + 1)) if colon else [int(first)]
        except ValueError:
            self.numbers = []
        if not self.numbers or self.numbers[0] < 1:
            raise CommandError(
                f"--n-clusters: {args.n_clusters!r} is neither a number nor a range. Fix: write 3 or 2:10, for example"
            )
        self.classes = [find_method(name) for name in args.methods or ("price", "vfc", "bfkm")]
        self.raw, self._crossed = raw_table.read(args), args.crossed

    def groups(self, cls: type) -> Any:
        """The sensitive features as a method takes them."""
        return raw_table.sensitive_for(cls, self.raw, crossed=self._crossed)

    def scored(self, labels: np.ndarray, n_clusters: int) -> Scored:
        """A clustering of the table for `score_labels`.

        If there are several sensitive columns, the metrics of groups are those of the least fair column, or, if
        `--crossed` is given, of the combinations.
        """
        groups = self.raw.groups.astype(str)
        several = {} if self._crossed or len(groups.columns) < 2 else groups
        columns = {name: np.unique(several[name], return_inverse=True)[1] for name in several}
        codes = np.unique(self.raw.crossed, return_inverse=True)[1]
        return Scored(labels, codes, self.raw.X, n_clusters, columns=columns)

    def settings(self, seed: int, *, one: bool = False) -> Iterator[tuple[type, str, dict[str, Any]]]:
        """For every K, k-means, then each method over a grid of the parameter that sets its fairness.

        Yields the class, the setting (such as ``tolerance=0.1``; empty for defaults) and the arguments for the class.
        With `one`, each method is yielded once, with its defaults.
        """
        for n_clusters in self.numbers:
            # Without the search, a fair setting could look cheaper than k-means.
            yield methods.KMeans, "", parameters(methods.KMeans, n_clusters, seed, []) | {"search": True}
            for cls in self.classes:
                params = parameters(cls, n_clusters, seed, [])
                name, grid = (None, ()) if one else self._fairness_of(cls)
                if name is None:
                    if cls is not methods.KMeans:
                        yield cls, "", params
                    continue
                for value in grid:
                    yield cls, f"{name}={value:g}", params | {name: value}

    def _fairness_of(self, cls: type) -> tuple[str | None, tuple[float, ...]]:
        known = cls._parameter_constraints  # type: ignore[attr-defined]
        if "tolerance" in known:
            return "tolerance", _TOLERANCES
        scale = float(np.square(self.raw.X).sum())
        for name in ("rho", "lam"):
            if name in known:
                return name, tuple(float(f"{weight * scale:.2g}") for weight in _WEIGHTS[name])
        return None, ()
