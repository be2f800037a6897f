"""The custodian's acts: roles, requests and approvals, notes, withdrawals and replacements.

Every act is an entry of the chain, written in an exclusive transaction by the same rules that `verify` applies to it
later (`register.py`). None of them returns budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Protocol

from tacit.errors import InvalidParameter, NotAllowed, UnknownName
from tacit.exact.checks import flag, instance, whole
from tacit.guarantees import Bound, Guarantee
from tacit.ledger import budget as totals
from tacit.ledger.budget import ChargeCheck, Limit, in_currency, running_total
from tacit.ledger.entries import (
    Charge,
    Correction,
    Entry,
    Person,
    Request,
    charge_of,
    folded,
    person_body,
    reserve_body,
    shown,
    text,
)
from tacit.ledger.log import AnalystShare, History, Log, State, correction_name, now, share_body
from tacit.ledger.on_random_data import refuse_seen
from tacit.ledger.register import (
    APPROVAL,
    Open,
    Register,
    admitted,
    alike,
    approval_digest,
    asked_digest,
    earlier_digest,
)
from tacit.ledger.store import Connection

CUSTODIAN = "custodian"
"""The name in an entry if nobody is named."""
SIGNED = ("elsewhere", "server")
"""The holder of the private key of an approval: the approver, or a server under the approver's passphrase."""
MOST_OPEN, MOST_OPEN_OF_ONE = 200, 20
"""The largest number of open requests, of everybody and of one person, since every entry's digest covers all
of them."""


class Signer(Protocol):
    """A private key that signs a digest: `tacit.curator.certificate.SigningKey`."""

    def sign(self, format: str, digest: str) -> dict[str, str]:
        """The signature as plain data."""


class Approvals(Log):
    """Names with roles, shares, requests with approvals, notes and corrections of one ledger."""

    @property
    def limit(self) -> Limit:
        """The budget as a limit on running totals."""
        return Limit(bound=self.budget.bound, exact=self.exact)

    # --- people and rules ----------------------------------------------------------------------------
    def people(self) -> dict[str, Person]:
        """Every name that the ledger knows, with its roles and its key."""
        return self._read(lambda state: dict(state.register.people))

    @property
    def four_eyes(self) -> bool:
        """Does every charge need an approval?"""
        return self._read(lambda state: state.register.four_eyes)

    def enrol(
        self,
        name: str,
        roles: str | Iterable[str],
        *,
        key: str = "",
        change: bool = False,
        by: str = CUSTODIAN,
        note: str = "",
    ) -> Entry:
        """Records that a name has these roles from now on, and signs with this public key. Without roles, it
        has none any more.

        A name belongs to one person for ever. A known name changes only with the same key, or if `change`
        declares that it is the same person. `by` names the person who decided that, who must be a custodian if
        the ledger knows one.
        """
        person = Person(name=name, roles=roles, key=key)  # type: ignore[arg-type]
        said = {**person_body(person), "change": flag("change", change), **_by_and_note(by, note)}

        def work(connection: Connection) -> Entry:
            self._sync(connection)
            # What somebody approved ends with the role or the key, and does not come back with them.
            ends = self._state.register.approvals_end(person)
            return self._written_down(connection, "person", **said, **({"revokes": True} if ends else {}))

        return self._write(work)

    def demand(self, four_eyes: bool, *, by: str = CUSTODIAN, note: str = "") -> Entry:
        """Demands an approval for every charge from now on, or for none."""
        return self._say("rule", four_eyes=flag("four_eyes", four_eyes), **_by_and_note(by, note))

    def share(
        self,
        analyst: str,
        bound: Bound,
        exact: Mapping[str, Fraction] | None = None,
        *,
        by: str = CUSTODIAN,
    ) -> Entry:
        """Sets the limit of one analyst ("*": of everybody without one) from now on."""
        share, name = AnalystShare.of(bound, self.budget, exact), text("analyst", analyst)
        return self._say("share", analyst=name, by=text("by", by), **share_body(share, self.budget))

    def shares(self) -> dict[str, Bound]:
        """The limits of single analysts."""
        return self._read(lambda state: {k: v.bound for k, v in state.shares.items()})

    def check_shares(self, shares: Mapping[str, Bound]) -> None:
        """Refuses shares that differ from the ledger's: a plan states them only when the ledger is made."""
        known = self.shares() if shares else {}
        for name, bound in shares.items():
            if known.get(name) != bound:
                raise InvalidParameter(
                    parameter="shares", value=f"{name}: {bound}",
                    must=f"be those of the ledger, which has {known.get(name, 'none')} for {name!r}",
                    hint="a plan cannot change a share; tacit ledger share does, and is written down",
                )  # fmt: skip

    # --- request and approve -------------------------------------------------------------------------
    def request(
        self, request: Request, charge_check: ChargeCheck | None = None, *, note: str = ""
    ) -> tuple[int, Open]:
        """Ask for an approval of exactly this request; returns its number, and the open request. Charges nothing.

        A request that would not fit is refused at once. A repeated request does not make a second one.
        """
        self._acceptable(request)
        if charge_check is None:
            totals.addable(self.budget)
        said = shown("note", note, empty=True)

        def work(connection: Connection) -> tuple[int, Open]:
            self._sync(connection)
            body = self._asked(connection, request)
            self._state.register.asker(request.analyst)
            for number, found in self._state.register.requests.items():
                if found.asked in (asked_digest(body), earlier_digest(body)):
                    return number, found
            body.pop("earlier", None)
            self._fitting(connection, body, charge_check)
            self._room_for_request(request.analyst)
            entry = self._written_down(connection, "request", **body, note=said)
            return entry.sequence, self._register_after(entry).requests[entry.sequence]

        return self._write(work)

    def requests(self) -> dict[int, Open]:
        """The requests that are open, by their numbers."""
        return self._read(lambda state: dict(state.register.requests))

    def approval(self, number: int, by: str) -> str:
        """The digest that `by` signs to approve the open request of this number."""
        number, by = whole("number", number, least=1), text("by", by)
        found = self.requests().get(number)
        if found is None:
            raise NotAllowed(
                who=by, what=f"approve request {number}", reason="no request of this number is open"
            )
        return approval_digest(self.id, number, found, by)

    def approve(
        self,
        number: int,
        *,
        by: str,
        key: Signer | None = None,
        signature: Mapping[str, str] | None = None,
        note: str = "",
        signed: str = "",
    ) -> Entry:
        """Approve the open request of this number, signed with the key of the name that approves.

        Without the key here, `signature` is the signature made elsewhere: `approval(number, by)`. The approval is
        for this request alone, and is used up by the charge that it allows. `signed` says who keeps the private
        key, "server" or "elsewhere". Only a server knows it, and certificates repeat the word.
        """
        if signed not in ("", *SIGNED):
            raise UnknownName(what="place of a signature", name=signed, known=SIGNED)
        given = _signature(signature)
        if key is not None:
            given = key.sign(APPROVAL, self.approval(number, by))
        request = whole("number", number, least=1)

        def work(connection: Connection) -> Entry:
            self._sync(connection)
            found = self._state.register.requests.get(request)
            if found is not None and by != found.analyst and alike(by, found.analyst):
                raise NotAllowed(
                    who=by, what=f"approve request {request}",
                    reason=f"the name is read as {found.analyst!r}, who asked",
                    hint="a second person must approve it",
                )  # fmt: skip
            return self._written_down(
                connection, "approve", request=request, signature=given, **_by_and_note(by, note),
                **({"signed": signed} if signed else {}),
            )  # fmt: skip

        return self._write(work)

    def close_request(self, number: int, *, by: str, note: str = "") -> Entry:
        """Takes an open request back, or declines it."""
        return self._say("close", request=whole("number", number, least=1), **_by_and_note(by, note))

    # --- what is said later --------------------------------------------------------------------------
    def note(self, note: str, *, about: int = 0, by: str = CUSTODIAN) -> Entry:
        """Write a sentence into the chain, about an entry or about the ledger (0)."""

        def work(connection: Connection) -> Entry:
            self._sync(connection)
            if not 0 <= whole("about", about, least=0) <= self._sequence:
                raise InvalidParameter(
                    parameter="about", value=about, must="be the number of an entry, or be left out"
                )
            return self._written_down(
                connection, "note", about=about, by=text("by", by), note=shown("note", note)
            )

        return self._write(work)

    def withdraw(self, number: int, *, note: str, by: str = CUSTODIAN, release: str = "") -> Entry:
        """Withdraw the releases of a charge, with the reason. The charge stays."""
        why = shown("note", note)

        def work(connection: Connection) -> Entry:
            history = self._history(connection)
            about = self._answered(history, number, release)
            before = self._corrections(connection, number)
            if any(c.kind == "withdraw" and c.release in ("", release) for c in before):
                raise InvalidParameter(parameter="number", value=number, must="not be withdrawn already")
            return self._corrected(
                connection, "withdraw", about, before, release=release, by=text("by", by), note=why
            )

        return self._write(work)

    def supersede(
        self, number: int, *, with_: int, note: str = "", by: str = CUSTODIAN, release: str = ""
    ) -> Entry:
        """Records that the release of a later charge, `with_`, replaces that of an earlier one. Both stay paid."""

        def work(connection: Connection) -> Entry:
            history = self._history(connection)
            about, later = self._answered(history, number, release), self._answered(history, with_, "")
            if later.sequence <= about.sequence:
                raise InvalidParameter(
                    parameter="with", value=with_, must=f"be a later charge than {number}",
                    hint="what came earlier cannot replace it",
                )  # fmt: skip
            before = self._corrections(connection, number)
            known = next((c for c in before if c.kind == "supersede" and c.release in ("", release)), None)
            if known is not None:
                raise InvalidParameter(
                    parameter="number", value=number, must=f"not be replaced already, by charge {known.replaced_by}",
                    hint="supersede that one",
                )  # fmt: skip
            if any(not c.release for c in self._corrections(connection, with_)):
                raise InvalidParameter(
                    parameter="with", value=with_, must="stand: it was withdrawn or replaced"
                )
            return self._corrected(
                connection, "supersede", about, before, release=release, by=text("by", by),
                note=shown("note", note, empty=True),
                **{"with": with_, "with_charge": self._digest_of(connection, with_)},
            )  # fmt: skip

        return self._write(work)

    def corrections(self, number: int) -> tuple[Correction, ...]:
        """Later notes about a charge, in order: withdrawn, replaced."""

        def look(connection: Connection) -> tuple[Correction, ...]:
            self._sync(connection)
            return self._corrections(connection, whole("number", number, least=1))

        return self._store.read(look)

    def replaces(self, number: int) -> tuple[str, ...]:
        """The charges that a charge replaces, in words: the other direction of `supersede`. Reads the chain."""
        asked = whole("number", number, least=1)
        return self._store.read(lambda connection: replaced_with(self._history(connection).said, asked))

    # --- inside a transaction ------------------------------------------------------------------------
    def _acceptable(self, request: Request) -> None:
        instance("request", request, Request, must="be a Request")
        self.check(table=request.table)
        in_currency(request.charge, self.budget)

    def check(self, *, budget: Guarantee | None = None, table: str = "") -> None:
        """Refuse to be the ledger of another budget, or of another table."""
        text("table", table, empty=True)
        if budget is not None and self.budget != instance("budget", budget, Guarantee, must="be a guarantee"):
            raise InvalidParameter(
                parameter="budget",
                value=str(budget),
                must=f"be that of the ledger, {self.budget}",
                hint="a budget is decided once; a new one needs a new ledger",
            )
        if table and self.table and table != self.table:
            raise InvalidParameter(
                parameter="table",
                value=table,
                must=f"be that of the ledger, {self.table!r}",
                hint="a ledger belongs to one table; name the other one's ledger",
            )

    def _fitting(
        self, connection: Connection, body: Mapping[str, Any], charge_check: ChargeCheck | None
    ) -> State:
        """The sums with this charge, if it fits the budget and the analyst's share; a refusal if it does not."""
        draft = charge_of(body, sequence=self._sequence + 1, time=now())
        if self._state.looks:
            refuse_seen(draft, self._state.looks, lambda: self._history(connection).plans)
        _spelled_alike(draft.analyst, self._state)
        self._admit("analyst", draft.analyst)
        state = self._state.charged(draft)
        share = state.share_of(draft.analyst)
        if charge_check is None or charge_check is running_total:
            totals.fits(self._state.total, state.total, draft, self.limit)
            if share is not None:
                own = self._state.own(draft.analyst), state.own(draft.analyst)
                totals.fits(*own, draft, share)
            return state
        charges = [*self._history(connection).charges.values(), draft]
        charge_check(charges, self.limit)
        if share is not None:
            charge_check([c for c in charges if c.analyst == draft.analyst], share)
        return state

    def _asked(self, connection: Connection, request: Request) -> dict[str, Any]:
        """What a charge says. If it rests on a record in an earlier form, it has the question's name in that form."""
        body = reserve_body(request, request.table or self.table)
        waiting, looks = {r.asked for r in self._state.register.requests.values()}, self._state.looks
        if not (waiting or looks):
            return body
        plans = self._history(connection).plans if looks else {}
        names: list[dict[str, Any]] = [{"plan": digest} for digest in request.known_as]
        if request.earlier is not None:
            names += [{"plan": one.plan_digest, "told": list(one.told)} for one in request.earlier()]
        for one in names:
            key = one["plan"] if request.key == request.plan_digest else request.key
            named = {**body, "earlier": {**one, "request": key}}
            if earlier_digest(named) in waiting or (looks and one["plan"] in plans):
                return named
        return body

    def _allowed(self, body: dict[str, Any]) -> tuple[dict[str, Any], Register]:
        """The text of a charge, with its consent and the register after it; or a refusal."""
        consent = self._state.register.consent(body)
        approved = consent["approved_by"] if consent else []
        if self._state.register.four_eyes and all(alike(name, body["analyst"]) for name in approved):
            raise NotAllowed(
                who=body["analyst"], what="be charged for this plan",
                reason="every approver's name can be confused with the asker's",
            )  # fmt: skip
        whole_body = body if consent is None else {**body, "consent": consent}
        return whole_body, self._state.register.after("reserve", whole_body)

    def _signed_where(self, connection: Connection, body: Mapping[str, Any]) -> dict[str, str]:
        """The holders of the keys of the approvals behind a charge, if recorded."""
        consent = body.get("consent", {})
        names = consent.get("approved_by", ())
        if not names:
            return {}
        later = self._since(connection, int(consent["request"]))
        said = [e.body for e in later if e.kind == "approve"]
        found = {b["by"]: b["signed"] for b in said if b["request"] == consent["request"] and "signed" in b}
        return {name: str(found[name]) for name in names if name in found}

    def _say(self, kind: str, **body: Any) -> Entry:
        def work(connection: Connection) -> Entry:
            self._sync(connection)
            return self._written_down(connection, kind, **body)

        return self._write(work)

    def _register_after(self, entry: Entry) -> Register:
        return self._state.register.after(entry.kind, entry.body)

    def _written_down(self, connection: Connection, kind: str, **body: Any) -> Entry:
        """Appends an entry, if the rules allow it. Names in it are known, or valid new ones."""
        for field in ("name", "analyst", "by"):
            if field in body and (field, body[field]) not in (("by", CUSTODIAN), ("analyst", "*")):
                self._admit(field, body[field])
        draft = self._next(kind, self._state, **body)
        state = self._state.after(kind, draft.body)
        entry = self._next(kind, state, **{**body, "time": draft.body["time"]})
        self._append(connection, entry, state)
        return entry

    def _admit(self, parameter: str, name: str) -> None:
        """A known name with the same characters, or a new one that resembles none."""
        state = self._state
        people, shares, analysts = state.register.people, state.shares, state.analysts
        if name in people or name in shares or name in analysts:
            return
        asking = {r.analyst for r in state.register.requests.values()}
        admitted(parameter, name, {*people, *shares, *analysts, *asking} - {"*"})

    def _room_for_request(self, analyst: str) -> None:
        open_ = self._state.register.requests.values()
        own = sum(r.analyst == analyst for r in open_)
        if own >= MOST_OPEN_OF_ONE or len(open_) >= MOST_OPEN:
            counted = f"{own} of their requests" if own >= MOST_OPEN_OF_ONE else f"{len(open_)} requests"
            raise NotAllowed(
                who=analyst, what="ask for another approval", reason=f"{counted} are open",
                hint="tacit ledger show lists them; tacit ledger withdraw takes one back",
            )  # fmt: skip

    def _answered(self, history: History, number: int, release: str) -> Charge:
        """An answered charge with a release of this name."""
        found = history.charges.get(whole("number", number, least=1))
        if found is None or history.became(number) != "committed":
            raise InvalidParameter(
                parameter="number", value=number, must="be that of a charge that was answered",
                hint="tacit ledger show lists the charges with their numbers",
            )  # fmt: skip
        names = [str(one["release"]) for one in found.told]
        if text("release", release, empty=True) and release not in names:
            raise InvalidParameter(
                parameter="release", value=release, must=f"be a release of charge {number}",
                hint=f"it has {', '.join(names)}" if names else "the charge names none",
            )  # fmt: skip
        return found

    def _corrected(
        self, connection: Connection, kind: str, about: Charge, before: tuple[Correction, ...], **body: Any
    ) -> Entry:
        number, digest = len(before) + 1, self._digest_of(connection, about.sequence)
        entry = self._written_down(
            connection, kind, about=about.sequence, charge=digest, number=number, **body
        )
        self._note(connection, correction_name(about.sequence, number), entry)
        return entry

    def _corrections(self, connection: Connection, about: int) -> tuple[Correction, ...]:
        found: list[Correction] = []
        while (entry := self._find(connection, correction_name(about, len(found) + 1))) is not None:
            found.append(entry.correction())
        return tuple(found)


def replaced_with(said: Iterable[Entry], number: int) -> tuple[str, ...]:
    """The charges, or releases of charges, that entries say this charge replaces."""
    found = [e.body for e in said if e.kind == "supersede" and e.body["with"] == number]
    return tuple(
        f"release {b['release']!r} of charge {b['about']}" if b["release"] else f"charge {b['about']}"
        for b in found
    )


def _signature(given: Mapping[str, str] | None) -> dict[str, str]:
    """A signature as plain data, without further fields; empty for none."""
    if given is None:
        return {}
    names = {"algorithm", "key", "value"}
    texts = isinstance(given, Mapping) and all(isinstance(v, str) and len(v) <= 200 for v in given.values())
    if not texts or set(given) != names:
        raise InvalidParameter(
            parameter="signature", value=type(given).__name__, must="have algorithm, key and value, and nothing else",
            hint="it is what SigningKey.sign(...) gives",
        )  # fmt: skip
    return {name: given[name] for name in sorted(names)}


def _by_and_note(by: str, note: str) -> dict[str, str]:
    return {"by": text("by", by), "note": shown("note", note, empty=True)}


def _spelled_alike(name: str, state: State) -> None:
    """Refuses a name without a share that reads like a name with one, because the whole budget would be open to it.

    A name that an older version enrolled beside its lookalike stays valid.
    """
    if name in state.shares:
        return
    for known in state.shares:
        if folded(known) == folded(name) or (name not in state.register.people and alike(known, name)):
            raise NotAllowed(
                who=name, what="be charged", reason=f"the share is that of {known!r}, a name that looks the same",
                hint="spell the analyst as tacit ledger show has it",
            )  # fmt: skip
