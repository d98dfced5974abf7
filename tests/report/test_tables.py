import pandas as pd
import pytest
from a_paper import NAMES, reported, table
from frames import frame, starts

from fairclust.pipeline.papers import TableSpec
from fairclust.pipeline.plan import plain
from fairclust.pipeline.reported import load_reported
from fairclust.report.material import Material
from fairclust.report.printed import printed
from fairclust.report.tables import evidence_of, load_evidence, make_table
from fairclust.report.verdicts import table_rows


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
        ]
    )


SPEC = {
    "match": {"fairness": "fairness_error", "order": "sse"},
    "ours": ["mine"],
    "beside": ["seconds"],
    "remarks": ["A remark."],
    "reasons": [{"method": "rival", "reason": "other starts"}],
}


def made(folder, spec, values, cells):
    # A job gets the specification as plain data.
    spec = TableSpec.model_validate(plain(table(**spec)))
    material = Material(values, cells, pd.DataFrame(), NAMES, paper="paper", title="P & Q")
    make_table(material, spec, folder / "t")
    return (folder / "t.md").read_text()


def rows_in(text):
    """Return the rows of the tables in a Markdown text, as lists of their cells."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]


def test_ours_stand_in_further_columns_and_what_differs_below(values, cells, tmp_path):
    text = made(tmp_path, SPEC, values, cells)
    assert text.startswith("# P &amp; Q, Table 1: A table\n")
    rows = rows_in(text)
    assert rows[0] == ["", "SSE", "", "Fairness error", "", "Mine", ""]
    # Our methods have neither reported values nor verdicts.
    assert ["Town", "100.5✓", "220.0–", "0.10✓", "0.50≠", "96.0", "0.10"] in rows
    # What the paper does not print is a dash.
    assert ["City", "–", "", "", "", "", ""] in rows
    assert "- A remark." in text
    found = "no setting of the grid has the reported fairness (less fair, dearer): conjecture: other starts"
    assert f"- ≠ Town, Rival: {found}." in text


def test_a_fairness_that_chose_the_setting_has_a_sign_of_its_own(values, cells, tmp_path):
    fair = frame(starts("rival", [185.0, 187.0], fairness_error=0.3))
    layout = {"rows": {"Town": {"dataset": "town"}}, "bold": True}
    layout["columns"] = [{"SSE": {"metric": "sse"}, "Error": {"metric": "fairness_error"}}]
    layout["columns"].append({"Theirs": {"method": "rival"}, "Own": {"method": "own"}})
    others = cells[cells.method != "rival"]
    text = made(tmp_path, {**SPEC, "layout": layout}, values, pd.concat([others, fair], ignore_index=True))
    # The costs differ, and the smaller one is bold.
    assert ["Town", "186.0✓", "**100.5**✓", "0.30°", "0.10✓", "96.0", "0.10"] in rows_in(text)
    assert "- ° The paper does not publish this setting." in text
    assert "- ✓ Town, Rival: as fair as reported, and at a lower cost: conjecture: other starts." in text


LAYOUT = {
    "corner": "Data",
    "bold": True,
    "rows": {"Town (λ = 4)": {"dataset": "town"}, "Far | off": {"The city": {"dataset": "city"}}},
    "columns": [
        {"Cost / error": {"metric": ["sse", "fairness_error"], "form": "{} [{}]", "unit": 10}},
        {"Theirs": {"method": "rival"}, "Ours": {"method": "own"}},
    ],
}


def test_a_table_has_the_layout_of_the_paper(values, cells, tmp_path):
    text = made(tmp_path, {**SPEC, "layout": LAYOUT}, values, cells)
    rows = rows_in(text)
    assert rows[0] == ["Data", "Cost / error", "", "Mine"]
    assert rows[2] == ["", "Theirs", "Ours", "Cost / error"]
    # The unit moves the decimal point. The best value of each metric is bold, ours apart from the reported ones, but
    # not where a value of ours chose the setting. Signs that differ stand at their numbers.
    assert rows[3:5] == [
        ["Town (λ = 4)", "22.00– [0.050≠]", "**10.05** [0.010]✓", "9.60 [0.010]"],
        ["reported", "20.00 [0.030]", "**10.05** [**0.010**]", ""],
    ]
    # What stands in a heading is no markup.
    assert r"| **Far \| off** | | | |" in text and rows[6] == ["The city", "", "–", ""]
    assert "without a place" not in text
    less = {**LAYOUT, "columns": [{"Cost": {"metric": "sse"}}, *LAYOUT["columns"][1:]]}
    less = made(tmp_path, {**SPEC, "layout": less}, values, cells)
    assert "- 2 reported values without a place in this layout; the evidence has them all." in less
    made(tmp_path, {**SPEC, "layout": LAYOUT}, values, cells)
    csv = pd.read_csv(tmp_path / "t.csv", keep_default_na=False).iloc[0]
    assert csv["Cost / error, Ours"] == "10.05 [0.010]" == csv["Cost / error, Ours: reported"]
    assert csv["Cost / error, Theirs: verdict"] == "differs"
    latex = (tmp_path / "t.tex").read_text()
    assert r"\multicolumn{2}{c}{Cost / error} & \multicolumn{1}{c}{Mine} \\" in latex
    assert r"\textbf{10.05} [0.010]$\checkmark$" in latex and r"22.00-- [0.050$\neq$]" in latex


def test_a_layout_that_does_not_tell_values_apart_is_refused(values, cells, tmp_path):
    layout = {**LAYOUT, "columns": [{"Cost": {"metric": "sse"}}]}
    with pytest.raises(ValueError, match=r"layout of table 1 shows several values in one cell"):
        made(tmp_path, {**SPEC, "layout": layout}, values, cells)


def test_the_evidence_has_full_numbers(values, cells, tmp_path):
    made(tmp_path, SPEC, values, cells)
    found = load_evidence([tmp_path / "t.evidence.csv"]).set_index(["dataset", "method", "metric"])
    own = found.loc[("town", "own", "sse")]
    assert own[["mean", "low", "reported", "seeds", "seeds_asked", "verdict"]].to_list() == [
        100.5, 100.0, 100.5, 2, 2, "agrees"
    ]  # fmt: skip
    assert own["sd"] == pytest.approx(0.5**0.5) and own.setting == "λ = 4"
    mine = found.loc[("town", "mine", "sse")]
    assert (mine.role, mine.verdict) == ("ours", "")
    assert found.loc[("town", "own", "seconds"), "value_verdict"] == ""


def test_the_layouts_of_the_papers_show_every_reported_value_once(catalogue, root):
    for name, paper in catalogue.papers.items():
        values = load_reported(root / f"config/papers/{name}.csv")
        for spec in paper.tables.values():
            lines = evidence_of(name, spec, table_rows(spec, values, frame(starts("x", [1.0]))[:0]))
            shown = printed(spec, lines, "", NAMES, [])
            n_reported = sum(
                len(cell.reported) for part in shown.parts for _, row in part.rows for cell in row
            )
            assert spec.layout and n_reported == (values.table == spec.number).sum(), (name, spec.number)
            assert max(map(len, shown.markdown().splitlines())) <= 100
