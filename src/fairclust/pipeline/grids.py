"""Fits as plain data: K, settings, seeds, random states. Fit jobs import this and not the specifications."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, and with 10 and 10.0 written alike."""

    def plain(item: Any) -> Any:
        if isinstance(item, dict):
            return {str(k): plain(v) for k, v in item.items()}
        if isinstance(item, list | tuple):
            return [plain(v) for v in item]
        return float(item) if isinstance(item, int) and not isinstance(item, bool) else item

    return json.dumps(plain(value), sort_keys=True)


@dataclass(frozen=True)
class Cell:
    """One fit: K, resolved parameters and a seed."""

    n_clusters: int
    params: dict[str, Any]
    seed: int
    random_state: int

    def key(self, *, data_hash: str, class_path: str, code: str) -> str:
        """Name of the fit in the cache: a hash of the data, the code and the parameters."""
        what = {"data": data_hash, "class": class_path, "source": code, "k": self.n_clusters}
        what |= {"params": self.params, "seed": self.seed, "random_state": self.random_state}
        return hashlib.sha256(canonical_json(what).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Grid:
    """Settings of a method at a K, with their seeds, as one experiment asks for them."""

    n_clusters: int
    params: Mapping[str, Any]
    axes: Mapping[str, list[Any]]
    seeds: tuple[int, ...]

    def settings(self) -> Iterator[dict[str, Any]]:
        """Every combination, in the order of the axes."""
        for point in itertools.product(*self.axes.values()):
            yield {**self.params, **dict(zip(self.axes, point, strict=True))}

    def __len__(self) -> int:
        return math.prod(map(len, self.axes.values())) * len(self.seeds)


def cells_of_grids(dataset: str, grids: Iterable[Grid]) -> list[Cell]:
    """The fits of some grids without duplicates: K by K, settings in the order of the grids, then the seeds."""
    by_k: dict[int, dict[tuple[str, int], Cell]] = {}
    for grid in grids:
        k = grid.n_clusters
        cells = by_k.setdefault(k, {})
        states = {seed: derive_random_state(dataset, k, seed) for seed in grid.seeds}
        for params in grid.settings():
            text = canonical_json(params)
            for seed in grid.seeds:
                cells.setdefault((text, seed), Cell(k, params, seed, states[seed]))
    return [cell for cells in by_k.values() for cell in cells.values()]


def derive_random_state(dataset: str, n_clusters: int, seed: int) -> int:
    """The random state of a fit, in [0, 2**31), which all methods and lambdas share."""
    digest = hashlib.sha256(f"{dataset}|{n_clusters}|{seed}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
