"""What a person reads is what was certified: ends of intervals, words of quality, declarations, corrections."""

from __future__ import annotations

import dataclasses
import datetime
import html
import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.cli import main
from tacit.curator.cells import rule_of
from tacit.curator.intervals import Estimate
from tacit.noise.source import SeededSource
from tacit.report.building import report_of
from tacit.report.drawing import heat_map
from tacit.report.view import CellView, compact_ends

PLACES = [f"p{i:02}" for i in range(24)]
SEXES = ["f", "m"]
SCHEMA = {
    "place": tacit.category(PLACES),
    "sex": tacit.category(SEXES),
    "x": tacit.number(0, 100),
}


def answered(*asked: Any, seed: int = 5, rows: int = 3, given: float = 0.1) -> tuple[Any, Any]:
    """Cells of `rows` people each, in all crossings, with noise far above them."""
    place, sex = (np.repeat(v, rows) for v in zip(*[(p, s) for p in PLACES for s in SEXES], strict=True))
    table = pd.DataFrame({"place": place, "sex": sex, "x": np.zeros(len(place))})
    with tacit.Curator(
        table, protect=tacit.rows(neighbours="replace-one"), schema=SCHEMA,
        budget=tacit.Approximate(epsilon=5, delta=1e-6), source=SeededSource(seed=seed),
    ) as one:  # fmt: skip
        plan = one.preview(list(asked), epsilon=given * len(asked))
        return plan, one.release(plan)


@pytest.fixture(scope="module")
def counts() -> tuple[Any, Any]:
    return answered(tacit.query(tacit.count(by=["place", "sex"]), consistent=True))


# --- intervals ---------------------------------------------------------------------------------------------
def number(text: str) -> float:
    size = {"k": 1e3, "M": 1e6, "n": 1e9}.get(text[-1], 1.0)
    return float(text.rstrip("kMbn").replace(",", "").replace("−", "-")) * size


def test_no_page_prints_half_of_an_interval(counts: tuple[Any, Any]) -> None:
    plan, releases = counts
    cut = [
        c for c in zip(*(releases[0].columns[n] for n in ("value", "low", "high")), strict=True) if c[1] == 0
    ]
    assert any(c[0] - c[1] != c[2] - c[0] for c in cut), "an interval is cut, and its half says nothing"
    page = report_of(plan, releases, budget=plan.charge)
    assert "±" not in page
    assert "half the width" not in page


def test_the_cells_of_a_heat_map_hold_the_certified_ends(counts: tuple[Any, Any]) -> None:
    plan, releases = counts
    page = html.unescape(report_of(plan, releases, budget=plan.charge))
    shown = [tuple(map(number, e)) for e in re.findall(r'class="[^"]*half num">(\S+) to (\S+)</text>', page)]
    low, high = (releases[0].columns[n].tolist() for n in ("low", "high"))
    # The longer side runs down: place by place, as in the file.
    assert len(shown) == len(low) == 48
    assert all(a <= c and d <= b for (a, b), c, d in zip(shown, low, high, strict=True))
    assert all(b - a <= 1.02 * (d - c) + 0.02 for (a, b), c, d in zip(shown, low, high, strict=True))


def test_a_wide_heat_map_has_the_ends_on_two_lines() -> None:
    """Seven columns on a phone have no room for both beside each other."""
    cells = [
        CellView(keys=(f"r{r}", f"c{c}"), value=1900.0, low=1870.0, high=20_071.0)
        for r in range(9)
        for c in range(7)
    ]
    made = str(heat_map("x", "title", "told", cells, ("row", "column")))
    lines = re.findall(r'y="([0-9.]+)" text-anchor="middle" class="[^"]*(?:half|cell) num">([^<]*)<', made)
    assert [words for _, words in lines[:3]] == ["1,900", "1,870 to", "20.1k"]
    places = [float(y) for y, _ in lines[:3]]
    assert all(11 <= b - a <= 16 for a, b in itertools.pairwise(places)), "none over another"
    assert float(lines[3][0]) == places[0]


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.0, 28.0, "0 to 28"),
        (1870.0, 2007.0, "1,870 to 2,010"),
        (18_704.0, 20_071.0, "18.7k to 20.1k"),
        (-1234.0, -1231.0, "−1,240 to −1,230"),
        (0.12341, 0.12349, "0.123 to 0.124"),
        (1.1, 1.1, "1.1 to 1.1"),
        (-np.inf, np.inf, "−∞ to ∞"),
    ],
)
def test_short_words_of_an_interval_are_rounded_outwards(low: float, high: float, words: str) -> None:
    assert compact_ends(low, high) == words


def test_an_interval_without_an_end_keeps_the_other_one_outside() -> None:
    """On a terminal too: 1,235.5 is not told as 1,240 where it is the lower end."""
    from tacit.curator.text import _with_ends

    assert _with_ends(2000.0, 1239.5, np.inf)[1:] == ("1,230", "∞")
    assert _with_ends(2000.0, -np.inf, 3001.0)[1:] == ("-∞", "3,010")


def test_days_are_days_on_the_page_and_their_ends_are_rounded_outwards() -> None:
    """A mean of days was 18,425.5 on the page; its interval lost up to half a day at each end in the files."""
    days = [datetime.date(2020, 1 + i % 12, 1 + i % 28) for i in range(400)]
    frame = pd.DataFrame({"sex": ["f", "m"] * 200, "day": days})
    schema = {"sex": tacit.category(SEXES), "day": tacit.date("2020-01-01", "2020-12-31")}
    with tacit.Curator(
        frame, protect=tacit.rows(), schema=schema, budget=tacit.Pure(epsilon=9), source=SeededSource(seed=4)
    ) as one:
        plan = one.preview([tacit.mean("day", by="sex")], epsilon=2.0)
        releases = one.release(plan)
    made, first = releases[0], datetime.date(1970, 1, 1)
    told = {n: [(d - first).days for d in made.columns[n]] for n in ("value", "low", "high")}
    real = {n: np.ravel(getattr(made.estimate, n)) for n in told}
    assert all(a <= b < a + 1 for a, b in zip(told["low"], real["low"], strict=True))
    assert all(a - 1 < b <= a for a, b in zip(told["high"], real["high"], strict=True))
    assert all(abs(a - b) <= 0.5 for a, b in zip(told["value"], real["value"], strict=True))
    assert any(round(b) > a for a, b in zip(told["low"], real["low"], strict=True)), "nearest would be inside"
    page = report_of(plan, releases, budget=plan.charge)
    for name in told:
        assert all(str(day) in page for day in made.columns[name])
    assert not re.search(r"18,\d\d\d", page)
    old = dataclasses.replace(made, data={k: v for k, v in made.data.items() if k != "quality_rule"})
    assert [(d - first).days for d in old.columns["low"]] == [round(v) for v in real["low"]], (
        "as it was recorded"
    )


# --- quality -----------------------------------------------------------------------------------------------
def test_a_zero_that_has_noise_is_never_good(counts: tuple[Any, Any]) -> None:
    """The three people of a cell are not 'good' as 0 in [0, 0]."""
    held = counts[1][0].columns
    zero = [i for i in range(48) if held["value"][i] == held["low"][i] == held["high"][i] == 0]
    assert zero, "an interval is cut to nothing"
    assert {counts[1][0].quality[i] for i in range(48) if held["value"][i] == 0} == {"too noisy to use"}
    plan, releases = counts
    page = report_of(plan, releases, budget=plan.charge)
    assert f"{counts[1][0].quality.count('too noisy to use')} of 48" in page


def test_what_is_cut_at_its_bounds_is_judged_by_its_noise() -> None:
    """A mean with a public number of rows: the noisy sum is far below 0, and the interval is [0, 0]."""
    frame = pd.DataFrame({"x": [0.0] * 40})
    schema = {"x": tacit.number(0, 100, missing=0)}
    unit = tacit.rows(neighbours="replace-one")
    with tacit.Curator(frame, protect=unit, schema=schema, budget=tacit.Pure(epsilon=1)) as curator:
        (one,) = curator.release(curator.preview([tacit.mean("x")], epsilon=0.1))
    parts = {**one.noisy.parts, "above": np.array(-(10**10))}
    noisy = dataclasses.replace(one.noisy, parts=parts)
    read = one.planned.assignment.read(one.planned.question, noisy, one.planned.ask.confidence)
    made = dataclasses.replace(one, noisy=noisy, estimate=read)
    assert [made.columns[n][0] for n in ("value", "low", "high")] == [0, 0, 0]
    assert made.quality == ["too noisy to use"]


def test_a_zero_that_no_unit_can_move_is_good() -> None:
    frame = pd.DataFrame({"x": [1.0] * 40})
    with tacit.Curator(
        frame, protect=tacit.rows(neighbours="replace-one"), schema={"x": tacit.number(0, 9)},
        budget=tacit.Pure(epsilon=1),
    ) as one:  # fmt: skip
        released = one.release(tacit.count(), epsilon=0.1)
    assert (released.columns["low"][0], released.columns["high"][0], released.quality) == (40, 40, ["good"])
    none = dataclasses.replace(released.estimate, **dict.fromkeys(("value", "low", "high"), np.zeros(1)))
    assert dataclasses.replace(released, estimate=none).quality == ["good"]


def test_an_old_record_keeps_the_words_of_its_rule(counts: tuple[Any, Any]) -> None:
    """Certificates bind the words: a replay of what the first rule judged says what it said."""
    one = counts[1][0]
    assert one.certificate["data"]["quality_rule"] == 2
    old = dataclasses.replace(
        one, data={k: v for k, v in one.data.items() if k != "quality_rule"}, _certified={}
    )
    held = old.columns
    for i, word in enumerate(old.quality):
        value, far = (
            held["value"][i],
            max(held["high"][i] - held["value"][i], held["value"][i] - held["low"][i]),
        )
        said = (
            "good" if far <= 0.25 * value else "use with care" if far <= 0.5 * value else "too noisy to use"
        )
        assert word == said
    assert old.quality != one.quality
    assert "before it is cut" in rule_of(one).sentence
    assert "before it is cut" not in rule_of(old).sentence


# --- what a ledger says ------------------------------------------------------------------------------------
PLAN = """
data = { path = "survey.csv", table = "survey" }
protect = { unit = "rows" }
schema.age = { kind = "number", low = 0, high = 120 }
budget = { epsilon = 3.0, delta = 1e-6 }
ledger = { path = "survey.ledger" }
"""
SPENT = "spend = {{ epsilon = {}, delta = 1e-7 }}\n"
TEN = [f'{{ kind = "count", name = "c{i}", where = "age >= {i}" }}' for i in range(10)]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "survey.csv").write_text("age\n" + "".join(f"{i % 90}\n" for i in range(500)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ten(epsilon: float, *, first: int = 0) -> None:
    Path("plan.toml").write_text(PLAN + SPENT.format(epsilon) + f"release = [{', '.join(TEN[first:])}]\n")


def test_a_declaration_is_shown_with_the_charge_that_declares_it(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A later plan was chosen after the first was seen: nothing says that all releases were fixed in advance."""
    for number in (0, 1):
        ten(0.9, first=number)
        assert main(["release", "plan.toml", "--out", f"out{number}"]) == 0
    capsys.readouterr()
    assert main(["ledger", "show", "survey.ledger"]) == 0
    shown = capsys.readouterr().out
    assert "in advance" not in shown
    assert shown.count("of this plan were fixed before any of them was made") == 2
    lines = shown.splitlines()
    for at in (i for i, line in enumerate(lines) if "declared, and not checked" in line):
        assert lines[at].startswith("          "), "below its charge"
    assert main(["ledger", "show", "survey.ledger", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [c["declared"] for c in told["charges"]] == [
        ["the parameters of all releases were fixed in advance"]
    ] * 2
    assert [d.partition(":")[0] for d in told["declared"]] == [
        f"charge {c['sequence']}" for c in told["charges"]
    ]


def test_one_of_ten_is_withdrawn_and_nine_stand(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ten(0.9)
    assert main(["release", "plan.toml", "--out", "out"]) == 0
    capsys.readouterr()
    assert main(["ledger", "withdraw", "survey.ledger", "1", "--note", "wrong", "--release", "c3"]) == 0
    said = capsys.readouterr().out
    assert "release 'c3' of charge 1 is withdrawn" in said
    assert "its other releases stay valid" in said
    assert main(["verify", "out", "--ledger", "survey.ledger"]) == 1
    *_, gone = capsys.readouterr().out.splitlines()
    assert "'c3'" in gone
    assert gone.startswith("withdrawn or replaced since")
    assert "of the other 9 releases everything that could be checked holds" in gone
    assert main(["verify", "out", "--ledger", "survey.ledger", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["made"], told["fallen"]) == (False, True, ["c3"])
    # One that was changed is not excused by one that was withdrawn.
    file = Path("out/values/c4.csv")
    file.write_text(file.read_text().replace("value", "VALUE"))
    assert main(["verify", "out", "--ledger", "survey.ledger"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("this release was changed")


def test_all_of_a_charge_are_withdrawn(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ten(0.9, first=8)
    assert main(["release", "plan.toml", "--out", "out"]) == 0
    capsys.readouterr()
    assert main(["ledger", "withdraw", "survey.ledger", "1", "--note", "wrong"]) == 0
    assert capsys.readouterr().out.startswith("charge 1 is withdrawn; the charge stays paid (")
    assert main(["verify", "out", "--ledger", "survey.ledger"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].endswith("but was withdrawn or replaced since")


def test_a_cell_is_judged_by_its_farther_end() -> None:
    """An end that is far away counts whole, on either side, and a cut interval counts as far as before the cut."""
    near, far = np.array([10.0, 10.0]), np.array([30.0, 11.0])
    ends = Estimate(value=near, low=np.array([9.0, -30.0]), high=far)
    assert ends.farthest.tolist() == [20.0, 40.0]
    cut = Estimate(value=near, low=near, high=near, reach=np.array([7.0, 0.0]))
    assert cut.farthest.tolist() == [7.0, 0.0]
