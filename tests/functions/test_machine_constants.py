"""The constants of a model's sensitivity, by exhaustive search in exact arithmetic: no solver, no float, no plan.

One dimension, hinge loss: J(w) = (1/N) sum max(0, 1 - z_i w) + penalty w^2 with z = x y. Its minimiser lies at a corner
1/z, or where the slope of some set of open hinges is 0: all of them are tried, in rationals.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from tacit.functions.models import Hinge, KernelModelPlan, LinearFeatures, PublicBall, model_sensitivity

VALUES = [Fraction(v, 2) for v in (-2, -1, 0, 1, 2)]


def minimiser(rows: tuple[Fraction, ...], penalty: Fraction, size: int) -> Fraction:
    def value(w: Fraction) -> Fraction:
        return sum((max(Fraction(0), 1 - z * w) for z in rows), Fraction(0)) / size + penalty * w * w

    sums = {Fraction(0)}
    for z in rows:
        sums |= {s + z for s in sums}
    points = {1 / z for z in rows if z} | {s / (2 * penalty * size) for s in sums}
    return min(points, key=lambda w: (value(w), w))


def furthest(size: int, penalty: Fraction, *, replaced: int = 1, added: bool = False) -> Fraction:
    """The largest distance of minimisers over all pairs of neighbours."""
    found, most = {}, Fraction(0)
    for rows in itertools.combinations_with_replacement(VALUES, size):
        found[rows] = minimiser(rows, penalty, size)
    for rows, w in found.items():
        if added:
            others = [minimiser(rows[1:], penalty, size)]
        else:
            kept = itertools.combinations(rows, size - replaced)
            new = itertools.combinations_with_replacement(VALUES, replaced)
            others = [found[tuple(sorted(a + b))] for a, b in itertools.product(kept, new)]
        most = max([most, *(abs(w - v) for v in others)])
    return most


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("penalty", [Fraction(1, 50), Fraction(1, 3), Fraction(1, 2), Fraction(2)])
def test_the_constant_is_right_and_the_least(size: int, penalty: Fraction) -> None:
    """M radius / (penalty N) for a replaced row, half for an added one; both reached where all hinges are open."""
    replaced, added = furthest(size, penalty), furthest(size, penalty, added=True)
    assert replaced <= 1 / (penalty * size)
    assert added <= 1 / (2 * penalty * size)
    if penalty >= Fraction(1, 2):
        assert replaced == 1 / (penalty * size)
        assert added == 1 / (2 * penalty * size)
    given = {"lipschitz": 1.0, "radius": 1.0, "penalty": float(penalty), "size": size}
    for move, relation in ((replaced, "replace-one"), (added, "add-or-remove")):
        stated = Fraction(model_sensitivity(**given, neighbours=relation))  # type: ignore[arg-type]
        # The float of 1/3 is not 1/3.
        assert move <= stated * Fraction(10**15 + 1, 10**15)


def test_units_of_two_rows_move_it_twice_as_far_and_no_further() -> None:
    assert furthest(3, Fraction(2), replaced=2) == 2 / (2 * Fraction(3))
    assert furthest(3, Fraction(1, 10), replaced=2) <= 2 / (Fraction(1, 10) * 3)
    assert model_sensitivity(lipschitz=1.0, radius=1.0, penalty=2.0, size=3, rows=2) == pytest.approx(1 / 3)


@pytest.mark.parametrize("heads", [2, 3, 5])
def test_heads_trained_on_the_same_rows_move_by_the_root_of_their_number(heads: int) -> None:
    """A row (1, a) becomes (-1, a): every head's z changes sign, so that all move as far as one can."""
    penalty, size = Fraction(1), 2
    other = Fraction(1, 2)
    square = Fraction(0)
    for head in range(heads):
        z = Fraction(1) if head == 0 else Fraction(-1)
        square += (minimiser((z, other), penalty, size) - minimiser((-z, other), penalty, size)) ** 2
    plan = KernelModelPlan(
        loss=Hinge(), features=LinearFeatures(features=1, domain=PublicBall(radius=1.0)), penalty=1.0, size=size,
        mu=1.0, heads=heads,
    )  # fmt: skip
    assert square == heads * (1 / (penalty * size)) ** 2
    assert math.sqrt(square) <= plan.l2_sensitivity <= 1.011 * math.sqrt(square)
