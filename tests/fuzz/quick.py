"""Less waiting: one connection for many small tables, the same names each time, SQL texts made once.

Writing SQL takes many times longer than running it on twenty rows. Under `sped_up` every table is opened in one DuckDB
of the process under names that repeat, so that equal expressions have equal texts, which are kept. Nothing else is
changed; the long road does without.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

MOST_KEPT = 4000


@functools.cache
def connection() -> Any:
    """The one DuckDB of this process."""
    import ibis

    return _new(ibis.duckdb.connect)


def _new(connect: Any) -> Any:
    """A DuckDB that nobody ends; one thread is fastest for a few rows."""
    made = connect(":memory:", autoinstall_known_extensions=False, preserve_insertion_order=False)
    made.con.execute("SET threads = 1")
    made.con.execute("SET enable_external_file_cache = false")
    made.disconnect = lambda: None
    return made


def _emptied(here: Any) -> None:
    """Drops whatever the last table left."""
    for kind, view in (("TABLE", "duckdb_tables()"), ("VIEW", "duckdb_views()")):
        wanted = "temporary" if kind == "TABLE" else "NOT internal"
        for (name,) in here.con.execute(
            f"SELECT DISTINCT {kind.lower()}_name FROM {view} WHERE {wanted}"
        ).fetchall():
            quoted = '"' + name.replace('"', '""') + '"'
            with contextlib.suppress(Exception):
                here.con.execute(f"DROP {kind} IF EXISTS {quoted}")
    for name in ("__tacit_frame", "__tacit_rows", "__tacit_incoming"):
        with contextlib.suppress(Exception):
            here.con.unregister(name)


_texts: dict[Any, str] = {}
_functions: dict[Any, Any] = {}


def _held(where: Any, name: str) -> Any:
    """What is there now, as it is kept: a method of a class unbound."""
    return inspect.getattr_static(where, name) if isinstance(where, type) else getattr(where, name)


_apart: list[Any] = []
"""Connections for tables that are open side by side; those in use are marked."""


def _next_apart(connect: Any) -> Any:
    """A connection that nobody uses, until it is given back: the first one whenever that is free."""
    made = next((one for one in _apart if one.disconnect is None), None)
    if made is None:
        made = _new(connect)
        _apart.append(made)

    def given_back() -> None:
        _emptied(made)
        made.disconnect = None

    made.disconnect = given_back
    return made


@contextlib.contextmanager
def sped_up(*, apart: bool = False) -> Iterator[None]:
    """Shared connection, repeated names, kept texts; `apart`: a connection for each of the tables that are open."""
    import ibis
    from ibis.backends.sql import SQLBackend

    from tacit.sources import bounding, tables
    from tacit.sources.opening import joining

    numbers = itertools.count()
    plain = SQLBackend.compile

    def compiled(self: Any, expr: Any, /, **rest: Any) -> str:
        if rest:
            return plain(self, expr, **rest)
        place = (id(self), expr.op())
        found = _texts.get(place)
        if found is None:
            if len(_texts) > MOST_KEPT:
                _texts.clear()
            found = _texts[place] = plain(self, expr)
        return found

    def named(space: str) -> str:
        return f"ibis_{space}_{next(numbers)}"

    here, connect = connection(), ibis.duckdb.connect

    def connected(*_: Any, **__: Any) -> Any:
        nonlocal numbers
        if apart:
            numbers = itertools.count()
            return _next_apart(connect)
        _emptied(here)
        return here

    builtin = ibis.udf.scalar.builtin

    def declared(function: Any, **rest: Any) -> Any:
        """The engine's own functions, each declared once: two declarations of one are not equal."""
        place = (rest.get("name"), rest.get("signature"))
        if set(rest) != {"name", "signature"}:
            return builtin(function, **rest)
        if place not in _functions:
            _functions[place] = builtin(function, **rest)
        return _functions[place]

    hexed = SimpleNamespace(token_hex=lambda size=8: f"{next(numbers):016x}")
    changes: list[tuple[Any, str, Any]] = [(SQLBackend, "compile", compiled), (ibis.util, "gen_name", named)]
    changes += [(m, "secrets", hexed) for m in (bounding, tables, joining) if hasattr(m, "secrets")]
    changes += [(ibis.duckdb, "connect", connected), (ibis.udf.scalar, "builtin", declared)]
    kept = [(where, name, _held(where, name)) for where, name, _ in changes]
    for where, name, new in changes:
        setattr(where, name, new)
    try:
        yield
    finally:
        for where, name, old in kept:
            setattr(where, name, old)
