"""Laws that contain a shape, laws as text, and everything that is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from tacit.coupled.divergence import excess
from tacit.coupled.noiseless import ExactAnswer, exact_count, exact_mean, exact_sum, row_law, table, uniform
from tacit.coupled.noiseless.minorants import KINDS, minorants_of, rectangle
from tacit.errors import InvalidInput, InvalidParameter, NoLaw, UnknownName
from tacit.guarantees import Priors

GAUSSIAN = "normal(0, 1, clamp=(-2.5, 2.5))"


def convolved(law: list[Fraction], row: list[Fraction]) -> list[Fraction]:
    out = [Fraction(0)] * (len(law) + len(row) - 1)
    for i, a in enumerate(law):
        for j, b in enumerate(row):
            out[i + j] += a * b
    return out


def at(law: list[Fraction], by: int) -> dict[int, Fraction]:
    return {k + by: w for k, w in enumerate(law) if w}


def divergence(law: list[Fraction], x: int, middle: int, factor: Fraction) -> Fraction:
    return max(excess(at(law, x), at(law, middle), factor), excess(at(law, middle), at(law, x), factor))


def test_the_mixture_over_undisclosed_rows_by_exact_rationals() -> None:
    """A rectangle of mass 3/5 in [0, 4], 30 rows: the bound is the binomial mean of the exact divergences."""
    law = table({0: "1/10", 1: "1/5", 2: "1/5", 3: "1/5", 4: "3/10"})
    answer = exact_sum(law, n=30, delta=1e-2, assume="rectangle", rectangle_over=(1, 3))
    v, m = Fraction(3, 5), 29
    sums = [[Fraction(1)]]
    for _ in range(m):
        sums.append(convolved(sums[-1], [Fraction(1, 3)] * 3))

    def bound(factor: Fraction) -> Fraction:
        chance = [math.comb(m, j) * v**j * (1 - v) ** (m - j) for j in range(m + 1)]
        return chance[0] + sum(
            (c * divergence(sums[j], 4, 2, factor) for j, c in enumerate(chance) if j), Fraction(0)
        )

    assert bound(Fraction(math.exp(answer.epsilon))) <= Fraction(1, 100)
    assert bound(Fraction(math.exp(answer.epsilon * 0.97))) > Fraction(1, 100)
    # The law itself, and others above the rectangle, are hidden at least so well.
    for weights in (law.weights, tuple(map(Fraction, ("2/5", "1/5", "1/5", "1/5", "0"))),
                    tuple(map(Fraction, ("1/5", "1/5", "1/5", "1/5", "1/5")))):  # fmt: skip
        total = [Fraction(1)]
        for _ in range(m):
            total = convolved(total, list(weights))
        for x in range(5):
            if weights[x]:
                assert divergence(total, x, 2, Fraction(math.exp(answer.epsilon))) <= Fraction(1, 100)


@pytest.mark.parametrize("kind", KINDS)
def test_every_shape_lies_below_the_law_and_above_what_is_known(kind: str) -> None:
    law = row_law(GAUSSIAN)
    for shape in minorants_of(law, kind):
        assert all(0 <= g <= law.weights[k] for k, g in enumerate(shape.weights, shape.first))
        assert shape.mass < 1
    known = exact_sum(GAUSSIAN, n=400, delta=1e-5)
    shaped = exact_sum(GAUSSIAN, n=400, delta=1e-5, assume=kind)
    assert known.epsilon < shaped.epsilon
    assert shaped.theorem == "undisclosed-rows"
    if kind != "rectangle":
        assert shaped.epsilon < exact_sum(GAUSSIAN, n=400, delta=1e-5, assume="rectangle").epsilon


def test_the_best_rectangle_is_better_than_others() -> None:
    best = exact_sum(GAUSSIAN, n=1000, delta=1e-5, assume="rectangle").epsilon
    for half in ("1", "1.3", "2", "2.3"):
        other = exact_sum(GAUSSIAN, n=1000, delta=1e-5, assume="rectangle", rectangle_over=(f"-{half}", half))
        assert best <= other.epsilon * (1 + 1e-9)


def test_laws_as_text() -> None:
    assert row_law("uniform(0, 1)") == uniform(0, 1)
    assert len(row_law("uniform(0, 1, grid=0.25)").weights) == 5
    clamped = row_law(GAUSSIAN)
    assert (float(clamped.low), float(clamped.high), float(clamped.step)) == (-2.5, 2.5, 0.05)
    # The tails sit on the ends.
    tail = math.erfc(2.475 / math.sqrt(2)) / 2
    assert float(clamped.weights[0]) == pytest.approx(tail, rel=1e-12)
    assert sum(clamped.weights) == 1
    assert clamped.weights == clamped.weights[::-1]
    sharp = row_law("laplace(0, 1, clamp=(-3, 3), grid=0.5)")
    assert float(sharp.weights[6]) == pytest.approx(1 - math.exp(-0.25), rel=1e-12)
    assert row_law("table(0: 1/2, 10: 1/4, 25: 1/4)").step == 5
    assert not clamped.log_concave
    assert uniform(0, 1).log_concave
    assert (
        exact_sum("table(0: 1/2, 10: 1/2)", n=50, delta=1e-4).epsilon
        == exact_sum("bernoulli(0.5)", n=50, delta=1e-4).epsilon
    )


@pytest.mark.parametrize(
    "rows",
    [
        "normal(0, 1)", "laplace(0, 1)", "uniform(1, 1)", "uniform(2, 1)", "uniform(0)", "unifrom(0, 1)",
        "table(0: 0.5, 1: 0.6)", "table(0: 1)", "table(0, 1)", "bernoulli(0)", "bernoulli(1.5)", "uniform(0, 1",
        "uniform(0, 1, grid=0.3)", "uniform(0, 1, grid=0)", "uniform(0, 1, grid=1e-9)", "normal(0, 0, clamp=(-1, 1))",
        "normal(0, 1, clamp=(1, -1))", "normal(0, 1, clamp=3)", "uniform(0, 1e999999)", "uniform(nan, 1)", "", "()",
    ],
)  # fmt: skip
def test_laws_that_are_refused(rows: str) -> None:
    with pytest.raises((InvalidInput, NoLaw)):
        exact_sum(rows, n=100, delta=1e-5)


def test_an_unbounded_row_is_refused_with_the_reason() -> None:
    with pytest.raises(NoLaw, match="shows through every sum"):
        row_law("normal(0, 1)")


def test_questions_that_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="at most the number of rows"):
        exact_sum("uniform(0, 1)", n=100, delta=1e-5, unknown_rows=101)
    with pytest.raises(InvalidParameter, match="be 2 at least"):
        exact_sum("uniform(0, 1)", n=100, delta=1e-5, unknown_rows=1)
    with pytest.raises(InvalidParameter, match="inside the support"):
        rectangle(uniform(0, 1), -1, 0.5)
    with pytest.raises(InvalidParameter, match="there is no rectangle"):
        rectangle(table({0: "1/2", 1: "1/4", 3: "1/4"}), 0, 3)
    with pytest.raises(InvalidParameter, match="two values of the grid"):
        rectangle(uniform(0, 1), "0.501", "0.504")
    with pytest.raises(UnknownName):
        exact_sum("uniform(0, 1)", n=100, delta=1e-5, assume="circle")
    with pytest.raises(InvalidParameter, match="unless"):
        exact_mean("uniform(0, 1)", n=100, delta=1e-5, rectangle_over=(0, 1))
    with pytest.raises(InvalidParameter, match="one grid"):
        exact_sum(["uniform(0, 1)", "uniform(0, 2)"], n=100, delta=1e-5)
    for delta in (0, -1e-3, 1, math.nan, "small", 1e-200):
        with pytest.raises(InvalidInput):
            exact_sum("uniform(0, 1)", n=100, delta=delta)  # type: ignore[arg-type]
    for n in (1, 10**9, 2.5, "ten"):
        with pytest.raises(InvalidInput):
            exact_sum("uniform(0, 1)", n=n, delta=1e-5)  # type: ignore[arg-type]
    for chance in ((0.5, 0.2), (0.0, 0.5), (0.1, 0.2, 0.3), "x", None):
        with pytest.raises(InvalidInput):
            exact_count(chance, n=100, delta=1e-3)


def test_a_delta_out_of_reach_names_the_smallest() -> None:
    """Three bits: the sum is 0 with probability 1/4 where the protected one is 0."""
    with pytest.raises(NoLaw, match=r"the smallest delta possible is 0\.125") as refused:
        exact_sum("bernoulli(0.5)", n=3, delta=0.1)
    assert "delta = 0.1" in str(refused.value)
    assert exact_sum("bernoulli(0.5)", n=3, delta=0.126).epsilon > 0
    with pytest.raises(NoLaw, match="the smallest delta possible is"):
        exact_sum(GAUSSIAN, n=12, delta=1e-6, assume="rectangle")


def test_what_is_promised_keeps_its_condition() -> None:
    answer = exact_sum("uniform(0, 1)", n=1000, delta=1e-5, unknown_rows=900)
    assert answer.sentence.startswith("This is private provided that ")
    condition = answer.guarantee.condition
    assert isinstance(condition, Priors)
    assert condition.unknown_rows == 900
    assert "uniform(0, 1)" in condition.family
    assert answer.guarantee.delta(answer.epsilon) <= 1e-5
    record = answer.record
    assert {"epsilon", "epsilon_pair", "delta", "threshold", "assumptions", "theorem"} <= set(record)
    with pytest.raises(InvalidParameter):
        ExactAnswer(
            statistic="sum", epsilon=1.0, epsilon_pair=None, delta=0.1, assumptions=(), theorem="shifted-sums",
            simulator="none", rows=3, unknown_rows=3, family="none",
        )  # fmt: skip
