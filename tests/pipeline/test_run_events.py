"""The beginning of a run, and the second pass after failed jobs. Simple objects stand in for Snakemake's."""

from types import SimpleNamespace

import pytest

from fairclust.pipeline.run_events import finishing_command, no_report_yet, set_outputs_aside


@pytest.mark.parametrize(
    "given, kept",
    [
        (["--cores", "2"], ["--cores", "2"]),
        (["-f", "--cores", "2", "all"], ["--cores", "2", "all"]),
        (["--forceall", "-c2"], ["-c2"]),
        (["-R", "fit", "table", "--cores", "2"], ["--cores", "2"]),
        (["--cores", "2", "--forcerun", "fit"], ["--cores", "2"]),
        (["--forcerun=fit", "--cores", "2"], ["--cores", "2"]),
        (["--cores", "2", "--", "results/x.md"], ["--cores", "2", "results/x.md"]),
        (["--cores", "2", "--config", "also=more", "-F"], ["--cores", "2", "--config", "also=more"]),
    ],
)
def test_the_second_pass_forces_nothing_and_fits_nothing(given, kept):
    command = finishing_command(["/usr/bin/snakemake", *given], ["doe"])
    assert command[1:3] == ["-m", "snakemake"]
    tail = command.index("--nolock")
    assert command[3:tail] == kept
    allowed = command[command.index("--allowed-rules") + 1 :]
    assert {"all", "table", "page", "scores", "doe"} <= set(allowed)
    assert not {"fit", "prepare_dataset", "check_strict", "download_source"} & set(allowed)


def test_old_outputs_are_set_aside_and_those_of_forced_jobs_removed(tmp_path):
    fit, table = SimpleNamespace(name="fit"), SimpleNamespace(name="table")

    def job(rule, name, forced):
        path = tmp_path / name
        for file in (path, path.with_name(f"{name}.damaged"), path.with_name(f".{name}.17.working")):
            file.write_text(file.name)
        return SimpleNamespace(rule=rule, output=[str(path)], forced=forced)

    def left(name):
        return {path.name for path in tmp_path.iterdir() if name in path.name}

    jobs = [job(fit, "a.cells", True), job(fit, "b.cells", False), job(table, "t.md", True)]
    # The run was killed before Snakemake had recorded this file, so Snakemake forces the job by itself.
    jobs.append(job(fit, "c.cells", True))
    dag = SimpleNamespace(
        needrun_jobs=lambda: jobs, reason=lambda job: SimpleNamespace(forced=job.forced), forcerules=[]
    )
    for _ in range(2):  # the second time there is no output to set aside
        set_outputs_aside(dag, lambda job: "c.cells" in job.output[0])
        assert left("a.cells") == set()
        for name in ("b.cells", "c.cells"):
            assert left(name) == {f"{name}.earlier", f".{name}.17.working", f"{name}.damaged"}
            assert (tmp_path / f"{name}.earlier").read_text() == name
        assert "t.md" in left("t.md")
    dag.forcerules = [fit]
    set_outputs_aside(dag, lambda job: "c.cells" in job.output[0])
    assert left("cells") == set()


@pytest.mark.parametrize("option", [["--report", "report.zip"], ["--report=report.zip"], ["--report"]])
def test_a_report_before_a_run_says_what_to_do(option, tmp_path):
    words = ["snakemake", "--cores", "4", *option]
    assert "run the same command without --report first" in no_report_yet(words, tmp_path)
    assert no_report_yet(["snakemake", "--cores", "4", "--report-stylesheet", "x.css"], tmp_path) == ""
    (tmp_path / "provenance.json").write_text("{}")
    assert no_report_yet(words, tmp_path) == ""
