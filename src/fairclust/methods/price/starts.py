"""Which of several starts continue with exact prices, and which of these runs is kept.

Steps with rough prices, at a higher temperature, take less time and tell good centres from bad ones. The search goes on
from the best of the starts with such steps. In all functions, ``criterion_of(sizes, n_clusters=K)`` is the criterion
for groups of these sizes, and ``run_of(points, criterion, start, multipliers, n_steps, **options)`` makes a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairclust.kernels.points import TiledPoints
from fairclust.methods.price.rounding import round_prices
from fairclust.methods.price.tables import WORST
from fairclust.solvers.alternation import Prototypes, Run
from fairclust.solvers.criteria import Criterion, Work
from fairclust.solvers.prices import Prices, lower_bound, rough_level, solve, temperature_unit
from fairclust.solvers.search import PARENTS, Search, n_split, rank

# Without a search, starts take so many steps with rough prices, and so many of them continue.
_ROUGH_STEPS, KEPT = 4, 3
# Rough prices have a lower bound that is too low by at most this part of it, at the centres of a start.
_ROUGH_GAP = 2e-3
# Factor for `tol` of runs with rough prices, which are many and continue if they are good.
_ROUGH_TOL = 30
# The seconds of `Work` that the search may take in addition to the passes over the points.
_SEARCH_WORK = 1.0
# After the search, only runs continue whose costs are within this fraction of the cheapest. The rough prices of few
# rows are far off, so that a smaller fraction loses the best run.
_CLOSE = 1e-2
# With fewer points for each cell of the table, labels within the bounds can cost much more than the soft assignment,
# and runs are compared by their labels.
_FEW_FOR_PRICES = 200
# A run is compared with a cheaper one if it can save more than this fraction.
_WORTH = 2e-3

# Centres and multipliers, which may be None.
Starts = Sequence[tuple[Prototypes, Any]]


def _rough_options(
    points: TiledPoints, criterion: Criterion, start: Prototypes, patience: float = 1.0
) -> dict[str, float]:
    return {"rough": rough_level(points, criterion, start, _ROUGH_GAP / patience), "of_tol": _ROUGH_TOL}


def best_starts(
    points: TiledPoints, criterion_of: Callable[..., Criterion], starts: Starts, run_of: Callable[..., Run]
) -> list[Run]:
    """Runs from the best of these centres and multipliers, the cheapest first."""
    criterion = criterion_of(points.group_sizes)
    options = _rough_options(points, criterion, starts[0][0])
    runs = [run_of(points, criterion, *start, _ROUGH_STEPS, **options) for start in starts]
    return sorted(runs, key=rank)[:KEPT]


def searched(
    points: TiledPoints,
    criterion_of: Callable[..., Criterion],
    starts: Starts,
    run_of: Callable[..., Run],
    rng: np.random.RandomState,
    n_joined: float,
) -> tuple[list[Run], list[Run]]:
    """The runs that the search finds from the best of these, and those that it crosses, the cheapest first.

    The more rows are joined in a point, the less time a step takes. The search then goes on for longer, and its prices
    are less rough.
    """
    patience = n_joined**0.5
    work, numbers = Work(extra=_SEARCH_WORK), (points.n_clusters, *n_split(points))
    criteria = {n: replace(criterion_of(points.group_sizes, n_clusters=n), work=work) for n in numbers}
    options = _rough_options(points, criterion_of(points.group_sizes), starts[0][0], patience)

    def run(points: TiledPoints, start: Prototypes, multipliers: Any, n_steps: int) -> Run:
        return run_of(points, criteria[points.n_clusters], start, multipliers, n_steps, **options)

    parents = sorted((run(points, *start, 1) for start in starts), key=rank)[:PARENTS]
    search = Search(points, run, rng, work.is_done, patience)
    split = search.breathe(parents)
    crossed = search.cross(split)
    best = crossed[0].last.objective
    return [run for run in crossed if run.last.objective <= best * (1 + _CLOSE)], split


def cheapest(
    points: TiledPoints, criterion: Criterion, runs: Sequence[Run], tol: float
) -> tuple[Run, Prices]:
    """The cheapest run with its prices, or with few points for each cell the one with the cheapest labels."""
    best: tuple[float, Run, Prices] | None = None
    few = points.n_samples < _FEW_FOR_PRICES * criterion.n_counted * points.n_clusters
    by_labels = few and len(runs) > 1 and not criterion.combined and points.weights is None
    for run in runs:
        if best is not None and run.last.objective >= best[0] * (1 - _WORTH):
            # The objective is a lower bound on the cost of this run.
            continue
        points.measure(run.prototypes.centers)
        prices = solve(points, criterion, run.last.state)
        # The lower bound alone is not enough, because it is too low for prices that are far from optimal.
        cost = max(prices.cost, lower_bound(points, criterion, prices))
        if by_labels:
            _, cost, counts = round_prices(points, criterion, prices)
            cost += WORST * temperature_unit(points) * float(criterion.excess(counts).max())
        # Starts with the same result differ by rounding errors, which must not choose between them.
        if best is None or cost < best[0] * (1 - tol):
            best = cost, run, prices
    assert best is not None
    return best[1:]
