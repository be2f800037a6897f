"""`tacit plan`, `release` and `explain`, as a program reads them and as a person does."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.curator.plan_files import read_plan
from tacit.guarantees.guarantee import from_record
from tacit.ledger import Ledger

from .plans import COUNT, MARKS, MEAN, Runner, write


def files(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_a_plan_is_priced_without_data(tmp_path: Path, run: Runner) -> None:
    plan = write(tmp_path, data="is not there.parquet")
    assert run("plan", plan) == 0
    assert "mean income" in run.out
    assert "nothing was read" in run.out
    assert run("plan", plan, "--json") == 0
    said = json.loads(run.out)
    assert list(said) == [
        "plan", "digest", "unit", "budget", "charge", "in_budget_terms", "charged_by", "releases", "fit",
    ]  # fmt: skip
    assert [r["name"] for r in said["releases"]] == ["count-by-state", "mean income"]
    assert from_record(said["charge"]).bound.epsilon == 0.5
    for release in said["releases"]:
        assert {"statistic", "cells", "guarantee", "mechanism", "error", "price_of_privacy"} <= set(release)
    assert not (tmp_path / "survey.ledger").exists(), "a price is asked without opening a ledger"


def test_a_release_writes_its_files(tmp_path: Path, run: Runner) -> None:
    plan, out = write(tmp_path), tmp_path / "new" / "out"
    assert run("release", plan, "--out", out) == 0
    assert run.err == ""
    found = files(out)
    for name in ("count-by-state", "mean-income"):
        assert {f"values/{name}.csv", f"values/{name}.parquet", f"certificates/{name}.json"} <= set(found)
    assert "plan.toml" in found
    assert (out / "plan.toml").read_text() == plan.read_text()
    assert not [p for p in out.parent.iterdir() if p.name.startswith(".tacit")]
    head, *lines = (out / "values/mean-income.csv").read_text().splitlines()
    assert head == "state,value,low,high,quality"
    assert [line.split(",")[0] for line in lines] == ["CA", "NY", "TX"]
    arrow = pq.read_table(out / "values/mean-income.parquet")
    assert arrow.column_names == ["state", "value", "low", "high", "quality"]
    assert [str(v) for v in arrow["value"].to_pylist()] == [line.split(",")[1] for line in lines]
    certificate = json.loads((out / "certificates/mean-income.json").read_text())
    assert certificate["plan"]["digest"] == read_plan(plan).plan().digest
    assert certificate["publishable"] is True
    for name in found:
        if not name.endswith((".parquet", ".png")):
            text = (out / name).read_text()
            assert not [m for m in MARKS if m in text], name
    assert not [m for m in MARKS if m in run.out]


def test_a_second_run_is_free_and_gives_the_same(tmp_path: Path, run: Runner) -> None:
    plan = write(tmp_path)
    assert run("release", plan, "--out", tmp_path / "a", "--json") == 0
    first = json.loads(run.out)
    keys = [
        "out",
        "charged",
        "released",
        "files",
        "charge",
        "replayed",
        "corrections",
        "replaces",
        "spent",
        "remaining",
    ]
    assert list(first) == keys
    assert first["replayed"] is False
    assert all(Path(f).is_file() for f in first["files"])
    assert run("release", plan, "--out", tmp_path / "b", "--json") == 0
    again = json.loads(run.out)
    assert again["replayed"] is True
    assert again["spent"] == first["spent"]
    assert again["spent"]["epsilon"] == 0.5
    for name in ("count-by-state", "mean-income"):
        one, other = (tmp_path / f / "values" / f"{name}.csv" for f in "ab")
        assert one.read_bytes() == other.read_bytes()
    assert run("release", plan, "--out", tmp_path / "c", "--key", "next week", "--json") == 0
    assert json.loads(run.out)["spent"]["epsilon"] == 1.0
    assert run("release", plan, "--out", tmp_path / "d", "--key", "too much") == 1
    assert "what is left" in run.err or "left" in run.one_sentence()
    assert not (tmp_path / "d").exists()


def test_another_price_is_another_request(tmp_path: Path, run: Runner) -> None:
    plan = write(tmp_path, releases=COUNT)
    digests = {read_plan(plan).plan().digest, read_plan(plan).plan().digest}
    assert len(digests) == 1, "the same plan has the same digest"
    assert run("release", plan, "--out", tmp_path / "a") == 0
    for change in (
        COUNT.replace("0.25", "0.26"),
        COUNT.replace("epsilon = 0.25", "epsilon = 0.25\ninterval = 0.9"),
        COUNT.replace('kind = "count"', 'kind = "count"\nwhere = "age < 50"'),
        COUNT + 'name = "another name"',
    ):
        write(tmp_path, releases=change)
        digests.add(read_plan(plan).plan().digest)
    write(tmp_path, releases=COUNT, bounds="low = 0\nhigh = 240000")
    digests.add(read_plan(plan).plan().digest)
    assert len(digests) == 6
    write(tmp_path, releases=COUNT.replace("0.25", "0.26"))
    assert run("release", plan, "--out", tmp_path / "b", "--json") == 0
    said = json.loads(run.out)
    assert said["replayed"] is False
    assert said["spent"]["epsilon"] == 0.51
    ledger = Ledger.open(tmp_path / "survey.ledger")
    assert len({c.key for c in ledger.charges()}) == 2


def test_one_key_is_one_request(tmp_path: Path, run: Runner) -> None:
    """A key that was used for another question is not answered with that question's answer."""
    plan = write(tmp_path, releases=COUNT)
    assert run("release", plan, "--out", tmp_path / "a", "--key", "k", "--json") == 0
    write(tmp_path, releases=MEAN)
    code = run("release", plan, "--out", tmp_path / "b", "--key", "k", "--json")
    if code == 0:
        assert json.loads(run.out)["replayed"] is False
    else:
        assert code == 2
        run.one_sentence()


def test_explain_says_it_in_words_and_in_json(tmp_path: Path, run: Runner) -> None:
    plan, out = write(tmp_path), tmp_path / "out"
    assert run("release", plan, "--out", out) == 0
    certificate = out / "certificates" / "mean-income.json"
    assert run("explain", certificate) == 0
    assert "mean income with epsilon = 0.25" in run.out
    assert "do not cover" in " ".join(run.out.split())
    assert "This rests on" in run.out
    assert run("explain", certificate, "--json", "--plot", tmp_path / "m.png") == 0
    said = json.loads(run.out)
    assert said["name"] == "mean income"
    assert said["guarantee"] == json.loads(certificate.read_text())["guarantee"]
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    for name in said["theorems"]:
        assert tacit.guarantees.theorem(name)


@pytest.mark.parametrize(
    ("right", "wrong", "names"),
    [
        ("[budget]", "[budgets]", "budget"),
        ('kind = "mean"', 'kind = "maen"', "mean"),
        ("column =", "colum =", "column"),
        ('unit = "rows"', 'unit = "row"', "rows"),
        ("epsilon = 1.0", "epsilom = 1.0", "epsilon"),
        ("high = 9999", "hihg = 9999", "high"),
        ('kind = "integer"', 'kind = "intger"', "integer"),
        ('column = "income"', 'column = "incme"', "income"),
        ('by = "state"', 'by = "sate"', "state"),
    ],
)
def test_a_typo_names_the_nearest_word(
    tmp_path: Path, run: Runner, right: str, wrong: str, names: str
) -> None:
    plan = write(tmp_path)
    text = plan.read_text()
    assert right in text
    plan.write_text(text.replace(right, wrong))
    assert run("plan", plan) == 2
    said = run.one_sentence()
    assert names in said
    assert run("release", plan, "--out", tmp_path / "out") == 2
    assert run.one_sentence() == said
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "survey.ledger").exists()


def test_an_interrupted_release_says_what_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while rows are read: exit 130, one sentence, no folder, the charge on the ledger."""
    from tacit.cli import main

    plan = tmp_path / "plan.toml"
    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "t.parquet")
    plan.write_text(
        '[data]\npath = "t.parquet"\n[protect]\nunit = "rows"\n[schema.x]\nkind = "integer"\nlow = 0\nhigh = 9\n'
        '[budget]\nepsilon = 1.0\n[[release]]\nkind = "count"\nepsilon = 0.5\n'
    )

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tacit.Curator, "_read", stop)
    assert main(["release", str(plan), "--out", str(tmp_path / "out")]) == 130
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "stays" in told
    assert not (tmp_path / "out").exists()
    with Ledger.open(tmp_path / "t.ledger") as ledger:
        assert float(ledger.spent().epsilon) == 0.5
