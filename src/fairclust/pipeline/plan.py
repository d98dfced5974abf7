"""The plan of a run: what every rule asks for, all of it from the configuration.

The rules in `workflow/rules/` ask this module for inputs and parameters. Parameters are plain data and fingerprints of
code, so that a script needs nothing but them. No file of the results is read here, and nothing heavy is imported above.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from fairclust.datasets.spec import SourceSpec
from fairclust.looks import looks_of
from fairclust.messages import nearest
from fairclust.metrics.table import METRICS
from fairclust.outputs import content_digest
from fairclust.pipeline.config import Config, ConfigError, MethodSpec
from fairclust.pipeline.fingerprint import (
    ClassNotFound,
    class_fingerprint,
    class_parameters,
    code_fingerprint,
)
from fairclust.pipeline.grids import Cell, Grid, cells_of_grids
from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import ALL, ClaimSpec, ExperimentSpec, FigureSpec, PaperSpec, TableSpec
from fairclust.pipeline.provenance import installed_version

DEFAULT_SEEDS = 5
FORMATS = {"tables": ("md", "csv", "tex"), "claims": ("md", "csv")}
_CHEAP = tuple(name for name, metric in METRICS.items() if metric.needs == "table" or name == "sse")
# Cheap metrics that are computed for every fit of a graph, or of a data set whose true clusters are known.
_OF_GRAPH, _OF_TRUTH = "ncut", "clustering_error"
# How cells are read depends on this file as on the code.
_WORDS = Path(__file__).parents[1] / "tables" / "words.toml"


class Fit(NamedTuple):
    """A fit job: a method on a data set, with all its grids, or with those of one sweep."""

    dataset: str
    method: str
    sweep: str
    grids: tuple[Grid, ...]

    @property
    def name(self) -> str:
        """``adult/vfc_kmeans`` or, for a sweep, ``adult/vfc_kmeans.figure2``."""
        return f"{self.dataset}/{self.method}" + (f".{self.sweep}" if self.sweep else "")

    def cells(self) -> list[Cell]:
        return cells_of_grids(self.dataset, self.grids)


def fits_of(config: Config, papers: Collection[str]) -> dict[str, Fit]:
    """What some papers ask for, or with '*' the whole run, in the order in which they name it."""
    grids: dict[tuple[str, str, str], list[Grid]] = {}
    run = config.run
    experiments: list[tuple[ExperimentSpec, Mapping[Any, list[str]]]] = [
        (experiment, run.only)
        for paper in run.papers
        if paper in papers or ALL in papers
        for experiment in config.papers[paper].experiments
    ]
    if ALL in papers:
        experiments.append((ExperimentSpec.model_construct(datasets=run.datasets, methods=run.methods), {}))
    for experiment, only in experiments:
        if experiment.sweep and not run.sweeps:
            continue
        for dataset, method in itertools.product(experiment.datasets, experiment.methods):
            if dataset not in only.get("datasets", [dataset]) or method not in only.get("methods", [method]):
                continue
            stated = next((s for s in (run.seeds, experiment.seeds) if s is not None), DEFAULT_SEEDS)
            seeds = tuple(range(stated) if isinstance(stated, int) else stated)
            spec = config.settings(method, dataset, experiment.settings.get(method))
            fit = grids.setdefault((dataset, method, experiment.sweep), [])
            default = [config.datasets[dataset].n_clusters]
            for k in run.n_clusters.get(dataset) or experiment.n_clusters or default:
                grid = Grid(k, spec.params, spec.grid, seeds)
                if grid not in fit:
                    fit.append(grid)
    fits = (Fit(*names, tuple(of_fit)) for names, of_fit in grids.items())
    return {fit.name: fit for fit in fits}


Product = tuple[str, str, str]
"""What is made from fits: a paper, a section of its file ('tables', 'figures' or 'claims'), and a name in it."""

Needs = dict[tuple[str, int], set[str]]
"""The fits that a product shows, by the names of their jobs and K, in its order, each with its metrics."""


def joined(parts: Iterable[Needs]) -> Needs:
    """All that several products need."""
    whole: Needs = {}
    for fits, metrics in itertools.chain.from_iterable(part.items() for part in parts):
        whole[fits] = whole.get(fits, set()) | metrics
    return whole


def share_sources() -> None:
    """Let the scripts of jobs find this package, also in conda environments and on other machines."""
    paths = str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))


def megabytes(paths: Iterable[str]) -> float:
    """Size of files and folders, in units of 2**20 bytes."""
    files = (file for path in map(Path, paths) for file in (path, *path.rglob("*")))
    return sum(file.stat().st_size for file in files if not file.is_dir()) / 2**20


def digest_of(value: Any) -> str:
    """Ten hexadecimal digits of a digest of plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:10]


def code_of(*roots: str, packages: Iterable[str] = (), files: Iterable[str | Path] = ()) -> str:
    """Fingerprint of all code that the roots reach, of versions of packages, and of the contents of files.

    Contents and not time stamps, because a file that replaces another one may be older.
    """
    contents = [(Path(path).name, content_digest(path)) for path in files]
    return digest_of([code_fingerprint(*roots), list(map(installed_version, packages)), contents])


class Plan:
    """The fits of a run, and everything that is made from them."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.results = config.results
        self.fits = fits_of(config, ALL)
        self.datasets = list(dict.fromkeys(fit.dataset for fit in self.fits.values()))

    def check(self) -> None:
        """ConfigError if there is nothing to fit, a K is larger than its data set, or a class cannot be used.

        Classes and generators must exist, and a class must take the parameters of its method.
        """
        if not self.fits:
            raise ConfigError("run: nothing is left to fit; check its `datasets`, `methods` and `only`")
        for fit in self.fits.values():
            rows, most = self.config.datasets[fit.dataset].rows, max(grid.n_clusters for grid in fit.grids)
            if rows is not None and most > rows:
                raise ConfigError(
                    f"datasets.{fit.dataset}: it has {rows} rows; lower K = {most} (`n_clusters`)"
                )
        for name in self.datasets:
            try:
                code_fingerprint(*self._preparing(name))
            except ClassNotFound as error:
                raise ConfigError(f"datasets.{name}.generator: {error}") from None
        for method in dict.fromkeys(fit.method for fit in self.fits.values()):
            path = self.config.methods[method].class_
            try:
                class_fingerprint(path)
                taken = class_parameters(path)
            except ClassNotFound as error:
                raise ConfigError(f"methods.{method}.class: {error}") from None
            grids = [grid for fit in self.fits.values() if fit.method == method for grid in fit.grids]
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
        specs = {paper: self.config.papers[paper] for paper in self.config.run.papers}
        if metrics := tuple(self.config.report.fronts):
            title = "Fronts of cost and fairness"
            front = FigureSpec.model_construct(plot="front", title=title, x="sse", y=metrics, sweep=ALL)
            figures = {}
            for name in self.datasets:
                # A sweep over K compares few methods and would add a panel for each K and metric.
                fits = (fit for fit in self.fits.values() if fit.dataset == name and not fit.sweep)
                ks = sorted({grid.n_clusters for fit in fits for grid in fit.grids})
                figures[name] = front.model_copy(update={"datasets": [name], "n_clusters": ks or None})
            # No file states it, and it has no experiments of its own.
            specs["fronts"] = PaperSpec.model_construct(short_name="", cells_of=[ALL], figures=figures)
        return specs

    @cached_property
    def shown(self) -> dict[Product, Needs]:
        """The tables, figures and claims that show fits of the run, and which.

        The claims of a paper are one product, whose name is 'claims'.
        """
        shown: dict[Product, Needs] = {}
        for paper, spec in self.specs.items():
            shown |= {
                (paper, "tables", name): self._table(paper, table) for name, table in spec.tables.items()
            }
            for name, one in spec.figures.items():
                axes = {one.x, *one.y}
                planned = self._planned(paper, axes, one.sweep, one.datasets, one.methods, one.n_clusters)
                shown[paper, "figures", name] = planned
            claims = (self._claim(paper, claim) for claim in spec.claims.values())
            shown[paper, "claims", "claims"] = joined(claims)
        return {product: needs for product, needs in shown.items() if needs}

    def _table(self, paper: str, spec: TableSpec) -> Needs:
        rows = [row for row in self._reported(paper) if row["table"] == spec.number]
        metrics = {row["metric"] for row in rows} | set(spec.beside)
        if spec.match is not None:
            metrics |= {spec.match.fairness, spec.match.order}
        needs: Needs = {}
        for row in rows:
            ks = None if row["n_clusters"] is None else [row["n_clusters"]]
            dataset, variants = row["dataset"], spec.variants.get(row["method"], ())
            for method in filter(None, (row["method"], *variants, *spec.ours, spec.control)):
                needs |= self._planned(paper, metrics, "", [dataset], [method], ks)
            if row["method"] == "data":
                planned = self._planned(paper, metrics, "", [dataset], [], None)
                needs |= dict(itertools.islice(planned.items(), 1))
        return needs

    def _claim(self, paper: str, spec: ClaimSpec) -> Needs:
        metrics = {*spec.metrics, *(v for v in spec.options.values() if isinstance(v, str))}
        # The further methods of a comparison may be on another data set.
        datasets = [*spec.datasets, str(spec.options.get("other_dataset", ""))]
        return self._planned(paper, metrics, spec.sweep, datasets, spec.methods, spec.n_clusters)

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

    @cache  # noqa: B019 - there is one object in a process
    def _fits_of(self, paper: str) -> dict[str, Fit]:
        """The fits that a paper and those of `cells_of` ask for."""
        return fits_of(self.config, (paper, *self.specs[paper].cells_of))

    def _planned(
        self,
        paper: str,
        metrics: set[str],
        sweep: str,
        datasets: Iterable[str],
        methods: Iterable[str],
        ks: list[int] | None,
    ) -> Needs:
        """The fits of a paper on these data sets; all its methods if none are named, and all its K if `ks` is None."""
        wanted, listed = set(datasets), set(methods)
        if "accuracy" in metrics:
            metrics = metrics | {_OF_TRUTH}
        return {
            (fit.name, grid.n_clusters): metrics
            for fit in self._fits_of(paper).values()
            if fit.dataset in wanted and (not listed or fit.method in listed) and sweep in (fit.sweep, ALL)
            for grid in fit.grids
            if ks is None or grid.n_clusters in ks
        }

    # Papers, tables and figures

    def papers(self) -> dict[str, Any]:
        """The entries of the papers that have a table, as plain data."""
        papers = dict.fromkeys(paper for paper, section, _ in self.shown if section == "tables")
        return {paper: plain(self.specs[paper]) for paper in papers}

    def fits_shown(self, paper: str, section: str, name: str = "claims") -> list[str]:
        """The files of fits that a product reads; ConfigError if there is no product of this name."""
        products = {f"{p}/{n}": needs for (p, s, n), needs in self.shown.items() if s == section}
        jobs = {job for job, _ in _entry(section.removesuffix("s"), f"{paper}/{name}", products)}
        return [self.fit_file(fit) for job, fit in self.fits.items() if job in jobs]

    def product(self, paper: str, section: str, name: str = "claims") -> dict[str, Any]:
        """What the script of a table or figure, or of a paper's claims, needs besides its inputs, as plain data.

        `specs` are the entries that it makes, by name. `asked` are the data sets, methods, K and grids that it shows,
        because its inputs also hold the fits of other papers.
        """
        spec, asked, fits = self.specs[paper], [], self._fits_of(paper)
        for job, k in self.shown[paper, section, name]:
            one = fits[job]
            grids = [asdict(grid) for grid in one.grids if grid.n_clusters == k]
            key = {"dataset": one.dataset, "method": one.method, "n_clusters": k, "sweep": one.sweep}
            asked.append({**key, "grids": grids})
        claims = {key: claim for key, claim in spec.claims.items() if self._claim(paper, claim)}
        made = claims if section == "claims" else {name: getattr(spec, section)[name]}
        mentioned = [*asked, *self._reported(paper)]
        mentioned += [{"dataset": name} for entry in made.values() for name in getattr(entry, "datasets", ())]
        mentioned += [{"method": name} for entry in made.values() for name in getattr(entry, "methods", ())]
        return {
            **{"specs": all_plain(made), "programs": all_plain(spec.programs)},
            "title": spec.short_name,
            "asked": asked,
            "names": self.names(mentioned),
        }

    def unscaled(self, paper: str, figure: str) -> list[str]:
        """Folders of the unscaled data sets whose points a figure shows."""
        spec = self.specs[paper].figures[figure]
        return [f"{self.results}/data/unscaled/{name}" for name in spec.datasets if spec.plot == "clusters"]

    def names(self, mentioned: Collection[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """Titles, labels and looks of some data sets and methods; by default, of those of the run and its papers."""
        run = [{"dataset": fit.dataset, "method": fit.method} for fit in self.fits.values()]
        rows = mentioned or [*run, *(row for paper in self.specs for row in self._reported(paper))]
        datasets, methods = ({row.get(key) for row in rows} for key in ("dataset", "method"))
        known = {name: spec for name, spec in self.config.methods.items() if name in methods}
        planned = {row["method"] for row in run}
        # Not of the methods mentioned alone, so that a method looks the same in every figure.
        stated = {
            name: spec.look for name, spec in self.config.methods.items() if spec.look or name in planned
        }
        looks = looks_of(stated)
        names = Names(
            datasets={
                name: spec.title + (f" ({spec.shown})" if spec.shown else "")
                for name, spec in self.config.datasets.items()
                if name in datasets
            },
            methods={name: spec.label or name for name, spec in known.items()},
            families={name: spec.family for name, spec in known.items()},
            ours=[name for name, spec in known.items() if spec.ours],
            looks={name: looks[name] for name in known if name in looks},
        )
        return asdict(names)

    # Files

    def reported_files(self, paper: str) -> list[str]:
        """The files of the values that a paper and its programs report."""
        return self.specs[paper].files if paper in self.specs else []

    def files(self, *sections: str, papers: Iterable[str] = (), ends: Iterable[str] = ()) -> list[str]:
        """The files of all tables, figures or claims, or of those of some papers; without endings, all formats."""
        files = []
        for paper, section, name in self.shown:
            if section in sections and (not papers or paper in papers):
                formats = self.config.report.formats if section == "figures" else FORMATS[section]
                folder = f"{self.results}/{'figures' if section == 'figures' else 'tables'}/{paper}"
                files += [f"{folder}/{name}.{end}" for end in ends or formats]
        return files

    def table_files(self) -> list[str]:
        """The files of all tables."""
        board = [f"{self.results}/tables/scoreboard.{end}" for end in FORMATS["claims"]]
        return [*self.files("tables", "claims"), *(board if self.files("tables") else [])]

    def targets(self) -> list[str]:
        """All that a complete run makes. Data and fits are among it, so that a deleted one is made again."""
        ends = ["scores/scores.parquet", "scores/leaderboard.csv"]
        ends += ["report/index.html"] if self.config.report.html else []
        made = [f"{self.results}/{end}" for end in ends]
        data = dict.fromkeys(path for fit in self.fits.values() for path in self.fit_inputs(fit).values())
        for paper, section, name in self.shown:
            data |= dict.fromkeys(self.unscaled(paper, name) if section == "figures" else ())
        return [*made, *self.table_files(), *self.files("figures"), *self.fit_files(), *data]

    # Sources and data sets

    def source(self, name: str) -> SourceSpec:
        """A source of the catalogue or of a single data set."""
        sources = dict(self.config.sources)
        for dataset in self.config.datasets:
            sources |= self.config.sources_of(dataset)
        return _entry("source", name, sources)

    def source_folders(self, *datasets: str) -> list[str]:
        """Folders of the fetched sources of data sets."""
        sources = {name: spec for dataset in datasets for name, spec in self.sources_of(dataset).items()}
        return [f"{self.results}/data/raw/{name}" for name, spec in sources.items() if spec.path is None]

    def sources_of(self, dataset: str) -> dict[str, SourceSpec]:
        _entry("data set", dataset, self.config.datasets)
        return self.config.sources_of(dataset)

    def own_files(self, dataset: str) -> list[str]:
        """The existing files of the user that a data set reads in place."""
        paths = [spec.path for spec in self.sources_of(dataset).values() if spec.path is not None]
        return [path for path in paths if Path(path).is_file()]

    def dataset(self, name: str) -> dict[str, Any]:
        """What a data set's entry says of its content, as plain data."""
        spec = _entry("data set", name, self.config.datasets)
        return spec.model_dump(exclude_unset=True, exclude={"settings", "shown"})

    def other_keys(self, dataset: str) -> dict[str, Any]:
        """The keys of an entry besides features, sensitive columns and scaling."""
        shown = ("features", "sensitive", "scale")
        return {key: value for key, value in self.dataset(dataset).items() if key not in shown}

    def prepare_code(self, dataset: str) -> str:
        """Fingerprint of code, words and packages that prepare a data set, and of the user's files that it reads."""
        packages = ("numpy", "pandas", "scikit-learn")
        return code_of(*self._preparing(dataset), packages=packages, files=(_WORDS, *self.own_files(dataset)))

    def _preparing(self, dataset: str) -> list[str]:
        """The modules that prepare a data set."""
        generator = self.config.datasets[dataset].generator
        modules = [generator.rpartition(".")[0]] if generator else []
        return ["fairclust.pipeline.data", *modules]

    # Fits

    def fit(self, dataset: str, method: str) -> Fit:
        """A fit job, by the wildcards of its rule; ConfigError if the run has none of this name."""
        return _entry("fit", f"{dataset}/{method}", self.fits)

    def fit_file(self, fit: Fit) -> str:
        return f"{self.results}/fits/{fit.name}.parquet"

    def fit_files(self) -> list[str]:
        """The files of all fits of the run."""
        return list(map(self.fit_file, self.fits.values()))

    def fit_inputs(self, fit: Fit) -> dict[str, str]:
        """The prepared data set, and its neighbour graph if the method fits it."""
        inputs = {"data": f"{self.results}/data/prepared/{fit.dataset}"}
        if self.method(fit).input == "graph":
            inputs["graph"] = f"{self.results}/data/graphs/{fit.dataset}"
        return inputs

    def method(self, fit: Fit) -> MethodSpec:
        """The entry of a method in the catalogue."""
        return self.config.methods[fit.method]

    def minutes(self, fit: Fit, n_cells: int | None = None) -> float:
        """Estimated minutes of a fit job, or of some of its fits, from the rows that the catalogue states."""
        rows = self.config.datasets[fit.dataset].rows or 10_000
        work = sum(len(grid) * max(grid.n_clusters, 5) / 10 for grid in fit.grids)
        share = 1.0 if n_cells is None else n_cells / max(1, sum(map(len, fit.grids)))
        return share * work * self.method(fit).jobs.seconds_per_million * rows / 1e6 / 60

    def grids(self, fit: Fit) -> list[dict[str, Any]]:
        """The grids of a fit job as plain data."""
        return [asdict(grid) for grid in fit.grids]

    def fit_code(self, fit: Fit) -> str:
        """Fingerprints of the code of a method and of what calls it, and `same_digits`; keys of fits depend on it."""
        code = class_fingerprint(self.method(fit).class_) + code_fingerprint("fairclust.pipeline.fit_cell")
        return code if self.config.same_digits else f"{code}-native"

    def scorer_code(self, fit: Fit) -> str:
        """Fingerprint of the code of the metrics of a fit job."""
        names = set().union(*self.metrics(fit).values())
        modules = sorted({METRICS[name].function.__module__ for name in names})
        return code_fingerprint("fairclust.pipeline.columns", "fairclust.datasets.store", *modules)

    def metrics(self, fit: Fit) -> dict[int, list[str]]:
        """For each K, the cheap metrics and those that a table, a figure or a claim shows."""
        dataset = self.config.datasets[fit.dataset]
        always = set(self.config.score.metrics)
        if self.method(fit).input == "graph":
            always.add(_OF_GRAPH)
        if dataset.truth is not None or dataset.generator is not None:
            always.add(_OF_TRUTH)
        if dataset.rows is not None and dataset.rows <= self.config.score.expensive_max_rows:
            always.update(METRICS)
        metrics = {}
        for k in dict.fromkeys(grid.n_clusters for grid in fit.grids):
            asked = always.union(*(needs.get((fit.name, k), ()) for needs in self.shown.values()))
            metrics[k] = [name for name in METRICS if name in _CHEAP or name in asked]
        return metrics

    # The run as a whole

    def settings(self) -> dict[str, Any]:
        """What was asked for: the keys of `run`, and a digest of data sets, classes and grids."""
        datasets = list(map(self.dataset, self.datasets))
        fits = [(name, self.method(fit).class_, self.grids(fit)) for name, fit in self.fits.items()]
        return {"run": plain(self.config.run), "digest": digest_of([datasets, fits])}


def _entry(what: str, name: str, entries: Mapping[str, Any]) -> Any:
    if name not in entries:
        raise ConfigError(f"this run has no {what} {name!r}; {nearest(name, entries)}")
    return entries[name]


def plain(spec: Any) -> dict[str, Any]:
    """An entry of the configuration as plain data."""
    return spec.model_dump(mode="json", by_alias=True, exclude_unset=True)


def all_plain(specs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain(spec) for name, spec in specs.items()}
