"""An entry of the public registry of DP deployments (OpenDP's), as YAML by the registry's schema.

Certificates and manifest fill the entry. A person adds at most six facts that no file has: the publisher, the
purpose, region and sector, the reasons for the choices, and the author of the entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import digits_up
from tacit.guarantees import Always, Guarantee, Neighbours, People
from tacit.guarantees.bounds import Approximate, Bound, Concentrated, GaussianDP, Pure, Renyi
from tacit.report.exports.published import PublishedFolder

SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
WIDTH = 96
READING_DELTA = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryAnswers:
    """The facts that a person gives. `sector` may stay empty; all other answers are required."""

    curator: str
    purpose: str
    region: str
    justification: str
    author: str
    sector: str = ""

    def __post_init__(self) -> None:
        asked = {"curator": self.curator, "purpose": self.purpose, "region": self.region,
                 "justification": self.justification, "author": self.author}  # fmt: skip
        missing = [f"--{name}" for name, text in asked.items() if not text.strip()]
        if missing:
            raise InvalidParameter(
                parameter="registry", value="an entry", must=f"have {', '.join(missing)}",
                hint="no certificate knows them: give a sentence for each",
            )  # fmt: skip
        for name, text in {**asked, "sector": self.sector}.items():
            if not text.isprintable() or len(text) > 2000:
                raise InvalidParameter(
                    parameter=f"--{name}", value=type(text).__name__, must="be one line of printable text"
                )
        if self.sector and self.sector not in SECTORS:
            raise UnknownName(what="sector", name=self.sector, known=SECTORS)


def registry_entry(folder: PublishedFolder, answers: RegistryAnswers) -> dict[str, Any]:
    """The entry as plain values, in the registry's order of fields."""
    promise = common_guarantee(folder)
    names = [t.title for t in folder.tables]
    basic: dict[str, Any] = {
        "name": folder.title,
        "data_curators": [answers.curator],
        "intended_use": answers.purpose,
        "data_product_type": folder.product,
        "data_product_region": answers.region,
        "description": _description(folder, names),
        "publication_date": folder.day,
    }
    if answers.sector:
        basic["data_product_sector"] = answers.sector
    slug = re.sub(r"[^a-z0-9]+", "-", f"{folder.title} {answers.curator} {folder.day[:4]}".lower()).strip("-")
    return {
        "url_slug": slug,
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": basic,
            "dp_variant": {
                "variant_name": variant(promise),
                "data_domain": _domain(folder),
                "unprotected_quantities": _unprotected(folder),
            },
            "privacy_loss": {
                "privacy_unit": _unit(promise),
                "privacy_unit_details": _neighbours(promise),
                **_parameters(promise),
                "privacy_parameters_details": _details(folder, promise),
            },
            "deployment_model": _model(folder),
            "accounting": {"post_processing": _processing(folder), "composition": _composition(folder)},
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": _declared(folder, promise),
                "mechanisms": _mechanisms(folder),
                "justification": answers.justification,
            },
            "administrative": {
                "sources": "The release with its certificates; see the files listed in manifest.json.",
                "notes": _notes(folder),
                "registry_authors": [answers.author],
            },
        },
    }


def registry_text(folder: PublishedFolder, answers: RegistryAnswers) -> str:
    """The entry as YAML."""
    return yaml_text(registry_entry(folder, answers))


def common_guarantee(folder: PublishedFolder) -> Guarantee:
    """The guarantee of all releases together: the plan's charge, for several holders under their common condition."""
    charge = folder.charge
    return replace(charge, condition=folder.tables[0].guarantee.condition) if folder.joint else charge


def in_words(bound: Bound) -> str:
    """The bound as a short phrase, its numbers rounded up to three digits: never less than the certified one."""
    if type(bound) not in (Pure, Approximate, Concentrated, GaussianDP):
        return str(bound)
    return " with ".join(f"{name} = {digits_up(float(value))}" for name, value in bound.parameters.items())


def variant(promise: Guarantee) -> str:
    """The registry's name of the variant. A condition other than "always", or mu, makes it a custom one."""
    if not isinstance(promise.condition, Always):
        return "Custom"
    names = {
        Pure: "Pure DP",
        Approximate: "Approximate DP",
        Concentrated: "Zero-concentrated DP",
        Renyi: "Renyi DP",
    }
    return names.get(type(promise.bound), "Custom")


def _description(folder: PublishedFolder, names: Sequence[str]) -> str:
    shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    made_up = " The people of the table are made up: this is a demonstration." if folder.made_up else ""
    period = f" Period: {folder.words.period}." if folder.words.period else ""
    noisy = {t.noisy for t in folder.tables}
    noise = " with noise" if noisy == {True} else ", published without noise under a condition"
    noise = ", some with noise and some without it under a condition" if len(noisy) == 2 else noise
    return f"{len(names)} {'table' if len(names) == 1 else 'tables'}{noise}: {shown}.{period}{made_up}"


def _domain(folder: PublishedFolder) -> str:
    columns: dict[str, Any] = {}
    for table in folder.tables:
        columns |= table.certificate.get("schema") or {}
    said = "; ".join(f"{name} ({_declared_as(about)})" for name, about in columns.items())
    return f"Tables whose columns have these declared types and bounds: {said}." if said else (
        "Tables with the declared columns; the certificates list them."
    )  # fmt: skip


def _declared_as(about: Any) -> str:
    if not isinstance(about, Mapping):
        return str(about)
    kind = str(about.get("type", "column"))
    if about.get("low") is not None and about.get("high") is not None:
        return f"{kind} from {about['low']} to {about['high']}"
    keys = about.get("keys")
    return f"{kind} with {len(keys)} values" if isinstance(keys, list) else kind


def _unprotected(folder: PublishedFolder) -> str:
    found = [f"{t.title}: public totals" for t in folder.tables if t.certificate.get("public_totals")]
    if common_guarantee(folder).unit.neighbours is Neighbours.REPLACE_ONE:
        found.append("the number of units in the table (replace-one neighbours leave it public)")
    declared = "the declared column names, types, bounds and lists of values"
    return "; ".join([*found, declared]) + "."


def _unit(promise: Guarantee) -> str:
    unit = promise.unit
    if isinstance(unit, People):
        return f"{unit.column}-level: a person with all their rows"
    return "Row-level" if type(unit).__name__ == "Rows" else promise.unit.noun


def _neighbours(promise: Guarantee) -> str:
    relation, unit = promise.unit.neighbours, promise.unit
    text = f"Two tables are neighbours ({relation.value}) if they differ in {unit.noun}, {relation.verb}."
    if isinstance(promise.unit, People):
        text += f" At most {promise.unit.at_most} rows of one {promise.unit.column} are used."
    return text


def _parameters(promise: Guarantee) -> dict[str, Any]:
    bound = promise.bound
    found: dict[str, Any] = {}
    if isinstance(bound, Pure | Approximate):
        found["epsilon"] = float(bound.epsilon)
    if isinstance(bound, Approximate):
        found["delta"] = float(bound.delta)
    if isinstance(bound, Concentrated):
        found["rho"] = float(bound.rho)
    if isinstance(bound, GaussianDP | Renyi):
        found |= {"epsilon": float(bound.epsilon_at(READING_DELTA)), "delta": READING_DELTA}
    return {"privacy_parameters": found} if found else {}


def _details(folder: PublishedFolder, promise: Guarantee) -> str:
    bound = promise.bound
    said = [f"The certified bound of all releases together is {in_words(bound)}."]
    if isinstance(bound, GaussianDP):
        said.append(
            "The variant is Gaussian DP: no test tells two neighbours apart better than it tells "
            f"N(0, 1) from N({bound.mu!r}, 1). Epsilon and delta above are one point of its curve."
        )
    if isinstance(bound, Renyi):
        said.append("Epsilon and delta above are one point that follows from the Renyi bounds.")
    if not isinstance(promise.condition, Always):
        said.append(f"This is not differential privacy without a condition: it holds {promise.condition}.")
    elif folder.conditional:
        said.append("Some releases hold only under a condition; their certificates state it.")
    said += (
        [f"{t.title}: {in_words(t.guarantee.bound)}." for t in folder.tables]
        if len(folder.tables) > 1
        else []
    )
    return " ".join(said)


def _model(folder: PublishedFolder) -> dict[str, str]:
    found = {"model_name": "Federated" if folder.joint else "Central"}
    if folder.joint:
        found["model_name_details"] = (
            "Several holders added their shares of the noise; an aggregator saw masked sums only."
        )
    holder = (
        "Each holder keeps its own rows and runs tacit; an aggregator adds up."
        if folder.joint
        else "The custodian holds the table and runs tacit."
    )
    found["actors"] = (
        f"{holder} Readers see the published files only. "
        "Nothing is promised against somebody who can read the machine where rows lie."
    )
    version = str(folder.first["data"].get("version") or "")
    found |= {
        "release_type": "One release",
        "release_type_details": (
            "One plan, charged by each holder to a ledger of its own."
            if folder.joint
            else "One plan, charged once to a ledger that belongs to the table. Every later release of the same table "
            "is charged to the same ledger, under a total that was fixed before."
        ),
        "data_source_type": "Static",
        "access_type": "Non-interactive",
    }
    if version:
        found["data_source_type_details"] = f"Version {version} of the table."
    return found


def _processing(folder: PublishedFolder) -> str:
    consistent = any(t.certificate.get("consistent") for t in folder.tables)
    said = "Values are made of noisy sums and counts without reading the table again."
    return said + (
        " Tables were made consistent with each other where the plan asks for it." if consistent else ""
    )


def _composition(folder: PublishedFolder) -> str:
    by = folder.first["plan"].get("charged_by") or "one release"
    return (
        f"The releases of the plan are composed by the rule {by!r}, computed with certified upper bounds; "
        "the ledger adds up all charges of the table."
    )


def _declared(folder: PublishedFolder, promise: Guarantee) -> str:
    looks = [s for t in folder.tables for s in t.certificate["data"].get("seen", [])]
    said = ["Bounds, lists of categories and prices are declared, not read from the data. Categories that were not"
            " declared come out by a threshold that is part of the price."]  # fmt: skip
    said += [f"The ledger knows that {one}." for one in dict.fromkeys(looks)]
    said += [f"Declared and not checked: {one}." for one in promise.declared]
    conditions = dict.fromkeys(c for t in folder.tables for c in t.certificate["data"].get("conditions", []))
    return " ".join([*said, *(f"Declared and not checked: {c}." for c in conditions)])


def _mechanisms(folder: PublishedFolder) -> str:
    noises: dict[str, list[str]] = {}
    for table in folder.tables:
        noises.setdefault(table.noise, []).append(table.title)
    versions = folder.first.get("versions", {})
    engine = folder.first["data"].get("engine", "")
    said = [f"{noise}: {', '.join(names)}." for noise, names in noises.items()]
    said.append(
        f"Implemented by tacit {versions.get('tacit', '')} (Python {versions.get('python', '')}"
        + (f", rows read by {engine}" if engine else "")
        + ")."
    )
    said += [*exactness(folder), str(folder.first["computational"])]
    said.append(
        "Errors and their texts do not depend on the rows. Timing, memory and the engine's logs are not covered."
    )
    return " ".join(said)


def exactness(folder: PublishedFolder) -> list[str]:
    """The gap between the proof and the computer's arithmetic: none, or a counted probability."""
    if not any(t.noisy for t in folder.tables):
        return []
    cost = max(float(t.certificate.get("numerical_delta") or 0.0) for t in folder.tables)
    if cost == 0:
        return [
            "Sums are integers on a public grid and the noise is drawn exactly on it: no floating-point error."
        ]
    return [
        f"Continuous noise is rounded to a public grid; its cost is counted (numerical delta {digits_up(cost)})."
    ]


def _notes(folder: PublishedFolder) -> str:
    found = [f"Correction: {c}." for c in folder.corrections]
    if folder.signed_by:
        found.append(f"Signed by the key with fingerprint {folder.signed_by}.")
    found.append(f"Plan digest {folder.first['plan']['digest']}.")
    return " ".join(found)


# --- YAML ------------------------------------------------------------------------------------------------
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 _.,()/+-]*[A-Za-z0-9.)]|[A-Za-z]")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def yaml_text(value: Mapping[str, Any], indent: int = 0) -> str:
    """YAML in block style, for a table of texts, numbers, lists of texts and inner tables."""
    pad, lines = "  " * indent, []
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            lines += [f"{pad}{key}:", yaml_text(inner, indent + 1).rstrip("\n")]
        elif isinstance(inner, list):
            lines += [f"{pad}{key}:", *(f"{pad}  - {_scalar(one)}" for one in inner)]
        elif isinstance(inner, str) and len(inner) > WIDTH:
            lines += [f"{pad}{key}: >-", *(f"{pad}  {line}" for line in _folded(inner))]
        else:
            lines.append(f"{pad}{key}: {_scalar(inner)}")
    return "\n".join(lines) + "\n"


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS and "  " not in value
        return value if plain else json.dumps(value, ensure_ascii=False)
    text = repr(value)
    return re.sub(r"^(-?\d+)e", r"\1.0e", text)


def _folded(text: str) -> list[str]:
    """Lines of a folded block: cut at single blanks, none beginning with one, so that reading gives the text back."""
    lines, line = [], ""
    for word in re.sub(r"\s+", " ", text).strip().split(" "):
        if line and len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]
