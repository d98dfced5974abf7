"""Runs of blocks of the misbehaving methods, without Snakemake."""

from fairclust.pipeline.blocks import Block, Grid
from fairclust.pipeline.cell_store import read_pack
from fairclust.pipeline.fit_block import run_block

LIMITS = {"cell_seconds": 30.0, "cell_memory_mb": 4000.0}


def block(*hows, seeds=(0,), k=3, seed=None):
    return Block("toy", "odd", k, (Grid({}, {"how": list(hows)}, tuple(seeds)),), seed)


def path_of(folder, block):
    return folder / "fits" / f"{block.stem}.cells"


def run(folder, data, block, **more):
    """Run a block, and return the records of its output."""
    output = path_of(folder, block)
    given = {
        "class_path": "odd_methods.Odd",
        "fingerprint": "f1",
        "data": data,
        "graph": None,
        "output": output,
        "elsewhere": [],
        "limits": LIMITS,
        "metrics": ["balance", "sse"],
        "score_options": {"dunn_max_rows": 0},
        "scorer": "s1",
        "threads": 1,
    }
    run_block(block, **{**given, **more})
    return [entry.record for entry in read_pack(output)]
