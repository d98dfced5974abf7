"""Greedy capture: balls grow around all points at once, and a ball that holds enough points becomes a centre."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _take_out(agent, gone, counted, counts):  # type: ignore[no-untyped-def]
    gone[agent] = True
    for place in range(len(counts)):
        if counted[place, agent]:
            counts[place] -= 1


@njit(cache=True, nogil=True)
def _grow(order, n_places, n_agents, size):  # type: ignore[no-untyped-def]
    """The places that become centres, in this order. `order` has the pairs ``place * n_agents + agent`` by distance."""
    gone = np.zeros(n_agents, np.bool_)
    is_open = np.zeros(n_places, np.bool_)
    counts = np.zeros(n_places, np.int64)
    counted = np.zeros((n_places, n_agents), np.bool_)
    opened = np.empty(n_agents // size, np.int64)
    n_open, n_left = 0, n_agents
    for pair in order:
        place, agent = pair // n_agents, pair % n_agents
        if gone[agent]:
            continue
        if is_open[place]:
            _take_out(agent, gone, counted, counts)
            n_left -= 1
        else:
            counted[place, agent] = True
            counts[place] += 1
            if counts[place] == size:
                opened[n_open] = place
                n_open += 1
                is_open[place] = True
                for other in range(n_agents):
                    if counted[place, other] and not gone[other]:
                        _take_out(other, gone, counted, counts)
                        n_left -= 1
        if n_left < size:
            break
    return opened[:n_open]


def capture(distances: np.ndarray, size: int) -> np.ndarray:
    """Choose centres by greedy capture (Chen et al., "Proportionally fair clustering", ICML 2019, Algorithm 1).

    Balls grow around all places at the same speed. When a ball holds `size` points that no centre has taken, its place
    becomes a centre, takes them, and then takes every point that its ball reaches. The search ends when fewer than
    `size` points are left. The at most ``n_points // size`` places are returned in the order of their choice.
    """
    order = np.argsort(distances, axis=None, kind="stable")
    n_places, n_points = distances.shape
    return _grow(order, n_places, n_points, size)
