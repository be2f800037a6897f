"""Pairs sampled without replacement as nodes, against their definition and against the grid of losses."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tacit.exact.arrays import Floats
from tacit.pld import (
    ApproximatePair,
    DiscreteGaussianPair,
    DiscreteLaplacePair,
    ExponentialPair,
    FinitePair,
    GaussianPair,
    LaplacePair,
    MaximumPair,
    Pair,
    Product,
    RandomizedResponsePair,
    StaircasePair,
    WithoutReplacementPair,
)
from tacit.pld.characteristic import CharacteristicComposition
from tacit.pld.distributions import pld_curve
from tacit.pld.engine import CompositionEngine
from tacit.pld.quadrature import Quadrature, QuadratureRange, _gauss, quadrature_of

_REACH = QuadratureRange(low=-2.0, high=9.0, frequency=14.0)
_POWERS = (0.0, 3.0, 3 + 14j, 9 + 5j, 9 + 14j, -2 + 14j)


def _sampled(pair: Pair, rate: float) -> WithoutReplacementPair:
    return WithoutReplacementPair(products=(Product.of(pair),), rate=rate)


def _nodes(*pairs: Pair, reach: QuadratureRange = _REACH) -> Quadrature:
    found = quadrature_of([(p, 1) for p in pairs], reach)
    assert found is not None
    return found


def _transform(ratio: Floats, q: Floats, rate: float, z: complex) -> tuple[complex, float]:
    """Two halves and the rest at 0, from ln Z > 0 and its Q-masses; and its size at frequency 0."""
    g = 1 + rate * np.expm1(ratio)
    rest = 1 - float(np.sum(q * (1 + g)))
    size = float(np.sum(q * (g ** (z.real + 1) + g**-z.real))) + rest
    return complex(np.sum(q * (np.exp((z + 1) * np.log(g)) + np.exp(-z * np.log(g))))) + rest, size


def _fine(density: Callable[[Floats], Floats], top: float) -> tuple[Floats, Floats]:
    edges = np.linspace(0.0, top, 4001)
    half = (edges[1:] - edges[:-1])[:, None] / 2
    x, share = np.polynomial.legendre.leggauss(8)
    points = (edges[:-1, None] + half * (1 + x)).ravel()
    return points, (half * share).ravel() * density(points)


def _normal_half(mu: float) -> tuple[Floats, Floats]:
    u, q = _fine(lambda u: np.exp(-((mu / 2 + u) ** 2) / 2) / math.sqrt(2 * math.pi), 26.0)
    return mu * u, q


def _laplace_half(e: float) -> tuple[Floats, Floats]:
    x, q = _fine(lambda x: np.exp((-x - e) / 2) / 4, e)
    return np.append(x, e), np.append(q, math.exp(-e) / 2)


def _exponential_half(e: float) -> tuple[Floats, Floats]:
    return _fine(lambda x: np.exp((-x - e) / 2) / (2 * (1 - math.exp(-e))), e)


def _integer_half(std: float, s: int) -> tuple[Floats, Floats]:
    side = np.ceil(14 * std + 3 * s + 10)
    k = np.arange(-side, side + 1)
    q = np.exp(-k * k / (2 * std * std))
    q /= q.sum()
    above = k > s / 2
    return s * (2 * k[above] - s) / (2 * std * std), q[above]


CASES: list[tuple[Pair, tuple[Floats, Floats]]] = [
    (GaussianPair(mu=0.1), _normal_half(0.1)),
    (GaussianPair(mu=0.8), _normal_half(0.8)),
    (GaussianPair(mu=1.2), _normal_half(1.2)),
    (LaplacePair(epsilon=0.1), _laplace_half(0.1)),
    (LaplacePair(epsilon=1.7), _laplace_half(1.7)),
    (ExponentialPair(epsilon=0.9), _exponential_half(0.9)),
    (DiscreteGaussianPair(noise_std=0.8), _integer_half(0.8, 1)),
    (DiscreteGaussianPair(noise_std=5.3), _integer_half(5.3, 1)),
    (DiscreteGaussianPair(noise_std=4.0, sensitivity=2), _integer_half(4.0, 2)),
    (DiscreteGaussianPair(noise_std=61.5), _integer_half(61.5, 1)),
    (DiscreteGaussianPair(noise_std=300.0, sensitivity=200), _integer_half(300.0, 200)),
]


@pytest.mark.parametrize("rate", [1e-3, 0.05, 0.6])
@pytest.mark.parametrize(("pair", "half"), CASES)
def test_nodes_give_the_transforms(pair: Pair, half: tuple[Floats, Floats], rate: float) -> None:
    nodes = _nodes(_sampled(pair, rate))
    for z in map(complex, _POWERS):
        direct, size = _transform(*half, rate, z)
        found = complex(np.sum(nodes.masses[0] * np.exp(z * nodes.losses[0])))
        assert abs(found - direct) < 2e-12 * max(size, 1.0)
        assert abs(found - direct) < nodes.error[0] + (nodes.relative + 1e-12) * size


@pytest.mark.parametrize(
    "pair",
    [
        RandomizedResponsePair(epsilon=0.7),
        RandomizedResponsePair(epsilon=0.7, categories=5),
        DiscreteLaplacePair(rate=0.3, sensitivity=3),
        DiscreteLaplacePair(rate=0.3, sensitivity=4),
        StaircasePair(epsilon=0.8, gamma=0.4),
        ApproximatePair(epsilon=0.5, delta=1e-3),
        FinitePair(p=[0.5, 0.3, 0.2], q=[0.2, 0.3, 0.5]),
        LaplacePair(epsilon=0.6),
        ExponentialPair(epsilon=0.6),
        GaussianPair(mu=0.7),
        DiscreteGaussianPair(noise_std=3.0),
    ],
)
@pytest.mark.parametrize("rate", [0.01, 0.4])
def test_nodes_have_the_curve_of_the_theorem(pair: Pair, rate: float) -> None:
    """h(e^e) = sum of P (1 - e^(e - l))+ against q h0(1 + (e^e - 1)/q), and its mirror below 0, by balls."""
    sampled = _sampled(pair, rate)
    reach = QuadratureRange(low=-1.0, high=9.0, frequency=1.0)
    nodes = _nodes(sampled, reach=reach)
    assert float(np.sum(nodes.masses)) + float(nodes.infinite[0, 1]) == pytest.approx(1.0, abs=1e-12)
    smooth = isinstance(pair, LaplacePair | ExponentialPair | GaussianPair)
    for e in (-0.5, -0.01, 0.0, 0.003, 0.02, 0.3):
        gains = np.maximum(-np.expm1(e - nodes.losses[0]), 0.0)
        read = float(nodes.masses[0] @ gains) + float(nodes.infinite[0, 1])
        # Quadrature of a kinked function is only near; sums over atoms are not.
        assert read == pytest.approx(sampled.hockey_stick(e).high, abs=3e-3 * rate if smooth else 1e-12)


@pytest.mark.parametrize(("order", "number"), [(5, 40), (24, 300), (60, 2000), (96, 5000)])
def test_sums_over_integers_are_exact_for_polynomials(order: int, number: int) -> None:
    x, weights = _gauss(order, number)
    points = np.linspace(-1.0, 1.0, number)
    assert np.all(weights > 0)
    for degree in range(0, 2 * order, 3):
        seen = float(weights @ np.polynomial.legendre.legval(x, [0.0] * degree + [1.0])) / number
        direct = float(np.mean(np.polynomial.legendre.legval(points, [0.0] * degree + [1.0])))
        assert seen == pytest.approx(direct, abs=1e-13)


def _plan(kind: str) -> list[tuple[Pair, int]]:
    draw = np.random.default_rng(3)
    rows = zip(draw.uniform(0, 1, 12), draw.uniform(5e-3, 0.05, 12), strict=True)
    made: dict[str, Callable[[float], Pair]] = {
        "gaussian": lambda u: GaussianPair(mu=0.2 + 0.5 * u),
        "laplace": lambda u: LaplacePair(epsilon=0.1 + u),
        "exponential": lambda u: ExponentialPair(epsilon=0.1 + u),
        "response": lambda u: RandomizedResponsePair(epsilon=0.1 + u),
        "integers": lambda u: DiscreteGaussianPair(noise_std=1.5 + 3 * u),
        "approximate": lambda u: ApproximatePair(epsilon=0.1 + u, delta=1e-10),
    }
    return [(_sampled(made[kind](float(u)), float(q)), 500 + i % 2) for i, (u, q) in enumerate(rows)]


@pytest.mark.parametrize(
    "kind", ["gaussian", "laplace", "exponential", "response", "integers", "approximate"]
)
def test_the_transform_agrees_with_the_grid(kind: str) -> None:
    parts = list(Product(pairs=_plan(kind)).pairs)
    transform, grid = CompositionEngine(parts), CompositionEngine(parts)
    transform._characteristic = CharacteristicComposition(parts, exact=False)
    found, known = transform.epsilon(1e-6, 4e-4), grid.epsilon(1e-6, 4e-4)
    assert transform._characteristic is not None, "the transform gave up"
    assert found.low == 0.0
    assert abs(found.high - known.high) < 3e-4
    assert transform.delta(found.high, 1e-3).high == pytest.approx(1e-6, rel=1e-2)


@pytest.mark.parametrize(
    "base",
    [
        GaussianPair(mu=0.5),
        LaplacePair(epsilon=0.6),
        RandomizedResponsePair(epsilon=0.6),
        DiscreteGaussianPair(noise_std=2.0),
    ],
)
def test_many_that_hardly_differ_cost_what_repetitions_do(base: Pair) -> None:
    same = Product.of(_sampled(base, 0.02), 3000)
    near = [(_sampled(base, 0.02 * (1 + 1e-9 * i / 300)), 10) for i in range(300)]
    assert Product(pairs=near).epsilon(1e-6).high == pytest.approx(same.epsilon(1e-6).high, abs=3e-4)


@pytest.mark.parametrize("rate", [0.01, 0.4])
@pytest.mark.parametrize(
    "pair",
    [
        GaussianPair(mu=0.7),
        LaplacePair(epsilon=0.6),
        ExponentialPair(epsilon=0.6),
        RandomizedResponsePair(epsilon=0.7, categories=5),
        DiscreteLaplacePair(rate=0.3, sensitivity=3),
        ApproximatePair(epsilon=0.5, delta=1e-3),
        FinitePair(p=[0.5, 0.3, 0.2], q=[0.2, 0.3, 0.5]),
        DiscreteGaussianPair(noise_std=3.0),
    ],
)
def test_mirrored_laws_have_the_curve_of_the_theorem(pair: Pair, rate: float) -> None:
    """Float laws against q h0(1 + (t - 1)/q) in balls, on both sides of 0."""
    sampled = _sampled(pair, rate)
    points = np.array([-0.7, -0.1, -0.004, 0.0, 0.003, 0.02, 0.2, 0.5])
    found = pld_curve(sampled.pld(), points)[1]
    for e, value in zip(points, found, strict=True):
        exact = sampled.hockey_stick(float(e)).high
        assert exact * (1 - 1e-12) - 1e-15 <= value <= exact * (1 + 1e-9) + 1e-13


@pytest.mark.parametrize("base", [GaussianPair(mu=0.7), LaplacePair(epsilon=0.6)])
def test_mirrored_laws_compose_like_their_curves(base: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = _sampled(base, 0.02)
    found = CompositionEngine([(sampled, 200)]).epsilon(1e-6, 4e-4).high
    monkeypatch.setattr(WithoutReplacementPair, "pld", MaximumPair.pld)
    assert CompositionEngine([(sampled, 200)]).epsilon(1e-6, 4e-4).high == pytest.approx(found, abs=3e-4)


def _either(p: list[float], q: list[float], rate: float) -> WithoutReplacementPair:
    table = FinitePair(p=p, q=q)
    return WithoutReplacementPair(products=(Product.of(table), Product.of(table.swapped())), rate=rate)


@pytest.mark.parametrize("outcomes", [2, 3, 5, 8])
def test_tables_in_both_orders_have_the_larger_curve(outcomes: int) -> None:
    draw = np.random.default_rng(outcomes)
    for number in range(12):
        p, q = draw.dirichlet(np.ones(outcomes), 2).tolist()
        if outcomes == 5:
            p[0], p[1] = 0.0, p[0] + p[1]
        if number % 3 == 0:
            q[-1], q[0] = 0.0, q[0] + q[-1]
        pair = _either(p, q, float(draw.uniform(0.01, 0.9)))
        nodes = _nodes(pair, reach=QuadratureRange(low=-1.0, high=9.0, frequency=1.0))
        assert float(np.sum(nodes.masses) + nodes.infinite[0, 1]) == pytest.approx(1.0, abs=2e-12)
        for e in (-1.0, -0.2, 0.0, 0.003, 0.1, 0.5, 1.5):
            gains = np.maximum(-np.expm1(e - nodes.losses[0]), 0.0)
            read = float(nodes.masses[0] @ gains + nodes.infinite[0, 1])
            assert read == pytest.approx(pair.hockey_stick(e).high, abs=2e-12)


def test_transforms_of_tables_in_both_orders_agree_with_the_grid() -> None:
    rows = [(0.03, 0.02), (0.05, 0.03), (0.08, 0.01), (0.1, 0.04)]
    parts: list[tuple[Pair, int]] = [
        (_either([0.5 + e, 0.3, 0.2 - e], [0.5, 0.3, 0.2], r), 1000) for e, r in rows
    ]
    transform, grid = CompositionEngine(parts), CompositionEngine(parts)
    transform._characteristic = CharacteristicComposition(parts, exact=False)
    found, known = transform.epsilon(1e-6, 4e-4), grid.epsilon(1e-6, 4e-4)
    assert transform._characteristic is not None, "the transform gave up"
    assert abs(found.high - known.high) < 3e-4
