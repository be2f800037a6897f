"""Very many different parts, from their own transforms, against the grid of losses."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tacit.accounting import account
from tacit.accounting.events import DiscreteGaussianEvent, GaussianEvent, PoissonSampledEvent, RepeatedEvent
from tacit.exact.arrays import Floats
from tacit.pld import (
    DiscreteGaussianPair,
    ExponentialPair,
    GaussianPair,
    LaplacePair,
    Pair,
    PoissonSampledPair,
    SampledReplacementPair,
)
from tacit.pld.characteristic import CharacteristicComposition
from tacit.pld.engine import CompositionEngine
from tacit.pld.product import Product
from tacit.pld.quadrature import QuadratureRange, quadrature_of
from tacit.pld.transforms import SaddlePoint, Tilted, integer_bound


def _exponential() -> list[tuple[Pair, int]]:
    return [(ExponentialPair(epsilon=float(e)), 1) for e in np.linspace(1e-3, 0.1, 300)]


def test_transforms_of_exponentials_agree_with_the_grid() -> None:
    transform, grid = CompositionEngine(_exponential()), CompositionEngine(_exponential())
    grid._characteristic = None
    found, known = transform.epsilon(1e-6, 4e-4), grid.epsilon(1e-6, 4e-4)
    assert transform._characteristic is not None, "the transform gave up"
    assert abs(found.high - known.high) < 1e-3


def test_nodes_give_the_transforms_of_sampled_laplace() -> None:
    """E_P e^(cL) by direct summation over a fine partition of the continuous part and its atoms."""
    e, rate, tilt = 0.7, 0.05, 3.0
    pair = PoissonSampledPair(pair=LaplacePair(epsilon=e), rate=rate)
    nodes = quadrature_of([(pair, 1), (pair, 1)], QuadratureRange(low=-1.0, high=9.0, frequency=5.0))
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


MANY = 260
"""More than are taken in one array."""


def _sampled_gaussians(number: int = MANY) -> list[Pair]:
    draw = np.random.default_rng(4)
    rows = zip(draw.uniform(1.5, 5, number), draw.uniform(5e-3, 0.05, number), strict=True)
    return [PoissonSampledPair(pair=GaussianPair(mu=1 / float(m)), rate=float(q)) for m, q in rows]


def _sampled_laplaces(number: int = MANY) -> list[Pair]:
    draw = np.random.default_rng(4)
    rows = zip(draw.uniform(0.1, 1, number), draw.uniform(1e-3, 0.05, number), strict=True)
    return [PoissonSampledPair(pair=LaplacePair(epsilon=float(e)), rate=float(q)) for e, q in rows]


def _discrete_gaussians(number: int = MANY) -> list[Pair]:
    draw = np.random.default_rng(4)
    return [DiscreteGaussianPair(noise_std=float(s)) for s in draw.uniform(20, 60, number)]


Made = Callable[[int], list[Pair]]
KINDS = [
    pytest.param(_sampled_gaussians, False, id="sampled Gaussian"),
    pytest.param(_sampled_gaussians, True, id="sampled Gaussian, swapped"),
    pytest.param(_sampled_laplaces, False, id="sampled Laplace"),
    pytest.param(_sampled_laplaces, True, id="sampled Laplace, swapped"),
    pytest.param(_discrete_gaussians, False, id="discrete Gaussian"),  # in both directions the same
]


def _both(pairs: list[Pair], swapped: bool, times: int) -> tuple[CompositionEngine, CompositionEngine]:
    """The transform, and the grid alone."""
    chosen = [(p.swapped() if swapped else p, times + i % 2) for i, p in enumerate(pairs)]
    product = Product(pairs=chosen)
    transform, grid = CompositionEngine(list(product.pairs)), CompositionEngine(list(product.pairs))
    grid._characteristic = None
    return transform, grid


@pytest.mark.parametrize(("made", "swapped"), KINDS)
def test_the_transform_agrees_with_the_grid(made: Made, swapped: bool) -> None:
    transform, grid = _both(made(MANY), swapped, 20)
    found, known = transform.epsilon(1e-6, 4e-4), grid.epsilon(1e-6, 4e-3)
    assert transform._characteristic is not None, "the transform gave up"
    assert found.width <= 4e-4
    assert found.low <= known.high
    assert known.low <= found.high
    assert transform.delta(found.high, 1e-3).low <= 1e-6


@pytest.mark.parametrize(
    ("made", "number", "swapped"),
    [
        (_sampled_gaussians, 12, False),
        (_sampled_gaussians, 12, True),
        (_sampled_laplaces, MANY, False),
        (_discrete_gaussians, 12, False),
    ],
)
def test_deltas_of_the_transform_agree_with_the_grid(made: Made, number: int, swapped: bool) -> None:
    transform, grid = _both(made(number), swapped, 20)
    epsilon = transform.epsilon(1e-6, 4e-4).high
    at, other = transform.delta(epsilon, 1e-3), grid.delta(epsilon, 1e-2)
    assert transform._characteristic is not None, "the transform gave up"
    assert max(at.low, other.low) <= min(at.high, other.high)
    assert at.low <= 1e-6
    assert other.high < 2e-6


def test_transforms_of_exchanged_records_agree_with_the_grid() -> None:
    rows = [(0.3, 0.01), (0.5, 0.02), (0.8, 0.03)]
    parts: list[tuple[Pair, int]] = [(SampledReplacementPair(mu=m, rate=q), 400) for m, q in rows]
    transform, grid = CompositionEngine(parts), CompositionEngine(parts)
    transform._characteristic = CharacteristicComposition(parts, exact=True)
    found, known = transform.epsilon(1e-6, 1e-3), grid.epsilon(1e-6, 4e-3)
    assert transform._characteristic is not None, "the transform gave up"
    assert max(found.low, known.low) <= min(found.high, known.high)
    assert found.width < 1e-3


def test_nodes_give_the_transforms_of_sampled_normal_noise() -> None:
    """E_P e^(zL) and, swapped, E_Q e^(-zL) against a sum over a hundred times as many points."""
    mu, rate = 0.8, 0.03
    pair = PoissonSampledPair(pair=GaussianPair(mu=mu), rate=rate)
    near = PoissonSampledPair(pair=GaussianPair(mu=mu * 0.9), rate=rate)
    reach = QuadratureRange(low=-2.0, high=9.0, frequency=12.0)
    x = np.linspace(-14, 22, 40_001)
    q = np.exp(-x * x / 2) * (36 / 40_000) / math.sqrt(2 * math.pi)
    g = 1 - rate + rate * np.exp(mu * x - mu * mu / 2)
    for swapped in (False, True):
        rows = [(p.swapped() if swapped else p, 1) for p in (pair, near)]
        nodes = quadrature_of(rows, reach)
        assert nodes is not None
        for z in (0.0, 3.0, 3 + 12j, 9 + 5j, -2 + 12j):
            power = -z if swapped else z + 1
            direct = complex(np.sum(q * np.exp(power * np.log(g))))
            size = float(np.sum(q * np.exp(np.real(power) * np.log(g))))
            found = complex(np.sum(nodes.masses[0] * np.exp(z * nodes.losses[0])))
            assert abs(found - direct) < 1e-12 * max(size, 1.0)


def test_nodes_give_the_transforms_of_integer_and_replaced_noise() -> None:
    std, mu, rate = 21.3, 0.5, 0.02
    reach = QuadratureRange(low=-2.0, high=9.0, frequency=12.0)
    k = np.arange(-900.0, 901.0)
    q = np.exp(-k * k / (2 * std * std))
    cases: list[tuple[Pair, Floats, Floats]] = [
        (DiscreteGaussianPair(noise_std=std), q / q.sum(), (2 * k - 1) / (2 * std * std))
    ]
    x = np.linspace(-16, 16, 40_001)
    up = np.log1p(rate * np.expm1(mu * x - mu * mu / 2))
    down = np.log1p(rate * np.expm1(-mu * x - mu * mu / 2))
    base = np.exp(down - x * x / 2) * (32 / 40_000) / math.sqrt(2 * math.pi)
    cases.append((SampledReplacementPair(mu=mu, rate=rate), base, up - down))
    for pair, masses, losses in cases:
        nodes = quadrature_of([(pair, 1)], reach)
        assert nodes is not None
        for z in (0.0, 3.0, 3 + 12j, 9 + 5j, -2 + 12j):
            direct = complex(np.sum(masses * np.exp((z + 1) * losses)))
            size = float(np.sum(masses * np.exp((np.real(z) + 1) * losses)))
            found = complex(np.sum(nodes.masses[0] * np.exp(z * nodes.losses[0])))
            assert abs(found - direct) < 1e-12 * max(size, 1.0)


@pytest.mark.parametrize("std", [1.0, 1.7, 6.3])
@pytest.mark.parametrize("tilt", [0.0, 0.37, 2.5])
def test_transforms_of_integer_noise_stay_below_their_bound(std: float, tilt: float) -> None:
    k = np.arange(-400.0, 401.0)
    losses = (1 - 2 * k) / (2 * std * std)
    weights = np.exp(-k * k / (2 * std * std) + tilt * losses)
    weights /= weights.sum()
    w = 0.05 * 1.15 ** np.arange(60)
    bounds = integer_bound(np.array([std]), 1.0, w[:-1], w[1:])[0]
    for low, high, bound in zip(w[:-1], w[1:], bounds, strict=True):
        inside = np.linspace(low, high, 40)
        moduli = np.abs(np.exp(1j * np.outer(inside, losses)) @ weights)
        assert float(np.max(moduli)) <= math.exp(bound) * (1 + 1e-9) + 1e-12


def test_transforms_of_a_crowd_are_those_of_its_nodes() -> None:
    parts = [(p, 20) for p in _sampled_gaussians()]
    engine = CompositionEngine(list(Product(pairs=parts).pairs))
    engine.epsilon(1e-6, 4e-4)
    assert engine._characteristic is not None
    tilted = Tilted(engine._characteristic, 0.01, SaddlePoint(tilt=2.0, sigma=0.3, up=3.0, down=3.0))
    for part in tilted.parts:
        hats, error = tilted.hats(part, 7, 50, 0.37)
        w = 0.37 * np.arange(7, 57)
        turned = np.exp(1j * part.centres[:, :, None] * w)
        direct = np.einsum("rn,rnf->rf", part.weights, turned)
        assert np.all(np.abs(hats - direct) <= error)


@pytest.mark.parametrize(("mu", "rate"), [(1.3, 0.01), (0.05, 0.5), (0.6, 0.99), (1.7, 1e-4), (0.3, 1.0)])
@pytest.mark.parametrize("swapped", [False, True])
def test_rounding_of_nodes_stays_below_its_bound(mu: float, rate: float, swapped: bool) -> None:
    """The same rule in 200 bits, on a grid twice as fine, against the floats and the error they claim."""
    from flint import acb, arb, ctx

    base = DiscreteGaussianPair(noise_std=1 / mu) if rate == 1 else GaussianPair(mu=mu)
    pair = base if rate == 1 else PoissonSampledPair(pair=base, rate=rate)
    nodes = quadrature_of(
        [(pair.swapped() if swapped else pair, 1)], QuadratureRange(low=-2.0, high=6.0, frequency=40.0)
    )
    assert nodes is not None
    before = ctx.prec
    ctx.prec = 200
    try:
        step = arb(1) if rate == 1 else arb(1) / 64
        exact = arb(base.noise_std) if isinstance(base, DiscreteGaussianPair) else 1 / arb(base.near)
        scale = exact if rate == 1 else arb(1)
        reach = int(24 / float(step) * float(scale))
        x = [k * step / scale for k in range(-reach, reach + 1)]
        q = [(-(v * v) / 2).exp() for v in x]
        whole = sum(q, arb(0))
        logs = [(1 + arb(rate) * ((v / exact - 1 / (2 * exact * exact)).exp() - 1)).log() for v in x]
        for tilt, w in [(0.0, 0.0), (0.0, 25.0), (2.5, 3.0), (5.0, 40.0), (-1.5, 10.0)]:
            power = -acb(tilt, w) if swapped else acb(tilt + 1, w)
            true = sum((m * (power * v).exp() for m, v in zip(q, logs, strict=True)), acb(0)) / whole
            log_a, weights, blur = nodes.tilted(tilt)
            hat = np.sum(weights[0] * np.exp(1j * w * nodes.losses[0])) * math.exp(log_a[0])
            claimed = math.exp(log_a[0]) * (blur[0, 0] + w * blur[1, 0] + 1e-14) + float(nodes.error[0])
            distance = abs(complex(true) - complex(hat))
            assert distance <= claimed
            assert claimed < 1e-11 * max(1.0, math.exp(log_a[0]))
    finally:
        ctx.prec = before


@pytest.mark.slow
@pytest.mark.parametrize("discrete", [False, True])
def test_ten_thousand_different_releases_are_enclosed(discrete: bool) -> None:
    draw = np.random.default_rng(1)
    rows = zip(draw.uniform(1, 5, 10_000), draw.uniform(1e-3, 0.05, 10_000), strict=True)
    sampled = [
        PoissonSampledEvent(event=GaussianEvent(noise_multiplier=float(m)), sampling_rate=float(q))
        for m, q in rows
    ]
    integer = [DiscreteGaussianEvent(noise_multiplier=float(m)) for m in draw.uniform(50, 500, 10_000)]
    found = account(integer if discrete else sampled, delta=1e-6)
    assert found.epsilon.width < 1e-3
    twice = account([RepeatedEvent(event=e, times=2) for e in (integer if discrete else sampled)], delta=1e-6)
    assert twice.epsilon.low > found.epsilon.high
