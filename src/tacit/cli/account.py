"""`tacit account` and `tacit calibrate`: what a plan costs, and how much noise a target needs."""

from __future__ import annotations

import json as json_library
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json, write_picture
from tacit.errors import EmptyComposition, InvalidParameter

if TYPE_CHECKING:
    from tacit.accounting.events import Event
    from tacit.accounting.text import Described

__all__ = ["account", "calibrate"]

EVENT = typer.Option(
    [],
    "--event",
    help="An event in words: 'gaussian noise_multiplier=30 times=1000'; subsampled_ before it: Poisson subsampling.",
)
EVENTS = typer.Option(None, "--events", help="A TOML or JSON file with a list of events.")
NEIGHBOURS = typer.Option(
    "add-or-remove", "--neighbours", help="add-or-remove (unbounded DP), or replace-one (bounded DP)."
)
JSON = typer.Option(False, "--json", help="Print one JSON object.")


def account(
    event: list[str] = EVENT,
    events: Path | None = EVENTS,
    delta: float | None = typer.Option(None, "--delta", help="Report epsilon at this delta."),
    epsilon: float | None = typer.Option(None, "--epsilon", help="Report delta at this epsilon."),
    neighbours: str = NEIGHBOURS,
    accountant: str | None = typer.Option(
        None,
        "--accountant",
        help="pld (privacy-loss distributions), gdp (Gaussian DP), zcdp, renyi or pure, instead of the best.",
    ),
    plot: Path | None = typer.Option(
        None, "--plot", help="Draw the composed privacy profile, delta over epsilon, to this file."
    ),
    json: bool = JSON,
) -> None:
    """The composed (epsilon, delta) of a plan fixed in advance.

    Both ends are certified: the true value lies between them. Privacy-loss distributions (PLD), Gaussian DP (GDP),
    zCDP, Rényi DP or pure DP, whichever is best.
    """
    from tacit.accounting import account as fold

    plan = [d.make(None) for d in _described(event, events)]
    found = fold(plan, delta=delta, epsilon=epsilon, neighbours=neighbours, accountant=accountant)
    if plot is not None:
        _draw(plan, neighbours, plot)
    known, value = ("delta", "epsilon") if delta is not None else ("epsilon", "delta")
    enclosure = getattr(found, value)
    if json:
        print_json(
            {
                value: {"low": enclosure.low, "high": enclosure.high},
                known: delta if delta is not None else epsilon,
                "accountant": found.accountant,
                "neighbours": found.neighbours.value,
                **({"plot": str(plot)} if plot else {}),
            }
        )
        return
    level = delta if delta is not None else epsilon
    print(f"{value} = {_up(enclosure.high)} at {known} = {level:g}, for {found.neighbours.value} neighbours")
    print(
        f"certified between {enclosure.low:.6g} and {enclosure.high:.6g} by the {found.accountant} accountant"
    )
    print("for a plan whose parameters were fixed in advance")
    if plot is not None:
        print(f"the curve is drawn in {plot}")


def calibrate(
    epsilon: float = typer.Option(..., "--epsilon", help="The target's epsilon."),
    delta: float = typer.Option(..., "--delta", help="The target's delta."),
    event: list[str] = EVENT,
    events: Path | None = EVENTS,
    neighbours: str = NEIGHBOURS,
    json: bool = JSON,
) -> None:
    """Find the least noise for a target (epsilon, delta).

    Leave out the noise of exactly one event; it is found, and the composed guarantee is certified.
    """
    from tacit.accounting import calibrate as solve

    plan = _described(event, events)
    free = [d for d in plan if d.free is not None]
    if len(free) != 1:
        raise InvalidParameter(
            parameter="event",
            value=[d.word for d in free],
            must="leave out the noise of exactly one event",
            hint="for instance --event 'gaussian times=100'",
        )
    found = solve(
        lambda value: [d.make(value if d is free[0] else None) for d in plan],
        epsilon=epsilon,
        delta=delta,
        more_noise=free[0].more_noise,
        neighbours=neighbours,
    )
    reached = found.account.epsilon
    if json:
        print_json(
            {
                str(free[0].free): found.value,
                "event": free[0].word,
                "epsilon": {"low": reached.low, "high": reached.high},
                "delta": delta,
                "accountant": found.account.accountant,
                "neighbours": found.account.neighbours.value,
            }
        )
        return
    print(f"{free[0].word}: {free[0].free} = {found.value:.8g}")
    print(
        f"meets epsilon = {epsilon:g} at delta = {delta:g}: certified between {reached.low:.6g} and {reached.high:.6g}"
    )


def _described(lines: list[str], path: Path | None) -> list[Described]:
    from tacit.accounting.text import parse

    found = [parse(line) for line in lines]
    if path is not None:
        found += _from_file(path)
    if not found:
        raise EmptyComposition(
            what="the list of events", hint="name at least one --event, or a file by --events"
        )
    return found


def _from_file(path: Path) -> list[Described]:
    """A list of events: lines in words, or tables with `kind` and named values."""
    from tacit.accounting.text import describe, parse
    from tacit.curator.toml import parse_toml, read_text

    text = read_text(path, parameter="events")
    try:
        data: Any = (
            parse_toml(text, parameter="events", name=str(path))
            if path.suffix.lower() == ".toml"
            else json_library.loads(text)
        )
    except InvalidParameter:
        raise
    except (ValueError, RecursionError):
        raise InvalidParameter(
            parameter="events", value=str(path), must="be well-formed TOML or JSON"
        ) from None
    rows = data.get("event", data.get("events")) if isinstance(data, dict) else data
    if not isinstance(rows, list):
        raise InvalidParameter(
            parameter="events",
            value=str(path),
            must="hold a list of events",
            hint="[[event]] tables in TOML, or a JSON list",
        )
    found = []
    for row in rows:
        if isinstance(row, str):
            found.append(parse(row))
        elif isinstance(row, dict) and isinstance(row.get("kind"), str):
            found.append(describe(row["kind"], {k: v for k, v in row.items() if k != "kind"}))
        else:
            raise InvalidParameter(
                parameter="events", value=str(path), must="list lines in words, or tables with a kind"
            )
    return found


def _draw(plan: list[Event], neighbours: str, path: Path) -> None:
    from tacit.accounting import profile_of
    from tacit.report.figures import draw_curve

    curve = profile_of(plan, neighbours=neighbours)
    write_picture(path, lambda partial: draw_curve(curve, partial))


def _up(value: float) -> str:
    """Four significant digits, rounded up."""
    if not math.isfinite(value) or value <= 0:
        return f"{value:g}"
    digits = 3 - math.floor(math.log10(value))
    scaled = math.ceil(value * 10.0**digits - 1e-9)
    return f"{scaled / 10.0**digits:.{max(0, digits)}f}" if digits >= 0 else f"{scaled * 10.0**-digits:g}"
