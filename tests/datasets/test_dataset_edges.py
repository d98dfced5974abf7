"""Graph data sets from edges and nodes and from a generator, on disk and in the pipeline's jobs."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from pydantic import ValidationError
from small_files import prepare_files

from fairclust.datasets import DatasetError, Generated
from fairclust.datasets.edges import largest_piece
from fairclust.datasets.msbm import make_msbm
from fairclust.datasets.store import load_graph, save_prepared
from fairclust.pipeline.data import build_graph
from fairclust.pipeline.fits import Request, fit_grids
from fairclust.pipeline.scores import read_fits

# The graph has a square with a tail, a separate pair and a single node. e-e is a loop, and b-a repeats an edge.
EDGES = "from,to,kind\na,b,1\nb,c,1\nc,d,1\nd,a,1\nd,e,1\nb,a,1\ne,e,1\nx,y,1\na,z,0\n"
NODES = "who,sex\na,f\nb,m\nc,f\nd,m\ne,f\nx,m\ny,m\nz,f\n"


def prepare(tmp_path, lines=EDGES, nodes=NODES, **spec):
    fields = {
        "title": "Demo",
        "source": "edges",
        "drop_rows": {"kind": [0]},
        "edges": {"ends": ["from", "to"], "node": "who"},
        "sensitive": {"column": "sex", "source": "nodes"},
        "n_clusters": 2,
        **spec,
    }
    return prepare_files(tmp_path, "demo", fields, {"edges": lines, "nodes": nodes})


def test_largest_piece(tmp_path):
    ds = prepare(tmp_path)
    ring = np.zeros((5, 5))
    for a, b in ((0, 1), (1, 2), (2, 3), (3, 0), (3, 4)):
        ring[a, b] = ring[b, a] = 1
    assert_array_equal(ds.W.toarray(), ring)
    assert_array_equal(ds.groups, [0, 1, 0, 1, 0])
    assert ds.group_names == ("f", "m")
    assert ds.X.shape == (5, 0) and ds.feature_names == ()
    assert ds.card["scaling"] == []
    assert ds.card["rows_read"] == 8
    assert ds.card["dropped"] == [
        {"column": "kind", "value": "0", "rows": 1},
        {"column": "piece", "value": "not the largest", "rows": 3},
    ]
    stored = sp.csr_array(np.ones((5, 5)))
    ring[3] = ring[:, 3] = 0
    stored.data[:] = ring.ravel()
    assert_array_equal(largest_piece(replace(ds, W=stored)).groups, [0, 1, 0])


def test_small_groups_are_left_out_with_their_nodes(tmp_path):
    nodes = NODES.replace("c,f", "c,o")
    ds = prepare(
        tmp_path,
        nodes=nodes,
        lines=EDGES + "b,e,1\n",
        edges={"ends": ["from", "to"], "node": "who", "min_group": 2},
    )
    # Without c the edges are a-b, d-a, d-e and b-e.
    assert_array_equal(ds.W.toarray(), [[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]])
    assert ds.group_names == ("f", "m")
    assert {"column": "sex", "value": "o", "rows": 1} in ds.card["dropped"]


@pytest.mark.parametrize(
    ("error", "changes", "message"),
    [
        (DatasetError, {"nodes": NODES + "a,f\n"}, r"the node 'a' is listed twice"),
        (DatasetError, {"edges": {"ends": ["from", "to"], "node": "who", "min_group": 9}}, "too little data"),
        (
            DatasetError,
            {"lines": EDGES + "a,q,1\n"},
            r"'edges.csv'.*edges end at nodes that .*found 'q', 1 such edge in all",
        ),
        (ValidationError, {"features": ["kind"]}, "a graph has no features"),
        (ValidationError, {"scale": "l2"}, "a graph has no scale"),
        (ValidationError, {"sensitive": {"column": "sex"}}, "a graph needs 'sensitive.source'"),
    ],
)
def test_errors_say_what_to_do(tmp_path, error, changes, message):
    with pytest.raises(error, match=message):
        prepare(tmp_path, **changes)


def test_jobs_hand_the_graph_on_and_skip_methods_on_points(tmp_path):
    save_prepared(prepare(tmp_path), tmp_path / "data")
    build_graph(tmp_path / "data", tmp_path / "graph", n_neighbors=5)
    assert load_graph(tmp_path / "graph").nnz == 10

    def run(cls, graph, **params):
        grid = {"n_clusters": 2, "params": params, "axes": {}, "seeds": [0]}
        names = {"dataset": "demo", "method": "m", "class_path": cls, "code": "f", "scorer": "s"}
        metrics = {2: ["balance", "sse", "ncut"]}
        request = Request(**names, grids=[grid], metrics=metrics, cell_seconds=60.0, cell_memory_mb=4000.0)
        out, cache = tmp_path / "m.parquet", tmp_path / "cache"
        fit_grids(request, out, data=tmp_path / "data", graph=graph, cache=cache)
        return read_fits(out).iloc[0]

    for cls in ("fairclust.methods.FairSpectralClustering", "fairclust.methods.VariationalFairNCut"):
        found = run(cls, tmp_path / "graph", affinity="precomputed")
        assert found.status == "ok", found.reason
        assert found.ncut > 0
        assert np.isnan(found.sse)
        counts = json.loads(found.counts)
        assert sum(map(sum, counts.values())) == 5
        assert list(counts) == ["f", "m"]
    points = run("fairclust.methods.KMeans", None)
    assert points.status == "skipped"
    assert "the data set is a graph" in points.reason


def test_block_model_has_its_probabilities():
    made = make_msbm(1500, n_clusters=3, n_groups=2, rates=(10, 7, 4, 1), seed=3)
    assert isinstance(made, Generated) and made.W is not None and made.truth is not None
    W = made.W.toarray()
    assert_array_equal(W, W.T)
    assert W.diagonal().sum() == 0 and set(np.unique(W)) == {0.0, 1.0}
    cell = 2 * made.truth + made.groups
    assert_array_equal(np.bincount(cell), 250)
    density = np.array([[W[cell == a][:, cell == b].sum() for b in range(6)] for a in range(6)])
    density /= np.where(np.eye(6, dtype=bool), 250 * 249, 250 * 250)
    unit = (np.log(1500) / 1500) ** (2 / 3)
    for a in range(6):
        for b in range(6):
            rate = [[10, 4], [7, 1]][a // 2 != b // 2][a % 2 != b % 2]
            assert density[a, b] == pytest.approx(rate * unit, rel=0.08)
