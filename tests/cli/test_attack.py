"""`tacit attack`: every attack from files, what it says, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.cli import main

ROOT = Path(__file__).parents[2]
FIRST = """zip,age,condition
130**,<30,AIDS
130**,<30,Heart Disease
130**,<30,Viral Infection
130**,3*,Cancer
130**,3*,Cancer
"""
SECOND = """zip,age,condition
130**,<35,AIDS
130**,<35,Flu
130**,>=35,Cancer
"""
KNOWN = ["--quasi", "zip,age", "--sensitive", "condition"]


@pytest.fixture
def tables(tmp_path: Path) -> tuple[str, str]:
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text(FIRST, encoding="utf-8")
    second.write_text(SECOND, encoding="utf-8")
    return str(first), str(second)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["attack", *arguments, "--json"]) == 0
    out = capsys.readouterr()
    assert out.err == ""
    found: dict[str, Any] = json.loads(out.out)
    assert found["not_for_publication"] is True
    assert {"attack", "people", "exposed", "share", "guessing", "alone", "found"} <= set(found)
    return found


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["attack", *arguments]) == 2
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.count("\n") == 1
    assert out.err.startswith("tacit: ")
    return out.err


def test_groups_and_intersections(tables: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tables
    found = told(capsys, "homogeneity", first, *KNOWN)
    assert found["found"] == [{"who": 3, "learned": "Cancer"}, {"who": 4, "learned": "Cancer"}]
    left = told(capsys, "background", first, *KNOWN, "--ruled-out", "Heart Disease", "--ruled-out", "AIDS")
    assert [f["who"] for f in left["found"]] == [2, 3, 4]
    moved = told(capsys, "skewness", first, *KNOWN, "--value", "AIDS", "--factor", "1.5")
    assert moved["exposed"] == 3
    both = told(capsys, "intersection", first, second, *KNOWN, "--person", "zip=13012,age=28")
    assert both["found"] == [{"who": 0, "learned": "AIDS"}]
    assert both["by_one_release"] == [0, 0]


def test_sentences_are_marked(tables: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attack", "homogeneity", tables[0], *KNOWN, "--show", "1"]) == 0
    out = capsys.readouterr().out
    assert "2 of 5 (40.0%)" in out
    assert "and 1 more" in out
    assert "Not for publication" in out


def test_linkage_and_histories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release, known = tmp_path / "release.parquet", tmp_path / "known.csv"
    pq.write_table(
        pa.table({"sex": ["f", "f", "m"], "code": ["1", "2", "1"], "ill": ["a", "b", "c"]}), release
    )
    known.write_text("name,sex,code\nAnn,f,2\nBob,m,9\n", encoding="utf-8")
    found = told(capsys, "linkage", str(release), str(known), "--quasi", "sex,code", "--sensitive", "ill")
    assert found["found"] == [{"who": 0, "learned": "b"}]
    seen, heard = tmp_path / "seen.csv", tmp_path / "heard.csv"
    lines = [f"p{i},common,2020-01-{i + 1:02d}" for i in range(9)]
    seen.write_text("person,film,day\np1,rare,2021-03-01\n" + "\n".join(lines) + "\n", encoding="utf-8")
    heard.write_text("person,film,day\nAnn,rare,2021-03-09\nBob,none,2021-01-01\n", encoding="utf-8")
    found = told(
        capsys, "histories", str(seen), str(heard), "--item", "film", "--date", "day", "--eccentricity", "2"
    )
    assert found["found"] == [{"who": 0, "learned": "p1"}]


def test_reconstruction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = told(capsys, "counts", "--people", "40", "--noise-std", "0.3")
    assert made["people"] == 40
    assert made["right"] >= 39
    file = tmp_path / "questions.csv"
    file.write_text("Ann,Bob,answer\n1,1,1\n1,0,0\n0,1,1\n", encoding="utf-8")
    found = told(capsys, "counts", str(file), "--method", "linear program")
    assert [f["learned"] for f in found["found"]] == [0, 1]
    seven = told(capsys, "tables", str(ROOT / "examples" / "block-of-seven.toml"))
    assert (seven["unique"], seven["solutions"], seven["complete"]) == (True, 1, True)
    assert seven["found"][0]["learned"] == {"age": 8, "sex": "female", "race": "black", "status": "single"}


def test_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generator = np.random.default_rng(1)
    repeated, totals, noisy, study = (tmp_path / f"{n}.csv" for n in ("repeated", "totals", "noisy", "study"))
    repeated.write_text(
        "count\n" + "\n".join(str(7 + x) for x in generator.normal(0, 1, 400)) + "\n", encoding="utf-8"
    )
    assert told(capsys, "averaging", str(repeated))["found"] == [{"who": 0, "learned": 7.0}]
    totals.write_text("with,without\n10,9\n5,5\n", encoding="utf-8")
    assert [f["learned"] for f in told(capsys, "differencing", str(totals))["found"]] == [1, 0]
    u = generator.integers(1, 2**53, 200) / 2.0**53
    noisy.write_text(
        "value\n" + "\n".join(repr(float(1 + 10 * np.log(x))) for x in u) + "\n", encoding="utf-8"
    )
    found = told(capsys, "floating-point", str(noisy), "--noise-scale", "10", "--candidates", "0,1")
    assert found["share"] > 0.4
    assert {f["learned"] for f in found["found"]} == {1.0}
    shares = generator.uniform(0.1, 0.9, 3000)
    bits = (generator.random((21, 3000)) < shares).astype(int)
    lines = ["published,reference,inside,outside"]
    for f, p, a, b in zip(bits[:20].mean(axis=0), shares, bits[0], bits[20], strict=True):
        lines.append(f"{f},{p},{a},{b}")
    study.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert [f["who"] for f in told(capsys, "membership", str(study), "--size", "20")["found"]] == [0]


def test_bad_input_is_one_sentence(
    tables: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, _ = tables
    ragged, empty, broken = tmp_path / "ragged.csv", tmp_path / "empty.csv", tmp_path / "broken.toml"
    ragged.write_text("a,b\n1\n", encoding="utf-8")
    empty.write_text("", encoding="utf-8")
    broken.write_text("[[group]]\nnme = 3\n[attributes]\nsex = ['f']\n", encoding="utf-8")
    assert "UTF-8" not in refused(capsys, "homogeneity", str(tmp_path / "absent.csv"), *KNOWN)
    assert "line 2" in refused(capsys, "homogeneity", str(ragged), "--quasi", "a", "--sensitive", "b")
    assert "no header" in refused(capsys, "homogeneity", str(empty), "--quasi", "a", "--sensitive", "b")
    assert "quasi" in refused(capsys, "homogeneity", first, "--quasi", ",", "--sensitive", "condition")
    assert "sensitive" in refused(
        capsys, "homogeneity", first, "--quasi", "zip,condition", "--sensitive", "condition"
    )
    assert "colour" in refused(capsys, "homogeneity", first, "--quasi", "colour", "--sensitive", "condition")
    refused(capsys, "intersection", first, *KNOWN)
    refused(capsys, "intersection", first, *KNOWN, "--person", "height=3")
    refused(capsys, "tables", str(broken))
    refused(capsys, "tables", str(tmp_path / "absent.toml"))
    refused(capsys, "floating-point", first, "--column", "condition", "--noise-scale", "1")
    refused(capsys, "floating-point", first, "--column", "zip", "--noise-scale", "1", "--candidates", "x")
    refused(capsys, "counts", "--noise-std", "-1")
    refused(capsys, "counts", "--method", "magic", "--people", "4")
    refused(capsys, "averaging", first)
    refused(capsys, "membership", first, "--size", "3")


def test_a_column_twice_and_lists_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    twice, lists = tmp_path / "twice.parquet", tmp_path / "lists.parquet"
    pq.write_table(
        pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array(["u"])], ["a", "a", "c"]), twice
    )
    pq.write_table(pa.table({"a": [[1]], "c": ["u"]}), lists)
    for path, words in ((twice, "names a column twice"), (lists, "lists or records")):
        assert main(["attack", "homogeneity", str(path), "--quasi", "a", "--sensitive", "c"]) == 2
        said = capsys.readouterr().err
        assert words in said
        assert said.count("\n") == 1


def test_systems(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attack", "system", "--list", "--json"]) == 0
    names = json.loads(capsys.readouterr().out)["systems"]
    assert "set-sizes" in names
    assert main(["attack", "system", "set-sizes", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["claims"] == found["right"] == 50
    assert main(["attack", "system", "overlaps"]) == 0
    assert "of which 1 are true" in capsys.readouterr().out
    assert "set-sizes" in refused(capsys, "system", "set-size")
    refused(capsys, "system")
