"""Texts in messages."""

from __future__ import annotations


def shortened(text: str, width: int = 80) -> str:
    """The text, or its first characters and an ellipsis if it is longer than `width`."""
    return text if len(text) <= width else text[: width - 1] + "…"
