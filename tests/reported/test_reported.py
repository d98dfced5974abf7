"""The transcribed tables are complete and well formed, and agree with values that were typed a second time."""

from pathlib import Path

import pandas as pd
import pytest

from fairclust.pipeline.reported import load_reported

FOLDER = Path(__file__).parents[2] / "config" / "papers"
PAPERS = ("vfc", "fmc", "bfkm", "sfairsc")

# These were counted in the papers: lines of the table x methods x numbers for each method.
ROWS = {
    ("vfc", "2"): 5 * 2 * 3,
    ("vfc", "3"): 5 * 2 * 3,
    ("vfc", "4"): 5 * 2 * 3,
    ("fmc", "1"): 3 * 2,
    ("fmc", "2"): 5 * 4,
    ("fmc", "3"): 6 * 4,
    ("fmc", "4"): 5 * 4,
    ("fmc", "5"): 4 * 9,
    ("fmc", "6"): 4 * 6,
    ("fmc", "7"): 5 * 6,
    ("fmc", "8"): 6 * 3,
    ("bfkm", "III and IV"): 10 * 7 * (2 + 2),
    ("sfairsc", "text"): 2,
}

# (paper, table, dataset, method, lam, metric): value, decimals
SPOT = [
    ("vfc", "2", "adult", "vfc_kmedians", 9000, "kmedians_cost", 18467.75, 2),
    ("vfc", "3", "bank_3", "vfc_kmeans", 6000, "sse", 9392.20, 2),
    ("vfc", "3", "bank_3", "bera", None, "balance", 0.16, 2),
    ("vfc", "4", "census_ii", "vfc_ncut", 100, "balance", 0.43, 2),
    ("fmc", "1", "census_ii", "backurs", None, "seconds_std", 535.1, 1),
    ("fmc", "2", "census_ii", "fmc_subsample_1pct", None, "sse", 11.167e5, -2),
    ("fmc", "3", "adult", "kmeans", None, "sse", 9509, 0),
    ("fmc", "4", "census_ii_std", "fmc_subsample_5pct", None, "sse", 3.096e7, -4),
    ("fmc", "5", "adult_cat", "fmc_em", None, "nll", 11.600, 3),
    ("fmc", "6", "credit_3_cat", "fmc_em", None, "delta_mean", 0.006, 3),
    ("fmc", "7", "credit_3", "fmc_em", 10, "sse", 23067, 0),
    ("fmc", "8", "adult_mixed", "fmc_em_mixed_last", 10, "accuracy", 0.706, 3),
    ("bfkm", "III and IV", "elliptical", "bfkm", None, "awd", 0.0472, 4),
    ("bfkm", "III and IV", "2d4c_no4", "vfc_kmeans", None, "fairness_ratio", 0.3045, 4),
    ("bfkm", "III and IV", "bfkm_creditcard", "kmeans", None, "fairness_ratio", 0.7390, 4),
    ("bfkm", "III and IV", "2d4c_no1", "fscun", None, "awd", 0.0012, 4),
    ("sfairsc", "text", "lastfm", "data", None, "n_nodes", 5678, 0),
]


@pytest.fixture(scope="module")
def table():
    frames = [load_reported(FOLDER / f"{paper}.csv").assign(paper=paper) for paper in PAPERS]
    return pd.concat(frames, ignore_index=True).astype({"paper": "string"})


def test_every_table_has_all_its_cells(table):
    assert table.groupby(["paper", "table"]).size().to_dict() == ROWS
    assert len(table) == sum(ROWS.values()) == 550


@pytest.mark.parametrize("cell", SPOT, ids=lambda cell: "-".join(map(str, cell[:6])))
def test_spot_checks(table, cell):
    paper, name, dataset, method, lam, metric, value, decimals = cell
    keys = ["paper", "table", "dataset", "method", "metric"]
    lams = table["lam"].isna() if lam is None else table["lam"] == lam
    (hit,) = table[(table[keys] == [paper, name, dataset, method, metric]).all(axis=1) & lams].itertuples()
    assert (hit.value, hit.decimals) == (pytest.approx(value, rel=1e-12), decimals)


def test_sizes_are_those_of_the_catalogue(table, catalogue):
    of = {name: set(part.n_rows) for name, part in table.groupby("dataset")}
    # Of LastFM the paper has another version.
    assert of.pop("lastfm") == {5678}
    assert of == {name: {catalogue.datasets[name].rows} for name in of}
    assert (table.groupby("dataset").n_groups.nunique() == 1).all()


def test_values_are_in_the_range_of_their_metric(table):
    known = table.dropna(subset=["value"])
    shares = ("balance", "fairness_ratio", "delta", "awd", "accuracy")
    assert known.loc[known["metric"].isin(shares), "value"].between(0, 1).all()
    assert (known["value"] >= 0).all()
