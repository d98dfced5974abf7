"""Mistakes that users of the estimators make, and the messages that explain them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

from fairclust import KMeans, PriceFairKMeans


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["age", "income"], index=[f"p{i}" for i in range(80)])
    return X, pd.Series(np.where(rng.random(80) < 0.5, "f", "m"), index=X.index, name="sex")


@pytest.mark.parametrize("cls", [PriceFairKMeans, KMeans])
def test_rows_and_groups_in_different_orders_are_refused(people, cls):
    X, sex = people
    model = cls(2, random_state=0).fit(X, sensitive_features=sex)
    shuffled = sex.sample(frac=1, random_state=0)
    for groups in (shuffled, {"sex": shuffled}, shuffled.to_frame()):
        with pytest.raises(ValueError, match=r"in different orders: row 0 is 'p0' in X, .*loc\[X\.index\]"):
            cls(2).fit(X, sensitive_features=groups)
    labels = cls(2, random_state=0).fit_predict(X, sensitive_features=shuffled.loc[X.index])
    np.testing.assert_array_equal(labels, model.labels_)
    # Rows are paired by position if the indexes have nothing to do with each other, or one has none.
    for groups in (sex.to_numpy(), sex.tolist(), sex.reset_index(drop=True)):
        np.testing.assert_array_equal(
            cls(2, random_state=0).fit_predict(X, sensitive_features=groups), labels
        )
    if cls is PriceFairKMeans:
        with pytest.raises(ValueError, match="in different orders"):
            model.predict(X, sensitive_features=shuffled)
        weights = pd.Series(np.arange(1.0, 81), index=X.index)[::-1]
        with pytest.raises(ValueError, match=r"X and sample_weight .* in different orders: row 0 is 'p0'"):
            cls(2).fit(X, sensitive_features=sex, sample_weight=weights)


def test_groups_as_the_second_argument(people):
    with pytest.raises(ValueError, match=r"by keyword, as in fit\(X, sensitive_features="):
        PriceFairKMeans(2).fit(*people)


def test_one_cluster_warns(people):
    X, sex = people
    with pytest.warns(UserWarning, match="n_clusters=1 puts all rows in one cluster"):
        KMeans(1).fit(X, sensitive_features=sex)


def test_a_search_without_routing_says_so_when_it_scores(people):
    X, sex = people
    search = GridSearchCV(PriceFairKMeans(2, n_init=1), {"n_clusters": [2]}, cv=2)
    with pytest.warns(UserWarning, match="enable_metadata_routing=True"):
        search.fit(X, sensitive_features=sex)
