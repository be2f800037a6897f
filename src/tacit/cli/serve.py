"""`tacit serve`: the custodian's desk in a browser, and over HTTP for programs."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from tacit.cli.output import print_json
from tacit.errors import InvalidParameter, visible


def serve(
    folder: Path = typer.Option(
        Path("tacit-server"), "--folder", help="The server's folder; made if there is none."
    ),
    root: list[str] = typer.Option(
        [],
        "--root",
        help="NAME=FOLDER with tables to choose from (repeatable); by default FOLDER/tables.",
    ),
    host: str = typer.Option("127.0.0.1", "--host", help="The address to listen on."),
    port: int = typer.Option(8484, "--port", help="The port to listen on; 0 for any free one."),
    public_url: str | None = typer.Option(
        None, "--public-url", help="The address behind a proxy: https://desk.example.org"
    ),
    database: str | None = typer.Option(
        None, "--database", help="A PostgreSQL URL, when several processes or machines serve."
    ),
    workers: int | None = typer.Option(None, "--workers", help="Processes that carry out releases (1)."),
    demo: bool = typer.Option(False, "--demo", help="With a made-up survey, accounts and a tour."),
    check: bool = typer.Option(False, "--check", help="Check settings and database, and stop."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object when the server is ready."),
) -> None:
    """Serve tables, questions and releases to browsers.

    A new server prints the place of a one-time link for the first custodian.
    """
    try:
        from tacit.server.running import run
    except ImportError as problem:
        raise InvalidParameter(
            parameter="tacit serve",
            value=problem.name,
            must="have its packages",
            hint='pip install "tacit[server]"',
        ) from None
    if not 0 <= port <= 65_535:
        raise InvalidParameter(parameter="--port", value=port, must="be from 0 to 65535")
    roots = {}
    for one in root:
        name, equals, place = one.partition("=")
        if not equals or not name or not place:
            raise InvalidParameter(
                parameter="--root", value=one, must="be NAME=FOLDER", hint="--root surveys=/data"
            )
        roots[name] = str(Path(place).absolute())

    def ready(told: dict[str, object]) -> None:
        if json:
            print_json(told)
        else:
            print(visible(f"tacit: serving {told['url']} from {told['folder']}"))
            if told["first_link"]:
                print(visible(f"the first custodian's link, for 15 minutes, stands in {told['first_link']}"))
            for line in told["notes"]:  # type: ignore[attr-defined]
                print(visible(str(line)))
            print("end with Ctrl-C")
        sys.stdout.flush()

    run(
        folder.absolute(), ready=ready, demo=demo, check=check, roots=roots, host=host, port=port,
        public_url=public_url, database=database, workers=workers,
    )  # fmt: skip
