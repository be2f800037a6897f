"""`tacit running`: a running total, paid for once, one figure after the other."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json
from tacit.cli.plans import JSON
from tacit.errors import InvalidParameter, charge_made, visible

if TYPE_CHECKING:
    from tacit.curator.running import Figure, RunningSeries

PLAN = typer.Argument(..., metavar="PLAN", help="A plan file with a table [running].")
MADE_UP = "The table says of itself that it is made up and describes nobody."


def running(
    path: Path = PLAN,
    step: int | None = typer.Option(
        None, "--step", help="The step, from 1; by default the next. Earlier ones are free."
    ),
    out: Path | None = typer.Option(None, "--out", help="The folder for figures, picture and certificate."),
    preview: bool = typer.Option(
        False, "--preview", help="Print the price and the errors; read no data, charge nothing."
    ),
    json: bool = JSON,
) -> None:
    """Release the next figure of a running total.

    The first call charges the budget for all steps. Each step publishes one figure, which is never revised.
    """
    from tacit.curator.plan_files import read_plan
    from tacit.curator.running import is_open, open_running_total, rows_only, running_series
    from tacit.report.running import check_folder, write_figures

    file = read_plan(path, releases=False)
    if file.running is None:
        raise InvalidParameter(
            parameter="[running]", value=None, must="be in the plan",
            hint='running = { by = "week", epsilon = 1, delta = 1e-6 }',
        )  # fmt: skip
    with file.curator() as curator:
        rows_only(curator.unit)
        series = running_series(curator, **file.running)
        if preview:
            if out is not None or step is not None:
                raise InvalidParameter(
                    parameter="--preview",
                    value=True,
                    must="come alone",
                    hint="no figure is released, and none written",
                )
            _show(series, json=json)
            return
        if out is not None:
            check_folder(out, series)
        if step is not None and not 1 <= step <= series.factor.steps:
            raise InvalidParameter(parameter="--step", value=step, must=f"be 1 to {series.factor.steps}")
        if step is not None and step > 1 and not is_open(curator, series):
            raise InvalidParameter(
                parameter="--step", value=step, must="be 1 for a running total that nobody paid for yet",
                hint="figures are released in order; leave --step out for the next one",
            )  # fmt: skip
        try:
            total = open_running_total(curator, series)
            with nullcontext() if total.reopened else charge_made():
                wanted = _next(total.published, series.factor.steps) if step is None else step
                figure = total.release(wanted)
            with nullcontext() if figure.replayed else charge_made():
                files = [] if out is None else write_figures(out, total, figure)
            spent, left = curator.standing
        except KeyboardInterrupt:
            print(
                "tacit: interrupted; a charge that was made stays, and the series goes on free of charge",
                file=sys.stderr,
            )
            raise typer.Exit(130) from None
        record = {
            "name": series.name,
            "step": figure.step,
            "steps": series.factor.steps,
            "charged": not total.reopened,
            "released": True,
            "replayed": figure.replayed,
            "columns": _columns(series, figure),
            "guarantee": figure.certificate["guarantee"],
            "made_up": figure.made_up,
            "corrections": [str(c) for c in figure.corrections],
            "spent": dict(spent.bound.parameters),
            "remaining": dict(left.bound.parameters),
            "out": None if out is None else str(out),
            "files": [str(f) for f in files],
        }
    if json:
        print_json(record)
        return
    _print(series, figure, str(spent.bound), str(left.bound), files)


def _next(published: int, steps: int) -> int:
    if published == steps:
        raise InvalidParameter(
            parameter="--step", value=None, must="name a step that was released",
            hint=f"all {steps} figures are released; --step {steps} shows the last one",
        )  # fmt: skip
    return published + 1


def _columns(series: RunningSeries, figure: Figure) -> dict[str, list[Any]]:
    by, *groups = series.key_names
    found: dict[str, list[Any]] = {by: [_plain(figure.key)] * len(figure.keys)}
    for i, name in enumerate(groups):
        found[name] = [_plain(key[i]) for key in figure.keys]
    for name in ("value", "low", "high"):
        found[name] = [int(v) for v in getattr(figure, name)]
    found["quality"] = list(figure.quality)
    return found


def _plain(value: Any) -> Any:
    from tacit.curator.cells import label

    shown = label(value)
    return shown if isinstance(shown, str | int | float | bool) or shown is None else str(shown)


def _show(series: RunningSeries, *, json: bool) -> None:
    errors = [1.96 * float(v) for v in series.standard_deviations]
    told = {
        "name": series.name,
        "steps": series.factor.steps,
        "price": series.price.to_dict(),
        "error": errors,
    }
    if json:
        print_json({**told, "conditions": list(_conditions())})
        return
    print(
        f"{visible(series.name)}: {series.factor.steps} steps for {series.price}, paid once at the first step"
    )
    print(
        f"error of a figure (95%): ± {errors[0]:.3g} at step 1, at most ± {max(errors):.3g}; nothing was read"
    )
    print(f"declared: {'; '.join(_conditions())}")


def _conditions() -> tuple[str, ...]:
    from tacit.curator.running import STAYS

    return (STAYS,)


def _print(series: RunningSeries, figure: Figure, spent: str, left: str, files: list[Path]) -> None:
    found = _columns(series, figure)
    again = " (from the record)" if figure.replayed else ""
    print(f"{visible(series.name)}: step {figure.step} of {series.factor.steps}{again}")
    numbers = ("value", "low", "high")
    shown = [[f"{v:,}" if n in numbers else str(v) for v in column] for n, column in found.items()]
    rows = [list(found), *map(list, zip(*shown, strict=True))]
    widths = [max(len(visible(str(cell))) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(visible(str(cell)).ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())
    for sentence in filter(None, (figure.correction, MADE_UP if figure.made_up else "")):
        print(visible(sentence))
    print("intervals: 95%, for the noise only")
    print(f"spent so far: {spent}; left: {left}")
    if files:
        print(f"written to {visible(str(files[0].parent.parent))}: {', '.join(f.name for f in files)}")
