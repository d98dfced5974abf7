import os
import sys
from pathlib import Path

# ruff: noqa: E402
# Before NumPy comes: the tests fill the cores as they are, and fits are forked only beside no threads.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import pytest
from hypothesis import settings

from fairclust.datasets import prepare_dataset
from fairclust.pipeline.config import shipped_config

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from toys import make_grouped_blobs

# Hypothesis draws the same examples in every run, without a time limit, because the machine may be shared. Run
# `pytest --hypothesis-profile=default` for other examples.
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")


def pytest_collection_modifyitems(items):
    """Start the files that run Snakemake first: they take minutes, and at the end the other cores would wait."""
    long = ("tests/workflow/", "tests/test_docs_commands.py", "tests/pipeline/test_fit_block.py")
    items.sort(key=lambda item: not item.nodeid.startswith(long))


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


@pytest.fixture(scope="session")
def adult(mirror):
    """Features and groups of Adult, prepared as the papers do."""
    catalogue = shipped_config(ROOT)
    sources = catalogue.sources_of("adult")
    paths = {name: mirror / str(source.file) for name, source in sources.items()}
    data = prepare_dataset("adult", catalogue.datasets["adult"], paths, sources)
    return data.X, data.groups


@pytest.fixture
def grouped_blobs():
    return make_grouped_blobs
