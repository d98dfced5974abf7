"""The command as a user types it."""

from fairclust.cli import main


def run(capsys, *arguments):
    """Return the exit status and what the command prints on standard output and standard error."""
    status = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return status, out, err
