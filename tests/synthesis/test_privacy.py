"""Sensitivities and the account from the definition: neighbours by hand, densities by integration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

import tacit
from synthesis.toys import chain, everything, loud, margins_of, question
from tacit.accounting import account
from tacit.audit import opinion_on_certificate
from tacit.noise.source import SeededSource
from tacit.synthesis.choices import penalty_of, scaled_margins
from tacit.synthesis.model import Model
from tacit.synthesis.rounds import _choose, synthesise_margins
from tacit.synthesis.schedule import calibrated, epsilon_of, score_sensitivity
from tacit.synthesis.trees import cells_of, fitting, junction_tree

SIZES = (2, 3, 2)
MARGINS = [m for k in (1, 2, 3) for m in itertools.combinations(range(3), k)]


def units():
    """Units with the most that one of them may bring, and whether it may be replaced."""
    yield tacit.rows(), 1, False
    yield tacit.rows(neighbours="replace-one"), 1, True
    yield tacit.people("id", at_most=3), 3, False
    yield tacit.people("id", at_most=2, neighbours="replace-one"), 2, True


@pytest.mark.parametrize(("unit", "most", "replaced"), [*units()])
def test_scores_errors_and_margins_move_as_far_as_stated(unit, most, replaced) -> None:
    """Theorems `synthesis-score` and `synthesis-errors`: never further on neighbours, and as far on some."""
    rng = np.random.default_rng(11)
    asked = question(SIZES, unit=unit)
    schedule = loud(asked)
    stated = float(schedule.choosing.sensitivity.exact)
    furthest_score, furthest_error, furthest_margin, furthest_ones = 0.0, 0.0, 0.0, 0.0
    checked = asked.details["checked"]
    rows = [rng.integers(0, SIZES, 3) for _ in range(9)]
    every = [np.array(r) for r in itertools.product(*map(range, SIZES))]
    unit_tables = [[r] * most for r in every] + [
        [every[i] for i in rng.integers(0, len(every), k)] for k in range(most + 1) for _ in range(6)
    ]
    pairs = [(rows + u, rows) for u in unit_tables]
    if replaced:
        pairs = [(rows + u, rows + v) for u, v in itertools.product(unit_tables, repeat=2)]
    # Public tables of several kinds: nothing, very many, and those of other rows.
    publics = [
        {m: np.zeros_like(c) for m, c in margins_of(rows, SIZES, MARGINS).items()},
        {m: np.full_like(c, 50) for m, c in margins_of(rows, SIZES, MARGINS).items()},
        margins_of(rows + [every[0]] * 4, SIZES, MARGINS),
    ]
    publics.append({m: np.where(np.arange(c.size) % 2, 50, 0) for m, c in publics[0].items()})
    for one, other in pairs[:: max(1, len(pairs) // 250)]:
        a, b = margins_of(one, SIZES, MARGINS), margins_of(other, SIZES, MARGINS)
        moved = [np.abs(a[m] - b[m]) for m in MARGINS]
        furthest_margin = max(furthest_margin, *(float((x**2).sum()) for x in moved))
        furthest_ones = max(furthest_ones, float(sum((x**2).sum() for x in moved[:3])))
        for public in publics:
            d = {m: abs(np.abs(a[m] - public[m]).sum() - np.abs(b[m] - public[m]).sum()) for m in MARGINS}
            furthest_score = max(furthest_score, *map(float, d.values()))
            furthest_error = max(furthest_error, float(sum(d[m] ** 2 for m in checked)))
    assert furthest_score == stated == most * (2 if replaced else 1)
    assert furthest_margin == float(schedule.measuring.sensitivity.squared_steps(1))
    assert furthest_ones == float(schedule.ones.sensitivity.squared_steps(1))
    limit = float(schedule.errors.sensitivity.squared_steps(1))
    assert limit == len(checked) * stated**2
    assert furthest_error <= limit
    if not replaced:
        assert furthest_error == limit


def test_choices_among_those_that_fit_are_drawn_with_their_stated_law() -> None:
    """What the rounds really draw, where the best candidates do not fit, against the weights by definition."""
    rows, sizes = chain(400)
    asked = question(sizes)
    schedule = loud(asked, mu=0.5)
    true = everything(rows, sizes, asked)
    model = Model(sizes=sizes, rows=400.0)
    for i in range(len(sizes)):
        model.measure((i,), true[(i,)].astype(float), 1.0)
    model.measure((0, 3), np.ones((4, 5)), 1.0)
    model.arrange()
    candidates = [(0, 1), (0, 3), (1, 4), (0, 1, 3), (2, 5)]
    known = scaled_margins(rows[::7], sizes, candidates, 400)
    scores = {
        c: float(np.abs(true[c] - known[c]).sum() - penalty_of(cells_of(c, sizes), schedule))
        for c in candidates
    }
    limit = 40
    fit = fitting(candidates, model.margins, sizes, limit)
    allowed = [c for c, fits in zip(candidates, fit, strict=True) if fits]
    assert allowed == [c for c in candidates if c not in ((0, 1, 3), (0, 1))]
    rate = float(schedule.choosing.rate)
    law = np.array([math.exp(rate * (scores[c] - scores[(0, 3)])) for c in allowed])
    law /= law.sum()
    source, draws = SeededSource(seed=9), 3000
    counts = dict.fromkeys(candidates, 0)
    for _ in range(draws):
        counts[_choose(true, known, allowed, schedule, source)] += 1
    assert counts[(0, 1, 3)] == counts[(0, 1)] == 0
    got = np.array([counts[c] for c in allowed])
    chi = float(((got - draws * law) ** 2 / (draws * law)).sum())
    assert chi < 60  # two degrees of freedom: below 1e-12 for a right law
    assert rate == pytest.approx(
        float(schedule.choosing.epsilon) / (2 * float(score_sensitivity(tacit.rows()).exact))
    )


def test_the_account_is_above_an_adaptive_round_by_integration() -> None:
    """Theorem `synthesis-account`: a measurement, a choice that depends on it, and the chosen number, as densities.

    Two candidates with counts t; the first answer is t_0 with noise, M follows from it, then one candidate is chosen
    by |t - M| and measured. The hockey-stick divergence is summed over the first answer and integrated in closed form
    over the last, and compared with the account of the fixed schedule from both sides.
    """
    noise, epsilon = 1.6, 0.8
    grid = np.linspace(-12, 16, 5601)
    step = grid[1] - grid[0]
    neighbours = [((3, 1), (2, 1)), ((2, 4), (2, 3)), ((3, 3), (2, 2)), ((0, 5), (1, 5)), ((1, 1), (0, 0))]
    events = [
        tacit.events.GaussianEvent(noise_multiplier=noise),
        tacit.events.ExponentialEvent(epsilon=epsilon),
        tacit.events.GaussianEvent(noise_multiplier=noise),
    ]
    worst = dict.fromkeys((0.2, 0.6, 1.0, 1.6), 0.0)
    for one, other in [*neighbours, *((b, a) for a, b in neighbours)]:
        weights = []
        for t in (one, other):
            first = np.exp(-((grid - t[0]) ** 2) / (2 * noise**2)) / (noise * math.sqrt(2 * math.pi)) * step
            public = np.stack([np.rint(grid), np.rint(grid) - 2])
            scores = np.abs(np.array(t)[:, None] - public)
            choice = np.exp(epsilon / 2 * (scores - scores.max(axis=0)))
            weights.append(first * choice / choice.sum(axis=0))
        for level in worst:
            total = 0.0
            for c in (0, 1):
                p, q = weights[0][c], weights[1][c] * math.exp(level)
                shift = (one[c] - other[c]) / noise
                # (p N(shift, 1) - q N(0, 1))+ integrated: the two cross at one point.
                with np.errstate(divide="ignore", invalid="ignore"):
                    log = np.log(q) - np.log(p)
                if shift == 0:
                    total += float(np.maximum(p - q, 0).sum())
                    continue
                cut = (log + shift**2 / 2) / shift
                sign = 1 if shift > 0 else -1
                total += float((p * ndtr(sign * (shift - cut)) - q * ndtr(-sign * cut)).sum())
            worst[level] = max(worst[level], total)
    for level, found in worst.items():
        stated = account(events, epsilon=level).delta.high
        assert found <= stated + 1e-6
        assert found >= 0.3 * stated or stated < 1e-3


@pytest.mark.parametrize(("unit", "errors"), [(tacit.rows(), 0.1), (tacit.people("id", at_most=4), 0.0)])
def test_the_calibrated_schedule_costs_its_price_and_hardly_less(unit, errors) -> None:
    asked = question((3, 4, 2, 2), unit=unit, rounds=7, errors=errors)
    made = calibrated(asked, lambda s: epsilon_of(s, 1e-6, unit.neighbours) <= 1.0, 0.25)
    events = list(made.events)
    found = account(events, delta=1e-6, neighbours=unit.neighbours).epsilon.high
    assert 0.999 < found <= 1.0
    # The same list by hand: squares of mu add up, and there is one choice a round.
    k = 4 if isinstance(unit, tacit.guarantees.People) else 1
    mu_squared = 4 * k**2 / made.ones.noise_std**2 + 7 * k**2 / made.measuring.noise_std**2
    if errors:
        assert made.errors is not None
        mu_squared += len(asked.details["checked"]) * k**2 / made.errors.noise_std**2
    by_hand = [
        tacit.events.GaussianEvent(noise_multiplier=1 / math.sqrt(mu_squared)),
        tacit.events.RepeatedEvent(
            event=tacit.events.ExponentialEvent(epsilon=float(made.choosing.epsilon)), times=7
        ),
    ]
    again = account(by_hand, delta=1e-6, neighbours=unit.neighbours).epsilon.high
    assert again == pytest.approx(found, rel=1e-4)


def test_a_second_opinion_confirms_the_certificate_and_no_smaller_one() -> None:
    rows, _ = chain(300)
    import pandas as pd

    frame = pd.DataFrame(rows, columns=[f"c{i}" for i in range(6)])
    schema = {f"c{i}": tacit.integer(0, s - 1, missing=0) for i, s in enumerate((4, 4, 2, 5, 3, 2))}
    with tacit.Curator(
        frame, protect=tacit.rows(), schema=schema, budget=tacit.Approximate(epsilon=2.0, delta=1e-5)
    ) as curator:
        made = curator.release(
            tacit.synthesis.synthetic_table(list(schema), rounds=4), epsilon=1.0, delta=1e-6
        )
    assert opinion_on_certificate(made.certificate).confirmed
    forged = {**made.certificate, "guarantee": {**made.certificate["guarantee"]}}
    forged["guarantee"]["bound"] = {"kind": "approximate", "epsilon": 0.97, "delta": 1e-6}
    assert not opinion_on_certificate(forged).confirmed


def test_rounds_keep_the_limit_of_the_model() -> None:
    """However good a margin is: what would make the junction tree too large is never chosen, and a choice is left."""
    rows, sizes = chain(400)
    asked = question(sizes, rounds=6, cells=45, errors=0.0)
    outcome = synthesise_margins(
        everything(rows, sizes, asked), sizes, loud(asked, mu=3.0), candidates=asked.details["candidates"],
        cells=45, source=SeededSource(seed=2),
    )  # fmt: skip
    margins = [*((i,) for i in range(6)), *outcome.chosen]
    assert junction_tree(margins, sizes).cells <= 45
    assert len(outcome.chosen) == 6
    assert not all(fitting(asked.details["candidates"], margins, sizes, 45))
