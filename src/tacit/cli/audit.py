"""`tacit audit`: try to break a claim of a function, or of every release of a plan."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json, write_whole
from tacit.errors import InvalidParameter, visible

if TYPE_CHECKING:
    from tacit.audit.black_box import Course


def audit(
    target: str = typer.Argument(
        ..., metavar="FILE.py::FUNCTION", help="A function of one input. Its file is run."
    ),
    claim: str = typer.Option(
        ..., "--claim", help='"epsilon=1", "epsilon=1, delta=1e-6", "rho=0.1" or "mu=0.5".'
    ),
    neighbours: str = typer.Option(
        "",
        "--neighbours",
        help="Which inputs are neighbours: number, bit, answers, rows added, rows replaced, people added (with size=, "
        "low=, high=), or FILE.py::NAME with pairs of inputs.",
    ),
    level: float = typer.Option(0.05, "--level", help="The probability of rejecting a true claim, at most."),
    outputs: int = typer.Option(20_000, "--outputs", help="Run the function at most this often."),
    seconds: float = typer.Option(60.0, "--seconds", help="Stop after this time."),
    sensitivity: float = typer.Option(
        -1.0,
        "--sensitivity",
        show_default=False,
        help="The declared L1 sensitivity of the answer before its noise.",
    ),
    memory: float = typer.Option(
        4.0, "--memory", help="The largest memory of the function's process, in GiB."
    ),
    a_run: float = typer.Option(10.0, "--seconds-a-run", help="The longest time of one run."),
    to_the_end: bool = typer.Option(
        False, "--to-the-end", help="Go on after a rejection, for a larger lower bound."
    ),
    out: Path | None = typer.Option(None, "--out", help="Write a page (HTML)."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Try to break a privacy claim of a function.

    States a lower bound on its epsilon that is valid at any time.

    First a replay: both neighbours meet the same noise, and the first line where they part is named. Then bets against
    the claim on fresh outputs. The function runs in a process of its own. Exits with 1 if the claim is rejected or the
    replay accuses.
    """
    from tacit.audit.house import mechanism_of_file
    from tacit.audit.isolation import replay_of_file
    from tacit.audit.neighbours import ask_for_unit
    from tacit.report.progress import progress

    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise InvalidParameter(parameter="--out", value=str(out), must="end in .html")
    if not neighbours:
        raise ask_for_unit()
    if not 0.25 <= memory <= 4096:
        raise InvalidParameter(parameter="--memory", value=memory, must="be between 0.25 and 4096 GiB")
    size = int(memory * 2**30)
    with progress("Auditing", quiet=json) as step:
        step("replay with the same noise")
        replayed = replay_of_file(
            target,
            claim=claim,
            neighbours=neighbours,
            sensitivity=None if sensitivity < 0 else sensitivity,
            memory=size,
        )

        def tell(course: Course) -> None:
            wealth = math.exp(min(700.0, float(course.wealth.value()[course.wealth.main])))
            step(f"{course.outputs:,} outputs, wealth {wealth:.3g}")

        found = mechanism_of_file(
            target, claim=claim, neighbours=neighbours, level=level, outputs=outputs, seconds=seconds,
            to_the_end=to_the_end, memory=size, seconds_a_run=a_run, tell=tell,
        )  # fmt: skip
    said = (
        replayed[1] if replayed is not None else ["replay: the function took too long, or its process ended"]
    )
    record: dict[str, Any] = {
        "mechanism": target,
        **found.to_dict(),
        "replay": replayed[0] if replayed else None,
    }
    if out is not None:
        from tacit.report.audit import write_audit

        page = {**record, "path": found.path, "histograms": found.histograms, "replay_lines": said}
        write_whole(out, lambda path: write_audit(page, path))
    accused = bool(replayed and replayed[0]["accuses"])
    if json:
        print_json({**record, "out": str(out) if out is not None else None})
    else:
        print(f"ran the code of {visible(target.rpartition('::')[0])} in a process of its own")
        for line in [*said, *found.lines()]:
            print(visible(line))
        if out is not None:
            print(f"page: {visible(str(out))}")
    if found.rejected or accused:
        raise typer.Exit(1)
