"""What may be asked of functions, what they may be paid with, and at which points they answer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.errors import EmptyComposition, InvalidParameter, TacitError, TooManyCells, UnknownName, WrongType

from .functions import ASKS, PAID, curator, small


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (lambda: tacit.classifier([], "k", size=10), EmptyComposition),
        (lambda: tacit.classifier(["x"], "k", size=0), InvalidParameter),
        (lambda: tacit.classifier(["x"], "x", size=10), TacitError),
        (lambda: tacit.classifier(["k"], "k", size=10), InvalidParameter),
        (lambda: tacit.classifier(["x"], "z", size=10), WrongType),
        (lambda: tacit.classifier(["x"], "t", size=10), WrongType),
        (lambda: tacit.classifier(["t"], "k", size=10), WrongType),
        (lambda: tacit.classifier(["u"], "k", size=10), TacitError),
        (lambda: tacit.classifier(["nobody"], "k", size=10), TacitError),
        (lambda: tacit.classifier(["x"], "k", size=10, kernel="cosine"), UnknownName),
        (lambda: tacit.classifier(["x"], "k", size=10, loss="huber"), UnknownName),
        (lambda: tacit.classifier(["x"], "k", size=10, penalty=0), InvalidParameter),
        (lambda: tacit.classifier(["x"], "k", size=10, gamma=math.nan), InvalidParameter),
        (lambda: tacit.classifier(["x", "z"], "k", size=10, points=5000), TooManyCells),
        (lambda: tacit.density("c", size=10), WrongType),
        (lambda: tacit.density(["x", "z", "f", "d"], size=10), InvalidParameter),
        (lambda: tacit.density("x", size=10, bandwidth=0), InvalidParameter),
        (lambda: tacit.density("x", size=10, bandwidth=1e-9), InvalidParameter),
        (lambda: tacit.density("x", size=10, bandwidth=[1, 2]), InvalidParameter),
        (lambda: tacit.regression_function("x", "k", size=10), WrongType),
        (lambda: tacit.regression_function("x", "d", size=10), WrongType),
        (lambda: tacit.regression_function("x", "u", size=10), TacitError),
        (lambda: tacit.regression_function("x", "z", size=10, where="nobody > 1"), TacitError),
        (lambda: tacit.regression_function([tacit.bins("x", 3)], "z", size=10), InvalidParameter),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_costs_nothing(asked: Any, problem: type[TacitError]) -> None:
    with curator() as held:
        with pytest.raises(problem):
            held.release(asked(), **PAID)
        assert held.spent.parameters["epsilon"] == 0


def test_prices_without_room_for_gaussian_noise_are_refused() -> None:
    with curator() as held:
        for paid in ({"epsilon": 1}, {"within": 0.1}):
            with pytest.raises(InvalidParameter):
                held.release(ASKS["classifier"], **paid)
        assert held.spent.parameters["epsilon"] == 0
        with pytest.raises(InvalidParameter, match="be of a function"):
            held.release(tacit.count(), epsilon=0.1).function  # noqa: B018


def test_a_column_called_class_keeps_its_name() -> None:
    data = small().rename(columns={"x": "class"})
    schema = {"class": tacit.number(-1, 1), "c": tacit.category(["a", "b", "c"])}
    with curator(data, schema=schema) as held:
        table = held.release(tacit.classifier(["class"], "c", size=300, pairs=2, points=5), **PAID).table
    assert table.columns.tolist() == ["class", "class_", "value", "low", "high"]
    assert len(table) == 15


def test_rows_are_not_printed() -> None:
    from tacit.sources.query import RowsWanted, TrainingRows

    rows = TrainingRows(request=RowsWanted(columns=("x",)), rows={"x": np.array([0.123456789])})
    assert "0.1234" not in repr(rows)


def test_what_belongs_to_tables_is_refused_or_changes_nothing() -> None:
    with curator() as held:
        with pytest.raises(TacitError):
            held.preview(tacit.query(ASKS["flag"], sampling=True), **PAID)
        with pytest.raises(TacitError):
            held.preview([tacit.query(ASKS["flag"], target=1), tacit.query(tacit.count(), target=1)], **PAID)
        assert held.release(ASKS["flag"], consistent=True, **PAID).table.shape == (101, 4)


def test_points_are_checked_and_moved_to_the_bounds() -> None:
    with curator() as held:
        function = held.release(ASKS["linear"], **PAID).function
        one = held.release(ASKS["regression"], **PAID).function
    day = pd.Timestamp("2020-02-01").date()
    assert function({"x": [5.0], "c": ["a"], "d": [day]}) == function({"x": [1.0], "c": ["a"], "d": [day]})
    assert set(function.predict({"x": [0.0, 1.0], "c": ["a", "b"], "d": [day, day]})) <= {"no", "yes"}
    assert one([0.5]).shape == (1,)
    assert one(pd.DataFrame({"x": [0.1, 0.2]})).shape == (2,)
    assert np.all(one([[0.1], [0.9]]) <= 10)
    for bad in ({"x": [0]}, [[0.0, "a"]], {"x": [math.nan], "c": ["a"], "d": [day]}, {"x": [0], "c": ["q"], "d": [day]},
                {"x": ["word"], "c": ["a"], "d": [day]}, {"x": [0], "c": ["a"], "d": ["soon"]}):  # fmt: skip
        with pytest.raises(InvalidParameter):
            function(bad)
