"""What the Snakefile asks for: targets, inputs and parameters of jobs, all out of the configuration.

Imports nothing heavy at the top: every Snakemake process reads it.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairclust.bench.config import RECORD, Config, ConfigError
from fairclust.bench.fingerprint import (
    ClassNotFound,
    class_parameters,
    file_fingerprint,
    module_fingerprint,
)
from fairclust.bench.grid import block_params, blocks
from fairclust.bench.provenance import installed_version
from fairclust.datasets.spec import nearest
from fairclust.report.catalogue import FIGURES, TABLES, Names, figure_requests

# How long a source that was not to be had is left alone.
RETRY_SECONDS = 3600


def share_sources() -> None:
    """Let the scripts of jobs, in conda environments or on other machines as well, find this package."""
    sources = str(Path(__file__).parents[1])
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


def _fingerprint_or_reason(module: str) -> str:
    """A generator that does not exist is found by the job that calls it, which says so in the data card."""
    try:
        return module_fingerprint(module)
    except ClassNotFound as error:
        return str(error)


def _content_hash(folder: Path) -> str:
    files = sorted(folder.glob("*.csv"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


class Plan:
    """All jobs of a run.

    Parameters
    ----------
    config : Config

    Raises
    ------
    ConfigError
        A class, table or figure that the configuration names does not exist.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.results = config.results
        for key, names, known in (
            ("report.tables", config.report.tables, TABLES),
            ("report.figures", config.report.figures, FIGURES),
        ):
            for name in names:
                if name not in known:
                    raise ConfigError(f"{key}: there is no {name!r} (known: {', '.join(known)})")
        self._blocks = {block.stem: block for block in blocks(config)}
        self._figures = figure_requests(config.report.figures, config.run.datasets)
        self._block_params: dict[str, dict[str, Any]] = {}
        try:
            for block in self._blocks.values():
                self._block_params[block.stem] = block_params(config, block)
                given = {name for cell in self._block_params[block.stem]["cells"] for name in cell["params"]}
                class_path = config.methods[block.method].class_
                taken = class_parameters(class_path)
                for name in sorted(given - taken) if taken is not None else ():
                    raise ConfigError(
                        f"methods.{block.method}: {class_path} takes no parameter {name!r}; "
                        f"{nearest(name, sorted(taken or ()))}"
                    )
        except ClassNotFound as error:
            raise ConfigError(f"methods.{block.method}.class: {error}") from None

    def targets(self) -> list[str]:
        """Everything that `rule all` wants."""
        strict = [f"{self.results}/.strict-ok"] if self.config.strict else []
        made = [*self.tables(), *self.figures(), *self.page()]
        return [f"{self.results}/scores/scores.parquet", *made, *strict]

    # Sources and data sets

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

        What was asked the last time, as long as the answer stands: a file that is there, or one that was not
        to be had from the same places within the last hour. So other mirrors or an hour make a new try.
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
        spec = self.config.datasets[dataset]
        code = ["fairclust.datasets.prepare"]
        if spec.generator is not None:
            code.append(spec.generator.replace(":", ".").rpartition(".")[0])
        return {
            "dataset": {**spec.model_dump(mode="json", exclude_unset=True), **changes},
            "sources": {
                name: source.model_dump(mode="json", exclude_unset=True)
                for name, source in self.config.sources_of(dataset).items()
            },
            "code": [_fingerprint_or_reason(module) for module in code],
            "missing": [
                str(source.path)
                for source in self.config.sources_of(dataset).values()
                if source.reads_in_place and not Path(str(source.path)).is_file()
            ],
        }

    # Fits and scores

    def graph_params(self) -> dict[str, Any]:
        """How the neighbour graphs are made, and the fingerprint of the code that makes them."""
        return {**self.config.graph.model_dump(), "code": module_fingerprint("fairclust.kernels.graph")}

    def versions(self, *packages: str) -> dict[str, str]:
        """Installed versions of packages that a shared result depends on."""
        return {package: installed_version(package) for package in packages}

    def graph_of(self, dataset: str, method: str) -> list[str]:
        """The graph that a fit job needs besides the prepared data set, if any."""
        if self.config.methods[method].input == "points":
            return []
        return [f"{self.results}/data/graphs/{dataset}"]

    def block_params(self, dataset: str, method: str, block: str) -> dict[str, Any]:
        """What a fit job is told."""
        return self._block_params[f"{dataset}/{method}/{block}"]

    def retry_errors(self, dataset: str, method: str, block: str) -> str:
        """Differs from run to run while cells of the block have the status 'error': they are tried again."""
        try:
            index = Path(f"{self.results}/fits/{dataset}/{method}/{block}.jsonl").read_bytes()
        except OSError:
            return ""
        return hashlib.sha256(index).hexdigest()[:16] if b'"status": "error"' in index else ""

    def job_code(self, *modules: str) -> str:
        """Fingerprint of the pipeline's own modules that a job calls."""
        return file_fingerprint(*(f"fairclust.bench.{module}" for module in modules))

    def store(self, dataset: str, method: str, block: str) -> str:
        """Folder of the finished cells of a block; its parts share it."""
        return f"{self.results}/cells/{dataset}/{method}/{block.partition('-')[0]}"

    def indexes(self) -> list[str]:
        """Indexes of all blocks."""
        return [f"{self.results}/fits/{stem}.jsonl" for stem in self._blocks]

    def scorer_fingerprint(self) -> str:
        """Fingerprint of the metrics' source."""
        return module_fingerprint("fairclust.metrics.table")

    def settings(self) -> dict[str, Any]:
        """The configuration in plain types, for the provenance."""
        chosen = self.config.model_dump(mode="json", by_alias=True, exclude_unset=True)
        chosen["datasets"] = {name: chosen["datasets"][name] for name in self.config.run.datasets}
        run = {method for name in self.config.run.datasets for method in self.config.methods_run(name)}
        chosen["methods"] = {name: spec for name, spec in chosen["methods"].items() if name in run}
        chosen.pop("sources", None)
        chosen.pop("mirror", None)
        return chosen

    # Tables and figures

    def tables(self) -> list[str]:
        """Files of all tables, three for each."""
        names = self.config.report.tables
        return [f"{self.results}/tables/{name}.{kind}" for name in names for kind in ("csv", "md", "tex")]

    def figures(self) -> list[str]:
        """Files of all figures."""
        kinds = self.config.report.formats
        return [f"{self.results}/figures/{stem}.{kind}" for stem in self._figures for kind in kinds]

    def names(self) -> dict[str, Any]:
        """What readers see instead of the names in the configuration."""
        return asdict(Names.of_config(self.config.model_dump(mode="json", by_alias=True)))

    def page(self) -> list[str]:
        """The page for readers, and the archive to hand on."""
        return (
            [f"{self.results}/report/index.html", f"{self.results}/report.zip"]
            if self.config.report.html
            else []
        )

    def label(self, file: str) -> dict[str, str]:
        """How Snakemake's own report names a table or figure."""
        return {"name": Path(file).stem, "format": Path(file).suffix[1:]}

    def planes(self) -> list[str]:
        """Folders of the unscaled data sets whose points are shown in figures."""
        shown = {dataset for kind, dataset in self._figures.values() if FIGURES[kind].plane}
        return [f"{self.results}/data/plane/{dataset}" for dataset in sorted(shown)]

    def report_params(self) -> dict[str, Any]:
        """What tables and figures to make, and with which words."""
        return {
            "tables": self.config.report.tables,
            "figures": {stem: list(request) for stem, request in self._figures.items()},
            "formats": self.config.report.formats,
            "names": self.names(),
            "code": [module_fingerprint(f"fairclust.report.{name}") for name in ("tables", "figures")],
            "reported": _content_hash(Path(__file__).parent / "reported"),
        }

    def page_params(self) -> dict[str, Any]:
        """With which words the page is written, and from what code."""
        page = Path(__file__).parent / "report" / "page"
        texts = b"".join(file.read_bytes() for file in sorted(page.iterdir()) if file.is_file())
        return {
            "names": self.names(),
            "code": [module_fingerprint("fairclust.report.html"), hashlib.sha256(texts).hexdigest()[:16]],
            "reported": _content_hash(Path(__file__).parent / "reported"),
        }

    def closing_words(self, began: float) -> list[str]:
        """What is printed when a run has ended well."""
        from fairclust.bench.summary import describe, describe_times

        results = Path(self.results)
        if not (results / "summary.json").is_file():
            return []
        runs = results / "scores" / "runs.parquet"
        lines = describe(results / "summary.json")
        lines += describe_times(runs, results.glob("logs/**/*.log.json"), began)
        damaged = sorted(map(str, results.glob("cells/**/*.corrupt")))
        lines += [f"damaged, set aside, its cells computed again: {path}" for path in damaged]
        lines.append(f"scores:  {results}/scores/scores.csv (and .parquet; costs of the cells in runs.csv)")
        if self.config.report.tables:
            tables = ", ".join(f"{name}.md" for name in self.config.report.tables)
            lines.append(f"tables:  {results}/tables/ ({tables}; also .csv, .tex)")
        if self._figures:
            count = "one figure" if len(self._figures) == 1 else f"{len(self._figures)} figures"
            lines.append(f"figures: {results}/figures/ ({count})")
        if self.config.report.html:
            lines.append(f"report:  {results}/report/index.html (to hand on: {results}/report.zip)")
        return lines
