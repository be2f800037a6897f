"""Theorem `clipping-told`: moves on neighbours, allowances against laws with known tails, fifty samples, refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

import tacit
import tacit.statistics as ask
from tacit.errors import InvalidParameter, NoLaw, UnitMismatch, UnknownName, WrongType
from tacit.guarantees import people, rows
from tacit.noise import SeededSource
from tacit.sources import Schema, category, integer, number, open_table

GAPS = Schema({"x": integer(0, 3), "g": category(["a", "b"])})
FULL = Schema({"x": integer(0, 3, missing=0), "g": category(["a", "b"], missing="a")})


def parts(question, data):
    table = pa.table(
        {"x": pa.array([x for x, _ in data], pa.float64()), "g": pa.array([g for _, g in data], pa.string())}
    )
    opened = open_table(table, schema=question.schema, unit=question.unit)
    (found,) = ask.read(opened, [question])
    opened.close()
    return np.concatenate([np.ravel(found[p.name]) for p in question.parts if not p.exact]), found


@pytest.mark.parametrize("schema", [GAPS, FULL], ids=["gaps", "full"])
@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace-one"])
@pytest.mark.parametrize("by", [None, "g"])
def test_moves_are_never_above_the_claim(neighbours, by, schema):
    question = ask.mean("x", by=by, beyond={"maximum": 9}).drawn(schema, rows(neighbours=neighbours))
    claimed, seen = question.sensitivity, [0, 0, 0]
    found = [parts(question, [(x, g)])[0] for x in (0, 1, 2, 3, 99, float("inf"), None) for g in "ab"]
    ground = parts(question, [])[0]
    replaced = neighbours == "replace-one"
    for one, other in itertools.combinations(found, 2) if replaced else ((f, ground) for f in found):
        move = np.abs(one - other)
        seen = [max(a, int(b)) for a, b in zip(seen, (move.sum(), (move**2).sum(), move.max()), strict=True)]
    assert all(a <= b for a, b in zip(seen, (claimed.l1, claimed.l2_squared, claimed.linf), strict=True))
    if by == "g" or not replaced:
        assert seen == [claimed.l1, claimed.l2_squared, claimed.linf]


def test_the_number_above_is_counted_from_stored_values():
    question = ask.mean("x", by="g", where="x >= 1", beyond={"pareto": 2}).drawn(GAPS, rows())
    data = [
        (3, "a"),
        (3.2, "a"),
        (99, "a"),
        (99, "b"),
        (float("nan"), "b"),
        (None, "a"),
        (float("inf"), "b"),
        (0, "b"),
    ]
    _, found = parts(question, data)
    assert (found["outside"] // question.details["steps"]).tolist() == [2, 2]


N, RUNS = 1500, 50


@pytest.fixture(scope="module")
def samples():
    random = np.random.default_rng(4)
    return pa.table({"run": np.repeat(np.arange(RUNS), N), "x": random.lognormal(10.4, 0.9, N * RUNS)})


MEAN = float(np.exp(10.4 + 0.9**2 / 2))
TOP = float(np.exp(10.4 + 0.9 * 2.326))


@pytest.mark.parametrize(
    "beyond", [{"pareto": 2}, {"mean_square": float(np.exp(20.8 + 2 * 0.81))}, {"maximum": 5e6}], ids=str
)
def test_fifty_samples_hold_the_mean_before_clamping(beyond, samples):
    schema = {"run": tacit.integer(0, RUNS - 1), "x": tacit.number(0, TOP)}
    with tacit.Curator(
        samples,
        protect=tacit.rows(),
        schema=schema,
        budget=tacit.Pure(epsilon=99),
        source=SeededSource(seed=1),
    ) as curator:
        answer = curator.release(
            tacit.query(ask.mean("x", by="run", beyond=beyond), sampling=True, epsilon=1)
        )
        plain = curator.release(tacit.query(ask.mean("x", by="run"), sampling=True, epsilon=1))
        alone = curator.release(ask.mean("x", by="run", beyond=beyond), epsilon=1)
    held = [int(((r.estimate.low <= MEAN) & (r.estimate.high >= MEAN)).sum()) for r in (answer, plain)]
    assert held[0] >= 47
    assert held[0] >= held[1]
    assert answer.certificate["intervals"]["declared"][1]
    widths = [float(np.median(r.estimate.high - r.estimate.low)) for r in (alone, answer)]
    assert widths[0] < widths[1]
    said = alone.certificate["intervals"]
    assert len(said["declared"]) == 1
    assert "population" not in said["cover"]
    assert said["do_not_cover"][0].startswith("values below")
    assert "before clamping" in str(alone)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: ask.mean("x", beyond={}), NoLaw, "every private interval"),
        (lambda: ask.mean("x", beyond={"tail": 2}), UnknownName, "beyond"),
        (lambda: ask.mean("x", beyond={"pareto": 1}), InvalidParameter, "above 1"),
        (lambda: ask.mean("x", beyond={"pareto": 2, "maximum": 9}), InvalidParameter, "one fact"),
        (
            lambda: ask.mean("x", beyond={"maximum": 2}).on(GAPS, rows()),
            InvalidParameter,
            "above the declared",
        ),
        (lambda: ask.mean("x", beyond={"pareto": 2}).on(GAPS, people("id", at_most=1)), UnitMismatch, "rows"),
        (lambda: ask.mean("x", beyond={"pareto": 2}, survey_weight="w"), InvalidParameter, "without weights"),
        (
            lambda: ask.mean("x", beyond={"pareto": 2}).on(
                Schema({"x": number(0, 1, outside="missing")}), rows()
            ),
            WrongType,
            "clamp",
        ),
    ],
)
def test_refusals(make, error, words):
    with pytest.raises(error, match=words):
        make()
