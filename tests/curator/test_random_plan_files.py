"""Plan files given random data: priced, carried out, verified, explained; and what is refused, with nothing charged."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.curator.plan_files import read_plan
from tacit.ledger import Ledger, looked

from .plans import Runner

PLAN = """
{given}

[data]
path = "rows.parquet"

[protect]
{protect}

[schema.c]
kind = "integer"
low = 0
high = 99

[schema.f]
kind = "flag"

[budget]
epsilon = 1.0
{gamma}

[spend]
epsilon = 0.6

{releases}
"""
RELEASES = """
[[release]]
kind = "count"
by = "c"
name = "by c"

[[release]]
kind = "count"
where = "f"
name = "few"

[[release]]
kind = "mean"
column = "c"
name = "mean"
"""
WHOLE = {
    "given": "given = { random_data = 0.1, rows = 8000 }", "gamma": "gamma = 0.1", "releases": RELEASES,
    "protect": 'unit = "rows"\nneighbours = "replace-one"',
}  # fmt: skip


def write(folder: Path, **changes: str) -> Path:
    random = np.random.default_rng(1)
    table = pa.table({"c": random.choice(16, 8000) * 6, "f": random.random(8000) < 0.002})
    pq.write_table(table, folder / "rows.parquet")
    path = folder / "plan.toml"
    path.write_text(PLAN.format(**(WHOLE | changes)))
    return path


def test_a_plan_from_its_price_to_its_verification(tmp_path: Path, run: Runner) -> None:
    path, out = write(tmp_path), tmp_path / "out"
    assert run("plan", path, "--json") == 0
    told = json.loads(run.out)
    assert told["charge"]["condition"] == {"kind": "random-data", "gamma": 0.1}
    assert told["budget"]["gamma"] == 0.1
    gammas = [r["guarantee"]["condition"].get("gamma") for r in told["releases"]]
    assert gammas == [0.05, 0.05, None]
    assert told["releases"][0]["error"]["differential_privacy"]["within"] == 30
    assert not list(tmp_path.glob("*.ledger"))
    assert run("plan", path) == 0
    assert "epsilon = 0.6, gamma = 0.1" in run.out
    assert "budget: epsilon = 1, gamma = 0.1" in run.out
    assert run("release", path, "--out", out, "--json") == 0
    said = json.loads(run.out)
    assert said["spent"] == pytest.approx({"epsilon": 0.6, "gamma": 0.1})
    assert said["remaining"] == pytest.approx({"epsilon": 0.4, "gamma": 0.0})
    assert run("verify", out, "--ledger", tmp_path / "rows.ledger") == 0
    assert run("explain", out / "certificates" / "by-c.json") == 0
    words = " ".join(run.out.split())
    assert "This is random differential privacy, not differential privacy" in words
    assert "Empty cells are exact, the others have noise." in words
    assert run("ledger", "show", tmp_path / "rows.ledger") == 0
    assert "spent   epsilon = 0.6 except with probability 0.1 over the data" in run.out
    assert "declared, and not checked: the rows are independent draws from one population" in run.out
    page = (out / "report.html").read_text()
    text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert "This is random differential privacy, which is weaker than differential privacy." in text
    assert "hold for each alike" not in text
    assert text.count("except with probability 0.05 over the data") >= 3
    assert "epsilon = 0.2, gamma = 0.05" in text


def test_a_condition_that_was_taken_out_is_found(tmp_path: Path, run: Runner) -> None:
    path, out = write(tmp_path), tmp_path / "out"
    assert run("release", path, "--out", out) == 0
    place = out / "certificates" / "by-c.json"
    said = json.loads(place.read_text())
    for change in (
        {"condition": "whatever the data are, whatever an adversary knows, and whatever they can compute"},
        {"guarantee": said["guarantee"] | {"condition": {"kind": "always"}}},
        {"random_data": said["random_data"] | {"exact_cells": 0}},
    ):
        place.write_text(json.dumps(said | change, indent=2, ensure_ascii=False) + "\n")
        assert run("verify", out, "--ledger", tmp_path / "rows.ledger") == 1
        assert "DOES NOT HOLD" in run.out.upper()


def test_a_release_has_a_gamma_of_its_own(tmp_path: Path) -> None:
    releases = RELEASES.replace('name = "few"', 'name = "few"\ngiven = { random_data = 0.02, rows = 8000 }')
    plan = read_plan(write(tmp_path, given="", releases=releases)).plan()
    assert [str(r.guarantee.condition)[:29] for r in plan.releases] == [
        "whatever the data are, whatev", "except with probability 0.02 ", "whatever the data are, whatev",
    ]  # fmt: skip
    releases = RELEASES.replace('name = "few"', 'name = "few"\ngiven = "always"')
    plan = read_plan(write(tmp_path, releases=releases)).plan()
    assert [str(r.assignment.to_dict().get("random_data", {}).get("random_data")) for r in plan.releases] == [
        "1/10", "None", "None",
    ]  # fmt: skip


REFUSED: list[tuple[dict[str, str], int, str]] = [
    *(
        ({"given": f"given = {{ random_data = {g} }}"}, 2, "random_data")
        for g in ("0", "1", "nan", "-0.1", '"x"')
    ),
    ({"given": "given = 0.1"}, 2, "given"),
    ({"given": "given = { gamma = 0.1 }"}, 2, "gamma"),
    ({"given": "given = { random_data = 0.1, rows = 1 }"}, 2, "at least 2"),
    ({"given": "given = { random_data = 0.1, independent = false }"}, 1, "dependent rows"),
    ({"gamma": ""}, 2, "grants a gamma"),
    ({"gamma": "gamma = 0"}, 2, "gamma"),
    ({"gamma": "gamma = 1.0"}, 2, "gamma"),
    ({"gamma": "gamma = nan"}, 2, "gamma"),
    ({"gamma": "gamma = 0.05"}, 1, "does not cover it"),
    ({"protect": 'unit = "rows"', "given": "given = { random_data = 0.1 }"}, 2, "rows"),
    ({"protect": 'unit = "people"\ncolumn = "c"\nat_most = 2'}, 1, "random differential privacy for"),
    ({"releases": '[[release]]\nkind = "median"\ncolumn = "c"'}, 1, "no mechanism"),
]


@pytest.mark.parametrize(("changes", "code", "words"), REFUSED, ids=[str(c)[:70] for c, _, _ in REFUSED])
def test_what_is_refused_leaves_nothing_behind(
    tmp_path: Path, run: Runner, changes: dict[str, str], code: int, words: str
) -> None:
    path = write(tmp_path, **changes)
    assert run("release", path, "--out", tmp_path / "out") == code
    assert words in run.err
    assert run.err.count("\n") == 1
    assert "Traceback" not in run.err
    assert not (tmp_path / "out").exists()
    for ledger in tmp_path.glob("*.ledger"):
        assert Ledger.open(ledger).entries() == ()


def test_a_second_plan_file_is_refused_unless_it_declares(tmp_path: Path, run: Runner) -> None:
    first: dict[str, Any] = {"given": "given = { random_data = 0.05, rows = 8000 }"}
    assert run("release", write(tmp_path, **first), "--out", tmp_path / "one") == 0
    other = RELEASES.replace('name = "few"', 'name = "other"')
    spend = {"releases": other.replace('kind = "mean"', 'kind = "sum"')}
    path = write(tmp_path, **first, **spend)
    path.write_text(path.read_text().replace("epsilon = 0.6", "epsilon = 0.3"))
    assert run("release", path, "--out", tmp_path / "two") == 1
    assert "second plan" in run.err
    declared = {"given": "given = { random_data = 0.05, rows = 8000, fixed_before = true }"}
    path = write(tmp_path, **declared, **spend)
    path.write_text(path.read_text().replace("epsilon = 0.6", "epsilon = 0.3"))
    assert run("release", path, "--out", tmp_path / "two") == 0
    assert run("verify", tmp_path / "two", "--ledger", tmp_path / "rows.ledger") == 0


def test_after_a_look_at_the_data_only_a_recorded_plan_is_paid_for(tmp_path: Path, run: Runner) -> None:
    path, other = write(tmp_path), {"releases": RELEASES.replace('name = "few"', 'name = "other"')}
    assert run("plan", path, "--record") == 0
    with Ledger.open(tmp_path / "rows.ledger") as ledger:
        looked(ledger, analyst="curator")
    write(tmp_path, **other)
    assert run("release", path, "--out", tmp_path / "two") == 1
    assert "after a look at the data" in run.err
    assert not (tmp_path / "two").exists()
    with Ledger.open(tmp_path / "rows.ledger") as ledger:
        assert not ledger.charges()
    write(tmp_path)
    assert run("release", path, "--out", tmp_path / "one") == 0
    assert run("verify", tmp_path / "one", "--ledger", tmp_path / "rows.ledger") == 0
