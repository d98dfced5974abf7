"""What `fit` takes: nullable columns, masks, dates, no groups, and rows of weight zero."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from fairclust import (
    FairMixture,
    KMeans,
    NotSupported,
    PriceFairKMeans,
    SociallyFairKMeans,
    VariationalFairKMeans,
    fair_assignment,
)
from fairclust.group_encoding import encode_groups


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.normal(size=60), "b": rng.integers(0, 9, 60)})


def test_nullable_columns_are_numbers_and_their_missing_cells_are_named(frame):
    nullable = frame.astype({"b": "Int64"})
    plain = KMeans(3, random_state=0).fit(frame)
    np.testing.assert_array_equal(KMeans(3, random_state=0).fit(nullable).labels_, plain.labels_)
    np.testing.assert_array_equal(KMeans(3, random_state=0).fit(frame.astype(object)).labels_, plain.labels_)
    for kind in ("Int64", object):
        lacking = frame.astype({"b": kind})
        lacking.loc[7, "b"] = pd.NA
        with pytest.raises(
            ValueError,
            match=r"X contains NaN in row 7, column 'b'; cells that are not finite: 1.*SimpleImputer",
        ):
            KMeans(3).fit(lacking)


def test_a_mask_is_no_number(frame):
    masked = np.ma.masked_equal(frame.to_numpy(), frame.to_numpy()[5, 0])
    with pytest.raises(ValueError, match="X contains NaN in row 5, column 0"):
        KMeans(3).fit(masked)


DAYS = pd.date_range("2020-01-01", periods=60)


@pytest.mark.parametrize(
    "cells", [DAYS, DAYS.date, DAYS.to_period(), pd.to_timedelta(range(60), "D"), ["x"] * 60]
)
def test_a_column_that_holds_no_numbers_is_named(frame, cells):
    # Texts are categories of a mixture, and dates are not.
    for cls in (KMeans, FairMixture) if cells[0] != "x" else (KMeans,):
        with pytest.raises(ValueError, match=r"X holds .*column 'when'.*leave"):
            cls(3).fit(frame.assign(when=cells), sensitive_features=["f", "m"] * 30)


def test_a_table_of_pyarrow_is_checked_as_a_data_frame_is(frame):
    pa = pytest.importorskip("pyarrow")
    model = KMeans(3, random_state=0).fit(pa.Table.from_pandas(frame))
    assert model.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(model.labels_, KMeans(3, random_state=0).fit(frame).labels_)
    dates = pa.Table.from_pandas(frame.assign(when=pd.date_range("2020-01-01", periods=60)))
    with pytest.raises(ValueError, match="X holds dates or durations in column 'when'"):
        KMeans(3).fit(dates)


def test_a_fit_that_fails_leaves_the_model_as_it_was(frame):
    groups = ["f", "m"] * 30
    model = PriceFairKMeans(n_clusters=3, random_state=0).fit(frame, sensitive_features=groups)
    expected = model.predict(frame, sensitive_features=groups)
    with pytest.raises(ValueError, match="size_min=50 cannot be met"):
        model.set_params(size_min=50).fit(100 * frame + 7, sensitive_features=groups)
    np.testing.assert_array_equal(model.predict(frame, sensitive_features=groups), expected)


def test_an_interrupt_of_compiled_code_stays_an_interrupt(frame):
    class Interrupted(KMeans):
        def _fit(self, X, codes):
            raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    with pytest.raises(KeyboardInterrupt):
        Interrupted(3).fit(frame)


def test_the_name_of_a_column_is_no_column(frame):
    with pytest.raises(ValueError, match=r"sensitive_features is 'sex': pass .* such as df\['sex'\]"):
        PriceFairKMeans(3).fit(frame, sensitive_features="sex")


def test_dates_as_groups_are_dates():
    days = np.array(["2020-01-01", "2020-01-02", "2020-01-01"], dtype="datetime64[ns]")
    codes, names = encode_groups(days)
    assert names.tolist() == ["2020-01-01", "2020-01-02"] and codes.tolist() == [0, 1, 0]
    assert encode_groups(pd.Series(days), known=names)[0].tolist() == [0, 1, 0]
    assert encode_groups(days + np.array([1, 2, 1]) * np.timedelta64(100, "ms"))[0].tolist() == [0, 1, 0]
    assert encode_groups(days + np.timedelta64(90, "m"))[1].tolist() == [
        "2020-01-01T01:30:00",
        "2020-01-02T01:30:00",
    ]


@pytest.mark.parametrize("cls", [PriceFairKMeans, SociallyFairKMeans])
def test_rows_of_weight_zero_do_not_count_and_get_a_label(frame, cls):
    groups = np.arange(60) % 2
    weights = np.where(np.arange(60) % 5 == 0, 0.0, 1.0 + np.arange(60) % 3)
    model = cls(3, random_state=0).fit(frame, sensitive_features=groups, sample_weight=weights)
    there = weights > 0
    alone = cls(3, random_state=0).fit(
        frame[there], sensitive_features=groups[there], sample_weight=weights[there]
    )
    np.testing.assert_array_equal(model.labels_[there], alone.labels_)
    np.testing.assert_array_equal(model.cluster_centers_, alone.cluster_centers_)
    np.testing.assert_array_equal(
        model.labels_[~there], alone.predict(frame[~there], sensitive_features=groups[~there])
    )
    with pytest.raises(ValueError, match="finite and not negative"):
        cls(3).fit(frame, sensitive_features=groups, sample_weight=np.zeros(60))


def test_errors_beside_rows_of_weight_zero_are_those_of_all_rows(frame, tmp_path):
    weights, groups = np.r_[0.0, 0.0, np.ones(58)], [*"ab" * 29, "a", None]
    with pytest.raises(ValueError, match="first in row 59"):
        PriceFairKMeans(3).fit(frame, sensitive_features=groups, sample_weight=weights)
    with pytest.raises(ValueError, match="first in row 59"):
        fair_assignment(frame, groups, sample_weight=weights)
    for value, message in ((np.nan, "X contains NaN in row 5"), (1e200, r"X holds 1e\+200 in row 5")):
        frame.loc[5, "a"] = value
        with pytest.raises(ValueError, match=message):
            PriceFairKMeans(3).fit(frame, sensitive_features=["a", "b"] * 30, sample_weight=weights)
    np.save(tmp_path / "X.npy", np.zeros((60, 2)))
    with pytest.raises(NotSupported, match="sample_weight is for rows in memory"):
        PriceFairKMeans(3, size_max=1.0).fit(tmp_path / "X.npy", sample_weight=weights)


def test_most_rows_are_equal_and_one_is_far():
    X = np.zeros((1001, 2))
    X[600:1000], X[1000] = np.random.default_rng(0).random((400, 2)), 1e10
    one, other = (
        PriceFairKMeans(3, size_max=1000, n_init=1, random_state=0, precision=precision).fit(X)
        for precision in ("single", "double")
    )
    np.testing.assert_array_equal(one.labels_, other.labels_)


@pytest.mark.parametrize("method", [PriceFairKMeans, SociallyFairKMeans, VariationalFairKMeans])
def test_fewer_different_rows_than_clusters_are_a_warning(method):
    X, groups = np.array([[0.0], [-0.0], [1.0], [2.0]] * 10), ["f", "m", "f", "m"] * 10
    message = "X has 3 different rows, fewer than the 4 clusters"
    with pytest.warns(UserWarning, match=message):
        method(4, random_state=0).fit(X, sensitive_features=groups)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        method(3, random_state=0).fit(X, sensitive_features=groups)
    assert not any("different rows" in str(warning.message) for warning in caught)


def test_a_notebook_shows_sizes_shares_and_the_certificate_after_a_fit(frame):
    groups = np.array(["<f>", "m"])[np.arange(60) % 2]
    model = PriceFairKMeans(3, tolerance=0.2, random_state=0)
    assert "<th>rows" not in model._repr_html_()
    text = re.sub(r"\s", "", model.fit(frame, sensitive_features=groups)._repr_html_())
    share = 100 * (groups[model.labels_ == 0] == "m").mean()
    assert (
        f"<th>0</th><td>{(model.labels_ == 0).sum()}</td><td>{100 - share:.1f}%</td><td>{share:.1f}%" in text
    )
    assert "tolerance=0.2" in text and "nolabelswithintheboundsaremorethan" in text and "<f></th>" not in text
