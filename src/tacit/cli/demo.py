"""`tacit demo`: a survey of people who do not exist, a plan, its release, and the report: the main job, end to end."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json, write_whole
from tacit.cli.plans import free, write_release
from tacit.errors import InvalidParameter, UnknownName

if TYPE_CHECKING:
    from tacit.curator import Curator, Releases
    from tacit.curator.plan_files import PlanFile

RELEASES = """
[[release]]
name = "people by region"
kind = "count"
of = "people"
by = "region"

[[release]]
name = "visits by month"
kind = "histogram"
column = "visited"
bins = 36
consistent = true

[[release]]
name = "age of visitors"
kind = "histogram"
column = "age"
bins = [0, 5, 18, 30, 45, 60, 75, 90, 110]
consistent = true

[[release]]
name = "cost by region"
kind = "sum"
column = "cost"
by = "region"

[[release]]
name = "mean income by region"
kind = "mean"
column = "income"
by = "region"
rows = 40000

[[release]]
name = "spread of cost"
kind = "standard_deviation"
column = "cost"
rows = 800000

[[release]]
name = "cost of a night"
kind = "ratio"
numerator = "cost"
denominator = "nights"
by = "region"
rows = 40000

[[release]]
name = "emergencies by region"
kind = "proportion"
of = "emergency"
by = "region"
rows = 40000

[[release]]
name = "quantiles of cost"
kind = "quantiles"
column = "cost"
at = [0.1, 0.25, 0.5, 0.75, 0.9]

[[release]]
name = "visits by region and sex"
kind = "contingency"
columns = ["region", "sex"]
consistent = true

[[release]]
name = "margins"
kind = "margins"
columns = ["region", "sex", "insured"]
consistent = true

[[release]]
name = "people by diagnosis"
kind = "count"
of = "people"
by = "diagnosis"
weight = 2
"""


def demo(
    out: Path = typer.Option(Path("out/demo"), "--out", help="The folder to write; it must not exist yet."),
    people: int = typer.Option(200_000, "--people", help="The number of made-up people."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Make up a survey and publish twelve statistics from it.

    Writes the table, plan, ledger, values, certificates and report.html.
    """
    from tacit.report.progress import watched

    started = time.monotonic()
    target = _next(out)
    free(target)
    with watched("Demo", total=5, quiet=json) as step:
        files, releases = _made(target, people, step)
    report = target / "report.html"
    seconds = time.monotonic() - started
    if json:
        print_json(
            {
                "out": str(target),
                "report": str(report),
                "files": [str(f) for f in files],
                "releases": [r.name for r in releases],
                "seconds": round(seconds, 1),
            }
        )
        return
    print(f"A survey of {people:,} people who do not exist, and {len(releases)} releases from it:\n")
    for one in releases:
        cells = len(one.columns["value"])
        print(f"  {one.name:<38} {cells:>4} {'cell' if cells == 1 else 'cells'}  {one.guarantee.bound}")
    print(f"\nspent: {releases[-1].spent}; left: {releases[-1].remaining}")
    for name, what in FILES.items():
        print(f"  {target / name}: {what}")
    print(f"\nOpen {report} ({seconds:.1f} s)")


FILES = {
    "survey.parquet": "the made-up survey, one row a visit",
    "plan.toml": "the plan",
    "survey.ledger": "the ledger",
    "values": "the numbers, as CSV and Parquet",
    "certificates": "what each of them may reveal, as JSON",
    "report.html": "the whole report; it shows the truth beside the releases because the people do not exist",
    "manifest.json": "every file of the release with its digest, for tacit verify",
}


def _next(out: Path) -> Path:
    """The requested folder, or the default one with a number appended if that exists already."""
    if out != Path("out/demo") or not out.exists():
        return out
    number = 2
    while (numbered := out.with_name(f"{out.name}-{number}")).exists():
        number += 1
    return numbered


def _made(target: Path, people: int, step: Any) -> tuple[list[Path], Releases]:
    """Everything in a scratch folder first; the requested folder appears complete or not at all."""
    from tacit.curator.plan_files import read_plan
    from tacit.sources.synthetic import survey_schema, write_survey

    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".tacit-") as scratch:
        folder = Path(scratch)
        step("making the survey up")
        write_survey(folder / "survey.parquet", people=people)
        (folder / "plan.toml").write_text(plan_text(survey_schema()), encoding="utf-8")
        file: PlanFile = read_plan(folder / "plan.toml")
        with file.curator() as curator:
            step("planning")
            plan = file.plan()
            step("charging, reading, adding noise")
            releases = curator.release(plan)
            step("the truth, for the report")
            truth = _truth(curator, releases)
            step("writing")
            write_release(
                target,
                file,
                plan,
                releases,
                curator.budget,
                truth=truth,
                title="A survey of people who do not exist",
            )
        for name in ("survey.parquet", "survey.ledger"):
            (folder / name).replace(target / name)
    return sorted(p for p in target.rglob("*") if p.is_file()), releases


def _truth(curator: Curator, releases: Releases) -> dict[str, list[float]]:
    """The same statistics without noise: only for made-up people, and only for this report."""
    import numpy as np

    from tacit.statistics import read_cells

    questions = [r.planned.question for r in releases]
    cells = read_cells(curator._open(), questions, key=curator.ledger.bounding_key)
    out = {}
    for release, question, found in zip(releases, questions, cells, strict=True):
        exact = np.ravel(question.assemble(question.integers(found)))
        if release.noisy.keys is not None:
            assert found[0].keys is not None
            place = {key: i for i, key in enumerate(zip(*found[0].keys, strict=True))}
            exact = np.array([exact[place[key]] for key in zip(*release.noisy.keys, strict=True)])
        out[release.name] = [float(v) for v in exact]
    return out


def plan_text(schema: Any) -> str:
    """The demo's plan file."""
    from tacit.sources.schema import schema_to_tables

    lines = [
        "# A plan: what is protected, what may be spent, what is published. See docs/curator.md.",
        "[data]", 'path = "survey.parquet"', "",
        "[protect]", 'unit = "people"', 'column = "person_id"', "at_most = 6", "",
        "[budget]", "epsilon = 2.0", "delta = 1e-6", "",
        "[spend]", "epsilon = 1.5", "delta = 5e-7", "",
        "[ledger]", 'path = "survey.ledger"', "",
    ]  # fmt: skip
    for name, table in schema_to_tables(schema).items():
        lines.append(f"[schema.{name}]")
        lines += [f"{word} = {_toml(value)}" for word, value in table.items()]
        lines.append("")
    return "\n".join(lines) + RELEASES


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)


# `tacit twin`: a synthetic table for a declared schema, to rehearse a plan without touching data.

ROWS_OF_A_PERSON = 4


def twin(
    schema: Path = typer.Argument(..., help="A plan or schema file (TOML) with [schema.*] tables."),
    rows: int = typer.Option(10_000, "--rows", help="The number of rows."),
    out: Path = typer.Option(..., "--out", help="The file to write: .parquet or .csv."),
    people: int = typer.Option(
        0,
        "--people",
        show_default=False,
        help="The number of people; by default a fourth of the rows.",
    ),
    person_column: str = typer.Option(
        "", "--person-column", help="The column of people; by default the plan's."
    ),
    seed: int = typer.Option(0, "--seed", help="The same seed gives the same table."),
    missing: float = typer.Option(0.03, "--missing", help="The share of missing values in each column."),
    outside: float = typer.Option(0.01, "--outside", help="The share of values outside the declaration."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace an existing file."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Make a synthetic table from a schema, to rehearse a plan.

    Reads no data. Columns are independent, frequencies made up. A rehearsal has a separate ledger.
    """
    from tacit.sources.schema import schema_from_tables
    from tacit.sources.synthetic.twin import ENDINGS, write_table
    from tacit.sources.synthetic.twin import twin as make

    ending = out.suffix.lower()
    if ending not in ENDINGS:
        hint = "end the name in .parquet or .csv"
        raise UnknownName(what="kind of file", name=ending or out.name, known=ENDINGS, hint=hint)
    if out.exists() and not overwrite:
        raise InvalidParameter(
            parameter="--out",
            value=str(out),
            must="not be there yet",
            hint="choose another name, or say --overwrite",
        )
    plan = read_tables(schema)
    if "schema" not in plan:
        raise InvalidParameter(
            parameter="schema", value=str(schema), must="have [schema.*] tables",
            hint='for example [schema.age] with kind = "number", low = 0, high = 120',
        )  # fmt: skip
    declared = schema_from_tables(plan["schema"])
    who = person_column or _protected(plan)
    count = people or (max(1, rows // ROWS_OF_A_PERSON) if who else 0)
    table = make(
        declared, rows=rows, people=count or None, person_column=who or "person_id", seed=seed,
        missing_share=missing, outside_share=outside,
    )  # fmt: skip
    write_whole(out, lambda path: write_table(table, path, ending=ending))
    told = {
        "out": str(out),
        "rows": rows,
        "people": count or None,
        "columns": list(table.column_names),
        "seed": seed,
    }
    if json:
        print_json(told)
        return
    of = f" of {count:,} people" if count else ""
    print(f"Made up {rows:,} rows{of} from the schema alone: {', '.join(table.column_names)}.")
    print(f"They describe nobody, and their statistics mean nothing. Written: {out}")


def read_tables(path: Path) -> dict[str, Any]:
    """A TOML file; an error names the faulty line."""
    from tacit.curator.plan_files import read_toml

    return read_toml(path, parameter="schema")


def _protected(plan: dict[str, Any]) -> str:
    """The column of the person, if the plan's [protect] names one."""
    protect = plan.get("protect")
    column = protect.get("column") if isinstance(protect, dict) else None
    return column if isinstance(column, str) else ""
