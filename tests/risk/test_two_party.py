"""The two-party gap: the floor against enumerated protocols, steering ones among them, and what is simulated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.noise import DiscreteLaplace
from tacit.reproduce.risk_utility import make_two_party_gap as make
from tacit.reproduce.risk_utility import simulated_response
from tacit.risk import two_party_floor
from tacit.risk.minimax import curator_squared_error, response_squared_error


def points(n: int) -> np.ndarray:
    return np.array(list(itertools.product((-1, 1), repeat=n)), dtype=float)


def smooth(cube: np.ndarray, log_weights: np.ndarray, epsilon: float) -> np.ndarray:
    """A law whose neighbours' ratio is exactly e^epsilon at most: weights scaled to the largest step."""
    apart = np.abs(cube[:, None, :] - cube[None, :, :]).sum(axis=2) == 2
    step = np.abs(log_weights[:, None] - log_weights[None, :])[apart].max()
    weights = np.exp(log_weights * (epsilon / step if step else 0.0))
    return weights / weights.sum()


def least_error(cube: np.ndarray, p: np.ndarray, q: np.ndarray) -> float:
    """E Var(<x, y> | x) for independent x ~ p, y ~ q: what one party errs who knows its own bits."""
    products = cube @ cube.T
    means = products @ q
    return float(p @ ((products**2) @ q - means**2))


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("n", [2, 4])
def test_no_pair_of_open_laws_is_below_the_floor(n: int, epsilon: float) -> None:
    cube, rng, floor = points(n), np.random.default_rng(n), two_party_floor(rows=n, epsilon=epsilon)
    found = []
    for _ in range(300):
        p, q = (smooth(cube, rng.normal(size=2**n), epsilon) for _ in range(2))
        found.append(least_error(cube, p, q))
    # Steering: y is held near a hyperplane, x near its normal, with odds of e^epsilon.
    for ones in itertools.product((-1, 1), repeat=n):
        u = np.array(ones, dtype=float)
        for held in (-np.abs(cube @ u), -((cube @ u) ** 2)):
            found.append(least_error(cube, smooth(cube, cube @ u, epsilon), smooth(cube, held, epsilon)))
            found.append(least_error(cube, smooth(cube, held, epsilon), smooth(cube, held, epsilon)))
    assert min(found) >= floor
    tilt = math.tanh(epsilon / 2)
    assert floor == pytest.approx(n * (1 - tilt**2) ** 2)
    assert floor <= response_squared_error(rows=n, epsilon=epsilon)


def test_the_best_pair_is_near_for_small_epsilon() -> None:
    """Not a floor that nobody could reach: randomised response is within 1% at epsilon = 0.1."""
    assert response_squared_error(rows=100, epsilon=0.1) <= 1.01 * two_party_floor(rows=100, epsilon=0.1)


def test_what_is_simulated_is_what_is_computed() -> None:
    found = simulated_response(400, 1.0, 2000, 1) ** 2
    assert found == pytest.approx(response_squared_error(rows=400, epsilon=1.0), rel=6 * math.sqrt(2 / 2000))
    assert curator_squared_error(epsilon=1.0) == pytest.approx(DiscreteLaplace(noise_scale=2).variance)
    assert two_party_floor(rows=100, epsilon=1, hamming=True) == pytest.approx(
        two_party_floor(rows=100, epsilon=1) / 4
    )


def test_the_picture_has_the_floor_and_the_gap_grows() -> None:
    made = make()
    inner = [r for r in made.rows if r[0] == "inner product"]
    assert float(inner[-1][3]) / float(inner[-1][2]) > 50
    assert all(float(r[3]) <= float(r[4]) for r in made.rows)
    counts = [r for r in made.rows if r[0] == "count, k holders"]
    assert all(float(r[5]) == pytest.approx(math.sqrt(float(r[1])) * float(r[2])) for r in counts)


@pytest.mark.parametrize("bad", [{"rows": 0}, {"rows": 1.5}, {"epsilon": -1}, {"epsilon": math.nan}])
def test_bad_numbers(bad: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter):
        two_party_floor(**{"rows": 10, "epsilon": 1.0} | bad)  # type: ignore[arg-type]
