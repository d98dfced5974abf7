"""Saved models as JSON: arrays, and objects of classes that consist of their fields."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

_Class = TypeVar("_Class", bound=type)
_CLASSES: dict[str, Any] = {}


def storable(cls: _Class) -> _Class:
    """Let saved models hold objects of this class, a dataclass or a named tuple. No other class is ever read."""
    _CLASSES[cls.__name__] = cls
    return cls


def as_json(value: Any) -> str:
    """The text of a value, which `from_json` reads."""
    return json.dumps(_plain(value))


def _plain(value: Any) -> Any:
    """A value in which every mapping says what it stands for, so that names of columns may be any text."""
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "type": value.dtype.str}
    if type(value).__name__ in _CLASSES:
        names = [field.name for field in fields(value)] if is_dataclass(value) else value._fields
        return {"class": type(value).__name__, "fields": [_plain(getattr(value, name)) for name in names]}
    if isinstance(value, dict):
        return {"mapping": [[key, _plain(of)] for key, of in value.items()]}
    if isinstance(value, list | tuple):
        return [*map(_plain, value)]
    return value.item() if isinstance(value, np.generic) else value


def from_json(text: str | bytes) -> Any:
    """The value of a text. Tuples have become lists."""
    return json.loads(text, object_hook=_value)


def _value(content: dict[str, Any]) -> Any:
    if "array" in content:
        return np.array(content["array"], content["type"])
    return _CLASSES[content["class"]](*content["fields"]) if "class" in content else dict(content["mapping"])
