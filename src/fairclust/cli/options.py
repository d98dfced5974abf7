"""The options of all commands, in a module of their own, so that parsing them imports nothing slow."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from fairclust import __version__

_LABELS = (
    "CSV with a column cluster, counted from 0, and perhaps a column row, counted from 1; or only the number of a "
    "cluster in each line"
)
# Options that several commands have.
_REPEATED: dict[str, Any] = {"action": "append", "default": []}
_LISTED: dict[str, Any] = {"nargs": "+", "action": "extend", "default": []}
_SEED: dict[str, Any] = {"type": int, "default": 0, "help": "random state (default: %(default)s)"}
_CONFIGFILE = _REPEATED | {
    "type": Path, "metavar": "FILE", "help": "laid over config/config.yaml; may be repeated",
}  # fmt: skip
_SPREADSHEET_SAFE: dict[str, Any] = {
    "action": "store_true",
    "help": "write an apostrophe before text that begins with =, +, - or @, which spreadsheets run as a formula",
}


# What most need, in this order: the short help shows the arguments of a command and these of its options.
_FIRST = {
    "labels": "CSV with a column cluster, counted from 0",
    "model": "written by fit --save",
    "table": "CSV, Excel, JSON, Parquet, Stata, SPSS, SAS, ...",
    "--sensitive": "columns of the groups, such as sex",
    "--n-clusters": "number of clusters",
    "--method": "price, vfc, kmeans, ... (see `fairclust methods`)",
    "--methods": "methods to compare with k-means",
    "--tolerance": "how far shares may be off: 0.1 is a tenth",
    "--min-balance": "smallest ratio of two groups in clusters, say 0.4",
    "--max-cost-increase": "the fairest clusters that cost so much more: 5%",
    "--features": "columns to cluster by (default: all that can be)",
    "--exclude": "columns to leave out",
    "--categories": "columns of numbers that are codes of categories",
    "--numbers": "columns of numbers that look like codes or texts",
    "--bins": "cut sensitive columns of numbers into N ranges",
    "--missing": "impute, drop or group: how to treat missing cells",
    "--weight": "column that says how often a row counts",
    "--starts": "number of starts of every setting",
    "--out": "write the result here",
    "--save": "write the model here, for `fairclust predict`",
    "--report": "write one HTML page to share here",
    "--json": "print the results as JSON",
    "--verbose": "print all notes, not only the first five",
}
# The lines of a small terminal.
_SCREEN = 23


class _HelpAll(argparse.Action):
    def __call__(self, parser: Any, *ignored: Any, **more: Any) -> None:
        """Print the help with all options."""
        print(argparse.ArgumentParser.format_help(parser), end="")
        parser.exit()


class _Parser(argparse.ArgumentParser):
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.add_argument("--help-all", action=_HelpAll, nargs=0, help="show all options, in groups")

    def format_help(self) -> str:
        """The whole help or, if it is longer than a screen, the options that most need."""
        whole = super().format_help()
        if whole.count("\n") <= _SCREEN:
            return whole
        names = {name: action for action in self._actions for name in action.option_strings or [action.dest]}
        first = [(names[name], text) for name, text in _FIRST.items() if name in names]
        heads = [self._named(action) for action, _ in first]
        must = [head for head, (action, _) in zip(heads, first, strict=True) if action.required]
        lines = [f"usage: {self.prog} {' '.join(must)} [options]", ""]
        lines += [f"  {head:25}  {text}" for head, (_, text) in zip(heads, first, strict=True)]
        return "\n".join([*lines, f"  {'--help-all':25}  all options, in groups", ""])

    @staticmethod
    def _named(action: argparse.Action) -> str:
        """An argument, or an option with what is given with it."""
        value = str(action.metavar or action.dest.upper())
        if not action.option_strings:
            return value
        return action.option_strings[-1] + ("" if action.nargs == 0 else f" {value}")

    def error(self, message: str) -> NoReturn:
        """Print the error alone. The usage, which argparse prints before it, is longer than a screen."""
        self.exit(2, f"{self.prog}: {message}\n`{self.prog} --help` shows the options.\n")


def command_line() -> argparse.ArgumentParser:
    """The parser of `fairclust` with all its commands."""
    does = "it clusters tables, predicts clusters, draws the cost of fairness, and manages runs"
    parser = _Parser(prog="fairclust", description=f"The command `fairclust`: {does}.")
    parser.add_argument("--version", action="version", version=f"fairclust {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add_command in (
        _fit,
        _predict,
        _audit,
        _front,
        _report,
        _methods,
        _status,
        _verify,
        _score,
    ):
        add_command(commands)
    return parser


def _fit(commands: Any) -> None:
    fit = commands.add_parser("fit", help="cluster a table, and report cost, fairness and profiles")
    _add_raw_table(fit)
    add = fit.add_argument_group("method and output").add_argument
    add("--method", default="price", help="see `fairclust methods` (default: %(default)s)")
    add("--n-clusters", type=_one_number, required=True, metavar="K")
    text = "a parameter of the method, such as lam=100 or size_max=1.1; may be repeated"
    add("--set", **_REPEATED, metavar="NAME=VALUE", help=text)
    bounds = fit.add_argument_group(
        "what the clusters must keep", "Bounds of price and of methods that take them."
    )
    # Other ways to write `--set`.
    bound = partial(bounds.add_argument, dest="set", action="append")
    text = (
        "how far a group's share in a cluster may be off its share of all rows, as a part of it: 0, the default of "
        "price, is the strictest, and 0.1 allows a tenth"
    )
    bound("--tolerance", type=partial(_setting, "tolerance"), metavar="T", help=text)
    text = "the smallest ratio of two groups in any cluster, such as 0.4"
    bound("--min-balance", type=partial(_setting, "min_balance"), metavar="B", help=text)
    text = "find the fairest clusters that cost at most this much more than without a bound, such as 5%%"
    bound("--max-cost-increase", type=partial(_setting, "max_cost_increase"), metavar="SHARE", help=text)
    bounds.add_argument("--equal-sizes", action="store_true", help="clusters of equal size, up to one row")
    add("--seed", **_SEED)
    add("--out", type=Path, metavar="FILE", help="write row numbers, identifiers and clusters here, as CSV")
    add("--save", type=Path, metavar="FILE", help="write the model here, for `fairclust predict`")
    add("--report", type=Path, metavar="FILE", help="write a page to share here, as one HTML file")
    add("--weight", metavar="COLUMN", help="numbers that say how often a row counts; they are no feature")
    add("--json", action="store_true", help="print the results as JSON")
    add("--verbose", action="store_true", help="print all notes on the table, not only the first five")
    add("--spreadsheet-safe", **_SPREADSHEET_SAFE)
    add = fit.add_argument_group(
        "tables larger than the memory",
        "Parquet files that do not fit in memory are read in chunks, and so are all if an option of this section is "
        "given.",
    ).add_argument
    add("--workers", type=int, metavar="N", help="number of processes on this machine that read the chunks")
    text = "address or JSON file of a Dask scheduler, whose workers read the chunks"
    add("--scheduler", metavar="ADDRESS", help=text)
    text = "save every outer step in this file; a stopped fit continues from it"
    add("--checkpoint", type=Path, metavar="FILE", help=text)


def _predict(commands: Any) -> None:
    text = "predict clusters of new rows by a model of fit --save"
    predict = commands.add_parser("predict", help=text)
    add = predict.add_argument
    add("model", type=Path, help="written by `fairclust fit --save`")
    _add_file(predict)
    add("--out", type=Path, metavar="FILE", help="write here instead of to standard output")
    text = "skip: rows of groups that did not occur in the fit get no cluster (default: %(default)s)"
    add("--unknown", choices=("error", "skip"), default="error", help=text)
    add("--spreadsheet-safe", **_SPREADSHEET_SAFE)


def _audit(commands: Any) -> None:
    text = "report as fit does, on labels that another program made"
    audit = commands.add_parser("audit", help=text)
    add = audit.add_argument
    add("labels", type=Path, metavar="LABELS", help=_LABELS)
    _add_raw_table(audit)
    add(
        "--n-clusters",
        type=_one_number,
        metavar="K",
        help="number of clusters (default: the largest label tells)",
    )
    add("--seed", **_SEED)
    add("--report", type=Path, metavar="FILE", help="write a page to share here, as one HTML file")
    add("--json", action="store_true", help="print the results as JSON")
    add("--verbose", action="store_true", help="print all notes on the table, not only the first five")


def _front(commands: Any) -> None:
    text = "draw the cost of fairness: several settings, or several K"
    front = commands.add_parser("front", help=text)
    add = front.add_argument
    _add_grid(front, "default: price, vfc and bfkm; price alone for a range of K")
    add("--seed", **_SEED)
    text = "write STEM.csv, and with matplotlib STEM.png (default: %(default)s)"
    add("--out", type=Path, default=Path("front"), metavar="STEM", help=text)


def _report(commands: Any) -> None:
    text = "write a page that compares methods on a table"
    report = commands.add_parser("report", help=text)
    add = report.add_argument
    _add_grid(report, "methods to compare with k-means (default: price, vfc and bfkm)")
    text = f"also show labels that other programs made, each as a method with the name of its file: {_LABELS}"
    add("--labels", **_LISTED, type=Path, metavar="FILE", help=text)
    add("--out", type=Path, default=Path("report.html"), metavar="FILE", help="default: %(default)s")


def _methods(commands: Any) -> None:
    text = "list methods and needs, or the parameters of one method"
    add = commands.add_parser("methods", help=text).add_argument
    add("method", nargs="?", help="show the parameters of this method")


def _status(commands: Any) -> None:
    text = "say what a run would do, what is done, and what is left"
    add = commands.add_parser("status", help=text).add_argument
    text = "for the estimate of the time left (default: those of this machine)"
    add("--cores", type=int, help=text)
    add("--configfile", **_CONFIGFILE)


def _verify(commands: Any) -> None:
    text = "check data, fits and scores for damage, and score a sample of fits again"
    add = commands.add_parser("verify", help=text).add_argument
    add("results", type=Path, nargs="?", default=Path("results"), help="default: %(default)s")
    add("--sample", type=int, default=20, metavar="CELLS", help="default: %(default)s")
    add("--seed", type=int, default=0, help="seed of the sample (default: %(default)s)")


def _score(commands: Any) -> None:
    text = "compare labels of a data set with the clusterings of a run"
    add = commands.add_parser("score", help=text).add_argument
    add("dataset", metavar="DATASET", help="a name in config/datasets, such as adult")
    add("labels", type=Path, metavar="LABELS", help=_LABELS)
    add("--n-clusters", type=int, metavar="K", help="number of clusters (default: that of the data set)")
    text = "results of a run, or published results (default: %(default)s)"
    add("--run", type=Path, default=Path("docs/results"), metavar="FOLDER", help=text)
    text = "a folder or base URL that is tried before the original addresses; may be repeated"
    add("--mirror", **_REPEATED, metavar="PLACE", help=text)
    add("--configfile", **_CONFIGFILE)


def _add_grid(parser: argparse.ArgumentParser, methods: str) -> None:
    """Add the options of the commands that fit several settings of several methods."""
    _add_raw_table(parser)
    add = parser.add_argument_group("methods").add_argument
    text = "a number of clusters, or a range of them such as 2:10"
    add("--n-clusters", required=True, metavar="K", help=text)
    add("--methods", nargs="+", metavar="METHOD", help=methods)
    text = "starts of every setting; fronts show the one with the lowest objective (default: %(default)s)"
    add("--starts", type=int, default=3, help=text)


def _add_file(parser: argparse.ArgumentParser) -> None:
    text = (
        "CSV, also compressed (.gz), Excel, ODS, JSON, Parquet, Feather, Stata, SPSS, SAS or ARFF, a folder of Parquet "
        "files, or a pattern such as 'big/*.parquet'; - is standard input"
    )
    parser.add_argument("table", help=text)
    add = parser.add_argument_group("the file").add_argument
    add("--delimiter", help="separator of cells (default: guessed from the first line)")
    add("--decimal", help="decimal point (default: what the numbers show, or a point)")
    add("--encoding", default="utf-8", help="such as latin-1 (default: %(default)s)")
    add("--sheet", metavar="NAME", help="of a workbook (default: one with the named columns, or the first)")
    add("--header-row", type=int, metavar="N", help="the row with the names of the columns (default: found)")


def _add_raw_table(parser: argparse.ArgumentParser) -> None:
    _add_file(parser)
    add = parser.add_argument_group("its columns").add_argument
    text = (
        "the columns of the groups. If there are several, price, vfc, bfkm and mixtures treat each on its own, and "
        "other methods take the combinations of their values"
    )
    add("--sensitive", required=True, nargs="+", action="extend", metavar="COLUMN", help=text)
    text = "let every method take the combinations of several sensitive columns as the groups"
    add("--crossed", action="store_true", help=text)
    text = "cut sensitive columns of many different numbers into N ranges with about the same number of rows each"
    add("--bins", type=int, metavar="N", help=text)
    for option, text in (
        ("--features", "columns to cluster by (default: all columns of numbers or categories)"),
        ("--exclude", "columns to leave out"),
        ("--id", "columns that name the rows; they are no features, and are written beside the labels"),
        ("--categories", "columns of numbers that are codes of categories"),
        ("--numbers", "columns of numbers, although they look like codes or texts; other cells are missing"),
        ("--log", "columns of numbers to take the logarithm of"),
        ("--clip", "columns of numbers to cut at their 1 %% and 99 %% quantiles"),
    ):
        add(option, **_LISTED, metavar="COLUMN", help=text)
    text = "the steps of a scale; common scales and ranges such as 18-25 are found; may be repeated"
    add("--ordered", **_REPEATED, metavar="COLUMN=LOW,...,HIGH", help=text)
    text = (
        "impute: insert the median, or the most frequent category; drop: leave these rows out; group: treat missing "
        "values as a separate category or group (default: %(default)s)"
    )
    add("--missing", choices=("impute", "drop", "group"), default="impute", help=text)
    text = "separator of thousands (default: a comma, or a point with --decimal ,)"
    add("--thousands", metavar="SIGN", help=text)
    text = "l2: standardised, then rows of unit length, as in most papers (default: %(default)s)"
    add("--scale", choices=("standardize", "l2", "none"), default="standardize", help=text)


def _one_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        hint = "; `fairclust front` and `report` take a range" if ":" in text else ""
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number{hint}") from None


def _setting(name: str, text: str) -> str:
    """The setting of a parameter to a number or a percentage, as `--set` takes it."""
    is_percentage = text.endswith("%")
    try:
        number = float(text.removesuffix("%")) / (100 if is_percentage else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor a percentage") from None
    if name == "max_cost_increase" and number >= 1 and not is_percentage:
        raise argparse.ArgumentTypeError(
            f"{text} would be {number:.0%}. Fix: write {text}%, or {number:.0%} if that is meant"
        )
    return f"{name}={number!r}"
