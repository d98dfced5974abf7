"""The configuration: one typed model that checks everything before any job starts."""

from __future__ import annotations

import difflib
import json
import posixpath
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from fairclust.datasets.spec import Catalogue, Name

# The file, in a source's folder, that says where the source was found, or why not.
RECORD = "source.json"


class ConfigError(ValueError):
    """The configuration cannot be used; every line of the message names a key and what to do."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, and with 10 and 10.0 written alike."""

    def plain(item: Any) -> Any:
        if isinstance(item, dict):
            return {str(k): plain(v) for k, v in item.items()}
        if isinstance(item, list | tuple):
            return [plain(v) for v in item]
        if isinstance(item, int) and not isinstance(item, bool):
            return float(item)
        return item

    return json.dumps(plain(value), sort_keys=True)


def _check_seeds(value: int | list[int]) -> int | list[int]:
    if (value < 1) if isinstance(value, int) else (not value or min(value) < 0):
        raise ValueError("give a number of seeds of at least 1, or a list of seeds from 0 on")
    return value


def _check_unique(values: list[Any]) -> list[Any]:
    texts = [canonical_json(value) for value in values]
    double = [value for value, text in zip(values, texts, strict=True) if texts.count(text) > 1]
    if double:
        raise ValueError(f"{double[0]!r} stands there more than once")
    return values


def _check_json(value: Any) -> Any:
    try:
        canonical_json(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{value!r} is neither number, text, boolean, list nor mapping; put it in quotes"
        ) from None
    return value


Seeds = (
    Annotated[int, AfterValidator(_check_seeds)]
    | Annotated[list[int], AfterValidator(_check_unique), AfterValidator(_check_seeds)]
)
Names = Annotated[list[str], AfterValidator(_check_unique)]
Clusters = Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=1), AfterValidator(_check_unique)]
Plain = Annotated[Any, AfterValidator(_check_json)]
Axis = Annotated[list[Plain], Field(min_length=1), AfterValidator(_check_unique)]


class RunSpec(_Strict):
    """What to run, by names out of the catalogues."""

    datasets: Names = Field(min_length=1, description="Names out of `datasets`.")
    methods: Names = Field(min_length=1, description="Names out of `methods`.")
    methods_of: dict[str, Names] = Field(
        default_factory=dict, description="Methods of single data sets, instead of `methods`."
    )
    seeds: Seeds = Field(default=5, description="How many seeds (0, 1, ...), or which.")
    n_clusters: dict[str, Clusters] = Field(
        default_factory=dict, description="K per data set, instead of the data set's own."
    )
    parts: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict, description="Into how many jobs a data set's blocks are cut; 1 if not named."
    )

    @property
    def seed_list(self) -> list[int]:
        return list(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds


class LimitSpec(_Strict):
    """Limits of one cell; a cell beyond them becomes a row with its status."""

    cell_seconds: float = Field(
        default=3600, gt=0, description="Wall seconds of one fit; beyond: status 'timeout'."
    )
    cell_memory_mb: float = Field(
        default=16000, gt=0, description="Resident memory of one fit; beyond: status 'error'."
    )


class ResourceSpec(_Strict):
    """What one job asks for."""

    threads: int = Field(default=1, ge=1, description="Threads of a fit job (BLAS and numba alike).")
    mem_mb: int = Field(
        default=2000, ge=300, description="Memory of a fit job of small data; doubled at every retry."
    )
    runtime: int = Field(
        default=120, ge=1, description="Minutes of a fit job of small data; doubled at every retry."
    )


class GridSpec(_Strict):
    """Parameters of one method on one data set."""

    params: dict[str, Plain] = Field(default_factory=dict)
    grid: dict[str, Axis] = Field(default_factory=dict)


class MethodSpec(GridSpec):
    """A method of the catalogue."""

    class_: str = Field(alias="class", pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$")
    label: str | None = Field(default=None, description="Name in tables and figures.")
    family: str = Field(
        default="other", min_length=1, description="Kind of method, to filter by in the report."
    )
    input: Literal["points", "graph"] = Field(
        default="points", description="What `fit` gets: the points, or their sparse neighbour graph."
    )
    seeds: Seeds | None = Field(None, description="Instead of run.seeds, e.g. 1 if nothing is random.")
    per_dataset: dict[str, GridSpec] = Field(
        default_factory=dict, description="Parameters or grid axes that differ for a data set."
    )

    def for_dataset(self, dataset: str) -> GridSpec:
        """Parameters and grid on a data set: its own entries over the general ones."""
        own = self.per_dataset.get(dataset, GridSpec())
        grid = {**self.grid, **own.grid}
        params = {k: v for k, v in {**self.params, **own.params}.items() if k not in own.grid}
        return GridSpec(params=params, grid={k: v for k, v in grid.items() if k not in own.params})


class ScoreSpec(_Strict):
    """Options of the scorer."""

    dunn_max_rows: int = Field(default=33_000, ge=0, description="No Dunn index beyond this many rows.")


class GraphSpec(_Strict):
    """The neighbour graph of methods with `input: graph`."""

    n_neighbors: int = Field(default=20, ge=2, description="Neighbours of a point, itself included.")
    exact_max_rows: int = Field(
        default=50_000, ge=0, description="Beyond this many rows neighbours are found approximately."
    )


class ReportSpec(_Strict):
    """Tables and figures to make, by name, and the page for readers."""

    tables: Names = Field(default_factory=list)
    figures: Names = Field(default_factory=list)
    formats: Annotated[list[Literal["png", "pdf", "svg"]], AfterValidator(_check_unique)] = Field(
        default=["png", "pdf"], min_length=1
    )
    html: bool = Field(default=True, description="Whether to write report/index.html and report.zip.")


class Config(Catalogue):
    """Everything that `config/config.yaml` may say."""

    results: str = Field(default="results", min_length=1, description="Folder of all results.")
    mirror: str | list[str] | None = Field(
        None, description="Folder(s) or base URL(s) tried before upstream."
    )
    strict: bool = Field(default=False, description="Exit with an error if any cell is not ok.")
    run: RunSpec
    limits: LimitSpec = LimitSpec()
    resources: ResourceSpec = ResourceSpec()
    graph: GraphSpec = GraphSpec()
    score: ScoreSpec = ScoreSpec()
    report: ReportSpec = ReportSpec()
    methods: dict[Name, MethodSpec]

    @field_validator("results")
    @classmethod
    def _clean_path(cls, value: str) -> str:
        return posixpath.normpath(value)

    @property
    def mirrors(self) -> list[str]:
        if self.mirror is None:
            return []
        return [self.mirror] if isinstance(self.mirror, str) else list(self.mirror)

    @model_validator(mode="after")
    def _names_exist(self) -> Config:
        problems = [
            *_unknown("run.datasets", self.run.datasets, self.datasets),
            *_unknown("run.methods", self.run.methods, self.methods),
            *_unknown("run.methods_of", self.run.methods_of, self.datasets),
            *_unknown("run.n_clusters", self.run.n_clusters, self.datasets),
            *_unknown("run.parts", self.run.parts, self.datasets),
        ]
        for dataset, names in self.run.methods_of.items():
            problems += _unknown(f"run.methods_of.{dataset}", names, self.methods)
        for name, method in self.methods.items():
            problems += _unknown(f"methods.{name}.per_dataset", method.per_dataset, self.datasets)
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def methods_run(self, dataset: str) -> list[str]:
        """The methods that are run on a data set."""
        return self.run.methods_of.get(dataset, self.run.methods)

    def clusters(self, dataset: str) -> list[int]:
        """The values of K for a data set."""
        return self.run.n_clusters.get(dataset, [self.datasets[dataset].n_clusters])


def _unknown(key: str, names: Iterable[str], known: Mapping[str, Any]) -> list[str]:
    return [f"{key}: there is no {name!r}{_nearest(name, known)}" for name in names if name not in known]


def _nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(name), [str(k) for k in known], n=1)
    return f"; did you mean {close[0]!r}?" if close else f" (known: {', '.join(map(str, known)) or 'none'})"


def _known_fields(location: tuple[Any, ...]) -> list[str]:
    """Field names of the model that holds the key at `location`."""
    model: Any = Config
    for step in location[:-1]:
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            break
        fields = {info.alias or name: info.annotation for name, info in model.model_fields.items()}
        if step in fields:
            model = fields[step]
            inner = [
                a for a in getattr(model, "__args__", ()) if isinstance(a, type) and issubclass(a, BaseModel)
            ]
            in_mapping = getattr(model, "__origin__", None) is dict
            model = inner[0] if inner else model
            if in_mapping:
                continue
    if isinstance(model, type) and issubclass(model, BaseModel):
        return [info.alias or name for name, info in model.model_fields.items()]
    return []


def load_config(raw: Mapping[str, Any], *, origin: str = "config/config.yaml") -> Config:
    """Check a configuration as Snakemake or YAML hands it over.

    Parameters
    ----------
    raw : mapping
    origin : str
        Named in error messages.

    Returns
    -------
    Config

    Raises
    ------
    ConfigError
        One line per problem: the key, what was found, what is expected, the nearest valid name.
    """
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{origin} cannot be used:\n  - expected keys and values; found {_short(raw)}")
    try:
        return Config.model_validate(dict(raw))
    except ValidationError as error:
        lines = []
        for problem in error.errors():
            # Pydantic adds the names of union members to a location; keys of the file are what users know.
            location = tuple(p for p in problem["loc"] if not _is_union_tag(p))
            key = ".".join(map(str, location))
            if problem["type"] == "extra_forbidden":
                lines.append(f"{key}: no such key{_nearest(str(location[-1]), _known_fields(location))}")
            elif problem["type"] == "missing":
                lines.append(f"{key}: missing; it has no default")
            elif problem["type"] == "value_error":
                text = str(problem["ctx"]["error"])
                lines += [f"{key}: {line}" if key else line for line in text.splitlines()]
            else:
                lines.append(f"{key}: {problem['msg']}; found {_short(problem['input'])}")
        unique = list(dict.fromkeys(lines))
        raise ConfigError(
            f"{origin} cannot be used:\n" + "\n".join(f"  - {line}" for line in unique)
        ) from None


def _is_union_tag(part: Any) -> bool:
    return isinstance(part, str) and (
        part in {"int", "str"} or part.endswith("Spec") or part.startswith(("list[", "function-"))
    )


def _short(value: Any, limit: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def json_schema() -> str:
    """JSON schema of the configuration, for editors."""
    return json.dumps(Config.model_json_schema(by_alias=True), indent=2) + "\n"
