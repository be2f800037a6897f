"""`tacit explain CERTIFICATE`: it warns of what is not bound, and odd files end in one sentence."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.cli import main
from tacit.curator.certificate import bound

PLAN = """
[data]
path = "t.parquet"
[protect]
unit = "people"
column = "who"
at_most = 2
[schema.x]
kind = "integer"
low = 0
high = 9
[budget]
epsilon = 2.0
delta = 1e-6
[ledger]
path = "t.ledger"
[[release]]
kind = "mean"
name = "m"
column = "x"
epsilon = 0.5
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explained")
    pq.write_table(pa.table({"x": [1, 2, 3] * 50, "who": list(range(150))}), folder / "t.parquet")
    (folder / "plan.toml").write_text(PLAN)
    assert main(["release", str(folder / "plan.toml"), "--out", str(folder / "out")]) == 0
    return folder / "out"


def explained(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, list[str]]:
    capsys.readouterr()
    assert main(["explain", str(path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert main(["explain", str(path), "--json"]) == 0
    return text, json.loads(capsys.readouterr().out)["doubts"]


def test_an_unsigned_certificate_is_never_beyond_doubt(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, doubts = explained(out / "certificates/m.json", capsys)
    assert len(doubts) == 1
    assert "not signed" in doubts[0]
    assert text.startswith("Warning: this certificate is not signed")


def test_an_edited_epsilon_is_noticed(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = json.loads((out / "certificates/m.json").read_text())
    said["guarantee"]["bound"]["epsilon"] = 0.01
    (tmp_path / "values").mkdir()
    (tmp_path / "certificates").mkdir()
    (tmp_path / "values/m.csv").write_bytes((out / "values/m.csv").read_bytes())
    path = tmp_path / "certificates/m.json"
    path.write_text(json.dumps(said))
    text, doubts = explained(path, capsys)
    assert text.startswith("Warning: THIS CERTIFICATE WAS CHANGED")
    assert "digest" in doubts[0]


def test_edited_values_are_noticed(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "values").mkdir()
    (tmp_path / "certificates").mkdir()
    path = tmp_path / "certificates/m.json"
    path.write_bytes((out / "certificates/m.json").read_bytes())
    text, _ = explained(path, capsys)
    assert "not beside it" in text
    (tmp_path / "values/m.csv").write_text((out / "values/m.csv").read_text() + "1\n")
    text, _ = explained(path, capsys)
    assert "THE VALUES WERE CHANGED" in text


def test_a_certificate_that_binds_nothing_is_read_with_a_warning(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = json.loads((out / "certificates/m.json").read_text())
    for name in ("digest", "values", "noise_source"):
        del said[name]
    said["format"] = "tacit certificate 1"
    (tmp_path / "m.json").write_text(json.dumps(said))
    text, doubts = explained(tmp_path / "m.json", capsys)
    assert "binds nothing" in text
    assert len(doubts) == 1


def test_test_noise_and_conditions_are_said(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = json.loads((out / "certificates/m.json").read_text())
    said["publishable"] = False
    said["data"]["conditions"] = ["the view fails for no row \x1b[31m"]
    (tmp_path / "m.json").write_text(json.dumps(bound(said)))
    text, _ = explained(tmp_path / "m.json", capsys)
    assert "must not be published" in text
    assert "Believed, and not checked: the view fails for no row" in text
    assert "\x1b" not in text


ODD_TEXTS = {
    "empty": b"", "truncated": b'{"format": "tacit certificate 2", ', "a list": b"[1, 2]", "a number": b"5",
    "null": b"null",
    "nested 10^5": b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "nested objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "nested 100": b'{"format": "tacit certificate 2", "a": ' + b"[" * 100 + b"]" * 100 + b"}",
    "10^400": b'{"format": "tacit certificate 2", "a": 1' + b"0" * 400 + b"}",
    "5000 digits": b'{"a": ' + b"9" * 5000 + b"}", "1e999": b'{"a": 1e999}', "NaN": b'{"a": NaN}',
    "not UTF-8": b'{"a": "\xff"}', "twice": b'{"format": 1, "format": "tacit certificate 2"}', "a NUL": b'{"\0": 1}',
    "a surrogate": b'{"format": "tacit certificate 2", "name": "\\ud800"}',
}  # fmt: skip


@pytest.mark.parametrize("name", ODD_TEXTS)
def test_odd_files_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (tmp_path / "c.json").write_bytes(ODD_TEXTS[name])
    for command in (["explain", str(tmp_path / "c.json")], ["verify", str(tmp_path)]):
        (tmp_path / "manifest.json").write_bytes(ODD_TEXTS[name])
        assert main(command) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.startswith("tacit: ")
        assert told.err.count("\n") == 1


def test_what_is_no_file_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place in (tmp_path, tmp_path / "absent", "a\0b", "/dev/zero"):
        assert main(["explain", str(place)]) == 2
        assert capsys.readouterr().err.count("\n") == 1


ODD: list[Any] = [
    None, True, False, 0, -1, 1, 0.5, 1e308, -1e308, 10**400, 10**30, "", "x", "1", "\x1b[2J", "\ud800", [], {}, [[]],
    [1], {"a": 1}, "pure", "rows", "always", ["x"], {"bound": {}}, "tacit certificate 1", "2020-01-01",
]  # fmt: skip


def places(value: Any, at: tuple[Any, ...] = ()) -> Any:
    if at:
        yield at
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*at, key))


def test_hundreds_of_mutated_certificates_raise_nothing_of_pythons_own(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = json.loads((out / "certificates/m.json").read_text())
    luck, spots = random.Random(5), list(places(said))
    guarded = [
        s
        for s in spots
        if s[0] in ("guarantee", "mechanism", "intervals", "theorems", "data", "plan", "values")
    ]
    path, codes = tmp_path / "c.json", {0: 0, 1: 0, 2: 0}
    for number in range(160):
        odd = copy.deepcopy(said)
        for _ in range(luck.choice((1, 1, 2))):
            change(odd, luck.choice(guarded if number % 3 else spots), luck)
        path.write_text(json.dumps(odd))
        capsys.readouterr()
        codes[main(["explain", str(path), *(["--json"] if number % 2 else [])])] += 1
        told = capsys.readouterr()
        assert "\x1b" not in told.out + told.err
    assert codes[0] > 16
    assert codes[2] > 16


def change(said: Any, place: tuple[Any, ...], luck: random.Random) -> None:
    for step in place[:-1]:
        if not (isinstance(said, dict) and step in said) and not (
            isinstance(said, list) and step < len(said)
        ):
            return
        said = said[step]
    if isinstance(said, dict) or (isinstance(said, list) and place[-1] < len(said)):
        if luck.random() < 0.15:
            said.pop(place[-1], None) if isinstance(said, dict) else said.pop(place[-1])
        else:
            said[place[-1]] = luck.choice(ODD)


def test_mutated_certificates_and_manifests_are_verified_without_an_exception(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rebound, and the manifest with them, so that every later check meets the odd value."""
    import shutil

    folder, luck = tmp_path / "f", random.Random(6)
    shutil.copytree(out, folder)
    said, listed = (json.loads((out / n).read_text()) for n in ("certificates/m.json", "manifest.json"))
    for number in range(80):
        odd, whole = copy.deepcopy(said), copy.deepcopy(listed)
        if number % 4:
            change(odd, luck.choice(list(places(said))), luck)
        else:
            change(whole, luck.choice(list(places(listed))), luck)
        (folder / "certificates/m.json").write_text(json.dumps(bound(odd)))
        (folder / "manifest.json").write_text(json.dumps(bound(whole)))
        assert main(["verify", str(folder), "--ledger", str(out.parent / "t.ledger"), "--json"]) in (1, 2)
        told = capsys.readouterr()
        assert "\x1b" not in told.out + told.err


def test_a_certificate_of_a_later_version_is_said_to_be_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "later.json"
    path.write_text('{"format": "tacit certificate 99", "name": "x"}')
    assert main(["explain", str(path)]) == 2
    assert "another version of tacit" in capsys.readouterr().err
