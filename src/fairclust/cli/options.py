"""The options of all commands, in a module of their own, so that parsing them imports nothing slow.

A command is a class of this module, whose docstring is its help and whose fields are its options, and a function `run`
in the module of its name, which takes such an object.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Group, Parameter, Token
from cyclopts.help import DefaultFormatter
from cyclopts.validators import Number

from fairclust import __version__
from fairclust.messages import percent

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel

_TABLES, _RUNS = Group("Your table", sort_key=0), Group("Runs of the workflow", sort_key=1)
_SHELL = Group("Your shell", sort_key=2)
# `--help` shows the options that most need, and `--help-all` the other groups, too.
_FIRST = Group("What most need", sort_key=2)
_BOUNDS = Group("More bounds and parameters", sort_key=3)
_COLUMNS = Group("The columns of the table", sort_key=4)
_FILE = Group("The file", sort_key=5)
_OUTPUT = Group("More on method and output", sort_key=6)
_LARGE = Group("Tables larger than the memory: Parquet files that are read in chunks", sort_key=7)
# Formats that a user who names a file so would expect.
_NOT_CSV = {".xlsx", ".xls", ".ods", ".parquet", ".feather", ".json", ".dta", ".sav"}
_SHORT = {group.name for group in (_TABLES, _RUNS, _SHELL, _FIRST)}


def _part(_: Any, tokens: Sequence[Token]) -> float:
    """A number or a percentage."""
    text = tokens[0].value
    if text.startswith("--"):
        raise ValueError(f"needs a number, and {text} follows")
    is_percentage = text.endswith("%")
    try:
        number = float(text.removesuffix("%")) / (100 if is_percentage else 1)
    except ValueError:
        raise ValueError(f"{text!r} is neither a number nor a percentage") from None
    if tokens[0].keyword == "--max-cost-increase" and number >= 1 and not is_percentage:
        raise ValueError(
            f"{text} would be {percent(number, 0)}. Fix: write {text}%, or {100 * number:.0f}% if that is meant"
        )
    return number


def _whole(_: Any, tokens: Sequence[Token]) -> int:
    """A whole number, where the parser would round others."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"{tokens[0].value!r} is no whole number") from None


def _check_csv(_: Any, path: Path | None) -> None:
    if path is not None and path.suffix.lower() in _NOT_CSV:
        raise ValueError(f"The file is CSV. Fix: name it {path.with_suffix('.csv')}")


def _check_some(_: Any, names: Sequence[str]) -> None:
    if not names:
        raise ValueError("Name at least one column")


def _option(group: Group, text: str, metavar: str | None = None, **more: Any) -> Parameter:
    return Parameter(group=group, help=text, metavar=metavar, **more)


_first, _bounds, _columns = partial(_option, _FIRST), partial(_option, _BOUNDS), partial(_option, _COLUMNS)
_file, _output, _large = partial(_option, _FILE), partial(_option, _OUTPUT), partial(_option, _LARGE)

_Many = Annotated[tuple[str, ...], Parameter(consume_multiple=True)]
_Files = Annotated[tuple[Path, ...], Parameter(consume_multiple=True)]
_Part = Annotated[float, Parameter(converter=_part, allow_leading_hyphen=True)]
_Whole = Annotated[int, Parameter(converter=_whole, allow_leading_hyphen=True)]
_Clusters = Annotated[_Whole, _first("number of clusters", "K", validator=Number(gte=1))]
_Seed = Annotated[_Whole, _output("random state", "N", show_default=True, validator=Number(gte=0))]
_Report = Annotated[Path | None, _first("write one HTML page to share here", "FILE")]
_Json = Annotated[bool, _first("print the results as JSON")]
_Verbose = Annotated[bool, _output("print all notes on the table, not only the first five")]
_Config = Annotated[_Files, _first("laid over config/config.yaml; may be repeated", "FILE")]
_Labels = Annotated[Path, _first("a table with a column cluster, from 0")]
_Missing = Literal["impute", "drop", "group"]
_Scale = Literal["standardize", "none"]


@dataclass(kw_only=True)
class Options:
    """What every command is given."""

    words: Annotated[Sequence[str], Parameter(parse=False)] = ()  # as they were typed


@dataclass(kw_only=True)
class File(Options):
    table: Annotated[
        str, _first("CSV, Excel, Parquet, Stata, ...; - is stdin", allow_leading_hyphen=True)
    ] = field(kw_only=False)
    delimiter: Annotated[str | None, _file("separator of cells (default: guessed)", "SIGN")] = None
    decimal: Annotated[str | None, _file("decimal point (default: what the numbers show)", "SIGN")] = None
    encoding: Annotated[str, _file("such as cp1252", "NAME", show_default=True)] = "utf-8"
    sheet: Annotated[str | None, _file("of a workbook (default: one with the named columns)", "NAME")] = None
    header_row: Annotated[
        _Whole | None, _file("row with the names of columns (default: found)", "N", validator=Number(gte=1))
    ] = None

    @property
    def reading(self) -> dict[str, Any]:
        """How the file is read, for `fairclust.tables.read_table`."""
        names = ("delimiter", "decimal", "encoding", "sheet", "header_row")
        return {name: getattr(self, name) for name in names}


@dataclass(kw_only=True)
class Raw(File):
    sensitive: Annotated[_Many, _first("columns of the groups: sex", "COLUMN", validator=_check_some)]
    features: Annotated[_Many, _first("columns to cluster by (default: all)", "COLUMN")] = ()
    exclude: Annotated[_Many, _first("columns to leave out", "COLUMN")] = ()
    categories: Annotated[_Many, _first("columns of numbers that are codes", "COLUMN")] = ()
    crossed: Annotated[bool, _columns("the groups are combinations of several sensitive columns")] = False
    bins: Annotated[
        _Whole | None,
        _columns("cut sensitive columns of numbers into N ranges", "N", validator=Number(gte=2)),
    ] = None
    id: Annotated[_Many, _columns("columns that name the rows, written beside the labels", "COLUMN")] = ()
    numbers: Annotated[_Many, _columns("columns of numbers that look like codes or texts", "COLUMN")] = ()
    log: Annotated[_Many, _columns("columns of numbers to take the logarithm of", "COLUMN")] = ()
    clip: Annotated[_Many, _columns("columns to cut at their 1% and 99% quantiles", "COLUMN")] = ()
    ordered: Annotated[
        tuple[str, ...], _columns("the steps of a scale; may be repeated", "COLUMN=LOW,...,HIGH")
    ] = ()
    missing: Annotated[
        _Missing,
        _columns("insert the median, leave the rows out, or make them a group", "HOW", show_default=True),
    ] = "impute"
    scale: Annotated[_Scale, _columns("none keeps the units", "HOW", show_default=True)] = "standardize"
    weight: Annotated[str | None, Parameter(parse=False)] = None


@dataclass(kw_only=True)
class Fit(Raw):
    """Cluster a table, and report cost, fairness and profiles."""

    n_clusters: _Clusters
    method: Annotated[str, _first("see `fairclust methods`", "NAME", show_default=True)] = "price"
    tolerance: Annotated[
        _Part | None,
        _first("how far shares may be off: 0.1, a tenth", "T", validator=Number(gte=0, lt=1)),
    ] = None
    min_balance: Annotated[
        _Part | None,
        _first("least ratio of groups in a cluster: 0.4", "B", validator=Number(gte=0, lte=1)),
    ] = None
    max_cost_increase: Annotated[
        _Part | None,
        _first("the fairest that cost this much more: 5%", "SHARE", validator=Number(gte=0, lt=math.inf)),
    ] = None
    equal_sizes: Annotated[bool, _bounds("clusters of equal size, up to one row")] = False
    set: Annotated[
        tuple[str, ...], _bounds("a parameter of the method: lam=100; may be repeated", "NAME=VALUE")
    ] = ()
    weight: Annotated[str | None, _columns("column that says how often a row counts", "COLUMN")] = None
    out: Annotated[
        Path | None, _first("write rows and clusters here, as CSV", "FILE", validator=_check_csv)
    ] = None
    save: Annotated[Path | None, _first("write the model, for `fairclust predict`", "FILE")] = None
    report: _Report = None
    json: _Json = False
    seed: _Seed = 0
    verbose: _Verbose = False
    workers: Annotated[
        _Whole | None, _large("processes of this machine that read the chunks", "N", validator=Number(gte=1))
    ] = None
    scheduler: Annotated[str | None, _large("of Dask, whose workers read the chunks", "ADDRESS")] = None

    @property
    def settings(self) -> list[str]:
        """The parameters of the method as ``NAME=VALUE``."""
        bounds = {name: getattr(self, name) for name in ("tolerance", "min_balance", "max_cost_increase")}
        # Floats are multiples of the mean size.
        equal = ["size_min=1.0", "size_max=1.0"] if self.equal_sizes else []
        return [*self.set, *(f"{name}={of!r}" for name, of in bounds.items() if of is not None), *equal]


@dataclass(kw_only=True)
class _Model(Options):
    model: Annotated[Path, _first("written by `fairclust fit --save`")] = field(kw_only=False)


@dataclass(kw_only=True)
class Predict(File, _Model):
    """Predict the clusters of new rows by a model of `fit --save`."""

    out: Annotated[
        Path | None, _first("write here instead of to standard output", "FILE", validator=_check_csv)
    ] = None


@dataclass(kw_only=True)
class _Given(Options):
    labels: _Labels = field(kw_only=False)


@dataclass(kw_only=True)
class Audit(Raw, _Given):
    """Report as fit does, on labels that another program made."""

    n_clusters: Annotated[_Whole | None, _first("number of clusters (default: as in the labels)", "K")] = None
    report: _Report = None
    json: _Json = False
    seed: _Seed = 0
    verbose: _Verbose = False


@dataclass(kw_only=True)
class Front(Raw):
    """Compare the cost of fairness of several settings."""

    n_clusters: _Clusters
    methods: Annotated[_Many, _first("methods to compare with k-means", "NAME")] = ()
    starts: Annotated[
        _Whole, _first("starts of every setting", "N", show_default=True, validator=Number(gte=1))
    ] = 3
    out: Annotated[
        Path | None, _first("write a row for each setting here, as CSV", "FILE", validator=_check_csv)
    ] = None
    report: _Report = None
    seed: _Seed = 0


@dataclass(kw_only=True)
class Methods(Options):
    """List the methods."""


@dataclass(kw_only=True)
class Status(Options):
    """Say what a run would do, and what is left."""

    cores: Annotated[_Whole | None, _first("for the time left (default: those of this machine)", "N")] = None
    configfile: _Config = ()
    config: Annotated[_Many, _first("as you give it to Snakemake", "KEY=VALUE")] = ()


@dataclass(kw_only=True)
class Verify(Options):
    """Check results for damage, and score a sample again."""

    results: Annotated[Path, _first("the folder of a run", show_default=True)] = field(
        default=Path("results"), kw_only=False
    )
    sample: Annotated[_Whole, _first("number of fits to score again", "FITS", show_default=True)] = 20
    seed: Annotated[_Whole, _first("seed of the sample", "N", show_default=True)] = 0


@dataclass(kw_only=True)
class Score(Options):
    """Compare labels with the clusterings of a run."""

    dataset: Annotated[str, _first("a name in config/datasets, such as adult")] = field(kw_only=False)
    labels: _Labels = field(kw_only=False)
    n_clusters: Annotated[
        _Whole | None, _first("number of clusters (default: that of the data set)", "K")
    ] = None
    run: Annotated[Path | None, _first("results of a run (default: those published here)", "FOLDER")] = None
    configfile: _Config = ()


# All commands, in the order of the help.
COMMANDS = {_TABLES: (Fit, Predict, Audit, Front, Methods), _RUNS: (Status, Verify, Score)}


def command_line(*, everything: bool = False) -> App:
    """The command `fairclust`, whose help shows all groups of options if `everything` is asked."""

    class Panels(DefaultFormatter):
        def __call__(self, console: Any, options: Any, panel: HelpPanel) -> None:
            if everything or str(panel.title) in _SHORT:
                super().__call__(console, options, panel)

    app = App(
        name="fairclust",
        help="Cluster tables fairly, draw the cost of fairness, and manage runs.",
        version=f"fairclust {__version__}",
        help_flags=("--help", "--help-all"),
        help_formatter=Panels(),
        help_format="plaintext",
        help_epilogue="" if everything else "--help-all shows all options, in groups.",
        default_parameter=Parameter(negative=(), show_default=False, json_list=False),
        group_parameters=_FIRST,
    )
    app.register_install_completion_command(
        group=_SHELL, help="Install the completion of words in your shell."
    )
    for group, commands in COMMANDS.items():
        for number, options in enumerate(commands):
            app.command(
                options, name=options.__name__.lower(), help=options.__doc__, group=group, sort_key=number
            )
    return app
