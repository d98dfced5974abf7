"""`match_reference` of fair mixtures against a transcription of the authors' program on N x K matrices.

The facts: the program minimises, for fixed responsibilities r of an E-step,

    -mean_ik r_ik log(pi_k f_k(x_i)) + lam max_jk m_k |P(j | k) - P(j)| + 10 P(s) / (n_sc + 1e-6)

by ten steps of a new Adam in each round. m_k is the mean of r_ik. The shares P(j | k) and the sums n_sc are those of
the current responsibilities. (s, c) is the group and component with the fewest points that are assigned to their most
probable component. The variance is shared, and its inverse root is the parameter.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.cluster import KMeans

from fairclust.methods import FairMixture
from fairclust.methods.mixture import fit, rows

K, LAM, ROUNDS = 3, 10.0, 15


def make_numeric(n_groups):
    rng = np.random.default_rng(10)
    centers = np.array([[0.0, 0.0], [1.6, 0.24], [0.48, 1.44]])
    X = centers[rng.integers(K, size=400)] + 0.4 * rng.normal(size=(400, 2))
    low = 0.8 + 0.16 * np.tanh(X[:, 0] - 1)
    return SimpleNamespace(
        X=X, codes=(rng.random(400) * n_groups * low).astype(int), sizes=(), onehot=np.zeros((400, 0))
    )


def make_categories(n_groups):
    rng = np.random.default_rng(1)
    truth, sizes = rng.integers(K, size=400), (3, 4)
    X = np.stack([np.where(rng.random(400) < 0.8, truth, rng.integers(s, size=400)) for s in sizes], axis=1)
    codes = (rng.random(400) * n_groups * (0.7 + 0.3 * (truth == 1))).astype(int)
    onehot = np.hstack([np.eye(s)[X[:, f]] for f, s in enumerate(sizes)])
    return SimpleNamespace(X=X.astype(float), codes=codes, sizes=sizes, onehot=onehot)


def by_feature(function, logits, sizes):
    if not sizes:
        return logits
    return np.hstack([function(part, axis=1) for part in np.split(logits, np.cumsum(sizes)[:-1], axis=1)])


class Transcription:
    """The program's parameters and rounds. The numeric or the categorical part of the points is empty."""

    def __init__(self, data, eta, means, root, logits):
        self.points = data.X if not data.sizes else np.zeros((len(data.X), 0))
        self.data, self.parameters = data, [eta, means, np.array([root]), logits]
        self.member = data.codes == np.arange(data.codes.max() + 1)[:, None]
        self.share = self.member.mean(axis=1)

    def joint(self):
        eta, means, root, logits = self.parameters
        self.away = self.points[:, None] - means
        n_numeric = self.points.shape[1]
        z = log_softmax(eta) + n_numeric * (np.log(root[0]) - 0.5 * np.log(2 * np.pi))
        z = z - 0.5 * root[0] ** 2 * (self.away**2).sum(axis=2)
        return z + self.data.onehot @ by_feature(log_softmax, logits, self.data.sizes).T

    def counts(self, z):
        return self.member @ np.eye(K)[z.argmax(axis=1)]

    def penalty(self, z, held):
        """Value of the penalty, and its derivative with respect to the responsibilities."""
        psi, counts = softmax(z, axis=1), self.counts(z)
        sums, total = self.member @ psi, psi.sum(axis=0)
        excess = sums / total - self.share[:, None]
        j, k = np.unravel_index((held * abs(excess)).argmax(), excess.shape)
        s, c = np.unravel_index(counts.argmin(), counts.shape)
        by_psi = np.zeros_like(psi)
        by_psi[:, k] = self.member[j] / total[k] - sums[j, k] / total[k] ** 2
        # Gaps that only rounding errors make have no gradient.
        by_psi[:, k] *= LAM * held[k] * np.sign(excess[j, k]) * (held[k] * abs(excess[j, k]) > 1e-7)
        by_psi[:, c] -= 10 * self.share[s] * self.member[s] / (sums[s, c] + 1e-6) ** 2
        value = LAM * held[k] * abs(excess[j, k]) + 10 * self.share[s] / (sums[s, c] + 1e-6)
        return value, by_psi

    def round(self):
        first = softmax(self.joint(), axis=1)
        mean, square = ([np.zeros_like(p) for p in self.parameters] for _ in range(2))
        for step in range(1, 11):
            for p, g, a, b in zip(self.parameters, self.gradient(first), mean, square, strict=True):
                a[...] = 0.9 * a + 0.1 * g
                b[...] = 0.999 * b + 0.001 * g**2
                p -= 0.01 * (a / (1 - 0.9**step)) / (np.sqrt(b / (1 - 0.999**step)) + 1e-8)

    def gradient(self, first):
        z = self.joint()
        psi = softmax(z, axis=1)
        _, by_psi = self.penalty(z, first.mean(axis=0))
        by_z = psi * (by_psi - (psi * by_psi).sum(axis=1, keepdims=True)) - first / first.size
        eta, _, root, logits = self.parameters
        weight = by_z.sum(axis=0)
        far = (self.away**2).sum(axis=2)
        shares = by_feature(softmax, logits, self.data.sizes)
        return [
            weight - softmax(eta) * weight.sum(),
            root[0] ** 2 * (by_z[:, :, None] * self.away).sum(axis=0),
            np.array([(by_z * (self.points.shape[1] / root[0] - root[0] * far)).sum()]),
            by_z.T @ self.data.onehot - shares * weight[:, None],
        ]

    def record(self):
        z = self.joint()
        counts, labels = self.counts(z), z.argmax(axis=1)
        nll = -logsumexp(z, axis=1).mean()
        squares = [
            ((part - part.mean(axis=0)) ** 2).sum() if len(part) else 0.0
            for part in (self.points[labels == k] for k in range(K))
        ]
        least, most = counts.min(axis=0), counts.max(axis=0)
        return {
            "clustering": nll,
            "objective": nll + K * self.penalty(z, softmax(z, axis=1).mean(axis=0))[0],
            "balance": (least / np.maximum(most, 1)).min(),
            "sse": np.nan if self.data.sizes else sum(squares),
        }


def start_on_numbers(data, init):
    """Plain EM from the labels of k-means, or k-means with equal weights and unit variance."""
    X = data.X
    # The order of the components matters, because the first of several smallest cells counts.
    ordered = FairMixture(K, lam=0, max_iter=1, random_state=0).fit(X, sensitive_features=data.codes)
    found = KMeans(K, init=ordered.means_, n_init=1).fit(X)
    weights, means, variance = np.full(K, 1 / K), found.cluster_centers_, 1.0
    if init == "em":
        r, before = np.eye(K)[found.labels_], -np.inf
        for _ in range(201):
            weights, means = r.mean(axis=0), (r.T @ X) / r.sum(axis=0)[:, None]
            far = ((X[:, None] - means) ** 2).sum(axis=2)
            variance = (r * far).sum() / X.size + 1e-6
            if before == np.inf:
                break
            z = np.log(weights) - X.shape[1] / 2 * np.log(2 * np.pi * variance) - far / (2 * variance)
            r, now = softmax(z, axis=1), logsumexp(z, axis=1).mean()
            before = np.inf if abs(now - before) < 1e-5 else now
    return Transcription(data, np.log(weights), means.copy(), variance**-0.5, np.zeros((K, 0)))


def start_on_categories(data, init):
    """Equal probabilities and the weights of a few rounds of plain EM, or random probabilities and equal weights.

    The random numbers are those of the estimator.
    """
    rng, n_levels = np.random.RandomState(0), sum(data.sizes)
    logits, eta = rng.uniform(size=(K, n_levels)), np.zeros(K)
    if init == "em":
        drawn = rng.standard_normal((K, 1 + n_levels))
        logits, eta = np.zeros((K, n_levels)), drawn[:, 0]
        logs, before = by_feature(log_softmax, drawn[:, 1:], data.sizes), -np.inf
        for r in range(6):
            psi = softmax(log_softmax(eta) + data.onehot @ logs.T, axis=1)
            eta = np.log(psi.mean(axis=0))
            logs = np.log(psi.T @ data.onehot / psi.sum(axis=0)[:, None] + 1e-12)
            now = logsumexp(eta + data.onehot @ logs.T, axis=1).mean()
            if r and abs(now - before) < 1e-2:
                break
            before = now
    return Transcription(data, eta, np.zeros((K, 0)), 1.0, logits)


CASES = {
    "two groups": (make_numeric(2), start_on_numbers),
    "three groups": (make_numeric(3), start_on_numbers),
    "categories": (make_categories(2), start_on_categories),
    "categories, three groups": (make_categories(3), start_on_categories),
}


@pytest.mark.parametrize("init", ["em", "k-means"])
@pytest.mark.parametrize("case", CASES)
def test_rounds_agree_with_the_transcription(monkeypatch, case, init):
    monkeypatch.setattr(rows, "DTYPE", np.float64)
    monkeypatch.setattr(fit, "TOL", 0.0)
    data, start = CASES[case]
    twin = start(data, init)
    expected = []
    for _ in range(ROUNDS):
        twin.round()
        expected.append(twin.record())
    params = {
        "n_clusters": K, "lam": LAM, "init": init, "max_iter": ROUNDS, "random_state": 0, "record_labels": True,
        "categorical_features": list(range(len(data.sizes))),
    }  # fmt: skip
    model = FairMixture(match_reference=True, **params).fit(data.X, sensitive_features=data.codes)
    for quantity in expected[0]:
        found = [record[quantity] for record in model.history_[1:]]
        np.testing.assert_allclose(found, [record[quantity] for record in expected], rtol=1e-5)
    np.testing.assert_array_equal(model.labels_, model.predict(data.X))
    assert model.history_[-1]["delta"] == model.hard_delta_

    best = FairMixture(match_reference="best_balance", **params).fit(data.X, sensitive_features=data.codes)
    # The start is no iterate. The first of equal balances counts.
    kept = model.history_[1 + int(np.argmax([record["balance"] for record in model.history_[1:]]))]
    assert kept["balance"] > 0
    assert best.nll_ == pytest.approx(kept["clustering"])
    assert best.hard_delta_ == pytest.approx(kept["delta"])
