"""Groce 2014, Table 6.3: the means of two uniform columns, published exactly."""

from __future__ import annotations

from fractions import Fraction

from tacit.reproduce.base import Made, Reproduction
from tacit.reproduce.groce_prisms import Row, table

__all__ = ["HERE", "ROWS", "make"]

ROWS: tuple[Row, ...] = (
    (1000, 400, 0.9, 0.669, 2.05e-8),
    (5000, 2270, 0.955, 0.295, 1.14e-8),
    (20000, 9500, 0.976, 0.160, 4.42e-10),
)
NOTES = (
    "The printed delta has cdf(a - w/2) where the theorem has cdf(a + w/2); the theorem's is beside it.",
    "Ours is for rows recorded on the grid of 1/50, at the printed delta. The prism is the whole support, so that the "
    "same assumption and the known prior are one: no row is told, and epsilon falls to a little more than half.",
)


def make() -> Made:
    """Three sizes."""
    from tacit.coupled.noiseless.prisms import Prism, prism_epsilon

    whole = Prism(mass=Fraction(1), points=(101, 101), half_ranges=(50, 50))

    def ours(n: int, delta: float) -> float:
        return prism_epsilon(whole, hidden=n - 1, delta=delta)[0]

    return table(ROWS, mass=1.0, widths=(1.0, 1.0), same=ours, known=ours, notes=NOTES)


HERE = Reproduction(
    name="groce-6.3",
    title="Exact regression: the means of two uniform columns",
    source="Groce 2014, Table 6.3",
    make=make,
)
