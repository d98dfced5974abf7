"""`fairclust score`: labels that any program made, beside the clusterings of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table

from fairclust.cli.labels import read_labels
from fairclust.cli.options import Score
from fairclust.cli.screen import in_columns
from fairclust.datasets.download import fetch_source
from fairclust.datasets.fetch import get_data_home
from fairclust.datasets.prepare import prepare_dataset
from fairclust.messages import UserError, nearest, percent
from fairclust.metrics.table import METRICS, score_labels
from fairclust.pipeline.config import user_config
from fairclust.pipeline.scores import read_arrow
from fairclust.report.leaderboard import EQUAL, deviation, place_labels
from fairclust.report.render import number

_COSTS = ("sse", "ncut")
_FAIRNESS = ("fairness_error", "balance")
# The first of these that has the data set with this K is compared: the benchmark of the field, the run of the papers.
_PUBLISHED = [Path("docs/results/scores") / f"{name}.parquet" for name in ("field", "scores")]


def run(args: Score) -> list[str | Table]:
    """The scores of labels of a data set, and where they lie among the clusterings of a run."""
    config, dataset = user_config(args.configfile), args.dataset
    if dataset not in config.datasets:
        raise UserError(f"there is no data set {dataset!r}; {nearest(dataset, sorted(config.datasets))}")
    # The folder with the downloads of a run serves as another mirror; hashes are checked as for every mirror.
    sources, raw = config.sources_of(dataset), Path(config.results, "data/raw")
    paths = {
        name: fetch_source(name, spec, get_data_home(), [*config.mirror, raw / name])
        for name, spec in sources.items()
        if spec.file
    }
    data = prepare_dataset(dataset, config.datasets[dataset], paths, sources)
    n_clusters = config.datasets[dataset].n_clusters if args.n_clusters is None else args.n_clusters
    labels = read_labels(args.labels, np.arange(1, len(data.groups) + 1), n_clusters)
    unused = "X" if data.W is not None else "W"
    measured = [name for name in (*_COSTS, *_FAIRNESS) if METRICS[name].needs != unused]
    scored = data.scored(labels, n_clusters, data.W)
    measured_scores = score_labels(scored, measured)
    # As `leaderboard.deviations` measures the clusterings of the run.
    unfair, but = deviation(scored.table), ", where one row more or less does not count"
    if scored.columns and math.isfinite(unfair):
        unfair, but = 1 - score_labels(scored, ["fairness_ratio"])["fairness_ratio"], ""
    # Metrics that are undefined for these labels are left out.
    scores = {name: value for name, value in measured_scores.items() if not math.isnan(value)}
    titles = {name: (spec.label or name) + " (ours)" * spec.ours for name, spec in config.methods.items()}
    return [
        f"{args.labels}: {len(labels):,} labels of {dataset}, K = {n_clusters}",
        *(f"  {METRICS[of].label}: {number(value, METRICS[of].decimals)}" for of, value in scores.items()),
        "  Some clusters are empty, so no level of fairness is reached"
        if math.isinf(unfair)
        else f"  Shares of the groups in the clusters: within {percent(unfair)} of those in the data{but}",
        *_beside(_source(args.run, dataset, n_clusters), data.card, n_clusters, scores, unfair, titles),
    ]


def _source(run: Path | None, dataset: str, n_clusters: int) -> tuple[Path, pd.DataFrame, list[int]]:
    """The file of scores that has clusterings of the data set, if possible with this K; its cells; and all their K."""
    files = _PUBLISHED if run is None else [run / "scores" / "scores.parquet"]
    if not any(file.is_file() for file in files):
        raise UserError(
            f"there is no {files[-1]} here. Fix: name the folder of a finished run's results by --run, or run the "
            "command in a clone of the project"
        )
    found = []
    for file in filter(Path.is_file, files):
        cells = read_arrow(file).to_pandas()
        cells = cells[cells.dataset == dataset]
        found.append((file, cells, sorted(cells.n_clusters[cells.status == "ok"].unique())))
    return max(found, key=lambda one: (n_clusters in one[2], bool(one[2])))


def _beside(
    source: tuple[Path, pd.DataFrame, list[int]],
    card: dict[str, Any],
    n_clusters: int,
    scores: dict[str, float],
    unfair: float,
    titles: Mapping[str, str],
) -> list[str | Table]:
    """Where the labels lie among the methods of the run at each level of fairness of its leaderboard."""
    file, cells, known = source
    cells = cells[cells.n_clusters == n_clusters]
    # A method on a graph adds the graph's hash to that of the data.
    hashes = {str(one).partition("+")[0] for one in cells.data_hash.dropna()}
    if hashes - {card["data_hash"]}:
        raise UserError(
            f"the clusterings of {file} are of other data than {card['name']!r} of the catalogue. Fix: repeat the run, "
            "or name the results of another one by --run"
        )
    if n_clusters not in known:
        others = f": it has K of {', '.join(map(str, known))} (--n-clusters)" if known else ""
        return [f"{file} has no clustering of {card['name']} with K = {n_clusters}{others}"]
    if (cost := next((name for name in _COSTS if name in scores), None)) is None:
        return ["The cost of these labels is undefined, so they are not compared with clusterings"]
    title = f"Beside the clusterings of {file} with K = {n_clusters}, at levels of fairness, which say how far the "
    title += "shares of the groups may be from those in the data:"
    rows = [["shares within", "these labels", "best known", "cheaper methods"]]
    for of in place_labels(cells, cost, scores[cost], unfair).itertuples():
        mine, best = "no method is as fair", "none"
        if of.method:
            share = scores[cost] / of.best - 1
            mine = f"{percent(abs(share))} {'above' if share > 0 else 'below'} the best known"
            mine = "as cheap as the best known" if abs(share) < EQUAL else mine
            best = f"{number(of.best, METRICS[cost].decimals)} ({titles.get(of.method, of.method)})"
        cheaper = f"{of.cheaper} of {of.methods}" if of.reached else ""
        rows.append([percent(of.level, 0), mine if of.reached else "not reached", best, cheaper])
    return ["", title, in_columns(rows, left=(0, 1, 2))]
