"""Ball arithmetic for curves: exact balls, positive parts, enclosures at rising precision."""

from __future__ import annotations

from typing import Any

from tacit.errors import InvalidParameter
from tacit.guarantees.balls import ball as exact_ball
from tacit.guarantees.rounding import bracket

__all__ = ["bracket", "exact_ball", "positive_ball", "require"]


def require(ok: bool, *, parameter: str, value: object, must: str, hint: str = "") -> None:
    """Raise InvalidParameter unless ok."""
    if not ok:
        raise InvalidParameter(parameter=parameter, value=value, must=must, hint=hint)


def positive_ball(value: Any) -> Any:
    """max(0, ball)."""
    return value.max(exact_ball(0))
