"""Raw tables: which files are read, the kind of each column, and the matrix of features."""

import io
import sys

import numpy as np
import pandas as pd
import pytest

from fairclust.tables import TableError, cross, group_columns, make_preparation, read_table, understand

N = 200


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "person": [f"P{i}" for i in rng.permutation(N)],
            "number": rng.permutation(N) + 1000,
            "age": rng.normal(40, 12, N).round(1),
            "income": [f"{x:,}" for x in rng.integers(800, 90_000, N)],
            "education": rng.choice(["primary", "secondary", "degree"], N),
            "member": rng.random(N) < 0.5,
            "joined": pd.Series(pd.date_range("2020-01-01", periods=N)).dt.strftime("%Y-%m-%d"),
            "country": "UK",
            "population": rng.permutation(10**6)[:N] * 7 + 3,
        }
    )


def roles(frame, **options):
    return {column.name: (column.role, column.note) for column in understand(frame, **options)}


def test_each_column_is_understood(people):
    found = roles(people)
    kinds = {name: role for name, (role, _) in found.items()}
    assert {name for name, role in kinds.items() if role == "number"} == {"age", "income", "population"}
    assert {name for name, role in kinds.items() if role == "category"} == {"education", "member"}
    assert "identifier" in found["person"][1]
    assert "identifier" in found["number"][1]
    assert "dates, such as '2020-01-01'" in found["joined"][1]
    assert found["country"][1] == "constant"
    assert "is read as" in found["income"][1]


def test_columns_that_are_asked_for_are_taken(people):
    found = roles(people, features=["number", "age"], categories=["age"])
    assert {name: role for name, (role, _) in found.items()} == {"number": "number", "age": "category"}
    with pytest.raises(TableError, match="'person' cannot be a feature: an identifier"):
        understand(people, features=["person"])


def test_a_column_with_a_few_cells_that_are_no_numbers_names_the_first(people):
    people.loc[7, "income"] = "about 3"
    role, note = roles(people)["income"]
    assert role == "left out"
    assert "1 cells are not numbers, the first is 'about 3' in data row 8" in note


def test_measurements_are_no_identifiers():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"weight": rng.normal(size=N), "salary": rng.permutation(200_000)[:N]})
    assert {role for role, _ in roles(frame).values()} == {"number"}


def test_signs_of_numbers(people):
    german = people.assign(income=["1.234,5"] * (N // 2) + ["17,25"] * (N // 2))
    column = next(c for c in understand(german, decimal=",") if c.name == "income")
    assert column.role == "number"
    X = make_preparation([column], scale="none", decimal=",").fit_transform(german)
    assert set(X[:, 0]) == {1234.5, 17.25}


@pytest.mark.parametrize("cell, option", [("{},5", "--decimal ,"), ("{}'500", '--thousands "\'"')])
def test_a_column_with_other_signs_says_which_option_reads_it(people, cell, option):
    for values in (range(100, 100 + N), [*range(100, 110)] * (N // 10)):
        note = roles(people.assign(income=[cell.format(value) for value in values]))["income"][1]
        assert f"such as {cell.format(100)!r}, which {option} would read" in note
    assert "would read" not in str(roles(people))


def test_preparation(people):
    people.loc[:3, "age"] = np.nan
    people.loc[4:9, "education"] = None
    columns = understand(people)
    X = make_preparation(columns, scale="none").fit_transform(people)
    names = make_preparation(columns, scale="none").fit(people).get_feature_names_out()
    assert list(names[:3]) == ["age", "income", "population"]
    assert len(names) == X.shape[1] == 3 + 3 + 2
    np.testing.assert_array_equal(X[:4, 0], people.age.median())
    np.testing.assert_array_equal(X[:, 1], people.income.str.replace(",", "").astype(float))
    assert set(np.unique(X[:, 3:])) == {0.0, 1.0}
    # Two rows in different categories are as far apart as two rows usually are in a standardised number.
    scaled = make_preparation(columns).fit_transform(people)
    np.testing.assert_allclose(scaled[:, :3].std(axis=0), 1)
    group = make_preparation(columns, missing="group").fit_transform(people)
    assert group.shape[1] == X.shape[1] + 2  # which ages are missing, and the category of no education
    lengths = np.linalg.norm(make_preparation(columns, scale="l2").fit_transform(people), axis=1)
    np.testing.assert_allclose(lengths, 1)


def test_new_rows_are_prepared_as_the_old_ones(people):
    columns = understand(people)
    preparation = make_preparation(columns).fit(people)
    new = people.head(5).assign(education="doctorate")
    old = preparation.transform(people.head(5))
    one = preparation.transform(new)
    np.testing.assert_array_equal(old[:, :3], one[:, :3])
    assert (one[:, 3:6] == 0).all()  # a new category is none of the known ones
    with pytest.raises(TableError, match="'income' has 5 cells that are not numbers"):
        preparation.transform(new.assign(income="many"))


def test_many_categories_share_one_column():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"town": rng.integers(0, 80, 1000).astype(str) + "x", "age": rng.normal(size=1000)})
    columns = understand(frame)
    assert "49 most frequent" in next(c.note for c in columns if c.name == "town")
    assert make_preparation(columns).fit_transform(frame).shape[1] == 51


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


def test_standard_input(people, monkeypatch):
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(people.to_csv(index=False, sep=";").encode()))
    )
    assert len(read_table("-").columns) == len(people.columns)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is empty"),
        (b"a,b\n", "has a header and no rows"),
        (b"1.5,2.5\n3,4\n", "the first line of .* looks like data"),
        (b"a,b\n1,2\n1,2,3\n", "Expected 2 fields in line 3, saw 3"),
        ("a,b\nfräulein,1\n".encode("latin-1"), "--encoding latin-1"),
        ("a,b\nx,1\n".encode("utf-16"), "--encoding utf-16"),
    ],
)
def test_bad_files(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_bytes(text)
    with pytest.raises(TableError, match=message):
        read_table(path)


def test_groups():
    frame = pd.DataFrame({"sex": [1.0, 2.0, np.nan], "race": ["a", " b", "c"]})
    groups = group_columns(frame, ["sex", "race"])
    assert cross(groups).tolist()[:2] == ["1 & a", "2 & b"]
    assert cross(groups).isna().tolist() == [False, False, True]
    assert cross(group_columns(frame, ["sex"], missing_is_group=True)).tolist() == ["1", "2", "missing"]
    with pytest.raises(TableError, match="no sensitive column 'age'"):
        group_columns(frame, ["age"])
