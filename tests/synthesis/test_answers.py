"""Intervals of synthetic rows: coverage of what is really drawn, and filters on cells by looking at rows."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pandas as pd
import pytest

import tacit
from synthesis.toys import chain, everything, loud, question, total_variation
from tacit.noise.source import SeededSource
from tacit.sources.expressions import parse
from tacit.synthesis.answers import Synthetic, passes
from tacit.synthesis.choices import scaled_margins
from tacit.synthesis.rounds import Outcome, _errors, _noisy, noisy_total, synthesise_margins

ROWS, SIZES = chain(1500)


@pytest.fixture(autouse=True)
def _short_fits(monkeypatch) -> None:
    """Coverage does not depend on how well the model fits."""
    for name, steps in {"FIRST": 5, "WARM": 2, "LAST": 5}.items():
        monkeypatch.setattr(f"tacit.synthesis.rounds.{name}", steps)


def run(asked, mu, seed, **words) -> tuple[Outcome, Synthetic]:
    schedule = loud(asked, mu)
    details = asked.details
    outcome = synthesise_margins(
        everything(ROWS, SIZES, asked), SIZES, schedule, candidates=details["candidates"], checked=details["checked"],
        zeros=details["zeros"], cells=asked.statistic.cells, source=SeededSource(seed=seed), **words,
    )  # fmt: skip
    made = Synthetic(
        axes=details["axes"], schema=asked.schema, schedule=schedule, outcome=outcome, checked=details["checked"],
        candidates=details["candidates"], seed=1,
    )  # fmt: skip
    return outcome, made


def test_upper_bounds_of_all_margins_hold_together() -> None:
    """Theorem `synthesis-errors`: joint coverage over 1,000 draws of the noise, from both sides.

    The noise of the errors is independent of all before it: the rows are fixed, and what the rounds draw is drawn.
    """
    asked = question(SIZES)
    outcome, made = run(asked, 0.8, 3, draw=1400)
    true = everything(ROWS, SIZES, asked)
    checked = made.checked
    drawn = scaled_margins(outcome.rows, SIZES, checked, outcome.total)
    exact = np.array([np.abs(true[c] - drawn[c]).sum() for c in checked])
    source, runs, held = SeededSource(seed=5), 1000, 0
    reach = made.reach(0.95)
    same = _errors(true, drawn, made.schedule, checked, SeededSource(seed=5))
    for k in range(runs):
        noisy = _noisy(made.schedule.errors, exact, source)
        assert k or (noisy == same).all()  # this is what the rounds draw
        held += bool((exact <= noisy + reach).all())
    # 0.95 less two standard errors from below; far from 1 from above, since the bound is not wasteful.
    assert 0.95 - 2 * math.sqrt(0.95 * 0.05 / runs) <= held / runs <= 0.975


def test_stated_errors_hold_in_whole_runs() -> None:
    """Whole runs: every total variation lies between the stated ends, all at once, on each side."""
    asked = question(SIZES, rounds=3)
    true = everything(ROWS, SIZES, asked)
    low_held = high_held = 0
    runs = 40
    for seed in range(runs):
        outcome, made = run(asked, 0.8, seed)
        found = made.errors(0.9)
        drawn = scaled_margins(outcome.rows, SIZES, made.checked, outcome.total)
        exact = {c: np.abs(true[c] - drawn[c]).sum() / (2 * outcome.total) for c in made.checked}
        shares = {c: total_variation(true[c], drawn[c]) for c in made.checked}
        off = abs(len(ROWS) - outcome.total) / (2 * outcome.total)
        assert all(shares[c] <= exact[c] + off + 1e-12 for c in made.checked)
        high_held += all(exact[c] <= found[c][2] for c in made.checked)
        low_held += all(exact[c] >= found[c][1] for c in made.checked)
        assert all(lo <= v + 1e-12 or lo <= hi for v, lo, hi in found.values())
    # 0.9 each: fewer than 29 of 40 has a probability below 1e-3, and the seeds are fixed.
    assert high_held >= 29
    assert low_held >= 29


def test_all_stated_errors_hold_together_in_a_thousand_whole_runs() -> None:
    """Theorem `synthesis-errors` with everything drawn anew: choices, measurements, rows and errors, 1,000 times."""
    rows, sizes = ROWS[:250, [0, 2, 5]], (4, 2, 2)
    asked = question(sizes, rounds=1)
    true, details, schedule = everything(rows, sizes, asked), asked.details, loud(asked, 0.9)
    runs, high_held, low_held = 1000, 0, 0
    for seed in range(runs):
        outcome = synthesise_margins(
            true, sizes, schedule, candidates=details["candidates"], checked=details["checked"],
            cells=asked.statistic.cells, source=SeededSource(seed=seed),
        )  # fmt: skip
        made = Synthetic(
            axes=details["axes"], schema=asked.schema, schedule=schedule, outcome=outcome, checked=details["checked"],
            seed=1,
        )  # fmt: skip
        found = made.errors(0.95)
        drawn = scaled_margins(outcome.rows, sizes, made.checked, outcome.total)
        exact = {c: np.abs(true[c] - drawn[c]).sum() / (2 * outcome.total) for c in made.checked}
        high_held += all(exact[c] <= found[c][2] for c in made.checked)
        low_held += all(exact[c] >= found[c][1] for c in made.checked)
    least = 0.95 - 2 * math.sqrt(0.95 * 0.05 / runs)
    assert high_held / runs >= least
    assert low_held / runs >= least


def test_measured_and_checked_counts_are_covered() -> None:
    """Theorem `measured-cells`: the first measurement, whatever chose it; and counts by the measured error."""
    asked = question(SIZES, rounds=5)
    filters = [
        "c0 = 1", "c0 >= 2 and c1 = 3", "c3 in (1, 4)", "c2 = 1 and c4 = 0 and c5 = 1",
        "not (c0 = 0) and c3 < 2", "c1 > 1 or c4 = 2",
    ]  # fmt: skip
    frame = pd.DataFrame(ROWS, columns=[f"c{i}" for i in range(6)])
    truth = {f: len(frame.query(f.replace(" = ", " == "))) for f in filters}
    inside = {True: [0, 0], False: [0, 0]}
    for seed in range(50):
        _, made = run(asked, 0.7, 1000 + seed)
        for f in filters:
            answer = made.answer("count", where=f, confidence=0.9)
            held = inside[answer.measured]
            held[0] += answer.low <= truth[f] <= answer.high
            held[1] += 1
    for hits, tries in inside.values():
        assert tries > 40
        assert hits / tries >= 0.9 - 3 * math.sqrt(0.09 / tries)
    # Measured intervals are not wide for nothing.
    assert inside[True][0] / inside[True][1] <= 0.97


def test_the_first_measurement_is_used_and_no_later_one() -> None:
    asked = question(SIZES, rounds=3)
    outcome, made = run(asked, 1.0, 1)
    first = Outcome(
        ones=outcome.ones, chosen=((0, 1), (0, 1, 2), (0, 1)),
        measured=(np.arange(16), np.full(32, 1000), np.full(16, 5000)), total=outcome.total, rows=outcome.rows,
        errors=outcome.errors,
    )  # fmt: skip
    made = Synthetic(
        axes=made.axes,
        schema=made.schema,
        schedule=made.schedule,
        outcome=first,
        checked=made.checked,
        seed=1,
    )
    answer = made.answer("count", where="c0 = 1 and c1 = 2")
    middle = (answer.low + answer.high) / 2
    assert answer.measured
    std = float(made.schedule.measuring.noise_std)
    # Cell (1, 2) of 4 x 4 has the place 6; the interval is 6 plus or minus one cell's noise, cut at 0.
    assert 6 + 1.959963984540054 * std - 0.6 <= answer.high <= 6 + 1.959963984540054 * std + 0.5
    assert middle < 100


def test_counts_without_a_margin_have_no_interval() -> None:
    asked = question(SIZES, rounds=2, errors=0.0)
    _, made = run(asked, 1.0, 2)
    answer = made.answer("count", where="c0 = 1 and c1 = 1 and c2 = 0 and c3 = 3")
    assert not answer.measured
    assert math.isnan(answer.low)
    assert made.errors() == {}
    with pytest.raises(tacit.errors.UnknownName):
        made.answer("mean", where="c0 = 1")
    with pytest.raises(tacit.errors.TacitError):
        made.answer("count", where="c9 = 1")
    with pytest.raises(tacit.errors.InvalidParameter):
        made.answer("count", where="true")
    with pytest.raises(tacit.errors.InvalidParameter):
        made.answer("count", where="c0 = 1", confidence=1.0)


SCHEMA = {
    "age": tacit.integer(0, 99),
    "sex": tacit.category(["f", "m"]),
    "income": tacit.number(0, 1000, spacing=0.25),
    "day": tacit.date("2024-01-01", "2024-12-31"),
    "member": tacit.flag(),
    "code": tacit.category([3, 5, 8]),
}
COLUMNS = [
    tacit.bins("age", [0, 18, 40, 65, 100]), "sex", tacit.bins("income", [0, 250, 500, 1000]), tacit.bins("day", 12),
    "member", "code",
]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "sex = 'f'", "sex != 'f'", "sex is missing", "sex is not missing and member", "not (sex = 'm')",
        "age >= 18 and age < 65", "age between 18 and 39", "income >= 250", "code in (3, 8)", "code > 3",
        "day < '2024-01-01' or member = false", "sex = 'f' or code = 5", "not member", "age is missing or sex = 'm'",
        "not (age < 18 and sex = 'f')",
    ],
)  # fmt: skip
def test_filters_on_cells_are_filters_on_rows(text) -> None:
    """The engine's answer on the rows themselves, missing values and all, and that on the cells."""
    rng = np.random.default_rng(2)
    count = 300
    frame = pd.DataFrame(
        {
            "age": pd.array(rng.integers(0, 100, count), dtype="Int64"),
            "sex": rng.choice(["f", "m", "x"], count),
            "income": rng.integers(0, 4000, count) / 4,
            "day": [
                datetime.date(2024, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 366, count)
            ],
            "member": pd.array(rng.random(count) < 0.5, dtype="boolean"),
            "code": rng.choice([3, 5, 8], count),
        }
    )
    frame.loc[::7, "age"] = pd.NA
    frame.loc[::11, "member"] = pd.NA
    schema = tacit.sources.schema.Schema(SCHEMA)
    statistic = tacit.synthesis.synthetic_table(COLUMNS)
    asked = statistic.on(schema, tacit.rows())
    axes = asked.details["axes"]
    tree = parse(text)
    margin = tuple(i for i, a in enumerate(axes) if a.column in tree.columns())
    from tacit.sources.margins import MarginsWanted, read_margins
    from tacit.sources.tables import open_table

    table = open_table(frame, schema=schema, unit=tacit.rows())
    try:
        everybody = read_margins(table, MarginsWanted(axes=axes, margins=(margin,)))
        only = read_margins(table, MarginsWanted(axes=axes, margins=(margin,), where=tree))
    finally:
        table.close()
    inside = np.ravel(passes(tree, margin, axes))
    assert (np.where(inside, everybody.margins[margin], 0) == only.margins[margin]).all()


def test_filters_that_cut_a_bin_are_refused() -> None:
    schema = tacit.sources.schema.Schema(SCHEMA)
    axes = tacit.synthesis.synthetic_table(COLUMNS).on(schema, tacit.rows()).details["axes"]
    for text in ("age > 20", "income = 3", "day >= '2024-01-02'"):
        tree = parse(text)
        margin = tuple(i for i, a in enumerate(axes) if a.column in tree.columns())
        with pytest.raises(tacit.errors.InvalidParameter, match="cut through a bin"):
            passes(tree, margin, axes)


def test_the_number_of_rows_is_weighed_by_the_noise_of_each_total() -> None:
    ones = [np.array([10, 20]), np.array([5, 5, 5, 5, 5, 5])]
    assert noisy_total(ones) == 30
    assert noisy_total([np.array([10, 10]), np.array([8, 8, 8, 8])]) == round((20 / 2 + 32 / 4) / 0.75)
    assert noisy_total([np.array([-5, -9])]) == 1
