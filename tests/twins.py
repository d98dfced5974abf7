"""Slow, plain NumPy transcriptions with which the tests compare the fast code."""

import numpy as np
from scipy import sparse
from scipy.linalg import eigh, null_space, sqrtm
from scipy.optimize import linprog
from scipy.spatial.distance import cdist
from scipy.special import log_softmax, softmax


def vfc_inner(a, codes, target, lam, lipschitz, max_iter=10_000, tol=1e-5):
    """Compute equation 13 on the full N x K matrix in float64, scaled as in the published program."""
    n_groups = len(target)
    onehot = np.eye(n_groups)[codes]
    log_s = -a
    s = softmax(log_s, axis=1)
    old = np.inf
    for i in range(max_iter):
        s_in, log_in = s, log_softmax(log_s, axis=1)
        by_group = onehot.T @ s_in
        b = sum(
            target[j] / s_in.sum(axis=0) - target[j] * onehot[:, [j]] / by_group[j] for j in range(n_groups)
        )
        log_s = log_in - (a + lam * b) / lipschitz
        s, log_out = softmax(log_s, axis=1), log_softmax(log_s, axis=1)
        bound = (s * (log_out - log_in + a + lam * b)).sum()
        if i > 1 and abs(bound - old) <= tol * abs(old):
            break
        old = bound
    return s, i + 1


def vfc(costs, update, start, codes, lam, *, target, lipschitz=2.0, energy=None):
    """Run algorithm 1 from a start. Return labels, energies of outer steps, inner updates, and the last centres.

    `costs` returns the N x K potentials at given centres, and `update` the centres of given labels. The energy is that
    of the soft assignment, unless `energy` computes it from the labels.
    """
    onehot, centers = np.eye(len(target))[codes], start
    energies, inner = [], 0
    for i in range(100):
        a = costs(centers)
        s, n = vfc_inner(a, codes, target, lam, lipschitz)
        labels, inner = s.argmax(axis=1), inner + n
        shares = onehot.T @ s / s.sum(axis=0)
        soft = (s * a).sum() - lam * (target[:, None] * np.log(shares)).sum()
        energies.append(energy(labels) if energy else soft)
        if i > 1 and abs(energies[-1] - energies[-2]) <= 1e-4 * abs(energies[-2]):
            break
        centers = update(labels)
    return labels, np.array(energies), inner, centers


def ncut_potentials(W, labels, n_clusters, shift=0.0):
    """Compute the potentials of Table 1 of W plus `shift` times its degrees at hard labels, for a dense W."""
    d, S = W.sum(axis=1), np.eye(n_clusters)[labels]
    W, volume = W + shift * np.diag(d), d @ S
    return d[:, None] * np.diag(S.T @ W @ S) / volume**2 - 2 * W @ S / volume


def fair_spectral_coordinates(W, groups, k, laplacian="normalized"):
    """Run algorithm 2 of the s-FairSC poster (algorithms 2 and 3 of Kleindessner et al.) as written, for a dense W."""
    D = np.diag(W.sum(axis=1))
    F = (np.eye(groups.max() + 1)[groups] - np.bincount(groups) / len(groups))[:, :-1]
    Z = null_space(F.T)
    L = Z.T @ (D - W) @ Z
    if laplacian == "unnormalized":
        return Z @ eigh(L)[1][:, :k]
    inverse = np.linalg.inv(sqrtm(Z.T @ D @ Z).real)
    return Z @ inverse @ eigh(inverse @ L @ inverse)[1][:, :k]


def means_of(X, labels, n_clusters):
    return np.stack([X[labels == k].mean(axis=0) for k in range(n_clusters)])


def medoids_of(X, labels, n_clusters):
    own = [X[labels == k] for k in range(n_clusters)]
    return np.stack([rows[cdist(rows, rows).sum(axis=0).argmin()] for rows in own])


def counts_of(labels, codes, n_clusters):
    """Count every group in every cluster, without the functions of the package."""
    groups = range(max(codes) + 1)
    return np.array([[np.sum((codes == j) & (labels == k)) for k in range(n_clusters)] for j in groups])


def cheapest_shares(costs, rows, limits, *, helpers=None, exact=None, method="highs-ipm"):
    """Find the least cost of shares of points in clusters for which ``rows @ shares <= limits``, by HiGHS.

    The limits have the shape (n_rows, n_clusters), or one that is broadcast to it. Each cluster may have further
    variables, whose coefficients in the rows are `helpers`, and `exact` tells which rows are equalities. Without such
    shares the cost is infinite. The interior point method is fast, and the simplex method, "highs-ds", is exact to more
    digits.
    """
    n, n_clusters = costs.shape
    # The least cost has as many digits as its costs have in this unit, so a few far points must not decide it.
    unit, each = np.median(np.abs(costs)) or 1.0, sparse.eye_array(n_clusters)
    helpers = np.empty((len(rows), 0)) if helpers is None else helpers
    n_helpers = helpers.shape[1] * n_clusters
    bounded = sparse.hstack([sparse.kron(rows, each), sparse.kron(helpers, each)]).tocsr()
    whole = sparse.kron(sparse.eye_array(n), np.ones((1, n_clusters)))
    limits = np.broadcast_to(limits, (len(rows), n_clusters)).ravel()
    exact = np.zeros(len(limits), bool) if exact is None else np.repeat(exact, n_clusters)
    done = linprog(
        np.r_[costs.ravel() / unit, np.zeros(n_helpers)],
        A_ub=bounded[~exact] if (~exact).any() else None,
        b_ub=limits[~exact] if (~exact).any() else None,
        A_eq=sparse.vstack([sparse.hstack([whole, sparse.csr_array((n, n_helpers))]), bounded[exact]]),
        b_eq=np.r_[np.ones(n), limits[exact]],
        bounds=[(0, 1)] * costs.size + [(None, None)] * n_helpers,
        method=method,
    )
    return done.fun * unit if done.success else np.inf


def share_rows(inside, lower, upper):
    """Return rows that are at most 0 if the share of every group in every cluster is within its bounds."""
    return np.vstack([inside.T - np.reshape(upper, (-1, 1)), np.reshape(lower, (-1, 1)) - inside.T])


def bfkm_objective(X, codes, centers, labels, rho, lam, of=slice(None)):
    """Compute the squared distances to `centers` plus both penalties from the labels, with the gaps of some groups."""
    Y, F = np.eye(len(centers))[labels], np.eye(codes.max() + 1)[codes]
    gaps = ((F / F.sum(axis=0)).T @ Y - Y.mean(axis=0))[of]
    return ((X - centers[labels]) ** 2).sum() + rho * (gaps**2).sum() + lam * (1 / Y.sum(axis=0)).sum()


def bfkm_sweep(X, codes, centers, labels, rho, lam, own_group=False):
    """Move every point in order to the cluster with the least objective, which is computed anew for each cluster.

    With `own_group` only the gaps of the point's own group count.
    """
    labels = labels.copy()
    for p in range(len(X)):
        if (labels == labels[p]).sum() > 1:
            tried = [np.where(np.arange(len(X)) == p, k, labels) for k in range(len(centers))]
            of = codes[p] if own_group else slice(None)
            labels[p] = np.argmin([bfkm_objective(X, codes, centers, one, rho, lam, of) for one in tried])
    return labels


def padded_fairness(counts, target, pseudo_count=0.01):
    """Compute sum_k sum_j -mu_j log P(j | k) after each cluster gets `pseudo_count` points, split as the target."""
    total = 0.0
    for cluster in np.asarray(counts, dtype=float).T:
        padded = [n + pseudo_count * share for n, share in zip(cluster, target, strict=True)]
        total -= sum(share * np.log(n / sum(padded)) for n, share in zip(padded, target, strict=True))
    return total
