"""The answers of a joint release: shares of noise on sums, cells of a declared domain, coefficients.

Each holder runs the assignment on its own rows and gets its vector. `layout` has the places of all parts in the
vector, and `received` reads the parts back from the sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tacit.accounting import events
from tacit.accounting.events import Event
from tacit.curator.assignments import Applied, Assignment, NoisyParts
from tacit.curator.charging import Price
from tacit.curator.functions.assignment import FunctionAssignment
from tacit.curator.functions.fits import PureDensityFit, pure_density_fit
from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import digits_up, up
from tacit.functions.densities import ReleasedDensity
from tacit.functions.densities.noises import SharedLaplaceNoise
from tacit.functions.fourier import FourierPlan
from tacit.guarantees import Approximate, Bound
from tacit.mechanisms import Laplace
from tacit.mechanisms.base import PartNoise
from tacit.mechanisms.sparse_keys import key_integers
from tacit.noise.source import Source
from tacit.parties.noise import JointPolya
from tacit.parties.session import Ring
from tacit.sources.query import Cells
from tacit.statistics.base import Question
from tacit.statistics.sparse import SparseQuestion

MOST_CELLS = 1 << 20
"""The largest number of cells of a sparse histogram, which is sent as the vector of all its cells: at most 8 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RingChance(PartNoise):
    """The probability that the ring of masks surrounds an honest holder, as a delta of its own; no noise.

    Guarantee: Approximate(0, chance) beside whatever else is released (theorem `sparse-masks`).
    """

    ring: Ring

    @property
    def bound(self) -> Bound:
        return Approximate(epsilon=0.0, delta=self.ring.delta)

    @property
    def event(self) -> Event:
        return events.ApproximateEvent(epsilon=0.0, delta=self.ring.delta)

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("sparse-masks",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {"distribution": "none: the chance that a ring of masks fails", **self.ring.to_dict()}

    def release_parts(
        self, parts: Sequence[AnyArray], *, cells: Callable[[], AnyArray], source: Source | None
    ) -> list[AnyArray]:
        return []

    def half_widths(self, parts: int, confidence: Fraction, *, coordinates: int = 1) -> list[Floats]:
        return []

    def mean_errors(self, parts: int) -> list[float]:
        return []

    def mean_variances(self, parts: int) -> list[float]:
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class JointAssignment(Assignment):
    """Shares of noise on the parts of a question; losses of several add up."""

    of_shares: ClassVar[bool] = True

    @property
    def theorems(self) -> tuple[str, ...]:
        found = [t for m in self.mechanisms for t in m.theorems]
        if len(self.mechanisms) > 1:
            found.append("compose-pure" if self.pure() is not None else "compose-approximate-basic")
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class JointSparse(JointAssignment):
    """A sparse histogram as the vector of all cells of its declared domain, each with its share of the noise.

    A cell that was declared impossible gets noise like the others, but is not released.
    """

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> NoisyParts:
        assert isinstance(question, SparseQuestion)
        keys, counts = question.occupied(cells)
        dense = np.zeros(question.domain, dtype=np.int64)
        dense[key_integers(keys).astype(np.int64)] = counts
        return NoisyParts(parts=self.noise[0].release({"count": dense}, source=source))

    def published(self, question: Question, values: AnyArray) -> NoisyParts:
        """The possible cells, with their keys."""
        assert isinstance(question, SparseQuestion)
        if question.impossible is None:
            return NoisyParts(parts={"count": values})
        keys = np.arange(question.domain, dtype=np.uint64)
        possible = ~question.impossible.holds(keys)
        labels = question.labels(keys[possible])
        return NoisyParts(
            parts={"count": values[possible]},
            keys=tuple(tuple(labels[a.column].tolist()) for a in question.axes),
        )

    @property
    def covers(self) -> str:
        return "the count of each possible cell of the declared domain, each cell by itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class JointDensityFit(PureDensityFit):
    """A pure density whose sums of cosines and sines get Pólya shares, sized by their L1 sensitivity in grid steps."""

    joint: JointPolya

    @property
    def theorems(self) -> tuple[str, ...]:
        own = ("fourier-sensitivity", "fourier-series-density", "density-lattice", "density-bands")
        return (*self.joint.theorems, *own)

    @property
    def mechanism(self) -> Any:
        return self.joint

    @property
    def moves(self) -> dict[str, str]:
        return {"l1": str(self.joint.steps * self.spacing)}

    @property
    def largest(self) -> int:
        """The largest addition of one row to a number, in steps: a rounded cosine or sine."""
        return math.ceil(1 / self.spacing) + 1

    @property
    def _noise(self) -> SharedLaplaceNoise:
        return SharedLaplaceNoise(
            noise_scale=float(self.joint.noise_scale * self.spacing), shape=float(self.joint.ratio)
        )

    def stds(self, coordinates: Floats) -> Floats:
        return PureDensityFit.stds(self, coordinates) * self._wider

    @property
    def _wider(self) -> float:
        """The ratio of the remaining holders' noise to the plan's, which is one curator's."""
        ours, plan = (float(n.stds(2)[1]) for n in (self._noise, self.plan.noise))
        return ours / plan

    @property
    def widest(self) -> float:
        return self.plan.noise_std * self._wider

    def _spreads(self, level: float) -> tuple[float, float]:
        """By Gauss's inequality, as for Laplace noise: sums of whole Laplace noises and more are log-concave."""
        return 1.0, max(2 / (3 * math.sqrt(1 - level)), math.sqrt(8 / 3))

    def to_dict(self) -> dict[str, Any]:
        return {
            **PureDensityFit.to_dict(self),
            "noise_std": self.widest,
            "noise": self.joint.noise_distribution,
        }

    @property
    def about(self) -> str:
        cost = self.plan.expected_noise_error() * self._wider**2
        return f"the density at any one point; the expected integral of the squared noise is {cost:.3g}"

    def released(self, numbers: Floats, *, publishable: bool) -> ReleasedDensity:
        found = PureDensityFit.released(self, numbers, publishable=publishable)
        return replace(found, noise=self._noise, bound=self.joint.bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class JointFunction(FunctionAssignment):
    """A density whose coefficients are sums over all holders' rows."""

    of_shares: ClassVar[bool] = True

    fit: JointDensityFit

    @property
    def mechanisms(self) -> tuple[Any, ...]:
        return (self.fit.joint, *(a.mechanism for a in self.noise))

    @property
    def theorems(self) -> tuple[str, ...]:
        more = [t for a in self.noise for t in a.mechanism.theorems]
        return tuple(
            dict.fromkeys([*self.fit.theorems, *more, *(["compose-approximate-basic"] if more else [])])
        )

    def to_dict(self) -> dict[str, Any]:
        noise = [self.fit.joint.to_dict(["numbers"]), *(a.mechanism.to_dict(a.parts) for a in self.noise)]
        return {"noise": noise, "chosen": self.reason, "numerical_delta": 0.0, "fit": self.fit.to_dict()}

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> NoisyParts:
        (rows,) = cells
        try:
            true = np.asarray(self.fitted(rows), dtype=object)
        finally:
            rows.clear()
        return NoisyParts(parts={"numbers": self.fit.joint.release_cells(true, source=source)})


def density_assignment(
    question: Question, price: Price, epsilon: Fraction, *, appearances: int, size: Mapping[str, int]
) -> JointFunction:
    """Pólya shares on the coefficients of a pure density."""
    plain = pure_density_fit(question, epsilon)
    plan = FourierPlan(
        family=plain.plan.family, size=plain.plan.size, epsilon=epsilon, mechanism="laplace",
        rows=plain.plan.rows, neighbours=plain.plan.neighbours,
    )  # fmt: skip
    alone = plan.choice.mechanism
    assert isinstance(alone, Laplace)
    # Sums are integers: one unit moves them by a whole number of steps in one holder, so many times in several.
    steps = math.ceil(alone.sensitivity.exact / plan.choice.spacing) * appearances
    joint = JointPolya(steps=steps, noise_scale=steps / epsilon, **size)
    fit = JointDensityFit(plan=plan, inputs=plain.inputs, keys=plain.keys, joint=joint)
    reason = (
        f"Laplace in Pólya shares on {plan.family.coefficients - 1} numbers, which are the whole function"
    )
    return JointFunction(noise=(), price=price, reason=reason, fit=fit)


def layout(question: Question, assignment: Assignment) -> list[tuple[str, tuple[int, ...]]]:
    """The names and shapes of a holder's vector for a question, in order."""
    if isinstance(assignment, JointFunction):
        return [("numbers", (assignment.fit.plan.family.coefficients - 1,))]
    if isinstance(question, SparseQuestion):
        return [("count", (question.domain,))]
    return [(p.name, tuple(a.size or 0 for a in p.axes)) for p in question.parts]


def received(question: Question, assignment: Assignment, parts: dict[str, AnyArray]) -> NoisyParts:
    """The sums of all holders as the assignment's output."""
    if isinstance(assignment, JointSparse):
        return assignment.published(question, parts["count"])
    if isinstance(assignment, JointFunction):
        numbers = np.empty(parts["numbers"].size, dtype=object)
        numbers[:] = [int(v) for v in parts["numbers"]]
        return NoisyParts(parts={"numbers": numbers})
    return NoisyParts(parts=parts)


def with_ring(assignment: Assignment, ring: Ring) -> Assignment:
    """The same for sparse masks: the ring's probability of failure is one more event, and part of the stated delta."""
    if ring.side == 0 or ring.delta == 0.0:
        return assignment
    noise = (*assignment.noise, Applied((), RingChance(ring=ring)))
    pure, own = assignment.pure() is not None, Fraction(ring.delta)
    delta = own if pure else assignment.delta + own
    price = replace(assignment.price, delta=delta)
    return replace(assignment, noise=noise, price=price, delta=delta)


def less_ring(price: Price, ring: Ring) -> Price:
    """The part of a price for the noise, after the ring's chance is taken from its delta."""
    if ring.side == 0 or ring.delta == 0.0:
        return price
    left = None if price.delta is None else price.delta - Fraction(ring.delta)
    if price.kind != "approximate" or left is None or left < 0:
        raise InvalidParameter(
            parameter="delta", value=None if price.delta is None else up(price.delta),
            must="hold the chance that the ring of masks fails",
            hint=f"it is {digits_up(ring.delta, 2)} in each release; pay with epsilon= and a larger delta=, "
            "or lower graph_delta",
        )  # fmt: skip
    return replace(price, delta=left if left > 0 else None)
