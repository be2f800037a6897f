"""Hall 2012, Figure 3.4: a kernel support vector machine in two dimensions, and its private release."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tacit.exact.arrays import Floats
from tacit.functions.boxes import Box
from tacit.functions.densities import DensityFamily, DensityPlan, GaussianKDE, ReleasedDensity, SobolevKDE
from tacit.functions.densities.noises import public_normals, public_uniforms
from tacit.functions.kernels import GaussianKernel
from tacit.noise import SeededSource
from tacit.report.figures import ACCENT, INK, MUTED, SHADE, label
from tacit.reproduce.base import Made, Reproduction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# What the figures of Hall's chapter 3 share: a made-up sample, its kernel estimate, and a released curve beside it.

SIZE, BANDWIDTH, SPREAD = 100, 0.1, 0.1
EPSILON, DELTA = 1, 0.1
POINTS = 1000
RED = "#b42318"
ROWS_SEED, NOISE_SEED = 32, 5


def mixture(size: int, seed: int = ROWS_SEED) -> Floats:
    """A made-up sample of two normals with means .3 and .7. The source does not give their spread; here it is .1."""
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


# Hall 2012, Figure 3.1: a function of an RKHS cut after 5, 10 and 15 eigenfunctions, and what noise on them costs.

WIDTH = 0.05
SHOWN = (5, 10, 15)
MOST = 30


def make_hall_3_1() -> Made:
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
        draw=lambda: _draw_hall_3_1(fine, estimate(fine, rows, WIDTH), curves, table),
    )


def _draw_hall_3_1(
    at: Floats, f: Floats, curves: list[Floats], table: list[tuple[float | str, ...]]
) -> Figure:
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


HALL_3_1 = Reproduction(
    name="hall-3.1",
    title="Truncation of a function in an RKHS",
    source="Hall 2012, Figure 3.1",
    make=make_hall_3_1,
)


# Hall 2012, Figure 3.2: a kernel density estimate and its release by a Gaussian process with the same kernel.


def make_hall_3_2() -> Made:
    """100 rows, 1000 points, epsilon = 1, delta = .1."""
    return figure_of(
        GaussianKDE(domain=Box.unit(), bandwidth=BANDWIDTH),
        notes=(
            "The source prints no numbers, and neither the spread of its two normals (0.1 is assumed) nor the weights "
            "(one half each). As there, both peaks remain.",
            "Noise falls like 1/n, the sampling error like its root: at n = 10,000 the noise is a hundredth of what is "
            "drawn here.",
        ),
    )


HALL_3_2 = Reproduction(
    name="hall-3.2",
    title="A released kernel density estimate",
    source="Hall 2012, Figure 3.2",
    make=make_hall_3_2,
)


# Hall 2012, Figure 3.3: the same kernel density estimate, with noise from the Sobolev space.

HALL_3_3_POINTS = 1000


def make_hall_3_3() -> Made:
    """100 rows, 1000 points, epsilon = 1, delta = .1, kernel exp(-|x - y| / length)."""
    family = SobolevKDE(domain=Box.unit(), bandwidth=BANDWIDTH, points=HALL_3_3_POINTS)
    smooth = GaussianKDE(domain=Box.unit(), bandwidth=BANDWIDTH)
    rough, even = (DensityPlan(family=f, size=SIZE, mu=1).density_sensitivity for f in (family, smooth))
    return figure_of(
        family,
        notes=(
            f"The source does not state its length; {family.lengths[0]:.4g} is the one with the least noise for this "
            f"bandwidth. The noise at a point is {rough / even:.3f} times that of Figure 3.2, and rough, as the source "
            f"says.",
            "The source leaves the bound on the norm (3.7) of a difference to the reader; ours is in closed form.",
        ),
    )


HALL_3_3 = Reproduction(
    name="hall-3.3",
    title="The same, with noise from a Sobolev space",
    source="Hall 2012, Figure 3.3",
    make=make_hall_3_3,
)


SIZES = (500, 1000, 2000, 5000)
SVM_ROWS = 2000
GAMMA, PENALTY, SVM_EPSILON, SVM_DELTA = 4.0, 0.004, 1, 1e-5
RELEASES = 5
LOW, HIGH = (-2.0, -1.5), (3.0, 2.0)
SIDE = 121
BLUE, ORANGE = "#0f6cbd", "#d97706"
PALE_BLUE, PALE_ORANGE = "#dbe9f6", "#fde8cd"


def two_classes(size: int, seed: int) -> tuple[Floats, Floats]:
    """Two half moons with normal noise of .2, half of the rows each: made up, and the same every time."""
    turn = np.pi * public_uniforms(size, seed)
    label = np.arange(size) % 2
    x = np.where(label == 0, np.cos(turn), 1 - np.cos(turn))
    y = np.where(label == 0, np.sin(turn), 0.5 - np.sin(turn))
    return np.stack([x, y], axis=1) + 0.2 * public_normals((size, 2), seed + 1), label.astype(float)


def make_hall_3_4() -> Made:
    """Shares of right answers for new rows, with and without privacy, and the places where the two machines differ."""
    from sklearn.svm import SVC

    from tacit.functions.models import PrivateSVC, PublicBox

    new, truth = two_classes(5000, 900)
    at = np.stack([m.ravel() for m in np.meshgrid(*_axes(), indexing="ij")], axis=1)
    table: list[tuple[float | str, ...]] = []
    shown: list[Floats] = []
    for size in SIZES:
        X, y = two_classes(size, 100 + size)
        plain = SVC(kernel="rbf", gamma=GAMMA, C=1 / (2 * size * PENALTY)).fit(X, y)
        right, area, people = [], [], []
        told_plain = plain.predict(new)
        for release in range(RELEASES):
            private = PrivateSVC(
                SVM_EPSILON, SVM_DELTA, domain=PublicBox(low=LOW, high=HIGH), classes=[0.0, 1.0],
                gamma=GAMMA, pairs=100, penalty=PENALTY, source=SeededSource(seed=release),
            ).fit(X, y)  # fmt: skip
            answers = private.predict(new)
            right.append(float((answers == truth).mean()))
            people.append(float((answers != told_plain).mean()))
            area.append(float((private.predict(at) != plain.predict(at)).mean()))
            if size == SVM_ROWS and release == 0:
                shown = [plain.decision_function(at), private.decision_function(at)]
        table.append(
            (size, float((told_plain == truth).mean()), *(float(np.mean(v)) for v in (right, people, area)))
        )
    by = {int(r[0]): [100 * float(v) for v in r] for r in table}
    told = (
        f"At n = {SVM_ROWS}, epsilon = {SVM_EPSILON}, delta = {SVM_DELTA:g}: {by[SVM_ROWS][1]:.1f}% of 5,000 new "
        f"rows are classed right without privacy, {by[SVM_ROWS][2]:.1f}% with it (mean of {RELEASES} releases). The "
        f"two machines differ on {by[SVM_ROWS][4]:.0f}% of the area drawn, and "
        f"on {by[SVM_ROWS][3]:.1f}% of the new rows: "
        f"mostly where there are no "
        f"rows, as the source says.",
        f"At n = 5000 it is {by[5000][1]:.1f}% and {by[5000][2]:.1f}%; at n = 500 {by[500][1]:.1f}% and "
        f"{by[500][2]:.1f}%.",
        "The source states neither its data nor epsilon. Here: two half moons, kernel exp(-4 |x - y|^2), penalty "
        f"{PENALTY:g}; the private machine is trained on 100 pairs of waves that stand for the kernel.",
    )
    X, y = two_classes(SVM_ROWS, 100 + SVM_ROWS)
    return Made(
        columns=("n", "right_without_privacy", "right_private", "rows_that_differ", "area_that_differs"),
        rows=tuple(table),
        notes=told,
        draw=lambda: _draw_hall_3_4(X, y, shown),
    )


def _axes() -> list[Floats]:
    return [np.linspace(a, b, SIDE) for a, b in zip(LOW, HIGH, strict=True)]


def _draw_hall_3_4(X: Floats, y: Floats, shown: list[Floats]) -> Figure:
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.6, 4.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    across, up = _axes()
    for ax, values, title in zip(
        axes, shown, ("Without privacy", "Private, epsilon = 1, delta = 1e-5"), strict=True
    ):
        table = values.reshape(SIDE, SIDE).T
        ax.pcolormesh(
            across,
            up,
            table > 0,
            cmap=ListedColormap([PALE_BLUE, PALE_ORANGE]),
            shading="nearest",
            rasterized=True,
        )
        ax.contour(across, up, table, levels=[0], colors=INK, linewidths=1.2)
        for name, color in ((0, BLUE), (1, ORANGE)):
            ax.scatter(
                *X[y == name].T, s=5, color=color, linewidths=0, label=f"class {name}", rasterized=True
            )
        label(ax, title, "x", "y" if ax is axes[0] else "")
        ax.grid(False)
        ax.set_xlim(LOW[0], HIGH[0])
        ax.set_ylim(LOW[1], HIGH[1])
    axes[0].legend(
        frameon=True, framealpha=0.9, edgecolor="none", loc="upper right", fontsize=9, markerscale=2.5
    )
    return figure


HALL_3_4 = Reproduction(
    name="hall-3.4",
    title="A kernel support vector machine",
    source="Hall 2012, Figure 3.4",
    make=make_hall_3_4,
)
