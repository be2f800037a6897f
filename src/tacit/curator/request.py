"""The request: what is asked, in a written canonical form. Its digest is the key of replay and of charging.

    format      3
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
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from tacit.curator.asks import Ask
from tacit.curator.given import ALWAYS, ExactGiven, Given
from tacit.curator.prices import Price
from tacit.guarantees import Guarantee, Pure, Unit
from tacit.ledger.canonical import canonical, canonical_table, sha256
from tacit.sources.opening.joining import Joined
from tacit.sources.schema import Schema

__all__ = ["FORMAT", "declared_files", "request_digest", "request_text"]

FORMAT = 3
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
"""What an ask says where nobody said anything, in format 3."""
PLAIN_READING = {"decimal": ".", "dates": "year-first"}
"""What is read where nobody says anything about it."""


def request_digest(
    asks: Sequence[Ask], *, schema: Schema, unit: Unit, total: Price | None, given: Given | None,
    reading: Mapping[str, Any],
) -> str:  # fmt: skip
    """The digest of what is asked."""
    return sha256(request_text(asks, schema=schema, unit=unit, total=total, given=given, reading=reading))


def request_text(
    asks: Sequence[Ask], *, schema: Schema, unit: Unit, total: Price | None, given: Given | None,
    reading: Mapping[str, Any],
) -> str:  # fmt: skip
    """What is asked, as canonical JSON."""
    if total is not None and len(asks) == 1 and asks[0].price is None and total.delta is None:
        # One release for the price of the whole plan is one release at its own price.
        asks, total = [replace(asks[0], price=total)], None
    if len(asks) == 1:
        # Nobody is there to share with.
        asks = [replace(asks[0], weight=Fraction(1))]
    given = None if given == ALWAYS else given
    if given is None:
        asks = [replace(a, given=None) if a.given == ALWAYS else a for a in asks]
    parts: dict[str, Any] = {
        "format": FORMAT,
        "unit": Guarantee(bound=Pure(epsilon=0.0), unit=unit).record["unit"],
        "price": _price(total),
        "given": _given(given),
        "reading": _reading(reading),
        "releases": [_ask(a) for a in asks],
    }
    said = {name: value for name, value in parts.items() if value is not None and value != {}}
    texts = {name: canonical(value, what="plan") for name, value in said.items()}
    return canonical_table({**texts, "schema": schema.text})


def _ask(a: Ask) -> dict[str, Any]:
    said: dict[str, Any] = {
        "name": a.name,
        "weight": str(a.weight),
        "confidence": str(a.confidence),
        "consistent": a.consistent,
        "rows": a.rows,
        "sampling": a.sampling,
        "public": None if a.public is None else a.public.record,
        "target": None if a.target is None else str(a.target),
        "given": _given(a.given),
        "price": _price(a.price),
    }
    return {
        "statistic": a.statistic.describe(),
        **{name: value for name, value in said.items() if value != UNSAID[name]},
    }


def _price(price: Price | None) -> dict[str, Any] | None:
    """A price or an accuracy as it was asked: exact numbers, and only those that were said."""
    if price is None:
        return None
    numbers = {n: getattr(price, n) for n in ("epsilon", "delta", "rho", "mu", "within")}
    said: dict[str, Any] = {name: str(Fraction(v)) for name, v in numbers.items() if v is not None}
    if price.within is not None:
        said |= {"confidence": str(price.confidence), "simultaneous": price.simultaneous}
    return said


def _given(given: Given | None) -> dict[str, Any] | None:
    """What is assumed, as it was asked: what was not said is left out."""
    if given is None:
        return None
    said = {**given.describe()}
    if not isinstance(given, ExactGiven):
        said["small_cells"] = given.small_cells
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
def declared_files(data: Any, base: Path | None) -> dict[str, Any]:
    """The files that were declared, table by table, relative to a folder: known without looking at a file.

    `protected` are the tables that tell of people, `public` the ones that were declared public. A table that does not
    lie in files is null. Several files of one table are a set: their order says nothing.
    """
    protected = data.private if isinstance(data, Joined) else (data,)
    public = data.open_to_all if isinstance(data, Joined) else ()
    found = {
        "protected": [_files(one, base) for one in protected],
        "public": [_files(one, base) for one in public],
    }
    return {name: tables for name, tables in found.items() if tables}


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
