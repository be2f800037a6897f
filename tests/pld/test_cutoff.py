"""Frequencies shown negligible are so: bounds against transforms from the definition, compositions of atoms
against the grid of losses and against binomial sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from tacit.accounting import account
from tacit.accounting.events import (
    PoissonSampledEvent,
    RandomizedResponseEvent,
    RepeatedEvent,
    TabulatedEvent,
)
from tacit.exact.arrays import Floats
from tacit.pld import (
    ApproximatePair,
    DiscreteGaussianPair,
    DiscreteLaplacePair,
    FinitePair,
    GaussianPair,
    LaplacePair,
    Pair,
    PoissonSampledPair,
    RandomizedResponsePair,
    StaircasePair,
)
from tacit.pld.characteristic import CharacteristicComposition
from tacit.pld.engine import CompositionEngine
from tacit.pld.product import Product
from tacit.pld.quadrature import QuadratureRange, quadrature_of
from tacit.pld.transforms import GONE, SMOOTHED, SaddlePoint, Tilted, TransformWitness, alive, part_bound

_REACH = QuadratureRange(low=-1.0, high=6.0, frequency=1e4, listed=True)
_TILT = 2.3
_SIX = (0.3, 0.25, 0.2, 0.1, 0.1, 0.05), (0.05, 0.3, 0.1, 0.2, 0.15, 0.2)


def _law(pair: Pair) -> tuple[Floats, Floats]:
    """Outcomes' probabilities under P and Q, from the definition of each mechanism."""
    if isinstance(pair, FinitePair):
        return np.array(_SIX[0]), np.array(_SIX[1])
    if isinstance(pair, RandomizedResponsePair):
        p = np.array([math.exp(pair.epsilon), 1.0, *[1.0] * (pair.categories - 2)])
        return p / p.sum(), np.array([p[1], p[0], *p[2:]]) / p.sum()
    k = np.arange(-90.0, 91.0)
    if isinstance(pair, DiscreteLaplacePair):
        p, q = np.exp(-pair.rate * abs(k - pair.sensitivity)), np.exp(-pair.rate * abs(k))
    else:
        assert isinstance(pair, DiscreteGaussianPair)
        spread = 2 * pair.noise_std**2
        p, q = np.exp(-((k - 1) ** 2) / spread), np.exp(-(k**2) / spread)
    return p / p.sum(), q / q.sum()


_PAIRS: list[Pair] = [
    FinitePair(p=_SIX[0], q=_SIX[1]),
    RandomizedResponsePair(epsilon=0.8),
    RandomizedResponsePair(epsilon=1.5, categories=5),
    DiscreteLaplacePair(rate=0.9, sensitivity=3),
    DiscreteGaussianPair(noise_std=4.0),
]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("rate", [1.0, 0.2, 0.01])
@pytest.mark.parametrize("pair", _PAIRS, ids=lambda p: type(p).__name__)
def test_transforms_of_atoms_stay_below_their_bound(pair: Pair, rate: float, swapped: bool) -> None:
    p, q = _law(pair)
    p = (1 - rate) * q + rate * p
    losses = np.log(p / q)
    weights = q * np.exp(-_TILT * losses) if swapped else p * np.exp(_TILT * losses)
    weights /= weights.sum()
    whole = PoissonSampledPair(pair=pair, rate=rate) if rate < 1 else pair
    nodes = quadrature_of([(whole.swapped() if swapped else whole, 1)], _REACH)
    assert nodes is not None
    witness = TransformWitness(nodes, _TILT)
    draw = np.random.default_rng(11)
    scale = 1 / (losses.max() - losses.min())
    low = np.exp(draw.uniform(math.log(0.1), math.log(300), 150)) * scale
    high = low + np.exp(draw.uniform(math.log(1e-3), math.log(2), 150)) * scale
    bounds = witness.log_moduli(low, high)[0]
    w = np.linspace(low, high, 41)
    moduli = np.max(np.abs(np.exp(1j * w[:, :, None] * losses) @ weights), axis=0)
    assert np.all(moduli <= np.exp(bounds) * (1 + 1e-9) + 1e-12)
    if not isinstance(pair, DiscreteGaussianPair) or rate < 1:
        # And the bound says something: on short intervals it is the modulus itself.
        exact = np.abs(np.exp(1j * low[:, None] * losses) @ weights)
        assert np.all(np.exp(witness.log_moduli(low, low)[0]) <= exact + 2e-5)


def _different(number: int) -> Floats:
    return np.linspace(0.01, 0.05, number)


def _equal(number: int) -> Floats:
    return np.full(number, 0.03)


def _two(number: int) -> Floats:
    return np.where(np.arange(number) % 2 == 0, 0.03, 0.03 * math.sqrt(2))


@pytest.mark.parametrize("epsilons", [_different, _equal, _two])
def test_what_is_called_negligible_is_so(epsilons: Callable[[int], Floats]) -> None:
    """All multiples of the gap, one by one: cos(w e) is near 1 in modulus at multiples of pi/e."""
    values, count, gap, spread = epsilons(400), 25, 0.3, 0.004
    parts = [(RandomizedResponsePair(epsilon=float(e)), count) for e in values]
    nodes = quadrature_of(parts[::2] + parts[1::2], _REACH)
    assert nodes is not None
    witness = TransformWitness(nodes, 1.0)
    last = math.sqrt(2 * SMOOTHED) / spread
    kept, dropped = alive(
        start=3.0,
        last=last,
        gap=gap,
        variance=spread**2,
        coarse=lambda w: (np.zeros(len(w) - 1), np.zeros(len(w) - 1)),
        witnesses=[witness],
    )
    assert kept is not None
    w = gap * np.arange(math.ceil(last / gap) + 1)
    share = np.exp(2 * values) / (1 + np.exp(2 * values))
    modulus = np.abs(share + (1 - share) * np.exp(-2j * np.outer(w, values)))
    logs = count * np.sum(np.log(np.maximum(modulus, 1e-300)), axis=1) - spread**2 * w * w / 2
    rest = np.ones(len(w), dtype=bool)
    rest[: len(kept)] = ~kept
    assert np.all(logs[rest] <= -GONE + 1e-9)
    assert 2 * float(np.sum(np.exp(logs[rest]))) <= dropped
    near = np.array([round(math.pi * k / 0.03 / gap) for k in range(1, 20)])
    holes = [bool(kept[k]) for k in near if k < len(kept)]
    assert all(holes) if epsilons is _equal else True
    assert int(kept.sum()) < (100 if epsilons is _different else 4000)


def _atoms(number: int) -> list[tuple[Pair, int]]:
    draw = np.random.default_rng(3)
    out: list[Pair] = []
    for i, e in enumerate(draw.uniform(0.02, 0.1, number)):
        size, x = float(10 * e), float(e)
        table = FinitePair(p=[0.5 + x, 0.3, 0.2 - x], q=[0.5, 0.3, 0.2])
        bases: list[Pair] = [
            table,
            RandomizedResponsePair(epsilon=x),
            StaircasePair(epsilon=x, gamma=0.4),
            ApproximatePair(epsilon=x, delta=1e-11),
            PoissonSampledPair(pair=RandomizedResponsePair(epsilon=size, categories=3), rate=0.05),
            PoissonSampledPair(pair=DiscreteLaplacePair(rate=size, sensitivity=2), rate=0.04),
            PoissonSampledPair(pair=table, rate=0.3).swapped(),
            PoissonSampledPair(pair=ApproximatePair(epsilon=size, delta=1e-9), rate=0.02),
            PoissonSampledPair(pair=DiscreteGaussianPair(noise_std=1 + 20 * x), rate=0.05),
            PoissonSampledPair(pair=LaplacePair(epsilon=size), rate=0.05),
        ]
        out.append(bases[i % len(bases)])
    return [(pair, 10 + i % 3) for i, pair in enumerate(out)]


@pytest.mark.parametrize("swapped", [False, True])
def test_mixed_transforms_agree_with_the_grid(swapped: bool) -> None:
    product = Product(pairs=_atoms(400))
    if swapped:
        product = product.swapped()
    transform, grid = CompositionEngine(list(product.pairs)), CompositionEngine(list(product.pairs))
    grid._characteristic = None
    found, known = transform.epsilon(1e-6, 2e-4), grid.epsilon(1e-6, 2e-3)
    assert transform._characteristic is not None, "the transform gave up"
    assert found.width <= 3e-4
    assert max(found.low, known.low) <= min(found.high, known.high)
    at, other = transform.delta(found.high, 1e-3), grid.delta(found.high, 1e-2)
    assert max(at.low, other.low) <= min(at.high, other.high)


def _binomial(epsilon: float, trials: int, target: float) -> float:
    """delta of repeated randomised response, summed in floats from the definition (to about 1e-9 of itself)."""
    heads = np.arange(trials + 1)
    logs = [math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1) for k in heads]
    weights = np.exp(np.array(logs) + heads * epsilon - trials * math.log1p(math.exp(epsilon)))
    return float(np.sum(weights * np.maximum(-np.expm1(target - (2 * heads - trials) * epsilon), 0.0)))


@pytest.mark.parametrize(("epsilon", "count"), [(0.02, 20), (0.3, 3)])
def test_releases_that_differ_in_the_ninth_digit_are_a_binomial(epsilon: float, count: int) -> None:
    """Losses on what is nearly a lattice: its multiples stay alive, and are computed or left to the grid."""
    values = epsilon * (1 + 1e-9 * np.arange(300))
    engine = CompositionEngine([(RandomizedResponsePair(epsilon=float(e)), count) for e in values])
    found = engine.epsilon(1e-6, 2e-4)
    assert found.width <= 3e-4 * max(1.0, found.high / 10)
    assert _binomial(float(values[0]), 300 * count, found.high) <= 1e-6 * (1 + 1e-6)
    assert _binomial(float(values[-1]), 300 * count, found.low) >= 1e-6 * (1 - 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("tabulated", [False, True])
def test_many_near_releases_are_one_repeated(tabulated: bool, sampled: bool) -> None:
    number = 600  # more than two arrays hold

    def made(i: int) -> TabulatedEvent | RandomizedResponseEvent | PoissonSampledEvent:
        e = (0.15 if sampled else 0.02) * (1 + 1e-9 * i)
        event: TabulatedEvent | RandomizedResponseEvent = RandomizedResponseEvent(epsilon=e)
        if tabulated:
            event = TabulatedEvent(p=(0.5 + e, 0.3, 0.2 - e), q=(0.5, 0.3, 0.2))
        return PoissonSampledEvent(event=event, sampling_rate=0.1) if sampled else event

    found = account([made(i) for i in range(number)], delta=1e-6).epsilon
    first, last = (
        account([RepeatedEvent(event=made(i), times=number)], delta=1e-6).epsilon for i in (0, number - 1)
    )
    assert found.width <= 1e-3
    assert first.low <= found.high
    assert found.low <= last.high


def test_tables_are_normed_merged_and_swapped_exactly() -> None:
    draw = np.random.default_rng(2)
    for size in (2, 3, 6):
        p, q = (list(map(float, draw.dirichlet(np.ones(size)))) for _ in range(2))
        pair = FinitePair(p=[*p, 0.0], q=[*q, 0.0])
        whole = sum(map(Fraction, p))
        assert sorted(pair.p) == sorted(Fraction(x) / whole for x in p)
        assert pair.swapped() == FinitePair(p=q, q=p)
        assert hash(pair.swapped()) == hash(FinitePair(p=q, q=p))
        assert pair.swapped().swapped() == pair
        ratios = [a / b for a, b in zip(pair.p, pair.q, strict=True)]
        assert ratios == sorted(set(ratios))
        for loss, ratio in ((pair.largest_loss, ratios[-1]), (pair.smallest_loss, ratios[0])):
            assert loss.low <= math.log(ratio) <= loss.high
            assert loss.width < 1e-12
    merged = FinitePair(p=[0.25, 0.25, 0.5], q=[0.125, 0.125, 0.75])
    assert merged == FinitePair(p=[0.5, 0.5], q=[0.25, 0.75])
    ends = FinitePair(p=[0.0, 0.75, 0.25], q=[0.5, 0.5, 0.0])
    assert (ends.infinite_mass.low, ends.infinite_mass.high) == (0.25, 0.25)
    assert (ends.reverse_infinite_mass.low, ends.reverse_infinite_mass.high) == (0.5, 0.5)
    assert ends.atom_count == 1
    assert FinitePair(p=[0.3, 0.7], q=[0.7, 0.3]).symmetric
    assert not ends.symmetric


def test_tables_with_masses_below_the_floats_are_left_to_the_grid() -> None:
    tiny = Fraction(1, 10**330)
    for p, q in (((tiny, 1 - tiny), (0.25, 0.75)), ((0.25, 0.75), (tiny, 1 - tiny))):
        pair = FinitePair(p=p, q=q)
        assert pair.quadrature_key() is None
        assert PoissonSampledPair(pair=pair, rate=0.1).swapped().quadrature_key() is None
    assert FinitePair(p=(0.25, 0.75), q=(0.5, 0.5)).quadrature_key() is not None
    assert FinitePair(p=(0, 1), q=(1, 0)).quadrature_key() is not None


def _modulus(law: Floats, loss: Floats, frequency: float, last: float) -> float:
    """Of the transform. Sums over every 2^k-th point are as exact, as long as each turn has its two points."""
    every = min(64, 1 << int(math.log2(last / frequency)))
    law, turns = law[::every], frequency * loss[::every]
    return math.hypot(float(law @ np.cos(turns)), float(law @ np.sin(turns))) / float(law.sum())


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("tilt", [0.0, 1.5, 6.0])
def test_softened_moments_and_shares_stay_above_the_transforms(swapped: bool, tilt: float) -> None:
    """Sampled normal noise, little of it and much, against sums over 120,000 points, and over fewer
    where the frequency is lower: two points in each turn of the fastest, as at the highest."""
    parameters = [(1.6, 1e-4), (1.3, 9e-3), (1.0, 0.02), (0.7, 0.3), (0.2, 0.01), (0.05, 0.9)]
    x = np.linspace(-12, 24, 120_001)
    q = np.exp(-x * x / 2) * (36 / 120_000) / math.sqrt(2 * math.pi)
    w = 0.2 * 1.15 ** np.arange(75)
    middles = (w[:-1] + w[1:]) / 2
    inside = np.concatenate([w, middles])
    for mu, rate in parameters:
        pair: Pair = PoissonSampledPair(pair=GaussianPair(mu=mu), rate=rate)
        transform = CharacteristicComposition([(pair.swapped() if swapped else pair, 1)], exact=True)
        saddle = SaddlePoint(tilt=tilt, sigma=1.0, up=1.0, down=1.0)
        assert transform.prepare(saddle, 40.0)
        tilted = Tilted(transform, 0.01, saddle)
        part = tilted.parts[0]
        assert part.nodes.soft is not None
        bounds = part_bound(part.nodes, tilt, part.log_a, part.moments, part.off, tilted.disc, w)[0]
        loss = np.log1p(rate * np.expm1(mu * x - mu * mu / 2))
        law = q * np.exp(-tilt * loss) if swapped else q * np.exp((tilt + 1) * loss)
        law /= law.sum()
        found = np.array([_modulus(law, loss, v, w[-1]) for v in inside])
        ends = found[: len(w)]
        # Of each interval its two ends and the middle; neighbours share an end.
        moduli = np.stack([ends[:-1], found[len(w) :], ends[1:]], axis=1)
        assert np.all(np.max(moduli, axis=1) <= np.exp(bounds) + 1e-11)
        # They say something: most of the truth where noise is not little and the modulus still near 1.
        early = (np.min(moduli, axis=1) > 0.99) & (np.min(moduli, axis=1) < 0.99999)
        if mu < 1:
            assert np.all(bounds[early] <= np.log(np.max(moduli, axis=1)[early]) / 2)


def test_releases_that_hardly_reveal_anything_cost_nothing() -> None:
    """Total variations add: below delta, epsilon is 0, however many different parts there are."""
    parts: list[tuple[Pair, int]] = [
        (PoissonSampledPair(pair=GaussianPair(mu=float(m)), rate=1e-12), 1)
        for m in np.linspace(1e-6, 1e-5, 300)
    ]
    engine = CompositionEngine(list(Product(pairs=parts).pairs))
    spread = sum(1e-12 * math.erf(m / math.sqrt(8)) for m in np.linspace(1e-6, 1e-5, 300))
    assert engine._at_zero() == pytest.approx(spread, rel=1e-6)
    assert engine.epsilon(1e-6, 1e-3).high == 0
    assert engine.epsilon(spread * 0.99, 1e-3).high > 0
