"""`fairclust status` in the folder of a run, and before any run."""

import json
import os
import shutil
from pathlib import Path

import commands
import pandas as pd
import pytest
import yaml
from commands import refused, told

from fairclust.cli.results import count
from fairclust.pipeline.blocks import plan_blocks, plan_jobs
from fairclust.pipeline.cell_store import write_output
from fairclust.pipeline.config import load_config
from fairclust.pipeline.fingerprint import class_fingerprint, remember_code
from fairclust.pipeline.fit_block import BlockFits
from fairclust.pipeline.results_folder import lock
from small import small_config
from toys import save_points

CLASS = "fairclust.methods.RandomLabels"


def config(seeds=2, methods=("one",)):
    return small_config(
        run={"datasets": ["a"], "methods": list(methods), "seeds": seeds},
        methods={"one": {"class": CLASS}, "two": {"class": CLASS}},
    )


def write(name, raw):
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(yaml.safe_dump(raw))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Fit three seeds of two methods, and then ask for two seeds of one method."""
    tmp_path = tmp_path_factory.mktemp("finished")
    save_points(tmp_path / "results/data/prepared/a", "a", 60)
    remember_code(tmp_path / "results", CLASS)
    results = tmp_path / "results"
    lock(results).close()
    limits = {"cell_seconds": 30, "cell_memory_mb": 4000}
    code = CLASS, class_fingerprint(CLASS), ("sse",), "s"
    for seeds in (3, 2):
        given = load_config(config(seeds, ("one", "two")))
        for name, blocks in plan_jobs(given, plan_blocks(given)).items():
            path = results / f"fits/{name}.cells"
            path.parent.mkdir(parents=True, exist_ok=True)
            fits = (
                BlockFits(block, results / "data/prepared/a", None, results, limits, *code)
                for block in blocks
            )
            write_output(path, [record for of_block in fits for record in of_block.run()])
    return tmp_path


@pytest.fixture
def folder(finished, tmp_path, monkeypatch):
    """Change to a copy of the finished fits."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    write("config/config.yaml", config())
    return tmp_path


def run(capsys, *arguments):
    """Return the lines that the command prints."""
    return told(commands.run(capsys, *arguments)).splitlines()


def test_status_reads_no_labels(folder, capsys, monkeypatch):
    def no_labels(path):
        raise AssertionError("status reads labels")

    monkeypatch.setattr("fairclust.pipeline.cell_store.read_labels", no_labels)
    monkeypatch.setattr("fairclust.pipeline.fit_block.read_labels", no_labels)
    assert run(capsys, "status")[:2] == [
        "all: 2 of 2 cells done",
        "results/cells: 1 cells that are not asked for",
    ]
    write("more.yaml", {"run": {"seeds": 5, "methods": ["one", "two"]}})
    lines = run(capsys, "status", "--configfile", "more.yaml", "--cores", 2)
    assert lines[:3] == [
        "a, one: 3 of 5 cells done, 2 to go",
        "a, two: 3 of 5 cells done, 2 to go",
        "all: 6 of 10 cells done, 4 to go",
    ]
    assert lines[3].startswith("time left on 2 cores: about ")


def why(capsys, *arguments):
    return [line for line in run(capsys, "status", "--explain", *arguments) if " to fit: " in line]


def test_status_explains_why_cells_would_be_fitted(folder, capsys, monkeypatch):
    assert why(capsys) == []
    write("more.yaml", {"run": {"seeds": 5, "methods": ["one", "two"]}})
    assert why(capsys, "--configfile", "more.yaml") == [
        "a, one, 2 to fit: no run has fitted this setting",
        "a, two, 2 to fit: no run has fitted this setting",
    ]
    (known,) = (folder / "results/logs/code").iterdir()
    code = json.loads(known.read_text())
    code["fairclust.base:at_least"] = "other"
    known.write_text(json.dumps(code))
    monkeypatch.setattr("fairclust.pipeline.progress.class_fingerprint", lambda path: "new")
    assert why(capsys) == ["a, one, 2 to fit: the code of the method has changed: fairclust.base:at_least"]
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    card = folder / "results/data/prepared/a/card.json"
    card.write_text(card.read_text().replace('"data_hash": "', '"data_hash": "other'))
    assert why(capsys) == ["a, one, 2 to fit: the data set or its graph has changed, or is not prepared"]


def test_status_before_the_first_run(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("config/config.yaml", config())
    assert run(capsys, "status") == [
        "a, one: 0 of 2 cells done, 2 to go",
        "all: 0 of 2 cells done, 2 to go",
        f"time left on {count(os.cpu_count(), 'core')}: unknown, because no fit has ended yet",
    ]
    with lock(Path("results"), 16):
        assert run(capsys, "status")[-1].startswith("time left on 16 cores: ")
    assert run(capsys, "status", "--cores", 3)[-1].startswith("time left on 3 cores: ")


def test_prune_keeps_what_the_scores_state(folder, capsys):
    scores = folder / "results/scores/scores.parquet"
    scores.parent.mkdir()
    pd.DataFrame({"key": ["a cell of an earlier configuration"]}).to_parquet(scores)
    before = set(folder.rglob("*"))
    assert "Fix: run the configuration" in refused(commands.run(capsys, "status", "--prune"))
    assert set(folder.rglob("*")) == before


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
    sets = {
        name: {"title": name, "source": {"path": "people.csv"}, "n_clusters": 3, **given}
        for name, given in datasets.items()
    }
    write("my.yaml", {"run": {"datasets": list(sets)}, "datasets": sets})
    return commands.run(capsys, "status", "--configfile", "my.yaml")


def test_a_sound_data_set_is_described(people, capsys):
    status, out, err = check(capsys, mine={"sensitive": {"column": "sex"}})
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "mine: 2 cells"
    for words in (
        "60 of 60 rows, 1 features: age",
        "number: left out: ",
        "f (29), m (29), x (2)",
        "all: 0 of 2 cells done",
    ):
        assert words in out
    assert "the group x has fewer rows than there are clusters, 3" in out
    assert not Path("results").exists()


def test_all_problems_are_named_at_once(people, capsys):
    people.loc[:39, "age"] = None
    people.to_csv("people.csv", index=False)
    status, _, err = check(
        capsys,
        empty={"sensitive": {"column": "sex"}},
        wrong={"sensitive": {"column": "sexx"}},
        gone={"sensitive": {"column": "sex"}, "source": {"path": "nowhere.csv"}},
    )
    assert status == 2 and "3 problems:" in err
    for words in (
        "age (40)",
        "no such column",
        "'sexx'",
        "nowhere.csv",
        "all 2 cells of 'empty' would be skipped",
    ):
        assert words in err


def test_a_folder_of_other_files_cannot_hold_results(people, capsys):
    Path("mine").mkdir()
    Path("mine/notes.txt").touch()
    Path("config/config.yaml").write_text(Path("config/config.yaml").read_text() + "results: mine\n")
    err = refused(check(capsys, people={"sensitive": {"column": "sex"}}))
    assert "'mine' cannot be the folder of results" in err


def test_problems_of_papers_are_among_those_that_are_named(people, capsys):
    paper = {"short_name": "Doe", "citation": "Doe: Clusters, 2030", "year": 2030, "reported": "doe.csv"}
    paper["experiments"] = [{"datasets": ["mine"], "methods": ["kmeans"]}]
    mine = {"title": "M", "source": {"path": "people.csv"}, "n_clusters": 3, "sensitive": {"column": "sex"}}
    config = yaml.safe_load(Path("config/config.yaml").read_text())
    config |= {"run": {"papers": ["doe"]}, "papers": {"doe": paper}, "datasets": {"mine": mine}}
    write("config/config.yaml", config)
    Path("doe.csv").write_text("table,dataset,n_clusters,method,metric,value\n1,mine,two,kmeans,sse,cheap\n")
    err = refused(commands.run(capsys, "status"))
    assert "doe.csv: column 'n_clusters' holds" in err and "doe.csv: column 'value' holds" in err
