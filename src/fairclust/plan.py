"""What the Snakefile asks for: targets, inputs and parameters of jobs, all out of the configuration.

Imports nothing heavy at the top: every Snakemake process reads it.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

from fairclust.bench.config import RECORD_SUFFIX, Config, ConfigError
from fairclust.bench.fingerprint import (
    ClassNotFound,
    file_fingerprint,
    module_fingerprint,
    unknown_parameters,
)
from fairclust.bench.grid import block_params, blocks
from fairclust.report.catalogue import FIGURES, TABLES, figure_requests

# How long a source that was not to be had is left alone.
RETRY_SECONDS = 3600


def share_sources() -> None:
    """Let the scripts of jobs, in conda environments or on other machines as well, find this package."""
    sources = str(Path(__file__).parents[1])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if sources not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([sources, *filter(None, paths)])


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
                strange = unknown_parameters(config.methods[block.method].class_, given)
                if strange:
                    raise ConfigError(
                        f"methods.{block.method}: {config.methods[block.method].class_} takes no parameter "
                        f"{', '.join(map(repr, strange))}"
                    )
        except ClassNotFound as error:
            raise ConfigError(f"methods.{block.method}.class: {error}") from None

    def targets(self) -> list[str]:
        """Everything that `rule all` wants."""
        strict = [f"{self.results}/.strict-ok"] if self.config.strict else []
        return [f"{self.results}/scores/scores.parquet", *self.tables(), *self.figures(), *strict]

    # Sources and data sets

    def source_params(self, source: str) -> dict[str, Any]:
        """A source as plain data."""
        for dataset in self.config.datasets:
            found = self.config.sources_of(dataset)
            if source in found:
                return found[source].model_dump(mode="json")
        return self.config.sources[source].model_dump(mode="json")

    def source_files(self, dataset: str) -> list[str]:
        """Inputs of a data set: the records of its sources, and the user's own files that exist."""
        sources = self.config.sources_of(dataset)
        records = [
            f"{self.results}/data/raw/{name}{RECORD_SUFFIX}"
            for name, spec in sources.items()
            if not spec.reads_in_place
        ]
        own = [str(spec.path) for spec in sources.values() if spec.reads_in_place]
        return [*records, *(path for path in own if Path(path).is_file())]

    def asked(self, source: str) -> dict[str, Any]:
        """Where to look for a source, and since when.

        What was asked the last time, as long as the answer stands: a file that is there, or one that was not
        to be had from the same places within the last hour. So other mirrors or an hour make a new try.
        """
        new = {"mirrors": self.config.mirrors, "again": ""}
        try:
            record = json.loads(Path(f"{self.results}/data/raw/{source}{RECORD_SUFFIX}").read_text())
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
        chosen["methods"] = {name: chosen["methods"][name] for name in sorted(run)}
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
            "names": {
                "datasets": {
                    name: spec.title + (f" ({spec.shown})" if spec.shown else "")
                    for name, spec in self.config.datasets.items()
                },
                "methods": {name: spec.label or name for name, spec in self.config.methods.items()},
            },
            "code": [module_fingerprint(f"fairclust.report.{name}") for name in ("tables", "figures")],
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
        lines.append(f"scores:  {results}/scores/scores.csv (and .parquet; costs of the cells in runs.csv)")
        if self.config.report.tables:
            tables = ", ".join(f"{name}.md" for name in self.config.report.tables)
            lines.append(f"tables:  {results}/tables/ ({tables}; also .csv, .tex)")
        if self._figures:
            lines.append(f"figures: {results}/figures/ ({len(self._figures)} figures)")
        return lines
