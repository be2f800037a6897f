"""The schedule: the steps, their order and their noise; fixed before a row is read.

With a total M of mu^2 (the share of each part is public):

    one-way margins     L2 noise of mu^2 = ONES M, all columns together
    each of T rounds    a choice by the exponential mechanism with epsilon_t = 2 sqrt(CHOOSING b / T), then the chosen
                        margin with noise of mu^2 = (1 - CHOOSING) b / T, b = (1 - ONES - errors) M
    finished rows       the L1 errors of all checked margins with noise of mu^2 = errors M

The choice of a margin depends on earlier answers; the mechanisms do not. So the whole is one fixed list of events,
adaptively composed, and its certified profile holds (theorem `synthesis-account`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from tacit.accounting import account, events
from tacit.accounting.events import Event
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Neighbours, Unit
from tacit.mechanisms import L2, Exponential, RoundedGaussian, Score
from tacit.mechanisms.base import Mechanism
from tacit.statistics.base import Question
from tacit.synthesis.statistic import SyntheticTable, moves

ONES = 0.1
"""The share of the price that measures the one-way margins."""
CHOOSING = 0.1
"""The share of each round that chooses its margin."""
CLOSE = 1e-5
"""How near the calibrated price comes to the asked one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The mechanisms of one synthesis: one-way margins, choices, measurements, and errors if they are paid for.

    `ones` is None if public margins contain every column.
    """

    rounds: int
    ones: RoundedGaussian | None
    choosing: Exponential
    measuring: RoundedGaussian
    errors: RoundedGaussian | None = None

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Each mechanism once."""
        first = () if self.ones is None else (self.ones,)
        last = () if self.errors is None else (self.errors,)
        return (*first, self.choosing, self.measuring, *last)

    @property
    def events(self) -> tuple[Event, ...]:
        """All that is run, with repetitions."""
        first = () if self.ones is None else (self.ones.event,)
        last = () if self.errors is None else (self.errors.event,)
        return (
            *first,
            events.RepeatedEvent(event=self.choosing.event, times=self.rounds),
            events.RepeatedEvent(event=self.measuring.event, times=self.rounds),
            *last,
        )

    @property
    def rho(self) -> Fraction | None:
        """A rho of the whole, if every part has one."""
        each = [
            (self.choosing.exact_rho, self.rounds),
            (self.measuring.exact_rho, self.rounds),
        ]
        if self.ones is not None:
            each.append((self.ones.exact_rho, 1))
        if self.errors is not None:
            each.append((self.errors.exact_rho, 1))
        found = [rho * times for rho, times in each if rho is not None]
        return sum(found, Fraction(0)) if len(found) == len(each) else None


def schedule_of(question: Question, mu: float) -> Schedule:
    """The schedule with this total, about mu-Gaussian differential privacy; its account gives the exact amount."""
    statistic = question.statistic
    assert isinstance(statistic, SyntheticTable)
    unit, details = question.unit, question.details
    total, rounds = mu * mu, statistic.rounds
    # Columns of public margins need no measurement; without any other column the share goes to the rounds.
    asked = details["ones"]
    share = ONES if asked else 0.0
    each = (1 - share - statistic.errors) * total / rounds
    one, all_ones = moves(unit), moves(unit, max(1, len(asked)))

    def noise(mu_squared: float, l2_squared: Fraction) -> RoundedGaussian:
        # Independent noise on each number: `dimension` is that of one, as for the curator's tables of any length.
        std = math.nextafter(math.sqrt(float(l2_squared) / mu_squared), math.inf)
        return RoundedGaussian(sensitivity=L2.root(l2_squared), noise_std=std, dimension=1)

    checked = details["checked"]
    return Schedule(
        rounds=rounds,
        ones=noise(share * total, all_ones.l2_squared) if asked else None,
        choosing=Exponential(
            epsilon=Fraction(2 * math.sqrt(CHOOSING * each)), sensitivity=score_sensitivity(unit)
        ),
        measuring=noise((1 - CHOOSING) * each, one.l2_squared),
        errors=noise(statistic.errors * total, len(checked) * one.l1**2) if checked else None,
    )


def score_sensitivity(unit: Unit) -> Score:
    """The sensitivity of ||t - M||_1 - penalty for a fixed M: that of t in L1 (`synthesis-score`)."""
    return Score(moves(unit).l1)


def calibrated(question: Question, meets: Callable[[Schedule], bool], guess: float) -> Schedule:
    """The schedule with the largest total whose account meets the price; checked at the one that is returned."""
    low, high = guess, guess
    made = schedule_of(question, low)
    while not meets(made):
        low *= 0.7
        made = schedule_of(question, low)
    while meets(schedule_of(question, high)):
        low, high = high, high * 1.3
    while high - low > CLOSE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if meets(schedule_of(question, middle)) else (low, middle)
    return schedule_of(question, low)


def epsilon_of(schedule: Schedule, delta: float, neighbours: Neighbours) -> float:
    """The certified epsilon of a schedule at this delta."""
    return float(account(list(schedule.events), delta=delta, neighbours=neighbours).epsilon.high)
