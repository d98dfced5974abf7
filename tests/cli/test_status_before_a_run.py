"""`fairclust status` before any run: the configuration and its data sets."""

from pathlib import Path

import pandas as pd
import pytest
import yaml
from commands import refused

from fairclust.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shipped = {"run": {"datasets": [], "methods": ["kmeans"], "seeds": 2}}
    shipped["methods"] = {"kmeans": {"class": "fairclust.methods.KMeans"}}
    Path("config").mkdir()
    Path("config/config.yaml").write_text(yaml.safe_dump(shipped))
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
    Path("my.yaml").write_text(yaml.safe_dump({"run": {"datasets": list(sets)}, "datasets": sets}))
    status = main(["status", "--configfile", "my.yaml"])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_a_sound_data_set_is_described(folder, capsys):
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


def test_all_problems_are_named_at_once(folder, capsys):
    folder.loc[:39, "age"] = None
    folder.to_csv("people.csv", index=False)
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


def test_a_folder_of_other_files_cannot_hold_results(folder, capsys):
    Path("mine").mkdir()
    Path("mine/notes.txt").touch()
    Path("config/config.yaml").write_text(Path("config/config.yaml").read_text() + "results: mine\n")
    err = refused(check(capsys, people={"sensitive": {"column": "sex"}}))
    assert "'mine' cannot be the folder of results" in err


def test_problems_of_papers_are_among_those_that_are_named(folder, capsys):
    paper = {"short_name": "Doe", "citation": "Doe: Clusters, 2030", "year": 2030, "reported": "doe.csv"}
    paper["experiments"] = [{"datasets": ["mine"], "methods": ["kmeans"]}]
    mine = {"title": "M", "source": {"path": "people.csv"}, "n_clusters": 3, "sensitive": {"column": "sex"}}
    config = yaml.safe_load(Path("config/config.yaml").read_text())
    config |= {"run": {"papers": ["doe"]}, "papers": {"doe": paper}, "datasets": {"mine": mine}}
    Path("config/config.yaml").write_text(yaml.safe_dump(config))
    Path("doe.csv").write_text("table,dataset,n_clusters,method,metric,value\n1,mine,two,kmeans,sse,cheap\n")
    assert main(["status"]) == 2
    err = capsys.readouterr().err
    assert "doe.csv: column 'n_clusters' holds" in err and "doe.csv: column 'value' holds" in err
