"""A curator pays before it reads, answers from the record, refuses what does not fit, and says what it did."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tacit
from support.noise_distributions import law_of, noise_quantile, scale_of
from tacit.accounting.codec import from_record as event_of
from tacit.curator.assignments import NoisyParts
from tacit.curator.certificate import decode, encode
from tacit.errors import BadData, BudgetExceeded, InvalidParameter, MissingBounds, NoLaw, UnknownColumn
from tacit.guarantees.guarantee import from_record
from tacit.noise.source import SeededSource

from .conftest import visits


def test_preview_reads_nothing_and_spends_nothing(make: Any) -> None:
    curator = make(data="/nowhere/at/all.parquet")
    plan = curator.preview(tacit.count(by="state"), epsilon=0.2)
    assert plan.releases[0].expected.within == noise_quantile(
        plan.releases[0].assignment.noise[0], Fraction(95, 100)
    )
    assert float(curator.spent.epsilon) == 0
    with pytest.raises(BadData):
        curator.release(plan)
    assert float(curator.spent.epsilon) == 0


def test_five_fifths_are_one_and_a_sixth_is_refused(make: Any) -> None:
    curator = make(tacit.Pure(epsilon=1.0))
    for i in range(5):
        curator.release(tacit.count(by="state"), epsilon=0.2, key=f"week {i}")
    assert float(curator.remaining.epsilon) == 0
    with pytest.raises(BudgetExceeded, match="spent epsilon = 1"):
        curator.release(tacit.count(by="state"), epsilon=0.001, key="one more")
    assert float(curator.spent.epsilon) == 1


def test_the_same_question_is_answered_from_the_record(make: Any) -> None:
    curator = make()
    first = curator.release(tacit.mean("income", by="state"), epsilon=0.1)
    again = curator.release(tacit.mean("income", by="state"), epsilon=0.1)
    assert again.replayed
    assert not first.replayed
    assert first.table.equals(again.table)
    assert float(curator.spent.epsilon) == pytest.approx(0.1)
    other = curator.release(tacit.mean("income", by="state"), epsilon=0.1, key="anew")
    assert not other.table.equals(first.table)
    assert float(curator.spent.epsilon) == pytest.approx(0.2)
    reopened = make()
    assert reopened.release(tacit.mean("income", by="state"), epsilon=0.1).replayed


def test_another_version_is_not_answered_from_the_record(make: Any) -> None:
    one, other = visits(seed=3), visits(seed=4)
    first = make(data=one, version="2026-11").release(tacit.count(), epsilon=0.1)
    again = make(data=other, version="2026-12").release(tacit.count(), epsilon=0.1)
    assert not first.replayed
    assert not again.replayed
    assert float(make().spent.epsilon) == pytest.approx(0.2), "a new version is no new budget"


@pytest.mark.parametrize(
    ("budget", "paid", "kind"),
    [
        (tacit.Pure(epsilon=1.0), {"epsilon": 0.25}, "pure"),
        (tacit.Approximate(epsilon=1.0, delta=1e-5), {"epsilon": 0.25}, "pure"),
        (tacit.Approximate(epsilon=1.0, delta=1e-5), {"epsilon": 0.25, "delta": 1e-6}, "approximate"),
        (tacit.Concentrated(rho=0.5), {"rho": 0.02}, "concentrated"),
        (tacit.Concentrated(rho=0.5), {"epsilon": 0.2}, "concentrated"),
        (tacit.GaussianDP(mu=1.0), {"mu": 0.2}, "gaussian"),
        (tacit.GaussianDP(mu=1.0), {"epsilon": 0.2}, "gaussian"),
        (tacit.Renyi(orders=(2.0, 8.0), epsilons=(1.0, 4.0)), {"rho": 0.02}, "renyi"),
    ],
)
def test_every_budget_has_its_running_total(make: Any, budget: Any, paid: Any, kind: str) -> None:
    """The charge is in the budget's kind, and implies nothing less than what the event reveals."""
    curator = make(budget, protect=tacit.people("person_id", at_most=40))
    ask = tacit.count(by=["state", "age"], of="people")  # many cells of one person: Gaussian noise wins
    plan = curator.preview(ask, **paid)
    assert plan.charge.bound.kind == kind
    curator.release(ask, **paid)
    assert curator.spent.kind == budget.kind
    # An independent reading: the event of the ledger, composed by the profile, is within the charge.
    from tacit.accounting import account

    event = event_of(plan.event_record)
    for delta in (1e-7, 1e-4):
        promised = plan.charge.bound.epsilon_at(delta)
        assert account(event, delta=delta, neighbours="add-or-remove").epsilon.low <= promised + 1e-9


def test_the_better_noise_is_chosen_and_said(make: Any) -> None:
    curator = make(tacit.Approximate(epsilon=1.0, delta=1e-5), protect=tacit.rows())
    few = curator.preview(tacit.count(), epsilon=0.5, delta=1e-6).releases[0].assignment
    many = curator.preview(tacit.margins(["state", "age", "insured"], order=1), epsilon=0.5, delta=1e-6)
    wide = curator.preview(
        [tacit.query(tacit.count(where=f"age > {i}")) for i in range(40)], epsilon=0.5, delta=1e-6
    )
    assert law_of(few.noise[0]) == "laplace"
    assert law_of(many.releases[0].assignment.noise[0]) == "laplace"
    assert all(law_of(r.assignment.noise[0]) == "gaussian" for r in wide.releases)
    assert "Gaussian noise" in wide.releases[0].assignment.reason
    for assignment in (few, *(r.assignment for r in wide.releases)):
        name = "Laplace" if law_of(assignment.noise[0]) == "laplace" else "Gaussian"
        assert assignment.candidates[name] == min(assignment.candidates.values())


def test_a_plan_is_one_event_and_costs_no_more_than_its_sum(make: Any) -> None:
    curator = make()
    plan = curator.preview(
        [tacit.query(tacit.count(by="state"), epsilon=0.05, delta=1e-7, name=f"c{i}") for i in range(8)]
        + [tacit.query(tacit.mean("income"), rho=0.001, name="m")],
        epsilon=0.4,
        delta=1e-7,
    )
    alone = tacit.Concentrated(rho=0.001).epsilon(1e-7)
    assert 0.4 < float(plan.charged.bound.epsilon) < 0.4 + alone
    assert plan.charged.theorem == "compose-profile"
    releases = curator.release(plan)
    assert [r.name for r in releases] == [f"c{i}" for i in range(8)] + ["m"]
    assert len(curator.ledger.charges()) == 1
    assert releases["m"].value > 0


def test_weights_divide_a_price(make: Any) -> None:
    curator = make(tacit.Pure(epsilon=1.0))
    plan = curator.preview(
        [tacit.query(tacit.count(), weight=3), tacit.query(tacit.count(by="state"))], epsilon=0.4
    )
    assert [r.assignment.pure() for r in plan.releases] == [Fraction(3, 10), Fraction(1, 10)]
    assert plan.charged.exact == {"epsilon": Fraction(2, 5)}


@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("budget", [tacit.Pure(epsilon=9.0), tacit.Concentrated(rho=9.0)])
def test_accuracy_is_paid_for_and_no_more(make: Any, budget: Any, simultaneous: bool) -> None:
    curator = make(budget)
    plan = curator.preview(
        tacit.count(by=["state", "age"]), within=50, confidence=0.9, simultaneous=simultaneous
    )
    applied = plan.releases[0].assignment.noise[0]
    cells = 300 if simultaneous else 1
    assert float(applied.half_widths(Fraction(9, 10), coordinates=cells)["count"]) <= 50
    # One part in fifty less noise would not be needed: that much more noise breaks the promise.
    size = "noise_scale" if law_of(applied) == "laplace" else "noise_std"
    wider = replace(applied.mechanism, **{size: scale_of(applied) * Fraction(102, 100)})
    assert float(wider.half_widths(1, Fraction(9, 10), coordinates=cells)[0]) > 50
    if isinstance(budget, tacit.Concentrated) and simultaneous:
        assert law_of(applied) == "gaussian"


def test_certificate_says_what_was_run(make: Any) -> None:
    curator = make()
    answer = curator.release(tacit.sum("income", by="state"), epsilon=0.1)
    said = json.loads(answer.to_json())
    assert from_record(said["guarantee"]) == answer.guarantee
    assert said["neighbours"] == "add-or-remove"
    assert said["numerical_delta"] == 0
    assert said["mechanism"]["noise"][0]["distribution"] == "discrete Laplace"
    assert said["mechanism"]["noise"][0]["epsilon"] == "1/10"
    assert said["publishable"] is True
    assert set(said["schema"]) == {"state", "income"}
    assert said["ledger"]["digest"] == curator.ledger.entries()[0].digest
    assert curator.ledger.verify().ok
    for name in said["theorems"]:
        assert tacit.guarantees.theorem(name).statement
    assert "people" not in said["statistic"]


def test_what_a_seeded_source_makes_says_so(make: Any) -> None:
    curator = make(source=SeededSource(seed=1))
    assert not curator.release(tacit.count(), epsilon=0.1).publishable


def test_nothing_moves_nothing_costs_nothing(make: Any) -> None:
    """Under replace-one the number of rows is public: no noise and no price."""
    curator = make(protect=tacit.rows(neighbours="replace-one"))
    answer = curator.release(tacit.count(), epsilon=0.1)
    assert answer.value == 2000
    assert answer.interval == (2000, 2000)
    assert float(curator.spent.epsilon) == 0


def test_intervals_of_counts_are_the_noise_quantile(make: Any) -> None:
    answer = make().release(tacit.count(by="state"), epsilon=0.5)
    table = answer.table
    half = noise_quantile(answer.planned.assignment.noise[0], Fraction(95, 100))
    assert (table["high"] - table["value"] == half).all()
    assert (table["value"] - table["low"] == half).all()


def test_consistent_counts_are_not_negative(make: Any) -> None:
    curator = make(tacit.Pure(epsilon=1.0))
    answer = curator.release(tacit.count(by=["state", "age"]), epsilon=0.01, consistent=True)
    assert (answer.table[["value", "low", "high"]] >= 0).all().all()


@pytest.mark.parametrize(
    ("ask", "paid", "error", "words"),
    [
        (lambda: tacit.count(by="sate"), {"epsilon": 0.1}, UnknownColumn, "state"),
        (lambda: tacit.sum("free"), {"epsilon": 0.1}, MissingBounds, "tacit.clamping_bounds"),
        (lambda: tacit.count(), {}, InvalidParameter, "epsilon"),
        (lambda: tacit.count(), {"epsilon": 0.1, "rho": 0.1}, InvalidParameter, "exactly one"),
        (lambda: tacit.count(), {"epsilon": -1}, InvalidParameter, "above 0"),
        (lambda: tacit.count(), {"epsilon": float("nan")}, InvalidParameter, "finite"),
        (lambda: tacit.count(), {"epsilon": 0.1, "delta": 1.0}, InvalidParameter, "below 1"),
        (lambda: tacit.count(), {"epsilon": 0.1, "confidence": 0.9}, InvalidParameter, "within"),
        (lambda: tacit.mean("income"), {"within": 100}, InvalidParameter, "counts and sums"),
        (lambda: tacit.count(), {"within": 0.5}, InvalidParameter, "step"),
        (lambda: tacit.count(), {"rho": 0.1}, NoLaw, "delta"),
        (lambda: "count", {"epsilon": 0.1}, InvalidParameter, "statistic"),
        (list, {"epsilon": 0.1}, tacit.TacitError, "empty"),
    ],
)
def test_bad_input_is_one_sentence_and_spends_nothing(
    make: Any, ask: Any, paid: Any, error: Any, words: str
) -> None:
    curator = make()
    with pytest.raises(error, match=words):
        curator.release(ask(), **paid)
    assert float(curator.spent.epsilon) == 0


def test_a_failure_after_the_charge_leaves_it_spent(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    curator = make()
    monkeypatch.setattr(curator, "_read", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        curator.release(tacit.count(), epsilon=0.1)
    assert float(curator.spent.epsilon) == pytest.approx(0.1)
    assert curator.ledger.state(1) == "failed"


def test_answers_survive_the_ledger() -> None:
    wide = np.array([10**30, -5], dtype=object)
    given = [
        NoisyParts(parts={"a": np.arange(6).reshape(2, 3), "b": wide, "c": np.array([0.5])}, keys=None),
        NoisyParts(parts={"count": np.array([1, 2])}, keys=(("x", "y"), (1, 2.5))),
    ]
    back, made = decode(encode(given, {"noise": "x"}))
    assert made == {"noise": "x"}
    for one, other in zip(given, back, strict=True):
        assert one.keys == other.keys
        for name, values in one.parts.items():
            assert (np.asarray(other.parts[name]) == values).all()
            assert np.shape(other.parts[name]) == np.shape(values)
    with pytest.raises(InvalidParameter, match="format"):
        decode(b'{"format":99}\n')


def test_a_declared_sampling_model_widens_the_interval_to_the_population(make: Any) -> None:
    """300 tables drawn from a known population: the interval holds the population's share and mean."""
    random = np.random.default_rng(7)
    truth, hits, wider = 0.3, [0, 0], True
    import pyarrow as pa

    curator = make(
        tacit.Pure(epsilon=1000.0),
        protect=tacit.rows(),
        data=pa.table({"x": [0.0]}),
        schema={"x": tacit.number(0, 1)},
    )
    plan = curator.preview(
        [
            tacit.query(tacit.proportion("x > 0.5"), epsilon=0.2, sampling=True, name="share"),
            tacit.query(tacit.mean("x"), epsilon=0.2, sampling=True, name="mean"),
            tacit.query(tacit.mean("x"), epsilon=0.2, name="noise only"),
        ]
    )
    from tacit.sources import open_table
    from tacit.statistics import read

    for i in range(60):
        x = np.where(random.random(500) < truth, 0.9, 0.1)
        table = open_table(pa.table({"x": x}), schema=curator.schema, unit=curator.unit)
        integers = read(table, [r.question for r in plan.releases])
        for j, (r, true) in enumerate(zip(plan.releases[:2], (truth, 0.1 + 0.8 * truth), strict=True)):
            parts = {}
            for applied in r.assignment.noise:
                parts |= applied.release(integers[j], source=SeededSource(seed=i))
            found = r.assignment.read(r.question, NoisyParts(parts=parts), Fraction(95, 100))
            alone = replace(r.question, form=r.question.form.noise_only())
            inner = r.assignment.read(alone, NoisyParts(parts=parts), Fraction(95, 100))
            hits[j] += bool(found.low <= true <= found.high)
            wider &= bool(found.low <= inner.low and inner.high <= found.high)
        table.close()
    assert min(hits) >= 53, "95% of 60, less two standard errors"
    assert wider
    with pytest.raises(InvalidParameter, match="one row"):
        make().preview(tacit.query(tacit.mean("income"), epsilon=0.1, sampling=True))
    with pytest.raises(InvalidParameter, match="mean, a proportion"):
        curator.preview(tacit.query(tacit.count(), epsilon=0.1, sampling=True))


def test_consistent_margins_agree(make: Any) -> None:
    curator = make(tacit.Pure(epsilon=1.0))
    answer = curator.release(
        tacit.margins(["state", "age", "insured"], order=2), epsilon=0.5, consistent=True
    )
    table = answer.table
    by_age = table[table.state == "all"].groupby("age")["value"].sum()
    also = table[table.insured == "all"].groupby("age")["value"].sum()
    assert (by_age == also).all()
    assert (table["value"] >= 0).all()


def test_price_of_privacy_stands_beside_the_error(make: Any) -> None:
    """Pure counts by group reach the best error there is, almost; a Gaussian release has its bound too."""
    curator = make(tacit.Approximate(epsilon=9.0, delta=1e-5), protect=tacit.rows())
    plan = curator.preview(tacit.count(by=["state", "age"]), epsilon=0.5)
    expected = plan.releases[0].expected
    assert expected.floor is not None
    assert expected.mean is not None
    assert 1 <= expected.mean / expected.floor < 1.01
    answer = curator.release(plan)[0]
    assert answer.certificate["price_of_privacy"]["ratio"] == pytest.approx(expected.mean / expected.floor)
    other = curator.preview([tacit.count(where=f"age > {i}") for i in range(40)], epsilon=0.5, delta=1e-6)
    best = other.releases[0].expected
    assert best.floor is not None
    assert best.mean is not None
    assert best.floor <= best.mean
    told = (
        curator.preview(tacit.query(tacit.proportion("insured"), epsilon=0.5, sampling=True, rows=1000))
        .releases[0]
        .expected
    )
    assert told.sampling == pytest.approx(1.959964 * 0.5 / 1000**0.5, rel=1e-6)
    assert "privacy adds less" in told.about


def test_hierarchies_sparse_tables_and_public_totals(make: Any) -> None:
    curator = make(tacit.Approximate(epsilon=20.0, delta=1e-4), protect=tacit.rows())
    tree = curator.release(tacit.hierarchy(["state", "insured"]), epsilon=1.0, consistent=True).table
    whole = int(tree[tree.level == 0]["value"].iloc[0])
    for level in (1, 2):
        assert tree[tree.level == level]["value"].sum() == whole
    public = tacit.public_totals(total=2000)
    fixed = curator.release(tacit.query(tacit.count(by="state"), epsilon=1.0, public=public))
    assert fixed.table["value"].sum() == 2000
    assert any("public" in d for d in fixed.guarantee.declared)
    assert any("public" in d for d in fixed.certificate["guarantee"]["declared"])
    for paid in ({"epsilon": 2.0}, {"epsilon": 2.0, "delta": 1e-6}):
        sparse = curator.release(tacit.sparse_histogram(["state", "age", "insured"]), **paid)
        assert sparse.planned.question.cells == 600
        assert len(sparse.table) < 600
        assert (sparse.table["low"] <= sparse.table["value"]).all()
        assert curator.release(tacit.sparse_histogram(["state", "age", "insured"]), **paid).replayed


def test_sparse_histograms_are_paid_in_rho_and_never_in_mu(make: Any) -> None:
    """Ten times a tenth of rho is the whole budget, to the last bit; discrete Gaussian noise has no mu."""
    held = make(tacit.Concentrated(rho=1.0), ledger=None)
    asked = tacit.sparse_histogram(["state", "age", "insured"])
    for turn in range(10):
        answer = held.release(asked, rho=0.1, key=f"turn {turn}")
        assert answer.certificate["mechanism"]["noise"][0]["distribution"] == "discrete Gaussian"
        assert "that of Laplace noise" in answer.certificate["mechanism"]["chosen"]
        assert (answer.table["low"] <= answer.table["value"]).all()
    assert held.spent.parameters["rho"] == pytest.approx(1.0, rel=1e-12)
    with pytest.raises(BudgetExceeded):
        held.release(asked, rho=0.1, key="turn 11")
    with pytest.raises(InvalidParameter, match="has a rho and no mu"):
        make(tacit.GaussianDP(mu=1.0), ledger=None).release(tacit.sparse_histogram(["state"]), mu=0.1)


@pytest.mark.parametrize(
    ("budget", "paid"),
    [
        (tacit.Pure(epsilon=9.0), {"epsilon": 0.5}),
        (tacit.Approximate(epsilon=9.0, delta=1e-5), {"epsilon": 0.5, "delta": 1e-6}),
        (tacit.Concentrated(rho=1.0), {"rho": 0.01}),
    ],
)
def test_target_errors_divide_a_price(make: Any, budget: Any, paid: Any) -> None:
    """Errors stand to each other as their targets do, and the price is the asked one."""
    curator = make(budget)
    asks = [
        tacit.query(tacit.count(by="state"), target=20),
        tacit.query(tacit.count(by="age"), target=60),
        tacit.query(tacit.sum("income", by="state"), target=5_000_000),
    ]
    plan = curator.preview(asks, **paid)
    ratios = [(r.expected.within or 0) / float(r.ask.target or 1) for r in plan.releases]
    assert max(ratios) / min(ratios) < 1.1
    spent = plan.charged.bound.parameters
    name = next(iter(paid))
    assert float(spent[name]) == pytest.approx(paid[name], rel=0.2)
    assert float(spent[name]) <= paid[name] * (1 + 1e-9)
    with pytest.raises(InvalidParameter, match="target"):
        curator.preview([*asks, tacit.mean("income")], **paid)
