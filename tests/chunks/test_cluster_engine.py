"""Chunks that Dask workers read give the same results, bit for bit, for any number of workers and if one is lost."""

# ruff: noqa: E402
# The imports below need Dask, so the tests are skipped without it.
import os
import signal
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

distributed = pytest.importorskip("distributed")
import dask
from dask import array as da
from dask import dataframe as dd

from fairclust import ChunkError, KMeans, PriceFairKMeans, open_chunks
from fairclust.messages import UserError
from toys import make_grouped_blobs

N, K = 4000, 3
SMALL = {"chunk_rows": 400, "sample_rows": 1500}
QUIET = {"dashboard_address": None, "silence_logs": 50}
PRICES = PriceFairKMeans(K, tolerance=0.1, n_init=1, tol=1e-3, random_state=0)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    X, codes = make_grouped_blobs(n_samples=N, n_clusters=K, seed=5)
    np.save(folder / "X.npy", X)
    np.save(folder / "groups.npy", codes)
    return folder / "X.npy", folder / "groups.npy"


@pytest.fixture(scope="module")
def alone(rows):
    return fitted(rows)


@contextmanager
def workers(n_workers, processes=False):
    """Start workers with one thread each, by default in this process."""
    options = {"n_workers": n_workers, "threads_per_worker": 1, "processes": processes, **QUIET}
    with distributed.LocalCluster(**options) as started, distributed.Client(started) as client:
        yield client


@pytest.fixture
def client():
    with workers(2) as client:
        yield client


def fitted(rows, **options):
    return clone(PRICES).fit(open_chunks(*rows, **SMALL, **options))


def assert_same(one, other):
    np.testing.assert_array_equal(np.asarray(one.labels_), np.asarray(other.labels_))
    np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
    assert (one.cost_, one.gap_, one.violation_) == (other.cost_, other.gap_, other.violation_)


@pytest.mark.parametrize("n_workers", [1, 3])
def test_results_do_not_depend_on_the_number_of_workers(n_workers, rows, alone):
    with workers(n_workers) as client:
        assert_same(fitted(rows, client=client), alone)


def test_workers_that_live_on_read_a_replaced_file_again(rows, tmp_path, client):
    files = tmp_path / "X.npy", rows[1]
    X = np.load(rows[0])
    np.save(files[0], X)
    before = fitted(files, client=client)
    np.save(tmp_path / "new.npy", X[::-1] * 2)
    (tmp_path / "new.npy").replace(files[0])
    again = fitted(files, client=client)
    assert_same(again, fitted(files))
    assert again.cost_ > 2 * before.cost_


def test_arrays_in_memory_and_a_cluster_by_its_address(rows, alone, client):
    arrays = [np.load(path) for path in rows]
    with open_chunks(*arrays, **SMALL, client=client.scheduler.address) as table:
        assert_same(clone(PRICES).fit(table), alone)
    assert client.status == "running"


def test_labels_of_dask_arrays_and_data_frames(rows, client):
    X, codes = (np.load(path) for path in rows)
    blocks = da.from_array(X, chunks=(700, 2))
    model = KMeans(K, random_state=0).fit(blocks, sensitive_features=da.from_array(codes, chunks=500))
    labels = model.labels_
    assert isinstance(labels, np.ndarray) and labels.dtype == np.uint8
    apart = ((X[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    assert (labels == apart.argmin(axis=1)).mean() > 0.999
    frame = pd.DataFrame(X, columns=["x", "y", "z"]).assign(sex=np.array(["f", "m"])[codes])
    table = open_chunks(dd.from_pandas(frame, npartitions=3), "sex", sample_rows=1500)
    fair = PriceFairKMeans(K, tolerance=0.1, n_init=2, random_state=0).fit(table)
    assert fair.groups_.tolist() == ["f", "m"] and len(fair.labels_) == N
    assert fair.violation_ == 0
    assert (fair.predict(X, frame.sex) != fair.labels_).sum() == fair.n_rounded_


def test_collections_that_cannot_be_used(client):
    X = da.zeros((10, 2), chunks=(5, 2))
    for groups, message in (
        (np.zeros(10), "sensitive_features one column, in Dask too"),
        (da.zeros(9, chunks=5), "block 1: X has 5 rows, sensitive_features has 4"),
        (da.zeros(9, chunks=3), "pass the group of every row"),
    ):
        with pytest.raises(ChunkError, match=message):
            open_chunks(X, groups, client=client)
    with pytest.raises(ChunkError, match="must be a matrix of numbers"):
        open_chunks(X + 1j, da.zeros(10, chunks=5), client=client)
    frame = pd.DataFrame({"x": np.arange(4.0), "when": pd.Timestamp("2020-01-01"), "sex": [0, 1, 0, 1]})
    columns = "has the columns x, when, sex: pass the name of the column of groups"
    for sensitive, features, message in (
        ("sex", None, "partition|block [01]: a feature is not a number"),
        ("sex", ["when"], "must be a matrix of numbers"),
        ("age", ["x"], columns),
        (np.arange(4), ["x"], columns),
    ):
        with pytest.raises(ChunkError, match=message):
            open_chunks(dd.from_pandas(frame, npartitions=2), sensitive, features=features, client=client)
    frame["sex"] = ["f", None, "m", "f"]
    with pytest.raises(ChunkError, match=r"block 0, row 0 and after: .*missing"):
        KMeans(2).fit(open_chunks(dd.from_pandas(frame[["x", "sex"]], npartitions=2), "sex", client=client))
    X = da.where(da.arange(10, chunks=5)[:, None] == 7, np.nan, X)
    for rows in (X, da.ma.masked_equal(da.where(da.isnan(X), -9, X), -9)):
        with pytest.raises(ChunkError, match="block 1, row 2: feature 0 is nan"):
            KMeans(2).fit(open_chunks(rows, da.zeros(10, chunks=5), client=client))


def test_labels_of_a_collection_never_replace_a_file(rows, tmp_path, client):
    X, codes = (np.load(path, mmap_mode="r") for path in rows)
    blocks, groups = da.from_array(X, chunks=(1000, 2)), da.from_array(codes, chunks=1000)
    before = [path.read_bytes() for path in rows]
    for path in rows:
        with pytest.raises(ChunkError, match=f"labels: {path} exists, and a Dask collection does not tell"):
            open_chunks(blocks, groups, client=client, labels=path)
    assert [path.read_bytes() for path in rows] == before
    labels = tmp_path / "labels.npy"
    model = KMeans(K, random_state=0).fit(open_chunks(blocks, groups, client=client, labels=labels))
    np.testing.assert_array_equal(np.load(labels), model.labels_)


def test_labels_never_replace_the_file_of_the_scheduler(rows, alone, tmp_path, client):
    file = tmp_path / "scheduler.json"
    client.write_scheduler_file(str(file))
    before = file.read_text()
    with pytest.raises(UserError, match=r"labels: .* is read and would be overwritten"):
        open_chunks(*rows, client=str(file), labels=file)
    assert file.read_text() == before
    with open_chunks(*rows, **SMALL, client=str(file)) as table:
        assert_same(clone(PRICES).fit(table), alone)


def test_a_scheduler_that_is_not_there_is_named(rows):
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(ChunkError, match="there is no Dask scheduler with workers at tcp:"),
    ):
        open_chunks(*rows, client="tcp://127.0.0.1:1")


@pytest.mark.slow
def test_a_lost_worker_changes_nothing(rows, alone):
    """The result does not change if one of two processes is killed in the middle of a pass."""
    with workers(2, processes=True) as client, open_chunks(*rows, **SMALL, client=client) as table:
        run, done = table.engine.run, []

        def run_and_kill(*args, **options):
            for result in run(*args, **options):
                done.append(result)
                if len(done) == 75:
                    pid = next(iter(client.run(os.getpid).values()))
                    os.kill(pid, signal.SIGKILL)
                yield result

        table.engine.run = run_and_kill
        model = clone(PRICES).fit(table)
        assert len(done) > 75
    assert_same(model, alone)
