"""Files of cells and outputs of fit jobs: whatever happens to a file, reading gives the written content or an error."""

import numpy as np
import pytest

from fairclust.pipeline.cell_store import (
    DamagedFile,
    cell_path,
    count_errors,
    read_labels,
    read_output,
    read_record,
    write_cell,
    write_output,
)

RECORD = {"key": "abcdef", "status": "ok", "x": 1.5, "history": [{"step": 0}]}
LABELS = np.array([0, 3, 1, 299], np.int64)
OUTPUT = [RECORD, {"key": "b", "status": "error"}, {"key": None, "status": "skipped"}]


@pytest.fixture
def cell(tmp_path):
    path = cell_path(tmp_path, "abcdef")
    write_cell(path, RECORD, LABELS)
    return path


@pytest.fixture
def output(tmp_path):
    path = tmp_path / "kmeans-k3.cells"
    write_output(path, OUTPUT)
    return path


def test_what_was_written_is_read(tmp_path, cell, output):
    assert cell == tmp_path / "cells/ab/abcdef.cell"
    assert read_record(cell) == RECORD
    np.testing.assert_array_equal(read_labels(cell), LABELS)
    write_cell(cell, RECORD, None)
    assert read_labels(cell) is None
    assert read_output(output) == OUTPUT
    assert count_errors(output) == 1


def damaged(path):
    """Yield the file cut at every length, with every byte changed, and empty."""
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place])
        yield
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x21]) + whole[place + 1 :])
        yield
    path.write_bytes(whole + b"x")
    yield


def test_a_damaged_cell_is_never_believed(cell):
    for _ in damaged(cell):
        record = read_record(cell)
        assert record in (None, RECORD)
        try:
            labels = read_labels(cell)
        except DamagedFile as error:
            assert str(cell) in str(error)
        else:
            np.testing.assert_array_equal(labels, LABELS)
            assert record == RECORD


def test_a_damaged_output_is_an_error_that_names_it(output):
    for _ in damaged(output):
        count_errors(output)  # reads the first line only
        try:
            found = read_output(output)
        except DamagedFile as error:
            assert str(output) in str(error) and "run the same command again" in str(error)
        else:  # numbers of the first line that nothing depends on
            assert found == OUTPUT


def test_files_that_do_not_exist(tmp_path):
    assert read_record(tmp_path / "none") is None
    assert count_errors(tmp_path / "none") == 0
    for read in (read_labels, read_output):
        with pytest.raises(DamagedFile, match=r"none is (missing|damaged)"):
            read(tmp_path / "none")


def test_an_interrupted_write_leaves_the_earlier_file(cell, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    before = cell.read_bytes()
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_cell(cell, {**RECORD, "x": 2.0}, LABELS)
    assert cell.read_bytes() == before
    assert [path.name for path in cell.parent.iterdir()] == [cell.name]
