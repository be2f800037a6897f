"""Bets against claims: exact expectations, exact probabilities of a false accusation, and claims that are caught."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from support.zoo import audited, zoo
from tacit.audit import assert_private, mechanism
from tacit.audit.betting import CoinBets, CurveBets, Wealth
from tacit.audit.claimed import claim_of
from tacit.audit.predictors import Levels
from tacit.errors import InvalidInput, InvalidParameter, NoLaw
from tacit.guarantees import GaussianDP, Guarantee, Pure, RandomData, rows


def levels(ones: list[float], zeros: list[float], *, events: bool = False) -> Levels:
    """Levels with these counts."""
    return Levels(
        name="made up",
        score=lambda columns, _: columns[:, 0],
        edges=np.arange(len(ones) - 1, dtype=float),
        level_of_bin=np.arange(len(ones)),
        ones=np.array(ones),
        zeros=np.array(zeros),
        events=events,
        words=lambda level, up: f"{level} {up}",
    )


@pytest.mark.parametrize("make", [CoinBets.on, CoinBets.on_events])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
def test_a_bet_on_the_coin_has_at_most_its_stake_back_at_every_posterior_that_the_claim_allows(
    make: Any, epsilon: float
) -> None:
    """audit-betting, part 1: at the extreme posteriors e^epsilon : 1 and 1 : e^epsilon of each output."""
    q = 1 / (1 + math.exp(-epsilon))
    seen = levels([0, 3, 40, 9, 80], [30, 60, 41, 3, 0], events=make is CoinBets.on_events)
    factors = np.exp(make(seen, np.array([q])).logs[:, :, 0])
    assert np.any(factors > 1.0001) or epsilon == 3.0
    for share in (1 - q, 0.5, q):
        assert np.all(share * factors[:, 1] + (1 - share) * factors[:, 0] <= 1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("direction", [0, 1])
def test_a_bet_on_a_curve_has_at_most_its_stake_back(epsilon: float, direction: int) -> None:
    """audit-betting, part 2: for laws with P(S) = e^epsilon Q(S) + delta, and the factor stays positive."""
    delta = np.array([0.01])
    seen = levels([1, 10, 90], [70, 20, 11])
    bet = CurveBets.on(seen, epsilon, delta, direction)
    both = np.array([0, 1, 2])
    inside = (both >= bet.cut[0]) if direction else (both <= bet.cut[0])
    mean = 0.0
    r = (1 - delta[0]) / (1 + math.exp(epsilon)) / 2
    p = math.exp(epsilon) * r + delta[0]
    least = math.inf
    for x, y in itertools.product(both, both):
        ones, zeros = (x, y) if direction else (y, x)
        factor = math.exp(bet.path(np.array([ones]), np.array([zeros]), 0)[0])
        least = min(least, factor)
        chance_x = p / inside.sum() if inside[x] else (1 - p) / (~inside).sum()
        chance_y = r / inside.sum() if inside[y] else (1 - r) / (~inside).sum()
        mean += chance_x * chance_y * factor
    assert mean <= 1 + 1e-12
    assert least > 0
    assert bet.stake[0] > 0 or epsilon == 2.0


def test_the_probability_of_a_false_accusation_by_all_sequences_of_coins() -> None:
    """audit-betting, part 3: randomised response at its own epsilon, a bettor who learns, all sequences."""
    epsilon, level, most = 1.0, 0.2, 14
    q = 1 / (1 + math.exp(-epsilon))
    total = 0.0
    for right in itertools.product((0, 1), repeat=most):
        wealth, hits, seen = 1.0, 1.0, 2.0
        for one in right:
            p = max(hits / seen, q)
            wealth *= p / q if one else (1 - p) / (1 - q)
            hits, seen = hits + one, seen + 1
            if wealth >= 1 / level:
                total += math.prod(q if r else 1 - q for r in right)
                break
    assert 0 < total <= level


def test_the_end_of_the_unbroken_run_is_the_lower_bound() -> None:
    """audit-betting, part 4: a rejected claim above a gap does not count."""
    wealth = Wealth(claim_of("epsilon=1"), strategies=1, pairs=1)
    wealth.highest[:] = -1.0
    needed = 3.0
    assert wealth.lower(needed) == 0.0
    wealth.highest[:5] = 4.0
    wealth.highest[7:9] = 9.0
    assert wealth.lower(needed) == pytest.approx(wealth.ladder[4])
    assert wealth.rejected(needed)[7]


def test_the_leader_and_the_others_share_one_unit_of_wealth() -> None:
    wealth = Wealth(claim_of("epsilon=1"), strategies=3, pairs=2)
    assert np.exp(wealth.prior).sum() == pytest.approx(1.0)
    gains = np.full((3, len(wealth.ladder)), 2.0)
    paths, staked = np.full((3, 4), 0.5), np.zeros((3, len(wealth.ladder)), dtype=bool)
    assert not wealth.take(0, gains, paths, staked, cost=1, needed=99.0)
    assert np.allclose(wealth.value(), 0.0), "a bet that is only watched changes nothing"
    staked[1] = True
    wealth.take(1, gains, paths, staked, cost=1, needed=99.0)
    expected = math.log(2 / 6 + math.exp(2) / 6 + math.exp(2) / 2)
    assert wealth.value() == pytest.approx(np.full(len(wealth.ladder), expected))
    wealth.take(1, -gains, -paths, staked, cost=1, needed=99.0)
    assert np.allclose(wealth.value(), 0.0), "what was won is lost again, by the leader and by the others"


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("sparse_vector_5", 1_500),
        ("float_laplace", 1_000),
        ("sensitivity_zero", 1_000),
        ("noise_reused", 1_500),
        ("noise_kept", 1_000),
        ("redrawn_function", 1_500),
        ("threshold_wrong", 1_500),
        ("person_per_row", 2_500),
        ("masked_32_bits", 3_000),
        ("noisy_max_gap", 6_000),
    ],
)
def test_broken_mechanisms_are_caught(name: str, most: int) -> None:
    """With neighbours that were fixed without looking at the mechanism."""
    found = audited(name, outputs=most, seed=3)
    assert found.rejected
    assert found.rejected_after is not None
    assert found.rejected_after <= most
    assert found.event is not None
    assert "could not have seen" in str(found)


@pytest.mark.parametrize("name", [n for n, e in zoo().ZOO.items() if e.private])
def test_right_mechanisms_are_not_accused(name: str) -> None:
    """At a level of one in a million; the lower bound stays below the truth."""
    found = audited(name, outputs=1_500, seed=1, level=1e-6)
    assert not found.rejected
    assert found.lower <= found.claim.value
    assert "no proof" in str(found)


def test_the_lower_bound_comes_near_the_truth() -> None:
    found = audited("randomised_response", outputs=6_000, seed=2)
    assert 0.8 <= found.lower <= 1.0


def test_gaussian_noise_that_is_too_small_for_mu() -> None:
    found = audited("gaussian_too_small", outputs=40_000, seed=1)
    assert found.rejected


def test_what_the_audit_could_not_have_seen_shrinks_with_its_size() -> None:
    small, large = (audited("laplace", outputs=n, seed=1).reach for n in (200, 2_000))
    assert large.least_probability < small.least_probability
    assert 1.0 < large.caught < small.caught


def test_the_word_does_not_occur() -> None:
    found = audited("laplace", outputs=300, seed=1)
    assert "pass" not in str(found).lower()
    assert "pass" not in str(found.to_dict()).lower()


def test_the_helper_for_tests_raises_with_the_evidence() -> None:
    with pytest.raises(AssertionError, match="rejected"):
        assert_private(lambda x: x, "epsilon=1", neighbours="number", outputs=400)


def test_exceptions_are_part_of_the_output() -> None:
    def broken(x: float) -> float:
        if x > 0.5:
            raise ValueError("too large")
        return 0.0

    found = mechanism(broken, claim="epsilon=1", neighbours="number", outputs=300)
    assert found.rejected
    assert any("raised ValueError" in note for note in found.notes)


def test_claims_without_a_unit_are_asked_for_one() -> None:
    with pytest.raises(InvalidParameter, match="for whom"):
        mechanism(lambda x: x, claim="epsilon=1")


@pytest.mark.parametrize(
    "claim",
    [
        "",
        "epsilon",
        "epsilon=x",
        "epsilon=-1",
        "delta=1e-6",
        "epsilon=1, mu=2",
        "theta=1",
        "epsilon=1 epsilon=2",
        7,
    ],
)
def test_claims_that_are_none(claim: Any) -> None:
    with pytest.raises(InvalidInput):
        claim_of(claim)


def test_claims_of_every_form() -> None:
    assert claim_of("epsilon=1").pure
    assert claim_of("epsilon=1; delta=1e-6").value == 1.0
    assert claim_of("rho = 0.5").parameter == "rho"
    assert claim_of(GaussianDP(mu=0.3)).at(0.6) == GaussianDP(mu=0.6)
    assert claim_of("epsilon=1, delta=0").pure
    conditional = Guarantee(bound=Pure(epsilon=1.0), unit=rows(), condition=RandomData(gamma=0.1))
    with pytest.raises(NoLaw):
        claim_of(conditional)


def test_objects_that_cannot_be_compared_are_named() -> None:
    with pytest.raises(InvalidParameter, match="compared"):
        mechanism(lambda x: object(), claim="epsilon=1", neighbours="number", outputs=100)


def test_a_mechanism_that_never_answers_is_named() -> None:
    def always(x: float) -> float:
        raise KeyError("x")

    with pytest.raises(InvalidParameter, match="KeyError"):
        mechanism(always, claim="epsilon=1", neighbours="number", outputs=100)


def test_a_number_beside_marks_has_events_at_both_of_its_ends() -> None:
    """False at a place where others have a number is neither small nor large there."""
    from tacit.audit.outputs import Encoder, plain_output

    made = [plain_output(v) for v in ([False, 2.5], [False, -3.0], [False, False], [True], [False, 10**400])]
    encoder = Encoder(made)
    columns = encoder.columns(made)
    at = [i for i, name in enumerate(encoder.names) if name.startswith("number 2, where")]
    assert len(at) == 2
    assert columns.shape[1] == len(encoder.names)
    below, above = columns[:, at[0]], columns[:, at[1]]
    assert below[:2].tolist() == above[:2].tolist() == [2.5, -3.0]
    assert max(below[2:4]) < -3.0
    assert min(above[2:4]) > 2.5
