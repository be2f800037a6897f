"""`tacit twin`: a synthetic table for a declared schema, to rehearse a plan without touching data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from tacit.cli.output import print_json, write_whole
from tacit.errors import InvalidParameter, UnknownName

__all__ = ["twin"]

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

    Reads no data. Columns are independent, frequencies made up. A rehearsal has a ledger of its own.
    """
    from tacit.sources.declared import schema_from_tables
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
    """A TOML file; what is wrong with it is told with its line."""
    from tacit.curator.toml import read_toml

    return read_toml(path, parameter="schema")


def _protected(plan: dict[str, Any]) -> str:
    """The column that says who a person is, where a plan's [protect] names one."""
    protect = plan.get("protect")
    column = protect.get("column") if isinstance(protect, dict) else None
    return column if isinstance(column, str) else ""
