"""What may stand in a certificate: every kind of event with its fields and their ranges, every bound, both relations.

A certificate may come from anybody. What has a field more or less, a number outside of its range, a number in quotation
marks, or no event at all, is refused: a formula applied to it would say nothing about a release. Kinds and versions
that are not listed here are merely not known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from tacit.audit.curves import Unconfirmed

__all__ = ["Malformed", "checked_bound", "checked_events", "checked_given", "checked_relation"]

DEEPEST = 40
VERSION = 1
WHOLE = Fraction(1, 10**9)
"""By how much stated probabilities may miss their sum."""

Range = Callable[[Any], bool]


class Malformed(Exception):
    """What is stated is nothing that a release could have been given."""


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _positive(value: Any) -> bool:
    return _number(value) and value > 0


def _at_least_zero(value: Any) -> bool:
    return _number(value) and value >= 0


def _share(value: Any) -> bool:
    return _number(value) and 0 <= value <= 1


def _below_one(value: Any) -> bool:
    return _number(value) and 0 <= value < 1


def _count(least: int) -> Range:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _shares(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(map(_share, value))


def _law(value: Any) -> bool:
    return _shares(value) and abs(sum(map(Fraction, value), Fraction(0)) - 1) <= WHOLE


_EPSILON: dict[str, Range] = {"epsilon": _positive}
_FIELDS: dict[str, dict[str, Range]] = {
    "approximate": {"epsilon": _at_least_zero, "delta": _below_one},
    "balanced_response": {
        "epsilon": _positive,
        "outcomes": _count(2),
        "supporting": _count(1),
        "shared": _count(0),
    },
    "concentrated": {"rho": _positive},
    "discrete_gaussian": {"noise_multiplier": _positive, "sensitivity": _count(1)},
    "discrete_gaussian_vector": {
        "noise_std": _positive,
        "squared_sensitivity": _count(1),
        "coordinates": _count(1),
    },
    "discrete_laplace": {"epsilon": _positive, "sensitivity": _count(1)},
    "exponential": _EPSILON,
    "gaussian": {"noise_multiplier": _positive},
    "laplace": _EPSILON,
    "permute_and_flip": _EPSILON,
    "pure": _EPSILON,
    "randomized_response": {"epsilon": _positive, "categories": _count(2)},
    "skellam": {"noise_variance": _positive, "sensitivity": _count(1)},
    "staircase": {"epsilon": _positive, "gamma": _share},
    "tabulated": {"p": _law, "q": _law},
    "poisson_sampled": {"sampling_rate": _share},
    "shuffled": {"people": _count(1)},
    "without_replacement": {"sampling_rate": _share},
    "mixed": {"weights": _shares},
    "repeated": {"times": _count(1)},
    "composed": {},
}
_ONE_INSIDE = ("poisson_sampled", "shuffled", "without_replacement", "repeated")
_SEVERAL_INSIDE = ("mixed", "composed")


def checked_events(records: Any) -> list[Mapping[str, Any]]:
    """The events of a certificate, each of a known form through and through."""
    if not isinstance(records, list | tuple):
        raise Malformed("its events are no list")
    found = []
    for record in records:
        if not isinstance(record, Mapping) or set(record) - {"given"} != {"version", "event"}:
            raise Malformed("an event has another form than version and event")
        if record["version"] != VERSION or isinstance(record["version"], bool):
            raise Unconfirmed("an event is of another version")
        _check(record["event"], 0)
        found.append(record["event"])
    return found


def _check(event: Any, depth: int) -> None:
    if depth > DEEPEST:
        raise Malformed("its events are nested too deep")
    kind = event.get("kind") if isinstance(event, Mapping) else None
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise Unconfirmed(f"no formula for an event of kind {kind!r}")
    inside = {"event"} if kind in _ONE_INSIDE else {"events"} if kind in _SEVERAL_INSIDE else set()
    if set(event) != {"kind", *_FIELDS[kind], *inside}:
        raise Malformed(f"an event of kind {kind!r} has other fields than its own")
    for name, within in _FIELDS[kind].items():
        if not within(event[name]):
            raise Malformed(f"{name} of an event of kind {kind!r} lies outside of its range")
    members: Sequence[Any] = [event["event"]] if "event" in inside else event.get("events", [])
    if inside and (not isinstance(members, list | tuple) or not members):
        raise Malformed(f"an event of kind {kind!r} holds no events")
    if kind == "tabulated" and len(event["p"]) != len(event["q"]):
        raise Malformed("a table has two laws of different length")
    if kind == "balanced_response":
        outcomes, supporting, shared = (event[name] for name in ("outcomes", "supporting", "shared"))
        if not (shared < supporting and 2 * supporting - shared <= outcomes):
            raise Malformed("no sets of outcomes have these sizes")
    if kind == "mixed" and not _mixture(event["weights"], members):
        raise Malformed("a mixture needs one weight an event, with a sum in (0, 1]")
    for member in members:
        _check(member, depth + 1)


def _mixture(weights: Sequence[Any], members: Sequence[Any]) -> bool:
    whole = sum(map(Fraction, weights), Fraction(0))
    return len(weights) == len(members) and 0 < whole <= 1 + WHOLE


_BOUNDS: dict[str, dict[str, Range]] = {
    "pure": {"epsilon": _at_least_zero},
    "approximate": {"epsilon": _at_least_zero, "delta": _below_one},
    "concentrated": {"rho": _at_least_zero},
    "gaussian": {"mu": _at_least_zero},
}
_CONDITIONS: dict[str, dict[str, Range]] = {
    "always": {},
    "bounded-adversary": {
        "assumption": _text,
        "advantage": _share,
        "definition": ("ind", "sim").__contains__,
    },
    "random-data": {"gamma": _share},
}


def checked_bound(guarantee: Mapping[str, Any]) -> Mapping[str, Any]:
    """The stated bound, of a known kind and condition, with numbers that are numbers."""
    bound, condition = guarantee["bound"], guarantee["condition"]
    version = guarantee.get("version", VERSION)
    if version != VERSION or isinstance(version, bool):
        raise Unconfirmed("it is of another version")
    fields = _CONDITIONS.get(condition["kind"]) if isinstance(condition["kind"], str) else None
    if fields is None:
        raise Unconfirmed("it holds under a condition that is not known here")
    if set(condition) != {"kind", *fields} or not all(within(condition[n]) for n, within in fields.items()):
        raise Malformed("its condition has other fields than its own, or numbers outside of their range")
    kind = bound["kind"]
    if kind == "renyi":
        orders, epsilons = bound["orders"], bound["epsilons"]
        above = isinstance(orders, list | tuple) and all(
            o == math.inf or (_number(o) and o > 1) for o in orders
        )
        if not above or not orders or len(orders) != len(epsilons) or not all(map(_at_least_zero, epsilons)):
            raise Malformed("its orders and divergences are no such numbers")
    elif kind not in _BOUNDS:
        raise Unconfirmed(f"no formula for a bound of kind {kind!r}")
    elif set(bound) != {"kind", *_BOUNDS[kind]} or not all(w(bound[n]) for n, w in _BOUNDS[kind].items()):
        raise Malformed("its numbers lie outside of their range")
    checked: Mapping[str, Any] = bound
    return checked


def checked_given(records: Sequence[Mapping[str, Any]], condition: Mapping[str, Any]) -> Fraction:
    """The gamma that events are given, the largest; refused where the guarantee has not the condition of its events."""
    found = Fraction(0)
    for record in records:
        if "given" not in record:
            continue
        given = record["given"]
        if not isinstance(given, Mapping) or set(given) != {"random_data"}:
            raise Malformed("an event is given something else than random data")
        text = given["random_data"]
        if not isinstance(text, str) or not re.fullmatch(r"[0-9]{1,40}(/[0-9]{1,40})?", text):
            raise Malformed("what an event is given is no probability")
        above, _, below = text.partition("/")
        if int(above) > int(below or 1) or (below and not int(below)):
            raise Malformed("what an event is given is no probability")
        found = max(found, Fraction(text))
    if found and (condition["kind"] != "random-data" or found > Fraction(condition["gamma"]) * (1 + WHOLE)):
        raise Malformed("an event holds under a condition that the guarantee does not state")
    return found


def checked_relation(guarantee: Mapping[str, Any], neighbours: Any) -> str:
    """The neighbour relation, which the certificate and its unit state alike."""
    if neighbours not in ("add-or-remove", "replace-one"):
        raise Malformed("its neighbour relation is not known here")
    unit = guarantee.get("unit")
    while isinstance(unit, Mapping):
        if unit.get("neighbours", neighbours) != neighbours:
            raise Malformed("its unit has another neighbour relation than its events")
        unit = unit.get("of")
    return str(neighbours)
