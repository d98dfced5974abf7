"""A table, figure or test of claims that cannot be made says so, and the others are made."""

import pytest

from fairclust.pipeline.cell_store import DamagedFile
from fairclust.pipeline.rule_inputs import TABLE_FORMATS
from fairclust.report.claims import load_claims
from fairclust.report.jobs import _making
from fairclust.report.verdicts import load_verdicts


def test_a_product_that_fails_leaves_files_that_say_so(tmp_path):
    problems = []
    table = [tmp_path / f"t.{kind}" for kind in (*TABLE_FORMATS, "verdicts.csv")]
    claims = [tmp_path / f"claims.{kind}" for kind in ("csv", "md", "tex")]
    figure = [tmp_path / f"f.{kind}" for kind in ("png", "pdf")]
    for what, files in (("table t", table), ("the claims", claims), ("figure f", figure)):
        with _making(problems, "paper.log", what, files):
            files[0].write_text("half of the file")
            raise KeyError("no_such_metric_[x](y)")
    assert [line.partition(":")[0] for line in problems] == [
        "table t could not be made",
        "the claims could not be made",
        "figure f could not be made",
    ]
    assert all("KeyError: 'no_such_metric" in line and "paper.log" in line for line in problems)
    assert all(path.stat().st_size for path in (*table, *claims, *figure))
    assert "could not be made" in (tmp_path / "t.md").read_text()
    assert "[x](y)" not in (tmp_path / "t.md").read_text()
    # Readers of these files find no values.
    assert load_verdicts([tmp_path / "t.verdicts.csv"]).empty
    assert load_claims(tmp_path / "claims.csv").empty


def test_a_damaged_file_of_cells_fails_the_job(tmp_path):
    with pytest.raises(DamagedFile), _making([], "paper.log", "table t", []):
        raise DamagedFile("one.cells is damaged")
