"""Plan files that somebody mistyped: whole plans of every kind of release, changed at random in one place or two."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

BASE: dict[str, Any] = {
    "data": {"path": "survey.parquet"},
    "protect": {"unit": "people", "column": "person_id", "at_most": 4},
    "schema": {
        "state": {"kind": "category", "keys": ["CA", "NY", "TX"]},
        "ward": {"kind": "category", "keys": [1, 2, 3]},
        "town": {"kind": "category"},
        "age": {"kind": "integer", "low": 0, "high": 99},
        "income": {"kind": "number", "low": 0, "high": 250000, "outside": "missing"},
        "insured": {"kind": "flag"},
        "day": {"kind": "date", "low": "2020-01-01", "high": "2021-12-31"},
    },
    "budget": {"epsilon": 1.0, "delta": 1e-6, "analyst": "office"},
    "ledger": {"path": "survey.ledger"},
}
TREE = {"CA": "west", "NY": "east", "TX": "west", "west": "all", "east": "all", "all": ""}
RELEASES: list[dict[str, Any]] = [
    {"kind": "count", "by": "state", "epsilon": 0.25, "consistent": True, "name": "by state"},
    {"kind": "count", "of": "people", "by": ["state", {"column": "age", "bins": [0, 18, 65]}], "rho": 0.01},
    {"kind": "count", "by": "town", "epsilon": 0.25, "delta": 1e-7},
    {"kind": "count", "where": "age < 50 and insured", "within": 50, "confidence": 0.9, "simultaneous": True},
    {"kind": "clamping_bounds", "column": "income", "epsilon": 0.25},
    {"kind": "contingency", "columns": ["state", "insured"], "mu": 0.1, "weight": 2},
    {"kind": "hierarchy", "columns": ["state", "ward"], "epsilon": 0.25},
    {"kind": "hierarchy", "columns": "state", "parents": TREE, "epsilon": 0.25},
    {"kind": "histogram", "column": "age", "bins": 10, "epsilon": 0.25},
    {"kind": "histogram", "column": "day", "bins": 12, "by": "state", "epsilon": 0.25},
    {"kind": "margins", "columns": ["state", "insured", "ward"], "order": 2, "epsilon": 0.25},
    {"kind": "mean", "column": "income", "by": "state", "epsilon": 0.25, "rows": 400, "interval": 0.9},
    {"kind": "median", "column": "age", "epsilon": 0.25, "resolution": 64},
    {"kind": "proportion", "of": "insured", "by": "state", "epsilon": 0.25, "rows": 100},
    {"kind": "quantile", "column": "income", "at": 0.5, "epsilon": 0.25},
    {"kind": "quantiles", "column": "income", "at": [0.25, 0.5], "epsilon": 0.25},
    {"kind": "ratio", "numerator": "income", "denominator": "age", "epsilon": 0.25, "target": 3.0},
    {"kind": "sparse_histogram", "columns": ["state", "ward"], "epsilon": 0.25,
     "impossible": [{"state": "CA", "ward": 2}]},
    {"kind": "standard_deviation", "column": "income", "epsilon": 0.25},
    {"kind": "sum", "column": "income", "by": "state", "epsilon": 0.25},
    {"kind": "variance", "column": "age", "where": "insured", "epsilon": 0.25, "sampling": False},
]  # fmt: skip
ODD: list[Any] = [
    1, 0, -1, 2, 3.5, 0.5, 1e-320, 1e300, -0.0, float("inf"), float("nan"), 10**30, 10**400, -(10**400),
    1 << 63, True, False, "", "x", "no", "3", "0.5", "state", "age", "\u202eabc", "\x1b[31m", "\x00", "a" * 5000,
    "=1+1", "../..", "insured", "1970-01-01", "rows", "people", "count", "spark", "mean", [], [[]], [1], ["state"],
    [1, "a"], [0.5], [True], [[1, 2], [3]], ["state", "state"], {}, {"column": "age"}, {"a": {"b": {}}},
    {"column": 1, "bins": "x"}, [{}], [{"state": "CA"}], [{"column": "age", "bins": [3, 2, 1]}],
]  # fmt: skip
NAMES = ["by", "at", "name", "rows", "kind", "epsilon", "delta", "rho", "within", "confidence", "simultaneous",
         "consistent", "sampling", "weight", "target", "interval", "columns", "column", "where", "of", "bins",
         "order", "resolution", "impossible", "parents", "groups", "neighbours", "at_most", "engine", "memory",
         "path", "low", "high", "spacing", "missing", "outside", "keys", "zz", "a b", "", "public"]  # fmt: skip


def toml(value: Any) -> str:
    """A value as TOML writes it, tables inline."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return {"inf": "inf", "-inf": "-inf", "nan": "nan"}.get(str(value), repr(value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return (
            '"'
            + "".join(c if c.isprintable() and c not in '"\\' else f"\\u{ord(c):04x}" for c in value)
            + '"'
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return "{" + ", ".join(f"{toml(k)} = {toml(v)}" for k, v in value.items()) + "}"


def text(plan: dict[str, Any]) -> str:
    """A plan as a file, one table after another."""
    return "\n".join(f"{toml(name)} = {toml(value)}" for name, value in plan.items()) + "\n"


def plans(count: int, seed: int) -> Iterator[str]:
    """Mutated plans: values replaced, words renamed, added and left out, and letters changed in the text."""
    luck = random.Random(seed)
    for number in range(count):
        plan = copy.deepcopy(BASE)
        plan["release"] = [copy.deepcopy(RELEASES[number % len(RELEASES)])]
        for word in ("mu", "rho"):
            if word in plan["release"][0]:
                plan["budget"] = {word: 0.5}
        if number % 7 == 0:
            plan["release"].append(copy.deepcopy(luck.choice(RELEASES)))
        for _ in range(luck.choice((1, 1, 1, 2))):
            _change(plan, luck)
        written = text(plan)
        yield _scratch(written, luck) if number % 5 == 0 else written


def _change(plan: dict[str, Any], luck: random.Random) -> None:
    # Releases are where most words are; the rest gets its share.
    place: Any = luck.choice(plan["release"]) if luck.random() < 0.6 and _listed(plan) else plan
    while True:
        inner = [
            v
            for v in (place.values() if isinstance(place, dict) else place)
            if isinstance(v, dict | list) and v
        ]
        if not inner or luck.random() < 0.4:
            break
        place = luck.choice(inner)
    key: Any = luck.choice(list(place) if isinstance(place, dict) else range(len(place)))
    match luck.randrange(6):
        case 0 if isinstance(place, dict):
            place[luck.choice(NAMES)] = place.pop(key)
        case 1 if isinstance(place, dict):
            place[luck.choice(NAMES)] = copy.deepcopy(luck.choice(ODD))
        case 2:
            del place[key]
        case _:
            place[key] = copy.deepcopy(luck.choice(ODD))


def _listed(plan: dict[str, Any]) -> bool:
    releases = plan.get("release")
    return isinstance(releases, list) and bool(releases) and all(isinstance(r, dict) and r for r in releases)


def _scratch(written: str, luck: random.Random) -> str:
    at = luck.randrange(len(written))
    return (
        written[:at]
        + luck.choice(["", "=", "[", "]", '"', "\n", "#", ".", "0", "-", "é", "{"])
        + written[at + 1 :]
    )
