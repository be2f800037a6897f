"""What the checker answers: delta between two certified ends, whether a claim holds, and a witness if not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.coupled.numbers import Level, ends, log_interval, short
from tacit.exact.rounding import Interval

__all__ = ["Comparison", "Found", "Verdict", "Witness"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """Two distributions that a definition wants to be indistinguishable."""

    prior: str
    pair: str
    value: Any
    other: Any
    auxiliary: Any
    first: Any
    second: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """Where a claim fails: an event that is too likely in one world for what it is in the other.

    For the best simulator there may be several: every simulator fails at one of them, `weight` is its share in the
    proof.
    """

    prior: str
    pair: str
    value: Any
    auxiliary: Any
    event: tuple[Any, ...]
    direction: str
    first: float
    second: float
    other: Any = None
    weight: float = 1.0

    def __str__(self) -> str:
        against = "" if self.other is None else f" against {self.other!r}"
        given = "" if self.auxiliary is None else f", auxiliary {self.auxiliary!r}"
        events = ", ".join(repr(t) for t in self.event[:6]) + (", ..." if len(self.event) > 6 else "")
        return (
            f"{self.pair}, value {self.value!r}{against}{given}, under '{self.prior}': "
            f"the event {{{events}}} has probability {self.first:.4g} {self.direction} {self.second:.4g}"
        )

    @property
    def record(self) -> dict[str, Any]:
        """As plain data; values and outputs as they are printed."""
        return {
            "prior": self.prior,
            "pair": self.pair,
            "value": repr(self.value),
            "other": None if self.other is None else repr(self.other),
            "auxiliary": None if self.auxiliary is None else repr(self.auxiliary),
            "event": [repr(t) for t in self.event],
            "direction": self.direction,
            "first": self.first,
            "second": self.second,
            "weight": self.weight,
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """The smallest delta at one epsilon: at least `low`, at most `high`; equal where it is exact.

    `decided` is False where `low` is only 0, because no theorem bounds the delta of all simulators from below.
    """

    low: Fraction
    high: Fraction
    witnesses: tuple[Witness, ...] = ()
    decided: bool = True
    simulator: str = ""
    compared: int = 0

    @property
    def interval(self) -> Interval:
        """Both ends as floats, rounded outwards."""
        return ends(self.low, self.high)

    @property
    def exact(self) -> bool:
        """Are both ends the same rational?"""
        return self.low == self.high


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdict:
    """One definition, one mechanism, one claim (epsilon, delta).

    `holds` is None where the certified ends do not decide. `epsilon` is the smallest one at the claimed delta,
    against the simulator; `epsilon_pair` the smallest one between two values of what is private, the rest being
    distributed alike, to somebody who knows which prior holds (None where no two values can be compared).
    """

    definition: str
    number: str
    claim_epsilon: str
    claim_delta: Fraction
    delta: Found
    epsilon: Interval | None
    epsilon_pair: Interval | None
    level: Level

    @property
    def holds(self) -> bool | None:
        """Does the claim hold? None if the ends leave it open."""
        if self.delta.high <= self.claim_delta:
            return True
        return False if self.delta.low > self.claim_delta else None

    @property
    def witnesses(self) -> tuple[Witness, ...]:
        """Where the claim fails; empty if it does not."""
        return self.delta.witnesses if self.holds is False else ()

    @property
    def record(self) -> dict[str, Any]:
        """The verdict as plain data, with stable keys."""
        found = self.delta.interval
        return {
            "definition": self.definition,
            "number": self.number,
            "claim": {"epsilon": self.claim_epsilon, "delta": float(self.claim_delta)},
            "holds": self.holds,
            "delta_low": found.low,
            "delta_high": found.high,
            "delta_exact": short(self.delta.high, 60) if self.delta.exact else None,
            "decided_for_all_simulators": self.delta.decided,
            "simulator": self.delta.simulator,
            "compared": self.delta.compared,
            "epsilon": _pair(self.epsilon),
            "epsilon_pair": _pair(self.epsilon_pair),
            "witnesses": [w.record for w in self.witnesses],
        }


def _pair(found: Interval | None) -> list[float] | None:
    return None if found is None else [found.low, found.high]


def factor_interval(low: Fraction, high: Fraction | None) -> Interval:
    """ln of a factor between two ends; an upper end of None is infinite."""
    return Interval(low=log_interval(low).low, high=float("inf") if high is None else log_interval(high).high)


def worst_first(witnesses: Sequence[Witness], most: int = 12) -> tuple[Witness, ...]:
    """The weightiest ones."""
    return tuple(sorted(witnesses, key=lambda w: -w.weight)[:most])
