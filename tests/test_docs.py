"""Every example of the documentation works, and everything that the pages name exists."""

import json
import re
from pathlib import Path

import pytest
import yaml

from documentation import PAGES, ROOT, blocks, keys_of
from fairclust.datasets import spec
from fairclust.pipeline import config, papers
from fairclust.pipeline.config import Config, laid_over, load_config
from fairclust.pipeline.plan import Plan
from publish import filled
from toys import write_people

PUBLISHED = ROOT / "docs/results"
METHODS = ROOT / "docs/methods.md"
WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.stem)
def test_python_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_people(tmp_path / "people.csv")
    variables = {"__name__": "example"}
    for text in blocks(page, "python"):
        exec(compile(text, str(page), "exec"), variables)


def test_every_method_has_a_row_and_a_page_with_an_example():
    from fairclust.methods import __all__ as methods

    rows = [line for line in METHODS.read_text().splitlines() if line.startswith("| [")]
    for name in methods:
        row = next(row for row in rows if f"`{name}`" in row)
        pages = [METHODS.parent / target for target in re.findall(r"\]\(([^)]+)\)", row)]
        assert any(page in WITH_PYTHON and name in page.read_text() for page in pages), name


def test_a_data_set_in_nine_lines_and_a_method_in_four():
    """tests/test_docs_commands.py plans a run of both."""
    first, second = blocks("docs/gallery/adding.md", "yaml")
    assert len(first.splitlines()) <= 9 and len(second.splitlines()) <= 4


@pytest.mark.parametrize("page", ["config/README.md", "docs/cluster.md"])
def test_other_yaml_examples_are_valid(page, shipped):
    sections = {*Config.model_fields}
    examples = [found for text in blocks(page, "yaml") if set(found := yaml.safe_load(text)) <= sections]
    assert examples
    for mine in examples:
        load_config(laid_over(shipped, mine), user=mine)


# What the pages name


def test_every_key_in_the_tables_of_the_configuration_exists():
    """Tests in tests/config check the reverse, that every key is explained."""
    tables = re.findall(
        r"^\| key.*?\n\n", (ROOT / "config/README.md").read_text(), flags=re.DOTALL | re.MULTILINE
    )
    rows = [row.split("|")[1] for table in tables for row in table.strip().splitlines()[2:]]
    named = {part for row in rows for key in re.findall(r"`([^`]+)`", row) for part in key.split(".")}
    assert named - keys_of(config, papers, spec) == set()
    assert len(named) > 60


def test_every_benchmark_is_listed():
    listed = (ROOT / "benchmarks/README.md").read_text()
    for script in (ROOT / "benchmarks").glob("*.py"):
        assert f"`{script.name}`" in listed


def anchors(page):
    """Return the names that links use for the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_have_targets(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        name, _, anchor = link.partition("#")
        target = page if not name else (page.parent / name).resolve()
        # If nothing is published, tests/test_published_results.py reports it.
        if "://" in link or (PUBLISHED in target.parents and not PUBLISHED.exists()):
            continue
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_ideas_of_the_core_are_few_and_live_where_the_table_says():
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("## The ideas of the core")[2]
    rows = re.findall(r"^\| .* \| `(\S+\.py)`, `(\w+)` \|$", text.partition("\n## ")[0], flags=re.M)
    assert 15 < len(rows) <= 25
    for file, name in rows:
        assert re.search(
            rf"^(def|class) {name}\b", (ROOT / "src/fairclust" / file).read_text(), flags=re.M
        ), name


def test_tests_named_in_the_table_of_faults_exist():
    text = (ROOT / "docs/reliability.md").read_text()
    named = set(re.findall(r"\btest_\w+(?!\w|\.py|/)", text))
    there = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in [file.stem, *re.findall(r"^def (test_\w+)", file.read_text(), flags=re.M)]
    }
    assert len(named) > 20
    assert sorted(named - there) == []


# The numbers of the published run


def test_the_numbers_in_readme_come_from_the_published_run(shipped, monkeypatch):
    if not PUBLISHED.exists():
        pytest.skip("no results are published; tests/test_published_results.py says so")
    monkeypatch.chdir(ROOT)
    origin = json.loads((PUBLISHED / "provenance.json").read_text())
    run = Path("docs/results"), Path("docs/results"), origin, Plan(load_config(shipped))
    assert filled(Path("README.md"), *run) == Path("README.md").read_text()
