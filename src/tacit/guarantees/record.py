"""Guarantees as plain data and back, through a closed table: nothing is imported by name."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from tacit.errors import InvalidParameter, NoLaw, UnknownName
from tacit.exact.checks import instance
from tacit.guarantees.bounds import (
    Approximate,
    Bound,
    Concentrated,
    GaussianDP,
    Pointwise,
    Profile,
    Pure,
    Renyi,
)
from tacit.guarantees.conditions import Always, BoundedAdversary, Condition, Priors, RandomData
from tacit.guarantees.guarantee import Guarantee
from tacit.guarantees.units import Coupled, GroupOf, People, Rows, Unit

VERSION = 1

_BOUNDS: dict[str, type[Bound]] = {
    c.kind: c for c in (Pure, Approximate, Pointwise, Concentrated, GaussianDP, Renyi)
}
_UNITS: dict[str, type[Unit]] = {"rows": Rows, "people": People, "group": GroupOf, "coupled": Coupled}
_CONDITIONS: dict[str, type[Condition]] = {
    "always": Always,
    "random-data": RandomData,
    "priors": Priors,
    "bounded-adversary": BoundedAdversary,
}


def to_record(guarantee: Guarantee) -> dict[str, Any]:
    """A dictionary of plain values with stable keys."""
    instance("guarantee", guarantee, Guarantee, must="be a guarantee")
    if isinstance(guarantee.bound, Profile):
        raise NoLaw(
            operation="writing a profile down as a guarantee record",
            reason="a curve is recorded by the events that made it, not by its values",
            hint="record the events, or convert to Approximate at a delta",
        )
    return {
        "version": VERSION,
        "bound": {"kind": guarantee.bound.kind, **guarantee.bound.parameters},
        "unit": _unit(guarantee.unit),
        "condition": _tagged(_CONDITIONS, guarantee.condition),
        "declared": list(guarantee.declared),
    }


def from_record(record: dict[str, Any]) -> Guarantee:
    """The guarantee that a record describes; refuses unknown kinds and other versions."""
    if not isinstance(record, dict) or record.get("version") != VERSION:
        raise InvalidParameter(
            parameter="version",
            value=record.get("version") if isinstance(record, dict) else None,
            must=f"be {VERSION}",
            hint="this record was written by another version of tacit",
        )
    parts = {"version", "bound", "unit", "condition", "declared"}
    if set(record) != parts:
        raise InvalidParameter(
            parameter="record",
            value=sorted(set(record) ^ parts),
            must="have exactly " + ", ".join(sorted(parts)),
        )
    declared = record["declared"]
    if not isinstance(declared, list) or not all(isinstance(d, str) for d in declared):
        raise InvalidParameter(
            parameter="declared", value=type(declared).__name__, must="be a list of sentences"
        )
    return Guarantee(
        bound=_made(_BOUNDS, "bound", record["bound"]),
        unit=_unit_from(record["unit"]),
        condition=_made(_CONDITIONS, "condition", record["condition"]),
        declared=tuple(declared),
    )


def _unit(unit: Unit) -> dict[str, Any]:
    data = _tagged(_UNITS, unit)
    if isinstance(unit, GroupOf):
        data["of"] = _unit(unit.of)
    return data


def _unit_from(data: dict[str, Any]) -> Unit:
    if isinstance(data, dict) and data.get("kind") == "group" and isinstance(data.get("of"), dict):
        data = {**data, "of": _unit_from(data["of"])}
    made: Unit = _made(_UNITS, "unit", data)
    return made


def _tagged(table: dict[str, Any], value: Any) -> dict[str, Any]:
    kind = next(name for name, cls in table.items() if cls is type(value))
    held = {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, People):
        # Left out where nothing is declared, as in records that were written before there was such a limit.
        held = (
            {**held, "each": list(value.each)}
            if value.each
            else {n: v for n, v in held.items() if n != "each"}
        )
    return {"kind": kind, **held}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value


def _made(table: dict[str, Any], what: str, data: Any) -> Any:
    if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
        raise InvalidParameter(parameter=what, value=type(data).__name__, must="be a table with a kind")
    if data["kind"] not in table:
        raise UnknownName(what=what, name=data["kind"], known=table)
    arguments = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items() if k != "kind"}
    try:
        return table[data["kind"]](**arguments)
    except TypeError:
        raise InvalidParameter(
            parameter=what, value=sorted(arguments), must=f"have the fields of {data['kind']!r}"
        ) from None
