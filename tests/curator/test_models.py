"""Models in plans: priced, charged, certified, replayed and confirmed like every other release."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tacit
from curator.functions import DECLARED, PAID, curator, small
from tacit.accounting.events import flatten
from tacit.audit import opinion_on_certificate
from tacit.curator.choice import calibrated
from tacit.curator.functions import additive_model, linear_regression, logistic_regression
from tacit.curator.functions.models import PerturbedFit, bin_names, bin_sizes, perturbed_fit
from tacit.errors import InvalidParameter, TacitError, WrongType
from tacit.functions.models.solvers import Huber
from tacit.guarantees import Neighbours
from tacit.mechanisms.objective import CERTIFIED
from tacit.mechanisms.pure_objective import PureObjectivePerturbation
from tacit.pld import Product

ASKS: dict[str, Any] = {
    "logistic": logistic_regression(["x", "c", "d"], "k"),
    "flag": logistic_regression(["x"], "f"),
    "additive": additive_model(["x", "c"], "k", bins=6),
    "pair": additive_model(["x", "c"], "k", bins=6, interactions=[("x", "c")]),
    "rising": additive_model(["x", "c"], "k", bins=6, monotone={"x": "increasing"}),
    "additive number": additive_model(["x"], "z", bins=6),
    "linear": linear_regression(["x", "c"], "z"),
}
UNITS = {
    "rows": (tacit.rows(neighbours="replace-one"), 2),
    "added": (tacit.rows(), 1),
    "people": (tacit.people("id", at_most=2), 2),
    "replaced people": (tacit.people("id", at_most=2, neighbours="replace-one"), 4),
}


@pytest.mark.parametrize("name", ASKS)
@pytest.mark.parametrize("unit", UNITS)
def test_what_is_run_is_what_is_charged_and_confirmed(name: str, unit: str) -> None:
    protect, steps = UNITS[unit]
    with curator(protect=protect) as held:
        release = held.release(ASKS[name], **PAID)
        events = release.planned.assignment.events
        noise = release.planned.assignment.fit.noise
        assert noise.rows == steps
        assert 0.99 < held.spent.parameters["epsilon"] <= 1
        if isinstance(noise, PureObjectivePerturbation):
            # Few terms: pure noise is less, and no delta is spent.
            assert 0.99 < sum(e.epsilon for e in events) <= 1
            assert release.guarantee.bound.kind == "pure"
        else:
            assert [e.rows for e, _ in flatten(events) if e.kind == "objective_perturbation"] == [steps]
            pairs = [(e.pairs(Neighbours.ADD_OR_REMOVE)[0], n) for e, n in flatten(events)]  # type: ignore[index]
            assert 0.9e-5 < Product(pairs=pairs).delta(1.0).high <= 1e-5
        assert CERTIFIED in release.guarantee.declared
        assert CERTIFIED in release.certificate["guarantee"]["declared"]
        assert "output noise" in release.certificate["mechanism"]["chosen"]
        certificate = release.certificate
        assert certificate["guarantee"] == release.guarantee.to_dict()
        assert "objective-exactness" in certificate["theorems"]
        assert opinion_on_certificate(certificate).confirmed
        again = held.release(ASKS[name], **PAID)
        assert again.replayed
        assert np.array_equal(again.function.numbers, release.function.numbers)
        assert str(release)
        assert release._repr_html_()
        assert {"value", "low", "high"} <= set(release.table.columns)


def test_a_model_tells_what_it_was_taught() -> None:
    with curator(data=small(4000), protect=tacit.rows()) as held:
        for name in ("logistic", "additive"):
            function = held.release(ASKS[name], epsilon=4, delta=1e-5).function
            points = {"x": [-0.9, 0.9], "c": ["a", "b"]}
            if name == "logistic":
                points["d"] = [np.datetime64("2020-06-01").astype(object)] * 2
            assert list(function.predict(points)) == ["no", "yes"]
        line = held.release(ASKS["linear"], epsilon=4, delta=1e-5).function
        low, high = line({"x": [-0.5, 0.5], "c": ["a", "a"]})
        assert 0 <= low < 5 < high <= 10
        shape = held.release(ASKS["additive number"], epsilon=4, delta=1e-5)
        low, high = shape.function({"x": [-0.5, 0.5]})
        assert low < 4
        assert high > 6
        # The terms that are shown add up to what the function says.
        terms = dict(zip(shape.table["term"], shape.table["value"], strict=True))
        name = next(n for n in terms if n.startswith("x 0.3"))
        found = terms[name] + terms["(constant)"]
        assert found == pytest.approx(float(shape.function({"x": [0.5]})[0]), abs=0.02)
        # The certificate has them too.
        recorded = shape.certificate["function"]["terms"]
        assert recorded == pytest.approx([float(v) for v in terms.values()], abs=1e-6)


@pytest.mark.parametrize("unit", UNITS)
def test_a_stored_fit_is_judged_by_its_question_and_not_by_todays_choice(unit: str) -> None:
    """Earlier versions fitted numbers by Huber's loss: their choices are read, run and verified as they are."""
    protect, steps = UNITS[unit]
    with curator(protect=protect) as held:
        plans = [held.preview(ask, **PAID) for ask in ASKS.values()]
    for plan in plans:
        assigned, question = plan.releases[0].assignment, plan.releases[0].question
        assert calibrated(assigned, question) is True
        noise, loss = assigned.fit.noise, assigned.fit.loss
        size = 1.0 if loss.name == "logistic" else loss.lipschitz
        wrong = [
            replace(noise, gradient=noise.gradient * 0.99), replace(noise, second=noise.second * 0.99),
            replace(noise, rows=noise.rows + 1), replace(noise, dimension=noise.dimension + 1),
            replace(noise, loss="bounded" if noise.loss != "bounded" else "logistic"),
        ]  # fmt: skip
        wrong[2] = replace(noise, rows=steps - 1) if steps > 1 else wrong[3]
        for other in wrong:
            assert calibrated(replace(assigned, fit=replace(assigned.fit, noise=other)), question) is False
        target = replace(assigned, fit=replace(assigned.fit, target="x2"))
        assert calibrated(target, question) is False
        if loss.name == "log-cosh":
            assert size == 0.5
            older = replace(assigned.fit, loss=Huber(threshold=0.5))
            assert calibrated(replace(assigned, fit=older), question) is False
            older = replace(older, noise=replace(noise, loss="bounded"))
            assert calibrated(replace(assigned, fit=older), question) is True
            steeper = replace(older, loss=Huber(threshold=0.6))
            assert calibrated(replace(assigned, fit=steeper), question) is False


def test_a_stored_fit_has_the_declared_threshold_ridge_and_smoothness() -> None:
    """Enough noise for another loss than the declared one is not enough: it is the answer to another question."""
    threshold, ridge = linear_regression(["x"], "z", threshold=0.4), linear_regression(["x"], "z", ridge=30.0)
    asks = [threshold, ridge, additive_model(["x"], "z", bins=6, threshold=0.4), ASKS["additive"]]
    with curator() as held:
        plans = [held.preview(ask, **PAID) for ask in asks]
    pairs = [(p.releases[0].assignment, p.releases[0].question) for p in plans]
    assert [calibrated(*pair) for pair in pairs] == [True] * 4
    flatter = [replace(a.fit, loss=replace(a.fit.loss, threshold=0.3)) for a, _ in pairs[:3]]
    wrong = [
        flatter[0],
        replace(pairs[1][0].fit, noise=replace(pairs[1][0].fit.noise, ridge=31.0)),
        flatter[2],
        replace(pairs[3][0].fit, smooth=3.0),
    ]
    for (assigned, question), fit in zip(pairs, wrong, strict=True):
        assert calibrated(replace(assigned, fit=fit), question) is False
    # A ridge that nobody declared follows from the price, and may be chosen otherwise.
    free = replace(pairs[0][0].fit, noise=replace(pairs[0][0].fit.noise, ridge=1000.0))
    assert calibrated(replace(pairs[0][0], fit=free), pairs[0][1]) is True


def test_a_release_by_an_earlier_loss_is_answered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice is stored with the charge: a new default changes no old answer."""
    from tacit.curator.functions import models

    with curator() as held:
        with monkeypatch.context() as patched:
            patched.setattr(models, "LogCosh", Huber)
            first = held.release(ASKS["linear"], **PAID)
        assert first.planned.assignment.fit.loss == Huber(threshold=0.5)
        assert first.planned.assignment.fit.noise.loss == "bounded"
        again = held.release(ASKS["linear"], **PAID)
        assert again.replayed
        assert again.planned.assignment.fit.loss == Huber(threshold=0.5)
        assert np.array_equal(again.function.numbers, first.function.numbers)


def test_rows_of_linear_models_are_short() -> None:
    question = ASKS["linear"].on(tacit.Schema(DECLARED), tacit.rows())
    fit, _ = perturbed_fit(question, Fraction(1), Fraction(1, 10**5))
    # A number at its upper end, one of the categories, and the constant.
    longest = np.linalg.norm(fit._linear(np.array([[1.0, 0.0, 1.0, 0.0]])))
    assert 1 - 1e-9 < longest <= 1 + 2.0**-40
    assert fit.noise.dimension == 5


def test_bins_cover_every_step_once() -> None:
    schema = tacit.Schema(DECLARED)
    for bins in (1, 3, 7, 24):
        asked = additive_model(["x", "c", "d"], "k", bins=bins)
        question = asked.on(schema, tacit.rows())
        inputs = question.details["inputs"]
        sizes = bin_sizes(inputs, bins)
        assert len(bin_names(inputs, bins)) == sum(sizes)
        assert len(set(bin_names(inputs, bins))) == sum(sizes)
        fit, _ = perturbed_fit(question, Fraction(1), Fraction(1, 10**5))
        assert isinstance(fit, PerturbedFit)
        width = inputs.columns[2].width
        steps = np.append(np.arange(width + 1.0), np.nan)
        rows = {"x": np.full(len(steps), np.nan), "c": np.full(len(steps), 1.0), "d": steps}
        codes = fit._codes(rows)
        assert bool((codes[:, 0] == sizes[0] - 1).all())
        assert bool((codes[:, 1] == sizes[0] + 1).all())
        days = codes[:-1, 2] - sizes[0] - sizes[1]
        assert bool((np.diff(days) >= 0).all())
        assert set(days) == set(range(sizes[2] - 1))
        assert codes[-1, 2] == sum(sizes) - 1
        assert bool((codes[:, 3] == sum(sizes)).all())


def test_refusals_before_a_charge() -> None:
    with curator() as held:
        for make, problem in (
            (lambda: logistic_regression(["x"], "c"), WrongType),
            (lambda: logistic_regression(["x"], "z"), WrongType),
            (lambda: linear_regression(["x"], "k"), TacitError),
            (lambda: linear_regression(["x"], "d"), WrongType),
            (lambda: additive_model(["x", "k"], "k"), InvalidParameter),
            (lambda: additive_model(["x"], "k", bins=10_000), InvalidParameter),
            (lambda: additive_model(["t"], "k"), TacitError),
            (lambda: logistic_regression(["x"], "k", ridge=-1), InvalidParameter),
            (lambda: additive_model(["x"], "k", interactions=[("x", "c")]), InvalidParameter),
            (lambda: additive_model(["x", "c"], "k", interactions=[("x", "x")]), InvalidParameter),
            (
                lambda: additive_model(["x", "c"], "k", interactions=[("x", "c"), ("c", "x")]),
                InvalidParameter,
            ),
            (lambda: additive_model(["x", "c"], "k", interactions=["xc"]), InvalidParameter),
            (lambda: additive_model(["x", "c"], "k", monotone={"c": "increasing"}), InvalidParameter),
            (lambda: additive_model(["x", "c"], "k", monotone={"x": "up"}), InvalidParameter),
            (lambda: additive_model(["x", "c"], "k", monotone=["x"]), InvalidParameter),
            (
                lambda: additive_model(
                    ["x", "c"], "k", interactions=[("x", "c")], monotone={"x": "increasing"}
                ),
                InvalidParameter,
            ),
        ):
            with pytest.raises(problem):
                held.release(make(), **PAID)
        with pytest.raises(InvalidParameter):
            held.release(ASKS["logistic"], within=0.1)
        assert held.spent is None or held.spent.parameters["epsilon"] == 0


def test_odd_rows_raise_nothing() -> None:
    data = small()
    data.loc[0, "x"] = np.nan
    data.loc[1, "k"] = None
    data.loc[2, "c"] = "other"
    with curator(data=data) as held:
        for name in ("logistic", "additive", "linear"):
            assert held.release(ASKS[name], **PAID).publishable


@pytest.mark.parametrize("price", [{"epsilon": 1}, {"rho": 0.1}, {"mu": 0.5}])
@pytest.mark.parametrize("unit", UNITS)
def test_prices_without_a_delta_buy_pure_noise(price: dict[str, float], unit: str) -> None:
    protect, steps = UNITS[unit]
    with curator(protect=protect) as held:
        for name in ("logistic", "additive", "linear"):
            release = held.release(ASKS[name], **price)
            noise = release.planned.assignment.fit.noise
            assert isinstance(noise, PureObjectivePerturbation)
            assert noise.rows == steps
            assert opinion_on_certificate(release.certificate).confirmed
            assert "objective-pure" in release.certificate["theorems"]
            if "epsilon" in price:
                assert 0.99 < noise.exact_epsilon <= 1
                assert release.guarantee.bound.kind == "pure"
            total = noise.objective_epsilon + noise.output.exact_epsilon
            assert total <= noise.exact_epsilon


def test_a_declared_direction_holds_whatever_the_noise() -> None:
    with curator(data=small(400), protect=tacit.rows()) as held:
        for way in ("increasing", "decreasing"):
            ask = additive_model(["x", "c"], "k", bins=8, monotone={"x": way})
            release = held.release(ask, epsilon=0.05, delta=1e-5)
            values = np.array(release.table["value"])[:8]
            assert bool((np.diff(values) * (1 if way == "increasing" else -1) >= 0).all())
            found = release.function({"x": np.linspace(-1, 1, 40), "c": ["a"] * 40})
            assert bool((np.diff(found) * (1 if way == "increasing" else -1) >= -1e-9).all())
            table = release.table
            assert bool((np.array(table["low"]) <= np.array(table["value"])).all())
            assert bool((np.array(table["value"]) <= np.array(table["high"])).all())


def test_interactions_see_what_shapes_cannot() -> None:
    rng = np.random.default_rng(1)
    data = small(4000)
    data["c"] = rng.choice(["a", "b"], 4000)
    data["k"] = np.where((data["x"] > 0) == (data["c"] == "a"), "yes", "no")
    with curator(data=data, protect=tacit.rows()) as held:
        points = {"x": [-0.8, 0.8, -0.8, 0.8], "c": ["a", "a", "b", "b"]}
        right = ["no", "yes", "yes", "no"]
        plain = held.release(additive_model(["x", "c"], "k", bins=6), epsilon=4, delta=1e-5)
        paired = additive_model(["x", "c"], "k", bins=6, interactions=[("c", "x")])
        release = held.release(paired, epsilon=4, delta=1e-5)
        assert list(release.function.predict(points)) == right
        assert list(plain.function.predict(points)) != right
        # One more column, one more entry of the same height: a row stays within the unit ball.
        fit = release.planned.assignment.fit
        codes = fit._codes({"x": np.array([0.0, np.nan]), "c": np.array([1.0, np.nan])})
        assert codes.shape[1] == 4
        lengths = np.linalg.norm(fit.learned.matrix[codes].sum(axis=1), axis=1)
        assert 0.3 < lengths.max() <= fit.learned.radius <= 1 + 2.0**-40
        assert bool((np.diff(codes, axis=1) > 0).all())
        names = [str(t) for t in release.table["term"]]
        assert len(set(names)) == len(names) == len(fit.learned.matrix)
        assert fit.noise.dimension == fit.learned.dimension
        assert any("x" in n and "c = a" in n and "&" in n for n in names)


def test_models_in_plan_files(tmp_path: Any) -> None:
    small(200).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "plan.toml").write_text(
        """
[data]
path = "t.csv"
[protect]
unit = "rows"
[schema]
x = { kind = "number", low = -1, high = 1 }
c = { kind = "category", keys = ["a", "b", "c"] }
k = { kind = "category", keys = ["no", "yes"] }
[budget]
epsilon = 1
[[release]]
name = "shapes"
kind = "additive"
columns = ["x", "c"]
target = "k"
bins = 4
epsilon = 0.5
interactions = [["x", "c"]]
[[release]]
name = "rising"
kind = "additive"
columns = ["x", "c"]
target = "k"
bins = 4
epsilon = 0.5
monotone = { x = "increasing" }
"""
    )
    from tacit.curator.plan_files import read_plan

    asks = read_plan(tmp_path / "plan.toml").asks
    assert [a.statistic.to_dict().get("interactions") for a in asks] == [[["c", "x"]], None]
    assert [a.statistic.to_dict().get("monotone") for a in asks] == [None, [["x", "increasing"]]]
