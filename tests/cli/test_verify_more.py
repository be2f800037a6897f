"""`tacit verify`: words that were added, and what plan and page say beside the certificates."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.cli import main
from tacit.curator.certificate import bound
from tacit.exact.canonical import sha256

PLAN = """
[data]
path = "t.parquet"
table = "visits"
version = "2026"
[protect]
unit = "rows"
[schema.state]
kind = "category"
keys = ["CA", "NY"]
[budget]
epsilon = 4.0
analyst = "ada"
[[release]]
kind = "count"
name = "by state"
by = "state"
epsilon = 0.25
"""
CERTIFICATE = "certificates/by-state.json"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    pq.write_table(pa.table({"state": ["CA", "NY"] * 300}), folder / "t.parquet")
    (folder / "plan.toml").write_text(PLAN)
    assert main(["release", str(folder / "plan.toml"), "--out", str(folder / "out")]) == 0
    return folder


def findings(
    capsys: pytest.CaptureFixture[str], folder: Path, *more: object
) -> tuple[int, list[dict[str, Any]]]:
    capsys.readouterr()
    code = main(["verify", str(folder), *map(str, more), "--json"])
    return code, json.loads(capsys.readouterr().out)["findings"]


def bind(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    said = json.loads(path.read_text())
    change(said)
    path.write_text(json.dumps(bound(said)))


def forged(made: Path, folder: Path, change: Callable[[Path], object]) -> Path:
    """A copy that was changed, with every digest made anew."""
    shutil.copytree(made / "out", folder)
    change(folder)
    bind(
        folder / "manifest.json",
        lambda s: s.update(files={n: sha256((folder / n).read_bytes()) for n in s["files"]}),
    )
    return folder


def added(said: dict[str, Any]) -> None:
    said["endorsed"] = "by the custodian"


def in_plan(old: str, new: str) -> Callable[[Path], object]:
    return lambda f: (f / "plan.toml").write_text(PLAN.replace(old, new))


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a word more": (lambda f: bind(f / CERTIFICATE, added), "recorded answer"),
    "a smaller budget": (in_plan("epsilon = 4.0", "epsilon = 0.5"), "plan.toml has the budget"),
    "another table": (in_plan('"visits"', '"census"'), "plan.toml has the budget"),
    "another version": (in_plan("2026", "2030"), "plan.toml has the budget"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whoever_has_the_ledger_sees_every_word(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    change, says = CHANGES[name]
    ledger = ("--ledger", made / "visits.ledger")
    assert findings(capsys, made / "out", *ledger)[0] == 0
    code, found = findings(capsys, forged(made, tmp_path / "f", change), *ledger)
    assert code == 1
    assert any(says in f["what"] for f in found if f["holds"] is False), found


@pytest.mark.parametrize("word", ["meaning", "intervals", "public_totals"])
def test_what_the_plan_decides_is_compared_without_a_ledger_too(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    folder = forged(made, tmp_path / "f", lambda f: bind(f / CERTIFICATE, lambda s: s.update({word: {}})))
    if word == "intervals":
        intervals = json.loads((made / "out" / CERTIFICATE).read_text())["intervals"] | {"confidence": 0.99}
        shutil.rmtree(folder)
        forged(made, folder, lambda f: bind(f / CERTIFICATE, lambda s: s.update(intervals=intervals)))
    code, found = findings(capsys, folder)
    assert code == 1
    assert any("what plan.toml gives" in f["what"] for f in found if f["holds"] is False), found


def test_a_page_that_is_not_signed_is_made_again(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = forged(made, tmp_path / "f", lambda f: (f / "report.html").write_text("<p>lies</p>"))
    code, found = findings(capsys, folder, "--ledger", made / "visits.ledger")
    assert [f["holds"] for f in found if f["what"].startswith("report.html is what is written")] == [False]
    assert code == 1


def test_a_folder_whose_name_is_no_text(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = made / os.fsdecode(b"odd\xff")
    odd.mkdir()
    assert main(["release", str(made / "plan.toml"), "--out", str(odd / "out")]) == 0
    assert findings(capsys, odd / "out", "--ledger", made / "visits.ledger")[0] == 0


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_that_is_no_release_is_named(
    there: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "elsewhere"
    if there:
        place.mkdir()
    assert main(["verify", str(place)]) == 2
    said = capsys.readouterr().err
    assert "DIR must be a folder with a manifest.json" in said
    assert "text file" not in said


# --- certificates without a choice -----------------------------------------------------------------------------
def without_choice(said: dict[str, Any]) -> None:
    said.pop("choice")


def called_earlier(said: dict[str, Any]) -> None:
    said.pop("choice")
    said["versions"]["tacit"] = "0.1.0"


def as_if_earlier(said: dict[str, Any]) -> None:
    called_earlier(said)
    for word in ("files", "quality_rule"):
        said["data"].pop(word)


def odd_version(said: dict[str, Any]) -> None:
    said.pop("choice")
    said["versions"] = {"tacit": ["0.1.0"]}


@pytest.mark.parametrize("change", [without_choice, called_earlier, odd_version])
def test_a_certificate_of_this_version_states_its_choice(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Callable[[dict[str, Any]], None]
) -> None:
    """Only 0.1.0 stated none: a certificate that names files or a rule of quality is younger."""
    folder = forged(made, tmp_path / "out", lambda f: bind(f / CERTIFICATE, change))
    for more in ((), ("--ledger", made / "visits.ledger")):
        code, found = findings(capsys, folder, *more)
        claims = [f["holds"] for f in found if f["what"] == f"{CERTIFICATE} claims what plan.toml gives"]
        assert (code, claims) == (1, [False])


def test_a_certificate_that_is_made_to_look_earlier_meets_its_ledger(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = forged(made, tmp_path / "out", lambda f: bind(f / CERTIFICATE, as_if_earlier))
    code, found = findings(capsys, folder, "--ledger", made / "visits.ledger")
    assert code == 1
    assert {f["what"]: f["holds"] for f in found}[
        f"{CERTIFICATE} and its values are those of the recorded answer"
    ] is False
