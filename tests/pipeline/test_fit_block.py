"""The fit job of a block, in this process: every fit becomes a row, and finished cells are not fitted again."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from blocks_of_odd import LIMITS, block, run, stored

from fairclust.datasets.errors import DatasetError
from fairclust.datasets.store import write_skipped
from fairclust.outputs import is_alive
from fairclust.pipeline.cell_store import cell_path, read_output, write_cell
from fairclust.pipeline.fit_block import TryAgain, fit
from fairclust.pipeline.job import Job
from fairclust.pipeline.provenance import version_text
from fairclust.pipeline.rule_inputs import inputs_of
from small import GENERATED, small_config
from working_folder import wait_until


def test_every_outcome_of_a_fit_is_a_row_and_the_other_fits_go_on(tmp_path, data):
    limits = {**LIMITS, "cell_seconds": 6.0}
    hows = ["ok", "sleep", "skip", "diverge", "raise", "die", "labels", "shape", "history", "global"]
    rows = run(tmp_path, data, block(*hows), limits=limits)
    assert [row["params"]["how"] for row in rows] == hows
    by_how = {row["params"]["how"]: row for row in rows}
    expected = {
        "sleep": ("timeout", "limit of 6 s"),
        "skip": ("skipped", "two groups only"),
        "diverge": ("diverged", "not finite at step 3"),
        "raise": ("error", "RuntimeError: no idea of ?"),
        "die": ("error", "exit code 3"),
        "labels": ("error", "labels_ runs from 7 to 9, expected 0 to 2"),
        "history": ("error", "history_ must be a list of dicts"),
        "shape": ("error", "labels_ has shape (1999,)"),
        "ok": ("ok", ""),
        "global": ("ok", ""),
    }
    for how, (status, reason) in expected.items():
        assert by_how[how]["status"] == status, how
        assert reason in by_how[how]["reason"], how
    assert all(0 <= row["wall_seconds"] < 60 for row in rows)
    ok = by_how["ok"]
    assert ok["metrics"].keys() == {"balance", "sse"}
    assert ok["metrics"]["sse"] > 0
    assert {name: len(rows) for name, rows in ok["counts"].items()} == {"f": 3, "m": 3}
    assert ok["estimator"]["n_iter_"] == 1
    assert 0 < ok["peak_memory_mb"] < 4000
    assert ok["history"][0]["objective"] == 2.5
    assert {"numpy", "numba"} <= ok["versions"].keys()
    assert len(list(tmp_path.glob("cells/*/*"))) == len(hows)


def test_a_fit_that_ends_its_process_lets_no_other_fit_run_twice(tmp_path, data, monkeypatch):
    monkeypatch.setenv("ODD_NOTES", str(tmp_path / "notes"))
    rows = run(tmp_path, data, block("note", "die", "ok", seeds=[0, 1]))
    assert [row["status"] for row in rows] == ["error"] * 4 + ["ok"] * 2
    assert (tmp_path / "notes").read_text() == "once\n" * 2


def finished(rows):
    return [row["finished"] for row in rows]


def test_narrowing_keeps_unused_cells_and_widening_uses_them_again(tmp_path, data):
    first = run(tmp_path, data, block("ok", "global"))
    assert run(tmp_path, data, block("global")) == first[1:]
    assert run(tmp_path, data, block("ok", "global")) == first


def test_cells_of_other_code_are_not_used(tmp_path, data):
    first = run(tmp_path, data, block("ok", "global"))
    second = run(tmp_path, data, block("ok"), fingerprint="f2")
    assert finished(second)[0] > finished(first)[0]
    assert run(tmp_path, data, block("ok", "global")) == first


def test_cells_of_other_versions_are_kept_unless_asked_otherwise(tmp_path, data):
    first = run(tmp_path, data, block("ok"))
    now = version_text(first[0]["versions"])
    assert run(tmp_path, data, block("ok"), versions=now) == first
    assert run(tmp_path, data, block("ok")) == first
    other = version_text({**first[0]["versions"], "numpy": "1.0"})
    assert finished(run(tmp_path, data, block("ok"), versions=other)) > finished(first)


def test_cells_are_kept_when_a_block_is_cut_into_seeds_or_joined_again(tmp_path, data):
    first = run(tmp_path, data, block("ok", seeds=[0, 1]))
    parts = [run(tmp_path, data, block("ok", seeds=[0, 1], seed=seed))[0] for seed in (0, 1)]
    assert parts == first
    assert run(tmp_path, data, block("ok", seeds=[0, 1])) == first


def test_finished_fits_of_other_results_folders_are_used(tmp_path, data):
    mine = run(tmp_path / "a", data, block("ok"))
    theirs = run(tmp_path / "b", data, block("global"))
    others = [tmp_path / name for name in ("a", "b", "nowhere")]
    assert run(tmp_path / "c", data, block("ok", "global"), reuse=others) == mine + theirs
    # The cells have been copied, so the other results are not needed any more.
    assert run(tmp_path / "c", data, block("ok", "global")) == mine + theirs


def test_the_names_in_a_record_of_other_results_are_not_believed(tmp_path, data):
    (honest,) = run(tmp_path / "a", data, block("ok"))
    lie = {**honest, "dataset": "../../x", "method": "best", "n_clusters": 9, "seed": 5}
    write_cell(cell_path(tmp_path / "b", honest["key"]), lie, np.arange(2000) % 3)
    assert run(tmp_path / "c", data, block("ok"), reuse=[tmp_path / "b"]) == [honest]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c", "data"]


def test_another_name_of_a_method_finds_the_cells(tmp_path, data):
    first = run(tmp_path, data, block("ok"))
    again = run(tmp_path, data, replace(block("ok"), method="renamed"))
    assert [{**row, "method": "odd"} for row in again] == first


def test_two_jobs_of_one_block_at_once_do_not_disturb_each_other(tmp_path, data):
    """This happens on a cluster, where the jobs of a killed run go on."""
    asked = block("ok", "global", "slow")
    first = os.fork()
    if first == 0:
        run(tmp_path, data, asked)
        os._exit(0)
    wait_until(lambda: len(stored(tmp_path)) >= 2)
    rows = run(tmp_path, data, asked)
    assert os.waitpid(first, 0)[1] == 0
    kept = run(tmp_path, data, asked)
    for one in (rows, kept):
        assert [(row["status"], row["metrics"]) for row in one] == [("ok", row["metrics"]) for row in rows]
    assert finished(rows)[:2] == finished(kept)[:2]


def test_edited_or_additional_metrics_are_scored_without_fitting(tmp_path, data, monkeypatch):
    first = run(tmp_path, data, block("ever new"))
    more = run(tmp_path, data, block("ever new"), metrics=["balance", "sse", "delta"])
    assert finished(more) == finished(first)
    assert more[0]["metrics"]["sse"] == first[0]["metrics"]["sse"]
    assert more[0]["metrics"]["delta"] >= 0
    # If fewer metrics are asked for, nothing is computed and all values are kept.
    assert run(tmp_path, data, block("ever new"), metrics=["sse"]) == more
    monkeypatch.setattr("fairclust.pipeline.columns.score_labels", lambda *a, **k: {"sse": 1.0})
    assert run(tmp_path, data, block("ever new"), metrics=["sse"]) == more
    again = run(tmp_path, data, block("ever new"), metrics=["sse"], scorer="s2")
    assert again[0]["metrics"] == {"sse": 1.0}
    assert finished(again) == finished(first)


def test_a_timeout_is_tried_again_with_more_time_only(tmp_path, data):
    short = {**LIMITS, "cell_seconds": 1.0}
    first = run(tmp_path, data, block("sleep"), limits=short)
    assert finished(run(tmp_path, data, block("sleep"), limits=short)) == finished(first)
    longer = run(tmp_path, data, block("sleep"), limits={**LIMITS, "cell_seconds": 1.5})
    assert finished(longer)[0] > finished(first)[0]


def test_a_fit_over_its_memory_is_tried_again_and_becomes_a_row_at_the_last_attempt(tmp_path, data):
    tight = {"cell_seconds": 60.0, "cell_memory_mb": 600.0}
    with pytest.raises(TryAgain, match=r"over the limit of 600 MB .* the next attempt asks for more memory"):
        run(tmp_path, data, block("ok", "memory"), limits=tight, last_attempt=False)
    (kept,) = stored(tmp_path)
    assert kept["params"]["how"] == "ok"
    rows = run(tmp_path, data, block("ok", "memory"), limits=tight)
    assert finished(rows)[:1] == [kept["finished"]]
    assert rows[1]["status"] == "error"
    assert "limit of 600 MB" in rows[1]["reason"]


def test_memory_that_earlier_fits_have_left_does_not_count_for_a_fit(tmp_path, data):
    # Every fit leaves 256 MB.
    limits = {**LIMITS, "cell_memory_mb": psutil.Process().memory_info().rss / 2**20 + 450}
    rows = run(tmp_path, data, block("leak", seeds=[0, 1, 2]), limits=limits)
    assert [row["status"] for row in rows] == ["ok"] * 3


def test_a_damaged_cell_is_fitted_again_and_no_other(tmp_path, data):
    asked = block("ok", "global", "ever new")
    first = run(tmp_path, data, asked)
    # A byte of the labels is changed, and then a file is truncated, as after a crash of the machine.
    path = cell_path(tmp_path, first[1]["key"])
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    second = run(tmp_path, data, asked)
    assert [a == b for a, b in zip(finished(first), finished(second), strict=True)] == [True, False, True]
    assert f"{path} is damaged" in (tmp_path / "job.log").read_text()
    path = cell_path(tmp_path, first[2]["key"])
    path.write_bytes(path.read_bytes()[:60])
    third = run(tmp_path, data, asked)
    assert [a == b for a, b in zip(finished(second), finished(third), strict=True)] == [True, True, False]


def test_a_job_killed_between_cells_goes_on(tmp_path, data):
    pid = os.fork()
    if pid == 0:
        run(tmp_path, data, block("ok", "global", "sleep"))
        os._exit(0)
    wait_until(lambda: len(stored(tmp_path)) == 2)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    before = {row["params"]["how"]: row for row in stored(tmp_path)}
    rows = run(tmp_path, data, block("ok", "global", "skip"))
    assert rows[:2] == [before["ok"], before["global"]]


def test_forced_cells_are_fitted_again_once(tmp_path, data):
    first = run(tmp_path, data, block("ok", "global"))
    since = time.time()
    second = run(tmp_path, data, block("ok"), since=since)
    assert finished(second)[0] > since
    # A second attempt of the same run keeps what the first one has fitted.
    assert run(tmp_path, data, block("ok"), since=since) == second
    assert run(tmp_path, data, block("ok", "global")) == [*second, first[1]]


def job_of(tmp_path, data, attempt, *hows):
    odd = {"class": "odd_methods.Odd", "grid": {"how": list(hows)}}
    config = small_config(
        run={"datasets": [data.name], "methods": ["odd", "even"], "seeds": 1},
        datasets={data.name: {**GENERATED, "n_clusters": 3}},
        methods={"odd": odd, "even": odd},
        limits=LIMITS,
        jobs={"mem_mb": 5000},
        results=str(tmp_path / "results"),
    )
    return Job(
        rule="fit",
        input={"data": [str(data)]},
        output=[str(tmp_path / f"results/fits/{data.name}/odd-k3.cells")],
        params={},
        wildcards={"dataset": data.name, "job": "odd-k3"},
        resources={"attempt": attempt},
        threads=1,
        log="fit.log",
        folder=str(tmp_path),
        config=config,
    )


def test_a_job_has_several_blocks(tmp_path, data):
    job = job_of(tmp_path, data, 1, "ok", "raise")
    fit(job)
    rows = read_output(Path(job.output[0]))
    assert [(row["method"], row["status"]) for row in rows] == [
        *(("odd", "ok"), ("odd", "error")),
        *(("even", "ok"), ("even", "error")),
    ]
    # Both methods are the same class with the same settings, so that the second block takes the cell of the first.
    assert rows[0]["finished"] == rows[2]["finished"]


def test_after_the_last_attempt_a_job_writes_what_is_finished_and_errors(tmp_path, data):
    job = job_of(tmp_path, data, 3, "ok", "die")
    inputs = inputs_of(job)
    asked = inputs.request(inputs.blocks[0])
    asked.pop("class_path")
    (done,) = run(tmp_path / "results", data, replace(block("ok"), dataset=data.name), **asked)
    fit(job)
    rows = read_output(Path(job.output[0]))
    assert rows[0] == done
    assert rows[1]["status"] == "error" and rows[1]["lost"]
    assert rows[1]["reason"] == "its job ended without a result 2 times; see fit.log"
    assert len(stored(tmp_path / "results")) == 1
    # With the data gone, too.
    (data / "card.json").write_text("")
    fit(job)
    rows = read_output(Path(job.output[0]))
    assert [row["status"] for row in rows] == ["error"] * 4 and all(row["lost"] for row in rows)


@pytest.mark.skipif(sys.platform != "linux", reason="only there is /proc")
def test_the_process_that_forks_jobs_has_no_threads():
    """A child that is forked beside threads (OpenMP's, for example) may wait for them for ever."""
    code = (
        "import os, fairclust.pipeline.fit_block, fairclust.base, fairclust.metrics.table, fairclust.pipeline.scores\n"
        "names = [open(f'/proc/self/task/{task}/comm').read().strip() for task in os.listdir('/proc/self/task')]\n"
        # The thread of pyarrow's allocator does not count: the allocator supports forks.
        "print(len([name for name in names if name != 'jemalloc_bg_thd']))"
    )
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=alone, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_a_job_with_threads_can_fit(tmp_path, data):
    """Its script imports nothing that has threads before it forks."""
    code = (
        "import sys; from snakemake import script; from pathlib import Path\n"
        "from fairclust.pipeline.job import Job, supervise\n"
        "job = Job('fit', {}, [], {}, {}, {}, 2, sys.argv[1] + '/job.log', sys.argv[1], {})\n"
        "print(supervise(job, 'odd_methods:fit_with_threads'))\n"
        "assert 'numpy' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    assert done.stdout == "\n"
    assert (tmp_path / "job.log").read_text() == "2\n"


def test_a_skipped_data_set_gives_skipped_rows_until_it_is_there(tmp_path, data):
    write_skipped(tmp_path / "none", "toy", "no network")
    rows = run(tmp_path, tmp_path / "none", block("ok", seeds=[0, 1]))
    assert [(row["status"], row["reason"], row["seed"]) for row in rows] == [
        ("skipped", "no network", 0),
        ("skipped", "no network", 1),
    ]
    assert [row["status"] for row in run(tmp_path, data, block("ok", seeds=[0, 1]))] == ["ok", "ok"]


def test_results_do_not_depend_on_the_order_of_cells(tmp_path, data):
    # "global" draws from NumPy's global generator, as some methods do in spite of their random_state.
    forward = run(tmp_path / "a", data, block("global", seeds=[0, 1]))
    backward = run(tmp_path / "b", data, block("global", seeds=[1, 0]))
    assert forward[0]["metrics"] != forward[1]["metrics"]
    assert [row["metrics"] for row in forward] == [row["metrics"] for row in backward[::-1]]


@pytest.mark.parametrize("file", ["X.npy", "groups.npy", "card.json"])
@pytest.mark.parametrize("content", [b"", bytes(100)], ids=["empty", "zeros"])
def test_a_damaged_data_folder_fails_the_job_and_is_named(tmp_path, data, file, content):
    (data / file).write_bytes(content)
    with pytest.raises(DatasetError, match=rf"{data}.*Fix: delete the folder '{data}' and run again"):
        run(tmp_path, data, block("ok"))
    assert not stored(tmp_path)


def test_a_method_that_changes_the_working_folder_moves_no_file(tmp_path, data, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = run(Path("results"), data, block("folder", "ok"))
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert len(list(tmp_path.glob("results/cells/*/*"))) == 2


def test_a_fit_that_dies_is_noticed_although_its_fork_lives_and_the_fork_ends(tmp_path, data, monkeypatch):
    monkeypatch.setenv("ODD_NOTES", str(tmp_path / "notes"))
    died, ok = run(tmp_path, data, block("fork and die", "ok"))
    assert (died["status"], ok["status"]) == ("error", "ok")
    assert "exit code 3" in died["reason"]
    forked = int((tmp_path / "notes").read_text())
    wait_until(lambda: not is_alive(forked), 10)


def test_a_fit_that_timed_out_leaves_no_process_behind(tmp_path, data):
    run(tmp_path, data, block("child"), limits={**LIMITS, "cell_seconds": 1.0})
    left = [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "77.25"]]
    assert not left
