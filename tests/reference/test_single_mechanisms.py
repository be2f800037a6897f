"""Published values of single mechanisms: profiles, conversions, divergences and calibrations.

The rows (see ../shared/data/accountants) come from the test suites of public libraries; each says where
it was published, and how closely it is to agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import tacit
from support.shared import reference_rows
from tacit.pld import (
    DiscreteLaplacePair,
    FinitePair,
    GaussianPair,
    LaplacePair,
    MixturePair,
    Pair,
    PoissonSampledPair,
    RandomizedResponsePair,
    SampledReplacementPair,
)

ROWS = reference_rows()
GROUPS = {"profile_single", "calibration_single", "zcdp_to_dp", "rdp_to_dp"}
SINGLE = [r for r in ROWS if r["group"] in GROUPS]
RESPONSE = [r for r in ROWS if r["mechanism"] == "randomized_response"]
needs_rows = pytest.mark.skipif(
    not ROWS, reason="needs ../shared/data/accountants, not part of a plain clone"
)


def agrees(row: dict[str, Any], value: float) -> None:
    tolerance = row["tolerance"]
    assert value == pytest.approx(
        row["expected"], abs=tolerance.get("abs", 0.0) or 0.0, rel=tolerance.get("rel", 0.0) or 0.0
    ), row


def truncated_discrete_gaussian(noise: float, sensitivity: int, bound: int) -> Pair:
    """The library's own law: weights exp(-x^2/2 sigma^2) on [-bound, bound], one copy shifted."""
    weights = {x: math.exp(-(x**2) / (2 * noise**2)) for x in range(-bound, bound + 1)}
    total = math.fsum(weights.values())
    support = range(-bound, bound + sensitivity + 1)
    p = [weights.get(x - sensitivity, 0.0) / total for x in support]
    q = [weights.get(x, 0.0) / total for x in support]
    return FinitePair(p=tuple(p), q=tuple(q))


def pair_of(row: dict[str, Any], noise: float) -> Pair:
    """The removal pair of the row's mechanism, or its swap for additions."""
    params = row["params"]
    rate = params.get("sampling_prob", 1.0)
    step = params.get("sensitivity")
    base: Pair
    match row["mechanism"]:
        case "gaussian":
            if params["adjacency_type"] == "REPLACE":
                return SampledReplacementPair(mu=step / noise, rate=rate)
            base = GaussianPair(mu=step / noise)
        case "laplace":
            base = LaplacePair(epsilon=step / noise)
        case "discrete_laplace":
            base = DiscreteLaplacePair(rate=noise, sensitivity=step)
        case "discrete_gaussian":
            base = truncated_discrete_gaussian(noise, step, params["truncation_bound"])
        case "mixture_of_gaussians":
            scale = params["standard_deviation"]
            base = MixturePair(
                shifts=tuple(s / scale for s in params["sensitivities"]),
                weights=tuple(params["sampling_probs"]),
            )
        case other:
            raise AssertionError(other)
    removal = PoissonSampledPair(pair=base, rate=rate) if rate < 1 else base
    return removal.swapped() if params["adjacency_type"] == "ADD" else removal


def smallest(noise_to_delta: Callable[[float], float], delta: float) -> float:
    low, high = 1e-3, 1e3
    while high - low > 1e-6 * high:
        middle = math.sqrt(low * high)
        if noise_to_delta(middle) <= delta:
            high = middle
        else:
            low = middle
    return high


@needs_rows
@pytest.mark.parametrize("row", SINGLE, ids=[f"{r['group']}-{r['id']}" for r in SINGLE])
def test_row(row: dict[str, Any]) -> None:
    if row["group"] == "zcdp_to_dp":
        bound = tacit.Concentrated(rho=row["params"]["rho"])
        agrees(
            row, bound.delta(row["epsilon"]) if row["quantity"] == "delta" else bound.epsilon(row["delta"])
        )
    elif row["group"] == "rdp_to_dp":
        mu = 1 / row["params"]["sigma"]
        curve = tacit.convert(
            tacit.GaussianDP(mu=mu), tacit.Renyi, orders=tuple(1 + 0.01 * i for i in range(2000, 5000, 1))
        )
        agrees(row, curve.epsilon(row["delta"]))
    elif row["group"] == "calibration_single":
        epsilon, delta = row["epsilon"], row["delta"]
        agrees(row, smallest(lambda noise: pair_of(row, noise).hockey_stick(epsilon).high, delta))
        if row["params"]["sampling_prob"] == 1.0:
            steps = 2 if row["params"]["adjacency_type"] == "REPLACE" else 1
            exact = (
                steps * row["params"]["sensitivity"] / tacit.gaussian_budget(epsilon=epsilon, delta=delta).mu
            )
            agrees(row, exact)
    else:
        noise = row["params"].get("noise", 1.0)
        found = pair_of(row, noise).hockey_stick(row["epsilon"])
        assert found.low <= found.high
        agrees(row, found.low)
        agrees(row, found.high)


@needs_rows
@pytest.mark.parametrize("row", RESPONSE, ids=[r["id"] for r in RESPONSE])
def test_randomised_response(row: dict[str, Any]) -> None:
    """The library keeps the answer with probability 1 - noise, and else draws one of the k at random."""
    noise, k = row["params"]["noise_parameter"], row["params"]["num_buckets"]
    top, low = 1 - noise + noise / k, noise / k
    order = row["params"]["order"]
    order = math.inf if order in ("inf", "Infinity", None) else float(order)
    if row["params"]["neighboring"] == "REPLACE_ONE":
        agrees(row, RandomizedResponsePair(epsilon=math.log(top / low), categories=k).renyi(order))
    else:  # against a uniform answer, in the worse direction
        told, uniform = (top, *(low,) * (k - 1)), (1 / k,) * k
        pair = FinitePair(p=told, q=uniform)
        agrees(row, max(pair.renyi(order), pair.swapped().renyi(order)))


@needs_rows
def test_all_single_rows_are_covered() -> None:
    assert len(SINGLE) == 120 + 11 + 3 + 1
