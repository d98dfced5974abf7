"""Parameters of a mixture: densities for the kernels, the M-step, values and gradients from moments.

Everything here works on tables of the size of the parameters. Only the kernels make passes over the points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fairclust.kernels.mixture import Components, Moments, logit_gradient, probabilities_by_feature
from fairclust.stored import storable

# The least weight of a component, for components without points, and the least probability of a category in the M-step,
# for categories that a component does not have.
_MIN_WEIGHT = 1e-12
_MIN_PROBABILITY = 1e-6


@storable
@dataclass(frozen=True)
class Family:
    """A kind of mixture: the shapes and bounds of its parameters."""

    shared: bool  # One variance for all features of all components, else one for each
    sizes: tuple[int, ...]  # Categories of each categorical feature
    min_log_sd: float  # Lower bound of the log standard deviations
    # Whether gradient steps change inverse standard deviations instead of the logarithms of standard deviations.
    by_precision: bool = False
    ridge: float = 0.0  # Added to the variances of every M-step

    @cached_property
    def edges(self) -> np.ndarray:
        """The first column of each categorical feature in tables of all categories, and the number of columns."""
        return np.concatenate(([0], np.cumsum(self.sizes))).astype(np.int64)

    @property
    def n_levels(self) -> int:
        return int(self.edges[-1])


@storable
@dataclass
class Mixture:
    """Parameters, unconstrained except for the lower bound of the standard deviations."""

    family: Family
    eta: np.ndarray  # (n_clusters,); weights are its softmax
    means: np.ndarray  # (n_clusters, n_numeric); means minus the shift of the points
    log_sd: np.ndarray  # (1, 1) or (n_clusters, n_numeric)
    logits: np.ndarray  # (n_clusters, n_levels); probabilities are the softmax over each feature's categories

    def __post_init__(self) -> None:
        # Every gradient step needs this. SciPy's function takes longer for its checks than for the sums.
        eta = self.eta - self.eta.max()
        self.log_weights = eta - np.log(np.exp(eta).sum())
        self.precisions = np.exp(-2 * self.log_sd)
        tables = probabilities_by_feature(np.ascontiguousarray(self.logits, float), self.family.edges)
        self.log_probabilities, self.probabilities = tables

    @property
    def n_clusters(self) -> int:
        return len(self.eta)

    @cached_property
    def components(self) -> Components:
        """The parameters as the kernels read them."""
        n_numeric = self.means.shape[1]
        sd = n_numeric * self.log_sd[0, 0] if self.family.shared else self.log_sd.sum(axis=1)
        const = self.log_weights - (sd + 0.5 * np.log(2 * np.pi) * n_numeric)
        # Adding zeros gives `roots` the shape of the means, also if all components share one variance.
        roots = np.sqrt(0.5 * self.precisions) + 0.0 * self.means
        tables = np.zeros((self.n_clusters, self.family.n_levels + 1))
        tables[:, :-1] = self.log_probabilities
        return Components(const, self.means, roots, roots * self.means, tables)

    def shifted(self, offset: np.ndarray) -> Components:
        """The components with `offset` added to the log weights."""
        return self.components._replace(const=self.components.const + offset)

    def vector(self) -> np.ndarray:
        """All parameters in one vector."""
        scale = np.exp(-self.log_sd) if self.family.by_precision else self.log_sd
        return np.concatenate([self.eta, self.means.ravel(), scale.ravel(), self.logits.ravel()], dtype=float)

    def at(self, vector: np.ndarray) -> Mixture:
        """The mixture with a vector of parameters. Standard deviations below their bound are raised to it."""
        parts, begin = [], 0
        for like in (self.eta, self.means, self.log_sd, self.logits):
            parts.append(vector[begin : begin + like.size].reshape(like.shape))
            begin += like.size
        eta, means, log_sd, logits = parts
        if self.family.by_precision:
            log_sd = -np.log(np.maximum(log_sd, 1e-12))
        return Mixture(self.family, eta, means, np.maximum(log_sd, self.family.min_log_sd), logits)

    def value(self, moments: Moments) -> float:
        """Sum of ``w_ik log(pi_k f_k(x_i))`` for moments about these means."""
        squares = (moments.second * self.precisions).sum()
        total = moments.weight @ self.components.const - 0.5 * squares
        return float(total + (moments.levels * self.log_probabilities).sum())

    def gradient(self, moments: Moments) -> np.ndarray:
        """Derivative of `value` with respect to the parameters, as a vector, for moments about these means."""
        by_sd = moments.second * self.precisions - moments.weight[:, None]
        if self.family.by_precision:
            by_sd = -by_sd * np.exp(self.log_sd)
        by_logits = logit_gradient(
            np.ascontiguousarray(moments.levels), self.probabilities, self.family.edges
        )
        parts = [
            moments.weight - np.exp(self.log_weights) * moments.weight.sum(),
            moments.first * self.precisions,
            by_sd.sum(keepdims=True) if self.family.shared else by_sd,
            by_logits,
        ]
        return np.concatenate([part.ravel() for part in parts])

    def maximum(self, moments: Moments) -> Mixture:
        """The M-step: parameters that maximise `value` for the weights behind these moments.

        A component without weight keeps its mean, its variance (unless all components share one) and its
        probabilities, and gets the least weight.
        """
        weight = np.maximum(moments.weight, 0.0)
        alive = weight > _MIN_WEIGHT * weight.sum()
        per = np.where(alive, weight, 1.0)[:, None]
        step = np.where(alive[:, None], moments.first / per, 0.0)
        # The second moments about the new means can be negative only by rounding errors.
        about = np.maximum(moments.second - step * moments.first, 0.0)
        with np.errstate(divide="ignore"):
            if self.family.shared:
                n_values = max(weight.sum() * max(self.means.shape[1], 1), _MIN_WEIGHT)
                log_sd = 0.5 * np.log(about.sum(keepdims=True) / n_values + self.family.ridge)
            else:
                log_sd = np.where(alive[:, None], 0.5 * np.log(about / per + self.family.ridge), self.log_sd)
        shares = moments.levels
        if self.family.sizes:
            by_feature = np.add.reduceat(shares, self.family.edges[:-1], axis=1)
            totals = np.repeat(by_feature, self.family.sizes, axis=1)
            shares = np.where(totals > 0, shares / np.where(totals > 0, totals, 1.0), self.probabilities)
        return replace(
            self,
            eta=np.log(np.maximum(weight / max(weight.sum(), _MIN_WEIGHT), _MIN_WEIGHT)),
            means=self.means + step,
            log_sd=np.maximum(log_sd, self.family.min_log_sd),
            logits=np.log(np.maximum(shares, _MIN_PROBABILITY)),
        )
