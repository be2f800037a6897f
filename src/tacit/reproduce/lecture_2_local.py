"""Lecture 2's comparison as a picture: answers that nobody is trusted with, against one trusted curator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tacit.mechanisms import (
    L1,
    HadamardResponse,
    Laplace,
    LocalMechanism,
    RandomizedResponse,
    SubsetSelection,
)
from tacit.noise import SeededSource
from tacit.report.look import ACCENT, INK, MUTED, SHADE, label
from tacit.reproduce.base import Made, Reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HERE", "make", "simulated"]

PEOPLE = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
CATEGORIES = (2, 5, 10, 20, 50, 100, 200, 500, 1_000)
RUNS = 200
Row = tuple[float | str, ...]


def simulated(people: int, epsilon: float, runs: int, seed: int) -> float:
    """Root mean squared error of the number of ones, a third of the people, by randomised response."""
    ask, source = RandomizedResponse(epsilon=epsilon), SeededSource(seed=seed)
    truth = (np.arange(people) % 3 == 0).astype(np.int64)
    ones = int(truth.sum())
    errors = [ask.estimate(ask.release(truth, source=source))[1] - ones for _ in range(runs)]
    return math.sqrt(float(np.mean(np.square(errors))))


def _curator(epsilon: float, moved: int) -> float:
    """The standard deviation of discrete Laplace noise on numbers that one replaced person moves by so much."""
    return math.sqrt(float(Laplace.for_epsilon(epsilon=epsilon, sensitivity=L1(moved)).distribution.variance))


def _row(what: str, size: float, n: int, epsilon: float, seed: int) -> Row:
    ask = RandomizedResponse(epsilon=epsilon)
    printed = math.sqrt(n) * (math.exp(epsilon) + 1) / math.expm1(epsilon)
    seen = simulated(n, epsilon, RUNS, seed)
    return (what, size, _curator(epsilon, 1), math.sqrt(ask.variance(people=n)), seen, printed)


def make() -> Made:
    """Errors of a count by n and by epsilon, and of an empty cell by the number of categories."""
    rows: list[Row] = [_row("count, by people", n, n, 1.0, n) for n in PEOPLE]
    rows += [_row("count, by epsilon", e, 10_000, e, int(1000 * e)) for e in EPSILONS]
    central = _curator(1.0, 2)
    for k in CATEGORIES:
        asks: list[LocalMechanism] = [
            RandomizedResponse(epsilon=1.0, categories=k), SubsetSelection(epsilon=1.0, categories=k),
            HadamardResponse(epsilon=1.0, categories=k),
        ]  # fmt: skip
        spreads = [math.sqrt(ask.variance(people=10_000, count=0)) for ask in asks]
        rows.append(("empty cell, by categories", k, central, *spreads))
    ratio = float(rows[4][3]) / float(rows[4][2])
    return Made(
        columns=("question", "size", "curator", "randomised_response", "simulated_or_subset_selection",
                 "printed_bound_or_hadamard_response"),
        rows=tuple(rows),
        notes=(
            "Standard deviations of a number of people. The first two parts: one count at epsilon = 1 by the number of "
            "people, and of 10,000 people by epsilon; a curator's noise, randomised response by its exact variance, "
            "the same simulated, and the lecture's bound on it.",
            "At epsilon = 1 and 10,000 people "
            f"the local error is {ratio:.0f} times the curator's; it grows as the "
            "root of n, the curator's does not grow.",
            "The third part: a category that nobody has, of 10,000 people at epsilon = 1, by randomised response, "
            "subset selection and Hadamard response. The curator's noise is for a person who moves from one cell to "
            "another.",
        ),
        draw=lambda: _draw(rows),
    )  # fmt: skip


def _columns(rows: Sequence[Row], what: str) -> list[np.ndarray]:
    return [np.array([float(r[i]) for r in rows if r[0] == what]) for i in range(1, 6)]


def _draw(rows: Sequence[Row]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.8, 4.0), layout="constrained")
    axes = figure.subplots(1, 3)
    for ax, what, x, title in (
        (axes[0], "count, by people", "people", "a count, epsilon = 1"),
        (axes[1], "count, by epsilon", "epsilon", "a count, 10,000 people"),
    ):
        size, curator, exact, seen, printed = _columns(rows, what)
        ax.fill_between(size, exact, curator, color=SHADE)
        ax.loglog(size, printed, color=MUTED, linewidth=1, label="the lecture's bound")
        ax.loglog(size, exact, color=INK, linewidth=1, label="randomised response")
        ax.loglog(size, seen, "o", color=INK, markersize=4, label="the same, simulated")
        ax.loglog(size, curator, color=ACCENT, linewidth=2, label="one trusted curator")
        ax.set_ylim(curator.min() / 2, printed.max() * 4)
        label(ax, x=x, y="standard deviation, people", title=title)
    size, curator, exact, subset, hadamard = _columns(rows, "empty cell, by categories")
    axes[2].loglog(size, exact, color=INK, linewidth=1, label="randomised response")
    axes[2].loglog(size, hadamard, color=MUTED, linewidth=1, label="Hadamard response")
    axes[2].loglog(size, subset, color=INK, linewidth=2, linestyle="--", label="subset selection")
    axes[2].loglog(size, curator, color=ACCENT, linewidth=2, label="one trusted curator")
    axes[2].set_ylim(curator.min() / 2, exact.max() * 4)
    label(axes[2], x="categories", y="standard deviation, people", title="an empty category, 10,000 people")
    for ax in axes:
        ax.legend(fontsize=8, frameon=False)
    return figure


HERE = Reproduction(
    name="lecture-2-local",
    title="Local answers against a trusted curator",
    source="lecture 2, Thm 2.4 and eq. (2.6), (2.13) to (2.15)",
    make=make,
)
