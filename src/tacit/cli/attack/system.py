"""`tacit attack system`: a query system of the past, set up on made-up people and broken."""

from __future__ import annotations

import typer

from tacit.cli.output import print_json
from tacit.errors import InvalidParameter

__all__ = ["system"]


def system(
    name: str = typer.Argument("", help="The system; --list shows the names."),
    list_: bool = typer.Option(False, "--list", help="List the names and stop."),
    seed: int = typer.Option(0, "--seed", help="The seed of the made-up people.", min=0),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Break a query system of the past, on made-up people."""
    from tacit.attacks.systems import SYSTEMS, show

    if list_:
        if json:
            print_json({"systems": sorted(SYSTEMS)})
        else:
            print("\n".join(sorted(SYSTEMS)))
        return
    if not name:
        raise InvalidParameter(
            parameter="name", value="", must="name a system", hint="tacit attack system --list shows them"
        )
    shown = show(name, seed=seed)
    finding, score = shown.finding, shown.score
    if json:
        print_json(
            {
                "system": name,
                "idea": shown.idea,
                "source": shown.source,
                "attack": finding.attack,
                "questions": finding.details["asked"],
                "people": finding.people,
                "claims": score.claims,
                "right": score.right,
                "guessing": finding.guessing,
                "alone": finding.alone,
            }
        )
        return
    print(f"{name}: {shown.idea} ({shown.source})")
    print(f"  attack                    {finding.attack}, {finding.details['asked']:,} questions")
    print(
        f"  claims about people       {score.claims:,} of {finding.people:,}, of which {score.right:,} are true"
    )
    print(f"  guessing alone            {finding.guessing:g} ({finding.alone})")
