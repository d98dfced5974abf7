"""Everything wrong about a paper is found before any job."""

import copy
from functools import cache

import pytest
import yaml

from fairclust.pipeline.config import load_config, read_yaml
from fairclust.report.paper_checks import paper_problems
from small import CONFIG, shipped_sections


@cache
def shipped():
    """Return the shipped configuration with the catalogues in it, and only the paper that the copied one names."""
    raw, sections = shipped_sections()
    return {**raw, **sections, "papers": {"fmc": sections["papers"]["fmc"]}}


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
        return paper_problems(load_config({**raw, **changes, "run": {**raw["run"], "papers": ["mine"]}}))

    return problems


def first(mapping):
    return next(iter(mapping.values()))


def table(spec):
    return next(table for table in spec["tables"].values() if table.get("match"))


def set_at(place, key, value):
    place[key] = value


FRONT = {"plot": "front", "title": "F", "datasets": ["adult"], "y": ["balance"]}
DAMAGE = {
    "match.fairness": lambda p: set_at(table(p)["match"], "fairness", "fairness_eror"),
    "match.order": lambda p: set_at(table(p)["match"], "order", "sze"),
    "match.table": lambda p: set_at(table(p)["match"], "table", "99"),
    ".own": lambda p: set_at(table(p), "own", "vfc_kmean"),
    ".control": lambda p: set_at(table(p), "control", "kmean"),
    ".beside": lambda p: set_at(table(p), "beside", ["balanse"]),
    ".settings": lambda p: set_at(table(p), "settings", {"vfc_kmeanz": {}}),
    ".settings.vfc_kmeans": lambda p: set_at(table(p), "settings", {"vfc_kmeans": {"lamm": 1}}),
    ".variants": lambda p: set_at(table(p), "variants", {"vfc_kmeanz": ["kmeans"]}),
    ".reasons.0.method": lambda p: set_at(table(p), "reasons", [{"method": "vfc_kmeanz", "reason": "none"}]),
    ".plot": lambda p: set_at(first(p["figures"]), "plot", "frond"),
    ".x: there": lambda p: p["figures"].update(f=FRONT | {"x": "ssee"}),
    ".y: there": lambda p: p["figures"].update(f=FRONT | {"x": "sse", "y": ["balanse"]}),
    ".x: the plot": lambda p: p["figures"].update(f=FRONT),
    ".y: 'sse' is": lambda p: p["figures"].update(f=FRONT | {"x": "sse", "y": ["sse"]}),
    ".table": lambda p: set_at(first(p["figures"]), "table", "99"),
    ".check": lambda p: set_at(first(p["claims"]), "check", "reches"),
    ".options": lambda p: set_at(first(p["claims"]), "options", {"levle": 1}),
    "cells_of": lambda p: set_at(p, "cells_of", ["fcm"]),
}


@pytest.mark.parametrize("key", DAMAGE)
def test_every_damaged_field_of_a_paper_is_found(paper, key):
    problems = paper(DAMAGE[key])
    assert problems and all(line.startswith("papers.mine.") for line in problems)
    assert any(key in line for line in problems), problems


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
