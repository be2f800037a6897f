"""Exact counts: corners by enumeration, the figures, and what no simulator can do."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from tacit.coupled.best import best_delta
from tacit.coupled.mechanisms import Cell
from tacit.coupled.noiseless import exact_count
from tacit.coupled.numbers import Level, excess, smallest_factor
from tacit.errors import NoLaw


def poisson_binomial(chances: list[Fraction]) -> dict[int, Fraction]:
    law = {0: Fraction(1)}
    for p in chances:
        out: dict[int, Fraction] = {}
        for k, w in law.items():
            out[k] = out.get(k, Fraction(0)) + w * (1 - p)
            out[k + 1] = out.get(k + 1, Fraction(0)) + w * p
        law = out
    return law


def moved(law: dict[int, Fraction], by: int) -> dict[int, Fraction]:
    return {k + by: w for k, w in law.items()}


def with_coin(law: dict[int, Fraction], one: Fraction) -> dict[int, Fraction]:
    out = {k: w * (1 - one) for k, w in law.items()}
    for k, w in law.items():
        out[k + 1] = out.get(k + 1, Fraction(0)) + w * one
    return out


def coin(simulator: str) -> Fraction:
    return Fraction(1, 2) if "fair" in simulator else Fraction(float(simulator.rsplit(" ", 1)[1]))


@pytest.mark.parametrize(
    ("n", "chance", "pair", "most"),
    [(10_000, 0.1, 0.1273, 0.065), (10_000, 0.5, 0.0710, 0.036), (1000, 0.1, 0.4834, 0.26)],
)
def test_homogeneous_counts_at_one_in_a_million(n: int, chance: float, pair: float, most: float) -> None:
    answer = exact_count(chance, n=n, delta=1e-6)
    assert answer.epsilon_pair is not None
    assert pair - 2e-4 <= answer.epsilon_pair <= pair
    assert answer.epsilon <= most
    assert float(answer.details["epsilon_floor"]) <= answer.epsilon
    # By the binomial law in logarithms, summed plainly.
    k = np.arange(n + 1)
    m = n - 1
    logs = np.array([math.lgamma(m + 1) - math.lgamma(j + 1) - math.lgamma(m - j + 1) for j in k[:-1]])
    law = np.append(np.exp(logs + k[:-1] * math.log(chance) + (m - k[:-1]) * math.log1p(-chance)), 0.0)
    other = np.append(0.0, law[:-1])
    factor = math.exp(answer.epsilon_pair)
    both = [float(np.sum(np.maximum(a - factor * b, 0))) for a, b in ((law, other), (other, law))]
    assert max(both) == pytest.approx(1e-6, rel=1e-4)


def test_an_interval_of_chances_is_worst_at_its_corners() -> None:
    a, b, m, delta = Fraction(1, 5), Fraction(3, 5), 9, Fraction(3, 20)
    answer = exact_count((a, b), n=m + 1, delta=float(delta))
    one = coin(answer.simulator)
    most, apart = Fraction(1), Fraction(1)
    for k in range(m + 1):
        law = poisson_binomial([a] * k + [b] * (m - k))
        ideal = with_coin(law, one)
        for p, q in [(moved(law, x), ideal) for x in (0, 1)] + [(ideal, moved(law, x)) for x in (0, 1)]:
            most = max(most, smallest_factor(p, q, Fraction(float(delta))) or Fraction(10**9))
        for p, q in itertools.permutations((law, moved(law, 1))):
            apart = max(apart, smallest_factor(p, q, Fraction(float(delta))) or Fraction(10**9))
    assert math.log(most) <= answer.epsilon <= math.log(most) * 1.0005
    assert answer.epsilon_pair is not None
    assert math.log(apart) <= answer.epsilon_pair <= math.log(apart) * 1.0005
    # Inside the interval nothing is worse.
    draw = random.Random(7)
    factor = Fraction(math.exp(answer.epsilon)) * (1 + Fraction(1, 10**12))
    for _ in range(60):
        law = poisson_binomial([Fraction(draw.randint(20, 60), 100) for _ in range(m)])
        ideal = with_coin(law, one)
        for x in (0, 1):
            assert excess(moved(law, x), ideal, factor) <= delta
            assert excess(ideal, moved(law, x), factor) <= delta


def test_the_class_is_hardly_worse_than_its_ends() -> None:
    answer = exact_count((0.1, 0.9), n=10_000, delta=1e-6)
    assert answer.epsilon_pair is not None
    assert float(answer.details["epsilon_pair_homogeneous"]) <= answer.epsilon_pair <= 0.1273
    assert answer.epsilon <= 0.065
    assert answer.theorem == "count-corners"
    assert "between 0.1 and 0.9" in answer.sentence


def test_a_hundred_rows_are_too_few() -> None:
    with pytest.raises(NoLaw) as refused:
        exact_count((0.1, 0.9), n=100, delta=1e-6)
    told = str(refused.value)
    assert "no simulator at all has an epsilon below 3.35" in told
    assert "the smallest delta that this bound reaches is 1.48e-05" in told
    assert "2.96e-05" in told
    # The closed form: (1 - lambda)^99 = (1 + e^epsilon) delta.
    assert math.log(0.9**99 / 1e-6 - 1) == pytest.approx(3.35, abs=5e-3)


@pytest.mark.parametrize(("m", "chance", "delta"), [(5, "1/2", 0.01), (7, "1/5", 0.02), (6, "1/10", 0.05)])
def test_no_simulator_goes_below_the_floor(m: int, chance: str, delta: float) -> None:
    """The linear program over all simulators, in exact rationals."""
    from tacit.coupled.noiseless.lattice import least_epsilon, sum_law

    p = Fraction(chance)
    floor = least_epsilon(sum_law((1 - p, p), m, delta=delta), 1, delta)
    law = poisson_binomial([p] * m)
    cells = [
        Cell(
            prior="p", pair="row 0", value=x, auxiliary=None, probability=Fraction(1, 2), real=moved(law, x),
            scrubbed={"others": Fraction(1)},
        )
        for x in (0, 1)
    ]  # fmt: skip
    assert floor > 0
    assert best_delta(cells, Level.of(floor * (1 - 1e-9))).low > Fraction(delta) * (1 - Fraction(1, 10**9))


def test_known_rows_hide_nothing() -> None:
    some = exact_count(0.3, n=1000, delta=1e-6, unknown_rows=500)
    assert some.epsilon == exact_count(0.3, n=500, delta=1e-6).epsilon
    assert exact_count((0.3, 0.3), n=500, delta=1e-6).epsilon == some.epsilon
