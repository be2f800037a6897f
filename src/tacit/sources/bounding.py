"""At most m rows of each person, and at most g groups, chosen in the engine by a keyed hash.

The rows of a person are put in the order of a hash of (key, row), equal hashes in the order of the rows' values,
and the first m are kept. What is kept of one person is a function of that person's rows and the key alone, whoever
else is in the table: two tables that differ in one person differ, after bounding, in that person's at most m rows
and nowhere else (docs/theory/contribution-bounding.md). Rows without a person are not used. The bound holds for any
key; that it is secret keeps people from choosing which of their rows count.

The bounded rows are kept in the engine and serve every later question. In DuckDB declared categories are kept as
small numbers, which makes the sort narrow and later questions fast.
"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Sequence
from typing import Any

from tacit.errors import InvalidParameter
from tacit.sources import door
from tacit.sources.axes import Axis
from tacit.sources.compiling import Reader
from tacit.sources.digests import keyed, words
from tacit.sources.schema import Category, Number
from tacit.sources.selection import bytewise
from tacit.sources.sql import text_of_query
from tacit.sources.tables import Table, _check_key, people_of

__all__ = ["bounded_relation", "reader_of"]

HASH, RANK = "__tacit_hash", "__tacit_rank"
NARROW = 8


def bounded_relation(table: Table, axes: Sequence[Axis] = (), *, key: bytes | None = None) -> Any:
    """The engine table that a question grouped by these axes may read: bounded once, then reused."""
    unit = people_of(table.unit)
    if unit is None:
        return table.relation
    if key is None:
        raise InvalidParameter(
            parameter="key",
            value=None,
            must="be the curator's secret",
            hint="people need contribution bounding",
        )
    _check_key(key)
    table.ready()
    limited = bool(axes) and unit.groups is not None and unit.groups < unit.at_most
    # Rows that were kept serve as long as the files are what they were.
    all_rows = (table.stamp(), key, ())
    place = (*all_rows[:2], tuple(axes)) if limited else all_rows
    if all_rows not in table.bounded:
        rows = _first_rows if table.portable else _first_rows_in_duckdb
        table.bounded[all_rows] = door.rows(lambda: rows(table, key, unit.at_most), source=table.source)
    if place not in table.bounded:
        assert unit.groups is not None
        groups = unit.groups
        held = table.bounded[all_rows]
        table.bounded[place] = door.rows(
            lambda: _kept(table, _first_groups(table, held, axes, key, groups)), source=table.source
        )
    return table.bounded[place]


def reader_of(table: Table, relation: Any) -> Reader:
    """A reader that knows which categories the relation holds as numbers."""
    coded = frozenset() if relation is table.relation or table.portable else _coded(table)
    return Reader(relation, table.schema, person=table.person, engine=table.dialect, coded=coded)


def _coded(table: Table) -> frozenset[str]:
    """Declared lists of words; not the person's own column, whose values tell people apart.

    Nor a list with a NUL, which no type of DuckDB can name.
    """
    return frozenset(
        name
        for name, column in table.schema.items()
        if isinstance(column, Category)
        and column.values is not None
        and column.of_words
        and not any("\0" in str(word) for word in column.values)
        and name != table.person
    )


def _kept(table: Table, relation: Any) -> Any:
    """The rows, computed once and held by the engine until the table is closed."""
    if table.engine != "duckdb":
        held, drop = table.dialect.keep(relation)
        if drop is not None:
            table.on_close(drop)
        return held
    backend, name = relation.get_backend(), _new_table(table, relation.get_backend())
    backend.con.execute(f"CREATE TEMP TABLE {name} AS {text_of_query(backend, relation)}")
    return bytewise(backend.table(name), table.dialect)


def _new_table(table: Table, backend: Any) -> str:
    name = f"__tacit_{secrets.token_hex(8)}"
    table.on_close(lambda: backend.con.execute(f"DROP TABLE IF EXISTS {name}"))
    return name


def _first_rows_in_duckdb(table: Table, key: bytes, at_most: int) -> Any:
    """One sort by (person, hash) with narrow rows; ties at the limit are settled by the rows' values.

    Where the values are a few bytes they are part of the sort, since then equal rows are common; where they are
    wide, ties are few, and a second sort of the people concerned is cheaper than a wide one of all.

    The rank filter stands in a CASE because DuckDB otherwise turns it into one heap for each person, which is many
    times slower and needs many times the memory.
    """
    assert table.person is not None
    backend = table.relation.get_backend()
    backend._run_pre_execute_hooks(table.relation)
    coded, columns = _coded(table), sorted(table.columns)
    seed = words(key, "tacit bounding", 1)[0]
    person, listed = _name(table.person), ", ".join(map(_name, columns))
    hashed = f"hash({seed}::BIGINT, {listed})"
    types = {c: table.relation[c].type() for c in columns}

    def value(column: str) -> str:
        if column in coded:
            return _code(table, column)
        # Bytes that are no text would stop the engine where it keeps them.
        return f"__tacit_sound({_name(column)})" if types[column].is_string() else _name(column)

    values = ", ".join(f"{value(c)} AS {_name(c)}" for c in columns)
    somebody = f"{person} IS NOT NULL" + (
        f" AND NOT isnan({person})" if types[table.person].is_floating() else ""
    )
    source = (
        f"SELECT * FROM (SELECT {values} FROM ({text_of_query(backend, table.relation)})) WHERE {somebody}"
    )
    name = _new_table(table, backend)

    def first(function: str, order: str, rows: str) -> str:
        rank = f"{function}() OVER (PARTITION BY {person} ORDER BY {order})"
        ranked = f"SELECT {listed}, {rank} AS {RANK} FROM (SELECT *, {hashed} AS {HASH} FROM ({rows}))"
        return f"SELECT {listed} FROM ({ranked}) WHERE CASE WHEN {RANK} <= {at_most} THEN TRUE ELSE FALSE END"

    run = backend.con.execute
    if _key_bytes(table, coded) <= NARROW:
        run(f"CREATE TEMP TABLE {name} AS {first('row_number', f'{HASH}, {listed}', source)}")
        return bytewise(backend.table(name), table.dialect)
    # rank() keeps all rows that tie for the last place: equal rows, or different rows with equal hashes.
    run(f"CREATE TEMP TABLE {name} AS {first('rank', HASH, source)}")
    many, settled = _new_table(table, backend), _new_table(table, backend)
    run(
        f"CREATE TEMP TABLE {many} AS SELECT {person} FROM {name} GROUP BY {person} HAVING count(*) > {at_most}"
    )
    if run(f"SELECT count(*) FROM {many}").fetchone()[0]:
        among = f"{person} IN (SELECT {person} FROM {many})"
        chosen = first("row_number", f"{HASH}, {listed}", f"SELECT * FROM {name} WHERE {among}")
        run(f"CREATE TEMP TABLE {settled} AS {chosen}")
        run(f"DELETE FROM {name} WHERE {among}")
        run(f"INSERT INTO {name} SELECT {listed} FROM {settled}")
        run(f"DROP TABLE {settled}")
    run(f"DROP TABLE {many}")
    return bytewise(backend.table(name), table.dialect)


def _key_bytes(table: Table, coded: frozenset[str]) -> int:
    """How much wider the sort becomes if values settle ties at once: a few bytes for flags and short lists."""
    width = 0
    for name in table.schema:
        dtype = table.relation[name].type()
        fixed = dtype.is_boolean() or dtype.is_integer() or dtype.is_floating() or dtype.is_date()
        if name != table.person:
            width += (
                2 if name in coded else getattr(dtype, "nbytes", 4 if dtype.is_date() else 1) if fixed else 32
            )
    return width


def _code(table: Table, name: str) -> str:
    """A declared category as its place in the list; null where it is missing."""
    column = table.schema[name]
    assert isinstance(column, Category)
    assert column.values is not None
    values = ", ".join("'" + str(v).replace("'", "''") + "'" for v in column.values)
    kind, stored = table.relation[name].type(), _name(name)
    if kind.is_floating() or kind.is_decimal():
        # As where nobody is bounded: a double that is a whole number is its key.
        whole = f"CAST({stored} AS DOUBLE)"
        stored = f"CASE WHEN abs({whole}) < {1 << 53} AND {whole} = floor({whole}) THEN CAST({whole} AS BIGINT) END"
    stored = stored if kind.is_string() else f"CAST({stored} AS VARCHAR)"
    code = f"enum_code(TRY_CAST({stored} AS ENUM({values})))"
    return (
        code if column.missing is None else f"coalesce({code}, {list(column.values).index(column.missing)})"
    )


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _first_rows(table: Table, key: bytes, at_most: int) -> Any:
    """The same in any engine that Ibis speaks to: ordered by the hash, then by the values."""
    import ibis

    assert table.person is not None
    columns = sorted(table.columns)
    given = table.relation
    # Bytes that are no text would stop the engine where it keeps them; without a text there is no person either.
    source = given.mutate(
        **{c: table.dialect.sound(given[c]) for c in columns if given[c].type().is_string()}
    )
    reader = Reader(source, table.schema, person=table.person, engine=table.dialect)
    declared = [reader.clean(c) if _is_list(table, c) else source[c] for c in columns]
    grids = [_grid(table, c) for c in columns]
    # The hash is a column of its own before the window orders by it.
    hashed = source.mutate(**{HASH: _keyed_hash(table, declared, grids, key, "tacit bounding")})
    hashed = hashed.filter(hashed[table.person].notnull())
    if hashed[table.person].type().is_floating():
        hashed = hashed.filter(~hashed[table.person].isnan())
    rank = ibis.row_number().over(group_by=table.person, order_by=_order([HASH, *columns]))
    ranked = hashed.mutate(**{RANK: rank})
    return _kept(
        table, ranked.filter(ibis.ifelse(ranked[RANK] < at_most, True, False)).select(*table.columns)
    )


def _first_groups(table: Table, relation: Any, axes: Sequence[Axis], key: bytes, groups: int) -> Any:
    """Of each person only the rows in the first `groups` cells, in the order of a keyed hash of the cell."""
    import ibis

    assert table.person is not None
    reader = reader_of(table, relation)
    names = [f"__tacit_k{i}" for i in range(len(axes))]
    cells = relation.mutate(**{n: reader.key(a) for n, a in zip(names, axes, strict=True)})
    for name in names:
        cells = cells.filter(cells[name].notnull())
    if table.portable:
        values = [cells[n] for n in (table.person, *names)]
        order = _keyed_hash(
            table, values, [_grid(table, table.person)] + [1.0] * len(names), key, "tacit groups"
        )
    else:
        order = table.dialect.row_hash(cells, [table.person, *names], words(key, "tacit groups", 1)[0])
    hashed = cells.mutate(**{HASH: order})
    # The cell itself breaks ties, so that equal hashes of two cells cannot let a third one in.
    rank = ibis.dense_rank().over(group_by=table.person, order_by=_order([HASH, *names]))
    ranked = hashed.mutate(**{RANK: rank})
    return ranked.filter(ibis.ifelse(ranked[RANK] < groups, True, False)).select(*table.columns)


def _order(names: Sequence[str]) -> list[Any]:
    """Rising, nulls first: engines have different habits."""
    import ibis

    return [ibis.asc(name, nulls_first=True) for name in names]


def _is_list(table: Table, name: str) -> bool:
    if name not in table.schema:
        return False
    column = table.schema[name]
    return isinstance(column, Category) and column.values is not None and name != table.person


def _grid(table: Table, name: str) -> float:
    """How many parts of one are told apart in a hash of doubles; a power of two."""
    if name not in table.schema:
        return 1024.0
    column = table.schema[name]
    return float(1 / column.spacing) if isinstance(column, Number) and column.bounded else 1024.0


def _keyed_hash(table: Table, values: Sequence[Any], grids: Sequence[float], key: bytes, purpose: str) -> Any:
    """A hash of the key and of the values as text, the same text in every engine.

    Doubles enter as whole steps, times of day not at all: rows that agree in what enters are put in the order of
    their values afterwards, so that nothing rests on the text telling all rows apart.
    """
    import ibis

    texts = [_text(table, x, grid).fill_null("\x1e") for x, grid in zip(values, grids, strict=True)]
    secret = ibis.literal(keyed(key, purpose).hexdigest())
    return table.dialect.keyed_hash(ibis.literal("\x1f").join([secret, *texts]))


def _text(table: Table, x: Any, grid: float) -> Any:
    """The same text of a value in every engine."""
    import ibis

    dtype = x.type()
    if dtype.is_string():
        return x
    if dtype.is_boolean():
        return x.cast("int32").cast("string")
    if dtype.is_date() or dtype.is_timestamp():
        day = x if dtype.is_date() else table.dialect.day_of(x)
        # Spark counts days by way of moments, which end before its days do.
        first, last = ibis.literal(datetime.date.min), ibis.literal(datetime.date.max)
        day = ibis.cases((day < first, first), (day > last, last), else_=day)
        return table.dialect.days(day).cast("int64").cast("string")
    if dtype.is_floating():
        steps = x.cast("float64") * grid
        most = float(1 << 52)
        inside = ibis.cases(
            (x.isnan(), ibis.null("float64")), (steps >= most, most), (steps <= -most, -most), else_=steps
        )
        return inside.floor().cast("int64").cast("string")
    return x.cast("string")
