"""A table, figure or test of claims that cannot be made says so, and the others are made."""

from pathlib import Path

import pytest

from fairclust.pipeline.cell_store import DamagedFile
from fairclust.pipeline.rule_inputs import TABLE_FORMATS
from fairclust.report.claims import load_claims
from fairclust.report.jobs import _making
from fairclust.report.tables import load_evidence


def test_a_product_that_fails_leaves_files_that_say_so(tmp_path):
    problems = []
    kinds = {"t": (*TABLE_FORMATS, "evidence.csv"), "claims": ("csv", "md", "tex"), "f": ("png", "pdf")}
    for what, name in (("table t", "t"), ("the claims", "claims"), ("figure f", "f")):
        with _making(problems, "paper.log", what, tmp_path / name, kinds[name]):
            (tmp_path / f"{name}.{kinds[name][0]}").write_text("half of the file")
            raise KeyError("no_such_metric_[x](y)")
    assert [line.partition(":")[0] for line in problems] == [
        "table t could not be made",
        "the claims could not be made",
        "figure f could not be made",
    ]
    assert all("KeyError: 'no_such_metric" in line and "paper.log" in line for line in problems)
    assert all((tmp_path / f"{name}.{kind}").stat().st_size for name, of in kinds.items() for kind in of)
    assert "could not be made" in (tmp_path / "t.md").read_text()
    assert "[x](y)" not in (tmp_path / "t.md").read_text()
    # Readers of these files find no values.
    assert load_evidence([tmp_path / "t.evidence.csv"]).empty
    assert load_claims(tmp_path / "claims.csv").empty


def test_a_damaged_file_of_cells_fails_the_job(tmp_path):
    with pytest.raises(DamagedFile), _making([], "paper.log", "table t", Path("t"), []):
        raise DamagedFile("one.cells is damaged")
