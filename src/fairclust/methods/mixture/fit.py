"""Learning a fair mixture: plain EM, generalised EM and gradient ascent, on all rows or on batches.

All maximise the mean log-likelihood minus a penalty on the table of mean responsibilities
(`fairclust.methods.mixture.group_gap`). Both terms are means over the points, so neither grows with the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol

import numpy as np
from scipy.optimize import minimize

from fairclust.base import Diverged
from fairclust.kernels.mixture import MixtureTiles, Moments
from fairclust.methods.mixture.group_gap import Gaps, Penalty
from fairclust.methods.mixture.parameters import Mixture
from fairclust.metrics import delta

# Steps between two records of gradient ascent, which takes thousands of steps.
RECORD_EVERY = 50
_MAX_HALVINGS = 10
# A single round of generalised EM may change nothing although EM has not converged, for example if the optimiser turns
# or its step is rejected. EM stops only after this many rounds without a change.
_ROUNDS_AT_REST = 5
# The falling temperatures of the calibration.
_TEMPERATURES = (0.3, 0.1, 0.03, 0.01)


class Adam:
    """Adam for maximisation (Kingma and Ba 2015), with its usual constants."""

    def __init__(self, rate: float, size: int, epsilon: float = 1e-8) -> None:
        self.rate, self.epsilon = rate, epsilon
        self._mean, self._square, self._step = np.zeros(size), np.zeros(size), 0

    def move(self, gradient: np.ndarray) -> np.ndarray:
        self._step += 1
        self._mean += 0.1 * (gradient - self._mean)
        self._square += 0.001 * (gradient**2 - self._square)
        root = np.sqrt(self._square / (1 - 0.999**self._step)) + self.epsilon
        return (self.rate / (1 - 0.9**self._step)) * self._mean / root


@dataclass
class FairPart:
    """The rows on which the penalty is evaluated."""

    tiles: MixtureTiles
    penalty: Penalty  # From `fairclust.methods.mixture.group_gap`
    with_labels: bool = False  # Whether the penalty takes the table of hard labels
    _psi: np.ndarray | None = None

    def __post_init__(self) -> None:
        self.sizes = self.tiles.group_sizes

    def gaps(self, mixture: Mixture, held: np.ndarray | None = None) -> Gaps:
        return self.look(mixture, held, with_logsum=False)[0]

    def look(
        self, mixture: Mixture, held: np.ndarray | None = None, *, with_logsum: bool = True
    ) -> tuple[Gaps, float]:
        """The gaps, and the mean log-likelihood of these rows. A penalty that takes hard labels takes `held` too.

        Every call writes the responsibilities to the same array, so it overwrites those of earlier gaps.
        """
        if self._psi is None:
            self._psi = self.tiles.room(mixture.n_clusters)
        hard = np.empty((len(self.sizes), mixture.n_clusters)) if self.with_labels else None
        sums, logsum = self.tiles.table(
            mixture.components(), with_logsum=with_logsum, psi=self._psi, hard=hard
        )
        M = sums / self.sizes[:, None]
        penalty, by_M = self.penalty(M) if hard is None else self.penalty(M, hard, held)
        return Gaps(M, penalty, by_M, self._psi, hard), logsum / self.tiles.n_samples

    def pull(self, mixture: Mixture, gaps: Gaps) -> Moments:
        """Moments for which `Mixture.gradient` returns the gradient of minus the penalty.

        `gaps` must be those of the last call of `look` or `gaps`.
        """
        C = -gaps.by_M / self.sizes[:, None]
        return self.tiles.moments(mixture.components(), alpha=0.0, C=C, psi=gaps.psi)[0]


class Expectation(Protocol):
    """Sufficient statistics of an E-step, per point."""

    def __call__(self, mixture: Mixture) -> tuple[Moments, float]:
        """Moments about `mixture.means`, and the mean log-likelihood."""


@dataclass
class FullData:
    """The E-step on all rows at once."""

    tiles: MixtureTiles

    def __call__(self, mixture: Mixture) -> tuple[Moments, float]:
        found, logsum = self.tiles.moments(mixture.components())
        n = self.tiles.n_samples
        return found.times(1 / n), logsum / n

    def known(self, mixture: Mixture, psi: np.ndarray) -> Moments:
        """The moments, from the responsibilities `psi` of this mixture."""
        return self.tiles.moments(mixture.components(), alpha=1 / self.tiles.n_samples, psi=psi)[0]


@dataclass
class Batches:
    """The incremental E-step (Algorithm 3).

    The first call visits all batches. Each later call visits one and replaces its statistics and its part of the
    returned log-likelihood. The batches are fixed, so one table of the size of the parameters is stored for each.
    """

    load: Callable[[int], MixtureTiles]  # Tiles of a batch by its number
    n_batches: int
    rng: np.random.RandomState
    _parts: list[tuple[Moments, float, int]] = field(default_factory=list)

    def __call__(self, mixture: Mixture) -> tuple[Moments, float]:
        if not self._parts:
            self._parts = [self._visit(b, mixture) for b in range(self.n_batches)]
        else:
            b = int(self.rng.randint(self.n_batches))
            self._parts[b] = self._visit(b, mixture)
        n = sum(part[2] for part in self._parts)
        total = self._parts[0][0]
        for moments, _, _ in self._parts[1:]:
            total = total + moments
        return total.times(1 / n).moved(-mixture.means), sum(part[1] for part in self._parts) / n

    def _visit(self, b: int, mixture: Mixture) -> tuple[Moments, float, int]:
        tiles = self.load(b)
        found, logsum = tiles.moments(mixture.components())
        return found.moved(mixture.means), logsum, tiles.n_samples


@dataclass
class Trace:
    """Records of the steps, and the best mixture so far."""

    # Called with the mixture of every record; the numbers that it returns are recorded too.
    watch: Callable[[Mixture], Mapping[str, float]] | None = None
    # Called with the table of hard labels of every record but the first. The best mixture is that with the largest
    # value. By default it is that with the largest mean log-likelihood minus its penalty.
    rank: Callable[[np.ndarray], float] | None = None
    history: list[dict[str, float]] = field(default_factory=list)
    best: Mixture | None = None
    best_value: float = -np.inf
    converged: bool = False
    _begin: float = field(default_factory=perf_counter)

    def add(self, step: int, mixture: Mixture, loglik: float, gaps: Gaps | None, **more: float) -> None:
        penalty = 0.0 if gaps is None else gaps.penalty
        value = loglik - penalty
        if not (np.isfinite(value) and np.isfinite(mixture.vector()).all()):
            raise Diverged(
                f"the log-likelihood or a parameter of the mixture is not finite at step {step}: "
                "take a smaller lam, or scale the columns to similar sizes"
            )
        now = perf_counter()
        self.history.append(
            {
                "step": step,
                "objective": -value,
                "clustering": -loglik,
                "fairness": 0.0 if gaps is None else gaps.delta,
                **more,
                **({} if self.watch is None else self.watch(mixture)),
                "seconds": now - self._begin,
            }
        )
        self._begin = now
        if self.rank is not None and gaps is not None and gaps.hard is not None:
            value = self.rank(gaps.hard) if step else -np.inf
        if value > self.best_value:
            self.best, self.best_value = mixture, value

    def at_rest(self, tol: float, times: int = 1, quantity: str = "objective") -> bool:
        """Whether none of the last `times` changes of a recorded quantity was above `tol`."""
        last = [record[quantity] for record in self.history[-times - 1 :]]
        self.converged = len(last) > times and float(np.abs(np.diff(last)).max()) <= tol
        return self.converged


def plain_em(
    expect: Expectation,
    mixture: Mixture,
    *,
    max_iter: int,
    tol: float,
    patience: int = 1,
    trace: Trace | None = None,
) -> tuple[Mixture, Trace]:
    """EM by closed-form steps.

    It stops when the mean log-likelihood has not changed by more than `tol` in any of the last `patience` steps, as
    many as there are batches.
    """
    trace = Trace() if trace is None else trace
    for step in range(max_iter + 1):
        moments, loglik = expect(mixture)
        trace.add(step, mixture, loglik, None)
        if step == max_iter or trace.at_rest(tol, patience):
            break
        mixture = mixture.maximum(moments)
    return mixture, trace


def fair_em(
    expect: Expectation,
    fair: FairPart,
    mixture: Mixture,
    *,
    max_iter: int,
    n_gradient_steps: int,
    learning_rate: float,
    tol: float,
    reference: bool = False,
    trace: Trace | None = None,
) -> tuple[Mixture, Trace]:
    """Generalised EM (Algorithms 2 and 3): rounds of an E-step and of steps of Adam on Q minus the penalty.

    With `reference` it optimises as the published program does: every round has a new Adam, holds its first mean
    responsibilities and is not shortened. Otherwise, the step of a round is halved until Q_fair, eq. (11), does not
    fall.
    """
    trace = Trace() if trace is None else trace
    adam = Adam(learning_rate, mixture.vector().size)
    more: dict[str, float] = {}
    held = None
    times, quantity = (1, "clustering") if reference else (_ROUNDS_AT_REST, "objective")
    # If the E-step and the penalty use the same rows, one pass computes the responsibilities for both.
    same = expect if isinstance(expect, FullData) and expect.tiles is fair.tiles else None
    gaps, loglik = fair.look(mixture, with_logsum=same is not None)
    for step in range(max_iter + 1):
        if same is None:
            moments, loglik = expect(mixture)
        trace.add(step, mixture, loglik, gaps, **more)
        if step == max_iter or trace.at_rest(tol, times, quantity):
            break
        if same is not None:
            moments = same.known(mixture, gaps.psi)
        if reference:
            # The program divides the objective by the number of clusters, so that its epsilon is as much larger.
            adam = Adam(learning_rate, mixture.vector().size, 1e-8 * mixture.n_clusters)
            held = fair.sizes @ gaps.M / fair.sizes.sum()
        start = mixture
        before = start.value(moments) - gaps.penalty
        vector = start.vector()
        for r in range(n_gradient_steps):
            if r:
                gaps = fair.gaps(mixture, held)
            total = moments.moved(start.means - mixture.means) + fair.pull(mixture, gaps)
            vector = vector + adam.move(mixture.gradient(total))
            mixture = start.at(vector)
            vector = mixture.vector()
        reach, length = vector - start.vector(), 1.0
        while True:
            gaps, loglik = fair.look(mixture, with_logsum=same is not None)
            after = mixture.value(moments.moved(start.means - mixture.means)) - gaps.penalty
            if reference or length == 0.0 or after >= before - 1e-7 * (1 + abs(before)):
                break
            length = length / 2 if length > 0.5**_MAX_HALVINGS else 0.0
            mixture = start.at(start.vector() + length * reach)
            if length == 0.0:
                # No step in this direction was accepted. A new optimiser forgets the direction and takes smaller steps.
                adam = Adam(adam.rate / 2, vector.size)
        if not reference:
            more = {"q_before": before, "q_after": after, "step_length": length}
    return mixture, trace


def ascend(
    fair: FairPart,
    mixture: Mixture,
    *,
    max_iter: int,
    learning_rate: float,
    tol: float,
    trace: Trace | None = None,
) -> tuple[Mixture, Trace]:
    """Gradient ascent with Adam on the mean log-likelihood minus the penalty (Algorithm 1), on all rows of `fair`.

    It stops when the objective changes by no more than `tol` over `RECORD_EVERY` steps.
    """
    trace = Trace() if trace is None else trace
    vector = mixture.vector()
    adam = Adam(learning_rate, vector.size)
    for step in range(max_iter + 1):
        recorded = step % RECORD_EVERY == 0 or step == max_iter
        gaps, loglik = fair.look(mixture, with_logsum=recorded)
        if recorded:
            trace.add(step, mixture, loglik, gaps)
            if step == max_iter or trace.at_rest(tol):
                break
        C, alpha = -gaps.by_M / fair.sizes[:, None], 1 / fair.tiles.n_samples
        moments = fair.tiles.moments(mixture.components(), alpha=alpha, C=C, psi=gaps.psi)[0]
        vector = vector + adam.move(mixture.gradient(moments))
        mixture = mixture.at(vector)
        vector = mixture.vector()
    return mixture, trace


def calibrated(tiles: MixtureTiles, mixture: Mixture) -> np.ndarray:
    """Shifts of the log weights that make hard labels fair, found at falling temperatures; zeros if nothing is better.

    They minimise the sum of squares of ``log(M_jk / mean_j M_jk)``, because plain differences of M vanish for a
    component that loses its points. They are kept if Delta of the hard labels falls and no cluster loses all its
    points.
    """
    psi, sizes = tiles.room(mixture.n_clusters), tiles.group_sizes

    def squares(offset: np.ndarray, sharpness: float) -> tuple[float, np.ndarray]:
        components = mixture.components(offset)
        M = tiles.table(components, sharpness=sharpness, with_logsum=False, psi=psi)[0] / sizes[:, None]
        M = np.maximum(M, 1e-9)
        mean = M.mean(axis=0)
        logs = np.log(M / mean)
        by_M = 2 * (logs / M - logs.mean(axis=0) / mean)
        C = by_M / sizes[:, None]
        moved = tiles.moments(components, alpha=0.0, C=C, sharpness=sharpness, psi=psi)[0]
        return float((logs**2).sum()), sharpness * moved.weight

    best = np.zeros(mixture.n_clusters)
    table = tiles.hard_table(mixture.components(best))
    offset, least, n_nonempty = best, delta(table), (table.sum(axis=0) > 0).sum()
    for temperature in _TEMPERATURES:
        found = minimize(squares, offset, (1 / temperature,), "BFGS", jac=True, options={"maxiter": 50})
        offset = found.x - found.x.mean()
        table = tiles.hard_table(mixture.components(offset))
        if delta(table) < least and (table.sum(axis=0) > 0).sum() >= n_nonempty:
            best, least = offset, delta(table)
    return best
