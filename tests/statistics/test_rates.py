"""Rates, standardised rates and estimates, ratios of rates: sensitivity, formulas, fifty samples, refusals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

import tacit
import tacit.statistics as ask
from support.neighbours import moves
from tacit.errors import InvalidParameter, UnknownName, WrongType
from tacit.guarantees import people, rows
from tacit.noise import SeededSource
from tacit.sources import Schema, category, flag, integer, number, open_table

SCHEMA = Schema(
    {"died": flag(), "years": integer(0, 4), "age": category(["young", "old"]), "sex": category(["f", "m"])}
)
ROWS = [
    {"died": d, "years": y, "age": a, "sex": "f"}
    for a, (d, y) in itertools.product(
        ["young", "old"], [(True, 4), (False, 4), (True, 0), (None, 3), (False, 9)]
    )
]
STANDARD = {"age": {"young": 3, "old": 1}}
ASKED = {
    "rate": ask.rate("died", "years"),
    "by": ask.rate("died", "years", by="age"),
    "standardised": ask.rate("died", "years", standard=STANDARD),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize(
    "unit", [rows(), rows(neighbours="replace-one"), people("id", at_most=2)], ids=str
)  # fmt: skip
def test_rates_move_by_the_corners_of_their_box(name, unit):
    question = ASKED[name].drawn(SCHEMA, unit)
    seen, claimed = moves(question, unit, ROWS)[""], question.sensitivity
    assert seen == [claimed.l1, claimed.l2_squared, claimed.linf]
    assert (question.sensitivity, question.parts) == (
        ASKED[name].on(SCHEMA, unit).sensitivity,
        question.parts,
    )


@pytest.mark.parametrize("unit", [rows(), rows(neighbours="replace-one")], ids=str)
def test_standardised_means_move_as_weighted_ones(unit):
    rest = Schema({**SCHEMA, "years": integer(0, 4)})
    for one in (ask.mean("years", standard=STANDARD), ask.sum("years", standard=STANDARD)):
        for question in (one.on(rest, unit), one.drawn(rest, unit)):
            seen, claimed = moves(question, unit, ROWS)[""], question.sensitivity
            assert seen == [claimed.l1, claimed.l2_squared, claimed.linf]


N, RUNS = 4000, 50
FULL = {
    "run": tacit.integer(0, RUNS - 1), "died": tacit.flag(), "years": tacit.number(0, 10),
    "age": tacit.category(["young", "middle", "old"]), "sex": tacit.category(["f", "m"]), "x": tacit.number(0, 1),
}  # fmt: skip
RATES = {"young": 0.01, "middle": 0.03, "old": 0.08}
WEIGHTS = {"age": {"young": 30, "middle": 50, "old": 20}}


@pytest.fixture(scope="module")
def cohort():
    random = np.random.default_rng(8)
    size = N * RUNS // 10
    age, sex = random.choice(list(RATES), size), random.choice(["f", "m"], size)
    hazard = np.array([RATES[a] for a in age]) * np.where(sex == "m", 1.5, 1.0)
    death, end = random.exponential(1 / hazard), 10 * random.random(size)
    x = random.beta(2, 5, size) * np.where(age == "old", 0.5, 1.0)
    return pa.table(
        {
            "run": np.arange(size) % RUNS, "died": death <= end, "years": np.minimum(death, end), "age": age,
            "sex": sex, "x": x,
        }
    )  # fmt: skip


def held(cohort, asked, truth, least=44, epsilon=4, **words):
    source = SeededSource(seed=3)
    with tacit.Curator(
        cohort, protect=tacit.rows(), schema=FULL, budget=tacit.Pure(epsilon=99), source=source
    ) as curator:
        answer = curator.release(tacit.query(asked, sampling=True, epsilon=epsilon, **words))
    low, high = np.ravel(answer.estimate.low), np.ravel(answer.estimate.high)
    assert int(((low <= truth) & (truth <= high)).sum()) >= least
    return answer


def test_fifty_cohorts(cohort):
    """Rates per 1,000 years, standardised by age, of women alone; and means with public counts of people."""
    women = ask.rate("died", "years", by="run", per=1000, standard=WEIGHTS, where="sex = 'f'")
    truth = 1000 * (0.3 * 0.01 + 0.5 * 0.03 + 0.2 * 0.08)
    answer = held(cohort, women, truth)
    assert "Poisson" in answer.certificate["intervals"]["declared"][0]
    crude = held(
        cohort, ask.rate("died", "years", by="run", where="sex = 'f' and age = 'old'"), 0.08, rows=70
    )
    assert (np.ravel(crude.estimate.value) >= 0).all()
    mean = (0.8 + 0.2 * 0.5) * 2 / 7
    held(cohort, ask.mean("x", by="run", standard=WEIGHTS), mean)
    held(cohort, ask.sum("x", by="run", standard=WEIGHTS), 100 * mean)


def test_ratios_are_on_the_scale_of_logarithms(cohort):
    with tacit.Curator(
        cohort, protect=tacit.rows(), schema=FULL, budget=tacit.Pure(epsilon=99), source=SeededSource(seed=4)
    ) as curator:
        asked = ask.rate("died", "years", by="sex", per=1000, standard=WEIGHTS, against={"sex": "f"})
        table = curator.release(tacit.query(asked, sampling=True, epsilon=5, rows=5000)).table
        low, high, value = (float(table[c][1]) for c in ("low", "high", "value"))
        assert low < 1.5 < high
        assert value / low == pytest.approx(high / value, rel=1e-9)
        assert table.loc[0, ["value", "low", "high"]].tolist() == [1, 1, 1]
        hopeless = curator.release(tacit.query(asked, sampling=True, epsilon=0.001)).table
        assert hopeless["value"].isna().any()


def test_the_formula_without_noise():
    """Directly standardised rates: sum w d / Y with variance sum w^2 d / Y^2."""
    table = pa.table(
        {"died": [True, False, True, True], "years": [4, 3, 1, 4], "age": ["young", "young", "old", "old"],
         "sex": ["f", "f", "m", "m"]}
    )  # fmt: skip
    held_table = open_table(table, schema=SCHEMA, unit=rows())
    question = ask.rate("died", "years", per=10, standard=STANDARD).drawn(SCHEMA, rows())
    (found,) = ask.read(held_table, [question])
    held_table.close()
    got = question.form.population(found, {}, 0.95)
    assert float(got.value) == pytest.approx(10 * (0.75 / 7 + 0.25 * 2 / 5))
    se = 10 * math.sqrt((0.75 / 7) ** 2 * 1 + (0.25 / 5) ** 2 * 2)
    assert float(got.reach) == pytest.approx(1.959963984540054 * se, rel=1e-9)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ask.rate("died", "died"), "another column"),
        (lambda: ask.rate("died", "years", per=0), "per"),
        (lambda: ask.rate("died", "years", standard={"age": {}}), "weight for each key"),
        (lambda: ask.rate("died", "years", standard={"age": {"young": -1}}), "standard"),
        (
            lambda: ask.rate("died", "years", standard={"age": {"young": 1}}).on(SCHEMA, rows()),
            "each declared key",
        ),
        (lambda: ask.rate("died", "years", standard={"age": {"yung": 1}}).on(SCHEMA, rows()), "yung"),
        (lambda: ask.rate("died", "years", by="age", standard=STANDARD).on(SCHEMA, rows()), "not in `by`"),
        (lambda: ask.rate("died", "years", against={"sex": "m"}).on(SCHEMA, rows()), "column of `by`"),
        (lambda: ask.rate("died", "years", by="sex", against={"sex": "x"}).on(SCHEMA, rows()), "'x'"),
        (lambda: ask.rate("died", "years", against={}), "one column"),
        (lambda: ask.mean("years", design={"psu": "sex"}, standard=STANDARD), "without clusters"),
    ],
)
def test_refusals(make, words):
    with pytest.raises((InvalidParameter, UnknownName), match=words):
        make()


def test_times_are_not_negative():
    with pytest.raises(WrongType, match="0 or more"):
        ask.rate("died", "x").on(Schema({"died": flag(), "x": number(-1, 1)}), rows())
