"""From a table to a certified release: plans, assignments, certificates, and the curator who runs them.

Read in this order: `request.py` (the query), `prices.py` (the offered prices), `planning.py` and `assignments.py`
(the noise for a price, before a row is read), `charging.py` (the cost in the budget's terms), `release.py`,
`intervals.py` (error bars), `certificate.py`, `verifying.py`, and `curator.py`, which does all of it.
"""

from __future__ import annotations

from tacit.curator.charging import Price, price
from tacit.curator.curator import Curator
from tacit.curator.planning import Plan, Planned, make_plan
from tacit.curator.release import Release, Releases
from tacit.curator.request import Query, query

__all__ = [
    "Curator",
    "Plan",
    "Planned",
    "Price",
    "Query",
    "Release",
    "Releases",
    "make_plan",
    "price",
    "query",
]
