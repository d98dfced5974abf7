"""The rule of the verdicts on the papers' own tables: a right implementation passes it, a wrong one does not."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from frames import cell, frame

from fairclust.pipeline.columns import TIMES
from fairclust.pipeline.reported import OF_DATA, load_programs, load_reported
from fairclust.pipeline.scores import load_scores
from fairclust.report.verdicts import AGREES, AS_PROGRAM, BY_MEAN, NOT_COMPARABLE, ON_FRONT, table_rows

ROOT = Path(__file__).parents[2]
PAPERS = ("vfc", "fmc", "bfkm")


def rows_of(plan, paper, table, cells):
    """Return the rows of a table that have values to be judged."""
    spec = plan.specs[paper]
    reported, programs = spec.files
    rows = table_rows(table, load_reported(reported), cells, load_programs(programs, spec.programs))
    return [row for row in rows if row.role == "paper" and row.verdict != NOT_COMPARABLE]


def as_reported(reported, table, noise, rng):
    """Return starts whose values are the reported ones, each with noise of one standard deviation."""
    wanted = reported[reported.value.notna() & ~reported.metric.isin([*TIMES, *OF_DATA])]
    of_table = wanted[wanted.table == table.number]
    for (dataset, method, k, lam), values in of_table.groupby(
        ["dataset", "method", "n_clusters", "lam"], dropna=False
    ):
        # Ten starts, as in the configuration: with fewer, the range of the starts decides.
        for seed in range(10 if noise else 2):
            scores = {
                row.metric: row.value + noise * abs(row.value) * rng.standard_normal()
                for row in values.itertuples()
            }
            yield cell(
                dataset, method, int(k), None if pd.isna(lam) else lam, seed,
                params=table.settings.get(method, {}), n_nonempty=int(k), **scores,
            )  # fmt: skip


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_the_reported_values_with_noise_are_reproduced(plan, paper, noise):
    spec = plan.config.papers[paper]
    findings = []
    # Each table by itself: two may report different values for one row.
    for table in spec.tables.values():
        cells = list(as_reported(load_reported(spec.reported), table, noise, np.random.default_rng(7)))
        if cells:
            rows = rows_of(plan, paper, table, frame(cells))
            findings += [row.finding for row in rows if row.method != "data"]
    assert len(findings) >= 20
    # What only a start has, or what is cheaper than reported, does not count here.
    passed = sum(finding in (BY_MEAN, ON_FRONT) for finding in findings) / len(findings)
    assert passed >= (1.0 if noise == 0 else 0.95), pd.Series(findings).value_counts().to_dict()


@pytest.mark.parametrize(
    "paper, wrong, right",
    [
        ("fmc", "price_kmeans", "fmc_em"),
        ("fmc", "price_balance", "fmc_em"),
        ("vfc", "kmeans", "vfc_kmeans"),
        ("vfc", "kmeans", "vfc_kmedians"),
        ("bfkm", "kmeans", "bfkm"),
    ],
)
def test_another_method_under_a_papers_name_is_not_reproduced(plan, paper, wrong, right):
    published = load_scores(ROOT / "docs/results/scores/scores.parquet")
    spec = plan.config.papers[paper]
    theirs = published[published.method == wrong]
    lams = load_reported(spec.reported).query("method == @right").lam.unique()
    disguised = [
        theirs.assign(method=right, lam=lam, params=f'{{"lam": {float(lam)}}}')
        for lam in lams[~np.isnan(lams)]
    ]
    plain = published[published.method == "kmeans"]
    cells = pd.concat([*(disguised or [theirs.assign(method=right)]), plain], ignore_index=True)
    rows = [row for table in spec.tables.values() for row in rows_of(plan, paper, table, cells)]
    rows = [row for row in rows if row.method == right and len(row.choice.cells)]
    assert len(rows) >= 2
    assert {AGREES, AS_PROGRAM}.isdisjoint(row.verdict for row in rows), rows
