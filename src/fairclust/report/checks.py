"""Checks of claims: each check looks at one data set and one K and gives a verdict with its numbers.

config/README.md describes the options. Among the settings that these leave, the one with the best mean of the metric
represents its method.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairclust.messages import percent
from fairclust.pipeline.columns import COLUMNS
from fairclust.pipeline.config import unknown
from fairclust.pipeline.papers import ClaimSpec, MatchSpec
from fairclust.report.material import Material
from fairclust.report.render import metric_in_text, metric_label, number, spread_text
from fairclust.report.selection import (
    HAIR,
    LEVEL_SHARE,
    NOT_RUN,
    Choice,
    at_level,
    cells_of,
    choose,
    choose_printed,
    reported_level,
    settings_table,
    whole_settings,
    within,
)

HOLDS, IN_PART, FAILS, NOT_TESTED = "holds", "holds in part", "does not hold", "not tested"
NOT_COMPARABLE = "not comparable"
CLAIM_VERDICTS = (HOLDS, IN_PART, FAILS, NOT_COMPARABLE, NOT_TESTED)
Finding = tuple[str, str]
"""A verdict, and a sentence with the numbers behind it."""


class CannotTest(Exception):
    """This run lacks something that a check needs; the message says what."""


class Case(NamedTuple):
    """A claim at one data set and one K (or every K), which a check tests."""

    claim: ClaimSpec
    dataset: str
    n_clusters: int | None
    material: Material

    @property
    def metrics(self) -> list[str]:
        """The metrics of the claim, or else the sum of squares."""
        return list(self.claim.metrics) or ["sse"]

    def name(self, method: str) -> str:
        """The label of a method."""
        return self.material.names.method(method)

    def number(self, option: str, default: float) -> float:
        """An option of the claim."""
        return float(self.claim.options.get(option, default))

    def cells(self, method: str, lam_option: str = "lam") -> pd.DataFrame:
        """The cells of a method with status 'ok', with the lambda and the parameters that the claim names."""
        cells, name = cells_of(self.material.cells, self.dataset, method, self.n_clusters), self.name(method)
        cells = cells[cells.sweep == self.claim.sweep]
        cells = cells.assign(asked=cells.groupby(["n_clusters", "params"]).seed.transform("size").astype("O"))
        if cells.empty:
            raise CannotTest(f"{name} is {NOT_RUN}")
        lam = self.number(lam_option, math.nan) if cells.lam.notna().any() else math.nan
        params = (self.claim.options.get("settings") or {}).get(method, {})
        if not math.isnan(lam) or params:
            choice = choose_printed(cells, lam, params)
            if choice.cells.empty:
                raise CannotTest(f"{name}: {choice.note}")
            cells = cells[cells.params.isin(choice.cells.params)]
        ok = cells[cells.status == "ok"]
        if ok.empty:
            raise CannotTest(f"{name}: {choose(cells).note}")
        return ok

    def whole_cells(self, method: str, lam_option: str = "lam") -> pd.DataFrame:
        """The `whole_settings` of a method, because a method that collapses would reach every level of fairness."""
        cells = whole_settings(self.cells(method, lam_option))
        if cells.empty:
            raise CannotTest(f"{self.name(method)} leaves clusters empty, in most starts of every setting")
        return cells

    def histories(self, columns: list[str]) -> list[pd.DataFrame]:
        """The histories of the methods' fits that have the columns at two or more steps, in the order of the steps."""
        keys = [key for method in self.claim.methods for key in self.whole_cells(method).key]
        steps = self.material.steps.reindex(columns=["key", "step", *columns]).dropna(subset=columns)
        fits = dict(list(steps.groupby("key", sort=False)))
        histories = [fits[key].sort_values("step") for key in keys if key in fits and len(fits[key]) > 1]
        if not histories:
            raise CannotTest(f"no fit has a history of {', '.join(columns)} with two or more steps")
        return histories


class Check(NamedTuple):
    """A check, and the options and methods that a claim gives it."""

    function: Callable[[Case], Finding]
    options: tuple[str, ...] = ()  # options that the check takes in addition to `_COMMON_OPTIONS`
    n_methods: int = 1  # smallest number of methods that the claim must name
    most_metrics: float = 1  # largest number of metrics that it may name
    needs: tuple[str, ...] = ()  # options that must be given
    directions: tuple[str, str] = ("higher", "lower")  # what the option `direction` may be
    most_methods: float = math.inf


def tested(find: Callable[..., Finding], *about: Any) -> Finding:
    """What a check, or a part of it, finds; not tested, with the reason, if this run lacks what it needs."""
    try:
        return find(*about)
    except CannotTest as error:
        return NOT_TESTED, str(error)


_COMMON_OPTIONS = ("lam", "settings", "not_comparable")
_NUMBERS = {"lam", "minus_lam", "factor", "margin", "level", "power"}
"""Options that are numbers."""
_N_LEVELS = 9
"""Levels at which two fronts are compared."""
_ALIKE = 0.01
"""Values of a fairness metric that differ by no more than this are about equal."""
_ROUNDING = 1e-6
"""A relative rise of the objective that is ignored."""
_SHOWN = 8
"""Of twice as many points of a trend or more, about so many are written out."""
_SETTLED = 0.1
"""A history has settled if it changes by at most this share of its range over the last quarter of the steps."""
_SAME_ORDER = 0.8
"""Kendall's tau from which on two orders count as the same: five values with one pair of neighbours swapped have it."""
_SAME_POWER = 0.25
"""A fitted power counts as the claimed one if it differs by at most this."""


def compare(case: Case) -> Finding:
    """Each metric of the first method is at most `factor` times (at least, if higher is better) that of every other.

    With `equal`, the methods are compared where they are equal in that metric, on fronts interpolated between settings.
    """
    first, *rivals = case.claim.methods
    there = case._replace(dataset=str(case.claim.options.get("other_dataset", case.dataset)))

    def find(rival: str, metric: str) -> Finding:
        pair = _Pair(case, (first, rival), [case.whole_cells(first), there.whole_cells(rival)])
        if "equal" in case.claim.options:
            return pair.at_equal(metric)
        return pair.compared([choose(cells, metric) for cells in pair.cells], metric)[:2]

    return together(tested(find, rival, metric) for rival in rivals for metric in case.metrics)


def _short(value: float) -> str:
    """A number in four digits; large ones without an exponent."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def never_rises(case: Case) -> Finding:
    """The objective never rises from one step to the next by more than a millionth, in any fit of the methods."""
    rises = []
    for history in case.histories(["objective"]):
        values = history.objective.to_numpy(dtype=float)
        rise = np.diff(values) / np.maximum(np.abs(values[:-1]), np.finfo(float).tiny)
        rises.append(float(rise.max()))
    if n_rises := sum(rise > _ROUNDING for rise in rises):
        most = _short(100 * max(rises))
        return FAILS, f"objective rises in {n_rises} of {len(rises)} fits, by at most {most} %"
    return HOLDS, f"objective rises in none of {len(rises)} fits"


def settles(case: Case) -> Finding:
    """The histories of fits settle: over the last quarter of the steps they change little, by the mean over the fits.

    Options: `columns` (of the history, needed), and `first`: this column settles before all others. It has settled
    after the last step at which it is off its final value by a fifth of its range.
    """
    columns = [str(column) for column in case.claim.options["columns"]]
    changes, steps = [], []
    for history in case.histories(columns):
        values = history[columns].to_numpy(dtype=float)
        span = np.ptp(values, axis=0)
        span[span == 0] = 1.0
        changes.append(np.ptp(values[-max(2, len(values) // 4) :], axis=0) / span)
        off = np.abs(values - values[-1]) > 0.2 * span
        steps.append([float(np.flatnonzero(one)[-1] + 1) if one.any() else 0.0 for one in off.T])
    if "first" in case.claim.options:
        after = dict(zip(columns, np.mean(steps, axis=0), strict=True))
        first = str(case.claim.options["first"])
        words = ", ".join(f"{column} {step:.0f}" for column, step in after.items())
        ok = [after[first] <= step for column, step in after.items() if column != first]
        return _of_booleans(ok), f"steps until they settle, mean over {len(steps)} fits: {words}"
    change = dict(zip(columns, np.mean(changes, axis=0), strict=True))
    words = ", ".join(f"{column} {percent(share)}" for column, share in change.items())
    what = "change over the last quarter of the steps, as a share of the range"
    ok = [share <= _SETTLED * HAIR for share in change.values()]
    return _of_booleans(ok), f"{what}, in {len(changes)} fits: {words}"


def reaches(case: Case) -> Finding:
    """At least one setting of every method reaches `level` in the metric, by its mean; for `cannot_reach`, none does.

    The claim holds in part if some methods, or only single starts, reach it, for `cannot_reach` of any setting.
    """
    metric, level = case.metrics[0], case.number("level", 0.0)
    means, starts, words = [], [], []
    for method in case.claim.methods:
        cells, name = case.whole_cells(method), case.name(method)
        choice = choose(cells, metric)
        best = choice.spread(metric)
        if not best.n:
            raise CannotTest(f"{name} has no value of {metric_label(metric)}")
        means.append(within(best.mean, level, metric))
        cells = case.cells(method) if case.claim.check == "cannot_reach" else cells
        single = cells[metric].where(cells.n_nonempty >= cells.n_clusters)
        starts.append(bool(within(single, level, metric).any()))
        alone = "" if means[-1] or not starts[-1] else ", single starts reach it"
        setting = _starts(choice) + (f" at {choice.setting}" if choice.setting else "")
        words.append(f"{name} {spread_text(best.mean, best.sd, COLUMNS[metric].decimals)}{setting}{alone}")
    sentence = f"best {metric_in_text(metric)} over the settings, against {level:g}: {'; '.join(words)}"
    if case.claim.check == "cannot_reach":
        return (FAILS if any(means) else IN_PART if any(starts) else HOLDS), sentence
    return (HOLDS if all(means) else IN_PART if any(starts) else FAILS), sentence


def spread_over_seeds(case: Case) -> Finding:
    """The standard deviation of the first method over the starts is at most that of the second."""
    metric, methods = case.metrics[0], case.claim.methods
    by_lam = []
    for method in methods:
        settings = case.whole_cells(method).dropna(subset=metric).groupby("params")
        variances = pd.DataFrame({"lam": settings.lam.first(), "variance": settings[metric].var()})
        by_lam.append(variances.dropna(subset="variance").fillna({"lam": 0.0}).groupby("lam").variance.mean())
    first, second = (one[one.index.isin(other.index)] for one, other in (by_lam, by_lam[::-1]))
    if first.empty:
        raise CannotTest("no lambda has two or more starts of both methods")
    sds = [math.sqrt(float(one.mean())) for one in (first, second)]
    decimals = COLUMNS[metric].decimals
    words = [f"{case.name(method)} {number(sd, decimals)}" for method, sd in zip(methods, sds, strict=True)]
    lams = ", ".join(f"{lam:g}" for lam in first.index)
    pooled = f"standard deviation of {metric_label(metric)}, pooled over lambda {lams}: {', '.join(words)}"
    return _of_booleans([sds[0] <= sds[1] * HAIR]), pooled


def trend(case: Case) -> Finding:
    """The metric of every method rises or falls with x, by Kendall's tau or the fitted power.

    The claim holds in part, too, if a value of K that it names was run, but has no setting that uses all clusters.
    """
    from scipy.stats import kendalltau  # imported here, because it takes half a second

    options, methods = case.claim.options, case.claim.methods
    metric, x = case.metrics[0], str(options["x"])
    sign = 1 if options["direction"] == "rises" else -1

    def find(line: list[str]) -> Finding:
        points = _points(case, line, x, metric)
        if len(points) < 3:
            raise CannotTest(f"fewer than three values of {metric_label(metric)}")
        if "power" in options:
            if any(value <= 0 for point in points for value in point):
                raise CannotTest("a value is not positive, so its logarithm is undefined")
            logs = np.log(np.array(points))
            slope = float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
            wanted = case.number("power", 0.5) * sign
            is_near = abs(slope - wanted) <= _SAME_POWER * HAIR
            verdict = HOLDS if is_near else IN_PART if slope * wanted > 0 else FAILS
            more = f"slope {slope:.2f}, {wanted:g} asked"
        else:
            tau = float(kendalltau(*zip(*points, strict=True)).statistic)
            if math.isnan(tau):
                raise CannotTest("all values are the same")
            verdict = HOLDS if sign * tau >= _SAME_ORDER / HAIR else IN_PART if sign * tau > 0 else FAILS
            more = f"tau = {tau:.2f}"
        few = points[:: max(1, len(points) // _SHOWN)] if len(points) > 2 * _SHOWN else points
        shown = ", ".join(f"{_short(value)} at {_short(place)}" for place, value in few)
        name = "" if x == "sizes" else f" of {case.name(line[0])}"
        gap = "Gap in " if "minus_lam" in options else ""
        axis = {"n_clusters": "K", "lam": "lambda", "sizes": "size"}.get(x) or metric_in_text(x)
        named = set(case.claim.n_clusters or ()) if x == "n_clusters" else set()
        if lost := sorted(named.intersection(case.cells(line[0]).n_clusters) - {int(k) for k, _ in points}):
            verdict = IN_PART if verdict == HOLDS else verdict
            ks = ", ".join(map(str, lost))
            more += f"; no setting with K = {ks} uses all clusters in half of its starts"
        return verdict, f"{gap}{metric_label(metric)}{name} by {axis}: {shown}: {more}"

    lines = [methods] if x == "sizes" else [[method] for method in methods]
    return together(tested(find, line) for line in lines)


def levels_off(case: Case) -> Finding:
    """Each metric of every method, by its mean, reaches a plateau as lambda grows."""

    def find(method: str, metric: str) -> Finding:
        points = _points(case, [method], "lam", metric)
        if len(points) < 8 or points[0][0] == points[-1][0]:
            raise CannotTest(f"{case.name(method)} has fewer than eight lambdas")
        lams, values = np.array(points).T
        if not np.ptp(values):
            raise CannotTest(f"all values of {metric_label(metric)} of {case.name(method)} are the same")
        share = float(np.ptp(values[lams >= lams.max() - np.ptp(lams) / 4]) / np.ptp(values))
        words = f"{metric_label(metric)} of {case.name(method)} at {len(lams)} lambdas from {lams.min():g} "
        words += f"to {lams.max():g} changes by {percent(share)} of its range over the last quarter"
        return _of_booleans([share <= _SETTLED * HAIR]), words

    return together(tested(find, method, metric) for method in case.claim.methods for metric in case.metrics)


def smooth_beyond(case: Case) -> Finding:
    """The metric of every method oscillates along lambda below `level`, and is smooth from there on.

    The curve of a start is as rough as the mean absolute change of its slope from one lambda to the next. In the median
    of the starts this must be at most half as large above the level as below it.
    """
    level, metric = case.number("level", 0.0), case.metrics[0]

    def find(method: str) -> Finding:
        cells, ratios = case.whole_cells(method), []
        for _, start in cells.dropna(subset=["lam", metric]).groupby("seed"):
            curve = start.sort_values("lam").drop_duplicates("lam")
            lams, slopes = curve.lam.to_numpy(), np.diff(curve[metric]) / np.diff(curve.lam)
            bends, beyond = np.abs(np.diff(slopes)), lams[1:-1] >= level
            if beyond.any() and not beyond.all():
                ratios.append(bends[beyond].mean() / max(bends[~beyond].mean(), np.finfo(float).tiny))
        if not ratios:
            raise CannotTest("no start has three lambdas on both sides of the level")
        ratio = float(np.median(ratios))
        verdict = HOLDS if ratio <= 0.5 * HAIR else IN_PART if ratio < 1 else FAILS
        of = f"{metric_label(metric)} of {case.name(method)} from lambda {level:g} on"
        range_of = f"median {ratio:.2f}, {min(ratios):.2f} to {max(ratios):.2f} over {len(ratios)} starts"
        return verdict, f"change of the slope of {of}, as a multiple of that below: {range_of}"

    return together(tested(find, method) for method in case.claim.methods)


_OF_COMPARE = ("factor", "margin", "direction", "other_dataset", "equal", "level_from", "level", "whole_range",
               "table", "order")  # fmt: skip
_OF_TREND = ("x", "direction", "minus_lam", "sizes", "power")
CHECKS: Mapping[str, Check] = {
    "compare": Check(compare, _OF_COMPARE, n_methods=2, most_metrics=math.inf),
    "never_rises": Check(never_rises, most_metrics=0),
    "settles": Check(settles, ("columns", "first"), needs=("columns",), most_metrics=0),
    "cannot_reach": Check(reaches, ("level",), needs=("level",)),
    "reaches": Check(reaches, ("level",), needs=("level",)),
    "spread": Check(spread_over_seeds, n_methods=2, most_methods=2),
    "levels_off": Check(levels_off, most_metrics=math.inf),
    "smooth_beyond": Check(smooth_beyond, ("level",), needs=("level",)),
    "trend": Check(trend, _OF_TREND, needs=("x", "direction"), directions=("rises", "falls")),
}
"""Every check, under the name that papers' files use for it."""


def claim_problems(name: str, claim: ClaimSpec, tables: Collection[str]) -> Iterator[str]:
    """A line for everything that is wrong with a claim's keys, and with its options for the check that it names.

    `tables` are the numbers of the paper's tables.
    """
    key, check, given = f"claims.{name}", CHECKS.get(claim.check), claim.options
    yield from unknown(f"{key}.check", [claim.check], CHECKS)
    if check is None:
        return
    if len(claim.methods) < check.n_methods:
        yield f"{key}.methods: {claim.check} needs {check.n_methods} method(s)"
    for part, most in (("methods", check.most_methods), ("metrics", check.most_metrics)):
        if len(getattr(claim, part)) > most:
            yield f"{key}.{part}: {claim.check} takes at most {most}"
    if {"factor", "margin"} <= given.keys():
        yield f"{key}.options: 'margin' replaces 'factor'; remove one of them"
    yield from unknown(f"{key}.options", given, (*check.options, *_COMMON_OPTIONS))
    choices: dict[str, Collection[str]] = {
        **{"equal": COLUMNS, "order": COLUMNS, "table": tables, "direction": check.directions},
        "level_from": ("reported", "both", "front", "stated"),
    }
    for option in choices.keys() & given.keys():
        yield from unknown(f"{key}.options.{option}", [str(given[option])], choices[option])
    together = {"equal": ("level_from",), **dict.fromkeys(("level_from", "whole_range", "order"), ("equal",))}
    of_level = {"stated": ["level"], "reported": ["table"]}.get(str(given.get("level_from")), [])
    for option in (*check.needs, *of_level, *(other for one in given for other in together.get(one, []))):
        if option not in given:
            yield f"{key}.options: {claim.check} needs {option!r} here"
    for option in _NUMBERS & given.keys():
        if not _is_number(given[option]):
            yield f"{key}.options.{option}: expected a number, found {given[option]!r}"
    if given.get("x") == "sizes":
        sizes: Any = given.get("sizes")
        is_list = isinstance(sizes, list) and len(sizes) == len(claim.methods) >= 3
        if not (is_list and all(_is_number(size) and size > 0 for size in sizes)):
            yield f"{key}.options.sizes: give a positive size for each of three or more methods of the claim"
    if given.get("first") not in (None, *given.get("columns", ())):
        yield f"{key}.options.first: {given['first']!r} is not one of `columns`"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class _Pair(NamedTuple):
    """Two methods that a claim compares, with their cells."""

    case: Case
    methods: tuple[str, str]
    cells: list[pd.DataFrame]

    def at_equal(self, metric: str) -> Finding:
        """The comparison where the methods are equal in the metric that the option `equal` names."""
        equal = str(self.case.claim.options["equal"])
        match = MatchSpec(fairness=equal, order=str(self.case.claim.options.get("order", metric)))
        names = list(map(self.case.name, self.methods))
        ranges = [_range(cells, match) for cells in self.cells]
        decimals, what = COLUMNS[equal].decimals, metric_in_text(equal)
        pairs = zip(names, ranges, strict=True)
        reach = ", ".join(f"{name} {number(best, decimals)}" for name, (best, _) in pairs)
        levels, (kind, *_, asked) = self._levels(ranges, match), self._asked(metric)
        beside: list[float] = []

        def find(level: float) -> Finding:
            place = f"at {what} {number(level, decimals)} (best: {reach})"
            choices = [at_level(cells, level, match) for cells in self.cells]
            reached = [choice.reached for choice in choices]
            if not any(reached):
                raise CannotTest(f"{place}: neither method is as good")
            if not all(reached):
                return (IN_PART if reached[0] else FAILS), f"{place}: only one method is as good"
            verdict, sentence, value = self.compared(choices, metric)
            # A method whose settings are all better than the level is at a disadvantage in the other metric. If the
            # claim holds in part, the first method loses by its mean and the second by its best start.
            for loser in {HOLDS: [1], FAILS: [0]}.get(verdict, [0, 1]):
                worst = ranges[loser][1]
                if not _as_good(level, worst, equal):
                    least = number(worst, decimals)
                    raise CannotTest(f"{place}: every setting of {names[loser]} is better, at least {least}")
            beside.append(value)
            return verdict, f"{place}, {sentence}"

        verdicts, sentences = zip(*(tested(find, level) for level in levels), strict=True)
        verdict, words = common_verdict(set(verdicts) - {NOT_TESTED}), sentences[0]
        if len(levels) > 1 and beside:
            low, high = (number(end, 3) for end in pd.Series(beside).agg(["min", "max"]))
            words = (
                f"{metric_label(metric)} of {names[0]} against {names[1]} at {len(levels)} levels of {what} from "
                f"{number(levels[0], decimals)} to {number(levels[-1], decimals)} (best: {reach}): "
                f"{kind} {low} to {high}, {asked}, true at {verdicts.count(HOLDS)}"
            )
            untested = [text for one, text in zip(verdicts, sentences, strict=True) if one == NOT_TESTED]
            words = "; not tested at others: ".join(dict.fromkeys([words, *untested]))
        if self.case.claim.options.get("whole_range") and not _as_good(ranges[0][0], ranges[1][0], equal):
            verdict = IN_PART if verdict == HOLDS else verdict
            words += f"; beyond that, only {names[1]} has settings"
        return verdict, words

    def _levels(self, ranges: list[tuple[float, float]], match: MatchSpec) -> list[float]:
        """The levels at which the methods are compared, from the best to the worst; `ranges` are those of `_range`."""
        case, equal = self.case, match.fairness
        source = case.claim.options["level_from"]
        if source == "stated":
            return [case.number("level", 0.0)]
        if source == "reported":
            row = (case.dataset, *self.methods, case.n_clusters)
            level = reported_level(match, str(case.claim.options["table"]), case.material.reported, *row)
            if level is None:
                raise CannotTest(f"the paper reports no {metric_in_text(equal)} for these methods")
            return [level[1]]
        pick = (min, max) if COLUMNS[equal].direction == "higher" else (max, min)
        best, worst = (choose(ends) for choose, ends in zip(pick, zip(*ranges, strict=True), strict=True))
        if math.isnan(best):
            raise CannotTest(f"{metric_in_text(equal)} was not scored")
        if source == "both" or _as_good(worst, best, equal):
            return [best]
        return [float(level) for level in np.linspace(best, worst, _N_LEVELS)]

    def _asked(self, metric: str) -> tuple[str, bool, float, str]:
        """What is compared, a ratio or a difference; whether high values are good; the limit; and it in words."""
        options, number = self.case.claim.options, self.case.number
        higher = str(options.get("direction", COLUMNS[metric].direction)) == "higher"
        kind, limit = "ratio", number("factor", 1.0)
        if "margin" in options:
            kind, limit = "difference", number("margin", 0.0) * (1 if higher else -1)
        return kind, higher, limit, f"{'at least' if higher else 'at most'} {limit:g} asked"

    def compared(self, choices: list[Choice], metric: str) -> tuple[str, str, float]:
        """Whether the first value is at most `factor` times the second (at least, if high is good), and their ratio.

        The claim holds in part if only the best starts satisfy this, and not the means.
        """
        kind, higher, limit, asked = self._asked(metric)
        first, second = (choice.spread(metric) for choice in choices)
        if math.isnan(first.mean) or math.isnan(second.mean):
            raise CannotTest(f"no value of {metric_label(metric)}")
        best = [one.high if higher else one.low for one in (first, second)]

        def ok(mine: float, other: float) -> bool:
            if not math.isfinite(other):
                return mine >= other if higher else mine <= other
            # For a negative value, such as a log-likelihood, the factor is applied to its absolute value.
            bound = other + (limit if kind == "difference" else (limit - 1) * abs(other))
            slack = (HAIR - 1) * abs(bound)
            return mine >= bound - slack if higher else mine <= bound + slack

        verdict = HOLDS if ok(first.mean, second.mean) else IN_PART if ok(*best) else FAILS
        words = [
            f"{self.case.name(method)} {spread_text(one.mean, one.sd, COLUMNS[metric].decimals, end)}{_starts(choice)}"
            for method, one, end, choice in zip(self.methods, (first, second), best, choices, strict=True)
        ]
        value = first.mean - second.mean if kind == "difference" else first.mean / (second.mean or math.nan)
        values = f"{metric_label(metric)} of {words[0]}, of {words[1]}"
        return verdict, f"{values}: {kind} {number(value, 3)}, {asked}", value


def _starts(choice: Choice) -> str:
    """How many starts of a setting count, where others leave clusters empty or have no result."""
    n, asked = len(choice.cells), choice.cells.asked.max() if choice.cells.params.all() else 0
    return f" ({n} of {asked:.0f} starts)" if n < asked else ""


def _as_good(value: float, other: float, metric: str) -> bool:
    """Whether a value of a metric is better than another one or about equal."""
    slack = max(LEVEL_SHARE * abs(other), 0.0 if COLUMNS[metric].is_cost else _ALIKE)
    return abs(value - other) <= slack or bool(within(value, other, metric))


def _range(cells: pd.DataFrame, match: MatchSpec) -> tuple[float, float]:
    """The best and the worst mean of the fairness over the settings that `at_level` reads, without infinite ones."""
    means = settings_table(cells, [match.fairness, match.order])
    means = means[means[match.order].notna() | (match.order == "lam")][match.fairness]
    ends = means[np.isfinite(means)].agg(["min", "max"])
    best, worst = ("max", "min") if COLUMNS[match.fairness].direction == "higher" else ("min", "max")
    return float(ends[best]), float(ends[worst])


def _points(case: Case, methods: Iterable[str], x: str, metric: str) -> list[tuple[float, float]]:
    """The points (x, mean of the metric) of a trend, sorted by x; only finite ones."""
    points: list[tuple[float, float]] = []
    for method in methods:
        cells = case.whole_cells(method)
        if x == "sizes":
            size = case.claim.options["sizes"][case.claim.methods.index(method)]
            points.append((float(size), choose(cells, metric).spread(metric).mean))
        elif x == "n_clusters":
            values = _by_k(case, cells, metric)
            if "minus_lam" in case.claim.options:
                values = values - _by_k(case, case.whole_cells(method, "minus_lam"), metric)
            points += [(float(k), float(value)) for k, value in values.items()]
        else:
            means = settings_table(cells, [metric, x])
            points += list(zip(means[x], means[metric], strict=True))
    return sorted(point for point in points if all(map(math.isfinite, point)))


def _by_k(case: Case, cells: pd.DataFrame, metric: str) -> pd.Series:
    """The best mean of a metric at every K that the claim names."""
    if case.claim.n_clusters:
        cells = cells[cells.n_clusters.isin(case.claim.n_clusters)]
    means = {k: choose(one, metric).spread(metric).mean for k, one in cells.groupby("n_clusters")}
    return pd.Series(means, dtype=float)


def _of_booleans(ok: list[bool]) -> str:
    return HOLDS if all(ok) else IN_PART if any(ok) else FAILS


def together(findings: Iterable[Finding]) -> Finding:
    """Several findings as one."""
    verdicts, words = zip(*findings, strict=True)
    return common_verdict(verdicts), "; ".join(dict.fromkeys(words))


def common_verdict(verdicts: Iterable[str]) -> str:
    """The common verdict: it holds only if it holds everywhere, and in part if it holds somewhere."""
    distinct = set(verdicts)
    if distinct <= {NOT_TESTED, NOT_COMPARABLE}:
        return NOT_COMPARABLE if NOT_COMPARABLE in distinct else NOT_TESTED
    return HOLDS if distinct == {HOLDS} else IN_PART if distinct & {HOLDS, IN_PART} else FAILS
