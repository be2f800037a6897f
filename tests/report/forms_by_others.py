"""`make forms`: exports the demo and gives every form to validators of others, in an environment of their own.

The shapes for DCAT-AP are ours: the mandatory properties of its release 3 (its own shapes are not in a registry).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHAPES = """
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix dcat: <http://www.w3.org/ns/dcat#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix foaf: <http://xmlns.com/foaf/0.1/> .
@prefix spdx: <http://spdx.org/rdf/terms#> .
[] a sh:NodeShape ; sh:targetClass dcat:Catalog ;
  sh:property [ sh:path dct:title ; sh:minCount 1 ] ; sh:property [ sh:path dct:description ; sh:minCount 1 ] ;
  sh:property [ sh:path dct:publisher ; sh:minCount 1 ; sh:maxCount 1 ; sh:class foaf:Agent ] ;
  sh:property [ sh:path dcat:dataset ; sh:minCount 1 ; sh:class dcat:Dataset ] .
[] a sh:NodeShape ; sh:targetClass dcat:Dataset ;
  sh:property [ sh:path dct:title ; sh:minCount 1 ] ; sh:property [ sh:path dct:description ; sh:minCount 1 ] ;
  sh:property [ sh:path dcat:distribution ; sh:minCount 1 ; sh:class dcat:Distribution ] ;
  sh:property [ sh:path dct:accessRights ; sh:maxCount 1 ; sh:nodeKind sh:IRI ] .
[] a sh:NodeShape ; sh:targetClass dcat:Distribution ;
  sh:property [ sh:path dcat:accessURL ; sh:minCount 1 ; sh:nodeKind sh:IRI ] ;
  sh:property [ sh:path spdx:checksum ; sh:minCount 1 ; sh:maxCount 1 ] .
[] a sh:NodeShape ; sh:targetClass foaf:Agent ; sh:property [ sh:path foaf:name ; sh:minCount 1 ] .
"""
CHECK = r"""
import sys, warnings, glob, os
warnings.simplefilter("ignore")
top, shapes, schema = sys.argv[1:4]
import yaml, jsonschema
if os.path.exists(schema):
    entry = yaml.safe_load(open(f"{top}/demo-registry.yaml"))
    jsonschema.validate(entry, yaml.safe_load(open(schema)), format_checker=jsonschema.FormatChecker())
    print("registry: valid by the published schema")
else:
    print("registry: the published schema is not here")
import rdflib, pyshacl
graph = rdflib.Graph().parse(f"{top}/demo-dcat.jsonld")
holds, _, text = pyshacl.validate(graph, shacl_graph=rdflib.Graph().parse(data=shapes, format="turtle"))
assert holds, text
print("dcat:", len(graph), "triples, the mandatory properties of DCAT-AP are there")
import mlcroissant
dataset = mlcroissant.Dataset(jsonld=f"{top}/demo-croissant.json")
assert not dataset.metadata.ctx.issues.errors, dataset.metadata.ctx.issues.errors
rows = sum(sum(1 for _ in dataset.records(one.uuid)) for one in dataset.metadata.record_sets)
print("croissant: valid,", rows, "records read")
import frictionless
frictionless.system.trusted = True
report = frictionless.validate(f"{top}/demo-datapackage.json")
assert report.valid, report
print("datapackage: valid,", len(report.tasks), "resources")
import sdmx
message = sdmx.read_sdmx(f"{top}/demo-sdmx/structure.xml")
from pysdmx.io import get_datasets, read_sdmx
read_sdmx(f"{top}/demo-sdmx/structure.xml")
flows = set(message.dataflow)
read = 0
for name in sorted(glob.glob(f"{top}/demo-sdmx/*.csv")):
    if open(name).read().split("\n")[1].split(",")[1].split(":")[1].split("(")[0] in flows:
        read += len(get_datasets(name, f"{top}/demo-sdmx/structure.xml")[0].data)
print("sdmx:", len(flows), "dataflows by sdmx1 and, against the XML schema, by pysdmx;", read, "observations read")
"""


def main(python: str) -> None:
    """Exports into a scratch folder and runs the checks there."""
    from tacit.cli import main as tacit

    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch)
        assert tacit(["demo", "--out", str(top / "demo"), "--people", "20000"]) == 0
        asked = {
            "curator": "Office",
            "purpose": "To show it",
            "region": "Nowhere",
            "justification": "Enough",
            "author": "A",
        }
        words = [w for name, text in asked.items() for w in (f"--{name}", text)]
        for kind, more in {
            "registry": words,
            "dcat": ["--url", "https://example.org/demo"],
            "croissant": [],
            "datapackage": [],
            "sdmx": [],
        }.items():
            assert tacit(["export", kind, str(top / "demo"), *more]) == 0
        schema = ROOT.parent / "shared" / "data" / "registry" / "deployments-schema.yaml"
        subprocess.run([python, "-c", CHECK, str(top), SHAPES, str(schema)], check=True)


if __name__ == "__main__":
    main(sys.argv[1])
