"""`tacit noiseless map` and `tacit noiseless test`: which law, or which decision, may be told exactly?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tacit.cli.noiseless import DELTA, GRID, JSON, PLOT, SIZE, UNKNOWN, noiseless, say
from tacit.cli.plain import PlainCommand
from tacit.errors import InvalidParameter

if TYPE_CHECKING:
    from tacit.coupled.noiseless import ExactAnswer

__all__ = ["decision", "map_"]


@noiseless.command(name="map", cls=PlainCommand)
def map_(
    hypothesis: list[str] = typer.Option(
        ...,
        "--hypothesis",
        help='A distribution that the rows may have, as "bernoulli(0.4)" (at least two).',
    ),
    n: int = SIZE,
    delta: float = DELTA,
    weights: str | None = typer.Option(None, "--weights", help="Prior weights, as 1,2; by default equal."),
    unknown_rows: int | None = UNKNOWN,
    grid: str | None = GRID,
    draws: int = typer.Option(
        0,
        "--draws",
        help="The number of simulated tables; with three distributions or more they certify a smaller delta.",
    ),
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """Compute epsilon of an exact maximum a posteriori estimate."""
    from tacit.coupled.noiseless.stable import exact_map

    prior = None
    if weights is not None:
        try:
            prior = [float(w) for w in weights.split(",")]
        except ValueError:
            raise InvalidParameter(
                parameter="weights", value=weights[:40], must="be numbers, separated by commas"
            ) from None

    def again(delta: float, unknown: int | None, draws: int = 0) -> ExactAnswer:
        return exact_map(
            hypothesis, n=n, delta=delta, weights=prior, unknown_rows=unknown, grid=grid, draws=draws
        )

    # One simulation: the curves are without.
    say(again(delta, unknown_rows, draws), again, plot, json)


@noiseless.command(name="test", cls=PlainCommand)
def decision(
    null: str = typer.Option(..., "--null", help="The distribution of a row under the null."),
    alternative: str = typer.Option(
        ..., "--alternative", help="The distribution of a row under the alternative."
    ),
    n: int = SIZE,
    level: float = typer.Option(..., "--level", help="The level of the test."),
    delta: float = DELTA,
    unknown_rows: int | None = UNKNOWN,
    grid: str | None = GRID,
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """Compute epsilon of an exact likelihood-ratio test."""
    from tacit.coupled.noiseless.stable import exact_test

    def again(delta: float, unknown: int | None) -> ExactAnswer:
        return exact_test(null, alternative, n=n, level=level, delta=delta, unknown_rows=unknown, grid=grid)

    say(again(delta, unknown_rows), again, plot, json)
