"""The navigation, links, executed examples and reference of the site. `make docs` builds the complete site."""

import importlib.util
from types import SimpleNamespace

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


@pytest.mark.parametrize(
    "origin, uri, text, expected",
    [
        ("docs/prices.md", "prices.md", "[a](variational.md)", "[a](variational.md)"),
        ("docs/needs/share.md", "needs/share.md", "[a](../prices.md#x)", "[a](../prices.md#x)"),
        ("config/README.md", "configuration.md", "[a](../docs/prices.md)", "[a](prices.md)"),
        ("docs/needs/share.md", "needs/share.md", "[a](../../CONTRIBUTING.md)", "[a](../contributing.md)"),
        ("docs/prices.md", "prices.md", "![p](picture.png)", "![p](picture.png)"),
        # The first page links to a file that is not in the site. The other texts contain no link to a file.
        ("docs/prices.md", "prices.md", "[a](../src/x.py)", "a"),
        (
            "docs/prices.md",
            "prices.md",
            "`a[0](b)` [x](https://y.org) [z](#z)",
            "`a[0](b)` [x](https://y.org) [z](#z)",
        ),
        ("docs/prices.md", "prices.md", "```python\na[0](b)\n```", "```python\na[0](b)\n```"),
    ],
)
def test_links_of_the_repository_lead_to_pages(hooks, origin, uri, text, expected):
    there = {"prices.md", "variational.md", "contributing.md", "picture.png"}
    files = SimpleNamespace(get_file_from_path=lambda path: path if path in there else None)
    page = SimpleNamespace(file=SimpleNamespace(src_uri=uri))
    assert hooks.OUTSIDE.get(uri, f"docs/{uri}") == origin
    assert hooks.on_page_markdown(text, page, None, files) == expected


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
