"""One way to make a mechanism of a given price, and one type of its noise's standard deviation."""

from __future__ import annotations

import inspect
from fractions import Fraction
from typing import Any

import pytest

import tacit.mechanisms as room
from support.parameter_examples import MECHANISMS
from tacit.mechanisms import L1, L2, Gaussian, Geometric, Laplace, Mechanism, RoundedGaussian, Staircase

# Two prices, or two mechanisms with a price each: there is no single target.
OF_SEVERAL_PRICES = {"InterquartileRangeByTest", "MedianByTest", "StatisticByTest", "TwoQuestions"}
KINDS: list[Any] = [
    kind
    for name in room.__all__
    if inspect.isclass(kind := getattr(room, name))
    and issubclass(kind, Mechanism)
    and not inspect.isabstract(kind)
]


def test_every_mechanism_is_made_for_a_target() -> None:
    """`for_target` takes epsilon by name, and delta where the guarantee has one."""
    assert len(KINDS) > 25
    without = {kind.__name__ for kind in KINDS if not hasattr(kind, "for_target")}
    assert without == OF_SEVERAL_PRICES
    for kind in KINDS:
        if kind.__name__ not in OF_SEVERAL_PRICES:
            given = inspect.signature(kind.for_target).parameters
            assert given["epsilon"].kind is inspect.Parameter.KEYWORD_ONLY, kind.__name__


def test_a_target_is_reached() -> None:
    for made in (
        Laplace.for_target(epsilon=0.5, sensitivity=L1(2)),
        Geometric.for_target(epsilon=0.5),
        Staircase.for_target(epsilon=0.5, sensitivity=L1(2)),
    ):
        assert float(made.bound.epsilon) == 0.5
    for noisy in (Gaussian, RoundedGaussian):
        made = noisy.for_target(epsilon=0.5, delta=1e-6, sensitivity=L2(2), dimension=1)
        assert 0.49 < made.bound.epsilon_at(1e-6) <= 0.5


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (Laplace, {"epsilon": 0.5, "sensitivity": L1(2)}),
        (room.RangeNorm, {"epsilon": 0.5, "dimension": 3}),
        (room.SparseHistogram, {"epsilon": 0.5, "sensitivity": L1(2), "domain": 1 << 40}),
    ],
)
def test_the_old_name_works_with_a_warning(kind: Any, given: dict[str, Any]) -> None:
    with pytest.warns(
        DeprecationWarning, match=f"{kind.__name__}.for_epsilon is now {kind.__name__}.for_target"
    ):
        assert kind.for_epsilon(**given) == kind.for_target(**given)


def test_a_constructor_that_is_a_target_gives_the_same_mechanism() -> None:
    same = [k for k in KINDS if "epsilon" in getattr(k, "__dataclass_fields__", {})]
    checked = 0
    for kind in same:
        given = MECHANISMS[kind.__name__]
        if set(given) == set(getattr(inspect.signature(getattr(kind, "for_target", kind)), "parameters", ())):
            assert kind.for_target(**given) == kind(**given)
            checked += 1
    assert checked >= 8


@pytest.mark.parametrize("kind", [k for k in KINDS if hasattr(k, "noise_std") or "noise_std" in k.__slots__])
def test_the_standard_deviation_is_a_float(kind: Any) -> None:
    assert type(kind(**MECHANISMS[kind.__name__]).noise_std) is float


def test_nothing_is_rounded_to_make_it_a_float() -> None:
    half = Gaussian(sensitivity=L2(1), noise_std=Fraction(7, 2))  # type: ignore[arg-type]
    assert type(half.noise_std) is float
    assert half == Gaussian(sensitivity=L2(1), noise_std=3.5)
    third = Gaussian(sensitivity=L2(1), noise_std=Fraction(10, 3))  # type: ignore[arg-type]
    assert third.noise_std == Fraction(10, 3)
    assert third.noise_distribution["noise_std"] != half.noise_distribution["noise_std"]


def test_a_stored_choice_keeps_its_form() -> None:
    """What was written as a fraction before is written as that fraction, and read as the same mechanism."""
    from tacit.curator.choice import _get, _put

    made = RoundedGaussian.for_mu_squared(mu_squared=Fraction(1, 7), squared_steps=3)
    said = _put(made, {})
    assert said["noise_std"] == {"fraction": str(Fraction(made.noise_std))}
    assert _get(said, {}) == made
