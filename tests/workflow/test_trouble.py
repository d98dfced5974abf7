"""Data that cannot be had, fits over their limits and jobs that die become rows with a reason, and the rest is made."""

import hashlib
import html
import re
from types import SimpleNamespace

import pandas as pd
import pytest

from working_folder import FAR, METHOD, QUIET, TABLE, Project, jobs_of, newly_fitted, table_of

# A fit, after those that only compile the code.
ODD = """\
        import os, signal, time
        if len(X) == 600 and not os.path.exists("mended"):
            {what}
"""
DEADLY = "os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)"
WHAT = {
    "sleepy": "time.sleep(60)",
    "raising": "raise RuntimeError('no idea')",
    # The first fit of the job is finished, and the second one kills the job.
    "deadly": f"if self.lam: {DEADLY}",
}


@pytest.fixture(scope="module")
def troubled(tmp_path_factory):
    """Make a run in which data are missing and methods fail, and run again when everything is mended."""
    project = Project(tmp_path_factory.mktemp("project"))
    project.config["report"] = {**QUIET, "html": True}
    project.config["sources"] = {"far": {**FAR, "sha256": hashlib.sha256(TABLE.encode()).hexdigest()}}
    project.write("own.csv", TABLE)
    project.config["datasets"] |= {
        "far": table_of("far"),
        "bad": table_of({"path": "own.csv"}, features=["a", "bb"]),
        "late": table_of({"path": "late.csv"}),
    }
    for name, what in WHAT.items():
        text = METHOD.format(name=name.title(), factor=1).replace(
            "        # A comment.\n", ODD.format(what=what)
        )
        project.write(f"my_methods/{name}.py", text)
        project.config["methods"][name] = {"class": f"my_methods.{name}.{name.title()}"}
    project.config["methods"]["deadly"]["grid"] = {"lam": [0, 1]}
    project.add_cutter()
    project.config |= {"limits": {"cell_seconds": 5}, "jobs": {"mem_mb": 3000, "attempts": 2}}
    project.config["run"] = {
        "datasets": ["blobs", "far", "bad", "late"],
        "methods": ["random", "cutter", *WHAT],
    }
    project.config["run"]["seeds"] = 1
    seen = SimpleNamespace(project=project)

    def look(output):
        scores = pd.read_parquet(project.results / "scores/scores.parquet")
        rows = scores.set_index(["dataset", "method"])
        page = html.unescape((project.results / "report/index.html").read_text())
        return SimpleNamespace(output=output, rows=rows, cells=project.cells(), page=page)

    seen.download = project.run("download", code=1)
    seen.first = look(project.run(code=1))
    seen.log = (project.results / "logs/fit/blobs/deadly.log").read_text()
    seen.same = project.run(code=1)
    for name in ("mended", "late.csv", "mirror/far/far.csv"):
        project.write(name, TABLE)
    project.config["mirror"] = "mirror"
    for name in WHAT:
        (project.results / f"fits/blobs/{name}.parquet").unlink()
    seen.mended = look(project.run())
    project.config |= {"strict": True, "mirror": "another"}
    (project.folder / "mirror/far/far.csv").unlink()
    seen.strict = project.run(code=1)
    return seen


def test_missing_data_become_skipped_rows_and_the_run_goes_on(troubled):
    first = troubled.first
    assert first.rows.loc[[("blobs", "random")]].status.tolist() == ["ok"]
    for name, reason in (
        ("far", "could not be fetched"),
        ("bad", "did you mean 'b'"),
        ("late", "no such file"),
    ):
        assert set(first.rows.loc[name].status) == {"skipped"}
        assert reason in first.rows.loc[name].reason.iloc[0]
        assert f"skipped: {name}" in first.output and reason in first.page


@pytest.mark.parametrize(
    "method, status, reason",
    [
        ("sleepy", "timeout", r"over the limit of 5 s \(limits.cell_seconds\)"),
        ("raising", "error", "RuntimeError: no idea"),
        ("deadly", "error", r"killed without a message, perhaps out of memory .*attempt=2, mem_mb=6000"),
    ],
)
def test_a_fit_that_fails_is_a_row_with_the_reason(troubled, method, status, reason):
    rows = troubled.first.rows.loc[[("blobs", method)]]
    assert rows.status.iloc[-1] == status and re.search(reason, rows.reason.iloc[-1])
    assert troubled.mended.rows.loc[[("blobs", method)]].status.eq("ok").all()


def test_a_job_that_dies_keeps_its_finished_fits_and_its_log_has_every_attempt(troubled):
    assert troubled.first.rows.loc[[("blobs", "deadly")]].status.tolist() == ["ok", "error"]
    begun = re.findall(r"job begun: fit \(attempt=(\d), mem_mb=(\d+), runtime=\d+\)", troubled.log)
    # The last attempt fits nothing, so it asks for no more memory.
    assert begun == [("1", "3000"), ("2", "6000"), ("3", "6000")]
    again = newly_fitted(troubled.mended.cells, troubled.first.cells)
    again = again[again.dataset == "blobs"]
    assert again[again.method == "deadly"].lam.tolist() == [1.0] and "random" not in set(again.method)


def test_the_exit_status_and_the_last_lines_say_what_was_lost_and_the_fix(troubled):
    for output in (troubled.first.output, troubled.same):
        assert "some fit jobs have failed. Fix: delete fits/blobs/deadly.parquet" in output
        assert "error: blobs, deadly (1): killed without a message" in output
        assert "Traceback" not in output
    # The same command makes nothing again; only the last rule says the same.
    assert jobs_of(troubled.same) == {"check": 1}


def test_data_that_become_available_are_used(troubled):
    rows = troubled.mended.rows
    for dataset in ("far", "late"):
        assert set(rows.loc[dataset].status) == {"ok"}
    assert set(rows.loc["bad"].status) == {"skipped"}
    assert "strict: true, and not every cell is ok" in troubled.strict


def test_another_mirror_is_no_reason_to_lose_what_was_obtained(troubled):
    assert jobs_of(troubled.strict) == {"check": 1}


def test_the_target_download_fails_with_the_reason(troubled):
    assert "1 of 1 sources could not be downloaded. Fix: snakemake" in troubled.download
    assert "source 'far': 'far/far.csv' could not be fetched" in troubled.download
    assert (troubled.project.results / "data/raw/far/far/far.csv").read_text() == TABLE


def test_a_wrong_configuration_stops_before_any_job(tmp_path):
    project = Project(tmp_path)
    project.config["methods"]["stripes"]["params"] = {"lamm": 3}
    outputs = [project.run(code=1)]
    assert "my_methods.stripes.Stripes takes no parameter 'lamm'" in outputs[0]
    # Snakemake without our check would take the second value.
    over = project.write("over.yaml", "strict: true\nstrict: false")
    outputs += [project.run("-n", "--configfile", str(over), code=1)]
    assert re.search(r'over\.yaml.* line 2: found duplicate key "strict"', outputs[1]), outputs[1]
    assert all("Traceback" not in output and len(output.splitlines()) < 30 for output in outputs)
    assert not project.results.exists()
