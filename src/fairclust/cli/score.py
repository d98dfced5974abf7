"""`fairclust score`: labels that any program made, beside the clusterings of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table

from fairclust.cli import CommandError
from fairclust.cli.labels import read_labels
from fairclust.cli.options import Score
from fairclust.cli.screen import in_columns
from fairclust.datasets.download import fetch_source
from fairclust.datasets.fetch import get_data_home
from fairclust.datasets.prepare import prepare_dataset
from fairclust.messages import nearest, percent
from fairclust.metrics.table import METRICS, score_labels
from fairclust.pipeline.config import user_config
from fairclust.pipeline.scores import load_scores
from fairclust.report.leaderboard import deviation, place_labels
from fairclust.report.render import number, signed_percent
from fairclust.report.selection import best_starts, varied

_COSTS = ("sse", "ncut")
# One metric for each notion of fairness: shares, balance, social, individual and proportional fairness.
_FAIRNESS = ("fairness_error", "balance", "worst_group_cost", "individual_fairness", "proportionality")
# Values are rounded to this many digits before they are compared, because machines round differently.
_DIGITS = 9


def run(args: Score) -> list[str | Table]:
    """The scores of labels of a data set, and for each notion of fairness what the run has at the same cost."""
    config, dataset = user_config(args.configfile), args.dataset
    if dataset not in config.datasets:
        raise CommandError(f"there is no data set {dataset!r}; {nearest(dataset, sorted(config.datasets))}")
    # It is prepared without using prepared data of earlier runs.
    sources, paths = config.sources_of(dataset), {}
    for name, spec in sources.items():
        # The folder with the downloads of a run serves as another mirror; hashes are checked as for every mirror.
        raw = Path(config.results) / "data" / "raw" / name
        places: list[str | Path] = [*config.mirror, raw]
        paths[name] = fetch_source(name, spec, get_data_home(), places)
    data = prepare_dataset(dataset, config.datasets[dataset], paths, sources)
    n_clusters = config.datasets[dataset].n_clusters if args.n_clusters is None else args.n_clusters
    labels = read_labels(args.labels, np.arange(1, len(data.groups) + 1), n_clusters)
    unused = "X" if data.W is not None else "W"
    measured = [name for name in (*_COSTS, *_FAIRNESS) if METRICS[name].needs != unused]
    scored = data.scored(labels, n_clusters, data.W)
    measured_scores = score_labels(scored, measured)
    unfair = max(map(deviation, scored.tables.values()))
    # Metrics that are undefined for these labels are left out.
    scores = {name: value for name, value in measured_scores.items() if not math.isnan(value)}
    titles = {name: spec.label or name for name, spec in config.methods.items()}
    return [
        f"{args.labels}: {len(labels):,} labels of {dataset}, K = {n_clusters}",
        *(f"  {METRICS[of].label}: {number(value, METRICS[of].decimals)}" for of, value in scores.items()),
        *_beside(args.run, data.card, dataset, n_clusters, scores, unfair, titles),
    ]


def _beside(
    run: Path,
    card: dict[str, Any],
    dataset: str,
    n_clusters: int,
    scores: dict[str, float],
    unfair: float,
    titles: Mapping[str, str],
) -> list[str | Table]:
    """What the run has at the same cost and at the same fairness: a row for each notion that it measures."""
    file = run / "scores" / "scores.parquet"
    if not file.is_file():
        raise CommandError(
            f"--run: there is no {file}. Fix: name the folder of a finished run's results by --run"
        )
    cells = load_scores(file)
    cells = cells[(cells.dataset == dataset) & (cells.n_clusters == n_clusters)]
    # A method on a graph adds the graph's hash to that of the data.
    hashes = {str(one).partition("+")[0] for one in cells.data_hash.dropna()}
    if hashes - {card["data_hash"]}:
        raise CommandError(
            f"--run: the clusterings of {run} are of other data than {dataset!r} of the catalogue. Fix: repeat the "
            "run, or name the results of another one by --run"
        )
    cost = next((name for name in _COSTS if name in scores), None)
    if cost is None or not (cells.status == "ok").any():
        return [f"{run} has no clustering of {dataset} with K = {n_clusters}"]
    points = best_starts(cells)
    settings = points.groupby("method").params.transform(
        lambda texts: [varied(text, texts) for text in texts]
    )
    named = [titles.get(method, method) for method in points.method]
    points = points.assign(
        _name=[", ".join(filter(None, pair)) for pair in zip(named, settings, strict=True)]
    )
    lowest = f"lowest {METRICS[cost].label} at least as fair"
    head = ["", "these labels", "best at this cost or less", lowest, ""]
    rows = [
        _row(points, scores, cost, metric)
        for metric in _FAIRNESS
        if metric in scores and metric in points and points[metric].notna().any()
    ]
    title = f"Beside the {len(points)} settings of {run} with K = {n_clusters} (of each, the best start):"
    shown = in_columns([head, *rows], left=(0, 2, 3, 4))
    levels = place_labels(cells, cost, scores[cost], unfair)
    return ["", title, shown, "", *_levels(levels, cost, scores[cost], titles)]


def _levels(levels: pd.DataFrame, cost: str, value: float, titles: Mapping[str, str]) -> list[str | Table]:
    """Where the labels lie at each level of fairness of the leaderboard."""
    rows = [["shares within", "these labels", "best known", "cheaper methods"]]
    for of in levels.itertuples():
        level, mine, best, cheaper = percent(of.level, 0), "no method is as fair", "none", ""
        if of.method:
            mine = signed_percent(value / of.best - 1) + " above the best known"
            best = f"{number(of.best, METRICS[cost].decimals)} ({titles.get(of.method, of.method)})"
        if of.reached:
            cheaper = f"{of.cheaper} of {of.methods}"
        rows.append([level, mine if of.reached else "not reached", best, cheaper])
    return ["At the levels of the leaderboard:", in_columns(rows, left=(0, 1, 2))]


def _row(points: pd.DataFrame, scores: dict[str, float], cost: str, metric: str) -> list[str]:
    """The fairest setting at the cost of the labels, the cheapest that is as fair, and whether one beats the labels."""
    sign = 1 if METRICS[metric].direction == "higher" else -1
    mine = pd.Series({"cost": scores[cost], "gain": sign * scores[metric]}).round(_DIGITS)
    known = pd.DataFrame({"cost": points[cost], "gain": sign * points[metric]}).dropna().round(_DIGITS)
    cheap, fair = known[known.cost <= mine.cost], known[known.gain >= mine.gain]
    best = "none" if cheap.empty else _named(points.loc[cheap.gain.idxmax()], metric)
    cheapest = "none" if fair.empty else _named(points.loc[fair.cost.idxmin()], cost)
    beaten = known.loc[cheap.index.intersection(fair.index)].ne(mine).any(axis=None)
    words = "not on the front" if beaten else "on the front"
    return [METRICS[metric].label, number(scores[metric], METRICS[metric].decimals), best, cheapest, words]


def _named(point: pd.Series, metric: str) -> str:
    return f"{number(point[metric], METRICS[metric].decimals)} ({point['_name']})"
