"""Many questions, one pass: the true integers of each, from as few queries as their groupings allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tacit.exact.arrays import AnyArray
from tacit.sources.query import Cells, run
from tacit.sources.tables import Table
from tacit.sources.training import RowsWanted, read_rows
from tacit.statistics.base import Question

__all__ = ["read", "read_cells"]


def read_cells(
    table: Table, questions: Sequence[Question], *, key: bytes | None = None
) -> list[tuple[Cells, ...]]:
    """The engine's aggregates for each question, or the rows of one that is a function of them.

    PRIVATE: to be given to a mechanism only.
    """
    requests = [r for q in questions for r in q.requests if not isinstance(r, RowsWanted)]
    wanted = [r for q in questions for r in q.requests if isinstance(r, RowsWanted)]

    def both() -> tuple[Iterator[Cells], Iterator[Cells]]:
        return iter(run(table, requests, key=key)), iter(read_rows(table, wanted, key=key))

    cells, rows = table.together(both)
    return [tuple(next(rows if isinstance(r, RowsWanted) else cells) for r in q.requests) for q in questions]


def read(
    table: Table, questions: Sequence[Question], *, key: bytes | None = None
) -> list[dict[str, AnyArray]]:
    """The true parts of each question. PRIVATE: to be given to a mechanism only."""
    answered = read_cells(table, questions, key=key)
    return [q.integers(cells) for q, cells in zip(questions, answered, strict=True)]
