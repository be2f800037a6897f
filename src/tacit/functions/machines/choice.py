"""Private choice of the penalty among candidates: held-out risks, and one noisy minimum.

Every `held_out`-th row is kept aside; the others train one machine for each candidate, without noise and unseen by
anybody. A candidate's score is minus its mean clipped loss on the rows kept aside, minus what the noise of the fit to
come is expected to cost, which is public. The choice is one event and the fit after it another: their prices add.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.accounting.events import Event
from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import members, positive, settle, whole
from tacit.exact.rationals import Exact
from tacit.exact.rounding import up
from tacit.functions.machines.certify import UNIT
from tacit.functions.machines.sensitivity import machine_sensitivity
from tacit.functions.machines.training import MachinePlan
from tacit.guarantees import Bound, Neighbours, Pure
from tacit.mechanisms import L1, Laplace, PermuteAndFlip, Score
from tacit.mechanisms.base import epsilon_parameter
from tacit.noise.source import Source

__all__ = ["ChosenPenalty", "PenaltyChoice"]


SPACING = Fraction(1, 1 << 40)
# Noisy risks are compared by their worst expected error; the spread of k Laplace noises is at most this many scales.
SPREAD = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenPenalty:
    """The chosen penalty, and the plan of the fit with it; `publishable` is False for a seeded source."""

    penalty: float
    plan: MachinePlan
    publishable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PenaltyChoice:
    """One penalty of a public list, by noisy held-out risk.

    Guarantee: Pure(epsilon). A row that is held out moves a risk by at most clip / (rows held out), a row that trains
    by at most M radius times what it moves the machine; the larger of the two sizes the noise. `method` is
    "permute-and-flip", or "risks": k risks at epsilon / k each (Hall), whichever errs less.
    Theorem `machine-choice`. Source: Hall 2012, 1.2.3.
    """

    plan: MachinePlan
    candidates: Sequence[float]
    epsilon: Exact
    held_out: int = 5
    clip: float = 2.0

    def __post_init__(self) -> None:
        if not isinstance(self.plan, MachinePlan):
            raise InvalidParameter(parameter="plan", value=type(self.plan).__name__, must="be a MachinePlan")
        if self.plan.neighbours is not Neighbours.REPLACE_ONE or self.plan.rows != 1:
            raise InvalidParameter(
                parameter="plan", value=self.plan.neighbours.value, must="be for one row replaced",
                hint="which rows are held out follows from their places, so that rows may not come or go",
            )  # fmt: skip
        numbers = tuple(positive("candidates", v) for v in members("candidates", self.candidates))
        if not numbers:
            raise EmptyComposition(what="the list of candidates", hint="name at least one penalty")
        if len(set(numbers)) != len(numbers):
            raise InvalidParameter(parameter="candidates", value=numbers, must="be different numbers")
        epsilon_parameter(self.epsilon)
        settle(
            self,
            candidates=numbers,
            epsilon=self.epsilon,
            held_out=whole("held_out", self.held_out, least=2),
            clip=positive("clip", self.clip),
        )
        if self.plan.size < self.held_out:
            raise InvalidParameter(
                parameter="held_out",
                value=self.held_out,
                must=f"be at most the number of rows, {self.plan.size}",
            )

    @property
    def tested(self) -> int:
        """How many rows are held out: those at places held_out, 2 held_out, ..."""
        return self.plan.size // self.held_out

    def _training(self, penalty: float) -> MachinePlan:
        """The plan of the machine that is trained, without noise, on the rows that are not held out."""
        return replace(self.plan, penalty=penalty, size=self.plan.size - self.tested, tolerance=None)

    def final(self, penalty: float) -> MachinePlan:
        """The plan of the fit with this penalty, on all rows."""
        return replace(self.plan, penalty=penalty, tolerance=None)

    @property
    def risk_sensitivity(self) -> float:
        """How far one row, replaced, can move any candidate's clipped risk."""
        plan = self.plan
        moves = [Fraction(self.clip) / self.tested]
        for penalty in self.candidates:
            trained = self._training(penalty)
            assert trained.tolerance is not None
            distance = machine_sensitivity(
                lipschitz=plan.loss.lipschitz, radius=plan.features.radius, penalty=penalty, size=trained.size,
                tolerance=trained.tolerance,
            )  # fmt: skip
            moves.append(Fraction(plan.loss.lipschitz) * Fraction(plan.features.radius) * Fraction(distance))
        most = min(max(moves), Fraction(self.clip)) + 2 * max(map(self._float_error, self.candidates))
        # Risks are put on a grid: each of two is off by half a step, and so is the value that they are compared with.
        return up(most * plan.heads + 2 * SPACING)

    def _float_error(self, penalty: float) -> Fraction:
        """How far a head's risk in floats may be from the exact one: its value at a row, its loss, and their mean."""
        plan = self._training(penalty)
        assert plan.tolerance is not None
        longest = math.sqrt(plan.loss.at_zero / penalty) + math.sqrt(plan.tolerance / penalty)
        value = (1 + 1e-9) * longest * (
            2 * (plan.features.dimension + 4) * UNIT * plan.features.radius + plan.features.rounding
        )  # fmt: skip
        # Losses are a few operations on numbers of at most this size; the mean is rounded three times.
        size = 2 + longest * plan.features.radius + self.clip
        return Fraction(plan.loss.lipschitz * value + 32 * UNIT * (1 + plan.loss.lipschitz) * size)

    def _mechanisms(self) -> tuple[PermuteAndFlip, Laplace]:
        sensitivity = Fraction(self.risk_sensitivity)
        each = epsilon_parameter(self.epsilon) / len(self.candidates)
        return (
            PermuteAndFlip(epsilon=self.epsilon, sensitivity=Score(sensitivity)),
            Laplace.for_epsilon(epsilon=each, sensitivity=L1(sensitivity), spacing=SPACING),
        )

    def expected_errors(self) -> dict[str, float]:
        """By method, a bound on E [risk of the chosen - least risk], known before a row is read."""
        flip, noise = self._mechanisms()
        k = len(self.candidates)
        # E max of k Laplace noises is the k-th harmonic number of scales at most; both ends count.
        harmonic = math.fsum(1 / i for i in range(1, k + 1))
        risks = 0.0 if k == 1 else SPREAD * float(noise.noise_scale) * harmonic
        return {"permute-and-flip": flip.expected_error(candidates=k), "risks": risks}

    @property
    def method(self) -> str:
        """The one that errs less."""
        errors = self.expected_errors()
        return min(errors, key=lambda name: errors[name])

    @property
    def bound(self) -> Bound:
        """Pure epsilon, by either method."""
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    def event(self) -> Event:
        """The choice alone; the fit is an event of its own."""
        from tacit.accounting import events

        if self.method == "permute-and-flip":
            return self._mechanisms()[0].event
        return events.PureEvent(epsilon=up(epsilon_parameter(self.epsilon)))

    def risks(self, rows: Floats, targets: Sequence[Floats]) -> list[Fraction]:
        """The true held-out risks, on the grid: never to be shown."""
        out = np.zeros(rows.shape[0], dtype=bool)
        out[self.held_out - 1 :: self.held_out] = True
        plan, found = self.plan, []
        finite = np.asarray(np.isfinite(rows).all(axis=1))
        phi = plan.features.of(np.where(finite[:, None], rows, 0.0)[out])
        for penalty in self.candidates:
            weights = self._training(penalty).train(rows[~out], [t[~out] for t in targets])
            total = Fraction(self.final(penalty).expected_excess_error()) * plan.heads
            for head, target in zip(weights, targets, strict=True):
                used = (finite & np.isfinite(target))[out]
                loss = plan.loss.values(phi[used] @ head, np.clip(target[out][used], -1.0, 1.0))
                total += Fraction(math.fsum(np.minimum(loss, self.clip).tolist()) / self.tested)
            found.append(round(total / SPACING) * SPACING)
        return found

    def choose(
        self, rows: Floats, targets: Sequence[Floats], *, source: Source | None = None
    ) -> ChosenPenalty:
        """The chosen penalty. Raises FitFailed where a candidate's machine missed its tolerance."""
        if rows.ndim != 2 or rows.shape[0] != self.plan.size:
            raise InvalidParameter(
                parameter="rows", value=f"{rows.shape[0]} rows", must=f"have {self.plan.size}, as planned"
            )
        risks = self.risks(rows, targets)
        flip, noise = self._mechanisms()
        if self.method == "permute-and-flip":
            chosen = flip.choose([-r for r in risks], source=source)
            place, publishable = chosen.index, chosen.publishable
        else:
            noisy = noise.release([int(r / SPACING) for r in risks], source=source)
            place, publishable = int(np.argmin(noisy.values)), noisy.publishable
        penalty = self.candidates[place]
        return ChosenPenalty(penalty=penalty, plan=self.final(penalty), publishable=publishable)

    @property
    def words(self) -> dict[str, Any]:
        """The choice in plain values, for a certificate."""
        return {
            "candidates": list(self.candidates),
            "held_out": self.held_out,
            "clip": self.clip,
            "method": self.method,
            "risk_sensitivity": self.risk_sensitivity,
        }
