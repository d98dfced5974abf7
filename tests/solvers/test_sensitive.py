import numpy as np
import pandas as pd
import pytest

from fairclust.group_encoding import cut_column, measure_column, read_sensitive

SEX = np.array(["f", "m", "f", "m", "f"])
RACE = np.array(["x", "x", "y", "y", "x"])


def test_ranges_of_large_numbers_have_different_names():
    seconds = 1_700_000_000 + np.arange(100)
    column = cut_column("time", seconds, 4)
    assert column.values.tolist()[::3] == ["below 1700000025", "1700000075 and above"]
    # Doubles that differ in the last place.
    steps = np.nextafter(1e15, np.inf) + np.spacing(1e15) * np.arange(100)
    assert len(set(cut_column("x", steps, 50).values)) == 50
    with pytest.raises(ValueError, match="bins must be a whole number of at least 2"):
        cut_column("x", steps, 1)


def test_many_different_numbers_are_no_groups():
    age = np.arange(18, 68)
    for given in (age, age.astype(object), pd.Series(age, dtype="Int64"), age.astype(np.uint8)):
        with pytest.raises(
            ValueError, match=r"\['age'\] holds 50 different numbers, .*qcut\(column, 4\) does\. "
        ):
            read_sensitive({"age": given}, 50)
        with pytest.raises(ValueError, match="or pass mean_tolerance"):
            read_sensitive({"age": given}, 50, means=())
    ranges = read_sensitive({"age": pd.qcut(pd.Series(age), 4), "sex": age % 2}, 50)
    assert len(ranges.names) == 8
    column = cut_column("age", age, 4)
    assert column.values.tolist() == ["below 31", "31 to below 43", "43 to below 55", "55 and above"]
    np.testing.assert_array_equal(np.bincount(column.encode(age, 50)), [13, 12, 12, 13])
    assert column.encode([0, 31, 99], 3).tolist() == [0, 1, 3]
    # Numbers as text are groups, and so are codes that count up from 0 or 1.
    for given in (age.astype(str), np.arange(150) % 50, np.arange(150) % 50 + 1):
        assert len(read_sensitive(given, len(given)).names) == 50


AGE = [1.5, 1, 2.5, 3, 4]


@pytest.mark.parametrize(
    "given, means, message",
    [
        ({"sex": SEX[:4], "race": RACE}, [], r"sensitive_features\['sex'\] has 4 rows, X has 5"),
        ({"sex": SEX, "race": [None, *RACE[1:]]}, [], r"\['race'\] has 1 missing value"),
        (np.zeros((5, 0)), [], r"found shape \(5, 0\)"),
        ({"sex": SEX}, ["age"], r"mean_tolerance names \['age'\]"),
        ({"age": [np.nan, *AGE[1:]]}, ["age"], r"\['age'\] has a missing or infinite number in row 0"),
        ({"age": np.ma.array(AGE, mask=np.eye(5)[1])}, ["age"], "infinite number in row 1"),
        ({"sex": SEX}, ["sex"], r"\['sex'\] must hold numbers, because its mean is taken"),
    ],
)
def test_bad_columns(given, means, message):
    with pytest.raises(ValueError, match=message):
        read_sensitive(given, 5, means=means)


@pytest.mark.parametrize("tail", [lambda rng: np.exp(rng.normal(size=5000)), lambda rng: rng.pareto(2, 5000)])
def test_rounding_a_measured_column_keeps_its_tail(tail):
    numbers = tail(np.random.default_rng(0))
    column = measure_column("income", numbers)
    assert 60 < len(column.values) <= 128
    rounded = column.values[column.encode(numbers, len(numbers))]
    assert (rounded - numbers).std() < 0.02 * numbers.std()
    assert rounded.mean() == pytest.approx(numbers.mean(), rel=1e-3)


def test_every_value_of_a_measured_column_has_rows():
    # All numbers of some ranges are nearer to the means of other ranges.
    numbers = np.random.default_rng(2).gamma(2, 10, 400)
    column = measure_column("age", numbers)
    assert len(np.unique(column.encode(numbers, 400))) == len(column.values)
