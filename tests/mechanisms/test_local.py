"""Local collection: laws of the answers from their definition, intervals that cover, labels, bad input."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import tacit
from tacit.errors import EmptyComposition, InvalidParameter
from tacit.mechanisms import RandomizedResponse
from tacit.mechanisms.local import ResponseLaw
from tacit.noise import SeededSource

STATES = [f"state {i}" for i in range(50)]


def binomial(n: int, p: float) -> np.ndarray:
    return np.array([math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)])


def both(n: int, c: int, p: float, q: float) -> np.ndarray:
    """The law of how often a category is named, by convolution."""
    return np.convolve(binomial(c, p), binomial(n - c, q))


def law_of(n: int, p: float, q: float) -> ResponseLaw:
    return ResponseLaw(people=n, p=p, q=q, gap=p - q)


@pytest.mark.parametrize(("n", "p", "q"), [(1, 0.7, 0.3), (12, 0.6, 0.1), (40, 0.3, 0.25), (60, 0.99, 0.5)])
def test_tails_and_intervals_by_enumeration(n: int, p: float, q: float) -> None:
    law = law_of(n, p, q)
    laws = [both(n, c, p, q) for c in range(n + 1)]
    for c, x in itertools.product((0, n // 3, n), range(n + 1)):
        assert law.at_most(x, c) == pytest.approx(laws[c][: x + 1].sum(), rel=1e-9, abs=1e-14)
        assert law.at_least(x, c) == pytest.approx(laws[c][x:].sum(), rel=1e-9, abs=1e-14)
    for miss in (0.05, 0.3):
        ends = [law.interval(x, miss) for x in range(n + 1)]
        for x, (low, high) in enumerate(ends):
            kept = [c for c in range(n + 1) if min(laws[c][x:].sum(), laws[c][: x + 1].sum()) > miss / 2]
            if kept:
                assert (low, high) == (kept[0], kept[-1])
        for c in range(n + 1):
            covered = sum(laws[c][x] for x, (low, high) in enumerate(ends) if low <= c <= high)
            assert covered >= 1 - miss - 1e-12
        worst = law.worst_quantile(miss)
        for c in range(n + 1):
            away = np.abs((np.arange(n + 1) - n * q) / (p - q) - c)
            assert laws[c][away > law.quantile(c, miss)].sum() <= miss
            assert law.quantile(c, miss) <= worst


def test_both_ways_to_a_tail() -> None:
    """Listed or in closed form, at and beyond both ends."""
    from tacit.mechanisms.local import _closed_tails, _tails

    values = np.arange(-3, 124)
    for chance in (0.01, 0.5, 0.97):
        law = binomial(120, chance)
        for below in (True, False):
            summed = np.array(
                [law[: max(v + 1, 0)].sum() if below else law[max(v, 0) :].sum() for v in values]
            )
            for tails in (_tails, _closed_tails):
                assert tails(120, chance, values, below=below) == pytest.approx(summed, rel=1e-9, abs=1e-14)


def test_worst_quantile_at_every_count() -> None:
    """Between the 33 counts at which it is computed too."""
    for n, p, q in ((200, 0.4, 0.2), (150, 0.9, 0.05)):
        law = law_of(n, p, q)
        worst = law.worst_quantile(0.05)
        assert max(law.quantile(c, 0.05) for c in range(n + 1)) <= worst


def test_fifty_categories_with_intervals_that_cover() -> None:
    """Coverage is computed from the exact law, not drawn: for every observed number, is the count inside?"""
    people, count = 20_000, 400
    question = RandomizedResponse(epsilon=1, labels=STATES)
    p, q = math.e / (math.e + 49), 1 / (math.e + 49)
    assert question._chances() == pytest.approx((p, q, p - q))
    law = question.law(people=people)
    spread = math.sqrt(count * p * (1 - p) + (people - count) * q * (1 - q))
    middle = round(count * p + (people - count) * q)
    seen = np.arange(middle - int(7 * spread), middle + int(7 * spread))
    low, high = law.intervals(seen, 0.05)
    inside = seen[(low <= count) & (count <= high)]
    # the same probability by a second road: normal approximations are good to 1e-3 here, binomials are summed
    covered = law.at_most(int(inside.max()), count) - law.at_most(int(inside.min()) - 1, count)
    assert 0.94 <= covered <= 0.97
    exact = law.quantile(count, 0.05)
    assert exact == pytest.approx(1.96 * spread / (p - q), rel=0.02)
    # the half-width where no end is cut off at 0
    for true in (3000, 8000):
        observed = round(true * p + (people - true) * q)
        ends = law.interval(observed, 0.05)
        assert (ends[1] - ends[0]) / 2 == pytest.approx(law.quantile(true, 0.05), rel=0.05)
    assert question.count_error(people=people, count=count) == exact < 1200
    assert question.count_error(people=people) < 1900  # 4,248 by Chebyshev


def test_drawn_answers_cover() -> None:
    """1,000 tables of ten categories: the misses are no more than chance allows (error probability 1e-9)."""
    labels = [f"c{i}" for i in range(10)]
    question = RandomizedResponse(epsilon=1, labels=labels)
    sizes = [5, 10, 20, 40, 80, 100, 145, 200, 200, 200]
    truth = np.repeat(labels, sizes)
    source, missed = SeededSource(seed=23), 0
    for _ in range(100):
        table = question.table(question.release(truth, source=source))
        missed += sum(not row.low <= size <= row.high for row, size in zip(table, sizes, strict=True))
    assert missed <= 1000 * 0.05 + 6 * math.sqrt(1000 * 0.05 * 0.95 * 3)
    assert question.table(truth.tolist(), simultaneous=True)["c9"].high > table["c9"].low


def test_labels_in_and_out() -> None:
    question = RandomizedResponse(epsilon=2, labels=["yes", "no", "perhaps"])
    assert question.categories == 3
    told = question.release(["yes", "no", "yes"], source=SeededSource(seed=1))
    assert set(told.values) <= {"yes", "no", "perhaps"}
    plain = RandomizedResponse(epsilon=2, categories=3)
    same = plain.release([0, 1, 0], source=SeededSource(seed=1)).values
    assert [question.labels[i] for i in same] == list(told.values)  # type: ignore[index]
    assert np.array_equal(plain.estimate(same), question.estimate(told))
    table = question.table(told)
    assert [row.label for row in table] == ["yes", "no", "perhaps"]
    assert table.shares()["no"].estimate == pytest.approx(table["no"].estimate / 3)
    assert "perhaps" in str(table)
    assert len(table) == 3
    with pytest.raises(InvalidParameter):
        told.to_floats()


@pytest.mark.parametrize(
    "call",
    [
        lambda q: q.release(["yes", "maybe-4711"]),
        lambda q: q.release([0, 1]),
        lambda q: q.release(["yes", None]),
        lambda q: q.release(["yes", math.nan]),
        lambda q: q.table(["maybe-4711"]),
        lambda q: q.table([["yes", "no"]]),
        lambda q: q.table(["yes"])["maybe"],
        lambda q: q.table(["yes"], confidence=1),
        lambda q: q.table(["yes"], simultaneous="no"),
        lambda q: q.count_error(people=3, count=4),
    ],
)
def test_categories_that_are_not_known(call) -> None:
    with pytest.raises(InvalidParameter) as caught:
        call(RandomizedResponse(epsilon=1, labels=["yes", "no"]))
    assert "4711" not in str(caught.value)


@pytest.mark.parametrize("labels", ["yes", ["yes"], ["a", "a"], ["a", 1], ["a", ""], 7, {"a", "b"}])
def test_bad_labels(labels: object) -> None:
    with pytest.raises(InvalidParameter):
        RandomizedResponse(epsilon=1, labels=labels)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        RandomizedResponse(epsilon=1, categories=3, labels=["a", "b"])


def test_no_answers() -> None:
    with pytest.raises(EmptyComposition):
        RandomizedResponse(epsilon=1).table([])
    assert issubclass(EmptyComposition, tacit.TacitError)
