"""What the Snakemake rules ask for: targets, inputs and parameters of jobs, all out of the configuration.

Imports nothing heavy at the top: every Snakemake process reads it.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from fairclust.datasets.spec import nearest
from fairclust.metrics.table import METRICS
from fairclust.pipeline.blocks import Block, block_params, count_cells, estimated_minutes, plan_blocks
from fairclust.pipeline.cell_store import count_errors
from fairclust.pipeline.config import Config, ConfigError, as_list
from fairclust.pipeline.fingerprint import (
    ClassNotFound,
    class_fingerprint,
    class_parameters,
    file_fingerprint,
    module_fingerprint,
)
from fairclust.pipeline.models import RECORD
from fairclust.pipeline.papers import ClaimSpec, FigureSpec, TableSpec, as_plain
from fairclust.pipeline.provenance import installed_version

# How long a source that could not be downloaded is left alone.
RETRY_SECONDS = 3600
# Set for the second pass, which makes tables and page without the blocks whose job has failed.
FINISHING = "FAIRCLUST_FINISHING"
_CHEAP = tuple(name for name, metric in METRICS.items() if metric.needs == "table" or name == "sse")
_DEAR = tuple(name for name in METRICS if name not in _CHEAP)
# What a block's own inputs make meaningful, and cheap, wherever they are there.
_OF_GRAPH, _OF_TRUTH = "ncut", "clustering_error"

At = tuple[str, str, int]
"""A data set, a method and a K."""


def share_sources() -> None:
    """Let the scripts of jobs, in conda environments or on other machines as well, find this package."""
    sources = str(Path(__file__).parents[2])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if sources not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([sources, *filter(None, paths)])


def megabytes(paths: Iterable[str]) -> float:
    """Size of files and folders, in units of 2**20 bytes.

    Raises
    ------
    FileNotFoundError
        One of them is not there (yet).
    """
    size = 0
    for path in map(Path, paths):
        files = path.rglob("*") if path.is_dir() else [path]
        size += sum(file.stat().st_size for file in files if not file.is_dir())
    return size / 2**20


def digest_of(value: Any) -> str:
    """Ten hexadecimal digits for a value of plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:10]


def _fingerprint_or_reason(module: str) -> str:
    """A generator that does not exist is found by the job that calls it, which says so in the data card."""
    try:
        return module_fingerprint(module)
    except ClassNotFound as error:
        return str(error)


@cache
def _reported_rows(path: str) -> list[dict[str, str]]:
    """Rows of a CSV of reported values as text; only what the plan needs is checked, the rest by the job."""
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
    """A table, figure or claims that the scores are made into.

    Attributes
    ----------
    needs : list of (data set, method, K)
        What it shows, of what the run has planned.
    metrics : set of str
        The columns that it shows.
    planes : list of str
        Data sets whose points it shows, unscaled.
    """

    needs: list[At] = field(default_factory=list)
    metrics: set[str] = field(default_factory=set)
    planes: list[str] = field(default_factory=list)


class RuleInputs:
    """All jobs of a run.

    Parameters
    ----------
    config : Config

    Raises
    ------
    ConfigError
        A class does not exist or does not take a parameter, or the reported values of a paper cannot be read.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.results = config.results
        self._blocks = {block.stem: block for block in plan_blocks(config)}
        self._at: dict[At, list[Block]] = {}
        for block in self._blocks.values():
            self._at.setdefault((block.dataset, block.method, block.n_clusters), []).append(block)
        self._check_parameters()

    def _check_parameters(self) -> None:
        for method in dict.fromkeys(block.method for block in self._blocks.values()):
            path = self.config.methods[method].class_
            try:
                class_fingerprint(path)
                taken = class_parameters(path)
            except ClassNotFound as error:
                raise ConfigError(f"methods.{method}.class: {error}") from None
            grids = [g for block in self._blocks.values() if block.method == method for g in block.grids]
            given = {name for grid in grids for name in (*grid.params, *grid.axes)}
            if "n_clusters" in given:
                raise ConfigError(
                    f"methods.{method}: the parameter 'n_clusters' is set for you; see run.n_clusters"
                )
            for name in sorted(given - taken) if taken is not None else ():
                raise ConfigError(
                    f"methods.{method}: {path} takes no parameter {name!r}; {nearest(name, sorted(taken or ()))}"
                )

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
        """Every figure of every paper of the run that has something to show; fronts go by the name 'fronts'."""
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
                for method in (row["method"], *spec.ours):
                    needs |= dict.fromkeys(self._planned([dataset], [method], _ks(row.get("n_clusters", ""))))
                if row["method"] == "data":
                    needs |= dict.fromkeys(self._planned([dataset], [], None)[:1])
        return Product(list(needs), metrics)

    def _figure(self, paper: str, spec: FigureSpec) -> Product:
        metrics = {spec.x, *spec.y}
        table = self.table_of(paper, spec.table)
        if table is not None and table.match is not None:
            metrics |= {table.match.fairness, table.match.order}
        planes = list(spec.datasets) if spec.points else []
        return Product(self._planned(spec.datasets, spec.methods, spec.n_clusters), metrics, planes)

    def _claim(self, paper: str, spec: ClaimSpec) -> Product:
        found = Product(
            self._planned(spec.datasets, spec.methods, spec.n_clusters),
            {*spec.metrics, *(v for v in spec.options.values() if isinstance(v, str))},
        )
        table = self.config.papers[paper].tables.get(str(spec.options.get("table", "")))
        if table is not None:
            shown = self._table(paper, table)
            found.needs += [at for at in shown.needs if at not in found.needs]
            found.metrics |= shown.metrics
        return found

    def table_of(self, paper: str, number: str) -> TableSpec | None:
        """The table of a paper with a number."""
        tables = self.config.papers[paper].tables.values()
        return next((table for table in tables if number and table.number == number), None)

    def _reported(self, paper: str) -> list[dict[str, str]]:
        path = self.config.papers[paper].reported
        return _reported_rows(path) if path else []

    def _planned(self, datasets: Iterable[str], methods: Iterable[str], ks: list[int] | None) -> list[At]:
        wanted, listed = set(datasets), set(methods)
        return [
            at
            for at in self._at
            if at[0] in wanted and (not listed or at[1] in listed) and (ks is None or at[2] in ks)
        ]

    # Targets

    def targets(self) -> list[str]:
        """Everything that `rule all` wants."""
        strict = [f"{self.results}/.strict-ok"] if self.config.strict else []
        return [
            f"{self.results}/scores/scores.parquet",
            f"{self.results}/scores/leaderboard.csv",
            *self.table_files(),
            *self.figure_files(),
            *self.page_files(),
            *strict,
        ]

    def table_files(self, paper: str | None = None) -> list[str]:
        """Files of all tables, three for each; of one paper, its own and its claims."""
        stems = [f"{of}/{name}" for of, name in self.tables if paper in (None, of)]
        stems += [f"{of}/claims" for of in self.claims if paper in (None, of)]
        if paper is None:
            stems += ["overview"] * self.config.report.overview + ["scoreboard"] * bool(self.tables)
        return [f"{self.results}/tables/{stem}.{kind}" for stem in stems for kind in ("csv", "md", "tex")]

    def figure_files(self, paper: str | None = None) -> list[str]:
        """Files of all figures, or of one paper's."""
        return [
            f"{self.results}/figures/{of}/{name}.{kind}"
            for of, name in self.figures
            if paper in (None, of)
            for kind in self.config.report.formats
        ]

    def page_files(self) -> list[str]:
        """The page for readers, and the archive to hand on."""
        names = ["report/index.html", "report.zip"] if self.config.report.html else []
        return [f"{self.results}/{name}" for name in names]

    def verdicts(self, paper: str) -> list[str]:
        """Files of a paper's verdicts, one for each table."""
        return [f"{self.results}/tables/{of}/{name}.verdicts.csv" for of, name in self.tables if of == paper]

    def claim_files(self, paper: str) -> list[str]:
        return [f"{self.results}/tables/{paper}/claims.csv"] if paper in self.claims else []

    # Sources and data sets

    def sources(self) -> list[str]:
        """Folders of all sources that the run downloads."""
        datasets = dict.fromkeys(block.dataset for block in self._blocks.values())
        return list(dict.fromkeys(folder for dataset in datasets for folder in self.source_folders(dataset)))

    def source_params(self, source: str) -> dict[str, Any]:
        """A source as plain data."""
        for dataset in self.config.datasets:
            found = self.config.sources_of(dataset)
            if source in found:
                return found[source].model_dump(mode="json")
        return self.config.sources[source].model_dump(mode="json")

    def source_folders(self, dataset: str) -> list[str]:
        """Folders of a data set's fetched sources."""
        sources = self.config.sources_of(dataset)
        return [
            f"{self.results}/data/raw/{name}" for name, spec in sources.items() if not spec.reads_in_place
        ]

    def own_files(self, dataset: str) -> list[str]:
        """The user's own files, those that exist, which a data set reads where they lie."""
        own = [str(spec.path) for spec in self.config.sources_of(dataset).values() if spec.reads_in_place]
        return [path for path in own if Path(path).is_file()]

    def own_archive(self, source: str) -> list[str]:
        """The user's own archive, if it exists, which a source is unpacked from."""
        path = self.source_params(source)["path"]
        return [path] if path is not None and Path(path).is_file() else []

    def asked(self, source: str) -> dict[str, Any]:
        """Where to look for a source, and since when.

        What was asked the last time, as long as the answer stands: a file that is there, or one that could
        not be downloaded from the same places within the last hour. So other mirrors or an hour make a new try.
        """
        new = {"mirrors": self.config.mirrors, "again": ""}
        try:
            record = json.loads(Path(f"{self.results}/data/raw/{source}/{RECORD}").read_text())
            asked, age = record["asked"], time.time() - record["when"]
        except (OSError, ValueError, KeyError):
            return new
        if record["status"] == "ok":
            return asked
        if asked["mirrors"] == new["mirrors"] and age < RETRY_SECONDS:
            return asked
        return {**new, "again": f"{time.time():.0f}"}

    def dataset_params(self, dataset: str, **changes: Any) -> dict[str, Any]:
        """A data set with its sources, and the fingerprint of the code that prepares it."""
        from fairclust.datasets.digest import content_digest

        spec = self.config.datasets[dataset]
        code = ["fairclust.datasets.prepare"]
        if spec.generator is not None:
            code.append(spec.generator.replace(":", ".").rpartition(".")[0])
        # Not as JSON: numbers of columns that are keys would become text.
        stated = spec.model_dump(exclude_unset=True, exclude={"settings", "shown", "title"})
        return {
            "dataset": {"title": spec.title, **stated, **changes},
            "sources": {
                name: source.model_dump(mode="json", exclude_unset=True)
                for name, source in self.config.sources_of(dataset).items()
            },
            "code": [_fingerprint_or_reason(module) for module in code],
            # A file of the user's counts by content: one that replaces it may be older.
            "own": {path: content_digest(path) for path in self.own_files(dataset)},
            "missing": [
                str(source.path)
                for source in self.config.sources_of(dataset).values()
                if source.reads_in_place and not Path(str(source.path)).is_file()
            ],
        }

    def graph_params(self) -> dict[str, Any]:
        """How the neighbour graphs are made, and the fingerprint of the code that makes them."""
        return {**self.config.graph.model_dump(), "code": module_fingerprint("fairclust.kernels.graph")}

    def versions(self, *packages: str) -> dict[str, str]:
        """Installed versions of packages that a shared result depends on."""
        return {package: installed_version(package) for package in packages}

    # Fits and scores

    def block(self, dataset: str, method: str, name: str) -> Block:
        return self._blocks[f"{dataset}/{method}/{name}"]

    def graph_of(self, dataset: str, method: str) -> list[str]:
        """The graph that a fit job needs besides the prepared data set, if any."""
        if self.config.methods[method].input == "points":
            return []
        return [f"{self.results}/data/graphs/{dataset}"]

    def fit_params(self, dataset: str, method: str, name: str) -> dict[str, Any]:
        """What a fit job is told: short, for Snakemake prints it when it changes."""
        block = self.block(dataset, method, name)
        path = self.config.methods[method].class_
        code = class_fingerprint(path)
        return {
            "cells": block_params(block),
            "class_path": path,
            "code": code,
            "metrics": self.metrics_of(block),
            "score_options": {"dunn_max_rows": self.config.score.dunn_max_rows},
            "scorer": module_fingerprint("fairclust.metrics.table"),
            "limits": self.config.limits.model_dump(),
        }

    @cached_property
    def _asked_metrics(self) -> dict[At, set[str]]:
        asked: dict[At, set[str]] = {}
        # Claim by claim: what one of them shows, the fits of another need not be scored by.
        claims = [
            self._claim(paper, spec)
            for paper in self.claims
            for spec in self.config.papers[paper].claims.values()
        ]
        for product in (*self.tables.values(), *self.figures.values(), *claims):
            names = product.metrics
            if "accuracy" in names:
                names = names | {_OF_TRUTH}
            for at in product.needs:
                asked.setdefault(at, set()).update(names)
        return asked

    def metrics_of(self, block: Block) -> list[str]:
        """What the cells of a block are scored by: the cheap metrics, and those that some product shows."""
        config, at = self.config, (block.dataset, block.method, block.n_clusters)
        asked = {*self._asked_metrics.get(at, ()), *config.score.metrics}
        dataset = config.datasets[block.dataset]
        if config.methods[block.method].input == "graph":
            asked.add(_OF_GRAPH)
        if dataset.truth is not None or dataset.generator is not None:
            asked.add(_OF_TRUTH)
        if dataset.rows is not None and dataset.rows <= config.score.dear_max_rows:
            asked.update(_DEAR)
        return [name for name in METRICS if name in _CHEAP or name in asked]

    def retry_errors(self, dataset: str, method: str, name: str) -> str:
        """Differs from run to run while cells of the block have the status 'error': they are tried again."""
        path = Path(f"{self.results}/fits/{dataset}/{method}/{name}.cells")
        errors = count_errors(path)
        return f"{errors} cells with errors, {path.stat().st_mtime_ns}" if errors else ""

    def minutes(self, dataset: str, method: str, name: str) -> float:
        """Estimated minutes of work in a block."""
        block = self.block(dataset, method, name)
        return estimated_minutes(self.config, dataset, method, block.n_clusters, count_cells(block))

    def code_of(self, *modules: str) -> str:
        """Fingerprint of modules of this package that a job calls, without what they import."""
        return file_fingerprint(*(f"fairclust.{module}" for module in modules))

    def module_code(self, module: str) -> str:
        """Fingerprint of a module with all that it imports from this package."""
        return module_fingerprint(module)

    def pack(self, block: Block) -> str:
        """The output of a block's fit job."""
        return f"{self.results}/fits/{block.stem}.cells"

    def packs(self, needs: Iterable[At] | None = None) -> list[str]:
        """Outputs of the fit jobs of some blocks, or of all; in the second pass those that are there."""
        blocks = self._blocks.values() if needs is None else (b for at in needs for b in self._at[at])
        return [path for path in map(self.pack, blocks) if not self._finishing or Path(path).is_file()]

    @property
    def _finishing(self) -> bool:
        return FINISHING in os.environ

    def lost(self) -> list[str]:
        """Blocks whose job has failed for good; only in the second pass."""
        if not self._finishing:
            return []
        return [block.stem for block in self._blocks.values() if not Path(self.pack(block)).is_file()]

    def settings(self) -> dict[str, Any]:
        """The part of the configuration that the run uses, in plain types."""
        return used_settings(self.config, self._blocks.values())

    def configuration_digest(self) -> str:
        """Fingerprint of what decides the results: data sets, methods, papers and cells, but not places."""
        settings = self.settings()
        for key in ("results", "mirror", "reuse", "catalogues", "also", "jobs", "strict"):
            settings.pop(key, None)
        return digest_of([settings, [[b.stem, block_params(b)] for b in self._blocks.values()]])

    # Parameters of the report

    def names(self, needs: Iterable[At]) -> dict[str, Any]:
        """What readers see instead of the names of these data sets and methods, as plain data."""
        needs = list(needs)
        datasets, methods = dict.fromkeys(at[0] for at in needs), dict.fromkeys(at[1] for at in needs)
        return self._names(datasets, methods)

    def _names(self, datasets: Iterable[str], methods: Iterable[str]) -> dict[str, Any]:
        looks = {name: i for i, name in enumerate(self._methods_in_order())}
        known = self.config.methods
        methods = [name for name in methods if name in known]
        return {
            "datasets": {
                name: spec.title + (f" ({spec.shown})" if spec.shown else "")
                for name in datasets
                if (spec := self.config.datasets.get(name)) is not None
            },
            "methods": {name: known[name].label or name for name in methods},
            "families": {name: known[name].family for name in methods},
            "ours": [name for name in methods if known[name].ours],
            "looks": {name: looks[name] for name in methods if name in looks},
        }

    def _methods_in_order(self) -> list[str]:
        run = {block.method for block in self._blocks.values()}
        return [name for name in self.config.methods if name in run]

    def all_names(self) -> dict[str, Any]:
        """The same for everything in the run, and for what its papers report values of."""
        return self._names_with(self._at, dict.fromkeys(paper for paper, _ in self.tables))

    def _names_with(self, needs: Iterable[At], papers: Iterable[str]) -> dict[str, Any]:
        needs = list(needs)
        datasets, methods = dict.fromkeys(at[0] for at in needs), dict.fromkeys(at[1] for at in needs)
        for paper in papers:
            for row in self._reported(paper):
                datasets[row["dataset"]] = methods[row["method"]] = None
            for claim in self.config.papers[paper].claims.values():
                datasets |= dict.fromkeys(claim.datasets)
                methods |= dict.fromkeys(claim.methods)
        return self._names(datasets, methods)

    def table_params(self, paper: str, name: str) -> dict[str, Any]:
        """What a table's job is told."""
        spec, product = self.config.papers[paper].tables[name], self.tables[paper, name]
        rows = [row for row in self._reported(paper) if row.get("table") == spec.number]
        datasets = {row["dataset"] for row in rows} | {at[0] for at in product.needs}
        methods = {row["method"] for row in rows} | {at[1] for at in product.needs}
        return {
            "spec": as_plain(spec),
            "short_name": self.config.papers[paper].short_name,
            "names": self._names(sorted(datasets), sorted(methods)),
            "code": module_fingerprint("fairclust.report.tables"),
        }

    def reported_file(self, paper: str) -> list[str]:
        path = self.config.papers[paper].reported if paper in self.config.papers else None
        return [path] if path else []

    def figure_spec(self, paper: str, name: str) -> FigureSpec:
        """A figure of a paper, or the fronts of a data set."""
        if paper != "fronts":
            return self.config.papers[paper].figures[name]
        title = "Fronts of cost and fairness"
        return FigureSpec(
            plot="front", title=title, datasets=[name], x="sse", y=tuple(self.config.report.fronts)
        )

    def figure_params(self, paper: str, name: str) -> dict[str, Any]:
        """What a figure's job is told."""
        spec = self.figure_spec(paper, name)
        table = self.table_of(paper, spec.table) if paper != "fronts" else None
        return {
            "spec": as_plain(spec),
            "match": None if table is None or table.match is None else as_plain(table.match),
            "names": self.names(self.figures[paper, name].needs),
            "code": module_fingerprint("fairclust.report.figures"),
        }

    def planes(self, paper: str, name: str) -> list[str]:
        """Folders of the unscaled data sets whose points a figure shows."""
        return [f"{self.results}/data/plane/{dataset}" for dataset in self.figures[paper, name].planes]

    def claims_params(self, paper: str) -> dict[str, Any]:
        """What the job of a paper's claims is told."""
        spec = self.config.papers[paper]
        return {
            "claims": {name: as_plain(claim) for name, claim in spec.claims.items()},
            "tables": {name: as_plain(table) for name, table in spec.tables.items()},
            "short_name": spec.short_name,
            "names": self._names_with(self.claims[paper].needs, [paper]),
            "code": module_fingerprint("fairclust.report.claims"),
        }

    def papers_shown(self) -> dict[str, Any]:
        """The papers of the run that have a table, as plain data for the page and the scoreboard."""
        shown = dict.fromkeys(paper for paper, _ in self.tables)
        return {
            name: {
                "short_name": spec.short_name,
                "citation": spec.citation,
                "year": spec.year,
                "tables": {
                    key: as_plain(table) for key, table in spec.tables.items() if (name, key) in self.tables
                },
            }
            for name in shown
            if (spec := self.config.papers[name])
        }

    def page_params(self) -> dict[str, Any]:
        """With which words the page is written, and from what code."""
        page = Path(__file__).parents[1] / "report" / "page"
        texts = b"".join(file.read_bytes() for file in sorted(page.iterdir()) if file.is_file())
        return {
            "papers": self.papers_shown(),
            "names": self.all_names(),
            "code": [module_fingerprint("fairclust.report.html"), hashlib.sha256(texts).hexdigest()[:16]],
        }

    def label(self, file: str) -> dict[str, str]:
        """How Snakemake's own report names a table or figure."""
        path = Path(file)
        return {"name": path.stem, "of": path.parent.name, "format": path.suffix[1:]}

    def closing_words(self, began: float) -> list[str]:
        """What is printed when a run has ended."""
        from fairclust.pipeline.summary import describe, describe_times

        results = Path(self.results)
        if not (results / "summary.json").is_file():
            return []
        lines = describe(results / "summary.json")
        lines += describe_times(results / "scores/runs.parquet", results.glob("benchmarks/**/*.tsv"), began)
        lines.append(f"scores:  {results}/scores/scores.csv (and .parquet; costs of the cells in runs.csv)")
        if self.table_files():
            lines.append(f"tables:  {results}/tables/ (Markdown, CSV and LaTeX)")
        if self.figures:
            count = "one figure" if len(self.figures) == 1 else f"{len(self.figures)} figures"
            lines.append(f"figures: {results}/figures/ ({count})")
        if self.config.report.html:
            lines.append(f"report:  {results}/report/index.html (to hand on: {results}/report.zip)")
        return lines


def used_settings(config: Config, blocks: Iterable[Block]) -> dict[str, Any]:
    """A configuration without the catalogue entries that a run does not use, in plain types."""
    blocks = list(blocks)
    used = {
        "datasets": {block.dataset for block in blocks},
        "methods": {block.method for block in blocks},
        "papers": set(config.run.papers),
    }
    chosen = config.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for section, names in used.items():
        chosen[section] = {name: spec for name, spec in chosen.get(section, {}).items() if name in names}
    for paper in chosen["papers"].values():
        paper["reported"] = Path(str(paper.get("reported"))).name
    for key in ("sources", "mirror"):
        chosen.pop(key, None)
    return chosen


def _ks(text: str) -> list[int] | None:
    """K of a reported value; None where the paper states none."""
    return [int(float(text))] if text else None


def lost_records(config: Config, stems: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """Records of the cells of blocks whose job has died."""
    stems = set(stems)
    for block in plan_blocks(config):
        if block.stem not in stems:
            continue
        log = f"{config.results}/logs/fit/{block.stem}.log"
        for cell in block.cells():
            yield {
                "dataset": block.dataset,
                "method": block.method,
                "n_clusters": block.n_clusters,
                "class": config.methods[block.method].class_,
                "key": None,
                "status": "error",
                "reason": f"its job ended without a result in every attempt; see {log}",
                **vars(cell),
            }


def reuse_folders(config: Config) -> list[str]:
    """Other results folders whose finished fits are taken."""
    return as_list(config.reuse)
