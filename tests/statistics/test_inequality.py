"""Theorem `inequality-bins`: moves of the parts on neighbours, enclosures by enumeration, fifty samples, refusals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

import tacit
import tacit.statistics as ask
from tacit.errors import InvalidParameter, WrongType
from tacit.guarantees import people, rows
from tacit.noise import SeededSource
from tacit.sources import Schema, category, integer, number, open_table
from tacit.statistics.inequality import PLACES, gini, lorenz

SCHEMA = Schema({"x": integer(0, 12), "g": category(["a", "b"])})
ASKED = ask.inequality("x", by="g", bins=[0, 1, 4, 12])


def parts(question, data):
    """The engine's integers, stacked."""
    table = pa.table(
        {"x": pa.array([x for x, _ in data], pa.int64()), "g": pa.array([g for _, g in data], pa.string())}
    )
    opened = open_table(table, schema=SCHEMA, unit=question.unit)
    (found,) = ask.read(opened, [question])
    opened.close()
    return np.concatenate([np.ravel(found[p.name]) for p in question.parts])


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace-one"])
def test_a_row_moves_the_places_by_one_row(neighbours):
    """Rounding once down, whatever other rows are there: never above the claim, and attained."""
    question = ASKED.on(SCHEMA, rows(neighbours=neighbours))
    claimed = question.sensitivity
    seen = [0, 0, 0]
    for rest in ([], [(2, "a")], [(2, "a"), (3, "a"), (7, "a"), (11, "b")]):
        found = {(x, g): parts(question, [*rest, (x, g)]) for x in (0, 1, 2, 3, 4, 5, 9, 12) for g in "ab"}
        ground = parts(question, rest)
        pairs = (
            itertools.combinations(found.values(), 2)
            if neighbours == "replace-one"
            else ((f, ground) for f in found.values())
        )
        for one, other in pairs:
            move = np.abs(one - other)
            seen = [
                max(a, int(b)) for a, b in zip(seen, (move.sum(), (move**2).sum(), move.max()), strict=True)
            ]
            if neighbours != "replace-one":
                assert (one - other >= 0).all()
    assert seen == [claimed.l1, claimed.l2_squared, claimed.linf]


def exact(x):
    y, n = np.sort(np.asarray(x, dtype=float)), len(x)
    return float((2 * np.arange(1, n + 1) - n - 1) @ y / (n * y.sum()))


def test_bounds_enclose_every_table_and_are_reached():
    """All tables of four rows in two bins: [0, 3] and [4, 12]."""
    low, high = np.array([0.0, 4.0]), np.array([3.0, 12.0])
    gaps = [1.0, 1.0]
    for x in itertools.combinations_with_replacement(range(13), 4):
        if not sum(x):
            continue
        place = np.array([0 if v < 4 else 1 for v in x])
        u = (np.array(x) - low[place]) / (high - low)[place]
        table = np.stack([np.bincount(place, 1 - u, 2), np.bincount(place, u, 2)])
        least, most = gini(table, low, high)
        assert least - 1e-12 <= exact(x) <= most + 1e-12
        gaps = [min(gaps[0], exact(x) - least), min(gaps[1], most - exact(x))]
        for share in (0.25, 0.5, 0.75):
            first, last = lorenz(share, table, low, high)
            true = sum(sorted(x)[: round(4 * share)]) / sum(x)
            assert first - 1e-12 <= true <= last + 1e-12
    assert gaps == pytest.approx([0, 0], abs=1e-12)


RUNS, EACH = 50, 1000


@pytest.fixture(scope="module")
def samples():
    random = np.random.default_rng(2)
    x = np.minimum(random.lognormal(10.4, 0.9, RUNS * EACH), 500_000)
    return pa.table({"run": np.repeat(np.arange(RUNS), EACH), "x": x})


def test_fifty_samples_hold_their_population(samples):
    schema = {"run": tacit.integer(0, RUNS - 1), "x": tacit.number(0, 500_000)}
    with tacit.Curator(
        samples,
        protect=tacit.rows(),
        schema=schema,
        budget=tacit.Pure(epsilon=9),
        source=SeededSource(seed=1),
    ) as curator:
        answer = curator.release(ask.inequality("x", by="run"), epsilon=1)
    table = answer.table
    big = np.sort(np.minimum(np.random.default_rng(9).lognormal(10.4, 0.9, 1_000_000), 500_000))
    sums = np.cumsum(big) / big.sum()
    truths = {("gini", ""): exact(big)}
    truths |= {("lorenz", f"{s:g}"): float(sums[int(s * big.size) - 1]) for s in (0.2, 0.4, 0.6, 0.8)}
    truths |= {("top share", f"{s:g}"): float(1 - sums[int((1 - s) * big.size) - 1]) for s in (0.1, 0.01)}
    for (measure, of), truth in truths.items():
        lines = table[(table.measure == measure) & (table.of == of)]
        assert len(lines) == RUNS
        held = int(((lines.low <= truth) & (truth <= lines.high)).sum())
        assert held >= 44, (measure, of, held)
    assert (table[table.measure == "gini"]["high"] - table[table.measure == "gini"]["low"]).median() < 0.09
    assert answer.certificate["intervals"]["declared"]


def test_an_empty_group_has_no_value():
    with tacit.Curator(
        pa.table({"x": pa.array([1, 2], pa.int64()), "g": ["a", "a"]}), protect=tacit.rows(), schema=SCHEMA,
        budget=tacit.Pure(epsilon=9), source=SeededSource(seed=1),
    ) as curator:  # fmt: skip
        found = curator.release(ask.inequality("x", by="g", bins=[0, 4, 12]), epsilon=1).estimate
        assert ((found.low >= 0) & (found.high <= 1)).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ask.inequality("x", bins=1), "bins"),
        (lambda: ask.inequality("x", top=[1.0]), "strictly between"),
        (lambda: ask.inequality("x", lorenz=[0]), "strictly between"),
        (lambda: ask.inequality("x", bins=[2, 12]).on(SCHEMA, rows()), "lowest to the highest"),
        (lambda: ask.inequality("x", bins=[0, 4, 4, 12]).on(SCHEMA, rows()), "increase"),
        (lambda: ask.inequality("x").on(SCHEMA, people("id", at_most=3)), "one row"),
        (
            lambda: ask.inequality("x", by="free").on(Schema({**SCHEMA, "free": category()}), rows()),
            "declared",
        ),
    ],
)
def test_refusals(make, words):
    with pytest.raises(InvalidParameter, match=words):
        make()
    with pytest.raises(WrongType, match="not negative"):
        ask.inequality("y").on(Schema({"y": number(-1, 1)}), rows())


def test_few_steps_have_fewer_bins_than_asked():
    question = ask.inequality("x").on(SCHEMA, rows())
    assert question.details["steps"][0] == 0
    assert question.details["steps"][-1] == 13
    assert question.sensitivity.l1 == PLACES
    assert math.prod(p.cells for p in question.parts) > 0
