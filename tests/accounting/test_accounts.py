"""Several deltas or epsilons at once: each answered as if it had been asked alone."""

from __future__ import annotations

import numpy as np
import pytest

import tacit
from tacit.accounting import Accounts
from tacit.accounting import events as e
from tacit.errors import EmptyComposition, InvalidParameter

PLANS = (
    [e.GaussianEvent(noise_multiplier=2)],
    [e.LaplaceEvent(epsilon=0.5), e.GaussianEvent(noise_multiplier=5)],
)


@pytest.mark.parametrize("plan", PLANS)
def test_arrays_are_answered_one_by_one(plan: list[e.Event]) -> None:
    deltas = np.array([[1e-3, 1e-6], [0.1, 1e-9]])
    found = tacit.account(plan, delta=deltas)
    assert isinstance(found, Accounts)
    assert found.epsilon.high.shape == found.delta.low.shape == (2, 2)
    for at, d in np.ndenumerate(deltas):
        alone = tacit.account(plan, delta=float(d))
        assert (found.epsilon.low[at], found.epsilon.high[at]) == (alone.epsilon.low, alone.epsilon.high)
        assert found.delta.low[at] == found.delta.high[at] == d
    assert len(found.accountants) == 4
    back = tacit.account(plan, epsilon=[0.5, 1])
    assert back.delta.high.tolist() == [tacit.account(plan, epsilon=x).delta.high for x in (0.5, 1)]
    assert tacit.account(plan, delta=(1e-6,), accountant="pld").epsilon.high.shape == (1,)


@pytest.mark.parametrize(
    "bad",
    [
        [float("nan")], [1e-6, -1e-6], [1e-6, 1.0], [True], ["1e-6"], [None], [[1e-6], [1e-6, 1e-7]],
        np.ma.array([1e-6, 1e-7], mask=[False, True]), np.array([1e-6 + 1j]), np.array(["x"]),
    ],
)  # fmt: skip
def test_what_is_no_number_in_an_array(bad: list[float]) -> None:
    with pytest.raises(InvalidParameter):
        tacit.account(PLANS[0], delta=bad)


@pytest.mark.parametrize("empty", [[], (), np.array([]), np.empty((0, 3))])
def test_empty_arrays(empty: list[float]) -> None:
    with pytest.raises(EmptyComposition):
        tacit.account(PLANS[0], delta=empty)
    with pytest.raises(EmptyComposition):
        tacit.account(PLANS[0], epsilon=empty)
