import numpy as np
import pytest

from fairclust import lam_path
from fairclust.methods import VariationalFairKMeans, VariationalFairKMedians
from fairclust.metrics.counts import contingency
from fairclust.metrics.fairness import fairness_error

LAMS = [200.0, 0.0, 2000.0, 20.0]


@pytest.mark.parametrize("match_reference", [True, False])
@pytest.mark.parametrize("method", [VariationalFairKMeans, VariationalFairKMedians])
def test_every_fit_of_the_path_equals_a_single_fit(grouped_blobs, method, match_reference):
    X, codes = grouped_blobs(n_samples=1500, n_groups=3)
    estimator = method(4, random_state=0, match_reference=match_reference)
    path = lam_path(estimator, X, LAMS, sensitive_features=codes)
    np.testing.assert_array_equal(path.lams, sorted(LAMS))
    for lam, fitted in zip(path.lams, path.estimators, strict=True):
        alone = method(4, random_state=0, match_reference=match_reference, lam=lam).fit(
            X, sensitive_features=codes
        )
        assert fitted.lam == lam
        np.testing.assert_array_equal(fitted.labels_, alone.labels_)
        np.testing.assert_array_equal(fitted.cluster_centers_, alone.cluster_centers_)
        np.testing.assert_array_equal(fitted.predict(X, codes), fitted.labels_)
    assert path.best is None
    assert not hasattr(estimator, "labels_")


def test_the_smallest_lam_that_is_fair_enough(grouped_blobs):
    X, codes = grouped_blobs(n_samples=1500)
    groups = np.array(["red", "green"])[codes]
    path = lam_path(
        VariationalFairKMeans(4, random_state=0), X, LAMS, sensitive_features=groups, fairness_error=0.05
    )
    codes_of = {name: code for code, name in enumerate(path.estimators[0].groups_)}
    own = [codes_of[name] for name in groups]
    errors = [fairness_error(contingency(fit.labels_, own, 4, 2)) for fit in path.estimators]
    np.testing.assert_allclose(path.fairness_errors, errors)
    assert path.best == next(i for i, error in enumerate(errors) if error <= 0.05)
    assert path.best > 0
    never = lam_path(VariationalFairKMeans(4), X, [0.0], sensitive_features=groups, fairness_error=0.0)
    assert never.best is None


@pytest.mark.parametrize("match_reference", [True, False])
def test_warm_start_goes_on_from_the_fit_before(grouped_blobs, match_reference):
    X, codes = grouped_blobs(n_samples=3000)
    estimator = VariationalFairKMeans(4, random_state=0, match_reference=match_reference)
    cold, warm = (
        lam_path(estimator, X, [100, 200, 300, 400], sensitive_features=codes, warm_start=w)
        for w in (False, True)
    )
    steps = [sum(fit.n_iter_ for fit in path.estimators) for path in (cold, warm)]
    assert steps[1] < steps[0]
    for fit in warm.estimators:
        np.testing.assert_array_equal(fit.predict(X, codes), fit.labels_)
