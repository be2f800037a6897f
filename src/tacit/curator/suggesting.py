"""A plan to begin with: from the header or the metadata of a file, and from answers; no row is read.

    print(tacit.suggest("survey.csv", person="id", at_most=3, epsilon=1, schema={"age": tacit.integer(0, 120)}).text)

What cannot be known from a header is asked: who is protected, bounds, keys, the budget. What is not answered stands in
the plan as a comment, and is never filled in from values.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.curator.prices import Number as Paid
from tacit.curator.prices import price
from tacit.curator.suggested import header_lines, release_lines, schema_lines, toml_string, toml_value
from tacit.errors import InvalidParameter, UnknownColumn, UnknownName
from tacit.guarantees import people as people_unit
from tacit.sources.declared import schema_to_tables
from tacit.sources.headings import Heading, headings, looks_like_a_row
from tacit.sources.opening.files import Files
from tacit.sources.schema import Column, Flag

__all__ = ["Suggestion", "suggest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """The text of a plan, the columns that were found, and the questions that are still open."""

    text: str = field(repr=False)
    columns: tuple[Heading, ...]
    unanswered: tuple[str, ...]

    def write(self, path: str | os.PathLike[str]) -> Path:
        """The plan in a new file; an existing one is never touched."""
        place = Path(path)
        try:
            with place.open("x", encoding="utf-8") as file:
                file.write(self.text)
        except OSError as problem:
            raise InvalidParameter(
                parameter="out", value=str(place), must="be a new file in a folder that can be written to",
                hint=(problem.strerror or "").lower(),
            ) from None  # fmt: skip
        return place

    def __str__(self) -> str:
        return self.text


def suggest(
    data: str | os.PathLike[str] | Files,
    *,
    protect: str | None = None,
    person: str | None = None,
    at_most: int | None = None,
    schema: Mapping[str, Column] | None = None,
    skip: Sequence[str] = (),
    epsilon: Paid | None = None,
    delta: Paid | None = None,
    rho: Paid | None = None,
    mu: Paid | None = None,
    table: str = "",
    version: str = "",
    trust_header: bool = False,
    beside: str | os.PathLike[str] | None = None,
) -> Suggestion:
    """A commented plan for a file, from its header or metadata and from what is answered here. Reads no row.

    `data` is a path, or `tacit.files(...)` with what is to be said of it. `protect` is "rows" or "people"; for people
    `person` is the column that tells them apart and `at_most` how many rows of one count. `schema` declares columns,
    `skip` leaves some out. The price is the budget. A header in which a name looks like a value may be somebody's row,
    and is refused unless `trust_header` says that it is none. Paths are written as seen from the folder `beside`.
    """
    files = data if isinstance(data, Files) else Files(path=os.fspath(data))
    found = tuple(h for h in headings(files) if h.name)
    if not trust_header and looks_like_a_row(found):
        raise InvalidParameter(
            parameter="data", value=files.path, must="name its columns in its first line",
            hint="a name looks like a value, and the line like somebody's row; if it is none: trust_header=True, "
            "--trust-header",
        )  # fmt: skip
    declared = dict(schema or {})
    for name in [*declared, *skip, *([person] if person else [])]:
        if name not in {h.name for h in found}:
            raise UnknownColumn(column=name, known=[h.name for h in found], where=files.path)
    protect = _protected(protect, person, at_most)
    # A boolean has no bounds and no keys to ask for: its type says all.
    declared |= {
        h.name: Flag() for h in found if h.kind == "flag" and h.name not in (*declared, *skip, person)
    }
    open_: list[str] = []
    lines = header_lines(Path(files.path).name)
    lines += _data(files, beside, table, version)
    lines += _protect(protect, person, at_most, open_)
    tables = schema_to_tables(declared)
    lines += schema_lines(found, tables, skipped={*skip, *([person] if person else [])}, unanswered=open_)
    lines += _budget({"epsilon": epsilon, "delta": delta, "rho": rho, "mu": mu}, open_)
    lines += release_lines(declared)
    return Suggestion(text="\n".join(lines) + "\n", columns=found, unanswered=tuple(open_))


def _protected(protect: str | None, person: str | None, at_most: int | None) -> str | None:
    if protect is None and person is not None:
        protect = "people"
    if protect not in (None, "people", "rows"):
        raise UnknownName(what="unit to protect", name=str(protect), known=("people", "rows"))
    if protect == "rows" and (person is not None or at_most is not None):
        raise InvalidParameter(
            parameter="protect", value=protect, must="be people, where a person is named or limited"
        )
    if at_most is not None:
        people_unit(person or "person", at_most=at_most)
    return protect


def _data(files: Files, beside: str | os.PathLike[str] | None, table: str, version: str) -> list[str]:
    named = [_seen_from(beside, Path(p)) for p in files.paths]
    words: dict[str, Any] = {"path": named if files.more else named[0], "table": table, "version": version}
    words |= {"pattern": files.pattern} | files.describe()
    lines = ["[data]", *(f"{word} = {toml_value(value)}" for word, value in words.items() if value)]
    if not version:
        lines.append(
            '# version = "2024-01"      # a public name of this state of the data; a new one is asked anew'
        )
    return [*lines, ""]


def _seen_from(folder: str | os.PathLike[str] | None, path: Path) -> str:
    if folder is None:
        return path.as_posix()
    here, there = Path(folder).resolve(), path.resolve()
    return (there.relative_to(here) if there.is_relative_to(here) else there).as_posix()


def _protect(protect: str | None, person: str | None, at_most: int | None, open_: list[str]) -> list[str]:
    lines = [
        "# Who is protected: each row by itself, or each person with all of their rows, of which at most so many are",
        "# used. This is what is promised: nothing in the data decides it.",
    ]
    if protect is None:
        open_.append("--protect")
        return [
            *lines,
            "# [protect]",
            '# unit = "people"          # or "rows"',
            "# column = ...",
            "# at_most = ...",
            "",
        ]
    lines += ["[protect]", f'unit = "{protect}"']
    if protect == "people":
        for word, value, flag in (("column", person, "--person"), ("at_most", at_most, "--at-most")):
            if value is None:
                open_.append(flag)
                lines.append(f"# {word} = ...")
            else:
                lines.append(f"{word} = {toml_string(value) if isinstance(value, str) else value}")
    return [*lines, ""]


def _budget(given: dict[str, Paid | None], open_: list[str]) -> list[str]:
    lines = ["# What may be revealed in all, for the life of this table: decided once, kept in the ledger."]
    said: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if not said:
        open_.append("--epsilon")
        return [
            *lines,
            "# [budget]",
            "# epsilon = ...",
            "# delta = ...               # leave out for pure epsilon",
            "",
        ]
    price(**said)
    return [*lines, "[budget]", *(f"{name} = {_number(value)}" for name, value in said.items()), ""]


def _number(value: Paid) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))
