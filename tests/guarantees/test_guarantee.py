"""The three parts together: units, conditions, meaning, words, records."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from support import independent as second
from support.strategies import any_closed, deltas, epsilons
from tacit.errors import InvalidParameter, UnitMismatch, UnknownName
from tacit.guarantees import Bound, Indistinguishability, Priors, RandomData
from tacit.guarantees.meaning import (
    deterministic_is_constant,
    incentive,
    posterior_shift,
    power,
    semantic_privacy,
    semantic_privacy_printed,
)
from tacit.guarantees.record import from_record

ROWS = tacit.rows()
REPLACE = tacit.rows(neighbours="replace-one")
PEOPLE = tacit.people("person_id", at_most=3)


def promise(bound: Bound, **more: object) -> tacit.Guarantee:
    return tacit.Guarantee(bound=bound, **{"unit": ROWS, **more})  # type: ignore[arg-type]


# --- units -------------------------------------------------------------------------------------------


def test_units_are_never_mixed() -> None:
    with pytest.raises(UnitMismatch):
        tacit.compose(promise(tacit.Pure(epsilon=1)), promise(tacit.Pure(epsilon=1), unit=REPLACE))
    with pytest.raises(UnitMismatch):
        tacit.compose(promise(tacit.Pure(epsilon=1)), promise(tacit.Pure(epsilon=1), unit=PEOPLE))
    assert tacit.compose(promise(tacit.Pure(epsilon=1)), promise(tacit.Pure(epsilon=1))).unit == ROWS


def test_restating_for_another_unit() -> None:
    pure = promise(tacit.Pure(epsilon=1))
    assert pure.for_unit(REPLACE).bound == tacit.Pure(epsilon=2)
    assert pure.for_unit(PEOPLE).bound == tacit.Pure(epsilon=3)
    assert pure.for_unit(tacit.people("person_id", at_most=3, neighbours="replace-one")).bound == tacit.Pure(
        epsilon=6
    )
    assert pure.group(4).bound == tacit.Pure(epsilon=4)
    assert pure.group(2).group(3).bound == tacit.Pure(epsilon=6)
    approximate = promise(tacit.Approximate(epsilon=1, delta=1e-6)).for_unit(REPLACE).bound
    assert approximate == tacit.group(tacit.Approximate(epsilon=1, delta=1e-6), size=2)
    with pytest.raises(UnitMismatch, match="public"):
        promise(tacit.Pure(epsilon=1), unit=REPLACE).for_unit(ROWS)
    with pytest.raises(UnitMismatch):
        promise(tacit.Pure(epsilon=1), unit=REPLACE).for_unit(PEOPLE)
    with pytest.raises(UnitMismatch):
        promise(tacit.Pure(epsilon=1), unit=PEOPLE).for_unit(ROWS)
    with pytest.raises(UnitMismatch):
        promise(tacit.Pure(epsilon=1), unit=PEOPLE).for_unit(tacit.people("school", at_most=3))


def test_replace_one_does_not_give_add_or_remove() -> None:
    """The mechanism that prints the number of rows: perfectly private under replace-one only."""
    assert not promise(tacit.Pure(epsilon=0), unit=REPLACE).implies(promise(tacit.Pure(epsilon=100)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: tacit.rows(neighbours="replace"),
        lambda: tacit.people("", at_most=1),
        lambda: tacit.people("id", at_most=0),
        lambda: tacit.people("id", at_most=True),
        lambda: tacit.people("id", at_most=3, groups=0),
        lambda: tacit.group_of(ROWS, size=0),
        lambda: tacit.group_of(tacit.group_of(ROWS, size=2), size=2),
        lambda: tacit.Coupled(priv="", alt="the rest"),
    ],
)
def test_bad_units(make: object) -> None:
    with pytest.raises(tacit.TacitError) as caught:
        make()  # type: ignore[operator]
    assert caught.value.exit_code == 2


# --- conditions --------------------------------------------------------------------------------------


def random(bound: Bound, gamma: float) -> tacit.Guarantee:
    return promise(bound, unit=REPLACE, condition=RandomData(gamma=gamma))


def test_random_data_composes_only_in_advance() -> None:
    a, b = random(tacit.Pure(epsilon=1), 0.01), random(tacit.Pure(epsilon=2), 0.02)
    with pytest.raises(tacit.NoLaw, match="cell J"):
        tacit.compose(a, b)
    both = tacit.compose(a, b, adaptive=False)
    assert both.bound == tacit.Pure(epsilon=3)
    assert isinstance(both.condition, RandomData)
    assert both.condition.gamma == pytest.approx(0.03)
    assert both.condition.gamma >= 0.03
    mixed = tacit.compose(a, promise(tacit.Pure(epsilon=1), unit=REPLACE), adaptive=False)
    assert mixed.condition == RandomData(gamma=0.01)
    assert tacit.repeat(random(tacit.Pure(epsilon=0.1), 0.4), 3, adaptive=False).condition == RandomData(
        gamma=1.0
    )
    with pytest.raises(UnitMismatch):
        promise(tacit.Pure(epsilon=1), condition=RandomData(gamma=0.1))


def test_priors_do_not_compose_without_a_theorem() -> None:
    prior = Priors(family="independent rows", unknown_rows=100)
    a = promise(tacit.Approximate(epsilon=0.5, delta=0.01), condition=prior)
    b = promise(tacit.Approximate(epsilon=0.3, delta=0.02), condition=prior)
    with pytest.raises(tacit.NoLaw, match="all rows but one"):
        tacit.compose(a, b)
    with pytest.raises(tacit.NoLaw, match="all rows but one"):
        tacit.compose(a, promise(tacit.Pure(epsilon=0.1)))
    disjoint = tacit.compose(a, b, assume="disjoint-independent-rows")
    assert disjoint.bound == tacit.Approximate(epsilon=0.5, delta=0.02)
    coupled = tacit.compose(a, b, assume="mutual-auxiliary-knowledge")
    assert isinstance(coupled.bound, tacit.Approximate)
    assert coupled.bound.epsilon == pytest.approx(0.8)
    assert coupled.bound.delta == pytest.approx(max(0.01 * math.exp(0.3) + 0.02, 0.01 + 0.02 * math.exp(0.5)))
    with pytest.raises(tacit.NoLaw):
        tacit.compose(a, b, a, assume="mutual-auxiliary-knowledge")
    with pytest.raises(UnknownName):
        tacit.compose(a, b, assume="independent")
    with pytest.raises(tacit.NoLaw):
        tacit.compose(a, promise(tacit.Pure(epsilon=1)), assume="disjoint-independent-rows")
    other = promise(tacit.Pure(epsilon=1), condition=Priors(family="other", unknown_rows=100))
    with pytest.raises(UnitMismatch):
        tacit.compose(a, other, assume="disjoint-independent-rows")
    for reading in (a.posterior_shift, a.best_guess, a.incentive, lambda: a.power(0.1)):
        with pytest.raises(tacit.NoLaw, match="coupled"):
            reading()


def test_bounded_adversaries() -> None:
    def cipher(advantage: float, kind: str = "sim") -> tacit.BoundedAdversary:
        return tacit.BoundedAdversary(
            assumption="the cipher is secure", advantage=advantage, definition=Indistinguishability(kind)
        )

    a = promise(tacit.Pure(epsilon=1), condition=cipher(2.0**-100))
    both = tacit.repeat(a, 4)
    assert both.bound == tacit.Pure(epsilon=4)
    assert both.condition == cipher(2.0**-98)
    ind = promise(tacit.Pure(epsilon=1), condition=cipher(2.0**-100, "ind"))
    with pytest.raises(tacit.NoLaw):
        tacit.compose(ind, ind)
    folded = tacit.compose(ind, ind, adaptive=False).condition
    assert isinstance(folded, tacit.BoundedAdversary)
    assert folded.advantage == pytest.approx(2.0**-100 * (1 + math.e))
    assert tacit.repeat(ind, 2, adaptive=False).condition == folded
    with pytest.raises(tacit.NoLaw):
        tacit.compose(a, ind)
    assert promise(tacit.Pure(epsilon=1)).implies(a)
    assert not a.implies(promise(tacit.Pure(epsilon=1)))
    assert a.implies(promise(tacit.Pure(epsilon=1), condition=cipher(2.0**-98, "ind"))).chain == (
        "sim-implies-ind",
    )
    assert not a.implies(promise(tacit.Pure(epsilon=1), condition=cipher(2.0**-100, "ind")))
    assert not ind.implies(a)
    assert a.power(0.05) >= power(tacit.Pure(epsilon=1), 0.05)
    with pytest.raises(tacit.NoLaw):
        a.posterior_shift()


def test_conditions_do_not_turn_into_each_other() -> None:
    prior = Priors(family="f", unknown_rows=10)
    always = promise(tacit.Pure(epsilon=1))
    assert always.implies(promise(tacit.Pure(epsilon=1), condition=prior)).chain == ("always-implies-priors",)
    assert not promise(tacit.Pure(epsilon=1), condition=prior).implies(always)
    less = promise(tacit.Pure(epsilon=1), condition=Priors(family="f", unknown_rows=20))
    assert promise(tacit.Pure(epsilon=1), condition=prior).implies(less).chain == (
        "less-auxiliary-knowledge",
    )
    assert not less.implies(promise(tacit.Pure(epsilon=1), condition=prior))
    assert not random(tacit.Pure(epsilon=1), 0.1).implies(always)
    assert random(tacit.Pure(epsilon=1), 0.1).implies(random(tacit.Pure(epsilon=1), 0.2))
    assert promise(tacit.Pure(epsilon=1), unit=REPLACE).implies(random(tacit.Pure(epsilon=1), 0.0))
    with pytest.raises(tacit.NoLaw):
        tacit.compose(
            random(tacit.Pure(epsilon=1), 0.1),
            promise(tacit.Pure(epsilon=1), unit=REPLACE, condition=prior),
            adaptive=False,
        )


@pytest.mark.parametrize("gamma", [-0.1, 1.1, math.nan])
def test_bad_conditions(gamma: float) -> None:
    with pytest.raises(InvalidParameter):
        RandomData(gamma=gamma)
    with pytest.raises(InvalidParameter):
        tacit.BoundedAdversary(assumption="x", advantage=gamma)
    with pytest.raises(InvalidParameter):
        Priors(family="", unknown_rows=1)
    with pytest.raises(InvalidParameter):
        Priors(family="f", unknown_rows=0)
    with pytest.raises(UnknownName):
        tacit.BoundedAdversary(assumption="x", advantage=0.1, definition="both")  # type: ignore[arg-type]


# --- parallel composition ----------------------------------------------------------------------------


def test_parallel_composition() -> None:
    parts = [promise(tacit.Pure(epsilon=e)) for e in (0.5, 1.0, 0.2)]
    assert tacit.parallel(*parts).bound == tacit.Pure(epsilon=1.0)
    people = [promise(tacit.Pure(epsilon=e), unit=PEOPLE) for e in (0.5, 1.0)]
    assert tacit.parallel(*people).bound == tacit.Pure(epsilon=2.0)  # 3 rows, 2 parts
    one = tacit.people("person_id", at_most=3, groups=1)
    assert tacit.parallel(*[promise(tacit.Pure(epsilon=e), unit=one) for e in (0.5, 1.0)]).bound == (
        tacit.Pure(epsilon=1.0)
    )
    replace = [promise(tacit.Pure(epsilon=1), unit=REPLACE)] * 2
    with pytest.raises(tacit.NoLaw, match="replace"):
        tacit.parallel(*replace)
    assert tacit.parallel(*replace, fixed=True).bound == tacit.Pure(epsilon=1)
    mixed = tacit.parallel(
        promise(tacit.Pure(epsilon=1)), promise(tacit.Approximate(epsilon=0.5, delta=1e-6))
    ).bound
    assert mixed == tacit.Approximate(epsilon=1, delta=1e-6)
    curves = tacit.parallel(
        promise(tacit.Renyi(orders=(2.0, 4.0), epsilons=(0.1, 0.5))),
        promise(tacit.Renyi(orders=(2.0, 4.0), epsilons=(0.2, 0.3))),
    ).bound
    assert curves.renyi(2.0) >= 0.2 * (1 - 1e-12)
    with pytest.raises(tacit.TacitError):
        tacit.parallel()
    with pytest.raises(UnitMismatch):
        tacit.parallel(parts[0], replace[0])


def test_parallel_composition_under_replace_one_really_fails() -> None:
    """A row that moves changes two parts: noisy counts of both cells lose 2 epsilon, not epsilon."""
    epsilon = 1.0
    r = math.exp(-epsilon)
    span = np.arange(-60, 61)

    def geometric(count: int) -> np.ndarray:
        return (1 - r) / (1 + r) * r ** np.abs(span - count)

    here = np.outer(geometric(1), geometric(0))
    there = np.outer(geometric(0), geometric(1))
    assert np.log(here / there).max() == pytest.approx(2 * epsilon)


# --- meaning -----------------------------------------------------------------------------------------


@given(epsilons.filter(lambda e: e < 15), deltas, st.floats(0, 1))
def test_power_is_that_of_the_best_test_against_the_worst_pair(
    epsilon: float, delta: float, size: float
) -> None:
    p, q = second.worst_approximate(epsilon, delta)
    exact = second.best_power(p, q, size)
    value = power(tacit.Approximate(epsilon=epsilon, delta=delta), size)
    assert value == pytest.approx(exact, rel=1e-9, abs=1e-12)


@given(st.floats(0.01, 5), st.floats(1e-6, 1 - 1e-6))
def test_power_against_gaussian_noise(mu: float, size: float) -> None:
    from scipy.special import ndtr, ndtri

    value = power(tacit.Gaussian(mu=mu), size)
    exact = float(ndtr(ndtri(size) + mu))
    assert exact * (1 - 1e-9) <= value <= exact * (1 + 1e-9)
    rough = power(tacit.Concentrated(rho=mu**2 / 2 * (1 + 1e-12)), size)
    assert rough >= value * (1 - 1e-9)


@given(any_closed, st.floats(0, 1))
def test_power_is_at_least_the_size_and_the_guess_at_least_a_coin(bound: Bound, size: float) -> None:
    assert size * (1 - 1e-12) <= power(bound, size) <= 1
    assert 0.5 <= promise(bound).best_guess() <= 1
    assert promise(bound).best_guess(0.9) >= 0.9


@given(epsilons.filter(lambda e: e < 15), st.floats(0.01, 0.99))
def test_best_guess_against_the_worst_pair(epsilon: float, prior: float) -> None:
    p, q = second.randomized_response(epsilon)
    exact = sum(max(prior * a, (1 - prior) * b) for a, b in zip(p, q, strict=True))
    value = promise(tacit.Pure(epsilon=epsilon)).best_guess(prior)
    assert value == pytest.approx(exact, rel=1e-9)


def test_beliefs_move_no_further_than_stated() -> None:
    """Random priors over four data sets, random epsilon-private mechanisms; and the bound is reached."""
    generator = np.random.default_rng(20260101)
    for epsilon in (0.2, 1.0, 3.0):
        limit = posterior_shift(tacit.Pure(epsilon=epsilon))
        assert limit == pytest.approx(math.tanh(epsilon / 2))
        reached = 0.0
        for _ in range(2000):
            prior = generator.dirichlet(np.full(4, 0.3))
            with_unit = np.exp(
                generator.choice([-epsilon, epsilon], 4)
            )  # likelihood ratios against 'without'
            one = prior * with_unit / (prior @ with_unit)
            reached = max(reached, 0.5 * float(np.abs(one - prior).sum()))
        assert reached <= limit + 1e-12
        # the extreme: half the (posterior-weighted) mass up, half down
        share = 1 / (1 + math.exp(epsilon))
        extreme = np.array([share, 1 - share])
        moved = extreme * np.exp([epsilon, -epsilon])
        assert 0.5 * np.abs(moved / moved.sum() - extreme).sum() == pytest.approx(limit)


def test_beliefs_under_delta() -> None:
    value = semantic_privacy(tacit.Approximate(epsilon=1, delta=1e-6))
    assert value.shift == pytest.approx(math.tanh(0.5) + 2e-3)
    assert value.failure == pytest.approx((1 + math.e) * 1e-3 + 1e-6)
    assert semantic_privacy(tacit.Approximate(epsilon=1, delta=0)).failure == 0
    # the printed law says nothing from epsilon = .24 on
    assert semantic_privacy_printed(tacit.Approximate(epsilon=0.24, delta=0)) > 1
    with pytest.raises(tacit.NoLaw, match="semantic_privacy"):
        posterior_shift(tacit.Approximate(epsilon=1, delta=1e-6))
    # random joint laws: no violation beyond the stated probability
    generator = np.random.default_rng(7)
    epsilon, delta, slack = 0.5, 0.01, 0.1
    stated = semantic_privacy(tacit.Approximate(epsilon=epsilon, delta=delta), slack=slack)
    for _ in range(500):
        prior = generator.dirichlet(np.ones(3))
        base = generator.dirichlet(np.ones(4), size=3)
        tilt = np.exp(generator.uniform(-epsilon, epsilon, (3, 4)) / 2)
        near = base * tilt / (base * tilt).sum(axis=1, keepdims=True)
        bad = generator.dirichlet(np.full(4, 0.2), size=3)
        with_unit = (1 - delta) * near + delta * bad
        without = (1 - delta) * base + delta * generator.dirichlet(np.full(4, 0.2), size=3)
        joint, other = prior[:, None] * with_unit, prior[:, None] * without
        distance = 0.5 * np.abs(joint / joint.sum(0) - other / other.sum(0)).sum(0)
        assert joint.sum(0)[distance > stated.shift].sum() <= stated.failure


def test_incentive() -> None:
    value = incentive(tacit.Approximate(epsilon=1, delta=1e-6), delta=1e-6)
    assert value.factor == pytest.approx(math.e)
    assert value.addend == 1e-6
    with pytest.raises(tacit.NoLaw):
        incentive(tacit.Gaussian(mu=1))
    # any harm, any outcome: checked on the worst pair
    p, q = second.worst_approximate(1.0, 1e-6)
    harm = np.random.default_rng(3).uniform(0, 1, (200, 4))
    assert np.all(harm @ p <= value.factor * (harm @ q) + value.addend * harm.max(axis=1) + 1e-12)


def test_deterministic_and_private_is_constant() -> None:
    assert deterministic_is_constant(tacit.Approximate(epsilon=10, delta=0.999))
    assert deterministic_is_constant(tacit.Gaussian(mu=5))
    # two different constant outputs have H_e = 1 at every epsilon, which no bound with delta < 1 allows
    assert second.both([1.0, 0.0], [0.0, 1.0], 10.0) == 1.0


# --- words and records -------------------------------------------------------------------------------


def test_explanations_are_sentences_with_numbers_rounded_against_us() -> None:
    text = promise(tacit.Pure(epsilon=1)).explain()
    assert text.count(". ") == 2
    assert "2.72 times" in text  # e = 2.718 rounded up
    assert "73.2%" in text  # 0.73106
    assert "13.6%" in text  # 5% becomes at most 0.13592
    assert "46.3%" in text  # tanh(1/2) = 0.46212
    assert "any one row had been added or left out" in text
    approximate = promise(tacit.Approximate(epsilon=1, delta=1e-6), unit=PEOPLE).explain()
    assert "at most 3 are used" in approximate
    assert "1e-06" in approximate


def test_no_words_are_stronger_than_a_large_epsilon() -> None:
    text = promise(tacit.Pure(epsilon=1000)).explain()
    assert "e^1e+03 times" in text  # not a float that is smaller than e^1000
    assert "100%" in text
    assert "almost the same" not in text


def test_conditions_are_never_hidden() -> None:
    text = random(tacit.Pure(epsilon=1), 0.05).explain()
    assert "random differential privacy, not differential privacy" in text
    assert "0.05" in text
    prior = promise(tacit.Pure(epsilon=1), condition=Priors(family="uniform rows", unknown_rows=50))
    assert "not differential privacy" in prior.explain()
    assert "uniform rows" in prior.explain()
    assert "50 rows" in str(prior)
    school = tacit.Coupled(
        priv="a student's record", alt="the table without the student's school", family=900
    )
    assert "without the student's school" in promise(tacit.Pure(epsilon=1), unit=school).explain()


@given(any_closed)
def test_every_guarantee_explains_itself_and_survives_its_record(bound: Bound) -> None:
    for unit in (ROWS, REPLACE, PEOPLE, tacit.group_of(PEOPLE, size=2), tacit.Coupled(priv="p", alt="a")):
        whole = promise(bound, unit=unit)
        assert whole.explain()
        text = json.dumps(whole.record)
        assert from_record(json.loads(text)) == whole
    for condition in (
        Priors(family="f", unknown_rows=3),
        tacit.BoundedAdversary(assumption="x", advantage=0.5),
        tacit.Always(),
    ):
        whole = promise(bound, condition=condition)
        assert whole.explain()
        assert from_record(json.loads(json.dumps(whole.record))) == whole


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"version": 2},
        {"version": 1},
        {
            "version": 1,
            "bound": {"kind": "os.system"},
            "unit": {"kind": "rows"},
            "condition": {"kind": "always"},
        },
        {"version": 1, "bound": {"kind": "pure"}, "unit": {"kind": "rows"}, "condition": {"kind": "always"}},
        {
            "version": 1,
            "bound": {"kind": "pure", "epsilon": -1},
            "unit": {"kind": "rows"},
            "condition": {"kind": "always"},
        },
        {"version": 1, "bound": "pure", "unit": {"kind": "rows"}, "condition": {"kind": "always"}},
        [],
    ],
)
def test_broken_records_are_refused(broken: object) -> None:
    with pytest.raises(tacit.TacitError) as caught:
        from_record(broken)  # type: ignore[arg-type]
    assert caught.value.exit_code == 2


def test_parts_are_checked_at_birth() -> None:
    with pytest.raises(InvalidParameter):
        tacit.Guarantee(bound=1.0, unit=ROWS)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        tacit.Guarantee(bound=tacit.Pure(epsilon=1), unit="rows")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        promise(tacit.Pure(epsilon=1)).implies(tacit.Pure(epsilon=1))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        promise(tacit.Pure(epsilon=1)).power(1.5)


# --- declarations ------------------------------------------------------------------------------------


def test_declarations_are_carried_printed_and_recorded() -> None:
    a = promise(tacit.Approximate(epsilon=0.5, delta=1e-8))
    plain, planned = tacit.compose(a, a), tacit.compose(a, a, law="advanced", slack=1e-6)
    assert plain.declared == ()
    assert planned.declared == ("the parameters of all releases were fixed in advance",)
    assert "fixed in advance" in planned.explain()
    assert "fixed in advance" in str(planned)
    assert from_record(json.loads(json.dumps(planned.record))) == planned
    later = tacit.compose(planned, a)
    assert later.declared == planned.declared
    assert not planned.implies(promise(planned.bound))
    assert promise(planned.bound).implies(planned)
    sampled = promise(tacit.Pure(epsilon=1)).subsampled(rate=0.1, scheme="poisson")
    assert "sampled" in sampled.declared[0]
    prior = Priors(family="f", unknown_rows=3)
    both = tacit.compose(
        promise(tacit.Pure(epsilon=1), condition=prior),
        promise(tacit.Pure(epsilon=1), condition=prior),
        assume="disjoint-independent-rows",
    )
    assert "disjoint rows" in both.declared[0]
    fixed = tacit.parallel(*[promise(tacit.Pure(epsilon=1), unit=REPLACE)] * 2, fixed=True)
    assert "does not depend on its data" in fixed.declared[0]
    early = tacit.compose(
        random(tacit.Pure(epsilon=1), 0.1), random(tacit.Pure(epsilon=1), 0.1), adaptive=False
    )
    assert "before the data were seen" in early.declared[0]
