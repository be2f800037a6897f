"""Propose, test, release for a statistic of one's own: from the definition, on all neighbours of small tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.audit import opinion_on_certificate
from tacit.errors import InvalidParameter
from tacit.guarantees import Neighbours
from tacit.mechanisms import L1, InterquartileRangeByTest, MedianByTest
from tacit.mechanisms.own_statistics import LeastSquares, StatisticByTest, check_distance
from tacit.mechanisms.propose_test_release import distance_to_instability
from tacit.noise.source import SeededSource


def majority(votes: Sequence[Any]) -> int:
    return 5 * int(2 * sum(votes) > len(votes))


def distance(votes: Sequence[Any]) -> int:
    half = len(votes) // 2
    return max(sum(votes) - half - 1, half - sum(votes), 0)


def by_test(**changes: Any) -> StatisticByTest:
    given = {
        "statistic": majority, "distance": distance, "proposed": L1(1), "test_epsilon": 1, "release_epsilon": 1,
        "delta": 0.05,
    }  # fmt: skip
    return StatisticByTest(**(given | changes))


# --- the law, from the definition -----------------------------------------------------------------------------------
def laplace(k: int, epsilon: float) -> float:
    q = math.exp(-epsilon)
    return (1 - q) / (1 + q) * q ** abs(k)


def outcomes(votes: Sequence[int], first: float, second: float, threshold: int) -> dict[Any, float]:
    chance = sum(laplace(k, first) for k in range(threshold - distance(votes) + 1, 400))
    found: dict[Any, float] = {None: 1 - chance}
    for k in range(-150, 151):
        found[majority(votes) + k] = chance * laplace(k, second)
    return found


def hockey(p: dict[Any, float], q: dict[Any, float], epsilon: float) -> float:
    return sum(max(0.0, p.get(k, 0.0) - math.exp(epsilon) * q.get(k, 0.0)) for k in {*p, *q})


def test_the_law_of_the_outcome_on_all_neighbours() -> None:
    """50 random prices: no pair of neighbours of up to five rows is told apart further than stated; delta is used."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        first, second = rng.uniform(0.3, 2, 2)
        delta = float(10 ** rng.uniform(-3, -1))
        made = by_test(test_epsilon=first, release_epsilon=second, delta=delta)
        tail = sum(laplace(k, first) for k in range(made.threshold + 1, 600))
        assert (
            tail
            <= delta * (1 + 1e-9)
            < sum(laplace(k, first) for k in range(made.threshold, 600)) * (1 + 1e-9)
        )
        worst = 0.0
        for n in (4, 5):
            for ones in range(n):
                one, other = [1] * ones + [0] * (n - ones), [1] * (ones + 1) + [0] * (n - ones - 1)
                p, q = (outcomes(v, first, second, made.threshold) for v in (one, other))
                worst = max(worst, hockey(p, q, first + second), hockey(q, p, first + second))
        assert worst <= delta * (1 + 1e-6)
        # Where the vote turns both distances are 0: what the test lets pass there is told apart, up to the noise.
        assert worst > tail * (1 - math.exp(first + second - 4 * second)) * 0.5
        assert made.bound.epsilon == pytest.approx(first + second)


def test_what_is_drawn_has_this_law() -> None:
    made, source = by_test(delta=0.2), SeededSource(seed=3)
    for votes in ([1, 1, 1, 1, 0], [1, 1, 1, 0, 0]):
        law = outcomes(votes, 1, 1, made.threshold)
        seen: dict[Any, int] = {}
        for _ in range(2000):
            told = made.release(votes, source=source)
            key = None if told.released is None else int(told.released.values[0])
            seen[key] = seen.get(key, 0) + 1
        assert made.passes(distance(votes)) == pytest.approx(1 - law[None])
        for key in (None, majority(votes), majority(votes) + 1):
            spread = math.sqrt(2000 * law[key] * (1 - law[key]))
            assert abs(seen.get(key, 0) - 2000 * law[key]) < 6.5 * spread + 1


# --- checks ---------------------------------------------------------------------------------------------------------
def test_checks_find_wrong_distances() -> None:
    said = check_distance(majority, distance, proposed=0, values=[0, 1], rows=7)
    assert (said.tables, said.rows, said.neighbours) == (35, 7, Neighbours.REPLACE_ONE)
    for wrong, words in (
        (lambda v: 2 * distance(v), "move by at most 1"),
        (lambda v: distance(v) + 1, "be 0 where the statistic is unstable"),
        (lambda v: -1, "whole number of at least 0"),
        (lambda v: 0.5, "whole number of at least 0"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            check_distance(majority, wrong, proposed=0, values=[0, 1], rows=5)  # type: ignore[arg-type]
    # A sum is never stable below what one row moves it, and stable at it.
    with pytest.raises(InvalidParameter, match="unstable"):
        check_distance(sum, len, proposed=1, values=[0, 2], rows=3)
    check_distance(sum, len, proposed=2, values=[0, 2], rows=3)
    with pytest.raises(InvalidParameter, match="too many tables"):
        check_distance(sum, len, proposed=2, values=list(range(100)), rows=10)
    with pytest.raises(InvalidParameter, match="two different"):
        check_distance(sum, len, proposed=2, values=[0], rows=2)
    with pytest.raises(InvalidParameter, match="as many numbers"):
        check_distance(lambda v: list(set(v)), lambda v: 0, proposed=9, values=[0, 1], rows=2)


def test_added_rows_are_neighbours_too() -> None:
    """|2 ones - n| / 2 moves by 1/2 when a row comes or goes; its floor is a distance for add-or-remove."""

    def far(votes: Sequence[Any]) -> int:
        gap = 2 * sum(votes) - len(votes)
        return max(gap - 2, -gap - 1, 0) // 2

    said = check_distance(majority, far, proposed=0, values=[0, 1], rows=7, neighbours="add-or-remove")
    made = by_test(distance=far, checked=said)
    made.certificate_for(tacit.rows())
    with pytest.raises(InvalidParameter, match="checked for these"):
        made.certificate_for(tacit.rows(neighbours="replace-one"))
    with pytest.raises(InvalidParameter, match="unstable"):
        check_distance(
            majority, lambda v: far(v) + 1, proposed=0, values=[0, 1], rows=5, neighbours="add-or-remove"
        )


def test_a_certificate_says_on_what_it_rests() -> None:
    unit = tacit.rows(neighbours="replace-one")
    said = by_test().certificate_for(unit)
    assert "CHECKED BY NOBODY" in said["assumptions"][0]
    assert "CHECKED BY NOBODY" in " ".join(said["guarantee"]["declared"])
    assert opinion_on_certificate(said).confirmed
    assert "by Lemma 3" in by_test(proof="Lemma 3").certificate_for(unit)["assumptions"][0]
    checked = check_distance(majority, distance, proposed=5, values=[0, 1], rows=3)
    assert "for longer tables it is assumed" in by_test(checked=checked, proposed=L1(5)).assumptions[0]
    with pytest.raises(InvalidParameter, match="at least the bound that was checked"):
        by_test(checked=checked, proposed=L1(4))


def test_functions_that_raise_decline_and_say_nothing() -> None:
    def broken(votes: Sequence[Any]) -> int:
        raise ValueError(f"the secret {votes}")

    for changes in ({"statistic": broken}, {"distance": broken}, {"statistic": lambda v: [1, 2]}):
        told = by_test(delta=1e-9, **changes).release([1] * 50, source=SeededSource(seed=1))
        assert told.released is None
    with pytest.raises(InvalidParameter, match="function of the rows"):
        by_test(distance=3)
    with pytest.raises(InvalidParameter, match="check_distance"):
        by_test(checked=True)


# --- regression -----------------------------------------------------------------------------------------------------
def test_least_squares_moves_no_further_than_stated() -> None:
    """least-squares-distance: 60 random tables with replaced rows, simple and multiple."""
    rng, nearest, stable = np.random.default_rng(4), 0.0, 0
    step = Fraction(1, 1 << 16)
    for case in range(60):
        columns = 1 + case % 2
        n = 40
        made = LeastSquares(columns=columns, rows=n, floor=columns + 1 + float(rng.uniform(0.2, 2)), grid=8)
        data = rng.uniform(-1, 1, (n, columns + 1)) * rng.uniform(0.6, 1)
        if case % 4 > 1:
            # Few rows carry the line, and the new one is far from it.
            data[:, :-1] = np.where(rng.random((n, columns)) < 0.25, rng.choice([-1, 1], (n, columns)), 0)
            data[:, -1] = np.clip(data[:, :-1].sum(axis=1), -1, 1)
        other = data.copy()
        other[int(rng.integers(n))] = rng.choice([-1, 1], columns + 1)
        far, away = made.distance(data), made.distance(other)
        assert abs(far - away) <= 1
        clipped = np.rint(np.clip(data, -1, 1) * 8) / 8
        z = np.column_stack([clipped[:, :-1], np.ones(n)])
        least = float(np.linalg.eigvalsh(z.T @ z)[0])
        assert far == max(0, math.ceil((least - float(made.floor)) / (columns + 1) - 1e-9) - 1) or far == max(
            0, math.floor((least - float(made.floor)) / (columns + 1))
        )
        one, two = (made.statistic(d, spacing=step) for d in (data, other))
        assert np.allclose(
            np.array(one) * float(step), np.linalg.lstsq(z, clipped[:, -1], rcond=None)[0], atol=1e-4
        )
        if far or away:
            stable += 1
            moved = sum(abs(a - b) for a, b in zip(one, two, strict=True)) * step
            assert moved <= made.move(step)
            nearest = max(nearest, float(moved / made.move(step)))
    assert stable > 20
    assert nearest > 0.015


@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize("most", [1, 3])
def test_least_squares_of_units_with_several_rows(most: int, replaced: bool) -> None:
    """The same for units with up to m rows, replaced or added, while the number of rows is watched as well."""
    rng, stable, nearest = np.random.default_rng(7), 0, 0.0
    step, n = Fraction(1, 1 << 16), 60
    for _ in range(50):
        made = LeastSquares(
            columns=1, rows=n + 4, floor=2 * most + float(rng.uniform(0.5, 4)), grid=8, unit_rows=most,
            neighbours=Neighbours.REPLACE_ONE if replaced else Neighbours.ADD_OR_REMOVE, counted=False,
        )  # fmt: skip
        rest = rng.uniform(-1, 1, (n, 2)) * rng.uniform(0.2, 1)
        size, other = int(rng.integers(0, most + 1)), int(rng.integers(1, most + 1))
        before = rng.choice([-1, 1], (size if replaced else 0, 2))
        after = rng.choice([-1, 1], (other, 2))
        data = [np.concatenate([rest, rows]) for rows in (before, after)]
        far, away = (made.distance(d) for d in data)
        assert abs(far - away) <= 1
        one, two = (made.statistic(d, spacing=step) for d in data)
        if far or away:
            stable += 1
            moved = sum(abs(a - b) for a, b in zip(one, two, strict=True)) * step
            assert moved <= made.move(step)
            nearest = max(nearest, float(moved / made.move(step)))
    assert stable > 10
    assert nearest > 0.003


def test_too_many_rows_are_as_unstable_as_too_few() -> None:
    """One row more than the bound: 0; and each unit away from it counts 1."""
    made = LeastSquares(
        columns=1, rows=40, floor=3, grid=8, neighbours=Neighbours.ADD_OR_REMOVE, counted=False
    )
    corners = [[-1.0, -1.0], [1.0, 1.0]]
    assert [made.distance((corners * 30)[:n]) for n in (42, 41, 40, 39, 36)] == [0, 0, 1, 2, 5]
    four = LeastSquares(columns=1, rows=1000, floor=9, grid=8, unit_rows=4, counted=False)
    # The least eigenvalue is the number of rows; a unit of four rows moves it by at most 8.
    assert [four.distance(corners * n) for n in (10, 12, 14, 16)] == [1, 1, 2, 2]
    wide = LeastSquares(columns=1, rows=40, floor=5, grid=8, unit_rows=2, counted=False)
    assert [wide.distance((corners * 30)[:n]) for n in (42, 41, 40, 39, 38, 36)] == [0, 0, 1, 1, 2, 3]


def test_the_unit_of_a_regression() -> None:
    made = LeastSquares(columns=1, rows=400, floor=60, unit_rows=3, counted=False)
    price: dict[str, Any] = {"test_epsilon": 1, "release_epsilon": 1, "delta": 1e-6}
    person = tacit.people("id", at_most=3, neighbours="replace-one")
    made.mechanism(**price, unit=person).certificate_for(person)
    for unit in (
        None,
        tacit.people("id", at_most=4, neighbours="replace-one"),
        tacit.people("id", at_most=3),
    ):
        with pytest.raises(InvalidParameter, match="at most 3 rows"):
            made.mechanism(**price, unit=unit)
    for words in ({"unit_rows": 2}, {"neighbours": "add-or-remove"}):
        with pytest.raises(InvalidParameter, match="only replaced rows"):
            LeastSquares(**({"columns": 1, "rows": 400, "floor": 60} | words))


def test_regression_by_a_test_is_released_and_refused() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 4000)
    data = np.column_stack([x, np.clip(0.5 * x + 0.1, -1, 1)])
    made = LeastSquares.for_spread(columns=1, rows=4000, least_eigenvalue=0.2, test_epsilon=2, delta=1e-6)
    mechanism = made.mechanism(test_epsilon=2, release_epsilon=6, delta=1e-6)
    told = mechanism.release(data, source=SeededSource(seed=5))
    assert told.released is not None
    assert told.released.to_floats() == pytest.approx([0.5, 0.1], abs=0.06)
    assert "least-squares-distance" in mechanism.assumptions[0]
    # All rows at one place: unstable, and nothing is said.
    same = np.column_stack([np.full(4000, 0.3), np.full(4000, 0.2)])
    assert mechanism.release(same, source=SeededSource(seed=6)).released is None
    refused = (
        ({"floor": 1}, "above 2"),
        ({"floor": 10**6}, "no table reaches it"),
        ({"columns": 0}, "columns"),
    )
    for bad, words in refused:
        with pytest.raises(InvalidParameter, match=words):
            LeastSquares(**({"columns": 1, "rows": 4000, "floor": 50} | bad))
    with pytest.raises(InvalidParameter, match="could not be passed"):
        LeastSquares.for_spread(columns=1, rows=50, least_eigenvalue=0.2, test_epsilon=0.1, delta=1e-6)
    assert list(itertools.islice(made.statistic(same, spacing=1), 2)) == [0, 0]


# --- what is between two things that hold -----------------------------------------------------------------------------
def test_one_odd_row_does_not_decide_about_a_regression() -> None:
    """A text, a gap or a row of another length counts as 0: the distance moves by 1 at most, as for any row."""
    rng = np.random.default_rng(0)
    data: list[Any] = rng.uniform(-1, 1, (400, 2)).tolist()
    fit = LeastSquares(columns=1, rows=400, floor=60)
    made = fit.mechanism(test_epsilon=1, release_epsilon=1, delta=1e-6)
    far = fit.distance(data)
    assert far > made.threshold + 10
    for odd in (["x", 0.1], [0.1], None, [None, 0.1], [10**400, 0], [[1], 2], 3, ["1", b"2"]):
        assert abs(fit.distance([odd, *data[1:]]) - far) <= 1
        assert made.release([odd, *data[1:]], source=SeededSource(seed=1)).passed


def test_a_fine_grid_whose_sums_would_wrap_is_refused() -> None:
    assert LeastSquares(columns=1, rows=2000, floor=300, grid=1 << 25).distance([[0.5, 0.5]] * 2000) == 0
    with pytest.raises(InvalidParameter, match="coarser"):
        LeastSquares(columns=1, rows=2000, floor=300, grid=1 << 31)


def test_a_certificate_is_for_the_unit_of_its_proof_alone() -> None:
    made = LeastSquares(columns=1, rows=400, floor=60).mechanism(
        test_epsilon=1, release_epsilon=1, delta=1e-6
    )
    made.certificate_for(tacit.rows(neighbours="replace-one"))
    said = check_distance(majority, distance, proposed=0, values=[0, 1], rows=5)
    checked = by_test(checked=said)
    checked.certificate_for(tacit.rows(neighbours="replace-one"))
    for unit in (
        tacit.rows(), tacit.people("id", at_most=5), tacit.people("id", at_most=5, neighbours="replace-one"),
        tacit.group_of(tacit.rows(neighbours="replace-one"), size=2),
    ):  # fmt: skip
        for mechanism in (made, checked):
            with pytest.raises(InvalidParameter, match="for these"):
                mechanism.certificate_for(unit)
        for kind in (MedianByTest, InterquartileRangeByTest):
            mine = kind(proposed=L1(2), test_epsilon=1, release_epsilon=1, delta=1e-6)
            with pytest.raises(InvalidParameter, match="counts replaced rows"):
                mine.certificate_for(unit)
            assert mine.certificate_for(tacit.rows(neighbours="replace-one"))["neighbours"] == "replace-one"


def test_rows_of_one_person_move_the_test_by_more_than_its_epsilon() -> None:
    """Why a median by a test has no certificate for people: two rows of one person move its distance by 2."""
    made = MedianByTest(proposed=L1(2), test_epsilon=1, release_epsilon=0.1, delta=0.2)
    before, after = ([0, 0, *[5] * 9], [5] * 11)
    near, far = (distance_to_instability(data, rank=6, steps=2) for data in (before, after))
    assert (near, far) == (3, 5)
    declined = [sum(laplace(k, 1) for k in range(-300, made.threshold - d + 1)) for d in (near, far)]
    # One replaced row is hidden up to e^1 here, or e^1.1 with the release. These two are not.
    assert declined[0] == pytest.approx(math.e**2 * declined[1])
    assert declined[0] > math.exp(1.1) * declined[1]


def test_a_check_is_of_these_functions_in_any_order_of_rows() -> None:
    said = check_distance(majority, distance, proposed=0, values=[0, 1], rows=5)
    with pytest.raises(InvalidParameter, match="this statistic"):
        by_test(checked=said, statistic=lambda votes: 1000 * majority(votes))

    # On sorted tables this is a median, with its distance.
    def middle(rows: Sequence[Any]) -> int:
        return int(rows[len(rows) // 2])

    with pytest.raises(InvalidParameter, match="order"):
        check_distance(middle, lambda _: 0, proposed=1, values=[0, 1], rows=3)
    check_distance(lambda r: middle(sorted(r)), lambda _: 0, proposed=1, values=[0, 1], rows=3)
