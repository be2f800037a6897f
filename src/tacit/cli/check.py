"""`tacit check`: what a table that is about to be published exposes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json, write_whole
from tacit.errors import InvalidParameter, visible

if TYPE_CHECKING:
    from tacit.anonymity import Checked

__all__ = ["check", "names_of"]

MOST_VALUES = 20
"""Values of a sensitive column that are looked at for skewness."""


def names_of(text: str) -> tuple[str, ...]:
    """Names separated by commas; a comma inside a name is doubled."""
    marked = text.replace(",,", "\0")
    return tuple(part.strip().replace("\0", ",") for part in marked.split(",") if part.strip())


def check(
    table: Path = typer.Argument(..., help="The table: a Parquet or CSV file."),
    quasi: str = typer.Option(..., "--quasi", help="Quasi-identifiers, with commas."),
    sensitive: str = typer.Option("", "--sensitive", help="Sensitive columns, with commas."),
    k: int = typer.Option(5, "--k", help="Classes below this size are at risk."),
    population: Path | None = typer.Option(
        None,
        "--population",
        help="A table that contains this one, for k-map and presence.",
    ),
    people: int = typer.Option(
        0, "--people", show_default=False, help="The size of the sampled population, for population uniques."
    ),
    distance: str = typer.Option(
        "", "--distance", help="For t-closeness: equal or ordered; by default ordered for numbers."
    ),
    hierarchy: Path | None = typer.Option(
        None, "--hierarchy", help="A hierarchy of the sensitive values (CSV)."
    ),
    engine: str = typer.Option("duckdb", "--engine", help="duckdb or spark."),
    out: Path | None = typer.Option(None, "--out", help="Write a page (HTML), marked not for publication."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Measure what a table exposes before you publish it.

    Prints k-anonymity and its relatives, re-identification risk, unique rows, likely identifiers and what attacks
    find. The numbers are exact, not for publication, and no guarantee.
    """
    from tacit.anonymity import check_table, read_hierarchy

    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise InvalidParameter(parameter="--out", value=str(out), must="end in .html")
    checked = check_table(
        table,
        quasi=names_of(quasi),
        sensitive=names_of(sensitive),
        k=k,
        population=population,
        people=people or None,
        distance=distance or None,
        hierarchy=read_hierarchy(hierarchy) if hierarchy is not None else None,
        engine=engine,
    )
    attacks = attacks_on(table, checked, engine)
    if out is not None:
        from tacit.report.anonymity import write_check

        write_whole(out, lambda path: write_check(checked, path, attacks=attacks))
    if json:
        print_json({**checked.record, "attacks": attacks, "out": str(out) if out is not None else None})
        return
    say(checked)
    print("Attacks, by somebody who knows the quasi-identifiers of everybody:")
    for one in attacks:
        line = f"{one['attack']:<34}{one['exposed']}; {one['learned']}; guessing alone: {one['guessing']}"
        print(f"  {visible(line)}")
    if out is not None:
        print(f"Written, and not for publication: {visible(str(out))}")


def attacks_on(table: Path, checked: Checked, engine: str) -> list[dict[str, Any]]:
    """What the attacks that need nothing but the table find in it, for words."""
    from tacit import attacks
    from tacit.anonymity import open_microdata
    from tacit.report.numbers import three

    columns = [s.column for s in checked.sensitive]
    with open_microdata(table, engine=engine) as micro:
        rows = micro.rows([*checked.quasi, *columns])
    found: list[tuple[str, Any, str]] = []
    linked = attacks.link(rows, rows, quasi=checked.quasi)
    found.append(("linkage", linked, "their rows"))
    for name in columns:
        alike = attacks.homogeneity(rows, quasi=checked.quasi, sensitive=name)
        found.append((f"homogeneity ({name})", alike, f"their {name}, for certain"))
        values = [v for v in rows.column(name).unique().to_pylist() if v is not None]
        if len(values) <= MOST_VALUES:
            moved = [attacks.skewness(rows, quasi=checked.quasi, sensitive=name, value=v) for v in values]
            if moved:
                worst = max(moved, key=lambda f: f.share)
                words = f"that {name} is {worst.details['value']}, at least twice as surely as before"
                found.append((f"skewness ({name})", worst, words))
    return [
        {
            "attack": title,
            "exposed": f"{len(one.exposed):,} of {one.people:,} people",
            "learned": learned,
            "guessing": f"{three(one.guessing)} ({one.alone})",
            "share": one.share,
        }
        for title, one, learned in found
        if len(one.exposed)
    ]


def say(checked: Checked) -> None:
    """The findings in lines for a terminal."""
    from tacit.report.anonymity import shown

    by = visible(", ".join(checked.quasi))
    print(f"{visible(checked.source)}: {checked.rows:,} rows in {checked.classes:,} classes by {by}")
    print("Exact numbers about people, not for publication; properties of this table, no guarantees.")
    for one in checked.properties:
        print(f"  {one.name:<34}{shown(one.value)}")
    risk = checked.prosecutor
    print(f"  {'prosecutor, highest chance':<34}{shown(risk.highest)}")
    if checked.journalist is not None:
        print(f"  {'journalist, highest chance':<34}{shown(checked.journalist.highest)}")
    print(f"  {'marketer, share of right links':<34}{shown((checked.journalist or risk).average)}")
    print(f"  {'unique rows':<34}{checked.sample_uniques:,}")
    for unique in checked.uniques:
        words = f"population uniques ({unique.estimator})"
        print(f"  {words:<34}{shown(unique.population)} of {unique.people:,}")
    for learned in checked.sensitive:
        print(f"{visible(learned.column)} (distance of t-closeness: {learned.distance})")
        for one in learned.properties:
            print(f"  {one.name:<34}{shown(one.value)}")
    if checked.identifiers:
        print("Columns that look like identifiers:")
        for finding in checked.identifiers:
            print(f"  {visible(finding.describe())}")
    print("What is wrong with it:")
    for problem in checked.problems:
        print(f"  - {visible(problem)}")
