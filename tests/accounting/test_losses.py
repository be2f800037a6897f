"""Privacy-loss distributions that are handed over: above the curve, near to it, the same when they come back."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.accounting import LossDistribution, loss_distribution
from tacit.accounting import events as e
from tacit.errors import InvalidParameter

PLANS = [
    e.LaplaceEvent(epsilon=1.0),
    e.RepeatedEvent(event=e.GaussianEvent(noise_multiplier=10.0), times=50),
    e.PoissonSampledEvent(event=e.GaussianEvent(noise_multiplier=1.0), sampling_rate=0.1),
    e.TabulatedEvent(p=(0.5, 0.3, 0.2), q=(0.2, 0.3, 0.5)),
    e.ApproximateEvent(epsilon=0.5, delta=0.01),
]
AT = (0.0, 0.1, 0.3, 0.77, 1.3)


def by_definition(pld: LossDistribution, epsilon: float) -> float:
    """delta = Pr[infinite] + E (1 - e^{epsilon - loss})+."""
    return pld.infinite + math.fsum(
        p * max(0.0, -math.expm1(epsilon - loss))
        for p, loss in zip(pld.probabilities, pld.losses, strict=True)
    )


@pytest.mark.parametrize("event", PLANS, ids=lambda x: x.kind)
def test_what_is_handed_over_is_above_the_curve_and_near(event: e.Event) -> None:
    """Theorem `dominating-pair`: a pair above the curve at every epsilon, from both orders of neighbours."""
    pld = loss_distribution(event)
    assert math.fsum([*pld.probabilities, pld.infinite]) == pytest.approx(1.0, abs=1e-12)
    for relation in (
        ("add-or-remove", "replace-one") if event.kind != "poisson_sampled" else ("add-or-remove",)
    ):
        pld = loss_distribution(event, neighbours=relation)
        for epsilon in AT:
            true = tacit.account(event, epsilon=epsilon, neighbours=relation).delta
            assert by_definition(pld, epsilon) >= true.low * (1 - 1e-12)
            assert by_definition(pld, epsilon) <= true.high * 1.01 + 1e-9
    back = tacit.account(pld.as_event(), epsilon=0.3).delta.high
    assert back >= tacit.account(event, epsilon=0.3).delta.low
    assert back <= by_definition(pld, 0.3) * (1 + 1e-6) + 1e-9


def test_a_coarse_grid_is_still_above() -> None:
    event = e.GaussianEvent(noise_multiplier=1.0)
    for step in (0.1, 0.5, 2.0):
        pld = loss_distribution(event, step=step, points=12)
        for epsilon in AT:
            assert by_definition(pld, epsilon) >= tacit.account(event, epsilon=epsilon).delta.low


def test_both_orders_of_a_lopsided_plan() -> None:
    """Poisson sampling loses more for removals: the exported distribution is above additions and removals alike."""
    pld = loss_distribution(PLANS[2])
    masses = np.array(pld.probabilities)
    losses = np.array(pld.losses)
    shadow = masses * np.exp(-losses)
    for epsilon in AT:
        there = np.maximum(masses - math.exp(epsilon) * shadow, 0).sum() + pld.infinite
        back = np.maximum(shadow - math.exp(epsilon) * masses, 0).sum() + 1 - shadow.sum()
        assert back == pytest.approx(there, rel=1e-3, abs=1e-9)


def test_it_composes_like_what_it_stands_for() -> None:
    event = e.LaplaceEvent(epsilon=0.5)
    handed = LossDistribution.from_json(loss_distribution(event).to_json()).as_event()
    ours, theirs = (
        tacit.account(e.RepeatedEvent(event=x, times=20), delta=1e-6).epsilon for x in (event, handed)
    )
    assert ours.low * (1 - 1e-6) <= theirs.high <= ours.high * 1.002


def rounded_up(p: tuple[float, ...], q: tuple[float, ...], step: float) -> LossDistribution:
    """The losses of a table, each rounded up to the grid, as other accountants do."""
    places = {}
    for a, b in zip(p, q, strict=True):
        place = math.ceil(math.log(a / b) / step)
        places[place] = places.get(place, 0.0) + a
    low = min(places)
    masses = tuple(places.get(low + i, 0.0) for i in range(max(places) - low + 1))
    return LossDistribution(step=step, lowest=low, probabilities=masses)


def test_both_orders_are_taken_where_they_differ() -> None:
    """A lopsided table, whose removals and additions have curves of their own: at every epsilon the larger one."""
    p, q = (0.05, 0.45, 0.5), (0.01, 0.69, 0.3)
    table = e.TabulatedEvent(p=p, q=q)
    for step, other_step in ((0.01, 0.01), (0.01, 0.013)):
        theirs = rounded_up(p, q, step).as_event(other=rounded_up(q, p, other_step))
        for epsilon in (0.0, 0.2, 0.4, 0.9, 1.5):
            true = tacit.account(table, epsilon=epsilon).delta.high
            found = tacit.account(theirs, epsilon=epsilon).delta.high
            assert true - 1e-12 <= found <= true + 0.012
    alone = rounded_up(p, q, 0.01).as_event()
    assert tacit.account(alone, epsilon=0.4).delta.high >= 0.05 - math.exp(0.4) * 0.01


def test_what_is_missing_counts_as_an_infinite_loss() -> None:
    cut = LossDistribution(step=1.0, lowest=-1, probabilities=(0.2, 0.3, 0.4))
    assert tacit.account(cut.as_event(), epsilon=5.0).delta.high == pytest.approx(0.1, rel=1e-9)
    assert cut.as_mapping() == {-1: 0.2, 0: 0.3, 1: 0.4}


@pytest.mark.parametrize(
    "bad",
    [
        {"step": 0.0},
        {"step": math.nan},
        {"lowest": 0.5},
        {"lowest": True},
        {"lowest": 10**9},
        {"lowest": -(10**9)},
        {"probabilities": ()},
        {"probabilities": (0.5, math.nan)},
        {"probabilities": (0.5, -0.1)},
        {"probabilities": (0.9, 0.9)},
        {"infinite": 2.0},
    ],
)
def test_bad_distributions_cannot_exist(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        LossDistribution(**{"step": 0.5, "lowest": -1, "probabilities": (0.4, 0.6)} | bad)


def test_losses_that_no_two_laws_have() -> None:
    with pytest.raises(InvalidParameter, match="at most 1"):
        LossDistribution(step=1.0, lowest=-3, probabilities=(1.0,)).as_event()
    fine, wide = (LossDistribution(step=s, lowest=0, probabilities=(0.5, 0.5)) for s in (1e-9, 1.0))
    with pytest.raises(InvalidParameter, match="larger part"):
        fine.as_event(other=wide)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"step": NaN, "lowest": 0, "probabilities": [1], "infinite": 0}', "[" * 9999]
)
def test_broken_files(text: str) -> None:
    with pytest.raises(InvalidParameter):
        LossDistribution.from_json(text)
    known = loss_distribution(PLANS[0], points=4)
    assert LossDistribution.from_json(json.dumps(known.to_dict())) == known


def test_arrays_of_a_training_run() -> None:
    run = tacit.dp_sgd(records=1000, batch_size=100, epochs=1, noise_multiplier=2)
    deltas = np.array([1e-3, 1e-5])
    assert run.epsilon(deltas).tolist() == [run.epsilon(1e-3), run.epsilon(1e-5)]
    assert run.delta(np.array([0.5])).tolist() == [run.account(epsilon=0.5).delta.high]
    assert run.epsilon(np.array([])).shape == (0,)
    with pytest.raises(InvalidParameter):
        run.epsilon(np.array([1e-3, math.nan]))
    told = tacit.account(run.event, delta=deltas)
    assert told.epsilon.high.tolist() == run.epsilon(deltas).tolist()
