"""What rounding adds to a sensitivity, for units of several records; by the definition, at the worst records."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.mechanisms import (
    L1,
    L2,
    Box,
    Contribution,
    CountSensitivity,
    Gauge,
    HullGauge,
    Linf,
    Mahalanobis,
    Score,
    SmoothBound,
    gauge,
    on_grid,
)
from tacit.noise import Ellipsoid, LinfBall

TINY = 2.0**-40
SPACING = Fraction(1, 4)


def rounded_move(records: int, dimension: int) -> np.ndarray:
    """The move of a sum on the grid where a unit's records just below a border are replaced by ones just above it."""
    border = float(SPACING) / 2
    below = on_grid(np.full((records, dimension), border - TINY), spacing=SPACING).sum(axis=0)
    above = on_grid(np.full((records, dimension), border + TINY), spacing=SPACING).sum(axis=0)
    return (above - below) * float(SPACING)


@pytest.mark.parametrize(("records", "dimension"), list(itertools.product((1, 2, 5), (1, 3))))
def test_several_records_of_a_unit_are_each_rounded(records: int, dimension: int) -> None:
    move, how = rounded_move(records, dimension), {"dimension": dimension, "records": records}
    before = 2 * records * TINY  # what the unit moved each coordinate by, before rounding
    assert np.abs(move).sum() <= L1(dimension * before).rounded(spacing=SPACING, **how).exact
    assert np.abs(move).max() <= Linf(before).rounded(spacing=SPACING, **how).exact
    l2 = L2(math.sqrt(dimension) * before * 1.001).rounded(spacing=SPACING, **how)
    assert math.sqrt((move**2).sum()) <= l2.exact
    assert np.abs(move).max() <= Score(before).rounded(spacing=SPACING, **how).exact
    assert np.abs(move).max() <= SmoothBound(value=before, beta=1).rounded(spacing=SPACING, **how).exact
    body = Box(low=[-1] * dimension, high=[2] * dimension)
    for kind in (Gauge, Contribution, HullGauge):
        assert gauge(body, move)[0] <= kind(before, body).rounded(spacing=SPACING, **how).exact
    ellipsoid = Ellipsoid(factor=[[2 if i == j else 0 for j in range(dimension)] for i in range(dimension)])
    assert gauge(ellipsoid, move)[0] <= Gauge(before, ellipsoid).rounded(spacing=SPACING, **how).exact
    cube = LinfBall(coordinates=dimension)
    assert gauge(cube, move)[0] <= Gauge(before, cube).rounded(spacing=SPACING, **how).exact
    identity = [[int(i == j) for j in range(dimension)] for i in range(dimension)]
    length = math.sqrt(dimension) * before * 1.001
    assert math.sqrt((move**2).sum()) <= Mahalanobis(length, identity).rounded(spacing=SPACING, **how).value


@pytest.mark.parametrize("dimension", [1, 2, 9])
def test_what_is_added_is_what_the_worst_records_need(dimension: int) -> None:
    """Up to the tiny move before rounding: no smaller number would do."""
    for records in (1, 4):
        move = rounded_move(records, dimension)
        how = {"dimension": dimension, "records": records}
        added = L2(1).rounded(spacing=SPACING, **how).exact - 1
        assert math.isclose(added, math.sqrt((move**2).sum()), rel_tol=1e-12)
        assert L1(1).rounded(spacing=SPACING, **how).exact - 1 == np.abs(move).sum()
        assert Linf(1).rounded(spacing=SPACING, **how).exact - 1 == np.abs(move).max()
        assert CountSensitivity(1).rounded(spacing=SPACING, **how).exact - 1 == np.abs(move).sum()


def test_no_number_of_records_is_guessed() -> None:
    for wrong in (0, 1.5, True, "2"):
        with pytest.raises(InvalidParameter):
            L1(1).rounded(spacing=1, records=wrong)  # type: ignore[arg-type]
