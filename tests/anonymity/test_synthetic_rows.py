"""Synthetic rows from trees and mixtures: drawn from the law that was fitted, and broken by those they replay."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from tacit import anonymity as anon
from tacit import attacks, errors
from tacit.cli import main
from tacit.noise import SeededSource

COLUMNS = ("age", "town", "income")


def people(n: int = 200, seed: int = 3) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    return pa.table(
        {
            "age": age,
            "town": np.where(age < 50, "a", "b"),
            "income": np.round(20_000 + 300.0 * age + rng.normal(0, 5_000, n), 2),
        }
    )


OUTLIER = pa.table({"age": [104], "town": ["b"], "income": [9_000_000.0]})


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(table.column(c).to_pylist() for c in table.column_names), strict=True))


def apply(table: pa.Table, treatment: anon.Treatment, seed: int = 1) -> pa.Table:
    """Without an engine, which may read rows in another order: a seed then stands for one result."""
    return treatment.apply(table, anon.Draws(SeededSource(seed=seed)))


# --- trees ---------------------------------------------------------------------------------------------
def test_trees_draw_values_of_the_table_and_keep_its_types() -> None:
    table = people()
    made = apply(table, anon.TreeDraws(columns=COLUMNS, leaf=20))
    assert made.schema.types == table.schema.types
    assert made.num_rows == table.num_rows
    for name in COLUMNS:
        assert set(made.column(name).to_pylist()) <= set(table.column(name).to_pylist())
    # The first column is drawn from all rows; the town follows from the age up to a leaf that crosses 50.
    right = np.mean([(age < 50) == (town == "a") for age, town, _ in rows(made)])
    assert right > 0.9
    ages, pay = (np.asarray(made.column(c).to_pylist(), dtype=float) for c in ("age", "income"))
    assert np.corrcoef(ages, pay)[0, 1] > 0.5
    assert rows(made) != rows(table)


def test_a_draw_is_a_random_row_of_the_leaf() -> None:
    """From the definition: two leaves by g, with the frequencies of x within g."""
    g = ["u"] * 40 + ["v"] * 60
    x = [1] * 10 + [2] * 30 + [7] * 45 + [9] * 15
    many = pa.table({"g": g * 100, "x": x * 100})
    made = apply(many, anon.TreeDraws(columns=("x",), given=("g",), leaf=1000))
    assert made.column("g").to_pylist() == g * 100
    found = Counter(rows(made))
    assert set(found) == {("u", 1), ("u", 2), ("v", 7), ("v", 9)}
    # 10 standard deviations of a binomial of 4,000 or 6,000 draws.
    assert abs(found["u", 1] - 1000) < 274
    assert abs(found["v", 9] - 1500) < 336


def test_missing_values_are_values_of_trees() -> None:
    table = pa.table({"x": [1.0, None] * 30, "y": ["p", None] * 30, "z": [None, 5] * 30})
    made = apply(table, anon.TreeDraws(columns=("x", "y", "z"), leaf=2))
    assert set(rows(made)) == {(1.0, "p", None), (None, None, 5)}


# --- mixtures ------------------------------------------------------------------------------------------
def test_one_component_is_the_normal_law_of_the_table() -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(5, 2, 4_000)
    table = pa.table({"x": x, "y": 3 * x + rng.normal(0, 1, 4_000), "n": rng.integers(0, 50, 4_000)})
    made = apply(table, anon.MixtureDraws(columns=("x", "y", "n"), components=1))
    old, new = (np.array(rows(t), dtype=float) for t in (table, made))
    assert np.abs(new.mean(axis=0) - old.mean(axis=0)).max() < 2
    assert np.allclose(np.corrcoef(new, rowvar=False), np.corrcoef(old, rowvar=False), atol=0.1)
    assert np.allclose(new.std(axis=0), old.std(axis=0), rtol=0.1)
    assert made.column("n").type == pa.int64()
    assert not set(made.column("x").to_pylist()) & set(table.column("x").to_pylist())


def test_more_components_keep_what_one_loses() -> None:
    rng = np.random.default_rng(9)
    two = pa.table({"x": np.r_[rng.normal(-10, 1, 500), rng.normal(10, 1, 500)]})

    def middle(components: int) -> float:
        made = np.array(rows(apply(two, anon.MixtureDraws(columns=("x",), components=components))))
        return float((np.abs(made) < 5).mean())

    assert middle(1) > 0.2
    assert middle(2) == 0


def test_equal_and_constant_rows_are_fitted() -> None:
    made = apply(
        pa.table({"x": [3.0] * 9, "n": [4] * 9}), anon.MixtureDraws(columns=("x", "n"), components=2)
    )
    assert made.column("n").to_pylist() == [4] * 9
    assert np.allclose(made.column("x").to_pylist(), 3.0, atol=0.1)


# --- what breaks them ----------------------------------------------------------------------------------
def test_deep_trees_replay_people_and_shallow_ones_fewer() -> None:
    table, others = pa.concat_tables([people(), OUTLIER]), people(seed=77)
    deep = attacks.replay(apply(table, anon.TreeDraws(columns=COLUMNS, leaf=1)), table, others)
    # Every row that comes out is a row of somebody, the richest among them, at this seed.
    assert deep.details["copies"] > 100
    assert deep.details["copies_of_others"] == 0
    assert table.num_rows - 1 in deep.exposed
    assert deep.share > 0.5
    shallow = attacks.replay(apply(table, anon.TreeDraws(columns=COLUMNS, leaf=50)), table, others)
    assert shallow.details["copies"] < deep.details["copies"] / 4
    assert shallow.details["area_under_curve"] < deep.details["area_under_curve"]


def test_a_tree_replays_whoever_is_alone_in_what_is_kept() -> None:
    """Partially synthetic: the kept columns of the outlier lead to a leaf with one row, so always to the true value."""
    table = pa.concat_tables([people(), OUTLIER])
    for seed in range(3):
        made = apply(table, anon.TreeDraws(columns=("income",), given=("age", "town"), leaf=1), seed=seed)
        assert rows(made)[-1] == rows(OUTLIER)[0]


def test_a_tight_component_replays_the_outlier() -> None:
    table, others = pa.concat_tables([people(), OUTLIER]), people(seed=77)
    numeric = ("age", "income")
    seen = 0
    for seed in range(12):
        made = apply(table, anon.MixtureDraws(columns=numeric, components=4), seed=seed)
        rich = [r for r in rows(made) if r[2] > 1_000_000]
        assert all(r[0] == 104 and abs(r[2] - 9_000_000) < 5_000 for r in rich)
        found = attacks.replay(made, OUTLIER, others, columns=numeric)
        seen += len(rich) > 0
        assert (found.exposed == [0]) == bool(rich)
    # Each of 201 rows comes from the component of the outlier with probability 1/201: one table in e has none.
    assert seen >= 5
    without = apply(people(), anon.MixtureDraws(columns=numeric, components=4))
    assert not attacks.replay(without, OUTLIER, others, columns=numeric).exposed


def test_false_alarms_are_as_many_as_allowed() -> None:
    """People who were not in the table, against others who were not: no more than the stated share is accused."""
    made = apply(people(), anon.TreeDraws(columns=COLUMNS, leaf=1))
    fresh, others = people(1000, seed=5), people(1000, seed=6)
    for alarms in (0.05, 0.2):
        accused = attacks.replay(made, fresh, others, false_alarms=alarms).share
        # 5 standard deviations of two samples of 1,000.
        assert accused < alarms + 5 * (2 * alarms * (1 - alarms) / 1000) ** 0.5


def test_p_values_from_the_definition() -> None:
    rng = np.random.default_rng(2)

    def table(n: int) -> dict[str, list[Any]]:
        return {
            "x": [None if rng.random() < 0.2 else float(rng.integers(0, 90)) for _ in range(n)],
            "g": [[None, "a", "b"][rng.integers(3)] for _ in range(n)],
        }

    made, asked, others = table(12), table(20), table(30)
    there = [x for x in made["x"] if x is not None]
    spread = float(np.quantile(there, 0.75) - np.quantile(there, 0.25))
    lists = [list(zip(t["x"], t["g"], strict=True)) for t in (made, asked, others)]

    def near(row: tuple[Any, Any], those: list[tuple[Any, Any]]) -> float:
        gaps = []
        for y, h in those:
            x, g = row
            first = float((x is None) != (y is None)) if x is None or y is None else ((x - y) / spread) ** 2
            gaps.append((first + (g != h)) ** 0.5)
        return min(gaps)

    def score(at: int, bag: list[tuple[Any, Any]]) -> float:
        s, r = near(bag[at], lists[0]), near(bag[at], bag[:at] + bag[at + 1 :])
        return s / (s + r) if s + r else 0.5

    scores, p = [], []
    for row in lists[1]:
        bag = [row, *lists[2]]
        all_scores = [score(i, bag) for i in range(len(bag))]
        scores.append(all_scores[0])
        p.append(Fraction(sum(v <= all_scores[0] + 1e-12 for v in all_scores), len(bag)))
    assert len(set(p)) > 5
    for alarms in ("0.1", "0.5", "0.9"):
        found = attacks.replay(made, asked, others, false_alarms=float(alarms))
        assert found.details["scores"] == pytest.approx(scores)
        assert found.details["copies"] == sum(near(row, lists[0]) == 0 for row in lists[1])
        assert found.exposed == [i for i, v in enumerate(p) if v <= Fraction(alarms)]


# --- refusals and the command line ---------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: anon.TreeDraws(columns=()), errors.EmptyComposition),
        (lambda: anon.TreeDraws(columns=("age",), given=("age",)), errors.InvalidParameter),
        (lambda: anon.TreeDraws(columns=("age", "age")), errors.InvalidParameter),
        (lambda: anon.TreeDraws(columns=("age",), leaf=0), errors.InvalidParameter),
        (lambda: anon.TreeDraws(columns=("age",), leaf=500), errors.InvalidParameter),
        (lambda: anon.TreeDraws(columns=("wage",)), errors.UnknownColumn),
        (lambda: anon.MixtureDraws(columns=()), errors.EmptyComposition),
        (lambda: anon.MixtureDraws(columns=("age",), components=0), errors.InvalidParameter),
        (lambda: anon.MixtureDraws(columns=("age",), components=201), errors.InvalidParameter),
        (lambda: anon.MixtureDraws(columns=("town",)), errors.WrongType),
    ],
)
def test_refusals(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        apply(people(), make())


def test_too_many_values_and_too_few_others_are_refused() -> None:
    names = pa.table({"id": [f"p{i}" for i in range(300)], "x": list(range(300))})
    with pytest.raises(errors.InvalidParameter, match="200 different"):
        apply(names, anon.TreeDraws(columns=("id", "x")))
    with pytest.raises(errors.InvalidParameter, match="at least 19 rows"):
        attacks.replay(people(), people(), people(18))
    with pytest.raises(errors.EmptyComposition):
        attacks.replay({"a": [1]}, {"b": [1]}, {"c": [1]})
    with pytest.raises(errors.UnknownColumn):
        attacks.replay(people(), people(), people(), columns=["wage"])
    with pytest.raises(errors.InvalidParameter):
        attacks.replay(people(), people(), people(), false_alarms=1.0)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, others, made = (tmp_path / f"{n}.csv" for n in ("table", "others", "made"))
    pa.csv.write_csv(pa.concat_tables([people(), OUTLIER]), table)
    pa.csv.write_csv(people(seed=77), others)
    treat = ["treat", str(table), "--out", str(made), "--overwrite"]
    assert main([*treat, "--trees", "age,town,income=1"]) == 0
    assert "without a guarantee" in capsys.readouterr().out
    assert main(["attack", "replay", str(made), str(table), str(others), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["copies"] > 60
    assert told["copies_of_others"] == 0
    assert main([*treat, "--mixture", "age,income=3"]) == 0
    assert "without a guarantee" in capsys.readouterr().out
    assert main([*treat, "--trees", "income=1", "--given", "age,town"]) == 0
    assert main(["attack", "replay", str(made), str(table), str(others)]) == 0
    assert "rows are repeated exactly" in capsys.readouterr().out
    assert main([*treat, "--given", "age"]) == 2
    assert "--trees" in capsys.readouterr().err


def test_columns_that_are_stored_as_dictionaries_are_drawn_like_others() -> None:
    """As pandas writes categories; a list in a cell is no value, and is told in a sentence."""
    plain = pa.table({"x": [1.0, 2.0, 3.0, 4.0] * 10, "k": ["p", "q", None, "q"] * 10})
    coded = plain.set_column(1, "k", plain.column("k").dictionary_encode())
    for make in (
        anon.TreeDraws(columns=("k", "x"), leaf=2),
        anon.TreeDraws(columns=("x",), given=("k",), leaf=2),
        anon.TreeDraws(columns=("k",), given=("x",), leaf=2),
    ):
        one, two = (
            make.apply(t, anon.treatments.methods.Draws(SeededSource(seed=4))) for t in (plain, coded)
        )
        assert one.to_pydict() == two.to_pydict()
        assert two.schema == coded.schema
    nested = plain.set_column(1, "k", pa.array([[1], [2]] * 20))
    for names in ({"columns": ("k",)}, {"columns": ("x",), "given": ("k",)}):
        with pytest.raises(errors.WrongType, match="plain value"):
            anon.TreeDraws(**names, leaf=2).apply(nested, anon.treatments.methods.Draws(SeededSource(seed=4)))
