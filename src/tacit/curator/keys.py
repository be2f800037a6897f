"""Unknown keys: which groups may be named at all, then their values.

A key is named by a partition selection on how many units support it, at its share of the price (theorem
`partition-selection`, which spends delta). Counts of the supporting units come with the names, at no further price;
other statistics get independent noise from the rest of the price, so that selection does not bend their intervals.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.curator.intervals import Estimate
from tacit.curator.prices import Price
from tacit.curator.treatments import Noisy, Treatment, treat
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.mechanisms.base import Mechanism
from tacit.mechanisms.partition import PartitionSelection
from tacit.mechanisms.partition_gaussian import partition_selection
from tacit.noise.source import Source
from tacit.sources.axes import Axis, Open
from tacit.sources.query import Cells
from tacit.statistics.base import Question
from tacit.statistics.sensitivity import base_unit, group_limit, replaced

__all__ = ["Selected", "conditional_intervals", "selected_intervals", "treat_keys"]

LOUD = 256
SHARE = Fraction(1, 2)
"""The share of epsilon that naming the keys gets, where values are paid for separately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected(Treatment):
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

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> Noisy:
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
        return Noisy(parts=parts, keys=tuple(tuple(k[chosen].tolist()) for k in keys))

    def read(
        self, question: Question, noisy: Noisy, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """Values and intervals of the named keys."""
        if self.noise:
            return Treatment.read(self, question, noisy, confidence, coordinates=coordinates)
        value = np.asarray(noisy.parts["count"]).astype(np.float64)
        low, high = selected_intervals(self.selection, noisy.parts["count"], float(1 - confidence) / 2)
        return Estimate(value=value, low=low, high=high)

    def describe(self) -> dict[str, Any]:
        """The mechanism for a certificate."""
        noise = [{"selection": self.selection.method, **self.selection.noise_distribution}]
        noise += [a.mechanism.stated(a.parts) for a in self.noise]
        return {"noise": noise, "chosen": self.reason, "numerical_delta": 0.0}

    @property
    def covers(self) -> str:
        """Selection is allowed for: a small group that is named was lucky."""
        return "the statistic of each named group, given that it was named"

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """The error of a count; other statistics err like their noise."""
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
    """The places of the named keys, in the order of their text, or of the whole numbers that it stands for.

    Unknown keys alone come in an order that differs by engine; beside declared ones they are sorted by text already.
    """
    chosen: list[int] = np.flatnonzero(named).tolist()
    if all(isinstance(a, Open) for a in axes):
        chosen.sort(key=lambda i: tuple(_rank(k[i]) for k in keys))
    return chosen


def _rank(key: Any) -> tuple[int, int, str]:
    """Whole numbers first, 2 before 10: each key by itself, whatever others there are."""
    text = str(key)
    return (0, int(text), text) if NUMBER.fullmatch(text) else (1, 0, text)


def not_loud(price: Price) -> None:
    """Refuse an epsilon whose e^epsilon has no float: it protects nobody, and no key needs it to be named."""
    if price.epsilon is not None and price.epsilon > LOUD:
        raise InvalidParameter(
            parameter="epsilon", value=float(price.epsilon), must=f"be at most {LOUD} where keys are selected",
            hint="an epsilon of this size protects nobody",
        )  # fmt: skip


def treat_keys(question: Question, price: Price) -> Selected:
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
    inner = treat(question, Price(epsilon=rest))
    shared = treat(question, Price(epsilon=rest, delta=price.delta / 2))
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
    """Intervals of supports *given* that their keys were named: a small group that is named was lucky."""
    log_survival, threshold, reach = selection.noise_tail
    return conditional_intervals(counts, log_survival, threshold, reach, tail, least=1)


def conditional_intervals(
    counts: Any, log_survival: Any, threshold: int, reach: int, tail: float, *, least: int
) -> tuple[Floats, Floats]:
    """Every true count n at which, given n + X >= t, neither v or more, nor v or less, is rarer than `tail`.

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
    """The first n in low..high at which a monotone condition holds; high where it does not before."""
    low, high = low.copy() - 1, high.copy()
    while bool((high - low > 1).any()):
        middle = (low + high) // 2
        yes = np.asarray(reached(middle))
        open_ = high - low > 1
        high = np.where(open_ & yes, middle, high)
        low = np.where(open_ & ~yes, middle, low)
    return high
