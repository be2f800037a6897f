"""A curator's part in a joint release: charged before it is read, once a session, and recorded without an answer.

A plan of shares is a type of its own, since its numbers have only a part of the noise. Only `contribute` takes it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from tacit.curator.assignments import NoisyParts
from tacit.curator.charging import Charged
from tacit.curator.planning import Plan, Planned
from tacit.errors import InvalidParameter, JointRefused, NoLaw, TacitError, charge_made
from tacit.exact.checks import instance
from tacit.guarantees import Guarantee, Priors
from tacit.ledger import Charge, ChargeCheck, Ledger, Limit, Request, Ticket, running_total, seen
from tacit.sources.error_boundary import forget


class SharePlan:
    """A holder's share of a joint plan, in the terms of its budget; only `Curator.contribute` takes it."""

    __slots__ = ("_plan",)

    def __init__(self, plan: Plan) -> None:
        self._plan = instance("plan", plan, Plan, must="be a plan")
        if not all(r.assignment.of_shares for r in plan.releases):
            raise InvalidParameter(parameter="plan", value="whole noise", must="be a plan of shares")

    @property
    def releases(self) -> tuple[Planned, ...]:
        """The queries, each with the share of the noise that this holder adds."""
        return self._plan.releases

    @property
    def charge(self) -> Guarantee:
        """The charge to this holder's ledger."""
        return self._plan.charge

    @property
    def charged(self) -> Charged:
        """The charge with its exact numbers, and the currency in which the releases add up."""
        return self._plan.charged

    @property
    def digest(self) -> str:
        """The digest of the whole plan."""
        return self._plan.digest

    def __str__(self) -> str:
        return f"a holder's share of\n{self._plan}"


def share_of(plan: object) -> Plan:
    """The plan in a holder's share; for a whole plan use `release`."""
    if not isinstance(plan, SharePlan):
        raise InvalidParameter(
            parameter="plan", value=type(plan).__name__, must="be a holder's share of a joint plan",
            hint="agreement.check(curator) makes one; whole plans are for release",
        )  # fmt: skip
    return plan._plan


def contributed(
    ledger: Ledger,
    request: Request,
    read: Callable[[], tuple[list[NoisyParts], str]],
    *,
    check: ChargeCheck | None,
) -> list[NoisyParts]:
    """The result of `read` after the charge. A session that was charged is never charged or answered again."""
    if isinstance(request.charge.condition, Priors):
        raise NoLaw(
            operation="an exact answer as a part of a joint release",
            reason="the parts of several holders are releases about different rows, which no theorem joins here",
        )
    again = JointRefused(
        reason="this holder has answered in this session already", charged="it is not charged twice"
    )

    def once(charges: Sequence[Charge], limit: Limit) -> None:
        """Inside the transaction of the charge: of two at the same time one is refused."""
        if any(c.key == request.key for c in charges[:-1]):
            raise again
        (check or running_total)(charges, limit)

    known = seen(ledger, request.plan_digest, table=request.table, version=request.version)
    if known:
        raise JointRefused(
            reason=f"the ledger of this holder says that {known[0]}, and a joint certificate has no place for that",
            charged="nothing was charged",
            hint="take part with a plan that is older than the look",
        )
    outcome = ledger.reserve(request, once)
    if not isinstance(outcome, Ticket):
        raise again
    with charge_made():
        try:
            answers, digest = read()
        except BaseException as problem:
            forget(problem)
            with contextlib.suppress(TacitError):
                ledger.fail(outcome)
            raise
        ledger.commit(outcome, {"joint": request.key}, data_digest=digest)
        return answers
