"""Guarantees for tests: a bound for one row, unless something else is said."""

from __future__ import annotations

import tacit
from tacit.guarantees import Bound, RandomData

ROWS = tacit.rows()
REPLACE = tacit.rows(neighbours="replace-one")
PEOPLE = tacit.people("person_id", at_most=3)


def promise(bound: Bound, **more: object) -> tacit.Guarantee:
    return tacit.Guarantee(bound=bound, **{"unit": ROWS, **more})  # type: ignore[arg-type]


def on_random_data(bound: Bound, gamma: float) -> tacit.Guarantee:
    return promise(bound, unit=REPLACE, condition=RandomData(gamma=gamma))
