"""What a bound adds to itself: parts left out, roundings of a row, certain losses, several laws. None may be dropped.

In ordinary answers these parts are below anything that a comparison of epsilons shows. Here each of them is large.
"""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.coupled import FiniteMechanism, compose_disjoint_rows, compose_known, iid_rows, row_pairs
from tacit.coupled.best import best_factor
from tacit.coupled.definitions import left_out
from tacit.coupled.mechanisms import cells
from tacit.coupled.noiseless import (
    exact_count,
    exact_sum,
    exact_vector_sum,
    row_law,
    table,
)
from tacit.coupled.noiseless.answer import ExactAnswer
from tacit.coupled.noiseless.decisions import (
    LeadTails,
    _laws,
    changes,
    exact_argmax,
    exact_map,
    log_scores,
    score_tails,
)
from tacit.coupled.noiseless.histograms import (
    BinomialSample,
    FixedSize,
    PoissonSample,
    cell_delta,
    sampled_delta,
    smallest_threshold,
    truncated_histogram,
)
from tacit.coupled.noiseless.lattice import Shifted, SumLaw, sum_law, worst
from tacit.coupled.noiseless.minorants import rectangle, undisclosed
from tacit.coupled.noiseless.prisms import LossTable, Prism, _losses, _numbers, prism_losses
from tacit.coupled.noiseless.regression import exact_regression
from tacit.coupled.noiseless.row_laws import RowLaw, as_typed, normal
from tacit.coupled.numbers import Level, distance, smallest_factor
from tacit.coupled.pairs import one_row
from tacit.coupled.priors import row_count
from tacit.errors import InvalidParameter, NoLaw, NotCertified, TacitError
from tacit.exact.rounding import Interval, ball, precision
from tacit.noise import SeededSource

HALF = Fraction(1, 2)
FAIR = {0: HALF, 1: HALF}


def law_of(masses: list[float], outside: float = 0.0, start: int = 0) -> SumLaw:
    """A law that is known on its points, but for a part that lies elsewhere."""
    values = np.array(masses) * (1 - outside)
    return SumLaw(start, values, values, outside)


def plain_excess(p: np.ndarray, q: np.ndarray, factor: float) -> float:
    return float(np.sum(np.maximum(p - factor * q, 0.0)))


@pytest.mark.parametrize("delta", [0.16, 0.5, 0.8])
@pytest.mark.parametrize(
    ("outside", "slack", "certain"), [(0.004, 0, 0), (0, 0.004, 0), (0, 0, 0.05), (0.002, 0.002, 0.02)]
)
def test_a_shift_pays_for_what_is_left_out(
    delta: float, outside: float, slack: float, certain: float
) -> None:
    """Both worlds may be off by rest, so that the divergence is off by rest (1 + e^epsilon); what is certain is added.

    At delta = 0.16 the factor is above 3, at the others below.
    """
    masses = [0.002, 0.02, 0.13, 0.696, 0.13, 0.02, 0.002]
    law = law_of(masses, outside)
    shifted = Shifted([(1.0, law)], 0, 1, {0: 1.0}, certain=certain, slack=slack)
    found = worst(shifted, [0, 1], delta, log_concave=True)
    assert math.isfinite(found.factor)
    assert (found.factor > 3) == (delta == 0.16)
    p = np.array([0, *masses]) * (1 - outside)
    q = np.array([*masses, 0]) * (1 - outside)
    told = max(plain_excess(p, q, found.factor), plain_excess(q, p, found.factor))
    assert told + certain + (outside + slack) * (1 + found.factor) <= delta * (1 + 1e-9)
    # Not more than twice what is needed: the parts that are spared are no larger than they must be.
    rest = outside + slack
    assert told + certain + rest * max(4.0, 2 + 2 * found.factor) >= delta * (1 - 1e-6) or found.factor == 1.0


def test_of_a_mixture_every_law_counts_by_its_weight() -> None:
    """Nine tenths of a law that hides well and a tenth of one that hides nothing: the tenth is told."""
    flat, point = law_of([0.1] * 10), law_of([1.0])
    shifted = Shifted([(0.9, flat), (0.1, point)], 0, 1, {0: 1.0})
    found = worst(shifted, [0, 1], 0.3, log_concave=False)
    # 0.1 of the point and 0.9 * 0.1 of the flat one's end are told at any factor.
    assert found.floor == pytest.approx(0.19, rel=1e-6)
    assert found.factor == pytest.approx(1.0)
    assert math.isinf(worst(shifted, [0, 1], 0.18, log_concave=False).factor)


def test_a_middle_place_of_a_law_with_two_peaks_may_be_the_worst() -> None:
    """Peaks at 0 and 4: a row of 2 falls between them, rows of 0 and 4 do not. Runs of any length find it."""
    peaks = law_of([0.49, 0.005, 0.005, 0.01, 0.49])
    for last in (4, 5, 6):
        shifted = Shifted([(1.0, peaks)], 0, last, {0: 0.5, 4: 0.5})
        at = [shifted.found(x, x, 0.05) for x in range(last + 1)]
        everywhere = worst(shifted, range(last + 1), 0.05, log_concave=False)
        assert everywhere.factor == max(f.factor for f in at)


@pytest.mark.parametrize(("n", "first"), [(2, 0), (3, 0), (4, 1), (5, 2)])
def test_the_hull_of_a_run_holds_each_of_its_shifts(n: int, first: int) -> None:
    law = law_of([0.05, 0.3, 0.1, 0.35, 0.2])
    shifted = Shifted([(1.0, law)], 0, 8, {0: 1.0})
    low, high = shifted._hull(first, first + n - 1)
    lows = [shifted._at(x, upper=False) for x in range(first, first + n)]
    np.testing.assert_array_equal(low, np.min(lows, axis=0))
    np.testing.assert_array_equal(high, np.max(lows, axis=0))


def test_a_simulator_is_a_law() -> None:
    law = law_of([0.5, 0.5])
    for bad in ({}, {0: 0.5}, {0: 1.5, 1: -0.5}):
        with pytest.raises(InvalidParameter, match="law of where the row is put"):
            Shifted([(1.0, law)], 0, 1, bad)


def test_tails_count_what_is_left_out_and_what_the_law_is_off_by() -> None:
    """Pr[R >= c] and Pr[R < c]: from above with `outside`, from below without `off`."""
    masses = np.array([0.25, 0.25, 0.25, 0.2])
    tails = LeadTails.of(SumLaw(0, masses, masses, 0.05 + 0.02), 10, off=0.02)
    up_high, up_low, down_high, down_low = tails.at(np.array([12]))
    assert up_high[0] == pytest.approx(0.5 + 0.02)
    assert up_low[0] == pytest.approx(0.45 - 0.02)
    assert down_high[0] == pytest.approx(0.55 + 0.02)
    assert down_low[0] == pytest.approx(0.5 - 0.02)


def test_thresholds_anywhere_hold_all_that_a_score_can_reach() -> None:
    tails = LeadTails.of(law_of([0.5, 0.5]), 0)
    places = tails.anywhere(3)
    assert places[0] <= -3
    assert places[-1] >= 2 + 3


def test_scores_count_the_rounding_of_the_law_once_for_each_row() -> None:
    weights = (HALF, HALF)
    plain = RowLaw(name="bit", low=Fraction(0), step=Fraction(1), weights=weights)
    off = RowLaw(name="bit", low=Fraction(0), step=Fraction(1), weights=weights, rounding=Fraction(1, 1000))
    one, other = (score_tails(x, {0: 0, 1: 1}, 20, 1e-3) for x in (plain, off))
    at = np.array([10])
    for side, sign in enumerate((1, -1, 1, -1)):
        assert sign * float(other.at(at)[side][0] - one.at(at)[side][0]) == pytest.approx(0.02, rel=1e-3)


def test_a_lead_counts_the_rounding_of_both_columns() -> None:
    even = RowLaw(name="bit", low=Fraction(0), step=Fraction(1), weights=(HALF, HALF))
    off = RowLaw(
        name="bit", low=Fraction(0), step=Fraction(1), weights=(HALF, HALF), rounding=Fraction(1, 10**4)
    )
    given: Any = {"n": 40, "delta": 0.3}
    sizes = [
        exact_argmax([a, b], **given).details["stability"]
        for a, b in itertools.product((even, off), repeat=2)
    ]
    assert sizes[1] - sizes[0] == pytest.approx(sizes[2] - sizes[0], rel=1e-6)
    assert sizes[3] - sizes[0] == pytest.approx(2 * (sizes[1] - sizes[0]), rel=1e-6)
    assert sizes[1] - sizes[0] >= 39 / 10**4


def test_sums_count_the_rounding_of_the_law_once_for_each_row() -> None:
    """With a rounding of r and m other rows each world is off by m r: (1 + e^epsilon) m r of delta is gone."""
    weights = tuple(Fraction(1, 5) for _ in range(5))
    plain = RowLaw(name="five", low=Fraction(0), step=Fraction(1), weights=weights)
    off = RowLaw(name="five", low=Fraction(0), step=Fraction(1), weights=weights, rounding=Fraction(1, 10**5))
    for delta, name in ((0.05, "epsilon_pair"), (0.02, "epsilon")):
        asked = [
            (plain, delta),
            (plain, delta - 2 * 200 / 10**5),
            (off, delta),
            (plain, delta - 8 * 200 / 10**5),
        ]
        one, less, other, least = (getattr(exact_sum(x, n=201, delta=d), name) for x, d in asked)
        assert one < less <= other < least


def test_a_coarser_grid_keeps_the_rounding() -> None:
    law = RowLaw(
        name="even",
        low=Fraction(0),
        step=Fraction(1),
        weights=(HALF, Fraction(0), HALF),
        rounding=Fraction(1, 7),
    )
    assert law.reduced().rounding == Fraction(1, 7)
    assert law.reduced().step == 2


def test_a_law_with_a_gap_or_a_late_dent_is_not_log_concave() -> None:
    def of(*weights: int) -> RowLaw:
        total = sum(weights)
        return table({k: Fraction(w, total) for k, w in enumerate(weights) if w}, grid=1)

    assert of(1, 2, 3, 2, 1).log_concave
    assert not of(1, 0, 1).log_concave
    assert not of(1, 0, 0, 1).log_concave
    assert not of(2, 1, 2, 2, 2).log_concave
    assert not of(2, 2, 2, 1, 2).log_concave


@pytest.mark.parametrize("turned", [False, True])
def test_of_several_laws_the_worst_pair_counts_wherever_it_stands(turned: bool) -> None:
    flat = table(dict.fromkeys(range(5), "1/5"))
    peaked = table({0: "1/20", 1: "1/20", 2: "4/5", 3: "1/20", 4: "1/20"})
    for assume in ("known", "rectangle"):
        asked: Any = {"n": 60, "delta": 2e-2, "assume": assume}
        alone = [exact_sum(one, **asked).epsilon_pair for one in (flat, peaked)]
        assert None not in alone
        assert alone[1] > 1.1 * alone[0]
        both = exact_sum([peaked, flat] if turned else [flat, peaked], **asked).epsilon_pair
        assert both is None or both >= alone[1] * (1 - 1e-9)


def test_laws_of_other_ranges_share_a_simulator_of_the_whole_range() -> None:
    """All rows are 0..2 or 3..5, each evenly: given the law the sum hides a row as either does alone, or worse."""
    low, high = table(dict.fromkeys(range(3), "1/3")), table(dict.fromkeys(range(3, 6), "1/3"))
    alone = exact_sum(low, n=40, delta=0.05).epsilon
    for laws in ([low, high], [high, low]):
        assert exact_sum(laws, n=40, delta=0.05).epsilon > 1.5 * alone
    with pytest.raises(InvalidParameter, match="one grid"):
        exact_sum([low, table({HALF: HALF, HALF + 1: HALF})], n=40, delta=0.05)


@pytest.mark.parametrize(("a", "b"), [("1/10", "3/10"), ("7/10", "9/10"), ("2/5", "3/5"), ("1/4", "3/4")])
@pytest.mark.parametrize("m", [20, 21])
def test_an_interval_of_chances_is_as_bad_as_its_worst_corner(a: str, b: str, m: int) -> None:
    """Below, above and around one half, with an even and an odd number of rows: all corners by exact rationals."""
    low, high, delta = Fraction(a), Fraction(b), 0.25
    answer = exact_count((a, b), n=m + 1, delta=delta)
    apart = Fraction(1)
    for k in range(m + 1):
        law: dict[int, Fraction] = {0: Fraction(1)}
        for chance in [low] * k + [high] * (m - k):
            law = {
                s: law.get(s, Fraction(0)) * (1 - chance) + law.get(s - 1, Fraction(0)) * chance
                for s in range(len(law) + 1)
            }
        moved = {s + 1: w for s, w in law.items()}
        for p, q in itertools.permutations((law, moved)):
            found = smallest_factor(p, q, Fraction(delta))
            assert found is not None
            apart = max(apart, found)
    assert answer.epsilon_pair is not None
    assert math.log(apart) - 1e-12 <= answer.epsilon_pair <= math.log(apart) * 1.0005 + 1e-12
    same = answer.details["epsilon_pair_homogeneous"]
    each = [exact_count(p, n=m + 1, delta=delta).epsilon_pair for p in (a, b)]
    assert same == max(each)
    floors = [exact_count(p, n=m + 1, delta=delta).details["epsilon_floor"] for p in (a, b)]
    assert answer.details["epsilon_floor"] == max(floors)


def test_two_columns_and_three_lose_what_each_of_them_loses() -> None:
    """A mass that is beyond the grid of losses in one coordinate, or has no counterpart, is told for certain."""
    law = law_of([0.1, 0.8, 0.1])
    masses, lost = _losses(law, 1, 0.01)
    assert lost == pytest.approx(0.1)  # the last point of the moved law, which the other never has
    assert float(np.sum(masses)) + lost == pytest.approx(1.0)
    _, beyond = _losses(law, 1, 0.0001)  # losses of ln 8 are beyond 1200 steps of 0.0001
    assert beyond == pytest.approx(0.1 + 0.8, rel=0.2)
    outside = SumLaw(0, law.low, law.high, 0.03)
    assert _losses(outside, 1, 0.01)[1] == pytest.approx(0.13)


def test_losses_are_rounded_up() -> None:
    masses, _ = _losses(law_of([0.2, 0.6, 0.2]), 1, 0.75)
    # ln 3 = 1.0986 is 1.46 steps: two; -ln 3 is -1.46 steps: minus one.
    places = {int(k) - 1200: float(masses[k]) for k in np.flatnonzero(masses)}
    assert set(places) == {-1, 2}


def test_a_loss_table_adds_what_is_certain() -> None:
    losses = LossTable(0, 0.5, np.array([0.2, 0.3, 0.4]), 0.1)
    by_hand = 0.3 * (1 - math.exp(-0.4)) + 0.4 * (1 - math.exp(-0.9)) + 0.1
    assert losses.delta(0.1) == pytest.approx(by_hand, rel=1e-9)
    assert losses.epsilon(0.09) == math.inf
    assert losses.delta(losses.epsilon(0.3)) <= 0.3


@pytest.mark.parametrize("mass", [Fraction(1, 3), Fraction(9, 10), Fraction(1)])
def test_a_prism_of_two_unequal_sides_by_enumeration(mass: Fraction) -> None:
    """delta of the table against all numbers of uniform rows and both coordinates, in plain floats."""
    prism, hidden = Prism(mass=mass, points=(4, 3), half_ranges=(1, 2)), 12
    found = prism_losses(prism, hidden=hidden, delta=0.3)
    for epsilon in (0.2, 1.0):
        total = 0.0
        for number in range(hidden + 1):
            share = math.comb(hidden, number) * float(mass) ** number * float(1 - mass) ** (hidden - number)
            sides = []
            for points, half in zip(prism.points, prism.half_ranges, strict=True):
                law = np.ones(1)
                for _ in range(number):
                    law = np.convolve(law, np.full(points, 1 / points))
                sides.append((np.append(np.zeros(half), law), np.append(law, np.zeros(half))))
            p, q = (np.multiply.outer(sides[0][i], sides[1][i]).ravel() for i in (0, 1))
            total += share * plain_excess(p, q, math.exp(epsilon))
        assert total <= found.delta(epsilon) <= total * 1.25 + 1e-3


def test_vectors_take_the_product_of_the_masses_and_the_farther_half_of_the_range() -> None:
    laws = [table({0: "1/8", 1: "3/8", 2: "3/8", 3: "1/8"}), table({0: "1/6", 1: "1/3", 2: "1/3", 3: "1/6"})]
    answer = exact_vector_sum(laws, n=400, delta=1e-2)
    # Both columns' best rectangle is over the two values in the middle, or over all four.
    product = max(Fraction(3, 4), Fraction(1, 2)) * max(Fraction(2, 3), Fraction(2, 3))
    assert answer.details["mass"] <= product
    # Four values have their middle off the grid: 2 steps from 1 to 3, not 1.
    wide = exact_vector_sum([table(dict.fromkeys(range(4), "1/4"))], n=400, delta=1e-3)
    near = prism_losses(Prism(mass=Fraction(1), points=(4,), half_ranges=(2,)), hidden=399, delta=1e-3)
    assert wide.epsilon == pytest.approx(near.epsilon(1e-3))


def test_two_cells_of_a_truncated_histogram_are_twice_as_far_apart() -> None:
    """simulator-to-pair: (2 e, (1 + e^e) delta_k(e)); both sides of the smallest such e."""
    answer = truncated_histogram(sampling="poisson", threshold=400, delta=1e-4)
    assert answer.epsilon_pair is not None
    at, half = cell_delta(PoissonSample()), answer.epsilon_pair / 2
    assert (1 + math.exp(half)) * at(400, half).high <= 1e-4 * (1 + 1e-9)
    less = half * (1 - 1e-6)
    assert (1 + math.exp(less)) * at(400, less).high > 1e-4


def test_known_members_of_a_cell_raise_the_threshold_by_their_number() -> None:
    given: Any = {"sampling": "poisson", "epsilon": 1.0, "delta": 1e-6}
    free = truncated_histogram(**given)
    known = truncated_histogram(**given, known_rows=7)
    assert free.threshold is not None
    assert known.threshold == free.threshold + 7
    again = truncated_histogram(sampling="poisson", epsilon=1.0, threshold=free.threshold + 7, known_rows=7)
    assert again.delta == cell_delta(PoissonSample())(free.threshold, 1.0).high
    with pytest.raises(NoLaw, match="at least 9"):
        truncated_histogram(sampling="poisson", epsilon=1.0, threshold=8, known_rows=7)
    truncated_histogram(sampling="poisson", epsilon=1.0, threshold=9, known_rows=7)


@pytest.mark.parametrize("turned", [False, True])
def test_disjoint_rows_take_the_larger_epsilon_and_the_larger_delta(turned: bool) -> None:
    prior = iid_rows(FAIR, rows=2)
    first = FiniteMechanism.of(lambda x: x[0], [prior], name="first")
    second = FiniteMechanism.of(lambda x: x[1], [prior], name="second")
    claims: Any = ((2, Fraction(1, 2)), ("ln 3", Fraction(3, 5)))
    made = compose_disjoint_rows(
        first, second, priors=[prior], rows=[0], claims=claims[::-1] if turned else claims
    )
    assert made.epsilon.high == pytest.approx(2.0)
    assert made.delta == Fraction(3, 5)
    assert str(made.bound).count("0.6") == 1
    again = FiniteMechanism.of(lambda x: x[0], [prior], name="again")
    for mechanisms, rows in (((first, again), [0]), ((second, first), [0]), ((second, second), [0])):
        with pytest.raises(NoLaw, match="outside of its part"):
            compose_disjoint_rows(*mechanisms, priors=[prior], rows=rows, claims=claims)
    with pytest.raises(InvalidParameter, match="below the number of rows"):
        compose_disjoint_rows(first, second, priors=[prior], rows=[2], claims=claims)


def test_composed_factors_multiply_and_a_delta_of_1_is_no_promise() -> None:
    prior = iid_rows(FAIR, rows=2)
    same = FiniteMechanism.of(lambda x: "same", [prior])
    made = compose_known(same, same, priors=[prior], pairs=row_pairs(2), claims=(("ln 2", 0), ("ln 5", 0)))
    assert made.epsilon.low <= math.log(10) <= made.epsilon.high
    assert made.bound.kind == "pure"
    with pytest.raises(NoLaw, match="reaches 1"):
        compose_known(same, same, priors=[prior], pairs=row_pairs(2), claims=((0, HALF), (0, HALF)))


@pytest.mark.parametrize(
    "rows",
    [
        [{"a": "1/2", "b": "1/2"}, {"a": "1/8", "b": "7/8"}],
        [{"a": "9/10", "b": "1/10"}, {"a": "1/10", "b": "9/10"}],
        [{"a": "1/2", "b": "1/4", "c": "1/4"}, {"a": "1/4", "b": "1/2", "c": "1/4"}],
        [{"a": "98/100", "b": "1/100", "c": "1/100"}, {"a": "97/100", "b": "2/100", "c": "1/100"}],
        [{"a": "98/100", "b": "1/100", "c": "1/100"}, {"a": "90/100", "b": "1/100", "c": "9/100"}],
        [{"a": "4/10", "b": "3/10", "c": "3/10"}, {"a": "3/10", "b": "4/10", "c": "3/10"},
         {"a": "3/10", "b": "3/10", "c": "4/10"}],
    ],
)  # fmt: skip
def test_the_closed_form_of_the_best_simulator(rows: list[dict[str, str]]) -> None:
    """max(sum of maxima, 1 / sum of minima, root of the largest ratio) lies between the two ends."""
    prior = iid_rows(dict.fromkeys(range(len(rows)), Fraction(1, len(rows))), rows=1)
    mechanism = FiniteMechanism(table={(i,): row for i, row in enumerate(rows)})
    low, high = best_factor(cells(mechanism, [prior], [one_row(0)]), Fraction(0))
    laws = [{t: float(Fraction(w)) for t, w in r.items()} for r in rows]
    most = {t: max(law[t] for law in laws) for t in laws[0]}
    least = {t: min(law[t] for law in laws) for t in laws[0]}
    root = math.sqrt(max(most[t] / least[t] for t in most))
    expected = max(sum(most.values()), 1 / sum(least.values()), root)
    assert high is not None
    assert float(low) <= expected * (1 + 1e-15)
    assert expected * (1 - 1e-15) <= float(high) <= expected * (1 + 1e-6)
    assert low <= high


def test_an_output_of_one_value_alone_has_no_finite_factor() -> None:
    prior = iid_rows(FAIR, rows=1)
    mechanism = FiniteMechanism(table={(0,): {"a": 1}, (1,): {"a": "1/2", "b": "1/2"}})
    low, high = best_factor(cells(mechanism, [prior], [one_row(0)]), Fraction(0))
    assert high is None
    assert low > 1000


def test_values_that_are_left_out_weigh_what_they_weigh_given_what_is_known() -> None:
    """A row is 0, 1 or 2 with 1/2, 1/4 and 1/4, and only 2 is told apart: a quarter is left out."""
    prior = iid_rows({0: "1/2", 1: "1/4", 2: "1/4"}, rows=1)
    told = FiniteMechanism(table={(0,): {"a": 1}, (1,): {"a": 1}, (2,): {"b": 1}})
    quiet = iid_rows({0: "1/2", 1: "1/2"}, rows=1, name="quiet")
    parts = cells(told, [prior], [one_row(0)])
    assert left_out(parts, Fraction(2)) == Fraction(1, 4)
    both = [*cells(told, [quiet], [one_row(0)]), *parts, *cells(told, [quiet], [one_row(0)])]
    assert left_out(both, Fraction(2)) == Fraction(1, 4)
    assert distance(parts[0].real, parts[-1].real, Fraction(2)) in (0, 1)


def answer(**more: Any) -> ExactAnswer:
    given = {
        "statistic": "sum", "epsilon": 1.0, "epsilon_pair": None, "delta": 1e-6, "assumptions": ("rows are drawn",),
        "theorem": "shifted-sums", "simulator": "the others", "rows": 10, "unknown_rows": 4, "family": "one law",
    }  # fmt: skip
    return ExactAnswer(**(given | more))


def test_an_exact_answer_says_for_whom_and_given_what() -> None:
    made = answer()
    assert made.guarantee.condition.unknown_rows == 4  # type: ignore[union-attr]
    assert made.guarantee.condition.family == "one law"  # type: ignore[union-attr]
    assert made.guarantee.unit.family == 10  # type: ignore[union-attr]
    assert made.to_dict()["unknown_rows"] == 4
    assert made.to_dict()["n"] == 10
    assert answer(delta=0.0).bound.kind == "pure"
    # A sentence rounds upwards.
    assert "epsilon = 1.01" in answer(epsilon=1.0001).sentence
    assert answer(rows=4).unknown_rows == 4
    with pytest.raises(InvalidParameter, match="at most the 3 rows"):
        answer(rows=3)
    with pytest.raises(InvalidParameter, match="without one no exact answer is private"):
        answer(assumptions=())


THREE = ["table(0: 1/2, 1: 1/4, 2: 1/4)", "table(0: 1/4, 1: 1/2, 2: 1/4)", "table(0: 1/4, 1: 1/4, 2: 1/2)"]


@pytest.mark.parametrize("turned", [False, True])
def test_a_simulation_takes_the_worst_law_and_the_largest_rounding(
    turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts are given here: in the first law one row decides never, in the second always."""
    module = importlib.import_module("tacit.coupled.noiseless.decisions")
    laws = _laws(THREE[:2], None)
    wide = RowLaw(
        name="off", low=laws[1].low, step=laws[1].step, weights=laws[1].weights, rounding=Fraction(1, 100)
    )
    given = [wide, laws[0]] if turned else [laws[0], wide]
    scores = [log_scores(law, laws[0]) for law in laws]
    settled, open_ = np.array([[0, 900, 0]] * 1000), np.array([[5, 5, 0]] * 1000)
    waiting = [open_, settled] if turned else [settled, open_]
    monkeypatch.setattr(module, "drawn_counts", lambda *_: waiting.pop(0))
    found = changes(given, scores, [0, 0], 10, 1000, wrong=0.125, source=SeededSource(seed=1))
    assert found["changed"] == 1000
    assert found["upper"] == 1.0
    waiting = [settled, settled]
    found = changes(given, scores, [0, 0], 10, 1000, wrong=0.125, source=SeededSource(seed=1))
    assert found["changed"] == 0
    alone = 1 - 0.125 ** (1 / 1000)
    assert found["upper"] == pytest.approx(alone + 10 / 100, rel=1e-6)
    assert found["delta"] == pytest.approx(found["upper"] + 0.125, rel=1e-6)


def test_known_rows_and_a_simulation_do_not_go_together() -> None:
    with pytest.raises(InvalidParameter, match="left out if some rows are known"):
        exact_map(THREE, n=20, delta=0.5, unknown_rows=10, draws=1000)


CAPS: dict[str, tuple[str, str, Any, Callable[[], Any], Any, type[TacitError]]] = {
    "rows": ("sums", "MOST_ROWS", 20, lambda: exact_sum("bernoulli(0.5)", n=20, delta=0.1), 19, InvalidParameter),
    "delta": (
        "sums", "SMALLEST_DELTA", 0.01,
        lambda: exact_sum("bernoulli(0.5)", n=40, delta=0.01), 0.011, InvalidParameter,
    ),
    "rows that are drawn": (
        "decisions", "MOST_ROWS_DRAWN", 3 * 19 * 1000, lambda: exact_map(THREE, n=20, delta=0.9, draws=1000),
        3 * 19 * 1000 - 1, InvalidParameter,
    ),
    "points of a sum": (
        "lattice", "MOST_POINTS", 1 << 23,
        lambda: sum_law((HALF, HALF), 40, delta=1e-3), 20, NotCertified,
    ),
    "work for a sum": ("lattice", "MOST_WORK", 3e8, lambda: sum_law((HALF, HALF), 40, delta=1e-3), 3, NotCertified),
    "values of a grid": (
        "row_laws", "MOST_VALUES", 11,
        lambda: row_law("uniform(0, 1, grid=0.1)"), 10, InvalidParameter,
    ),
    "values of a normal law": (
        "row_laws", "MOST_VALUES", 11, lambda: normal(0, 1, clamp=(0, 1), grid="0.1"), 10, InvalidParameter,
    ),
    "values of a table": ("row_laws", "MOST_VALUES", 4, lambda: table({0: HALF, 3: HALF}, grid=1), 3, InvalidParameter),
    "characters of a law": ("answer", "MOST_TEXT", 13, lambda: row_law("uniform(0, 1)"), 12, InvalidParameter),
    "columns of a vector": (
        "sums", "MOST_COLUMNS", 2,
        lambda: exact_vector_sum(["uniform(0, 1)"] * 2, n=5000, delta=1e-2), 1, InvalidParameter,
    ),
    "columns of which one is largest": (
        "decisions", "MOST_COLUMNS", 3,
        lambda: exact_argmax(["bernoulli(0.5)"] * 2 + ["bernoulli(0.1)"], n=60, delta=0.99), 2,
        InvalidParameter,
    ),
    "a threshold": (
        "histograms", "MOST_THRESHOLD", 10**7,
        lambda: smallest_threshold(cell_delta(PoissonSample()), epsilon=1.0, delta=1e-3), 4, InvalidParameter,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CAPS)
def test_a_cap_admits_what_it_says_and_refuses_one_more(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, constant, enough, call, less, kind = CAPS[name]
    module = importlib.import_module(f"tacit.coupled.noiseless.{where}")
    monkeypatch.setattr(module, constant, enough)
    call()
    monkeypatch.setattr(module, constant, less)
    with pytest.raises(kind):
        call()


def test_caps_of_the_checker(monkeypatch: pytest.MonkeyPatch) -> None:
    assert row_count("rows", 1024) == 1024
    with pytest.raises(InvalidParameter, match="at most 1024"):
        row_count("rows", 1025)
    Level.of(1000)
    with pytest.raises(InvalidParameter, match="between 0 and 1000"):
        Level.of(1001)
    level = Level.of(1)
    assert level.low < Fraction(math.e) + Fraction(1, 10**15)
    assert level.low < level.high
    prior = iid_rows(dict.fromkeys(range(3), "1/3"), rows=1)
    told = FiniteMechanism.of(lambda x: x[0], [prior])
    parts = cells(told, [prior], [one_row(0)])
    module = importlib.import_module("tacit.coupled.definitions")
    monkeypatch.setattr(module, "MOST_VALUES", 3)
    assert left_out(parts, Fraction(2)) == Fraction(2, 3)
    monkeypatch.setattr(module, "MOST_VALUES", 2)
    with pytest.raises(NotCertified, match="more than 2 values"):
        left_out(parts, Fraction(2))


def test_a_number_as_typed_is_short() -> None:
    assert as_typed("x", "1/3") == Fraction(1, 3)
    for bad in ("1e301", "1" * 61, "1/0", "x"):
        with pytest.raises(InvalidParameter):
            as_typed("x", bad)


def test_rows_that_are_told_for_certain_are_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of delta is told for certain here: epsilon is that of the other half, or more."""
    module = importlib.import_module("tacit.coupled.noiseless.sums")
    plain = module.undisclosed
    asked: Any = {"n": 60, "delta": 0.04, "assume": "rectangle"}
    law = table({0: "1/8", 1: "1/4", 2: "1/4", 3: "1/4", 4: "1/8"})
    before, half = exact_sum(law, **asked), exact_sum(law, **(asked | {"delta": 0.02}))

    def more(*given: Any) -> Any:
        laws, certain = plain(*given)
        return laws, certain + 0.02

    monkeypatch.setattr(module, "undisclosed", more)
    after = exact_sum(law, **asked)
    assert before.epsilon < half.epsilon * 0.99 <= after.epsilon
    assert before.epsilon_pair is not None
    assert after.epsilon_pair is None or after.epsilon_pair > before.epsilon_pair * 1.01
    with pytest.raises(NoLaw):
        exact_sum(law, **(asked | {"delta": 0.0199}))


def test_a_flat_law_is_its_own_rectangle() -> None:
    """Nothing is told then, and both assumptions need one epsilon: the protected row is none of the hidden ones."""
    asked: Any = {"n": 30, "delta": 0.03}
    law = table(dict.fromkeys(range(5), "1/5"))
    known, shaped = exact_sum(law, **asked), exact_sum(law, assume="rectangle", **asked)
    assert known.epsilon == pytest.approx(shaped.epsilon, rel=1e-9)
    assert known.epsilon_pair == pytest.approx(shaped.epsilon_pair, rel=1e-9)
    fewer = exact_sum(law, n=50, unknown_rows=30, delta=0.03, assume="rectangle")
    assert fewer.epsilon == pytest.approx(shaped.epsilon, rel=1e-9)


def test_shapes_of_laws_with_other_ranges_cover_the_whole_range_in_either_order() -> None:
    low, high = table(dict.fromkeys(range(3), "1/3")), table(dict.fromkeys(range(5), "1/5"))
    both = [exact_sum(x, n=80, delta=0.04, assume="rectangle") for x in ([low, high], [high, low])]
    assert both[0].epsilon == pytest.approx(both[1].epsilon, rel=1e-9)
    assert both[0].epsilon_pair == both[1].epsilon_pair
    assert both[0].epsilon > exact_sum(low, n=80, delta=0.04, assume="rectangle").epsilon * 1.5


ALONE: dict[str, Callable[[int], Any]] = {
    "sum": lambda u: exact_sum("bernoulli(0.5)", n=40, delta=0.3, unknown_rows=u),
    "rectangle": lambda u: exact_sum(
        "uniform(0, 4, grid=1)", n=40, delta=0.5, assume="rectangle", unknown_rows=u
    ),
    "count": lambda u: exact_count(0.5, n=40, delta=0.3, unknown_rows=u),
    "vector": lambda u: exact_vector_sum(["uniform(0, 1, grid=0.5)"], n=40, delta=0.9, unknown_rows=u),
    "largest": lambda u: exact_argmax(["bernoulli(0.5)"] * 2, n=40, delta=0.9, unknown_rows=u),
    "law": lambda u: exact_map(THREE[:2], n=40, delta=0.9, unknown_rows=u),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_row_alone_among_known_ones_is_read_off(name: str) -> None:
    with pytest.raises(InvalidParameter, match="2 at least"):
        ALONE[name](1)
    with pytest.raises(InvalidParameter, match="at most the number of rows"):
        ALONE[name](41)
    assert ALONE[name](20).unknown_rows == 20


@pytest.mark.parametrize("peak", range(18))
def test_every_corner_is_looked_at_however_they_are_cut_into_runs(
    peak: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run needs what its worst corner needs, and a little more. The corner that needs most is found."""
    module = importlib.import_module("tacit.coupled.noiseless.sums")
    runs = module._Runs(Fraction(1, 10), Fraction(3, 10), 17, 0.1)

    def laws(_: Any, wanted: Any) -> Any:
        runs.kept.update((run, run) for run in wanted)
        return list(wanted)

    def found(_: Any, run: tuple[int, int], simulator: Any) -> Any:
        need = max(1 / (1 + abs(k - peak)) for k in range(run[0], run[1] + 1))
        return module.FoundShift(factor=1 + need + 0.3 * (run[1] > run[0]), floor=0.0)

    monkeypatch.setattr(module, "_RUNS", 3)
    monkeypatch.setattr(module._Runs, "_laws", laws)
    monkeypatch.setattr(module._Runs, "_found", found)
    assert runs.worst({0: 1.0}).factor == 2.0
    # With too many laws a run is settled by its bound: never below the truth.
    monkeypatch.setattr(module, "MOST_LAWS", 5)
    runs.kept.clear()
    assert runs.worst({0: 1.0}).factor >= 2.0
    assert len(runs.kept) <= 5 + 12


def test_a_run_of_corners_has_the_rows_that_all_of_them_share() -> None:
    module = importlib.import_module("tacit.coupled.noiseless.sums")
    a, b = Fraction(1, 10), Fraction(3, 10)
    (law,) = module._Runs(a, b, 20, 1e-3)._laws([(3, 8)])
    mean = float(np.sum((law.start + np.arange(len(law.low))) * law.low))
    assert mean == pytest.approx(float(3 * a + 12 * b), rel=1e-3)


def test_the_floor_of_an_interval_is_that_of_its_worse_end() -> None:
    asked: Any = {"n": 60, "delta": 0.02}
    floors = [exact_count(p, **asked).details["epsilon_floor"] for p in ("1/20", "1/2")]
    assert floors[0] > floors[1]
    assert exact_count(("1/20", "1/2"), **asked).details["epsilon_floor"] == floors[0]


def test_a_sample_of_fixed_size_leaves_something_for_the_cells() -> None:
    asked: Any = {"sampling": "fixed", "n": 100_000, "epsilon": 1.0, "delta": 1e-4}
    truncated_histogram(**asked, size_epsilon=0.5)
    for size in (1.0, 2.0):
        with pytest.raises(InvalidParameter, match="below epsilon"):
            truncated_histogram(**asked, size_epsilon=size)


@pytest.mark.parametrize("needed", [(0.5, 0.2, 0.1), (0.1, 0.5, 0.2), (0.2, 0.1, 0.5)])
def test_the_worst_part_of_a_regression_decides_wherever_it_stands(
    needed: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("tacit.coupled.noiseless.regression")
    alone, pairs = list(needed), [2 * e for e in needed]
    monkeypatch.setattr(module, "prism_epsilon", lambda *_, **__: (alone.pop(0), 0.0))
    monkeypatch.setattr(module, "pair_epsilon", lambda *_, **__: pairs.pop(0))
    asked: Any = {"sizes": (900,) * 3, "slopes": 0.5, "delta": 1e-2}
    answer_ = exact_regression(["uniform(-1, 1)"] * 2, "uniform(-1, 1)", **asked).answer
    assert (answer_.epsilon, answer_.epsilon_pair) == (0.5, 1.0)
    assert [part["epsilon"] for part in answer_.details["parts"]] == list(needed)


def test_the_parts_of_a_regression_hide_all_rows_but_the_protected_one_and_known_ones() -> None:
    """A part of n rows of which k are known is a part of n - k rows; two rows must be left in each."""
    law: Any = ("uniform(-1, 1)", "uniform(-1, 1)")
    asked: Any = {"slopes": 0.5, "delta": 1e-2}
    plain = exact_regression(*law, sizes=(400, 400), **asked).answer
    known = exact_regression(*law, sizes=(450, 450), unknown_rows=850, **asked).answer
    assert plain.epsilon == known.epsilon
    design = exact_regression(*law, sizes=(400, 400), **asked).design
    for part, told in enumerate(plain.details["parts"]):
        prism = design.prism(part, design.box(part, told["prism"]))
        alone = prism_losses(prism, hidden=399, delta=1e-2).epsilon(1e-2)
        assert told["epsilon"] == pytest.approx(alone, rel=1e-9)
    with pytest.raises(InvalidParameter, match="two rows unknown in every part"):
        exact_regression(*law, sizes=(40, 400), unknown_rows=401, **asked)
    # Slopes bound a coefficient of either sign.
    assert (
        exact_regression(*law, sizes=(400, 400), **(asked | {"slopes": -0.5})).answer.epsilon == plain.epsilon
    )


@pytest.mark.parametrize(("threshold", "epsilon"), [(1, 0.1), (1, 2.0), (3, 0.69), (3, 5.0)])
def test_a_population_is_protected_in_both_directions(threshold: int, epsilon: float) -> None:
    """Rate 1/2, cells of up to 12 other members, both directions, in plain floats: no number of members is worse."""
    rate = 0.5
    found = sampled_delta(BinomialSample(rate=Fraction(1, 2)))(threshold, epsilon)
    worst_ = 0.0
    for members in range(13):
        law = np.array([math.comb(members, m) * rate**members for m in range(members + 1)])
        without, with_ = np.append(law, 0.0), rate * np.append(0.0, law) + (1 - rate) * np.append(law, 0.0)

        def hidden(x: np.ndarray) -> np.ndarray:
            return np.append(np.sum(x[:threshold]), x[threshold:])

        p, q = hidden(with_), hidden(without)
        worst_ = max(worst_, plain_excess(p, q, math.exp(epsilon)), plain_excess(q, p, math.exp(epsilon)))
    assert worst_ * (1 - 1e-12) <= found.high
    assert found.high <= worst_ * (1 + 1e-9) + 1e-15


def test_places_of_discarded_rows_count_from_zero_cell_after_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells of 2 and 3 rows among 7: places 0 and 1, 2 to 4, and two rows in no cell."""
    fixed = FixedSize(rows=7, discards=2, size_epsilon=1.0)
    expected = {0: [1, 3], 1: [1, 3], 2: [2, 2], 4: [2, 2], 5: [2, 3], 6: [2, 3]}
    for place, left in expected.items():
        monkeypatch.setattr(FixedSize, "chosen", lambda self, source, place=place: np.array([place]))
        assert fixed.kept(np.array([2, 3]), SeededSource(seed=1)).tolist() == left


def test_few_cells_of_means_bound_what_many_show() -> None:
    """On a cell of means the first factor is taken at its left end and the second at its right: from above."""
    fixed = FixedSize(rows=200, discards=20, size_epsilon=0.5)
    with precision(128):
        factor = ball(Fraction(1, 10)).exp()
        coarse, fine = (float(fixed._hidden(10, factor, cells_).mid()) for cells_ in (4, 512))
    assert coarse > fine * 1.02


def test_a_threshold_is_safe_by_the_upper_end_of_its_delta() -> None:
    def at(threshold: int, epsilon: float) -> Interval:
        return Interval(low=0.5 / threshold, high=1 / threshold)

    assert smallest_threshold(at, epsilon=1.0, delta=0.01) == 100


@pytest.mark.parametrize("hidden", [12, 40, 400])
def test_runs_of_numbers_count_by_their_first_member_and_too_few_are_told(hidden: int) -> None:
    mass = Fraction(1, 3)
    chances = [math.comb(hidden, m) * (1 / 3) ** m * (2 / 3) ** (hidden - m) for m in range(hidden + 1)]
    nodes, certain = _numbers(mass, hidden, 0.9)
    firsts = [m for _, m in nodes]
    assert certain >= math.fsum(chances[: firsts[0]]) * (1 - 1e-12)
    assert firsts[0] >= 1
    for (share, first), following in zip(nodes, [*firsts[1:], hidden + 1], strict=True):
        assert share == pytest.approx(math.fsum(chances[first:following]), rel=1e-6, abs=1e-9)
    shape = rectangle(table({0: "1/6", 1: "1/6", 2: "2/3"}), 0, 1)
    laws, told = undisclosed(shape, hidden, 0.9)
    assert math.fsum(w for w, _ in laws) + told >= 1 - 1e-9
    means = [float(np.sum((law.start + np.arange(len(law.low))) * law.low)) for _, law in laws]
    rows_ = [round(2 * m) for m in means]  # each hidden row is 0 or 1, evenly
    assert told >= math.fsum(chances[: rows_[0]]) * (1 - 1e-12)
    for (share, _), first, following in zip(laws, rows_, [*rows_[1:], hidden + 1], strict=True):
        assert share == pytest.approx(math.fsum(chances[first:following]), rel=1e-6, abs=1e-9)


def test_a_rectangle_is_as_high_as_its_lowest_value_at_either_end() -> None:
    law = table({0: "1/10", 1: "3/10", 2: "2/5", 3: "1/5"})
    assert rectangle(law, 1, 3).mass == Fraction(3, 5)
    assert rectangle(law, 0, 2).mass == Fraction(3, 10)
    assert rectangle(law, 1, 2).mass == Fraction(3, 5)
    with pytest.raises(InvalidParameter, match="two values of the grid"):
        rectangle(law, Fraction(1, 2), Fraction(3, 2))
