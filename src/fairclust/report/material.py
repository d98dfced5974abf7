"""The data of a paper's tables, claims and figures, and what the checks of claims read from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from fairclust.pipeline.blocks import At
from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import ClaimSpec, TableSpec
from fairclust.pipeline.scores import cells_at as cells_of_blocks
from fairclust.report.selection import NOT_RUN, cells_of, choose, choose_printed


class ClaimError(ValueError):
    """A claim in a paper's file is not valid; the message names the key, and known values where there are some."""


class CannotTest(Exception):
    """This run lacks something that a check needs; the message says what."""


@dataclass(frozen=True)
class Material:
    """The data from which the tables, claims and figures of a paper are made."""

    tables: Mapping[str, TableSpec]  # the paper's tables by name
    # From `pipeline.reported.load_reported`; without rows if the paper has no such file.
    reported: pd.DataFrame
    cells: pd.DataFrame  # from `pipeline.scores.load_cells`
    steps: pd.DataFrame  # from `pipeline.scores.load_steps`
    names: Names
    # The values of published programs, from `pipeline.reported.load_programs`.
    programs: pd.DataFrame = field(default_factory=pd.DataFrame)
    planes: Mapping[str, Path] = field(default_factory=dict)  # data set to the folder of its unscaled points
    paper: str = ""
    title: str = ""  # the paper's short name

    def at(self, needs: Iterable[At]) -> Material:
        """The same material with the cells of some data sets, methods and K."""
        return replace(self, cells=cells_of_blocks(self.cells, needs))


@dataclass(frozen=True)
class Place:
    """A data set and a K, with the cells of all methods there."""

    dataset: str
    n_clusters: int | None
    cells: pd.DataFrame


def ran_cells(
    place: Place, method: str, material: Material, claim: ClaimSpec, lam_option: str = "lam"
) -> pd.DataFrame:
    """The cells of a method with status 'ok', with the lambda and the parameters that the claim names."""
    at = cells_of(place.cells, place.dataset, method)
    shown = material.names.method(method)
    if at.empty:
        raise CannotTest(f"{shown} is {NOT_RUN}")
    lam = real_option(claim, lam_option, math.nan)
    params = (claim.options.get("settings") or {}).get(method, {})
    if (not math.isnan(lam) and at.lam.notna().any()) or params:
        choice = choose_printed(at, lam if at.lam.notna().any() else math.nan, params)
        if not choice.n_ok:
            raise CannotTest(f"{shown}: {choice.note}")
        at = at[at.params.isin(choice.cells.params)]
    ok = at[at.status == "ok"]
    if ok.empty:
        raise CannotTest(f"{shown}: {choose(at).note}")
    return ok


def whole_cells(
    place: Place, method: str, material: Material, claim: ClaimSpec, lam_option: str = "lam"
) -> pd.DataFrame:
    """The cells of `ran_cells` that use all clusters, of the settings in which at least half of the starts do.

    A single cluster is perfectly fair, so that a method that collapses would reach every level.
    """
    cells = ran_cells(place, method, material, claim, lam_option)
    empty = cells.n_nonempty < cells.n_clusters
    mostly = empty.groupby([cells.params, cells.n_clusters]).transform("mean") <= 0.5
    found = cells[~empty & mostly]
    if found.empty:
        raise CannotTest(
            f"{material.names.method(method)} leaves clusters empty, in most starts of every setting"
        )
    return found


def histories_of(
    claim: ClaimSpec, place: Place, material: Material, columns: list[str]
) -> list[pd.DataFrame]:
    """The histories of the methods' fits that have the columns at two or more steps, in the order of the steps."""
    found = []
    for column in columns:
        if column not in material.steps:
            raise CannotTest(f"this run has no history of {column!r}")
    for method in claim.methods:
        cells = ran_cells(place, method, material, claim)
        steps = material.steps[material.steps.key.isin(cells.key)].dropna(subset=columns)
        found += [one.sort_values("step") for _, one in steps.groupby("key", sort=False) if len(one) > 1]
    if not found:
        raise CannotTest(f"no fit has a history of {', '.join(columns)} with two or more steps")
    return found


def program_times(claim: ClaimSpec, place: Place, material: Material) -> list[str]:
    """The times that the paper reports and those of its published programs, as a text for each data set.

    The option `programs_on` maps data sets to methods; the default is the place's data set with the claim's methods.
    Only times with the place's K count, if there are any.
    """
    words = []
    for dataset, methods in claim.options.get("programs_on", {place.dataset: claim.methods}).items():
        told = []
        for method in methods:
            name = material.names.method(method)
            rows = _of_method(material.reported, dataset, method, place)
            values = rows.value[rows.metric == "seconds"].dropna()
            told += [f"{name} {_seconds(values)} s as the paper reports"] if len(values) else []
            if not material.programs.empty:
                runs = _of_method(material.programs.dropna(subset="seconds"), dataset, method, place)
                for program, seconds in runs.groupby("program", sort=False).seconds:
                    told.append(f"{name} {_seconds(seconds)} s by the published program {program}")
        words += [f"on {material.names.dataset(dataset)}: {', '.join(told)}"] if told else []
    return words


def _of_method(values: pd.DataFrame, dataset: str, method: str, place: Place) -> pd.DataFrame:
    rows = values[(values.dataset == dataset) & (values.method == method)]
    same_k = rows[rows.n_clusters == place.n_clusters]
    return same_k if len(same_k) else rows


def _seconds(values: pd.Series) -> str:
    ends = (values.min(), values.max())
    low, high = (f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in ends)
    return low if low == high else f"{low} to {high}"


def metrics_of(claim: ClaimSpec) -> list[str]:
    return list(claim.metrics) or [str(claim.options.get("metric", "sse"))]


def metric_of(claim: ClaimSpec) -> str:
    return metrics_of(claim)[0]


def table_of(table: Any, tables: Mapping[str, TableSpec]) -> TableSpec:
    """A table by its name, or by its number in the paper."""
    by_number = {spec.number: spec for spec in tables.values()}
    # A table number can arrive as a number instead of a text.
    shown = f"{table:g}" if isinstance(table, float) else str(table)
    found = tables.get(shown) or by_number.get(shown)
    if found is None:
        raise ClaimError(f"there is no table {shown!r} (known: {', '.join(tables)})")
    return found


def sizes_of(claim: ClaimSpec) -> dict[str, float]:
    """The option `sizes` of a claim as a dictionary from method to size."""
    given = claim.options.get("sizes")
    if isinstance(given, list):
        given = dict(zip(claim.methods, given, strict=False))
    if not isinstance(given, dict) or len(given) < 3 or set(given) != set(claim.methods):
        raise ClaimError("sizes: give a size for each of three or more methods of the claim")
    if not all(isinstance(size, int | float) and size > 0 for size in given.values()):
        raise ClaimError("sizes: expected positive numbers")
    return {str(name): float(size) for name, size in given.items()}


def cells_at(cells: pd.DataFrame, dataset: str, n_clusters: int | None) -> pd.DataFrame:
    """The cells of a data set with one K, or with every K if it is None."""
    found = cells[cells.dataset == dataset]
    return found if n_clusters is None else found[found.n_clusters == n_clusters]


def real_option(claim: ClaimSpec, option: str, default: float) -> float:
    value: Any = claim.options.get(option, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ClaimError(f"option {option!r} is {value!r}, expected a number")
    return float(value)
