"""What a plan of events reveals, drawn: its privacy profile, and the trade-off curve of tests about one unit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import EmptyComposition
from tacit.report.look import ACCENT, INK, MUTED, SHADE, label, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tacit.accounting import PrivacyCurve

__all__ = ["curves_figure", "draw_curves", "draw_plan"]

_LINES = (
    (INK, "-"), (ACCENT, "-"), (ACCENT, (0, (5, 2))), ("#b45309", "-"), ("#b45309", (0, (5, 2))), (MUTED, "-")
)  # fmt: skip


def draw_plan(curve: PrivacyCurve, path: Path) -> None:
    """Two panels: delta over epsilon with its certified lower end, and the power of the best test over its size."""
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9.2, 4.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        positive = curve.delta[curve.delta > 0]
        floor = max(1e-12, float(positive.min(initial=1.0)) / 10)
        left.fill_between(curve.epsilon, np.maximum(curve.delta, floor), 1.0, color=SHADE)
        left.plot(
            curve.epsilon,
            np.maximum(curve.delta, floor),
            color=ACCENT,
            linewidth=2,
            label="promised (upper end)",
        )
        if curve.delta_low.max() > 0:
            low = np.maximum(curve.delta_low, floor)
            left.plot(curve.epsilon, low, color=INK, linewidth=1, linestyle=":", label="lower end")
        left.set_yscale("log")
        left.set_ylim(floor, 1.0)
        if curve.epsilon[-1] > curve.epsilon[0]:
            left.set_xlim(float(curve.epsilon[0]), float(curve.epsilon[-1]))
        left.legend(loc="upper right", frameon=False, fontsize=9)
        label(left, "The plan's curve: every point above holds", "epsilon", "delta")
        right.fill_between(curve.size, curve.size, curve.power, color=SHADE)
        right.plot(curve.size, curve.power, color=ACCENT, linewidth=2, label="best possible test")
        right.plot(curve.size, curve.size, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), label="guessing")
        right.set_xlim(0, 1)
        right.set_ylim(0, 1)
        right.legend(loc="lower right", frameon=False, fontsize=9)
        guess = np.ceil(1000 * curve.best_guess) / 10
        label(
            right,
            f"Membership: a right guess in at most {guess:g}%",
            "false alarms (size)",
            "detections (power)",
        )
        figure.savefig(path, dpi=150, facecolor="white")


def draw_curves(curves: Mapping[str, PrivacyCurve], path: Path) -> None:
    """Several plans in one picture, written as PNG (or by the path's ending)."""
    with style():
        curves_figure(curves).savefig(path, dpi=150, facecolor="white")


def curves_figure(curves: Mapping[str, PrivacyCurve]) -> Figure:
    """Two panels with a line a plan: delta over epsilon, and the power of the best test over its size."""
    from matplotlib.figure import Figure

    if not curves:
        raise EmptyComposition(what="the picture", hint="name at least one curve")
    figure = Figure(figsize=(10.4, 5.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    floor = 1e-12
    for number, (name, curve) in enumerate(curves.items()):
        colour, dashes = _LINES[number % len(_LINES)]
        drawn = np.maximum(curve.delta, floor / 10)
        left.plot(curve.epsilon, drawn, color=colour, linestyle=dashes, linewidth=2, label=name)
        right.plot(curve.size, curve.power, color=colour, linestyle=dashes, linewidth=2)
    right.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 3)), label="guessing")
    left.set_yscale("log")
    left.set_ylim(floor, 1.0)
    left.set_xlim(left=0.0)
    right.set_xlim(0, 1)
    right.set_ylim(0, 1)
    right.legend(loc="lower right", frameon=False, fontsize=9)
    label(left, "Curves: every (epsilon, delta) above one holds", "epsilon", "delta")
    label(right, "The best test of each", "false alarms (size)", "detections (power)")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9, handles=left.lines)
    return figure
