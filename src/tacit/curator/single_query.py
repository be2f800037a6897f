"""One query beside a plan file: it uses the plan's data, schema, unit, budget and ledger.

The plan of one release is written as TOML, so that its folder contains a whole plan.
Its identity is
that of its request: the same query in a plan file, or in a sentence again, is answered from the record.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tacit.curator.plan_files import KINDS, PlanFile, parse_toml, read_plan_text
from tacit.curator.sentences import STATISTICS
from tacit.errors import InvalidParameter, UnknownName

PRICES = ("delta", "epsilon", "mu", "rho", "within")
ALIKE = {"table": "contingency", "average": "mean", "total": "sum", "share": "proportion"}
_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def plan_of_one(file: PlanFile, table: Mapping[str, Any]) -> PlanFile:
    """The plan with one release, the words of `table`, instead of its own releases."""
    if not any(word in table for word in PRICES):
        raise InvalidParameter(
            parameter="price", value=None, must="be given",
            hint="--epsilon 0.1, with --delta or without; --rho, --mu; or --within to pay by accuracy",
        )  # fmt: skip
    data = parse_toml(file.text, parameter="plan", name=str(file.path))
    kept = {name: held for name, held in data.items() if name not in ("release", "spend")}
    report = kept.get("report")
    if isinstance(report, Mapping):
        # Labels of releases that are not asked for here.
        kept["report"] = {word: held for word, held in report.items() if word != "releases"}
    text = toml_text({**kept, "release": [dict(table)]})
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidParameter(
            parameter="query", value=None, must="be text", hint="it has bytes that are no UTF-8"
        ) from None
    return replace(read_plan_text(text, file.path), text=text)


def kind_named(word: str) -> str:
    """The kind of release for a word of plans or of sentences."""
    named = word.strip().lower().replace("-", "_").replace(" ", "_")
    found = ALIKE.get(named, named)
    if found not in KINDS:
        raise UnknownName(what="statistic", name=word, known=sorted({*KINDS, *STATISTICS}))
    return found


# --- TOML ---------------------------------------------------------------------------------------------------
def toml_text(data: Mapping[str, Any]) -> str:
    """Tables as TOML: a heading for each table of the first two levels, and inline tables below."""
    lines: list[str] = []
    for name, held in data.items():
        if isinstance(held, list):
            for one in held:
                lines += [f"[[{_name(name)}]]", *_pairs(one), ""]
            continue
        deep = {k: v for k, v in held.items() if isinstance(v, Mapping) and name == "schema"}
        flat = {k: v for k, v in held.items() if k not in deep}
        if flat or not deep:
            lines += [f"[{_name(name)}]", *_pairs(flat), ""]
        for inner, one in deep.items():
            lines += [f"[{_name(name)}.{_name(inner)}]", *_pairs(one), ""]
    return "\n".join(lines)


def _pairs(table: Mapping[str, Any]) -> list[str]:
    return [f"{_name(word)} = {_value(held)}" for word, held in table.items()]


def _name(word: str) -> str:
    return word if _BARE.fullmatch(word) else _text(word)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        return repr(value) if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_pairs(value)) + " }" if value else "{}"
    return "[" + ", ".join(map(_value, value)) + "]"


def _text(value: str) -> str:
    """A basic string: TOML has JSON's escapes, but also refuses the control character DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
