"""Small data for the tests."""

import numba
import numpy as np
import pandas as pd
from hypothesis import strategies as st

from fairclust.datasets.store import PreparedDataset, save_prepared
from fairclust.pipeline import fingerprint


def write_people(path, n_rows=200, seed=0):
    """Write the table that the examples of the pages read as `people.csv`, and return it."""
    rng = np.random.default_rng(seed)
    people = pd.DataFrame(rng.normal(size=(n_rows, 2)), columns=["age", "income"])
    people = people.assign(sex=rng.choice(["f", "m"], n_rows), ethnicity=rng.choice(["a", "b"], n_rows))
    people.to_csv(path, index=False)
    return people


def make_grouped_blobs(n_samples=600, n_features=3, n_clusters=4, n_groups=2, seed=0):
    """Draw standardised blobs whose group shares differ from blob to blob."""
    rng = np.random.default_rng(seed)
    blob = rng.integers(n_clusters, size=n_samples)
    X = rng.normal(scale=3, size=(n_clusters, n_features))[blob] + rng.normal(size=(n_samples, n_features))
    shares = rng.dirichlet(np.full(n_groups, 2.0), size=n_clusters).cumsum(axis=1)
    codes = (rng.random((n_samples, 1)) >= (shares / shares[:, -1:])[blob]).sum(axis=1)
    codes[:n_groups] = np.arange(n_groups)
    return (X - X.mean(axis=0)) / X.std(axis=0), codes


def two_columns(n_samples):
    """Draw points, and two sensitive columns that depend on them."""
    X, race = make_grouped_blobs(n_samples=n_samples, n_groups=3)
    rng = np.random.default_rng(0)
    sex = np.where(X[:, 0] + rng.normal(size=len(X)) > np.median(X[:, 0]), "m", "f")
    return X, pd.DataFrame({"sex": sex, "race": np.array(["a", "b", "c"])[race]})


@st.composite
def odd_affinities(draw):
    """Draw a small affinity with several components and self-loops, groups, and a number of clusters."""
    n = draw(st.integers(1, 16))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    A = rng.integers(0, 3, (n, n)) * (rng.random((n, n)) < draw(st.sampled_from([0.1, 0.3, 1.0])))
    if draw(st.booleans()):
        A = np.kron(np.eye(3), A)
    W = (A + A.T) / 2 * draw(st.sampled_from([1e-6, 1.0, 1e6]))
    W[np.diag_indices(len(W))] += W.sum(axis=1) == 0
    codes = rng.integers(0, draw(st.integers(1, 4)), len(W))
    return W, np.unique(codes, return_inverse=True)[1], draw(st.integers(1, len(W)))


def save_points(folder, name="toy", n_rows=2000):
    """Write a prepared data set of normal points in two groups of the same size."""
    X = np.random.default_rng(0).normal(size=(n_rows, 2))
    groups = np.tile(np.array([0, 1], np.int32), n_rows // 2)
    names = ("a", "b"), ("f", "m")
    card = {"status": "ok", "name": name, "rows": n_rows, "columns": ["a", "b"]}
    card["groups"] = [{"name": group, "size": n_rows // 2} for group in names[1]]
    data = PreparedDataset(X, groups, *names, card)
    card["data_hash"] = data.content_hash()
    save_prepared(data, folder)


def places(content, most=None, at=()):
    """Yield the keys that lead to every value of a JSON document, of lists only to the first `most` items."""
    inside = content.items() if isinstance(content, dict) else ()
    for key, value in enumerate(content[:most]) if isinstance(content, list) else inside:
        yield (*at, key)
        yield from places(value, most, (*at, key))


def inside_of(content, place):
    """Return what holds the value at a place, a sequence of keys. Mappings that are not there are made."""
    for key in place[:-1]:
        content = content.setdefault(key, {}) if isinstance(content, dict) else content[key]
    return content


def forget_code():
    """Forget where modules are, because tests have packages of one name in several folders."""
    for cached in vars(fingerprint).values():
        if hasattr(cached, "cache_clear"):
            cached.cache_clear()


def with_one_thread_and_several(function):
    """Call a function with one thread and with as many as there are, and return both results."""
    before, found = numba.get_num_threads(), []
    try:
        for threads in (1, numba.config.NUMBA_NUM_THREADS):
            numba.set_num_threads(threads)
            found.append(function())
    finally:
        numba.set_num_threads(before)
    return found
