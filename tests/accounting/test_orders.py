"""Neighbours come in two orders, and a mechanism may tell more in one of them: the worse one is what is paid.

Tables are written down here with what each order reaches, from the definition. For a person who is added or removed
the first law is that of the data with them; where somebody is replaced neither table comes first, so that two
releases may turn opposite ways.
"""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import pytest

import tacit
from support import independent as second
from tacit.accounting import account, profile_of
from tacit.accounting import events as e
from tacit.guarantees import Neighbours

FEW, MANY = (0.9, 0.1), (0.5, 0.5)
THREE, OTHER = (0.70, 0.25, 0.05), (0.25, 0.40, 0.35)
GONE, THERE = (0.5, 0.5, 0.0), (0.4, 0.4, 0.2)
"""What shows in a fifth of the cases where the person is there, and never where they are not."""
TABLES = [(FEW, MANY), (MANY, FEW), (THREE, OTHER), (OTHER, THREE), (GONE, THERE), (THERE, GONE)]
AT = (0.0, 0.2, 0.5, 0.8, 1.2, 1.6, 2.1, 3.0)
DELTAS = (0.0, 0.01, 0.05, 0.19)


def product(pairs: list[tuple[tuple[float, ...], tuple[float, ...]]]) -> tuple[list[float], list[float]]:
    p, q = [1.0], [1.0]
    for one, other in pairs:
        p, q = [a * b for a in p for b in one], [a * b for a in q for b in other]
    return p, q


def never_below(events: list[e.Event], p: list[float], q: list[float], relation: Neighbours) -> None:
    """At every epsilon and at every delta, by the account and by the profile."""
    curve = profile_of(events, neighbours=relation)
    for epsilon in AT:
        true = second.both(p, q, epsilon)
        assert account(events, epsilon=epsilon, neighbours=relation).delta.high >= true - 1e-12
        assert curve.delta(epsilon) >= true - 1e-12
    for delta in DELTAS:
        promised = account(events, delta=delta, neighbours=relation).epsilon.high
        if math.isfinite(promised):
            assert second.both(p, q, promised) <= delta + 1e-9


def test_the_tables_are_dearer_in_one_order() -> None:
    """What the rest stands on: adding costs more than removing for the first, and less for the second."""
    assert second.hockey_stick(MANY, FEW, 0.8) > 0.17
    assert second.hockey_stick(FEW, MANY, 0.8) == 0
    assert second.hockey_stick(THERE, GONE, 9.0) == 0.2
    assert second.hockey_stick(GONE, THERE, 0.3) == 0


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize(("p", "q"), TABLES)
def test_the_worse_order_is_paid(p: tuple[float, ...], q: tuple[float, ...], relation: Neighbours) -> None:
    table = e.TabulatedEvent(p=p, q=q)
    never_below([table], list(p), list(q), relation)
    # Not more than the worse order either: this is what was run.
    for epsilon in AT:
        found = account(table, epsilon=epsilon, neighbours=relation).delta
        assert found.high <= second.both(p, q, epsilon) * (1 + 1e-6) + 1e-12
        assert found.low <= second.both(p, q, epsilon) + 1e-12


@pytest.mark.parametrize(("p", "q"), TABLES)
def test_a_sample_in_the_worse_order(p: tuple[float, ...], q: tuple[float, ...]) -> None:
    """The person is in the sample with some chance, and with the rest the data are those without them."""
    for rate in (0.3, 1.0):
        mixed = [rate * a + (1 - rate) * b for a, b in zip(p, q, strict=True)]
        event = e.PoissonSampledEvent(event=e.TabulatedEvent(p=p, q=q), sampling_rate=rate)
        never_below([event], mixed, list(q), Neighbours.ADD_OR_REMOVE)


@pytest.mark.parametrize("tables", list(itertools.combinations_with_replacement(TABLES[:4], 2)))
def test_several_about_one_person(tables: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]) -> None:
    """Added or removed: each table's first law is with the person. Replaced: every way to turn the tables."""
    events: list[e.Event] = [e.TabulatedEvent(p=p, q=q) for p, q in tables]
    never_below(events, *product(list(tables)), Neighbours.ADD_OR_REMOVE)
    for turned in itertools.product((False, True), repeat=len(tables)):
        pairs = [(q, p) if turn else (p, q) for turn, (p, q) in zip(turned, tables, strict=True)]
        never_below(events, *product(pairs), Neighbours.REPLACE_ONE)


def test_a_repeated_table_may_turn_too() -> None:
    for times in (2, 3):
        event = e.RepeatedEvent(event=e.TabulatedEvent(p=FEW, q=MANY), times=times)
        for flips in range(times + 1):
            pairs = [(MANY, FEW)] * flips + [(FEW, MANY)] * (times - flips)
            never_below([event], *product(pairs), Neighbours.REPLACE_ONE)
        never_below([event], *product([(FEW, MANY)] * times), Neighbours.ADD_OR_REMOVE)


def test_guarantees_compose_in_every_order() -> None:
    """The algebra, too: profiles of two replaced releases may turn opposite ways."""
    curve = tacit.Profile.from_pair(FEW, MANY)
    for unit in (tacit.rows(neighbours="replace-one"), tacit.rows()):
        one = tacit.Guarantee(bound=curve, unit=unit)
        other = tacit.Guarantee(bound=tacit.Profile.from_pair(THREE, OTHER), unit=unit)
        replaced = unit.neighbours is Neighbours.REPLACE_ONE
        for parts, made in (
            ([(FEW, MANY)] * 2, [tacit.compose(one, one), tacit.repeat(one, 2)]),
            ([(FEW, MANY), (THREE, OTHER)], [tacit.compose(one, other)]),
        ):
            turns = itertools.product((False, True), repeat=2) if replaced else [(False, False)]
            for turned in turns:
                p, q = product([(b, a) if t else (a, b) for t, (a, b) in zip(turned, parts, strict=True)])
                for epsilon in AT:
                    for both in made:
                        assert both.bound.delta(epsilon) >= second.both(p, q, epsilon) - 1e-12


def test_the_worst_of_both_orders_is_one_table() -> None:
    """Exact numbers: the larger of both curves at every t, and below no convex curve that is."""
    table = e.TabulatedEvent(p=(Fraction(9, 10), Fraction(1, 10)), q=(Fraction(1, 2), Fraction(1, 2)))  # type: ignore[arg-type]
    pairs = table.pairs(Neighbours.REPLACE_ONE)
    assert pairs is not None
    worst = pairs[0]
    assert pairs[1] == worst
    assert worst.symmetric
    p, q = worst.p, worst.q  # type: ignore[attr-defined]
    assert sum(p) == sum(q) == 1
    for t in (Fraction(k, 16) for k in range(1, 200)):
        curve = sum(max(a - t * b, 0) for a, b in zip(p, q, strict=True))
        one = max(Fraction(9, 10) - t / 2, 0) + max(Fraction(1, 10) - t / 2, 0)
        other = max(Fraction(1, 2) - t * 9 / 10, 0) + max(Fraction(1, 2) - t / 10, 0)
        assert curve == max(one, other)


@pytest.mark.parametrize("seed", range(40))
def test_a_replaced_table_has_the_larger_of_both_curves(seed: int) -> None:
    """sup_S P(S) - t Q(S) by all sets of outcomes, in fractions, against the pair that stands for both orders."""
    rng = random.Random(seed)
    size = rng.randint(2, 5)
    laws = []
    for _ in range(2):
        weights = [rng.choice((0, 1, 2, 7, rng.randint(1, 40))) for _ in range(size)]
        weights[rng.randrange(size)] += 1
        laws.append([Fraction(w, sum(weights)) for w in weights])
    if laws[0] == laws[1]:
        return
    event = e.TabulatedEvent(p=laws[0], q=laws[1])
    (pair, other) = event.pairs(Neighbours.REPLACE_ONE)  # type: ignore[misc]
    assert pair == other
    p, q = (event._pair.p, event._pair.q)
    sets = list(itertools.product((0, 1), repeat=len(p)))
    ratios = [a / b for a, b in zip(p, q, strict=True) if a and b]
    near = [*ratios, *(1 / r for r in ratios), *(rng.random() * 3 for _ in range(12)), 0, 1, 100]
    for t in map(Fraction, near):
        wanted = max(
            sum(s * (a - t * b) for s, a, b in zip(some, *way, strict=True))
            for some in sets
            for way in ((p, q), (q, p))
        )
        assert sum(max(a - t * b, Fraction(0)) for a, b in zip(pair.p, pair.q, strict=True)) == wanted
    assert sum(pair.p) == sum(pair.q) == 1
    rising = [a * d - b * c for (a, b), (c, d) in itertools.pairwise(zip(pair.p, pair.q, strict=True))]
    assert all(x < 0 for x in rising)
