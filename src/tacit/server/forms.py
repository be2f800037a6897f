"""Forms as people fill them in, read as the words of plans: queries and declarations."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tacit.errors import InvalidParameter, visible
from tacit.server.web import WebCall

# --- asking ------------------------------------------------------------------------------------------------
STATISTICS: dict[str, tuple[str, str]] = {
    "count": ("Count", "rows or people"),
    "mean": ("Mean", "the average"),
    "sum": ("Total", "the sum"),
    "proportion": ("Share", "the part that meets a condition"),
    "median": ("Median", "the value in the middle"),
    "quantiles": ("Quantiles", "quartiles and others"),
    "histogram": ("Histogram", "counts in bins"),
    "standard_deviation": ("Spread", "the standard deviation"),
    "contingency": ("Cross table", "counts by several columns"),
}
"""The statistics of the form, with their words for people. The API takes every kind of a plan."""
NEEDS_COLUMN = ("mean", "sum", "median", "quantiles", "histogram", "standard_deviation")
SHARES = ("1", "5", "10", "25")
"""Per cent of the budget that the form offers as prices."""


def question(call: WebCall, schema: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """One question of the form, as the words of a [[release]]."""
    kind = call.field("kind", "count")
    if kind not in STATISTICS:
        raise InvalidParameter(parameter="statistic", value=kind[:40], must="be one of the list")
    found: dict[str, Any] = {"kind": kind}
    if kind in NEEDS_COLUMN:
        column = call.field("column")
        if not column:
            raise InvalidParameter(parameter="column", value=None, must="be chosen for this statistic")
        found["column"] = column
    by = [b for b in call.all_fields("by") if b in schema]
    if kind == "contingency":
        if len(by) < 2:
            raise InvalidParameter(
                parameter="groups", value=len(by), must="be two columns at least for a cross table"
            )
        found["columns"] = [_axis(b, schema, call) for b in by]
    elif by:
        found["by"] = [_axis(b, schema, call) for b in by]
    if kind == "count" and call.field("of") == "people":
        found["of"] = "people"
    if kind == "proportion":
        found["of"] = call.field("of_condition").strip() or _missing("condition", "age > 65")
    if kind == "histogram":
        found["bins"] = _edges(call.field("bins").strip() or "10", schema.get(str(found["column"]), {}))
    if kind == "quantiles":
        found["at"] = _numbers("quantiles", call.field("at") or "0.25, 0.5, 0.75")
    if where := call.field("where").strip():
        found["where"] = where
    if rows := call.field("rows").strip():
        found["rows"] = _whole("rows", rows)
    if name := call.field("name").strip():
        found["name"] = name
    return found


def _axis(name: str, schema: Mapping[str, Mapping[str, Any]], call: WebCall) -> Any:
    """A group: a column by its keys, or a number in bins."""
    kind = schema[name].get("kind")
    if kind in ("number", "integer", "date"):
        given = call.field(f"bins:{name}").strip() or "5"
        return {"column": name, "bins": _edges(given, schema[name])}
    return name


def price(
    call: WebCall, budget: Mapping[str, float], left: Mapping[str, float]
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """The price of a form: a part of the budget or a separate amount, as [spend]; or an accuracy, for each question."""
    pay = call.field("pay")
    if pay == "within":
        amount = _number("accuracy", call.field("within") or _missing("accuracy", "50"))
        return None, {"within": amount, "confidence": 0.95}
    lead = next(iter(budget))
    if pay in SHARES:
        return {name: _cut(value * int(pay) / 100) for name, value in budget.items()}, {}
    if pay == "own":
        amount = _number("price", call.field("amount") or _missing("price", "0.1"))
        part = amount / budget[lead] if budget[lead] else 1.0
        rest = {n: _cut(min(v * part, max(left.get(n, v), 0.0))) for n, v in budget.items() if n != lead}
        return {lead: amount, **rest}, {}
    raise InvalidParameter(
        parameter="price",
        value=None,
        must="be chosen: there is no default",
        hint="choose a part of the budget",
    )


def _cut(value: float) -> float:
    """Three significant digits, downwards."""
    from decimal import ROUND_DOWN, Context, Decimal

    return float(Context(prec=3, rounding=ROUND_DOWN).create_decimal(Decimal(repr(value))))


def asked_of(call: WebCall, schema: Mapping[str, Any], standing: Mapping[str, Any]) -> dict[str, Any]:
    """All that a form asks: its basket, the question that is being written, and the price."""
    spend, own = price(call, standing["budget"], standing["left"])
    basket = basket_of(call)
    questions = (
        [*basket, question(call, schema)] if not basket or call.field("with_question") != "no" else basket
    )
    return {
        "releases": [{**q, **own} for q in questions],
        "spend": spend,
        "title": call.field("title").strip()[:120],
    }


def basket_of(call: WebCall) -> list[dict[str, Any]]:
    """The questions that were put into the basket; it travels with the form."""
    text = call.field("basket") or "[]"
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(q, dict) for q in found):
        raise InvalidParameter(parameter="basket", value="a text", must="be what the page sent")
    return found


def words_of(question: Mapping[str, Any]) -> str:
    """A question of a basket for people."""
    kind = str(question.get("kind", ""))
    parts = [STATISTICS.get(kind, (kind[:40], ""))[0]]
    if "column" in question:
        parts.append(f"of {question['column']}")
    if kind == "proportion":
        parts.append(f"with {question.get('of', '')}")
    elif question.get("of") == "people":
        parts.append("of people")
    groups = question.get("by") or question.get("columns") or []
    if isinstance(groups, list) and groups:
        parts.append(
            "by " + ", ".join(str(g.get("column", "")) if isinstance(g, Mapping) else str(g) for g in groups)
        )
    if question.get("where"):
        parts.append(f"where {question['where']}")
    return " ".join(parts)


def plan_words_of(question: Mapping[str, Any]) -> str:
    """Everything that a question says, a word a line: whoever signs it sees bins and levels, too."""
    return "\n".join(
        f"{visible(str(k))} = {visible(json.dumps(v, ensure_ascii=False))}" for k, v in question.items()
    )


# --- declaring ---------------------------------------------------------------------------------------------
KINDS = ("category", "number", "integer", "date", "flag")


def declaration(
    call: WebCall, data: Mapping[str, Any], columns: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The words of a plan without releases, from the form *Add a table*."""
    version = call.field("version").strip()
    said: dict[str, Any] = {"data": {**data, **({"version": version} if version else {})}}
    for word in ("separator", "decimal", "encoding", "dates"):
        if value := call.field(word).strip():
            said["data"][word] = value
    if missing := [w.strip() for w in call.field("missing").split(",") if w.strip()]:
        said["data"]["missing"] = missing
    unit = call.field("unit")
    if unit == "people":
        column = call.field("person") or _missing("person", "the column that tells people apart")
        said["protect"] = {
            "unit": "people", "column": column,
            "at_most": _whole("rows a person", call.field("at_most") or _missing("rows a person", "12")),
        }  # fmt: skip
    elif unit == "rows":
        said["protect"] = {"unit": "rows"}
    else:
        raise InvalidParameter(parameter="protect", value=None, must="be chosen: rows or people")
    schema: dict[str, Any] = {}
    for i, one in enumerate(columns):
        kind = call.field(f"kind:{i}")
        if kind in ("", "skip") or (unit == "people" and one["name"] == said["protect"]["column"]):
            continue
        if kind not in KINDS:
            raise InvalidParameter(
                parameter=str(one["name"]), value=kind[:20], must="be of a kind of the list"
            )
        schema[str(one["name"])] = _column(call, i, kind, str(one["name"]))
    if not schema:
        raise InvalidParameter(
            parameter="columns",
            value=None,
            must="be declared, one at least",
            hint="choose a kind for a column",
        )
    said["schema"] = schema
    said["budget"] = _budget(call)
    return said


def _column(call: WebCall, i: int, kind: str, name: str) -> dict[str, Any]:
    low, high = call.field(f"low:{i}").strip(), call.field(f"high:{i}").strip()
    if kind == "flag":
        return {"kind": "flag"}
    if kind == "category":
        keys = [k.strip() for k in re.split(r"[\n,]", call.field(f"keys:{i}")) if k.strip()]
        if not keys:
            return {"kind": "category"}
        whole = all(re.fullmatch(r"-?[0-9]{1,9}", k) for k in keys) and call.field(f"codes:{i}") == "yes"
        return {"kind": "category", "keys": [int(k) for k in keys] if whole else keys}
    if not low or not high:
        raise InvalidParameter(
            parameter=name, value=None, must="have a low and a high bound",
            hint="from what the column means, never from its values: age 0 to 120",
        )  # fmt: skip
    if kind == "date":
        return {"kind": "date", "low": _day(name, low), "high": _day(name, high)}
    read = _whole if kind == "integer" else _number
    return {"kind": kind, "low": read(f"{name}: low", low), "high": read(f"{name}: high", high)}


def _budget(call: WebCall) -> dict[str, Any]:
    kind = call.field("budget", "approximate")
    amount = call.field("epsilon") or _missing("budget", "1")
    if kind == "pure":
        return {"epsilon": _number("budget", amount)}
    if kind == "rho":
        return {"rho": _number("budget", amount)}
    if kind == "mu":
        return {"mu": _number("budget", amount)}
    delta = call.field("delta") or _missing("delta", "0.000001")
    return {"epsilon": _number("budget", amount), "delta": _number("delta", delta)}


# --- single fields -----------------------------------------------------------------------------------------
def _missing(what: str, hint: str) -> Any:
    raise InvalidParameter(parameter=what, value=None, must="be given", hint=f"for example {hint}")


def _whole(parameter: str, text: str) -> int:
    plain = text.replace(" ", "").replace("\u202f", "").replace("'", "")
    if not re.fullmatch(r"[+-]?[0-9]{1,15}", plain):
        raise InvalidParameter(parameter=parameter, value=text[:40], must="be a whole number")
    return int(plain)


def _number(parameter: str, text: str) -> int | float:
    plain = text.strip().replace(" ", "")
    if re.fullmatch(r"[+-]?[0-9]+,[0-9]+", plain):
        plain = plain.replace(",", ".")
    try:
        value = float(plain)
    except ValueError:
        raise InvalidParameter(parameter=parameter, value=text[:40], must="be a number") from None
    if not abs(value) < 1e100:
        raise InvalidParameter(parameter=parameter, value=text[:40], must="be a finite number")
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _numbers(parameter: str, text: str) -> list[int | float]:
    return [_number(parameter, part) for part in re.split(r"[;,\s]+", text.strip()) if part]


def _edges(text: str, column: Mapping[str, Any]) -> Any:
    """A number of bins, or their edges."""
    parts = [p for p in re.split(r"[;,\s]+", text) if p]
    if len(parts) == 1:
        return _whole("bins", parts[0])
    if column.get("kind") == "date":
        return [_day("bins", p) for p in parts]
    return [_number("bins", p) for p in parts]


def _day(parameter: str, text: str) -> str:
    try:
        return datetime.date.fromisoformat(text.strip()).isoformat()
    except ValueError:
        raise InvalidParameter(
            parameter=parameter, value=text[:20], must="be a day", hint="year, month, day: 2026-01-31"
        ) from None
