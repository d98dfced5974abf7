"""Any YAML gives either a plan or an error that names keys."""

import copy
from datetime import date, datetime
from functools import cache

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from documentation import example_paper
from fairclust.pipeline.config import ConfigError, load_config
from fairclust.pipeline.plan import Plan
from small import CONFIG, shipped_sections
from toys import inside_of, places

SETTINGS = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


@cache
def shipped():
    """Return a small part of the shipped configuration, whose plan is made quickly."""
    raw, sections = shipped_sections()
    methods = "kmeans", "vfc_kmeans", "price_kmeans"
    datasets = "synthetic", "toy_blobs", "adult", "bank_3"
    raw["methods"] = {name: sections["methods"][name] for name in methods}
    raw["datasets"] = {name: {**sections["datasets"][name], "settings": {}} for name in datasets}
    raw["datasets"]["adult"]["settings"] = {"vfc_kmeans": {"grid": {"lam": [1, 2]}}}
    raw["sources"] = {name: sections["sources"][name] for name in ("adult", "bank_marketing")}
    run = {"papers": ["doe"], "datasets": ["synthetic", "adult"], "methods": list(methods), "seeds": 2}
    raw["run"] = {**run, "only": {"datasets": ["synthetic"]}, "n_clusters": {"adult": [5, 10]}}
    raw["papers"] = yaml.safe_load(example_paper()[0])["papers"]
    raw["papers"]["doe"]["reported"] = str(CONFIG / "papers/vfc.csv")
    return raw


PLACES = sorted(places(shipped()), key=str)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["", "x", "..", "/", "../x", "a.b.c", "yes", "1e3", date(2020, 1, 1), b"x", datetime.max]
    )
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(scalars, inner, max_size=3),
    max_leaves=6,
)


def changed(place, how, value):
    raw = copy.deepcopy(shipped())
    inside = inside_of(raw, place)
    if how == "replace":
        inside[place[-1]] = value
    elif how == "remove":
        del inside[place[-1]]
    elif isinstance(inside, dict):
        inside[value if isinstance(value, str) else f"{place[-1]}x"] = inside.pop(place[-1])
    return raw


def plan_or_error(raw):
    """Make the plan, and return the message of the ConfigError, or '' if there is none."""
    try:
        plan = Plan(load_config(raw))
        plan.check()
        plan.targets()
        for fit in plan.fits.values():
            plan.metrics(fit)
    except ConfigError as error:
        return str(error)
    return ""


@SETTINGS
@given(st.sampled_from(PLACES), st.sampled_from(["replace", "remove", "rename"]), values)
@example(("methods", "kmeans", "class"), "replace", "os.path")
@example(("methods", "kmeans", "class"), "replace", "this.that")
@example(("methods", "kmeans", "class"), "replace", "os.nope.Class")
@example(("datasets", "synthetic", "generator"), "replace", "os.nope")
@example(("results",), "replace", "\0")
@example(("papers", "doe", "reported"), "replace", "\0")
@example(("papers", "doe", "reported"), "replace", "/")
@example(("papers", "doe", "reported"), "replace", str(CONFIG / "config.yaml"))
def test_one_change_anywhere(place, how, value):
    message = plan_or_error(changed(place, how, value))
    assert "pydantic" not in message.lower()


def is_checked(place):
    """Whether only certain keys are valid here. Columns, groups, headings and unused entries can have any name."""
    sections = {"sources", "datasets", "methods", "papers"}
    entry = len(place) == 2 and place[0] in sections
    named = len(place) == 4 and place[2] in {"tables", "figures", "claims"}
    heading = place[-2:-1] == ("rows",) or place[-3:-2] == ("columns",)
    free = {"drop_rows", "groups", "settings", "mirror", "options", "only"} & set(place[:-1])
    return isinstance(place[-1], str) and len(place[-1]) > 3 and not (entry or named or heading or free)


CHECKED = list(filter(is_checked, PLACES))


@pytest.mark.parametrize("place", CHECKED, ids=str)
def test_a_mistyped_key_is_named_with_the_nearest_valid_one(place):
    wrong = place[-1][:-1] + place[-1][-1] * 2
    message = plan_or_error(changed(place, "rename", wrong))
    assert f"did you mean {place[-1]!r}?" in message or f"did you mean {wrong!r}?" in message
