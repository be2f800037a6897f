"""The request: what is asked, in a written canonical form. Its digest is the key of replay and of charging.

    format      4
    unit        who is protected: every field
    schema      every declared column
    price       what the whole plan offers: exact numbers as fractions
    given       what the whole plan assumes
    reading     how the files are to be read, where something is declared about that
    releases    for each: the statistic, and what was said beside it (name, price, weight, interval, ...)

Beside the digest the ledger's key has the declared table and version, and the declared set of files. Files are named
relative to the ledger's folder: a folder that is moved with its ledger asks the same question, and so does every
plan or program that names the same files. Who asks is stored with the charge and is no part of the key.

Nothing here depends on a mechanism that was chosen, on a sentence, or on a number that was computed. What is left at
the value that it had when this form was written (`UNSAID`) is left out. A field that is added later must be left out
where nobody said it; a change in meaning needs a new format.

One question has one text, however it is spelled: 1, 1.0 and Fraction(1) are one number, `age > 5.0` is `age > 5`, and
what a plan of one release offers and assumes is what that release does. Nothing is computed for it: `not (a > 5)` is
another text than `a <= 5`. Format 3 wrote numbers and filters as they were typed. It is frozen below, and is looked up
second (`earlier_digests`), so that what was answered under it stays free.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tacit.coupled.noiseless.reading import call_parts
from tacit.coupled.noiseless.row_laws import as_typed
from tacit.curator.asks import Ask
from tacit.curator.given import ALWAYS, ExactGiven, Given
from tacit.curator.prices import Price
from tacit.errors import TacitError
from tacit.guarantees import Guarantee, Pure, Unit
from tacit.ledger.canonical import canonical, canonical_table, sha256
from tacit.sources.axes import Binned
from tacit.sources.checks import day
from tacit.sources.expressions import Expression, normal
from tacit.sources.opening.joining import Joined
from tacit.sources.schema import Date, Schema
from tacit.statistics import Statistic

__all__ = ["FORMAT", "declared_files", "earlier_digests", "nameless", "request_digest", "request_text"]

FORMAT = 4
UNSAID: dict[str, Any] = {
    "name": "",
    "weight": "1",
    "confidence": "19/20",
    "consistent": False,
    "rows": None,
    "sampling": False,
    "public": None,
    "target": None,
    "given": None,
    "price": None,
}
"""What an ask says where nobody said anything, in formats 3 and 4."""
PLAIN_READING = {"decimal": ".", "dates": "year-first"}
"""What is read where nobody says anything about it."""


def request_digest(
    asks: Sequence[Ask], *, schema: Schema, unit: Unit, total: Price | None, given: Given | None,
    reading: Mapping[str, Any],
) -> str:  # fmt: skip
    """The digest of what is asked."""
    return sha256(request_text(asks, schema=schema, unit=unit, total=total, given=given, reading=reading))


def earlier_digests(
    asks: Sequence[Ask], *, schema: Schema, unit: Unit, total: Price | None, given: Given | None,
    reading: Mapping[str, Any],
) -> tuple[str, ...]:  # fmt: skip
    """What earlier formats with a set of files called the same spelling of the question."""
    text = request_text(asks, schema=schema, unit=unit, total=total, given=given, reading=reading, form=3)
    return (sha256(text),)


def request_text(
    asks: Sequence[Ask], *, schema: Schema, unit: Unit, total: Price | None, given: Given | None,
    reading: Mapping[str, Any], form: int = FORMAT,
) -> str:  # fmt: skip
    """What is asked, as canonical JSON; `form` 3 is that of earlier records."""
    typed = form == 3
    if total is not None and len(asks) == 1 and asks[0].price is None and not (typed and total.delta):
        # One release for the price of the whole plan is one release at its own price.
        asks, total = [replace(asks[0], price=total)], None
    if len(asks) == 1:
        # Nobody is there to share with.
        asks = [replace(asks[0], weight=Fraction(1))]
    given = None if given == ALWAYS else given
    if len(asks) == 1 and given is not None and asks[0].given is None and not typed:
        asks, given = [replace(asks[0], given=given)], None
    if given is None:
        asks = [replace(a, given=None) if a.given == ALWAYS else a for a in asks]
    parts: dict[str, Any] = {
        "format": form,
        "unit": Guarantee(bound=Pure(epsilon=0.0), unit=unit).record["unit"],
        "price": _price(total),
        "given": _given(given, typed),
        "reading": _reading(reading),
        "releases": [_ask(a, schema, typed) for a in asks],
    }
    said = {name: value for name, value in parts.items() if value is not None and value != {}}
    texts = {name: canonical(value, what="plan") for name, value in said.items()}
    return canonical_table({**texts, "schema": schema.text if typed else _schema(schema)})


def _ask(a: Ask, schema: Schema, typed: bool) -> dict[str, Any]:
    said: dict[str, Any] = {
        "name": a.name,
        "weight": str(a.weight),
        "confidence": str(a.confidence),
        "consistent": a.consistent,
        "rows": a.rows,
        "sampling": a.sampling,
        "public": None if a.public is None else a.public.record,
        "target": None if a.target is None else str(a.target),
        "given": _given(a.given, typed),
        "price": _price(a.price),
    }
    return {
        "statistic": a.statistic.describe() if typed else _statistic(a.statistic, schema),
        **{name: value for name, value in said.items() if value != UNSAID[name]},
    }


# --- one spelling -----------------------------------------------------------------------------------------------
def _statistic(statistic: Statistic, schema: Schema) -> dict[str, Any]:
    """The fields that the statistic tells of itself, with one spelling of every number, day and filter."""
    said, own = statistic.describe(), {f.name for f in fields(statistic)}
    return {
        name: _entries(getattr(statistic, name), schema) if name in own else value
        for name, value in said.items()
    }


def _entries(value: Any, schema: Schema) -> Any:
    if isinstance(value, Expression):
        return str(normal(value, schema))
    if isinstance(value, Binned):
        return {"column": value.column, "edges": _edges(value, schema)}
    if isinstance(value, tuple | list):
        kinds = set(map(type, value))
        if kinds <= {tuple, list} and all(PLAIN.issuperset(map(type, v)) for v in value):
            return list(map(list, value))
        return list(value) if kinds <= PLAIN else [_entries(v, schema) for v in value]
    return _one(value)


PLAIN = frozenset({str, int, bool, type(None)})


def _edges(value: Binned, schema: Schema) -> Any:
    """Edges of bins, as the axis reads them: days, or doubles."""
    if isinstance(value.edges, int):
        return value.edges
    if isinstance(schema[value.column], Date):
        return [day("edges", e).isoformat() for e in value.edges]
    return [_one(float(e)) if isinstance(e, int | float | Fraction) else _one(e) for e in value.edges]


def _one(value: Any) -> Any:
    """A plain value; a number as what it is exactly, whichever type it has: whole, or a fraction."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, datetime.datetime):
        return value.date().isoformat()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int | float | Fraction | Decimal):
        exact = Fraction(value)
        return int(exact) if exact.denominator == 1 else {"fraction": str(exact)}
    return str(value)


def _typed(text: str) -> str:
    """A number that was typed as text, in one spelling; what is none stays as it is."""
    try:
        return str(as_typed("given", text))
    except TacitError:
        return text


def _law(text: str) -> Any:
    """The law of a row: its name, its numbers, and what has a name."""
    try:
        kind, numbers, named = call_parts("rows", text, "")
    except TacitError:
        return text
    spelled = {
        n: [_typed(w) for w in v] if isinstance(v, tuple) else _typed(str(v)) for n, v in named.items()
    }
    return [kind, [_typed(number) for number in numbers], spelled]


def _schema(schema: Schema) -> str:
    """The declarations; their numbers have one spelling from birth, but for a zero with a sign."""
    if '"-0.0"' not in schema.text:
        return schema.text
    plain = {name: {k: _unsigned(v) for k, v in said.items()} for name, said in schema.describe().items()}
    return canonical(plain, what="schema")


def _unsigned(value: Any) -> Any:
    return str(value + 0.0) if isinstance(value, float) else value


def _price(price: Price | None) -> dict[str, Any] | None:
    """A price or an accuracy as it was asked: exact numbers, and only those that were said."""
    if price is None:
        return None
    numbers = {n: getattr(price, n) for n in ("epsilon", "delta", "rho", "mu", "within")}
    said: dict[str, Any] = {name: str(Fraction(v)) for name, v in numbers.items() if v is not None}
    if price.within is not None:
        said |= {"confidence": str(price.confidence), "simultaneous": price.simultaneous}
    return said


def _given(given: Given | None, typed: bool) -> dict[str, Any] | None:
    """What is assumed, as it was asked: what was not said is left out."""
    if given is None:
        return None
    said: dict[str, Any] = {**given.describe()}
    if not isinstance(given, ExactGiven):
        said["small_cells"] = given.small_cells
    elif not typed:
        for name in ("probability", "rectangle"):
            if said.get(name) is not None:
                said[name] = [_typed(text) for text in said[name]]
        if said.get("rate") is not None:
            said["rate"] = _typed(said["rate"])
        if isinstance(said.get("rows"), str):
            said["rows"] = _law(said["rows"])
        if "size_epsilon" in said:
            said["size_epsilon"] = _one(said["size_epsilon"])
    return {name: value for name, value in said.items() if value is not None}


def _reading(reading: Mapping[str, Any]) -> dict[str, Any]:
    """How files are read: what stands for itself is left out, and lists whose order says nothing are sorted."""
    said = {name: value for name, value in reading.items() if PLAIN_READING.get(name) != value}
    said |= {name: sorted(said[name]) for name in ("missing", "partitions") if name in said}
    if "joins" in said:
        said["joins"] = [
            {
                **step,
                "table": ", ".join(sorted(step["table"].split(", "))),
                **({"reading": _reading(step["reading"])} if "reading" in step else {}),
            }
            for step in said["joins"]
        ]
    return said


# --- the declared set of files ----------------------------------------------------------------------------------
def declared_files(data: Any, base: Path | None, public: Sequence[str] = ()) -> dict[str, Any]:
    """The files that were declared, table by table, relative to a folder: known without looking at a file.

    `protected` are the tables that tell of people, `public` the ones that were declared public. A table that does not
    lie in files is null; a public one is named by a digest of its content (`Facts.public`), since it has no name by
    which another one could be told from it. Several files of one table are a set: their order says nothing.
    """
    protected = data.private if isinstance(data, Joined) else (data,)
    shared = data.open_to_all if isinstance(data, Joined) else ()
    contents = tuple(public) or ("",) * len(shared)
    found = {
        "protected": [_files(one, base) for one in protected],
        "public": [
            [{"content": content}] if content else _files(one, base)
            for one, content in zip(shared, contents, strict=True)
        ],
    }
    return {name: tables for name, tables in found.items() if tables}


def nameless(data: Any) -> bool:
    """Is a public table in it that lies in no file? Then what is asked is known only when it is opened."""
    return isinstance(data, Joined) and any(_files(one, None) is None for one in data.open_to_all)


def _files(data: Any, base: Path | None) -> list[Any] | None:
    if not isinstance(data, str | os.PathLike):
        return None
    if getattr(data, "pattern", False):
        return [{"pattern": _placed(os.fspath(data), base)}]
    names = getattr(data, "paths", (os.fspath(data),))
    return sorted({_placed(name, base) for name in names})


def _placed(name: str, base: Path | None) -> str:
    """A path relative to a folder. Links among the folders are followed; the file's own name is as declared."""
    path = os.path.expanduser(name)
    if base is not None:
        folder, file = os.path.split(os.path.abspath(path))
        path = os.path.relpath(os.path.join(os.path.realpath(folder), file), os.path.realpath(base))
    text = Path(os.path.normpath(path)).as_posix()
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
