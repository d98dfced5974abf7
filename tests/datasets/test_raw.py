"""Tables whose features are not listed: roles of columns, missing cells, groups in another file."""

import numpy as np
import pandas as pd
import pytest
from small_files import prepare_files

from fairclust import PriceFairKMeans
from fairclust.cli import main
from fairclust.datasets.errors import DatasetError

N = 120


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": np.arange(1000, 1000 + N),
            "age": rng.normal(40, 10, N).round(2),
            "job": rng.choice(["baker", "nurse", "pilot"], N),
            "constant": 7,
            "sex": rng.choice(["f", "m"], N),
        }
    )


def prepare(folder, people, groups=None, **changes):
    """Prepare a table whose features are not listed. Its groups can be in a file of their own."""
    sources, sensitive = {"mine": people}, {"column": "sex"}
    if groups is not None:
        sources["mine.groups"] = groups
        sensitive |= {"source": {"path": "groups.csv"}}
    spec = {"title": "Mine", "source": {"path": "people.csv"}, "sensitive": sensitive, "n_clusters": 3}
    return prepare_files(folder, "mine", spec | changes, sources)


def test_identifiers_and_constants_are_left_out_with_the_reason(tmp_path, people):
    data = prepare(tmp_path, people)
    assert data.feature_names == ("age", "job_baker", "job_nurse", "job_pilot")
    assert set(data.card["left_out"]) == {"id", "constant"}
    assert "identifier" in data.card["left_out"]["id"] or "counts" in data.card["left_out"]["id"]
    assert [group["name"] for group in data.card["groups"]] == ["f", "m"]
    np.testing.assert_array_equal(data.groups, (people.sex == "m").astype(int))
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1)


def test_the_command_fit_prepares_a_table_in_the_same_way(tmp_path, people, capsys):
    data = prepare(tmp_path, people)
    table, out = tmp_path / "mine.csv", tmp_path / "out.csv"
    words = ["fit", table, "--sensitive", "sex", "--n-clusters", 3, "--scale", "l2", "--out", out]
    assert main(list(map(str, words))) == 0, capsys.readouterr().err
    labels = PriceFairKMeans(3, random_state=0).fit_predict(data.X, sensitive_features=data.groups)
    found = pd.read_csv(out).cluster.to_numpy()
    assert len(set(zip(labels, found, strict=True))) == 3


def test_every_column_with_missing_cells_is_named_at_once(tmp_path, people):
    people.loc[:4, "age"] = np.nan
    people.loc[10:12, "job"] = None
    people.loc[20, "sex"] = None
    with pytest.raises(DatasetError, match=r"age \(5\), job \(3\), sex \(1\).*'missing: impute'"):
        prepare(tmp_path, people)
    dropped = prepare(tmp_path, people, missing="drop")
    assert dropped.card["rows"] == N - 9
    imputed = prepare(tmp_path, people, missing="impute", scale="none")
    assert imputed.card["rows"] == N - 1  # the row without a group
    kept = people.sex.notna()
    np.testing.assert_allclose(imputed.X[:5, 0], people.age[kept].median())


def test_decimal_commas_and_other_delimiters(tmp_path, people):
    plain = prepare(tmp_path, people)
    text = people.to_csv(sep=";", decimal=",", index=False)
    # Both signs can be stated, and are found otherwise.
    for reader in ({}, {"decimal": ","}, {"sep": ";", "decimal": ","}):
        np.testing.assert_array_equal(prepare(tmp_path, text, reader=reader).X, plain.X)


@pytest.mark.parametrize(
    "text, advice",
    [
        ("age,sex\n1,\udcff\n", "set 'encoding' in 'reader' to latin-1"),
        ("age;town,sex\n1,f\n2\n", "is ',' the right 'sep' in 'reader'"),
        ("-1.5,f\n2,m\n", "set 'header: false' in 'reader'"),
    ],
)
def test_advice_names_keys_of_the_data_set_and_no_options_of_the_command(tmp_path, text, advice):
    with pytest.raises(DatasetError, match=advice):
        prepare(tmp_path, text)


@pytest.mark.parametrize("features", [{}, {"features": ["age"]}])
@pytest.mark.parametrize("delimiter", ",;\t|")
def test_the_delimiters_of_table_and_groups_are_found(tmp_path, people, delimiter, features):
    table, groups = people.drop(columns="sex"), people[["sex"]].assign(note="x")
    expected = prepare(tmp_path, table, groups, **features)
    own = groups.to_csv(sep=delimiter, index=False)
    for text in (table.to_csv(index=False), table.to_csv(sep=delimiter, index=False)):
        found = prepare(tmp_path, text, own, **features)
        np.testing.assert_array_equal(found.X, expected.X)
        np.testing.assert_array_equal(found.groups, expected.groups)
    # A stated separator holds for both files.
    with pytest.raises(DatasetError, match="sep"):
        prepare(tmp_path, table, groups, reader={"sep": ":"}, **features)


def test_the_words_of_a_group_are_not_cut_apart(tmp_path, people):
    groups = "marital status\n" + "never married\nonce married\n" * (N // 2)
    sensitive = {"column": "marital status", "source": {"path": "groups.csv"}}
    data = prepare(tmp_path, people.drop(columns="sex"), groups, sensitive=sensitive)
    assert data.group_names == ("never married", "once married")


@pytest.mark.parametrize("features", [{}, {"features": ["age"]}])
@pytest.mark.parametrize(
    "change, message",
    [
        (lambda g: g, "has a column of the table.*write the groups into the table"),
        (lambda g: g.rename(columns={"id": "number"})[1:], "another number of rows.*expected 120 rows"),
        (lambda g: g.drop(columns="sex"), "no such column"),
    ],
)
def test_groups_that_do_not_fit_the_table_are_refused(tmp_path, people, change, message, features):
    groups = change(people[["id", "sex"]])
    with pytest.raises(DatasetError, match=message):
        prepare(tmp_path, people.drop(columns="sex"), groups, **features)


def test_truth_and_dropped_rows(tmp_path, people):
    people["town"] = np.where(np.arange(N) % 2, "north", "south")
    people["cluster"] = np.arange(N) % 4
    data = prepare(tmp_path, people, truth="cluster", drop_rows={"job": ["pilot"]})
    kept = people.job != "pilot"
    np.testing.assert_array_equal(data.truth, people.cluster[kept])
    assert data.card["dropped"] == [{"column": "job", "value": "pilot", "rows": int((~kept).sum())}]


def test_a_table_without_any_feature_says_why(tmp_path, people):
    with pytest.raises(DatasetError, match=r"no column is left to cluster by \(id: .*constant: constant"):
        prepare(tmp_path, people[["id", "constant", "sex"]])
