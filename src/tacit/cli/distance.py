"""`tacit distance`: does the distance to instability of your own statistic satisfy the theorem?"""

from __future__ import annotations

import json as json_module
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from tacit.cli.output import print_json
from tacit.errors import InvalidParameter, visible
from tacit.exact.rounding import digits_up

FUNCTIONS = ("statistic", "distance")


def distance(
    path: Path = typer.Argument(
        ...,
        metavar="FILE",
        help="A Python file with functions statistic(rows) and distance(rows), which is run.",
    ),
    values: str = typer.Option(..., "--values", help="The values that a row may have: 0,1 or a JSON list."),
    rows: int = typer.Option(..., "--rows", help="Compare all tables of up to this many rows."),
    proposed: int = typer.Option(
        ..., "--proposed", help="How far one unit may move the statistic, in whole steps."
    ),
    neighbours: str = typer.Option("replace-one", "--neighbours", help="replace-one or add-or-remove."),
    test_epsilon: float = typer.Option(1.0, "--test-epsilon", help="The epsilon of the test."),
    release_epsilon: float = typer.Option(1.0, "--release-epsilon", help="The epsilon of the value."),
    delta: float = typer.Option(1e-6, "--delta", help="The chance of passing the test by luck."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Check a distance to instability on all small tables.

    For a statistic of your own by propose-test-release. Reads no data.
    """
    from tacit.mechanisms import L1
    from tacit.mechanisms.own_statistics import StatisticByTest, check_distance

    statistic, far = _functions(path)
    checked = check_distance(
        statistic, far, proposed=proposed, values=_listed(values), rows=rows, neighbours=neighbours
    )
    made = StatisticByTest(
        statistic=statistic, distance=far, proposed=L1(max(proposed, 1)), test_epsilon=test_epsilon,
        release_epsilon=release_epsilon, delta=delta, checked=checked,
    )  # fmt: skip
    told = {
        "file": str(path), "tables": checked.tables, "rows": checked.rows, "neighbours": checked.neighbours.value,
        "assumption": made.assumptions[0], "epsilon": float(made.bound.epsilon), "delta": float(made.bound.delta),
        "threshold": made.threshold, "passing_distance": made.passing_distance(),
        "expected_error": made.expected_error(), "theorem": made.theorems[0],
    }  # fmt: skip
    if json:
        print_json(told)
        return
    print(f"holds on all {checked.tables:,} tables of up to {rows} rows; for longer tables it is assumed")
    print(f"  guarantee                 {made.bound}, for one unit, {checked.neighbours.value}")
    print(f"  the test passes at 95%    from a distance of {told['passing_distance']} on")
    print(f"  expected error            {digits_up(made.expected_error(), 4)} steps, if it passes")


def _functions(path: Path) -> tuple[Callable[[Any], Any], Callable[[Any], int]]:
    """The two functions of a file of the user's own."""
    from tacit.curator.plan_files import read_text

    read_text(path, parameter="FILE")
    try:
        held = runpy.run_path(str(path), run_name="tacit_distance")
    except Exception as problem:
        raise InvalidParameter(
            parameter="FILE", value=str(path), must="run as Python",
            hint=visible(f"{type(problem).__name__}: {problem}")[:200],
        ) from None  # fmt: skip
    missing = [name for name in FUNCTIONS if not callable(held.get(name))]
    if missing:
        raise InvalidParameter(
            parameter="FILE", value=str(path), must=f"define {' and '.join(missing)}",
            hint="def statistic(rows) gives whole numbers, def distance(rows) a whole number of at least 0",
        )  # fmt: skip
    return held["statistic"], held["distance"]


def _listed(text: str) -> list[Any]:
    """Values separated by commas, or a JSON list; texts that look like numbers become numbers."""
    try:
        found = json_module.loads(text if text.lstrip().startswith("[") else f"[{text}]")
    except ValueError:
        found = [part.strip() for part in text.split(",")]
    return list(found)
