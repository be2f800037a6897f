"""Several laws, hypotheses and scores: the worst one counts wherever it stands."""

from __future__ import annotations

import importlib
import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

from tacit.coupled import FiniteMechanism, compose_disjoint_rows, compose_known, iid_rows, row_pairs
from tacit.coupled.best import best_delta, best_factor
from tacit.coupled.definitions import left_out
from tacit.coupled.mechanisms import cells
from tacit.coupled.noiseless.decisions import exact_map, exact_test
from tacit.coupled.noiseless.regression import exact_regression
from tacit.coupled.noiseless.row_laws import normal
from tacit.coupled.numbers import Level, distance
from tacit.coupled.pairs import one_row
from tacit.coupled.priors import Prior, with_auxiliary
from tacit.coupled.verdict import Found
from tacit.errors import InvalidParameter, NoLaw, NotCertified

HALF = Fraction(1, 2)
FAIR = {0: HALF, 1: HALF}
UNEQUAL = ["table(0: 1/2, 1: 1/4, 2: 1/4)", "table(0: 1/10, 1: 1/10, 2: 4/5)"]


def test_of_two_hypotheses_the_worse_one_counts_in_either_order() -> None:
    """No ties, since the weights differ: the two orders ask the same, and one law alone is worse than the other."""
    asked: Any = {"n": 12, "delta": 0.02}
    one = exact_map(UNEQUAL, weights=[1.0, 1.7], **asked)
    other = exact_map(UNEQUAL[::-1], weights=[1.7, 1.0], **asked)
    assert one.epsilon == pytest.approx(other.epsilon, rel=1e-4)
    assert one.epsilon_pair == pytest.approx(other.epsilon_pair, rel=1e-4)
    assert one.details["stability"] == pytest.approx(other.details["stability"], rel=1e-4)
    assert one.epsilon > 0


def test_of_three_hypotheses_the_worst_one_counts_in_every_order() -> None:
    laws = [*UNEQUAL, "table(0: 1/3, 1: 1/3, 2: 1/3)"]
    found = []
    for order in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        given = [laws[i] for i in order]
        found.append(
            exact_map(given, n=14, delta=0.99, weights=[(1.0, 1.7, 2.3)[i] for i in order]).details[
                "stability"
            ]
        )
    assert max(found) == pytest.approx(min(found), rel=1e-4)


def test_laws_that_some_value_tells_apart_are_refused() -> None:
    for other in ("table(0: 1/2, 1: 1/2)", "table(0: 1/2, 2: 1/4, 4: 1/4)", "table(1: 1/2, 2: 1/4, 3: 1/4)"):
        with pytest.raises(InvalidParameter, match="same possible values"):
            exact_map([UNEQUAL[0], other], n=20, delta=0.1)
    with pytest.raises(InvalidParameter, match="differ"):
        exact_map([UNEQUAL[0], UNEQUAL[1], UNEQUAL[1]], n=20, delta=0.1)


def test_what_a_regression_with_known_laws_does_not_know_is_refused() -> None:
    law: Any = ("uniform(-1, 1)", "uniform(-1, 1)")
    with pytest.raises(NoLaw, match="constant"):
        exact_regression(*law, n=100, delta=0.1, assume="known", level=0.5)
    with pytest.raises(NoLaw, match="more than two sums"):
        exact_regression([law[0]] * 2, law[1], n=100, delta=0.1, assume="known")
    for delta in (0.0, 1e-101):
        with pytest.raises(InvalidParameter, match="above 0"):
            exact_regression(*law, n=100, delta=delta)


def test_the_distance_of_two_laws_is_the_larger_of_both_directions() -> None:
    """At the factor 2 the first is never above twice the second, and the second has an outcome of its own."""
    p, q = {"a": Fraction(1)}, {"a": HALF, "b": HALF}
    assert distance(p, q, Fraction(2)) == distance(q, p, Fraction(2)) == HALF


def test_the_best_factor_at_a_delta_is_enough_and_hardly_more() -> None:
    """Three values of unequal laws: at the upper end some simulator keeps delta, below the lower end none does."""
    rows_ = [
        {"a": "6/10", "b": "3/10", "c": "1/10"},
        {"a": "2/10", "b": "7/10", "c": "1/10"},
        {"a": "1/10", "b": "1/10", "c": "8/10"},
    ]
    prior = iid_rows(dict.fromkeys(range(3), "1/3"), rows=1)
    mechanism = FiniteMechanism(table={(i,): row for i, row in enumerate(rows_)})
    delta = Fraction(1, 20)
    for turned in (False, True):
        parts = list(cells(mechanism, [prior], [one_row(0)]))
        low, high = best_factor(parts[::-1] if turned else parts, delta)
        assert high is not None
        assert best_delta(parts, Level.of_factor(high)).high <= delta
        assert best_delta(parts, Level.of_factor(low * Fraction(999_999, 10**6))).high > delta
        assert high - low <= high / 10**6


def test_what_is_left_out_is_a_share_of_what_is_known() -> None:
    """Somebody knows a fair bit beside the row: under each of its values a quarter is left out, not an eighth."""
    prior = iid_rows({0: "1/2", 1: "1/4", 2: "1/4"}, rows=1)
    knowing = with_auxiliary(prior, lambda x: {"heads": HALF, "tails": HALF}, name="a coin")
    told = FiniteMechanism(table={(0,): {"a": 1}, (1,): {"a": 1}, (2,): {"b": 1}})
    assert left_out(cells(told, [knowing], [one_row(0)]), Fraction(2)) == Fraction(1, 4)


def test_data_of_no_rows_have_no_disjoint_parts() -> None:
    plain = Prior(name="plain", weights={("x", None): HALF, ("y", None): HALF})
    same = FiniteMechanism.of(lambda x: 0, [plain])
    with pytest.raises(InvalidParameter, match="one number of rows"):
        compose_disjoint_rows(same, same, priors=[plain], rows=[0], claims=((0, 0), (0, 0)))


def test_a_simulator_worse_than_the_theorem_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("tacit.coupled.composition")
    prior = iid_rows(FAIR, rows=2)
    same = FiniteMechanism.of(lambda x: "same", [prior])
    monkeypatch.setattr(module, "found_delta", lambda *_, **__: Found(low=HALF, high=HALF))
    with pytest.raises(NotCertified, match="condition was missed"):
        compose_known(same, same, priors=[prior], pairs=row_pairs(2), claims=((0, 0), (0, 0)))


@pytest.mark.parametrize("place", range(6))
def test_every_score_under_every_law_counts_in_a_decision(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the factors is large, the others are 1: it is told, wherever among laws and scores it stands."""
    module = importlib.import_module("tacit.coupled.noiseless.decisions")
    seen = itertools.count()

    def factors(tails: Any, places: Any, score: int, instead: int, delta: float) -> tuple[float, float]:
        return (math.e if next(seen) % 8 == place else 1.0), 0.01

    monkeypatch.setattr(module, "factor_of_answers", factors)
    for call in (
        lambda: exact_test(*UNEQUAL, n=12, level=0.1, delta=0.1), lambda: exact_map(UNEQUAL, n=12, delta=0.1),
    ):  # fmt: skip
        seen = itertools.count()
        found = call()
        assert found.epsilon_pair is not None
        assert max(found.epsilon, found.epsilon_pair) == pytest.approx(1.0)


def test_a_written_law_says_how_far_it_is_off() -> None:
    law = normal(0, 1, clamp=(-2, 2), grid="0.5")
    assert law.rounding == Fraction(2 * 9, 1 << 128)
    assert sum(law.weights) == 1
