"""Places that cannot be written, and disks that are full: nothing half-written, nothing paid twice."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from .plans import MARKS, Runner, write


def test_a_folder_that_is_there_already(tmp_path: Path, run: Runner) -> None:
    plan = write(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    assert run("release", plan, "--out", tmp_path / "out") == 2
    assert "--out" in run.one_sentence()
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["mine.txt"]
    assert run("release", plan, "--out", plan) == 2
    run.one_sentence()
    assert not (tmp_path / "survey.ledger").exists()


def test_a_place_that_cannot_be_written(tmp_path: Path, run: Runner) -> None:
    plan = write(tmp_path)
    (tmp_path / "file").write_text("")
    places = [tmp_path / "file" / "out", Path("/proc/tacit/out")]
    if os.geteuid() != 0:
        (tmp_path / "locked").mkdir(mode=0o500)
        places.append(tmp_path / "locked" / "out")
    for place in places:
        assert run("release", plan, "--out", place) == 2
        assert "--out" in run.one_sentence()
    assert not (tmp_path / "survey.ledger").exists()


def limited(arguments: list[str], bytes_at_most: int) -> subprocess.CompletedProcess[str]:
    """The command in a process whose files may not grow past this: what a full disk looks like to it."""
    code = "import sys; from tacit.cli import main; sys.exit(main(sys.argv[1:]))"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_at_most, bytes_at_most))

    # Compiled modules would be cut off, too, and would break every later import of them.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], preexec_fn=limit, capture_output=True, text=True, check=False,
        env=environment,
    )  # fmt: skip


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True
    )
    if made.returncode:
        pytest.skip(
            "mounting a small disk needs a privileged user; the limit on file sizes is tested instead"
        )
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def told_once(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("tacit: ")
    assert done.stderr.count("\n") == 1
    assert not [m for m in MARKS if m in done.stderr]


def test_a_full_disk_for_the_ledger(tmp_path: Path) -> None:
    plan = write(tmp_path)
    done = limited(["release", str(plan), "--out", str(tmp_path / "out")], 5_000)
    told_once(done)
    assert not (tmp_path / "out").exists()


def test_a_full_disk_for_the_files(tmp_path: Path, run: Runner) -> None:
    """There is no room for the files: found before anything is paid."""
    plan = write(tmp_path)
    with small_disk(tmp_path / "small", "400k") as disk:
        assert run("release", plan, "--out", disk / "out") == 2
        assert "--out" in run.one_sentence()
        assert list(disk.iterdir()) == []
    assert not (tmp_path / "survey.ledger").exists()
    done = limited(["release", str(plan), "--out", str(tmp_path / "out")], 300_000)
    told_once(done)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "survey.ledger").exists()


def test_a_small_disk_for_the_ledger(tmp_path: Path, run: Runner) -> None:
    with small_disk(tmp_path / "small", "48k") as disk:
        plan = write(tmp_path)
        plan.write_text(plan.read_text().replace("survey.ledger", str(disk / "survey.ledger")))
        assert run("release", plan, "--out", tmp_path / "out") == 2
        assert "ledger" in run.one_sentence()
        assert not (tmp_path / "out").exists()


def test_a_disk_that_fills_up_while_the_files_are_written(
    tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers are on record: nothing is half-written, and another run is free."""
    plan = write(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pq, "write_table", full)
        assert run("release", plan, "--out", tmp_path / "out") == 3
    assert "free" in run.one_sentence()
    assert not (tmp_path / "out").exists()
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".tacit")]
    assert run("release", plan, "--out", tmp_path / "out", "--json") == 0
    said = json.loads(run.out)
    assert said["replayed"] is True
    assert said["spent"]["epsilon"] == 0.5
