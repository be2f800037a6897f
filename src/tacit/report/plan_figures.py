"""What a plan of events reveals, drawn: its privacy profile, and the trade-off curve of tests about one unit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tacit.report.look import ACCENT, INK, MUTED, SHADE, label, style

if TYPE_CHECKING:
    from tacit.accounting import PrivacyCurve

__all__ = ["draw_plan"]


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
            f"Membership: guessed rightly at most {guess:g}% of the time",
            "false alarms (size)",
            "detections (power)",
        )
        figure.savefig(path, dpi=150, facecolor="white")
