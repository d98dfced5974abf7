"""Time of one sweep of balanced fair k-means on Adult (K = 10): compiled, and as a NumPy loop over the points.

    python benchmarks/bfkm_speed.py [--mirror DIR] [--repeats 20]

Without a mirror the data are drawn and have Adult's size. Both sweeps start from the same labels and must end with the
same labels. Times are CPU seconds of one process, without compilation.
"""

from __future__ import annotations

import argparse
from time import process_time

import numpy as np

from fairclust.kernels.moves import sweep
from fairclust.methods import BalancedFairKMeans
from fairclust.metrics import contingency
from measuring import adult

N_CLUSTERS = 10


def numpy_sweep(
    X: np.ndarray, codes: np.ndarray, centers: np.ndarray, labels: np.ndarray, rho: float, lam: float
) -> int:
    """Sweep over the points one by one, and compare all clusters at once. Counts are kept up to date."""
    counts = contingency(labels, codes, len(centers)).astype(float)
    group_sizes = counts.sum(axis=1, keepdims=True)
    n_moved = 0
    for p, x in enumerate(X):
        old, j = labels[p], codes[p]
        if counts[:, old].sum() == 1:
            continue
        counts[j, old] -= 1
        sizes = counts.sum(axis=0)
        gaps = counts / group_sizes - sizes / len(X)
        step = -np.ones_like(group_sizes) / len(X)
        step[j] += 1 / group_sizes[j]
        cost = ((x - centers) ** 2).sum(axis=1) + rho * ((gaps + step) ** 2 - gaps**2).sum(axis=0)
        if lam:
            cost += lam * (1 / (sizes + 1) - 1 / sizes)
        new = cost.argmin()
        counts[j, new] += 1
        labels[p] = new
        n_moved += int(new != old)
    return n_moved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mirror", help="folder with adult/adult.data")
    parser.add_argument("--repeats", type=int, default=20)
    args = parser.parse_args()
    X, codes = adult(args.mirror)
    rho, lam = 10.0 * len(X), 1e5
    start = np.random.default_rng(0).permutation(np.arange(len(X)) % N_CLUSTERS).astype(np.int32)
    centers = np.stack([X[start == k].mean(axis=0) for k in range(N_CLUSTERS)])

    labels = start.copy()
    begin = process_time()
    n_moved = numpy_sweep(X, codes, centers, labels, rho, lam)
    in_numpy = process_time() - begin

    times = []
    for _ in range(args.repeats + 1):
        found, counts = start.copy(), contingency(start, codes, N_CLUSTERS)
        columns = np.ascontiguousarray(centers.T)
        begin = process_time()
        moved, _ = sweep(X, codes, columns, found, counts, np.eye(len(counts)), rho, lam, False)
        times.append(process_time() - begin)
    first = min(times[1:])
    assert moved == n_moved
    np.testing.assert_array_equal(found, labels)

    model = BalancedFairKMeans(N_CLUSTERS, rho=rho, lam=lam, random_state=0)
    begin = process_time()
    model.fit(X, sensitive_features=codes)
    whole = process_time() - begin
    print(
        f"first sweep, {moved} of {len(X)} points move: NumPy {in_numpy:.2f} s, compiled {first * 1e3:.2f} ms"
    )
    print(f"ratio: {in_numpy / first:.0f}")
    each = whole / model.n_iter_ * 1e3
    print(f"fit: {model.n_iter_} sweeps in {whole:.3f} s, {each:.2f} ms for each, centres included")


if __name__ == "__main__":
    main()
