"""A source that is fetched, prepared, and has a graph. tests/workflow/test_trouble.py has what cannot be had."""

import hashlib
import json

from fairclust.datasets.store import load_graph, read_card
from fairclust.pipeline.data import build_graph, download, prepare
from fairclust.pipeline.fits import input_hash
from working_folder import FAR, TABLE, table_of


def test_a_fetched_file_is_prepared_and_has_a_graph(tmp_path):
    file = tmp_path / "mirror/far/far.csv"
    file.parent.mkdir(parents=True)
    file.write_text(TABLE)
    source, data, graph = (tmp_path / name for name in ("far", "prepared", "graph"))
    download("far", FAR, source, [str(tmp_path / "mirror")], stated=[], must=False)
    # The catalogue does not know the hash.
    digest = json.loads((source / "source.json").read_text())["sha256"]
    assert digest == hashlib.sha256(TABLE.encode()).hexdigest()
    prepare("far", table_of("far"), {"far": FAR}, [source], data)
    card = read_card(data)
    assert card["rows"] == 40 and card["columns"] == ["a", "b"]
    build_graph(data, graph, n_neighbors=5)
    W = load_graph(graph)
    assert W.shape == (40, 40) and (W - W.T).nnz == 0
    # A fit of the graph depends on the graph, too.
    first = input_hash(card, graph)
    assert first.startswith(card["data_hash"] + "+")
    build_graph(data, graph, n_neighbors=6)
    assert input_hash(card, graph) != first


def test_a_data_set_whose_generator_fails_is_skipped_with_the_reason(tmp_path):
    made = {"title": "F", "n_clusters": 2, "generator": "nowhere.fail"}
    prepare("made", made, {}, [], tmp_path / "made")
    assert "No module named 'nowhere'" in read_card(tmp_path / "made")["reason"]
