"""`tacit export`: the forms of registries, regulators, portals and newspapers, filled from a release folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tacit.cli.output import print_json, write_whole
from tacit.errors import InvalidParameter

if TYPE_CHECKING:
    from tacit.report.exports.catalogues import CatalogueWords
    from tacit.report.exports.published import PublishedFolder

export = typer.Typer(
    rich_markup_mode=None, add_completion=False, no_args_is_help=True,
    help="Fill the forms of others from a release.",
)  # fmt: skip
DIR = typer.Argument(..., metavar="DIR", help="A folder that tacit release wrote.")
OUT = typer.Option(None, "--out", help="The file to write; it must not exist yet. Default: beside DIR.")
OUT_DIR = typer.Option(None, "--out", help="The folder to write; it must not exist yet. Default: beside DIR.")
JSON = typer.Option(False, "--json", help="Print one JSON object.")
LEDGER = typer.Option(None, "--ledger", help="The ledger that was charged, to learn of later withdrawals.")
URL = typer.Option("", "--url", help="The address under which DIR will be published.")
LICENCE = typer.Option("", "--licence", help="The address of the licence.")
PUBLISHER = typer.Option(
    "", "--publisher", help="Who publishes; default: the publisher of the plan's [report]."
)


def _place(folder: Path, out: Path | None, ending: str) -> Path:
    """The path of the new file: beside the folder, never over an existing file."""
    place = out or folder.resolve().parent / f"{folder.resolve().name}{ending}"
    if place.exists():
        raise InvalidParameter(
            parameter="--out", value=str(place), must="not be there yet", hint="name another file with --out"
        )
    return place


def _write(kind: str, files: dict[Path, bytes], json: bool, notes: tuple[str, ...] = ()) -> None:
    for place, body in files.items():
        write_whole(place, lambda partial, body=body: partial.write_bytes(body) and None)  # type: ignore[misc]
    if json:
        print_json({"kind": kind, "files": [str(p) for p in files], "notes": list(notes)})
        return
    for place in files:
        print(f"written: {place}")
    for note in notes:
        print(note)


def _answer(name: str, given: str, asked: str, json: bool) -> str:
    """The given value, or the typed one. Without a terminal the form itself names the missing value."""
    if given or json or not sys.stdin.isatty():
        return given
    return str(typer.prompt(asked, default="", show_default=False))


@export.command()
def registry(
    folder: Path = DIR,
    curator: str = typer.Option("", "--curator", help="Who publishes; default: the plan's publisher."),
    purpose: str = typer.Option("", "--purpose", help="What the release is for."),
    region: str = typer.Option("", "--region", help="The region that the data describe."),
    justification: str = typer.Option("", "--justification", help="Why these parameters were chosen."),
    author: str = typer.Option("", "--author", help="Who wrote this entry."),
    sector: str = typer.Option(
        "", "--sector", help="Technology, Healthcare, Education, Government, Energy or Finance."
    ),
    out: Path | None = OUT,
    ledger: str | None = LEDGER,
    json: bool = JSON,
) -> None:
    """Write an entry for the public registry of DP deployments, as YAML.

    Certificates fill all fields but the six below.
    """
    from tacit.report.exports.published import read_folder
    from tacit.report.exports.registry import RegistryAnswers, registry_text

    place = _place(folder, out, "-registry.yaml")
    found = read_folder(folder, ledger=ledger)
    answers = RegistryAnswers(
        curator=_answer("curator", curator or found.words.publisher, "Who publishes", json),
        purpose=_answer("purpose", purpose, "What the release is for", json),
        region=_answer("region", region, "The region that the data describe", json),
        justification=_answer("justification", justification, "Why these parameters were chosen", json),
        author=_answer("author", author, "Who writes this entry", json),
        sector=sector,
    )
    _write("registry", {place: registry_text(found, answers).encode()}, json)


@export.command()
def nist(folder: Path = DIR, out: Path | None = OUT, ledger: str | None = LEDGER, json: bool = JSON) -> None:
    """Write a page that evaluates the privacy claim along the pyramid of NIST SP 800-226.

    Each point names its evidence. The points are tacit's own.
    """
    from tacit.report.exports.evaluation import evaluation_page
    from tacit.report.exports.published import read_folder

    place = _place(folder, out, "-evaluation.html")
    _write("nist", {place: evaluation_page(read_folder(folder, ledger=ledger)).encode()}, json)


@export.command()
def label(
    folder: Path = DIR, out: Path | None = OUT_DIR,
    ledger: str | None = LEDGER, json: bool = JSON,
) -> None:  # fmt: skip
    """Write a privacy label for the public, in English and German.

    A page, a snippet for other pages and a picture.
    """
    from tacit.report.exports.label import LANGUAGES, label_page, label_picture, label_snippet
    from tacit.report.exports.published import read_folder

    place = _place(folder, out, "-label")
    found = read_folder(folder, ledger=ledger)
    files = {place / "label.html": label_page(found).encode()}
    for language in LANGUAGES:
        files[place / f"label-{language}.snippet.html"] = label_snippet(found, language).encode()
        files[place / f"label-{language}.png"] = label_picture(found, language)
    _write("label", files, json)


def _catalogue(
    kind: str, ending: str, folder: Path, out: Path | None, ledger: str | None, json: bool,
    words: Callable[[str], CatalogueWords], fill: Callable[[PublishedFolder, CatalogueWords], bytes], url: str,
) -> None:  # fmt: skip
    from tacit.report.exports.catalogues import address
    from tacit.report.exports.published import read_folder

    place = _place(folder, out, ending)
    found = read_folder(folder, ledger=ledger)
    base = (
        address("--url", url)
        if url
        else os.path.relpath(folder.resolve(), place.resolve().parent).replace(os.sep, "/")
    )
    if not url and base.startswith(".."):
        raise InvalidParameter(
            parameter="--out", value=str(place), must="lie beside or above DIR",
            hint="or give the address of DIR with --url",
        )  # fmt: skip
    _write(kind, {place: fill(found, words(base))}, json)


@export.command()
def dcat(
    folder: Path = DIR, out: Path | None = OUT, url: str = URL, licence: str = LICENCE, publisher: str = PUBLISHER,
    ledger: str | None = LEDGER, json: bool = JSON,
) -> None:  # fmt: skip
    """Write DCAT-AP metadata (JSON-LD) for a data portal."""
    from tacit.report.exports.catalogues import CatalogueWords, address, dcat, json_bytes
    from tacit.report.exports.published import read_folder

    place = _place(folder, out, "-dcat.jsonld")
    words = CatalogueWords(base=address("--url", url) if url else "", licence=licence, publisher=publisher)
    notes = () if url else ("links are plain names: --url turns them into addresses",)
    found = read_folder(folder, ledger=ledger)
    _write("dcat", {place: json_bytes(dcat(found, words))}, json, notes)


@export.command()
def croissant(
    folder: Path = DIR, out: Path | None = OUT, url: str = URL, licence: str = LICENCE, publisher: str = PUBLISHER,
    ledger: str | None = LEDGER, json: bool = JSON,
) -> None:  # fmt: skip
    """Write Croissant metadata for machine-learning catalogues."""
    from tacit.report.exports.catalogues import CatalogueWords, croissant, json_bytes

    _catalogue(
        "croissant", "-croissant.json", folder, out, ledger, json,
        lambda base: CatalogueWords(base=base, licence=licence, publisher=publisher),
        lambda found, words: json_bytes(croissant(found, words)), url,
    )  # fmt: skip


@export.command()
def datapackage(
    folder: Path = DIR, out: Path | None = OUT, url: str = URL, licence: str = LICENCE, publisher: str = PUBLISHER,
    ledger: str | None = LEDGER, json: bool = JSON,
) -> None:  # fmt: skip
    """Write a frictionless data package (JSON)."""
    from tacit.report.exports.catalogues import CatalogueWords, datapackage, json_bytes

    _catalogue(
        "datapackage", "-datapackage.json", folder, out, ledger, json,
        lambda base: CatalogueWords(base=base, licence=licence, publisher=publisher),
        lambda found, words: json_bytes(datapackage(found, words)), url,
    )  # fmt: skip


@export.command()
def sdmx(
    folder: Path = DIR, out: Path | None = OUT_DIR,
    ledger: str | None = LEDGER, json: bool = JSON,
) -> None:  # fmt: skip
    """Write SDMX-CSV files and the SDMX-ML structure message that describes them."""
    from tacit.report.exports.published import read_folder
    from tacit.report.exports.structures import sdmx_files

    place = _place(folder, out, "-sdmx")
    found = read_folder(folder, ledger=ledger)
    _write("sdmx", {place / name: body for name, body in sdmx_files(found).items()}, json)


@export.command()
def bundle(
    folder: Path = DIR,
    ledger: str = typer.Option(..., "--ledger", help="The ledger that was charged: a file or a URL."),
    sign: Path = typer.Option(..., "--sign", help="Sign with this private key of tacit key make."),
    out: Path | None = OUT,
    json: bool = JSON,
) -> None:
    """Write a signed archive that anybody can check offline, without tacit.

    With entries of the ledger and a signed anchor. verify_bundle.py checks the archive with the fingerprint of the key.
    """
    from tacit.curator.certificate import SigningKey
    from tacit.report.exports.bundle import bundle_bytes
    from tacit.report.exports.published import read_folder

    place = _place(folder, out, "-bundle.zip")
    key = SigningKey.read(sign)
    body = bundle_bytes(read_folder(folder, ledger=ledger), ledger=ledger, key=key)
    notes = (
        f"check it with: python verify_bundle.py {place.name} {key.public.fingerprint}",
        "give the fingerprint and verify_bundle.py to readers by another way than the archive",
    )
    _write("bundle", {place: body}, json, notes)
