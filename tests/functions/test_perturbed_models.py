"""Models by objective perturbation: prices, coding, odd rows, shapes, private scores."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tacit.accounting.events import flatten
from tacit.errors import InvalidParameter, UnknownName
from tacit.functions.models import (
    NumberColumn,
    PrivateAdditiveClassifier,
    PrivateAdditiveRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivatePoissonRegression,
    PublicBox,
    holdout_report,
)
from tacit.functions.models.columns import LONGEST, DeclaredColumns
from tacit.functions.models.losses import ClippedPoisson
from tacit.functions.models.objective import DenseDesign
from tacit.functions.models.perturbed import PerturbedPlan, bought_columns, perturbed_head
from tacit.functions.models.solvers import Huber
from tacit.guarantees import Neighbours
from tacit.noise.source import SeededSource
from tacit.pld import Product

BOX = PublicBox(low=-10, high=10)
CONTRADICT_PRIVACY = {
    "check_dtype_object": "one row that holds no number would be told by an error; it counts as other",
    "check_supervised_y_no_nan": "one infinite target would be told by an error; it is moved to the bound",
    "check_fit_idempotent": "fits twice and wants the same noise twice",
    "check_supervised_y_2d": "fits twice and wants the same noise twice",
    "check_classifier_data_not_an_array": "fits twice and wants the same noise twice",
    "check_regressor_data_not_an_array": "fits twice and wants the same noise twice",
    "check_regressors_int": "fits twice and wants the same noise twice",
}
ESTIMATORS = [
    PrivateAdditiveClassifier(1, 1e-5, columns=BOX, classes="public", bins=4),
    PrivateLinearRegression(1, 1e-5, columns=BOX, target_bounds=(-100, 100)),
    PrivatePoissonRegression(1, 1e-5, columns=BOX, most=20),
    PrivateAdditiveRegressor(1, 1e-5, columns=BOX, target_bounds=(-100, 100), bins=4),
]


@pytest.mark.filterwarnings("default")
@parametrize_with_checks(
    ESTIMATORS, expected_failed_checks=lambda e: {
        k: v for k, v in CONTRADICT_PRIVACY.items() if not (hasattr(e, "classes") and "y_no_nan" in k)
    }
)  # fmt: skip
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


COLUMNS = {"age": (0, 100), "town": ["a", "b"]}


def people(n: int, seed: int = 0) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    age, town = random.uniform(0, 100, n), random.choice(["a", "b"], n)
    X = np.empty((n, 2), dtype=object)
    X[:, 0], X[:, 1] = age, town
    y = (random.random(n) < 1 / (1 + np.exp(-(age - 50) / 10 - (town == "b")))).astype(int)
    return X, y


def additive(**changes: Any) -> PrivateAdditiveClassifier:
    given = {
        "epsilon": 1,
        "delta": 1e-6,
        "columns": COLUMNS,
        "classes": [0, 1],
        "source": SeededSource(seed=5),
    }
    return PrivateAdditiveClassifier(**(given | changes))


@pytest.mark.parametrize(
    "changes",
    [{}, {"neighbours": "replace-one"}, {"rows": 3}, {"buy_bins": True}, {"classes": [0, 1, 2]}],
)
def test_what_is_drawn_costs_what_was_asked(changes: dict[str, Any]) -> None:
    X, y = people(300)
    model = additive(**changes).fit(X, y)
    relation = model.plan_.neighbours
    pairs = [(e.pairs(relation)[0], n) for e, n in flatten(model.events_)]  # type: ignore[index]
    assert 0.9e-6 < Product(pairs=pairs).delta(1.0).high <= 1e-6
    assert model.guarantee_.bound.delta_at(1.0) <= 1e-6
    steps = model.plan_.rows * (2 if relation is Neighbours.REPLACE_ONE else 1)
    assert [e.rows for e, _ in flatten(model.events_) if e.kind == "objective_perturbation"] == [steps]
    heads = 3 if len(model.classes_) == 3 else 1
    assert [n for e, n in flatten(model.events_) if e.kind == "objective_perturbation"] == [heads]


def test_no_row_is_longer_than_the_proof_says() -> None:
    X, _ = people(50)
    X[3, 0], X[4, 1], X[5, 0], X[6, 0], X[7, 1] = 1e300, None, np.nan, "words", 2**70
    for count in range(1, 12):
        columns = DeclaredColumns.of({f"c{j}": (0, 100) if j % 2 == 0 else ["a", "b"] for j in range(count)})
        table = np.column_stack([X[:, j % 2] for j in range(count)])
        assert np.linalg.norm(columns.linear(table), axis=1).max() <= 1 + 2.0**-40
        codes = columns.codes(table)
        assert codes.shape == (50, count + 1)
        assert (count + 1) * columns.height**2 <= (1 + 2.0**-40) ** 2
        # One bin of each column, in its own range.
        for j, (start, size) in enumerate(zip(columns.starts, columns.sizes, strict=False)):
            assert bool(((codes[:, j] >= start) & (codes[:, j] < start + size)).all())


def test_odd_rows_change_no_type_and_raise_nothing() -> None:
    X, y = people(200)
    odd, labels = X.copy(), y.astype(object)
    odd[0] = [float("nan"), None]
    odd[1] = [10**400, b"\xff"]
    labels[2] = "neither"
    one, other = additive().fit(X, y), additive().fit(odd, labels)
    assert one.model_.weights.shape == other.model_.weights.shape
    assert one.events_ == other.events_
    assert other.predict(odd).dtype == one.predict(X).dtype
    for empty in (np.full(200, 7), np.ones(200, dtype=int)):
        assert additive().fit(X, empty).predict(X).shape == (200,)


def test_people_are_told_apart_and_shapes_rise() -> None:
    X, y = people(4000)
    Z, z = people(2000, seed=1)
    model = additive(epsilon=2).fit(X, y)
    assert model.score(Z, z) > 0.78
    shape = model.shapes_["age"]
    assert shape.values[20] > shape.values[2] + 1
    assert shape.labels[0] == "0 to 4.16667"
    assert shape.labels[-1] == "(other)"
    record = json.loads(json.dumps(model.shapes_.to_dict()))
    logit = record["constant"]
    for column, value in zip(record["columns"], (63.0, "b"), strict=True):
        if column["edges"]:
            at = int(np.searchsorted(column["edges"][1:-1], value, side="right"))
        else:
            at = column["bins"].index(value)
        logit += column["values"][at]
    point = np.array([[63.0, "b"]], dtype=object)
    assert logit == pytest.approx(float(model.decision_function(point)[0]))
    card = model.shapes_.scorecard(points=20)
    assert card[0]["points"] == pytest.approx(model.shapes_.constant * 20 / math.log(2), abs=0.05)
    assert "<svg" in model.shapes_.svg("age")
    assert "&lt;" in additive(columns={"<b>": (0, 1), "town": ["a"]}).fit(X, y).shapes_.svg("<b>")
    assert model.shapes_.formula.startswith("logit = ")
    with pytest.raises(UnknownName):
        model.shapes_["income"]
    with pytest.raises(InvalidParameter, match="classes"):
        additive(classes=[0, 1, 2]).fit(X, y).shapes_  # noqa: B018


def test_bins_that_are_bought_follow_the_noisy_rows() -> None:
    columns = DeclaredColumns.of({"gain": (0, 100_000), "town": ["a", "b"]})
    counts = np.zeros(257 + 3)
    counts[0], counts[1:20], counts[20:256] = 9000.0, 50.0, -5.0
    found = bought_columns(columns, counts, bins=8).columns[0]
    assert isinstance(found, NumberColumn)
    assert found.bins <= 8
    assert found.cuts[0] == pytest.approx(100_000 / 256)
    X, y = people(3000)
    model = additive(buy_bins=True, epsilon=2).fit(X, y)
    shape = model.shapes_["age"]
    assert shape.half is not None
    assert bool((shape.half > 0).all())
    assert model.model_.counts.sum() > 0


def test_linear_and_poisson_find_the_line() -> None:
    random = np.random.default_rng(2)
    X = random.uniform(0, 10, (6000, 1))
    y = 3 * X[:, 0] + random.normal(0, 2, 6000)
    model = PrivateLinearRegression(
        2, 1e-6, columns={"x": (0, 10)}, target_bounds=(0, 40), source=SeededSource(seed=3)
    ).fit(X, y)
    assert model.coef_[0] == pytest.approx(3, abs=0.4)
    at = np.array([[0.0], [10.0]])
    assert model.predict(at) == pytest.approx(np.clip(model.intercept_ + at[:, 0] * model.coef_[0], 0, 40))
    counts = random.poisson(np.exp(0.1 + 0.15 * X[:, 0]))
    poisson = PrivatePoissonRegression(
        2, 1e-6, columns={"x": (0, 10)}, most=15, source=SeededSource(seed=3)
    ).fit(X, counts)
    assert poisson.coef_[0] == pytest.approx(0.15, abs=0.05)
    assert poisson.predict(at) == pytest.approx(np.exp(poisson.intercept_ + at[:, 0] * poisson.coef_[0]))
    smooth = PrivateAdditiveRegressor(
        2, 1e-6, columns={"x": (0, 10)}, target_bounds=(0, 40), source=SeededSource(seed=3)
    ).fit(X, y)
    assert smooth.score(X, y) > 0.5
    assert smooth.shapes_.to_dict()["link"] == "identity"


def test_logistic_regression_by_both_mechanisms() -> None:
    X, y = people(3000)
    table = np.column_stack([X[:, 0].astype(float) / 50 - 1, (X[:, 1] == "b") * 2.0 - 1])
    domain = PublicBox(low=-1, high=1)
    for neighbours in ("replace-one", "add-or-remove"):
        model = PrivateLogisticRegression(
            1, 1e-6, domain=domain, classes=[0, 1], neighbours=neighbours, source=SeededSource(seed=2)
        ).fit(table, y)
        assert model.score(table, y) > 0.75
        assert model.guarantee_.unit.neighbours.value == neighbours
        assert model.guarantee_.bound.delta_at(1.0) <= 1e-6
    old = PrivateLogisticRegression(1, 1e-6, domain=domain, classes=[0, 1], mechanism="output").fit(table, y)
    assert old.guarantee_.bound.kind == "gaussian"
    for wrong in ({"mechanism": "none"}, {"mechanism": "output", "rows": 2}, {"neighbours": "all"}):
        with pytest.raises(InvalidParameter):
            PrivateLogisticRegression(1, 1e-6, domain=domain, classes=[0, 1], **wrong).fit(table, y)


def test_a_private_score_is_near_the_true_one_and_has_a_price() -> None:
    X, y = people(4000)
    Z, z = people(3000, seed=4)
    model = additive().fit(X, y)
    report = holdout_report(model, Z, z, epsilon=1, source=SeededSource(seed=1))
    assert report.guarantee.epsilon(0) == 1
    low, high = report.accuracy_interval
    assert low <= model.score(Z, z) <= high
    assert abs(report.accuracy - model.score(Z, z)) < 0.02
    true = np.array([[((z == a) & (model.predict(Z) == b)).sum() for b in (0, 1)] for a in (0, 1)])
    assert np.abs(report.confusion - true).max() <= report.confusion_half
    assert report.calibration_error < 0.15
    twice = holdout_report(model, Z, z, epsilon=1, neighbours="replace-one", rows_each=2)
    assert twice.half == pytest.approx(4 * report.half, rel=0.1)
    with pytest.raises(InvalidParameter):
        holdout_report(additive(classes=[0, 1, 2]).fit(X, y), Z, z, epsilon=1)


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": None}, {"delta": None}, {"columns": None}, {"classes": None}, {"columns": {"age": (0, 100)}},
        {"columns": {}}, {"columns": {"age": (3, 1), "town": ["a"]}}, {"columns": {"age": "0-100", "town": ["a"]}},
        {"columns": {"age": (0, 1, [5.0]), "town": ["a"]}}, {"columns": {"age": (0, 1), "town": ["a", "a"]}},
        {"neighbours": "all"}, {"rows": 0}, {"ridge": -1}, {"smooth": -1}, {"tolerance": 1e-14}, {"bins": 0},
    ],
)  # fmt: skip
def test_refusals_before_a_row_is_read(changes: dict[str, Any]) -> None:
    X, y = people(20)
    with pytest.raises((InvalidParameter, ValueError)):
        additive(**changes).fit(X, y)
    with pytest.raises(InvalidParameter):
        PrivateLinearRegression(1, 1e-6, columns=COLUMNS).fit(X, y)
    with pytest.raises(InvalidParameter):
        PrivateLinearRegression(1, 1e-6, columns=COLUMNS, target_bounds=(2, 1)).fit(X, y)
    with pytest.raises(InvalidParameter):
        PrivatePoissonRegression(1, 1e-6, columns=COLUMNS).fit(X, y)


@pytest.mark.parametrize(
    ("loss", "epsilon", "count"),
    [
        (ClippedPoisson(most=1e6), 1.0, 1000), (ClippedPoisson(most=1e3), 1.0, 200_000),
        (Huber(threshold=0.5), 8.0, 10**6),
    ],
)  # fmt: skip
def test_no_row_decides_whether_a_minimum_is_certified(loss: Any, epsilon: float, count: int) -> None:
    """Where it is not, 0 stands for it: large counts, and many rows beside a small ridge, must not come there."""
    plan = PerturbedPlan(
        columns=DeclaredColumns.of([(0, 1)]), coding="linear", loss=loss, epsilon=epsilon, delta=1e-6
    )
    noise = plan.mechanism(2)
    table = np.full((count, 2), 0.5**0.5)
    table[: count // 2, 0] *= -0.3
    target = np.where(np.arange(count) % 3 == 0, loss.highest, loss.lowest)
    head = perturbed_head(loss, DenseDesign(table=table, radius=LONGEST), target, noise, None)
    for seed in range(3):
        term = np.random.default_rng(seed).normal(size=2) * noise.noise_std
        assert head(term, float(noise.spacing))[1] <= noise.tolerance
    # The noise that covers the error stays far below the one that protects.
    assert noise.output.noise_std < 0.02 * noise.noise_std / noise.ridge


def test_a_released_machine_does_not_tell_a_private_number_of_rows() -> None:
    """Add-or-remove: all but the weights is the same whatever the number of rows; the ridge may not follow it."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (40, 2))
    y = (X[:, 0] > 0).astype(int)

    def fitted(count: int, **more: Any) -> Any:
        given = {"neighbours": "add-or-remove", "source": SeededSource(seed=1), "classes": [0, 1]} | more
        return PrivateLogisticRegression(1, 1e-5, domain=BOX, **given).fit(X[:count], y[:count])

    one, other = (fitted(count) for count in (40, 39))
    assert one.plan_ == other.plan_
    assert one.model_.penalty == other.model_.penalty == one.plan_.ridge / 2
    for more in ({"penalty": 0.1}, {"penalty": [0.1, 0.2], "choice_epsilon": 0.5}):
        with pytest.raises(InvalidParameter):
            fitted(40, **more)
    with pytest.raises(InvalidParameter, match="list of penalties"):
        fitted(40, neighbours="replace-one", rows=3, penalty=[0.1, 0.2], choice_epsilon=0.5)
