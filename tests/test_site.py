"""The navigation, links, executed examples and reference of the site. `make docs` builds the complete site."""

import doctest
import importlib.util
import inspect
import re

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


def public():
    """Return the public names that are no modules, with what they name."""
    modules = fairclust, fairclust.metrics, fairclust.datasets, fairclust.tables
    return {
        name: getattr(module, name)
        for module in modules
        for name in sorted({*module.__all__} - {*fairclust._MODULES})
    }


def public_classes():
    classes = [member for member in public().values() if inspect.isclass(member)]
    return [cls for cls in classes if not issubclass(cls, BaseException)]


def test_the_reference_has_everything_public_and_a_page_for_each_class(hooks):
    pages = hooks.reference_pages()
    classes = public_classes()
    for name, member in public().items():
        (place,) = [page for page, text in pages.items() if f"heading: {name}\n" in text]
        if member in classes:
            assert place == f"api/{name}.md" and pages[place].count(":::") == 1


@pytest.mark.parametrize("name", fairclust.methods.__all__)
def test_signatures_are_full(root, name):
    griffe = pytest.importorskip("griffe")
    assert "            force_inspection: true\n" in (root / "mkdocs.yml").read_text()
    member = getattr(fairclust, name)
    owner = next(cls for cls in member.__mro__ if "__init__" in vars(cls))
    shown = griffe.inspect(owner.__module__)[owner.__name__]
    parameters = {parameter.name: parameter for parameter in shown.parameters}
    assert list(parameters) == ["self", *inspect.signature(member).parameters]
    assert list(parameters)[1] == "n_clusters" and parameters["n_clusters"].default == "8"
    assert {parameters[key].kind.value for key in list(parameters)[2:]} <= {"keyword-only"}
    assert "dataclass" not in shown.labels


@pytest.mark.parametrize(
    "member", [fairclust.profiles, *public_classes()], ids=lambda member: member.__name__
)
def test_every_page_of_the_reference_has_an_example_that_runs(member):
    pytest.importorskip("matplotlib")
    found = doctest.DocTestFinder(recurse=False).find(member, member.__name__)
    (example,) = [one for one in found if one.examples]
    if member.__name__ in fairclust.methods.__all__:
        assert f"{member.__name__}(" in example.docstring.partition("Examples")[2]
    assert doctest.DocTestRunner().run(example).failed == 0


def test_the_drawing_of_the_workflow_has_its_rules(root):
    rules = {
        name
        for file in (root / "workflow/rules").glob("*.smk")
        for name in re.findall(r"^rule (\w+):", file.read_text(), re.MULTILINE)
    }
    drawing = (root / "docs/figures/workflow.svg").read_text()
    drawn = set(re.findall(r'class="t">([^<]*)<', drawing))
    assert {name for name in drawn if not (root / name).is_dir()} <= rules
    # These make all outputs of another rule.
    assert rules - drawn == {"download", "tables", "figures"}


def test_the_citation_is_bibtex(hooks):
    page = hooks.cite_page()
    assert f"version = {{{fairclust.__version__}}}" in page, "CITATION.cff has another version"
    assert page.count("@") >= 5 and "author = {Ziko, Imtiaz Masud and Yuan, Jing" in page
