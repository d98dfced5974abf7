"""The tables, figures and claims of a run, with the inputs and parameters of the rules that make them."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from fairclust.datasets.digest import content_digest
from fairclust.pipeline.blocks import At, block_params, blocks_of, plan_blocks, plan_jobs
from fairclust.pipeline.config import Config, ConfigError
from fairclust.pipeline.fingerprint import code_fingerprint
from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import ClaimSpec, FigureSpec, MatchSpec, PaperSpec, TableSpec

NO_PROBLEMS = "[]"
"""The content of a file of problems if everything could be made."""


def digest_of(value: Any) -> str:
    """Ten hexadecimal digits of a digest of plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:10]


def _ks(text: str) -> list[int] | None:
    """K of a reported value; None where the paper states none."""
    return [int(float(text))] if text else None


@cache
def _reported_rows(path: str) -> list[dict[str, str]]:
    """Rows of a CSV of reported values as text. The job that uses them checks the columns that are not checked here."""
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            rows = [{k: v or "" for k, v in row.items() if k} for row in csv.DictReader(file)]
    except (OSError, ValueError, csv.Error) as error:
        raise ConfigError(f"the reported values in {path} cannot be read: {error}") from None
    for line, row in enumerate(rows, 2):
        for name in ("table", "dataset", "method", "metric"):
            if not row.get(name):
                raise ConfigError(f"{path}: there is no {name!r} in line {line}")
        try:
            _ks(row.get("n_clusters", ""))
        except (ValueError, OverflowError):
            raise ConfigError(f"{path}: 'n_clusters' in line {line} is {row['n_clusters']!r}") from None
    return rows


@dataclass
class Product:
    """What a table, a figure or the claims of a paper need from the run."""

    needs: list[At] = field(default_factory=list)
    metrics: set[str] = field(default_factory=set)
    planes: list[str] = field(default_factory=list)  # data sets whose unscaled points it shows


class ReportInputs:
    """The blocks of a run, and everything that is made from their cells."""

    def __init__(self, config: Config, place: Path | None = None) -> None:
        self.config = config
        self.results = config.results
        # Where the results really lie. Snakemake puts the prefix of a module before every path of a rule itself.
        self.place = Path(config.results) if place is None else place
        self._blocks = {block.stem: block for block in plan_blocks(config)}
        self._jobs = plan_jobs(config, self._blocks.values())
        self._at = list(dict.fromkeys(block.at for block in self._blocks.values()))

    # Products

    @cached_property
    def tables(self) -> dict[tuple[str, str], Product]:
        """Every table of every paper of the run that has something to show, by paper and name."""
        found = {}
        for paper in self.config.run.papers:
            for name, spec in self.config.papers[paper].tables.items():
                product = self._table(paper, spec)
                if product.needs:
                    found[paper, name] = product
        return found

    @cached_property
    def figures(self) -> dict[tuple[str, str], Product]:
        """Every figure of every paper of the run that has something to show. Fronts have the paper 'fronts'."""
        found = {}
        for paper in self.config.run.papers:
            for name, spec in self.config.papers[paper].figures.items():
                product = self._figure(paper, spec)
                if product.needs:
                    found[paper, name] = product
        if self.config.report.fronts:
            for dataset in dict.fromkeys(block.dataset for block in self._blocks.values()):
                needs = [at for at in self._at if at[0] == dataset]
                found["fronts", dataset] = Product(needs, set(self.config.report.fronts))
        return found

    @cached_property
    def claims(self) -> dict[str, Product]:
        """What the claims of every paper of the run need."""
        found = {}
        for paper in self.config.run.papers:
            specs = self.config.papers[paper].claims
            product = Product()
            for spec in specs.values():
                one = self._claim(paper, spec)
                product.needs += [at for at in one.needs if at not in product.needs]
                product.metrics |= one.metrics
            if specs and product.needs:
                found[paper] = product
        return found

    def _table(self, paper: str, spec: TableSpec) -> Product:
        rows = [row for row in self._reported(paper) if row.get("table") == spec.number]
        metrics = {row["metric"] for row in rows} | set(spec.beside)
        if spec.match is not None:
            metrics |= {spec.match.fairness, spec.match.order}
        needs: dict[At, None] = {}
        for row in rows:
            for dataset in (row["dataset"], *spec.stand_ins.get(row["dataset"], ())):
                variants = spec.variants.get(row["method"], ())
                for method in filter(None, (row["method"], *variants, *spec.ours, spec.control)):
                    needs |= dict.fromkeys(
                        self._planned(paper, [dataset], [method], _ks(row.get("n_clusters", "")))
                    )
                if row["method"] == "data":
                    needs |= dict.fromkeys(self._planned(paper, [dataset], [], None)[:1])
        return Product(list(needs), metrics)

    def _figure(self, paper: str, spec: FigureSpec) -> Product:
        metrics = {spec.x, *spec.y}
        table = self.table_of(paper, spec.table)
        if table is not None and table.match is not None:
            metrics |= {table.match.fairness, table.match.order}
        planes = list(spec.datasets) if spec.points else []
        return Product(self._planned(paper, spec.datasets, spec.methods, spec.n_clusters), metrics, planes)

    def _claim(self, paper: str, spec: ClaimSpec) -> Product:
        found = Product(
            self._planned(paper, spec.datasets, spec.methods, spec.n_clusters),
            {*spec.metrics, *(v for v in spec.options.values() if isinstance(v, str))},
        )
        table = self.config.papers[paper].tables.get(str(spec.options.get("table", "")))
        if table is not None:
            shown = self._table(paper, table)
            found.needs += [at for at in shown.needs if at not in found.needs]
            found.metrics |= shown.metrics
        return found

    def table_of(self, paper: str, number: str) -> TableSpec | None:
        """The table of a paper that has this number, if any."""
        tables = self.config.papers[paper].tables.values()
        return next((table for table in tables if number and table.number == number), None)

    def _reported(self, paper: str) -> list[dict[str, str]]:
        spec = self.config.papers.get(paper)
        return _reported_rows(spec.reported) if spec and spec.reported else []

    def sources_of(self, paper: str) -> list[str]:
        """The papers whose cells a paper reads: its own and those of `cells_of`. The fronts read every cell."""
        spec = self.config.papers.get(paper)
        return ["*"] if spec is None else [paper, *spec.cells_of]

    @cache  # noqa: B019 - there is one object in a process
    def _own(self, paper: str) -> list[At]:
        return [block.at for block in blocks_of(self.config, self.sources_of(paper))]

    def _planned(
        self, paper: str, datasets: Iterable[str], methods: Iterable[str], ks: list[int] | None
    ) -> list[At]:
        wanted, listed = set(datasets), set(methods)
        return [
            at
            for at in self._own(paper)
            if at[0] in wanted and (not listed or at[1] in listed) and (ks is None or at[2] in ks)
        ]

    # Files

    def papers(self) -> list[str]:
        """The papers of the run that have something to show, and 'fronts' if the fronts of all data sets are drawn."""
        return list(
            dict.fromkeys([*(of for of, _ in self.tables), *self.claims, *(of for of, _ in self.figures)])
        )

    def needs_of(self, paper: str) -> list[At]:
        """The part of the run that the tables, figures and claims of a paper show."""
        shown = [product for (of, _), product in (*self.tables.items(), *self.figures.items()) if of == paper]
        shown += [self.claims[paper]] if paper in self.claims else []
        return list(dict.fromkeys(at for product in shown for at in product.needs))

    def shown_tables(self, paper: str) -> list[tuple[str, str]]:
        """Name and file of each table of a paper and of its claims, in three formats."""
        names = [name for of, name in self.tables if of == paper] + ["claims"] * (paper in self.claims)
        return [
            (name, f"{self.results}/tables/{paper}/{name}.{kind}")
            for name in names
            for kind in ("md", "csv", "tex")
        ]

    def shown_figures(self, paper: str) -> list[tuple[str, str]]:
        """Name and file of each figure of a paper, in every format."""
        return [
            (name, f"{self.results}/figures/{of}/{name}.{kind}")
            for of, name in self.figures
            if of == paper
            for kind in self.config.report.formats
        ]

    def table_files(self) -> list[str]:
        """Files of all tables, three for each."""
        return [file for paper in self.papers() for _, file in self.shown_tables(paper)] + self.board_files()

    def figure_files(self) -> list[str]:
        """Files of all figures."""
        return [file for paper in self.papers() for _, file in self.shown_figures(paper)]

    def board_files(self) -> list[str]:
        """Files of the overview and the scoreboard, if they are asked for."""
        names = ["overview"] * self.config.report.overview + ["scoreboard"] * bool(self.tables)
        return [f"{self.results}/tables/{name}.{kind}" for name in names for kind in ("md", "csv", "tex")]

    def page_files(self) -> list[str]:
        """The HTML page, and the archive that contains it."""
        names = ["report/index.html", "report.zip"] if self.config.report.html else []
        return [f"{self.results}/{name}" for name in names]

    def verdicts(self, paper: str) -> list[str]:
        """Files of a paper's verdicts, one for each table."""
        return [f"{self.results}/tables/{of}/{name}.verdicts.csv" for of, name in self.tables if of == paper]

    def claim_files(self, paper: str) -> list[str]:
        return [f"{self.results}/tables/{paper}/claims.csv"] if paper in self.claims else []

    # Parameters of the report

    def names(
        self, needs: Iterable[At], rows: Iterable[Mapping[str, str]] = (), claims: Iterable[ClaimSpec] = ()
    ) -> Names:
        """Titles, labels and looks of data sets and methods.

        Data sets and methods of reported values (`rows`) and of claims need not be in the run.
        """
        needs, rows, claims = list(needs), list(rows), list(claims)
        shown = dict.fromkeys([*(at[0] for at in needs), *(row["dataset"] for row in rows)])
        methods = dict.fromkeys([*(at[1] for at in needs), *(row["method"] for row in rows)])
        for claim in claims:
            shown |= dict.fromkeys(claim.datasets)
            methods |= dict.fromkeys(claim.methods)
        run = {block.method for block in self._blocks.values()}
        datasets = {name: self.config.datasets[name] for name in shown if name in self.config.datasets}
        known = {name: self.config.methods[name] for name in methods if name in self.config.methods}
        looks = {name: i for i, name in enumerate(name for name in self.config.methods if name in run)}
        return Names(
            datasets={
                name: spec.title + (f" ({spec.shown})" if spec.shown else "")
                for name, spec in datasets.items()
            },
            methods={name: spec.label or name for name, spec in known.items()},
            families={name: spec.family for name, spec in known.items()},
            ours=[name for name, spec in known.items() if spec.ours],
            looks={name: looks[name] for name in known if name in looks},
        )

    def names_of(self, paper: str) -> Names:
        """The `names` of what a paper shows, reports and claims."""
        spec = self.config.papers.get(paper)
        return self.names(self.needs_of(paper), self._reported(paper), spec.claims.values() if spec else ())

    def all_names(self) -> Names:
        """The `names` of everything in the run and in the reported values and claims of its papers."""
        papers = self.papers_shown()
        return self.names(
            self._at,
            [row for paper in papers for row in self._reported(paper)],
            [claim for spec in papers.values() for claim in spec.claims.values()],
        )

    def papers_shown(self) -> dict[str, PaperSpec]:
        """The papers of the run that have a table."""
        return {paper: self.config.papers[paper] for paper in dict.fromkeys(of for of, _ in self.tables)}

    # Parameters of the rules. The jobs load the configuration themselves. A digest makes them run again if what they
    # take from it has changed.

    def paper_digest(self, paper: str) -> str:
        """Changes with everything that decides what a paper's job makes from its cells."""
        spec = self.config.papers.get(paper)
        figures = [name for of, name in self.figures if of == paper]
        shown = {"short_name", "programs", "tables", "claims"}
        return digest_of(
            {
                "needs": self.needs_of(paper),
                "cells": [block_params(block) for block in blocks_of(self.config, self.sources_of(paper))],
                "names": asdict(self.names_of(paper)),
                "paper": None if spec is None else spec.model_dump(mode="json", include=shown),
                "figures": [self.figure_spec(paper, name).model_dump(mode="json") for name in figures],
                "formats": self.config.report.formats,
                # Digests, because a file that replaces another one may have an older time stamp.
                "reported": [content_digest(path) for path in self.reported_files(paper)],
                "code": code_fingerprint(
                    "fairclust.report.tables", "fairclust.report.figures", "fairclust.report.claims"
                ),
            }
        )

    def board_digest(self) -> str:
        """Changes with everything that decides what the job of the boards makes from scores and verdicts."""
        titles = {name: spec.short_name for name, spec in self.papers_shown().items()}
        modules = ("fairclust.report.tables", "fairclust.report.leaderboard", "fairclust.report.scoreboard")
        level = self.config.report.fairness_error
        return digest_of([titles, asdict(self.all_names()), level, code_fingerprint(*modules)])

    def page_digest(self) -> str:
        """Changes with everything that decides what the page's job makes from scores, tables and figures."""
        page = Path(__file__).parents[1] / "report" / "page"
        texts = b"".join(file.read_bytes() for file in sorted(page.iterdir()) if file.is_file())
        shown = {"short_name", "citation", "tables"}
        papers = {
            name: spec.model_dump(mode="json", include=shown) for name, spec in self.papers_shown().items()
        }
        code = [code_fingerprint("fairclust.report.html"), hashlib.sha256(texts).hexdigest()]
        return digest_of([papers, asdict(self.all_names()), code])

    def retry_problems(self, paper: str) -> str:
        """A parameter that changes with every run while a product of a paper could not be made."""
        path = self.place / f"problems/{paper}.json"
        with suppress(OSError):
            if path.stat().st_size > len(NO_PROBLEMS):
                return str(path.stat().st_mtime_ns)
        return ""

    def reported_files(self, paper: str) -> list[str]:
        """The CSV of a paper's reported values, and that of its published programs if there are any."""
        spec = self.config.papers.get(paper)
        if spec is None or not spec.reported:
            return []
        if not spec.programs:
            return [spec.reported]
        path = Path(spec.reported)
        programs = path.with_name(f"{path.stem}_programs.csv")
        if not programs.is_file():
            raise ConfigError(
                f"papers.{paper}.programs: there is no {programs}. Fix: write it, or remove the key"
            )
        return [str(path), str(programs)]

    def figure_spec(self, paper: str, name: str) -> FigureSpec:
        """A figure of a paper, or the fronts of a data set."""
        if paper != "fronts":
            return self.config.papers[paper].figures[name]
        title = "Fronts of cost and fairness"
        return FigureSpec(
            plot="front", title=title, datasets=[name], x="sse", y=tuple(self.config.report.fronts)
        )

    def match_of(self, paper: str, name: str) -> MatchSpec | None:
        """How a figure of a paper chooses settings, if it refers to a table that says so."""
        number = self.figure_spec(paper, name).table
        table = self.table_of(paper, number) if paper in self.config.papers else None
        return None if table is None else table.match

    def planes(self, paper: str) -> list[str]:
        """Folders of the unscaled data sets whose points the figures of a paper show."""
        datasets = [
            name for (of, _), product in self.figures.items() if of == paper for name in product.planes
        ]
        return [f"{self.results}/data/plane/{dataset}" for dataset in dict.fromkeys(datasets)]
