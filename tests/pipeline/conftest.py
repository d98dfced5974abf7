from pathlib import Path

import pytest

# The processes of fits are forked from this one, so they need not import these modules again.
import fairclust.base
import fairclust.metrics.quality
import fairclust.metrics.table  # noqa: F401
from toys import save_points


@pytest.fixture(autouse=True)
def _methods_beside_the_tests(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.fixture
def data(tmp_path):
    """The folder of a prepared data set of 2,000 rows."""
    save_points(tmp_path / "data")
    return tmp_path / "data"
