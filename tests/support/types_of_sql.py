"""Names of SQL types are parsed once a process: sqlglot parses "array" anew for each cast that it writes."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def settle() -> None:
    """From now on a type's name is looked up. What is compared is the same, and nobody changes it."""
    from sqlglot.expressions import DataType

    plain = DataType.is_type
    parsed = functools.cache(functools.partial(DataType.build, udt=True))

    def is_type(self: Any, *types: Any, check_nullable: bool = False) -> bool:
        known = (parsed(t) if isinstance(t, str | DataType.Type) else t for t in types)
        return bool(plain(self, *known, check_nullable=check_nullable))

    DataType.is_type = is_type
