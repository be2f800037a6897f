"""The look of every figure that matplotlib draws: colours, axes, and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ACCENT", "INK", "MUTED", "SHADE", "label", "style"]

INK = "#1f2a37"
MUTED = "#6b7280"
ACCENT = "#0f6cbd"
SHADE = "#dbe9f6"


def label(axes: Axes, title: str, x: str, y: str) -> None:
    """Title, axis names and a quiet grid."""
    axes.set_title(title, color=INK, fontsize=11, loc="left")
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(y, color=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(colors=INK)
    axes.grid(color="#e5e7eb", linewidth=0.6)
    axes.set_axisbelow(True)


def style() -> Any:
    """The settings of every figure, for the time of a `with`; names in SVG files do not depend on the time of day."""
    import matplotlib as mpl

    return mpl.rc_context(
        {"font.size": 10, "font.family": "DejaVu Sans", "axes.edgecolor": MUTED, "svg.hashsalt": "tacit"}
    )
