"""`tacit query`: one question, charged and recorded as a plan of one; replay, refusals, files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tacit.cli import main

PLAN = """
[data]
path = "people.csv"
[protect]
unit = "rows"
[budget]
epsilon = 1.0
[schema.income]
kind = "number"
low = 0
high = 1000
[schema.region]
kind = "category"
keys = ["north", "south"]
[report]
title = "Incomes"
[report.releases]
"all" = "Everybody"
[[release]]
name = "all"
kind = "count"
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"income": rng.uniform(0, 1000, 400), "region": rng.choice(["north", "south"], 400)})
    table.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(w) for w in ("query", *words)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_sentence_and_flags_are_one_question(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, plan, "mean income by region", "--epsilon", 0.25, "--json")
    first = json.loads(out)
    assert code == 0
    assert first["charged"]
    assert first["spent"] == {"epsilon": 0.25}
    assert first["columns"]["region"] == ["north", "south"]
    assert all(
        a <= b <= c for a, b, c in zip(*(first["columns"][n] for n in ("low", "value", "high")), strict=True)
    )
    flags = ("--statistic", "mean", "--column", "income", "--by", "region")
    code, out, _ = run(capsys, plan, *flags, "--epsilon", 0.25, "--json")
    again = json.loads(out)
    assert code == 0
    assert again["replayed"]
    assert again["columns"] == first["columns"]
    assert again["spent"] == first["spent"]
    # The same release in the plan file itself is the same question, too.
    text = PLAN.replace(
        'name = "all"\nkind = "count"', 'kind = "mean"\ncolumn = "income"\nby = "region"\nepsilon = 0.25'
    )
    plan.write_text(text.replace('[report.releases]\n"all" = "Everybody"\n', ""))
    assert main(["release", str(plan), "--out", str(plan.parent / "whole"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["replayed"]


def test_a_preview_reads_nothing(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (plan.parent / "people.csv").write_text("nothing,of,this\n")
    code, out, _ = run(capsys, plan, "count by region", "--epsilon", 0.5, "--preview", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["query"] == {"kind": "count", "by": ["region"], "epsilon": 0.5}
    assert told["fit"]["fits"]
    assert not list(plan.parent.glob("*.ledger"))
    code, out, _ = run(capsys, plan, "count by region", "--epsilon", 2, "--preview")
    assert code == 1
    assert "DOES NOT FIT" in out


def test_its_folder_verifies(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = plan.parent / "out"
    code, _, _ = run(capsys, plan, "median income where income > 10", "--epsilon", 0.5, "--out", out)
    assert code == 0
    assert "Incomes" in (out / "report.html").read_text()
    assert main(["verify", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"]


def test_a_median_without_an_interval(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = plan.parent / "out"
    code, told, _ = run(
        capsys, plan, "median income by region", "--no-interval", "--epsilon", 0.5, "--out", out
    )
    assert code == 0
    assert "none were asked for" in told
    assert "not known" not in told
    assert "no interval" in (out / "values" / "quantiles-income-by-region.csv").read_text()
    assert main(["verify", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"]
    assert main(["export", "sdmx", str(out), "--out", str(plan.parent / "sdmx")]) == 0
    page = plan.parent / "nist.md"
    assert main(["export", "nist", str(out), "--out", str(page)]) == 0
    assert "No interval was asked for: quantiles-income-by-region" in page.read_text()
    capsys.readouterr()
    code, told, _ = run(capsys, plan, "median income by region", "--no-interval", "--epsilon", 0.5, "--json")
    assert json.loads(told)["replayed"]
    # With its interval it is another question, and is paid for.
    code, told, _ = run(capsys, plan, "median income by region", "--epsilon", 0.5, "--json")
    assert code == 0
    assert json.loads(told)["charged"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--statistic", "density", "--column", "income", "--epsilon", 1), "columns"),
        (("mean income", "--no-interval", "--epsilon", 1), "quantiles alone"),
        (("what is it", "--epsilon", 1), "must begin with one of: average, count"),
        (("",), "must begin with one of"),
        (("mean incom", "--epsilon", 1), "'income'"),
        (("mean income",), "--epsilon 0.1"),
        (("mean income by region", "--by", "region", "--epsilon", 1), "--by"),
        (("--statistic", "meen", "--column", "income", "--epsilon", 1), "'mean'"),
        (("--statistic", "mean", "--epsilon", 1), "column"),
        (("mean income where incom > 3", "--epsilon", 1), "income"),
        (("count", "--epsilon", 1, "--preview", "--out", "x"), "--preview"),
        (("count of people", "--epsilon", 1), "people"),
        (("count where region = '\udcff'", "--epsilon", 1), "UTF-8"),
    ],
)
def test_what_is_refused_costs_nothing(
    plan: Path, words: tuple[object, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, plan, *words)
    assert code == 2
    assert said in err
    assert not out
    assert not list(plan.parent.glob("*.ledger"))


def test_over_budget_is_refused(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, plan, "count", "--epsilon", 0.9)[0] == 0
    code, _, err = run(capsys, plan, "count by region", "--epsilon", 0.2)
    assert code == 1
    assert "left" in err
