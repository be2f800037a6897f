"""Objective perturbation with pure epsilon: the random linear term has a density that falls with its length.

    minimise  sum_i loss_i(w) + (ridge/2)|w|^2 + b . w,      b with density proportional to exp(-|b| / noise_scale)

Drawn, solved and certified like its Gaussian relative (`tacit.mechanisms.objective`), with noise of the same
shape on the minimiser, so that no part of it spends a delta.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

from tacit.accounting.events import ComposedEvent, Event, PureEvent
from tacit.exact.checks import positive, refuse_if, require, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, ball, bisected, up, upper
from tacit.guarantees import Pure
from tacit.mechanisms.base import epsilon_parameter, shown
from tacit.mechanisms.bodies import Gauge
from tacit.mechanisms.knorm import KNorm
from tacit.mechanisms.objective import (
    MOST_HEADS,
    TOLERANCE,
    PerturbedMinimiser,
    known_loss,
    no_room,
    rounded_up,
)
from tacit.noise import EuclideanBall
from tacit.pld.pairs.objective import MOST_CURVATURE

__all__ = ["PureObjectivePerturbation"]

COVER = Fraction(1, 1000)
"""The share of epsilon that goes to the noise on the minimiser."""
RIDGE = 2.0
"""The default ridge of logistic losses, as a multiple of the smallest at which the determinant is free."""
DETERMINANT = Fraction(1, 8)
"""The default share of epsilon that goes to the determinant of bounded losses."""


def row_epsilon(rate: Fraction, curvature: Fraction, loss: str) -> Fraction:
    """The cost of one row at rate = gradient / noise_scale and curvature = second / ridge, rounded up.

    Logistic: max over 0 <= p <= 1 of p rate + ln(1 + curvature p (1 - p)), which is the rate itself where the
    curvature is at most the rate. Log-cosh: max of p rate + ln(1 + curvature (1 - p^2)), the rate itself where the
    curvature is at most half of it. Bounded: rate + ln(1 + curvature). Theorem `objective-pure`.
    """
    if loss == "bounded":
        return rate + Fraction(upper(lambda: (1 + ball(curvature)).log()))
    if (2 if loss == "log-cosh" else 1) * curvature <= rate:
        return rate

    def largest() -> Any:
        a, c = ball(rate), ball(curvature)
        if loss == "log-cosh":
            # Concave as well; its slope vanishes at the positive root of c p^2 + (2 c / a) p - (1 + c) = 0.
            p = (1 / (a * a) + (1 + c) / c).sqrt() - 1 / a
            return p * a + (1 + c * (1 - p * p)).log()
        # The maximand is concave; its slope vanishes at the larger root of p^2 - (1 - 2/a) p - (1/a + 1/c) = 0.
        half = (1 - 2 / a) / 2
        p = half + (half * half + 1 / a + 1 / c).sqrt()
        return p * a + (1 + c * p * (1 - p)).log()

    return Fraction(upper(largest))


@dataclass(frozen=True, slots=True, kw_only=True)
class PureObjectivePerturbation(PerturbedMinimiser):
    """The minimiser of a convex objective with a random linear term of density e^(-|b| / noise_scale), and its cover.

    Guarantee: Pure(rows * (cost of one row) + output_epsilon), the cost of one row being gradient / noise_scale where
    second / ridge is at most that (logistic) or half of it (log-cosh), else a little more. Theorems `objective-pure`,
    `objective-exactness`. Source: Chaudhuri, Monteleoni, Sarwate 2011, whose determinant costs
    ln(1 + second / (4 ridge)) more.
    """

    row: ClassVar[tuple[str, ...]] = (
        "gradient of one row", "minimiser of a convex objective with a linear term of density e^(-|b|/scale)",
        "pure ε", "–",
    )  # fmt: skip
    example: ClassVar[Mapping[str, Any]] = {
        "dimension": 2, "gradient": 1, "second": 1, "noise_scale": 4, "ridge": 8, "rows": 2, "loss": "logistic",
        "output_epsilon": 0.01, "tolerance": 1e-5,
    }  # fmt: skip
    target_example: ClassVar[Mapping[str, Any]] = {
        "epsilon": 1, "dimension": 2, "gradient": 1, "second": 1, "rows": 2, "loss": "logistic", "heads": 1,
        "ridge": 4, "tolerance": 1e-5,
    }  # fmt: skip

    dimension: int
    gradient: float
    second: float
    noise_scale: float
    ridge: float
    rows: int = 1
    loss: str = "logistic"
    output_epsilon: float
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        self._check("noise_scale", "output_epsilon")
        require(
            self.curvature <= MOST_CURVATURE, parameter="curvature", value=self.curvature,
            must=f"be at most {MOST_CURVATURE:g}: the second derivative of a row over the ridge",
        )  # fmt: skip
        # Both noises exist and both costs are numbers, or it is refused here.
        assert self.events

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, dimension: int, gradient: float, second: float, rows: int = 1, loss: str = "logistic",
        heads: int = 1, ridge: float | None = None, tolerance: float | None = None,
    ) -> PureObjectivePerturbation:  # fmt: skip
        """The least noise with which `heads` such minimisers of the same rows cost at most epsilon.

        The default ridge is twice the smallest at which the determinant of logistic and log-cosh losses is free;
        bounded losses pay an eighth of epsilon for it. A tolerance that is not given grows with the gradient of
        a row.
        """
        target, k, heads = epsilon_parameter(epsilon), whole("rows", rows), whole("heads", heads)
        refuse_if(heads > MOST_HEADS, "heads", heads, f"be at most {MOST_HEADS}")
        known_loss(loss)
        gradient, second = positive("gradient", gradient), positive("second", second)
        tolerance = float(f"{TOLERANCE * max(1.0, gradient):.6g}") if tolerance is None else tolerance
        each = target / heads
        output = float(f"{float(each * COVER):.4g}") * (1 - 1e-4)
        left = (each - Fraction(output)) / k
        if ridge is not None:
            own = positive("ridge", ridge)
        elif loss != "bounded":
            free = 2 if loss == "log-cosh" else 1
            own = float(f"{RIDGE * free * second / float(left):.6g}")
        else:
            own = float(f"{second / math.expm1(min(float(left * DETERMINANT), 10.0)):.6g}")
        steep, widest = up(Fraction(second) / Fraction(own)), up(Fraction(gradient) / left * 2**20)
        refuse_if(not math.isfinite(steep), "ridge", own, "leave a finite curvature")
        refuse_if(not math.isfinite(widest), "gradient", gradient, "leave room for a finite noise")
        curvature = Fraction(steep)

        def enough(scale: float) -> bool:
            return row_epsilon(Fraction(gradient) / Fraction(scale), curvature, loss) <= left

        least = rounded_up(gradient / float(left))
        if not enough(least):
            most = least * 2.0**20
            if not enough(most):
                raise no_room(float(target))
            _, high = bisected(enough, least, most, relative=1e-9)
            least = rounded_up(high)
        return cls(
            dimension=dimension, gradient=gradient, second=second, noise_scale=least, ridge=own, rows=k, loss=loss,
            output_epsilon=output, tolerance=tolerance,
        )  # fmt: skip

    @property
    def objective_epsilon(self) -> Fraction:
        """The cost of the ideal minimiser: rows times the cost of one, rounded up."""
        rate = Fraction(self.gradient) / Fraction(self.noise_scale)
        return self.rows * row_epsilon(rate, Fraction(self.curvature), self.loss)

    @property
    def term_std(self) -> float:
        """noise_scale sqrt(dimension + 1)."""
        return self.noise_scale * math.sqrt(self.dimension + 1)

    @property
    def _ball(self) -> EuclideanBall:
        return EuclideanBall(coordinates=self.dimension)

    @property
    def term(self) -> KNorm:
        return KNorm(
            sensitivity=Gauge(Fraction(self.gradient), self._ball), noise_scale=Fraction(self.noise_scale),
            spacing=self.term_spacing,
        )  # fmt: skip

    @property
    def output(self) -> KNorm:
        scale = up(self.reach / Fraction(self.output_epsilon))
        return KNorm(sensitivity=Gauge(self.reach, self._ball), noise_scale=scale, spacing=self.spacing)

    @property
    def events(self) -> tuple[Event, ...]:
        return PureEvent(epsilon=up(self.objective_epsilon)), self.output.event

    @property
    def event(self) -> Event:
        return ComposedEvent(events=self.events)

    @property
    def exact_epsilon(self) -> Fraction:
        """The epsilon of both parts together."""
        return sum((Fraction(e.epsilon) for e in self.events if isinstance(e, PureEvent)), Fraction(0))

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(self.exact_epsilon))

    @property
    def theorems(self) -> tuple[str, ...]:
        return "objective-pure", "objective-exactness", "k-norm"

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "objective perturbation, pure",
            "noise_scale": shown(Fraction(self.noise_scale)),
            **self._described(),
        }
