"""Learning a fair mixture: plain EM, generalised EM and gradient ascent, on all rows or on batches.

All maximise the mean log-likelihood minus a penalty on the table of mean responsibilities, M[j, k] = mean of psi_k over
group j. Both terms are means over the points, so neither grows with the number of rows. `plain_em`, `fair_em` and
`ascend` yield their iterates without end, and `Trace.follow` records these and stops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from itertools import count
from operator import add
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.metrics import pairwise_distances_argmin

from fairclust.base import Diverged, initial_centers, is_mapped, record
from fairclust.kernels.mixture import MixtureTiles, Moments
from fairclust.methods.mixture.parameters import Family, Mixture
from fairclust.methods.mixture.rows import Rows
from fairclust.metrics import delta
from fairclust.solvers.lloyd import Lloyd

# Gradient steps in each round of EM, as in the authors' program.
GRADIENT_STEPS = 10
# Steps between two records of gradient ascent, which takes thousands of steps.
RECORD_EVERY = 50
# The most rounds of EM, and the most gradient steps. A fit stops earlier if the objective has changed by no more than
# `TOL` in a step of plain EM, in each of five rounds of generalised EM, or in 50 gradient steps.
_ROUNDS, _STEPS, TOL = 200, 10_000, 1e-6
_RATE_OF_EM, _RATE_OF_ASCENT = 1e-2, 1e-3
_MAX_HALVINGS = 10
# A single round of generalised EM may change nothing although EM has not converged, for example if the optimiser turns
# or its step is rejected. EM stops only after this many rounds without a change.
_ROUNDS_AT_REST = 5
# The falling temperatures of the calibration.
_TEMPERATURES = (0.3, 0.1, 0.03, 0.01)
# The most rows of a mapped file that k-means uses.
_START_ROWS = 200_000
_WARM_ROUNDS, _WARM_TOL = 200, 1e-5
# The rounds of plain EM on categories, and its tolerance, in the authors' program.
_CATEGORY_ROUNDS, _CATEGORY_TOL = 6, 1e-2
# A penalty takes M, the table of hard labels and mean responsibilities, and returns its value and derivative by M. Only
# that of the authors' program uses the labels and the means.
Penalty = Callable[..., tuple[float, np.ndarray]]
# Temperature of the smoothed Delta, and weight of the barrier that is added to it.
TEMPERATURE = 0.005
BARRIER = 0.3
# Gaps up to this size are rounding errors. Without them, all gaps are zero where the responsibilities of all points are
# equal, as at the start of the authors' program on categories, and their absolute values have no gradient.
_ROUNDING = 1e-7


def no_penalty(M: np.ndarray, hard: Any = None, held: Any = None) -> tuple[float, np.ndarray]:
    """The penalty of a mixture without fairness."""
    return 0.0, np.zeros_like(M)


@lru_cache(maxsize=16)
def _pairs(n_groups: int) -> np.ndarray:
    """Signed incidence of the unordered pairs of groups: shape (n_pairs, n_groups)."""
    first, second = np.triu_indices(n_groups, 1)
    eye = np.eye(n_groups)
    return eye[first] - eye[second]


def smooth_delta(M: np.ndarray) -> tuple[float, np.ndarray]:
    """`fairclust.metrics.delta` with ``sqrt(gap^2 + (T/10)^2)`` for the absolute value and a smooth maximum,
    ``T logsumexp(./T)``.

    The value is at least Delta and at most ``T (log n_clusters + 1/10)`` above it. The gradient comes second.
    """
    pairs = _pairs(len(M))
    if not len(pairs):
        return 0.0, np.zeros_like(M)
    gaps = pairs @ M
    soft = np.sqrt(gaps**2 + (TEMPERATURE / 10) ** 2)
    means = soft.mean(axis=0) / TEMPERATURE
    top = means.max()
    shares = np.exp(means - top)
    total = shares.sum()
    by_gap = gaps / soft * (shares / total) / len(pairs)
    return TEMPERATURE * float(top + np.log(total)), pairs.T @ by_gap


def smooth_penalty(lam: float) -> Penalty:
    """``lam * smooth_delta - BARRIER * mean log(K M)``. The second term keeps components from losing all points."""

    def penalty(M: np.ndarray, hard: Any = None, held: Any = None) -> tuple[float, np.ndarray]:
        value, gradient = smooth_delta(M)
        floored = np.maximum(M, 1e-12)
        alive = float(np.log(len(M[0]) * floored).mean())
        return lam * value - BARRIER * alive, lam * gradient - BARRIER / (floored * M.size)

    return penalty


def program_penalty(lam: float, sizes: np.ndarray) -> Penalty:
    """The published program's penalty times K, because it divides the likelihood by K.

    It is ``K lam max_{j,k} m_k |P(j | k) - P(j)|`` plus ``10 K P(j) / (n_jk + 1e-6)`` for the cell with the fewest hard
    labels. m_k is the mean responsibility at the first E-step of a round, constant in the gradient, or that of `M`.
    """
    share = sizes / sizes.sum()

    def penalty(M: np.ndarray, hard: np.ndarray, held: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        n_clusters = M.shape[1]
        mean = np.maximum(share @ M, 1e-12)
        held = mean if held is None else held
        excess = share[:, None] * (M / mean - 1.0)
        worst = held * np.abs(excess)
        j, k = divmod(int(worst.argmax()), n_clusters)
        gradient = np.zeros_like(M)
        by_share = -(excess[j, k] + share[j]) * share
        by_share[j] += share[j]
        if worst[j, k] > _ROUNDING:
            gradient[:, k] = lam * held[k] / mean[k] * np.sign(excess[j, k]) * by_share
        s, c = divmod(int(hard.argmin()), n_clusters)
        count = sizes[s] * M[s, c] + 1e-6
        gradient[s, c] -= 10 * share[s] * sizes[s] / count**2
        value = lam * worst[j, k] + 10 * share[s] / count
        return n_clusters * float(value), n_clusters * gradient

    return penalty


def fair_penalty(
    lam: float, members: Sequence[np.ndarray], group_sizes: np.ndarray, *, reference: bool
) -> Penalty:
    """The sum of the penalties of the sensitive columns, each of the column's own table.

    For each column, `members` (n_values, n_groups) has ones and zeros that say which groups have which value.
    """
    sizes = [column @ group_sizes for column in members]
    penalties = [program_penalty(lam, column) if reference else smooth_penalty(lam) for column in sizes]
    # A value's mean is the mean of its groups' means, weighted by the sizes of the groups.
    means = [column * group_sizes / total[:, None] for column, total in zip(members, sizes, strict=True)]

    def penalty(M: np.ndarray, hard: Any = None, held: Any = None) -> tuple[float, np.ndarray]:
        value, gradient = 0.0, np.zeros_like(M)
        for one, mean, column in zip(penalties, means, members, strict=True):
            added, by_value = one(mean @ M, None if hard is None else column @ hard, held)
            value, gradient = value + added, gradient + mean.T @ by_value
        return value, gradient

    return penalty


@dataclass
class Adam:
    """Adam for maximisation (Kingma and Ba 2015), with its usual constants."""

    rate: float
    epsilon: float = 1e-8
    _mean: Any = 0.0
    _square: Any = 0.0
    _step: int = 0

    def moved(self, mixture: Mixture, moments: Moments) -> Mixture:
        """The mixture after a step along its gradient for these moments about its means."""
        gradient = mixture.gradient(moments)
        self._step += 1
        self._mean = self._mean + 0.1 * (gradient - self._mean)
        self._square = self._square + 0.001 * (gradient**2 - self._square)
        root = np.sqrt(self._square / (1 - 0.999**self._step)) + self.epsilon
        return mixture.at(mixture.vector() + (self.rate / (1 - 0.9**self._step)) * self._mean / root)


class Data(NamedTuple):
    """The rows and groups of a fit, and the kind of mixture."""

    rows: Rows  # All rows
    learned: Rows  # Those of the log-likelihood
    tiles: MixtureTiles  # Those of the penalty
    family: Family


@dataclass
class Batches:
    """The incremental E-step (Algorithm 3).

    The first call visits all batches. Each later call visits one and replaces its statistics and its part of the
    returned log-likelihood. The batches are fixed, so one table of the size of the parameters is stored for each.
    """

    rows: Rows
    parts: Sequence[np.ndarray | slice]  # The rows of each batch
    rng: np.random.RandomState
    # Of each batch, in the order of `parts`: moments about zero, log-likelihood and number of rows
    _latest: dict[int, tuple[Moments, float, int]] = field(default_factory=dict)

    def expect(self, mixture: Mixture) -> tuple[Moments, float]:
        for b in [int(self.rng.randint(len(self.parts)))] if self._latest else range(len(self.parts)):
            tiles = self.rows.part(self.parts[b]).tiles()
            moments, logsum = tiles.moments(mixture.components)
            self._latest[b] = moments.moved(mixture.means), logsum, tiles.n_samples
        parts, logsums, sizes = zip(*self._latest.values(), strict=True)
        return reduce(add, parts).times(1 / sum(sizes)).moved(-mixture.means), sum(logsums) / sum(sizes)


class State(NamedTuple):
    """A mixture during a fit, its mean log-likelihood, and its mean responsibilities with their penalty."""

    mixture: Mixture
    loglik: float
    M: np.ndarray | None = None  # (n_groups, n_clusters); None without a penalty
    penalty: float = 0.0
    by_M: Any = None  # (n_groups, n_clusters); derivative of the penalty
    hard: np.ndarray | None = None  # (n_groups, n_clusters); hard labels, if the penalty takes them
    more: Mapping[str, float] = {}  # Further numbers for the record


@dataclass
class Objective:
    """The mean log-likelihood minus a penalty."""

    tiles: MixtureTiles  # The rows on which the penalty is evaluated
    penalty: Penalty = no_penalty
    reference: bool = False  # Whether the objective and its steps are those of the published program
    batches: Batches | None = None  # The rows of the log-likelihood, if they are not those of `tiles`

    def expect(self, mixture: Mixture, seen: State | None = None) -> tuple[Moments, float]:
        """The E-step: the moments about the means, per point, and the mean log-likelihood.

        `seen`, the last state of the mixture that `look` has returned, saves the responsibilities.
        """
        if self.batches is not None:
            return self.batches.expect(mixture)
        n_samples = self.tiles.n_samples
        if seen is not None:
            return self.tiles.moments(alpha=1 / n_samples)[0], seen.loglik
        moments, logsum = self.tiles.moments(mixture.components)
        return moments.times(1 / n_samples), logsum / n_samples

    def look(self, mixture: Mixture, held: np.ndarray | None = None, *, with_loglik: bool = True) -> State:
        """The state of a mixture. A penalty that takes hard labels takes `held` too."""
        tiles, with_hard = self.tiles, self.reference and self.penalty is not no_penalty
        with_logsum = with_loglik and self.batches is None
        sums, logsum, hard = tiles.table(mixture.components, with_logsum=with_logsum, with_hard=with_hard)
        M, labels = sums / tiles.group_sizes[:, None], hard if with_hard else None
        return State(mixture, logsum / tiles.n_samples, M, *self.penalty(M, labels, held), labels)

    def pull(self, state: State, alpha: float = 0.0) -> Moments:
        """Moments whose `Mixture.gradient` is that of `alpha` times the log-likelihood, minus that of the penalty.

        The state must be the last one that `look` has returned.
        """
        C = -state.by_M / self.tiles.group_sizes[:, None]
        return self.tiles.moments(alpha=alpha, C=C)[0]


@dataclass
class Trace:
    """Records of the states of a fit, and the best mixture so far."""

    # Called with the mixture of every record; the numbers that it returns are recorded too.
    watch: Callable[[Mixture], Mapping[str, float]] | None = None
    # Called with the table of hard labels of every record but the first. The best mixture is that with the largest
    # value. By default it is that with the largest mean log-likelihood minus its penalty.
    rank: Callable[[np.ndarray], float] | None = None
    history: list[dict[str, float]] = field(default_factory=list)
    best: Mixture | None = None
    best_value: float = -np.inf
    converged: bool = False

    def follow(
        self, states: Iterator[tuple[int, State]], max_iter: int, tol: float, times: int, quantity: str
    ) -> Mixture:
        """Record the states up to step `max_iter`; returns the last mixture.

        It stops earlier if none of the last `times` changes of the recorded `quantity` was above `tol`.
        """
        begin = perf_counter()
        for step, now in states:
            self._add(step, now, begin)
            begin = perf_counter()
            last = [one[quantity] for one in self.history[-times - 1 :]]
            is_still = len(last) > times and float(np.abs(np.diff(last)).max()) <= tol
            self.converged = step < max_iter and is_still
            if self.converged or step == max_iter:
                break
        return now.mixture

    def _add(self, step: int, now: State, begin: float) -> None:
        value = now.loglik - now.penalty
        if not (np.isfinite(value) and np.isfinite(now.mixture.vector()).all()):
            raise Diverged(
                f"the log-likelihood or a parameter of the mixture is not finite at step {step}: "
                "take a smaller lam, or scale the columns to similar sizes"
            )
        fairness = 0.0 if now.M is None else delta(now.M)
        watched = {} if self.watch is None else {"nll": -now.loglik, **self.watch(now.mixture)}
        self.history.append(record(step, begin, -value, -now.loglik, fairness, **now.more, **watched))
        if self.rank is not None and now.hard is not None:
            value = self.rank(now.hard) if step else -np.inf
        if value > self.best_value:
            self.best, self.best_value = now.mixture, value


def learn(
    objective: Objective, start: Mixture, trace: Trace, *, solver: str, max_iter: int | None
) -> Mixture:
    """The best mixture that gradient ascent or EM finds or, if the objectives are not known, the last one."""
    if solver == "gd":
        steps = max_iter or _STEPS
        last = trace.follow(ascend(objective, start, steps), steps, TOL, 1, "objective")
    elif objective.penalty is no_penalty:
        times = 1 if objective.batches is None else len(objective.batches.parts)
        last = trace.follow(plain_em(objective, start), max_iter or _ROUNDS, TOL, times, "objective")
    else:
        rest = (1, "clustering") if objective.reference else (_ROUNDS_AT_REST, "objective")
        last = trace.follow(fair_em(objective, start), max_iter or _ROUNDS, TOL, *rest)
    # The objective of an iterate is known only if every step uses all rows.
    is_known = objective.batches is None and not objective.reference
    return trace.best if trace.best is not None and (trace.rank is not None or is_known) else last


def plain_em(objective: Objective, mixture: Mixture) -> Iterator[tuple[int, State]]:
    """EM by closed-form steps, without the penalty."""
    for step in count():
        moments, loglik = objective.expect(mixture)
        yield step, State(mixture, loglik)
        mixture = mixture.maximum(moments)


def fair_em(objective: Objective, mixture: Mixture) -> Iterator[tuple[int, State]]:
    """Generalised EM (Algorithms 2 and 3).

    A round is an E-step and steps of Adam on Q minus the penalty, halved until Q_fair, eq. (11), does not fall. With
    `reference`, as in the published program, each round has a new Adam and fixes the mean responsibilities at its
    start, and its steps are not halved.
    """
    sizes, reference = objective.tiles.group_sizes, objective.reference
    adam, held = Adam(_RATE_OF_EM), None
    now = objective.look(mixture)
    for step in count():
        start = now.mixture
        moments, loglik = objective.expect(start, now)
        yield step, now._replace(loglik=loglik)
        before = start.value(moments) - now.penalty
        if reference:
            # The program divides the objective by the number of clusters, so that its epsilon is as much larger.
            adam = Adam(_RATE_OF_EM, 1e-8 * start.n_clusters)
            held = sizes @ now.M / sizes.sum()
        mixture = start
        for r in range(GRADIENT_STEPS):
            now = objective.look(mixture, held, with_loglik=False) if r else now
            mixture = adam.moved(mixture, _about(mixture, moments, start) + objective.pull(now))
        reach, length = mixture.vector() - start.vector(), 1.0
        while True:
            now = objective.look(mixture)
            after = mixture.value(_about(mixture, moments, start)) - now.penalty
            if reference or length == 0.0 or after >= before - 1e-7 * (1 + abs(before)):
                break
            length = length / 2 if length > 0.5**_MAX_HALVINGS else 0.0
            mixture = start.at(start.vector() + length * reach)
            if length == 0.0:
                # No step in this direction was accepted. A new optimiser forgets the direction and takes smaller steps.
                adam = Adam(adam.rate / 2)
        if not reference:
            now = now._replace(more={"q_before": before, "q_after": after, "step_length": length})


def _about(mixture: Mixture, moments: Moments, start: Mixture) -> Moments:
    """Moments about the means of `mixture`, from those about the means of `start`."""
    return moments.moved(start.means - mixture.means)


def ascend(objective: Objective, mixture: Mixture, max_iter: int) -> Iterator[tuple[int, State]]:
    """Gradient ascent with Adam (Algorithm 1) on all rows. It yields every `RECORD_EVERY`-th step, and the last one."""
    adam = Adam(_RATE_OF_ASCENT)
    for step in count():
        recorded = step % RECORD_EVERY == 0 or step == max_iter
        now = objective.look(mixture, with_loglik=recorded)
        if recorded:
            yield step, now
        mixture = adam.moved(mixture, objective.pull(now, 1 / objective.tiles.n_samples))


def calibrated(tiles: MixtureTiles, mixture: Mixture, gap_of: Callable[[np.ndarray], float]) -> np.ndarray:
    """Shifts of the log weights that make hard labels fair, found at falling temperatures; zeros if nothing is better.

    They minimise the sum of squares of ``log(M_jk / mean_j M_jk)``, because plain differences of M vanish for a
    component that loses its points. They are kept if `gap_of(table)` falls for hard labels and no cluster loses all its
    points.
    """

    def squares(offset: np.ndarray, sharpness: float) -> tuple[float, np.ndarray]:
        sizes = tiles.group_sizes[:, None]
        sums, _, _ = tiles.table(mixture.shifted(offset), sharpness=sharpness, with_logsum=False)
        M = np.maximum(sums / sizes, 1e-9)
        mean = M.mean(axis=0)
        logs = np.log(M / mean)
        by_M = 2 * (logs / M - logs.mean(axis=0) / mean)
        moved, _ = tiles.moments(alpha=0.0, C=by_M / sizes)
        return float((logs**2).sum()), sharpness * moved.weight

    def judged(offset: np.ndarray) -> tuple[float, int]:
        table = tiles.table(mixture.shifted(offset), with_logsum=False, with_hard=True)[2]
        return gap_of(table), int((table.sum(axis=0) > 0).sum())

    best = offset = np.zeros(mixture.n_clusters)
    least, n_nonempty = judged(best)
    for temperature in _TEMPERATURES:
        solution = minimize(squares, offset, (1 / temperature,), "BFGS", jac=True, options={"maxiter": 50})
        offset = solution.x - solution.x.mean()
        gap, n_left = judged(offset)
        if gap < least and n_left >= n_nonempty:
            best, least = offset, gap
    return best


def start_mixture(
    data: Data, n_clusters: int, init: Any, rng: np.random.RandomState, *, reference: bool
) -> Mixture:
    """Parameters to start from: the means of `init`, or of k-means if it is a string, and plain EM from them for "em".

    Of rows that are mapped from a file, k-means uses 200,000 at most. Plain EM with `reference` is that of the authors'
    program, and k-means with `reference` is the start of their paper's text.
    """
    (columns, X, *_), tiles, family = data.learned, data.tiles, data.family
    n_numeric = len(columns.numeric)
    means, logits = np.zeros((n_clusters, 0)), rng.uniform(size=(n_clusters, family.n_levels))
    points = np.zeros((0, n_numeric))
    if n_numeric:
        n, most = len(X), max(_START_ROWS, n_clusters)
        few = is_mapped(X) and n > most
        points = columns.points(X[np.sort(rng.choice(n, most, replace=False))] if few else X)
        if isinstance(init, str):
            centers = initial_centers(points, n_clusters, "k-means++", rng).astype(points.dtype)
            means = Lloyd(n_clusters, init=centers, n_init=1, copy_x=False).fit(points).cluster_centers_
        else:
            given = X[:0, columns.numeric]
            means = (initial_centers(given, n_clusters, init, rng) - columns.shift) / columns.unit
        if not reference:
            logits = np.zeros_like(logits)
    log_sd = np.zeros((1, 1) if family.shared else (n_clusters, n_numeric))
    mixture = Mixture(family, np.zeros(n_clusters), means, np.maximum(log_sd, family.min_log_sd), logits)
    if not (isinstance(init, str) and init == "em"):
        return mixture
    if reference:
        return _start_of_program(tiles, mixture, points, rng)
    if not n_numeric:
        return _warm(tiles, mixture)[0]
    # Plain EM uses only the numeric columns. With the categories, its components could separate by them, and with them
    # by group, and later steps may not undo this.
    bare, _ = _warm(*_numeric_part(tiles, mixture))
    return replace(bare, family=family, logits=logits)


def _warm(
    tiles: MixtureTiles, mixture: Mixture, max_iter: int = _WARM_ROUNDS, tol: float = _WARM_TOL
) -> tuple[Mixture, bool]:
    """Plain EM, and whether it converged."""
    trace = Trace()
    return trace.follow(plain_em(Objective(tiles), mixture), max_iter, tol, 1, "objective"), trace.converged


def _numeric_part(tiles: MixtureTiles, mixture: Mixture) -> tuple[MixtureTiles, Mixture]:
    family = replace(mixture.family, sizes=())
    bare = replace(mixture, family=family, logits=np.zeros((mixture.n_clusters, 0)))
    rows = tiles.rows._replace(codes=tiles.rows.codes[:, :0])
    return replace(tiles, rows=rows, members=np.zeros((1, 1), np.int32)), bare


def _start_of_program(
    tiles: MixtureTiles, mixture: Mixture, points: np.ndarray, rng: np.random.RandomState
) -> Mixture:
    """Plain EM of the numeric columns from hard labels, and of the categories from random parameters.

    Of the categories only the weights are kept, and averaged with those of the numeric columns. The probabilities are
    equal.
    """
    family, n_clusters = mixture.family, mixture.n_clusters
    weights = []
    if mixture.means.shape[1]:
        numeric, bare = _numeric_part(tiles, mixture)
        labels, n = pairwise_distances_argmin(points, bare.means), len(points)
        away = points - bare.means[labels]
        first, second = (
            np.stack([np.bincount(labels, column, n_clusters) for column in values.T], axis=1) / n
            for values in (away, away**2)
        )
        weight = np.bincount(labels, minlength=n_clusters) / n
        bare = bare.maximum(Moments(weight, first, second, np.zeros((n_clusters, 0))))
        bare, converged = _warm(numeric, bare)
        if converged:
            # The program finishes the round in which it finds that EM has converged.
            bare = bare.maximum(Objective(numeric).expect(bare)[0])
        mixture = replace(mixture, means=bare.means, log_sd=bare.log_sd)
        weights.append(np.exp(bare.log_weights))
    if family.sizes:
        only = replace(family, shared=True, min_log_sd=0.0)
        drawn = rng.standard_normal((n_clusters, 1 + family.n_levels))
        free = Mixture(only, drawn[:, 0], np.zeros((n_clusters, 0)), np.zeros((1, 1)), drawn[:, 1:])
        codes = replace(tiles, rows=tiles.rows._replace(points=tiles.rows.points[:, :0]))
        free, _ = _warm(codes, free, _CATEGORY_ROUNDS, _CATEGORY_TOL)
        weights.append(np.exp(free.log_weights))
    return replace(mixture, eta=np.log(np.mean(weights, axis=0)), logits=np.zeros_like(mixture.logits))
