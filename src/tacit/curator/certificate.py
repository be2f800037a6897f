"""The certificate of a release: plain JSON that says what was run, what it may reveal, and on what that rests."""

from __future__ import annotations

import json
import platform
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

from tacit.accounting.codec import to_record
from tacit.curator.binding import bound
from tacit.curator.choice import release_choice
from tacit.curator.exact_answers import priors_of
from tacit.curator.plan import Plan, Planned, event_record
from tacit.curator.random_counts import gamma_of
from tacit.curator.sampling import DECLARED
from tacit.curator.text import beyond_groups
from tacit.guarantees import Guarantee
from tacit.ledger.canonical import sha256
from tacit.sources.aggregates import Squares, Steps
from tacit.sources.training import RowsWanted

__all__ = [
    "CIPHER",
    "EARLIER",
    "FORMAT",
    "NOT_COVERED",
    "SEEDED",
    "certify",
    "json_text",
    "said_digest",
    "said_digests",
    "versions",
    "with_looks",
]

FORMAT = "tacit certificate 2"
EARLIER = "tacit certificate 1"
"""Certificates that bind nothing: they can still be read, with a warning."""

CIPHER, SEEDED = "AES-256-CTR", "seeded, for tests"
PUBLISHABLE = (CIPHER,)

COMPUTATIONAL = (
    "The {drawn} comes from AES-256 in counter mode, keyed by the operating system. Against an adversary who cannot"
    " tell that from uniform bits the guarantee holds as stated (SIM-CDP); against one who can, nothing is claimed."
)
FOR_TESTS = "The {drawn} came from a seeded source, for a test: whoever knows the seed can take it off again."
NOTHING_DRAWN = (
    "No noise and no randomness is part of this answer: what is claimed rests on its condition alone."
)
NOT_COVERED = (
    "values outside the declared bounds, which were clamped or left out as the schema says",
    "rows of a person beyond the declared limit, which were not used",
    "the difference between the people in the table and those whom it stands for (sampling error)",
)
POPULATION = "the population's value, each cell by itself, if the declaration is true"
PACKAGES = ("numpy", "duckdb", "ibis-framework", "python-flint", "cryptography", "pyspark")


def certify(
    plan: Plan, planned: Planned, *, ledger: dict[str, Any], made: dict[str, Any], values: str | None,
    function: dict[str, Any] | None = None, told: dict[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The certificate of one release of a plan: `made` and `ledger` say where it comes from, `values` is its CSV.

    Without values it is what the certificate says, with no digest of them or of itself. A released function is part
    of its certificate, and so is what was exact under random differential privacy (`told`).
    """
    content = {**_settled(plan, planned, made), "made": made["time"], "ledger": ledger}
    content |= {"data": made["data"], "versions": made["versions"]}
    content["values"] = {} if values is None else {"sha256": sha256(values)}
    content = {name: content[name] for name in ORDER}
    if function is not None:
        content["function"] = function
    if told is not None:
        content["random_data"] = told
    if made["data"].get("files") is not None:
        content["choice"] = release_choice(planned)
    return content if values is None else bound(content)


def _settled(plan: Plan, planned: Planned, made: dict[str, Any]) -> dict[str, Any]:
    """What a certificate says that follows from the plan, and from how its answer was made: written once for both.

    Kept as text, so that nobody who changes a certificate changes the next one.
    """
    data = made["data"]
    place = ("certificate", planned.name, made["noise"], bool(data["bounded"]), tuple(data.get("seen", ())))
    if place not in plan.kept:
        said = _said(plan, planned, made)
        try:
            text = json.dumps(said, allow_nan=False)
        except (TypeError, ValueError):
            return said
        if json.loads(text) != said:  # pragma: no cover - all that is said is plain
            return said
        plan.kept[place] = text
    return cast("dict[str, Any]", json.loads(plan.kept[place]))


def _said(plan: Plan, planned: Planned, made: dict[str, Any]) -> dict[str, Any]:
    question, treatment = planned.question, planned.treatment
    columns = plan.schema.behind(_columns(planned))
    theorems = dict.fromkeys([*treatment.theorems, *plan.theorems, "post-processing"])
    if made["data"]["bounded"]:
        theorems["contribution-bounding"] = None
    theorems["contribution-polytopes"] = None
    guarantee = with_looks(planned.guarantee, made["data"])
    mechanism = treatment.describe()
    return {
        "format": FORMAT,
        "name": planned.name,
        "publishable": made["noise"] in PUBLISHABLE,
        "statistic": planned.ask.statistic.describe(),
        "guarantee": guarantee.record,
        "meaning": guarantee.explain(),
        "unit": str(plan.unit),
        "neighbours": plan.unit.neighbours.value,
        "condition": str(planned.guarantee.condition),
        "event": _event(planned),
        "price": treatment.price.describe(),
        "mechanism": mechanism,
        "sensitivity": treatment.sensitivity_record(question),
        "grid": treatment.grid_record(question),
        "numerical_delta": mechanism["numerical_delta"],
        "noise_source": made["noise"],
        "computational": _source_of_randomness(treatment.drawn, made["noise"] in PUBLISHABLE),
        "intervals": {
            "confidence": float(planned.ask.confidence),
            "cover": POPULATION if planned.ask.sampling else treatment.covers,
            "do_not_cover": _not_covered(planned),
            "declared": [DECLARED] if planned.ask.sampling else [],
        },
        "error": planned.expected.record,
        "price_of_privacy": planned.expected.floor_record,
        "asked": {k: v for k, v in planned.ask.describe().items() if k not in ("name", "statistic")},
        "consistent": planned.ask.consistent,
        "public_totals": None if planned.ask.public is None else planned.ask.public.record,
        "schema": {n: d for n, d in _plain(plan.schema.describe()).items() if n in columns},
        "theorems": list(theorems),
        "plan": {
            "digest": plan.digest,
            "releases": [r.name for r in plan.releases],
            "charge": plan.charge.record,
            "charged_by": plan.charged.theorem,
        },
    }


def said_digest(certificate: dict[str, Any]) -> str:
    """The digest of all that a certificate says that follows from its plan: sentences, too, as they were said then."""
    outside = ("made", "ledger", "data", "versions", "values")
    about = {n: certificate[n] for n in ORDER if n in certificate and n not in outside}
    return sha256(json.dumps(about, sort_keys=True))


def said_digests(plan: Plan, made: dict[str, Any]) -> dict[str, str]:
    """That of every release of a plan, for the record: whoever verifies them later needs not say the same words."""
    return {r.name: said_digest(_settled(plan, r, made)) for r in plan.releases}


def _source_of_randomness(drawn: str, publishable: bool) -> str:
    return (COMPUTATIONAL if publishable else FOR_TESTS).format(drawn=drawn) if drawn else NOTHING_DRAWN


ORDER = (
    "format", "name", "made", "publishable", "statistic", "guarantee", "meaning", "unit", "neighbours", "condition",
    "event", "price", "mechanism", "sensitivity", "grid", "numerical_delta", "noise_source", "computational",
    "intervals", "error", "price_of_privacy", "asked", "consistent", "public_totals", "schema", "theorems", "plan",
    "values", "ledger", "data", "versions",
)  # fmt: skip
"""The parts of every certificate, as they are written."""


def with_looks(guarantee: Guarantee, data: dict[str, Any]) -> Guarantee:
    """The guarantee with what the ledger knows against it: that somebody had seen the data before they declared."""
    looked = data.get("seen", ())
    return replace(guarantee, declared=(*guarantee.declared, *looked)) if looked else guarantee


def json_text(certificate: dict[str, Any]) -> str:
    """A certificate as text for people and programs: what steers a terminal is written as JSON's own escapes."""
    text = json.dumps(certificate, indent=2, ensure_ascii=False, allow_nan=False)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def _not_covered(planned: Planned) -> list[str]:
    *bounded, sampling = NOT_COVERED
    left_out = beyond_groups(planned.question)
    groups = [f"{left_out}, which were not used"] if left_out else []
    return [*bounded, *groups, *([] if planned.ask.sampling else [sampling])]


def _event(planned: Planned) -> Any:
    gamma, priors = gamma_of(planned.treatment), priors_of(planned.treatment)
    return [event_record(to_record(e), gamma, priors) for e in planned.treatment.events]


def _columns(planned: Planned) -> set[str]:
    """The declared columns that the statistic reads: its keys, what it adds up, and what its filters look at."""
    found: set[str] = set()
    for request in planned.question.requests:
        if isinstance(request, RowsWanted):
            found |= request.names
        found |= {axis.column for axis in request.axes}
        for one in request.aggregates:
            found |= set(one.present) | ({one.column} if isinstance(one, Steps | Squares) else set())
            found |= one.where.columns() if one.where is not None else frozenset()
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def versions() -> dict[str, str]:
    """What is installed here."""
    return dict(_version_items())


@cache
def _version_items() -> tuple[tuple[str, str], ...]:
    """Read once: the metadata of a package are a file to be parsed."""
    import tacit

    found = {"tacit": tacit.__version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return tuple(found.items())
