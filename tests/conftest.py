import os
import sys
from pathlib import Path

# ruff: noqa: E402
from fairclust.pipeline.script import use_baseline

# This must be set before NumPy is imported. Tests run in parallel anyway, and fits are forked only without threads.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
# The kernels of jobs, so that tests and runs of the workflow share what is compiled.
use_baseline()

import pytest
from hypothesis import settings

from fairclust.datasets.download import fetch_source
from fairclust.datasets.prepare import prepare_dataset
from fairclust.pipeline.config import load_config
from fairclust.pipeline.plan import Plan

ROOT = Path(__file__).parents[1]
# `python -m pytest` lets Python search the checkout, where a user's classes would hide those of the tests.
sys.path[:] = [
    str(ROOT / "tests"),
    str(ROOT / "tools"),
    *(path for path in sys.path if Path(path).resolve() != ROOT),
]

from browser import CHROMIUM, Page
from small import shipped_in
from toys import make_grouped_blobs

# Hypothesis draws the same examples in every run. There is no time limit, because the machine may be shared. Run
# `pytest --hypothesis-profile=default` for other examples.
settings.register_profile("default", deadline=None)
settings.register_profile("same", derandomize=True)
settings.load_profile("same")


def pytest_configure(config):
    # Many fits of tests are short, so they stop before they have converged.
    config.addinivalue_line("filterwarnings", "ignore::sklearn.exceptions.ConvergenceWarning")
    # The command shows warnings as notes, and nobody can act on these.
    config.addinivalue_line("filterwarnings", "error::numba.core.errors.NumbaWarning")


def pytest_collection_modifyitems(items):
    """Start the files that run Snakemake first. They take minutes, and if they came last, other cores would be idle."""
    long = ("tests/workflow/", "tests/test_docs_commands.py", "tests/pipeline/test_fits.py")
    items.sort(key=lambda item: not item.nodeid.startswith(long))


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def mirror():
    """Return the folder with the real data. Tests that need it are skipped without it."""
    folder = Path(os.environ.get("FAIRCLUST_MIRROR", ROOT.parent / "shared" / "data"))
    if not (folder / "SHA256SUMS").is_file():
        pytest.skip(f"no data mirror at {folder} (set FAIRCLUST_MIRROR)")
    return folder


@pytest.fixture(scope="session")
def shipped():
    """Return the shipped configuration before its catalogues are read."""
    return shipped_in(ROOT)


@pytest.fixture(scope="session")
def catalogue(shipped):
    """Return the configuration that ships with the project."""
    return load_config(shipped)


@pytest.fixture(scope="session")
def plan(catalogue):
    """Return the plan of this configuration."""
    return Plan(catalogue)


@pytest.fixture(scope="session")
def real(mirror, catalogue, tmp_path_factory):
    """Return a function that prepares a data set of the catalogue from the real data."""
    raw = tmp_path_factory.mktemp("raw")

    def prepare(name):
        sources = catalogue.sources_of(name)
        paths = {source: fetch_source(source, spec, raw, [mirror]) for source, spec in sources.items()}
        return prepare_dataset(name, catalogue.datasets[name], paths, sources)

    return prepare


@pytest.fixture
def grouped_blobs():
    return make_grouped_blobs


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("there is no Chromium")
    page = Page(tmp_path_factory.mktemp("profile"))
    yield page
    page.close()
