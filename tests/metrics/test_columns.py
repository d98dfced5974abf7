import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fairclust import PriceFairKMeans
from fairclust.metrics import balance, fairness_error

LABELS = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1])
FRAME = pd.DataFrame({"sex": list("ffmmmffmm"), "race": list("abbaaabba")})


def test_columns_in_any_form_are_combined():
    combined = FRAME["sex"] + FRAME["race"]
    for columns in (FRAME, dict(FRAME.items()), pa.Table.from_pandas(FRAME), FRAME.to_numpy()):
        found = fairness_error(LABELS, sensitive_features=columns)
        assert 0 < found == fairness_error(LABELS, sensitive_features=combined)


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
