"""`tacit ledger show|verify|export`: who spent what on which queries, and whether the record is unchanged.

The commands that write to a ledger follow those that read it.
"""

from __future__ import annotations

import datetime
import json as json_text
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json, write_whole
from tacit.errors import InvalidParameter, UnknownName, visible
from tacit.guarantees.conditions import FIXED_PARAMETERS

if TYPE_CHECKING:
    from tacit.guarantees import Bound
    from tacit.ledger import Entry

ledger = typer.Typer(rich_markup_mode=None, add_completion=False)

WHERE = typer.Argument(
    ..., metavar="LEDGER", help="The ledger: a file, or a URL such as postgresql://host/db."
)
JSON = typer.Option(False, "--json", help="Print one JSON object.")
WAIT = typer.Option(30.0, "--wait", help="Seconds to wait while another process writes.")


@ledger.callback(invoke_without_command=True)
def root(context: typer.Context) -> None:
    """The privacy budget: who spent what, on which queries."""
    if context.invoked_subcommand is None:
        print(context.get_help())


SCREEN = 20
"""The number of last charges, notes and looks that `tacit ledger show` prints by default."""


@ledger.command(name="show")
def show(
    where: str = WHERE,
    whole: bool = typer.Option(False, "--all", help="Print every charge, not the last 20 alone."),
    analyst: str | None = typer.Option(None, "--analyst", help="Print only what this analyst asked."),
    version: str | None = typer.Option(None, "--version", help="Print only charges for this version."),
    since: str | None = typer.Option(None, "--since", help="Print only entries of this day or later."),
    wait: float = WAIT,
    json: bool = JSON,
) -> None:
    """Print the budget, what is spent and left, and the last charges.

    Totals cover the whole ledger. --json has every selected charge.
    """
    from tacit.ledger import Ledger, overview
    from tacit.ledger.export import screen

    day = "" if since is None else _day(since)

    def wanted(one: Mapping[str, Any]) -> bool:
        return (
            one["time"] >= day
            and (analyst is None or one.get("analyst", one.get("by")) == analyst)
            and (version is None or one.get("version") == version)
        )

    opened = Ledger.open(where, wait_seconds=wait)
    found = overview(opened) if json or whole else screen(opened, most=SCREEN, wanted=wanted)
    if analyst is not None and analyst not in found["analysts"]:
        raise UnknownName(what="analyst of this ledger", name=analyst, known=found["analysts"])
    for kind in ("charges", "requests", "notes", "looks"):
        found[kind] = [one for one in found[kind] if wanted(one)]
    if json:
        print_json(found)
        return
    for line in _shown(found, most=None if whole else SCREEN):
        print(visible(line))


def _day(since: str) -> str:
    """A day in the ledger's notation; times are compared as texts."""
    try:
        return datetime.date.fromisoformat(since).isoformat()
    except ValueError:
        raise InvalidParameter(
            parameter="--since", value="another text", must="be a day such as 2026-01-31"
        ) from None


def _shown(found: dict[str, Any], *, most: int | None = None) -> Iterator[str]:
    """An overview as sentences: each query with its table and version, analyst, time and price."""
    of = f", of {found['table']!r}" if found["table"] else ""
    made_up = ", a rehearsal on made-up rows" if found["rehearsal"] else ""
    yield f"{found['ledger']}{of}, made {found['created'][:19].replace('T', ' ')} UTC{made_up}"
    gamma = {k: v for k, v in found["budget"]["condition"].items() if k == "gamma"}
    yield f"budget  {_bound_text(found, found['budget']['bound'] | gamma)}"
    if found["budget"]["condition"]["kind"] in ("priors", "bounded-adversary"):
        from tacit.guarantees.guarantee import from_record

        yield f"        not differential privacy: {from_record(found['budget']).condition}"
    yield f"spent   {_bound_text(found, found['spent'])}"
    yield f"left    {_bound_text(found, found['remaining'])}"
    for name, part in found["analysts"].items():
        limit = f" of their {_bound_text(found, part['share'])}" if part["share"] else ""
        yield f"  {name}: {_bound_text(found, part['spent'])}{limit}, charges: {part['charges']}"
    if found["people"] or found["four_eyes"]:
        demand = "every charge needs an approval" if found["four_eyes"] else "no approval is demanded"
        yield f"names that somebody wrote down ({demand}):"
    for name, person in found["people"].items():
        key = f", key {person['key'][:16]}" if person["key"] else ""
        yield f"  {name}: {', '.join(person['roles']) or 'no role'}{key}"
    last = {
        kind: found[kind] if most is None else found[kind][-most:] for kind in ("charges", "notes", "looks")
    }
    older = {kind: len(found[kind]) - len(shown) for kind, shown in last.items()}
    older["charges"] += found.get("older", 0)
    left_out = [f"{number:,} {kind}" for kind, number in older.items() if number]
    if left_out:
        yield f"older ones are not shown: {', '.join(left_out)} (--all; --analyst, --version, --since)"
    for charge in last["charges"]:
        yield from _charge(found, charge, charge["state"])
    for asked in found["requests"]:
        if asked["state"] != "closed":
            yield from _charge(found, asked, f"request, {asked['state']}")
    for note in last["notes"]:
        about = f" about entry {note['about']}" if note["about"] else ""
        yield f"{note['sequence']:>6}  {_when(note)}  note{about} by {note['by']}: {note['note']}"
    for look in last["looks"]:
        version = f", version {look['version']!r}" * bool(look["version"])
        yield f"{look['sequence']:>6}  {_when(look)}  looked at the data  {look['analyst']}{version}"
    yield f"anchor  {found['anchor']}"


def _charge(found: dict[str, Any], one: dict[str, Any], state: str) -> Iterator[str]:
    """A charge or a request: analyst, time, price, then each release in words, consent, and later corrections."""
    from tacit.ledger import parts_words

    part = "" if one["of_budget"] is None else f" ({parts_words(one['of_budget'])})"
    place = [f"table {one['table']!r}"] if one["table"] else []
    place += [f"version {one['version']!r}"] if one["version"] else []
    about = f", {', '.join(place)}" if place else ""
    price = _bound_text(found, one["charge"])
    yield f"{one['sequence']:>6}  {_when(one)}  {state:<9}  {price}{part}  by {one['analyst']}{about}"
    for release in one["releases"]:
        yield f"          {release['release']}: {release['statistic']} Price: {release['price']['words']}."
    if not one["releases"]:
        yield f"          request {one['request']}"
    if one["approved_by"]:
        yield f"          approved by {', '.join(one['approved_by'])}"
    if one.get("note"):
        yield f"          {one['analyst']} says: {one['note']}"
    if one.get("replaces"):
        yield f"          replaces {', '.join(one['replaces'])}"
    for sentence in one.get("declared", []):
        yield f"          declared, and not checked: {_of_plan(sentence)}"
    for said in one.get("corrections", []):
        what = "WITHDRAWN" if said["kind"] == "withdraw" else f"REPLACED by charge {said['replaced_by']}"
        which = f" ({said['release']})" if said["release"] else ""
        why = f": {said['note']}" if said["note"] else ""
        yield f"          {what}{which} on {said['time'][:10]} by {said['by']}{why}"


def _of_plan(sentence: str) -> str:
    """One charge is declared: it covers the releases of its own plan only."""
    if sentence == FIXED_PARAMETERS:
        return "the parameters of all releases of this plan were fixed before any of them was made"
    return sentence


def _when(one: dict[str, Any]) -> str:
    return str(one["time"])[:19].replace("T", " ")


@ledger.command(name="verify")
def verify(
    where: str = WHERE,
    anchor: list[str] = typer.Option(
        [], "--anchor", help="An earlier anchor (sequence:digest) that the chain must contain (repeatable)."
    ),
    wait: float = WAIT,
    json: bool = JSON,
) -> None:
    """Check the whole hash chain; exit 1 if anything changed."""
    from tacit.ledger import verify_ledger
    from tacit.report.progress import progress

    with progress("Verifying", quiet=json) as step:
        found = verify_ledger(
            where,
            anchor,
            wait_seconds=wait,
            progress=lambda done, of: step(f"{done:,} of {of:,} entries"),
        )
    if json:
        problems = [{"sequence": p.sequence, "what": p.what} for p in found.problems]
        print_json({"ok": found.ok, "entries": found.entries, "anchor": found.anchor, "problems": problems})
    elif found.ok:
        print(f"{found.entries} entries, unchanged since they were written")
        print(f"anchor  {found.anchor}")
    else:
        print(f"changes found: {len(found.problems)}, in {found.entries} entries")
        for problem in found.problems:
            print(f"  {problem}")
    if not found.ok:
        raise typer.Exit(1)


@ledger.command(name="export")
def export(
    where: str = WHERE,
    out: Path | None = typer.Option(None, "--out", help="The file; by default standard output."),
    answers: bool = typer.Option(True, "--answers/--no-answers", help="Include the recorded answers."),
    wait: float = WAIT,
    json: bool = JSON,
) -> None:
    """Write every entry as a line of JSON, with its digest.

    The secret of the ledger is not part of it.
    """
    from tacit.ledger import Ledger
    from tacit.ledger import export as lines

    made = list(lines(Ledger.open(where, wait_seconds=wait), answers=answers))
    if out is not None:
        write_whole(out, lambda path: _write(path, made))
        said: dict[str, Any] = {"out": str(out), "entries": len(made) - 1}
        if json:
            print_json(said)
        else:
            print(f"{said['entries']} entries in {out}")
    elif json:
        print_json({"entries": len(made) - 1, "lines": [json_text.loads(line) for line in made]})
    else:
        for line in made:
            print(line)


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")


def _bound_text(found: dict[str, Any], bound: dict[str, Any] | None) -> str:
    """A bound's numbers in three digits, and its gamma; the budget's unit is omitted."""
    if bound is None:
        return "not a running total"
    from tacit.guarantees.conditions import told_gamma
    from tacit.guarantees.guarantee import from_record

    numbers = {k: v for k, v in bound.items() if k != "gamma"}
    gamma = f" except with probability {told_gamma(bound['gamma'])} over the data" if "gamma" in bound else ""
    return str(from_record({**found["budget"], "bound": numbers}).bound) + gamma


# `tacit ledger make|person|rule|share|request|approve|withdraw|supersede|note`: who may do what, and corrections.

__all__: list[str] = []

_PLAN = typer.Argument(..., metavar="PLAN", help="The plan, a TOML file.")
_BY = typer.Option("custodian", "--as", help="The name that records this.")
_NOTE = typer.Option("", "--note", help="A sentence to record with it.")
_RELEASE = typer.Option("", "--release", help="One release of the charge; the default is all of them.")
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

    With the budget and shares of the plan. Reads no data.
    """
    from tacit.curator.plan_files import read_plan

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
    from tacit.curator.certificate import PublicKey
    from tacit.ledger import Ledger

    public = "" if key is None else PublicKey.read(key).text
    with Ledger.open(where, wait_seconds=wait) as found:
        if change and key is None and name in (known := found.people()):
            public = known[name].key
        entry = found.enrol(name, role, key=public, change=change, by=by, note=note)
    roles = list(entry.body["roles"])
    _done(entry, json, f"{name}: {', '.join(roles) or 'no role'}", name=name, roles=roles)


@ledger.command(name="rule")
def rule(
    where: str = WHERE,
    four_eyes: bool = typer.Option(..., "--four-eyes/--no-four-eyes", help="Every charge needs an approval."),
    by: str = _BY,
    note: str = _NOTE,
    wait: float = WAIT,
    json: bool = JSON,
) -> None:
    """Require a second person's approval of charges, or no longer."""
    from tacit.ledger import Ledger

    with Ledger.open(where, wait_seconds=wait) as found:
        entry = found.demand(four_eyes, by=by, note=note)
    said = "every charge needs an approval" if four_eyes else "no approval is demanded"
    _done(entry, json, said, four_eyes=four_eyes)


@ledger.command(name="rows")
def rows(
    where: str = WHERE,
    keep: bool = typer.Option(..., "--keep/--remove", help="Keep bounded rows from now on, or remove them."),
    version: str | None = typer.Option(
        None, "--version", help="Remove those of this version, and keep others."
    ),
    by: str = _BY,
    wait: float = WAIT,
    json: bool = JSON,
) -> None:
    """Keep the bounded rows of each version, or remove them.

    Rows of real people, not encrypted. Only their owner can read them.
    """
    from tacit.ledger import Ledger, keep_rows, remove_rows

    if keep and version is not None:
        raise InvalidParameter(parameter="--version", value=version, must="come with --remove")
    with Ledger.open(where, wait_seconds=wait) as found:
        if keep:
            told: dict[str, Any] = {"rows": str(keep_rows(found, by=by))}
            said = f"bounded rows of each version are kept in {told['rows']}"
        else:
            told = {"removed": remove_rows(found, version=version, by=by)}
            said = (
                f"{told['removed']} kept versions removed"
                if told["removed"] != 1
                else "1 kept version removed"
            )
    print_json(told) if json else print(visible(said))


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
    """Set a limit for one analyst's part of the budget."""
    from tacit.ledger import Ledger

    with Ledger.open(where, wait_seconds=wait) as found:
        bound = _bound(epsilon, delta, rho, mu, found.budget.bound.kind)
        entry = found.share(analyst, bound, by=by)
    _done(entry, json, f"share of {analyst}: {bound}", analyst=analyst, share=dict(bound.parameters))


def _bound(
    epsilon: float | None, delta: float | None, rho: float | None, mu: float | None, kind: str
) -> Bound:
    from tacit.curator.charging import price

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

    Charges nothing and reads no data.
    """
    from tacit.curator.plan_files import read_plan

    found = read_plan(path)
    made = found.plan()
    with found.curator() as curator:
        number = curator.request(made, key=key, note=note)
        where, approved = curator.ledger.place, sorted(curator.ledger.requests()[number].approved)
    if json:
        told = {"request": number, "ledger": where, "plan": made.digest, "charge": made.charge.to_dict()}
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

    It counts once, for this plan, table, version, price and asker.
    """
    from tacit.curator.certificate import SigningKey
    from tacit.ledger import Ledger, overview

    key = None if sign is None else SigningKey.read(sign)
    with Ledger.open(where, wait_seconds=wait) as found:
        if plan is not None:
            asked = {r["sequence"]: r["plan"] for r in overview(found)["requests"]}.get(number)
            _same(plan, asked)
        entry = found.approve(number, by=by, key=key, note=note)
    _done(entry, json, f"request {number} is approved by {by}", request=number, by=by)


def _same(path: Path, asked: str | None) -> None:
    from tacit.curator.plan_files import read_plan
    from tacit.curator.request_0_1_0 import earlier_requests

    plan = read_plan(path).plan()
    known = (plan.digest, *plan.earlier, *(one.plan_digest for one in earlier_requests(plan)))
    if asked is not None and asked not in known:
        raise InvalidParameter(
            parameter="--plan", value=str(path), must="be the requested plan",
            hint="the request is about another plan; nothing was approved",
        )  # fmt: skip


def _about(number: int, release: str) -> str:
    """The corrected part: the whole charge, or the one named release."""
    return f"release {release!r} of charge {number}" if release else f"charge {number}"


def _others(release: str) -> str:
    return "; its other releases stay valid" if release else ""


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
