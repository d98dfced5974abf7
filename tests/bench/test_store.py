import numpy as np
import pytest
from fairclust.bench.store import CellStore, atomic_write


def test_put_get_compact(tmp_path):
    store = CellStore(tmp_path)
    labels = np.array([0, 3, 1, 299], np.int64)
    store.put("a", {"x": 1.5}, labels)
    store.put("b", {"x": None})
    for _ in range(2):
        record, found = store.get("a")
        assert record == {"x": 1.5}
        np.testing.assert_array_equal(found, labels)
        assert store.get("b") == ({"x": None}, None)
        assert store.get("c") is None
        store.compact(["a", "b", "c"])
    assert [p.name for p in tmp_path.iterdir()] == ["pack.parquet"]


def test_labels_take_one_byte(tmp_path):
    CellStore(tmp_path).put("a", {}, np.arange(10))
    assert CellStore(tmp_path).get("a")[1].dtype == np.uint8


def test_a_newer_result_wins(tmp_path):
    store = CellStore(tmp_path)
    store.put("a", {"try": 1, "finished": 1.0})
    store.compact(["a"], "pack1")
    store.put("a", {"try": 2, "finished": 2.0})
    assert CellStore(tmp_path).get("a")[0]["try"] == 2
    store.compact(["a"], "pack2")
    store.put("b", {"finished": 3.0})
    store.compact(["b"], "pack1")
    assert CellStore(tmp_path).get("a")[0]["try"] == 2


def test_parts_that_share_a_folder_see_each_others_cells(tmp_path):
    mine, theirs = CellStore(tmp_path), CellStore(tmp_path)
    theirs.put("a", {"x": 1})
    mine.put("b", {"x": 2})
    assert mine.get("c") is None
    mine.compact(["b"], "pack1")
    assert (tmp_path / "a.npz").exists()
    theirs.compact(["a"], "pack2")
    assert mine.get("a")[0] == {"x": 1}
    assert theirs.get("b")[0] == {"x": 2}


def test_a_kill_between_pack_and_unlink_loses_nothing(tmp_path):
    store = CellStore(tmp_path)
    store.put("a", {"x": 1})
    loose = (tmp_path / "a.npz").read_bytes()
    store.compact(["a"])
    (tmp_path / "a.npz").write_bytes(loose)
    store.put("b", {"x": 2})
    store.compact(["a", "b"])
    assert CellStore(tmp_path).get("a")[0] == {"x": 1}
    assert CellStore(tmp_path).get("b")[0] == {"x": 2}


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 not really", "half"])
def test_an_unreadable_cell_is_set_aside_with_a_warning(tmp_path, damage):
    store = CellStore(tmp_path)
    store.put("a", {"x": 1}, np.arange(50))
    file = tmp_path / "a.npz"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2] if damage == "half" else damage)
    with pytest.warns(UserWarning, match=r"a\.npz cannot be read"):
        assert store.get("a") is None
    assert (tmp_path / "a.npz.corrupt").exists()
    assert not file.exists()


def test_an_unreadable_pack_is_set_aside_with_a_warning(tmp_path):
    store = CellStore(tmp_path)
    store.put("a", {"x": 1})
    store.compact(["a"])
    pack = tmp_path / "pack.parquet"
    pack.write_bytes(pack.read_bytes()[:-20])
    with pytest.warns(UserWarning, match="cannot be read"):
        assert CellStore(tmp_path).get("a") is None
    assert (tmp_path / "pack.parquet.corrupt").exists()


def test_atomic_write_leaves_the_old_file_when_the_body_fails(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
