"""`noise="bounded"`: the smallest bound for the price, the law that `release()` draws, replay, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit import errors
from tacit.curator.choice import calibrated
from tacit.mechanisms import L1, TruncatedDiscreteLaplace

FRAME = pd.DataFrame({"sex": ["f"] * 60 + ["m"] * 40, "age": [30, 40] * 50})
SCHEMA = {"sex": tacit.category(["f", "m"]), "age": tacit.integer(0, 99)}
PRICE = {"epsilon": 1, "delta": 1e-6}


def make(unit=None, **more):
    budget = tacit.Approximate(epsilon=500, delta=1e-2)
    return tacit.Curator(
        FRAME, protect=unit or tacit.rows(), schema=SCHEMA, budget=budget, **{"ledger": None, **more}
    )


def asked(**more):
    return tacit.query(tacit.count(by="sex"), noise="bounded", **{**PRICE, **more})


@pytest.mark.parametrize(
    ("epsilon", "delta", "bound"),
    [(2, 1e-6, 7), (1, 1e-6, 14), (0.5, 1e-6, 25), (0.1, 1e-6, 109), (1, 1e-9, 20), (0.1, 1e-9, 178)],
)
def test_the_bound_is_the_smallest_of_the_table(epsilon, delta, bound):
    """Values worked out beforehand; the delta one below is above the price, by a sum over the law itself."""
    with make() as curator:
        plan = curator.preview(asked(epsilon=epsilon, delta=delta))
    ((_, mechanism),) = plan.releases[0].assignment.noise
    assert mechanism.largest_noise == bound

    def disclosed(largest):
        weights = np.exp(-epsilon * np.abs(np.arange(-largest, largest + 1)))
        p = weights / weights.sum()
        shifted, own = np.append(0.0, p), np.append(p, 0.0)
        return np.maximum(shifted - np.exp(epsilon) * own, 0).sum()

    assert disclosed(bound) <= delta * (1 + 1e-9)
    assert disclosed(bound - 1) > delta


def test_replaced_rows_and_people_in_several_cells_are_paid_for():
    for unit, query in [
        (tacit.rows(neighbours="replace-one"), asked()),
        (
            tacit.people("age", at_most=3),
            tacit.query(tacit.count(by="sex", of="people"), noise="bounded", **PRICE),
        ),
    ]:
        with make(unit) as curator:
            planned = curator.preview(query).releases[0]
        mechanism, moved = planned.assignment.noise[0].mechanism, planned.question.sensitivity
        steps = mechanism.sensitivity.steps(Fraction(1))
        assert steps * mechanism.moved_cells >= moved.l1
        assert mechanism.moved_cells == 1 or (mechanism.moved_cells >= moved.l1 and steps >= moved.linf)
        assert mechanism.bound.epsilon <= 1
        assert mechanism.bound.delta <= 1e-6
        assert mechanism.largest_noise > 14
    with make(tacit.rows(neighbours="replace-one")) as curator:
        assert curator.preview(asked()).releases[0].assignment.noise[0].mechanism.largest_noise == 27


def test_releases_stay_within_the_bound_and_have_the_law():
    """300 releases of two counts: none beyond A, and frequencies of q^|k| / Z within five standard deviations."""
    seen = []
    with make() as curator:
        for k in range(300):
            table = curator.release(asked(name=f"n{k}")).table
            seen += [int(table.value[0]) - 60, int(table.value[1]) - 40]
    assert max(map(abs, seen)) <= 14
    weights = np.exp(-np.abs(np.arange(-14, 15)))
    for k, share in zip(range(-14, 15), weights / weights.sum(), strict=True):
        spread = np.sqrt(len(seen) * share * (1 - share)) + 1
        assert abs(seen.count(k) - len(seen) * share) < 5 * spread


def test_a_certain_interval_and_a_shorter_one(tmp_path):
    with make(ledger=tmp_path / "a.ledger") as curator:
        certain = curator.release(asked(interval=1, name="certain"))
        again = curator.release(asked(interval=1, name="certain"))
        usual = curator.release(asked(name="usual"))
    assert again.replayed
    assert again.to_csv() == certain.to_csv()
    assert (certain.table.high - certain.table.value == 14).all()
    assert (usual.table.high - usual.table.value == 3).all(), "Pr[|X| <= 3] = 0.964 and Pr[|X| <= 2] = 0.90"
    assert certain.certificate["event"][0]["event"]["largest_noise"] == 14


def test_a_stored_choice_with_too_little_noise_is_noticed():
    with make(tacit.rows(neighbours="replace-one")) as curator:
        planned = curator.preview(asked()).releases[0]
    applied = planned.assignment.noise[0]
    less = [
        TruncatedDiscreteLaplace(epsilon=1, largest_noise=27, sensitivity=L1(1)),
        TruncatedDiscreteLaplace(epsilon=1, largest_noise=27, sensitivity=L1(1), moved_cells=1),
    ]
    assert calibrated(planned.assignment, planned.question)
    for mechanism in less:
        forged = replace(planned.assignment, noise=(applied._replace(mechanism=mechanism),))
        assert calibrated(forged, planned.question) is False
    two = TruncatedDiscreteLaplace(epsilon=1, largest_noise=27, sensitivity=L1(1), moved_cells=2)
    assert calibrated(replace(planned.assignment, noise=(applied._replace(mechanism=two),)), planned.question)


def test_several_releases_share_a_price_with_its_delta():
    with make() as curator:
        plan = curator.preview([tacit.query(tacit.count(by="sex"), noise="bounded"), tacit.count()], **PRICE)
    assert plan.charge.bound.epsilon <= 1
    assert plan.charge.bound.delta <= math.nextafter(1e-6, 1), "the price, rounded up"
    assert plan.releases[0].assignment.noise[0].mechanism.largest_noise == 25


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (lambda: asked(epsilon=1, delta=None), "epsilon and a delta"),
        (lambda: asked(epsilon=None, delta=None, rho=0.1), "epsilon and a delta"),
        (lambda: tacit.query(tacit.mean("age"), noise="bounded", **PRICE), "counts over declared keys"),
        (lambda: tacit.query(tacit.median("age"), noise="bounded", **PRICE), "counts over declared keys"),
        (lambda: tacit.query(tacit.count(), interval=1, **PRICE), "below 1"),
        (lambda: tacit.query(tacit.count(), noise="gaussian", **PRICE), "unknown noise"),
        (lambda: asked(given={"random_data": 0.05, "rows": 100}), "something is given"),
    ],
)
def test_what_is_refused(query, words):
    with pytest.raises(errors.TacitError, match=words), make() as curator:
        curator.preview(query())
