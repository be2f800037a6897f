"""At most m rows of each person, of each value of a column, and in g groups, chosen by a keyed hash of declared values.

Turns every row first into its declared values: clamped, on the grid, or missing. The
rows of a person are put in the order of a hash of (key, person, declared values), equal hashes in the order of the
declared values, and the first m are kept. The kept rows of a person depend on that person's declared values and the
key alone. They do not depend on the type or the format of a stored column, which another row can decide, nor on
the engine's casts to text, undeclared columns, the order of rows, or other people. Two tables that differ in
one person differ, after bounding, in that person's at most m rows and nowhere else, in every version of the
table (docs/theory/contribution-bounding.md, docs/theory/several-versions.md). Rows without a person are not
used. The bound holds for any key. A secret key keeps people from choosing which of their rows count.

The bounded rows are kept in the engine, as declared, and serve every later question. In DuckDB declared categories are
kept as small numbers, which makes the sort narrow and later questions fast.
"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Sequence
from typing import Any

from tacit.errors import InvalidParameter
from tacit.sources import error_boundary
from tacit.sources.axes import Axis
from tacit.sources.columns import Category, Measured
from tacit.sources.compiling import Reader, bytewise, in_steps
from tacit.sources.engines import text_of_query
from tacit.sources.tables import Table, _check_key, hash_words, keyed, people_of

HASH, RANK, EACH = "__tacit_hash", "__tacit_rank", "__tacit_each"
NUMBER, TEXT = "__tacit_id_number", "__tacit_id_text"
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
        rows = _first_rows if _plain(table) else _first_rows_in_duckdb
        table.bounded[all_rows] = error_boundary.rows(
            lambda: rows(table, key, unit.at_most), source=table.source
        )
    if place not in table.bounded:
        assert unit.groups is not None
        groups = unit.groups
        held = table.bounded[all_rows]
        table.bounded[place] = error_boundary.rows(
            lambda: _kept(table, _first_groups(table, held, axes, key, groups)), source=table.source
        )
    return table.bounded[place]


def reader_of(table: Table, relation: Any, *, kept_of: Any = None) -> Reader:
    """A reader that knows the categories which the relation holds as numbers; `kept_of`: some rows of that one."""
    coded = frozenset() if (relation if kept_of is None else kept_of) is table.relation else _coded(table)
    return Reader(relation, table.schema, person=table.person, engine=table.dialect, coded=coded)


def _plain(table: Table) -> bool:
    """Whether Ibis alone bounds the rows: equally in every engine, or by two limits one after the other."""
    unit = people_of(table.unit)
    return table.portable or (unit is not None and unit.each is not None)


def _coded(table: Table) -> frozenset[str]:
    """Declared lists of words, except the person's own column, whose values identify people.

    Not for a list with a NUL either, which no type of DuckDB can name. Other engines, and portable bounding,
    have the words.
    """
    if _plain(table):
        return frozenset()
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


def _declared(table: Table) -> Any:
    """The rows that have a person, with declared values in each declared column; the person's column is unchanged.

    A category for coding stays a text, and its list turns it into a place. The person's column may be
    declared, too. Its declared value is the same in all rows of a person, and is made from the stored one at
    reading.
    """
    assert table.person is not None
    given, coded = table.relation, _coded(table)
    reader = Reader(given, table.schema, person=table.person, engine=table.dialect)

    def value(name: str) -> Any:
        if name in coded:
            return reader.stored(name)
        x = given[name] if name == table.person else reader.clean(name)
        # Bytes that are no text would stop the engine where it keeps them; without a text there is no person either.
        return table.dialect.sound(x) if x.type().is_string() else x

    rows = given.select(**{name: value(name) for name in table.columns})
    rows = rows.filter(rows[table.person].notnull())
    return rows.filter(~rows[table.person].isnan()) if rows[table.person].type().is_floating() else rows


def _first_rows_in_duckdb(table: Table, key: bytes, at_most: int) -> Any:
    """One sort by (person, hash) with narrow rows; at the limit, the rows' values break ties.

    If the values have a few bytes they are part of the sort, because equal rows are then common. If they are
    wide, ties are few, and a second sort of the people concerned is cheaper than a wide sort of all.

    The rank filter stands in a CASE because DuckDB otherwise makes one heap for each person, which takes many
    times the time and the memory.
    """
    from tacit.sources.kept import held_rows

    held = held_rows(table, key, lambda: _sorted_in_duckdb(table, key, at_most))
    return bytewise(held, table.dialect)


def _sorted_in_duckdb(table: Table, key: bytes, at_most: int) -> str:
    """The name of a temporary table with these rows."""
    assert table.person is not None
    backend = table.relation.get_backend()
    backend._run_pre_execute_hooks(table.relation)
    coded, columns = _coded(table), sorted(table.columns)
    seed = hash_words(key, "tacit bounding", 1)[0]
    person, listed = _name(table.person), ", ".join(map(_name, columns))
    others = [c for c in columns if c != table.person]
    forms = {c: f"__tacit_form{i}" for i, c in enumerate(others) if c not in coded}
    hashed = ", ".join([NUMBER, TEXT, *(forms.get(c) or _name(c) for c in others)])
    order = ", ".join([HASH, *(f"{_name(c)} NULLS FIRST" for c in others)])
    name = _new_table(table, backend)

    def first(function: str, order: str, rows: Any, codes: bool) -> str:
        """The rows up to the limit of each person; `codes`: categories are still words."""
        number, text = _person_form(table, rows[table.person])
        made = {forms[c]: _form(table, c, rows[c]) for c in forms}
        source = text_of_query(backend, rows.mutate(**{NUMBER: number, TEXT: text}, **made))
        values = ", ".join(
            f"{_code(table, c)} AS {_name(c)}" if codes and c in coded else _name(c) for c in columns
        )
        more = ", ".join([NUMBER, TEXT, *forms.values()])
        plain = f"SELECT {values}, {more} FROM ({source})"
        ready = f"SELECT {listed}, hash({seed}::BIGINT, {hashed}) AS {HASH} FROM ({plain})"
        rank = f"{function}() OVER (PARTITION BY {person} ORDER BY {order})"
        ranked = f"SELECT {listed}, {rank} AS {RANK} FROM ({ready})"
        return f"SELECT {listed} FROM ({ranked}) WHERE CASE WHEN {RANK} <= {at_most} THEN TRUE ELSE FALSE END"

    run, rows = backend.con.execute, _declared(table)
    if _key_bytes(table, rows, coded) <= NARROW:
        run(f"CREATE TEMP TABLE {name} AS {first('row_number', order, rows, True)}")
        return name
    # rank() keeps all rows that tie for the last place: equal rows, or different rows with equal hashes.
    run(f"CREATE TEMP TABLE {name} AS {first('rank', HASH, rows, True)}")
    many, settled = _new_table(table, backend), _new_table(table, backend)
    run(
        f"CREATE TEMP TABLE {many} AS SELECT {person} FROM {name} GROUP BY {person} HAVING count(*) > {at_most}"
    )
    if run(f"SELECT count(*) FROM {many}").fetchone()[0]:
        kept, tied = bytewise(backend.table(name), table.dialect), backend.table(many)
        among = kept.semi_join(tied, kept[table.person] == tied[table.person])
        run(f"CREATE TEMP TABLE {settled} AS {first('row_number', order, among, False)}")
        run(f"DELETE FROM {name} WHERE {person} IN (SELECT {person} FROM {many})")
        run(f"INSERT INTO {name} SELECT {listed} FROM {settled}")
        run(f"DROP TABLE {settled}")
    run(f"DROP TABLE {many}")
    return name


def _key_bytes(table: Table, rows: Any, coded: frozenset[str]) -> int:
    """The extra width of the sort if values decide ties at once: a few bytes for flags and short lists."""
    width = 0
    for name in table.schema:
        dtype = rows[name].type()
        fixed = dtype.is_boolean() or dtype.is_integer() or dtype.is_floating() or dtype.is_date()
        if name != table.person:
            width += (
                2 if name in coded else getattr(dtype, "nbytes", 4 if dtype.is_date() else 1) if fixed else 32
            )
    return width


def _code(table: Table, name: str) -> str:
    """The text of a declared category as its place in the list; null for a missing value."""
    column = table.schema[name]
    assert isinstance(column, Category)
    assert column.values is not None
    values = ", ".join("'" + str(v).replace("'", "''") + "'" for v in column.values)
    code = f"enum_code(TRY_CAST({_name(name)} AS ENUM({values})))"
    return (
        code if column.missing is None else f"coalesce({code}, {list(column.values).index(column.missing)})"
    )


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _first_rows(table: Table, key: bytes, at_most: int) -> Any:
    """The same in any engine that Ibis speaks to: ordered by the hash, then by the values."""
    import ibis

    assert table.person is not None
    rows = _declared(table)
    others = [c for c in sorted(table.columns) if c != table.person]
    forms = [_form(table, c, rows[c]) for c in others]
    # The hash is a column of its own before the window orders by it.
    hashed = rows.mutate(
        **{
            HASH: _keyed_hash(
                table, [*_person_form(table, rows[table.person]), *forms], key, "tacit bounding"
            )
        }
    )
    unit = people_of(table.unit)
    limits: list[tuple[list[str], int]] = [([table.person], at_most)]
    if unit is not None and unit.each is not None:
        column, most = unit.each
        # First within each declared value of the column, then of what is left: both are functions of one's own rows.
        hashed = hashed.mutate(**{EACH: _form(table, column, hashed[column])})
        limits.insert(0, ([table.person, EACH], most))
    for among, most in limits:
        rank = ibis.row_number().over(group_by=among, order_by=_order([HASH, *others]))
        ranked = hashed.mutate(**{RANK: rank})
        hashed = ranked.filter(ibis.ifelse(ranked[RANK] < most, True, False)).drop(RANK)
    return _kept(table, hashed.select(*table.columns))


def _first_groups(table: Table, relation: Any, axes: Sequence[Axis], key: bytes, groups: int) -> Any:
    """The rows of each person in the first `groups` cells, in the order of a keyed hash of the cell."""
    import ibis

    assert table.person is not None
    reader = reader_of(table, relation)
    names = [f"__tacit_k{i}" for i in range(len(axes))]
    found = {n: reader.key(a) for n, a in zip(names, axes, strict=True)}
    # An index is of 64 bits, however few the column's own values need.
    cells = relation.mutate(**{n: k if k.type().is_string() else k.cast("int64") for n, k in found.items()})
    for name in names:
        cells = cells.filter(cells[name].notnull())
    number, text = _person_form(table, cells[table.person])
    if table.portable:
        order = _keyed_hash(table, [number, text, *(cells[n] for n in names)], key, "tacit groups")
    else:
        cells = cells.mutate(**{NUMBER: number, TEXT: text})
        order = table.dialect.row_hash(cells, [NUMBER, TEXT, *names], hash_words(key, "tacit groups", 1)[0])
    hashed = cells.mutate(**{HASH: order})
    # The cell itself breaks ties, so that equal hashes of two cells cannot let a third one in.
    rank = ibis.dense_rank().over(group_by=table.person, order_by=_order([HASH, *names]))
    ranked = hashed.mutate(**{RANK: rank})
    return ranked.filter(ibis.ifelse(ranked[RANK] < groups, True, False)).select(*table.columns)


def _order(names: Sequence[str]) -> list[Any]:
    """Rising, nulls first, because the defaults of engines differ."""
    import ibis

    return [ibis.asc(name, nulls_first=True) for name in names]


def _form(table: Table, name: str, x: Any) -> Any:
    """A declared value as it enters the hash, by its declared kind: steps of its grid, a word, or a double.

    Values that differ by less than a step of the grid have one form, in the order of their values.
    """
    column = table.schema[name]
    if isinstance(column, Category):
        return x if column.of_words else x.cast("int64")
    assert isinstance(column, Measured)
    if not column.bounded:
        return x.cast("float64")
    return in_steps(table.dialect, column, x).cast("int64")


def _person_form(table: Table, x: Any) -> tuple[Any, Any]:
    """A person as a double, or as a text if it is no number: 7, 7.0, 7.00 and "7" have one form.

    Two people with one form remain two people: the form decides only the order of a person's own rows.
    """
    import ibis

    dtype, no_number, no_text = x.type(), ibis.null("float64"), ibis.null("string")
    if dtype.is_numeric() and not dtype.is_boolean():
        return table.dialect.double(x), no_text
    if dtype.is_date() or dtype.is_timestamp():
        return _days(table, x).cast("float64"), no_text
    if dtype.is_boolean():
        return no_number, ibis.ifelse(x, "true", "false")
    text = x if dtype.is_string() else table.dialect.hexadecimal(x) if dtype.is_binary() else x.cast("string")
    # Numbers begin with a digit or a sign, which come before ":"; most other texts do not, and are not searched.
    number = ibis.ifelse(text < ":", table.dialect.plain(text), no_number) if dtype.is_string() else no_number
    return number, ibis.ifelse(number.isnull(), text, no_text)


def _days(table: Table, x: Any) -> Any:
    """The day of a moment, counted from 1970-01-01; null for one out of range."""
    import ibis

    day = x if x.type().is_date() else table.dialect.day_of(x)
    # Spark counts days by way of moments, which end before its days do.
    first, last = ibis.literal(datetime.date.min), ibis.literal(datetime.date.max)
    return table.dialect.days(ibis.cases((day < first, first), (day > last, last), else_=day))


def _keyed_hash(table: Table, forms: Sequence[Any], key: bytes, purpose: str) -> Any:
    """A hash of the key and of the forms as text, the same text in every engine: whole numbers in digits, and words.

    Rows with equal texts are then sorted by their values, so the texts need not distinguish all rows.
    """
    import ibis

    texts = [_text(x).fill_null("\x1e") for x in forms]
    secret = ibis.literal(keyed(key, purpose).hexdigest())
    return table.dialect.keyed_hash(ibis.literal("\x1f").join([secret, *texts]))


def _text(x: Any) -> Any:
    """A text with the same form in every engine; among numbers, only whole ones of 64 bits are cast to text."""
    import ibis

    if not x.type().is_floating():
        return x if x.type().is_string() else x.cast("int64").cast("string")
    most, far = float(1 << 62), float(1 << 66)
    size = x.abs()
    # Numbers of more than 62 bits are told apart in steps of 2^66, and from 2^128 on not at all.
    inside = ibis.cases(
        (x.isnan(), ibis.null("float64")),
        (size < most, x),
        (size < far * most, x / far),
        (x > 0.0, most),
        else_=-most,
    )
    whole = inside.floor().cast("float64")
    parts = ((inside - whole) * 1024.0).floor()
    return whole.cast("int64").cast("string") + "." + parts.cast("int64").cast("string")
