"""A table joined to others: each of its rows gets the columns of the row, or rows, with its key.

Two kinds of join bound the effect of one unit; tacit refuses any other.

- **public**: the other table describes nobody (prices of towns, names of codes), and has each key at most once.
The public table is checked alone, before anything is charged, and again on every joined copy. Each row stays
one row, and gets values that depend on its own key. - **same person**: the keys contain the person's column,
and people are protected. A row meets rows of its own person only, in any number; the join comes before the
bound on the rows of a person.

Rows without a match keep their place, with missing values. Keys are compared as text: 3, 3.0 and "3" are one key.
"""

from __future__ import annotations

import datetime
import glob
import hashlib
import math
import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from tacit.errors import BadData
from tacit.sources import error_boundary, spark
from tacit.sources.compiling import bytewise
from tacit.sources.engines import engine_of, name_of
from tacit.sources.facts import Facts, Opened, Wish
from tacit.sources.opening import databases, statfiles
from tacit.sources.opening import statfiles as workbooks
from tacit.sources.opening.files import Files, Joined, _name
from tacit.sources.opening.textfiles import names_in

# The names of all columns of files, from headers, footers and metadata: no row is read.


def names_of(asked: Files) -> list[str]:
    """The named columns, in the order of the first file, without those in the names of folders.

    If the separator of a text file is not given, it is the one that gives the most columns.
    """
    if asked.kind in ("Stata", "SPSS", "SAS"):
        return statfiles.names_of(asked)
    if asked.kind == "Excel":
        return workbooks.names_of_workbook(asked)
    if asked.kind in ("DuckDB", "SQLite"):
        return databases.names_of(asked)
    if not asked.is_parquet:
        return [name for name in names_in(asked)[1] if name]
    path = asked.found()[0]

    def found() -> list[str]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            return [name for name in file.schema_arrow.names if name]

    return error_boundary.metadata(
        found, source=asked.path, problem="is not a readable Parquet file",
        hint="is it another kind of file, or was it cut off?",
    )  # fmt: skip


WHY = "one row of it could be joined to many people, and a change of one row would then affect all of them"
Opener = Callable[[Any, Wish, str | None], Opened]


def _same(one: Any, other: Any) -> bool:
    """Whether these are one table, or share a file under any names. Two sheets of a file are two tables."""
    parts = [isinstance(d, Files) and (d.sheet or d.view) for d in (one, other)]
    if all(parts) and parts[0] != parts[1]:
        return False
    return one is other or bool(_files(one) & _files(other))


def _files(data: Any) -> set[tuple[int, int]]:
    """The files of a table as the disk knows them; empty for a table in memory or a missing one."""
    if not isinstance(data, str | os.PathLike):
        return set()
    places = getattr(data, "paths", (os.fspath(data),))
    if getattr(data, "pattern", False):
        places = glob.glob(os.fspath(data))
    found = set()
    for place in places:
        with suppress(OSError, ValueError):
            state = os.stat(Path(place).expanduser())
            found.add((state.st_dev, state.st_ino))
    return found


def _columns(data: Any) -> set[str]:
    """All columns of a table, from its metadata."""
    if isinstance(data, Joined):
        return _columns(data.table) | _columns(data.other)
    if isinstance(data, str | os.PathLike):
        asked = data if isinstance(data, Files) else Files(path=os.fspath(data))
        return {*names_of(asked), *asked.partitions}
    if hasattr(type(data), "collect_schema"):
        return set(data.collect_schema().names())
    return set(data.column_names if hasattr(type(data), "column_names") else data.columns)


def _known(data: Any) -> set[str]:
    return error_boundary.metadata(
        lambda: _columns(data), source=_name(data), problem="cannot be read", hint="check its columns"
    )


def open_joined(
    data: Joined, wish: Wish, engine: str | None, *, person: str | None, opener: Opener
) -> Opened:
    """Both tables in one engine, to which the other one is copied.

    If one of them changes, this function opens both again, so that its checks apply to every copy.
    """
    source = _name(data.other)
    if not data.public and (person is None or person not in data.on):
        raise BadData(
            source=source, problem=f"is neither public nor joined by the person who is protected: {WHY}",
            hint='say public = true if it describes nobody; else protect people, and join "on" their column too',
        )  # fmt: skip
    if data.public and any(_same(one, data.other) for one in data.private):
        # A public table is read before the charge, and what is wrong with it is said.
        raise BadData(
            source=source, problem="is the table whose people are protected, and cannot be public",
            hint="join it by the person who is protected, or leave the join out",
        )  # fmt: skip
    have, theirs = _known(data.table), _known(data.other)
    if clash := sorted((set(wish.columns) & have & theirs) - set(data.on)):
        raise BadData(
            source=source, problem=f"has the column {clash[0]!r}, and so has the table that it is joined to",
            hint="rename it in one of them",
        )  # fmt: skip
    from_other = tuple(n for n in wish.columns if n in theirs and n not in data.on)
    mine = tuple(dict.fromkeys([*(n for n in wish.columns if n not in from_other), *data.on]))
    left = opener(data.table, replace(wish, columns=mine), engine)
    right: Opened | None = None
    try:
        here = engine_of(left.relation).name
        if here not in ("duckdb", "pyspark"):
            raise BadData(
                source=left.source,
                problem=f"lives in {here}, where nothing is joined",
                hint="use DuckDB or Spark",
            )
        right = opener(data.other, replace(wish, columns=(*data.on, *from_other), spark=False), None)
        return error_boundary.metadata(
            lambda: _put_together(data, left, right, from_other, wish),
            source=source, problem="cannot be joined", hint="check the columns that both tables are joined on",
        )  # fmt: skip
    except BaseException:
        for one in (left, right):
            if one is not None and one.close:
                one.close()
        raise


def _put_together(data: Joined, left: Opened, right: Opened, more: tuple[str, ...], wish: Wish) -> Opened:
    other = _Other(left.relation, right, data.on, more)
    if data.public:
        # It tells of nobody: it is read before the charge, and what is wrong with it is said.
        other.bring(tell=not isinstance(data.other, str | os.PathLike))
        if other.repeats():
            raise BadData(
                source=_name(data.other), hint="give each key one row",
                problem=f"has several rows with one key ({', '.join(data.on)}): a join with it would multiply rows",
            )  # fmt: skip
        told = (
            f"the joined table {_name(data.other)} is public: it tells of nobody whom the other one is about"
        )
    keys = {f"__tacit_j{i}": _key(left.relation, name) for i, name in enumerate(data.on)}
    mine = left.relation.mutate(**keys)
    theirs = other.relation
    joined = mine.left_join(theirs, [mine[k] == theirs[f"{k}r"] for k in keys])
    columns = {n: joined[n] for n in left.relation.columns if n in wish.columns or n in data.on}
    relation = joined.select(**columns, **{n: joined[f"__tacit_r_{i}"] for i, n in enumerate(more)})

    def load() -> None:
        if left.load is not None:
            left.load()
        if not data.public:
            other.bring()

    def now() -> tuple[Any, ...]:
        return tuple(s for one in (left, right) if one.now is not None for s in one.now())

    def close() -> None:
        for end in (other.close, right.close, left.close):
            if end is not None:
                end()

    facts = Facts(
        state=tuple(s for one in (left, right) if one.now is not None for s in one.facts.state),
        protected=(*left.facts.protected, *(() if data.public else right.facts.protected)),
        # A row that is replaced stays one row of a public join; a person's rows are counted by no public number.
        counted=left.facts.counted,
        counted_if=left.facts.counted_if,
        made_up=left.facts.made_up and (data.public or right.facts.made_up),
        single=(*left.facts.single, *((_name(data.other),) if data.public else ())),
        public=(*left.facts.public, *((other.content,) if data.public else ())),
    )
    return replace(
        left, relation=relation, close=close, load=load, facts=facts, now=now,
        conditions=(*left.conditions, *right.conditions, *((told,) if data.public else ())),
    )  # fmt: skip


def _key(relation: Any, name: str) -> Any:
    """A key as text: a whole number without a point, a day in ISO form; missing for any other value."""
    engine = engine_of(relation)
    x = relation[name]
    kind = x.type()
    if kind.is_string():
        return engine.sound(engine.bytewise(x))
    if not (kind.is_numeric() or kind.is_boolean() or kind.is_date()):
        raise BadData(
            source="the join", problem=f"is on the column {name!r}, which is stored as {kind}",
            hint="join on texts, whole numbers or days",
        )  # fmt: skip
    if kind.is_floating() or kind.is_decimal():
        return engine.rounded_whole(x.cast("float64")).cast("string")
    return x.cast("string")


def digest_of_rows(names: Sequence[str], rows: Any) -> str:
    """The identity of a public table: the names of its columns, and its rows in any order.

    Numbers count by value, in any type, as far as all types are read alike: below 2^53. A value other than a number
    includes its kind, since a day or a decimal differs from its text. It is not keyed: anybody may know a public
    table.
    """
    columns = [rows.column(i).to_pylist() for i in range(rows.num_columns)]
    each = sorted(
        hashlib.sha256(repr([*map(_comparable, row)]).encode()).digest() for row in zip(*columns, strict=True)
    )
    # Columns may come in any order.
    state = hashlib.sha256(repr(list(names)).encode())
    for one in each:
        state.update(one)
    return state.hexdigest()


def _comparable(value: Any) -> Any:
    if isinstance(value, float | Decimal) and math.isfinite(value):
        exact = Fraction(value)
        return int(exact) if exact.denominator == 1 and abs(exact) < 1 << 53 else exact
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    return ("datetime" if isinstance(value, datetime.datetime) else type(value).__name__, str(value))


class _Other:
    """The other table, copied into the engine of the first: keys as text, and the wanted columns."""

    def __init__(self, relation: Any, opened: Opened, on: tuple[str, ...], more: tuple[str, ...]) -> None:
        self._backend, self._opened = relation.get_backend(), opened
        self._spark = self._backend.name != "duckdb"
        for one in (relation, opened.relation):
            engine_of(one).prepare(one)
        keys = {f"__tacit_j{i}r": _key(opened.relation, name) for i, name in enumerate(on)}
        values = {f"__tacit_r_{i}": opened.relation[name] for i, name in enumerate(more)}
        self._chosen = opened.relation.select(**keys, **values)
        self._keys = tuple(keys)
        self._name = f"__tacit_other_{secrets.token_hex(6)}"
        self._place = spark.Place(self._backend._session) if self._spark else None
        self._loaded = opened.load is None
        self._columns = (*on, *more)
        self.content = ""
        self._schema = self._chosen.limit(0).to_pyarrow().schema
        self.relation = self._shown(self._schema.empty_table())

    def _shown(self, rows: Any) -> Any:
        if self._place is not None:
            return self._place.fill(rows.to_batches(), self._schema)
        incoming = f"{self._name}_in"
        self._backend.con.register(incoming, rows)
        self._backend.con.execute(
            f"CREATE OR REPLACE TEMP TABLE {self._name} AS SELECT * FROM {name_of(incoming)}"
        )
        self._backend.con.unregister(incoming)
        # Compared by bytes, whatever collation the session has: it could make two keys one.
        return bytewise(self._backend.table(self._name), engine_of(self._opened.relation))

    def bring(self, *, tell: bool = False) -> None:
        """Its rows, in their present state, and a digest of them for a public table without a name (`content`)."""
        if not self._loaded and self._opened.load is not None:
            self._opened.load()
            self._loaded = True
        try:
            rows = self._chosen.to_pyarrow()
        except Exception:
            if self._opened.rescue is None:
                raise
            self._opened.rescue()
            rows = self._chosen.to_pyarrow()
        rows = rows.cast(self._schema)
        self._shown(rows)
        if tell:
            self.content = digest_of_rows(self._columns, rows)

    def repeats(self) -> bool:
        """Whether it has two rows with one key. Rows without a whole key match nothing."""
        found = self.relation.drop_null(list(self._keys))
        counted = found.group_by(list(self._keys)).aggregate(n=found.count())
        return bool(counted.filter(counted.n > 1).count().to_pyarrow().as_py())

    def close(self) -> None:
        """Takes the copy away."""
        if self._place is not None:
            self._place.close()
        else:
            error_boundary.rows(
                lambda: self._backend.con.execute(f"DROP TABLE IF EXISTS {self._name}"),
                source="the joined table",
            )
