"""`implies` is reflexive and transitive, and never true where the curves say false."""

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from support import independent as second
from support.strategies import any_closed, deltas, epsilons
from tacit.guarantees import Bound, theorem

EPSILONS = (0.0, 0.01, 0.3, 1.0, 2.5, 7.0)
ORDERS = (1.5, 2.0, 8.0)


def promise(bound: Bound, unit: object = None) -> tacit.Guarantee:
    return tacit.Guarantee(bound=bound, unit=unit or tacit.rows())  # type: ignore[arg-type]


@st.composite
def consequences(draw: st.DrawFn, source: Bound) -> Bound:
    """A bound that follows from the source by construction, or one near the edge of doing so."""
    nudge = draw(st.sampled_from([1.0, 1.0, 1.0000001, 1.5, 0.999]))
    kind = draw(st.sampled_from(["approximate", "renyi", "pure", "concentrated", "gaussian", "pointwise"]))
    epsilon = draw(st.sampled_from([0.05, 0.5, 2.0]))
    if kind == "approximate":
        return tacit.Approximate(epsilon=epsilon, delta=min(0.99, source.delta_at(epsilon) * nudge))
    if kind == "pointwise":
        return tacit.guarantees.Pointwise(
            epsilon=epsilon * 3, delta=min(0.99, source.delta_at(epsilon) * nudge)
        )
    if kind == "renyi":
        try:
            return tacit.Renyi(orders=(2.0,), epsilons=(source.renyi(2.0) * nudge,))
        except tacit.NoLaw:
            return source
    if kind == "pure":
        pure = source.epsilon_at(0.0)
        return tacit.Pure(epsilon=pure * nudge) if math.isfinite(pure) else source
    if isinstance(source, tacit.Pure | tacit.GaussianDP):
        target = tacit.Concentrated if kind == "concentrated" else tacit.GaussianDP
        made = tacit.convert(source, target)
        value = (made.rho if isinstance(made, tacit.Concentrated) else made.mu) * nudge
        return tacit.Concentrated(rho=value) if kind == "concentrated" else tacit.GaussianDP(mu=value)
    return source


@given(any_closed)
def test_reflexive(bound: Bound) -> None:
    assert promise(bound).implies(promise(bound))


@settings(max_examples=150)
@given(st.data())
def test_transitive(data: st.DataObject) -> None:
    a = data.draw(any_closed)
    b = data.draw(consequences(a))
    c = data.draw(consequences(b))
    if promise(a).implies(promise(b)) and promise(b).implies(promise(c)):
        verdict = promise(a).implies(promise(c))
        if not verdict:
            # The only steps that may be lost are those whose numbers meet within rounding.
            eased = _eased(c)
            assert promise(a).implies(promise(eased)), (a, b, c, verdict.reason)


def _eased(bound: Bound) -> Bound:
    """The bound, larger by a few units in the last place."""
    grown = {
        k: (min(v * (1 + 1e-12) + 1e-300, 1 - 1e-16) if k == "delta" else v * (1 + 1e-12) + 1e-300)
        for k, v in bound.parameters.items()
        if isinstance(v, float)
    }
    if isinstance(bound, tacit.Renyi):
        return tacit.Renyi(orders=bound.orders, epsilons=tuple(e * (1 + 1e-12) for e in bound.epsilons))
    return type(bound)(**grown)


@settings(max_examples=150)
@given(st.data())
def test_never_true_where_the_curve_says_false(data: st.DataObject) -> None:
    a = data.draw(any_closed)
    b = data.draw(st.one_of(any_closed, consequences(a)))
    verdict = promise(a).implies(promise(b))
    if not verdict:
        assert verdict.reason
        return
    for name in verdict.chain:
        assert theorem(name).statement
    # a's true worst case, where it is attained, must satisfy b: randomised response and Gaussian noise
    if isinstance(a, tacit.Pure) and a.epsilon < 30:
        pair = second.randomized_response(float(a.epsilon))
        for e in EPSILONS:
            assert second.both(*pair, e) <= b.delta_at(e) * (1 + 1e-9) + 1e-14
    if isinstance(a, tacit.GaussianDP):
        for e in EPSILONS:
            assert a.delta(e) <= b.delta_at(e) * (1 + 1e-9) + 1e-300
        for order in ORDERS:
            with contextlib.suppress(tacit.NoLaw):
                assert order * a.mu**2 / 2 <= b.renyi(order) * (1 + 1e-12)
    if isinstance(a, tacit.Approximate) and a.epsilon < 30:
        pair = second.worst_approximate(float(a.epsilon), float(a.delta))
        for e in EPSILONS:
            assert second.both(*pair, e) <= b.delta_at(e) * (1 + 1e-9) + 1e-14


@given(epsilons, deltas, epsilons, deltas)
def test_approximate_against_approximate_is_exact(e1: float, d1: float, e2: float, d2: float) -> None:
    exact = second.both(*second.worst_approximate(e1, d1), e2)
    verdict = promise(tacit.Approximate(epsilon=e1, delta=d1)).implies(
        promise(tacit.Approximate(epsilon=e2, delta=d2))
    )
    if exact > d2 * (1 + 1e-9) + 1e-13:
        assert not verdict
    if exact < d2 * (1 - 1e-9) - 1e-13:
        assert verdict


def test_chains_are_named() -> None:
    pure = promise(tacit.Pure(epsilon=1))
    assert pure.implies(promise(tacit.Concentrated(rho=0.5))).chain == ("pure-to-zcdp",)
    assert pure.implies(promise(tacit.GaussianDP(mu=1.24))).chain == ("pure-to-gdp",)
    gaussian = promise(tacit.GaussianDP(mu=1))
    assert "gaussian-profile" in gaussian.implies(promise(tacit.Approximate(epsilon=1, delta=0.13))).chain
    wide = gaussian.implies(promise(tacit.Approximate(epsilon=1, delta=0.12)))
    assert not wide
    assert "0.12693" in wide.reason
    two = promise(tacit.Pure(epsilon=1)).implies(
        promise(tacit.Pure(epsilon=2), tacit.rows(neighbours="replace-one"))
    )
    assert two.chain[0] == "replace-by-remove-and-add"
    assert [t.id for t in two.theorems] == list(two.chain)


def test_pointwise_is_stronger_than_approximate() -> None:
    """Hall 2012, after Prop. 1.2.3: (alpha, beta) holds, and on no set is the ratio bounded by e^alpha."""
    alpha, beta = 1.0, 0.1
    lift = (math.e**alpha - 1) / (math.e**alpha + 1)
    top = 0.5 * (1 + lift) + beta / (math.e**alpha + 1)
    p, q = [top, 1 - top], [1 - top, top]
    assert second.both(p, q, alpha) == pytest.approx(beta)  # the (alpha, beta) claim holds with equality
    assert p[0] / q[0] > math.exp(
        alpha
    )  # outcome 0 breaks the ratio, and its complement has P-mass < 1 - beta
    assert p[1] < 1 - beta
    point = promise(tacit.guarantees.Pointwise(epsilon=alpha, delta=beta))
    plain = promise(tacit.Approximate(epsilon=alpha, delta=beta))
    assert point.implies(plain)
    assert point.implies(plain).chain[0] == "pointwise-to-approximate"
    assert not plain.implies(point)


def test_pointwise_does_not_survive_post_processing() -> None:
    """Three outcomes: one that gives the data away, one at the limit; merged, they break the pointwise bound."""
    epsilon, delta = 1.0, 0.1
    q = [0.0, 0.3, 0.7]
    p = [delta, 0.3 * math.exp(epsilon), 1 - delta - 0.3 * math.exp(epsilon)]
    assert p[2] > 0
    assert p[0] <= delta  # outcome 0 alone exceeds the loss
    merged = math.log((p[0] + p[1]) / (q[0] + q[1]))
    assert merged > epsilon  # now outcomes of probability 0.9 do
    bound = tacit.post_process(tacit.guarantees.Pointwise(epsilon=epsilon, delta=delta))
    assert bound == tacit.Approximate(epsilon=epsilon, delta=delta)
    assert second.hockey_stick([p[0] + p[1], p[2]], [q[0] + q[1], q[2]], epsilon) <= delta + 1e-12


@given(any_closed)
def test_post_processing_never_hurts(bound: Bound) -> None:
    after = tacit.post_process(bound)
    for e in EPSILONS:
        assert after.delta_at(e) <= bound.delta_at(e)
    assert promise(bound).implies(promise(after))
