import json

import numpy as np
import pytest

from fairclust.datasets.errors import DatasetError
from fairclust.datasets.store import CARD, GRAPH, load_graph, save_graph, write_card
from fairclust.kernels.graph import build_knn_graph


@pytest.fixture
def graph():
    return build_knn_graph(np.random.default_rng(0).normal(size=(50, 3)), 5)


def test_round_trip(graph, tmp_path):
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


def test_what_cannot_be_written_leaves_the_old_graph(graph, tmp_path):
    W, info = graph
    save_graph(tmp_path, W, info)
    with pytest.raises(TypeError):
        save_graph(tmp_path, 2 * W, {"rng": np.random.default_rng()})
    assert (load_graph(tmp_path)[0] != W).nnz == 0
    assert {path.name for path in tmp_path.iterdir()} == {GRAPH, CARD}


@pytest.mark.parametrize("damage", [None, b"", b"not a zip file", "truncate", "pickle", "keys", "edges"])
def test_no_graph(graph, tmp_path, damage):
    file = tmp_path / GRAPH
    if damage == "truncate":
        save_graph(tmp_path, *graph)
        file.write_bytes(file.read_bytes()[:-200])
    elif damage == "pickle":
        np.savez(file, indptr=np.array([None], dtype=object))
    elif damage == "keys":
        np.savez(file, indptr=np.zeros(1))
    elif damage == "edges":
        W, info = graph
        W.indices[0] = 10_000
        save_graph(tmp_path, W, info)
    elif damage is not None:
        file.write_bytes(damage)
    if damage not in (None, "truncate", "edges"):
        write_card(tmp_path, {"status": "ok", "graph": {}})
    with pytest.raises(DatasetError, match="Fix: delete the folder"):
        load_graph(tmp_path)


def test_flipped_bytes(graph, tmp_path):
    W, _ = graph
    save_graph(tmp_path, W[:5][:, :5], {"n_edges": 1})
    for file in (tmp_path / GRAPH, tmp_path / CARD):
        whole = file.read_bytes()
        for place in range(0, len(whole), 3):
            content = bytearray(whole)
            content[place] ^= 1 << place % 8
            file.write_bytes(content)
            with pytest.raises(DatasetError, match="Fix: delete the folder"):
                load_graph(tmp_path)
        file.write_bytes(whole)
