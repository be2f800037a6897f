"""Exact laws, holes of floats, canaries, conditional claims and repeated answers."""

from __future__ import annotations

import itertools
import math
import random
import secrets
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.audit import (
    additive,
    canary_tail,
    distributional,
    finite,
    guess_audit,
    holes,
    random_data,
    repeated_answers,
    training,
)
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import Approximate, GaussianDP, Pure


def test_randomised_response_of_two_bits_exactly() -> None:
    def two(bits: tuple[int, int]) -> tuple[int, int]:
        return tuple(b if secrets.randbelow(3) else 1 - b for b in bits)  # type: ignore[return-value]

    (pair,) = finite(two, neighbours=[((0, 0), (0, 1))])
    assert pair.ratio() == 2
    assert sum(pair.first.values()) == 1
    assert pair.delta(0.0) == pytest.approx(1 / 3)
    (far,) = finite(two, neighbours=[((0, 0), (1, 1))])
    assert far.ratio() == 4
    assert far.epsilon == pytest.approx(math.log(4))


def test_finite_choices_of_every_kind() -> None:
    def drawn(x: int) -> tuple[object, ...]:
        return (
            random.choice("ab"),
            random.randint(1, 2),
            random.getrandbits(1),
            random.choices([0, 1], [1, 3])[0] ^ x,
        )

    (pair,) = finite(drawn, neighbours=[(0, 1)])
    assert len(pair.first) == 16
    assert pair.ratio() == 3
    with pytest.raises(InvalidParameter, match="finite"):
        finite(lambda x: random.random() + x, neighbours=[(0, 1)])


def test_a_support_that_tells_has_an_infinite_epsilon() -> None:
    (pair,) = finite(lambda x: x + secrets.randbelow(3), neighbours=[(0, 1)])
    assert pair.ratio() is None
    assert pair.delta(50.0) == pytest.approx(1 / 3)


def test_the_coupled_checker_agrees() -> None:
    """The same table as a mechanism of coupled worlds, where neighbours with known rest are the two inputs."""
    from tacit.guarantees import Profile

    def spin(x: int) -> int:
        return random.choices([0, 1, 2], [1, 2, 3] if x else [2, 2, 2])[0]

    (pair,) = finite(spin, neighbours=[(0, 1)])
    p, q = ([float(law[("i", (k,))]) for k in range(3)] for law in (pair.first, pair.second))
    curve = Profile.from_pair(p, q)
    for epsilon in (0.0, 0.2, 0.5):
        assert pair.delta(epsilon) == pytest.approx(curve.delta_at(epsilon), abs=1e-9)


def test_noise_on_a_grid() -> None:
    alpha = Fraction(1, 3)
    law = {k: (1 - alpha) / (1 + alpha) * alpha ** abs(k) for k in range(-40, 41)}
    law[0] += 1 - sum(law.values())
    cut = additive(law, sensitivity=1)
    assert cut.epsilon == math.inf, "the ends of a cut distribution tell"
    assert cut.delta(math.log(3)) < 1e-15
    assert additive({0: 1}, sensitivity=1).delta(9.0) == 1.0
    with pytest.raises(InvalidParameter):
        additive({0: 0.5}, sensitivity=1)


def test_holes_of_floats_and_of_grids() -> None:
    def inverse(k: int) -> float:
        return math.log((k + 1) / 2**20)

    assert holes(inverse, words=2**20, first=0.0, second=1.0).share > 0.3
    assert holes(lambda k: float(k - 512), words=1024, first=0.0, second=1.0, tried=256).impossible <= 1


def best_right(m: int, r: int, c: int, epsilon: float, delta: float) -> float:
    """P(at least c of r right) of independent responses that give themselves away with probability delta."""
    p = delta + (1 - delta) / (1 + math.exp(-epsilon))
    return sum(math.comb(r, j) * p**j * (1 - p) ** (r - j) for j in range(c, r + 1))


@pytest.mark.parametrize("right", [12, 15, 18, 20])
def test_the_tail_of_right_guesses_bounds_independent_responses(right: int) -> None:
    """audit-canaries: for pure epsilon exactly, with delta from above."""
    exact = best_right(20, 20, right, 1.0, 0.0)
    assert canary_tail(Pure(epsilon=1.0), canaries=20, guesses=20, right=right) == pytest.approx(
        exact, rel=1e-6
    )
    by_program = canary_tail(
        Approximate(epsilon=1.0, delta=1e-12), canaries=20, guesses=20, right=right, epsilons=(1.0,)
    )
    assert exact - 1e-9 <= by_program <= exact + 1e-6
    loose = canary_tail(Approximate(epsilon=1.0, delta=1e-3), canaries=20, guesses=20, right=right)
    assert best_right(20, 20, right, 1.0, 1e-3) <= loose <= exact + 20 * 1e-3 * 20


def test_the_inequality_of_the_theorem_for_an_enumerated_training() -> None:
    """audit-canaries: a noisy sum of three canaries, all coins and noises enumerated, the best guesses of two."""
    noise = {k: Fraction(1, 5) for k in range(-2, 3)}
    laws: dict[int, dict[tuple[int, ...], Fraction]] = {}
    for coins in itertools.product((0, 1), repeat=3):
        for k, chance in noise.items():
            laws.setdefault(sum(coins) + k, {}).setdefault(coins, Fraction(0))
            laws[sum(coins) + k][coins] += chance / 8
    right = dict.fromkeys(range(3), Fraction(0))
    for output, by_coins in laws.items():
        guess = (1, 1) if output >= 2 else (0, 0)
        for coins, chance in by_coins.items():
            right[sum(g == c for g, c in zip(guess, coins, strict=False))] += chance
    delta_of = additive(noise, sensitivity=1)
    for epsilon in (0.0, 0.3, 1.0):
        left = sum(
            max(0.0, (j + 1) * right[j + 1] - math.exp(epsilon) * (2 - j) * right[j]) for j in range(2)
        )
        assert left <= 3 * delta_of.delta(epsilon) + 1e-12
    assert float(right[2]) <= canary_tail(
        Approximate(epsilon=0.0, delta=delta_of.delta(0.0)), canaries=3, guesses=2, right=2, epsilons=(0.0,)
    )


def test_more_right_guesses_and_weaker_claims_move_the_tail_the_right_way() -> None:
    tails = [canary_tail(GaussianDP(mu=0.5), canaries=200, guesses=50, right=c) for c in (25, 35, 40, 45)]
    assert tails == sorted(tails, reverse=True)
    assert tails[-1] < 0.03
    weaker = [canary_tail(GaussianDP(mu=mu), canaries=200, guesses=50, right=40) for mu in (0.3, 0.6, 1.2)]
    assert weaker == sorted(weaker)


class Memory:
    """A model that knows its training examples by heart."""

    def __init__(self, rows: np.ndarray, targets: np.ndarray) -> None:
        self.known = {tuple(r): t for r, t in zip(rows.tolist(), targets.tolist(), strict=True)}

    def predict(self, rows: np.ndarray) -> np.ndarray:
        return np.array([self.known.get(tuple(r), 0.0) for r in rows.tolist()])


def test_one_training_run_with_canaries() -> None:
    rng = np.random.default_rng(4)
    rows, targets = rng.normal(size=(50, 2)), rng.normal(size=50)
    canaries = rng.normal(size=(80, 2)) + 50, np.full(80, 7.0)
    coins = np.random.default_rng(5)
    found = training(
        Memory, rows, targets, canaries=canaries, claim="epsilon=1", coins=lambda n: coins.integers(0, 2, n)
    )
    assert found.rejected
    assert found.right == found.guesses == 20
    assert found.lower > 1.0
    assert "could not have seen" in found.lines()[-1]
    blind = training(
        lambda x, y: Memory(x[:0], y[:0]), rows, targets, canaries=canaries, claim="epsilon=1, delta=1e-6",
        coins=lambda n: coins.integers(0, 2, n),
    )  # fmt: skip
    assert not blind.rejected


def test_scores_and_coins_must_fit() -> None:
    with pytest.raises(InvalidInput):
        guess_audit([1, 2], [0], claim="epsilon=1", guesses=1)
    with pytest.raises(InvalidInput):
        guess_audit([1.0, 2.0], [0, 3], claim="epsilon=1", guesses=1)
    with pytest.raises(InvalidInput):
        canary_tail(Pure(epsilon=1.0), canaries=3, guesses=4, right=1)


def test_the_share_of_data_sets_on_which_a_claim_fails() -> None:
    rng = np.random.default_rng(1)
    coins = np.random.default_rng(2)

    def sample() -> tuple[object, object]:
        return (("bad", 0), ("bad", 1)) if rng.random() < 0.5 else (("good", 0), ("good", 1))

    def run(x: tuple[str, int]) -> int:
        return x[1] if x[0] == "bad" else int(rng.integers(0, 2))

    found = random_data(
        run, sample, epsilon=1.0, gamma=0.05, samples=12, outputs=120, coins=lambda n: coins.integers(0, 2, n)
    )
    assert found.rejected
    assert 0.05 < found.lower < 0.5
    fine = random_data(
        lambda x: int(rng.integers(0, 2)), sample, epsilon=1.0, gamma=0.05, samples=3, outputs=80,
        coins=lambda n: coins.integers(0, 2, n),
    )  # fmt: skip
    assert not fine.rejected
    assert fine.lower == 0.0


def test_distributional_claims_against_every_simulator() -> None:
    """A sum of 4 fair bits without noise is far from any simulator; among 400 it is hidden."""
    rng = np.random.default_rng(3)
    coins = np.random.default_rng(4)

    def audit(n: int) -> bool:
        return distributional(
            lambda rows: int(sum(rows)), lambda: rng.integers(0, 2, n).tolist(), values=(0, 1),
            fresh=lambda: int(rng.integers(0, 2)), epsilon=0.3, outputs=1000, coins=lambda k: coins.integers(0, 2, k),
        ).rejected  # fmt: skip

    assert audit(4)
    assert not audit(400)


@pytest.mark.parametrize(("noise", "true"), [("laplace", 0.5), ("gaussian", 0.5)])
def test_repeated_answers_cover_the_truth(noise: str, true: float) -> None:
    rng = np.random.default_rng(8)
    inside = 0
    for _ in range(300):
        draws = rng.laplace(scale=2.0, size=40) if noise == "laplace" else rng.normal(scale=2.0, size=40)
        found = repeated_answers(100 + draws, sensitivity=1.0, noise=noise, confidence=0.9)
        inside += found.value[0] <= true <= found.value[1]
    assert 0.85 <= inside / 300 <= 0.95


def test_answers_that_never_differ() -> None:
    found = repeated_answers([3, 3, 3, 3], sensitivity=1)
    assert "equal" in found.lines()[0]
    with pytest.raises(InvalidInput):
        repeated_answers([1, 2], sensitivity=1)
    with pytest.raises(InvalidInput):
        repeated_answers([1, 2, 3, 4], sensitivity=1, noise="cauchy")


def test_canaries_in_models_of_others_and_of_our_own() -> None:
    """A canary has a column of its own: a model without noise knows each of them, one with noise does not."""
    from sklearn.linear_model import LogisticRegression

    from tacit import PrivateLogisticRegression
    from tacit.functions.models import PublicBox
    from tacit.noise.source import SeededSource

    many, rng = 40, np.random.default_rng(6)
    rows, targets = np.zeros((300, many)), rng.integers(0, 2, 300)
    canaries = np.eye(many), np.ones(many, dtype=int)

    def audit(make: Any, claim: str) -> Any:
        coins = np.random.default_rng(7)
        return training(
            lambda x, y: make().fit(x, y), rows, targets, canaries=canaries, claim=claim, guesses=16,
            coins=lambda n: coins.integers(0, 2, n),
        )  # fmt: skip

    plain = audit(lambda: LogisticRegression(C=1e3), "epsilon=1")
    assert plain.rejected
    assert plain.right == 16

    def private() -> Any:
        return PrivateLogisticRegression(
            1.0, 1e-6, domain=PublicBox(low=0, high=1), classes=[0, 1], neighbours="add-or-remove",
            source=SeededSource(seed=8),
        )  # fmt: skip

    ours = audit(private, "epsilon=1, delta=1e-6")
    assert not ours.rejected
    assert ours.right < 16
