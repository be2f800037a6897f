"""Trees of counts: least squares against a dense solver, whole counts that add up, declared counts kept."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.statistics.hierarchy import Tree, consistent_tree, tree_estimate, whole_cells

SMALL = Tree(
    {"nation": None, "n": "nation", "s": "nation", "n1": "n", "n2": "n", "n3": "n", "s1": "s", "s2": "s"}
)


def random_tree(rng, size):
    parents = {0: None}
    for v in range(1, size):
        parents[v] = int(rng.integers(0, v))
    return Tree(parents)


def leaf_matrix(tree):
    leaves = [n for n, leaf in zip(tree.order, tree.leaf, strict=True) if leaf]
    a = np.zeros((len(tree.order), len(leaves)))
    for j, leaf in enumerate(leaves):
        node = leaf
        while node is not None:
            a[tree.order.index(node), j] = 1
            node = tree.parents[node]
    return a


def adds_up(tree, counts):
    for node in tree.order:
        kids = [c for c in tree.order if tree.parents[c] == node]
        if kids and counts[node] != sum(counts[c] for c in kids):
            return False
    return all(v >= 0 for v in counts.values())


@pytest.mark.parametrize("seed", range(12))
def test_two_passes_are_weighted_least_squares(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(2, 14)))
    a = leaf_matrix(tree)
    y = rng.normal(5, 10, len(tree.order))
    variance = rng.uniform(0.2, 9, len(tree.order))
    seen = np.ones(len(y), bool)
    seen[rng.random(len(y)) < 0.3] = False
    seen |= tree.leaf
    w = np.diag(seen / variance)
    dense = a @ np.linalg.solve(a.T @ w @ a, a.T @ w @ y)
    names = [n for n, s in zip(tree.order, seen, strict=True) if s]
    noisy = dict(zip(tree.order, y, strict=True))
    spread = dict(zip(tree.order, variance, strict=True))
    found = tree_estimate(tree, {n: noisy[n] for n in names}, {n: spread[n] for n in names})
    np.testing.assert_allclose(found, dense, atol=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_whole_counts_add_up_keep_what_is_exact_and_stay_when_valid(seed):
    rng = np.random.default_rng(100 + seed)
    tree = random_tree(rng, int(rng.integers(2, 40)))
    truth = leaf_matrix(tree) @ rng.integers(0, 5, int(tree.leaf.sum()))
    true = {n: int(v) for n, v in zip(tree.order, truth, strict=True)}
    noisy = {n: v + float(rng.integers(-6, 7)) for n, v in true.items()}
    variance = {n: float(rng.uniform(1, 5)) for n in tree.order}
    exact = {n: true[n] for n in tree.order if rng.random() < 0.3}
    found = consistent_tree(tree, noisy, variance, exact=exact)
    assert adds_up(tree, found)
    assert all(found[n] == v for n, v in exact.items())
    assert consistent_tree(tree, found, variance, exact=exact) == found
    assert consistent_tree(tree, true, variance, exact=exact) == true


@settings(max_examples=60, deadline=None)
@given(z=st.lists(st.integers(-4, 6), min_size=3, max_size=3), n=st.integers(0, 5))
def test_one_family_is_the_nearest_histogram(z, n):
    tree = Tree({"t": None, "a": "t", "b": "t", "c": "t"})
    found = consistent_tree(tree, dict(zip("abc", map(float, z), strict=True)), exact={"t": n})
    best = min(
        sum((a - b) ** 2 for a, b in zip(t, z, strict=True))
        for t in itertools.product(range(n + 1), repeat=3)
        if sum(t) == n
    )
    assert sum((found[k] - v) ** 2 for k, v in zip("abc", z, strict=True)) == best


def test_bad_hierarchies():
    with pytest.raises(InvalidParameter, match="cycle"):
        Tree({"a": "b", "b": "c", "c": "a"})
    with pytest.raises(InvalidParameter, match="cycle"):
        Tree({"a": "a"})
    with pytest.raises(UnknownName):
        Tree({"a": "nowhere"})
    with pytest.raises(InvalidParameter, match="one parent"):
        Tree.of([("t", None), ("u", None), ("a", "t"), ("a", "u")])
    with pytest.raises(EmptyComposition):
        Tree({})


def test_declared_counts_that_contradict_each_other():
    noisy = dict.fromkeys(SMALL.order, 1.0)
    for exact in ({"nation": 3, "n": 2, "s": 2}, {"n": 1, "n1": 2}, {"s": 5, "s1": 2, "s2": 2}):
        with pytest.raises(InvalidParameter, match="add up"):
            consistent_tree(SMALL, noisy, exact=exact)
    found = consistent_tree(SMALL, noisy, exact={"nation": 3, "n": 2, "s1": 1})
    assert found["s2"] == 0
    assert found["n"] == 2
    with pytest.raises(InvalidParameter):
        consistent_tree(SMALL, noisy, exact={"n": -1})
    with pytest.raises(UnknownName):
        consistent_tree(SMALL, noisy, exact={"m": 1})
    with pytest.raises(UnknownName):
        consistent_tree(SMALL, {**noisy, "m": 1.0})
    with pytest.raises(InvalidParameter):
        consistent_tree(SMALL, {"nation": 4.0})


def test_a_hundred_thousand_districts():
    parents = {"nation": None} | {("r", i): "nation" for i in range(300)}
    parents |= {("d", i, j): ("r", i) for i in range(300) for j in range(300)}
    tree = Tree(parents)
    rng = np.random.default_rng(0)
    noisy = {n: float(v) for n, v in zip(tree.order, rng.integers(-5, 30, len(tree.order)), strict=True)}
    found = consistent_tree(tree, noisy, exact={"nation": 10**6})
    regions = {("r", i): 0 for i in range(300)}
    for (_, i, _j), v in ((k, v) for k, v in found.items() if len(k) == 3):
        regions["r", i] += v
    assert regions == {k: found[k] for k in regions}
    assert sum(regions.values()) == 10**6


@pytest.mark.parametrize("branching", [2, 3, 16])
def test_cells_become_whole_without_lifting_the_ranges(branching):
    rng = np.random.default_rng(6)
    truth = np.where(rng.random(1000) < 0.1, rng.integers(0, 200, 1000), 0)
    real = truth + rng.normal(0, 10, 1000)
    found = whole_cells(real, branching=branching, total=int(truth.sum()))
    assert found.min() >= 0
    assert found.sum() == truth.sum()
    np.testing.assert_array_equal(whole_cells(found, branching=branching), found)
    np.testing.assert_array_equal(whole_cells(truth, branching=branching, total=int(truth.sum())), truth)
    clipped = np.maximum(np.rint(real), 0)
    halves = [abs(x[:500].sum() - truth[:500].sum()) for x in (found, clipped)]
    assert halves[0] < halves[1] / 3
    with pytest.raises(InvalidParameter):
        whole_cells([np.nan, 1.0], branching=2)
    with pytest.raises(InvalidParameter):
        whole_cells([1.0], branching=1)
