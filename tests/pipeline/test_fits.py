"""A fit job in this process: every fit becomes a row, and the cache has what is finished."""

import json
import os
import re
import shutil
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace

import psutil
import pytest

from fairclust.datasets.errors import DatasetError
from fairclust.datasets.store import load_prepared, read_card
from fairclust.metrics import sse
from fairclust.pipeline.data import build_graph
from fairclust.pipeline.fit_process import fit_process
from fairclust.pipeline.fits import Request, fit_grids, input_hash
from fairclust.pipeline.scores import labels_of, read_fits
from working_folder import wait_for_end, wait_until

ODD = Request(
    **{"dataset": "toy", "method": "odd", "class_path": "odd_methods.Odd", "code": "c1", "grids": []},
    metrics={2: ["sse"], 3: ["balance", "sse"]},
    **{"scorer": "s1", "cell_seconds": 30.0, "cell_memory_mb": 4000.0},
)


def grid(*hows, k=3, seeds=(0,)):
    return {"n_clusters": k, "params": {}, "axes": {"how": list(hows)}, "seeds": list(seeds)}


@pytest.fixture
def notes(tmp_path, monkeypatch):
    """Return a function that counts the fits since its last call, by what they do."""
    path = tmp_path / "notes"
    monkeypatch.setenv("ODD_NOTES", str(path))

    def since():
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return Counter(line.partition(" ")[0] for line in lines)

    return since


@pytest.fixture
def run(tmp_path, data):
    """Return a function that runs a job, and returns the rows of its file."""

    def run(*grids, place="results", given_up="", **changes):
        output, cache = tmp_path / place / "fits/toy/odd.parquet", tmp_path / place / "cache"
        fit_grids(replace(ODD, grids=grids, **changes), output, data=data, cache=cache, given_up=given_up)
        return read_fits(output, "history", "labels")

    return run


ENDS = {
    "ok": ("ok", ""),
    "global": ("ok", ""),
    "sleep": ("timeout", r"over the limit of 2 s \(limits.cell_seconds\)"),
    "skip": ("skipped", "two groups only"),
    "diverge": ("diverged", "not finite at step 3"),
    "raise": ("error", r"RuntimeError: no idea of \?"),
    "panic": ("error", "BaseException: panicked"),
    "die": ("error", r"the fitting process died \(exit code 3\)"),
    "kill": ("error", "the fitting process died .*-9; perhaps out of memory"),
    "memory": ("error", r"over the limit of 4000 MB \(what its job asked for"),
    "labels": ("error", "labels_ runs from 7 to 9, expected 0 to 2"),
    "history": ("error", "history_ must be a list of dicts"),
    "shape": ("error", r"labels_ has shape \(1999,\)"),
}
KEPT = {"ok", "global", "skip", "diverge"}


def test_every_end_of_a_fit_is_a_row_the_others_go_on_and_what_is_finished_is_kept(run, notes, tmp_path):
    rows = run(grid(*ENDS), cell_seconds=2.0)
    assert [json.loads(params)["how"] for params in rows.params] == list(ENDS)
    for how, status, reason in zip(ENDS, rows.status, rows.reason, strict=True):
        assert status == ENDS[how][0], (how, reason)
        assert re.search(ENDS[how][1], reason), (how, reason)
    assert notes() == dict.fromkeys(ENDS, 1)
    assert rows.wall_seconds.between(0, 30).all() and not rows.lost.any()
    ok = rows.iloc[0]
    assert json.loads(ok.counts).keys() == {"f", "m"} and ok.n_iter == 1 and ok.objective == 2.5
    assert "numpy" in ok.versions and json.loads(ok.history)[0]["step"] == 1
    data = load_prepared(tmp_path / "data")
    found = labels_of(tmp_path / "results/fits/toy/odd.parquet", ok.key)
    assert ok.sse == pytest.approx(sse(data.X, found))
    # The same job again tries those again that have no result of their own.
    again = run(grid(*ENDS), cell_seconds=2.0)
    assert set(notes()) == set(ENDS) - KEPT
    same = rows.status.isin(["ok", "skipped", "diverged"])
    assert rows[same].equals(again[same])


def test_few_rows_that_take_long_to_fit_are_given_up_and_the_fit_goes_on(run, notes, monkeypatch):
    monkeypatch.setattr("fairclust.pipeline.fits._WARM_UP_SECONDS", 1)
    assert run(grid("long", "ok")).status.tolist() == ["ok", "ok"]
    assert notes() == {"long": 1, "ok": 1}


def test_narrower_and_wider_grids_and_other_names_fit_only_what_no_cache_has(run, notes):
    first = run(grid("ok", "global", seeds=[0, 1]))
    assert notes() == {"ok": 2, "global": 2}
    assert run(grid("global")).key.tolist() == [first.key[2]]
    run(grid("ok", "global", "skip", seeds=[0, 1, 2]), grid("ok", k=2))
    assert notes() == {"ok": 2, "global": 1, "skip": 3}
    again = run(grid("ok", "global", seeds=[0, 1]), method="renamed")
    assert again.drop(columns="method").equals(first.drop(columns="method"))
    assert not notes()


def test_another_random_state_is_another_fit(run, notes):
    first, other = run(grid("ok")), run(grid("ok"), dataset="other")
    assert notes() == {"ok": 2} and first.key[0] != other.key[0]


def test_another_graph_is_another_fit(data, tmp_path):
    card, graph = read_card(data), tmp_path / "graph"
    hashes = [card["data_hash"]]
    for n_neighbors in (5, 6):
        build_graph(data, graph, n_neighbors=n_neighbors)
        hashes.append(input_hash(card, graph))
    assert len({*hashes}) == 3 and all(found.startswith(hashes[0]) for found in hashes)


def test_a_new_or_edited_metric_scores_again_without_fitting(run, notes, monkeypatch):
    first = run(grid("ok", k=3))
    more = run(grid("ok", k=3), metrics={3: ["balance", "sse", "delta"]})
    assert more.finished.equals(first.finished) and more.sse.equals(first.sse)
    assert first.delta.isna().all() and more.delta[0] >= 0
    monkeypatch.setattr("fairclust.pipeline.columns.score_labels", lambda *a, **k: {"sse": 1.0})
    assert run(grid("ok", k=3)).sse.equals(first.sse)
    again = run(grid("ok", k=3), scorer="s2")
    assert again.sse.tolist() == [1.0] and again.labels.equals(first.labels)
    assert notes() == {"ok": 1}


def _no_scores(*_):
    os._exit(9)


def test_labels_that_cannot_be_scored_are_a_row_and_the_job_goes_on(run, monkeypatch):
    monkeypatch.setattr("fairclust.pipeline.fits._score", _no_scores)
    rows = run(grid("ok", "skip"))
    assert rows.status.tolist() == ["error", "skipped"]
    assert "while it was scored: the fitting process died" in rows.reason[0]
    monkeypatch.undo()
    assert run(grid("ok")).status.tolist() == ["ok"]


def test_results_do_not_depend_on_the_order_of_fits_and_a_copied_cache_is_used(run, notes, tmp_path):
    """Some methods draw from NumPy's global generator in spite of their random_state."""
    forward = run(grid("global", seeds=[0, 1]), place="a")
    backward = run(grid("global", seeds=[1, 0]), grid("ok"), place="b")
    assert forward.sse[0] != forward.sse[1]
    assert forward.sse.tolist() == backward.sse.tolist()[1::-1]
    notes()
    shutil.copytree(tmp_path / "b/cache", tmp_path / "c/cache")
    assert run(grid("ok", "global"), place="c").finished.tolist() == [*backward.finished[[2, 1]]]
    assert not notes()


def test_a_job_that_gives_up_writes_what_is_finished_and_the_reason_for_the_rest(run, notes):
    first = run(grid("ok"))
    notes()
    rows = run(grid("ok", "global"), given_up="SIGTERM after 60 s")
    assert rows.status.tolist() == ["ok", "error"] and rows.lost.tolist() == [False, True]
    assert rows.finished[0] == first.finished[0] and rows.reason[1] == "SIGTERM after 60 s"
    assert not notes()
    assert run(grid("ok", "global")).status.tolist() == ["ok", "ok"]


def test_a_job_that_is_killed_loses_the_fit_in_flight_and_its_process_ends(run, notes, tmp_path):
    pid = os.fork()
    if pid == 0:
        run(grid("ok", "global", "sleep"))
        os._exit(0)
    path = tmp_path / "notes"
    wait_until(lambda: path.exists() and "sleep" in path.read_text())
    (child,) = psutil.Process(pid).children()
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    wait_for_end(child, 5)
    notes()
    assert run(grid("ok", "global", "skip")).status.tolist() == ["ok", "ok", "skipped"]
    assert notes() == {"skip": 1}


@pytest.mark.parametrize(("file", "content"), [("arrays.npz", bytes(9)), ("card.json", b"")])
def test_a_damaged_data_folder_fails_the_job_and_is_named(run, data, file, content):
    (data / file).write_bytes(content)
    with pytest.raises(DatasetError, match=rf"{data}.*Fix: delete the folder '{data}' and run again"):
        run(grid("ok"))


def test_what_compiled_libraries_print_goes_to_the_log(tmp_path):
    file = tmp_path / "log"
    with file.open("w") as log, redirect_stdout(log), redirect_stderr(log), fit_process(4000) as call:
        call(os.write, 1, b"a line of HiGHS\n")
        call(os.write, 2, b"an error\n")
    assert file.read_text() == "a line of HiGHS\nan error\n"
