"""The transcribed tables: complete, well formed, and right where cells were typed a second time."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from fairclust import reported
from fairclust.reported import COLUMNS, KEY, PAPERS, load_reported

# Counted in the papers: lines of the table x methods x numbers per method.
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
    ("bfkm", "III"): 10 * 7 * 2,
    ("bfkm", "IV"): 10 * 7 * 2,
    ("sfairsc", "text"): 2 + 2,
}

# (paper, table, dataset, method, lam, metric): value, decimals
SPOT: list[tuple[str, str, str, str, float | None, str, float, int]] = [
    ("vfc", "2", "adult", "vfc_kmedians", 9000, "kmedians_cost", 18467.75, 2),
    ("vfc", "2", "synthetic", "vfc_kmedians", 10, "kmedians_cost", 292.4, 1),
    ("vfc", "2", "census_ii", "backurs", None, "fairness_error", 0.41, 2),
    ("vfc", "2", "synthetic_unequal", "backurs", None, "balance", 0.21, 2),
    ("vfc", "3", "bank_3", "vfc_kmeans", 6000, "sse", 9392.20, 2),
    ("vfc", "3", "bank_3", "bera", None, "balance", 0.16, 2),
    ("vfc", "3", "adult", "vfc_kmeans", 9000, "fairness_error", 0.018, 3),
    ("vfc", "3", "census_ii", "vfc_kmeans", 500000, "sse", 1018996.53, 2),
    ("vfc", "4", "census_ii", "vfc_ncut", 100, "balance", 0.43, 2),
    ("vfc", "4", "adult", "fair_sc", None, "ncut", 0.47, 2),
    ("vfc", "4", "synthetic", "vfc_ncut", 10, "fairness_error", 0.0, 1),
    ("fmc", "1", "census_ii", "backurs", None, "seconds_std", 535.1, 1),
    ("fmc", "1", "census_ii", "fmc_minibatch", None, "seconds", 253.0, 1),
    ("fmc", "2", "census_ii", "fmc_subsample_1pct", None, "sse", 11.167e5, -2),
    ("fmc", "2", "census_ii", "fmc_subsample_10pct", None, "relative_seconds", 0.772, 3),
    ("fmc", "3", "adult", "kmeans", None, "sse", 9509, 0),
    ("fmc", "3", "bank_2", "fca", None, "sse", 10853, 0),
    ("fmc", "3", "bank_2", "fmc_em", None, "balance", 0.629, 3),
    ("fmc", "4", "census_ii_std", "fmc_subsample_5pct", None, "sse", 3.096e7, -4),
    ("fmc", "4", "census_ii_std", "fmc_minibatch", None, "relative_seconds", 1.0, 3),
    ("fmc", "5", "adult_cat", "fmc_em", None, "nll", 11.600, 3),
    ("fmc", "5", "credit_2_cat", "mm_gd", None, "delta", 0.030, 3),
    ("fmc", "5", "bank_2_cat", "fmc_gd", None, "balance", 0.631, 3),
    ("fmc", "6", "credit_3_cat", "fmc_em", None, "delta", 0.006, 3),
    ("fmc", "6", "bank_3_cat", "mm_em", None, "nll", 9.717, 3),
    ("fmc", "7", "credit_3", "fmc_em", 10, "sse", 23067, 0),
    ("fmc", "7", "bank_3", "fmc_em", 4, "sse", 19059, 0),
    ("fmc", "7", "credit_3", "vfc_kmeans", None, "balance", 0.294, 3),
    ("fmc", "8", "adult_mixed_k2", "fmc_em_mixed", 10, "accuracy", 0.706, 3),
    ("fmc", "8", "adult_k2", "fmc_em", 1, "delta", 0.071, 3),
    ("fmc", "8", "adult_k2", "backurs", None, "balance", 0.490, 3),
    ("bfkm", "III", "elliptical", "bfkm", None, "awd", 0.0472, 4),
    ("bfkm", "III", "2d4c_no4", "vfc_kmeans", None, "fairness_ratio", 0.3045, 4),
    ("bfkm", "III", "bfkm_creditcard", "kmeans", None, "fairness_ratio", 0.7390, 4),
    ("bfkm", "III", "2d4c_no1", "fscun", None, "awd", 0.0012, 4),
    ("bfkm", "III", "bfkm_diabetic", "fscun", None, "fairness_ratio", 0.0, 4),
    ("bfkm", "IV", "bfkm_bank", "kmeans", None, "sse", 1231.34, 2),
    ("bfkm", "IV", "2d4c_no0", "fscun", None, "sse", 1528.3, 1),
    ("bfkm", "IV", "bfkm_creditcard", "fscun", None, "sse", 18420, 0),
    ("bfkm", "IV", "bfkm_census1990", "fac", None, "dunn_index", 0.0859, 4),
    ("bfkm", "IV", "ds577", "frkm", None, "sse", 518.1536, 4),
    ("sfairsc", "text", "lastfm", "data", None, "n_nodes", 5678, 0),
]

# dataset: rows, groups, clusters
SIZES = {
    "synthetic": (400, 2, 2),
    "synthetic_unequal": (400, 2, 2),
    "adult": (32561, 2, 10),
    "bank_3": (41108, 3, 10),
    "bank_2": (41108, 2, 10),
    "credit_3": (30000, 3, 10),
    "adult_cat": (32561, 2, 10),
    "bank_2_cat": (41108, 2, 10),
    "bank_3_cat": (41108, 3, 10),
    "credit_2_cat": (30000, 2, 10),
    "credit_3_cat": (30000, 3, 10),
    "adult_mixed_k2": (32561, 2, 2),
    "adult_k2": (32561, 2, 2),
    "census_ii_std": (2458285, 2, 10),
    "elliptical": (500, 2, 2),
    "ds577": (577, 3, 3),
    "2d4c_no0": (1572, 4, 4),
    "2d4c_no1": (1623, 4, 4),
    "2d4c_no4": (863, 4, 4),
    "bfkm_adult": (32561, 2, 10),
    "bfkm_bank": (4000, 3, 6),
    "bfkm_census1990": (3000, 2, 5),
    "bfkm_creditcard": (30000, 2, 10),
    "bfkm_diabetic": (10000, 2, 10),
}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return load_reported()


def test_every_table_has_all_its_cells(table):
    assert table.groupby(["paper", "table"]).size().to_dict() == ROWS
    assert len(table) == sum(ROWS.values()) == 552


def test_columns_and_types(table):
    assert tuple(table.columns) == COLUMNS
    for name in ("lam", "value"):
        assert table[name].dtype == np.float64
    for name in ("n_rows", "n_groups", "n_clusters", "decimals"):
        assert table[name].dtype == "Int64"
    for name in ("paper", "table", "dataset", "method", "metric", "note"):
        assert table[name].dtype == "string" and table[name].notna().all()


def test_one_paper_is_its_part_of_all(table):
    for paper in PAPERS:
        part = table[table["paper"] == paper].reset_index(drop=True)
        pd.testing.assert_frame_equal(load_reported(paper), part)
    with pytest.raises(KeyError, match="known papers"):
        load_reported("nobody")


def test_cells_are_named_once(table):
    assert not table.duplicated(list(KEY)).any()
    # Cells that differ in lambda alone are FMC's two settings, and nothing else.
    same = table[table.duplicated([name for name in KEY if name != "lam"], keep=False)]
    assert set(zip(same["paper"], same["table"], same["method"], strict=True)) == {
        ("fmc", "7", "fmc_em"),
        ("fmc", "8", "fmc_em"),
        ("fmc", "8", "fmc_em_mixed"),
    }


def test_each_table_is_a_full_grid(table):
    # Within a table every method has every metric on every dataset.
    for (paper, name), part in table[table["paper"] != "sfairsc"].groupby(["paper", "table"]):
        settings = part[["method", "dataset", "lam"]].drop_duplicates()
        assert len(part) == len(settings) * part["metric"].nunique(), (paper, name)


def test_values_are_finite_or_explained(table):
    empty = table[table["value"].isna()]
    assert (empty["note"] != "").all()
    assert np.isfinite(table["value"].dropna()).all()
    tables = empty.groupby(["paper", "table", "dataset", "method"]).size().to_dict()
    assert tables == {
        ("vfc", "2", "bank_3", "backurs"): 3,
        ("vfc", "4", "bank_3", "fair_sc"): 3,
        ("vfc", "4", "census_ii", "fair_sc"): 3,
        ("sfairsc", "text", "lastfm", "sfairsc"): 2,
    }
    vfc = empty[empty["paper"] == "vfc"]
    assert (vfc["note"] == "not available in the paper").all()


@pytest.mark.parametrize("cell", SPOT, ids=lambda cell: "-".join(map(str, cell[:6])))
def test_spot_checks(table, cell):
    paper, name, dataset, method, lam, metric, value, decimals = cell
    hit = table[
        (table["paper"] == paper)
        & (table["table"] == name)
        & (table["dataset"] == dataset)
        & (table["method"] == method)
        & (table["metric"] == metric)
        & (table["lam"].isna() if lam is None else table["lam"] == lam)
    ]
    assert len(hit) == 1
    assert hit["value"].item() == pytest.approx(value, rel=1e-12)
    assert hit["decimals"].item() == decimals


def test_decimals_say_how_far_a_value_was_printed(table):
    known = table.dropna(subset=["value"])
    for value, decimals in zip(known["value"], known["decimals"], strict=True):
        assert round(value, int(decimals)) == pytest.approx(value, rel=1e-12, abs=0)


def test_sizes(table):
    found = {
        str(dataset): set(part[["n_rows", "n_groups", "n_clusters"]].itertuples(index=False, name=None))
        for dataset, part in table.groupby("dataset")
    }
    # Census II is clustered with K = 20 by VFC, and with FMC's own K by FMC.
    assert found.pop("census_ii") == {(2458285, 2, 20), (2458285, 2, 10)}
    assert found.pop("lastfm") == {(5678, 6, pd.NA)}
    assert found == {dataset: {size} for dataset, size in SIZES.items()}


def test_values_lie_where_their_metric_can(table):
    known = table.dropna(subset=["value"])
    shares = ("balance", "fairness_ratio", "delta", "awd", "accuracy")
    assert known.loc[known["metric"].isin(shares), "value"].between(0, 1).all()
    assert (known["value"] >= 0).all()
    # No clustering is fairer than the data: the smallest group over the largest, one printed unit spared.
    most = {
        "synthetic_unequal": 0.3333,
        "adult": 0.4943,
        "adult_cat": 0.4943,
        "adult_mixed_k2": 0.4943,
        "bank_2": 0.6491,
        "bank_2_cat": 0.6491,
        "bank_3": 0.1850,
        "bank_3_cat": 0.1850,
        "credit_2_cat": 0.8785,
        "credit_3": 0.3838,
        "credit_3_cat": 0.3838,
        "census_ii": 0.9412,
    }
    for row in known[(known["metric"] == "balance") & known["dataset"].isin(list(most))].itertuples():
        assert row.value <= most[row.dataset] + 10.0**-row.decimals, row


def test_lambda_stands_with_the_methods_that_have_one(table):
    plain = table["method"].isin(["kmeans", "mm_em", "mm_gd", "backurs", "bera", "fair_sc", "fca"])
    assert table.loc[plain, "lam"].isna().all()
    vfc = (table["paper"] == "vfc") & table["method"].str.startswith("vfc_")
    assert vfc.sum() == 45 and table.loc[vfc, "lam"].notna().all()


def test_tables_that_repeat_a_number_agree(table):
    fmc = table[(table["paper"] == "fmc") & (table["method"] == "kmeans") & (table["metric"] == "sse")]
    bank = fmc[fmc["dataset"].isin(["bank_2", "bank_3"])]
    assert bank["value"].tolist() == [8513, 8513]
    lloyd = table[
        (table["dataset"] == "bfkm_adult") & (table["method"] == "kmeans") & (table["metric"] == "sse")
    ]
    assert lloyd["value"].item() == pytest.approx(9509, rel=1e-3)


def test_papers_are_described():
    for (a, one), (b, other) in combinations(PAPERS.items(), 2):
        assert a != b and one.short_name != other.short_name
    for short_name, citation, year in PAPERS.values():
        assert short_name and str(year) in citation


GOOD = {
    "paper": "vfc",
    "table": "2",
    "dataset": "adult",
    "n_rows": "32561",
    "n_groups": "2",
    "n_clusters": "10",
    "lam": "",
    "method": "backurs",
    "metric": "balance",
    "value": "0.31",
    "decimals": "2",
    "note": "",
}


def _frame(**change: str) -> pd.DataFrame:
    return pd.DataFrame([GOOD | change], columns=list(COLUMNS), dtype=str)


def test_a_good_row_passes():
    assert reported._checked(_frame(), "vfc")["value"].tolist() == [0.31]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"paper": "fmc"}, "another paper"),
        ({"dataset": ""}, "empty name"),
        ({"metric": "beauty"}, "unknown metric"),
        ({"value": "inf"}, "infinite"),
        ({"value": "", "decimals": ""}, "no note"),
        ({"decimals": ""}, "without decimals"),
        ({"value": "", "note": "not printed"}, "decimals without"),
        ({"value": "0,31"}, "'value'"),
        ({"n_rows": "3.5"}, "'n_rows'"),
    ],
)
def test_a_broken_row_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        reported._checked(_frame(**change), "vfc")


def test_a_repeated_cell_or_a_wrong_column_is_refused():
    with pytest.raises(ValueError, match=r"already given in line\(s\) \[3\]"):
        reported._checked(pd.concat([_frame(), _frame(value="0.32")], ignore_index=True), "vfc")
    with pytest.raises(ValueError, match="columns are"):
        reported._checked(_frame().rename(columns={"lam": "lambda"}), "vfc")
