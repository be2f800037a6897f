"""Certificates and values that somebody changed with care: every digest is made again, and there is no ledger to ask.

Without a ledger or a key nobody can tell one noisy number from another. What can be told from the folder alone must be:
what plan.toml says, too, words that nothing gives, and ends and quality that do not fit their own values.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from support.forged import bind, false, forge, looked, write
from tacit.cli import main
from tacit.exact.canonical import sha256

PLAN = """
[data]
path = "t.csv"
version = "3"
table = "visits"
[protect]
unit = "people"
column = "id"
at_most = 2
[schema]
state = { kind = "category", keys = ["CA", "NY", "TX"] }
town = { kind = "category" }
age = { kind = "integer", low = 0, high = 99 }
day = { kind = "date", low = "2020-01-01", high = "2020-12-31" }
[budget]
epsilon = 90.0
delta = 1e-2
[ledger]
path = "t.ledger"
[[release]]
name = "counts"
kind = "count"
by = "state"
epsilon = 1.0
[[release]]
name = "towns"
kind = "count"
by = "town"
epsilon = 2.0
delta = 1e-5
[[release]]
name = "sum"
kind = "sum"
column = "age"
epsilon = 1.0
[[release]]
name = "means"
kind = "mean"
column = "age"
by = "state"
epsilon = 1.0
[[release]]
name = "days"
kind = "quantiles"
column = "day"
at = [0.25, 0.5]
epsilon = 4.0
[[release]]
name = "alone"
kind = "median"
column = "age"
interval = false
epsilon = 4.0
[[release]]
name = "density"
kind = "density"
columns = ["age"]
size = 400
epsilon = 4.0
delta = 1e-6
"""


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that tacit wrote."""
    place, draw, n = tmp_path_factory.mktemp("forged"), np.random.default_rng(1), 400
    table = pa.table({
        "id": draw.integers(0, 250, n), "state": [["CA", "NY", "TX"][v] for v in draw.integers(0, 3, n)],
        "town": [f"t{v}" for v in draw.integers(0, 6, n)], "age": draw.integers(0, 100, n),
        "day": [f"2020-{m:02d}-11" for m in draw.integers(1, 13, n)],
    })  # fmt: skip
    pa.csv.write_csv(table, place / "t.csv")
    (place / "plan.toml").write_text(PLAN)
    assert main(["release", str(place / "plan.toml"), "--out", str(place / "out")]) == 0
    return place / "out"


@pytest.fixture
def folder(honest: Path, tmp_path: Path) -> Path:
    shutil.copytree(honest, tmp_path / "out")
    return tmp_path / "out"


def test_the_honest_folder_holds(honest: Path) -> None:
    assert not false(honest)


def test_what_is_written_again_without_a_change_holds(folder: Path) -> None:
    for name in ("counts", "towns", "sum", "means", "days", "density"):
        write(folder, name, lambda rows: None)
    assert not false(folder)


PLACES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another file": lambda data: data.update(files={"protected": [["other.csv"]]}),
    "one more file": lambda data: data["files"]["protected"][0].append("u.csv"),
    "one more table": lambda data: data["files"].update(public=[["u.csv"]]),
    "no table": lambda data: data["files"].update(protected=[]),
    "files of no form": lambda data: data.update(files=7),
    "files that are texts": lambda data: data.update(files={"protected": "t.csv"}),
    "no files": lambda data: data.pop("files"),
    "another version": lambda data: data.update(version="4"),
    "no version": lambda data: data.pop("version"),
    "another table": lambda data: data.update(table="calls"),
}


@pytest.mark.parametrize("name", PLACES)
def test_files_and_version_are_those_of_the_plan(folder: Path, name: str) -> None:
    forge(folder, "counts", lambda said: PLACES[name](said["data"]))
    assert any("files, table and version of plan.toml" in one for one in false(folder))


WORDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "values": lambda said: said["values"].update(audited="yes"),
    "ledger": lambda said: said["ledger"].update(audited="yes"),
    "data": lambda said: said["data"].update(sworn=True),
    "intervals": lambda said: said["intervals"].update(simultaneous=True),
    "no moment": lambda said: said["ledger"].pop("time"),
    "no answer": lambda said: said["ledger"].pop("answer"),
    "no engine": lambda said: said["data"].pop("engine"),
    "another rule": lambda said: said["data"].update(quality_rule=3),
    "a rule that is none": lambda said: said["data"].update(quality_rule="2"),
}


@pytest.mark.parametrize("name", WORDS)
def test_parts_have_no_words_of_their_own_and_all_of_theirs(folder: Path, name: str) -> None:
    def change(said: dict[str, Any]) -> None:
        WORDS[name](said)

    forge(folder, "counts", change)
    if name in ("ledger", "no moment", "no answer"):  # the manifest has it, too
        listed = json.loads((folder / "manifest.json").read_text())
        WORDS[name](listed)
        bind(folder / "manifest.json", listed)
    assert false(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said["error"].update(within=said["error"]["within"] * 0.98),
        lambda said: said["error"].update(confidence=0.99),
        lambda said: said["price_of_privacy"].update(ratio=1.0),
        lambda said: said["price_of_privacy"].update(reason="nobody does better"),
    ],
)
def test_an_expected_error_that_this_version_would_not_tell_is_not_taken_as_checked(
    folder: Path, change: Callable[[dict[str, Any]], Any]
) -> None:
    what = "certificates/counts.json claims what plan.toml gives"
    assert [f.holds for f in looked(folder) if f.what == what] == [True]
    forge(folder, "counts", change)
    assert [f.holds for f in looked(folder) if f.what == what] == [None]


def _put(column: int, text: Callable[[list[str]], str]) -> Callable[[list[list[str]]], Any]:
    return lambda rows: rows[1].__setitem__(column, text(rows[1]))


def _all(*puts: tuple[int, Callable[[list[str]], str]]) -> Callable[[list[list[str]]], Any]:
    return lambda rows: [_put(*one)(rows) for one in puts]


VALUE, LOW, HIGH, QUALITY = -4, -3, -2, -1
ENDS: dict[str, tuple[str, Callable[[list[list[str]]], Any]]] = {
    "a low end above its value": ("means", _put(LOW, lambda row: row[HIGH])),
    "a high end below its value": ("means", _put(HIGH, lambda row: row[LOW])),
    "a day before its interval": ("days", _put(VALUE, lambda row: "2020-01-01")),
    "a narrow count": ("counts", _put(HIGH, lambda row: str(int(row[HIGH]) - 3))),
    "a count without noise": ("counts", _all((LOW, lambda row: row[VALUE]), (HIGH, lambda row: row[VALUE]))),
    "a wide count": ("counts", _put(LOW, lambda row: str(int(row[LOW]) - 3))),
    "a narrow town": ("towns", _put(LOW, lambda row: str(int(row[LOW]) + 3))),
    "a narrow sum": ("sum", _put(HIGH, lambda row: row[VALUE])),
    "a word that its ends deny": (
        "counts",
        _all((VALUE, lambda row: "0"), (LOW, lambda row: "-6"), (HIGH, lambda row: "6")),
    ),
    "a word that flatters a mean": ("means", _put(LOW, lambda row: "0.0")),
    "a value called none": ("means", _put(QUALITY, lambda row: "no value")),
    "a good median without an interval": ("alone", _put(QUALITY, lambda row: "good")),
    "an interval that nobody bought": (
        "alone", _all((LOW, lambda row: row[VALUE]), (HIGH, lambda row: row[VALUE])),
    ),
    "a word that flatters a day": (
        "days", _all((LOW, lambda row: "2019-01-01"), (HIGH, lambda row: "2021-12-31"), (QUALITY, lambda row: "good")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_ends_and_quality_fit_their_values_and_the_noise(folder: Path, name: str) -> None:
    release, change = ENDS[name]
    write(folder, release, change)
    found = false(folder)
    assert any("fit its values" in one for one in found)


def test_a_value_that_has_an_interval_is_not_said_to_have_none(folder: Path) -> None:
    path = folder / "values" / "means.csv"
    path.write_text(
        path.read_text().replace("too noisy to use", "no interval").replace("good", "no interval")
    )
    forge(folder, "means", lambda said: said["values"].update(sha256=sha256(path.read_bytes())))
    assert any("does not belong to its rule" in one for one in false(folder))


FUNCTIONS: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "another number": ("density", lambda f: f["numbers"].__setitem__(0, f["numbers"][0] * 0.98)),
    "one number less": ("density", lambda f: f["numbers"].pop()),
    "another grid": ("density", lambda f: f.update(spacing="1/2")),
    "another column": ("density", lambda f: f.update(columns=["pay"])),
    "a word": ("density", lambda f: f.update(audited=True)),
    "none": ("density", lambda f: f.clear()),
    "one where there is none": ("counts", lambda f: f.update(columns=["age"], spacing="1", numbers=[1.0])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_function_of_a_certificate_is_the_one_that_is_shown(folder: Path, name: str) -> None:
    release, change = FUNCTIONS[name]
    forge(folder, release, lambda said: change(said.setdefault("function", {})))
    assert any("the function of" in one for one in false(folder))


def test_a_certificate_without_its_function_does_not_hold(folder: Path) -> None:
    forge(folder, "density", lambda said: said.pop("function"))
    assert any("the function of" in one for one in false(folder))


@pytest.mark.parametrize("release", ["counts", "density"])
def test_a_choice_has_no_words_of_its_own(folder: Path, release: str) -> None:
    forge(
        folder, release, lambda said: said["choice"]["assignment"]["price"]["epsilon"].update(audited="yes")
    )
    assert any("claims what plan.toml gives" in one for one in false(folder))
