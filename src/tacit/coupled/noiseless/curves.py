"""How epsilon changes with delta, and with what an adversary knows: the two curves that a reader asks for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tacit.coupled.noiseless.answer import ExactAnswer
from tacit.errors import InvalidInput, InvalidParameter, Refused

__all__ = ["Curves", "curves_of"]

_POINTS = 9


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
    return Curves(answer=answer, rows=rows, by_delta=tuple(by_delta), by_known=tuple(by_known))


def _epsilon(again: Callable[[float, int], ExactAnswer], delta: float, unknown: int) -> float | None:
    try:
        return again(delta, unknown).epsilon
    except (InvalidInput, Refused):
        return None
