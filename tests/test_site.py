"""The navigation, links, executed examples and reference of the site. `make docs` builds the complete site."""

import importlib.util

import pytest
import yaml

import fairclust


@pytest.fixture(scope="module")
def hooks(root):
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("build_site", root / "docs/build_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def listed(nav):
    for entry in nav:
        for target in entry.values() if isinstance(entry, dict) else [entry]:
            if isinstance(target, str):
                yield target
            else:
                yield from listed(target)


def test_every_page_is_in_the_navigation_once(root, hooks):
    found = list(listed(yaml.safe_load((root / "mkdocs.yml").read_text())["nav"]))
    assert len(found) == len(set(found))
    docs = root / "docs"
    written = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    made = {*hooks.OUTSIDE, *hooks.reference_pages(), "cite.md"}
    assert {page for page in written if not page.startswith("results/")} | made <= set(found)
    assert set(found) <= written | made


def test_examples_are_executed(hooks, tmp_path, monkeypatch):
    page = (
        "Text.\n\n```python\nx = 20\n```\n\n```python\nfrom pathlib import Path\nprint(x + 1)\n"
        "Path('a.png').write_bytes(b'picture')\n```\n\n```sh\nhead -n 1 people.csv\n```\n"
    )
    text, pictures = hooks.executed(page, "stem")
    assert "```text\n21\n```" in text and "```text\nage,income,sex,ethnicity\n```" in text
    assert "![What the block above draws](stem-1.png)" in text and pictures == {"stem-1.png": b"picture"}
    with pytest.raises(RuntimeError, match="an example fails:\nfalse"):
        hooks.executed("```sh\nfalse\n```\n", "stem")


def test_the_reference_has_everything_public(hooks):
    pages = hooks.reference_pages()
    described = "".join(pages.values())
    modules = {*fairclust._MODULES}
    for name in set(fairclust.__all__) - modules:
        assert f"heading: {name}\n" in described, name
    for module in ("metrics", "datasets", "tables"):
        for name in getattr(fairclust, module).__all__:
            assert f"heading: {name}\n" in pages[f"api/{module}.md"], name


def test_the_citation_is_bibtex(hooks):
    page = hooks.cite_page()
    assert f"version = {{{fairclust.__version__}}}" in page, "CITATION.cff has another version"
    assert page.count("@") >= 5 and "author = {Ziko, Imtiaz Masud and Yuan, Jing" in page
