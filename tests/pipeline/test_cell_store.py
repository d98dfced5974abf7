"""Files of cells: whatever happens to a file, reading gives the written content or an error."""

import numpy as np
import pytest

from fairclust.outputs import atomic_write
from fairclust.pipeline import cell_store
from fairclust.pipeline.cell_store import (
    DamagedFile,
    WorkingFile,
    count_errors,
    files_beside,
    read_pack,
    salvage,
    write_pack,
)
from fairclust.pipeline.fit_block import find_cells


def record(key, status="ok", **more):
    return {"key": key, "status": status, **more}


CELLS = [
    (record("a", x=1.5), np.array([0, 3, 1, 299], np.int64)),
    (record("b", "error"), None),
    (record("c"), np.arange(10)),
]


@pytest.fixture
def pack(tmp_path):
    """Write a file with two cells that are asked for and one that is only kept, and return its path."""
    path = tmp_path / "k3.cells"
    write_pack(path, CELLS, asked=2)
    return path


def content(entries):
    """Return the record and the labels of each cell, or 'damaged' if the labels do not match their digest."""
    found = {}
    for entry in entries:
        try:
            labels = entry.labels()
        except DamagedFile:
            labels = "damaged"
        found[entry.record["key"]] = (entry.record, labels)
    return found


def same(found, written):
    if found[0] != written[0]:
        return False
    labels, own = found[1], written[1]
    return isinstance(labels, str) or ((labels is None) == (own is None) and np.array_equal(labels, own))


def test_what_was_written_is_read(pack):
    asked = read_pack(pack)
    assert [entry.record for entry in asked] == [CELLS[0][0], CELLS[1][0]]
    np.testing.assert_array_equal(asked[0].labels(), CELLS[0][1])
    assert asked[1].labels() is None
    assert list(salvage(pack)) == ["a", "b", "c"]
    assert count_errors(pack) == 1
    assert [path.name for path in pack.parent.iterdir()] == [pack.name]


@pytest.mark.parametrize("largest, size", [(255, 1), (256, 2), (65536, 4)])
def test_labels_take_the_fewest_bytes(tmp_path, largest, size):
    write_pack(tmp_path / "p", [(record("a"), np.array([0, largest]))], 1)
    assert read_pack(tmp_path / "p")[0].labels().dtype.itemsize == size


def test_labels_of_another_file_are_copied(tmp_path, pack):
    other = tmp_path / "other.cells"
    write_pack(other, [(entry.record, entry) for entry in salvage(pack).values()], 3)
    written = {record["key"]: (record, labels) for record, labels in CELLS}
    assert all(same(found, written[key]) for key, found in content(read_pack(other)).items())


def test_no_flipped_byte_changes_the_content_silently(pack):
    written = {record["key"]: (record, labels) for record, labels in CELLS}
    whole = pack.read_bytes()
    aside = pack.with_name(pack.name + ".damaged")
    for place in range(len(whole)):
        for bit in (1, 128):
            damaged = bytearray(whole)
            damaged[place] ^= bit
            pack.write_bytes(damaged)
            kept = content(salvage(pack).values())
            assert all(same(found, written[key]) for key, found in kept.items()), place
            assert count_errors(pack) in (0, 1), place
            try:
                found = content(read_pack(pack))
            except DamagedFile as error:
                assert str(pack) in str(error) and "Fix: " in str(error)
                assert aside.read_bytes() == damaged
                aside.unlink()
                continue
            # The flipped byte is in the labels, so the damage is reported when they are read.
            assert list(found) == ["a", "b"], place
            assert all(same(found[key], written[key]) for key in found), place


def test_no_truncated_file_is_an_output(pack):
    whole = pack.read_bytes()
    for length in range(len(whole)):
        pack.write_bytes(whole[:length])
        assert count_errors(pack) == 0
        kept = content(salvage(pack).values())
        assert all(np.array_equal(labels, dict(zip("abc", (c[1] for c in CELLS), strict=True))[key])
                   for key, (_, labels) in kept.items() if labels is not None)  # fmt: skip
        with pytest.raises(DamagedFile):
            read_pack(pack)
    pack.write_bytes(whole + b"x")
    with pytest.raises(DamagedFile, match="is damaged and now lies in"):
        read_pack(pack)
    # A second read reports the same error.
    with pytest.raises(DamagedFile, match="is damaged and now lies in"):
        read_pack(pack)
    pack.write_bytes(whole + whole[len(b"fairclust cells 1\n") :])
    with pytest.raises(DamagedFile):
        read_pack(pack)


def append(output, *cells):
    """Write cells as a job does, and return its working file."""
    before = set(files_beside(output))
    file = WorkingFile(output)
    for cell in cells:
        file.add(*cell)
    # The cells are with the operating system already, so they survive if the process is killed now.
    path = next(path for path in files_beside(output)[2:] if path not in before)
    assert list(salvage(path)) == list(dict.fromkeys(record["key"] for record, _ in cells))
    file.close()
    return path


def test_a_working_file_with_a_torn_end_keeps_the_cells_before_it(tmp_path):
    path = append(tmp_path / "k3.cells", CELLS[0], CELLS[2])
    whole = path.read_bytes()
    first = len(whole) - len(
        cell_store._entry_bytes(b"CELL", CELLS[2][0], cell_store._pack_labels(CELLS[2][1]))
    )
    for length in (0, 5, first, first + 1, first + 30, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert list(salvage(path)) == (["a"] if length >= first else []), length
    # A disk that lost power may leave zeros.
    path.write_bytes(whole + bytes(100))
    assert list(salvage(path)) == ["a", "c"]


def test_every_job_has_a_working_file_of_its_own_and_the_later_cell_wins(tmp_path):
    output = tmp_path / "k3.cells"
    first = WorkingFile(output)
    second = WorkingFile(output)
    first.add(record("a", "error"), None)
    second.add(record("a"), np.array([1, 0]))
    first.add(record("b"), None)
    paths = files_beside(output)[2:]
    assert len(paths) == 2
    assert [list(salvage(path)) for path in paths] == [["a", "b"], ["a"]]
    assert find_cells(output)["a"].record["status"] == "ok"
    assert set(find_cells(output)) == {"a", "b"}
    first.close()
    second.close()
    assert count_errors(paths[0]) == 0
    with pytest.raises(DamagedFile):
        read_pack(paths[0])


def test_a_missing_file_has_no_cells(tmp_path):
    assert salvage(tmp_path / "none") == {}
    assert count_errors(tmp_path / "none") == 0
    with pytest.raises(FileNotFoundError):
        read_pack(tmp_path / "none")


def test_atomic_write_leaves_the_old_file_when_the_body_fails(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
