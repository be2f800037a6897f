"""A DuckDB of our own: in this process, with a limit on memory, a private folder, and one name for the rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from tacit.sources import door, scratch
from tacit.sources.watching import counted

__all__ = ["INCOMING", "ROWS", "Duck", "literal", "name_of", "started", "text_of"]

ROWS = "__tacit_rows"
"""The table or view that questions are put to, whatever stands behind it."""
INCOMING = "__tacit_incoming"


def literal(path: str) -> str:
    """A path in which no character has a meaning: DuckDB takes *, ? and [ as patterns."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in path)


def name_of(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def text_of(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"


def started(memory: str, source: str) -> Duck:
    """A new connection."""
    return door.metadata(
        lambda: Duck(memory), source=source, problem="cannot be opened: DuckDB does not start",
        hint='memory is a size such as "4GB", and the temporary folder must be there to write to',
    )  # fmt: skip


class Duck:
    """One connection. What is done to rows here is done inside the door."""

    def __init__(self, memory: str) -> None:
        import ibis

        self.folder = scratch.new_folder()
        self.backend: Any = ibis.duckdb.connect(
            ":memory:",
            memory_limit=memory,
            temp_directory=str(self.folder),
            preserve_insertion_order=False,
            autoinstall_known_extensions=False,
            # What stood in a file that has changed since is not to be remembered.
            enable_external_file_cache=False,
        )
        self.run = self.backend.con.execute
        # How far a query is can be asked for (`Table.progress`); DuckDB's own bar would go to standard output.
        self.run("SET enable_progress_bar = true")
        self.run("SET enable_progress_bar_print = false")
        self.kind = ""
        """What stands behind the name of the rows: a view, a table, or nothing yet."""

    def close(self) -> None:
        """Ends the connection and removes its folder."""
        with contextlib.suppress(Exception):
            self.backend.disconnect()
        scratch.remove(self.folder)

    def offer(self, rows: Any, name: str = INCOMING) -> Any:
        """Arrow rows, a table or batches that are read once, under a name; a later offer takes its place."""
        self.backend.con.register(name, rows)
        return self.backend.table(name)

    def view(self, query: str) -> Any:
        """The rows are what a query gives, each time it is asked."""
        self.drop()
        self.run(f"CREATE TEMP VIEW {ROWS} AS {query}")
        self.kind = "VIEW"
        return self.backend.table(ROWS)

    def fill(self, query: str) -> None:
        """The rows are what a query gave, once; all of them or, if it fails, none."""
        made = f"{ROWS}_made"
        self.run(f"CREATE OR REPLACE TEMP TABLE {made} AS {query}")
        self.drop()
        self.run(f"ALTER TABLE {made} RENAME TO {ROWS}")
        self.kind = "TABLE"

    def fill_from(self, batches: Iterable[Any], schema: Any) -> None:
        """The rows are these Arrow batches, in the types that were there before."""
        import pyarrow as pa

        types = self.types(ROWS)
        self.offer(pa.RecordBatchReader.from_batches(schema, counted(batches)))
        listed = ", ".join(f"TRY_CAST({name_of(n)} AS {t}) AS {name_of(n)}" for n, t in types.items())
        self.fill(f"SELECT {listed} FROM {INCOMING}")
        self.backend.con.unregister(INCOMING)

    def copy(self, table: Any) -> Any:
        """The rows are those of an Arrow table."""
        self.offer(table)
        self.fill(f"SELECT * FROM {INCOMING}")
        return self.backend.table(ROWS)

    def types(self, name: str) -> dict[str, str]:
        """The columns of a table or view, and what DuckDB calls their types."""
        return {str(r[0]): str(r[1]) for r in self.run(f"DESCRIBE {name}").fetchall()}

    def drop(self) -> None:
        """Forgets the rows."""
        if self.kind:
            self.run(f"DROP {self.kind} {ROWS}")
        self.kind = ""
