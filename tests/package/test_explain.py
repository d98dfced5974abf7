"""Profiles of clusters against pandas, and the range of chance against random labels."""

import numpy as np
import pandas as pd
import pytest

from fairclust import profiles
from fairclust.explain import chance_ranges, described, profile_lines

N = 300


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, N)
    frame = pd.DataFrame(
        {
            "person": [f"P{i}" for i in range(N)],
            "age": rng.normal(40, 5, N) + 12 * (labels == 1),
            "pay": [f"€ {value:,.2f}" for value in rng.lognormal(8, 0.4, N) * (1 + (labels == 2))],
            "level": np.where(
                rng.random(N) < 0.3 + 0.5 * (labels == 0), "low", rng.choice(["medium", "high"], N)
            ),
            "town": rng.choice(["a", "b", "c"], N),
        },
        index=np.arange(N) + 1000,
    )
    frame.loc[1003, "age"] = np.nan
    frame.loc[1004:1020, "level"] = "refused"
    return frame, labels


def test_profiles_are_those_of_pandas(table):
    frame, labels = table
    found = profiles(frame, labels, n_columns=3)
    assert found["cluster"].unique().tolist() == [0, 1, 2]
    assert found.groupby("cluster")["size"].first().tolist() == np.bincount(labels).tolist()
    assert "person" not in set(found["column"])
    plain = frame.assign(pay=frame["pay"].str.replace("[€ ,]", "", regex=True).astype(float))
    for row in found.to_dict("records"):
        cells = plain[row["column"]]
        if row["value"]:
            cells = (cells == row["value"]).where(cells != "refused").astype(float)
        own, spread = cells[labels == row["cluster"]].mean(), cells.std(ddof=0)
        assert row["in_cluster"] == pytest.approx(own)
        assert row["in_all"] == pytest.approx(cells.mean())
        assert row["difference"] == pytest.approx((own - cells.mean()) / spread)
    apart = found.groupby("cluster")["difference"].apply(lambda of: of.abs().tolist())
    assert all(of == sorted(of, reverse=True) and min(of) >= 0.2 for of in apart)
    first = found.groupby("cluster")["column"].first().tolist()
    assert first == ["level", "age", "pay"]


def test_the_example_is_the_row_nearest_to_the_mean_of_its_cluster():
    X = np.random.default_rng(0).normal(size=(N, 2)) * [1, 3]
    labels = (X[:, 0] > 0).astype(int)
    found = profiles(X, labels)
    scaled = X / X.std(axis=0)
    for k, at in found.groupby("cluster")["example"].first().items():
        own = np.flatnonzero(labels == k)
        apart = ((scaled[own] - scaled[own].mean(axis=0)) ** 2).sum(axis=1)
        assert at == own[apart.argmin()]


def test_rows_without_a_label_and_clusters_like_all_rows(table):
    frame, labels = table
    alike = np.arange(N) % 2
    few = frame[["town"]].assign(x=np.tile([1.0, 1.0, 2.0, 2.0], N // 4), town="a")
    assert profile_lines(profiles(few, alike)) == [
        f"cluster {k}, {N // 2} rows: like all rows" for k in (0, 1)
    ]
    # Rows without a label are in no cluster, and count among all rows.
    found = profiles(frame, np.ma.masked_array(labels, np.arange(N) < 20))
    assert found["in_all"][found["column"] == "age"].iloc[0] == pytest.approx(frame["age"].mean())
    with pytest.raises(ValueError, match="whole numbers"):
        profiles(frame, np.where(labels == 0, np.inf, labels))
    with pytest.raises(ValueError, match="labels has 7 rows, X has 300"):
        profiles(frame, labels[:7])


def test_sentences(table):
    frame, labels = table
    lines = profile_lines(profiles(frame, labels, n_columns=1))
    levels = frame["level"].where(frame["level"] != "refused")
    share, whole = ((levels[of].dropna() == "low").mean() for of in (labels == 0, slice(None)))
    told = f"level low {100 * share:.0f} % against {100 * whole:.0f} %"
    assert lines[0] == f"cluster 0, {(labels == 0).sum()} rows: {told}"
    assert lines[1].startswith(f"cluster 1, {(labels == 1).sum()} rows: age ")


@pytest.mark.parametrize(
    ("mean", "overall", "text"),
    [
        (1961.2, 1992.4, "1961 against 1992"),
        (9500, 12500, "9,500 against 12,500"),
        (1.25, 1.5, "1.25 against 1.50"),
    ],
)
def test_numbers_of_four_digits_may_be_years(mean, overall, text):
    assert described({"column": "x", "value": "", "in_cluster": mean, "in_all": overall}) == f"x {text}"


def test_the_range_of_chance_holds_95_percent_of_random_labels():
    rng = np.random.default_rng(0)
    member = np.arange(200) < 70
    ranges = chance_ranges(np.array([[20, 50, 0], [20, 110, 0]]))
    low, high = (ends[0, 0] for ends in ranges)
    shares = np.array([rng.permutation(member)[:40].mean() for _ in range(4000)])
    inside = ((shares >= low - 1e-9) & (shares <= high + 1e-9)).mean()
    assert 0.95 <= inside < 0.99
    assert [ends[:, 2].tolist() for ends in ranges] == [[0.0, 0.0], [1.0, 1.0]]
