"""Checks of a folder that `tacit release` wrote: files, certificates, plan, ledger, signatures.

Nothing here reads the custodian's data. The finding is True, False, or None if it could not be checked. An
unchecked one is named, and does not count as holding.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from tacit.curator.agreement import agreed
from tacit.curator.assignments import Assignment
from tacit.curator.cells import csv_text
from tacit.curator.certificate import CERTIFICATE_FORMAT as FORMAT
from tacit.curator.certificate import EARLIER, MANIFEST, PublicKey, by_digest, certify, is_bound, said_digest
from tacit.curator.charging import Charged
from tacit.curator.choice import WRONG, as_recorded, calibrated, read_assignment, read_choice, same_noise
from tacit.curator.plan_files import PlanFile, read_plan, read_text
from tacit.curator.planning import Plan, Planned, chosen, plan_charge
from tacit.curator.request import declared_files, file_stem
from tacit.curator.request_0_1_0 import earlier_requests, plan_of_0_1_0
from tacit.errors import InternalError, InvalidParameter, TacitError
from tacit.exact.canonical import sha256
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Guarantee
from tacit.guarantees.guarantee import from_record
from tacit.ledger import Entry
from tacit.ledger.entries import plan_digests
from tacit.ledger.looks import seen_in

# JSON files as people and attackers write them: certificates and manifests, or one clear error.

FAMILY = "tacit certificate "
MOST_BYTES = 64 << 20
MOST_DEPTH = 60


def read_json(path: str | Path, *, parameter: str) -> dict[str, Any]:
    """The object in a JSON file, without repeated names, infinite numbers or excessive nesting."""
    text = read_text(path, parameter=parameter, most=MOST_BYTES)
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError):
        raise InvalidParameter(parameter=parameter, value=str(path), must="be JSON") from None
    if not isinstance(found, dict) or _depth(found) > MOST_DEPTH:
        raise InvalidParameter(parameter=parameter, value=str(path), must="be a JSON object")
    return found


def read_certificate(path: str | Path) -> dict[str, Any]:
    """The certificate in a file, after a check of the types of all used parts."""
    from tacit.guarantees import theorem
    from tacit.guarantees.guarantee import from_record

    said = read_json(path, parameter="certificate")
    stated = said.get("format")
    if isinstance(stated, str) and stated.startswith(FAMILY) and stated not in (FORMAT, EARLIER):
        raise InvalidParameter(
            parameter="certificate", value=str(path), must=f'be of a format that is known here, "{FORMAT}" or before',
            hint="it was written by another version of tacit; read it with that version",
        )  # fmt: skip
    if stated not in (FORMAT, EARLIER) or not _whole(said):
        raise InvalidParameter(
            parameter="certificate", value=str(path), must=f'be a certificate of format "{FORMAT}"',
            hint="tacit release writes them into the folder certificates",
        )  # fmt: skip
    for name in said["theorems"]:
        theorem(name)
    from_record(said["guarantee"])
    return said


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands there twice")
    return found


def _no_number(word: str) -> Any:
    raise ValueError(word)


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError("beyond all numbers")
    return value


def _depth(value: Any) -> int:
    """The depth of nesting, found without recursion."""
    level, depth = [value], 0
    while level and depth <= MOST_DEPTH:
        inner: list[Any] = []
        for v in level:
            inner += v.values() if isinstance(v, dict) else v if isinstance(v, list) else ()
        level, depth = inner, depth + 1
    return depth


def _whole(said: dict[str, Any]) -> bool:
    """Whether it has every printed part, each of its type. Checked before a word is printed."""
    texts = [said.get("name"), said.get("computational")]
    mechanism, intervals, theorems = said.get("mechanism"), said.get("intervals"), said.get("theorems")
    if not isinstance(mechanism, dict) or not isinstance(intervals, dict) or not isinstance(theorems, list):
        return False
    not_covered = intervals.get("do_not_cover")
    if not isinstance(not_covered, list) or not isinstance(said.get("guarantee"), dict):
        return False
    if said.get("format") == FORMAT:
        parts = [said.get(name) for name in ("values", "plan", "ledger", "data", "versions")]
        if not all(isinstance(p, dict) for p in parts) or not isinstance(said.get("digest"), str):
            return False
        conditions = said["data"].get("conditions")
        if not isinstance(conditions, list) or not isinstance(said.get("publishable"), bool):
            return False
        told = said.get("random_data", {"sentence": ""})
        texts += [told.get("sentence") if isinstance(told, dict) else None]
        looked = said["data"].get("seen", [])
        if not isinstance(looked, list):
            return False
        texts += [
            *looked,
            said.get("made"),
            said.get("noise_source"),
            said["values"].get("sha256"),
            *conditions,
        ]
    return all(isinstance(t, str) for t in [*texts, mechanism.get("chosen"), *not_covered, *theorems])


# Do the files for others have the numbers that the certificates are about? Read again and compared, number by number.
#
# Labels and sentences are words: for them only a signature under the manifest vouches, as for the page.

WORKBOOK = "tables.xlsx"
SDMX = ("OBS_VALUE", "CONF_LOW", "CONF_HIGH", "QUALITY")
MOST_ROWS = 1_048_575
"""Rows of a sheet of Excel below its headings."""
LAST = 4
"""Value, low, high and quality are the last columns of a file of values and of a sheet."""


def export_findings(
    place: Path, files: Mapping[str, Any], certificates: Mapping[str, Mapping[str, Any]], listed: Any = None
) -> Iterator[tuple[str, bool | None, str]]:
    """The checks of each exported file, with their results and reasons; `listed` are the manifest's names."""
    for name in sorted(files):
        path = PurePosixPath(name)
        if path.parent == PurePosixPath("sdmx") and path.suffix == ".csv":
            what = f"{name} has the numbers of values/{path.name}"
            yield (what, *_held(lambda p=path: _sdmx(place, p.name)))
    if WORKBOOK in files:
        what = f"{WORKBOOK} has the numbers of all files of values"
        names = next((said["plan"].get("releases") for said in certificates.values()), None)
        names = listed if isinstance(names, dict) else names
        if not isinstance(names, list):
            yield what, False, "no certificate names the releases"
            return
        try:
            import openpyxl  # noqa: F401
        except ImportError:
            yield what, None, "openpyxl is not installed: pip install 'tacit[formats]'"
            return
        if _ruled(place):
            yield (
                what,
                None,
                "it prints them by the rules of [report.rules]: it is made again and compared whole",
            )
            return
        yield (what, *_held(lambda: _workbook(place, [file_stem(str(n)) for n in names])))


def _ruled(place: Path) -> bool:
    """Whether the plan of this folder prints counts by rules of its own."""
    try:
        plan = tomllib.loads((place / "plan.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    report = plan.get("report")
    return isinstance(report, dict) and bool(report.get("rules"))


def _held(look: Any) -> tuple[bool, str]:
    try:
        return bool(look()), ""
    except Exception:  # whatever a damaged file makes a reader raise
        return False, "it cannot be read"


def _values(place: Path, stem: str) -> list[list[Any]]:
    text = (place / "values" / f"{stem}.csv").read_bytes().decode()
    return [[_number(v) for v in row[-LAST:]] for row in list(csv.reader(io.StringIO(text)))[1:]]


def _sdmx(place: Path, name: str) -> bool:
    rows = csv.DictReader(io.StringIO((place / "sdmx" / name).read_bytes().decode()))
    found = [[_number(row[column]) for column in SDMX] for row in rows]
    return found == _values(place, PurePosixPath(name).stem)


def _workbook(place: Path, stems: Sequence[str]) -> bool:
    import openpyxl

    held = io.BytesIO((place / WORKBOOK).read_bytes())
    book = openpyxl.load_workbook(held, read_only=True)
    sheets = book.worksheets[1:]
    if len(sheets) != len(stems):
        return False
    for sheet, stem in zip(sheets, stems, strict=True):
        wanted = _values(place, stem)
        rows = sheet.iter_rows(min_row=2, values_only=True)
        found = [[_number(v) for v in row[-LAST:]] for row in rows]
        # A sheet has an end; the file of values has all.
        if len(found) != min(len(wanted), MOST_ROWS):
            return False
        if not all(
            _alike(a, b)
            for row, own in zip(found, wanted, strict=False)
            for a, b in zip(row, own, strict=True)
        ):
            return False
    return True


def _alike(shown: Any, own: Any) -> bool:
    """The same, to the sixteen digits that a workbook keeps of a number."""
    if isinstance(shown, float) and isinstance(own, float):
        return math.isclose(shown, own, rel_tol=1e-15)
    return bool(shown == own)


def _number(value: Any) -> Any:
    """A number by its value, None for a missing number or end, and words and days by their text."""
    if isinstance(value, datetime.datetime):
        return value.date().isoformat()
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None if value in (None, "", "∞", "−∞") else str(value)
    return number if math.isfinite(number) else None


# What the request and the choice decide. Expected errors may be told better by a later version.
CLAIMS = (
    "statistic", "guarantee", "unit", "neighbours", "condition", "event", "price", "mechanism", "sensitivity", "grid",
    "numerical_delta", "asked", "consistent", "schema", "theorems", "plan", "publishable", "computational",
    "public_totals", "choice",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of one check. None if it could not be checked."""

    what: str
    holds: bool | None
    why: str = ""
    fallen: str = ""
    """The withdrawn or replaced release that makes this check fail."""
    notable: bool = False
    """Whether it is shown although it holds. The note about a look at the data before they were declared."""

    def __str__(self) -> str:
        word = {True: "holds", False: "DOES NOT HOLD", None: "not checked"}[self.holds]
        return f"{word}: {self.what}" + (f" ({self.why})" if self.why else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """All findings about one folder."""

    findings: tuple[CheckResult, ...]

    @property
    def ok(self) -> bool:
        """Does everything hold that could be checked?"""
        return all(f.holds is not False for f in self.findings)

    @property
    def made(self) -> bool:
        """Whether it is unaltered, although it may have been withdrawn or replaced since."""
        return all(f.holds is not False or f.fallen for f in self.findings)

    @property
    def fallen(self) -> tuple[str, ...]:
        """The releases that were withdrawn or replaced since, by name; the others of the folder remain valid."""
        return tuple(dict.fromkeys(f.fallen for f in self.findings if f.fallen))


def verify_release(
    folder: str | Path, *, ledger: str | None = None, key: PublicKey | None = None
) -> Verified:
    """The checks of a release against its own files, its plan and, if given, its ledger and its key."""
    place = Path(folder)
    if not (place / "manifest.json").is_file():
        raise InvalidParameter(
            parameter="DIR", value=str(folder), must="be a folder with a manifest.json",
            hint="give the folder that tacit release wrote",
        )  # fmt: skip
    listed = read_json(place / "manifest.json", parameter="DIR")
    files = listed.get("files")
    if listed.get("format") != MANIFEST or not isinstance(files, dict) or not all(map(_inside, files)):
        raise InvalidParameter(
            parameter="DIR", value=str(folder), must=f'have a manifest.json of format "{MANIFEST}"',
            hint="tacit release writes one",
        )  # fmt: skip
    found = [CheckResult(what="manifest.json has the digest that it states", holds=is_bound(listed))]
    found += _files(place, files)
    certificates: dict[str, dict[str, Any]] = {}
    for name in sorted(files):
        if PurePosixPath(name).parent == PurePosixPath("certificates"):
            found += _certificate(place, name, certificates)
    if not certificates:
        found.append(CheckResult(what="the folder has a certificate", holds=False))
    found += _agreement(listed, certificates)
    found += _plan(place, certificates)
    found += _ledger(place, ledger, certificates)
    exported = export_findings(place, files, certificates, listed.get("releases"))
    found += [CheckResult(what=w, holds=h, why=y) for w, h, y in exported]
    found += _signatures({"manifest.json": listed, **certificates}, key)
    return Verified(findings=tuple(found))


def _inside(name: str) -> bool:
    """Whether it is a file below the folder, and nowhere else."""
    path = PurePosixPath(name)
    return bool(name) and "\0" not in name and not path.is_absolute() and ".." not in path.parts


def _files(place: Path, files: dict[str, Any]) -> Iterator[CheckResult]:
    for name, digest in sorted(files.items()):
        try:
            same = sha256((place / name).read_bytes()) == digest
            yield CheckResult(what=f"{name} is as it was written", holds=same)
        except OSError:
            yield CheckResult(what=f"{name} is as it was written", holds=False, why="it cannot be read")
    there = {p.relative_to(place).as_posix() for p in place.rglob("*") if p.is_file()}
    for name in sorted(there - set(files) - {"manifest.json"}):
        yield CheckResult(what=f"{name} is no part of the release", holds=None, why="no manifest lists it")


def _certificate(place: Path, name: str, certificates: dict[str, dict[str, Any]]) -> Iterator[CheckResult]:
    try:
        said = read_certificate(place / name)
    except TacitError as problem:
        yield CheckResult(what=f"{name} is a certificate", holds=False, why=problem.message)
        return
    if said["format"] != FORMAT:
        yield CheckResult(
            what=f"{name} is bound to its values", holds=False, why="it is of an earlier format"
        )
        return
    certificates[name] = said
    yield CheckResult(what=f"{name} has the digest that it states", holds=is_bound(said))
    stem = PurePosixPath(name).stem
    yield CheckResult(what=f"{name} bears the name of its release", holds=file_stem(said["name"]) == stem)
    for ending, text in (("csv", _csv), ("parquet", _parquet)):
        values = f"values/{stem}.{ending}"
        try:
            same: bool | None = sha256(text(place / values)) == said["values"]["sha256"]
            why = ""
        except Exception:  # whatever a damaged file makes a reader raise
            same, why = False, "it cannot be read"
        yield CheckResult(what=f"{values} has the values that {name} is about", holds=same, why=why)


def _csv(path: Path) -> bytes:
    return path.read_bytes()


def _parquet(path: Path) -> str:
    import pyarrow
    import pyarrow.parquet

    # From bytes: a folder may have a name that Arrow cannot write.
    held = pyarrow.BufferReader(path.read_bytes())
    return csv_text(pyarrow.parquet.read_table(held, partitioning=None).to_pydict())


MADE = ("data", "versions", "noise_source")
"""The common part of all certificates of one answer."""


def _agreement(listed: dict[str, Any], certificates: dict[str, dict[str, Any]]) -> Iterator[CheckResult]:
    """Certificates and manifest name one plan, one charge and one answer, and none is missing."""
    first = next(iter(certificates.values()), {})
    held, last, all_there = sorted(PurePosixPath(n).stem for n in certificates), None, False
    for name, said in certificates.items():
        same = said["plan"].get("digest") == listed.get("plan") and said["ledger"] == listed.get("ledger")
        yield CheckResult(what=f"{name} is about the plan and the charge of the manifest", holds=same)
        wanted = said["plan"].get("releases")
        if last is None or wanted != last:
            last, all_there = wanted, _all_there(wanted, listed.get("releases"), held)
        yield CheckResult(what=f"every release that {name} names has its certificate", holds=all_there)
        if "choice" in said:
            other = [part for part in ("made", *MADE) if said[part] != first[part]]
            other += [] if said["made"] == said["ledger"].get("time") else ["time"]
            why = f"another {', '.join(other)}" if other else ""
            yield CheckResult(what=f"{name} was made together with the others", holds=not other, why=why)


def _all_there(wanted: Any, names: Any, held: list[str]) -> bool:
    """Whether these are the certificates of the names, or of the manifest's names if only their digest is
    stated.
    """
    if isinstance(wanted, dict):
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            return False
        if wanted != by_digest(names):
            return False
        wanted = names
    if not isinstance(wanted, list):
        return False
    return sorted(file_stem(n) for n in wanted if isinstance(n, str)) == held


def _plan(place: Path, certificates: dict[str, dict[str, Any]]) -> Iterator[CheckResult]:
    """Whether the certificates state the charges that the request of plan.toml gives with their choices.

    Nothing is chosen again. Certificates of 0.1.0 state no choice; if their digest cannot be computed again, only
    their ledger can confirm them.
    """
    try:
        file = read_plan(place / "plan.toml")
        asked = file.plan()
    except TacitError as problem:
        yield CheckResult(what="plan.toml can be priced again", holds=False, why=problem.message)
        return
    by_name = {said["name"]: said for said in certificates.values()}
    of_plan = {r.name: r for r in asked.releases}
    stated = cache(lambda: _as_stated(asked, by_name))  # all certificates state one choice together
    for name, said in certificates.items():
        what = f"{name} claims what plan.toml gives"
        if said["name"] not in of_plan:
            yield CheckResult(what=what, holds=False, why="the plan has no release of that name")
            continue
        if "choice" not in said:
            if not _of_0_1_0(said):
                yield CheckResult(what=what, holds=False, why="it does not state the choice")
                continue
            plan = as_0_1_0(asked, said["plan"].get("digest"))
            if plan is None:
                yield CheckResult(what=what, holds=None, why=NO_CHOICE)
                continue
        else:
            try:
                plan = stated()
            except WRONG:
                yield CheckResult(what=what, holds=False, why="another choice")
                continue
            yield _declared(file, said["data"], name)
            yield _affordable(plan, name)
            yield from _fitting(plan[said["name"]], of_plan[said["name"]], name)
        again = certify(plan, plan[said["name"]], ledger=said["ledger"], made=_made(said), values="")
        yield _compared(what, again, said, only=CLAIMS)


def _declared(file: PlanFile, data: Mapping[str, Any], name: str) -> CheckResult:
    """Whether a certificate names the files (by their names alone), the table and the version of the declaration."""
    what = f"{name} names the files, table and version of plan.toml"
    try:
        files = _names(data["files"]) == _names(declared_files(file.data, None))
    except (KeyError, TypeError, AttributeError):
        files = False
    told = {
        "files": files,
        "table": file.table in ("", data.get("table")),
        "version": data.get("version") == file.version,
    }
    other = [n for n, same in told.items() if not same]
    return CheckResult(what=what, holds=not other, why=f"another {', '.join(other)}" if other else "")


def _of_0_1_0(said: Mapping[str, Any]) -> bool:
    """Whether a certificate names 0.1.0 as its maker, and has no part of later versions only."""
    by, data = said["versions"], said["data"]
    return by.get("tacit") == "0.1.0" and not {"files", "quality_rule"} & set(data)


NO_CHOICE = (
    "0.1.0 stored no choice, and this version would choose another mechanism: --ledger checks the rest"
)


def as_0_1_0(plan: Plan, digest: Any) -> Plan | None:
    """The plan, if its digest of 0.1.0 is this one; otherwise None."""
    known = [one.plan_digest for one in earlier_requests(plan)]
    return replace(plan_of_0_1_0(plan), digest=digest) if digest in known else None


def _as_stated(asked: Plan, by_name: Mapping[str, dict[str, Any]]) -> Plan:
    """The plan with the assignments and the charge that its certificates state."""
    first = by_name[asked.releases[0].name]["plan"]
    charge = from_record(first["charge"])
    charged = Charged(bound=charge.bound, theorem=first["charged_by"])
    asked = as_recorded(asked, [by_name[r.name]["choice"] for r in asked.releases])
    pairs = [read_assignment(by_name[r.name]["choice"], r, asked.given) for r in asked.releases]
    said = first.get("digest")
    return chosen(asked, pairs, charged=charged, digest=said if said in asked.earlier else asked.digest)


def plan_of_certificates(asked: Plan, certificates: Iterable[dict[str, Any]]) -> Plan:
    """The plan with the choices of its certificates; with today's choice if a certificate has none."""
    by_name = {said["name"]: said for said in certificates}
    try:
        if any("choice" in said for said in by_name.values()):
            return _as_stated(asked, by_name)
        digest = next((said["plan"].get("digest") for said in by_name.values()), None)
    except WRONG:
        return asked
    return as_0_1_0(asked, digest) or asked


def _affordable(plan: Plan, name: str) -> CheckResult:
    """Is the account of the events within the claimed bound, which was charged?"""
    what = f"the mechanism of {name} costs at most its stated price"
    try:
        within = charge_again(plan)
    except InternalError:
        # The prices add up, and the noise is too small for them.
        within = False
    except TacitError as problem:
        return CheckResult(what=what, holds=None, why=problem.message)
    return CheckResult(what=what, holds=within, why="" if within else "its account is larger")


def charge_again(plan: Plan) -> bool:
    """Whether the account of all chosen mechanisms is within the charged bound. Summed once a plan."""
    if "within its charge" not in plan.kept:
        again, charged = plan_charge(plan).bound, plan.charged.bound
        numbers = charged.parameters
        within = again.kind == charged.kind and all(v <= numbers[n] for n, v in again.parameters.items())
        plan.kept["within its charge"] = within
    return bool(plan.kept["within its charge"])


def _fitting(stated: Planned, today: Planned, name: str) -> Iterator[CheckResult]:
    """Noise that cannot be compared with its question alone is valid if it equals today's choice.

    The other choices, and the meaning of an accuracy, are shown, but do not affect any computation.
    """
    if calibrated(stated.assignment, stated.question) is None and not same_noise(
        stated.assignment, today.assignment, stated.question
    ):
        why = "this version would choose another mechanism, and cannot tell whether this one was large enough"
        yield CheckResult(what=f"the noise of {name} is made for its question", holds=None, why=why)
    plain = (
        stated.plain is None or today.plain is None or same_noise(stated.plain, today.plain, stated.question)
    )
    for one, other in ((stated.assignment, today.assignment), (stated.plain, today.plain)):
        if not plain or not _told_alike(one, other):
            why = "this version would name other ones, or another price: --ledger checks it"
            yield CheckResult(what=f"{name} names the other mechanisms and their errors", holds=None, why=why)
            return


def _told_alike(one: Assignment | None, other: Assignment | None) -> bool:
    """Whether two assignments have the same price, and the same rivals with the same errors."""
    if one is None or other is None:
        return one is other
    mine, theirs = one.candidates, other.candidates
    return (
        one.price == other.price
        and mine.keys() == theirs.keys()
        and all(math.isclose(mine[n], theirs[n], rel_tol=1e-9) for n in mine)
    )


# Sentences, wherever a certificate has them. They are made when a certificate is written, and may be told better later.
SENTENCES = ("meaning", "unit", "condition", "computational")
INNER = {
    "intervals": ("cover", "do_not_cover", "declared"),
    "mechanism": ("chosen",),
    "error": ("about",),
    "price_of_privacy": ("reason",),
}


def _facts(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """A certificate without its sentences, which must only be present."""
    found: dict[str, Any] = {n: isinstance(v, str) if n in SENTENCES else v for n, v in certificate.items()}
    for name, words in INNER.items():
        if isinstance(found.get(name), dict):
            found[name] = {n: v for n, v in found[name].items() if n not in words}
    return found


TOLD = ("error", "price_of_privacy")
"""Expected errors are informative only: a later version may know them better."""
ROUNDED = ("error", "mechanism", "price_of_privacy")
"""The fields with computed floats, whose last digits depend on the machine and its libraries."""


def _same(name: str, one: Any, other: Any) -> bool:
    """Are these equal? Computed floats within 1e-9, everything else exactly."""
    if name not in ROUNDED or one == other:
        return bool(one == other)
    if isinstance(one, float | int) and isinstance(other, float | int):
        return not isinstance(one, bool) and math.isclose(one, other, rel_tol=1e-9)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(name, one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(name, a, b) for a, b in zip(one, other, strict=True))
    return False


def _compared(
    what: str,
    again: dict[str, Any],
    said: dict[str, Any],
    *,
    only: Sequence[str] = (),
    known: str | None = None,
) -> CheckResult:
    """Are these one certificate? `known` is the digest of its first content.

    Facts must be equal, in both directions: a word that was added is a claim as well. Sentences are those of
    this version, or the recorded ones; without a record they could not be checked.
    """
    outside = ("digest", "signature")
    wanted = {*only, *INNER, *SENTENCES} if only else {*again, *said}
    names = sorted(n for n in wanted if n not in outside)
    mine, theirs = _facts(again), _facts(said)
    other = [n for n in names if n not in TOLD and not _same(n, mine.get(n), theirs.get(n))]
    if other:
        return CheckResult(what=what, holds=False, why=f"another {', '.join(other)}")
    worded = [n for n in (*SENTENCES, *INNER) if not _same(n, again.get(n), said.get(n))]
    if not worded:
        return CheckResult(what=what, holds=True)
    why = f"another {', '.join(worded)}"
    if known is None:
        return CheckResult(what=what, holds=None, why=f"this version words it differently: {why}")
    same = said_digest(said) == known
    return CheckResult(what=what, holds=same, why="" if same else why)


def _made(said: dict[str, Any]) -> dict[str, Any]:
    """The origin of the answer, from the certificate."""
    data = {"bounded": False, **said["data"]}
    names = {"names": "digest"} if isinstance(said["plan"].get("releases"), dict) else {}
    made = {"time": said["made"], "noise": said["noise_source"], "data": data, "versions": said["versions"]}
    return {**made, **names}


def _ledger(place: Path, where: str | None, certificates: dict[str, dict[str, Any]]) -> Iterator[CheckResult]:
    """Checks entry, charge and recorded answer of the ledger.

    Then makes the certificates again from plan and answer, and compares them with the others word by word.
    """
    if where is None:
        yield CheckResult(what="the ledger has the charge", holds=None, why="name it by --ledger")
        return
    from tacit.ledger import Ledger, verify_ledger

    walked = verify_ledger(where)
    yield CheckResult(
        what="the ledger is as it was written", holds=walked.ok, why="" if walked.ok else str(walked)
    )
    with Ledger.open(where) as ledger:
        chain = ledger.entries_with_answers() if walked.ok else []
        name_of, budget = ledger.id, ledger.budget
    on_record = _OnRecord(place, chain, name_of, budget)
    for name, said in certificates.items():
        part = said["ledger"]
        paid = on_record.charges.get(_number_of(part))
        if part.get("id") != name_of or paid is None or paid.digest != part.get("digest"):
            yield CheckResult(what=f"the ledger has the charge of {name}", holds=False, why="no such entry")
            continue
        same = paid.body["plan"] == said["plan"].get("digest") and paid.body["charge"] == said["plan"].get(
            "charge"
        )
        yield CheckResult(what=f"the ledger was charged what {name} says", holds=same)
        yield _events(name, said, paid.body)
        yield CheckResult(
            what=f"plan.toml has the budget, table, version and files of the charge of {name}",
            holds=not on_record.asked(paid.sequence), why=on_record.asked(paid.sequence),
        )  # fmt: skip
        yield _stands(name, said["name"], on_record.corrections.get(paid.sequence, ()))
        yield _looks(name, said, on_record.looks(paid.sequence))
        answer = on_record.answers.get(paid.sequence)
        if not isinstance(answer, bytes) or on_record.digest(paid.sequence) != part.get("answer"):
            yield CheckResult(
                what=f"the ledger has the answer of {name}", holds=False, why="it has another, or none"
            )
            continue
        yield from _again(name, said, on_record, paid)


def _number_of(part: Mapping[str, Any]) -> Any:
    """The entry that a certificate names; checks the type, since true and false are not numbers here."""
    found = part.get("sequence")
    return found if isinstance(found, int) and not isinstance(found, bool) else None


class _OnRecord:
    """The ledger's information about the charges of a folder: looked up, read and made once for each charge.

    The certificates of a folder usually rest on one charge. Walking the chain and making the plan for each of
    them would take quadratic time.
    """

    def __init__(self, place: Path, chain: Sequence[tuple[Entry, Any]], id: str, budget: Guarantee) -> None:
        self.place, self.id, self.budget = place, id, budget
        self.entries = [entry for entry, _ in chain]
        self.charges = {e.sequence: e for e in self.entries if e.kind == "reserve"}
        self.answers: dict[Any, Any] = {}
        self.corrections: dict[Any, list[Entry]] = {}
        for entry, answer in chain:
            if entry.kind == "commit":
                self.answers.setdefault(entry.closes, answer)
            elif entry.kind in ("withdraw", "supersede"):
                self.corrections.setdefault(entry.body["about"], []).append(entry)
        self.digest = cache(self._digest)
        self.asked = cache(self._asked)
        self.looks = cache(self._looks)
        self.decoded = cache(self._decoded)
        self.plan = cache(self._plan)
        self.part = cache(self._part)
        self.agreed = cache(self._agreed)
        self.places = cache(self._places)

    def _digest(self, charge: int) -> str:
        return sha256(self.answers[charge])

    def _decoded(self, charge: int) -> tuple[list[Any], dict[str, Any]]:
        from tacit.curator.certificate import decode

        return decode(self.answers[charge])

    def _part(self, charge: int) -> dict[str, Any]:
        from tacit.curator.release import ledger_part

        return ledger_part(self.id, self.answers[charge], self.decoded(charge)[1])

    def _agreed(self, charge: int) -> dict[int, Any]:
        plan = self.plan(charge)
        return agreed(plan, self.decoded(charge)[0]) if isinstance(plan, Plan) and plan.agrees else {}

    def _places(self, charge: int) -> dict[str, int]:
        plan = self.plan(charge)
        return {r.name: i for i, r in enumerate(plan.releases)} if isinstance(plan, Plan) else {}

    def _asked(self, charge: int) -> str:
        return _asked(self.place, self.charges[charge].body, self.budget)

    def _looks(self, charge: int) -> tuple[str, ...]:
        body = self.charges[charge].body
        return seen_in(self.entries, plan_digests(body), table=body["table"], version=body["version"])

    def _plan(self, charge: int) -> Plan | tuple[bool | None, str]:
        """The plan of plan.toml with the choices of this charge, or the reason why it cannot be made again."""
        plan = read_plan(self.place / "plan.toml").plan()
        paid = self.charges[charge].charge()
        if paid.choice is None and paid.files is not None:
            return False, "the charge does not state the choice"
        if paid.choice is None:
            return as_0_1_0(plan, paid.plan_digest) or (None, NO_CHOICE)
        if paid.plan_digest not in (plan.digest, *plan.earlier):
            return False, "plan.toml asks something else"
        return read_choice(plan, paid) or (None, NO_CHOICE)


def _events(name: str, said: Mapping[str, Any], paid: Mapping[str, Any]) -> CheckResult:
    """Are the certificate's events a part of the ledger's charge?"""
    whole = paid["event"]["event"]
    parts = [whole, *(whole["events"] if whole.get("kind") == "composed" else [])]
    run = all(one["event"] in parts for one in said["event"])
    return CheckResult(what=f"the ledger was charged for the mechanism of {name}", holds=run)


def _looks(name: str, said: Mapping[str, Any], known: tuple[str, ...]) -> CheckResult:
    """Whether the certificate states, as the chain does, a look at the data that is older than its plan."""
    told = tuple(said["data"].get("seen", ()))
    what = f"{name} says whether its declarations were made by someone who had seen the data"
    if told != known:
        return CheckResult(
            what=what, holds=False, why="the looks that it states differ from those in the ledger"
        )
    return CheckResult(
        what=what,
        holds=True,
        why="; ".join(known) or "the ledger knows of no look before this plan",
        notable=bool(known),
    )


STANDS = "was neither withdrawn nor replaced"


def _stands(name: str, release: str, since: Sequence[Entry]) -> CheckResult:
    """Later entries of the ledger about the release: the folder is unchanged, and may be superseded."""
    said = [str(c) for c in (entry.correction() for entry in since) if c.release in ("", release)]
    return CheckResult(
        what=f"the release of {name} {STANDS}",
        holds=not said,
        why="; ".join(said),
        fallen=release if said else "",
    )


def _asked(place: Path, paid: Mapping[str, Any], budget: Guarantee) -> str:
    """Differences beside the question between plan.toml and the charge: budget, table, version and files.

    The analyst's name is no part of a question: somebody else may have paid for a recorded answer.
    """
    try:
        file = read_plan(place / "plan.toml")
    except TacitError as problem:
        return problem.message or "it cannot be read"
    told = {
        "budget": budget == file.limit,
        "table": file.table in ("", paid["table"]),
        "version": paid["version"] == file.version,
        "files": "files" not in paid or _names(paid["files"]) == _names(declared_files(file.data, None)),
    }
    other = [n for n, same in told.items() if not same]
    return f"another {', '.join(other)}" if other else ""


def _names(files: Mapping[str, Any]) -> dict[str, Any]:
    """A declared set of files by their names alone, since a published plan is in another folder."""

    def name(one: Any) -> Any:
        return (
            {key: PurePosixPath(value).name for key, value in one.items()}
            if isinstance(one, dict)
            else PurePosixPath(one).name
        )

    return {
        part: [None if table is None else sorted(map(repr, map(name, table))) for table in tables]
        for part, tables in files.items()
    }


def _again(name: str, said: dict[str, Any], on_record: _OnRecord, paid: Entry) -> Iterator[CheckResult]:
    """The certificate made again of the request, the choice and the answer that are on record."""
    from tacit.curator.release import read_release

    what = f"{name} and its values are those of the recorded answer"
    noisy, made = on_record.decoded(paid.sequence)
    try:
        plan = on_record.plan(paid.sequence)
        if isinstance(plan, tuple):
            yield CheckResult(what=what, holds=plan[0], why=plan[1])
            return
        index, spent = on_record.places(paid.sequence)[said["name"]], plan.charge
        release = read_release(
            plan, plan.releases[index], noisy[index], made, ledger=on_record.part(paid.sequence),
            spent=spent, remaining=spent, replayed=True, agreed=on_record.agreed(paid.sequence).get(index),
        )  # fmt: skip
        again = release.certificate
    except (TacitError, ValueError, LookupError) as problem:
        yield CheckResult(what=what, holds=False, why=f"they cannot be made again: {type(problem).__name__}")
        return
    if paid.charge().choice is not None:
        yield _affordable(plan, f"{name}, as it is on record,")
    yield _compared(what, again, said, known=made.get("said", {}).get(said["name"]))


def _signatures(files: dict[str, dict[str, Any]], key: PublicKey | None) -> Iterator[CheckResult]:
    for name, said in files.items():
        signature = said.get("signature")
        by = signature.get("key") if isinstance(signature, dict) else None
        what = f"{name} is signed by the key"
        if key is not None:
            holds = is_bound(said) and key.holds(signature, str(said["format"]), str(said["digest"]))
            why = "" if holds else "it is not signed" if signature is None else "not by this key, or changed"
            yield CheckResult(what=what, holds=holds, why=why)
        elif signature is None:
            yield CheckResult(what=what, holds=None, why="it is not signed")
        else:
            yield CheckResult(
                what=what, holds=None, why=f"give the public key with fingerprint {str(by)[:64]}"
            )
