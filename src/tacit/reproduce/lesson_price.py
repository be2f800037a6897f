"""What privacy costs beside what a sample costs anyway: the error of a published share against the size of a survey."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tacit.report.look import ACCENT, INK, MUTED, label
from tacit.reproduce.base import Made, Reproduction, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HERE", "crossing", "make", "noise", "sampling"]

EPSILONS = (0.01, 0.1, 1.0)
Row = tuple[float | str, ...]


def sampling(n: float) -> float:
    """Half the width of a 95% interval for a share of one half among n drawn people: 1.96 / (2 sqrt(n))."""
    return 1.959964 * 0.5 / math.sqrt(n)


def noise(n: float, epsilon: float) -> float:
    """What Laplace noise on the count adds with 95%: ln(20) / (epsilon n)."""
    return math.log(20) / (epsilon * n)


def crossing(epsilon: float) -> float:
    """The n at which both are alike: (2 ln(20) / (1.96 epsilon))^2."""
    return (2 * math.log(20) / (1.959964 * epsilon)) ** 2


def make() -> Made:
    """Both errors from 10 people to ten million."""
    rows: list[Row] = [(n, sampling(n), *(noise(n, e) for e in EPSILONS)) for n in spread(10, 1e7, 61)]
    equal = ", ".join(f"{crossing(e):,.0f} people at epsilon = {e:g}" for e in EPSILONS)
    return Made(
        columns=("people", "sampling", *(f"noise_at_{e:g}" for e in EPSILONS)),
        rows=tuple(rows),
        notes=(
            "95% of a published share: what the sample misses falls as the root of n, what the noise adds as n.",
            f"They are alike at {equal}; above that privacy is the smaller part of the error.",
        ),
        draw=lambda: _draw(rows),
    )


def _draw(rows: Sequence[Row]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.6), layout="constrained")
    axes = figure.subplots()
    n = [float(r[0]) for r in rows]
    axes.loglog(n, [float(r[1]) for r in rows], color=INK, linewidth=2, label="the sample itself")
    for column, (epsilon, dashes) in enumerate(
        zip(EPSILONS, ((0, (1, 1)), (0, (4, 2)), "-"), strict=True), 2
    ):
        values = [float(r[column]) for r in rows]
        axes.loglog(
            n, values, color=ACCENT, linestyle=dashes, linewidth=2, label=f"noise, epsilon = {epsilon:g}"
        )
        at = crossing(epsilon)
        if at < min(n):
            continue
        axes.plot([at], [sampling(at)], "o", color=MUTED, markersize=6)
        axes.annotate(
            f"{at:,.0f} people",
            (at, sampling(at)),
            textcoords="offset points",
            xytext=(6, 8),
            color=INK,
            fontsize=9,
        )
    axes.set_xlim(min(n), max(n))
    axes.set_ylim(1e-5, 1)
    axes.legend(frameon=False, fontsize=9, loc="lower left")
    label(axes, "The price of privacy for a share", "people in the survey", "95% error")
    return figure


HERE = Reproduction(
    name="lesson-price",
    title="The price of privacy beside the error of a sample",
    source="for lessons; the numbers are ours",
    make=make,
)
