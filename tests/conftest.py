import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from toys import make_grouped_blobs  # noqa: E402


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def mirror():
    """The folder with the real data; tests that need it are skipped without it."""
    folder = Path(os.environ.get("FAIRCLUST_MIRROR", ROOT.parent / "shared" / "data"))
    if not (folder / "SHA256SUMS").is_file():
        pytest.skip(f"no data mirror at {folder} (set FAIRCLUST_MIRROR)")
    return folder


@pytest.fixture
def grouped_blobs():
    return make_grouped_blobs
