"""The driver in one process: for tests, for rehearsals, and with faults that a seed draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tacit.errors import BadMessage, BudgetExceeded, JointRefused, TacitError
from tacit.parties.aggregator import Aggregator, SecureSum
from tacit.parties.holder import Holder
from tacit.parties.session import Session

__all__ = ["Wire", "run_in_process"]


@dataclass(slots=True)
class Wire:
    """What happens to messages: a function of the bytes gives those that arrive (none, one, several, other ones)."""

    carry: Callable[[str, int, bytes], list[bytes]] = field(default=lambda stage, holder, raw: [raw])
    told: list[str] = field(default_factory=list)


def run_in_process(session: Session, holders: Mapping[int, Holder], wire: Wire | None = None) -> SecureSum:
    """Carry all messages until there is a sum or a refusal. A holder that fails or hears nothing is gone."""
    wire = wire or Wire()
    aggregator = Aggregator(session=session)
    waiting = {}
    for i, holder in holders.items():
        try:
            waiting[i] = holder.start()
        except TacitError as problem:
            wire.told.append(str(problem))
    while True:
        for i, raw in waiting.items():
            for arrived in wire.carry(aggregator.stage, i, raw):
                try:
                    aggregator.handle(arrived)
                except BadMessage as problem:
                    wire.told.append(str(problem))
        stage = aggregator.stage
        sent = aggregator.advance()
        if aggregator.stage == "done":
            return aggregator.result()
        waiting = {}
        for i, raw in sent.items():
            for arrived in wire.carry(f"to {stage}", i, raw):
                try:
                    waiting[i] = holders[i].handle(arrived)
                except (BadMessage, JointRefused, BudgetExceeded) as problem:
                    wire.told.append(str(problem))
