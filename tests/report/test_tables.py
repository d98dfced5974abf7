import numpy as np
import pandas as pd
import pytest
from a_paper import NAMES, reported, table
from frames import frame, starts, tradeoff

from fairclust.report.material import Material
from fairclust.report.rows import Value
from fairclust.report.selection import Spread
from fairclust.report.tables import make_overview, make_table, value_text


@pytest.fixture
def values(tmp_path):
    return reported(
        tmp_path,
        "1,town,10,4,own,sse,100.5,",
        "1,town,10,4,own,fairness_error,0.10,",
        "rival,sse,200.0",
        "rival,fairness_error,0.30",
        "1,city,10,4,own,sse,,N/A",
        "2,town,10,,own,sse,5.0,",
    )


@pytest.fixture
def cells():
    return frame(
        [
            *starts("own", [100.0, 101.0], lam=4, fairness_error=0.1),
            *starts("rival", [210.0, 230.0], fairness_error=0.5),
            *starts("mine", [95.0, 97.0], lam=1, fairness_error=0.1),
            *starts("own", [10.0], dataset="village", lam=4, fairness_error=0.1),
        ]
    )


SPEC = {
    "match": {"fairness": "fairness_error", "order": "sse"},
    "ours": ["mine"],
    "stand_ins": {"town": ["village"]},
    "beside": ["seconds"],
    "remarks": ["A remark."],
    "reasons": [{"method": "rival", "reason": "other starts"}],
}


def made(folder, spec, values, cells):
    make_table(
        Material({}, values, cells, pd.DataFrame(), NAMES, paper="paper", title="P & Q"),
        table(**spec),
        folder / "t",
    )
    return (folder / "t.md").read_text()


def test_a_row_for_each_method(values, cells, tmp_path):
    text = made(tmp_path, SPEC, values, cells)
    assert text.startswith("# P &amp; Q, Table 1: A table, reported and reproduced\n")
    assert "| Town | Own | 100.5 ± 0.7, best 100.0 (100.5; 0.0 %) | 0.1000 ± 0.0000 (0.10) |" in text
    assert "| lam=4 | 2 | as printed | reproduced |" in text
    assert "| Town | Rival | 220.0 ± 14.1, best 210.0 (200.0; +10.0 %) |" in text
    assert "matched fairness | less fair |" in text
    # Rows of our methods are marked, and have no reported values and no verdict.
    assert "| Town | Mine (ours) | 96.0 ± 1.4, best 95.0 | 0.1000 ± 0.0000 |" in text
    (stand_in,) = [line for line in text.splitlines() if line.startswith("| village")]
    assert "| village (stands in for Town) | Own | 10.0 | 0.1000 |" in stand_in and stand_in.endswith("| – |")
    assert "village (stands in for Town), Own, lambda 4: The paper reports for Town: SSE 100.5" in text
    assert "- Town, Rival: less fair: conjecture: other starts." in text
    assert "- A remark." in text
    assert "- City, Own, lambda 4: unpublished: N/A." in text


def test_the_csv_has_full_numbers(values, cells, tmp_path):
    made(tmp_path, SPEC, values, cells)
    found = pd.read_csv(tmp_path / "t.csv").set_index(["dataset", "method"])
    own = found.loc[("town", "own")]
    assert own[["sse mean", "sse best", "sse reported", "starts", "verdict"]].to_list() == [
        100.5, 100.0, 100.5, 2, "reproduced"
    ]  # fmt: skip
    assert own["sse sd"] == pytest.approx(0.5**0.5)
    assert found.loc[("village", "own"), "stands in for"] == "town"
    assert pd.isna(found.loc[("town", "mine"), "verdict"])


def test_two_lambdas_of_a_method(tmp_path):
    values = reported(tmp_path, "own,sse,100.0", "1,town,10,8,own,sse,120.0,", lam=4)
    cells = frame([*starts("own", [100.0], lam=4), *starts("own", [120.0], lam=8)])
    text = made(tmp_path, {}, values, cells)
    assert "100.0 (100.0; 0.0 %)" in text and "120.0 (120.0; 0.0 %)" in text
    assert r"\toprule" in (tmp_path / "t.tex").read_text()


def test_a_table_without_any_cell_is_made(values, cells, tmp_path):
    text = made(tmp_path, {}, values, cells[:0])
    assert "not run" in text and "the data set is not in this run" in text


def test_values_as_text():
    def text(metric, reported, decimals, mean=np.nan, sd=np.nan, **more):
        ours = Spread(mean, sd, more.get("low", np.nan), more.get("high", np.nan))
        program = more.get("program", Spread())
        return value_text(Value(metric, reported, decimals, ours, program), "labels")

    assert text("sse", 100.0, 0, 100.26, 2.0, low=98.0) == "100.3 ± 2.0, best 98.0 (100; +0.3 %)"
    assert text("balance", 0.5, 2, 0.25, 0.01, low=0.2, high=0.26) == "0.2500 ± 0.0100 (0.50)"
    labels = Spread(101.0, n=1)
    assert text("sse", 100.0, 0, 100.26, 2.0, program=labels) == "100.3 ± 2.0 (100; +0.3 %; labels 101.0)"
    assert text("sse", 1116700.0, -2) == "– (1,116,700)"
    assert text("n_nodes", 5678.0, 0, 5576.0) == "5,576 (5,678)"
    assert text("balance", np.nan, 0, 0.25) == "0.2500"


def test_the_overview_has_one_row_for_each_method(tmp_path):
    cells = frame(
        [
            *tradeoff("town", "own", lams=(0, 1, 2), seeds=3),
            *tradeoff("town", "plain", seeds=2),
            *tradeoff("town", "own", 5, lams=(0, 1), seeds=3),
        ]
    )
    make_overview(cells, 0.05, NAMES, tmp_path / "overview")
    found = pd.read_csv(tmp_path / "overview.csv")
    assert not found.duplicated(["dataset", "n_clusters", "method"]).any() and len(found) == 3
    own = found.set_index(["n_clusters", "method"]).loc[(10, "own")]
    of_lam = cells[(cells.n_clusters == 10) & (cells.method == "own") & (cells.lam == own.lam)]
    assert own.sse == pytest.approx(of_lam.sse.mean())
    assert own["sse sd"] == pytest.approx(of_lam.sse.std())
    assert own["sse best"] == of_lam.sse.min()
    assert own.starts == 3 and own.fairness_error <= 0.05
    text = (tmp_path / "overview.md").read_text()
    assert "The level is 0.05." in text and "Town, Plain: no setting of the grid reaches the level" in text
