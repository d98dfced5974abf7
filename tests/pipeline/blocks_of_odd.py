"""Runs of blocks of the misbehaving methods, without Snakemake."""

from dataclasses import replace

from fairclust.pipeline.blocks import Block, Grid, Request
from fairclust.pipeline.cell_store import read_record
from fairclust.pipeline.fit_block import Setup, run_block

LIMITS = {"cell_seconds": 30.0, "cell_memory_mb": 4000.0}


def block(*hows, seeds=(0,), k=3, seed=None):
    return Block("toy", "odd", k, (Grid({}, {"how": list(hows)}, tuple(seeds)),), seed)


def run(folder, data, block, *, fingerprint="f1", metrics=("balance", "sse"), scorer="s1", **changes):
    """Run a block, and return the records of its cells."""
    plain = Setup(data, None, folder, [], LIMITS, {"dunn_max_rows": 0}, 1)
    request = Request("odd_methods.Odd", fingerprint, tuple(metrics), scorer)
    return run_block(block, request, replace(plain, **changes))


def stored(folder):
    """Return the records of all cells in a folder of results."""
    return [read_record(path) for path in folder.glob("cells/*/*.cell")]
