"""Groce 2014, Tables 6.3 and 6.4: what is printed, what the theorem says, and ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tacit.coupled.noiseless.irwin_hall import prism_forms
from tacit.report.look import ACCENT, INK, MUTED, label
from tacit.reproduce.base import Made

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "Row", "table"]

Row = tuple[int, float, float, float, float]
"""n, a, r, epsilon and delta as printed."""

COLUMNS = (
    "n",
    "a",
    "r",
    "printed_epsilon",
    "printed_delta",
    "computed_epsilon",
    "computed_printed_delta",
    "theorem_delta",
    "same_assumption_epsilon",
    "known_prior_epsilon",
)


def table(
    rows: Sequence[Row],
    *,
    mass: float,
    widths: Sequence[float],
    same: Callable[[int, float], float],
    known: Callable[[int, float], float],
    notes: tuple[str, ...],
) -> Made:
    """Both of our epsilons are at the printed delta."""
    out: list[tuple[float | str, ...]] = []
    for n, a, r, epsilon, delta in rows:
        form = prism_forms(n=n, mass=mass, widths=widths, a=a, r=r)
        ours = same(n, delta), known(n, delta)
        out.append((n, a, r, epsilon, delta, form.epsilon, form.printed_delta, form.delta, *ours))
    return Made(columns=COLUMNS, rows=tuple(out), notes=notes, draw=lambda: _draw(out))


def _draw(rows: Sequence[tuple[float | str, ...]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    sizes = [float(row[0]) for row in rows]
    for place, name, colour, mark in (
        (3, "printed", MUTED, "s"),
        (8, "same assumption", ACCENT, "o"),
        (9, "known prior", INK, "^"),
    ):
        axes.plot(sizes, [float(row[place]) for row in rows], color=colour, marker=mark, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.legend(frameon=False)
    label(axes, "epsilon at the printed delta", "rows", "epsilon")
    return figure
