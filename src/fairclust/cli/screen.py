"""What commands print: lines of text and tables, with colour on a terminal and without it in a pipe."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fairclust.messages import shortened

if TYPE_CHECKING:
    from rich.table import Table

_TERM = re.compile(r"^[\w ]{1,12}(?=: )")


def in_columns(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> Table:
    """A table whose first row is the head. Columns are aligned to the right, except those in `left`."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for i, name in enumerate(rows[0]):
        table.add_column(Text(shortened(name, 120)), justify="left" if i in left else "right")
    for row in rows[1:]:
        table.add_row(*(Text(shortened(cell, 120)) for cell in row))
    return table


def show(lines: Iterable[str | Table]) -> None:
    """Print lines and tables on standard output. In a pipe no line is wrapped."""
    if not sys.stdout.isatty():
        # Text alone needs nothing of rich, whose import takes a tenth of a second.
        print("\n".join(line if isinstance(line, str) else _plain(line) for line in lines), flush=True)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in lines:
        shown = Text(line) if isinstance(line, str) else line
        if isinstance(shown, Text):
            shown.highlight_regex(_TERM, "bold cyan")
        console.print(shown)


def _plain(table: Table) -> str:
    from rich.console import Console

    # A table in a pipe is as wide as its cells.
    console = Console(width=100_000, color_system=None, force_terminal=False, force_jupyter=False)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
