"""Passes over the points for mixtures: responsibilities, their sums per group, their weighted moments.

With z_ik = log(pi_k f_k(x_i)) and psi_i = softmax(z_i), a fair mixture needs only these sums over the points:

* the table of sums of psi_ik over each group, and the log-likelihood sum_i logsumexp(z_i);
* moments with the weights w_ik = psi_ik (alpha + C[g(i), k] - sum_l C[g(i), l] psi_il).

With C = 0 the moments are the sufficient statistics of an E-step. If C_jk is the derivative of a penalty with respect
to the sum of psi_k over group j, the moments determine the derivative of this penalty with respect to every parameter
of every family, because d psi_ik / d z_il = psi_ik (delta_kl - psi_il). One kernel therefore serves all penalties on
the table.

Points are in tiles (`fairclust.kernels.tiles`), in float32. Sums are float64. The moments have one sum for
each of at most 64 runs of tiles, so their memory does not grow with the number of rows. Rows with the same categories
can be one point with a count, and columns of categories can be joined: see `fairclust.methods.mixture.rows`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from fairclust.kernels.fast import FAST, exp, larger, log, quotient, where_less
from fairclust.kernels.tiles import TILE, TileLayout, run_over_tiles, sum_by_group

# Responsibilities of at most this many bytes are kept for the second pass of a gradient. Larger ones are computed
# again.
_KEEP_BYTES = 1 << 27
# Moments have one sum, of the size of the parameters, for each run of tiles. The number of runs is at most _MAX_BLOCKS,
# their sums take at most _MAX_BLOCK_BYTES, and a run has about _ENTRIES_PER_BLOCK responsibilities or more.
_MAX_BLOCKS = 64
_MAX_BLOCK_BYTES = 1 << 26
_ENTRIES_PER_BLOCK = 75_000
# The weights of moments are multiplied by a power of two, which changes no digit, so that the largest sum that can
# occur is about 2^_LARGEST_BITS. Products of small responsibilities would otherwise leave the normal range of float32,
# where arithmetic takes ten times as long.
_LARGEST_BITS = 90


class Components(NamedTuple):
    """Parameters of the components, as the kernels read them: a Gaussian is ``exp(-sum (r x - r m)^2)``."""

    const: np.ndarray  # (n_clusters,), log weight and normalising constant
    means: np.ndarray  # (n_clusters, n_numeric), minus the shift of the points
    roots: np.ndarray  # (n_clusters, n_numeric), roots of half the inverse variances
    root_means: np.ndarray  # the means times the roots
    # (n_clusters, n_levels + 1), log probabilities of all categories of all features. The last column, for unknown
    # categories, is zero. Kernels get the columns of the joint categories instead.
    tables: np.ndarray


class PackedRows(NamedTuple):
    """Points as the kernels read them."""

    points: np.ndarray  # (n_tiles, n_numeric, TILE)
    codes: np.ndarray  # (n_tiles, n_columns, TILE), int32: rows of `MixtureTiles.members`
    counts: np.ndarray  # (n_tiles, TILE): the rows of the data that each point stands for, 0 in the padding


class Moments(NamedTuple):
    """Sums of w, ``w (x - mean)`` and ``w (x - mean)^2`` over the points, about the components' means by default.

    `levels`, shape (n_clusters, n_levels), holds the weight of every category. Unknown categories are left out.
    """

    weight: np.ndarray
    first: np.ndarray
    second: np.ndarray
    levels: np.ndarray

    def __add__(self, other: Moments) -> Moments:  # type: ignore[override]
        return Moments(*(a + b for a, b in zip(self, other, strict=True)))

    def times(self, factor: float) -> Moments:
        return Moments(*(factor * part for part in self))

    def moved(self, shift: np.ndarray) -> Moments:
        """The same moments about ``mean - shift``."""
        weight = self.weight[:, None]
        return self._replace(
            first=self.first + weight * shift,
            second=self.second + 2 * shift * self.first + weight * shift**2,
        )


@njit(cache=True, nogil=True)
def probabilities_by_feature(logits, edges):  # type: ignore[no-untyped-def]
    """Logarithm and value of the softmax over the categories of each feature, shape (n_clusters, n_levels).

    `edges` holds the first column of each feature, and then the number of columns. This is compiled because every
    gradient step needs it, and a dozen NumPy calls on small tables would take longer than a pass over 1,000 points.
    """
    logs = np.empty_like(logits)
    shares = np.empty_like(logits)
    for k in range(logits.shape[0]):
        for f in range(len(edges) - 1):
            lo, hi = edges[f], edges[f + 1]
            top = logits[k, lo:hi].max()
            total = 0.0
            for e in range(lo, hi):
                shares[k, e] = np.exp(logits[k, e] - top)
                total += shares[k, e]
            shares[k, lo:hi] /= total
            logs[k, lo:hi] = logits[k, lo:hi] - (top + np.log(total))
    return logs, shares


@njit(cache=True, nogil=True)
def logit_gradient(levels, shares, edges):  # type: ignore[no-untyped-def]
    """Derivative of ``sum(levels * log(shares))`` with respect to the logits, shape (n_clusters, n_levels)."""
    gradient = np.empty(levels.shape)
    for k in range(levels.shape[0]):
        for f in range(len(edges) - 1):
            lo, hi = edges[f], edges[f + 1]
            gradient[k, lo:hi] = levels[k, lo:hi] - shares[k, lo:hi] * levels[k, lo:hi].sum()
    return gradient


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def _log_joint(rows, t, density, z, top):  # type: ignore[no-untyped-def]
    """Compute z[k, i] = log(pi_k f_k(x_i)) for the points of one tile, and the largest of each point in `top`.

    Every sweep over the tile adds several features, because loading and storing `z` takes most of a sweep's time.
    """
    points, codes = rows.points[t], rows.codes[t]
    n_clusters, n_features = density.roots.shape
    n_columns = codes.shape[0]
    top[:] = -np.inf
    for k in range(n_clusters):
        row = z[k]
        row[:] = density.const[k]
        r, m = density.roots[k], density.root_means[k]
        for f in range(0, n_features - 3, 4):
            x0, x1, x2, x3 = points[f], points[f + 1], points[f + 2], points[f + 3]
            r0, r1, r2, r3 = r[f], r[f + 1], r[f + 2], r[f + 3]
            m0, m1, m2, m3 = m[f], m[f + 1], m[f + 2], m[f + 3]
            for i in range(TILE):
                d0 = r0 * x0[i] - m0
                d1 = r1 * x1[i] - m1
                d2 = r2 * x2[i] - m2
                d3 = r3 * x3[i] - m3
                row[i] -= d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3
        for f in range(n_features - n_features % 4, n_features):
            x, rf, mf = points[f], r[f], m[f]
            for i in range(TILE):
                diff = rf * x[i] - mf
                row[i] -= diff * diff
        table = density.tables[k]
        for c in range(0, n_columns - 1, 2):
            code, other = codes[c], codes[c + 1]
            for i in range(TILE):
                row[i] += table[code[i]] + table[other[i]]
        if n_columns % 2:
            code = codes[n_columns - 1]
            for i in range(TILE):
                row[i] += table[code[i]]
        for i in range(TILE):
            top[i] = larger(top[i], row[i])


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def _responsibilities(rows, t, n, density, sharpness, with_logsum, psi, top, total, mass):  # type: ignore[no-untyped-def]
    """Compute softmax(sharpness * z) of one tile in `psi` and its sums in `mass`. Returns the sum of logsumexp(z)."""
    n_clusters = psi.shape[0]
    one = psi.dtype.type(1)
    zero = psi.dtype.type(0)
    counts = rows.counts[t]
    _log_joint(rows, t, density, psi, top)
    total[:] = zero
    for k in range(n_clusters):
        row = psi[k]
        for i in range(TILE):
            e = exp(sharpness * (row[i] - top[i]))
            row[i] = e
            total[i] += e
    logsum = 0.0
    if with_logsum:
        for i in range(n):
            logsum += np.float64(counts[i]) * (np.float64(top[i]) + log(np.float64(total[i])))
    for i in range(TILE):
        total[i] = quotient(one, total[i])
    for k in range(n_clusters):
        row = psi[k]
        acc = zero
        for i in range(TILE):
            p = row[i] * total[i]
            row[i] = p
            acc += p * counts[i]
        mass[k] = acc
    return logsum


@njit(cache=True, nogil=True, fastmath=FAST)
def _table(lo, hi, rows, layout, density, sharpness, with_logsum, kept, mass, logsum, hard):  # type: ignore[no-untyped-def]
    real = rows.points.dtype
    scratch = np.empty((len(density.const), TILE), real)
    top, total = np.empty(TILE, real), np.empty(TILE, real)
    zero = real.type(0)
    for t in range(lo, hi):
        psi = kept[t] if len(kept) > 0 else scratch
        logsum[t] = _responsibilities(
            rows, t, layout.count[t], density, sharpness, with_logsum, psi, top, total, mass[t]
        )
        if len(hard) > 0:
            # `total` holds the largest responsibility of each point. The first component that has it gets the rows.
            top[:] = rows.counts[t]
            for k in range(len(psi)):
                row = psi[k]
                acc = zero
                for i in range(TILE):
                    counted = where_less(row[i], total[i], zero, top[i])
                    acc += counted
                    top[i] -= counted
                hard[t, k] = acc


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def _pulls(psi, alpha, c, pull):  # type: ignore[no-untyped-def]
    """Compute ``alpha - sum_l c[l] psi[l, i]`` for the points of one tile in `pull`."""
    pull[:] = alpha
    for k in range(len(psi)):
        # `c` is mostly zero, because penalties on the largest gap depend on one or two clusters.
        if c[k] != 0:
            row = psi[k]
            for i in range(TILE):
                pull[i] -= c[k] * row[i]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def _add_levels(codes, n, turned, levels):  # type: ignore[no-untyped-def]
    """Add the weights of `n` points to their categories, for all clusters at once."""
    for f in range(codes.shape[0]):
        for i in range(n):
            target = levels[codes[f, i]]
            source = turned[i]
            for k in range(turned.shape[1]):
                target[k] += source[k]


@njit(cache=True, nogil=True, fastmath=FAST)
def _weighted_moments(  # type: ignore[no-untyped-def]
    lo, hi, edges, rows, layout, density, sharpness, kept, alpha, C, sums, logsum
):
    points, codes, means = rows.points, rows.codes, density.means
    weight, first, second, levels = sums
    n_clusters, n_features = means.shape
    zero = points.dtype.type(0)
    scratch = np.empty((n_clusters, TILE), points.dtype)
    turned = np.empty((TILE, n_clusters), points.dtype)
    v, pull = np.empty(TILE, points.dtype), np.empty(TILE, points.dtype)
    top, total = np.empty(TILE, points.dtype), np.empty(TILE, points.dtype)
    nowhere = np.empty(n_clusters)
    for b in range(lo, hi):
        for t in range(edges[b], edges[b + 1]):
            psi = kept[t] if len(kept) > 0 else scratch
            if len(kept) == 0:
                logsum[t] = _responsibilities(
                    rows, t, layout.count[t], density, sharpness, True, psi, top, total, nowhere
                )
            c, times = C[layout.group[t]], rows.counts[t]
            _pulls(psi, alpha, c, pull)
            for k in range(n_clusters):
                row = psi[k]
                acc = zero
                for i in range(TILE):
                    w = row[i] * (c[k] + pull[i]) * times[i]
                    v[i] = w
                    acc += w
                weight[b, k] += acc
                for f in range(0, n_features - 1, 2):
                    x, y = points[t, f], points[t, f + 1]
                    m, n = means[k, f], means[k, f + 1]
                    a1 = a2 = b1 = b2 = zero
                    for i in range(TILE):
                        d = x[i] - m
                        e = y[i] - n
                        vd = v[i] * d
                        ve = v[i] * e
                        a1 += vd
                        b1 += ve
                        a2 += vd * d
                        b2 += ve * e
                    first[b, k, f] += a1
                    second[b, k, f] += a2
                    first[b, k, f + 1] += b1
                    second[b, k, f + 1] += b2
                for f in range(n_features - n_features % 2, n_features):
                    x, m = points[t, f], means[k, f]
                    a1 = a2 = zero
                    for i in range(TILE):
                        d = x[i] - m
                        vd = v[i] * d
                        a1 += vd
                        a2 += vd * d
                    first[b, k, f] += a1
                    second[b, k, f] += a2
                if codes.shape[1] > 0:
                    for i in range(TILE):
                        turned[i, k] = v[i]
            _add_levels(codes[t], layout.count[t], turned, levels[b])


@njit(cache=True, nogil=True, fastmath=FAST)
def _by_row(lo, hi, rows, layout, density, out):  # type: ignore[no-untyped-def]
    z, top = np.empty((len(density.const), TILE), out.dtype), np.empty(TILE, out.dtype)
    for t in range(lo, hi):
        _log_joint(rows, t, density, z, top)
        for i in range(layout.count[t]):
            out[layout.order[layout.start[t] + i]] = z[:, i]


@njit(cache=True, nogil=True)
def _parted(joint, members, out):  # type: ignore[no-untyped-def]
    """Add the sums of joint categories to each of their members."""
    for s in range(members.shape[0]):
        for m in range(members.shape[1]):
            for k in range(joint.shape[1]):
                out[members[s, m], k] += joint[s, k]


@njit(cache=True, nogil=True)
def _joined(tables, members):  # type: ignore[no-untyped-def]
    """The log probability of each joint category, shape (n_clusters, n_joint_categories): the sum of its members'."""
    out = np.zeros((len(tables), len(members)), tables.dtype)
    for k in range(len(tables)):
        for m in range(members.shape[1]):
            for s in range(len(members)):
                out[k, s] += tables[k, members[s, m]]
    return out


@dataclass
class MixtureTiles:
    """Points of a mixture in tiles, and the passes over them."""

    layout: TileLayout
    n_groups: int
    rows: PackedRows
    # (n_joint_categories, width), int32: the categories of each joint category, as columns of `Components.tables`. The
    # last joint category has unknown ones.
    members: np.ndarray

    def __post_init__(self) -> None:
        counts = self.rows.counts.sum(axis=1, dtype=np.float64)
        self.group_sizes = sum_by_group(counts, self.layout, self.n_groups)
        self.n_samples = int(self.group_sizes.sum())  # rows of the data
        self.n_points = len(self.layout.order)  # as many, or less if rows were merged
        # A bound on the sums of counts and squared deviations over a tile.
        span = 2 * float(np.abs(self.rows.points).max(initial=0.5))
        self._largest_sum = TILE * float(self.rows.counts.max()) * span**2
        # The arguments of the kernel in the last call of `table`, and the responsibilities of all points that it found,
        # unless they take too much memory.
        self._given: tuple[Any, ...] = ()
        self._psi = np.empty((0, 0, TILE), self.rows.points.dtype)

    def _for_kernels(self, components: Components, sharpness: float = 1.0) -> tuple[Any, ...]:
        """The arguments of all kernels, in the dtype of the points, with the tables of the joint categories."""
        dtype = self.rows.points.dtype
        *parts, tables = (part.astype(dtype) for part in components)
        components = Components._make([*parts, _joined(tables, self.members)])
        return self.rows, self.layout, components, dtype.type(sharpness)

    def table(
        self,
        components: Components,
        *,
        sharpness: float = 1.0,
        with_logsum: bool = True,
        with_hard: bool = False,
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Sums per group of the responsibilities ``softmax(sharpness * z_i)``, and the log-likelihood, in one pass.

        `sharpness` is the inverse temperature; the log-likelihood has a meaning only at 1, and is 0 without
        `with_logsum`. The third value, shape (n_groups, n_clusters), is with `with_hard` the number of rows for which
        each component is the most probable.
        """
        n_tiles, n_clusters = self.layout.n_tiles, len(components.const)
        fits = n_tiles * n_clusters * TILE * self._psi.itemsize <= _KEEP_BYTES
        room = (n_tiles if fits else 0, n_clusters, TILE)
        if self._psi.shape != room:
            self._psi = np.empty(room, self._psi.dtype)
        mass, logsum = np.empty((n_tiles, n_clusters)), np.zeros(n_tiles)
        hard = np.zeros((n_tiles if with_hard else 0, n_clusters))
        self._given = self._for_kernels(components, sharpness)
        out = with_logsum, self._psi, mass, logsum, hard
        run_over_tiles(_table, n_tiles, self.n_points * n_clusters, *self._given, *out)
        if with_hard:
            hard = sum_by_group(hard, self.layout, self.n_groups)
        return sum_by_group(mass, self.layout, self.n_groups), float(logsum.sum()), hard

    def moments(
        self, components: Components | None = None, *, alpha: float = 1.0, C: np.ndarray | None = None
    ) -> tuple[Moments, float]:
        """Moments about the means, weighted by ``psi_ik (alpha + C[g, k] - sum_l C[g, l] psi_il)``, by default C = 0.

        If `components` are given, the second value is the log-likelihood. Otherwise it is 0, and the responsibilities
        psi are those of the last call of `table`. The weights are not multiplied by the sharpness of that call.
        """
        psi = self._psi if components is None else self._psi[:0]
        given = self._given if components is None else self._for_kernels(components)
        n_tiles, dtype = self.layout.n_tiles, self.rows.points.dtype
        n_clusters, n_features = given[2].means.shape
        # Edges of the runs of tiles that have one sum each. They do not depend on the number of threads.
        size = n_clusters * (2 * n_features + len(self.members) + 1)
        most = min(_MAX_BLOCKS, n_tiles, max(1, _MAX_BLOCK_BYTES // (8 * size)))
        n_blocks = min(most, max(1, self.n_points * n_clusters // _ENTRIES_PER_BLOCK))
        edges = np.arange(n_blocks + 1) * n_tiles // n_blocks
        weight = np.zeros((n_blocks, n_clusters))
        first, second = np.zeros((2, n_blocks, n_clusters, n_features))
        sums = Moments(weight, first, second, np.zeros((n_blocks, len(self.members), n_clusters)))
        logsum = np.zeros(n_tiles)
        pulls = np.zeros((self.n_groups, n_clusters)) if C is None else C
        largest = self._largest_sum * (abs(alpha) + 2 * np.abs(pulls).max())
        scale = 2.0 ** (_LARGEST_BITS - np.frexp(largest)[1])
        out = dtype.type(scale * alpha), (scale * pulls).astype(dtype), sums, logsum
        run_over_tiles(_weighted_moments, n_blocks, self.n_points * n_clusters, edges, *given, psi, *out)
        weight, first, second, joint = (part.sum(axis=0) / scale for part in sums)
        levels = np.zeros((self.members[-1, 0] + 1, n_clusters))
        _parted(joint, self.members, levels)
        return Moments(weight, first, second, levels[:-1].T), float(logsum.sum())

    def log_joint(self, components: Components) -> np.ndarray:
        """``log(pi_k f_k(x_i))``, shape (n_points, n_clusters)."""
        out = np.empty((self.n_points, len(components.const)), self.rows.points.dtype)
        run_over_tiles(_by_row, self.layout.n_tiles, out.size, *self._for_kernels(components)[:3], out)
        return out
