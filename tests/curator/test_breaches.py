"""Small breaches, each by itself: thresholds, roundings, intervals, cells of another question, tables without rows."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from fuzz.quick import sped_up
from tacit.curator.assignments import Assignment, NoisyParts, gaussian, laplace
from tacit.curator.charging import price
from tacit.curator.planning import make_plan
from tacit.mechanisms import RoundedGaussian
from tacit.mechanisms.partition import OptimalSelection
from tacit.noise.source import SeededSource

from .chain import ASKED, FIRST, NOTHING, SCHEMA, SECOND, UNITS
from .draws import watched

BUDGET = tacit.Approximate(epsilon=1e6, delta=0.9)


def table(rows: list[dict[str, Any]], ids: list[Any]) -> pa.Table:
    types: Any = {"b": pa.int64(), "n": pa.int64(), "f": pa.bool_()} | dict.fromkeys("vwu", pa.float64())
    columns = {c: pa.array([r[c] for r in rows], types.get(c, pa.string())) for c in FIRST}
    return pa.table({**columns, "id": pa.array(ids, pa.string())})


# --- tables from which nothing can be read ------------------------------------------------------------------
TABLES = {
    "some": table([FIRST, SECOND] * 30, [str(i) for i in range(60)]),
    "empty": table([], []),
    "one row": table([FIRST], ["a"]),
    "all missing": table([NOTHING] * 5, list("abcde")),
    "nobody's": table([FIRST] * 5, [None] * 5),
    "one person": table([FIRST] * 40, ["a"] * 40),
    "without types": pa.table({c: pa.nulls(3) for c in [*FIRST, "id"]}),
}


def asked(delta: bool) -> list[tacit.Query]:
    """Every statistic that has such a price, finished and not."""
    out = []
    for name, one in ASKED.items():
        if ("keys" in name and not delta) or (delta and (name == "bounds" or "sparse" in name)):
            continue
        paid = {"epsilon": 0.5, "delta": 1e-3} if delta else {"epsilon": 0.5}
        out += [tacit.query(one, name=f"{name} {flag}", consistent=flag, **paid) for flag in (False, True)]
    return out


def described(answer: Any) -> Any:
    """What a reader sees beside the numbers: columns, types, how many, in which order."""
    keys = answer.planned.question.known_keys and answer.planned.question.statistic.kind != "sparse_histogram"
    parts = {
        n: (np.asarray(v).dtype.str, np.shape(v) if keys else None) for n, v in answer.noisy.parts.items()
    }
    if not keys:
        return answer.name, list(answer.columns), parts
    shown = {n: (np.asarray(v).dtype.kind, len(v)) for n, v in answer.columns.items()}
    labels = [list(answer.columns[n]) for n in answer.columns if n not in ("value", "low", "high")]
    return answer.name, shown, labels, parts


@pytest.mark.parametrize("delta", [False, True], ids=["epsilon", "epsilon and delta"])
@pytest.mark.parametrize(
    "unit", ["rows, replace-one", "few groups, add-or-remove", "two people, replace-one"]
)
def test_no_table_makes_a_paid_release_fail_or_look_otherwise(unit: str, delta: bool) -> None:
    """Empty, all missing, one row, rows of nobody: every statistic is released, in one shape."""
    people = "rows" not in unit
    asks = [a for a in asked(delta) if people or getattr(a.statistic, "of", "rows") == "rows"]
    plan = make_plan(asks, schema=SCHEMA, unit=UNITS[unit], budget=BUDGET)
    seen = {}
    for name, data in TABLES.items():
        with (
            sped_up(),
            tacit.Curator(
                data, protect=UNITS[unit], schema=SCHEMA, budget=BUDGET, source=SeededSource(seed=4)
            ) as held,
        ):
            answers = held.release(plan)
            for one in answers:
                assert str(one)
                assert one.to_csv()
                assert one.to_json()
                assert len(one.quality) == np.size(one.estimate.value)
            seen[name] = [described(a) for a in answers]
    for name in TABLES:
        assert seen[name] == seen["some"], name


# --- one plan, two sparse histograms ------------------------------------------------------------------------
@pytest.mark.parametrize("paid", [{"epsilon": 2, "delta": 1e-2}, {"epsilon": 2}], ids=["delta", "pure"])
def test_a_cell_that_another_question_occupies_is_not_occupied(paid: Any) -> None:
    """Rows of the first in some cells, rows of the second in others: neither sees the other's cells."""
    rows = [{**FIRST, "b": 1 + i % 3, "f": i % 3 == 0} for i in range(300)]
    held = tacit.Curator(
        table(rows, [str(i) for i in range(300)]), protect=tacit.rows(), schema=SCHEMA, budget=BUDGET,
        source=SeededSource(seed=6),
    )  # fmt: skip
    asks = [
        tacit.query(tacit.sparse_histogram(["a", "b"], where=where), name=where, **paid)
        for where in ("f", "not f")
    ]
    with held, watched() as draws:
        answers = held.release(asks)
    occupied = [d.true.tolist() for d in draws if d.true is not None]
    assert occupied == [[100], [100, 100]]
    assert answers[0].table["b"].tolist() == [1]
    assert answers[1].table["b"].tolist() == [2, 3]


# --- intervals of named counts -----------------------------------------------------------------------------
@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(9, 10), Fraction(95, 100), Fraction(99, 100)])
def test_intervals_of_named_counts_have_their_level_and_no_less(level: Fraction) -> None:
    """A key with so many supporters that it is always named: the chance of each count is in the law, and is summed."""
    with tacit.Curator(TABLES["some"], protect=tacit.rows(), schema=SCHEMA, budget=BUDGET) as held:
        (planned,) = held.preview(tacit.count(by="t"), epsilon=1, delta=1e-6).releases
    law, support = planned.assignment.selection.distribution, 10**6
    reached = [0, *law.reached]
    chance = [Fraction(b - a, law.reached[-1]) for a, b in pairwise(reached)]
    counts = np.array([support + law.center - j for j in range(1, len(reached))])
    read = planned.assignment.read(planned.question, NoisyParts(parts={"count": counts}), level)
    held_by = (read.low <= support) & (support <= read.high)
    covered = sum((c for c, yes in zip(chance, held_by, strict=True) if yes), Fraction(0))
    assert level <= covered
    # Not wider than it has to be: two tails, each a whole count short at most.
    short = sum(sorted(chance, reverse=True)[:2], Fraction(0))
    assert covered <= level + short


# --- exact levels -------------------------------------------------------------------------------------------
def test_noise_is_never_rounded_down() -> None:
    """noise_std >= l2 / mu as exact numbers; what is told of it is never better than it is."""
    random = np.random.default_rng(2)
    for _ in range(200):
        square, mu_squared = int(random.integers(1, 10**6)), Fraction(int(random.integers(1, 10**6)), 10**5)
        noise: Any = gaussian((("x",), 1, square), mu_squared).mechanism
        std = Fraction(noise.noise_std)
        assert std**2 * mu_squared >= square
        assert std**2 * mu_squared <= square * (1 + Fraction(1, 10**14))
        assert Fraction(noise.bound.mu) ** 2 >= square / std**2
        assert Fraction(noise.event.noise_multiplier) ** 2 <= std**2 / square
        assert 2 * noise.exact_rho >= square / std**2
    for epsilon in (Fraction(1, 3), Fraction(7, 10), Fraction(10**30 + 1, 10**30)):
        applied = laplace((("x",), 7, 49), epsilon)
        assert Fraction(applied.mechanism.bound.epsilon) >= epsilon
        assert applied.mechanism.exact_epsilon == epsilon
        assert applied.mechanism.exact_rho >= 0
        with watched() as draws:
            applied.release({"x": np.arange(5)}, source=SeededSource(seed=1))
        # Through a float the scale would be another number.
        assert draws[0].law.noise_scale == 7 / epsilon
        assert applied.mechanism.to_dict(("x",))["noise_scale"] == str(7 / epsilon)


def test_every_mechanism_has_noise_of_its_own() -> None:
    """A ratio on two grids has two mechanisms: with one number each their noises differ, and each is drawn once."""
    noise = tuple(
        laplace(((name,), l1, l1**2), Fraction(1, 2)) for name, l1 in (("one", 9), ("two", 9), ("three", 9))
    )
    cells = {a.parts[0]: np.zeros(20, dtype=np.int64) for a in noise}

    class Plain:
        parts = ()

        def integers(self, _: Any) -> Any:
            return cells

    planned: Any = Assignment(noise=noise, price=price(epsilon=1.5), reason="")
    with watched() as draws:
        noisy = planned.run(Plain(), (), source=SeededSource(seed=9)).parts
    assert [np.size(d.values) for d in draws] == [20, 20, 20]
    found = [tuple(noisy[n]) for n in cells]
    assert len(set(found)) == 3
    # And cell by cell: no two neighbours are tied to each other.
    wide = laplace((("one",), 9, 81), Fraction(1, 100))
    drawn = wide.release({"one": np.zeros(400, dtype=np.int64)}, source=SeededSource(seed=9))["one"]
    assert len(set(drawn.tolist())) > 250


# --- a price that is split ----------------------------------------------------------------------------------
@pytest.mark.parametrize("at_most", [1, 3, 40])
def test_names_and_values_of_unknown_keys_share_epsilon_and_delta(at_most: int) -> None:
    """Gaussian values: half of epsilon and what is left of delta beside the names; by the definition of its curve."""
    unit = tacit.people("id", at_most=at_most)
    with tacit.Curator(TABLES["some"], protect=unit, schema=SCHEMA, budget=BUDGET) as held:
        (planned,) = held.preview(tacit.sum("v", by="t"), epsilon=0.2, delta=0.1).releases
    selection, (applied,) = planned.assignment.selection, planned.assignment.noise
    assert type(applied.mechanism) is RoundedGaussian
    with watched() as draws:
        applied.release({"sum": np.zeros(3, dtype=np.int64)}, source=SeededSource(seed=3))
    # A person's rows, all in one key, all at the top of 0..8.
    mu, epsilon = 8 * at_most / float(draws[0].scale), 0.1
    values = NormalDist().cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * NormalDist().cdf(
        -mu / 2 - epsilon / mu
    )
    named = Fraction(selection.delta) if isinstance(selection, OptimalSelection) else selection.delta(epsilon)
    assert isinstance(selection, OptimalSelection) is False or selection.epsilon <= Fraction(1, 10)
    assert values + float(named) <= 0.1 * (1 + 1e-9)
    assert values + float(named) > 0.09
