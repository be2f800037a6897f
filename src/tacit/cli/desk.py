"""`tacit ledger make|person|rule|share|request|approve|withdraw|supersede|note`: who may do what, and corrections."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.ledger import JSON, WAIT, WHERE, ledger
from tacit.cli.output import print_json
from tacit.errors import InvalidParameter, visible

if TYPE_CHECKING:
    from tacit.guarantees import Bound
    from tacit.ledger import Entry

__all__: list[str] = []

_PLAN = typer.Argument(..., metavar="PLAN", help="The plan, a TOML file.")
_BY = typer.Option("custodian", "--as", help="The name that records this.")
_NOTE = typer.Option("", "--note", help="A sentence to record with it.")
_RELEASE = typer.Option("", "--release", help="One release of the charge; by default all.")
_CHARGE = typer.Argument(
    ..., metavar="CHARGE", help="The number of the charge, as tacit ledger show prints it."
)


def _done(entry: Entry, json: bool, sentence: str, **more: Any) -> None:
    if json:
        print_json({"entry": entry.sequence, "digest": entry.digest, **more})
    else:
        print(visible(f"{sentence} (entry {entry.sequence})"))


@ledger.command(name="make")
def make(path: Path = _PLAN, json: bool = JSON) -> None:
    """Make the ledger of a table before the first release.

    It gets the budget and the shares of the plan. Charges nothing and reads no data.
    """
    from tacit.curator.files import read_plan

    with read_plan(path).curator() as curator:
        made = curator.ledger
        found = {"ledger": made.place, "id": made.id, "anchor": made.anchor}
    if json:
        print_json(found)
    else:
        print(visible(f"ledger: {found['ledger']}"))


@ledger.command(name="person")
def person(
    where: str = WHERE,
    name: str = typer.Argument(..., metavar="NAME", help="The name, as plans and approvals spell it."),
    role: list[str] = typer.Option(
        [], "--role", help="analyst, approver or custodian (repeatable); none removes all roles."
    ),
    key: Path | None = typer.Option(None, "--key", help="The public key of this person (.pub)."),
    change: bool = typer.Option(False, "--change", help="Change the roles or the key of a known name."),
    by: str = _BY,
    note: str = _NOTE,
    wait: float = WAIT,
    json: bool = JSON,
) -> None:
    """Record a name with its roles and its public key.

    An approver needs a key, since approvals are signed. A name belongs to one person for ever.
    """
    from tacit.curator.signing import PublicKey
    from tacit.ledger import Ledger

    public = "" if key is None else PublicKey.read(key).text
    with Ledger.open(where, wait_seconds=wait) as found:
        if change and key is None and name in (known := found.people()):
            public = known[name].key
        entry = found.enrol(name, role, key=public, change=change, by=by, note=note)
    roles = list(entry.body["roles"])
    _done(entry, json, f"{name}: {', '.join(roles) or 'no role any more'}", name=name, roles=roles)


@ledger.command(name="rule")
def rule(
    where: str = WHERE,
    four_eyes: bool = typer.Option(..., "--four-eyes/--no-four-eyes", help="Every charge needs an approval."),
    by: str = _BY,
    note: str = _NOTE,
    wait: float = WAIT,
    json: bool = JSON,
) -> None:
    """Require a second person's approval of every charge, or stop."""
    from tacit.ledger import Ledger

    with Ledger.open(where, wait_seconds=wait) as found:
        entry = found.demand(four_eyes, by=by, note=note)
    said = "every charge needs an approval" if four_eyes else "no approval is demanded"
    _done(entry, json, said, four_eyes=four_eyes)


@ledger.command(name="share")
def share(
    where: str = WHERE,
    analyst: str = typer.Argument(..., metavar="ANALYST", help='The name; "*" for all without a share.'),
    epsilon: float | None = typer.Option(None, "--epsilon", help="For a budget in epsilon."),
    delta: float | None = typer.Option(None, "--delta", help="Beside epsilon, for a budget with a delta."),
    rho: float | None = typer.Option(None, "--rho", help="For a budget in rho (zCDP)."),
    mu: float | None = typer.Option(None, "--mu", help="For a budget in mu (Gaussian DP)."),
    by: str = _BY,
    wait: float = WAIT,
    json: bool = JSON,
) -> None:
    """Set how much of the budget one analyst may spend."""
    from tacit.ledger import Ledger

    with Ledger.open(where, wait_seconds=wait) as found:
        bound = _bound(epsilon, delta, rho, mu, found.budget.bound.kind)
        entry = found.share(analyst, bound, by=by)
    _done(entry, json, f"share of {analyst}: {bound}", analyst=analyst, share=dict(bound.parameters))


def _bound(
    epsilon: float | None, delta: float | None, rho: float | None, mu: float | None, kind: str
) -> Bound:
    from tacit.curator.prices import price

    if kind == "approximate" and epsilon is not None and delta is None:
        raise InvalidParameter(
            parameter="--delta", value=None, must="be given for a budget with a delta",
            hint="a share without one could pay for no release that spends a delta: say --delta 0.0000001, or less",
        )  # fmt: skip
    return price(epsilon=epsilon, delta=delta, rho=rho, mu=mu).bound()


@ledger.command(name="request")
def request(
    path: Path = _PLAN,
    key: str | None = typer.Option(
        None, "--key", help="The name of the later release (tacit release --key)."
    ),
    note: str = _NOTE,
    json: bool = JSON,
) -> None:
    """Ask for approval of exactly this plan.

    Charges nothing and reads no data. Refuses a plan that does not fit the budget.
    """
    from tacit.curator.files import read_plan

    found = read_plan(path)
    made = found.plan()
    with found.curator() as curator:
        number = curator.request(made, key=key, note=note)
        where, approved = curator.ledger.place, sorted(curator.ledger.requests()[number].approved)
    if json:
        told = {"request": number, "ledger": where, "plan": made.digest, "charge": made.charge.record}
        print_json({**told, "approved_by": approved})
        return
    print(f"request {number}: approved by {', '.join(approved)}" if approved else f"request {number}")
    if not approved:
        print(visible(f"an approver says: tacit ledger approve {where} {number} --as NAME --sign KEY"))


@ledger.command(name="approve")
def approve(
    where: str = WHERE,
    number: int = typer.Argument(..., metavar="REQUEST", help="The number of the request."),
    by: str = typer.Option(..., "--as", help="The approver's name."),
    sign: Path | None = typer.Option(None, "--sign", help="The approver's private key."),
    plan: Path | None = typer.Option(None, "--plan", help="The plan file, to compare with the request."),
    note: str = _NOTE,
    wait: float = WAIT,
    json: bool = JSON,
) -> None:
    """Approve a request, signed with the approver's key.

    The approval counts once, for this plan, table, version, price and asker. Nobody can approve their own
    request.
    """
    from tacit.curator.signing import SigningKey
    from tacit.ledger import Ledger, overview

    key = None if sign is None else SigningKey.read(sign)
    with Ledger.open(where, wait_seconds=wait) as found:
        if plan is not None:
            asked = {r["sequence"]: r["plan"] for r in overview(found)["requests"]}.get(number)
            _same(plan, asked)
        entry = found.approve(number, by=by, key=key, note=note)
    _done(entry, json, f"request {number} is approved by {by}", request=number, by=by)


def _same(path: Path, asked: str | None) -> None:
    from tacit.curator.files import read_plan
    from tacit.curator.request_0_1_0 import earlier_requests

    plan = read_plan(path).plan()
    known = (plan.digest, *plan.earlier, *(one.plan_digest for one in earlier_requests(plan)))
    if asked is not None and asked not in known:
        raise InvalidParameter(
            parameter="--plan", value=str(path), must="be the plan that is asked",
            hint="the request is about another one; nothing was approved",
        )  # fmt: skip


def _about(number: int, release: str) -> str:
    """What is corrected: the whole charge, or the one release that is named."""
    return f"release {release!r} of charge {number}" if release else f"charge {number}"


def _others(release: str) -> str:
    return "; its other releases stand as before" if release else ""


@ledger.command(name="withdraw")
def withdraw(
    where: str = WHERE,
    number: int = typer.Argument(..., metavar="NUMBER", help="The charge, or the open request."),
    note: str = typer.Option(..., "--note", help="The reason, which is recorded."),
    release: str = _RELEASE,
    by: str = _BY,
    wait: float = WAIT,
    json: bool = JSON,
) -> None:
    """Withdraw a release, or close an open request.

    The charge stays spent. The answer stays on record, marked as withdrawn.
    """
    from tacit.ledger import Ledger

    with Ledger.open(where, wait_seconds=wait) as found:
        if number in found.requests():
            entry = found.close_request(number, by=by, note=note)
            _done(entry, json, f"request {number} is closed", request=number)
            return
        entry = found.withdraw(number, note=note, by=by, release=release)
    said = f"{_about(number, release)} is withdrawn; the charge stays paid" + _others(release)
    _done(entry, json, said, charge=number, release=release)


@ledger.command(name="supersede")
def supersede(
    where: str = WHERE,
    number: int = _CHARGE,
    with_: int = typer.Option(..., "--with", help="The number of the later charge."),
    note: str = _NOTE,
    release: str = _RELEASE,
    by: str = _BY,
    wait: float = WAIT,
    json: bool = JSON,
) -> None:
    """Record that a later charge replaces a release."""
    from tacit.ledger import Ledger

    with Ledger.open(where, wait_seconds=wait) as found:
        entry = found.supersede(number, with_=with_, note=note, by=by, release=release)
    said = f"{_about(number, release)} is replaced by charge {with_}" + _others(release)
    _done(entry, json, said, charge=number, replaced_by=with_, release=release)


@ledger.command(name="note")
def note(
    where: str = WHERE,
    sentence: str = typer.Argument(..., metavar="SENTENCE", help="The sentence."),
    about: int = typer.Option(
        0, "--about", show_default=False, help="The number of an entry; by default the ledger."
    ),
    by: str = _BY,
    wait: float = WAIT,
    json: bool = JSON,
) -> None:
    """Record a sentence in the ledger."""
    from tacit.ledger import Ledger

    with Ledger.open(where, wait_seconds=wait) as found:
        entry = found.note(sentence, about=about, by=by)
    _done(entry, json, "written down", about=about)
