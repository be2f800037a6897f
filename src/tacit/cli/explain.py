"""`tacit explain`: what a certificate means, in words and in two plots."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Any

import typer

from tacit.cli.output import print_json, write_whole
from tacit.errors import InvalidParameter

__all__ = ["explain"]


def explain(
    certificate: Path = typer.Argument(..., metavar="CERTIFICATE", help="A certificate, a JSON file."),
    plot: Path | None = typer.Option(
        None, "--plot", help="Draw test power and posterior shift to this file."
    ),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Say what a release may reveal, on what that rests, and what its intervals do not cover."""
    from tacit.guarantees import theorem
    from tacit.guarantees.record import from_record

    said = read_certificate(certificate)
    guarantee = from_record(said["guarantee"])
    theorems = [theorem(name) for name in said["theorems"]]
    if plot is not None:
        from tacit.report.figures import draw_meaning

        plot = write_whole(plot, lambda path: draw_meaning(guarantee, path))
    if json:
        print_json(
            {
                "name": said["name"],
                "guarantee": guarantee.record,
                "explanation": guarantee.explain(),
                "power_at_size_0.05": guarantee.power(0.05),
                "best_guess": guarantee.best_guess(),
                "theorems": [t.id for t in theorems],
                **({"plot": str(plot)} if plot else {}),
            }
        )
        return
    from tacit.cli.demo import _wrapped

    print(f"{said['name']}: {guarantee}\n")
    print(_wrapped(guarantee.explain()))
    print(f"\nNoise: {said['mechanism']['chosen']}.")
    print("Its intervals do not cover " + "; ".join(said["intervals"]["do_not_cover"]) + ".")
    print(said["computational"])
    print("\nThis rests on:")
    for one in theorems:
        print(f"  {one.id}: {one.statement} ({one.source})")
    if plot is not None:
        print(f"\nTest power and posterior shift are drawn in {plot}")


def read_certificate(path: Path) -> dict[str, Any]:
    """The certificate in a file; anything else is one clear error."""
    from tacit.curator.certificate import FORMAT

    try:
        said = json_text.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(parameter="certificate", value=str(path), must="be a readable file") from None
    except ValueError:
        raise InvalidParameter(parameter="certificate", value=str(path), must="be JSON") from None
    needed = {"name", "guarantee", "theorems", "mechanism", "intervals", "computational"}
    if not isinstance(said, dict) or said.get("format") != FORMAT or not needed <= set(said):
        raise InvalidParameter(
            parameter="certificate", value=str(path), must=f'be a certificate of format "{FORMAT}"',
            hint="tacit release writes them into the folder certificates",
        )  # fmt: skip
    return said
