"""Sequences in time: three versions of one table under one ledger, and what happened to its files between them.

Neighbours differ in one unit: what it has in each version, which may be nothing, the same as before, or something else.
Everything else is the same for both: the other rows, the files and how they are written, what is done to them between
releases, whether the curator stays open or a new one opens, and what is asked. Built from the definition of the
relation; nothing here asks the code under test.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import tacit
from fuzz import stores
from fuzz.stores import FILES, FRAMES, JOINS, KEY, SEVERAL, TYPED, TYPES, Row, Store
from fuzz.trials import BUDGET
from fuzz.worlds import Column, base_of, draw_statistics
from tacit import statistics as st
from tacit.curator.request import Query, query
from tacit.errors import TacitError
from tacit.guarantees import GroupOf, Neighbours, People, Unit, group_of, people, rows
from tacit.sources import category, date, derived, flag, integer, number
from tacit.sources.schema import Schema

STORAGE = ("rewrite", "retype", "resort", "reencode", "recolumn", "link", "moved folder")
"""The rows stay what they are; only how and where they are stored changes."""
OTHER = ("other format", "rename", "subset", "grown")
"""Another set of files is declared: a new curator, and never an answer of the other set."""
HOSTILE = ("twin link", "gone", "broken", "repeated keys", "public as private")
"""Something that must be refused, or not be seen, for both neighbours alike."""
CONTENT = ("people change", "unit changes")
OPS = (*STORAGE, *OTHER, *HOSTILE, *CONTENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One version, and how one gets there from the version before."""

    op: str
    fresh: bool
    label: str
    store: Store
    base: tuple[Row, ...]
    left: tuple[Row, ...]
    right: tuple[Row, ...]
    place: str
    public: tuple[Row, ...] = ()
    engine: str | None = None
    named: bool = True
    again: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A table as declared, and what is asked of it."""

    columns: tuple[Column, ...]
    schema: Schema
    unit: Unit
    asks: tuple[Query, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Everything that is needed to run it again."""

    seed: int
    reader: str
    setting: Setting
    steps: tuple[Step, ...]
    asked: tuple[Query, ...]
    portable: bool = False
    odd: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """In words."""
        told = [f"{s.op}{' (new curator)' if s.fresh else ''}" for s in self.steps]
        return f"{self.reader}: {' -> '.join(told)}; {self.setting.unit}; {', '.join(self.odd)}"


# --- what is declared ----------------------------------------------------------------------------------------
def draw_setting(rng: random.Random, turn: int, *, person: bool = False) -> Setting:
    """A small table with derived columns, and a few questions of every kind.

    Rows and people, added and replaced, and tables of texts alone are taken in turn.
    """
    # A table of texts alone: in some files a row without any is nothing but blanks.
    among = ("words", "digits", "open") if turn % 3 == 0 else ()
    columns = [draw_column(rng, f"c{i}", among) for i in range(rng.randrange(2, 5))]
    if not any(c.label in ("words", "digits", "ints") for c in columns):
        columns[0] = draw_column(rng, "c0", ("words", "digits", "ints"))
    relation = ("replace-one", "add-or-remove")[turn % 2]
    unit: Unit = rows(neighbours=relation)
    if person or turn % 4 > 1:
        label = rng.choice(["id", "id", "name"])
        columns.insert(rng.randrange(len(columns) + 1), Column(name="person", label=label, stored=""))
        unit = people(
            "person",
            at_most=rng.choice([1, 2, 3, 5]),
            groups=rng.choice([None, None, 1, 2]),
            neighbours=relation,
        )
    if rng.random() < 0.08:
        unit = group_of(unit, size=2)
    declared = {c.name: c.declared for c in columns if c.declared is not None}
    schema = Schema(declared)
    for i in range(rng.choice([0, 0, 1, 2])):
        made = draw_derived(rng, declared)
        if made is not None:
            declared[f"d{i}"] = made
    try:
        schema = Schema(declared)
    except TacitError:
        declared = dict(schema)
    columns.append(Column(name=KEY, label="key", stored=""))
    made_asks = draw_asks(rng, schema, unit)
    return Setting(columns=tuple(columns), schema=schema, unit=unit, asks=made_asks)


def draw_column(rng: random.Random, name: str, among: Sequence[str] = ()) -> Column:
    """One declared column; the words that it knows go with it."""
    label = rng.choice(
        among or ("words", "words", "digits", "ints", "open", "integer", "integer", "number", "date", "flag")
    )
    outside: Any = rng.choice(["clamp", "missing"])
    words: tuple[Any, ...] = ()
    match label:
        case "words":
            words = rng.choice([(b"a", b"b", b"c"), (b"CA", b"NY", b"TX"), (b"x", b"Y")])
            declared: Any = category(
                [w.decode() for w in words], missing=rng.choice([None, None, words[0].decode()])
            )
        case "digits":
            words = (b"1", b"2", b"3")
            declared = category(["1", "2", "3"])
        case "ints":
            words = rng.choice([(1, 2, 3), (0, 1), (5, 7, 100)])
            declared = category(list(words), missing=rng.choice([None, None, words[-1]]))
        case "open":
            words = (b"a", b"b", b"c", b"d")
            declared = category()
        case "integer":
            low = rng.choice([0, 0, 1, 3])
            declared = integer(
                low, low + rng.choice([1, 5, 9, 1000]), missing=rng.choice([None, None, low]), outside=outside
            )
        case "number":
            low_, high = rng.choice([(0.0, 10.0), (1.0, 9.0)])
            declared = number(
                low_,
                high,
                spacing=rng.choice([1, 0.25]),
                missing=rng.choice([None, None, high]),
                outside=outside,
            )
        case "date":
            declared = date(
                "2020-01-01", "2020-01-10", missing=rng.choice([None, "2020-01-03"]), outside=outside
            )
        case _:
            declared = flag(missing=rng.choice([None, None, True]))
    return Column(name=name, label=label, stored="", declared=declared, words=words)


def draw_derived(rng: random.Random, declared: dict[str, Any]) -> Any:
    """A column that is computed from one or two others."""
    name = rng.choice(list(declared))
    kind = type(declared[name]).__name__
    try:
        if kind in ("Number", "Integer"):
            return rng.choice(
                [
                    derived(f"`{name}` * 2 + 1", number(0, 30, spacing=0.25)),
                    derived(f"bin(`{name}`, 3, 6)", category([0, 1, 2])),
                    derived(f"case(`{name}` < 4, 'low', 'high')", category(["low", "high"])),
                    derived(f"10 / (`{name}` - 3)", number(0, 10, spacing=0.25, missing=0)),
                ]
            )
        if kind == "Category":
            return derived(f"`{name}` is missing", flag())
        if kind == "Date":
            return derived(f"day(`{name}`)", integer(1, 31))
        return derived(f"case(`{name}`, 1, 2)", category([1, 2]))
    except TacitError:
        return None


def draw_asks(rng: random.Random, schema: Schema, unit: Unit) -> tuple[Query, ...]:
    """Questions with prices of their own; some on random data, some with totals that are public."""
    found: list[Query] = []
    epsilon = rng.choice([0.5, 2.0, 20.0])
    names = [
        n for n, c in schema.items() if type(c).__name__ in ("Category", "Flag") and getattr(c, "known", True)
    ]
    always = [st.count()] + [st.count(by=rng.choice(names))] * bool(names)
    for i, statistic in enumerate([*always, *draw_statistics(rng, schema, unit, 7)]):
        for paid in ({"epsilon": epsilon}, {"epsilon": epsilon, "delta": 1e-3}):
            try:
                if (statistic.on(schema, unit).cells or 0) > 300:
                    break
                made = query(statistic, name=f"q{i}", **paid)
                found.append(made)
                break
            except TacitError:
                continue
    if names and isinstance(unit, type(rows())):
        by = rng.choice(names)
        given = {"random_data": 0.05} | ({"rows": 5} if unit.neighbours is Neighbours.ADD_OR_REMOVE else {})
        found.append(query(st.count(by=by), name="random", epsilon=epsilon, given=given))
        total = tacit.public_totals(total=rng.choice([3, 20]))
        found.append(
            query(
                st.count(by=by), name="totals", epsilon=epsilon, public=total, consistent=rng.random() < 0.5
            )
        )
        found.append(query(st.count(by=by), name="drawn", epsilon=epsilon, sampling=False, consistent=True))
    return tuple(_planned(found, schema, unit))


def _planned(asks: list[Query], schema: Schema, unit: Unit) -> list[Query]:
    """Those that a plan can hold."""
    from tacit.curator.planning import make_plan

    kept = []
    for one in asks:
        try:
            make_plan([one], schema=schema, unit=unit, budget=BUDGET)
        except TacitError:
            continue
        kept.append(one)
    return kept


# --- rows ----------------------------------------------------------------------------------------------------
def draw_row(rng: random.Random, columns: Sequence[Column]) -> Row:
    """An ordinary row."""
    return {c.name: _value(rng, c) for c in columns}


def _value(rng: random.Random, column: Column) -> Any:
    match column.label:
        case "words" | "digits" | "ints" | "open":
            return rng.choice(column.words)
        case "integer":
            return rng.randrange(10)
        case "number":
            return rng.randrange(10) + rng.choice([0.0, 0.25, 0.5])
        case "date":
            return rng.randrange(10)
        case "flag":
            return rng.random() < 0.5
        case "id":
            return rng.randrange(8)
        case "name":
            return b"p%d" % rng.randrange(8)
    return rng.randrange(stores.MATCHED + 1)


def odd_row(rng: random.Random, columns: Sequence[Column], odd: list[str]) -> Row:
    """A row as only one unit has it: blank, or with something that nobody else has."""
    if rng.random() < 0.35:
        odd.append("blank row")
        return {c.name: None for c in columns}
    row = draw_row(rng, columns)
    for column in rng.sample(list(columns), rng.choice([1, 1, 2])):
        strange: list[tuple[str, Any]] = [("missing", None)] * 2
        match column.label:
            case "integer" | "number":
                strange += [("a fraction", 2.5), ("a fraction", 2.5), ("far away", 10**6), ("negative", -3)]
            case "ints":
                strange += [("unknown key", 77), ("a fraction", 1.5)]
            case "words" | "open":
                strange += [
                    ("unknown word", b"zz"),
                    ("other case", b"A"),
                    ("not ASCII", "é".encode()),
                    ("bad bytes", b"\xff\xfe"),
                ]
            case "date":
                strange += [("far day", 40_000)]
            case "id":
                strange += [("fractional id", 60.5), ("no id", None)]
        what, row[column.name] = rng.choice(strange)
        odd.append(f"{column.label}: {what}")
    return row


def draw_unit(rng: random.Random, setting: Setting, number_: int, odd: list[str]) -> tuple[Row, ...]:
    """What one unit has in one version: a row, or any number of rows of an id that nobody else has."""
    columns, base = setting.columns, base_of(setting.unit)
    strange = rng.random() < 0.75
    if not isinstance(base, People):
        return (odd_row(rng, columns, odd) if strange else draw_row(rng, columns),)
    many = rng.choice([1, 2, base.at_most, base.at_most + 1, 2 * base.at_most])
    made = [
        odd_row(rng, columns, odd) if strange and rng.random() < 0.5 else draw_row(rng, columns)
        for _ in range(many)
    ]
    named = next(c for c in columns if c.name == base.column).label == "name"
    mine = next((r[base.column] for r in made if isinstance(r[base.column], float)), None)
    whose: Any = b"u%d" % number_ if named else 50 + number_ if mine is None else mine + number_
    if any("no id" in o for o in odd) and rng.random() < 0.3:
        whose = None
    return tuple({**r, base.column: whose} for r in made)


# --- what happens between two versions -----------------------------------------------------------------------
def draw_store(rng: random.Random, reader: str, columns: Sequence[Column], *, plainly: bool = False) -> Store:
    """How a version is written."""
    types = {c.name: _type(rng, reader, c) for c in columns}
    several = rng.choice([2, 3]) if reader in SEVERAL else 1
    kind = SEVERAL.get(reader) or JOINS.get(reader) or reader
    writing: dict[str, Any] = {}
    if kind not in ("csv", "csv.gz", "tsv") or not plainly:
        writing = draw_writing(rng, kind)
    may = kind in ("parquet", "stata", "spss", "zsav", "sas", "polars", "arrow") and several == 1
    return Store(
        reader=reader, types=types, files=several, writing=writing,
        inferred=kind == "pandas" or (may and reader not in JOINS and rng.random() < 0.35),
    )  # fmt: skip


def _type(rng: random.Random, reader: str, column: Column) -> str:
    """A stored type; Spark's own frames have no unsigned and no dictionaries."""
    without = ("uint8", "uint16", "dictionary", "timestamp[s]") if reader == "spark frame" else ()
    return rng.choice([t for t in TYPES[column.label] if t not in without])


def draw_writing(rng: random.Random, kind: str) -> dict[str, Any]:
    """Encoding, compression, marks."""
    match kind:
        case "parquet":
            return {
                "compression": rng.choice(["snappy", "none", "gzip", "zstd"]), "dictionary": rng.random() < 0.5,
                "groups": rng.choice([3, 1 << 20]),
            }  # fmt: skip
        case "csv" | "csv.gz" | "tsv":
            marks = {} if kind == "tsv" else {"separator": rng.choice([",", ";", "|", "tab"])}
            said = rng.random() < 0.5
            more: dict[str, Any] = {"encoding": rng.choice(["utf-8", "latin-1", "utf-16"])} if said else {}
            if said and marks.get("separator") != ",":
                more["decimal"] = rng.choice([".", ","])
            return {
                **marks, **more, "said": said, "points": rng.random() < 0.3, "quotes": rng.random() < 0.2,
                "lines": rng.choice(["lf", "lf", "crlf", "open"]), "level": rng.choice([1, 9]),
            }  # fmt: skip
        case "sqlite":
            return {"texts": rng.random() < 0.4, "doubles": rng.random() < 0.4}
        case "xlsx":
            return {"texts": rng.random() < 0.5}
        case "stata":
            return {"version": rng.choice([15, 14, 12])}
        case "sas":
            return {"version": rng.choice([5, 8])}
    return {}


def ops_of(reader: str) -> tuple[str, ...]:
    """What can happen to tables of this reader."""
    kind = SEVERAL.get(reader) or JOINS.get(reader) or reader
    frame = kind not in FILES
    found: list[str] = ["rewrite", "resort", "other format", *CONTENT]
    if reader in TYPED or kind in TYPED or kind in ("stata", "spss", "zsav"):
        found += ["retype", "retype"]
    found += ["recolumn"]
    if frame:
        return tuple(found)
    found += ["link", "moved folder", "rename", "gone", "broken", "reencode"]
    if reader in SEVERAL:
        found += ["twin link", "twin link", "subset", "grown"]
    if reader in JOINS and reader != "joined person":
        found += ["repeated keys", "repeated keys", "public as private"]
    return tuple(found)


NEEDS_NEW = ("other format", "rename", "subset", "grown", "moved folder")
"""What is handed over is another thing then."""


def draw_sequence(
    rng: random.Random, setting: Setting, reader: str, turn: int, *, spark: bool = False
) -> History:
    """Three versions. `turn` counts the sequences of a reader: what is done to its files, and blank rows at either
    end, are taken in turn, so that no run leaves one of them out."""
    ops = ops_of(reader)
    chosen = [ops[(turn + len(reader)) % len(ops)], rng.choice(ops)]
    if rng.random() < 0.5:
        chosen.reverse()
    odd: list[str] = []
    columns = setting.columns
    size = rng.choice([0, 1, 12, 40]) if rng.random() < 0.15 else rng.randint(8, 30)
    base = tuple(draw_row(rng, columns) for _ in range(size))
    left, right = draw_units(rng, setting, odd)
    place = rng.choice(["first", "last", "middle"])
    blank = turn % 3 == 0 and (reader != "xlsx" or isinstance(base_of(setting.unit), People))
    if blank:
        left, place = _blank(left), ("last", "last", "first")[turn // 3 % 3]
        if base_of(setting.unit).neighbours is Neighbours.REPLACE_ONE:
            right = tuple({**draw_row(rng, columns), **{n: r[n] for n in r if n == "person"}} for r in right)
        else:
            # Whoever is in both tables has the same rows in both: other rows would be one taken away and one added.
            right = _blank(right)
        odd.append(f"blank {place} row")
    step = Step(
        op="first", fresh=True, label="1", store=draw_store(rng, reader, columns, plainly=spark), base=base, left=left,
        right=right, place=place, public=_public(rng, columns), engine=_engine(rng, reader) if spark else None,
        named=rng.random() < 0.15,
    )  # fmt: skip
    steps = [step]
    for i, op in enumerate(chosen):
        step = _next(rng, setting, step, op, i + 2, odd, spark=spark)
        steps.append(step)
    some = setting.asks[:2] if blank else setting.asks
    asked = tuple(rng.sample(some, min(len(some), rng.choice([1, 2, 3]))))
    return History(
        seed=rng.randrange(1 << 30), reader=reader, setting=setting, steps=tuple(steps), asked=asked,
        portable=spark or rng.random() < 0.15, odd=tuple(sorted(set(odd))),
    )  # fmt: skip


def _blank(unit: tuple[Row, ...]) -> tuple[Row, ...]:
    """Somebody who answered nothing; whose row it is stays."""
    return tuple({n: v if n == "person" else None for n, v in row.items()} for row in unit)


def _engine(rng: random.Random, reader: str) -> str | None:
    return None if reader == "spark frame" else rng.choice(["spark", "spark", "duckdb"])


def draw_units(
    rng: random.Random, setting: Setting, odd: list[str]
) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """What the unit has in a version, on both sides."""
    unit = setting.unit
    many = rng.randint(1, unit.size) if isinstance(unit, GroupOf) else 1
    left: tuple[Row, ...] = ()
    right: tuple[Row, ...] = ()
    for i in range(many):
        mine = draw_unit(rng, setting, i, odd)
        way = rng.random()
        if base_of(unit).neighbours is Neighbours.REPLACE_ONE:
            other = mine if way < 0.15 else draw_unit(rng, setting, i + (10 if way < 0.6 else 0), odd)
            left, right = left + mine, right + other
        elif way < 0.85:
            left += mine
        elif way < 0.93:
            left, right = left + mine, right + mine
    return left, right


def _public(rng: random.Random, columns: Sequence[Column]) -> tuple[Row, ...]:
    moved = stores.joined_column(columns)
    return tuple({KEY: k, moved.name: _value(rng, moved)} for k in range(stores.MATCHED))


def _next(
    rng: random.Random, setting: Setting, before: Step, op: str, number_: int, odd: list[str], *, spark: bool
) -> Step:
    """The version that this operation makes of the one before."""
    fresh = op in NEEDS_NEW or not before.store.kind or rng.random() < (0.2 if op in HOSTILE else 0.5)
    label = str(number_) if fresh and rng.random() < 0.5 else before.label
    store, columns = before.store, setting.columns
    step = replace(before, op=op, fresh=fresh, label=label)
    if fresh and spark:
        step = replace(step, engine=_engine(rng, store.reader))
    match op:
        case "retype":
            types = {
                c.name: _type(rng, store.reader, c) if rng.random() < 0.7 else store.types[c.name]
                for c in columns
            }
            store = replace(
                store,
                types=types,
                inferred=store.reader == "pandas" or (store.inferred and rng.random() < 0.5),
            )
        case "resort":
            store = replace(store, order=rng.randrange(1, 1 << 20))
        case "reencode":
            kept = {
                w: store.writing[w]
                for w in ("said", "encoding", "separator", "decimal")
                if w in store.writing
            }
            drawn = draw_writing(rng, store.kind)
            if not fresh or rng.random() < 0.5:
                # What is said of the file stays true of it.
                drawn = {
                    **{
                        w: v
                        for w, v in drawn.items()
                        if w not in ("said", "encoding", "separator", "decimal")
                    },
                    **kept,
                }
            store = replace(store, writing=drawn)
        case "recolumn":
            store = replace(store, columns=rng.randrange(1, 1 << 20), beside=rng.random() < 0.5)
        case "moved folder":
            store = replace(store, folder=f"data{number_}")
        case "rename":
            store = replace(store, name=f"rows_{number_}")
        case "subset" if store.files > 1:
            store = replace(store, files=store.files - 1) if rng.random() < 0.5 else replace(store, files=1)
        case "grown" | "subset":
            store = replace(store, files=store.files + 1)
        case "other format":
            store = _other_format(rng, store, columns, spark=spark)
        case "people change":
            base = list(before.base)
            for _ in range(rng.choice([1, 3])):
                base.insert(rng.randrange(len(base) + 1), draw_row(rng, columns))
            if rng.random() < 0.5:
                base = base[2:]
            step = replace(step, base=tuple(base))
        case "unit changes":
            left, right = draw_units(rng, setting, odd)
            step = replace(step, left=left, right=right)
        case "repeated keys":
            met = [r for r in before.public if r[KEY] in {u[KEY] for u in before.left}]
            twice = [rng.choice(met or before.public)] * rng.choice([1, 5, 50])
            step = replace(step, public=(*before.public, *twice))
    if store.reader not in JOINS:
        step = replace(step, public=before.public)
    if op == "twin link":
        step = replace(step, place="first")
    # Where the version has a new name the question itself is read again; else it comes from the record.
    named = not fresh or label == before.label or rng.random() < 0.15
    return replace(step, store=store, named=named, again=not named or rng.random() < 0.6)


def _other_format(rng: random.Random, store: Store, columns: Sequence[Column], *, spark: bool) -> Store:
    """The same rows in files, or frames, of another kind."""
    if store.reader in JOINS:
        other = {"joined parquet": "joined csv", "joined csv": "joined parquet"}.get(
            store.reader, "joined person"
        )
    elif spark:
        other = rng.choice([r for r in ("parquet", "csv", "arrow") if r != store.reader])
    elif not store.kind:
        other = rng.choice([r for r in FRAMES if r != store.reader])
    else:
        other = rng.choice([r for r in FILES if r not in (store.reader, store.kind)])
    return replace(draw_store(rng, other, columns, plainly=spark), name=store.name, folder=store.folder)


def same_rows(one: Step, other: Step) -> bool:
    """Have all but the unit the same rows in both?"""

    def listed(rows_: Sequence[Row]) -> list[str]:
        return sorted(repr(sorted(r.items())) for r in rows_)

    joined = one.store.reader in JOINS
    return listed(one.base) == listed(other.base) and (not joined or one.public == other.public)


def shrunk(sequence: History) -> list[History]:
    """Smaller ones to try: fewer questions, fewer rows that both have."""
    found = []
    if len(sequence.asked) > 1:
        found += [replace(sequence, asked=(a,)) for a in sequence.asked]
    for half in (0, 1):
        steps = tuple(replace(s, base=s.base[half::2]) for s in sequence.steps)
        if any(s.base for s in sequence.steps) and len({len(s.base) for s in sequence.steps}) == 1:
            found.append(replace(sequence, steps=steps))
    if len(sequence.steps) > 2:
        found.append(replace(sequence, steps=sequence.steps[:-1]))
    return found
