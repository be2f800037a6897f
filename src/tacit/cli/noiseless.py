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
    help="Exact answers: private under which assumption?",
    no_args_is_help=True,
)

SIZE = typer.Option(..., "--n", help="The number of rows; public.")
_ROWS = typer.Option(
    ..., "--rows", help='The law of a row, such as "uniform(0, 1)"; given again: one of several laws.'
)
DELTA = typer.Option(..., "--delta", help="The delta at which epsilon is found.")
UNKNOWN = typer.Option(
    None, "--unknown-rows", help="How many rows an adversary does not know; all, if left out."
)
_ASSUME = typer.Option(
    "known",
    "--assume",
    help="known, or that the law contains a shape: rectangle, rectangles, triangle, normal; the best one, or "
    'the one named, such as "triangle(-2, 0, 2)".',
)
_RECTANGLE = typer.Option(None, "--rectangle", help="The rectangle's ends, such as -1.5,1.5; else the best.")
GRID = typer.Option(None, "--grid", help="The step of the grid of records; else a hundredth of the range.")
PLOT = typer.Option(None, "--plot", help="Draw epsilon against delta and against known rows to this file.")
JSON = typer.Option(False, "--json", help="Print one JSON object instead of sentences.")


@noiseless.callback()
def _root() -> None:
    """Exact answers: private under which assumption?"""


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
    """May the exact sum be published?

    The epsilon of it at a delta, under a law of the rows that is assumed.
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
    """May the exact mean be published?

    The same as for the sum: the number of rows is public.
    """
    from tacit.coupled.noiseless import exact_mean

    _ask(exact_mean, n, rows, delta, unknown_rows, assume, rectangle, grid, plot, json)


@noiseless.command(name="count", cls=PlainCommand)
def count(
    n: int = SIZE,
    probability: str = typer.Option(
        ...,
        "--probability",
        help="The chance that a row is counted: one number, or two, each row in between.",
    ),
    delta: float = DELTA,
    unknown_rows: int | None = UNKNOWN,
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """May the exact count be published?

    Every row is counted by a chance of its own, of which the ends are given.
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
