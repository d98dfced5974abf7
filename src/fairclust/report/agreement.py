"""Whether two values agree: ours over the starts, the printed one, and that of a published program."""

from __future__ import annotations

import math

from fairclust.metrics.table import METRICS
from fairclust.pipeline.reported import OF_DATA
from fairclust.report.selection import HAIR, LEVEL_SHARE, Spread, half_unit

FLOOR = 0.001
"""Values agree if they differ by no more than this share."""
LIMIT = 0.1
"""Two optima of one problem differ by no more than this share; two standard deviations count for no more."""
FAIRNESS_LIMIT = 0.02
"""The same limit for fairness metrics, as a difference, where it is more than their share."""


def compare_value(metric: str, reported: float, decimals: int, ours: Spread) -> str:
    """Whether our starts agree with a reported value: 'yes', 'start', 'lower', 'higher' or 'no'.

    'yes': the mean agrees. 'start': the value lies between the smallest and the largest of the starts, widened by half
    a unit of the last digit or 0.1 %. 'no': a count that differs.
    """
    if metric in OF_DATA:
        return "yes" if ours.mean == reported else "no"
    exact = max(half_unit(decimals), FLOOR * abs(reported))
    if math.isfinite(ours.mean):
        cut_off = 0 <= math.copysign(1, reported or 1) * (ours.mean - reported) < 2 * half_unit(decimals)
        if cut_off or abs(ours.mean - reported) <= max(exact, _two_deviations(metric, reported, ours)) * HAIR:
            return "yes"
    # A range up to infinity is none, but a start at its lower end may have the reported value.
    high = ours.high if math.isfinite(ours.high) else ours.low
    if ours.n > 1 and ours.low - exact * HAIR <= reported <= high + exact * HAIR:
        return "start"
    return "lower" if ours.mean < reported else "higher"


def is_near(metric: str, reported: float, decimals: int, mean: float) -> bool:
    """Whether a mean is as near to a reported value as another optimum of the same problem may be."""
    return abs(mean - reported) <= max(_limit(metric, reported), half_unit(decimals)) * HAIR


def same_values(metric: str, decimals: int, ours: Spread, other: Spread) -> bool:
    """Whether two sets of runs agree: their means differ by at most two pooled deviations, which count for at most
    10 %; a single run may also lie in the range of the others."""
    if metric in OF_DATA:
        return ours.mean == other.mean
    if not (math.isfinite(ours.mean) and math.isfinite(other.mean)):
        return ours.mean == other.mean
    exact = max(half_unit(decimals), FLOOR * abs(other.mean))
    deviations = [0.0 if math.isnan(one.sd) else one.sd for one in (ours, other)]
    spread = min(2 * math.hypot(*deviations), _limit(metric, other.mean))
    if abs(ours.mean - other.mean) <= max(exact, spread) * HAIR:
        return True
    if min(ours.n, other.n) > 1:
        return False
    single, several = (other, ours) if other.n == 1 else (ours, other)
    return several.low - exact * HAIR <= single.mean <= several.high + exact * HAIR


def compare_cost(metric: str, reported: float, decimals: int, ours: Spread) -> str:
    """The cost at equal fairness beside the reported one: 'yes', 'lower' or 'higher'.

    'yes' means within 2 %, two standard deviations or half a unit of the last printed digit.
    """
    allowed = max(LEVEL_SHARE * abs(reported), half_unit(decimals), _two_deviations(metric, reported, ours))
    if abs(ours.mean - reported) <= allowed * HAIR:
        return "yes"
    return "lower" if ours.mean < reported else "higher"


def _limit(metric: str, value: float) -> float:
    """The largest difference between two optima of one problem."""
    return max(LIMIT * abs(value), FAIRNESS_LIMIT if is_fairness(metric) else 0.0)


def _two_deviations(metric: str, value: float, runs: Spread) -> float:
    return 0.0 if math.isnan(runs.sd) else min(2 * runs.sd, _limit(metric, value))


def is_fairness(metric: str) -> bool:
    """Whether a metric says how fair labels are: it needs only the table of clusters and groups."""
    return metric in METRICS and METRICS[metric].needs == "table" and METRICS[metric].direction != "none"
