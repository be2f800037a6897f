"""How many take part, how many must remain, how many may collude: what shares and thresholds are sized for."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from tacit.errors import InvalidParameter
from tacit.exact.checks import settle, whole

__all__ = ["COMPLETE", "MOST_HOLDERS", "Sizes"]

COMPLETE = 200
"""Up to this many holders each pair has a mask of its own; beyond, each has masks with some neighbours."""
MOST_HOLDERS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """n holders, of whom at least `fewest` must remain and at most `colluding` tell what they know.

    Shares of noise are sized for h = fewest - colluding honest ones (theorem `honest-survivors`). Secrets are shared
    so that `threshold` of the holders open them, with colluding < threshold and 2 threshold > holders + colluding:
    then two lists of survivors cannot both be confirmed (theorem `one-list-of-survivors`). A person may be in
    `appearances` of the holders (by default in all of them), and sensitivities are multiplied by that.
    """

    holders: int
    fewest: int
    colluding: int
    threshold: int = 0
    appearances: int = 0
    honest: int = field(init=False)

    def __post_init__(self) -> None:
        n = whole("holders", self.holders, least=None)
        if not 2 <= n <= MOST_HOLDERS:
            raise InvalidParameter(
                parameter="holders", value=n, must=f"be between 2 and {MOST_HOLDERS}",
                hint="one holder alone is a curator: tacit.Curator",
            )  # fmt: skip
        s, c = whole("fewest", self.fewest), whole("colluding", self.colluding, least=0)
        if not c < s <= n:
            raise InvalidParameter(
                parameter="fewest", value=s, must=f"be above colluding ({c}) and at most holders ({n})",
                hint="noise is sized for the fewest that remain less those who collude: at least one must be left",
            )  # fmt: skip
        t = whole("threshold", self.threshold, least=0) or (n + c) // 2 + 1
        if not (c < t <= n and 2 * t > n + c):
            raise InvalidParameter(
                parameter="threshold", value=t, must=f"be above ({n} + {c}) / 2 and at most {n}",
                hint="else an aggregator that lies about who is left could have two lists confirmed",
            )  # fmt: skip
        k = whole("appearances", self.appearances, least=0) or n
        if k > n:
            raise InvalidParameter(parameter="appearances", value=k, must=f"be at most holders ({n})")
        settle(self, holders=n, fewest=s, colluding=c, threshold=t, appearances=k, honest=s - c)

    @property
    def share(self) -> Fraction:
        """The part of the whole noise that each holder adds: 1/h."""
        return Fraction(1, self.honest)

    def excess(self, remaining: int) -> float:
        """How much wider than one curator's the noise is, as a ratio of standard deviations, if so many remain."""
        return math.sqrt(remaining / self.honest)

    def describe(self) -> dict[str, int]:
        """For digests and certificates."""
        return {
            "holders": self.holders,
            "fewest": self.fewest,
            "colluding": self.colluding,
            "threshold": self.threshold,
            "appearances": self.appearances,
        }

    def __str__(self) -> str:
        return (
            f"{self.holders} holders, of whom at least {self.fewest} must remain and at most {self.colluding} collude: "
            f"each adds 1/{self.honest} of the noise; if all remain its variance is {self.holders}/{self.honest} "
            f"({self.holders / self.honest:.3g}) times, and its standard deviation {self.excess(self.holders):.3g} "
            f"times, that of one curator; a person may be in {self.appearances} of them"
        )
