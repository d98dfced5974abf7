"""Prepared data sets and graphs on disk: round trips, skipped data sets, and writing that is complete or undone."""

import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from fairclust.datasets.errors import DatasetError, DatasetSkipped
from fairclust.datasets.prepare import prepare_dataset
from fairclust.datasets.spec import DatasetSpec
from fairclust.datasets.store import (
    CARD,
    GRAPH,
    PreparedDataset,
    load_graph,
    load_prepared,
    read_card,
    save_graph,
    save_prepared,
    write_card,
    write_skipped,
)
from fairclust.kernels.graph import build_knn_graph


def make(seed=0):
    spec = DatasetSpec(
        title="Toy",
        generator="fairclust.datasets.blobs:make_group_blobs",
        params={"n_rows": 50, "seed": seed},
        n_clusters=3,
    )
    return prepare_dataset("toy", spec, {})


def complete():
    """Return a data set with every kind of file."""
    ds = make()
    W = sp.csr_array(np.ones((50, 50), np.float32) - np.eye(50, dtype=np.float32))
    card = {**ds.card, "graph": {"n_edges": 1225}}
    columns = {"sex": ds.groups % 2, "race": ds.groups // 2}
    card["sensitive"] = {"sex": ["f", "m"], "race": ["a", "b"]}
    return PreparedDataset(ds.X, ds.groups, ds.feature_names, ds.group_names, card, W, ds.groups, columns)


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def test_round_trip(tmp_path):
    ds = make()
    save_prepared(ds, tmp_path / "deep" / "toy")
    back = load_prepared(tmp_path / "deep" / "toy")
    assert_array_equal(back.X, ds.X)
    assert_array_equal(back.groups, ds.groups)
    assert (back.X.dtype, back.groups.dtype) == (np.float64, np.int32)
    assert (back.feature_names, back.group_names) == (ds.feature_names, ds.group_names)
    assert back.card == json.loads(json.dumps(ds.card))
    assert names(tmp_path / "deep") == ["toy"]
    assert names(tmp_path / "deep" / "toy") == ["X.npy", "card.json", "groups.npy"]


def test_other_users_may_read_the_folder(tmp_path):
    """A folder made by mkdtemp could not be read by other users of a cluster."""
    before = os.umask(0o022)
    try:
        save_prepared(make(), tmp_path / "toy")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "toy").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "toy" / "X.npy").stat().st_mode) == 0o644


def test_foreign_files_are_not_deleted(tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "thesis.tex").touch()
    with pytest.raises(DatasetError, match=r"holds other files \(thesis.tex\)"):
        save_prepared(make(), tmp_path / "toy")
    assert names(tmp_path / "toy") == ["thesis.tex"]


def test_failure_while_writing_leaves_the_old_one(tmp_path):
    save_prepared(make(0), tmp_path / "toy")
    broken = make(1)
    broken.card["scaling"] = np.nan  # writing fails after both arrays have been written
    with pytest.raises(ValueError, match="not JSON compliant"):
        save_prepared(broken, tmp_path / "toy")
    assert load_prepared(tmp_path / "toy").card["data_hash"] == make(0).card["data_hash"]
    assert names(tmp_path) == ["toy"]


def test_an_older_one_is_replaced_and_brought_back_if_renaming_fails(tmp_path, monkeypatch):
    save_prepared(make(0), tmp_path / "toy")
    (tmp_path / "toy" / ".snakemake_timestamp").touch()
    rename = Path.rename

    def fail_for_the_new_one(self, target):
        if self.suffix == ".new":
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_for_the_new_one)
    with pytest.raises(OSError, match="Input/output"):
        save_prepared(make(1), tmp_path / "toy")
    assert load_prepared(tmp_path / "toy").card["data_hash"] == make(0).card["data_hash"]
    assert names(tmp_path) == ["toy"]
    monkeypatch.undo()
    save_prepared(make(1), tmp_path / "toy")
    assert load_prepared(tmp_path / "toy").card["data_hash"] == make(1).card["data_hash"]
    assert names(tmp_path) == ["toy"]


def test_skipped(tmp_path):
    write_skipped(tmp_path / "census", "census_ii", "no network")
    assert read_card(tmp_path / "census") == {
        "status": "skipped",
        "name": "census_ii",
        "reason": "no network",
    }
    with pytest.raises(DatasetSkipped, match=r"^no network$"):
        load_prepared(tmp_path / "census")
    save_prepared(make(), tmp_path / "census")
    assert load_prepared(tmp_path / "census").card["status"] == "ok"
    write_skipped(tmp_path / "census", "census_ii", "gone again")
    assert names(tmp_path / "census") == ["card.json"]


def test_a_damaged_card_is_no_card(tmp_path):
    folder = tmp_path / "toy"
    save_prepared(complete(), folder)
    whole = (folder / "card.json").read_bytes()
    for content in (b"", b"[]", b"{}", b"null", whole[:-2], whole[1:], b"\xff" + whole):
        (folder / "card.json").write_bytes(content)
        with pytest.raises(DatasetError, match="holds no data card, or a damaged one"):
            read_card(folder)


@pytest.mark.parametrize("file", ["X.npy", "groups.npy", "truth.npy", "graph.npz", "columns.npy"])
@pytest.mark.parametrize("damage", ["first", "last", "middle", "truncate", "empty", "longer", "gone"])
def test_damaged(tmp_path, file, damage):
    folder = tmp_path / "toy"
    save_prepared(complete(), folder)
    load_prepared(folder)  # this process has read the intact file
    content = bytearray((folder / file).read_bytes())
    if damage in ("first", "last", "middle"):
        content[{"first": 0, "last": -1, "middle": len(content) // 2}[damage]] ^= 1
    (folder / file).write_bytes(
        {"truncate": content[:-1], "empty": b"", "longer": content + b"x"}.get(damage, bytes(content))
    )
    if damage == "gone":
        (folder / file).unlink()
    with pytest.raises(DatasetError, match=f"{file}'.*Fix: delete the folder '{folder}' and run again"):
        load_prepared(folder)


def test_pickles_are_not_loaded(tmp_path):
    save_prepared(make(), tmp_path / "toy")
    np.save(tmp_path / "toy/groups.npy", np.full(50, {}, dtype=object), allow_pickle=True)
    write_card(tmp_path / "toy", read_card(tmp_path / "toy"))
    with pytest.raises(DatasetError, match="allow_pickle=False"):
        load_prepared(tmp_path / "toy")


# Graphs


@pytest.fixture
def graph():
    return build_knn_graph(np.random.default_rng(0).normal(size=(50, 3)), 5)


def test_round_trip_of_a_graph(graph, tmp_path):
    W, info = graph
    folder = tmp_path / "new" / "graph"
    for weights in (2 * W, W, W):  # the last file replaces the others
        before = (folder / GRAPH).read_bytes() if folder.exists() else b""
        save_graph(folder, weights, {**info, "data": "abc"})
    assert {path.name for path in folder.iterdir()} == {GRAPH, CARD}
    assert (folder / GRAPH).read_bytes() == before
    back, told = load_graph(folder)
    assert (back != W).nnz == 0
    assert back.dtype == W.dtype
    assert told == json.loads(json.dumps({**info, "data": "abc"}))


@pytest.mark.parametrize("damage", [None, "pickle", "keys", "edges"])
def test_no_graph(graph, tmp_path, damage):
    file, (W, info) = tmp_path / GRAPH, graph
    if damage == "edges":
        W.indices[0] = 10_000
        save_graph(tmp_path, W, info)
    elif damage is not None:
        np.savez(file, indptr=np.array([None], dtype=object) if damage == "pickle" else np.zeros(1))
        write_card(tmp_path, {"status": "ok", "graph": {}})
    with pytest.raises(DatasetError, match="Fix: delete the folder"):
        load_graph(tmp_path)
