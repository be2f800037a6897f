"""Models in plans: priced, charged, certified, replayed and confirmed like every other release."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tacit
from curator.functions import DECLARED, PAID, curator, small
from tacit.accounting.events import flatten
from tacit.audit import opinion_on_certificate
from tacit.curator.functions import additive_model, linear_regression, logistic_regression
from tacit.curator.functions.models import PerturbedFit, bin_names, bin_sizes, perturbed_fit
from tacit.errors import InvalidParameter, TacitError, WrongType
from tacit.guarantees import Neighbours
from tacit.pld import Product

ASKS: dict[str, Any] = {
    "logistic": logistic_regression(["x", "c", "d"], "k"),
    "flag": logistic_regression(["x"], "f"),
    "additive": additive_model(["x", "c"], "k", bins=6),
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
        assert [e.rows for e, _ in flatten(events) if e.kind == "objective_perturbation"] == [steps]
        pairs = [(e.pairs(Neighbours.ADD_OR_REMOVE)[0], n) for e, n in flatten(events)]  # type: ignore[index]
        assert 0.9e-5 < Product(pairs=pairs).delta(1.0).high <= 1e-5
        assert 0.999 < held.spent.parameters["epsilon"] <= 1
        certificate = release.certificate
        assert certificate["guarantee"] == release.guarantee.record
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


def test_bins_cover_every_step_once() -> None:
    schema = tacit.Schema(DECLARED)
    for bins in (1, 3, 7, 24):
        asked = additive_model(["x", "c", "d"], "k", bins=bins)
        question = asked.on(schema, tacit.rows())
        inputs = question.details["inputs"]
        sizes = bin_sizes(inputs, bins)
        assert len(bin_names(inputs, bins)) == sum(sizes)
        assert len(set(bin_names(inputs, bins))) == sum(sizes)
        fit = perturbed_fit(question, Fraction(1), Fraction(1, 10**5))
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
        ):
            with pytest.raises(problem):
                held.release(make(), **PAID)
        for price in ({"epsilon": 1}, {"rho": 0.1}):
            with pytest.raises(TacitError):
                held.release(ASKS["logistic"], **price)
        assert held.spent is None or held.spent.parameters["epsilon"] == 0


def test_odd_rows_raise_nothing() -> None:
    data = small()
    data.loc[0, "x"] = np.nan
    data.loc[1, "k"] = None
    data.loc[2, "c"] = "other"
    with curator(data=data) as held:
        for name in ("logistic", "additive", "linear"):
            assert held.release(ASKS[name], **PAID).publishable
