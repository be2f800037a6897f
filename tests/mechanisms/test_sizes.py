"""Sizes of noise by hand, where no two numbers are equal: rows, records, tables, levels, groups and radii all count."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit import errors
from tacit.guarantees import Neighbours
from tacit.mechanisms import (
    L1,
    L2,
    Contribution,
    CountSensitivity,
    CumulativeTree,
    Gamma,
    Gauge,
    Gaussian,
    GaussianSelection,
    Geometric,
    HullGauge,
    InterquartileRangeByTest,
    KeysOfAUnit,
    KNorm,
    KNormDifference,
    Laplace,
    Linf,
    Mahalanobis,
    MedianByTest,
    OptimalSelection,
    PolytopeNorm,
    RangeNorm,
    RangeTree,
    RoundedGaussian,
    Score,
    StableHistogram,
    Staircase,
    TruncatedGeometric,
    Workload,
    choose,
    one_way_margins,
)
from tacit.mechanisms.bodies import Box, Simplex, gauge
from tacit.mechanisms.cumulative import CumulativeGaussian, _strategy
from tacit.mechanisms.fitted_tables import Agreement, FittedTables, HullTables, Image
from tacit.mechanisms.fourier import fourier_l1, fourier_l2, fourier_noise
from tacit.mechanisms.linear import margin_errors
from tacit.mechanisms.partition import delta_of_group, response_delta, split
from tacit.mechanisms.selection import score_rate
from tacit.mechanisms.strategies import Budget, block_mechanism
from tacit.mechanisms.tables import ShapedTables
from tacit.noise import CaratheodoryBody, Ellipsoid, EuclideanBall, L1Ball, LinfBall

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
PLACES = (np.array([0, 1]), np.array([0, 0]))
SCALES: dict[str, tuple[Callable[[], Any], Fraction]] = {
    "Laplace": (lambda: Laplace.for_target(epsilon=THIRD, sensitivity=L1(5)), Fraction(15)),
    "Laplace on a grid": (
        lambda: Laplace.for_target(epsilon=THIRD, sensitivity=L1(Fraction(7, 8)), spacing=Fraction(1, 4)),
        Fraction(9, 4),
    ),
    "Geometric": (lambda: Geometric(epsilon=THIRD, sensitivity=CountSensitivity(5)).distribution, Fraction(15)),
    "TruncatedGeometric": (
        lambda: TruncatedGeometric(epsilon=THIRD, low=0, high=9, sensitivity=CountSensitivity(5)).distribution,
        Fraction(15),
    ),
    "Gamma": (lambda: Gamma.for_target(epsilon=THIRD, sensitivity=L2(5), dimension=2), Fraction(15)),
    "Gamma on a grid": (
        lambda: Gamma.for_target(epsilon=THIRD, sensitivity=L2(5), dimension=2, spacing=Fraction(1, 4)), Fraction(15),
    ),
    "KNorm": (
        lambda: KNorm.for_target(epsilon=THIRD, sensitivity=Gauge(5, LinfBall(coordinates=2))), Fraction(15),
    ),
    "a replaced contribution": (
        lambda: KNormDifference.for_target(epsilon=THIRD, sensitivity=Contribution(5, LinfBall(coordinates=2))),
        Fraction(30),
    ),
    "an added contribution": (
        lambda: KNormDifference.for_target(
            epsilon=THIRD, sensitivity=Contribution(5, LinfBall(coordinates=2), replace=False)
        ), Fraction(15),
    ),
    "the gauge of a hull": (
        lambda: KNormDifference.for_target(epsilon=THIRD, sensitivity=HullGauge(5, LinfBall(coordinates=2))),
        Fraction(15),
    ),
    "PolytopeNorm": (lambda: PolytopeNorm.for_target(epsilon=THIRD, points=((3,),), times=7), Fraction(21)),
    "RangeNorm": (lambda: RangeNorm.for_target(epsilon=THIRD, dimension=3, times=7), Fraction(21)),
    "HullTables": (
        lambda: HullTables.for_target(epsilon=THIRD, image=Image(patterns=((1,),), sizes=(1,)), times=7).noise,
        Fraction(21),
    ),
    "FittedTables": (
        lambda: FittedTables.for_target(
            epsilon=THIRD, l1=4, agreement=Agreement(places=PLACES, sizes=(2, 1))
        ).noise, Fraction(12),
    ),
    "ShapedTables": (lambda: ShapedTables(sizes=(2,), noise_scale=21, times=7).noise, Fraction(21)),
    "CumulativeTree": (
        lambda: CumulativeTree(bins=4096, l1=5, epsilon=THIRD), Fraction(45),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCALES)
def test_noise_has_the_scale_that_its_move_needs(name: str) -> None:
    act, scale = SCALES[name]
    found = Fraction(act().noise_scale)
    assert scale <= found <= scale * (1 + Fraction(1, 1 << 40))


def test_steps_of_a_staircase_are_as_wide_as_the_move() -> None:
    made = Staircase(epsilon=THIRD, sensitivity=L1(Fraction(5, 4)), spacing=Fraction(1, 4))
    assert made.noise_distribution["sensitivity_steps"] == 5
    law = made.distribution
    for k in (0, 1, 3, 7):
        low, high = law.probability(k)
        near = law.probability(k + 5)
        assert high / near[0] == pytest.approx(math.exp(1 / 3), rel=1e-9) or k < 3
        assert low <= math.exp(1 / 3) * near[1] * (1 + 1e-9)


@pytest.mark.parametrize("monotone", [False, True])
def test_a_unit_of_score_weighs_epsilon_over_twice_the_move(monotone: bool) -> None:
    assert score_rate(3, Score(5, monotone)) == Fraction(3, 5 if monotone else 10)


@pytest.mark.parametrize("made", [MedianByTest, InterquartileRangeByTest])
def test_a_tested_statistic_keeps_its_two_prices_apart(made: Any) -> None:
    one = made(
        proposed=L1(Fraction(5, 4)), test_epsilon=2, release_epsilon=THIRD, delta=1e-3, spacing=Fraction(1, 4)
    )
    assert one._test_distribution.noise_scale == HALF
    assert one.distribution.noise_scale == 15
    assert one.bound.epsilon == pytest.approx(2 + 1 / 3)
    assert one.bound.delta == 1e-3
    t = one.threshold
    assert one._test_distribution.survival(t + 1)[1] <= 1e-3 < one._test_distribution.survival(t)[0]


def test_a_range_is_as_far_from_failing_as_its_nearer_quartile() -> None:
    """The lower quartile lies in a dense crowd, the upper one beside a gap: the smaller distance counts."""
    made = InterquartileRangeByTest(proposed=L1(1), test_epsilon=1, release_epsilon=1, delta=1e-3)
    rows = np.sort(np.array([0] * 30 + [1] * 5 + [1000] * 5))
    first, third = made._ranks(40)
    assert (first, third) == (10, 31)
    assert made._distance(rows) == 4
    assert made._distance(np.sort(-rows)) == 4
    assert made._distance(np.zeros(40, dtype=np.int64)) == 9


# --- tables ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_margins_are_sized_by_columns_and_rows(neighbours: Neighbours) -> None:
    plans = {
        p.name: p.mechanism
        for p in one_way_margins(columns=3, rows=2, epsilon=HALF, delta=1e-6, neighbours=neighbours)
    }
    assert plans["Laplace noise"].noise_scale == 12  # type: ignore[union-attr]
    shaped = plans["cube noise" if neighbours is Neighbours.REPLACE_ONE else "range-norm noise"]
    assert shaped.noise_scale == 4  # type: ignore[union-attr]
    assert float(shaped.bound.epsilon) == 0.5  # type: ignore[attr-defined]
    normal = plans["Gaussian noise"]
    assert normal.sensitivity.square == 12  # type: ignore[union-attr]
    assert ("cube noise" in plans) == (neighbours is Neighbours.REPLACE_ONE)


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_tables_of_two_columns_are_sized_by_their_number(neighbours: Neighbours) -> None:
    """Three tables of two of three columns: each row is counted in all of them, a replaced one twice."""
    twice = 2 if neighbours is Neighbours.REPLACE_ONE else 1
    found = margin_errors(sizes=(2, 3, 4), order=2, epsilon=HALF, delta=1e-6, rows=2, neighbours=neighbours)
    plans = {(p.name, p.on): p.mechanism for p in found}
    assert plans["Laplace noise", "3 tables"].sensitivity == L1(3 * 2 * twice)  # type: ignore[union-attr]
    assert plans["Laplace noise", "the full table of 24 cells"].sensitivity == L1(2 * twice)  # type: ignore[union-attr]
    assert plans["Gaussian noise", "3 tables"].sensitivity.square == 3 * 4 * twice  # type: ignore[union-attr]
    assert plans["Gaussian noise", "the full table of 24 cells"].sensitivity.square == 4 * twice  # type: ignore[union-attr]
    shaped = plans["cube noise" if twice == 2 else "range-norm noise", "3 tables"]
    assert shaped.noise_scale == 4  # type: ignore[union-attr]
    assert shaped.coordinates == 6 + 8 + 12  # type: ignore[union-attr]


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_only_tables_of_complete_rows_leave_out_a_key(complete: bool, neighbours: Neighbours) -> None:
    found = margin_errors(
        sizes=(2, 3), order=1, epsilon=HALF, rows=2, neighbours=neighbours, complete=complete
    )
    few = [p for p in found if p.on.startswith("the number of rows")]
    assert bool(few) == (complete and neighbours is Neighbours.ADD_OR_REMOVE)
    for plan in few:
        assert plan.mechanism.noise_scale == 4  # type: ignore[union-attr]
        assert plan.mechanism.coordinates == 4  # type: ignore[union-attr]


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize(("rows", "absent"), [(1, True), (1, False), (3, False), (3, True)])
def test_every_level_of_a_tree_moves_by_all_rows(
    gaussian: bool, neighbours: Neighbours, rows: int, absent: bool
) -> None:
    """m in L1 or m^2 in squared L2 for rows that come or go, twice that where they move; the root if rows vanish."""
    replaced = neighbours is Neighbours.REPLACE_ONE
    budget = Budget.of(1, 1e-6)
    tree = RangeTree._made(8, 2, budget, gaussian, replaced, rows, absent or rows > 1)
    planned = RangeTree.plan(cells=8, epsilon=1, branching=2, neighbours=neighbours, rows=rows, absent=absent)
    one = rows**2 if gaussian else rows
    for level, noise in enumerate(tree.mechanisms):
        want = (one if absent or rows > 1 else 0) if replaced and level == 0 else one * (2 if replaced else 1)
        if want == 0:
            assert noise is None
            assert planned.mechanisms[0] is None
            continue
        assert noise is not None
        move = noise.sensitivity.square if gaussian else noise.sensitivity.exact  # type: ignore[union-attr]
        assert move == want
        assert (planned.mechanisms[level] is None) == (want == 0)


@pytest.mark.parametrize("gaussian", [False, True])
def test_shares_of_a_budget_add_up(gaussian: bool) -> None:
    budget = Budget.of(1, 1e-6)
    parts = [block_mechanism(1, 5, s, budget, gaussian) for s in (Fraction(1, 5), Fraction(4, 5))]
    if gaussian:
        squares = [p.exact_mu_squared for p in parts]
        assert squares[0] == pytest.approx(float(budget.mu) ** 2 / 5, rel=1e-9)  # type: ignore[comparison-overlap]
        assert float(sum(s for s in squares if s)) <= float(budget.mu) ** 2 * (1 + 1e-9)
        assert [p.sensitivity.square for p in parts] == [5, 5]  # type: ignore[union-attr]
    else:
        assert [float(p.exact_epsilon or 0) for p in parts] == pytest.approx([0.2, 0.8], rel=1e-9)
        assert sum(p.exact_epsilon or 0 for p in parts) < 1
        assert [p.sensitivity for p in parts] == [L1(5), L1(5)]
    from tacit.guarantees import GaussianDP

    assert GaussianDP(mu=float(budget.mu)).delta(1.0) <= 1e-6
    assert GaussianDP(mu=float(budget.mu) * 1.001).delta(1.0) > 1e-6


@pytest.mark.parametrize("target", ["rho", "both"])
def test_correlated_noise_of_ranks_is_sized_by_the_longest_column(target: str) -> None:
    more: dict[str, Any] = {"bins": 16, "l2_squared": 3}
    if target == "rho":
        made = CumulativeGaussian.for_rho(rho=Fraction(1, 5), **more)
        assert Fraction(made.bound.mu) ** 2 / 2 <= Fraction(1, 5)
        assert made.bound.mu == pytest.approx(math.sqrt(0.4), rel=1e-9)
    else:
        made = CumulativeGaussian.for_target(epsilon=1, delta=1e-6, **more)
        assert made.bound.delta(1.0) <= 1e-6
        assert made.bound.delta(1.0) >= 0.99e-6
    longest = sum(int(c) ** 2 for c in _strategy(16, made.bits).coefficients)
    assert float(Fraction(made.noise_std) ** 2) == pytest.approx(longest * 3 / made.bound.mu**2, rel=1e-9)
    assert made.bits >= 12


def test_fitted_gaussian_noise_is_sized_by_the_squared_move() -> None:
    made = FittedTables.for_mu_squared(
        mu_squared=Fraction(1, 7), l2_squared=3, agreement=Agreement(places=PLACES, sizes=(2, 1))
    )
    assert isinstance(made.noise, RoundedGaussian)
    assert float(made.noise.noise_std) ** 2 == pytest.approx(21, rel=1e-12)
    assert made.noise.sensitivity.square == 3  # type: ignore[union-attr]
    assert float(made.exact_mu_squared or 0) == pytest.approx(1 / 7, rel=1e-9)


MATRICES = {
    "zeros and ones": np.array([[1, 1, 0, 0], [0, 1, 1, 1], [1, 1, 1, 1]]),
    "signs": np.array([[1, -1, 0], [0, 1, -1]]),
    "large and small": np.array([[5, 0, 1], [0, 3, 1]]),
}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_every_candidate_covers_every_move_of_a_unit(
    name: str, neighbours: Neighbours, delta: float | None
) -> None:
    """All histograms' moves of two rows, listed: each block's noise is sized for the largest, in its own norm."""
    matrix, rows = MATRICES[name], 2
    cells = matrix.shape[1]
    units = [np.eye(cells, dtype=np.int64)[i] for i in range(cells)]
    nothing = np.zeros(cells, dtype=np.int64)
    states = [
        sum(c, start=nothing)
        for k in range(rows + 1)
        for c in itertools.combinations_with_replacement(units, k)
    ]
    added = neighbours is Neighbours.ADD_OR_REMOVE
    moves = np.array(states if added else [a - b for a in states for b in states])
    for one in choose(Workload(matrix=matrix, neighbours=neighbours, rows=rows), epsilon=HALF, delta=delta):
        assert one.bound.delta_at(0.5) <= (delta or 0.0)
        for block, noise in zip(one.strategy.blocks, one.mechanisms, strict=True):
            moved = moves @ block.T
            if noise is None:
                assert not moved.any()
            elif isinstance(noise, Laplace):
                assert noise.sensitivity.exact >= int(np.abs(moved).sum(axis=1).max())
            elif isinstance(noise, RoundedGaussian):
                assert noise.sensitivity.square >= int((moved**2).sum(axis=1).max())  # type: ignore[union-attr]
            elif isinstance(noise, RangeNorm):
                reach = np.maximum(moved.max(axis=1), 0) - np.minimum(moved.min(axis=1), 0)
                assert noise.times >= int(reach.max())
            elif isinstance(noise, KNorm):
                assert noise.sensitivity.exact >= int(np.abs(moved).max())
                assert isinstance(noise.body, LinfBall)
            else:
                assert isinstance(noise, PolytopeNorm)
                assert noise.times == rows
                corners = {tuple(p) for p in noise.points} | {tuple(-x for x in p) for p in noise.points}
                single = units if added else [a - b for a in [*units, nothing] for b in [*units, nothing]]
                assert all(tuple(int(v) for v in block @ s) in corners for s in single if (block @ s).any())


# --- features and bodies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(("m", "d"), [(1, 1), (3, 1), (1, 2)])
def test_noise_of_features_counts_records_and_their_rounding(m: int, d: int, replace: bool) -> None:
    """On a grid of eighths and for three records a unit: the features' move, three times, and three roundings each."""
    step, records, count = Fraction(1, 8), 3, (2 * m + 1) ** d - 1

    def made(only: str) -> Any:
        return fourier_noise(
            frequencies=m,
            epsilon=1,
            delta=1e-6,
            replace=replace,
            dimension=d,
            records=records,
            spacing=step,
            only=only,
        ).mechanism

    l1 = fourier_l1(frequencies=m, dimension=d, replace=replace).exact
    l2 = fourier_l2(frequencies=m, dimension=d, replace=replace).exact
    assert made("laplace").sensitivity.exact > records * (l1 + count * step)
    assert made("laplace").sensitivity.exact < records * (l1 + count * step) * Fraction(100001, 100000)
    for name in ("gamma", "gaussian"):
        found = made(name).sensitivity.exact
        assert float(found) == pytest.approx(
            float(records * (l2 + step * Fraction(math.sqrt(count)))), rel=1e-5
        )
        assert float(found) > float(records * (l2 + step * Fraction(math.sqrt(count))))
    if d == 1:
        body = made("caratheodory")
        rounded = 2 * m * math.sqrt(2) / 8 if m > 1 else math.sqrt(2) / 8
        move = 2 if replace and m == 1 else 1
        assert float(body.sensitivity.exact) == pytest.approx(records * (move + rounded), rel=1e-9)
        total = float(body.noise_scale)
        assert total == pytest.approx(records * (move + rounded) * (2 if replace and m > 1 else 1), rel=1e-9)
    else:
        with pytest.raises(errors.InvalidParameter, match="one dimension"):
            made("caratheodory")


@pytest.mark.parametrize(("m", "d"), [(1, 2), (2, 2), (1, 3)])
def test_lengths_of_products_of_features_by_brute_force(m: int, d: int) -> None:
    x = np.linspace(0, 1, 13)[:-1]
    waves = [turn(2 * math.pi * k * x) * math.sqrt(2) for k in range(1, m + 1) for turn in (np.cos, np.sin)]
    one = np.stack([np.ones(12), *waves])
    places = list(itertools.product(range(12), repeat=d))[:: 1 if d == 2 else 7]
    psi = np.array([_outer([one[:, i] for i in p])[1:] for p in places])
    alone2, alone1 = np.linalg.norm(psi, axis=1).max(), np.abs(psi).sum(axis=1).max()
    assert float(fourier_l2(frequencies=m, dimension=d, replace=False).exact) == pytest.approx(
        alone2, rel=1e-9
    )
    assert alone1 <= float(fourier_l1(frequencies=m, dimension=d, replace=False).exact) <= alone1 * 1.6
    apart = psi[:, None, :] - psi[None, ::3, :]
    apart2, apart1 = np.linalg.norm(apart, axis=2).max(), np.abs(apart).sum(axis=2).max()
    assert apart2 <= float(fourier_l2(frequencies=m, dimension=d, replace=True).exact) <= apart2 * 1.1
    assert apart1 <= float(fourier_l1(frequencies=m, dimension=d, replace=True).exact) <= apart1 * 2.6


def _outer(parts: list[Any]) -> Any:
    out = parts[0]
    for part in parts[1:]:
        out = np.multiply.outer(out, part).ravel()
    return out


BODIES: dict[str, Any] = {
    "ball": EuclideanBall(coordinates=3, radius=Fraction(5, 2)),
    "octahedron": L1Ball(coordinates=3, radius=Fraction(5, 2)),
    "cube": LinfBall(coordinates=3, radius=Fraction(5, 2)),
    "ellipsoid": Ellipsoid(factor=[[2, 0], [1, 3]]),
    "box": Box(low=[-1, -4], high=[2, 3]),
    "simplex": Simplex(vertices=[[1, 0], [0, 2], [-3, -1]]),
    "moments": CaratheodoryBody(frequencies=2),
}


@pytest.mark.parametrize("name", BODIES)
def test_rounding_in_a_body_is_the_gauge_of_its_box(name: str) -> None:
    """Every corner of the box of two records' roundings: the worst gauge is covered, and reached but for moments."""
    body, step, records = BODIES[name], Fraction(1, 4), 2
    d = body.dimension
    corners = np.array(list(itertools.product([-0.5, 0.5], repeat=d)))
    worst = float(gauge(body, corners).max())
    for kind in (Gauge, Contribution, HullGauge):
        added = float(kind(3, body).rounded(spacing=step, records=records).exact - 3)
        assert added >= worst * (1 - 1e-9)
        assert added <= worst * (2.1 if name == "moments" else 1.2 if name == "ellipsoid" else 1 + 1e-9)


@pytest.mark.parametrize("shared", [-2, 2])
def test_rounding_in_the_norm_of_a_covariance_covers_every_corner(shared: int) -> None:
    norm = Mahalanobis(3, [[4, shared], [shared, 10]])
    moved = norm.rounded(spacing=Fraction(1, 4), records=2)
    corners = np.array(list(itertools.product([-0.5, 0.5], repeat=2)))
    inverse = np.linalg.inv(np.array([[4.0, shared], [shared, 10.0]]))
    worst = max(math.sqrt(c @ inverse @ c) for c in corners)
    for before, after in ((norm.value, moved.value), (norm.factor_value, moved.factor_value)):
        assert worst * (1 - 1e-12) <= float(Fraction(after) - Fraction(before)) <= 1.3 * worst
    assert norm.factor_value >= 3


def test_rounding_counts_every_record_in_every_norm() -> None:
    more: dict[str, Any] = {"spacing": Fraction(1, 4), "dimension": 9, "records": 2}
    assert L1(3).rounded(**more).exact == 3 + 9 * HALF
    assert CountSensitivity(3).rounded(**more).exact == 3 + 9 * HALF
    assert L2(3).rounded(**more).exact == 3 + 3 * HALF
    assert Linf(3).rounded(**more).exact == 3 + HALF
    assert Score(3, True).rounded(**more) == Score(3 + HALF, False)
    assert Linf(3).to_l1(dimension=9).exact == 27
    assert Linf(3).to_l2(dimension=9).square == 81
    assert L1(3).to_l2().exact == 3


# --- keys ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("keys", [1, 2])
def test_a_key_is_named_at_its_share_of_the_price(group: int, replaced: bool, keys: int) -> None:
    """epsilon/g and delta (e^(epsilon/g) - 1)/(e^epsilon - 1) a unit; k of them compose within that."""
    made = OptimalSelection(epsilon=2, delta=1e-3, keys=keys, replaced=replaced, group=group)
    one = Fraction(2, group)
    delta = 1e-3 if group == 1 else 1e-3 * math.expm1(2 / 3) / math.expm1(2)
    assert float(delta_of_group(Fraction(2), Fraction(1, 1000), group)) == pytest.approx(delta)
    moved = keys * (2 if replaced else 1)
    assert made.moved == moved
    e, d = made.level
    if moved == 1:
        assert (e, float(d)) == (one, pytest.approx(delta))
    else:
        assert one / moved <= e < one
        rest = response_delta(e, moved, one)
        assert 1 - (1 - float(d)) ** moved * (1 - rest) <= delta * (1 + 1e-9)
        assert split(one, Fraction(delta), moved)[0] == pytest.approx(float(e), rel=1e-6)


def test_randomised_responses_together_by_enumeration() -> None:
    """delta(epsilon) of three answers at 1/2: sum over all eight outcomes of (p - e^epsilon q)+."""
    a = 0.5
    yes = math.exp(a) / (1 + math.exp(a))
    for epsilon in (0.0, 0.2, 0.5, 1.0, 1.4):
        total = 0.0
        for told in itertools.product([True, False], repeat=3):
            p = math.prod(yes if t else 1 - yes for t in told)
            q = math.prod(1 - yes if t else yes for t in told)
            total += max(p - math.exp(epsilon) * q, 0.0)
        assert response_delta(HALF, 3, Fraction(epsilon)) == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_threshold_on_keys_counts_groups_and_both_versions(group: int, replaced: bool) -> None:
    made = GaussianSelection(noise_std=3, threshold=12, keys=2, replaced=replaced, group=group)
    moved = 4 if replaced else 2
    assert made._mu(made.moved) == pytest.approx(group * math.sqrt(moved) / 3)

    def passes(support: int) -> float:
        return math.erfc((12 - support - 0.5) / 3 / math.sqrt(2)) / 2

    # A group may give all its support to one key, or spread it: the worst rate for each unit of support.
    rate = max(-math.log1p(-passes(a)) / a for a in range(1, group + 1))
    assert made.new == pytest.approx(-math.expm1(-rate * 2 * group), rel=1e-9)
    if group == 2:
        assert rate == -math.log1p(-passes(2)) / 2
        assert made._cases() == [(4, moved)]
    else:
        assert made._cases() == [(i, moved - i) for i in range(3)]
    from tacit.guarantees import GaussianDP

    def case(new: int, others: int) -> float:
        shift = 4 - rate * (2 * group - new)
        rest = GaussianDP(mu=group * math.sqrt(others) / 3).delta(shift) if others else 0.0
        b = -math.expm1(-rate * new)
        return b + (1 - b) * rest

    assert made.delta(4) == pytest.approx(max(case(i, m) for i, m in made._cases()), rel=1e-9)
    assert made.delta(0) <= 1


@pytest.mark.parametrize(
    "unit", [KeysOfAUnit(keys=3, each=4, total=6), KeysOfAUnit(keys=2, each=3), KeysOfAUnit(keys=3)]
)
def test_own_cells_show_no_more_often_than_claimed(unit: KeysOfAUnit) -> None:
    """Every way to spread a unit's rows over its cells, listed: the worst is what is claimed."""
    total = unit.total or 0
    noise = Laplace.for_target(epsilon=1, sensitivity=L1(total))
    made = StableHistogram(noise=noise, threshold=9, unit=unit)

    def shown(counts: tuple[int, ...]) -> float:
        return 1 - math.prod(1 - noise.distribution.survival(10 - c)[1] for c in counts if c)

    ways = [w for w in itertools.product(range(unit.each + 1), repeat=unit.keys) if 0 < sum(w) <= total]
    assert made.key_delta == pytest.approx(max(map(shown, ways)), rel=1e-9)
    assert made.bound.delta == made.key_delta
    with pytest.raises(errors.InvalidParameter, match="in all"):
        StableHistogram(
            noise=Laplace.for_target(epsilon=1, sensitivity=L1(total - 1)) if total > 1 else noise, threshold=9,
            unit=unit if total > 1 else KeysOfAUnit(keys=2),
        )  # fmt: skip


def test_gaussian_noise_of_keys_is_sized_for_the_unit_and_leaves_room() -> None:
    unit = KeysOfAUnit(keys=3, each=4, total=6)
    made = StableHistogram.for_target(epsilon=1, delta=1e-5, sensitivity=L2(1))
    assert isinstance(made.noise, Gaussian)
    noise = made.noise.delta(1)
    assert noise <= 5e-6
    assert made.bound.delta <= 1e-5
    assert made.bound.delta == pytest.approx(made.key_delta + (1 - made.key_delta) * noise)
    with pytest.raises(errors.InvalidParameter, match="in all"):
        StableHistogram(
            noise=Gaussian(sensitivity=L2.root(19), noise_std=9), threshold=9, unit=unit, epsilon=1
        )
    with pytest.raises(errors.InvalidParameter, match="only for it"):
        StableHistogram(noise=made.noise, threshold=9)
    with pytest.raises(errors.InvalidParameter, match="threshold"):
        StableHistogram(
            noise=Gaussian(sensitivity=L2.root(20), noise_std=9), threshold=3, unit=unit, epsilon=1
        )
