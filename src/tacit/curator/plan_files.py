"""Plans as TOML files: [data], [protect], [schema.*], [budget], [spend], [ledger], [report], then [[release]] tables.

Every word is looked up in a closed list, and an unknown one is answered with the nearest known one.
"""

from __future__ import annotations

import datetime
import inspect
import itertools
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, NoReturn

from tacit import statistics
from tacit.curator import functions
from tacit.curator.charging import Price, alone, divided_parts, price, together
from tacit.curator.curator import Curator
from tacit.curator.key_files import KeyFiles
from tacit.curator.ledgers import BESIDE, home_of
from tacit.curator.planning import Plan, make_plan
from tacit.curator.request import ExactGiven, Given, Query, given_of, query
from tacit.curator.text import PublicWords, words_in
from tacit.errors import EmptyComposition, InvalidParameter, NoSuchFile, TacitError, UnknownName, visible
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Always, Bound, Guarantee, RandomData, Unit, people, rows
from tacit.ledger import record_plan
from tacit.ledger.store import without_credentials
from tacit.noise.source import Source
from tacit.sources.axes import bins
from tacit.sources.opening.files import Files, Joined, files, join, reading_of
from tacit.sources.schema import Schema, schema_from_tables
from tacit.sources.tables import ENGINES
from tacit.synthesis.statistic import synthetic_table

# TOML files as people and attackers write them: read with limits, and copied without anybody's password.
#
# The parser of the standard library is right, but a file may be of any length, be nested beyond the stack, or hold one
# dotted name of 200 000 parts, for which it takes time that grows with the square. Strings and comments are told
# apart from names here, so that a limit on names is one on names only.

MOST_BYTES = 16 << 20
MOST_PARTS = 16
MOST_DEPTH = 16
LARGEST = 1 << 63
MOST_NAMES = 10_000

# Comments and the four kinds of strings of TOML; what is left between them are names, numbers and brackets. A string
# that is never closed is one to its end: the parser stops there.
_TOKEN = re.compile(
    r"#[^\n]*"
    r'|"""(?:[^"\\]|\\.|"{1,2}(?!"))*+(?:"{3,5})?+'
    r"|'''(?:[^']|'{1,2}(?!'))*+(?:'{3,5})?+"
    r'|"(?:[^"\\\n]|\\.)*+"?+'
    r"|'[^'\n]*+'?+",
    re.DOTALL,
)
# Possessive, and from the first letter of a name on: the time is linear in the length of the text.
_DOTTED = re.compile(rf"(?<![\w-])[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]++){{{MOST_PARTS},}}+", re.ASCII)


def read_text(path: str | Path, *, parameter: str, most: int = MOST_BYTES) -> str:
    """A text file in UTF-8 with at most `most` bytes; one clear error for anything else."""
    try:
        with Path(path).open("rb") as file:
            body = file.read(most + 1)
        if len(body) > most:
            raise InvalidParameter(
                parameter=parameter, value=str(path), must=f"have at most {most >> 20} MiB"
            )
        return body.decode("utf-8")
    except InvalidParameter:
        raise
    except FileNotFoundError:
        raise _no_such_file(Path(path), parameter) from None
    except (OSError, ValueError):
        raise InvalidParameter(
            parameter=parameter, value=str(path), must="be a readable text file", hint="text is UTF-8"
        ) from None


def _no_such_file(path: Path, parameter: str) -> NoSuchFile:
    """The error for a missing file, with the names of the files in its folder."""
    try:
        near = itertools.islice(path.parent.iterdir(), MOST_NAMES)
        beside = [str(path.with_name(one.name)) for one in near]
    except OSError:
        beside = []
    return NoSuchFile(
        parameter=parameter, path=str(path), beside=[n for n in beside if Path(n).suffix == path.suffix]
    )


def read_toml(path: str | Path, *, parameter: str) -> dict[str, Any]:
    """The tables of a TOML file."""
    return parse_toml(read_text(path, parameter=parameter), parameter=parameter, name=str(path))


def parse_toml(text: str, *, parameter: str, name: str) -> dict[str, Any]:
    """The tables of a TOML text: well-formed, of 64-bit numbers, not nested deeper than anybody needs."""

    def refuse(problem: str) -> InvalidParameter:
        return InvalidParameter(parameter=parameter, value=name, must=f"be well-formed TOML: {problem}")

    if _DOTTED.search(_TOKEN.sub(lambda m: "" if m[0].startswith("#") else "s", text)):
        raise refuse(f"a name has more than {MOST_PARTS} parts")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise refuse(visible(str(problem)).rstrip(".").lower()[:200]) from None
    except RecursionError:
        raise refuse("it is nested too deeply") from None
    except ValueError:
        raise refuse("a number has too many digits") from None
    wrong = _odd(data)
    if wrong:
        raise refuse(wrong)
    return data


def _odd(value: Any, depth: int = 0) -> str:
    """Values that no plan may contain, under any key; empty for a valid plan."""
    if depth > MOST_DEPTH:
        return "it is nested too deeply"
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return next((wrong for v in inner if (wrong := _odd(v, depth + 1))), "")
    if isinstance(value, int) and not -LARGEST <= value < LARGEST:
        return "a whole number has more than 64 bits"
    return ""


_SECRET = re.compile(r"pass(?:word|wd|phrase)|\bpwd\b|secret|token|credential", re.IGNORECASE)


def without_secrets(text: str) -> str:
    """The same text with every URL in its strings and comments stripped of names and passwords.

    Comments that name a secret are left out whole, since they need not be URLs.
    """

    def strip(match: re.Match[str]) -> str:
        token = match[0]
        if token.startswith("#"):
            # Of a comment nothing depends: a line that speaks of a secret is not copied at all.
            return "#" if _SECRET.search(token) else without_credentials(token)
        try:
            value = tomllib.loads(f"x = {token}")["x"]
        except tomllib.TOMLDecodeError:
            return without_credentials(token)
        safe = without_credentials(value)
        return token if safe == value else json.dumps(safe)

    return _TOKEN.sub(strip, text)


# What may stand behind each word of a plan file, as one table; anything else is one sentence that names the word.

Reader = Callable[[str, Any], Any]
MOST_TEXT = 10_000
SMALLEST, LARGEST_TYPED = 1e-100, 1e100


def _refuse(where: str, value: object, must: str, hint: str = "") -> NoReturn:
    raise InvalidParameter(parameter=where, value=value, must=must, hint=hint)


def text(where: str, value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value or len(value) > MOST_TEXT or "\0" in value:
        _refuse(where, value, "be a text")
    return value


def word(where: str, value: Any) -> str | int:
    """A key of a category: a text or a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else text(where, value)


def each_value(where: str, value: Any) -> dict[str, int]:
    """A column and the number of rows with each of its values: { year = 1 }."""
    if not isinstance(value, Mapping) or len(value) != 1:
        _refuse(where, type(value).__name__, "be a table with one column: { year = 1 }")
    return {str(name): whole(where, number) for name, number in value.items()}


def flag(where: str, value: Any) -> bool:
    """true or false; other values that count as true or false elsewhere are refused."""
    if not isinstance(value, bool):
        _refuse(where, value, "be true or false", "without quotes")
    return value


def whole(where: str, value: Any) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        _refuse(where, value, "be a whole number")
    return value


def amount(where: str, value: Any) -> int | float:
    """A finite number of a size that later calculations can use."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        _refuse(where, value, "be a finite number")
    if value != 0 and not SMALLEST <= abs(value) <= LARGEST_TYPED:
        _refuse(where, value, f"be of a size between {SMALLEST:g} and {LARGEST_TYPED:g}")
    return value


def shares(where: str, value: Any) -> list[int | float]:
    """A list of numbers, or one."""
    if not isinstance(value, list) and isinstance(value, int | float):
        return [amount(where, value)]
    if not isinstance(value, list):
        _refuse(where, value, "be a list of numbers", "at = [0.25, 0.5, 0.75]")
    return [amount(where, v) for v in value]


def widths(where: str, value: Any) -> Any:
    """A number, or a list of them."""
    return shares(where, value) if isinstance(value, list) else amount(where, value)


def edges(where: str, value: Any) -> Any:
    """A number of bins, or their edges: numbers, or days."""
    if isinstance(value, list):
        return [_scalar(where, v) for v in value]
    return whole(where, value)


def names(where: str, value: Any) -> list[str]:
    """A list of texts."""
    if not isinstance(value, list):
        _refuse(where, value, "be a list of columns", 'partitions = ["state"]')
    return [text(where, v) for v in value]


def paths(where: str, value: Any) -> str | list[str]:
    """A name, or a list of them: files, or columns of a join."""
    return [text(where, v) for v in value] if isinstance(value, list) else text(where, value)


def texts(where: str, value: Any) -> list[str]:
    """A list of texts, which may be empty."""
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        _refuse(where, value, "be a list of words", 'missing = ["NA"]')
    return value


def columns(where: str, value: Any) -> list[Any]:
    """Names of columns, or tables { column = "age", bins = [0, 18, 65] }; one, or a list of them."""
    out: list[Any] = []
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, Mapping):
            known(f"word of a column in {where}", entry, ("bins", "column"))
            name = text(f"{where}: column", entry.get("column"))
            out.append(bins(name, edges(f"{where}: bins", entry.get("bins", 10))))
        else:
            out.append(text(where, entry))
    return out


def parents(where: str, value: Any) -> dict[str, str | None]:
    """A table from each key to its parent; a top key has the parent "" (TOML has no word for nothing)."""
    if not isinstance(value, Mapping):
        _refuse(where, value, "be a table", 'parents = { north = "nation", nation = "" }')
    return {child: None if parent == "" else text(where, parent) for child, parent in value.items()}


def area_codes(where: str, value: Any) -> dict[str, list[Any]]:
    """Codes of the smallest areas on every level: { state = ["A", "A"], county = ["A1", "A2"] }."""
    if not isinstance(value, Mapping) or not all(isinstance(v, list) for v in value.values()):
        hint = 'areas = "blocks.csv", a file with a column for each level'
        _refuse(where, type(value).__name__, "be the name of a public CSV file, or lists by level", hint)
    return {level: [_scalar(where, code) for code in codes] for level, codes in value.items()}


def name_pairs(where: str, value: Any) -> list[list[str]]:
    """A list of pairs of columns."""
    if not isinstance(value, list) or not all(isinstance(v, list) and len(v) == 2 for v in value):
        _refuse(where, value, "be a list of pairs of columns", 'interactions = [["age", "sex"]]')
    return [[text(where, name) for name in pair] for pair in value]


def ways(where: str, value: Any) -> dict[str, str]:
    """A table from columns to "increasing" or "decreasing"."""
    if not isinstance(value, Mapping):
        _refuse(where, value, "be a table", 'monotone = { age = "increasing" }')
    return {name: text(where, way) for name, way in value.items()}


def weights(where: str, value: Any) -> dict[str, int | float]:
    """A table from names to numbers."""
    if not isinstance(value, Mapping):
        _refuse(where, value, "be a table of weights", "importance = { cells = 4, total = 1 }")
    return {name: amount(where, v) for name, v in value.items()}


def patterns(where: str, value: Any) -> list[dict[str, Any]]:
    """A list of tables from columns to a value or a list of values."""
    if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value):
        _refuse(where, value, "be a list of tables", 'impossible = [{ sex = "male", pregnant = true }]')
    return [
        {k: [_key(where, i) for i in v] if isinstance(v, list) else _scalar(where, v) for k, v in one.items()}
        for one in value
    ]


def _key(where: str, value: Any) -> Any:
    """A value, or the two ends of a bin."""
    if isinstance(value, list) and len(value) == 2:
        return tuple(_scalar(where, v) for v in value)
    return _scalar(where, value)


def known_counts(where: str, value: Any) -> list[dict[str, Any]]:
    """A list of tables with columns and their whole counts, nested as deep as there are columns."""
    example = 'public_margins = [{ columns = ["sex"], counts = [510, 490] }]'
    if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value):
        _refuse(where, value, "be a list of tables", example)
    for one in value:
        known(f"word of a table in {where}", one, ("columns", "counts"))
        if not {"columns", "counts"} <= set(one):
            _refuse(where, sorted(one), "have columns and counts", example)
    return [{"columns": names(where, one["columns"]), "counts": one["counts"]} for one in value]


def _scalar(where: str, value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        _refuse(where, value, "be finite")
    if not isinstance(value, str | int | float | datetime.date):
        _refuse(where, value, "be a text, a number or a day")
    return value


def design(where: str, value: Any) -> dict[str, Any]:
    """How a sample was drawn: { strata = "region", psu = "village" }, or strata as a table of lists."""
    known(f"word of {where}", value, ("psu", "strata", "weights"))
    return {
        word: {str(k): [_scalar(where, u) for u in v] if isinstance(v, list) else v for k, v in one.items()}
        if word == "strata" and isinstance(one, Mapping)
        else text(f"{where}: {word}", one)
        for word, one in value.items()
    }


def keyed(where: str, value: Any) -> dict[str, Any]:
    """A column and one of its keys: { sex = "m" }."""
    if not isinstance(value, Mapping):
        _refuse(where, value, "be a table", 'against = { sex = "m" }')
    return {column: _scalar(where, key) for column, key in value.items()}


def figures(at: str, value: Any) -> Any:
    """A public number, or tables of them: { employees = { north = 40, south = 60 } }."""
    return {k: figures(at, v) for k, v in value.items()} if isinstance(value, Mapping) else amount(at, value)


def standard(where: str, value: Any) -> dict[str, Any]:
    """Public weights of the keys of a column: { age = { young = 0.4, old = 0.6 } }."""
    if not isinstance(value, Mapping) or not all(isinstance(v, Mapping) for v in value.values()):
        _refuse(where, value, "be a table of weights", "standard = { age = { young = 0.4, old = 0.6 } }")
    return {column: {key: amount(where, w) for key, w in one.items()} for column, one in value.items()}


def tail(where: str, value: Any) -> dict[str, Any]:
    """One fact about values above a bound: { pareto = 2 }."""
    if not isinstance(value, Mapping):
        _refuse(where, value, "be a table", "beyond = { pareto = 2 }")
    return {word: amount(where, number) for word, number in value.items()}


def assumed(where: str, value: Any) -> Any:
    """A table of the given facts, or "always"."""
    if not isinstance(value, Mapping) and (not isinstance(value, str) or value != "always"):
        _refuse(where, value, 'be a table, or "always"', "given = { random_data = 0.05, rows = 8000 }")
    return value


def guesses(where: str, value: Any) -> dict[str, Any]:
    """A table of numbers."""
    if not isinstance(value, Mapping):
        _refuse(where, value, "be a table", "guess = { value = 30000, spread = 20000 }")
    return {str(word): amount(f"{where} {word}", held) for word, held in value.items()}


WORDS: dict[str, Reader] = {
    "analyst": text,
    "against": keyed,
    "agree": flag,
    "another": flag,
    "areas": area_codes,
    "at": shares,
    "at_most": whole,
    "at_most_each": each_value,
    "bandwidth": widths,
    "beyond": tail,
    "bins": edges,
    "by": columns,
    "cells": whole,
    "censored": word,
    "column": text,
    "columns": columns,
    "confidence": amount,
    "consistent": flag,
    "dates": text,
    "decimal": text,
    "design": design,
    "delta": amount,
    "denominator": text,
    "depth": whole,
    "draw": whole,
    "encoding": text,
    "engine": text,
    "epsilon": amount,
    "errors": amount,
    "event": text,
    "events": text,
    "gamma": amount,
    "spread": amount,
    "given": assumed,
    "groups": whole,
    "guarantee": text,
    "guess": guesses,
    "horizon": amount,
    "importance": weights,
    "impossible": patterns,
    "interactions": name_pairs,
    "intercept": amount,
    "interval": lambda where, value: False if value is False else amount(where, value),
    "kernel": text,
    "kind": text,
    "label": text,
    "largest_weight": amount,
    "leverage_limit": amount,
    "lorenz": shares,
    "layers": columns,
    "levels": names,
    "loss": text,
    "memory": text,
    "missing": texts,
    "monotone": ways,
    "mu": amount,
    "multiline": flag,
    "name": text,
    "neighbours": text,
    "noise": text,
    "numerator": text,
    "of": text,
    "on": paths,
    "order": whole,
    "outcome": text,
    "outcome_weight": amount,
    "pairs": whole,
    "parents": parents,
    "partitions": names,
    "path": paths,
    "pattern": flag,
    "penalty": amount,
    "points": whole,
    "public": flag,
    "public_margins": known_counts,
    "per": amount,
    "population": figures,
    "resolution": whole,
    "rho": amount,
    "ridge": amount,
    "rounds": whole,
    "rows": whole,
    "sampling": flag,
    "separator": text,
    "sheet": text,
    "simultaneous": flag,
    "size": whole,
    "smooth": amount,
    "standard": standard,
    "survey_weight": text,
    "table": text,
    "target": amount,
    "threshold": amount,
    "time": text,
    "top": shares,
    "totals": text,
    "unit": text,
    "version": text,
    "view": text,
    "weight": amount,
    "weight_column": text,
    "where": text,
    "within": amount,
}
"""Every word of every table except the schema's, which has its own reader. One word means one thing."""

_HERE: dict[tuple[str, str], Reader] = {
    ("additive", "bins"): whole,
    ("additive", "target"): text,
    ("calibrated", "totals"): figures,
    ("linear", "target"): text,
    ("logistic", "target"): text,
    ("quantile", "at"): amount,
    ("running", "groups"): columns,
    ("table", "rows"): columns,
}
"""Keys with another meaning: one share, where other kinds take a list."""


def known(what: str, given: Any, words: tuple[str, ...], *, own: Iterable[str] = ()) -> None:
    """Refuses a value that is no table, and a word outside of the closed list, with the nearest known one.

    `own` are the words of this table alone, which are listed, since the nearest word may belong to another.
    """
    if not isinstance(given, Mapping):
        _refuse(what, type(given).__name__, "be a table")
    for word in given:
        if word not in words:
            found = UnknownName(what=what, name=str(word), known=words)
            if not own:
                raise found
            near = f"did you mean {found.nearest!r}? " if found.nearest else ""
            raise UnknownName(
                what=what,
                name=str(word),
                known=words,
                hint=f"{near}it takes {', '.join(own)}, and words of every release",
            )


def typed(where: str, given: Mapping[str, Any], *, kind: str = "") -> dict[str, Any]:
    """The table with every value converted to the type of its word."""
    return {
        word: _HERE.get((kind, word), WORDS[word])(f"{where} {word}", value) for word, value in given.items()
    }


KINDS: dict[str, Callable[..., Any]] = {
    "additive": functions.additive_model,
    "calibrated": statistics.calibrated,
    "clamping_bounds": statistics.clamping_bounds,
    "classifier": functions.classifier,
    "contingency": statistics.contingency,
    "count": statistics.count,
    "decision_tree": functions.decision_tree,
    "density": functions.density,
    "geography": statistics.geography,
    "hierarchy": statistics.hierarchy,
    "histogram": statistics.histogram,
    "inequality": statistics.inequality,
    "linear": functions.linear_regression,
    "logistic": functions.logistic_regression,
    "margins": statistics.margins,
    "mean": statistics.mean,
    "median": statistics.median,
    "post_stratified": statistics.post_stratified,
    "proportion": statistics.proportion,
    "quantile": statistics.quantile,
    "quantiles": statistics.quantiles,
    "ranges": statistics.ranges,
    "rate": statistics.rate,
    "ratio": statistics.ratio,
    "regression_by_test": functions.regression_by_test,
    "regression_function": functions.regression_function,
    "regression": statistics.regression,
    "regression_moments": statistics.regression_moments,
    "sparse_histogram": statistics.sparse_histogram,
    "standard_deviation": statistics.standard_deviation,
    "sum": statistics.sum,
    "survival": statistics.survival,
    "synthetic_table": synthetic_table,
    "table": statistics.table,
    "variance": statistics.variance,
}
TABLES = (
    "budget", "data", "given", "join", "ledger", "protect", "release", "report", "running", "schema", "shares", "spend",
)  # fmt: skip
READING = (
    "dates", "decimal", "encoding", "missing", "multiline", "partitions", "pattern", "separator", "sheet", "view",
)  # fmt: skip
DATA = ("engine", "memory", "path", "table", "version", *READING)
LEDGER = ("another", "path")
PAID = ("confidence", "delta", "epsilon", "mu", "rho", "simultaneous", "within")
FINISH = (
    "agree", "consistent", "given", "guess", "interval", "name", "noise", "rows", "sampling", "target", "weight",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """The contents of a plan file. Paths are relative to the file."""

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
    asks: tuple[Query, ...]
    table: str = ""
    version: str = ""
    another_ledger: bool = False
    shares: Mapping[str, Bound] = field(default_factory=dict)
    gamma: float | None = None
    given: Given | None = None
    words: PublicWords = field(default_factory=PublicWords)
    text: str = field(default="", repr=False)
    running: Mapping[str, Any] | None = None
    """The words of a running total, for `running_series`."""
    lists: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Public files of keys and areas that the plan names, by their own names: they are published with it."""

    @property
    def place(self) -> str:
        """The place of the ledger, without a name and password."""
        home = home_of(self.data, self.table)
        return without_credentials(self.ledger or str((home and home.default) or ""))

    def published(self) -> str:
        """The file as it may be printed beside a release: letter by letter, except names and passwords in URLs."""
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
        """The ledger's entry with the plan's digest, written now if it is missing; reads no data."""
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
    """The plan in a TOML file; a holder's part in a joint plan needs no releases."""
    path = Path(path)
    return read_plan_text(read_text(path, parameter="plan"), path, releases=releases, lists=True)


def read_plan_text(text: str, path: Path, *, releases: bool = True, lists: bool = False) -> PlanFile:
    """The plan in a text, read as if it were a file at this path.

    Only with `lists` may it name files of keys and areas: the sender of a plan to a server chooses no files there.
    """
    data = parse_toml(text, parameter="plan", name=str(path))
    known("table of a plan", data, TABLES)
    found = KeyFiles(plan=path, data=data.get("data")) if lists else None
    if found is not None:
        data = found.filled(data)
    for name in ("data", "protect", "schema", "budget"):
        if not isinstance(data.get(name), Mapping):
            raise InvalidParameter(parameter=f"[{name}]", value=None, must="be in the plan")
    unit, schema = unit_in(data["protect"]), schema_from_tables(data["schema"])
    budget = price_in("[budget]", data["budget"], more=("analyst", "gamma"))
    bound = budget.bound()
    if releases and "release" not in data and "running" in data:
        raise EmptyComposition(
            what="the list of releases", hint="this plan has only a running total: use tacit running PLAN"
        )
    asks = asks_in(data.get("release")) if releases or "release" in data else ()
    running = _running(data["running"]) if "running" in data else None
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
        running=running,
        lists={} if found is None else found.lists,
    )


def described(file: PlanFile, made: Plan) -> dict[str, Any]:
    """A plan as plain values, with the keys of `tacit plan --json`."""
    parts = divided_parts(made, made.budget)
    return {
        "plan": str(file.path),
        "digest": made.digest,
        "unit": str(made.unit),
        "budget": dict(file.budget.parameters) | {"kind": file.budget.kind} | _gamma_of(file.limit),
        "charge": made.charge.to_dict(),
        "in_budget_terms": together(made, made.budget).to_dict(),
        "charged_by": made.charged.theorem,
        "releases": [
            {
                "name": r.name,
                "statistic": r.ask.statistic.to_dict(),
                "cells": r.question.numbers,
                "guarantee": r.guarantee.to_dict(),
                "in_budget_terms": own.to_dict(),
                "share_of_budget": part,
                "mechanism": r.assignment.to_dict(),
                "error": r.expected.to_dict(),
                "price_of_privacy": r.expected.floor_record,
            }
            for r, own, part in zip(made.releases, alone(made, made.budget), parts, strict=True)
        ],
    }


def _gamma_of(guarantee: Guarantee) -> dict[str, float]:
    condition = guarantee.condition
    return {"gamma": condition.gamma} if isinstance(condition, RandomData) else {}


def asks_in(releases: Any) -> tuple[Query, ...]:
    """The queries of the [[release]] tables."""
    if not isinstance(releases, list) or not releases:
        raise EmptyComposition(what="the list of releases", hint='add a [[release]] with kind = "count"')
    return tuple(_ask(i, table) for i, table in enumerate(releases, 1))


def _running(given: Any) -> dict[str, Any]:
    """The words of a [running] table: { by = "week", groups = "sex", epsilon = 1, delta = 1e-6 }."""
    words = ("by", "groups", "name", "where", "delta", "epsilon", "mu", "rho")
    known("word in [running]", given, words)
    told = typed("[running]", given, kind="running")
    steps = told.pop("by", None)
    if not steps or len(steps) != 1:
        _refuse("[running] by", steps, "be one column, that of the steps", 'by = "week"')
    return {"by": steps[0], **told}


def _table(where: str, given: Any, words: tuple[str, ...]) -> dict[str, Any]:
    known(f"word in {where}", given, words)
    return typed(where, given)


def _source(plan: Path, given: Mapping[str, Any]) -> str | Files:
    """The file, or the reading options beside its path."""
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
    given = _table("[protect]", table, ("at_most", "at_most_each", "column", "groups", "neighbours", "unit"))
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


def _ask(number: int, table: Any) -> Query:
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
            hint = "the public number of rows: size = 5000" if missing[0] == "size" else ""
            raise InvalidParameter(parameter=missing[0], value=None, must=f"be given for a {kind}", hint=hint)
        return query(function(**given), **rest)
    except TacitError as problem:
        problem.args = (f"{where}: {problem}",)
        raise
