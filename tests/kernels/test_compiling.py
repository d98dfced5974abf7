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
