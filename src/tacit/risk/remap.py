"""Solve a count's problem in its compact form: remaps of the truncated geometric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.exact.arrays import Floats
from tacit.risk.certificate import Certificate, bayes_floor, best_outputs, height_risks
from tacit.risk.kernel import GeometricKernel, inflate
from tacit.risk.loss_functions import Loss

__all__ = ["FRACTION_BITS", "Remap", "bayes_remap", "minimax_remap", "zero_one_minimax"]

FRACTION_BITS = 32
UNIT = 1 << FRACTION_BITS
# Beyond these the range is cut: the minimax risk grows with n, so a shorter range gives a lower bound.
LONGEST_ABSOLUTE = 20_000
LONGEST_CONVEX = 1_200
LARGEST_EPSILON = 25.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Remap:
    """What is said after output y of the truncated geometric.

    `heights[y]` / 2^32 is rounded at random to one of its two neighbours, with itself as the mean; outputs
    in `choices` are replaced by a draw from integer weights over 0..n instead. None stands for saying y.
    """

    heights: tuple[int, ...] | None
    choices: tuple[tuple[int, tuple[int, ...]], ...] = ()

    @classmethod
    def of(cls, h: Floats) -> Remap:
        """The nearest heights with 32 bits after the point."""
        return cls(heights=tuple(round(v * UNIT) for v in h.tolist()))

    def floats(self, n: int) -> Floats:
        """The heights as floats, exactly."""
        if self.heights is None:
            return np.arange(n + 1, dtype=float)
        return np.array(self.heights, dtype=float) / UNIT


def bayes_remap(kernel: GeometricKernel, loss: Loss, prior: Floats) -> tuple[Remap, Certificate]:
    """The best mechanism for a prior: for each output the loss under the posterior is made smallest."""
    chosen, _ = best_outputs(kernel, loss, prior)
    risks = height_risks(kernel, loss, chosen)
    risk = inflate(float(risks @ prior), kernel.n)
    certificate = Certificate(
        criterion="bayes",
        method="posterior",
        risk=risk,
        lower_bound=min(risk, bayes_floor(kernel, loss, prior)),
        prior=prior,
    )
    return Remap.of(chosen), certificate


def minimax_remap(n: int, epsilon: float, loss: Loss, tolerance: float) -> tuple[Remap, Certificate]:
    """The mechanism with the smallest worst expected loss, for a convex loss that grows outwards."""
    longest = LONGEST_ABSOLUTE if loss.name == "absolute" and loss.table is None else LONGEST_CONVEX
    if n > longest and loss.table is None:
        return _long(n, epsilon, loss, tolerance, longest)
    kernel = GeometricKernel(n=n, epsilon=epsilon)
    if loss.name == "absolute" and loss.table is None:
        from tacit.risk.stretched import shorter_range, stretched_minimax

        shorter = shorter_range(n, epsilon)
        if shorter is not None:
            candidates, prior = stretched_minimax(n, shorter, epsilon, tolerance)
            method = f"interior point on 0..{shorter}, stretched"
            remap, certificate = _certified(kernel, loss, candidates, [prior], method)
            if certificate.solved:
                return remap, certificate
    heights, priors = [np.arange(n + 1, dtype=float)], [_peaked(kernel)]
    method = "peaked prior"
    if epsilon <= LARGEST_EPSILON:
        h, prior = _solve(n, epsilon, loss, tolerance)
        heights += [h, _snapped(h)]
        priors.append(prior)
        method = "interior point, compact form"
    return _certified(kernel, loss, heights, priors, method)


def _certified(
    kernel: GeometricKernel, loss: Loss, heights: list[Floats], priors: list[Floats], method: str
) -> tuple[Remap, Certificate]:
    """The best of these heights with the best of these proofs, both computed anew from what is used."""
    worst = [float(height_risks(kernel, loss, h).max()) for h in heights]
    floors = [bayes_floor(kernel, loss, prior) for prior in priors]
    best, proof = int(np.argmin(worst)), int(np.argmax(floors))
    remap = Remap.of(heights[best])
    risk = float(height_risks(kernel, loss, remap.floats(kernel.n)).max())
    certificate = Certificate(
        criterion="minimax",
        method=method,
        risk=risk,
        lower_bound=min(risk, floors[proof]),
        prior=priors[proof] / priors[proof].sum(),
    )
    return remap, certificate


def _solve(n: int, epsilon: float, loss: Loss, tolerance: float) -> tuple[Floats, Floats]:
    if loss.name == "absolute" and loss.table is None:
        from tacit.risk.interior import absolute_minimax, unfold

        return unfold(n, absolute_minimax(n, epsilon, tolerance))
    from tacit.risk.windows import convex_minimax

    return convex_minimax(n, epsilon, loss, tolerance)


def _snapped(h: Floats) -> Floats:
    """Heights within a hair of an integer are the integer: many are, and the solver only comes near."""
    near = np.rint(h)
    return np.where(np.abs(h - near) < 1e-4, near, h)


def _peaked(kernel: GeometricKernel) -> Floats:
    """A prior that falls by e^(-epsilon/2) from the middle: the least favourable one as epsilon grows."""
    prior = np.exp(-0.5 * kernel.epsilon * np.abs(np.arange(kernel.n + 1) - kernel.n / 2))
    return np.asarray(prior / prior.sum())


def _long(n: int, epsilon: float, loss: Loss, tolerance: float, longest: int) -> tuple[Remap, Certificate]:
    """A range too long to solve: the truncated geometric itself, against the floor of a shorter range."""
    # Beyond about 150/epsilon^2 counts the range no longer shows in the risk.
    cut = int(min(longest, max(500.0, 150 / epsilon**2)))
    _, proof = minimax_remap(cut, epsilon, loss, tolerance)
    risk = truncated_geometric_risk(n, epsilon, loss)
    certificate = Certificate(
        criterion="minimax",
        method=f"truncated geometric, against the range 0..{cut}",
        risk=risk,
        lower_bound=min(risk, proof.lower_bound),
        prior=proof.prior,
    )
    return Remap(heights=None), certificate


def truncated_geometric_risk(n: int, epsilon: float, loss: Loss) -> float:
    """The worst expected loss of the truncated geometric itself, rounded up; in closed form for named losses."""
    if loss.table is not None:
        return float(height_risks(GeometricKernel(n=n, epsilon=epsilon), loss, np.arange(n + 1.0)).max())
    if loss.name == "zero-one":
        value = 1 - np.tanh(epsilon / 2) if n > 1 else 1 / (1 + np.exp(epsilon))
        return inflate(float(2 / (1 + np.exp(epsilon)) if n > 1 else value), 4)
    if n <= LONGEST_CONVEX:
        return float(height_risks(GeometricKernel(n=n, epsilon=epsilon), loss, np.arange(n + 1.0)).max())
    if loss.name == "absolute":
        low, high = n // 2, n - n // 2
        inner = -np.expm1(-epsilon * low) - np.expm1(-epsilon * high)
        return inflate(float(inner / (2 * np.sinh(epsilon))), 8)
    # The untruncated variance; what truncation saves in the middle of a long range is far below a float.
    return inflate(float(1 / (2 * np.sinh(epsilon / 2) ** 2)), 8)


def zero_one_minimax(n: int, epsilon: float) -> tuple[Remap, Certificate]:
    """The mechanism that is most often right in the worst case, in closed form.

    With S = sum_x e^(epsilon min(x, n-x)) the best chance is (1-q)/(1+q) + 2q/((1+q) S): theorem
    `optimal-count-zero-one`. The end outputs 0 and n are spread inwards, output 0 to x with weight e^(epsilon x).
    """
    q = float(np.exp(-epsilon))
    depth = np.minimum(np.arange(n + 1), np.arange(n + 1)[::-1])
    # Divided by the largest term, so that nothing overflows.
    relative = np.exp(epsilon * (depth - depth.max()))
    inverse = float(np.exp(-epsilon * depth.max())) / float(relative.sum())
    miss = 2 * q / (1 + q) - 2 * q / (1 + q) * inverse
    if n == 1:
        miss = q / (1 + q)
    prior = relative / relative.sum()
    weights = np.where(np.arange(n + 1) <= n / 2, relative * 2 * q / relative.sum(), 0.0)
    if n % 2 == 0:
        weights[n // 2] /= 2
    weights[0] = 1 - weights[1:].sum()
    left = tuple(round(w * UNIT) for w in weights.tolist())
    choices = ((0, left), (n, left[::-1]))
    remap = Remap(heights=tuple(y * UNIT for y in range(n + 1)), choices=choices)
    worst = _zero_one_risk(n, epsilon, left)
    certificate = Certificate(
        criterion="minimax",
        method="closed form",
        risk=inflate(max(worst, miss), 8),
        lower_bound=miss * (1 - 2.0**-40),
        prior=np.asarray(prior),
        theorem="optimal-count-zero-one",
    )
    return remap, certificate


def _zero_one_risk(n: int, epsilon: float, left: tuple[int, ...]) -> float:
    """The worst chance of being wrong with the rounded weights."""
    q = np.exp(-epsilon)
    share = np.array(left, dtype=float) / sum(left)
    x = np.arange(n + 1)
    inner = np.where((x > 0) & (x < n), np.tanh(epsilon / 2), 0.0)
    right = inner + (np.exp(-epsilon * x) * share + np.exp(-epsilon * (n - x)) * share[::-1]) / (1 + q)
    return float(1 - right.min())
