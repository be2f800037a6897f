"""What k releases of epsilon 0.1 cost together, by five ways to add up: from the sum to the curve of the noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tacit.accounting import account
from tacit.accounting.events import Event, GaussianEvent, LaplaceEvent, PureEvent, RepeatedEvent
from tacit.guarantees import Approximate, Pure, repeat
from tacit.report.look import ACCENT, INK, MUTED, label
from tacit.reproduce.base import Made, Reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HERE", "make"]

EPSILON, DELTA = 0.1, 1e-6
TIMES = (1, 2, 5, 10, 20, 40, 70, 100, 150, 200, 300, 400)
Row = tuple[float | str, ...]


def _together(event: Event, times: int) -> float:
    return account(RepeatedEvent(event=event, times=times), delta=DELTA).epsilon.high


def make() -> Made:
    """Each way at each number of releases."""
    rows: list[Row] = []
    for k in TIMES:
        by_sum = float(repeat(Pure(epsilon=EPSILON), k).epsilon_at(0.0))
        advanced = repeat(Approximate(epsilon=EPSILON, delta=0.0), k, law="advanced", slack=DELTA)
        rows.append(
            (
                k,
                by_sum,
                float(advanced.epsilon_at(DELTA)),
                _together(PureEvent(epsilon=EPSILON), k),
                _together(LaplaceEvent(epsilon=EPSILON), k),
                _together(GaussianEvent(noise_multiplier=2**0.5 / EPSILON), k),
            )
        )
    return Made(
        columns=("releases", "sum", "advanced", "optimal", "laplace", "gaussian"),
        rows=tuple(rows),
        notes=(
            f"k releases, each of epsilon = {EPSILON}; from the second way on at delta = {DELTA:g}.",
            "The sum grows as k, all others as the root of k in the end. Up to some 30 releases the sum is no worse "
            "than advanced composition; the optimal way is never worse than either.",
            "Who says which noise it was pays less still: Laplace noise loses all of its epsilon only sometimes. "
            "Gaussian noise with the variance of that Laplace noise is drawn beside it.",
        ),
        draw=lambda: _draw(rows),
    )


def _draw(rows: Sequence[Row]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.6), layout="constrained")
    axes = figure.subplots()
    k = [float(r[0]) for r in rows]
    ways = (
        ("the sum of the epsilons", MUTED, "-"),
        ("advanced composition", INK, (0, (5, 2))),
        ("optimal composition of any epsilon", INK, "-"),
        ("Laplace noise, its own curve", ACCENT, "-"),
        ("Gaussian noise of the same variance", ACCENT, (0, (2, 2))),
    )
    for column, (name, colour, dashes) in enumerate(ways, start=1):
        axes.plot(
            k, [float(r[column]) for r in rows], color=colour, linestyle=dashes, linewidth=2, label=name
        )
    axes.set_xlim(0, max(k))
    axes.set_ylim(0, 20)
    axes.legend(frameon=False, fontsize=9, loc="upper right")
    title = f"What k releases of epsilon = {EPSILON} cost together, at delta = {DELTA:g}"
    label(axes, title, "releases k", "epsilon of all of them")
    return figure


HERE = Reproduction(
    name="lesson-composition",
    title="What many releases cost together",
    source="for lessons; Dwork, Rothblum, Vadhan 2010; Kairouz, Oh, Viswanath 2015; the numbers are ours",
    make=make,
)
