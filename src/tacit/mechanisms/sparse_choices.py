"""What to keep of a sparse release, chosen after the noise: post-processing, at no further price.

Every choice looks at the released values only, which are those above the release's own threshold, its floor. Cells
below the floor were never made: of them the number is known, and the law that their noise has where they are empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.rationals import Exact, exact_parameter
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.sparse_keys import key_integers
from tacit.mechanisms.sparse_risk import Tails, tails

if TYPE_CHECKING:
    from tacit.mechanisms.sparse import SparseReleased

__all__ = ["SparseTable", "above", "by_estimated_risk", "by_false_discovery", "estimated_risks"]

Estimate = Literal["fitted", "unbiased"]
REACH = 45.0
STEPS_A_SCALE = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseTable:
    """Cells and their estimated counts; every other cell is 0. `choice` says how they were chosen."""

    keys: AnyArray
    values: npt.NDArray[Any]
    choice: str
    threshold: int
    publishable: bool
    details: Mapping[str, float] = field(default_factory=dict)

    @property
    def key_integers(self) -> npt.NDArray[Any]:
        """The keys as numbers: uint64, or Python integers beyond 2^64 cells."""
        return key_integers(self.keys)


def above(
    released: SparseReleased, threshold: int, *, choice: str = "threshold", **details: float
) -> SparseTable:
    """The cells with a noisy count above the threshold, which is at or above the release's own."""
    floor = released.mechanism.threshold
    if isinstance(threshold, bool) or not isinstance(threshold, int | np.integer) or threshold < floor:
        raise InvalidParameter(
            parameter="threshold", value=threshold, must=f"be an integer of at least {floor}",
            hint="cells below the release's own threshold were never made",
        )  # fmt: skip
    keep = np.asarray(released.values > threshold, dtype=np.bool_)
    return SparseTable(
        keys=released.keys[keep],
        values=released.values[keep],
        choice=choice,
        threshold=int(threshold),
        publishable=released.publishable,
        details=details,
    )


def by_false_discovery(released: SparseReleased, rate: Exact = 0.1) -> SparseTable:
    """Benjamini and Hochberg's threshold: the least t with p Pr[noise > t] <= rate * #{noisy count > t}.

    Of the kept cells a share of at most `rate` is expected to be empty, whatever the true counts are, since the
    noise of different cells is independent (theorem `false-discovery`). Not below the release's own threshold.
    """
    level = exact_parameter("rate", rate)
    if level >= 1:
        raise InvalidParameter(parameter="rate", value=rate, must="lie strictly between 0 and 1")
    mechanism, law = released.mechanism, tails(released.mechanism.noise)
    ordered = np.sort(released.values.astype(np.float64))
    # Between two released values the count is constant and the tail falls: t = value - 1 is the least of its kind.
    candidates = np.unique(np.append(ordered - 1, mechanism.threshold))
    passing = ordered.size - np.searchsorted(ordered, candidates, side="right")
    met = mechanism.cells * law.upper(candidates + 1) <= float(level) * passing
    threshold = int(candidates[int(np.argmax(met))]) if met.any() else int(candidates[-1]) + 1
    return above(released, threshold, choice="false discovery rate", rate=float(level))


def estimated_risks(
    released: SparseReleased, estimate: Estimate = "fitted"
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Thresholds, and an estimate of each one's sum of absolute errors, all less one common unknown constant.

    "fitted": the risk under a prior fitted to the released values (see shrinkage), for either noise. "unbiased", for
    Laplace noise with q = e^(-1/noise_scale): with D the second difference, x -> r(x) - q/(1-q)^2 Dr(x) has the
    expectation r(c) at c + noise, r the error of the threshold rule. Cells below the floor contribute
    x + 2 q^(t+1-x)/(1-q) each: the first term is the same for all t, and for the second its expectation over empty
    cells is taken (theorem `estimated-risk`). It is right on average and noisier: the fitted one chooses better.
    """
    if estimate not in ("fitted", "unbiased"):
        raise InvalidParameter(parameter="estimate", value=estimate, must="be fitted or unbiased")
    mechanism = released.mechanism
    law, floor = tails(mechanism.noise), mechanism.threshold
    step = max(1, int(law.scale / STEPS_A_SCALE))
    top = _quiet_level(law, mechanism.cells)
    thresholds = np.arange(floor, max(floor + 1, top + 1), step, dtype=np.int64)
    if estimate == "fitted":
        from tacit.mechanisms.shrinkage import fit

        return thresholds, fit(released).threshold_risks(thresholds)
    if not isinstance(mechanism.noise, Laplace):
        raise InvalidParameter(
            parameter="estimate", value=estimate, must="be fitted for Gaussian noise",
            hint="only the discrete Laplace law has a short inverse",
        )  # fmt: skip
    cap = int(thresholds[-1] + REACH * law.scale) + 2
    values, times = np.unique(np.minimum(released.values, cap).astype(np.int64), return_counts=True)
    missing = mechanism.cells - int(released.values.size)
    risks = np.array([_estimate(law, int(t), floor, values, times, missing) for t in thresholds])
    return thresholds, risks


def _estimate(law: Tails, t: int, floor: int, values: Any, times: Any, missing: int) -> float:
    q = float(np.exp(-law.rate))
    seen = float(((_unbiased(law, t, values) - values) * times).sum())
    last = min(floor, t - 1)
    # sum over z <= last of Pr[z] q^-z
    pieces = (max(last, 0) + q ** (2 * max(-last, 0)) / (1 - q * q)) * (1 - q) / (1 + q)
    unseen = pieces * 2 * q ** (t + 1) / (1 - q)
    if floor == t:
        unseen += float(law.probability(t) * (_unbiased(law, t, np.array([t]))[0] - t))
    below = float(1 - law.upper(floor + 1))
    return seen + missing * unseen / below


def _unbiased(law: Tails, t: int, x: Any) -> Floats:
    """r(x) - q/(1-q)^2 (r(x+1) - 2 r(x) + r(x-1))."""
    q = float(np.exp(-law.rate))
    here, right, left = (law.risk(t, np.asarray(x) + d) for d in (0, 1, -1))
    return np.asarray(here - q / (1 - q) ** 2 * (right - 2 * here + left))


def _quiet_level(law: Tails, cells: int) -> int:
    """A level that no empty cell's noise exceeds but with probability 1/1000: thresholds above it cannot help."""
    wanted = 1e-3 / cells
    low, high = 0, 1
    while float(law.upper(high + 1)) > wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if float(law.upper(middle + 1)) > wanted else (low, middle)
    return high


def by_estimated_risk(released: SparseReleased, estimate: Estimate = "fitted") -> SparseTable:
    """The threshold whose estimated sum of absolute errors is least."""
    thresholds, risks = estimated_risks(released, estimate)
    return above(
        released, int(thresholds[int(np.argmin(risks))]), choice=f"least estimated risk ({estimate})"
    )
