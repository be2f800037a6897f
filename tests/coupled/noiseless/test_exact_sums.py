"""Exact sums: against exact rationals, direct convolution and integration, and the checker; the figures."""

from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction

import numpy as np
import pytest

from tacit import coupled
from tacit.coupled.noiseless import exact_mean, exact_sum, normal, row_law, table, uniform
from tacit.coupled.noiseless.lattice import sum_law, sum_laws
from tacit.coupled.numbers import excess, smallest_factor

GAUSSIAN = "normal(0, 1, clamp=(-2.5, 2.5))"


def exact_law(weights: tuple[Fraction, ...], count: int) -> dict[int, Fraction]:
    """The law of a sum by convolution in integers."""
    bottom = math.lcm(*(w.denominator for w in weights))
    row = [int(w * bottom) for w in weights]
    law = [1]
    for _ in range(count):
        out = [0] * (len(law) + len(row) - 1)
        for i, a in enumerate(law):
            for j, b in enumerate(row):
                out[i + j] += a * b
        law = out
    return {k: Fraction(v, bottom**count) for k, v in enumerate(law) if v}


def moved(law: dict[int, Fraction], by: int) -> dict[int, Fraction]:
    return {k + by: w for k, w in law.items()}


def mixed(law: dict[int, Fraction], offsets: dict[int, Fraction]) -> dict[int, Fraction]:
    out: dict[int, Fraction] = {}
    for by, share in offsets.items():
        for k, w in law.items():
            out[k + by] = out.get(k + by, Fraction(0)) + share * w
    return out


def needed(
    law: dict[int, Fraction], places: list[int], offsets: dict[int, Fraction], delta: Fraction
) -> float:
    """The smallest epsilon, over all places and both directions, in exact rationals."""
    ideal = mixed(law, offsets)
    most = Fraction(1)
    for x in places:
        for p, q in ((moved(law, x), ideal), (ideal, moved(law, x))):
            factor = smallest_factor(p, q, delta)
            if factor is None:
                return math.inf
            most = max(most, factor)
    return math.log(most)


@pytest.mark.parametrize(
    ("law", "count"),
    [
        (uniform(0, 1, grid="1/10"), 20),
        (table({0: "3/4", 1: "1/8", 4: "1/8"}), 12),
        (table({0: "1/2", 1: "1/2"}), 3),
        (normal(0, 1, clamp=(-2, 2), grid="1/4"), 9),
    ],
)
@pytest.mark.parametrize("delta", [1e-3, 1e-12])
def test_the_law_of_a_sum_lies_between_its_ends(
    law: coupled.noiseless.RowLaw, count: int, delta: float
) -> None:
    true = exact_law(law.weights, count)
    found = sum_law(law.weights, count, delta=delta)
    low = found.at(-2, max(true) + 5, upper=False)
    high = found.at(-2, max(true) + 5, upper=True)
    outside = Fraction(0)
    for k in range(-2, max(true) + 3):
        inside = found.start <= k < found.start + len(found.low)
        p = true.get(k, Fraction(0))
        if inside:
            assert Fraction(low[k + 2]) <= p <= Fraction(high[k + 2])
            # At delta = 1e-12 the deep tails keep their digits.
            if delta < 1e-9 and p > 1e-14:
                assert high[k + 2] - low[k + 2] <= 1e-6 * p
        else:
            outside += p
    assert outside <= found.outside


def test_sums_of_several_laws_share_their_transforms() -> None:
    rows = [table({0: "2/3", 1: "1/3"}).weights, table({0: "1/4", 3: "3/4"}, grid=1).weights]
    counts = [(5, 2), (1, 6), (0, 4)]
    for (a, b), found in zip(counts, sum_laws(rows, counts, delta=1e-4), strict=True):
        true: dict[int, Fraction] = {}
        for (i, p), (j, q) in itertools.product(exact_law(rows[0], a).items(), exact_law(rows[1], b).items()):
            true[i + j] = true.get(i + j, Fraction(0)) + p * q
        for k, p in true.items():
            assert found.at(k, 1, upper=False)[0] <= p <= found.at(k, 1, upper=True)[0] + found.outside


@pytest.mark.parametrize(
    ("rows", "n", "delta"),
    [
        ("uniform(0, 1, grid=0.1)", 15, 1e-3),
        ("uniform(0, 5, grid=1)", 12, 1e-5),
        ("table(0: 3/4, 1: 1/8, 4: 1/8)", 14, 1e-1),
        ("table(0: 1/10, 1: 1/2, 2: 1/10, 3: 1/5, 5: 1/10)", 12, 1e-3),
        ("bernoulli(0.3)", 40, 1e-4),
    ],
)
def test_epsilon_is_that_of_exact_rationals(rows: str, n: int, delta: float) -> None:
    law = row_law(rows)
    answer = exact_sum(rows, n=n, delta=delta)
    true = exact_law(law.weights, n - 1)
    places = [k for k, w in enumerate(law.weights) if w]
    pair = max(
        math.log(f) if (f := smallest_factor(moved(true, x), moved(true, y), Fraction(delta))) else math.inf
        for x in places
        for y in places
    )
    if answer.epsilon_pair is None:
        assert math.isinf(pair)
    else:
        assert pair <= answer.epsilon_pair <= pair + 1e-5 * (1 + pair)
    # The simulator is read off its name: whatever it is, epsilon must be right for it.
    offsets = {k: Fraction(w) for k, w in chosen(answer.simulator, law).items()}
    epsilon = needed(true, places, offsets, Fraction(delta))
    assert epsilon <= answer.epsilon <= epsilon + 1e-5 * (1 + epsilon)


def chosen(simulator: str, law: coupled.noiseless.RowLaw) -> dict[int, float]:
    """Where the named simulator puts the row."""
    words = simulator.split(", with ")[1].split(" in place")[0].split(" or ")
    places = [int((Fraction(w) - law.low) / law.step) for w in words]
    if len(places) == 1:
        return {places[0]: 1.0}
    share = 0.5 if "fair" in simulator else float(simulator.rsplit(" ", 1)[1])
    return dict(zip(places, (share, 1 - share), strict=True))


def test_the_checker_agrees_on_all_data_sets() -> None:
    """Four rows, all 3^4 data sets, the definition itself; for who knows none of them, and for who knows one."""
    weights = {0: "1/2", 1: "1/4", 2: "1/4"}
    prior = coupled.iid_rows({k: Fraction(w) for k, w in weights.items()}, rows=4)
    for unknown in (4, 3):
        answer = exact_sum(table(weights), n=4, delta=0.375, unknown_rows=unknown)
        offsets = chosen(answer.simulator, table(weights))

        def says(
            pair: str, scrubbed: tuple[object, ...], at: dict[int, float] = offsets
        ) -> dict[int, Fraction]:
            rest = sum(v for v in scrubbed if isinstance(v, int))
            return {rest + k: Fraction(w) for k, w in at.items()}

        definition = coupled.Distributional(priors=coupled.known_rows(prior, unknown=unknown))
        total = coupled.FiniteMechanism.of(sum, [prior])
        found = definition.epsilon(
            total, delta=Fraction(0.375), simulator=coupled.Simulator(name="put", answer=says)
        )
        assert found is not None
        assert found.high <= answer.epsilon + 1e-12
        assert answer.epsilon <= found.high + 1e-6


def direct_law(weights: list[float], count: int) -> np.ndarray:
    """The law of a sum by squaring, each product a plain convolution of floats above 0."""
    law, power = np.ones(1), np.array(weights)
    while count:
        if count & 1:
            law = np.convolve(law, power)
        power, count = (np.convolve(power, power), count >> 1) if count > 1 else (power, 0)
    return law


@pytest.mark.parametrize("rows", ["uniform(0, 1, grid=0.05)", "normal(0, 1, clamp=(-2.5, 2.5), grid=0.25)"])
def test_a_thousand_rows_by_direct_convolution(rows: str) -> None:
    law = row_law(rows)
    answer = exact_sum(rows, n=1000, delta=1e-5)
    p = direct_law([float(w) for w in law.weights], 999)
    middle = (len(law.weights) - 1) // 2
    worst = 0.0
    for x in range(len(law.weights)):
        a, b = np.zeros(len(p) + 20), np.zeros(len(p) + 20)
        a[x : x + len(p)], b[middle : middle + len(p)] = p, p
        for left, right in ((a, b), (b, a)):
            delta = float(np.sum(np.maximum(left - math.exp(answer.epsilon) * right, 0.0)))
            worst = max(worst, delta)
    assert worst <= 1e-5 * (1 + 1e-6)
    assert worst >= 1e-5 * (1 - 1e-4)


def irwin_hall(n: int, y: np.ndarray) -> np.ndarray:
    """The density of a sum of n uniform variables, by integrating its characteristic function."""
    t = np.linspace(0.0, 60.0 / math.sqrt(n), 4001)
    phi = np.sinc(t / (2 * np.pi)) ** n
    values = phi[None, :] * np.cos(np.outer(y - n / 2, t))
    return np.asarray(np.trapezoid(values, t, axis=1) / np.pi)


@pytest.mark.parametrize(("n", "delta", "most"), [(1000, 1.31e-5, 0.176), (10_000, 6.95e-6, 0.0525)])
def test_uniform_rows_against_direct_integration(n: int, delta: float, most: float) -> None:
    """The continuous law by quadrature; a finer and finer grid comes near to it from below, and is not far."""
    std = math.sqrt((n - 1) / 12)
    y = np.linspace((n - 1) / 2, (n - 1) / 2 + 7 * std, 2001)
    p, q = irwin_hall(n - 1, y - 0.25), irwin_hall(n - 1, y + 0.25)

    def true(epsilon: float) -> float:
        return float(np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0.0), y))

    answer = exact_sum("uniform(0, 1)", n=n, delta=delta)
    fine = exact_sum("uniform(0, 1, grid=0.002)", n=n, delta=delta)
    assert answer.epsilon <= fine.epsilon <= most
    assert true(fine.epsilon) == pytest.approx(delta, rel=0.05)


def test_published_figures_are_beaten() -> None:
    within = {
        "known": 0.27,
        "rectangle": 0.50,
    }
    for assume, most in within.items():
        assert exact_sum(GAUSSIAN, n=1000, delta=1.24e-5, assume=assume).epsilon <= most
    same = exact_sum(GAUSSIAN, n=1000, delta=1.24e-5, assume="rectangle", rectangle_over=(-1.5, 1.5))
    assert same.epsilon <= 0.515
    fine = exact_sum(
        GAUSSIAN, n=1000, delta=1.24e-5, assume="rectangle", rectangle_over=(-1.5, 1.5), grid="1/100"
    )
    assert same.epsilon <= fine.epsilon <= 0.515


def test_a_million_rows_take_two_seconds() -> None:
    exact_sum("uniform(0, 1)", n=1000, delta=1e-6)
    start = time.process_time()
    answer = exact_sum("uniform(0, 1)", n=1_000_000, delta=1e-6)
    assert time.process_time() - start < 2.0
    assert 0.0049 < answer.epsilon < 0.0050


def test_unknown_rows_means_and_families() -> None:
    less = exact_sum("uniform(0, 1)", n=1000, delta=1e-5, unknown_rows=900)
    assert less.epsilon == exact_sum("uniform(0, 1)", n=900, delta=1e-5).epsilon
    assert less.unknown_rows == 900
    assert "at most 100 of the 1000 rows" in less.sentence
    assert exact_mean("uniform(0, 1)", n=900, delta=1e-5).epsilon == less.epsilon
    # The mean in other units is the same question.
    assert exact_mean("uniform(-3, 7)", n=900, delta=1e-5).epsilon == less.epsilon
    family = exact_sum(["bernoulli(0.2)", "bernoulli(0.5)"], n=400, delta=1e-5)
    each = [exact_sum(f"bernoulli({p})", n=400, delta=1e-5) for p in (0.2, 0.5)]
    assert family.epsilon_pair == max(e.epsilon_pair or math.inf for e in each)
    assert family.epsilon >= max(e.epsilon for e in each) * (1 - 1e-9)


def test_every_epsilon_is_monotone_in_what_is_given() -> None:
    at = [exact_sum("uniform(0, 1)", n=200, delta=d).epsilon for d in (1e-12, 1e-9, 1e-6, 1e-3)]
    assert at == sorted(at, reverse=True)
    sizes = [exact_sum(GAUSSIAN, n=n, delta=1e-5, assume="rectangle").epsilon for n in (300, 600, 1200)]
    assert sizes == sorted(sizes, reverse=True)


def test_the_excess_of_the_published_claim_is_what_is_claimed() -> None:
    """One claim from the definition: at the stated epsilon the divergences are at most delta, just below it more."""
    law = uniform(0, 1, grid="1/5")
    answer = exact_sum(law, n=11, delta=1e-3)
    true = exact_law(law.weights, 10)
    ideal = mixed(true, {k: Fraction(w) for k, w in chosen(answer.simulator, law).items()})
    for slack, holds in ((1.0, True), (1 - 1e-6, False)):
        factor = Fraction(math.exp(answer.epsilon * slack))
        most = max(
            max(excess(moved(true, x), ideal, factor), excess(ideal, moved(true, x), factor))
            for x in range(6)
        )
        assert (most <= Fraction(1, 1000) * (1 + Fraction(1, 10**12))) == holds
