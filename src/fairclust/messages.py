"""Texts in messages, and the base of the errors that a command prints as their message alone."""

from __future__ import annotations

import difflib
import inspect
import shlex
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping

NOT_UNIQUE = (
    "the eigenvalue after those of the embedding coincides with the last of them, for example because the graph has "
    "more connected components than clusters; so the clustering is one of several, and can differ between machines"
)
"""The warning of a fit whose spectral embedding is not unique."""


class UserError(ValueError):
    """Something is asked for that cannot be done; the message says why, and what to do."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the user's line of code."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "fairclust":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def shortened(text: str, width: int = 80) -> str:
    """The text, or its first characters and an ellipsis if it is longer than `width`."""
    return text if len(text) <= width else text[: width - 1] + "…"


def listed(texts: Iterable[str], shown: int = 10) -> str:
    """The first texts, and how many others there are."""
    texts = [shortened(text, 100) for text in texts]
    return ", ".join(texts[:shown]) + (f" and {len(texts) - shown:,} more" if len(texts) > shown else "")


def misspelt(name: str, known: Iterable[str], similarity: float = 0.6) -> str:
    """Ask whether the known name nearest to `name` is meant; empty if no name is as similar (difflib's ratio)."""
    close = difflib.get_close_matches(name, known, 1, similarity)
    return f"did you mean {close[0]!r}?" if close else ""


def nearest(name: str, known: Iterable[str]) -> str:
    """Ask whether the known name nearest to `name` is meant, or list the first twenty known names.

    A name that begins with `name` comes first, because users leave out the end of a name.
    """
    names = [str(k) for k in known]
    longer = [k for k in names if name and k.startswith(name)]
    if meant := misspelt(longer[0] if longer else name, names):
        return meant
    return f"there are: {shortened(listed(map(repr, names), 20), 300)}" if names else "there are none"


def count(number: int, what: str) -> str:
    """A number and what is counted, in the singular or the plural."""
    return f"{number:,} {what}" + ("s" if number != 1 else "")


def quoted(name: str) -> str:
    """The name of a column as the value of an option, which a shell takes as one word."""
    return shlex.quote(shortened(name))


def percent(share: float, decimals: int = 1) -> str:
    """A share as text, such as '41.7 %'."""
    return f"{100 * share:,.{decimals}f} %"


def counted(values: Iterable[str], order: Iterable[str]) -> dict[str, int]:
    """The number of times that each value occurs, in the given order. Values that do not occur are left out."""
    counts = Counter(values)
    return {value: counts[value] for value in order if value in counts}


def in_words(counts: Mapping[str, int]) -> str:
    """Counts as text: '3 holds, 1 not tested'."""
    return ", ".join(f"{number:,} {what}" for what, number in counts.items())


def brief(reason: str) -> str:
    """The first line of a reason, without the list of the places that were tried."""
    return reason.partition("\n")[0].removesuffix(" Tried:") or "no reason given"


def duration(seconds: float) -> str:
    """A duration in words, such as '2.5 hours'."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return count(round(seconds), "second")
