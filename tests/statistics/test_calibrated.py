"""Theorem `calibrated-totals`: moves of all neighbours, estimates of R, the formula of the variance, coverage."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
import tacit.statistics as ask
from tacit.errors import EmptyComposition, InvalidParameter, MissingBounds, UnknownName, WrongType
from tacit.guarantees import group_of, people, rows
from tacit.noise import SeededSource
from tacit.sources import Schema, category, date, flag, integer, number, open_table
from tacit.statistics.population import NoiseMoments

Z = 1.959963984540054
SMALL = Schema(
    {
        "y": integer(0, 2), "x": integer(0, 2), "v": flag(), "w": number(0, 1, spacing=0.25),
        "g": category(["a", "b"]), "id": integer(0, 63),
    }
)  # fmt: skip
ROWS = [
    {"y": y, "x": x, "v": v, "w": w, "g": "a"}
    for y, x, v, w in itertools.product((-3, 1, 2), (0, 1, 5), (False, True), (0.0, 0.5, 9.0))
] + [{"y": 2, "x": 0, "v": True, "w": 1.0, "g": "b"}, {"y": None, "x": 1, "v": True, "w": 1.0, "g": "a"}]
TYPES = {
    "y": pa.int64(),
    "x": pa.int64(),
    "v": pa.bool_(),
    "w": pa.float64(),
    "g": pa.string(),
    "id": pa.int64(),
}
ASKED = {
    "one column": ask.calibrated("y", population=10, totals={"x": 9}, survey_weight="w"),
    "one column, no weights": ask.calibrated("y", population=10, totals={"v": 5}),
    "two columns": ask.calibrated("y", population=10, totals={"x": 9, "v": 5}, survey_weight="w"),
    "two columns, no weights": ask.calibrated("y", population=10, totals={"v": 5, "x": 9}, where="g = 'a'"),
    "by": ask.calibrated(
        "y", by="g", population={"a": 4, "b": 6}, totals={"x": {"b": 5, "a": 4}}, survey_weight="w"
    ),
}


def integers(question: Any, *, by_row: bool = False) -> np.ndarray[Any, Any]:
    """The engine's whole numbers: all parts in one vector, or a line for each row of a table of it alone."""
    lines = [{**row, "id": i} for i, row in enumerate(ROWS)]
    table = pa.table({n: pa.array([r[n] for r in lines], t) for n, t in TYPES.items()})
    with open_table(table, schema=SMALL, unit=question.unit) as opened:
        (found,) = ask.read(opened, [question])
    if not by_row:
        return np.concatenate([np.ravel(found[p.name]) for p in question.parts]).astype(object)
    held = [np.asarray(found[p.name]).reshape(64, -1) for p in question.parts]
    return np.concatenate(held, axis=1).astype(object)[: len(ROWS)]


@pytest.mark.parametrize("name", ASKED)
def test_no_row_moves_the_sums_by_more_than_is_said(name: str) -> None:
    """Sums over rows: what one row adds, and all differences of two."""
    question = ASKED[name].on(SMALL, rows())
    keys = [str(i) for i in range(64)]
    alone = replace(
        ASKED[name], by=("id",), population=tuple((k, 10.0) for k in keys),
        totals=tuple((n, tuple((k, 5.0) for k in keys)) for n, _ in ASKED[name].totals),
    )  # fmt: skip
    each = integers(alone.on(SMALL, rows()), by_row=True)
    if name == "by":
        each = np.array(
            [np.concatenate([e * (r["g"] == k) for k in "ab"]) for e, r in zip(each, ROWS, strict=True)]
        )
    elif name == "two columns, no weights":
        each = each * np.array([[r["g"] == "a"] for r in ROWS]).astype(object)
    together = integers(question).reshape(len(question.parts), -1)
    parts = each.reshape(
        len(ROWS), -1, len(question.parts), each.shape[1] // len(question.parts) // (1 + (name == "by"))
    )
    assert (parts.sum(axis=0).transpose(1, 0, 2).reshape(len(question.parts), -1) == together).all()
    claimed = question.sensitivity
    sizes = [(np.abs(e).sum(), (e**2).sum(), np.abs(e).max()) for e in each]
    assert max(s[0] for s in sizes) == claimed.l1
    assert max(s[1] for s in sizes) == claimed.l2_squared
    assert max(s[2] for s in sizes) == claimed.linf
    replaced = ASKED[name].on(SMALL, rows(neighbours="replace-one")).sensitivity
    pairs = [np.abs(a - b) for a, b in itertools.combinations(each, 2)]
    assert max(p.sum() for p in pairs) <= replaced.l1 == 2 * claimed.l1
    assert 0.6 * replaced.l2_squared <= max((p**2).sum() for p in pairs) <= replaced.l2_squared
    assert replaced.l2_squared == 2 * claimed.l2_squared
    assert max(p.max() for p in pairs) <= replaced.linf
    two = ASKED[name].on(SMALL, group_of(rows(), size=2)).sensitivity
    assert (two.l1, two.l2_squared) == (2 * claimed.l1, 4 * claimed.l2_squared)


@pytest.mark.parametrize("columns", [2, 3, 5, 12])
def test_two_rows_never_lie_in_opposite_directions(columns: int) -> None:
    """The product of two rows' entries is a form in z_i z_i': the squares that are claimed need it positive."""

    def times(i: int, j: int) -> int:
        return 3 if i == j == 0 else 2 if 0 in (i, j) else 1

    size = columns + 2
    form = np.array([[times(i, j) ** 2 / (1 + (i != j)) for j in range(size)] for i in range(size)])
    assert np.linalg.eigvalsh(form)[0] > 0
    schema = Schema({f"c{i}": number(-1, 1) for i in range(columns + 1)})
    asked = ask.calibrated("c0", population=1, totals={f"c{i}": 0 for i in range(1, columns + 1)})
    moved = asked.on(schema, rows()).sensitivity
    each = [times(i, j) for i, j in itertools.combinations_with_replacement(range(size), 2)]
    assert moved.l2_squared == sum(t * t for t in each) * Fraction(2**72)
    assert moved.l1 == sum(each) * Fraction(2**36)


# --- without noise: R's survey package ---------------------------------------------------------------------------
REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "survey.json").read_text())
SURVEY = Schema(
    {
        "w": number(0, 4, spacing=1 / 64),
        "y": number(0, 100, spacing=Fraction(1, 256)),
        "x": number(0, 10, spacing=1 / 16),
        "g": category(["f", "m"]),
        "flag": flag(),
    }
)
# R 4.2.2, survey 4.1-1: svytotal(~y, calibrate(svydesign(ids = ~1, weights = ~w), ~x, c(N, X), calfun = "linear")).
WITH_R = {
    "x": (ask.calibrated("y", population=60, totals={"x": 310}, survey_weight="w"), [1718.7586842726223]),
    "x and flag": (
        ask.calibrated("y", population=60, totals={"x": 310, "flag": 25}, survey_weight="w"), [1681.3351098806809],
    ),
    "x, no weights": (ask.calibrated("y", population=60, totals={"x": 310}), [1706.0139682762281]),
    "x by g": (
        ask.calibrated(
            "y", by="g", population={"f": 34, "m": 26}, totals={"x": {"f": 180, "m": 130}}, survey_weight="w"
        ),
        [861.14038844813967, 825.40737532899186],
    ),
}  # fmt: skip


def without_noise(statistic: Any) -> np.ndarray[Any, Any]:
    """Value, low, high and half-width of every line."""
    with open_table(pa.table(REFERENCE["rows"]), schema=SURVEY, unit=rows()) as table:
        question = statistic.on(SURVEY, rows())
        (found,) = ask.read(table, [question])
    return np.array(statistic.answers(question, {}, found, 0.95)).T.reshape(-1, 3, 4)


@pytest.mark.parametrize("name", WITH_R)
def test_without_noise_it_is_rs_calibrated_total(name: str) -> None:
    statistic, totals = WITH_R[name]
    found = without_noise(statistic)
    # `y` and `flag` have no own steps in the products of several columns: 2^15 levels, of y 25,600 steps.
    near = 1e-9 if name != "x and flag" else 1e-6
    assert found[:, 1, 0] == pytest.approx(totals, rel=near)
    members = [60] if name != "x by g" else [34, 26]
    assert found[:, 0, 0] * members == pytest.approx(totals, rel=near)
    w = np.array(REFERENCE["rows"]["w"]) if "no weights" not in name else np.ones(48)
    if name != "x by g":
        assert found[0, 2] == pytest.approx([w.sum(), w.sum(), w.sum(), 0.0], rel=1e-12)


def test_the_variance_is_its_formula() -> None:
    """Sum of w^2 e^2 times the mean square of g'z, and the rows less columns; from the rows themselves."""
    w, x, y = (np.array(REFERENCE["rows"][n]) for n in ("w", "x", "y"))
    z = np.column_stack([np.ones(48), x])
    a = (z * w[:, None]).T @ z
    e = y - z @ np.linalg.solve(a, (z * w[:, None]).T @ y)
    g = z @ np.linalg.solve(a, np.array([60.0, 310.0]))
    free = 1 - (w**2).sum() / w.sum() ** 2
    variance = (w * g**2).sum() / w.sum() * (w**2 * e**2).sum() / free
    found = without_noise(WITH_R["x"][0])
    assert found[0, 1, 3] == pytest.approx(Z * math.sqrt(variance), rel=1e-9)


# --- with noise --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("columns", [1, 3])
def test_the_noise_has_the_stated_spread(columns: int, weighted: bool) -> None:
    """Noise of a known size on one table, many times: the spread of the answer, and the half-widths that are told."""
    random = np.random.default_rng(3)
    names = [f"x{i}" for i in range(columns)]
    schema = Schema({**{n: integer(0, 100) for n in (*names, "y")}, "w": number(0, 4, spacing=0.25)})
    n = 4000
    x = random.integers(0, 101, (n, columns))
    y = np.clip(x.mean(axis=1) + random.integers(-30, 31, n), 0, 100).astype(np.int64)
    table = pa.table(
        {**{m: x[:, i] for i, m in enumerate(names)}, "y": y, "w": random.integers(1, 17, n) / 4}
    )
    statistic = ask.calibrated(
        "y", population=n, totals=dict.fromkeys(names, 52.0 * n), survey_weight="w" if weighted else None
    )
    question = statistic.on(schema, rows())
    with open_table(table, schema=schema, unit=rows()) as opened:
        (exact,) = ask.read(opened, [question])
    law = tacit.mechanisms.RoundedGaussian.for_target(
        epsilon=1,
        delta=1e-6,
        sensitivity=tacit.mechanisms.L2.root(question.sensitivity.l2_squared),
        dimension=60,
    )
    held = {p.name: law for p in question.parts}
    alone = np.array(statistic.answers(question, {}, exact, 0.95))[:, 0]
    values, halves = [], []
    for _ in range(400):
        noisy = {
            k: v + np.rint(random.normal(0, float(law.noise_std), np.shape(v))) for k, v in exact.items()
        }
        answer = np.array(statistic.answers(question, held, noisy, 0.95))[:, 0]
        values.append(answer[0])
        halves.append(answer[3])
    told = math.sqrt(float(np.mean(np.square(halves))) - alone[3] ** 2) / Z
    assert np.mean(values) == pytest.approx(alone[0], abs=4 * np.std(values) / 20)
    assert 0.9 * np.std(values) < told < 1.6 * np.std(values)


SCHEMA = {
    "run": tacit.integer(0, 49), "x": tacit.number(0, 10), "z": tacit.number(0, 1), "y": tacit.number(0, 100),
    "w": tacit.number(0, 4),
}  # fmt: skip


@pytest.fixture(scope="module")
def samples() -> tuple[pa.Table, float, dict[str, float]]:
    """Fifty samples with informative weights, the mean of the population, and the public means."""
    random = np.random.default_rng(8)

    def drawn(n: int) -> dict[str, Any]:
        x, z = 10 * random.beta(2, 2, n), random.random(n)
        y = np.clip(5 + 7 * x + 10 * z + random.normal(0, 8, n), 0, 100)
        w = np.clip(np.exp(random.normal(0, math.sqrt(0.5), n) + 0.01 * (y - 45)), 0.25, 4)
        return {"x": x, "z": z, "y": y, "w": w}

    big = drawn(2_000_000)
    share = big["w"] / big["w"].sum()
    public = {n: float(share @ big[n]) for n in ("x", "z")}
    table = pa.table({"run": np.repeat(np.arange(50), 3000), **drawn(150_000)})
    return table, float(share @ big["y"]), public


@pytest.mark.parametrize(
    ("totals", "price"), [(["x"], {"epsilon": 1}), (["x", "z"], {"epsilon": 1, "delta": 1e-6})]
)
def test_fifty_samples_hold_their_population(
    samples: Any, totals: list[str], price: dict[str, float]
) -> None:
    table, truth, public = samples
    keys = [str(run) for run in range(50)]
    asked = ask.calibrated(
        "y", by="run", survey_weight="w", population=dict.fromkeys(keys, 9000.0),
        totals={n: dict.fromkeys(keys, 9000.0 * public[n]) for n in totals},
    )  # fmt: skip
    with tacit.Curator(
        table, protect=tacit.rows(), schema=SCHEMA, budget=tacit.Approximate(epsilon=9, delta=1e-5), ledger=None,
        source=SeededSource(seed=4),
    ) as curator:  # fmt: skip
        preview = curator.preview(tacit.query(asked, rows=3000), **price)
        release = curator.release(tacit.query(asked, rows=3000), **price)
        found = release.table[release.table["measure"] == "mean"]
        assert ((found["low"] <= truth) & (found["high"] >= truth)).sum() >= 43
        assert curator.spent.epsilon == preview.charged.bound.epsilon == 1
    said = release.certificate["intervals"]["declared"]
    assert "each stands for as many members" in said[0]
    assert "totals that were given" in said[1]
    if totals == ["x"]:
        # Without calibration and without noise the half-width is above this.
        w, y = (np.array(table.slice(0, 3000)[n]) for n in ("w", "y"))
        mean = (w @ y) / w.sum()
        plain = Z * math.sqrt(((w * (y - mean)) ** 2).sum()) / w.sum()
        assert ((found["high"] - found["low"]) / 2).mean() < 0.93 * plain


def test_where_noise_hides_the_rows_the_whole_range_is_told() -> None:
    statistic = ASKED["one column"]
    question = statistic.on(SMALL, rows())
    none = {p.name: np.array(0) for p in question.parts}
    value, low, high, reach = statistic._from(question, none, NoiseMoments(variance=1e18), 0.95)
    assert (value[0], low[0], high[0]) == (1.0, 0.0, 2.0)
    assert (low[1], high[1]) == (0.0, 20.0)
    assert math.isinf(reach[0])


def test_a_singular_design_has_a_value_and_its_interval() -> None:
    """A column that does not vary, and one that is another: any slopes are right."""
    schema = Schema({"y": integer(0, 10), "x": integer(0, 10), "v": integer(0, 10), "c": integer(0, 10)})
    random = np.random.default_rng(2)
    x = random.integers(0, 11, 3000)
    y = np.clip(x + random.integers(-2, 3, 3000), 0, 10)
    frame = pa.table({"y": y, "x": x, "v": x, "c": np.full(3000, 4)})
    for totals in (
        {"c": 12_000.0},
        {"x": float(x.sum()), "v": float(x.sum())},
        {"x": float(x.sum()), "c": 12_000.0},
    ):
        with tacit.Curator(
            frame, protect=tacit.rows(), schema={n: schema[n] for n in frame.column_names}, ledger=None,
            budget=tacit.Approximate(epsilon=9, delta=1e-5), source=SeededSource(seed=1),
        ) as curator:  # fmt: skip
            asked = ask.calibrated("y", population=3000, totals=totals)
            found = curator.release(asked, epsilon=1, delta=1e-6).table
        assert found["low"][0] < y.mean() < found["high"][0]
        assert found["high"][0] - found["low"][0] < 2


# --- what is refused ---------------------------------------------------------------------------------------------
WIDE = Schema(
    {
        "y": number(0, 100), "x": number(0, 10), "w": number(0, 4), "free": number(),
        "day": date("2020-01-01", "2021-01-01"),
        "g": category(["a", "b"]), "h": category(), "below": number(-1, 1),
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("words", "error", "match"),
    [
        ({"totals": {}}, EmptyComposition, "public totals"),
        ({"totals": 5}, InvalidParameter, "totals"),
        ({"totals": {"y": 5}}, InvalidParameter, "different columns"),
        ({"totals": {"w": 5}, "survey_weight": "w"}, InvalidParameter, "different columns"),
        ({"totals": {"x": "much"}}, InvalidParameter, "a number"),
        ({"totals": {"x": math.nan}}, InvalidParameter, "a number"),
        ({"totals": {"x": {}}}, InvalidParameter, "each key"),
        ({"totals": {f"c{i}": 1 for i in range(13)}}, InvalidParameter, "at most 12"),
        ({"totals": {"x": 200}}, InvalidParameter, "within the declared bounds"),
        ({"totals": {"x": -1}}, InvalidParameter, "within the declared bounds"),
        ({"population": 0}, InvalidParameter, "population"),
        ({"population": -5}, InvalidParameter, "population"),
        ({"population": {"a": 5, "b": 5}}, UnknownName, "key in population"),
        ({"by": "g"}, InvalidParameter, "for each key"),
        ({"by": "g", "population": {"a": 5}, "totals": {"x": {"a": 9, "b": 9}}}, InvalidParameter, "each declared key"),
        ({"by": "g", "population": {"a": 5, "b": 5, "c": 1}}, UnknownName, "key in population"),
        ({"by": "h", "population": {"a": 5}}, InvalidParameter, "declared"),
        ({"by": ["g", "h"]}, InvalidParameter, "one column"),
        ({"totals": {"free": 5}}, MissingBounds, "free"),
        ({"totals": {"g": 5}}, WrongType, "g"),
        ({"totals": {"day": 5}}, WrongType, "day"),
        ({"totals": {"nothing": 5}}, UnknownName, "nothing"),
        ({"survey_weight": "below"}, InvalidParameter, "weight"),
        ({"survey_weight": ""}, InvalidParameter, "survey_weight"),
    ],
)  # fmt: skip
def test_what_is_refused(words: dict[str, Any], error: type[Exception], match: str) -> None:
    given: dict[str, Any] = {"population": 10, "totals": {"x": 50}} | words
    with pytest.raises(error, match=match):
        ask.calibrated("y", **given).on(WIDE, rows())


def test_people_with_several_rows_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="one row"):
        ask.calibrated("y", population=10, totals={"x": 50}).on(WIDE, people("id", at_most=2))


def test_two_spellings_are_one_question() -> None:
    one = ask.calibrated("y", by="g", population={"a": 4, "b": 6}, totals={"x": {"a": 9, "b": 8}})
    other = ask.calibrated("y", by=["g"], population={"b": 6.0, "a": 4}, totals={"x": {"b": 8, "a": 9}})
    assert one == other
    assert one.to_dict() == other.to_dict()
    both = ask.calibrated("y", population=10, totals={"x": 50, "below": 0})
    assert both == ask.calibrated("y", population=10, totals={"below": 0, "x": 50})
