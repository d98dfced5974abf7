import os
import subprocess
import sys

import numba
import pytest

from fairclust.kernels import Announcer


@pytest.mark.parametrize(
    "module, watched, lines",
    [("fairclust.kernels.tiles", True, 1), ("fairclust.kernels.tiles", False, 0), ("umap.layouts", True, 0)],
)
def test_compilation_is_announced_only_to_a_waiting_user(monkeypatch, capsys, module, watched, lines):
    for name in ("ipykernel", "fairclust.cli.progress"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    if watched:
        monkeypatch.setitem(sys.modules, "ipykernel", sys)
    # Without the listener of the package, which would print as well.
    monkeypatch.setitem(numba.core.event._registered, "numba:compile", [Announcer()])
    for _ in range(2):

        def twice(x):
            return 2 * x

        twice.__module__ = module
        assert numba.njit(twice)(2) == 4
    assert capsys.readouterr().err.count("compiling once, about") == lines


FITS = """
import hashlib
import numpy as np
from fairclust import FairMixture, PriceFairKMeans, VariationalFairKMeans
rng = np.random.default_rng(0)
X = rng.normal(size=(600, 3)) + 3 * rng.integers(2, size=(600, 1))
g = rng.integers(3, size=600)
paper = VariationalFairKMeans(3, lam=500.0, match_reference=True, random_state=0).fit(X, sensitive_features=g)
newton = VariationalFairKMeans(3, lam=500.0, random_state=0).fit(X, sensitive_features=g)
prices = PriceFairKMeans(3, random_state=0).fit(X, sensitive_features=g)
mixture = FairMixture(3, lam=5.0, random_state=0).fit(X, sensitive_features=g)
steps = [step for model in (paper, newton, prices, mixture) for step in model.history_]
numbers = [[v for name, v in step.items() if name != "seconds"] for step in steps] + mixture.means_.tolist()
print(hashlib.sha256(repr(numbers).encode()).hexdigest())
"""


@pytest.mark.slow
def test_kernels_that_were_just_compiled_compute_the_same_digits_as_kernels_from_the_cache(tmp_path):
    # Compilers may reorder the sums of these kernels. Numba runs a kernel that another one calls from a separate
    # object while it compiles, and from the caller's object later, unless it is inlined.
    run = [sys.executable, "-c", FITS]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    compiled, cached = (
        subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert compiled == cached


KERNEL = """
import numpy as np
import fairclust.kernels.fairlets
kernel = fairclust.kernels.fairlets.heavy_points
kernel(np.array([3]), np.array([2]), 1, 1)
print(sum(kernel.stats.cache_hits.values()))
"""


def test_each_type_of_processor_has_its_own_compiled_code(tmp_path):
    def hits(**processor):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), **processor}
        return int(subprocess.check_output([sys.executable, "-c", KERNEL], env=environment, text=True))

    old = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert [hits(**old), hits(), hits(**old), hits()] == [0, 0, 1, 1]


def test_processes_that_save_at_the_same_time_never_get_the_code_of_each_other(tmp_path):
    from numba.core.caching import IndexDataCacheFile

    files = {of: IndexDataCacheFile(str(tmp_path), "kernel", "stamp") for of in ("float32", "float64")}
    for of, file in files.items():
        file._load_index = dict  # as if both had read the index before one of them wrote it
        file.save(of, f"code for {of}")
    again = IndexDataCacheFile(str(tmp_path), "kernel", "stamp")
    assert [again.load(of) for of in files] == [None, "code for float64"]
    again.save("float32", "code for float32")
    assert [again.load(of) for of in files] == ["code for float32", "code for float64"]
