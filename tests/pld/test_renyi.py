"""Rényi divergences against the integral of their definition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.pld import (
    ExponentialPair,
    FinitePair,
    GaussianPair,
    LaplacePair,
    MixturePair,
    Pair,
    PoissonSampledPair,
    Product,
    RandomizedResponsePair,
    WithoutReplacementPair,
)

X = np.linspace(-30, 40, 700_001)
Q = np.exp(-(X**2) / 2) / math.sqrt(2 * math.pi)


def mixture(shifts: tuple[float, ...], weights: tuple[float, ...]) -> np.ndarray:
    return sum(w * np.exp(s * X - s * s / 2) for s, w in zip(shifts, weights, strict=True))


@pytest.mark.parametrize("order", [1.25, 2.0, 2.5, 7.0, 12.75])
@pytest.mark.parametrize(("mu", "rate"), [(1.0, 0.01), (2.0, 0.3), (0.2, 0.5)])
def test_sampled_gaussian(mu: float, rate: float, order: float) -> None:
    ratio = mixture((0.0, mu), (1 - rate, rate))
    logs = order * np.log(ratio) - X**2 / 2
    truth = math.log(float(np.trapezoid(np.exp(logs), X)) / math.sqrt(2 * math.pi)) / (order - 1)
    got = PoissonSampledPair(pair=GaussianPair(mu=mu), rate=rate).renyi(order)
    assert truth * (1 - 1e-6) - 1e-11 <= got
    assert got == pytest.approx(truth, rel=1e-6, abs=1e-10)
    logs = (1 - order) * np.log(ratio) - X**2 / 2
    back = math.log(float(np.trapezoid(np.exp(logs), X)) / math.sqrt(2 * math.pi)) / (order - 1)
    assert PoissonSampledPair(pair=GaussianPair(mu=mu), rate=rate).swapped().renyi(order) >= back - 1e-10


@pytest.mark.parametrize("order", [1.5, 2.0, 6.25])
def test_mixture_both_ways(order: float) -> None:
    pair = MixturePair(shifts=(0.0, 0.5, 1.5), weights=(0.5, 0.25, 0.25))
    ratio = mixture(pair.shifts, pair.weights)
    for got, power in ((pair.renyi(order), order), (pair.swapped().renyi(order), 1 - order)):
        truth = math.log(float(np.trapezoid(Q * ratio**power, X))) / (order - 1)
        assert got == pytest.approx(truth, rel=1e-7)
        assert got >= truth * (1 - 1e-9)


@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 9.5, 64.0])
def test_closed_forms(order: float) -> None:
    e = 0.7
    x = np.linspace(-60, 60.7, 603_501)
    logs = -order * np.abs(x) - (1 - order) * np.abs(x - e)
    truth = math.log(float(np.trapezoid(np.exp(logs) / 2, x))) / (order - 1)
    assert LaplacePair(epsilon=e).renyi(order) == pytest.approx(truth, rel=1e-4)
    t = math.exp(e) / (1 + math.exp(e))
    truth = math.log(t**order * (1 - t) ** (1 - order) + (1 - t) ** order * t ** (1 - order)) / (order - 1)
    assert RandomizedResponsePair(epsilon=e).renyi(order) == pytest.approx(truth, rel=1e-9)
    z = np.linspace(math.exp(-e), math.exp(e), 400_001)
    tail = (np.sqrt(math.exp(-e) / z) - math.exp(-e)) / -math.expm1(-e)
    moment = math.exp(-order * e) + float(np.trapezoid(order * z ** (order - 1) * tail, z))
    assert ExponentialPair(epsilon=e).renyi(order) == pytest.approx(math.log(moment) / (order - 1), rel=1e-6)


def test_rises_with_the_order_and_ends_at_the_largest_loss() -> None:
    pairs: list[Pair] = [
        LaplacePair(epsilon=0.5),
        ExponentialPair(epsilon=0.5),
        FinitePair(p=(0.5, 0.5), q=(0.4, 0.6)),
        PoissonSampledPair(pair=LaplacePair(epsilon=1.0), rate=0.1),
    ]
    for pair in pairs:
        values = [pair.renyi(a) for a in (1.1, 1.5, 2.0, 3.3, 8.0, 64.0, math.inf)]
        assert all(a <= b * (1 + 1e-12) for a, b in itertools.pairwise(values))
        assert values[-1] == pytest.approx(pair.largest_loss.high)


def test_without_replacement_is_the_published_sum() -> None:
    q, mu = 0.05, 1.0
    pair = WithoutReplacementPair(products=(Product.of(GaussianPair(mu=mu)),), rate=q)
    for a in (2, 3, 6):
        total = 1 + q**2 * math.comb(a, 2) * min(4 * math.expm1(mu**2), 2 * math.exp(mu**2))
        for j in range(3, a + 1):
            total += q**j * math.comb(a, j) * math.exp((j - 1) * j * mu**2 / 2) * 2
        expected = min(math.log(total) / (a - 1), a * mu**2 / 2)
        assert pair.renyi(float(a)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("order", [1.0, 0.5, -1.0, math.nan])
def test_bad_orders(order: float) -> None:
    with pytest.raises(InvalidParameter):
        LaplacePair(epsilon=1.0).renyi(order)
