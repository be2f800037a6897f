"""Records of spending: reserve, run, commit, in one SQLite file or a PostgreSQL database.

Read in this order: `entries.py` (the entries and analysts), `budget.py` (running totals and checks), `register.py`
(roles and rights), `log.py` (the chain of entries and its totals), `store.py` (storage and the order of writers),
`approvals.py` (roles, approvals, withdrawals), `ledger.py` (all of it as one), `looks.py` (earlier looks at the
data), `verify.py`.
"""

from tacit.ledger.budget import ChargeCheck, Limit, filtered, parts_of, parts_words, recount, running_total
from tacit.ledger.entries import ROLES, Charge, Correction, Earlier, Entry, Person, Recorded, Request, Ticket
from tacit.ledger.export import export, overview
from tacit.ledger.ledger import Ledger, alone, keep_rows, remove_rows, standing_alone
from tacit.ledger.log import FORMAT, Problem, Verification
from tacit.ledger.looks import looked, record_plan, seen
from tacit.ledger.on_random_data import on_random_data, standing_on_random_data
from tacit.ledger.register import Open
from tacit.ledger.verify import verify_ledger

__all__ = [
    "FORMAT",
    "ROLES",
    "Charge",
    "ChargeCheck",
    "Correction",
    "Earlier",
    "Entry",
    "Ledger",
    "Limit",
    "Open",
    "Person",
    "Problem",
    "Recorded",
    "Request",
    "Ticket",
    "Verification",
    "alone",
    "export",
    "filtered",
    "keep_rows",
    "looked",
    "on_random_data",
    "overview",
    "parts_of",
    "parts_words",
    "record_plan",
    "recount",
    "remove_rows",
    "running_total",
    "seen",
    "standing_alone",
    "standing_on_random_data",
    "verify_ledger",
]
