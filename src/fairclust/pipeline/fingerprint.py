"""Fingerprints of source code. A cell depends on them as it depends on its parameters and data.

A method's fingerprint covers the module of its class and the modules that this one imports, directly or indirectly, as
far as they are of its own top-level package, of fairclust or of the working folder. Comments, docstrings, annotations
of functions and layout do not count.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple


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
def _is_ours(module: str, top: str) -> bool:
    """Whether a change of `module` counts as a change of the methods in the top-level package `top`."""
    package = module.partition(".")[0]
    if package in {top, "fairclust"}:
        return True
    if package in sys.stdlib_module_names:
        return False
    file = _module_file(package)
    return file is not None and file.is_relative_to(Path.cwd()) and "site-packages" not in file.parts


@cache
def _lazy_modules(module: str) -> dict[str, str]:
    """The modules in which a package of fairclust finds its members when they are first used."""
    if module.partition(".")[0] != "fairclust" or not _module_file(f"{module}.__init__"):
        return {}
    module_of = getattr(importlib.import_module(module), "_MODULE_OF", {})
    # An entry of `fairclust.methods` states the look as well.
    return {name: of if isinstance(of, str) else of[0] for name, of in module_of.items()}


class _Module(NamedTuple):
    """The code of a module without docstrings and annotations of functions, and what it imports."""

    tree: ast.Module
    # What a name stands for: a module and a name in it, which is "" for a whole module.
    imports: dict[str, tuple[str, str]]
    used: set[str]  # all modules; one name can stand for several of them


@cache
def _module(name: str) -> _Module:
    """Read a module. Imports inside functions count too."""
    file = _module_file(name)
    if file is None:
        raise ClassNotFound(f"there is no Python module {name!r}")
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    try:
        tree = ast.parse(file.read_bytes())
    except SyntaxError as error:
        raise ClassNotFound(f"{file}, line {error.lineno}: {error.msg}") from None
    imports: dict[str, tuple[str, str]] = {}
    used: set[str] = set()
    for node in ast.walk(tree):
        new: dict[str, tuple[str, str]] = {}
        body = getattr(node, "body", None)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
        ):
            node.body = body[1:] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.Import):
            new = {alias.asname or alias.name: (alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *([base] if base else [])])
            new = {alias.asname or alias.name: _home(base, alias.name) for alias in node.names}
        imports |= new
        used |= {module for module, _ in new.values()}
    return _Module(tree, imports, used)


def _home(module: str, name: str) -> tuple[str, str]:
    """Where a name that is imported from a module lies: in this module, or in a module of the package."""
    if _module_file(f"{module}.{name}"):
        return f"{module}.{name}", ""
    owner = _lazy_modules(module).get(name)
    return (f"{module}.{owner}" if owner else module), name


def _closure(*roots: str) -> dict[str, str]:
    """Hashes of the code of all modules that the roots reach, by the names of the modules."""
    seen: dict[str, str] = {}
    for root in roots:
        todo = [root]
        while todo:
            name = todo.pop()
            if name not in seen:
                module = _module(name)
                seen[name] = hashlib.sha256(ast.dump(module.tree).encode()).hexdigest()
                todo += [of for of in module.used if _is_ours(of, root.partition(".")[0])]
    return seen


@cache
def code_fingerprint(*roots: str) -> str:
    """Sixteen hexadecimal digits of SHA-256 over all modules that the roots, which are modules, reach."""
    seen = _closure(*roots)
    text = "\n".join(f"{name}: {seen[name]}" for name in sorted(seen))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _class_of(path: str) -> tuple[str, ast.ClassDef]:
    """The class ``package.module.Class``, and the module that defines it, found through imports of imports."""
    first, _, name = path.rpartition(".")
    module, seen = first, set()
    while (module, name) not in seen:
        seen.add((module, name))
        found = _module(module)
        for node in found.tree.body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return module, node
        module, name = found.imports.get(name) or _home(module, name)
    classes = [node.name for node in _module(first).tree.body if isinstance(node, ast.ClassDef)]
    defined = ", ".join([*classes, *_lazy_modules(first)]) or "no class"
    raise ClassNotFound(f"module {first!r} does not define {path.rpartition('.')[2]!r}; it defines {defined}")


def class_parameters(path: str) -> set[str] | None:
    """Parameter names of a class: the arguments of its ``__init__``, which may be inherited, or a dataclass's fields.

    None if the source does not show them.
    """
    try:
        module, node = _class_of(path)
    except ClassNotFound:
        return None
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            taken = {argument.arg for argument in [*item.args.args[1:], *item.args.kwonlyargs]}
            return None if item.args.kwarg is not None else taken
    bases = [class_parameters(f"{module}.{base.id}") for base in node.bases if isinstance(base, ast.Name)]
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
    """Fingerprint of all that the module of ``package.module.Class`` reaches; ClassNotFound if there is no class."""
    try:
        return code_fingerprint(_class_of(path)[0])
    except ClassNotFound as error:
        raise ClassNotFound(f"class {path!r}: {error}") from None
