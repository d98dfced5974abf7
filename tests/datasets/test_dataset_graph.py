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


def test_damaged_bytes(graph, tmp_path):
    W, _ = graph
    save_graph(tmp_path, W[:5][:, :5], {"n_edges": 1})
    for file in (tmp_path / GRAPH, tmp_path / CARD):
        whole = file.read_bytes()
        flips = (whole[:i] + bytes([whole[i] ^ 1 << i % 8]) + whole[i + 1 :] for i in range(0, len(whole), 3))
        for content in (b"", b"not a zip file", whole[:-200], *flips):
            file.write_bytes(content)
            with pytest.raises(DatasetError, match="Fix: delete the folder"):
                load_graph(tmp_path)
        file.write_bytes(whole)
