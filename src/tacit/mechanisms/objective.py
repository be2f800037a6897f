"""Objective perturbation: a convex objective gets a random linear term, and its minimiser is released.

    minimise  sum_i loss_i(w) + (ridge/2)|w|^2 + b . w,      b ~ N(0, noise_std^2 I)

b is drawn exactly and rounded to a fine grid, the minimiser is certified to a gradient of at most `tolerance`, and a
little Gaussian noise on the result covers both. The proof is about the ideal minimiser, which no program computes
exactly; noise makes the computed one equally private (theorem `objective-exactness`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np

from tacit.accounting.events import ComposedEvent, Event, GaussianEvent, ObjectivePerturbationEvent
from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import Floats
from tacit.exact.checks import positive, refuse_if, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, bisected, down, up
from tacit.guarantees import GaussianDP, Profile, gaussian_budget
from tacit.mechanisms.base import L2, Mechanism, Released, epsilon_parameter, on_grid, shown
from tacit.mechanisms.gaussian import RoundedGaussian, delta_parameter
from tacit.mechanisms.knorm import KNorm
from tacit.noise.source import Source, default_source
from tacit.pld import GaussianPair, ObjectivePair, Product
from tacit.pld.pairs.objective import LOSSES

__all__ = ["ObjectivePerturbation"]

COVER = Fraction(1, 10_000)
"""The share of mu^2 that goes to the noise on the minimiser."""
MOST_HEADS = 4096
MOST_SHRINKS = 398
"""The largest mu is reduced by 0.3% at most this many times."""
STARTS = 0.9
"""The default part of epsilon at which the Gaussian curve of log-cosh losses begins."""
TOLERANCE = 2.0**-17
"""The tolerance of the certified gradient for gradients of rows of at most 1, which double precision reaches
for some million rows.
"""

CERTIFIED = "the solver certifies the minimum on this table and its neighbours; elsewhere 0 takes its place"
"""Conditions of a guarantee that no program can prove in advance: theorem `objective-exactness`."""

T = TypeVar("T")
Minimise = Callable[[Floats, float], "tuple[Floats, float]"]
"""(b, spacing) -> a minimiser on the grid of this spacing, and a proved upper bound on its gradient's length."""


class PerturbedMinimiser(Mechanism):
    """The common base of perturbed objectives: the grids of the term and of the minimiser, the check, the release.

    `gradient` bounds the length of one row's gradient, `second` its second derivative in any direction (for
    logistic loss radius^2), and `rows` is the number of rows added or taken away between neighbours.
    """

    __slots__ = ()

    dimension: int
    gradient: float
    second: float
    ridge: float
    rows: int
    loss: str
    tolerance: float

    def _check(self, *positives: str) -> None:
        set_fields(self, dimension=whole("dimension", self.dimension), rows=whole("rows", self.rows))
        for name in ("gradient", "second", "ridge", "tolerance", *positives):
            set_fields(self, **{name: positive(name, getattr(self, name))})
        known_loss(self.loss)
        if not 2.0**-40 <= self.tolerance <= max(1.0, self.gradient):
            raise InvalidParameter(
                parameter="tolerance", value=self.tolerance, must="lie between 2^-40 and 1, or the gradient of a row",
                hint="a smaller gradient cannot be certified in double precision",
            )  # fmt: skip

    @property
    @abstractmethod
    def term(self) -> RoundedGaussian | KNorm:
        """The distribution of the random linear term."""

    @property
    @abstractmethod
    def output(self) -> RoundedGaussian | KNorm:
        """The noise on the minimiser."""

    @property
    @abstractmethod
    def term_std(self) -> float:
        """The standard deviation of a coordinate of the linear term."""

    @property
    def curvature(self) -> float:
        """second / ridge, rounded up."""
        return up(Fraction(self.second) / Fraction(self.ridge))

    @property
    def term_spacing(self) -> Fraction:
        """The grid of b: its rounding moves the gradient by at most tolerance / 8."""
        return _power(self.tolerance / (4 * math.sqrt(self.dimension)))

    @property
    def spacing(self) -> Fraction:
        """The grid of the minimiser: rounding to it moves the gradient by n second tolerance / (2^26 ridge) or so."""
        return _power(float(self.reach) / (2.0**26 * math.sqrt(self.dimension)))

    @property
    def reach(self) -> Fraction:
        """The largest distance of two certified minimisers of one ideal minimiser: 2 (tolerance + rounding) / ridge."""
        # Half a step in each of d coordinates: sqrt(d)/2 steps, the root rounded up.
        half = self.term_spacing / 2 * (math.isqrt(self.dimension - 1) + 1)
        return 2 * (Fraction(self.tolerance) + half) / Fraction(self.ridge)

    def release(self, minimise: Minimise, *, source: Source | None = None) -> Released:
        """Draws b, minimises, and adds the covering noise; without a certificate, noise around 0.

        `minimise` must be free of randomness of its own. No row may decide which error occurs.
        """
        source = source if source is not None else default_source()
        drawn = self.term.release(np.zeros(self.dimension, dtype=np.int64), source=source).to_floats()
        found, length = minimise(drawn, float(self.spacing))
        good = (
            found.shape == (self.dimension,) and length <= self.tolerance and bool(np.isfinite(found).all())
        )
        true = on_grid(found if good else np.zeros(self.dimension), spacing=self.spacing)
        return self.output.release(true, source=source)

    def _described(self) -> dict[str, Any]:
        return {
            "gradient": shown(Fraction(self.gradient)),
            "ridge": shown(Fraction(self.ridge)),
            "second_derivative": shown(Fraction(self.second)),
            "rows": self.rows,
            "loss": self.loss,
            "tolerance": shown(Fraction(self.tolerance)),
            "dimension": self.dimension,
            "output": self.output.noise_distribution,
            "exact": True,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectivePerturbation(PerturbedMinimiser):
    """The minimiser of a convex objective with a random linear term, and Gaussian noise that covers its error.

    `gradient` bounds the length of one row's gradient, `second` its second derivative in any direction (for
    logistic loss radius^2), and `rows` is the number of rows added or taken away between neighbours. Guarantee:
    the composition of its two events. Theorems `objective-perturbation`, `objective-groups`,
    `objective-bounded`, `objective-log-cosh`, `objective-exactness`. Source: Chaudhuri, Monteleoni, Sarwate
    2011; Kifer, Smith, Thakurta 2012.
    """

    row: ClassVar[tuple[str, ...]] = (
        "gradient of one row", "minimiser of a convex objective with a Gaussian linear term",
        "its own curve, Gaussian for large ε", "–",
    )  # fmt: skip
    example: ClassVar[Mapping[str, Any]] = {
        "dimension": 2, "gradient": 1, "second": 1, "noise_std": 4, "ridge": 2, "rows": 2, "loss": "logistic",
        "output_mu": 0.01, "tolerance": 1e-5,
    }  # fmt: skip
    target_example: ClassVar[Mapping[str, Any]] = {
        "epsilon": 1, "delta": 1e-6, "dimension": 2, "gradient": 1, "second": 1, "rows": 2, "loss": "logistic",
        "heads": 1, "ridge": 4, "tolerance": 1e-5,
    }  # fmt: skip

    dimension: int
    gradient: float
    second: float
    noise_std: float
    ridge: float
    rows: int = 1
    loss: str = "logistic"
    output_mu: float
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        self._check("noise_std", "output_mu")
        self._objective()

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, delta: Exact, dimension: int, gradient: float, second: float, rows: int = 1,
        loss: str = "logistic", heads: int = 1, ridge: float | None = None, tolerance: float | None = None,
    ) -> ObjectivePerturbation:  # fmt: skip
        """The least noise whose curve has delta(epsilon) <= delta, for `heads` such minimisers of the same rows.

        A ridge that is not given puts the start of the Gaussian part half way to epsilon, for log-cosh losses at
        nine tenths. A tolerance that is not given grows with the gradient of a row, as the errors of floats do.
        """
        target, limit, k = down(epsilon_parameter(epsilon)), delta_parameter(delta), whole("rows", rows)
        heads = whole("heads", heads)
        refuse_if(heads > MOST_HEADS, "heads", heads, f"be at most {MOST_HEADS}")
        known_loss(loss)
        gradient, second = positive("gradient", gradient), positive("second", second)
        tolerance = float(f"{TOLERANCE * max(1.0, gradient):.6g}") if tolerance is None else tolerance
        steps, wanted = k * heads, None if ridge is None else positive("ridge", ridge)
        if loss == "logistic":
            most = gaussian_budget(epsilon=target, delta=limit).mu
            room = target - most**2 / 2
            if room <= 0:
                raise no_room(target)
            own = second * 2 * steps / room if wanted is None else wanted
        elif loss == "log-cosh":
            most = _largest(target, limit / 2.0**heads)
            room = STARTS * (target - most**2 / 2)
            if room <= 0:
                raise no_room(target)
            own = second * 2 * steps / room if wanted is None else wanted
        else:
            own = second / math.expm1(target / (8 * steps)) if wanted is None else wanted
            most = _largest(target - steps * math.log1p(second / own), limit / 2.0**steps)
        own = float(f"{own:.6g}") if wanted is None else own
        share = float(COVER)
        output = float(f"{most * math.sqrt(share / heads) * (1 - 1e-3):.4g}")

        def attempt(shrink: int) -> ObjectivePerturbation | None:
            """The mechanism for the largest mu less this amount, if that is enough."""
            mu = most * math.sqrt((1 - share) / heads) * (1 - 5e-5) * 0.997**shrink
            found = cls(
                dimension=dimension, gradient=gradient, second=second, noise_std=rounded_up(gradient * k / mu),
                ridge=own, rows=k, loss=loss, output_mu=output, tolerance=tolerance,
            )  # fmt: skip
            delta = Product(pairs=[(p, heads) for p in found.pairs]).delta(target)
            return found if delta.high <= limit else None

        best = smallest_shrink(attempt, MOST_SHRINKS)
        if best is None:
            raise no_room(target)
        return best

    @property
    def term_std(self) -> float:
        return self.noise_std

    @property
    def mu(self) -> float:
        """The loss of one row: gradient / noise_std, rounded up."""
        return up(Fraction(self.gradient) / Fraction(self.noise_std))

    def _objective(self) -> ObjectivePerturbationEvent:
        multiplier = down(Fraction(self.noise_std) / Fraction(self.gradient))
        return ObjectivePerturbationEvent(
            noise_multiplier=multiplier, curvature=self.curvature, rows=self.rows, loss=self.loss
        )

    @property
    def pairs(self) -> tuple[ObjectivePair, GaussianPair]:
        """The dominating pairs of the ideal minimiser and of the noise that covers its error."""
        first, second = self._objective(), self.output.event
        assert isinstance(second, GaussianEvent)
        return first._pair(), GaussianPair(squared=second.squared)

    @property
    def events(self) -> tuple[Event, ...]:
        return self._objective(), self.output.event

    @property
    def event(self) -> Event:
        return ComposedEvent(events=self.events)

    @property
    def bound(self) -> Profile:
        return Profile.product([(Profile.of_pair(pair), 1) for pair in self.pairs])

    @property
    def exact_epsilon(self) -> None:
        """It has none."""
        return None

    @property
    def theorems(self) -> tuple[str, ...]:
        signs = () if self.loss == "logistic" else (f"objective-{self.loss}",)
        own = signs if self.loss == "bounded" else (*signs, *("objective-groups",) * (self.rows > 1))
        return ("objective-perturbation", *own, "objective-exactness", "rounded-gaussian")

    @property
    def output(self) -> RoundedGaussian:
        """The noise on the minimiser."""
        std = up(self.reach / Fraction(self.output_mu))
        return RoundedGaussian(
            sensitivity=L2(self.reach), noise_std=std, dimension=self.dimension, spacing=self.spacing
        )

    @property
    def term(self) -> RoundedGaussian:
        """The distribution of the random linear term."""
        return RoundedGaussian(
            sensitivity=L2(Fraction(self.gradient)), noise_std=self.noise_std, dimension=self.dimension,
            spacing=self.term_spacing,
        )  # fmt: skip

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "objective perturbation",
            "noise_std": shown(Fraction(self.noise_std)),
            **self._described(),
        }


def smallest_shrink(attempt: Callable[[int], T | None], most: int) -> T | None:
    """The result for the smallest number of steps from 0 to `most` with a result: by doubling, then halving."""
    tried: dict[int, T | None] = {}

    def made(shrink: int) -> T | None:
        if shrink not in tried:
            tried[shrink] = attempt(shrink)
        return tried[shrink]

    low = high = 0
    while made(high) is None:
        if high >= most:
            return None
        low, high = high, min(max(2 * high, 1), most)
    return made(bisected(lambda shrink: made(shrink) is not None, low, high)[1])


def known_loss(loss: object) -> None:
    """Refuses a loss that no theorem covers."""
    if not isinstance(loss, str) or loss not in LOSSES:
        raise InvalidParameter(parameter="loss", value=loss, must=f"be one of {', '.join(LOSSES)}")


def rounded_up(value: float) -> float:
    """Seven digits, rounded up, so that all machines make the same plan."""
    return float(f"{value * (1 + 1e-6):.7g}")


def _power(value: float) -> Fraction:
    """The largest power of two not above."""
    return Fraction(2) ** math.floor(math.log2(value))


def _largest(epsilon: float, delta: float) -> float:
    """The largest mu with delta_Gauss(epsilon; mu) <= delta."""
    if epsilon <= 0 or delta < 1e-300:
        raise no_room(epsilon)
    low, high = 0.0, 1.0
    while GaussianDP(mu=high).delta(epsilon) <= delta:
        low, high = high, 2 * high
    low, _ = bisected(lambda mu: GaussianDP(mu=mu).delta(epsilon) > delta, low, high, halvings=50)
    if low == 0:
        raise no_room(epsilon)
    return low


def no_room(epsilon: float) -> NotCertified:
    """The refusal of a price that is too small."""
    return NotCertified(
        what="objective perturbation", reason=f"epsilon = {epsilon:g} leaves no room for these rows at this delta",
        hint="a larger epsilon, fewer rows of one unit, or another mechanism",
    )  # fmt: skip
