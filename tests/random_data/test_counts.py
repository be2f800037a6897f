"""Proportions and histograms: conditions, tightness by one count, more than 200 settings, and what is really drawn."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import tacit
from support.failing import Law, laplace, share_over_orders
from tacit.errors import InvalidParameter
from tacit.guarantees import Neighbours, RandomData
from tacit.noise import SeededSource
from tacit.random_data import RandomHistogram, RandomProportion, Referee, pair_differs, worst_share
from tacit.random_data.histogram import breaks

LAWS_OF_TWO = [Fraction(i, 40) for i in (0, 1, 2, 3, 5, 8, 13, 20, 27, 39, 40)]


def f(s: int, n: int) -> Fraction:
    return Fraction(2 * s * (n + 1 - s), n * (n + 1))


# --- the proportion --------------------------------------------------------------------------------------
def test_the_condition_is_the_exact_one() -> None:
    m = RandomProportion(rows=1000, epsilon=1, gamma=0.05)
    assert m.is_exact(3)
    exact = [c for c in range(1001) if m.is_exact(c)]
    assert exact == [c for c in range(1001) if f(c, 1000) <= 0.05 and f(c + 1, 1000) <= 0.05]
    assert exact == [*range(25), *range(976, 1001)]  # both tails, mirrored
    assert m.largest_exact() == 24
    # Hall's (5.1) by its upper bound on f: 2(c + 1) <= 50.
    assert max(c for c in exact if c < 500) >= 24
    assert m.guarantee.condition == RandomData(gamma=0.05)
    assert m.guarantee.bound == tacit.Pure(epsilon=1)
    assert pair_differs(25, 1000) == f(25, 1000)
    assert RandomProportion(rows=1000, epsilon=1, gamma=0.0001).largest_exact() is None
    assert RandomProportion(rows=10, epsilon=1, gamma=0.9).largest_exact() == 10
    for gamma in (0.0009, 0.001, 0.3, 0.5, 0.5015, 0.9, 0.9995):
        added = RandomProportion(rows=1000, epsilon=1, gamma=gamma, neighbours=Neighbours.ADD_OR_REMOVE)
        exact = [c for c in range(1001) if added.is_exact(c)]
        assert added.largest_exact() == (max(exact) if exact else None)


@pytest.mark.parametrize("n", [7, 20, 61])
@pytest.mark.parametrize("gamma", [0.1, 0.2, 0.45])
def test_no_law_of_a_bit_breaks_a_proportion(n: int, gamma: float) -> None:
    """9 parameters x 11 laws; the conditional verdict bounds the iid one and is below gamma."""
    m = RandomProportion(rows=n, epsilon=1, gamma=gamma)
    referee = Referee(m.breaks, rows=n, cells=2)
    worst = referee.conditional.gamma
    assert worst <= Fraction(gamma)
    allowed = [f(s, n) for s in range(1, n + 1) if m.is_exact(s) or m.is_exact(s - 1)]
    assert worst == max(allowed, default=0)
    for p in LAWS_OF_TWO:
        assert referee.iid([1 - p, p]) <= worst


@dataclass(frozen=True)
class Loosened:
    """A proportion that publishes one more count exactly."""

    of: RandomProportion
    count: int

    def breaks(self, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        a, b = one[1], other[1]
        exact = [self.of.is_exact(c) or c == self.count for c in (a, b)]
        return a != b and any(exact)


@pytest.mark.parametrize(("n", "gamma"), [(20, 0.2), (50, 0.1), (1000, 0.05)])
def test_one_count_more_is_too_many(n: int, gamma: float) -> None:
    m = RandomProportion(rows=n, epsilon=1, gamma=gamma)
    most = m.largest_exact()
    assert most is not None
    for count in (most + 1, n - most - 1):
        loose = Referee(Loosened(m, count).breaks, rows=n, cells=2).conditional
        assert loose.gamma > Fraction(gamma)


@pytest.mark.parametrize("sharp", [False, True])
def test_a_histogram_of_an_unknown_number_of_rows(sharp: bool) -> None:
    """A removed row of a cell with at most t rows leaves fewer than t: no table has more such rows than gamma."""
    most = 0
    for least, cells, tenths in itertools.product((5, 7, 12), (2, 3, 4), range(1, 10)):
        gamma = Fraction(tenths, 10)
        m = RandomHistogram(
            rows=least, cells=cells, epsilon=1, gamma=gamma, small_cells=True, sharp=sharp,
            neighbours=Neighbours.ADD_OR_REMOVE,
        )  # fmt: skip
        t = m.exact_below
        most = max(most, t)
        for n in range(least, least + 4):
            for table in itertools.product(range(n + 1), repeat=cells):
                if sum(table) == n:
                    assert Fraction(sum(c for c in table if c <= t and t), n) <= gamma
    assert most >= 3


@pytest.mark.parametrize("n", [20, 40])
def test_a_count_of_an_unknown_number_of_rows(n: int) -> None:
    m = RandomProportion(rows=20, epsilon=1, gamma=0.2, neighbours=Neighbours.ADD_OR_REMOVE)
    assert [c for c in range(8) if m.is_exact(c)] == [0, 1, 2, 3]
    worst = Referee(m.breaks, rows=n, cells=2, neighbours=Neighbours.ADD_OR_REMOVE).conditional
    assert worst.gamma == Fraction(4, n)
    loose = Referee(Loosened(m, 4).breaks, rows=20, cells=2, neighbours=Neighbours.ADD_OR_REMOVE).conditional
    assert loose.gamma > Fraction(1, 5)
    with pytest.raises(InvalidParameter, match="replace-one"):
        m.release(1, source=SeededSource(seed=1)).proportion  # noqa: B018


# --- histograms ------------------------------------------------------------------------------------------
def test_the_paper_s_condition() -> None:
    m = RandomHistogram(rows=8000, cells=400, epsilon=0.2, gamma=0.1)
    assert m.exact_below == 1  # 2 k = gamma n
    assert RandomHistogram(rows=7999, cells=400, epsilon=0.2, gamma=0.1).exact_below == 0
    assert RandomHistogram(rows=8000, cells=400, epsilon=0.2, gamma=0.1, small_cells=True).exact_below == 1
    wide = RandomHistogram(rows=80_000, cells=400, epsilon=0.2, gamma=0.1, small_cells=True)
    assert wide.exact_below == 10  # c + 1 <= gamma n/(2k)
    assert RandomHistogram(rows=80_000, cells=400, epsilon=0.2, gamma=0.1).exact_below == 1
    sharp = RandomHistogram(rows=80_000, cells=400, epsilon=0.2, gamma=0.1, small_cells=True, sharp=True)
    assert sharp.exact_below >= wide.exact_below
    assert worst_share(rows=80_000, cells=400, below=sharp.exact_below) <= Fraction(0.1)
    assert worst_share(rows=80_000, cells=400, below=sharp.exact_below + 1) > Fraction(0.1)


LAWS_OF_CELLS = {
    2: [(1, 1), (9, 1), (39, 1)],
    3: [(1, 1, 1), (8, 1, 1), (18, 1, 1), (48, 1, 1), (4, 5, 1), (1, 0, 0)],
    4: [(1, 1, 1, 1), (17, 1, 1, 1), (97, 1, 1, 1), (5, 5, 9, 1), (1, 1, 0, 0)],
}
SETTINGS = [
    (n, k, gamma, small, sharp)
    for (n, k, gamma) in ((9, 3, 0.5), (20, 3, 0.3), (24, 2, 0.4), (16, 4, 0.6))
    for small, sharp in itertools.product((False, True), repeat=2)
]


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize(("n", "k", "gamma", "small", "sharp"), SETTINGS)
def test_no_law_of_cells_breaks_a_histogram(
    n: int, k: int, gamma: float, small: bool, sharp: bool, neighbours: Neighbours
) -> None:
    """32 parameters x up to 6 laws: 160 settings. The worst share is the formula's, and below gamma."""
    m = RandomHistogram(
        rows=n, cells=k, epsilon=1, gamma=gamma, small_cells=small, sharp=sharp, neighbours=neighbours
    )
    referee = Referee(m.breaks, rows=n, cells=k, neighbours=neighbours)
    worst, below = referee.conditional.gamma, m.exact_below
    assert worst <= Fraction(gamma)
    if neighbours is Neighbours.REPLACE_ONE:
        assert worst == worst_share(rows=n, cells=k, below=below)
    else:
        assert worst == Fraction((k - 1) * below, n)
    for weights in LAWS_OF_CELLS[k]:
        law = [Fraction(w, sum(weights)) for w in weights]
        assert referee.iid(law) <= worst


@dataclass(frozen=True)
class OneMore:
    """A histogram that publishes cells of one row more exactly."""

    below: int

    def breaks(self, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        return any(a != b and min(a, b) < self.below for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize(("n", "k", "gamma"), [(20, 3, 0.3), (24, 2, 0.4), (16, 4, 0.6), (30, 3, 0.25)])
def test_one_row_more_in_a_cell_is_too_many(n: int, k: int, gamma: float, neighbours: Neighbours) -> None:
    m = RandomHistogram(
        rows=n, cells=k, epsilon=1, gamma=gamma, small_cells=True, sharp=True, neighbours=neighbours
    )
    loose = Referee(OneMore(m.exact_below + 1).breaks, rows=n, cells=k, neighbours=neighbours).conditional
    assert loose.gamma > Fraction(gamma)


def test_judging_is_from_the_laws_of_the_output() -> None:
    """`breaks` decides by counts alone; the laws, and every outcome of a second implementation, agree with it."""
    m = RandomHistogram(rows=6, cells=3, epsilon=1, gamma=0.9, small_cells=True, sharp=True)
    assert m.exact_below == 2
    for one, other in itertools.product([(6, 0, 0), (3, 2, 1), (2, 2, 2), (4, 2, 0), (3, 3, 0)], repeat=2):
        assert m.breaks(one, other) == breaks(m.law(one), m.law(other), Fraction(1))

    def laws(rows: tuple[int, ...]) -> list[Law]:
        table = [rows.count(j) for j in range(3)]
        return [{c: 1.0} if c < 2 else laplace(c, 0.5) for c in table]

    referee = Referee(m.breaks, rows=6, cells=3)
    for table in [(3, 2, 2), (4, 2, 1), (5, 1, 1)]:
        rows = [j for j, c in enumerate(table) for _ in range(c)]
        assert referee.shares[table] == share_over_orders(rows, laws, 1.0)


# --- what is drawn ---------------------------------------------------------------------------------------
def test_small_cells_come_out_as_they_are_and_others_with_noise() -> None:
    m = RandomHistogram(rows=8000, cells=400, epsilon=0.2, gamma=0.1)
    counts = np.zeros(400, dtype=np.int64)
    counts[:16] = 500
    draws = np.array([m.release(counts, source=SeededSource(seed=s)).counts for s in range(300)])
    assert (draws[:, 16:] == 0).all()
    noise = (draws[:, :16] - 500).ravel()
    # 4800 draws of |noise| with mean 1/sinh(0.1) = 9.983 and deviation near 10: 7 deviations of the mean are 1.01.
    assert abs(np.abs(noise).mean() - 1 / np.sinh(0.1)) < 1.05
    made = m.release(counts, source=SeededSource(seed=1))
    assert made.noisy.tolist() == [True] * 16 + [False] * 384
    assert not made.publishable
    assert made.proportions[16:].sum() == 0
    assert m.expected_error(noisy_cells=16) * 25 == pytest.approx(m.expected_error(noisy_cells=400))


def test_too_many_cells_fall_back_to_noise_everywhere() -> None:
    m = RandomHistogram(rows=100, cells=10, epsilon=1, gamma=0.1)
    assert m.exact_below == 0
    made = m.release([100, *[0] * 9], source=SeededSource(seed=3))
    assert made.noisy.all()
    assert made.exact_below == 0
    assert (np.asarray(made.counts)[1:] != 0).any()


def test_an_exact_count_is_exact_and_another_is_not() -> None:
    m = RandomProportion(rows=1000, epsilon=1, gamma=0.05)
    assert {m.release(3, source=SeededSource(seed=s)).count for s in range(20)} == {3}
    assert m.release(3, source=SeededSource(seed=1)).proportion == 0.003
    drawn = [m.release(400, source=SeededSource(seed=s)) for s in range(400)]
    assert not any(d.exact for d in drawn)
    # |noise| has mean .851 and deviation near 1.05: 7 deviations of the mean of 400 are .37.
    assert abs(np.mean([abs(d.count - 400) for d in drawn]) - 1 / np.sinh(1)) < 0.37
    assert m.expected_error(3) == 0
    assert m.expected_error(400) == pytest.approx(1 / np.sinh(1))


# --- bad input -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("gamma", [0, 1, float("nan"), -0.1, 1.5, "0.1", True])
def test_gamma_lies_between(gamma: object) -> None:
    with pytest.raises(InvalidParameter):
        RandomProportion(rows=100, epsilon=1, gamma=gamma)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        RandomHistogram(rows=100, cells=3, epsilon=1, gamma=gamma)  # type: ignore[arg-type]


def test_bad_input() -> None:
    with pytest.raises(InvalidParameter, match="at least 2"):
        RandomProportion(rows=1, epsilon=1, gamma=0.1)
    with pytest.raises(InvalidParameter, match="at least 2"):
        RandomHistogram(rows=1, cells=2, epsilon=1, gamma=0.1)
    with pytest.raises(tacit.NoLaw, match="drawn independently"):
        RandomProportion(rows=10, epsilon=1, gamma=0.1, independent=False)
    with pytest.raises(tacit.NoLaw, match="equal pairs"):
        RandomHistogram(rows=10, cells=2, epsilon=1, gamma=0.1, independent=False)
    m = RandomHistogram(rows=10, cells=3, epsilon=1, gamma=0.1)
    for counts in ([5, 5], [4, 4, 4], [11, -1, 0], [2.5, 2.5, 5]):
        with pytest.raises(InvalidParameter):
            m.release(counts)
    with pytest.raises(InvalidParameter):
        RandomProportion(rows=10, epsilon=1, gamma=0.1).is_exact(11)
    with pytest.raises(InvalidParameter):
        RandomProportion(rows=10, epsilon=0, gamma=0.1)
