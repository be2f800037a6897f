"""How attacks are drawn before and after: bars for what they get, ticks for what was proved, a line for guessing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.report.look import ACCENT, INK, MUTED, label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tacit.reproduce.attack_releases import Bar

__all__ = ["BEFORE", "COLUMNS", "draw_bars", "draw_panels", "told"]

BEFORE = "#b42318"
COLUMNS = ("attack", "release", "epsilon", "right", "standard_error", "guessing", "bound")


def told(bars: Sequence[Bar]) -> tuple[tuple[float | str, ...], ...]:
    """The bars as rows of a table; a release without a guarantee has no epsilon and no bound."""
    return tuple(
        (
            b.attack,
            b.release or "curator",
            "" if b.epsilon is None else b.epsilon,
            b.right,
            b.error,
            b.guessing,
            "" if b.epsilon is None else b.bound,
        )
        for b in bars
    )


def draw_bars(axes: Axes, bars: Sequence[Bar]) -> None:
    """One attack: red without a guarantee, blue from a curator."""
    for at, b in enumerate(bars):
        before = b.epsilon is None
        axes.bar(at, b.right, width=0.62, color=BEFORE if before else ACCENT, alpha=0.85)
        axes.plot([at, at], [b.right - 2 * b.error, b.right + 2 * b.error], color=INK, linewidth=1)
        if not before:
            axes.plot([at - 0.4, at + 0.4], [b.bound, b.bound], color=INK, linewidth=2)
        axes.plot(
            [at - 0.45, at + 0.45],
            [b.guessing, b.guessing],
            color=MUTED,
            linewidth=1.2,
            linestyle=(0, (3, 2)),
        )
        small = b.right < 0.12  # a number that does not fit into its bar stands above what is drawn there
        axes.annotate(
            f"{b.right:.1%}" if small else f"{b.right:.0%}",
            (
                at,
                max(b.right + 2 * b.error, b.bound if not before and b.bound < 0.2 else 0.0) if small else 0,
            ),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=7.5,
            color=INK if small else "white",
        )
    names = [b.release.replace(", ", ",\n") if b.epsilon is None else f"ε = {b.epsilon:g}" for b in bars]
    axes.set_xticks(range(len(bars)), names, fontsize=7)
    axes.set_ylim(0, 1.06)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25%", "50%", "75%", "100%"], fontsize=8)


def draw_panels(bars: Sequence[Bar], titles: dict[str, str]) -> Figure:
    """A panel an attack, and one legend."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure = Figure(figsize=(12.6, 10.4), layout="constrained")
    grid = figure.subplots(4, 3).ravel()
    for axes, (attack, title) in zip(grid, titles.items(), strict=True):
        draw_bars(axes, [b for b in bars if b.attack == attack])
        label(axes, title, "", "")
        axes.grid(axis="x", visible=False)
    figure.legend(
        handles=[
            Patch(color=BEFORE, alpha=0.85, label="as it was published"),
            Patch(color=ACCENT, alpha=0.85, label="the same statistic from a curator"),
            Line2D([], [], color=INK, linewidth=2, label="what epsilon allows at most"),
            Line2D([], [], color=MUTED, linewidth=1.2, linestyle=(0, (3, 2)), label="guessing alone"),
        ],
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    figure.supylabel("how often the attacker is right about one person", color=INK, fontsize=10)
    return figure
