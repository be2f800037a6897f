"""`tacit running`: one charge, figures in order, twice, out of order, after a death; and what is refused unspent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.cli import main
from tacit.curator import running as room

PLAN = """
data = { path = "cases.csv" }
protect = { unit = "rows" }
schema.week = { kind = "integer", low = 1, high = 4 }
schema.sex = { kind = "category", keys = ["f", "m"] }
budget = { epsilon = 2, delta = 1e-5 }
running = { by = "week", groups = "sex", epsilon = 1, delta = 1e-6, name = "Cases" }
"""


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"week": rng.integers(1, 5, 800), "sex": rng.choice(["f", "m"], 800)})
    frame.to_csv("cases.csv", index=False)
    Path("cases.toml").write_text(PLAN)
    return tmp_path


def ran(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any], str]:
    code = main(["running", "cases.toml", *words, "--json"])
    told = capsys.readouterr()
    return code, json.loads(told.out) if told.out else {}, told.err


def test_one_charge_and_one_figure_after_the_other(capsys):
    assert main(["running", "cases.toml", "--preview"]) == 0
    assert "nothing was read" in capsys.readouterr().out
    assert not Path("cases.ledger").exists()
    steps = [ran(capsys, "--out", "figures") for _ in range(3)]
    assert [(code, said["step"], said["charged"], said["replayed"]) for code, said, _ in steps] == [
        (0, 1, True, False), (0, 2, False, False), (0, 3, False, False),
    ]  # fmt: skip
    assert {said["spent"]["epsilon"] for _, said, _ in steps} == {1.0}
    code, again, _ = ran(capsys, "--step", "2")
    assert (code, again["replayed"], again["columns"]) == (0, True, steps[1][1]["columns"])
    lines = Path("figures/figures.csv").read_text().splitlines()
    assert lines[0] == "week,sex,value,low,high,quality"
    assert len(lines) == 1 + 3 * 2
    assert sorted(p.name for p in Path("figures/certificates").iterdir()) == [
        "step-1.json",
        "step-2.json",
        "step-3.json",
    ]
    said = json.loads(Path("figures/certificates/step-2.json").read_text())
    assert room.STAYS in said["guarantee"]["declared"]
    assert Path("figures/figures.png").read_bytes()[:4] == b"\x89PNG"
    ran(capsys)
    code, _, told = ran(capsys)
    assert code == 2
    assert "all 4 figures are released" in told
    assert main(["running", "cases.toml", "--step", "4"]) == 0
    assert "step 4 of 4 (from the record)" in capsys.readouterr().out


def test_a_process_that_dies_between_charge_and_figure_loses_nothing(capsys, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(room, "read_cells", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt()))
        assert main(["running", "cases.toml"]) == 130
        assert "goes on free of charge" in capsys.readouterr().err
    code, said, _ = ran(capsys)
    assert (code, said["step"], said["charged"], said["spent"]["epsilon"]) == (0, 1, False, 1.0)


def test_a_folder_that_cannot_be_written_takes_no_figure_back(capsys, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(
            "tacit.report.running.os.replace", lambda *a: (_ for _ in ()).throw(OSError(28, "No space"))
        )
        assert main(["running", "cases.toml", "--out", "figures"]) == 3
        assert "the figure is recorded" in capsys.readouterr().err
    code, said, _ = ran(capsys, "--step", "1", "--out", "again")
    assert (code, said["replayed"]) == (0, True)


@pytest.mark.parametrize(
    ("change", "words", "told"),
    [
        (("", ""), ("--step", "2"), "be 1 for a running total that nobody paid for"),
        (("", ""), ("--step", "0"), "be 1 to 4"),
        (("", ""), ("--step", "5"), "be 1 to 4"),
        (("", ""), ("--preview", "--step", "1"), "come alone"),
        (("", ""), ("--out", "other"), "it has other files"),
        (('unit = "rows"', 'unit = "people", column = "sex", at_most = 2'), (), "protect rows"),
        (("running = {", "runing = {"), (), "did you mean 'running'"),
        ((', epsilon = 1, delta = 1e-6, name = "Cases"', ""), (), "epsilon and delta, rho or mu"),
        ((", epsilon = 1, delta = 1e-6,", ", epsilon = 1,"), (), "epsilon and delta, rho or mu"),
        (('by = "week", groups', 'by = ["week", "sex"], groups'), (), "one column"),
        (('by = "week", ', ""), (), "one column"),
        (('groups = "sex"', 'group = "sex"'), (), "did you mean 'groups'"),
        (('by = "week"', 'by = "day"'), (), "day"),
        (("running = ", "# "), (), "[running] must be in the plan"),
    ],
)  # fmt: skip
def test_what_is_refused_and_costs_nothing(capsys, change, words, told):
    Path("other").mkdir()
    Path("other/file").touch()
    Path("cases.toml").write_text(PLAN.replace(*change) if change[0] else PLAN)
    code, _, error = ran(capsys, *words)
    assert code == 2
    assert told in error
    assert not Path("cases.ledger").exists()


def test_a_withdrawn_series_says_so_wherever_it_is_shown(capsys):
    assert ran(capsys, "--out", "figures")[0] == 0
    assert "corrections" not in json.loads(Path("figures/running.json").read_text())
    assert main(["ledger", "withdraw", "cases.ledger", "1", "--note", "late records"]) == 0
    assert main(["running", "cases.toml", "--step", "1", "--out", "figures"]) == 0
    assert "Do not use this figure: withdrawn on" in capsys.readouterr().out
    _, said, _ = ran(capsys, "--step", "1")
    assert said["corrections"][0].endswith("by custodian: late records")
    assert list(json.loads(Path("figures/running.json").read_text())["corrections"]) == ["1"]


def test_a_folder_belongs_to_one_series(capsys):
    assert ran(capsys, "--out", "figures")[0] == 0
    Path("cases.toml").write_text(PLAN.replace("Cases", "Others"))
    code, _, told = ran(capsys, "--out", "figures")
    assert code == 2
    assert "another running total" in told


def test_more_than_the_budget_is_refused(capsys):
    Path("cases.toml").write_text(PLAN.replace("{ epsilon = 2, delta", "{ epsilon = 0.5, delta"))
    assert ran(capsys)[0] == 1


def test_other_commands_name_this_one(capsys):
    assert main(["plan", "cases.toml"]) == 2
    assert "tacit running PLAN" in capsys.readouterr().err
