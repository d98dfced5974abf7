"""Raw tables: which files are read, the kind of each column, and the matrix of features."""

import gzip
import importlib.util
import lzma
import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from fairclust.messages import UserError
from fairclust.tables import TableError, cross, decide, numbers, read_table
from fairclust.tables.columns import Asked, understand
from fairclust.tables.preparation import Preparation, encoded_names

N = 200


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "Unnamed: 0": range(N),
            "person": [f"P{i}" for i in rng.permutation(N)],
            "number": rng.permutation(N) + 1000,
            "age": rng.normal(40, 12, N).round(1),
            "income": [f"{x:,}" for x in rng.integers(800, 90_000, N)],
            "education": rng.choice(["craft", "science", "none"], N),
            "member": rng.random(N) < 0.5,
            "joined": pd.Series(pd.date_range("2020-01-01", periods=N)).dt.strftime("%Y-%m-%d"),
            "country": "UK",
            "population": rng.permutation(10**6)[:N] * 7 + 3,
        }
    )


def roles(frame, **options):
    return {column.name: (column.role, column.note) for column in understand(frame, Asked(**options))}


def test_each_column_is_understood(people):
    found = roles(people)
    kinds = {name: role for name, (role, _) in found.items()}
    assert {name for name, role in kinds.items() if role == "number"} == {"age", "income", "population"}
    assert {name for name, role in kinds.items() if role == "category"} == {"education", "member"}
    assert "identifier" in found["person"][1]
    assert "identifier" in found["number"][1]
    assert found["Unnamed: 0"][1] == "it has no name"
    assert "dates, such as '2020-01-01'" in found["joined"][1]
    assert found["country"][1] == "constant"
    assert "is read as" in found["income"][1]


def test_columns_that_are_asked_for_are_taken(people):
    found = roles(people, features=["number", "age"], categories=["age"])
    assert {name: role for name, (role, _) in found.items()} == {"number": "number", "age": "category"}
    with pytest.raises(TableError, match="'person' cannot be a feature: an identifier"):
        understand(people, Asked(features=["person"]))


def prepared(frame, **options):
    """Return the matrix of features, and the names of its columns."""
    preparation = decide(frame, [], **options).preparation
    return preparation.transform(frame), encoded_names(preparation.columns)


def test_preparation(people):
    people.loc[:3, "age"] = np.nan
    people.loc[4:9, "education"] = None
    X, names = prepared(people, scale="none")
    assert list(names[:3]) == ["age", "income", "population"]
    assert len(names) == X.shape[1] == 3 + 3 + 2
    np.testing.assert_array_equal(X[:4, 0], people.age.median())
    np.testing.assert_array_equal(X[:, 1], people.income.str.replace(",", "").astype(float))
    assert set(np.unique(X[:, 3:])) == {0.0, 1.0}
    # Two rows in different categories are as far apart as two rows usually are in a standardised number.
    scaled, _ = prepared(people)
    np.testing.assert_allclose(scaled[:, :3].std(axis=0), 1)
    people["ticked"] = people["member"].map({True: "x"})
    group, _ = prepared(people, missing="group")
    # Which ages are missing, the category of no education, and a box that is ticked or not.
    assert group.shape[1] == X.shape[1] + 4 and prepared(people)[0].shape[1] == X.shape[1]


def test_new_rows_are_prepared_as_the_old_ones(people):
    preparation = decide(people, []).preparation
    new = people.head(5).assign(education="doctorate")
    old = preparation.transform(people.head(5))
    one = preparation.transform(new)
    np.testing.assert_array_equal(old[:, :3], one[:, :3])
    assert (one[:, 3:6] == 0).all()  # a new category is none of the known ones
    with pytest.raises(TableError, match=r"'income' has 5 cells that are not numbers.*Fix: write them"):
        preparation.transform(new.assign(income="many"))


def test_many_categories_share_one_column():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"town": [f"town {i}" for i in rng.integers(0, 80, 1000)], "age": rng.normal(size=1000)}
    )
    columns = understand(frame)
    assert "49 most frequent" in next(c.note for c in columns if c.name == "town")
    assert prepared(frame)[0].shape[1] == 51


@pytest.mark.parametrize(
    "name", ["t.csv", "t.csv.gz", "t.csv.bz2", "t.csv.xz", "t.parquet", "t.feather", "t.xlsx"]
)
def test_kinds_of_files(people, tmp_path, name):
    path = tmp_path / name
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
        people.to_excel(path, index=False)
    elif name.endswith("parquet"):
        people.to_parquet(path)
    elif name.endswith("feather"):
        people.to_feather(path)
    else:
        people.to_csv(path, index=False)
    pd.testing.assert_frame_equal(read_table(path), people, check_dtype=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is empty"),
        (b"a,b\n", "has a header and no rows"),
        (b"\n \n", "is empty"),
        (b"\n<html><table>\n<tr><td>a</td></tr>", "is HTML or XML. Fix: open it in a spreadsheet"),
        (b"a,b\n1,2\n1,2,3\n", "line 3 has 3 cells, but the first row has 2"),
        (b'a,b\n1,"2\n2"\n\n1\n', "line 5 has 1 cells, but the first row has 2"),
        (b"a,b\n1,2,3\n1,2,3\n", "line 2 has 3 cells, but the first row has 2. Fix: .* give every column a name"),
        (b"a,b\n1 2\n2\n", "line 2 has 1 cells, but the first row has 2.*$"),
        (b"a,b,a \n1,2,3\n", "has the column 'a' twice, as columns 1 and 3"),
        ("\ufeffé,e\u0301\n1,2\n".encode(), "has the column 'é' twice, as columns 1 and 2"),
        (b"a,b\n1,2\n3,4\0\n", "line 3 has a NUL character"),
        ("a,b\nx,1\n".encode("utf-16-le"), "line 1 has a NUL character.*--encoding utf-16"),
        (b'a,b\n1,2\n"3,4\n5,6\n', "line 3 cannot be cut into cells: .* Fix: close every quote"),
        ("a,b\nfräulein,1\n".encode("latin-1"), "--encoding cp1252"),
        (b"\xff\xfea\0,", "cp1250 or utf-16"),
    ],
)  # fmt: skip
def test_bad_files(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_bytes(text)
    with pytest.raises(TableError, match=message):
        read_table(path)


@pytest.mark.parametrize(
    ("column", "cells", "n_rows"),
    [
        ("g", ["f", "m", "f", "Total"], 3), ("g", ["f", "m", "Summe:"], 2), ("x", ["1", "2", "Gesamt"], 2),
        ("g", ["f", "m", "Total (n = 2)"], 2),
        ("g", ["f", "total", "m"], 3), ("g", ["total", "f", "total"], 3),
    ],
)  # fmt: skip
def test_a_last_row_of_totals_is_left_out(tmp_path, column, cells, n_rows):
    rows = "".join(f"{cell},1\n" if column == "g" else f"f,{cell}\n" for cell in cells)
    frame = read_text(tmp_path, f"g,x\n{rows}")
    assert len(frame) == n_rows
    note = f"the last row is left out, because {cells[-1]!r} in {column} says that it has totals"
    assert frame.attrs["notes"] == ([note] if n_rows < len(cells) else [])
    # Empty rows may follow, and each of several files may have such a row.
    (tmp_path / "u.csv").write_text(f"g,x\n{rows},\n,\n")
    assert len(read_table(tmp_path / "*.csv")) == 2 * n_rows
    (tmp_path / "u.csv").write_text(f"g,x\n{rows}{rows}")  # has the word among its other rows
    assert len(read_table(tmp_path / "*.csv")) == 3 * len(cells)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv.gz", gzip.compress(b"a,b\n" + b"%d,1\n" % 3**40 * 999, mtime=0)[:-12]),
        ("t.csv.gz", gzip.compress(b"a,b\n\xff,1\n" + random.Random(0).randbytes(99), mtime=0)[:-40]),
        ("t.csv.xz", lzma.compress(b"a,b\n1,2\n")[:-12]),
        ("t.csv.gz", b"a,b\n1,2\n"),
        ("t.parquet", b"PAR1 and more PAR1"),
        ("t.feather", b"ARROW1"),
        ("t.xlsx", b"PK\3\4"),
    ],
    ids=["gzip", "gzip of bytes", "xz", "no gzip", "Parquet", "Feather", "Excel"],
)
def test_damaged_files(tmp_path, name, content):
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TableError, match=r"cannot be read as a table: |is no utf-8 text"):
        read_table(path)


def read_text(tmp_path, text, **options):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return read_table(path, **options)


def test_lines_are_cut_as_the_csv_module_cuts_them(tmp_path):
    text = 'a,b,c\r\n"x, ""y""\nz",1,5" wide\r\n\r\n q , 2,"t"\r\n'
    frame = read_text(tmp_path, text, values=["a", "c"])
    assert frame.to_numpy().tolist() == [['x, "y"\nz', 1, '5" wide'], ["q", 2, "t"]]


@pytest.mark.parametrize(
    ("cells", "values", "note"),
    [
        (["1", "1.0", "2", "+2"], [1, 1, 2, 2], None),
        (["1", "01", "1.0", "2"], ["1", "01", "1.0", "2"], None),
        (["12345678901234567", "12345678901234568"], ["12345678901234567", "12345678901234568"], None),
        (["1", "1.0", "x", "1_0"], ["1", "1.0", "x", "1_0"], None),
        (["e\u0301", "é", "f", " f "], ["é", "é", "f", "f"], "g: 'e\\u0301' and '\\xe9'"),
        (["TRUE", "x", "true"], ["True", "x", "True"], "g: 'TRUE' and 'true' are one value"),
        (["03.2020", "12.2021"], ["03.2020", "12.2021"], None),
        (["None", "null", "?", "f"], [None, None, None, "f"], None),
        (["inf", "x"], ["inf", "x"], None),
        (["\ufefff", "m", "\ufefff"], ["f", "m", "f"], None),
    ],
)
def test_values(tmp_path, cells, values, note):
    text = "g,x\n" + "".join(f'"{cell}",1\n' for cell in cells)
    frame = read_text(tmp_path, text, values=["g"])
    assert [None if pd.isna(value) else value for value in frame["g"]] == values
    assert (frame.attrs["spellings"] or [""])[0].startswith(note or "")
    # Columns that were text in the fit stay text, and identifiers stay as they are written.
    kept = read_text(tmp_path, text, values=["g"], texts=["g"])["g"].dropna()
    assert all(isinstance(value, str) for value in kept)
    ids = read_text(tmp_path, text, ids=["g"])["g"]
    assert ids.str.strip(" \ufeff").tolist() == [cell.strip(" \ufeff") for cell in cells]
    assert read_text(tmp_path, text, values=["g"], ids=["g"])["g"].equals(frame["g"])
    # The types of a Parquet file decide what is a number.
    path = tmp_path / "t.parquet"
    pd.DataFrame({"g": cells}).to_parquet(path)
    typed = read_table(path)["g"]
    assert typed.isna().tolist() == [value is None for value in values]
    assert typed.dropna().tolist() == kept.tolist()


@pytest.mark.parametrize(
    ("head", "row", "last"),
    [
        ("a;b", "1,5;2,25", [1.5, 2.25]),
        ("a\tb", "1,5\tx, y", [1.5, "x, y"]),
        ("name;pay", "Smith, John, Jr;3,5", ["Smith, John, Jr", 3.5]),
        ("Report, of 2020\n\na;b;c", "1,5;x;2,5", [1.5, "x", 2.5]),
        ("a,b,c", "1,u; v; w; x,3", [1, "u; v; w; x", 3]),
        ('"a;\nb;",c', "1,2", [1, 2]),
        ("age, in years;weight, in kg", "1,5;2,5", [1.5, 2.5]),
        ("<TICKER>,<PER>", "A,1", ["A", 1]),  # no markup
    ],
)
def test_the_delimiter_is_the_sign_that_all_lines_have_equally_often(tmp_path, head, row, last):
    frame = read_text(tmp_path, f"{head}\n" + f"{row}\n" * 9)
    assert len(frame) == 9 and frame.iloc[-1].tolist() == last


def test_three_digits_behind_every_point_are_thousands_beside_whole_numbers(tmp_path):
    rows = "g;pay;height\nf;950;1,78 m\nm;1.050;1,80 m\nf;12.300;1,6 m\n"
    for text in (rows, rows.replace(",", "."), rows.replace(",", "/").replace(".", ",")):
        frame = read_text(tmp_path, text)
        found = numbers(
            frame["pay"], understand(frame[["pay"]], Asked(decimal=frame.attrs["decimal"]))[0].reading
        )
        assert found.tolist() == [950, 1050, 12300]
        (tmp_path / "u.csv").write_text(text)
        assert read_table(tmp_path / "*.csv")["pay"].tolist() == [*frame["pay"]] * 2
    assert read_text(tmp_path, rows, decimal=".")["pay"].tolist() == [950, 1.05, 12.3]
    assert read_text(tmp_path, "g;x\nf;9\nm;1.05\nf;1.125\n")["x"].tolist() == [9, 1.05, 1.125]


def test_a_column_that_is_text_in_one_file_is_text_in_all(tmp_path):
    for name, weights in (("1", ["7,5", "71,125", "3,0"]), ("2", ["2,375", "k.A."])):
        (tmp_path / f"{name}.csv").write_text("g;w\n" + "".join(f"f;{weight}\n" for weight in weights))
    (tmp_path / "3.csv").write_text("g;w\n")  # a part without rows
    frame = read_table(tmp_path / "*.csv")
    assert frame["w"].tolist() == ["7,5", "71,125", "3,0", "2,375", "k.A."]
    for name, row in (("1", "f;1.200;4\n"), ("2", "f;1.400;3,5\n")):
        (tmp_path / f"{name}.txt").write_text(f"g;w;p\n{row * 3}")
    assert read_table(tmp_path / "*.txt")["w"].tolist() == ["1.200"] * 3 + ["1.400"] * 3
    frame = read_text(tmp_path, "g,member,x\nf,TRUE,1.5\nm,,2.5\nf,FALSE,1\n")
    assert decide(frame, ["g"]).preparation.texts == ["g"]


def test_values_that_are_no_names(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"g": ["m", "f\0"]}).to_parquet(path)
    with pytest.raises(TableError, match=r"column 'g' has a NUL character in 'f.x00'"):
        read_table(path)
    pd.DataFrame({"g": [["a"], ["b"]], "x": [1, 2]}).to_parquet(path)
    frame = read_table(path)
    with pytest.raises(TableError, match="cells of column 'g' are lists"):
        decide(frame, ["g"])
    assert roles(frame)["g"] == ("left out", "its cells are lists, not single values")


def test_columns_of_one_name_in_other_formats(tmp_path):
    table = pa.table([[1, 2], [3, 4], [5, 6]], names=["x", "a", "a"])
    pq.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.feather")
    found = ["t.parquet", "t.feather"]
    if importlib.util.find_spec("openpyxl"):
        found.append("t.xlsx")
        pd.DataFrame([["x", "a", "a"], [1, 3, 5]]).to_excel(tmp_path / "t.xlsx", header=False, index=False)
    for name in found:
        with pytest.raises(
            TableError, match=r"has the column 'a' twice, as columns 2 and 3|Multiple matches.*\(a\)"
        ):
            read_table(tmp_path / name)


def test_rows_of_a_frame_with_an_index_are_counted_from_the_first(tmp_path):
    frame = pd.DataFrame({"x": [1, 2]}, index=[7, 3])
    for names in ([None], ["__null_dask_index__"], [None, None]):
        frame.set_index([frame.index] * len(names)).rename_axis(names).to_parquet(tmp_path / "t.parquet")
        rows = read_table(tmp_path / "t.parquet")
        assert rows.index.tolist() == [0, 1] and rows.columns.tolist() == ["x"]
    # Other programs drop what pandas says of its index.
    pq.write_table(pa.table({"x": [1, 2], "__index_level_0__": [7, 3]}), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").columns.tolist() == ["x"]
    frame.rename_axis("person").to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").columns.tolist() == ["person", "x"]


def groups_of(frame, sensitive, missing="impute"):
    return Preparation([], sensitive, missing=missing).groups(frame)


def test_groups_whose_names_would_coincide_are_refused():
    two = pd.DataFrame({"a": ["x & y", "x"], "b": ["z", "y & z"]})
    with pytest.raises(UserError, match="two combinations of a and b have the name 'x & y & z'"):
        cross(two)
    infinite = pd.DataFrame({"a": [*range(50), np.inf]})
    with pytest.raises(TableError, match="column 'a' has inf in data row 51, which is too large"):
        decide(infinite.assign(x=np.arange(51) % 7 / 7), ["a"], bins=2)


def test_groups():
    frame = pd.DataFrame({"sex": [1.0, 2.0, np.nan], "race": ["a", " b", "c"]})
    groups = groups_of(frame, ["sex", "race"])
    assert cross(groups).tolist()[:2] == ["1 & a", "2 & b"]
    assert cross(groups).isna().tolist() == [False, False, True]
    assert cross(groups_of(frame, ["sex"], "group")).tolist() == ["1", "2", "missing"]
    with pytest.raises(TableError, match="no sensitive column 'age'"):
        groups_of(frame, ["age"])
