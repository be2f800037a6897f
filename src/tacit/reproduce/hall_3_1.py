"""Hall 2012, Figure 3.1: a function of an RKHS cut after 5, 10 and 15 eigenfunctions, and what noise on them costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.exact.arrays import Floats
from tacit.functions.boxes import Box
from tacit.functions.densities import DensityPlan, GaussianKDE
from tacit.functions.kernels import GaussianKernel
from tacit.report.look import ACCENT, INK, MUTED, label
from tacit.reproduce.base import Made, Reproduction
from tacit.reproduce.densities import RED, SIZE, estimate, mixture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HERE", "make"]

WIDTH = 0.05
SHOWN = (5, 10, 15)
MOST = 30


def make() -> Made:
    """Truncation error and expected noise error for 1 .. 30 eigenfunctions: the two parts of (3.1)."""
    rows = mixture(SIZE)
    at, weights = np.polynomial.legendre.leggauss(400)
    at, weights = (at + 1) / 2, weights / 2
    spectrum = GaussianKernel(bandwidth=WIDTH).spectrum(Box.unit(), MOST)
    psi, f = spectrum.functions(at), estimate(at, rows, WIDTH)
    theta = psi.T @ (weights * f)
    square = float(weights @ f**2)
    plan = DensityPlan.for_target(
        epsilon=1, delta=0.1, family=GaussianKDE(domain=Box.unit(), bandwidth=WIDTH), size=SIZE
    )
    # White noise on the coordinates theta / sqrt(lambda) has this standard deviation.
    noise_std = float(plan.noise_std)
    table: list[tuple[float | str, ...]] = []
    for m in range(1, MOST + 1):
        rest = float(weights @ (f - psi[:, :m] @ theta[:m]) ** 2)
        noise = noise_std**2 * float(spectrum.values[:m].sum())
        table.append((m, float(spectrum.values[m - 1]), rest, noise, rest + noise))
    best = min(table, key=lambda r: float(r[4]))
    told = (
        "Truncation errors, as shares of the integral of f^2: "
        + ", ".join(f"{float(table[m - 1][2]) / square:.2g} with {m} functions" for m in SHOWN)
        + ".",
        f"With noise for epsilon = 1, delta = 0.1 and n = {SIZE} rows the sum is least at {best[0]} functions. The "
        f"noise's part does not grow without end: it tends to noise_std^2 = {noise_std**2:.3g}, the integral of "
        f"K(x, x), so that little is lost by taking all of them.",
        "The source states neither its function nor the kernel's width; here it is the kernel density estimate of the "
        f"100 rows of Figure 3.2 with the bandwidth {WIDTH:g}. Eigenfunctions by Nystrom's method.",
    )
    fine = np.linspace(0, 1, 500)
    curves = [spectrum.functions(fine)[:, :m] @ theta[:m] for m in SHOWN]
    return Made(
        columns=("functions", "eigenvalue", "truncation_error", "noise_error", "total"),
        rows=tuple(table),
        notes=told,
        draw=lambda: _draw(fine, estimate(fine, rows, WIDTH), curves, table),
    )


def _draw(at: Floats, f: Floats, curves: list[Floats], table: list[tuple[float | str, ...]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.6, 6.6), layout="constrained")
    grid = figure.add_gridspec(2, 3)
    first = None
    for k, (m, curve) in enumerate(zip(SHOWN, curves, strict=True)):
        ax = figure.add_subplot(grid[0, k], sharey=first)
        first = first or ax
        ax.plot(at, f, color=INK, linewidth=2.0, label="the function")
        ax.plot(at, curve, color=ACCENT, linewidth=1.8, linestyle=(0, (4, 2)), label="its expansion")
        ax.set_xlim(0, 1)
        label(ax, f"{m} eigenfunctions", "x", "f(x)" if k == 0 else "")
        if k == 0:
            ax.legend(frameon=False, fontsize=9, loc="lower center")
    low = figure.add_subplot(grid[1, :])
    kept = [float(r[0]) for r in table]
    for column, color, name in ((2, INK, "truncation"), (3, RED, "noise"), (4, ACCENT, "both: (3.1)")):
        values = [float(r[column]) for r in table]
        low.plot(kept, values, color=color, linewidth=1.9, marker="o", markersize=3, label=name)
    for shown in SHOWN:
        low.axvline(shown, color=MUTED, linewidth=0.8, linestyle=(0, (2, 3)))
    low.set_yscale("log")
    low.set_ylim(bottom=1e-5)
    low.set_xlim(1, MOST)
    low.legend(frameon=False, loc="upper right", fontsize=9)
    label(
        low,
        "Two parts of the error, n = 100, epsilon = 1, delta = 0.1",
        "eigenfunctions kept",
        "integrated square",
    )
    return figure


HERE = Reproduction(
    name="hall-3.1", title="Truncation of a function in an RKHS", source="Hall 2012, Figure 3.1", make=make
)
