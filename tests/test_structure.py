"""Rules of the source tree: imports point downward, methods and rules have files of their own, docstrings are short."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path


def test_imports_point_downward(root):
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([tool, "--no-cache"], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_every_method_has_a_file_of_its_own(root):
    import fairclust.methods as methods

    homes = {name: home for name, (home, *_) in methods._HOMES.items()}
    assert len(set(homes.values())) == len(methods.__all__)
    for name, home in homes.items():
        assert getattr(methods, name).__module__ == f"fairclust.methods.{home}"
    # A file beside the folders of the families is a method.
    files = {p.stem for p in (root / "src/fairclust/methods").glob("[!_]*.py")}
    assert files == {home for home in homes.values() if "." not in home}


PUBLIC_MODULES = ("", ".chunks", ".datasets", ".methods", ".metrics", ".plot", ".tables")


def public_definitions():
    """The module and the qualified name of everything exported, and of the classes that it derives from."""
    for name in PUBLIC_MODULES:
        module = importlib.import_module(f"fairclust{name}")
        for exported in module.__all__:
            member = getattr(module, exported)
            for part in inspect.getmro(member) if inspect.isclass(member) else [member]:
                if hasattr(part, "__qualname__"):
                    yield part.__module__, part.__qualname__


def documented(node, module, public, prefix="", in_public_class=False):
    """Yield the qualified name, whether it is public, and the docstring of every definition below a node."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from documented(child, module, public, prefix, in_public_class)
            continue
        name = prefix + child.name
        is_public = (module, name) in public
        if in_public_class and (not child.name.startswith("_") or child.name == "__call__"):
            is_public = True
        yield name, is_public, ast.get_docstring(child) or ""
        within = is_public and isinstance(child, ast.ClassDef)
        yield from documented(child, module, public, f"{name}.", within)


def test_docstrings_of_private_helpers_have_at_most_four_lines(root):
    public = set(public_definitions())
    long = []
    for file in sorted((root / "src/fairclust").rglob("*.py")):
        place = file.relative_to(root / "src").with_suffix("").parts
        module = ".".join(place).removesuffix(".__init__")
        for name, is_public, doc in documented(ast.parse(file.read_text(encoding="utf-8")), module, public):
            n_lines = sum(bool(line.strip()) for line in doc.splitlines())
            if not is_public and n_lines > 4:
                long.append(f"{module}.{name}: {n_lines} lines")
    assert not long, "only exported names have longer docstrings:\n" + "\n".join(long)


def test_every_rule_with_outputs_has_a_short_script_of_its_own(root):
    rules = {}
    for file in sorted((root / "workflow/rules").glob("*.smk")):
        text = file.read_text()
        assert "function=" not in text
        for name, body in re.findall(r"^(?:use rule \w+ as|rule) (\w+)(.*?)(?=^\S|\Z)", text, re.M | re.S):
            rules[name] = re.findall(r'script:\s*"\.\./scripts/(\w+)\.py"', body)
    scripts = {path.stem for path in (root / "workflow/scripts").glob("*.py")}
    own = {name: found[0] for name, found in rules.items() if found}
    assert set(own.values()) == scripts and all(name == script for name, script in own.items())
    # `prepare_unscaled` is `prepare_dataset` with other parameters; the others are only names of targets.
    assert {name for name, found in rules.items() if not found} == {"prepare_unscaled", "tables", "figures"}
    for path in (root / "workflow/scripts").glob("*.py"):
        lines = path.read_text().splitlines()
        assert len(lines) <= 30, path.name
        assert ast.get_docstring(ast.parse(path.read_text())), path.name
