"""Many questions, one pass: the true integers of each, from as few queries as their groupings allow."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.sources.query import Cells, run
from tacit.sources.tables import Table
from tacit.statistics.base import Integers, Question

__all__ = ["read", "read_cells"]


def read_cells(
    table: Table, questions: Sequence[Question], *, key: bytes | None = None
) -> list[tuple[Cells, ...]]:
    """The engine's aggregates for each question. PRIVATE: to be given to a mechanism only."""
    requests = [r for q in questions for r in q.requests]
    cells = iter(run(table, requests, key=key))
    return [tuple(next(cells) for _ in q.requests) for q in questions]


def read(
    table: Table, questions: Sequence[Question], *, key: bytes | None = None
) -> list[dict[str, Integers]]:
    """The true parts of each question. PRIVATE: to be given to a mechanism only."""
    answered = read_cells(table, questions, key=key)
    return [q.integers(cells) for q, cells in zip(questions, answered, strict=True)]
