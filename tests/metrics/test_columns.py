import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fairclust import PriceFairKMeans
from fairclust.metrics import balance, by_column

LABELS = np.array([0, 0, 0, 1, 1, 1, 1])
FRAME = pd.DataFrame({"sex": list("ffmfmmm"), "race": list("abbabab")})


def test_each_column_and_the_worst():
    found = by_column("balance", LABELS, sensitive_features=FRAME)
    assert found == {
        "sex": balance(LABELS, sensitive_features=FRAME["sex"]),
        "race": balance(LABELS, sensitive_features=FRAME["race"]),
        "worst": pytest.approx(1 / 3),
    }
    assert found == by_column("balance", LABELS, sensitive_features=dict(FRAME.items()))
    assert found == by_column("balance", LABELS, sensitive_features=pa.Table.from_pandas(FRAME))
    # If lower values of a metric are fairer, the largest value is the worst.
    gaps = by_column("delta", LABELS, sensitive_features=FRAME.to_numpy())
    assert gaps["worst"] == max(gaps["0"], gaps["1"]) > min(gaps["0"], gaps["1"])


@pytest.mark.parametrize(
    "metric, columns, message",
    [("sse", FRAME, "no fairness metric 'sse'"), ("balance", None, "has no column")],
)
def test_unknown_metrics_and_columns_are_refused(metric, columns, message):
    with pytest.raises(ValueError, match=message):
        by_column(metric, LABELS, sensitive_features=columns)


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
