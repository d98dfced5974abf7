"""The content of a saved model, read with checks of every type and shape, because the file may come from anyone."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

# Arrays of text have as many characters in every entry as the longest text, so one long text makes all entries long.
_MOST_CHARACTERS = 1 << 28


class StoredError(ValueError):
    """A key of a saved model is missing, or its value has a wrong type or shape; the message names the key."""


class Stored:
    """A mapping of a saved model, called `place` in messages, whose content comes from JSON.

    Each method reads one key, and raises `StoredError` unless its value fits.
    """

    def __init__(self, content: Any, place: str = "") -> None:
        self._place = place
        self._content = self._checked(content, dict, "", "a mapping")

    def _checked(self, value: Any, expected: type, key: str, what: str) -> Any:
        if type(value) is not expected:
            raise StoredError(f"{self._place}{key} is not {what}")
        return value

    def has(self, key: str) -> bool:
        return self._content.get(key) is not None

    def part(self, key: str) -> Stored:
        return Stored(self._content.get(key), f"{self._place}{key}.")

    def parts(self, key: str) -> list[Stored]:
        parts = self._checked(self._content.get(key), list, key, "a list")
        return [Stored(part, f"{self._place}{key}[{i}].") for i, part in enumerate(parts)]

    def flag(self, key: str) -> bool:
        return self._checked(self._content.get(key), bool, key, "a truth value")

    def text(self, key: str, among: Collection[str] | None = None) -> str:
        text = self._checked(self._content.get(key), str, key, "text")
        if among is not None and text not in among:
            raise StoredError(f"{self._place}{key} is none of {', '.join(among)}")
        return text

    def texts(self, key: str, *, null: bool = False) -> list[Any]:
        """A list of texts. If `null`, some of them may be None."""
        texts = self._checked(self._content.get(key), list, key, "a list")
        for value in texts:
            if not (null and value is None):
                self._checked(value, str, key, "a list of texts")
        return texts

    def number(self, key: str) -> float:
        """A positive number."""
        number = float(self.array(key))
        if number <= 0:
            raise StoredError(f"{self._place}{key} is not positive")
        return number

    def array(self, key: str, *shape: int | None, finite: bool = True) -> np.ndarray:
        """Numbers of the given shape, as float64; None fits any length."""
        try:
            array = np.array(self._content.get(key))
        except ValueError:  # rows of several lengths
            array = np.array(None)
        if not array.size and 0 in shape:
            array = np.zeros([size or 0 for size in shape])
        fits = array.ndim == len(shape)
        fits = fits and all(length in (size, None) for size, length in zip(array.shape, shape, strict=True))
        if array.dtype.kind not in "iuf" or not fits or (finite and not np.isfinite(array).all()):
            words = " x ".join("any" if size is None else str(size) for size in shape)
            raise StoredError(
                f"{self._place}{key} is not {f'an array of {words} numbers' if shape else 'a number'}"
            )
        return array.astype(float)

    def names(self, key: str) -> np.ndarray:
        """At least one value: an array of text or of numbers."""
        content = self._content.get(key)
        if isinstance(content, list) and content and isinstance(content[0], str):
            texts = self.texts(key)
            if len(texts) * max(map(len, texts)) > _MOST_CHARACTERS:
                raise StoredError(f"{self._place}{key} has texts that are too long")
            return np.array(texts)
        numbers = self.array(key, None)
        if not len(numbers):
            raise StoredError(f"{self._place}{key} is empty")
        return numbers
