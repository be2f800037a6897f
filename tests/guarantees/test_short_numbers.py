"""Numbers for people: what is left of a budget is never said to be more than it is, and a promise never less."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.exact.rounding import digits_down, digits_up
from tacit.guarantees import (
    Approximate,
    BoundedAdversary,
    Concentrated,
    GaussianDP,
    Pointwise,
    Profile,
    Pure,
    RandomData,
    Renyi,
)
from tacit.guarantees.bounds.base import remainder


@pytest.mark.parametrize("exact", ["0.3", "0.7", "1.15", "2.675", "0.1", "8.41", "1e-5", "123"])
def test_a_decimal_that_was_rounded_to_a_float_prints_as_itself(exact: str) -> None:
    """The float below 0.3 is left of 0.3: three digits of it are 0.3, not 0.299."""
    value = Fraction(exact)
    below = float(value)
    if Fraction(below) > value:
        below = math.nextafter(below, 0.0)
    assert f"epsilon = {float(value):.3g}" in str(remainder(Pure(epsilon=below)))


@pytest.mark.parametrize(
    ("left", "shown"), [(0.29999, "0.299"), (1.9999, "1.99"), (45678.0, "4.56e+04"), (0.5, "0.5")]
)
def test_what_is_left_is_rounded_down(left: float, shown: str) -> None:
    assert f"epsilon = {shown}" in str(remainder(Pure(epsilon=left)))
    assert float(shown) <= left


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.29999, "0.3"), (1.9999, "2"), (45678.0, "4.57e+04"), (0.0, "0"), (1.0049, "1.01"), (1.00001, "1.01")],
)
def test_what_is_promised_is_rounded_up(value: float, shown: str) -> None:
    """A promise is no remainder, and nothing is left as nothing."""
    assert f"epsilon = {shown}" in str(Pure(epsilon=value))
    assert "epsilon = 0" in str(remainder(Pure(epsilon=0.0)))


PROMISES: dict[str, Callable[[float], object]] = {
    "pure": lambda v: Pure(epsilon=v),
    "epsilon": lambda v: Approximate(epsilon=v, delta=0.0),
    "delta": lambda v: Approximate(epsilon=0.0, delta=v),
    "pointwise epsilon": lambda v: Pointwise(epsilon=v, delta=0.0),
    "pointwise delta": lambda v: Pointwise(epsilon=0.0, delta=v),
    "rho": lambda v: Concentrated(rho=v),
    "mu": lambda v: GaussianDP(mu=v),
    "renyi": lambda v: Renyi(orders=(2.0,), epsilons=(v,)),
    "gamma": lambda v: RandomData(gamma=v),
    "advantage": lambda v: BoundedAdversary(assumption="a cipher", advantage=v),
}


def numbers(text: str) -> list[float]:
    return [float(found) for found in re.findall(r"[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?", text)]


@pytest.mark.parametrize("kind", PROMISES)
def test_every_bound_and_condition_prints_a_number_that_holds_and_is_near(kind: str) -> None:
    for value in (0.10049, 0.100001, 0.29999, 1.0049e-7, 0.1, 0.3, 0.7000000000000001):
        told = numbers(str(PROMISES[kind](value)))
        assert any(value * (1 - 2e-12) <= n <= value * 1.01 for n in told), told
        assert not any(0.99 * value < n < value * (1 - 2e-12) for n in told), told


def test_a_curve_prints_an_epsilon_that_holds() -> None:
    curve = Profile.of(GaussianDP(mu=0.7))
    epsilon = curve.epsilon(1e-6)
    told = [n for n in numbers(str(curve)) if 0.9 * epsilon < n < 1.1 * epsilon]
    assert len(told) == 1
    assert epsilon <= told[0] <= 1.005 * epsilon


@given(st.floats(min_value=5e-324, max_value=1.7e308), st.integers(min_value=1, max_value=9))
def test_digits_enclose_the_number_in_one_unit_of_the_last(value: float, digits: int) -> None:
    exact = Fraction(value)
    high, low = Fraction(digits_up(value, digits)), Fraction(digits_down(value, digits))
    slack = exact / 10**12
    assert exact - slack <= high
    assert low <= exact + slack
    assert high - low <= exact / 10 ** (digits - 1) + 3 * slack
    for text in (digits_up(value, digits), digits_down(value, digits)):
        assert sum(c.isdigit() for c in text.partition("e")[0].lstrip("0.").replace(".", "")) <= digits


def test_fractions_and_what_no_number_is() -> None:
    assert (digits_up(Fraction(1, 3)), digits_down(Fraction(1, 3))) == ("0.334", "0.333")
    assert (digits_up(Fraction(2, 3), 6), digits_up(7)) == ("0.666667", "7")
    assert (digits_up(math.inf), digits_up(0), digits_down(0.0)) == ("inf", "0", "0")
