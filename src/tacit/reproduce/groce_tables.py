"""What Groce's tables 6.1 and 6.2 share: rows with four columns of epsilon, and their picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.report.look import ACCENT, INK, MUTED, label
from tacit.reproduce.base import Made

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "Line", "table_of"]

COLUMNS = (
    "epsilon_printed",
    "epsilon_theorem",
    "epsilon_same_assumption",
    "epsilon_known_law",
    "delta_printed",
    "delta_as_printed",
    "delta_theorem",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of a table: its parameters, what is printed, and what we find at the printed delta."""

    parameters: tuple[float, ...]
    printed: tuple[float, float]
    theorem: tuple[float, float, float]
    ours: float
    known: float

    @property
    def cells(self) -> tuple[float, ...]:
        """In the order of the columns."""
        epsilon, as_printed, delta = self.theorem
        return (
            *self.parameters,
            self.printed[0],
            epsilon,
            self.ours,
            self.known,
            self.printed[1],
            as_printed,
            delta,
        )


def table_of(names: Sequence[str], lines: Sequence[Line], *, title: str, notes: tuple[str, ...]) -> Made:
    """The table, and a picture with one group of points a row."""

    def draw() -> Figure:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8.5, 4.2), layout="constrained")
        axes = figure.subplots()
        x = list(range(len(lines)))
        kinds = (
            ("printed", [line.printed[0] for line in lines], "o", MUTED),
            ("by the theorem", [line.theorem[0] for line in lines], "x", INK),
            ("ours, same assumption", [line.ours for line in lines], "s", ACCENT),
            ("ours, law known", [line.known for line in lines], "^", "#b45309"),
        )
        for name, values, mark, colour in kinds:
            axes.plot(x, values, mark, color=colour, label=name, markersize=7, fillstyle="none")
        axes.set_xticks(x, [f"n = {line.parameters[0]:.0f}\n{line.printed[1]:.3g}" for line in lines])
        axes.set_ylim(bottom=0.0)
        axes.legend(frameon=False)
        label(axes, title, "rows, and the printed delta", "epsilon")
        return figure

    return Made(columns=(*names, *COLUMNS), rows=tuple(line.cells for line in lines), notes=notes, draw=draw)
