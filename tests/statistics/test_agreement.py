"""Theorem `agreeing-tables`: the law of every number, the order of tables, whole numbers, coverage."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tacit import errors
from tacit.mechanisms import L1, Laplace, RoundedGaussian
from tacit.statistics import NoisyTable, consistent_margins
from tacit.statistics.agreement import AgreeingTable, AgreeingTables, NoisyBlock, joined, whole_tables
from tacit.statistics.totals import combination, mixed_quantile

SIZES = (("a", 2), ("b", 3), ("c", 4))


def laplace(epsilon):
    return Laplace.for_target(epsilon=Fraction(epsilon), sensitivity=L1(1))


def member(columns, *laws, shown=None):
    """Its cells first, then blocks that each leave out the last column of the one before."""
    names = [tuple(columns)[: len(columns) - i] for i in range(len(laws))]
    blocks = tuple(NoisyBlock(columns=n, law=law) for n, law in zip(names, laws, strict=True))
    return AgreeingTable(columns=tuple(columns), shown=shown or (tuple(columns), ()), blocks=blocks)


FAMILY = AgreeingTables(
    sizes=SIZES,
    members=(
        member("ab", laplace(1), laplace("1/2"), shown=(("a", "b"), ("b",), ("a",), ())),
        member("ca", laplace("3/4"), laplace("1/4"), shown=(("c", "a"), ("a",), ())),
        member("", laplace(1), shown=((),)),
    ),
)


@pytest.mark.parametrize("of", [("a", "b"), ("a",), (), ("c", "a"), ("c",)])
@pytest.mark.parametrize(
    "more",
    [(), (((), None),) * 2, ((("a",), laplace("1/3")), (("c", "a"), laplace(2)))],
    ids=["as they are", "exact totals", "columns twice"],
)
def test_the_weights_of_the_noise_are_those_of_least_squares(of, more):
    """An impulse in one cell of one block, through the fit itself; two blocks may have the same columns."""
    laws = FAMILY.laws + more
    assert all([c for c, _ in FAMILY.laws].count(columns) == 1 for columns, _ in more)
    sizes = dict(SIZES)
    owner = next(i for i, (columns, _) in enumerate(laws) if set(of) <= set(columns))
    for which, (columns, law) in enumerate(laws):
        if law is None:
            continue
        seen = []
        for place in np.ndindex(*(sizes[c] for c in columns)):
            tables = []
            for k, (names, noise) in enumerate(laws):
                values = np.zeros([sizes[c] for c in names])
                if k == which:
                    values[place] = 1.0
                variance = noise.mean_variances(1)[0] if noise else 0.0
                tables.append(NoisyTable(columns=names, values=values, variance=variance))
            fitted, names = consistent_margins(tables)[owner], laws[owner][0]
            gone = tuple(i for i, c in enumerate(names) if c not in of)
            seen.append(float(np.ravel(fitted.sum(axis=gone))[0]))
        _, weights, counts = combination(SIZES, laws, of)[which]
        told = sorted(w for w, n in zip(weights, counts, strict=True) for _ in range(int(n)))
        np.testing.assert_allclose(told, sorted(seen), atol=1e-12)


def test_a_shared_total_is_known_from_both_tables():
    """Two tables with 6 and 10 other keys at epsilon 1/2: 6.93 and 8.94 alone, 5.48 together, for continuous noise."""
    law = laplace("1/2")
    one = law.mean_variances(1)[0]
    sizes = (("sex", 2), ("x", 6), ("y", 10))
    laws = ((("sex", "x"), law), (("sex", "y"), law))
    found = sum(one * float(n @ w**2) for _, w, n in combination(sizes, laws, ("sex",)))
    assert found == pytest.approx(1 / (1 / (6 * one) + 1 / (10 * one)), rel=1e-12)
    assert math.sqrt(found * 8 / one) == pytest.approx(5.477, abs=1e-3)


def test_no_number_is_known_worse_than_alone():
    for m in FAMILY.members:
        own = tuple((b.columns, b.law) for b in m.blocks)
        for of in m.shown:
            alone, together = (
                sum(law.mean_variances(1)[0] * float(n @ w**2) for law, w, n in combination(SIZES, laws, of))
                for laws in (own, FAMILY.laws)
            )
            assert together < alone


def test_tables_have_an_order_if_and_only_if_some_order_works():
    """Against all orders of all families of up to four sets of four columns, a sample of them."""
    subsets = [s for k in range(5) for s in itertools.combinations("abcd", k)]
    rng = np.random.default_rng(5)
    rings = 0
    for _ in range(400):
        sets = [subsets[i] for i in rng.choice(len(subsets), size=int(rng.integers(2, 5)), replace=False)]

        def works(order, sets=sets):
            for k in range(1, len(order)):
                met = set().union(*(sets[i] for i in order[:k])) & set(sets[order[k]])
                if not any(met <= set(sets[i]) for i in order[:k]):
                    return False
            return True

        possible = any(works(order) for order in itertools.permutations(range(len(sets))))
        if possible:
            order = joined(sets)
            assert sorted(i for i, _ in order) == list(range(len(sets)))
            assert works([i for i, _ in order])
        else:
            rings += 1
            with pytest.raises(errors.NoLaw, match="ring"):
                joined(sets)
    assert 5 < rings < 395


def test_whole_numbers_agree_and_valid_tables_stay_as_they_are():
    rng = np.random.default_rng(7)
    sets = [("a", "b"), ("c", "a"), ("b", "d"), (), ("a",)]
    sizes = {"a": 2, "b": 3, "c": 4, "d": 5}
    for large in (0.3, 3.0, 40.0):
        rows = rng.poisson(large, size=tuple(sizes.values()))

        def of(names, full=rows):
            summed = full.sum(axis=tuple(i for i, c in enumerate("abcd") if c not in names))
            kept = [c for c in "abcd" if c in names]
            return summed.transpose([kept.index(c) for c in names])

        true = [of(s) for s in sets]
        for shown, own in zip(whole_tables(sets, [t.astype(float) for t in true]), true, strict=True):
            np.testing.assert_array_equal(shown, own)
        noisy = [
            NoisyTable(columns=s, values=t + rng.normal(0, 9, t.shape))
            for s, t in zip(sets, true, strict=True)
        ]
        shown = whole_tables(sets, consistent_margins(noisy))
        assert all(np.issubdtype(t.dtype, np.integer) and (t >= 0).all() for t in shown)
        for (s, x), (t, y) in itertools.combinations(zip(sets, shown, strict=True), 2):
            common = [c for c in s if c in t]

            def margin(table, names, common=common):
                kept = [c for c in names if c in common]
                summed = table.sum(axis=tuple(i for i, c in enumerate(names) if c not in common))
                return summed.transpose([kept.index(c) for c in common])

            np.testing.assert_array_equal(margin(x, s), margin(y, t))


def test_every_number_is_covered_by_the_law_that_is_drawn():
    """1,000 draws of the discrete noise: cells, totals of one table, and totals that tables share."""
    rng = np.random.default_rng(11)
    rows, runs, level = rng.poisson(200, size=(2, 3, 4)), 1000, 0.95
    true = {("a", "b"): rows.sum(axis=2), ("c", "a"): rows.sum(axis=1).T, (): rows.sum()}
    true |= {("a",): rows.sum(axis=(1, 2)), ("c",): rows.sum(axis=(0, 1))}

    def noise(law, size):
        p = -math.expm1(-1 / float(law.distribution.noise_scale))
        return rng.geometric(p, size) - rng.geometric(p, size)

    caught = {}
    for _ in range(runs):
        given = [
            [true[b.columns] + noise(b.law, np.shape(true[b.columns])) for b in m.blocks]
            for m in FAMILY.members
        ]
        for i, cells in enumerate(FAMILY.cells(given)):
            m = FAMILY.members[i]
            for of, half in FAMILY.halves(i, level).items():
                gone = tuple(k for k, c in enumerate(m.columns) if c not in of)
                error = np.ravel(cells.sum(axis=gone) - true[m.columns].sum(axis=gone))
                caught.setdefault((i, of), []).append(np.abs(error) <= half + 1e-6)
    for place, found in caught.items():
        # Cells of a table share some noise: the error of a share is taken for one cell a run.
        assert level - 3 * math.sqrt(level * (1 - level) / runs) <= np.mean(found) <= 0.985, place


def test_laplace_and_gaussian_noise_in_one_number():
    """The quantile beside the convolution of both laws, computed from the definitions."""
    scale, std = 2.0, 3.0
    q = math.exp(-1 / scale)
    k = np.arange(-400, 401)
    law = (1 - q) / (1 + q) * q ** np.abs(k)
    pair = np.convolve(law, law)  # two draws
    at = np.arange(-800, 801)
    for miss in (0.05, 0.3):
        t = mixed_quantile(((scale, 1.0, 2),), miss, normal=std**2)

        def missed(t, at=at, pair=pair):
            upper = np.array([0.5 * math.erfc((t - v) / std / math.sqrt(2)) for v in at])
            return 2 * float(pair @ upper)

        assert missed(t) <= miss
        assert missed(t - 1.1) > miss


def test_gaussian_and_laplace_blocks_in_a_family():
    gaussian = RoundedGaussian.for_mu_squared(mu_squared=Fraction(1, 4), squared_steps=1)
    both = AgreeingTables(sizes=SIZES, members=(member("ab", laplace(1)), member("ca", gaussian)))
    alone = AgreeingTables(sizes=SIZES, members=(member("ab", laplace(1)),))
    assert both.halves(0, 0.95)[()] < alone.halves(0, 0.95)[()]
    only = AgreeingTables(sizes=SIZES, members=(member("ab", gaussian), member("ca", gaussian)))
    variance = gaussian.interval_variance
    assert only.halves(0, 0.95)[()] == pytest.approx(
        1.96 * math.sqrt(1 / (1 / (6 * variance) + 1 / (8 * variance))), rel=0.01
    )
