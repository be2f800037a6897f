"""Joint releases: the curator's statistics of several tables that nobody pools.

All holders declare one schema, one unit and the same asks; the digest of that is part of every message. Each reads its
own table through its own curator, which bounds, clamps, rounds and charges its own ledger first; adds its share of the
noise; and sends it masked. What is made of the sum: `releases.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tacit.curator.asks import Ask, ask
from tacit.curator.charges import charge
from tacit.curator.curator import Curator
from tacit.curator.expected_error import expected
from tacit.curator.plan import Plan, Planned, describe_plan, make_plan
from tacit.curator.prices import Number, Price, stated
from tacit.curator.treatments import Applied, Noisy, Treatment, cells_of, groups_of, pure_within
from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.checks import whole
from tacit.guarantees import Bound, BoundedAdversary, Guarantee, Neighbours, Unit
from tacit.ledger.canonical import canonical, sha256
from tacit.noise.source import Source, default_source
from tacit.parties.holder import Holder
from tacit.parties.masks import Words, random_bytes
from tacit.parties.noise import JointNoise, JointPolya, JointSkellam, root_below
from tacit.parties.session import Session
from tacit.parties.sizes import COMPLETE, Sizes
from tacit.sources.schema import Schema
from tacit.statistics import Statistic
from tacit.statistics.base import Question

__all__ = ["ASSUMPTION", "Joint"]

ASSUMPTION = "nobody breaks X25519, HKDF-SHA-256, AES-256 or Ed25519"
ADVANTAGE = 2.0**-100
"""What is granted against them together: 2^-128 each, for up to 2^28 keys of one session."""
ROOM_BITS = 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """What holders agree on before anything is read: statistics, schema, unit, price and sizes.

    `most_rows` is a public bound on the rows of one holder, so that all sums fit modulo 2^64.
    """

    asks: tuple[Ask, ...]
    schema: Schema
    unit: Unit
    sizes: Sizes
    price: Price
    most_rows: int = 1 << 30
    _plan: Plan = field(init=False, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        asked: Statistic | Ask | Sequence[Statistic | Ask],
        *,
        schema: Schema | Mapping[str, Any],
        protect: Unit,
        sizes: Sizes,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        mu: Number | None = None,
        most_rows: int = 1 << 30,
    ) -> Joint:
        """The agreement about one statistic or several, at one price."""
        given = [asked] if isinstance(asked, Statistic | Ask) else list(asked)
        total = stated(
            epsilon=epsilon, delta=delta, rho=rho, mu=mu, within=None, confidence=None, simultaneous=False
        )
        if total is None:
            raise InvalidParameter(
                parameter="epsilon", value=None, must="be given: there is no default price"
            )
        return cls(
            asks=tuple(a if isinstance(a, Ask) else ask(a) for a in given),
            schema=schema if isinstance(schema, Schema) else Schema(schema),
            unit=protect,
            sizes=sizes,
            price=total,
            most_rows=most_rows,
        )

    def __post_init__(self) -> None:
        if self.sizes.holders > COMPLETE:
            raise NoLaw(
                operation=f"a joint release of {self.sizes.holders} holders",
                reason=f"beyond {COMPLETE} holders masks are sparse, and no plan has their chance in its price yet",
                hint="the secure sum itself takes them: tacit.parties.Session(graph_delta=...)",
            )
        object.__setattr__(self, "most_rows", whole("most_rows", self.most_rows))
        object.__setattr__(self, "_plan", self.plan(self.price.bound(), remaining=self.sizes.holders))

    # --- plans ------------------------------------------------------------------------------------------
    def plan(self, budget: Bound, *, remaining: int | None = None) -> Plan:
        """The plan in the terms of a holder's budget; its noise is that of so many that remain (all, if not said)."""
        left = self.sizes.holders if remaining is None else remaining
        base = make_plan(self.asks, schema=self.schema, unit=self.unit, budget=budget, total=self.price)
        prices = self._prices([r.ask for r in base.releases])
        releases = []
        for r, price in zip(base.releases, prices, strict=True):
            treatment = self._treat(r.ask, r.question, price, left)
            guarantee = Guarantee(
                bound=treatment.bound,
                unit=self.unit,
                condition=BoundedAdversary(assumption=ASSUMPTION, advantage=ADVANTAGE),
                declared=self.declared,
            )
            error = expected(r.question, treatment, confidence=r.ask.confidence, rows=r.ask.rows)
            releases.append(replace(r, treatment=treatment, guarantee=guarantee, expected=error))
        charged = charge([r.treatment for r in releases], budget, neighbours=self.unit.neighbours)
        plan = Plan(releases=tuple(releases), unit=self.unit, schema=self.schema, charged=charged, digest="")
        return replace(plan, digest=sha256(describe_plan(plan, self.price)))

    @property
    def declared(self) -> tuple[str, ...]:
        """What the promise rests on and nobody checks; it stands in guarantees, certificates and every ledger."""
        n, c, k = self.sizes.holders, self.sizes.colluding, self.sizes.appearances
        same = ""
        if self.unit.neighbours is Neighbours.REPLACE_ONE:
            same = ", and who replaces them is in the same ones: how many each holder has is known"
        return (
            f"at most {c} of the {n} holders collude with the aggregator",
            f"one person is in at most {k} of the {n} holders{same}",
        )

    def _prices(self, asks: Sequence[Ask]) -> list[Price]:
        """The price of each: its own, or its weight's share of the common one, which add up to it."""
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

    def _treat(self, a: Ask, question: Question, price: Price, left: int) -> Treatment:
        if question.statistic.fits != "noise" or not question.known_keys:
            raise NoLaw(
                operation=f"a joint {question.statistic.kind}",
                reason="only sums over rows with declared keys add up over holders",
                hint="counts, sums, histograms, margins, means, variances and ratios do; declare the keys",
            )
        if a.public is not None or a.sampling:
            raise NoLaw(
                operation="public totals or declared sampling in a joint release", reason="not derived here"
            )
        groups = groups_of(question)
        share, k = Fraction(1, max(len(groups), 1)), self.sizes.appearances
        size = {"honest": self.sizes.honest, "remaining": left}
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
        found = Treatment(
            noise=tuple(options[name]), price=price,
            reason=f"{name} noise of {self.sizes.honest} honest holders", candidates=errors,
        )  # fmt: skip
        return found if found.pure() is not None else replace(found, delta=price.spent_delta)

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
        """What one holder's number may be at most: so many of them, and the noise, stay within 2^63."""
        return (1 << ROOM_BITS) // self.sizes.holders

    def _fits(self, question: Question, noise: Sequence[Applied]) -> None:
        """Numbers and noise fit the field, by public bounds alone."""
        for applied in noise:
            assert isinstance(applied.mechanism, JointNoise)
            spread = 64 * math.sqrt(applied.mechanism.left(self.sizes.holders).variance)
            largest = max(int(question.sensitivities[p].linf) for p in applied.parts) * self.most_rows
            if largest > self.room or spread > float(1 << (ROOM_BITS - 1)):
                raise InvalidParameter(
                    parameter="most_rows", value=self.most_rows, must="leave room for the sums modulo 2^64",
                    hint="declare fewer rows a holder, or a coarser grid",
                )  # fmt: skip

    # --- the vector ---------------------------------------------------------------------------------------
    @property
    def parts(self) -> list[tuple[Planned, str, int]]:
        """The parts of all releases in order, each with its number of cells."""
        return [(r, p.name, p.cells or 0) for r in self._plan.releases for p in r.question.parts]

    @property
    def length(self) -> int:
        """How many numbers a holder sends."""
        return sum(cells for _, _, cells in self.parts)

    @property
    def about(self) -> bytes:
        """The digest of all that is agreed."""
        said = {"plan": self._plan.digest, "sizes": self.sizes.describe(), "rows": self.most_rows}
        return bytes.fromhex(sha256(canonical(said, what="agreement")))

    def vector(self, answers: Sequence[Noisy]) -> Words:
        """A holder's noisy parts modulo 2^64: the sum modulo 2^64 is a function of the sum, so no promise minds."""
        pieces = []
        for r, noisy in zip(self._plan.releases, answers, strict=True):
            for p in r.question.parts:
                values = np.ravel(np.asarray(noisy.parts[p.name]))
                if values.dtype == object:
                    pieces.append(np.array([int(v) % (1 << 64) for v in values], dtype=np.uint64))
                else:
                    pieces.append(np.ascontiguousarray(values, dtype=np.int64).view(np.uint64))
        return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.uint64)

    # --- sessions -----------------------------------------------------------------------------------------
    def session(self, keys: Sequence[bytes], *, nonce: bytes | None = None) -> Session:
        """A run of this agreement by the holders of these public keys."""
        fresh = random_bytes(default_source()) if nonce is None else nonce
        return Session(sizes=self.sizes, keys=tuple(keys), length=self.length, about=self.about, nonce=fresh)

    def check(self, curator: Curator) -> Plan:
        """The plan in this curator's terms, if its schema and unit are those of the agreement."""
        mine, ours = curator.schema.describe(), self.schema.describe()
        if mine != ours or curator.unit != self.unit:
            names = sorted(n for n in {*mine, *ours} if mine.get(n) != ours.get(n))
            raise InvalidParameter(
                parameter="schema", value=names or str(curator.unit), must="be the one that all holders declared",
                hint="bounds, categories and units must agree to the last digit: else people would count differently",
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
        """A curator's part in a session: it charges and reads when the masks are agreed, and not before."""
        return Holder(
            session=session, index=index, key=key, contribute=self.contribution(curator, session), source=source,
            table=table, rehearsal=curator.made_up or not curator.publishable,
        )  # fmt: skip

    def contribution(self, curator: Curator, session: Session) -> Callable[[], Words]:
        """What makes a curator's vector, once, of the version that it has now: charged first."""
        plan, joined = self.check(curator), curator.version
        if session.about != self.about:
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
        return f"{self.sizes}\n\n{self._plan}"
