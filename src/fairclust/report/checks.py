"""Checks of claims: each check looks at one data set and one K and gives a verdict with its numbers.

Every check takes the options `lam` (only this lambda), `settings` (method to parameters) and `metric`, which replaces
the key `metrics`. Among the remaining settings, the one with the best mean of the metric represents its method. Starts
that leave clusters empty do not count, see `whole_cells`. A table is given by its name or by its number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from fairclust.pipeline.columns import COLUMNS, TIMES
from fairclust.pipeline.papers import ClaimSpec, MatchSpec, TableSpec
from fairclust.report.material import (
    CannotTest,
    ClaimError,
    Material,
    Place,
    cells_at,
    histories_of,
    metric_of,
    metrics_of,
    program_times,
    ran_cells,
    real_option,
    sizes_of,
    table_of,
    whole_cells,
)
from fairclust.report.names import metric_in_text, metric_label
from fairclust.report.render import number, spread_text
from fairclust.report.selection import (
    HAIR,
    LEVEL_SHARE,
    Choice,
    at_level,
    choose_best,
    match_on,
    reported_level,
    settings_means,
    within,
)
from fairclust.report.verdicts import table_rows

HOLDS, IN_PART, FAILS, NOT_TESTED = "holds", "holds in part", "does not hold", "not tested"
CLAIM_VERDICTS = (HOLDS, IN_PART, FAILS, NOT_TESTED)
Finding = tuple[str, str]
"""A verdict, and a sentence with the numbers behind it."""


@dataclass(frozen=True)
class Check:
    """A check, and the options and methods that a claim gives it."""

    function: Callable[[ClaimSpec, Place, Material], Finding]
    options: tuple[str, ...] = ()  # options that the check takes in addition to `_COMMON_OPTIONS`
    n_methods: int = 1  # smallest number of methods that the claim must name
    needs: tuple[str, ...] = ()  # options that must be given


_COMMON_OPTIONS = ("lam", "settings", "metric")
_N_LEVELS = 9
"""Levels at which two fronts are compared."""
_ALIKE = 0.01
"""Values of a fairness metric that differ by no more than this are about equal."""


def compare(claim: ClaimSpec, place: Place, material: Material) -> Finding:
    """Each metric of the first method is at most `factor` times (at least, if higher is better) that of every other.

    With `equal`, the methods are compared where they are equal in that metric of fairness or of cost, on fronts that
    are interpolated between settings; `order` forms these fronts, by default the metric itself. config/README.md
    describes the options. A comparison of times takes `programs_on`, as `faster` does.
    """
    first, *rivals = claim.methods
    there = place
    if "other_dataset" in claim.options:
        other = str(claim.options["other_dataset"])
        there = Place(other, place.n_clusters, cells_at(material.cells, other, place.n_clusters))
    found = []
    for rival in rivals:
        pair = [
            whole_cells(where, method, material, claim) for where, method in ((place, first), (there, rival))
        ]
        for metric in metrics_of(claim):
            if "equal" in claim.options:
                found.append(_compare_fronts(claim, place, rival, pair, metric, material))
            else:
                choices = [choose_best(cells, metric) for cells in pair]
                found.append(_compare(claim, (first, rival), choices, material, metric))
    words = [words for _, words in found]
    if any(metric in TIMES for metric in metrics_of(claim)):
        words += program_times(claim, place, material)
    return joined(verdict for verdict, _ in found), "; ".join(words)


def never_rises(claim: ClaimSpec, place: Place, material: Material) -> Finding:
    """The objective never rises from one step to the next, in any fit of the methods.

    Options: `tolerance` (relative rise that is ignored, default 1e-9), `column` (of the history, default objective).
    """
    column, tolerance = str(claim.options.get("column", "objective")), real_option(claim, "tolerance", 1e-9)
    rises = []
    for history in histories_of(claim, place, material, [column]):
        values = history[column].to_numpy(dtype=float)
        rise = np.diff(values) / np.maximum(np.abs(values[:-1]), np.finfo(float).tiny)
        rises.append(float(rise.max()))
    n_rises = sum(rise > tolerance for rise in rises)
    if not n_rises:
        return HOLDS, f"{column} rises in none of {len(rises)} fits"
    return (
        FAILS,
        f"{column} rises in {n_rises} of {len(rises)} fits, by at most {max(rises):.3g} of its value",
    )


def settles(claim: ClaimSpec, place: Place, material: Material) -> Finding:
    """The histories of fits settle: over the last quarter of the steps they change little.

    Options: `columns` (of the history, needed); `at_most` (largest change over the last quarter of the steps, as a
    share of the range over all steps, by its mean over the fits, default 0.1); or `first`: this column settles before
    all others. It has settled after the last step at which it is off its final value by a fifth of its range.
    """
    columns = [str(column) for column in claim.options["columns"]]
    changes, steps = [], []
    for history in histories_of(claim, place, material, columns):
        values = history[columns].to_numpy(dtype=float)
        span = np.ptp(values, axis=0)
        span[span == 0] = 1.0
        changes.append(np.ptp(values[-max(2, len(values) // 4) :], axis=0) / span)
        off = np.abs(values - values[-1]) > 0.2 * span
        steps.append([float(np.flatnonzero(one)[-1] + 1) if one.any() else 0.0 for one in off.T])
    if "first" in claim.options:
        after = dict(zip(columns, np.mean(steps, axis=0), strict=True))
        first = str(claim.options["first"])
        if first not in after:
            raise ClaimError(f"option 'first': {first!r} is not one of `columns`")
        words = ", ".join(f"{column} {step:.0f}" for column, step in after.items())
        ok = [after[first] <= step for column, step in after.items() if column != first]
        return _of_booleans(ok), f"steps until they settle, mean over {len(steps)} fits: {words}"
    at_most = real_option(claim, "at_most", 0.1)
    change = dict(zip(columns, np.mean(changes, axis=0), strict=True))
    words = ", ".join(f"{column} {share:.1%}" for column, share in change.items())
    return (
        _of_booleans([share <= at_most * HAIR for share in change.values()]),
        f"change over the last quarter of the steps, as a share of the range, in {len(changes)} fits: {words}",
    )


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
    """The second method takes at least `factor` times the seconds of the first, by the mean over all fits.

    The claim holds in part if the second method is slower, but by a smaller factor. `metrics` can name cpu_seconds
    instead. These are times of this project's implementations. Those of published programs, and those that the paper
    reports, are shown beside them and not judged.
    """
    metric = claim.metrics[0] if claim.metrics else "seconds"
    factor = real_option(claim, "factor", 1.0)
    seconds = []
    for method in claim.methods[:2]:
        found = float(ran_cells(place, method, material, claim)[metric].mean())
        if math.isnan(found):
            raise CannotTest(f"{material.names.method(method)} has no {metric_label(metric).lower()}")
        seconds.append(found)
    ratio = seconds[1] / seconds[0] if seconds[0] else math.inf
    first, second = (material.names.method(method) for method in claim.methods[:2])
    told = "; ".join(
        [
            f"our implementations: {first} takes {seconds[0]:.3g} s, {second} {seconds[1]:.3g} s: ratio {ratio:.3g}, "
            f"{factor:g} asked",
            *program_times(claim, place, material),
        ]
    )
    if ratio >= factor:
        return HOLDS, told
    return (IN_PART, told) if ratio > 1 else (FAILS, f"{told}; the order reverses")


def spread_over_seeds(claim: ClaimSpec, place: Place, material: Material) -> Finding:
    """The standard deviation over the starts is small.

    Options: `at_most` (largest share of the mean, for every method, default 0.05); or `factor`: the standard
    deviation of the first method is at most this many times that of the second, over all lambdas that both ran.
    """
    metric = metric_of(claim)
    if "factor" in claim.options:
        return _compare_spreads(claim, place, metric, material)
    deviations, words = [], []
    for method in claim.methods:
        found = choose_best(ran_cells(place, method, material, claim), metric).spread(metric)
        if math.isnan(found.sd):
            raise CannotTest(f"{material.names.method(method)} has {found.n} start(s) with a value")
        deviations.append(found.sd / abs(found.mean))
        text = spread_text(found.mean, found.sd, COLUMNS[metric].decimals)
        words.append(f"{material.names.method(method)} {text} ({found.n} starts)")
    ok = [deviation <= real_option(claim, "at_most", 0.05) * HAIR for deviation in deviations]
    return _of_booleans(ok), f"{metric_label(metric)}: {', '.join(words)}"


def same_order(claim: ClaimSpec, place: Place, material: Material) -> Finding:
    """The metric orders the methods of a table as the reported values do, measured by Kendall's tau.

    Options: `table` (needed), `tau` (the claim holds from this value on, default 0.8, and in part above 0).
    """
    spec = table_of(claim.options["table"], material.tables)
    reported = material.reported[material.reported.dataset == place.dataset]
    rows = [row for row in table_rows(spec, reported, place.cells) if row.role == "paper"]
    if claim.methods:
        rows = [row for row in rows if row.method in claim.methods]
    if place.n_clusters is not None:
        rows = [row for row in rows if row.n_clusters in (None, place.n_clusters)]
    found = []
    for metric in metrics_of(claim):
        values = [value for row in rows for value in row.values if value.metric == metric]
        pairs = [(value.reported, value.ours.mean) for value in values]
        pairs = [pair for pair in pairs if not any(map(math.isnan, pair))]
        if len(pairs) < 2:
            raise CannotTest(f"fewer than two methods have a value of {metric_label(metric)}")
        tau = float(kendalltau(*zip(*pairs, strict=True)).statistic)
        if math.isnan(tau):
            raise CannotTest(f"all methods have the same {metric_label(metric)}")
        found.append(
            (_of_tau(claim, tau), f"{metric_label(metric)} of {len(pairs)} methods: tau = {tau:.2f}")
        )
    return joined(verdict for verdict, _ in found), "; ".join(words for _, words in found)


def trend(claim: ClaimSpec, place: Place, material: Material) -> Finding:
    """The metric of every method rises or falls with x: the claim holds from Kendall's `tau` on, in part above 0.

    x is the number of clusters, lambda or another metric over the settings of a method, or `sizes`, for which the
    methods are points. With `power` p, the fitted power of x must be p within `tolerance`. config/README.md describes
    the options.
    """
    metric, x = metric_of(claim), str(claim.options["x"])
    direction = claim.options["direction"]
    if direction not in ("rises", "falls"):
        raise ClaimError(f"option 'direction' is {direction!r}, expected 'rises' or 'falls'")
    found = []
    for methods in [claim.methods] if x == "sizes" else [[method] for method in claim.methods]:
        points = _points(claim, place, methods, x, metric, material)
        if len(points) < 3:
            raise CannotTest(f"fewer than three values of {metric_label(metric)}")
        shown = ", ".join(f"{y:.4g} at {at:,.4g}" for at, y in points)
        name = "" if x == "sizes" else f" of {material.names.method(methods[0])}"
        gap = "Gap in " if "minus_lam" in claim.options else ""
        words = f"{gap}{metric_label(metric)}{name} by {_axis(x)}: {shown}"
        if "power" in claim.options:
            verdict, more = _power(claim, points, direction)
        else:
            verdict, more = _tau(claim, points, direction)
        found.append((verdict, f"{words}: {more}"))
    return joined(verdict for verdict, _ in found), "; ".join(words for _, words in found)


CHECKS: Mapping[str, Check] = {
    "compare": Check(
        compare,
        (
            "agg",
            "factor",
            "direction",
            "other_dataset",
            "equal",
            "level",
            "level_from",
            "table",
            "order",
            "programs_on",
        ),
        2,
    ),
    "never_rises": Check(never_rises, ("tolerance", "column")),
    "settles": Check(settles, ("columns", "at_most", "first"), needs=("columns",)),
    "cannot_reach": Check(cannot_reach, ("level",), needs=("level",)),
    "reaches": Check(reaches, ("level",), needs=("level",)),
    "faster": Check(faster, ("factor", "programs_on"), 2),
    "spread": Check(spread_over_seeds, ("at_most", "factor")),
    "same_order": Check(same_order, ("table", "tau"), 0, ("table",)),
    "trend": Check(
        trend,
        ("x", "direction", "tau", "minus_lam", "sizes", "power", "tolerance"),
        needs=("x", "direction"),
    ),
}
"""Every check, under the name that papers' files use for it."""


def validate_claim(name: str, claim: ClaimSpec, tables: Mapping[str, TableSpec]) -> Check:
    """Look up the check that a claim names, after validating the claim's keys and options for that check.

    ClaimError if the check, an option, a metric or a table is unknown, or something that the check needs is not given.
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
    others = (claim.options[name] for name in ("equal", "order") if name in claim.options)
    for metric in (*metrics_of(claim), *others):
        if metric not in COLUMNS:
            raise ClaimError(f"claims.{name}: there is no metric {metric!r} (known: {', '.join(COLUMNS)})")
    table = claim.options.get("table")
    try:
        if table is not None:
            table_of(table, tables)
        if claim.options.get("x") == "sizes":
            sizes_of(claim)
    except ClaimError as error:
        raise ClaimError(f"claims.{name}.options: {error}") from None
    if claim.check == "compare" and ("equal" in claim.options) != bool(
        {"level", "level_from"} & set(claim.options)
    ):
        raise ClaimError(f"claims.{name}.options: 'equal' belongs to 'level' or 'level_from'")
    source = claim.options.get("level_from", "both")
    if source not in ("reported", "both", "front"):
        raise ClaimError(f"claims.{name}.options: level_from is {source!r} (known: reported, both, front)")
    if source == "reported" and table is None:
        raise ClaimError(f"claims.{name}.options: level_from: reported needs 'table'")
    return check


def _compare_fronts(
    claim: ClaimSpec, place: Place, rival: str, pair: list[pd.DataFrame], metric: str, material: Material
) -> Finding:
    """The comparison of two methods where they are equal in one metric; `pair` holds their cells."""
    equal = str(claim.options["equal"])
    match = match_on(equal, str(claim.options.get("order", metric)))
    methods = (claim.methods[0], rival)
    names = [material.names.method(method) for method in methods]
    ranges = [_range(cells, equal) for cells in pair]
    decimals = COLUMNS[equal].decimals
    reach = ", ".join(
        f"{name} {number(best, decimals)}" for name, (best, _) in zip(names, ranges, strict=True)
    )
    found: list[tuple[str, Choice, Choice]] = []
    levels = _levels(claim, place, methods, ranges, match, material)
    for level in levels:
        at = f"at {metric_in_text(equal)} {number(level, decimals)} (best: {reach})"
        mine, theirs = (at_level(cells, level, match) for cells in pair)
        if not (mine.reached and theirs.reached):
            if not (mine.reached or theirs.reached):
                raise CannotTest(f"{at}: neither method is as good")
            return (IN_PART if mine.reached else FAILS), f"{at}: only one method is as good"
        verdict, sentence = _compare(claim, methods, [mine, theirs], material, metric)
        # A method whose settings are all better than the level is at a disadvantage in the other metric.
        loser = 0 if verdict == FAILS else 1
        worst = ranges[loser][1]
        if not within(pd.Series([level]), worst, equal).iloc[0] and not _alike(worst, level, equal):
            raise CannotTest(
                f"{at}: every setting of {names[loser]} is better, at least {number(worst, decimals)}"
            )
        found.append((verdict, mine, theirs))
        words = f"{at}, {sentence}"
    if len(found) == 1:
        return found[0][0], words
    means = [(mine.spread(metric).mean, theirs.spread(metric).mean) for _, mine, theirs in found]
    ratios = [mine / theirs for mine, theirs in means if theirs] or [math.nan]
    ok = [verdict == HOLDS for verdict, *_ in found]
    return _of_booleans(ok), (
        f"{metric_label(metric)} of {names[0]} against {names[1]} at {len(ok)} levels of {metric_in_text(equal)} from "
        f"{number(levels[0], decimals)} to {number(levels[-1], decimals)} (best: {reach}): "
        f"ratio {number(min(ratios), 3)} to {number(max(ratios), 3)}, {_asked(claim, metric)}, true at {sum(ok)}"
    )


def _levels(
    claim: ClaimSpec,
    place: Place,
    methods: tuple[str, str],
    ranges: list[tuple[float, float]],
    match: MatchSpec,
    material: Material,
) -> list[float]:
    """The levels at which two methods are compared, from the best to the worst; `ranges` are those of `_range`."""
    if "level" in claim.options:
        return [real_option(claim, "level", 0.0)]
    source, equal = claim.options["level_from"], match.fairness
    if source == "reported":
        spec = table_of(claim.options["table"], material.tables)
        first, second = methods
        level = reported_level(
            match,
            spec.number,
            material.reported,
            place.dataset,
            first,
            own=second,
            n_clusters=place.n_clusters,
        )
        if level is None:
            raise CannotTest(f"the paper reports no {metric_in_text(equal)} for these methods")
        return [level.allowed]
    pick = (min, max) if COLUMNS[equal].direction == "higher" else (max, min)
    best, worst = (choose(ends) for choose, ends in zip(pick, zip(*ranges, strict=True), strict=True))
    if math.isnan(best):
        raise CannotTest(f"{metric_in_text(equal)} was not scored")
    if source == "both" or pick[0](best, worst) == best or _alike(best, worst, equal):
        return [best]
    return [float(level) for level in np.linspace(best, worst, _N_LEVELS)]


def _alike(value: float, other: float, metric: str) -> bool:
    """Whether two values of a metric are about equal."""
    slack = LEVEL_SHARE * abs(other)
    return abs(value - other) <= (slack if COLUMNS[metric].is_cost else max(slack, _ALIKE))


def _range(cells: pd.DataFrame, metric: str) -> tuple[float, float]:
    """The best and the worst mean of a metric over the settings, without infinite ones."""
    means = settings_means(cells, [metric])[metric]
    ends = means[np.isfinite(means)].agg(["min", "max"])
    best, worst = ("max", "min") if COLUMNS[metric].direction == "higher" else ("min", "max")
    return float(ends[best]), float(ends[worst])


def _is_high(claim: ClaimSpec, metric: str) -> bool:
    """Whether higher values of the metric are better in this claim."""
    return str(claim.options.get("direction", COLUMNS[metric].direction)) == "higher"


def _asked(claim: ClaimSpec, metric: str) -> str:
    return (
        f"{'at least' if _is_high(claim, metric) else 'at most'} {real_option(claim, 'factor', 1.0):g} asked"
    )


def _compare(
    claim: ClaimSpec, methods: tuple[str, str], choices: list[Choice], material: Material, metric: str
) -> Finding:
    """Whether the metric of the first setting is at most `factor` times that of the second (at least, if high is good).

    The claim holds in part if only the best starts satisfy this, and not the means.
    """
    factor, higher = real_option(claim, "factor", 1.0), _is_high(claim, metric)
    first, second = (choice.spread(metric) for choice in choices)
    if math.isnan(first.mean) or math.isnan(second.mean):
        raise CannotTest(f"no value of {metric_label(metric)}")
    best = [one.high if higher else one.low for one in (first, second)]

    def ok(mine: float, other: float) -> bool:
        # For a negative value, such as a log-likelihood, the factor is applied to its absolute value.
        bound = other + (factor - 1) * abs(other) if math.isfinite(other) else other
        slack = (HAIR - 1) * abs(bound) if math.isfinite(bound) else 0.0
        return mine >= bound - slack if higher else mine <= bound + slack

    if claim.options.get("agg", "mean") == "best":
        verdict = HOLDS if ok(*best) else FAILS
    else:
        verdict = HOLDS if ok(first.mean, second.mean) else IN_PART if ok(*best) else FAILS
    decimals = COLUMNS[metric].decimals
    words = [
        f"{material.names.method(method)} {spread_text(one.mean, one.sd, decimals, end)}"
        for method, one, end in zip(methods, (first, second), best, strict=True)
    ]
    ratio = f"{first.mean / second.mean:.3f}" if second.mean else "undefined"
    return (
        verdict,
        f"{metric_label(metric)} of {words[0]}, of {words[1]}: ratio {ratio}, {_asked(claim, metric)}",
    )


def _compare_spreads(claim: ClaimSpec, place: Place, metric: str, material: Material) -> Finding:
    """Whether the first method has the smaller standard deviation, pooled over all lambdas that both methods ran."""
    if len(claim.methods) < 2:
        raise ClaimError("option 'factor' compares two methods, and the claim names one; name two")
    by_lam = []
    for method in claim.methods[:2]:
        cells = whole_cells(place, method, material, claim).dropna(subset=metric)
        settings = cells.groupby("params")
        variances = pd.DataFrame({"lam": settings.lam.first(), "variance": settings[metric].var()})
        by_lam.append(variances.dropna(subset="variance").fillna({"lam": 0.0}).groupby("lam").variance.mean())
    first, second = (one[one.index.isin(other.index)] for one, other in (by_lam, by_lam[::-1]))
    if first.empty:
        raise CannotTest("no lambda has two or more starts of both methods")
    sds = [math.sqrt(float(one.mean())) for one in (first, second)]
    words = [
        f"{material.names.method(method)} {number(sd, COLUMNS[metric].decimals)}"
        for method, sd in zip(claim.methods, sds, strict=False)
    ]
    at = ", ".join(f"{lam:g}" for lam in first.index)
    return (
        _of_booleans([sds[0] <= real_option(claim, "factor", 1.0) * sds[1] * HAIR]),
        f"standard deviation of {metric_label(metric)}, pooled over lambda {at}: {', '.join(words)}",
    )


def _points(
    claim: ClaimSpec, place: Place, methods: Iterable[str], x: str, metric: str, material: Material
) -> list[tuple[float, float]]:
    """The points (x, mean of the metric) of a trend, sorted by x; only finite ones."""
    found: list[tuple[float, float]] = []
    for method in methods:
        cells = whole_cells(place, method, material, claim)
        if x == "sizes":
            found.append((sizes_of(claim)[method], choose_best(cells, metric).spread(metric).mean))
        elif x == "n_clusters":
            values = _by_k(claim, cells, metric)
            if "minus_lam" in claim.options:
                values = values - _by_k(
                    claim, whole_cells(place, method, material, claim, "minus_lam"), metric
                )
            found += [(float(k), float(value)) for k, value in values.items()]
        else:
            means = settings_means(cells, [metric, x])
            found += list(zip(means[x], means[metric], strict=True))
    return sorted(point for point in found if all(map(math.isfinite, point)))


def _by_k(claim: ClaimSpec, cells: pd.DataFrame, metric: str) -> pd.Series:
    """The best mean of a metric at every K that the claim names."""
    if claim.n_clusters:
        cells = cells[cells.n_clusters.isin(claim.n_clusters)]
    found = {k: choose_best(one, metric).spread(metric).mean for k, one in cells.groupby("n_clusters")}
    return pd.Series(found, dtype=float)


def _tau(claim: ClaimSpec, points: list[tuple[float, float]], direction: str) -> Finding:
    tau = float(kendalltau(*zip(*points, strict=True)).statistic)
    if math.isnan(tau):
        raise CannotTest("all values are the same")
    signed = tau if direction == "rises" else -tau
    return _of_tau(claim, signed), f"tau = {tau:.2f}"


def _of_tau(claim: ClaimSpec, tau: float) -> str:
    return HOLDS if tau >= real_option(claim, "tau", 0.8) / HAIR else IN_PART if tau > 0 else FAILS


def _power(claim: ClaimSpec, points: list[tuple[float, float]], direction: str) -> Finding:
    """Whether the fitted power is that of the claim; it holds in part if only the direction is right."""
    if any(value <= 0 for point in points for value in point):
        raise CannotTest("a value is not positive, so its logarithm is undefined")
    x, y = np.log(np.array(points)).T
    slope = float(np.polyfit(x, y, 1)[0])
    wanted = real_option(claim, "power", 0.5) * (1 if direction == "rises" else -1)
    words = f"slope {slope:.2f}, {wanted:g} asked"
    if abs(slope - wanted) <= real_option(claim, "tolerance", 0.25) * HAIR:
        return HOLDS, words
    return (IN_PART if slope * wanted > 0 else FAILS), words


def _axis(x: str) -> str:
    return {"n_clusters": "K", "lam": "lambda", "sizes": "size"}.get(x) or metric_in_text(x)


def _reach(claim: ClaimSpec, place: Place, material: Material) -> tuple[list[bool], list[bool], str]:
    """For each method, whether the mean of a setting reaches the level, and whether a start does; and a sentence."""
    metric, level = metric_of(claim), real_option(claim, "level", 0.0)
    means, starts, words = [], [], []
    for method in claim.methods:
        cells = whole_cells(place, method, material, claim)
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
