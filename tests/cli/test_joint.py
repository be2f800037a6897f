"""`tacit joint`: a release by files, what is said before anyone joins, and bad input on every side."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tacit.cli import main
from tacit.curator.certificate import content_digest, json_text, make_key

NAMES = ("north", "south", "west")
SCHEMA = """
[schema.state]
kind = "category"
keys = ["a", "b", "c"]

[schema.age]
kind = "integer"
low = 0
high = 90
"""
PROTECT = '[protect]\nunit = "rows"\n'


def agreement(holders: tuple[str, ...] = NAMES, **more: str) -> str:
    given = {"epsilon": "0.5", "fewest": "2", "colluding": "0", "appearances": "1"} | more
    listed = "".join(f'[[holder]]\nname = "{n}"\nkey = "{n}.key.pub"\n' for n in holders)
    sizes = "".join(f"{k} = {given[k]}\n" for k in ("fewest", "colluding", "appearances"))
    return (
        f"{PROTECT}{SCHEMA}\n[spend]\nepsilon = {given['epsilon']}\n[joint]\n{sizes}{listed}"
        '[[release]]\nkind = "count"\nby = ["state"]\n[[release]]\nkind = "mean"\ncolumn = "age"\n'
    )


def plan(*, schema: str = SCHEMA, version: str = "2026-11", epsilon: str = "1.0") -> str:
    return f'[data]\npath = "visits.csv"\nversion = "{version}"\n{PROTECT}{schema}\n[budget]\nepsilon = {epsilon}\n'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three holders with tables, keys and plans; everybody has everybody's public key."""
    (tmp_path / "trusted").mkdir()
    for seed, name in enumerate(NAMES):
        rows, home = random.Random(seed), tmp_path / name
        home.mkdir()
        lines = [f"{rows.choice('abc')},{rows.randint(0, 90)}\n" for _ in range(200)]
        (home / "visits.csv").write_text("state,age\n" + "".join(lines))
        (home / "plan.toml").write_text(plan())
        make_key(tmp_path / f"{name}.key")
        shutil.copy(tmp_path / f"{name}.key.pub", tmp_path / "trusted")
    (tmp_path / "agreement.toml").write_text(agreement())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _put(*path: Any, to: Any) -> Callable[[Any], None]:
    def change(said: Any) -> None:
        for part in path[:-1]:
            said = said[part]
        said[path[-1]] = to

    return change


def _time(to: str) -> Callable[[Any], None]:
    return lambda said: (_put("made", to=to)(said), _put("ledger", "time", to=to)(said))[0]


FORGED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a time that is none": ("mean-age", _time("soon")),
    "another time than that of the others": ("mean-age", _time("2020-01-01T00:00:00+00:00")),
    "two times": ("mean-age", _put("made", to="2020-01-01T00:00:00+00:00")),
    "a package that is none": ("mean-age", _put("versions", "audited", to="yes")),
    "no versions": ("mean-age", _put("versions", to={})),
    "a version that is none": ("mean-age", _put("versions", "numpy", to="by hand")),
    "the first rule of quality": ("count-by-state", lambda said: said["data"].pop("quality_rule")),
    "a rule of quality that is none": ("count-by-state", _put("data", "quality_rule", to=True)),
    "a smaller epsilon": ("count-by-state", _put("guarantee", "bound", "epsilon", to=0.2)),
    "no condition": ("count-by-state", _put("guarantee", "condition", to={"kind": "always"})),
    "fewer colluding holders": ("count-by-state", _put("guarantee", "declared", to=[])),
    "all holders remained": ("count-by-state", _put("data", "joint", "remaining", to=[0, 1, 2])),
    "another commitment": ("count-by-state", _put("data", "joint", "commitments", "0", to="00" * 32)),
    "another session": ("count-by-state", _put("data", "joint", "session", to="00" * 32)),
    "other keys": ("count-by-state", _put("data", "joint", "holders", to=[])),
    "less noise": ("count-by-state", _put("mechanism", "noise", to=[])),
    "another answer": ("count-by-state", _put("ledger", "answer", to="00" * 32)),
    "a word": ("count-by-state", _put("audited", to="yes")),
    "not to be published": ("count-by-state", _put("publishable", to=False)),
}


class Said(dict):  # type: ignore[type-arg]
    code: int
    error: str


@pytest.fixture
def tacit(capsys: pytest.CaptureFixture[str]):
    def call(*words: object) -> Said:
        code = main([*map(str, words), "--json"])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        said = Said(json.loads(out) if out else {})
        said.code, said.error = code, err
        return said

    return call


def join(tacit, name: str, *more: str) -> Said:
    return tacit("joint", "join", "session", "--plan", f"{name}/plan.toml", "--key", f"{name}.key", "--trusted",
                 "trusted", "--state", f"{name}/state", "--out", "mail", *more)  # fmt: skip


def contribute(tacit, name: str, message: object) -> Said:
    return tacit("joint", "contribute", "session", message, "--plan", f"{name}/plan.toml", "--key", f"{name}.key",
                 "--state", f"{name}/state", "--out", "mail")  # fmt: skip


def combine(tacit, kind: str, *more: str) -> Said:
    files = sorted(str(p) for p in Path("mail").glob(f"{kind}-*.msg"))
    return tacit("joint", "combine", "session", *files, "--state", "agg", "--out", "mail", *more)


def begun(tacit, *commit: str) -> None:
    assert tacit("joint", "init", "agreement.toml", "--out", "session").code == 0
    for name in NAMES:
        assert join(tacit, name, *commit).code == 0
    assert combine(tacit, "keys")["closed"]


def until_sealed(tacit, *commit: str) -> None:
    begun(tacit, *commit)
    for i, name in enumerate(NAMES):
        assert contribute(tacit, name, f"mail/to-{i}-keys.msg")["charged"] is False
    assert combine(tacit, "shares")["closed"]
    for i, name in enumerate(NAMES):
        assert contribute(tacit, name, f"mail/to-{i}-shares.msg")["charged"] is False
    assert combine(tacit, "agree")["closed"]


@pytest.mark.slow
def test_a_release_from_agreement_to_verification(place: Path, tacit) -> None:
    said = tacit("joint", "init", "agreement.toml", "--out", "session")
    assert said["variance_ratio"] == 1.5
    assert said["charge"]["bound"] == {"kind": "pure", "epsilon": 0.5}
    assert any("collude" in d for d in said["charge"]["declared"])
    for name in NAMES:
        joined = join(tacit, name, "--commit")
        assert joined["charged"] is False
        assert joined["id"] == said["id"]
    commitments = {}
    for name in NAMES:  # again: the same message, the same commitment
        commitments[name] = join(tacit, name, "--commit")["commitment"]
    assert combine(tacit, "keys")["closed"]
    answers = {
        "keys": "shares",
        "shares": "agree",
        "agree": "masked",
        "masked": "confirm",
        "confirm": "reveal",
    }
    left = list(range(3))
    for kind, answer in answers.items():
        for i in left:
            told = contribute(tacit, NAMES[i], f"mail/to-{i}-{kind}.msg")
            assert told.code == 0
            assert told["kind"] == answer
            assert told["charged"] is (kind not in ("keys", "shares"))
        if answer == "masked":
            Path("mail/masked-1.msg").rename("lost.msg")  # south's vector is lost on the way
            waits = combine(tacit, answer)
            assert (waits["closed"], waits["missing"]) == (False, ["south"])
            left.remove(1)
        done = combine(tacit, answer, "--go-on")
        assert done["closed"]
    assert done["remaining"] == [0, 2]
    checked = tacit("joint", "verify", "session", "mail/release")
    assert checked["ok"]
    assert len(checked["findings"]) == 9
    certificate = json.loads(Path("mail/release/certificates/count-by-state.json").read_text())
    assert "X25519" in json.dumps(certificate["condition"])
    assert certificate["publishable"]
    assert certificate["data"]["joint"]["commitments"] == {
        "0": commitments["north"],
        "2": commitments["west"],
    }
    values = Path("mail/release/values/count-by-state.csv")
    true = sum(
        line.startswith("a,")
        for n in ("north", "west")
        for line in Path(n, "visits.csv").read_text().splitlines()
    )
    assert abs(float(values.read_text().splitlines()[1].split(",")[1]) - true) < 200
    # Any one altered thing is noticed: a value, a certificate, a message, a message left out.
    for path, old, new in (
        (values, ",quality", ",no"),
        (Path("mail/release/certificates/mean-age.json"), '"remaining"', '"Remaining"'),
    ):
        text = path.read_text()
        path.write_text(text.replace(old, new, 1))
        assert tacit("joint", "verify", "session", "mail/release").code == 1
        path.write_text(text)
    message = Path("mail/release/transcript/masked/0.msg")
    body = message.read_bytes()
    message.write_bytes(body[:-1] + bytes([body[-1] ^ 1]))
    assert tacit("joint", "verify", "session", "mail/release").code == 1
    message.unlink()
    assert tacit("joint", "verify", "session", "mail/release").code == 1
    message.write_bytes(body)
    assert tacit("joint", "verify", "session", "mail/release").code == 0
    for release, change in FORGED.values():
        path = Path(f"mail/release/certificates/{release}.json")
        text = path.read_text()
        said = json.loads(text)
        change(said)
        said["digest"] = content_digest({k: v for k, v in said.items() if k != "digest"})
        path.write_text(json_text(said) + "\n")
        assert tacit("joint", "verify", "session", "mail/release").code == 1
        path.write_text(text)
    for more in ("values/more.csv", "certificates/more.json"):
        Path("mail/release", more).write_text("{}")
        assert tacit("joint", "verify", "session", "mail/release").code == 1
        Path("mail/release", more).unlink()
    assert tacit("joint", "verify", "session", "mail/release").code == 0
    # Nobody is charged again for an answer that is asked for again.
    again = contribute(tacit, "north", "mail/to-0-shares.msg")
    assert again["spent"] == "epsilon = 0.5"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (agreement(("north",)), "between 2 and"),
        (agreement(("north", "south", "north")), "twice"),
        (agreement(("north", "south", "n\u043erth")), "not be read as"),
        (agreement(("north", "south", "west\u3164")), "shows nothing"),
        (agreement(fewest="4"), "fewest"),
        (agreement(fewest="1.5"), "whole number"),
        (agreement(colluding="2"), "fewest"),
        (agreement(epsilon="-1"), "epsilon"),
        (agreement().replace('kind = "mean"', 'kind = "median"'), "quantiles"),
        (agreement().replace("[joint]", "[joined]"), "joint"),
        (agreement().replace("fewest", "at_least"), "fewest"),
        (agreement().replace("[[holder]]", "[[owner]]"), "holder"),
        (agreement().replace("north.key.pub", "nowhere.pub"), "public key"),
        ("holder = 3\n" + agreement(()), "holder"),
        ("x" * 10, "TOML"),
    ],
)  # fmt: skip
def test_bad_agreements(place: Path, tacit, text: str, told: str) -> None:
    (place / "agreement.toml").write_text(text)
    said = tacit("joint", "init", "agreement.toml", "--out", "session")
    assert said.code in (1, 2)
    assert told in said.error
    assert not (place / "session" / "session.json").exists()


def test_who_may_not_join(place: Path, tacit) -> None:
    tacit("joint", "init", "agreement.toml", "--out", "session")
    (place / "north" / "plan.toml").write_text(plan(schema=SCHEMA.replace("90", "91")))
    assert "age" in join(tacit, "north").error
    (place / "north" / "plan.toml").write_text(plan(epsilon="0.4"))
    poor = join(tacit, "north")
    assert poor.code == 1
    assert "does not cover it" in poor.error
    # A session in which the aggregator plays south: its key is nobody's that north knows.
    (place / "trusted" / "south.key.pub").unlink()
    (place / "west" / "plan.toml").write_text(plan())
    strange = join(tacit, "west")
    assert strange.code == 2
    assert "south" in strange.error
    make_key(place / "east.key")
    shutil.copy(place / "north" / "visits.csv", place / "east.csv")
    said = tacit("joint", "join", "session", "--plan", "west/plan.toml", "--key", "east.key", "--trusted", "trusted",
                 "--state", "s", "--out", "mail")  # fmt: skip
    assert "key of one of the holders" in said.error
    assert not (place / "mail").exists()
    told = json.loads((place / "session" / "session.json").read_text())
    for name, changed in (("nonce", "00" * 32), ("keys", told["keys"][::-1]), ("format", "x"), ("keys", 5)):
        (place / "session" / "session.json").write_text(json.dumps({**told, name: changed}))
        assert "unchanged" in join(tacit, "west").error
    (place / "session" / "session.json").write_text(json.dumps(told))
    text = (place / "session" / "agreement.toml").read_text()
    (place / "session" / "agreement.toml").write_text(text.replace("0.5", "0.25"))
    assert "unchanged" in join(tacit, "west").error


@pytest.mark.slow
def test_data_and_versions_that_change_between_rounds(place: Path, tacit) -> None:
    until_sealed(tacit, "--commit")
    (place / "north" / "plan.toml").write_text(plan(version="2026-12"))
    said = contribute(tacit, "north", "mail/to-0-agree.msg")
    assert said.code == 2
    assert "version" in said.error
    assert "not charged" in said.error
    with (place / "south" / "visits.csv").open("a") as file:
        file.write("a,1\n")
    said = contribute(tacit, "south", "mail/to-1-agree.msg")
    assert "committed to" in said.error
    for i, name in ((0, "north"), (1, "south")):
        again = contribute(tacit, name, f"mail/to-{i}-agree.msg")
        assert again.code == 1
        assert "its ledger says" in again.error
        spent = tacit("ledger", "show", next((place / name).glob("*ledger*")))
        assert "0.5" not in json.dumps(spent.get("spent", ""))
    # Somebody else's message, and one of another kind.
    assert contribute(tacit, "west", "mail/to-0-agree.msg").code == 2
    assert contribute(tacit, "west", "mail/to-2-keys.msg").code == 0
    assert contribute(tacit, "west", "session/session.json").code == 2
    assert contribute(tacit, "west", "nowhere.msg").code == 2
    refused = combine(tacit, "masked", "--go-on")
    assert refused.code == 1
    assert "0 holders sent" in refused.error
    # Another message in its place is found when the holder is charged; the next time it is not charged again.
    Path("mail/masked-2.msg").write_bytes(b"another")
    for code in (3, 2):
        said = contribute(tacit, "west", "mail/to-2-agree.msg")
        assert said.code == code
        assert "not hold another message" in said.error


def test_all_drop_out_and_nobody_is_charged(place: Path, tacit) -> None:
    tacit("joint", "init", "agreement.toml", "--out", "session")
    said = combine(tacit, "keys", "--go-on")
    assert said.code == 1
    assert "nobody was charged" in said.error
    assert tacit("joint", "verify", "session", "nowhere").code == 1
    assert contribute(tacit, "north", "agreement.toml").code == 1
