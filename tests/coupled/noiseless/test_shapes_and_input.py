"""Laws that contain a shape, laws as text, and everything that is refused."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest

from tacit.coupled.noiseless import ExactAnswer, exact_count, exact_mean, exact_sum, row_law, table, uniform
from tacit.coupled.noiseless.minorants import KINDS, minorants_of, rectangle
from tacit.coupled.numbers import excess
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
    with pytest.raises(
        NoLaw, match=r"this bound has no epsilon for it.*the smallest delta that this bound reaches is"
    ):
        exact_sum(GAUSSIAN, n=12, delta=1e-6, assume="rectangle")


def test_what_is_promised_keeps_its_condition() -> None:
    answer = exact_sum("uniform(0, 1)", n=1000, delta=1e-5, unknown_rows=900)
    assert answer.sentence.startswith("This is private provided that ")
    condition = answer.guarantee.condition
    assert isinstance(condition, Priors)
    assert condition.unknown_rows == 900
    assert "uniform(0, 1)" in condition.family
    assert answer.guarantee.delta(answer.epsilon) <= 1e-5
    record = answer.to_dict()
    assert {"epsilon", "epsilon_pair", "delta", "threshold", "assumptions", "theorem"} <= set(record)
    with pytest.raises(InvalidParameter):
        ExactAnswer(
            statistic="sum", epsilon=1.0, epsilon_pair=None, delta=0.1, assumptions=(), theorem="shifted-sums",
            simulator="none", rows=3, unknown_rows=3, family="none",
        )  # fmt: skip


def below(value: float) -> float:
    """A printed height is rounded up to four digits."""
    return value * (1 - 1.1e-3)


@pytest.mark.parametrize(
    ("assume", "words"),
    [
        (
            "rectangle(-1.5, 1.5)",
            r"from -1.5 to 1.5 a probability of at least ([\d.]+) \(a rectangle of mass",
        ),
        (
            "triangle(-2.25, 0, 2.25)",
            r"the triangle that is ([\d.]+) at 0 and 0 at -2.25 and 2.25, for values",
        ),
        ("triangle(-2, 0.5, 2.3)", r"the triangle that is ([\d.]+) at 0.5 and 0 at -2 and 2.3, for values"),
        (
            "normal(0.1, 0.9, cut=(-2.4, 2.4))",
            r"shape ([\d.]+) exp\(-\(x - 0.1\)\^2 / \(2 0.9\^2\)\), for values",
        ),
        (
            "rectangles(-2, 2, -1, 1)",
            r"at least ([\d.]+) from -2 to 2, plus ([\d.]+) from -1 to 1 \(a staircase",
        ),
    ],
)
def test_the_condition_says_which_shape_so_that_it_could_be_drawn(assume: str, words: str) -> None:
    """From the printed words alone: the shape is below the law, of the printed mass, and the bound is that shape's."""
    answer = exact_sum(GAUSSIAN, n=400, delta=1e-5, assume=assume)
    heights = [
        float(h)
        for h in re.findall(words, answer.assumptions[0])[0:1]
        for h in ([h] if isinstance(h, str) else h)
    ]
    law = row_law(GAUSSIAN)
    values = [float(law.low + k * law.step) for k in range(len(law.weights))]
    inside = [1e-9 + high >= v >= low - 1e-9 for low, high in [SPAN[assume]] for v in values]

    def height_at(v: float) -> float:
        h = below(heights[0])
        if assume.startswith("rectangles"):
            return h + (below(heights[1]) if abs(v) <= 1 + 1e-9 else 0.0)
        if assume.startswith("rectangle"):
            return h
        if assume.startswith("normal"):
            return h * math.exp(-((v - 0.1) ** 2) / (2 * 0.9**2))
        low, peak, high = (float(x) for x in assume[9:-1].split(","))
        return h * max(0.0, 1 - (peak - v) / (peak - low) if v < peak else 1 - (v - peak) / (high - peak))

    drawn = [height_at(v) if i else 0.0 for v, i in zip(values, inside, strict=True)]
    assert all(d <= float(w) * (1 + 1e-9) for d, w in zip(drawn, law.weights, strict=True))
    assert sum(drawn) == pytest.approx(answer.details["shapes"][0]["mass"], rel=2e-3)
    # As tall as it fits: somewhere it touches the law.
    assert max(d / float(w) for d, w in zip(drawn, law.weights, strict=True)) > 0.997


SPAN = {
    "rectangle(-1.5, 1.5)": (-1.5, 1.5),
    "triangle(-2.25, 0, 2.25)": (-2.25, 2.25),
    "triangle(-2, 0.5, 2.3)": (-2.0, 2.3),
    "normal(0.1, 0.9, cut=(-2.4, 2.4))": (-2.4, 2.4),
    "rectangles(-2, 2, -1, 1)": (-2.0, 2.0),
}


def test_a_named_shape_is_the_found_one_where_they_agree() -> None:
    found = exact_sum(GAUSSIAN, n=400, delta=1e-5, assume="rectangle", rectangle_over=(-1.5, 1.5))
    assert exact_sum(GAUSSIAN, n=400, delta=1e-5, assume="rectangle(-1.5, 1.5)").epsilon == found.epsilon
    best = exact_sum(GAUSSIAN, n=400, delta=1e-5, assume="triangle")
    (shape,) = best.details["shapes"]
    assert "0 at -2.25 and 2.25" in shape["words"]
    assert exact_sum(GAUSSIAN, n=400, delta=1e-5, assume="triangle(-2.25, 0, 2.25)").epsilon == best.epsilon


def test_a_shape_is_told_where_it_lies_for_each_of_several_laws() -> None:
    laws = ["uniform(0, 1, grid=1/4)", "uniform(1, 3, grid=1/4)"]
    answer = exact_sum(laws, n=400, delta=1e-4, assume="rectangle")
    assert "each value from 0 to 1 " in answer.assumptions[0]
    assert "each value from 1 to 3 " in answer.assumptions[0]
    assert [(s["low"], s["high"]) for s in answer.details["shapes"]] == [(0.0, 1.0), (1.0, 3.0)]


@pytest.mark.parametrize(
    "assume",
    [
        "circle(2)", "triangle(1)", "triangle(0, -1, 1)", "triangle(-3, 0, 2)", "known(1)", "rectangle(1, 1)",
        "rectangle(-3, 1)", "rectangles(-1, 1, 0)", "rectangles(-1, 1, -2, 2)", "normal(0, 1)",
        "normal(0, 0, cut=(-1, 1))", "normal(0, 1, cut=(-9, 1))", "normal(0, 1, cut=(0.01, 0.02))", "triangle(",
        "triangle()x",
    ],
)  # fmt: skip
def test_shapes_that_are_refused(assume: str) -> None:
    with pytest.raises(InvalidInput):
        exact_sum(GAUSSIAN, n=400, delta=1e-5, assume=assume)


def test_a_gap_in_the_law_leaves_no_shape_over_it() -> None:
    law = table({0: "1/4", 1: "1/4", 3: "1/4", 4: "1/4"})
    for assume in ("triangle(0, 2, 4)", "normal(2, 1, cut=(0, 4))", "rectangle(0, 4)"):
        with pytest.raises(InvalidParameter, match="only values that can occur"):
            exact_sum(law, n=400, delta=1e-5, assume=assume)
