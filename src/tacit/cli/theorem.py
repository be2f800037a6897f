"""`tacit theorem`: what an id in a certificate or a refusal stands for."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import typer

from tacit.cli.output import print_json
from tacit.errors import visible

if TYPE_CHECKING:
    from tacit.guarantees.theorems import Theorem

__all__ = ["theorem"]


def theorem(
    id: str = typer.Argument("", metavar="ID", help="The id of a theorem; without one, all are listed."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """State a theorem, its assumptions, its source and its page.

    Certificates and refusals name theorems by their ids.
    """
    from tacit.guarantees import THEOREMS
    from tacit.guarantees import theorem as find

    if not id:
        _list(list(THEOREMS.values()), json)
        return
    one = find(id)
    if json:
        print_json(_record(one))
        return
    print(f"{one.id} ({one.standing.value})\n")
    for title, text in (
        ("Statement", one.statement),
        ("Assumptions", one.assumptions),
        ("Source", one.source),
        ("Proof", one.page),
    ):
        print(textwrap.fill(visible(f"{title}: {text}"), 96, subsequent_indent="  "))


def _record(one: Theorem) -> dict[str, str]:
    return {
        "id": one.id,
        "statement": one.statement,
        "assumptions": one.assumptions,
        "source": one.source,
        "standing": one.standing.value,
        "page": one.page,
    }


def _list(known: list[Theorem], json: bool) -> None:
    if json:
        print_json({"theorems": [_record(one) for one in known]})
        return
    for one in known:
        print(textwrap.shorten(f"{one.id}: {one.statement}", 110, placeholder=" ..."))
