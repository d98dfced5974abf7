"""Data sets with several sensitive columns: the groups are the combinations, and each column is stored."""

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError
from small_files import prepare_files

from fairclust.datasets import DatasetError
from fairclust.datasets.spec import DatasetSpec
from fairclust.datasets.store import load_prepared, save_prepared
from fairclust.metrics.table import Scored, score_labels
from fairclust.pipeline.fit_cell import input_of
from fairclust.pipeline.grids import Cell

ROWS = [(i, i * i % 7, "fm"[i % 2], "abc"[i % 7 % 3]) for i in range(40)]
SPEC = {
    "title": "People",
    "source": {"path": "people.csv"},
    "features": ["x", "y"],
    "sensitive": [{"column": "sex"}, {"column": "race", "groups": {"a or b": ["a", "b"], "c": ["c"]}}],
    "n_clusters": 3,
}


@pytest.fixture
def prepared(tmp_path):
    def prepare(**changes):
        frame = pd.DataFrame(ROWS, columns=["x", "y", "sex", "race"])
        frame["both"] = frame.sex + " & " + frame.race.replace({"a": "a or b", "b": "a or b"})
        frame = frame.drop(columns=changes.pop("without", "both"))
        return prepare_files(tmp_path, "people", SPEC | changes, {"people": frame})

    return prepare


def _given(data, *means):
    """The groups that a fit with bounded means gets."""
    cell = Cell(3, {"mean_tolerance": dict.fromkeys(means, 0.1)} if means else {}, 0, 0)
    return input_of(data, None, "fairclust.PriceFairKMeans", cell)[1]


def test_groups_are_the_combinations_and_each_column_is_kept(prepared):
    data = prepared()
    assert data.feature_names == ("x", "y")
    assert data.group_names == ("f & a or b", "f & c", "m & a or b", "m & c")
    assert list(data.columns) == ["sex", "race"]
    assert data.card["sensitive"] == {"sex": ["f", "m"], "race": ["a or b", "c"]}
    for i, row in enumerate(ROWS):
        words = [data.card["sensitive"][name][codes[i]] for name, codes in data.columns.items()]
        assert words == [row[2], "c" if row[3] == "c" else "a or b"]
        assert data.group_names[data.groups[i]] == " & ".join(words)
    assert set(_given(data)) == {"sex", "race"}


def test_combinations_written_as_one_column_are_another_data_set(prepared):
    several = prepared()
    joined = prepared(sensitive={"column": "both"}, without=["sex", "race"])
    assert joined.group_names == several.group_names
    np.testing.assert_array_equal(joined.groups, several.groups)
    assert joined.columns == {} and _given(joined) is joined.groups
    assert joined.card["data_hash"] != several.card["data_hash"]


def test_one_column_in_a_list_is_one_column(prepared):
    listed, alone = prepared(sensitive=[{"column": "sex"}]), prepared(sensitive={"column": "sex"})
    assert listed.card["data_hash"] == alone.card["data_hash"] and listed.columns == {}


@pytest.mark.parametrize(
    "sensitive, message",
    [
        ([{"column": "sex"}, {"column": "sex"}], "lists a column twice"),
        ([{"column": "sex"}, {"column": "race", "source": "others"}], "'source' is for one alone"),
        ([], "needs 'sensitive'"),
    ],
)
def test_invalid_lists_of_columns(sensitive, message):
    with pytest.raises(ValidationError, match=message):
        DatasetSpec(**SPEC | {"sensitive": sensitive})


def test_an_unknown_value_of_the_second_column_is_named(prepared):
    with pytest.raises(DatasetError, match="unknown group value 'c'"):
        prepared(sensitive=[{"column": "sex"}, {"column": "race", "groups": {"a": ["a"], "b": ["b"]}}])


def test_numbers_are_cut_into_ranges_and_kept(prepared, tmp_path):
    data = prepared(sensitive=[{"column": "sex"}, {"column": "x", "bins": 4}], features=["y"])
    x = np.arange(40.0)
    np.testing.assert_array_equal(data.numbers["x"], x)
    np.testing.assert_array_equal(data.columns["x"], x // 10)
    assert data.card["sensitive"]["x"][0] == "below 10" and data.card["numbers"] == ["x"]
    save_prepared(data, tmp_path / "saved")
    again = load_prepared(tmp_path / "saved")
    assert again.content_hash() == data.card["data_hash"]
    given = _given(again, "x")
    np.testing.assert_array_equal(given["x"], x)
    np.testing.assert_array_equal(given["sex"], data.columns["sex"])
    assert _given(again)["x"].max() == 3
    labels = np.arange(40) // 20
    scores = score_labels(Scored(labels, data.groups, data.X, numbers=data.numbers), ["mean_deviation"])
    assert scores["mean_deviation"] == pytest.approx(10 / x.std())
    alone = prepared(sensitive={"column": "x", "bins": 2}, features=["y"])
    assert alone.columns == {} and list(_given(alone, "x")) == ["x"]
    assert np.bincount(alone.groups).tolist() == [20, 20]
    as_groups = {"low": [str(i) for i in range(20)], "high": "*"}
    names = prepared(sensitive={"column": "x", "groups": as_groups}, features=["y"])
    assert names.card["data_hash"] != alone.card["data_hash"]


def test_bins_need_numbers_and_no_groups(prepared):
    with pytest.raises(DatasetError, match="or the values of a sensitive one under 'groups'"):
        prepared(sensitive={"column": "race", "bins": 2})
    with pytest.raises(ValidationError, match="Fix: omit one of them"):
        prepared(sensitive={"column": "x", "bins": 2, "groups": {"a": ["1"], "b": "*"}}, features=["y"])
