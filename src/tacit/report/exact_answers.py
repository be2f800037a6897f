"""The picture of an exact answer: epsilon against delta, and against how many rows an adversary knows."""

from __future__ import annotations

import textwrap
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
        left.set_ylim(bottom=0.0)
        figure.suptitle(textwrap.shorten(f"Exact {answer.statistic}", 90), x=0.01, ha="left", color=INK)
        label(left, "epsilon at each delta", "delta", "epsilon")
        known, epsilons = zip(*curves.by_known, strict=True) if curves.by_known else ((), ())
        right.plot(known, epsilons, color=ACCENT, marker="o", markersize=3)
        right.plot([curves.rows - answer.unknown_rows], [answer.epsilon], "o", color=INK, markersize=7)
        right.set_xlim(left=-0.02 * curves.rows, right=1.02 * curves.rows)
        right.set_ylim(bottom=0.0)
        # Between the last number of known rows that some epsilon allows, and all rows, there is none.
        last = max((*known, curves.rows - answer.unknown_rows))
        if last < 0.85 * curves.rows:
            right.axvspan(last, 1.02 * curves.rows, color="#f3f4f6")
            right.annotate(
                "no epsilon at this delta", ((last + curves.rows) / 2, 0.05), xycoords=("data", "axes fraction"),
                ha="center", color=MUTED,
            )  # fmt: skip
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
