"""Models by objective perturbation: prices, coding, odd rows, shapes, private scores."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import product
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
from tacit.functions.models.contrasts import Contrasts, contrasts
from tacit.functions.models.losses import ClippedPoisson
from tacit.functions.models.objective import DenseDesign
from tacit.functions.models.perturbed import PerturbedPlan, bought_columns, perturbed_head
from tacit.functions.models.rivals import ELSEWHERE, GAUSSIAN, PURE, ReferenceTable
from tacit.functions.models.shapes import _stds
from tacit.functions.models.solvers import Huber
from tacit.guarantees import Neighbours, gaussian_budget
from tacit.mechanisms.objective import CERTIFIED, ObjectivePerturbation
from tacit.mechanisms.pure_objective import PureObjectivePerturbation
from tacit.noise.source import SeededSource
from tacit.pld import Product

BOX = PublicBox(low=-10, high=10)
CONTRADICT_PRIVACY = {
    "check_estimators_empty_data_messages": "the number of rows is private: an error would tell that it is 0",
    "check_dtype_object": "one row that holds no number would be told by an error; it counts as other",
    "check_supervised_y_no_nan": "one infinite target would be told by an error; it is moved to the bound",
}
WANT_THE_SAME_NOISE_TWICE = {
    "check_fit_idempotent", "check_supervised_y_2d", "check_classifier_data_not_an_array",
    "check_regressor_data_not_an_array", "check_regressors_int",
}  # fmt: skip
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
    if check.func.__name__ in WANT_THE_SAME_NOISE_TWICE:
        pytest.skip("fits twice and wants the same noise twice; whether it gets it is luck")
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
    [
        {}, {"neighbours": "replace-one"}, {"rows": 3}, {"buy_bins": True}, {"classes": [0, 1, 2]},
        {"calibrate": False}, {"interactions": [("age", "town")]},
    ],
)  # fmt: skip
@pytest.mark.parametrize("delta", [1e-6, 0])
def test_what_is_drawn_costs_what_was_asked(changes: dict[str, Any], delta: float) -> None:
    X, y = people(300)
    model = additive(delta=delta, **changes).fit(X, y)
    relation = model.plan_.neighbours
    steps = model.plan_.rows * (2 if relation is Neighbours.REPLACE_ONE else 1)
    parts, listed = model.model_.parts, list(flatten(model.events_))
    heads = 3 if len(model.classes_) == 3 else 1
    calibrated = changes.get("calibrate", True) and heads == 1
    assert (parts.calibration is not None) == calibrated
    assert (parts.histogram is not None) == bool(changes.get("buy_bins"))
    assert parts.heads == heads
    assert parts.model.rows == steps
    assert not calibrated or parts.calibration.rows == steps
    count = sum(n for _, n in listed)
    assert count == 2 * heads + 2 * calibrated + bool(changes.get("buy_bins"))
    assert CERTIFIED in model.guarantee_.declared
    if delta:
        pairs = [(e.pairs(relation)[0], n) for e, n in listed]  # type: ignore[index]
        assert 0.9e-6 < Product(pairs=pairs).delta(1.0).high <= 1e-6
        assert model.guarantee_.bound.delta_at(1.0) <= 1e-6
        kinds = [e.rows for e, _ in listed if e.kind == "objective_perturbation"]
        assert kinds == [steps] * (1 + calibrated)
    else:
        assert 0.999 < sum(e.epsilon * n for e, n in listed) <= 1 + 1e-12
        assert 0.999 < model.guarantee_.bound.epsilon <= 1
        assert model.guarantee_.bound.kind == "pure"


def codes_are_short(columns: DeclaredColumns, codes: Any) -> bool:
    """Every row of the additive model's coordinates, by itself, at small and large noise."""
    for noise in (0.5, 5.0, 200.0):
        for rows in (100, 10**6):
            learned = contrasts(columns, noise_std=noise, ridge=1.0, rows=rows, loss="logistic")
            table = learned.matrix[codes].sum(axis=1)
            assert table.shape == (len(codes), learned.dimension)
            longest = float(np.linalg.norm(table, axis=1).max())
            assert 0.3 < longest <= learned.radius <= LONGEST
            # Whatever is guessed, the ridge is at least the one that the proof needs.
            assert learned.ridges.min() >= 1.0
            assert np.linalg.eigvalsh(learned.penalty(1.0)).min() >= 0
    return True


def test_no_row_is_longer_than_the_proof_says() -> None:
    paired = DeclaredColumns.of({"c0": (0, 100), "c1": ["a", "b"]}).with_terms(interactions=[("c0", "c1")])
    assert 1 - 1e-9 < Contrasts.plain(paired).radius <= LONGEST
    with pytest.raises(InvalidParameter):
        Contrasts(
            blocks=(np.full((2, 2), 0.8),), ridges=np.ones(2), curvatures=np.ones(2), effects=np.ones(2)
        )
    X, _ = people(50)
    X[3, 0], X[4, 1], X[5, 0], X[6, 0], X[7, 1] = 1e300, None, np.nan, "words", 2**70
    for count in range(1, 12):
        columns = DeclaredColumns.of({f"c{j}": (0, 100) if j % 2 == 0 else ["a", "b"] for j in range(count)})
        table = np.column_stack([X[:, j % 2] for j in range(count)])
        assert np.linalg.norm(columns.linear(table), axis=1).max() <= 1 + 2.0**-40
        codes = columns.codes(table)
        assert codes.shape == (50, count + 1)
        assert codes_are_short(columns, codes)
        if count > 2:
            paired = columns.with_terms(interactions=[("c0", "c1"), ("c1", "c2")])
            codes = paired.codes(table)
            assert codes.shape == (50, count + 3)
            assert codes_are_short(paired, codes)
            assert bool((np.diff(codes, axis=1) > 0).all())
            assert codes.max() == paired.dimension - 1
            codes = columns.codes(table)
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


@pytest.mark.parametrize("frame", [False, True])
def test_an_empty_table_gets_an_answer_where_the_number_of_rows_is_private(frame: bool) -> None:
    """The empty table and the table of one person are neighbours: an error would tell them apart."""
    import pandas as pd

    numbers = {"age": (0, 100), "hours": (0, 99)}
    models: list[tuple[Any, dict[str, Any]]] = [
        (PrivateAdditiveClassifier, {"classes": [0, 1], "columns": numbers}),
        (PrivateAdditiveRegressor, {"target_bounds": (0, 9), "columns": numbers}),
        (PrivateLinearRegression, {"target_bounds": (0, 9), "columns": numbers}),
        (PrivatePoissonRegression, {"most": 9, "columns": numbers}),
        (PrivateLogisticRegression, {"classes": [0, 1], "domain": PublicBox(low=-1, high=1)}),
    ]
    none: Any = np.empty((0, 2))
    one: Any = np.array([[30.0, 40.0]])
    if frame:
        none, one = (pd.DataFrame(v, columns=list(numbers)) for v in (none, one))
    for kind, given in models:
        for neighbours in ("add-or-remove", "replace-one"):
            model = kind(1, 1e-6, neighbours=neighbours, **given)
            model.fit(one, [1]).predict(one)
            if neighbours == "replace-one":
                with pytest.raises(ValueError, match="0 sample"):
                    model.fit(none, [])
            else:
                assert model.fit(none, []).predict(one).shape == (1,)
                with pytest.raises(ValueError, match="0 sample"):
                    model.predict(none)


def test_columns_are_read_by_their_place_and_names_must_agree() -> None:
    import pandas as pd

    X, y = people(40)
    table = pd.DataFrame({"age": X[:, 0].astype(float), "town": X[:, 1]})
    assert additive().fit(table, y).feature_names_in_.tolist() == ["age", "town"]
    for changed in (table[["town", "age"]], table.rename(columns={"age": "years"})):
        with pytest.raises(InvalidParameter, match="in their order"):
            additive().fit(changed, y)
    with pytest.raises(InvalidParameter, match="in their order"):
        additive().fit(table, y).predict(table[["town", "age"]])
    assert additive().fit(table.to_numpy(), y).predict(table.to_numpy()).shape == (40,)


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


def test_what_the_penalty_does_is_said() -> None:
    """`kept` is the shrinkage that a simulated fit of the expected effects has, without reading a row."""
    columns = DeclaredColumns.of({"x": (0, 1, 8), "town": ["a", "b", "c"]})
    for noise in (3.0, 30.0):
        learned = contrasts(columns, noise_std=noise, ridge=1.0, rows=10_000, loss="logistic")
        assert all(0 <= k <= 1 for k in learned.kept)
        h, r = learned.curvatures, learned.ridges
        two = learned.blocks[1].shape[1] - 1
        at = learned.blocks[0].shape[1]
        assert learned.kept[1] == pytest.approx((h / (h + r))[at : at + two].mean(), rel=0.01)
    # One declared value: whether a row has it is learned. Nothing overflows at the largest weight.
    one = DeclaredColumns.of({"town": ["a"], "x": (0, 1, 1)})
    for smooth in (0.0, 1e308):
        found = contrasts(one, noise_std=3.0, ridge=1.0, rows=10_000, loss="logistic", smooth=smooth)
        assert found.dimension == 3
        assert all(np.isfinite(b).all() and (b[0] == -b[1]).all() for b in found.blocks[:2])
        wide = contrasts(columns, noise_std=3.0, ridge=1.0, rows=10_000, loss="logistic", smooth=smooth)
        assert np.isfinite(wide.matrix).all()
    low, high = (
        contrasts(columns, noise_std=noise, ridge=1.0, rows=10_000, loss="logistic").kept for noise in (30, 3)
    )
    assert all(a < b for a, b in zip(low, high, strict=True))
    X, y = people(300)
    model = additive().fit(X, y)
    assert 0 < model.shapes_["age"].kept < 1
    assert model.shapes_.to_dict()["columns"][0]["kept"] == model.shapes_["age"].kept
    assert additive(epsilon=4).fit(X, y).shapes_["age"].kept > model.shapes_["age"].kept


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
    chance = model.predict_proba(Z)[:, 1]
    for k, found in enumerate(report.calibration):
        inside = (chance >= k / 10) & (chance < (k + 1) / 10)
        assert found["low"] <= found["share"] <= found["high"]
        if inside.any():
            assert found["low"] <= z[inside].mean() <= found["high"]
    assert report.svg().count("<circle") >= 5
    empty = holdout_report(model, Z[:0], z[:0], epsilon=0.01, source=SeededSource(seed=2))
    assert all(b["low"] < 0.5 < b["high"] for b in empty.calibration)
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
    noise = plan.parts(2).model
    table = np.full((count, 2), 0.5**0.5)
    table[: count // 2, 0] *= -0.3
    target = np.where(np.arange(count) % 3 == 0, loss.highest, loss.lowest)
    head = perturbed_head(loss, DenseDesign(table=table, radius=LONGEST), target, noise, None)
    for seed in range(3):
        term = np.random.default_rng(seed).normal(size=2) * noise.term_std
        assert head(term, float(noise.spacing))[1] <= noise.tolerance / 2  # with room for other rows
    # The noise that covers the error stays far below the one that protects.
    assert noise.output.noise_std < 0.05 * noise.term_std / noise.ridge


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


def test_few_terms_get_pure_noise_and_many_gaussian() -> None:
    """The chooser compares expected errors without a row; where pure noise is less, no delta is spent."""
    X, y = people(300)
    table = np.column_stack([X[:, 0].astype(float) / 50 - 1, (X[:, 1] == "b") * 2.0 - 1])
    few = PrivateLogisticRegression(1, 1e-6, domain=PublicBox(low=-1, high=1), classes=[0, 1])
    assert few.fit(table, y).guarantee_.bound.kind == "pure"
    assert few.guarantee_.bound.epsilon <= 1
    choice = few.perturbation(n_samples=300, n_features=2)
    assert choice.errors[PURE] < choice.errors[GAUSSIAN]
    # Three terms: scale sqrt(4) beside the Gaussian deviation at the same rate.
    assert isinstance(choice.mechanism, PureObjectivePerturbation)
    many = few.perturbation(n_samples=300, n_features=40)
    assert isinstance(many.mechanism, ObjectivePerturbation)
    assert many.reason.startswith("a perturbed objective: expected excess loss")
    for rival in ("output noise", "noisy gradients"):
        assert rival in many.reason
    linear = PerturbedPlan(
        columns=DeclaredColumns.of([(0, 1)]),
        coding="linear",
        loss=Huber(threshold=0.5),
        epsilon=1,
        delta=1e-6,
    )
    assert "noisy moments" in linear.choice().reason
    for plan in (linear, replace(linear, epsilon=0.25, columns=DeclaredColumns.of([(0, 1)] * 60))):
        chosen = plan.choice()
        best = min(chosen.errors, key=lambda name: chosen.errors[name])
        assert (best in ELSEWHERE) == ("would have less there" in chosen.reason)
        if best in ELSEWHERE:
            assert chosen.reason.endswith(f"{best} would have less there: {ELSEWHERE[best]}")
    assert {best} <= set(ELSEWHERE), "with many columns and much noise a rival is ahead"


def test_expected_errors_are_those_of_simulated_fits() -> None:
    """A quadratic objective with the reference table's curvatures, noise drawn by numpy."""
    random = np.random.default_rng(0)
    table = ReferenceTable(dimension=6, rows=4000, radius=1.0, loss=Huber(threshold=0.5))
    h = 4000 / np.arange(1, 7) / (1 / np.arange(1, 7)).sum()
    true = np.full(6, math.sqrt(0.1))

    def excess(found: np.ndarray) -> float:
        return float((h * (found - true) ** 2).sum(axis=1).mean() / (2 * 4000))

    # The sample moves the gradient by a variance of a tenth of the curvature.
    sample = random.normal(0, 1, (20_000, 6)) * np.sqrt(0.1 * h)
    noise = random.normal(0, 30, (20_000, 6))
    assert excess((h * true + sample + noise) / (h + 50)) == pytest.approx(table.perturbed(30, 50), rel=0.03)
    mu = gaussian_budget(epsilon=1, delta=1e-6).mu
    rivals = dict(table.rivals(1, 1e-6))
    moved = [
        excess((h * true + sample) / (h + r) + random.normal(0, 0.5 / (r * mu), (20_000, 6)))
        for r in np.geomspace(10, 1000, 40)
    ]
    assert min(moved) == pytest.approx(rivals["output noise"], rel=0.05)
    steps = []
    for part, times in product((1.0, 0.5, 0.25, 0.1), (1, 4, 8, 16, 32, 64, 128, 256)):
        w = np.zeros((4000, 6))
        for _ in range(times):
            noisy = h * (w - true) - sample[:4000] + random.normal(0, 0.5 / mu * math.sqrt(times), w.shape)
            w = w - noisy * part / h.max()
        steps.append(excess(w))
    assert min(steps) == pytest.approx(rivals["noisy gradients"], rel=0.05)


def test_rows_of_the_calibration_are_within_the_unit_ball(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is handed to the mechanism: rows (f/3, 1)/sqrt(2), f cut at 3, and the score as a shift of the loss."""
    from tacit.functions.models import perturbed

    seen = []

    def watched(loss: Any, design: Any, *more: Any) -> Any:
        seen.append((loss, design))
        return perturbed_head(loss, design, *more)

    monkeypatch.setattr(perturbed, "perturbed_head", watched)
    X, y = people(4000)
    model = additive(epsilon=8).fit(X, y)
    (_, _), (loss, design) = seen
    assert np.linalg.norm(design.table, axis=1).max() <= 1 + 2.0**-40
    assert design.table.shape == (4000, 2)
    # Without the last step the function is that score; with it, slope and constant of it.
    assert np.abs(loss.by).max() > 3
    found = model.decision_function(X)
    again = np.polyfit(loss.by, found, 1)
    assert found == pytest.approx(np.polyval(again, loss.by), abs=1e-9)
    assert again[0] == pytest.approx(model.model_.slope)
    # Slope and second derivative of the shifted loss are p and p (1 - p) of one number.
    t, target = np.linspace(-4, 4, 4000), np.where(np.arange(4000) % 2 == 0, 1.0, -1.0)
    p = -target * loss.slopes(t, target)
    assert bool(((p >= 0) & (p <= 1)).all())
    assert loss.bends(t, target) == pytest.approx(p * (1 - p))


def test_declared_terms_of_an_additive_model() -> None:
    X, y = people(3000)
    crossed = ((X[:, 0].astype(float) > 50) == (X[:, 1] == "b")).astype(int)
    model = additive(epsilon=4, interactions=[("town", "age")]).fit(X, crossed)
    assert model.score(X, crossed) > 0.9
    assert additive(epsilon=4).fit(X, crossed).score(X, crossed) < 0.7
    # A page evaluates it from the JSON alone.
    record = json.loads(json.dumps(model.shapes_.to_dict()))
    for age, town in ((63.0, "b"), (12.0, "a"), (99.9, "zzz")):
        bins = []
        for column, value in zip(record["columns"][:2], (age, town), strict=True):
            if column["edges"]:
                bins.append(int(np.searchsorted(column["edges"][1:-1], value, side="right")))
            else:
                known = column["bins"][:-1]
                bins.append(known.index(value) if value in known else len(known))
        logit = record["constant"] + sum(
            c["values"][b] for c, b in zip(record["columns"], bins, strict=False)
        )
        pair = record["columns"][2]
        one, two = (g[bins[k]] for g, k in zip(pair["groups"], pair["pair"], strict=True))
        logit += pair["values"][one * (max(pair["groups"][1]) + 1) + two]
        point = np.array([[age, town]], dtype=object)
        assert logit == pytest.approx(float(model.decision_function(point)[0]))
    picture = model.shapes_.svg("age × town")
    assert "<rect" in picture
    # Both columns are named, and their groups.
    assert all(f">{text}</text>" in picture for text in ("age", "town", "a", "b", "(other)", "0 to 12.5"))
    assert all(f">{text}</text>" in model.shapes_.svg("town") for text in ("a", "b", "(other)"))
    assert any(row["column"] == "age × town" for row in model.shapes_.scorecard())
    rising = additive(epsilon=0.1, monotone={"age": "increasing"}).fit(X, y)
    falling = additive(epsilon=0.1, monotone={"age": "decreasing"}, buy_bins=True).fit(X, y)
    steep = falling.model_.slope
    assert falling.shapes_["age"].half is not None
    plain = _stds(falling.model_)[: len(falling.shapes_["age"].values)]
    assert falling.shapes_["age"].half == pytest.approx(1.96 * plain * steep)
    for fitted, way in ((rising, 1), (falling, -1)):
        values = fitted.shapes_["age"].values[:-1]
        assert bool((np.diff(values) * way >= -1e-12).all())
    for wrong in (
        {"interactions": [("age", "age")]}, {"interactions": [("age", "income")]}, {"interactions": "age"},
        {"interactions": [("age", "town"), ("town", "age")]}, {"monotone": {"town": "increasing"}},
        {"monotone": {"age": "up"}}, {"monotone": "age"}, {"monotone": {"income": "increasing"}},
        {"monotone": {"age": "increasing"}, "interactions": [("age", "town")]}, {"calibrate": "yes"},
        {"columns": {"age": (0, 100), "town": list(range(500))}, "interactions": [("age", "town")]},
    ):  # fmt: skip
        with pytest.raises(InvalidParameter):
            additive(**wrong).fit(X, y)
