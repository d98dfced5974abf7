"""The command `fairclust`: it clusters tables, predicts clusters, draws the cost of fairness, and manages runs."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from fairclust import __version__
from fairclust.cli import options
from fairclust.datasets.errors import DatasetError
from fairclust.messages import UserError

# The module and the function of each command. A module is imported only when its command runs, so that `--help` does
# not wait for compiled code.
_COMMANDS = {
    "fit": "fit:run",
    "predict": "predict:run",
    "front": "front:run",
    "report": "report:run",
    "methods": "methods:run",
    "status": "status:run",
    "publish": "publish:run",
    "verify": "verify:run",
    "score": "score:run",
}
# Packages that only an extra installs, and the name of the extra. All others come with `pipeline`.
_EXTRAS = {
    "dask": "dask",
    "distributed": "dask",
    "matplotlib": "plot",
    "ot": "fairlets",
    "pyarrow": "files",
    "pynndescent": "graphs",
}


class CommandError(UserError):
    """A command cannot do what the user asked for; the message says why and what to do."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Print the error alone. The usage, which argparse prints before it, is longer than a screen."""
        self.exit(2, f"{self.prog}: {message}\n`{self.prog} --help` shows the options.\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="fairclust", description=__doc__)
    parser.add_argument("--version", action="version", version=f"fairclust {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    options.add_fit(commands)
    options.add_predict(commands)
    options.add_front(commands)
    options.add_report(commands)
    options.add_methods(commands)

    status = commands.add_parser(
        "status",
        help="before a run: what your tables hold, and all problems; then finished, failed, remaining and unused "
        "cells, and the time left",
    )
    status.add_argument(
        "--cores",
        type=int,
        help="for the estimate of the time left (default: the cores of the run, or those of this machine)",
    )
    status.add_argument("--explain", action="store_true", help="say why the next run would fit cells")
    status.add_argument(
        "--prune", action="store_true", help="remove stored fits that the configuration no longer asks for"
    )
    publish = commands.add_parser("publish", help="copy tables, figures, page and scores of a finished run")
    publish.add_argument("--out", type=Path, default=Path("docs/results"), help="default: %(default)s")
    publish.add_argument(
        "--wall-seconds", type=float, help="duration of the whole run, kept with its provenance"
    )
    text = "also write the numbers of the run between the marks of this page"
    options.add_repeated(publish, "--readme", "PAGE", text, Path)
    verify = commands.add_parser(
        "verify", help="check every digest of results, and score a sample of cells again"
    )
    verify.add_argument("results", type=Path, nargs="?", default=Path("results"), help="default: %(default)s")
    verify.add_argument("--sample", type=int, default=20, metavar="CELLS", help="default: %(default)s")
    verify.add_argument("--seed", type=int, default=0, help="seed of the sample (default: %(default)s)")
    for command in (status, publish, options.add_score(commands)):
        options.add_repeated(command, "--configfile", "FILE", "laid over config/config.yaml", Path)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    if arguments is None:
        _keep_standard_output()
    args = _parser().parse_args(arguments)
    module, _, function = _COMMANDS[args.command].partition(":")
    try:
        lines = getattr(import_module(f"fairclust.cli.{module}"), function)(args)
    except (UserError, DatasetError, OSError) as error:
        return _fail(args.command, error)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get(str(error.name), "pipeline")
        message = f"this needs the package {error.name}: pip install 'fairclust[{extra}]'"
        print(f"fairclust {args.command}: {message}", file=sys.stderr)
        return 2
    try:
        print("\n".join(lines), flush=True)
    except OSError as error:
        # Python would report the error again when it closes the file.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # A reader such as `head` has what it wants.
        if not isinstance(error, BrokenPipeError):
            error.filename = "standard output"
            return _fail(args.command, error)
    return 0


def _keep_standard_output() -> None:
    """Let only Python write to the standard output of this process; what compiled code writes goes to standard error.

    Some versions of HiGHS print lines even with output turned off, and these would be part of the command's result.
    """
    try:
        own = os.dup(1)
        os.dup2(2, 1)
    except OSError:
        # One of the two is closed, so there is nothing to keep apart.
        return
    old = sys.stdout
    buffering = 1 if old.line_buffering else -1
    sys.stdout = os.fdopen(own, "w", buffering, encoding=old.encoding, errors=old.errors)


def _fail(command: str, error: Exception) -> int:
    """Print the message of an error, and return the exit status."""
    message = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        message = f"{error.filename} cannot be read or written: {error.strerror or error.args[0]}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            message += ". Fix: free some space, or name a file on another disk"
    print(f"fairclust {command}: {message}", file=sys.stderr)
    return 2
