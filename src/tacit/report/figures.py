"""What a guarantee means, drawn: its curve, the power of the best test, beliefs before and after."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import NoLaw
from tacit.guarantees import Always, Pointwise, convert
from tacit.report.look import ACCENT, INK, MUTED, SHADE, label, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tacit.guarantees import Guarantee

__all__ = ["draw_guarantee", "draw_meaning"]

CURVE_POINTS = 161


def draw_guarantee(guarantee: Guarantee, path: Path) -> None:
    """Three panels side by side: profile, power, posterior; written as PNG (or by the path's ending)."""
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(13.2, 4.6), layout="constrained")
        axes = figure.subplots(1, 3)
        figure.suptitle(f"What {guarantee.bound} means for {guarantee.unit}", color=INK, fontsize=13)
        draw_profile(axes[0], guarantee)
        draw_power(axes[1], guarantee)
        draw_posterior(axes[2], guarantee)
        figure.savefig(path, dpi=150, facecolor="white")


def draw_meaning(guarantee: Guarantee, path: Path) -> None:
    """Two panels: the power of the best test about one unit, and beliefs before and after."""
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9.2, 4.6), layout="constrained")
        axes = figure.subplots(1, 2)
        figure.suptitle(f"What {guarantee.bound} means", color=INK, fontsize=13)
        draw_power(axes[0], guarantee)
        draw_posterior(axes[1], guarantee)
        figure.savefig(path, dpi=150, facecolor="white")


def draw_profile(axes: Axes, guarantee: Guarantee) -> None:
    """delta(epsilon): the smallest delta at every epsilon, on a logarithmic scale."""
    far = _far(guarantee)
    at = np.linspace(0.0, far, CURVE_POINTS)
    values = np.array([guarantee.delta(float(e)) for e in at])
    floor = max(1e-12, float(values[values > 0].min(initial=1.0)) / 10)
    axes.plot(at, np.maximum(values, floor), color=ACCENT, linewidth=2)
    axes.fill_between(at, np.maximum(values, floor), 1.0, color=SHADE)
    axes.set_yscale("log")
    axes.set_ylim(floor, 1.0)
    axes.set_xlim(0.0, far)
    label(axes, "The curve: every (epsilon, delta) above it holds", "epsilon", "delta")


def draw_power(axes: Axes, guarantee: Guarantee) -> None:
    """The best test of one version of a unit's data against another: power at every size."""
    sizes = np.linspace(0.0, 1.0, 101)
    power = [guarantee.power(float(s)) for s in sizes]
    axes.fill_between(sizes, sizes, power, color=SHADE)
    axes.plot(sizes, power, color=ACCENT, linewidth=2, label="best possible test")
    axes.plot(sizes, sizes, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), label="guessing")
    mark = guarantee.power(0.05)
    axes.plot([0.05], [mark], "o", color=INK, markersize=5)
    axes.annotate(
        f"5% false alarms:\nfinds at most {_ceil_percent(mark)}",
        (0.05, mark),
        xytext=(0.42, 0.26),
        color=INK,
        fontsize=9,
        arrowprops={"arrowstyle": "-", "color": MUTED, "linewidth": 0.8},
    )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.legend(loc="lower right", frameon=False, fontsize=9)
    label(axes, "The best test about one unit", "false alarms (size)", "truth found (power)")


def draw_posterior(axes: Axes, guarantee: Guarantee) -> None:
    """Beliefs in a statement about one unit, before and after the release.

    A loss of at most e multiplies the odds of one version of the data against another by at most e^e. Where
    the bound is not pure the loss is at most e except with the probability that the panel names.
    """
    if not isinstance(guarantee.condition, Always):
        raise NoLaw(
            operation=f"a picture of beliefs under {type(guarantee.condition).__name__}",
            reason="what somebody may come to believe is limited by guarantees that hold always only",
            hint="explain() says in words what holds",
        )
    epsilon, note = _working_epsilon(guarantee)
    prior = np.linspace(0.0, 1.0, 201)
    high = prior * math.exp(epsilon) / (prior * math.exp(epsilon) + 1 - prior)
    low = prior / (prior + (1 - prior) * math.exp(epsilon))
    axes.fill_between(prior, low, high, color=SHADE)
    axes.plot(prior, high, color=ACCENT, linewidth=2, label="the strongest evidence")
    axes.plot(prior, low, color=ACCENT, linewidth=2)
    axes.plot(prior, prior, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), label="no change")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    wide = epsilon > 2  # then the curves run along the edges, and there is room in the middle
    axes.legend(loc="upper center" if wide else "upper left", frameon=False, fontsize=9)
    at, side = ((0.62, 0.2), "center") if wide else ((0.98, 0.03), "right")
    axes.text(*at, note, ha=side, va="bottom", color=INK, fontsize=9)
    label(axes, "Beliefs about one unit", "before the release", "after the release")


def _working_epsilon(guarantee: Guarantee) -> tuple[float, str]:
    """The loss that is not exceeded, always or with the probability that the note names."""
    pure = guarantee.epsilon(0.0)
    if math.isfinite(pure):
        return min(pure, 50.0), f"whatever comes out\n(a loss of at most {pure:.3g})"
    level = 10 * max(1e-6, guarantee.delta(math.inf))
    try:
        # Half for beliefs that rise too far, half for those that fall too far.
        bound = convert(guarantee.bound, Pointwise, delta=min(0.5, level) / 2)
    except NoLaw:
        return 50.0, "no bound on beliefs\nat so large a delta"
    epsilon = float(bound.epsilon)
    share = 2 * float(bound.delta)
    return min(epsilon, 50.0), f"except with probability {share:.2g}\n(a loss of at most {_up3(epsilon)})"


def _up3(value: float) -> str:
    digits = 10.0 ** (2 - math.floor(math.log10(value))) if value > 0 else 1.0
    return f"{math.ceil(value * digits - 1e-9) / digits:g}"


def _far(guarantee: Guarantee) -> float:
    for level in (1e-10, 1e-6, 1e-3):
        far = guarantee.epsilon(max(level, guarantee.delta(math.inf)))
        if 0 < far < math.inf:
            return far * 1.05
    return 1.0


def _ceil_percent(value: float) -> str:
    return f"{math.ceil(1000 * value - 1e-9) / 10:g}%"
