"""The shipped catalogue against the real files of a mirror: sizes and costs that the papers report."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from fairclust.datasets import Catalogue, PreparedDataset, fetch_source, prepare_dataset

MIRROR = Path(os.environ.get("FAIRCLUST_MIRROR") or Path(__file__).parents[3] / "shared" / "data")

pytestmark = [
    pytest.mark.mirror,
    pytest.mark.skipif(not MIRROR.is_dir(), reason="no data mirror: set FAIRCLUST_MIRROR"),
]

# Sizes of the groups in the order of their codes, and the cost of plain k-means where one was reported.
EXPECTED: dict[str, tuple[int, list[int], float | None]] = {
    "adult": (5, [21790, 10771], 9507.4),
    "bank_3": (6, [24928, 11568, 4612], 8512.8),
    "bank_2": (6, [24928, 16180], None),
    "credit_2": (4, [14030, 15970], None),
    "credit_3": (4, [14030, 10585, 5385], None),
    "adult_cat": (8, [21790, 10771], None),
    "adult_mixed": (12, [21790, 10771], None),
    "adult_std": (5, [21790, 10771], None),
    "bank_2_std": (6, [24928, 16180], None),
    "credit_2_std": (4, [14030, 15970], None),
    "bank_2_cat": (10, [24928, 16180], None),
    "bank_3_cat": (10, [24928, 11568, 4612], None),
    "credit_2_cat": (8, [14030, 15970], None),
    "credit_3_cat": (8, [14030, 10585, 5385], None),
    "creditcard_sex": (14, [11888, 18112], 8183.0),
    "bfkm_adult": (5, [21790, 10771], 9507.4),
    "bfkm_bank": (6, [449, 1125, 2426], 1193.0),
    "bfkm_census1990": (25, [1454, 1546], 1758.0),
    "bfkm_creditcard": (14, [11888, 18112], 8183.0),
    "bfkm_diabetic": (2, [4624, 5376], 230.0),
    "elliptical": (2, [250, 250], 206.298),
    "ds577": (2, [196, 201, 180], 70.99),
    "2d4c_no0": (2, [528, 348, 272, 424], 114.483),
    "2d4c_no1": (2, [538, 192, 539, 354], 74.5),
    "2d4c_no4": (2, [421, 86, 294, 62], 104.0),
    "lastfm": (0, [1073, 505, 645, 1266, 558, 1529], None),
    "facebook": (0, [70, 85], None),
}


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("raw")


def prepared(catalogue: Catalogue, name: str, raw: Path) -> PreparedDataset:
    sources = catalogue.sources_of(name)
    paths = {
        source: fetch_source(source, spec, raw, [MIRROR], retries=0, progress=False)
        for source, spec in sources.items()
    }
    return prepare_dataset(name, catalogue.datasets[name], paths, sources)


def test_every_file_data_set_is_checked(catalogue: Catalogue) -> None:
    from_files = {name for name, spec in catalogue.datasets.items() if spec.generator is None}
    assert from_files == set(EXPECTED) | {"census_ii", "census_ii_std"}


@pytest.mark.parametrize("name", EXPECTED)
def test_shape_and_sizes(catalogue: Catalogue, name: str, raw: Path) -> None:
    width, sizes, _ = EXPECTED[name]
    ds = prepared(catalogue, name, raw)
    assert ds.X.shape == (sum(sizes), width)
    assert [group["size"] for group in ds.card["groups"]] == sizes
    assert {source["check"] for source in ds.card["sources"]} == {"verified"}
    if name.startswith("bank"):
        assert ds.card["dropped"] == [{"column": "marital", "value": "unknown", "rows": 80}]


@pytest.mark.parametrize("name", [name for name, (*_, cost) in EXPECTED.items() if cost is not None])
def test_plain_kmeans_cost(catalogue: Catalogue, name: str, raw: Path) -> None:
    ds = prepared(catalogue, name, raw)
    # One thread: on a busy machine several of them wait for each other, and take five times as long.
    with threadpool_limits(1):
        model = KMeans(ds.card["n_clusters"], n_init=20, random_state=0).fit(ds.X)
    assert model.inertia_ == pytest.approx(EXPECTED[name][2], rel=0.01)


@pytest.mark.parametrize(("name", "n_edges"), [("lastfm", 19_587), ("facebook", 1_412)])
def test_graphs(catalogue: Catalogue, name: str, n_edges: int, raw: Path) -> None:
    ds = prepared(catalogue, name, raw)
    assert ds.W is not None and ds.W.nnz == 2 * n_edges
    assert ds.card["graph"]["n_edges"] == n_edges
