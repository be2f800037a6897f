"""Clamping bounds for a number without declared ones: a private release, from which bounds may be declared.

The counts over public power-of-two ranges get Laplace noise. The answer runs from the first to the last range whose
count stands clearly above the noise. Post-processing (theorem `clamping-bounds`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tacit.curator.assignments import Assignment, NoisyParts, assign, compared, mu_squared_within, pure_within
from tacit.curator.charging import CONFIDENCE, Price
from tacit.curator.intervals import Estimate
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.data_classes import dataclass
from tacit.mechanisms import SparseHistogram, StableHistogram
from tacit.mechanisms.base import Mechanism
from tacit.mechanisms.cumulative import Cumulated, Cumulative, cumulative
from tacit.mechanisms.partition import PartitionSelection, partition_selection
from tacit.mechanisms.quantiles import bounds_from_counts, quantiles
from tacit.mechanisms.sparse import hall_threshold
from tacit.noise.source import Source
from tacit.sources.axes import Axis, OpenAxis
from tacit.sources.query import Cells
from tacit.statistics.base import Question, base_unit, group_limit, is_people, replaced
from tacit.statistics.quantiles import RESOLUTION, joined, range_edges
from tacit.statistics.sparse import SparseQuestion

# Unknown keys: which groups may be named at all, then their values.
#
# A key is named by a partition selection on how many units support it, at its share of the price (theorem
# `partition-selection`, which spends delta). Counts of the supporting units come with the names, at no further price;
# other statistics get independent noise from the rest of the price, so that selection does not bend their intervals.

LOUD = 256
SHARE = Fraction(1, 2)
"""The share of epsilon for naming the keys, if values are paid for separately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected(Assignment):
    """A selection of keys, and the noise of the values where these are not the supports themselves."""

    selection: PartitionSelection

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The selection, then the noise."""
        return (self.selection, *(a.mechanism for a in self.noise))

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""
        found = [t for m in self.mechanisms for t in m.theorems]
        return tuple(dict.fromkeys([*found, "compose-approximate-basic"] if self.noise else found))

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> NoisyParts:
        """Names first; noise is drawn for the named keys alone."""
        assert question.support is not None
        found = cells[0]
        assert found.keys is not None
        supports = np.asarray(found.values[question.support])
        present = np.flatnonzero(supports > 0)
        keys = [np.asarray(k, dtype=object)[present] for k in found.keys]
        if not self.noise:
            kept = self.selection.release_counts(supports[present], source=source)
            assert kept.counts is not None
            chosen = _in_order(keys, kept.mask, question.axes)
            parts = {"count": np.asarray(kept.counts)[chosen]}
        else:
            mask = self.selection.select(supports[present], source=source).mask
            chosen = _in_order(keys, mask, question.axes)
            integers = {n: np.asarray(v)[present][chosen] for n, v in question.integers(cells).items()}
            # Parts that no unit can move are published as they are, as for known keys.
            parts = {p.name: integers[p.name] for p in question.parts if p.name not in self.noised}
            for applied in self.noise:
                parts |= applied.release(integers, source=source)
        return NoisyParts(parts=parts, keys=tuple(tuple(k[chosen].tolist()) for k in keys))

    def read(
        self, question: Question, noisy: NoisyParts, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """Values and intervals of the named keys."""
        if self.noise:
            return Assignment.read(self, question, noisy, confidence, coordinates=coordinates)
        value = np.asarray(noisy.parts["count"]).astype(np.float64)
        low, high = selected_intervals(self.selection, noisy.parts["count"], float(1 - confidence) / 2)
        return Estimate(value=value, low=low, high=high)

    def to_dict(self) -> dict[str, Any]:
        """The mechanism for a certificate."""
        noise = [{"selection": self.selection.method, **self.selection.noise_distribution}]
        noise += [a.mechanism.to_dict(a.parts) for a in self.noise]
        return {"noise": noise, "chosen": self.reason, "numerical_delta": 0.0}

    @property
    def covers(self) -> str:
        """The intervals account for selection, since a small group is named only by luck."""
        return "the statistic of each named group, given that it was named"

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """The error of a count; the error of other statistics is that of their noise."""
        named = self.selection.support_for(Fraction(95, 100))
        about = f"each group that is named; one with {named:,} supporters is, in 95 of 100 cases"
        if len(self.noised) > 1:
            return None, None, about
        if self.noise:
            (part,) = (p for p in question.parts if p.name in self.noised)
            mean, within = self.mean_errors()[part.name], self.half_widths(confidence)[part.name]
            return mean * float(part.spacing), float(within) * float(part.spacing), about
        return None, float(self.selection.error_quantile(confidence)), about


NUMBER = re.compile(r"-?[0-9]{1,30}", re.ASCII)


def _in_order(keys: Sequence[Any], named: Any, axes: Sequence[Axis]) -> list[int]:
    """The places of the named keys, in the order of their text, or of the whole numbers in it.

    Only unknown keys come in an order that differs by engine; beside declared ones they are sorted by text already.
    """
    chosen: list[int] = np.flatnonzero(named).tolist()
    if all(isinstance(a, OpenAxis) for a in axes):
        chosen.sort(key=lambda i: tuple(_rank(k[i]) for k in keys))
    return chosen


def _rank(key: Any) -> tuple[int, int, str]:
    """Whole numbers first, 2 before 10: the place of a key does not depend on the others."""
    text = str(key)
    return (0, int(text), text) if NUMBER.fullmatch(text) else (1, 0, text)


def not_loud(price: Price) -> None:
    """Refuses an epsilon whose e^epsilon exceeds the floats: it protects nobody, and no key needs so large a one."""
    if price.epsilon is not None and price.epsilon > LOUD:
        raise InvalidParameter(
            parameter="epsilon", value=float(price.epsilon), must=f"be at most {LOUD} where keys are selected",
            hint="an epsilon of this size protects nobody",
        )  # fmt: skip


def assign_keys(question: Question, price: Price) -> Selected:
    """The selection, and the noise for the rest, at an (epsilon, delta) price."""
    if price.kind != "approximate" or price.epsilon is None or price.delta is None:
        raise InvalidParameter(
            parameter="delta", value=None, must="be given where keys are not known in advance",
            hint="pay with epsilon= and delta=, or declare the keys: category([...])",
        )  # fmt: skip
    not_loud(price)
    _, size = base_unit(question.unit)
    about: dict[str, Any] = {
        "keys": group_limit(question.unit, None),
        "replaced": replaced(question.unit),
        "group": size,
    }
    if _supports_itself(question):
        chosen = partition_selection(epsilon=price.epsilon, delta=price.delta, **about)
        reason = f"{chosen.method}; the counts come with the names"
        return Selected(noise=(), price=price, reason=reason, delta=price.delta, selection=chosen)
    rest = price.epsilon * (1 - SHARE)
    inner = assign(question, Price(epsilon=rest))
    shared = assign(question, Price(epsilon=rest, delta=price.delta / 2))
    delta = price.delta
    if shared.pure() is None:
        inner, delta = shared, price.delta / 2
    chosen = partition_selection(epsilon=price.epsilon * SHARE, delta=delta, **about)
    reason = f"{chosen.method}, at half of epsilon; then {inner.reason}"
    return Selected(
        noise=inner.noise,
        price=price,
        reason=reason,
        delta=price.delta,
        selection=chosen,
        candidates=inner.candidates,
    )


def _supports_itself(question: Question) -> bool:
    """Is the statistic the number of supporting units?"""
    return question.statistic.agrees and question.support in question.requests[0].aggregates[:1]


def selected_intervals(selection: PartitionSelection, counts: Any, tail: float) -> tuple[Floats, Floats]:
    """Intervals of supports *given* that their keys were named, since a small group is named only by luck."""
    log_survival, threshold, reach = selection.noise_tail
    return conditional_intervals(counts, log_survival, threshold, reach, tail, least=1)


def conditional_intervals(
    counts: Any, log_survival: Any, threshold: int, reach: int, tail: float, *, least: int
) -> tuple[Floats, Floats]:
    """Every true count n at which, given n + X >= t, both v or more and v or less are at least as likely as `tail`.

    Pr[n + X >= v | n + X >= t] = S(v - n) / S(t - n) with S the survival of X; both ratios are monotone in n, since X
    has a log-concave law.
    """
    values, place = np.unique(np.asarray(counts).astype(np.int64), return_inverse=True)
    if not values.size:
        return np.zeros(0), np.zeros(0)

    def more(n: Any) -> Any:
        return log_survival(values - n) - log_survival(threshold - n)

    def less(n: Any) -> Any:
        above = np.minimum(log_survival(values + 1 - n) - log_survival(threshold - n), 0)
        return np.log(np.maximum(-np.expm1(above), 1e-300))

    limit = np.log(tail)
    with np.errstate(invalid="ignore"):  # both sides impossible: not a candidate
        first = np.maximum(values - reach, least)
        low = _first(lambda n: more(n) >= limit, first, np.maximum(values + reach, least))
        high = _first(lambda n: less(n) < limit, np.maximum(low, least), values + 2 * reach + 2) - 1
    high = np.maximum(high, low)
    return low[place].astype(np.float64), high[place].astype(np.float64)


def _first(reached: Any, low: Any, high: Any) -> Any:
    """The first n in low..high at which a monotone condition holds; high if there is none before."""
    low, high = low.copy() - 1, high.copy()
    while bool((high - low > 1).any()):
        middle = (low + high) // 2
        yes = np.asarray(reached(middle))
        open_ = high - low > 1
        high = np.where(open_ & yes, middle, high)
        low = np.where(open_ & ~yes, middle, low)
    return high


# Sparse histograms: noise on every cell of a huge domain, of which only those that stand out are published.
#
# Empty cells are never visited (theorem `sparse-histogram`). What is published is chosen after the noise, which is
# post-processing: by an estimate of the risk for Laplace noise, by the expected share of false cells for Gaussian
# noise. With a delta, occupied cells alone may get noise, above a threshold that hides a unit's own (`stability-
# threshold`).

FALSE_SHARE = Fraction(1, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse(Assignment):
    """The mechanism, and how its cells are chosen afterwards."""

    mechanism: SparseHistogram | StableHistogram

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Noise on all cells, or on the occupied ones."""
        return (self.mechanism,)

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> NoisyParts:
        """Adds noise, then selects the cells that stand out; publishes the keys sorted."""
        assert isinstance(question, SparseQuestion)
        keys, counts = question.occupied(cells)
        # A cell that another question of the plan occupies is not occupied for this one.
        there = np.asarray(counts != 0, dtype=np.bool_)
        keys, counts = keys[there], counts[there]
        chosen, values, threshold = self.mechanism.published(
            keys, counts, false_share=FALSE_SHARE, source=source
        )
        labels = question.labels(chosen)
        return NoisyParts(
            parts={"count": np.asarray(values), "threshold": np.array([threshold])},
            keys=tuple(tuple(labels[a.column].tolist()) for a in question.axes),
        )

    def read(
        self, question: Question, noisy: NoisyParts, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """Intervals given that a cell passed the threshold, since an empty cell passes only by luck."""
        value = np.asarray(noisy.parts["count"])
        noise = self.mechanism.noise
        threshold = int(np.asarray(noisy.parts["threshold"])[0]) + 1
        reach = int(40 * float(noise.distribution.std)) + 2
        tail = float(1 - confidence) / 2
        low, high = conditional_intervals(value, noise.log_survival, threshold, reach, tail, least=0)
        return Estimate(value=value.astype(np.float64), low=low, high=high)

    def to_dict(self) -> dict[str, Any]:
        """The mechanism for a certificate."""
        return {"noise": [self.mechanism.noise_distribution], "chosen": self.reason, "numerical_delta": 0.0}

    @property
    def covers(self) -> str:
        """Exact for a fixed threshold; approximate for a threshold chosen after the noise."""
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


def assign_sparse(question: Question, price: Price) -> Sparse:
    """Laplace noise on all cells for a pure price; for a rho or with a delta, the noise that hides the fewest cells.

    The mechanism that hides the fewest cells has the lowest threshold. Discrete Gaussian noise has a rho (theorem
    `discrete-gaussian`), and no theorem here gives it a mu.
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
    """The candidates within the price, the first of equals first."""
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
    """The number of hidden cells before the noise decides anything: the measure by which mechanisms are compared."""
    if isinstance(mechanism, StableHistogram):
        return mechanism.threshold
    return hall_threshold(mechanism.noise, cells=mechanism.cells)


# Quantiles: noisy ranks over a fine public grid, from which any number of quantiles is read at one price.
#
# The histogram between the declared bounds gets the noise of a mechanism for cumulative counts (theorems
# `cumulative-tree`, `cumulative-gaussian`); quantiles, their order and their intervals are post-processing.

LEAST_BINS = 2
RANKS = (
    "the rank of a quantile, in rows; in values it depends on the data: rows= and guess= show it for a guess"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks(Assignment):
    """Cumulative counts with noise; `mechanism` names the noise, `shares` the quantiles to read."""

    mechanism: Cumulative
    shares: tuple[Fraction, ...]

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """One release of all ranks of all cells."""
        return (self.mechanism,)

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> NoisyParts:
        """Noisy ranks of every cell."""
        counts = joined(question.integers(cells)["counts"], self.mechanism.bins)
        return NoisyParts(parts={"below": self.mechanism.release(counts, source=source).below})

    def read(
        self, question: Question, noisy: NoisyParts, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """The quantiles in order, each with its interval."""
        held = Cumulated(below=np.asarray(noisy.parts["below"]), mechanism=self.mechanism, publishable=True)
        found = quantiles(
            held,
            shares=self.shares,
            edges=range_edges(question, self.mechanism.bins),
            confidence=1 - (1 - confidence) / coordinates,
            drawn=bool(question.details.get("sample")),
        )
        return Estimate(value=found.value, low=found.low, high=found.high)

    def to_dict(self) -> dict[str, Any]:
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
        return None, within, RANKS


@lru_cache(maxsize=256)
def rank_error(mechanism: Cumulative, shares: tuple[Fraction, ...], confidence: Fraction) -> float:
    """The error of #(rows below t) - q n at the confidence, q the asked share: at a middling t, mean over the shares.

    A quantile is found by such numbers (`tacit.mechanisms.quantiles`).
    """
    tail = float((1 - confidence) / 2)
    return float(np.mean([np.median(mechanism.half_widths(tail, share=q)[1:]) for q in shares]))


def total_is_public(question: Question) -> bool:
    """Whether no unit can move the number of rows. Rows are replaced, all in one cell, and each has a value."""
    statistic: Any = question.statistic
    return (
        not question.axes
        and replaced(question.unit)
        and not is_people(question.unit)
        and statistic.where is None
        and not question.schema.measured(statistic.column).may_be_missing
    )


def assign_ranks(
    question: Question, price: Price, bins: int | None = None, *, measured: bool = True
) -> Ranks:
    """The better mechanism for cumulative counts at this price."""
    statistic: Any = question.statistic
    finest = question.details["bins"]
    free = statistic.resolution == RESOLUTION and finest % RESOLUTION == 0
    bins = bins or (RESOLUTION if free else finest)
    m = question.sensitivity
    about: dict[str, Any] = {
        "bins": bins, "l1": m.l1, "l2_squared": m.l2_squared, "total_is_public": total_is_public(question)
    }  # fmt: skip
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
    # One candidate needs no comparison, and who compares it with others does so by its mean error.
    alone = len(found) == 1 and not measured
    errors = {name: math.nan if alone else rank_error(m, shares, CONFIDENCE) for name, m in found.items()}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ClampingAssignment(Assignment):
    """Laplace noise on the counts; the answer is two numbers, low and high."""

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""
        return (*self.noise[0].mechanism.theorems, "clamping-bounds")

    def read(
        self, question: Question, noisy: NoisyParts, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """low and high; missing numbers if no range exceeds the noise."""
        labels: Any = question.axes[0].labels
        edges = [labels[0][0], *(high for _, high in labels)]
        noise: Any = self.noise[0].mechanism
        found = bounds_from_counts(noisy.parts["count"], edges=edges, noise=noise, confidence=confidence)
        ends = np.array([np.nan if v is None else v for v in (found.low, found.high)])
        return Estimate(value=ends, low=ends, high=ends)

    @property
    def covers(self) -> str:
        """Bounds are a choice, not an estimate."""
        return "nothing: bounds have no intervals, low and high repeat the value"

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """Bounds are powers of two, and have no error bar."""
        said = "the outer ranges hold rows and are not made by noise, with the stated confidence"
        return None, None, said


def assign_clamping_bounds(question: Question, price: Price) -> ClampingAssignment:
    """Laplace noise, by the pure epsilon that any price has room for."""
    epsilon = pure_within(price)
    if epsilon is None:
        raise InvalidParameter(
            parameter="within", value=float(price.within or 0), must="be asked of counts and sums",
            hint="bounds are powers of two and have no error bar: pay them in epsilon",
        )  # fmt: skip
    pure = Price(epsilon=epsilon)
    inner = assign(question, pure)
    return ClampingAssignment(
        noise=inner.noise, price=pure, reason="Laplace noise: bounds are read from pure noise"
    )
