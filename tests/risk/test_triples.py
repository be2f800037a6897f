"""Groups of three cells: the levels, the flow and the mean loss from the definition, and half of the noise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from tacit.guarantees import Neighbours
from tacit.risk import expected_errors, lower_bounds, release_price
from tacit.risk.minimax import _centre, triple_risk, triples

ROOTS = list(itertools.permutations((1, -1, 0)))
REPLACE = Neighbours.REPLACE_ONE


def levels(s: int, depth: int) -> dict[tuple[int, int, int], int]:
    reach = range(-depth, depth + s + 1)
    points = ((a, b, s - a - b) for a in reach for b in reach)
    found = {v: sum(-x for x in v if x < 0) for v in points}
    return {v: k for v, k in found.items() if k <= depth}


def lowest_mean(s: int, depth: int, epsilon: float) -> float:
    """The smallest mean loss of a law on these levels that falls by at most e^-epsilon along every root."""
    at = levels(s, depth)
    place = {v: i for i, v in enumerate(at)}
    pairs = [
        (place[v], place[w])
        for v in at
        for r in ROOTS
        if (w := tuple(x + y for x, y in zip(v, r, strict=True))) in at
    ]
    rows = np.repeat(np.arange(len(pairs)), 2)
    values = np.tile([math.exp(-epsilon), -1.0], len(pairs))
    edges = csr_matrix((values, (rows, np.array(pairs).ravel())), shape=(len(pairs), len(at)))
    loss = [sum(map(abs, v)) for v in at]
    solved = linprog(loss, A_ub=edges, b_ub=np.zeros(len(pairs)), A_eq=np.ones((1, len(at))), b_eq=[1.0])
    return float(solved.fun)


def test_the_mean_loss_is_that_of_the_linear_program() -> None:
    for epsilon, depth in ((0.4, 4), (1.2, 5), (2.5, 3)):
        found = [lowest_mean(s, depth, epsilon) for s in range(5)]
        assert min(found[:3]) == found[0]
        assert _centre(epsilon, depth) <= min(found) + 1e-9
        assert min(3.0, found[0]) == pytest.approx(_centre(epsilon, depth), rel=1e-7)


@pytest.mark.parametrize("s", [0, 1, 2])
def test_the_flow_between_levels_exists(s: int) -> None:
    """A transport with equal amounts from every point and to every point, along roots only."""
    at = levels(s, 7)
    for k in range(7):
        here = [v for v in at if at[v] == k]
        there = [v for v in at if at[v] == k + 1]
        assert len(there) == 6 * (k + 1) + 3 * s
        pairs = [
            (i, len(here) + j)
            for (i, v), (j, w) in itertools.product(enumerate(here), enumerate(there))
            if tuple(y - x for x, y in zip(v, w, strict=True)) in ROOTS
        ]
        ends = np.zeros((len(here) + len(there), len(pairs)))
        for column, (i, j) in enumerate(pairs):
            ends[[i, j], column] = 1.0
        amounts = np.array([1 / len(here)] * len(here) + [1 / len(there)] * len(there))
        assert linprog(np.zeros(len(pairs)), A_eq=ends, b_eq=amounts).status == 0, (s, k)


def test_limits_in_closed_form() -> None:
    """Where the cap does not bite: 12 q (1+q)/((1-q)(1+4q+q^2)); for small epsilon more than 3.5/epsilon."""
    for epsilon in (1.3, 2.0, 4.0):
        q = math.exp(-epsilon)
        closed = 12 * q * (1 + q) / ((1 - q) * (1 + 4 * q + q * q))
        assert triple_risk(None, epsilon) == pytest.approx(closed, rel=1e-5)
    assert 3.5 / 0.001 < triple_risk(None, 0.001) < 4 / 0.001


def test_half_of_the_noise_is_reached() -> None:
    for epsilon in (0.02, 0.1, 0.3, 0.5, 0.8, 0.9, 1.0, 1.5, 2.0, 2.2):
        noise = 1 / math.sinh(epsilon / 2)
        found = release_price(
            "histogram", error=noise, epsilon=epsilon, neighbours=REPLACE, cells=30, n=10**7
        )
        assert found.ratio is not None
        assert 1 < found.ratio <= 2, epsilon
        assert found.theorem == "histogram-triples"


def test_below_every_mechanism_and_growing_with_n() -> None:
    for p, n, e in itertools.product((3, 10, 64), (1, 30, 400, 10_000), (0.05, 0.7, 2.0, 6.0)):
        best = min(expected_errors("histogram", n=n, epsilon=e, cells=p).values())
        assert 0 <= triples(p, n, e) <= best
    for e in (0.1, 1.0):
        values = [triple_risk(n, e) for n in (20, 100, 1000, 10**5)]
        assert values == sorted(values)
        assert values[-1] <= triple_risk(None, e)
    named = {b.name for b in lower_bounds("histogram", n=60, epsilon=1.0, cells=3)}
    assert "histogram-triples" in named
    assert "histogram-triples" not in {
        b.name
        for b in lower_bounds("histogram", n=60, epsilon=1.0, cells=3, neighbours=Neighbours.ADD_OR_REMOVE)
    }
