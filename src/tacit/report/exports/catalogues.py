"""Metadata for catalogues: DCAT-AP for data portals, Croissant for machine learning, a frictionless data package.

Each is a function of a folder and of public words. `base` is the address, or the path from the metadata file, under
which the files of the folder can be found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from tacit.errors import InvalidParameter
from tacit.exact.data_classes import dataclass
from tacit.report.exports.published import NUMBERS, PublishedFolder, PublishedTable
from tacit.report.exports.registry import common_guarantee, in_words

EU = "http://publications.europa.eu/resource/authority"
MEDIA = {".csv": "text/csv", ".parquet": "application/vnd.apache.parquet", ".json": "application/json"}
NO_NUMBER = ("", "nan", "inf", "-inf")
_ADDRESS = re.compile(r"https?://[^\s<>\"{}|\\^`]+|urn:[a-z0-9][a-z0-9-]*:[^\s<>\"{}|\\^`]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueWords:
    """The catalogue's fields beside the release: the address of the folder, a licence, a publisher."""

    base: str = ""
    licence: str = ""
    publisher: str = ""

    def __post_init__(self) -> None:
        if self.licence:
            address("--licence", self.licence)
        if ":" in self.base:
            address("--url", self.base)

    def file(self, name: str) -> str:
        """The address or the path of a file of the folder."""
        base = self.base if ":" in self.base else quote(self.base)
        return f"{base.rstrip('/')}/{quote(name)}" if base else quote(name)


def address(parameter: str, text: str) -> str:
    """An address on the web, or a URN."""
    if not _ADDRESS.fullmatch(text):
        raise InvalidParameter(
            parameter=parameter, value=text, must="be an address such as https://example.org/"
        )
    return text


def sentences(folder: PublishedFolder) -> str:
    """The privacy fields of every catalogue: the promise, its unit and condition, and the content of intervals."""
    promise = common_guarantee(folder)
    said = [
        f"Published with a privacy guarantee: {in_words(promise.bound)}{str(promise).removeprefix(str(promise.bound))}."
    ]
    if folder.made_up:
        said.append("The people of the table are made up.")
    said += [f"Correction: {c}." for c in folder.corrections]
    said.append("Columns low and high are the ends of intervals for the noise.")
    return " ".join(said)


def describe(folder: PublishedFolder) -> str:
    """A description in two or three sentences."""
    names = ", ".join(t.title for t in folder.tables)
    return f"{folder.title}: {names}. {sentences(folder)}"


# --- DCAT-AP -----------------------------------------------------------------------------------------------
def dcat(folder: PublishedFolder, words: CatalogueWords) -> dict[str, Any]:
    """A DCAT-AP 3 dataset for each release and a catalogue around them, as JSON-LD."""
    base = words.base or f"urn:tacit:{folder.first['plan']['digest']}"
    words = CatalogueWords(base=base, licence=words.licence, publisher=words.publisher)
    publisher = words.publisher or folder.words.publisher or "The custodian of the table"
    agent = {
        "@id": f"{base}#publisher",
        "@type": "foaf:Agent",
        "foaf:name": {"@value": publisher, "@language": "en"},
    }
    datasets = [_dcat_dataset(folder, table, words) for table in folder.tables]
    catalogue = {
        "@id": f"{base}#catalogue", "@type": "dcat:Catalog",
        "dct:title": {"@value": folder.title, "@language": "en"},
        "dct:description": {"@value": describe(folder), "@language": "en"},
        "dct:publisher": {"@id": agent["@id"]},
        "dct:issued": {"@value": folder.day, "@type": "xsd:date"},
        "dcat:dataset": [{"@id": one["@id"]} for one in datasets],
    }  # fmt: skip
    context = {
        "dcat": "http://www.w3.org/ns/dcat#", "dct": "http://purl.org/dc/terms/", "foaf": "http://xmlns.com/foaf/0.1/",
        "spdx": "http://spdx.org/rdf/terms#", "vcard": "http://www.w3.org/2006/vcard/ns#",
        "xsd": "http://www.w3.org/2001/XMLSchema#", "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    }  # fmt: skip
    return {"@context": context, "@graph": [catalogue, agent, *datasets]}


def _dcat_dataset(folder: PublishedFolder, table: PublishedTable, words: CatalogueWords) -> dict[str, Any]:
    id = f"{words.base.rstrip('/')}#{quote(table.stem)}"
    found: dict[str, Any] = {
        "@id": id, "@type": "dcat:Dataset",
        "dct:title": {"@value": table.title, "@language": "en"},
        "dct:description": {"@value": f"{table.title}. {sentences(folder)}", "@language": "en"},
        "dct:identifier": f"{folder.first['plan']['digest']}/{table.name}",
        "dct:publisher": {"@id": f"{words.base}#publisher"},
        "dct:issued": {"@value": folder.day, "@type": "xsd:date"},
        "dct:accessRights": {"@id": f"{EU}/access-right/PUBLIC"},
        "dct:provenance": {
            "@type": "dct:ProvenanceStatement",
            "rdfs:label": {"@value": str(table.certificate["meaning"]), "@language": "en"},
        },
        "dcat:distribution": [
            _distribution(folder, table, name, words) for name in _files(folder, table) if not name.endswith(".json")
        ],
        "dcat:landingPage": {"@id": words.file("report.html"), "@type": "foaf:Document"},
        "dct:conformsTo": {
            "@id": words.file(f"certificates/{table.stem}.json"), "@type": "dct:Standard",
            "dct:title": {"@value": "certificate of the privacy guarantee", "@language": "en"},
        },
    }  # fmt: skip
    if "report.html" not in folder.files:
        del found["dcat:landingPage"]
    if folder.words.contact:
        contact = {"@type": "vcard:Organization", "vcard:fn": folder.words.contact}
        if "@" in folder.words.contact and " " not in folder.words.contact:
            contact["vcard:hasEmail"] = {"@id": f"mailto:{folder.words.contact}"}  # type: ignore[assignment]
        found["dcat:contactPoint"] = contact
    year = re.fullmatch(r"(\d{4})", folder.words.period)
    if year:
        found["dct:temporal"] = {
            "@type": "dct:PeriodOfTime",
            "dcat:startDate": {"@value": f"{year[1]}-01-01", "@type": "xsd:date"},
            "dcat:endDate": {"@value": f"{year[1]}-12-31", "@type": "xsd:date"},
        }
    return found


def _distribution(
    folder: PublishedFolder, table: PublishedTable, name: str, words: CatalogueWords
) -> dict[str, Any]:
    ending = PurePosixPath(name).suffix
    found: dict[str, Any] = {
        "@type": "dcat:Distribution",
        "dct:title": {"@value": PurePosixPath(name).name, "@language": "en"},
        "dcat:accessURL": {"@id": words.file(name)},
        "dcat:downloadURL": {"@id": words.file(name)},
        "dcat:mediaType": {"@id": f"http://www.iana.org/assignments/media-types/{MEDIA[ending]}"},
        "dct:format": {"@id": f"{EU}/file-type/{ending[1:].upper()}"},
        "dcat:byteSize": {"@value": str((folder.place / name).stat().st_size), "@type": "xsd:nonNegativeInteger"},
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {"@id": "http://spdx.org/rdf/terms#checksumAlgorithm_sha256"},
            "spdx:checksumValue": {"@value": folder.files[name], "@type": "xsd:hexBinary"},
        },
    }  # fmt: skip
    if words.licence:
        found["dct:license"] = {"@id": words.licence, "@type": "dct:LicenseDocument"}
    return found


def _files(folder: PublishedFolder, table: PublishedTable) -> list[str]:
    wanted = (
        f"rows/{table.stem}.csv",
        f"values/{table.stem}.csv",
        f"values/{table.stem}.parquet",
        f"certificates/{table.stem}.json",
    )
    return [name for name in wanted if name in folder.files]


# --- Croissant ---------------------------------------------------------------------------------------------
CROISSANT_CONTEXT: dict[str, Any] = {
    "@language": "en", "@vocab": "https://schema.org/", "citeAs": "cr:citeAs", "column": "cr:column",
    "conformsTo": "dct:conformsTo", "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"}, "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/", "examples": {"@id": "cr:examples", "@type": "@json"}, "extract": "cr:extract",
    "field": "cr:field", "fileObject": "cr:fileObject", "fileProperty": "cr:fileProperty", "fileSet": "cr:fileSet",
    "format": "cr:format", "includes": "cr:includes", "isLiveDataset": "cr:isLiveDataset", "jsonPath": "cr:jsonPath",
    "key": "cr:key", "md5": "cr:md5", "parentField": "cr:parentField", "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/", "recordSet": "cr:recordSet", "references": "cr:references",
    "regex": "cr:regex", "repeated": "cr:repeated", "replace": "cr:replace", "sc": "https://schema.org/",
    "separator": "cr:separator", "source": "cr:source", "subField": "cr:subField", "transform": "cr:transform",
}  # fmt: skip
CROISSANT_TYPES = {"string": "sc:Text", "integer": "sc:Integer", "number": "sc:Float"}


def croissant(folder: PublishedFolder, words: CatalogueWords) -> dict[str, Any]:
    """The release as a Croissant 1.0 dataset: a file and a record set for each table."""
    publisher = words.publisher or folder.words.publisher
    found: dict[str, Any] = {
        "@context": CROISSANT_CONTEXT, "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": _slug(folder.title), "description": describe(folder),
        "url": words.base if "://" in words.base else f"urn:tacit:{folder.first['plan']['digest']}",
        "datePublished": folder.day, "version": "1.0.0", "inLanguage": "en",
        "citeAs": f"{publisher or folder.title}, {folder.title}, {folder.day}",
        "isLiveDataset": False,
        "rai:dataReleaseMaintenancePlan": "A ledger adds up what all releases of the table may reveal.",
        "rai:personalSensitiveInformation": sentences(folder),
        "rai:dataLimitations": "Intervals do not cover " + "; ".join(folder.first["intervals"]["do_not_cover"]) + ".",
    }  # fmt: skip
    if words.licence:
        found["license"] = words.licence
    if publisher:
        found["creator"] = {"@type": "sc:Organization", "name": publisher}
    found["distribution"] = [
        {
            "@type": "cr:FileObject", "@id": name, "name": name, "contentUrl": words.file(name),
            "contentSize": f"{(folder.place / name).stat().st_size} B", "encodingFormat": "text/csv",
            "sha256": folder.files[name],
        }
        for name in (f"values/{t.stem}.csv" for t in folder.tables)
    ]  # fmt: skip
    found["recordSet"] = [_record_set(t) for t in folder.tables]
    return found


def _record_set(table: PublishedTable) -> dict[str, Any]:
    id = table.stem
    fields = [
        {
            "@type": "cr:Field", "@id": f"{id}/{c.name}", "name": c.name, "description": c.about or c.label,
            "dataType": CROISSANT_TYPES["number" if c.name in NUMBERS else c.type],
            "source": {"fileObject": {"@id": f"values/{table.stem}.csv"}, "extract": {"column": c.name}},
        }
        for c in table.columns
    ]  # fmt: skip
    return {
        "@type": "cr:RecordSet", "@id": id, "name": id, "description": f"{table.title}. {table.certificate['meaning']}",
        "field": fields,
    }  # fmt: skip


# --- frictionless ------------------------------------------------------------------------------------------
def datapackage(folder: PublishedFolder, words: CatalogueWords) -> dict[str, Any]:
    """A frictionless data package: a resource with a table schema for each table."""
    names: list[str] = []
    for table in folder.tables:  # "a.b" and "a b" have one slug
        slug = _slug(table.stem)
        names.append(slug if slug not in names else f"{slug}-{len(names) + 1}")
    found: dict[str, Any] = {
        "profile": "tabular-data-package", "name": _slug(folder.title), "title": folder.title,
        "description": describe(folder), "created": str(folder.first["made"]),
        "resources": [{**_resource(folder, t, words), "name": n} for n, t in zip(names, folder.tables, strict=True)],
    }  # fmt: skip
    publisher = words.publisher or folder.words.publisher
    if publisher:
        found["contributors"] = [{"title": publisher, "role": "publisher"}]
    if words.licence:
        found["licenses"] = [{"path": words.licence}]
    return found


def _resource(folder: PublishedFolder, table: PublishedTable, words: CatalogueWords) -> dict[str, Any]:
    name = f"values/{table.stem}.csv"
    fields = []
    for column in table.columns:
        kind = "number" if column.name in NUMBERS and column.type != "string" else column.type
        one: dict[str, Any] = {"name": column.name, "type": kind, "title": column.label}
        if column.about:
            one["description"] = column.about
        fields.append(one)
    numbers = {r[i] for r in table.rows for i, c in enumerate(table.columns) if c.name in NUMBERS}
    missing = [text for text in NO_NUMBER if not text or text in numbers]
    schema: dict[str, Any] = {"fields": fields, "missingValues": missing}
    held = {r[i] for r in table.rows for i, c in enumerate(table.columns) if c.is_key}
    if table.keys and not held & set(missing):
        schema["primaryKey"] = [c.name for c in table.keys]
    return {
        "profile": "tabular-data-resource", "name": _slug(table.stem), "title": table.title,
        "description": str(table.certificate["meaning"]), "path": words.file(name), "scheme": "file", "format": "csv",
        "mediatype": "text/csv", "encoding": "utf-8", "bytes": (folder.place / name).stat().st_size,
        "hash": f"sha256:{folder.files[name]}",
        "dialect": {"delimiter": ",", "lineTerminator": "\n", "header": True, "doubleQuote": True},
        "schema": schema,
    }  # fmt: skip


def _slug(text: str) -> str:
    """A name of small letters, digits, - and _, as catalogues take it."""
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-") or "release"


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """JSON for people and programs."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
