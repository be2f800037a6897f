"""Answers that people randomise themselves, alone and shuffled: laws of their events, and groups and compositions from
the definition, over all data of few people."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings

import tacit
from support import strategies as s
from tacit.accounting import account, bound_of
from tacit.accounting import events as e
from tacit.accounting.codec import dumps, loads
from tacit.guarantees.units import Neighbours

Rows = np.ndarray
AT = (0.0, 0.1, 0.4, 1.0)


def delta(event: e.Event | list[e.Event], epsilon: float) -> float:
    return account(event, epsilon=epsilon, neighbours="replace-one").delta.high


@given(s.balanced_responses())
@settings(max_examples=40, deadline=None)
def test_a_balanced_response_sums_over_what_supports_two_categories(event: e.BalancedResponseEvent) -> None:
    """balanced-response: shared outcomes tell nothing, nor do those that support neither."""
    grown = math.exp(event.epsilon)
    total = event.supporting * grown + event.outcomes - event.supporting
    one_only = event.supporting - event.shared
    for epsilon in AT:
        summed = one_only * max(grown - math.exp(epsilon), 0) / total
        # of the other order of outcomes nothing is above 0 for epsilon >= 0
        assert delta(event, epsilon) == pytest.approx(summed, rel=1e-9, abs=1e-14)
    assert event.pure() == event.epsilon
    assert loads(dumps(event)) == event


@given(s.shuffled)
@settings(max_examples=15, deadline=None)
def test_shuffling_never_costs_and_more_people_hide_more(event: e.ShuffledEvent) -> None:
    """More people are post-processing; of balanced answers the bound is not tight enough to show it."""
    local = event.pure()
    more = e.ShuffledEvent(event=event.event, people=event.people + 7)
    tight = isinstance(event.event, e.PureEvent | e.RandomizedResponseEvent)
    for epsilon in (0.0, local / 3, local / 1.2):
        own = delta(event, epsilon)
        assert own <= delta(e.PureEvent(epsilon=local), epsilon) * (1 + 1e-9) + 1e-15
        assert delta(more, epsilon) <= own * (1 + 1e-6 if tight else 1.2) + 1e-15
    assert delta(event, local) == 0.0
    assert loads(dumps(event)) == event
    with pytest.raises(tacit.NoLaw):
        account(event, epsilon=1, neighbours="add-or-remove")


@given(s.shuffled, s.balanced_responses())
@settings(max_examples=10, deadline=None)
def test_shuffled_answers_compose_like_other_events(
    event: e.ShuffledEvent, other: e.BalancedResponseEvent
) -> None:
    twice = [delta(x, 0.3) for x in (e.RepeatedEvent(event=event, times=2), [event, event])]
    assert twice[0] == twice[1] >= delta(event, 0.3) * (1 - 1e-9)
    both = delta([event, other], 0.3)
    assert both == pytest.approx(delta([other, event], 0.3), rel=1e-9, abs=1e-13)
    assert both >= max(delta(event, 0.3), delta(other, 0.3)) * (1 - 1e-9)


# --- from the definition ------------------------------------------------------------------------------------
def response(epsilon: float, k: int) -> Rows:
    rows = np.ones((k, k)) + np.eye(k) * math.expm1(epsilon)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def subsets(epsilon: float, k: int, d: int) -> Rows:
    sets = list(itertools.combinations(range(k), d))
    rows = np.array([[math.exp(epsilon) if x in one else 1.0 for one in sets] for x in range(k)])
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def multiset(rows: Rows, data: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """The law of the sorted messages of these people."""
    law: dict[tuple[int, ...], float] = {}
    for messages in itertools.product(range(rows.shape[1]), repeat=len(data)):
        chance = math.prod(rows[x, y] for x, y in zip(data, messages, strict=True))
        seen = tuple(sorted(messages))
        law[seen] = law.get(seen, 0.0) + chance
    return law


def apart(p: Rows, q: Rows, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def as_arrays(laws: list[dict[tuple[int, ...], float]]) -> list[Rows]:
    return [np.array([law[seen] for seen in laws[0]]) for law in laws]


CASES = [
    (e.RandomizedResponseEvent(epsilon=1.0, categories=2), response(1.0, 2), 5),
    (e.RandomizedResponseEvent(epsilon=1.5, categories=3), response(1.5, 3), 4),
    (e.BalancedResponseEvent(epsilon=1.0, outcomes=6, supporting=4, shared=2), subsets(1.0, 3, 2), 4),
]


@pytest.mark.parametrize(("answer", "rows", "people"), CASES, ids=["bits", "three", "subsets"])
@pytest.mark.parametrize("size", [2, 3])
def test_groups_of_people_whose_answers_are_shuffled(
    answer: e.SimpleEvent, rows: Rows, people: int, size: int
) -> None:
    """The group law of the curve is above every change of `size` people among all data of the others."""
    profile = bound_of(
        e.ShuffledEvent(event=answer, people=people), accountant="pld", neighbours="replace-one"
    )
    grouped = tacit.group(profile, size=size)
    values = range(len(rows))
    for others in itertools.combinations_with_replacement(values, people - size):
        groups = list(itertools.combinations_with_replacement(values, size))
        laws = as_arrays([multiset(rows, (*own, *others)) for own in groups])
        for p, q in itertools.permutations(laws, 2):
            for epsilon in AT:
                assert grouped.delta(epsilon) >= apart(p, q, epsilon) * (1 - 1e-9) - 1e-13
    # and it says something: less than for answers that nobody shuffles
    alone = tacit.group(bound_of(answer, accountant="pld", neighbours="replace-one"), size=size)
    far = 0.9 * size * (answer.pure() or 0.0)
    assert grouped.delta(far) < alone.delta(far)


@pytest.mark.parametrize(("answer", "rows", "people"), CASES, ids=["bits", "three", "subsets"])
def test_compositions_with_shuffled_answers(answer: e.SimpleEvent, rows: Rows, people: int) -> None:
    """A shuffle of all, and beside it one more answer of the same person that is seen with their name, or a table."""
    shuffled = e.ShuffledEvent(event=answer, people=people)
    table = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
    beside = e.TabulatedEvent(p=tuple(table[0]), q=tuple(table[1]))
    for other, law in ((answer, rows[:2]), (beside, table)):
        for epsilon in (0.2, 0.8):
            found = delta([shuffled, other], epsilon)
            true = 0.0
            for rest in itertools.combinations_with_replacement(range(len(rows)), people - 1):
                p, q = as_arrays([multiset(rows, (x, *rest)) for x in (0, 1)])
                for (a, b), (c, d) in itertools.product(
                    ((p, q), (q, p)), ((law[0], law[1]), (law[1], law[0]))
                ):
                    if (a is p) == (c is law[0]):
                        true = max(true, apart(np.outer(a, c), np.outer(b, d), epsilon))
            assert true * (1 - 1e-9) <= found <= 1.5 * true + 1e-6


def test_messages_that_stay_together() -> None:
    """Two answers of each person in one envelope: the rows of both at once."""
    one, two = response(0.7, 2), response(0.5, 2)
    rows = np.einsum("ij,ik->ijk", one, two).reshape(2, 4)
    composed = e.ComposedEvent(
        events=(e.RandomizedResponseEvent(epsilon=0.7), e.RandomizedResponseEvent(epsilon=0.5))
    )
    event = e.ShuffledEvent(event=composed, people=4)
    assert event.pure() == pytest.approx(1.2)
    for epsilon in AT:
        for rest in itertools.combinations_with_replacement(range(2), 3):
            p, q = as_arrays([multiset(rows, (x, *rest)) for x in (0, 1)])
            assert delta(event, epsilon) >= max(apart(p, q, epsilon), apart(q, p, epsilon)) * (1 - 1e-9)
    assert event.pairs(Neighbours.REPLACE_ONE)
