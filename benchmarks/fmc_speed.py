"""Time of fair mixtures against a plain NumPy transcription of generalised EM.

    python benchmarks/fmc_speed.py [--rows 2458285] [--mirror DIR] [--threads 2] [--csv FILE]

Every measurement runs in its own process, so that peaks of memory can be told apart. The round of ten gradient steps is
measured on Adult (K = 10) or, without a mirror, on as many rows of `census_like`. Mini-batches and sub-samples are
measured on `census_like` (25 features, two groups, K = 10). The time of a sub-sample includes drawing it and assigning
all rows. Rounds and passes are measured in CPU seconds, which other programs on the machine disturb less. The paper
compares with plain variational clustering (VFC). Its time is that of one inner step in NumPy (the update, and the bound
that the stopping rule uses) times the number of steps. The steps are counted in a fit of a hundredth of the rows with a
hundredth of lambda.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from scipy.special import logsumexp
from sklearn.base import clone

from fairclust.methods import FairMixture, VariationalFairKMeans
from fairclust.methods.mixture.fit import TOL, Objective, Trace, fair_em, smooth_penalty
from fairclust.methods.mixture.parameters import Family, Mixture
from fairclust.methods.mixture.rows import Columns, Rows
from fairclust.metrics import Scored, score_labels
from measuring import (
    CENSUS_ROWS,
    SEED,
    adult,
    apart,
    centers_of,
    drawn,
    least,
    tell,
    write_measurements,
)
from vfc_speed import inner_numpy

LAM = 20.0
K = 10


def numpy_round(X: np.ndarray, groups: np.ndarray, means: np.ndarray, n_steps: int = 10) -> np.ndarray:
    """Make an E-step and gradient steps on Q - lam * Delta, as in eq. (10), on N x K matrices in float64."""
    n, d = X.shape
    eta, log_sd = np.zeros(len(means)), 0.0
    member = groups == 0
    psi_of = None
    for _ in range(n_steps):
        away = X[:, None] - means
        squares = (away**2).sum(axis=2)
        z = eta - logsumexp(eta) - d * log_sd - 0.5 * squares * np.exp(-2 * log_sd)
        psi = np.exp(z - logsumexp(z, axis=1, keepdims=True))
        psi_of = psi if psi_of is None else psi_of
        gaps = psi[member].mean(axis=0) - psi[~member].mean(axis=0)
        worst = np.arange(len(gaps)) == np.abs(gaps).argmax()
        by_M = np.outer([1, -1], np.sign(gaps) * worst)
        C = by_M[groups] / np.where(member, member.sum(), n - member.sum())[:, None]
        w = psi_of / n - LAM * psi * (C - (C * psi).sum(axis=1, keepdims=True))
        step = 1e-2
        eta = eta + step * (w.sum(axis=0) - np.exp(eta - logsumexp(eta)) * w.sum())
        by_sd = (w * (squares * np.exp(-2 * log_sd) - d)).sum()
        means = means + step * (w[:, :, None] * away).sum(axis=0) * np.exp(-2 * log_sd)
        log_sd += step * by_sd
    return means


def round_numpy(args: argparse.Namespace) -> dict[str, float]:
    X, groups = adult(args.mirror)
    return {"seconds": least(lambda: numpy_round(X, groups, centers_of(X, K)), 2, process_time)}


def round_tiles(args: argparse.Namespace) -> dict[str, float]:
    X, groups = adult(args.mirror)
    shift = X.mean(axis=0)
    columns = Columns(np.arange(X.shape[1]), np.array([], int), (), shift)
    tiles = Rows(columns, X, groups, 2).tiles()
    family = Family(True, (), -5.0)
    start = Mixture(family, np.zeros(K), centers_of(X, K) - shift, np.zeros((1, 1)), np.zeros((K, 0)))
    objective = Objective(tiles, smooth_penalty(LAM))
    components = start.components

    def rounds(n: int) -> None:
        Trace().follow(fair_em(objective, start), n, TOL, times=5, quantity="objective")

    ten, twenty = (least(lambda n=n: rounds(n), 3, process_time) for n in (10, 20))
    return {
        "seconds": (twenty - ten) / 10,
        "responsibilities_seconds": least(
            lambda: tiles.table(components, with_logsum=False), 20, process_time
        ),
        "e_step_seconds": least(lambda: tiles.moments(components), 20, process_time),
    }


def fit(model: FairMixture, X: np.ndarray, groups: np.ndarray) -> dict[str, float]:
    # A fit of a few rows comes first, so that compilation is not measured.
    clone(model).set_params(max_iter=2).fit(X[:20_000], sensitive_features=groups[:20_000])
    begin, begin_cpu = perf_counter(), process_time()
    model.fit(X, sensitive_features=groups)
    found = {"seconds": perf_counter() - begin, "cpu_seconds": process_time() - begin_cpu}
    scores = score_labels(Scored(model.labels_, groups, X, K), ["sse", "balance", "delta"])
    return {**found, "rounds": model.n_iter_, "nll": model.nll_, "nonempty": model.n_nonempty_, **scores}


def mini_batches(args: argparse.Namespace) -> dict[str, float]:
    X, groups = mapped(args.rows, args.folder)
    return fit(FairMixture(K, lam=LAM, solver="mini-batch", random_state=SEED), X, groups)


def sub_sample(args: argparse.Namespace, share: float) -> dict[str, float]:
    X, groups = mapped(args.rows, args.folder)
    return fit(FairMixture(K, lam=LAM, sample_size=share, random_state=SEED), X, groups)


def plain_vfc(args: argparse.Namespace) -> dict[str, float]:
    step = inner_numpy(args, K, with_bound=True, clock=process_time)["seconds"]
    X, groups = drawn(args.rows // 100)
    model = VariationalFairKMeans(
        K, lam=500_000.0 * len(X) / CENSUS_ROWS, match_reference=True, random_state=SEED
    )
    model.fit(X, sensitive_features=groups)
    return {
        "cpu_seconds": step * model.n_inner_iter_,
        "step_seconds": step,
        "steps": model.n_inner_iter_,
        "outer": model.n_iter_,
    }


def write_large(args: argparse.Namespace) -> dict[str, float]:
    """Write the large data set to files, which the other processes map."""
    X, groups = drawn(args.rows)
    np.save(Path(args.folder) / "X.npy", X)
    np.save(Path(args.folder) / "groups.npy", groups)
    return {"rows": len(X)}


def mapped(rows: int, folder: str) -> tuple[np.ndarray, np.ndarray]:
    return np.load(Path(folder) / "X.npy", mmap_mode="r"), np.load(Path(folder) / "groups.npy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=CENSUS_ROWS)
    parser.add_argument("--mirror", help="folder with adult/adult.data")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--csv", help="write the measurements here, too")
    args = parser.parse_args()

    jobs: list[tuple[str, Callable[..., dict[str, float]], int]] = [
        ("round of ten gradient steps, NumPy", round_numpy, 1),
        ("round of ten gradient steps, tiles", round_tiles, 1),
        ("large data", write_large, 1),
        ("VFC, NumPy", plain_vfc, 1),
        ("mini-batches of 10%", mini_batches, args.threads),
    ]
    jobs += [
        (f"sub-sample of {share:.0%}", partial(sub_sample, share=share), args.threads)
        for share in (0.01, 0.03, 0.05, 0.1)
    ]
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as args.folder:
        for name, call, threads in jobs:
            found[name] = apart(call, threads, args)
            tell(name, threads, found[name])
    plain, tiles = (found[f"round of ten gradient steps, {how}"]["seconds"] for how in ("NumPy", "tiles"))
    print(f"round of ten gradient steps, NumPy / tiles: {plain / tiles:.1f}")
    batches = found["mini-batches of 10%"]
    ratio = found["VFC, NumPy"]["cpu_seconds"] / batches["cpu_seconds"]
    print(f"processor time, VFC in NumPy / mini-batches: {ratio:.1f}")
    for name, values in found.items():
        if name.startswith("sub-sample"):
            print(f"{name} / mini-batches: {values['seconds'] / batches['seconds']:.3f}")
    write_measurements(args.csv, found, rows=args.rows)


if __name__ == "__main__":
    main()
