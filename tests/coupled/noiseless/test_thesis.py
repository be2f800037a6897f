"""Groce's theorems 6.6 and 6.7 and Tables 6.1 and 6.2: exact densities, printed numbers, corrections."""

from __future__ import annotations

import csv
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tacit.coupled.noiseless import exact_sum, uniform
from tacit.coupled.noiseless.lattice import sum_law
from tacit.coupled.noiseless.thesis import IrwinHall, rectangle_theorem, uniform_theorem
from tacit.errors import NoLaw
from tacit.exact.rounding import ball, precision
from tacit.reproduce import groce as groce_6_1
from tacit.reproduce import groce as groce_6_2

KEPT = Path(__file__).parents[3] / "docs" / "reproduction"


def kept(name: str) -> list[dict[str, float]]:
    with (KEPT / f"{name}.csv").open(newline="") as file:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]


def density(n: int, y: Fraction) -> Fraction:
    """Def. 6.2, in rationals."""
    terms = ((-1) ** k * math.comb(n, k) * (y - k) ** (n - 1) for k in range(math.floor(y) + 1))
    return sum(terms, Fraction(0)) / math.factorial(n - 1)


def distribution(n: int, y: Fraction) -> Fraction:
    terms = ((-1) ** k * math.comb(n, k) * (y - k) ** n for k in range(math.floor(y) + 1))
    return sum(terms, Fraction(0)) / math.factorial(n)


@pytest.mark.parametrize("n", [2, 3, 7, 40, 99])
def test_the_irwin_hall_law_is_exact(n: int) -> None:
    law = IrwinHall(n)
    for y in (Fraction(n, 7), Fraction(2 * n, 5), Fraction(n, 2), Fraction(3 * n, 4)):
        for found, true in ((law.density(y), density(n, y)), (law.distribution(y), distribution(n, y))):
            with precision(400):
                assert found.overlaps(ball(true))
            assert float(found.rad()) < 1e-25


def three_digits(value: float, printed: float) -> bool:
    place = 10.0 ** (math.floor(math.log10(printed)) - 2)
    return abs(value - printed) <= 0.5 * place * (1 + 1e-9)


def two_digits(value: float, printed: float) -> bool:
    return f"{value:.1e}" == f"{printed:.1e}"


def test_every_row_of_both_tables_is_as_printed() -> None:
    for name, printed in (
        ("groce-6.1", groce_6_1.GROCE_6_1_PRINTED),
        ("groce-6.2", groce_6_2.GROCE_6_2_PRINTED),
    ):
        rows = kept(name)
        assert len(rows) == len(printed)
        for row, line in zip(rows, printed, strict=True):
            *_, epsilon, delta = line
            assert row["epsilon_printed"] == epsilon
            assert three_digits(row["epsilon_theorem"], epsilon)
            assert two_digits(row["delta_as_printed"], delta)
            assert row["delta_theorem"] >= row["delta_as_printed"]
            assert row["epsilon_known_law"] <= row["epsilon_same_assumption"] < 0.82 * epsilon


def test_kept_numbers_are_those_of_fresh_runs() -> None:
    for row in kept("groce-6.1")[2:4]:
        made = uniform_theorem(int(row["n"]), shift=row["a"])
        assert made.epsilon == pytest.approx(row["epsilon_theorem"], rel=1e-12)
        assert made.delta == pytest.approx(row["delta_theorem"], rel=1e-12)
        ours = exact_sum("uniform(0, 1, grid=0.002)", n=int(row["n"]), delta=row["delta_printed"])
        assert ours.epsilon == pytest.approx(row["epsilon_known_law"], rel=1e-6)
    first = kept("groce-6.2")[0]
    assert first["delta_theorem"] == pytest.approx(3.12e-5, rel=2e-3)
    made = rectangle_theorem(1000, volume=first["volume"], widths=[2.5], shift=175, share=0.83)
    assert made.delta == pytest.approx(first["delta_theorem"], rel=1e-12)
    assert made.delta_printed == pytest.approx(first["delta_as_printed"], rel=1e-12)
    same = exact_sum(
        groce_6_2.GROCE_6_2_ROWS, n=1000, delta=2.77e-5, assume="rectangle", rectangle_over=(-1, 1)
    )
    assert same.epsilon == pytest.approx(first["epsilon_same_assumption"], rel=1e-6)


def test_the_theorems_are_upper_bounds_of_the_exact_profile() -> None:
    """On a fine grid the exact epsilon at the theorem's delta is below the theorem's epsilon, and a is found."""
    for n, a in ((50, 18), (200, 85)):
        theorem = uniform_theorem(n, shift=a)
        assert exact_sum("uniform(0, 1, grid=0.005)", n=n, delta=theorem.delta).epsilon < theorem.epsilon
    found = uniform_theorem(1000, delta=1.31e-5)
    assert found.delta <= 1.31e-5
    assert found.epsilon == pytest.approx(0.2426, abs=2e-4)
    best = rectangle_theorem(1000, volume=0.38855, widths=[2.5 / 1.5], delta=1.6e-5)
    assert best.delta <= 1.6e-5
    assert best.epsilon < 0.78
    fewer = rectangle_theorem(1000, volume=0.38855, widths=[2.5 / 1.5], delta=1.6e-5, known=200)
    assert fewer.epsilon > best.epsilon
    with pytest.raises(NoLaw):
        rectangle_theorem(20, volume=0.1, widths=[2.0], delta=1e-9)


def test_half_of_the_width_is_no_simulator() -> None:
    """Rows on [10, 11], 12 of them: with 0.5 in place of a row the sums hardly ever meet; with 10.5 they do."""
    law = uniform(10, 11, grid="1/10")
    total = sum_law(law.weights, 11, delta=1e-9)
    p = np.zeros(400)
    p[: len(total.low)] = total.low

    def apart(fill: Fraction) -> float:
        # The real row is 10; the sum of the others starts at 110.
        other = np.roll(p, int((fill - 10) / law.step) % 400)
        return float(np.sum(np.maximum(p - math.exp(1.0) * other, 0.0)))

    assert apart(Fraction(1, 2)) > 0.99
    assert apart(Fraction(21, 2)) < 0.2


@pytest.mark.parametrize(("n", "t"), [(400, 1.5), (1000, 1.0), (1000, 2.0)])
def test_a_rectangle_below_a_normal_law_gives_no_less_than_the_exact_profile(n: int, t: float) -> None:
    """Theorem `rectangle-sums`: rows normal and clamped at 2.5, a rectangle of height phi(t) over (-t, t) below their
    density; the exact epsilon of the whole law, at the theorem's delta, is below the theorem's."""
    volume = 2 * t * math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    theorem = rectangle_theorem(n, volume=volume, widths=[2.5 / t], delta=1e-3)
    exact = exact_sum("normal(0, 1, clamp=(-2.5, 2.5), grid=0.02)", n=n, delta=theorem.delta)
    assert exact.epsilon <= theorem.epsilon
    square = rectangle_theorem(n, volume=1.0, widths=[1.0], delta=1e-3)
    assert exact_sum("uniform(0, 1, grid=0.005)", n=n, delta=square.delta).epsilon <= square.epsilon
