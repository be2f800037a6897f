"""The mark of a table that describes nobody: written by whoever makes one up, and read from metadata alone.

A twin is known by a column of its own (`tacit.sources.twins`). The survey of the demo, which is released as any table
is, has its mark in the metadata of the Arrow schema, hence in the footer of its Parquet file. Whoever wants to can
forge either. They keep people from showing the truth of a real table by mistake.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.sources.twins import is_twin

if TYPE_CHECKING:
    import pyarrow

__all__ = ["bears_the_mark", "is_made_up", "marked"]

KEY, WORDS = b"tacit", b"made up: describes nobody"


def marked(table: pyarrow.Table) -> pyarrow.Table:
    """The same table with the mark."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), KEY: WORDS})


def bears_the_mark(metadata: Mapping[bytes, bytes] | None) -> bool:
    """Is the mark in these metadata, of an Arrow schema or of a Parquet footer?"""
    return metadata is not None and metadata.get(KEY) == WORDS


def is_made_up(data: Any) -> bool:
    """Is it a twin, or does it, or each Parquet file at this path, bear the mark? No row is read.

    Of data as they are now. What was read may have been other rows: `Facts.made_up` is of those.
    """
    import pyarrow
    import pyarrow.parquet

    if hasattr(type(data), "private"):
        return all(map(is_made_up, data.private))
    if is_twin(data):
        return True
    try:
        if isinstance(data, str | os.PathLike):
            # Of several files all must bear it: one that does makes nobody else up.
            return all(map(_marked_file, getattr(data, "paths", (os.fspath(data),))))
        return isinstance(data, pyarrow.Table) and bears_the_mark(data.schema.metadata)
    except (OSError, ValueError, TypeError, pyarrow.ArrowException):
        return False


def _marked_file(place: str) -> bool:
    state = Path(place).stat()
    stamp = (state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino, state.st_dev)
    return _bears_the_mark(Path(place), stamp)


@lru_cache(maxsize=256)
def _bears_the_mark(path: Path, stamp: tuple[int, ...]) -> bool:
    """Looked up once for each state of the file."""
    import pyarrow.parquet

    return bears_the_mark(pyarrow.parquet.read_metadata(path).metadata)
