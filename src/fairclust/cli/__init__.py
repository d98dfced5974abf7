"""The command `fairclust`. A module of this package is a command, or what several commands share."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from cyclopts import CycloptsError, MissingArgumentError

from fairclust.cli.options import Options, command_line
from fairclust.cli.screen import show
from fairclust.datasets.errors import DatasetError
from fairclust.messages import UserError

# Packages that only an extra installs, and the name of the extra. All others come with `pipeline`.
_EXTRAS = {
    "dask": "dask",
    "distributed": "dask",
    "ot": "fairlets",
    "pyarrow": "files",
    "pynndescent": "graphs",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status.

    The function `run` in the module of a command takes the options and returns what is printed: lines, and tables of
    `rich`. It raises a UserError if an option or a file is not as it should be.
    """
    if arguments is None:
        _keep_standard_output()
    words = list(sys.argv[1:] if arguments is None else arguments)
    program = command_line(everything="--help-all" in words)
    command = " ".join(["fairclust", *(word for word in words[:1] if word in program)])
    try:
        function, bound, _ = program.parse_args(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        message, lacking = str(error), error.argument if isinstance(error, MissingArgumentError) else None
        if lacking and not set(lacking.names) & set(words):
            message = f"{lacking.name if lacking.index is None else lacking.name[2:].upper()} is needed."
        return _fail(command, f"{message}\n`{command} --help` shows the options.")
    options = function(*bound.args, **bound.kwargs)
    if not isinstance(options, Options):
        # It has shown the help.
        return 0
    # Reports say how they were made.
    options.words = words
    try:
        # A module is imported only when its command runs, so that `--help` does not wait for compiled code.
        lines = import_module(f"fairclust.cli.{type(options).__name__.lower()}").run(options)
    except (UserError, DatasetError, OSError) as error:
        return _fail(command, error)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get(str(error.name), "pipeline")
        return _fail(command, f"this needs the package {error.name}: pip install 'fairclust[{extra}]'")
    except Exception as error:
        # The message of the error is left out, because it may quote cells of the user's table.
        where = "".join(traceback.format_tb(error.__traceback__))
        what = f"{where}an error in fairclust, a {type(error).__name__}. Fix: report these lines, which hold no data"
        _fail(command, what)
        return 1
    try:
        show(lines)
    except OSError as error:
        # Python would report the error again when it closes the file.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # A reader such as `head` has what it wants.
        if not isinstance(error, BrokenPipeError):
            error.filename = "standard output"
            return _fail(command, error)
    return 0


def _keep_standard_output() -> None:
    """Let only Python write to the standard output of this process; what compiled code writes goes to standard error.

    Some versions of HiGHS print lines even with output turned off, and these would be part of the command's result.
    """
    old = sys.stdout
    try:
        own = os.dup(1)
        os.dup2(2, 1)
    except OSError:
        # One of the two is closed, so there is nothing to keep apart.
        return
    # What the encoding of a terminal does not have is written as '\\u2013'.
    sys.stdout = os.fdopen(own, "w", encoding=old.encoding, errors="backslashreplace")


def _fail(command: str, error: object) -> int:
    """Print the message of an error, and return the exit status."""
    message = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        message = f"{error.filename} cannot be read or written: {error.strerror or error.args[0]}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            message += ". Fix: free some space, or name a file on another disk"
    print(f"{command}: {message}", file=sys.stderr)
    return 2
