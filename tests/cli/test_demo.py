"""`tacit demo`: the main job, end to end, on people who do not exist."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tacit.cli import main
from tacit.guarantees import theorem
from tacit.guarantees.guarantee import from_record
from tacit.ledger import Ledger


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demo") / "out"
    assert main(["demo", "--people", "3000", "--out", str(out), "--json"]) == 0
    return out


def test_everything_is_written_and_named(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {p.relative_to(made).parts[0] for p in made.rglob("*") if p.is_file()}
    assert names == {
        "survey.parquet",
        "plan.toml",
        "survey.ledger",
        "values",
        "certificates",
        "report.html",
        "manifest.json",
    }
    assert [p for p in made.parent.iterdir() if p != made] == []
    kinds = set()
    for path in (made / "certificates").iterdir():
        said = json.loads(path.read_text())
        kinds.add((said["statistic"]["kind"], said["statistic"].get("of") == "people"))
        assert said["publishable"]
        assert from_record(said["guarantee"])
        for name in said["theorems"]:
            assert theorem(name)
        values = pq.read_table(made / "values" / f"{path.stem}.parquet").to_pydict()
        lines = (made / "values" / f"{path.stem}.csv").read_text().splitlines()
        assert len(lines) == 1 + len(values["value"])
        assert lines[0].split(",")[-4:] == ["value", "low", "high", "quality"]
    assert len(kinds) >= 9
    with Ledger.open(made / "survey.ledger") as ledger:
        assert ledger.verify().ok
        assert len(ledger.charges()) == 1


def test_the_report_shows_the_truth_and_says_why(made: Path) -> None:
    page = (made / "report.html").read_text()
    assert "made up" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    for path in (made / "certificates").iterdir():
        assert f"certificates/{path.name}" in page


def test_a_folder_that_exists_is_never_touched(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (made / "report.html").stat().st_mtime_ns
    assert main(["demo", "--people", "3000", "--out", str(made)]) == 2
    assert "new or empty folder" in capsys.readouterr().err
    assert (made / "report.html").stat().st_mtime_ns == before


def test_bad_numbers_of_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for people in ("0", "-3", "many"):
        assert main(["demo", "--people", people, "--out", str(tmp_path / "out")]) == 2
        assert capsys.readouterr().err.startswith("tacit: ")
        assert list(tmp_path.iterdir()) == []


def test_certificates_can_be_explained(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = made / "certificates" / "people-by-region.json"
    assert main(["explain", str(one), "--plot", str(tmp_path / "meaning.png")]) == 0
    told = capsys.readouterr().out
    assert "This rests on" in told
    assert (tmp_path / "meaning.png").read_bytes()[:4] == b"\x89PNG"
    assert main(["explain", str(one), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "people by region"
    assert main(["explain", str(made / "plan.toml")]) == 2
    assert main(["plan", str(made / "plan.toml"), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out.split("\n", 0)[-1])["releases"]) == 12


def test_what_the_demo_wrote_holds(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All twelve kinds of releases: values as CSV and as Parquet, certificates, plan and ledger agree."""
    assert main(["verify", str(made), "--ledger", str(made / "survey.ledger"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len([f for f in told["findings"] if f["holds"]]) > 100
    assert not [f for f in told["findings"] if f["holds"] is False]
