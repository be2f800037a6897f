"""`tacit inspect`: for the custodian's eyes only, what a plan's declarations lose of the data; leaves its mark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from tacit.cli.output import print_json
from tacit.errors import InvalidParameter

__all__ = ["inspect"]


def inspect(
    path: Path = typer.Argument(..., metavar="PLAN", help="The plan, a TOML file."),
    out: Path | None = typer.Option(
        None, "--out", help="A new file for the findings, readable by its owner only."
    ),
    private: bool = typer.Option(
        False, "--private", help="Pay for noisy shares of missing and outlying values instead."
    ),
    epsilon: float | None = typer.Option(None, "--epsilon", help="With --private: the price."),
    delta: float | None = typer.Option(None, "--delta", help="With --private and --epsilon: its delta."),
    rho: float | None = typer.Option(None, "--rho", help="With --private: the price in zCDP."),
    mu: float | None = typer.Option(None, "--mu", help="With --private: the price in Gaussian DP."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Show the custodian what the declarations of a plan lose.

    The findings are exact and not for publication. The ledger records the look, and later plans carry the
    condition that somebody had seen the data. With --private tacit releases noisy shares instead, charged like
    any plan.
    """
    from tacit.curator.files import read_plan
    from tacit.curator.looking import inspect as look
    from tacit.report.progress import watched

    price = {"epsilon": epsilon, "delta": delta, "rho": rho, "mu": mu}
    paid = {name: value for name, value in price.items() if value is not None}
    if private:
        _privately(path, out, paid, json=json)
        return
    if paid:
        raise InvalidParameter(
            parameter=f"--{next(iter(paid))}", value=next(iter(paid.values())), must="come with --private",
            hint="without it exact numbers are shown, nothing is charged, and the look leaves its mark",
        )  # fmt: skip
    if out is not None:
        _new(out)
    found = read_plan(path)
    made = found.plan()
    with watched("Looking", quiet=json), found.curator() as curator:
        seen = look(curator, made)
    if out is not None:
        seen.write(out)
    if json:
        print_json(seen.record)
        return
    for line in seen.lines:
        print(line)


def _new(out: Path) -> None:
    """Refuse a place that cannot be written before the mark is made."""
    if out.exists() or out.is_symlink() or not out.absolute().parent.is_dir():
        raise InvalidParameter(
            parameter="--out", value=str(out), must="be a new file in a folder that is there",
            hint="nothing is ever overwritten; name another one",
        )  # fmt: skip


def _privately(path: Path, out: Path | None, paid: dict[str, Any], *, json: bool) -> None:
    from tacit.curator.files import read_plan
    from tacit.curator.looking_privately import inspect_privately
    from tacit.report.progress import watched

    if out is not None:
        raise InvalidParameter(
            parameter="--out", value=str(out), must="be left out with --private",
            hint="noisy shares are a release: the answer is in the ledger, and asking again is free",
        )  # fmt: skip
    found = read_plan(path)
    with watched("Releasing", quiet=json), found.curator() as curator:
        releases = inspect_privately(curator, **paid)
        spent, left = curator.standing
    if json:
        shares = [
            {"name": r.name, "value": r.value, "low": r.interval[0], "high": r.interval[1]} for r in releases
        ]
        print_json(
            {
                "shares": shares,
                "charge": releases[0].certificate["plan"]["charge"],
                "spent": dict(spent.bound.parameters),
                "remaining": dict(left.bound.parameters),
            }
        )
        return
    width = max(len(r.name) for r in releases)
    for one in releases:
        low, high = one.interval
        print(f"{one.name.ljust(width)}  {one.value:7.1%}  [{low:.1%}, {high:.1%}]")
    print(f"noisy shares of the rows, at 95%; spent so far: {spent.bound}; left: {left.bound}")
