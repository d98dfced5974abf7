"""A fit by Dask workers on two nodes gives the labels of an undisturbed fit, although one node is lost meanwhile."""

# ruff: noqa: E402
# The imports below need Dask, so the tests are skipped without it.
import os
import subprocess
import sys

import numpy as np
import pytest
from slurm import ACCOUNT, NODES, wait_until

distributed = pytest.importorskip("distributed")

from fairclust import PriceFairKMeans, open_chunks
from toys import make_grouped_blobs

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]


def fit(table):
    return PriceFairKMeans(4, tolerance=0.1, n_init=2, random_state=0).fit(table)


def test_a_lost_node_changes_no_label(cluster, tmp_path):
    X, codes = make_grouped_blobs(n_samples=20_000, seed=1)
    rows = tmp_path / "X.npy", tmp_path / "groups.npy"
    for path, array in zip(rows, (X, codes), strict=True):
        np.save(path, array)
    cut = {"chunk_rows": 500, "sample_rows": 3000}
    alone = fit(open_chunks(*rows, **cut))

    file, processes = tmp_path / "scheduler.json", []

    def start(*command):
        env = {**os.environ, **cluster.env}
        processes.append(subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL))

    dask, common = (sys.executable, "-m", "dask"), ("--scheduler-file", str(file), "--no-dashboard")
    try:
        start(*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", *common)
        for node in NODES[:2]:
            srun = ("srun", "-A", ACCOUNT, "-J", "dask", "-w", node, "-n", "1", "--mem=1500")
            start(*srun, *dask, "worker", "--nthreads", "1", "--no-nanny", "--name", node, *common)
        wait_until(file.exists, 60, "the scheduler's file")
        with distributed.Client(scheduler_file=str(file)) as client:
            client.wait_for_workers(2, timeout=120)
            table = open_chunks(*rows, **cut, client=client)
            run, done = table.engine.run, []

            def run_and_lose(*args, **options):
                for result in run(*args, **options):
                    done.append(result)
                    if len(done) == 100:
                        cluster.lose_node(NODES[0])
                    yield result

            table.engine.run = run_and_lose
            model = fit(table)
            assert len(done) > 100
            left = client.scheduler_info()["workers"].values()
            assert [worker["name"] for worker in left] == [NODES[1]]
    finally:
        cluster.ask("scancel", "-n", "dask")
        for process in reversed(processes):
            process.kill()
            process.wait()
        if NODES[0] not in cluster.processes:
            cluster.start_node(NODES[0])
        wait_until(lambda: cluster.idle_nodes() == set(NODES), 60, "three idle nodes")
    np.testing.assert_array_equal(model.labels_, alone.labels_)
    np.testing.assert_array_equal(model.cluster_centers_, alone.cluster_centers_)
