"""Everything wrong about a paper is found before any job."""

import copy
from functools import cache

import pytest
import yaml

from fairclust.pipeline.config import ConfigError, load_config, read_yaml
from fairclust.report.paper_checks import paper_problems
from small import CONFIG, shipped_sections
from toys import inside_of


@cache
def shipped():
    """Return the shipped configuration with the catalogues in it, and the two papers that name each other."""
    raw, sections = shipped_sections()
    return {**raw, **sections, "papers": {name: sections["papers"][name] for name in ("fmc", "vfc")}}


def test_the_shipped_papers_have_no_problems(catalogue):
    assert paper_problems(catalogue) == []


@pytest.fixture
def paper(tmp_path):
    """Return a copy of a shipped paper, and a function that writes it, changed, and returns its problems."""
    spec = read_yaml(CONFIG / "papers/vfc.yaml")["papers"]["vfc"]
    for kind in ("", "_programs"):
        text = (CONFIG / f"papers/vfc{kind}.csv").read_text()
        (tmp_path / f"mine{kind}.csv").write_text(text)

    def problems(change, lines=lambda text: text, file="mine.csv"):
        mine = copy.deepcopy(spec)
        change(mine)
        (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"papers": {"mine": mine}}))
        (tmp_path / file).write_text(lines((tmp_path / file).read_text()))
        raw = copy.deepcopy(shipped())
        changes = {"catalogues": [*raw.get("catalogues", []), str(tmp_path)]}
        try:
            return paper_problems(load_config({**raw, **changes, "run": {**raw["run"], "papers": ["mine"]}}))
        except ConfigError as error:
            return [line.removeprefix("  - ") for line in str(error).splitlines()[1:]]

    return problems


FRONT = {"plot": "front", "title": "F", "datasets": ["adult"], "y": ["balance"]}
# The place of a wrong value, and what is said of it there.
DAMAGE = [
    ("tables.table2.match.fairness", "fairness_eror", ""),
    ("tables.table2.match.order", "sze", ""),
    ("tables.table2.own", "vfc_kmean", ""),
    ("tables.table2.control", "kmean", ""),
    ("tables.table2.beside", ["balanse"], ""),
    ("tables.table2.settings", {"vfc_kmeanz": {}}, ""),
    ("tables.table2.variants", {"vfc_kmeanz": ["kmeans"]}, ""),
    ("tables.table2.number", "99", ": "),
    ("tables.table2.settings", {"vfc_kmeans": {"lamm": 1}}, ".vfc_kmeans: there is no parameter 'lamm'; did"),
    *(
        ("tables.table2.layout", {"rows": {"A": row}, "columns": [{"B": column}]}, said)
        for row, column, said in (
            ({"dataset": "adlt"}, {}, ": there is no dataset 'adlt'; did you mean 'adult'"),
            ({"C": {"method": "vfc_kmeanz"}}, {}, ": there is no method"),
            ({}, {"metric": "ssee"}, ": there is no metric"),
            ({}, {"metric": "sse", "form": "{} {}"}, ".columns.0.B: form: "),
        )
    ),
    ("tables.table2.reasons", [{"method": "vfc_kmeanz", "reason": "none"}], ".0.method"),
    ("figures.fig1_kmeans.plot", "frond", ""),
    ("figures.f", FRONT | {"x": "ssee"}, ": there is no 'ssee'"),
    ("figures.f", FRONT | {"x": "sse", "y": ["balanse"]}, ": there is no 'balanse'"),
    ("figures.f", FRONT, ": x: the plot"),
    ("figures.f", FRONT | {"x": "sse", "y": ["sse"]}, ": y: 'sse' is"),
    ("claims.plateau.check", "reches", ""),
    ("claims.plateau.options", {"levle": 1}, ""),
    ("cells_of", ["fcm"], ""),
]


@pytest.mark.parametrize("place, value, said", DAMAGE)
def test_every_damaged_field_of_a_paper_is_found(paper, place, value, said):
    at = place.split(".")
    problems = paper(lambda spec: inside_of(spec, at).update({at[-1]: value}))
    assert problems and all(line.startswith("papers.mine.") for line in problems)
    assert any(f"papers.mine.{place}{said}" in line for line in problems), problems


def test_a_sweep_that_no_experiment_has_is_found(paper):
    (problem,) = paper(lambda spec: spec["figures"]["fig3_kmeans"].update(sweep="figure33"))
    assert problem.startswith("papers.mine.figures.fig3_kmeans.sweep: no experiment has 'figure33'; did you")


@pytest.mark.parametrize("place", ["tables.table2.match.table", "figures.fig1_kmeans.table"])
def test_a_table_that_the_paper_does_not_have_is_found(paper, place):
    at = place.split(".")
    (problem,) = paper(lambda spec: inside_of(spec, at).update({at[-1]: "99"}))
    assert problem.startswith(f"papers.mine: {place}: there is no '99'; there are: '2', '3', '4'")


@pytest.mark.parametrize(
    "file, old, new, message",
    [
        ("mine.csv", "table,dataset", "table,data set", "lacks the columns"),
        ("mine.csv", ",adult,", ",adlt,", "there is no dataset 'adlt'; did you mean 'adult'?"),
        ("mine.csv", ",vfc_kmeans,", ",vfc_kmean,", "there is no method 'vfc_kmean'; did you mean"),
        ("mine_programs.csv", ",sse,", ",ssee,", "unknown metric"),
    ],
)
def test_every_damaged_line_is_found(paper, file, old, new, message):
    problems = paper(lambda _: None, lambda text: text.replace(old, new, 3), file)
    assert len(problems) == 1 and file in problems[0] and message in problems[0], problems
