"""Tables of a user: numbers without a list of features, and groups in another file."""

import numpy as np
import pandas as pd
import pytest
from small_files import prepare_files

from fairclust.datasets.errors import DatasetError

N = 120


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.normal(40, 10, N).round(2),
            "pay": rng.normal(9, 2, N).round(2),
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


def test_all_other_columns_are_features_and_must_be_numbers(tmp_path, people):
    data = prepare(tmp_path, people)
    assert data.feature_names == ("age", "pay") and data.group_names == ("f", "m")
    np.testing.assert_array_equal(data.groups, (people.sex == "m").astype(int))
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1)
    with pytest.raises(
        DatasetError, match=r"column 'job': .*found 'baker' .*list the column under 'categorical'"
    ):
        prepare(tmp_path, people.assign(job="baker"))
    people.loc[:4, "pay"] = np.nan
    with pytest.raises(DatasetError, match=r"column 'pay': .*found '' in data row 1, 5 such cells"):
        prepare(tmp_path, people)
    assert prepare(tmp_path, people, drop_rows={"pay": [""]}).card["rows"] == N - 5


@pytest.mark.parametrize("delimiter", ",;\t|")
def test_the_delimiters_of_table_and_groups_are_found(tmp_path, people, delimiter):
    table, groups = people.drop(columns="sex"), people[["sex"]].assign(note="x")
    expected = prepare(tmp_path, people)
    own = groups.to_csv(sep=delimiter, index=False)
    for text in (table.to_csv(index=False), table.to_csv(sep=delimiter, index=False)):
        found = prepare(tmp_path, text, own)
        np.testing.assert_array_equal(found.X, expected.X)
        np.testing.assert_array_equal(found.groups, expected.groups)
    # A stated separator holds for both files, and so does a decimal comma.
    text = table.to_csv(sep=";", decimal=",", index=False)
    stated = prepare(tmp_path, text, groups.to_csv(sep=";"), reader={"sep": ";", "decimal": ","})
    np.testing.assert_array_equal(stated.X, expected.X)
    with pytest.raises(DatasetError, match="column 'age,pay': a column of numbers has cells that are not"):
        prepare(tmp_path, table, groups, reader={"sep": ":"})


@pytest.mark.parametrize(
    "text, advice",
    [
        ("age,sex\n1,\udcff\n", "set 'encoding' in 'reader' to cp1252"),
        ("age;town,sex\n1,f\n2\n", "is ',' the right 'sep' in 'reader'"),
        ("-1.5,f\n2,m\n", "set 'header: false' in 'reader'"),
    ],
)
def test_advice_names_keys_of_the_data_set_and_no_options_of_the_command(tmp_path, text, advice):
    with pytest.raises(DatasetError, match=advice):
        prepare(tmp_path, text)


def test_the_words_of_a_group_are_not_cut_apart(tmp_path, people):
    groups = "marital status\n" + "never married\nonce married\n" * (N // 2)
    sensitive = {"column": "marital status", "source": {"path": "groups.csv"}}
    data = prepare(tmp_path, people.drop(columns="sex"), groups, sensitive=sensitive)
    assert data.group_names == ("never married", "once married")


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda g: g, "has a column of the table.*write the groups into the table"),
        (lambda g: g.rename(columns={"age": "number"})[1:], "another number of rows.*expected 120 rows"),
        (lambda g: g.drop(columns="sex"), "no such column"),
    ],
)
def test_groups_that_do_not_fit_the_table_are_refused(tmp_path, people, change, message):
    groups = change(people[["age", "sex"]])
    with pytest.raises(DatasetError, match=message):
        prepare(tmp_path, people.drop(columns="sex"), groups)


def test_truth_and_dropped_rows(tmp_path, people):
    people = people.assign(town=np.where(np.arange(N) % 2, "north", "south"), cluster=np.arange(N) % 3)
    data = prepare(tmp_path, people, truth="cluster", features=["age"], drop_rows={"town": ["north"]})
    kept = people.town == "south"
    np.testing.assert_array_equal(data.truth, people.cluster[kept])
    assert data.card["dropped"] == [{"column": "town", "value": "north", "rows": N // 2}]
