"""Groups in the forms in which users have them: which values are groups, which are missing, and the messages."""

import numpy as np
import pandas as pd
import pytest

from fairclust.chunks.passes import Engine
from fairclust.chunks.sources import ArrayChunk
from fairclust.chunks.survey import survey
from fairclust.datasets.read import code_groups
from fairclust.datasets.spec import SensitiveSpec
from fairclust.group_encoding import encode_groups, one_spelling, resolve_target
from fairclust.methods import KMeans, PriceFairKMeans
from fairclust.metrics import group_codes
from fairclust.tables.preparation import Preparation, cross


@pytest.mark.parametrize(
    "groups",
    [
        [float("nan"), "f", "m"],
        [None, "m", "f"],
        np.ma.masked_array(["f", "m", "f"], mask=[True, False, False]),
        np.ma.masked_array([[1], [2], [1]], mask=[[1], [0], [0]]),
        pd.array([pd.NA, 1, 2]),
        np.array(["NaT", "2020", "2021"], dtype="datetime64[Y]"),
        [None, 1, 2],
    ],
)
def test_missing_values_are_refused_as_groups(groups):
    with pytest.raises(ValueError, match=r"1 missing value \(first in row 0\)"):
        encode_groups(groups, 3)


@pytest.mark.parametrize(
    "groups, names",
    [
        ([2, 10, 2], [2, 10]),
        (np.array([2, 10, 2], dtype=object), [2, 10]),
        (pd.array([2, 10, 2]), [2, 10]),
        ([True, False, True], [False, True]),
        (np.array([True, False, True]), [False, True]),
        (["m", "f", "m"], ["f", "m"]),
        ((1.5, 0.5, 1.5), [0.5, 1.5]),
        ([2**40, -5, 2**40], [-5, 2**40]),
        (np.array([b"y", b"x", b"y"]), [b"x", b"y"]),
        (np.ma.masked_array([3, 4, 3], mask=False), [3, 4]),
        ([["m"], ["f"], ["m"]], ["f", "m"]),
        (pd.DataFrame({"sex": pd.Categorical(["m", "f", "m"])}), ["f", "m"]),
    ],
)
def test_values_keep_their_kind(groups, names):
    codes, found = encode_groups(groups, 3)
    assert found.tolist() == names
    assert found[codes].tolist() == np.ravel(np.asarray(groups, dtype=object)).tolist()
    again, _ = encode_groups(groups, 3, known=found)
    np.testing.assert_array_equal(again, codes)


@pytest.mark.parametrize(
    "groups, message",
    [
        ([1, "1", 2], "'1' as int and as str: give all values one type"),
        (["True", True, "x"], "'True' as str and as bool"),
        (np.array(["f\0x", "f", "m"]), "has a NUL character in 'f.x00x'"),
        ([[1], [1, 2], [3]], "must be one column"),
        (np.ones((3, 2)), "join several columns"),
    ],
)
def test_values_that_would_merge_or_are_damaged_are_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        encode_groups(groups, 3)


@pytest.mark.parametrize("kind", [np.array, list, pd.Series, lambda groups: np.array(groups, dtype=object)])
def test_texts_that_differ_in_their_spelling_are_one_group(kind):
    groups = kind(["é", "e\u0301", " f", "f", "1", "1.0"])
    with pytest.warns(UserWarning, match="' f' and 'f' are one value"):
        codes, names = encode_groups(groups, 6)
    assert names.tolist() == ["1", "1.0", "f", "é"]
    assert codes.tolist() == [3, 3, 2, 2, 0, 1]
    np.testing.assert_array_equal(encode_groups(groups, 6, known=names)[0], codes)
    with pytest.warns(UserWarning, match="are one value"):
        np.testing.assert_array_equal(group_codes(groups), codes)
    assert resolve_target({"1": 0.1, "1.0": 0.2, "f": 0.3, "e\u0301": 0.4}, names, codes)[3] == 0.4


def test_messages_cut_long_groups():
    with pytest.raises(ValueError, match=r"groups not seen in fit: 'x{78}…; known: 'a', 'b'"):
        encode_groups(["x" * 5000], 1, known=np.array(["a", "b"]))


@pytest.mark.parametrize(
    "names, new, message",
    [
        ([0, 1], ["0", "1"], "has strings, such as '0', and the groups of fit are numbers: 0, 1"),
        (["f", "m"], [0, 1], "has numbers, such as 0, and the groups of fit are strings: 'f', 'm'"),
        (["f", "m"], ["d", "f"], "not seen in fit: 'd'; known: 'f', 'm'"),
    ],
)
def test_groups_of_another_type_in_predict(names, new, message):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = PriceFairKMeans(2, n_init=1, random_state=0).fit(X, sensitive_features=names * 20)
    with pytest.raises(ValueError, match=message):
        model.predict(X[:2], new)


def test_too_many_groups_are_reported_before_the_fit():
    X = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.warns(UserWarning, match="30 groups in 100 rows are too many for 4 clusters"):
        KMeans(4, random_state=0).fit(X, sensitive_features=np.arange(100) % 30)


def test_every_road_finds_the_same_groups():
    """Arrays, metrics, tables, data sets and chunks agree on values, their spelling and their order."""
    cells = [" f", "m", "f", "e\u0301", "é", "m"]
    with pytest.warns(UserWarning, match="are one value"):
        codes, names = encode_groups(cells, 6)
        np.testing.assert_array_equal(group_codes(pd.DataFrame({"sex": cells})), codes)
        known = survey(
            [ArrayChunk(np.zeros((6, 1)), np.array(cells), 0, 6, "X")], Engine(), sample_rows=6, seed=0
        )
    assert known.names.tolist() == names.tolist() == ["f", "m", "é"]
    np.testing.assert_array_equal(known.codes[np.argsort(known.codes)], np.sort(codes))
    table = Preparation([], ["sex"]).groups(pd.DataFrame({"sex": [*map(one_spelling, cells)]}))
    np.testing.assert_array_equal(encode_groups(cross(table), 6)[0], codes)
    listed, found = code_groups(SensitiveSpec(column="sex"), table["sex"].astype("category"), "")
    np.testing.assert_array_equal(listed, codes)
    assert list(found) == names.tolist()
