"""`fairclust front`: the cost of fairness for the settings of several methods."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table

from fairclust import methods
from fairclust.cli.methods import PLAIN, find_method, fit_starts, parameters
from fairclust.cli.options import Front
from fairclust.cli.page import front_page
from fairclust.cli.progress import progress
from fairclust.cli.results import compared, increase_over
from fairclust.cli.rows import read_rows
from fairclust.cli.screen import in_columns
from fairclust.messages import UserError, percent
from fairclust.metrics.table import METRICS
from fairclust.outputs import check_outputs, write_text
from fairclust.plot import FrontDisplay
from fairclust.report.render import number, signed_percent
from fairclust.tables import table_files

_SHOWN = ("sse", "balance", "delta")
# The fairest settings that cost this much more than k-means are named.
_BUDGETS = (0.01, 0.05)
# The methods that are compared with k-means unless others are named.
_METHODS = ("price", "vfc", "bfkm")
# Values to try for the parameter that sets the fairness of a method. The weights, for methods that have no bound, are
# multiples of the sum of the squared lengths of all rows.
_GRIDS = {
    "tolerance": (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8),
    "rho": (1, 5, 20, 100),
    "lam": (0.02, 0.1, 0.2, 0.5, 2.0),
}


def run(args: Front) -> list[str | Table]:
    """Fit every setting, write what the options ask for, and show the settings as a table."""
    check_outputs({"--out": args.out, "--report": args.report}, table_files(args.table))
    classes = [find_method(name) for name in args.methods or _METHODS]
    raw = read_rows(args)
    measured_by = raw.crossed if args.crossed else raw.by_name
    clusterings, times, notes = [], [], list(raw.notes)
    settings = list(_settings(args, classes, raw.X))
    with progress("fitting settings", total=len(settings)) as done:
        for cls, setting, params in settings:
            try:
                groups = raw.sensitive_for(cls, crossed=args.crossed)
                model, seconds, warned = fit_starts(cls, params, raw.X, groups, args.starts)
                clusterings.append((cls.__name__, setting, model.labels_))
                times.append(round(seconds, 2))
            except UserError as error:
                warned = [str(error)]
            notes += [f"{' '.join(filter(None, (cls.__name__, setting)))}: {text}" for text in warned]
            done()
    if not clusterings:
        raise UserError(f"no setting could be fitted: {notes[-1]}")
    display = FrontDisplay.from_predictions(
        raw.X, clusterings, sensitive_features=measured_by, n_clusters=args.n_clusters
    )
    points = display.points
    plain = points.sse[points.method == "KMeans"].min()
    increase = np.array([increase_over(sse, plain) for sse in points.sse], float)
    points = points.assign(seconds=times, increase=increase)
    said = answer(points)
    said.append(
        f"starts: k-means has {PLAIN['n_init']} starts, and every setting {args.starts}; the cheapest counts. A fair "
        "setting can be cheaper than k-means only if the starts of k-means ended at worse centres"
    )
    written = []
    if args.out:
        write_text(args.out, points.to_csv(index=False))
        written.append(f"settings: {args.out}")
    if args.report:
        write_text(args.report, front_page(points, cells(points), said, raw, notes, args))
        written.append(f"report: {args.report}; open it in a browser")
    table = in_columns(cells(points), left=(0, 1))
    return [*(f"note: {note}" for note in notes), table, "", *said, *written]


def _settings(args: Front, classes: list[type], X: np.ndarray) -> Iterator[tuple[type, str, dict[str, Any]]]:
    """K-means, then each method over a grid of the parameter that sets its fairness.

    Yields the class, the setting (such as ``tolerance=0.1``; empty for defaults) and the arguments for the class.
    """
    scale = float(np.square(X).sum())
    yield methods.KMeans, "", parameters(methods.KMeans, args.n_clusters, args.seed, []) | PLAIN
    for cls in classes:
        params = parameters(cls, args.n_clusters, args.seed, [])
        known = cls._parameter_constraints  # type: ignore[attr-defined]
        name = next((name for name in _GRIDS if name in known), "")
        if not name and cls is not methods.KMeans:
            yield cls, "", params
        for value in _GRIDS.get(name, ()):
            value = value if name == "tolerance" else float(f"{value * scale:.2g}")
            yield cls, f"{name}={value:g}", params | {name: value}


def answer(points: pd.DataFrame) -> list[str]:
    """What fairness costs, in words: k-means, the fairest setting, and the fairest within 1 % and 5 % of its cost."""
    plain = points[points.method == "KMeans"].head(1)
    others = points[(points.method != "KMeans") & points.balance.notna()]
    lines = [
        f"without a bound: k-means has a balance of {of.balance:.3f} (sum of squared distances {of.sse:,.1f})"
        for of in plain.itertuples()
    ]
    within = {f"within {percent(budget, 0)}": others[others.increase <= budget] for budget in _BUDGETS}
    for words, fits in ({"fairest": others} | within).items():
        if fits.empty:
            none = "no setting costs so little" if len(others) else "only k-means was fitted"
            lines.append(f"{words}: {none}")
            continue
        of = fits.sort_values(["balance", "delta", "sse"], ascending=[False, True, True]).iloc[0]
        name = " ".join(filter(None, (of.method, of.setting)))
        cost = "" if math.isnan(of.increase) else f" and costs {compared(of.increase)} than k-means"
        lines.append(f"{words}: {name} has a balance of {of.balance:.3f}{cost}")
    if others.balance.max() == 0:
        lines.append("balance: no setting has every group in every cluster, so the lowest Delta counts")
    return lines


def cells(points: pd.DataFrame) -> list[list[str]]:
    """The table of all settings as text, whose first row is the head."""
    first, *others = (METRICS[name].label for name in _SHOWN)
    rows = [["method", "setting", first, "more", *others, "seconds"]]
    for of in points.to_dict("records"):
        first, *others = (number(of[name], METRICS[name].decimals) for name in _SHOWN)
        shown = [of["method"], of["setting"], first, signed_percent(of["increase"]), *others]
        rows.append([*shown, number(of["seconds"], 1)])
    return rows
