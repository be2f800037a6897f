"""`tacit ledger show|verify|export`: what was spent, by whom, on what; whether it is still what was written.

The commands that write to a ledger are in `desk.py`.
"""

from __future__ import annotations

import json as json_text
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from tacit.cli.output import print_json, write_whole
from tacit.errors import visible
from tacit.guarantees.declarations import FIXED_PARAMETERS

__all__ = ["JSON", "WAIT", "WHERE", "ledger"]

ledger = typer.Typer(rich_markup_mode=None, add_completion=False)

WHERE = typer.Argument(
    ..., metavar="LEDGER", help="The ledger: a file, or a URL such as postgresql://host/db."
)
JSON = typer.Option(False, "--json", help="Print one JSON object.")
WAIT = typer.Option(30.0, "--wait", help="Seconds to wait while another process writes.")


@ledger.callback(invoke_without_command=True)
def root(context: typer.Context) -> None:
    """The privacy budget: who spent what, on which queries."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@ledger.command(name="show")
def show(where: str = WHERE, wait: float = WAIT, json: bool = JSON) -> None:
    """Print the budget, what is spent and left, and every charge."""
    from tacit.ledger import Ledger, overview

    found = overview(Ledger.open(where, wait_seconds=wait))
    if json:
        print_json(found)
        return
    for line in _shown(found):
        print(visible(line))


def _shown(found: dict[str, Any]) -> Iterator[str]:
    """An overview as sentences: what was asked, of which table and version, by whom, when, at what price."""
    of = f", of {found['table']!r}" if found["table"] else ""
    made_up = ", a rehearsal on made-up rows" if found["rehearsal"] else ""
    yield f"{found['ledger']}{of}, made {found['created'][:19].replace('T', ' ')} UTC{made_up}"
    gamma = {k: v for k, v in found["budget"]["condition"].items() if k == "gamma"}
    yield f"budget  {_said(found, found['budget']['bound'] | gamma)}"
    if found["budget"]["condition"]["kind"] in ("priors", "bounded-adversary"):
        from tacit.guarantees.record import from_record

        yield f"        not differential privacy: {from_record(found['budget']).condition}"
    yield f"spent   {_said(found, found['spent'])}"
    yield f"left    {_said(found, found['remaining'])}"
    for name, part in found["analysts"].items():
        limit = f" of their {_said(found, part['share'])}" if part["share"] else ""
        yield f"  {name}: {_said(found, part['spent'])}{limit}, charges: {part['charges']}"
    if found["people"] or found["four_eyes"]:
        demand = "every charge needs an approval" if found["four_eyes"] else "no approval is demanded"
        yield f"names that somebody wrote down ({demand}):"
    for name, person in found["people"].items():
        key = f", key {person['key'][:16]}" if person["key"] else ""
        yield f"  {name}: {', '.join(person['roles']) or 'no role any more'}{key}"
    for charge in found["charges"]:
        yield from _charge(found, charge, charge["state"])
    for asked in found["requests"]:
        if asked["state"] != "closed":
            yield from _charge(found, asked, f"request, {asked['state']}")
    for note in found["notes"]:
        about = f" about entry {note['about']}" if note["about"] else ""
        yield f"{note['sequence']:>6}  {_when(note)}  note{about} by {note['by']}: {note['note']}"
    for look in found["looks"]:
        version = f", version {look['version']!r}" * bool(look["version"])
        yield f"{look['sequence']:>6}  {_when(look)}  looked at the data  {look['analyst']}{version}"
    yield f"anchor  {found['anchor']}"


def _charge(found: dict[str, Any], one: dict[str, Any], state: str) -> Iterator[str]:
    """A charge or a request: who, when, price, then each release in words, consent, and what was said later."""
    from tacit.ledger import parts_words

    part = "" if one["of_budget"] is None else f" ({parts_words(one['of_budget'])})"
    place = [f"table {one['table']!r}"] if one["table"] else []
    place += [f"version {one['version']!r}"] if one["version"] else []
    about = f", {', '.join(place)}" if place else ""
    price = _said(found, one["charge"])
    yield f"{one['sequence']:>6}  {_when(one)}  {state:<9}  {price}{part}  by {one['analyst']}{about}"
    for release in one["releases"]:
        yield f"          {release['release']}: {release['statistic']} Price: {release['price']['words']}."
    if not one["releases"]:
        yield f"          request {one['request']}"
    if one["approved_by"]:
        yield f"          approved by {', '.join(one['approved_by'])}"
    if one.get("note"):
        yield f"          {one['analyst']} says: {one['note']}"
    if one.get("replaces"):
        yield f"          replaces {', '.join(one['replaces'])}"
    for sentence in one.get("declared", []):
        yield f"          declared, and not checked: {_of_plan(sentence)}"
    for said in one.get("corrections", []):
        what = "WITHDRAWN" if said["kind"] == "withdraw" else f"REPLACED by charge {said['replaced_by']}"
        which = f" ({said['release']})" if said["release"] else ""
        why = f": {said['note']}" if said["note"] else ""
        yield f"          {what}{which} on {said['time'][:10]} by {said['by']}{why}"


def _of_plan(sentence: str) -> str:
    """A declaration of one charge: it speaks of the releases of its own plan and of no others in the ledger."""
    if sentence == FIXED_PARAMETERS:
        return "the parameters of all releases of this plan were fixed before any of them was made"
    return sentence


def _when(one: dict[str, Any]) -> str:
    return str(one["time"])[:19].replace("T", " ")


@ledger.command(name="verify")
def verify(
    where: str = WHERE,
    anchor: list[str] = typer.Option(
        [], "--anchor", help="An earlier anchor (sequence:digest) that the chain must contain (repeatable)."
    ),
    wait: float = WAIT,
    json: bool = JSON,
) -> None:
    """Check the whole hash chain; exit 1 if anything changed."""
    from tacit.ledger import verify_ledger
    from tacit.report.progress import progress

    with progress("Verifying", quiet=json) as step:
        found = verify_ledger(
            where,
            anchor,
            wait_seconds=wait,
            progress=lambda done, of: step(f"{done:,} of {of:,} entries"),
        )
    if json:
        problems = [{"sequence": p.sequence, "what": p.what} for p in found.problems]
        print_json({"ok": found.ok, "entries": found.entries, "anchor": found.anchor, "problems": problems})
    elif found.ok:
        print(f"{found.entries} entries, unchanged since they were written")
        print(f"anchor  {found.anchor}")
    else:
        print(f"changes found: {len(found.problems)}, in {found.entries} entries")
        for problem in found.problems:
            print(f"  {problem}")
    if not found.ok:
        raise typer.Exit(1)


@ledger.command(name="export")
def export(
    where: str = WHERE,
    out: Path | None = typer.Option(None, "--out", help="The file; by default standard output."),
    answers: bool = typer.Option(True, "--answers/--no-answers", help="Include the recorded answers."),
    wait: float = WAIT,
    json: bool = JSON,
) -> None:
    """Write every entry as a line of JSON, with its digest.

    The secret of the ledger is not part of it.
    """
    from tacit.ledger import Ledger
    from tacit.ledger import export as lines

    made = list(lines(Ledger.open(where, wait_seconds=wait), answers=answers))
    if out is not None:
        write_whole(out, lambda path: _write(path, made))
        said: dict[str, Any] = {"out": str(out), "entries": len(made) - 1}
        if json:
            print_json(said)
        else:
            print(f"{said['entries']} entries in {out}")
    elif json:
        print_json({"entries": len(made) - 1, "lines": [json_text.loads(line) for line in made]})
    else:
        for line in made:
            print(line)


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")


def _said(found: dict[str, Any], bound: dict[str, Any] | None) -> str:
    """A bound's numbers in three digits, and its gamma; the budget's unit goes without saying."""
    if bound is None:
        return "not a running total"
    from tacit.guarantees.conditions import told_gamma
    from tacit.guarantees.record import from_record

    numbers = {k: v for k, v in bound.items() if k != "gamma"}
    gamma = f" except with probability {told_gamma(bound['gamma'])} over the data" if "gamma" in bound else ""
    return str(from_record({**found["budget"], "bound": numbers}).bound) + gamma
