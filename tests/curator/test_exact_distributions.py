"""The law of what release() gives, exactly: how much of all words leads to each outcome, found to the last word.

Every draw turns uniform words of 64 bits into a number by a step function. Here the words are given, and the places at
which what is released changes are sought by halving: the share of words between two of them is the probability of an
outcome, to 2^-56, and is held against the definition of the law. No frequency is counted. Cells have words of their
own: a word that is changed changes one cell, and no word is used twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.curator import assignments
from tacit.mechanisms import (
    L1,
    L2,
    Exponential,
    Gaussian,
    Laplace,
    MedianByTest,
    OptimalSelection,
    Score,
    SparseHistogram,
    StableHistogram,
)
from tacit.mechanisms.partition import KeyDistribution
from tacit.noise import DiscreteGaussian, DiscreteLaplace, GaussianVector, SeededSource, Source
from tacit.sources import Schema, category, integer

getcontext().prec = 60
WORDS = 1 << 64
SMALL = Decimal(2) ** -56
Law = dict[Any, Decimal]
Read = Callable[[Sequence[int]], list[Any]]


class Words(Source):
    """Given rows of words, one a call; a word on a boundary is not enough, and gets others."""

    def __init__(self, *rows: Sequence[int]) -> None:
        self._rows, self._rest, self.asked, self.others = [list(r) for r in rows], SeededSource(seed=5), 0, 0

    @property
    def publishable(self) -> bool:
        return False

    @property
    def used_up(self) -> bool:
        """Whether all rows were drawn, and nothing else but for words on boundaries."""
        return not self._rows

    def words(self, count: int) -> np.ndarray:
        self.asked += count
        if self._rows and len(self._rows[0]) == count:
            return np.array(self._rows.pop(0), dtype=np.uint64)
        self.others += count
        return self._rest.words(count)


class Stream(Source):
    """One list of words, in order."""

    def __init__(self, words: Sequence[int]) -> None:
        self._words, self.asked = np.array(words, dtype=np.uint64), 0

    @property
    def publishable(self) -> bool:
        return False

    def words(self, count: int) -> np.ndarray:
        self.asked += count
        assert self.asked <= self._words.size, "more words than there were"
        return self._words[self.asked - count : self.asked].copy()


LOW, HIGH = 1 << 56, 255 << 56
"""Words on either side of a coin, far from its edge and from both ends."""


def law_of(read: Read, top: int = WORDS) -> Law:
    """Shares of the words below `top` that give each outcome, by halving between places where it differs."""
    near = [1 << j for j in range(top.bit_length() - 1)]  # outcomes of little weight lie at the ends
    places = sorted({0, top - 1, *range(0, top, top >> 6), *near, *(top - 1 - x for x in near)})
    known = dict(zip(places, read(places), strict=True))
    open_ = [(a, b) for a, b in pairwise(places) if known[a] != known[b] and b - a > 1]
    while open_:
        middles = [(a + b) // 2 for a, b in open_]
        known |= dict(zip(middles, read(middles), strict=True))
        halves = [(x, m) for (x, _), m in zip(open_, middles, strict=True)]
        halves += [(m, y) for (_, y), m in zip(open_, middles, strict=True)]
        open_ = [(a, b) for a, b in halves if known[a] != known[b] and b - a > 1]
    law: Law = {}
    order = sorted(known)
    for a, b in zip(order, [*order[1:], top], strict=True):
        law[known[a]] = law.get(known[a], Decimal(0)) + Decimal(b - a) / Decimal(top)
    return law


def same(found: Law, exact: Law) -> None:
    assert abs(sum(found.values()) - 1) < SMALL
    for outcome in {*found, *exact}:
        assert abs(found.get(outcome, Decimal(0)) - exact.get(outcome, Decimal(0))) < SMALL, outcome


def mixed(parts: Sequence[tuple[Decimal, Law]]) -> Law:
    out: Law = {}
    for share, law in parts:
        for outcome, p in law.items():
            out[outcome] = out.get(outcome, Decimal(0)) + share * p
    return out


# --- the definitions ------------------------------------------------------------------------------------------
def laplace(scale: Fraction, reach: int = 100) -> Law:
    q = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
    return {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-reach, reach + 1)}


def gaussian(variance: Decimal, reach: int = 60) -> Law:
    weights = {k: (-Decimal(k * k) / (2 * variance)).exp() for k in range(-reach, reach + 1)}
    total = sum(weights.values())
    return {k: w / total for k, w in weights.items()}


def shown(count: int, noise: Law, threshold: int | None) -> Law:
    """A noisy count; nothing, where it is not above the threshold."""
    kept = {count + x: p for x, p in noise.items() if threshold is None or count + x > threshold}
    rest = sum((p for x, p in noise.items() if count + x not in kept), Decimal(0))
    return {**kept, None: rest} if rest else kept


# --- the doors: counts and words in, what is released for each cell out -----------------------------------------
COLUMNS = Schema({"g": category([str(i) for i in range(96)]), "x": integer(0, 9)})


def by_laplace(counts: np.ndarray, source: Source) -> list[Any]:
    one = Laplace.for_target(epsilon=Fraction(1, 2), sensitivity=L1(1))
    return [int(v) for v in one.release(counts, source=source).values]


def by_an_assignment(counts: np.ndarray, source: Source) -> list[Any]:
    applied = assignments.laplace((("x",), 1, 1), Fraction(1, 2))
    return [int(v) for v in applied.release({"x": counts}, source=source)["x"]]


def _placed(positions: Any, values: Any, size: int) -> list[Any]:
    out: list[Any] = [None] * size
    for place, value in zip(positions, values, strict=True):
        out[int(place)] = int(value)
    return out


def by_stable(counts: np.ndarray, source: Source) -> list[Any]:
    noise = Laplace(sensitivity=L1(1), noise_scale=2)
    out = StableHistogram(noise=noise, threshold=4).release(counts, source=source)
    return _placed(out.positions, out.values, counts.size)


def by_sparse(counts: np.ndarray, source: Source) -> list[Any]:
    """Every cell is occupied: empty ones are drawn together, and have their own tests."""
    noise = Laplace(sensitivity=L1(1), noise_scale=2)
    out = SparseHistogram(noise=noise, domain=counts.size, threshold=4).release(
        np.arange(counts.size), counts, source=source
    )
    return _placed(out.keys, out.values, counts.size)


DOORS: dict[str, tuple[Any, int | None]] = {
    "laplace": (by_laplace, None), "block": (by_an_assignment, None), "stable": (by_stable, 4),
    "sparse": (by_sparse, 4),
}  # fmt: skip


def two_words(error_boundary: Any, count: int) -> Callable[[Sequence[int], Sequence[int]], list[Any]]:
    """A cell for each pair of words: all first words, then all second ones."""

    def read(first: Sequence[int], second: Sequence[int]) -> list[Any]:
        # Never one cell alone: a further word for a boundary is told from a row by its length.
        source = Words([*first, LOW], [*second, LOW])
        out: list[Any] = error_boundary(np.full(len(first) + 1, count), source)
        assert source.used_up
        return out[:-1]

    return read


@pytest.mark.parametrize("name", DOORS)
def test_laplace_noise_and_thresholds(name: str) -> None:
    """Counts below, at and above the threshold; the coin for the side does not depend on the size."""
    error_boundary, threshold = DOORS[name]
    far = two_words(error_boundary, 1000)
    coins = [
        law_of(lambda ws, m=m: [v >= 1000 for v in far([m] * len(ws), ws)]) for m in (LOW, WORDS // 3, HIGH)
    ]
    assert all(abs(c[True] - coins[0][True]) < SMALL for c in coins)
    above = far([LOW], [LOW])[0] >= 1000
    shares = {LOW: coins[0][above], HIGH: coins[0][not above]}
    for count in (1, 3, 4, 5, 9):
        read = two_words(error_boundary, count)
        sides = [(share, law_of(lambda ws, s=s, r=read: r(ws, [s] * len(ws)))) for s, share in shares.items()]
        same(mixed(sides), shown(count, laplace(Fraction(2)), threshold))


def test_discrete_gaussian_noise() -> None:
    """A word's last bit is the side, the others the size."""
    one = Gaussian(sensitivity=L2(1), noise_std=2, dimension=500)

    def read(words: Sequence[int], side: int) -> list[Any]:
        source = Words([2 * w + side for w in words] + [LOW])
        values = one.release(np.full(len(words) + 1, 7), source=source).values
        assert source.used_up
        return [int(v) for v in values[:-1]]

    sides = [(Decimal(1) / 2, law_of(lambda ws, s=s: read(ws, s), WORDS >> 1)) for s in (0, 1)]
    same(mixed(sides), {7 + k: p for k, p in gaussian(Decimal(4)).items()})


def test_names_and_counts_of_unknown_keys() -> None:
    """The largest probabilities that (1, 1/100) allows, from the definition, and the steps between them."""
    one, grow, delta = OptimalSelection(epsilon=1, delta=Fraction(1, 100)), Decimal(1).exp(), Decimal("0.01")
    reached = [Decimal(0)]
    for _ in range(12):
        p = reached[-1]
        reached.append(min(grow * p + delta, 1 - (1 - p - delta) / grow, Decimal(1)))
    for n in (1, 2, 3, 5, 9):
        named = law_of(lambda ws, n=n: one.select(np.full(len(ws), n), source=Words(ws)).mask.tolist())
        same(named, {True: reached[n], False: 1 - reached[n]} if reached[n] < 1 else {True: Decimal(1)})

        def counted(ws: Sequence[int], n: int = n) -> list[Any]:
            out = one.release_counts(np.full(len(ws), n), source=Words(ws))
            return [int(c) if m else None for c, m in zip(out.counts, out.mask, strict=True)]

        found = law_of(counted)
        law: Law = {n + one.distribution.center - j: reached[j] - reached[j - 1] for j in range(1, n + 1)}
        law = {k: p for k, p in law.items() if p}
        same(found, law | ({None: 1 - reached[n]} if reached[n] < 1 else {}))


def test_selections() -> None:
    """One word; weights e^(epsilon score / 2)."""
    one, scores = Exponential(epsilon=1, sensitivity=Score(1)), [3.0, 1.5, 0.0, 3.0]
    found = law_of(lambda ws: [one.choose(scores, source=Words([w])).index for w in ws])
    weights = [(Decimal(s) / 2).exp() for s in scores]
    same(found, {i: w / sum(weights) for i, w in enumerate(weights)})


def test_propose_test_release() -> None:
    """Four words: the test's size and side, then those of the value, which the test's do not move."""
    one = MedianByTest(proposed=L1(1), test_epsilon=3, release_epsilon=4, delta=Fraction(1, 100))
    values = np.array(
        [0] * 3 + [1] * 6
    )  # all within 1; two rows away from where nothing is known: distance 4

    def told(*words: int) -> Any:
        out = one.release(values, source=Words(*([w] for w in words)))
        return None if out.released is None else int(out.released.values)

    test, noise = laplace(Fraction(1, 3)), laplace(Fraction(1, 4))
    threshold = next(t for t in range(50) if sum(p for x, p in test.items() if x > t) <= Decimal("0.01"))
    passing = sum(p for x, p in test.items() if 4 + x > threshold)
    assert 0 < passing < 1

    def halves(size: Callable[[int, int], Any], coin: Decimal, low_is_coin: bool) -> Law:
        """Both sides of a coin, each with the law of its sizes."""
        laws = {s: law_of(lambda ws, s=s: [size(w, s) for w in ws]) for s in (LOW, HIGH)}
        return mixed([(coin if (s == LOW) == low_is_coin else 1 - coin, law) for s, law in laws.items()])

    # The value, where the test is passed by a size of 0: its coin by halving, then its sizes.
    passed = next((m, s) for m in (LOW, HIGH) for s in (LOW, HIGH) if told(m, s, HIGH, HIGH) is not None)
    coin = law_of(lambda ws: [told(*passed, HIGH, s) for s in ws])
    low = told(*passed, HIGH, LOW)
    value = halves(lambda m, s: told(*passed, m, s), coin[low], True)
    same(value, {1 + x: p for x, p in noise.items()})
    # The test, by a size at which its coin decides, if there is one, else by the definition of its coin.
    below = (-Decimal(3)).exp() / (1 + (-Decimal(3)).exp())
    outcome = halves(lambda m, s: told(m, s, HIGH, HIGH) is not None, below, _is_negative(LOW))
    assert abs(outcome[True] - passing) < SMALL


def _is_negative(word: int) -> bool:
    """Whether noise with this word for its side is below 0, whatever its size."""
    drawn = DiscreteLaplace(noise_scale=Fraction(1, 3)).sample(size=2, source=Words([HIGH] * 2, [word] * 2))
    return bool(drawn[0] < 0)


@pytest.mark.parametrize("name", DOORS)
def test_cells_have_words_of_their_own(name: str) -> None:
    """Each word moves one cell at most, each cell is moved by words that move no other, and all are used."""
    error_boundary, size = DOORS[name][0], 7
    words = [int(w) for w in SeededSource(seed=3).words(2 * size)]

    def run(given: list[int]) -> list[Any]:
        source = Words(given[:size], given[size:])
        out: list[Any] = error_boundary(np.full(size, 50), source)
        assert source.used_up
        assert source.others == 0
        return out

    plain = run(words)
    owned: list[list[int]] = [[] for _ in plain]
    for place in range(2 * size):
        moved: set[int] = set()
        for other in (LOW, HIGH, WORDS // 3, words[place] ^ (1 << 63)):
            changed = run([*words[:place], other, *words[place + 1 :]])
            moved |= {i for i, (a, b) in enumerate(zip(plain, changed, strict=True)) if a != b}
        assert len(moved) == 1, place
        owned[moved.pop()].append(place)
    assert owned == [[i, size + i] for i in range(size)]


@dataclass
class Drawn:
    """One draw: what it gave, from which to which word it drew, and how to have it again."""

    values: np.ndarray
    start: int
    stop: int
    again: Callable[[Source], np.ndarray]


@contextlib.contextmanager
def drawn() -> Iterator[list[Drawn]]:
    """Every draw inside, in order."""
    found: list[Drawn] = []
    with pytest.MonkeyPatch.context() as patch:
        for kind, name in (
            (DiscreteLaplace, "sample"), (DiscreteGaussian, "sample"), (GaussianVector, "sample"),
            (KeyDistribution, "draw"), (KeyDistribution, "below"),
        ):  # fmt: skip
            patch.setattr(kind, name, _noted(getattr(kind, name), found))
        yield found


def _noted(sample: Any, found: list[Drawn]) -> Any:
    def noting(self: Any, *given: Any, **named: Any) -> Any:
        def call(source: Source) -> Any:
            if "source" in named:
                return sample(self, *given, **{**named, "source": source})
            return sample(self, *given[:-1], source, **named)

        def again(source: Source) -> np.ndarray:
            out = call(source)
            return np.array(getattr(out, "values", out))

        source = named["source"] if "source" in named else given[-1]
        start, out = source.asked, call(source)
        values = np.array(getattr(out, "values", out))
        found.append(Drawn(values=values, start=start, stop=source.asked, again=again))
        return out

    return noting


def test_a_curators_draws_follow_each_other_and_are_those_of_their_laws() -> None:
    """A plan of every noise, through the curator: no word is drawn twice, and each draw again from its own words alone
    is the same; what is released is the true count and the draw."""
    data = pa.table({"g": [str(i % 5) for i in range(400)], "x": [i % 10 for i in range(400)]})
    asks = [
        tacit.query(tacit.count(by="g"), name="laplace", epsilon=1),
        tacit.query(tacit.count(by="g"), name="gaussian", mu=1),
        tacit.query(tacit.mean("x", by="g"), name="mean", epsilon=1),
        tacit.query(tacit.sparse_histogram(["g", "x"]), name="sparse", epsilon=1, delta=1e-3),
    ]
    stream = [int(w) for w in SeededSource(seed=8).words(4000)]
    source = Stream(stream)
    budget = tacit.GaussianDP(mu=100)
    held = tacit.Curator(data, protect=tacit.rows(), schema=COLUMNS, budget=budget, source=source)
    with held, drawn() as found:
        answers = [held.release(one) for one in asks]
    assert len(found) >= len(asks)
    assert all(one.stop <= other.start for one, other in pairwise(found)), "a word was drawn twice"
    for one in found:
        again = Stream(stream[one.start : one.stop])
        assert np.array_equal(one.again(again), one.values)
        assert again.asked == one.stop - one.start
    for answer, one in zip(answers[:2], found, strict=False):
        noise = np.ravel(np.asarray(answer.noisy.parts["count"])) - np.array([80] * 5 + [0] * 91)
        assert (noise == np.ravel(one.values)).all()
