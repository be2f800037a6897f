"""The figure that Hall 2.3 and 2.4 share: errors over many trials at epsilon = 1, and mean errors over a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tacit.noise import SeededSource
from tacit.report.look import ACCENT, INK, MUTED, label
from tacit.reproduce.base import Made
from tacit.reproduce.sparse_errors import CHOICES, Table, chosen_errors, exact_errors, simulated_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tacit.exact.arrays import Floats

__all__ = ["made"]

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
RED = "#b42318"
COLUMNS = (
    "epsilon",
    "laplace_and_clip",
    "hall",
    "hall_threshold",
    "known_q",
    "known_q_threshold",
    "best_fixed",
    "best_threshold",
    *(c.replace(" ", "_") for c in CHOICES),
)
Row = tuple[float | str, ...]


def made(table: Table, *, trials: int, chosen_trials: int, sweep_trials: int, notes: Sequence[str]) -> Made:
    """The sweep as a table; notes on what was found at epsilon = 1; the picture."""
    clip, sparse = simulated_errors(table, 1.0, trials, SeededSource(seed=23))
    rows: list[Row] = []
    at_one: dict[str, float] = {}
    for epsilon in EPSILONS:
        exact = exact_errors(table, epsilon)
        chosen = chosen_errors(table, epsilon, chosen_trials if epsilon == 1.0 else sweep_trials, seed=24)
        means = {name: float(found.mean()) for name, found in chosen.items()}
        if epsilon == 1.0:
            at_one = {**exact, **means}
        rows.append((epsilon, *(exact[c] for c in COLUMNS[1:8]), *(means[c] for c in CHOICES)))
    best = min(CHOICES, key=lambda c: at_one[c])
    told = (
        f"At epsilon = 1, mean sum of absolute errors over {trials:,} trials: {clip.mean():,.1f} for Laplace noise "
        f"with negatives set to 0, {sparse.mean():,.1f} for the threshold {at_one['hall_threshold']:.0f}; exactly "
        f"{at_one['laplace_and_clip']:,.1f} and {at_one['hall']:,.1f}, a factor of "
        f"{at_one['laplace_and_clip'] / at_one['hall']:.2f}.",
        f"The best fixed threshold, found with the truth, is {at_one['best_threshold']:.0f}, with "
        f"{at_one['best_fixed']:,.1f}; choices made after the noise ({chosen_trials} trials): "
        + ", ".join(f"{c} {at_one[c]:,.1f}" for c in CHOICES)
        + f". The best of them is the {best}.",
        *notes,
    )
    return Made(columns=COLUMNS, rows=tuple(rows), notes=told, draw=lambda: _draw(clip, sparse, rows, table))


def _draw(clip: Floats, sparse: Floats, rows: list[Row], table: Table) -> Figure:
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.6, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    low, high = float(min(sparse.min(), clip.min())), float(max(sparse.max(), clip.max()))
    # Errors are integers: bins of whole width, so that none holds one more of them than the next.
    width = max(1, round((high - low) / 80))
    edges = np.arange(low - 0.5, high + width, width)
    left.hist(
        clip, bins=list(edges), color=RED, alpha=0.75, label="Laplace noise, negatives to 0", density=True
    )
    left.hist(
        sparse, bins=list(edges), color=ACCENT, alpha=0.75, label="threshold (2/epsilon) ln p", density=True
    )
    left.set_yticks([])
    left.legend(frameon=False, loc="upper center", fontsize=9)
    label(
        left,
        f"{table.name}, epsilon = 1: {clip.size:,} trials",
        "sum of absolute errors",
        "share of the trials",
    )
    e = [float(r[0]) for r in rows]
    for column, text, color, thick in (
        (1, "Laplace noise, negatives to 0", RED, 2.0),
        (2, "threshold (2/epsilon) ln p", ACCENT, 2.0),
        (6, "best threshold, found with the truth", MUTED, 1.5),
        (10, "posterior median", INK, 1.5),
    ):
        style = (0, (4, 3)) if column == 6 else (0, (1, 2)) if column == 10 else "-"
        values = [float(r[column]) for r in rows]
        right.plot(
            e, values, color=color, linewidth=thick, linestyle=style, label=text, marker="o", markersize=3
        )
    total = sum(c * n for c, n in table.counts.items())
    right.axhline(total, color=MUTED, linewidth=0.8)
    right.annotate(
        "all zeros", (e[0], total), xytext=(2, 3), textcoords="offset points", color=MUTED, fontsize=8
    )
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_xticks(e, [f"{x:g}" for x in e])
    right.minorticks_off()
    right.legend(frameon=False, loc="upper right", fontsize=9)
    label(right, "Mean errors against epsilon", "epsilon", "sum of absolute errors")
    return figure
