"""Hall 2012, Figure 3.4: a kernel support vector machine in two dimensions, and its private release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.exact.arrays import Floats
from tacit.functions.densities.noises import public_normals, public_uniforms
from tacit.noise import SeededSource
from tacit.report.look import INK, label
from tacit.reproduce.base import Made, Reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HERE", "make", "two_classes"]

SIZES = (500, 1000, 2000, 5000)
SHOWN = 2000
GAMMA, PENALTY, EPSILON, DELTA = 4.0, 0.004, 1, 1e-5
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


def make() -> Made:
    """Shares of right answers for new rows, with and without privacy, and where the two machines differ."""
    from sklearn.svm import SVC

    from tacit.functions.machines import PrivateSVC, PublicBox

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
                EPSILON, DELTA, domain=PublicBox(low=LOW, high=HIGH), classes=[0.0, 1.0], gamma=GAMMA, pairs=100,
                penalty=PENALTY, source=SeededSource(seed=release),
            ).fit(X, y)  # fmt: skip
            answers = private.predict(new)
            right.append(float((answers == truth).mean()))
            people.append(float((answers != told_plain).mean()))
            area.append(float((private.predict(at) != plain.predict(at)).mean()))
            if size == SHOWN and release == 0:
                shown = [plain.decision_function(at), private.decision_function(at)]
        table.append(
            (size, float((told_plain == truth).mean()), *(float(np.mean(v)) for v in (right, people, area)))
        )
    by = {int(r[0]): [100 * float(v) for v in r] for r in table}
    told = (
        f"At n = {SHOWN}, epsilon = {EPSILON}, delta = {DELTA:g}: {by[SHOWN][1]:.1f}% of 5,000 new rows are classed "
        f"right without privacy, {by[SHOWN][2]:.1f}% with it (mean of {RELEASES} releases). The two machines differ on "
        f"{by[SHOWN][4]:.0f}% of the area drawn, and on {by[SHOWN][3]:.1f}% of the new rows: mostly where there are no "
        f"rows, as the source says.",
        f"At n = 5000 it is {by[5000][1]:.1f}% and {by[5000][2]:.1f}%; at n = 500 {by[500][1]:.1f}% and "
        f"{by[500][2]:.1f}%.",
        "The source states neither its data nor epsilon. Here: two half moons, kernel exp(-4 |x - y|^2), penalty "
        f"{PENALTY:g}; the private machine is trained on 100 pairs of waves that stand for the kernel.",
    )
    X, y = two_classes(SHOWN, 100 + SHOWN)
    return Made(
        columns=("n", "right_without_privacy", "right_private", "rows_that_differ", "area_that_differs"),
        rows=tuple(table),
        notes=told,
        draw=lambda: _draw(X, y, shown),
    )


def _axes() -> list[Floats]:
    return [np.linspace(a, b, SIDE) for a, b in zip(LOW, HIGH, strict=True)]


def _draw(X: Floats, y: Floats, shown: list[Floats]) -> Figure:
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


HERE = Reproduction(
    name="hall-3.4", title="A kernel support vector machine", source="Hall 2012, Figure 3.4", make=make
)
