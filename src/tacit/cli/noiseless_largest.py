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
        ..., "--column", help='The distribution of a column, as "uniform(0, 1)" (at least two).'
    ),
    n: int = SIZE,
    delta: float = DELTA,
    unknown_rows: int | None = UNKNOWN,
    grid: str | None = GRID,
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """Compute epsilon of naming the largest column exactly.

    By total or mean. Columns are independent; ties go to the first.
    """
    from tacit.coupled.noiseless.largest import exact_argmax

    def again(delta: float, unknown: int | None) -> ExactAnswer:
        return exact_argmax(column, n=n, delta=delta, unknown_rows=unknown, grid=grid)

    say(again(delta, unknown_rows), again, plot, json)


@noiseless.command(name="mode", cls=PlainCommand)
def mode(
    category: list[str] = typer.Option(
        ..., "--category", help='A category with its probability, as "bus: 1/2" (at least two).'
    ),
    n: int = SIZE,
    delta: float = DELTA,
    unknown_rows: int | None = UNKNOWN,
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """Check whether the most frequent category may be named.

    Then epsilon is 0. Ties go to the first.
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
    rows: str = typer.Option(..., "--rows", help='The distribution of a row, as "uniform(0, 1)".'),
    steps: int = typer.Option(
        ..., "--steps", help="Round the sum down to a multiple of this many grid steps."
    ),
    delta: float = DELTA,
    unknown_rows: int | None = UNKNOWN,
    grid: str | None = GRID,
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """Compute epsilon of a sum rounded down to coarse steps."""
    from tacit.coupled.noiseless.quantised import exact_quantised

    def again(delta: float, unknown: int | None) -> ExactAnswer:
        return exact_quantised(rows, n=n, delta=delta, steps=steps, unknown_rows=unknown, grid=grid)

    say(again(delta, unknown_rows), again, plot, json)
