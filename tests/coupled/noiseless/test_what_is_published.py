"""The claim is about what is really published: bins counted from 0, products on the grid of the claim, named shapes."""

from __future__ import annotations

import functools
import math
import re
from fractions import Fraction

import numpy as np
import pytest

from tacit.coupled.noiseless import exact_sum, row_law
from tacit.coupled.noiseless.decisions import exact_test
from tacit.coupled.noiseless.regression import exact_regression
from tacit.coupled.noiseless.sums import exact_quantised
from tacit.errors import NoLaw

Law = dict[Fraction, Fraction]


def added(rows: Law, others: int) -> Law:
    out: Law = {Fraction(0): Fraction(1)}
    for _ in range(others):
        following: Law = {}
        for s, p in out.items():
            for x, q in rows.items():
                following[s + x] = following.get(s + x, Fraction(0)) + p * q
        out = following
    return out


def rounded(law: Law, x: Fraction, width: Fraction) -> dict[int, Fraction]:
    """The law of the multiple below sum + x, from the definition."""
    out: dict[int, Fraction] = {}
    for s, p in law.items():
        place = math.floor((s + x) / width)
        out[place] = out.get(place, Fraction(0)) + p
    return out


def apart(p: dict[int, Fraction], q: dict[int, Fraction], epsilon: float) -> Fraction:
    factor = Fraction(math.exp(epsilon))
    return max(
        sum(
            (max(a.get(s, Fraction(0)) - factor * b.get(s, Fraction(0)), Fraction(0)) for s in p | q),
            Fraction(0),
        )
        for a, b in ((p, q), (q, p))
    )


@pytest.mark.parametrize(
    ("rows", "n", "steps", "delta"),
    [
        ("uniform(1, 6, grid=1)", 10, 25, 1e-2),
        ("uniform(0.3, 1.3, grid=0.1)", 15, 30, 1e-2),
        ("uniform(-2.5, 2.5, grid=0.5)", 21, 50, 1e-2),
        ("table(1/3: 1/2, 4/3: 1/4, 7/3: 1/4)", 30, 7, 1e-3),
    ],
)
def test_a_rounded_sum_is_rounded_to_multiples_counted_from_zero(
    rows: str, n: int, steps: int, delta: float
) -> None:
    answer = exact_quantised(rows, n=n, delta=delta, steps=steps)
    law = row_law(rows)
    values = {law.low + k * law.step: w for k, w in enumerate(law.weights) if w}
    others, width = added(values, n - 1), steps * law.step
    middle = law.low + ((len(law.weights) - 1) // 2) * law.step
    ideal = rounded(others, middle, width)

    def worst(epsilon: float) -> Fraction:
        return max(apart(rounded(others, x, width), ideal, epsilon) for x in values)

    assert worst(answer.epsilon) <= Fraction(delta) * (1 + Fraction(1, 10**9))
    assert answer.epsilon == 0 or worst(0.99 * answer.epsilon) > Fraction(delta)


def test_known_rows_may_move_the_edges_so_the_sum_itself_counts() -> None:
    rounded_off = exact_quantised("uniform(0, 1)", n=400, delta=1e-5, steps=50, unknown_rows=300)
    assert rounded_off.epsilon == exact_sum("uniform(0, 1)", n=400, delta=1e-5, unknown_rows=300).epsilon
    assert rounded_off.unknown_rows == 300


def test_a_refused_rounded_sum_names_a_delta_that_is_reached() -> None:
    with pytest.raises(NoLaw) as refused:
        exact_quantised("uniform(1, 6, grid=1)", n=6, delta=1e-9, steps=3)
    named = re.search(r"smallest delta possible is ([-.\de]+)", str(refused.value))
    assert named is not None
    assert math.isfinite(
        exact_quantised("uniform(1, 6, grid=1)", n=6, delta=float(named[1]), steps=3).epsilon
    )
    with pytest.raises(NoLaw):
        exact_quantised("uniform(1, 6, grid=1)", n=6, delta=0.9 * float(named[1]), steps=3)


def test_a_refused_test_names_the_smallest_delta() -> None:
    asked = {"null": "bernoulli(0.3)", "alternative": "bernoulli(0.7)", "n": 6, "level": 0.2}
    with pytest.raises(NoLaw) as refused:
        exact_test(**asked, delta=1e-9, unknown_rows=4)  # type: ignore[arg-type]
    named = re.search(r"smallest delta that this bound reaches is ([-.\de]+)", str(refused.value))
    assert named is not None
    assert exact_test(**asked, delta=float(named[1]), unknown_rows=4).epsilon > 0  # type: ignore[arg-type]


UNBOUNDED = ["uniform(0, inf)", "normal(0, 1, clamp=(-inf, inf))", "laplace(0, 1, clamp=(0, Infinity))"]


@pytest.mark.parametrize("rows", UNBOUNDED)
def test_an_infinite_end_is_refused_with_the_reason(rows: str) -> None:
    with pytest.raises(NoLaw, match="shows through every sum"):
        exact_sum(rows, n=100, delta=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("slope", [0.0, -0.35])
def test_a_known_line_is_published_on_the_grid_that_the_claim_is_about(
    slope: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Means are whole multiples of the claim's steps, and their law is the one whose epsilon is claimed."""
    from tacit.coupled.noiseless.regression import known_part, pair_law

    # Fewer points of the plane, for speed.
    few = functools.partial(known_part, most_points=1 << 14)
    monkeypatch.setattr("tacit.coupled.noiseless.regression.known_part", few)
    line = exact_regression(
        "uniform(-1, 1)",
        "normal(0, 1, clamp=(-2, 2))",
        sizes=(200, 300),
        delta=1e-2,
        slopes=slope,
        assume="known",
    )
    random = np.random.default_rng(6)
    g = random.integers(0, 121, 500) / 60 - 1
    e = np.clip(np.rint(random.normal(size=500) * 30), -60, 60) / 30
    means = line.moments(g, slope * g + e)
    start = 0
    for (part, size), mean in zip(enumerate(line.sizes), means, strict=True):
        steps = line.answer.details["parts"][part]["steps"]
        law, _ = pair_law(line.design, part, slope, tuple(steps))
        low, widths = np.array(line.design.lows(part)), 2 * np.array(line.design.half_widths(part))
        places = (mean - low) / widths * np.array(steps) * size
        assert places == pytest.approx(np.rint(places), abs=1e-6)
        # Row by row: each is recorded where the law of the claim has a value.
        for row in range(start, start + 8):
            same = line.moments(np.full(500, g[row]), np.full(500, slope * g[row] + e[row]))[part]
            one = tuple(int(x) for x in np.rint((same - low) / widths * np.array(steps)))
            assert law.weights.get(one, 0) > 0
        start += size
    said = line.answer.assumptions[0]
    assert "recorded on the grid" in said
    assert f"of part 1 in {steps[0]} and {steps[1]} steps" in said


def test_a_prism_is_named_in_what_is_assumed() -> None:
    line = exact_regression("uniform(-1, 1)", "uniform(-1, 1)", sizes=(5000, 70000), delta=1.35e-8)
    for part in line.answer.details["parts"]:
        for low, high in part["prism"]:
            assert f"[{low:.4g}, {high:.4g}]" in line.answer.sentence
