"""The configuration: layers and catalogue files merged into one typed model, checked before any job starts."""

from __future__ import annotations

import json
import posixpath
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, Field, ValidationError, field_validator, model_validator
from ruamel.yaml import YAML, YAMLError
from ruamel.yaml.error import MarkedYAMLError

from fairclust.datasets.spec import Catalogue, DatasetSpec, Name, Spec
from fairclust.looks import Colour, Mark
from fairclust.messages import nearest, shortened
from fairclust.metrics.table import METRICS
from fairclust.pipeline.papers import (
    Clusters,
    ConfigError,
    Datasets,
    GridSpec,
    Methods,
    Names,
    OneOrMore,
    Papers,
    Seeds,
    _check_unique,
    names_of,
    one_of,
)

SECTIONS = ("sources", "datasets", "methods", "papers")
# The names of the rules. Each paper has a rule of its own name, which must be another one.
RULES = {
    "all", "everything", "download", "download_source", "prepare_dataset", "prepare_unscaled", "neighbour_graph", "fit",
    "scores", "table", "tables", "figure", "figures", "claims", "leaderboard", "scoreboard", "page", "check",
}  # fmt: skip
# Plain words for some of pydantic's problems.
_WORDS = {
    "too_short": "expected at least one entry",
    **dict.fromkeys(("list_type", "tuple_type"), "expected a list"),
    **dict.fromkeys(("dict_type", "model_type"), "expected keys and values"),
}


class RunSpec(Spec):
    """What to run, by names from the catalogues: whole papers, and further data sets x methods."""

    papers: Annotated[Names, names_of("papers")] = Field(
        default_factory=list, description="Names from `papers`."
    )
    only: dict[Literal["datasets", "methods"], Names] = Field(default_factory=dict)
    """Only these data sets, or methods, of the papers."""
    datasets: Datasets = Field(default_factory=list)
    """Names from `datasets`, in addition to the papers' data sets."""
    methods: Methods = Field(default_factory=lambda: ["kmeans", "vfc_kmeans_accelerated", "price_kmeans"])
    """Methods for these data sets."""
    n_clusters: Annotated[dict[str, Clusters], names_of("datasets")] = Field(default_factory=dict)
    """K per data set, instead of its default or that of the experiments."""
    sweeps: bool = True
    """Whether to make the dense grids of figures, too."""
    seeds: Seeds | None = None
    """The number of seeds (0, 1, ...) or a list of them. Default: the seeds of the papers, else 5."""


class LimitSpec(Spec):
    """Limits of one cell."""

    cell_seconds: float = Field(default=3600, gt=0)
    """Wall seconds of one fit. A longer fit gets the status 'timeout'."""


class JobSpec(Spec):
    """Resources that a job asks for."""

    threads: int = Field(default=1, ge=1, description="Threads of a fit job (BLAS and numba alike).")
    mem_mb: int = Field(default=2000, ge=800, description="Memory of a fit job with small data.")
    runtime: int = Field(default=60, ge=1, description="Time limit in minutes of a fit job with little work.")
    attempts: int = Field(default=2, ge=1)
    """How often a fit job that fails is tried before its missing cells get the status 'error'."""


class MethodJobSpec(Spec):
    """Resources that the fit jobs of one method ask for, instead of those in `jobs`."""

    threads: int | None = Field(default=None, ge=1)
    mem_mb: int | None = Field(default=None, ge=800, description="For small data; it grows with the data.")
    runtime: int | None = Field(default=None, ge=1)
    """Smallest time limit in minutes; it grows with the work."""
    seconds_per_million: float = Field(default=5, gt=0)
    """Estimated seconds of one fit of a million rows with K = 10."""


class MethodSpec(GridSpec):
    """A method of the catalogue."""

    class_: str = Field(alias="class", pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$")
    label: str | None = Field(default=None, description="Name in tables and figures.")
    look: tuple[Colour, Mark] | None = None
    """Colour and mark in figures and on the page."""
    family: str = Field(default="other", min_length=1)
    """Kind of method, to filter by in the report."""
    ours: bool = Field(default=False, description="Whether the method is this project's, not a paper's.")
    input: Literal["points", "graph"] = "points"
    """What `fit` gets: the points, or their sparse neighbour graph."""
    settings_of: Annotated[str | None, names_of("methods")] = None
    """Another method, whose `settings` in a data set also apply to this one."""
    jobs: MethodJobSpec = MethodJobSpec()


class RunnableDataset(DatasetSpec):
    """A data set with the grids of methods on it."""

    settings: Annotated[dict[str, GridSpec], names_of("methods")] = Field(default_factory=dict)
    """Method to parameters, or axes of its grid, that differ on this data set."""


class ScoreSpec(Spec):
    """Options of the scorer."""

    metrics: Annotated[Names, one_of(*METRICS)] = Field(default_factory=list)
    """Expensive metrics for every cell, in addition to those that tables, figures and claims show."""
    expensive_max_rows: int = Field(default=2_000, ge=0)
    """Up to this many rows, every cell gets the expensive metrics."""


class GraphSpec(Spec):
    """The neighbour graph of methods with `input: graph`."""

    n_neighbors: int = Field(default=20, ge=2, description="Neighbours of a point, itself included.")


class ReportSpec(Spec):
    """What the report contains in addition to the papers' tables and figures."""

    fronts: Annotated[Names, one_of(*METRICS)] = Field(
        default_factory=lambda: ["balance", "delta", "fairness_error", "fairness_ratio"],
        description="Fairness metrics of the fronts, one figure per data set, one panel per metric; empty: no fronts.",
    )
    formats: Annotated[list[Literal["png", "pdf", "svg"]], AfterValidator(_check_unique)] = Field(
        default=["png", "pdf"], min_length=1
    )
    html: bool = Field(default=True, description="Whether to write report/index.html.")


class Config(Catalogue):
    """Everything that `config/config.yaml` may say."""

    catalogues: list[str] = Field(default_factory=list)
    """Folders of YAML files with sources, datasets, methods, papers."""
    results: str = Field(default="results", min_length=1, description="Folder of all results.")
    mirror: Annotated[list[str], OneOrMore] = Field(default_factory=list)
    """Folder(s) or base URL(s) tried before upstream."""
    strict: bool = Field(default=False, description="Exit with an error if any cell is not ok.")
    same_digits: bool = True
    """Whether jobs use only instructions that x86-64 processors have since 2013, so that all give the same results."""
    run: RunSpec
    limits: LimitSpec = LimitSpec()
    jobs: JobSpec = JobSpec()
    graph: GraphSpec = GraphSpec()
    score: ScoreSpec = ScoreSpec()
    report: ReportSpec = ReportSpec()
    datasets: dict[Name, RunnableDataset] = Field(default_factory=dict)  # type: ignore[assignment]
    methods: dict[Name, MethodSpec] = Field(default_factory=dict)
    papers: Papers = Field(default_factory=dict)

    @field_validator("results")
    @classmethod
    def _clean_path(cls, value: str) -> str:
        path = posixpath.normpath(value)
        if path in (".", "/", "//") or value[0] in "~ " or set("{}") & set(value) or not value.isprintable():
            raise ValueError(
                f"{value!r} cannot be the folder of results: name a separate folder, such as 'results'"
            )
        return path

    @model_validator(mode="after")
    def _names_exist(self) -> Config:
        # The default methods apply only to `run.datasets`; without those, a catalogue need not have them.
        problems = unknown("run.methods", self.run.methods, self.methods) if self.run.datasets else []
        for part, names in self.run.only.items():
            problems += unknown(f"run.only.{part}", names, getattr(self, part))
        if "fronts" in self.papers:
            problems.append("papers.fronts: rename the paper; the fronts of all data sets have this name")
        taken = sorted(RULES & self.papers.keys())
        problems += [
            f"papers.{name}: rename the paper; a rule of the workflow has this name" for name in taken
        ]
        if not self.run.papers and not self.run.datasets:
            problems.append("run: there is nothing to run; name `papers` or `datasets`")
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def settings(self, method: str, dataset: str, of_experiment: GridSpec | None = None) -> GridSpec:
        """Parameters and axes of a method on a data set."""
        spec, of_dataset = self.methods[method], self.datasets[dataset].settings
        settings: GridSpec = spec
        for layer in (of_dataset.get(spec.settings_of or ""), of_dataset.get(method), of_experiment):
            settings = layer.over(settings) if layer else settings
        return settings


def laid_over(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two mappings as Snakemake does: nested mappings are merged, all other values are replaced."""
    both = dict(base)
    for key, value in top.items():
        nested = isinstance(both.get(key), Mapping) and isinstance(value, Mapping)
        both[key] = laid_over(both[key], value) if nested else value
    return both


def with_user_layer(merged: Mapping[str, Any], user: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the shipped selection of papers and data sets if the user's files or command line make a selection."""
    mine, run, selection = user.get("run"), merged.get("run"), {"papers", "datasets"}
    if isinstance(mine, Mapping) and isinstance(run, Mapping) and selection & mine.keys():
        return {**merged, "run": {k: v for k, v in run.items() if k not in selection or k in mine}}
    return dict(merged)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file, in which no key may occur twice. If it cannot be read, it is a ConfigError."""
    try:
        if path.exists() and not path.is_file():
            raise ValueError("it is not a regular file")
        content = YAML(typ="safe", pure=True).load(path)
    except MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        what = shortened(f"{error.problem}".partition("\n")[0], 200)
        raise ConfigError(f"{path} cannot be read: {where}{what}. Fix: correct this line") from None
    except RecursionError:
        raise ConfigError(f"{path} cannot be read: it is nested too deeply") from None
    except (OSError, ValueError, LookupError, AttributeError, TypeError, YAMLError) as error:
        raise ConfigError(f"{path} cannot be read: {error}".partition("\n")[0]) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: expected keys and values; found {shortened(repr(content))}")
    return content


def read_catalogues(places: Any) -> tuple[dict[str, Any], dict[str, Path]]:
    """Merge the YAML files of catalogue folders, or single ones; also returns the file of each ``section.name``.

    ConfigError if there is no such folder or file, an entry is defined in two files, or a file holds something else.
    """
    if not isinstance(places, list | None) or any(not isinstance(place, str) for place in places or ()):
        raise ConfigError(f"catalogues: expected a list of folders; found {shortened(repr(places))}")
    files: list[Path] = []
    for place in map(Path, dict.fromkeys(places or ())):
        if not place.is_dir() and not place.is_file():
            raise ConfigError(f"catalogues: there is no folder or file {str(place)!r}")
        files += sorted([*place.glob("*.yaml"), *place.glob("*.yml")]) if place.is_dir() else [place]
    sections: dict[str, Any] = {section: {} for section in SECTIONS}
    file_of: dict[str, Path] = {}
    for file in files:
        for section, entries in read_yaml(file).items():
            if str(section).startswith("x-"):  # anchors that the file's entries share
                continue
            if section not in SECTIONS or not isinstance(entries, dict):
                raise ConfigError(f"{file}: {section}: expected names and entries of {', '.join(SECTIONS)}")
            for name, entry in entries.items():
                key = f"{section}.{name}"
                if key in file_of:
                    raise ConfigError(
                        f"{key} is defined in {file_of[key]} and in {file}; rename one of them, or change single "
                        "keys in your configuration file"
                    )
                file_of[key] = file
                if section == "papers" and isinstance(entry, dict):
                    reported = entry.get("reported") or f"{name}.csv"
                    entry = {**entry, "reported": str(file.parent / str(reported))}
                sections[section][name] = entry
    return sections, file_of


def load_config(
    raw: Mapping[str, Any], *, user: Mapping[str, Any] | None = None, origin: str = "config/config.yaml"
) -> Config:
    """Check a configuration that comes from Snakemake or from YAML, with all layers merged.

    `user` are the user's layers alone, `origin` is the file that messages name. ConfigError has a line for each
    problem: the key, what was found, what is expected, the nearest valid name.
    """
    file_of: dict[str, Path] = {}
    try:
        chosen = with_user_layer(raw, user or {})
        sections, file_of = read_catalogues(chosen.get("catalogues"))
        merged = laid_over(sections, chosen)
        names = {part: list(map(str, merged[part])) for part in SECTIONS if isinstance(merged[part], Mapping)}
        return Config.model_validate(merged, context=dict.fromkeys(SECTIONS, ()) | names)
    except ConfigError as error:
        raise ConfigError(f"{origin}: {error}") from None
    except ValidationError as error:
        lines = []
        problems = error.errors()
        places = [problem["loc"] for problem in problems]
        for problem in problems:
            # For pydantic, a list whose entries are wrong is also empty.
            if any(problem["loc"] == place[: len(problem["loc"])] != place for place in places):
                continue
            location = _keys_to(problem["loc"], merged)
            if problem["type"] == "extra_forbidden":
                texts = [f"no such key; {nearest(str(location[-1]), _known_fields(location))}"]
            elif problem["type"] == "missing":
                location.append(problem["loc"][-1])
                texts = ["missing; it has no default"]
            elif problem["type"] == "value_error":
                texts = str(problem["ctx"]["error"]).splitlines()
            else:
                said = _WORDS.get(problem["type"], problem["msg"])
                texts = [f"{said}; found {shortened(repr(problem['input']))}"]
            # The file to correct is the catalogue's, unless the user's own configuration states the key.
            stated = _keys_to(problem["loc"], user or {}) == _keys_to(problem["loc"], merged)
            home = None if stated else file_of.get(".".join(map(str, location[:2])))
            key, where = ".".join(map(str, location)), f" (see {home})" if home else ""
            lines += [f"{key}: {text}{where}" if key else text for text in texts]
        listed = "".join(f"\n  - {line}" for line in dict.fromkeys(lines))
        raise ConfigError(f"{origin} cannot be used:{listed}") from None
    except RecursionError:
        raise ConfigError(f"{origin} cannot be used: a YAML alias in it contains itself") from None


def user_config(configfiles: Iterable[Path], stated: Mapping[str, Any] | None = None) -> Config:
    """The configuration of a run in the working folder: these files, and then what is stated, over the shipped one."""
    shipped = Path("config/config.yaml")
    if not shipped.is_file():
        raise ConfigError(f"there is no {shipped}: run this in the folder that holds `config` and `workflow`")
    sys.path.insert(0, str(Path.cwd()))  # for the user's classes in this folder
    user: dict[str, Any] = {}
    for path in configfiles:
        user = laid_over(user, read_yaml(path))
    user = laid_over(user, stated or {})
    origin = " with ".join(map(str, (shipped, *configfiles)))
    return load_config(laid_over(read_yaml(shipped), user), user=user, origin=origin)


def unknown(key: str, names: Iterable[str], known: Collection[str]) -> list[str]:
    """A line for each of the names of a key that is not known."""
    return [f"{key}: there is no {name!r}; {nearest(name, known)}" for name in names if name not in known]


def _keys_to(location: Iterable[Any], inside: Any) -> list[Any]:
    """The keys and positions that lead to a problem. Pydantic also names members of unions, which no file has."""
    keys = []
    for step in location:
        known: Collection[Any] = ()
        if isinstance(inside, Mapping):
            known = inside.keys()
        elif isinstance(inside, list):
            known = range(len(inside))
        if step in known:
            inside = inside[step]
            keys.append(step)
    return keys


def _known_fields(location: list[Any]) -> list[str]:
    """Field names of the model that holds the key at `location`."""
    model: type[BaseModel] = Config
    for step in location[:-1]:
        # A name in a mapping or a position in a list leads to no other model.
        type_ = {info.alias or name: info.annotation for name, info in model.model_fields.items()}.get(step)
        model = next(_models_in(type_), model)
    return [info.alias or name for name, info in model.model_fields.items()]


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that an annotation names, also as values of mappings and members of unions."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def json_schema() -> str:
    """JSON schema of the configuration, for editors."""
    return json.dumps(Config.model_json_schema(by_alias=True), indent=2) + "\n"
