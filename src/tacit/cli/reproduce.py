"""`tacit reproduce`: a figure or table of the sources, drawn again."""

from __future__ import annotations

from pathlib import Path

import typer

from tacit.cli.output import print_json, write_whole
from tacit.errors import InvalidParameter

__all__ = ["reproduce"]


def reproduce(
    name: str = typer.Argument("", help="The figure or table; --list shows the names."),
    list_: bool = typer.Option(False, "--list", help="List the names and stop."),
    out: Path = typer.Option(Path("out/reproduce"), "--out", help="The folder for PNG, SVG and CSV."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Draw a figure or table of the literature with our numbers."""
    from tacit.reproduce import REPRODUCTIONS, reproduction

    if list_:
        _list([reproduction(known) for known in REPRODUCTIONS], json)
        return
    if not name:
        raise InvalidParameter(
            parameter="name",
            value="",
            must="name a figure or table",
            hint="tacit reproduce --list shows them",
        )
    found = reproduction(name)
    made = found.make()
    files = [write_whole(out / f"{found.name}.csv", made.write_table)]
    if made.draw is not None:
        files += [
            write_whole(out / f"{found.name}{ending}", made.write_picture) for ending in (".png", ".svg")
        ]
    if json:
        print_json(
            {
                "name": found.name,
                "title": found.title,
                "source": found.source,
                "columns": list(made.columns),
                "rows": [list(row) for row in made.rows],
                "notes": list(made.notes),
                "files": [str(path) for path in files],
            }
        )
        return
    print(f"{found.title} ({found.source})\n")
    for note in made.notes:
        print(f"- {note}")
    print("\nWritten: " + ", ".join(str(path) for path in files))


def _list(known: list[object], json: bool) -> None:
    from tacit.reproduce import Reproduction

    found = [r for r in known if isinstance(r, Reproduction)]
    if json:
        print_json({"reproductions": [{"name": r.name, "title": r.title, "source": r.source} for r in found]})
        return
    width = max(len(r.name) for r in found)
    for r in found:
        print(f"{r.name:<{width}}  {r.title} ({r.source})")
