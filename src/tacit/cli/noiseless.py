"""`tacit noiseless`: can this be published exactly, given what, with which (epsilon, delta)? It reads no data."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json, write_picture
from tacit.cli.plain import PlainCommand, PlainGroup
from tacit.errors import InvalidParameter, visible

if TYPE_CHECKING:
    from tacit.coupled.noiseless import ExactAnswer

__all__ = ["DELTA", "GRID", "JSON", "PLOT", "SIZE", "UNKNOWN", "noiseless", "say"]

noiseless = typer.Typer(
    name="noiseless",
    cls=PlainGroup,
    help="Exact answers: their privacy under assumptions on the rows.",
    no_args_is_help=True,
)

SIZE = typer.Option(..., "--n", help="The number of rows; public.")
_ROWS = typer.Option(
    ..., "--rows", help='The distribution of a row, as "uniform(0, 1)"; repeat it for a class of several.'
)
DELTA = typer.Option(..., "--delta", help="The delta of the guarantee.")
UNKNOWN = typer.Option(
    None, "--unknown-rows", help="The number of rows that an adversary does not know; by default all."
)
_ASSUME = typer.Option(
    "known",
    "--assume",
    help="known, or a shape that the distribution contains: rectangle, rectangles, triangle or normal; "
    'or one with numbers, as "triangle(-2, 0, 2)".',
)
_RECTANGLE = typer.Option(
    None, "--rectangle", help="The ends of the rectangle, as -1.5,1.5; by default the best."
)
GRID = typer.Option(
    None, "--grid", help="The step of the recording grid; by default a hundredth of the range."
)
PLOT = typer.Option(None, "--plot", help="Draw epsilon against delta and known rows to this file.")
JSON = typer.Option(False, "--json", help="Print one JSON object.")


@noiseless.callback()
def _root() -> None:
    """Exact answers: their privacy under assumptions on the rows."""


@noiseless.command(name="sum", cls=PlainCommand)
def sum_(
    n: int = SIZE,
    rows: list[str] = _ROWS,
    delta: float = DELTA,
    unknown_rows: int | None = UNKNOWN,
    assume: str = _ASSUME,
    rectangle: str | None = _RECTANGLE,
    grid: str | None = GRID,
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """Compute epsilon of an exact sum at a delta.

    Distributions: uniform(low, high), normal(mean, std, clamp=(low, high)), laplace(mean, scale, clamp=(low,
    high)), bernoulli(p) and table(value: probability, ...), with grid=step if wanted. Reads no data.
    """
    from tacit.coupled.noiseless import exact_sum

    _ask(exact_sum, n, rows, delta, unknown_rows, assume, rectangle, grid, plot, json)


@noiseless.command(name="mean", cls=PlainCommand)
def mean(
    n: int = SIZE,
    rows: list[str] = _ROWS,
    delta: float = DELTA,
    unknown_rows: int | None = UNKNOWN,
    assume: str = _ASSUME,
    rectangle: str | None = _RECTANGLE,
    grid: str | None = GRID,
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """Compute epsilon of an exact mean at a delta.

    As for the sum, since the number of rows is public.
    """
    from tacit.coupled.noiseless import exact_mean

    _ask(exact_mean, n, rows, delta, unknown_rows, assume, rectangle, grid, plot, json)


@noiseless.command(name="count", cls=PlainCommand)
def count(
    n: int = SIZE,
    probability: str = typer.Option(
        ...,
        "--probability",
        help="The probability that a row is counted, or its two ends, as 0.1,0.9.",
    ),
    delta: float = DELTA,
    unknown_rows: int | None = UNKNOWN,
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """Compute epsilon of an exact count at a delta.

    Rows are counted independently, each with a probability between two ends.
    """
    from tacit.coupled.noiseless import exact_count

    chance = tuple(part.strip() for part in probability.split(","))

    def again(delta: float, unknown: int | None) -> ExactAnswer:
        return exact_count(chance if len(chance) > 1 else chance[0], n=n, delta=delta, unknown_rows=unknown)

    say(again(delta, unknown_rows), again, plot, json)


def _ask(
    question: Callable[..., ExactAnswer],
    n: int,
    rows: list[str],
    delta: float,
    unknown_rows: int | None,
    assume: str,
    rectangle: str | None,
    grid: str | None,
    plot: Path | None,
    json: bool,
) -> None:
    over = None
    if rectangle is not None:
        over = tuple(part.strip() for part in rectangle.split(","))
        if len(over) != 2:
            raise InvalidParameter(
                parameter="rectangle", value=rectangle, must="be two numbers, such as -1.5,1.5"
            )

    def again(delta: float, unknown: int | None) -> ExactAnswer:
        return question(
            rows,
            n=n,
            delta=delta,
            unknown_rows=unknown,
            assume=assume,
            rectangle_over=over,
            grid=grid,
        )

    say(again(delta, unknown_rows), again, plot, json)


def say(
    answer: ExactAnswer,
    again: Callable[[float, int], ExactAnswer] | None,
    plot: Path | None,
    json: bool,
) -> None:
    """Prints an answer, and draws its curves where a file is named; `again` asks anew at (delta, unknown rows)."""
    told: dict[str, Any] = dict(answer.record)
    if plot is not None and again is not None:
        from tacit.coupled.noiseless.curves import curves_of
        from tacit.report.exact_answers import draw_exact_answer

        curves = curves_of(answer, again)
        told["plot"] = str(write_picture(plot, lambda path: draw_exact_answer(curves, path)))
    if json:
        print_json(told)
        return
    from tacit.coupled.noiseless.answer import PAIR_IS

    print(textwrap.fill(visible(answer.sentence), 96), end="\n\n")
    pair = "not finite, or not computed" if answer.epsilon_pair is None else f"{answer.epsilon_pair:.6g}"
    print(f"  epsilon              {answer.epsilon:.6g}")
    print(f"  epsilon_pair         {pair}  ({PAIR_IS})")
    print(f"  delta                {answer.delta:g}")
    if answer.threshold is not None:
        print(f"  threshold            {answer.threshold}")
    print(textwrap.fill(f"  simulator            {answer.simulator}", 96, subsequent_indent=" " * 23))
    print(f"  theorem              {answer.theorem}")
    print()
    print("This is not differential privacy: it rests on what is assumed about the rows and the adversary.")
    if "plot" in told:
        print(f"epsilon against delta and against known rows is drawn in {told['plot']}")
