"""Proof by enumeration: the random-bit tree of each sampler gives the exact probabilities to 2^-64.

The tree is expanded with words of 4 bits. At each depth only the words on a boundary need another word, so
19 levels (2^-76) are a few thousand nodes; what is still open is counted as error.
"""

from __future__ import annotations

from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest

from tacit.exact.rounding import ball
from tacit.noise import Categorical, FiniteDistribution, SeededSource
from tacit.noise.distributions.base import Inverter, Series, Uniform, bernoulli, gaussian_terms
from tacit.noise.distributions.binomial import Binomial
from tacit.noise.distributions.gaussian import _direct
from tacit.noise.distributions.geometric import _side, geometric_digits, truncated_digit

getcontext().prec = 60
WIDTH, DEPTH = 4, 19


def leaves(inverter: Inverter, scripted, exhausted) -> tuple[dict[int, Fraction], Fraction]:
    """Exact probability of each outcome over settled paths, and of the paths still open at full depth."""
    settled: dict[int, Fraction] = {}
    open_paths: list[list[int]] = [[w] for w in range(1 << inverter.bits)]
    weight = Fraction(1, 1 << inverter.bits)
    for depth in range(DEPTH):
        still: list[list[int]] = []
        for path in open_paths:
            try:
                outcome = inverter.resolve(path[0], scripted(path[1:], width=inverter.step))
                settled[outcome] = settled.get(outcome, Fraction(0)) + weight
            except exhausted:
                still.append(path)
        assert len(still) < 400, "only boundary paths may stay open"
        if depth < DEPTH - 1:
            open_paths = [[*path, w] for path in still for w in range(1 << inverter.step)]
            weight /= 1 << inverter.step
        else:
            open_paths = still
    return settled, weight * len(open_paths)


def small(inverter: Inverter, bits: int = WIDTH) -> Inverter:
    """The same law with short words."""
    return Inverter(inverter.distribution, bits=bits, step=WIDTH)


def check(inverter: Inverter, exact: dict[int, Fraction], scripted, exhausted) -> None:
    settled, unsettled = leaves(inverter, scripted, exhausted)
    assert unsettled < Fraction(1, 1 << 64)
    for k, p in exact.items():
        got = settled.get(k, Fraction(0))
        assert got <= p <= got + unsettled + Fraction(1, 1 << 150), k
    assert sum(settled.values()) + unsettled == 1


def dec(x: Decimal) -> Fraction:
    return Fraction(x)


def test_rational_weights(scripted, exhausted) -> None:
    weights = [Fraction(1, 7), Fraction(2), Fraction(0), Fraction(5, 3), Fraction(1, 1000)]
    law = FiniteDistribution(weights=weights)
    exact = {k: w / sum(weights) for k, w in enumerate(weights)}
    check(small(law._inverter), exact, scripted, exhausted)


def test_dyadic_weights_need_one_word(scripted, exhausted) -> None:
    law = FiniteDistribution(weights=[1, 2, 1])
    settled, unsettled = leaves(small(law._inverter), scripted, exhausted)
    assert unsettled == 0
    assert settled == {0: Fraction(1, 4), 1: Fraction(1, 2), 2: Fraction(1, 4)}


def test_exponential_coin(scripted, exhausted) -> None:
    p = dec(Decimal(-1).exp())
    coin = bernoulli(lambda: (-ball(1)).exp(), bits=WIDTH, step=WIDTH)
    settled, unsettled = leaves(coin, scripted, exhausted)
    assert abs(settled[1] - p) <= unsettled + Fraction(1, 10**55)
    assert unsettled < Fraction(1, 1 << 64)


def test_categorical(scripted, exhausted) -> None:
    logs = [Fraction(0), Fraction(1, 2), Fraction(-3)]
    w = [Decimal(x.numerator) / Decimal(x.denominator) for x in logs]
    w = [x.exp() for x in w]
    exact = [dec(x / sum(w)) for x in w]
    settled, unsettled = leaves(small(Categorical(log_weights=logs)._inverter), scripted, exhausted)
    for k, p in enumerate(exact):
        assert abs(settled[k] - p) <= unsettled + Fraction(1, 10**50)
    assert unsettled < Fraction(1, 1 << 64)


def test_discrete_gaussian_by_table(scripted, exhausted) -> None:
    variance = Fraction(9, 4)
    terms = {k: (-Decimal(k * k) / Decimal("4.5")).exp() for k in range(60)}
    total = terms[0] + 2 * sum(terms[k] for k in range(1, 60))
    # The magnitude has one bit less: the low bit of the word is the sign.
    settled, unsettled = leaves(small(_direct(variance), bits=3), scripted, exhausted)
    assert unsettled < Fraction(1, 1 << 64)
    for k in range(14):
        p = dec((1 if k == 0 else 2) * terms[k] / total)
        assert abs(settled.get(k, Fraction(0)) - p) <= unsettled + Fraction(1, 10**50)


def test_discrete_laplace_by_its_parts(scripted, exhausted) -> None:
    """Side and magnitude are proved apart; together they give tanh(1/2s) exp(-|k|/s)."""
    rate = Fraction(1, 2)
    q = Decimal("-0.5").exp()
    side, open_side = leaves(small(_side(rate)), scripted, exhausted)
    (top,) = geometric_digits(rate).inverters
    magnitude, open_magnitude = leaves(small(top), scripted, exhausted)
    error = open_side + open_magnitude + Fraction(1, 10**50)
    assert error < Fraction(1, 1 << 64)
    for k in range(-8, 9):
        exact = dec((1 - q) / (1 + q) * q ** abs(k))
        got = side[0] * magnitude[k] if k >= 0 else side[1] * magnitude[-1 - k]
        assert abs(got - exact) <= error


def test_digits_multiply_to_the_geometric(scripted, exhausted) -> None:
    """L + 8 H with L a truncated geometric and H a geometric is geometric, to 2^-64."""
    rate = Fraction(1, 5)
    q = Decimal("-0.2").exp()
    low, open_low = leaves(Inverter(truncated_digit(rate, 8), bits=WIDTH, step=WIDTH), scripted, exhausted)
    high, open_high = leaves(
        Inverter(truncated_digit(rate * 8, 0), bits=WIDTH, step=WIDTH), scripted, exhausted
    )
    for k in range(24):
        exact = dec((1 - q) * q**k)
        error = open_low + open_high + Fraction(1, 10**50)
        assert abs(low[k % 8] * high[k // 8] - exact) <= error < Fraction(1, 1 << 64)


def test_binomial(scripted, exhausted) -> None:
    from math import comb

    n, p = 6, Fraction(2, 7)
    law = Binomial(trials=n, probability_of_one=p)
    settled, unsettled = leaves(small(law._sampler), scripted, exhausted)
    assert unsettled < Fraction(1, 1 << 64)
    for index, got in settled.items():
        k = law._shape.place(index, 1)
        exact = comb(n, k) * p**k * (1 - p) ** (n - k)
        assert got <= exact <= got + unsettled


LAWS = {
    "laplace top": lambda: geometric_digits(Fraction(1, 1000)).inverters[-1],
    "laplace low": lambda: geometric_digits(Fraction(1, 10**9)).inverters[0],
    "gaussian": lambda: _direct(Fraction(100)),
    "gaussian blocks": lambda: Inverter(
        Series(gaussian_terms(lambda: ball(Fraction(1, 3000)), double=False)), bits=63
    ),
    "finite": lambda: FiniteDistribution(weights=[3, 1, 0, 0, 7, 1e-9, 2])._inverter,
    "skewed": lambda: Categorical(log_weights=[0, -45, -45, -45, -45, 1, -60, -44])._inverter,
    "binomial": lambda: Binomial(trials=1000, probability_of_one=Fraction(1, 3))._sampler,
    "coin": lambda: bernoulli(lambda: (-ball(Fraction(1, 3))).exp()),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_table_is_the_bisection(name: str, scripted) -> None:
    """At every boundary, beside it, at both ends and at random words, table and certified bisection agree."""
    inverter = LAWS[name]()
    inverter.compile()
    top = (1 << inverter.bits) - 1
    boundaries = [int(b) for b in inverter._boundaries]
    rng = np.random.default_rng(3)
    chosen = [boundaries[i] for i in rng.integers(0, len(boundaries), 25)] + boundaries[:4] + boundaries[-4:]
    words = {min(top, max(0, b + e)) for b in chosen for e in (-1, 0, 1)} | {0, 1, top - 1, top}
    words |= {int(w) >> (64 - inverter.bits) for w in SeededSource(seed=2).words(40)}
    ordered = sorted(words)
    # All-ones continuations settle each boundary the same way on both roads.
    ones = [(1 << 64) - 1] * 64
    by_table = inverter.invert(np.array(ordered, dtype=np.uint64), scripted(ones * len(ordered)))
    by_bisection = [inverter.resolve(w, scripted(ones)) for w in ordered]
    assert by_table.tolist() == by_bisection


@pytest.mark.parametrize(
    ("rate", "scale"), [(Fraction(1, 10), 10), (Fraction(1, 25), 25)], ids=["scale 10", "scale 25"]
)
def test_64_bit_boundaries_of_a_geometric(rate: Fraction, scale: int) -> None:
    """T_k <= 2^64 q^k < T_k + 1 for every boundary, by an independent exponential of 60 digits."""
    (inverter,) = geometric_digits(rate).inverters
    inverter.compile()
    table = [int(b) for b in inverter._boundaries]
    for k in range(1, 27 * scale):
        value = Decimal(1 << 64) * (Decimal(-k) / Decimal(scale)).exp()
        assert table[k - 1] <= value < table[k - 1] + 1


def test_64_bit_boundaries_of_a_gaussian() -> None:
    inverter = _direct(Fraction(100))
    inverter.compile()
    terms = [(-Decimal(k * k) / Decimal(200)).exp() for k in range(200)]
    total = terms[0] + 2 * sum(terms[1:])
    tail = sum(terms[1:])
    for k in range(1, 70):
        value = Decimal(1 << 63) * 2 * tail / total
        assert int(inverter._boundaries[k - 1]) <= value < int(inverter._boundaries[k - 1]) + 1
        tail -= terms[k]


def test_single_draws_take_the_same_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time must not tell the outcome: every word above the floor costs the same number of comparisons."""
    steps = []
    plain = Uniform.below
    monkeypatch.setattr(Uniform, "below", lambda self, p: steps.append(1) or plain(self, p))
    for law in (truncated_digit(Fraction(1, 9), 0), truncated_digit(Fraction(1, 900), 64)):
        inverter = Inverter(law)
        counts = set()
        for word in (1 << 30, 1 << 45, 1 << 60, 1 << 62, 3 << 62, (1 << 64) - 5):
            steps.clear()
            inverter.resolve(word, SeededSource(seed=1))
            counts.add(len(steps))
        assert len(counts) == 1
