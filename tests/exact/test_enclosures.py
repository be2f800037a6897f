"""Enclosures of reals in floats, against exact rationals: the true value never lies outside."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tacit.exact.enclosures import Enclosure, Matrix

RANDOM = np.random.default_rng(11)


def holds(found: Enclosure, exact: list[Fraction]) -> bool:
    """Is every exact value within the radius of the middle?"""
    mids, rads = np.ravel(found.mid), np.ravel(found.rad)
    return all(
        abs(Fraction(float(m)) - x) <= Fraction(float(r)) for m, r, x in zip(mids, rads, exact, strict=True)
    )


def operands(radius: float) -> tuple[Enclosure, list[Fraction]]:
    """Middles of all sizes, and a true value at an end of each."""
    mids = RANDOM.normal(size=200) * 10.0 ** RANDOM.integers(-20, 20, size=200)
    rads = np.abs(mids) * radius
    ends = [
        Fraction(m) + s * Fraction(r)
        for m, r, s in zip(
            mids.tolist(), rads.tolist(), RANDOM.choice([-1, 1], size=200).tolist(), strict=True
        )
    ]
    return Enclosure(mids, rads), ends


@pytest.mark.parametrize("radius", [0.0, 1e-3])
def test_arithmetic_encloses_the_exact_result(radius: float) -> None:
    (a, x), (b, y) = operands(radius), operands(radius)
    assert holds(a + b, [p + q for p, q in zip(x, y, strict=True)])
    assert holds(a - b, [p - q for p, q in zip(x, y, strict=True)])
    assert holds(a * b, [p * q for p, q in zip(x, y, strict=True)])
    assert holds(a / b, [p / q for p, q in zip(x, y, strict=True)])


@pytest.mark.parametrize("radius", [0.0, 1e-3])
def test_sums_and_roots_enclose_the_exact_result(radius: float) -> None:
    a, x = operands(radius)
    assert holds(a.total(), [sum(x, Fraction(0))])
    squares = [v * v for v in x]
    rooted = (a * a).root()
    for m, r, square in zip(rooted.mid.tolist(), rooted.rad.tolist(), squares, strict=True):
        low, high = max(Fraction(m) - Fraction(r), Fraction(0)), Fraction(m) + Fraction(r)
        assert low**2 <= square <= high**2


def test_a_divisor_that_may_be_zero_leaves_nothing_known() -> None:
    found = Enclosure(np.array([1.0])) / Enclosure(np.array([1e-3]), 1e-2)
    assert np.isnan(found.rad).all()


def test_a_matrix_of_rationals_encloses_its_product() -> None:
    """Entries that are no floats: 1/3, 1/7 and the like."""
    exact = [[Fraction(1, 3 + i + 5 * j) for j in range(4)] for i in range(3)]
    rows = RANDOM.normal(size=(50, 4))
    found = Matrix("matrix", exact).apply(Enclosure(rows))
    wanted = [
        sum((m * Fraction(float(v)) for m, v in zip(line, row, strict=True)), Fraction(0))
        for row in rows for line in exact
    ]  # fmt: skip
    assert holds(found, wanted)
    # Most of the error is that of the entries: without it the enclosure would be of something else.
    bare = [
        Fraction(float(v)) for v in (rows @ np.array([[float(v) for v in line] for line in exact]).T).ravel()
    ]
    assert any(w != b for w, b in zip(wanted, bare, strict=True))
