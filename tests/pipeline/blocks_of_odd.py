"""Runs of blocks of the misbehaving methods, without Snakemake."""

import pickle
from dataclasses import replace
from pathlib import Path

from fairclust.pipeline.blocks import Block, Grid
from fairclust.pipeline.cell_store import read_record
from fairclust.pipeline.fit_block import BlockFits
from fairclust.pipeline.job import Job, supervise

LIMITS = {"cell_seconds": 30.0, "cell_memory_mb": 4000.0}


def block(*hows, seeds=(0,), k=3, seed=None):
    return Block("toy", "odd", k, (Grid({}, {"how": list(hows)}, tuple(seeds)),), seed)


def run(
    folder, data, block, *, limits=LIMITS, fingerprint="f1", metrics=("balance", "sse"), scorer="s1", **more
):
    """Run a block as a job, and return the records of its cells."""
    asked = ("odd_methods.Odd", fingerprint, tuple(metrics), scorer)
    fits = BlockFits(block, data, None, folder, limits, *asked, dunn_max_rows=0, **more)
    folder.mkdir(exist_ok=True)
    params = {"fits": fits, "found": folder / "found"}
    log = str(folder / "job.log")
    message = supervise(Job("fit", {}, [], params, {}, {}, 1, log, str(Path.cwd()), {}), "blocks_of_odd:work")
    assert message == ""
    found = pickle.loads(params["found"].read_bytes())
    params["found"].unlink()
    if isinstance(found, Exception):
        raise found
    return found


def work(job):
    """What `run` does in the process of the job."""
    try:
        found = replace(job.params["fits"], watch=job.watch).run()
    except Exception as error:
        found = error
    job.params["found"].write_bytes(pickle.dumps(found))


def stored(folder):
    """Return the records of all cells in a folder of results."""
    return [read_record(path) for path in folder.glob("cells/*/*.cell")]
