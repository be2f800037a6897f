"""From a recorded answer to its releases: values, intervals and certificates are functions of plan and record alone.

So a replay gives what the first answer gave, and whoever has the ledger can make a certificate again and compare.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tacit.curator.certificate import CIPHER, certify
from tacit.curator.consistent import finish
from tacit.curator.functions.treatment import FunctionTreatment
from tacit.curator.plan import Plan, Planned
from tacit.curator.random_counts import OnRandomData
from tacit.curator.release import Release
from tacit.curator.sampling import population
from tacit.curator.treatments import Noisy
from tacit.guarantees import Guarantee
from tacit.ledger import Correction
from tacit.ledger.canonical import sha256

__all__ = ["ledger_part", "read_release"]


def ledger_part(ledger: str, recorded: bytes, made: dict[str, Any]) -> dict[str, Any]:
    """What a certificate says of the ledger: which entry charged for it, and the digest of the recorded answer."""
    named = {"id": ledger, "sequence": made["sequence"], "time": made["time"], "digest": made["entry"]}
    return {**named, "answer": sha256(recorded)}


def _function(planned: Planned, noisy: Noisy) -> dict[str, Any] | None:
    treatment = planned.treatment
    if not isinstance(treatment, FunctionTreatment):
        return None
    return treatment.function(planned.question, noisy).record


def read_release(
    plan: Plan, planned: Planned, noisy: Noisy, made: dict[str, Any], *, ledger: dict[str, Any],
    spent: Guarantee, remaining: Guarantee, replayed: bool, said: tuple[Correction, ...] = (),
) -> Release:  # fmt: skip
    """One release of a recorded answer."""
    if planned.ask.sampling:
        estimate = population(planned.question, planned.treatment, noisy, planned.ask.confidence)
    else:
        estimate = planned.treatment.read(planned.question, noisy, planned.ask.confidence)
    treatment = planned.treatment
    told = treatment.told(noisy) if isinstance(treatment, OnRandomData) else None
    if planned.ask.consistent or planned.ask.public is not None:
        estimate = finish(planned.question, planned.treatment, noisy, estimate)
    return Release(
        planned=planned, noisy=noisy, estimate=estimate, standing=(spent, remaining), replayed=replayed,
        publishable=made["noise"] == CIPHER, made_up=made["data"].get("made_up") is True,
        joint="joint" in made["data"],
        corrections=tuple(c for c in said if c.release in ("", planned.name)), data=made["data"],
        certify=partial(
            certify, plan, planned, ledger=ledger, made=made, function=_function(planned, noisy), told=told
        ),
    )  # fmt: skip
