"""Shuffled local answers: the bound against every data set of few people, and the parts of its proof."""

from __future__ import annotations

import itertools
import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.accounting import events
from tacit.accounting.codec import dumps, loads, parse
from tacit.audit import opinion_on_certificate
from tacit.errors import InvalidParameter, NoLaw
from tacit.guarantees.units import Neighbours
from tacit.mechanisms import RandomizedResponse
from tacit.pld import ShuffledPair


def response(epsilon: float, k: int) -> np.ndarray:
    """Randomised response as a table: a row a category."""
    return (np.ones((k, k)) + np.eye(k) * math.expm1(epsilon)) / (math.exp(epsilon) + k - 1)


def subsets(epsilon: float, k: int, d: int) -> np.ndarray:
    sets = list(itertools.combinations(range(k), d))
    rows = np.array([[math.exp(epsilon) if x in s else 1.0 for s in sets] for x in range(k)])
    return rows / rows.sum(axis=1, keepdims=True)


def parities(epsilon: float, k: int) -> np.ndarray:
    size = 1 << k.bit_length()
    rows = np.array(
        [
            [math.exp(epsilon) if bin((x + 1) & y).count("1") % 2 == 0 else 1.0 for y in range(size)]
            for x in range(k)
        ]
    )
    return rows / rows.sum(axis=1, keepdims=True)


def multisets(rows: np.ndarray, data: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """The law of how often each message was sent, from the definition."""
    law = {(0,) * rows.shape[1]: 1.0}
    for x in data:
        new: dict[tuple[int, ...], float] = {}
        for seen, mass in law.items():
            for y, chance in enumerate(rows[x]):
                after = (*seen[:y], seen[y] + 1, *seen[y + 1 :])
                new[after] = new.get(after, 0.0) + mass * chance
        law = new
    return law


def worst(rows: np.ndarray, people: int, epsilons: tuple[float, ...]) -> np.ndarray:
    """The largest hockey-stick divergence over all data of the others and all changes of one person's."""
    found = np.zeros(len(epsilons))
    for others in itertools.combinations_with_replacement(range(len(rows)), people - 1):
        laws = [multisets(rows, (x, *others)) for x in range(len(rows))]
        for p, q in itertools.permutations(laws, 2):
            a, b = np.array([p[s] for s in p]), np.array([q[s] for s in p])
            for i, e in enumerate(epsilons):
                found[i] = max(found[i], np.maximum(a - math.exp(e) * b, 0).sum())
    return found


@cache
def _coin(c: int) -> np.ndarray:
    return np.array([math.comb(c, j) for j in range(c + 1)]) / 2**c


def cell(c: int, a: float, e: float) -> float:
    """The pair (c, a) at e."""
    j = np.arange(c + 1)
    return float((_coin(c) * np.maximum(a + j - math.exp(e) * (a + c - j), 0)).sum() / (a + c / 2))


def companions(n: int, epsilon: float, e: float, chance: float) -> float:
    """Bin(n - 1, chance) companions, each for one value or the other by a fair coin: no run, no window."""
    return sum(
        math.comb(n - 1, c) * chance**c * (1 - chance) ** (n - 1 - c)
        * cell(c + 1, (c + 1) / math.expm1(epsilon), e)
        for c in range(n)
    )  # fmt: skip


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.5])
@pytest.mark.parametrize(("k", "people"), [(2, 1), (2, 6), (3, 5), (4, 4)])
def test_randomised_response_by_enumeration(epsilon: float, k: int, people: int) -> None:
    """shuffled-responses: above every data set of the others, and by less than a third."""
    steps = (0.0, 0.1, 0.3, epsilon * 0.8)
    true = worst(response(epsilon, k), people, steps)
    pair = ShuffledPair(epsilon=epsilon, people=people, outcomes=k)
    for e, value in zip(steps, true, strict=True):
        bound = pair.hockey_stick(e).high
        assert bound >= value * (1 - 1e-12)
        assert bound <= 1.34 * value + 1e-15
        # any mechanism of this epsilon is no better
        assert ShuffledPair(epsilon=epsilon, people=people).hockey_stick(e).high >= bound * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_balanced_responses_by_enumeration(epsilon: float) -> None:
    """Subsets and parities by their own uniform part: above every data set, below the bound of all mechanisms."""
    steps = (0.0, 0.2, epsilon * 0.7)
    for rows, design, people in (
        (subsets(epsilon, 4, 2), (12, 6, 2), 3),
        (subsets(epsilon, 3, 2), (6, 4, 2), 5),
        (parities(epsilon, 3), (4, 2, 1), 4),
    ):
        names = dict(zip(("outcomes", "supporting", "shared"), design, strict=True))
        own = ShuffledPair(epsilon=epsilon, people=people, **names)
        true = worst(rows, people, steps)
        for e, value in zip(steps, true, strict=True):
            assert value * (1 - 1e-12) <= own.hockey_stick(e).high
        assert own.hockey_stick(0.0).high <= 1.35 * true[0]
        assert (
            own.hockey_stick(0.1).high < ShuffledPair(epsilon=epsilon, people=people).hockey_stick(0.1).high
        )
        assert own._atoms().p.sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_any_mechanism_by_enumeration(epsilon: float) -> None:
    """Subsets, parities, and tables of three messages that nobody thought of; all with the same epsilon."""
    draw = np.random.default_rng(7)
    tables = [subsets(epsilon, 4, 2), parities(epsilon, 3)]
    for _ in range(6):
        raw = np.exp(draw.uniform(0, epsilon, (3, 3)))
        # columns within e^epsilon of each other, rows that add up to 1 with a message of their own for the rest
        raw = raw / (raw.sum(axis=1).max() * 2)
        rest = 1 - raw.sum(axis=1, keepdims=True)
        tables.append(np.concatenate([raw, rest], axis=1))
    steps = (0.0, 0.2, epsilon * 0.7)
    for rows in tables:
        loss = max(float(np.abs(np.log(a / b)).max()) for a, b in itertools.permutations(rows, 2))
        assert loss <= epsilon * (1 + 1e-12)
        bounds = [ShuffledPair(epsilon=epsilon, people=3).hockey_stick(e).high for e in steps]
        assert (worst(rows, 3, steps) <= np.array(bounds) * (1 + 1e-12)).all()


@pytest.mark.parametrize("n", [2, 15, 200])
def test_the_sum_over_companions(n: int) -> None:
    for epsilon, e in itertools.product((0.5, 2.0), (0.0, 0.05, 0.4, 1.5)):
        for k, chance in ((0, math.exp(-epsilon)), (2, 2 / (1 + math.exp(epsilon)))):
            found = ShuffledPair(epsilon=epsilon, people=n, outcomes=k).hockey_stick(e).high
            summed = companions(n, epsilon, e, chance)
            assert summed * (1 - 1e-11) <= found <= summed * (1 + 1e-8) + 1e-18


def test_parts_of_the_proof() -> None:
    """(c, a) is no better with a smaller a, nor with more answers at the same 1/(a + c/2); companions help."""
    for c, e in itertools.product((1, 2, 5, 12), (0.0, 0.1, 0.7)):
        for a in (0.1, 1.0, 9.0):
            assert cell(c, a, e) <= cell(c, a * 0.9, e) + 1e-15
            assert cell(c, a + 0.5, e) <= cell(c + 1, a, e) + 1e-15
        assert cell(c + 1, (c + 1) / 1.7, e) <= cell(c, c / 1.7, e) + 1e-15


def test_runs_cost_little() -> None:
    """10,000 people, where runs of companions are taken together: within 0.1% of the sum of all in floats."""
    from scipy.special import gammaln

    n, epsilon = 10_000, 1.0
    chance = 2 / (1 + math.e)
    c = np.arange(4900, 5860)
    logs = (
        gammaln(n)
        - gammaln(c + 1)
        - gammaln(n - c)
        + c * math.log(chance)
        + (n - 1 - c) * math.log1p(-chance)
    )
    for e in (0.01, 0.03):
        total = 0.0
        for count, weight in zip(c + 1, np.exp(logs), strict=True):
            j = np.arange(count // 2 - 350, count // 2 + 350)
            coins = np.exp(gammaln(count + 1) - gammaln(j + 1) - gammaln(count - j + 1) - count * math.log(2))
            a = count / math.expm1(epsilon)
            total += weight * float(
                (coins * np.maximum(a + j - math.exp(e) * (a + count - j), 0)).sum() / (a + count / 2)
            )
        found = ShuffledPair(epsilon=epsilon, people=n, outcomes=2).hockey_stick(e).high
        assert total * (1 - 1e-6) <= found <= total * 1.001


def test_many_people_and_many_rounds() -> None:
    def epsilon(text: str) -> float:
        return tacit.account(parse(text).make(None), delta=1e-8, neighbours="replace-one").epsilon.high

    one = epsilon("shuffled_randomized_response epsilon=1 people=1000000")
    assert 0.00495 < one < 0.0051
    assert epsilon("shuffled_randomized_response epsilon=1 categories=50 people=1000000") < one / 3
    assert one < epsilon("shuffled_pure epsilon=1 people=1000000") < 0.0062
    rounds = epsilon("shuffled_randomized_response epsilon=1 people=10000 times=4")
    single = epsilon("shuffled_randomized_response epsilon=1 people=10000")
    assert 1.5 * single < rounds < 4 * single


def test_two_rounds_by_enumeration() -> None:
    """The product of pairs is above two shuffles of the same people."""
    rows, e = response(1.0, 2), 0.6
    true = 0.0
    for others in itertools.combinations_with_replacement(range(2), 3):
        p, q = (multisets(rows, (x, *others)) for x in range(2))
        a, b = np.array([p[s] for s in p]), np.array([q[s] for s in p])
        true = max(true, float(np.maximum(np.outer(a, a) - math.exp(e) * np.outer(b, b), 0).sum()))
    event = events.ShuffledEvent(event=events.RandomizedResponseEvent(epsilon=1.0), people=4)
    found = tacit.account(
        events.RepeatedEvent(event=event, times=2), epsilon=e, neighbours="replace-one"
    ).delta.high
    assert true <= found <= 1.5 * true


def at(event: events.Event, delta: float) -> float:
    return tacit.account(event, delta=delta, neighbours="replace-one").epsilon.high


def test_what_stays_beside_it() -> None:
    event = events.ShuffledEvent(event=RandomizedResponse(epsilon=1, categories=5).event, people=1000)
    assert event.pure() == 1.0  # the local guarantee
    assert loads(dumps(event)) == event
    assert at(event, 0.0) == 1.0
    assert at(event, 1e-6) < 0.2
    assert event.renyi(2, neighbours=Neighbours.REPLACE_ONE) < 0.01  # type: ignore[operator]
    both = events.ComposedEvent(
        events=(events.PureEvent(epsilon=0.5), events.RandomizedResponseEvent(epsilon=1))
    )
    assert events.ShuffledEvent(event=both, people=9).pure() == 1.5


def certified(event: events.Event, epsilon: float, delta: float = 1e-6) -> Any:
    """What the second opinion says about an epsilon that is stated for this event."""
    bound = {"kind": "approximate", "epsilon": epsilon, "delta": delta}
    if delta == 0:
        bound = {"kind": "pure", "epsilon": epsilon}
    return opinion_on_certificate(
        {
            "guarantee": {"bound": bound, "condition": {"kind": "always"}},
            "event": [json.loads(dumps(event))],
            "neighbours": "replace-one",
        }
    )


@pytest.mark.parametrize(
    ("inner", "people"),
    [
        (events.RandomizedResponseEvent(epsilon=1), 30),
        (events.RandomizedResponseEvent(epsilon=2, categories=4), 8),
        (events.BalancedResponseEvent(epsilon=1, outcomes=4, supporting=2, shared=1), 8),
        (events.PermuteAndFlipEvent(epsilon=1), 90),
    ],
)
def test_the_second_opinion_confirms(inner: events.Event, people: int) -> None:
    """Its own sum, in balls, over every number of companions."""
    event = events.ShuffledEvent(event=inner, people=people)
    stated = at(event, 1e-6)
    assert certified(event, stated).confirmed
    assert certified(event, 0.9 * stated).confirmed is False
    assert certified(event, event.pure(), 0).confirmed
    assert certified(event, 0.9 * event.pure(), 0).confirmed is False


def test_what_the_second_opinion_does_not_know_is_named() -> None:
    event = events.ShuffledEvent(event=events.RandomizedResponseEvent(epsilon=1), people=100_000)
    found = certified(event, 0.1)
    assert found.confirmed is None
    assert "more people" in found.why
    both = events.ComposedEvent(events=(events.PureEvent(epsilon=0.5), events.PureEvent(epsilon=1)))
    assert certified(events.ShuffledEvent(event=both, people=9), 1.5, 0).confirmed is None
    sets = events.BalancedResponseEvent(epsilon=1, outcomes=90, supporting=18, shared=2)
    assert certified(sets, at(sets, 0.01), 0.01).confirmed
    assert certified(sets, 0.9 * at(sets, 0.01), 0.01).confirmed is False


def test_refusals() -> None:
    event = events.ShuffledEvent(event=events.RandomizedResponseEvent(epsilon=1), people=100)
    with pytest.raises(NoLaw):
        tacit.account(event, delta=1e-6, neighbours="add-or-remove")
    with pytest.raises(NoLaw):
        events.ShuffledEvent(event=events.GaussianEvent(noise_multiplier=1), people=100)
    with pytest.raises(NoLaw):
        events.ShuffledEvent(event=events.ApproximateEvent(epsilon=1, delta=1e-6), people=100)
    sampled = events.PoissonSampledEvent(event=events.PureEvent(epsilon=1), sampling_rate=0.1)
    for inner in (event, sampled, 3, None):
        with pytest.raises(InvalidParameter):
            events.ShuffledEvent(event=inner, people=100)  # type: ignore[arg-type]
    for people in (0, -1, 1.5, math.nan, True, "3"):
        with pytest.raises(InvalidParameter):
            events.ShuffledEvent(event=events.PureEvent(epsilon=1), people=people)  # type: ignore[arg-type]
    alone = events.ShuffledEvent(event=events.PureEvent(epsilon=1), people=1)
    assert at(alone, 0.0) == 1.0
    large = events.ShuffledEvent(event=events.PureEvent(epsilon=80), people=10**6)
    assert at(large, 1e-9) <= 80
    for inside in ({"epsilon": 0, "people": 3}, {"epsilon": 1, "people": 0}, {"epsilon": 60, "people": 3}):
        with pytest.raises(InvalidParameter):
            ShuffledPair(**inside)
    with pytest.raises(InvalidParameter):
        ShuffledPair(epsilon=1, people=3, outcomes=1)
