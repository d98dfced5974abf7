"""The diabetes data that come with scikit-learn, which are real data and need no download."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes

from fairclust.datasets.generate import Generated


def make_sklearn_diabetes() -> Generated:
    """Return 442 patients with nine features (Efron et al. 2004); the two values of ``sex`` are the groups.

    The source codes sex as 1 and 2 and does not say what they mean, so the groups are called 'sex 1' and 'sex 2'.
    """
    bunch = load_diabetes(scaled=False)
    names = list(bunch.feature_names)
    sex = names.index("sex")
    values, groups = np.unique(bunch.data[:, sex], return_inverse=True)
    X = np.delete(bunch.data, sex, axis=1)
    del names[sex]
    return Generated(X, groups.astype(np.int32), tuple(names), tuple(f"sex {v:g}" for v in values))
