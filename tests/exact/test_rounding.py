"""Directed rounding against exact rationals: never on the wrong side, and never further than the next float."""

import math
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from tacit.exact.rounding import down, product, up

LARGEST = 1.7976931348623157e308
mantissas = st.integers(min_value=-(1 << 130), max_value=1 << 130)
exponents = st.one_of(st.integers(-1300, 1100), st.integers(-1150, -1060), st.integers(890, 1030))
floats = st.floats(allow_nan=False, allow_infinity=False)


def _least_above(value: float, exact: Fraction) -> bool:
    """Whether this is the smallest float >= exact."""
    if math.isinf(value):
        return exact > Fraction(LARGEST)
    below = math.nextafter(value, -math.inf)
    return Fraction(value) >= exact and (math.isinf(below) or Fraction(below) < exact)


@given(mantissas, exponents)
@example(2**53 - 1, 971)
@example(2**54 - 1, 970)
@example(1, -1075)
@example(-1, -1075)
@example(3, -1076)
def test_balls_and_fractions_round_to_the_next_float(mantissa: int, exponent: int) -> None:
    from flint import arb, ctx

    exact = Fraction(mantissa) * Fraction(2) ** exponent
    with ctx.workprec(200):
        ball = arb(mantissa) * arb(2) ** exponent
        assert ball.is_exact()
        for value in (exact, ball):
            assert _least_above(up(value), exact)
            assert _least_above(-down(value), -exact)


def test_numbers_far_beyond_the_floats_are_rounded_at_once() -> None:
    from flint import arb

    tiny, huge = arb(2) ** -(10**12), arb(2) ** (10**12)
    assert (down(tiny), up(tiny)) == (0.0, 5e-324)
    assert (down(huge), up(huge)) == (LARGEST, math.inf)
    assert (down(-huge), up(-huge)) == (-math.inf, -LARGEST)


@given(floats, floats)
@example(0.5, 0.25)
@example(5e-324, 0.5)
@example(1e300, -1e300)
def test_a_product_lies_between_adjacent_floats(a: float, b: float) -> None:
    found, exact = product(a, b), Fraction(a) * Fraction(b)
    assert _least_above(found.high, exact)
    assert _least_above(-found.low, -exact)
