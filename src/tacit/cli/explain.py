"""`tacit explain`: what a certificate, or a guarantee by its numbers, means in words and in two plots."""

from __future__ import annotations

import json as json_text
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json, write_whole
from tacit.errors import InvalidParameter, NoLaw

if TYPE_CHECKING:
    from tacit.guarantees import Guarantee

__all__ = ["explain"]


def explain(
    certificate: Path | None = typer.Argument(
        None, metavar="CERTIFICATE", help="A certificate, a JSON file."
    ),
    epsilon: float | None = typer.Option(None, "--epsilon", help="Without a certificate: the epsilon."),
    delta: float = typer.Option(0.0, "--delta", help="Without a certificate: the delta; 0 for pure epsilon."),
    plot: Path | None = typer.Option(
        None, "--plot", help="Draw test power and posterior shift to this file."
    ),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Say what a release may reveal, on what that rests, and what its intervals do not cover."""
    from tacit.guarantees.record import from_record

    if (certificate is None) == (epsilon is None):
        raise InvalidParameter(
            parameter="certificate", value=str(certificate) if certificate else None,
            must="be given, or --epsilon instead of it", hint="tacit explain --epsilon 1 --delta 1e-6",
        )  # fmt: skip
    said = None if certificate is None else read_certificate(certificate)
    guarantee = from_record(said["guarantee"]) if said else _plain(float(epsilon or 0.0), delta)
    drawn = None
    if plot is not None:
        from tacit.report.figures import draw_meaning

        drawn = write_whole(plot, lambda path: draw_meaning(guarantee, path))
    if json:
        print_json(
            {
                **({"name": said["name"]} if said else {}),
                "guarantee": guarantee.record,
                "explanation": guarantee.explain(),
                "power_at_size_0.05": _or_none(lambda: guarantee.power(0.05)),
                "best_guess": _or_none(guarantee.best_guess),
                **({"theorems": said["theorems"]} if said else {}),
                **({"plot": str(drawn)} if drawn else {}),
            }
        )
        return
    print(f"{said['name'] if said else 'A release'} with {guarantee}:\n")
    print(wrapped(guarantee.explain()))
    if said:
        _grounds(said)
    if drawn is not None:
        print(f"\nTest power and posterior shift are drawn in {drawn}")


def _or_none(reading: Callable[[], float]) -> float | None:
    """The number, or null where the guarantee's condition lets none hold."""
    try:
        return reading()
    except NoLaw:
        return None


def _plain(epsilon: float, delta: float) -> Guarantee:
    from tacit.guarantees import Approximate, Guarantee, Pure, rows

    bound = Approximate(epsilon=epsilon, delta=delta) if delta != 0 else Pure(epsilon=epsilon)
    return Guarantee(bound=bound, unit=rows())


def _grounds(said: dict[str, Any]) -> None:
    from tacit.guarantees import theorem

    print(f"\nNoise: {said['mechanism']['chosen']}.")
    print(wrapped("Its intervals do not cover " + "; ".join(said["intervals"]["do_not_cover"]) + "."))
    print(wrapped(said["computational"]))
    print("\nThis rests on:")
    for one in map(theorem, said["theorems"]):
        print(
            textwrap.fill(
                f"{one.id}: {one.statement} ({one.source})", 96, initial_indent="  ", subsequent_indent="    "
            )
        )


def wrapped(text: str) -> str:
    """One paragraph a sentence."""
    return "\n\n".join(textwrap.fill(s.strip() + ".", 96) for s in text.rstrip(".").split(". ") if s.strip())


def read_certificate(path: Path) -> dict[str, Any]:
    """The certificate in a file; anything else is one clear error."""
    from tacit.curator.certificate import FORMAT
    from tacit.guarantees import theorem

    try:
        said = json_text.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(parameter="certificate", value=str(path), must="be a readable file") from None
    except ValueError:
        raise InvalidParameter(parameter="certificate", value=str(path), must="be JSON") from None
    if not isinstance(said, dict) or said.get("format") != FORMAT or not _whole(said):
        raise InvalidParameter(
            parameter="certificate", value=str(path), must=f'be a certificate of format "{FORMAT}"',
            hint="tacit release writes them into the folder certificates",
        )  # fmt: skip
    for name in said["theorems"]:
        theorem(name)
    return said


def _whole(said: dict[str, Any]) -> bool:
    """Has it all that is printed, each of its kind? Checked before a word is printed."""
    texts = [said.get("name"), said.get("computational")]
    mechanism, intervals, theorems = said.get("mechanism"), said.get("intervals"), said.get("theorems")
    if not isinstance(mechanism, dict) or not isinstance(intervals, dict) or not isinstance(theorems, list):
        return False
    not_covered = intervals.get("do_not_cover")
    if not isinstance(not_covered, list) or not isinstance(said.get("guarantee"), dict):
        return False
    return all(isinstance(t, str) for t in [*texts, mechanism.get("chosen"), *not_covered, *theorems])
