"""The ledger against a model that is a few lists in memory: any order of calls, on any of several handles."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from support.ledgers import ask, promise, quick_folder
from tacit.errors import BudgetExceeded, InvalidParameter
from tacit.guarantees import Pure
from tacit.ledger import Ledger, Recorded, Ticket

KEYS = st.sampled_from(["a", "b", "c"])
DATA = st.sampled_from(["monday", "tuesday"])
WHO = st.sampled_from(["ann", "bob", "eve"])
PRICES = st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.3, 1 / 3, 1.0])
ANSWERS = st.one_of(
    st.binary(max_size=8), st.integers(), st.lists(st.floats(allow_nan=False, allow_infinity=False))
)


class LedgerMachine(RuleBasedStateMachine):
    tickets = Bundle("tickets")

    def __init__(self) -> None:
        super().__init__()
        self.folder = quick_folder()
        self.path = Path(self.folder.name) / "a.ledger"

    @initialize(budget=st.sampled_from([0.5, 1.0, 2.0]))
    def create(self, budget: float) -> None:
        self.budget = Fraction(budget)
        self.handles = [Ledger.create(self.path, budget=promise(budget), shares={"bob": Pure(epsilon=0.5)})]
        self.handles.append(Ledger.open(self.path))
        self.charges: list[tuple[str, Fraction]] = []
        self.shares = {"bob": Fraction(1, 2)}
        self.open: set[int] = set()
        self.answers: dict[tuple[str, str], Any] = {}
        self.length = 0

    @rule(target=tickets, key=KEYS, data=DATA, who=WHO, price=PRICES, handle=st.integers(0, 1))
    def reserve(self, key: str, data: str, who: str, price: float, handle: int) -> Any:
        request = ask(key, price, version=data, analyst=who)
        if (key, data) in self.answers:
            found = self.handles[handle].reserve(request)
            assert isinstance(found, Recorded)
            assert found.answer == self.answers[key, data]
            return None
        exact = Fraction(price)
        total = sum(p for _, p in self.charges) + exact
        own = sum(p for w, p in self.charges if w == who) + exact
        if total > self.budget or own > self.shares.get(who, self.budget):
            try:
                self.handles[handle].reserve(request)
            except BudgetExceeded:
                return None
            raise AssertionError("an overspending request was admitted")
        ticket = self.handles[handle].reserve(request)
        assert isinstance(ticket, Ticket)
        self.charges.append((who, exact))
        self.length += 1
        self.open.add(ticket.sequence)
        return (ticket, key, data)

    @rule(reserved=tickets, answer=ANSWERS, handle=st.integers(0, 1), fails=st.booleans())
    def close(self, reserved: Any, answer: Any, handle: int, fails: bool) -> None:
        if reserved is None:
            return
        ticket, key, data = reserved
        ledger = self.handles[handle]
        try:
            if fails:
                ledger.fail(ticket)
            else:
                ledger.commit(ticket, answer)
        except InvalidParameter:
            assert ticket.sequence not in self.open
            return
        assert ticket.sequence in self.open
        self.open.remove(ticket.sequence)
        self.length += 1
        if not fails:
            self.answers.setdefault((key, data), answer)

    @rule(who=WHO, bound=st.sampled_from([0.125, 0.5, 4.0]), handle=st.integers(0, 1))
    def share(self, who: str, bound: float, handle: int) -> None:
        self.handles[handle].share(who, Pure(epsilon=bound))
        self.shares[who] = Fraction(bound)
        self.length += 1

    @rule(handle=st.integers(0, 1))
    def reopen(self, handle: int) -> None:
        self.handles[handle] = Ledger.open(self.path)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "handles"):
            return
        total = sum(p for _, p in self.charges)
        assert total <= self.budget
        for ledger in self.handles:
            spent = Fraction(ledger.spent().epsilon)  # type: ignore[attr-defined]
            assert spent >= total
            assert spent - total <= Fraction(1, 2**50)
            assert {n: Fraction(b.epsilon) for n, b in ledger.shares().items()} == self.shares  # type: ignore[attr-defined]

    def teardown(self) -> None:
        if hasattr(self, "handles"):
            found = self.handles[0].verify()
            assert found.ok
            assert found.entries == self.length
            states = {
                c.sequence
                for c in self.handles[0].charges()
                if self.handles[0].state(c.sequence) == "reserved"
            }
            assert states == self.open
        self.folder.cleanup()


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=25, stateful_step_count=20)
