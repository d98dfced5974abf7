from pathlib import Path

import numpy as np
import pytest

# The processes of fits are forked from this one, so they need not import these modules again.
import fairclust.base
import fairclust.metrics.quality
import fairclust.metrics.table  # noqa: F401
from fairclust.datasets.store import PreparedDataset, data_hash, save_prepared

HERE = str(Path(__file__).parent)


@pytest.fixture(autouse=True)
def _methods_beside_the_tests(monkeypatch):
    monkeypatch.syspath_prepend(HERE)


@pytest.fixture
def data(tmp_path):
    """The folder of a prepared data set of 2,000 rows."""
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(2000, 2)), np.tile(np.array([0, 1], np.int32), 1000)
    names = ("a", "b"), ("f", "m")
    card = {
        "status": "ok",
        "name": "toy",
        "rows": 2000,
        "columns": ["a", "b"],
        "groups": [{"name": "f", "size": 1000}, {"name": "m", "size": 1000}],
        "data_hash": data_hash(X, groups, *names),
    }
    save_prepared(PreparedDataset(X, groups, *names, card), tmp_path / "data")
    return tmp_path / "data"
