"""A law on a grid that is too short for it: nothing of what is cut may be lost."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from support import independent as second
from tacit.pld import (
    DiscreteLaplacePair,
    FinitePair,
    GaussianPair,
    LaplacePair,
    Pair,
    RandomizedResponsePair,
)
from tacit.pld.distributions import gridded
from tacit.pld.product import _shares

STEP = 1 / 64


def discrete_laplace(rate: float, sensitivity: int, epsilon: float) -> float:
    span = range(-4000, 4001 + sensitivity)
    norm = math.tanh(rate / 2)
    p = [norm * math.exp(-rate * abs(x)) for x in span]
    q = [norm * math.exp(-rate * abs(x - sensitivity)) for x in span]
    return second.hockey_stick(p, q, epsilon)


TABLE = ([0.5, 0.2, 0.2, 0.1], [0.1, 0.3, 0.2, 0.4])
CASES = [
    (RandomizedResponsePair(epsilon=2.0), lambda e: second.hockey_stick(*second.randomized_response(2.0), e)),
    (DiscreteLaplacePair(rate=0.25, sensitivity=8), lambda e: discrete_laplace(0.25, 8, e)),
    (FinitePair(p=tuple(TABLE[0]), q=tuple(TABLE[1])), lambda e: second.hockey_stick(*TABLE, e)),
    (LaplacePair(epsilon=2.0), lambda e: second.laplace_hockey_stick(2.0, e)),
    (GaussianPair(mu=1.0), lambda e: second.gaussian_hockey_stick(1.0, e)),
]


@pytest.mark.parametrize(("pair", "exact"), CASES, ids=lambda c: type(c).__name__)
@pytest.mark.parametrize(("low", "high"), [(-3.0, 3.0), (-3.0, 1.0), (-0.5, 0.5), (-0.5, 3.0), (0.25, 0.5)])
def test_a_short_grid_stays_above(pair: Pair, exact: object, low: float, high: float) -> None:
    """All of P is kept, at a node or at infinity, and the gridded curve is above the true one everywhere."""
    got = gridded(pair.pld(), STEP, low, high)
    masses, infinite = got.masses[0], float(got.infinite_high[0])
    assert masses.sum() + infinite >= 1 - 1e-12
    losses = (got.start + np.arange(len(masses))) * STEP + got.slack
    for epsilon in (0.0, 0.1, 0.3, 0.6, 0.9, 1.2, 1.7, 1.99):
        terms = masses * np.maximum(0.0, -np.expm1(np.minimum(epsilon - losses, 0.0)))
        assert infinite + float(terms.sum()) >= exact(epsilon) - 1e-12, epsilon  # type: ignore[operator]


def test_every_way_to_draw_atoms_stands_in_the_list_once() -> None:
    for total, kinds in itertools.product(range(1, 6), range(1, 6)):
        wanted = {
            tuple(sorted(Counter(draw).items())) for draw in itertools.product(range(kinds), repeat=total)
        }
        listed = [tuple(shares) for shares in _shares(total, kinds)]
        assert set(listed) == wanted
        assert len(listed) == len(wanted)


def test_many_events_need_no_depth() -> None:
    assert sum(1 for _ in _shares(1, 4096)) == 4096
    assert sum(1 for _ in _shares(4095, 2)) == 4096
