"""Attacks on tables of people that were released without names."""

from __future__ import annotations

from pathlib import Path

import typer

from tacit.cli.attack.tables import names, read_columns
from tacit.cli.attack.telling import tell
from tacit.errors import InvalidParameter

__all__ = ["background", "histories", "homogeneity", "intersection", "linkage", "skewness"]

QUASI = typer.Option(..., "--quasi", help="Quasi-identifiers, with commas.")
SENSITIVE = typer.Option(..., "--sensitive", help="The column to learn.")
SHOW = typer.Option(20, "--show", help="List at most this many people.", min=0)
JSON = typer.Option(False, "--json", help="Print one JSON object.")
TABLE = typer.Argument(..., help="The released table: CSV or Parquet.")


def linkage(
    release: Path = TABLE,
    known: Path = typer.Argument(..., help="A list with names and the same quasi-identifiers."),
    quasi: str = QUASI,
    sensitive: str = typer.Option(
        "", "--sensitive", help="The column to learn; by default the number of the row."
    ),
    show: int = SHOW,
    json: bool = JSON,
) -> None:
    """Name people of a list in a release, by quasi-identifiers."""
    from tacit.attacks import link

    found = link(
        read_columns(release), read_columns(known), quasi=names("quasi", quasi), sensitive=sensitive or None
    )
    tell(found, json=json, show=show, sentence="people of the list who are one row of the release")


def histories(
    release: Path = TABLE,
    known: Path = typer.Argument(..., help="Known entries of some people, one a line."),
    person: str = typer.Option("person", "--person", help="The column with the pseudonym, or the name."),
    item: str = typer.Option("item", "--item", help="The column with the item."),
    value: str = typer.Option("", "--value", help="The column with a value, as a rating."),
    date: str = typer.Option("", "--date", help="The column with a date or a day."),
    eccentricity: float = typer.Option(
        7.0, "--eccentricity", help="How many standard deviations the best match must lie above the next."
    ),
    show: int = SHOW,
    json: bool = JSON,
) -> None:
    """Name people in released histories by a few known entries.

    The scoreboard attack of Narayanan and Shmatikov; some entries may be wrong.
    """
    from tacit.attacks import link_histories

    found = link_histories(
        read_columns(release),
        read_columns(known),
        person=person,
        item=item,
        value=value or None,
        date=date or None,
        eccentricity=eccentricity,
    )
    tell(found, json=json, show=show, sentence="people whose best match stands out")


def homogeneity(
    table: Path = TABLE,
    quasi: str = QUASI,
    sensitive: str = SENSITIVE,
    show: int = SHOW,
    json: bool = JSON,
) -> None:
    """Find classes whose rows share one sensitive value."""
    from tacit.attacks import homogeneity as attack

    found = attack(read_columns(table), quasi=names("quasi", quasi), sensitive=sensitive)
    tell(found, json=json, show=show, sentence="rows whose class has one sensitive value")


def background(
    table: Path = TABLE,
    quasi: str = QUASI,
    sensitive: str = SENSITIVE,
    ruled_out: list[str] = typer.Option(
        ..., "--ruled-out", help="A value that the person does not have (repeatable)."
    ),
    show: int = SHOW,
    json: bool = JSON,
) -> None:
    """Rule out values, and find people who are left with one."""
    from tacit.attacks import background as attack

    found = attack(read_columns(table), quasi=names("quasi", quasi), sensitive=sensitive, ruled_out=ruled_out)
    tell(found, json=json, show=show, sentence="rows that are left with one value")


def skewness(
    table: Path = TABLE,
    quasi: str = QUASI,
    sensitive: str = SENSITIVE,
    value: str = typer.Option(..., "--value", help="The suspected value."),
    factor: float = typer.Option(2.0, "--factor", help="At least this many times its share in the table."),
    show: int = SHOW,
    json: bool = JSON,
) -> None:
    """Find classes in which a value is much more common."""
    from tacit.attacks import skewness as attack

    found = attack(
        read_columns(table), quasi=names("quasi", quasi), sensitive=sensitive, value=value, factor=factor
    )
    tell(found, json=json, show=show, sentence="rows whose class has the value more often")


def intersection(
    releases: list[Path] = typer.Argument(..., help="Two or more releases about the same people."),
    quasi: str = QUASI,
    sensitive: str = SENSITIVE,
    known: Path | None = typer.Option(None, "--known", help="A table of people with their own values."),
    person: str = typer.Option("", "--person", help="One person instead: zip=13012,age=28."),
    show: int = SHOW,
    json: bool = JSON,
) -> None:
    """Intersect what several releases leave possible.

    Values may be generalised: 130**, <30, 20-29.
    """
    from tacit.attacks import intersection as attack

    columns = names("quasi", quasi)
    if (known is None) == (not person):
        raise InvalidParameter(
            parameter="known",
            value="" if known is None else str(known),
            must="be given, or --person, and not both",
        )
    if known is not None:
        people = read_columns(known)
    else:
        pairs = dict(part.split("=", 1) for part in person.split(",") if "=" in part)
        people = {name: [pairs[name].strip() if name in pairs else None] for name in columns}
        strange = [name for name in pairs if name not in columns]
        if strange or not pairs:
            raise InvalidParameter(
                parameter="person",
                value=person,
                must="give quasi-identifiers as name=value, separated by commas",
            )
    found = attack([read_columns(r) for r in releases], people, quasi=columns, sensitive=sensitive)
    tell(found, json=json, show=show, sentence="people with one value left")
