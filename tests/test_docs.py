"""Every Python example of the documentation runs, and what the README promises is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from fairclust.bench.config import load_config
from fairclust.bench.fingerprint import class_fingerprint

from fairclust.cli.status import _laid_over

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = ["README.md", *(f"docs/{page.name}" for page in DOCS if "```python" in page.read_text())]


def blocks(root, page, language):
    return re.findall(rf"```{language}\n(.*?)```", (root / page).read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_python_examples_run(root, page, tmp_path):
    code = blocks(root, page, "python")
    assert code
    for number, text in enumerate(code):
        script = tmp_path / f"example{number}.py"
        script.write_text(text)
        done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_every_method_has_a_row_in_the_readme_and_an_example(root):
    from fairclust.methods import __all__ as methods

    readme = (root / "README.md").read_text()
    rows = [line for line in readme.splitlines() if line.startswith("| [")]
    examples = {page: "".join(blocks(root, page, "python")) for page in PAGES}
    for name in methods:
        pages = re.findall(r"\]\(([^)]+)\)", next(row for row in rows if f"`{name}`" in row))
        # The relatives of a method that share its page are used alike.
        assert any(name in (root / page).read_text() for page in pages), name
        assert any(examples.get(page) for page in pages), name


def test_every_benchmark_is_listed(root):
    listed = (root / "benchmarks/README.md").read_text()
    for script in (root / "benchmarks").glob("*.py"):
        assert f"`{script.name}`" in listed


def test_yaml_examples_are_valid(root, tmp_path, monkeypatch):
    raw = yaml.safe_load((root / "config/config.yaml").read_text())
    most = {"datasets:": 8, "methods:": 4}
    for text in blocks(root, "README.md", "yaml"):
        first, *lines = text.strip().splitlines()
        assert len(lines) <= most.get(first, 6)
        raw = _laid_over(raw, yaml.safe_load(text))
    assert set(load_config(raw).run.datasets) == {"people"}
    python = next(text for text in blocks(root, "README.md", "python") if "class Stripes" in text)
    (tmp_path / "my_methods").mkdir()
    (tmp_path / "my_methods/stripes.py").write_text(python)
    monkeypatch.syspath_prepend(tmp_path)
    class_fingerprint(raw["methods"]["stripes"]["class"])


def test_links_lead_somewhere(root):
    for page in [*root.glob("*.md"), *root.glob("docs/*.md"), root / "config/README.md"]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_tests_named_in_the_table_of_faults_are_there(root):
    text = (root / "docs/reliability.md").read_text()
    named = set(re.findall(r"\btest_\w+(?!\w|\.py|/)", text))
    there = {
        name
        for file in (root / "tests").rglob("test_*.py")
        for name in [file.stem, *re.findall(r"^def (test_\w+)", file.read_text(), flags=re.M)]
    }
    assert len(named) > 20
    assert named <= there


def test_every_table_and_figure_is_documented(root):
    from fairclust.report.catalogue import FIGURES, TABLES

    text = (root / "config/README.md").read_text()
    for name in (*TABLES, *FIGURES):
        assert f"`{name}`" in text
