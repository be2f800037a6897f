"""The forms of others, filled from a release folder: registry, evaluation, label, catalogues, SDMX, signed bundle."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import shutil
import subprocess
import tarfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
import yaml

from tacit.cli import main
from tacit.curator.certificate import SigningKey, make_key
from tacit.errors import InvalidParameter, UnknownName
from tacit.report.exports import verify_bundle
from tacit.report.exports.bundle import bundle_bytes
from tacit.report.exports.catalogues import CatalogueWords, croissant, datapackage, dcat
from tacit.report.exports.evaluation import MET, NOT_MET, OTHERS, evaluation, evaluation_page
from tacit.report.exports.label import LANGUAGES, label_page, label_picture, label_snippet, label_text
from tacit.report.exports.published import PublishedFolder, read_folder
from tacit.report.exports.registry import RegistryAnswers, registry_entry, registry_text, yaml_text
from tacit.report.exports.structures import sdmx_files, structure_text

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT.parent / "shared" / "data" / "registry" / "deployments-schema.yaml"
PLAN = """
[data]
path = "visits.csv"
[protect]
unit = "people"
column = "id"
at_most = 2
[budget]
epsilon = 1.0
delta = 1e-6
[spend]
epsilon = 0.75
[schema.region]
kind = "category"
keys = ["North <b>", "South, inner", "=1+1"]
[schema.cost]
kind = "number"
low = 0
high = 100
[report]
title = "Visits: a <b>test</b>"
publisher = "Office of Visits"
contact = "visits@example.org"
period = "2024"
[[release]]
name = "visits by region"
kind = "count"
by = ["region"]
[[release]]
name = "mean cost"
kind = "mean"
column = "cost"
rows = 60
"""
ANSWERED = ["--purpose", "b", "--region", "c", "--justification", "d", "--author", "e"]
ANSWERS = RegistryAnswers(
    curator="Office", purpose="Planning: beds, \"nurses\"", region="Nowhere", justification="It is enough.",
    author="A. Person", sector="Healthcare",
)  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, a plan, a key, a ledger and a release."""
    top = tmp_path_factory.mktemp("forms")
    rows = [f"{i // 2},{['North <b>', 'South, inner', '=1+1'][i % 3]},{i % 90}" for i in range(60)]
    quoted = [",".join([a, f'"{b}"' if "," in b else b, c]) for a, b, c in (r.split(",") if r.count(",") == 2 else
              (r.split(",")[0], "South, inner", r.split(",")[-1]) for r in rows)]  # fmt: skip
    (top / "visits.csv").write_text("id,region,cost\n" + "\n".join(quoted) + "\n")
    (top / "plan.toml").write_text(PLAN)
    make_key(top / "office.key")
    assert (
        main(
            ["release", str(top / "plan.toml"), "--out", str(top / "out"), "--sign", str(top / "office.key")]
        )
        == 0
    )
    return top


@pytest.fixture(scope="module")
def folder(place: Path) -> PublishedFolder:
    return read_folder(place / "out")


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Releases of an earlier version: under priors, on random data, joint, with functions, withdrawn."""
    top = tmp_path_factory.mktemp("golden")
    places = {
        "exact_table": "out", "random_data": "out", "joint": "mail/release", "functions": "out", "desk": "wrong",
    }  # fmt: skip
    found = {}
    for name, inner in places.items():
        with tarfile.open(ROOT / "tests" / "golden" / "0.1.0" / f"{name}.tar.xz") as held:
            held.extractall(top / name, filter="data")
        found[name] = top / name / inner
    return found


def ledger_of(place: Path) -> str:
    return str(next(p for p in place.iterdir() if p.name.endswith(".ledger")))


# --- the registry ------------------------------------------------------------------------------------------
def wrong(schema: Any, value: Any, at: str = "") -> list[str]:
    """What a value breaks of a JSON schema, as far as the registry's schema goes."""
    kinds = {"object": dict, "string": str, "integer": int, "number": (int, float), "array": list}
    asked = schema.get("type")
    names = asked if isinstance(asked, list) else [asked] if asked else []
    if names and not any(isinstance(value, kinds[n]) and not isinstance(value, bool) for n in names):
        return [f"{at}: not {asked}"]
    found = [f"{at}: {value!r} is not listed"] if "enum" in schema and value not in schema["enum"] else []
    if isinstance(value, dict):
        known = schema.get("properties", {})
        found += [f"{at}.{n}: missing" for n in schema.get("required", []) if n not in value]
        found += (
            [f"{at}.{n}: unknown" for n in value if n not in known]
            if schema.get("additionalProperties") is False
            else []
        )
        for name, inner in value.items():
            found += wrong(known.get(name, {}), inner, f"{at}.{name}")
    if isinstance(value, list):
        found += [f"{at}: too few"] if len(value) < schema.get("minItems", 0) else []
        for inner in value:
            found += wrong(schema.get("items", {}), inner, f"{at}[]")
    return found


def test_an_entry_states_the_certified_charge_and_reads_back(folder: PublishedFolder) -> None:
    entry = registry_entry(folder, ANSWERS)
    assert yaml.safe_load(registry_text(folder, ANSWERS)) == entry
    loss = entry["deployment"]["privacy_loss"]
    charge = json.loads((folder.place / "certificates" / "mean-cost.json").read_text())["plan"]["charge"]
    assert loss["privacy_parameters"]["epsilon"] == charge["bound"]["epsilon"]
    assert "add-or-remove" in loss["privacy_unit_details"]
    assert "At most 2 rows" in loss["privacy_unit_details"]
    assert entry["deployment"]["basic"]["data_product_type"] == "Summary statistics"
    assert "TODO" not in registry_text(folder, ANSWERS)
    assert entry["deployment"]["dp_variant"]["variant_name"] == {
        "pure": "Pure DP", "approximate": "Approximate DP", "gaussian": "Custom",
    }[charge["bound"]["kind"]]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "no: really",
        "# not a comment",
        "a: b",
        "- item",
        "1.5",
        "",
        "x" * 300 + " : y",
        "ends with:",
        "é",
    ],
)
def test_any_text_survives_the_yaml(text: str) -> None:
    held = {"top": {"one": text, "list": [text, "other"]}, "number": 5e-07, "whole": 3}
    assert yaml.safe_load(yaml_text(held)) == held


def test_entries_satisfy_the_published_schema(folder: PublishedFolder, golden: dict[str, Path]) -> None:
    if not SCHEMA.exists():
        pytest.skip("the registry's schema is in ../shared/data/registry, which is not here")
    schema = yaml.safe_load(SCHEMA.read_text())
    for one in (folder, *map(read_folder, golden.values())):
        entry = yaml.safe_load(registry_text(one, ANSWERS))
        assert wrong(schema, entry) == []
    broken = registry_entry(folder, ANSWERS)
    broken["deployment"]["basic"].pop("publication_date")
    broken["deployment"]["dp_variant"]["variant_name"] = "Gaussian DP"
    assert len(wrong(schema, broken)) == 2


def test_what_holds_under_a_condition_is_a_custom_variant_and_says_so(golden: dict[str, Path]) -> None:
    for name, words in (("exact_table", "random sample"), ("random_data", "except with probability 0.1")):
        entry = registry_entry(read_folder(golden[name]), ANSWERS)["deployment"]
        assert entry["dp_variant"]["variant_name"] == "Custom"
        assert (
            "not differential privacy without a condition"
            in entry["privacy_loss"]["privacy_parameters_details"]
        )
        assert words in entry["privacy_loss"]["privacy_parameters_details"]
    joint = registry_entry(read_folder(golden["joint"]), ANSWERS)["deployment"]
    assert joint["deployment_model"]["model_name"] == "Federated"
    assert joint["dp_variant"]["variant_name"] == "Custom"
    exact = registry_entry(read_folder(golden["exact_table"]), ANSWERS)["deployment"]
    assert "without noise" in exact["basic"]["description"]
    assert "noise is drawn" not in exact["implementation"]["mechanisms"]


def test_a_later_withdrawal_is_known_from_the_ledger_alone(golden: dict[str, Path]) -> None:
    ledger = str(golden["desk"].parent / "survey.ledger")
    assert read_folder(golden["desk"]).corrections == ()
    known = read_folder(golden["desk"], ledger=ledger)
    assert len(known.corrections) == 1
    assert known.corrections[0] in registry_entry(known, ANSWERS)["deployment"]["administrative"]["notes"]
    assert any(p.finding == NOT_MET and known.corrections[0] in p.answer for p in evaluation(known))
    assert any(known.corrections[0] in w for w in label_text(known).warnings)


@pytest.mark.parametrize("missing", ["curator", "purpose", "region", "justification", "author"])
def test_what_nobody_said_is_asked_for(missing: str) -> None:
    given = {"curator": "a", "purpose": "b", "region": "c", "justification": "d", "author": "e", missing: " "}
    with pytest.raises(InvalidParameter, match=f"--{missing}"):
        RegistryAnswers(**given)


# --- the evaluation ----------------------------------------------------------------------------------------
def test_no_point_is_answered_by_silence(folder: PublishedFolder, golden: dict[str, Path]) -> None:
    for one in (folder, *map(read_folder, golden.values())):
        points = evaluation(one)
        assert {p.level for p in points} == {0, 1, 2}
        assert len({p.asked for p in points}) == len(points) >= 24
        assert {p.finding for p in points} <= {MET, NOT_MET, OTHERS}
        assert all(p.answer.strip() and p.evidence.strip() for p in points)


def finding(folder: PublishedFolder, word: str) -> str:
    return next(p.finding for p in evaluation(folder) if word in p.asked)


def test_findings_follow_the_certificate(folder: PublishedFolder, golden: dict[str, Path]) -> None:
    assert finding(folder, "person with all their data") == MET
    assert finding(folder, "whatever an adversary knows") == MET
    assert finding(folder, "Presence in the table") == MET
    assert finding(folder, "who made the release") == MET
    functions = read_folder(golden["functions"])
    assert finding(functions, "person with all their data") == NOT_MET
    assert finding(functions, "Presence in the table") == NOT_MET
    assert finding(functions, "who made the release") == NOT_MET
    for name in ("exact_table", "random_data", "joint"):
        assert finding(read_folder(golden[name]), "whatever an adversary knows") == NOT_MET


def test_the_page_escapes_what_others_wrote(folder: PublishedFolder) -> None:
    for page in (evaluation_page(folder), label_page(folder), label_snippet(folder, "de")):
        assert "<b>test</b>" not in page
        assert "&lt;b&gt;test" in page
        assert "<script" not in page
        assert "http://" not in page.replace("http://www.w3.org", "")


# --- the label ---------------------------------------------------------------------------------------------
def test_the_label_rounds_the_best_guess_up_in_both_languages(folder: PublishedFolder) -> None:
    guess = folder.charge.best_guess()
    shown = math.ceil(round(1000 * guess, 6)) / 10
    assert shown >= 100 * guess
    english, german = (dict(label_text(folder, one).parts) for one in LANGUAGES)
    assert f"{shown:g}%" in english["What it can reveal at most"]
    assert f"{shown:g} %".replace(".", ",") in german["Was es höchstens verraten kann"]
    assert "Office of Visits, visits@example.org" in english["Who answers for it"]
    assert list(map(len, (english, german))) == [7, 7]
    with pytest.raises(UnknownName):
        label_text(folder, "xx")


def test_a_conditional_release_promises_no_guess(golden: dict[str, Path]) -> None:
    for name in ("exact_table", "random_data"):
        said = dict(label_text(read_folder(golden[name])).parts)["What it can reveal at most"]
        assert "No limit for one given person" in said
        assert "not differential privacy without a condition" in said


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_picture_leaves_its_margin_free(folder: PublishedFolder, language: str) -> None:
    pixels = matplotlib.image.imread(io.BytesIO(label_picture(folder, language)))
    assert pixels.shape[1] == 1080
    inner = pixels[20:-20, -50:-20, :3]
    assert np.all(inner == 1.0)
    assert np.any(pixels[20:-20, 60:-60, :3] < 0.5)


# --- catalogues --------------------------------------------------------------------------------------------
def test_catalogues_name_files_digests_and_columns(folder: PublishedFolder) -> None:
    words = CatalogueWords(base="out", licence="https://example.org/licence")
    package, kernel = datapackage(folder, words), croissant(folder, words)
    graph = dcat(folder, CatalogueWords(base="https://example.org/visits"))["@graph"]
    assert [d["@type"] for d in graph] == ["dcat:Catalog", "foaf:Agent", "dcat:Dataset", "dcat:Dataset"]
    for table, resource, file, records, dataset in zip(
        folder.tables,
        package["resources"],
        kernel["distribution"],
        kernel["recordSet"],
        graph[2:],
        strict=True,
    ):
        body = (folder.place / "values" / f"{table.stem}.csv").read_bytes()
        digest = hashlib.sha256(body).hexdigest()
        heads = next(csv.reader(io.StringIO(body.decode())))
        assert resource["hash"] == f"sha256:{digest}"
        assert resource["bytes"] == len(body)
        assert [f["name"] for f in resource["schema"]["fields"]] == heads
        assert (folder.place.parent / resource["path"]).exists()
        assert file["sha256"] == digest
        assert [f["source"]["extract"]["column"] for f in records["field"]] == heads
        one = next(d for d in dataset["dcat:distribution"] if d["dcat:downloadURL"]["@id"].endswith(".csv"))
        assert one["spdx:checksum"]["spdx:checksumValue"]["@value"] == digest
        assert one["dcat:accessURL"]["@id"] == f"https://example.org/visits/values/{table.stem}.csv"
        assert dataset["dct:provenance"]["rdfs:label"]["@value"] == table.certificate["meaning"]
    assert package["contributors"] == [{"title": "Office of Visits", "role": "publisher"}]
    with pytest.raises(InvalidParameter, match="--licence"):
        CatalogueWords(licence="CC BY")
    with pytest.raises(InvalidParameter, match="--url"):
        CatalogueWords(base="ftp://example.org")


def test_structures_describe_the_csv_files(folder: PublishedFolder) -> None:
    files = sdmx_files(folder)
    assert sorted(files) == ["mean-cost.csv", "structure.xml", "visits-by-region.csv"]
    tree = ElementTree.fromstring(files["structure.xml"].decode())
    space = "{http://www.sdmx.org/resources/sdmxml/schemas/v2_1/structure}"
    flows = {f.get("id") for f in tree.iter(f"{space}Dataflow")}
    assert flows == {"VISITS-BY-REGION", "MEAN-COST"}
    rows = list(csv.reader(io.StringIO(files["visits-by-region.csv"].decode())))
    assert rows[1][1] == "TACIT:VISITS-BY-REGION(1.0)"
    lists = {
        c.get("id"): {x.get("id") for x in c.iter(f"{space}Code")} for c in tree.iter(f"{space}Codelist")
    }
    assert lists["CL_VISITS-BY-REGION_REGION"] == {row[3] for row in rows[1:]}
    assert {d.get("id") for d in tree.iter(f"{space}Dimension")} == {"REGION"}
    assert len(list(tree.iter(f"{space}TimeDimension"))) == 2
    attributes = {a.get("id") for a in tree.iter(f"{space}Attribute")}
    assert attributes == {"OBS_STATUS", "CONF_LOW", "CONF_HIGH", "CONF_LEVEL", "QUALITY"}


def test_a_release_without_a_cell_has_a_structure_without_codes(folder: PublishedFolder) -> None:
    head = sdmx_files(folder)["visits-by-region.csv"].decode().split("\n")[0] + "\n"
    tree = ElementTree.fromstring(
        structure_text({"visits-by-region": ("Visits", head)}, prepared="2026-01-01")
    )
    space = "{http://www.sdmx.org/resources/sdmxml/schemas/v2_1/structure}"
    assert [f.get("id") for f in tree.iter(f"{space}Dataflow")] == ["VISITS-BY-REGION"]
    found = next(c for c in tree.iter(f"{space}Codelist") if c.get("id") == "CL_VISITS-BY-REGION_REGION")
    assert list(found.iter(f"{space}Code")) == []


def test_a_joint_release_has_no_sdmx_and_no_bundle(golden: dict[str, Path], place: Path) -> None:
    joint = read_folder(golden["joint"])
    with pytest.raises(InvalidParameter, match="one custodian"):
        sdmx_files(joint)
    with pytest.raises(InvalidParameter, match="joint verify"):
        bundle_bytes(joint, ledger=ledger_of(place), key=SigningKey.read(place / "office.key"))


# --- what a reader could take for more than was certified ---------------------------------------------------
ODD = """
[data]
path = "t.csv"
[protect]
unit = "rows"
[budget]
epsilon = 2.0
[spend]
epsilon = 1.0049
[schema.code]
kind = "category"
keys = ["01", "02"]
[schema.odd]
kind = "category"
keys = ["nan", "inf", "\\uFFFE"]
[[release]]
name = "a.b"
kind = "count"
by = ["code"]
[[release]]
name = "a b"
kind = "count"
by = ["odd"]
"""


def test_odd_keys_and_long_numbers_are_said_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(ODD)
    (tmp_path / "t.csv").write_text("code,odd\n01,nan\n02,inf\n")
    assert main(["release", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "out")]) == 0
    odd = read_folder(tmp_path / "out")
    assert [t.columns[0].type for t in odd.tables] == ["string", "string"]
    package = datapackage(odd, CatalogueWords(base="out"))
    assert [r["schema"]["missingValues"] for r in package["resources"]] == [[""], [""]]
    assert len({r["name"] for r in package["resources"]}) == 2
    ElementTree.fromstring(sdmx_files(odd)["structure.xml"].decode())
    texts = [
        dict(label_text(odd).parts)["In numbers"], evaluation(odd)[0].answer, evaluation(odd)[1].answer,
        registry_entry(odd, ANSWERS)["deployment"]["privacy_loss"]["privacy_parameters_details"],
        package["description"],
    ]  # fmt: skip
    for text in texts:
        assert "1.01" in text, text
        assert "psilon = 1 " not in text, text


def test_a_condition_goes_with_every_number(golden: dict[str, Path]) -> None:
    exact, random = read_folder(golden["exact_table"]), read_folder(golden["random_data"])
    for one in (exact, random):
        assert "only under the assumption" in dict(label_text(one).parts)["In numbers"]
        assert all("under the condition" in p.answer for p in evaluation(one)[:3])
        assert finding(one, "Presence in the table") == NOT_MET
        assert "only" in sdmx_files(exact)["structure.xml"].decode()
    assert finding(random, "Delta is at most") == NOT_MET
    assert "0.1 over the data" in evaluation(random)[2].answer
    assert "without noise" in exact.tables[0].columns[-4].about
    joint = registry_entry(read_folder(golden["joint"]), ANSWERS)["deployment"]["deployment_model"]
    assert "custodian" not in joint["actors"]
    assert "ledger of its own" in joint["release_type_details"]


def test_a_curve_has_no_delta_of_zero(folder: PublishedFolder) -> None:
    from dataclasses import replace

    from tacit.guarantees.bounds import Concentrated, GaussianDP
    from tacit.guarantees.guarantee import to_record

    for bound in (Concentrated(rho=0.5), GaussianDP(mu=1.5)):
        first = dict(folder.first)
        first["plan"] = {**first["plan"], "charge": to_record(replace(folder.charge, bound=bound))}
        tables = (replace(folder.tables[0], certificate=first), *folder.tables[1:])
        said = evaluation(replace(folder, tables=tables))[2].answer
        assert "Delta is 0" not in said
        assert "every epsilon has a delta above 0" in said


def test_sdmx_structures_say_that_a_release_was_withdrawn(golden: dict[str, Path]) -> None:
    known = read_folder(golden["desk"], ledger=str(golden["desk"].parent / "survey.ledger"))
    text = sdmx_files(known)["structure.xml"].decode()
    assert known.words.period or "Dataflow " not in text or "withdrawn" in text
    csv_text = "STRUCTURE,STRUCTURE_ID,ACTION,REGION,Region,OBS_VALUE\n"
    assert "it was withdrawn" in structure_text(
        {"x": ("X", csv_text)}, prepared="2026-01-01", about="it was withdrawn"
    )


# --- the bundle --------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def bundle(place: Path, folder: PublishedFolder) -> tuple[bytes, str]:
    key = SigningKey.read(place / "office.key")
    return bundle_bytes(folder, ledger=ledger_of(place), key=key), key.public.fingerprint


def test_a_bundle_holds_and_names_its_anchor(bundle: tuple[bytes, str], place: Path) -> None:
    data, key = bundle
    assert verify_bundle.problems(data, key)[0] == []
    assert len(Path(verify_bundle.__file__).read_text().splitlines()) <= 300
    (place / "b.zip").write_bytes(data)
    shutil.copy(verify_bundle.__file__, place / "checker.py")
    import sys

    run = subprocess.run(
        [sys.executable, "-I", str(place / "checker.py"), str(place / "b.zip"), key],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0
    assert "all holds" in run.stdout
    assert "anchor of the ledger" in run.stdout
    assert verify_bundle.main(["one"]) == 2
    assert verify_bundle.main([str(place / "none.zip"), key]) == 2
    assert verify_bundle.main([str(place / "b.zip"), "0" * 64]) == 1


def test_every_changed_byte_is_noticed(bundle: tuple[bytes, str]) -> None:
    data, key = bundle
    files = verify_bundle.unpack(data)
    assert verify_bundle.pack(files) == data
    edges = {0, len(data) - 1}
    for body in files.values():
        at = data.index(body)
        edges |= {at, at + len(body) - 1, at - 1, at + len(body)}
    step = max(1, len(data) // 1500)
    for at in sorted(edges | set(range(0, len(data), step)) | set(range(len(data) - 400, len(data)))):
        changed = bytearray(data)
        changed[at] ^= 0x01
        assert verify_bundle.problems(bytes(changed), key)[0], at


def test_every_changed_file_is_noticed_in_an_archive_written_anew(bundle: tuple[bytes, str]) -> None:
    data, key = bundle
    files = verify_bundle.unpack(data)
    for name, body in files.items():
        for at in {0, len(body) // 2, len(body) - 1}:
            changed = bytearray(body)
            changed[at] ^= 0x01
            assert verify_bundle.problems(verify_bundle.pack({**files, name: bytes(changed)}), key)[0], name
        assert verify_bundle.problems(verify_bundle.pack({n: b for n, b in files.items() if n != name}), key)[
            0
        ]
    assert verify_bundle.problems(verify_bundle.pack({**files, "more": b"x"}), key)[0]
    assert verify_bundle.problems(data + b" ", key)[0]
    assert verify_bundle.problems(b"", key)[0]


def again(place: Path, files: dict[str, bytes], change: Any) -> tuple[bytes, str]:
    """The bundle after a change of its content, with digests and signature redone by the same key."""
    key = SigningKey.read(place / "office.key")
    held = json.loads(files[verify_bundle.CONTENT])
    rest = {n: b for n, b in files.items() if n != verify_bundle.CONTENT}
    change(held, rest)
    held["files"] = {n: hashlib.sha256(b).hexdigest() for n, b in rest.items()}
    held.pop("signature")
    held["digest"] = verify_bundle.content_digest(held)
    held["signature"] = key.sign(verify_bundle.FORMAT, held["digest"])
    body = (verify_bundle.canonical(held) + "\n").encode()
    return verify_bundle.pack({**rest, verify_bundle.CONTENT: body}), key.public.fingerprint


def test_what_the_key_signs_must_hang_together(bundle: tuple[bytes, str], place: Path) -> None:
    files = verify_bundle.unpack(bundle[0])
    assert verify_bundle.problems(*again(place, files, lambda held, rest: None))[0] == []

    def other_values(held: Any, rest: Any) -> None:
        rest["release/values/mean-cost.csv"] += b"1,2,3,good\n"

    def other_entry(held: Any, rest: Any) -> None:
        held["ledger"]["entries"][0]["content"] += " "

    def no_entry(held: Any, rest: Any) -> None:
        held["ledger"]["entries"] = held["ledger"]["entries"][1:]

    def no_answer(held: Any, rest: Any) -> None:
        held["ledger"]["entries"] = held["ledger"]["entries"][:1]

    def other_number(held: Any, rest: Any) -> None:
        held["ledger"]["entries"][1]["sequence"] = 7

    def other_charge(held: Any, rest: Any) -> None:
        name = "release/certificates/mean-cost.json"
        said = json.loads(rest[name])
        said["plan"]["charge"]["bound"]["epsilon"] = 0.01
        said["digest"] = verify_bundle.content_digest(said)
        rest[name] = json.dumps(said).encode()
        listed = json.loads(rest["release/manifest.json"])
        listed["files"]["certificates/mean-cost.json"] = hashlib.sha256(rest[name]).hexdigest()
        listed["digest"] = verify_bundle.content_digest(listed)
        rest["release/manifest.json"] = json.dumps(listed).encode()

    for change, words in (
        (other_values, "is not the file of the manifest"), (other_entry, "was changed"),
        (no_entry, "the entry of the charge is missing"), (no_answer, "recorded answer"),
        (other_number, "another number"), (other_charge, "states another charge"),
    ):  # fmt: skip
        found = verify_bundle.problems(*again(place, files, change))[0]
        assert any(words in one for one in found), (change.__name__, found)


def entry(held: Any, at: int, **change: Any) -> dict[str, Any]:
    """One entry of a bundle with other words, its digest redone."""
    content = verify_bundle.canonical({**json.loads(held["ledger"]["entries"][at]["content"]), **change})
    digest = hashlib.sha256(content.encode()).hexdigest()
    return {"sequence": json.loads(content)["sequence"], "digest": digest, "content": content}


def test_entries_are_of_this_charge_once_each_and_under_the_anchor(
    bundle: tuple[bytes, str], place: Path
) -> None:
    files = verify_bundle.unpack(bundle[0])

    def old_anchor(held: Any, rest: Any) -> None:
        held["ledger"]["anchor"] = "1:" + held["ledger"]["entries"][0]["digest"]

    def made_up_anchor(held: Any, rest: Any) -> None:
        held["ledger"]["anchor"] = f"{held['ledger']['entries'][-1]['sequence']}:{'0' * 64}"

    def other_ledger(held: Any, rest: Any) -> None:
        held["ledger"]["id"] = "0" * 32

    def twice(held: Any, rest: Any) -> None:
        held["ledger"]["entries"].append(held["ledger"]["entries"][0])

    def foreign(held: Any, rest: Any) -> None:
        held["ledger"]["entries"].append(entry(held, 0, sequence=9))
        held["ledger"]["anchor"] = "10:" + "0" * 64

    def unlinked(held: Any, rest: Any) -> None:
        held["ledger"]["entries"][1] = entry(held, 1, previous="0" * 64)
        held["ledger"]["anchor"] = "10:" + "0" * 64

    def repeated_key(held: Any, rest: Any) -> None:
        one = held["ledger"]["entries"][1]
        one["content"] = '{"kind":"other",' + one["content"][1:]
        one["digest"] = hashlib.sha256(one["content"].encode()).hexdigest()
        held["ledger"]["anchor"] = "10:" + "0" * 64

    for change, words in (
        (old_anchor, "not under the anchor"), (made_up_anchor, "not under the anchor"),
        (other_ledger, "another ledger"), (twice, "occurs twice"), (foreign, "another charge"),
        (unlinked, "does not follow"), (repeated_key, "cannot be read"),
    ):  # fmt: skip
        found = verify_bundle.problems(*again(place, files, change))[0]
        assert any(words in one for one in found), (change.__name__, found)


def test_a_signed_release_is_read_in_one_way_only(bundle: tuple[bytes, str], place: Path) -> None:
    files = verify_bundle.unpack(bundle[0])
    manifest, name = "release/manifest.json", "certificates/mean-cost.json"

    def relist(rest: Any) -> None:
        said = json.loads(rest[manifest])
        said["files"][name] = hashlib.sha256(rest["release/" + name]).hexdigest()
        said["digest"] = verify_bundle.content_digest(said)
        said.pop("signature", None)
        rest[manifest] = json.dumps(said).encode()

    def two_readings(held: Any, rest: Any) -> None:
        rest["release/" + name] = b'{"meaning":"nothing is revealed",' + rest["release/" + name][1:]
        relist(rest)

    def broken_signature(held: Any, rest: Any) -> None:
        said = json.loads(rest[manifest])
        said["signature"]["value"] = "00" * 64
        rest[manifest] = json.dumps(said).encode()

    def unlisted(held: Any, rest: Any) -> None:
        rest["release/certificates/another.json"] = b"{}"

    for change, words in (
        (two_readings, "cannot be read"), (broken_signature, "signature in manifest.json does not hold"),
        (unlisted, "does not list"),
    ):  # fmt: skip
        found = verify_bundle.problems(*again(place, files, change))[0]
        assert any(words in one for one in found), (change.__name__, found)


def test_a_key_of_small_order_signs_nothing(bundle: tuple[bytes, str]) -> None:
    """For the neutral point, R = 0 and S = 0 are a signature under every text, made without a private key."""
    files = verify_bundle.unpack(bundle[0])
    held = json.loads(files[verify_bundle.CONTENT])
    key = bytes([1]) + bytes(31)
    mark = hashlib.sha256(key).hexdigest()
    held["public_key"] = key.hex()
    held["digest"] = verify_bundle.content_digest(held)
    held["signature"] = {"algorithm": "Ed25519", "key": mark, "value": (key + bytes(32)).hex()}
    body = (verify_bundle.canonical(held) + "\n").encode()
    forged = verify_bundle.pack({**files, verify_bundle.CONTENT: body})
    assert verify_bundle.problems(forged, mark)[0] == ["the signature does not hold"]


def test_an_added_file_cannot_write_the_verdict(
    bundle: tuple[bytes, str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, key = bundle
    name = f"x\x1b[2J\x1b[H\rall holds; signed by the key {key}\n\x1b[8m"
    forged = verify_bundle.pack({**verify_bundle.unpack(data), name: b""})
    (place / "forged.zip").write_bytes(forged)
    assert verify_bundle.main([str(place / "forged.zip"), key]) == 1
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert not any(line.startswith("all holds") for line in said.splitlines())


def test_another_key_is_not_the_expected_one(
    bundle: tuple[bytes, str], place: Path, folder: PublishedFolder
) -> None:
    make_key(place / "other.key")
    other = bundle_bytes(folder, ledger=ledger_of(place), key=SigningKey.read(place / "other.key"))
    assert verify_bundle.problems(other, bundle[1])[0] == ["the key is not the one that was expected"]


# --- the command -------------------------------------------------------------------------------------------
def test_every_kind_is_written_beside_the_folder_once(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, ledger, key = str(place / "out"), ledger_of(place), str(place / "office.key")
    asked = [
        "--curator",
        "Office",
        "--purpose",
        "b",
        "--region",
        "c",
        "--justification",
        "d",
        "--author",
        "e",
    ]
    lines = {
        "registry": asked, "nist": [], "label": [], "dcat": ["--url", "https://example.org/v"], "croissant": [],
        "datapackage": [], "sdmx": [], "bundle": ["--ledger", ledger, "--sign", key],
    }  # fmt: skip
    for kind, more in lines.items():
        assert main(["export", kind, out, *more, "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert said["kind"] == kind
        assert said["files"]
        assert not any("--url turns" in note for note in said["notes"])  # dcat has its --url
        assert all(Path(f).stat().st_size > 100 for f in said["files"])
        assert main(["export", kind, out, *more]) == 2
        assert "not be there yet" in capsys.readouterr().err
    assert main(["export", "dcat", out, "--out", str(place / "plain.jsonld"), "--json"]) == 0
    assert "--url turns" in json.loads(capsys.readouterr().out)["notes"][0]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["nist", "nowhere"], "no such folder"),
        (["nist", "."], "no manifest.json"),
        (["registry", "out"], "--purpose, --region, --justification, --author"),
        (["registry", "out", *ANSWERED, "--sector", "Farms"], "unknown sector"),
        (["dcat", "out", "--url", "example org"], "--url"),
        (["dcat", "out", "--licence", "free"], "--licence"),
        (["croissant", "out", "--out", "elsewhere/c.json"], "beside or above DIR"),
        (["nist", "out", "--ledger", "other.ledger"], "be the ledger that was charged"),
        (["bundle", "out", "--ledger", "other.ledger", "--sign", "office.key"], "be the ledger that was charged"),
    ],
)  # fmt: skip
def test_refusals_write_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    line: list[str], words: str,
) -> None:  # fmt: skip
    shutil.copytree(place / "out", tmp_path / "out")
    shutil.copy(place / "office.key", tmp_path / "office.key")
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "visits.csv").write_text("id,region,cost\n1,=1+1,5\n")
    monkeypatch.chdir(tmp_path)
    if "other.ledger" in line:
        assert main(["ledger", "make", "plan.toml"]) == 0
        shutil.move(ledger_of(tmp_path), "other.ledger")
    before = sorted(tmp_path.rglob("*"))
    capsys.readouterr()
    assert main(["export", *line]) == 2
    assert words in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "name", ["values/mean-cost.csv", "certificates/mean-cost.json", "report.html", "manifest.json"]
)
def test_a_changed_folder_fills_no_form(place: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(place / "out", tmp_path / "out")
    file = tmp_path / "out" / name
    file.write_bytes(file.read_bytes().replace(b"0", b"1", 1))
    with pytest.raises(InvalidParameter, match="tacit verify"):
        read_folder(tmp_path / "out")


# --- other languages ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("program", "file"),
    [("node", "read_release.mjs"), ("Rscript", "read_release.R"), ("julia", "read_release.jl")],
)
def test_the_examples_of_other_languages_read_a_release(place: Path, program: str, file: str) -> None:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed here")
    run = subprocess.run(
        [found, str(ROOT / "examples" / file), str(place / "out"), "visits by region"],
        capture_output=True,
        text=True,
    )
    if program != "node" and (
        "there is no package" in run.stderr or "not found in current path" in run.stderr
    ):
        pytest.skip(f"{program} has not the packages that the example names")
    assert run.returncode == 0, run.stderr
    assert "3" in run.stdout
    assert "0.95" in run.stdout
    if program == "node":
        said = json.loads(run.stdout)
        assert said["rows"] == 3
        assert said["first"]["region"] == "North <b>"
