"""`tacit verify`: does a release hold together, is it what the ledger has? `tacit key make`: a key to sign by."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tacit.cli.output import print_json
from tacit.errors import visible

if TYPE_CHECKING:
    from tacit.curator.verifying import Verified

__all__ = ["key", "verify"]

key = typer.Typer(rich_markup_mode=None, add_completion=False)
JSON = typer.Option(False, "--json", help="Print one JSON object.")


def verify(
    folder: Path = typer.Argument(..., metavar="DIR", help="A folder that tacit release wrote."),
    ledger: str | None = typer.Option(None, "--ledger", help="The ledger that was charged: a file or a URL."),
    public: Path | None = typer.Option(None, "--key", help="The custodian's public key (PEM)."),
    json: bool = JSON,
) -> None:
    """Check a release: files, values, certificates, plan.

    Compares digests, makes derived files again, and computes every bound by a second program (tacit.audit). With
    --ledger or --key it finds any change at all. Reads no data. Exits with 1 if something does not hold.
    """
    from tacit.audit.release import second_opinions
    from tacit.curator.signing import PublicKey
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
            print(visible(str(finding)))
        for line in _verdict(found, len(list((folder / "certificates").glob("*.json")))):
            print(visible(line))
    if not found.ok:
        raise typer.Exit(1)


def _verdict(found: Verified, releases: int) -> list[str]:
    """The end of the list: of the whole folder, or of the releases in it that fell and of those that stand."""
    if found.ok:
        return ["everything that could be checked holds"]
    if not found.made:
        return ["this release is not what was made"]
    named = ", ".join(map(repr, found.fallen))
    if len(found.fallen) >= releases:
        return ["this release is what was made, and does not stand any more"]
    left = releases - len(found.fallen)
    return [
        f"does not stand any more: {named}; it is what was made, and was withdrawn or replaced since",
        f"the other {'release stands' if left == 1 else f'{left} releases stand'}: everything that could be checked "
        "of them holds",
    ]


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
    json: bool = JSON,
) -> None:
    """Make a pair of Ed25519 keys.

    The private key signs releases and approvals. Give the public key to readers separately from the releases.
    """
    from tacit.curator.signing import make_key

    beside, fingerprint = make_key(path)
    if json:
        print_json({"private": str(path), "public": str(beside), "fingerprint": fingerprint})
        return
    print(f"private key: {visible(str(path))} (keep it, and keep it to yourself)")
    print(f"public key: {visible(str(beside))} (give it to whoever checks your releases)")
    print(f"fingerprint: {fingerprint}")
