"""Subset counts, n = 200 and 4n random questions: share of bits found against the noise (Dinur and Nissim 2003)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tacit.attacks import Draws, random_questions, reconstruct
from tacit.attacks.linear import METHODS
from tacit.report.look import ACCENT, INK, MUTED, label
from tacit.reproduce.attack_figures import BEFORE
from tacit.reproduce.base import Made, Reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HERE", "make", "shares"]

PEOPLE, SEEDS = 200, 20
FACTORS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 7.5)
Row = tuple[float | str, ...]


def shares(factor: float, seed: int) -> dict[str, float]:
    """The share of bits that each method finds, for Gaussian noise of factor √n."""
    draws = Draws(seed, "subset counts")
    bits = draws.bits(PEOPLE)
    asked = random_questions(PEOPLE, 4 * PEOPLE, seed=seed)
    answers = asked @ bits + factor * math.sqrt(PEOPLE) * draws.normals(4 * PEOPLE)
    return {m: reconstruct(asked, answers, method=m).score(bits.tolist()).share for m in METHODS}


def best_guess(factor: float) -> float:
    """Φ(mu/2): one replaced bit moves up to 4n answers by 1, so that mu = √(4n) / noise = 2 / factor."""
    from scipy.special import ndtr

    return float(ndtr(1 / factor))


def make() -> Made:
    """Twenty seeds at each noise."""
    rows: list[Row] = []
    for factor in FACTORS:
        runs = [shares(factor, seed) for seed in range(SEEDS)]
        means = {m: sum(r[m] for r in runs) / SEEDS for m in METHODS}
        better = sum(max(r.values()) for r in runs) / SEEDS
        rows.append((factor, *(means[m] for m in METHODS), max(means.values()), better, best_guess(factor)))
    at = {float(r[0]): r for r in rows}
    notes = (
        "Mean share of bits found, the better of the two programs: "
        + ", ".join(f"{float(at[f][3]):.2%} at {f:g}√n" for f in (0.1, 0.25, 2.0, 7.5))
        + ".",
        "Nobody can guess a bit better than Φ(mu/2) with mu = 2/factor: "
        f"{best_guess(2):.1%} at 2√n, where mu = 1, and {best_guess(7.5):.1%} at 7.5√n, which is (1, 1e-5)-DP.",
        "better_by_seed takes the better program for each seed by itself, which only somebody who holds the truth can.",
    )
    columns = (
        "noise_over_root_n",
        *(m.replace(" ", "_") for m in METHODS),
        "better",
        "better_by_seed",
        "bound",
    )
    return Made(columns=columns, rows=tuple(rows), notes=notes, draw=lambda: _draw(rows))


def _draw(rows: list[Row]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.4), layout="constrained")
    axes = figure.subplots()
    x = [float(r[0]) for r in rows]
    axes.plot(x, [float(r[1]) for r in rows], color=BEFORE, marker="o", markersize=4, label="linear program")
    axes.plot(
        x, [float(r[2]) for r in rows], color=ACCENT, marker="o", markersize=4, label="bounded least squares"
    )
    axes.plot(
        x, [float(r[5]) for r in rows], color=INK, linewidth=2, label="what the noise allows at most, Φ(μ/2)"
    )
    axes.axhline(0.5, color=MUTED, linewidth=1.2, linestyle=(0, (3, 2)), label="a coin")
    axes.set_xscale("log")
    axes.set_xticks(x, [f"{f:g}" for f in x])
    axes.minorticks_off()
    axes.set_ylim(0.46, 1.02)
    axes.legend(frameon=False, fontsize=9)
    label(axes, "200 bits from 800 noisy subset counts", "noise_std / √n", "share of bits found")
    return figure


HERE = Reproduction(
    name="attack-counts",
    title="Linear reconstruction from subset counts",
    source="Dinur and Nissim 2003; the data are made up",
    make=make,
)
