"""A paper as data: its experiments, tables, figures and claims; one YAML file and one CSV of reported values.

The models say what such a file may hold; nothing in this package knows a particular paper. The types of values come
first, and the configuration shares them.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from fairclust.datasets.spec import Spec
from fairclust.messages import UserError, nearest
from fairclust.pipeline.columns import COLUMNS
from fairclust.pipeline.grids import canonical_json


class ConfigError(UserError):
    """The configuration cannot be used; every line of the message names a key and what to do."""


def _check_unique(values: list[Any]) -> list[Any]:
    seen = set()
    for value in values:
        text = canonical_json(value)
        if text in seen:
            raise ValueError(f"{value!r} occurs more than once")
        seen.add(text)
    return values


def _check_plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value!r} is not a finite number")
    try:
        canonical_json(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise ValueError(
            f"{str(value)[:60]!r} is neither number, text, boolean, list nor mapping; put it in quotes"
        ) from None
    return value


def _check_unquoted(value: Any) -> Any:
    if not isinstance(value, str) or not any(sign.isdigit() for sign in value):
        return value
    try:
        float(value)
    except ValueError:
        return value
    raise ValueError(f"{value!r} is a text; write the number without quotes, and 1e5 as 1.0e+5")


Seeds = (
    Annotated[StrictInt, Field(ge=1, le=10_000)]
    | Annotated[list[Annotated[StrictInt, Field(ge=0)]], Field(min_length=1), AfterValidator(_check_unique)]
)


def _check_known(names: Any, known: Collection[str]) -> Any:
    foreign = [name for name in ([names] if isinstance(names, str) else names) if name not in known]
    if foreign:
        raise ValueError("\n".join(f"there is no {name!r}; {nearest(name, known)}" for name in foreign))
    return names


def names_of(section: str, *others: str) -> AfterValidator:
    """A check that names are others, or entries of a section of the configuration: the context of the validation.

    Without a context, as in the script of a job, every name is accepted.
    """

    def check(names: Any, info: ValidationInfo) -> Any:
        if info.context is None or names is None:
            return names
        return _check_known(names, [*others, *info.context[section]])

    return AfterValidator(check)


def one_of(*known: str) -> AfterValidator:
    """A check that a name, or each of several, is among the known ones."""
    return AfterValidator(lambda names: _check_known(names, known))


Names = Annotated[list[str], AfterValidator(_check_unique)]
Metrics = Annotated[Names, one_of(*COLUMNS)]
OneOrMore = BeforeValidator(lambda value: [value] if isinstance(value, str) else value or [])
Datasets = Annotated[Names, names_of("datasets")]
Methods = Annotated[Names, names_of("methods")]
Clusters = Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=1), AfterValidator(_check_unique)]
Plain = Annotated[Any, AfterValidator(_check_unquoted), AfterValidator(_check_plain)]
# An option may be a number in quotes, because the number of a paper's table is text.
Option = Annotated[Any, AfterValidator(_check_plain)]
Axis = Annotated[list[Plain], Field(min_length=1), AfterValidator(_check_unique)]


class GridSpec(Spec):
    """Parameters of a method: fixed ones, and axes of which every combination is fitted."""

    params: dict[str, Plain] = Field(default_factory=dict)
    grid: dict[str, Axis] = Field(default_factory=dict)

    @field_validator("params", "grid")
    @classmethod
    def _lambda_is_a_number(cls, given: dict[str, Any]) -> dict[str, Any]:
        # Tables and figures sort by lambda and compare it.
        stated = given.get("lam", 0)
        for value in stated if isinstance(stated, list) else [stated]:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError(f"lam: {value!r} is not a number")
        return given

    def over(self, below: GridSpec) -> GridSpec:
        """Lay this grid over another one. If both define a parameter, fixed or as an axis, this grid's wins."""
        grid = {k: v for k, v in {**below.grid, **self.grid}.items() if k not in self.params}
        params = {k: v for k, v in {**below.params, **self.params}.items() if k not in self.grid}
        # Both grids are checked already. Checking thousands of values again for every grid would take seconds.
        return GridSpec.model_construct(params=params, grid=grid)


ALL = "*"
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]*$")]
"""The name of a table or figure, and of its files."""
Sweep = Annotated[str, Field(pattern=r"^[a-z0-9_]*$")]
"""The name of a dense grid, whose fits only the figures and claims read that name it; empty: all other fits."""


class ExperimentSpec(Spec):
    """Data sets x methods x K x seeds, with the grids of the catalogues unless `settings` says otherwise."""

    datasets: Datasets = Field(min_length=1, description="Names from `datasets`.")
    methods: Methods = Field(min_length=1, description="Names from `methods`.")
    n_clusters: Clusters | None = None
    """Values of K, instead of each data set's own."""
    seeds: Seeds | None = Field(default=None, description="Default: 5 seeds. `run.seeds` overrides it.")
    settings: Annotated[dict[str, GridSpec], names_of("methods")] = Field(default_factory=dict)
    """Method to parameters or axes of its grid in this experiment."""
    sweep: Sweep = Field(default="", description="Name of a dense grid, which only what names it reads.")


class MatchSpec(Spec):
    """How a setting is chosen if the paper does not publish it: the first one in `order` that is fair enough."""

    fairness: Annotated[str, one_of(*COLUMNS)]
    """The metric that must reach what the paper reports for the row."""
    order: Annotated[str, one_of("lam", *COLUMNS)] = "lam"
    """Which setting comes first: 'lam' (the smallest) or the name of a metric (the best value)."""
    table: str = ""
    """Number of the table that reports the fairness metric; empty: this one."""


class ReasonSpec(Spec):
    """Why reported and reproduced values differ, or why a value cannot be compared; '*' stands for all."""

    dataset: Annotated[str, names_of("datasets", ALL)] = ALL
    method: Annotated[str, names_of("methods", ALL, "data")] = ALL
    metric: str = ALL
    kind: Literal["deviation", "not_comparable"] = "deviation"
    """deviation: explains a difference; not_comparable: the value is not judged."""
    reason: str = Field(min_length=1)
    evidence: str | None = Field(default=None, description="Command that prints the numbers.")
    shown_by: Literal["paper", "program", "labels", "command", ""] = Field(
        default="",
        description="What shows the reason: the paper's own numbers or files, a run of the published program, the "
        "published labels, or the command of `evidence` (the default if there is one); nothing: a conjecture.",
    )

    def fits(self, dataset: str, method: str, metric: str) -> bool:
        """Whether the reason applies to a value."""
        pairs = ((self.dataset, dataset), (self.method, method), (self.metric, metric))
        return all(mine in (ALL, other) for mine, other in pairs)


class PickSpec(Spec):
    """What a heading of a printed table selects of the values."""

    dataset: str = ""
    n_clusters: int | None = None
    method: str = ""
    lam: float | None = None
    metric: Annotated[Names, OneOrMore] = Field(default_factory=list)
    """One metric, or several that share a cell."""
    unit: float = Field(default=1.0, gt=0, description="The printed numbers are in this unit.")
    form: str = Field(
        default="", description="How a cell is printed; default: '{}', or '{} / {}' for two metrics."
    )

    @model_validator(mode="after")
    def _form_has_a_place_for_each_metric(self) -> PickSpec:
        try:
            self.form.format(*self.metric)
        except (LookupError, ValueError, AttributeError):
            if self.metric:
                raise ValueError(
                    f"form: {self.form!r} cannot be filled with {len(self.metric)} numbers; write {{}} for each"
                ) from None
        return self


Headings = Annotated[dict[str, PickSpec], Field(min_length=1)]


class LayoutSpec(Spec):
    """How a paper prints a table: headings with what they select. A cell is where a row and a column meet."""

    corner: str = Field(default="", description="The heading of the first column.")
    rows: Annotated[dict[str, PickSpec | Headings], Field(min_length=1)]
    """The rows in the paper's order; a heading over several rows has these below it."""
    columns: Annotated[list[Headings], Field(min_length=1)]
    """Levels of headings from top to bottom: the columns are all of their combinations."""
    bold: bool = Field(
        default=False, description="Whether the best value of each data set and metric is bold."
    )

    def picks(self) -> list[PickSpec]:
        """What all headings select."""
        rows = [one if isinstance(one, dict) else {"": one} for one in self.rows.values()]
        return [pick for headings in (*rows, *self.columns) for pick in headings.values()]


class TableSpec(Spec):
    """A table of a paper."""

    number: str = Field(description="The table's number: column `table` of the CSV of reported values.")
    title: str
    layout: LayoutSpec = Field(description="How the paper prints the table.")
    own: Annotated[str, names_of("methods")] = ""
    """The paper's own method: relative times are in units of its time."""
    settings: Annotated[dict[str, dict[str, Plain]], names_of("methods")] = Field(default_factory=dict)
    """Method to the parameters that the paper publishes for it; {} if the method has none to choose."""
    match: MatchSpec | None = None
    """How other settings are chosen; none: lowest objective."""
    ours: Methods = Field(default_factory=list, description="Methods of this project, in rows of their own.")
    variants: Annotated[dict[str, Methods], names_of("methods")] = Field(default_factory=dict)
    """Method of the paper to other readings of it (start, iterate), in rows that do not count."""
    control: Annotated[str, names_of("methods")] = ""
    """A plain method: rows that it passes as well say nothing about a fair one."""
    beside: Metrics = Field(default_factory=list, description="Metrics shown without reported values.")
    remarks: tuple[str, ...] = Field(default=(), description="Sentences below the table.")
    reasons: tuple[ReasonSpec, ...] = ()

    @property
    def level_metric(self) -> str:
        """The fairness metric that chooses settings which the paper does not publish; empty if none does."""
        return self.match.fairness if self.match else ""


_NEEDS = {
    **{"front": ("x", "y"), "along_lam": ("y",), "lines": ("x", "y")},
    **dict.fromkeys(("steps", "clusters", "group_shares"), ()),
}
"""The plots of `report.figures`, and which axes a figure must name for them."""
_AXES = (*COLUMNS, "n_clusters", "n_rows")


class FigureSpec(Spec):
    """A figure: a panel for each data set (and K) unless the plot joins them."""

    plot: Annotated[str, one_of(*_NEEDS)] = Field(description="See config/README.md.")
    title: str
    datasets: Datasets = Field(min_length=1)
    methods: Methods = Field(default_factory=list, description="Empty: all methods that run on the data set.")
    n_clusters: Clusters | None = Field(default=None, description="None: every K that is run.")
    x: str = ""
    """Metric, 'n_clusters' or 'n_rows' on the horizontal axis, if the plot lets it be chosen."""
    y: tuple[str, ...] = ()
    """Metrics, or terms of the objective, on the vertical axis."""
    lam: float | None = None
    """Only this lambda (or the largest that is not above it)."""
    table: str = ""
    """Number of a table whose reported values the figure shows."""
    sweep: str = Field(default="", description="Shows the fits of this sweep alone; '*': all fits.")

    @model_validator(mode="after")
    def _has_its_axes(self) -> FigureSpec:
        for axis in _NEEDS[self.plot]:
            if not getattr(self, axis):
                raise ValueError(f"{axis}: the plot {self.plot!r} needs it")
        if self.x and self.x in self.y:
            raise ValueError(f"y: {self.x!r} is the horizontal axis already")
        # Those of steps show terms of a method's objective.
        if self.plot != "steps":
            _check_known([name for name in (self.x, *self.y) if name], _AXES)
        return self


class ClaimSpec(Spec):
    """A sentence of a paper that a run can test."""

    text: str = Field(description="What the paper says, in our words.")
    where: str = Field(default="", description="Where it says so: a section, a figure.")
    check: str = Field(description="Name of a check in fairclust.report.checks, see config/README.md.")
    datasets: Datasets = Field(min_length=1)
    methods: Methods = Field(default_factory=list)
    n_clusters: Clusters | None = None
    metrics: Metrics = Field(default_factory=list)
    options: dict[str, Option] = Field(default_factory=dict, description="Arguments of the check.")
    sweep: Sweep = Field(default="", description="Tests the fits of this sweep alone.")


class ProgramSpec(Spec):
    """A published program, or the labels that it left, whose values stand beside those of the paper."""

    repository: str = Field(description="OWNER/NAME on GitHub.")
    commit: str = Field(description="The commit that was run.")
    kind: Literal["program", "labels"] = "program"
    """program: run for this project; labels: published ones, scored here."""
    changes: str = Field(min_length=1, description="What had to be changed to run it, in words.")


class PaperSpec(Spec):
    """A paper."""

    short_name: str
    citation: str
    reported: str | None = None
    """CSV of reported values, beside the YAML; default: NAME.csv."""
    programs: dict[str, ProgramSpec] = Field(default_factory=dict)
    """Published programs, whose values are in NAME_programs.csv."""
    experiments: tuple[ExperimentSpec, ...] = Field(min_length=1)
    cells_of: Annotated[Names, names_of("papers", ALL)] = Field(default_factory=list)
    """Other papers whose cells the tables, figures and claims read, too; '*': every cell of the run."""
    tables: dict[FileName, TableSpec] = Field(default_factory=dict)
    figures: dict[FileName, FigureSpec] = Field(default_factory=dict)
    claims: dict[str, ClaimSpec] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _numbers_differ(self) -> PaperSpec:
        numbers = [table.number for table in self.tables.values()]
        double = {number for number in numbers if numbers.count(number) > 1}
        if double:
            raise ValueError(f"tables: number {sorted(double)[0]!r} occurs more than once")
        named = {
            f"tables.{key}.match.table": spec.match.table for key, spec in self.tables.items() if spec.match
        }
        named |= {f"figures.{key}.table": figure.table for key, figure in self.figures.items()}
        for key, number in named.items():
            if number and number not in numbers:
                raise ValueError(f"{key}: there is no {number!r}; {nearest(number, numbers)}")
        if "claims" in self.tables:
            raise ValueError("tables: 'claims' is the file of the paper's claims; rename the table")
        return self

    @property
    def files(self) -> list[str]:
        """The CSV of the reported values, and that of the published programs if there are any."""
        if not self.reported:
            return []
        path = Path(self.reported)
        of_programs = path.with_name(f"{path.stem}_programs.csv")
        return [str(path), str(of_programs)] if self.programs else [str(path)]


Papers = dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], PaperSpec]
