"""One DuckDB for the small tables of tests that are about something else.

To start a DuckDB takes longer than all that is asked of it about a hundred rows. Here each table gets a connection of
its own to one DuckDB of the process: views, macros and tables are temporary, and so its own as before. Outside of
`shared` each table starts one, as the library does for users; so does every table with a limit on memory that is not
the usual one.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

_shared = False


@contextlib.contextmanager
def shared() -> Iterator[None]:
    """The tables that are opened here share one. For a test, never for a module: the next may be of another room."""
    global _shared
    before, _shared = _shared, True
    _prepared()
    try:
        yield
    finally:
        _shared = before


@functools.cache
def _base() -> Any:
    import duckdb

    settings = {
        "preserve_insertion_order": False, "autoinstall_known_extensions": False,
        "enable_external_file_cache": False,
    }  # fmt: skip
    return duckdb.connect(":memory:", config=settings)


@functools.cache
def _prepared() -> None:
    """From now on a connection with a folder of its own, as only the library opens them, may be a shared one."""
    from ibis.backends.duckdb import Backend

    from tacit.sources.tables import MEMORY

    plain = Backend.do_connect

    def connected(self: Any, database: Any = ":memory:", *given: Any, **settings: Any) -> None:
        if not (_shared and "temp_directory" in settings and settings.get("memory_limit") == MEMORY):
            return plain(self, database, *given, **settings)
        self.con = _base().cursor()
        return self._post_connect()

    Backend.do_connect = connected
