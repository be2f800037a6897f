"""Events as JSON and back: a closed, versioned table. Unknown kinds are refused, nothing is imported by name."""

from __future__ import annotations

import json
from typing import Any

from tacit.accounting import events as known
from tacit.accounting.events import Event
from tacit.accounting.events.base import DEEPEST
from tacit.errors import InvalidParameter, UnknownName
from tacit.guarantees.arguments import instance

__all__ = ["VERSION", "dumps", "from_record", "loads", "to_record"]

VERSION = 1

_KINDS: dict[str, type[Event]] = {
    cls.kind: cls
    for cls in (
        known.ApproximateEvent,
        known.BalancedResponseEvent,
        known.ComposedEvent,
        known.ConcentratedEvent,
        known.DiscreteGaussianEvent,
        known.DiscreteGaussianVectorEvent,
        known.DiscreteLaplaceEvent,
        known.ExponentialEvent,
        known.GaussianEvent,
        known.LaplaceEvent,
        known.MixedEvent,
        known.PermuteAndFlipEvent,
        known.PoissonSampledEvent,
        known.PureEvent,
        known.RandomizedResponseEvent,
        known.RepeatedEvent,
        known.ShuffledEvent,
        known.SkellamEvent,
        known.StaircaseEvent,
        known.TabulatedEvent,
        known.SampledWithoutReplacementEvent,
    )
}


def to_record(event: Event) -> dict[str, Any]:
    """The event as plain data, with the version of this table."""
    instance("event", event, Event, must="be an event")
    return {"version": VERSION, "event": _plain(event)}


def from_record(record: Any) -> Event:
    """The event that a record describes."""
    if not isinstance(record, dict) or set(record) != {"version", "event"}:
        raise InvalidParameter(
            parameter="record",
            value=sorted(record) if isinstance(record, dict) else type(record).__name__,
            must="be an object with version and event",
        )
    if record["version"] != VERSION or isinstance(record["version"], bool):
        raise InvalidParameter(
            parameter="version",
            value=record["version"],
            must=f"be {VERSION}",
            hint="this record was written by another version of tacit; read it with that version",
        )
    return _event(record["event"], 0)


def dumps(event: Event) -> str:
    """The record as one line of JSON, keys sorted."""
    return json.dumps(to_record(event), sort_keys=True, separators=(",", ":"), allow_nan=False)


def loads(text: str | bytes) -> Event:
    """The event from its JSON; broken text is one clear error."""
    try:
        record = json.loads(text, parse_constant=_no_constant)
    except (TypeError, ValueError, RecursionError):
        raise InvalidParameter(
            parameter="record", value="text", must="be JSON", hint="the record is broken"
        ) from None
    return from_record(record)


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _plain(value: Any) -> Any:
    if isinstance(value, Event):
        return {"kind": value.kind, **{k: _plain(v) for k, v in value.parameters.items()}}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value


def _event(data: Any, depth: int) -> Event:
    if depth > DEEPEST + 1:  # the simple event inside, sampled or not
        raise InvalidParameter(parameter="record", value=depth, must=f"be nested at most {DEEPEST} deep")
    if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
        raise InvalidParameter(parameter="event", value=type(data).__name__, must="be an object with a kind")
    kind = data["kind"]
    if kind not in _KINDS:
        raise UnknownName(what="kind of event", name=kind, known=_KINDS)
    arguments: dict[str, Any] = {}
    for name, value in data.items():
        if name == "kind":
            continue
        if isinstance(value, dict):
            arguments[name] = _event(value, depth + 1)
        elif isinstance(value, list):
            arguments[name] = tuple(_event(v, depth + 1) if isinstance(v, dict) else v for v in value)
        else:
            arguments[name] = value
    try:
        return _KINDS[kind](**arguments)
    except TypeError:
        raise InvalidParameter(
            parameter="event", value=sorted(arguments), must=f"have the fields of {kind!r}"
        ) from None
