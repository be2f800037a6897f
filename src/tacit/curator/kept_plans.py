"""Plans that were made before: the same question at the same price is priced once a curator.

A plan follows from what was asked, the schema, the unit and the budget; no row is read for it, so that keeping it tells
nothing. What is asked must be equal and print alike: 1, 1.0 and True are equal, and are different words in a
certificate, though 1 and 1.0 are one question.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence

from tacit.curator.asks import Ask
from tacit.curator.given import Given
from tacit.curator.plan import Plan
from tacit.curator.prices import Price

__all__ = ["KeptPlans"]

MOST = 32
"""Plans of a curator that are kept; of the least lately asked the place is given away."""
LONGEST = 8
"""Asks of a plan that is kept: comparing a long one takes as long as it saves."""


class KeptPlans:
    """The plans of one curator, whose schema, unit and budget never change."""

    def __init__(self) -> None:
        self._plans: OrderedDict[Hashable, Plan] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self, asks: Sequence[Ask], total: Price | None, given: Given | None, make: Callable[[], Plan]
    ) -> Plan:
        """The plan for these asks: the one that was made before, or one that is made now."""
        place = _place(asks, total, given)
        if place is None:
            return make()
        with self._lock:
            found = self._plans.get(place)
            if found is not None:
                self._plans.move_to_end(place)
                return found
        made = make()
        with self._lock:
            self._plans[place] = made
            while len(self._plans) > MOST:
                self._plans.popitem(last=False)
        return made


def _place(asks: Sequence[Ask], total: Price | None, given: Given | None) -> Hashable | None:
    """What a plan is looked up by; None for what is long, or holds tables of public totals."""
    if len(asks) > LONGEST or any(a.public is not None for a in asks):
        return None
    place = (tuple(asks), total, given)
    try:
        hash(place)
    except TypeError:
        return None
    return place, repr(place)
