"""Linear queries: sensitivities by enumeration, errors by simulation, shaped noise by its density."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.accounting import bound_of, events
from tacit.errors import EmptyComposition, InvalidParameter, NotCertified, TooManyCells, UnknownName
from tacit.guarantees import Pure
from tacit.mechanisms.linear import choose, gaussian_wins_from, margin_errors, one_way_margins
from tacit.mechanisms.polytope import PolytopeNorm, RangeNorm, _Range, facets
from tacit.mechanisms.ranges import RangeTree
from tacit.mechanisms.strategies import (
    Workload,
    covariance_of,
    disjoint_blocks,
    independent_rows,
    margin_matrices,
    prefix_matrix,
    range_matrix,
    tree_matrices,
)
from tacit.noise import SeededSource

CUBE = [p for p in itertools.product((0, 1), repeat=3) if any(p)]


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace-one"])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_sensitivities_over_all_neighbours(neighbours, rows, absent, seed):
    """All ways in which one unit's rows can lie in the cells, enumerated."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-2, 3, (3, 4))
    workload = Workload(matrix=matrix, neighbours=neighbours, rows=rows, absent=absent)
    held = [
        np.bincount(cells, minlength=4)
        for size in ([1] if rows == 1 and not absent and neighbours == "replace-one" else range(rows + 1))
        for cells in itertools.combinations_with_replacement(range(4), size)
    ]
    moves = [a - b for a in held for b in held] if neighbours == "replace-one" else held
    l1 = max(int(np.abs(matrix @ m).sum()) for m in moves)
    l2 = max(int(((matrix @ m) ** 2).sum()) for m in moves)
    assert workload.sensitivities(workload.matrix) == (l1, l2)


def test_workloads_and_their_parts():
    assert range_matrix(4).shape == (10, 4)
    assert prefix_matrix(3).tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    levels = tree_matrices(5, 2)
    assert [len(b) for b in levels] == [1, 2, 3, 5]
    assert all((b.sum(axis=0) == 1).all() for b in levels)
    tables = margin_matrices([2, 3, 2], 2)
    full = np.random.default_rng(0).integers(0, 9, (2, 3, 2))
    np.testing.assert_array_equal(tables[1] @ full.ravel(), full.sum(axis=1).ravel())
    stacked = np.vstack(tables)
    assert [len(b) for b in disjoint_blocks(stacked)] == [6, 4, 6]
    rows = independent_rows(stacked)
    assert len(rows) == np.linalg.matrix_rank(stacked)
    assert np.linalg.matrix_rank(stacked[rows]) == len(rows)


WORKLOADS = {
    "one-way margins": Workload(matrix=np.vstack(margin_matrices([2, 2, 2], 1))[1::2]),
    "replaced": Workload(matrix=np.vstack(margin_matrices([2, 2, 2], 1))[1::2], neighbours="replace-one"),
    "sums replaced": Workload(matrix=prefix_matrix(9), neighbours="replace-one", absent=False),
    "both keys": Workload(matrix=np.vstack(margin_matrices([2, 2, 2], 1))),
    "both keys, complete": Workload(
        matrix=np.vstack(margin_matrices([2, 2, 2], 1)), neighbours="replace-one", absent=False
    ),
    "pairs": Workload(matrix=np.vstack(margin_matrices([2, 3, 2], 2))),
    "ranges": Workload(matrix=range_matrix(16)),
    "prefixes replaced": Workload(matrix=prefix_matrix(17), neighbours="replace-one", rows=2),
    "signed": Workload(matrix=np.array([[1, -1, 0, 2], [0, 1, 3, 1]])),
}


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("name", WORKLOADS)
def test_every_candidate_keeps_the_budget_and_is_as_good_as_it_says(name, delta):
    workload = WORKLOADS[name]
    found = choose(workload, epsilon=2, delta=delta, ordered="a" in name)
    assert [c.squared for c in found] == sorted(c.squared for c in found)
    source = SeededSource(seed=11)
    theta = np.arange(workload.cells) * 3 % 11
    truth = workload.matrix @ theta
    for c in found:
        if isinstance(c.bound, Pure):
            assert float(c.bound.epsilon) <= 2 * (1 + 1e-12)
        else:
            assert c.bound.delta(2.0) <= 1e-6
        assert all(isinstance(e, events.Event) for e in c.events)
        draws = np.array([c.release(theta, source=source).values - truth for _ in range(40)])
        squared = (draws**2).sum(axis=1)
        # The sum over queries of 40 draws: its own spread is measured, five standard errors are allowed.
        slack = 5 * squared.std() / math.sqrt(40) + 1e-9
        assert abs(squared.mean() - c.squared) <= slack, c.name
        sizes = np.abs(draws).sum(axis=1)
        assert sizes.mean() <= c.absolute + 5 * sizes.std() / math.sqrt(40) + 0.5 * workload.queries
        assert not c.release(theta, source=source).publishable
    assert choose(workload, epsilon=2, error="absolute", ordered=True)[0].absolute > 0


def test_the_privacy_of_a_strategy_is_its_blocks_and_tight():
    """The loss of a tree's Laplace noise, maximised over moves of one row: exactly the claimed epsilon."""
    workload = Workload(matrix=range_matrix(8))
    tree = next(c for c in choose(workload, epsilon=1, ordered=True) if "branching 2, weighted" in c.name)
    for cell in range(8):
        loss = sum(
            np.abs(block[:, cell]).sum() / float(m.noise_scale)
            for block, m in zip(tree.strategy.blocks, tree.mechanisms, strict=True)
        )
        assert loss == pytest.approx(1, rel=1e-6)


# --- shaped noise --------------------------------------------------------------------------------------
def gauge(cones, x):
    """The gauge by its definition through all facets: max over facets of normal times x."""
    normals = [np.linalg.solve(np.array(c, float), np.ones(len(c))) for c in cones]
    return max(float(n @ x) for n in normals)


@pytest.mark.parametrize(
    "points",
    [
        CUBE,
        [(1, 0), (0, 1), (1, 1), (2, 1)],
        [(1, -1, 0), (0, 1, 3), (2, 0, 1), (1, 1, 1), (3, 0, 0)],
        [(3,), (2,)],
        [p for p in itertools.product((-1, 0, 1), repeat=3) if any(p)],
    ],
)
def test_the_cones_cover_space_once_and_the_gauge_bounds_every_move(points):
    cones, volumes = facets(points)
    rng = np.random.default_rng(2)
    for p in points:
        assert gauge(cones, np.array(p, float)) <= 1 + 1e-12
        assert gauge(cones, -np.array(p, float)) <= 1 + 1e-12
    for x in rng.normal(size=(50, len(points[0]))):
        inside = [np.linalg.solve(np.array(c, float).T, x).min() > 0 for c in cones]
        assert sum(inside) == 1
    # The volume of the body, by shooting.
    box = 1.001 * max(abs(v) for p in points for v in p)
    shots = rng.uniform(-box, box, (4000, len(points[0])))
    normals = np.array([np.linalg.solve(np.array(c, float), np.ones(len(c))) for c in cones])
    share = float(((normals @ shots.T).max(axis=0) <= 1).mean())
    volume = sum(volumes) / math.factorial(len(points[0]))
    whole = (2 * box) ** len(points[0])
    assert abs(share - volume / whole) < 5 * math.sqrt(0.25 / 4000)


PLANE = [(1, 0), (0, 1), (1, 1), (2, 1)]


def test_polytope_noise_has_the_density_of_its_gauge():
    """The gauge is Gamma(d) distributed, cones come up by volume, and within a cone directions are uniform."""
    fine = PolytopeNorm.for_target(epsilon=1, points=PLANE, spacing=2.0**-20)
    source, count = SeededSource(seed=5), 800
    draws = np.array([fine.release([0, 0], source=source).to_floats() for _ in range(count)])
    sizes = np.array([gauge(fine.cones, x) for x in draws])
    assert abs(sizes.mean() - 2) < 5 * math.sqrt(2 / count)
    assert abs((sizes**2).mean() - 6) < 5 * math.sqrt(84 / count)
    for cone, volume in zip(fine.cones, fine.volumes, strict=True):
        weights = np.linalg.solve(np.array(cone, float).T, draws.T)
        mine = weights.min(axis=0) > 0
        share = volume / sum(fine.volumes)
        assert abs(mine.mean() - share) < 5 * math.sqrt(share / count)
        spread = weights[0, mine] / weights[:, mine].sum(axis=0)
        assert abs(spread.mean() - 0.5) < 5 / math.sqrt(12 * mine.sum())
    assert np.abs(draws.T @ draws / count - fine.covariance).max() < 1.5


def test_polytope_noise_keeps_its_epsilon_and_reaches_it():
    """Masses of whole outputs by integration of e^-gauge: ratios over every move of one row."""
    cones, _ = facets(PLANE)
    normals = np.array([np.linalg.solve(np.array(c, float), np.ones(2)) for c in cones])
    fine = (np.arange(-260, 260) + 0.5) / 20
    x, y = np.meshgrid(fine, fine, indexing="ij")
    density = np.exp(-(normals @ np.stack([x.ravel(), y.ravel()])).max(axis=0)).reshape(x.shape)
    mass = density[10:-10, 10:-10].reshape(25, 20, 25, 20).sum(axis=(1, 3))
    worst = 0.0
    for dx, dy in PLANE:
        moved = np.roll(mass, (dx, dy), axis=(0, 1))[3:-3, 3:-3]
        ratio = np.abs(np.log(moved / mass[3:-3, 3:-3]))
        worst = max(worst, float(ratio.max()))
    assert 0.95 < worst <= 1 + 1e-9


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_range_norm_is_the_hull_of_the_cube_corners(k):
    """Two independent derivations of one law agree: facets of the hull, and T (U_i - U_0)."""
    points = [p for p in itertools.product((0, 1), repeat=k) if any(p)]
    hull = PolytopeNorm.for_target(epsilon=1, points=points)
    short = RangeNorm.for_target(epsilon=1, dimension=k)
    assert sum(hull.volumes) == math.factorial(k + 1)
    np.testing.assert_allclose(hull.covariance, covariance_of(short) - np.eye(k) / 12, rtol=1e-12)
    assert hull.expected_error() == pytest.approx(short.expected_error(), rel=1e-6)
    rng = np.random.default_rng(k)
    for x in rng.normal(size=(20, k)):
        assert gauge(hull.cones, x) == pytest.approx(max(0, x.max()) - min(0, x.min()), rel=1e-12)


def test_range_norm_integrates_to_its_density():
    """P[all |x_i| <= t] from the density e^-g against draws, in two dimensions."""
    law = _Range(coordinates=2, noise_scale=Fraction(1))
    draws = law.sample(spacing=2.0**-16, size=4000, source=SeededSource(seed=9)).to_floats()
    grid = (np.arange(-400, 400) + 0.5) / 40
    x, y = np.meshgrid(grid, grid)
    g = np.maximum(0, np.maximum(x, y)) - np.minimum(0, np.minimum(x, y))
    density = np.exp(-g)
    density /= density.sum()
    for t in (0.5, 1.0, 2.5):
        expected = density[np.maximum(abs(x), abs(y)) <= t].sum()
        seen = (np.abs(draws).max(axis=1) <= t).mean()
        assert abs(seen - expected) < 5 * math.sqrt(0.25 / 4000) + 0.01
    mechanism = RangeNorm.for_target(epsilon=1, dimension=2)
    for level in (0.5, 0.95):
        inside = (np.abs(draws[:, 0]) <= mechanism.error_quantile(level) - 0.5).mean()
        assert abs(inside - level) < 5 * math.sqrt(0.25 / 4000)
        assert (np.abs(draws).max(axis=1) <= mechanism.max_error(confidence=level)).mean() >= level
    upward = density[(x > 0) & (y > 0)].sum()
    assert abs((draws > 0).all(axis=1).mean() - upward) < 5 * math.sqrt(0.25 / 4000) + 0.01


# --- margins and ranges -----------------------------------------------------------------------------------
def test_one_way_margins_say_which_noise_wins():
    few, many = (one_way_margins(columns=k, epsilon=1, delta=1e-6) for k in (4, 400))
    assert few[0].name == "range-norm noise"
    assert many[0].name == "Gaussian noise"
    laplace = next(p for p in few if p.name == "Laplace noise")
    assert laplace.absolute == pytest.approx(4 / math.sinh(1 / 4), rel=1e-9)
    replaced = one_way_margins(columns=4, epsilon=1, neighbours="replace-one")
    assert replaced[0].name == "cube noise"
    assert replaced[0].absolute == pytest.approx(4 * 5 / 2)
    for against in ("best", "laplace"):
        k = gaussian_wins_from(epsilon=1, delta=1e-6, against=against)
        rival = "Laplace noise" if against == "laplace" else None
        for n, wins in ((k, True), (k - 1, False)):
            plans = {p.name: p.absolute for p in one_way_margins(columns=n, epsilon=1, delta=1e-6)}
            best = plans[rival] if rival else min(v for name, v in plans.items() if "Gauss" not in name)
            assert (plans["Gaussian noise"] < best) == wins
    assert gaussian_wins_from(epsilon=1, delta=1e-6, against="laplace") == 12


def test_margin_errors_agree_with_the_matrix_form():
    plans = margin_errors(sizes=[2, 3, 4], order=2, epsilon=1, delta=1e-6)
    workload = Workload(matrix=np.vstack(margin_matrices([2, 3, 4], 2)))
    found = {c.name: c for c in choose(workload, epsilon=1, delta=1e-6)}
    cells = next(p for p in plans if p.name.startswith("Laplace") and "full" in p.on)
    assert cells.squared == pytest.approx(found["Laplace noise on the cells"].squared, rel=1e-9)
    tables = next(p for p in plans if p.name.startswith("Gaussian") and "tables" in p.on)
    assert found["Gaussian noise on the answers"].squared < tables.squared
    assert float(tables.mechanism.noise_std) == pytest.approx(
        float(found["Gaussian noise on the answers"].mechanisms[0].noise_std), rel=1e-9
    )


def test_complete_columns_need_fewer_noisy_counts():
    plan = margin_errors(sizes=[2] * 4, order=1, epsilon=1, complete=True)[0]
    assert plan.on == "the number of rows and 4 counts"
    workload = Workload(matrix=np.vstack(margin_matrices([2] * 4, 1)))
    found = {c.name: c for c in choose(workload, epsilon=1)}
    assert plan.squared == pytest.approx(found["range-norm noise on the total and some answers"].squared)
    three = margin_errors(sizes=[3, 3], order=1, epsilon=1, complete=True)
    workload = Workload(matrix=np.vstack(margin_matrices([3, 3], 1)))
    found = {c.name: c for c in choose(workload, epsilon=1)}
    same = found["range-norm noise on the total and some answers"]
    mine = next(p for p in three if p.on.startswith("the number"))
    assert mine.squared == pytest.approx(same.squared)


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace-one"])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_range_trees_are_least_squares_and_as_good_as_they_say(neighbours, delta):
    tree = RangeTree.plan(
        cells=37, epsilon=1, delta=delta, neighbours=neighbours, branching=3, absent=delta is not None
    )
    assert (tree.mechanisms[0] is None) == (neighbours == "replace-one" and delta is None)
    blocks = tree_matrices(37, 3)
    weights = [0 if m is None else 1 / v for m, v in zip(tree.mechanisms, tree._variances, strict=True)]
    gram = sum(w * b.T @ b for w, b in zip(weights, blocks, strict=True))
    if tree.mechanisms[0] is None:
        gram = gram + 1e9 * np.ones((37, 37))
    for a, b in ((0, 0), (3, 20), (0, 36), (17, 36)):
        q = ((np.arange(37) >= a) & (np.arange(37) <= b)).astype(float)
        assert tree.range_variance(a, b) == pytest.approx(
            float(q @ np.linalg.solve(gram, q)), rel=1e-4, abs=1e-6
        )
    source = SeededSource(seed=4)
    theta = np.arange(37) % 5
    errors = []
    for _ in range(200):
        out = tree.release(theta, source=source)
        errors.append(out.range(3, 20) - theta[3:21].sum())
    seen, said = float(np.mean(np.square(errors))), tree.range_variance(3, 20)
    assert abs(seen - said) < 5 * np.square(errors).std() / math.sqrt(200)
    if isinstance(tree.bound, Pure):
        assert float(tree.bound.epsilon) <= 1 + 1e-12
    else:
        assert tree.bound.delta(1.0) <= 1e-6
    wide = RangeTree.plan(cells=4096, epsilon=1, neighbours=neighbours)
    cells_alone = 2048 * 2 * (4 if neighbours == "replace-one" else 1)
    assert wide.mean_squared_error() < cells_alone / 4


def test_bad_input():
    with pytest.raises(EmptyComposition):
        Workload(matrix=np.zeros((0, 3)))
    with pytest.raises(EmptyComposition):
        Workload(matrix=np.zeros((2, 3), int))
    with pytest.raises(InvalidParameter):
        Workload(matrix=np.array([[0.5, 1.0]]))
    with pytest.raises(UnknownName):
        Workload(matrix=np.eye(2, dtype=int), neighbours="near")
    small = Workload(matrix=np.eye(2, dtype=int))
    with pytest.raises(UnknownName):
        choose(small, epsilon=1, error="relative")
    with pytest.raises(InvalidParameter):
        choose(small, epsilon=0)
    with pytest.raises(NotCertified):
        choose(Workload(matrix=np.ones((1, 600), int)), epsilon=1)
    with pytest.raises(InvalidParameter):
        choose(small, epsilon=1)[0].release([1, 2, 3])
    with pytest.raises(InvalidParameter):
        facets([(1, 1), (2, 2)])
    with pytest.raises(TooManyCells):
        range_matrix(2000)
    with pytest.raises(InvalidParameter):
        margin_errors(sizes=[2, 2], order=3, epsilon=1)
    with pytest.raises(InvalidParameter):
        RangeTree.plan(cells=8, epsilon=1).release(np.zeros(7, int))
    with pytest.raises(InvalidParameter):
        RangeNorm.for_target(epsilon=1, dimension=2).max_error(dimension=3)
    with pytest.raises(InvalidParameter):
        RangeNorm.for_target(epsilon=1, dimension=0)
    with pytest.raises(InvalidParameter):
        gaussian_wins_from(epsilon=1, delta=1e-6, against="me")


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_accountants_find_every_plan_within_its_budget(delta):
    workload = Workload(matrix=range_matrix(8))
    for candidate in choose(workload, epsilon=0.7, delta=delta, ordered=True):
        if isinstance(candidate.bound, Pure):
            assert bound_of(list(candidate.events), accountant="pure").epsilon <= 0.7
        else:
            assert bound_of(list(candidate.events), accountant="gdp").delta(0.7) <= 1e-6
    tree = RangeTree.plan(cells=100, epsilon=0.7, delta=delta, branching=4)
    assert len(tree.events) == 5
