"""At most m rows of each person, and at most g groups, chosen in the engine by a keyed hash.

The rows of a person are ordered by a hash of (key, row), and the first m are kept. What is kept of one person is
a function of that person's rows and the key alone, whoever else is in the table: so two tables that differ in one
person differ, after bounding, in that person's at most m rows and nowhere else (docs/theory/keyed-bounding.md).
Rows without a person are not used. The bounded rows are kept in the engine and serve every later question.

Equal rows of a person have equal hashes and are interchangeable. Different rows are told apart by two 64-bit
hashes. The bound holds for any key; that it is secret keeps people from choosing which of their rows count.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from tacit.errors import InvalidParameter
from tacit.guarantees import People
from tacit.sources.axes import Axis
from tacit.sources.digests import row_hash, words
from tacit.sources.tables import Table, _check_key, _quiet

__all__ = ["bounded_relation"]

FIRST, SECOND, RANK = "__tacit_h1", "__tacit_h2", "__tacit_rank"


def bounded_relation(table: Table, axes: Sequence[Axis] = (), *, key: bytes | None = None) -> Any:
    """The engine table that a question grouped by these axes may read: bounded once, then reused."""
    unit = table.unit
    if not isinstance(unit, People):
        return table.relation
    if key is None:
        raise InvalidParameter(
            parameter="key",
            value=None,
            must="be the curator's secret",
            hint="people need contribution bounding",
        )
    _check_key(key)
    limited = bool(axes) and unit.groups is not None and unit.groups < unit.at_most
    place = (key, tuple(axes) if limited else ())
    if (key, ()) not in table.bounded:
        table.bounded[key, ()] = _keep(_first_rows(table, key, unit.at_most), table)
    if limited and place not in table.bounded:
        assert unit.groups is not None
        table.bounded[place] = _keep(
            _first_groups(table, table.bounded[key, ()], axes, key, unit.groups), table
        )
    return table.bounded[place]


def _keep(relation: Any, table: Table) -> Any:
    """The rows, computed once and held by the engine until the table is closed."""
    hint = "check the free space on disk, or give more memory"

    def hold() -> Any:
        if table.engine != "duckdb":
            return relation.cache()
        backend, name = relation.get_backend(), f"__tacit_{secrets.token_hex(8)}"
        table.on_close(lambda: backend.con.execute(f"DROP TABLE IF EXISTS {name}"))
        return backend.create_table(name, relation, temp=True)

    return _quiet(hold, table.source, "could not be bounded in the engine", hint)


def _first_rows(table: Table, key: bytes, at_most: int) -> Any:
    import ibis

    assert table.person is not None
    columns = sorted(table.columns)
    first, second = words(key, "tacit bounding", 2)
    source = table.relation
    # The hashes are columns of their own before the window orders by them.
    hashed = source.filter(source[table.person].notnull()).mutate(
        **{
            FIRST: row_hash(source, columns, first, engine=table.engine),
            SECOND: row_hash(source, list(reversed(columns)), second, engine=table.engine),
        }
    )
    rank = ibis.row_number().over(group_by=table.person, order_by=[FIRST, SECOND])
    ranked = hashed.mutate(**{RANK: rank})
    return ranked.filter(ranked[RANK] < at_most).select(*table.columns)


def _first_groups(table: Table, relation: Any, axes: Sequence[Axis], key: bytes, groups: int) -> Any:
    """Of each person only the rows in the first `groups` cells, in the order of a keyed hash of the cell."""
    import ibis

    assert table.person is not None
    reader = table.reader(relation)
    names = [f"__tacit_k{i}" for i in range(len(axes))]
    keyed = relation.mutate(**{n: reader.key(a) for n, a in zip(names, axes, strict=True)})
    for name in names:
        keyed = keyed.filter(keyed[name].notnull())
    seed = words(key, "tacit groups", 1)[0]
    hashed = keyed.mutate(**{FIRST: row_hash(keyed, [table.person, *names], seed, engine=table.engine)})
    # The cell itself breaks ties, so that equal hashes of two cells cannot let a third one in.
    rank = ibis.dense_rank().over(group_by=table.person, order_by=[FIRST, *names])
    ranked = hashed.mutate(**{RANK: rank})
    return ranked.filter(ranked[RANK] < groups).select(*table.columns)
