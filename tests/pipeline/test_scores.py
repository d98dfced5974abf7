"""The tables that are gathered from the files of fits, and what the end of a run says of them."""

import json

import numpy as np
import pandas as pd
import pytest

from fairclust.messages import UserError
from fairclust.metrics.table import METRICS
from fairclust.pipeline.scores import (
    RUN_COLUMNS,
    SCORE_COLUMNS,
    gather_scores,
    labels_of,
    load_cells,
    load_scores,
    read_arrow,
    read_fits,
    write_fits,
)
from fairclust.pipeline.summary import describe, require_complete

LABELS = np.array([0, 1, 2, 0], np.uint8)


def record(key="a", status="ok", *, params=None, **more):
    found = {
        **{"dataset": "toy", "method": "odd", "n_clusters": 3, "key": key, "params": params or {}},
        **{"status": status, "reason": "" if status == "ok" else "because"},
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


@pytest.fixture
def files(tmp_path):
    """Write the outputs of two jobs: one of two fits and one of a skipped data set."""
    fitted, skipped = tmp_path / "fits/toy/odd.parquet", tmp_path / "fits/far/odd.parquet"
    write_fits(
        fitted, [(record("aa", params={"lam": 2}), LABELS), (record("bb", "error", params={"lam": 3}), None)]
    )
    plain = {name: value for name, value in record(None, "skipped").items() if "seconds" not in name}
    plain.pop("finished")
    write_fits(skipped, [({**plain, "dataset": "far"}, None)])
    return [fitted, skipped]


def asked(dataset="toy", n_clusters=3, lams=(2, 3), seeds=(0,), sweep=""):
    axes = {} if dataset == "far" else {"lam": list(lams)}
    grid = {"n_clusters": n_clusters, "params": {}, "axes": axes, "seeds": list(seeds)}
    at = {"dataset": dataset, "method": "odd", "n_clusters": n_clusters, "sweep": sweep}
    return {**at, "grids": [grid]}


def test_every_fit_that_is_asked_for_has_a_row_in_this_order(files):
    cells, steps = load_cells(files, [asked("far"), asked()])
    assert cells[["dataset", "status"]].values.tolist() == [
        ["far", "skipped"], ["toy", "ok"], ["toy", "error"]
    ]  # fmt: skip
    ok = cells.iloc[1]
    assert (ok.sse, ok.balance, ok.accuracy, ok.nll, ok.objective, ok.n_iter) == (2.5, 0.5, 0.75, 3.5, 8.0, 7)
    assert (ok.lam, ok.params, ok.warnings, ok.seconds) == (2.0, '{"lam": 2.0}', "one; two", 1.5)
    assert json.loads(ok.counts) == {"f": [1, 1], "m": [2, 0]}
    assert cells[cells.status != "ok"][[*METRICS, "accuracy", "nll", "objective"]].isna().all(axis=None)
    assert pd.isna(ok.ncut) and pd.isna(ok.soft_delta)
    assert cells.path.tolist() == [str(files[1]), str(files[0]), str(files[0])]
    assert labels_of(files[0], "aa").tolist() == LABELS.tolist()
    # The steps have every key of the histories.
    assert steps[["key", "step", "objective"]].values.tolist() == [["aa", 0, 9.0], ["aa", 1, 8.0]]
    assert steps.extra.isna().tolist() == [True, False]
    assert steps[["clustering", "fairness"]].isna().all(axis=None)


@pytest.mark.parametrize(
    "wanted, lams",
    [
        (asked(lams=[3, 9]), [3]),
        (asked(lams=[2.0]), [2]),
        (asked(n_clusters=4), []),
        (asked(seeds=[1]), []),
        (asked(sweep="fig"), []),
    ],
)
def test_a_product_gets_its_own_settings_seeds_and_sweeps_and_no_others(files, wanted, lams):
    cells, _ = load_cells(files, [wanted])
    assert cells.lam.tolist() == lams
    assert list(cells.columns) == list(load_cells(files, [asked()])[0].columns)


def test_a_fit_of_two_sweeps_is_one_row_of_the_scores_and_has_its_steps_once(files, tmp_path):
    dense = files[0].with_name("odd.fig.parquet")
    write_fits(dense, [(record("aa", params={"lam": 2}), LABELS), (record("cc", params={"lam": 4}), LABELS)])
    cells, steps = load_cells([*files, dense], [asked(), asked(lams=[2, 4], sweep="fig")])
    assert cells[["sweep", "key"]].values.tolist() == [["", "aa"], ["", "bb"], ["fig", "aa"], ["fig", "cc"]]
    assert steps.key.tolist() == ["aa", "aa", "cc", "cc"]
    assert gather(tmp_path / "g", [*files, dense])["by_status"] == {"error": 1, "ok": 2, "skipped": 1}


def test_a_fit_that_one_of_two_jobs_has_lost_is_not_lost(files, tmp_path):
    write_fits(files[0], [(record("aa", "error", params={"lam": 2}, lost=True), None)])
    more = files[0].with_name("odd.fig.parquet")
    write_fits(more, [(record("aa", params={"lam": 2}), LABELS)])
    assert gather(tmp_path / "g", [*files, more])["by_status"] == {"ok": 1, "skipped": 1}


def gather(folder, files):
    folder.mkdir(exist_ok=True)
    return gather_scores(files, folder / "scores", folder / "runs")


def test_gathering_gives_the_same_rows_in_four_files(tmp_path, files):
    lost = tmp_path / "fits/toy/lost.parquet"
    write_fits(lost, [(record(None, "error", method="lost", reason="its job ended", lost=True), None)])
    found = gather(tmp_path / "g", [*files, lost])
    assert found["by_status"] == {"ok": 1, "error": 2, "skipped": 1}
    assert [tuple(missing.values()) for missing in found["missing"]] == [
        ("far", "odd", "", "skipped", "because", False, 1),
        ("toy", "lost", "", "error", "its job ended", True, 1),
        ("toy", "odd", "", "error", "because", False, 1),
    ]
    scores, runs = (read_arrow(tmp_path / f"g/{name}.parquet").to_pandas() for name in ("scores", "runs"))
    assert list(scores.columns) == SCORE_COLUMNS
    assert not set(SCORE_COLUMNS) & set(RUN_COLUMNS) and set(RUN_COLUMNS) < set(runs.columns)
    assert "numpy 2.1" in set(runs.versions)
    for name, frame in (("scores", scores), ("runs", runs)):
        text = pd.read_csv(tmp_path / f"g/{name}.csv")
        assert list(text.columns) == list(frame.columns) and len(text) == len(frame) == 4
    joined = load_scores(tmp_path / "g/scores.parquet")
    assert joined.dataset.tolist() == ["toy", "toy", "far", "toy"]
    cells = load_cells(files, [asked(), asked("far")])[0].drop(columns=["path", "sweep"])
    assert set(joined.columns) == set(cells.columns)
    pd.testing.assert_frame_equal(joined.iloc[:3][cells.columns], cells, check_dtype=False)


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty"])
def test_a_damaged_file_is_named_with_the_fix_and_earlier_scores_stay(tmp_path, files, damage):
    gather(tmp_path / "g", files)
    before, joined = (tmp_path / "g/runs.csv").read_bytes(), tmp_path / "g/scores.parquet"
    for path, reads in ((files[0], lambda: gather(tmp_path / "g", files)),
                        (files[0], lambda: load_cells(files, [asked()])),
                        (joined, lambda: load_scores(joined))):  # fmt: skip
        whole = path.read_bytes()
        # The flipped byte is in the column `key`, in which nothing else would find it.
        place = whole.index(b"aa") if damage == "flip" else 0
        changed = {"truncate": whole[:-30], "empty": b""}
        path.write_bytes(changed.get(damage, whole[:place] + b"b" + whole[place + 1 :]))
        with pytest.raises(
            UserError, match=rf"{path} is damaged, or of another version \(.*Fix: delete it and run again"
        ):
            reads()
        path.write_bytes(whole)
    assert (tmp_path / "g/runs.csv").read_bytes() == before
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".tmp")]


def test_the_summary_says_what_is_missing_and_sets_the_exit_status(tmp_path, files):
    found = gather(tmp_path / "g", files)
    assert describe(found) == [
        "3 fits: 1 error, 1 ok, 1 skipped",
        "  skipped: far, odd (1): because",
        "  error: toy, odd (1): because",
    ]
    require_complete(found, strict=False)
    with pytest.raises(RuntimeError, match=r"strict: true, and not every cell is ok\n3 fits"):
        require_complete(found, strict=True)
    with pytest.raises(RuntimeError, match=r"no cell is ok, so the results are empty\n1 fit: 1 skipped"):
        require_complete(gather(tmp_path / "g", files[1:]), strict=False)
    lost = tmp_path / "fits/toy/lost.fig2.parquet"
    write_fits(lost, [(record(None, "error", method="lost", lost=True), None)])
    fix = r"some fit jobs have failed. Fix: delete fits/toy/lost\.fig2\.parquet in the results and run again"
    with pytest.raises(RuntimeError, match=rf"{fix}(.|\n)*toy, lost \(1\), odd"):
        require_complete(gather(tmp_path / "g", [*files, lost]), strict=False)


def test_the_rows_of_a_file_have_its_sweep_also_if_the_method_has_a_dot(tmp_path):
    path = tmp_path / "odd.v2.fig2.parquet"
    write_fits(path, [(record("aa", method="odd.v2"), LABELS)])
    assert read_fits(path).sweep.tolist() == ["fig2"]
