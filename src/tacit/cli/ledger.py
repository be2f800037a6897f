"""`tacit ledger show|verify|export`: what was spent, by whom, on what; whether it is still what was written."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Any

import typer

from tacit.cli.output import print_json, write_whole

__all__ = ["ledger"]

ledger = typer.Typer(rich_markup_mode=None, add_completion=False)

_WHERE = typer.Argument(
    ..., metavar="LEDGER", help="The ledger's file, or a URL such as postgresql://host/db."
)
_JSON = typer.Option(False, "--json", help="Print one JSON object instead of sentences.")
_WAIT = typer.Option(30.0, "--wait", help="Seconds to wait while another process writes.")


@ledger.callback(invoke_without_command=True)
def root(context: typer.Context) -> None:
    """The privacy budget: what was spent, by whom, on what."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@ledger.command(name="show")
def show(where: str = _WHERE, wait: float = _WAIT, json: bool = _JSON) -> None:
    """Print the privacy budget, who spent what of it, and every charge."""
    from tacit.ledger import Ledger, overview

    found = overview(Ledger.open(where, wait_seconds=wait))
    if json:
        print_json(found)
        return
    of = f", of {found['table']!r}" if found["table"] else ""
    made_up = ", a rehearsal on made-up rows" if found["rehearsal"] else ""
    print(f"{found['ledger']}{of}, made {found['created'][:19].replace('T', ' ')} UTC{made_up}")
    budget = found["budget"]["bound"] | {
        k: v for k, v in found["budget"]["condition"].items() if k == "gamma"
    }
    print(f"budget  {_said(found, budget)}")
    print(f"spent   {_said(found, found['spent'])}")
    print(f"left    {_said(found, found['remaining'])}")
    for name, part in found["analysts"].items():
        limit = f" of their {_said(found, part['share'])}" if part["share"] else ""
        print(f"  {name}: {_said(found, part['spent'])}{limit}, charges: {part['charges']}")
    for charge in found["charges"]:
        when = charge["time"][:19].replace("T", " ")
        print(
            f"{charge['sequence']:>6}  {when}  {charge['state']:<9}  {_said(found, charge['charge'])}  "
            f"{charge['analyst']}  {charge['request']}"
        )
    for look in found["looks"]:
        when, version = (
            look["time"][:19].replace("T", " "),
            f", version {look['version']!r}" * bool(look["version"]),
        )
        print(f"{look['sequence']:>6}  {when}  looked at the data  {look['analyst']}{version}")
    for sentence in found["declared"]:
        print(f"declared, and not checked: {sentence}")
    print(f"anchor  {found['anchor']}")


@ledger.command(name="verify")
def verify(
    where: str = _WHERE,
    anchor: list[str] = typer.Option(
        [], "--anchor", help="An anchor (sequence:digest) that was written down earlier; may be repeated."
    ),
    wait: float = _WAIT,
    json: bool = _JSON,
) -> None:
    """Check the whole hash chain; exit 1 if anything was changed."""
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
    where: str = _WHERE,
    out: Path | None = typer.Option(None, "--out", help="File for the lines; standard output if not given."),
    answers: bool = typer.Option(
        True, "--answers/--no-answers", help="With the recorded answers, or without."
    ),
    wait: float = _WAIT,
    json: bool = _JSON,
) -> None:
    """Write every entry as a line of JSON, with its digest.

    The ledger's secret is never part of it.
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
