"""Plans as TOML files: [data], [protect], [schema.*], [budget], [spend], [ledger], then [[release]] tables.

Every word is looked up in a closed list, and one that is not there is answered with the nearest one that is.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit import statistics
from tacit.curator.asks import Ask, ask
from tacit.curator.curator import Curator
from tacit.curator.plan import Plan, make_plan
from tacit.curator.prices import Price, price
from tacit.errors import EmptyComposition, InvalidParameter, TacitError, UnknownName
from tacit.guarantees import Bound, Unit, people, rows
from tacit.noise.source import Source
from tacit.sources.axes import bins
from tacit.sources.declared import schema_from_tables
from tacit.sources.schema import Schema

__all__ = ["KINDS", "PlanFile", "read_plan"]

KINDS: dict[str, Callable[..., Any]] = {
    "bounds": statistics.bounds,
    "contingency": statistics.contingency,
    "count": statistics.count,
    "hierarchy": statistics.hierarchy,
    "histogram": statistics.histogram,
    "margins": statistics.margins,
    "mean": statistics.mean,
    "median": statistics.median,
    "proportion": statistics.proportion,
    "quantile": statistics.quantile,
    "quantiles": statistics.quantiles,
    "ratio": statistics.ratio,
    "sparse_histogram": statistics.sparse_histogram,
    "standard_deviation": statistics.standard_deviation,
    "sum": statistics.sum,
    "variance": statistics.variance,
}
TABLES = ("budget", "data", "ledger", "protect", "release", "schema", "spend")
PAID = ("confidence", "delta", "epsilon", "mu", "rho", "simultaneous", "within")
FINISH = ("consistent", "interval", "name", "rows", "sampling", "target", "weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """What a plan file says; paths are relative to the file."""

    path: Path
    data: str
    engine: str | None
    memory: str | None
    unit: Unit
    schema: Schema
    budget: Bound
    spend: Price | None
    ledger: str | None
    analyst: str
    asks: tuple[Ask, ...]

    def plan(self) -> Plan:
        """Prices and expected errors; reads no data."""
        return make_plan(self.asks, schema=self.schema, unit=self.unit, budget=self.budget, total=self.spend)

    def curator(self, *, source: Source | None = None, ledger: str | None = None) -> Curator:
        """The curator of the file's table, budget and ledger."""
        return Curator(
            self.data, protect=self.unit, schema=self.schema, budget=self.budget, ledger=ledger or self.ledger,
            analyst=self.analyst, engine=self.engine, memory=self.memory, source=source,
        )  # fmt: skip


def read_plan(path: str | Path) -> PlanFile:
    """The plan in a TOML file."""
    path = Path(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(parameter="plan", value=str(path), must="be a readable text file") from None
    except tomllib.TOMLDecodeError as problem:
        raise InvalidParameter(
            parameter="plan", value=str(path), must=f"be well-formed TOML: {str(problem).rstrip('.').lower()}"
        ) from None
    _known("table of a plan", data, TABLES)
    for name in ("data", "protect", "schema", "budget"):
        if not isinstance(data.get(name), Mapping):
            raise InvalidParameter(parameter=f"[{name}]", value=None, must="be in the plan")
    unit, schema = _unit(data["protect"]), schema_from_tables(data["schema"])
    budget = _price("[budget]", data["budget"], analyst=True)
    bound = budget.bound()
    releases = data.get("release", [])
    if not isinstance(releases, list) or not releases:
        raise EmptyComposition(what="the list of releases", hint='add a [[release]] with kind = "count"')
    asks = tuple(_ask(i, table) for i, table in enumerate(releases, 1))
    spend = _price("[spend]", data["spend"]) if "spend" in data else budget
    _known("word in [data]", data["data"], ("engine", "memory", "path"))
    _known("word in [ledger]", data.get("ledger", {}), ("path",))
    return PlanFile(
        path=path,
        data=_beside(path, _text("[data] path", data["data"].get("path"))),
        engine=data["data"].get("engine"),
        memory=data["data"].get("memory"),
        unit=unit,
        schema=schema,
        budget=bound,
        spend=spend if any(a.price is None for a in asks) else None,
        ledger=_ledger(path, data.get("ledger", {}).get("path")),
        analyst=str(data["budget"].get("analyst", "curator")),
        asks=asks,
    )


def _known(what: str, given: Any, known: tuple[str, ...]) -> None:
    if not isinstance(given, Mapping):
        raise InvalidParameter(parameter=what, value=type(given).__name__, must="be a table")
    for word in given:
        if word not in known:
            raise UnknownName(what=what, name=str(word), known=known)


def _text(parameter: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidParameter(parameter=parameter, value=value, must="be a text")
    return value


def _beside(plan: Path, name: str) -> str:
    return name if Path(name).is_absolute() else str(plan.parent / name)


def _ledger(plan: Path, name: str | None) -> str:
    if name is None:
        return str(plan.with_suffix(".ledger"))
    return name if "://" in name else _beside(plan, _text("[ledger] path", name))


def _unit(table: Mapping[str, Any]) -> Unit:
    _known("word in [protect]", table, ("at_most", "column", "groups", "neighbours", "unit"))
    given = dict(table)
    kind = given.pop("unit", None)
    if kind == "rows":
        return rows(**_arguments("[protect]", rows, given))
    if kind == "people":
        return people(given.pop("column", ""), **_arguments("[protect]", people, given))
    raise UnknownName(what="unit in [protect]", name=str(kind), known=("people", "rows"))


def _arguments(where: str, function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    takes = tuple(inspect.signature(function).parameters)
    _known(f"word in {where}", given, takes)
    return dict(given)


def _price(where: str, table: Any, *, analyst: bool = False) -> Price:
    known = ("delta", "epsilon", "mu", "rho", *(("analyst",) if analyst else ()))
    _known(f"word in {where}", table, known)
    return price(**{k: v for k, v in table.items() if k != "analyst"})


def _ask(number: int, table: Any) -> Ask:
    where = f"release {number}"
    if not isinstance(table, Mapping) or "kind" not in table:
        raise InvalidParameter(parameter=where, value=None, must='have a kind: kind = "count"')
    kind = str(table["kind"])
    if kind not in KINDS:
        raise UnknownName(what=f"kind of {where}", name=kind, known=KINDS)
    function = KINDS[kind]
    takes = tuple(inspect.signature(function).parameters)
    _known(f"word of {where}, a {kind},", table, ("kind", *takes, *PAID, *FINISH))
    given = {k: v for k, v in table.items() if k in takes}
    for name in ("by", "columns"):
        if name in given:
            given[name] = _columns(where, given[name])
    rest = {k: v for k, v in table.items() if k not in takes and k != "kind"}
    try:
        missing = [
            n for n, p in inspect.signature(function).parameters.items() if p.default is p.empty and n not in given
        ]  # fmt: skip
        if missing:
            raise InvalidParameter(parameter=missing[0], value=None, must=f"be given for a {kind}")
        return ask(function(**given), **rest)
    except TacitError as problem:
        problem.args = (f"{where}: {problem}",)
        raise


def _columns(where: str, given: Any) -> Any:
    """Column names, or tables { column = "age", bins = [0, 18, 65] }."""
    entries = given if isinstance(given, list) else [given]
    out = []
    for entry in entries:
        if isinstance(entry, Mapping):
            _known(f"word of a column in {where}", entry, ("bins", "column"))
            out.append(bins(_text("column", entry.get("column")), entry.get("bins", 10)))
        else:
            out.append(entry)
    return out
