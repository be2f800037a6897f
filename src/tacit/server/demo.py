"""`tacit serve --demo`: a survey of people who do not exist, three accounts, and a table to ask about."""

from __future__ import annotations

import json
from typing import Any

from tacit.errors import InvalidParameter
from tacit.server.desk import Desk
from tacit.server.store import PEOPLE, TABLES, now

PASSWORD, PASSPHRASE = "demo-demo-42", "demo-demo-43"
PEOPLE_OF = {"clara": ["custodian"], "andy": ["analyst"], "olga": ["approver"], "ruth": ["auditor"]}
SURVEYED = 20_000


def checked(desk: Desk) -> None:
    """Refuses to mix a demonstration, whose passwords everybody knows, with a real desk."""
    made = bool(desk.store.meta("demonstration"))
    if desk.settings.demo and desk.settings.public_url:
        raise InvalidParameter(
            parameter="--demo", value=None, must="not be on a public address",
            hint="its accounts have passwords that everybody knows",
        )  # fmt: skip
    if desk.settings.demo and not made and (desk.store.all(PEOPLE, most=1) or desk.store.all(TABLES, most=1)):
        raise InvalidParameter(
            parameter="--demo", value=str(desk.settings.folder), must="have a folder of its own",
            hint="this one has accounts already, and a demonstration has passwords that everybody knows",
        )  # fmt: skip
    if made and not desk.settings.demo:
        raise InvalidParameter(
            parameter="--folder", value=str(desk.settings.folder), must="not be that of a demonstration",
            hint="its accounts have passwords that everybody knows: take a new folder, or say --demo",
        )  # fmt: skip


def fill(desk: Desk) -> list[str]:
    """Makes the survey, the accounts and the table, as far as they are missing; returns lines for the terminal."""
    desk.store.meta("demonstration", lambda: "yes")
    for name, roles in PEOPLE_OF.items():
        if desk.store.one(PEOPLE, name=name) is None:
            hashed = desk.accounts._hashed(PASSWORD)
            desk.store.add(PEOPLE, name=name, roles=json.dumps(roles), password=hashed, created=now())
    olga = desk.accounts.person("olga")
    if olga is not None and not olga.key_public:
        desk.accounts.make_key(olga, PASSPHRASE)
    if desk.store.one(TABLES, name="survey") is None:
        _table(desk)
    return [
        f"sign in as {', '.join(PEOPLE_OF)} with the password {PASSWORD}",
        "everybody in the survey is made up",
    ]


def _table(desk: Desk) -> None:
    from tacit.sources.schema import schema_to_tables
    from tacit.sources.synthetic import survey_schema, write_survey

    folder = desk.settings.roots["tables"]
    path = folder / "survey.parquet"
    if not path.exists():
        write_survey(path, people=SURVEYED)
    schema: dict[str, Any] = schema_to_tables(survey_schema())
    said = {
        "data": {"path": path.name, "version": "2026"},
        "protect": {"unit": "people", "column": "person_id", "at_most": 6},
        "schema": json.loads(json.dumps(schema, default=str)),
        "budget": {"epsilon": 2.0, "delta": 1e-6},
    }
    clara = desk.accounts.person("clara")
    assert clara is not None
    desk.add_table("survey", "Survey of visits", said, folder, clara)
    table = desk.table("survey", clara)
    desk.grant(table, "andy", ["analyst"], "1", "", clara)
    desk.grant(table, "olga", ["approver"], "", "", clara)
