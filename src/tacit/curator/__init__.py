"""From a table to a certified release: plans, treatments, certificates, and the curator who runs them.

Read in this order: `prices.py` (what is offered), `treatments.py` and `chooser.py` (the noise that it buys),
`charges.py` (what that costs in the budget's terms), `plan.py` (all of it, before a row is read), `intervals.py` and
`pivots.py` (error bars), `certificate.py`, `release.py`, `curator.py`.
"""

from __future__ import annotations

from tacit.curator.asks import Ask, ask
from tacit.curator.curator import Curator
from tacit.curator.plan import Plan, Planned, make_plan
from tacit.curator.prices import Price, price
from tacit.curator.release import Release, Releases

__all__ = ["Ask", "Curator", "Plan", "Planned", "Price", "Release", "Releases", "ask", "make_plan", "price"]
