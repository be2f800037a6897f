"""`tacit noiseless argmax`, `mode` and `rounded`: which column or category is largest, or about how large a sum is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tacit.cli.noiseless import DELTA, GRID, JSON, PLOT, SIZE, UNKNOWN, noiseless, say
from tacit.cli.plain import PlainCommand
from tacit.errors import InvalidParameter

if TYPE_CHECKING:
    from tacit.coupled.noiseless import ExactAnswer

__all__ = ["argmax", "mode", "rounded"]


@noiseless.command(name="argmax", cls=PlainCommand)
def argmax(
    column: list[str] = typer.Option(
        ..., "--column", help='The law of a column, such as "uniform(0, 1)"; given twice or more.'
    ),
    n: int = SIZE,
    delta: float = DELTA,
    unknown_rows: int | None = UNKNOWN,
    grid: str | None = GRID,
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """May the largest column be named?

    Which of several columns has the largest total or mean, exactly; ties go to the first.
    """
    from tacit.coupled.noiseless.largest import exact_argmax

    def again(delta: float, unknown: int | None) -> ExactAnswer:
        return exact_argmax(column, n=n, delta=delta, unknown_rows=unknown, grid=grid)

    say(again(delta, unknown_rows), again, plot, json)


@noiseless.command(name="mode", cls=PlainCommand)
def mode(
    category: list[str] = typer.Option(
        ..., "--category", help='A category with its probability, such as "bus: 1/2"; given twice or more.'
    ),
    n: int = SIZE,
    delta: float = DELTA,
    unknown_rows: int | None = UNKNOWN,
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """May the most frequent category be named?

    Exactly; ties go to the first.
    """
    from tacit.coupled.noiseless.stable import exact_mode

    chances: dict[str, str] = {}
    for text in category:
        name, colon, chance = text.rpartition(":")
        if not colon or not name.strip() or name.strip() in chances:
            raise InvalidParameter(
                parameter="category",
                value=text[:40],
                must='be a name with a probability, such as "bus: 1/2", each once',
            )
        chances[name.strip()] = chance.strip()

    def again(delta: float, unknown: int | None) -> ExactAnswer:
        return exact_mode(chances, n=n, delta=delta, unknown_rows=unknown)

    say(again(delta, unknown_rows), again, plot, json)


@noiseless.command(name="rounded", cls=PlainCommand)
def rounded(
    n: int = SIZE,
    rows: str = typer.Option(..., "--rows", help='The law of a row, such as "uniform(0, 1)".'),
    steps: int = typer.Option(..., "--steps", help="The sum is rounded down to a multiple of so many steps."),
    delta: float = DELTA,
    unknown_rows: int | None = UNKNOWN,
    grid: str | None = GRID,
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """May the sum in coarse steps be published?

    Rounded down to a multiple of so many steps of the grid of records, without noise.
    """
    from tacit.coupled.noiseless.quantised import exact_quantised

    def again(delta: float, unknown: int | None) -> ExactAnswer:
        return exact_quantised(rows, n=n, delta=delta, steps=steps, unknown_rows=unknown, grid=grid)

    say(again(delta, unknown_rows), again, plot, json)
