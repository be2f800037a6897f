"""The picture of an exact answer: epsilon against delta, and against how many rows an adversary knows."""

from __future__ import annotations

from pathlib import Path

from tacit.coupled.noiseless.curves import Curves
from tacit.report.look import ACCENT, INK, MUTED, label, style

__all__ = ["draw_exact_answer"]


def draw_exact_answer(curves: Curves, path: Path) -> None:
    """Two panels with the asked point marked; written to the file."""
    from matplotlib.figure import Figure

    answer = curves.answer
    with style():
        figure = Figure(figsize=(9.5, 4.0), layout="constrained")
        left, right = figure.subplots(1, 2)
        deltas, epsilons = zip(*curves.by_delta, strict=True) if curves.by_delta else ((), ())
        left.plot(deltas, epsilons, color=ACCENT, marker="o", markersize=3)
        left.plot([answer.delta], [answer.epsilon], "o", color=INK, markersize=7)
        left.set_xscale("log")
        label(left, f"Exact {answer.statistic}: epsilon at each delta", "delta", "epsilon")
        known, epsilons = zip(*curves.by_known, strict=True) if curves.by_known else ((), ())
        right.plot(known, epsilons, color=ACCENT, marker="o", markersize=3)
        right.plot([curves.rows - answer.unknown_rows], [answer.epsilon], "o", color=INK, markersize=7)
        right.set_xlim(left=-0.02 * curves.rows, right=1.02 * curves.rows)
        right.set_ylim(bottom=0.0)
        label(
            right,
            f"epsilon at delta = {answer.delta:.3g}",
            f"rows that an adversary knows, of {curves.rows}",
            "epsilon",
        )
        figure.supxlabel(
            "Only if the rows are drawn as assumed: this is not differential privacy.",
            color=MUTED,
            fontsize=9,
        )
        figure.savefig(path, dpi=150)
