"""Junction trees, propagation and fits against the joint distribution itself; rows against the model, on all pairs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthesis.toys import joint, total_variation
from tacit.noise.source import SeededSource
from tacit.synthesis.drawing import draw_rows
from tacit.synthesis.model import Model
from tacit.synthesis.trees import cells_of, cliques_of, fits, fitting, junction_tree

TREE = [(0, 1), (1, 2), (1, 3), (3, 4)]
CYCLE = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
TRIPLES = [(0, 1, 2), (2, 3), (1, 3, 4)]
SIZES = (4, 3, 5, 2, 4)


def made(margins, sizes=SIZES, *, seed=1, strength=1.5, zeros=None) -> Model:
    """A model with random potentials on these margins."""
    rng = np.random.default_rng(seed)
    model = Model(sizes=sizes, rows=1000.0, zeros=zeros or {})
    for margin in margins:
        shape = [sizes[i] for i in margin]
        model.measure(margin, np.full(shape, 1.0), 1.0)
        model.potentials[margin] = strength * rng.normal(size=shape)
    model.arrange()
    return model


@given(st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=3, unique=True), max_size=9))
def test_junction_trees_hold_every_margin_and_meet_in_their_separators(given_margins) -> None:
    sizes = (2, 3, 4, 2, 5, 3, 2)
    margins = [tuple(sorted(m)) for m in given_margins]
    tree = junction_tree(margins, sizes)
    assert all(any(set(m) <= set(c) for c in tree.cliques) for m in margins)
    assert {i for c in tree.cliques for i in c} == set(range(7))
    for k, (parent, common) in enumerate(zip(tree.parents, tree.separators, strict=True)):
        before = {i for c in tree.cliques[:k] for i in c}
        # Running intersection: what a clique shares with all before it, it shares with its parent.
        assert set(tree.cliques[k]) & before == set(common)
        assert parent < k
        assert parent < 0 or set(common) <= set(tree.cliques[parent])
    assert tree.cells == sum(cells_of(c, sizes) for c in tree.cliques)
    assert fits(margins, sizes, tree.cells)
    assert not fits(margins, sizes, tree.cells - 1)


@given(
    st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=3, unique=True), max_size=9),
    st.integers(20, 400),
)
def test_all_candidates_that_fit_are_found_at_once(given_margins, limit) -> None:
    sizes = (2, 3, 4, 2, 5, 3, 2)
    margins = [tuple(sorted(m)) for m in given_margins]
    candidates = [m for k in (1, 2, 3) for m in itertools.combinations(range(7), k)]
    assert fitting(candidates, margins, sizes, limit) == [
        fits([*margins, c], sizes, limit) for c in candidates
    ]


@pytest.mark.parametrize("margins", [TREE, CYCLE, TRIPLES, []])
def test_beliefs_are_the_margins_of_the_product(margins) -> None:
    model = made(margins)
    exact = joint(model)
    for clique, belief in zip(model.tree.cliques, model.beliefs, strict=True):
        gone = tuple(i for i in range(5) if i not in clique)
        assert np.abs(belief - exact.sum(axis=gone)).max() < 1e-12


def test_impossible_cells_have_no_belief_and_no_row() -> None:
    zero = np.zeros((4, 5), dtype=bool)
    zero[1, :3] = True
    zero[3, 4] = True
    model = made(TREE, zeros={(0, 2): zero})
    exact = joint(model)
    for clique, belief in zip(model.tree.cliques, model.beliefs, strict=True):
        gone = tuple(i for i in range(5) if i not in clique)
        assert np.abs(belief - exact.sum(axis=gone)).max() < 1e-12
    rows = draw_rows(model, 5000, SeededSource(seed=2))
    assert not zero[rows[:, 0], rows[:, 2]].any()
    assert not model.impossible


def test_fits_come_to_the_margins_that_agree() -> None:
    """Exact margins of one table are fitted: every one of them, on a cycle too."""
    truth = joint(made(CYCLE, seed=5))
    model = Model(sizes=SIZES, rows=1.0)
    for margin in CYCLE:
        gone = tuple(i for i in range(5) if i not in margin)
        model.measure(margin, truth.sum(axis=gone), 1e-4)
    model.arrange()
    before = model.loss()[0]
    after = model.fit(400)
    assert after < 1e-4 * before
    for margin in CYCLE:
        gone = tuple(i for i in range(5) if i not in margin)
        assert np.abs(model.margin(margin) - truth.sum(axis=gone)).sum() < 5e-3


def test_a_fit_weighs_measurements_by_their_variance() -> None:
    model = Model(sizes=(2, 2), rows=100.0)
    model.measure((0,), np.array([80.0, 20.0]), 1.0)
    model.measure((0,), np.array([20.0, 80.0]), 4.0)
    model.arrange()
    model.fit(300)
    # Inverse variance: (80 * 4 + 20 * 1) / 5 = 68.
    assert model.margin((0,))[0] == pytest.approx(0.68, abs=1e-3)


@pytest.mark.parametrize("margins", [TREE, CYCLE, TRIPLES])
def test_all_pairs_of_the_rows_are_those_of_the_model(margins) -> None:
    """Theorem `systematic-rows`: pairs inside and across cliques, within 1.5 times what independent draws give."""
    model = made(margins)
    exact, rng = joint(model), np.random.default_rng(3)
    count = 20_000
    rows = draw_rows(model, count, SeededSource(seed=4))
    plain = rng.choice(exact.size, size=count, p=exact.ravel())
    floor_rows = np.column_stack(np.unravel_index(plain, SIZES))
    for pair in itertools.combinations(range(5), 2):
        gone = tuple(i for i in range(5) if i not in pair)
        want = exact.sum(axis=gone).ravel()
        index = rows[:, pair[0]] * SIZES[pair[1]] + rows[:, pair[1]]
        floor = floor_rows[:, pair[0]] * SIZES[pair[1]] + floor_rows[:, pair[1]]
        own = total_variation(np.bincount(index, minlength=want.size), want)
        draws = np.mean(
            [total_variation(rng.multinomial(count, want), want) for _ in range(30)]
            + [total_variation(np.bincount(floor, minlength=want.size), want)]
        )
        assert own <= 1.5 * draws


@pytest.mark.parametrize("margins", [TREE, CYCLE])
def test_clique_cells_are_within_one_row_a_separator_value(margins) -> None:
    """Theorem `systematic-rows`, first part, and that the order of rows tells nothing of other columns."""
    model = made(margins)
    rows = draw_rows(model, 7919, SeededSource(seed=5))
    for clique, common, belief in zip(model.tree.cliques, model.tree.separators, model.beliefs, strict=True):
        shape = [SIZES[i] for i in clique]
        got = np.zeros(shape)
        np.add.at(got, tuple(rows[:, i] for i in clique), 1)
        gone = tuple(k for k, i in enumerate(clique) if i not in common)
        held, mass = got.sum(axis=gone, keepdims=True), belief.sum(axis=gone, keepdims=True)
        assert np.abs(got - held * belief / mass).max() < 1 + 1e-9


def test_columns_that_are_independent_given_a_third_stay_so() -> None:
    """A chain x - v - y of fair coins: given v the rows agree on x and y in half of the cases, not in all or none."""
    model = made([(0, 1), (1, 2)], (2, 2, 2), strength=0.0)
    rows = draw_rows(model, 40_000, SeededSource(seed=6))
    for v in (0, 1):
        inside = rows[rows[:, 1] == v]
        agree = (inside[:, 0] == inside[:, 2]).mean()
        assert abs(agree - 0.5) < 6 * 0.5 / np.sqrt(len(inside))


def test_a_limit_of_cells_is_kept_while_columns_are_eliminated() -> None:
    sizes = (10,) * 6
    every = [*itertools.combinations(range(6), 2)]
    assert cliques_of(every, sizes, limit=10**5) is None
    assert cliques_of(every, sizes) == [(0, 1, 2, 3, 4, 5)]
    assert fits([(0, 1), (1, 2), (2, 3)], sizes, 500)
