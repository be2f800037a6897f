"""Does each file of a release folder show the certified values? Made again, and compared whole.

A reader opens report.html, a workbook, a Parquet or an SDMX file, and trusts its contents: the name `value` over a
column, the number format, the key beside a number. So no sentence is parsed for facts. They are made
again from plan.toml, certificates and certified values, and must be the same, byte by byte. If another version of a
library wrote a file, the contents that its readers see are compared instead.

Folders of the first form have no `written` in their manifest, and no record of the earlier spending. SDMX and
CSVW files are made again by the recorded rules and compared whole. Of a workbook, tacit compares cells, names
and number formats, but not the layout. It does not compare report.html.
"""

from __future__ import annotations

import base64
import csv
import dataclasses
import datetime
import functools
import io
import math
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tacit.curator import Plan, Release
from tacit.curator.assignments import NoisyParts
from tacit.curator.cells import ABSENT, RULE, WORDS, rule_of
from tacit.curator.certificate import CIPHER, ORDER, PACKAGES, PublicKey, is_bound, json_text
from tacit.curator.functions.assignment import FunctionAssignment
from tacit.curator.functions.trees import TreeAssignment
from tacit.curator.intervals import Estimate, noise_by_part
from tacit.curator.plan_files import PlanFile, read_plan
from tacit.curator.planning import Planned
from tacit.curator.random_counts import OnRandomData
from tacit.curator.release import MEASURED
from tacit.curator.request import file_stem
from tacit.curator.synthesised import SynthesisAssignment, faults_of_record
from tacit.curator.verifying import CheckResult, plan_of_certificates, read_certificate, read_json
from tacit.errors import InvalidParameter, TacitError
from tacit.exact.arrays import AnyArray
from tacit.exact.canonical import sha256
from tacit.guarantees import Always
from tacit.report.exports import WORKBOOK, csvw_text, sdmx_text, workbook
from tacit.report.folder import PAGE, Written, libraries, parquet_bytes, release_files
from tacit.sources.tables import ENGINES_WITH_WINDOWS
from tacit.statistics.base import Question
from tacit.statistics.forms import Average, Linear

ENDS = ("value", "low", "high")
EPOCH = datetime.date(1970, 1, 1)
EARLIER = "written by an earlier form: values checked, layout not"
ABOUT = "What this says about you"
_SENTENCE = ("It does not stand any more: ", ".")
"""The words in which version 0.1.0 wrote that a release was withdrawn or replaced."""


class _Said(str):
    """The correction in a file of the first form."""

    release = ""


def made_again(
    folder: str | Path, *, ledger: str | None = None, key: PublicKey | None = None
) -> Iterator[CheckResult]:
    """Findings about every file that can be made again; without a ledger from the files themselves."""
    try:
        yield from _findings(Path(folder), ledger, key)
    except Exception as problem:  # whatever a changed or missing file makes a reader raise
        yield CheckResult(what="the files can be made again", holds=False, why=type(problem).__name__)


def _findings(place: Path, ledger: str | None, key: PublicKey | None) -> Iterator[CheckResult]:
    try:
        listed = read_json(place / "manifest.json", parameter="DIR")
        certificates = {
            name: read_certificate(place / name)
            for name in listed["files"]
            if name.startswith("certificates/")
        }
        file = read_plan(place / "plan.toml")
        plan = plan_of_certificates(file.plan(), certificates.values())
    except (TacitError, KeyError, TypeError) as problem:
        why = getattr(problem, "message", "the manifest is none")
        yield CheckResult(what="the files can be made again", holds=None, why=str(why))
        return
    yield from _as_written(place, listed, certificates)
    written = None
    if "written" in listed:
        what = "manifest.json says what the files were written from"
        try:
            written = Written.read(listed["written"])
        except Exception:  # whatever a changed one makes a reader raise
            yield CheckResult(what=what, holds=False, why="its form is unknown here")
            return
        yield _standing(what, written, plan, file, listed, ledger)
        signature = listed.get("signature")
        by = str(signature.get("key", "")) if isinstance(signature, dict) else ""
        same = written.signed_by == by
        why = "" if same else "the page names a key by which the manifest is not signed, or does not name it"
        yield CheckResult(what=f"{PAGE} names the key of the signature", holds=same, why=why)
    elif any("quality_rule" in said.get("data", {}) for said in certificates.values()):
        why = "anybody who wrote these certificates could write it, too"
        yield CheckResult(what="manifest.json says what the files were written from", holds=False, why=why)
        return
    releases = []
    for planned in plan.releases:
        name = f"certificates/{file_stem(planned.name)}.json"
        what = f"values/{file_stem(planned.name)}.csv is a table of this release"
        try:
            one = _certified(place, plan, planned, certificates[name], written)
        except Exception as problem:
            yield CheckResult(what=what, holds=False, why=f"it cannot be read: {type(problem).__name__}")
            return
        same = one.to_csv().encode() == (place / "values" / f"{file_stem(planned.name)}.csv").read_bytes()
        yield CheckResult(what=what, holds=same, why="" if same else "it is written otherwise")
        if not same:
            return
        yield _fit(one)
        yield from _function(one, certificates[name])
        yield from _on_random_data(one, certificates[name])
        yield from _synthetic(one, certificates[name])
        releases.append(one)
    if written is None:
        yield from _first_form(place, listed["files"], file, plan, releases)
    else:
        yield from _whole(place, listed["files"], file, plan, releases, written)
    if key is None:
        why = "only a signature under the manifest says so: give the key by --key"
        yield CheckResult(what="labels and titles are those of the custodian", holds=None, why=why)


def _as_written(
    place: Path, listed: dict[str, Any], certificates: Mapping[str, dict[str, Any]]
) -> Iterator[CheckResult]:
    """JSON files have exactly the text that tacit writes for their content, and certificates have no added words."""
    for name, said in {"manifest.json": listed, **certificates}.items():
        same = is_bound(said) and (place / name).read_bytes() == f"{json_text(said)}\n".encode()
        yield CheckResult(what=f"{name} has exactly the text of its content", holds=same)
    known = {*ORDER, "choice", "function", "random_data", "synthetic", "digest", "signature"}
    for name, said in certificates.items():
        other = sorted({*set(said) - known, *set(ORDER) - set(said)})
        why = f"nothing produces {', '.join(other)}, or it is missing" if other else ""
        yield CheckResult(what=f"{name} has the parts of a certificate", holds=not other, why=why)
        if "choice" in said:
            yield _parts(name, said)


VERSIONS = ("tacit", "python", *PACKAGES)
DIGEST = re.compile("[0-9a-f]{64}")
VERSION = re.compile(r"[0-9][0-9A-Za-z.+!-]{0,40}")
PARTS = {
    "values": ({"sha256"}, set[str]()),
    "ledger": ({"id", "sequence", "time", "digest", "answer"}, set[str]()),
    "data": (
        {
            "engine",
            "bounded",
            "conditions",
            "table",
            "asked_by",
            "version",
            "files",
            "made_up",
            "quality_rule",
        },
        {"approved_by", "reading", "seen", "signed"},
    ),
}
"""Fields of the parts that only the ledger knows: always, and sometimes."""


def _parts(name: str, said: Mapping[str, Any]) -> CheckResult:
    """An added word in a part is a claim, and a missing one was removed."""
    wrong = [
        f"{part}.{word}"
        for part, (always, sometimes) in PARTS.items()
        for word in sorted((set(said[part]) ^ always) - (sometimes & set(said[part])))
    ]
    rule = said["data"].get("quality_rule")
    if "data.quality_rule" not in wrong and (type(rule) is not int or not 1 <= rule <= RULE):
        wrong.append("data.quality_rule")
    if said["data"].get("engine") not in ENGINES_WITH_WINDOWS and "data.engine" not in wrong:
        wrong.append("data.engine")
    wrong += [f"ledger.{word}" for word, form in FORMS.items() if not form(said["ledger"].get(word))]
    wrong += [f"versions.{word}" for word in odd_versions(said["versions"])]
    why = f"nothing gives {', '.join(wrong)} so" if wrong else ""
    return CheckResult(what=f"the parts of {name} have their words, and no others", holds=not wrong, why=why)


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and DIGEST.fullmatch(value) is not None


def is_moment(value: Any) -> bool:
    """Whether the text is a moment in the notation of certificates: to the second, with its zone."""
    try:
        found = datetime.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return found.tzinfo is not None and found.isoformat(timespec="seconds") == value


def _is_place(value: Any) -> bool:
    return type(value) is int and value >= 0


FORMS: dict[str, Callable[[Any], bool]] = {
    "digest": _is_digest,
    "answer": _is_digest,
    "time": is_moment,
    "sequence": _is_place,
}
"""The form of the fields in the ledger's part."""


def odd_versions(said: Mapping[str, Any]) -> list[str]:
    """Unknown package names, texts that are no version, and missing parts that every certificate has."""
    odd = [
        n for n, v in said.items() if n not in VERSIONS or not isinstance(v, str) or not VERSION.fullmatch(v)
    ]
    return sorted([*odd, *({"tacit", "python"} - set(said))])


# --- releases from certified files -----------------------------------------------------------------------
def _certified(
    place: Path, plan: Plan, planned: Planned, said: Mapping[str, Any], written: Written | None
) -> Release:
    """The release that these values and this certificate are: keys from the plan, numbers and words from the file."""
    stem = file_stem(planned.name)
    text = (place / "values" / f"{stem}.csv").read_bytes().decode()
    if sha256(text) != said["values"]["sha256"]:
        raise ValueError("other values than the certificate's")
    rows = list(csv.reader(io.StringIO(text)))
    numbers = len(ENDS) + 1
    columns = list(zip(*(row[-numbers:] for row in rows[1:]), strict=True)) or [()] * numbers
    question = planned.question
    noisy = NoisyParts(parts={}, keys=None)
    if any(axis.size is None for axis in question.axes) or question.statistic.kind == "sparse_histogram":
        noisy = NoisyParts(
            parts={}, keys=_keys_of(place / "values" / f"{stem}.parquet", planned, len(rows) - 1)
        )
    drawn = None
    if "synthetic" in said:
        drawn = (place / "rows" / f"{stem}.csv").read_bytes().decode()
        if sha256(drawn) != said["synthetic"]["sha256"]:
            raise ValueError("other rows than the certificate's")
    if isinstance(planned.assignment, TreeAssignment):
        noisy = planned.assignment.recorded(said["function"])
    shape = _shape(planned, len(rows) - 1)
    values = [
        np.array([_number(cell) for cell in column], dtype=np.float64).reshape(shape)
        for column in columns[:3]
    ]
    found = Estimate(value=values[0], low=values[1], high=values[2])
    measured = None
    if rows and rows[0][-numbers - 1 : -numbers] == [MEASURED]:
        measured = np.array([int(row[-numbers - 1]) for row in rows[1:]], dtype=np.int64)
    unknown = set(columns[3]) - set(WORDS.values())
    if unknown:
        raise ValueError("words that are none")
    corrections: tuple[Any, ...] = ()
    if written is None:
        corrections = _said_in(place / "values" / f"{stem}.parquet")
    else:
        corrections = tuple(c for c in written.corrections if c.release in ("", planned.name))
    standing = (plan.charge, plan.charge) if written is None else written.standing
    inner = {k: v for k, v in said.items() if k not in ("digest", "signature")}
    return Release(
        planned=planned, noisy=noisy, estimate=found, standing=standing,
        publishable=said["noise_source"] == CIPHER,
        made_up=said["data"].get("made_up") is True, corrections=corrections, data=dict(said["data"]),
        words=tuple(columns[3]), rows_text=drawn, measured=measured,
        certify=functools.partial(_as_said, {**inner, "digest": said["digest"]}),
    )  # fmt: skip


def certified_releases(folder: str | Path) -> tuple[PlanFile, list[Release]]:
    """The releases of a folder from its own files, each compared with the digest in its certificate."""
    place = Path(folder)
    listed = read_json(place / "manifest.json", parameter="DIR")
    said = {n: read_certificate(place / n) for n in listed["files"] if n.startswith("certificates/")}
    file = read_plan(place / "plan.toml")
    plan = plan_of_certificates(file.plan(), said.values())
    written = Written.read(listed["written"]) if "written" in listed else None
    names = [(p, said[f"certificates/{file_stem(p.name)}.json"]) for p in plan.releases]
    return file, [_certified(place, plan, planned, one, written) for planned, one in names]


def _as_said(said: dict[str, Any], **_: Any) -> dict[str, Any]:
    return said


def _shape(planned: Planned, cells: int) -> tuple[int, ...]:
    return (cells,) if cells != 1 or planned.question.axes else ()


def _number(cell: str) -> float:
    """A number, a day as its number in the calendar, or None."""
    if not cell:
        return math.nan
    try:
        return float(cell)
    except ValueError:
        return float((datetime.date.fromisoformat(cell) - EPOCH).days)


def _keys_of(path: Path, planned: Planned, cells: int) -> tuple[tuple[Any, ...], ...]:
    """Keys that the plan does not list: with the values and types of the Parquet file."""
    import pyarrow
    import pyarrow.parquet

    held = pyarrow.parquet.read_table(pyarrow.BufferReader(path.read_bytes()), partitioning=None)
    found = []
    for at, axis in enumerate(planned.question.axes):
        column = held.column(at).to_pylist()
        kinds = {str} if axis.size is None else {type(_plain(v)) for v in axis.labels}
        if len(column) != cells or not {type(v) for v in column} <= {*kinds, type(None)}:
            raise ValueError("keys of another type")
        found.append(tuple(column))
    return tuple(found)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def _said_in(path: Path) -> tuple[Any, ...]:
    """The correction in the metadata of a Parquet file of the first form."""
    import pyarrow
    import pyarrow.parquet

    held = pyarrow.parquet.read_schema(pyarrow.BufferReader(path.read_bytes())).metadata or {}
    if b"corrections" not in held:
        return ()
    text = held[b"corrections"].decode()
    start, end = _SENTENCE
    if not text.startswith(start) or not text.endswith(end):
        raise ValueError("another sentence")
    return (_Said(text[len(start) : -len(end)]),)


def _standing(
    what: str, written: Written, plan: Plan, file: PlanFile, listed: Mapping[str, Any], ledger: str | None
) -> CheckResult:
    """Checks that the chain had a moment with the spending, withdrawals and replacements of the files."""
    if ledger is None:
        return CheckResult(
            what=what, holds=None, why="only the ledger knows the amounts spent and withdrawn then: --ledger"
        )
    from tacit.ledger import Ledger

    with Ledger.open(ledger) as opened:
        history, limit, budget = opened._at_the_start(keep=False), opened.limit, opened.budget
        entries = [e for e, _ in opened.entries_with_answers(answers=False)]
        charge = listed["ledger"].get("sequence")
        replaced = set(opened.replaces(charge)) if written.replaces else set()
    if not replaced.issuperset(written.replaces):
        return CheckResult(what=what, holds=False, why="the ledger has no release that it replaces")
    if not isinstance(budget.condition, Always):
        return CheckResult(
            what=what, holds=None, why="a budget under a condition has no running total to compare with"
        )
    said: tuple[Any, ...] = ()
    for entry in entries:
        if history.follow(entry):
            break
        if entry.kind in ("withdraw", "supersede") and entry.body["about"] == charge:
            said = (*said, entry.correction())
        if entry.sequence < (charge or 0):
            continue
        try:
            now = history.state.standing(file.analyst, limit)
        except TacitError:
            return CheckResult(what=what, holds=None, why="a budget of this kind has no running total")
        then = tuple(dataclasses.replace(budget, bound=bound) for bound in now)
        if then == written.standing and set(said) == set(written.corrections):
            return CheckResult(what=what, holds=True)
    return CheckResult(what=what, holds=False, why="the ledger never had that state")


# --- ends and words --------------------------------------------------------------------------------------
def _fit(release: Release) -> CheckResult:
    """Whether ends and quality words fit their values, and the noise that the certificate states.

    A reader can ask this of the file alone. Cut ends are judged as shown, so a word may be worse than the ends
    suggest, but never better. Values that are rounded for people (whole numbers, days) may be off by one step.
    """
    what = f"values/{file_stem(release.name)}.csv has ends and words that fit its values"
    found, rule = release.estimate, rule_of(release)
    if not rule.before_cut:
        return CheckResult(what=what, holds=None, why="judged by the rule of 0.1.0: not compared")
    value, low, high = (np.ravel(getattr(found, name)) for name in ENDS)
    there = np.isfinite(value)
    room = 1.0 if release.dated or release.planned.question.statistic.whole else 0.0
    shown = np.maximum(np.nan_to_num(high, nan=np.inf) - value, value - np.nan_to_num(low, nan=-np.inf))
    least = rule.codes(np.where(there, np.abs(value) + room, value), shown - room)
    order = [*WORDS.values()]
    told = np.array([order.index(word) for word in release.quality], dtype=np.int8)
    wrong = []
    if not set(release.quality) <= set(rule.vocabulary):
        wrong.append("a quality word does not belong to its rule")
    if not rule.judges and not bool(np.all(np.isnan(low) & np.isnan(high))):
        wrong.append("it has an interval, although nothing was spent on one")
    if not bool(np.all(~there | (~(low > value) & ~(high < value)))):
        wrong.append("a value lies outside of its interval")
    if not bool(np.all(told >= least)) or not bool(np.all((told == order.index(WORDS[ABSENT])) == ~there)):
        wrong.append("a quality word is better than its interval")
    wide = _widths(release)
    if wide is not None and not all(
        bool(np.all(~there | (np.abs(mine - theirs) <= room + 1e-9 * np.maximum(1.0, np.abs(mine)))))
        for mine, theirs in zip(wide, (low, high), strict=True)
    ):
        wrong.append("the noise gives other intervals")
    halves = _least(release)
    # Ends are whole numbers inside; one that is cut at 0 says nothing about the width.
    if halves is not None and bool(np.any(there & (low > 0) & (high - low < 2 * halves - 2 - 1e-6))):
        wrong.append("an interval is shorter than the noise allows")
    return CheckResult(what=what, holds=not wrong, why="; ".join(wrong))


def _function(release: Release, said: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Whether the points in the file of values come from the function in the certificate."""
    assignment, question = release.planned.assignment, release.planned.question
    stem = file_stem(release.name)
    what = f"the function of certificates/{stem}.json is the one that values/{stem}.csv shows"
    if isinstance(assignment, TreeAssignment):
        return  # its cells are the leaves, which are read from its record
    if not isinstance(assignment, FunctionAssignment):
        if "function" in said:
            yield CheckResult(what=what, holds=False, why="this release is no function")
        return
    try:
        told = said["function"]
        steps = [round(Fraction(float(v)) / assignment.fit.spacing) for v in told["numbers"]]
        numbers = np.empty(len(steps), dtype=object)
        numbers[:] = steps
        noisy = NoisyParts(parts={"numbers": numbers})
        again = assignment.read(question, noisy, release.planned.ask.confidence)
        same = assignment.function(question, noisy).to_dict() == told and all(
            _close(np.ravel(getattr(again, n)), np.ravel(getattr(release.estimate, n))) for n in ENDS
        )
    except Exception:  # whatever a changed certificate makes a reader raise
        same = False
    yield CheckResult(what=what, holds=same, why="" if same else "another function")


def _synthetic(release: Release, said: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Whether a certificate's part about synthetic rows follows from its plan, its schedule and their file."""
    assignment = release.planned.assignment
    rows = isinstance(assignment, SynthesisAssignment)
    if not rows and "synthetic" not in said:
        return
    what = f"certificates/{file_stem(release.name)}.json says of the synthetic rows what they are"
    try:
        wrong = (
            faults_of_record(assignment, release.planned.question, said["synthetic"], release.rows_csv or "")
            if isinstance(assignment, SynthesisAssignment)
            else ["synthetic"]
        )
    except Exception:  # whatever a changed certificate makes a reader raise
        wrong = ["synthetic"]
    yield CheckResult(what=what, holds=not wrong, why=f"other {', '.join(wrong)}" if wrong else "")


def _on_random_data(release: Release, said: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Does a certificate's part about exact cells agree with its values, under the requested gamma?

    The number of rows is released with them, and no file states it a second time.
    """
    assignment, stem = release.planned.assignment, file_stem(release.name)
    what = f"certificates/{stem}.json tells which cells of values/{stem}.csv are exact"
    if not isinstance(assignment, OnRandomData):
        if "random_data" in said:
            yield CheckResult(what=what, holds=False, why="this release has no exact cells")
        return
    try:
        told, exact = said["random_data"], _exact(release)
        possible = assignment.may_tell(rows=told["rows"], exact=told["exact_cells"])
        again = assignment.released_facts_of(rows=told["rows"], exact=told["exact_cells"])
        alone, pair = int(exact.sum()), len(assignment.counts) > 1
        # A share shows where both of its counts are exact, and not where one of them is.
        most = alone + (exact.size if pair else 0)
        shown = (2 if pair else 1) * alone <= told["exact_cells"] <= most
        value = np.ravel(release.estimate.value)[exact]
        small = pair or all(
            assignment.may_show(round(v), told["rows"]) for v in value * _rows_of(release, told["rows"])
        )
        wrong = [
            *([] if again == told else ["another sentence, number of cells or gamma"]),
            *([] if possible else ["numbers of rows and exact cells that the plan does not give"]),
            *([] if shown else ["another number of exact cells"]),
            *([] if small else ["a cell is exact that is not small"]),
        ]
    except Exception:  # whatever a changed certificate makes a reader raise
        wrong = ["it cannot be read"]
    yield CheckResult(what=what, holds=not wrong, why="; ".join(wrong))


def _exact(release: Release) -> AnyArray:
    """Cells whose interval has no width."""
    value, low, high = (np.ravel(getattr(release.estimate, name)) for name in ENDS)
    return np.asarray((low == value) & (high == value))


def _rows_of(release: Release, rows: int) -> int:
    """The divisor of a value: the number of rows in a proportion under a public number of them."""
    return rows if isinstance(release.planned.question.form, Average) else 1


def _close(mine: AnyArray, theirs: AnyArray) -> bool:
    """Equal except for the last digits, which differ between machines and libraries."""
    room = 1e-9 * float(np.max(np.abs(mine), initial=0.0, where=np.isfinite(mine)))
    return mine.shape == theirs.shape and np.allclose(mine, theirs, rtol=1e-9, atol=room, equal_nan=True)


def _widths(release: Release) -> tuple[AnyArray, AnyArray] | None:
    """The interval ends for these values under the stated noise, if a value is a noisy number; None for others."""
    planned, ask = release.planned, release.planned.ask
    question, assignment = planned.question, planned.assignment
    if ask.sampling or ask.consistent or ask.agree or ask.public is not None:
        return None
    if not isinstance(question.form, Linear | None) or (
        question.form is not None and len(question.parts) != 1
    ):
        return None
    step = 1.0 if question.form is None else float(question.form.spacing)
    value = release.estimate.value
    try:
        noisy = NoisyParts(parts=_split(question, value / step), keys=release.noisy.keys)
        if isinstance(assignment, OnRandomData):
            noisy = assignment.as_told(
                noisy, _exact(release), rows=release.certificate["random_data"]["rows"]
            )
        again = assignment.read(question, noisy, ask.confidence)
    except Exception:  # its value is made of more than this number
        return None
    if np.shape(again.value) != np.shape(value) or not np.allclose(
        again.value, value, rtol=1e-12, equal_nan=True
    ):
        return None
    return np.ravel(again.low), np.ravel(again.high)


def _least(release: Release) -> AnyArray | None:
    """The half-width of every interval that the stated noise alone determines; None for others."""
    planned = release.planned
    if planned.ask.agree or planned.ask.consistent or planned.ask.public is not None:
        return None  # several releases decide, or what is public
    noise = noise_by_part(planned.assignment.noise)
    return planned.question.statistic.half_widths(planned.question, noise, float(planned.ask.confidence))


def _split(question: Question, value: AnyArray) -> dict[str, AnyArray]:
    """Values of one part unchanged; values of several tables cut at the end of each table."""
    if len(question.parts) == 1:
        return {question.parts[0].name: value}
    shapes = [tuple(axis.size or 0 for axis in part.axes) for part in question.parts]
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    if ends[-1] != value.size:
        raise ValueError("its values are no tables")
    pieces = np.split(np.ravel(value), ends[:-1])
    return {p.name: v.reshape(s) for p, v, s in zip(question.parts, pieces, shapes, strict=True)}


# --- comparing ---------------------------------------------------------------------------------------------
def _what(name: str) -> str:
    return f"{name} is what is written of the certified values"


def _whole(
    place: Path, files: Mapping[str, Any], file: PlanFile, plan: Plan, releases: Sequence[Release], written: Written,
) -> Iterator[CheckResult]:  # fmt: skip
    """Every file made again by the form of today."""
    try:
        made = release_files(file, plan, releases, budget=file.limit, written=written)
    except (TacitError, ValueError, TypeError, KeyError) as problem:
        yield CheckResult(what="the files can be made again", holds=False, why=type(problem).__name__)
        return
    certificates = {f"certificates/{file_stem(r.name)}.json" for r in releases}
    other = sorted(set(files) ^ {*made, *certificates, "plan.toml"})
    why = ", ".join(other)
    yield CheckResult(
        what="the folder has the files that are written, and no others", holds=not other, why=why
    )
    here, by = libraries(), written.libraries
    for name, body in made.items():
        if name not in files or (name.endswith(".csv") and name.startswith("values/")):
            continue
        try:
            found = (place / name).read_bytes()
        except OSError:
            yield CheckResult(what=_what(name), holds=False, why="it cannot be read")
            continue
        if found == body:
            yield CheckResult(what=_what(name), holds=True)
        elif name.endswith(".parquet"):
            yield _parquet(name, found, body, same=by.get("pyarrow") == here.get("pyarrow"))
        elif name == WORKBOOK and _packed_alike(found, body):
            yield CheckResult(what=_what(name), holds=True, why="packed by another version of zlib")
        elif name == WORKBOOK and by.get("openpyxl") != here.get("openpyxl"):
            yield _cells(name, found, body, why=f"written by openpyxl {by.get('openpyxl')}")
        elif by.get("tacit") != here["tacit"]:
            yield _of_another(name, found, body, by.get("tacit"))
        else:
            yield CheckResult(what=_what(name), holds=False, why="it differs")


def _of_another(name: str, found: bytes, body: bytes, version: str | None) -> CheckResult:
    """A file from another version: sentences may differ, and keys, codes and numbers may not."""
    why = f"written by version {version} of tacit: not compared"
    if name == WORKBOOK:
        why = f"written by version {version} of tacit: tables compared, cover not"
        return _cells(name, found, body, why=why, cover=False)
    if name.startswith("sdmx/"):
        why = f"written by version {version} of tacit: all but comments compared"
        if _without_comments(found) != _without_comments(body):
            return CheckResult(what=_what(name), holds=False, why="other keys, codes or numbers")
    return CheckResult(what=_what(name), holds=None, why=why)


def _without_comments(data: bytes) -> tuple[bool, list[list[str]]] | None:
    """Whether an SDMX file has comments, which come last, and its rows without them; None if it is no such file."""
    try:
        rows = list(csv.reader(io.StringIO(data.decode()), strict=True))
    except (UnicodeDecodeError, csv.Error):
        return None
    said = bool(rows) and rows[0][-1:] == ["COMMENT_OBS"]
    return said, [row[:-1] for row in rows] if said else rows


def _first_form(
    place: Path, files: Mapping[str, Any], file: PlanFile, plan: Plan, releases: Sequence[Release]
) -> Iterator[CheckResult]:
    """The files of the first form, made again by its rules, if these are known."""
    words = file.words
    for one in releases:
        stem = file_stem(one.name)
        made = {
            f"values/{stem}.csv-metadata.json": csvw_text(one, words),
            f"sdmx/{stem}.csv": sdmx_text(one, words, form=1),
        }
        for name, text in made.items():
            if name in files:
                same = (place / name).read_bytes() == text.encode()
                yield CheckResult(what=_what(name), holds=same, why="" if same else "it differs")
        name = f"values/{stem}.parquet"
        found, body = (place / name).read_bytes(), parquet_bytes(one, form=1)
        yield (
            CheckResult(what=_what(name), holds=True)
            if found == body
            else _parquet(name, found, body, same=False)
        )
    if WORKBOOK in files:
        try:
            body = workbook(releases, words, form=1)
        except InvalidParameter as problem:
            yield CheckResult(what=_what(WORKBOOK), holds=None, why=problem.message)
        else:
            yield _cells(WORKBOOK, (place / WORKBOOK).read_bytes(), body, why=EARLIER, spent=False)
    if PAGE in files:
        yield CheckResult(what=_what(PAGE), holds=None, why=EARLIER)


# --- Parquet -----------------------------------------------------------------------------------------------
def _parquet(name: str, found: bytes, body: bytes, *, same: bool) -> CheckResult:
    """Whether differing bytes are a change, or another version of the writer; in that case all visible content
    is compared.
    """
    if same:
        return CheckResult(what=_what(name), holds=False, why="it differs")
    try:
        problem = _reads_otherwise(found, body)
    except Exception as error:  # whatever a damaged file makes a reader raise
        problem = f"it cannot be read: {type(error).__name__}"
    why = problem or "written by another version of pyarrow: compared as pyarrow, pandas and DuckDB read it"
    return CheckResult(what=_what(name), holds=not problem, why=why)


ENCODINGS = {"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY", "BIT_PACKED"}


def _reads_otherwise(found: bytes, body: bytes) -> str:
    """Differences for some reader: schema, metadata, statistics, or values in pyarrow, pandas and DuckDB."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    one, two = (pq.ParquetFile(pa.BufferReader(data)) for data in (found, body))
    if _metadata(one.metadata.metadata) != _metadata(two.metadata.metadata):
        return "other metadata"
    if not one.schema_arrow.equals(two.schema_arrow, check_metadata=True) or not one.schema.equals(
        two.schema
    ):
        return "another schema"
    chunks = [_chunks(file.metadata) for file in (one, two)]
    if chunks[0] != chunks[1]:
        return "other statistics of its columns"
    if not one.read().equals(two.read()):
        return "other values"
    frames = [pd.read_parquet(io.BytesIO(data)) for data in (found, body)]
    if not (frames[0].equals(frames[1]) and list(frames[0].columns) == list(frames[1].columns)):
        return "other values in pandas"
    if repr(frames[0].index) != repr(frames[1].index) or frames[0].attrs != frames[1].attrs:
        return "another index in pandas"
    return "" if _in_duckdb(found) == _in_duckdb(body) else "other values in DuckDB"


def _metadata(held: Mapping[bytes, bytes] | None) -> dict[bytes, Any]:
    """All keys and values, with Arrow's own copy of the schema compared by its content."""
    import pyarrow as pa

    known = dict(held or {})
    coded = known.pop(b"ARROW:schema", None)
    if coded is None:
        return known
    schema = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(coded)))
    return {**known, b"ARROW:schema": (str(schema), schema.metadata)}


def _chunks(held: Any) -> list[Any]:
    """Rows, types, statistics and encodings of all columns: readers skip pages by them."""
    found: list[Any] = [held.num_rows, held.num_row_groups, held.num_columns]
    for group in range(held.num_row_groups):
        row_group = held.row_group(group)
        found.append(row_group.num_rows)
        for at in range(row_group.num_columns):
            column = row_group.column(at)
            told = column.statistics.to_dict() if column.is_stats_set else None
            found.append((column.path_in_schema, column.physical_type, column.num_values, repr(told)))
            found.append(
                (column.has_column_index, column.has_offset_index, set(column.encodings) <= ENCODINGS)
            )
    return found


def _in_duckdb(data: bytes) -> Any:
    import tempfile

    import duckdb

    with tempfile.TemporaryDirectory(prefix="tacit-") as folder, duckdb.connect() as engine:
        place = Path(folder) / "values.parquet"
        place.write_bytes(data)
        read = engine.execute("SELECT * FROM read_parquet(?)", [str(place)])
        return repr([(c[0], str(c[1])) for c in read.description or ()]), repr(read.fetchall())


OF_BOOK = 3
"""The entries of a workbook that concern the whole of it; the cover comes next."""


# --- workbooks ---------------------------------------------------------------------------------------------
def _cells(
    name: str, found: bytes, body: bytes, *, why: str, spent: bool = True, cover: bool = True
) -> CheckResult:
    """Sheets, cells, formats and hidden parts, as openpyxl reads them; other changes stay unnoticed."""
    try:
        one, two = _read_book(found, spent=spent), _read_book(body, spent=spent)
    except Exception as error:
        return CheckResult(what=_what(name), holds=False, why=f"it cannot be read: {type(error).__name__}")
    if not cover:
        one, two = (held[OF_BOOK + 1 :] for held in (one, two))
    if one != two:
        return CheckResult(what=_what(name), holds=False, why="other sheets, cells or formats")
    return CheckResult(what=_what(name), holds=None, why=why)


def _read_book(data: bytes, *, spent: bool) -> Any:
    """The contents of a workbook; without `spent`, all but the sentence about the amount spent."""
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data))
    held: list[Any] = [list(book.defined_names), book.properties.title, book.properties.creator]
    for number, sheet in enumerate(book.worksheets):
        cells = []
        for row in sheet.iter_rows():
            if not spent and number == 0 and row[0].value == ABOUT:
                continue
            cells.append(
                [(c.coordinate, c.value, c.data_type, c.number_format, c.hyperlink, c.comment) for c in row]
            )
        hidden = [k for k, d in {**sheet.row_dimensions, **sheet.column_dimensions}.items() if d.hidden]
        rules = (len(sheet.conditional_formatting), len(sheet.data_validations.dataValidation))
        objects = (len(sheet._charts), len(sheet._images), len(sheet.tables), len(sheet.merged_cells.ranges))
        held.append((sheet.title, sheet.sheet_state, cells, hidden, rules, objects))
    return held


def _packed_alike(found: bytes, body: bytes) -> bool:
    """Whether two archives are the same, apart from the compression of their parts. Read from the first byte to the
    last.
    """
    try:
        return _unpacked(found) == _unpacked(body)
    except (struct.error, zlib.error, ValueError):
        return False


LOCAL, CENTRAL, END = 0x04034B50, 0x02014B50, 0x06054B50


def _unpacked(data: bytes) -> list[Any]:
    """Every header and every part of an archive, in order; refuses bytes between, before or behind them."""
    at = 0
    found: list[Any] = []
    places: list[tuple[int, int, int, int]] = []
    while struct.unpack_from("<I", data, at)[0] == LOCAL:
        _, need, flags, method, clock, day, crc, packed, size, long, extra = struct.unpack_from(
            "<IHHHHHIIIHH", data, at
        )
        name = data[at + 30 : at + 30 + long]
        start = at + 30 + long + extra
        opened = zlib.decompressobj(-15)
        part = (
            opened.decompress(data[start : start + packed]) if method == 8 else data[start : start + packed]
        )
        if extra or flags & ~0x0800 or len(part) != size or zlib.crc32(part) != crc or opened.unused_data:
            raise ValueError("an odd part")
        found.append((name, need, flags, method, clock, day, part))
        places.append((at, crc, packed, size))
        at = start + packed
    first = at
    for (name, need, flags, method, clock, day, _), where in zip(tuple(found), places, strict=True):
        place, crc, packed, size = where
        told = struct.unpack_from("<IHHHHHHIIIHHHHHII", data, at)
        long = told[10]
        if told[0] != CENTRAL or told[2:10] != (need, flags, method, clock, day, crc, packed, size):
            raise ValueError("an odd directory")
        if data[at + 46 : at + 46 + long] != name or told[11] or told[12] or told[13] or told[16] != place:
            raise ValueError("an odd directory")
        found.append((told[1], told[14], told[15]))
        at += 46 + long
    end = struct.unpack_from("<IHHHHIIH", data, at)
    if end != (END, 0, 0, len(places), len(places), at - first, first, 0) or at + 22 != len(data):
        raise ValueError("an odd end")
    return found
