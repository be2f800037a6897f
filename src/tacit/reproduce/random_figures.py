"""What the figures about random differential privacy share: the table, the notes, the picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.report.look import ACCENT, INK, MUTED, label
from tacit.reproduce.base import Made
from tacit.reproduce.random_losses import METHOD_NAMES, METHODS, PROJECTIONS, Setting, losses, released

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tacit.exact.arrays import Floats

__all__ = ["made"]

RED = "#b42318"
COLOURS = {"laplace": RED, "random": ACCENT, "threshold": MUTED}
COLUMNS = ("setting", "method", "projection", "median", "mean", "low_5", "high_95", "laplace_over_this")


def made(named: Sequence[tuple[str, Setting]], *, grid: tuple[int, int] | None, notes: Sequence[str]) -> Made:
    """A table of all settings; the picture is of the first."""
    rows: list[tuple[float | str, ...]] = []
    every: list[dict[tuple[str, str], Floats]] = []
    for name, setting in named:
        found = losses(setting)
        every.append(found)
        for projection in PROJECTIONS:
            plain = float(np.median(found["laplace", projection]))
            for method in METHODS:
                values = found[method, projection]
                low, middle, high = (float(q) for q in np.quantile(values, [0.05, 0.5, 0.95]))
                ratio = plain / middle if middle else float("inf")
                rows.append((name, method, projection, middle, float(values.mean()), low, high, ratio))
    first, setting = every[0], named[0][1]
    told = []
    for projection in PROJECTIONS:
        middles = {m: float(np.median(first[m, projection])) for m in METHODS}
        told.append(
            f"Projection {projection}: median L1 loss {middles['laplace']:.4g} for Laplace noise, "
            f"{middles['random']:.4g} for random DP ({middles['laplace'] / middles['random']:.1f} times less), "
            f"{middles['threshold']:.4g} for the plain-DP threshold."
        )
    return Made(
        columns=COLUMNS,
        rows=tuple(rows),
        notes=(*told, *notes),
        draw=lambda: _draw(first, setting, grid),
    )


def _draw(found: dict[tuple[str, str], Floats], setting: Setting, grid: tuple[int, int] | None) -> Figure:
    from matplotlib.figure import Figure

    one = {m: v / setting.rows for m, v in released(setting, 0).items()}
    true = np.asarray(setting.counts) / setting.rows
    figure = Figure(figsize=(11.6, 5.2), layout="constrained")
    axes: dict[str, Any] = figure.subplot_mosaic(
        [["a", "loss"], ["b", "loss"], ["c", "loss"]], width_ratios=[1, 1.5]
    )
    panels = (
        ("a", "true proportions", true),
        ("b", "Laplace noise (DP)", one["laplace"]),
        ("c", "random DP", one["random"]),
    )
    for name, title, values in panels:
        panel = axes[name]
        if grid is None:
            panel.bar(
                np.arange(values.size), values, color=INK if name == "a" else RED if name == "b" else ACCENT
            )
            panel.set_ylim(min(-0.1, float(one["laplace"].min())), 0.8)
            panel.axhline(0, color=MUTED, linewidth=0.6)
        else:
            panel.imshow(values.reshape(grid), cmap="Blues", vmin=0, vmax=float(true.max()))
            panel.set_xticks([])
            panel.set_yticks([])
        panel.set_title(title, color=INK, fontsize=9, loc="left")
    place = axes["loss"]
    top = max(float(v.max()) for (m, p), v in found.items() if p == "none")
    edges = np.geomspace(
        max(1e-3, min(float(v.min()) for (_, p), v in found.items() if p == "none")) * 0.9, top * 1.05, 60
    )
    for method in METHODS:
        place.hist(
            found[method, "none"],
            bins=list(edges),
            color=COLOURS[method],
            alpha=0.7,
            label=METHOD_NAMES[method],
        )
    place.set_xscale("log")
    place.legend(frameon=False, fontsize=9)
    title = f"{setting.trials} releases, n = {setting.rows}, epsilon = {setting.epsilon:g}, gamma = {setting.gamma:g}"
    label(place, title, "L1 loss, before any projection", "releases")
    return figure
