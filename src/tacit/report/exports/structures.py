"""SDMX structure messages beside SDMX-CSV: code lists, concepts, a data structure and a dataflow for each release.

SDMX-ML 2.1. The structures are read off the CSV text itself, so that ids, codes and names cannot differ from it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from xml.sax.saxutils import escape, quoteattr

from tacit.errors import InvalidParameter
from tacit.report.exports.catalogues import sentences
from tacit.report.exports.published import PublishedFolder
from tacit.report.exports.tables import AGENCY, TAKEN, id_of, sdmx_text

_MES = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message"
_STR = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/structure"
_COM = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/common"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
MEASURE = "OBS_VALUE"
NUMERIC = ("CONF_LOW", "CONF_HIGH", "CONF_LEVEL")
NAMES = {
    "OBS_VALUE": "Observed value", "OBS_STATUS": "Observation status",
    "CONF_LOW": "Lower end of the interval",
    "CONF_HIGH": "Upper end of the interval", "CONF_LEVEL": "Confidence level", "QUALITY": "Quality",
    "COMMENT_OBS": "Comment", "TIME_PERIOD": "Time period",
}  # fmt: skip
STATUS = {"A": "Normal value", "U": "Low reliability", "O": "Missing value"}


def structure_text(flows: Mapping[str, tuple[str, str]], *, prepared: str, about: str = "") -> str:
    """One message for all dataflows: {stem of the file: (title, SDMX-CSV text)}; `prepared` is a day.

    `about` is the common description of every dataflow: its guarantee, its condition, a withdrawal.

    SDMX has no data structure without a dimension, so that a release of a single number without a period has none.
    """
    lists, schemes, structures, dataflows = [], [], [], []
    said = f'<com:Description xml:lang="en">{_text(about)}</com:Description>' if about else ""
    for stem, (title, text) in flows.items():
        rows = list(csv.reader(io.StringIO(text)))
        heads, body = rows[0], rows[1:]
        flow = body[0][1].split(":", 1)[1].partition("(")[0] if body else id_of(stem)
        held = [h for h in heads if h in TAKEN and h not in ("STRUCTURE", "STRUCTURE_ID", "ACTION")]
        keys = _keys(heads)
        if not keys and "TIME_PERIOD" not in held:
            continue
        for at, id in keys:
            pairs = {row[at]: row[at + 1] for row in body}
            lists.append(_codelist(f"CL_{flow}_{id}", heads[at + 1], pairs))
        concepts = {id: heads[at + 1] for at, id in keys} | {h: NAMES[h] for h in held}
        schemes.append(_scheme(f"CS_{flow}", title, concepts))
        structures.append(_structure(flow, title, [id for _, id in keys], held))
        dataflows.append(
            f'<str:Dataflow id={quoteattr(flow)} agencyID="{AGENCY}" version="1.0">{_name(title)}{said}<str:Structure>'
            f'<Ref id={quoteattr("DSD_" + flow)} version="1.0" agencyID="{AGENCY}" package="datastructure" '
            'class="DataStructure"/></str:Structure></str:Dataflow>'
        )
    lists.append(_codelist("CL_OBS_STATUS", "Observation status", STATUS))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<mes:Structure xmlns:mes="{_MES}" xmlns:str="{_STR}" xmlns:com="{_COM}">\n'
        f"<mes:Header><mes:ID>TACIT</mes:ID><mes:Test>false</mes:Test><mes:Prepared>{escape(prepared)}T00:00:00</mes:Prepared>"
        f'<mes:Sender id="{AGENCY}"/></mes:Header>\n<mes:Structures>\n'
        f"<str:Dataflows>{''.join(dataflows)}</str:Dataflows>\n<str:Codelists>{''.join(lists)}</str:Codelists>\n"
        f"<str:Concepts>{''.join(schemes)}</str:Concepts>\n"
        f"<str:DataStructures>{''.join(structures)}</str:DataStructures>\n</mes:Structures>\n</mes:Structure>\n"
    )


def _keys(heads: list[str]) -> list[tuple[int, str]]:
    """The dimensions: between the first three columns and the first that is no key, a code and its name in turn."""
    found, at = [], 3
    while heads[at] not in TAKEN:
        found.append((at, heads[at]))
        at += 2
    return found


def _text(text: str) -> str:
    """A text for XML, which has no signs such as U+FFFE: they become the sign for a missing one."""
    return escape(_NOT_XML.sub("\ufffd", text))


def _name(text: str) -> str:
    return f'<com:Name xml:lang="en">{_text(text) or "-"}</com:Name>'


def _codelist(id: str, title: str, codes: Mapping[str, str]) -> str:
    inner = "".join(
        f"<str:Code id={quoteattr(code)}>{_name(name)}</str:Code>" for code, name in codes.items()
    )
    return f'<str:Codelist id={quoteattr(id)} agencyID="{AGENCY}" version="1.0">{_name(title)}{inner}</str:Codelist>'


def _scheme(id: str, title: str, concepts: Mapping[str, str]) -> str:
    inner = "".join(
        f"<str:Concept id={quoteattr(c)}>{_name(name)}</str:Concept>" for c, name in concepts.items()
    )
    head = f'<str:ConceptScheme id={quoteattr(id)} agencyID="{AGENCY}" version="1.0">{_name(title)}'
    return f"{head}{inner}</str:ConceptScheme>"


def _concept(flow: str, id: str) -> str:
    return (
        f"<str:ConceptIdentity><Ref id={quoteattr(id)} maintainableParentID={quoteattr('CS_' + flow)} "
        f'maintainableParentVersion="1.0" agencyID="{AGENCY}" package="conceptscheme" class="Concept"/>'
        "</str:ConceptIdentity>"
    )


def _coded(list_id: str) -> str:
    return (
        f'<str:LocalRepresentation><str:Enumeration><Ref id={quoteattr(list_id)} version="1.0" agencyID="{AGENCY}" '
        'package="codelist" class="Codelist"/></str:Enumeration></str:LocalRepresentation>'
    )


def _text_type(kind: str) -> str:
    return f'<str:LocalRepresentation><str:TextFormat textType="{kind}"/></str:LocalRepresentation>'


def _structure(flow: str, title: str, keys: list[str], held: list[str]) -> str:
    dimensions = [
        f'<str:Dimension id={quoteattr(id)} position="{at}">{_concept(flow, id)}'
        f"{_coded(f'CL_{flow}_{id}')}</str:Dimension>"
        for at, id in enumerate(keys, 1)
    ]
    if "TIME_PERIOD" in held:
        dimensions.append(
            f'<str:TimeDimension id="TIME_PERIOD" position="{len(keys) + 1}">{_concept(flow, "TIME_PERIOD")}'
            f"{_text_type('ObservationalTimePeriod')}</str:TimeDimension>"
        )
    attributes = []
    for id in held:
        if id in (MEASURE, "TIME_PERIOD"):
            continue
        form = (
            _coded("CL_OBS_STATUS")
            if id == "OBS_STATUS"
            else _text_type("Double" if id in NUMERIC else "String")
        )
        attributes.append(
            f'<str:Attribute id="{id}" assignmentStatus="Conditional">{_concept(flow, id)}{form}'
            "<str:AttributeRelationship><str:PrimaryMeasure><Ref "
            f'id="{MEASURE}"/></str:PrimaryMeasure></str:AttributeRelationship></str:Attribute>'
        )
    return (
        f'<str:DataStructure id={quoteattr("DSD_" + flow)} agencyID="{AGENCY}" version="1.0">{_name(title)}'
        '<str:DataStructureComponents><str:DimensionList id="DimensionDescriptor">'
        f'{"".join(dimensions)}</str:DimensionList><str:AttributeList id="AttributeDescriptor">{"".join(attributes)}'
        '</str:AttributeList><str:MeasureList id="MeasureDescriptor">'
        f'<str:PrimaryMeasure id="{MEASURE}">{_concept(flow, MEASURE)}{_text_type("Double")}</str:PrimaryMeasure>'
        "</str:MeasureList></str:DataStructureComponents></str:DataStructure>"
    )


def sdmx_files(folder: PublishedFolder) -> dict[str, bytes]:
    """SDMX-CSV for every release, and one structure message; the CSV files are those of the folder if it has them."""
    flows: dict[str, tuple[str, str]] = {}
    if all(f"sdmx/{t.stem}.csv" in folder.files for t in folder.tables):
        for table in folder.tables:
            flows[table.stem] = (
                table.title,
                (folder.place / "sdmx" / f"{table.stem}.csv").read_bytes().decode(),
            )
    elif folder.joint:
        raise InvalidParameter(
            parameter="DIR", value=str(folder.place), must="be the release of one custodian",
            hint="SDMX files of a joint release are not made; its values are in values/",
        )  # fmt: skip
    else:
        from tacit.report.verifying import certified_releases

        file, releases = certified_releases(folder.place)
        titles = {t.name: t for t in folder.tables}
        for one in releases:
            table = titles[one.name]
            flows[table.stem] = (table.title, sdmx_text(one, file.words))
    found = {f"{stem}.csv": text.encode() for stem, (_, text) in flows.items()}
    return {
        **found,
        "structure.xml": structure_text(flows, prepared=folder.day, about=sentences(folder)).encode(),
    }
