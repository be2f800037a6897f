"""The price of privacy: the expected error of each mechanism, beside a lower bound for all."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Unpack

from tacit.errors import EmptyComposition, UnknownName
from tacit.exact.canonical import formerly
from tacit.exact.checks import refuse_if, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, ball, upper
from tacit.guarantees import Neighbours
from tacit.mechanisms.base import epsilon_parameter
from tacit.risk.minimax import PROBLEMS, LowerBound, Size, lower_bound


def expected_errors(
    problem: str,
    *,
    n: int,
    epsilon: Exact,
    cells: int = 2,
    occupied: int | None = None,
    attributes: int = 1,
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
) -> dict[str, float]:
    """The worst expected L1 error of each mechanism for the problem, in closed form, rounded up.

    Counts: geometric 1/sinh(e), Laplace 1/e, and the truncated geometric. Histograms of p cells: discrete
    Laplace p/sinh(e/2) (one row replaced moves two cells; p/sinh(e) under add-or-remove). Sparse ones: the
    threshold rule's (2q+1)/e (ln p + 1), Hall 2012, Prop. 2.4.3. Margins: k counts at e/k each, k/sinh(e/k).
    """
    if problem not in PROBLEMS:
        raise UnknownName(what="problem", name=str(problem), known=PROBLEMS)
    e = epsilon_parameter(epsilon)
    n = whole("n", n, least=1)
    touched = 2 if neighbours is Neighbours.REPLACE_ONE else 1

    def noise(coordinates: int, share: Any) -> float:
        return upper(lambda: coordinates / ball(share).sinh())

    if problem == "count":
        from tacit.mechanisms.laplace import TruncatedGeometric

        return {
            "geometric": noise(1, e),
            "laplace": upper(lambda: 1 / ball(e)),
            "truncated geometric": TruncatedGeometric(epsilon=e, low=0, high=n).expected_error(),
        }
    if problem == "margins":
        k = whole("attributes", attributes, least=1)
        return {"geometric": noise(k, e / k), "laplace": upper(lambda: k * k / ball(e))}
    p = whole("cells", cells, least=2)
    found = {
        "geometric": noise(p, e / touched),
        "laplace": upper(lambda: p * touched / ball(e)),
        # Saying n/p everywhere is at most 2n(1 - 1/p) away from any histogram of n rows.
        "constant": upper(lambda: 2 * n * (1 - 1 / ball(p))),
    }
    if p == 2 and touched == 2:
        # n is public, so that the second cell is n minus the first, a count of its own.
        found["one cell counted"] = noise(2, e)
    if problem == "sparse-histogram":
        q = whole("occupied", occupied, least=1)
        found["threshold"] = upper(lambda: (2 * q + 1) / ball(e) * (ball(p).log() + 1))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Error of the mechanism used, a lower bound for every mechanism, and their ratio (1 is the best possible)."""

    mechanism: str
    error: float
    lower_bound: LowerBound

    @property
    def ratio(self) -> float:
        """The largest possible ratio to the smallest possible error; infinity if no bound is known."""
        return self.error / self.lower_bound.value if self.lower_bound.value > 0 else math.inf

    def to_dict(self) -> dict[str, Any]:
        """For plans, certificates and reports: plain JSON values."""
        return {
            "mechanism": self.mechanism,
            "error": self.error,
            "lower_bound": self.lower_bound.value,
            "lower_bound_theorem": self.lower_bound.name,
            "assumptions": self.lower_bound.assumptions,
            "ratio": self.ratio if math.isfinite(self.ratio) else None,
        }

    record = formerly("record")


def price(
    problem: str, *, mechanism: str | None = None, error: float | None = None, **size: Unpack[Size]
) -> Price:
    """The price of one mechanism for the problem: the named one, the one with the given error, or the best known.

    `size` is what `bound` and `expected_errors` take: n, epsilon, cells, occupied, attributes, neighbours.
    """
    floor = lower_bound(problem, **size)
    if error is not None:
        refuse_if(not (math.isfinite(error) and error > 0), "error", error, "be a finite number above 0")
        return Price(mechanism=mechanism or "given", error=error, lower_bound=floor)
    known = expected_errors(problem, **size)
    name = mechanism if mechanism is not None else min(known, key=lambda m: known[m])
    if name not in known:
        raise UnknownName(what="mechanism", name=name, known=known)
    return Price(mechanism=name, error=known[name], lower_bound=floor)


def curve(problem: str, epsilons: Iterable[float], **about: Any) -> list[tuple[float, Price]]:
    """The price at each epsilon, for a risk-utility plot."""
    points = [(float(e), price(problem, epsilon=e, **about)) for e in epsilons]
    if not points:
        raise EmptyComposition(what="epsilons")
    return points


# --- privacy against sampling --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Decomposition:
    """Error as an estimate of the population: at most the privacy error plus the sampling error.

    Theorem `risk-decomposition`. Source: Hall 2012, section 2.1.1.
    """

    privacy: float
    sampling: float

    @property
    def total(self) -> float:
        """An upper bound of the error against the population, by the triangle inequality."""
        return self.privacy + self.sampling

    @property
    def benign(self) -> bool:
        """Whether the noise adds no more error than the sample already has."""
        return self.privacy <= self.sampling


def decompose(*, privacy: float, sampling: float) -> Decomposition:
    """Both errors must be in one unit and one metric."""
    for name, value in (("privacy", privacy), ("sampling", sampling)):
        refuse_if(not (math.isfinite(value) and value >= 0), name, value, "be a finite number of at least 0")
    return Decomposition(privacy=privacy, sampling=sampling)


def sampling_error(*, n: int, share: float | None = None) -> float:
    """E |X/n - p| for n independent draws, exactly (de Moivre); without a share the bound 1/(2 sqrt(n)).

    E |X - np| = 2 m C(n, m) p^m (1-p)^(n-m+1) with m = floor(np) + 1.
    """
    n = whole("n", n, least=1)
    if share is None:
        return 0.5 / math.sqrt(n)
    refuse_if(not 0 <= share <= 1, "share", share, "lie in [0, 1]")
    if share in (0.0, 1.0):
        return 0.0
    m = math.floor(n * share) + 1
    if m > n:
        m = n
    log = math.lgamma(n + 1) - math.lgamma(m + 1) - math.lgamma(n - m + 1)
    log += m * math.log(share) + (n - m + 1) * math.log1p(-share)
    return 2 * m * math.exp(log) / n
