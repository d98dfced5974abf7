"""Missing data and failing fits become rows with a status, and the same command tries them again."""

import hashlib
from types import SimpleNamespace

import pandas as pd
import pytest

from working_folder import FAR, METHOD, QUIET, TABLE, Project, jobs_of, newly_fitted, table_of

# After the kill it waits to be ended with its parent, because it could finish its cell before.
DEADLY = """\
        import os, time
        if len(X) == 600:
            os.kill(os.getppid(), 9)
            time.sleep(60)
"""


@pytest.fixture(scope="module")
def troubled(tmp_path_factory):
    """Make a run in which data and a module are missing, repeat it strictly, and run again when they are there."""
    project = Project(tmp_path_factory.mktemp("project"))
    project.config["report"] = {**QUIET, "overview": True}
    project.config["sources"] = {"far": {**FAR, "sha256": hashlib.sha256(TABLE.encode()).hexdigest()}}
    project.write("own.csv", TABLE)
    project.config["datasets"] |= {
        "far": table_of("far"),
        "bad": table_of({"path": "own.csv"}, features=["a", "bb"]),
        "late": table_of({"path": "late.csv"}),
    }
    needy = METHOD.format(name="Needy", factor=1).replace("import numpy", "import not_there_yet, numpy")
    project.write("my_methods/needy.py", needy)
    project.config["methods"] = {
        "random": project.config["methods"]["random"],
        "needy": {"class": "my_methods.needy.Needy"},
    }
    project.add_cutter()
    project.config["run"] = {
        "datasets": ["blobs", "far", "bad", "late"],
        "methods": ["random", "needy", "cutter"],
        "seeds": 1,
    }
    seen = SimpleNamespace(project=project)

    def look(output):
        rows = pd.read_parquet(project.results / "scores/scores.parquet")
        overview = (project.results / "tables/overview.md").read_text()
        return SimpleNamespace(
            output=output,
            rows=rows.set_index(["dataset", "method"]),
            cells=project.cells(),
            overview=overview,
        )

    seen.first = look(project.run())
    project.config["strict"] = True
    seen.second = look(project.run(code=1))
    project.config["strict"] = False
    project.write("mirror/far/far.csv", TABLE)
    project.write("late.csv", TABLE)
    project.write("not_there_yet.py", "")
    seen.third = look(project.run("--config", "mirror=mirror"))
    return seen


def test_missing_data_become_skipped_rows_and_do_not_stop_the_run(troubled):
    rows = troubled.first.rows
    assert rows.loc[("blobs", "random")].status == "ok"
    for name, reason in (
        ("far", "could not be fetched"),
        ("bad", "did you mean 'b'"),
        ("late", "no such file"),
    ):
        assert set(rows.loc[name].status) == {"skipped"}
        assert reason in rows.loc[name].reason.iloc[0]
        assert f"skipped: {name}" in troubled.first.output
        assert name in troubled.first.overview


def test_an_error_is_a_row_and_is_tried_again_by_the_same_command(troubled):
    first, second = troubled.first, troubled.second
    assert first.rows.loc[("blobs", "needy")].status == "error"
    assert "not_there_yet" in first.rows.loc[("blobs", "needy")].reason
    # No other data set is fitted or prepared again. A failed download is tried again only after an hour.
    assert jobs_of(second.output)["fit"] == 1
    assert "prepare_dataset" not in jobs_of(second.output)
    again = newly_fitted(second.cells, first.cells)
    assert again[["dataset", "method"]].values.tolist() == [["blobs", "needy"]]
    assert "strict: true, and not every cell is ok" in second.output


def test_data_that_become_available_are_used_by_the_same_command(troubled):
    rows = troubled.third.rows
    for at in (
        ("far", "random"),
        ("late", "random"),
        ("blobs", "needy"),
        ("late", "needy"),
        ("far", "cutter"),
    ):
        assert rows.loc[at].status == "ok", at
    assert set(rows.loc["bad"].status) == {"skipped"}


def test_the_target_download_fails_with_the_reason_and_tries_again(tmp_path):
    project = Project(tmp_path)
    project.config["datasets"]["far"] = table_of("far")
    project.config["sources"] = {"far": FAR}
    project.config["run"]["datasets"] = ["far"]
    output = project.run("download", "--config", "mirror=mirror", code=1)
    assert "1 of 1 source could not be downloaded; the same command tries again" in output
    assert "source 'far': 'far/far.csv' could not be fetched" in output and "Fix: check the network" in output
    project.write("mirror/far/far.csv", TABLE)
    project.run("download", "--config", "mirror=mirror")
    assert (project.results / "data/raw/far/far/far.csv").read_text() == TABLE


@pytest.fixture(scope="module")
def deadly(tmp_path_factory):
    """Make a run with a method that always kills its job, though it had been fitted before, and one that works."""
    project = Project(tmp_path_factory.mktemp("project"))
    project.config["report"]["html"] = True
    project.config["run"]["seeds"] = 1
    project.run("results/fits/blobs/random-k3.cells")
    text = METHOD.format(name="Stripes", factor=1).replace("        # A comment.\n", DEADLY)
    project.write("my_methods/stripes.py", text)
    seen = SimpleNamespace(project=project)
    seen.output = project.run(code=1)
    seen.rows = pd.read_parquet(project.results / "scores/scores.parquet")
    seen.page = (project.results / "report/index.html").read_text()
    seen.overview = (project.results / "tables/overview.md").read_text()
    return seen


def test_cells_whose_job_always_dies_become_rows_and_the_rest_is_made(deadly):
    by_method = deadly.rows.groupby("method").status.agg(list).to_dict()
    assert by_method == {"random": ["ok"], "stripes": ["error", "error"]}
    reasons = deadly.rows[deadly.rows.method == "stripes"].reason
    assert reasons.str.contains("its job ended without a result 2 times; see results/logs/fit/").all()
    assert "random" in deadly.overview
    assert "stripes" in deadly.page
    assert (deadly.project.results / "figures/fronts/blobs.png").is_file()


def test_the_last_lines_say_what_is_missing(deadly):
    end = deadly.output[deadly.output.index("some fit jobs have failed") :]
    assert "3 cells: 2 error, 1 ok" in end
    assert "error: blobs, stripes (2): its job ended without a result 2 times" in end
    assert "To resume, run the same command again" in end


def test_lost_cells_are_tried_again_by_the_same_command(deadly):
    project = deadly.project
    project.write("my_methods/stripes.py", METHOD.format(name="Stripes", factor=1))
    project.run()
    assert set(project.cells().status) == {"ok"}


def test_a_wrong_configuration_stops_before_any_job(tmp_path):
    project = Project(tmp_path)
    project.config["methods"]["stripes"]["params"] = {"lamm": 3}
    output = project.run(code=1)
    assert "my_methods.stripes.Stripes takes no parameter 'lamm'" in output
    # Snakemake without our check would take the second value.
    for text, message in (
        (
            "strict: true\nstrict: false",
            'over.yaml cannot be read: line 2: found duplicate key "strict"',
        ),
        ("results: my_methods", "results: 'my_methods' cannot be the folder of results"),
    ):
        over = project.write("over.yaml", text)
        said = project.run("-n", "--configfile", str(over), code=1)
        assert message in said and len(said.splitlines()) < 30
    assert "Traceback" not in output
    assert not project.results.exists()


def test_a_run_that_only_gets_data_owns_its_results(tmp_path):
    """Generated data need no download, so these targets have no input."""
    for number, target in enumerate(("results/data/prepared/blobs", "download")):
        project = Project(tmp_path / str(number))
        project.run(target)
        assert (project.results / "logs/.lock").exists()
    assert jobs_of(project.run("-n"))["fit"] == 1
