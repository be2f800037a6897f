"""Treatments do what they say, keep what they promise to keep, and refuse what they cannot treat."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tacit import anonymity as anon
from tacit import errors
from tacit.anonymity.treatments import masked, mdav
from tacit.anonymity.treatments.methods import Draws
from tacit.noise import SeededSource

ONLY_A = anon.suppression(["a"])


def survey(n: int = 600, seed: int = 4) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 95, n)
    return pa.table(
        {
            "id": [f"p{i}" for i in range(n)],
            "age": age,
            "town": rng.choice(["a", "b", "c"], n),
            "sex": rng.choice(["f", "m"], n),
            "income": 20_000 + 300.0 * age + rng.normal(0, 5_000, n),
            "ill": rng.choice(["u", "v"], n, p=[0.8, 0.2]),
        }
    )


def apply(table: pa.Table, *treatments: anon.Treatment, seed: int = 1) -> pa.Table:
    return anon.treat_table(table, treatments, source=SeededSource(seed=seed)).table


def column(table: pa.Table, name: str) -> Any:
    return np.asarray(table.column(name).to_pylist())


# --- without chance ------------------------------------------------------------------------------------
def test_coding() -> None:
    table = survey()
    made = apply(
        table,
        anon.Remove(columns=("id",)),
        anon.TopCode(column="age", at=80),
        anon.BottomCode(column="age", at=25),
        anon.Round(column="income", base=1000),
    )
    assert "id" not in made.column_names
    assert list(column(made, "age")) == [min(max(a, 25), 80) for a in column(table, "age")]
    old, new = column(table, "income"), column(made, "income")
    assert np.abs(new - old).max() <= 500
    assert (new % 1000 == 0).all()
    towns = anon.Hierarchy.of({"a": ("x", "*"), "b": ("x", "*"), "c": ("y", "*")})
    made = apply(table, anon.Collapse(column="town", hierarchy=towns, level=1))
    assert Counter(column(made, "town")) == {
        "x": sum(t in "ab" for t in column(table, "town")),
        "y": sum(t == "c" for t in column(table, "town")),
    }


def test_missing_values_stay_missing() -> None:
    table = pa.table({"x": [1.0, None, 9.0], "g": ["a", None, "a"]})
    made = apply(table, anon.TopCode(column="x", at=5), anon.Disturb(column="x", noise_std=1.0))
    assert made.column("x").to_pylist()[1] is None
    made = apply(table, anon.Collapse(column="g", hierarchy=anon.suppression(["a"]), level=1))
    assert made.column("g").to_pylist() == ["*", None, "*"]


# --- by chance -----------------------------------------------------------------------------------------
def test_sampling_takes_rows_of_the_table() -> None:
    table = survey()
    made = apply(table, anon.Sample(share=0.25))
    assert made.num_rows == 150
    assert set(column(made, "id")) <= set(column(table, "id"))
    assert len(set(column(made, "id"))) == 150
    other = apply(table, anon.Sample(share=0.25), seed=2)
    assert set(column(made, "id")) != set(column(other, "id"))


def test_swapping_keeps_what_it_matches() -> None:
    table = survey()
    swap = anon.Swap(columns=("income", "ill"), share=0.5, match=("town",))
    made = apply(table, swap)
    before = Counter(zip(column(table, "town"), column(table, "income"), column(table, "ill"), strict=True))
    after = Counter(zip(column(made, "town"), column(made, "income"), column(made, "ill"), strict=True))
    assert before == after
    moved = np.mean(column(table, "income") != column(made, "income"))
    assert 0.48 < moved <= 0.5
    rest = ["id", "age", "town", "sex"]
    assert made.select(rest).equals(table.select(rest))


def test_unique_rows_are_swapped_first() -> None:
    table = pa.table({"q": [1, 2, *[3] * 98], "s": list(range(100))})
    made = apply(table, anon.Swap(columns=("s",), share=0.02, unique=("q",)))
    assert column(made, "s")[:2].tolist() == [1, 0]


def test_disturbing_and_its_correction() -> None:
    """Slopes on disturbed columns are too flat by the reliability; corrected ones are right."""
    rng = np.random.default_rng(2)
    n, std = 40_000, 1.5
    x = rng.normal(0, 2, (n, 2))
    y = 1.0 + 3.0 * x[:, 0] - 2.0 * x[:, 1] + rng.normal(0, 1, n)
    table = pa.table({"a": x[:, 0], "b": x[:, 1], "y": y})
    made = apply(table, anon.Disturb(column="a", noise_std=std))
    w = np.stack([column(made, "a"), x[:, 1]], axis=1)
    noise = w[:, 0] - x[:, 0]
    assert abs(noise.mean()) < 6 * std / np.sqrt(n)
    assert noise.std() == pytest.approx(std, rel=0.03)
    fit = anon.corrected_regression(w, y, [std, 0.0])
    assert fit.naive[1] == pytest.approx(3.0 * 4 / (4 + std**2), rel=0.03)
    # Six standard errors: 2e-9 for each of three, and the seed is fixed.
    assert (np.abs(fit.coefficients - [1.0, 3.0, -2.0]) < 6 * fit.errors).all()
    assert fit.errors[1] < 0.05
    assert anon.corrected_covariance(w, [std, 0.0]) == pytest.approx(np.cov(x, rowvar=False), abs=0.15)
    share = anon.Disturb(column="a", share_of_std=0.5).std(table)
    assert share == pytest.approx(0.5 * x[:, 0].std())


def test_standard_errors_of_the_correction_are_right() -> None:
    """The spread of estimates over repetitions is what one fit says."""
    rng = np.random.default_rng(9)
    found, said = [], []
    for _ in range(300):
        x = rng.normal(0, 1, 400)
        y = 0.5 + 2.0 * x + rng.normal(0, 1, 400)
        fit = anon.corrected_regression(x + rng.normal(0, 0.5, 400), y, 0.5)
        found.append(fit.coefficients[1])
        said.append(fit.errors[1])
    assert np.mean(found) == pytest.approx(2.0, abs=0.05)
    assert np.std(found) == pytest.approx(np.mean(said), rel=0.2)


def test_too_much_noise_is_refused() -> None:
    with pytest.raises(errors.InvalidParameter, match="vary less"):
        anon.corrected_regression(np.arange(10.0), np.arange(10.0), 5.0)


def test_model_draws_keep_the_model() -> None:
    rng = np.random.default_rng(6)
    n = 20_000
    x, g = rng.normal(50, 10, n), rng.choice(["p", "q"], n)
    y = 5 + 2 * x + 7 * (g == "q") + rng.normal(0, 3, n)
    ill = np.where(rng.random(n) < np.where(g == "p", 0.1, 0.4), "yes", "no")
    table = pa.table({"x": x, "g": g, "y": y, "ill": ill})
    made = apply(
        table, anon.ModelDraws(column="y", given=("x", "g")), anon.ModelDraws(column="ill", given=("g",))
    )
    new = column(made, "y")
    design = np.stack([np.ones(n), x, g == "q"], axis=1)
    slopes = np.linalg.lstsq(design, new, rcond=None)[0]
    assert slopes == pytest.approx([5, 2, 7], abs=0.5)
    assert (new - design @ slopes).std() == pytest.approx(3, rel=0.03)
    assert (new != y).all()
    for group, share in (("p", 0.1), ("q", 0.4)):
        assert np.mean(column(made, "ill")[g == group] == "yes") == pytest.approx(share, abs=0.02)
    # Draws are new: they agree with the old values as often as chance makes them.
    agree = np.mean(column(made, "ill") == ill)
    assert agree == pytest.approx(0.5 * (0.1**2 + 0.9**2) + 0.5 * (0.4**2 + 0.6**2), abs=0.03)


# --- several columns together --------------------------------------------------------------------------
def plain_mdav(points: list[tuple[float, ...]], k: int) -> list[list[int]]:
    """The algorithm as it is printed, one point after another."""
    left = list(range(len(points)))
    groups = []

    def away(a: Any, b: Any) -> float:
        return sum((u - v) ** 2 for u, v in zip(a, b, strict=True))

    def mean() -> tuple[float, ...]:
        return tuple(sum(points[i][d] for i in left) / len(left) for d in range(len(points[0])))

    def take(centre: Any) -> None:
        near = sorted(left, key=lambda i: away(points[i], centre))[:k]
        groups.append(sorted(near))
        for i in near:
            left.remove(i)

    while len(left) >= 3 * k:
        centre = mean()
        r = points[max(left, key=lambda i: away(points[i], centre))]
        s = points[max(left, key=lambda i: away(points[i], r))]
        take(r)
        take(s)
    if len(left) >= 2 * k:
        centre = mean()
        take(points[max(left, key=lambda i: away(points[i], centre))])
    if left:
        groups.append(sorted(left))
    return groups


@pytest.mark.parametrize(("n", "k"), [(7, 3), (50, 4), (53, 5), (100, 3), (5, 5), (4, 1)])
def test_microaggregation_is_mdav(n: int, k: int) -> None:
    points = np.random.default_rng(n).normal(size=(n, 2))
    group = mdav(points, k)
    found = sorted(sorted(np.flatnonzero(group == g).tolist()) for g in range(group.max() + 1))
    assert found == sorted(plain_mdav([tuple(p) for p in points], k))
    assert all(len(g) >= k for g in found)


@pytest.mark.parametrize("shape", [(500, 1), (500, 2), (400, 4)])
@pytest.mark.parametrize("k", [1, 3, 90, 140])
def test_microaggregation_in_boxes_is_mdav(shape: tuple[int, int], k: int) -> None:
    """More points than a box holds, groups larger than a box, boxes that are emptied and divided anew."""
    points = np.random.default_rng(k).standard_t(3, size=shape)
    group = mdav(points, k)
    found = sorted(sorted(np.flatnonzero(group == g).tolist()) for g in range(group.max() + 1))
    assert found == sorted(plain_mdav([tuple(p) for p in points.tolist()], k))


def test_microaggregation_of_equal_points() -> None:
    """Ties may go either way, but every group has its size and equal points that fill one are a group."""
    assert np.bincount(mdav(np.zeros((1000, 2)), 7)).tolist() == [7] * 141 + [13]
    points = np.repeat(np.arange(100.0), 10)[:, None]
    group = mdav(points, 10)
    assert all(len(set(points[group == g, 0])) == 1 for g in range(100))


def test_microaggregation_keeps_means_and_makes_classes() -> None:
    table = survey()
    made = apply(table, anon.Microaggregate(columns=("age", "income"), k=7))
    assert column(made, "income").mean() == pytest.approx(column(table, "income").mean())
    sizes = Counter(zip(column(made, "age"), column(made, "income"), strict=True))
    assert min(sizes.values()) >= 7
    assert max(sizes.values()) <= 13


def test_microaggregation_of_many_rows() -> None:
    points = np.random.default_rng(0).normal(size=(20_000, 3))
    before = points.copy()
    sizes = np.bincount(mdav(points, 100))
    assert (points == before).all()
    assert sizes.sum() == 20_000
    assert sizes.min() >= 100


def test_matrix_masking_keeps_means_and_covariances() -> None:
    table = survey(505)
    made = apply(table, anon.MatrixMask(columns=("age", "income"), block=20))
    old = np.stack([column(table, "age"), column(table, "income")], axis=1).astype(float)
    new = np.stack([column(made, "age"), column(made, "income")], axis=1)
    assert new.mean(axis=0) == pytest.approx(old.mean(axis=0), rel=1e-10)
    assert np.cov(new, rowvar=False) == pytest.approx(np.cov(old, rowvar=False), rel=1e-10)
    assert np.mean(np.abs(new[:, 0] - old[:, 0]) > 1) > 0.9
    a, b, c = np.eye(3)[::-1], np.array([[2.0, 0], [1, 1]]), np.ones((3, 2))
    x = np.arange(6.0).reshape(3, 2)
    assert masked(x, left=a, right=b, add=c) == pytest.approx(a @ x @ b + c)


# --- what was lost -------------------------------------------------------------------------------------
def test_what_was_lost_and_what_is_left() -> None:
    table = pa.table({"g": ["a", "b", "c", "c"], "x": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 2.0, 3.0, 4.5]})
    tree = anon.Hierarchy.of({"a": ("ab",), "b": ("ab",), "c": ("c",)})
    found = anon.treat_table(
        table,
        [anon.Collapse(column="g", hierarchy=tree, level=1), anon.TopCode(column="x", at=2)],
        quasi=["g", "x"],
    )
    assert found.lost.shift["g"] == 0.5
    assert found.lost.shift["x"] == 0.5
    assert found.lost.changed == {"g": 0.5, "x": 0.5, "y": 0.0}
    before, after = (
        np.corrcoef([1, 2, 3, 4], [1, 2, 3, 4.5])[0, 1],
        np.corrcoef([1, 2, 2, 2], [1, 2, 3, 4.5])[0, 1],
    )
    assert found.lost.correlation == pytest.approx(abs(before - after))
    assert found.checked is not None
    assert found.checked.k == 1
    assert any("alone" in p for p in found.problems)
    assert found.to_dict()["lost"]["rows_removed"] == 0


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: anon.Remove(columns=()), errors.EmptyComposition),
        (lambda: anon.Sample(share=0), errors.InvalidParameter),
        (lambda: anon.Sample(share=1.5), errors.InvalidParameter),
        (lambda: anon.Swap(columns=("a",), share=0.1, match=("a",)), errors.InvalidParameter),
        (lambda: anon.Disturb(column="a"), errors.InvalidParameter),
        (lambda: anon.Round(column="a", base=0), errors.InvalidParameter),
        (lambda: anon.Microaggregate(columns=("age",), k=0), errors.InvalidParameter),
        (lambda: apply(survey(), anon.Round(column="nope", base=1)), errors.UnknownColumn),
        (lambda: apply(survey(), anon.Round(column="town", base=1)), errors.WrongType),
        (lambda: apply(survey(), anon.Microaggregate(columns=("age",), k=601)), errors.InvalidParameter),
        (lambda: apply(survey(), anon.ModelDraws(column="ill", given=("ill",))), errors.InvalidParameter),
        (lambda: apply(survey(), anon.Collapse(column="town", hierarchy=ONLY_A, level=1)), errors.InvalidParameter),
        (lambda: apply(survey().slice(0, 0), anon.Round(column="age", base=1)), errors.BadData),
        (lambda: apply(pa.table({"a": [1.0, None]}), anon.MatrixMask(columns=("a",))), errors.WrongType),
        (lambda: anon.treat_table(survey(), []), errors.EmptyComposition),
    ],
)  # fmt: skip
def test_refusals(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        make()
    assert "'p3'" not in str(caught.value)


def test_draws_are_what_they_say() -> None:
    draws = Draws(SeededSource(seed=5))
    u = draws.uniform(20_000)
    assert 0 < u.min() < u.max() < 1
    # Kolmogorov-Smirnov: sqrt(n) D above 3.3 has probability 7e-10.
    assert np.abs(np.sort(u) - (np.arange(20_000) + 0.5) / 20_000).max() < 3.3 / np.sqrt(20_000)
    assert draws.normal(20_000).std() == pytest.approx(1, abs=0.04)
    assert sorted(draws.permutation(500)) == list(range(500))
    assert set(draws.below(np.array([1, 1, 2, 2, 2] * 50))) == {0, 1}


def test_whole_numbers_stay_whole_and_keep_their_places_in_a_hierarchy() -> None:
    """Coded ages are still ages: a hierarchy of whole numbers has a place for them."""
    table = pa.table({"age": pa.array([17, 30, None, 95], pa.int32()), "id": [2**60, 2**60 + 1, 3, 4]})
    ages = anon.intervals(range(18, 81), widths=[5, 10])
    made = apply(
        table,
        anon.TopCode(column="age", at=80),
        anon.BottomCode(column="age", at=18),
        anon.Collapse(column="age", hierarchy=ages, level=1),
    )
    assert made.column("age").to_pylist() == ["[15, 20)", "[30, 35)", None, "[80, 85)"]
    coded = apply(table, anon.TopCode(column="age", at=80))
    assert coded.schema.field("age").type == pa.int32()
    assert apply(table, anon.Round(column="age", base=10)).column("age").to_pylist() == [20, 30, None, 100]
    assert apply(table, anon.TopCode(column="age", at=80.5)).column("age").to_pylist()[3] == 80.5


def test_coding_whole_numbers_that_no_float_holds_is_refused() -> None:
    table = pa.table({"id": [2**60 + 1, 3]})
    with pytest.raises(errors.WrongType, match="2\\^53"):
        apply(table, anon.TopCode(column="id", at=2.0**62))
