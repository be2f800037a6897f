"""`tacit coupled`: the exact (epsilon, delta) of a finite mechanism under given priors."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json
from tacit.cli.plain import PlainCommand, PlainGroup

if TYPE_CHECKING:
    from tacit.coupled import Verdict

__all__ = ["coupled"]

coupled = typer.Typer(
    name="coupled",
    cls=PlainGroup,
    help="Coupled worlds: privacy under priors, checked exactly.",
    no_args_is_help=True,
)


@coupled.callback()
def _root() -> None:
    """Coupled worlds: privacy under priors, checked exactly."""


@coupled.command(name="check", cls=PlainCommand)
def check(
    file: Path = typer.Argument(..., help="The priors, the mechanism and the claim: TOML or JSON."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Check a finite mechanism under the priors in a file.

    Prints for each definition whether the claim holds, certified ends of epsilon and delta, and a witness if it
    fails.
    """
    from tacit.coupled import read_question

    question = read_question(file)
    verdicts = question.answer()
    told: dict[str, Any] = {
        "file": str(file),
        "mechanism": question.mechanism.name,
        "epsilon": question.epsilon.epsilon,
        "delta": float(question.delta),
        "verdicts": [v.record for v in verdicts],
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
    delta = exact or f"between {found.low:.9g} and {found.high:.9g}"
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
            print(f"  {name:<26}{f'above {numbers.low:.4g}' if wide else f'{numbers.high:.6g}'}{who}")
    for witness in verdict.witnesses[:3]:
        print(f"  witness: {witness}")
