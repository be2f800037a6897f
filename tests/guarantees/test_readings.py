"""Readings under conditions: what bounded adversaries reach, what nobody is promised on random data, and that
sentences and numbers never disagree."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from support import independent as second
from support.promises import REPLACE, on_random_data, promise
from support.strategies import any_closed, deltas, epsilons
from tacit.guarantees import Bound, BoundedAdversary, Priors, RandomData
from tacit.guarantees.guarantee import NO_PROTECTION

advantages = st.one_of(st.sampled_from([0.0, 2.0**-100, 1e-6, 0.3, 1.0]), st.floats(0, 1))
definitions = st.sampled_from(["sim", "ind"])
conditions = st.one_of(
    st.just(tacit.guarantees.Always()),
    st.builds(
        lambda a, d: BoundedAdversary(assumption="x", advantage=a, definition=d), advantages, definitions
    ),
    st.builds(lambda g: RandomData(gamma=g), st.floats(0, 1)),
    st.just(Priors(family="f", unknown_rows=3)),
)


def bounded(bound: Bound, advantage: float, definition: str) -> tacit.Guarantee:
    condition = BoundedAdversary(assumption="x", advantage=advantage, definition=definition)  # type: ignore[arg-type]
    return promise(bound, condition=condition)


# --- explanations and numbers ------------------------------------------------------------------------


@given(any_closed, conditions)
def test_sentences_and_numbers_agree(bound: Bound, condition: tacit.guarantees.Condition) -> None:
    """Every percentage that is told is the number that is returned, rounded up; what is refused is not told."""
    whole = promise(bound, unit=REPLACE, condition=condition)
    text = whole.explain()
    if isinstance(condition, RandomData | Priors):
        for reading in (whole.best_guess, lambda: whole.power(0.05), whole.posterior_shift, whole.incentive):
            with pytest.raises(tacit.NoLaw):
                reading()
        assert "%" not in text
        assert "harm" not in text
        return
    told = re.search(r"right at most ([0-9.e+-]+)% .* finds the truth in at most ([0-9.e+-]+)%", text)
    assert told is not None
    for shown, value in ((told[1], whole.best_guess()), (told[2], whole.power(0.05))):
        # Three significant digits, rounded up (up to a hair below the last of them).
        assert 100 * value * (1 - 1e-8) <= float(shown) <= 100 * value * 1.0101
    assert ("protects nobody" in text) == (whole.best_guess() >= NO_PROTECTION)
    assert ("within limits" in text) == (whole.best_guess() < NO_PROTECTION)
    harm = re.search(r"by at most (\S+), plus (\S+) of the worst harm", text)
    moved = re.search(r"differs by at most ([0-9.e+-]+)%", text)
    assert (harm is None) != (moved is None)
    if moved is not None:
        assert 100 * whole.posterior_shift() * (1 - 1e-8) <= float(moved[1])
    if harm is not None and not isinstance(condition, tacit.guarantees.Always):
        plain = whole.bound.epsilon_at(0.0)
        level = 0.0 if math.isfinite(plain) else getattr(bound, "delta", None)
        reached = whole.incentive(delta=float(level) if isinstance(level, float) else 1e-6)
        assert float(harm[2]) >= reached.addend
        if not harm[1].startswith("e^"):
            assert float(harm[1]) >= reached.factor * (1 - 1e-9)


def test_the_condition_reaches_every_number() -> None:
    """An advantage of 0.3 at epsilon = 0.5: 62.3% for the bound, 92.3% for the guarantee, said and returned."""
    whole = bounded(tacit.Pure(epsilon=0.5), 0.3, "sim")
    assert whole.best_guess() == pytest.approx(0.6225 + 0.3, abs=1e-4)
    assert "92.3%" in whole.explain()
    assert "62.3%" not in whole.explain()
    assert whole.incentive().addend == pytest.approx((1 + math.exp(0.5)) * 0.3)
    assert bounded(tacit.Pure(epsilon=0), 0.3, "ind").power(0.05) == pytest.approx(0.35)
    assert bounded(tacit.Pure(epsilon=0), 0.3, "sim").power(0.05) == pytest.approx(0.65)
    assert bounded(tacit.Pure(epsilon=0.5), 0.3, "ind").incentive().addend == 0.3


@pytest.mark.parametrize("epsilon", [4.7, 10.0, 50.0, 1000.0])
def test_what_protects_nobody_is_said_to(epsilon: float) -> None:
    assert 1 / (1 + math.exp(-epsilon)) > 0.99
    for whole in (
        promise(tacit.Pure(epsilon=epsilon)),
        on_random_data(tacit.Pure(epsilon=epsilon), 0.01),
        promise(tacit.Pure(epsilon=epsilon), condition=Priors(family="f", unknown_rows=3)),
        promise(tacit.Pure(epsilon=epsilon), unit=tacit.guarantees.Coupled(priv="p", alt="a")),
    ):
        assert "protects nobody" in whole.explain()
        assert "within limits" not in whole.explain()
    assert "protects nobody" not in promise(tacit.Pure(epsilon=4.5)).explain()


# --- bounded adversaries -----------------------------------------------------------------------------


def rights(p: list[float], q: list[float], prior: float) -> float:
    """The probability of the best guess between two tabulated laws."""
    return math.fsum(max(prior * b, (1 - prior) * a) for a, b in zip(p, q, strict=True))


@given(epsilons.filter(lambda e: e < 15), deltas, st.floats(0, 0.4), st.floats(0, 1), st.floats(0.01, 0.99))
def test_nobody_beats_the_readings_of_a_stand_in(
    epsilon: float, delta: float, advantage: float, size: float, prior: float
) -> None:
    """SIM, from the definition: any two laws within `advantage` of a private pair, here moved to where it hurts."""
    p, q = second.worst_approximate(epsilon, delta)
    whole = bounded(tacit.Approximate(epsilon=epsilon, delta=delta), advantage, "sim")
    for one, other in itertools.product(moved(p, advantage, 0), moved(q, advantage, 1)):
        assert 0.5 * sum(abs(a - b) for a, b in zip(one, [*p, 0.0, 0.0], strict=True)) <= advantage + 1e-12
        assert second.best_power(one, other, size) <= whole.power(size) + 1e-9
        assert rights(one, other, prior) <= whole.best_guess(prior) + 1e-9
        reading = whole.incentive()
        for harm in np.eye(len(one)):
            assert harm @ one <= reading.factor * (harm @ other) + reading.addend + 1e-9


def moved(law: list[float], advantage: float, side: int) -> list[list[float]]:
    """The law, and the law with a share of its mass on an outcome that the other one never has."""
    fresh = [0.0, 0.0]
    fresh[side] = advantage
    shares = [(1 - advantage) * x for x in law]
    return [[*law, 0.0, 0.0], [*shares, *fresh]]


@given(epsilons.filter(lambda e: e < 15), deltas, st.floats(0, 0.4), st.floats(0, 1), st.floats(0.01, 0.99))
def test_nobody_beats_the_readings_of_indistinguishability(
    epsilon: float, delta: float, advantage: float, size: float, prior: float
) -> None:
    """IND, from the definition: the worst pair with delta + advantage is allowed, and is where equality holds."""
    total = delta + advantage
    p, q = second.worst_approximate(epsilon, total)
    assert second.both(p, q, epsilon) <= total + 1e-9
    whole = bounded(tacit.Approximate(epsilon=epsilon, delta=delta), advantage, "ind")
    assert second.best_power(p, q, size) <= whole.power(size) + 1e-9
    assert rights(p, q, prior) <= whole.best_guess(prior) + 1e-9
    reading = whole.incentive()
    for harm in itertools.product((0.0, 1.0), repeat=len(p)):
        assert np.dot(harm, p) <= reading.factor * np.dot(harm, q) + reading.addend + 1e-9
    # At epsilon = 0 all of it is reached.
    p, q = second.worst_approximate(0.0, total)
    flat = bounded(tacit.Approximate(epsilon=0, delta=delta), advantage, "ind")
    assert rights(p, q, 0.5) == pytest.approx(flat.best_guess())


@given(any_closed, definitions, st.floats(0, 1), st.floats(0.01, 0.99))
def test_readings_grow_with_the_advantage(bound: Bound, definition: str, size: float, prior: float) -> None:
    steps = [bounded(bound, a, definition) for a in (0.0, 1e-9, 0.01, 0.5, 1.0)]
    assert steps[0].power(size) == promise(bound).power(size)
    assert steps[0].best_guess(prior) == pytest.approx(promise(bound).best_guess(prior))
    for less, more in itertools.pairwise(steps):
        assert less.power(size) <= more.power(size) <= 1
        assert less.best_guess(prior) <= more.best_guess(prior) <= 1
        assert more.best_guess(prior) >= min(1.0, promise(bound).best_guess(prior))
    with pytest.raises(tacit.NoLaw, match="unbounded reasoner"):
        steps[1].posterior_shift()


# --- random data -------------------------------------------------------------------------------------


def test_random_data_promise_nothing_to_a_person() -> None:
    """docs/theory/random-data-has-no-reading.md, counted: epsilon = 0 for 99% of pairs, and all readings are false."""
    laws = {x: [1.0, 0.0] if x == 1 else [0.05, 0.95] for x in range(1, 201)}
    failing = sum(laws[x] != laws[y] for x in laws for y in laws) / len(laws) ** 2
    assert failing <= 0.01
    whole, plain = on_random_data(tacit.Pure(epsilon=0), 0.01), promise(tacit.Pure(epsilon=0))
    assert second.best_power(laws[1], laws[2], 0.05) == 1.0 > plain.power(0.05)
    assert rights(laws[1], laws[2], 0.5) == 0.975 > plain.best_guess()
    assert laws[1][0] == 20 * laws[2][0] > plain.incentive().factor * laws[2][0]
    told = sum(law[0] for law in laws.values()) / 200  # Pr["a"]
    shift = laws[1][0] / 200 / told - 1 / 200
    assert shift == pytest.approx(0.0863, abs=1e-4)
    assert told == pytest.approx(0.05475)
    assert told > 5 * 0.01
    assert shift > plain.posterior_shift()
    for reading in (whole.best_guess, lambda: whole.power(0.05), whole.posterior_shift, whole.incentive):
        with pytest.raises(tacit.NoLaw, match="200 values"):
            reading()
    assert "promises nothing to a given person" in whole.explain()


# --- the incentive's own delta -----------------------------------------------------------------------


def test_the_incentive_knows_its_own_delta() -> None:
    stated = promise(tacit.Approximate(epsilon=1, delta=1e-6))
    assert stated.incentive() == stated.incentive(delta=1e-6)
    assert stated.incentive().addend == 1e-6
    assert promise(tacit.Pure(epsilon=1)).incentive().addend == 0
    with pytest.raises(tacit.NoLaw, match="larger delta"):
        stated.incentive(delta=0.0)
    with pytest.raises(tacit.NoLaw, match="larger delta"):
        promise(tacit.GaussianDP(mu=1)).incentive()
    assert promise(tacit.GaussianDP(mu=1)).incentive(delta=1e-6).addend == 1e-6


def test_beliefs_are_drawn_where_they_are_limited() -> None:
    from matplotlib.figure import Figure

    from tacit.report.figures import draw_posterior

    axes = Figure().subplots()
    draw_posterior(axes, promise(tacit.Pure(epsilon=1)))
    for whole in (bounded(tacit.Pure(epsilon=1), 0.1, "sim"), on_random_data(tacit.Pure(epsilon=1), 0.1)):
        with pytest.raises(tacit.NoLaw):
            draw_posterior(axes, whole)
