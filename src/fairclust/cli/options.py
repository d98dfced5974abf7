"""The options of the commands that take a table or labels.

They have a module of their own, so that parsing them imports nothing slow.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

_LABELS = (
    "CSV with a column cluster, counted from 0, and perhaps a column row, counted from 1; or only the number of a "
    "cluster in each line"
)


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


def add_repeated(
    parser: argparse.ArgumentParser, option: str, metavar: str, text: str, kind: type = str
) -> None:
    """Add an option whose values are collected in a list."""
    text = f"{text}; may be repeated"
    parser.add_argument(option, type=kind, action="append", default=[], metavar=metavar, help=text)


def add_fit(commands: argparse._SubParsersAction) -> None:
    """Add `fairclust fit` and its options."""
    parser = commands.add_parser("fit", help="cluster the rows of a table, print metrics, write labels")
    _add_raw_table(parser)
    parser.add_argument("--method", default="price", help="see `fairclust methods` (default: %(default)s)")
    parser.add_argument("--n-clusters", type=_one_number, required=True, metavar="K")
    add_repeated(parser, "--set", "NAME=VALUE", "a parameter of the method, such as lam=100 or size_max=1.1")
    bounds = parser.add_argument_group(
        "what the clusters must keep", "Bounds of price and of methods that take them."
    )
    for name, metavar, text in (
        (
            "tolerance",
            "T",
            "how far a group's share in a cluster may be off its share of all rows, as a part of it: 0, the default of "
            "price, is the strictest, and 0.1 allows a tenth",
        ),
        ("min_balance", "B", "the smallest ratio of two groups in any cluster, such as 0.4"),
        (
            "max_cost_increase",
            "SHARE",
            "find the fairest clusters that cost at most this much more than without a bound, such as 5%%",
        ),
    ):
        # Another way to write `--set`.
        kind, option = partial(_setting, name), f"--{name.replace('_', '-')}"
        bounds.add_argument(option, dest="set", action="append", type=kind, metavar=metavar, help=text)
    bounds.add_argument("--equal-sizes", action="store_true", help="clusters of equal size, up to one row")
    parser.add_argument("--seed", type=int, default=0, help="random state (default: %(default)s)")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write row numbers, identifiers and clusters here, as CSV"
    )
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="write the model here, for `fairclust predict`"
    )
    parser.add_argument(
        "--weight", metavar="COLUMN", help="numbers that say how often a row counts; they are no feature"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument(
        "--verbose", action="store_true", help="print all notes on the table, not only the first five"
    )
    _add_spreadsheet_safe(parser)
    chunks = parser.add_argument_group(
        "tables larger than the memory",
        "Parquet files that do not fit in memory are read in chunks, and so are all if an option of this section is "
        "given.",
    )
    chunks.add_argument(
        "--workers", type=int, metavar="N", help="number of processes on this machine that read the chunks"
    )
    chunks.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="address or JSON file of a Dask scheduler, whose workers read the chunks",
    )
    chunks.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FILE",
        help="save every outer step in this file; a stopped fit continues from it",
    )


def add_predict(commands: argparse._SubParsersAction) -> None:
    """Add `fairclust predict` and its options."""
    parser = commands.add_parser(
        "predict", help="predict the clusters of new rows by a model that fit --save wrote"
    )
    parser.add_argument("model", type=Path, help="written by `fairclust fit --save`")
    _add_file(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write here instead of to standard output")
    parser.add_argument(
        "--unknown",
        choices=("error", "skip"),
        default="error",
        help="skip: rows of groups that did not occur in the fit get no cluster (default: %(default)s)",
    )
    _add_spreadsheet_safe(parser)


def _add_spreadsheet_safe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--spreadsheet-safe",
        action="store_true",
        help="write an apostrophe before text that begins with =, +, - or @, which spreadsheets run as a formula",
    )


def add_front(commands: argparse._SubParsersAction) -> None:
    """Add `fairclust front` and its options."""
    parser = commands.add_parser(
        "front", help="draw the cost of fairness for the settings of several methods, or for several K"
    )
    _add_grid(parser, "default: price, vfc and bfkm; price alone for a range of K")
    parser.add_argument("--seed", type=int, default=0, help="random state (default: %(default)s)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("front"),
        metavar="STEM",
        help="write STEM.csv, and with matplotlib STEM.png (default: %(default)s)",
    )


def _add_grid(parser: argparse.ArgumentParser, methods: str) -> None:
    """Add the options of the commands that fit several settings of several methods."""
    _add_raw_table(parser)
    parser.add_argument(
        "--n-clusters",
        required=True,
        metavar="K",
        help="a number of clusters, or a range of them such as 2:10",
    )
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help=methods)
    parser.add_argument(
        "--starts",
        type=int,
        default=3,
        help="starts of every setting; fronts show the one with the lowest objective (default: %(default)s)",
    )


def add_report(commands: argparse._SubParsersAction) -> None:
    """Add `fairclust report` and its options."""
    parser = commands.add_parser(
        "report",
        help="write a page that compares methods on a table: fronts, ranks, groups of every cluster, times",
    )
    _add_grid(parser, "methods to compare with k-means (default: price, vfc and bfkm)")
    parser.add_argument(
        "--labels",
        type=Path,
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help=f"also show labels that other programs made, each as a method with the name of its file: {_LABELS}",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("report.html"), metavar="FILE", help="default: %(default)s"
    )


def add_methods(commands: argparse._SubParsersAction) -> None:
    """Add `fairclust methods` and its options."""
    parser = commands.add_parser(
        "methods", help="list the methods with the needs that they meet, or the parameters of one"
    )
    parser.add_argument("method", nargs="?", help="show the parameters of this method")


def _add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "table",
        help="CSV, also compressed (.gz), Parquet, Feather or Excel, a folder of Parquet files, or a pattern such as "
        "'big/*.parquet'; - is standard input",
    )
    parser.add_argument("--delimiter", help="separator of cells (default: guessed from the first line)")
    parser.add_argument("--decimal", help="decimal point (default: what the numbers show, or a point)")
    parser.add_argument("--encoding", default="utf-8", help="such as latin-1 (default: %(default)s)")


def _add_raw_table(parser: argparse.ArgumentParser) -> None:
    _add_file(parser)
    parser.add_argument(
        "--sensitive",
        required=True,
        nargs="+",
        action="extend",
        metavar="COLUMN",
        help="the columns of the groups. If there are several, price, vfc, bfkm and mixtures treat each on its "
        "own, and other methods take the combinations of their values",
    )
    parser.add_argument(
        "--crossed",
        action="store_true",
        help="let every method take the combinations of several sensitive columns as the groups",
    )
    parser.add_argument(
        "--bins",
        type=int,
        metavar="N",
        help="cut sensitive columns of many different numbers into N ranges with about the same number of rows each",
    )
    for option, what in (
        ("--features", "columns to cluster by (default: all columns of numbers or categories)"),
        ("--exclude", "columns to leave out"),
        ("--id", "columns that name the rows; they are no features, and are written beside the labels"),
        ("--categories", "columns of numbers that are codes of categories"),
    ):
        parser.add_argument(option, nargs="+", action="extend", default=[], metavar="COLUMN", help=what)
    parser.add_argument(
        "--missing",
        choices=("impute", "drop", "group"),
        default="impute",
        help="impute: insert the median, or the most frequent category; drop: leave these rows out; group: treat "
        "missing values as a separate category or group (default: %(default)s)",
    )
    parser.add_argument(
        "--thousands",
        metavar="SIGN",
        help="separator of thousands (default: a comma, or a point with --decimal ,)",
    )
    parser.add_argument(
        "--scale",
        choices=("standardize", "l2", "none"),
        default="standardize",
        help="l2: standardised, then rows of unit length, as in most papers (default: %(default)s)",
    )


def add_score(commands: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Add `fairclust score` and its options; returns its parser."""
    parser = commands.add_parser(
        "score", help="score labels that any program made, and compare them with the clusterings of a run"
    )
    parser.add_argument("dataset", metavar="DATASET", help="a name in config/datasets, such as adult")
    parser.add_argument("labels", type=Path, metavar="LABELS", help=_LABELS)
    parser.add_argument(
        "--n-clusters", type=int, metavar="K", help="number of clusters (default: that of the data set)"
    )
    parser.add_argument(
        "--run",
        type=Path,
        default=Path("docs/results"),
        metavar="FOLDER",
        help="results of a run, or published results (default: %(default)s)",
    )
    text = "a folder or base URL that is tried before the original addresses"
    add_repeated(parser, "--mirror", "PLACE", text)
    return parser
