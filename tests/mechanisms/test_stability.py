"""The stability threshold's delta against the definition: product laws of small tables, summed outcome by outcome."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tacit.accounting import account
from tacit.errors import InvalidParameter
from tacit.mechanisms import L1, L2, Gaussian, KeysOfAUnit, Laplace, StableHistogram
from tacit.noise import SeededSource

HIDDEN = None


def middle(pair: tuple[float, float]) -> float:
    return (pair[0] + pair[1]) / 2


def cell_law(mechanism: StableHistogram, count: int, reach: int) -> dict[int | None, float]:
    """Outcomes of one cell: not shown, or a noisy count above the threshold. The tail is one outcome."""
    if count == 0:
        return {HIDDEN: 1.0}
    t, law = mechanism.threshold, mechanism.noise.distribution
    shown = {v: middle(law.probability(v - count)) for v in range(t + 1, t + reach)}
    shown[t + reach] = middle(law.survival(t + reach - count))
    return {HIDDEN: 1 - middle(law.survival(t + 1 - count)), **shown}


def divergence(mechanism: StableHistogram, left, right, epsilon: float, reach: int = 12) -> float:
    """sum over outcomes of (P - e^epsilon Q)+ for tables with these counts a cell."""
    laws = [
        (cell_law(mechanism, a, reach), cell_law(mechanism, b, reach))
        for a, b in zip(left, right, strict=True)
    ]
    supports = [sorted({*p, *q}, key=lambda v: -1 if v is None else v) for p, q in laws]
    total = 0.0
    for outcome in itertools.product(*supports):
        p = math.prod(law[0].get(v, 0.0) for law, v in zip(laws, outcome, strict=True))
        q = math.prod(law[1].get(v, 0.0) for law, v in zip(laws, outcome, strict=True))
        total += max(0.0, p - math.exp(epsilon) * q)
    return total


def contributions(unit: KeysOfAUnit, cells: int):
    """All that one unit can add to these cells."""
    for v in itertools.product(range(unit.each + 1), repeat=cells):
        if sum(v) <= unit.total and sum(x > 0 for x in v) <= unit.keys:
            yield v


UNITS = [
    (KeysOfAUnit(), 2),
    (KeysOfAUnit(keys=2), 2),
    (KeysOfAUnit(keys=3), 3),
    (KeysOfAUnit(keys=2, each=3, total=3), 2),
    (KeysOfAUnit(keys=3, each=2, total=4), 3),
]


@pytest.mark.parametrize(("unit", "cells"), UNITS)
@pytest.mark.parametrize("replace", [False, True])
def test_delta_is_an_upper_bound_and_reached(unit, cells, replace) -> None:
    """Both orders of all neighbours with common counts 0, 1 and 4 in each cell."""
    twice = 2 if replace else 1
    noise = Laplace(sensitivity=L1(twice * unit.total), noise_scale=1.5)
    mechanism = StableHistogram(noise=noise, threshold=5, unit=unit)
    epsilon, delta = float(mechanism.bound.epsilon), mechanism.bound.delta
    worst = 0.0
    moves = list(contributions(unit, cells))
    reach = 12 if cells == 2 else 5
    for base in itertools.product((0, 4), repeat=cells):
        for here in moves:
            for there in moves if replace and cells == 2 else [(0,) * cells]:
                left = [b + x for b, x in zip(base, here, strict=True)]
                right = [b + x for b, x in zip(base, there, strict=True)]
                for a, b in ((left, right), (right, left)):
                    worst = max(worst, divergence(mechanism, a, b, epsilon, reach))
    assert worst <= delta * (1 + 1e-9)
    assert worst >= delta * (1 - 1e-9)


def test_one_key_in_closed_form() -> None:
    """Pr[1 + Z > t] = q^t / (1 + q)."""
    for t in (1, 5, 14):
        mechanism = StableHistogram(noise=Laplace(sensitivity=L1(1), noise_scale=1), threshold=t)
        assert mechanism.key_delta == pytest.approx(math.exp(-t) / (1 + math.exp(-1)), rel=1e-12)
    best = StableHistogram.for_target(epsilon=1, delta=1e-6, sensitivity=L1(1))
    assert best.threshold == 14
    assert StableHistogram(noise=best.noise, threshold=13).key_delta > 1e-6 >= best.key_delta


def test_worst_way_to_use_keys_by_brute_force() -> None:
    """Over all ways to put at most `total` into at most `keys` cells."""
    for keys, each, total in itertools.product((1, 2, 3, 4), (1, 2, 4, 5), (1, 3, 5, 6)):
        unit = KeysOfAUnit(keys=keys, each=each, total=total)
        for scale in (0.7, 3.0):
            noise = Laplace(sensitivity=L1(unit.total), noise_scale=scale)
            mechanism = StableHistogram(noise=noise, threshold=6, unit=unit)
            chance = [0.0] + [middle(noise.distribution.survival(7 - v)) for v in range(1, each + 1)]
            brute = max(1 - math.prod(1 - chance[x] for x in v) for v in contributions(unit, keys))
            assert mechanism.key_delta == pytest.approx(brute, rel=1e-9)


def test_gaussian_noise_adds_its_own_curve() -> None:
    unit = KeysOfAUnit(keys=2)
    mechanism = StableHistogram.for_target(epsilon=1, delta=1e-4, sensitivity=L2.root(2), unit=unit)
    assert mechanism.bound.delta <= 1e-4
    assert (
        StableHistogram(
            noise=mechanism.noise, threshold=mechanism.threshold - 1, unit=unit, epsilon=1
        ).bound.delta
        > 1e-4
    )
    small = StableHistogram(
        noise=Gaussian(sensitivity=L2.root(2), noise_std=2, dimension=9), threshold=4, unit=unit, epsilon=0.5
    )
    for base in ((0, 0), (0, 3), (3, 3)):
        for move in ((1, 0), (0, 1), (1, 1)):
            left = [b + x for b, x in zip(base, move, strict=True)]
            for a, b in ((left, base), (base, left)):
                assert divergence(small, a, b, 0.5) <= small.bound.delta


@pytest.mark.parametrize("epsilon", [0.1, 0.4, 0.8, 1.2, 2.0])
def test_event_dominates_at_every_epsilon(epsilon) -> None:
    """The noise composed with (0, d) is above the mechanism's own curve, also below its stated epsilon."""
    unit = KeysOfAUnit(keys=2)
    mechanism = StableHistogram(noise=Laplace(sensitivity=L1(2), noise_scale=2), threshold=5, unit=unit)
    stated = account(mechanism.event, epsilon=epsilon, neighbours="add-or-remove").delta.high
    worst = 0.0
    for base in itertools.product((0, 4), repeat=2):
        for move in ((1, 0), (0, 1), (1, 1)):
            left = [b + x for b, x in zip(base, move, strict=True)]
            for a, b in ((left, base), (base, left)):
                worst = max(worst, divergence(mechanism, a, b, epsilon, 25))
    assert worst <= stated * (1 + 1e-9)


def test_release() -> None:
    mechanism = StableHistogram.for_target(epsilon=1, delta=1e-6, sensitivity=L1(1))
    out = mechanism.release(np.array([1, 100, 1, 200]), source=SeededSource(seed=1))
    assert out.positions.tolist() == [1, 3]
    assert (out.values > mechanism.threshold).all()
    assert not out.publishable
    assert mechanism.showing(100) > 0.99 > 1e-6 > mechanism.showing(1)
    assert mechanism.release([], source=SeededSource(seed=1)).values.size == 0
    assert mechanism.cell_error(1) == pytest.approx(1.0, abs=1e-4)
    assert mechanism.expected_error(occupied=3) >= 3 * mechanism.cell_error(mechanism.threshold)


@pytest.mark.parametrize(
    "change",
    [
        {"threshold": 0},
        {"threshold": 1.5},
        {"unit": 3},
        {"noise": 1},
        {"epsilon": 1.0},
        {"noise": Gaussian(sensitivity=L2(1), noise_std=2)},
        {"unit": KeysOfAUnit(keys=2)},
        {"unit": KeysOfAUnit(each=2)},
        {"noise": Gaussian(sensitivity=L2(1), noise_std=2), "epsilon": 1, "unit": KeysOfAUnit(keys=2)},
    ],
)
def test_bad_mechanisms(change) -> None:
    with pytest.raises(InvalidParameter):
        StableHistogram(**{"noise": Laplace(sensitivity=L1(1), noise_scale=1), "threshold": 5, **change})


def test_bad_units_and_tables() -> None:
    for bad in ({"keys": 0}, {"each": 0}, {"total": 0}, {"keys": 1.5}):
        with pytest.raises(InvalidParameter):
            KeysOfAUnit(**bad)
    mechanism = StableHistogram(noise=Laplace(sensitivity=L1(1), noise_scale=1), threshold=5)
    for counts in ([0, 1], [-1], [1.5], [[1]]):
        with pytest.raises(InvalidParameter):
            mechanism.release(counts)
