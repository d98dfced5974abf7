"""Passes over the points for mixtures: responsibilities, their sums per group, their weighted moments.

With z_ik = log(pi_k f_k(x_i)) and psi_i = softmax(z_i), all that a fair mixture needs of the points is

* the table of sums of psi_ik over each group, and the log-likelihood sum_i logsumexp(z_i);
* moments with the weights w_ik = psi_ik (alpha + C[g(i), k] - sum_l C[g(i), l] psi_il).

With C = 0 the second are the sufficient statistics of an E-step. With C_jk the derivative of a penalty by the
sum of psi_k over group j, they hold the derivative of that penalty by every parameter of every family, for
d psi_ik / d z_il = psi_ik (delta_kl - psi_il). So one kernel serves all penalties on the table.

Points lie in tiles (`fairclust.kernels.tiles`), in float32 unless asked otherwise; sums over tiles are
float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import DTypeLike

from fairclust.kernels.assignment import _FAST, _exp
from fairclust.kernels.tiles import TILE, TileLayout, make_layout, pack_points, run_over_tiles, sum_by_group

# Responsibilities up to this many bytes are kept between the two passes of a gradient, else computed again.
_KEEP_BYTES = 1 << 27


class Components(NamedTuple):
    """Parameters of the components, laid out for the kernels.

    Attributes
    ----------
    const : ndarray of shape (n_clusters,)
        Log weight and normalising constant.
    means : ndarray of shape (n_clusters, n_numeric)
        With the same shift taken out as the points.
    precisions : ndarray of shape (n_clusters, n_numeric) or (1, 1)
        Inverse variances; (1, 1) if all features of all components share one.
    tables : ndarray of shape (n_clusters, n_levels + 1)
        Log probabilities of all categories of all features; the last column is zero, for unknown ones.
    """

    const: np.ndarray
    means: np.ndarray
    precisions: np.ndarray
    tables: np.ndarray

    def astype(self, dtype: DTypeLike) -> Components:
        return Components(*(np.ascontiguousarray(part, dtype) for part in self))


class Moments(NamedTuple):
    """Weighted sums over the points, about the components' means unless said otherwise.

    Attributes
    ----------
    weight : ndarray of shape (n_clusters,)
    first, second : ndarray of shape (n_clusters, n_numeric)
        Sums of ``w (x - mean)`` and ``w (x - mean)^2``.
    levels : ndarray of shape (n_clusters, n_levels)
        Weight of every category; unknown ones have none.
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


@njit(cache=True, nogil=True, fastmath=_FAST)
def _log_joint(points, codes, const, means, precisions, tables, z):  # type: ignore[no-untyped-def]
    """z[k, i] = log(pi_k f_k(x_i)) for the points of one tile."""
    shared = precisions.shape[0] == 1 and precisions.shape[1] == 1
    half = z.dtype.type(0.5)
    zero = z.dtype.type(0)
    for k in range(z.shape[0]):
        row = z[k]
        for i in range(TILE):
            row[i] = zero
        if shared:
            for f in range(means.shape[1]):
                x = points[f]
                m = means[k, f]
                for i in range(TILE):
                    diff = x[i] - m
                    row[i] += diff * diff
            scale = -half * precisions[0, 0]
            shift = const[k]
            for i in range(TILE):
                row[i] = row[i] * scale + shift
        else:
            for f in range(means.shape[1]):
                x = points[f]
                m = means[k, f]
                scale = half * precisions[k, f]
                for i in range(TILE):
                    diff = x[i] - m
                    row[i] -= scale * diff * diff
            for i in range(TILE):
                row[i] += const[k]
        for c in range(codes.shape[0]):
            code = codes[c]
            table = tables[k]
            for i in range(TILE):
                row[i] += table[code[i]]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _softmax(z, sharpness, n, with_logsum):  # type: ignore[no-untyped-def]
    """Turn `z` into softmax(sharpness * z), padding into zeros; the sum of logsumexp(z) at sharpness 1."""
    n_clusters = z.shape[0]
    top = np.empty(TILE, z.dtype)
    total = np.empty(TILE, z.dtype)
    one = z.dtype.type(1)
    zero = z.dtype.type(0)
    for i in range(TILE):
        top[i] = z[0, i]
        total[i] = zero
    for k in range(1, n_clusters):
        row = z[k]
        for i in range(TILE):
            top[i] = max(top[i], row[i])
    for k in range(n_clusters):
        row = z[k]
        for i in range(TILE):
            e = _exp(sharpness * (row[i] - top[i]))
            row[i] = e
            total[i] += e
    logsum = 0.0
    if with_logsum:
        for i in range(n):
            logsum += np.float64(top[i]) + np.log(np.float64(total[i]))
    for i in range(TILE):
        total[i] = one / total[i]
    for i in range(n, TILE):
        total[i] = zero
    for k in range(n_clusters):
        row = z[k]
        for i in range(TILE):
            row[i] *= total[i]
    return logsum


@njit(cache=True, nogil=True, fastmath=_FAST)
def _table(  # type: ignore[no-untyped-def]
    lo, hi, points, codes, count, const, means, precisions, tables, sharpness, with_logsum, kept, mass, logsum
):
    n_clusters = means.shape[0]
    scratch = np.empty((n_clusters, TILE), points.dtype)
    for t in range(lo, hi):
        psi = kept[t] if len(kept) > 0 else scratch
        _log_joint(points[t], codes[t], const, means, precisions, tables, psi)
        logsum[t] = _softmax(psi, sharpness, count[t], with_logsum)
        for k in range(n_clusters):
            row = psi[k]
            acc = points.dtype.type(0)
            for i in range(TILE):
                acc += row[i]
            mass[t, k] = acc


@njit(cache=True, nogil=True, fastmath=_FAST)
def _weighted_moments(  # type: ignore[no-untyped-def]
    lo, hi, points, codes, group, count, const, means, precisions, tables, sharpness, kept, known, alpha, C,
    weight, first, second, levels, mass, logsum,
):  # fmt: skip
    n_clusters, n_features = means.shape
    zero = points.dtype.type(0)
    scratch = np.empty((n_clusters, TILE), points.dtype)
    w = np.empty((n_clusters, TILE), points.dtype)
    turned = np.empty((TILE, n_clusters), points.dtype)
    pull = np.empty(TILE, points.dtype)
    for t in range(lo, hi):
        psi = kept[t] if len(kept) > 0 else scratch
        if not known:
            _log_joint(points[t], codes[t], const, means, precisions, tables, psi)
            logsum[t] = _softmax(psi, sharpness, count[t], True)
            for k in range(n_clusters):
                row = psi[k]
                acc = zero
                for i in range(TILE):
                    acc += row[i]
                mass[t, k] = acc
        elif len(kept) == 0:
            _log_joint(points[t], codes[t], const, means, precisions, tables, psi)
            _softmax(psi, sharpness, count[t], False)
        c = C[group[t]]
        for i in range(TILE):
            pull[i] = alpha
        for k in range(n_clusters):
            row = psi[k]
            for i in range(TILE):
                pull[i] -= c[k] * row[i]
        for k in range(n_clusters):
            row = psi[k]
            v = w[k]
            acc = zero
            for i in range(TILE):
                v[i] = row[i] * (c[k] + pull[i])
                acc += v[i]
            weight[t, k] = acc
            for f in range(n_features):
                x = points[t, f]
                m = means[k, f]
                a1 = zero
                a2 = zero
                for i in range(TILE):
                    diff = x[i] - m
                    part = v[i] * diff
                    a1 += part
                    a2 += part * diff
                first[t, k, f] = a1
                second[t, k, f] = a2
        if codes.shape[1] > 0:
            # One row of clusters per point: the additions to a category then work on all clusters at once.
            for k in range(n_clusters):
                for i in range(TILE):
                    turned[i, k] = w[k, i]
            sums = levels[t]
            for e in range(sums.shape[0]):
                for k in range(n_clusters):
                    sums[e, k] = zero
            for f in range(codes.shape[1]):
                for i in range(count[t]):
                    target = sums[codes[t, f, i]]
                    source = turned[i]
                    for k in range(n_clusters):
                        target[k] += source[k]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _rows(lo, hi, points, codes, count, start, const, means, precisions, tables, out):  # type: ignore[no-untyped-def]
    z = np.empty((means.shape[0], TILE), points.dtype)
    for t in range(lo, hi):
        _log_joint(points[t], codes[t], const, means, precisions, tables, z)
        for i in range(count[t]):
            for k in range(z.shape[0]):
                out[start[t] + i, k] = z[k, i]


@dataclass
class MixtureTiles:
    """Points of a mixture in tiles, and the passes over them.

    Attributes
    ----------
    layout : TileLayout
    n_groups, n_levels : int
        Groups; categories of all categorical features together.
    points : ndarray of shape (n_tiles, n_numeric, TILE)
    codes : ndarray of shape (n_tiles, n_categorical, TILE), int32
        Columns of `Components.tables`; `n_levels` for an unknown category.
    """

    layout: TileLayout
    n_groups: int
    n_levels: int
    points: np.ndarray
    codes: np.ndarray

    @classmethod
    def pack(
        cls,
        numeric: np.ndarray,
        levels: np.ndarray,
        n_levels: int,
        groups: np.ndarray,
        n_groups: int,
        shift: np.ndarray,
        dtype: DTypeLike = np.float32,
    ) -> MixtureTiles:
        """Sort rows by group and cut them into tiles.

        Parameters
        ----------
        numeric : ndarray of shape (n_samples, n_numeric)
        levels : ndarray of shape (n_samples, n_categorical), int32
        n_levels : int
        groups : ndarray of shape (n_samples,)
        n_groups : int
        shift : ndarray of shape (n_numeric,)
            Taken out of the numeric features.
        dtype : float32 or float64
        """
        layout = make_layout(groups, n_groups)
        points = pack_points(numeric, layout, shift, dtype)
        codes = pack_points(levels, layout, np.zeros(levels.shape[1], np.int32), np.int32)
        return cls(layout, n_groups, n_levels, points, codes)

    def __post_init__(self) -> None:
        self._kept = np.empty((0, 0, 0), self.points.dtype)

    @property
    def n_samples(self) -> int:
        return len(self.layout.order)

    def _room(self, n_clusters: int) -> np.ndarray:
        """Where responsibilities are kept from one pass to the next: nowhere, if there are too many."""
        shape = (self.layout.n_tiles, n_clusters, TILE)
        if np.prod(shape, dtype=float) * self.points.itemsize > _KEEP_BYTES:
            return np.empty((0, n_clusters, TILE), self.points.dtype)
        if self._kept.shape != shape:
            self._kept = np.empty(shape, self.points.dtype)
        return self._kept

    def table(
        self, components: Components, *, sharpness: float = 1.0, with_logsum: bool = True
    ) -> tuple[np.ndarray, float]:
        """One pass over the responsibilities ``softmax(sharpness * z_i)``.

        Parameters
        ----------
        components : Components
        sharpness : float
            Inverse temperature.
        with_logsum : bool

        Returns
        -------
        sums : ndarray of shape (n_groups, n_clusters)
            Their sums per group.
        logsum : float
            Log-likelihood, if the sharpness is 1 and `with_logsum` is set; else of no meaning.
        """
        parts = components.astype(self.points.dtype)
        n_clusters = len(parts.const)
        mass = np.empty((self.layout.n_tiles, n_clusters))
        logsum = np.empty(self.layout.n_tiles)
        kept = self._room(n_clusters)
        run_over_tiles(
            _table,
            self.layout.n_tiles,
            self.n_samples * n_clusters,
            self.points,
            self.codes,
            self.layout.count,
            *parts,
            self.points.dtype.type(sharpness),
            with_logsum,
            kept,
            mass,
            logsum,
        )
        return sum_by_group(mass, self.layout, self.n_groups), float(logsum.sum())

    def moments(
        self,
        components: Components,
        *,
        alpha: float = 1.0,
        C: np.ndarray | None = None,
        sharpness: float = 1.0,
        known: bool = False,
    ) -> tuple[Moments, np.ndarray, float]:
        """Moments with the weights ``psi_ik (alpha + C[g, k] - sum_l C[g, l] psi_il)``.

        Parameters
        ----------
        components : Components
        alpha : float
        C : ndarray of shape (n_groups, n_clusters), optional
            Zeros if not given.
        sharpness : float
            As in `table`; the weights have no factor `sharpness`.
        known : bool
            The last pass was `table` with the same components and sharpness: its responsibilities are used
            again where they were kept.

        Returns
        -------
        moments : Moments
            About `components.means`.
        sums : ndarray of shape (n_groups, n_clusters)
        logsum : float
            As `table`; of no meaning if `known`.
        """
        parts = components.astype(self.points.dtype)
        n_clusters, n_features = parts.means.shape
        n_tiles, dtype = self.layout.n_tiles, self.points.dtype
        C = np.zeros((self.n_groups, n_clusters)) if C is None else C
        weight = np.empty((n_tiles, n_clusters))
        first = np.empty((n_tiles, n_clusters, n_features))
        second = np.empty_like(first)
        categorical = self.codes.shape[1] > 0
        levels = np.empty((n_tiles if categorical else 0, self.n_levels + 1, n_clusters), dtype)
        mass, logsum = np.zeros((n_tiles, n_clusters)), np.zeros(n_tiles)
        run_over_tiles(
            _weighted_moments,
            n_tiles,
            self.n_samples * n_clusters,
            self.points,
            self.codes,
            self.layout.group,
            self.layout.count,
            *parts,
            dtype.type(sharpness),
            self._room(n_clusters),
            known,
            dtype.type(alpha),
            C.astype(dtype),
            weight,
            first,
            second,
            levels,
            mass,
            logsum,
        )
        found = Moments(
            weight.sum(axis=0),
            first.sum(axis=0),
            second.sum(axis=0),
            levels.sum(axis=0, dtype=np.float64)[:-1].T
            if categorical
            else np.zeros((n_clusters, self.n_levels)),
        )
        return found, sum_by_group(mass, self.layout, self.n_groups), float(logsum.sum())

    def log_joint(self, components: Components) -> np.ndarray:
        """``log(pi_k f_k(x_i))``, shape (n_samples, n_clusters), rows in the order of `layout.order`."""
        parts = components.astype(self.points.dtype)
        out = np.empty((self.n_samples, len(parts.const)), self.points.dtype)
        layout = self.layout
        run_over_tiles(
            _rows, layout.n_tiles, out.size, self.points, self.codes, layout.count, layout.start, *parts, out
        )
        return out
