"""The grid engine against exact compositions: closed forms, enumeration in rationals, double integrals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.pld import (
    ConcentratedPair,
    DiscreteLaplacePair,
    ExponentialPair,
    FinitePair,
    GaussianPair,
    LaplacePair,
    Pair,
    PoissonSampledPair,
    Product,
    RandomizedResponsePair,
    SwappedPair,
)
from tacit.pld.engine import CompositionEngine

SAMPLED = PoissonSampledPair(pair=GaussianPair(mu=1.0), rate=0.01)


def gaussian_on_the_grid(mu: float) -> Pair:
    """A Gaussian pair that products do not merge, so that the engine has to compose it."""
    return SwappedPair(pair=GaussianPair(mu=mu))


# --- what the accountant must reach (delta = 1e-6) ------------------------------------------------------
MIXED = [(LaplacePair(epsilon=float(e)), 1) for e in np.linspace(0.01, 0.2, 50)] + [
    (GaussianPair(mu=1 / float(m)), 1) for m in np.linspace(5, 50, 50)
]
REACHED = [
    ([(GaussianPair(mu=1 / 30), 1000)], 5.18904),
    ([(SAMPLED, 10_000)], 6.90738),
    ([(LaplacePair(epsilon=0.1), 200)], 7.06051),
    (MIXED, 4.39605),
]


@pytest.mark.parametrize(("pairs", "expected"), REACHED, ids=["gaussian", "sampled", "laplace", "mixed"])
def test_values_to_reach(pairs: list[tuple[Pair, int]], expected: float) -> None:
    product = Product(pairs=pairs)
    found = max((product.epsilon(1e-6), product.swapped().epsilon(1e-6)), key=lambda i: i.high)
    assert found.width <= 1e-3
    assert found.low <= expected + 5e-6
    assert found.high >= expected - 5e-6


# --- closed forms ---------------------------------------------------------------------------------------
@settings(max_examples=30, deadline=None)
@given(
    st.floats(-3, 0.5).map(lambda x: 10**x),
    st.integers(2, 3000),
    st.one_of(st.floats(-12, -0.5), st.floats(-200, -2)).map(lambda x: 10**x),
    st.floats(0.3, 1.3),
)
def test_gaussians_on_the_grid_enclose_the_closed_form(mu: float, n: int, delta: float, share: float) -> None:
    if mu * math.sqrt(n) > 20:
        return
    exact, grid = Product.of(GaussianPair(mu=mu), n), Product.of(gaussian_on_the_grid(mu), n)
    truth, found = exact.epsilon(delta), grid.epsilon(delta)
    assert found.low <= truth.high
    assert found.high >= truth.low
    assert found.width <= 1e-3 * max(1.0, truth.high / 10)
    truth, found = exact.delta(truth.high * share), grid.delta(truth.high * share)
    assert found.low <= truth.high
    assert found.high >= truth.low


def test_randomised_response_is_the_optimal_composition() -> None:
    """Kairouz, Oh, Viswanath 2015: a binomial sum."""
    n, epsilon = 60, 0.2
    p = Fraction(math.exp(epsilon)) / (1 + Fraction(math.exp(epsilon)))
    for target in (0.5, 2.0, 5.0):
        exact = sum(
            math.comb(n, k)
            * max(
                0.0, float(p**k * (1 - p) ** (n - k)) - math.exp(target) * float((1 - p) ** k * p ** (n - k))
            )
            for k in range(n + 1)
        )
        found = CompositionEngine([(RandomizedResponsePair(epsilon=epsilon), n)]).delta(target, 1e-4)
        assert found.low <= exact * (1 + 1e-12)
        assert found.high >= exact * (1 - 1e-12)
        assert found.width <= 0.02 * exact


# --- enumeration ----------------------------------------------------------------------------------------
def enumerated(rows: list[tuple[list[Fraction], list[Fraction]]], t: Fraction) -> Fraction:
    total = Fraction(0)
    for outcome in itertools.product(*(range(len(p)) for p, _ in rows)):
        a = math.prod((p[k] for (p, _), k in zip(rows, outcome, strict=True)), start=Fraction(1))
        b = math.prod((q[k] for (_, q), k in zip(rows, outcome, strict=True)), start=Fraction(1))
        total += max(a - t * b, Fraction(0))
    return total


weights = st.lists(st.integers(0, 9), min_size=2, max_size=3).filter(lambda w: sum(w) > 0)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(weights, weights), min_size=2, max_size=5), st.floats(-2, 3))
def test_tables_on_the_grid_enclose_the_enumeration(
    tables: list[tuple[list[int], list[int]]], e: float
) -> None:
    rows = []
    for left, right in tables:
        size = min(len(left), len(right))
        p, q = left[:size], right[:size]
        if sum(p) == 0 or sum(q) == 0:
            return
        rows.append(([Fraction(v, sum(p)) for v in p], [Fraction(v, sum(q)) for v in q]))
    pairs = Product(pairs=[(FinitePair(p=p, q=q), 1) for p, q in rows]).pairs
    if any(pair.infinite_mass.low == 1 for pair, _ in pairs):
        return
    truth = float(enumerated(rows, Fraction(math.exp(e))))
    found = CompositionEngine(list(pairs)).delta(e, 1e-2)
    assert found.low <= truth + 1e-12
    assert found.high >= truth - 1e-12


# --- double integrals -----------------------------------------------------------------------------------
def test_two_sampled_gaussians_by_integration() -> None:
    """H_e of the product over the plane, by the midpoint rule, for two different sampled Gaussians."""
    x = np.linspace(-9, 11, 2001)
    x = (x[1:] + x[:-1]) / 2
    h = x[1] - x[0]
    q = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    laws = [(0.3, 1.0), (0.1, 1.7)]
    ps = [(1 - r) * q + r * np.exp(-((x - m) ** 2) / 2) / math.sqrt(2 * math.pi) for r, m in laws]
    product = Product(pairs=[(PoissonSampledPair(pair=GaussianPair(mu=m), rate=r), 1) for r, m in laws])
    for e in (0.0, 0.4, 1.5):
        for forward in (True, False):
            a, b = np.outer(ps[0], ps[1]), np.outer(q, q)
            first, second = (a, b) if forward else (b, a)
            truth = float(np.maximum(first - math.exp(e) * second, 0).sum() * h * h)
            found = (product if forward else product.swapped()).delta(e)
            assert found.low <= truth + 3e-6
            assert found.high >= truth - 3e-6
            assert found.width <= 0.02 * found.high + 1e-6


def test_the_exponential_pair_composes_below_pure_and_above_its_two_point_mechanisms() -> None:
    high = Product.of(ExponentialPair(epsilon=0.2), 50).epsilon(1e-6).high
    assert high < Product.of(RandomizedResponsePair(epsilon=0.2), 50).epsilon(1e-6).low
    # The symmetric two-point mechanism of range 0.2 is randomised response with 0.1.
    assert high > Product.of(RandomizedResponsePair(epsilon=0.1), 50).epsilon(1e-6).low


def test_curves_compose_above_what_they_bound() -> None:
    """100 Gaussians of rho 0.001, known only as concentrated: above the exact, below a loose sum."""
    high = Product.of(ConcentratedPair(rho=0.001), 100).epsilon(1e-6).high
    exact = Product.of(GaussianPair(mu=math.sqrt(0.002)), 100).epsilon(1e-6).low
    assert exact < high < 1.5 * exact


# --- laws of the product --------------------------------------------------------------------------------
def test_order_and_grouping_do_not_matter() -> None:
    a, b, c = (
        Product.of(SAMPLED, 3),
        Product.of(LaplacePair(epsilon=0.1), 2),
        Product.of(GaussianPair(mu=0.3)),
    )
    assert a.compose(b).compose(c) == a.compose(b.compose(c)) == c.compose(b, a)
    assert a.repeat(4) == Product.of(SAMPLED, 12) == a.compose(a, a, a)
    assert a.compose(b).epsilon(1e-5) == b.compose(a).epsilon(1e-5)


def test_monotone_in_every_part() -> None:
    few, many = Product.of(LaplacePair(epsilon=0.1), 50), Product.of(LaplacePair(epsilon=0.1), 60)
    assert few.epsilon(1e-6).low <= many.epsilon(1e-6).high
    more = few.compose(Product.of(SAMPLED))
    assert few.delta(1.0).low <= more.delta(1.0).high


# --- sizes ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("pairs", "low", "high"),
    [
        ([(LaplacePair(epsilon=1e-3), 10**6)], 4.884, 4.887),
        ([(LaplacePair(epsilon=1e-5), 10**9)], 1.366, 1.369),
        ([(DiscreteLaplacePair(rate=1e-3), 10**6)], 4.88, 4.89),
        ([(LaplacePair(epsilon=0.001 + 1e-6 * i), 1) for i in range(10_000)], 3.087, 3.088),
        ([(RandomizedResponsePair(epsilon=0.001 + 1e-6 * i), 1) for i in range(2_000)], 0.1, 1.0),
    ],
    ids=["million", "billion", "discrete", "different", "responses"],
)
def test_many_events(pairs: list[tuple[Pair, int]], low: float, high: float) -> None:
    found = Product(pairs=pairs).epsilon(1e-6)
    assert low <= found.low <= found.high <= high
    assert found.width <= 1e-3


def test_a_billion_large_events_get_an_honest_answer() -> None:
    found = Product.of(LaplacePair(epsilon=1.0), 10**9).epsilon(1e-6)
    assert 3.67e8 <= found.high <= 3.7e8
    assert found.low <= found.high


@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-12, 0.5, 0.999])
def test_extreme_deltas(delta: float) -> None:
    bounded = Product.of(LaplacePair(epsilon=0.5), 20).epsilon(delta)
    assert 0.0 <= bounded.low <= bounded.high <= 10.0 + 1e-12
    if delta == 0:
        assert bounded.low == bounded.high == 10.0
        assert Product.of(SAMPLED, 2).epsilon(0.0).high == math.inf


def test_the_largest_loss_of_many_parts_holds_where_losses_of_both_signs_cancel() -> None:
    """Tables whose largest finite loss is negative, the rest of P being out of Q's reach, among others."""
    rows = [(0.3 + k / 1000, 0.9) for k in range(60)] + [(0.5 + k / 1000, 0.1939) for k in range(60)]
    pairs = [FinitePair(p=(a, 1 - a, 0.0), q=(b, 0.0, 1 - b)) for a, b in rows]
    found = Product(pairs=[(pair, 1 + i % 3) for i, pair in enumerate(pairs)]).largest_loss()
    tops = [pair.largest_loss for pair in pairs]
    assert min(top.high for top in tops) < 0 < max(top.low for top in tops)
    assert found.low <= sum(Fraction(top.low) * (1 + i % 3) for i, top in enumerate(tops))
    assert found.high >= sum(Fraction(top.high) * (1 + i % 3) for i, top in enumerate(tops))
    assert found.width < 1e-11


def test_equal_products_are_one_key() -> None:
    sampled = [PoissonSampledPair(pair=GaussianPair(mu=1 / k), rate=0.01) for k in range(1, 40)]
    one = Product(pairs=[(pair.swapped(), 2) for pair in sampled])
    other = Product(pairs=[(pair, 1) for pair in reversed(sampled)]).repeat(2).swapped()
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other, one.repeat(2)}) == 2
    keys = [pair.sort_key for pair, _ in one.pairs]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(sampled)
