import copy
import json
from datetime import date

import pytest
import yaml
from fairclust.bench.config import Config, ConfigError, json_schema, load_config
from hypothesis import given
from hypothesis import strategies as st

from fairclust.methods import _HOMES

BASE = {
    "run": {"datasets": ["a"], "methods": ["m"]},
    "datasets": {
        "a": {"title": "A", "generator": "fairclust.datasets.synthetic:make_synthetic", "n_clusters": 2}
    },
    "methods": {"m": {"class": "fairclust.methods.kmeans.KMeans"}},
}


def changed(path, value):
    raw = copy.deepcopy(BASE)
    place = raw
    for key in path[:-1]:
        place = place.setdefault(key, {})
    place[path[-1]] = value
    return raw


@pytest.mark.parametrize(
    "path, value, message",
    [
        (("run", "datasets"), ["b"], r"run.datasets: there is no 'b' \(known: a\)"),
        (("run", "methods"), ["mm"], r"run.methods: there is no 'mm'; did you mean 'm'\?"),
        (("run", "n_clusters"), {"a": [-1]}, r"run.n_clusters.a.0: .*greater than or equal to 2; found -1"),
        (("run", "n_clusters"), {"a": []}, r"run.n_clusters.a: .*at least 1 item"),
        (("run", "parts"), {"a": 0}, r"run.parts.a: .*greater than or equal to 1"),
        (("run", "methods"), ["m", "m"], r"run.methods: 'm' stands there more than once"),
        (("methods", "m", "seeds"), 0, r"methods.m.seeds: give a number of seeds"),
        (("methods", "m", "grid"), {"lam": []}, r"methods.m.grid.lam: .*at least 1 item"),
        (("methods", "m", "grid"), {"lam": [1, 1.0]}, r"methods.m.grid.lam: 1 stands there more than once"),
        (
            ("methods", "m", "params"),
            {"when": date(2020, 1, 1)},
            r"methods.m.params.when: .*put it in quotes",
        ),
        (("report", "formats"), ["pgn"], r"report.formats.0: .*'png'.*found 'pgn'"),
        (("run", "dataset"), ["a"], r"run.dataset: no such key; did you mean 'datasets'\?"),
        (("run", "seeds"), 0, r"run.seeds: give a number of seeds"),
        (("run", "seeds"), [1, 1], r"run.seeds: 1 stands there more than once"),
        (("resuls",), "x", r"resuls: no such key; did you mean 'results'\?"),
        (("limits", "cell_seconds"), -1, r"limits.cell_seconds: .*greater than 0; found -1"),
        (("methods", "m", "class"), "KMeans", r"methods.m.class: .*found 'KMeans'"),
        (("methods", "m", "gird"), {}, r"methods.m.gird: no such key; did you mean 'grid'\?"),
        (("methods", "m", "per_dataset"), {"z": {}}, r"methods.m.per_dataset: there is no 'z'"),
        (("datasets", "a", "n_clusters"), "two", r"datasets.a.n_clusters: .*found 'two'"),
        (("datasets", "a", "scaling"), "l2", r"datasets.a.scaling: no such key; did you mean 'scale'\?"),
        (("datasets", "x/y"), BASE["datasets"]["a"], r"datasets.x/y"),
    ],
)
def test_errors_name_the_key_and_the_fix(path, value, message):
    with pytest.raises(ConfigError, match=message):
        load_config(changed(path, value))


def test_a_dataset_with_an_unknown_source():
    table = {"title": "A", "source": "adlut", "sensitive": {"column": "sex"}, "n_clusters": 2}
    raw = changed(("datasets", "a"), table)
    raw["sources"] = {"adult": {"path": "adult.csv"}}
    with pytest.raises(ConfigError, match=r"data set 'a' reads the unknown source 'adlut'; nearest: 'adult'"):
        load_config(raw)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = [
    ("run",),
    ("run", "datasets"),
    ("run", "seeds"),
    ("run", "n_clusters"),
    ("run", "parts"),
    ("datasets",),
    ("datasets", "a"),
    ("datasets", "a", "scale"),
    ("datasets", "a", "source"),
    ("methods",),
    ("methods", "m"),
    ("methods", "m", "grid"),
    ("sources",),
    ("limits",),
    ("report",),
    ("mirror",),
]


@given(st.sampled_from(KEYS), json_values)
def test_no_value_anywhere_gives_anything_but_a_config_error(path, value):
    try:
        load_config(changed(path, value))
    except ConfigError as error:
        assert "cannot be used" in str(error)


def test_shipped_configurations_are_valid(root):
    raw = yaml.safe_load((root / "config/config.yaml").read_text())
    full = load_config(raw)
    assert full.run.seed_list
    quick = yaml.safe_load((root / "config/quickstart.yaml").read_text())
    merged = {
        **raw,
        **quick,
        "run": {**raw["run"], **quick["run"]},
        "report": {**raw["report"], **quick["report"]},
    }
    quick_config = load_config(merged)
    assert not any(quick_config.sources_of(name) for name in quick_config.run.datasets)
    in_quickstart = {full.methods[name].class_ for name in quick_config.run.methods}
    registered = {f"fairclust.methods.{home}.{name}" for name, home in _HOMES.items()}
    assert in_quickstart == registered, "the quickstart runs every registered class"
    assert registered == {method.class_ for method in full.methods.values()}


def test_the_schema_in_the_folder_is_the_models(root):
    assert (root / "config/schema.json").read_text() == json_schema(), "run `make schema`"
    assert set(json.loads(json_schema())["properties"]) == set(Config.model_fields)
