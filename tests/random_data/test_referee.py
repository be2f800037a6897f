"""The referee against a second one that walks over every order of the rows and every outcome."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from support.failing import Law, fails, laplace, share_over_orders
from tacit.errors import InvalidParameter
from tacit.guarantees import Neighbours
from tacit.noise import SeededSource
from tacit.random_data import RandomHistogram, RandomProportion, Referee, ordered_failure, sampled_failure
from tacit.random_data.histogram import Exactly, Noisy, breaks, divergence, laplace_divergence, laplace_table
from tacit.random_data.survey import tables


def counts(rows: tuple[int, ...], cells: int) -> tuple[int, ...]:
    return tuple(rows.count(j) for j in range(cells))


def spread(table: tuple[int, ...]) -> list[int]:
    return [j for j, c in enumerate(table) for _ in range(c)]


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize(("n", "k", "below"), [(5, 2, 1), (5, 2, 2), (5, 3, 1), (6, 3, 2)])
def test_shares_are_those_over_all_orders(neighbours: Neighbours, n: int, k: int, below: int) -> None:
    """A rule "exact below" on its own, so that nothing of the mechanisms is used."""
    removed = neighbours is Neighbours.ADD_OR_REMOVE
    rate = 1.0 if removed else 0.5

    def laws(rows: tuple[int, ...]) -> list[Law]:
        return [{c: 1.0} if c < below else laplace(c, rate) for c in counts(rows, k)]

    def judged(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        return fails(laws(tuple(spread(one))), laws(tuple(spread(other))), 1.0)

    referee = Referee(judged, rows=n, cells=k, neighbours=neighbours)
    for table in list(referee.shares)[:: max(1, len(referee.shares) // 7)]:
        assert referee.shares[table] == share_over_orders(spread(table), laws, 1.0, removed=removed)
    worst = referee.conditional
    assert worst.gamma == max(referee.shares.values()) == referee.shares[worst.counts]


def test_the_iid_verdict_is_a_sum_over_all_samples() -> None:
    law = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
    m = RandomHistogram(rows=5, cells=3, epsilon=1, gamma=0.9, sharp=True)
    assert m.exact_below == 1
    referee = Referee(m.breaks, rows=5, cells=3)
    total = Fraction(0)
    for x in itertools.product(range(3), repeat=6):
        one, other = counts(x[:5], 3), counts((*x[:4], x[5]), 3)
        moved = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
        if any(0 in pair for pair in moved):
            total += math.prod((law[v] for v in x), start=Fraction(1))
    assert referee.iid(law) == total
    by_order = ordered_failure(
        lambda one, other: m.breaks(counts(one, 3), counts(other, 3)), rows=5, law=law, place=2
    )
    assert by_order == total
    assert total <= referee.conditional.gamma


def test_a_mixture_of_shares_is_below_the_worst() -> None:
    m = RandomHistogram(rows=12, cells=3, epsilon=1, gamma=0.5, small_cells=True, sharp=True)
    referee = Referee(m.breaks, rows=12, cells=3)
    for weights in itertools.product((1, 3, 20), repeat=3):
        law = [Fraction(w, sum(weights)) for w in weights]
        assert referee.iid(law) <= referee.conditional.gamma


def test_sampling_agrees_with_counting() -> None:
    """Limits at 1 - 1e-10: they miss with less probability than that."""
    m = RandomProportion(rows=30, epsilon=1, gamma=0.3)
    law = [Fraction(9, 10), Fraction(1, 10)]
    exact = Referee(m.breaks, rows=30, cells=2).iid(law)
    told = sampled_failure(
        m.breaks, rows=30, law=law, trials=1500, confidence=1 - 1e-10, source=SeededSource(seed=5)
    )
    assert told.low <= exact <= told.high
    assert told.width < 0.2
    nothing = sampled_failure(
        lambda *_: False, rows=30, law=law, trials=50, confidence=0.99, source=SeededSource(seed=5)
    )
    assert nothing.low == 0
    assert nothing.high == pytest.approx(1 - 0.005 ** (1 / 50))


def test_laws_of_outputs() -> None:
    half = Fraction(1, 2)
    assert breaks([Exactly(1)], [Exactly(2)], Fraction(9))
    assert breaks([Exactly(1)], [Noisy(1, half)], Fraction(9))
    assert not breaks([Exactly(1), Noisy(3, half)], [Exactly(1), Noisy(4, half)], half)
    assert breaks([Noisy(3, half), Noisy(0, half)], [Noisy(4, half), Noisy(1, half)], Fraction(99, 100))
    assert breaks([Noisy(3, half)], [Noisy(3, Fraction(1, 3))], Fraction(9))
    p, q = laplace_table(0, 0.5, 80), laplace_table(1, 0.5, 80)
    assert divergence(p, q, 0.5) < 1e-15
    assert divergence(p, q, 0.25) == pytest.approx(
        sum(max(0, a - math.exp(0.25) * b) for a, b in zip(p.values(), q.values(), strict=True))
    )


@pytest.mark.parametrize("shift", [0.0, 0.4, -1.3])
@pytest.mark.parametrize("ratio", [0.5, 0.99, 1.0, 1.7])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_divergence_of_two_laplace_laws_by_quadrature(shift: float, ratio: float, epsilon: float) -> None:
    told = laplace_divergence(
        value=0.3, scale=1.2, other=0.3 + shift, other_scale=1.2 * ratio, epsilon=epsilon
    )
    step = 1e-3
    grid = [-40 + step * (i + 0.5) for i in range(80_000)]

    def density(z: float, centre: float, scale: float) -> float:
        return math.exp(-abs(z - centre) / scale) / (2 * scale)

    summed = step * math.fsum(
        max(0.0, density(z, 0.3, 1.2) - math.exp(epsilon) * density(z, 0.3 + shift, 1.2 * ratio))
        for z in grid
    )
    assert told == pytest.approx(summed, abs=2e-5)


def test_sizes_and_laws_are_checked() -> None:
    assert sum(1 for _ in tables(6, 4)) == math.comb(9, 3)
    with pytest.raises(InvalidParameter, match="tables"):
        Referee(lambda *_: False, rows=10_000, cells=6)
    with pytest.raises(InvalidParameter, match="add up to 1"):
        Referee(lambda *_: False, rows=3, cells=2).iid([0.5, 0.4])
    with pytest.raises(InvalidParameter, match="samples"):
        ordered_failure(lambda *_: False, rows=40, law=[Fraction(1, 2)] * 2)
    with pytest.raises(InvalidParameter):
        sampled_failure(lambda *_: False, rows=3, law=[1], trials=0)
