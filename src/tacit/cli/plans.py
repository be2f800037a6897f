"""`tacit plan` and `tacit release`: the price of a plan, and the plan carried out."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json
from tacit.errors import InvalidParameter, LedgerError, charge_made, visible

if TYPE_CHECKING:
    from tacit.curator import Plan, Releases
    from tacit.curator.fitting import Fit
    from tacit.curator.plan_files import PlanFile
    from tacit.curator.verifying import Verified
    from tacit.guarantees import Guarantee
    from tacit.statistics import Question

PLAN = typer.Argument(..., metavar="PLAN", help="The plan, a TOML file.")
JSON = typer.Option(False, "--json", help="Print one JSON object.")
INTERRUPTED = "nothing was written; an earlier charge stays, and a recorded answer is free"
UNTOLD = 10_000
"""The reserved room, in numbers, if their count is unknown before the release."""


def plan(
    path: Path = PLAN,
    record: bool = typer.Option(
        False, "--record", help="Record the plan in the ledger, as older than any later look."
    ),
    advise: bool = typer.Option(
        False, "--advise", help="Name, for each release, the change that would lower its error most."
    ),
    json: bool = JSON,
) -> None:
    """Print the price and the expected error of a plan.

    Exits with 1 if the budget does not suffice. Reads no data and charges nothing.
    """
    from tacit.curator.advice import advise as advice_on
    from tacit.curator.plan_files import described, read_plan
    from tacit.curator.text import priced

    found = read_plan(path)
    made = found.plan()
    entry = found.recorded(made) if record else None
    fit, problem = _fit(found, made)
    advice = advice_on(made) if advise else ()
    if json:
        print_json(
            described(found, made)
            | {"fit": None if fit is None else fit.to_dict()}
            | ({"advice": [one.to_dict() for one in advice]} if advise else {})
            | ({} if entry is None else {"recorded": entry})
        )
        _exit(fit, problem)
        return
    print(made)
    for one in advice:
        print(visible(f"advice: {one}"))
    if entry is not None:
        print(f"recorded: entry {entry} of the ledger has the digest of this plan, {made.digest}")
    print(f"budget: {priced(found.limit)}; ledger: {visible(found.place)}")
    if fit is not None:
        print(visible(f"spent: {priced(fit.spent)}; left for {found.analyst}: {priced(fit.left)}"))
        print(visible(str(fit)))
    _exit(fit, problem)


def _fit(file: PlanFile, made: Plan) -> tuple[Fit | None, LedgerError | None]:
    """The remaining budget, and whether the plan fits. If the ledger cannot be read, only the price is shown."""
    try:
        with file.curator() as curator:
            return curator.fit(made), None
    except LedgerError as problem:
        return None, problem


def _exit(fit: Fit | None, problem: LedgerError | None) -> None:
    """The exit code is 0 only if the plan is known to fit."""
    if problem is not None:
        raise problem
    if fit is not None and not fit.fits:
        raise typer.Exit(1)


def release(
    path: Path = PLAN,
    out: Path = typer.Option(..., "--out", help="The folder to write; it must not exist yet."),
    key: str | None = typer.Option(
        None, "--key", help="A name for this request; a new name draws new noise and pays again."
    ),
    sign: Path | None = typer.Option(None, "--sign", help="Sign with this private key of tacit key make."),
    export: str = typer.Option("", "--export", help="More files, with commas: xlsx, sdmx."),
    json: bool = JSON,
) -> None:
    """Release the statistics of a plan and charge its budget.

    Writes values (CSV, Parquet), certificates (JSON), report.html and manifest.json. The same plan on the
    same data is answered from the ledger, free.
    """
    from tacit.curator.certificate import SigningKey
    from tacit.curator.plan_files import read_plan
    from tacit.curator.text import release_text
    from tacit.report.progress import watched

    signing = None if sign is None else SigningKey.read(sign)
    found = read_plan(path)
    made = found.plan()
    exports = wanted(found, export)
    free(out, made)
    try:
        with watched("Releasing", total=2, quiet=json) as step, found.curator() as curator:
            step("charging, reading, adding noise")
            releases = curator.release(made, key=key)
            step("writing")
            place = releases[0].certificate["ledger"]["sequence"]
            replaces = curator.ledger.replaces(place) if releases[0].replayed else ()
            with nullcontext() if releases[0].replayed else charge_made():
                files = write_release(
                    out,
                    found,
                    made,
                    releases,
                    curator.budget,
                    key=signing,
                    exports=exports,
                    replaces=replaces,
                )
            # As it was with the charge: a ledger that cannot be read by now takes nothing back.
            spent, left = releases[-1].standing
    except KeyboardInterrupt:
        print(f"tacit: interrupted; {INTERRUPTED}", file=sys.stderr)
        raise typer.Exit(130) from None
    if json:
        print_json(
            {
                "out": str(out),
                "charged": not releases[0].replayed,
                "released": True,
                "files": [str(f) for f in files],
                "charge": made.charge.to_dict(),
                "replayed": releases[0].replayed,
                "corrections": [str(c) for c in dict.fromkeys(c for r in releases for c in r.corrections)],
                "replaces": list(replaces),
                "spent": dict(spent.bound.parameters) | _gamma(spent),
                "remaining": dict(left.bound.parameters) | _gamma(left),
            }
        )
        return
    for one in releases:
        # Spent and left are the same for all: told once, at the end.
        print(release_text(one, standing=one is releases[-1]), end="\n\n")
    for said in replaces:
        print(visible(f"it replaces {said}"))
    print(f"written to {out}: " + ", ".join(str(f.relative_to(out)) for f in files))


def _gamma(guarantee: Guarantee) -> dict[str, float]:
    """The gamma of a guarantee under RandomData."""
    gamma = getattr(guarantee.condition, "gamma", None)
    return {} if gamma is None else {"gamma": gamma}


def free(out: Path, made: Plan | None = None) -> None:
    """Refuses a folder that exists, cannot be made, or has no room, before anything is spent."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidParameter(
            parameter="--out", value=str(out), must="be a new or empty folder",
            hint="nothing is ever overwritten; name another one",
        )  # fmt: skip
    try:
        above = next(p for p in out.absolute().parents if p.exists())
        with tempfile.TemporaryFile(dir=above, prefix=".tacit-") as scratch:
            os.posix_fallocate(scratch.fileno(), 0, room(made))
    except OSError as problem:
        raise InvalidParameter(
            parameter="--out", value=str(out), must="be writable", hint=(problem.strerror or "").lower()
        ) from None


def room(made: Plan | None) -> int:
    """About the number of bytes in the files of a plan, estimated high.

    The file of a sparse histogram has only the released cells.
    """

    def numbers(question: Question) -> int:
        told = question.numbers or UNTOLD
        return min(told, UNTOLD) if question.statistic.fits == "thresholds" else told

    releases = made.releases if made is not None else ()
    return 1_000_000 + sum(100_000 + 400 * numbers(r.question) for r in releases)


def wanted(file: PlanFile, export: str) -> tuple[str, ...]:
    """The exports that the plan and the command ask for. Refuses an export that cannot be written."""
    from tacit.curator.text import exports_of
    from tacit.report.exports import ready

    found = tuple(dict.fromkeys([*file.words.exports, *exports_of(export)]))
    if "xlsx" in found:
        ready()
    return found


def write_release(
    out: Path, file: PlanFile, plan: Plan, releases: Releases, budget: Guarantee, **options: Any
) -> list[Path]:
    """All files of a release (`tacit.report.folder.write_release`)."""
    from tacit.report.folder import write_release as write

    return write(out, file, plan, releases, budget, **options)


# `tacit verify`: does a release hold together, is it what the ledger has? `tacit key make`: a key to sign by.

key = typer.Typer(rich_markup_mode=None, add_completion=False)
JSON_VERIFY = typer.Option(False, "--json", help="Print one JSON object.")


def verify(
    folder: Path = typer.Argument(..., metavar="DIR", help="A folder that tacit release wrote."),
    ledger: str | None = typer.Option(None, "--ledger", help="The ledger that was charged: a file or a URL."),
    public: Path | None = typer.Option(None, "--key", help="The custodian's public key (PEM)."),
    everything: bool = typer.Option(False, "--all", help="List every check."),
    json: bool = JSON_VERIFY,
) -> None:
    """Check a release: files, values, certificates, plan.

    Compares digests, makes derived files again, and computes every bound by a second program (tacit.audit).
    With --ledger or --key it finds any change at all. Reads no data. Exits with 1 if something does not hold.
    """
    from tacit.audit.release import second_opinions
    from tacit.curator.certificate import PublicKey
    from tacit.curator.verifying import Verified, verify_release
    from tacit.report.verifying import made_again

    trusted = None if public is None else PublicKey.read(public)
    found = verify_release(folder, ledger=ledger, key=trusted)
    again = tuple(made_again(folder, ledger=ledger, key=trusted))
    found = Verified(findings=(*found.findings, *again, *second_opinions(folder)))
    if json:
        told = [{"what": f.what, "holds": f.holds, "why": f.why} for f in found.findings]
        print_json({"ok": found.ok, "made": found.made, "fallen": list(found.fallen), "findings": told})
    else:
        for finding in found.findings:
            if everything or finding.notable or finding.holds is False:
                print(visible(str(finding)))
        print(visible(_verdict(found, len(list((folder / "certificates").glob("*.json"))))))
    if not found.ok:
        raise typer.Exit(1)


def _verdict(found: Verified, releases: int) -> str:
    """The last line: on the whole folder, or on withdrawn releases and on the others."""
    held = [f.holds for f in found.findings]
    unknown = held.count(None)
    counted = f"{held.count(True)} {'check' if held.count(True) == 1 else 'checks'}"
    counted += f", {unknown} not possible (--all lists them)" if unknown else ""
    if found.ok:
        return f"everything that could be checked holds: {counted}"
    if not found.made:
        return f"this release was changed: {held.count(False)} of {len(held)} checks do not hold"
    named = ", ".join(map(repr, found.fallen))
    if len(found.fallen) >= releases:
        return "this release is unchanged, but was withdrawn or replaced since"
    left = releases - len(found.fallen)
    return (
        f"withdrawn or replaced since: {named}; the files are those that were made, and of the other "
        f"{'release' if left == 1 else f'{left} releases'} everything that could be checked holds"
    )


@key.callback(invoke_without_command=True)
def root(context: typer.Context) -> None:
    """Keys to sign certificates with."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@key.command(name="make")
def make(
    path: Path = typer.Argument(
        ..., metavar="FILE", help="The file for the private key; FILE.pub is the public one."
    ),
    json: bool = JSON_VERIFY,
) -> None:
    """Make a pair of Ed25519 keys.

    Give the public key to readers separately from the releases.
    """
    from tacit.curator.certificate import make_key

    beside, fingerprint = make_key(path)
    if json:
        print_json({"private": str(path), "public": str(beside), "fingerprint": fingerprint})
        return
    print(f"private key: {visible(str(path))} (keep it, and keep it to yourself)")
    print(f"public key: {visible(str(beside))} (give it to whoever checks your releases)")
    print(f"fingerprint: {fingerprint}")


@key.command(name="sign")
def sign(
    path: Path = typer.Argument(..., metavar="FILE", help="The private key of tacit key make."),
    digest: str = typer.Argument(
        ..., metavar="DIGEST", help="The digest that the page of the request shows."
    ),
    json: bool = JSON_VERIFY,
) -> None:
    """Sign the approval of a request on another machine than the server.

    Prints the signature as JSON. Paste it into the page of the request.
    """
    import re

    from tacit.curator.certificate import SigningKey
    from tacit.ledger.register import APPROVAL

    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise InvalidParameter(
            parameter="DIGEST",
            value=digest[:80],
            must="have 64 hexadecimal digits",
            hint="copy it from the page",
        )
    signature = SigningKey.read(path).sign(APPROVAL, digest)
    if json:
        print_json({"digest": digest, "signature": signature})
        return
    print_json(signature)
