"""Progress on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TimeElapsedColumn


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Show a bar with the time that has passed and, if the number of parts is known, the time that is left.

    Yields a function to be called after each part.
    """
    columns = (*Progress.get_default_columns(), TimeElapsedColumn())
    console, disable = Console(stderr=True), not sys.stderr.isatty()
    with Progress(*columns, console=console, transient=True, disable=disable) as bar:
        yield partial(bar.advance, bar.add_task(escape(what), total=total))
