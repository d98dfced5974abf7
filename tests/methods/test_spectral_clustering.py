import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.cluster import SpectralClustering as Theirs
from sklearn.metrics import adjusted_rand_score

from fairclust.base import NotSupported
from fairclust.datasets.msbm import make_msbm
from fairclust.kernels.graph import build_knn_graph, max_scaled_affinity
from fairclust.methods import FairSpectralClustering, SpectralClustering, VariationalFairNCut
from fairclust.metrics.counts import contingency
from fairclust.metrics.fairness import average_balance
from fairclust.metrics.quality import clustering_error
from twins import counts_of

CLASSES = [SpectralClustering, FairSpectralClustering]


def test_fair_methods_see_through_the_groups_of_the_block_model():
    # The published programs have errors of about 0.024 with both fair solvers and 0.25 without fairness, for n = 1,000.
    models = [
        SpectralClustering(5),
        *(FairSpectralClustering(5, solver=s) for s in ("projected", "nullspace")),
    ]
    for seed in range(2):
        made, errors = make_msbm(1000, seed=seed), []
        for model in models:
            model.set_params(affinity="precomputed", random_state=0).fit(
                made.W, sensitive_features=made.groups
            )
            errors.append(clustering_error(model.labels_, made.truth))
        assert average_balance(contingency(model.labels_, made.groups, 5, 2)) > 0.9
        assert errors[0] > 0.15
        assert errors[1] == errors[2] < 0.05


def test_attributes_say_how_exact_the_coordinates_are():
    made = make_msbm(700, seed=5)
    model = FairSpectralClustering(5, affinity="precomputed", random_state=0)
    model.fit(made.W, sensitive_features=made.groups)
    assert max(model.residual_, model.constraint_) < 1e-8
    assert model.embedding_.shape == (700, 5)
    assert (np.diff(model.eigenvalues_) >= 0).all()
    record = model.history_[0]
    assert record["objective"] > 0
    assert record["clustering"] == pytest.approx(model.eigenvalues_.sum())


def test_plain_spectral_clustering_agrees_with_scikit_learn(grouped_blobs):
    X, codes = grouped_blobs(n_samples=300)
    W = build_knn_graph(X, 20)
    ours = SpectralClustering(4, random_state=0).fit_predict(X, sensitive_features=codes)
    theirs = Theirs(4, affinity="precomputed", random_state=0).fit_predict(W.toarray())
    assert adjusted_rand_score(ours, theirs) > 0.99


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("affinity", ["nearest_neighbors", "max_scaled"])
def test_points_sparse_and_dense_affinities_agree(cls, affinity, grouped_blobs):
    X, codes = grouped_blobs(n_samples=300, n_groups=3)
    X = 5 * X  # for the unit matters to one of the affinities
    W = build_knn_graph(X, 20).toarray() if affinity == "nearest_neighbors" else max_scaled_affinity(X)
    wanted = cls(4, affinity=affinity, random_state=0).fit(X, sensitive_features=codes)
    for data in (W, sp.csr_array(W), sp.coo_matrix(W)):
        model = cls(4, affinity="precomputed", random_state=0).fit(data, sensitive_features=codes)
        np.testing.assert_array_equal(model.labels_, wanted.labels_)
        np.testing.assert_allclose(model.eigenvalues_, wanted.eigenvalues_, atol=1e-6)


@pytest.mark.parametrize("cls", [FairSpectralClustering, VariationalFairNCut])
def test_a_graph_that_cannot_be_fitted_leaves_the_model_as_it_was(cls, grouped_blobs):
    X, codes = grouped_blobs(n_samples=60)
    W = build_knn_graph(X, 10)
    model = cls(3, affinity="precomputed", random_state=0).fit(W, sensitive_features=codes)
    before = vars(model).copy()
    with pytest.raises(ValueError, match="n_clusters=3 is more than n_samples=2"):
        model.fit(np.ones((2, 2)), sensitive_features=["f", "m"])
    with pytest.raises(NotSupported, match=f"{cls.__name__} takes one sensitive column, found 2"):
        model.fit(W, sensitive_features=np.c_[codes, codes])
    assert vars(model).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(model).items())


@pytest.mark.parametrize("shuffled", ["sensitive_features", "points"])
def test_rows_paired_by_another_order_than_the_nodes_are_refused(shuffled):
    paired = {"sensitive_features": pd.Series([0, 1] * 3), "points": pd.DataFrame(np.eye(6))}
    paired[shuffled] = paired[shuffled][::-1]
    with pytest.raises(ValueError, match=f"X and {shuffled} have one index in different orders"):
        VariationalFairNCut(2, affinity="precomputed").fit(pd.DataFrame(np.ones((6, 6))), **paired)


@pytest.mark.parametrize(
    "model",
    [
        FairSpectralClustering(2, solver="projected"),
        FairSpectralClustering(2, solver="nullspace"),
        VariationalFairNCut(2, lam=1.0),
    ],
)
@pytest.mark.parametrize("apart", [4, 40])
def test_fair_cut_of_four_blobs(model, apart):
    # The left blobs are one group and the right blobs the other. Far apart, each blob is a component of the graph.
    corner = np.repeat([0, 1, 2, 3], 50)
    X = np.random.default_rng(1).normal(size=(200, 2))
    X += np.array([[0, 0], [apart, 0], [0, 60], [apart, 60]])[corner]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        labels = model.set_params(random_state=0).fit_predict(X, sensitive_features=corner % 2)
    assert any("can differ between machines" in str(warning.message) for warning in told) == (apart == 40)
    assert counts_of(labels, corner % 2, 2).tolist() == [[50, 50], [50, 50]]


@pytest.mark.parametrize("cls", [*CLASSES, VariationalFairNCut])
@pytest.mark.parametrize("affinity", ["nearest_neighbors", "max_scaled", "precomputed"])
def test_tags_say_what_the_input_is(cls, affinity):
    tags = cls(affinity=affinity).__sklearn_tags__().input_tags
    assert (tags.pairwise, tags.sparse) == (affinity == "precomputed",) * 2
