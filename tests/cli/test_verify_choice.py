"""A release whose noise was not made for its question: everything else about it is right, and `verify` must see it.

The folder and the ledger are written by a program that was changed to choose too little noise, so that digests, events,
certificates and charges all agree with one another. Only the question can tell.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tacit.cli import main
from tacit.curator import charges
from tacit.curator import plan as planning
from tacit.curator.binding import content_digest
from tacit.curator.certificate import json_text
from tacit.curator.treatments import Treatment
from tacit.ledger.canonical import sha256
from tacit.mechanisms import L1, L2, Laplace, RoundedGaussian, Staircase

ROWS = 300
HEAD = """
[data]
path = "t.csv"
[protect]
unit = "people"
column = "id"
at_most = 5
[schema.state]
kind = "category"
keys = ["CA", "NY"]
[schema.sex]
kind = "category"
keys = ["f", "m"]
[schema.age]
kind = "integer"
low = 0
high = 99
[schema.pay]
kind = "number"
low = 0
high = 100
[budget]
epsilon = 90.0
delta = 1e-2
[ledger]
path = "t.ledger"
"""
COUNTS = '[[release]]\nkind = "count"\nname = "one"\nby = "state"\nepsilon = 1.0\n'
MEAN = '[[release]]\nkind = "mean"\nname = "one"\ncolumn = "pay"\nepsilon = 1.0\n'
RATIO = '[[release]]\nkind = "ratio"\nname = "one"\nnumerator = "pay"\ndenominator = "age"\nepsilon = 1.0\n'
ONE_NUMBER = '[[release]]\nkind = "sum"\nname = "one"\ncolumn = "age"\nepsilon = 20.0\n'
GAUSSIAN = '[[release]]\nkind = "ratio"\nname = "one"\nnumerator = "pay"\ndenominator = "age"\nrho = 0.1\n'
SHARED = """[spend]
epsilon = 1.0
delta = 1e-6
[[release]]
kind = "margins"
name = "one"
columns = ["state", "sex"]
order = 1
[[release]]
kind = "quantiles"
column = "pay"
at = [0.5]
[[release]]
kind = "variance"
column = "pay"
"""


def _each(treatment: Treatment, law: type, change: Callable[[Any], Any]) -> Treatment:
    return replace(
        treatment,
        noise=tuple(
            a._replace(mechanism=change(a.mechanism)) if isinstance(a.mechanism, law) else a
            for a in treatment.noise
        ),
    )


def no_noise(found: Treatment) -> Treatment:
    return replace(found, noise=())


def one_part(found: Treatment) -> Treatment:
    assert len(found.noise) > 1
    return replace(found, noise=found.noise[1:])


def small_move(found: Treatment) -> Treatment:
    def smaller(m: Any) -> Laplace:
        return Laplace.for_epsilon(epsilon=m.exact_epsilon, sensitivity=L1(m.sensitivity.steps(1) - 1))

    return _each(found, Laplace, smaller)


def another_grid(found: Treatment) -> Treatment:
    def coarser(m: Any) -> Laplace:
        moved = L1(4 * m.sensitivity.steps(1))
        return Laplace.for_epsilon(epsilon=m.exact_epsilon, sensitivity=moved, spacing=4)

    return _each(found, Laplace, coarser)


def small_square(found: Treatment) -> Treatment:
    def smaller(m: Any) -> RoundedGaussian:
        return replace(
            m, sensitivity=L2.root(m.sensitivity.squared_steps(1) // 2), noise_std=m.noise_std * 5 / 7
        )

    return _each(found, RoundedGaussian, smaller)


def small_stairs(found: Treatment) -> Treatment:
    return _each(found, Staircase, lambda m: replace(m, sensitivity=L1(m.sensitivity.steps(1) - 1)))


def loud(found: Treatment) -> Treatment:
    return _each(found, RoundedGaussian, lambda m: replace(m, noise_std=m.noise_std / 2))


def table(folder: Path) -> None:
    rows = [f"{i % 60},{('CA', 'NY')[i % 2]},{'fm'[i % 3 == 0]},{i % 99},{i % 101}" for i in range(ROWS)]
    (folder / "t.csv").write_text("id,state,sex,age,pay\n" + "\n".join(rows) + "\n")


def written(folder: Path, asked: str) -> None:
    table(folder)
    head = HEAD.replace("epsilon = 90.0\ndelta = 1e-2", "rho = 90.0") if "rho" in asked else HEAD
    (folder / "plan.toml").write_text(head + asked)
    assert main(["release", str(folder / "plan.toml"), "--out", str(folder / "out")]) == 0


def wrong(capsys: pytest.CaptureFixture[str], folder: Path, *more: str) -> list[str]:
    capsys.readouterr()
    main(["verify", str(folder / "out"), *more, "--json"])
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    return [f["what"] for f in json.loads(told.out)["findings"] if f["holds"] is False]


@pytest.mark.parametrize(
    ("asked", "change", "law"),
    [
        (COUNTS, no_noise, None),
        (MEAN, no_noise, None),
        (RATIO, one_part, None),
        (COUNTS, small_move, Laplace),
        (MEAN, small_move, Laplace),
        (COUNTS, another_grid, Laplace),
        (GAUSSIAN, small_square, RoundedGaussian),
        (ONE_NUMBER, small_stairs, Staircase),
        (SHARED, loud, RoundedGaussian),
    ],
)
def test_noise_that_was_not_made_for_the_question(
    asked: str, change: Callable[[Treatment], Treatment], law: type | None, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    laws: set[type] = set()
    choose = planning.choose

    def changed(*given: Any, **more: Any) -> Treatment:
        found = choose(*given, **more)
        laws.update(type(a.mechanism) for a in found.noise)
        return change(found)

    with monkeypatch.context() as dishonest:
        dishonest.setattr(planning, "choose", changed)
        for place in (planning, charges):
            dishonest.setattr(place, "must_cover", lambda *_, **__: None)
        written(tmp_path, asked)
    assert law is None or law in laws
    for more in ((), ("--ledger", str(tmp_path / "t.ledger"))):
        found = wrong(capsys, tmp_path, *more)
        assert any("one.json" in what for what in found), found


def test_an_honest_release_that_shares_a_delta_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its page tells what each release costs alone, at the delta of the charge: as certificates state it."""
    written(tmp_path, SHARED)
    assert wrong(capsys, tmp_path) == []
    assert wrong(capsys, tmp_path, "--ledger", str(tmp_path / "t.ledger")) == []
    page = (tmp_path / "out" / "report.html").read_text()
    assert "accounted together they cost" in page


@pytest.mark.parametrize(
    "value",
    [
        {"fraction": "1/0"}, {"fraction": "1e999999999"}, {"type": "<i8", "shape": [3], "packed": "AAAA"},
        {"is": "Laplace"}, {"is": "Exception"}, {"numbers": ["1"], "shape": [7]}, {"float": "x"}, [], {"list": 3},
    ],
    ids=str,
)  # fmt: skip
def test_a_choice_of_any_shape_is_a_finding(
    value: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, COUNTS)
    path = tmp_path / "out" / "certificates" / "one.json"
    said = json.loads(path.read_text())
    said["choice"]["treatment"]["noise"][0]["mechanism"]["noise_scale"] = value
    said["digest"] = content_digest(said)
    path.write_text(json_text(said) + "\n")
    listed = json.loads((tmp_path / "out" / "manifest.json").read_text())
    listed["files"]["certificates/one.json"] = sha256(path.read_bytes())
    listed["digest"] = content_digest(listed)
    (tmp_path / "out" / "manifest.json").write_text(json_text(listed) + "\n")
    found = wrong(capsys, tmp_path)
    assert any("claims what plan.toml gives" in what for what in found)
