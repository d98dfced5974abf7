"""What a run does at its beginning and when jobs have failed; Snakemake's side by stand-ins."""

from types import SimpleNamespace

import pytest

from fairclust.pipeline.run_events import finishing_command, set_outputs_aside


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


def test_old_outputs_are_set_aside_and_those_of_forced_jobs_forgotten(tmp_path):
    def job(rule, name, forced):
        path = tmp_path / name
        for file in (path, path.with_name(f"{name}.damaged"), path.with_name(f".{name}.working")):
            file.write_text(file.name)
        return SimpleNamespace(rule=SimpleNamespace(name=rule), output=[str(path)], forced=forced)

    jobs = [job("fit", "a.cells", True), job("fit", "b.cells", False), job("table", "t.md", True)]
    dag = SimpleNamespace(needrun_jobs=lambda: jobs, reason=lambda job: SimpleNamespace(forced=job.forced))
    for _ in range(2):  # the second time nothing is there
        set_outputs_aside(dag)
        left = {path.name: path.read_text() for path in tmp_path.iterdir()}
        assert not [name for name in left if "a.cells" in name]
        assert {name for name in left if "b.cells" in name} == {
            "b.cells.earlier",
            ".b.cells.working",
            "b.cells.damaged",
        }
        assert left["b.cells.earlier"] == "b.cells"
        assert "t.md" in left
