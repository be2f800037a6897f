"""Work that must not grow faster than the number of releases: what is one for a folder is done once a folder."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tacit.cli import main
from tacit.curator import plan_files, planning, release, verifying
from tacit.curator.assignments import Assignment

PLAN = """
[data]
path = "table.csv"
[protect]
unit = "rows"
[ledger]
path = "table.ledger"
[budget]
epsilon = 10.0
[schema.region]
kind = "category"
keys = ["north", "south"]
[schema.age]
kind = "integer"
low = 0
high = 100
"""


def published(folder: Path, releases: int) -> Path:
    folder.mkdir()
    (folder / "table.csv").write_text("region,age\n" + "north,30\nsouth,40\n" * 20)
    asked = "".join(
        f'[[release]]\nname = "r{i}"\nkind = "count"\nby = "region"\nwhere = "age > {i}"\nepsilon = 0.1\n'
        for i in range(releases)
    )
    (folder / "plan.toml").write_text(PLAN + asked)
    assert main(["release", str(folder / "plan.toml"), "--out", str(folder / "out")]) == 0
    return folder


WATCHED = (
    (plan_files, "make_plan"),
    (planning, "plan_charge"),
    (verifying, "plan_charge"),
    (verifying, "read_choice"),
    (verifying, "_as_stated"),
    (verifying, "seen_in"),
)


def counting(real: Any, name: str, seen: dict[str, int]) -> Any:
    def counted(*a: Any, **k: Any) -> Any:
        seen[name] = seen.get(name, 0) + 1
        return real(*a, **k)

    return counted


@pytest.mark.parametrize("with_ledger", [False, True])
def test_a_folder_is_planned_and_summed_a_fixed_number_of_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_ledger: bool
) -> None:
    counts: dict[int, dict[str, int]] = {}
    for releases in (2, 9):
        with redirect_stdout(io.StringIO()):
            folder = published(tmp_path / f"{releases}", releases)
        seen = counts[releases] = {}
        for module, name in WATCHED:
            monkeypatch.setattr(module, name, counting(getattr(module, name), name, seen))
        ledger = ["--ledger", str(folder / "table.ledger")] if with_ledger else []
        with redirect_stdout(io.StringIO()):
            assert main(["verify", str(folder / "out"), *ledger]) == 0
        monkeypatch.undo()
    assert counts[2] == counts[9]
    assert counts[2]["make_plan"] >= 1
    assert counts[2]["_as_stated"] >= 1
    assert not with_ledger or counts[2]["read_choice"] == 1


def test_a_release_says_its_certificate_a_fixed_number_of_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page shows a dozen of its fields; each must not cost the whole of it."""
    count = [0, 0]
    real = release.certify

    def counted(*a: Any, **k: Any) -> Any:
        count[0] += 1
        return real(*a, **k)

    def gamma(_: Assignment) -> Fraction:
        count[1] += 1
        return Fraction(0)

    monkeypatch.setattr(release, "certify", counted)
    monkeypatch.setattr(Assignment, "gamma", property(gamma))
    for releases in (3, 9):
        count[:] = 0, 0
        with redirect_stdout(io.StringIO()):
            published(tmp_path / f"{releases}", releases)
        assert 0 < count[0] <= 2 * releases
        assert 0 < count[1] <= 6 * releases
