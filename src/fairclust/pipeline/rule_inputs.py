"""The plan of a run: what every rule asks for, all from the configuration.

Snakemake asks this module for targets, inputs and parameters. Parameters are names and digests, so that a job runs
again when something that it takes from the configuration has changed. The job itself loads the configuration and looks
up what belongs to its names. Nothing heavy is imported at the top, because every Snakemake process imports this module.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from fairclust.datasets.spec import SourceSpec
from fairclust.messages import nearest
from fairclust.metrics.table import METRICS
from fairclust.outputs import content_digest
from fairclust.pipeline.blocks import At, Block, block_params, blocks_of, minutes_of, plan_blocks, plan_jobs
from fairclust.pipeline.cell_store import count_errors
from fairclust.pipeline.config import Config, ConfigError, MethodJobSpec, as_list
from fairclust.pipeline.fingerprint import (
    ClassNotFound,
    class_fingerprint,
    class_parameters,
    code_fingerprint,
)
from fairclust.pipeline.job import Job
from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import ClaimSpec, FigureSpec, PaperSpec, TableSpec
from fairclust.pipeline.provenance import installed_version, required_versions
from fairclust.pipeline.results_folder import damaged_jobs

RECORD = "source.json"
"""The file in a source's folder that says whether the source was obtained, and if not, why."""

NO_PROBLEMS = "[]"
"""The content of a file of problems if everything could be made."""

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
TABLE_FORMATS = ("md", "csv", "tex")


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


def digest_of(value: Any) -> str:
    """Ten hexadecimal digits of a digest of plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:10]


def _fingerprint_or_reason(module: str) -> str:
    """The fingerprint of a module, or why there is none. The job that needs the module then writes the reason."""
    try:
        return code_fingerprint(module)
    except ClassNotFound as error:
        return str(error)


class Product(NamedTuple):
    """What a table, a figure or a claim of a paper needs from the run."""

    needs: list[At]
    metrics: set[str]


class RuleInputs:
    """The blocks and jobs of a run, and everything that is made from their cells."""

    def __init__(self, config: Config, place: Path | None = None) -> None:
        self.config = config
        self.results = config.results
        # Where the results really lie. Snakemake puts the prefix of a module before every path of a rule itself.
        self.place = Path(config.results) if place is None else place
        self.blocks = plan_blocks(config)
        self.jobs = plan_jobs(config, self.blocks)
        self._datasets = list(dict.fromkeys(block.dataset for block in self.blocks))

    def check_classes(self) -> None:
        """ConfigError if a method's class does not exist or does not take a parameter."""
        for method in dict.fromkeys(block.method for block in self.blocks):
            path = self.config.methods[method].class_
            try:
                class_fingerprint(path)
                taken = class_parameters(path)
            except ClassNotFound as error:
                raise ConfigError(f"methods.{method}.class: {error}") from None
            grids = [grid for block in self.blocks if block.method == method for grid in block.grids]
            given = {name for grid in grids for name in (*grid.params, *grid.axes)}
            for name, key in (("n_clusters", "run.n_clusters"), ("random_state", "run.seeds")):
                if name in given:
                    raise ConfigError(f"methods.{method}: the parameter {name!r} is set for you; see {key}")
            for name in sorted(given - taken) if taken is not None else ():
                raise ConfigError(
                    f"methods.{method}: {path} takes no parameter {name!r}; {nearest(name, sorted(taken or ()))}"
                )

    # What tables, figures and claims need

    @cached_property
    def specs(self) -> dict[str, PaperSpec]:
        """The papers of the run, and one more, 'fronts', whose figures are the fronts of all data sets."""
        found = {paper: self.config.papers[paper] for paper in self.config.run.papers}
        if metrics := tuple(self.config.report.fronts):
            title = "Fronts of cost and fairness"
            figures = {
                name: FigureSpec(plot="front", title=title, datasets=[name], x="sse", y=metrics)
                for name in self._datasets
            }
            # No file states it, and it has no experiments of its own.
            found["fronts"] = PaperSpec.model_construct(short_name="", cells_of=["*"], figures=figures)
        return found

    @cached_property
    def shown(self) -> dict[str, dict[str, dict[str, Product]]]:
        """Every paper that has something to show, with its tables, figures and claims that have, by name."""
        needs: dict[str, Callable[[str, Any], Product]]
        needs = {"tables": self._table, "figures": self._figure, "claims": self._claim}
        found = {}
        for paper, spec in self.specs.items():
            of_paper: dict[str, dict[str, Product]] = {}
            for kind, need in needs.items():
                products = {name: need(paper, of) for name, of in getattr(spec, kind).items()}
                of_paper[kind] = {name: product for name, product in products.items() if product.needs}
            if any(of_paper.values()):
                found[paper] = of_paper
        return found

    def _table(self, paper: str, spec: TableSpec) -> Product:
        rows = [row for row in self._reported(paper) if row["table"] == spec.number]
        metrics = {row["metric"] for row in rows} | set(spec.beside)
        if spec.match is not None:
            metrics |= {spec.match.fairness, spec.match.order}
        needs: dict[At, None] = {}
        for row in rows:
            ks = None if row["n_clusters"] is None else [row["n_clusters"]]
            for dataset in (row["dataset"], *spec.stand_ins.get(row["dataset"], ())):
                variants = spec.variants.get(row["method"], ())
                for method in filter(None, (row["method"], *variants, *spec.ours, spec.control)):
                    needs |= dict.fromkeys(self._planned(paper, [dataset], [method], ks))
                if row["method"] == "data":
                    needs |= dict.fromkeys(self._planned(paper, [dataset], [], None)[:1])
        return Product(list(needs), metrics)

    def _figure(self, paper: str, spec: FigureSpec) -> Product:
        metrics = {spec.x, *spec.y}
        if match := self.specs[paper].match_of(spec):
            metrics |= {match.fairness, match.order}
        return Product(self._planned(paper, spec.datasets, spec.methods, spec.n_clusters), metrics)

    def _claim(self, paper: str, spec: ClaimSpec) -> Product:
        needs = self._planned(paper, spec.datasets, spec.methods, spec.n_clusters)
        metrics = {*spec.metrics, *(v for v in spec.options.values() if isinstance(v, str))}
        table = self.specs[paper].tables.get(str(spec.options.get("table", "")))
        if table is None:
            return Product(needs, metrics)
        of_table = self._table(paper, table)
        return Product(list(dict.fromkeys([*needs, *of_table.needs])), metrics | of_table.metrics)

    @cache  # noqa: B019 - there is one object in a process
    def _reported(self, paper: str) -> list[dict[str, Any]]:
        """The reported values of a paper as rows, with None for what the paper does not print."""
        path = self.specs[paper].reported
        if not path:
            return []
        # Imported here, because pandas is heavy and runs without a paper do not need it.
        from fairclust.pipeline.reported import load_reported

        frame = load_reported(path)
        return frame.astype(object).where(frame.notna(), None).to_dict("records")

    def sources_of(self, paper: str) -> list[str]:
        """The papers whose cells a paper reads: its own and those of `cells_of`."""
        return [paper, *self.specs[paper].cells_of]

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

    # Papers, tables and figures

    def papers_shown(self) -> dict[str, PaperSpec]:
        """The papers of the run that have a table."""
        return {paper: self.specs[paper] for paper, of in self.shown.items() if of["tables"]}

    def needs_of(self, paper: str, *kinds: str) -> list[At]:
        """The part of the run that the tables, figures and claims of a paper show, or only some of these `kinds`."""
        shown = self.shown[paper]
        products = [product for kind in kinds or shown for product in shown[kind].values()]
        return list(dict.fromkeys(at for product in products for at in product.needs))

    def tables_of(self, paper: str) -> list[str]:
        """Files of the tables of a paper and of its claims, in three formats."""
        of = self.shown[paper]
        names = [*of["tables"], *["claims"] * bool(of["claims"])]
        return [f"{self.results}/tables/{paper}/{name}.{kind}" for name in names for kind in TABLE_FORMATS]

    def figures_of(self, paper: str) -> list[str]:
        """Files of the figures of a paper, in every format."""
        names, formats = self.shown[paper]["figures"], self.config.report.formats
        return [f"{self.results}/figures/{paper}/{name}.{kind}" for name in names for kind in formats]

    def verdicts(self, paper: str) -> list[str]:
        """Files of a paper's evidence, one for each table."""
        return [f"{self.results}/tables/{paper}/{name}.evidence.csv" for name in self.shown[paper]["tables"]]

    def board_files(self) -> list[str]:
        """Files of the overview and the scoreboard, if they are asked for."""
        names = ["overview"] * self.config.report.overview + ["scoreboard"] * bool(self.papers_shown())
        return [f"{self.results}/tables/{name}.{kind}" for name in names for kind in TABLE_FORMATS]

    def table_files(self) -> list[str]:
        """Files of all tables, three for each."""
        return [file for paper in self.shown for file in self.tables_of(paper)] + self.board_files()

    def figure_files(self) -> list[str]:
        """Files of all figures."""
        return [file for paper in self.shown for file in self.figures_of(paper)]

    def planes(self, paper: str) -> list[str]:
        """Folders of the unscaled data sets whose points the figures of a paper show."""
        figures = (self.specs[paper].figures[name] for name in self.shown[paper]["figures"])
        names = dict.fromkeys(name for figure in figures if figure.points for name in figure.datasets)
        return [f"{self.results}/data/plane/{name}" for name in names]

    @cached_property
    def names(self) -> Names:
        """Titles, labels and looks of the run, and of what its papers report and claim."""
        config, run = self.config, {block.method for block in self.blocks}
        rows = [row for paper in self.specs for row in self._reported(paper)]
        claims = [claim for spec in self.specs.values() for claim in spec.claims.values()]
        datasets = {*self._datasets, *(row["dataset"] for row in rows)}.union(*(c.datasets for c in claims))
        methods = {*run, *(row["method"] for row in rows)}.union(*(claim.methods for claim in claims))
        known = {name: spec for name, spec in config.methods.items() if name in methods}
        return Names(
            datasets={
                name: spec.title + (f" ({spec.shown})" if spec.shown else "")
                for name, spec in config.datasets.items()
                if name in datasets
            },
            methods={name: spec.label or name for name, spec in known.items()},
            families={name: spec.family for name, spec in known.items()},
            ours=[name for name, spec in known.items() if spec.ours],
            order=[name for name in config.methods if name in run],
            looks={name: spec.look for name, spec in known.items() if spec.look},
        )

    # Digests: each changes with everything that decides what a job makes from its inputs

    def report_digest(self, *modules: str, files: Iterable[str | Path] = ()) -> str:
        """Of a job that runs some modules of the report, and reads `files`.

        Their content counts and not their time stamps, because a file that replaces another one may be older.
        """
        code = code_fingerprint(*(f"fairclust.report.{name}" for name in modules))
        contents = [content_digest(path) for path in files]
        return digest_of([self.configuration_digest(), asdict(self.names), contents, code])

    def paper_digest(self, paper: str) -> str:
        return self.report_digest("tables", "figures", "claims", files=self.specs[paper].files)

    def page_digest(self) -> str:
        page = Path(__file__).parents[1] / "report" / "page"
        return self.report_digest("html", files=sorted(path for path in page.iterdir() if path.is_file()))

    def fit_digest(self, dataset: str, name: str) -> str:
        blocks = self.jobs[f"{dataset}/{name}"]
        asked = [[block.stem, block_params(block), self.request(block)] for block in blocks]
        limits, score = self.config.limits.model_dump(), self.config.score.dunn_max_rows
        code = code_fingerprint("fairclust.pipeline.fit_block:BlockFits")
        reuse = as_list(self.config.reuse)
        return digest_of([asked, limits, score, required_versions(self.config), reuse, code])

    def source_digest(self, source: str) -> str:
        return digest_of(self.source_spec(source).model_dump(mode="json"))

    def dataset_digest(self, dataset: str) -> str:
        spec = self.config.datasets[dataset]
        code = ["fairclust.datasets.prepare"]
        if spec.generator is not None:
            code.append(spec.generator.replace(":", ".").rpartition(".")[0])
        sources = self.config.sources_of(dataset)
        return digest_of(
            [
                # As text, because keys that are numbers of columns cannot be sorted among names.
                str(spec.model_dump(exclude_unset=True, exclude={"settings", "shown"})),
                {name: of.model_dump(mode="json", exclude_unset=True) for name, of in sources.items()},
                [_fingerprint_or_reason(module) for module in code],
                # Digests and not time stamps, because a file that replaces another one may be older.
                {path: content_digest(path) for path in self.own_files(dataset)},
                [installed_version(package) for package in ("numpy", "pandas", "scikit-learn")],
            ]
        )

    def graph_digest(self) -> str:
        packages = map(installed_version, ("numpy", "scipy", "scikit-learn", "numba", "pynndescent"))
        code = code_fingerprint("fairclust.kernels.graph", "fairclust.datasets.store:save_graph")
        return digest_of([self.config.graph.model_dump(), code, list(packages)])

    def scores_digest(self) -> str:
        code = code_fingerprint("fairclust.pipeline.scores:gather_scores")
        return digest_of([self.configuration_digest(), code])

    def settings(self) -> dict[str, Any]:
        """The configuration without the catalogue entries that the run does not use, in plain types."""
        used = {
            "datasets": self._datasets,
            "methods": {block.method for block in self.blocks},
            "papers": self.config.run.papers,
        }
        chosen = self.config.model_dump(mode="json", by_alias=True, exclude_unset=True)
        for section, names in used.items():
            chosen[section] = {name: spec for name, spec in chosen.get(section, {}).items() if name in names}
        for paper in chosen["papers"].values():
            paper["reported"] = Path(str(paper.get("reported"))).name
        for key in ("sources", "mirror"):
            chosen.pop(key, None)
        return chosen

    @cache  # noqa: B019 - there is one object in a process
    def configuration_digest(self) -> str:
        """Fingerprint of what decides the results: data sets, methods, papers and cells, but no paths or resources."""
        settings = self.settings()
        for key in ("results", "mirror", "reuse", "catalogues", "also", "jobs", "strict", "strict_versions"):
            settings.pop(key, None)
        return digest_of([settings, [[block.stem, block_params(block)] for block in self.blocks]])

    # Parameters that make a job run again

    def asked(self, source: str, *, at_once: bool = False) -> dict[str, Any]:
        """Where to look for a source. A new value makes Snakemake try the download again.

        It is new if the last attempt failed more than an hour ago or with other mirrors, or if `at_once`. A user's
        archive is stated by its digest, because an archive that replaces it may have an older time stamp.
        """
        new = {"mirrors": as_list(self.config.mirror), "again": ""}
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

    def retry_errors(self, dataset: str, name: str) -> str:
        """Changes with every run while a fit job has errors, so that it tries them again."""
        path = self.place / f"fits/{dataset}/{name}.cells"
        errors = count_errors(path)
        return f"{errors} cells with errors, {path.stat().st_mtime_ns}" if errors else ""

    def retry_problems(self, paper: str) -> str:
        """Changes with every run while a product of a paper could not be made."""
        path = self.place / f"problems/{paper}.json"
        with suppress(OSError):
            if path.stat().st_size > len(NO_PROBLEMS):
                return str(path.stat().st_mtime_ns)
        return ""

    def remade(self, log: str) -> int:
        """Grows when an output of the job with this log is damaged."""
        # Snakemake removes outputs before a job runs, so its processes take what the main process has seen.
        # A workflow may have several modules with results of their own.
        known = json.loads(os.environ.get(REMADE, "{}"))
        if str(self.place) not in known:
            known[str(self.place)] = {job: number for job, (number, _) in damaged_jobs(self.place).items()}
            os.environ[REMADE] = json.dumps(known)
        return known[str(self.place)].get(log, 0)

    # Targets

    def targets(self) -> list[str]:
        """Everything that `rule all` wants."""
        # Prepared data sets and graphs are targets, so that those that the user deletes are made again.
        inputs = [folders for name in self.jobs for folders in self.data_of(*name.split("/")).values()]
        planes = [self.planes(paper) for paper in self.shown]
        data = dict.fromkeys(chain(*inputs, *planes))
        return [*self.products(), *data, f"{self.results}/.complete"]

    def products(self) -> list[str]:
        """Everything that is made from the cells."""
        page = ["report/index.html", "report.zip"] if self.config.report.html else []
        return [
            *(f"{self.results}/scores/{name}" for name in ("scores.parquet", "leaderboard.csv")),
            *self.table_files(),
            *self.figure_files(),
            *(f"{self.results}/{name}" for name in page),
        ]

    # Sources and data sets

    def sources(self) -> list[str]:
        """Folders of all sources that the run downloads."""
        return list(dict.fromkeys(folder for name in self._datasets for folder in self.source_folders(name)))

    def source_spec(self, source: str) -> SourceSpec:
        """A source of the catalogue or of a single data set."""
        for dataset in self.config.datasets:
            found = self.config.sources_of(dataset)
            if source in found:
                return found[source]
        return self.config.sources[source]

    def source_folders(self, dataset: str) -> list[str]:
        """Folders of a data set's fetched sources."""
        fetched = [name for name, of in self.config.sources_of(dataset).items() if not of.reads_in_place]
        return [f"{self.results}/data/raw/{name}" for name in fetched]

    def own_files(self, dataset: str) -> list[str]:
        """The existing files of the user that a data set reads in place."""
        own = [str(spec.path) for spec in self.config.sources_of(dataset).values() if spec.reads_in_place]
        return [path for path in own if Path(path).is_file()]

    def own_archive(self, source: str) -> list[str]:
        """The user's archive that a source is unpacked from; empty if there is none."""
        path = self.source_spec(source).path
        return [str(path)] if path is not None and Path(path).is_file() else []

    def files_of_the_user(self) -> list[str]:
        """All files of the user that the run reads: data, archives and reported values."""
        found = [path for dataset in self._datasets for path in self.own_files(dataset)]
        found += [path for source in self.sources() for path in self.own_archive(Path(source).name)]
        return found + [path for paper in self.config.run.papers for path in self.config.papers[paper].files]

    # Fits

    def resources_of(self, dataset: str, name: str) -> MethodJobSpec:
        """The resources that the methods of a fit job ask for; they are the same for all of them."""
        return self.config.methods[self.jobs[f"{dataset}/{name}"][0].method].jobs

    def data_of(self, dataset: str, name: str) -> dict[str, list[str]]:
        """The inputs of a fit job: prepared data sets, and their graphs if its methods fit these."""
        blocks = self.jobs[f"{dataset}/{name}"]
        places = {"data": "prepared"}
        if self.config.methods[blocks[0].method].input == "graph":
            places["graph"] = "graphs"
        datasets = dict.fromkeys(block.dataset for block in blocks)
        return {key: [f"{self.results}/data/{at}/{of}" for of in datasets] for key, at in places.items()}

    def request(self, block: Block) -> dict[str, Any]:
        """How the cells of a block are fitted and scored, as keywords of `BlockFits`."""
        path, metrics = self.config.methods[block.method].class_, self.metrics_of(block)
        homes = sorted({METRICS[name].function.__module__ for name in metrics})
        scorer = code_fingerprint("fairclust.metrics.table", *homes)
        found = {"class_path": path, "fingerprint": class_fingerprint(path)}
        return {**found, "metrics": metrics, "scorer": scorer}

    @cached_property
    def _asked_metrics(self) -> dict[At, set[str]]:
        asked: dict[At, set[str]] = {}
        # Each claim counts separately, so that the fits of one are not scored by the metrics of another.
        kinds = (products for of_paper in self.shown.values() for products in of_paper.values())
        for product in (product for products in kinds for product in products.values()):
            names = product.metrics | ({_OF_TRUTH} if "accuracy" in product.metrics else set())
            for at in product.needs:
                asked.setdefault(at, set()).update(names)
        return asked

    def metrics_of(self, block: Block) -> list[str]:
        """Metrics of the cells of a block: the cheap ones, and those that a table, figure or claim shows."""
        asked = {*self._asked_metrics.get(block.at, ()), *self.config.score.metrics}
        dataset = self.config.datasets[block.dataset]
        if self.config.methods[block.method].input == "graph":
            asked.add(_OF_GRAPH)
        if dataset.truth is not None or dataset.generator is not None:
            asked.add(_OF_TRUTH)
        if dataset.rows is not None and dataset.rows <= self.config.score.dear_max_rows:
            asked.update(_DEAR)
        return [name for name in METRICS if name in _CHEAP or name in asked]

    def minutes(self, dataset: str, name: str) -> float:
        """Estimated minutes of work in a fit job."""
        return minutes_of(self.config, self.jobs[f"{dataset}/{name}"])

    def packs(self, needs: Iterable[At] | None = None) -> list[str]:
        """Outputs of the fit jobs that have some or all blocks."""
        wanted = None if needs is None else set(needs)
        return [
            f"{self.results}/fits/{name}.cells"
            for name, blocks in self.jobs.items()
            if wanted is None or any(block.at in wanted for block in blocks)
        ]


def inputs_of(job: Job) -> RuleInputs:
    """The plan of the run to which a job belongs. Snakemake gives a job the configuration with all catalogues in it."""
    return RuleInputs(Config.model_validate(job.config))
