"""The data of a paper's tables, claims and figures, and what the checks of claims read from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import ClaimSpec, ProgramSpec, TableSpec
from fairclust.pipeline.reported import NO_VALUES, load_programs, load_reported
from fairclust.pipeline.scores import load_cells
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
    cells: pd.DataFrame  # from `pipeline.scores.load_cells`, as are the steps
    steps: pd.DataFrame
    names: Names
    # The values of published programs, from `pipeline.reported.load_programs`.
    programs: pd.DataFrame = field(default_factory=pd.DataFrame)
    planes: Mapping[str, Path] = field(default_factory=dict)  # data set to the folder of its unscaled points
    paper: str = ""
    title: str = ""  # the paper's short name


def load_material(paper: str, product: Mapping[str, Any], inputs: Any) -> Material:
    """The data of a product of a paper, from `Plan.product` and the inputs of its rule."""
    cells, steps = load_cells(inputs.fits, product["asked"])
    files = list(inputs.get("reported", []))
    programs = {name: ProgramSpec.model_validate(of) for name, of in product["programs"].items()}
    return Material(
        tables={name: TableSpec.model_validate(of) for name, of in product["tables"].items()},
        reported=load_reported(files[0]) if files else NO_VALUES,
        cells=cells,
        steps=steps,
        names=Names(**product["names"]),
        programs=load_programs(files[1], programs) if files[1:] else pd.DataFrame(),
        planes={Path(folder).name: Path(folder) for folder in inputs.get("unscaled", [])},
        paper=paper,
        title=product["title"],
    )


@dataclass(frozen=True)
class Case:
    """A claim at one data set and one K (or every K), which a check tests."""

    claim: ClaimSpec
    dataset: str
    n_clusters: int | None
    material: Material

    @property
    def metrics(self) -> list[str]:
        """The metrics of the claim, or else the sum of squares."""
        return list(self.claim.metrics) or ["sse"]

    def name(self, method: str) -> str:
        """The label of a method."""
        return self.material.names.method(method)

    def number(self, option: str, default: float) -> float:
        """An option of the claim."""
        return float(self.claim.options.get(option, default))

    def cells(self, method: str, lam_option: str = "lam") -> pd.DataFrame:
        """The cells of a method with status 'ok', with the lambda and the parameters that the claim names."""
        at, shown = cells_of(self.material.cells, self.dataset, method, self.n_clusters), self.name(method)
        at = at[at.sweep == self.claim.sweep]
        if at.empty:
            raise CannotTest(f"{shown} is {NOT_RUN}")
        lam = self.number(lam_option, math.nan) if at.lam.notna().any() else math.nan
        params = (self.claim.options.get("settings") or {}).get(method, {})
        if not math.isnan(lam) or params:
            choice = choose_printed(at, lam, params)
            if not choice.n_ok:
                raise CannotTest(f"{shown}: {choice.note}")
            at = at[at.params.isin(choice.cells.params)]
        ok = at[at.status == "ok"]
        if ok.empty:
            raise CannotTest(f"{shown}: {choose(at).note}")
        return ok

    def whole_cells(self, method: str, lam_option: str = "lam") -> pd.DataFrame:
        """The cells that use all clusters, of the settings in which at least half of the starts do.

        A single cluster is perfectly fair, so that a method that collapses would reach every level.
        """
        cells = self.cells(method, lam_option)
        empty = cells.n_nonempty < cells.n_clusters
        mostly = empty.groupby([cells.params, cells.n_clusters]).transform("mean") <= 0.5
        found = cells[~empty & mostly]
        if found.empty:
            raise CannotTest(f"{self.name(method)} leaves clusters empty, in most starts of every setting")
        return found

    def histories(self, columns: list[str]) -> list[pd.DataFrame]:
        """The histories of the methods' fits that have the columns at two or more steps, in the order of the steps."""
        found = []
        for column in columns:
            if column not in self.material.steps:
                raise CannotTest(f"this run has no history of {column!r}")
        for method in self.claim.methods:
            of = self.material.steps[self.material.steps.key.isin(self.cells(method).key)]
            fits = of.dropna(subset=columns).groupby("key", sort=False)
            found += [one.sort_values("step") for _, one in fits if len(one) > 1]
        if not found:
            raise CannotTest(f"no fit has a history of {', '.join(columns)} with two or more steps")
        return found

    def program_times(self) -> list[str]:
        """The times that the paper reports and those of its published programs, as a text for each data set.

        The option `programs_on` maps data sets to methods; the default is the own data set with the claim's methods.
        Only times with the own K count, if there are any.
        """
        words = []
        asked = self.claim.options.get("programs_on", {self.dataset: self.claim.methods})
        for dataset, methods in asked.items():
            told = []
            for method in methods:
                rows = self._rows(self.material.reported, dataset, method)
                values = rows.value[rows.metric == "seconds"].dropna()
                name = self.name(method)
                if len(values):
                    told.append(f"{name} {_seconds(values)} s as the paper reports")
                if not self.material.programs.empty:
                    runs = self._rows(self.material.programs.dropna(subset="seconds"), dataset, method)
                    for program, seconds in runs.groupby("program", sort=False).seconds:
                        told.append(f"{name} {_seconds(seconds)} s by the published program {program}")
            words += [f"on {self.material.names.dataset(dataset)}: {', '.join(told)}"] if told else []
        return words

    def _rows(self, values: pd.DataFrame, dataset: str, method: str) -> pd.DataFrame:
        rows = values[(values.dataset == dataset) & (values.method == method)]
        same_k = rows[rows.n_clusters == self.n_clusters]
        return same_k if len(same_k) else rows


def _seconds(values: pd.Series) -> str:
    ends = (values.min(), values.max())
    low, high = (f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in ends)
    return low if low == high else f"{low} to {high}"
