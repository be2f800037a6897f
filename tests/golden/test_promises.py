"""Nothing that changes between two versions of the program makes an old question a new one, or an old release false.

The chooser prefers something else, every sentence is reworded, hash seed and locale are others: on the golden files,
and on releases of this version. No question is charged twice, and `tacit verify` raises no false alarm.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import tacit
from golden import make
from golden.test_golden import HERE, certificates, charges, sound, unpacked, values
from support.ledgers import child_environment
from tacit.cli import main
from tacit.curator import assignments, planning, text
from tacit.curator import planning as chooser
from tacit.curator import text as words
from tacit.curator.assignments import Assignment
from tacit.curator.charging import Price
from tacit.curator.plan_files import read_plan
from tacit.curator.request_0_1_0 import earlier_requests
from tacit.curator.verifying import verify_release
from tacit.errors import LedgerError
from tacit.guarantees import Guarantee
from tacit.statistics.base import Question

OLD = HERE / "0.1.0"
SOME = (
    "numbers_replaced",
    "ranks_rows",
    "keys_unknown",
    "exact_table",
    "functions",
    "random_data",
    "versions",
)


def another_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chooser that leaves half of every price unused: another mechanism for every question."""
    choose = chooser.choose

    def mutated(question: Question, price: Price, **more: Any) -> Assignment:
        if price.kind == "accuracy":
            return choose(question, replace(price, within=price.within * 2 if price.within else None), **more)
        return replace(choose(question, price.part(Fraction(1, 2)), **more), price=price)

    monkeypatch.setattr(planning, "choose", mutated)


def other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sentence is another one: why noise was chosen, what is asked, what it means, what intervals cover."""
    choose = planning.choose

    def reworded(question: Question, price: Price, **more: Any) -> Assignment:
        found = choose(question, price, **more)
        behind = found.reason.partition("; ")[2]
        return replace(found, reason="It was the best; " + behind if behind else "It was the best")

    monkeypatch.setattr(planning, "choose", reworded)
    monkeypatch.setattr(assignments, "compared", lambda name, errors: "It was the best")
    monkeypatch.setattr(words, "question_words", lambda statistic: "A question.")
    monkeypatch.setattr(Guarantee, "explain", lambda self, **more: "It is private.")
    monkeypatch.setattr(Assignment, "covers", property(lambda self: "most of it"))
    monkeypatch.setattr(text, "beyond_groups", lambda question: "")


def asked_again(folder: Path, one: dict[str, Any], again: Path) -> bool:
    """Is it answered from the record, with the same numbers? Otherwise it is refused; it is never charged."""
    ledger = str(folder / one["ledger"])
    before = charges(ledger)
    key = ["--key", one["key"]] if one["key"] else []
    code = main(["release", str(folder / one["plan"]), "--out", str(again), "--json", *key])
    assert charges(ledger) == before, "an old question was charged a second time"
    if code == 0:
        assert values(again) == values(folder / one["out"])
    return code == 0


@pytest.mark.parametrize("case", SOME)
def test_another_chooser_and_old_files(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = unpacked(OLD / f"{case}.tar.xz", tmp_path)
    another_choice(monkeypatch)
    for one in said["releases"]:
        out = tmp_path / one["out"]
        answered = asked_again(tmp_path, one, tmp_path / f"{one['out']}-again")
        assert answered or "may have been answered by 0.1.0" in capsys.readouterr().err
        sound(verify_release(out))
        sound(verify_release(out, ledger=str(tmp_path / one["ledger"])))
    capsys.readouterr()


def test_an_unsure_question_can_be_paid_again_under_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked(OLD / "python.tar.xz", tmp_path)
    another_choice(monkeypatch)
    folder = tmp_path / "approximate"
    with make.opened(folder, make.PYTHON["approximate"][1]) as curator:
        before = charges(folder / "survey.ledger")
        with pytest.raises(LedgerError, match="may have been answered by"):
            curator.release(tacit.count(by="state"), epsilon=Fraction(1, 3))
        with pytest.raises(LedgerError, match="may have been answered by"):
            curator.release(tacit.count(by="sex"), epsilon=0.25, key="first")
        assert charges(folder / "survey.ledger") == before
        assert not curator.release(tacit.count(by="state"), epsilon=Fraction(1, 3), key="again").replayed
        # What nobody asked before is a new question.
        assert not curator.release(tacit.count(where="age > 90"), epsilon=0.01).replayed
    assert charges(folder / "survey.ledger") == before + 2


@pytest.mark.parametrize("case", SOME)
def test_other_sentences_and_old_files(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = unpacked(OLD / f"{case}.tar.xz", tmp_path)
    other_words(monkeypatch)
    for one in said["releases"]:
        out, ledger = tmp_path / one["out"], str(tmp_path / one["ledger"])
        sound(verify_release(out))
        sound(verify_release(out, ledger=ledger))
        answered = asked_again(tmp_path, one, tmp_path / f"{one['out']}-again")
        assert answered
        if answered:
            sound(verify_release(tmp_path / f"{one['out']}-again", ledger=ledger))
    capsys.readouterr()


def test_the_number_of_the_version_is_no_part_of_a_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = unpacked(OLD / "numbers_rows.tar.xz", tmp_path)
    plans = [read_plan(tmp_path / one["plan"]).plan() for one in said["releases"]]
    monkeypatch.setattr(tacit, "__version__", "9.9.9")
    for one, before in zip(said["releases"], plans, strict=True):
        after = read_plan(tmp_path / one["plan"]).plan()
        assert after.digest == before.digest
        assert earlier_requests(after)[0].plan_digest == earlier_requests(before)[0].plan_digest
        assert asked_again(tmp_path, one, tmp_path / f"{one['out']}-again")
    capsys.readouterr()


CHANGES = [another_choice, other_words]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "wanted",
    [
        make.asks(*make.NUMBERS[:5], *make.RANKS, price="epsilon = 1.0\ndelta = 1e-8"),
        make.asks(*make.RANKS[:2], make.NUMBERS[1] + "\nwithin = 25", price=""),
        make.asks(
            f'kind = "density"\ncolumns = "age"\nsize = {make.ROWS}', price="epsilon = 1.0\ndelta = 1e-7"
        ),
    ],
    ids=["numbers", "shared", "functions"],
)
def test_releases_of_this_version(
    change: Callable[[pytest.MonkeyPatch], None],
    wanted: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The choice is stored: it is read again, with its numbers and its intervals, whatever would be chosen now."""
    make.write(make.survey(), tmp_path / "survey.parquet")
    spend = "[spend]\nepsilon = 4.0\ndelta = 1e-6\n"
    (tmp_path / "plan.toml").write_text(make.plan_text(wanted, protect=make.ROWS_REPLACED, more=spend))
    one = {"plan": "plan.toml", "out": "out", "key": "", "ledger": "survey.ledger"}
    assert main(["release", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "out")]) == 0
    before = read_plan(tmp_path / "plan.toml").plan()
    first = earlier_requests(before)[0].plan_digest
    change(monkeypatch)
    after = read_plan(tmp_path / "plan.toml").plan()
    assert after.digest == before.digest
    if change is another_choice:
        assert earlier_requests(after)[0].plan_digest != first
    assert asked_again(tmp_path, one, tmp_path / "again")
    for name, now in certificates(tmp_path / "again").items():
        then = certificates(tmp_path / "out")[name]
        for part in ("choice", "guarantee", "event", "plan", "values", "error", "data"):
            assert now[part] == then[part], (name, part)
    for folder in ("out", "again"):
        sound(verify_release(tmp_path / folder))
        sound(verify_release(tmp_path / folder, ledger=str(tmp_path / "survey.ledger")))
    capsys.readouterr()


def test_a_forged_choice_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half of the noise under the same bound: the account of what was run is larger than what is claimed."""
    from cli.test_verify_more import bind

    make.write(make.survey(), tmp_path / "survey.parquet")
    (tmp_path / "plan.toml").write_text(make.plan_text(make.asks(make.NUMBERS[1])))
    assert main(["release", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "out")]) == 0

    def smaller(said: dict[str, Any]) -> None:
        said["choice"]["assignment"]["noise"][0]["mechanism"]["noise_scale"] = {"fraction": "1"}

    bind(tmp_path / "out" / "certificates" / "by-state.json", smaller)
    wrong = [f.what for f in verify_release(tmp_path / "out").findings if f.holds is False]
    assert any("at most its stated price" in w for w in wrong)
    assert any("what plan.toml gives" in w for w in wrong)
    capsys.readouterr()


SCRIPT = """
import sys
from tacit.curator.plan_files import read_plan
from tacit.curator.request_0_1_0 import earlier_requests
for path in sys.argv[1:]:
    plan = read_plan(path).plan()
    print(plan.digest, earlier_requests(plan)[0].plan_digest)
"""


def test_hash_seed_and_locale(tmp_path: Path) -> None:
    plans = []
    for case in ("numbers_replaced", "ranks_replaced", "files"):
        unpacked(OLD / f"{case}.tar.xz", tmp_path / case)
        plans += [str(p) for p in sorted((tmp_path / case).glob("*.toml"))]
    said = set()
    for more in ({"PYTHONHASHSEED": "1", "LC_ALL": "C"}, {"PYTHONHASHSEED": "77", "LC_ALL": "tr_TR.UTF-8"}):
        words_of = [sys.executable, "-c", SCRIPT, *plans]
        done = subprocess.run(
            words_of,
            env={**os.environ, **child_environment(), **more},
            capture_output=True,
            text=True,
            check=True,
        )
        said.add(done.stdout)
    here = [read_plan(p).plan() for p in plans]
    assert said == {"".join(f"{p.digest} {earlier_requests(p)[0].plan_digest}\n" for p in here)}


def test_last_digits_of_computed_floats_are_those_of_the_machine() -> None:
    """Found by another numpy: expected errors differ in their last digits. What was run is compared exactly."""
    from tacit.curator.verifying import _same

    here, there = {"mean": [1.0, None]}, {"mean": [1.0 + 2e-16, None]}
    assert here != there
    assert _same("error", here, there)
    assert not _same("error", here, {"mean": [1.0 + 1e-6, None]})
    assert not _same("guarantee", here, there)
    assert not _same("mechanism", {"scale": "1"}, {"scale": "2"})
