"""Releases given random data: what is exact, what is charged, what is said, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.errors import BudgetExceeded, InvalidParameter, NoLaw, TacitError
from tacit.guarantees import Always, Guarantee, Pure, RandomData

from .random_rows import ADD, REPLACE, SCHEMA, curator, planned, rows


# --- what comes out --------------------------------------------------------------------------------------
def test_empty_cells_are_exact_and_the_others_have_noise() -> None:
    with curator() as one:
        made = one.release(tacit.count(by="c"), epsilon=0.2, given={"random_data": 0.1})
    true = np.bincount(np.asarray(rows()["c"]), minlength=400)
    table = made.table
    empty = true == 0
    assert (table.value[empty] == 0).all()
    assert (table.low[empty] == 0).all() and (table.high[empty] == 0).all()  # noqa: PT018
    noisy = table[~empty]
    assert (
        noisy.value != true[~empty]
    ).sum() >= 12  # P[noise = 0] is about 1/20: 5 of 16 zeros have P < 1e-3
    assert ((noisy.low >= 1) & (noisy.low <= noisy.value) & (noisy.value <= noisy.high)).all()
    said = made.certificate["random_data"]
    assert said | {"sentence": ""} == {
        "gamma": "1/10", "rows": 8000, "exact_cells": 384, "cells": 400, "exact_below": 1, "sentence": "",
    }  # fmt: skip


def test_small_cells() -> None:
    data = pa.table({"c": np.repeat([0, 1, 2, 3, 4], [1, 9, 10, 11, 7969])})
    given = {"random_data": 0.8, "small_cells": True}  # 2 k t <= gamma n: t <= 8
    budget = Guarantee(bound=Pure(epsilon=1.0), unit=REPLACE, condition=RandomData(gamma=0.8))
    with tacit.Curator(data, protect=REPLACE, schema={"c": SCHEMA["c"]}, budget=budget) as one:
        made = one.release(tacit.count(by="c"), epsilon=0.01, given=given)
    assert made.certificate["random_data"]["exact_below"] == 8
    assert made.table.value[0] == 1
    assert (made.table.high - made.table.low)[0] == 0
    assert ((made.table.high - made.table.low)[1:5] > 100).all()
    assert made.table.value[5:].sum() == 0


@pytest.mark.parametrize("of", ["f", "sure"])
def test_a_proportion(of: str) -> None:
    """`sure` is never missing, so that n is public and both tails are exact; of `f` the two counts are cells."""
    true = np.asarray(rows()[of]).sum()
    with curator(unit=REPLACE) as one:
        made = one.release(tacit.proportion(of), epsilon=0.2, given={"random_data": 0.1})
        assert made.planned.assignment.theorem == ("random-histogram" if of == "f" else "random-proportion")
    if of == "sure":
        assert made.value == true / 8000
        assert made.interval == (made.value, made.value)
    else:
        assert made.noisy.parts["yes"][()] == true
        assert made.interval[0] <= true / 8000 <= made.interval[1]
        assert made.interval[1] - made.interval[0] < 2e-5
    with curator(unit=REPLACE) as one:  # the other tail: not-f is common, and n - c is small
        other = one.release(tacit.proportion("not sure"), epsilon=0.2, given={"random_data": 0.1})
        assert other.value == 1 - np.asarray(rows()["sure"]).sum() / 8000


def test_projection_keeps_exact_cells_and_the_public_total() -> None:
    with curator() as one:
        made = one.release(tacit.count(by="all"), epsilon=0.05, given={"random_data": 0.1}, consistent=True)
    assert made.table.value.sum() == 8000
    assert made.table.value[2] == 0
    assert (made.table.low <= made.table.value).all()


def test_rows_in_no_cell_count_as_rows() -> None:
    data = pa.table({"k": ["a"] * 10 + [None] * 40 + ["no such key"] * 50})
    budget = Guarantee(bound=Pure(epsilon=1.0), unit=REPLACE, condition=RandomData(gamma=0.1))
    with tacit.Curator(data, protect=REPLACE, schema={"k": SCHEMA["k"]}, budget=budget) as one:
        made = one.release(tacit.count(by="k"), epsilon=0.5, given={"random_data": 0.1})
    assert made.certificate["random_data"]["rows"] == 100
    assert made.table.value[1:].tolist() == [0, 0]
    assert made.certificate["random_data"]["exact_cells"] == 2


# --- falling back ----------------------------------------------------------------------------------------
def test_too_many_cells_fall_back_to_differential_privacy_and_say_so() -> None:
    for rows_, falls in ((8000, False), (7999, True)):
        plan = planned(tacit.count(by="c"), given={"random_data": 0.1, "rows": rows_})
        one = plan.releases[0]
        assert (plan.gamma == 0) is falls
        assert isinstance(one.guarantee.condition, Always) is falls
        assert ("2k = 800 is more than gamma n = 799.9" in one.assignment.reason) is falls
        assert ("gamma = 0 is spent" in str(plan)) is falls
    plan = planned(tacit.count(by="c"), unit=ADD, given={"random_data": 0.1, "rows": 3999})
    assert plan.gamma == 0
    assert "k = 400 is more than gamma n = 399.9" in str(plan)


def test_without_a_declared_number_the_public_one_decides() -> None:
    for n, exact in ((8000, 384), (7999, 0)):
        with curator(data=rows(n)) as one:
            made = one.release(tacit.count(by="c"), epsilon=0.2, given={"random_data": 0.1})
            assert made.certificate["random_data"]["exact_cells"] == exact
            assert one.standing[0].condition == RandomData(gamma=0.1)
        assert ("No cell may be exact" in str(made)) is (exact == 0)


@pytest.mark.parametrize(
    ("unit", "n", "exact"), [(REPLACE, 8000, 1), (REPLACE, 7999, 0), (ADD, 7999, 1), (ADD, 7998, 0)]
)
def test_a_table_with_fewer_rows_than_declared_gets_noise_everywhere(unit: Any, n: int, exact: int) -> None:
    """Of two neighbours under add-or-remove one may have a row less than declared: both are treated alike."""
    given = {"random_data": 0.1, "rows": 8000}
    with curator(data=rows(n), unit=unit) as one:
        made = one.release(tacit.count(by="c"), epsilon=0.2, given=given)
    assert made.certificate["random_data"]["exact_cells"] == 384 * exact
    assert ("fewer rows than the 8,000" in str(made)) is (exact == 0)
    if unit is ADD:
        assert made.certificate["random_data"]["rows"] == 8000 * exact, "the true number is no part of it"


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("unit", [REPLACE, ADD])
def test_tables_with_next_to_no_rows(unit: Any, n: int) -> None:
    given = {"random_data": 0.1} if unit is REPLACE else {"random_data": 0.1, "rows": 8000}
    for asked in (tacit.count(by="c"), tacit.count(where="f"), tacit.proportion("f")):
        with curator(data=rows(8000)[:n], unit=unit) as one:
            made = one.release(asked, epsilon=0.2, given=given)
            assert made.certificate["random_data"]["exact_cells"] == 0


# --- what is charged -------------------------------------------------------------------------------------
def test_gamma_is_divided_by_weight_and_adds_up_exactly() -> None:
    asks = [
        tacit.query(tacit.count(by="k"), weight=2),
        tacit.query(tacit.count(where="f")),
        tacit.query(tacit.mean("c")),
        tacit.query(tacit.count(by="all"), given={"random_data": 0.02}),
        tacit.query(tacit.count(by="all"), given="always", name="plain"),
    ]
    plan = planned(*asks, given={"random_data": 0.3, "rows": 8000})
    gammas = [r.guarantee.condition.gamma if r.guarantee.condition != Always() else 0 for r in plan.releases]
    assert gammas == pytest.approx([0.2, 0.1, 0, 0.02, 0])
    assert plan.gamma == Fraction(32, 100)
    assert plan.exact["gamma"] == Fraction(32, 100)
    assert plan.charge.condition.gamma >= 0.32


def test_what_falls_back_leaves_its_share_to_the_others() -> None:
    plan = planned(tacit.count(by="c"), tacit.count(by="k"), given={"random_data": 0.12, "rows": 8000})
    assert plan.releases[0].guarantee.condition == Always()  # 2k = 800 > 480
    assert plan.gamma == Fraction(12, 100)


def test_three_times_a_tenth_is_three_tenths() -> None:
    asks = [tacit.query(tacit.count(by="k"), name=n, given={"random_data": 0.1}) for n in "abc"]
    with curator(0.3) as one:
        one.release(asks, epsilon=0.3)
        assert one.standing[1].condition == RandomData(gamma=0.0)
    with curator(0.3) as one:
        with pytest.raises(BudgetExceeded, match="gamma"):
            one.release(
                [*asks, tacit.query(tacit.count(where="f"), given={"random_data": 1e-9})], epsilon=0.3
            )
        assert one.ledger.entries() == ()


def test_a_second_plan_is_refused_unless_it_was_there_before() -> None:
    given = {"random_data": 0.03, "rows": 8000}
    with curator() as one:
        first = one.release(tacit.count(by="k"), epsilon=0.1, given=given)
        again = one.release(tacit.count(by="k"), epsilon=0.1, given=given)
        assert again.replayed
        assert (again.table == first.table).all().all()
        with pytest.raises(NoLaw, match="cell J"):
            one.release(tacit.count(where="f"), epsilon=0.1, given=given)
        assert len(one.ledger.charges()) == 1
        one.release(tacit.mean("c"), epsilon=0.1)  # holds always: may be chosen as one goes
        declared = one.release(tacit.count(where="f"), epsilon=0.1, given={**given, "fixed_before": True})
        assert "fixed before any other release" in declared.guarantee.explain()
        assert one.standing[0].condition.gamma == pytest.approx(0.06)
    with curator() as one:
        one.release(tacit.mean("c"), epsilon=0.1)
        with pytest.raises(NoLaw):
            one.release(tacit.count(by="k"), epsilon=0.1, given=given)


def test_what_one_release_declares_of_the_plan_all_rest_on() -> None:
    """A plan is fixed before the first was seen, or not: no certificate of it may leave that out."""
    own = {"random_data": 0.01, "rows": 8000}
    before = "this plan was fixed before any other release about these data was seen"
    asks = [
        tacit.query(tacit.count(by="k"), given={**own, "fixed_before": True}),
        tacit.query(tacit.count(where="f"), given=own),
        tacit.count(by="all"),
        tacit.mean("c"),
    ]
    with curator() as one:
        one.release(tacit.mean("c"), epsilon=0.1)
        made = one.release(asks, epsilon=0.4, given=own)
        assert [before in r.guarantee.declared for r in made] == [True, True, True, False]
        assert [before in r.certificate["guarantee"].get("declared", []) for r in made] == [
            True,
            True,
            True,
            False,
        ]
        assert before in one.ledger.charges()[-1].guarantee.declared


def test_a_budget_without_gamma_pays_for_nothing_of_this(tmp_path: Any) -> None:
    with curator(None, ledger=tmp_path / "new.ledger") as one:
        assert one.preview(tacit.count(by="k"), epsilon=0.1, given={"random_data": 0.1}).gamma > 0
        with pytest.raises(InvalidParameter, match="grants a gamma"):
            one.release(tacit.count(by="k"), epsilon=0.1, given={"random_data": 0.1})
    assert not (tmp_path / "new.ledger").exists()


def test_an_accountant_that_knows_no_gamma_cannot_read_the_event() -> None:
    from tacit.accounting.codec import from_record

    with curator() as one:
        one.release(tacit.count(by="k"), epsilon=0.1, given={"random_data": 0.1})
        (charge,) = one.ledger.charges()
    assert charge.event["given"] == {"random_data": "1/10"}
    with pytest.raises(InvalidParameter):
        from_record(dict(charge.event))


# --- what is refused, before anything is charged ---------------------------------------------------------
@pytest.mark.parametrize(
    "gamma", [0, 0.0, 1, 1.0, -0.1, 2, float("nan"), float("inf"), "0.1", True, None, [0.1]]
)
def test_no_gamma(gamma: object) -> None:
    with curator() as one:
        for ask in (one.release, one.preview):
            with pytest.raises(InvalidParameter, match="random_data"):
                ask(tacit.count(by="k"), epsilon=0.1, given={"random_data": gamma})  # type: ignore[operator]
        assert one.ledger.entries() == ()


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ({"rows": 1}, InvalidParameter), ({"rows": 0}, InvalidParameter), ({"rows": 1.5}, InvalidParameter),
        ({"rows": 10**16}, InvalidParameter), ({"small_cells": 1}, InvalidParameter),
        ({"fixed_before": "yes"}, InvalidParameter), ({"independent": 0}, InvalidParameter),
        ({"independent": False}, NoLaw), ({"gamma": 0.1}, TacitError),
    ],
    ids=str,
)  # fmt: skip
def test_words_that_are_none(words: dict[str, Any], kind: type[Exception]) -> None:
    with curator() as one:
        with pytest.raises(kind):
            one.release(tacit.count(by="k"), epsilon=0.1, given={"random_data": 0.1, **words})
        assert one.ledger.entries() == ()


@pytest.mark.parametrize("unit", [tacit.people("c", at_most=2), tacit.group_of(REPLACE, size=2)])
def test_units_of_several_rows(unit: Any) -> None:
    with pytest.raises(NoLaw, match="random differential privacy for"):
        planned(tacit.count(by="k"), unit=unit, given={"random_data": 0.1, "rows": 1000})
    with pytest.raises(NoLaw, match="random differential privacy for"):  # also where nothing would be exact
        planned(tacit.count(by="c"), unit=unit, given={"random_data": 0.001, "rows": 1000})
    with pytest.raises(NoLaw):
        curator(unit=unit)


def test_statistics_without_a_mechanism() -> None:
    given = {"random_data": 0.1, "rows": 8000}
    for asked in (
        tacit.mean("c"), tacit.median("c"), tacit.margins(["k", "f"]), tacit.sum("c"), tacit.count(),
        tacit.sparse_histogram(["k", "f"]),
    ):  # fmt: skip
        with pytest.raises(NoLaw, match="no mechanism"):
            planned(asked, given=given)
        with pytest.raises(NoLaw, match="no mechanism"):
            planned(tacit.query(asked, given=given), tacit.count(by="k"))
        plan = planned(asked, tacit.count(by="k"), given=given)
        assert plan.releases[0].guarantee.condition == Always()
        assert plan.gamma == Fraction(1, 10)
        assert "differentially private: it takes nothing from random data" in str(plan)


def test_public_totals_and_random_data_do_not_go_together() -> None:
    asked = tacit.query(
        tacit.count(by="k"), public=tacit.public_totals(total=8000), given={"random_data": 0.1}
    )
    with pytest.raises(NoLaw, match="public totals"):
        planned(asked)
    totals = tacit.query(tacit.count(by="k"), public=tacit.public_totals(total=8000))
    for asks, given in (
        ([totals, tacit.count(by="c")], {"random_data": 0.1, "rows": 8000}),
        ([totals, tacit.query(tacit.count(by="c"), given={"random_data": 0.1})], None),
        ([totals], {"random_data": 0.1}),
    ):
        with pytest.raises(NoLaw, match="public totals"):
            planned(*asks, given=given)
    assert planned(totals, tacit.count(by="c")).gamma == 0


@pytest.mark.parametrize("unit", [REPLACE, ADD])
def test_empty_cells_only_where_small_ones_were_not_asked_for(unit: Any) -> None:
    given = {"random_data": 0.1, "rows": 8000}
    for asked in (tacit.count(where="f"), tacit.proportion("sure")):
        plan = planned(asked, unit=unit, given={**given, "small_cells": False})
        assert "empty cells exact" in plan.releases[0].assignment.reason
        if unit is REPLACE or asked.kind == "count":
            assert "where it is not 0: that is exact" in plan.releases[0].expected.about
        for few in (0, 1, 13, 8000):
            flags = pa.table({**dict.fromkeys(("f", "sure"), np.arange(8000) < few), **{
                c: rows()[c] for c in ("c", "k", "all")}})  # fmt: skip
            with curator(data=flags, unit=unit) as one:
                made = one.release(asked, epsilon=0.2, given={**given, "small_cells": False})
            masks = made.planned.assignment.exact_cells(made.noisy)
            true = {"count": few, "yes": few, "no": 8000 - few}
            assert {n: bool(m.all()) for n, m in masks.items()} == {n: true[n] == 0 for n in masks}


def test_where_rows_are_added_a_least_number_is_declared() -> None:
    with pytest.raises(InvalidParameter, match="rows"):
        planned(tacit.count(by="k"), unit=ADD, given={"random_data": 0.1})
    for unit in (REPLACE, ADD):
        plan = planned(tacit.count(by="k"), unit=unit, given={"random_data": 0.1, "rows": 8000})
        for said in (plan.releases[0].guarantee, plan.charge):
            assert ("there are at least as many rows as declared" in said.declared) is (unit is ADD)


def test_a_release_keeps_its_own_words() -> None:
    own = tacit.query(tacit.count(by="k"), given={"random_data": 0.1, "rows": 500})
    plan = planned(own, tacit.count(where="f"), unit=ADD, given={"random_data": 0.1, "rows": 8000})
    assert [r.assignment.given.rows for r in plan.releases] == [500, 8000]
    assert not any("before any other release" in d for d in plan.charge.declared)
    words = {"random_data": 0.1, "rows": 8000, "fixed_before": True}
    plan = planned(own, tacit.count(where="f"), unit=ADD, given=words)
    assert all("before any other release" in " ".join(r.guarantee.declared) for r in plan.releases)


# --- what is said ----------------------------------------------------------------------------------------
def test_the_promise_is_never_told_without_its_condition() -> None:
    with curator() as one:
        plan = one.preview([tacit.count(by="k"), tacit.mean("c")], epsilon=0.2, given={"random_data": 0.05})
        made = one.release(plan)[0]
    for text in (str(plan), plan._repr_html_(), str(made), made._repr_html_(), made.guarantee.explain()):
        assert "random differential privacy, not differential privacy" in text
        assert "0.05" in text
        assert "only inhabitant of a cell" in text
    said = made.certificate
    assert said["condition"].startswith("except with probability 0.05 over the data")
    assert said["guarantee"]["condition"] == {"kind": "random-data", "gamma": 0.05}
    assert said["plan"]["charge"]["condition"]["gamma"] == 0.05
    assert {"random-histogram", "compose-random-data"} <= set(said["theorems"])
    assert "independent draws" in " ".join(said["guarantee"]["declared"])
    assert said["price_of_privacy"]["lower_bound"] is None
    # Plain noise may have a shape that fits all cells at once; the noise of single cells cannot.
    assert 0 < said["error"]["differential_privacy"]["within"] <= said["error"]["within"]
    with pytest.raises(NoLaw):
        made.guarantee.best_guess()


def test_every_price_pays_for_it() -> None:
    given = {"random_data": 0.1, "rows": 8000}
    budgets = [
        tacit.Approximate(epsilon=2.0, delta=1e-5),
        tacit.Concentrated(rho=1.0),
        tacit.GaussianDP(mu=2.0),
    ]
    prices = [{"epsilon": 1, "delta": 1e-6}, {"rho": 0.1}, {"mu": 0.5}]
    for bound, paid in zip(budgets, prices, strict=True):
        budget = Guarantee(bound=bound, unit=REPLACE, condition=RandomData(gamma=0.1))
        with tacit.Curator(rows(), protect=REPLACE, schema=SCHEMA, budget=budget) as one:
            made = one.release(tacit.count(by="c"), given=given, **paid)
            assert made.certificate["random_data"]["exact_cells"] == 384
            assert one.standing[0].condition == RandomData(gamma=0.1)
    with curator() as one:
        made = one.release(tacit.count(by="c"), within=50, given=given)
        assert made.planned.expected.within <= 50


def test_other_words_are_another_plan() -> None:
    found = [
        planned(tacit.count(by="k"), given={"random_data": 0.1, "rows": 8000, **words}).digest
        for words in ({}, {"random_data": 0.2}, {"rows": 8001}, {"small_cells": True}, {"fixed_before": True})
    ]
    assert len({*found, planned(tacit.count(by="k")).digest}) == 6


def test_synthetic_rows_come_from_no_cell_that_is_empty() -> None:
    from tacit.sources.schema import Schema
    from tacit.statistics import synthetic_rows, tables_of

    with curator() as one:
        made = one.release(tacit.count(by="c"), epsilon=0.2, given={"random_data": 0.1})
    tables = tables_of(made.planned.question, made.noisy.parts)
    drawn = synthetic_rows(tables, schema=Schema({"c": SCHEMA["c"]}), rows=500)
    assert set(drawn["c"]) <= set(np.arange(16) * 7)
