"""From a secure sum to releases: values, intervals that know the noise of all that remained, certificates."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tacit.curator.asks import Ask
from tacit.curator.certificate import CIPHER, SEEDED, versions
from tacit.curator.curator import Curator
from tacit.curator.made import read_release
from tacit.curator.prices import Number
from tacit.curator.quality import RULE
from tacit.curator.release import Releases
from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee, Pure
from tacit.ledger.canonical import sha256
from tacit.noise.source import default_source
from tacit.parties.aggregator import SecureSum
from tacit.parties.joint import Joint
from tacit.parties.masks import random_bytes
from tacit.parties.process import Wire, run_in_process
from tacit.parties.session import Session
from tacit.parties.sizes import Sizes
from tacit.parties.treating import layout, received
from tacit.statistics import Statistic

__all__ = ["joint_release", "releases_of"]


def releases_of(
    joint: Joint, found: SecureSum, *, session: Session, time: str = "", made_by: dict[str, Any] | None = None,
    quality_rule: int = RULE,
) -> Releases:  # fmt: skip
    """The releases of a sum: values, intervals of the noise that is in it, certificates.

    `time`, `made_by` (the versions of libraries) and the rule of quality are those of now, unless somebody makes an old
    one again.
    """
    plan = joint.summed(joint.price.bound(), remaining=len(found.remaining), protocol=session.protocol)
    made = _made(joint, found, session) | ({"time": time} if time else {})
    made |= {"versions": made_by} if made_by else {}
    if quality_rule < RULE:
        made["data"] = {k: v for k, v in made["data"].items() if k != "quality_rule"}
    at, answers = 0, []
    for r in plan.releases:
        parts = {}
        for name, shape in layout(r.question, r.treatment):
            size = math.prod(shape)
            parts[name] = found.values[at : at + size].reshape(shape)
            at += size
        answers.append(received(r.question, r.treatment, parts))
    entry = {
        "id": "joint", "sequence": 0, "time": made["time"], "digest": found.transcript.hex(),
        "answer": sha256(found.values.astype("<i8").tobytes()),
    }  # fmt: skip
    return Releases(
        read_release(
            plan, planned, noisy, made, ledger=entry, spent=plan.charge,
            remaining=Guarantee(bound=Pure(epsilon=0.0), unit=joint.unit),
            replayed=False,
        )
        for planned, noisy in zip(plan.releases, answers, strict=True)
    )  # fmt: skip


def _made(joint: Joint, found: SecureSum, session: Session) -> dict[str, Any]:
    told = {
        "session": session.id.hex(),
        "transcript": found.transcript.hex(),
        "sizes": joint.sizes.describe(),
        **({"ring": joint.ring.record} if joint.ring.side else {}),
        "remaining": list(found.remaining),
        "holders": [k.hex() for k in session.keys],
        "commitments": {str(i): c for i, c in sorted(found.commitments.items())},
    }
    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "sequence": 0,
        "entry": found.transcript.hex(),
        "noise": SEEDED if found.rehearsal else CIPHER,
        "data": {
            "engine": "joint",
            "bounded": True,
            "conditions": list(joint.declared),
            "table": "",
            "version": "",
            "made_up": False,
            "quality_rule": RULE,
            "joint": told,
        },
        "versions": versions(),
    }


def joint_release(
    curators: Sequence[Curator],
    asked: Statistic | Ask | Sequence[Statistic | Ask],
    *,
    fewest: int,
    colluding: int,
    appearances: int = 0,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    graph_delta: float = 0.0,
    wire: Wire | None = None,
) -> Releases:
    """All holders in one process, each with its own curator and ledger: for rehearsals and tests."""
    if not curators:
        raise InvalidParameter(parameter="curators", value=0, must="be at least two")
    sizes = Sizes(holders=len(curators), fewest=fewest, colluding=colluding, appearances=appearances)
    first = curators[0]
    joint = Joint.of(
        asked,
        schema=first.schema,
        protect=first.unit,
        sizes=sizes,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        mu=mu,
        graph_delta=graph_delta,
    )
    keys = [Ed25519PrivateKey.from_private_bytes(random_bytes(default_source())) for _ in curators]
    session = joint.session([k.public_key().public_bytes_raw() for k in keys])
    holders = {
        i: joint.holder(c, session=session, index=i, key=k)
        for i, (c, k) in enumerate(zip(curators, keys, strict=True))
    }
    found = run_in_process(session, holders, wire)
    return releases_of(joint, found, session=session)
