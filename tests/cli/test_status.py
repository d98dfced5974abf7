"""`fairclust status` in the folder of a run, and before any run."""

import shutil
from pathlib import Path

import commands
import pandas as pd
import pytest
import yaml
from commands import refused, told
from snakemake.cli import parse_config

from fairclust.pipeline.config import user_config
from fairclust.pipeline.fits import Request, fit_grids
from fairclust.pipeline.plan import Plan
from small import small_config, small_paper
from toys import save_points
from working_folder import table_of

CLASS = "fairclust.methods.RandomLabels"
FIRST = "results/fits/a/one.parquet"


def config(seeds=2, methods=("one",)):
    return small_config(
        run={"datasets": ["a"], "methods": list(methods), "seeds": seeds},
        methods={"one": {"class": CLASS}, "two": {"class": CLASS}},
    )


def write(name, raw):
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(yaml.safe_dump(raw))


@pytest.fixture
def again(monkeypatch):
    """Answer for Snakemake: a test adds outputs that it would make again, besides those that are missing."""
    found = set()

    def asked(args):
        plan = Plan(user_config(args.configfile, parse_config(args.config)))
        outputs = [*plan.fit_files(), *(f"{plan.results}/data/prepared/{name}" for name in plan.datasets)]
        pending = {path: path in found or not Path(path).exists() for path in outputs}
        return {path: "update pending" if pending[path] else "no update" for path in outputs}

    monkeypatch.setattr("fairclust.cli.status._asked_of_snakemake", asked)
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Fit three seeds of one method, as its job does."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write("config/config.yaml", config(seeds=3))
        plan = Plan(user_config([]))
        fit = plan.fit("a", "one")
        data = Path(plan.fit_inputs(fit)["data"])
        save_points(data, "a", 60)
        asked = (
            plan.method(fit).class_,
            plan.fit_code(fit),
            plan.grids(fit),
            plan.metrics(fit),
            plan.scorer_code(fit),
        )
        fit_grids(
            Request("a", "one", *asked, 30.0, 4000.0), Path(FIRST), data=data, cache=Path("results/cache")
        )
    return folder


@pytest.fixture
def folder(finished, tmp_path, monkeypatch):
    """Change to a copy of the finished fits."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *arguments):
    """Return the lines that the command prints."""
    return told(commands.run(capsys, "status", *arguments)).splitlines()


def test_what_is_done_failed_skipped_and_to_go_is_counted(folder, capsys, again):
    assert run(capsys) == ["all: 3 of 3 fits done"]
    assert run(capsys, "--config", "results=other")[-2] == "all: 0 of 3 fits done, 3 to go"
    assert "--config: " in refused(commands.run(capsys, "status", "--config", "results"))
    write("more.yaml", {"run": {"seeds": 5, "methods": ["one", "two"]}})
    again.add(FIRST)  # because its seeds have changed
    lines = run(capsys, "--configfile", "more.yaml", "--cores", 2)
    # Both methods are the same class with the same parameters, so the cache has fits of the second, too.
    assert lines[:3] == [
        "a, one: 3 of 5 fits done, 2 to go",
        "a, two: 3 of 5 fits done, 2 to go",
        "all: 6 of 10 fits done, 4 to go",
    ]
    assert lines[3].startswith("time left on 2 cores: roughly ")
    again.clear()
    frame = pd.read_parquet(FIRST)
    frame.assign(status=["ok", "error", "skipped"]).to_parquet(FIRST)
    failed = ["a, one: 1 of 3 fits done, 1 failed, 1 skipped", "all: 1 of 3 fits done, 1 failed, 1 skipped"]
    assert run(capsys) == failed


def test_a_fit_that_a_sweep_makes_as_well_is_counted_once(folder, capsys, again):
    runs = {"datasets": ["a"], "methods": ["one"], "seeds": 3}
    paper = small_paper(experiments=[runs, runs | {"sweep": "dense", "seeds": 4}])
    write("sweep.yaml", {"run": {"papers": ["doe"], "datasets": []}, "papers": {"doe": paper}})
    raw = yaml.safe_load(Path("config/config.yaml").read_text())
    del raw["run"]["seeds"]
    write("config/config.yaml", raw)
    lines = run(capsys, "--configfile", "sweep.yaml")
    assert lines[:2] == ["a, one.dense: 3 of 4 fits done, 1 to go", "all: 3 of 4 fits done, 1 to go"]
    # One has failed, and the sweep makes all fits again.
    frame = pd.read_parquet(FIRST)
    frame.assign(status=["ok", "error", "ok"]).to_parquet(FIRST)
    shutil.rmtree("results/cache")
    assert run(capsys, "--configfile", "sweep.yaml")[:3] == [
        "a, one: 2 of 3 fits done, 1 failed",
        "a, one.dense: 0 of 4 fits done, 4 to go",
        "all: 0 of 4 fits done, 4 to go",
    ]


def test_other_code_or_a_missing_cache_is_to_go(folder, capsys, again, monkeypatch):
    again.add(FIRST)
    with monkeypatch.context() as patch:
        patch.setattr("fairclust.pipeline.plan.class_fingerprint", lambda path: "other")
        assert run(capsys)[0] == "a, one: 0 of 3 fits done, 3 to go"
    shutil.rmtree("results/cache")
    assert run(capsys)[0] == "a, one: 0 of 3 fits done, 3 to go"
    assert not Path("results/cache").exists()


def test_damaged_files_are_named_with_the_fix(folder, capsys, again):
    path = Path(FIRST)
    path.write_bytes(path.read_bytes()[:-9])
    said = refused(commands.run(capsys, "status"))
    assert f"{FIRST} is damaged" in said and "Fix: delete it and run again" in said
    # A damaged card counts as a data set that is not prepared.
    again.add(FIRST)
    Path("results/data/prepared/a/card.json").write_text("{")
    assert run(capsys)[0] == "a, one: 0 of 3 fits done, 3 to go"


def test_what_snakemake_says_is_the_message(tmp_path, capsys, monkeypatch):
    """Here is no Snakefile."""
    monkeypatch.chdir(tmp_path)
    write("config/config.yaml", config())
    assert "Snakefile" in refused(commands.run(capsys, "status"))


def test_a_wrong_configuration_is_reported_without_a_traceback(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = "there is no config/config.yaml: run this in the folder that holds `config` and `workflow`"
    assert message in refused(commands.run(capsys, "status"))
    write("config/config.yaml", config(methods=["three"]))
    assert "run.methods: there is no 'three'" in refused(commands.run(capsys, "status"))


# Before any run: the configuration and its data sets


@pytest.fixture
def people(tmp_path, monkeypatch):
    """Change to a folder with a table of people and a configuration, and return the table."""
    monkeypatch.chdir(tmp_path)
    methods = {"kmeans": {"class": "fairclust.methods.KMeans"}}
    run = {"datasets": [], "methods": ["kmeans"], "seeds": 2}
    write("config/config.yaml", {"run": run, "methods": methods})
    frame = pd.DataFrame(
        {"number": range(2000, 2060), "age": [i * i % 61 for i in range(60)], "sex": ["f", "m"] * 30}
    )
    frame.loc[:1, "sex"] = "x"
    frame.to_csv("people.csv", index=False)
    return frame


def check(capsys, **datasets):
    """Return what the command says of tables of people, each with changes of its entry."""
    same = {"source": {"path": "people.csv"}, "n_clusters": 3}
    sets = {name: table_of(**same | changes) for name, changes in datasets.items()}
    write("my.yaml", {"run": {"datasets": list(sets)}, "datasets": sets})
    return commands.run(capsys, "status", "--configfile", "my.yaml")


def test_a_sound_data_set_is_described(people, capsys, again):
    status, out, err = check(capsys, mine={})
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "mine: 2 fits"
    for words in (
        "60 of 60 rows, 2 features: number, age",
        "f (29), m (29), x (2)",
        "all: 0 of 2 fits done",
    ):
        assert words in out
    assert "the group x has fewer rows than there are clusters, 3" in out
    assert not Path("results").exists()


def test_all_problems_are_named_at_once(people, capsys):
    people.loc[:39, "age"] = None
    people.to_csv("people.csv", index=False)
    wrong, gone = {"sensitive": {"column": "sexx"}}, {"source": {"path": "nowhere.csv"}}
    status, _, err = check(
        capsys, empty={}, wrong=wrong, gone=gone, few={"features": ["number"], "n_clusters": 61}
    )
    assert status == 2 and "4 problems:" in err
    for words in (
        "column 'age': a column of numbers has cells that are not finite numbers; found '' in data row 1, 40 such",
        "no such column",
        "'sexx'",
        "'nowhere.csv': no such file. Fix: check its 'path'",
        "data set 'few' has 60 rows; lower K = 61",
        "all 2 fits of 'empty' would be skipped",
    ):
        assert words in err


def test_problems_of_papers_are_among_those_that_are_named(people, capsys):
    experiment = {"datasets": ["mine"], "methods": ["kmeans"]}
    paper = small_paper(reported="doe.csv", experiments=[experiment])
    config = yaml.safe_load(Path("config/config.yaml").read_text())
    config |= {"run": {"papers": ["doe"]}, "papers": {"doe": paper}}
    config["datasets"] = {"mine": table_of({"path": "people.csv"})}
    write("config/config.yaml", config)
    Path("doe.csv").write_text("table,dataset,n_clusters,method,metric,value\n1,mine,two,kmeans,sse,cheap\n")
    err = refused(commands.run(capsys, "status"))
    assert "doe.csv: column 'n_clusters' holds" in err and "doe.csv: column 'value' holds" in err
