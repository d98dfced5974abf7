"""From the configuration to fit jobs, each of which has several blocks, and to cells (one fit each)."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fairclust.pipeline.config import Config
from fairclust.pipeline.papers import ExperimentSpec, canonical_json

DEFAULT_SEEDS = 5
At = tuple[str, str, int]
"""A data set, a method and a K."""


@dataclass(frozen=True)
class Cell:
    """One fit: resolved parameters and a seed."""

    params: dict[str, Any]
    seed: int
    random_state: int

    def key(self, *, data_hash: str, class_path: str, fingerprint: str, n_clusters: int) -> str:
        """Name of the cell in the store; everything that the result depends on goes into it."""
        what = {"data": data_hash, "class": class_path, "source": fingerprint, "k": n_clusters, **vars(self)}
        return hashlib.sha256(canonical_json(what).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Grid:
    """Settings of a method with their seeds, as one experiment asks for them."""

    params: Mapping[str, Any]
    axes: Mapping[str, list[Any]]
    seeds: tuple[int, ...]

    def settings(self) -> Iterator[dict[str, Any]]:
        """Every combination, in the order of the axes."""
        for point in itertools.product(*self.axes.values()):
            yield {**self.params, **dict(zip(self.axes, point, strict=True))}


@dataclass(frozen=True)
class Block:
    """All cells of a data set, method and K; only those of one seed if all together would take too long."""

    dataset: str
    method: str
    n_clusters: int
    grids: tuple[Grid, ...] = field(compare=False)  # a cell of several experiments is fitted once
    seed: int | None = None  # the only seed of this block; None if it has all

    @property
    def name(self) -> str:
        """``k10`` or ``k10-s3``."""
        return f"k{self.n_clusters}" + ("" if self.seed is None else f"-s{self.seed}")

    @property
    def stem(self) -> str:
        """``dataset/method/k10``."""
        return f"{self.dataset}/{self.method}/{self.name}"

    @property
    def at(self) -> At:
        return self.dataset, self.method, self.n_clusters

    def cells(self) -> list[Cell]:
        """The cells without duplicates: settings in the order of the experiments, and the seeds of each setting."""
        found: dict[tuple[str, int], Cell] = {}
        seeds = (seed for grid in self.grids for seed in grid.seeds)
        states = {seed: derive_random_state(self.dataset, self.n_clusters, seed) for seed in seeds}
        for grid in self.grids:
            for params in grid.settings():
                text = canonical_json(params)
                for seed in grid.seeds if self.seed is None else (self.seed,):
                    found.setdefault((text, seed), Cell(params, seed, states[seed]))
        return list(found.values())

    def keyed_cells(self, data_hash: str, class_path: str, fingerprint: str) -> list[tuple[str, Cell]]:
        """The cells with their keys in the store, for the hash of what they fit and the fingerprint of their class."""
        what = {"data_hash": data_hash, "class_path": class_path, "fingerprint": fingerprint}
        return [(cell.key(**what, n_clusters=self.n_clusters), cell) for cell in self.cells()]


def derive_random_state(dataset: str, n_clusters: int, seed: int) -> int:
    """The random state of a cell, in [0, 2**31). It depends on data set, K and seed, and never on the order of cells.

    All methods and lambdas share it: with the same seed, they start from the same k-means++ picks.
    """
    digest = hashlib.sha256(f"{dataset}|{n_clusters}|{seed}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def estimated_minutes(config: Config, dataset: str, method: str, n_clusters: int, n_cells: int) -> float:
    """A rough estimate of the work, from the rows that the catalogue states (10,000 where it states none)."""
    rows = config.datasets[dataset].rows or 10_000
    per_million = config.methods[method].jobs.seconds_per_million
    return n_cells * per_million * rows / 1e6 * max(n_clusters, 5) / 10 / 60


def minutes_of(config: Config, blocks: Iterable[Block]) -> float:
    """The estimate for all cells of some blocks."""
    return sum(estimated_minutes(config, *block.at, count_cells(block)) for block in blocks)


def blocks_of(config: Config, papers: Collection[str]) -> list[Block]:
    """What some papers ask for, or with '*' the whole run, in the order in which they name it; not cut into seeds."""
    grids: dict[At, list[Grid]] = {}
    run = config.run
    asked: list[tuple[ExperimentSpec, Mapping[Any, list[str]]]] = [
        (experiment, run.only)
        for paper in run.papers
        if paper in papers or "*" in papers
        for experiment in config.papers[paper].experiments
    ]
    if "*" in papers:
        asked.append((ExperimentSpec.model_construct(datasets=run.datasets, methods=run.methods), {}))
    for experiment, only in asked:
        for dataset, method in itertools.product(experiment.datasets, experiment.methods):
            if dataset not in only.get("datasets", [dataset]) or method not in only.get("methods", [method]):
                continue
            stated = next((s for s in (run.seeds, experiment.seeds) if s is not None), DEFAULT_SEEDS)
            seeds = tuple(range(stated) if isinstance(stated, int) else stated)
            spec = config.settings(method, dataset, experiment.settings.get(method))
            grid = Grid(spec.params, spec.grid, seeds[:1] if config.methods[method].deterministic else seeds)
            own = [config.datasets[dataset].n_clusters]
            for k in run.n_clusters.get(dataset) or experiment.n_clusters or own:
                known = grids.setdefault((dataset, method, k), [])
                if grid not in known:
                    known.append(grid)
    return [Block(*at, tuple(of_block)) for at, of_block in grids.items()]


def plan_blocks(config: Config) -> list[Block]:
    """All blocks of a run. A block that would take longer than a job is cut into its seeds."""
    blocks = []
    for whole in blocks_of(config, "*"):
        seeds = sorted({seed for grid in whole.grids for seed in grid.seeds})
        if minutes_of(config, [whole]) <= config.jobs.minutes or len(seeds) == 1:
            blocks.append(whole)
            continue
        for seed in seeds:
            own = tuple(grid for grid in whole.grids if seed in grid.seeds)
            blocks.append(replace(whole, grids=own, seed=seed))
    return blocks


def plan_jobs(config: Config, blocks: Iterable[Block]) -> dict[str, list[Block]]:
    """The blocks of every fit job, by the job's place below the folder of fits, which is named after its first block.

    A job has at most `jobs.minutes` of work, unless a single block takes longer. Blocks of one data set are packed
    first. Methods with other inputs or resources are packed apart.
    """
    kinds = {
        name: canonical_json([method.input, method.jobs.model_dump(exclude={"seconds_per_million"})])
        for name, method in config.methods.items()
    }
    minutes = {block: minutes_of(config, [block]) for block in blocks}
    packs = [[block] for block in minutes]
    for several_datasets in (False, True):
        joined: list[list[Block]] = []
        for pack in packs:
            fitting = (
                other
                for other in joined
                if kinds[other[0].method] == kinds[pack[0].method]
                and (several_datasets or other[0].dataset == pack[0].dataset)
                and sum(minutes[block] for block in (*other, *pack)) <= config.jobs.minutes
            )
            other = next(fitting, None)
            if other is None:
                joined.append(pack)
            else:
                other += pack
        packs = joined
    return {f"{pack[0].dataset}/{pack[0].method}-{pack[0].name}": pack for pack in packs}


def count_cells(block: Block) -> int:
    """The number of cells of a block; a cell that several experiments ask for is counted for each of them."""
    return sum(
        math.prod(map(len, grid.axes.values())) * (len(grid.seeds) if block.seed is None else 1)
        for grid in block.grids
    )


def block_params(block: Block) -> dict[str, Any]:
    """What decides a block's cells, as plain data for digests."""
    return {"grids": [vars(grid) for grid in block.grids], "seed": block.seed}
