"""`tacit account` and `tacit calibrate`: the privacy cost of a plan, and the noise that reaches a target."""

from __future__ import annotations

import json as json_library
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from tacit.cli.output import print_json, write_picture, write_whole
from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.exact.rounding import digits_down, digits_up

if TYPE_CHECKING:
    from tacit.accounting.codec import DescribedEvent
    from tacit.accounting.events import Event


class EventCommand(TyperCommand):
    """A command that takes events; its help ends with the vocabulary in the code."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The vocabulary, one word a line."""
        from tacit.accounting.codec import vocabulary

        super().format_epilog(ctx, formatter)
        formatter.write("\nWords of events:\n")
        for line in vocabulary():
            formatter.write(f"  {line}\n")


EVENT = typer.Option(
    [],
    "--event",
    help="An event, as 'gaussian noise_multiplier=30 times=1000' (repeatable).",
)
EVENTS = typer.Option(
    None, "--events", help="A TOML or JSON file of events, as lines or as tables with kind."
)
NEIGHBOURS = typer.Option(
    "add-or-remove", "--neighbours", help="add-or-remove (unbounded DP) or replace-one (bounded DP)."
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
        help="pld (privacy-loss distributions), gdp (Gaussian DP), zcdp, renyi, approximate or pure; "
        "by default the best.",
    ),
    plot: Path | None = typer.Option(
        None, "--plot", help="Draw the privacy profile and the trade-off curve to this file."
    ),
    curve: Path | None = typer.Option(
        None, "--curve", help="Write the privacy profile to this CSV or JSON file."
    ),
    trade_off: Path | None = typer.Option(
        None,
        "--trade-off",
        help="Write size and power of tests to this CSV or JSON file.",
    ),
    json: bool = JSON,
) -> None:
    """Compute the composed (epsilon, delta) of a plan.

    For parameters fixed in advance, with two certified ends. Reads no data.
    """
    from tacit.accounting import account as fold

    described = _described(event, events)
    plan = [d.make(None) for d in described]
    found = fold(plan, delta=delta, epsilon=epsilon, neighbours=neighbours, accountant=accountant)
    written = _files(plan, neighbours, plot=plot, curve=curve, trade_off=trade_off)
    known, value = ("delta", "epsilon") if delta is not None else ("epsilon", "delta")
    enclosure = getattr(found, value)
    notes = [note for note in (d.note(None) for d in described) if note]
    if json:
        print_json(
            {
                value: {"low": enclosure.low, "high": enclosure.high},
                known: delta if delta is not None else epsilon,
                "accountant": found.accountant,
                "neighbours": found.neighbours.value,
                **({"notes": notes} if notes else {}),
                **written,
            }
        )
        return
    level = delta if delta is not None else epsilon
    for note in notes:
        print(note)
    print(f"{value} = {_up(enclosure.high)} at {known} = {level:g}, for {found.neighbours.value} neighbours")
    print(
        f"certified between {digits_down(enclosure.low, 6)} and {digits_up(enclosure.high, 6)} "
        f"by the {found.accountant} accountant"
    )
    print("for a plan whose parameters were fixed in advance")
    if "best_guess" in written:
        print(
            f"membership at even odds is guessed rightly with probability at most {_up(written['best_guess'])}"
        )
    for name in ("plot", "curve", "trade_off"):
        if name in written:
            print(f"the {_NAMED[name]} is in {written[name]}")


def calibrate(
    epsilon: float = typer.Option(..., "--epsilon", help="The target epsilon."),
    delta: float = typer.Option(..., "--delta", help="The target delta."),
    event: list[str] = EVENT,
    events: Path | None = EVENTS,
    neighbours: str = NEIGHBOURS,
    json: bool = JSON,
) -> None:
    """Find the least noise, or another value, for a target.

    Leave out the noise of one event, or write one of its values as ?. The result is certified, as by tacit
    account.
    """
    from tacit.accounting import calibrate as solve

    plan = _described(event, events)
    free = [d for d in plan if d.free is not None]
    if len(free) != 1:
        raise InvalidParameter(
            parameter="event",
            value=[d.word for d in free],
            must="leave out the noise of exactly one event, or one value as ?",
            hint="for instance --event 'gaussian times=100', or --event 'gaussian noise_multiplier=40 times=?'",
        )
    found = solve(
        lambda value: [d.make(value if d is free[0] else None) for d in plan],
        epsilon=epsilon,
        delta=delta,
        more_noise=free[0].more_noise,
        neighbours=neighbours,
        whole=free[0].whole,
        least=free[0].least,
        most=free[0].most,
    )
    notes = [note for note in (d.note(found.value if d is free[0] else None) for d in plan) if note]
    reached = found.account.epsilon
    if json:
        print_json(
            {
                **({} if free[0].free in ("epsilon", "delta") else {str(free[0].free): found.value}),
                "parameter": free[0].free,
                "value": found.value,
                "event": free[0].word,
                "epsilon": {"low": reached.low, "high": reached.high},
                "delta": delta,
                "accountant": found.account.accountant,
                "neighbours": found.account.neighbours.value,
                **({"notes": notes} if notes else {}),
            }
        )
        return
    shown = f"{found.value:,}" if free[0].whole else f"{found.value:.8g}"
    print(f"{free[0].word}: {free[0].free} = {shown}")
    for note in notes:
        print(note)
    print(
        f"meets epsilon = {epsilon:g} at delta = {delta:g}: "
        f"certified between {digits_down(reached.low, 6)} and {digits_up(reached.high, 6)}"
    )


def _described(lines: list[str], path: Path | None) -> list[DescribedEvent]:
    from tacit.accounting.codec import parse

    found = [parse(line) for line in lines]
    if path is not None:
        found += _from_file(path)
    if not found:
        raise EmptyComposition(
            what="the list of events", hint="name at least one --event, or a file by --events"
        )
    return found


def _from_file(path: Path) -> list[DescribedEvent]:
    """A list of events: lines in words, or tables with `kind` and named values."""
    from tacit.accounting.codec import describe, parse
    from tacit.curator.plan_files import parse_toml, read_text

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


_NAMED = {"plot": "picture", "curve": "curve", "trade_off": "trade-off curve"}


def _files(
    plan: list[Event], neighbours: str, *, plot: Path | None, curve: Path | None, trade_off: Path | None
) -> dict[str, Any]:
    """The picture and the tables that were asked for, and the best guess that they show."""
    if plot is None and curve is None and trade_off is None:
        return {}
    from tacit.accounting import privacy_curve
    from tacit.report.figures import draw_plan

    for table in (curve, trade_off):
        if table is not None and table.suffix.lower() not in (".csv", ".json"):
            raise UnknownName(what="kind of table", name=table.suffix or table.name, known=(".csv", ".json"))
    found = privacy_curve(plan, neighbours=neighbours)
    if plot is not None:
        write_picture(plot, lambda partial: draw_plan(found, partial))
    for path, which in ((curve, False), (trade_off, True)):
        if path is not None:
            as_csv = path.suffix.lower() == ".csv"
            text = found.to_csv(trade_off=which) if as_csv else found.to_json(trade_off=which) + "\n"
            _write(path, text)
    given = {"plot": plot, "curve": curve, "trade_off": trade_off}
    return {
        "advantage": found.advantage,
        "best_guess": found.best_guess,
        **{name: str(path) for name, path in given.items() if path is not None},
    }


def _write(path: Path, text: str) -> None:
    def write(partial: Path) -> None:
        partial.write_text(text, encoding="utf-8")

    write_whole(path, write)


def _up(value: float) -> str:
    """Four significant digits, rounded up."""
    if not math.isfinite(value) or value <= 0:
        return f"{value:g}"
    digits = 3 - math.floor(math.log10(value))
    scaled = math.ceil(value * 10.0**digits - 1e-9)
    return f"{scaled / 10.0**digits:.{max(0, digits)}f}" if digits >= 0 else f"{scaled * 10.0**-digits:g}"
