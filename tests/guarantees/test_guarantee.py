"""The three parts together: units, conditions, and bounds side by side."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit
from support.promises import PEOPLE, REPLACE, ROWS, on_random_data, promise
from tacit.errors import InvalidParameter, UnitMismatch, UnknownName
from tacit.guarantees import Indistinguishability, Priors, RandomData
from tacit.guarantees.meaning import power

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
        lambda: tacit.guarantees.Coupled(priv="", alt="the rest"),
    ],
)
def test_bad_units(make: object) -> None:
    with pytest.raises(tacit.TacitError) as caught:
        make()  # type: ignore[operator]
    assert caught.value.exit_code == 2


# --- conditions --------------------------------------------------------------------------------------


def test_random_data_composes_only_in_advance() -> None:
    a, b = on_random_data(tacit.Pure(epsilon=1), 0.01), on_random_data(tacit.Pure(epsilon=2), 0.02)
    with pytest.raises(tacit.NoLaw, match="cell J"):
        tacit.compose(a, b)
    both = tacit.compose(a, b, adaptive=False)
    assert both.bound == tacit.Pure(epsilon=3)
    assert isinstance(both.condition, RandomData)
    assert both.condition.gamma == pytest.approx(0.03)
    assert both.condition.gamma >= 0.03
    mixed = tacit.compose(a, promise(tacit.Pure(epsilon=1), unit=REPLACE), adaptive=False)
    assert mixed.condition == RandomData(gamma=0.01)
    assert tacit.repeat(
        on_random_data(tacit.Pure(epsilon=0.1), 0.4), 3, adaptive=False
    ).condition == RandomData(gamma=1.0)


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
    def cipher(advantage: float, kind: str = "sim") -> tacit.guarantees.BoundedAdversary:
        return tacit.guarantees.BoundedAdversary(
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
    assert isinstance(folded, tacit.guarantees.BoundedAdversary)
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
    assert not on_random_data(tacit.Pure(epsilon=1), 0.1).implies(always)
    assert on_random_data(tacit.Pure(epsilon=1), 0.1).implies(on_random_data(tacit.Pure(epsilon=1), 0.2))
    assert promise(tacit.Pure(epsilon=1), unit=REPLACE).implies(on_random_data(tacit.Pure(epsilon=1), 0.0))
    with pytest.raises(tacit.NoLaw):
        tacit.compose(
            on_random_data(tacit.Pure(epsilon=1), 0.1),
            promise(tacit.Pure(epsilon=1), unit=REPLACE, condition=prior),
            adaptive=False,
        )


@pytest.mark.parametrize("gamma", [-0.1, 1.1, math.nan])
def test_bad_conditions(gamma: float) -> None:
    with pytest.raises(InvalidParameter):
        RandomData(gamma=gamma)
    with pytest.raises(InvalidParameter):
        tacit.guarantees.BoundedAdversary(assumption="x", advantage=gamma)
    with pytest.raises(InvalidParameter):
        Priors(family="", unknown_rows=1)
    with pytest.raises(InvalidParameter):
        Priors(family="f", unknown_rows=0)
    with pytest.raises(UnknownName):
        tacit.guarantees.BoundedAdversary(assumption="x", advantage=0.1, definition="both")  # type: ignore[arg-type]


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
