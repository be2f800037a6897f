"""What the figures of Hall's chapter 3 share: a made-up sample, its kernel estimate, and a released curve beside it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tacit.exact.arrays import Floats
from tacit.functions.densities import DensityFamily, DensityPlan, ReleasedDensity
from tacit.functions.densities.noises import public_normals, public_uniforms
from tacit.noise import SeededSource
from tacit.report.look import ACCENT, INK, MUTED, SHADE, label
from tacit.reproduce.base import Made

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BANDWIDTH", "SIZE", "estimate", "figure_of", "mixture", "printed_noise_std"]


SIZE, BANDWIDTH, SPREAD = 100, 0.1, 0.1
EPSILON, DELTA = 1, 0.1
POINTS = 1000
RED = "#b42318"
ROWS_SEED, NOISE_SEED = 32, 5


def mixture(size: int, seed: int = ROWS_SEED) -> Floats:
    """A made-up sample of two normals with means .3 and .7; the source does not say their spread: .1 here."""
    first = public_uniforms(size, seed) < 0.5
    return np.asarray(np.where(first, 0.3, 0.7) + SPREAD * public_normals((size,), seed + 1))


def estimate(at: Floats, rows: Floats, h: float) -> Floats:
    """The kernel density estimate of rows moved into [0, 1], from its definition."""
    apart = (at[:, None] - np.clip(rows, 0, 1)[None, :]) / h
    return np.asarray(np.exp(-0.5 * apart**2).mean(axis=1) / (math.sqrt(2 * math.pi) * h))


def printed_noise_std(sensitivity: float) -> float:
    """Hall's (3.5): sqrt(2 ln(2/delta)) sensitivity / epsilon."""
    return math.sqrt(2 * math.log(2 / DELTA)) * sensitivity / EPSILON


def figure_of(family: DensityFamily, notes: tuple[str, ...]) -> Made:
    """The estimate and its release at 1000 points, as printed and with the exact calibration; numbers for more rows."""
    rows, at = mixture(SIZE), np.linspace(0, 1, POINTS)
    plan = DensityPlan.for_target(epsilon=EPSILON, delta=DELTA, family=family, size=SIZE)
    printed = printed_noise_std(plan.density_sensitivity)
    # The printed noise is that of mu = sensitivity / printed.
    loose = DensityPlan(family=family, size=SIZE, mu=plan.density_sensitivity / printed)
    released = [p.release(rows, source=SeededSource(seed=NOISE_SEED)) for p in (loose, plan)]
    truth = estimate(at, rows, BANDWIDTH)
    table: list[tuple[float | str, ...]] = []
    for size in (100, 300, 1000, 3000, 10_000):
        at_size = DensityPlan.for_target(epsilon=EPSILON, delta=DELTA, family=family, size=size)
        other = printed_noise_std(at_size.density_sensitivity)
        table.append((size, at_size.density_sensitivity, other, at_size.noise_std, at_size.noise_std / other))
    told = (
        f"n = {SIZE}, h = {BANDWIDTH:g}, epsilon = {EPSILON}, delta = {DELTA:g}: the noise has the standard deviation "
        f"{plan.noise_std:.3f} at a point, where the printed calibration has {printed:.3f}; the kernel estimate is "
        f"{truth.max():.2f} at its highest.",
        *notes,
    )
    return Made(
        columns=("n", "sensitivity", "noise_std_printed", "noise_std_exact", "ratio"),
        rows=tuple(table),
        notes=told,
        draw=lambda: _draw(at, truth, released),
    )


def _draw(at: Floats, truth: Floats, released: list[ReleasedDensity]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.6, 4.4), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    titles = ("As printed: noise sqrt(2 ln(2/delta))/epsilon", "Exact calibration, the same random numbers")
    for ax, curve, title in zip(axes, released, titles, strict=True):
        one(ax, at, truth, curve)
        label(ax, title, "x", "density" if ax is axes[0] else "")
    axes[0].legend(frameon=False, loc="lower center", ncols=1, fontsize=9)
    return figure


def one(ax: Axes, at: Floats, truth: Floats, curve: ReleasedDensity) -> None:
    """The estimate in black, the released curve in blue with its band, zero as a line."""
    coarse = np.linspace(0, 1, 101)
    band = curve.band(coarse, simultaneous=True, draws=2000)
    ax.fill_between(
        coarse,
        band.low,
        band.high,
        color=SHADE,
        linewidth=0,
        label="95% band for the noise, all points at once",
    )
    ax.axhline(0, color=MUTED, linewidth=0.8)
    ax.plot(at, truth, color=INK, linewidth=2.0, label="kernel density estimate")
    ax.plot(at, curve(at), color=ACCENT, linewidth=1.4, label="released")
    ax.set_xlim(0, 1)
