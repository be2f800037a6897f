"""The text of a query for DuckDB."""

from __future__ import annotations

from typing import Any

__all__ = ["text_of_query"]


def text_of_query(backend: Any, query: Any) -> str:
    """What Ibis writes, and DuckDB's parser takes: to that a NUL ends the text, wherever it stands.

    A NUL stands inside of a declared word alone, between quotes.
    """
    return str(backend.compile(query)).replace("\0", "' || chr(0) || '")
