"""More knowledge never costs more: an account of events is at most that of any coarser description of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.parameter_examples import DECLARED_EVENTS
from tacit.accounting import account, bound_of
from tacit.accounting import events as e
from tacit.guarantees import Concentrated, Neighbours, Pure, convert

SLACK = 1e-12


def rho_of(epsilon: float) -> float:
    return convert(Pure(epsilon=epsilon), Concentrated).rho


def table(epsilon: float) -> tuple[e.SimpleEvent, float]:
    """A table of losses of both signs, and the largest of them, rounded up."""
    q, top = (0.5, 0.25, 0.25), 0.25 * math.exp(min(0.7 * epsilon, 0.5))
    p = (0.5, top, 0.5 - top)
    largest = max(abs(math.log(a / b)) for a, b in zip(p, q, strict=True))
    return e.TabulatedEvent(p=p, q=q), largest * (1 + 1e-13)


def described(kind: str, epsilon: float) -> tuple[e.SimpleEvent, list[e.SimpleEvent]]:
    """An event, and what less is known by: its pure epsilon, its rho, the rho of its pure epsilon."""
    by_rho = e.ConcentratedEvent(rho=rho_of(epsilon))
    pure = e.PureEvent(epsilon=epsilon)
    match kind:
        case "gaussian":
            rho = math.nextafter(epsilon**2 / 2, math.inf) * (1 + 1e-14)
            return e.GaussianEvent(noise_multiplier=1 / epsilon), [e.ConcentratedEvent(rho=rho)]
        case "laplace":
            return e.LaplaceEvent(epsilon=epsilon), [pure, by_rho]
        case "exponential":
            return e.ExponentialEvent(epsilon=epsilon), [pure, by_rho]
        case "response":
            return e.RandomizedResponseEvent(epsilon=epsilon, categories=4), [pure, by_rho]
        case "staircase":
            return e.StaircaseEvent(epsilon=epsilon, gamma=0.3), [pure, by_rho]
        case "integers":
            return e.DiscreteLaplaceEvent(epsilon=epsilon), [pure, by_rho]
        case "table":
            found, largest = table(epsilon)
            return found, [e.PureEvent(epsilon=largest), e.ConcentratedEvent(rho=rho_of(largest))]
    return pure, [by_rho]


def sampled(event: e.SimpleEvent, how: str, rate: float) -> e.SimpleEvent:
    if how == "poisson":
        return e.PoissonSampledEvent(event=event, sampling_rate=rate)
    if how == "without replacement":
        return e.SampledWithoutReplacementEvent(event=event, sampling_rate=rate)
    return event


KINDS = ("gaussian", "laplace", "exponential", "response", "staircase", "integers", "table", "pure")
parts = st.tuples(
    st.sampled_from(KINDS), st.sampled_from((0.01, 0.1, 0.3, 0.7, 1.5)), st.sampled_from((1, 2, 7))
)
deltas = st.sampled_from((1e-3, 1e-6, 1e-9))
ways = st.sampled_from(("", "poisson", "without replacement"))


def high(plan: list[e.Event], delta: float, how: str) -> tuple[float, float]:
    """The upper end, and how far below it the lower one lies where there is one."""
    neighbours = "replace-one" if how == "without replacement" else "add-or-remove"
    found = account(plan, delta=delta, neighbours=neighbours).epsilon
    return found.high, found.width if found.low > 0 else 0.0


def repeated(event: e.SimpleEvent, times: int) -> e.Event:
    return e.RepeatedEvent(event=event, times=times)


@settings(max_examples=60)
@given(parts, st.sampled_from((1, 2, 5, 12, 40, 100)), deltas, ways, st.sampled_from((0.02, 0.3)))
def test_one_event_repeated(
    part: tuple[str, float, int], times: int, delta: float, how: str, rate: float
) -> None:
    event, coarser = described(part[0], part[1])
    best, _ = high([repeated(sampled(event, how, rate), times)], delta, how)
    for less in coarser:
        known, _ = high([repeated(sampled(less, how, rate), times)], delta, how)
        assert best <= known * (1 + SLACK) + SLACK


@settings(max_examples=25)
@given(st.lists(parts, min_size=2, max_size=4), deltas, st.sampled_from(("", "poisson")))
def test_different_events(chosen: list[tuple[str, float, int]], delta: float, how: str) -> None:
    """Plans without a short list of losses: up to the width of the enclosure, which is at most a thousandth."""
    both = [(described(kind, epsilon), times) for kind, epsilon, times in chosen]
    exact = [repeated(sampled(event, how, 0.1), times) for (event, _), times in both]
    best, width = high(exact, delta, how)
    assert width <= 1e-3 * max(1.0, best)
    for k in (0, -1):
        coarse = [repeated(sampled(less[k], how, 0.1), times) for (_, less), times in both]
        assert best <= high(coarse, delta, how)[0] * (1 + SLACK) + SLACK + width


@settings(max_examples=25)
@given(parts, deltas)
def test_sums_of_divergences_rhos_and_mus(part: tuple[str, float, int], delta: float) -> None:
    """What each single accountant knows of a plan is less than the account knows, up to the width of its ends."""
    event, _ = described(part[0], part[1])
    plan = [repeated(event, 3 * part[2])]
    best, width = high(plan, delta, "")
    for name in ("gdp", "pure", "zcdp", "renyi"):
        if name == "gdp" and part[0] != "gaussian":
            continue
        if name == "pure" and part[0] == "gaussian":
            continue
        assert best <= bound_of(plan, accountant=name).epsilon(delta) * (1 + SLACK) + width


def mixture(*events: e.SimpleEvent) -> e.SimpleEvent:
    return e.MixedEvent(events=events, weights=(0.25, 0.75))


def replaced(kind: str, epsilon: float) -> tuple[e.SimpleEvent, list[e.SimpleEvent]]:
    """Events of answers, crowds and coins, for replace-one neighbours, and what less is known by."""
    pure, by_rho = e.PureEvent(epsilon=epsilon), e.ConcentratedEvent(rho=rho_of(epsilon))
    laplace, response = (
        e.LaplaceEvent(epsilon=epsilon),
        e.RandomizedResponseEvent(epsilon=epsilon, categories=3),
    )
    match kind:
        case "balanced":
            return e.BalancedResponseEvent(epsilon=epsilon, outcomes=12, supporting=6, shared=2), [
                pure,
                by_rho,
            ]
        case "shuffled":
            return e.ShuffledEvent(event=response, people=60), [
                e.ShuffledEvent(event=pure, people=60),
                pure,
                by_rho,
            ]
        case "fewer people":
            return e.ShuffledEvent(event=laplace, people=90), [
                e.ShuffledEvent(event=laplace, people=40),
                pure,
            ]
        case "coin":
            return mixture(laplace, response), [mixture(pure, pure), mixture(by_rho, pure), pure, by_rho]
        case "rarely":
            seldom = e.MixedEvent(events=(laplace,), weights=(0.25,))
            return seldom, [mixture(laplace, e.LaplaceEvent(epsilon=epsilon / 4)), laplace, pure]
        case "integers":
            found = e.DiscreteGaussianEvent(noise_multiplier=1 / epsilon, sensitivity=2)
            return found, [e.ConcentratedEvent(rho=found.rho)]
        case "permuted":
            return e.PermuteAndFlipEvent(epsilon=epsilon), [
                pure,
                e.ApproximateEvent(epsilon=epsilon, delta=1e-12),
            ]
    return e.ApproximateEvent(epsilon=epsilon, delta=1e-12), [
        e.ApproximateEvent(epsilon=epsilon, delta=1e-11)
    ]


REPLACED = ("balanced", "shuffled", "fewer people", "coin", "rarely", "integers", "permuted", "approximate")


@settings(max_examples=40)
@given(st.sampled_from(REPLACED), st.sampled_from((0.1, 0.4, 1.5)), st.sampled_from((1, 2, 9, 60)), deltas)
def test_answers_crowds_and_coins(kind: str, epsilon: float, times: int, delta: float) -> None:
    """Up to the width of the enclosure, or a part in a thousand where the lower end is not known."""
    event, coarser = replaced(kind, epsilon)
    found = account([repeated(event, times)], delta=delta, neighbours="replace-one").epsilon
    width = found.width if found.low > 0 else 1e-3 * max(1.0, found.high)
    for less in coarser:
        known = account([repeated(less, times)], delta=delta, neighbours="replace-one").epsilon.high
        assert found.high <= known * (1 + SLACK) + SLACK + (width if times > 1 else 0.0)


def stated_by(event: e.SimpleEvent) -> list[tuple[float, float]]:
    """The (epsilon, delta) that it is stated with, or some points of the curve that it is known by."""
    own = event.approximate()
    if own is not None:
        return [own]
    curve = event.pairs(Neighbours.ADD_OR_REMOVE)[0]
    return [(epsilon, curve.hockey_stick(epsilon).high) for epsilon in (0.5, 1.0, 2.0, 3.0)]


@pytest.mark.parametrize("event", DECLARED_EVENTS, ids=lambda event: event.kind)
@pytest.mark.parametrize("times", [1, 3, 20])
def test_a_declared_event_costs_at_most_what_it_states(event: e.SimpleEvent, times: int) -> None:
    """At many deltas, against anything with the same (epsilon, delta)."""
    compared = 0
    for epsilon, own in stated_by(event):
        coarser = e.ApproximateEvent(epsilon=epsilon, delta=own)
        for delta in (1e-2, 1e-3, min(2 * times * own, 0.9) or 1e-6):
            found = account([repeated(event, times)], delta=delta).epsilon
            known = account([repeated(coarser, times)], delta=delta).epsilon.high
            assert found.high <= known * (1 + 1e-3) + SLACK
            compared += math.isfinite(known)
    assert compared >= 1


@pytest.mark.parametrize("times", [1, 3, 20])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_perturbed_objective_costs_at_least_its_gaussian_noise(rows: int, times: int) -> None:
    """Its curve is nowhere below that of Gaussian noise for the gradients of all rows; without curvature it is that."""
    gaussian = e.GaussianEvent(noise_multiplier=4.0 / rows)
    for delta in (1e-3, 1e-6):
        least = account([repeated(gaussian, times)], delta=delta).epsilon
        for curvature in (1e-6, 0.4):
            event = e.ObjectivePerturbationEvent(noise_multiplier=4.0, curvature=curvature, rows=rows)
            found = account([repeated(event, times)], delta=delta).epsilon
            assert found.high >= least.low
            if rows == 1 and curvature < 0.1:
                assert found.high <= least.high * (1 + 1e-3)


def test_every_kind_of_event_is_compared() -> None:
    """A class that declares an example is compared above; a Skellam event has no coarser one, samples are tried above.

    What is added to the others later must come here too.
    """
    kinds = {k for kind in KINDS for k in (described(kind, 0.5)[0].kind, "pure")}
    kinds |= {event.kind for event in DECLARED_EVENTS}
    kinds |= {replaced(kind, 0.5)[0].kind for kind in REPLACED} | {
        "concentrated",
        "skellam",
        "discrete_gaussian_vector",
    }
    kinds |= {
        sampled(e.LaplaceEvent(epsilon=1.0), how, 0.5).kind for how in ("poisson", "without replacement")
    }
    own = [
        getattr(e, name)
        for name in e.__all__
        if name not in ("ComposedEvent", "Event", "RepeatedEvent", "flatten")
    ]
    assert {one.kind for one in own if one is not e.SimpleEvent} <= kinds


@pytest.mark.parametrize(("noise_std", "squares", "coordinates"), [(2.0, 2, 2), (5.0, 4, 4), (40.0, 3, 2)])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_a_vector_is_known_better_than_its_rho(
    noise_std: float, squares: int, coordinates: int, delta: float
) -> None:
    vector = e.DiscreteGaussianVectorEvent(
        noise_std=noise_std, squared_sensitivity=squares, coordinates=coordinates
    )
    known = account([e.ConcentratedEvent(rho=vector.concentrated())], delta=delta).epsilon.high
    assert account([vector], delta=delta).epsilon.high <= known * (1 + SLACK) + SLACK
