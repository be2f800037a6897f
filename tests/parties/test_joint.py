"""Joint releases: the law of the joint numbers, charges, intervals, certificates, bad input."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.errors import InvalidParameter, JointRefused, NoLaw
from tacit.noise import DiscreteLaplace, SeededSource
from tacit.parties import Joint, JointPolya, JointSkellam, Sizes, Wire, joint_release

SCHEMA = {"state": tacit.category(["a", "b", "c"]), "age": tacit.integer(0, 90)}


def table(seed: int, rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"state": rng.choice(["a", "b", "c"], rows), "age": rng.integers(0, 91, rows)})


def curator(seed: int, *, epsilon: float = 10, schema: dict | None = None, **more: object) -> tacit.Curator:
    return tacit.Curator(
        table(seed), protect=tacit.rows(), schema=schema or SCHEMA, budget=tacit.Pure(epsilon=epsilon),
        table=f"t{seed}", **more,
    )  # fmt: skip


def sizes(**more: int) -> Sizes:
    return Sizes(**{"holders": 4, "fewest": 3, "colluding": 1, "appearances": 1} | more)


def test_counts_means_and_charges() -> None:
    holders = [curator(i, epsilon=2) for i in range(4)]
    asked = [tacit.count(by="state"), tacit.mean("age"), tacit.histogram("age", 3)]
    found = joint_release(holders, asked, fewest=3, colluding=1, appearances=1, epsilon=1.5)
    pooled = pd.concat([table(i) for i in range(4)])
    count = found[0].table.set_index("state")
    truth = pooled.state.value_counts()
    assert (np.abs(count["value"] - truth[count.index]) < 60).all()
    assert (count["high"] - count["low"] > 5).all()
    assert found[1].value == pytest.approx(pooled.age.mean(), abs=6)
    assert all(c.spent == tacit.Pure(epsilon=1.5) for c in holders)
    with pytest.raises(JointRefused, match=r"0 holders sent"):
        joint_release(holders, asked, fewest=3, colluding=1, appearances=1, epsilon=1.5)
    assert all(c.spent == tacit.Pure(epsilon=1.5) for c in holders)


def test_a_holder_that_cannot_pay_is_gone_and_its_ledger_untouched() -> None:
    holders = [curator(i, epsilon=0.5 if i == 2 else 2) for i in range(4)]
    wire = Wire()
    (found,) = joint_release(
        holders, tacit.count(), fewest=3, colluding=0, epsilon=1, appearances=1, wire=wire
    )
    assert found.certificate["data"]["joint"]["remaining"] == [0, 1, 3]
    assert any("does not cover it" in told for told in wire.told)
    assert [str(c.spent) for c in holders] == ["epsilon = 1", "epsilon = 1", "epsilon = 0", "epsilon = 1"]


def test_the_noise_of_exactly_s_left_is_the_curators_law(p_of) -> None:
    """c = 0, s = n, each in one holder: what three holders draw together is discrete Laplace noise."""
    joint = Joint.of(
        tacit.count(), schema=SCHEMA, protect=tacit.rows(), epsilon=0.5,
        sizes=Sizes(holders=3, fewest=3, colluding=0, appearances=1),
    )  # fmt: skip
    (planned,) = joint.plan(tacit.Pure(epsilon=1)).releases
    noise = planned.assignment.noise[0].mechanism
    source, draws = SeededSource(seed=4), 200_000
    zeros = np.zeros(draws, dtype=np.int64)
    total = sum(noise.release_cells(zeros, source=source) for _ in range(3))
    k = np.arange(-40, 41)
    expected = math.tanh(0.25) * np.exp(-0.5 * np.abs(k)) * draws
    observed = np.array([(total == x).sum() for x in k])
    assert p_of(observed, expected) > 1e-9
    assert noise.variance == pytest.approx(DiscreteLaplace(noise_scale=2).variance)
    assert noise.steps_within(Fraction(95, 100)) == DiscreteLaplace(noise_scale=2).error_bound(
        confidence=0.95
    )
    assert planned.assignment.pure() == Fraction(1, 2)


@pytest.mark.parametrize(("scale", "remaining"), [(2, 4), (40, 9), (5000, 5), (0.4, 3)])
def test_intervals_know_the_larger_noise(scale: float, remaining: int) -> None:
    noise = JointPolya(honest=3, remaining=remaining, steps=1, noise_scale=Fraction(scale))
    source, draws = SeededSource(seed=1), 40_000
    total = sum(noise.share.sample(size=draws, source=source) for _ in range(remaining))
    t = noise.steps_within(Fraction(9, 10))
    assert np.mean(np.abs(total) > t) <= 0.1 + 0.01
    assert np.mean(np.abs(total) > 0.93 * t - 1) >= 0.1 - 0.01
    assert noise.step_error() == pytest.approx(np.abs(total).mean(), rel=0.04)
    margin = noise.pivot([noise, noise])
    other = sum(noise.share.sample(size=draws, source=source) for _ in range(remaining))
    inside = margin([np.full(draws, 0.3), np.full(draws, 0.7)], 0.3 * total - 0.7 * other, 0.9)
    assert np.mean(inside >= 0) >= 0.89


def test_skellam_wins_for_many_cells_and_keeps_its_price() -> None:
    wide = {"x": tacit.integer(0, 199), **{f"f{i}": tacit.flag() for i in range(30)}}
    joint = Joint.of(
        tacit.margins([f"f{i}" for i in range(30)]), schema=wide, protect=tacit.rows(), sizes=sizes(),
        epsilon=1, delta=1e-6,
    )  # fmt: skip
    (planned,) = joint.plan(tacit.Approximate(epsilon=1, delta=1e-6)).releases
    noise = planned.assignment.noise[0].mechanism
    assert isinstance(noise, JointSkellam)
    from tacit.accounting import account

    assert account(noise.event, delta=1e-6).epsilon.high <= 1
    source, draws = SeededSource(seed=1), 20_000
    total = sum(noise.share.sample(size=draws, source=source) for _ in range(4))
    assert np.mean(np.abs(total) > noise.steps_within(Fraction(9, 10))) <= 0.11
    assert float(planned.guarantee.bound.delta) == pytest.approx(1e-6, rel=1e-12)


def test_appearances_multiply_the_sensitivity() -> None:
    one, all_ = (
        Joint.of(tacit.count(), schema=SCHEMA, protect=tacit.rows(), sizes=sizes(appearances=k), epsilon=1)
        for k in (1, 4)
    )
    scales = [
        j.plan(tacit.Pure(epsilon=1)).releases[0].assignment.noise[0].mechanism.noise_scale
        for j in (one, all_)
    ]
    assert scales == [1, 4]
    assert sizes(appearances=0).appearances == 4
    assert "4/2" in str(all_)


def test_the_certificate_says_what_it_rests_on() -> None:
    (found,) = joint_release(
        [curator(i) for i in range(3)], tacit.count(), fewest=2, colluding=1, epsilon=1, appearances=1
    )
    said = found.certificate
    assert "X25519" in said["condition"]
    assert said["data"]["joint"]["remaining"] == [0, 1, 2]
    assert {"polya-shares", "honest-survivors", "secure-sum"} <= set(said["theorems"])
    assert said["publishable"]
    seeded = [curator(i, source=SeededSource(seed=i)) for i in range(3)]
    (test,) = joint_release(seeded, tacit.count(), fewest=2, colluding=1, epsilon=1, appearances=1)
    assert not test.publishable


def test_schemas_that_differ_by_one_bound() -> None:
    other = {**SCHEMA, "age": tacit.integer(0, 91)}
    with pytest.raises(InvalidParameter, match=r"age"):
        joint_release(
            [curator(0), curator(1, schema=other)],
            tacit.count(),
            fewest=2,
            colluding=0,
            epsilon=1,
            appearances=1,
        )


def test_a_version_that_changes_between_rounds() -> None:
    holders = [curator(i, version="2026") for i in range(3)]

    def carry(stage: str, i: int, raw: bytes) -> list[bytes]:
        if stage == "shares":
            holders[0].version = "2027"
        return [raw]

    with pytest.raises(InvalidParameter, match="version"):
        joint_release(
            holders, tacit.count(), fewest=2, colluding=1, epsilon=1, appearances=1, wire=Wire(carry=carry)
        )
    assert holders[0].spent == tacit.Pure(epsilon=0)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (tacit.median("age"), NoLaw),
        (tacit.count(by="town"), NoLaw),
        (tacit.query(tacit.mean("age"), sampling=True), NoLaw),
        ([tacit.query(tacit.count(), agree=True)] * 2, NoLaw),
        ([], Exception),
    ],
)
def test_what_does_not_add_up_is_refused(asked: object, error: type[Exception]) -> None:
    schema = {**SCHEMA, "town": tacit.category()}
    with pytest.raises(error):
        Joint.of(asked, schema=schema, protect=tacit.rows(), sizes=sizes(), epsilon=1, delta=1e-6)  # type: ignore[arg-type]


def test_numbers_that_do_not_fit_the_field() -> None:
    with pytest.raises(InvalidParameter, match="leave room"):
        Joint.of(
            tacit.sum("age"), schema=SCHEMA, protect=tacit.rows(), sizes=sizes(), epsilon=1, most_rows=1 << 60
        )
    with pytest.raises(InvalidParameter, match="no default price"):
        Joint.of(tacit.count(), schema=SCHEMA, protect=tacit.rows(), sizes=sizes())
    with pytest.raises(InvalidParameter):
        joint_release([curator(0)], tacit.count(), fewest=1, colluding=0, epsilon=1)
    with pytest.raises(InvalidParameter, match="graph_delta"):
        Joint.of(
            tacit.count(), schema=SCHEMA, protect=tacit.rows(), epsilon=1,
            sizes=Sizes(holders=201, fewest=200, colluding=60),
        )  # fmt: skip
