"""What the entries so far amount to: the running sum of all, of each analyst, the shares, and who may do what.

It is part of the chain: each entry states the sum (`total`) and the digest of the rest (`state`), so that whoever
opens a ledger checks its end and needs not read what came before. Sums are exact rationals.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from tacit.guarantees import Bound, Guarantee
from tacit.guarantees.declarations import SEEN, SEEN_ANOTHER
from tacit.guarantees.record import from_record, to_record
from tacit.ledger import budget as totals
from tacit.ledger.budget import Amounts, Limit
from tacit.ledger.canonical import canonical, canonical_table, sha256
from tacit.ledger.entries import Charge, exact_amounts
from tacit.ledger.register import Register

__all__ = ["Share", "State", "looks_before", "read_share", "share_body", "version_place"]

ENDLESS = "inf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """An analyst's limit, and the exact numbers that it stands for."""

    bound: Bound
    exact: Mapping[str, Fraction]

    @classmethod
    def of(cls, bound: Bound, budget: Guarantee, exact: Mapping[str, Fraction] | None = None) -> Share:
        """A share of this budget; its floats stand for the decimals that they print as unless said otherwise."""
        totals.share(bound, budget)
        return cls(
            bound=bound, exact=totals.typed(bound) | exact_amounts(replace(budget, bound=bound), exact)
        )


def version_place(table: str, version: str) -> str:
    """A declared version of a table, as one text."""
    return canonical([table, version])


def looks_before(looks: Mapping[str, int], first: int | None, place: str) -> tuple[str, ...]:
    """What must be said of a plan that stands in entry `first`, or in none yet, and is about this place."""
    before = {name for name, sequence in looks.items() if first is None or sequence < first}
    return ((SEEN,) if place in before else ()) + ((SEEN_ANOTHER,) if before - {place} else ())


def share_body(share: Share, budget: Guarantee) -> dict[str, Any]:
    """A share as plain data."""
    return {"share": to_record(replace(budget, bound=share.bound)), "exact": _texts(share.exact)}


def read_share(body: Mapping[str, Any]) -> Share:
    """The share of plain data."""
    return Share(bound=from_record(body["share"]).bound, exact=_fractions(body["exact"]))


def _texts(exact: Mapping[str, Fraction]) -> dict[str, str]:
    return {k: str(v) for k, v in exact.items()}


def _fractions(exact: Mapping[str, str]) -> dict[str, Fraction]:
    return {k: Fraction(v) for k, v in exact.items()}


def written_amounts(amounts: Amounts) -> dict[str, str]:
    """A sum as plain data."""
    return {k: ENDLESS if v is None else str(v) for k, v in amounts.items()}


def read_amounts(said: Mapping[str, str], budget: Guarantee) -> Amounts:
    """The sum of plain data, its numbers in the order of the budget's."""
    names = totals.zero(budget)
    if set(names) != set(said):
        raise ValueError("other numbers than the budget's")
    return {k: None if said[k] == ENDLESS else Fraction(said[k]) for k in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Sums and shares after some entry. Never changed: each entry makes a new one."""

    budget: Guarantee
    total: Amounts
    analysts: Mapping[str, Amounts] = field(default_factory=dict)
    shares: Mapping[str, Share] = field(default_factory=dict)
    looks: Mapping[str, int] = field(default_factory=dict)
    """Which versions the custodian has looked at, and the entry of the first look at each."""
    register: Register = field(default_factory=Register)
    _words: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def start(cls, budget: Guarantee, shares: Mapping[str, Share], *, ledger: str = "") -> State:
        """Before the first entry of the ledger with this id."""
        return cls(
            budget=budget,
            total=totals.zero(budget),
            shares=dict(shares),
            register=Register(ledger=ledger),
        )

    @classmethod
    def read(cls, budget: Guarantee, total: Mapping[str, str], text: str, *, ledger: str = "") -> State:
        """The state of an entry's `total` and the text that its `state` is the digest of."""
        data = json.loads(text)
        return cls(
            budget=budget,
            total=read_amounts(total, budget),
            analysts={k: read_amounts(v, budget) for k, v in data["analysts"].items()},
            shares={k: read_share(v) for k, v in data["shares"].items()},
            looks={str(k): int(v) for k, v in data.get("looks", {}).items()},
            register=Register.read(ledger, data),
        )

    @property
    def text(self) -> str:
        """All but the sum, as one canonical text; made once, since a state is never changed."""
        if "text" not in self._words:
            own: dict[str, Any] = {
                "analysts": {k: written_amounts(v) for k, v in self.analysts.items()},
                "shares": {k: share_body(v, self.budget) for k, v in self.shares.items()},
                # A ledger that nobody looked for has the text that it always had.
                **({"looks": dict(self.looks)} if self.looks else {}),
            }
            texts = {name: canonical(part) for name, part in own.items()} | self.register.texts
            self._words["text"] = canonical_table(texts)
        return str(self._words["text"])

    @property
    def words(self) -> dict[str, Any]:
        """What an entry says of it."""
        if "said" not in self._words:
            self._words["said"] = written_amounts(self.total), sha256(self.text)
        total, state = self._words["said"]
        return {"total": dict(total), "state": state}

    def after(self, kind: str, body: Mapping[str, Any], charge: Charge | None = None) -> State:
        """The state after an entry that says this; a refusal where who may do what does not allow it."""
        register = self.register.after(kind, body)
        state = self if register is self.register else replace(self, register=register)
        if kind == "reserve" and charge is not None:
            return state.charged(charge)
        if kind == "look":
            return state.looked(version_place(body["table"], body["version"]), int(body["sequence"]))
        return state.shared(body["analyst"], read_share(body)) if kind == "share" else state

    def charged(self, charge: Charge) -> State:
        """With one charge more."""
        own = totals.plus(self.own(charge.analyst), charge, self.budget)
        return replace(
            self,
            total=totals.plus(self.total, charge, self.budget),
            analysts={**self.analysts, charge.analyst: own},
        )

    def shared(self, analyst: str, share: Share) -> State:
        """With another limit for one analyst."""
        return replace(self, shares={**self.shares, analyst: share})

    def looked(self, place: str, sequence: int) -> State:
        """With a look at one version by this entry; the first look at it stays the first."""
        return replace(self, looks={**self.looks, place: self.looks.get(place, sequence)})

    def own(self, analyst: str) -> Amounts:
        """The sum of one analyst's charges."""
        return dict(self.analysts.get(analyst) or totals.zero(self.budget))

    def share_of(self, analyst: str) -> Limit | None:
        """The analyst's own limit, or that of everybody who has none."""
        found = self.shares.get(analyst, self.shares.get("*"))
        if found is None:
            return None
        return Limit(bound=found.bound, exact=found.exact, whose=f"the share of {analyst!r}")

    def spent(self, analyst: str | None, limit: Limit) -> Bound:
        """What was spent by all, or by one analyst, rounded up."""
        return totals.reading(self.total if analyst is None else self.own(analyst), limit)[0]

    def left(self, analyst: str | None, limit: Limit) -> Bound:
        """What is left, rounded down; for an analyst with a share, of both limits the smaller."""
        return self.standing(analyst, limit)[1]

    def standing(self, analyst: str | None, limit: Limit) -> tuple[Bound, Bound]:
        """What was spent by all, and what is left for the analyst, in one reading of the sum."""
        spent, rest = totals.reading(self.total, limit)
        share = None if analyst is None else self.share_of(analyst)
        if analyst is None or share is None:
            return spent, rest
        return spent, totals.smaller(rest, totals.reading(self.own(analyst), share)[1])
