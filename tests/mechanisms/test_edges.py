"""What rounding adds in every body, what a rounded factor costs, and where a formula is read: each from both sides."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.mechanisms import Box, Gauge, HullGauge, KNorm, Mahalanobis, Simplex, gauge
from tacit.mechanisms.smooth import laplace_delta
from tacit.noise import Ellipsoid, EuclideanBall, L1Ball, LinfBall, SampledBody

THIRD = Fraction(1, 3)
BODIES: list[Any] = [
    EuclideanBall(coordinates=3, radius=Fraction(1, 2)),
    EuclideanBall(coordinates=5, radius=3),
    L1Ball(coordinates=3, radius=Fraction(1, 2)),
    LinfBall(coordinates=3, radius=3),
    Ellipsoid(factor=((2, 0, 0), (1, 1, 0), (0, 1, 3))),
    Box(low=(-1, -2, -3), high=(2, THIRD, 4)),
    Simplex(vertices=((3, 0), (0, 2), (-1, -1))),
]


@pytest.mark.parametrize("kind", [Gauge, HullGauge])
@pytest.mark.parametrize("body", BODIES, ids=lambda b: type(b).__name__)
def test_rounding_adds_the_gauge_of_the_worst_corner(body: Any, kind: Any) -> None:
    """Two records, each rounded twice by half a step: the gauge is convex, so that some corner of the box is worst."""
    spacing, records = Fraction(1, 8), 2
    grown = kind(1, body).rounded(spacing=spacing, dimension=body.dimension, records=records)
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=body.dimension))) * float(spacing * records)
    added, worst = float(grown.exact - 1), float(gauge(body, corners).max())
    assert worst * (1 - 1e-12) <= added <= worst * 1.5
    if not isinstance(body, Ellipsoid):  # whose bound is by row sums
        assert added <= worst * (1 + 1e-9)


@pytest.mark.parametrize("sigma", [((3,),), ((5,),), ((2, 1), (1, 3)), ((7, 2, 1), (2, 5, 3), (1, 3, 11))])
def test_a_rounded_factor_is_paid_for_to_the_last_bit(sigma: Any) -> None:
    """sup |M^-1 v| / |v|_Sigma is the root of the largest eigenvalue of M^-1 Sigma M^-T, at least its diagonal."""
    for value in (1, Fraction(7, 3)):
        norm = Mahalanobis(value, sigma)
        inverse = _inverse([list(row) for row in norm.factor])
        product = _times(_times(inverse, [list(map(Fraction, r)) for r in sigma]), _transposed(inverse))
        diagonal = max(product[i][i] for i in range(len(sigma)))
        assert norm.factor_value**2 >= Fraction(value) ** 2 * diagonal
        assert norm.factor_value <= Fraction(value) * (1 + Fraction(1, 10**12))


def test_some_rounded_factor_is_too_small() -> None:
    """The root of 3 in floats is below the root of 3: without paying for it the noise would be too narrow."""
    norm = Mahalanobis(1, ((3,),))
    assert norm.factor[0][0] ** 2 < 3
    assert norm.factor_value > 1


def _inverse(rows: list[list[Fraction]]) -> list[list[Fraction]]:
    """Gauss and Jordan, exactly."""
    d = len(rows)
    work = [list(map(Fraction, row)) + [Fraction(i == j) for j in range(d)] for i, row in enumerate(rows)]
    for i in range(d):
        pivot = next(k for k in range(i, d) if work[k][i] != 0)
        work[i], work[pivot] = work[pivot], work[i]
        work[i] = [v / work[i][i] for v in work[i]]
        for k in range(d):
            if k != i:
                work[k] = [a - work[k][i] * b for a, b in zip(work[k], work[i], strict=True)]
    return [row[d:] for row in work]


def _times(a: list[list[Fraction]], b: list[list[Fraction]]) -> list[list[Fraction]]:
    return [[sum((x * y for x, y in zip(r, c, strict=True)), Fraction(0)) for c in _transposed(b)] for r in a]


def _transposed(a: list[list[Fraction]]) -> list[list[Fraction]]:
    return [list(c) for c in zip(*a, strict=True)]


@pytest.mark.parametrize("epsilon", [0.5, 3])
def test_a_body_sampled_in_floats_pays_for_both_sides(epsilon: float) -> None:
    """P is within d of the ideal law and so is Q: P(S) <= e^epsilon Q(S) + (1 + e^epsilon) d, and no less is claimed.

    The distance is far below 10^-12, within which numbers pass for equal where nobody says otherwise.
    """
    body = SampledBody(
        coordinates=2, sampler=lambda n, source: (source.words(2 * n).reshape(n, 2) >> np.uint64(11)) * 2.0**-52 - 1.0,
        absolute_error=2.0**-50, marginal_density_bound=0.5, reach=1.0,
    )  # fmt: skip
    made = KNorm.for_target(epsilon=epsilon, sensitivity=Gauge(1, body), spacing=2.0**-10)
    whole = (1 + math.exp(epsilon)) * made.numerical_delta
    assert made.numerical_delta > 0
    assert whole * (1 - 1e-9) <= float(made.bound.delta) <= whole * (1 + 1e-9)  # type: ignore[attr-defined]


def test_delta_is_read_only_where_the_theorem_gives_it() -> None:
    """smooth-laplace holds for epsilon >= max(a, beta + a e^-beta): elsewhere the answer is 1, on it the formula."""
    for a, beta in itertools.product((0.1, 0.5, 1.0, 2.0), (0.05, 0.5, 1.0)):
        needed = max(a, beta + a * math.exp(-beta))
        for factor, holds in ((0.999, False), (1.001, True)):
            epsilon = needed * factor
            found = laplace_delta(epsilon=epsilon, noise_multiplier=1 / a, beta=beta)
            fall = math.expm1(beta)
            tails = math.exp(-(epsilon - a + beta) / fall) + math.exp(-(epsilon + a + beta) / fall)
            formula = -math.expm1(-beta) * tails / 2
            assert (abs(found / formula - 1) < 1e-9) if holds else found == 1.0, (a, beta, factor)
    assert laplace_delta(epsilon=0.9, noise_multiplier=1, beta=0.01) == 1.0
