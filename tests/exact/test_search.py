"""The one search: ends on the right sides, for integers, floats, fractions and arrays."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import NotCertified
from tacit.exact.rounding import bisected, bisected_arrays, least

WHERE = st.integers(-(10**30), 10**30)


@given(WHERE, WHERE)
def test_the_least_integer_wherever_it_is(where: int, start: int) -> None:
    assert least(lambda n: n >= where, start=start) == where


@given(st.integers(-100, 100), st.integers(0, 50), st.integers(1, 50))
def test_integers_end_as_neighbours(where: int, below: int, above: int) -> None:
    """The ends that are given are not tried, and each halving asks once."""
    asked: list[int] = []

    def holds(n: int) -> bool:
        asked.append(n)
        return n >= where

    low, high = bisected(holds, where - 1 - below, where - 1 + above)
    assert (low, high) == (where - 1, where)
    assert where - 1 - below not in asked
    assert where - 1 + above not in asked
    assert len(asked) == len(set(asked)) <= (below + above).bit_length()


@given(st.floats(0.001, 1000))
def test_floats_and_fractions_enclose_it(where: float) -> None:
    low, high = bisected(lambda x: x >= where, 0.0, 1024.0, relative=1e-9)
    assert low < where <= high
    assert high - low <= 1e-9 * high
    low, high = bisected(lambda x: x >= where, 0.0, 1024.0, absolute=1e-3)
    assert 0 < high - low <= 1e-3 < 2 * (high - low) + 1e-3
    low, high = bisected(lambda x: x >= where, 0.0, 1024.0, halvings=5)
    assert low < where <= high == low + 32
    first, last = bisected(lambda x: x >= where, Fraction(0), Fraction(1024), relative=Fraction(1, 10**9))
    assert isinstance(last, Fraction)
    assert first < where <= last
    low, high = bisected(lambda x: x >= where, 1e-4, 1e4, relative=1.01, logarithmic=True)
    assert low < where <= high <= 1.01 * low


def test_each_place_of_an_array() -> None:
    where = np.array([0.1, 3.0, 7.7])
    low, high = bisected_arrays(lambda x: x >= where, np.zeros(3), np.full(3, 8.0), halvings=40)
    assert (low < where).all()
    assert (where <= high).all()
    assert (high - low < 1e-11).all()


@pytest.mark.parametrize("always", [True, False])
def test_what_never_turns_is_refused(always: bool) -> None:
    with pytest.raises(NotCertified, match="that can be found"):
        least(lambda n: always)
