"""YAML without guesses: what YAML 1.1 would read as something else than what stands in the file is an error."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import yaml

from fairclust.messages import shortened

_MOST_BYTES = 1_000_000
_DEEPEST = 50
# An alias counts as often as it is used, because everything that reads the configuration visits its copies.
_MOST_NODES = 25_000

_KIND = "tag:yaml.org,2002:"
# How a value of each kind must be written. YAML 1.1 would also accept 010, 0x1f, 1_000, 1:30, yes and .inf.
_WRITTEN = {
    "str": r"[^\0\ud800-\udfff]*",
    "int": r"[-+]?(0|[1-9][0-9]*)",
    "float": r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "null": r"|~|null|Null|NULL",
}
_NUMBERS = ("int", "float")
_KEYS = ("str", "int", "merge")
_FIX = {
    "int": "write it in decimal digits, or put it in quotes if it is a text",
    "float": "write a finite number in decimal digits, or put it in quotes if it is a text",
    "bool": "write true or false, or put it in quotes if it is a text",
}


class _Loader(yaml.SafeLoader):
    """Checks every node when it is composed, so that an error stops the reading of a file that is hostile or huge."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._path: list[Any] = []
        self._sizes: dict[yaml.Node, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> Any:
        self._path.append(index)
        event: Any = self.peek_event()
        if len(self._path) > _DEEPEST:
            raise self._error(
                event,
                f"lists and mappings lie more than {_DEEPEST} deep in each other. Fix: use fewer levels",
            )
        node: Any = super().compose_node(parent, index)
        if isinstance(event, yaml.AliasEvent):
            if node not in self._sizes:
                raise self._error(
                    event, f"the alias *{event.anchor} contains itself. Fix: write out the value"
                )
        else:
            self._check(node)
        if max(self._sizes[node], len(self._sizes)) > _MOST_NODES:
            raise self._error(
                event, f"here are more than {_MOST_NODES:,} values, with those of aliases. Fix: use fewer"
            )
        self._path.pop()
        return node

    def _check(self, node: yaml.Node) -> None:
        """Raise an error if a node is not what it seems, or too large with all of its aliases."""
        kind = node.tag.removeprefix(_KIND)
        if isinstance(node, yaml.ScalarNode):
            self._check_scalar(node, kind)
            self._sizes[node] = 1
            return
        is_mapping = isinstance(node, yaml.MappingNode)
        if kind != ("map" if is_mapping else "seq"):
            raise self._error(node, f"the tag {shortened(node.tag)} is not used here. Fix: remove it")
        if is_mapping:
            self._check_keys(node)
        parts = [part for pair in node.value for part in pair] if is_mapping else node.value
        self._sizes[node] = 1 + sum(self._sizes[part] for part in parts)

    def _check_scalar(self, node: yaml.ScalarNode, kind: str) -> None:
        if kind == "merge":
            return
        text = node.value
        is_plain = re.fullmatch(_WRITTEN.get(kind, "(?!)"), text) is not None
        if is_plain and (kind not in _NUMBERS or abs(float(text)) < math.inf):
            return
        if kind == "str":
            raise self._error(node, "the text holds a character that no file can hold. Fix: remove it")
        try:
            read = f"YAML 1.1 reads it as the {kind} {shortened(str(self.construct_object(node)))}"
        except (ValueError, LookupError, AttributeError, yaml.YAMLError):  # an explicit tag that does not fit
            read = f"it is no value of the kind {shortened(kind)}"
        fix = _FIX.get(kind, "put it in quotes, without a tag")
        raise self._error(node, f"{shortened(text)!r} cannot be used, because {read}. Fix: {fix}")

    def _check_keys(self, node: yaml.Node) -> None:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag.removeprefix(_KIND) not in _KEYS:
                name = f"the key {shortened(key.value)!r}" if isinstance(key, yaml.ScalarNode) else "a key"
                raise self._error(key, f"{name} is no text. Fix: put it in quotes")
            if key.value != "<<" and key.value in seen:
                raise self._error(key, f"key {shortened(key.value)!r} occurs more than once. Fix: remove one")
            seen.add(key.value)

    def _error(self, at: Any, problem: str) -> yaml.MarkedYAMLError:
        """An error that names the line and the key."""
        steps = (getattr(step, "value", step) for step in self._path)
        names = [str(step) for step in steps if isinstance(step, str | int)]
        key = shortened(".".join(names))
        return yaml.MarkedYAMLError(None, None, f"{key}: {problem}" if key else problem, at.start_mark)


def load_file(path: Path) -> Any:
    """The content of a YAML file.

    ValueError, a line with place and key, if the file is not valid or holds a value that YAML 1.1 changes.
    """
    try:
        if path.exists() and not path.is_file():
            raise ValueError("it is not a regular file")
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError(
                f"it has more than {_MOST_BYTES:,} bytes. Fix: divide it into several files of a catalogue"
            )
        loader = _Loader(content.decode())
        return loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ValueError(line + ", ".join(filter(None, [error.context, error.problem]))) from None
    except (OSError, yaml.YAMLError) as error:
        raise ValueError(str(error).partition("\n")[0]) from None
