"""A question to the checker as a file, TOML or JSON: priors, a mechanism, the protected pairs, and the claim.

Every value of a row, every output and every auxiliary is its text: 0 and "0" are the same. Probabilities are whole
numbers, decimals (with their exact decimal value) or texts such as "1/3". docs/coupled.md has the list of keys.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any

from tacit.coupled.definitions import (
    CoupledWorlds,
    Definition,
    Distributional,
    InferenceCoupledWorlds,
    InferenceDistributional,
    InferencePufferfish,
    Noiseless,
    Pufferfish,
    SimulationDP,
)
from tacit.coupled.mechanisms import FiniteMechanism, Simulator, filling_in
from tacit.coupled.numbers import Level, as_probability
from tacit.coupled.pairs import (
    Pair,
    Secret,
    participation_secret,
    person_rows,
    private_column,
    row_pairs,
    student_of_school,
    value_secret,
)
from tacit.coupled.priors import (
    Prior,
    iid_rows,
    independent_rows,
    known_rows,
    point_priors,
    sampled_rows,
    with_auxiliary,
)
from tacit.coupled.verdict import Verdict
from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.checks import refuse_if
from tacit.exact.data_classes import dataclass

__all__ = ["Question", "read_question"]

FUNCTIONS = {
    "count": lambda x: str(sum(v == "1" for v in x)),
    "majority": lambda x: str(int(2 * sum(v == "1" for v in x) > sum(v is not None for v in x))),
    "parity": lambda x: str(sum(v == "1" for v in x) % 2),
}
"""Of rows that are 0 or 1."""

_PRIOR = ("name", "outcomes", "rows", "iid", "n", "points", "population", "size", "tells", "unknown")
_WITH_PAIRS: dict[str, type[CoupledWorlds]] = {
    "coupled-worlds": CoupledWorlds,
    "inference-coupled-worlds": InferenceCoupledWorlds,
    "distributional": Distributional,
    "inference-distributional": InferenceDistributional,
    "noiseless": Noiseless,
}
_WITH_SECRETS: dict[str, type[Pufferfish]] = {
    "pufferfish": Pufferfish,
    "inference-pufferfish": InferencePufferfish,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A mechanism, the definitions it is checked by, the claim, and the simulator if one was given."""

    mechanism: FiniteMechanism
    definitions: tuple[Definition, ...]
    epsilon: Level
    delta: Fraction
    simulator: Simulator | None

    def answer(self) -> list[Verdict]:
        """One verdict a definition, in the file's order."""
        return [
            d.check(
                self.mechanism,
                epsilon=self.epsilon,
                delta=self.delta,
                simulator=None if isinstance(d, Noiseless | Pufferfish) else self.simulator,
            )
            for d in self.definitions
        ]


def read_question(path: Path) -> Question:
    """The question in a file; an unknown key is refused by name."""
    told = _table("file", _parsed(path))
    _only(
        "file",
        told,
        ("epsilon", "delta", "definitions", "prior", "mechanism", "protect", "secret", "simulator"),
    )
    priors = tuple(p for entry in _list("prior", told.get("prior")) for p in _priors(_table("prior", entry)))
    mechanism = _mechanism(_table("mechanism", told.get("mechanism")), priors)
    pairs = _pairs(_table("protect", told.get("protect", {"kind": "rows"})), priors)
    secrets = tuple(_secret(_table("secret", s)) for s in _list("secret", told.get("secret", [])))
    named = [_text(d) for d in _list("definitions", told.get("definitions", _default(told, secrets)))]
    if not named:
        raise InvalidParameter(
            parameter="definitions", value="none", must="name at least one", hint="or be left out"
        )
    definitions: list[Definition] = []
    for name in named:
        if name in _WITH_PAIRS:
            definitions.append(_WITH_PAIRS[name](priors=priors, pairs=pairs))
        elif name == "simulation":
            definitions.append(_simulation(_list("prior", told["prior"])))
        elif name in _WITH_SECRETS:
            definitions.append(_WITH_SECRETS[name](priors=priors, secrets=secrets))
        else:
            raise UnknownName(
                what="definition", name=name, known=("simulation", *_WITH_PAIRS, *_WITH_SECRETS)
            )
    return Question(
        mechanism=mechanism,
        definitions=tuple(definitions),
        epsilon=Level.of(_number("epsilon", told.get("epsilon"))),
        delta=as_probability("delta", _number("delta", told.get("delta", 0))),
        simulator=_simulator(told.get("simulator"), mechanism),
    )


def _simulation(entries: list[Any]) -> SimulationDP:
    if len(entries) != 1 or "points" not in entries[0]:
        raise InvalidParameter(
            parameter="definitions",
            value="simulation",
            must="go with one prior that has points: all data sets",
        )
    values = tuple(_text(v) for v in _list("points", entries[0]["points"]))
    return SimulationDP(values=values, rows=_count("n", entries[0].get("n")))


def _default(told: Mapping[str, Any], secrets: tuple[Secret, ...]) -> list[str]:
    rows = _table("protect", told.get("protect", {"kind": "rows"})).get("kind") == "rows"
    names = (
        ["distributional", "inference-distributional"]
        if rows
        else ["coupled-worlds", "inference-coupled-worlds"]
    )
    if rows and any(isinstance(p, dict) and "points" in p for p in _list("prior", told["prior"])):
        # Of point priors the inference-based forms say nothing: their posteriors are certain before the release.
        return ["simulation"] if len(told["prior"]) == 1 else ["distributional"]
    return [*names, "noiseless", *(_WITH_SECRETS if secrets else ())]


def _parsed(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(
            parameter="file", value=str(path), must="be a text file that can be read"
        ) from None
    try:
        if path.suffix == ".json":
            return json.loads(text, parse_float=Decimal)
        return tomllib.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError, InvalidOperation):
        raise InvalidParameter(
            parameter="file", value=str(path), must="be valid TOML, or JSON if it ends in .json"
        ) from None


def _priors(entry: Mapping[str, Any]) -> tuple[Prior, ...]:
    _only("prior", entry, _PRIOR)
    name = _text(entry.get("name", "the prior"))
    forms = [k for k in ("outcomes", "rows", "iid", "points", "population") if k in entry]
    refuse_if(
        len(forms) != 1, "prior", forms, "have exactly one of outcomes, rows, iid, points and population"
    )
    match forms[0]:
        case "points":
            return point_priors(
                [_text(v) for v in _list("points", entry["points"])], rows=_count("n", entry.get("n"))
            )
        case "outcomes":
            prior = _outcomes(entry["outcomes"], name)
        case "rows":
            prior = independent_rows([_law("rows", r) for r in _list("rows", entry["rows"])], name=name)
        case "iid":
            prior = iid_rows(_law("iid", entry["iid"]), rows=_count("n", entry.get("n")), name=name)
        case _:
            size = {_count("size", k): w for k, w in _law("size", entry.get("size")).items()}
            members = [_text(v) for v in _list("population", entry["population"])]
            prior = sampled_rows(members, size=size, name=name)
    if "tells" in entry:
        prior = with_auxiliary(prior, _function(entry["tells"]), name=name)
    if "unknown" in entry:
        return known_rows(prior, unknown=_count("unknown", entry["unknown"]))
    return (prior,)


def _outcomes(entries: Any, name: str) -> Prior:
    weights: dict[tuple[Any, Any], Fraction] = {}
    for entry in _list("outcomes", entries):
        told = _table("outcomes", entry)
        _only("outcomes", told, ("data", "auxiliary", "probability"))
        z = told.get("auxiliary")
        key = (_data(told.get("data")), None if z is None else _text(z))
        weights[key] = weights.get(key, Fraction(0)) + as_probability(
            "probability", _number("probability", told.get("probability"))
        )
    return Prior(name=name, weights=weights)


def _mechanism(told: Mapping[str, Any], priors: tuple[Prior, ...]) -> FiniteMechanism:
    _only("mechanism", told, ("function", "table", "flip"))
    if ("function" in told) == ("table" in told):
        raise InvalidParameter(
            parameter="mechanism", value=sorted(told), must="have either a function or a table"
        )
    if "function" in told:
        mechanism = FiniteMechanism.of(_function(told["function"]), priors, name=_text(told["function"]))
    else:
        table: dict[Any, Any] = {}
        for entry in _list("table", told["table"]):
            row = _table("table", entry)
            _only("table", row, ("data", "outputs"))
            key = _data(row.get("data"))
            refuse_if(key in table, "table", "a data set twice", "name each data set once")
            table[key] = _law("outputs", row.get("outputs"))
        mechanism = FiniteMechanism(name="the table", table=table)
    if "flip" not in told:
        return mechanism
    chance = as_probability("flip", _number("flip", told["flip"]))
    outputs = mechanism.outputs
    refuse_if(len(outputs) != 2, "flip", len(outputs), "go with a mechanism of two outputs")
    other = {outputs[0]: outputs[1], outputs[1]: outputs[0]}
    return mechanism.then(
        lambda t: {t: 1 - chance, other[t]: chance}, name=f"{mechanism.name}, flipped at random"
    )


def _pairs(told: Mapping[str, Any], priors: tuple[Prior, ...]) -> tuple[Pair, ...]:
    _only("protect", told, ("kind", "groups", "column"))
    size = len(next(iter(priors[0].data))) if priors else 0
    groups = [
        [_count("groups", i) for i in _list("groups", g)] for g in _list("groups", told.get("groups", []))
    ]
    match _text(told.get("kind", "rows")):
        case "rows":
            return row_pairs(size)
        case "people":
            return tuple(person_rows(g) for g in groups)
        case "schools":
            return tuple(student_of_school(i, g) for g in groups for i in g)
        case "column":
            return tuple(private_column(i, _count("column", told.get("column"))) for i in range(size))
        case other:
            raise UnknownName(
                what="kind of protection", name=other, known=("rows", "people", "schools", "column")
            )


def _secret(told: Mapping[str, Any]) -> Secret:
    _only("secret", told, ("row", "first", "second", "participation"))
    if "participation" in told:
        return participation_secret(_count("participation", told["participation"]))
    return value_secret(_count("row", told.get("row")), _text(told.get("first")), _text(told.get("second")))


def _simulator(entry: Any, mechanism: FiniteMechanism) -> Simulator | None:
    if entry is None:
        return None
    told = _table("simulator", entry)
    _only("simulator", told, ("constant", "fill", "table"))
    if len(told) != 1:
        raise InvalidParameter(
            parameter="simulator", value=sorted(told), must="have one of constant, fill and table"
        )
    if "constant" in told:
        return Simulator.constant(_law("constant", told["constant"]))
    if "fill" in told:
        return filling_in(mechanism, _text(told["fill"]))
    table: dict[Any, Any] = {}
    for entry_ in _list("table", told["table"]):
        row = _table("table", entry_)
        _only("table", row, ("pair", "data", "outputs"))
        data = _data(row.get("data"))
        table[(_text(row["pair"]), data) if "pair" in row else data] = _law("outputs", row.get("outputs"))
    return Simulator.of_table(table)


def _function(name: Any) -> Any:
    told = _text(name)
    if told not in FUNCTIONS:
        raise UnknownName(what="function", name=told, known=FUNCTIONS)
    return FUNCTIONS[told]


def _only(what: str, told: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in told:
        if key not in known:
            raise UnknownName(what=f"key of {what}", name=key, known=known)


def _table(what: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidParameter(
            parameter=what, value=type(value).__name__, must="be a table of keys and values"
        )
    return value


def _list(what: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidParameter(parameter=what, value=type(value).__name__, must="be a list")
    return value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | Decimal):
        return str(value)
    raise InvalidParameter(parameter="value", value=type(value).__name__, must="be a text or a number")


def _data(value: Any) -> tuple[Any, ...]:
    """Rows; a row of several columns is itself a list, and null or "none" means no person."""
    rows = []
    for v in _list("data", value):
        rows.append(tuple(_text(c) for c in v) if isinstance(v, list) else None if v is None else _text(v))
    return tuple(rows)


def _number(what: str, value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value) if value.is_finite() else float("nan")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidParameter(parameter=what, value=type(value).__name__, must="be a number or a text")
    return value


def _count(what: str, value: Any) -> int:
    text = _text(value) if value is not None else ""
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InvalidParameter(parameter=what, value=text, must="be a whole number of at least 0")
    return int(text)


def _law(what: str, value: Any) -> dict[Any, Any]:
    return {key: as_probability(what, _number(what, p)) for key, p in _table(what, value).items()}
