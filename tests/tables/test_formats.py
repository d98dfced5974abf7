"""Files of other programs: JSON, Stata, SPSS, SAS, ARFF, workbooks, and texts with lines above the header."""

import json

import numpy as np
import pandas as pd
import pytest

from fairclust.tables import TableError, numbers, read_table
from fairclust.tables.columns import understand

N = 30


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    ages = rng.integers(18, 80, N).astype(float)
    return pd.DataFrame(
        {"sex": rng.choice(["f", "m"], N), "age": ages, "town": rng.choice(["Köln", "Bonn"], N)}
    )


def same(frame, people):
    pd.testing.assert_frame_equal(frame[["sex", "age", "town"]], people, check_dtype=False)
    return frame.attrs["notes"]


@pytest.mark.parametrize("orient", ["records", "columns", "table"])
def test_json(people, tmp_path, orient):
    people.to_json(tmp_path / "t.json", orient=orient)
    same(read_table(tmp_path / "t.json"), people)


def test_other_json(people, tmp_path):
    people.to_json(tmp_path / "t.jsonl.gz", orient="records", lines=True)
    assert same(read_table(tmp_path / "t.jsonl.gz"), people) == []
    records = json.loads(people.to_json(orient="records"))
    (tmp_path / "t.json").write_text(json.dumps({"made": "today", "rows": records}))
    assert same(read_table(tmp_path / "t.json"), people) == ["the rows are those of the key 'rows'"]
    (tmp_path / "t.json").write_text(json.dumps([{"a": {"b": 1}, "sex": "f"}, {"a": {"b": 2}, "sex": "m"}]))
    assert read_table(tmp_path / "t.json").to_dict("list") == {"sex": ["f", "m"], "a.b": [1, 2]}
    (tmp_path / "t.json").write_text('{"a": {"b": 1}, "sex": "f"}')
    assert read_table(tmp_path / "t.json").to_dict("list") == {"sex": ["f"], "a.b": [1]}
    with pytest.raises(TableError, match=r"--header-row: means nothing for .*t\.json"):
        read_table(tmp_path / "t.json", header_row=2)
    (tmp_path / "t.json").write_text('[{"w": "1,234"}, {"w": "2,5"}]')
    assert read_table(tmp_path / "t.json", decimal=",").attrs["decimal"] == ","
    bad = {'"x"': "", '{"a": 1': "", "[1, 2]": "", '{"a": 1}\n\n{"a"': ".* line 3", '[\n{"a"}]': ".* line 2"}
    for text, reason in bad.items():
        (tmp_path / "t.json").write_text(text)
        with pytest.raises(TableError, match=rf"holds no table|cannot be read as a table{reason}"):
            read_table(tmp_path / "t.json")


@pytest.mark.parametrize("kind", ["sav", "dta"])
def test_labels_of_statistics_programs_are_values(people, tmp_path, kind):
    pyreadstat = pytest.importorskip("pyreadstat")
    codes = np.arange(N) % 3 + 1
    labels = {"level": {1: "low", 2: "None", 3: "NA"}}  # values, although such texts are missing elsewhere
    write = getattr(pyreadstat, f"write_{kind}")
    write(people.assign(level=codes), tmp_path / f"t.{kind}", variable_value_labels=labels)
    frame = read_table(tmp_path / f"t.{kind}")
    assert same(frame, people) == ["the labels of the codes are the values of level"]
    assert frame["level"].tolist() == [labels["level"][code] for code in codes]
    # If only the ends of a scale have labels, its values stay numbers.
    ends = {"level": {1: "bad", 3: "good"}}
    write(people.assign(level=codes), tmp_path / f"t.{kind}", variable_value_labels=ends)
    assert read_table(tmp_path / f"t.{kind}")["level"].tolist() == codes.tolist()


def test_sas_transport(people, tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    pyreadstat.write_xport(people, tmp_path / "t.xpt")
    same(read_table(tmp_path / "t.xpt"), people)


@pytest.mark.parametrize("comma", [",", ", "])
def test_arff(tmp_path, comma):
    text = """% a comment
@RELATION people

@attribute sex {f,m}
@ATTRIBUTE 'the age' REAL
@attribute\t"fee" numeric
@DATA
f,3,1

m,?,2
'f',5,3
"""
    (tmp_path / "t.arff").write_text(text.replace(",", comma))
    frame = read_table(tmp_path / "t.arff", values=["sex"])
    assert frame["sex"].tolist() == ["f", "m", "f"]
    assert frame["the age"].fillna(0).tolist() == [3, 0, 5] and frame["fee"].tolist() == [1, 2, 3]


@pytest.fixture
def workbook(people, tmp_path):
    pytest.importorskip("python_calamine")
    pytest.importorskip("openpyxl")
    title = pd.DataFrame([["Quarterly report"], ["2020"]])
    with pd.ExcelWriter(tmp_path / "t.xlsx") as file:
        title.to_excel(file, sheet_name="Summary", index=False, header=False)
        people.to_excel(file, sheet_name="Data", index=False, startrow=3)
        title[:1].to_excel(file, sheet_name="Data", index=False, header=False)
    return tmp_path / "t.xlsx"


def test_the_sheet_and_the_header_of_a_workbook_are_found_or_stated(people, workbook):
    notes = same(read_table(workbook, values=["sex"]), people)
    assert notes[0].startswith("the names of the columns are in row 4, below 1 other row")
    assert notes[1].startswith("the sheet 'Data' is read, and not 'Summary'")
    assert same(read_table(workbook, sheet="Data", header_row=4), people) == []
    same(read_table(workbook, sheet="Data"), people)
    with pytest.raises(TableError, match="has no sheet 'Dat'; did you mean 'Data'"):
        read_table(workbook, sheet="Dat")
    with pytest.raises(TableError, match="is empty from row 99 on"):
        read_table(workbook, sheet="Data", header_row=99)


@pytest.mark.parametrize(
    ("above", "sign", "note"),
    [
        ("# exported 2020-01-01, by me\n# twice\n", ",", "3, below 2 other rows, the first with '# exported"),
        ("Report of 2020\n", ",", "2, below 1 other row, the first with 'Report of 2020'"),
        ("Report;;\n\nof 2020;;\n", ";", "4, below 2 other rows"),
        ("sep=|\n", "|", ""),
    ],
)
def test_lines_above_the_header_of_a_text(people, tmp_path, above, sign, note):
    path = tmp_path / "t.csv"
    path.write_text(above + people.to_csv(index=False, sep=sign), encoding="utf-8")
    frame = read_table(path)
    notes = same(frame, people)
    assert notes[0].startswith(f"the names of the columns are in row {note}") if note else not notes
    # Lines are counted from the beginning of the file.
    path.write_text(path.read_text(encoding="utf-8") + f"f{sign}3\n", encoding="utf-8")
    with pytest.raises(TableError, match=f"line {above.count(chr(10)) + N + 2} has 2 cells"):
        read_table(path)


def test_rows_below_the_header_that_describe_the_columns_are_left_out(people, tmp_path):
    row = pd.DataFrame(
        [["What is your sex?", "years", "-"], ['{"ImportId":"Q1"}', '{"ImportId":"Q2"}', "where"]]
    )
    for n_rows in (0, 1, 2):
        above = row.head(n_rows).set_axis(people.columns, axis=1)
        pd.concat([above, people]).to_csv(tmp_path / "t.csv", index=False, encoding="utf-8")
        notes = same(read_table(tmp_path / "t.csv"), people)
        assert len(notes) == n_rows
        if n_rows == 1:
            assert notes[0].endswith("because it describes them, as 'What is your sex?' does")
            pytest.importorskip("openpyxl")
            pd.concat([above, people]).to_excel(tmp_path / "t.xlsx", index=False)
            assert same(read_table(tmp_path / "t.xlsx"), people) == notes
    # A first row of data has a value that occurs again, or stands above no numbers.
    people.assign(age=["unknown!", *people["age"].astype(str)[1:]]).to_csv(tmp_path / "t.csv", index=False)
    assert len(read_table(tmp_path / "t.csv")) == N


@pytest.mark.parametrize("footer", ["Source: the office\n(c) the office\n", "Source: the office,,\n\n"])
def test_rows_at_the_end_with_words_in_the_first_cell_are_left_out(people, tmp_path, footer):
    path = tmp_path / "t.csv"
    path.write_text(people.to_csv(index=False) + footer, encoding="utf-8")
    notes = same(read_table(path), people)
    assert notes[0].endswith("left out, because only the first cell has words, as 'Source: the office'")
    # Between rows of data such rows are data, or have cells too few.
    path.write_text(people.to_csv(index=False) + footer + "f,3,Bonn\n", encoding="utf-8")
    if ",," in footer:
        assert len(read_table(path)) == N + 2
    else:
        with pytest.raises(TableError, match="has 1 cells"):
            read_table(path)


def test_repeated_headers_and_rules_are_left_out(people, tmp_path):
    lines = people.to_csv(index=False).splitlines()
    for rule in ("---,---,---", "---,---,"):
        text = "\n".join([lines[0], rule, *lines[1:9], "\ufeff" + lines[0], *lines[9:]])
        (tmp_path / "t.csv").write_text(text, encoding="utf-8")
        notes = same(read_table(tmp_path / "t.csv"), people)
        assert notes == ["2 rows left out, with the names of the columns again, or of dashes"]


def test_thousands_in_a_sheet_of_texts(tmp_path):
    pytest.importorskip("openpyxl")
    texts = pd.DataFrame({"sex": ["f", "m"] * 30, "löhne": ["1.050", "950"] * 30})
    texts.to_excel(tmp_path / "t.xlsx", index=False)
    frame = read_table(tmp_path / "t.xlsx", encoding="cp1252")
    assert numbers(frame["löhne"], understand(frame)[1].reading)[:2].tolist() == [1050, 950]
    # Numbers of a sheet have their decimals.
    texts.assign(löhne=[1.125, 950] * 30).to_excel(tmp_path / "t.xlsx", index=False)
    for decimal in (None, ","):
        assert read_table(tmp_path / "t.xlsx", decimal=decimal)["löhne"][:2].tolist() == [1.125, 950]


def test_text_under_another_name_and_encoding(people, tmp_path):
    text = people.to_csv(index=False)
    (tmp_path / "t.xls").write_text(text, encoding="utf-8")
    (tmp_path / "t.csv").write_text(text, encoding="utf-16")
    assert same(read_table(tmp_path / "t.xls"), people) == same(read_table(tmp_path / "t.csv"), people) == []
    people.to_csv(tmp_path / "t.zip", index=False)
    with pytest.raises(TableError, match=r"is no utf-8 text\. .* unpack an archive"):
        read_table(tmp_path / "t.zip")


@pytest.mark.parametrize(
    ("top", "below", "names"),
    [
        (["who", "", "where"], ["sex", "age", ""], ["who sex", "who age", "where"]),
        (
            ["", "22", "", "", "23", ""],
            ["sex", "age", "town", "x", "age", "town"],
            ["sex", "22 age", "22 town", "22 x", "23 age", "23 town"],
        ),
        (["22", "22", ""], ["sex", "age", "town"], ["22 sex", "22 age", "22 town"]),
    ],
)
def test_names_in_two_rows_are_joined(people, tmp_path, top, below, names):
    rows = [top, below, *([*row, *row][: len(top)] for row in people.astype(str).to_numpy().tolist())]
    (tmp_path / "t.csv").write_text("\n".join(map(";".join, rows)), encoding="utf-8")
    frame = read_table(tmp_path / "t.csv")
    assert [*frame] == names
    assert frame.attrs["notes"] == [
        f"the names of the columns are in two rows, as in '{max(names, key=len)}'"
    ]


def test_merged_cells_and_hidden_sheets(people, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    book = openpyxl.Workbook()
    book.active.sheet_state = "hidden"
    for i in range(10 * N):
        book.active.append([f"name {i}", i, i, i])
    sheet = book.create_sheet("Data")
    for row in [["sex", "age"], [None, "1.030,5"], *([None, age + 0.5] for age in people["age"][1:])]:
        sheet.append(row)
    for first, last, word in ((2, 11, "f"), (12, N + 1, "m")):
        sheet.cell(first, 1, word)
        sheet.merge_cells(start_row=first, end_row=last, start_column=1, end_column=1)
    book.save(tmp_path / "t.xlsx")
    frame = read_table(tmp_path / "t.xlsx")
    assert frame["sex"].tolist() == ["f"] * 10 + ["m"] * (N - 10)
    assert frame["age"].tolist() == [1030.5, *(people["age"][1:] + 0.5)]
    assert (
        frame.attrs["notes"][-1]
        == "cells of the sheet 'Data' that span several rows count for each of these rows"
    )


@pytest.mark.parametrize(
    ("codes", "steps"),
    [
        ({1: "sehr stark", 2: "etwas", 3: "keinesfalls"}, ["sehr stark", "etwas", "keinesfalls"]),
        ({1: "sehr stark", 2: "etwas", 3: "keinesfalls", -9: "k.A."}, ["sehr stark", "etwas", "keinesfalls"]),
        ({1: "sehr stark", 2: "etwas", 3: "keine"}, ["sehr stark", "etwas", "keine"]),
        ({1: "etwas", 2: "stark", 3: "sehr stark", 9: "keine"}, None),
        # What has no number beside the others is no step.
        ({1: "under 1000", 2: "1000 and more", 98: "not asked"}, None),
        ({"H": "viel", "L": "wenig", "M": "etwas"}, None),
    ],
)
def test_a_scale_of_spss_keeps_the_order_of_its_codes(people, tmp_path, codes, steps):
    pyreadstat = pytest.importorskip("pyreadstat")
    pyreadstat.write_sav(
        people.assign(level=np.resize([*codes], N)),
        tmp_path / "t.sav",
        variable_value_labels={"level": codes},
        variable_measure={"level": "ordinal"},
    )
    column = understand(read_table(tmp_path / "t.sav")[["level"]])[0]
    assert column.reading.get("levels") == steps


def test_the_header_line_of_a_text_can_be_stated(people, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n1,2,3\n" + people.to_csv(index=False), encoding="utf-8")
    same(read_table(path, header_row=3), people)
    # A title of several cells is followed by empty ones.
    path.write_text("Report,2020,,,\n,,,,\na,b,c,d,e\n1,2,3,4,6\n")
    assert [*read_table(path)] == [*"abcde"]
