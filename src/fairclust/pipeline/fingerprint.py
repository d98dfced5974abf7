"""Fingerprints of source code. A cell depends on them as it depends on its parameters and data.

A method's fingerprint covers the module that defines it and every module that this one imports, directly or
indirectly, from its own top-level package, from fairclust or from the working folder. Comments, docstrings, layout
and other methods do not count.
"""

from __future__ import annotations

import ast
import hashlib
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
        at = place.joinpath(*rest)
        for file in (at / "__init__.py", at.with_suffix(".py")):
            if file.is_file() and (rest or file.name == "__init__.py"):
                return file
    return Path(spec.origin) if not rest and spec.origin and spec.origin.endswith(".py") else None


def _strip_docstrings(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
        ):
            node.body = body[1:] or [ast.Pass()]
    return tree


@cache
def _tree(file: Path) -> ast.AST:
    try:
        return _strip_docstrings(ast.parse(file.read_bytes()))
    except SyntaxError as error:
        raise ClassNotFound(f"{file}, line {error.lineno}: {error.msg}") from None


@cache
def _is_ours(module: str, top: str) -> bool:
    """Whether a change of `module` counts as a change of the methods in the top-level package `top`."""
    own = module.partition(".")[0]
    if own in {top, "fairclust"}:
        return True
    if own in sys.stdlib_module_names or own in sys.builtin_module_names:
        return False
    file = _module_file(own)
    return file is not None and file.is_relative_to(Path.cwd()) and "site-packages" not in file.parts


def _lazy_homes(file: Path) -> dict[str, str]:
    """The table ``_HOMES`` of a package that imports its members when they are first used."""
    for node in ast.iter_child_nodes(_tree(file)):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_HOMES":
            pairs = (
                zip(node.value.keys, node.value.values, strict=True)
                if isinstance(node.value, ast.Dict)
                else ()
            )
            # Entries that are unpacked from another mapping have no key.
            return {ast.literal_eval(key): ast.literal_eval(value) for key, value in pairs if key is not None}
    return {}


def _imports(module: str, file: Path) -> set[str]:
    """The modules that a module's source imports, as far as they count for its fingerprint (see `_is_ours`)."""
    top = module.partition(".")[0]
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    found = set()
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parent, *([base] if base else [])])
            if not _is_ours(base, top):
                continue
            package_file = _module_file(base)
            homes = _lazy_homes(package_file) if package_file else {}
            for alias in node.names:
                submodule = f"{base}.{homes.get(alias.name, alias.name)}"
                found.add(submodule if _module_file(submodule) else base)
    return {name for name in found if _is_ours(name, top) and _module_file(name)}


@cache
def _read_module(name: str) -> tuple[str, frozenset[str]]:
    """Hash of a module's syntax tree, and the modules that `_imports` finds in it."""
    file = _module_file(name)
    if file is None:
        raise ClassNotFound(f"there is no Python module {name!r}")
    text = ast.dump(_tree(file))
    return hashlib.sha256(text.encode()).hexdigest(), frozenset(_imports(name, file))


def module_closure(*modules: str) -> dict[str, str]:
    """Hashes of the syntax trees of modules and of the modules that they import, directly or indirectly.

    Parameters
    ----------
    *modules : str
        Dotted names, importable.

    Returns
    -------
    dict of module name to hash
    """
    seen: dict[str, str] = {}
    todo = list(modules)
    while todo:
        name = todo.pop()
        if name not in seen:
            seen[name], imported = _read_module(name)
            todo += imported
    return seen


@cache
def module_fingerprint(*modules: str) -> str:
    """Sixteen hexadecimal digits of SHA-256 over the `module_closure`."""
    seen = module_closure(*modules)
    text = "\n".join(f"{name}: {seen[name]}" for name in sorted(seen))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def file_fingerprint(*modules: str) -> str:
    """Fingerprint of modules alone, without what they import."""
    texts = []
    for module in modules:
        file = _module_file(module)
        assert file is not None, module
        texts.append(ast.dump(_tree(file)))
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def class_parameters(path: str) -> set[str] | None:
    """Parameter names of a class's ``__init__``, which may be inherited; None if the source does not show them."""
    module, _, name = path.rpartition(".")
    file = _module_file(module)
    if file is None:
        return None
    # Where each name at the top of the module comes from.
    homes = {node.name: node for node in ast.iter_child_nodes(_tree(file)) if isinstance(node, ast.ClassDef)}
    imported = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.iter_child_nodes(_tree(file))
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        for alias in node.names
    }
    if name not in homes:
        return None
    for item in homes[name].body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            taken = {a.arg for a in [*item.args.args[1:], *item.args.kwonlyargs]}
            return None if item.args.kwarg is not None else taken
    for base in homes[name].bases:
        if isinstance(base, ast.Name) and base.id != name:
            own = f"{module}.{base.id}" if base.id in homes else imported.get(base.id)
            found = class_parameters(own) if own is not None else None
            if found is not None:
                return found
    return None


def class_fingerprint(path: str) -> str:
    """Fingerprint of the module that defines a class.

    Parameters
    ----------
    path : str
        ``package.module.Class``; the module must define the class itself.

    Returns
    -------
    str

    Raises
    ------
    ClassNotFound
        The module does not exist or does not define the class. The message names the classes that it defines.
    """
    module, _, name = path.rpartition(".")
    file = _module_file(module)
    if file is None:
        raise ClassNotFound(f"class {path!r}: there is no Python module {module!r}")
    classes = [node.name for node in ast.iter_child_nodes(_tree(file)) if isinstance(node, ast.ClassDef)]
    if name not in classes:
        defined = ", ".join(classes) or "no class"
        raise ClassNotFound(
            f"class {path!r}: module {module!r} does not define {name!r}; it defines {defined}"
        )
    return module_fingerprint(module)
