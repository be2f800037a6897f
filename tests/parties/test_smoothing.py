"""Theorem 4.2 in concrete numbers, and against finite mechanisms that a computer can enumerate."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import tacit
from tacit.errors import InvalidParameter, NoLaw
from tacit.parties import black_box_delta, smoothed, smoothed_delta, smoothed_delta_printed

ETA = 2.0**-128


@pytest.mark.parametrize(("d", "value"), [(1, 1.7e-8), (2, 1.1e-3)])
def test_the_printed_constants(d: int, value: float) -> None:
    found = smoothed_delta_printed(epsilon=1, advantage=ETA, dimension=d, error=10)
    assert float(f"{found:.1e}") == value


@pytest.mark.parametrize(("d", "value"), [(1, 1.8e-18), (2, 7.4e-12), (4, 1.3e-6)])
def test_integers_need_no_added_noise(d: int, value: float) -> None:
    found = smoothed_delta(epsilon=1, advantage=ETA, dimension=d, error=10)
    assert float(f"{found:.1e}") == value
    # The best cut for d = 1 in closed form: 2 sqrt(2 err eta) in the bracket, up to eta.
    if d == 1:
        assert found == pytest.approx((1 + math.e) * 2 * math.sqrt(20 * ETA), rel=1e-6)


def test_a_higher_moment_and_added_noise_help() -> None:
    base = smoothed_delta(epsilon=1, advantage=1e-20, dimension=2, error=10)
    assert smoothed_delta(epsilon=1, advantage=1e-20, dimension=2, error=20**4, moment=4) < base
    assert smoothed_delta(epsilon=1, advantage=1e-20, dimension=2, error=13, radius=3) < base
    assert smoothed_delta(epsilon=1, advantage=1e-20, dimension=2, error=10, delta=0.1) > 0.1
    assert smoothed_delta(epsilon=1, advantage=0.5, dimension=3, error=10) == 1.0


@pytest.mark.parametrize("radius", [0, 2])
def test_the_statement_on_enumerated_mechanisms(radius: int) -> None:
    """F differs from a private G by moves that every box sees with at most eta: F^ keeps the stated delta'."""
    n, epsilon = 400, 0.5
    x = np.arange(-n, n + 1)
    worst = 0.0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        laws = []
        for centre in (0, 1):
            g = np.exp(-epsilon * np.abs(x - centre))
            g /= g.sum()
            f = g + np.where(g > 1e-5, rng.choice([-1, 1], x.size) * g * 0.01, 0)
            f = np.maximum(f, 0) / f.sum()
            laws.append((f, g, centre))
        # Boxes are intervals here: their largest difference is that of the distribution functions.
        eta = max(np.ptp(np.cumsum(np.append(0.0, f - g))) for f, g, _ in laws)
        kernel = np.ones(2 * radius + 1) / (2 * radius + 1)
        (f0, f1) = (np.convolve(f, kernel) for f, _, _ in laws)
        y = np.arange(f0.size) - n - radius
        error = max(float((p * np.abs(y - c)).sum()) for p, c in ((f0, 0), (f1, 1)))
        stated = smoothed_delta(
            epsilon=epsilon, advantage=eta, dimension=1, error=error, radius=radius, delta=1e-9
        )
        reached = max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) for p, q in ((f0, f1), (f1, f0)))
        assert reached <= stated
        worst = max(worst, reached)
    assert worst > 0


def test_guarantees_lose_their_condition_by_the_theorem_only() -> None:
    condition = tacit.guarantees.BoundedAdversary(assumption="AES-256 holds", advantage=ETA)
    kept = tacit.Guarantee(bound=tacit.Pure(epsilon=1), unit=tacit.rows(), condition=condition)
    found = smoothed(kept, dimension=1, error=10)
    assert found.condition == tacit.guarantees.Always()
    assert float(found.bound.parameters["delta"]) == pytest.approx(1.8e-18, rel=0.02)
    other = tacit.guarantees.BoundedAdversary(assumption="AES-256 holds", advantage=ETA, definition="ind")
    with pytest.raises(NoLaw, match="open"):
        smoothed(
            tacit.Guarantee(bound=tacit.Pure(epsilon=1), unit=tacit.rows(), condition=other),
            dimension=1,
            error=1,
        )
    with pytest.raises(NoLaw):
        smoothed(tacit.Guarantee(bound=tacit.Pure(epsilon=1), unit=tacit.rows()), dimension=1, error=1)


def test_ind_does_not_give_sim_and_groups_keep_their_stand_in() -> None:
    ind, sim = (
        tacit.Guarantee(
            bound=tacit.Pure(epsilon=0.5), unit=tacit.rows(),
            condition=tacit.guarantees.BoundedAdversary(assumption="A", advantage=1e-9, definition=kind),
        )
        for kind in ("ind", "sim")
    )  # fmt: skip
    verdict = ind.implies(sim)
    assert not verdict
    assert "open" in verdict.reason
    assert sim.group(3).bound == tacit.Pure(epsilon=1.5)
    assert sim.group(3).condition == sim.condition
    found = ind.group(3)
    assert found.bound == tacit.Pure(epsilon=1.5)
    assert found.condition.advantage == pytest.approx(1e-9 * (math.expm1(1.5) / math.expm1(0.5)))


@pytest.mark.parametrize(
    "bad", [{"error": 0}, {"dimension": 0}, {"advantage": 2}, {"epsilon": -1}, {"spacing": 0}]
)
def test_bad_numbers(bad: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter):
        smoothed_delta(**{"epsilon": 1, "advantage": 1e-9, "dimension": 1, "error": 1} | bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="added noise"):
        smoothed_delta_printed(epsilon=1, advantage=0.5, dimension=3, error=0.1)


def best_inversion(bits: int, queries: int) -> float:
    """All functions on so few bits, all challenges: ask the first places, answer by a hit or by the next place."""
    size = 1 << bits
    right = 0
    for table in itertools.product(range(size), repeat=size):
        for u in range(size):
            right += table[u] in table[: queries + 1]
    return right / (size ** (size + 1))


@pytest.mark.parametrize(("bits", "queries"), [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2)])
def test_random_functions_are_inverted_as_often_as_stated(bits: int, queries: int) -> None:
    """By enumeration; (q + 1)/2^n, without the 2, would be too little."""
    found = best_inversion(bits, queries)
    assert found <= 2 * (queries + 1) / (2**bits - queries)
    assert queries >= 2**bits - 1 or found > (queries + 1) / 2**bits
    if 2 * (queries + 1) / (2**bits - queries) < 1:
        stated = black_box_delta(advantage=0.0, queries=queries, bits=bits, inverted=1.0)
        assert stated >= found


def test_an_oracle_replaced_by_a_random_function_costs_nothing() -> None:
    found = black_box_delta(advantage=2**-100, queries=2**64, bits=256, inverted=2**-64, delta=1e-9)
    assert found == pytest.approx(1e-9, rel=1e-9)
    assert found > 1e-9
    assert black_box_delta(advantage=0, queries=5, bits=3, inverted=0.5) == 1.0
    for bad in ({"queries": 8, "bits": 3}, {"inverted": 0.0}, {"bits": 0}, {"queries": -1}, {"advantage": 2}):
        with pytest.raises(InvalidParameter):
            black_box_delta(**{"advantage": 0.1, "queries": 1, "bits": 3, "inverted": 0.5} | bad)  # type: ignore[arg-type]
