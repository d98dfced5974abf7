"""`fairclust front`: the cost of fairness for the settings of several methods, or for several numbers of clusters."""

from __future__ import annotations

import importlib.util
import math
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table
from sklearn.metrics import adjusted_rand_score, silhouette_score

from fairclust import methods
from fairclust.cli import CommandError
from fairclust.cli.fitting import PLAIN, fit, fit_starts, parameters
from fairclust.cli.front_page import front_page
from fairclust.cli.labels import read_labels
from fairclust.cli.methods import find_method
from fairclust.cli.options import Front
from fairclust.cli.progress import progress
from fairclust.cli.results import GIVEN, compared
from fairclust.cli.rows import read_rows
from fairclust.cli.screen import in_columns
from fairclust.messages import UserError, count
from fairclust.metrics.table import METRICS
from fairclust.outputs import atomic_write, check_outputs, write_text
from fairclust.plot import FrontDisplay
from fairclust.report.render import MISSING, number
from fairclust.sample_weight import groups_of_rows
from fairclust.tables import table_files

_SHOWN = ("sse", "balance", "delta")
# The silhouette is computed on a sample of this many rows. It agrees with that of all rows to two digits, and takes a
# second instead of minutes. The halves whose clusterings are compared have as many rows at most.
_SAMPLE_ROWS = 5000
# A number of clusters is recommended if fits to two halves of the rows agree to this adjusted Rand index, and if its
# silhouette is this much above those of all other such numbers. Smaller differences come with another sample of rows.
_STABLE, _CLEARLY = 0.8, 0.02
# Costs that differ by less than this fraction count as equal.
_ALIKE = 1e-4
# The fairest settings that cost this much more than k-means are named.
_BUDGETS = (0.01, 0.05)
# Values to try for the parameter that sets the fairness of a method. The weights, for methods that have no bound, are
# multiples of the sum of the squared lengths of all rows.
_GRIDS = {
    "tolerance": (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8),
    "rho": (1, 5, 20, 100),
    "lam": (0.02, 0.1, 0.2, 0.5, 2.0),
}


def run(args: Front) -> list[str | Table]:
    """Fit every setting, write the results as CSV and picture, and show them as a table."""
    # A stem such as `.` or `folder/..` would make hidden files with odd names.
    if args.out.name in ("", ".."):
        raise CommandError(
            f"--out: {args.out} is a folder. Fix: name a stem in it, such as {args.out / 'front'}"
        )
    endings = ("csv", "png") if importlib.util.find_spec("matplotlib") else ("csv",)
    paths = {ending: Path(f"{args.out}.{ending}") for ending in endings}
    outputs = {f"--out ({ending})": path for ending, path in paths.items()} | {"--report": args.report}
    check_outputs(outputs, [*table_files(args.table), *args.labels])
    numbers, classes = _asked(args)
    over_k = len(numbers) > 1
    raw = read_rows(args)
    measured_by = raw.crossed if args.crossed else raw.by_name
    known = [path.name for path in args.labels]
    clusterings, more, notes = [], [], list(raw.notes)
    settings = list(_settings(numbers, classes, raw.X, args.seed, one=over_k))
    given = {
        path.name if known.count(path.name) == 1 else str(path): read_labels(
            path, raw.frame.index.to_numpy() + 1
        )
        for path in args.labels
    }
    with progress("fitting settings", total=len(settings)) as done:
        for cls, setting, params in settings:
            try:
                groups = raw.sensitive_for(cls, crossed=args.crossed)
                model, seconds, warned = fit_starts(cls, params, raw.X, groups, args.starts)
                stability = {"stability": _stability(model, raw.X, groups)} if over_k else {}
                clusterings.append((cls.__name__, setting, model.labels_))
                more.append({"n_clusters": model.n_clusters, **stability, "seconds": round(seconds, 2)})
            except UserError as error:
                warned = [str(error)]
            notes += [f"{' '.join(filter(None, (cls.__name__, setting)))}: {text}" for text in warned]
            done()
    if not clusterings:
        raise CommandError(f"no setting could be fitted: {notes[-1]}")
    clusterings += [(name, GIVEN, labels) for name, labels in given.items()]
    more += [{"n_clusters": int(labels.max()) + 1} for labels in given.values()]
    points = FrontDisplay.from_predictions(raw.X, clusterings, sensitive_features=measured_by).points
    points["silhouette"] = [_silhouette(raw.X, labels) for _, _, labels in clusterings]
    points = with_increase(points.assign(**pd.DataFrame(more)))
    fitted = points[points.setting != GIVEN]
    said = recommended(fitted) if over_k else answer(points)
    said += [
        f"k-means: the cheapest of {PLAIN['n_init']} starts, as in fairclust fit; every setting: the cheapest of "
        f"{count(args.starts, 'start')}",
        *cheaper(fitted),
    ]
    write_text(paths["csv"], points.to_csv(index=False))
    if "png" in paths:
        with atomic_write(paths["png"]) as file:
            _draw(points, over_k, said).savefig(file, format="png", dpi=150)
    hint = "" if "png" in paths else " (pip install 'fairclust[plot]' for a PNG)"
    written = [f"written: {', '.join(map(str, paths.values()))}{hint}"]
    if args.report:
        write_text(args.report, front_page(points, cells(points, over_k), said, raw, notes, args))
        written.append(f"report: {args.report} (open it in a browser; it needs no network)")
    return [*(f"note: {note}" for note in notes), _table(points, over_k), "", *said, *written]


def _asked(args: Front) -> tuple[list[int], list[type]]:
    """The numbers of clusters and the methods that the options name."""
    if args.starts < 1:
        raise CommandError(
            f"--starts: {args.starts} is no number of starts. Fix: write a whole number of 1 or more"
        )
    first, colon, last = args.n_clusters.partition(":")
    numbers: list[int] = []
    with suppress(ValueError):
        numbers = list(range(int(first), int(last) + 1)) if colon else [int(first)]
    if not numbers or numbers[0] < 1:
        raise CommandError(
            f"--n-clusters: {args.n_clusters!r} is neither a number nor a range. Fix: write 3 or 2:10, for example"
        )
    usual = ("price",) if len(numbers) > 1 else ("price", "vfc", "bfkm")
    return numbers, [find_method(name) for name in args.methods or usual]


def _settings(
    numbers: list[int], classes: list[type], X: np.ndarray, seed: int, *, one: bool
) -> Iterator[tuple[type, str, dict[str, Any]]]:
    """For every K, k-means, then each method over a grid of the parameter that sets its fairness.

    Yields the class, the setting (such as ``tolerance=0.1``; empty for defaults) and the arguments for the class. With
    `one`, each method is yielded once, with its defaults.
    """
    scale = float(np.square(X).sum())
    for n_clusters in numbers:
        yield methods.KMeans, "", parameters(methods.KMeans, n_clusters, seed, []) | PLAIN
        for cls in classes:
            params = parameters(cls, n_clusters, seed, [])
            known = () if one else cls._parameter_constraints  # type: ignore[attr-defined]
            name = next((name for name in _GRIDS if name in known), "")
            if not name and cls is not methods.KMeans:
                yield cls, "", params
            for value in _GRIDS.get(name, ()):
                value = value if name == "tolerance" else float(f"{value * scale:.2g}")
                yield cls, f"{name}={value:g}", params | {name: value}


def with_increase(points: pd.DataFrame) -> pd.DataFrame:
    """The points with `increase`, the part by which their SSE is above that of k-means with as many clusters."""
    plain = points[_is_plain(points)].set_index("n_clusters").sse
    return points.assign(increase=points.sse / points.n_clusters.map(plain) - 1)


def _is_plain(points: pd.DataFrame) -> pd.Series:
    """Which points are our fits of k-means. A file of labels may have this name, too."""
    return (points.method == "KMeans") & (points.setting != GIVEN)


def answer(points: pd.DataFrame) -> list[str]:
    """What fairness costs, in words: k-means, the fairest setting, and the fairest within 1% and 5% of its cost."""
    plain = points[_is_plain(points)].head(1)
    others = points[~_is_plain(points) & points.balance.notna()]
    asked = [("fairest", others), *((f"within {b:.0%}", others[others.increase <= b]) for b in _BUDGETS)]
    lines = [
        f"without a bound: k-means costs SSE {of.sse:,.1f}, with balance {of.balance:.3f}"
        for of in plain.itertuples()
    ]
    for words, fits in asked:
        if fits.empty:
            lines.append(
                f"{words}: {'no setting costs so little' if len(others) else 'only k-means was fitted'}"
            )
            continue
        of = fits.sort_values(["balance", "sse"], ascending=[False, True]).iloc[0]
        name = " ".join(filter(None, (of.method, of.setting)))
        cost = f"SSE {of.sse:,.1f}" if math.isnan(of.increase) else f"{compared(of.increase)} than k-means"
        lines.append(f"{words}: {name} has balance {of.balance:.3f} and costs {cost}")
    return lines


def _silhouette(X: np.ndarray, labels: np.ndarray) -> float:
    rows = np.random.RandomState(0).permutation(len(labels))[:_SAMPLE_ROWS]
    # A sample may have no row of a small cluster.
    several = 1 < len(np.unique(labels[rows])) < len(rows)
    return float(silhouette_score(X[rows], labels[rows])) if several else np.nan


def _stability(model: Any, X: np.ndarray, groups: Any) -> float:
    """Adjusted Rand index, on all rows, of two fits: each to another half of the rows, from another start.

    NaN if the method cannot predict, or cannot fit a half.
    """
    if not hasattr(model, "predict"):
        return np.nan
    takes, labels = model.get_params(), []
    order = np.random.default_rng(0).permutation(len(X))[: 2 * _SAMPLE_ROWS]
    for seed, half in enumerate(np.array_split(order, 2)):
        seeded = {"random_state": takes["random_state"] + seed} if "random_state" in takes else {}
        try:
            fitted, _, _ = fit(type(model), takes | seeded, X[half], groups_of_rows(groups, half, len(X)))
            labels.append(fitted.predict(X, sensitive_features=groups))
        except ValueError:
            return np.nan
    return float(adjusted_rand_score(*labels))


def recommended(points: pd.DataFrame) -> list[str]:
    """For each fair method a sentence that recommends a number of clusters, or says that none is clearly better."""
    lines = []
    for method, of in points[points.method != "KMeans"].groupby("method", sort=False):
        of = of[of.silhouette.notna()]  # A single cluster has no silhouette, and is always stable.
        stable = of[of.stability >= _STABLE].sort_values("silhouette", ascending=False)
        pairs = zip(stable.n_clusters, stable.silhouette, strict=True)
        listed = ", ".join(f"{k} ({silhouette:.2f})" for k, silhouette in pairs)
        none = "no number of clusters is clearly better"
        if stable.empty and of.stability.isna().all():
            text = f"{none}, because it cannot predict, so whether fits to two halves of the rows agree is not known"
        elif stable.empty:
            text = (
                f"{none}, because fits to two halves of the rows agree to an adjusted Rand index of "
                f"{of.stability.max():.2f} at most, and to trust the clusters it should be {_STABLE:g}"
            )
        elif len(stable) > 1 and stable.silhouette.iloc[0] - stable.silhouette.iloc[1] < _CLEARLY:
            text = f"{none}: these are stable, with nearly the same silhouette: {listed}"
        else:
            best, several = stable.iloc[0], f"the silhouettes of all stable K are {listed}"
            text = (
                f"{best.n_clusters} clusters are recommended: under the bound, fits to two halves of the rows agree to "
                f"an adjusted Rand index of {best.stability:.2f}, and the silhouette is {best.silhouette:.2f} "
                f"({several if len(stable) > 1 else 'no other K is stable'})"
            )
        lines.append(f"{method}: {text}")
    return lines


def cheaper(points: pd.DataFrame) -> list[str]:
    """A sentence if a fair setting costs less than k-means, which only bad starts of k-means explain."""
    fair = points[points.method != "KMeans"]
    least = fair.loc[fair.groupby("n_clusters").sse.idxmin()]
    plain = least.n_clusters.map(points[points.method == "KMeans"].set_index("n_clusters").sse)
    below = least[least.sse < (1 - _ALIKE) * plain]
    if below.empty:
        return []
    first = below.iloc[0]
    name = " ".join(filter(None, (first.method, first.setting)))
    return [
        f"at K = {', '.join(map(str, below.n_clusters))}, a fair setting costs less than k-means ({name} "
        f"{first.sse:,.1f}, k-means {plain[below.index[0]]:,.1f}): the starts of k-means ended at worse centres. More "
        "--starts find better ones"
    ]


def _table(points: pd.DataFrame, over_k: bool) -> Table:
    return in_columns(cells(points, over_k), left=(0, 1))


def cells(points: pd.DataFrame, over_k: bool) -> list[list[str]]:
    """The table of all settings as text, whose first row is the head."""
    more = ["silhouette", *(["stability"] if over_k else [])]
    names = [METRICS[m].label for m in _SHOWN]
    rows = [["method", "K" if over_k else "setting", names[0], "more", *names[1:], *more, "seconds"]]
    for of in points.to_dict("records"):
        first, *others = (number(of[name], METRICS[name].decimals) for name in _SHOWN)
        increase = MISSING if math.isnan(of["increase"]) else f"{round(of['increase'], 3) + 0.0:+.1%}"
        shown = [of["method"], str(of["n_clusters"] if over_k else of["setting"]), first, increase, *others]
        rows.append([*shown, *(number(of[name], 3) for name in more), number(of["seconds"], 1)])
    return rows


def _draw(points: pd.DataFrame, over_k: bool, said: list[str]) -> Any:
    from matplotlib.figure import Figure

    panels = ("sse", "balance", "silhouette") if over_k else ("balance", "delta")
    width = 4.5 * len(panels)
    lines = [part for line in said for part in textwrap.wrap(line, int(14 * width))]
    figure = Figure(figsize=(width, 3.8 + 0.16 * len(lines)), layout="constrained")
    figure.suptitle("\n".join(lines), fontsize=8, x=0.01, ha="left")
    for ax, name in zip(figure.subplots(1, len(panels)), panels, strict=True):
        FrontDisplay(points).plot("n_clusters" if over_k else "sse", name, ax=ax)
    return figure
