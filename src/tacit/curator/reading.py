"""JSON files as people and attackers write them: certificates and manifests, or one clear error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tacit.curator.certificate import EARLIER, FORMAT
from tacit.curator.toml import read_text
from tacit.errors import InvalidParameter

__all__ = ["read_certificate", "read_json"]

FAMILY = "tacit certificate "
MOST_BYTES = 64 << 20
MOST_DEPTH = 60


def read_json(path: str | Path, *, parameter: str) -> dict[str, Any]:
    """The object in a JSON file: no name twice, no number that is none, nothing nested beyond use."""
    text = read_text(path, parameter=parameter, most=MOST_BYTES)
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError):
        raise InvalidParameter(parameter=parameter, value=str(path), must="be JSON") from None
    if not isinstance(found, dict) or _depth(found) > MOST_DEPTH:
        raise InvalidParameter(parameter=parameter, value=str(path), must="be a JSON object")
    return found


def read_certificate(path: str | Path) -> dict[str, Any]:
    """The certificate in a file, of which every part that is used has its type."""
    from tacit.guarantees import theorem
    from tacit.guarantees.record import from_record

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
    """How deep it is nested, found without recursion."""
    level, depth = [value], 0
    while level and depth <= MOST_DEPTH:
        inner: list[Any] = []
        for v in level:
            inner += v.values() if isinstance(v, dict) else v if isinstance(v, list) else ()
        level, depth = inner, depth + 1
    return depth


def _whole(said: dict[str, Any]) -> bool:
    """Has it all that is printed, each of its kind? Checked before a word is printed."""
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
