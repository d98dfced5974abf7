"""The rule of the verdicts on the papers' own tables: a right implementation passes it, a wrong one does not."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from frames import cell, frame

from fairclust.pipeline.columns import COLUMNS, TIMES
from fairclust.pipeline.config import shipped_config
from fairclust.pipeline.reported import OF_DATA, load_reported
from fairclust.pipeline.scores import load_scores
from fairclust.report.verdicts import table_rows

ROOT = Path(__file__).parents[2]
PAPERS = ("vfc", "fmc", "bfkm")
SEEDS = 5
PASSES = {"reproduced", "on the front"}


@pytest.fixture(scope="module")
def config():
    return shipped_config(ROOT)


@pytest.fixture(scope="module")
def published():
    """Return the scores of the published run."""
    return load_scores(ROOT / "docs/results/scores/scores.parquet")


def rows_of(config, paper, cells):
    """Return the rows of a paper that have values to be judged."""
    spec = config.papers[paper]
    reported = load_reported(spec.reported)
    rows = [row for table in spec.tables.values() for row in table_rows(table, reported, cells)]
    return [
        row
        for row in rows
        if row.role == "paper" and row.verdict not in ("impossible", "unpublished", "not judged")
    ]


def as_reported(config, paper, noise, rng):
    """Return starts whose values are the reported ones, each with noise of one standard deviation."""
    spec = config.papers[paper]
    reported = load_reported(spec.reported)
    wanted = reported[reported.value.notna() & ~reported.metric.isin([*TIMES, *OF_DATA])]
    for table in spec.tables.values():
        of_table = wanted[wanted.table == table.number]
        for (dataset, method, k, lam), values in of_table.groupby(
            ["dataset", "method", "n_clusters", "lam"], dropna=False
        ):
            params = table.settings.get(method, {})
            lam = params.get("lam", lam)
            others = {name: value for name, value in params.items() if name != "lam"}
            for seed in range(SEEDS):
                scores = {
                    row.metric: row.value + noise * abs(row.value) * rng.standard_normal()
                    for row in values.itertuples()
                }
                yield cell(
                    dataset, method, int(k), None if pd.isna(lam) else lam, seed, params=others, n_nonempty=int(k),
                    **scores,
                )  # fmt: skip


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("noise", [0.0, 0.001, 0.01, 0.03])
def test_the_reported_values_with_noise_are_reproduced(config, paper, noise):
    verdicts = []
    for name, table in config.papers[paper].tables.items():
        # Each table by itself: two may report different values for one row.
        alone = SimpleNamespace(
            papers={paper: config.papers[paper].model_copy(update={"tables": {name: table}})}
        )
        cells = list(as_reported(alone, paper, noise, np.random.default_rng(7)))
        if cells:
            verdicts += [row.verdict for row in rows_of(alone, paper, frame(cells)) if row.method != "data"]
    assert len(verdicts) >= 20
    passed = sum(verdict in PASSES for verdict in verdicts) / len(verdicts)
    assert passed >= (1.0 if noise == 0 else 0.95), pd.Series(verdicts).value_counts().to_dict()


@pytest.mark.parametrize(
    "paper, wrong, right",
    [
        ("fmc", "price_kmeans", "fmc_em"),
        ("fmc", "price_balance", "fmc_em"),
        ("vfc", "kmeans", "vfc_kmeans"),
        ("vfc", "kmeans", "vfc_kmedians"),
        ("bfkm", "frkm", "bfkm"),
    ],
)
def test_another_method_under_a_papers_name_is_not_reproduced(config, published, paper, wrong, right):
    theirs = published[published.method == wrong]
    lams = load_reported(config.papers[paper].reported).query("method == @right").lam.unique()
    settings = [table.settings.get(right, {}).get("lam") for table in config.papers[paper].tables.values()]
    disguised = [
        theirs.assign(method=right, lam=lam, params=f'{{"lam": {float(lam)}}}')
        for lam in {*lams[~np.isnan(lams)], *(lam for lam in settings if lam is not None)}
    ]
    plain = published[published.method == "kmeans"]
    cells = pd.concat(
        [*disguised, plain] if disguised else [theirs.assign(method=right), plain], ignore_index=True
    )
    rows = [row for row in rows_of(config, paper, cells) if row.method == right and row.choice.n_ok]
    assert len(rows) >= 2
    assert {row.verdict for row in rows}.isdisjoint({"reproduced", "reached by a start"}), rows


def test_costs_and_fairness_have_directions():
    assert all(COLUMNS[name].direction == "lower" for name in ("sse", "kmedians_cost", "ncut", "nll"))
