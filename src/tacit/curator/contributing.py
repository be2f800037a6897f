"""A curator's part in a joint release: charged before it is read, once a session, and recorded without an answer.

And what both roads need before a charge: a source of noise that can be drawn from.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from tacit.curator.treatments import Noisy
from tacit.errors import InvalidParameter, JointRefused, NoLaw, TacitError
from tacit.guarantees import Priors
from tacit.ledger import Charge, ChargeCheck, Ledger, Limit, Request, Ticket, running_total, seen
from tacit.noise.source import Source

__all__ = ["contributed", "noise_source"]


def contributed(
    ledger: Ledger,
    request: Request,
    read: Callable[[], tuple[list[Noisy], str]],
    *,
    check: ChargeCheck | None,
) -> list[Noisy]:
    """What `read` gives after the charge; a session that was charged for is never charged, or answered, again."""
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
    try:
        answers, digest = read()
    except BaseException:
        with contextlib.suppress(TacitError):
            ledger.fail(outcome)
        raise
    ledger.commit(outcome, {"joint": request.key}, data_digest=digest)
    return answers


def noise_source(source: Source | None) -> Source | None:
    """A source of noise, before anything is charged that it could not draw for."""
    if source is not None and not isinstance(source, Source):
        raise InvalidParameter(
            parameter="source", value=type(source).__name__, must="be a source of noise, or be left out",
            hint="tacit.noise.SeededSource(seed=1) for tests",
        )  # fmt: skip
    return source
