"""Any YAML gives a plan or an error that names keys; never anything else."""

import copy
from datetime import date, datetime
from functools import cache
from pathlib import Path

import pytest
import yaml
from fairclust.bench.config import ConfigError, load_config
from fairclust.plan import Plan
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
SETTINGS = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])


@cache
def shipped():
    """The shipped configuration, cut down to what a plan needs a moment for."""
    raw = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    raw["run"] = {"datasets": ["synthetic", "adult"], "methods": ["kmeans", "vfc_kmeans"], "seeds": 2}
    raw["methods"] = {name: raw["methods"][name] for name in ("kmeans", "vfc_kmeans")}
    raw["methods"]["vfc_kmeans"]["per_dataset"] = {"adult": {"grid": {"lam": [1, 2]}}}
    raw["datasets"] = {name: raw["datasets"][name] for name in ("synthetic", "adult", "bank_3")}
    raw["sources"] = {name: raw["sources"][name] for name in ("adult", "bank_marketing")}
    return raw


def places(raw, at=()):
    """Every place of the configuration, as a tuple of keys and positions."""
    pairs = raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    for key, value in pairs:
        yield (*at, key)
        yield from places(value, (*at, key))


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
    inside = raw
    for key in place[:-1]:
        inside = inside[key]
    if how == "replace":
        inside[place[-1]] = value
    elif how == "remove":
        del inside[place[-1]]
    elif isinstance(inside, dict):
        inside[value if isinstance(value, str) else f"{place[-1]}x"] = inside.pop(place[-1])
    return raw


def plan_or_error(raw):
    """The message of the ConfigError, or '' if there is none."""
    try:
        Plan(load_config(raw)).targets()
    except ConfigError as error:
        return str(error)
    return ""


@SETTINGS
@given(st.sampled_from(PLACES), st.sampled_from(["replace", "remove", "rename"]), values)
@example(("methods", "kmeans", "class"), "replace", "os.path")
@example(("methods", "kmeans", "class"), "replace", "this.that")
@example(("methods", "kmeans", "class"), "replace", "os.nope.Class")
@example(("datasets", "synthetic", "generator"), "replace", "os:nope")
@example(("results",), "replace", "\0")
def test_one_change_anywhere(place, how, value):
    message = plan_or_error(changed(place, how, value))
    assert "Traceback" not in message
    assert "pydantic" not in message.lower()


def is_checked(place):
    """Whether a key is one of several; columns, groups and entries that are not in use have any name."""
    catalogue = len(place) == 2 and place[0] in {"sources", "datasets", "methods"}
    free = catalogue or {"drop_rows", "groups", "per_dataset", "mirror"} & set(place)
    return isinstance(place[-1], str) and len(place[-1]) > 3 and not free


@pytest.mark.parametrize("place", list(filter(is_checked, PLACES)), ids=str)
def test_a_mistyped_key_is_named_with_the_nearest_valid_one(place):
    wrong = place[-1][:-1] + place[-1][-1] * 2
    message = plan_or_error(changed(place, "rename", wrong))
    assert (
        f"{wrong!r}; nearest: {place[-1]!r}" in message
        or f"did you mean {place[-1]!r}?" in message
        or (f"did you mean {wrong!r}?" in message)
    )


@SETTINGS
@given(values)
@example([])
@example("text")
@example(None)
@example({1: 2})
@example({None: {}})
def test_any_document(raw):
    assert "cannot be used" in plan_or_error(raw)


def test_a_package_that_cannot_be_imported(tmp_path, monkeypatch):
    (tmp_path / "broken_package").mkdir()
    (tmp_path / "broken_package/__init__.py").write_text("1 / 0\n")
    (tmp_path / "broken_package/module.py").write_text("class Method: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    message = plan_or_error(
        changed(("methods", "kmeans", "class"), "replace", "broken_package.module.Method")
    )
    assert "methods.kmeans.class" in message
    assert "ZeroDivisionError" in message
