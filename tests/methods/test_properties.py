"""Labels do not depend on the number of threads, on random data of several kinds."""

import numba
import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from test_equivariance import QUICK

import fairclust.methods as methods
from fairclust.base import NotSupported
from toys import make_grouped_blobs

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Number of distinct clusters"),
    pytest.mark.filterwarnings("ignore:.*groups in .* rows are too many"),
]
CHANGES = {
    "blobs": lambda X: X,
    "duplicates": lambda X: np.round(2 * X),
    "heavy tails": lambda X: np.sinh(3 * X),
}


@pytest.mark.parametrize("name", methods.__all__)
def test_threads(name, seed=1, n_rows=600, n_groups=2, n_clusters=3, kind="duplicates"):
    X, codes = make_grouped_blobs(n_rows, n_features=2, n_groups=n_groups, seed=seed)
    quick = {"n_clusters": n_clusters, "random_state": 0, **QUICK.get(name, {})}
    model = getattr(methods, name)()
    model.set_params(**{key: value for key, value in quick.items() if key in model.get_params()})
    before, found = numba.get_num_threads(), []
    try:
        for threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
            numba.set_num_threads(threads)
            found.append(model.fit_predict(CHANGES[kind](X), sensitive_features=codes))
    except NotSupported:
        # The method does not support this number of groups, so Hypothesis tries other data.
        reject()
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(found[0], found[1])
    assert found[0].min() >= 0
    assert found[0].max() < n_clusters


@pytest.mark.slow
@pytest.mark.parametrize("name", methods.__all__)
@settings(max_examples=15, deadline=None, derandomize=True, database=None)
@given(
    seed=st.integers(0, 10_000),
    n_rows=st.integers(30, 700),
    n_groups=st.integers(1, 3),
    n_clusters=st.integers(1, 5),
    kind=st.sampled_from(list(CHANGES)),
)
def test_threads_on_many_data(name, **drawn):
    test_threads(name, **drawn)
