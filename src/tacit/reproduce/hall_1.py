"""Hall 2012, Table 1.1: the basic mechanisms, with their noise in numbers and the two that the table leaves out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tacit.guarantees import GaussianDP
from tacit.mechanisms import Exponential, Score
from tacit.mechanisms.squared import SquaredExponential, squared_norm_scale
from tacit.report.figures import ACCENT, INK, MUTED, label
from tacit.reproduce.base import Made, Reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILON, DELTA, DIMENSION, LAST = 1.0, 1e-6, 20, 20
BODIES = ("l1 ball", "l2 ball", "cube")
Row = tuple[float | str, ...]


def gaussian_scale(epsilon: float, delta: float) -> float:
    """The least standard deviation for an L2 sensitivity of 1, by the exact curve."""
    low, high = 0.0, 8.0
    for _ in range(60):
        mu = (low + high) / 2
        low, high = (mu, high) if float(GaussianDP(mu=mu).delta(epsilon)) <= delta else (low, mu)
    return 1 / low


def energies(d: int, epsilon: float, delta: float) -> dict[str, dict[str, float]]:
    """E |noise|^2 of each mechanism, if one unit moves the statistic within a body: closed forms.

    Sensitivities: within the l1 ball 1, 1 (L1, L2); the l2 ball sqrt(d), 1; the cube d, sqrt(d). K-norm noise has
    energy (d+1)(d+2) E|u|^2 / epsilon^2 for u uniform in the body.
    """
    l1 = {"l1 ball": 1.0, "l2 ball": math.sqrt(d), "cube": float(d)}
    l2 = {"l1 ball": 1.0, "l2 ball": 1.0, "cube": math.sqrt(d)}
    spread = {"l1 ball": 2 * d / ((d + 1) * (d + 2)), "l2 ball": d / (d + 2), "cube": d / 3}
    sigma, scale = (
        gaussian_scale(epsilon, delta),
        squared_norm_scale(dimension=d, epsilon=epsilon, delta=delta),
    )
    return {
        "Laplace": {b: 2 * d * (l1[b] / epsilon) ** 2 for b in BODIES},
        "Gamma": {b: d * (d + 1) * (l2[b] / epsilon) ** 2 for b in BODIES},
        "Gaussian": {b: d * (l2[b] * sigma) ** 2 for b in BODIES},
        "K-norm": {b: (d + 1) * (d + 2) * spread[b] / epsilon**2 for b in BODIES},
        "squared K-norm": {b: scale**2 * (d + 2) * spread[b] for b in BODIES},
    }


def choices(last: int, epsilon: float, delta: float) -> dict[str, float]:
    """The largest expected distance of a chosen output on 0..last, for a state that one unit moves by one."""
    table = [[abs(i - j) for j in range(last + 1)] for i in range(last + 1)]
    plain = Exponential(epsilon=epsilon, sensitivity=Score(1))
    squared = SquaredExponential.for_target(
        epsilon=epsilon, delta=delta, distances=table, neighbours=[(i, i + 1) for i in range(last)]
    )
    return {
        "exponential": max(float(plain.probabilities([-v for v in row]) @ np.array(row)) for row in table),
        "squared exponential": squared.expected_error(),
    }


GUARANTEES = {
    "Laplace": ("Euclidean space", "l1 distance", "epsilon"),
    "Gamma": ("Euclidean space", "l2 distance", "epsilon"),
    "Gaussian": ("Euclidean space", "l2 distance", "(epsilon, delta)"),
    "K-norm": ("Euclidean space", "Minkowski norm", "epsilon"),
    "squared K-norm": ("Euclidean space", "Minkowski norm, squared", "(epsilon, delta)"),
    "exponential": ("discrete space", "arbitrary", "epsilon"),
    "squared exponential": ("discrete space", "arbitrary, squared", "(epsilon, delta)"),
}


def make_hall_1_1() -> Made:
    """Root mean squared errors of a coordinate in 20 dimensions, and mean errors of a choice among 21."""
    found = energies(DIMENSION, EPSILON, DELTA)
    chosen = choices(LAST, EPSILON, DELTA)
    rows: list[Row] = [
        (name, *GUARANTEES[name], *(math.sqrt(found[name][b] / DIMENSION) for b in BODIES), "")
        for name in found
    ]
    rows += [(name, *GUARANTEES[name], "", "", "", error) for name, error in chosen.items()]
    ratio = found["squared K-norm"]["cube"] / found["K-norm"]["cube"]
    gauss = found["Gaussian"]["l2 ball"] / found["K-norm"]["l2 ball"]
    return Made(
        columns=(
            "mechanism", "output_space", "metric", "guarantee", "rms_l1_ball", "rms_l2_ball", "rms_cube",
            "error_of_a_choice",
        ),
        rows=tuple(rows),
        notes=(
            f"{DIMENSION} dimensions, ({EPSILON:g}, {DELTA:g}); one unit moves the statistic within the body.",
            f"Squaring the gauge of a body that is no ellipsoid costs {ratio:.2f} times the energy of K-norm noise by "
            f"the bound that is proved. For the l2 ball it is Gaussian noise, with {gauss:.2f} times the energy by its "
            "own curve.",
            f"A choice among {LAST + 1} points on a line errs by {chosen['exponential']:.2f} with the exponential "
            f"mechanism and by {chosen['squared exponential']:.2f} with the squared distance.",
        ),
        draw=lambda: _draw(rows),
    )  # fmt: skip


def _draw(rows: list[Row]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.4, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[2.2, 1])
    noises = [r for r in rows if r[7] == ""]
    width = 0.26
    for k, (body, colour) in enumerate(zip(BODIES, (INK, ACCENT, MUTED), strict=True)):
        at = [i + (k - 1) * width for i in range(len(noises))]
        left.bar(
            at, [float(r[4 + k]) for r in noises], width=width, color=colour, label=f"moves in the {body}"
        )
    left.set_xticks(range(len(noises)), [str(r[0]) for r in noises])
    left.set_yscale("log")
    left.set_ylim(1, 60)
    left.set_yticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
    left.minorticks_off()
    left.legend(frameon=False, fontsize=9, ncols=3, loc="upper left")
    label(left, f"Noise in {DIMENSION} dimensions, ({EPSILON:g}, {DELTA:g})", "", "rms error of a coordinate")
    picks = [r for r in rows if r[7] != ""]
    right.bar(
        [str(r[0]).replace(" ", "\n") for r in picks],
        [float(r[7]) for r in picks],
        color=[INK, ACCENT],
        width=0.5,
    )
    label(right, f"A choice among {LAST + 1} points", "", "mean distance from the truth")
    return figure


HALL_1_1 = Reproduction(
    name="hall-1.1",
    title="The basic mechanisms in numbers, and their squared forms",
    source="Hall 2012, Table 1.1 and section 1.5",
    make=make_hall_1_1,
)
