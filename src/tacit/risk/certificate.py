"""What a remap of the truncated geometric costs, and what no mechanism can go below: both certified.

For any prior on the counts, sum_y min_r sum_x prior(x) G(x, y) L(x, r) is a lower bound of the Bayes risk of
every epsilon-private mechanism, if L grows outwards (theorem `optimal-count-remap`), and so of the minimax
risk. For any other loss the same sum with the largest loss below it that grows outwards is one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tacit.exact.arrays import Floats
from tacit.risk.kernel import GeometricKernel, deflate, inflate
from tacit.risk.loss_functions import Loss

__all__ = ["Certificate", "bayes_floor", "best_outputs", "height_risks"]

SOLVED = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The risk of a mechanism (rounded up), what no mechanism can go below (rounded down), and the proof: a prior.

    `risk` is the largest expected loss over the counts (minimax), or the expected loss under the prior (Bayes).
    """

    criterion: str
    method: str
    risk: float
    lower_bound: float
    prior: Floats = field(repr=False, compare=False)
    theorem: str = "optimal-count-remap"

    @property
    def gap(self) -> float:
        """How far the mechanism can be from the best one, at most."""
        return max(0.0, self.risk - self.lower_bound)

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the risk."""
        return self.gap / self.risk if self.risk > 0 else 0.0

    @property
    def solved(self) -> bool:
        """Whether the gap is at most a millionth of the risk; otherwise the solver stopped early."""
        return self.relative_gap <= SOLVED


def height_risks(kernel: GeometricKernel, loss: Loss, h: Floats) -> Floats:
    """The expected loss at every count of the randomised rounding of h, rounded up."""
    values = kernel.risks(lambda rows: loss.between(rows, h))
    return np.asarray(inflate(1.0, kernel.n) * values)


def best_outputs(kernel: GeometricKernel, loss: Loss, prior: Floats) -> tuple[Floats, Floats]:
    """For each output y of the geometric the best thing to say, and the loss that is left: r(y), f_y(r(y))."""
    chosen, cost = np.empty(kernel.n + 1), np.empty(kernel.n + 1)
    x = np.arange(kernel.n + 1)
    table = None if loss.table is None else loss.minorant()
    for outputs, joint in kernel.joint(prior):
        if table is not None:
            every = joint @ table
            r = every.argmin(axis=1)
            chosen[outputs], cost[outputs] = r, every[np.arange(r.size), r]
            continue
        if loss.name == "zero-one":
            r = joint.argmax(axis=1)
        elif loss.name == "absolute":
            below = np.cumsum(joint, axis=1)
            r = (below < below[:, -1:] / 2).sum(axis=1)
        else:
            offset = x - outputs[:, None]
            total = joint.sum(axis=1)
            mean = (joint * offset).sum(axis=1) / np.where(total > 0, total, 1.0)
            r = np.clip(outputs + np.rint(mean), 0, kernel.n).astype(np.int64)
        r = np.minimum(r, kernel.n)
        chosen[outputs] = r
        cost[outputs] = (joint * loss.at(x, r[:, None])).sum(axis=1)
    return chosen, cost


def bayes_floor(kernel: GeometricKernel, loss: Loss, prior: Floats) -> float:
    """A lower bound of the Bayes risk under this prior, for every epsilon-private mechanism, rounded down.

    The float search for the median (or mean) can stop one place aside only where the two sides agree to
    within the rounding of their sums, and then both places cost the same up to that rounding.
    """
    scaled = prior / (prior.sum() * inflate(1.0, kernel.n))
    return max(0.0, deflate(float(best_outputs(kernel, loss, scaled)[1].sum()), 4 * kernel.n))
