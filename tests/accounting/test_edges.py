"""Compositions of which only one part breaks a condition, and deltas that are set aside before anything is run."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import tacit
from tacit.accounting import AdvancedFilter, RenyiFilter, filter_for
from tacit.accounting import events as ev
from tacit.accounting.codec import describe
from tacit.accounting.curves import _given
from tacit.accounting.training import dp_sgd
from tacit.errors import EmptyComposition, InvalidParameter, NoLaw, TacitError, UnknownName
from tacit.guarantees import Neighbours

PURE = ev.RandomizedResponseEvent(epsilon=1.0, categories=4)
NOT_PURE = ev.GaussianEvent(noise_multiplier=2.0)
SAMPLED = ev.PoissonSampledEvent(event=PURE, sampling_rate=0.5)


@pytest.mark.parametrize("turned", [False, True])
def test_every_local_answer_must_be_pure(turned: bool) -> None:
    parts = (NOT_PURE, PURE) if turned else (PURE, NOT_PURE)
    with pytest.raises(NoLaw, match="gaussian"):
        ev.ShuffledEvent(event=ev.ComposedEvent(events=parts), people=1000)
    sampled = (SAMPLED, PURE) if turned else (PURE, SAMPLED)
    with pytest.raises(InvalidParameter, match="own data"):
        ev.ShuffledEvent(event=ev.ComposedEvent(events=sampled), people=1000)
    assert ev.ShuffledEvent(event=ev.ComposedEvent(events=(PURE, PURE)), people=1000).pure() == 2.0


@pytest.mark.parametrize("share", [0.25, 0.5, 0.875])
def test_the_delta_of_the_losses_is_spent_with_the_first_release(share: float) -> None:
    """Two releases of delta 2^-30: the odometer says their deltas and what was set aside for the losses, exactly."""
    budget, own = 2.0**-10, 2.0**-30
    chosen = AdvancedFilter(tacit.Approximate(epsilon=1.0, delta=budget), share=share)
    for _ in range(2):
        chosen.admit(tacit.Approximate(epsilon=0.125, delta=own))
    told = Fraction(chosen.spent.delta)
    wanted = Fraction(budget) * Fraction(share) + 2 * Fraction(own)
    assert wanted <= told <= wanted * (1 + Fraction(1, 10**9))


GAUSSIAN = ev.GaussianEvent(noise_multiplier=1.0)
BAD: dict[str, tuple[Callable[[], Any], type[TacitError], str]] = {
    "a plan that is no function": (lambda: tacit.calibrate(3, epsilon=1, delta=1e-6), InvalidParameter, "a function"),  # type: ignore[arg-type]
    "a plan that is a class": (
        lambda: tacit.calibrate(ev.GaussianEvent, epsilon=1, delta=1e-6), InvalidParameter, "a function",
    ),
    "epsilons that are words": (lambda: _given(["a"]), InvalidParameter, "array of numbers"),
    "no epsilon": (lambda: _given([]), EmptyComposition, "epsilons"),
    "a negative epsilon": (lambda: _given([1.0, -0.5]), InvalidParameter, "at least 0"),
    "an epsilon without end": (lambda: _given([1.0, float("inf")]), InvalidParameter, "finite"),
    "something among events": (lambda: ev.flatten([PURE, 3]), InvalidParameter, "be events"),  # type: ignore[list-item]
    "sets that overlap whole": (
        lambda: ev.BalancedResponseEvent(epsilon=1, outcomes=9, supporting=3, shared=3), InvalidParameter, "shared",
    ),
    "sets beyond the outcomes": (
        lambda: ev.BalancedResponseEvent(epsilon=1, outcomes=4, supporting=3, shared=1), InvalidParameter, "shared",
    ),
    "shuffling of no event": (lambda: ev.ShuffledEvent(event=3, people=9), InvalidParameter, "be an event"),  # type: ignore[arg-type]
    "shuffling where people come and go": (
        lambda: ev.ShuffledEvent(event=PURE, people=9).pairs(Neighbours.ADD_OR_REMOVE), NoLaw, "add-or-remove",
    ),
    "exact numbers of an event": (
        lambda: filter_for(tacit.Pure(epsilon=1)).admit(PURE, neighbours="replace-one", exact={"epsilon": Fraction(1)}),
        InvalidParameter, "left out",
    ),
    "exact numbers of another bound": (
        lambda: filter_for(tacit.Pure(epsilon=1)).admit(tacit.Pure(epsilon=0.5), exact={"epsilon": Fraction(1, 4)}),
        InvalidParameter, "round to them",
    ),
    "exact numbers that are floats": (
        lambda: filter_for(tacit.Pure(epsilon=1)).admit(tacit.Pure(epsilon=0.5), exact={"epsilon": 0.5}),  # type: ignore[dict-item]
        InvalidParameter, "round to them",
    ),
    "Gaussian noise and a pure budget": (
        lambda: filter_for(tacit.Pure(epsilon=1)).admit(GAUSSIAN), NoLaw, "charging gaussian noise to a pure budget",
    ),
    "a bound without a divergence": (
        lambda: RenyiFilter(order=2.0, epsilon=1).admit(tacit.Approximate(epsilon=0.1, delta=1e-6)),
        NoLaw, "every order above 1",
    ),
    "values that are no table": (lambda: describe("gaussian", 3), InvalidParameter, "table of named values"),  # type: ignore[arg-type]
    "two open values": (
        lambda: describe("subsampled_gaussian", {"noise_multiplier": "?", "sampling_rate": "?"}),
        InvalidParameter, "one value at a time",
    ),
    "noise and a target": (
        lambda: dp_sgd(records=100, batch_size=10, steps=5, noise_multiplier=1.0, epsilon=1, delta=1e-6),
        InvalidParameter, "target epsilon and delta",
    ),
    "neither noise nor a target": (
        lambda: dp_sgd(records=100, batch_size=10, steps=5), InvalidParameter, "target epsilon and delta",
    ),
    "half a target": (
        lambda: dp_sgd(records=100, batch_size=10, steps=5, epsilon=1), InvalidParameter, "target epsilon and delta",
    ),
    "shuffled batches": (
        lambda: dp_sgd(records=100, batch_size=10, steps=5, noise_multiplier=1.0, sampling="shuffled"),
        NoLaw, "exactly one batch",
    ),
    "an unknown sampling": (
        lambda: dp_sgd(records=100, batch_size=10, steps=5, noise_multiplier=1.0, sampling="cyclic"),
        UnknownName, "sampling",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_refusal_is_reached_and_told(name: str) -> None:
    act, kind, match = BAD[name]
    with pytest.raises(kind, match=match):
        act()
