"""Colour and mark of a method, the same in every figure and on the page."""

from __future__ import annotations

# Okabe and Ito's palette, whose colours can be told apart with all common kinds of colour vision. They are also in
# style.css.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
# SVG paths of the eight shapes, each about ten units wide around (0, 0).
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


def look(number: int) -> tuple[int, int]:
    """Colour and shape of the method at a position in the list of methods. The first 64 methods all differ."""
    return number % len(COLOURS), (number + number // len(COLOURS)) % len(SHAPES)
