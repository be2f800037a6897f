"""Ball arithmetic: one lock, ends on their own side, and precision that is given back."""

from __future__ import annotations

import math
import re
import threading
from fractions import Fraction
from pathlib import Path

import flint
import pytest

from tacit.errors import NotCertified
from tacit.exact import rounding as balls
from tacit.exact.rounding import (
    ball,
    bracket,
    lower,
    outward,
    precision,
    scaled_floor,
    upper,
    working_precision,
)

SRC = Path(balls.__file__).parents[1]


def test_nothing_else_sets_the_precision() -> None:
    """FLINT's precision is one setting of the process: who changes it takes the lock, and the lock is here."""
    sets = re.compile(r"workprec|workdps|ctx\.(prec|dps|unicode|threads) *=|extraprec")
    found = {str(p.relative_to(SRC)) for p in SRC.rglob("*.py") if sets.search(p.read_text())}
    assert found == {"exact/rounding.py"}


def test_one_thread_at_a_time_sets_the_precision() -> None:
    before, seen, other_ran = working_precision(), [], threading.Event()

    def other() -> None:
        with precision(1000):
            other_ran.set()

    with precision(300):
        thread = threading.Thread(target=other)
        thread.start()
        assert not other_ran.wait(0.2)
        seen.append(working_precision())
        with precision(77):  # the same thread may go deeper
            seen.append(working_precision())
        seen.append(working_precision())
    thread.join(10)
    assert other_ran.is_set()
    assert seen == [300, 77, 300]
    assert working_precision() == before


def test_the_precision_is_given_back_after_an_error() -> None:
    before = working_precision()
    with pytest.raises(ZeroDivisionError), precision(500):
        raise ZeroDivisionError
    assert working_precision() == before
    with pytest.raises(NotCertified):
        upper(lambda: ball(1) / ball(0))
    assert working_precision() == before


@pytest.mark.parametrize(
    "value", [Fraction(1, 3), Fraction(-1, 3), Fraction(1, 10**400), Fraction(2, 7) ** 5]
)
def test_ends_are_on_their_own_side(value: Fraction) -> None:
    low, high = lower(lambda: ball(value)), upper(lambda: ball(value))
    assert Fraction(low) < value < Fraction(high)
    assert math.nextafter(low, math.inf) == high


def test_a_bracket_holds_the_whole_ball() -> None:
    """sqrt(2) by its square; a ball that cannot shrink stays as wide as it is."""
    root = bracket(lambda: ball(2).sqrt())
    assert Fraction(root.low) ** 2 < 2 < Fraction(root.high) ** 2
    wide = bracket(lambda: flint.arb(1, 0.25), limit=200)
    assert wide.low <= 0.75 < 1.25 <= wide.high


def test_what_has_no_finite_ball_is_not_certified() -> None:
    with pytest.raises(NotCertified):
        bracket(lambda: ball(1) / ball(0), limit=200)
    with pytest.raises(NotCertified):
        outward(ball(1) / ball(0))
    with pytest.raises(NotCertified):
        scaled_floor(ball(1) / ball(0), 10)


def test_outward_floats_lie_beyond_the_ball() -> None:
    with precision(200):
        low, high = outward(ball(Fraction(1, 3)))
        assert Fraction(low) < Fraction(1, 3) < Fraction(high)
        assert outward(ball(0)) == (0.0, 0.0)
        low, high = outward(flint.arb(1, 0.5))
        assert low <= 0.5 < 1.5 <= high


def test_a_floor_that_is_not_known_has_two_ends() -> None:
    with precision(100):
        assert scaled_floor(ball(Fraction(5, 16)), 3) == (2, 2)
        assert scaled_floor(flint.arb(0.5, 1e-6), 3) == (3, 4)


def test_a_float_is_the_binary_number_that_it_is() -> None:
    with precision(200):
        assert ball(0.1) - ball(Fraction(0.1)) == 0 or (ball(0.1) - ball(Fraction(0.1))).contains(0)
        assert not (ball(0.1) - ball(Fraction(1, 10))).contains(0)
