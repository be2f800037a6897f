"""Sensitivity sampling: how far any black-box statistic moves, read off samples of a public oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.balls import ball, upper
from tacit.exact.checks import flag, settle, whole
from tacit.exact.rationals import Exact
from tacit.exact.rounding import up
from tacit.guarantees import Pure
from tacit.guarantees.declarations import INDEPENDENT_DRAWS, ORACLE_LAW
from tacit.mechanisms import L1, Laplace, Released
from tacit.mechanisms.base import confidence_level, epsilon_parameter
from tacit.noise import grid_spacing
from tacit.noise.source import Source
from tacit.random_data.base import RandomMechanism, gamma_parameter, independent, rows_parameter
from tacit.random_data.changes import _value, grid_value

__all__ = ["SampledSensitivity", "dkw_draws", "sample_sensitivities"]


def sample_sensitivities(
    statistic: Callable[[npt.NDArray[Any]], float],
    oracle: Callable[[int], npt.NDArray[Any]],
    *,
    rows: int,
    draws: int,
) -> list[float]:
    """|g(D) - g(D')| for `draws` pairs of neighbouring samples of a public oracle; `oracle(count)` draws rows.

    What an oracle or a statistic raises, or a value that is no finite number, is refused with a typed error: nothing
    here is private.
    """
    n, m = whole("rows", rows, least=1), whole("draws", draws, least=1)
    found = []
    for _ in range(m):
        try:
            sample = np.asarray(oracle(n + 1))
        except Exception as problem:
            raise InvalidParameter(
                parameter="oracle", value=type(problem).__name__, must="draw rows without raising an error",
                hint="it is called with the number of rows, once for each draw",
            ) from None  # fmt: skip
        if sample.shape[:1] != (n + 1,):
            raise InvalidParameter(
                parameter="oracle",
                value=f"shape {sample.shape}",
                must=f"draw {n + 1} rows when asked for them",
            )
        one, other = _told(statistic, sample[:n]), _told(statistic, np.delete(sample, n - 1, axis=0))
        moved = abs(one - other)
        if not math.isfinite(moved):
            raise InvalidParameter(
                parameter="oracle", value="a sample on which the statistic is not finite",
                must="draw rows on which the statistic is a finite number",
            )  # fmt: skip
        found.append(
            math.nextafter(moved, math.inf) if moved else 0.0
        )  # the subtraction may have rounded down
    return found


def _told(statistic: Callable[[npt.NDArray[Any]], float], sample: npt.NDArray[Any]) -> float:
    """The statistic of public rows, as one number."""
    try:
        return float(statistic(sample))
    except Exception as problem:
        raise InvalidParameter(
            parameter="statistic", value=type(problem).__name__, must="make one number of the oracle's rows",
            hint="it is called with n rows, twice for each draw",
        ) from None  # fmt: skip


def dkw_draws(gamma: Exact) -> int:
    """How many sampled sensitivities the published form needs: ceil(ln(1/r)/(2 (gamma - r)^2)) at its best r.

    Rubinstein, Alda 2017, by the inequality of Dvoretzky, Kiefer, Wolfowitz: r = exp(W_-1(-gamma/(2 sqrt(e))) + 1/2).
    """
    from scipy.special import lambertw

    g = float(gamma_parameter(gamma))
    log_r = float(lambertw(-g / (2 * math.sqrt(math.e)), -1).real) + 0.5
    # Fractions: for a small gamma the square is below all floats.
    return math.ceil(Fraction(-log_r) / (2 * (Fraction(g) - Fraction(math.exp(log_r))) ** 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledSensitivity(RandomMechanism):
    """g + Laplace noise of scale s/epsilon, s the rank-th smallest of `draws` sensitivities of a public oracle.

    Guarantee: (epsilon, 0) under RandomData(1 - rank/(draws + 1)), over the data and the oracle's draws together. Given
    the draws the share of bad data is at most a Beta(draws + 1 - rank, rank) variable: `exceeds(gamma)` says how likely
    it is above gamma, and `for_confidence` finds the draws for both. Works for any statistic, medians too.
    Assumption: the oracle draws from the law of the rows, independently of them. Theorem `random-sensitivity-sampling`.
    Source: Rubinstein, Alda 2017 (with more draws: `dkw_draws`).
    """

    rows: int
    draws: int
    rank: int
    epsilon: Exact
    spacing: Exact = 2.0**-20
    independent: bool = True

    def __post_init__(self) -> None:
        settle(self, rows=rows_parameter(self.rows), draws=whole("draws", self.draws, least=1))
        rank = whole("rank", self.rank, least=1)
        if rank > self.draws:
            raise InvalidParameter(
                parameter="rank", value=rank, must=f"be at most the number of draws, {self.draws}"
            )
        settle(self, rank=rank)
        epsilon_parameter(self.epsilon)
        settle(self, epsilon=self.epsilon)
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        independent(self.independent)
        settle(self, independent=flag("independent", self.independent))

    @classmethod
    def for_gamma(
        cls, *, rows: int, gamma: Exact, epsilon: Exact, spacing: Exact = 2.0**-20
    ) -> SampledSensitivity:
        """The fewest draws with 1 - rank/(draws + 1) <= gamma: ceil(1/gamma) - 1, all of them below s."""
        draws = max(1, math.ceil(1 / gamma_parameter(gamma)) - 1)
        return cls(rows=rows, draws=draws, rank=draws, epsilon=epsilon, spacing=spacing)

    @classmethod
    def for_confidence(
        cls, *, rows: int, gamma: Exact, confidence: Exact, epsilon: Exact, spacing: Exact = 2.0**-20
    ) -> SampledSensitivity:
        """The fewest draws after which the share of bad data is at most gamma with this confidence over the draws.

        (1 - gamma)^draws <= 1 - confidence.
        """
        g, miss = gamma_parameter(gamma), 1 - confidence_level(confidence)
        draws = max(1, math.ceil(upper(lambda: ball(miss).log() / (1 - ball(g)).log())))
        return cls(rows=rows, draws=draws, rank=draws, epsilon=epsilon, spacing=spacing)

    @property
    def _bound(self) -> Pure:
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    def _gamma(self) -> Fraction:
        return 1 - Fraction(self.rank, self.draws + 1)

    @property
    def _declared(self) -> tuple[str, ...]:
        return (INDEPENDENT_DRAWS, ORACLE_LAW)

    def exceeds(self, gamma: Exact) -> float:
        """How likely, over the draws, the share of bad data is above gamma: at most Pr[Bin(m, 1-gamma) >= rank]."""
        g, m = gamma_parameter(gamma), self.draws

        def tail() -> Any:
            total = ball(0)
            for j in range(self.rank, m + 1):
                total += ball(math.comb(m, j)) * (1 - ball(g)) ** j * ball(g) ** (m - j)
            return total

        return min(1.0, upper(tail))

    def noise(self, sensitivities: Sequence[Exact]) -> Laplace:
        """The noise, which is public as the sensitivities are."""
        found = sorted(_value(s) for s in sensitivities)
        if len(found) != self.draws:
            raise InvalidParameter(
                parameter="sensitivities", value=f"{len(found)} numbers", must=f"be {self.draws} sampled ones"
            )
        if found[0] < 0:
            raise InvalidParameter(parameter="sensitivities", value="one below 0", must="be at least 0")
        step = Fraction(self.spacing)
        # Rounding g to the grid adds a step, which also keeps the noise where the sampled ones are all 0 (ties).
        return Laplace.for_epsilon(
            epsilon=self.epsilon, sensitivity=L1(found[self.rank - 1] + step), spacing=self.spacing
        )

    def release(
        self, value: Exact, sensitivities: Sequence[Exact], *, source: Source | None = None
    ) -> Released:
        """The noisy value of the statistic on the private rows."""
        return self.noise(sensitivities).release(grid_value(value, self.spacing), source=source)
