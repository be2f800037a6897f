"""Optimal counts against the numbers they must reach, a second solver, and closed forms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tacit.risk import OptimalCount, OptimalFinite, equalizer, optimal_count, optimal_finite
from tacit.risk.certificate import GeometricKernel, Loss, bayes_floor, height_risks
from tacit.risk.count import path


def from_the_definition(table: np.ndarray, epsilon: float, prior: np.ndarray | None = None) -> float:
    """The full program written out anew, variable by variable: no code of the library."""
    states, outputs = table.shape
    size = states * outputs
    upper, right = [], []
    for x in range(states - 1):
        for r in range(outputs):
            for a, b in ((x, x + 1), (x + 1, x)):
                row = np.zeros(size + 1)
                row[a * outputs + r] = 1.0
                row[b * outputs + r] = -math.exp(epsilon)
                upper.append(row)
                right.append(0.0)
    equal = np.zeros((states, size + 1))
    for x in range(states):
        equal[x, x * outputs : (x + 1) * outputs] = 1.0
    cost = np.zeros(size + 1)
    if prior is None:
        cost[-1] = 1.0
        for x in range(states):
            row = np.zeros(size + 1)
            row[x * outputs : (x + 1) * outputs] = table[x]
            row[-1] = -1.0
            upper.append(row)
            right.append(0.0)
    else:
        cost[:size] = (prior[:, None] * table).ravel()
    found = linprog(cost, A_ub=np.array(upper), b_ub=right, A_eq=equal, b_eq=np.ones(states), method="highs")
    return float(found.fun)


def distances(n: int) -> np.ndarray:
    x = np.arange(n + 1)
    return np.abs(x[:, None] - x).astype(float)


# Minimax absolute-loss risks to be reached.
REACH = [
    (100, 0.1, 8.877793),
    (300, 0.03, 29.066484),
    (1000, 0.01, 88.838946),
    (1000, 1.0, 0.850918),
]


@pytest.mark.parametrize(("n", "epsilon", "risk"), REACH)
def test_minimax_absolute_risks(n: int, epsilon: float, risk: float) -> None:
    proof = optimal_count(n=n, epsilon=epsilon).certificate
    assert proof.risk == pytest.approx(risk, abs=6e-7 * max(1, risk / 10))
    assert proof.lower_bound <= proof.risk
    assert proof.relative_gap < 1e-6
    assert proof.solved


def test_minimax_squared_risk() -> None:
    proof = optimal_count(n=100, epsilon=0.1, loss="squared").certificate
    assert proof.risk == pytest.approx(149.486, abs=5e-4)
    assert proof.relative_gap < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon"), [(4_000, 0.01), (10_000, 0.1), (3_000, 1.0)])
def test_thousands_of_counts(n: int, epsilon: float) -> None:
    proof = optimal_count(n=n, epsilon=epsilon).certificate
    assert proof.relative_gap < 1e-6
    assert proof.risk < 1 / math.sinh(epsilon) * (1 + 1e-7)


def test_the_limit_of_long_ranges() -> None:
    for epsilon in (0.5, 1.0, 2.0):
        proof = optimal_count(n=400, epsilon=epsilon).certificate
        assert proof.risk == pytest.approx(1 / math.sinh(epsilon), rel=1e-6)
        assert proof.lower_bound == pytest.approx(1 / math.sinh(epsilon), rel=1e-6)


def test_the_risk_grows_with_the_range() -> None:
    risks = [optimal_count(n=n, epsilon=0.2).certificate for n in (1, 2, 3, 5, 8, 20, 41, 60)]
    assert all(a.risk <= b.risk for a, b in itertools.pairwise(risks))


@pytest.mark.parametrize("epsilon", [0.05, 0.4, 1.0, 3.0])
@pytest.mark.parametrize("n", [1, 2, 5, 12])
@pytest.mark.parametrize("loss", ["absolute", "squared", "zero-one"])
def test_minimax_agrees_with_the_definition(n: int, epsilon: float, loss: str) -> None:
    table = {
        "absolute": distances(n),
        "squared": distances(n) ** 2,
        "zero-one": (distances(n) > 0).astype(float),
    }
    proof = optimal_count(n=n, epsilon=epsilon, loss=loss).certificate
    exact = from_the_definition(table[loss], epsilon)
    # The solver of this check is exact to about 1e-6.
    assert proof.lower_bound <= exact * (1 + 2e-6)
    assert proof.risk >= exact * (1 - 2e-6)
    assert proof.relative_gap < 1e-6


@pytest.mark.parametrize("loss", ["absolute", "squared", "zero-one"])
def test_bayes_agrees_with_the_definition(loss: str) -> None:
    generator = np.random.default_rng(7)
    for n, epsilon in ((1, 0.3), (4, 1.0), (9, 0.2), (9, 2.0)):
        prior = generator.dirichlet(np.full(n + 1, 0.5))
        table = {"absolute": distances(n), "squared": distances(n) ** 2}.get(
            loss, (distances(n) > 0).astype(float)
        )
        proof = optimal_count(n=n, epsilon=epsilon, loss=loss, criterion="bayes", prior=prior).certificate
        exact = from_the_definition(table, epsilon, prior)
        assert proof.lower_bound <= exact + 2e-6
        assert proof.risk == pytest.approx(exact, abs=2e-6)


def test_losses_for_which_the_compact_form_is_wrong() -> None:
    x = np.arange(7)
    folded = np.abs(x[None, :] - np.abs(2 * x[:, None] - 6)).astype(float)
    found = optimal_count(n=6, epsilon=1.0, loss=folded)
    assert isinstance(found, OptimalFinite)
    assert found.certificate.method == "full linear program"
    assert found.certificate.risk == pytest.approx(1.1126, abs=5e-5)
    assert found.certificate.relative_gap < 1e-6
    x = np.arange(5)
    parity = np.abs(x[None, :] - 4 * (x[:, None] % 2)).astype(float)
    assert optimal_count(n=4, epsilon=1.0, loss=parity).certificate.risk == pytest.approx(1.076, abs=5e-4)


def test_a_loss_of_ones_own_in_compact_form() -> None:
    x = np.arange(21)
    over = np.where(x[None, :] > x[:, None], 3.0, 1.0) * distances(20)
    found = optimal_count(n=20, epsilon=0.4, loss=over)
    assert isinstance(found, OptimalCount)
    assert found.certificate.relative_gap < 1e-6
    assert found.certificate.risk == pytest.approx(from_the_definition(over, 0.4), rel=1e-6)
    capped = np.minimum(distances(8), 2.0)
    by_program = optimal_count(n=8, epsilon=0.4, loss=capped)
    assert isinstance(by_program, OptimalFinite)
    assert by_program.certificate.risk == pytest.approx(from_the_definition(capped, 0.4), rel=1e-7)


def test_delta_helps_and_tends_to_the_pure_risk() -> None:
    pure = optimal_count(n=10, epsilon=0.5).certificate.risk
    risks = [optimal_count(n=10, epsilon=0.5, delta=d).certificate for d in (1e-9, 1e-3, 1e-2)]
    assert pure + 1e-6 >= risks[0].risk > risks[1].risk > risks[2].risk
    assert risks[0].risk == pytest.approx(pure, abs=1e-6)
    assert all(c.relative_gap < 1e-6 for c in risks)
    # A delta that the solver cannot see must not spoil the mechanism.
    assert optimal_count(n=10, epsilon=0.5, delta=1e-15).certificate.risk == pytest.approx(pure, abs=1e-6)


def test_every_prior_is_a_lower_bound() -> None:
    """Even a silly prior must stay below the true minimax risk."""
    from tacit.risk.certificate import Loss, bayes_floor

    generator = np.random.default_rng(3)
    for n, epsilon in ((5, 0.3), (12, 1.0)):
        exact = from_the_definition(distances(n), epsilon)
        kernel = GeometricKernel(n=n, epsilon=epsilon)
        for _ in range(40):
            prior = generator.dirichlet(np.full(n + 1, generator.uniform(0.1, 2)))
            assert bayes_floor(kernel, Loss(name="absolute"), prior) <= exact + 1e-9


@given(n=st.integers(1, 60), log_epsilon=st.floats(-5, 3))
@settings(max_examples=40, deadline=None)
def test_the_gap_is_small_everywhere(n: int, log_epsilon: float) -> None:
    proof = optimal_count(n=n, epsilon=math.exp(log_epsilon)).certificate
    assert 0 <= proof.lower_bound <= proof.risk <= n / 2 * (1 + 1e-9)
    assert proof.relative_gap < 1e-6


def test_extremes() -> None:
    assert optimal_count(n=1, epsilon=50).certificate.risk == pytest.approx(1 / (1 + math.exp(50)), rel=1e-9)
    far = optimal_count(n=10**9, epsilon=1.0)
    assert far.certificate.risk == pytest.approx(1 / math.sinh(1), rel=1e-9)
    assert far.certificate.relative_gap < 1e-6
    assert 0 <= int(far.release(5 * 10**8).values) <= 10**9
    nothing = optimal_count(n=50, epsilon=1e-6).certificate
    assert nothing.risk == pytest.approx(25, rel=1e-4)
    assert nothing.relative_gap < 1e-4


def test_the_zero_one_closed_form() -> None:
    for n, epsilon in ((2, 0.5), (3, 0.5), (10, 1.0), (11, 0.1)):
        q = math.exp(-epsilon)
        centre = [q ** abs(x - n / 2) for x in range(n + 1)]
        best = 1 / sum(centre) if n % 2 == 0 else 2 * math.sqrt(q) / (1 + q) / sum(centre)
        proof = optimal_count(n=n, epsilon=epsilon, loss="zero-one").certificate
        assert 1 - proof.risk == pytest.approx(best, rel=1e-8)


def test_equalizer_rules() -> None:
    """Hall's claim holds for absolute loss wherever it is tried, and fails for squared loss."""
    for n, epsilon in ((3, 0.5), (10, 0.3), (15, 0.1)):
        found = equalizer(n=n, epsilon=epsilon)
        assert found.is_minimax
        spread = (found.matrix * distances(n)).sum(axis=1)
        assert spread.max() - spread.min() < 1e-6
    assert not equalizer(n=10, epsilon=0.3, loss="squared").is_minimax


def test_another_structure_than_a_path() -> None:
    """A cycle of five states, zero-one loss: the best is p = e^eps/(e^eps + 1 + ...) by distance."""
    epsilon = 0.7
    loss = 1 - np.eye(5)
    cycle = [(i, (i + 1) % 5) for i in range(5)]
    found = optimal_finite(loss=loss, neighbours=cycle, epsilon=epsilon)
    q = math.exp(-epsilon)
    assert 1 - found.certificate.risk == pytest.approx(1 / (1 + 2 * q + 2 * q * q), rel=1e-7)
    assert found.certificate.relative_gap < 1e-6
    assert path(3) == [(0, 1), (1, 2), (2, 3)]


def test_long_ranges_at_a_small_epsilon_are_stretched() -> None:
    """A shorter range is solved and stretched; the certificate is for the long one."""
    from tacit.risk.interior import absolute_minimax, unfold
    from tacit.risk.remap import shorter_range, stretched_minimax

    assert shorter_range(10_000, 0.001) == 5883
    assert shorter_range(10_000, 1e-6) == 500
    assert shorter_range(1000, 0.01) is None
    for n, e in ((2000, 1e-4), (701, 2e-6)):
        made = optimal_count(n=n, epsilon=e)
        assert "stretched" in made.certificate.method
        assert made.certificate.solved
        assert isinstance(made, OptimalCount)
        assert made.expected_error() == pytest.approx(made.certificate.risk, rel=1e-12)
    kernel, loss = GeometricKernel(n=1000, epsilon=0.002), Loss(name="absolute")
    direct = unfold(1000, absolute_minimax(1000, 0.002, 1e-7))
    floor = bayes_floor(kernel, loss, direct[1])
    heights, prior = stretched_minimax(1000, 600, 0.002, 1e-7)
    best = min(float(height_risks(kernel, loss, h).max()) for h in heights)
    assert floor <= best <= floor * (1 + 5e-6)
    assert (
        floor * (1 - 5e-6)
        <= bayes_floor(kernel, loss, prior)
        <= float(height_risks(kernel, loss, direct[0]).max())
    )
