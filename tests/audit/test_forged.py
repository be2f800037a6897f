"""A certificate that was changed is not confirmed: neither its numbers, nor its events, nor what they are for."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.parameter_examples import DECLARED_EVENTS
from tacit.accounting import account
from tacit.accounting import events as ev
from tacit.accounting.codec import _KINDS, to_record
from tacit.audit import opinion_on_certificate, opinion_on_charge, opinion_on_noise
from tacit.audit.release import second_opinions
from tacit.cli import main

LAPLACE = {"kind": "laplace", "epsilon": 1.0}
NAN, INF = float("nan"), float("inf")


def stated(bound: dict[str, Any], *events: Any, neighbours: str = "add-or-remove") -> dict[str, Any]:
    """As much of a certificate as the second opinion reads."""
    guarantee = {"bound": bound, "condition": {"kind": "always"}}
    records = [{"version": 1, "event": event} for event in events]
    return {"guarantee": guarantee, "event": records, "neighbours": neighbours, "mechanism": {}}


def pure(epsilon: Any) -> dict[str, Any]:
    return {"kind": "pure", "epsilon": epsilon}


def approximate(epsilon: Any, delta: Any) -> dict[str, Any]:
    return {"kind": "approximate", "epsilon": epsilon, "delta": delta}


def repeated(times: Any) -> dict[str, Any]:
    return {"kind": "repeated", "times": times, "event": LAPLACE}


def sampled(rate: Any) -> dict[str, Any]:
    return {"kind": "poisson_sampled", "sampling_rate": rate, "event": LAPLACE}


GAUSSIAN = {"kind": "gaussian", "noise_multiplier": 1.0}
FORGED: dict[str, dict[str, Any]] = {
    "no event": stated(pure(0.5)),
    "a negative epsilon beside": stated(pure(0.5), LAPLACE, {"kind": "pure", "epsilon": -0.6}),
    "a negative rho beside": stated(
        {"kind": "concentrated", "rho": 0.1}, LAPLACE, {"kind": "concentrated", "rho": -1.0}
    ),
    "a negative delta beside": stated(approximate(1.0, 1e-6), approximate(1.0, 1e-3), approximate(0.0, -1e-3)),
    "a negative multiplier": stated(approximate(1.0, 1e-6), {"kind": "gaussian", "noise_multiplier": -10.0}),
    "one time and a half": stated(pure(1.0), repeated(1.5)),
    "no time": stated(pure(0.1), repeated(0)),
    "less than no time": stated(pure(0.1), repeated(-3)),
    "times as text": stated(pure(1.0), repeated("1")),
    "times that are true": stated(pure(1.0), repeated(True)),
    "times beside the event": {**stated(pure(1.0)), "event": [{"version": 1, "event": LAPLACE, "times": 5}]},
    "a number as text": stated(pure(1.0), {"kind": "laplace", "epsilon": "0.5"}),
    "a bound as text": stated(pure("1.0"), LAPLACE),
    "a bound that is no number": stated(pure(NAN), LAPLACE),
    "a bound without end": stated(pure(INF), LAPLACE),
    "an event that is no number": stated(pure(1.0), {"kind": "laplace", "epsilon": NAN}),
    "endless noise": stated({"kind": "gaussian", "mu": 0.1}, {"kind": "gaussian", "noise_multiplier": INF}),
    "a rate below 0": stated(pure(0.1), sampled(-0.5)),
    "a rate above 1": stated(pure(3.0), sampled(1.5)),
    "delta above 1": stated(approximate(0.1, 2.0), LAPLACE),
    "an epsilon that Gaussian noise has not": stated(pure(1.0), {**GAUSSIAN, "epsilon": 0.1}),
    "a mixture that never runs": stated(
        approximate(0.5, 1e-2), {"kind": "mixed", "events": [LAPLACE], "weights": [0.0]}
    ),
    "a mixture of weight -1": stated(
        approximate(0.5, 1e-2), {"kind": "mixed", "events": [LAPLACE, LAPLACE], "weights": [1.0, -1.0]}
    ),
    "a table that adds up to 9": stated(pure(1.0), {"kind": "tabulated", "p": [0.9, 0.1], "q": [4.0, 5.0]}),
    "tables of two lengths": stated(pure(1.0), {"kind": "tabulated", "p": [0.5, 0.5], "q": [1.0]}),
    "no orders": stated({"kind": "renyi", "orders": [], "epsilons": []}, LAPLACE),
    "an order below 0": stated({"kind": "renyi", "orders": [-3.0], "epsilons": [0.001]}, GAUSSIAN),
    "another relation": stated(pure(1.0), LAPLACE, neighbours="whatever"),
    "an empty composition": stated(pure(0.0), {"kind": "composed", "events": []}),
    "one category": stated(
        approximate(0.9, 1e-6), {"kind": "randomized_response", "epsilon": 1.0, "categories": 1}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(FORGED))
def test_what_no_release_can_have_is_refused(name: str) -> None:
    assert opinion_on_certificate(FORGED[name]).confirmed is False


@pytest.mark.parametrize(
    "unknown",
    [
        stated(pure(1.0), {"kind": "later", "epsilon": 1.0}),
        {**stated(pure(1.0)), "event": [{"version": 2, "event": LAPLACE}]},
        {**stated(pure(1.0), LAPLACE), "guarantee": {"bound": pure(1.0), "condition": {"kind": "later"}}},
        stated({"kind": "later", "epsilon": 1.0}, LAPLACE),
        stated(pure(0.2), sampled(0.1), neighbours="replace-one"),
        stated(approximate(0.2, 1e-6), sampled(0.1), neighbours="replace-one"),
        stated(pure(0.2), {**sampled(0.1), "kind": "without_replacement"}),
    ],
)
def test_what_a_later_version_may_mean_is_not_confirmed(unknown: dict[str, Any]) -> None:
    """Also Poisson sampling of replaced units: the sample's size may tell, and all of epsilon is lost."""
    opinion = opinion_on_certificate(unknown)
    assert opinion.confirmed is None
    assert opinion.why


@pytest.mark.parametrize("version", [2, 0, 10**400, 1.5, True, None, "1", [], NAN])
def test_a_guarantee_of_another_version_is_not_confirmed(version: Any) -> None:
    said = stated(pure(1.0), LAPLACE)
    said["guarantee"]["version"] = 1
    assert opinion_on_certificate(said).confirmed is True
    said["guarantee"]["version"] = version
    assert opinion_on_certificate(said).confirmed is None


def test_tables_are_taken_as_laws() -> None:
    """p and q within 1e-9 of a sum of 1; ratios are those of the laws, whatever the last digits."""
    table = {"kind": "tabulated", "p": [0.3, 0.7], "q": [0.7, 0.3]}
    assert opinion_on_certificate(stated(pure(0.8473), table)).confirmed is True
    assert opinion_on_certificate(stated(pure(0.8472), table)).confirmed is False


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    out = tmp_path_factory.mktemp("forged") / "demo"
    assert main(["demo", "--out", str(out), "--people", "2000", "--json"]) == 0
    return [json.loads(p.read_text()) for p in sorted((out / "certificates").glob("*.json"))]


Change = Callable[[list[dict[str, Any]]], Any]


def each_unit(certificates: list[dict[str, Any]], part: str) -> None:
    for one in certificates:
        held = one["guarantee"] if part == "guarantee" else one["plan"]["charge"]
        held["unit"] = {"kind": "rows", "neighbours": "add-or-remove"}


@pytest.mark.parametrize(
    "change",
    [
        lambda all: all.pop(),
        lambda all: all[0].update(event=[]),
        lambda all: all[3]["event"].pop(),
        lambda all: [one["plan"]["charge"]["bound"].update(epsilon=1.0) for one in all],
        lambda all: all[-1]["plan"]["charge"]["bound"].update(epsilon=1.0),
        lambda all: all[-1].update(neighbours="replace-one"),
        lambda all: [one["plan"]["charge"]["unit"].update(neighbours="replace-one") for one in all],
        lambda all: all[0]["guarantee"].update(condition={"kind": "random-data", "gamma": 0.1}),
        lambda all: each_unit(all, "guarantee"),
        lambda all: each_unit(all, "charge"),
    ],
)
def test_a_changed_release_is_noticed(demo: list[dict[str, Any]], change: Change) -> None:
    """Certificates dropped, events dropped, ceilings lowered, other units and conditions: bound, noise or charge."""
    forged = copy.deepcopy(demo)
    change(forged)
    said = [opinion_on_charge(forged)]
    for one in forged:
        said += [opinion_on_certificate(one), *filter(None, [opinion_on_noise(one)])]
    assert any(opinion.confirmed is not True for opinion in said)


def test_an_unchanged_release_is_confirmed(demo: list[dict[str, Any]]) -> None:
    assert opinion_on_charge(demo).confirmed is True
    for one in demo:
        assert opinion_on_certificate(one).confirmed is True


def test_names_that_stand_twice_are_not_read(tmp_path: Path, demo: list[dict[str, Any]]) -> None:
    """Two readers of JSON may each see another bound."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    text = json.dumps(demo[0]).replace('"neighbours"', '"event": [], "neighbours"', 1)
    (folder / "one.json").write_text(text)
    findings = list(second_opinions(tmp_path))
    assert [f.holds for f in findings] == [None]


def on_random_data(*given: Any, gamma: Any, kind: str = "random-data") -> dict[str, Any]:
    """A certificate whose events hold except with some probability over the data."""
    said = stated(pure(1.0 * len(given)), *[LAPLACE] * len(given))
    said["event"] = [{**record, "given": one} for record, one in zip(said["event"], given, strict=True)]
    said["guarantee"]["condition"] = {"kind": kind, **({"gamma": gamma} if kind == "random-data" else {})}
    return said


def test_an_event_given_random_data_is_confirmed_under_that_condition_only() -> None:
    one = {"random_data": "1/20"}
    assert opinion_on_certificate(on_random_data(one, gamma=0.05)).confirmed is True
    assert opinion_on_certificate(on_random_data(one, one, gamma=0.05)).confirmed is True, (
        "one release, one gamma"
    )
    for forged in (
        on_random_data(one, gamma=0.04),
        on_random_data(one, gamma=0.05, kind="always"),
        on_random_data({"random_data": "1/20", "priors": "x"}, gamma=0.05),
        on_random_data({"priors": "rows", "unknown_rows": 9}, gamma=0.05),
        on_random_data({"random_data": "-1/20"}, gamma=0.05),
        on_random_data({"random_data": 0.05}, gamma=0.05),
        on_random_data("1/20", gamma=0.05),
    ):
        assert opinion_on_certificate(forged).confirmed is False, forged


def test_gammas_of_releases_add_up_in_the_charge() -> None:
    def charged(gamma: float) -> list[dict[str, Any]]:
        condition = {"kind": "random-data", "gamma": gamma}
        plan = {"charge": {"bound": pure(2.0), "condition": condition}, "releases": ["a", "b"]}
        own = on_random_data({"random_data": "1/20"}, gamma=0.05)
        return [{**own, "name": name, "plan": plan} for name in ("a", "b")]

    assert opinion_on_charge(charged(0.1)).confirmed is True
    assert opinion_on_charge(charged(0.09)).confirmed is False


@pytest.mark.parametrize(
    "condition",
    [
        {"kind": "always", "gamma": 0.5},
        {"kind": "random-data", "gamma": "0.05"},
        {"kind": "random-data", "gamma": True},
        {"kind": "random-data", "gamma": 3},
        {"kind": "random-data", "gamma": NAN},
        {"kind": "random-data"},
        {"kind": "bounded-adversary"},
        {"kind": "bounded-adversary", "assumption": "AES", "advantage": -1.0, "definition": "sim"},
        {"kind": "bounded-adversary", "assumption": "AES", "advantage": "0", "definition": "sim"},
        {"kind": "bounded-adversary", "assumption": "", "advantage": 0.0, "definition": "sim"},
        {"kind": "bounded-adversary", "assumption": "AES", "advantage": 0.0, "definition": "mine"},
    ],
)
def test_a_condition_has_its_own_fields_and_ranges(condition: dict[str, Any]) -> None:
    said = stated(pure(1.0), LAPLACE)
    said["guarantee"]["condition"] = condition
    assert opinion_on_certificate(said).confirmed is False
    given = on_random_data({"random_data": "1/20"}, gamma=0.05)
    given["guarantee"]["condition"] = condition
    assert opinion_on_certificate(given).confirmed is False


@pytest.mark.parametrize("given", ["5/2", "1/0", "2", "\u0663/\u0664", "1/20\n"])
def test_what_an_event_is_given_is_a_probability(given: str) -> None:
    assert opinion_on_certificate(on_random_data({"random_data": given}, gamma=1.0)).confirmed is False


def test_a_charge_assumes_no_less_than_its_releases() -> None:
    """Another condition, a smaller gamma, a smaller advantage, an adversary with another task."""

    def charged(own: dict[str, Any], whole: dict[str, Any]) -> bool | None:
        plan = {"charge": {"bound": pure(2.0), "condition": whole}, "releases": ["a", "b"]}
        said = stated(pure(1.0), LAPLACE)
        said["guarantee"]["condition"] = own
        return opinion_on_charge([{**said, "name": name, "plan": plan} for name in ("a", "b")]).confirmed

    random = [{"kind": "random-data", "gamma": g} for g in (0.05, 0.01)]
    bounded = [
        {"kind": "bounded-adversary", "assumption": "AES", "advantage": a, "definition": "sim"}
        for a in (0.1, 0.01)
    ]
    always = {"kind": "always"}
    assert charged(random[0], random[0]) is True
    assert charged(bounded[1], bounded[0]) is True
    for own in (random[0], bounded[0]):
        assert charged(always, own) is True
        assert charged(own, always) is False
    assert charged(random[0], random[1]) is False
    assert charged(bounded[0], bounded[1]) is False
    assert charged(bounded[0], random[0]) is False
    assert charged(random[0], bounded[0]) is False
    assert charged({**bounded[0], "assumption": "none"}, bounded[0]) is False


def test_more_runs_than_it_can_follow_are_not_known() -> None:
    """Neither confirmed nor denied, and at once; a sum of epsilons that is enough is enough for any number."""
    many = {"kind": "repeated", "times": 10**30, "event": {"kind": "laplace", "epsilon": 1e-20}}
    assert opinion_on_certificate(stated(approximate(1.0, 1e-6), many)).confirmed is None
    assert opinion_on_certificate(stated(approximate(1e10, 1e-6), many)).confirmed is True


def test_no_event_is_never_a_confirmation() -> None:
    """An exact answer whose bound was struck out says that it reveals nothing."""
    assert opinion_on_certificate(stated(pure(0.0))).confirmed is None
    assert opinion_on_certificate(stated(approximate(0.0, 0.0))).confirmed is None


# --- numbers that are a little too small ---------------------------------------------------------------------------
NOISE = ev.GaussianEvent(noise_multiplier=1.1)
KINDS: list[tuple[ev.Event, float, str]] = [
    (ev.ApproximateEvent(epsilon=0.5, delta=1e-4), 1e-3, "add-or-remove"),
    (ev.BalancedResponseEvent(epsilon=0.8, outcomes=20, supporting=8, shared=2), 1e-3, "replace-one"),
    (ev.ConcentratedEvent(rho=0.02), 1e-6, "replace-one"),
    (ev.DiscreteGaussianEvent(noise_multiplier=2.0, sensitivity=2), 1e-6, "replace-one"),
    (ev.DiscreteGaussianVectorEvent(noise_std=9.0, squared_sensitivity=2, coordinates=5), 1e-4, "replace-one"),
    (ev.DiscreteLaplaceEvent(epsilon=0.6, sensitivity=3), 1e-3, "add-or-remove"),
    (ev.ExponentialEvent(epsilon=0.6), 1e-3, "add-or-remove"),
    (NOISE, 1e-5, "add-or-remove"),
    (ev.LaplaceEvent(epsilon=0.6), 1e-3, "add-or-remove"),
    (ev.MixedEvent(events=(NOISE, ev.LaplaceEvent(epsilon=0.6)), weights=(0.5, 0.25)), 1e-4, "add-or-remove"),
    (ev.PermuteAndFlipEvent(epsilon=0.6), 1e-3, "add-or-remove"),
    (ev.PoissonSampledEvent(event=NOISE, sampling_rate=0.1), 1e-5, "add-or-remove"),
    (
        ev.PoissonSampledEvent(event=ev.RepeatedEvent(event=ev.LaplaceEvent(epsilon=0.6), times=2), sampling_rate=0.2),
        1e-3, "add-or-remove",
    ),
    (ev.PureEvent(epsilon=0.6), 1e-3, "add-or-remove"),
    (ev.RandomizedResponseEvent(epsilon=0.6, categories=4), 1e-3, "replace-one"),
    (ev.SampledWithoutReplacementEvent(event=NOISE, sampling_rate=0.1), 1e-5, "replace-one"),
    (ev.ShuffledEvent(event=ev.RandomizedResponseEvent(epsilon=0.8, categories=2), people=9), 1e-3, "replace-one"),
    (ev.SkellamEvent(noise_variance=9.0, sensitivity=2), 1e-4, "replace-one"),
    (ev.StaircaseEvent(epsilon=0.6, gamma=0.3), 1e-3, "add-or-remove"),
    (ev.TabulatedEvent(p=(0.7, 0.1, 0.2), q=(0.3, 0.5, 0.2)), 1e-3, "add-or-remove"),
    *((event, 1e-3, "replace-one") for event in DECLARED_EVENTS),
]  # fmt: skip


def test_every_kind_of_event_is_forged_below() -> None:
    inside = {"composed", "repeated"}
    assert {e.kind for e, _, _ in KINDS} | inside == set(_KINDS)


@pytest.mark.parametrize(
    ("event", "delta", "relation"), KINDS, ids=[f"{e.kind}-{i}" for i, (e, _, _) in enumerate(KINDS)]
)
@pytest.mark.parametrize("runs", [1, 3])
def test_what_is_a_little_too_small_is_not_confirmed(
    event: ev.Event, delta: float, relation: str, runs: int
) -> None:
    """1%, 2%, 3% and more below the truth, which two ends enclose; at the upper end it is confirmed."""
    what = [ev.RepeatedEvent(event=event, times=runs)]
    ends = account(what, delta=delta, neighbours=relation).epsilon
    truth = ends.low or ends.high

    def said(epsilon: float) -> bool | None:
        guarantee = {"bound": approximate(epsilon, delta), "condition": {"kind": "always"}}
        records = json.loads(json.dumps([to_record(e) for e in what]))
        return opinion_on_certificate(
            {"guarantee": guarantee, "event": records, "neighbours": relation}
        ).confirmed

    assert said(ends.high * (1 + 1e-3)) is True
    for part in (0.99, 0.98, 0.97, 0.9, 0.5):
        assert said(truth * part) is not True, part


def test_a_statement_two_percent_below_is_not_confirmed() -> None:
    """Two runs of Laplace noise, whose epsilon is known in closed form: 1.9% below it, and a hundredth of that."""
    what = [ev.RepeatedEvent(event=ev.LaplaceEvent(epsilon=1.0), times=2)]
    ends = account(what, delta=1e-3, neighbours="add-or-remove").epsilon
    for part, confirmed in ((1 + 1e-5, True), (0.999, False), (0.981, False)):
        guarantee = {"bound": approximate(ends.high * part, 1e-3), "condition": {"kind": "always"}}
        records = json.loads(json.dumps([to_record(e) for e in what]))
        given = {"guarantee": guarantee, "event": records, "neighbours": "add-or-remove"}
        assert opinion_on_certificate(given).confirmed is confirmed
