"""Checks of parameters: taken exactly, rounded against us, or refused."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.exact.checks import flag, is_number, members, non_negative, plain, set_fields, whole
from tacit.exact.rounding import exact_parameter


def test_a_rational_is_rounded_up() -> None:
    for value in (Fraction(1, 3), Fraction(2, 3), (1 << 53) + 1, np.longdouble(1) / 3):
        taken = Fraction(non_negative("epsilon", value))
        exact = Fraction(*value.as_integer_ratio())
        assert exact < taken < exact * (1 + Fraction(1, 1 << 51))


def test_long_floats_keep_their_digits() -> None:
    third = np.longdouble(1) / 3
    if Fraction(*third.as_integer_ratio()) == Fraction(float(third)):
        pytest.skip("long floats are no longer than floats here")
    assert plain(third) == Fraction(*third.as_integer_ratio()) != Fraction(float(third))
    assert exact_parameter("noise_scale", third) == Fraction(*third.as_integer_ratio())


@pytest.mark.parametrize(
    ("given", "kind"),
    [(np.int8(7), int), (np.uint64(2**63), int), (np.float32(0.5), float), (np.bool_(True), bool)],
)
def test_scalars_of_numpy_become_pythons_own(given: Any, kind: type) -> None:
    assert type(plain(given)) is kind
    assert plain(given) == given

    class Holder:
        value: object

    holder = Holder()
    set_fields(holder, value=given)
    assert type(holder.value) is kind


@pytest.mark.parametrize("value", ["1", None, True, np.bool_(True), Decimal(1), 1j, np.complex128(1), [1]])
def test_what_is_no_number_is_refused(value: object) -> None:
    assert not is_number(value)
    with pytest.raises(InvalidParameter):
        exact_parameter("noise_scale", value)
    with pytest.raises(InvalidParameter):
        whole("count", value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan"), np.longdouble("inf")])
def test_what_is_not_finite_is_refused(value: object) -> None:
    with pytest.raises(InvalidParameter):
        exact_parameter("noise_scale", value, positive=False)


def test_whole_numbers_and_their_least_one() -> None:
    assert whole("count", np.int64(3)) == 3
    assert whole("shift", -(10**30), least=None) == -(10**30)
    for value, least in ((0, 1), (1.0, 1), (-1, 0), (1 << 1024, None), (-(1 << 1024), None)):
        with pytest.raises(InvalidParameter):
            whole("count", value, least=least)


def test_sizes_beyond_the_floats_are_refused_unless_data_made_them() -> None:
    huge = Fraction(1 << 2000)
    with pytest.raises(InvalidParameter, match="ordinary size"):
        exact_parameter("noise_scale", huge)
    assert exact_parameter("value", huge, any_size=True) == huge


def test_lists_and_flags_are_what_they_are() -> None:
    assert members("values", np.array([1, 2])) == (1, 2)
    for values in ("ab", 3, np.array(3), np.ma.masked_array([1, 2], mask=[True, False]), {1, 2}):
        with pytest.raises(InvalidParameter):
            members("values", values)
    assert flag("printed", np.bool_(False)) is False
    for value in ("no", 0, 1, None, np.int64(1), "True"):
        with pytest.raises(InvalidParameter):
            flag("printed", value)
