"""From a file to a prepared data set: values, groups, card, and the message of every error."""

import io
import json
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import MinMaxScaler, StandardScaler, normalize
from small_files import prepare_files

from fairclust.datasets import DatasetError
from fairclust.datasets.prepare import minmax, prepare_dataset, standardize, unit_rows
from fairclust.datasets.spec import DatasetSpec, SourceSpec
from fairclust.datasets.store import load_prepared, save_prepared

TEXT = "age,sex,hours,city\n30,f,10,x\n40,m,20,y\n50,f,60,x\n60,o,30,z\n"
IN_ANOTHER_FILE = {"column": "sex", "source": "groups"}


def prepare(tmp_path, text=TEXT, groups_text=None, **spec):
    """Prepare the data set 'demo' from `text`, with the features age and hours and the groups in the column sex."""
    fields = {
        "title": "Demo",
        "source": "table",
        "features": ["age", "hours"],
        "sensitive": {"column": "sex"},
        "n_clusters": 2,
        **spec,
    }
    groups = {} if groups_text is None else {"groups": groups_text}
    return prepare_files(tmp_path, "demo", fields, {"table": text, **groups})


def test_prepared(tmp_path):
    ds = prepare(tmp_path)
    raw = np.array([[30, 10], [40, 20], [50, 60], [60, 30]], dtype=float)
    assert_allclose(ds.X, normalize(StandardScaler().fit_transform(raw)), atol=1e-15)
    assert ds.X.dtype == np.float64 and ds.X.flags.c_contiguous
    assert ds.groups.dtype == np.int32
    assert_array_equal(ds.groups, [0, 1, 0, 2])
    assert ds.group_names == ("f", "m", "o")
    assert ds.feature_names == ("age", "hours")


def test_card(tmp_path):
    ds = prepare(tmp_path, drop_rows={"city": ["z", "w"]}, shown="a note")
    card = json.loads(json.dumps(ds.card))
    assert card["status"] == "ok"
    assert (card["name"], card["title"], card["shown"], card["n_clusters"]) == ("demo", "Demo", "a note", 2)
    assert (card["rows_read"], card["rows"]) == (4, 3)
    assert card["dropped"] == [
        {"column": "city", "value": "z", "rows": 1},
        {"column": "city", "value": "w", "rows": 0},
    ]
    assert card["groups"] == [
        {"name": "f", "size": 2, "share": 2 / 3},
        {"name": "m", "size": 1, "share": 1 / 3},
    ]
    assert card["scaling"] == ["standardize", "l2"]


def test_data_hash_tells_data_apart(tmp_path):
    first = prepare(tmp_path).card["data_hash"]
    assert prepare(tmp_path).card["data_hash"] == first
    others = [
        prepare(tmp_path, TEXT.replace("30,f", "31,f")),
        prepare(tmp_path, TEXT.replace("60,o", "60,m")),
        prepare(tmp_path, scale="standardize"),
        prepare(tmp_path, TEXT.replace("hours", "h"), features=["age", "h"]),
        prepare(tmp_path, sensitive={"column": "sex", "groups": {"f": ["f"], "m": ["m"], "x": "*"}}),
    ]
    assert len({first, *(ds.card["data_hash"] for ds in others)}) == 6


def test_numbers_as_groups_sort_as_numbers(tmp_path):
    text = "v,g\n1,10\n2,9\n3,b\n4,10\n"
    ds = prepare(tmp_path, text, features=["v"], sensitive={"column": "g"})
    assert ds.group_names == ("9", "10", "b")
    mapped = {"column": "g", "groups": {"ten": [10], "other": "*"}}
    assert_array_equal(prepare(tmp_path, text, features=["v"], sensitive=mapped).groups, [0, 1, 1, 0])


def test_groups_from_another_file(tmp_path):
    ds = prepare(
        tmp_path,
        "1,2\n3,4\n5,6\n",
        "b\nb\na\n",
        features="all",
        reader={"header": False, "names": ["u", "v"]},
        sensitive={"column": 0, "source": "groups"},
        drop_rows={"u": [3]},
        scale="none",
    )
    assert_array_equal(ds.X, [[1, 2], [5, 6]])
    assert ds.group_names == ("a", "b")
    assert_array_equal(ds.groups, [1, 0])
    assert [source["name"] for source in ds.card["sources"]] == ["table", "groups"]


@pytest.mark.parametrize("delimiter", ",;\t|")
def test_the_delimiters_of_table_and_groups_are_found(tmp_path, delimiter):
    frame, expected = pd.read_csv(io.StringIO(TEXT)), prepare(tmp_path)
    table, groups = frame[["age", "hours"]] / 4, frame[["sex", "city"]].to_csv(sep=delimiter, index=False)
    # A stated separator holds for both files, and so does a decimal comma.
    stated = {"reader": {"sep": delimiter, "decimal": ","}} if delimiter == ";" else {}
    for sep, reader in ((",", {}), (delimiter, {}), (delimiter, stated)):
        text = table.to_csv(sep=sep, index=False, decimal="," if reader else ".")
        found = prepare(tmp_path, text, groups, sensitive=IN_ANOTHER_FILE, **reader)
        assert_allclose(found.X, expected.X, atol=1e-15)
        assert_array_equal(found.groups, expected.groups)


def test_categorical_columns_are_codes_and_not_scaled(tmp_path):
    text = "age,sex,rate,city\n30,f,10,x\n40,m,9, y \n50,f,10,x\n60,o,-1,z\n70,?,5,a\n"
    ds = prepare(
        tmp_path, text, features=["age"], categorical=["city", "rate", "sex"], drop_rows={"sex": ["?"]}
    )
    assert_allclose(ds.X[:, 0], [-1, -1, 1, 1])
    # Numbers are in ascending order, and values of dropped rows leave no gap in the codes.
    assert_array_equal(ds.X[:, 1:], [[0, 2, 0], [1, 1, 1], [0, 2, 0], [2, 0, 2]])
    assert ds.feature_names == ("age", "city", "rate", "sex")
    categories = {"city": ["x", "y", "z"], "rate": ["-1", "9", "10"], "sex": ["f", "m", "o"]}
    assert ds.card["categories"] == categories
    assert json.loads(json.dumps(ds.card)) == ds.card


def test_true_classes_are_not_a_feature(tmp_path):
    dropped = {"features": "all", "categorical": ["city"], "drop_rows": {"city": ["y"]}}
    plain, ds = (prepare(tmp_path, truth=truth, **dropped) for truth in (None, "hours"))
    assert plain.truth is None
    assert ds.feature_names == ("age", "city")
    assert ds.X.flags.c_contiguous and ds.X.shape == (3, 2)
    assert_array_equal(ds.truth, [0, 2, 1])
    assert ds.truth is not None and ds.truth.dtype == np.int32
    assert list(ds.card["categories"]) == ["city"]
    save_prepared(ds, tmp_path / "saved")
    assert_array_equal(load_prepared(tmp_path / "saved").truth, ds.truth)
    with pytest.raises(DatasetError, match="or the truth"):
        prepare(tmp_path, features=["age", "hours"], truth="hours")


def test_constant_column_and_zero_row(tmp_path):
    # 0.1 has no exact binary form: its mean over three rows differs from it.
    text = "a,c,sex\n1,0.1,f\n2,0.1,m\n3,0.1,f\n"
    ds = prepare(tmp_path, text, features=["a", "c"])
    assert_array_equal(ds.X, [[-1, 0], [0, 0], [1, 0]])


FM = {"f": ["f"], "m": ["m"]}
ERRORS = {
    "unknown group": (
        {"sensitive": {"column": "sex", "groups": FM}},
        "unknown group value 'o'; expected 'f', 'm'; found 'o' in 1 row, first in data row 4. Fix",
    ),
    "missing group value is not 'other'": (
        {"text": TEXT.replace("60,o", "60,"), "sensitive": {"column": "sex", "groups": {"f": ["f"], "rest": "*"}}},
        "unknown group value ''; .*first in data row 4",
    ),
    "group emptied by dropping": (
        {"drop_rows": {"city": ["y"]}, "sensitive": {"column": "sex", "groups": {**FM, "rest": "*"}}},
        "group 'm' is empty; .*found f: 2, m: 0, rest: 1. Fix",
    ),
    "one group": ({"text": "age,sex,hours\n1,f,2\n2,f,3\n"}, "there is only one group; .*found f: 2"),
    "one row": ({"drop_rows": {"city": ["x", "y"]}}, "too little data; .*found 1 of 4 rows"),
    "no feature": ({"text": "sex\nf\nm\n", "features": "all"}, "found 2 of 2 rows, 0 features"),
    "a value that hides the others": (
        {"text": "age,sex,hours\n1e20,f,1\n2,m,2\n3,f,3\n4,m,5\n"},
        "column 'age': a value is so large .* 15 orders of magnitude; found 1e\\+20. Fix: correct the value",
    ),
    "a value whose square overflows": (
        {"text": "age,sex,hours\n1e200,f,1\n2,m,2\n3,f,3\n4,m,5\n"},
        "column 'age': values whose squares overflow; expected at most 1e\\+140; found 1e\\+200. Fix",
    ),
    "sensitive column as feature": ({"features": ["age", "sex"]}, "the groups must not be a feature"),
    "feature twice": ({"features": ["age", 0]}, r"lists a column twice.*\['age', 'age'\]"),
    "another number of rows": (
        {"rows": 5, "drop_rows": {"city": ["z"]}}, "expected 5 rows; found 3 of 4 rows .*check 'drop_rows'",
    ),
    "groups file too short": (
        {"groups_text": "gender\nf\nm\n", "sensitive": {"column": "gender", "source": "groups"}},
        "file 'groups.csv', column 'gender': .* expected 4 rows; found 2",
    ),
    "groups file with a column of the table": (
        {"groups_text": "age,sex\n" + "1,f\n2,m\n" * 2, "sensitive": IN_ANOTHER_FILE},
        "has a column of the table.*write the groups into the table",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(tmp_path, case):
    fields, message = ERRORS[case]
    with pytest.raises(DatasetError, match=message):
        prepare(tmp_path, **fields)


@pytest.mark.parametrize(
    "text, advice",
    [
        ("age,sex\n1,\udcff\n", "set 'encoding' in 'reader' to cp1252"),
        ("age;town,sex\n1,f\n2\n", "is ',' the right 'sep' in 'reader'"),
        ("-1.5,f\n2,m\n", "or check 'sep' and 'header' in 'reader'"),
    ],
)
def test_advice_names_keys_of_the_data_set_and_no_options_of_the_command(tmp_path, text, advice):
    with pytest.raises(DatasetError, match=advice):
        prepare(tmp_path, text, features="all")


def test_sources_on_the_card(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TEXT)
    fields = {"title": "T", "sensitive": {"column": "sex"}, "features": ["age"], "n_clusters": 2}
    own = {"path": str(path), "licence": "private"}
    spec = DatasetSpec.model_validate({**fields, "source": own})
    (source,) = prepare_dataset("demo", spec, {"demo": path}, {"demo": SourceSpec(**own)}).card["sources"]
    assert (source["licence"], source["check"]) == ("private", "not verified")
    sha256, address = source["sha256"], "https://example.org/t"

    named = DatasetSpec.model_validate({**fields, "source": "s"})
    right = SourceSpec(file="t.csv", urls=(address,), sha256=sha256, licence="CC0")
    card = prepare_dataset("demo", named, {"s": path}, {"s": right}).card
    stated = {"name": "s", "sha256": sha256, "file": "t.csv", "urls": [address], "licence": "CC0"}
    unknown = dict.fromkeys(("member", "homepage", "note"))
    assert card["sources"] == [{**stated, **unknown, "check": "verified"}]
    wrong = right.model_copy(update={"sha256": "0" * 64})
    with pytest.raises(DatasetError, match=f"is {sha256}, expected 000"):
        prepare_dataset("demo", named, {"s": path}, {"s": wrong})


finite = st.floats(-1e6, 1e6).map(lambda v: round(v, 3))


@mock.patch("fairclust.datasets.prepare.BLOCK_ROWS", 7)
@given(arrays(np.float64, st.tuples(st.integers(2, 40), st.integers(1, 5)), elements=finite))
def test_scaling_agrees_with_scikit_learn(raw):
    X = raw.copy()
    standardize(X)
    varying = np.ptp(raw, axis=0) > 0
    assert_array_equal(X[:, ~varying], 0.0)
    expected = (raw - raw.mean(axis=0))[:, varying] / raw.std(axis=0)[varying]
    assert_allclose(X[:, varying], expected, rtol=1e-6, atol=1e-6)
    zero_rows = int((X == 0).all(axis=1).sum())
    unit_rows(X)
    norms = np.linalg.norm(X, axis=1)
    assert_allclose(norms[norms > 0], 1.0)
    assert (norms == 0).sum() == zero_rows
    X = raw.copy()
    minmax(X)
    assert_allclose(X, MinMaxScaler().fit_transform(raw), atol=1e-9)


def test_ordered_categories_are_scaled_like_numbers(tmp_path):
    text = "v,band,c,sex\n1,15-19,x,f\n2,<5,y,m\n3,5-9,x,f\n"
    options = {"features": ["v"], "ordered": ["band"], "categorical": ["c"]}
    ds = prepare(tmp_path, text, scale="standardize", **options)
    assert ds.feature_names == ("v", "band", "c")
    raw = StandardScaler().fit_transform([[1.0, 2], [2, 0], [3, 1]])
    assert_allclose(ds.X, np.c_[raw, [0, 1, 0]], atol=1e-15)
    assert ds.card["ordered"] == {"band": ["<5", "5-9", "15-19"]}
    assert ds.card["categories"] == {"c": ["x", "y"]}
    with pytest.raises(
        DatasetError, match=r"column 'band': an ordered column has empty cells; .* data row 2"
    ):
        prepare(tmp_path, text.replace("<5", ""), **options)
