import tempfile
from pathlib import Path

import pytest
from slurm import Cluster, missing


@pytest.fixture(scope="session")
def cluster():
    reason = missing()
    if reason:
        pytest.fail(f"no SLURM can be started here: {reason}", pytrace=False)
    # A short path: the name of munge's socket may have 107 characters.
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder, Cluster(Path(folder)) as cluster:
        yield cluster
