"""Fingerprints of source code. A cell depends on them as it depends on its parameters and data.

A method's fingerprint covers its class and every function, class and constant that this one names, directly or
indirectly, in modules of its own top-level package, of fairclust or of the working folder. Other statements at the top
of these modules count as well, because they run on import. Comments, docstrings, annotations of functions, layout and
what the class does not reach do not count.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path


class ClassNotFound(ValueError):
    """A dotted path of the configuration does not name a class."""


@cache
def _module_file(module: str) -> Path | None:
    """The file of a module, found without importing its parent packages, because imports may take seconds."""
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    for place in map(Path, spec.submodule_search_locations or ()):
        stem = place.joinpath(*rest)
        for file in (stem / "__init__.py", stem.with_suffix(".py")):
            if file.is_file() and (rest or file.name == "__init__.py"):
                return file
    return Path(spec.origin) if not rest and spec.origin and spec.origin.endswith(".py") else None


@cache
def _tree(file: Path) -> ast.Module:
    """The tree of a file without docstrings and without the annotations of functions."""
    try:
        tree = ast.parse(file.read_bytes())
    except SyntaxError as error:
        raise ClassNotFound(f"{file}, line {error.lineno}: {error.msg}") from None
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
        ):
            node.body = body[1:] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    return tree


@cache
def _is_ours(module: str, top: str) -> bool:
    """Whether a change of `module` counts as a change of the methods in the top-level package `top`."""
    package = module.partition(".")[0]
    if package in {top, "fairclust"}:
        return True
    if package in sys.stdlib_module_names or package in sys.builtin_module_names:
        return False
    file = _module_file(package)
    return file is not None and file.is_relative_to(Path.cwd()) and "site-packages" not in file.parts


@cache
def _lazy_homes(module: str) -> dict[str, str]:
    """The modules in which a package of fairclust finds its members when they are first used."""
    if module.partition(".")[0] != "fairclust" or not _module_file(f"{module}.__init__"):
        return {}
    homes = getattr(importlib.import_module(module), "_HOMES", {})
    # An entry of `fairclust.methods` states the look as well.
    return {name: home if isinstance(home, str) else home[0] for name, home in homes.items()}


# What a name stands for: a module and a name in it, or a module as a whole if the second is empty.
_Place = tuple[str, str]


class _Module:
    """The statements at the top of a module, and what each imported name stands for."""

    def __init__(self, name: str, file: Path) -> None:
        self.name = name
        self._package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        self.named: dict[str, list[ast.stmt]] = {}
        self.rest: list[ast.stmt] = []
        body = _tree(file).body
        self.bound = self.imports(body)
        for statement in body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                continue
            names = _defined(statement)
            for defined in names:
                self.named.setdefault(defined, []).append(statement)
            if not names:
                self.rest.append(statement)

    def imports(self, body: list[ast.stmt]) -> dict[str, _Place]:
        """The names that statements import, also inside functions, and what they stand for."""
        bound: dict[str, _Place] = {}
        for node in (node for statement in body for node in ast.walk(statement)):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    bound[alias.asname or top] = (alias.name if alias.asname else top, "")
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    parts = self._package.split(".")
                    base = ".".join([*parts[: len(parts) - node.level + 1], *([base] if base else [])])
                bound |= {alias.asname or alias.name: (base, alias.name) for alias in node.names}
        return bound


def _defined(statement: ast.stmt) -> list[str]:
    """The names that a statement at the top of a module defines, if it does nothing else."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    else:
        return []
    parts = [part for target in targets for part in getattr(target, "elts", [target])]
    names = [getattr(part, "id", "") for part in parts]  # nothing but an `ast.Name` has an `id`
    return names if all(names) else []


@cache
def _module(name: str) -> _Module:
    file = _module_file(name)
    if file is None:
        raise ClassNotFound(f"there is no Python module {name!r}")
    return _Module(name, file)


@cache
def _resolved(place: _Place, top: str) -> _Place | None:
    """The place where a name is defined, through imports of imports; None if its change does not count for `top`."""
    seen = set()
    while place not in seen:
        seen.add(place)
        module, name = place
        if name and _module_file(f"{module}.{name}"):
            place = (f"{module}.{name}", "")
            continue
        file = _module_file(module)
        if not _is_ours(module, top) or file is None:
            return None
        home = _lazy_homes(module).get(name)
        if home is not None:
            place = (f"{module}.{home}", name)
        elif name in _module(module).bound and name not in _module(module).named:
            place = _module(module).bound[name]
    module, name = place
    # A name that no statement defines may be made in some other way, so the whole module counts.
    return place if not name or name in _module(module).named else (module, "*")


def _used(module: _Module, body: list[ast.stmt], top: str) -> set[_Place]:
    """The places of all names in some statements of a module, as far as they count for `top`."""
    local = module.bound | module.imports(body)
    used: set[_Place] = set()

    def place_of(node: ast.AST) -> _Place | None:
        if isinstance(node, ast.Name):
            if node.id in local:
                return _resolved(local[node.id], top)
            return (module.name, node.id) if node.id in module.named else None
        if isinstance(node, ast.Attribute) and (owner := place_of(node.value)) and not owner[1]:
            return _resolved((owner[0], node.attr), top)
        return None

    def visit(node: ast.AST) -> None:
        place = place_of(node) if isinstance(node, ast.Name | ast.Attribute) else None
        if place is not None:
            # A module that is used in another way than by its attributes counts as a whole.
            used.add(place if place[1] else (place[0], "*"))
            return
        for child in ast.iter_child_nodes(node):
            if not (isinstance(node, ast.AnnAssign) and child is node.annotation):
                visit(child)

    for statement in body:
        visit(statement)
    return used


def _statements(place: _Place) -> list[ast.stmt]:
    """The statements that define a name of a module, or those that define none if the name is empty."""
    module = _module(place[0])
    return module.named.get(place[1], []) if place[1] else module.rest


@cache
def _read(place: _Place, top: str) -> tuple[str, frozenset[_Place]]:
    """Hash of the statements of a place, and the places that they use."""
    body = _statements(place)
    text = "\n".join(map(ast.dump, body))
    return hashlib.sha256(text.encode()).hexdigest(), frozenset(_used(_module(place[0]), body, top))


def _closure(*roots: str) -> dict[str, str]:
    """Hashes of all statements that are reached from ``package.module`` or ``package.module:name``, by ``module:name``.

    The name is empty for the statements of a module that define no name.
    """
    seen: dict[str, str] = {}
    for root in roots:
        begin, _, name = root.partition(":")
        top = begin.partition(".")[0]
        todo = [(begin, name or "*")]
        while todo:
            module, name = todo.pop()
            names = ["", *_module(module).named] if name == "*" else ["", name]
            for place in ((module, name) for name in names):
                if ":".join(place) not in seen:
                    seen[":".join(place)], used = _read(place, top)
                    todo += used
    return seen


@cache
def code_fingerprint(*roots: str) -> str:
    """Sixteen hexadecimal digits of SHA-256 over all statements that the roots reach."""
    seen = _closure(*roots)
    text = "\n".join(f"{name}: {seen[name]}" for name in sorted(seen))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def class_parameters(path: str) -> set[str] | None:
    """Parameter names of a class: the arguments of its ``__init__``, which may be inherited, or a dataclass's fields.

    None if the source does not show them.
    """
    module, _, name = path.rpartition(".")
    place = _resolved((module, name), module.partition(".")[0])
    node = (
        next((node for node in _statements(place) if isinstance(node, ast.ClassDef)), None) if place else None
    )
    if place is None or node is None:
        return None
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            taken = {argument.arg for argument in [*item.args.args[1:], *item.args.kwonlyargs]}
            return None if item.args.kwarg is not None else taken
    bases = [class_parameters(f"{place[0]}.{base.id}") for base in node.bases if isinstance(base, ast.Name)]
    fields = {
        item.target.id
        for item in node.body
        if isinstance(item, ast.AnnAssign)
        and isinstance(item.target, ast.Name)
        and not any(word in ast.unparse(item.annotation) for word in ("ClassVar", "KW_ONLY"))
        and any("dataclass" in ast.unparse(mark) for mark in node.decorator_list)
    }
    known = [names for names in bases if names is not None]
    return fields.union(*known) if fields or known else None


def class_fingerprint(path: str) -> str:
    """Fingerprint of ``package.module.Class`` and of all that the class reaches; ClassNotFound if there is none."""
    module, _, name = path.rpartition(".")
    file = _module_file(module)
    if file is None:
        raise ClassNotFound(f"class {path!r}: there is no Python module {module!r}")
    place = _resolved((module, name), module.partition(".")[0])
    if place is None or not any(isinstance(node, ast.ClassDef) for node in _statements(place)):
        classes = [node.name for node in _tree(file).body if isinstance(node, ast.ClassDef)]
        defined = ", ".join([*classes, *_lazy_homes(module)]) or "no class"
        raise ClassNotFound(
            f"class {path!r}: module {module!r} does not define {name!r}; it defines {defined}"
        )
    return code_fingerprint(":".join(place))
