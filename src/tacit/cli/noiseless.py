"""`tacit noiseless`: can this be published exactly, given what, with which (epsilon, delta)? It reads no data."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json, write_picture
from tacit.errors import InvalidParameter, visible
from tacit.exact.rounding import digits_down, digits_up

if TYPE_CHECKING:
    from tacit.coupled import Verdict
    from tacit.coupled.noiseless import ExactAnswer

noiseless = typer.Typer(
    name="noiseless",
    help="Exact answers: their privacy under assumptions on the rows.",
    no_args_is_help=True,
)

SIZE = typer.Option(..., "--n", help="The number of rows; public.")
_ROWS = typer.Option(
    ..., "--rows", help='The distribution of a row, as "uniform(0, 1)"; repeat it for a class of several.'
)
DELTA = typer.Option(..., "--delta", help="The delta of the guarantee.")
UNKNOWN = typer.Option(
    None, "--unknown-rows", help="The number of rows unknown to an adversary; by default all."
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
GROUP = typer.Option(1, "--group", help="Hide a group of up to this many rows.")
PLOT = typer.Option(None, "--plot", help="Draw epsilon against delta and known rows to this file.")
JSON = typer.Option(False, "--json", help="Print one JSON object.")


@noiseless.callback()
def _root() -> None:
    """Exact answers: their privacy under assumptions on the rows."""


@noiseless.command(name="sum")
def sum_(
    n: int = SIZE,
    rows: list[str] = _ROWS,
    delta: float = DELTA,
    unknown_rows: int | None = UNKNOWN,
    assume: str = _ASSUME,
    rectangle: str | None = _RECTANGLE,
    grid: str | None = GRID,
    group: int = GROUP,
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """Compute epsilon of an exact sum at a delta.

    Distributions: uniform(low, high), normal(mean, std, clamp=(low, high)), laplace(mean, scale, clamp=(low,
    high)), bernoulli(p) and table(value: probability, ...), with grid=step if wanted. Reads no data.
    """
    from tacit.coupled.noiseless import exact_sum

    _ask(exact_sum, n, rows, delta, unknown_rows, assume, rectangle, grid, group, plot, json)


@noiseless.command(name="mean")
def mean(
    n: int = SIZE,
    rows: list[str] = _ROWS,
    delta: float = DELTA,
    unknown_rows: int | None = UNKNOWN,
    assume: str = _ASSUME,
    rectangle: str | None = _RECTANGLE,
    grid: str | None = GRID,
    group: int = GROUP,
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """Compute epsilon of an exact mean at a delta.

    As for the sum, since the number of rows is public.
    """
    from tacit.coupled.noiseless import exact_mean

    _ask(exact_mean, n, rows, delta, unknown_rows, assume, rectangle, grid, group, plot, json)


@noiseless.command(name="count")
def count(
    n: int = SIZE,
    probability: str = typer.Option(
        ...,
        "--probability",
        help="The probability that a row is counted, or its two ends, as 0.1,0.9.",
    ),
    delta: float = DELTA,
    unknown_rows: int | None = UNKNOWN,
    group: int = GROUP,
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """Compute epsilon of an exact count at a delta.

    Rows are counted independently, each with a probability between two ends.
    """
    from tacit.coupled.noiseless import exact_count

    chance = tuple(part.strip() for part in probability.split(","))

    def again(delta: float, unknown: int | None) -> ExactAnswer:
        asked = chance if len(chance) > 1 else chance[0]
        return exact_count(asked, n=n, delta=delta, unknown_rows=unknown, group=group)

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
    group: int,
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
            group=group,
        )

    say(again(delta, unknown_rows), again, plot, json)


def say(
    answer: ExactAnswer,
    again: Callable[[float, int], ExactAnswer] | None,
    plot: Path | None,
    json: bool,
) -> None:
    """Prints an answer, and draws its curves where a file is named; `again` asks anew at (delta, unknown rows)."""
    told: dict[str, Any] = answer.to_dict()
    if plot is not None and again is not None:
        from tacit.coupled.noiseless.answer import curves_of
        from tacit.report.figures import draw_exact_answer

        curves = curves_of(answer, again)
        told["plot"] = str(write_picture(plot, lambda path: draw_exact_answer(curves, path)))
    if json:
        print_json(told)
        return
    from tacit.coupled.noiseless.answer import PAIR_IS

    print(textwrap.fill(visible(answer.sentence), 96), end="\n\n")
    pair = (
        "not finite, or not computed"
        if answer.epsilon_pair is None
        else f"{digits_up(answer.epsilon_pair, 6)}"
    )
    print(f"  epsilon              {digits_up(answer.epsilon, 6)}")
    print(f"  epsilon_pair         {pair}  ({PAIR_IS})")
    print(f"  delta                {answer.delta:g}")
    if (alone := told.get("epsilon_without_the_row")) is not None:
        zero, apart = told["delta_at_zero"], told["delta_at_zero_without_the_row"]
        print(
            f"  without the row      epsilon {digits_up(alone, 6)} against the simulator that leaves the row out"
        )
        print(
            f"  delta at epsilon 0   {digits_up(zero, 4)}, or {digits_up(apart, 4)} "
            "against the simulator that leaves the row out"
        )
    if answer.threshold is not None:
        print(f"  threshold            {answer.threshold}")
    print(textwrap.fill(f"  simulator            {answer.simulator}", 96, subsequent_indent=" " * 23))
    print(f"  theorem              {answer.theorem}")
    print()
    print("This is not differential privacy: it rests on what is assumed about the rows and the adversary.")
    if "plot" in told:
        print(f"epsilon against delta and against known rows is drawn in {told['plot']}")


# `tacit noiseless map` and `tacit noiseless test`: which law, or which decision, may be told exactly?


@noiseless.command(name="map")
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
        help="The number of simulated tables, for three distributions or more.",
    ),
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """Compute epsilon of an exact maximum a posteriori estimate."""
    from tacit.coupled.noiseless.decisions import exact_map

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


@noiseless.command(name="test")
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
    from tacit.coupled.noiseless.decisions import exact_test

    def again(delta: float, unknown: int | None) -> ExactAnswer:
        return exact_test(null, alternative, n=n, level=level, delta=delta, unknown_rows=unknown, grid=grid)

    say(again(delta, unknown_rows), again, plot, json)


# `tacit noiseless histogram`: from which count on may the cells of a random sample be published exactly?


@noiseless.command(name="histogram")
def histogram(
    sampling: str = typer.Option(
        ...,
        "--sampling",
        help="poisson, binomial, or fixed: a fixed number of rows, a few discarded at random.",
    ),
    epsilon: float | None = typer.Option(None, "--epsilon", help="The epsilon of the guarantee."),
    delta: float | None = typer.Option(None, "--delta", help="The delta of the guarantee."),
    threshold: int | None = typer.Option(None, "--threshold", help="Smaller counts become 0."),
    rate: str | None = typer.Option(None, "--rate", help="binomial: the largest sampling rate."),
    known_rows: int = typer.Option(
        0, "--known-rows", help="Sampled rows of one cell that an adversary may know."
    ),
    n: int | None = typer.Option(None, "--n", help="fixed: the number of rows."),
    size_epsilon: float | None = typer.Option(
        None,
        "--size-epsilon",
        help="fixed: the part of epsilon for the number of kept rows; by default a quarter.",
    ),
    group: int = GROUP,
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """Find the count from which cells may be exact.

    For a random sample; smaller counts are published as 0. Give two of --epsilon, --delta and --threshold.
    """
    from tacit.coupled.noiseless.histograms import truncated_histogram

    found = truncated_histogram(
        sampling=sampling,
        epsilon=epsilon,
        delta=delta,
        threshold=threshold,
        rate=rate,
        known_rows=known_rows,
        n=n,
        size_epsilon=size_epsilon,
        group=group,
    )
    told = found.to_dict()
    if plot is not None:
        from tacit.report.figures import draw_threshold

        write_picture(plot, lambda path: draw_threshold(found, path))
        told["plot"] = str(plot)
    if json:
        print_json(told)
        return
    print(found.sentence)
    print()
    print(f"  publish counts of at least        {found.threshold}; smaller ones as 0")
    print(f"  epsilon                           {digits_up(found.epsilon, 6)}   (against {found.simulator})")
    if found.epsilon_pair is not None:
        words = "between two cells of a row, to somebody who knows the distribution"
        print(f"  epsilon_pair                      {digits_up(found.epsilon_pair, 6)}   ({words})")
    print(
        f"  delta                             {digits_up(found.delta, 6)}   "
        f"(reached: {digits_up(told['delta_at_threshold'], 4)})"
    )
    if sampling == "fixed":
        print(f"  rows discarded at random          0 to {told['discards']}, about {told['discards'] // 2}")
    if told.get("population"):
        print(
            f"  as DP of the population           counts of at least {told['population']['threshold']}, if you draw "
            "the sample yourself, in secret"
        )
    print(
        f"  crowd-blending                    ({found.threshold}, 0): every visible row has {found.threshold} alike"
    )
    print(f"  theorem                           {found.theorem}")
    if plot is not None:
        print(f"Drawn in {plot}")


@noiseless.command(name="crowd")
def crowd(
    size: int = typer.Option(
        ..., "--crowd", help="The size k of the crowd that every visible row blends in."
    ),
    sampling: str = typer.Option(..., "--sampling", help="poisson or binomial."),
    delta: float = DELTA,
    rate: str | None = typer.Option(None, "--rate", help="binomial: the largest sampling rate."),
    known_rows: int = typer.Option(
        0, "--known-rows", help="Sampled rows of one class that an adversary may know."
    ),
    blend_epsilon: float = typer.Option(
        0.0, "--blend-epsilon", help="The epsilon of crowd-blending privacy; only 0 has a law."
    ),
    json: bool = JSON,
) -> None:
    """Compute epsilon of any crowd-blending private release.

    For a random sample whose members are unknown to everybody.
    """
    from tacit.coupled.noiseless.histograms import crowd_blending

    found = crowd_blending(
        crowd=size,
        sampling=sampling,
        delta=delta,
        rate=rate,
        known_rows=known_rows,
        blend_epsilon=blend_epsilon,
    )
    say(found, None, None, json)


# `tacit noiseless argmax`, `mode` and `rounded`: which column or category is largest, or about how large a sum is.


@noiseless.command(name="argmax")
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
    from tacit.coupled.noiseless.decisions import exact_argmax

    def again(delta: float, unknown: int | None) -> ExactAnswer:
        return exact_argmax(column, n=n, delta=delta, unknown_rows=unknown, grid=grid)

    say(again(delta, unknown_rows), again, plot, json)


@noiseless.command(name="mode")
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
    """Compute epsilon of naming the most frequent category exactly.

    Ties go to the first. Against the best simulator for two categories and small tables, else by a bound.
    """
    from tacit.coupled.noiseless.decisions import exact_mode

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


@noiseless.command(name="rounded")
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
    from tacit.coupled.noiseless.sums import exact_quantised

    def again(delta: float, unknown: int | None) -> ExactAnswer:
        return exact_quantised(rows, n=n, delta=delta, steps=steps, unknown_rows=unknown, grid=grid)

    say(again(delta, unknown_rows), again, plot, json)


# `tacit noiseless regression`: may the exact least-squares line be published, from which rows?


@noiseless.command(name="regression")
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
            print(
                f"  part {part['part']}: {part['rows']} rows, {what}, epsilon {digits_up(part['epsilon'], 4)}"
            )


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(x) for x in text.split(",")]
    except ValueError:
        raise InvalidParameter(
            parameter=name, value=text[:40], must="be numbers, separated by commas"
        ) from None


# `tacit coupled`: the exact (epsilon, delta) of a finite mechanism under given priors.

coupled = typer.Typer(
    name="coupled",
    help="Coupled worlds: privacy under priors, checked exactly.",
    no_args_is_help=True,
)


@coupled.callback()
def _root_coupled() -> None:
    """Coupled worlds: privacy under priors, checked exactly."""


@coupled.command(name="check")
def check(
    file: Path = typer.Argument(..., help="The priors, the mechanism and the claim: TOML or JSON."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Check a finite mechanism under the priors in a file.

    Prints certified ends of epsilon and delta, and a witness if the claim fails.
    """
    from tacit.coupled import read_question

    question = read_question(file)
    verdicts = question.answer()
    told: dict[str, Any] = {
        "file": str(file),
        "mechanism": question.mechanism.name,
        "epsilon": question.epsilon.epsilon,
        "delta": float(question.delta),
        "verdicts": [v.to_dict() for v in verdicts],
    }
    if json:
        print_json(told)
        return
    claim = f"({question.epsilon.epsilon}, {float(question.delta):.4g})"
    print(f"{question.mechanism.name}: is it {claim}-private?")
    for verdict in verdicts:
        _say(verdict)


def _say(verdict: Verdict) -> None:
    from tacit.coupled.numbers import short

    answer = {True: "yes", False: "no", None: "not decided"}[verdict.holds]
    found = verdict.delta.interval
    exact = short(verdict.delta.high, 24) if verdict.delta.exact else None
    delta = exact or f"between {digits_down(found.low, 9)} and {digits_up(found.high, 9)}"
    print(f"{verdict.definition} ({verdict.number}): {answer}")
    print(f"  delta at this epsilon     {delta}")
    if verdict.delta.simulator:
        print(f"  against                   {verdict.delta.simulator}")
    for name, numbers in (
        ("epsilon at this delta", verdict.epsilon),
        ("epsilon_pair", verdict.epsilon_pair),
    ):
        if numbers is not None:
            wide = numbers.low < numbers.high and math.isinf(numbers.high)
            who = "  (to somebody who knows which prior holds)" if name == "epsilon_pair" else ""
            print(
                f"  {name:<26}{f'above {digits_down(numbers.low, 4)}' if wide else digits_up(numbers.high, 6)}{who}"
            )
    for witness in verdict.witnesses[:3]:
        print(f"  witness: {witness}")
