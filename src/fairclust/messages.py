"""Texts in messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def shortened(text: str, width: int = 80) -> str:
    """The text, or its first characters and an ellipsis if it is longer than `width`."""
    return text if len(text) <= width else text[: width - 1] + "…"


def nearest(name: str, known: Iterable[str]) -> str:
    """Ask whether the known name nearest to `name` is meant, or list the first twenty known names.

    A name that begins with `name` comes first, because users leave out the end of a name.
    """
    names = [str(k) for k in known]
    longer = [k for k in names if name and k.startswith(name)]
    if close := longer or difflib.get_close_matches(name, names, n=1):
        return f"did you mean {close[0]!r}?"
    shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
    return f"there are: {shortened(shown, 300)}" if names else "there are none"
