import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from fairclust.bench.gather import RUN_COLUMNS, SCORE_COLUMNS, gather_scores
from fairclust.bench.grid import Cell
from fairclust.bench.runner import read_index, run_block

from fairclust.datasets.errors import DatasetError
from fairclust.datasets.store import PreparedDataset, data_hash, save_prepared, write_skipped

LIMITS = {"cell_seconds": 30.0, "cell_memory_mb": 4000.0}


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(2000, 2)), np.tile(np.array([0, 1], np.int32), 1000)
    names = ("a", "b"), ("f", "m")
    card = {
        "status": "ok",
        "name": "toy",
        "rows": 2000,
        "columns": ["a", "b"],
        "groups": [{"name": "f", "size": 1000}, {"name": "m", "size": 1000}],
        "data_hash": data_hash(X, groups, *names),
    }
    save_prepared(PreparedDataset(X, groups, *names, card), tmp_path / "data")
    return tmp_path / "data"


def block(*hows, seeds=(0,), limits=LIMITS, fingerprint="f1"):
    return {
        **{"dataset": "toy", "method": "odd", "n_clusters": 3, "part": 1, "n_parts": 1},
        "class": "odd_methods.Odd",
        "fingerprint": fingerprint,
        "cells": [vars(Cell({"how": how}, seed, seed)) for how in hows for seed in seeds],
        "limits": limits,
    }


def run(folder, data, block, scorer="s1"):
    index = folder / "index.jsonl"
    settings = {"dunn_max_rows": 0}
    run_block(block, data, folder / "store", index, threads=1, score_settings=settings, scorer=scorer)
    return read_index(index)


def test_every_ending_is_a_row_and_the_others_go_on(tmp_path, data):
    limits = {"cell_seconds": 6.0, "cell_memory_mb": 1000.0}
    hows = ["ok", "sleep", "skip", "diverge", "raise", "die", "labels", "shape", "history", "memory", "ok"]
    rows = run(tmp_path, data, block(*hows, limits=limits))
    assert [(row["status"], row["reason"]) for row in rows[:1]] == [("ok", "")]
    by_how = {row["params"]["how"]: row for row in rows}
    expected = {
        "sleep": ("timeout", "limit of 6 s"),
        "skip": ("skipped", "two groups only"),
        "diverge": ("diverged", "not finite at step 3"),
        "raise": ("error", "RuntimeError: no idea"),
        "die": ("error", "exit code 3"),
        "labels": ("error", "labels_ runs from 7 to 9, expected 0 to 2"),
        "history": ("error", "history_ must be a list of dicts"),
        "shape": ("error", "labels_ has shape (1999,)"),
        "memory": ("error", "limit of 1000 MB"),
        "ok": ("ok", ""),
    }
    for how, (status, reason) in expected.items():
        assert by_how[how]["status"] == status, how
        assert reason in by_how[how]["reason"], how
    assert all(0 <= row["wall_seconds"] < 30 for row in rows)
    ok = by_how["ok"]
    assert ok["metrics"]["sse"] > 0
    assert ok["metrics"]["dunn_index"] is None
    assert ok["estimator"]["n_iter_"] == 1
    assert 0 < ok["peak_memory_mb"] < 4000
    assert ok["history"][0]["objective"] == 2.5
    assert {"numpy", "numba"} <= ok["versions"].keys()


def finished(rows):
    return [row["finished"] for row in rows]


def test_widening_fits_only_new_cells(tmp_path, data):
    first = run(tmp_path, data, block("ok", seeds=[0, 1]))
    second = run(tmp_path, data, block("ok", seeds=[0, 1, 2]))
    assert finished(second)[:2] == finished(first)
    assert finished(second)[2] > max(finished(first))
    assert second[:2] == first


def test_an_edited_method_is_fitted_again(tmp_path, data):
    first = run(tmp_path, data, block("ok"))
    second = run(tmp_path, data, block("ok", fingerprint="f2"))
    assert finished(second)[0] > finished(first)[0]


def test_edited_metrics_score_again_without_fitting(tmp_path, data, monkeypatch):
    first = run(tmp_path, data, block("ok"))
    import fairclust.bench.scoring as scoring

    monkeypatch.setattr(scoring, "score_labels", lambda *a, **k: {"sse": 1.0})
    assert run(tmp_path, data, block("ok"))[0]["metrics"] == first[0]["metrics"]
    second = run(tmp_path, data, block("ok"), scorer="s2")
    assert second[0]["metrics"] == {"sse": 1.0}
    assert finished(second) == finished(first)


def test_a_timeout_is_tried_again_with_more_time_only(tmp_path, data):
    short = {**LIMITS, "cell_seconds": 1.0}
    first = run(tmp_path, data, block("sleep", limits=short))
    assert finished(run(tmp_path, data, block("sleep", limits=short))) == finished(first)
    longer = run(tmp_path, data, block("sleep", limits={**LIMITS, "cell_seconds": 1.5}))
    assert finished(longer)[0] > finished(first)[0]


def test_an_error_is_tried_again(tmp_path, data):
    first = run(tmp_path, data, block("raise"))
    assert finished(run(tmp_path, data, block("raise")))[0] > finished(first)[0]


def test_a_run_killed_between_cells_goes_on(tmp_path, data):
    pid = os.fork()
    if pid == 0:
        run(tmp_path, data, block("ok", "ok", "sleep"))
        os._exit(0)
    folder = tmp_path / "store"
    for _ in range(300):
        if len(list(folder.glob("*.npz"))) >= 1:
            break
        time.sleep(0.1)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    kept = list(folder.glob("*.npz"))
    assert kept
    before = {json.loads(np.load(file)["record"].tobytes())["finished"] for file in kept}
    rows = run(tmp_path, data, block("ok", seeds=[0, 1]))
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert rows[0]["finished"] in before
    assert rows[1]["finished"] not in before


def test_a_script_with_threads_and_without_a_guard_can_fit(tmp_path, data):
    """Snakemake's scripts have no guard, and a child forked beside OpenMP's threads would wait for ever."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from sklearn.cluster import KMeans\n"
        "from fairclust.bench.runner import run_block\n"
        "from pathlib import Path\n"
        "import json\n"
        "print('once')\n"
        "KMeans(2, n_init=1).fit([[float(i)] for i in range(1000)])\n"
        "block, folder = json.loads(sys.argv[1]), Path(sys.argv[2])\n"
        "run_block(block, folder / 'data', folder / 'store', folder / 'index.jsonl', threads=1,\n"
        "          score_settings={'dunn_max_rows': 0}, scorer='s')\n"
    )
    work = block("ok") | {"class": "fairclust.methods.kmeans.KMeans"}
    work["cells"] = [vars(Cell({"n_init": 2}, 0, 0))]
    done = subprocess.run(
        [sys.executable, script, json.dumps(work), tmp_path],
        env={**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout == "once\n"
    assert [row["status"] for row in read_index(tmp_path / "index.jsonl")] == ["ok"]


@pytest.mark.skipif(sys.platform != "linux", reason="only there are fits forked")
def test_the_process_of_a_job_has_no_threads():
    """So that its fits are forked, which spares them the imports."""
    code = (
        "import fairclust.bench.runner, pyarrow.parquet\n"
        "from fairclust.bench.worker import _has_threads\n"
        "print(_has_threads())"
    )
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=alone, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_skipped_dataset_gives_skipped_rows(tmp_path):
    write_skipped(tmp_path / "data", "toy", "no network")
    rows = run(tmp_path, tmp_path / "data", block("ok", seeds=[0, 1]))
    assert [(row["status"], row["reason"]) for row in rows] == [("skipped", "no network")] * 2


def test_gather(tmp_path, data):
    run(tmp_path, data, block("raise", "ok", seeds=[1, 0]))
    write_skipped(tmp_path / "none", "other", "no network")
    other = {**block("ok"), "dataset": "other"}
    run_block(
        other, tmp_path / "none", tmp_path, tmp_path / "o.jsonl", threads=1, score_settings={}, scorer=""
    )
    scores = gather_scores(
        [tmp_path / "index.jsonl", tmp_path / "o.jsonl"],
        tmp_path / "scores",
        tmp_path / "runs",
        tmp_path / "steps.parquet",
    )
    assert list(scores.columns) == SCORE_COLUMNS
    assert not set(SCORE_COLUMNS) & set(RUN_COLUMNS)
    assert scores.status.tolist() == ["skipped", "ok", "ok", "error", "error"]
    assert scores.seed.tolist() == [0, 0, 1, 0, 1]
    ok = scores[scores.status == "ok"]
    assert (ok.sse > 0).all()
    assert scores[scores.status != "ok"].sse.isna().all()
    assert (ok.n_rows == 2000).all()
    for name in ("scores.parquet", "scores.csv", "runs.parquet", "runs.csv"):
        assert (tmp_path / name).stat().st_size > 0


def test_results_do_not_depend_on_the_order_of_cells(tmp_path, data):
    # "global" draws from NumPy's global generator, as some methods do in spite of their random_state.
    forward = run(tmp_path / "a", data, block("global", seeds=[0, 1]))
    backward = run(tmp_path / "b", data, block("global", seeds=[1, 0]))
    assert forward[0]["metrics"] != forward[1]["metrics"]
    assert [row["metrics"] for row in forward] == [row["metrics"] for row in backward[::-1]]


def test_a_damaged_data_folder_says_so(tmp_path, data):
    (data / "X.npy").write_bytes(b"")
    with pytest.raises(DatasetError, match="holds no prepared data set"):
        run(tmp_path, data, block("ok"))


def test_scores_belong_to_the_labels_they_were_computed_from(tmp_path, data):
    first = run(tmp_path, data, block("ever new"))
    for pack in (tmp_path / "store").glob("*.parquet"):
        pack.unlink()
    second = run(tmp_path, data, block("ever new"))
    assert first[0]["metrics"]["sse"] != second[0]["metrics"]["sse"]


def test_a_fit_that_timed_out_leaves_no_process_behind(tmp_path, data):
    run(tmp_path, data, block("child", limits={**LIMITS, "cell_seconds": 1.0}))
    left = [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "77.25"]]
    assert not left


def test_cell_is_plain_data():
    cell = Cell({"lam": 1.0}, 0, 5)
    assert Cell(**json.loads(json.dumps(vars(cell)))) == cell
    assert replace(cell, seed=1) != cell
