"""The meaning of a bound for people: tests, beliefs, incentives.

Each reading is an upper bound on what *any* adversary can do, valid for every kind of bound, because it
uses the curve delta(epsilon) only. The curve may be read at any epsilon: a coarse search costs tightness,
never validity. These readings belong to bounds that hold always; meaning.py has those of guarantees.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from tacit.errors import NoLaw
from tacit.exact.checks import instance, positive, probability
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import ball, sum_up, upper
from tacit.guarantees.bounds import Approximate, Bound, GaussianDP, Pure
from tacit.guarantees.bounds.base import normal_cdf
from tacit.guarantees.conditions import BoundedAdversary, Condition, Indistinguishability, Priors, RandomData
from tacit.guarantees.laws.registry import law
from tacit.guarantees.units import Coupled, Unit

if TYPE_CHECKING:
    from flint import arb


@law("trade-off-curve", operation="meaning")
def power(bound: Bound, size: float) -> float:
    """The largest power of a test, of this size, of 'the unit's data are x' against 'they are x''.

    min over e >= 0 of e^e s + delta(e) and of 1 - e^{-e}(1 - delta(e) - s). Hall 2012, Prop. 1.2.2.
    """
    _bound(bound)
    s = probability("size", size)
    if s == 1:
        return 1.0
    if isinstance(bound, GaussianDP):
        return _gaussian_power(bound.mu, s)
    if isinstance(bound, Approximate | Pure):
        return min(
            _power_at(s, 0.0, bound._delta(0.0)),
            _power_at(s, float(bound.epsilon), bound.delta_at(bound.epsilon)),
        )
    return min(1.0, min(_power_at(s, e, bound._delta(e)) for e in _search_points(bound)))


def _power_at(size: float, epsilon: float, delta: float) -> float:
    first = upper(lambda: ball(epsilon).exp() * ball(size) + ball(delta))
    second = upper(lambda: 1 - (-ball(epsilon)).exp() * (1 - ball(delta) - ball(size)))
    return max(0.0, min(1.0, first, second))


def _gaussian_power(mu: float, size: float) -> float:
    """Phi(Phi^{-1}(s) + mu), with the quantile rounded up and checked."""
    if size == 0 or mu == 0:
        return size
    from scipy.special import ndtri

    quantile = float(ndtri(size))
    step = max(abs(quantile), 1.0) * 1e-16

    def short(x: float) -> bool:
        return upper(lambda: ball(size) - normal_cdf(ball(x))) > 0

    while short(quantile):
        quantile, step = quantile + step, step * 2

    def formula() -> arb:
        return normal_cdf(ball(quantile) + ball(mu))

    return min(1.0, upper(formula))


def _search_points(bound: Bound) -> list[float]:
    """Epsilons from 0 until the curve has nearly vanished, denser near 0."""
    far = bound._epsilon(1e-12)
    if math.isinf(far):
        far = bound._epsilon(max(bound._delta(math.inf) * 1.0000001, 1e-12))
    if math.isinf(far):
        far = 50.0
    return [0.0, *(far * (k / 60) ** 2 for k in range(1, 61))]


def best_guess(bound: Bound, prior: float = 0.5) -> float:
    """The largest probability of guessing rightly which of two data sets was used, before odds of `prior`.

    A test with size s and power p is right with probability prior (1-s) + (1-prior) p, hence at most
    (1 + delta(0))/2 at even odds.
    """
    _bound(bound)
    p = probability("prior", prior)
    if p == 0.5:
        return upper(lambda: (1 + ball(bound._delta(0.0))) / 2)
    if p in (0.0, 1.0):
        return 1.0
    # The gain over always answering the likelier is bounded by the curve at the log odds.
    major, minor = max(p, 1 - p), min(p, 1 - p)
    odds = -upper(lambda: -(ball(major) / ball(minor)).log())
    return min(1.0, upper(lambda: ball(major) + ball(minor) * ball(bound._delta(max(0.0, odds)))))


@law("posterior-shift", operation="meaning")
def posterior_shift(bound: Bound) -> float:
    """The largest difference of any belief after the release with and without the unit: tanh(epsilon/2), pure only."""
    epsilon = _bound(bound)._epsilon(0.0)
    if math.isinf(epsilon):
        raise NoLaw(
            operation="a posterior shift without pure epsilon",
            reason="with positive probability the output may move a belief arbitrarily far",
            counterexample="publish the table with probability delta, and nothing otherwise",
            hint="semantic_privacy() bounds the shift except with a stated probability",
        )
    return upper(lambda: (ball(epsilon) / 2).tanh())


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticPrivacy:
    """Beliefs with and without one unit differ by at most `shift`, except with probability `failure`."""

    shift: float
    failure: float


@law("semantic-privacy", operation="meaning")
def semantic_privacy(bound: Approximate, *, slack: float | None = None) -> SemanticPrivacy:
    """Shift tanh(epsilon/2) + 2 h, except with probability ((1 + e^epsilon)/h + 1) delta, for one unit.

    `slack` is h; without it h = sqrt(delta), as in the source. For n units at once multiply the failure by n.
    """
    e, d = _epsilon_and_delta(bound)
    if d == 0:
        return SemanticPrivacy(shift=posterior_shift(Pure(epsilon=e)), failure=0.0)
    h = positive("slack", slack) if slack is not None else upper(lambda: ball(d).sqrt())
    return SemanticPrivacy(
        shift=min(1.0, upper(lambda: (ball(e) / 2).tanh() + 2 * ball(h))),
        failure=min(1.0, upper(lambda: ((1 + ball(e).exp()) / ball(h) + 1) * ball(d))),
    )


@law("semantic-privacy-printed", operation="meaning", rests_on="semantic-privacy")
def semantic_privacy_printed(bound: Approximate) -> float:
    """Groce 2014, Thm 3.1: shift e^{3 epsilon} - 1 + 2 sqrt(delta), with an unknown constant in its probability."""
    e, d = _epsilon_and_delta(bound)
    return upper(lambda: (3 * ball(e)).expm1() + 2 * ball(d).sqrt())


@dataclass(frozen=True, slots=True, kw_only=True)
class Incentive:
    """Expected harm with the unit's data <= factor * expected harm without + addend * largest harm."""

    factor: float
    addend: float


@law("incentive", operation="meaning")
def incentive(bound: Bound, *, delta: float | None = None) -> Incentive:
    """The largest increase of the expectation of any harm by somebody's own data: e^epsilon, and delta of the worst.

    `delta` is a level of the bound's curve: its own for (epsilon, delta), and 0 for the others, unless it is named.
    """
    _bound(bound)
    own = float(bound.delta) if isinstance(bound, Approximate) else 0.0
    level = own if delta is None else probability("delta", delta)
    epsilon = bound.epsilon_at(level)
    if math.isinf(epsilon):
        raise NoLaw(
            operation=f"the incentive reading at delta = {level:g}",
            reason="no finite epsilon holds at this delta",
            hint="name a larger delta",
        )
    return Incentive(factor=upper(lambda: ball(epsilon).exp()), addend=level)


@law("deterministic-is-constant", operation="meaning")
def deterministic_is_constant(bound: Bound) -> bool:
    """True if a *deterministic* mechanism with this bound must be constant: some finite epsilon has delta < 1.

    Two outputs with probability 1 that differ have H_e = 1 at every e (Groce 2014, Thm 3.5, for delta < 1).
    """
    return _bound(bound)._delta(math.inf) < 1


def _bound(given: Bound) -> Bound:
    """A bound; refuses a whole guarantee, because its condition would be lost."""
    return instance(
        "bound",
        given,
        Bound,
        must="be a bound",
        hint="a guarantee has its own power(), best_guess(), incentive()",
    )


def _epsilon_and_delta(given: Approximate) -> tuple[float, float]:
    stated = instance(
        "bound", given, Approximate, must="be an (epsilon, delta) bound", hint="convert it first"
    )
    return float(stated.epsilon), float(stated.delta)


# What a whole guarantee means for people: the readings of its bound, as far as its condition lets them hold.
#
#     Always             the readings of the bound (meaning.py).
#     BoundedAdversary   tests, guesses and harms move by the advantage; no belief is limited at all.
#     RandomData         none for a given person, who may be exactly the one on whose data the bound fails; a guess
#                        is limited on average over the data.
#     Priors, Coupled    none: the bound compares the release with an imitation.
#
# Everything that tells people numbers (methods of a guarantee, explanations, pictures) asks here, so that two of
# them cannot disagree.


def about_neighbours(unit: Unit, condition: Condition, what: str) -> None:
    """Refuses a reading about two versions of one unit's data if the bound does not cover every such pair."""
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
    """The reading of a bound if it has one, or its part against adversaries of bounded means."""
    about_neighbours(unit, condition, what)
    return bounded(condition) if isinstance(condition, BoundedAdversary) else plain()


def reading_of_power(bound: Bound, unit: Unit, condition: Condition, size: float) -> float:
    """The largest power of any test of this size about one unit, by anybody within the condition."""
    return _read(
        "the power of a test", unit, condition,
        plain=lambda: power(bound, size),
        bounded=lambda limits: bounded_power(bound, limits, probability("size", size)),
    )  # fmt: skip


@law("bounded-power", operation="meaning", rests_on="bounded-adversary-readings")
def bounded_power(bound: Bound, condition: BoundedAdversary, size: float) -> float:
    """IND: power(s) + a. SIM: power(s + a) + a, the stand-in's size and power being within a of the test's."""
    slack = condition.advantage
    moved = size if condition.definition is Indistinguishability.IND else min(1.0, sum_up([size, slack]))
    return min(1.0, sum_up([power(bound, moved), slack]))


def reading_of_best_guess(bound: Bound, unit: Unit, condition: Condition, prior: float = 0.5) -> float:
    """The largest probability of guessing rightly between two versions of a unit's data, before odds of `prior`."""
    return _read(
        "a best guess", unit, condition,
        plain=lambda: best_guess(bound, prior),
        bounded=lambda limits: bounded_guess(bound, limits, probability("prior", prior)),
    )  # fmt: skip


@law("bounded-guess", operation="meaning", rests_on="bounded-adversary-readings")
def bounded_guess(bound: Bound, condition: BoundedAdversary, prior: float) -> float:
    """The bound of the stand-in plus a (SIM), or plus a times the smaller of the two odds (IND)."""
    share = min(prior, 1 - prior) if condition.definition is Indistinguishability.IND else 1.0
    moved = upper(lambda: ball(best_guess(bound, prior)) + ball(share) * ball(condition.advantage))
    return min(1.0, moved)


def average_guess(bound: Bound, unit: Unit, condition: Condition, prior: float = 0.5) -> float:
    """The largest probability, over data drawn at random, of distinguishing a row from a fresh draw in its place."""
    if not isinstance(condition, RandomData):
        return reading_of_best_guess(bound, unit, condition, prior)
    return random_guess(best_guess(bound, probability("prior", prior)), condition)


@law("random-guess", operation="meaning", rests_on="random-data-average-guess")
def random_guess(guess: float, condition: RandomData) -> float:
    """guess + gamma (1 - guess): if the bound fails, everything may be known."""
    return min(1.0, upper(lambda: ball(guess) + ball(condition.gamma) * (1 - ball(guess))))


def reading_of_posterior_shift(bound: Bound, unit: Unit, condition: Condition) -> float:
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
    return posterior_shift(bound)


def reading_of_incentive(
    bound: Bound, unit: Unit, condition: Condition, delta: float | None = None
) -> Incentive:
    """The largest rise in the expectation of any harm by one unit's data; `delta` is the bound's own, if it has one."""
    about_neighbours(unit, condition, "the incentive reading")
    plain = incentive(bound, delta=delta)
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
