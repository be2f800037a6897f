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

import numpy as np
import pytest

from tacit.cli import main
from tacit.curator import charging as charges
from tacit.curator import planning
from tacit.curator.assignments import Assignment
from tacit.curator.certificate import content_digest, json_text
from tacit.curator.planning import candidates
from tacit.curator.random_counts import OnRandomData
from tacit.curator.request import ALWAYS
from tacit.exact.canonical import sha256
from tacit.guarantees import Neighbours
from tacit.mechanisms import L1, L2, Laplace, RoundedGaussian, Staircase
from tacit.mechanisms.fitted_tables import FittedTables, HullTables, Image
from tacit.mechanisms.ranges import RangeAnswers, RangeTree
from tacit.mechanisms.tables import CellSums, ShapedTables

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
SHARED = f"""[spend]
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
at = {[i / 20 for i in range(1, 20)]}
[[release]]
kind = "variance"
column = "pay"
"""


def _each(assignment: Assignment, law: type, change: Callable[[Any], Any]) -> Assignment:
    return replace(
        assignment,
        noise=tuple(
            a._replace(mechanism=change(a.mechanism)) if isinstance(a.mechanism, law) else a
            for a in assignment.noise
        ),
    )


def no_noise(found: Assignment) -> Assignment:
    return replace(found, noise=())


def one_part(found: Assignment) -> Assignment:
    assert len(found.noise) > 1
    return replace(found, noise=found.noise[1:])


def small_move(found: Assignment) -> Assignment:
    def smaller(m: Any) -> Laplace:
        return Laplace.for_target(epsilon=m.exact_epsilon, sensitivity=L1(m.sensitivity.steps(1) - 1))

    return _each(found, Laplace, smaller)


def another_grid(found: Assignment) -> Assignment:
    def coarser(m: Any) -> Laplace:
        moved = L1(4 * m.sensitivity.steps(1))
        return Laplace.for_target(epsilon=m.exact_epsilon, sensitivity=moved, spacing=4)

    return _each(found, Laplace, coarser)


def small_square(found: Assignment) -> Assignment:
    def smaller(m: Any) -> RoundedGaussian:
        return replace(
            m, sensitivity=L2.root(m.sensitivity.squared_steps(1) // 2), noise_std=m.noise_std * 5 / 7
        )

    return _each(found, RoundedGaussian, smaller)


def small_stairs(found: Assignment) -> Assignment:
    return _each(found, Staircase, lambda m: replace(m, sensitivity=L1(m.sensitivity.steps(1) - 1)))


def another_kind(found: Assignment) -> Assignment:
    """Noise for a smaller move, as if random data had been assumed, under which noise is not compared."""
    same = {n: getattr(small_move(found), n) for n in ("noise", "price", "reason", "delta", "candidates")}
    return OnRandomData(**same, given=ALWAYS, cells=2, neighbours=Neighbours.ADD_OR_REMOVE)


def loud(found: Assignment) -> Assignment:
    return _each(found, RoundedGaussian, lambda m: replace(m, noise_std=m.noise_std / 2))


def table(folder: Path) -> None:
    rows = [f"{i % 60},{('CA', 'NY')[i % 2]},{'fm'[i % 3 == 0]},{i % 99},{i % 101}" for i in range(ROWS)]
    (folder / "t.csv").write_text("id,state,sex,age,pay\n" + "\n".join(rows) + "\n")


def written(folder: Path, asked: str, *, unit: str = "people", whole: bool = False) -> None:
    table(folder)
    head = HEAD.replace("epsilon = 90.0\ndelta = 1e-2", "rho = 90.0") if "rho" in asked else HEAD
    if whole:
        # Every row has a key in every column, so that all tables have one sum.
        head = head.replace('"NY"]', '"NY"]\nmissing = "NY"').replace('"m"]', '"m"]\nmissing = "m"')
    if unit != "people":
        head = head.replace(
            'unit = "people"\ncolumn = "id"\nat_most = 5', f'unit = "rows"\nneighbours = "{unit}"'
        )
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
        (COUNTS, another_kind, Laplace),
        (GAUSSIAN, small_square, RoundedGaussian),
        (ONE_NUMBER, small_stairs, Staircase),
        (SHARED, loud, RoundedGaussian),
    ],
)
def test_noise_that_was_not_made_for_the_question(
    asked: str, change: Callable[[Assignment], Assignment], law: type | None, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    laws: set[type] = set()
    choose = planning.choose

    def changed(*given: Any, **more: Any) -> Assignment:
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
    said = [json.loads(path.read_text()) for path in (tmp_path / "out" / "certificates").iterdir()]
    assert sum(c["choice"]["assignment"]["price"]["mu"] is not None for c in said) >= 2
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
    said["choice"]["assignment"]["noise"][0]["mechanism"]["noise_scale"] = value
    said["digest"] = content_digest(said)
    path.write_text(json_text(said) + "\n")
    listed = json.loads((tmp_path / "out" / "manifest.json").read_text())
    listed["files"]["certificates/one.json"] = sha256(path.read_bytes())
    listed["digest"] = content_digest(listed)
    (tmp_path / "out" / "manifest.json").write_text(json_text(listed) + "\n")
    found = wrong(capsys, tmp_path)
    assert any("claims what plan.toml gives" in what for what in found)


# --- mechanisms for several tables at once ---------------------------------------------------------------------
MARGINS = """[[release]]
kind = "margins"
name = "one"
columns = ["state", "sex"]
order = 1
"""
RANGES = """[[release]]
kind = "ranges"
name = "one"
column = "pay"
bins = [0, 40, 70, 100]
"""
PURE, SHARE = "epsilon = 1.0\n", "epsilon = 1.0\ndelta = 1e-6\n"


def law(kind: type | None, inner: type | None = None) -> Callable[[Any], bool]:
    """Is it this mechanism, with this noise inside?"""

    def same(m: Any) -> bool:
        found = m.noise if isinstance(m, CellSums | FittedTables | RangeAnswers) else None
        return isinstance(m, kind or object) and (inner is None or isinstance(found, inner))

    return same


def half(noise: Any) -> Any:
    """The same law for a smaller move, at the same price."""
    if isinstance(noise, Laplace):
        made_for = L1(max(noise.sensitivity.exact / 2, noise.step))
        return Laplace.for_target(epsilon=noise.exact_epsilon, sensitivity=made_for, spacing=noise.step)
    squared = noise.sensitivity.squared_steps(noise.step) * noise.step**2
    return replace(noise, sensitivity=L2.root(squared / 2), noise_std=noise.noise_std * 5 / 7)


def half_inside(m: Any) -> Any:
    return replace(m, noise=half(m.noise))


def half_level(m: Any) -> Any:
    tree = m.noise
    *above, leaves = tree.mechanisms
    return replace(m, noise=replace(tree, mechanisms=(*above, half(leaves))))


def bare_root(m: Any) -> Any:
    return replace(m, noise=replace(m.noise, mechanisms=(None, *m.noise.mechanisms[1:])))


def fewer_rows(m: Any) -> Any:
    return replace(m, times=m.times - 1, noise_scale=m.noise_scale * (m.times - 1) / m.times)


def not_replaced(m: Any) -> Any:
    return replace(m, replaced=False, fixed=False)


def known_total(m: Any) -> Any:
    return replace(m, complete=True, replaced=True, fixed=True)


def small_hull(m: Any) -> Any:
    patterns = tuple(tuple(1 if i == 0 else 0 for i in range(len(p))) for p in m.image.patterns[:1])
    small = Image(patterns=(*patterns, m.image.patterns[-1]), sizes=m.image.sizes, replaced=m.image.replaced)
    return replace(m, image=small)


def only_added(m: Any) -> Any:
    return replace(m, image=replace(m.image, replaced=False, absent=True))


def fixed_fit(m: Any) -> Any:
    return replace(m, agreement=replace(m.agreement, fixed=True))


def other_places(m: Any) -> Any:
    places = tuple(np.roll(p, 1) if i == 0 else p for i, p in enumerate(m.agreement.places))
    return replace(m, agreement=replace(m.agreement, places=places))


def other_sums(m: Any) -> Any:
    return replace(m, sums=tuple(s[::-1].copy() for s in m.sums))


def other_ranges(m: Any) -> Any:
    return replace(m, ranges=m.ranges[::-1].copy())


TABLES = {
    "shaped": (MARGINS, PURE, "people", law(ShapedTables), (fewer_rows, known_total)),
    "cube": (MARGINS, PURE, "replace-one", law(ShapedTables), (not_replaced,)),
    "hull": (RANGES, PURE, "people", law(HullTables), (fewer_rows, small_hull)),
    "hull of exchanges": (RANGES, PURE, "replace-one", law(HullTables), (only_added,)),
    "fitted": (MARGINS, PURE, "people", law(FittedTables, Laplace), (half_inside, fixed_fit, other_places)),
    "fitted Gaussian": (MARGINS, SHARE, "people", law(FittedTables, RoundedGaussian), (half_inside,)),
    "cells": (MARGINS, PURE, "people", law(CellSums, Laplace), (half_inside, other_sums)),
    "cells Gaussian": (MARGINS, SHARE, "people", law(CellSums, RoundedGaussian), (half_inside,)),
    "bins": (RANGES, PURE, "people", law(RangeAnswers, Laplace), (half_inside, other_ranges)),
    "bins Gaussian": (RANGES, SHARE, "people", law(RangeAnswers, RoundedGaussian), (half_inside,)),
    "tree": (RANGES, PURE, "people", law(RangeAnswers, RangeTree), (half_level, bare_root)),
    "tree of exchanges": (RANGES, SHARE, "replace-one", law(RangeAnswers, RangeTree), (half_level,)),
}
FORGED = [(name, change) for name, (*_, changes) in TABLES.items() for change in changes]


def release_with(
    name: str, change: Callable[[Any], Any] | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder whose release got this mechanism, as it is chosen or changed, whichever is the best."""
    asked, price, unit, wanted, _ = TABLES[name]

    def chosen(question: Any, price: Any, **_: Any) -> Assignment:
        found = [t for _, t in candidates(question, price) if wanted(t.noise[0].mechanism)][-1]
        (applied,) = found.noise
        if change is None:
            return found
        return replace(found, noise=(applied._replace(mechanism=change(applied.mechanism)),))

    with monkeypatch.context() as forger:
        forger.setattr(planning, "choose", chosen)
        if change is not None:
            for place in (planning, charges):
                forger.setattr(place, "must_cover", lambda *_, **__: None)
        written(folder, asked + price, unit=unit, whole=asked is MARGINS)


def noise_findings(capsys: pytest.CaptureFixture[str], folder: Path) -> list[str]:
    """What `verify` could not check about the noise."""
    capsys.readouterr()
    main(["verify", str(folder / "out"), "--json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    return [f["what"] for f in found if f["holds"] is None and "noise" in f["what"]]


@pytest.mark.parametrize("name", TABLES)
def test_an_honest_mechanism_for_several_tables_is_judged(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether or not this version would choose it."""
    release_with(name, None, tmp_path, monkeypatch)
    assert noise_findings(capsys, tmp_path) == []
    for more in ((), ("--ledger", str(tmp_path / "t.ledger"))):
        assert wrong(capsys, tmp_path, *more) == []


@pytest.mark.parametrize(("name", "change"), FORGED, ids=[f"{n}, {c.__name__}" for n, c in FORGED])
def test_a_forged_mechanism_for_several_tables_does_not_hold(
    name: str, change: Callable[[Any], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """All digests, the event, the charge and the ledger agree with the forged mechanism."""
    release_with(name, change, tmp_path, monkeypatch)
    for more in ((), ("--ledger", str(tmp_path / "t.ledger"))):
        found = wrong(capsys, tmp_path, *more)
        assert any("one.json" in what for what in found), found
