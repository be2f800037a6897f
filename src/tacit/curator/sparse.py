"""Sparse histograms: noise on every cell of a huge domain, of which only those that stand out are published.

Empty cells are never visited (theorem `sparse-histogram`). What is published is chosen after the noise, which is
post-processing: by an estimate of the risk for Laplace noise, by the expected share of false cells for Gaussian noise.
With a delta, occupied cells alone may get noise, above a threshold that hides a unit's own (`stability-threshold`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.curator.intervals import Estimate
from tacit.curator.keys import conditional_intervals, not_loud
from tacit.curator.prices import Price
from tacit.curator.treatments import Noisy, Treatment, pure_within
from tacit.errors import InvalidParameter
from tacit.mechanisms import SparseHistogram, StableHistogram
from tacit.mechanisms.base import Mechanism
from tacit.mechanisms.sparse import hall_threshold
from tacit.noise.source import Source
from tacit.sources.query import Cells
from tacit.statistics.base import Question
from tacit.statistics.sparse import SparseQuestion

__all__ = ["Sparse", "treat_sparse"]

FALSE_SHARE = Fraction(1, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse(Treatment):
    """The mechanism, and how its cells are chosen afterwards."""

    mechanism: SparseHistogram | StableHistogram

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Noise on all cells, or on those that are occupied."""
        return (self.mechanism,)

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> Noisy:
        """Noise, then the choice of what stands out; keys are published sorted."""
        assert isinstance(question, SparseQuestion)
        keys, counts = question.occupied(cells)
        # A cell that another question of the plan occupies is not occupied for this one.
        there = np.asarray(counts != 0, dtype=np.bool_)
        keys, counts = keys[there], counts[there]
        chosen, values, threshold = self.mechanism.published(
            keys, counts, false_share=FALSE_SHARE, source=source
        )
        labels = question.labels(chosen)
        return Noisy(
            parts={"count": np.asarray(values), "threshold": np.array([threshold])},
            keys=tuple(tuple(labels[a.column].tolist()) for a in question.axes),
        )

    def read(
        self, question: Question, noisy: Noisy, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """Intervals given that a cell passed the threshold: an empty cell that passed was lucky."""
        value = np.asarray(noisy.parts["count"])
        noise = self.mechanism.noise
        threshold = int(np.asarray(noisy.parts["threshold"])[0]) + 1
        reach = int(40 * float(noise.distribution.std)) + 2
        tail = float(1 - confidence) / 2
        low, high = conditional_intervals(value, noise.log_survival, threshold, reach, tail, least=0)
        return Estimate(value=value.astype(np.float64), low=low, high=high)

    def describe(self) -> dict[str, Any]:
        """The mechanism for a certificate."""
        return {"noise": [self.mechanism.noise_distribution], "chosen": self.reason, "numerical_delta": 0.0}

    @property
    def covers(self) -> str:
        """Exact for a threshold that was fixed; about right for one that was chosen after the noise."""
        if self.mechanism.threshold_is_fixed:
            return "the count of each published cell, given that it was published"
        return "the count of each published cell, approximately: its threshold was chosen after the noise"

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """The noise of one cell; cells that are not published count as 0."""
        noise = self.mechanism.noise
        within = float(noise.error_quantile(confidence))
        return (
            float(noise.expected_error()),
            within,
            "each published cell; cells that are not published are read as 0",
        )


def treat_sparse(question: Question, price: Price) -> Sparse:
    """Laplace noise on all cells for a pure price; for a rho or with a delta whatever hides least.

    What hides least has the lowest threshold. Discrete Gaussian noise has a rho (theorem `discrete-gaussian`), and no
    theorem here gives it a mu.
    """
    assert isinstance(question, SparseQuestion)
    if price.kind == "pure" and price.epsilon is not None:
        plain = question.mechanism(epsilon=price.epsilon, rule="floor")
        reason = "Laplace noise on every cell; published by an estimate of the risk, after the noise"
        return Sparse(noise=(), price=price, reason=reason, mechanism=plain)
    if price.kind not in ("approximate", "concentrated"):
        raise InvalidParameter(
            parameter="price", value=price.kind, must="be epsilon=, epsilon= with delta=, or rho= (sparse histogram)",
            hint=HINTS.get(price.kind, ""),
        )  # fmt: skip
    not_loud(price)
    epsilon = pure_within(price)
    assert epsilon is not None
    found = _candidates(question, price, epsilon)
    thresholds = {name: _threshold(made) for name, made in found.items()}
    best = min(thresholds, key=lambda name: thresholds[name])
    others = ", ".join(f"that of {name} {t}" for name, t in thresholds.items() if name != best)
    reason = f"{best}: at this price its threshold is {thresholds[best]}, {others}"
    compared = {name: float(t) for name, t in thresholds.items()}
    if found[best].exact_epsilon is not None:
        price = Price(epsilon=epsilon) if price.kind == "approximate" else price
        return Sparse(noise=(), price=price, reason=reason, mechanism=found[best], candidates=compared)
    return Sparse(
        noise=(),
        price=price,
        reason=reason,
        delta=price.spent_delta,
        mechanism=found[best],
        candidates=compared,
    )


HINTS = {
    "gaussian": "discrete Gaussian noise has a rho and no mu that is proved: pay with rho=, from a budget in rho",
    "accuracy": "what a sparse histogram hides depends on its domain: preview(...) shows the error of a price",
}


def _candidates(
    question: SparseQuestion, price: Price, epsilon: Fraction
) -> dict[str, SparseHistogram | StableHistogram]:
    """What keeps to the price, the first of equals first."""
    found: dict[str, SparseHistogram | StableHistogram] = {}
    if price.delta is not None:
        found["noise on occupied cells alone"] = StableHistogram.for_target(
            epsilon=epsilon,
            delta=price.delta,
            sensitivity=question.l1_sensitivity,
            unit=question.contribution,
        )
    found["Gaussian noise on every cell"] = (
        question.mechanism(rho=price.rho, rule="floor")
        if price.delta is None
        else question.mechanism(epsilon=epsilon, delta=price.delta, rule="floor")
    )
    found["Laplace noise on every cell"] = question.mechanism(epsilon=epsilon, rule="floor")
    return found


def _threshold(mechanism: SparseHistogram | StableHistogram) -> int:
    """What is hidden, where nothing is chosen after the noise: what mechanisms are compared by."""
    if isinstance(mechanism, StableHistogram):
        return mechanism.threshold
    return hall_threshold(mechanism.noise, cells=mechanism.cells)
