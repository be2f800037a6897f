"""Decision trees: the law of what is released from the definition, on neighbours of both relations."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from tacit.errors import InvalidParameter, TacitError
from tacit.functions.models import PrivateDecisionTreeClassifier
from tacit.functions.models.trees import (
    ReleasedTree,
    SplitColumn,
    TreePlan,
    TreeShape,
    bounded_range_rho,
    default_cuts,
    gini_scores,
    planned_depth,
)
from tacit.guarantees import Concentrated, Neighbours, Pure
from tacit.mechanisms import Score
from tacit.noise.source import SeededSource

COLUMNS = (SplitColumn(name="a", cuts=(0.5, 1.5)), SplitColumn(name="b", values=("x", "y")))


def shape(depth: int = 2, **more: Any) -> TreeShape:
    return TreeShape(columns=COLUMNS, classes=("no", "yes"), depth=depth, **more)


# --- a second implementation, from the definition -------------------------------------------------------------------
# A row is (a in 0, 1, 2; b in 0 none, 1 x, 2 y; class). Splits: a > 0.5, a > 1.5, b = x.
SPLITS = (lambda r: r[0] > 0.5, lambda r: r[0] > 1.5, lambda r: r[1] == 1)


def purity(rows: list[Any]) -> int:
    counts = Counter(r[2] for r in rows)
    return math.floor(Fraction(sum(n * n for n in counts.values()), max(len(rows), 1)))


def scores(rows: list[Any]) -> list[int]:
    return [purity([r for r in rows if s(r)]) + purity([r for r in rows if not s(r)]) for s in SPLITS]


def flips(values: list[int], rate: float) -> list[float]:
    """Permute-and-flip by all orders and all coins."""
    best, out = max(values), [0.0] * len(values)
    chance = [math.exp(-rate * (best - v)) for v in values]
    orders = list(itertools.permutations(range(len(values))))
    for order in orders:
        left = 1.0
        for i in order:
            out[i] += left * chance[i] / len(orders)
            left *= 1 - chance[i]
    return out


def weights(values: list[int], rate: float) -> list[float]:
    each = [math.exp(rate * (v - max(values))) for v in values]
    return [w / sum(each) for w in each]


def law(rows: list[Any], depth: int, rate: float, choose: Any) -> dict[tuple[int, ...], float]:
    """The law of all splits of a full tree, in the order of a heap."""
    found = {(): 1.0}
    for node in range(2**depth - 1):
        way, k = [], node
        while k:
            way.append(((k - 1) // 2, k % 2 == 0))
            k = (k - 1) // 2
        fresh: dict[tuple[int, ...], float] = {}
        for chosen, weight in found.items():
            held = [r for r in rows if all(bool(SPLITS[chosen[p]](r)) == yes for p, yes in way)]
            for split, chance in enumerate(choose(scores(held), rate)):
                fresh[(*chosen, split)] = weight * chance
        found = fresh
    return found


def some_rows(rng: Any, count: int) -> list[Any]:
    return [(int(rng.integers(3)), int(rng.integers(3)), int(rng.integers(2))) for _ in range(count)]


def neighbours(rng: Any, rows: list[Any], many: int, relation: Neighbours) -> list[Any]:
    kept = list(rows)
    for _ in range(many):
        if relation is Neighbours.REPLACE_ONE or rng.integers(2):
            kept.pop(int(rng.integers(len(kept))))
        else:
            kept.append(some_rows(rng, 1)[0])
            continue
        if relation is Neighbours.REPLACE_ONE:
            kept.append(some_rows(rng, 1)[0])
    return kept


@pytest.mark.parametrize("relation", list(Neighbours)[:2])
def test_levels_cost_what_they_say_on_60_random_tables(relation: Neighbours) -> None:
    """tree-levels: log-ratios of the whole law within depth * epsilon, for pure and for bounded-range choices."""
    rng = np.random.default_rng(1)
    nearest = 0.0
    for _ in range(60):
        many = int(rng.integers(1, 3))
        plan = TreePlan.for_target(shape=shape(rows=many, neighbours=relation), epsilon=3)
        rate, level = float(plan.choice.rate), 1.0
        rows = some_rows(rng, int(rng.integers(many, 7)))
        other = neighbours(rng, rows, many, relation)
        for choose in (flips, weights):
            p, q = law(rows, 2, rate, choose), law(other, 2, rate, choose)
            losses = [math.log(p[k] / q[k]) for k in p]
            assert max(map(abs, losses)) <= 2 * level + 1e-9
            nearest = max(nearest, max(map(abs, losses)))
            if choose is weights:
                # The first level alone has losses within an interval of length epsilon.
                one, two = law(rows, 1, rate, weights), law(other, 1, rate, weights)
                each = [math.log(one[k] / two[k]) for k in one]
                assert max(each) - min(each) <= level + 1e-9
    # Some neighbours come near enough for a wrong factor of 2 to be noticed.
    assert nearest > 0.5


def test_scores_are_those_of_the_definition_and_one_row_moves_them_by_one() -> None:
    """tree-scores, on all tables of up to four rows."""
    made = shape(1)
    kinds = list(itertools.product(range(3), range(3), range(2)))
    rng, reached = np.random.default_rng(2), Counter()
    for size in range(5):
        for rows in itertools.islice(itertools.combinations_with_replacement(kinds, size), 400):
            held = list(rows)
            codes = [np.array([r[k] for r in held], dtype=np.int64) for k in range(2)]
            found = made.scores(codes, np.array([r[2] for r in held], dtype=np.int64)).tolist()
            assert found == scores(held)
            more = scores([*held, kinds[int(rng.integers(len(kinds)))]])
            moved = [a - b for a, b in zip(more, found, strict=True)]
            assert max(map(abs, moved)) <= 1
            reached.update(moved)
    assert set(reached) == {-1, 0, 1}
    # Larger tables and three classes, by the formula.
    yes, total = rng.integers(0, 50, (300, 3)), rng.integers(50, 90, (300, 3))
    for c in range(3):
        step = np.eye(3, dtype=np.int64)[c]
        a, b, d = (
            gini_scores(yes, total),
            gini_scores(yes + step, total + step),
            gini_scores(yes, total + step),
        )
        assert np.abs(a - b).max() <= 1
        assert np.abs(a - d).max() <= 1


def test_what_is_drawn_has_the_law_and_leaves_have_their_noise() -> None:
    """The release itself: frequencies of the splits against the law, and the spread of the counts."""
    rng = np.random.default_rng(5)
    rows = some_rows(rng, 12)
    plan = TreePlan.for_target(shape=shape(1), epsilon=3)
    codes = [np.array([r[k] for r in rows], dtype=np.int64) for k in range(2)]
    places = np.array([r[2] for r in rows], dtype=np.int64)
    source, seen, errors = SeededSource(seed=7), Counter(), []
    for _ in range(3000):
        chosen, counts = plan.release(codes, places, source=source)
        seen[tuple(chosen.tolist())] += 1
        split = SPLITS[int(chosen[0])]
        true = [
            [sum(bool(split(r)) == side and r[2] == c for r in rows) for c in (0, 1)]
            for side in (False, True)
        ]
        errors += (np.asarray(counts, dtype=float) - np.array(true)).ravel().tolist()
    expected = law(rows, 1, float(plan.choice.rate), flips)
    for split, chance in expected.items():
        assert abs(seen[split] - 3000 * chance) < 6.5 * math.sqrt(3000 * chance * (1 - chance)) + 1
    q = math.exp(-1.5)  # discrete Laplace at epsilon = 3 / 2
    assert np.mean(np.square(errors)) == pytest.approx(2 * q / (1 - q) ** 2, rel=0.1)
    assert abs(np.mean(errors)) < 0.06


def test_exponential_zcdp_holds_and_is_nearly_reached() -> None:
    """exponential-zcdp: Rényi divergences of pairs with bounded range, at several orders."""
    rng, nearest = np.random.default_rng(3), 0.0
    for _ in range(60):
        epsilon = float(rng.uniform(0.1, 3))
        rho = float(bounded_range_rho(epsilon))
        assert rho == pytest.approx(epsilon**2 / 8)
        loss = rng.choice([0.0, epsilon], 6) if rng.integers(2) else rng.uniform(0, epsilon, 6)
        q = rng.dirichlet(np.full(6, 2.0))
        p = q * np.exp(loss)
        p /= p.sum()
        for order in (1.01, 1.5, 2, 4, 16):
            found = math.log(float((q * (p / q) ** order).sum())) / (order - 1)
            assert found <= order * rho * (1 + 1e-9) + 1e-15
            nearest = max(nearest, found / (order * rho))
    assert nearest > 0.9


def test_a_plan_adds_up_to_its_price() -> None:
    pure = TreePlan.for_target(shape=shape(3, neighbours="replace-one", rows=2), epsilon=Fraction(1, 3))
    assert pure.exact_epsilon is not None
    assert pure.exact_epsilon <= Fraction(1, 3)
    assert isinstance(pure.bound, Pure)
    assert len(pure.events) == 4
    assert pure.choice.rate == Fraction(1, 3) / 4 / 8  # four rows come or go
    rho = TreePlan.for_rho(shape=shape(3), rho=Fraction(1, 10))
    assert isinstance(rho.bound, Concentrated)
    assert 0.0999 < rho.bound.rho <= 0.1
    chosen, counts = rho.release([np.array([0, 2, 1])] * 2, np.array([0, 1, -1]), source=SeededSource(seed=2))
    assert (chosen.shape, counts.shape) == ((7,), (8, 2))
    with pytest.raises(InvalidParameter):
        TreePlan(
            shape=shape(1, rows=3),
            choice=pure.choice.for_target(epsilon=1, sensitivity=Score(2)),
            noise=pure.noise,
        )


def test_depths_that_the_price_cannot_pay_are_refused() -> None:
    assert planned_depth(columns=COLUMNS, classes=(0, 1), size=10**6, epsilon=1) > 6
    assert planned_depth(columns=COLUMNS, classes=(0, 1), size=100, epsilon=0.01) == 1
    with pytest.raises(InvalidParameter, match="less deep"):
        TreePlan.for_target(shape=shape(6), epsilon=0.1).check(500)
    TreePlan.for_target(shape=shape(6), epsilon=0.1).check(10**6)
    with pytest.raises(InvalidParameter, match="at most 12"):
        shape(13)


# --- the estimator --------------------------------------------------------------------------------------------------
def tree(**changes: Any) -> PrivateDecisionTreeClassifier:
    given = {
        "epsilon": 20, "columns": [(0, 8), ["f", "m"]], "classes": ["no", "yes"], "max_depth": 2,
        "source": SeededSource(seed=1),
    }  # fmt: skip
    return PrivateDecisionTreeClassifier(**(given | changes))


def people(count: int = 400) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = np.empty((count, 2), dtype=object)
    X[:, 0], X[:, 1] = rng.uniform(0, 8, count), rng.choice(["f", "m"], count)
    return X, np.where((X[:, 0].astype(float) > 4) & (X[:, 1] == "m"), "yes", "no")


def test_a_tree_learns_and_says_what_it_promises() -> None:
    X, y = people()
    model = clone(tree(source=None)).set_params(source=SeededSource(seed=1)).fit(X, y)
    assert (model.predict(X) == y).mean() > 0.95
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
    assert model.guarantee_.bound == Pure(epsilon=20)
    assert "added or taken away" in str(model.guarantee_)
    assert "nobody knows the seed" in " ".join(model.guarantee_.declared)
    assert "column 0 > 4" in str(model.tree_)
    several = tree(rows=3, neighbours="replace-one").fit(X, y).guarantee_
    assert "at most 3" in str(several)
    assert "replaced" in str(several)


def test_odd_values_raise_nothing_and_tell_nothing() -> None:
    X, y = people()
    odd = X.copy()
    odd[0] = [object(), ["f"]]
    odd[1] = [None, float("nan")]
    labels = y.astype(object)
    labels[2] = {"no": 1}
    model = tree().fit(odd, labels)
    assert set(model.predict(odd)) <= {"no", "yes"}
    assert model.classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilon": None}, "epsilon"), ({"columns": None}, "columns"), ({"classes": None}, "classes"),
        ({"columns": [(3, 3), ["f"]]}, "column 0"), ({"columns": [(0, 8), []]}, "column 1"),
        ({"columns": "ab"}, "columns"), ({"max_depth": None}, "max_depth"), ({"max_depth": 40}, "at most 12"),
        ({"max_depth": 8, "epsilon": 0.1, "size": 400}, "less deep"), ({"rows": 0}, "rows"),
        ({"neighbours": "cousins"}, "neighbour relation"), ({"classes": ["no"]}, "classes"),
    ],
)  # fmt: skip
def test_refusals_are_one_sentence_before_a_row_is_read(changes: Any, said: str) -> None:
    with pytest.raises(TacitError, match=said):
        tree(**changes).fit(object(), object())


def test_leaves_below_the_noise_take_what_is_around_them() -> None:
    made = shape(2)
    counts = np.array([[90, 10], [-3, 2], [0, 0], [1, -1]])
    plain = ReleasedTree(made, np.zeros(3, dtype=np.int64), counts)
    assert plain.chances[1].tolist() == [0, 1]
    assert plain.chances[2].tolist() == [1, 0]
    plain_column = ReleasedTree(made, np.zeros(3, dtype=np.int64), counts, leaf_error=4.0)
    assert plain_column.chances[1] == pytest.approx([90 / 102, 12 / 102])
    assert plain_column.chances[3] == pytest.approx([91 / 103, 12 / 103])
    assert str(plain_column).count("\n") == 0


def test_default_cuts_follow_from_the_bounds_alone() -> None:
    cuts = default_cuts(0, 1024)
    assert list(cuts) == sorted(set(cuts))
    assert {64.0, 512.0, 32.0, 0.25, 1023.75} <= set(cuts)
    assert default_cuts(1, 1) == ()
