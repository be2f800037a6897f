"""Joint releases: the curator's statistics of several tables that nobody pools.

All holders declare one schema, one unit and the same queries, whose digest is part of every message. It is the
digest of the request (`tacit.curator.request`): it contains no choice, no computed number and no sentence. Each
holder reads its own table through its own curator, which bounds, clamps and rounds, and charges its own ledger
first. Then it adds its share of the noise and sends the sum masked. The second half of this file makes releases
of the sum.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tacit.curator.assignments import Applied, Assignment, NoisyParts, cells_of, groups_of, pure_within
from tacit.curator.cells import RULE
from tacit.curator.certificate import CIPHER, SEEDED, versions
from tacit.curator.charging import Number, Price, charge, given_price
from tacit.curator.contributing import SharePlan
from tacit.curator.curator import Curator
from tacit.curator.functions.fits import PureDensity
from tacit.curator.intervals import expected
from tacit.curator.planning import Plan, Planned, make_plan
from tacit.curator.release import Releases, read_release
from tacit.curator.request import Query, query, request_text
from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.arrays import Words
from tacit.exact.canonical import canonical, sha256
from tacit.exact.checks import check_fields, non_negative, refuse_if, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import digits_up
from tacit.guarantees import Bound, BoundedAdversary, Guarantee, Neighbours, Pure, Unit
from tacit.noise.source import Source, default_source
from tacit.parties.aggregator import SecureSum, Wire, run_in_process
from tacit.parties.holder import Holder, KeptHolder
from tacit.parties.joint_0_1_0 import joint_text
from tacit.parties.joint_assignments import (
    MOST_CELLS,
    JointAssignment,
    JointSparse,
    density_assignment,
    layout,
    less_ring,
    received,
    with_ring,
)
from tacit.parties.masks import random_bytes
from tacit.parties.noise import JointNoise, JointPolya, JointSkellam, root_below
from tacit.parties.session import PROTOCOL, TRIES, Ring, Session, Sizes, ring_for
from tacit.sources.schema import Schema
from tacit.statistics import Statistic
from tacit.statistics.base import Question
from tacit.statistics.sparse import SparseQuestion

ASSUMPTION = "nobody breaks X25519, HKDF-SHA-256, AES-256 or Ed25519"
ADVANTAGE = 2.0**-100
"""The joint allowance for these failures: 2^-128 each, for up to 2^28 keys of one session."""
ROOM_BITS = 62
FORMAT = 1
"""Of the digest of the agreement, since protocol 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """The holders' agreement before anything is read: statistics, schema, unit, price and sizes.

    `most_rows` is a public bound on the rows of one holder, so that all sums fit modulo 2^64. `graph_delta`
    bounds the probability that sparse masks fail, for more than 200 holders, and is part of the delta of every
    release.
    """

    asks: tuple[Query, ...]
    schema: Schema
    unit: Unit
    sizes: Sizes
    price: Price
    most_rows: int = 1 << 30
    graph_delta: float = 0.0
    _plan: Plan = field(init=False, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        asked: Statistic | Query | Sequence[Statistic | Query],
        *,
        schema: Schema | Mapping[str, Any],
        protect: Unit,
        sizes: Sizes,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        mu: Number | None = None,
        most_rows: int = 1 << 30,
        graph_delta: float = 0.0,
    ) -> Joint:
        """The agreement about one statistic or several, at one price."""
        given = [asked] if isinstance(asked, Statistic | Query) else list(asked)
        total = given_price(
            epsilon=epsilon, delta=delta, rho=rho, mu=mu, within=None, confidence=None, simultaneous=False
        )
        if total is None:
            raise InvalidParameter(
                parameter="epsilon", value=None, must="be given: there is no default price"
            )
        return cls(
            asks=tuple(a if isinstance(a, Query) else query(a) for a in given),
            schema=schema if isinstance(schema, Schema) else Schema(schema),
            unit=protect,
            sizes=sizes,
            price=total,
            most_rows=most_rows,
            graph_delta=graph_delta,
        )

    def __post_init__(self) -> None:
        check_fields(self, most_rows=whole, graph_delta=non_negative)
        object.__setattr__(self, "_plan", self.summed(self.price.bound(), remaining=self.sizes.holders))

    # --- plans ------------------------------------------------------------------------------------------
    def plan(self, budget: Bound, *, remaining: int | None = None) -> SharePlan:
        """A holder's share in the terms of its budget; intervals are for this many remaining holders (default: all)."""
        return SharePlan(self.summed(budget, remaining=remaining))

    def summed(self, budget: Bound, *, remaining: int | None = None, protocol: int = PROTOCOL) -> Plan:
        """The plan of the sum over holders, the basis of certificates; its digest is that of the protocol."""
        left = self.sizes.holders if remaining is None else remaining
        base = make_plan(self.asks, schema=self.schema, unit=self.unit, budget=budget, total=self.price)
        prices = self._prices([r.ask for r in base.releases])
        releases = []
        for r, price in zip(base.releases, prices, strict=True):
            assignment = with_ring(
                self._assign(r.ask, r.question, less_ring(price, self.ring), left), self.ring
            )
            guarantee = Guarantee(
                bound=assignment.bound,
                unit=self.unit,
                condition=BoundedAdversary(assumption=ASSUMPTION, advantage=ADVANTAGE),
                declared=self.declared,
            )
            error = expected(r.question, assignment, confidence=r.ask.confidence, rows=r.ask.rows)
            releases.append(replace(r, assignment=assignment, guarantee=guarantee, expected=error))
        charged = charge([r.assignment for r in releases], budget, neighbours=self.unit.neighbours)
        plan = Plan(
            releases=tuple(releases), unit=self.unit, schema=self.schema, charged=charged, digest="", total=self.price
        )  # fmt: skip
        if protocol == 1:
            return replace(plan, digest=sha256(joint_text(plan)))
        return replace(plan, digest=sha256(canonical(self._request(), what="agreement")))

    def _request(self) -> dict[str, Any]:
        """The queries for all holders together. A request to one of them is another request."""
        asked = request_text(
            self.asks, schema=self.schema, unit=self.unit, total=self.price, given=None, reading={}
        )
        return {
            "format": FORMAT,
            "joint": asked,
            "sizes": self.sizes.to_dict(),
            "rows": self.most_rows,
            "graph_delta": str(Fraction(self.graph_delta)),
        }

    @property
    def declared(self) -> tuple[str, ...]:
        """Assumptions of the promise that nobody checks. Guarantees, certificates and every ledger name them."""
        n, c, k = self.sizes.holders, self.sizes.colluding, self.sizes.appearances
        same = ""
        if self.unit.neighbours is Neighbours.REPLACE_ONE:
            same = ", and who replaces them is in the same ones: how many each holder has is known"
        drawn = ""
        if self.ring.side:
            drawn = f", who were chosen before the order of the ring was drawn; it is drawn at most {TRIES:.2g} times"
        return (
            f"at most {c} of the {n} holders collude with the aggregator{drawn}",
            f"one person is in at most {k} of the {n} holders{same}",
        )

    @property
    def ring(self) -> Ring:
        """The graph of shared masks, and the chance that it exposes somebody."""
        return ring_for(self.sizes, self.graph_delta)

    def _prices(self, asks: Sequence[Query]) -> list[Price]:
        """The price of each statistic: its own, or its weight's share of the common price, to which these
        shares add up.
        """
        total = sum((a.weight for a in asks if a.price is None), Fraction(0))
        out = []
        for a in asks:
            if a.price is not None:
                out.append(a.price)
                continue
            part, own = a.weight / total, self.price
            square = None if own.mu is None else root_below(own.mu**2 * part)
            epsilon, delta, rho = (None if v is None else v * part for v in (own.epsilon, own.delta, own.rho))
            out.append(replace(own, epsilon=epsilon, delta=delta, rho=rho, mu=square))
        return out

    def _assign(self, a: Query, question: Question, price: Price, left: int) -> Assignment:
        if a.public is not None or a.sampling or a.agree:
            raise NoLaw(
                operation="public totals, declared sampling or agreement in a joint release",
                reason="not derived here",
            )
        share, k = Fraction(1), self.sizes.appearances
        size = {"honest": self.sizes.honest, "remaining": left}
        if isinstance(question.statistic, PureDensity):
            found = density_assignment(question, price, self._pure(price), appearances=k, size=size)
            self._room(found.fit.largest, [found.fit.joint])
            return found
        sparse = isinstance(question, SparseQuestion)
        if not sparse and (question.statistic.fits != "noise" or not question.known_keys):
            raise NoLaw(
                operation=f"a joint {question.statistic.kind}",
                reason="only sums over rows with declared keys add up over holders",
                hint="counts, sums, histograms, margins, moments, means, variances, ratios and pure densities do; "
                "declare the keys",
            )
        if isinstance(question, SparseQuestion) and question.domain > MOST_CELLS:
            raise InvalidParameter(
                parameter="columns", value=f"{question.domain:,} cells", must=f"span at most {MOST_CELLS:,} cells",
                hint="holders send every cell of the declared domain, empty ones too; name fewer or coarser columns",
            )  # fmt: skip
        groups = groups_of(question)
        share = Fraction(1, max(len(groups), 1))
        options: dict[str, list[Applied]] = {}
        epsilon = pure_within(price, share)
        if epsilon is not None:
            options["Laplace in Pólya shares"] = [
                Applied(parts, JointPolya(steps=l1 * k, noise_scale=l1 * k / epsilon, **size))
                for parts, l1, _ in groups
            ]
        if price.kind == "approximate" and price.epsilon is not None and price.delta is not None:
            skellam = [
                self._skellam(question, g, price.epsilon * share, price.delta * share, size) for g in groups
            ]
            if None not in skellam:
                options["Skellam"] = [x for x in skellam if x is not None]
        if not options:
            raise InvalidParameter(
                parameter="price", value=price.kind, must="be an epsilon, an (epsilon, delta), a rho or a mu"
            )
        errors = {name: sum(x.mechanism.mean_errors(1)[0] for x in some) for name, some in options.items()}
        name = min(errors, key=lambda n: errors[n])
        self._fits(question, options[name])
        made = (JointSparse if sparse else JointAssignment)(
            noise=tuple(options[name]), price=price,
            reason=f"{name} noise of {self.sizes.honest} honest holders", candidates=errors,
        )  # fmt: skip
        return made if made.pure() is not None else replace(made, delta=price.spent_delta)

    def _skellam(
        self, question: Question, group: tuple[tuple[str, ...], int, int], epsilon: Fraction, delta: Fraction,
        size: dict[str, int],
    ) -> Applied | None:  # fmt: skip
        parts, l1, _ = group
        k = self.sizes.appearances
        steps = max(int(question.sensitivities[p].linf) for p in parts) * k
        moved = min(l1 * k, cells_of(question, parts))
        noise = JointSkellam.within(epsilon=epsilon, delta=delta, steps=steps, moved=moved, **size)
        return None if noise is None else Applied(parts, noise)

    @property
    def room(self) -> int:
        """The largest number of one holder, such that the sum of all of them, with the noise, stays within 2^63."""
        return (1 << ROOM_BITS) // self.sizes.holders

    def _pure(self, price: Price) -> Fraction:
        epsilon = pure_within(price)
        if epsilon is None:
            raise InvalidParameter(
                parameter="price",
                value=price.kind,
                must="have room for a pure epsilon",
                hint="pay with epsilon=",
            )
        return epsilon

    def _fits(self, question: Question, noise: Sequence[Applied]) -> None:
        """Numbers and noise fit the field, by public bounds alone."""
        for applied in noise:
            assert isinstance(applied.mechanism, JointNoise)
            self._room(max(int(question.sensitivities[p].linf) for p in applied.parts), [applied.mechanism])

    def _room(self, a_row: int, noise: Sequence[JointNoise]) -> None:
        """Whether this many rows, each adding at most so much, and the noise of all holders leave room."""
        spread = max(64 * math.sqrt(n.left(self.sizes.holders).variance) for n in noise)
        if a_row * self.most_rows > self.room or spread > float(1 << (ROOM_BITS - 1)):
            raise InvalidParameter(
                parameter="most_rows", value=self.most_rows, must="leave room for the sums modulo 2^64",
                hint="declare fewer rows a holder, or a coarser grid",
            )  # fmt: skip

    # --- the vector ---------------------------------------------------------------------------------------
    @property
    def parts(self) -> list[tuple[Planned, str, tuple[int, ...]]]:
        """The parts of all releases in order, each with its shape."""
        return [(r, *one) for r in self._plan.releases for one in layout(r.question, r.assignment)]

    @property
    def length(self) -> int:
        """The number of numbers that a holder sends."""
        return sum(math.prod(shape) for _, _, shape in self.parts)

    @property
    def about(self) -> bytes:
        """The digest of all that is agreed."""
        return self._about(PROTOCOL)

    def _about(self, protocol: int) -> bytes:
        """The same text for a protocol; verification of releases under the first one needs its coverage."""
        if protocol != 1:
            return bytes.fromhex(self._plan.digest)
        said: dict[str, Any] = {
            "plan": self.summed(self.price.bound(), remaining=self.sizes.holders, protocol=1).digest,
            "sizes": self.sizes.to_dict(),
            "rows": self.most_rows,
        }
        said |= {"ring": self.ring.to_dict()} if self.ring.side else {}
        return bytes.fromhex(sha256(canonical(said, what="agreement")))

    def vector(self, answers: Sequence[NoisyParts]) -> Words:
        """A holder's noisy parts modulo 2^64. The sum modulo 2^64 is a function of the sum, so every promise
        remains valid.
        """
        pieces = []
        for r, noisy in zip(self._plan.releases, answers, strict=True):
            for name, _ in layout(r.question, r.assignment):
                values = np.ravel(np.asarray(noisy.parts[name]))
                if values.dtype == object:
                    pieces.append(np.array([int(v) % (1 << 64) for v in values], dtype=np.uint64))
                else:
                    pieces.append(np.ascontiguousarray(values, dtype=np.int64).view(np.uint64))
        return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.uint64)

    # --- sessions -----------------------------------------------------------------------------------------
    def session(
        self, keys: Sequence[bytes], *, nonce: bytes | None = None, protocol: int = PROTOCOL
    ) -> Session:
        """A run of this agreement by the holders of these public keys."""
        fresh = random_bytes(default_source()) if nonce is None else nonce
        return Session(
            sizes=self.sizes, keys=tuple(keys), length=self.length, nonce=fresh,
            about=self._about(protocol),
            graph_delta=self.graph_delta, protocol=protocol,
        )  # fmt: skip

    def check(self, curator: Curator) -> SharePlan:
        """This curator's share of the plan, if its schema and unit equal those of the agreement."""
        mine, ours = curator.schema.to_dict(), self.schema.to_dict()
        if mine != ours or curator.unit != self.unit:
            names = sorted(n for n in {*mine, *ours} if mine.get(n) != ours.get(n))
            raise InvalidParameter(
                parameter="schema", value=names or str(curator.unit), must="be the one that all holders declared",
                hint="bounds, categories and units must agree to the last digit: otherwise holders "
                "would count people differently",
            )  # fmt: skip
        return self.plan(curator.budget.bound)

    def holder(
        self,
        curator: Curator,
        *,
        session: Session,
        index: int,
        key: Ed25519PrivateKey,
        source: Source | None = None,
        table: str = "",
    ) -> Holder:
        """A curator's part in a session, which charges and reads only when the masks are agreed."""
        return Holder(
            session=session, index=index, key=key, contribute=self.contribution(curator, session), source=source,
            table=table, rehearsal=curator.made_up or not curator.publishable,
        )  # fmt: skip

    def kept_holder(
        self,
        curator: Curator,
        *,
        session: Session,
        index: int,
        key: Ed25519PrivateKey,
        state: str | Path,
        source: Source | None = None,
        table: str = "",
    ) -> KeptHolder:
        """Like `holder`, with its state in a file of this folder, so that the state survives the process, as
        sockets and mail require.
        """
        return KeptHolder(
            Path(state) / f"{session.id.hex()[:16]}.state", session=session, index=index, key=key, source=source,
            contribute=self.contribution(curator, session), table=table,
            rehearsal=curator.made_up or not curator.publishable,
        )  # fmt: skip

    def contribution(self, curator: Curator, session: Session) -> Callable[[], Words]:
        """Makes a curator's vector of its present version, once, after the charge."""
        plan, joined = self.check(curator), curator.version
        if session.about != self._about(session.protocol):
            raise InvalidParameter(
                parameter="session", value="another agreement", must="be of this agreement"
            )

        def contribute() -> Words:
            if curator.version != joined:
                raise InvalidParameter(
                    parameter="version", value=curator.version, must="be the one with which the holder joined"
                )
            return self.vector(curator.contribute(plan, key=session.id.hex()))

        return contribute

    def __str__(self) -> str:
        ring = self.ring
        masks = "" if not ring.side else (
            f"\nmasks with {2 * ring.side} neighbours on a ring: a chance of {digits_up(ring.delta, 2)} that they "
            f"fail, in every delta, and of at most {digits_up(ring.failing, 2)} that holders refuse a list though "
            "nobody lies"
        )  # fmt: skip
        return f"{self.sizes}{masks}\n\n{self._plan}"


# From a secure sum to releases: values, intervals that know the noise of all that remained, certificates.


def releases_of(
    joint: Joint, found: SecureSum, *, session: Session, time: str = "", made_by: dict[str, Any] | None = None,
    quality_rule: int = RULE,
) -> Releases:  # fmt: skip
    """The releases of a sum: values, intervals of the noise that is in it, certificates.

    `time`, `made_by` (the versions of libraries) and the rule of quality are today's, unless an old release is
    made again.
    """
    plan = joint.summed(joint.price.bound(), remaining=len(found.remaining), protocol=session.protocol)
    made = _made(joint, found, session) | ({"time": time} if time else {})
    made |= {"versions": made_by} if made_by else {}
    if quality_rule < RULE:
        made["data"] = {k: v for k, v in made["data"].items() if k != "quality_rule"}
    at, answers = 0, []
    for r in plan.releases:
        parts = {}
        for name, shape in layout(r.question, r.assignment):
            size = math.prod(shape)
            parts[name] = found.values[at : at + size].reshape(shape)
            at += size
        answers.append(received(r.question, r.assignment, parts))
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
        "sizes": joint.sizes.to_dict(),
        **({"ring": joint.ring.to_dict()} if joint.ring.side else {}),
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
    asked: Statistic | Query | Sequence[Statistic | Query],
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
    refuse_if(not curators, "curators", 0, "be at least two")
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
