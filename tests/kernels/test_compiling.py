import os
import subprocess
import sys
import time
from pathlib import Path
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
    assert capsys.readouterr().err.count("compiling for this machine") == lines


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
    assert "compiling for this machine" in capsys.readouterr().err


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
print(sum(kernel.stats.cache_hits.values()), kernel.stats.cache_path)
"""


def test_each_type_of_processor_has_its_own_folder_of_compiled_code(tmp_path):
    def run(**processor):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), **processor}
        command = [sys.executable, "-c", KERNEL]
        hits, folder = subprocess.check_output(command, env=environment, text=True).split()
        return int(hits), Path(folder)

    old = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    seen = [run(**old), run(), run(**old), run()]
    assert [hits for hits, _ in seen] == [0, 0, 1, 1]
    first, second = seen[0][1], seen[1][1]
    assert seen[2:] == [(1, first), (1, second)]
    assert first.name.startswith("generic-") and first.name != second.name
    assert first.parent == second.parent
    for folder in (first, second):
        assert sorted(path.suffix for path in folder.iterdir()) == [".nbc", ".nbi"]


def test_code_is_compiled_beside_the_sources_and_other_packages_are_left_alone(tmp_path, monkeypatch):
    from numba.core import caching, config

    def folder_of(module):
        source = tmp_path / "module.py"
        source.write_text("def function(): pass")
        names = {"__name__": module}
        exec(compile(source.read_text(), source, "exec"), names)
        return Path(caching.CompileResultCacheImpl(names["function"]).locator.get_cache_path())

    monkeypatch.setattr(config, "CACHE_DIR", "")
    assert folder_of("umap.layouts") == tmp_path / "__pycache__"
    assert folder_of("fairclust.kernels.some") == tmp_path / "__pycache__" / compiling._processor()
