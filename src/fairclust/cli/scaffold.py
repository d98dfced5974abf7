"""`fairclust new-method`: writes the skeleton of a method, and a test of it."""

from __future__ import annotations

import argparse
import keyword
import re

from fairclust.cli import CommandError
from fairclust.outputs import atomic_write

_METHOD = '''"""{title}."""

import numpy as np
from sklearn.utils import check_random_state

from fairclust.base import COUNT, FairClusterer


class {cls}(FairClusterer):
    """{title}: say here what the method minimises, and where it comes from.

    Parameters
    ----------
    n_clusters : int, default=8
    max_iter : int, default=100
    random_state : int, RandomState or None
    """

    # `_fit` gets X centred and scaled. Costs are squared distances, so they are multiplied by the scale to this power.
    _power = 2
    _parameter_constraints = {{
        "n_clusters": COUNT,
        "max_iter": COUNT,
        "random_state": ["random_state"],
    }}

    def __init__(self, n_clusters=8, *, max_iter=100, random_state=None):
        self.n_clusters = n_clusters
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit(self, X, codes):
        """X: (n_samples, n_features), finite. codes: the group of every row, 0, 1, ... J - 1."""
        rng = check_random_state(self.random_state)
        centers = X[rng.choice(len(X), self.n_clusters, replace=False)].astype(float)
        self.history_ = []
        for step in range(1, self.max_iter + 1):
            # These are Lloyd's steps, which ignore the groups. Put your fair assignment here.
            distances = ((X[:, None] - centers) ** 2).sum(axis=2)
            labels = distances.argmin(axis=1)
            cost = float(distances[np.arange(len(X)), labels].sum())
            self.history_.append({{"step": step, "objective": cost, "clustering": cost, "fairness": 0.0}})
            old = centers.copy()
            for k in np.unique(labels):
                centers[k] = X[labels == k].mean(axis=0)
            if np.array_equal(old, centers):
                break
        self.labels_, self.cluster_centers_, self.n_iter_ = labels, centers, step
'''

_TEST = '''"""Tests of {cls}; add tests of what could be wrong with this method."""

import numpy as np
import pytest
from {package}.{name} import {cls}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(c, 0.2, (40, 2)) for c in (0, 3)]), np.arange(80) % 2


def test_labels_and_history(data):
    X, groups = data
    model = {cls}(2, random_state=0).fit(X, sensitive_features=groups)
    assert model.labels_.shape == (80,)
    assert set(model.labels_) <= {{0, 1}}
    costs = [step["objective"] for step in model.history_]
    assert costs == sorted(costs, reverse=True)


def test_same_seed_same_labels(data):
    X, groups = data
    first, second = ({cls}(2, random_state=1).fit_predict(X, sensitive_features=groups) for _ in "12")
    np.testing.assert_array_equal(first, second)


def test_more_clusters_than_rows_is_an_error(data):
    X, groups = data
    with pytest.raises(ValueError, match="n_clusters"):
        {cls}(81).fit(X, sensitive_features=groups)
'''


def run(args: argparse.Namespace) -> list[str]:
    """Write the skeleton of a method, and say what was written and what to do next.

    `args.name` is in snake_case, and `args.folder` becomes a package. CommandError if the name cannot be that of a
    module, or a file exists already.
    """
    name, package = args.name, args.folder.name
    for what, word in (("NAME", name), ("--folder", package)):
        if not re.fullmatch(r"[a-z][a-z0-9_]*", word) or keyword.iskeyword(word):
            raise CommandError(f"{what}: {word!r} must be small letters, digits and underscores: my_method")
    cls = "".join(part.capitalize() for part in name.split("_") if part)
    words = {"name": name, "cls": cls, "package": package, "title": name.replace("_", " ").capitalize()}
    files = {args.folder / f"{name}.py": _METHOD, args.folder / f"test_{name}.py": _TEST}
    for path in files:
        if path.exists():
            raise CommandError(f"{path} exists already; nothing was written")
    for path, text in {args.folder / "__init__.py": "", **files}.items():
        # An existing package keeps its file.
        if not path.exists():
            with atomic_write(path) as file:
                file.write(text.format(**words).encode())
    return [
        *(f"written: {path}" for path in files),
        f"test it: python -m pytest {args.folder / f'test_{name}.py'}",
        "run it: write this below `methods:` in a file of your own, add the name to `run.methods` there, and call "
        "snakemake --configfile my.yaml",
        f"  {name}:",
        f"    class: {'.'.join(args.folder.parts)}.{name}.{cls}",
        f"    label: {words['title']}",
    ]
