"""Groce 2014, Table 6.1: exact sums of uniform rows."""

from __future__ import annotations

from tacit.coupled.noiseless import exact_sum
from tacit.coupled.noiseless.thesis import uniform_theorem
from tacit.reproduce.base import Made, Reproduction
from tacit.reproduce.groce_tables import Line, table_of

__all__ = ["HERE", "PRINTED", "make"]

PRINTED: tuple[tuple[int, int, float, float], ...] = (
    (100, 40, 0.634, 6.83e-4),
    (100, 37, 0.835, 8.18e-6),
    (1000, 460, 0.243, 1.31e-5),
    (1000, 450, 0.303, 4.82e-8),
    (10_000, 4870, 0.0782, 6.95e-6),
    (10_000, 4850, 0.0902, 2.12e-7),
    (10_000, 4830, 0.102, 4.07e-9),
)
"""n, a, epsilon, delta."""


def make() -> Made:
    """Every row, at the printed a and delta."""
    lines = []
    for n, a, epsilon, delta in PRINTED:
        theorem = uniform_theorem(n, shift=a)
        ours = exact_sum("uniform(0, 1, grid=0.002)", n=n, delta=delta).epsilon
        lines.append(
            Line(
                parameters=(n, a),
                printed=(epsilon, delta),
                theorem=(theorem.epsilon, theorem.delta_printed, theorem.delta),
                ours=ours,
                known=ours,
            )
        )
    return table_of(
        ("n", "a"),
        lines,
        title="Exact sums of uniform rows",
        notes=(
            "Every printed number is that of Thm 6.6 with the exact Irwin-Hall law, to all digits printed.",
            "Ours is the exact profile of the same rows, recorded on a grid of 0.002, at the printed delta: a fifth to "
            "a third below. The assumption of this table is a known law, so that the last two columns are one.",
        ),
    )


HERE = Reproduction(
    name="groce-6.1", title="Exact sums of uniform rows", source="Groce 2014, Table 6.1", make=make
)
