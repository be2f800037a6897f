"""Subset selection and Hadamard response: laws by enumeration and as drawn, estimates, intervals, the choice."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

import tacit
from support.claims import tight
from tacit.errors import EmptyComposition, InvalidParameter, TacitError
from tacit.mechanisms import (
    HadamardResponse,
    LocalMechanism,
    RandomizedResponse,
    SubsetSelection,
    local_mechanism,
)
from tacit.mechanisms.subset_selection import walsh_hadamard
from tacit.noise import SeededSource


def subsets(epsilon: float, k: int, d: int) -> np.ndarray:
    """Row x: the probability of every set of d categories, from the definition in words."""
    own = d * math.exp(epsilon) / (d * math.exp(epsilon) + k - d)
    sets = list(itertools.combinations(range(k), d))
    return np.array(
        [
            [own / math.comb(k - 1, d - 1) if x in s else (1 - own) / math.comb(k - 1, d) for s in sets]
            for x in range(k)
        ]
    )


def halves(epsilon: float, k: int) -> np.ndarray:
    """Row x: the probability of every number, from the definition in words."""
    size = 1 << k.bit_length()
    even = np.array([[bin((x + 1) & y).count("1") % 2 == 0 for y in range(size)] for x in range(k)])
    own = math.exp(epsilon) / (math.exp(epsilon) + 1)
    return np.where(even, own, 1 - own) * 2 / size


def check_claims(mechanism: LocalMechanism, rows: np.ndarray, epsilon: float) -> None:
    """Laws sum to 1; the loss is at most epsilon and reaches it; the curve is the sum over outcomes."""
    assert rows.sum(axis=1) == pytest.approx(np.ones(len(rows)))
    losses = [np.abs(np.log(a / b)).max() for a, b in itertools.permutations(rows, 2)]
    assert tight(max(losses), mechanism.bound.epsilon)
    for e in (0.0, epsilon / 3, epsilon / 1.1):
        summed = max(np.maximum(a - math.exp(e) * b, 0).sum() for a, b in itertools.permutations(rows, 2))
        assert mechanism.profile.delta(e) == pytest.approx(summed, rel=1e-9)  # type: ignore[attr-defined]


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
@pytest.mark.parametrize(("k", "d"), [(2, 1), (3, 1), (3, 2), (5, 2), (6, 3), (6, 5)])
def test_subset_selection_by_enumeration(epsilon: float, k: int, d: int) -> None:
    """subset-selection and balanced-response: epsilon, curve, chances and variance."""
    mechanism = SubsetSelection(epsilon=epsilon, categories=k, subset=d)
    rows = subsets(epsilon, k, d)
    check_claims(mechanism, rows, epsilon)
    sets = list(itertools.combinations(range(k), d))
    p = sum(rows[0][i] for i, s in enumerate(sets) if 0 in s)
    q = sum(rows[0][i] for i, s in enumerate(sets) if 1 in s)
    assert mechanism._chances() == pytest.approx((p, q, p - q), rel=1e-12)
    assert mechanism.variance(people=7, count=3) == pytest.approx(
        (3 * p * (1 - p) + 4 * q * (1 - q)) / (p - q) ** 2
    )


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
@pytest.mark.parametrize("k", [2, 3, 4, 7, 8])
def test_hadamard_response_by_enumeration(epsilon: float, k: int) -> None:
    """hadamard-response: epsilon, curve, chances and variance; a quarter of the outcomes support two categories."""
    mechanism = HadamardResponse(epsilon=epsilon, categories=k)
    rows = halves(epsilon, k)
    assert rows.shape[1] == mechanism.outcomes > k
    check_claims(mechanism, rows, epsilon)
    for x, j in itertools.product(range(k), repeat=2):
        chance = rows[x][rows[j] > 1 / mechanism.outcomes].sum()
        assert chance == pytest.approx(mechanism._chances()[0 if x == j else 1])
    assert mechanism.variance(people=10, count=0) == pytest.approx(
        10 * ((math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)) ** 2
    )


def check_drawn(found: Counter[object], law: dict[object, float], n: int) -> None:
    """Each outcome as often as its law says, within 6.5 standard deviations (below 1e-9 for each)."""
    assert set(found) <= set(law)
    for outcome, chance in law.items():
        assert abs(found[outcome] - n * chance) <= 6.5 * math.sqrt(n * chance * (1 - chance)) + 1


@pytest.mark.parametrize(("k", "d"), [(4, 2), (5, 1), (4, 3)])
def test_what_subset_selection_draws(k: int, d: int) -> None:
    mechanism, n = SubsetSelection(epsilon=1.2, categories=k, subset=d), 60_000
    for x in (0, k - 1):
        drawn = mechanism.release(np.full(n, x), source=SeededSource(seed=x)).values
        law = dict(zip(itertools.combinations(range(k), d), subsets(1.2, k, d)[x], strict=True))
        check_drawn(Counter(map(tuple, drawn.tolist())), law, n)  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [2, 5])
def test_what_hadamard_response_draws(k: int) -> None:
    mechanism, n = HadamardResponse(epsilon=1.2, categories=k), 60_000
    for x in range(k):
        drawn = mechanism.release(np.full(n, x), source=SeededSource(seed=x)).values
        check_drawn(Counter(drawn.tolist()), dict(enumerate(halves(1.2, k)[x])), n)


def test_printed_variances() -> None:
    """At epsilon = 1, for a category that nobody has, n times as much."""
    for k, subset, response in ((10, 2.82, 3.63), (100, 3.59, 34.1)):
        one = SubsetSelection(epsilon=1, categories=k).variance(people=1, count=0)
        other = RandomizedResponse(epsilon=1, categories=k).variance(people=1, count=0)
        assert (round(one, 2), float(f"{other:.3g}")) == (subset, response)
    for k in (10, 33, 100):  # no other size is better
        best = SubsetSelection(epsilon=1, categories=k)
        others = [SubsetSelection(epsilon=1, categories=k, subset=d) for d in range(1, k)]
        assert best.variance(people=1, count=0) == min(o.variance(people=1, count=0) for o in others)


def test_the_choice() -> None:
    kinds = {k: type(local_mechanism(epsilon=1, categories=k).mechanism) for k in (2, 3, 10, 50, 1000, 10**6)}
    assert kinds == {
        2: RandomizedResponse, 3: RandomizedResponse, 10: SubsetSelection, 50: SubsetSelection,
        1000: SubsetSelection, 10**6: HadamardResponse,
    }  # fmt: skip
    assert isinstance(local_mechanism(epsilon=14, categories=10**6).mechanism, RandomizedResponse)
    short = local_mechanism(epsilon=1, labels=[f"c{i}" for i in range(100)], most_bits=64)
    assert isinstance(short.mechanism, HadamardResponse)
    assert "bits" in short.reason
    assert "subset selection 3.59" in short.reason
    for choice in (short, local_mechanism(epsilon=0.5, categories=30)):
        allowed = [one for one in choice.considered if one.allowed]
        assert min(one.variance for one in allowed) == choice.mechanism.variance(people=1, count=0)
    with pytest.raises(InvalidParameter):
        local_mechanism(epsilon=1, categories=1000, most_bits=5)


def test_the_transform_is_the_sum() -> None:
    counts = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    signs = np.array([[(-1) ** bin(r & y).count("1") for y in range(8)] for r in range(8)])
    assert np.array_equal(walsh_hadamard(counts), signs @ counts)
    mechanism = HadamardResponse(epsilon=1, categories=6)
    answers = np.array([0, 3, 7, 7, 5])
    assert np.array_equal(mechanism.supported(answers)[0], mechanism.supports(answers).sum(axis=0))
    rows = SubsetSelection(epsilon=1, categories=6, subset=2)
    given = [[0, 3], [5, 3], [1, 2]]
    assert np.array_equal(rows.supported(given)[0], rows.supports(given).sum(axis=0))


STATES = [f"state {i}" for i in range(50)]


@pytest.mark.parametrize("kind", [SubsetSelection, HadamardResponse])
def test_fifty_categories_with_intervals_that_cover(kind: type[LocalMechanism]) -> None:
    """local-intervals at epsilon = 1 and 20,000 people: exact coverage and half-width, and a drawn table."""
    people, count = 20_000, 400
    question = kind(epsilon=1, labels=STATES)  # type: ignore[call-arg]
    p, q, gap = question._chances()
    law = question.law(people=people)
    spread = math.sqrt(count * p * (1 - p) + (people - count) * q * (1 - q))
    middle = round(count * p + (people - count) * q)
    seen = np.arange(middle - int(5 * spread), middle + int(5 * spread))
    low, high = law.intervals(seen, 0.05)
    inside = seen[(low <= count) & (count <= high)]
    covered = law.at_most(int(inside.max()), count) - law.at_most(int(inside.min()) - 1, count)
    assert 0.94 <= covered <= 0.97
    assert law.quantile(count, 0.05) == pytest.approx(1.96 * spread / gap, rel=0.02)
    observed = round(3000 * p + (people - 3000) * q)
    ends = law.interval(observed, 0.05)
    assert (ends[1] - ends[0]) / 2 == pytest.approx(law.quantile(3000, 0.05), rel=0.05)
    # 42% and 48% of what randomised response needs for an empty state
    assert question.count_error(people=people, count=0) < 0.53 * RandomizedResponse(
        epsilon=1, labels=STATES
    ).count_error(people=people, count=0)
    told = question.release(np.repeat(STATES, 400), source=SeededSource(seed=5))
    table = question.table(told, simultaneous=True)
    assert all(row.low <= 400 <= row.high for row in table)
    assert table.estimates.sum() == pytest.approx(people, rel=0.2)


def test_a_million_categories() -> None:
    question = HadamardResponse(epsilon=1, categories=10**6)
    truth = np.concatenate([np.full(4000, 7), np.full(6000, 999_999)])
    table = question.table(question.release(truth, source=SeededSource(seed=3)), simultaneous=True)
    assert len(table) == 10**6
    assert table[7].low <= 4000 <= table[7].high
    assert table[999_999].low <= 6000 <= table[999_999].high
    assert question.outcomes == 1 << 20


@pytest.mark.parametrize(
    "call",
    [
        lambda: SubsetSelection(epsilon=1, categories=1),
        lambda: HadamardResponse(epsilon=1, categories=1),
        lambda: SubsetSelection(epsilon=0, categories=5),
        lambda: HadamardResponse(epsilon=math.nan, categories=5),
        lambda: SubsetSelection(epsilon=1, categories=5, subset=5),
        lambda: SubsetSelection(epsilon=1, categories=5, subset=0),
        lambda: SubsetSelection(epsilon=1, categories=5, subset=1.5),
        lambda: SubsetSelection(epsilon=1, categories=10**6),
        lambda: HadamardResponse(epsilon=1, categories=1 << 24),
        lambda: SubsetSelection(epsilon=1, categories=5).release([0, 5]),
        lambda: SubsetSelection(epsilon=1, categories=5).release([0.0, math.nan]),
        lambda: HadamardResponse(epsilon=1, labels=["a", "b"]).release(["a", "4711"]),
        lambda: HadamardResponse(epsilon=1, categories=5).release([[0, 1]]),
        lambda: HadamardResponse(epsilon=1, categories=5).table([8]),
        lambda: HadamardResponse(epsilon=1, categories=5).table([-1]),
        lambda: HadamardResponse(epsilon=1, categories=5).table([[1, 2]]),
        lambda: SubsetSelection(epsilon=1, categories=5, subset=2).table([[0, 0]]),
        lambda: SubsetSelection(epsilon=1, categories=5, subset=2).table([[0, 1, 2]]),
        lambda: SubsetSelection(epsilon=1, categories=5, subset=2).table([0, 1]),
        lambda: SubsetSelection(epsilon=1, labels=["a", "b", "c"], subset=1).table([["4711"]]),
        lambda: HadamardResponse(epsilon=1, labels=["a", "b"]).release(["a"]).to_floats(),
    ],
)
def test_bad_input(call) -> None:
    with pytest.raises(InvalidParameter) as caught:
        call()
    assert "4711" not in str(caught.value)


def test_nobody_and_one() -> None:
    for mechanism in (
        SubsetSelection(epsilon=1, categories=5, subset=2),
        HadamardResponse(epsilon=1, categories=5),
    ):
        empty = mechanism.release(np.empty(0, dtype=np.int64), source=SeededSource(seed=1))
        with pytest.raises(EmptyComposition):
            mechanism.table(empty)
        table = mechanism.table(mechanism.release([3], source=SeededSource(seed=1)))
        assert table.people == 1
        assert all(0 <= row.low <= row.high <= 1 for row in table)
    assert issubclass(EmptyComposition, TacitError)


def test_answers_compose_as_they_are() -> None:
    """Three answers of one person, by enumeration; and many, as randomised response of the same design."""
    rows, e = subsets(0.8, 4, 2), 0.9
    event = SubsetSelection(epsilon=0.8, categories=4, subset=2).event
    p, q = rows[0], rows[1]
    for _ in range(2):
        p, q = np.outer(p, rows[0]).ravel(), np.outer(q, rows[1]).ravel()
    true = float(np.maximum(p - math.exp(e) * q, 0).sum())
    thrice = tacit.events.RepeatedEvent(event=event, times=3)
    assert tacit.account(thrice, epsilon=e, neighbours="replace-one").delta.high == pytest.approx(
        true, rel=1e-9
    )
    design = tacit.events.BalancedResponseEvent(epsilon=0.1, outcomes=5, supporting=1, shared=0)
    known = tacit.events.RandomizedResponseEvent(epsilon=0.1, categories=5)
    for times in (1, 300):
        one, two = (
            tacit.account(
                tacit.events.RepeatedEvent(event=x, times=times), delta=1e-6, neighbours="replace-one"
            ).epsilon.high
            for x in (design, known)
        )
        assert one == pytest.approx(two, rel=1e-6)
    # leaving an answer out is another change: only the epsilon is claimed
    assert tacit.account(event, delta=1e-6).epsilon.high <= 0.8
