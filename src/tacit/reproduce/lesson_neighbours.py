"""Two tables that differ in one person: the laws of a noisy count of each, and how far they are apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tacit.report.look import ACCENT, INK, MUTED, SHADE, label
from tacit.reproduce.base import Made, Reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HERE", "make"]

EPSILON, WITHOUT, WITH = 0.5, 40, 41
ASIDE = 9
Row = tuple[float | str, ...]


def law(count: int, value: int) -> float:
    """Pr[count + noise = value] of discrete Laplace noise: (1 - r) / (1 + r) r^|value - count|, r = e^-epsilon."""
    r = math.exp(-EPSILON)
    return (1 - r) / (1 + r) * r ** abs(value - count)


def make() -> Made:
    """Both laws and their ratio at every value near the counts."""
    values = range(WITHOUT - ASIDE, WITH + ASIDE + 1)
    rows: list[Row] = [(v, law(WITHOUT, v), law(WITH, v), law(WITH, v) / law(WITHOUT, v)) for v in values]
    return Made(
        columns=("published", "without", "with", "ratio"),
        rows=tuple(rows),
        notes=(
            f"A count of {WITHOUT} people, and of {WITH} with one more; integer noise at epsilon = {EPSILON}.",
            f"Whatever is published, it is between e^-{EPSILON:g} and e^{EPSILON:g} times as likely with that person "
            "as without: that is the definition, and here it is reached at every value.",
        ),
        draw=lambda: _draw(rows),
    )


def _draw(rows: Sequence[Row]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.4, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    values, without, present, ratio = (np.array([float(r[i]) for r in rows]) for i in range(4))
    left.bar(values - 0.2, without, width=0.4, color=MUTED, label=f"without the person: {WITHOUT}")
    left.bar(values + 0.2, present, width=0.4, color=ACCENT, label=f"with the person: {WITH}")
    left.set_ylim(0, float(present.max()) * 1.3)
    left.legend(frameon=False, fontsize=9, loc="upper left")
    label(left, "Two neighbours, one noisy count", "what is published", "probability")
    top = math.exp(EPSILON)
    right.axhspan(1 / top, top, color=SHADE)
    for edge, name, at in ((top, "e^epsilon", values[0]), (1 / top, "e^-epsilon", values[-1] - 2.5)):
        right.axhline(edge, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        right.text(float(at), edge * 1.03, name, color=INK, fontsize=9, va="bottom")
    right.axhline(1, color=MUTED, linewidth=0.8)
    right.plot(values, ratio, "o", color=ACCENT, markersize=5)
    right.set_yscale("log")
    right.set_ylim(1 / top**2, top**2)
    right.set_yticks([0.5, 1, 2], ["1/2", "1", "2"])
    right.minorticks_off()
    for axes in (left, right):
        axes.set_xticks(range(35, 51, 5))
    label(right, "How many times as likely with the person", "what is published", "ratio")
    return figure


HERE = Reproduction(
    name="lesson-neighbours",
    title="Two neighbours and one noisy count",
    source="for lessons; the definition of Dwork, McSherry, Nissim, Smith 2006; the numbers are ours",
    make=make,
)
