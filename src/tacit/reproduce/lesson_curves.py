"""Several promises in one picture: their curves delta(epsilon), and the best test against each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tacit.accounting import privacy_curve
from tacit.accounting.events import Event, GaussianEvent, LaplaceEvent, PureEvent, RepeatedEvent
from tacit.report.plan_figures import curves_figure
from tacit.reproduce.base import Made, Reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HERE", "PLANS", "make"]

PLANS: dict[str, Event] = {
    "anything of epsilon 1": PureEvent(epsilon=1.0),
    "Laplace noise of epsilon 1": LaplaceEvent(epsilon=1.0),
    "ten times Laplace noise of 0.1": RepeatedEvent(event=LaplaceEvent(epsilon=0.1), times=10),
    "Gaussian noise of the variance of Laplace": GaussianEvent(noise_multiplier=math.sqrt(2)),
}
AT = tuple(i / 20 for i in range(81))
FINELY = tuple(i / 200 for i in range(801))
Row = tuple[float | str, ...]


def make() -> Made:
    """The certified upper ends at the same epsilons."""
    curves = {name: privacy_curve(event, epsilons=AT) for name, event in PLANS.items()}
    rows: list[Row] = [(e, *(float(c.delta[i]) for c in curves.values())) for i, e in enumerate(AT)]
    guesses: Sequence[str] = [f"{100 * c.best_guess:.1f}% ({name})" for name, c in curves.items()]

    def draw() -> Figure:
        # Corners show only between points that are close together.
        return curves_figure(
            {name: privacy_curve(event, epsilons=FINELY, points=1001) for name, event in PLANS.items()}
        )

    return Made(
        columns=("epsilon", *(f"delta of {name}" for name in PLANS)),
        rows=tuple(rows),
        notes=(
            "A pure epsilon ends at its epsilon; Gaussian noise has a delta at every epsilon, however small.",
            f"At even odds membership is guessed rightly at most {', '.join(guesses)}.",
        ),
        draw=draw,
    )


HERE = Reproduction(
    name="lesson-curves",
    title="Several promises in one picture",
    source="for lessons; the numbers are ours",
    make=make,
)
