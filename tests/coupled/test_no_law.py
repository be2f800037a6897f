"""Where the neighbours of the definition have no such law, and laws that refuse what is vacuous."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tacit.coupled import (
    CoupledWorlds,
    Distributional,
    FiniteMechanism,
    InferencePufferfish,
    Noiseless,
    Pair,
    Prior,
    Pufferfish,
    pair_of_values,
    posterior_coupled,
    posterior_pufferfish,
    semantic_to_dp,
    value_secret,
    with_auxiliary,
)
from tacit.coupled.mechanisms import scrub
from tacit.errors import NoLaw


def test_noiseless_privacy_is_no_neighbour_of_less_knowledge() -> None:
    """Fair bits that are equal: who knows them learns nothing, who does not learns all."""
    weights = {((b, b), None): Fraction(1, 2) for b in (0, 1)}
    prior = Prior(name="twins", weights=weights)
    knows = with_auxiliary(prior, lambda x: x[0])
    mechanism = FiniteMechanism.of(lambda x: x[1], [prior])
    assert Noiseless(priors=(knows,)).delta(mechanism, epsilon=0).high == 0
    assert Noiseless(priors=(prior,)).delta(mechanism, epsilon=5).low == 1
    # Coupled worlds do not mind: the other twin is still there.
    assert Distributional(priors=(prior,)).delta(mechanism, epsilon=0).high == 0


def test_an_undecided_secret_has_no_law() -> None:
    weights = {((v,), None): Fraction(1, 4) for v in range(4)}
    prior = Prior(name="four values", weights=weights)
    secrets = (value_secret(0, 0, 1),)
    mechanism = FiniteMechanism.of(lambda x: x[0] > 1, [prior])
    assert Pufferfish(priors=(prior,), secrets=secrets).delta(mechanism, epsilon=0).high == 0
    after = InferencePufferfish(priors=(prior,), secrets=secrets).delta(mechanism, epsilon=3)
    assert after.low >= Fraction(1, 4)


def test_laws_refuse_what_is_vacuous() -> None:
    with pytest.raises(NoLaw):
        posterior_coupled(epsilon=1.0, delta=0.3)
    with pytest.raises(NoLaw):
        posterior_pufferfish(epsilon=1.0, delta=0.1, wider=1.0)
    with pytest.raises(NoLaw):
        pair_of_values(epsilon=1.0, delta=0.5)
    assert posterior_coupled(epsilon=0.5).parameters["epsilon"] == 1.0
    assert posterior_pufferfish(epsilon=0.5).parameters["epsilon"] == 0.5
    assert posterior_pufferfish(epsilon=1.0, delta=1e-6).parameters["delta"] == pytest.approx(
        1.796e-6, rel=1e-3
    )
    assert semantic_to_dp(shift=0.0).parameters["epsilon"] == 0.0


def test_a_random_alt_is_averaged() -> None:
    """A firm's bit is flipped with probability 1/4 in the scrubbed data: the simulator sees that much."""
    pair = Pair(
        name="firm",
        priv=lambda x: x[0],
        alt=lambda x: {x[0]: Fraction(3, 4), 1 - x[0]: Fraction(1, 4)},
    )
    prior = Prior(name="fair", weights={((b,), None): Fraction(1, 2) for b in (0, 1)})
    flipped = FiniteMechanism.of(lambda x: {x[0]: "3/4", 1 - x[0]: "1/4"}, [prior])
    assert CoupledWorlds(priors=(prior,), pairs=(pair,)).delta(flipped, epsilon=0).high == 0
    plain = FiniteMechanism.of(lambda x: x[0], [prior])
    assert CoupledWorlds(priors=(prior,), pairs=(pair,)).delta(plain, epsilon=0).low == Fraction(1, 4)
    assert scrub(pair, (1,)) == {1: Fraction(3, 4), 0: Fraction(1, 4)}
