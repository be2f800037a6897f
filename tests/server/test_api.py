"""The interface for programs: its description, the client in Python, curl and R, and fuzzed bad questions."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

import tacit
from support.servers import ROWS, Served, table_of
from tacit.server.app import ROUTES
from tacit.server.client import words_of

ROOT = Path(__file__).parents[2]


def test_the_description_has_every_path_and_points_nowhere_else(desk_server: Served) -> None:
    said = httpx.get(f"{desk_server.url}/api/v1/openapi.json").json()
    assert said["openapi"] == "3.1.0"
    listed = {(m.upper(), p) for p, ms in said["paths"].items() for m in ms}
    assert listed == {(r.method, r.path) for r in ROUTES if r.api}
    names = [one["operationId"] for ms in said["paths"].values() for one in ms.values()]
    assert len(set(names)) == len(names)
    for reference in re.findall(r"'\$ref': '#/([^']+)'", str(said)):
        place: Any = said
        for part in reference.split("/"):
            place = place[part]
    for path, methods in said["paths"].items():
        for one in methods.values():
            assert one["summary"]
            assert {p["name"] for p in one.get("parameters", ())} == set(re.findall(r"\{(\w+)\}", path))


def test_a_curator_from_afar(desk_server: Served) -> None:
    survey = tacit.connect(desk_server.url, token=desk_server.token("andy"), table="people")
    ask = tacit.count(by="region")
    plan = survey.preview(ask, epsilon=0.05)
    assert "no mechanism below" in str(plan)
    assert plan.charge.bound.parameters == {"epsilon": 0.05}
    assert survey.fit(plan)["fits"]
    before = survey.remaining["epsilon"]
    answer = survey.release(plan)
    assert list(answer.table.columns) == ["region", "value", "low", "high"]
    assert str(answer).startswith("count-by-region")
    assert "<table" in answer._repr_html_()
    assert answer.guarantee.bound.parameters == {"epsilon": 0.05}
    assert survey.remaining["epsilon"] == pytest.approx(before - 0.05)
    again = survey.release(ask, epsilon=0.05)
    assert again.replayed
    assert again.columns == answer.columns
    two = survey.release([tacit.count(), tacit.mean("age")], epsilon=0.04)
    assert [r.name for r in two] == ["count", "mean-age"]
    low, high = two[0].interval
    assert low < two[0].value < high
    made_up = survey.release(ask, epsilon=1, rehearsal=True)
    assert made_up.made_up
    assert any(r["state"] == "done" for r in survey.releases())


def test_errors_from_afar_are_those_of_the_library(desk_server: Served) -> None:
    survey = tacit.connect(desk_server.url, token=desk_server.token("andy"), table="people")
    with pytest.raises(tacit.BudgetExceeded, match="does not cover"):
        survey.release(tacit.count(), epsilon=3)
    with pytest.raises(tacit.errors.UnknownColumn):
        survey.preview(tacit.mean("wage"), epsilon=0.1)
    with pytest.raises(tacit.errors.InvalidParameter, match="no default"):
        survey.preview(tacit.count())
    with pytest.raises(tacit.errors.InvalidParameter):
        survey.preview({"kind": "count", "given": {"random_data": 0.1}}, epsilon=0.1)
    with pytest.raises(tacit.errors.TooManyCells):
        survey.preview({"kind": "histogram", "column": "income", "bins": 30_000}, epsilon=0.1)
    with pytest.raises(tacit.errors.NotAllowed):
        tacit.connect(desk_server.url, token="tacit_wrong", table="people")
    with pytest.raises(tacit.errors.InvalidParameter, match="https"):
        tacit.connect("http://desk.example.org", token="tacit_x")


@pytest.mark.parametrize("ask", [
    tacit.count(by=["region", tacit.bins("age", [0, 10, 20])], where="region = 'north' and age > 3", of="people"),
    tacit.quantiles("age", at=[0.5, 0.9]), tacit.proportion("age > 3", by="region"), tacit.margins(["region", "age"]),
    tacit.contingency(["region", tacit.bins("age", 3)]), tacit.standard_deviation("age"), tacit.variance("age"),
    tacit.histogram("age", bins=[0, 50, 110], by="region"), tacit.histogram("age", bins=4), tacit.ranges("age", bins=5),
    tacit.query(tacit.median("income", "region"), interval=False),
    tacit.query(tacit.sum("income"), name="all", weight=2, consistent=False), tacit.query(tacit.count(), within=50),
], ids=str)  # fmt: skip
def test_a_statistic_is_sent_in_words_that_give_it_back(ask: Any) -> None:
    from tacit.curator.plan_files import asks_in

    [found] = asks_in([words_of(ask)])
    assert found.statistic == getattr(ask, "statistic", ask)
    if isinstance(ask, tacit.Query):
        assert found.price == ask.price


def bad(luck: random.Random) -> Any:
    words: dict[str, Any] = {
        "kind": luck.choice(["count", "mean", "sum", "median", "nothing", "", "histogram"])
    }
    odd = [
        None,
        -1,
        0,
        2**60,
        "nan",
        "p7",
        "north",
        [],
        {},
        [[1]],
        True,
        "\x00",
        "../x",
        "x'; DROP TABLE x",
        "é" * 30,
    ]
    for _ in range(luck.randrange(1, 4)):
        word = luck.choice(
            ["by", "column", "where", "bins", "at", "of", "rows", "name", "epsilon", "given", "path"]
        )
        words[word] = luck.choice(
            [*odd, "age", "person", "age > ", "age > 1e999", "region = 'x' or", "person = 'p7'"]
        )
    spend = luck.choice(
        [{"epsilon": luck.choice([0.1, -1, "1", None, 1e300])}, None, [], {"rho": 1}, {"epsilon": 9}]
    )
    return luck.choice(
        [{"releases": [words], "spend": spend}, {"releases": words}, [words], {"releases": []}, "x"]
    )


def test_bad_questions_about_neighbours_get_identical_answers(desk_server: Served) -> None:
    """Responses are functions of declarations and ledger: a person less and an odd row more change no byte."""
    odd = ROWS.replace("p7,25,north,1049\n", "") + 'p99999999999999999999,1e400,"n\u00f6rth",-2\n,,,\n'
    for name, rows in (("first", ROWS), ("other", odd)):
        table_of(desk_server.desk, name, rows=rows)
    head = {"Authorization": f"Bearer {desk_server.token('andy')}"}
    client = desk_server.client()
    luck = random.Random(5)
    for _ in range(80):
        asked, verb = bad(luck), luck.choice(["preview", "preview", "preview", "request"])
        told = []
        for name in ("first", "other"):
            found = client.post(f"/api/v1/tables/{name}/{verb}", json=asked, headers=head)
            body = re.sub(r'"job":"[^"]*"', "", found.text)
            told.append((found.status_code, body.replace(f"Table {name}", "").replace(name, "NAME")))
            assert "1e400" not in body
            assert "p9999" not in body
        # The digest of a request names the table's files; everything else is equal.
        assert told[0][0] == told[1][0]
        one, two = (re.sub(r'"(digest|plan)":"[0-9a-f]{64}"', "", body) for _, body in told)
        assert one == two


@pytest.mark.parametrize("script", ["server.sh", "server.R"])
def test_the_examples_run(desk_server: Served, script: str) -> None:
    command = ["sh"] if script.endswith(".sh") else ["Rscript"]
    needs = "curl" if script.endswith(".sh") else "Rscript"
    if shutil.which(needs) is None:
        pytest.skip(f"needs {needs}")
    if (
        needs == "Rscript"
        and subprocess.run(
            ["Rscript", "-e", "library(httr2); library(jsonlite)"], capture_output=True
        ).returncode
    ):
        pytest.skip("needs the R packages httr2 and jsonlite")
    given = {"SERVER": desk_server.url, "TOKEN": desk_server.token("andy"), "TABLE": "people"}
    found = subprocess.run(
        [*command, str(ROOT / "examples" / script)],
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert found.returncode == 0, found.stderr
    assert "north" in found.stdout


def test_the_unit_file_and_the_page_name_options_that_exist() -> None:
    text = (ROOT / "examples" / "tacit-serve.service").read_text()
    for option in ("--folder", "--host", "--port"):
        assert option in text
        assert f"`{option}" in (ROOT / "docs" / "cli.md").read_text()
