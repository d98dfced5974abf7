"""The settings of a run: a row for each setting of each method on each data set and K, computed once per run.

The job `board` writes this frame. The fronts, the answers and the tables of the page are views of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairclust.outputs import atomic_write
from fairclust.report.leaderboard import COSTS, FAIRNESS
from fairclust.report.redaction import redact_config
from fairclust.report.render import plain
from fairclust.report.selection import SETTING, best_starts, settings_table, varied_params

SHOWN = (*COSTS, *FAIRNESS)
_CERTIFIED = ("sse", "kmedians_cost")
"""Costs that some fits bound from below."""


def make_settings(scores: pd.DataFrame) -> pd.DataFrame:
    """The best start of every setting, in the columns of the scores, and these further columns.

    ``setting``: lambda and what differs among the settings of the method. ``X mean`` and ``X sd`` of every cost and
    fairness metric: over the starts, whose number is ``starts``. ``all_seconds``: of all starts. ``excess_X``: by which
    share a cost exceeds that of the cheapest labels for the fitted centres at most, where the fit has certified it.
    """
    points = best_starts(scores)
    of = points.set_index(SETTING).index
    table = settings_table(scores, SHOWN, with_sd=True).reindex(of)
    more = {f"{name} mean": table[name].to_numpy(float) for name in SHOWN}
    more |= {f"{name} sd": table[f"{name} sd"].to_numpy(float) for name in SHOWN}
    for cost in _CERTIFIED:
        pairs = zip(points.estimator, points[cost], strict=True)
        more[f"excess_{cost}"] = np.array([_excess(text, value) for text, value in pairs], float)
    seconds = scores[scores.status == "ok"].groupby(SETTING).seconds.sum().reindex(of).to_numpy(float)
    return points.assign(setting=_words(points), starts=table.starts.to_numpy(), all_seconds=seconds, **more)


def write_settings(path: Path, settings: pd.DataFrame) -> None:
    """Write the frame of `make_settings` as a Parquet file."""
    with atomic_write(path) as file:
        settings.to_parquet(file, index=False)


def _excess(estimator: object, value: float) -> float:
    """The share by which the cost of a fit exceeds its bound; NaN without a bound, or for another cost."""
    stated = json.loads(estimator) if isinstance(estimator, str) else {}
    cost, bound = stated.get("cost_"), stated.get("lower_bound_")
    # The scorer measures the cost to the means of the clusters, and a fit to the centres that it had last.
    if not cost or not bound or not abs(value - cost) <= 1e-3 * cost:
        return math.nan
    return max(0.0, cost / bound - 1)


def _words(points: pd.DataFrame) -> pd.Series:
    text = pd.Series("", index=points.index)
    for _, of in points.groupby(["dataset", "n_clusters", "method"], sort=False):
        varied = varied_params(of.params)
        text.loc[of.index] = [_setting_text(json.loads(params), varied[params]) for params in of.params]
    return text


def _setting_text(params: Mapping[str, Any], varied: Mapping[str, Any]) -> str:
    lam = [f"λ = {plain(params['lam'])}"] if "lam" in params else []
    others = [f"{name} = {plain(redact_config(varied[name]))}" for name in sorted(set(varied) - {"lam"})]
    return ", ".join([*lam, *others])
