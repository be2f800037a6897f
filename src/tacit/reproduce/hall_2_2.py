"""Hall 2012, Figure 2.2: the minimax risk of a count on 0..70 against epsilon, beside 1/epsilon."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tacit.report.look import ACCENT, INK, MUTED, label
from tacit.reproduce.base import Made, Reproduction, spread
from tacit.risk import optimal_count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HERE", "make"]

N = 70
EPSILONS = tuple(sorted({*(round(e, 6) for e in spread(0.05, 2.0, 41)), 0.1, 0.2, 0.3, 0.5, 1.0}))


def make() -> Made:
    """Risk and certified lower bound at each epsilon, with the curves 1/epsilon and 1/sinh(epsilon)."""
    rows: list[tuple[float | str, ...]] = []
    for e in EPSILONS:
        proof = optimal_count(n=N, epsilon=e).certificate
        rows.append((e, proof.risk, proof.lower_bound, 1 / e, 1 / math.sinh(e), N / 2))
    at = {float(r[0]): float(r[1]) for r in rows}
    return Made(
        columns=("epsilon", "minimax_risk", "lower_bound", "one_over_epsilon", "one_over_sinh", "half_of_n"),
        rows=tuple(rows),
        notes=(
            f"The risk lies below 1/epsilon, as the source says: {at[1.0]:.6f} at epsilon = 1, where "
            f"1/sinh(1) = {1 / math.sinh(1):.6f}.",
            f"The source says that n = 70 is large enough for every epsilon shown. It is for epsilon from about "
            f"0.5 on; at 0.1 the risk is {at[0.1]:.4f} for n = 70, and 9.98 in the limit of large n. Below that the "
            f"short range, not 1/epsilon, decides: the risk stays under n/2 = 35.",
            "The limit of large n is 1/sinh(epsilon), which is 1/epsilon - epsilon/6 + ...: this is the effect "
            "for small epsilon that the source could not explain.",
            "The source prints no numbers. Ours come with a lower bound that agrees to better than a millionth.",
        ),
        draw=lambda: _draw(rows),
    )


def _draw(rows: list[tuple[float | str, ...]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.8), layout="constrained")
    ax = figure.subplots()
    e = [float(r[0]) for r in rows]
    ax.plot(
        e, [float(r[3]) for r in rows], color=MUTED, linestyle=(0, (4, 3)), linewidth=1.5, label="1/epsilon"
    )
    ax.plot(
        e,
        [float(r[4]) for r in rows],
        color=INK,
        linestyle=(0, (1, 2)),
        linewidth=1.5,
        label="1/sinh(epsilon)",
    )
    ax.plot(e, [float(r[1]) for r in rows], color=ACCENT, linewidth=2.2, label="minimax risk, n = 70")
    ax.set_xlim(0, 2)
    ax.set_ylim(0, 21)
    ax.legend(frameon=False, loc="upper right")
    label(ax, "The smallest worst error of a count on 0..70", "epsilon", "expected absolute error")
    return figure


HERE = Reproduction(
    name="hall-2.2",
    title="Minimax risk of a count on 0..70",
    source="Hall 2012, Figure 2.2",
    make=make,
)
