"""The picture of a truncated histogram: epsilon against delta, and against the rows that somebody knows."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.coupled.noiseless.answer import ExactAnswer
from tacit.coupled.noiseless.discarding import FixedSize
from tacit.coupled.noiseless.histograms import sampling_of, truncated_histogram
from tacit.coupled.noiseless.search import cell_delta, smallest_epsilon
from tacit.errors import NoLaw
from tacit.exact.rounding import Interval
from tacit.report.look import ACCENT, INK, MUTED, label, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_threshold"]

_DELTAS = tuple(10.0**-p for p in range(3, 13))
_KNOWN = 16
NOT_DP = "Only if the rows were drawn as assumed: this is not differential privacy."


def draw_threshold(found: ExactAnswer, path: Path) -> None:
    """Two panels at the found threshold; PNG, SVG or PDF by the path's ending."""
    from matplotlib.figure import Figure

    sampling, k = str(found.details["sampling"]), found.threshold
    assert k is not None
    with style():
        fixed = sampling == "fixed"
        figure = Figure(figsize=(10.5, 3.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        if fixed:
            _fixed_against_delta(left, found)
            _thresholds(right, found)
        else:
            rate = found.details["rate"]
            known = int(found.details["known_rows"])
            _against_delta(left, found, sampling, rate, known)
            _against_known(right, found, sampling, rate, known)
        figure.supxlabel(NOT_DP, color=MUTED, fontsize=9)
        figure.savefig(
            path, dpi=150, facecolor="white", metadata={"Date": None} if path.suffix == ".svg" else None
        )


def _epsilon(sampling: str, rate: object, threshold: int, delta: float, known: int) -> float | None:
    """To three digits; None where there is none."""
    delta_at = cell_delta(sampling_of(sampling, rate))
    return smallest_epsilon(lambda e: delta_at(threshold - known, e), delta=delta, steps=1e-3)


def _against_delta(axes: Axes, found: ExactAnswer, sampling: str, rate: object, known: int) -> None:
    k = found.threshold
    assert k is not None
    points = [(d, _epsilon(sampling, rate, k, d, known)) for d in _DELTAS]
    kept = [(d, e) for d, e in points if e is not None]
    axes.plot([d for d, _ in kept], [e for _, e in kept], color=ACCENT, marker="o", markersize=4)
    axes.plot([found.delta], [found.epsilon], "s", color=INK, markersize=6)
    axes.annotate("asked", (found.delta, found.epsilon), xytext=(6, 6), textcoords="offset points", color=INK)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    label(axes, f"counts below {k} hidden", "delta", "epsilon")


def _against_known(axes: Axes, found: ExactAnswer, sampling: str, rate: object, known: int) -> None:
    k = found.threshold
    assert k is not None
    most = k - 2
    shown = sorted({known, *range(0, most + 1, -(-most // _KNOWN) or 1)})
    points = [(v, _epsilon(sampling, rate, k, found.delta, v)) for v in shown]
    kept = [(v, e) for v, e in points if e is not None]
    axes.plot([v for v, _ in kept], [e for _, e in kept], color=ACCENT, marker="o", markersize=4)
    lost = [v for v, e in points if e is None]
    if lost:
        axes.axvspan(lost[0] - 0.5, most + 0.5, color="#f3f4f6")
        axes.annotate("no epsilon", (lost[0], 0.05), xycoords=("data", "axes fraction"), color=MUTED)
    axes.set_ylim(bottom=0)
    label(axes, f"delta = {found.delta:.3g}", "known sampled rows of one cell", "epsilon")


def _fixed_against_delta(axes: Axes, found: ExactAnswer) -> None:
    """For a fixed size: with this threshold and so many discards, the epsilon of each delta above that of the size."""
    k, told = found.threshold, found.details
    assert k is not None
    assert found.rows is not None
    size = FixedSize(
        rows=found.rows, discards=int(told["discards"]), size_epsilon=float(told["size_epsilon"])
    )
    points = []
    for d in sorted({*(x for x in _DELTAS[::2] if x > 2 * size.size_delta.high), found.delta}):
        cell = smallest_epsilon(partial(_of_cell, size, k, d), delta=d, steps=2e-2)
        if cell is not None:
            points.append((d, size.size_epsilon + cell))
    axes.plot([d for d, _ in points], [e for _, e in points], color=ACCENT, marker="o", markersize=4)
    axes.plot([found.delta], [found.epsilon], "s", color=INK, markersize=6)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    label(axes, f"counts below {k} hidden, up to {size.discards} rows discarded", "delta", "epsilon")


def _of_cell(size: FixedSize, threshold: int, enough: float, cell_epsilon: float) -> Interval:
    return size.delta(threshold, cell_epsilon, enough=enough)


def _thresholds(axes: Axes, found: ExactAnswer) -> None:
    """For a fixed size: the threshold that each delta needs."""
    points = []
    for d in _DELTAS:
        try:
            made = truncated_histogram(
                sampling="fixed",
                n=found.rows,
                epsilon=found.epsilon,
                delta=d,
                size_epsilon=float(found.details["size_epsilon"]),
            )
        except NoLaw:
            continue
        points.append((d, made.threshold or 0))
    axes.plot([d for d, _ in points], [k for _, k in points], color=ACCENT, marker="o", markersize=4)
    axes.set_xscale("log")
    label(axes, f"epsilon = {found.epsilon:.3g}, {found.rows} rows", "delta", "smallest safe threshold")
