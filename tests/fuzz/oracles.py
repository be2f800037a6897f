"""What must hold between neighbours, outside of the noise.

error     the same error, class and words, or none
raw       no error but the package's own
chained   no engine's words behind an error
told      the same output, log lines and warnings
shapes    the same parts, shapes and types of what is let out, columns, certificate
words     the same number of noise words, where the cells that get noise are known in advance
charges   the same entries in the ledger; files under the same names
moved     the true integers differ by no more than the question claims, in L1, L2 and Linf
together  what is read with other questions is what is read alone
form      what is read from this form is what is read from the same rows as an Arrow table
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzz.trials import Asked, Seen


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken promise."""

    oracle: str
    what: str
    question: int | None = None


VIEWS = "ReadFailed"
"""A user's own view that fails for one row ends in this sentence, after the charge: views are believed to be total."""


def compared(wanted: Sequence[Asked], left: Seen, right: Seen, *, view: bool = False) -> list[Finding]:
    """All promises that this pair breaks."""
    found = [Finding("raw", s.raw[-260:]) for s in (left, right) if s.raw]
    for seen in (left, right):
        if seen.chained and not seen.raw:
            found.append(Finding("chained", seen.chained[:200]))
    if view and any(s.error is not None and s.error[0] == VIEWS for s in (left, right)) and not found:
        charges = [[c for c in s.charges if isinstance(c, str)] for s in (left, right)]
        return [] if charges[0] == charges[1] else [Finding("charges", f"{charges[0]} / {charges[1]}")]
    if left.error != right.error:
        found.append(Finding("error", f"{left.error} / {right.error}"[:400]))
    if left.error == right.error and left.told != right.told:
        found.append(Finding("told", f"{left.told} / {right.told}"[:300]))
    if left.charges != right.charges or left.files != right.files:
        told = f"{left.charges} {left.files} / {right.charges} {right.files}"
        found.append(Finding("charges", told[:400]))
    if left.error is None and right.error is None:
        for i, (a, b) in enumerate(zip(left.shapes, right.shapes, strict=True)):
            if a != b:
                place = i if len(left.shapes) == len(wanted) else None
                found.append(Finding("shapes", f"{a} / {b}"[:300], place))
                break
        known = all(a.question.known_keys and a.statistic.kind != "sparse_histogram" for a in wanted)
        if known and left.drawn != right.drawn:
            found.append(Finding("words", f"{left.drawn} / {right.drawn}"))
    if left.truth is not None and right.truth is not None:
        for i, one in enumerate(wanted):
            told = moved(one.question, left.truth[i], right.truth[i])
            if told:
                found.append(Finding("moved", told, i))
    for seen in (left, right):
        for place, truth in seen.alone:
            if seen.truth is not None and not equal(seen.truth[place], truth):
                found.append(Finding("together", wanted[place].name, place))
                break
    return found


def equal(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """The same integers; keys with nothing in them do not count."""
    return all(not np.any(_difference(a[n], b[n])) for n in a) and a.keys() == b.keys()


def _difference(a: Any, b: Any) -> Any:
    if isinstance(a, dict):
        cells = sorted({*a, *b}, key=repr)
        return np.array([int(a.get(c, 0)) - int(b.get(c, 0)) for c in cells], dtype=object)
    return np.ravel(np.asarray(a).astype(object) - np.asarray(b).astype(object))


def most_rows(unit: Any) -> int:
    """How many rows can differ between neighbours, from the definition."""
    base, size = getattr(unit, "of", unit), getattr(unit, "size", 1)
    return size * getattr(base, "at_most", 1) * (2 if base.neighbours == "replace-one" else 1)


def moved(question: Any, a: dict[str, Any], b: dict[str, Any]) -> str:
    """How the integers moved further than the question claims; empty if they did not."""
    parts = {n: _difference(a[n], b[n]) for n in a}
    if any(np.shape(a[n]) != np.shape(b[n]) for n in a if not isinstance(a[n], dict)):
        return "shapes of the true integers"
    stacked = [parts[p.name] for p in question.parts if not p.exact]
    claims = [("all parts", np.concatenate(stacked) if stacked else np.zeros(0), question.sensitivity)]
    claims += [(p.name, parts[p.name], question.sensitivities[p.name]) for p in question.parts]
    if "support" in parts and question.support_sensitivity is not None:
        claims.append(("support", parts["support"], question.support_sensitivity))
    if "training rows" in parts:
        # A function's proof counts rows: a unit has so many, and they come, go, or become others.
        changed = int(sum(abs(int(v)) for v in parts["training rows"]))
        if changed > most_rows(question.unit):
            return f"{question.statistic.kind}: {changed} rows changed; a unit has {most_rows(question.unit)}"
    for name, vector, claim in claims:
        size = [abs(int(v)) for v in vector]
        l1, l2, linf = sum(size), sum(v * v for v in size), max(size, default=0)
        if l1 > claim.l1 or l2 > claim.l2_squared or linf > claim.linf:
            told = f"L1 {l1}, L2^2 {l2}, Linf {linf}; claimed {claim.l1}, {claim.l2_squared}, {claim.linf}"
            return f"{question.statistic.kind} {name}: {told}"
    return ""
