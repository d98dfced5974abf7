"""The tidy tables that are gathered from files of cells, and what the beginning and the end of a run say."""

import json

import numpy as np
import pandas as pd
import pytest

from fairclust.metrics.table import METRICS
from fairclust.pipeline import scores as module
from fairclust.pipeline.cell_store import DamagedFile, cell_path, write_cell, write_output
from fairclust.pipeline.run_events import describe, describe_times, no_report_yet, require_complete
from fairclust.pipeline.scores import (
    RUN_COLUMNS,
    SCORE_COLUMNS,
    cells_at,
    gather_scores,
    labels_of,
    load_cells,
    load_scores,
    read_table,
)


def record(key="a", status="ok", *, params=None, **more):
    found = {
        **{"dataset": "toy", "method": "odd", "n_clusters": 3, "class": "odd.Odd", "key": key},
        **{"status": status, "reason": "" if status == "ok" else "because", "params": params or {}},
        **{"seed": 0, "random_state": 5, "wall_seconds": 1.5, "cpu_seconds": 1.0, "finished": 10.0},
        **{"fingerprint": "f", "git_commit": "c", "versions": {"numpy": "2.1"}, **more},
    }
    if status == "ok":
        found = {
            **{"n_rows": 4, "n_features": 2, "n_groups": 2, "data_hash": "d"},
            "metrics": {"sse": 2.5, "balance": 0.5, "clustering_error": 0.25, "ncut": None},
            "counts": {"f": [1, 1], "m": [2, 0]},
            "estimator": {"n_iter_": 7, "converged_": True, "nll_": 3.5},
            "history": [{"step": 0, "objective": 9.0}, {"step": 1, "objective": 8.0, "extra": 1.0}],
            "warnings": ["one", "two"],
            "threads": 1,
            **found,
        }
    return found


TOY, FAR = ("toy", "odd", 3), ("far", "odd", 3)


@pytest.fixture
def packs(tmp_path):
    """Write the outputs of two jobs: one of fitted cells, and one of a skipped data set."""
    fitted, skipped = tmp_path / "fits/toy/one.cells", tmp_path / "fits/far/two.cells"
    for path in (fitted, skipped):
        path.parent.mkdir(parents=True)
    cells = [record("aa", params={"lam": 2}), record("bb", "error", params={"lam": 3})]
    write_output(fitted, cells)
    write_cell(cell_path(tmp_path, "aa"), cells[0], np.array([0, 1, 2, 0]))
    write_cell(cell_path(tmp_path, "bb"), cells[1], None)
    plain = {name: value for name, value in record(None, "skipped").items() if "seconds" not in name}
    plain.pop("finished")
    write_output(skipped, [{**plain, "dataset": "far"}])
    return [fitted, skipped]


def test_every_cell_that_is_asked_for_has_a_row(packs):
    cells, _ = load_cells(packs, [TOY, FAR])
    assert cells[["dataset", "status", "lam"]].values.tolist()[:2] == [
        ["toy", "ok", 2.0],
        ["toy", "error", 3.0],
    ]
    assert cells.status.tolist() == ["ok", "error", "skipped"]
    ok = cells.iloc[0]
    assert (ok.sse, ok.balance, ok.accuracy, ok.nll, ok.objective, ok.n_iter) == (2.5, 0.5, 0.75, 3.5, 8.0, 7)
    assert json.loads(ok.counts) == {"f": [1, 1], "m": [2, 0]}
    assert ok.params == '{"lam": 2.0}'
    assert ok.warnings == "one; two"
    assert ok.seconds == 1.5
    assert cells.loc[1:, [*METRICS, "accuracy", "nll", "objective"]].isna().all(axis=None)
    assert pd.isna(ok.ncut) and pd.isna(ok.soft_delta)
    assert cells.pack.tolist() == [str(packs[0]), str(packs[0]), str(packs[1])]


def test_only_what_is_needed_is_loaded_and_in_this_order(packs):
    cells = load_cells(packs, [FAR, TOY])[0]
    assert cells_at(cells, [FAR, TOY]).dataset.tolist() == ["far", "toy", "toy"]
    assert load_cells(packs, [FAR])[0].dataset.tolist() == cells_at(cells, [FAR]).dataset.tolist() == ["far"]
    assert load_cells(packs, [("toy", "odd", 4), ("toy", "other", 3)])[0].empty
    assert load_cells(packs, [FAR])[1].empty


def test_a_cell_with_damaged_labels_is_removed_so_that_the_next_run_fits_it(packs, tmp_path):
    path = cell_path(tmp_path, "aa")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedFile, match=r"aa\.cell is damaged.* run the same command again"):
        labels_of(packs[0], "aa")
    assert not path.exists() and not packs[0].exists() and packs[1].exists()


def test_the_table_of_steps_has_every_key_of_a_history(packs):
    _, steps = load_cells(packs, [TOY, FAR])
    assert steps[["key", "step", "objective"]].values.tolist() == [["aa", 0, 9.0], ["aa", 1, 8.0]]
    assert steps.extra.isna().tolist() == [True, False]
    assert steps[["clustering", "fairness"]].isna().all(axis=None)
    assert list(load_cells([], [])[1].columns) == module.STEP_COLUMNS


def test_no_cells_are_an_empty_table_of_the_same_columns(packs, tmp_path):
    assert list(load_cells([], [])[0].columns) == list(load_cells(packs, [TOY])[0].columns)
    found = gather_scores([], [], tmp_path / "scores", tmp_path / "runs")
    assert found == {"cells": 0, "by_status": {}, "missing": []}
    assert load_scores(tmp_path / "scores.parquet").empty


def gather(folder, packs, order=(TOY, FAR, ("toy", "lost", 3))):
    folder.mkdir(exist_ok=True)
    return gather_scores(packs, order, folder / "scores", folder / "runs")


def test_gathering_gives_the_same_rows_in_four_files(tmp_path, packs):
    write_output(tmp_path / "l", [record(None, "error", method="lost", reason="its job ended", lost=True)])
    found = gather(tmp_path / "g", [tmp_path / "l", *packs])
    assert found["by_status"] == {"ok": 1, "error": 2, "skipped": 1}
    assert [tuple(missing.values()) for missing in found["missing"]] == [
        ("far", "odd", "skipped", "because", False, 1),
        ("toy", "lost", "error", "its job ended", True, 1),
        ("toy", "odd", "error", "because", False, 1),
    ]
    scores, runs = (read_table(tmp_path / f"g/{name}.parquet") for name in ("scores", "runs"))
    assert list(scores.columns) == SCORE_COLUMNS
    assert not set(SCORE_COLUMNS) & set(RUN_COLUMNS)
    assert set(RUN_COLUMNS) < set(runs.columns)
    assert "numpy 2.1, scipy unknown, scikit-learn unknown, numba unknown" in set(runs.versions)
    for name, frame in (("scores", scores), ("runs", runs)):
        text = pd.read_csv(tmp_path / f"g/{name}.csv")
        assert list(text.columns) == list(frame.columns)
        assert len(text) == len(frame) == 4
    joined = load_scores(tmp_path / "g/scores.parquet")
    assert joined.dataset.tolist() == ["toy", "toy", "far", "toy"]
    cells = load_cells(packs, [TOY, FAR])[0].drop(columns="pack")
    assert set(joined.columns) == set(cells.columns)
    pd.testing.assert_frame_equal(joined.iloc[:3][cells.columns], cells, check_dtype=False)


def test_types_do_not_depend_on_the_values(tmp_path, packs):
    schemas = []
    for name, chosen in (("all", packs), ("ok", packs[:1]), ("skipped", packs[1:]), ("none", [])):
        gather(tmp_path / name, chosen)
        schemas.append(module.pq.read_schema(tmp_path / name / "scores.parquet"))
    assert all(schema.equals(schemas[0]) for schema in schemas)


def test_the_same_cells_give_the_same_bytes_whatever_time_they_took(tmp_path, packs):
    gather(tmp_path / "a", packs)
    cells = [
        record("aa", params={"lam": 2}, wall_seconds=99.0, finished=1e9),
        record("bb", "error", params={"lam": 3}),
    ]
    write_output(packs[0], cells)
    gather(tmp_path / "b", packs)
    for name in ("scores.csv", "scores.parquet"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert (tmp_path / "a/runs.csv").read_bytes() != (tmp_path / "b/runs.csv").read_bytes()


def test_damaged_files_are_not_gathered(tmp_path, packs):
    gather(tmp_path / "g", packs)
    path = tmp_path / "g/scores.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(ValueError, match=r"scores\.parquet is damaged .* Fix: delete it and run again"):
        read_table(path)
    for pack in packs:
        pack.write_bytes(pack.read_bytes()[:-3])
    before = (tmp_path / "g/runs.csv").read_bytes()
    with pytest.raises(DamagedFile, match=r"one\.cells is damaged(?s:.*)two\.cells is damaged.*again"):
        gather(tmp_path / "g", packs)
    # The earlier files are still there, and no incomplete file is beside them.
    assert (tmp_path / "g/runs.csv").read_bytes() == before
    assert not list(tmp_path.rglob("*.tmp"))


def test_the_summary_says_what_is_missing_and_sets_the_exit_status(tmp_path, packs):
    summary = tmp_path / "summary.json"

    def summarise(files):
        summary.write_text(json.dumps(gather(tmp_path / "g", files)))

    summarise(packs)
    assert describe(summary) == [
        "3 cells: 1 error, 1 ok, 1 skipped",
        "  skipped: far, odd (1): because",
        "  error: toy, odd (1): because",
    ]
    require_complete(summary, strict=False)
    with pytest.raises(RuntimeError, match=r"some tables or figures could not be made\ntable t could not"):
        require_complete(summary, ["table t could not be made"], strict=False)
    with pytest.raises(RuntimeError, match=r"strict: true, and not every cell is ok\n3 cells"):
        require_complete(summary, strict=True)
    summarise(packs[1:])
    with pytest.raises(RuntimeError, match=r"no cell is ok, so the results are empty\n1 cells"):
        require_complete(summary, strict=False)
    write_output(tmp_path / "lost", [record(None, "error", method="lost", lost=True)])
    summarise([*packs, tmp_path / "lost"])
    with pytest.raises(RuntimeError, match=r"some fit jobs have failed(.|\n)*toy, lost \(1\), odd"):
        require_complete(summary, strict=False)


@pytest.mark.parametrize("option", [["--report", "report.zip"], ["--report=report.zip"], ["--report"]])
def test_a_report_before_a_run_says_what_to_do(option, tmp_path):
    words = ["snakemake", "--cores", "4", *option]
    assert "run the same command without --report first" in no_report_yet(words, tmp_path)
    assert no_report_yet(["snakemake", "--cores", "4", "--report-stylesheet", "x.css"], tmp_path) == ""
    (tmp_path / "provenance.json").write_text("{}")
    assert no_report_yet(words, tmp_path) == ""


@pytest.mark.parametrize(("wall", "share"), [(0.01, ""), (50.0, " (20% of the fitting time)")])
def test_what_the_pipeline_adds_is_a_share_only_if_that_says_something(tmp_path, wall, share):
    runs, job = tmp_path / "scores/runs.parquet", tmp_path / "logs/fit/a.seconds"
    runs.parent.mkdir()
    pd.DataFrame({"finished": [2.0], "wall_seconds": [wall]}).to_parquet(runs)
    job.parent.mkdir(parents=True)
    job.write_text(f"{wall + 10}\n")
    job.with_name("damaged.seconds").write_text("\0")
    lines = describe_times(tmp_path, began=1.0)
    assert f"drawing 10.0 s{share}; " in lines[1]
