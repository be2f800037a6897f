"""Statements of laws from their definitions: adaptive divergences, Gaussian curves, replacements, random data."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import tacit
from support import independent as second
from tacit.guarantees import Neighbours
from tacit.random_data import observed_range_delta

ORDERS = (1.5, 2.0, 3.0, 8.0)


def tables(seed: int, size: int = 3) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    return tuple(draw.dirichlet(np.full(size, 4.0), size=2))  # type: ignore[return-value]


def adaptive(first: tuple, then: list[tuple]) -> tuple[list[float], list[float]]:
    """The joint laws where the second mechanism is chosen by what the first one said."""
    return tuple(
        [p * r for p, pair in zip(first[side], then, strict=True) for r in pair[side]] for side in (0, 1)
    )  # type: ignore[return-value]


@pytest.mark.parametrize("seed", range(8))
def test_divergences_and_rhos_add_also_adaptively(seed: int) -> None:
    """compose-renyi and compose-zcdp: after each answer another table, both within the stated bound."""
    first, then = tables(seed), [tables(100 * seed + i) for i in range(3)]
    joint = adaptive(first, then)
    for p, q in (joint, joint[::-1]):
        reversed_ = p is joint[1]
        one = first[::-1] if reversed_ else first
        rest = [t[::-1] if reversed_ else t for t in then]
        parts = [
            tacit.Renyi(
                orders=ORDERS, epsilons=tuple(max(second.renyi(a, b, o) for a, b in some) for o in ORDERS)
            )
            for some in ([one], rest)
        ]
        composed = tacit.compose(*parts)
        rho = sum(max(part.renyi(o) / o for o in ORDERS) for part in parts)
        told = tacit.compose(
            *(tacit.Concentrated(rho=max(part.renyi(o) / o for o in ORDERS)) for part in parts)
        )
        for order in ORDERS:
            found = second.renyi(p, q, order)
            assert found <= composed.renyi(order) * (1 + 1e-12)
            assert found <= told.renyi(order) * (1 + 1e-12)
        assert float(told.rho) == pytest.approx(rho, rel=1e-12)  # type: ignore[attr-defined]
        # not adaptive, and alike in all answers: nothing is lost
        plain = adaptive(one, [rest[0]] * 3)
        for order in ORDERS:
            alone = second.renyi(*one, order) + second.renyi(*rest[0], order)
            assert second.renyi(*plain, order) == pytest.approx(alone, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 3.0])
def test_the_smallest_mu_of_a_pure_epsilon(epsilon: float) -> None:
    """pure-to-gdp: randomised response, the worst of all, lies below the Gaussian curve and touches it."""
    p, q = second.randomized_response(epsilon)
    mu = tacit.convert(tacit.Pure(epsilon=epsilon), tacit.GaussianDP).mu
    at = np.linspace(0, epsilon * 1.1, 60)

    def above(mu: float) -> bool:
        curve = tacit.GaussianDP(mu=mu)
        return all(curve.delta(float(e)) >= second.both(p, q, float(e)) * (1 - 1e-9) - 1e-15 for e in at)

    assert above(mu)
    assert not above(mu * 0.999)


@pytest.mark.parametrize("mu", [0.2, 1.0, 2.5])
def test_gaussian_noise_by_integration(mu: float) -> None:
    """gaussian-profile in one and two dimensions, and gdp-to-zcdp: densities on a fine grid, moved by a vector of this
    length in whatever direction."""
    bound = tacit.GaussianDP(mu=mu)
    x = np.linspace(-12, 12 + 8 * mu, 80_001)
    step = x[1] - x[0]
    logs = [-((x - m) ** 2) / 2 - math.log(2 * math.pi) / 2 for m in (mu, 0.0)]
    p, q = np.exp(logs[0]), np.exp(logs[1])
    for e in (-0.5, 0.0, 0.3, 1.0, 2.0):
        found = float(np.maximum(p - math.exp(e) * q, 0).sum() * step)
        if e >= 0:
            assert bound.delta(e) == pytest.approx(found, rel=1e-4, abs=1e-9)
    rho = tacit.convert(bound, tacit.Concentrated).rho
    for order in ORDERS:
        both = order * logs[0] + (1 - order) * logs[1]
        top = float(both.max())
        integral = (top + math.log(float(np.exp(both - top).sum() * step))) / (order - 1)
        assert order * float(rho) == pytest.approx(integral, rel=1e-6)
    line = np.linspace(-8, 8 + mu, 900)
    a, b = np.meshgrid(line, line, indexing="ij")
    cell = (line[1] - line[0]) ** 2 / (2 * math.pi)
    for angle in (0.3, 1.1):
        u, v = mu * math.cos(angle), mu * math.sin(angle)
        here, there = np.exp(-((a - u) ** 2 + (b - v) ** 2) / 2), np.exp(-(a**2 + b**2) / 2)
        found = float(np.maximum(here - math.exp(0.4) * there, 0).sum() * cell)
        assert bound.delta(0.4) == pytest.approx(found, rel=2e-3, abs=1e-6)


def test_pointwise_is_enough_and_more_than_enough() -> None:
    """pointwise-to-approximate: a loss above epsilon with probability delta is (epsilon, delta); not the other way."""
    lost = 0
    for seed in range(60):
        p, q = tables(seed, 4)
        for epsilon in (0.1, 0.4, 0.9):
            loud = max(
                sum(a for a, b in zip(one, other, strict=True) if a > math.exp(epsilon) * b)
                for one, other in ((p, q), (q, p))
            )
            told = tacit.convert(
                tacit.guarantees.Pointwise(epsilon=epsilon, delta=min(loud, 0.999)), tacit.Approximate
            )
            smallest = second.both(p, q, epsilon)
            assert (
                smallest <= float(told.delta_at(epsilon) if hasattr(told, "delta_at") else told.delta) + 1e-12
            )
            lost += smallest < 0.5 * loud
    # (epsilon, delta) with a loss above epsilon far more often than delta
    assert lost > 20


def private(*laws: np.ndarray, epsilon: float) -> float:
    return max(second.both(a, b, epsilon) for a, b in itertools.permutations(laws, 2))


@pytest.mark.parametrize("seed", range(12))
def test_a_replacement_is_a_removal_and_an_addition(seed: int) -> None:
    """replace-by-remove-and-add: tables of nobody, of one value and of another, with the delta that they need."""
    draw = np.random.default_rng(seed)
    none, one, other = draw.dirichlet(np.full(3, 6.0), size=3)
    epsilon = 0.3
    delta = max(private(none, one, epsilon=epsilon), private(none, other, epsilon=epsilon))
    told = tacit.Guarantee(
        bound=tacit.Approximate(epsilon=epsilon, delta=delta),
        unit=tacit.rows(neighbours=Neighbours.ADD_OR_REMOVE),
    ).for_unit(tacit.rows(neighbours=Neighbours.REPLACE_ONE))
    assert private(one, other, epsilon=2 * epsilon) <= told.bound.delta(2 * epsilon) + 1e-12  # type: ignore[operator]


def test_what_fails_rarely_fails_rarely_together() -> None:
    """compose-random-data and replace-on-random-data: rows of ten values, a table that gives one of them away, another
    that gives away another; shares of failing data by counting, and no smaller gamma would do."""
    values, epsilon = 10, 0.2
    flat = np.full(3, 1 / 3)
    loud = np.array([0.98, 0.01, 0.01])

    def law(x: int | None, bad: int) -> np.ndarray:
        return loud if x == bad else flat

    def share(fails: list[bool]) -> float:
        return sum(fails) / len(fails)

    pairs = list(itertools.product(range(values), repeat=2))
    added = share([private(law(x, 0), flat, epsilon=epsilon) > 0 for x in range(values)])
    replaced = share([private(law(x, 0), law(y, 0), epsilon=2 * epsilon) > 0 for x, y in pairs])
    bound = tacit.Pure(epsilon=epsilon)
    drawn = tacit.Guarantee(
        bound=bound,
        unit=tacit.rows(neighbours=Neighbours.ADD_OR_REMOVE),
        condition=tacit.guarantees.RandomData(gamma=added),
    )
    told = drawn.for_unit(tacit.rows(neighbours=Neighbours.REPLACE_ONE))
    assert added == 0.1
    assert added < replaced <= told.condition.gamma == pytest.approx(2 * added)  # type: ignore[union-attr]
    both = share(
        [
            private(np.outer(law(x, 0), law(x, 1)).ravel(), np.outer(flat, flat).ravel(), epsilon=2 * epsilon)
            > 0
            for x in range(values)
        ]
    )
    composed = tacit.compose(drawn, drawn, adaptive=False)
    assert both == pytest.approx(2 * added)
    assert both <= composed.condition.gamma == pytest.approx(2 * added)  # type: ignore[union-attr]
    assert composed.bound.epsilon == pytest.approx(2 * epsilon)  # type: ignore[union-attr]


def test_an_observed_range_by_integration() -> None:
    """random-observed-range: Laplace noise around both means, each with the range of its own data, on a fine grid."""
    rows = [0.0, 1.0, 2.0, 5.0]
    for replaced in (3.0, 9.0, 40.0):
        other = [*rows[:-1], replaced]
        for epsilon in (0.5, 1.0):
            # mean + Laplace noise of scale (max - min) / (n epsilon), each with its own data
            laws, found = [], observed_range_delta(rows, replaced=replaced, epsilon=epsilon)
            x = np.linspace(-300, 300, 1_200_001)
            for some in (rows, other):
                scale = (max(some) - min(some)) / (4 * epsilon)
                laws.append(np.exp(-np.abs(x - sum(some) / 4) / scale) / (2 * scale))
            true = max(
                float(np.maximum(a - math.exp(epsilon) * b, 0).sum() * (x[1] - x[0]))
                for a, b in (laws, laws[::-1])
            )
            assert float(found) == pytest.approx(true, abs=2e-4)
