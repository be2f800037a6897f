"""The lines of a plan that begins: TOML that parses, whatever characters a header has, and comments that ask."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tacit.errors import visible
from tacit.sources.headings import Heading
from tacit.sources.schema import Category, Column, Flag

__all__ = ["header_lines", "release_lines", "schema_lines", "toml_key", "toml_string", "toml_value"]

BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
QUESTIONS = {
    "number": ["low = ...                 # what nobody is below, from what the column means",
               "high = ...                # what nobody is above"],
    "integer": ["low = ...                 # what nobody is below, from what the column means",
                "high = ...                # what nobody is above"],
    "date": ['low = "..."               # the first day that counts', 'high = "..."              # the last day'],
    "category": ['keys = ["..."]            # the public list of its values; without it keys cost delta'],
    "flag": [],
}  # fmt: skip


def toml_string(text: str) -> str:
    """A text as TOML writes it; what steers a terminal or turns the reading around is spelled out."""
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in plain)


def toml_key(name: str) -> str:
    """A name as TOML writes it."""
    return name if BARE.fullmatch(name) else toml_string(name)


def header_lines(name: str) -> list[str]:
    """What stands at the top."""
    return [
        f"# A plan for {visible(name)}, from its header or metadata alone: no row was read.",
        "# Answer what is commented out, then: tacit plan (price and error), tacit release (values and report).",
        "",
    ]


def schema_lines(
    found: Sequence[Heading],
    tables: Mapping[str, Mapping[str, Any]],
    *,
    skipped: set[str],
    unanswered: list[str],
) -> list[str]:
    """The declared columns, and the others as comments."""
    lines = [
        "# Columns. What is not declared is not read. Bounds and keys come from what a column means, never from its",
        "# values: they are public, and whatever lies outside of them is clamped or counted as missing.",
    ]
    for one in found:
        if one.name in skipped and one.name not in tables:
            continue
        if one.name in tables:
            lines.append(f"[schema.{toml_key(one.name)}]")
            lines += [f"{word} = {toml_value(value)}" for word, value in tables[one.name].items()]
        else:
            kind = one.kind or "category"
            flag = f"--{kind}" if one.kind else "--category, --number, --integer, --date or --flag"
            unanswered.append(f"{flag} {visible(one.name)}")
            guess = "" if one.kind else "       # or number, integer, date, flag"
            lines.append(f"# [schema.{toml_key(one.name)}]  # stored as {visible(one.stored)}")
            lines.append(f'# kind = "{kind}"{guess}')
            asked = [f"keys = {toml_value(list(one.keys))}"] if one.keys else QUESTIONS[kind]
            lines += [f"# {line}" for line in asked]
        lines.append("")
    return lines


def release_lines(declared: Mapping[str, Column]) -> list[str]:
    """Counts to begin with: of all rows, and by each column that has declared keys."""
    lines = [
        "# What is released. The budget is divided among these, unless [spend] says how much of it is used."
    ]
    groups = [
        name
        for name, column in declared.items()
        if isinstance(column, Flag) or (isinstance(column, Category) and column.values is not None)
    ]
    lines += ["[[release]]", 'name = "all"', 'kind = "count"', ""]
    for name in groups:
        lines += ["[[release]]", 'kind = "count"', f"by = {toml_string(name)}", ""]
    others = '# kind = "mean"             # or sum, histogram, quantiles; a proportion says of = "age > 65"'
    return [*lines, "# [[release]]", others, '# column = "..."', '# by = "..."']


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(v) for v in value) + "]"
    return repr(value)
