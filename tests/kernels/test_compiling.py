import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from fairclust.kernels import compiling


def event_of(module):
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__module__=module))})


@pytest.mark.parametrize(
    "module, seconds, watched, lines",
    [
        ("fairclust.kernels.tiles", 0.3, True, 1),
        ("fairclust.kernels.tiles", 0.0, True, 0),
        ("fairclust.kernels.tiles", 0.3, False, 0),
        ("umap.layouts", 0.3, True, 0),
        # Functions that each compile fast are announced once their times add up to the limit.
        ("fairclust.kernels.tiles", 0.08, True, 1),
    ],
)
def test_compilation_is_announced_only_to_a_waiting_user(
    monkeypatch, capsys, module, seconds, watched, lines
):
    monkeypatch.setattr(compiling, "_PATIENCE", 0.2)
    monkeypatch.setattr(compiling, "_watched", lambda: watched)
    announcer = compiling.Announcer()
    for _ in range(4):
        announcer.on_start(event_of(module))
        time.sleep(seconds)
        announcer.on_end(event_of(module))
    assert capsys.readouterr().err.count("compiling once, about") == lines


def test_numba_reports_what_it_compiles(monkeypatch, capsys):
    import numba

    monkeypatch.setattr(compiling, "_PATIENCE", 0.0)
    monkeypatch.setattr(compiling, "_watched", lambda: True)

    def twice(x):
        return 2 * x

    twice.__module__ = "fairclust.kernels.tiles"
    announcer = compiling.Announcer()
    numba.core.event.register("numba:compile", announcer)
    try:
        assert numba.njit(twice)(2) == 4
    finally:
        numba.core.event.unregister("numba:compile", announcer)
    assert "compiling once, about" in capsys.readouterr().err


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
import fairclust.kernels.capture
kernel = fairclust.kernels.capture._take_out
kernel(0, np.zeros(1, bool), np.ones((1, 1), bool), np.ones(1, int))
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
