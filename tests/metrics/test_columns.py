import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fairclust import FairMixture, KMeans, PriceFairKMeans, fair_assignment, profiles
from fairclust.metrics import balance, clustering_error, fairness_error, group_codes, group_costs

LABELS = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1])
FRAME = pd.DataFrame({"sex": list("ffmmmffmm"), "race": list("abbaaabba")})
MIXTURE = FairMixture(2, random_state=0).fit(FRAME.eq("f").astype(float), sensitive_features=FRAME["sex"])


def test_columns_in_any_form_are_combined():
    combined = FRAME["sex"] + FRAME["race"]
    for columns in (FRAME, dict(FRAME.items()), pa.Table.from_pandas(FRAME), FRAME.to_numpy()):
        found = fairness_error(LABELS, sensitive_features=columns)
        assert 0 < found == fairness_error(LABELS, sensitive_features=combined)
        np.testing.assert_array_equal(group_codes(columns), group_codes(combined))


@pytest.mark.parametrize("columns", [FRAME.set_axis(["sex", "sex"], axis=1), {"1": FRAME.sex, 1: FRAME.race}])
@pytest.mark.parametrize(
    "call",
    [
        lambda columns: balance(LABELS, sensitive_features=columns),
        lambda columns: PriceFairKMeans(2).fit(LABELS[:, None], sensitive_features=columns),
    ],
)
def test_two_columns_of_one_name_are_refused(call, columns):
    with pytest.raises(ValueError, match=r"has two columns of one name among .*: rename one of them"):
        call(columns)


@pytest.mark.parametrize(
    "call",
    [
        lambda X, labels, sex: balance(labels, sensitive_features=sex),
        lambda X, labels, sex: balance(labels, sensitive_features={"sex": sex, "race": sex}),
        lambda X, labels, sex: group_costs(X.to_numpy(), labels, sensitive_features=sex),
        lambda X, labels, sex: group_costs(X, labels.to_numpy(), sensitive_features=sex),
        lambda X, labels, sex: clustering_error(labels, sex.eq("f").astype(int)),
        lambda X, labels, sex: fair_assignment(X, sensitive_features=sex),
        lambda X, labels, sex: profiles(X, sex.eq("f").astype(int)),
        lambda X, labels, sex: KMeans(2).fit(X).score(X, sample_weight=sex.eq("f") + 1.0),
        lambda X, labels, sex: MIXTURE.score(X, sample_weight=sex.eq("f") + 1.0),
        lambda X, labels, sex: fair_assignment(X.to_numpy(), labels, sample_weight=sex.eq("f") + 1.0),
        lambda X, labels, sex: balance(labels.to_numpy(), sensitive_features={"sex": sex, "age": labels}),
    ],
)
def test_rows_in_different_orders_are_refused_as_in_fit(call):
    X, labels = FRAME.eq("f").astype(float), pd.Series(LABELS)
    call(X, labels, FRAME["sex"])
    call(X, labels, FRAME["sex"][::-1].set_axis(range(9, 18)))  # another index pairs by position
    pairs = "(X|labels|distances|sensitive_features.*) and (sensitive_features.*|truth|labels|sample_weight)"
    with pytest.raises(ValueError, match=f"{pairs} have one index in different orders"):
        call(X, labels, FRAME["sex"][::-1])
