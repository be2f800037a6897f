"""Error bars by the laws that are known: polytope noise and differences of K-norm noises, against draws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.mechanisms import Contribution, KNormDifference, PolytopeNorm
from tacit.noise import SeededSource
from tacit.noise.caratheodory import CaratheodoryBody

MECHANISMS = {
    "polytope": lambda: PolytopeNorm(points=[(1, 0, 0), (0, 1, 0), (1, 1, 2)], noise_scale=10, times=1),
    "difference": lambda: KNormDifference(
        sensitivity=Contribution(1, CaratheodoryBody(frequencies=2)), noise_scale=10
    ),
}
RUNS = 3000


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_quantile_is_that_of_the_widest_coordinate(name):
    """Within it with the stated chance at least, and not within a tenth less: no bound, the law."""
    m = MECHANISMS[name]()
    source, zeros = SeededSource(seed=4), np.zeros(m.coordinates, dtype=np.int64)
    drawn = np.abs(np.array([m.release(zeros, source=source).values for _ in range(RUNS)]))
    for level in (0.5, 0.95):
        stated = m.error_quantile(level)
        inside = (drawn <= stated).mean(axis=0)
        slack = 5 * math.sqrt(level * (1 - level) / RUNS)
        assert (inside >= level - slack).all()
        assert ((drawn <= 0.85 * stated).mean(axis=0) < level).any()
        assert (drawn.max(axis=1) <= m.max_error(confidence=level)).mean() >= level - slack
        assert m.max_error(confidence=level) >= stated
