"""`tacit inspect --private`: an ordinary release. Its charge is what is drawn, by neighbours from the definition."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
import tacit.statistics as ask
from tacit.audit import opinion_on_certificate
from tacit.curator import custodian as looking_privately
from tacit.guarantees import Unit
from tacit.ledger import Ledger, overview
from tacit.sources import Schema, open_table

Say = Callable[..., tuple[int, str, str]]
KEY = b"0123456789abcdef-secret"
SCHEMA = {
    "state": tacit.category(["Bremen", "Hessen"]), "level": tacit.category([1, 2]), "income": tacit.number(0, 50),
    "age": tacit.integer(0, 99), "born": tacit.date("1950-01-01", "1999-12-31"), "flag": tacit.flag(),
}  # fmt: skip
ROW = ["p", "Bremen", "1", "10", "30", "1970-01-01", "yes"]
ODD = [
    ["q", "Zerzura", "7", "1e300", "-5", "2099-01-01", "perhaps"], ["q", "", "", "", "", "", ""],
    ["q", "bremen", "1.5", "nan", "99999999999999999999", "1899-13-41", "y"], ["q", '"', "x", "inf", "0x1", "0", "\0"],
]  # fmt: skip


def written(path: Path, rows: list[list[str]]) -> Path:
    path.write_text("\n".join([",".join(["who", *SCHEMA]), *(",".join(r) for r in rows), ""]))
    return path


@pytest.mark.parametrize(
    "unit",
    [
        tacit.rows(), tacit.rows(neighbours="replace-one"), tacit.people("who", at_most=2),
        tacit.people("who", at_most=2, neighbours="replace-one"),
    ],
    ids=str,
)  # fmt: skip
def test_no_unit_moves_what_is_drawn_by_more_than_is_paid_for(
    tmp_path: Path, unit: Unit, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[Any] = []
    real = tacit.Curator.release

    def noted(self: tacit.Curator, asked: Any, **price: Any) -> Any:
        plans.append(self.preview(asked, **price))
        return real(self, asked, **price)

    monkeypatch.setattr(looking_privately.Curator, "release", noted)
    base = [["p" + str(i), *ROW[1:]] for i in range(20)]
    with tacit.Curator(
        written(tmp_path / "t.csv", base), protect=unit, schema=SCHEMA, budget=tacit.Pure(epsilon=1),
        ledger=tmp_path / "t.ledger",
    ) as survey:  # fmt: skip
        releases = tacit.inspect_privately(survey, epsilon=Fraction(1, 4))
        charges = overview(survey.ledger)["charges"]
    assert [c["charge"]["epsilon"] for c in charges] == [0.25]
    assert all(opinion_on_certificate(r.certificate).confirmed for r in releases)
    (plan,) = plans
    assert sum(r.guarantee.bound.epsilon for r in plan.releases) <= 0.25 * (1 + 1e-12)
    questions = [r.question for r in plan.releases]

    def truth(rows: list[list[str]]) -> list[dict[str, Any]]:
        with open_table(
            written(tmp_path / "other.csv", rows), schema=Schema(plan.schema), unit=unit
        ) as table:
            return ask.read(table, questions, key=KEY)

    own = 1 if "row" in str(unit).split(",")[0] else 4
    replaced = "replaced" in str(unit)
    other = truth([*base, ["q", *ROW[1:]]] if replaced else base)
    for first in range(4 if own == 1 else 2):
        one = truth([*base, *(ODD[(first + k) % 4] for k in range(own))])
        for question, a, b in zip(questions, one, other, strict=True):
            moved = sum(float(np.abs(a[part] - b[part]).sum()) for part in a)
            assert moved <= question.sensitivity.l1, question
    assert questions


def test_a_crash_after_the_charge_leaves_it_and_says_one_fixed_sentence(
    tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "t.csv", [ROW, ODD[0]])
    (tmp_path / "plan.toml").write_text(
        'data = { path = "t.csv" }\nprotect = { unit = "rows" }\nbudget = { epsilon = 1.0 }\n'
        'schema.state = { kind = "category", keys = ["Bremen"] }\nrelease = [{ kind = "count" }]\n'
    )
    line = ("inspect", tmp_path / "plan.toml", "--private", "--epsilon", "0.5")

    def broken(*_: object, **__: object) -> None:
        raise MemoryError("Zerzura")

    with monkeypatch.context() as patch:
        patch.setattr("tacit.sources.query._passes", broken)
        code, out, error = say(*line)
    assert (code, out) == (3, "")
    assert "could not be read" in error
    assert "Zerzura" not in error
    with Ledger.open(tmp_path / "t.ledger") as ledger:
        found = overview(ledger)
    assert [(c["state"], c["charge"]["epsilon"]) for c in found["charges"]] == [("failed", 0.5)]
    assert found["looks"] == []
    assert say(*line)[0] == 0, "asking again is a new charge, which fits"
    assert say(*line)[0] == 0, "and then it is on record, free"
    with Ledger.open(tmp_path / "t.ledger") as ledger:
        assert ledger.spent() == tacit.Pure(epsilon=1.0)


def test_whoever_has_a_share_pays_from_it_and_four_eyes_hold(tmp_path: Path, say: Say) -> None:
    from tacit.curator.certificate import SigningKey, make_key

    written(tmp_path / "t.csv", [ROW] * 50)
    (tmp_path / "plan.toml").write_text(
        'data = { path = "t.csv" }\nprotect = { unit = "rows" }\nbudget = { epsilon = 1.0, analyst = "bob" }\n'
        'shares.bob = { epsilon = 0.2 }\nschema.age = { kind = "integer", low = 0, high = 9 }\n'
        'release = [{ kind = "count" }]\n'
    )
    plan = tmp_path / "plan.toml"
    code, _, error = say("inspect", plan, "--private", "--epsilon", "0.3")
    assert (code, "the share of 'bob' does not cover it" in error) == (1, True)
    assert say("inspect", plan, "--private", "--epsilon", "0.1")[0] == 0
    assert say("inspect", plan)[0] == 1, "exact numbers are for no share"
    make_key(tmp_path / "ada.key")
    with Ledger.open(tmp_path / "t.ledger") as ledger:
        ledger.enrol("bob", "analyst")
        ledger.enrol("ada", "approver", key=SigningKey.read(tmp_path / "ada.key").public.text)
        ledger.demand(True)
        code, out, error = say("inspect", plan, "--private", "--epsilon", "0.05")
        assert (code, out) == (1, "")
        assert "nobody approved it; nothing was charged" in error
        assert ledger.spent() == tacit.Pure(epsilon=0.1)


def test_columns_of_any_name_are_looked_at(tmp_path: Path, say: Say) -> None:
    """A column may have a name that no file can have, or two that some systems take for one."""
    names = ["a b", "a-b", "x/y", "CON", "con.x", "..", "v" * 90, "v" * 91]
    (tmp_path / "t.csv").write_text(",".join(names) + "\n" + ",".join("1" * len(names)) + "\n")
    with tacit.Curator(
        tmp_path / "t.csv", protect=tacit.rows(), schema={n: tacit.integer(0, 9) for n in names},
        budget=tacit.Pure(epsilon=1), ledger=tmp_path / "t.ledger",
    ) as survey:  # fmt: skip
        found = [r.name for r in tacit.inspect_privately(survey, epsilon=1)]
    assert len(set(found)) == 2 * len(names)
    assert found[:4] == ["a b outside", "a b missing", "a-b 2 outside", "a-b 2 missing"]


def test_json_and_words_are_the_same_release(tmp_path: Path, say: Say) -> None:
    written(tmp_path / "t.csv", [ROW] * 50)
    (tmp_path / "plan.toml").write_text(
        'data = { path = "t.csv" }\nprotect = { unit = "rows" }\nbudget = { epsilon = 1.0 }\n'
        'schema.age = { kind = "integer", low = 0, high = 9 }\nrelease = [{ kind = "count" }]\n'
    )
    line = ("inspect", tmp_path / "plan.toml", "--private", "--epsilon", "0.5")
    words, found = say(*line)[1], json.loads(say(*line, "--json")[1])
    assert found["spent"] == {"epsilon": 0.5}, "the second answer is from the record"
    for share in found["shares"]:
        assert f"{share['value']:.1%}" in next(x for x in words.splitlines() if x.startswith(share["name"]))
