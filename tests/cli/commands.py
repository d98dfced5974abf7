"""The command as a user types it."""

import sys

from fairclust.cli import main

COMMAND = [sys.executable, "-c", "import sys; from fairclust.cli import main; sys.exit(main())"]
"""The command in a process of its own, whose standard output a test chooses."""


def run(capsys, *arguments):
    """Return the exit status and what the command prints on standard output and standard error."""
    status = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return status, out, err


def told(answer):
    """Return the standard output of a command that must succeed."""
    status, out, err = answer
    assert status == 0, err
    return out


def refused(answer):
    """Return the message of a command that must end with status 2."""
    status, _, err = answer
    assert status == 2, err
    return err
