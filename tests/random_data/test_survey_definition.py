"""survey-overlap, from its definition: every table of few rows, every law of a row on a grid, both kinds of release."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from tacit.mechanisms import Laplace
from tacit.random_data import Overlap, OverlapCount, OverlapHistogram

SHARES = (Fraction(1, 50), Fraction(1, 8), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10))


@cache
def ratio(law: object, one: int, other: int) -> float:
    """The largest |ln| of two outputs' probabilities, over outputs between and around both counts."""
    lines = range(min(one, other) - 3, max(one, other) + 4)
    found = [(law.probability(k - one)[0], law.probability(k - other)[0]) for k in lines]  # type: ignore[attr-defined]
    return max(abs(math.log(p / q)) for p, q in found)


@pytest.mark.parametrize(("attacker", "least"), [(5, 4), (5, 3), (9, 3), (4, 2)])
@pytest.mark.parametrize("gamma", [Fraction(1, 4), Fraction(1, 2), Fraction(4, 5)])
def test_a_count(attacker: int, least: int, gamma: Fraction) -> None:
    """All rows of D, and those that the attacker puts in: the bound fails with probability gamma at most, for every
    size of the overlap. Failing is what releases do: an exact count beside another one, or a ratio above e^epsilon."""
    n, epsilon = 5, Fraction(1, 2)
    overlap = Overlap(rows=n, attacker_rows=attacker, least_overlap=least)
    count = OverlapCount(overlap=overlap, epsilon=epsilon, gamma=gamma)
    law = count.noise.distribution
    exact = [count.is_exact(c) for c in range(n + 1)]
    fails = {}
    for one, other in itertools.product(range(n + 1), repeat=2):
        if one == other:
            fails[one, other] = False
        elif exact[one] or exact[other]:
            fails[one, other] = True
        else:
            fails[one, other] = ratio(law, one, other) > float(epsilon) * (1 + 1e-9)
            # noise hides whatever the attacker can exchange
            assert not fails[one, other] or abs(one - other) > min(n, attacker) - least
    failed = 0
    for d in range(1, min(n, attacker) - least + 1):
        for p in SHARES:
            chance = Fraction(0)
            for rows in itertools.product((0, 1), repeat=n + d):
                ones = sum(rows)
                if fails[sum(rows[:n]), sum(rows[d:])]:
                    chance += p**ones * (1 - p) ** (n + d - ones)
            assert chance <= gamma
            failed += chance > 0
    # the rules do publish exact counts somewhere, and then may fail
    assert failed or not any(exact)


@pytest.mark.parametrize(
    ("least", "gamma", "exact"),
    [(6, Fraction(11, 20), True), (5, Fraction(9, 10), True), (6, Fraction(2, 5), False)],
)
def test_a_histogram(least: int, gamma: Fraction, exact: bool) -> None:
    """Seven rows in two cells, all tables, all laws: a cell that is empty in one table only gives the answer away."""
    n, cells, epsilon = 7, 2, Fraction(1)
    overlap = Overlap(rows=n, attacker_rows=7, least_overlap=least)
    made = OverlapHistogram(overlap=overlap, cells=cells, epsilon=epsilon, gamma=gamma)
    assert isinstance(made.noise, Laplace)
    assert made.empty_exact is exact
    law = made.noise.distribution
    for d in range(1, overlap.most_replaced + 1):
        for p in SHARES:
            chance = Fraction(0)
            for rows in itertools.product(range(cells), repeat=n + d):
                here = np.bincount(rows[:n], minlength=cells)
                there = np.bincount(rows[d:], minlength=cells)
                weight = math.prod(p if x else 1 - p for x in rows)
                hidden = [i for i in range(cells) if here[i] or there[i] or not made.empty_exact]
                told = made.empty_exact and any((here[i] == 0) != (there[i] == 0) for i in range(cells))
                loss = sum(ratio(law, int(here[i]), int(there[i])) for i in hidden)
                if told or loss > float(epsilon) * (1 + 1e-9):
                    chance += weight
            assert chance <= gamma


def test_the_survey_rules_are_needed() -> None:
    """One count more, told as it is, fails for some law of a row: the exact counts stop where they must."""
    n, gamma = 5, Fraction(1, 2)
    overlap = Overlap(rows=n, attacker_rows=5, least_overlap=4)
    count = OverlapCount(overlap=overlap, epsilon=1, gamma=gamma)
    exact = {c for c in range(n + 1) if count.is_exact(c)}
    bolder = exact | {min(set(range(n + 1)) - exact)}
    # Given the number of ones among all rows, each order is as likely.
    worst = Fraction(0)
    for ones in range(n + 2):
        orders = list(itertools.combinations(range(n + 1), ones))
        bad = 0
        for places in orders:
            one, other = sum(i < n for i in places), sum(i >= 1 for i in places)
            bad += one != other and bool({one, other} & bolder)
        worst = max(worst, Fraction(bad, len(orders)))
    assert worst > gamma
