"""The bound by the choices: each part from the definition, and joint coverage over whole runs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from synthesis.toys import chain, everything, loud, question
from tacit.mechanisms import Exponential, Score
from tacit.noise.source import SeededSource
from tacit.synthesis.answers import Synthetic, sum_within
from tacit.synthesis.choices import (
    ChoiceLog,
    Choices,
    choice_bounds,
    folded_mean,
    largest_distance,
    passed_over,
    penalty_of,
)
from tacit.synthesis.rounds import Outcome, _noisy, synthesise_margins

ROWS, SIZES = chain(1500)


@pytest.fixture(autouse=True)
def _short_fits(monkeypatch) -> None:
    """No bound depends on how well the model fits."""
    for name, steps in {"FIRST": 5, "WARM": 2, "LAST": 5}.items():
        monkeypatch.setattr(f"tacit.synthesis.rounds.{name}", steps)


def run(asked, mu, seed, **words) -> Synthetic:
    schedule, details = loud(asked, mu), asked.details
    outcome = synthesise_margins(
        everything(ROWS, SIZES, asked), SIZES, schedule, candidates=details["candidates"], checked=details["checked"],
        zeros=details["zeros"], cells=asked.statistic.cells, source=SeededSource(seed=seed), **words,
    )  # fmt: skip
    return Synthetic(
        axes=details["axes"], schema=asked.schema, schedule=schedule, outcome=outcome, checked=details["checked"],
        candidates=details["candidates"], seed=1,
    )  # fmt: skip


def test_the_folded_mean_is_an_integral_convex_and_above_the_distance() -> None:
    for x, s in [(0.0, 1.0), (0.7, 1.3), (4.0, 0.5), (3.0, 9.0)]:
        exact, _ = quad(
            lambda v, x=x, s=s: abs(x + v) * math.exp(-v * v / (2 * s * s)) / (s * math.sqrt(2 * math.pi)),
            -12 * s, 12 * s, points=[-x], limit=200,
        )  # fmt: skip
        assert folded_mean(x, s) == pytest.approx(exact, rel=1e-9)
        assert folded_mean(x, s) >= x
    grid = np.array([folded_mean(x, 2.0) for x in np.linspace(0, 9, 200)])
    assert (np.diff(grid, 2) > -1e-12).all()


@pytest.mark.parametrize("shape", ["equal", "one cell", "none", "mixed"])
def test_distances_are_bounded_by_their_measurement(shape) -> None:
    """Theorem `synthesis-choices`, second part: the noise of a schedule itself on tables at known distances."""
    asked = question(SIZES)
    noise = loud(asked, 1.5).measuring
    std, cells, miss, runs = float(noise.noise_std), 60, 0.1, 2000
    far = {
        "equal": np.full(cells, 7), "one cell": np.eye(1, cells, 3, dtype=int)[0] * 900,
        "none": np.zeros(cells, dtype=int), "mixed": np.arange(cells) - 25,
    }[shape]  # fmt: skip
    source = SeededSource(seed=4)
    drawn = _noisy(noise, np.tile(far, runs), source).reshape(runs, cells)
    bounds = np.array([largest_distance(int(np.abs(y).sum()), cells, std, miss=miss) for y in drawn])
    exact = int(np.abs(far).sum())
    missed = float((bounds < exact).mean())
    assert missed <= miss
    # Never above the noisy distance with its deviation, and far below it where all cells are near.
    assert bounds.mean() <= exact + (0.8 * cells + 2.15 * math.sqrt(cells)) * std + cells / 2
    if shape == "none":
        assert bounds.mean() <= 0.9 * ((0.8 * cells + 2.15 * math.sqrt(cells)) * std + cells / 2)


def test_without_the_deviation_a_distance_would_be_missed() -> None:
    """The concentration term is needed: with it taken away (a miss near 1), far tables are missed half of the time."""
    noise = loud(question(SIZES), 1.5).measuring
    std, cells = float(noise.noise_std), 40
    far = np.full(cells, 400)
    drawn = _noisy(noise, np.tile(far, 1000), SeededSource(seed=8)).reshape(1000, cells)
    missed = np.mean(
        [
            largest_distance(int(np.abs(y).sum()) - cells // 2, cells, std, miss=0.999999) < far.sum()
            for y in drawn
        ]
    )
    assert 0.4 < missed < 0.6


def test_the_exponential_mechanism_seldom_passes_over_a_far_better_candidate() -> None:
    """First part, by the weights: P(chosen is worse by x) for all vectors of scores on a grid, and nearly reached."""
    asked = question((2, 2, 2), rounds=3)
    schedule, miss = loud(asked, 0.9), 0.3
    rate = float(schedule.choosing.rate)
    count = 5
    x = passed_over(count, schedule, miss=miss)
    worst = 0.0
    for steps in itertools.product((0.0, 0.5, 1.0001, 1.5), repeat=count - 1):
        below = np.array([0.0, *steps]) * x
        law = np.exp(-rate * below)
        law /= law.sum()
        worst = max(worst, float(law[below > x].sum()))
    assert worst <= miss / (2 * 3)
    assert worst >= 0.8 * miss / (2 * 3)
    assert passed_over(1, schedule, miss=miss) == 0.0
    assert rate == float(Exponential(epsilon=schedule.choosing.epsilon, sensitivity=Score(1)).rate)


def test_a_bound_is_the_sum_of_its_parts() -> None:
    """By hand, all numbers different: distance, penalties, scores, drift, and the round that is named."""
    asked = question(SIZES, rounds=2)
    schedule = loud(asked, 1.1)
    candidates, chosen = [(0, 1), (2, 3), (1, 4)], [(0, 1, 2), (3, 4)]
    choices = Choices(
        distances=np.array([700, 400]), rounds=np.array([1, -1, 0]), drifts=np.array([31, 17, 5])
    )
    found = choice_bounds(choices, chosen, candidates, SIZES, schedule, miss=0.08)
    std, rate = float(schedule.measuring.noise_std), float(schedule.choosing.rate)
    half = 0.5 * math.sqrt(2 / math.pi) * std
    passed = math.log(2 * 2 * 2 / 0.08) / rate
    far = [largest_distance(700, 32, std, miss=0.02), largest_distance(400, 15, std, miss=0.02)]
    assert set(found) == {(0, 1), (1, 4)}
    assert found[(0, 1)] == pytest.approx(far[1] - half * 15 + passed + half * 16 + 31, rel=1e-6)
    assert found[(1, 4)] == pytest.approx(far[0] - half * 32 + passed + half * 12 + 5, rel=1e-6)
    assert penalty_of(16, schedule) == pytest.approx(half * 16)


def test_a_round_is_used_only_if_the_margin_fitted_in_it() -> None:
    sizes = (6, 6, 6, 6)
    log = ChoiceLog(sizes=sizes)
    rows = np.zeros((10, 4), dtype=np.int32)
    fitted = [[(0, 3), (0, 2), (0, 1)], [(0, 2), (0, 1)], [(0, 1)]]
    for allowed, noisy in zip(fitted, (5, 3, 4), strict=True):
        log.add(rows, allowed, (0, 1), np.full(36, noisy), np.zeros(36, dtype=int))
    assert log.distances == [180, 108, 144]
    candidates = [(0, 3), (0, 2), (0, 1), (1, 3)]
    schedule = loud(question(sizes), 1.0)
    finished = {c: np.full(36, 2) for c in candidates}
    made = log.settled(candidates, finished, schedule, total=10)
    # The round with the smallest distance among those in which it fitted; the last candidate never did.
    assert made.rounds.tolist() == [0, 1, 1, -1]
    # The rows of the round lie in one cell of 36: 10 - 2 there, 2 in each of the others.
    assert made.drifts.tolist() == [78, 78, 78, 0]


def test_all_bounds_by_choice_hold_together_in_whole_runs() -> None:
    """Joint coverage of all candidates over whole runs, without measured errors, on finished rows."""
    asked = question(SIZES, rounds=4, errors=0.0)
    true = everything(ROWS, SIZES, asked)
    held, told, runs = 0, 0, 100
    for seed in range(runs):
        made = run(asked, 1.6, seed)
        bounds = made.choice_bounds(0.3)
        columns = made.outcome.rows
        from tacit.synthesis.choices import scaled_margins

        drawn = scaled_margins(columns, SIZES, list(bounds), made.total)
        held += all(np.abs(true[c] - drawn[c]).sum() <= b for c, b in bounds.items())
        told += sum(b < 2 * made.total for b in bounds.values())
    assert held >= 0.7 * runs
    assert told > 10 * runs  # some margins of each run get a bound that says something


def test_answers_use_the_choices_where_nothing_else_is_known() -> None:
    asked = question(SIZES, rounds=3, errors=0.0)
    hits = tries = 0
    for seed in range(60):
        made = run(asked, 2.5, 500 + seed)
        for where, test in (
            ("c0 = 1 and c5 = 1", (ROWS[:, 0] == 1) & (ROWS[:, 5] == 1)),
            ("c2 = 0 and c5 = 0", (ROWS[:, 2] == 0) & (ROWS[:, 5] == 0)),
        ):
            answer = made.answer("count", where=where, confidence=0.8)
            if answer.measured or math.isnan(answer.low):
                continue
            assert "could have been chosen" in answer.rests_on
            tries += 1
            hits += answer.low <= int(test.sum()) <= answer.high
    assert tries > 60
    assert hits / tries >= 0.8


def test_the_narrower_of_both_is_used_and_the_miss_is_shared() -> None:
    """Beside measured errors a bound by the choices has a fifth of the miss, the errors seven tenths."""
    asked = question(SIZES, rounds=3)
    made = run(asked, 2.5, 7)
    where, margin = "c2 = 0 and c5 = 0", (2, 5)
    assert made._first(margin) is None
    miss = 0.2
    reach = made.reach(1 - 0.7 * miss)
    errors = [
        max(0.0, y + reach)
        for c, y in zip(made.checked, made.outcome.errors, strict=True)
        if set(margin) <= set(c)
    ]
    choices = [b for c, b in made.choice_bounds(0.2 * miss).items() if set(margin) <= set(c)]
    assert choices
    bound = min(*errors, *choices)
    answer = made.answer("count", where=where, confidence=1 - miss)
    assert answer.high - answer.value == pytest.approx((bound + made.rows_within(0.1 * miss)) / 2)
    tiny = Choices(
        distances=made.outcome.choices.distances * 0, rounds=made.outcome.choices.rounds * 0,
        drifts=made.outcome.choices.drifts * 0,
    )  # fmt: skip
    other = Outcome(
        ones=made.outcome.ones, chosen=made.outcome.chosen, measured=made.outcome.measured, total=made.total,
        rows=made.outcome.rows, errors=made.outcome.errors + 10**6, choices=tiny,
    )  # fmt: skip
    again = Synthetic(
        axes=made.axes, schema=made.schema, schedule=made.schedule, outcome=other, checked=made.checked,
        candidates=made.candidates, seed=1,
    )  # fmt: skip
    assert "could have been chosen" in again.answer("count", where=where).rests_on


@pytest.mark.parametrize(
    ("std", "cells"), [(0.2, 1), (0.3, 50), (2.5, 1), (2.5, 7), (30.0, 200), (1.0, 4000)]
)
def test_sums_of_measured_cells_have_their_exact_law(std, cells) -> None:
    """Theorem `measured-cells`: the quantile of the sum, by convolving one draw after the other; and nothing wider."""
    from scipy.special import ndtr

    miss = 0.05
    q = sum_within(std, cells, miss)
    assert q == int(q)
    top = int(14 * std * math.sqrt(cells)) + 3
    steps = np.arange(-top, top + 1)
    single = ndtr((steps + 0.5) / std) - ndtr((steps - 0.5) / std)
    law = np.array([1.0])
    power, left = single, cells
    while left:  # by squaring; each product is cut to the middle, where all but 1e-30 lies
        if left & 1:
            law = _cut(np.convolve(law, power), top)
        power, left = _cut(np.convolve(power, power), top), left >> 1
    middle = len(law) // 2
    inside = lambda k: float(law[middle - k : middle + k + 1].sum())  # noqa: E731
    assert inside(int(q)) >= 1 - miss
    assert q == 0 or inside(int(q) - 1) < 1 - miss + 1e-9
    assert sum_within(std, 0, miss) == 0.0


def _cut(law, top):
    middle = len(law) // 2
    return law[max(0, middle - top) : middle + top + 1]


def test_wide_sums_are_bounded_and_never_narrower() -> None:
    from scipy.special import ndtri

    wide = sum_within(1e6, 9, 0.1)
    assert wide == pytest.approx(float(-ndtri(0.05)) * 3e6 + 4.5)
    assert sum_within(5.0, 16, 0.1) <= float(-ndtri(0.05)) * 20 + 8


def test_rounded_counts_of_another_number_of_rows_are_allowed_for() -> None:
    """With `draw` other than the table's rows, counts are rounded margin by margin: bounds add what that shifts."""
    asked = question(SIZES, rounds=3)
    true = everything(ROWS, SIZES, asked)
    from tacit.synthesis.choices import scaled_margins

    shifted = 0
    for seed in range(20):
        made = run(asked, 4.0, seed, draw=333)
        drawn = scaled_margins(made.outcome.rows, SIZES, made.checked, made.total)
        found = made.errors(0.999)
        for c in made.checked:
            exact = np.abs(true[c] - drawn[c]).sum() / (2 * made.total)
            assert found[c][1] <= exact <= found[c][2]
        larger, part = (0, 1, 3), (0, 3)
        added = drawn[larger].reshape(4, 4, 5).sum(axis=1).ravel()
        assert made._shift(larger, part) == np.abs(added - drawn[part]).sum()
        shifted += made._shift(larger, part)
    assert shifted > 0
