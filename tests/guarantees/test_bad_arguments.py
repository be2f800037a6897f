"""Every argument of every public function of the algebra and of accounting, given something that it is not: one typed
error, or an answer, and never an error of Python's own."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tacit
import tacit.accounting as accounting
import tacit.guarantees as guarantees
from support.parameter_examples import DECLARED_EVENTS
from tacit.accounting import codec, events
from tacit.accounting import codec as text
from tacit.errors import InvalidParameter, TacitError
from tacit.guarantees import meaning
from tacit.guarantees.guarantee import from_record, to_record
from tacit.guarantees.laws import convert as gaussian_noise

PURE, STATED = tacit.Pure(epsilon=1), tacit.Approximate(epsilon=1, delta=1e-6)
NORMAL, CURVE = tacit.GaussianDP(mu=1), tacit.Profile.laplace(epsilon=1)
PROMISE = tacit.Guarantee(bound=PURE, unit=tacit.rows())
NOISE = events.LaplaceEvent(epsilon=1.0)
BAD: list[Any] = [
    None, "x", "approximate", 1.9, True, False, float("nan"), float("inf"), -1, 10**400, -(10**400), 1e-320, [], {},
    (), object(), b"a", np.float32(1.5), np.uint8(3), np.array([1.0, 2.0]), 1j, tacit.Pure, PURE, PROMISE,
    tacit.rows(), [1, "a"], [[]], {"kind": []}, {1: 2}, ..., "é" * 1000,
]  # fmt: skip

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def call(function: Callable[..., Any], *arguments: Any, **named: Any) -> Call:
    return function, arguments, named


CALLS: list[Call] = [
    # the verbs
    call(tacit.compose, PURE, STATED),
    call(tacit.compose, PROMISE, PROMISE, adaptive=True, assume=None),
    call(tacit.compose, STATED, STATED, law="advanced", slack=1e-6),
    call(tacit.repeat, STATED, 3, law="optimal"),
    call(tacit.repeat, PROMISE, 3, adaptive=False),
    call(tacit.parallel, PROMISE, PROMISE, fixed=False),
    call(tacit.group, PURE, size=2),
    call(tacit.group, PROMISE, size=2),
    call(tacit.subsample, STATED, rate=0.1, scheme="poisson"),
    call(tacit.subsample, PROMISE, rate=0.1, scheme="poisson"),
    call(tacit.post_process, PURE),
    call(tacit.convert, PURE, tacit.Approximate),
    call(tacit.convert, NORMAL, tacit.Approximate, delta=1e-6, law="gdp-to-approximate"),
    call(tacit.convert, NORMAL, tacit.Approximate, epsilon=1.0),
    call(tacit.convert, NORMAL, tacit.Renyi, orders=(2.0, 3.0)),
    call(guarantees.gaussian_budget, epsilon=1.0, delta=1e-6),
    call(guarantees.concentrated_budget, epsilon=1.0, delta=1e-6, printed=False),
    call(guarantees.renyi_budget, epsilon=1.0, delta=1e-6),
    call(gaussian_noise.gaussian_multiplier, epsilon=1.0, delta=1e-6),
    call(gaussian_noise.classic_multiplier, epsilon=1.0, delta=1e-6, constant=2.0),
    call(gaussian_noise.for_releases, epsilon=1.0, delta=1e-6, releases=3),
    # bounds
    call(tacit.Pure, epsilon=1.0),
    call(tacit.Approximate, epsilon=1.0, delta=0.1),
    call(tacit.guarantees.Pointwise, epsilon=1.0, delta=0.1),
    call(tacit.Concentrated, rho=1.0),
    call(tacit.GaussianDP, mu=1.0),
    call(tacit.Renyi, orders=(2.0,), epsilons=(1.0,)),
    call(tacit.Profile, directions=CURVE.directions),
    call(tacit.Profile.from_pair, [0.5, 0.5], [0.4, 0.6]),
    call(tacit.Profile.from_losses, [0.1], [1.0], infinite=0.0),
    call(tacit.Profile.gaussian, mu=1.0),
    call(tacit.Profile.laplace, epsilon=1.0),
    call(tacit.Profile.of, PURE),
    call(tacit.Profile.of_pair, CURVE.directions[0].pairs[0][0]),
    call(tacit.Profile.product, [(CURVE, 1)]),
    call(tacit.Profile.worst, [CURVE]),
    call(CURVE.grouped, 2),
    call(CURVE.poisson_sampled, 0.1),
    call(CURVE.sampled_without_replacement, 0.1),
    call(CURVE.delta_between, 0.5, tolerance=1e-4),
    call(CURVE.epsilon_between, 0.1, tolerance=1e-4),
    *(
        call(question, value)
        for bound in (PURE, NORMAL, tacit.Concentrated(rho=1.0), STATED, CURVE)
        for question, value in ((bound.delta, 0.5), (bound.epsilon, 0.1), (bound.renyi, 2.0))
        if (bound, value) != (STATED, 2.0)
    ),
    # units and conditions
    call(tacit.rows, neighbours="replace-one"),
    call(tacit.people, "id", at_most=3, groups=1, neighbours="replace-one"),
    call(tacit.group_of, tacit.rows(), size=2),
    call(tacit.guarantees.Coupled, priv="a", alt="b", family=3),
    call(tacit.guarantees.RandomData, gamma=0.1),
    call(tacit.guarantees.Priors, family="f", unknown_rows=3),
    call(tacit.guarantees.BoundedAdversary, assumption="x", advantage=0.1, definition="sim"),
    # guarantees
    call(tacit.Guarantee, bound=PURE, unit=tacit.rows(), condition=tacit.guarantees.Always(), declared=("a",)),
    call(PROMISE.delta, 0.5),
    call(PROMISE.epsilon, 0.1),
    call(PROMISE.renyi, 2.0),
    call(PROMISE.power, 0.1),
    call(PROMISE.best_guess, 0.4),
    call(PROMISE.incentive, delta=0.1),
    call(PROMISE.implies, PROMISE),
    call(PROMISE.for_unit, tacit.rows()),
    call(PROMISE.group, 2),
    call(PROMISE.subsampled, rate=0.1, scheme="poisson"),
    call(guarantees.theorem, "incentive"),
    call(guarantees.Sampling.parse, "poisson"),
    call(guarantees.Neighbours.parse, "replace-one"),
    call(meaning.power, PURE, 0.1),
    call(meaning.best_guess, PURE, 0.3),
    call(meaning.posterior_shift, PURE),
    call(meaning.semantic_privacy, STATED, slack=0.1),
    call(meaning.semantic_privacy_printed, STATED),
    call(meaning.incentive, PURE, delta=0.1),
    call(meaning.deterministic_is_constant, PURE),
    call(to_record, PROMISE),
    call(from_record, PROMISE.to_dict()),
    # accounting
    call(accounting.account, NOISE, delta=1e-6, neighbours="replace-one", accountant="pure"),
    call(accounting.account, [NOISE], epsilon=0.5),
    call(accounting.bound_of, NOISE, accountant="pure", neighbours="replace-one"),
    call(accounting.covers, guarantees.Pure(epsilon=9.0), [NOISE], neighbours="replace-one"),
    call(accounting.profile_of, NOISE, neighbours="replace-one"),
    call(
        accounting.calibrate, lambda value: events.GaussianEvent(noise_multiplier=value), epsilon=1.0, delta=1e-6,
        more_noise=True, neighbours="replace-one",
    ),
    call(events.GaussianEvent, noise_multiplier=1.0),
    call(events.LaplaceEvent, epsilon=1.0),
    call(events.DiscreteLaplaceEvent, epsilon=1.0, sensitivity=2),
    call(events.BalancedResponseEvent, epsilon=1.0, outcomes=10, supporting=3, shared=1),
    call(events.ShuffledEvent, event=events.RandomizedResponseEvent(epsilon=1.0), people=100),
    call(accounting.LossDistribution, step=0.5, lowest=-1, probabilities=(0.2, 0.5, 0.3)),
    call(accounting.loss_distribution, events=NOISE),
    call(events.DiscreteGaussianEvent, noise_multiplier=1.0, sensitivity=2),
    call(events.DiscreteGaussianVectorEvent, noise_std=1.0, squared_sensitivity=2, coordinates=2),
    call(events.SkellamEvent, noise_variance=1.0, sensitivity=2),
    call(events.StaircaseEvent, epsilon=1.0, gamma=0.3),
    call(events.ExponentialEvent, epsilon=1.0),
    call(events.PermuteAndFlipEvent, epsilon=1.0),
    call(events.RandomizedResponseEvent, epsilon=1.0, categories=3),
    call(events.PureEvent, epsilon=1.0),
    call(events.ApproximateEvent, epsilon=1.0, delta=0.1),
    call(events.ConcentratedEvent, rho=1.0),
    call(events.TabulatedEvent, p=(0.5, 0.5), q=(0.4, 0.6)),
    call(events.PoissonSampledEvent, event=NOISE, sampling_rate=0.1),
    call(events.SampledWithoutReplacementEvent, event=NOISE, sampling_rate=0.1),
    call(events.RepeatedEvent, event=NOISE, times=2),
    call(events.ComposedEvent, events=(NOISE,)),
    call(events.flatten, [NOISE]),
    call(accounting.filter_for, PURE),
    call(accounting.PureFilter, PURE),
    call(accounting.ApproximateFilter, STATED),
    call(accounting.ConcentratedFilter, tacit.Concentrated(rho=1.0)),
    call(accounting.GaussianFilter, NORMAL),
    call(accounting.RenyiFilter, order=2.0, epsilon=1.0),
    call(accounting.AdvancedFilter, STATED, share=0.5),
    call(accounting.filter_for(tacit.Pure(epsilon=100)).admit, PURE),
    call(accounting.filter_for(tacit.Pure(epsilon=100)).fits, PURE),
    call(accounting.RenyiFilter(order=2.0, epsilon=100.0).admit, PURE),
    call(text.parse, "laplace epsilon=1"),
    call(text.describe, "laplace", {"epsilon": 1}),
    call(codec.loads, codec.dumps(NOISE)),
    call(codec.dumps, NOISE),
    call(codec.to_record, NOISE),
    call(codec.from_record, codec.to_record(NOISE)),
    *(call(type(event), **event.parameters) for event in DECLARED_EVENTS),
]  # fmt: skip


def name_of(one: Call) -> str:
    return getattr(one[0], "__qualname__", str(one[0]))


@pytest.mark.parametrize("one", CALLS, ids=name_of)
def test_bad_arguments_are_typed_errors(one: Call) -> None:
    function, arguments, named = one
    function(*arguments, **named)  # as it stands it is right
    for place in range(len(arguments)):
        for bad in BAD:
            attempt(function, (*arguments[:place], bad, *arguments[place + 1 :]), named)
    for name in named:
        for bad in BAD:
            attempt(function, arguments, {**named, name: bad})


def attempt(function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    with contextlib.suppress(TacitError):
        function(*arguments, **named)


NOT_CALLED = {
    "CorrelatedNoise",
    "MixedEvent",
    "TrainingRun",
    "dp_accounting_source",
    "dp_sgd",
    "from_dp_accounting",
    "privacy_curve",
    "PrivacyCurve",
    "Bound",
    "Condition",
    "Event",
    "Filter",
    "Law",
    "Theorem",
    "Unit",
}  # bases, and what we make ourselves
RESULTS = {"Account", "Accounts", "Calibration", "Enclosures", "Implication"}
WITHOUT_ARGUMENTS = {"Always"}
THROUGH_FUNCTIONS = {"GroupOf", "Indistinguishability", "Neighbours", "People", "Rows", "Sampling"}


def test_every_public_function_is_called() -> None:
    named = {getattr(f, "__name__", "") for f, _, _ in CALLS} | {
        getattr(f, "__qualname__", "") for f, _, _ in CALLS
    }
    for room in (guarantees, accounting, events):
        for name in room.__all__:
            thing = getattr(room, name)
            if not callable(thing) or inspect.ismodule(thing):
                continue
            known = NOT_CALLED | RESULTS | WITHOUT_ARGUMENTS | THROUGH_FUNCTIONS | {"SimpleEvent"}
            assert name in named or name in known, name


def test_a_kind_is_a_class_and_not_its_name() -> None:
    with pytest.raises(InvalidParameter, match="kind of bound"):
        tacit.convert(PURE, "approximate")  # type: ignore[call-overload]
    with pytest.raises(InvalidParameter, match="a guarantee"):
        meaning.power(PROMISE, 0.1)  # type: ignore[arg-type]


def test_narrow_integers_become_pythons_own() -> None:
    """A step of 200 times 2 is 400, and not 144."""
    narrow = np.uint8(200)
    assert type(events.DiscreteLaplaceEvent(epsilon=1.0, sensitivity=narrow).sensitivity) is int  # type: ignore[arg-type]
    assert type(events.DiscreteGaussianEvent(noise_multiplier=1.0, sensitivity=narrow).sensitivity) is int  # type: ignore[arg-type]
    assert type(events.RandomizedResponseEvent(epsilon=1.0, categories=narrow).categories) is int  # type: ignore[arg-type]
    assert events.flatten(
        events.RepeatedEvent(event=events.RepeatedEvent(event=NOISE, times=narrow), times=narrow)
    ) == [  # type: ignore[arg-type]
        (NOISE, 40_000)
    ]
    unit = tacit.people("id", at_most=narrow, groups=narrow, neighbours="replace-one")  # type: ignore[arg-type]
    assert (type(unit.at_most), type(unit.groups)) == (int, int)
    assert tacit.group(PURE, size=narrow) == tacit.Pure(epsilon=200)  # type: ignore[arg-type]
    assert tacit.repeat(PURE, narrow) == tacit.Pure(epsilon=200)  # type: ignore[arg-type]
    many = PROMISE.group(int(narrow)).group(narrow)  # type: ignore[arg-type]
    assert many.bound == tacit.Pure(epsilon=40_000)
    table = tacit.Profile.from_pair(
        np.array([200, 55], dtype=np.uint8) / 255, np.array([55, 200], dtype=np.uint8) / 255
    )
    assert table.epsilon(0.0) == pytest.approx(np.log(200 / 55))
    ones = tacit.Profile.from_pair(np.array([1, 0], dtype=np.int8), np.array([0, 1], dtype=np.int8))
    assert ones.delta(5.0) == 1.0
