"""Plans as TOML files: [data], [protect], [schema.*], [budget], [spend], [ledger], [report], then [[release]] tables.

Every word is looked up in a closed list, and one that is not there is answered with the nearest one that is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit import statistics
from tacit.curator import functions
from tacit.curator.asks import Ask, ask
from tacit.curator.curator import Curator
from tacit.curator.given import ExactGiven, Given, given_of
from tacit.curator.ledgers import BESIDE, home_of
from tacit.curator.plan import Plan, make_plan
from tacit.curator.prices import Price, price
from tacit.curator.public_words import PublicWords, words_in
from tacit.curator.toml import parse_toml, read_text, without_secrets
from tacit.curator.typed import known, typed
from tacit.errors import EmptyComposition, InvalidParameter, TacitError, UnknownName
from tacit.guarantees import Always, Bound, Guarantee, RandomData, Unit, people, rows
from tacit.ledger import record_plan
from tacit.ledger.places import without_credentials
from tacit.noise.source import Source
from tacit.sources.declared import schema_from_tables
from tacit.sources.opening.files import Files, files
from tacit.sources.opening.joining import Joined, join, reading_of
from tacit.sources.schema import Schema
from tacit.sources.tables import ENGINES

__all__ = ["KINDS", "PlanFile", "asks_in", "price_in", "read_plan", "unit_in"]

KINDS: dict[str, Callable[..., Any]] = {
    "clamping_bounds": statistics.clamping_bounds,
    "classifier": functions.classifier,
    "contingency": statistics.contingency,
    "count": statistics.count,
    "density": functions.density,
    "hierarchy": statistics.hierarchy,
    "histogram": statistics.histogram,
    "margins": statistics.margins,
    "mean": statistics.mean,
    "median": statistics.median,
    "proportion": statistics.proportion,
    "quantile": statistics.quantile,
    "quantiles": statistics.quantiles,
    "ranges": statistics.ranges,
    "ratio": statistics.ratio,
    "regression_function": functions.regression_function,
    "regression_moments": statistics.regression_moments,
    "sparse_histogram": statistics.sparse_histogram,
    "standard_deviation": statistics.standard_deviation,
    "sum": statistics.sum,
    "variance": statistics.variance,
}
TABLES = (
    "budget",
    "data",
    "given",
    "join",
    "ledger",
    "protect",
    "release",
    "report",
    "schema",
    "shares",
    "spend",
)
READING = (
    "dates",
    "decimal",
    "encoding",
    "missing",
    "multiline",
    "partitions",
    "pattern",
    "separator",
    "sheet",
    "view",
)
DATA = ("engine", "memory", "path", "table", "version", *READING)
LEDGER = ("another", "path")
PAID = ("confidence", "delta", "epsilon", "mu", "rho", "simultaneous", "within")
FINISH = ("consistent", "given", "interval", "name", "rows", "sampling", "target", "weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """What a plan file says; paths are relative to the file."""

    path: Path
    data: str | Files | Joined
    engine: str | None
    memory: str | None
    unit: Unit
    schema: Schema
    budget: Bound
    spend: Price | None
    ledger: str | None = field(repr=False)
    analyst: str
    asks: tuple[Ask, ...]
    table: str = ""
    version: str = ""
    another_ledger: bool = False
    shares: Mapping[str, Bound] = field(default_factory=dict)
    gamma: float | None = None
    given: Given | None = None
    words: PublicWords = field(default_factory=PublicWords)
    text: str = field(default="", repr=False)

    @property
    def place(self) -> str:
        """Where the ledger lies, without anybody's name and password."""
        home = home_of(self.data, self.table)
        return without_credentials(self.ledger or str((home and home.default) or ""))

    def published(self) -> str:
        """The file as it may stand beside what is published: letter by letter, but for names and passwords in URLs."""
        return without_secrets(self.text)

    @property
    def limit(self) -> Guarantee:
        """The budget as a guarantee: for the unit, and under RandomData where it has a gamma."""
        if any(isinstance(g, ExactGiven) for g in (self.given, *(a.given for a in self.asks))):
            # An exact answer is alone on its table: the budget is under its condition.
            return Guarantee(bound=self.budget, unit=self.unit, condition=self.plan().charge.condition)
        condition = Always() if self.gamma is None else RandomData(gamma=self.gamma)
        return Guarantee(bound=self.budget, unit=self.unit, condition=condition)

    def plan(self) -> Plan:
        """Prices and expected errors; reads no data."""
        plan = make_plan(
            self.asks, schema=self.schema, unit=self.unit, budget=self.budget, total=self.spend, given=self.given,
            reading=reading_of(self.data),
        )  # fmt: skip
        self.words.check(self.schema, [r.name for r in plan.releases])
        return plan

    def recorded(self, plan: Plan) -> int:
        """The ledger's entry that has the plan's digest, written now if there is none; reads no data."""
        with self.curator() as curator:
            about = {"analyst": self.analyst, "table": self.table, "version": self.version}
            return record_plan(curator.ledger, plan.digest, **about)

    def curator(self, *, source: Source | None = None, ledger: str | None = None) -> Curator:
        """The curator of the file's table, budget and ledger."""
        made = Curator(
            self.data, protect=self.unit, schema=self.schema, budget=self.limit,
            ledger=ledger or self.ledger or BESIDE, another_ledger=self.another_ledger,
            table=self.table, version=self.version, shares=self.shares,
            analyst=self.analyst, engine=self.engine, memory=self.memory, source=source,
        )  # fmt: skip
        # Where a ledger lies in a database, files are named from the plan.
        made._beside = self.path.parent
        return made


def read_plan(path: str | Path, *, releases: bool = True) -> PlanFile:
    """The plan in a TOML file; a holder's part in a joint one needs no releases of its own."""
    path = Path(path)
    text = read_text(path, parameter="plan")
    data = parse_toml(text, parameter="plan", name=str(path))
    known("table of a plan", data, TABLES)
    for name in ("data", "protect", "schema", "budget"):
        if not isinstance(data.get(name), Mapping):
            raise InvalidParameter(parameter=f"[{name}]", value=None, must="be in the plan")
    unit, schema = unit_in(data["protect"]), schema_from_tables(data["schema"])
    budget = price_in("[budget]", data["budget"], more=("analyst", "gamma"))
    bound = budget.bound()
    asks = asks_in(data.get("release")) if releases or "release" in data else ()
    spend = price_in("[spend]", data["spend"]) if "spend" in data else budget
    source = _table("[data]", data["data"], DATA)
    if "path" not in source:
        raise InvalidParameter(parameter="[data] path", value=None, must="be given")
    if source.get("engine", "duckdb") not in ENGINES:
        raise UnknownName(what="engine in [data]", name=source["engine"], known=ENGINES)
    kept = _table("[ledger]", data.get("ledger", {}), LEDGER)
    return PlanFile(
        path=path,
        data=_joined(path, _source(path, source), data.get("join", [])),
        engine=source.get("engine"),
        memory=source.get("memory"),
        unit=unit,
        schema=schema,
        budget=bound,
        spend=spend if any(a.price is None for a in asks) else None,
        ledger=_ledger(path, kept.get("path")),
        table=source.get("table", ""),
        version=source.get("version", ""),
        another_ledger=kept.get("another", False),
        shares=_shares(data.get("shares", {})),
        analyst=typed("[budget]", data["budget"]).get("analyst", "curator"),
        asks=asks,
        gamma=_gamma(data["budget"]),
        given=given_of(typed("", {"given": data["given"]})["given"]) if "given" in data else None,
        words=words_in(data.get("report", {})),
        text=text,
    )


def asks_in(releases: Any) -> tuple[Ask, ...]:
    """What the [[release]] tables ask for."""
    if not isinstance(releases, list) or not releases:
        raise EmptyComposition(what="the list of releases", hint='add a [[release]] with kind = "count"')
    return tuple(_ask(i, table) for i, table in enumerate(releases, 1))


def _table(where: str, given: Any, words: tuple[str, ...]) -> dict[str, Any]:
    known(f"word in {where}", given, words)
    return typed(where, given)


def _source(plan: Path, given: Mapping[str, Any]) -> str | Files:
    """The file, or what is said about files beside their path."""
    wishes = {word: given[word] for word in READING if word in given}
    if isinstance(given["path"], list):
        return files([_beside(plan, name) for name in given["path"]], **wishes)
    name = _beside(plan, given["path"])
    return files(name, **wishes) if wishes else name


def _joined(plan: Path, table: str | Files, joins: Any) -> str | Files | Joined:
    """The table with the columns of others, one [[join]] after the other."""
    made: str | Files | Joined = table
    if not isinstance(joins, list):
        raise InvalidParameter(parameter="[[join]]", value=type(joins).__name__, must="be a list of tables")
    for i, one in enumerate(joins, 1):
        where = f"[[join]] {i}:"
        given = _table(where, one, ("on", "path", "public", *READING))
        for word in ("path", "on"):
            if word not in given:
                raise InvalidParameter(parameter=f"{where} {word}", value=None, must="be given")
        made = join(made, _source(plan, given), on=given["on"], public=given.get("public", False))
    return made


def _beside(plan: Path, name: str) -> str:
    return name if Path(name).is_absolute() else str(plan.parent / name)


def _ledger(plan: Path, name: str | list[str] | None) -> str | None:
    if isinstance(name, list):
        raise InvalidParameter(parameter="[ledger] path", value=name, must="be a text")
    return name if name is None or "://" in name else _beside(plan, name)


def unit_in(table: Mapping[str, Any]) -> Unit:
    """The unit of a [protect] table."""
    given = _table("[protect]", table, ("at_most", "column", "groups", "neighbours", "unit"))
    kind = given.pop("unit", None)
    if kind == "rows":
        known("word in [protect] for rows", given, ("neighbours",))
        return rows(**given)
    if kind == "people":
        for word in ("column", "at_most"):
            if word not in given:
                raise InvalidParameter(parameter=f"[protect] {word}", value=None, must="be given for people")
        return people(given.pop("column"), **given)
    raise UnknownName(what="unit in [protect]", name=str(kind), known=("people", "rows"))


def price_in(where: str, table: Any, *, more: tuple[str, ...] = ()) -> Price:
    """The price of a [budget] or [spend] table."""
    given = _table(where, table, ("delta", "epsilon", "mu", "rho", *more))
    return price(**{k: v for k, v in given.items() if k not in more})


def _shares(given: Any) -> dict[str, Bound]:
    """The limits of single analysts, for a ledger that is made: [shares.bob] epsilon = 0.3."""
    if not isinstance(given, Mapping):
        raise InvalidParameter(
            parameter="[shares]", value=type(given).__name__, must="be tables: [shares.bob]"
        )
    return {str(name): price_in(f"[shares.{name}]", table).bound() for name, table in given.items()}


def _gamma(table: Any) -> float | None:
    """The gamma that a budget grants, for releases given random data."""
    value = typed("[budget]", table).get("gamma")
    if value is not None and not 0 < value < 1:
        raise InvalidParameter(
            parameter="[budget] gamma", value=value, must="lie strictly between 0 and 1",
            hint="it is the share of data on which promises may fail; without it all releases hold always",
        )  # fmt: skip
    return None if value is None else float(value)


def _ask(number: int, table: Any) -> Ask:
    where = f"release {number}"
    if not isinstance(table, Mapping) or "kind" not in table:
        raise InvalidParameter(parameter=where, value=None, must='have a kind: kind = "count"')
    kind = str(table["kind"])
    if kind not in KINDS:
        raise UnknownName(what=f"kind of {where}", name=kind, known=KINDS)
    function = KINDS[kind]
    takes = inspect.signature(function).parameters
    known(f"word of {where}, a {kind},", table, ("kind", *takes, *PAID, *FINISH), own=takes)
    told = typed(f"{where}:", {k: v for k, v in table.items() if k != "kind"}, kind=kind)
    given = {k: v for k, v in told.items() if k in takes}
    rest = {k: v for k, v in told.items() if k not in takes}
    try:
        missing = [n for n, p in takes.items() if p.default is p.empty and n not in given]
        if missing:
            raise InvalidParameter(parameter=missing[0], value=None, must=f"be given for a {kind}")
        return ask(function(**given), **rest)
    except TacitError as problem:
        problem.args = (f"{where}: {problem}",)
        raise
