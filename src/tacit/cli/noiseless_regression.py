"""`tacit noiseless regression`: may the exact least-squares line be published, from which rows?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tacit.cli.noiseless import DELTA, JSON, PLOT, UNKNOWN, noiseless, say
from tacit.cli.plain import PlainCommand
from tacit.errors import InvalidParameter

if TYPE_CHECKING:
    from tacit.coupled.noiseless import ExactAnswer

__all__ = ["regression"]


@noiseless.command(name="regression", cls=PlainCommand)
def regression(
    regressor: list[str] = typer.Option(
        ..., "--regressor", help='The distribution of a regressor, as "uniform(-1, 1)" (repeatable).'
    ),
    error: str = typer.Option(..., "--error", help="The distribution of the error around the line."),
    delta: float = DELTA,
    n: int | None = typer.Option(None, "--n", help="The number of rows, divided among the parts."),
    sizes: str | None = typer.Option(
        None, "--sizes", help="The rows of each part, as 5000,70000, instead of --n."
    ),
    slope: str = typer.Option("0", "--slope", help="A bound on each slope: one number, or one a regressor."),
    level: float = typer.Option(0.0, "--level", help="A bound on the constant of the centred columns."),
    constant: bool = typer.Option(True, "--constant/--no-constant", help="Fit a constant term."),
    unknown_rows: int | None = UNKNOWN,
    assume: str = typer.Option(
        "prism", "--assume", help="prism; or known, for one regressor with the true slope given."
    ),
    points: int = typer.Option(100, "--points", help="Grid steps on which each product is recorded."),
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """Compute epsilon of an exact regression line at a delta.

    By moments over disjoint parts of the rows.
    """
    from tacit.coupled.noiseless.regression import exact_regression

    slopes = _numbers("slope", slope)

    def again(delta: float, unknown: int | None) -> ExactAnswer:
        return exact_regression(
            regressor,
            error,
            n=n,
            sizes=None if sizes is None else [int(x) for x in _numbers("sizes", sizes)],
            delta=delta,
            slopes=slopes if len(slopes) > 1 else slopes[0],
            level=level,
            constant=constant,
            unknown_rows=unknown,
            assume=assume,
            points=points,
        ).answer

    found = again(delta, unknown_rows)
    say(found, again, plot, json)
    if not json:
        print()
        for part in found.details["parts"]:
            what = "means of the columns" if part["part"] == 0 else f"normal equation {part['part']}"
            print(f"  part {part['part']}: {part['rows']} rows, {what}, epsilon {part['epsilon']:.4g}")


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(x) for x in text.split(",")]
    except ValueError:
        raise InvalidParameter(
            parameter=name, value=text[:40], must="be numbers, separated by commas"
        ) from None
