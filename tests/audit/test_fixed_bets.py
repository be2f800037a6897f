"""Bets on fixed events: their mixture from the definition, its expectation by all coins, and its power."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from support.zoo import audited
from tacit.audit import fixed_bets
from tacit.audit.betting import Wealth
from tacit.audit.claimed import claim_of
from tacit.audit.fixed_bets import EXCESS, FixedBets
from tacit.audit.outputs import Encoder, matched, plain_output

TOWARD = (-1.0, -1.0, 1.0, 1.0)
LISTS = [[False, False, True], [True], [False, False, False, 2.5], [False, True], [False] * 4, [False, -1.5]]
Q = np.array([0.5, math.e / (1 + math.e)])


def begun(
    outputs: list[Any], toward: tuple[float, ...] = TOWARD, coins: Any = None
) -> tuple[FixedBets, Encoder]:
    """Bets that have seen so many outputs that all their events are chosen."""
    if coins is None:
        coins = np.arange(len(outputs)) % 2
    many = [plain_output(v) for v in outputs]
    encoder = Encoder(many)
    bets = FixedBets(Q, toward)
    bets.begin(encoder, encoder.columns(many, toward), many, coins)
    return bets, encoder


def factors(bets: FixedBets, encoder: Encoder, value: Any, coin: int) -> list[tuple[float, float]]:
    """By part: its share, and the factor of one output at epsilon = 1, from the definition."""
    output = plain_output(value)
    columns = encoder.columns([output], TOWARD)
    found = []
    for first, second, right, prior in zip(bets.first, bets.second, bets.coin, bets.prior[1], strict=True):
        for excess, share in zip(EXCESS, prior, strict=True):
            q = Q[1]
            p = 1 / (1 + math.exp(-(1 + excess)))
            factor = 1.0
            for event, side in ((first, right), (second, 1 - right)):
                if event >= 0 and bets.events[event].holds(encoder, columns, [output])[0]:
                    factor *= p / q if coin == side else (1 - p) / (1 - q)
            found.append((math.exp(share), factor))
    return found


def test_the_wealth_is_that_of_the_parts_from_the_definition() -> None:
    bets, encoder = begun(LISTS * 200)
    assert not bets.waiting
    assert sum(bets.waiting.values()) == pytest.approx(0.0)
    assert np.exp(bets.prior).sum(axis=(1, 2)) == pytest.approx(np.ones(len(Q)))
    rng = np.random.default_rng(3)
    values = [LISTS[i] for i in rng.integers(0, len(LISTS), 40)]
    coins = rng.integers(0, 2, 40)
    parts = None
    expected = []
    for value, coin in zip(values, coins, strict=True):
        one = factors(bets, encoder, value, int(coin))
        parts = (
            [w * f for w, f in one]
            if parts is None
            else [a * f for a, (_, f) in zip(parts, one, strict=True)]
        )
        expected.append(math.log(sum(parts)))
    outputs = [plain_output(v) for v in values]
    for size in (25, 15):
        part, outputs = outputs[:size], outputs[size:]
        given, coins = coins[:size], coins[size:]
        found = bets.take(encoder, encoder.columns(part, TOWARD), part, given, claim=1, at=np.arange(size))
        assert found == pytest.approx(expected[:size])
        assert bets.now[1] == pytest.approx(expected[size - 1])
        expected = expected[size:]


def test_the_mean_over_all_coins_is_at_most_one_at_every_posterior_that_the_claim_allows() -> None:
    """audit-betting, parts 1 and 3: each output has one of the two extreme posteriors, in all combinations."""
    values = [LISTS[0], LISTS[1], LISTS[2]]
    outputs = [plain_output(v) for v in values]
    grown = False
    for posteriors in itertools.product((1 - Q[1], Q[1]), repeat=len(values)):
        mean = 0.0
        for coins in itertools.product((0, 1), repeat=len(values)):
            bets, encoder = begun(LISTS * 200)
            columns = encoder.columns(outputs, TOWARD)
            bets.take(encoder, columns, outputs, np.array(coins), claim=1, at=np.array([2]))
            chance = math.prod(p if c else 1 - p for p, c in zip(posteriors, coins, strict=True))
            mean += chance * math.exp(bets.now[1])
            grown |= bets.now[1] > 0.01
        assert mean <= 1 + 1e-12
    assert grown


def test_events_are_chosen_when_there_are_outputs_enough_and_wealth_waits_until_then() -> None:
    bets, _ = begun(LISTS)
    assert set(bets.waiting) == {"signs and numbers", "columns 0", "columns 1", "lowest bits", "outputs"}
    assert np.exp(bets.prior).sum(axis=(1, 2)) + sum(bets.waiting.values()) == pytest.approx(np.ones(len(Q)))
    plain, encoder = begun([0, 1, 2, 3] * 20, ())
    assert set(plain.waiting) == {"columns 1", "lowest bits"}
    before = plain.counts.copy()
    many = [plain_output(v) for v in [0, 1, 2, 3] * 20]
    plain.take(encoder, encoder.columns(many), many, np.ones(80, dtype=np.int64), claim=1, at=np.array([79]))
    assert plain.counts.sum() > before.sum()
    held = plain.now.copy()
    later = many * 20
    plain.begin(encoder, encoder.columns(later), later, np.arange(len(later)) % 2)
    assert set(plain.waiting) == {"lowest bits"}, "integers have none"
    assert plain.counts.shape == (len(plain.first), 2)
    plain.take(encoder, encoder.columns(many[:1]), many[:1], np.array([1]), claim=1, at=np.array([0]))
    assert np.abs(plain.now - held).max() < 0.7, "parts that begin later do not count what was before"


def test_a_share_is_divided_by_what_its_parts_would_have_gained() -> None:
    """Against claims above the truth and below it: from the definition, on a past of 80 outputs."""
    values = [0, 1] * 40
    coins = np.array([0, 1] * 30 + [1, 0] * 10)  # an output is the coin in three of four runs
    bets, encoder = begun(values, (), coins)
    bought = {}
    for part in range(len(bets.first)):
        events = [bets.events[e] if e >= 0 else None for e in (bets.first[part], bets.second[part])]
        for claim, q in enumerate(Q):
            logs = []
            for excess in EXCESS:
                p = 1 / (1 + math.exp(-(math.log(q / (1 - q)) + excess)))
                gain = 0.0
                for value, coin in zip(values, coins, strict=True):
                    output = plain_output(value)
                    columns = encoder.columns([output])
                    for event, side in zip(events, (bets.coin[part], 1 - bets.coin[part]), strict=True):
                        if event is not None and event.holds(encoder, columns, [output])[0]:
                            gain += math.log(p / q if coin == side else (1 - p) / (1 - q))
                logs.append(gain)
            bought[part, claim] = np.exp(bets.prior[claim, part]), np.array(logs)
    own = [i for i, e in enumerate(bets.first) if e >= 0 and bets.events[e].output is not None]
    for claim in range(len(Q)):
        before = np.array([fixed_bets.BELIEVED / len(own)] * len(own))
        gained = np.exp([bought[i, claim][1] for i in own])
        expected = fixed_bets.UNLEARNED * before
        expected += (1 - fixed_bets.UNLEARNED) * before * gained / (before * gained).sum()
        found = np.array([bought[i, claim][0] for i in own])
        assert found == pytest.approx(expected * found.sum())
    right = [i for i in own if bets.coin[i] == (bets.events[bets.first[i]].output == plain_output(1))]
    assert sum(bought[i, 0][0].sum() for i in right) > 0.85 * sum(bought[i, 0][0].sum() for i in own)


def test_signs_along_the_difference_of_the_inputs() -> None:
    made = [plain_output(v) for v in (*LISTS, [None, 0.0, True], ["x", True])]
    assert matched(made, TOWARD)[:, 2].tolist() == [3.0, -1.0, 2.0, 0.0, 0.0, 0.0, 1.0, -1.0]


@pytest.mark.parametrize(("name", "most"), [("sparse_vector_4", 12_000), ("sparse_vector_6", 2_500)])
def test_sparse_vectors_that_lose_little_are_caught(name: str, most: int) -> None:
    assert audited(name, outputs=most, seed=2).rejected


def test_the_lower_bound_for_laplace_noise_comes_near_the_truth() -> None:
    for seed in (2, 11):  # both ended at .85 before shares followed the past
        found = audited("laplace", outputs=20_000, seed=seed)
        assert 0.9 <= found.lower <= 1.0


def test_all_strategies_together_begin_with_one() -> None:
    wealth = Wealth(claim_of("epsilon=1"), strategies=4, pairs=3, fixed=[FixedBets(Q, ())] * 3)
    wealth.fixed = [FixedBets(np.full(len(wealth.ladder), 0.6), TOWARD) for _ in range(3)]
    assert wealth.value() == pytest.approx(np.zeros(len(wealth.ladder)))
    wealth.fixed[1].now[:] = math.log(7.0)
    nothing = np.zeros((4, len(wealth.ladder)))
    wealth.take(
        1,
        nothing,
        np.zeros((4, 5)),
        nothing > 0,
        cost=1,
        needed=99.0,
        at=np.array([4]),
        fixed=wealth.fixed[1].now[:1],
    )
    assert np.exp(wealth.value()) == pytest.approx(np.full(len(wealth.ladder), 0.4 + 0.6 * 9 / 3))
    assert wealth.path[-1][1] == pytest.approx(math.log(2.2)), "the course and the value are one"
