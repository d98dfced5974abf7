"""The beginning of a run."""

import pytest

from fairclust.pipeline.run_events import no_report_yet


@pytest.mark.parametrize("option", [["--report", "report.zip"], ["--report=report.zip"], ["--report"]])
def test_a_report_before_a_run_says_what_to_do(option, tmp_path):
    words = ["snakemake", "--cores", "4", *option]
    assert "run the same command without --report first" in no_report_yet(words, tmp_path)
    assert no_report_yet(["snakemake", "--cores", "4", "--report-stylesheet", "x.css"], tmp_path) == ""
    (tmp_path / "provenance.json").write_text("{}")
    assert no_report_yet(words, tmp_path) == ""
