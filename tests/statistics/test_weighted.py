"""Survey weights: sensitivities against all neighbours, estimates against a referee, refusals with their reasons."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import tacit
import tacit.statistics as ask
from support.naive import parts
from support.neighbours import moves
from tacit.errors import InvalidParameter, NoLaw, TooManyCells, UnknownName, WrongType
from tacit.guarantees import people, rows
from tacit.sources import Schema, category, date, flag, integer, number, open_table
from tacit.statistics import weighted
from tacit.statistics.population import (
    NoiseMoments,
    Variable,
    laplace_moments,
    part_integers,
    part_names,
    powers,
    simplex_total,
)

GAPS = Schema(
    {
        "state": category(["a", "b"]),
        "psu": category(["p", "q"]),
        "w": number(0.25, 1, spacing=0.25),
        "age": integer(-1, 2),
        "cost": integer(1, 3),
        "sick": flag(),
    }
)
FULL = Schema(
    {
        "state": category(["a", "b"], missing="a"),
        "psu": category(["p", "q"], missing="p"),
        "w": number(0.25, 1, spacing=0.25, missing=0.5),
        "age": integer(-1, 2, missing=0),
        "cost": integer(1, 3, missing=1),
        "sick": flag(missing=False),
    }
)
ROWS = [
    {"state": s, "psu": p, "w": w, "age": a, "cost": c, "sick": f}
    for s, p, (w, a, c, f) in itertools.product(
        ["a", "b"],
        ["p", "q"],
        [
            (9.0, -9, 1, False), (9.0, 2, 9, True), (0.0, 0, 2, True), (0.5, 1, 3, None), (None, 2, 3, True),
            (1.0, -1, 3, True), (1.0, 2, 0, False),
        ],
    )
]  # fmt: skip
PSU = {"psu": "psu"}
STATISTICS = {
    "mean": ask.mean("age", survey_weight="w"),
    "mean by": ask.mean("age", survey_weight="w", by="state"),
    "mean where": ask.mean("age", survey_weight="w", where="sick"),
    "proportion": ask.proportion("sick", survey_weight="w", by="state"),
    "total": ask.sum("age", survey_weight="w"),
    "count": ask.count(survey_weight="w", by="state"),
    "ratio": ask.ratio("age", "cost", survey_weight="w"),
    "mean of clusters": ask.mean("age", survey_weight="w", design=PSU, by="state"),
    "share of clusters without weights": ask.proportion("sick", design=PSU),
    "total of clusters": ask.sum("age", survey_weight="w", design=PSU),
}
PLAIN = {
    "mean": ask.mean("age"),
    "proportion": ask.proportion("sick"),
    "ratio": ask.ratio("age", "cost"),
    "mean by": ask.mean("age", by="state"),
}
UNITS = {
    "rows": rows(),
    "rows replaced": rows(neighbours="replace-one"),
    "people": people("id", at_most=2),
    "people replaced": people("id", at_most=2, neighbours="replace-one"),
}


def held(question, unit):
    """All parts together are attained; a part alone never moves by more than is claimed for it."""
    seen = moves(question, unit, ROWS)
    claimed = question.sensitivity
    assert seen[""] == [claimed.l1, claimed.l2_squared, claimed.linf]
    for part in question.parts:
        single = question.sensitivities[part.name]
        assert all(
            a <= b for a, b in zip(seen[part.name], (single.l1, single.l2_squared, single.linf), strict=True)
        )


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS.keys())
@pytest.mark.parametrize("name", STATISTICS)
def test_weighted_parts_move_by_the_largest_weight_times_one_row(name, unit):
    """Theorem `survey-weights`, by enumeration of neighbours."""
    for schema in (GAPS, FULL):
        held(STATISTICS[name].on(schema, unit), unit)


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("unit", [rows(), rows(neighbours="replace-one"), people("id", at_most=1)], ids=str)
def test_parts_that_tell_the_variance_move_as_little(name, unit):
    for schema in (GAPS, FULL):
        held(STATISTICS[name].drawn(schema, unit), unit)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("unit", [rows(), rows(neighbours="replace-one"), people("id", at_most=1)], ids=str)
def test_means_of_draws_without_weights(name, unit):
    """A public number of rows: the sum and the crossed part together move as the sum alone does."""
    for schema in (GAPS, FULL):
        question = PLAIN[name].drawn(schema, unit)
        held(question, unit)
        if unit == rows(neighbours="replace-one") and schema is FULL and name in ("mean", "proportion"):
            assert question.parts[-1].name == "rows"
            assert question.sensitivity.l1 == (9 if name == "mean" else 1)


@pytest.mark.parametrize("name", STATISTICS)
def test_the_engine_adds_up_what_the_definition_says(name):
    import pyarrow as pa

    table = open_table(pa.table({c: [r[c] for r in ROWS] for c in ROWS[0]}), schema=GAPS, unit=rows())
    for question in (STATISTICS[name].on(GAPS, rows()), STATISTICS[name].drawn(GAPS, rows())):
        (found,) = ask.read(table, [question])
        naive = parts(question, ROWS)
        for part in question.parts:
            shape = tuple(a.size for a in part.axes)
            array = np.asarray(found[part.name]).reshape(shape)
            assert array.dtype == object
            for cell in itertools.product(*map(range, shape)):
                assert array[cell] == naive[part.name].get(cell, 0), (part.name, cell)
    table.close()


def test_fine_columns_are_cut_into_levels_of_their_own_row():
    """Above 2^15 steps a level is the nearest one, of two the higher; the sum stays within the claim."""
    import pyarrow as pa

    schema = Schema({"w": number(0, 4), "x": number(0, 10)})
    w, x = [4.0, 0.3, 5.0, 1e-9], [10.0, 3.3, -1.0, 7.7]
    table = open_table(pa.table({"w": w, "x": x}), schema=schema, unit=rows())
    question = ask.mean("x", survey_weight="w").drawn(schema, rows())
    (found,) = ask.read(table, [question])
    total = 0
    for a, b in zip(w, x, strict=True):
        k, u = (
            math.floor(
                Fraction(round(Fraction(min(max(v, 0), top)) / schema[n].spacing) * 2**15, schema[n].highest)
                + Fraction(1, 2)
            )
            for v, n, top in ((a, "w", 4), (b, "x", 10))
        )
        total += 2 * k * (2**15 - k) * u * u
    assert found["light high"] == total
    assert sum(int(v) for v in found.values()) <= 4 * question.sensitivity.l1
    table.close()


# --- the referee ------------------------------------------------------------------------------------------------
REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "survey.json").read_text())
SURVEY = Schema(
    {
        "strata": category(["a", "b", "c"]),
        "psu": category([f"{s}{i}" for s in "abc" for i in range(4)]),
        "w": number(0, 4, spacing=1 / 64),
        "y": number(0, 100, spacing=Fraction(1, 256)),
        "x": number(0, 10, spacing=1 / 16),
        "g": category(["f", "m"]),
        "flag": flag(),
    }
)
Z = 1.959963984540054
STRATA = {s: [f"{s}{i}" for i in range(4)] for s in "abc"}


def surveyed(statistic, drawn=True):
    """Value and half-width without noise, at 95%."""
    import pyarrow as pa

    table = open_table(pa.table(REFERENCE["rows"]), schema=SURVEY, unit=rows())
    question = (statistic.drawn if drawn else statistic.on)(SURVEY, rows())
    (found,) = ask.read(table, [question])
    table.close()
    got = question.form.population(found, {}, 0.95)
    return got.value, got.reach


ASKED = {
    "mean": lambda **k: ask.mean("y", survey_weight="w", **k),
    "total": lambda **k: ask.sum("y", survey_weight="w", **k),
    "ratio": lambda **k: ask.ratio("y", "x", survey_weight="w", **k),
    "share": lambda **k: ask.proportion("flag", survey_weight="w", **k),
    "mean by group": lambda **k: ask.mean("y", survey_weight="w", by="g", **k),
    "total by group": lambda **k: ask.sum("y", survey_weight="w", by="g", **k),
}


@pytest.mark.parametrize("name", ASKED)
def test_estimates_and_standard_errors_of_clusters_are_the_referees(name):
    """samplics' Taylor estimates and standard errors to 1e-9; Student's t with 12 - 3 degrees of freedom."""
    from scipy.special import stdtrit

    said = REFERENCE["found"][f"{name} clusters"]
    value, reach = surveyed(ASKED[name](design={"psu": "psu", "strata": STRATA}))
    wanted = [
        list(said[k].values()) if isinstance(said[k], dict) else [said[k]] for k in ("estimate", "stderror")
    ]
    assert np.ravel(value) == pytest.approx(wanted[0], rel=1e-9)
    assert np.ravel(reach) / stdtrit(9, 0.975) == pytest.approx(wanted[1], rel=1e-9)


@pytest.mark.parametrize("name", [n for n in ASKED if not n.startswith("total")])
def test_estimates_of_independent_rows_are_the_referees(name):
    """Draws with replacement: the referee has a factor n / (n - 1), n = 48 rows of the whole sample."""
    said = REFERENCE["found"][f"{name} rows"]
    value, reach = surveyed(ASKED[name]())
    wanted = [
        list(said[k].values()) if isinstance(said[k], dict) else [said[k]] for k in ("estimate", "stderror")
    ]
    assert np.ravel(value) == pytest.approx(wanted[0], rel=1e-9)
    assert np.ravel(reach) / Z * math.sqrt(48 / 47) == pytest.approx(wanted[1], rel=1e-9)


def test_a_total_of_independent_rows_has_the_variance_of_a_sample_of_random_size():
    value, reach = surveyed(ASKED["total"]())
    said = REFERENCE["found"]["total rows"]
    w, y = (np.array(REFERENCE["rows"][n]) for n in ("w", "y"))
    assert float(value) == pytest.approx(said["estimate"], rel=1e-9)
    assert float(reach) == pytest.approx(Z * math.sqrt(float(((w * y) ** 2).sum())), rel=1e-9)
    assert reach > Z * said["stderror"]


# --- intervals --------------------------------------------------------------------------------------------------
def test_the_whole_range_where_the_noise_hides_the_divisor():
    question = ask.mean("age", survey_weight="w").drawn(GAPS, rows())
    none = {p.name: np.array([0.0, 0.0]) for p in question.parts}
    law = {p.name: laplace_moments(2.0 * float(question.sensitivity.l1) ** 2) for p in question.parts}
    got = question.form.population(none, law, 0.95)
    assert got.low.tolist() == [-1.0, -1.0]
    assert got.high.tolist() == [2.0, 2.0]
    assert np.isinf(got.reach).all()
    ratio = ask.ratio("age", "cost", survey_weight="w").drawn(GAPS, rows())
    law = {p.name: NoiseMoments(variance=1.0) for p in ratio.parts}
    got = ratio.form.population({p.name: np.array([0.0]) for p in ratio.parts}, law, 0.95)
    assert np.isneginf(got.low).all()
    assert np.isposinf(got.high).all()
    assert np.isnan(got.value).all()


def test_products_of_blocks_sum_to_at_most_the_simplex_and_give_all_moments():
    """Theorem `survey-weights` on a grid: none negative, the sum at most 1, and sums of powers come back exactly."""
    from tacit.statistics.population import moment

    for blocks in (
        ["weight", "square"],
        ["weight", "square", "square"],
        ["square", "square"],
        ["size", "line"],
    ):
        variables = [Variable(block=b, levels=4 + i) for i, b in enumerate(blocks)]
        total = simplex_total(variables)
        for place in itertools.product(*(range(v.levels + 1) for v in variables)):
            sums = {e: math.prod(x**p for x, p in zip(place, e, strict=True)) for e in powers(variables)}
            found = [int(v) for v in part_integers(variables, sums).values()]
            assert min(found) >= 0
            assert sum(found) <= total
            for e in powers(variables):
                wanted = math.prod((x / v.levels) ** p for x, v, p in zip(place, variables, e, strict=True))
                assert moment(variables, e) @ np.array(found) == pytest.approx(wanted, abs=1e-12)
    assert part_names([Variable(block="weight", levels=2)]) == ("light", "heavy")


# --- refusals ---------------------------------------------------------------------------------------------------
def test_weights_that_other_rows_decide_are_refused_with_the_reason():
    for kind in ("calibrated", "raked", "post-stratified", "non-response"):
        with pytest.raises(NoLaw, match="depends on all rows"):
            ask.mean("age", survey_weight="w", design={"weights": kind})
    with pytest.raises(UnknownName, match="weights in design"):
        ask.mean("age", survey_weight="w", design={"weights": "lucky"})
    assert ask.mean("age", survey_weight="w", design={"weights": "design"}).survey_weight == "w"


@pytest.mark.parametrize(
    ("design", "words"),
    [
        ({"strata": "state"}, "primary sampling units, too"),
        ({"psu": ""}, "psu"),
        ({"cluster": "psu"}, "word in design"),
        ("psu", "be a table"),
        ({"psu": "psu", "strata": {"s": "p"}}, "list primary"),
    ],
)
def test_designs_that_are_none(design, words):
    with pytest.raises((InvalidParameter, UnknownName), match=words):
        ask.mean("age", survey_weight="w", design=design)


@pytest.mark.parametrize(
    ("strata", "words"),
    [
        ({"s": ["p"], "t": ["q"]}, "two primary sampling units"),
        ({"s": ["p", "q", "p"]}, "every unit once"),
        ({"s": ["p", "z"]}, "unit of stratum"),
        ({"s": ["q"]}, "list every declared"),
        ("psu", "other columns"),
    ],
)
def test_strata_that_do_not_fit_the_declared_units(strata, words):
    with pytest.raises((InvalidParameter, UnknownName), match=words):
        ask.mean("age", design={"psu": "psu", "strata": strata}).on(GAPS, rows())


def test_a_design_of_more_units_than_can_be_listed(monkeypatch):
    """An id with declared bounds has billions of values: refused before any list of them is made."""
    wide = Schema({**GAPS, "code": integer(0, 10**12), "few": integer(0, 3), "town": category(["t", "u"])})
    with pytest.raises(TooManyCells):
        ask.mean("age", design={"psu": "code"}).on(wide, rows())
    monkeypatch.setattr(weighted, "MOST_UNITS", 8)
    split = {"psu": "few", "strata": "town"}
    cells = ask.mean("age", design=split).on(wide, rows()).cells
    assert cells is not None
    monkeypatch.setattr(weighted, "MOST_UNITS", 4)
    ask.mean("age", design={"psu": "few"}).on(wide, rows())
    with pytest.raises(TooManyCells):
        ask.mean("age", design=split).on(wide, rows())
    monkeypatch.setattr(weighted, "MOST_UNITS", 3)
    with pytest.raises(TooManyCells):
        ask.mean("age", design={"psu": "few"}).on(wide, rows())


def test_other_refusals():
    below = Schema({**GAPS, "w": number(-1, 4), "born": date("2000-01-01", "2001-01-01"), "free": category()})
    with pytest.raises(InvalidParameter, match="largest weight"):
        ask.mean("age", survey_weight="w").on(below, rows())
    with pytest.raises(WrongType, match="two different bounds"):
        ask.sum("born", survey_weight="cost").on(below, rows())
    with pytest.raises(InvalidParameter, match="keys are declared"):
        ask.mean("age", design={"psu": "free"}).on(below, rows())
    with pytest.raises(InvalidParameter, match="one row"):
        ask.mean("age", survey_weight="w").drawn(GAPS, people("id", at_most=2))
    assert (
        ask.mean("age", survey_weight="w", design=PSU).drawn(GAPS, people("id", at_most=2)).details["sample"]
    )
    with pytest.raises(InvalidParameter, match="survey_weight"):
        ask.sum("age", design=PSU)
    with pytest.raises(InvalidParameter, match="survey_weight"):
        ask.mean("age", design={})
    with pytest.raises(InvalidParameter, match="left out"):
        ask.count(survey_weight="w", of="people")  # type: ignore[call-overload]
    with pytest.raises(InvalidParameter, match="another column"):
        ask.ratio("age", "age", survey_weight="w")
    with pytest.raises(InvalidParameter, match="sampling must be declared"):
        ask.sum("age").drawn(GAPS, rows())


def test_the_condition_on_weights_stands_in_the_guarantee_and_the_sample_in_the_certificate():
    import pyarrow as pa

    data = pa.table({c: [r[c] for r in ROWS] for c in ROWS[0]})
    with tacit.Curator(data, protect=rows(), schema=GAPS, budget=tacit.Pure(epsilon=9)) as curator:
        found = curator.release(tacit.query(ask.mean("age", survey_weight="w"), sampling=True, epsilon=1))
        assert "function of its own row" in found.certificate["guarantee"]["declared"][0]
        assert found.certificate["intervals"]["declared"] == [
            "rows are drawn independently, and each stands for as many members of the population as its weight says"
        ]
        plain = curator.release(ask.mean("age", survey_weight="w"), epsilon=1)
        assert plain.certificate["intervals"]["declared"] == []
        assert plain.certificate["guarantee"]["declared"]
        assert {"w", "age"} <= set(plain.certificate["schema"])
