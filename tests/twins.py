"""Slow, plain NumPy transcriptions with which the tests compare the fast code."""

import numpy as np
from scipy.special import logsumexp


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def vfc_inner(a, codes, target, lam, lipschitz, max_iter=10_000, tol=1e-5):
    """Compute equation 13 on the full N x K matrix in float64, scaled as in the published program."""
    n_groups = len(target)
    onehot = np.eye(n_groups)[codes]
    log_s = -a
    s = softmax(log_s)
    old = np.inf
    for i in range(max_iter):
        s_in, log_in = s, log_s - logsumexp(log_s, axis=1, keepdims=True)
        by_group = onehot.T @ s_in
        b = sum(
            target[j] / s_in.sum(axis=0) - target[j] * onehot[:, [j]] / by_group[j] for j in range(n_groups)
        )
        log_s = log_in - (a + lam * b) / lipschitz
        s = softmax(log_s)
        log_out = log_s - logsumexp(log_s, axis=1, keepdims=True)
        bound = (s * (log_out - log_in + a + lam * b)).sum()
        if i > 1 and abs(bound - old) <= tol * abs(old):
            break
        old = bound
    return s, i + 1


def vfc_kmeans(X, codes, centers, lam, *, target, lipschitz=2.0, max_iter=100, tol=1e-4):
    """Run algorithm 1 for k-means from given centres. Return labels, energies of outer steps, and inner updates."""
    n_clusters = len(centers)
    onehot = np.eye(len(target))[codes]
    energies, inner, old = [], 0, np.inf
    for i in range(max_iter):
        a = ((X[:, None, :] - centers[None]) ** 2).sum(axis=2)
        s, n = vfc_inner(a, codes, target, lam, lipschitz)
        inner += n
        labels = s.argmax(axis=1)
        shares = onehot.T @ s / s.sum(axis=0)
        energy = (s * a).sum() - lam * (target[:, None] * np.log(shares)).sum()
        energies.append(energy)
        if i > 1 and abs(energy - old) <= tol * abs(old):
            break
        old = energy
        centers = np.stack([X[labels == k].mean(axis=0) for k in range(n_clusters)])
    return labels, np.array(energies), inner


def bfkm_objective(X, codes, centers, labels, rho, lam):
    """Compute the squared distances to `centers` plus both penalties from the labels alone."""
    Y, F = np.eye(len(centers))[labels], np.eye(codes.max() + 1)[codes]
    gaps = (F / F.sum(axis=0)).T @ Y - Y.mean(axis=0)
    return ((X - centers[labels]) ** 2).sum() + rho * (gaps**2).sum() + lam * (1 / Y.sum(axis=0)).sum()


def bfkm_sweep(X, codes, centers, labels, rho, lam, own_group=False):
    """Move every point in order to the cluster with the least objective, which is computed anew for each cluster.

    With `own_group` only the terms of the point's own group count.
    """
    n_clusters = len(centers)
    F = np.eye(codes.max() + 1)[codes]
    labels = labels.copy()
    for p, x in enumerate(X):
        if (labels == labels[p]).sum() == 1:
            continue
        costs = []
        for k in range(n_clusters):
            tried = labels.copy()
            tried[p] = k
            Y = np.eye(n_clusters)[tried]
            gaps = (F / F.sum(axis=0)).T @ Y - Y.mean(axis=0)
            if own_group:
                gaps = gaps[codes[p]]
            penalty = rho * (gaps**2).sum() + lam * (1 / Y.sum(axis=0)).sum()
            costs.append(((x - centers[k]) ** 2).sum() + penalty)
        labels[p] = int(np.argmin(costs))
    return labels


def padded_fairness(counts, target, pseudo_count=0.01):
    """Compute sum_k sum_j -mu_j log P(j | k) after each cluster gets `pseudo_count` points, split as the target."""
    total = 0.0
    for cluster in np.asarray(counts, dtype=float).T:
        padded = [n + pseudo_count * share for n, share in zip(cluster, target, strict=True)]
        total -= sum(share * np.log(n / sum(padded)) for n, share in zip(padded, target, strict=True))
    return total
