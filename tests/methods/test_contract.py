"""Every method of the package keeps the common contract and passes scikit-learn's own checks."""

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import _num_samples

import fairclust.methods as methods
from fairclust.base import FairClusterer, NotSupported
from fairclust.methods._prototypes import MedoidClusterer

CLASSES = [getattr(methods, name) for name in methods.__all__]


def with_groups(cls):
    """Return a class that supplies groups itself, because scikit-learn's checks call it without any."""

    def groups(X):
        # The group of a row depends on the row alone, because the checks shuffle and split the rows.
        n_samples = _num_samples(X)
        try:
            rows = np.asarray(X, dtype=float)
        except (TypeError, ValueError):
            return np.arange(n_samples) % 2
        if rows.ndim != 2 or not np.isfinite(rows).all():
            return np.arange(n_samples) % 2
        return (np.floor(10 * np.abs(rows).sum(axis=1)) % 2).astype(int)

    def fit(self, X, y=None, *, sensitive_features=None, **more):
        return cls.fit(self, X, sensitive_features=groups(X), **more)

    members = {"fit": fit, "__doc__": cls.__doc__, "__module__": __name__}
    if hasattr(cls, "predict"):
        members["predict"] = lambda self, X, sensitive_features=None: cls.predict(self, X, groups(X))
    # One of the checks pickles the estimator, which finds its class by module and name.
    globals()[f"{cls.__name__}WithGroups"] = made = type(f"{cls.__name__}WithGroups", (cls,), members)
    return made


def make(cls):
    model = with_groups(cls)()
    # With exact shares the cheapest clusters of the checks' data are not the blobs that the checks look for.
    quick = {"n_clusters": 3, "lam": 1.0, "rho": 1.0, "tolerance": 0.3, "random_state": 0}
    return model.set_params(**{k: v for k, v in quick.items() if k in model.get_params()})


def impossible(estimator):
    if isinstance(estimator, methods.RandomLabels):
        return {"check_clustering": "asks for labels that find the blobs, which random ones must not"}
    return {}


@pytest.mark.slow
@parametrize_with_checks([make(cls) for cls in CLASSES], expected_failed_checks=impossible)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(params=CLASSES, ids=methods.__all__)
def model(request):
    return request.param(3, random_state=0)


def test_attributes(model, grouped_blobs):
    X, codes = grouped_blobs()
    assert model.fit(X, sensitive_features=codes) is model
    assert isinstance(model, FairClusterer)
    assert model.labels_.shape == (len(X),)
    assert np.issubdtype(model.labels_.dtype, np.integer)
    assert set(np.unique(model.labels_)) == set(range(3))
    assert model.n_iter_ >= 1
    np.testing.assert_array_equal(model.groups_, [0, 1])
    if hasattr(model, "cluster_centers_"):
        assert model.cluster_centers_.shape == (3, X.shape[1])
    assert model.history_
    for record in model.history_:
        assert {"step", "objective", "clustering", "fairness", "seconds"} <= record.keys()


def test_dask_tells_fitted_models_apart(model, grouped_blobs):
    tokenize = pytest.importorskip("dask.base").tokenize
    X, groups = grouped_blobs(n_samples=60)
    other = clone(model).fit(X[::-1], sensitive_features=groups[::-1])
    model.fit(X, sensitive_features=groups)
    assert tokenize(model) == tokenize(model) != tokenize(other)


def test_predict_follows_from_the_attributes(model, grouped_blobs):
    X, codes = grouped_blobs()
    X = 20 * X + 7
    if not hasattr(model, "predict"):
        pytest.skip("no map for new points")
    if "precision" in model.get_params():
        model.set_params(precision="double")
    model.fit(X, sensitive_features=codes)
    if isinstance(model, methods.FairMixture):
        density = norm.logpdf(X[:, None], model.means_, np.sqrt(model.variances_)).sum(axis=2)
        best = (np.log(model.weights_) + density).argmax(axis=1)
    else:
        metric = "euclidean" if isinstance(model, MedoidClusterer) else "sqeuclidean"
        costs = cdist(X, model.cluster_centers_, metric)
        if hasattr(model, "offset_"):
            costs = model.scale_ * costs + model.offset_[codes]
        best = costs.argmin(axis=1)
    np.testing.assert_array_equal(model.predict(X, codes), best)
    # Methods that round to whole points state for how many of them predict gives another label.
    assert (best != model.labels_).sum() == getattr(model, "n_rounded_", 0) < 10


def test_a_model_predicts_what_it_was_fitted_for(model, grouped_blobs):
    X, codes = grouped_blobs(n_samples=60)
    if not hasattr(model, "predict"):
        pytest.skip("no map for new points")
    model.fit(X, sensitive_features=codes)
    expected, score = (of(X, sensitive_features=codes) for of in (model.predict, model.score))
    for n_clusters in (2, 5):
        model.set_params(n_clusters=n_clusters)
        np.testing.assert_array_equal(model.predict(X, sensitive_features=codes), expected)
        assert model.score(X, sensitive_features=codes) == score


def test_a_refit_has_no_attribute_of_the_fit_before(model, grouped_blobs):
    X, groups = grouped_blobs(n_samples=60)
    fresh = clone(model).set_params(n_clusters=1).fit(X, sensitive_features=groups)
    model.fit(X, sensitive_features=groups).set_params(n_clusters=1).fit(X, sensitive_features=groups)
    assert vars(model).keys() == vars(fresh).keys()


def test_costs_are_in_the_unit_of_the_data(model, grouped_blobs):
    X, codes = grouped_blobs(n_samples=300)
    X = 50 * X - 1e7
    model.fit(X, sensitive_features=codes)
    costs = {name: getattr(model, name) for name in ("cost_", "inertia_", "radius_") if hasattr(model, name)}
    if not costs:
        pytest.skip("no cost of labels and centres")
    distances = np.linalg.norm(X - model.cluster_centers_[model.labels_], axis=1)
    expected = distances.max() if "radius_" in costs else (distances**model._power).sum()
    assert list(costs.values()) == [pytest.approx(expected, rel=1e-5)]
    if hasattr(model, "lower_bound_"):
        assert model.lower_bound_ == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    "groups, message",
    [
        (None, "sensitive_features is missing"),
        (np.zeros(599), "has 599 rows, X has 600"),
        (np.where(np.arange(600) == 7, np.nan, 1.0), r"1 missing value \(first in row 7\)"),
    ],
)
def test_bad_groups(model, grouped_blobs, groups, message):
    X, _ = grouped_blobs()
    if groups is None and not model._needs_groups:
        plain = clone(model).fit_predict(X, sensitive_features=np.zeros(len(X)))
        np.testing.assert_array_equal(model.fit(X).labels_, plain)
        return
    with pytest.raises(ValueError, match=message):
        model.fit(X, sensitive_features=groups)


def test_more_clusters_than_rows(model):
    with pytest.raises(ValueError, match="n_clusters=3 is more than n_samples=2"):
        model.fit([[0.0], [1.0]], sensitive_features=[0, 1])


@pytest.mark.parametrize(
    "value, message",
    [
        (np.nan, "NaN in row 17, column 1; cells that are not finite: 1"),
        (-np.inf, "infinity in row 17, column 1; cells that are not finite: 1"),
        (1e200, r"1e\+200 in row 17, column 1, and squares of such numbers are too large"),
    ],
)
def test_numbers_that_no_cost_can_hold_are_named(model, grouped_blobs, value, message):
    X, groups = grouped_blobs()
    X[17, 1] = value
    with pytest.raises(ValueError, match=message):
        model.fit(X, sensitive_features=groups)


NORMAL = np.random.default_rng(0).normal(size=(40, 2))
ODD = {
    "one group": (NORMAL, np.zeros(40)),
    "a group of one point": (NORMAL, np.arange(40) == 0),
    "as many clusters as rows": (np.arange(3.0)[:, None], [0, 1, 0]),
    "a constant column": (np.c_[NORMAL[:, 0], np.ones(40)], np.arange(40) % 3),
    "duplicates": (np.repeat(np.arange(4.0), 10)[:, None], np.arange(40) % 2),
    "all points equal": (np.ones((12, 2)), np.arange(12) % 2),
    "fewer different rows than clusters": (np.arange(1200)[:, None] // 4 % 2, np.arange(1200) % 2),
    "float32": (NORMAL.astype(np.float32), np.arange(40) % 2),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_data(model, name):
    X, codes = ODD[name]
    try:
        labels = model.fit_predict(X, sensitive_features=codes)
    except NotSupported as reason:
        assert "two groups" in str(reason) and len(np.unique(codes)) > 2
        pytest.skip(str(reason))
    assert labels.min() >= 0
    assert labels.max() < 3
    # Balanced k-means fills clusters that its start left empty.
    if name == "one group" or isinstance(model, methods.BalancedFairKMeans):
        assert len(np.unique(labels)) == 3


TOO_LARGE = [
    (methods.FairDen(max_memory_mb=0.01), 100, "take fewer rows"),
    (methods.FairletClustering(3), 5001, "at most 5000 rows, found 5001; FairletTreeClustering takes"),
    (
        methods.FairSpectralClustering(3, solver="nullspace", max_memory_mb=1),
        400,
        r"solver='nullspace' needs about 5 MB for 400 rows.*'projected'",
    ),
    (
        methods.FairSpectralClustering(3, affinity="max_scaled", max_memory_mb=1),
        400,
        r"affinity='max_scaled' needs about 1 MB for 400 rows",
    ),
]


@pytest.mark.parametrize("model, n_rows, message", TOO_LARGE, ids=lambda value: type(value).__name__)
def test_more_rows_than_a_method_is_made_for_are_refused(model, n_rows, message, grouped_blobs):
    X, codes = grouped_blobs(n_rows)
    with pytest.raises(NotSupported, match=message):
        model.fit(X, sensitive_features=codes)


PRICES = {
    "tolerance": [1.0, -0.1], "min_balance": [1.5], "max_gap": [-1], "size_min": [-1],
    "max_cost": [-1.0], "crossed": ["yes"], "mean_tolerance": [0.1],
}  # fmt: skip
OUT_OF_RANGE = {
    methods.BeraFairKMeans: {"tolerance": [1.0, -0.1], "n_clusters": [0, True], "n_init": [0]},
    methods.FairAlignmentKMeans: {"epsilon": [1.5], "block_size": [0], "transport_weight": [-1.0]},
    methods.PriceFairKMeans: PRICES,
}


@pytest.mark.parametrize("cls", OUT_OF_RANGE)
def test_parameters_out_of_range_are_named(cls, grouped_blobs):
    X, codes = grouped_blobs()
    for name, values in OUT_OF_RANGE[cls].items():
        for value in values:
            with pytest.raises(ValueError, match=name):
                cls(**{name: value}).fit(X, sensitive_features=codes)


STEPS = {
    methods.BalancedFairKMeans: ({"rho": 100.0}, "stopped after 1 sweep with .* points still moving"),
    methods.FairAlignmentKMeans: ({}, "stopped after 1 rounds.*raise max_iter or tol"),
    methods.FairMixture: ({}, "stopped after 1 step .* raise max_iter"),
    methods.PriceFairKMeans: ({}, "stopped after 1 outer step .* raise max_iter"),
    methods.SociallyFairKMeans: ({}, "stopped after 1 step, .* raise max_iter or tol"),
    methods.VariationalFairKMeans: ({}, "stopped after 1 outer step .* raise max_iter or tol"),
}


@pytest.mark.parametrize("cls", STEPS)
def test_too_few_steps_are_announced_at_the_line_of_the_user(cls, grouped_blobs):
    X, codes = grouped_blobs()
    params, message = STEPS[cls]
    model = cls(4, max_iter=1, random_state=0, **params)
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model.fit(X, sensitive_features=codes)
    assert {warning.filename for warning in caught} == {__file__}
    assert not model.converged_
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.set_params(max_iter=1000).fit(X, sensitive_features=codes)
    assert model.converged_


def test_warnings_reach_code_that_is_in_no_module(grouped_blobs):
    model = methods.KMeans(4, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 step"):
        exec("model.fit(X)", {"model": model, "X": grouped_blobs()[0]})


FALLING = [
    methods.FairAlignmentKMeans(4, transport_weight=1.0),
    methods.FairAlignmentKMeans(4, transport_weight=2.0),
    methods.SociallyFairKMeans(4),
]


@pytest.mark.parametrize("model", FALLING, ids=str)
def test_the_objective_never_rises(model, grouped_blobs):
    n_steps = []
    for seed in range(4):
        X, codes = grouped_blobs(n_samples=300, seed=seed)
        model.set_params(tol=0.0, random_state=seed).fit(X, sensitive_features=codes)
        objectives = np.array([record["objective"] for record in model.history_])
        assert (np.diff(objectives) <= 1e-12 * objectives[0]).all()
        n_steps.append(len(objectives))
    assert max(n_steps) > 3


@pytest.mark.parametrize("cls", [cls for cls in CLASSES if cls.takes_weights])
def test_weights_count_as_copies_of_rows(cls, grouped_blobs):
    X, codes = grouped_blobs(n_samples=300)
    times = 1 + np.arange(len(X)) % 3
    weighted = cls(3, init=X[:3], precision="double")
    copied = clone(weighted).fit(np.repeat(X, times, axis=0), sensitive_features=np.repeat(codes, times))
    weighted.fit(X, sensitive_features=codes, sample_weight=times)
    np.testing.assert_allclose(weighted.cluster_centers_, copied.cluster_centers_)
    # Rows of a group that tie can change places where labels are rounded.
    assert weighted.history_[-1]["objective"] == pytest.approx(copied.history_[-1]["objective"], rel=1e-4)
    assert (np.repeat(weighted.labels_, times) != copied.labels_).sum() < 15


def test_numbers_in_single_precision_give_the_same_labels(model, grouped_blobs):
    X, codes = grouped_blobs(n_samples=200)
    single = (50 * X + 3).astype(np.float32)
    before = clone(model).fit_predict(single.astype(np.float64), sensitive_features=codes)
    np.testing.assert_array_equal(model.fit(single, sensitive_features=codes).labels_, before)
    if hasattr(model, "predict"):
        found = model.predict(single.astype(np.float64), codes)
        np.testing.assert_array_equal(found, model.predict(single, codes))


def test_every_method_finds_two_blobs_far_apart(model):
    if isinstance(model, methods.RandomLabels):
        pytest.skip("random labels find nothing")
    rng = np.random.default_rng(0)
    heap = np.arange(160) % 2
    # Both heaps have the same shares of groups, so the fair clusters are the heaps.
    X, codes = rng.normal(size=(160, 2)) + 40 * heap[:, None], np.arange(160) // 2 % 2
    labels = model.set_params(n_clusters=2).fit_predict(X, sensitive_features=codes)
    assert (labels == heap).mean() in (0, 1)
