import copy
import os
import re
from datetime import date

import pytest
import yaml

from fairclust.pipeline.config import RULES, ConfigError, load_config, read_yaml, with_user_layer
from small import GENERATED, small_config, small_paper
from toys import inside_of
from working_folder import ROOT


def changed(path, value):
    raw = copy.deepcopy(small_config())
    place = path.split(".")
    inside_of(raw, place)[place[-1]] = value
    return raw


@pytest.mark.parametrize(
    "path, value, message",
    [
        ("run", {"methods": ["m"]}, ": there is nothing to run; name `papers` or `datasets`"),
        ("run.datasets", ["b"], ": there is no 'b'; there are: 'a'"),
        ("run.methods", ["mm"], r": there is no 'mm'; did you mean 'm'\?"),
        ("run.methods", ["m", "m"], ": 'm' occurs more than once"),
        ("run.papers", ["vfc"], ": there is no 'vfc'; there are none"),
        ("run.only", {"methods": ["mm"]}, ".methods: there is no 'mm'"),
        ("run.n_clusters", {"a": [-1]}, ".a.0: .*greater than or equal to 2; found -1"),
        ("run.n_clusters", {"b": [2]}, ": there is no 'b'"),
        ("run.seeds", 10**9, ": .*less than or equal to 10000; found 1000000000"),
        ("run.seeds", [1, 1], ": 1 occurs more than once"),
        ("run.seeds", True, ": .*found the boolean true"),
        ("methods.m.class", "KMeans", ": .*found 'KMeans'"),
        ("methods.m.grid", {"lam": [1, 1.0]}, ".lam: 1.0 occurs more than once"),
        ("methods.m.grid", {"lam": ["50", "1e5"]}, ".lam.0: '50' is a text; write the number without quotes"),
        ("methods.m.grid", {"lam": [0, "ten"]}, ": lam: 'ten' is not a number"),
        ("methods.m.params", {"lam": None}, ": lam: None is not a number"),
        ("methods.m.grid", {"lam": []}, ".lam: expected at least one entry"),
        ("methods.m.params", {"when": date(2020, 1, 1)}, ".when: .*put it in quotes"),
        ("methods.m.params", {"x": float("nan")}, ".x: nan is not a finite number"),
        ("methods.m.params", {"x": 10**400}, ".x: .* is neither number"),
        ("methods.m.settings_of", "mm", ": there is no 'mm'"),
        ("datasets.a.settings", {"z": {}}, ": there is no 'z'"),
        ("datasets.a.n_clusters", "two", ": .*found 'two'"),
        ("datasets.a.scale", "standardise", ": there is no 'standardise'; did you mean 'standardize'"),
        ("datasets.x/y", GENERATED, ""),
        ("papers.Bad-Name", small_paper(), ""),
        *((f"papers.{name}", small_paper(), ": rename the paper") for name in ("fronts", "fit")),
        *(
            ("papers.doe", small_paper(**{of: {"../../x": {}}}), f".{of}.*../../x")
            for of in ("tables", "figures")
        ),
        ("score.metrics", ["dun_index"], ": there is no 'dun_index'; did you mean 'dunn_"),
        ("report.formats", ["pgn"], ".0: .*'png'.*found 'pgn'"),
        ("report.fronts", ["balanse"], ": there is no 'balanse'; did you mean 'balance'"),
        *(
            ("results", place, ": .* cannot be the folder of results")
            for place in ("a\0b", "a{b}c", "~/r", ".")
        ),
        ("limits.cell_seconds", float("inf"), ": .*finite number; found inf"),
        ("catalogues", ["nowhere"], ": there is no folder or file 'nowhere'"),
        ("catalogues", [1], r": expected a list of folders; found \[1\]"),
    ],
)
def test_errors_name_the_key_and_the_fix(path, value, message):
    with pytest.raises(ConfigError, match=path + message):
        load_config(changed(path, value))


def test_no_paper_is_called_like_a_rule():
    rules = "".join(path.read_text() for path in [ROOT / "Snakefile", *ROOT.glob("workflow/**/*.smk")])
    assert {"all", *re.findall(r"^(?:use rule \w+ as|rule) (\w+)", rules, re.M)} == RULES


def test_the_file_of_a_catalogue_is_named_unless_the_users_own_has_the_key(tmp_path):
    folder = write(tmp_path, "m.yaml", {"methods": {"m": {"class": "p.M", "ours": "x"}}})
    raw = small_config(catalogues=[folder])
    del raw["methods"]
    user = {"methods": {"m": {"grid": {"lam": ["y"]}}}}
    with pytest.raises(ConfigError) as caught:
        load_config({**raw, **user}, user=user)
    lines = sorted(str(caught.value).splitlines()[1:])
    assert "m.yaml" not in lines[0] and lines[1].endswith("m.yaml)")


# Layers


SHIPPED = {"papers": ["vfc"], "only": {}, "seeds": 3}


@pytest.mark.parametrize(
    "mine, expected",
    [
        ({}, SHIPPED),
        ({"seeds": 1}, SHIPPED | {"seeds": 1}),
        ({"datasets": ["a"]}, {"datasets": ["a"], "only": {}, "seeds": 3}),
        ({"papers": ["fmc"]}, SHIPPED | {"papers": ["fmc"]}),
        ({"papers": ["fmc"], "datasets": ["a"]}, SHIPPED | {"papers": ["fmc"], "datasets": ["a"]}),
    ],
)
def test_the_selection_of_a_users_file_replaces_the_shipped_one(mine, expected):
    assert with_user_layer({"run": {**SHIPPED, **mine}}, {"run": mine})["run"] == expected


def write(folder, name, content):
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(yaml.safe_dump(content))
    return str(path.parent)


def test_catalogues_are_merged_and_a_users_keys_override_them(tmp_path):
    methods = write(
        tmp_path, "methods/one.yaml", {"x-shared": 1, "methods": {"m": small_config()["methods"]["m"]}}
    )
    write(tmp_path, "methods/two.yaml", {"methods": {"n": {"class": "p.N", "grid": {"lam": [1, 2]}}}})
    datasets = write(tmp_path, "datasets/a.yaml", {"datasets": {"a": GENERATED}})
    raw = {
        "catalogues": [methods, datasets],
        "run": {"datasets": ["a"], "methods": ["n"]},
        "methods": {"n": {"grid": {"lam": [5]}}},
    }
    config = load_config(raw)
    assert set(config.methods) == {"m", "n"}
    assert config.methods["n"].class_ == "p.N"
    assert config.methods["n"].grid == {"lam": [5]}


def test_an_entry_that_is_defined_twice_names_both_files(tmp_path):
    folder = write(tmp_path, "one.yaml", {"datasets": {"a": GENERATED}})
    write(tmp_path, "two.yaml", {"datasets": {"a": GENERATED}})
    with pytest.raises(ConfigError, match=r"datasets\.a is defined in .*one\.yaml and in .*two\.yaml"):
        load_config(small_config(catalogues=[folder]))
    # The same folder named twice is one folder.
    (tmp_path / "two.yaml").unlink()
    load_config(small_config(catalogues=[folder, folder]))


@pytest.mark.parametrize(
    "text, message",
    [
        ("datsets: {}", r"datsets: expected names and entries of sources, datasets, methods, papers"),
        ("datasets: [a]", r"datasets: expected names and entries"),
        (
            "methods: {x: {class: p.M, jobs: {threads: 0}}}",
            r"x\.jobs\.threads: .*; found 0 \(see .*bad\.yaml",
        ),
        ("- a", r"expected keys and values; found \['a'\]"),
        ("a:\n  b: [1,\nc: 2", r"line 3: .*Fix: correct this line"),
        ("a: " + "[" * 10_000, r"nested too deeply"),
        ("a: \xff".encode("latin-1"), r"cannot be read"),
        ("datasets:\n  a: {}\n  a: {}", r"line 3: found duplicate key \"a\""),
        ("datasets: {a: &a {truth: *a}}", r"datasets\.a\.truth: Input should be a valid integer"),
        ("a: !!python/object:os.system x", r"line 1: could not determine a constructor for the tag"),
    ],
)
def test_a_broken_catalogue_is_named(tmp_path, text, message):
    (tmp_path / "bad.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=message if "bad" in message else rf"bad\.yaml(?s:.*){message}"):
        load_config(small_config(catalogues=[str(tmp_path)]))


def test_only_files_are_read_and_may_be_empty(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")  # reading it would wait for ever
    with pytest.raises(ConfigError, match=r"pipe\.yaml cannot be read: it is not a regular file"):
        load_config(small_config(catalogues=[str(tmp_path)]))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_yaml(tmp_path / "none.yaml")
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    assert read_yaml(tmp_path / "empty.yaml") == {}


def test_catalogues_are_yaml_1_2(tmp_path):
    (tmp_path / "m.yaml").write_text(
        "x-a: &a {class: p.M, family: no}\n"
        "methods: {m: {<<: *a, grid: {lam: [010, 1e5, 2, 1.0e+6]}, params: {name: k2, at: 1:30}}}"
    )
    raw = {"catalogues": [str(tmp_path)], "datasets": {"a": GENERATED}, "run": small_config()["run"]}
    method = load_config(raw).methods["m"]
    assert method.grid == {"lam": [10, 1e5, 2, 1e6]}
    assert method.params == {"name": "k2", "at": "1:30"}
    assert method.family == "no" and method.class_ == "p.M"


def test_the_reported_values_of_a_paper_lie_beside_it(tmp_path):
    folder = write(
        tmp_path / "more",
        "doe.yaml",
        {"papers": {"doe": small_paper(), "roe": small_paper(reported="x.csv")}},
    )
    raw = small_config(run={"papers": ["doe"]}, catalogues=[folder])
    config = load_config(raw)
    assert config.papers["doe"].reported == f"{folder}/doe.csv"
    assert config.papers["roe"].reported == f"{folder}/x.csv"
    assert load_config({**raw, "run": config.run.model_dump(exclude_unset=True)}) == config


def test_an_unknown_key_may_be_called_like_a_type():
    with pytest.raises(ConfigError, match="str: no such key"):
        load_config({"str": None})
