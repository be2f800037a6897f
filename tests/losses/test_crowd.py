"""Very many different parts, from their own transforms, against the grid of losses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.guarantees.losses.continuous import ExponentialPair, LaplacePair
from tacit.guarantees.losses.engine import Engine
from tacit.guarantees.losses.nodes import Reach, nodes_of
from tacit.guarantees.losses.pair import Pair
from tacit.guarantees.losses.sampled import PoissonSampledPair


def _exponential() -> list[tuple[Pair, int]]:
    return [(ExponentialPair(epsilon=float(e)), 1) for e in np.linspace(1e-3, 0.1, 300)]


def test_a_crowd_of_exponentials_agrees_with_the_grid() -> None:
    crowd, grid = Engine(_exponential()), Engine(_exponential())
    grid._crowd = None
    found, known = crowd.epsilon(1e-6, 4e-4), grid.epsilon(1e-6, 4e-4)
    assert crowd._crowd is not None, "the crowd gave up"
    assert abs(found.high - known.high) < 1e-3


def test_nodes_give_the_transforms_of_sampled_laplace() -> None:
    """E_P e^(cL) by direct summation over a fine partition of the continuous part and its atoms."""
    e, rate, tilt = 0.7, 0.05, 3.0
    pair = PoissonSampledPair(pair=LaplacePair(epsilon=e), rate=rate)
    nodes = nodes_of([(pair, 1), (pair, 1)], Reach(low=-1.0, high=9.0, frequency=5.0))
    assert nodes is not None
    edges = np.linspace(-e, e, 200_001)
    middle = (edges[1:] + edges[:-1]) / 2
    q = np.exp((-middle - e) / 2) / 4 * (2 * e / 200_000)
    g = 1 - rate + rate * np.exp(middle)
    ends = [(0.5, -e), (math.exp(-e) / 2, e)]
    for z in (tilt, tilt + 4j):
        direct = np.sum(q * g ** (z + 1)) + sum(
            m * (1 - rate + rate * math.exp(x)) ** (z + 1) for m, x in ends
        )
        found = np.sum(nodes.masses[0] * np.exp(z * nodes.losses[0]))
        assert found == pytest.approx(complex(direct), abs=1e-10)
