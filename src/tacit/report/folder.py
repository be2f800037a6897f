"""The files of a release folder, as a function of the release and of the record of the writing.

    rows/NAME.csv, rows/NAME.csv-metadata.json (synthetic rows), public/LIST.csv (keys and areas that the plan names)
    values/NAME.csv, values/NAME.parquet, values/NAME.csv-metadata.json, sdmx/NAME.csv, tables.xlsx, report.html

`tacit release` writes them, and `tacit verify` makes them again and compares. So the manifest (`Written`) records
their other sources beside certificates, values and plan.toml: the amounts spent and withdrawn, the requested exports,
and the form.
"""

from __future__ import annotations

import io
import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tacit.curator import Plan, Release, Releases
from tacit.curator.certificate import SigningKey, json_text, manifest, signed
from tacit.curator.charging import Charged
from tacit.curator.key_files import FOLDER
from tacit.curator.plan_files import PlanFile
from tacit.curator.request import file_stem
from tacit.errors import InvalidParameter
from tacit.exact.canonical import sha256
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Guarantee
from tacit.guarantees.guarantee import from_record
from tacit.ledger import Correction
from tacit.report.building import report_of
from tacit.report.exports import WORKBOOK, export_files
from tacit.report.exports.tables import FORM
from tacit.report.view import OfficerPart
from tacit.synthesis.answers import MADE

PAGE = "report.html"
LIBRARIES = ("pyarrow", "openpyxl")
_CORRECTION = ("kind", "sequence", "time", "by", "note", "release", "replaced_by")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The sources of the files, beside certificates, values and the plan."""

    title: str
    standing: tuple[Guarantee, Guarantee]
    exports: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()
    replaces: tuple[str, ...] = ()
    signed_by: str = ""
    truth: Mapping[str, Sequence[float]] | None = None
    libraries: Mapping[str, str] = field(default_factory=dict)
    form: int = FORM

    def to_dict(self) -> dict[str, Any]:
        """The record in the form of the manifest."""
        spent, left = self.standing
        truth = None if self.truth is None else {n: [_plain(v) for v in c] for n, c in self.truth.items()}
        return {
            "form": self.form, "title": self.title, "spent": spent.to_dict(), "left": left.to_dict(),
            "exports": list(self.exports),
            "corrections": [{n: getattr(c, n) for n in _CORRECTION} for c in self.corrections],
            "replaces": list(self.replaces), "signed_by": self.signed_by, "truth": truth,
            "libraries": dict(self.libraries),
        }  # fmt: skip

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Written:
        """The same from a manifest; a wrong manifest may raise any type of error."""
        if said["form"] != FORM:
            raise ValueError(f"form {said['form']}")
        truth = said["truth"]
        found = cls(
            title=str(said["title"]), standing=(from_record(said["spent"]), from_record(said["left"])),
            exports=tuple(map(str, said["exports"])),
            corrections=tuple(Correction(**c) for c in said["corrections"]),
            replaces=tuple(map(str, said["replaces"])), signed_by=str(said["signed_by"]),
            truth=None if truth is None else {n: [_number(v) for v in c] for n, c in truth.items()},
            libraries=dict(said["libraries"]),
        )  # fmt: skip
        if found.to_dict() != dict(said):
            raise ValueError("it has other words")
        return found


def libraries() -> dict[str, str]:
    """What writes the files here."""
    import tacit

    found = {"tacit": tacit.__version__}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def release_files(
    file: PlanFile, plan: Plan, releases: Sequence[Release], *, budget: Guarantee, written: Written
) -> dict[str, bytes]:
    """All files except plan, certificates and manifest; the same for the same release, plan and libraries."""
    found: dict[str, bytes] = {}
    for one in releases:
        stem = file_stem(one.name)
        found[f"values/{stem}.csv"] = one.to_csv().encode()
        found[f"values/{stem}.parquet"] = parquet_bytes(one)
        rows = one.rows_csv
        if rows is not None:
            found[f"rows/{stem}.csv"] = rows.encode()
            found[f"rows/{stem}.csv-metadata.json"] = rows_metadata(one)
    found |= {f"{FOLDER}/{name}": body for name, body in file.lists.items()}
    more = export_files(releases, words=file.words, exports=written.exports)
    metadata = OfficerPart(
        analyst=file.analyst, table=file.table, version=file.version, written=True, signed_by=written.signed_by,
        replaces=written.replaces,
    )  # fmt: skip
    page = report_of(
        plan, releases, budget=budget, title=written.title, truth=written.truth, words=file.words, metadata=metadata,
        files=[*((n, "synthetic rows") for n in found if n.startswith("rows/") and n.endswith(".csv")), *_listed(more)],
    )  # fmt: skip
    return {**found, **more, PAGE: page.encode()}


def _as_charged(plan: Plan, releases: Releases) -> Plan:
    """The plan with the choices of its charge; for a recorded answer they may differ from today's."""
    said = releases[0].certificate["plan"]
    charged = Charged(bound=from_record(said["charge"]).bound, theorem=said["charged_by"])
    planned = tuple(r.planned for r in releases)
    return replace(plan, releases=planned, charged=charged, digest=said["digest"])


def write_release(
    out: Path, file: PlanFile, plan: Plan, releases: Releases, budget: Guarantee, *,
    title: str = "", truth: dict[str, list[float]] | None = None, key: SigningKey | None = None,
    exports: Sequence[str] = (), replaces: Sequence[str] = (),
) -> list[Path]:  # fmt: skip
    """All files of a release, in a folder beside its place that is then moved there, whole or absent."""
    last = releases[-1]
    written = Written(
        title=title or file.path.stem, standing=last.standing, exports=tuple(exports),
        corrections=tuple(dict.fromkeys(c for r in releases for c in r.corrections)), replaces=tuple(replaces),
        signed_by="" if key is None else key.public.fingerprint, truth=truth, libraries=libraries(),
    )  # fmt: skip
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=".tacit-") as scratch:
            folder = Path(scratch) / "out"
            plan = _as_charged(plan, releases)
            made = release_files(file, plan, releases, budget=budget, written=written)
            for one in releases:
                said = json_text(signed(one.certificate, key)) + "\n"
                made[f"certificates/{file_stem(one.name)}.json"] = said.encode()
            made["plan.toml"] = file.published().encode()
            digests = {name: sha256(body) for name, body in made.items()}
            by_digest = isinstance(last.certificate["plan"]["releases"], dict)
            listed = manifest(
                digests, plan=plan.digest, ledger=last.certificate["ledger"], written=written.to_dict(),
                releases=[r.name for r in releases] if by_digest else (),
            )  # fmt: skip
            made["manifest.json"] = (json_text(signed(listed, key)) + "\n").encode()
            for name, body in made.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(body)
            folder.chmod(0o755)
            if out.exists():
                out.rmdir()
            folder.replace(out)
    except OSError as problem:
        raise InvalidParameter(
            parameter="--out", value=str(out), must="be writable",
            hint=f"{(problem.strerror or 'it failed').lower()}; the answers are in the ledger: run it again, free",
        ) from None  # fmt: skip
    return sorted(p for p in out.rglob("*") if p.is_file())


def parquet_bytes(release: Release, *, form: int = FORM) -> bytes:
    """The cells as a Parquet file. Not compressed: compressed bytes differ from machine to machine."""
    import pyarrow.parquet

    out = io.BytesIO()
    options: dict[str, Any] = {} if form < FORM else {"compression": "none"}
    pyarrow.parquet.write_table(release.to_arrow(), out, **options)
    return out.getvalue()


def rows_metadata(release: Release) -> bytes:
    """CSVW metadata of the synthetic rows: that they are synthetic, and the digest of their certificate."""
    said = release.statement["synthetic"]
    told = {
        "@context": "http://www.w3.org/ns/csvw",
        "url": f"{file_stem(release.name)}.csv",
        "dc:title": f"Synthetic rows: {release.name}",
        "dc:description": MADE,
        "synthetic": True,
        "made_up": release.made_up,
        "publishable": release.publishable,
        "certificate": release.certificate["digest"],
        "weight": said["stand_for"] / said["rows"],
        "not_for": said["not_for"],
        "tableSchema": {"columns": [{"name": name} for name in said["columns"]]},
    }
    return f"{json.dumps(told, indent=2, ensure_ascii=False)}\n".encode()


def _listed(more: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """The files for a reader, with their descriptions."""
    found = [(WORKBOOK, "all tables as an Excel workbook")] if WORKBOOK in more else []
    found += [(name, "the values as SDMX-CSV") for name in more if name.startswith("sdmx/")]
    return [*found, ("plan.toml", "the plan")]


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
