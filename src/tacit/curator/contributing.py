"""A curator's part in a joint release: charged before it is read, once a session, and recorded without an answer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from tacit.curator.treatments import Noisy
from tacit.errors import JointRefused, NoLaw, TacitError
from tacit.guarantees import Priors
from tacit.ledger import Ledger, Request, Ticket

__all__ = ["contributed"]


def contributed(
    ledger: Ledger, request: Request, read: Callable[[], tuple[list[Noisy], str]], *, check: Any
) -> list[Noisy]:
    """What `read` gives after the charge; a session that was charged for is never charged, or answered, again."""
    if isinstance(request.charge.condition, Priors):
        raise NoLaw(
            operation="an exact answer as a part of a joint release",
            reason="the parts of several holders are releases about different rows, which no theorem joins here",
        )
    if any(e.kind == "reserve" and e.charge().key == request.key for e in ledger.entries()):
        raise JointRefused(
            reason="this holder has answered in this session already", charged="it is not charged twice"
        )
    outcome = ledger.reserve(request, check)
    assert isinstance(outcome, Ticket)
    try:
        answers, digest = read()
    except BaseException:
        with contextlib.suppress(TacitError):
            ledger.fail(outcome)
        raise
    ledger.commit(outcome, {"joint": request.key}, data_digest=digest)
    return answers
