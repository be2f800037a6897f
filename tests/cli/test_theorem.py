"""`tacit theorem` and `tacit explain --rho | --mu`: an id leads somewhere, and every number has words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tacit
from tacit.cli import main
from tacit.guarantees import THEOREMS, Concentrated, GaussianDP
from tacit.guarantees.guarantee import from_record

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("id", sorted(THEOREMS))
def test_a_theorem_names_the_page_of_its_proof(id: str) -> None:
    page = tacit.guarantees.theorem(id).page
    assert (ROOT / page).is_file()
    assert Path(page).stem == id


def test_it_says_what_an_id_stands_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theorem", "gdp-to-zcdp"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    one = tacit.guarantees.theorem("gdp-to-zcdp")
    for part in (one.statement, one.assumptions, one.source, "corrected", one.page):
        assert " ".join(part.split()) in told
    assert main(["theorem", "gdp-to-zcdp", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["id", "statement", "assumptions", "source", "standing", "page"]
    assert (found["statement"], found["page"]) == (one.statement, one.page)


def test_without_an_id_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theorem"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == list(THEOREMS)
    assert main(["theorem", "--json"]) == 0
    assert [t["id"] for t in json.loads(capsys.readouterr().out)["theorems"]] == list(THEOREMS)


def test_an_unknown_id_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theorem", "lapalce"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "tacit: unknown theorem 'lapalce'; did you mean 'laplace'?\n"


@pytest.mark.parametrize(
    ("option", "bound"), [("--rho", Concentrated(rho=0.5)), ("--mu", GaussianDP(mu=0.5))]
)
def test_rho_and_mu_are_explained(option: str, bound: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", option, "0.5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    guarantee = from_record(found["guarantee"])
    assert guarantee.bound == bound
    assert found["explanation"] == guarantee.explain()
    assert 0.05 < found["power_at_size_0.05"] < 1


@pytest.mark.parametrize(
    "wrong",
    [["--rho", "1", "--mu", "1"], ["--epsilon", "1", "--rho", "1"], ["--rho", "-1"], ["--mu", "nan"],
     ["--rho", "1", "--delta", "1e-6"]],
)  # fmt: skip
def test_what_contradicts_itself_is_bad_input(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *wrong]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
