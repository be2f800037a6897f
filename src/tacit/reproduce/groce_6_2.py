"""Groce 2014, Table 6.2: exact sums of normal rows, cut at 2.5 standard deviations."""

from __future__ import annotations

import math

from tacit.coupled.noiseless import exact_sum
from tacit.coupled.noiseless.thesis import rectangle_theorem
from tacit.reproduce.base import Made, Reproduction
from tacit.reproduce.groce_tables import Line, table_of

__all__ = ["HERE", "PRINTED", "make"]

PRINTED: tuple[tuple[int, float, int, float, float, float], ...] = (
    (1000, 1.0, 175, 0.83, 0.986, 2.77e-5),
    (1000, 1.5, 125, 0.78, 0.904, 7.43e-7),
    (1000, 1.5, 130, 0.79, 0.775, 1.24e-5),
    (1000, 2.0, 56, 0.66, 0.829, 4.73e-5),
    (10_000, 1.5, 1725, 0.93, 0.227, 3.69e-6),
    (10_000, 1.5, 1690, 0.92, 0.273, 2.89e-8),
)
"""n, t, a, r, epsilon, delta."""
ROWS = "normal(0, 1, clamp=(-2.5, 2.5), grid=0.02)"


def make() -> Made:
    """Every row, at the printed a, r and delta; ours with the same rectangle, and with the law known."""
    lines = []
    for n, t, a, r, epsilon, delta in PRINTED:
        height = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
        theorem = rectangle_theorem(n, volume=2 * t * height, widths=[2.5 / t], shift=a, share=r)
        same = exact_sum(ROWS, n=n, delta=delta, assume="rectangle", rectangle_over=(-t, t))
        lines.append(
            Line(
                parameters=(n, t, 2 * t * height, 2.5 / t, a, r),
                printed=(epsilon, delta),
                theorem=(theorem.epsilon, theorem.delta_printed, theorem.delta),
                ours=same.epsilon,
                known=exact_sum(ROWS, n=n, delta=delta).epsilon,
            )
        )
    best = exact_sum(ROWS, n=1000, delta=1.24e-5, assume="rectangle")
    shape = best.details["shapes"][0]
    return table_of(
        ("n", "t", "volume", "w", "a", "r"),
        lines,
        title="Exact sums of normal rows, tails on the ends at 2.5",
        notes=(
            "Printed epsilons are those of Cor. 6.2 with the exact Irwin-Hall law. The printed deltas are cdf terms + "
            "Pr[fail], where the corollary has (1 + e^epsilon) Pr[fail]: both are shown. By theorem undisclosed-rows "
            "the smaller one is true as well.",
            "The column h of the source is the volume of the rectangle, not its height.",
            "Ours is for rows recorded on a grid of 0.02, at the printed delta, with the same rectangle. The best "
            f"rectangle for n = 1000 and 1.24e-5 goes from {shape['low']:g} to {shape['high']:g} and gives "
            f"{best.epsilon:.3f}.",
        ),
    )


HERE = Reproduction(
    name="groce-6.2", title="Exact sums of clamped normal rows", source="Groce 2014, Table 6.2", make=make
)
