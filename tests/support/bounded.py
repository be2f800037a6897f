"""The rows that contribution bounding keeps, read back in their declared words."""

from __future__ import annotations

from typing import Any

from tacit.sources.axes import axes_of
from tacit.sources.bounding import bounded_relation, reader_of


def kept_rows(table: Any, key: bytes, by: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    relation = bounded_relation(table, axes_of(by, table.schema), key=key)
    found = [row for batch in table.dialect.batches(relation)() for row in batch.to_pylist()]
    for name in reader_of(table, relation).coded:
        words = table.schema[name].values
        for row in found:
            row[name] = None if row[name] is None else words[row[name]]
    return found
