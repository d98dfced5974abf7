"""How a method looks in every run, figure and page: a colour and a mark, which are stated with the method."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Literal, get_args

from fairclust.methods import LOOKS

Colour = Literal["blue", "vermilion", "green", "pink", "orange", "sky", "black", "yellow"]
Mark = Literal["circle", "square", "triangle", "diamond", "wedge", "plus", "cross", "star"]

# Okabe and Ito's palette, whose colours can be told apart with all common kinds of colour vision, in the order of
# `Colour`. Its yellow cannot be seen on white, so it is darker here.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#948500")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""The marks as matplotlib names them, in the order of `Mark`."""
SHAPES = (
    "M4.2 0A4.2 4.2 0 1 1-4.2 0A4.2 4.2 0 1 1 4.2 0Z",
    "M-3.8-3.8H3.8V3.8H-3.8Z",
    "M0-4.8L4.6 3.4H-4.6Z",
    "M0-5.2L5.2 0L0 5.2L-5.2 0Z",
    "M0 4.8L4.6-3.4H-4.6Z",
    "M-1.7-5H1.7V-1.7H5V1.7H1.7V5H-1.7V1.7H-5V-1.7H-1.7Z",
    "M-5-2.6L-2.6-5L0-2.4L2.6-5L5-2.6L2.4 0L5 2.6L2.6 5L0 2.4L-2.6 5L-5 2.6L-2.4 0Z",
    "M0-5.6L1.4-1.9L5.3-1.7L2.3.7L3.3 4.5L0 2.3L-3.3 4.5L-2.3.7L-5.3-1.7L-1.4-1.9Z",
)
"""The same marks as SVG paths, each about ten units wide around (0, 0)."""


def look(name: str, stated: tuple[str, str] | None = None) -> tuple[int, int]:
    """Positions of a method's colour and mark: the stated ones, or those of a class of this package.

    Any other method, such as a user's, gets a look that depends on its name alone.
    """
    words = stated or LOOKS.get(name)
    if words:
        return get_args(Colour).index(words[0]), get_args(Mark).index(words[1])
    return numbered_look(_number(name))


def looks_of(methods: Mapping[str, tuple[str, str] | None]) -> dict[str, tuple[int, int]]:
    """The looks of the methods of a run, with what each states. Up to 64 all differ, if the stated ones do.

    If the look of a method that states none is taken, the method gets the next free one.
    """
    looks = {name: look(name, stated) for name, stated in methods.items() if stated}
    for name in methods:
        if name not in looks:
            ways = [look(name), *(numbered_look(_number(name) + i) for i in range(64))]
            looks[name] = next((way for way in ways if way not in looks.values()), ways[0])
    return looks


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4])


def numbered_look(number: int) -> tuple[int, int]:
    """Positions of the colour and the mark of things without a name. The first 64 all differ."""
    return number % len(COLOURS), (number + number // len(COLOURS)) % len(MARKS)


def in_matplotlib(look: tuple[int, int]) -> tuple[str, str]:
    """A look as matplotlib takes it."""
    return COLOURS[look[0]], MARKS[look[1]]
