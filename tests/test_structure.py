"""Rules of the source tree: imports point downward, methods and rules have files of their own."""

import ast
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

    homes = {name: home for name, (home, *_) in methods._MODULE_OF.items()}
    assert len(set(homes.values())) == len(methods.__all__)
    for name, home in homes.items():
        assert getattr(methods, name).__module__ == f"fairclust.methods.{home}"
    # A file beside the folders of the families is a method.
    files = {p.stem for p in (root / "src/fairclust/methods").glob("[!_]*.py")}
    assert files == {home for home in homes.values() if "." not in home}


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
