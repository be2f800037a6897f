"""Plans of examples/, rehearsed on a twin from the command line to the report."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tacit.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every kind of function: planned, released, verified against its ledger, explained, drawn, and replayed free."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(EXAMPLES / "functions.toml", tmp_path / "functions.toml")
    twin = ["twin", "functions.toml", "--rows", "5000", "--people", "2500", "--out", "survey.parquet"]
    assert main(twin) == 0
    capsys.readouterr()
    assert main(["plan", "functions.toml", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert main(["release", "functions.toml", "--out", "out"]) == 0
    assert main(["verify", "out", "--ledger", "survey.ledger"]) == 0
    told = capsys.readouterr().out
    assert "DOES NOT HOLD" not in told
    certificates = {p.stem: json.loads(p.read_text()) for p in (tmp_path / "out/certificates").iterdir()}
    kinds = {c["statistic"]["kind"] for c in certificates.values()}
    assert {"density", "classifier", "regression_function", "count"} == kinds
    for name, said in certificates.items():
        assert ("function" in said) == (said["statistic"]["kind"] != "count")
        assert said["numerical_delta"] == 0.0
        assert main(["explain", f"out/certificates/{name}.json"]) == 0
    page = (tmp_path / "out/report.html").read_text()
    for words in ("a curve with a band", "a map", "bars with intervals", "either class", "alike everywhere"):
        assert words in page, words
    assert pq.read_table(tmp_path / "out/values/age-and-income.parquet").num_rows == 400
    first = (tmp_path / "out/values/ages.csv").read_text()
    assert main(["release", "functions.toml", "--out", "again"]) == 0
    assert "answered from the record, free" in capsys.readouterr().out
    assert (tmp_path / "again/values/ages.csv").read_text() == first
    # Somebody who changes one number of a function is found out.
    path = tmp_path / "out/certificates/ages.json"
    text = path.read_text()
    number = str(json.loads(text)["function"]["numbers"][0])
    path.write_text(text.replace(number, "1.5", 1))
    assert main(["verify", "out"]) == 1
    assert plan
