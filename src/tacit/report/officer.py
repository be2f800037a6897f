"""What a disclosure officer needs: who asked, who approved, which data, what the declarations do, who signed.

Everything here is declared, charged or recorded; no number of it is read from the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit.curator import Plan, Release
from tacit.curator.public_words import PublicWords
from tacit.guarantees.units import GroupOf, People, Unit

__all__ = ["Desk", "Paragraph", "officer_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What is known about a release beside its numbers: as the plan, the ledger and the key say it."""

    analyst: str = ""
    approved_by: tuple[str, ...] = ()
    table: str = ""
    version: str = ""
    signed_by: str = ""
    """The fingerprint of the key that signs the files."""
    replaces: tuple[str, ...] = ()
    """What the ledger says that this charge replaces, in words."""
    written: bool = False
    """Is the page written beside files that may be signed?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """A heading with its sentences."""

    heading: str
    sentences: tuple[str, ...]


def officer_of(
    plan: Plan, releases: Sequence[Release], *, desk: Desk, words: PublicWords, notes: Sequence[str] = ()
) -> tuple[Paragraph, ...]:
    """The paragraphs, in the order in which an officer asks."""
    first = releases[0].statement
    said = [r.statement for r in releases]
    found = [
        ("Who asked", [_asked(desk, first)]),
        ("Who approved", [_approved(desk, first)]),
        ("Which data", _data(desk, first)),
        ("Which plan", [*_plan(plan, first), *(f"It replaces {one}." for one in desk.replaces)]),
        ("Who had looked", _looks(said)),
        ("What the declarations do", [*_bounded(plan.unit, said), *_clamped(said, words)]),
        ("What it rests on", _rests_on(said)),
        ("Signature", [_signature(desk)]),
        ("Notes", list(notes)),
    ]
    return tuple(Paragraph(heading=h, sentences=tuple(s)) for h, s in found if s)


def _asked(desk: Desk, first: Mapping[str, Any]) -> str:
    who = f"Asked by {desk.analyst}" if desk.analyst else "Who asked is not recorded"
    return f"{who}; answered at {first['made']}, by version {first['versions'].get('tacit', 'unknown')} of tacit."


def _approved(desk: Desk, first: Mapping[str, Any]) -> str:
    names = desk.approved_by or tuple(first["data"].get("approved_by", ()))
    if names:
        return f"Approved by {', '.join(names)}."
    return "This page knows of no approval: what the ledger records of requests and approvals, tacit ledger show tells."


def _data(desk: Desk, first: Mapping[str, Any]) -> list[str]:
    table = desk.table or str(first["data"].get("table", ""))
    named = f"Table {table}" if table else "A table without a name"
    found = [f"{named}, {f'version {desk.version}' if desk.version else 'of which no version is declared'}."]
    if first["data"].get("made_up"):
        found.append("The table says of itself that it is made up and describes nobody.")
    return found


def _plan(plan: Plan, first: Mapping[str, Any]) -> list[str]:
    found = [f"The plan has the digest {plan.digest}; labels and titles are no part of it."]
    ledger = first["ledger"]
    if ledger.get("sequence") is not None:
        found.append(
            f"It was charged as entry {ledger['sequence']} of ledger {ledger['id']}: {plan.charge.bound}."
        )
    return found


def _looks(said: Sequence[Mapping[str, Any]]) -> list[str]:
    seen = list(dict.fromkeys(d for one in said for d in one["data"].get("seen", [])))
    if not seen:
        return ["The ledger knows of no look at the data before this plan."]
    return [f"Known to the ledger, and not counted in the bound: {d}." for d in seen]


def _bounded(unit: Unit, said: Sequence[Mapping[str, Any]]) -> list[str]:
    who = unit.of if isinstance(unit, GroupOf) else unit
    if not isinstance(who, People) or not any(one["data"]["bounded"] for one in said):
        return []
    rows = "row is" if who.at_most == 1 else "rows are"
    return [
        f"Of one {who.column} at most {who.at_most} {rows} used, by a keyed choice; the others are in no number."
    ]


def _clamped(said: Sequence[Mapping[str, Any]], words: PublicWords) -> list[str]:
    """Which bounds cut, and what that does to a mean: as declared, never how many rows it concerns."""
    schema: dict[str, Mapping[str, Any]] = {}
    summed: set[str] = set()
    for one in said:
        schema |= one["schema"]
        statistic = one["statistic"]
        summed |= {str(statistic[n]) for n in ("column", "numerator", "denominator") if statistic.get(n)}
    found = []
    for name, column in schema.items():
        low, high = column.get("low"), column.get("high")
        if low is None or high is None:
            continue
        label, ends = words.column(name), f"{_end(low)} and {_end(high)}"
        if column.get("outside") != "clamp":
            found.append(
                f"{label} counts between {ends}; rows outside are counted as missing, and are in no mean of it."
            )
            continue
        told = f"{label} is clamped between {ends}: smaller values count as {_end(low)}, larger ones as {_end(high)}"
        if name in summed:
            told += (
                "; a mean is too high by what lies below and too low by what lies above, and is never outside; how "
                "much that is is not known without paying for it"
            )
        found.append(f"{told}.")
        filled = column.get("missing")
        if isinstance(filled, int | float) and not isinstance(filled, bool):
            found.append(f"A missing {label} counts as {_end(filled)}, in means too.")
    return found


def _rests_on(said: Sequence[Mapping[str, Any]]) -> list[str]:
    """Conditions and declarations of all releases, each said once, with its releases where it is not that of all."""
    told: dict[str, list[str]] = {}
    for one in said:
        looked = one["data"].get("seen", [])
        mine = [f"It holds {one['condition']}."]
        if "random_data" in one:
            mine.append(one["random_data"]["sentence"])
        declared = [d for d in one["guarantee"].get("declared", []) if d not in looked]
        mine += [
            f"Declared, and not checked: {d}." for d in (*declared, *one["intervals"].get("declared", []))
        ]
        mine += [f"Believed, and not checked: {c}." for c in one["data"]["conditions"]]
        for sentence in dict.fromkeys(mine):
            told.setdefault(sentence, []).append(one["name"])
    return [s if len(n) == len(said) else f"{s} This is about {', '.join(n)}." for s, n in told.items()]


def _signature(desk: Desk) -> str:
    if desk.signed_by:
        return f"Certificates and manifest are signed by the key with the fingerprint {desk.signed_by}."
    if desk.written:
        return "Nothing is signed: whoever can write these files can change them. tacit release --sign signs."
    return "Whether the files are signed is not known to this page."


def _end(value: Any) -> str:
    return f"{value:,.10g}" if isinstance(value, int | float) else str(value)
