"""Nested areas: sensitivities, least squares and variances against dense solutions, laws, display, lists in plans."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit
from support.naive import key
from support.neighbours import moves
from tacit import errors
from tacit.curator.plan_files import read_plan, read_plan_text
from tacit.mechanisms import Laplace, RoundedGaussian
from tacit.noise import SeededSource
from tacit.sources import Schema, category
from tacit.statistics import geography
from tacit.statistics.geography import (
    _local,
    _local_halves,
    _local_weights,
    least_squares,
    nested,
    shown,
    variances_of,
)
from tacit.statistics.totals import mixed_quantile

BLOCKS = ["a1", "a2", "b1", "b2", "b3", "c1"]
AREAS = {
    "state": ["A", "A", "B", "B", "B", "B"],
    "county": ["a", "a", "b", "b", "b", "c"],
    "block": BLOCKS,
}
LEVELS = ["state", "county", "block"]
SCHEMA = Schema({"block": category(BLOCKS), "sex": category(["f", "m"])})
FULL = Schema({"block": category(BLOCKS, missing="a1"), "sex": category(["f", "m"], missing="f")})
UNITS = [
    tacit.rows(),
    tacit.rows(neighbours="replace-one"),
    tacit.people("id", at_most=2),
    tacit.people("id", at_most=2, neighbours="replace-one"),
]
INSIDE = dict(zip(BLOCKS, zip(*(AREAS[n] for n in LEVELS), strict=True), strict=True))


def counted(question, rows, schema):
    """From the definition: a row with all its keys is counted once on every level, in the area that its block is in."""
    found = {p.name: {} for p in question.parts}
    for row in rows:
        keys = [key(a, schema, row) for a in question.axes]
        if None in keys:
            continue
        codes = INSIDE[BLOCKS[keys[0]]]
        for part in question.parts:
            own = () if part.name == "total" else (codes[LEVELS.index(part.name)],)
            cell = (*own, *keys[1:])
            found[part.name][cell] = found[part.name].get(cell, 0) + 1
    return found


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("schema", [SCHEMA, FULL], ids=["gaps", "full"])
@pytest.mark.parametrize("by", [None, "sex"])
def test_moves_are_never_above_the_claim_and_attain_it(by, schema, unit, monkeypatch):
    question = geography(LEVELS, AREAS, by=by).on(schema, unit)
    monkeypatch.setattr("support.neighbours.parts", lambda q, rows, who: counted(q, rows, schema))
    domain = [{"block": b, "sex": s} for b in ("a1", "b3", "c1", None) for s in ("f", "m", None)]
    seen = moves(question, unit, domain)
    for part in question.parts:
        claimed = question.sensitivities[part.name]
        assert seen[part.name] == [claimed.l1, claimed.l2_squared, claimed.linf], part.name
        assert part.exact == claimed.none
    assert question.parts[0].exact == (by is None and schema is FULL and unit == UNITS[1])


def rows_of(tree):
    """The matrix from leaves to all areas, from the definition."""
    count = tree.sizes[-1]
    matrices = [np.eye(count)]
    for depth in range(len(tree.sizes) - 1, 0, -1):
        up = np.zeros((tree.sizes[depth - 1], tree.sizes[depth]))
        up[tree.parent[depth], np.arange(tree.sizes[depth])] = 1
        matrices.append(up @ matrices[-1])
    return matrices[::-1]


@pytest.mark.parametrize("spreads", [[3.0, 2.0, 1.0, 4.0], [0.0, 2.0, 1.0, 4.0], [5.0, 5.0, 5.0, 5.0]])
def test_least_squares_and_variances_are_those_of_a_dense_solution(spreads):
    """Theorem `areas-with-totals`, part (b)."""
    tree = nested(geography(LEVELS, AREAS).areas, tuple(LEVELS), tuple(BLOCKS[::-1]))  # keys in another order
    assert [tree.codes[-1][i] for i in range(6)] == [BLOCKS[::-1][k] for k in tree.leaves]
    matrices = rows_of(tree)
    rng = np.random.default_rng(5)
    raw = [rng.normal(size=(size, 2)) for size in tree.sizes]
    if spreads[0] == 0:
        raw[0][:] = 7.5
    weight = np.concatenate(
        [np.full(s, 1e9 if v == 0 else 1 / v) for s, v in zip(tree.sizes, spreads, strict=True)]
    )
    whole, y = np.concatenate(matrices), np.concatenate(raw)
    gram = whole.T @ (weight[:, None] * whole)
    leaves = np.linalg.solve(gram, whole.T @ (weight[:, None] * y))
    for found, matrix in zip(least_squares(tree, raw, spreads), matrices, strict=True):
        np.testing.assert_allclose(found, matrix @ leaves, atol=1e-5)
    covariance = np.linalg.inv(gram)
    for found, matrix in zip(variances_of(tree, spreads), matrices, strict=True):
        np.testing.assert_allclose(found, np.diag(matrix @ covariance @ matrix.T), atol=1e-5)


def test_the_law_behind_a_laplace_interval_is_that_of_its_estimate():
    """Impulses through the estimate give the weights of the noise; a sum over them has the quantile that is used."""
    tree = nested(geography(LEVELS, AREAS).areas, tuple(LEVELS), tuple(BLOCKS))
    laws = [Laplace.for_target(epsilon=e, sensitivity=tacit.mechanisms.L1(1)) for e in (0.4, 0.3, 0.2, 0.1)]
    weights = _local_weights(tree, [law.variance for law in laws])
    matrices = rows_of(tree)
    truth = np.arange(1.0, 7.0)
    for depth, size in enumerate(tree.sizes):
        raw = [(m @ truth)[:, None] for m in matrices]
        np.testing.assert_allclose(_local(tree, raw, weights, depth)[:, 0], raw[depth][:, 0])  # unbiased
        halves = _local_halves(tree, laws, weights, depth, 1, 0.05)
        for area in range(size):
            used = []
            for level, count in enumerate(tree.sizes):
                for place in range(count):
                    impulse = [np.zeros((n, 1)) for n in tree.sizes]
                    impulse[level][place] = 1.0
                    w = float(_local(tree, impulse, weights, depth)[area, 0])
                    if abs(w) > 1e-12:
                        used.append((laws[level].distribution.noise_scale, abs(w)))
            told = tuple(sorted((float(s), round(w, 12), 1) for s, w in used))
            assert halves[area] == pytest.approx(mixed_quantile(told, 0.05), abs=0.02)
            variance = sum(2 * (s * w) ** 2 for s, w in used)
            assert 1.9 * math.sqrt(variance) < halves[area] < 2.2 * math.sqrt(variance) + 1


def test_a_quantile_of_wide_noise_is_not_lost_to_the_smoothing():
    for scale in (0.5, 60.0, 4000.0):
        found = mixed_quantile(((scale, 0.5, 4), (scale, 0.3, 40)), 0.05)
        spread = scale * math.sqrt(2 * (0.25 * 4 + 0.09 * 40))
        assert 1.9 * spread < found < 2.05 * spread + 1


def simulated(kind, runs):
    """Coverage of every published number, by fresh noise on one table."""
    frame = pd.DataFrame(
        {"block": ["a1"] * 30 + ["b2"] * 4 + ["c1"] * 90, "sex": (["f", "m", "m", "m"] * 31)}
    )
    budget = tacit.Pure(epsilon=runs) if kind == "epsilon" else tacit.Concentrated(rho=runs)
    held = {"block": frame["block"], "sex": frame["sex"]}
    hits, number = None, 0
    with tacit.Curator(
        frame, protect=tacit.rows(), schema=SCHEMA, budget=budget, ledger=None, source=SeededSource(seed=11)
    ) as curator:
        for run in range(runs):
            found = curator.release(geography(LEVELS, AREAS, by="sex"), key=f"run {run}", **{kind: 1}).table
            if hits is None:
                true = []
                codes = held["block"].map(INSIDE)
                for _, line in found.iterrows():
                    inside = codes.map(
                        lambda c, line=line: line.level == "total" or c[LEVELS.index(line.level)] == line.area
                    )
                    true.append(int((inside & ((line.sex == "all") | (held["sex"] == line.sex))).sum()))
                true = np.array(true)
                hits = np.zeros(len(true))
            hits += (found["low"] <= true) & (true <= found["high"])
            number += 1
            assert (found["low"] <= found["value"]).all()
            assert (found["value"] <= found["high"]).all()
            assert (found["value"] >= 0).all()
            by_level = found[found["sex"] == "all"].groupby("level")["value"].sum()
            assert by_level.nunique() == 1
            cells = found[found["sex"] != "all"].groupby(["level", "sex"])["value"].sum().unstack()
            assert cells.nunique().eq(1).all()
    return hits / number, found


@pytest.mark.parametrize("kind", ["epsilon", "rho"])
def test_released_intervals_cover_and_numbers_add_up(kind):
    share, found = simulated(kind, 50)
    assert share.mean() > 0.95 - 2 * math.sqrt(0.05 * 0.95 / 50 / 6)
    assert list(found.columns) == ["level", "area", "sex", "measured", "value", "low", "high"]
    assert found["measured"].nunique() > 5


def test_measurements_stand_in_the_order_of_the_values():
    frame = pd.DataFrame({"block": ["a1"] * 30 + ["b2"] * 40, "sex": ["f", "m"] * 35})
    with tacit.Curator(
        frame, protect=tacit.rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=4000), ledger=None
    ) as curator:
        release = curator.release(geography(LEVELS, AREAS, by="sex"), epsilon=4000)
        assert (release.table["measured"] == release.table["value"]).all()
        assert {type(a.mechanism) for a in release.planned.assignment.noise} <= {Laplace, RoundedGaussian}
        assert release.planned.question.numbers == len(release.table)


def test_display_takes_negative_estimates_to_the_nearest_numbers_that_add_up():
    tree = nested(geography(LEVELS, AREAS).areas, tuple(LEVELS), tuple(BLOCKS))
    fit = least_squares(
        tree, [np.full((n, 1), v) for n, v in zip(tree.sizes, (10.0, 9.0, 2.0, -3.0), strict=True)], [1.0] * 4
    )
    found = shown(tree, fit)
    assert all((level >= 0).all() for level in found)
    for depth in range(1, 4):
        np.testing.assert_array_equal(tree.sums(depth, found[depth]), found[depth - 1])


def test_areas_are_part_of_the_question():
    other = {**AREAS, "county": ["a", "a", "b", "b", "c", "c"]}
    frame = pd.DataFrame({"block": ["a1"], "sex": ["f"]})
    with tacit.Curator(
        frame, protect=tacit.rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=9), ledger=None
    ) as curator:
        digests = {curator.preview(geography(LEVELS, a), epsilon=1).digest for a in (AREAS, other, AREAS)}
        assert len(digests) == 2
    assert geography(LEVELS, AREAS) == geography(LEVELS, list(zip(*(AREAS[n] for n in LEVELS), strict=True)))
    assert geography(["n"], {"n": ["1", "11"]}).areas.digest != geography(["n"], {"n": [1, 11]}).areas.digest


def test_importance_is_a_share_of_the_price():
    weights = {"total": 1, "state": 1, "county": 1, "block": 5}
    frame = pd.DataFrame({"block": ["a1"], "sex": ["f"]})
    with tacit.Curator(
        frame, protect=tacit.rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=9), ledger=None
    ) as curator:
        planned = curator.preview(geography(LEVELS, AREAS, importance=weights), epsilon=1).releases[0]
    shares = {a.parts[0]: float(a.mechanism.exact_epsilon) for a in planned.assignment.noise}
    assert shares == {"total": 0.125, "state": 0.125, "county": 0.125, "block": 0.625}


REFUSED = [
    (lambda: geography([], AREAS), "list of areas"),
    (lambda: geography(["state", "state", "block"], AREAS), "be different"),
    (lambda: geography(["total", "block"], {"total": ["A"], "block": ["a1"]}), "none of them"),
    (lambda: geography(LEVELS, AREAS, by="state"), "name no level"),
    (lambda: geography(LEVELS, AREAS, by="measured"), "name no level"),
    (lambda: geography(LEVELS, {"state": ["A"]}), "county"),
    (lambda: geography(LEVELS, {**AREAS, "state": ["A"]}), "one length"),
    (lambda: geography(LEVELS, "blocks.csv"), "columns by name"),
    (lambda: geography(LEVELS, [("A", "a", None)]), "a code"),
    (lambda: geography(LEVELS, [("A", "a", True)]), "a code"),
    (lambda: geography(LEVELS, [("A", "a", "")]), "a code"),
    (lambda: geography(LEVELS, [("A", "a")]), "each of 3"),
    (lambda: geography(LEVELS, []), "areas"),
    (lambda: geography(LEVELS, AREAS, importance={"block": 1}), "every level"),
    (lambda: geography(LEVELS, AREAS, importance={"nation": 1}), "nation"),
    (lambda: geography(LEVELS, AREAS, importance=[1]), "weights by name"),
    (lambda: geography(LEVELS, AREAS, importance={"block": 0}), "positive"),
    (lambda: geography(["block"], {"block": BLOCKS[:5]}).on(SCHEMA, tacit.rows()), "c1"),
    (lambda: geography(["block"], {"block": [*BLOCKS, "d1"]}).on(SCHEMA, tacit.rows()), "d1"),
    (lambda: geography(["block"], {"block": [*BLOCKS, "a1"]}).on(SCHEMA, tacit.rows()), "one line"),
    (
        lambda: geography(LEVELS, {**AREAS, "state": ["A", "B", "B", "B", "B", "B"]}).on(SCHEMA, tacit.rows()),
        "lie in one state",
    ),
    (lambda: geography(["sex"], {"sex": [1]}).on(Schema({"sex": tacit.integer(1, 2)}), tacit.rows()), "category"),
    (lambda: geography(["sex"], {"sex": ["f"]}).on(Schema({"sex": category()}), tacit.rows()), "category"),
    (
        lambda: geography(LEVELS, AREAS, by="open").on(
            Schema({"block": category(BLOCKS), "open": category()}), tacit.rows()
        ),
        "declared keys",
    ),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_refused(number):
    call, words = REFUSED[number]
    with pytest.raises(errors.TacitError) as caught:
        call()
    assert words in str(caught.value)


def test_too_many_numbers_are_refused(monkeypatch):
    room = sys.modules["tacit.statistics.geography"]
    monkeypatch.setattr(room, "MOST_NUMBERS", 32)
    with pytest.raises(errors.TooManyCells):
        geography(LEVELS, AREAS, by="sex").on(SCHEMA, tacit.rows())  # 12 areas of 3 numbers
    assert geography(LEVELS, AREAS).on(SCHEMA, tacit.rows()).numbers == 12
    monkeypatch.setattr(room, "MOST_AREAS", 5)
    with pytest.raises(errors.TooManyCells):
        geography(LEVELS, AREAS)


# --- lists that a plan names ----------------------------------------------------------------------------------
PLAN = """
data = {{ path = "people.csv" }}
protect = {{ unit = "rows" }}
schema.block = {{ kind = "category", keys = "{keys}" }}
schema.sex = {{ kind = "category", keys = ["f", "m"] }}
budget = {{ rho = 0.5 }}
release = [{{ kind = "geography", levels = ["state", "county", "block"], areas = "{areas}", by = "sex" }}]
"""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    pd.DataFrame(AREAS).to_csv(tmp_path / "blocks.csv", index=False)
    pd.DataFrame({"block": ["a1"] * 30 + ["b2"] * 40, "sex": ["f", "m"] * 35}).to_csv(
        tmp_path / "people.csv", index=False
    )
    (tmp_path / "geo.toml").write_text(PLAN.format(keys="blocks.csv", areas="blocks.csv"))
    return tmp_path


def test_a_plan_names_its_lists_and_the_folder_has_them(desk, capsys):
    from tacit.cli import main

    # A column that the plan does not name is nobody's business.
    pd.DataFrame({"note": "internal", **AREAS}).to_csv(desk / "blocks.csv", index=False)
    assert main(["release", str(desk / "geo.toml"), "--out", str(desk / "out")]) == 0
    assert (desk / "out/public/blocks.csv").read_text() == pd.DataFrame(AREAS).to_csv(index=False)
    header = (desk / "out/values/geography-by-sex.csv").read_text().splitlines()[0]
    assert header == "level,area,sex,measured,value,low,high,quality"
    (desk / "blocks.csv").unlink()  # the folder needs nothing beside it
    assert main(["verify", str(desk / "out")]) == 0
    page = (desk / "out/public/blocks.csv").read_text()
    (desk / "out/public/blocks.csv").write_text(page.replace("A,a,a2", "B,c,a2"))
    assert main(["verify", str(desk / "out")]) == 1
    capsys.readouterr()


def test_who_sends_a_plan_to_a_server_names_no_files_there(desk):
    text = (desk / "geo.toml").read_text()
    with pytest.raises(errors.TacitError, match="be a list"):
        read_plan_text(text, desk / "geo.toml")
    text = text.replace('keys = "blocks.csv"', "keys = " + str(BLOCKS).replace("'", '"'))
    with pytest.raises(errors.TacitError, match="public CSV file"):
        read_plan_text(text, desk / "geo.toml")


@pytest.mark.parametrize(
    ("keys", "areas", "content", "words"),
    [
        ("people.csv", "blocks.csv", None, "not the table that is protected"),
        ("gone.csv", "blocks.csv", None, "beside the plan"),
        ("bad.csv", "blocks.csv", b"\xff\xfe", "UTF-8"),
        ("bad.csv", "blocks.csv", b"block\n", "a heading"),
        ("bad.csv", "blocks.csv", b"block,block\na1,a1\n", "a heading"),
        ("bad.csv", "blocks.csv", b"block,state\na1\n", "a heading"),
        ("bad.csv", "blocks.csv", b'block\n"a1\n', "a heading"),
        ("bad.csv", "blocks.csv", b"code\na1\n", "column of bad.csv"),
        ("blocks.csv", "bad.csv", b"block\na1\n", "state"),
        ("blocks.csv", "other/blocks.csv", b"", "no other list"),
    ],
)
def test_lists_that_are_refused(desk, keys, areas, content, words):
    (desk / "other").mkdir()
    (desk / "other/blocks.csv").write_text((desk / "blocks.csv").read_text() + "C,d,d1\n")
    if content:
        (desk / "bad.csv").write_bytes(content)
    (desk / "geo.toml").write_text(PLAN.format(keys=keys, areas=areas))
    with pytest.raises(errors.TacitError) as caught:
        read_plan(desk / "geo.toml")
    assert words in str(caught.value)


def test_the_table_is_refused_under_another_name_too(desk):
    (desk / "link.csv").hardlink_to(desk / "people.csv")
    (desk / "geo.toml").write_text(PLAN.format(keys="link.csv", areas="blocks.csv"))
    with pytest.raises(errors.InvalidParameter, match="not the table"):
        read_plan(desk / "geo.toml")


def test_levels_must_be_names_where_a_file_is_named(desk):
    text = (desk / "geo.toml").read_text().replace('["state", "county", "block"]', '"block"')
    (desk / "geo.toml").write_text(text)
    with pytest.raises(errors.InvalidParameter, match="list of columns"):
        read_plan(desk / "geo.toml")


def test_one_file_under_two_names_is_published_once(desk):
    (desk / "geo.toml").write_text(PLAN.format(keys="./blocks.csv", areas="blocks.csv"))
    assert read_plan(desk / "geo.toml").lists == {
        "blocks.csv": pd.DataFrame(AREAS).to_csv(index=False).encode()
    }


def test_semicolons_and_tabs_separate_too(desk):
    for separator in (";", "\t"):
        (desk / "blocks.csv").write_text((desk / "blocks.csv").read_text().replace(",", separator))
        assert read_plan(desk / "geo.toml").plan().releases[0].question.numbers == 36
        (desk / "blocks.csv").write_text((desk / "blocks.csv").read_text().replace(separator, ","))
