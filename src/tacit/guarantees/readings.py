"""What a whole guarantee means for people: the readings of its bound, as far as its condition lets them hold.

    Always             the readings of the bound (meaning.py).
    BoundedAdversary   tests, guesses and harms move by the advantage; no belief is limited at all.
    RandomData         none for a given person, who may be exactly the one on whose data the bound fails; a guess
                       is limited on average over the data.
    Priors, Coupled    none: the bound compares the release with an imitation.

Everything that tells people numbers (methods of a guarantee, explanations, pictures) asks here, so that two of
them cannot disagree.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tacit.errors import NoLaw
from tacit.exact.balls import ball, upper
from tacit.exact.checks import probability
from tacit.exact.rounding import sum_up
from tacit.guarantees import meaning
from tacit.guarantees.bounds import Bound
from tacit.guarantees.conditions import (
    BoundedAdversary,
    Condition,
    Indistinguishability,
    Priors,
    RandomData,
)
from tacit.guarantees.laws.registry import law
from tacit.guarantees.meaning import Incentive
from tacit.guarantees.units import Coupled, Unit

__all__ = ["about_neighbours", "average_guess", "best_guess", "incentive", "posterior_shift", "power"]


def about_neighbours(unit: Unit, condition: Condition, what: str) -> None:
    """Refuse a reading about two versions of one unit's data where the bound does not speak of every such two."""
    if isinstance(condition, Priors) or isinstance(unit, Coupled):
        raise NoLaw(
            operation=f"{what} in coupled worlds",
            reason="the bound compares the release with an imitation made without the unit, not two versions "
            "of the unit's data",
            hint="the inference-based reading is Groce Thm 5.2: 3 epsilon and 2 sqrt(delta * family)",
        )
    if isinstance(condition, RandomData):
        raise NoLaw(
            operation=f"{what} under RandomData",
            reason="the bound holds for most data, and the data of one given person may be among the others",
            counterexample="one row, uniform on 200 values; publish 'a' if it is 1, and else 'a' with probability .05 "
            "and 'b' otherwise: epsilon = 0 except with probability .01, and yet 'a' multiplies the odds of 1 by 20",
            hint="theorem random-data-has-no-reading",
        )


def _read(
    what: str,
    unit: Unit,
    condition: Condition,
    *,
    plain: Callable[[], float],
    bounded: Callable[[BoundedAdversary], float],
) -> float:
    """A reading of a bound where it has one, or of what is left of it for adversaries of bounded means."""
    about_neighbours(unit, condition, what)
    return bounded(condition) if isinstance(condition, BoundedAdversary) else plain()


def power(bound: Bound, unit: Unit, condition: Condition, size: float) -> float:
    """The largest power of any test of this size about one unit, by whoever the condition speaks of."""
    return _read(
        "the power of a test", unit, condition,
        plain=lambda: meaning.power(bound, size),
        bounded=lambda limits: bounded_power(bound, limits, probability("size", size)),
    )  # fmt: skip


@law("bounded-power", operation="meaning", rests_on="bounded-adversary-readings")
def bounded_power(bound: Bound, condition: BoundedAdversary, size: float) -> float:
    """IND: power(s) + a. SIM: power(s + a) + a, the stand-in's size and power being within a of the test's."""
    slack = condition.advantage
    moved = size if condition.definition is Indistinguishability.IND else min(1.0, sum_up([size, slack]))
    return min(1.0, sum_up([meaning.power(bound, moved), slack]))


def best_guess(bound: Bound, unit: Unit, condition: Condition, prior: float = 0.5) -> float:
    """The largest probability of guessing rightly between two versions of a unit's data, before odds of `prior`."""
    return _read(
        "a best guess", unit, condition,
        plain=lambda: meaning.best_guess(bound, prior),
        bounded=lambda limits: bounded_guess(bound, limits, probability("prior", prior)),
    )  # fmt: skip


@law("bounded-guess", operation="meaning", rests_on="bounded-adversary-readings")
def bounded_guess(bound: Bound, condition: BoundedAdversary, prior: float) -> float:
    """The guess plus a (SIM), or plus a times the smaller of the two odds (IND)."""
    share = min(prior, 1 - prior) if condition.definition is Indistinguishability.IND else 1.0
    moved = upper(lambda: ball(meaning.best_guess(bound, prior)) + ball(share) * ball(condition.advantage))
    return min(1.0, moved)


def average_guess(bound: Bound, unit: Unit, condition: Condition, prior: float = 0.5) -> float:
    """The largest probability, over data drawn at random, of telling a row from a fresh draw put in its place."""
    if not isinstance(condition, RandomData):
        return best_guess(bound, unit, condition, prior)
    return random_guess(meaning.best_guess(bound, probability("prior", prior)), condition)


@law("random-guess", operation="meaning", rests_on="random-data-average-guess")
def random_guess(guess: float, condition: RandomData) -> float:
    """guess + gamma (1 - guess): where the bound fails, everything may be known."""
    return min(1.0, upper(lambda: ball(guess) + ball(condition.gamma) * (1 - ball(guess))))


def posterior_shift(bound: Bound, unit: Unit, condition: Condition) -> float:
    """tanh(epsilon/2) for pure epsilon under `Always`; NoLaw otherwise."""
    about_neighbours(unit, condition, "a posterior shift")
    if isinstance(condition, BoundedAdversary):
        raise NoLaw(
            operation="a posterior shift under BoundedAdversary",
            reason="what an unbounded reasoner could infer is not limited by a computational bound",
            counterexample="a bit, encrypted: nobody who cannot break the cipher can tell the two, and yet the output "
            "determines the bit",
            hint="power(), best_guess() and incentive() hold for bounded adversaries",
        )
    return meaning.posterior_shift(bound)


def incentive(bound: Bound, unit: Unit, condition: Condition, delta: float | None = None) -> Incentive:
    """How much one unit's data can raise the expectation of any harm; `delta` is the bound's own where it has one."""
    about_neighbours(unit, condition, "the incentive reading")
    plain = meaning.incentive(bound, delta=delta)
    return bounded_incentive(plain, condition) if isinstance(condition, BoundedAdversary) else plain


@law("bounded-incentive", operation="meaning", rests_on="bounded-adversary-readings")
def bounded_incentive(plain: Incentive, condition: BoundedAdversary) -> Incentive:
    """The addend grows by a (IND), or by (1 + e^epsilon) a (SIM), for harms that bounded adversaries can do."""
    slack = condition.advantage
    if slack == 0:
        return plain
    if condition.definition is Indistinguishability.IND:
        return Incentive(factor=plain.factor, addend=min(1.0, sum_up([plain.addend, slack])))
    if math.isinf(plain.factor):
        return Incentive(factor=plain.factor, addend=1.0)
    more = upper(lambda: ball(plain.addend) + (1 + ball(plain.factor)) * ball(slack))
    return Incentive(factor=plain.factor, addend=min(1.0, more))
