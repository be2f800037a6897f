"""What is known about an exact answer: how much it tells, given what, by which theorem; never less than all of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.checks import non_negative, probability, text, whole
from tacit.guarantees.arguments import listed
from tacit.guarantees.bounds import Approximate, Bound, Pure
from tacit.guarantees.conditions import Priors
from tacit.guarantees.guarantee import Guarantee
from tacit.guarantees.units import Coupled

__all__ = ["PAIR_IS", "ExactAnswer", "delta_out_of_reach", "shown", "within_reach"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactAnswer:
    """An exact answer is (epsilon, delta)-private in the sense of Groce 2014, Def. 5.3, under `assumptions` only.

    `epsilon` is against the named simulator, which sees all rows but the protected one; `epsilon_pair` is between two
    values of that row, to somebody who knows which of the assumed laws holds: to others a value may tell the law, and
    the law the answer (it is at most twice as large in this sense, and None where it is not computed or not finite).
    Both are upper ends. `rows` is None where their number is itself random. `threshold` is for truncated histograms.
    `details` holds further numbers for the machine format.
    """

    statistic: str
    epsilon: float
    epsilon_pair: float | None
    delta: float
    assumptions: tuple[str, ...]
    theorem: str
    simulator: str
    rows: int | None
    unknown_rows: int
    family: str
    threshold: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name in ("statistic", "theorem", "simulator", "family"):
            object.__setattr__(self, name, text(name, getattr(self, name), empty=False))
        object.__setattr__(self, "epsilon", non_negative("epsilon", self.epsilon))
        if self.epsilon_pair is not None:
            object.__setattr__(self, "epsilon_pair", non_negative("epsilon_pair", self.epsilon_pair))
        object.__setattr__(self, "delta", probability("delta", self.delta, below_one=True))
        said = tuple(text("assumptions", a, empty=False) for a in listed("assumptions", self.assumptions))
        if not said:
            raise InvalidParameter(
                parameter="assumptions", value="none", must="be named: without one no exact answer is private"
            )
        object.__setattr__(self, "assumptions", said)
        if self.rows is not None:
            object.__setattr__(self, "rows", whole("rows", self.rows))
        object.__setattr__(self, "unknown_rows", whole("unknown_rows", self.unknown_rows))
        if self.rows is not None and self.unknown_rows > self.rows:
            raise InvalidParameter(
                parameter="unknown_rows", value=self.unknown_rows, must=f"be at most the {self.rows} rows"
            )
        if self.threshold is not None:
            object.__setattr__(self, "threshold", whole("threshold", self.threshold, least=0))
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    @property
    def bound(self) -> Bound:
        """(epsilon, delta)."""
        if self.delta == 0:
            return Pure(epsilon=self.epsilon)
        return Approximate(epsilon=self.epsilon, delta=self.delta)

    @property
    def guarantee(self) -> Guarantee:
        """Bound, unit and condition: nothing is dropped, and it is not differential privacy."""
        return Guarantee(
            bound=self.bound,
            unit=Coupled(priv="any one row", alt="all other rows", family=self.rows),
            condition=Priors(family=self.family, unknown_rows=self.unknown_rows),
        )

    @property
    def sentence(self) -> str:
        """The condition first, then what is promised under it."""
        return (
            f"This is private provided that {'; and '.join(self.assumptions)}. Then the exact {self.statistic} tells "
            f"about any one row at most epsilon = {shown(self.epsilon)}, delta = {shown(self.delta)}, beyond what "
            "the other rows tell. If the assumption is wrong, nothing is promised."
        )

    @property
    def record(self) -> dict[str, Any]:
        """For JSON: all fields, the sentence, and the guarantee."""
        return {
            "statistic": self.statistic,
            "epsilon": self.epsilon,
            "epsilon_pair": self.epsilon_pair,
            "epsilon_pair_is": PAIR_IS,
            "delta": self.delta,
            "threshold": self.threshold,
            "assumptions": list(self.assumptions),
            "theorem": self.theorem,
            "simulator": self.simulator,
            "n": self.rows,
            "unknown_rows": self.unknown_rows,
            "sentence": self.sentence,
            "guarantee": str(self.guarantee),
            **self.details,
        }


def shown(number: float, digits: int = 3) -> str:
    """A few digits, rounded up: a sentence does not promise more than was computed, nor assume less."""
    if number == 0 or not math.isfinite(number):
        return f"{number:g}"
    place = 10.0 ** (math.floor(math.log10(number)) - digits + 1)
    return f"{math.ceil(number / place * (1 - 1e-13)) * place:.{digits}g}"


PAIR_IS = "between two values of a row, to somebody who knows the distribution"
"""What `epsilon_pair` is about: to somebody who does not know which law holds a value may tell more."""

UNREACHED = "no epsilon reaches it under this assumption and with this simulator"


def delta_out_of_reach(
    statistic: str,
    delta: float,
    smallest: float,
    *,
    reason: str = UNREACHED,
    hint: str = "",
    ours: bool = False,
) -> NoLaw:
    """The refusal of a delta that no epsilon reaches, with the smallest one that some epsilon does.

    `ours` says that a bound of ours reaches no further, and the truth may.
    """
    which = "that this bound reaches" if ours else "possible"
    if ours and reason == UNREACHED:
        reason = "this bound has no epsilon for it under this assumption and with this simulator"
    return NoLaw(
        operation=f"an exact {statistic} with delta = {delta:g}",
        reason=f"{reason}: the smallest delta {which} is {shown(smallest)}",
        hint=hint or "allow a larger delta, assume more unknown rows, or add noise",
    )


def within_reach(reached: Callable[[float], bool], delta: float, *, steps: float = 0.1) -> float:
    """About the smallest delta above this one that some epsilon reaches, one that was seen to be; 1 if none is."""
    low, high = math.log(delta), 0.0
    while high - low > steps:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(math.exp(middle)) else (middle, high)
    return math.exp(high)
