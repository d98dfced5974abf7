"""Types that the models of the configuration share."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, Field, StrictInt

from fairclust.datasets.spec import Spec

MAX_SEEDS = 10_000


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, and with 10 and 10.0 written alike."""

    def plain(item: Any) -> Any:
        if isinstance(item, dict):
            return {str(k): plain(v) for k, v in item.items()}
        if isinstance(item, list | tuple):
            return [plain(v) for v in item]
        if isinstance(item, int) and not isinstance(item, bool):
            return float(item)
        return item

    return json.dumps(plain(value), sort_keys=True)


def _check_seeds(value: int | list[int]) -> int | list[int]:
    many = value if isinstance(value, int) else len(value)
    if (value < 1) if isinstance(value, int) else (not value or min(value) < 0):
        raise ValueError("give a number of seeds of at least 1, or a list of seeds from 0 on")
    if many > MAX_SEEDS:
        raise ValueError(f"{many} seeds are more than the {MAX_SEEDS:,} that are allowed")
    return value


def _check_unique(values: list[Any]) -> list[Any]:
    seen = set()
    for value in values:
        text = canonical_json(value)
        if text in seen:
            raise ValueError(f"{value!r} occurs more than once")
        seen.add(text)
    return values


def _number_in(text: str) -> float | None:
    try:
        return float(text) if any(c.isdigit() for c in text) else None
    except ValueError:
        return None


def _is_quoted_number(value: Any) -> bool:
    return isinstance(value, str) and _number_in(value) is not None and yaml.safe_load(value) != value


def _check_plain(value: Any) -> Any:
    if isinstance(value, str) and not _is_quoted_number(value):
        # YAML 1.1 reads 1e5 as text: only 1.0e+5 is a number there.
        number = _number_in(value)
        value = value if number is None else number
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value!r} is not a finite number")
    try:
        canonical_json(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise ValueError(
            f"{str(value)[:60]!r} is neither number, text, boolean, list nor mapping; put it in quotes"
        ) from None
    return value


def _check_unquoted(value: Any) -> Any:
    if _is_quoted_number(value):
        raise ValueError(f"{value!r} is text because of its quotes; write the number without them")
    return value


Seeds = (
    Annotated[StrictInt, AfterValidator(_check_seeds)]
    | Annotated[list[StrictInt], AfterValidator(_check_unique), AfterValidator(_check_seeds)]
)
Names = Annotated[list[str], AfterValidator(_check_unique)]
Clusters = Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=1), AfterValidator(_check_unique)]
Plain = Annotated[Any, AfterValidator(_check_unquoted), AfterValidator(_check_plain)]
# An option may be a number in quotes, because the number of a paper's table is text.
Option = Annotated[Any, AfterValidator(_check_plain)]
Axis = Annotated[list[Plain], Field(min_length=1), AfterValidator(_check_unique)]


def seed_list(seeds: int | list[int]) -> list[int]:
    """The seeds themselves: 3 stands for 0, 1, 2."""
    return list(range(seeds)) if isinstance(seeds, int) else list(seeds)


class GridSpec(Spec):
    """Parameters of a method: fixed ones, and axes of which every combination is fitted."""

    params: dict[str, Plain] = Field(default_factory=dict)
    grid: dict[str, Axis] = Field(default_factory=dict)

    def over(self, below: GridSpec) -> GridSpec:
        """Lay this grid over another one. If both define a parameter, fixed or as an axis, this grid's wins."""
        grid = {k: v for k, v in {**below.grid, **self.grid}.items() if k not in self.params}
        params = {k: v for k, v in {**below.params, **self.params}.items() if k not in self.grid}
        # Both grids are checked already. Checking thousands of values again for every block would take seconds.
        return GridSpec.model_construct(params=params, grid=grid)
