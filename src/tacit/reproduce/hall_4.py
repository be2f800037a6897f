"""Error against n of Fourier series densities with pure noise, beside the minimax rate; Hall 2012, 4.4.

For 1/2 N(.3, .1^2) + 1/2 N(.7, .1^2) on a circle, in each of d coordinates independently, all parts of the expected
integrated squared error are sums over frequencies, so no simulation is needed. h = .15 n^(-1/(4+d)), m = ceil(1.2 /
(pi h)), epsilon = 1, replace-one neighbours.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tacit.functions.fourier import fourier_bandwidth, fourier_order, noise_energies, wrapping_bound
from tacit.functions.fourier.family import periodic_coefficients
from tacit.noise import caratheodory_second_moments
from tacit.report.figures import ACCENT, INK, MUTED, label
from tacit.reproduce.base import Made, Reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Hall 2012, Figure 4.1: the Gaussian kernel and its periodic form on the unit interval.

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


def make_hall_4_1() -> Made:
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
        draw=_draw_hall_4_1,
    )


def _draw_hall_4_1() -> Figure:
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


HALL_4_1 = Reproduction(
    name="hall-4.1",
    title="The periodic approximation of the Gaussian kernel",
    source="Hall 2012, Figure 4.1",
    make=make_hall_4_1,
)


SIZES = (10**3, 10**4, 10**5, 10**6)
DENSITIES = (1, 2, 3)
DIMENSIONS = (1, 2, 3, 4, 5, 6)
DELTA = 1e-6
SMOOTH = 400
NAMES = ("laplace", "gamma", "caratheodory", "gaussian")
COLOURS = {"laplace": "#b45309", "gamma": "#7c3aed", "caratheodory": ACCENT, "gaussian": "#047857"}


def expected_error(size: int, dimension: int) -> float:
    """Sampling and smoothing without noise: sum over frequencies of squared bias and variance."""
    h = fourier_bandwidth(size=size, dimension=dimension)
    m = fourier_order(bandwidth=h)
    k = np.arange(1, SMOOTH + 1)
    true = (np.cos(2 * np.pi * k * 0.2) * periodic_coefficients(SMOOTH, 0.1)) ** 2
    kept = np.where(k <= m, periodic_coefficients(SMOOTH, h), 0.0)
    # A product over coordinates: 1 for the constant, and two functions for each frequency.
    whole = [1 + 2 * float(v.sum()) for v in (true, kept * true, kept**2 * true, kept**2)]
    bias = whole[0] ** dimension - 2 * whole[1] ** dimension + whole[2] ** dimension
    return bias + (whole[3] ** dimension - whole[2] ** dimension) / size


def noise_error(size: int, dimension: int, *, smoothed: bool) -> dict[str, float]:
    """The expected integral of the squared noise, after or before smoothing."""
    h = fourier_bandwidth(size=size, dimension=dimension)
    m = fourier_order(bandwidth=h)
    found = noise_energies(order=m, size=size, epsilon=1, delta=DELTA, dimension=dimension)
    if not smoothed:
        return found
    squares = periodic_coefficients(m, h) ** 2
    share = ((1 + 2 * float(squares.sum())) ** dimension - 1) / ((2 * m + 1) ** dimension - 1)
    out = {name: energy * share for name, energy in found.items()}
    if dimension == 1:
        moments = np.array([float(v) for v in caratheodory_second_moments(m)])
        out["caratheodory"] = found["caratheodory"] * float((moments * squares).sum() / moments.sum())
    return out


def make_fourier_errors() -> Made:
    """d, n, the estimate's own error, the noise of each mechanism; densities for d <= 3, energies up to 6."""
    rows: list[tuple[float | str, ...]] = []
    for d in DIMENSIONS:
        for n in SIZES:
            what = "density" if d in DENSITIES else "noise energy"
            own: float | str = expected_error(n, d) if d in DENSITIES else ""
            noise = noise_error(n, d, smoothed=d in DENSITIES)
            h = fourier_bandwidth(size=n, dimension=d)
            rate = (4 * math.pi) ** (-d / 2) / (n * h**d)
            rows.append(
                (what, d, n, fourier_order(bandwidth=h), own, rate, *(noise.get(k, "") for k in NAMES))
            )
    one = {n: (expected_error(n, 1), noise_error(n, 1, smoothed=True)) for n in SIZES}
    added = ", ".join(
        f"{100 * noise['caratheodory'] / own:.2g}% at n = {n:,}" for n, (own, noise) in one.items()
    )
    return Made(
        columns=("what", "d", "n", "order", "error_without_noise", "sampling_variance_of_kernel", *NAMES),
        rows=tuple(rows),
        notes=(
            f"d = 1: Caratheodory noise adds to the error of the estimate {added}.",
            "Slopes: the estimate's own error falls as n^(-4/(d+4)), Laplace and Gamma noise as n^((d-8)/(d+4)), "
            "Gaussian noise as n^(-8/(d+4)), up to logarithms and constants.",
            "The source has no numbers or picture of this; it states the rates, and that Laplace noise fails for "
            "d > 3, where by its own exponent it ties at d = 4 and fails from d = 5 on.",
            f"Gaussian noise is (1, {DELTA:g})-private, the others are pure with epsilon = 1.",
        ),
        draw=_draw_fourier_errors,
    )


def _draw_fourier_errors() -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.6, 7.0), layout="constrained")
    for ax, d in zip(figure.subplots(2, 3).ravel(), DIMENSIONS, strict=True):
        noise = [noise_error(n, d, smoothed=d in DENSITIES) for n in SIZES]
        for name in NAMES:
            if name in noise[0]:
                ax.loglog(
                    SIZES, [e[name] for e in noise], "o-", color=COLOURS[name], markersize=4, label=name
                )
        anchor = 1.0
        if d in DENSITIES:
            own = [expected_error(n, d) for n in SIZES]
            ax.loglog(SIZES, own, "s-", color=INK, markersize=4, label="estimate without noise")
            anchor = own[0]
        rate = [anchor * (n / SIZES[0]) ** (-4 / (d + 4)) for n in SIZES]
        ax.loglog(SIZES, rate, ":", color=MUTED, label="minimax rate n^(-4/(d+4))")
        what = "integrated squared error" if d in DENSITIES else "noise energy before smoothing"
        label(ax, f"d = {d}", "n", what if d in (1, 4) else "")
    figure.axes[0].legend(frameon=False, labelcolor=INK, fontsize=8)
    return figure


FOURIER_ERRORS = Reproduction(
    name="fourier-errors",
    title="Error against n of Fourier series densities",
    source="rates of Hall 2012, 4.4; the numbers are ours",
    make=make_fourier_errors,
)
