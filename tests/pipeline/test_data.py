"""Damaged files and failed downloads in the jobs that fetch and prepare data."""

import hashlib
import json
from types import SimpleNamespace

import pytest

from fairclust.datasets.store import read_card
from fairclust.pipeline.cell_store import DamagedFile
from fairclust.pipeline.prepare_jobs import download, prepare
from small import small_config
from working_folder import FAR, table_of

TABLE = "sex,a,b\n" + "".join(f"{'fm'[i % 2]},{i * 7 % 31},{i * i % 17}\n" for i in range(40))
CONFIG = small_config(
    sources={"far": {**FAR, "file": "deep/far.csv"}},
    datasets={"far": table_of("far")},
    run={"datasets": ["far"], "methods": ["m"]},
)


def fetch(folder, mirror):
    """Fetch the source into a folder, as a job does."""
    asked = {"mirrors": [str(mirror)], "again": ""}
    download(
        SimpleNamespace(wildcards={"source": "far"}, params={"asked": asked}, output=[folder], config=CONFIG)
    )


@pytest.fixture
def source(tmp_path):
    """Return the folder of a fetched source whose hash the catalogue does not know."""
    mirror = tmp_path / "mirror/deep/far.csv"
    mirror.parent.mkdir(parents=True)
    mirror.write_text(TABLE)
    fetch(tmp_path / "far", tmp_path / "mirror")
    return tmp_path / "far"


def prepared(source):
    folder = source.with_name("prepared")
    more = {"input": {"sources": [source]}, "params": {}, "output": [folder], "config": CONFIG}
    prepare(SimpleNamespace(wildcards={"dataset": "far"}, **more))
    return read_card(folder)


def test_a_fetched_file_is_prepared(source):
    digest = json.loads((source / "source.json").read_text())["sha256"]
    assert digest == hashlib.sha256(TABLE.encode()).hexdigest()
    assert prepared(source)["rows"] == 40


def test_a_fetched_file_that_has_changed_is_named(source):
    path = source / "deep/far.csv"
    for change in (lambda: path.write_text(TABLE.replace("16", "15")), path.unlink):
        change()
        with pytest.raises(DamagedFile) as caught:
            prepared(source)
        assert f"'{path}' is damaged" in str(caught.value)
        assert f"Fix: delete the folder '{source}' and run again" in str(caught.value)


def test_a_record_cannot_point_to_another_file(source, tmp_path):
    other = tmp_path / "secret.csv"
    other.write_text(TABLE.replace("a,b", "c,d"))
    record = json.loads((source / "source.json").read_text())
    (source / "source.json").write_text(json.dumps({**record, "path": "../secret.csv"}))
    assert prepared(source)["columns"] == ["a", "b"]


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '"x"', '{"status": "oj"}', '{"status": "ok"}', "\0" * 20]
)
def test_a_damaged_record_is_named(source, content):
    (source / "source.json").write_text(content)
    with pytest.raises(DamagedFile, match=rf"'{source}/source.json' is damaged. Fix: delete the folder"):
        prepared(source)
