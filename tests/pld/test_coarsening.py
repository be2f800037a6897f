"""Very many upper bounds without nodes, gathered into runs; and the curves that such bounds are composed from."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.exact.arrays import Floats
from tacit.pld import (
    ApproximatePair,
    ConcentratedPair,
    ExponentialPair,
    GaussianPair,
    GroupPair,
    LaplacePair,
    MaximumPair,
    Pair,
    PoissonSampledPair,
    Product,
    RandomizedResponsePair,
    RenyiPair,
    WithoutReplacementPair,
)
from tacit.pld.distributions import _hull, pld_curve
from tacit.pld.engine import CompositionEngine
from tacit.pld.product import above, coarsened


def _group(pair: Pair) -> Pair:
    return GroupPair(products=(Product.of(pair),), size=2)


def _without(pair: Pair, rate: float) -> Pair:
    return WithoutReplacementPair(products=(Product.of(pair),), rate=rate)


FAMILIES: list[list[Pair]] = [
    [PoissonSampledPair(pair=ConcentratedPair(rho=r), rate=q) for r, q in ((0.1, 0.02), (0.2, 0.01))],
    [PoissonSampledPair(pair=ConcentratedPair(rho=r), rate=q).swapped() for r, q in ((0.1, 0.2), (0.2, 0.1))],
    [_without(ConcentratedPair(rho=r), q) for r, q in ((0.1, 0.02), (0.2, 0.01))],
    [RenyiPair(orders=(2.0, 8.0), epsilons=e) for e in ((0.1, 0.5), (0.2, 0.4))],
    [_group(GaussianPair(mu=m)) for m in (0.3, 0.4)],
    [_group(LaplacePair(epsilon=e)) for e in (0.3, 0.4)],
    [
        MaximumPair(products=(Product.of(ExponentialPair(epsilon=a)), Product.of(GaussianPair(mu=b))))
        for a, b in ((0.1, 0.4), (0.2, 0.3))
    ],
    [_group(ApproximatePair(epsilon=e, delta=d)) for e, d in ((0.1, 1e-3), (0.2, 1e-4))],
    [_group(RandomizedResponsePair(epsilon=e, categories=4)) for e in (0.1, 0.2)],
]


@pytest.mark.parametrize("pairs", FAMILIES)
def test_the_largest_parameters_are_above_every_member(pairs: list[Pair]) -> None:
    top = above(pairs)
    for e in (-1.0, -0.1, -0.01, 0.0, 0.01, 0.1, 0.3, 1.0):
        most = top.hockey_stick(e).high
        for pair in pairs:
            assert pair.hockey_stick(e).high <= most * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize("pairs", FAMILIES)
def test_a_run_of_one_is_itself(pairs: list[Pair]) -> None:
    assert above(pairs[:1]) == pairs[0]


def test_very_many_become_few_and_lose_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against three hundred kept apart: above, and by no more than a hundredth."""
    rows = np.linspace(0.05, 0.3, 300)
    pairs: list[tuple[Pair, int]] = [
        (PoissonSampledPair(pair=ConcentratedPair(rho=float(r)), rate=0.05), 1 + i % 2)
        for i, r in enumerate(rows)
    ]
    few = coarsened(pairs)
    assert len(few) <= 100
    assert sum(n for _, n in few) == sum(n for _, n in pairs)
    gathered = CompositionEngine(pairs)
    monkeypatch.setattr("tacit.pld.product.coarsened", lambda parts: parts)
    found, known = gathered.epsilon(1e-6, 4e-4).high, CompositionEngine(pairs).epsilon(1e-6, 1e-2).high
    assert known <= found <= known * 1.01


def test_few_are_left_alone() -> None:
    pairs: list[tuple[Pair, int]] = [(ConcentratedPair(rho=r), 1) for r in (0.1, 0.2)]
    assert coarsened(pairs) is pairs


@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_added_records_of_a_sampled_bound_have_the_swapped_curve(rate: float) -> None:
    """The float curve against the balls of 1 - t + t h(1/t), which have all the digits that they need."""
    pair = PoissonSampledPair(pair=ConcentratedPair(rho=0.3), rate=rate).swapped()
    top = -math.log1p(-rate)
    losses = np.concatenate([[-3.0, -0.3, -0.01, 0.0], top * np.array([0.01, 0.3, 0.7, 0.9, 0.99])])
    values = pld_curve(pair.pld(), losses)[1]
    for e, value in zip(losses, values, strict=True):
        exact = pair.hockey_stick(float(e)).high
        assert exact * (1 - 1e-12) - 1e-18 <= value <= exact * (1 + 1e-9) + 1e-18
    assert float(pld_curve(pair.pld(), np.array([top * (1 + 1e-9)]))[1][0]) < 1e-12


def test_a_hundred_added_records_of_a_sampled_bound_are_composed() -> None:
    """They used to cost their largest losses added up, 1.005; removals cost more than additions."""
    pair = PoissonSampledPair(pair=ConcentratedPair(rho=0.2), rate=0.01)
    added = Product.of(pair.swapped(), 100).epsilon(1e-6).high
    removed = Product.of(pair, 100).epsilon(1e-6).high
    assert 0.25 < added < 0.33
    assert added < removed


def test_exponentials_without_replacement_repeat_to_what_their_losses_say() -> None:
    """Removals under Poisson sampling, whose law has the same positive half, are a little below."""
    base = ExponentialPair(epsilon=0.6)
    found = Product.of(_without(base, 0.02), 60).epsilon(1e-6).high
    poisson = Product.of(PoissonSampledPair(pair=base, rate=0.02), 60).epsilon(1e-6).high
    assert poisson < found < poisson * 1.1


def _lower_hull(x: Floats, y: Floats) -> list[int]:
    keep: list[int] = []
    for i in range(len(x)):
        while len(keep) >= 2:
            a, b = keep[-2], keep[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            keep.pop()
        keep.append(i)
    return keep


@pytest.mark.parametrize("number", [3, 40, 2000])
def test_chords_are_those_of_the_lower_hull(number: int) -> None:
    draw = np.random.default_rng(number)
    x = np.cumsum(draw.uniform(0.1, 1.0, number))
    bulge = 0.2 * np.exp(-(((x - x.mean()) / (0.1 * x.max())) ** 2))
    y = (1 - x / x.max() * 0.9) ** 2 + bulge + 1e-5 * draw.uniform(0, 1, number)
    keep = _hull(x, y)
    slopes = np.diff(y[keep]) / np.diff(x[keep])
    assert np.all(np.diff(slopes) >= 0)
    exact = _lower_hull(x, y)
    chords, least = np.interp(x, x[keep], y[keep]), np.interp(x, x[exact], y[exact])
    assert np.all(chords >= least - 1e-15)
    assert float(np.max(chords - least)) < 1e-4
