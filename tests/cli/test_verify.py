"""`tacit verify`, `tacit key` and signed releases: what was changed is noticed, by whoever can notice it."""

from __future__ import annotations

import hashlib
import json
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.cli import main
from tacit.curator.certificate import bound, content_digest

PLAN = """
[data]
path = "t.parquet"
[protect]
unit = "rows"
[schema.state]
kind = "category"
keys = ["CA", "NY", "=1"]
[schema.day]
kind = "date"
low = "2020-01-01"
high = "2020-12-31"
[schema.age]
kind = "integer"
low = 0
high = 99
[budget]
epsilon = 4.0
delta = 1e-6
[ledger]
path = "t.ledger"
[[release]]
kind = "count"
name = "by state"
by = "state"
epsilon = 0.25
[[release]]
kind = "mean"
column = "day"
by = "state"
epsilon = 0.25
[[release]]
kind = "quantiles"
column = "age"
epsilon = 0.25
[[release]]
kind = "margins"
columns = ["state", "age"]
order = 1
consistent = true
epsilon = 0.25
"""
Change = Callable[[Path], None]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed release and an unsigned replay of it."""
    import datetime

    folder = tmp_path_factory.mktemp("made")
    days = [datetime.date(2020, 1 + i % 12, 1) for i in range(600)]
    states = [("CA", "NY", "=1")[i % 3] for i in range(600)]
    pq.write_table(
        pa.table({"state": states, "day": days, "age": [i % 90 for i in range(600)]}), folder / "t.parquet"
    )
    (folder / "plan.toml").write_text(PLAN)
    for name in ("key", "other"):
        assert main(["key", "make", str(folder / name)]) == 0
    assert (
        main(
            [
                "release",
                str(folder / "plan.toml"),
                "--out",
                str(folder / "signed"),
                "--sign",
                str(folder / "key"),
            ]
        )
        == 0
    )
    assert main(["release", str(folder / "plan.toml"), "--out", str(folder / "plain")]) == 0
    return folder


def verify(capsys: pytest.CaptureFixture[str], folder: Path, *more: object) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["verify", str(folder), *map(str, more), "--json"])
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    return code, json.loads(told.out) if told.out else {}


def wrong(told: dict[str, Any]) -> list[str]:
    return [f["what"] for f in told["findings"] if f["holds"] is False]


def test_what_was_made_holds(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("signed", "plain"):
        for more in ((), ("--ledger", made / "t.ledger")):
            code, told = verify(capsys, made / name, *more)
            assert (code, wrong(told)) == (0, [])
            assert told["ok"] is True
    code, told = verify(capsys, made / "signed", "--key", made / "key.pub", "--ledger", made / "t.ledger")
    assert code == 0
    assert [f for f in told["findings"] if f["holds"] is None] == [], (
        "with ledger and key nothing is left open"
    )
    assert main(["verify", str(made / "signed")]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("everything that could be checked holds: ")
    assert "not possible (--all lists them)" in line
    assert main(["verify", str(made / "signed"), "--all"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed[-1] == line
    assert any(one.startswith("not checked: ") for one in listed)
    assert line.split()[6] == str(sum(one.startswith("holds: ") for one in listed))


def test_a_replay_has_the_same_certificates_but_for_the_signature(made: Path) -> None:
    for path in sorted((made / "plain" / "certificates").iterdir()):
        other = json.loads((made / "signed" / "certificates" / path.name).read_text())
        assert other.pop("signature")["algorithm"] == "Ed25519"
        assert json.loads(path.read_text()) == other
        values = (made / "plain" / "values" / f"{path.stem}.csv").read_bytes()
        assert hashlib.sha256(values).hexdigest() == other["values"]["sha256"], "as sha256sum prints it"


def edit(path: Path, change: Callable[[dict[str, Any]], None], *, rebind: bool = False) -> None:
    said = json.loads(path.read_text())
    change(said)
    if rebind:
        said = {**bound(said), **({"signature": said["signature"]} if "signature" in said else {})}
    path.write_text(json.dumps(said))


def weaker(said: dict[str, Any]) -> None:
    said["guarantee"]["bound"]["epsilon"] = 0.001


def cover_up(folder: Path) -> None:
    """The manifest made anew over whatever is there now, as a careful forger would."""
    listed = json.loads((folder / "manifest.json").read_text())
    listed["files"] = {
        n: hashlib.sha256((folder / n).read_bytes()).hexdigest()
        for n in listed["files"]
        if (folder / n).exists()
    }
    (folder / "manifest.json").write_text(
        json.dumps({**bound(listed), **({"signature": listed["signature"]} if "signature" in listed else {})})
    )


def forge_values(folder: Path) -> None:
    """Values, certificate and manifest all changed, each with the right digest."""
    path = folder / "values" / "by-state.csv"
    head, first, *rest = path.read_text().splitlines()
    key, _, low, high, quality = first.split(",")
    path.write_text("\n".join([head, f"{key},777,{low},{high},{quality}", *rest]) + "\n")
    table = pq.read_table(folder / "values" / "by-state.parquet")
    changed = table.set_column(1, "value", pa.array([777, *table["value"].to_pylist()[1:]]))
    pq.write_table(changed, folder / "values" / "by-state.parquet")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    edit(folder / "certificates" / "by-state.json", lambda s: s["values"].update(sha256=digest), rebind=True)
    cover_up(folder)


def rewrite(name: str, old: str, new: str) -> Change:
    return lambda f: (f / name).write_text((f / name).read_text().replace(old, new)) and None


CERTIFICATE, PARQUET = "certificates/by-state.json", "values/by-state.parquet"
CHANGES: dict[str, tuple[Change, str]] = {
    "epsilon": (lambda f: edit(f / CERTIFICATE, weaker), "by-state.json has the digest"),
    "epsilon and digest": (lambda f: edit(f / CERTIFICATE, weaker, rebind=True), "what plan.toml gives"),
    "a value": (rewrite("values/by-state.csv", ",quality", ",no"), "values/by-state.csv"),
    "other values": (
        lambda f: shutil.copy(f / "values/quantiles-age.parquet", f / PARQUET) and None,
        PARQUET,
    ),
    "damaged values": (lambda f: (f / PARQUET).write_bytes(b"PAR1xx") and None, PARQUET),
    "a certificate less": (lambda f: (f / CERTIFICATE).unlink(), "by-state.json"),
    "two certificates swapped": (lambda f: swap(f), "bears the name"),
    "no certificate": (lambda f: (f / CERTIFICATE).write_text("{}") and None, "is a certificate"),
    "the plan": (rewrite("plan.toml", "0.25", "0.2"), "plan.toml"),
    "the report": (lambda f: (f / "report.html").write_text("<p>") and None, "report.html"),
    "the manifest": (lambda f: edit(f / "manifest.json", lambda s: s.update(plan="0")), "manifest.json has"),
    "another charge": (
        lambda f: edit(f / CERTIFICATE, lambda s: s["ledger"].update(sequence=3), rebind=True),
        "charge of the manifest",
    ),
}


def swap(folder: Path) -> None:
    one, other = folder / "certificates/by-state.json", folder / "certificates/quantiles-age.json"
    held = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(held)


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_is_noticed_and_named(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    change, says = CHANGES[name]
    shutil.copytree(made / "plain", tmp_path / "f")
    change(tmp_path / "f")
    code, told = verify(capsys, tmp_path / "f")
    assert code == 1
    assert told["ok"] is False
    assert any(says in what for what in wrong(told)), wrong(told)
    cover_up(tmp_path / "f")
    if name != "the report":
        code, told = verify(capsys, tmp_path / "f", "--ledger", made / "t.ledger")
        assert code == 1, "a manifest made anew does not hide it from whoever has the ledger"


def test_a_careful_forger_meets_the_ledger_and_the_signature(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("signed", "plain"):
        folder = tmp_path / name
        shutil.copytree(made / name, folder)
        forge_values(folder)
        code, told = verify(capsys, folder)
        assert code == 1, "whoever changes values and certificate must write all other files anew as well"
        assert any("is what is written of" in what for what in wrong(told)), wrong(told)
        code, told = verify(capsys, folder, "--ledger", made / "t.ledger")
        assert code == 1
        assert any("recorded answer" in what for what in wrong(told))
        code, told = verify(capsys, folder, "--key", made / "key.pub")
        assert code == 1
        assert any("by-state.json is signed" in what for what in wrong(told))


def test_a_signature_is_one_keys(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(capsys, made / "signed", "--key", made / "key.pub")[0] == 0
    assert verify(capsys, made / "signed", "--key", made / "other.pub")[0] == 1
    assert verify(capsys, made / "plain", "--key", made / "key.pub")[0] == 1, "not signed at all"


def test_a_signature_is_about_one_content(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Taken from another certificate, cut, or under another digest, it signs nothing."""
    other = json.loads((made / "signed/certificates/quantiles-age.json").read_text())["signature"]
    for signature in (
        other,
        {},
        None,
        5,
        {**other, "value": "zz"},
        {**other, "value": ""},
        {**other, "algorithm": "none"},
    ):
        folder = tmp_path / hashlib.sha256(repr(signature).encode()).hexdigest()[:8]
        shutil.copytree(made / "signed", folder)
        edit(folder / "certificates/by-state.json", lambda s, held=signature: s.update(signature=held))
        code, told = verify(capsys, folder, "--key", made / "key.pub")
        assert code == 1
        assert any("by-state.json is signed" in what for what in wrong(told))


def test_another_ledger_does_not_have_the_charge(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("t.parquet", "plan.toml"):
        shutil.copy(made / name, tmp_path / name)
    assert main(["release", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "out")]) == 0
    code, told = verify(capsys, made / "plain", "--ledger", tmp_path / "t.ledger")
    assert code == 1
    assert sum("the ledger has the charge" in what for what in wrong(told)) == 4


def test_what_is_no_release_is_bad_input(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "manifest.json").write_text('{"format": "tacit release 1", "files": {"../../secret": "0"}}')
    for arguments in (
        [tmp_path], [tmp_path / "absent"], [made / "plan.toml"],
        [made / "plain", "--key", made / "key"], [made / "plain", "--key", made / "plan.toml"],
        [made / "plain", "--ledger", tmp_path / "absent.ledger"],
    ):  # fmt: skip
        capsys.readouterr()
        assert main(["verify", *map(str, arguments)]) == 2
        told = capsys.readouterr()
        assert told.err.startswith("tacit: ")
        assert told.err.count("\n") == 1


# --- keys ----------------------------------------------------------------------------------------------
def test_a_private_key_is_the_owners_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["key", "make", str(tmp_path / "k"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert stat.S_IMODE((tmp_path / "k").stat().st_mode) == 0o600
    assert "PRIVATE" not in (tmp_path / "k.pub").read_text()
    assert len(said["fingerprint"]) == 64
    before = (tmp_path / "k").read_bytes()
    assert main(["key", "make", str(tmp_path / "k")]) == 2, "a key is never overwritten"
    assert (tmp_path / "k").read_bytes() == before


@pytest.mark.parametrize("bad", ["absent", "public", "plan", "open to others"])
def test_a_key_that_cannot_sign_is_found_before_the_charge(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], bad: str
) -> None:
    for name in ("t.parquet", "plan.toml", "key.pub", "key"):
        shutil.copy(made / name, tmp_path / name)
    (tmp_path / "key").chmod(0o644)
    path = {"absent": "none", "public": "key.pub", "plan": "plan.toml", "open to others": "key"}[bad]
    code = main(
        ["release", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "o"), "--sign", str(tmp_path / path)]
    )
    assert code == 2
    assert "--sign" in capsys.readouterr().err
    assert not (tmp_path / "t.ledger").exists()
    assert not (tmp_path / "o").exists()


def test_the_digest_of_a_content_ignores_the_order_of_its_words() -> None:
    assert content_digest({"a": 1, "b": [1, 2]}) == content_digest({"b": [1, 2], "a": 1, "digest": "x"})
    assert content_digest({"a": 1}) != content_digest({"a": "1"})
