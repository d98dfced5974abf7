"""The command `fairclust`: fit a CSV, list methods, write the skeleton of one, look after a run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fairclust import __version__


class CommandError(ValueError):
    """What the user asked for cannot be done; the message says why and what to do."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fairclust", description=__doc__)
    parser.add_argument("--version", action="version", version=f"fairclust {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    fit = commands.add_parser("fit", help="cluster the rows of a CSV, print metrics, write labels")
    fit.add_argument("csv", type=Path, help="a table with a header line")
    fit.add_argument("--sensitive", required=True, metavar="COLUMN", help="the column of the groups")
    fit.add_argument("--method", default="price", help="see `fairclust methods` (default: %(default)s)")
    fit.add_argument("--n-clusters", type=int, required=True, metavar="K")
    fit.add_argument(
        "--features",
        metavar="A,B,...",
        help="columns to cluster by (default: all that hold numbers, without the sensitive one)",
    )
    fit.add_argument(
        "--scale",
        choices=("standardize", "l2", "none"),
        default="standardize",
        help="l2: standardised, then rows of unit length, as in most papers (default: %(default)s)",
    )
    fit.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the method, such as lam=100 or tolerance=0.1; may be repeated",
    )
    fit.add_argument("--seed", type=int, default=0, help="random state (default: %(default)s)")
    fit.add_argument("--delimiter", help="between cells (default: as the first line suggests)")
    fit.add_argument("--decimal", default=".", help="decimal point (default: %(default)s)")
    fit.add_argument("--encoding", default="utf-8", help="such as latin-1 (default: %(default)s)")
    fit.add_argument("--out", type=Path, metavar="FILE", help="write row and cluster here, as CSV")

    commands.add_parser("methods", help="list the methods")

    new = commands.add_parser("new-method", help="write the skeleton of a method, and its test")
    new.add_argument("name", help="in snake_case, such as my_method")
    new.add_argument("--folder", type=Path, default=Path("my_methods"), help="default: %(default)s")

    status = commands.add_parser("status", help="how far a run is: cells done, failed, to go, time left")
    status.add_argument("--cores", type=int, default=1, help="for the estimate (default: %(default)s)")
    prune = commands.add_parser("prune", help="remove fits that the configuration does not ask for any more")
    prune.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    explain = commands.add_parser("explain", help="where each value of the configuration comes from")
    explain.add_argument("key", nargs="?", default="", help="only keys that begin with it, such as run")
    publish = commands.add_parser("publish", help="copy tables, figures, page and scores of a finished run")
    publish.add_argument("--out", type=Path, default=Path("docs/results"), help="default: %(default)s")
    publish.add_argument("--wall-seconds", type=float, help="of the whole run, kept with its provenance")
    publish.add_argument("--readme", type=Path, help="put the counts of the scoreboard into this file, too")
    verify = commands.add_parser(
        "verify", help="check every digest of results, and score a sample of cells again"
    )
    verify.add_argument("results", type=Path, nargs="?", default=Path("results"), help="default: %(default)s")
    verify.add_argument("--sample", type=int, default=20, metavar="CELLS", help="default: %(default)s")
    verify.add_argument("--seed", type=int, default=0, help="of the sample (default: %(default)s)")
    for command in (status, prune, explain, publish):
        command.add_argument(
            "--configfile",
            type=Path,
            action="append",
            default=[],
            help="laid over config/config.yaml; may be repeated",
        )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    from fairclust.cli import configuration, fit, publish, scaffold, status, verify
    from fairclust.pipeline.cell_store import DamagedFile

    args = _parser().parse_args(arguments)
    commands = {
        "fit": fit.run,
        "methods": lambda _: fit.list_methods(),
        "new-method": scaffold.run,
        "status": status.run,
        "prune": status.prune,
        "explain": configuration.explain,
        "publish": publish.run,
        "verify": verify.run,
    }
    try:
        lines = commands[args.command](args)
    except (CommandError, OSError, DamagedFile) as error:
        print(f"fairclust {args.command}: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0
