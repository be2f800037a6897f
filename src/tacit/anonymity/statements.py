"""What every table is asked first, as DuckDB's own SQL: Ibis takes as long to write it as DuckDB to answer it.

The same numbers are asked through Ibis of other engines (`classes`, `closeness`); tests compare both with the
definitions. Columns are grouped by their places: a name may be that of a column of the table too. A null is the same
as a null.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["COUNT", "VALUE", "cells", "equal_distance", "least"]

COUNT = "n"
VALUE = "s"


def cells(table: str, quasi: Sequence[str], sensitive: str) -> str:
    """One row for each class and sensitive value in it; `table` is a statement that gives the rows."""
    named = [f"{_quoted(name)} AS q{i}" for i, name in enumerate(quasi)]
    places = ", ".join(str(i + 1) for i in range(len(quasi) + 1))
    return (
        f"SELECT {', '.join(named)}, {_quoted(sensitive)} AS {VALUE}, count(*) AS {COUNT} "
        f"FROM ({table}) AS rows GROUP BY {places}"
    )


def least(cells: str, keys: Sequence[str]) -> str:
    """The size of the smallest class, the number of rows, and the fewest sensitive values in a class."""
    return (
        f"SELECT min(size), sum(size), min(many) FROM "
        f"(SELECT sum({COUNT}) AS size, count(*) AS many FROM {cells} GROUP BY {', '.join(keys)})"
    )


def equal_distance(cells: str, keys: Sequence[str], rows: int) -> str:
    """The largest total variation distance between the sensitive values of a class and those of the table."""
    names = ", ".join(keys)
    same = " AND ".join(f"c.{key} IS NOT DISTINCT FROM z.{key}" for key in keys)
    return (
        f"WITH z AS (SELECT {names}, sum({COUNT})::DOUBLE AS size FROM {cells} GROUP BY {names}), "
        f"w AS (SELECT {VALUE}, sum({COUNT})::DOUBLE / {rows} AS share FROM {cells} GROUP BY {VALUE}) "
        f"SELECT max(distance) FROM (SELECT sum(greatest(c.{COUNT} / z.size - w.share, 0.0)) AS distance "
        f"FROM {cells} AS c JOIN z ON {same} JOIN w ON c.{VALUE} IS NOT DISTINCT FROM w.{VALUE} "
        f"GROUP BY {', '.join(f'c.{key}' for key in keys)})"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
