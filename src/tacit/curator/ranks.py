"""Quantiles: noisy ranks over a fine public grid, from which any number of quantiles is read at one price.

The histogram between the declared bounds gets the noise of a mechanism for cumulative counts (theorems
`cumulative-tree`, `cumulative-gaussian`); quantiles, their order and their intervals are post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tacit.curator.intervals import Estimate
from tacit.curator.prices import CONFIDENCE, Price
from tacit.curator.treatments import Noisy, Treatment, compared, mu_squared_within, pure_within
from tacit.errors import InvalidParameter
from tacit.mechanisms.base import Mechanism
from tacit.mechanisms.cumulative import Cumulated, Cumulative, cumulative
from tacit.mechanisms.quantiles import quantiles
from tacit.noise.source import Source
from tacit.sources.query import Cells
from tacit.statistics.base import Question, is_people
from tacit.statistics.sensitivity import replaced

__all__ = ["Ranks", "treat_ranks"]

LEAST_BINS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks(Treatment):
    """Cumulative counts with noise; `mechanism` says which, `shares` which quantiles are read."""

    mechanism: Cumulative
    shares: tuple[Fraction, ...]

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """One release of all ranks of all cells."""
        return (self.mechanism,)

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> Noisy:
        """Noisy ranks of every cell."""
        counts = question.integers(cells)["counts"]
        return Noisy(parts={"below": self.mechanism.release(counts, source=source).below})

    def read(
        self, question: Question, noisy: Noisy, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """The quantiles in order, each with its interval."""
        held = Cumulated(below=np.asarray(noisy.parts["below"]), mechanism=self.mechanism, publishable=True)
        found = quantiles(
            held,
            shares=self.shares,
            edges=question.details["edges"],
            confidence=1 - (1 - confidence) / coordinates,
        )
        return Estimate(value=found.value, low=found.low, high=found.high)

    def describe(self) -> dict[str, Any]:
        """The mechanism for a certificate."""
        return {"noise": [self.mechanism.noise_distribution], "chosen": self.reason, "numerical_delta": 0.0}

    @property
    def log_error(self) -> float:
        """ln of the error of a rank, in rows."""
        return math.log(rank_error(self.mechanism, self.shares, CONFIDENCE))

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """The error of a rank in the middle: in values it depends on how dense the data are."""
        within = rank_error(self.mechanism, self.shares, confidence)
        return None, within, "the rank of a quantile, in rows; in values it depends on the data"


@lru_cache(maxsize=256)
def rank_error(mechanism: Cumulative, shares: tuple[Fraction, ...], confidence: Fraction) -> float:
    """What #(rows below t) - q n is off by at the confidence, q the asked share: at a middling t, mean over the shares.

    It is the error of the number by which a quantile is found (`tacit.mechanisms.quantiles`).
    """
    tail = float((1 - confidence) / 2)
    return float(np.mean([np.median(mechanism.half_widths(tail, share=q)[1:]) for q in shares]))


def treat_ranks(question: Question, price: Price) -> Ranks:
    """The better mechanism for cumulative counts at this price."""
    statistic: Any = question.statistic
    bins = len(question.details["edges"]) - 1
    m = question.sensitivity
    column = question.schema.measured(statistic.column)
    public = (
        not question.axes
        and replaced(question.unit)
        and not is_people(question.unit)
        and statistic.where is None
        and not column.may_be_missing
    )
    about: dict[str, Any] = {"bins": bins, "l1": m.l1, "l2_squared": m.l2_squared, "total_is_public": public}
    if price.kind == "accuracy":
        raise InvalidParameter(
            parameter="within", value=float(price.within or 0), must="be asked of counts and sums",
            hint="the error of a quantile depends on how dense the data are; pay it in epsilon",
        )  # fmt: skip
    found = {"Laplace noise on a tree of counts": cumulative(**about, epsilon=pure_within(price))}
    mu_squared = mu_squared_within(price)
    if mu_squared is not None:
        normal = cumulative(**about, rho=mu_squared / 2)
        found["Gaussian noise under the square root of the summation matrix"] = normal
    shares = tuple(Fraction(repr(float(s))) for s in statistic.at)
    errors = {name: rank_error(m, shares, CONFIDENCE) for name, m in found.items()}
    name = min(errors, key=lambda n: errors[n])
    spent = Fraction(0) if found[name].exact_epsilon is not None else price.spent_delta
    return Ranks(
        noise=(),
        price=price,
        reason=compared(name, errors),
        candidates=errors,
        delta=spent,
        mechanism=found[name],
        shares=shares,
    )
