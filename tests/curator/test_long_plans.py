"""Certificates of a long plan have the number of its releases and the digest of their names; the manifest has the list.

It proves what a list in each of them proved: no certificate of the plan is missing, and none was added.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.audit.claims import opinion_on_charge
from tacit.cli import main
from tacit.curator import curator as room
from tacit.curator.certificate import LISTED, bound, by_digest, json_text
from tacit.curator.verifying import verify_release
from tacit.exact.canonical import sha256
from tacit.report.exports.published import read_folder

PLAN = """
[data]
path = "table.parquet"
[protect]
unit = "rows"
[ledger]
path = "table.ledger"
[budget]
rho = 100.0
[schema.age]
kind = "integer"
low = 0
high = 100
"""


def plan(folder: Path, releases: int) -> Path:
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"age": [i % 97 for i in range(1_000)]}), folder / "table.parquet")
    asked = [
        f'[[release]]\nname = "q {i}"\nkind = "count"\nwhere = "age > {i % 90}"\nrho = 0.01\n'
        for i in range(releases)
    ]
    (folder / "plan.toml").write_text(PLAN + "".join(asked))
    return folder / "plan.toml"


def released(folder: Path, releases: int) -> Path:
    assert main(["release", str(plan(folder, releases)), "--out", str(folder / "out")]) == 0
    return folder / "out"


def certificates(out: Path) -> dict[str, dict[str, Any]]:
    return {p.name: json.loads(p.read_text()) for p in sorted((out / "certificates").iterdir())}


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(tmp_path_factory.mktemp("long"), LISTED + 1)


def test_certificates_of_a_long_plan_name_its_releases_by_digest(long: Path) -> None:
    names = [f"q {i}" for i in range(LISTED + 1)]
    assert all(c["plan"]["releases"] == by_digest(names) for c in certificates(long).values())
    assert by_digest(names)["number"] == LISTED + 1
    assert json.loads((long / "manifest.json").read_text())["releases"] == names
    ledger = str(long.parent / "table.ledger")
    assert verify_release(long).ok
    assert verify_release(long, ledger=ledger).ok
    assert main(["verify", str(long), "--ledger", ledger]) == 0
    assert [t.name for t in read_folder(long).tables] == names  # in the plan's order


def test_a_plan_that_is_not_long_lists_them(tmp_path: Path) -> None:
    out = released(tmp_path, 3)
    assert all(c["plan"]["releases"] == ["q 0", "q 1", "q 2"] for c in certificates(out).values())
    assert "releases" not in json.loads((out / "manifest.json").read_text())


def manifest(out: Path, **changed: Any) -> None:
    """The manifest, written anew with other words and its own digest."""
    said = json.loads((out / "manifest.json").read_text())
    (out / "manifest.json").write_text(json_text(bound({**said, **changed})) + "\n")


def wrong(out: Path, word: str = "") -> set[str]:
    return {f.what for f in verify_release(out).findings if f.holds is False and word in f.what}


def test_a_missing_certificate_is_noticed(long: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(long, out)
    files = json.loads((out / "manifest.json").read_text())["files"]
    for name in [n for n in files if "q-7." in n]:
        (out / name).unlink()
        del files[name]
    manifest(out, files=files)
    assert len(wrong(out, "every release that")) == LISTED
    names = [f"q {i}" for i in range(LISTED + 1) if i != 7]
    manifest(out, releases=names)
    assert len(wrong(out, "every release that")) == LISTED
    # Certificates that were forged to fit are another plan's than that of plan.toml.
    for path in sorted((out / "certificates").iterdir()):
        said = json.loads(path.read_text())
        said["plan"]["releases"] = by_digest(names)
        path.write_text(json_text(bound(said)) + "\n")
        files[f"certificates/{path.name}"] = sha256(path.read_bytes())
    manifest(out, files=files)
    assert not wrong(out, "every release that")
    assert len(wrong(out, "claims what plan.toml gives")) == LISTED


@pytest.mark.parametrize("names", [None, [], ["q 0"], "q 0", [1, 2], {"q 0": 1}])
def test_another_list_in_the_manifest_is_noticed(long: Path, tmp_path: Path, names: Any) -> None:
    out = tmp_path / "out"
    shutil.copytree(long, out)
    manifest(out, releases=names)
    assert len(wrong(out, "every release that")) == LISTED + 1


def test_the_second_opinion_counts_certificates(long: Path) -> None:
    every = list(certificates(long).values())
    assert opinion_on_charge(every).confirmed
    assert opinion_on_charge(every[1:]).why == "1 of its certificates are not there"
    twice = [every[0], *every[:-1]]
    assert not opinion_on_charge(twice).confirmed
    for number in (float(len(every)), str(len(every)), None):  # a number that is none is not compared
        said = {**every[0]["plan"]["releases"], "number": number}
        odd = [{**c, "plan": {**c["plan"], "releases": said}} for c in every]
        assert opinion_on_charge(odd).why == "1 of its certificates are not there"


def test_an_answer_recorded_with_a_list_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay gives the certificates that the first answer gave, by which version it was made."""
    with monkeypatch.context() as earlier:
        earlier.setattr(room, "form_of_names", lambda plan: {})
        first = certificates(released(tmp_path, LISTED + 1))
    assert len(first["q-0.json"]["plan"]["releases"]) == LISTED + 1
    again = tmp_path / "again"
    assert main(["release", str(tmp_path / "plan.toml"), "--out", str(again)]) == 0
    assert certificates(again) == first
    assert verify_release(again, ledger=str(tmp_path / "table.ledger")).ok
