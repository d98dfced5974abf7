"""From the configuration to blocks (one Snakemake job each) and cells (one fit each)."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import asdict, dataclass
from typing import Any

from fairclust.bench.config import Config, canonical_json
from fairclust.bench.fingerprint import class_fingerprint


@dataclass(frozen=True)
class Block:
    """All cells of a data set, method and K, or one part of them."""

    dataset: str
    method: str
    n_clusters: int
    part: int = 1
    n_parts: int = 1

    @property
    def stem(self) -> str:
        """``dataset/method/k10`` or ``dataset/method/k10-1of4``: the block's place below a results folder."""
        part = f"-{self.part}of{self.n_parts}" if self.n_parts > 1 else ""
        return f"{self.dataset}/{self.method}/k{self.n_clusters}{part}"


@dataclass(frozen=True)
class Cell:
    """One fit: resolved parameters and a seed."""

    params: dict[str, Any]
    seed: int
    random_state: int

    def key(self, *, data_hash: str, class_path: str, fingerprint: str, n_clusters: int) -> str:
        """Name of the cell in the store; everything that the result depends on goes into it."""
        what = {
            **asdict(self),
            "data": data_hash,
            "class": class_path,
            "source": fingerprint,
            "k": n_clusters,
        }
        return hashlib.sha256(canonical_json(what).encode()).hexdigest()[:24]


def derive_random_state(dataset: str, n_clusters: int, seed: int) -> int:
    """The random state of a cell, from what it is called and never from the order of cells.

    Methods and lambdas share it: with the same seed they start from the same k-means++ picks.

    Returns
    -------
    int
        In [0, 2**31).
    """
    digest = hashlib.sha256(f"{dataset}|{n_clusters}|{seed}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def blocks(config: Config) -> list[Block]:
    """All blocks of a run, parts apart."""
    return [
        Block(dataset, method, k, part, config.run.parts.get(dataset, 1))
        for dataset in config.run.datasets
        for method in config.methods_run(dataset)
        for k in config.clusters(dataset)
        for part in range(1, config.run.parts.get(dataset, 1) + 1)
    ]


def block_cells(config: Config, block: Block) -> list[Cell]:
    """Cells of a block: parameters in the grid's order, then seeds; every n-th of them in a part."""
    method = config.methods[block.method]
    spec = method.for_dataset(block.dataset)
    run = config.run if method.seeds is None else config.run.model_copy(update={"seeds": method.seeds})
    cells = [
        Cell(
            {**spec.params, **dict(zip(spec.grid, point, strict=True))},
            seed,
            derive_random_state(block.dataset, block.n_clusters, seed),
        )
        for point in itertools.product(*spec.grid.values())
        for seed in run.seed_list
    ]
    return cells[block.part - 1 :: block.n_parts]


def block_params(config: Config, block: Block) -> dict[str, Any]:
    """What the block's job is told, and nothing more: Snakemake reruns the job when it changes.

    Returns
    -------
    dict
        Plain JSON types: names, the class and its fingerprint, the cells, the limits.
    """
    method = config.methods[block.method]
    return {
        **asdict(block),
        "class": method.class_,
        "fingerprint": class_fingerprint(method.class_),
        "cells": [asdict(cell) for cell in block_cells(config, block)],
        "limits": config.limits.model_dump(),
    }
