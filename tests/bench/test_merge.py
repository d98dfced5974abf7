"""Result folders become one: finished cells and their indexes, without a fit."""

import json
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fairclust.bench.merge import MergeError, merge_results
from fairclust.bench.runner import read_index
from fairclust.bench.store import CellStore

from fairclust.cli import main


def make_results(folder, *cells, data_hash="h", dataset="blobs", status="ok"):
    """A result folder as a run leaves it; cells are of method, lambda, cost, status and time of the end."""
    prepared = folder / "data" / "prepared" / dataset
    prepared.mkdir(parents=True)
    (prepared / "card.json").write_text(json.dumps({"status": status, "reason": "r", "data_hash": data_hash}))
    indexes = {}
    for method, lam, cost, state, finished in cells:
        key = None if state == "skipped" else f"{method}-{lam}-{data_hash}"
        record = {
            **{"dataset": dataset, "method": method, "n_clusters": 3, "key": key, "params": {"lam": lam}},
            **{"seed": 0, "random_state": 1, "status": state, "reason": "", "finished": finished},
        }
        if key:
            store = CellStore(folder / "cells" / dataset / method / "k3")
            store.put(key, record, np.zeros(4, int) + int(cost))
            store.compact([key])
        metrics = {"metrics": {"sse": cost, "balance": 0.5, "fairness_error": 0.1}} if state == "ok" else {}
        indexes.setdefault(method, []).append({**record, **metrics})
    for method, lines in indexes.items():
        path = folder / "fits" / dataset / method / "k3.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = {
        "datasets": {dataset: {"title": "Blobs"}},
        "methods": {method: {"label": method.title()} for method in indexes},
        "run": {"datasets": [dataset], "methods": list(indexes)},
        "report": {"tables": ["overview"]},
    }
    (folder / "provenance.json").write_text(json.dumps({"config": config}))
    return folder


def test_cells_of_both_stand_in_the_tables(tmp_path):
    a = make_results(tmp_path / "a", ("one", 1.0, 10, "ok", 5.0), ("one", 2.0, 9, "ok", 5.0))
    b = make_results(tmp_path / "b", ("one", 3.0, 8, "ok", 6.0), ("two", 1.0, 7, "ok", 6.0))
    out = tmp_path / "c"
    merged = merge_results([a, b], out)
    assert (merged.cells, merged.conflicts) == (4, 0)
    scores = pd.read_parquet(out / "scores" / "scores.parquet")
    assert scores[["method", "lam", "sse"]].values.tolist() == [
        *(["one", 1.0, 10.0], ["one", 2.0, 9.0], ["one", 3.0, 8.0]),
        ["two", 1.0, 7.0],
    ]
    assert merged.config["run"]["methods"] == ["one", "two"]
    store = CellStore(out / "cells" / "blobs" / "one" / "k3")
    assert sorted(store.list_keys()) == ["one-1.0-h", "one-2.0-h", "one-3.0-h"]
    assert store.get("one-3.0-h")[1].tolist() == [8] * 4
    # The given folders are as they were.
    assert len(CellStore(a / "cells" / "blobs" / "one" / "k3").list_keys()) == 2


@pytest.mark.parametrize("turn", [1, -1])
def test_of_two_the_one_that_ended_well_counts_then_the_later(tmp_path, turn):
    a = make_results(
        tmp_path / "a",
        *(("one", 1.0, 10, "ok", 5.0), ("one", 2.0, 10, "error", 9.0)),
        *(("one", 3.0, 10, "ok", 5.0), ("one", 4.0, 0, "skipped", None)),
    )
    b = make_results(
        tmp_path / "b",
        *(("one", 1.0, 11, "ok", 6.0), ("one", 2.0, 12, "ok", 6.0)),
        *(("one", 3.0, 13, "timeout", 6.0), ("one", 4.0, 14, "ok", 6.0)),
    )
    out = tmp_path / "c"
    merged = merge_results([a, b][::turn], out)
    assert (merged.cells, merged.conflicts) == (4, 0)
    lines = read_index(out / "fits" / "blobs" / "one" / "k3.jsonl")
    assert {line["params"]["lam"]: line["metrics"]["sse"] for line in lines} == {1: 11, 2: 12, 3: 10, 4: 14}
    store = CellStore(out / "cells" / "blobs" / "one" / "k3")
    for lam, cost in ((1.0, 11), (2.0, 12), (3.0, 10), (4.0, 14)):
        record, labels = store.get(f"one-{lam}-h")
        assert record["status"] == "ok"
        assert labels.tolist() == [cost] * 4


def test_cells_of_edited_code_are_told(tmp_path):
    a = make_results(tmp_path / "a", ("one", 1.0, 10, "ok", 5.0))
    b = make_results(tmp_path / "b", ("one", 1.0, 11, "ok", 6.0))
    index = b / "fits" / "blobs" / "one" / "k3.jsonl"
    index.write_text(index.read_text().replace("one-1.0-h", "other-code"))
    merged = merge_results([a, b], tmp_path / "c")
    assert (merged.cells, merged.conflicts) == (1, 1)


def test_parts_of_a_block_become_one(tmp_path):
    a = make_results(tmp_path / "a", ("one", 1.0, 10, "ok", 5.0))
    b = make_results(tmp_path / "b", ("one", 2.0, 11, "ok", 6.0))
    index = b / "fits" / "blobs" / "one" / "k3.jsonl"
    index.rename(index.with_name("k3-2of2.jsonl"))
    merge_results([a, b], tmp_path / "c")
    assert [p.name for p in (tmp_path / "c" / "fits").rglob("*.jsonl")] == ["k3.jsonl"]


def test_indexes_are_older_than_the_data(tmp_path):
    a = make_results(tmp_path / "a", ("one", 1.0, 10, "ok", 5.0))
    card = a / "data" / "prepared" / "blobs" / "card.json"
    os.utime(card, (time.time() - 1e8,) * 2)
    merge_results([a], tmp_path / "c")
    index = tmp_path / "c" / "fits" / "blobs" / "one" / "k3.jsonl"
    data = tmp_path / "c" / "data" / "prepared" / "blobs" / "card.json"
    assert index.stat().st_mtime < data.stat().st_mtime


def test_data_that_one_folder_has_is_taken_from_it(tmp_path):
    a = make_results(tmp_path / "a", ("one", 1.0, 0, "skipped", None), status="skipped", data_hash=None)
    b = make_results(tmp_path / "b", ("one", 1.0, 10, "ok", 5.0))
    merge_results([a, b], tmp_path / "c")
    card = json.loads((tmp_path / "c" / "data" / "prepared" / "blobs" / "card.json").read_text())
    assert card["status"] == "ok"


def test_what_cannot_be_merged(tmp_path, capsys):
    a = make_results(tmp_path / "a", ("one", 1.0, 10, "ok", 5.0))
    b = make_results(tmp_path / "b", ("one", 2.0, 10, "ok", 5.0), data_hash="other")
    with pytest.raises(MergeError, match="'blobs' is not the same in"):
        merge_results([a, b], tmp_path / "c")
    assert not (tmp_path / "c").exists()
    with pytest.raises(MergeError, match="holds no results"):
        merge_results([a, tmp_path / "nothing"], tmp_path / "c")
    with pytest.raises(MergeError, match="is there already"):
        merge_results([a], b)
    (a / "provenance.json").unlink()
    assert main(["merge", str(a), "--out", str(tmp_path / "c")]) == 2
    assert "let its run end first" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()


def test_the_command_makes_tables_and_page(tmp_path, capsys):
    a = make_results(tmp_path / "a", ("one", 1.0, 10, "ok", 5.0))
    b = make_results(tmp_path / "b", ("two", 2.0, 9, "ok", 6.0))
    out = tmp_path / "c"
    assert main(["merge", str(a), str(b), "--out", str(out)]) == 0
    text = (out / "tables" / "overview.md").read_text()
    assert "One" in text and "Two" in text
    assert "Two" in (out / "report" / "index.html").read_text()
    assert Path(out / "report.zip").is_file()
    assert "2 cells: 2 ok" in capsys.readouterr().out
