"""Prepared data sets and graphs on disk: round trips, skipped data sets, and writing that is complete or undone."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from fairclust.datasets.errors import DatasetError, DatasetSkipped
from fairclust.datasets.prepare import prepare_dataset
from fairclust.datasets.spec import DatasetSpec
from fairclust.datasets.store import (
    ARRAYS,
    CARD,
    PreparedDataset,
    load_graph,
    load_prepared,
    read_card,
    save_graph,
    save_prepared,
    write_skipped,
)
from fairclust.kernels.graph import build_knn_graph


def make(seed=0):
    spec = DatasetSpec(
        title="Toy",
        generator="fairclust.datasets.blobs.make_group_blobs",
        params={"n_rows": 50, "seed": seed},
        n_clusters=3,
    )
    return prepare_dataset("toy", spec, {}, {})


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


def test_other_users_may_read_the_folder(tmp_path):
    """A folder made by mkdtemp could not be read by other users of a cluster."""
    before = os.umask(0o022)
    try:
        save_prepared(make(), tmp_path / "toy")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "toy").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "toy" / ARRAYS).stat().st_mode) == 0o644


def test_failure_while_writing_leaves_the_old_one(tmp_path):
    save_prepared(make(0), tmp_path / "toy")
    broken = make(1)
    broken.card["scaling"] = np.nan  # writing fails after the arrays have been written
    with pytest.raises(ValueError, match="not JSON compliant"):
        save_prepared(broken, tmp_path / "toy")
    assert load_prepared(tmp_path / "toy").card["data_hash"] == make(0).card["data_hash"]
    assert names(tmp_path) == ["toy"]


def test_an_older_one_is_replaced_and_brought_back_if_renaming_fails(tmp_path, monkeypatch):
    save_prepared(make(0), tmp_path / "toy")
    (tmp_path / "toy" / ".snakemake_timestamp").touch()
    rename = Path.rename

    def fail_for_the_new_one(self, target):
        if self.suffix == ".tmp" and not (self / ".snakemake_timestamp").exists():
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
    write_skipped(tmp_path / "census", "no network")
    assert read_card(tmp_path / "census") == {"status": "skipped", "reason": "no network"}
    with pytest.raises(DatasetSkipped, match=r"^no network$"):
        load_prepared(tmp_path / "census")
    save_prepared(make(), tmp_path / "census")
    assert load_prepared(tmp_path / "census").card["status"] == "ok"
    write_skipped(tmp_path / "census", "gone again")
    assert names(tmp_path / "census") == ["card.json"]


def test_a_damaged_card_is_no_card(tmp_path):
    folder = tmp_path / "toy"
    save_prepared(complete(), folder)
    whole = (folder / "card.json").read_bytes()
    for content in (b"", b"[]", b"{}", b"null", whole[:-2], whole[1:], b"\xff" + whole):
        (folder / "card.json").write_bytes(content)
        with pytest.raises(DatasetError, match="holds no data card, or a damaged one"):
            read_card(folder)


@pytest.mark.parametrize(
    "damage", ["X", "groups", "truth", "columns", "weights", "truncate", "empty", "gone"]
)
def test_damaged(tmp_path, damage):
    folder, data = tmp_path / "toy", complete()
    save_prepared(data, folder)
    whole = (folder / ARRAYS).read_bytes()
    changes = {"truncate": whole[:-1], "empty": b""}
    if damage not in (*changes, "gone"):
        # In the middle of an array.
        place = whole.index(f"{damage}.npy".encode())
        at = place + 128 + np.load(folder / ARRAYS)[damage].nbytes // 2
        changes[damage] = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    (folder / ARRAYS).write_bytes(changes.get(damage, b""))
    if damage == "gone":
        (folder / ARRAYS).unlink()
    message = rf"'{folder}' holds no arrays\.npz, or a damaged one .*Fix: delete the folder '{folder}' and run again"
    with pytest.raises(DatasetError, match=message):
        load_prepared(folder)


@pytest.mark.parametrize("absent", ["X", "groups", "columns", "indptr"])
def test_without_one_of_its_arrays(tmp_path, absent):
    folder = tmp_path / "toy"
    save_prepared(complete(), folder)
    arrays = dict(np.load(folder / ARRAYS))
    del arrays[absent]
    np.savez(folder / ARRAYS, **arrays)
    with pytest.raises(DatasetError, match=rf"Fix: delete the folder '{folder}' and run again"):
        load_prepared(folder)


def test_pickles_are_not_loaded(tmp_path):
    save_prepared(make(), tmp_path / "toy")
    np.savez(tmp_path / "toy" / ARRAYS, X=np.full(50, {}, dtype=object))
    with pytest.raises(DatasetError, match="allow_pickle=False"):
        load_prepared(tmp_path / "toy")


# Graphs


def test_round_trip_of_a_graph(tmp_path):
    W = build_knn_graph(np.random.default_rng(0).normal(size=(50, 3)), 5)
    folder = tmp_path / "new" / "graph"
    for weights in (2 * W, W, W):  # the last file replaces the others
        before = (folder / ARRAYS).read_bytes() if folder.exists() else b""
        save_graph(folder, weights)
    assert {path.name for path in folder.iterdir()} == {ARRAYS, CARD}
    assert (folder / ARRAYS).read_bytes() == before
    back = load_graph(folder)
    assert (back != W).nnz == 0
    assert back.dtype == W.dtype
