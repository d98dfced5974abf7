"""Damaged files and failed downloads in the jobs that fetch and prepare data, and the graphs of prepared data."""

import hashlib
import json

import pytest

from fairclust.datasets.errors import DatasetError
from fairclust.datasets.store import load_graph, read_card
from fairclust.pipeline.data import build_graph, download, prepare, require_sources
from fairclust.pipeline.fits import input_hash
from working_folder import FAR, table_of

TABLE = "sex,a,b\n" + "".join(f"{'fm'[i % 2]},{i * 7 % 31},{i * i % 17}\n" for i in range(40))
SOURCE = {**FAR, "file": "deep/far.csv"}


@pytest.fixture
def mirror(tmp_path):
    file = tmp_path / "mirror/deep/far.csv"
    file.parent.mkdir(parents=True)
    file.write_text(TABLE)
    return [str(tmp_path / "mirror")]


@pytest.fixture
def source(tmp_path, mirror):
    """Return the folder of a fetched source whose hash the catalogue does not know."""
    download("far", SOURCE, tmp_path / "far", mirror, must=False)
    return tmp_path / "far"


def prepared(source, **changes):
    folder = source.with_name("prepared")
    prepare("far", table_of("far") | changes, {"far": SOURCE}, [source], folder)
    return read_card(folder)


def test_a_fetched_file_is_prepared_and_has_a_graph(source):
    digest = json.loads((source / "source.json").read_text())["sha256"]
    assert digest == hashlib.sha256(TABLE.encode()).hexdigest()
    card = prepared(source)
    assert card["rows"] == 40 and card["columns"] == ["a", "b"]
    data, graph = source.with_name("prepared"), source.with_name("graph")
    build_graph(data, graph, n_neighbors=5)
    W, _ = load_graph(graph)
    assert W.shape == (40, 40) and (W - W.T).nnz == 0
    # A fit of the graph depends on the graph, too.
    first = input_hash(card, graph)
    assert first.startswith(card["data_hash"] + "+")
    build_graph(data, graph, n_neighbors=6)
    assert input_hash(card, graph) != first


def test_a_source_that_cannot_be_had_is_recorded_and_its_data_set_and_graph_are_skipped(tmp_path, mirror):
    folders = [tmp_path / "far", tmp_path / "near"]
    download("far", SOURCE, folders[0], [], must=False)
    assert json.loads((folders[0] / "source.json").read_text())["status"] == "unavailable"
    card = prepared(folders[0])
    assert card["status"] == "skipped" and "'deep/far.csv' could not be fetched" in card["reason"]
    build_graph(tmp_path / "prepared", tmp_path / "graph", n_neighbors=5)
    assert read_card(tmp_path / "graph")["reason"] == card["reason"]
    with pytest.raises(DatasetError, match="could not be fetched"):
        download("far", SOURCE, tmp_path / "must", [], must=True)
    download("near", SOURCE, folders[1], mirror, must=False)
    require_sources(folders[1:])
    fix = rf"Fix: snakemake --cores 1 --forcerun {folders[0]} -- download"
    with pytest.raises(DatasetError, match=rf"1 of 2 sources .* not be downloaded. {fix}\nsource 'far'"):
        require_sources(folders)


def test_data_that_cannot_be_prepared_are_skipped_with_the_reason(source):
    card = prepared(source, features=["a", "bb"])
    assert card["status"] == "skipped" and "did you mean 'b'" in card["reason"]
    made = {"title": "F", "n_clusters": 2, "generator": "nowhere:fail"}
    prepare("far", made, {}, [], source.with_name("prepared"))
    assert "No module named 'nowhere'" in read_card(source.with_name("prepared"))["reason"]
