"""`tacit audit`: try to break a claim of a function, of every release of a plan, or of a system's repeated answers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json, write_whole
from tacit.errors import InvalidParameter, UnknownName, visible

if TYPE_CHECKING:
    from tacit.audit.black_box import Course


def audit(
    target: str = typer.Argument(
        ...,
        metavar="TARGET",
        help="FILE.py::FUNCTION, a function of one input, whose file is run; a plan (TOML) or the folder of a release; "
        "or a text file of answers to one repeated question.",
    ),
    claim: str = typer.Option(
        "", "--claim", help='"epsilon=1", "epsilon=1, delta=1e-6", "rho=0.1" or "mu=0.5". A plan has its own.'
    ),
    neighbours: str = typer.Option(
        "",
        "--neighbours",
        help="Which inputs are neighbours: number, bit, answers, rows added, rows replaced, people added (with size=, "
        "low=, high=), or FILE.py::NAME with pairs of inputs. For a plan, the number of pairs (24).",
    ),
    level: float = typer.Option(0.05, "--level", help="The largest probability of rejecting a true claim."),
    outputs: int | None = typer.Option(
        None,
        "--outputs",
        show_default=False,
        help="The largest number of runs of the function (20000), or of each release of a plan (2000; 0: replay only).",
    ),
    seconds: float = typer.Option(60.0, "--seconds", help="Stop after this time."),
    sensitivity: float = typer.Option(
        -1.0,
        "--sensitivity",
        show_default=False,
        help="The declared L1 sensitivity of the answer before its noise. Repeated answers need it.",
    ),
    noise: str = typer.Option(
        "laplace", "--noise", help="The noise of repeated answers: laplace or gaussian."
    ),
    engine: str = typer.Option(
        "all", "--engine", help="Where a plan is replayed: duckdb, spark, or all that are installed."
    ),
    memory: float = typer.Option(
        4.0, "--memory", help="The largest memory of the function's process, in GiB."
    ),
    a_run: float = typer.Option(10.0, "--seconds-a-run", help="The longest time of one run."),
    fresh: bool = typer.Option(
        False,
        "--fresh",
        help="Load the file in a new process for each run.",
    ),
    to_the_end: bool = typer.Option(
        False, "--to-the-end", help="Go on after a rejection, for a larger lower bound."
    ),
    out: Path | None = typer.Option(None, "--out", help="Write a page (HTML)."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Try to break the claim of a function, a plan or a system.

    States a lower bound on its epsilon that is valid at any time, or the first line where neighbours diverge
    under the same noise. For a plan: every release, on made-up neighbours; no data are read and nothing is
    charged. Answers of a system: confidence limits for its epsilon. Exits with 1 if a claim is rejected or a
    replay accuses.
    """
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise InvalidParameter(parameter="--out", value=str(out), must="end in .html")
    if "::" in target or target.endswith(".py"):
        _function(
            target, claim, neighbours, level, 20_000 if outputs is None else outputs, seconds, sensitivity, memory,
            a_run, fresh, to_the_end, out, json,
        )  # fmt: skip
        return
    path = Path(target)
    if path.is_dir():
        path = path / "plan.toml"
    if path.suffix.lower() == ".toml":
        _plan(
            path, claim, neighbours, level, 2_000 if outputs is None else outputs, seconds, engine, out, json
        )
        return
    _answers(path, claim, sensitivity, noise, level, out, json)


def _plan(
    path: Path,
    claim: str,
    neighbours: str,
    level: float,
    outputs: int,
    seconds: float,
    engine: str,
    out: Path | None,
    json: bool,
) -> None:
    """Every release of a plan."""
    from tacit.audit.planned import NEIGHBOURS, plan
    from tacit.report.progress import progress

    if claim:
        raise InvalidParameter(
            parameter="--claim",
            value=claim,
            must="not be given for a plan",
            hint="its releases have their own",
        )
    if neighbours and not neighbours.isdecimal():
        raise InvalidParameter(
            parameter="--neighbours",
            value=neighbours,
            must="be a number of pairs for a plan",
            hint="the plan's unit says which tables are neighbours",
        )
    engines, missing = _engines(engine)
    with progress("Auditing", quiet=json) as step:
        found = plan(
            path, neighbours=int(neighbours) if neighbours else NEIGHBOURS, level=level, outputs=outputs,
            seconds=seconds, engines=engines, tell=step,
        )  # fmt: skip
    if out is not None:
        from tacit.report.audit import write_plan_audit

        page = {**found.to_dict(), "plan": str(path), "sentences": found.lines()}
        for shown, one in zip(
            [*page["releases"], page["together"]], [*found.releases, found.together], strict=True
        ):
            if one is not None and one.bets is not None:
                shown["bets"] |= {"path": one.bets.path, "histograms": one.bets.histograms}
        write_whole(out, lambda place: write_plan_audit(page, place))
    if json:
        print_json({"plan": str(path), **found.to_dict(), "out": str(out) if out is not None else None})
    else:
        for line in [*found.lines(), *missing]:
            print(visible(line))
        if out is not None:
            print(f"page: {visible(str(out))}")
    if found.broken:
        raise typer.Exit(1)


def _engines(wanted: str) -> tuple[tuple[str, ...], list[str]]:
    """The engines to run on, and a sentence for a missing one."""
    from tacit.audit.planned import ENGINES

    if wanted != "all":
        if wanted not in ENGINES:
            raise UnknownName(what="engine", name=wanted, known=("all", *ENGINES))
        return (wanted,), []
    from importlib.util import find_spec

    from tacit.sources.spark import java_command

    if find_spec("pyspark") is not None and java_command():
        return ENGINES, []
    return ("duckdb",), ["Spark is not installed here: the replay ran on DuckDB alone"]


MOST_ANSWERS = 1_000_000


def _answers(
    path: Path, claim: str, sensitivity: float, noise: str, level: float, out: Path | None, json: bool
) -> None:
    """A foreign system's parameter from its answers to one repeated question."""
    from tacit.audit.relaxed import repeated_answers
    from tacit.curator.plan_files import read_text

    if out is not None:
        raise InvalidParameter(parameter="--out", value=str(out), must="not be given for repeated answers")
    if sensitivity <= 0:
        raise InvalidParameter(
            parameter="--sensitivity",
            value=None if sensitivity < 0 else sensitivity,
            must="be given for repeated answers: how far one unit moves the true answer",
        )
    text = read_text(path, parameter="answers", most=64 << 20)
    answers: list[float] = []
    for number, line in enumerate(text.splitlines(), 1):
        word = line.strip().strip(",;")
        if not word or (number == 1 and not _is_number(word)):
            continue
        if not _is_number(word):
            raise InvalidParameter(
                parameter="answers", value=f"line {number}", must="be one number", hint="one answer a line"
            )
        answers.append(float(word))
    found = repeated_answers(
        answers[:MOST_ANSWERS], sensitivity=sensitivity, noise=noise, confidence=1 - level
    )
    rejected = False
    said: list[str] = []
    if claim:
        from tacit.audit.claimed import claim_of

        asked = claim_of(claim)
        if asked.parameter != found.parameter or (found.parameter == "epsilon" and not asked.pure):
            raise InvalidParameter(
                parameter="--claim",
                value=claim,
                must=f"be about the {found.parameter} of one answer with this noise",
            )
        rejected = found.distinct > 1 and found.value[0] > asked.value
        said.append(
            f"{'rejected' if rejected else 'not rejected'}: the claim {asked.describe()} of one answer"
            f" (level {level:g})"
        )
    if json:
        print_json({"answers": str(path), **found.to_dict(), "rejected": rejected if claim else None})
    else:
        for line in [*said, *found.lines()]:
            print(visible(line))
    if rejected:
        raise typer.Exit(1)


def _is_number(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False


def _function(
    target: str,
    claim: str,
    neighbours: str,
    level: float,
    outputs: int,
    seconds: float,
    sensitivity: float,
    memory: float,
    a_run: float,
    fresh: bool,
    to_the_end: bool,
    out: Path | None,
    json: bool,
) -> None:
    """A function of a file."""
    from tacit.audit.claimed import claim_of
    from tacit.audit.house import mechanism_of_file
    from tacit.audit.isolation import replay_of_file
    from tacit.audit.neighbours import ask_for_unit, named_neighbours
    from tacit.report.progress import progress

    if not claim:
        raise InvalidParameter(
            parameter="--claim",
            value=None,
            must="be given for a function",
            hint='for example --claim "epsilon=1"',
        )
    if not neighbours:
        raise ask_for_unit()
    if not 0.25 <= memory <= 4096:
        raise InvalidParameter(parameter="--memory", value=memory, must="be between 0.25 and 4096 GiB")
    claim_of(claim)
    if "::" not in neighbours:
        named_neighbours(neighbours)
    size = int(memory * 2**30)
    with progress("Auditing", quiet=json) as step:
        step("replay with the same noise")
        replayed = replay_of_file(
            target,
            claim=claim,
            neighbours=neighbours,
            sensitivity=None if sensitivity < 0 else sensitivity,
            seconds=max(5.0, min(60.0, seconds)),
            memory=size,
        )

        def tell(course: Course) -> None:
            wealth = math.exp(min(700.0, float(course.wealth.value()[course.wealth.main])))
            step(f"{course.outputs:,} outputs, wealth {wealth:.3g}")

        found = mechanism_of_file(
            target, claim=claim, neighbours=neighbours, level=level, outputs=outputs, seconds=seconds,
            to_the_end=to_the_end, memory=size, seconds_a_run=a_run, fresh=fresh, tell=tell,
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
