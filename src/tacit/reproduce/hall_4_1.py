"""Hall 2012, Figure 4.1: the Gaussian kernel and its periodic form on the unit interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.functions.fourier import wrapping_bound
from tacit.functions.fourier.family import periodic_coefficients
from tacit.report.look import ACCENT, INK, MUTED, label
from tacit.reproduce.base import Made, Reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HERE", "make"]

BANDWIDTH = 0.1
MIDDLES = (0.2, 0.3)
POINTS = 201
TERMS = 40


def kernels(middle: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, the Gaussian kernel, the periodic kernel by its Fourier series."""
    x = np.linspace(0.0, 1.0, POINTS)
    gaussian = np.exp(-0.5 * ((x - middle) / BANDWIDTH) ** 2) / (np.sqrt(2 * np.pi) * BANDWIDTH)
    waves = np.cos(2 * np.pi * np.outer(x - middle, np.arange(1, TERMS + 1)))
    return x, gaussian, 1 + 2 * waves @ periodic_coefficients(TERMS, BANDWIDTH)


def make() -> Made:
    """Both kernels at 201 points for two middles, and the integral of their squared difference beside its bound."""
    rows, notes = [], []
    for middle in MIDDLES:
        x, gaussian, periodic = kernels(middle)
        rows += [(middle, *map(float, values)) for values in zip(x, gaussian, periodic, strict=True)]
        missed = float(np.trapezoid((gaussian - periodic) ** 2, x))
        bound = wrapping_bound(bandwidth=BANDWIDTH, margin=middle)
        notes.append(
            f"mu = {middle:g}: the integral of the squared difference is {missed:.2e}; the bound is {bound:.2e}."
        )
    return Made(
        columns=("mu", "x", "gaussian", "periodic"),
        rows=tuple(rows),
        notes=(
            *notes,
            "The thesis prints the coefficients exp(-2 j^2 h^2): with them the bumps would be pi times narrower, "
            "and the one at 0.2 would not be seen at the other end, as its caption says that it is.",
        ),
        draw=_draw,
    )


def _draw() -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, middle in zip(axes, MIDDLES, strict=True):
        x, gaussian, periodic = kernels(middle)
        ax.plot(x, gaussian, color=MUTED, linewidth=2, label="Gaussian kernel")
        ax.plot(x, periodic, color=ACCENT, linewidth=1.6, linestyle="--", label="periodic kernel")
        label(ax, f"mu = {middle:g}, h = {BANDWIDTH:g}", "x", "density" if ax is axes[0] else "")
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 4.3)
    axes[0].legend(frameon=False, labelcolor=INK, loc="upper right")
    return figure


HERE = Reproduction(
    name="hall-4.1",
    title="The periodic approximation of the Gaussian kernel",
    source="Hall 2012, Figure 4.1",
    make=make,
)
