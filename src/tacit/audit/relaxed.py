"""Audits of relaxed guarantees, and of a system that is known by its answers alone.

Random differential privacy may fail on a share gamma of data sets: many data sets are drawn, each is audited, and the
number of rejections bounds the share. Distributional privacy compares with a simulator that does not see the row:
if two values of a row are epsilon-close to one simulator, they are 2 epsilon-close to each other, so half of a
lower bound for the two values holds against every simulator. Repeated answers of a system show its noise, and with
the sensitivity its epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from tacit.audit.answers import MechanismAudit
from tacit.audit.black_box import system_coins
from tacit.audit.claimed import claim_of
from tacit.audit.house import checked_level, mechanism
from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.arrays import Floats, Integers
from tacit.exact.checks import positive, probability, whole
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Pure

NOISES = ("gaussian", "laplace")


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomDataAudit:
    """The answer for random differential privacy."""

    epsilon: float
    gamma: float
    level: float
    samples: int
    rejections: int
    lower: float
    """The share of data sets on which the claim fails is above this, with confidence 1 - level."""

    @property
    def rejected(self) -> bool:
        """Is the claimed gamma rejected?"""
        return self.lower > self.gamma

    def lines(self) -> list[str]:
        """The answer in sentences."""
        verdict = "rejected" if self.rejected else "not rejected"
        return [
            f"{verdict}: epsilon = {self.epsilon:g} except on a share {self.gamma:g} of data sets"
            f" (level {self.level:g})",
            f"{self.rejections} of {self.samples} sampled data sets were rejected;"
            f" the share is above {self.lower:.3g} with confidence {1 - self.level:g}",
            f"the audit could not have seen: a share below {_least_share(self.samples, self.level):.2g}, and what"
            " its audit of each data set could not see",
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "rejected": self.rejected, "sentences": self.lines()}


def _least_share(samples: int, level: float) -> float:
    """The share that shows in at least two of this many samples with 80% power."""
    return min(1.0, (3.0 + math.log(1 / level)) / samples)


def random_data(
    f: Callable[[Any], Any],
    sample: Callable[[], tuple[Any, Any]],
    *,
    epsilon: float,
    gamma: float,
    level: float = 0.05,
    samples: int = 100,
    outputs: int = 500,
    coins: Callable[[int], Integers] = system_coins,
) -> RandomDataAudit:
    """Audit "epsilon-private except on a share gamma of data sets": `sample()` gives a random data set and a
    neighbour.

    Each data set is audited at a level of its own, a fifth of gamma (at most a hundredth). If the claim is true, each
    data set is rejected, independently of the others, with probability at most gamma plus that level. A binomial lower
    limit for the frequency of rejections, less that level, is therefore a lower bound on gamma.
    """
    level, gamma = checked_level(level), probability("gamma", gamma)
    n = whole("samples", samples)
    own = min(0.01, max(gamma / 5, 1e-4))
    claim = claim_of(Pure(epsilon=epsilon))
    rejections = 0
    for _ in range(n):
        pair = sample()
        found = mechanism(
            f, claim=claim, neighbours=[pair], level=own, outputs=outputs, seconds=3600.0, coins=coins
        )
        rejections += found.rejected
    lower = max(0.0, _binomial_lower(rejections, n, level) - own)
    return RandomDataAudit(
        epsilon=float(epsilon), gamma=gamma, level=level, samples=n, rejections=rejections, lower=lower
    )


def _binomial_lower(k: int, n: int, level: float) -> float:
    """Clopper and Pearson's lower limit for a share."""
    if k == 0:
        return 0.0
    from scipy.special import betaincinv

    return float(betaincinv(k, n - k + 1, level))


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionalAudit:
    """The answer for privacy against a simulator."""

    between: MechanismAudit
    """The two values of the row against each other, at twice the claimed epsilon."""
    simulated: MechanismAudit
    """One value against the simulator with a fresh row, at the claimed epsilon."""

    @property
    def rejected(self) -> bool:
        """Is the claim false for every simulator?"""
        return self.between.rejected

    @property
    def lower(self) -> float:
        """Every simulator needs an epsilon above this."""
        return self.between.lower / 2

    def lines(self) -> list[str]:
        """The answer in sentences."""
        return [
            f"{'rejected' if self.rejected else 'not rejected'}: epsilon is above {self.lower:.4g} for every simulator",
            f"the simulator that draws the row anew {'fails' if self.simulated.rejected else 'is not rejected'}:"
            f" epsilon against it is above {self.simulated.lower:.4g}",
            *self.between.lines()[-1:],
        ]


def distributional(
    f: Callable[[Any], Any],
    rest: Callable[[], Sequence[Any]],
    *,
    values: tuple[Any, Any],
    fresh: Callable[[], Any],
    epsilon: float,
    level: float = 0.05,
    outputs: int = 10_000,
    coins: Callable[[int], Integers] = system_coins,
) -> DistributionalAudit:
    """Audits epsilon-distributional privacy of one row: `rest()` draws the other rows, `fresh()` a row from its
    distribution.

    The outputs include the randomness of the rest. The claim against every simulator, tested on the two values
    of the row at 2 epsilon.
    Against the simulator that draws the row anew, with one value, at epsilon.
    """

    def run(row: Any) -> Any:
        return f([*rest(), fresh() if row == "fresh" else row[1]])

    half = checked_level(level) / 2
    shared: dict[str, Any] = {"level": half, "outputs": outputs, "seconds": 3600.0, "coins": coins}
    a, b = ("row", values[0]), ("row", values[1])
    return DistributionalAudit(
        between=mechanism(run, claim=Pure(epsilon=2 * epsilon), neighbours=[(a, b)], **shared),
        simulated=mechanism(
            run, claim=Pure(epsilon=epsilon), neighbours=[("fresh", a), ("fresh", b)], **shared
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedAnswers:
    """The noise of a system from its answers to one question, and the epsilon or mu that follows."""

    noise: str
    parameter: str
    """epsilon for Laplace noise, mu for Gaussian noise."""
    answers: int
    distinct: int
    scale: tuple[float, float]
    """Confidence limits of the noise scale or standard deviation."""
    value: tuple[float, float]
    """Confidence limits of the parameter for one answer."""
    confidence: float

    def lines(self) -> list[str]:
        """The answer in sentences."""
        if self.distinct == 1:
            return [
                "all answers are equal: the system repeats a recorded answer, or adds no noise; nothing follows"
            ]
        name = "scale" if self.noise == "laplace" else "standard deviation"
        return [
            f"{self.noise} noise with a {name} between {self.scale[0]:.4g} and {self.scale[1]:.4g}",
            f"{self.parameter} of one answer between {self.value[0]:.4g} and {self.value[1]:.4g}"
            f" (confidence {self.confidence:g}); for all answers together their composition counts",
            "this could not have seen: another law of the noise, dependent answers, a larger sensitivity than the"
            " given one",
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "sentences": self.lines()}


def repeated_answers(
    answers: Sequence[float], *, sensitivity: float, noise: str = "laplace", confidence: float = 0.95
) -> RepeatedAnswers:
    """Confidence limits for a foreign system's epsilon from its answers to one repeated question.

    The true answer is unknown and cancels in differences of two answers. Laplace: the difference d of two answers has
    P(|d| > x b) = e^-x (1 + x/2). So the sum of -ln of this probability over independent pairs has a Gamma
    distribution for every scale b, and falls as b rises. Its quantiles give exact limits. Gaussian: the sample
    variance, by chi-square.
    """
    if noise not in NOISES:
        raise UnknownName(what="noise", name=noise, known=NOISES)
    given = np.asarray(answers, dtype=np.float64)
    if given.ndim != 1 or given.size < 4 or not np.isfinite(given).all():
        raise InvalidParameter(parameter="answers", value=given.shape, must="be at least 4 finite numbers")
    moved = positive("sensitivity", sensitivity)
    half = (1 - checked_level(confidence)) / 2
    from scipy.special import gammaincinv

    distinct = int(np.unique(given).size)
    name = "epsilon" if noise == "laplace" else "mu"
    if distinct == 1:
        return RepeatedAnswers(
            noise=noise, parameter=name, answers=given.size, distinct=1, scale=(0.0, math.inf), value=(0.0, math.inf),
            confidence=confidence,
        )  # fmt: skip
    if noise == "gaussian":
        freedom = given.size - 1
        squares = float(((given - given.mean()) ** 2).sum())
        low, high = (math.sqrt(squares / (2 * float(gammaincinv(freedom / 2, p)))) for p in (1 - half, half))
    else:
        even = given[: given.size - given.size % 2].reshape(-1, 2)
        gaps = np.abs(even[:, 1] - even[:, 0])
        low, high = (_scale(gaps, float(gammaincinv(len(gaps), p))) for p in (1 - half, half))
    return RepeatedAnswers(
        noise=noise, parameter=name, answers=given.size, distinct=distinct, scale=(low, high),
        value=(moved / high, moved / low), confidence=confidence,
    )  # fmt: skip


def _scale(gaps: Floats, target: float) -> float:
    """The scale at which the sum of -ln P(|d| > gap) is this target; it falls with the scale."""

    def total(b: float) -> float:
        x = gaps / b
        return float((x - np.log1p(x / 2)).sum())

    low = high = float(gaps.mean()) + 1e-300
    while total(low) < target:
        low /= 2
    while total(high) > target:
        high *= 2
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if total(middle) > target else (low, middle)
    return math.sqrt(low * high)
