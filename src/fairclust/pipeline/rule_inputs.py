"""Targets, inputs and parameters of the Snakemake rules, all from the configuration.

This module imports nothing heavy at the top, because every Snakemake process imports it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from fairclust.datasets.digest import content_digest
from fairclust.messages import nearest
from fairclust.metrics.table import METRICS
from fairclust.pipeline.blocks import At, Block, block_params, count_cells, estimated_minutes
from fairclust.pipeline.cell_store import count_errors
from fairclust.pipeline.config import Config, ConfigError, MethodJobSpec
from fairclust.pipeline.fingerprint import (
    ClassNotFound,
    class_fingerprint,
    class_parameters,
    code_fingerprint,
    file_fingerprint,
)
from fairclust.pipeline.models import RECORD, version_text
from fairclust.pipeline.provenance import installed_version, package_versions
from fairclust.pipeline.report_inputs import ReportInputs, digest_of
from fairclust.pipeline.results_folder import remade

# Time after which a run tries again to download a source that could not be downloaded.
RETRY_SECONDS = 3600
# Environment variable: for each folder of results, the jobs whose outputs were damaged, and how often they have run
# again for that.
REMADE = "FAIRCLUST_REMADE"
_USUAL = tuple(name for name, metric in METRICS.items() if not metric.audit)
_CHEAP = tuple(name for name in _USUAL if METRICS[name].needs == "table" or name == "sse")
_DEAR = tuple(name for name in _USUAL if name not in _CHEAP)
# Cheap metrics that are computed for every block with a graph, or with the true clusters of its data set.
_OF_GRAPH, _OF_TRUTH = "ncut", "clustering_error"


def share_sources() -> None:
    """Let the scripts of jobs find this package, also in conda environments and on other machines."""
    sources = str(Path(__file__).parents[2])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if sources not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([sources, *filter(None, paths)])


def megabytes(paths: Iterable[str]) -> float:
    """Size of files and folders, in units of 2**20 bytes."""
    size = 0
    for path in map(Path, paths):
        files = path.rglob("*") if path.is_dir() else [path]
        size += sum(file.stat().st_size for file in files if not file.is_dir())
    return size / 2**20


def _fingerprint_or_reason(module: str) -> str:
    """The fingerprint of a module, or why there is none. The job that needs the module then writes the reason."""
    try:
        return code_fingerprint(module)
    except ClassNotFound as error:
        return str(error)


class RuleInputs(ReportInputs):
    """All jobs of a run. ConfigError if a class does not exist or does not take a parameter."""

    def __init__(self, config: Config, place: Path | None = None) -> None:
        super().__init__(config, place)
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
            for name, key in (("n_clusters", "run.n_clusters"), ("random_state", "run.seeds")):
                if name in given:
                    raise ConfigError(f"methods.{method}: the parameter {name!r} is set for you; see {key}")
            for name in sorted(given - taken) if taken is not None else ():
                raise ConfigError(
                    f"methods.{method}: {path} takes no parameter {name!r}; {nearest(name, sorted(taken or ()))}"
                )

    # Targets

    def targets(self) -> list[str]:
        """Everything that `rule all` wants."""
        return [*self.products(), f"{self.results}/.complete"]

    def products(self) -> list[str]:
        """Everything that is made from the cells."""
        return [
            f"{self.results}/scores/scores.parquet",
            f"{self.results}/scores/leaderboard.csv",
            *self.table_files(),
            *self.figure_files(),
            *self.page_files(),
        ]

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
        """The existing files of the user that a data set reads in place."""
        own = [str(spec.path) for spec in self.config.sources_of(dataset).values() if spec.reads_in_place]
        return [path for path in own if Path(path).is_file()]

    def own_archive(self, source: str) -> list[str]:
        """The user's archive that a source is unpacked from; empty if there is none."""
        path = self.source_params(source)["path"]
        return [path] if path is not None and Path(path).is_file() else []

    def files_of_the_user(self) -> list[str]:
        """All files of the user that the run reads: data, archives and reported values."""
        datasets = dict.fromkeys(block.dataset for block in self._blocks.values())
        found = [path for dataset in datasets for path in self.own_files(dataset)]
        found += [path for source in self.sources() for path in self.own_archive(Path(source).name)]
        return found + [path for paper in self.config.run.papers for path in self.reported_files(paper)]

    def asked(self, source: str, *, at_once: bool = False) -> dict[str, Any]:
        """Where to look for a source. A new value makes Snakemake try the download again.

        It is new if the last attempt failed more than an hour ago or with other mirrors, or if `at_once`. A user's
        archive is stated by its digest, because an archive that replaces it may have an older time stamp.
        """
        new = {"mirrors": self.config.mirrors, "again": ""}
        archive = [content_digest(path) for path in self.own_archive(source)]
        own = {"own": archive} if archive else {}
        try:
            record = json.loads((self.place / f"data/raw/{source}/{RECORD}").read_text())
            asked, age = record["asked"], time.time() - record["when"]
            status, mirrors = record["status"], asked["mirrors"]
        except (OSError, ValueError, KeyError, TypeError):
            return {**new, **own}
        if status == "ok" or (mirrors == new["mirrors"] and age < RETRY_SECONDS and not at_once):
            return {**asked, **own}
        return {**new, **own, "again": f"{time.time():.0f}"}

    def dataset_params(self, dataset: str, **changes: Any) -> dict[str, Any]:
        """A data set with its sources, and the fingerprint of the code that prepares it."""
        spec = self.config.datasets[dataset]
        code = ["fairclust.datasets.prepare"]
        if spec.generator is not None:
            code.append(spec.generator.replace(":", ".").rpartition(".")[0])
        # Not in JSON mode, which would turn keys that are numbers of columns into text.
        stated = spec.model_dump(exclude_unset=True, exclude={"settings", "shown", "title", "formerly"})
        return {
            "dataset": {"title": spec.title, **stated, **changes},
            "sources": {
                name: source.model_dump(mode="json", exclude_unset=True)
                for name, source in self.config.sources_of(dataset).items()
            },
            "code": [_fingerprint_or_reason(module) for module in code],
            # Digests and not time stamps, because a file that replaces another one may be older.
            "own": {path: content_digest(path) for path in self.own_files(dataset)},
            "missing": [
                str(source.path)
                for source in self.config.sources_of(dataset).values()
                if source.reads_in_place and not Path(str(source.path)).is_file()
            ],
        }

    def graph_params(self) -> dict[str, Any]:
        """How the neighbour graphs are made, and the fingerprint of the code that makes them."""
        return {**self.config.graph.model_dump(), "code": code_fingerprint("fairclust.kernels.graph")}

    def versions(self, *packages: str) -> dict[str, str]:
        """Installed versions of packages that a shared result depends on."""
        return {package: installed_version(package) for package in packages}

    # Fits and scores

    def job(self, dataset: str, name: str) -> list[Block]:
        """The blocks of a fit job."""
        return self._jobs[f"{dataset}/{name}"]

    def requests_of(self, dataset: str, name: str) -> MethodJobSpec:
        """The resources that the methods of a fit job ask for; they are the same for all of them."""
        return self.config.methods[self.job(dataset, name)[0].method].jobs

    def graph_of(self, dataset: str, name: str) -> list[str]:
        """The graphs that a fit job needs besides the prepared data sets, if any."""
        blocks = self.job(dataset, name)
        if self.config.methods[blocks[0].method].input == "points":
            return []
        return [f"{self.results}/data/graphs/{name}" for name in _datasets(blocks)]

    def prepared_of(self, dataset: str, name: str) -> list[str]:
        """The prepared data sets of a fit job."""
        return [f"{self.results}/data/prepared/{name}" for name in _datasets(self.job(dataset, name))]

    def fit_params(self, dataset: str, name: str) -> list[dict[str, Any]]:
        """What a fit job does, for each of its blocks, in short, because Snakemake prints it when it changes."""
        return [self._block_params(block) for block in self.job(dataset, name)]

    def _block_params(self, block: Block) -> dict[str, Any]:
        path = self.config.methods[block.method].class_
        metrics = self.metrics_of(block)
        homes = sorted({METRICS[name].function.__module__ for name in metrics})
        return {
            "dataset": block.dataset,
            "method": block.method,
            "n_clusters": block.n_clusters,
            "cells": block_params(block),
            "class_path": path,
            "code": class_fingerprint(path),
            "metrics": metrics,
            "scorer": code_fingerprint("fairclust.metrics.table", *homes),
        }

    def strict_versions(self) -> str:
        """With `strict_versions`, the versions of packages on which cells depend; otherwise empty."""
        return version_text(package_versions()) if self.config.strict_versions else ""

    @cached_property
    def _asked_metrics(self) -> dict[At, set[str]]:
        asked: dict[At, set[str]] = {}
        # Each claim counts separately, so that the fits of one are not scored by the metrics of another.
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
        """Metrics of the cells of a block: the cheap ones, and those that a table, figure or claim shows."""
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

    def retry_errors(self, dataset: str, name: str) -> str:
        """A parameter that changes with every run while a fit job has errors, so that it tries them again."""
        path = self.place / f"fits/{dataset}/{name}.cells"
        errors = count_errors(path)
        return f"{errors} cells with errors, {path.stat().st_mtime_ns}" if errors else ""

    def remade(self, log: str) -> int:
        """A parameter that grows when an output of the job with this log is damaged, so that the job runs again."""
        return self._remade.get(log, 0)

    @cached_property
    def _remade(self) -> dict[str, int]:
        # Snakemake removes outputs before a job runs, so its processes take what the main process has seen.
        # A workflow may have several modules with results of their own.
        known = json.loads(os.environ.get(REMADE, "{}"))
        if str(self.place) not in known:
            known[str(self.place)] = remade(self.place)
            os.environ[REMADE] = json.dumps(known)
        return known[str(self.place)]

    def minutes(self, dataset: str, name: str) -> float:
        """Estimated minutes of work in a fit job."""
        return sum(
            estimated_minutes(self.config, *block.at, count_cells(block)) for block in self.job(dataset, name)
        )

    def work(self, dataset: str, name: str, forced: bool) -> tuple[int, float]:
        """How many cells of a fit job a run would fit, and the estimated minutes; if `forced`, all of them."""
        from fairclust.pipeline.progress import block_progress

        here = self.config.model_copy(update={"results": str(self.place)})
        cells, minutes = 0, 0.0
        for block in self.job(dataset, name):
            n_cells = len(block.cells()) if forced else block_progress(here, block).to_go
            cells += n_cells
            minutes += estimated_minutes(self.config, *block.at, n_cells)
        return cells, minutes

    def code_of(self, *modules: str) -> str:
        """Fingerprint of modules of this package that a job calls, without what they import."""
        return file_fingerprint(*(f"fairclust.{module}" for module in modules))

    def packs(self, needs: Iterable[At] | None = None) -> list[str]:
        """Outputs of the fit jobs that have some or all blocks."""
        wanted = None if needs is None else set(needs)
        return [
            f"{self.results}/fits/{name}.cells"
            for name, blocks in self._jobs.items()
            if wanted is None or any(block.at in wanted for block in blocks)
        ]

    def settings(self) -> dict[str, Any]:
        """The part of the configuration that the run uses, in plain types."""
        return used_settings(self.config, self._blocks.values())

    def configuration_digest(self) -> str:
        """Fingerprint of what decides the results: data sets, methods, papers and cells, but no paths or resources."""
        settings = self.settings()
        for key in ("results", "mirror", "reuse", "catalogues", "also", "jobs", "strict", "strict_versions"):
            settings.pop(key, None)
        return digest_of([settings, [[b.stem, block_params(b)] for b in self._blocks.values()]])

    def closing_words(self, began: float) -> list[str]:
        """Lines to print when a run has ended."""
        from fairclust.pipeline.summary import describe, describe_times

        results = self.place
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
            lines.append(f"report:  {results}/report/index.html (to share: {results}/report.zip)")
        return lines


def _datasets(blocks: Iterable[Block]) -> dict[str, None]:
    return dict.fromkeys(block.dataset for block in blocks)


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
