"""The beginning of a run."""

import pandas as pd
import pytest

from fairclust.pipeline.run_events import describe_times, no_report_yet


@pytest.mark.parametrize("option", [["--report", "report.zip"], ["--report=report.zip"], ["--report"]])
def test_a_report_before_a_run_says_what_to_do(option, tmp_path):
    words = ["snakemake", "--cores", "4", *option]
    assert "run the same command without --report first" in no_report_yet(words, tmp_path)
    assert no_report_yet(["snakemake", "--cores", "4", "--report-stylesheet", "x.css"], tmp_path) == ""
    (tmp_path / "provenance.json").write_text("{}")
    assert no_report_yet(words, tmp_path) == ""


@pytest.mark.parametrize(("wall", "share"), [(0.01, ""), (50.0, " (20% of the fitting time)")])
def test_what_the_pipeline_adds_is_a_share_only_if_that_says_something(tmp_path, wall, share):
    runs, job = tmp_path / "scores/runs.parquet", tmp_path / "logs/fit/a.seconds"
    runs.parent.mkdir()
    pd.DataFrame({"finished": [2.0], "wall_seconds": [wall]}).to_parquet(runs)
    job.parent.mkdir(parents=True)
    job.write_text(f"{wall + 10}\n")
    job.with_name("damaged.seconds").write_text("\0")
    lines = describe_times(tmp_path, began=1.0)
    assert f"drawing 10.0 s{share}; " in lines[1]
