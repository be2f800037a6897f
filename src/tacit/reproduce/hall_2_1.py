"""Hall 2012, Figure 2.1: the risk body of a count on 0..1 for four epsilons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tacit.report.look import ACCENT, INK, MUTED, SHADE, label
from tacit.reproduce.base import Made, Reproduction
from tacit.risk import risk_body

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HERE", "make"]

EPSILONS = (0.05, 0.5, 1.0, 5.0)


def make() -> Made:
    """The corners of each body; the one nearest to 0 is the minimax rule."""
    bodies = {e: risk_body(epsilon=e) for e in EPSILONS}
    rows = tuple((e, i, float(r[0]), float(r[1])) for e, body in bodies.items() for i, r in enumerate(body))
    minimax = ", ".join(f"{1 / (1 + 2.718281828459045**e):.4f} at epsilon = {e:g}" for e in EPSILONS)
    return Made(
        columns=("epsilon", "corner", "risk_at_0", "risk_at_1"),
        rows=rows,
        notes=(
            "The body is the square's image: corners (1, 0) and (0, 1) are the constant answers, the other two "
            "are randomised response and its opposite.",
            f"The minimax risk is 1/(1 + e^epsilon), the corner nearest to 0: {minimax}.",
            "The source prints no numbers; the shapes agree with its description: the body grows with epsilon, "
            "and its lower left edges are the Bayes rules.",
        ),
        draw=lambda: _draw(bodies),
    )


def _draw(bodies: Mapping[float, object]) -> Figure:
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.8, 3.6), layout="constrained")
    axes = figure.subplots(1, 4, sharex=True, sharey=True)
    for ax, (e, body) in zip(axes, bodies.items(), strict=True):
        corners = np.asarray(body)
        # Around the body: constant 1, randomised response, constant 0, its opposite.
        loop = np.vstack([corners, corners[:1]])
        ax.fill(loop[:, 0], loop[:, 1], color=SHADE)
        ax.plot(loop[:, 0], loop[:, 1], color=MUTED, linewidth=1)
        ax.plot(corners[:3, 0], corners[:3, 1], color=ACCENT, linewidth=2)
        ax.plot(corners[1, 0], corners[1, 1], "o", color=INK, markersize=5)
        high = corners[1, 0] > 0.2
        ax.annotate(
            f"minimax {corners[1, 0]:.3f}",
            corners[1],
            xytext=(0.04, 0.04) if high else (0.16, 0.08),
            color=INK,
            fontsize=9,
        )
        label(ax, f"epsilon = {e:g}", "risk at count 0", "risk at count 1" if ax is axes[0] else "")
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1)
        ax.set_xticks([0, 0.25, 0.5, 0.75], ["0", "", "0.5", ""])
        ax.set_aspect("equal")
    return figure


HERE = Reproduction(
    name="hall-2.1",
    title="Risk bodies of a count on 0..1",
    source="Hall 2012, Figure 2.1",
    make=make,
)
