"""`tacit inspect`: the custodian sees what is lost; the ledger knows that somebody looked, and nothing of it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.curator import custodian as looking
from tacit.curator.custodian import Note
from tacit.curator.plan_files import read_plan
from tacit.errors import InvalidParameter, NoLaw
from tacit.guarantees.conditions import SEEN, SEEN_ANOTHER
from tacit.ledger import Ledger, looked, overview
from tacit.parties import Joint, Sizes

PLANTED, NUMBER = "Zerzura-7731", "98765.4375"
PLAN = """
[data]
path = "t.csv"
version = "1"
[protect]
unit = "people"
column = "id"
at_most = 2
[schema.state]
kind = "category"
keys = ["Bremen", "Hessen"]
[schema.income]
kind = "number"
low = 0
high = 50000
[budget]
epsilon = 4.0
[spend]
epsilon = 0.5
[[release]]
kind = "count"
by = "state"
"""
Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """300 rows of 100 people: a third in a state that is not declared, one of whom earns more than the bounds say."""
    lines = ["id,state,income"]
    for i in range(300):
        state = ("Bremen", "Hessen", PLANTED)[i % 3]
        lines.append(f"{i % 100},{state},{NUMBER if i == 7 else 1000 + i}")
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


def certificate(folder: Path) -> dict[str, Any]:
    return json.loads(next((folder / "certificates").iterdir()).read_text())


def looks(plan: Path) -> list[Any]:
    with Ledger.open(plan.parent / "t.ledger") as ledger:
        return list(overview(ledger)["looks"])


# --- what it shows -------------------------------------------------------------------------------------
def test_every_line_says_that_it_is_not_for_publication(plan: Path, say: Say) -> None:
    code, out, _ = say("inspect", plan, "--out", plan.parent / "seen.txt")
    assert code == 0
    lines = out.splitlines()
    assert all(line.startswith("NOT FOR PUBLICATION |") for line in lines)
    assert (plan.parent / "seen.txt").read_text().splitlines() == lines
    assert f"33.3% of the rows are outside of the declared keys: '{PLANTED}' (33.3%)" in out
    assert "0.3% of the rows are outside of the declared bounds" in out.replace("less than 0.1%", "0.3%")
    assert "100 people with 3.00 rows each on average, at most 3" in out
    assert "33.3% of the rows are beyond the declared 2 a person" in out


def test_the_file_is_its_owners_alone_and_overwrites_nothing(plan: Path, say: Say) -> None:
    seen = plan.parent / "seen.txt"
    assert say("inspect", plan, "--out", seen)[0] == 0
    assert stat.S_IMODE(seen.stat().st_mode) == 0o600
    assert say("inspect", plan, "--out", seen)[0] == 2
    link = plan.parent / "link.txt"
    link.symlink_to(plan.parent / "elsewhere.txt")
    assert say("inspect", plan, "--out", link)[0] == 2
    assert not (plan.parent / "elsewhere.txt").exists()
    assert len(looks(plan)) == 1, "a place that cannot be written is found before anybody looks"


def test_json_is_one_object_whose_notes_are_marked(plan: Path, say: Say) -> None:
    code, out, _ = say("inspect", plan, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["not_for_publication"] is True
    assert {n["mark"] for n in found["notes"]} == {"not for publication"}
    assert found["entry"] == 1
    outside = next(n for n in found["notes"] if n["what"] == "outside keys")
    assert outside["numbers"]["rows"] == 100
    assert outside["attention"] is True


def test_a_value_steers_no_terminal_and_begins_no_line(plan: Path, say: Say) -> None:
    text = (plan.parent / "t.csv").read_text().replace(PLANTED, "a\x1b[2Jb\u2028c\u202ed")
    (plan.parent / "t.csv").write_text(text)
    code, out, _ = say("inspect", plan)
    assert code == 0
    assert not set(out) & {"\x1b", "\u2028", "\u202e"}
    assert all(line.startswith("NOT FOR PUBLICATION |") for line in out.splitlines())


@pytest.mark.parametrize("rows", ["", "1,,\n", "1,Bremen,inf\n,Hessen,-1e308\n", "x\n\n", "1,Bremen,nan,4\n"])
def test_odd_tables_are_looked_at_without_an_error(plan: Path, say: Say, rows: str) -> None:
    (plan.parent / "t.csv").write_text("id,state,income\n" + rows)
    code, out, error = say("inspect", plan)
    assert (code, error) == (0, "")
    assert all(line.startswith("NOT FOR PUBLICATION |") for line in out.splitlines())


def test_long_tables_are_counted_approximately_but_for_their_smallest_cells(
    plan: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = json.loads(say("inspect", plan, "--json")[1])
    monkeypatch.setattr("tacit.sources.proposing.EXACTLY", 10)
    quick = json.loads(say("inspect", plan, "--json")[1])
    assert [n for n in quick["notes"] if n["what"] == "cells"] == [
        n for n in exact["notes"] if n["what"] == "cells"
    ]


def test_no_part_of_a_note_begins_a_line_or_steers_a_terminal() -> None:
    shown = str(Note(about="a\x1b[2Jb", what="cells", sentence="c\nd\u202ee"))
    assert shown.isprintable()
    assert shown.startswith("NOT FOR PUBLICATION |")


def test_long_lists_of_keys_show_the_same(plan: Path, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    short = json.loads(say("inspect", plan, "--json")[1])["notes"]
    monkeypatch.setattr("tacit.sources.proposing.MANY", 1)
    assert json.loads(say("inspect", plan, "--json")[1])["notes"] == short


def test_sizes_of_cells_stand_beside_the_error_of_the_plan(plan: Path, say: Say) -> None:
    plan.write_text(PLAN.replace("epsilon = 0.5", "epsilon = 0.02"))
    told = say("inspect", plan)[1]
    assert "2 of 2 cells are not larger than their error" in told
    plan.write_text(PLAN)
    assert "0 of 2 cells are not larger than their error" in say("inspect", plan)[1]


def test_cells_are_those_of_the_answer(plan: Path, say: Say) -> None:
    """Ranges behind a quantile are no cells, and who fails a test is in the cell of its proportion."""
    more = """
    [[release]]
    kind = "median"
    column = "income"
    [[release]]
    kind = "median"
    column = "income"
    by = "state"
    [[release]]
    kind = "proportion"
    of = "income > 1250"
    by = "state"
    """
    plan.write_text(PLAN + more)
    told = say("inspect", plan)[1]
    cells = [line.split("| ")[1].strip() for line in told.splitlines() if "cells hold" in line]
    size = "2 cells hold people, 0 of 2 are empty; the smallest: Bremen (100); Hessen (100)"
    assert [line.partition(": ")[2] for line in cells] == [size] * 3


# --- what it leaves ------------------------------------------------------------------------------------
def test_nothing_that_it_found_is_kept_and_its_mark_is(plan: Path, say: Say) -> None:
    """Planted values, and the exact numbers that it prints, are in no file that is made: its mark is."""
    out = plan.parent / "out"
    code, shown, _ = say("inspect", plan)
    assert code == 0
    assert PLANTED in shown
    assert "1,470" in shown or "mean of the stored values" in shown
    assert say("release", plan, "--out", out)[0] == 0
    made = [p for p in plan.parent.rglob("*") if p.is_file() and p.name != "t.csv"]
    assert {"t.ledger", "report.html", "manifest.json"} <= {p.name for p in made}
    seen = read_plan(plan)
    with seen.curator() as curator:
        truth = looking.inspect(curator, seen.plan())
    numbers = {
        repr(v) for n in truth.notes for v in n.numbers.values() if isinstance(v, float) and len(repr(v)) >= 8
    }
    assert any(float(n) > 1000 for n in numbers), "the means are among them"
    for path in made:
        body = path.read_bytes()
        assert PLANTED.encode() not in body, path
        assert NUMBER.encode() not in body, path
        for number in numbers:
            assert number[:9].encode() not in body, (path, number)
    said = certificate(out)
    assert said["data"]["seen"] == [SEEN]
    assert SEEN in said["guarantee"]["declared"]
    assert SEEN in said["meaning"]
    assert SEEN in (out / "report.html").read_text()
    name = next((out / "certificates").iterdir())
    assert SEEN in " ".join(say("explain", name)[1].split())
    code, told, _ = say("verify", out, "--ledger", plan.parent / "t.ledger")
    assert code == 0
    assert f"someone who had seen the data ({SEEN})" in told


def test_a_certificate_that_hides_the_look_is_found_out(plan: Path, say: Say) -> None:
    from tacit.curator.certificate import bound, json_text
    from tacit.exact.canonical import sha256

    out = plan.parent / "out"
    say("inspect", plan)
    say("release", plan, "--out", out)
    path = next((out / "certificates").iterdir())
    said = json.loads(path.read_text())
    del said["data"]["seen"]
    said["guarantee"]["declared"] = []
    said["meaning"] = said["meaning"].partition(" Against it stands")[0]
    path.write_text(json_text(bound(said)) + "\n")
    listed = json.loads((out / "manifest.json").read_text())
    listed["files"][f"certificates/{path.name}"] = sha256(path.read_bytes())
    (out / "manifest.json").write_text(json_text(bound(listed)) + "\n")
    without = [line for line in say("verify", out)[1].splitlines() if "DOES NOT HOLD" in line]
    assert all("report.html" in line for line in without), (
        "without the ledger only the page that was kept can tell"
    )
    code, told, _ = say("verify", out, "--ledger", plan.parent / "t.ledger")
    assert code == 1
    assert "DOES NOT HOLD: certificates/count-by-state.json says whether" in told


def test_the_mark_survives_copies_new_names_and_new_versions(plan: Path, say: Say) -> None:
    say("inspect", plan)
    copy = plan.parent / "other.toml"
    copy.write_text(PLAN.replace("epsilon = 0.5", "epsilon = 0.25"))
    assert say("release", copy, "--out", plan.parent / "a")[0] == 0
    assert certificate(plan.parent / "a")["data"]["seen"] == [SEEN]
    copy.write_text(PLAN.replace('version = "1"', 'version = "2"'))
    assert say("release", copy, "--out", plan.parent / "b")[0] == 0
    assert certificate(plan.parent / "b")["data"]["seen"] == [SEEN_ANOTHER]
    copy.write_text(PLAN.replace('version = "1"', 'version = "1"\ntable = "renamed"'))
    assert say("release", copy, "--out", plan.parent / "c")[0] == 0
    assert certificate(plan.parent / "c")["data"]["seen"] == [SEEN_ANOTHER]


def test_a_plan_that_was_recorded_before_is_older_and_no_date_makes_one_so(plan: Path, say: Say) -> None:
    assert say("plan", plan, "--record")[0] == 0
    say("inspect", plan)
    assert say("release", plan, "--out", plan.parent / "a")[0] == 0
    assert "seen" not in certificate(plan.parent / "a")["data"]
    backdated = plan.parent / "backdated.toml"
    backdated.write_text(PLAN.replace("high = 50000", "high = 90000"))
    os.utime(backdated, (0, 0))
    code, told, _ = say("plan", backdated, "--record", "--json")
    assert (code, json.loads(told)["recorded"]) == (0, 5)
    assert say("release", backdated, "--out", plan.parent / "b")[0] == 0
    assert certificate(plan.parent / "b")["data"]["seen"] == [SEEN]


def test_an_answer_from_the_record_says_what_the_first_one_said(plan: Path, say: Say) -> None:
    assert say("release", plan, "--out", plan.parent / "a")[0] == 0
    say("inspect", plan)
    assert say("release", plan, "--out", plan.parent / "b")[0] == 0
    first, again = (certificate(plan.parent / n) for n in "ab")
    assert first == again
    assert "seen" not in again["data"]


def test_the_mark_is_there_before_a_row_is_read(
    plan: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(looking, "column_seen", stop)
    assert say("inspect", plan)[0] == 130
    assert len(looks(plan)) == 1


def test_a_table_that_cannot_be_opened_leaves_no_mark(plan: Path, say: Say) -> None:
    (plan.parent / "t.csv").write_text("id,state\n1,Bremen\n")
    assert say("inspect", plan)[0] == 2
    assert not (plan.parent / "t.ledger").exists()


# --- who may look --------------------------------------------------------------------------------------
def test_what_was_seen_is_not_pickled(plan: Path) -> None:
    import copy
    import pickle

    found = read_plan(plan)
    with found.curator() as curator:
        seen = tacit.inspect(curator, found.plan())
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not pickled"):
            way(seen)
    assert PLANTED not in repr(seen)


def test_a_holder_who_has_looked_takes_no_part_in_a_joint_release(plan: Path) -> None:
    found = read_plan(plan)
    with found.curator() as curator:
        looked(curator.ledger, analyst="curator", version="1")
        agreed = Joint.of(
            tacit.count(), schema=curator.schema, protect=curator.unit, epsilon=0.1,
            sizes=Sizes(holders=3, fewest=3, colluding=0),
        )  # fmt: skip
        with pytest.raises(tacit.errors.JointRefused, match="seen the data"):
            curator.contribute(agreed.check(curator), key="session")
        assert not curator.ledger.charges()


# --- paid for ------------------------------------------------------------------------------------------
def test_private_shares_are_charged_and_leave_no_mark(plan: Path, say: Say) -> None:
    code, out, _ = say("inspect", plan, "--private", "--epsilon", 3.5, "--json")
    assert code == 0
    found = json.loads(out)
    shares = {s["name"]: (s["low"], s["value"], s["high"]) for s in found["shares"]}
    assert set(shares) == {"state outside", "state missing", "income outside", "income missing"}
    assert found["spent"]["epsilon"] == 3.5
    low, value, high = shares["state outside"]
    assert low <= value <= high
    assert not looks(plan)
    assert say("release", plan, "--out", plan.parent / "a")[0] == 0
    assert "seen" not in certificate(plan.parent / "a")["data"]


def test_private_shares_are_about_what_is_declared(tmp_path: Path) -> None:
    """With an epsilon that hides nothing the shares are the true ones, of rows that a person's limit keeps."""
    lines = ["state,income,day,level"] + [
        f"{('Bremen', 'Bremem', '')[i % 3]},{(10, 99, 'x', -1)[i % 4]},{('2020-05-01', '1990-01-01')[i % 2]},{i % 5}"
        for i in range(600)
    ]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    schema = {
        "state": tacit.category(["Bremen"]), "income": tacit.number(0, 50),
        "day": tacit.date("2020-01-01", "2020-12-31"), "level": tacit.category([0, 1]),
    }  # fmt: skip
    with tacit.Curator(
        tmp_path / "t.csv", protect=tacit.rows(), schema=schema, budget=tacit.Pure(epsilon=10_000.0),
        ledger=tmp_path / "t.ledger",
    ) as survey:  # fmt: skip
        found = {r.name: r.value for r in tacit.inspect_privately(survey, epsilon=8000)}
        with pytest.raises(InvalidParameter, match="no default price"):
            tacit.inspect_privately(survey)
    expected = {
        "state outside": 1 / 3, "state missing": 1 / 3, "income outside": 1 / 2, "income missing": 1 / 4,
        "day outside": 1 / 2, "day missing": 0, "level outside": 3 / 5, "level missing": 0,
    }  # fmt: skip
    assert found == pytest.approx(expected, abs=0.005)


def test_derived_columns_are_looked_at_and_left_out_of_private_shares(plan: Path, say: Say) -> None:
    derived = '[schema.twice]\nkind = "number"\nlow = 0\nhigh = 1500\nfrom = "income * 2"\n[budget]'
    plan.write_text(PLAN.replace("[budget]", derived))
    assert "twice: 100.0% of the rows are outside of the declared bounds" in say("inspect", plan)[1]
    code, out, _ = say("inspect", plan, "--private", "--epsilon", 1, "--json")
    assert code == 0
    assert not any("twice" in share["name"] for share in json.loads(out)["shares"])


@pytest.mark.parametrize(
    "more",
    [
        ("--epsilon", "1"),
        ("--private",),
        ("--private", "--epsilon", "0"),
        ("--private", "--epsilon", "1", "--out", "x"),
    ],
)
def test_prices_belong_to_private_and_are_needed_there(plan: Path, say: Say, more: tuple[str, ...]) -> None:
    code, out, error = say("inspect", plan, *more)
    assert (code, out) == (2, "")
    assert error.count("\n") == 1
    assert not (plan.parent / "t.ledger").exists() or not looks(plan)


def test_nothing_is_shown_to_a_plan_of_another_schema(plan: Path) -> None:
    found = read_plan(plan)
    other = read_plan(plan).plan()
    with found.curator() as curator:
        from dataclasses import replace

        odd = replace(other, unit=tacit.rows())
        with pytest.raises(InvalidParameter, match="schema and unit"):
            tacit.inspect(curator, odd)
    assert isinstance(NoLaw, type)
