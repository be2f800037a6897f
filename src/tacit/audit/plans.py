"""Numbers beside a bound: the noise of its events, and the charge of all releases of a plan."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tacit.audit.claims import ROUNDING_SLACK, Opinion, checked_given, opinion_on

_OF_NOISE = {
    ("discrete Laplace", "L1"): ("discrete_laplace", "laplace", "pure"),
    ("Gaussian, rounded to the grid", "L2"): ("gaussian",),
}
"""The event of a kind of noise. Noise under other names is not checked."""


def opinion_on_noise(certificate: Mapping[str, Any]) -> Opinion | None:
    """Compares the events with the mechanism's stated noise and sensitivity; None if it states none.

    Laplace noise of scale b on numbers that move by s steps in all has epsilon s / b. The curve of continuous
    noise exceeds that of a grid if its epsilon is larger by 2 ln cosh(1 / 2b), at most 1 / 4b^2. Gaussian noise
    of this standard deviation on numbers that move by the root of q steps has the multiplier noise_std /
    sqrt(q).
    """
    noises, records = certificate["mechanism"].get("noise", []), certificate["event"]
    if not noises or not all("sensitivity" in one for one in noises):
        return None
    if len(noises) != len(records):
        return Opinion(stated="events", confirmed=False, why="there are more or fewer of them than noises")
    for noise, record in zip(noises, records, strict=True):
        moved, event = noise["sensitivity"], record["event"]
        known = _OF_NOISE.get((str(noise.get("distribution")), moved["norm"]))
        if known is None:
            return None
        if event["kind"] not in known:
            why = f"its noise is {noise['distribution']}"
            return Opinion(stated=f"event of kind {event['kind']}", confirmed=False, why=why)
        steps = moved["steps" if moved["norm"] == "L1" else "steps_squared"]
        wide = Fraction(noise["noise_scale" if moved["norm"] == "L1" else "noise_std"])
        if wide <= 0 or isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            holds = False
        elif moved["norm"] == "L1":
            more = wide**-2 / 4 if event["kind"] == "laplace" else 0
            holds = steps / wide + more <= Fraction(event["epsilon"]) * (1 + ROUNDING_SLACK)
            holds = holds and event.get("sensitivity", steps) == steps
        else:
            holds = wide**2 / steps * (1 + ROUNDING_SLACK) >= Fraction(event["noise_multiplier"]) ** 2
        if not holds:
            return Opinion(
                stated=f"event of kind {event['kind']}", confirmed=False, why="its noise gives less"
            )
    return Opinion(stated="events", confirmed=True)


def opinion_on_charge(certificates: Sequence[Mapping[str, Any]]) -> Opinion:
    """Compares the charge of a plan with the events of all of its releases."""
    plan = certificates[0]["plan"]
    events = [record for one in certificates for record in one["event"]]
    opinion = opinion_on(plan["charge"], events, certificates[0]["neighbours"])
    if opinion.confirmed and plan["charge"]["condition"]["kind"] == "random-data":
        # The same condition on each; what may fail for one release or for another adds up.
        given = [checked_given(one["event"], plan["charge"]["condition"]) for one in certificates]
        if sum(given) > Fraction(plan["charge"]["condition"]["gamma"]) * (1 + ROUNDING_SLACK):
            return replace(
                opinion, confirmed=False, why="its gamma is less than those of its releases together"
            )
    if opinion.confirmed and plan["charge"]["condition"]["kind"] == "bounded-adversary":
        each = [Fraction(one["guarantee"]["condition"].get("advantage", 0)) for one in certificates]
        if sum(each) > Fraction(plan["charge"]["condition"]["advantage"]) * (1 + ROUNDING_SLACK):
            return replace(
                opinion, confirmed=False, why="its advantage is less than those of its releases together"
            )
        if plan["charge"]["condition"]["definition"] == "ind" and sum(map(bool, each)) > 1:
            return replace(opinion, confirmed=None, why="advantages of several releases are not weighed here")
    missing = _missing(plan.get("releases", ()), {str(one.get("name")) for one in certificates})
    if missing:
        return replace(opinion, confirmed=None, why=f"{missing} of its certificates are not there")
    same = ("neighbours", "plan")
    if any(one[name] != certificates[0][name] for one in certificates for name in same):
        return replace(opinion, confirmed=False, why="its certificates state different plans")
    for one in certificates:
        own, whole = one["guarantee"], plan["charge"]
        if own.get("unit") != whole.get("unit"):
            return replace(opinion, confirmed=False, why="it is for another unit than its certificates")
        if not _includes(whole["condition"], own["condition"]):
            return replace(opinion, confirmed=False, why="it drops the condition of a certificate")
    return opinion


def _missing(said: Any, names: set[str]) -> int:
    """The number of releases that a certificate names and this folder lacks."""
    if not isinstance(said, Mapping):
        return len(set(said) - names)
    # A long plan: their number, and the digest of the sorted list.
    digest = hashlib.sha256(json.dumps(sorted(names), separators=(",", ":")).encode()).hexdigest()
    number = said.get("number")
    there = isinstance(number, int) and number == len(names) and said.get("sha256") == digest
    return 0 if there else max(1, number - len(names)) if isinstance(number, int) else 1


def _includes(whole: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    """Whether the assumptions of a release are among those of its plan."""
    if own["kind"] == "always":
        return True
    if own["kind"] == "priors" or whole["kind"] != own["kind"]:
        return bool(whole["kind"] == own["kind"])
    same = ("assumption", "definition")
    least = "gamma" if own["kind"] == "random-data" else "advantage"
    enough = Fraction(own[least]) <= Fraction(whole[least]) * (1 + ROUNDING_SLACK)
    return enough and all(own.get(name) == whole.get(name) for name in same)
