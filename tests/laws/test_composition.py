"""Laws before examples: what composition must satisfy, stated once for every kind of bound."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from support import independent as second
from support.strategies import any_closed, closed
from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.guarantees import Bound
from tacit.guarantees.laws.compose import _ABOVE, join

KINDS = sorted(closed)
POINTS = (0.0, 0.1, 1.0, 5.0)


def close(one: Bound, two: Bound) -> bool:
    """Equal up to the roundings of two ways of adding."""
    return type(one) is type(two) and all(
        math.isclose(one.delta_at(e), two.delta_at(e), rel_tol=1e-11, abs_tol=1e-15) for e in POINTS
    )


def safe_compose(*bounds: Bound) -> Bound | None:
    """The composition, or None where deltas add up to 1."""
    try:
        return tacit.compose(*bounds)
    except tacit.NoLaw:
        return None


@pytest.mark.parametrize("kind", KINDS)
def test_associative_and_commutative_within_a_kind(kind: str) -> None:
    @given(closed[kind], closed[kind], closed[kind])
    def law(a: Bound, b: Bound, c: Bound) -> None:
        together = safe_compose(a, b, c)
        if together is None:
            return
        left = safe_compose(tacit.compose(a, b), c)
        right = safe_compose(a, tacit.compose(b, c))
        assert left is not None
        assert right is not None
        assert close(left, together)
        assert close(right, together)
        for order in permutations((a, b, c)):
            assert tacit.compose(*order) == together

    law()


@given(any_closed, any_closed, any_closed)
def test_across_kinds_converting_early_only_costs(a: Bound, b: Bound, c: Bound) -> None:
    if not {type(a), type(b), type(c)} <= {tacit.Pure, tacit.GaussianDP, tacit.Concentrated}:
        return
    together, nested = tacit.compose(a, b, c), tacit.compose(tacit.compose(a, b), c)
    for epsilon in POINTS:
        assert together.delta_at(epsilon) <= nested.delta_at(epsilon) * (1 + 1e-12) + 1e-300


@pytest.mark.parametrize("kind", KINDS)
def test_repeat_is_compose(kind: str) -> None:
    @given(closed[kind], st.integers(1, 9))
    def law(bound: Bound, times: int) -> None:
        together = safe_compose(*[bound] * times)
        if together is not None:
            assert tacit.repeat(bound, times) == together

    law()


@pytest.mark.parametrize("kind", KINDS)
def test_more_releases_never_reveal_less(kind: str) -> None:
    @given(closed[kind], any_closed, st.floats(0, 5))
    def law(bound: Bound, other: Bound, epsilon: float) -> None:
        if "profile" in {join(type(bound), type(other)).kind}:
            return
        together = safe_compose(bound, other)
        if together is not None:
            assert together.delta_at(epsilon) >= bound.delta_at(epsilon) * (1 - 1e-12)

    law()


def test_kinds_form_a_join_semilattice() -> None:
    kinds = list(_ABOVE)
    for a in kinds:
        assert join(a) is a
        for b in kinds:
            assert join(a, b) is join(b, a)
            assert join(a, b) in _ABOVE[a] & _ABOVE[b]
            for c in kinds:
                assert join(join(a, b), c) is join(a, join(b, c)) is join(a, b, c)


@settings(max_examples=20)
@given(st.lists(st.floats(0.01, 2), min_size=1, max_size=5), st.floats(0, 3))
def test_composition_of_randomised_response_is_above_the_enumerated_product(
    parts: list[float], at: float
) -> None:
    pair: tuple[list[float], list[float]] = ([1.0], [1.0])
    for epsilon in parts:
        pair = second.product(pair, second.randomized_response(epsilon))
    exact = second.both(*pair, at)
    bounds = [tacit.Pure(epsilon=e) for e in parts]
    assert tacit.compose(*bounds).delta_at(at) >= exact - 1e-12
    approximate = [tacit.Approximate(epsilon=e, delta=0.0) for e in parts]
    for slack in (1e-3, 0.1):
        advanced = tacit.compose(*approximate, law="advanced", slack=slack)
        assert advanced.delta_at(at) >= exact - 1e-12
    rho = tacit.compose(*bounds, law="compose-zcdp")
    assert rho.delta_at(at) >= exact - 1e-12
    curve = tacit.compose(*bounds, law="compose-renyi")
    for order in (1.5, 2.0, 7.0):
        assert curve.renyi(order) >= second.renyi(*pair, order) * (1 - 1e-9)


def test_published_forms() -> None:
    assert tacit.compose(tacit.Pure(epsilon=1), tacit.Pure(epsilon=2)) == tacit.Pure(epsilon=3)
    assert tacit.compose(tacit.GaussianDP(mu=3), tacit.GaussianDP(mu=4)) == tacit.GaussianDP(mu=5)
    assert tacit.compose(tacit.Concentrated(rho=0.25), tacit.Concentrated(rho=0.5)) == tacit.Concentrated(
        rho=0.75
    )
    basic = tacit.repeat(tacit.Approximate(epsilon=0.5, delta=0.125), 2)
    assert basic == tacit.Approximate(epsilon=1.0, delta=0.25)
    assert tacit.repeat(tacit.guarantees.Pointwise(epsilon=0.5, delta=0.5), 2) == tacit.guarantees.Pointwise(
        epsilon=1.0, delta=0.75
    )
    # Dwork, Rothblum, Vadhan 2010 in the form of Kairouz, Oh, Viswanath 2015, Thm 3.4: by hand for k = 100
    advanced = tacit.repeat(tacit.Approximate(epsilon=0.1, delta=0.0), 100, law="advanced", slack=1e-6)
    by_hand = 100 * 0.1 * math.tanh(0.05) + math.sqrt(2 * math.log(1e6) * 100 * 0.01)
    assert isinstance(advanced, tacit.Approximate)
    assert advanced.epsilon == pytest.approx(by_hand)
    assert advanced.delta == pytest.approx(1e-6)


def test_bad_compositions() -> None:
    with pytest.raises(EmptyComposition):
        tacit.compose()
    with pytest.raises(InvalidParameter):
        tacit.repeat(tacit.Pure(epsilon=1), 0)
    with pytest.raises(InvalidParameter):
        tacit.repeat(tacit.Pure(epsilon=1), 1.5)  # type: ignore[call-overload]
    with pytest.raises(UnknownName, match="advanced"):
        tacit.compose(tacit.Pure(epsilon=1), law="advnced")
    with pytest.raises(InvalidParameter, match="slack"):
        tacit.compose(tacit.Pure(epsilon=1), law="advanced")
    with pytest.raises(InvalidParameter, match="slack"):
        tacit.compose(tacit.Pure(epsilon=1), slack=0.1)
    with pytest.raises(tacit.NoLaw):
        tacit.compose(tacit.GaussianDP(mu=1), law="basic")
    with pytest.raises(tacit.NoLaw, match="nothing is promised"):
        tacit.repeat(tacit.Approximate(epsilon=1, delta=0.5), 2)
    with pytest.raises(InvalidParameter, match="all bounds or all guarantees"):
        tacit.compose(tacit.Pure(epsilon=1), tacit.Guarantee(bound=tacit.Pure(epsilon=1), unit=tacit.rows()))  # type: ignore[call-overload]
    assert tacit.repeat(tacit.Pure(epsilon=1e-12), 10**12).epsilon == pytest.approx(1.0)
