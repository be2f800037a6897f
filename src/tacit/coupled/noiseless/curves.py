"""How epsilon changes with delta, and with what an adversary knows: the two curves that a reader asks for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tacit.coupled.noiseless.answer import ExactAnswer
from tacit.errors import InvalidInput, InvalidParameter, Refused

__all__ = ["Curves", "curves_of"]

_POINTS = 9
_ENOUGH = 3
_HALVINGS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """(delta, epsilon) and (known rows, epsilon); what is out of reach is left out."""

    answer: ExactAnswer
    rows: int
    by_delta: tuple[tuple[float, float], ...]
    by_known: tuple[tuple[int, float], ...]


def curves_of(answer: ExactAnswer, again: Callable[[float, int], ExactAnswer]) -> Curves:
    """Both curves around an answer; `again(delta, unknown_rows)` answers the same question anew."""
    if (rows := answer.rows) is None:
        raise InvalidParameter(
            parameter="answer", value="no number of rows", must="be about a known number of rows"
        )
    exponent = math.log10(answer.delta)
    deltas = [10.0 ** (exponent - 4 + j) for j in range(_POINTS) if exponent - 4 + j < -1]
    sizes = {round(rows * share / (_POINTS + 1)) for share in range(1, _POINTS + 2)}
    unknown = sorted({s for s in sizes if s >= 2} | {answer.unknown_rows}, reverse=True)
    by_delta = [(d, e) for d in deltas if (e := _epsilon(again, d, answer.unknown_rows)) is not None]
    by_known = [(rows - u, e) for u in unknown if (e := _epsilon(again, answer.delta, u)) is not None]
    if len(by_known) < _ENOUGH:
        # So few known rows are too many: look closer, up to the most that some epsilon allows.
        reach = _reach(again, answer, rows)
        closer = sorted({round(reach * share / _POINTS) for share in range(_POINTS + 1)})
        found = {k: e for k in closer if (e := _epsilon(again, answer.delta, rows - k)) is not None}
        by_known = sorted({**dict(by_known), **found}.items())
    return Curves(answer=answer, rows=rows, by_delta=tuple(by_delta), by_known=tuple(by_known))


def _reach(again: Callable[[float, int], ExactAnswer], answer: ExactAnswer, rows: int) -> int:
    """About the most rows that may be known, from the answer's own number on: halved a few times."""
    low = rows - answer.unknown_rows
    high = min(rows - 2, low + -(-rows // (_POINTS + 1)))
    for _ in range(_HALVINGS):
        middle = (low + high) // 2
        known = _epsilon(again, answer.delta, rows - middle) is not None
        low, high = (middle, high) if known else (low, middle)
    return low


def _epsilon(again: Callable[[float, int], ExactAnswer], delta: float, unknown: int) -> float | None:
    try:
        return again(delta, unknown).epsilon
    except (InvalidInput, Refused):
        return None
