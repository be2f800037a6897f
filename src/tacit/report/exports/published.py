"""The facts of a release folder that external forms ask for. All come from certificates, manifest and plan.

    folder = read_folder("out/demo")
    folder.charge.bound        # the guarantee of the whole plan
    folder.tables[0].columns   # the columns of one file of values

The digests of manifest, certificates and values are checked on reading, so that no form is filled from a file that
was changed by accident. `tacit verify` checks more: the bounds, the ledger, the signatures.
"""

from __future__ import annotations

import csv
import io
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, NoReturn

from tacit.curator.certificate import CERTIFICATE_FORMAT, NOTHING_DRAWN, is_bound
from tacit.curator.request import file_stem
from tacit.curator.text import PublicWords, words_in
from tacit.curator.verifying import read_certificate, read_json
from tacit.errors import InvalidParameter, TacitError
from tacit.exact.canonical import sha256
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Always, Guarantee
from tacit.guarantees.guarantee import from_record

NUMBERS = ("value", "low", "high")
QUALITY = "quality"
MODELS = frozenset({"classifier", "regression_function", "logistic", "additive", "linear", "decision_tree"})
"""Statistics whose release is a model that predicts."""
SYNTHETIC = frozenset({"synthetic_table"})
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class PublishedColumn:
    """One column of a file of values: its heading, its label, its type (string, integer, number), its meaning."""

    name: str
    label: str
    type: str
    about: str = ""

    @property
    def is_key(self) -> bool:
        """Whether this text describes a number, rather than being one."""
        return self.name not in (*NUMBERS, QUALITY)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """One release of a folder: its certificate, and its values from the CSV file."""

    name: str
    title: str
    certificate: Mapping[str, Any] = field(repr=False)
    columns: tuple[PublishedColumn, ...]
    rows: tuple[tuple[str, ...], ...] = field(repr=False)
    corrections: tuple[str, ...] = ()

    @property
    def stem(self) -> str:
        """The name of its files, without an ending."""
        return file_stem(self.name)

    @property
    def guarantee(self) -> Guarantee:
        """The promise of this release alone."""
        return from_record(self.certificate["guarantee"])

    @property
    def kind(self) -> str:
        """The kind of statistic."""
        return str(self.certificate["statistic"].get("kind", ""))

    @property
    def keys(self) -> tuple[PublishedColumn, ...]:
        """The columns that describe the numbers."""
        return tuple(c for c in self.columns if c.is_key)

    @property
    def noisy(self) -> bool:
        """Is any randomness part of the answer?"""
        return str(self.certificate["computational"]) != NOTHING_DRAWN

    @property
    def noise(self) -> str:
        """The noise of each part, in the certificate's words."""
        parts = self.certificate["mechanism"].get("noise") or []
        named = dict.fromkeys(
            str(p["distribution"]) for p in parts if isinstance(p, dict) and p.get("distribution")
        )
        return ", ".join(named) or str(self.certificate["mechanism"]["chosen"])


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFolder:
    """A folder that `tacit release` or `tacit joint combine` wrote, read and checked against its own digests."""

    place: Path
    tables: tuple[PublishedTable, ...]
    words: PublicWords
    title: str
    files: Mapping[str, str] = field(repr=False)
    manifest: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def first(self) -> Mapping[str, Any]:
        """The first certificate; plan, unit, ledger and versions are the same in all."""
        return self.tables[0].certificate

    @property
    def charge(self) -> Guarantee:
        """The guarantee of all releases of the plan together: the ledger's charge."""
        return from_record(self.first["plan"]["charge"])

    @property
    def joint(self) -> bool:
        """Was it made by several holders together?"""
        return self.manifest is None

    @property
    def made_up(self) -> bool:
        """Are the people of the table made up?"""
        return all(t.certificate["data"].get("made_up") is True for t in self.tables)

    @property
    def day(self) -> str:
        """The day of the release, as YYYY-MM-DD."""
        return min(str(t.certificate["made"]) for t in self.tables)[:10]

    @property
    def corrections(self) -> tuple[str, ...]:
        """Withdrawals and replacements, each once."""
        return tuple(dict.fromkeys(c for t in self.tables for c in t.corrections))

    @property
    def conditional(self) -> bool:
        """Whether a promise holds only under a condition other than "always"."""
        return any(not isinstance(t.guarantee.condition, Always) for t in self.tables)

    @property
    def signed_by(self) -> str:
        """The fingerprint of the key that signed the manifest, or nothing."""
        signature = (self.manifest or {}).get("signature")
        return str(signature.get("key", "")) if isinstance(signature, dict) else ""

    @property
    def product(self) -> str:
        """The kind of publication: summary statistics, a model, or synthetic rows."""
        kinds = {t.kind for t in self.tables}
        if kinds <= SYNTHETIC:
            return "Synthetic data"
        return "Machine learning model" if kinds <= MODELS else "Summary statistics"


def read_folder(folder: str | Path, *, ledger: str | None = None) -> PublishedFolder:
    """The folder, with later withdrawals from the ledger if there is one; refused if its digests do not match."""
    place = Path(folder)
    if not place.is_dir():
        raise InvalidParameter(
            parameter="DIR",
            value=str(folder),
            must="be a folder of tacit release",
            hint="there is no such folder",
        )
    listed = place / "manifest.json"
    if listed.exists():
        manifest: dict[str, Any] | None = read_json(listed, parameter="DIR")
        files = _listed(place, manifest or {})
    elif (place / "transcript").is_dir() and (place / "certificates").is_dir():
        manifest = None
        inner = sorted(p for p in place.rglob("*") if p.is_file())
        files = {p.relative_to(place).as_posix(): sha256(p.read_bytes()) for p in inner}
    else:
        raise InvalidParameter(
            parameter="DIR", value=str(folder), must="be a folder that tacit release wrote",
            hint="it has no manifest.json",
        )  # fmt: skip
    written = (manifest or {}).get("written") or {}
    words = _public_words(place)
    said = [read_certificate(place / name) for name in sorted(files) if name.startswith("certificates/")]
    if not said:
        _refuse(place, "it has no certificate")
    names = said[0].get("plan", {}).get("releases", [])
    if isinstance(names, dict):  # a long plan: the manifest has the list
        names = (manifest or {}).get("releases", [])
    order = {str(name): at for at, name in enumerate(names)}
    said.sort(key=lambda one: order.get(str(one["name"]), len(order)))
    later = _corrections(written, said, ledger)
    tables = tuple(_table(place, one, words, later) for one in said)
    title = words.title or str(written.get("title") or place.name)
    return PublishedFolder(
        place=place, tables=tables, words=words, title=title, files=files, manifest=manifest
    )  # fmt: skip


def _listed(place: Path, manifest: dict[str, Any]) -> dict[str, str]:
    """The files of a manifest with their digests, each compared with the file."""
    files = manifest.get("files")
    if not is_bound(manifest) or not isinstance(files, dict):
        _refuse(place, "manifest.json does not match its own digest")
    for name, digest in files.items():
        inner = place / name
        if ".." in Path(name).parts or Path(name).is_absolute():
            _refuse(place, "the manifest names a file outside of the folder")
        try:
            same = sha256(inner.read_bytes()) == digest
        except OSError:
            same = False
        if not same:
            _refuse(place, f"{name} is missing or was changed")
    return {str(n): str(d) for n, d in files.items()}


def _table(
    place: Path, said: dict[str, Any], words: PublicWords, later: Sequence[tuple[str, str]]
) -> PublishedTable:
    name = str(said["name"])
    if said["format"] != CERTIFICATE_FORMAT or not is_bound(said):
        _refuse(place, f"the certificate of {name!r} is of the first format or does not match its digest")
    if not said["publishable"]:
        _refuse(place, "its noise is for tests, and must not be published")
    path = place / "values" / f"{file_stem(name)}.csv"
    try:
        text = path.read_bytes()
    except OSError:
        text = b""
    if sha256(text) != said["values"].get("sha256"):
        _refuse(place, f"values/{path.name} is missing or was changed")
    heads, *rows = [tuple(row) for row in csv.reader(io.StringIO(text.decode()))]
    level = float(said["intervals"]["confidence"])
    about = {
        "value": "the released value, "
        + ("without noise" if said["computational"] == NOTHING_DRAWN else "with noise"),
        "low": f"lower end of the {level:.4g} interval for the noise",
        "high": f"upper end of the {level:.4g} interval for the noise",
        QUALITY: "whether the value is good enough to use, by the rule of the report",
    }
    columns = tuple(
        PublishedColumn(
            head, head if head in about else words.column(head), _type(head, rows, at), about.get(head, "")
        )
        for at, head in enumerate(heads)
    )
    return PublishedTable(
        name=name, title=words.release(name), certificate=said, columns=columns, rows=tuple(rows),
        corrections=tuple(text for about_, text in later if about_ in ("", name)),
    )  # fmt: skip


def _type(head: str, rows: Sequence[Sequence[str]], at: int) -> str:
    """The narrowest type that all cells have; values and ends of intervals may be empty.

    A key such as 01, 1_0 or nan is text, because a program that reads it as a number would change the key.
    """
    cells = {row[at] for row in rows} - ({"", "nan", "inf", "-inf"} if head in NUMBERS else set())
    for kind, form in (("integer", _INTEGER), ("number", _NUMBER)):
        if cells and all(form.fullmatch(cell) for cell in cells):
            return kind
    return "string"


def _public_words(place: Path) -> PublicWords:
    """The words of the plan's [report]; empty if the folder has no readable plan."""
    try:
        return words_in(tomllib.loads((place / "plan.toml").read_text()).get("report", {}))
    except (OSError, ValueError, TacitError):
        return PublicWords()


def _corrections(
    written: Mapping[str, Any], said: Sequence[Mapping[str, Any]], ledger: str | None
) -> list[tuple[str, str]]:
    """(release or "", sentence): from the ledger if there is one, else as the folder states them."""
    from tacit.ledger import Correction, Ledger

    if ledger is None:
        found = [Correction(**one) for one in written.get("corrections", [])]
    else:
        charged = said[0]["ledger"]
        with Ledger.open(ledger) as opened:
            if opened.id != charged.get("id"):
                raise InvalidParameter(
                    parameter="--ledger", value=ledger, must="be the ledger that was charged for this release",
                    hint=f"that is {charged.get('id')}",
                )  # fmt: skip
            found = list(opened.corrections(int(charged["sequence"])))
    return [(one.release, str(one)) for one in found]


def _refuse(place: Path, why: str) -> NoReturn:
    raise InvalidParameter(
        parameter="DIR",
        value=str(place),
        must="be a release as it was written",
        hint=f"{why}; see tacit verify",
    )
