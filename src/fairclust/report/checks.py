"""Checks of claims: each check looks at one data set and one K and gives a verdict with its numbers.

Every check that compares settings takes these options: `lam` (only this lambda), `settings` (method to
parameters), `fairness` and `level` (only settings whose mean fairness is within the level). Among the remaining
settings, the one with the best mean of the metric represents its method. The option `metric` can replace the
key `metrics`. A table is given by its name or by its number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from fairclust.pipeline.columns import COLUMNS
from fairclust.pipeline.papers import ClaimSpec, TableSpec
from fairclust.report.names import Names, metric_in_text, metric_label
from fairclust.report.render import number, spread_text
from fairclust.report.selection import (
    HAIR,
    NOT_RUN,
    Choice,
    cells_of,
    choose,
    choose_best,
    choose_printed,
    match_on,
    reported_level,
    within,
)
from fairclust.report.verdicts import table_rows

HOLDS, IN_PART, FAILS, NOT_TESTED = "holds", "holds in part", "does not hold", "not tested"
CLAIM_VERDICTS = (HOLDS, IN_PART, FAILS, NOT_TESTED)
Finding = tuple[str, str]
"""A verdict, and a sentence with the numbers behind it."""


class ClaimError(ValueError):
    """A claim in a paper's file is not valid; the message names the key, and known values where there are some."""


class CannotTest(Exception):
    """This run lacks something that a check needs; the message says what."""


@dataclass(frozen=True)
class Material:
    """The data that checks read.

    Attributes
    ----------
    tables : mapping of str to TableSpec
        The paper's tables by name.
    reported, cells, steps : DataFrame
        Reported values, and the frames of `pipeline.scores.load_cells` and `load_steps`.
    names : Names
    """

    tables: Mapping[str, TableSpec]
    reported: pd.DataFrame
    cells: pd.DataFrame
    steps: pd.DataFrame
    names: Names


@dataclass(frozen=True)
class Place:
    """A data set and a K, with the cells of all methods there."""

    dataset: str
    n_clusters: int | None
    cells: pd.DataFrame


@dataclass(frozen=True)
class Check:
    """A check: its function, and the options and methods that a claim gives it.

    Attributes
    ----------
    function : callable
        (claim, place, material) -> Finding. If the check looks at all data sets together, the place has all cells.
    options : tuple of str
        Options in `ClaimSpec.options` that the check takes in addition to `_COMMON_OPTIONS`.
    n_methods : int
        Smallest number of methods that the claim must name.
    needs : tuple of str
        Options that must be given.
    across : bool
        Whether the check can look at all data sets together.
    """

    function: Callable[[ClaimSpec, Place, Material], Finding]
    options: tuple[str, ...] = ()
    n_methods: int = 1
    needs: tuple[str, ...] = ()
    across: bool = False


_SETTING_OPTIONS = ("lam", "settings", "fairness", "level")
_COMMON_OPTIONS = (*_SETTING_OPTIONS, "metric")


def compare_at_equal(claim: ClaimSpec, place: Place, material: Material) -> Finding:
    """At equal fairness the metric of the first method is at most `factor` times that of the second.

    Options: `fairness` (default fairness_error); `level`, or `level_from`: 'reported' (the value that the paper
    reports for the second method, or else for the first), 'method' (the mean of the second method's fairest
    setting) or the name of another method (the mean of its fairest setting); `table` (the table that reports the
    level); `factor` (default 1; if higher values of the metric are better, the first method must have at least
    `factor` times the value of the second).
    """
    options = claim.options
    fairness = str(options.get("fairness", "fairness_error"))
    level = _level(claim, place, material, fairness)
    if math.isnan(level):
        raise CannotTest(f"{metric_in_text(fairness)} was not scored")
    words = []
    choices = []
    for method in claim.methods[:2]:
        match = match_on(fairness, _metric(claim))
        choices.append(choose(_ran(place, method, material, claim), level, match))
    reached = [choice.reached for choice in choices]
    at = f"at {metric_in_text(fairness)} {level:.3g}"
    for method, choice in zip(claim.methods, choices, strict=False):
        if not choice.reached:
            got = number(choice.spread(fairness).mean, COLUMNS[fairness].decimals)
            words.append(f"{material.names.method(method)} does not reach the level (fairest: {got})")
    if not any(reached):
        raise CannotTest(f"{at}: neither method reaches it")
    if not all(reached):
        return (IN_PART if reached[0] else FAILS), f"{at}, {'; '.join(words)}"
    verdict, sentence = _compare(claim, choices, material)
    return verdict, f"{at}, {sentence}"


def compare(claim: ClaimSpec, place: Place, material: Material) -> Finding:
    """Each metric of the first method is at most `factor` times that of the second.

    Options: `agg` ('mean' over the starts, the default, or 'best'), `factor` as in `compare_at_equal`,
    `direction` ('lower' or 'higher', instead of the metric's direction), `other_dataset` (the data set of the
    second method, if it is another one).
    """
    places = [place, place]
    if "other_dataset" in claim.options:
        other = str(claim.options["other_dataset"])
        places[1] = Place(other, place.n_clusters, cells_at(material.cells, other, place.n_clusters))
    found = []
    for metric in _metrics(claim):
        choices = [
            _setting(claim, where, method, material, metric)
            for where, method in zip(places, claim.methods[:2], strict=True)
        ]
        found.append(_compare(claim, choices, material, metric))
    return joined(verdict for verdict, _ in found), "; ".join(words for _, words in found)


def never_rises(claim: ClaimSpec, place: Place, material: Material) -> Finding:
    """The objective never rises from one step to the next, in any fit of the methods.

    Options: `tolerance` (relative rise that is ignored, default 1e-9), `column` (of the history, default objective).
    """
    column, tolerance = str(claim.options.get("column", "objective")), _real(claim, "tolerance", 1e-9)
    if column not in material.steps:
        raise CannotTest(f"this run has no history of {column!r}")
    n_fits, rises, largest = 0, 0, 0.0
    for method in claim.methods:
        cells = _ran(place, method, material, claim)
        steps = material.steps[material.steps.key.isin(cells.key)].dropna(subset=column)
        for _, history in steps.groupby("key", sort=False):
            values = history.sort_values("step")[column].to_numpy(dtype=float)
            if len(values) < 2:
                continue
            rise = np.diff(values) / np.maximum(np.abs(values[:-1]), np.finfo(float).tiny)
            n_fits += 1
            rises += bool((rise > tolerance).any())
            largest = max(largest, float(rise.max()))
    if not n_fits:
        raise CannotTest(f"no fit has a history of {column!r} with two or more steps")
    if not rises:
        return HOLDS, f"{column} rises in none of {n_fits} fits"
    return FAILS, f"{column} rises in {rises} of {n_fits} fits, by at most {largest:.3g} of its value"


def cannot_reach(claim: ClaimSpec, place: Place, material: Material) -> Finding:
    """No setting of the methods reaches `level` in the metric; the claim holds in part if only single starts do."""
    means, starts, words = _reach(claim, place, material)
    return (FAILS if any(means) else IN_PART if any(starts) else HOLDS), words


def reaches(claim: ClaimSpec, place: Place, material: Material) -> Finding:
    """At least one setting of every method reaches `level` in the metric, by its mean.

    The claim holds in part if some methods, or only single starts, reach it.
    """
    means, starts, words = _reach(claim, place, material)
    return (HOLDS if all(means) else IN_PART if any(starts) else FAILS), words


def faster(claim: ClaimSpec, place: Place, material: Material) -> Finding:
    """The second method takes at least `factor` times the seconds of the first.

    The claim holds in part if the second method is slower, but by a smaller factor. Without options that choose a
    setting, the mean over all fits counts. `metrics` can name cpu_seconds instead.
    """
    metric = claim.metrics[0] if claim.metrics else "seconds"
    factor = _real(claim, "factor", 1.0)
    seconds = []
    for method in claim.methods[:2]:
        if any(name in claim.options for name in _SETTING_OPTIONS):
            found = _setting(claim, place, method, material, metric).spread(metric).mean
        else:
            found = float(_ran(place, method, material, claim)[metric].mean())
        if math.isnan(found):
            raise CannotTest(f"{material.names.method(method)} has no {metric_label(metric).lower()}")
        seconds.append(found)
    ratio = seconds[1] / seconds[0] if seconds[0] else math.inf
    first, second = (material.names.method(method) for method in claim.methods[:2])
    words = (
        f"{first} takes {seconds[0]:.3g} s, {second} {seconds[1]:.3g} s: ratio {ratio:.3g}, {factor:g} asked"
    )
    if ratio >= factor:
        return HOLDS, words
    return (IN_PART, words) if ratio > 1 else (FAILS, f"{words}; the order reverses")


def spread_over_seeds(claim: ClaimSpec, place: Place, material: Material) -> Finding:
    """The standard deviation over the starts is small.

    Options: `at_most` (largest share of the mean, for every method, default 0.05); or `factor`: the standard
    deviation of the first method is at most this many times that of the second.
    """
    metric, deviations, words = _metric(claim), [], []
    for method in claim.methods:
        found = _setting(claim, place, method, material, metric).spread(metric)
        if math.isnan(found.sd):
            raise CannotTest(f"{material.names.method(method)} has {found.n} start(s) with a value")
        deviations.append(found.sd / abs(found.mean) if "factor" not in claim.options else found.sd)
        text = spread_text(found.mean, found.sd, COLUMNS[metric].decimals)
        words.append(f"{material.names.method(method)} {text} ({found.n} starts)")
    if "factor" in claim.options:
        if len(deviations) < 2:
            raise ClaimError("option 'factor' compares two methods, and the claim names one; name two")
        ok = [deviations[0] <= _real(claim, "factor", 1.0) * deviations[1] * HAIR]
    else:
        ok = [deviation <= _real(claim, "at_most", 0.05) * HAIR for deviation in deviations]
    return _of_booleans(ok), f"{metric_label(metric)}: {', '.join(words)}"


def no_small_clusters(claim: ClaimSpec, place: Place, material: Material) -> Finding:
    """The smallest cluster of the first method has at least `share` times n/K rows (default 0.5).

    If a second method is named, the cost (the metric) of the first must also be at most `factor` times that of the
    second (default 1.05).
    """
    metric, share = (
        next((m for m in _metrics(claim) if m != "smallest_cluster"), "sse"),
        _real(claim, "share", 0.5),
    )
    choice = _setting(claim, place, claim.methods[0], material, metric)
    smallest = choice.spread("smallest_cluster").mean
    if math.isnan(smallest):
        raise CannotTest("the smallest cluster was not scored")
    cells = choice.cells
    least = share * float(cells.n_rows.iloc[0]) / int(cells.n_clusters.iloc[0])
    ok = [smallest >= least / HAIR]
    words = f"smallest cluster {smallest:,.1f} rows, {least:,.1f} asked"
    if len(claim.methods) > 1:
        other = _setting(claim, place, claim.methods[1], material, metric)
        verdict, sentence = _compare(claim, [choice, other], material, metric, default_factor=1.05)
        ok.append(verdict == HOLDS)
        words += f"; {sentence}"
    return _of_booleans(ok), words


def same_order(claim: ClaimSpec, place: Place, material: Material) -> Finding:
    """The metric orders the methods of a table as the reported values do, measured by Kendall's tau.

    Options: `table` (needed), `tau` (the claim holds from this value on, default 0.8, and in part above 0).
    """
    spec, wanted = table_of(claim.options["table"], material.tables), _real(claim, "tau", 0.8)
    reported = material.reported[material.reported.dataset == place.dataset]
    rows = [row for row in table_rows(spec, reported, place.cells) if row.role == "paper"]
    if claim.methods:
        rows = [row for row in rows if row.method in claim.methods]
    if place.n_clusters is not None:
        rows = [row for row in rows if row.n_clusters in (None, place.n_clusters)]
    found = []
    for metric in _metrics(claim):
        values = [value for row in rows for value in row.values if value.metric == metric]
        pairs = [(value.reported, value.ours.mean) for value in values]
        pairs = [pair for pair in pairs if not any(map(math.isnan, pair))]
        if len(pairs) < 2:
            raise CannotTest(f"fewer than two methods have a value of {metric_label(metric)}")
        tau = float(kendalltau(*zip(*pairs, strict=True)).statistic)
        if math.isnan(tau):
            raise CannotTest(f"all methods have the same {metric_label(metric)}")
        verdict = HOLDS if tau >= wanted / HAIR else IN_PART if tau > 0 else FAILS
        found.append((verdict, f"{metric_label(metric)} of {len(pairs)} methods: tau = {tau:.2f}"))
    return joined(verdict for verdict, _ in found), "; ".join(words for _, words in found)


def falls_with_size(claim: ClaimSpec, place: Place, material: Material) -> Finding:
    """The metric falls like a power of a size: across methods on one data set, or across data sets with one method.

    Options: `sizes` (needed: method or data set to size, or a list in the order of the claim's methods or data
    sets); `power` p, if the metric is claimed to fall like size^-p (default 0.5); `tolerance` of the fitted power
    (default 0.25).
    """
    sizes, metric = sizes_of(claim), _metric(claim)
    points = []
    for name, size in sizes.items():
        dataset, method = (place.dataset, name) if place.dataset else (name, claim.methods[0])
        here = Place(dataset, place.n_clusters, cells_at(material.cells, dataset, place.n_clusters))
        value = _setting(claim, here, method, material, metric).spread(metric).mean
        if not (value > 0 and math.isfinite(value)):
            raise CannotTest(
                f"{metric_label(metric)} is {number(value, 4)} at size {size:g}, so its logarithm is undefined"
            )
        points.append((float(size), value))
    if len(points) < 3:
        raise CannotTest("fewer than three sizes have a value")
    logarithms = np.log(np.array(points)).T
    slope = float(np.polyfit(logarithms[0], logarithms[1], 1)[0])
    wanted, tolerance = -_real(claim, "power", 0.5), _real(claim, "tolerance", 0.25)
    shown = ", ".join(f"{value:.3g} at {size:,g}" for size, value in points)
    words = f"{metric_label(metric)} {shown}: slope {slope:.2f}, {wanted:g} asked"
    if abs(slope - wanted) <= tolerance * HAIR:
        return HOLDS, words
    return (IN_PART if slope * wanted > 0 else FAILS), words


CHECKS: Mapping[str, Check] = {
    "compare_at_equal": Check(compare_at_equal, ("level_from", "table", "factor"), 2),
    "compare": Check(compare, ("agg", "factor", "direction", "other_dataset"), 2),
    "never_rises": Check(never_rises, ("tolerance", "column")),
    "cannot_reach": Check(cannot_reach, (), needs=("level",)),
    "reaches": Check(reaches, (), needs=("level",)),
    "faster": Check(faster, ("factor",), 2),
    "spread": Check(spread_over_seeds, ("at_most", "factor")),
    "no_small_clusters": Check(no_small_clusters, ("share", "factor", "agg")),
    "same_order": Check(same_order, ("table", "tau"), 0, ("table",)),
    "falls_with_size": Check(falls_with_size, ("sizes", "power", "tolerance"), 0, ("sizes",), across=True),
}
"""Every check, under the name that papers' files use for it."""


def validate_claim(name: str, claim: ClaimSpec, tables: Mapping[str, TableSpec]) -> Check:
    """Look up the check that a claim names, after validating the claim's keys and options for that check.

    Parameters
    ----------
    name : str
        Key of the claim, for the message.
    claim : ClaimSpec
    tables : mapping of str to TableSpec

    Returns
    -------
    Check

    Raises
    ------
    ClaimError
        The check, an option, a metric or a table is unknown, or something that the check needs is not given.
    """
    check = CHECKS.get(claim.check)
    if check is None:
        raise ClaimError(f"claims.{name}.check: there is no {claim.check!r} (known: {', '.join(CHECKS)})")
    known = (*check.options, *_COMMON_OPTIONS)
    for option in claim.options:
        if option not in known:
            raise ClaimError(
                f"claims.{name}.options: {claim.check} takes no {option!r} (known: {', '.join(known)})"
            )
    for option in check.needs:
        if option not in claim.options:
            raise ClaimError(f"claims.{name}.options: {claim.check} needs {option!r}")
    if len(claim.methods) < check.n_methods:
        raise ClaimError(f"claims.{name}.methods: {claim.check} needs {check.n_methods} method(s)")
    for metric in (*_metrics(claim), claim.options.get("fairness", "sse")):
        if metric not in COLUMNS:
            raise ClaimError(f"claims.{name}: there is no metric {metric!r} (known: {', '.join(COLUMNS)})")
    table = claim.options.get("table")
    try:
        if table is not None:
            table_of(table, tables)
        if claim.check == "falls_with_size":
            sizes_of(claim)
    except ClaimError as error:
        raise ClaimError(f"claims.{name}.options: {error}") from None
    if claim.check == "compare_at_equal" and not {"level", "level_from"} & set(claim.options):
        raise ClaimError(f"claims.{name}.options: compare_at_equal needs 'level' or 'level_from'")
    return check


def _ran(place: Place, method: str, material: Material, claim: ClaimSpec) -> pd.DataFrame:
    """The cells of a method with status 'ok', with the lambda and the parameters that the claim names."""
    at = cells_of(place.cells, place.dataset, method)
    shown = material.names.method(method)
    if at.empty:
        raise CannotTest(f"{shown} is {NOT_RUN}")
    lam = _real(claim, "lam", math.nan)
    params = (claim.options.get("settings") or {}).get(method, {})
    if (not math.isnan(lam) and at.lam.notna().any()) or params:
        choice = choose_printed(at, lam if at.lam.notna().any() else math.nan, params)
        if not choice.n_ok:
            raise CannotTest(f"{shown}: {choice.note}")
        at = at[at.params.isin(choice.cells.params)]
    ok = at[at.status == "ok"]
    if ok.empty:
        raise CannotTest(f"{shown}: {choose(at).note}")
    return ok


def _setting(claim: ClaimSpec, place: Place, method: str, material: Material, metric: str) -> Choice:
    """The setting that represents a method."""
    cells = _ran(place, method, material, claim)
    if "fairness" in claim.options and "level" in claim.options:
        match = match_on(str(claim.options["fairness"]), metric)
        choice = choose(cells, _real(claim, "level", 0.0), match)
        if not choice.reached:
            raise CannotTest(f"{material.names.method(method)}: {choice.note}")
        return choice
    return choose_best(cells, metric)


def _level(claim: ClaimSpec, place: Place, material: Material, fairness: str) -> float:
    """The level of fairness at which two methods are compared."""
    if "level" in claim.options:
        return _real(claim, "level", 0.0)
    source = str(claim.options["level_from"])
    if source != "reported":
        method = claim.methods[1] if source in ("method", "other") else source
        return choose_best(_ran(place, method, material, claim), fairness).spread(fairness).mean
    match = match_on(fairness)
    table = claim.options.get("table")
    numbers = [table_of(table, material.tables).number] if table else list(material.reported.table.unique())
    first, second = claim.methods[:2]
    for name in (second, first):
        for of_table in numbers:
            level = reported_level(
                match, of_table, material.reported, place.dataset, name, n_clusters=place.n_clusters
            )
            if level is not None:
                return level
    raise CannotTest(f"the paper reports no {metric_in_text(fairness)} for these methods")


def _compare(
    claim: ClaimSpec,
    choices: list[Choice],
    material: Material,
    metric: str = "",
    default_factor: float = 1.0,
) -> Finding:
    """Whether the metric of the first setting is at most `factor` times that of the second (at least, if high is good).

    The claim holds in part if only the best starts satisfy this, and not the means.
    """
    metric, factor = metric or _metric(claim), _real(claim, "factor", default_factor)
    first, second = (choice.spread(metric) for choice in choices)
    if math.isnan(first.mean) or math.isnan(second.mean):
        raise CannotTest(f"no value of {metric_label(metric)}")
    direction = str(claim.options.get("direction", COLUMNS[metric].direction))
    higher = direction == "higher"
    first, second = (choice.spread(metric, direction) for choice in choices)

    def ok(mine: float, other: float) -> bool:
        # For a negative value, such as a log-likelihood, the factor is applied to its absolute value.
        bound = other + (factor - 1) * abs(other) if math.isfinite(other) else other
        slack = (HAIR - 1) * abs(bound) if math.isfinite(bound) else 0.0
        return mine >= bound - slack if higher else mine <= bound + slack

    on_best = ok(first.best, second.best)
    if claim.options.get("agg", "mean") == "best":
        verdict = HOLDS if on_best else FAILS
    else:
        verdict = HOLDS if ok(first.mean, second.mean) else IN_PART if on_best else FAILS
    decimals = COLUMNS[metric].decimals
    words = [
        f"{material.names.method(method)} {spread_text(one.mean, one.sd, decimals, one.best)}"
        for method, one in zip(claim.methods[:2], (first, second), strict=True)
    ]
    ratio = f"{first.mean / second.mean:.3f}" if second.mean else "undefined"
    asked = f"{'at least' if higher else 'at most'} {factor:g}"
    return verdict, f"{metric_label(metric)} of {words[0]}, of {words[1]}: ratio {ratio}, {asked} asked"


def _reach(claim: ClaimSpec, place: Place, material: Material) -> tuple[list[bool], list[bool], str]:
    """For each method, whether the mean of a setting reaches the level, and whether a start does; and a sentence."""
    metric, level = _metric(claim), _real(claim, "level", 0.0)
    means, starts, words = [], [], []
    for method in claim.methods:
        cells = _ran(place, method, material, claim)
        choice = choose_best(cells, metric)
        found = choice.spread(metric)
        if not found.n:
            raise CannotTest(f"{material.names.method(method)} has no value of {metric_label(metric)}")
        means.append(bool(within(pd.Series([found.mean]), level, metric).iloc[0]))
        starts.append(bool(within(cells[metric].dropna(), level, metric).any()))
        text = spread_text(found.mean, found.sd, COLUMNS[metric].decimals)
        single = "" if means[-1] or not starts[-1] else ", single starts reach it"
        setting = f" at {choice.setting}" if choice.setting else ""
        words.append(f"{material.names.method(method)} {text}{setting}{single}")
    return (
        means,
        starts,
        f"best {metric_in_text(metric)} over the settings, against {level:g}: {'; '.join(words)}",
    )


def _metrics(claim: ClaimSpec) -> list[str]:
    return list(claim.metrics) or [str(claim.options.get("metric", "sse"))]


def _metric(claim: ClaimSpec) -> str:
    return _metrics(claim)[0]


def table_of(table: Any, tables: Mapping[str, TableSpec]) -> TableSpec:
    """A table by its name, or by its number in the paper."""
    by_number = {spec.number: spec for spec in tables.values()}
    # A table number can arrive as a number instead of a text.
    shown = f"{table:g}" if isinstance(table, float) else str(table)
    found = tables.get(shown) or by_number.get(shown)
    if found is None:
        raise ClaimError(f"there is no table {shown!r} (known: {', '.join(tables)})")
    return found


def sizes_of(claim: ClaimSpec) -> dict[str, float]:
    """The option `sizes` of a claim as a dictionary from method or data set to size."""
    given = claim.options["sizes"]
    if isinstance(given, list):
        over = next((names for names in (claim.methods, claim.datasets) if len(names) == len(given)), [])
        given = dict(zip(over, given, strict=False))
    if not isinstance(given, dict) or len(given) < 3:
        raise ClaimError("sizes: give a size for each of three or more methods, or data sets, of the claim")
    if not set(given) <= set(claim.methods) and not (set(given) <= set(claim.datasets) and claim.methods):
        raise ClaimError(f"sizes: {', '.join(given)} are neither all methods nor all data sets of the claim")
    if not all(isinstance(size, int | float) and size > 0 for size in given.values()):
        raise ClaimError("sizes: expected positive numbers")
    return {str(name): float(size) for name, size in given.items()}


def cells_at(cells: pd.DataFrame, dataset: str, n_clusters: int | None) -> pd.DataFrame:
    """The cells of a data set with one K, or with every K if it is None."""
    found = cells[cells.dataset == dataset]
    return found if n_clusters is None else found[found.n_clusters == n_clusters]


def _real(claim: ClaimSpec, option: str, default: float) -> float:
    value: Any = claim.options.get(option, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ClaimError(f"option {option!r} is {value!r}, expected a number")
    return float(value)


def _of_booleans(ok: list[bool]) -> str:
    return HOLDS if all(ok) else IN_PART if any(ok) else FAILS


def joined(verdicts: Iterable[str]) -> str:
    """The common verdict: it holds only if it holds everywhere, and in part if it holds somewhere."""
    found = set(verdicts)
    if found <= {NOT_TESTED}:
        return NOT_TESTED
    if found == {HOLDS}:
        return HOLDS
    return IN_PART if found & {HOLDS, IN_PART} else FAILS
